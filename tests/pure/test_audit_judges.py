"""The judges on thousands of manifests and facts: right ones pass, every single change fails, and nothing raises."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some
from pydantic import ValidationError

from anonlib.audit.achieved import NAME as ACHIEVED
from anonlib.audit.bucketized import judge as bucketized_judge
from anonlib.audit.generalized import judge as generalized_judge
from anonlib.audit.perturbed import judge as perturbed_judge
from anonlib.audit.verdict import Verdict
from anonlib.exact import text
from tests import paper
from tests.thorough import trials

JUDGES: dict[str, Callable[..., Verdict]] = {
    "bucketized": bucketized_judge.judge,
    "perturbed": perturbed_judge.judge,
    "generalized": generalized_judge.judge,
}
MANY = settings(max_examples=trials(1_000, 25), deadline=None, suppress_health_check=list(HealthCheck))

groups = some.lists(
    some.dictionaries(some.sampled_from("abcde"), some.integers(1, 5), min_size=1, max_size=5), min_size=1, max_size=5
)


@some.composite
def bucketized(draw: Any) -> Any:
    """Buckets, and thresholds by a formula or a default that just or easily cover their shares."""
    buckets = draw(groups)
    overall, n = paper.total(buckets), sum(sum(b.values()) for b in buckets)
    share = {v: max(Fraction(b.get(v, 0), sum(b.values())) for b in buckets) for v in overall}
    spare = draw(some.sampled_from([Fraction(0), Fraction(1, 7), Fraction(1)]))
    if draw(some.booleans()):
        theta = draw(some.fractions(0, 3, max_denominator=9))
        offset = max(max(share[v] - theta * Fraction(overall[v], n) for v in overall), Fraction(0)) + spare
        privacy = {"theta": text(theta), "offset": text(offset)}
        thresholds = {v: min(Fraction(1), theta * Fraction(overall[v], n) + offset) for v in overall}
    else:
        low = min(Fraction(1), max(share.values()) + spare)
        privacy, thresholds = {"default": text(low)}, dict.fromkeys(overall, low)
    return paper.bucketized(buckets, privacy, thresholds)


@some.composite
def perturbed(draw: Any) -> Any:
    """Sub-tables with gammas that just or easily keep rho2."""
    parts = draw(groups)
    overall, n = paper.total(parts), sum(sum(p.values()) for p in parts)
    largest = max(Fraction(c, sum(p.values())) for p in parts for c in p.values())
    assume(largest < 1)
    rho2 = (largest + 1) / 2 if draw(some.booleans()) else (3 * largest + 1) / 4
    assume(max(Fraction(c, n) for c in overall.values()) < rho2)
    gammas = []
    for part in parts:
        share = Fraction(max(part.values()), sum(part.values()))
        most = rho2 / (1 - rho2) * (1 - share) / share
        gammas.append(1 + (most - 1) * draw(some.sampled_from([Fraction(1), Fraction(1, 2)])))
    return paper.perturbed(parts, gammas, rho2)


@some.composite
def generalized(draw: Any) -> Any:
    """Classes with promises that they just keep, some of them or all."""
    classes, kind = draw(groups), draw(some.sampled_from(["flat", "ordered"]))
    if kind == "ordered":
        classes = [{str("abcde".index(v)): c for v, c in g.items()} for g in classes]
    _, first = paper.generalized(classes, {n: Fraction(1) for n in PROMISES}, kind)
    found = {name: Fraction(number) for name, number in first["guarantee"]["achieved"].items()}
    chosen = draw(some.lists(some.sampled_from(PROMISES), min_size=1, unique=True))
    asked = {name: found[name] if draw(some.booleans()) else weaker(name, found[name]) for name in chosen}
    if "enhanced_beta" in asked:  # its bound is irrational where it binds
        asked.pop("beta", None)
        asked["enhanced_beta"] += 1
        overall, n = paper.total(classes), sum(sum(g.values()) for g in classes)
        assume(
            all(
                float(max(Fraction(g.get(v, 0), sum(g.values())) for g in classes)) < enhanced(c, n)
                for v, c in overall.items()
            )
        )
    asked = {n: a for n, a in asked.items() if n not in WHOLE or (a.denominator == 1 and a >= WHOLE[n])}
    asked = {n: a for n, a in asked.items() if n != "t" or 0 < a < 1}
    assume(asked)
    return paper.generalized(classes, asked, kind)


PROMISES = ("k", "distinct_l", "frequency_l", "beta", "enhanced_beta", "t")
WHOLE = {"k": 1, "distinct_l": 2, "frequency_l": 2}
"""Promises that are whole numbers, and the least of each."""


def weaker(name: str, number: Fraction) -> Fraction:
    return number - 1 if name in WHOLE else number + Fraction(1, 100)


def enhanced(count: int, n: int) -> float:
    """A little below the share at which the enhanced bound of beta = 1 binds."""
    import math

    share = count / n
    return (1 + min(1.0, -math.log(share))) * share * (1 - 1e-9)


LAYOUTS = {"bucketized": bucketized(), "perturbed": perturbed(), "generalized": generalized()}


def judged(facts: Any, found: dict[str, Any]) -> Verdict:
    return JUDGES[found["layout"]](facts, paper.stating(found))


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@MANY
@given(data=some.data())
def test_right_releases_pass_and_every_change_fails(layout, data):
    facts, found = data.draw(LAYOUTS[layout])
    verdict = judged(facts, found)
    assert verdict.passed, "\n".join(map(str, verdict.failures))
    assert ACHIEVED in {check.name for check in verdict.checks}
    for name, change in {**OF_MANIFESTS, **OF[layout]}.items():
        other, changed = copy.deepcopy(facts), copy.deepcopy(found)
        after = change(other, changed)
        if after is SAME:
            continue
        assert not judged(after or other, changed).passed, name


SAME = object()
"""What a change says that finds nothing to change."""


def put(where: Callable[[dict[str, Any]], Any], **cells: Any) -> Callable[[Any, dict[str, Any]], None]:
    """A change of the manifest: `cells` are functions of the value that was there."""

    def change(_: Any, found: dict[str, Any]) -> None:
        part = where(found)
        for key, new in cells.items():
            part[key] = new(part.get(key))

    return change


def values(found: dict[str, Any]) -> Any:
    return found["guarantee"]["values"]


def tables(found: dict[str, Any]) -> Any:
    return next(iter(found["tables"].values()))


OF_MANIFESTS: dict[str, Any] = {
    "one record more in": put(lambda f: f["rows"], input=lambda n: n + 1),
    "one more published": put(lambda f: f["rows"], published=lambda n: n + 1, input=lambda n: n + 1),
    "one suppressed": put(lambda f: f["rows"], suppressed=lambda _: 1, input=lambda n: n + 1),
    "a value counted once more": put(lambda f: values(f)[0], count=lambda n: n + 1),
    "a value twice": lambda _, f: values(f).append(dict(values(f)[0])),
    "a better share": put(lambda f: values(f)[0], achieved=lambda _: "1/1000"),
    "words of another column": lambda _, f: _other_column(f["guarantee"]),
    "a word more": put(lambda f: f["guarantee"], words=lambda w: w + " Nobody can believe anything."),
    "another sensitive column": put(lambda f: f["guarantee"], sensitive=lambda _: "age"),
    "another checksum": put(tables, checksum=lambda _: "xxh64sum:0"),
    "another number of rows": put(tables, rows=lambda n: n + 1),
    "a column more": lambda _, f: tables(f)["columns"].append({"name": "ssn", "type": "string", "role": "other"}),
    "a linkage in details": put(lambda f: f["solver"], details=lambda _: {"Ann": "flu"}),
    "a linkage in the status": put(lambda f: f["solver"], status=lambda _: "Ann: flu; Bob: HIV"),
    "a linkage in parameters": put(lambda f: f["method"]["parameters"], note=lambda _: "Ann: flu, Bob: HIV"),
    "a linkage in utility": put(lambda f: f["utility"], Ann=lambda _: 3.0),
    "another bucket, class or sub-table": lambda _, f: f["solver"]["setting"].append({"size": 99, "number": 1}),
}


def _other_column(part: dict[str, Any]) -> Any:
    if "illness" not in part["words"]:
        return SAME
    part["words"] = part["words"].replace("illness", "age")
    return None


def at_worst(facts: Any) -> int:
    """The entry of `st` with the largest share."""
    shares = [Fraction(e.count, e.smallest) for e in facts.st.entries]
    return shares.index(max(shares))


def with_entry(facts: Any, **cells: Any) -> Any:
    entries, at = list(facts.st.entries), at_worst(facts)
    entries[at] = replace(entries[at], **{n: f(getattr(entries[at], n)) for n, f in cells.items()})
    return replace(facts, st=replace(facts.st, entries=tuple(entries)))


def of_class(facts: Any, **cells: Any) -> Any:
    return replace(
        facts, classes=(replace(facts.classes[0], **{n: f(getattr(facts.classes[0], n)) for n, f in cells.items()}),)
    )


def shares_less(shares: Any) -> Any:
    code = max(shares, key=lambda c: shares[c].value)
    return {**shares, code: replace(shares[code], value=shares[code].value * Fraction(9, 10))}


def belief_of(facts: Any, change: Callable[[Fraction], Fraction]) -> Any:
    """The first sub-table's gamma, exact, rounded and in its retention, as another operator would have it."""
    first = dict(facts.operators.lines[0])
    gamma = change(Fraction(str(first["gamma_exact"])))
    if gamma <= 1:
        return SAME
    first |= {"gamma_exact": text(gamma), "gamma": float(gamma)}
    first["retention"] = float((gamma - 1) / (first["domain_size"] - 1 + gamma))
    return replace(facts, operators=replace(facts.operators, lines=(first, *facts.operators.lines[1:])))


