"""The audit of generalized releases: honest ones pass, and every kind of damage is found by the check that is there for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from anonlib.audit.generalized import evidence, promises
from anonlib.audit.generalized.boxes import _Measure
from anonlib.audit.generalized.facts import BoxFacts
from anonlib.audit.generalized.fingerprint import PIECES, BoxFingerprint, summed
from anonlib.audit.verdict import Measured
from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.errors import SpecError
from anonlib.queries.boxes import BoxReader
from anonlib.release import generalized
from anonlib.release.manifest import MethodPart
from tests import planted_generalized as planted
from tests.thorough import nightly, some

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def honest(spark):
    return planted.classes().completed(spark)


@pytest.fixture(scope="module")
def matched(spark):
    return planted.graph().completed(spark)


def failures(verdict) -> set[str]:
    return {check.name for check in verdict.failures}


def edited(release, *rows: int, **cells):
    """The release with cells of some rows changed."""
    names, changed = list(release.columns), list(release.rows)
    for row in rows:
        changed[row] = tuple(cells.get(n, v) for n, v in zip(names, changed[row], strict=True))
    return replace(release, rows=changed)


def stating(release, **changes):
    return replace(release, manifest=release.manifest.model_copy(update=changes))


def test_an_honest_release_with_classes(spark, honest):
    verdict = honest.audited(spark)
    assert verdict.passed, "\n".join(map(str, verdict.failures))
    assert len(verdict.checks) > 20
    part = honest.manifest.guarantee
    assert part.achieved == {
        "k": "6", "distinct_l": "3", "frequency_l": "3", "beta": "0", "enhanced_beta": "0", "t": "0"
    }  # fmt: skip
    assert {v.value: v.achieved for v in part.values} == dict.fromkeys(planted.ILLNESS, "1/3")
    # six neighbours have the four incomes twice, twice, once and once: prefix differences 1/12, 2/12, 1/12 over m - 1 = 3
    assert part.also[0].achieved == {"t": "1/9"}
    utility = honest.manifest.utility
    assert (utility["classes"], utility["discernibility"]) == (8, 8 * 36)
    rows = honest.rows
    ncp = [(r[1] - r[0]) / 47 + (len(r[2]) - 1) / 4 + (len(r[4]) - 1) / 3 for r in rows]
    assert utility["gcp"] == pytest.approx(sum(ncp) / len(rows) / 3)
    under = {"low": 2, "high": 2, "any": 5}
    ail = [(r[1] - r[0]) / 47 + under.get(r[3], 0) / 5 + (len(r[4]) / 4 if len(r[4]) > 1 else 0) for r in rows]
    assert utility["ail"] == pytest.approx(sum(ail) / len(rows) / 3)


DAMAGE = {
    "a row dropped": (
        lambda r: replace(r, rows=r.rows[1:]),
        {"published rows", "distribution of illness", "class sizes", "k-anonymity"},
    ),
    "a row doubled": (lambda r: replace(r, rows=[*r.rows, r.rows[0]]), {"published rows", "distribution of illness"}),
    "two values swapped between classes": (
        lambda r: edited(edited(r, 0, illness="cold"), 7, illness="asthma"),
        {"frequency l-diversity", "achieved shares of illness", "original: records in each class's box"},
    ),
    "a box shrunk in one row": (lambda r: edited(r, 3, age_max=r.rows[3][1] - 1), {"one box per class", "utility"}),
    "a box shrunk in a class": (
        lambda r: edited(r, *range(12, 18), age_max=r.rows[12][1] - 1),
        {"original: records in each class's box", "original: records covered by boxes", "utility"},
    ),
}


@pytest.mark.parametrize("damage", some(DAMAGE, "two values swapped between classes"))
def test_damage_to_classes(spark, honest, damage):
    act, expected = DAMAGE[damage]
    found = failures(act(honest).audited(spark, original=any(name.startswith("original") for name in expected)))
    assert expected | {"contents of microdata"} <= found, found


def test_much_damage_at_once(spark, honest):
    """Rows that are no rows of the layout are counted, each by its own check, and none of them raises."""
    r = honest
    r = edited(r, 0, age_min=r.rows[0][1] + 1)  # ends exchanged
    r = edited(r, 1, code=r.rows[1][2] * 2)  # a value twice in a set
    r = edited(r, 2, city=[])
    r = edited(r, 3, code=None, age_max=None)
    r = edited(r, 10, code=[3, 4])  # no leaf
    r = edited(r, 11, age_max=68)  # outside the domain
    r = edited(r, 12, code_label="seven")
    r = edited(r, 20, illness="plague")
    r = edited(r, 30, 31, 32, ec_id=None)
    found = {check.name: check.achieved for check in r.audited(spark).failures}
    assert found["intervals and sets"] == "5 malformed, 3 rows without a class"
    assert found["labels"].startswith("3 wrong")  # nothing to label, no leaf, another label
    assert found["domains"] == "3 faults"
    assert found["distribution of illness"].endswith("1 unknown values")
    assert {"one box per class", "k-anonymity", "class sizes", "utility", "contents of microdata"} <= found.keys()


def counting_one_more(part):
    count = part.values[0].model_copy(update={"count": part.values[0].count + 1})
    return {"values": [count, *part.values[1:]]}


def other_words(part):
    assert "at least 5" in part.words
    return {"words": part.words.replace("at least 5", "at least 6")}


def along(*rows):
    return lambda _: {"distance": "hierarchical", "hierarchy": [list(row) for row in rows]}


NO_DISTANCE = {"guarantee for illness", "guarantee in words"}
GUARANTEES = {
    "a count": (counting_one_more, {"values of illness add up"}),
    "a promise that nobody knows": (lambda _: {"asked": {"m": "2"}}, NO_DISTANCE | {"the manifest's fields"}),
    "a distance that nobody knows": (lambda _: {"distance": "round"}, NO_DISTANCE),
    "a ragged hierarchy": (along(("asthma", "x", "any"), ("cold", "any"), ("flu", "any")), NO_DISTANCE),
    "a hierarchy without a root": (along(("asthma", "x"), ("cold", "y"), ("flu", "y")), NO_DISTANCE),
    "other words": (other_words, {"guarantee in words"}),
}


@pytest.mark.parametrize("kind", some(GUARANTEES, "a promise that nobody knows", "a ragged hierarchy"))
def test_a_guarantee_that_says_other_things(spark, honest, kind):
    change, expected = GUARANTEES[kind]
    guarantee = honest.manifest.guarantee
    changed = guarantee.model_copy(update=change(guarantee))
    assert failures(stating(honest, guarantee=changed).audited(spark)) == expected


@nightly  # of buckets and sub-tables at every change
def test_a_manifest_that_says_what_nobody_asks(spark, honest):
    hidden = honest.manifest.solver.model_copy(update={"details": {"Ann": "flu"}})
    assert failures(stating(honest, solver=hidden).audited(spark)) == {"the manifest's fields"}


def test_a_manifest_that_says_other_things(spark, honest):
    guarantee = honest.manifest.guarantee
    (count, *_) = counting_one_more(guarantee)["values"]
    less = guarantee.values[1].model_copy(update={"count": guarantee.values[1].count - 1})
    moved = guarantee.model_copy(update={"values": [count, less, *guarantee.values[2:]]})
    wide = [planted.PARTS[0].model_copy(update={"high": "670"}), *planted.PARTS[1:]]
    found = failures(stating(honest, guarantee=moved, quasi_identifiers=wide).audited(spark))
    assert {"distribution of illness", "original: distribution of the sensitive column", "domains", "utility"} <= found
    assert "original: domains of the quasi-identifiers" in found
    named = stating(
        honest, quasi_identifiers=[planted.PARTS[0].model_copy(update={"name": "aged"}), *planted.PARTS[1:]]
    )
    assert failures(named.audited(spark)) == {"columns"}
    worded = [planted.PARTS[0].model_copy(update={"type": "string"}), *planted.PARTS[1:]]
    with pytest.raises(SpecError, match="'age' is of type string"):
        generalized.quasi_identifiers(stating(honest, quasi_identifiers=worded).manifest)


@nightly
def test_more_cells_than_records(spark):
    """Every class has each value once, and a record more stands in a class of its own: a verdict, not an error."""
    release = planted.classes(3)
    added = replace(release, rows=[*release.rows, (*release.rows[0][:-1], 99)])
    found = {check.name: check for check in added.audited(spark, staged=True).checks}
    assert not found["published rows"].passed
    assert found["original: records in each class's box"].achieved == "0 too few (all classes)"


def test_promises_stand_for_the_parameters(honest):
    guarantee, manifest = honest.manifest.guarantee, honest.manifest
    assert promises.follow_from_parameters(manifest, guarantee).passed
    assert promises.follow_from_parameters(manifest, guarantee.also[0]).passed
    for asked in ({**guarantee.asked, "t": "0.9"}, {"k": "6"}, {**guarantee.asked, "frequency_l": "2"}):
        changed = guarantee.model_copy(update={"asked": asked})
        said = manifest.model_copy(update={"guarantee": changed})
        assert not promises.follow_from_parameters(said, changed).passed, asked
    # under the names that Mondrian's parameters have
    named = manifest.model_copy(update={"method": MethodPart(name="mondrian", parameters=dict(guarantee.asked))})
    assert promises.follow_from_parameters(named, guarantee).passed
    for left_out in ("k", "distinct_l", "frequency_l", "enhanced_beta", "t"):
        fewer = guarantee.model_copy(update={"asked": {n: v for n, v in guarantee.asked.items() if n != left_out}})
        said = named.model_copy(update={"guarantee": fewer})
        assert not promises.follow_from_parameters(said, fewer).passed, left_out


def test_promises_are_kept_or_not_to_the_last_record():
    """25 records, values 6, 7 and 12: shares of a class beside what each promise allows."""
    part = planted.guarantee("illness", "string", ["a"] * 6 + ["b"] * 7 + ["d"] * 12, {})
    shares = {0: (Fraction(1, 3), "class 1"), 1: (Fraction(1, 3), "class 1"), 2: (Fraction(1, 2), "class 2")}
    found = promises.WorstCases(shares, (2, "class 2"), 5, (Fraction(1, 5), "class 2"))
    cases = {
        ("k", "5"): True, ("k", "6"): False, ("distinct_l", "2"): True, ("distinct_l", "3"): False,
        ("frequency_l", "2"): True, ("frequency_l", "3"): False, ("l", "2"): True, ("l", "3"): False,
        ("t", "0.2"): True, ("t", "0.19999999999999999"): False,
        ("beta", "7/18"): True, ("beta", "0.3888888888888888888"): False,  # (1/3) / (6/25) - 1 = 7/18
        ("enhanced_beta", "7/18"): True, ("enhanced_beta", "1/3"): False,
    }  # fmt: skip
    for (name, number), passes in cases.items():
        (check,), numbers = promises.check_promises(part.model_copy(update={"asked": {name: number}}), found, True)
        assert check.passed is passes, (name, number)
        assert promises.numbers_as_stated(part.model_copy(update={"achieved": numbers}), numbers, False).passed
        assert not promises.numbers_as_stated(part.model_copy(update={"achieved": {name: "9"}}), numbers, True).passed
    # a frequent value: -ln(12/25) = 0.734 caps the enhanced bound below what beta = 3 would allow
    often = promises.WorstCases({2: (Fraction(9, 10), "class 2")}, (2, "class 2"))
    for name, passes in (("beta", True), ("enhanced_beta", False)):
        (check,), _ = promises.check_promises(part.model_copy(update={"asked": {name: "3"}}), often, True)
        assert check.passed is passes


def test_an_honest_release_of_a_graph(spark, matched):
    assert matched.manifest.rows.dummy > 0
    assert matched.manifest.guarantee.achieved == {"l": "3"}
    alone = replace(matched, evidence=None).audited(spark)
    assert alone.passed, "\n".join(map(str, alone.failures))
    names = {check.name for check in matched.audited(spark, original=False).checks}
    assert names >= {"graph of matches", "records of the graph", "boxes", "l-diversity"}
    assert "l-diversity" not in {check.name for check in alone.checks}  # the graph is not published


def test_damage_to_rows_of_a_graph(spark, matched):
    damaged = edited(matched, 3, age_max=matched.rows[3][1] - 1)
    other = next(i for i, row in enumerate(matched.rows) if row[-1] != matched.rows[9][-1])
    swapped = edited(edited(matched, 9, illness=matched.rows[other][-1]), other, illness=matched.rows[9][-1])
    for release, expected in ((damaged, {"boxes", "utility"}), (swapped, {"boxes"})):
        found = failures(release.audited(spark, original=False))
        assert expected | {"contents of microdata"} <= found, found


def test_damage_to_the_records_of_a_graph(spark, matched):
    """A record that is not the original's, and a dummy that is passed for one."""
    dummy = next(i for i, row in enumerate(matched.evidence) if row[6])
    changed = in_graph(in_graph(matched, 2, q0=matched.evidence[2][2] + 1), dummy, dummy=False)
    found = {check.name: check.achieved for check in changed.audited(spark).failures}
    assert found["original: records of the graph"] == "1 of the original's are not there, 2 are not the original's"
    assert {"records of the graph", "boxes"} <= found.keys()