def in_lines(facts: Any, **cells: Any) -> Any:
    first = dict(facts.operators.lines[0])
    first |= {n: f(first[n]) for n, f in cells.items()}
    return replace(facts, operators=replace(facts.operators, lines=(first, *facts.operators.lines[1:])))


def in_records(facts: Any, **cells: Any) -> Any:
    return replace(facts, records=replace(facts.records, **{n: f(getattr(facts.records, n)) for n, f in cells.items()}))


def box(facts: Any, **cells: Any) -> Any:
    first = facts.boxes.attributes[0]
    first = replace(first, **{n: f(getattr(first, n)) for n, f in cells.items()})
    return replace(facts, boxes=replace(facts.boxes, attributes=(first,)))


def stronger(facts: Any, found: dict[str, Any]) -> Any:
    """The promise and its words, a little stronger than what the classes keep."""
    part = found["guarantee"]
    for name in list(part["asked"]):
        kept = Fraction(part["achieved"][name])
        better = kept + 1 if name in WHOLE else kept - Fraction(1, 1000)
        if name in ("beta", "t", "enhanced_beta") and better <= 0:
            return SAME
        part["asked"][name] = found["method"]["parameters"][name] = text(better)
        part["words"] = paper.words.classes(
            "illness", {n: Fraction(a) for n, a in part["asked"].items()}, part["distance"]
        )
        return None
    return SAME