COLUMNS = [
    part.strip().split(" ")[0] for part in planted.Planted.__dataclass_fields__["evidence_schema"].default.split(",")
]


def in_graph(release, row: int, **cells):
    changed = tuple(cells.get(n, v) for n, v in zip(COLUMNS, release.evidence[row], strict=True))
    return replace(release, evidence=[*release.evidence[:row], changed, *release.evidence[row + 1 :]])


DOMAINS = [
    NumericDomain("age", 20.0, 67.0),
    CategoricalDomain("code", planted.CODES),
    CategoricalDomain("city", planted.CITIES),
]
HASH = BoxFingerprint(7)


def read(rows: list[dict[str, object]], attributes: int) -> evidence.Graph:
    """Rows of evidence of one partition as a task gets them: in Arrow, in two batches, in any order."""
    table = pa.Table.from_pylist(rows)
    order = np.random.default_rng(1).permutation(len(rows))
    return evidence.Graph.read(0, pa.concat_tables([table.take(order[:5]), table.take(order[5:])]), attributes)


def told(release) -> dict[str, int]:
    """What the partition of the release's first record tells: {fault: 1}, and "fewest" and the largest share's denominator."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in release.evidence if row[0] == 0]
    told = evidence.facts_of(read(rows, 3), DOMAINS, HASH)
    facts = [dict(zip(told, row, strict=True)) for row in zip(*told.values(), strict=True)]
    found = Counter(fact["kind"] for fact in facts if fact["kind"] in evidence.FAULTS)
    most = max((Fraction(f["top"], f["bottom"]) for f in facts if f["kind"] == "share"), default=0)
    return dict(found) | {"share": most, "fewest": sum(f["bottom"] for f in facts if f["kind"] == "fewest")}


def test_faults_of_a_graph():
    """No Spark: the facts of one partition, as its task finds them."""
    release = planted.graph()
    first = release.evidence
    assert told(release) == {"share": Fraction(1, 3), "fewest": 3}
    matches = [list(row[7]) for row in first]
    assert "regular" in told(in_graph(release, 2, matches=matches[2][:2]))
    assert "regular" in told(in_graph(release, 2, matches=None))
    outside = next(i for i in range(12) if i not in matches[2])
    assert told(in_graph(release, 2, matches=[*[m for m in matches[2] if m != 2], outside])).keys() >= {
        "matches",
        "regular",
    }
    assert "matches" in told(in_graph(release, 2, matches=[2, 2, 2]))
    assert "matches" in told(in_graph(release, 2, matches=[2, -1, 5]))
    assert "assigned" in told(in_graph(release, 2, assigned=outside))
    twice = first[matches[2][0]][8] if first[matches[2][0]][8] != first[2][8] else first[matches[2][1]][8]
    assert "assigned" in told(in_graph(release, 2, assigned=twice))
    assert "records" in told(in_graph(release, 2, record=3))
    for name, fault in (("record", "records"), ("assigned", "assigned")):
        assert fault in told(in_graph(release, 2, **{name: None}))
    assert told(in_graph(release, 2, dummy=None)) == told(release)
    other = told(in_graph(release, 2, s0=(first[2][5] + 1) % 3))
    assert (other["share"], other["fewest"]) == (Fraction(2, 3), 2)
    dummy = next(i for i, row in enumerate(first) if row[6])
    assert "dummies" in told(in_graph(release, dummy, q0=99))


def test_a_graph_of_one_column_tells_nothing_of_another():
    """No Spark: a manifest that promises of a second column what the evidence does not have."""
    release = planted.graph()
    income = planted.guarantee("income", "int", [p[4] for p in release.original], {"l": "3"})
    promise = release.manifest.guarantee.model_copy(update={"also": [income]})
    one = evidence.ColumnFacts({}, {0: (Fraction(1, 3), 0)}, 3)
    graph = evidence.GraphFacts({}, (one,), None, 48, 0, (1, 2))
    published = BoxFacts(Measured(48, ""), {}, (), 0, (1, 2))
    two = release.manifest.model_copy(update={"guarantee": promise})
    assert evidence.same_boxes(published, graph, release.manifest).passed
    assert not evidence.same_boxes(published, graph, two).passed
    assert evidence.same_boxes(published, graph, two).achieved == "no codes of 'income' (its column s1) in the evidence"
    assert evidence.same_boxes(published, replace(graph, columns=(one, one)), two).passed
    assert not evidence.same_boxes(published, replace(graph, columns=(one, one)), release.manifest).passed
    three = release.manifest.model_copy(update={"guarantee": promise.model_copy(update={"also": [income, income]})})
    for columns, known in ((("s0", "s2"), 1), (("s0", "s1"), 2), (("s0", "s1", "s2"), 3)):
        assert len(evidence._parts(SimpleNamespace(columns=columns), three)) == known


def test_each_column_of_a_graph_is_told_by_itself():
    """No Spark: codes of a second column that are alike where those of the first differ."""
    release = planted.graph()
    rows = [dict(zip(COLUMNS, row, strict=True)) | {"s1": row[1] % 2} for row in release.evidence if row[0] == 0]
    told = evidence.facts_of(evidence.Graph.read(0, pa.Table.from_pylist(rows), 3, 2), DOMAINS, HASH)
    found = evidence._graph_facts(
        [
            {"kind": kind, "key": key, "n": n, "best": {"top": top, "bottom": bottom, "partition": 0}}
            for kind, key, n, top, bottom in zip(*(told[c] for c in ("kind", "key", "n", "top", "bottom")), strict=True)
        ],
        2,
    )
    first, second = found.columns
    assert (first.fewest, {share for share, _ in first.shares.values()}) == (3, {Fraction(1, 3)})
    own = [row["s1"] for row in rows]
    alike = [[own[j] for j in row["matches"]].count(own[i]) for i, row in enumerate(rows)]
    assert max(share for share, _ in second.shares.values()) == Fraction(max(max(alike), 2), 3)
    assert second.fewest == (1 if max(alike) == 3 else 2)
    plain = evidence.facts_of(read(rows, 3), DOMAINS, HASH)  # one column: the same of the first
    assert {k for k in plain["kind"] if "column" in k} == set()


def test_boxes_of_a_graph_are_tight():
    """By their fingerprint: that of the boxes that plain Python finds, read as they are published, and of no others."""
    rng = np.random.default_rng(0)
    p, mu = 30, 4
    graph = np.stack([(np.arange(p) + 7 * r) % p for r in range(mu)], axis=1)
    age, city, own = rng.integers(20, 68, p).tolist(), rng.integers(0, 4, p).tolist(), rng.integers(0, 3, p).tolist()
    rows = [
        {"record": i, "q0": age[i], "q1": city[i], "s0": own[i], "dummy": False, "matches": graph[i].tolist(), "assigned": int(graph[i, 2])}
        for i in range(p)
    ]  # fmt: skip
    domains = [DOMAINS[0], DOMAINS[2]]
    found = summed(evidence.boxes_of(read(rows, 2), domains, HASH))
    boxes = [
        {
            "q0_lo": min(age[j] for j in graph[i]),
            "q0_hi": max(age[j] for j in graph[i]),
            "q1_set": [planted.CITIES[c] for c in {city[j] for j in graph[i]}],
            "s0": planted.ILLNESS[own[graph[i, 2]]],
        }
        for i in range(p)
    ]
    assert (fingerprint(boxes) == found).all()
    assert (fingerprint(boxes[::-1]) == found).all()
    other = next(i for i in range(p) if boxes[i]["s0"] != boxes[9]["s0"])
    cities = set(planted.CITIES)
    for i, changed in (
        (3, {"q0_lo": boxes[3]["q0_lo"] - 1}),
        (3, {"q0_lo": None}),
        (4, {"q0_lo": boxes[4]["q0_hi"], "q0_hi": boxes[4]["q0_lo"]}),
        (5, {"q1_set": boxes[5]["q1_set"][1:]}),
        (5, {"q1_set": boxes[5]["q1_set"] * 2}),
        (6, {"q1_set": sorted(cities - set(boxes[6]["q1_set"]), key=str) or ["Rome"]}),
        (7, {"q1_set": None}),
        (9, {"s0": boxes[other]["s0"]}),
        (9, {"s0": "plague"}),
    ):
        assert (fingerprint([*boxes[:i], boxes[i] | changed, *boxes[i + 1 :]]) != found).any(), (i, changed)
    assert (fingerprint([*boxes, boxes[0]]) != found).any()
    assert (summed(evidence.boxes_of(read(rows, 2), domains, BoxFingerprint(8))) != found).any()


def fingerprint(boxes: list[dict[str, object]]) -> np.ndarray:
    """Of published rows, as the scan of the boxes sees them."""
    parts = (planted.PARTS[0], planted.PARTS[2])
    kernel = _Measure(BoxReader((DOMAINS[0], DOMAINS[2])), parts, (planted.ILLNESS,), HASH)
    batch = pa.RecordBatch.from_pylist(boxes)
    return kernel([batch.slice(0, 11), batch.slice(11)])[-PIECES:]