OF: dict[str, dict[str, Any]] = {
    "bucketized": {
        "a lower threshold": put(lambda f: values(f)[0], threshold=lambda t: text(Fraction(t) / 2)),
        "another loss": put(lambda f: f["solver"], loss=lambda n: n + 1),
        "another MSBS": put(lambda f: f["utility"], msbs=lambda x: x + 1),
        "fakes nobody made": put(lambda f: f["rows"], fake=lambda _: 1),
        "a bucket size above the largest": put(lambda f: f["method"]["parameters"], max_bucket_size=lambda _: 0),
        "a count more": lambda facts, _: with_entry(facts, count=lambda n: n + 1),
        "a smaller bucket": lambda facts, _: with_entry(facts, smallest=lambda n: n - 1),
        "a row more": lambda facts, _: with_entry(facts, rows=lambda n: n + 1),
        "other buckets in qit": lambda facts, _: replace(facts, qit=replace(facts.qit, fingerprint=(1, 2, 3))),
        "a row of no bucket": lambda facts, _: replace(facts, qit=replace(facts.qit, null_buckets=1)),
        "a value in two rows": lambda facts, _: replace(facts, st=replace(facts.st, doubled=1)),
        "an unknown value": lambda facts, _: replace(facts, st=replace(facts.st, unknown=1)),
        "a nameless bucket": lambda facts, _: replace(facts, st=replace(facts.st, null_buckets=1)),
        "a bucket more": lambda facts, _: replace(facts, st=replace(facts.st, sizes={**facts.st.sizes, 98: 1})),
        "a row number": lambda facts, _: replace(facts, numbering=("'age': all",)),
        "the sensitive column in qit": lambda facts, _: replace(
            facts, columns={**facts.columns, "qit": (*facts.columns["qit"], ("illness", "string"))}
        ),
    },
    "perturbed": {
        "a value of another name": put(lambda f: values(f)[0], value=lambda _: "plague"),
        "a better belief": put(lambda f: f["guarantee"]["achieved"], rho2=lambda _: "1/1000"),
        "a stronger rho2": put(lambda f: f["guarantee"]["asked"], rho2=lambda r: text(Fraction(r) * Fraction(9, 10))),
        "a stronger rho2 in the parameters": put(
            lambda f: f["method"]["parameters"], rho2=lambda r: text(Fraction(r) * Fraction(9, 10))
        ),
        "a value not protected": put(lambda f: values(f)[0], threshold=lambda _: None),
        "a better retention": put(lambda f: f["utility"], mean_retention=lambda p: p + 0.01),
        "a better error bound": put(lambda f: f["utility"], error_bound=lambda _: 1e-6),
        "a better error of counts": put(lambda f: f["utility"], count_error=lambda _: 1e-6),
        "twice the gamma": lambda facts, _: belief_of(facts, lambda g: 2 * g),
        "half the gamma": lambda facts, _: belief_of(facts, lambda g: (1 + g) / 2),
        "another rounded gamma": lambda facts, _: in_lines(facts, gamma=lambda g: g * 1.001),
        "another stated retention": lambda facts, _: in_lines(facts, retention=lambda p: p + 0.001),
        "another size": lambda facts, _: in_lines(facts, size=lambda s: s + 1),
        "another domain size": lambda facts, _: in_lines(facts, domain_size=lambda s: s + 1),
        "one record more": lambda facts, _: in_records(facts, observed=lambda o: (o[0] + 1, *o[1:])),
        "a stranger": lambda facts, _: in_records(facts, strangers=lambda _: 1),
    },
    "generalized": {
        "a value of another name": put(lambda f: values(f)[0], value=lambda _: "plague"),
        "stronger than kept": stronger,
        "another GCP": put(lambda f: f["utility"], gcp=lambda x: x / 2),
        "another AIL": put(lambda f: f["utility"], ail=lambda x: x / 2),
        "another discernibility": put(lambda f: f["utility"], discernibility=lambda x: x + 1),
        "a class more": put(lambda f: f["utility"], classes=lambda x: x + 1),
        "a wider domain": lambda facts, _: box(facts, unreached=lambda _: "stated 0 to 99"),
        "a box outside": lambda facts, _: box(facts, outside=lambda _: 1),
        "no interval": lambda facts, _: box(facts, malformed=lambda _: 1),
        "a wrong label": lambda facts, _: box(facts, mislabelled=lambda _: 1),
        "two boxes in a class": lambda facts, _: of_class(facts, several=lambda _: 1),
        "a share less": lambda facts, _: of_class(facts, shares=shares_less),
        "a class size more": lambda facts, _: of_class(facts, sizes=lambda s: {**s, 97: 1}),
        "a value more published": lambda facts, _: replace(
            facts, distributions=({**facts.distributions[0], "plague": 1},)
        ),
        "a row of no class": lambda facts, _: replace(facts, boxes=replace(facts.boxes, null_classes=1)),
        "a row number": lambda facts, _: replace(facts, numbering=("'age_min': all",)),
    },
}


# --- nothing raises ---------------------------------------------------------------------------------------------------------------

JUNK = some.one_of(
    some.none(),
    some.integers(-3, 3),
    some.sampled_from([10**30, -1, 0, 1.5, float("nan"), float("inf")]),
    some.sampled_from(["", "0", "-1", "1/0", "1e400", "x", "flu", "plague", "0.5", "ordered", "hierarchical"]),
    some.just([]),
    some.just({}),
    some.just([["a", "b"], ["c"]]),
    some.just({"a": "0.5"}),
)


def places(part: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything in a manifest."""
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [p for key, value in inner for p in [(*above, key), *places(value, (*above, key))]]


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=trials(3_000, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=some.data())
def test_the_judge_never_raises(layout, data):
    """Any one to three places of a manifest filled with junk, over facts that were true; the format may refuse it, the judge may not."""
    facts, found = data.draw(LAYOUTS[layout])
    for _ in range(data.draw(some.integers(1, 3))):
        *parents, last = data.draw(some.sampled_from(places(found)))
        part = found
        for key in parents:
            part = part[key]
        part[last] = copy.deepcopy(data.draw(JUNK))
    try:
        manifest = paper.stating(found)
    except ValidationError:
        return
    assert isinstance(JUDGES[layout](facts, manifest), Verdict)


HUGE = some.sampled_from([-1, 0, 1, 7, 10**12, 2**62, 2**63])


@settings(max_examples=trials(1_000, 100), deadline=None)
@given(release=bucketized(), code=some.integers(0, 9), count=HUGE, rows=HUGE, smallest=HUGE, size=HUGE)
def test_the_judge_of_buckets_never_raises_on_odd_tables(release, code, count, rows, smallest, size):
    facts, found = release
    entry = replace(
        facts.st.entries[0], code=min(code, len(values(found)) - 1), count=count, rows=rows, smallest=smallest
    )
    odd = replace(facts.st, entries=(entry, *facts.st.entries[1:]), sizes={size: rows}, largest=size)
    assert isinstance(judged(replace(facts, st=odd), found), Verdict)
    assert isinstance(judged(replace(facts, st=replace(odd, entries=())), found), Verdict)


@settings(max_examples=trials(1_000, 100), deadline=None)
@given(
    release=perturbed(),
    cells=some.fixed_dictionaries(
        {
            "size": some.none() | HUGE,
            "domain_size": some.none() | HUGE,
            "gamma": some.none() | some.floats(),
            "gamma_exact": some.sampled_from(["", "1", "x", "1e400", "0", "-2", "1/3", "4"]),
            "retention": some.none() | some.floats(),
        }
    ),
    keys=some.sets(some.sampled_from(["size", "domain_size", "gamma", "gamma_exact", "retention"]), min_size=1),
    count=some.none() | HUGE,
)
def test_the_judge_of_sub_tables_never_raises_on_odd_tables(release, cells, keys, count):
    facts, found = release
    line = facts.operators.lines[0] | {k: cells[k] for k in keys}
    odd = replace(facts.operators, lines=(line, *facts.operators.lines[1:]))
    assert isinstance(judged(replace(facts, operators=odd), found), Verdict)
    entries = (replace(facts.operators.entries[0], count=count), *facts.operators.entries[1:])
    assert isinstance(judged(replace(facts, operators=replace(odd, entries=entries)), found), Verdict)
    assert isinstance(judged(replace(facts, operators=replace(odd, lines=(), entries=())), found), Verdict)


def test_matches_are_held_to_what_they_promise():
    """Six persons with three values, each among three: l = 3 is kept; not by one who has a value twice; and not unseen when staged."""
    counts, fine = {"a": 2, "b": 2, "c": 2}, {"a": 1, "b": 1, "c": 1}
    assert judged(*paper.matched(counts, [fine] * 6, {"l": Fraction(3)})).passed
    broken = judged(*paper.matched(counts, [fine] * 5 + [{"a": 2, "b": 1}], {"l": Fraction(3)}))
    assert {"l-diversity", ACHIEVED} <= {check.name for check in broken.failures}
    facts, found = paper.matched(counts, [fine] * 6, {"l": Fraction(3)})
    unseen = replace(facts, graph=None)
    assert judged(unseen, found).passed  # after publication the graph is not at hand: what the gate recorded stands
    staged = generalized_judge.judge(unseen, paper.stating(found), None, True)
    assert ACHIEVED in {check.name for check in staged.failures}
    better = copy.deepcopy(found)
    better["guarantee"]["achieved"]["l"] = "2"
    assert {check.name for check in judged(unseen, better).failures} == {ACHIEVED, "achieved numbers for illness"}


def test_a_share_above_one_in_l_is_refused_however_many_dummies_there_are():
    """Counts 6 and 5 at l = 2: with a dummy there are six pairs, and every person is believed to be one of the six with 6/11."""
    facts, found = paper.matched({"a": 6, "b": 5}, [{"a": 1, "b": 1}] * 12, {"l": Fraction(2)})
    found["rows"]["dummy"] = 1
    found["utility"] = {"gcp": 1.5 / 12, "ail": 2.5 / 12}
    found["tables"]["microdata"]["rows"] = 12
    boxes = replace(facts.boxes, measured=replace(facts.boxes.measured, rows=12))
    facts = replace(facts, boxes=boxes, distributions=({"a": 6, "b": 6},))
    assert [check.name for check in judged(facts, found).failures] == ["illness can be l-diverse"]
