"""Two sensitive columns at once: thresholds, even buckets, the choice of sizes, against brute force on small tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.audit.bucketized.columns_judge import ACHIEVED, PRIVACY, VALUES
from anonlib.audit.bucketized.judge import judge
from anonlib.errors import OutOfTime, SpecError, Unsatisfiable
from anonlib.kernels.ranked.kind_deal import ByKind, KindDeal, stretches
from anonlib.privacy.column_pair import PairCounts, PairThresholds, pair_thresholds
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.solvers.buckets import pair_program, pair_setting
from anonlib.solvers.buckets.pair_kinds import even_kinds
from tests import paper
from tests.contract import trials as trials_on_paper
from tests.thorough import trials

FOLLOWS = "thresholds follow from the stated requirement"

NAMES = ("disease", "drug")
Combination = tuple[str, str]


def counted(table: dict[Combination, int]) -> PairCounts:
    texts = {f"{a}|{b}": n for (a, b), n in sorted(table.items())}
    combined = SensitiveCounts(tuple(texts), np.array(list(texts.values())))
    return PairCounts.of(combined, lambda text: text.split("|"))


tables = st.dictionaries(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz")), st.integers(1, 40), min_size=1, max_size=12
)


def test_a_combination_is_counted_with_both_of_its_values():
    counts = counted({("flu", "A"): 3, ("flu", "B"): 2, ("gout", "B"): 4})
    of_disease, of_drug = (dict(zip(c.values, c.counts.tolist(), strict=True)) for c in counts.columns)
    assert (of_disease, of_drug) == ({"flu": 5, "gout": 4}, {"A": 3, "B": 6})
    assert [(counts.columns[0].values[a], counts.columns[1].values[b]) for a, b in counts.codes.T] == [
        ("flu", "A"),
        ("flu", "B"),
        ("gout", "B"),
    ]


def test_a_null_is_a_value_of_its_column_and_the_last():
    combined = SensitiveCounts(("x", "y"), np.array([1, 2]))
    counts = PairCounts.of(combined, lambda text: (None, text))
    assert [c.values for c in counts.columns] == [(None,), ("x", "y")]


def test_the_column_that_is_too_frequent_is_named_and_a_combination_has_the_smaller_threshold():
    counts = counted({("flu", "A"): 3, ("flu", "B"): 2, ("gout", "B"): 1})
    with pytest.raises(Unsatisfiable, match=r"(?s)'disease'.*'flu'"):
        pair_thresholds(counts, [FPrivacy.l_diversity(2)] * 2, NAMES)
    asked = [FPrivacy.uniform("0.9"), FPrivacy.uniform("0.6", {"A": "0.7"})]
    thresholds = pair_thresholds(counts, asked, NAMES)
    assert thresholds.of_combinations(counts.codes) == (Fraction(7, 10), Fraction(6, 10), Fraction(6, 10))


@settings(max_examples=trials(1500, 40), deadline=None)
@given(table=tables, number=st.integers(1, 60))
def test_every_bucket_takes_the_floor_or_the_ceiling_of_every_value_of_either_column(table, number):
    counts = counted(table)
    records = counts.combined.counts
    kinds = even_kinds(records, counts.codes, number)
    placed = np.zeros_like(records)
    for kind in kinds:
        placed[kind.codes] += kind.counts * kind.number
        bucket = np.zeros_like(records)
        bucket[kind.codes] = kind.counts
        for k in (0, 1):
            groups = [counts.codes[k] == v for v in range(counts.columns[k].m)]
            assert all(spread(records[g].sum(), bucket[g].sum(), number) for g in groups)
        assert all(spread(x, y, number) for x, y in zip(records, bucket, strict=True))
        assert spread(records.sum(), kind.size, number)
    assert (placed == records).all()
    assert sum(kind.number for kind in kinds) == number
    assert len(kinds) <= counts.m + counts.columns[0].m + counts.columns[1].m + 1


def spread(records: int, held: int, buckets: int) -> bool:
    return records // buckets <= held <= -(-records // buckets)


def test_no_number_of_records_makes_more_kinds():
    counts = counted({(a, b): 10**8 + 7 * i for i, (a, b) in enumerate(product("abcdef", "uvwxyz"))})
    number = counts.n // 7
    kinds = even_kinds(counts.combined.counts, counts.codes, number)
    assert len(kinds) <= 36 + 12 + 1
    assert sum(kind.number for kind in kinds) == number
    assert sum(kind.size * kind.number for kind in kinds) == counts.n


small_tables = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), st.integers(1, 3), min_size=2, max_size=5
).filter(lambda table: sum(table.values()) <= 7)
shares = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(3, 4), Fraction(1)])


@settings(max_examples=trials(600, 25), deadline=None)
@given(table=small_tables, first=shares, second=shares, most=st.integers(1, 7))
def test_a_choice_is_valid_and_what_is_proven_of_it_holds_beside_all_ways_of_making_buckets(table, first, second, most):
    counts = counted(table)
    try:
        thresholds = pair_thresholds(counts, [FPrivacy.uniform(first), FPrivacy.uniform(second)], NAMES)
    except Unsatisfiable:
        return
    best = least_loss(counts, thresholds, most)
    try:
        chosen = pair_setting.solve(counts, thresholds, most, 5.0)
    except OutOfTime:
        return  # neither an answer nor a proof
    except Unsatisfiable:
        assert best is None
        return
    solution = chosen.solution
    assert best is not None
    assert solution.bound <= best <= solution.loss
    assert max(solution.setting.sizes) <= most
    for kind in chosen.kinds:
        assert kept(counts, thresholds, dict(zip(kind.codes.tolist(), kind.counts.tolist(), strict=True)))


def kept(counts: PairCounts, thresholds: PairThresholds, bucket: dict[int, int]) -> bool:
    """Whether every value of both columns is within its threshold, by the definition."""
    size = sum(bucket.values())
    for k in (0, 1):
        held: Counter[int] = Counter()
        for code, n in bucket.items():
            held[int(counts.codes[k, code])] += n
        if any(Fraction(n, size) > thresholds.columns[k].fractions[v] for v, n in held.items()):
            return False
    return True


def least_loss(counts: PairCounts, thresholds: PairThresholds, most: int) -> int | None:
    """The least loss of any buckets of at most `most` records, by trying all; None where there are none."""
    known: dict[tuple[int, ...], int | None] = {}

    def least(left: tuple[int, ...]) -> int | None:
        if not any(left):
            return 0
        if left not in known:
            losses = []
            for bucket in product(*(range(n + 1) for n in left)):
                first = next(i for i, n in enumerate(left) if n)
                if not bucket[first] or sum(bucket) > most:
                    continue  # the first record that is left goes into this bucket
                if kept(counts, thresholds, {i: n for i, n in enumerate(bucket) if n}):
                    rest = least(tuple(a - b for a, b in zip(left, bucket, strict=True)))
                    if rest is not None:
                        losses.append(rest + (sum(bucket) - 1) ** 2)
            known[left] = min(losses, default=None)
        return known[left]

    return least(tuple(counts.combined.counts.tolist()))


def test_rare_values_get_larger_buckets_where_that_is_better_than_one_size():
    counts = counted(dict.fromkeys(product("abcdefgh", "stuvwxyz"), 300) | {("rare", "s"): 6, ("rare", "t"): 6})
    asked = [FPrivacy.uniform("1/4", {"rare": "1/20"}), FPrivacy.uniform("1/4")]
    thresholds = pair_thresholds(counts, asked, NAMES)
    solution = pair_setting.solve(counts, thresholds, 50, 20.0).solution
    assert set(solution.setting.sizes) <= {4, 5, 20, 21}
    assert solution.gap < 0.05


def test_what_cannot_be_is_refused_with_a_size_that_can():
    table = {("a", "x"): 2, ("b", "x"): 2, ("c", "y"): 2, ("d", "z"): 2}
    counts = counted(table)
    thresholds = pair_thresholds(counts, [FPrivacy.uniform("1/4"), FPrivacy.uniform("1/2")], NAMES)
    with pytest.raises(Unsatisfiable, match="max_bucket_size 4 works"):
        pair_setting.solve(counts, thresholds, 3, 5.0)
    assert pair_setting.solve(counts, thresholds, 4, 5.0).solution.setting.sizes == (4,)


THINNED = {
    "a better answer": ("4/7", {("a", "w"): 3, ("a", "x"): 3, ("b", "w"): 2, ("b", "x"): 3}),
    "the only one": (
        "3/7",
        {("a", "w"): 3, ("a", "x"): 5, ("a", "y"): 5, ("b", "x"): 3, ("b", "y"): 2, ("b", "z"): 3}
        | {("c", "w"): 4, ("c", "x"): 1, ("c", "y"): 1, ("c", "z"): 4},
    ),
}
"""Tables of which sizes that are thinned out have what those that are left have not."""


@pytest.mark.parametrize("case", THINNED)
def test_where_sizes_are_thinned_out_nothing_false_is_proven_of_them(case, monkeypatch):
    threshold, table = THINNED[case]
    counts = counted(table)
    thresholds = pair_thresholds(counts, [FPrivacy.uniform(threshold)] * 2, NAMES)
    best = pair_setting.solve(counts, thresholds, 20, 5.0).solution
    assert best.status == "optimal"
    monkeypatch.setattr(pair_program, "MOST_VARIABLES", 3 * counts.m)
    solution = pair_setting.solve(counts, thresholds, 20, 5.0).solution
    assert solution.bound <= best.loss <= solution.loss
    assert (solution.status == "optimal") == (solution.loss == solution.bound)


def test_buckets_are_looked_for_where_the_relaxation_finds_no_time(monkeypatch):
    threshold, table = THINNED["the only one"]
    counts = counted(table)
    thresholds = pair_thresholds(counts, [FPrivacy.uniform(threshold)] * 2, NAMES)
    monkeypatch.setattr(pair_program, "linprog", lambda *_, **__: SimpleNamespace(x=None, status=1))
    monkeypatch.setattr(pair_setting, "_even", lambda _: None)
    solution = pair_setting.solve(counts, thresholds, 20, 5.0).solution
    assert (solution.bound, solution.status) == (0, "heuristic")


def test_a_refusal_looks_at_few_sizes_where_values_are_many(monkeypatch):
    monkeypatch.setattr(pair_setting, "_SEARCHED_CAPACITIES", 400)
    asked = []
    even_size = pair_setting.even_size
    monkeypatch.setattr(pair_setting, "even_size", lambda *of: asked.append(len(of[2]) * of[0].m * 2) or even_size(*of))
    counts = counted({(f"a{i}", f"b{i}"): 50 for i in range(10)} | {("rare", "also"): 1})
    asked_of = FPrivacy.uniform("1/5", {"rare": "1/500"})
    thresholds = pair_thresholds(counts, [asked_of, FPrivacy.uniform("1/5")], NAMES)
    with pytest.raises(Unsatisfiable, match="raise max_bucket_size or the thresholds"):
        pair_setting.solve(counts, thresholds, 5, 5.0)
    assert sum(asked) <= 400
    assert max(asked) <= 80


def test_more_combinations_than_buckets_are_made_of_are_refused(monkeypatch):
    monkeypatch.setattr(pair_setting, "MOST_COMBINATIONS", 3)
    counts = counted({("a", "x"): 2, ("b", "x"): 2, ("c", "y"): 2, ("d", "z"): 2})
    thresholds = pair_thresholds(counts, [FPrivacy.uniform("1/2")] * 2, NAMES)
    with pytest.raises(SpecError, match="4 combinations"):
        pair_setting.solve(counts, thresholds, 4, 5.0)


def test_each_record_goes_where_its_combination_is_listed_and_each_place_is_taken_once():
    counts = counted({(a, b): 20 + i for i, (a, b) in enumerate(product("abc", "xyz"))})
    kinds = even_kinds(counts.combined.counts, counts.codes, 31)
    kernel = ByKind(KindDeal.of(kinds, counts.m), bytes(32))
    code = np.repeat(np.arange(counts.m), counts.combined.counts)
    rank = np.concatenate([np.arange(n) for n in counts.combined.counts])
    listed = Counter(
        (bucket, c)
        for s in stretches(kinds)
        for bucket in range(s.start, s.stop)
        for c, n in zip(s.codes, s.counts, strict=True)
        for _ in range(n)
    )
    assert Counter(zip(kernel(code, rank).tolist(), code.tolist(), strict=True)) == listed
    other = ByKind(KindDeal.of(kinds, counts.m), b"another key".ljust(32, b"."))
    assert (kernel(code, rank) != other(code, rank)).any()


def test_nobody_can_believe_more_than_the_threshold_by_all_ways_in_which_a_release_comes_about():
    """Persons have known looks and unknown values: all tables of these counts are as likely, and so are all deals of one."""
    table = {("flu", "A"): 2, ("flu", "B"): 1, ("gout", "A"): 1, ("gout", "B"): 1, ("none", "C"): 1}
    counts = counted(table)
    thresholds = pair_thresholds(counts, [FPrivacy.uniform("2/3"), FPrivacy.uniform("2/3")], NAMES)
    kinds = pair_setting.solve(counts, thresholds, 6, 5.0).kinds
    assert len([k for k in kinds for _ in range(k.number)]) > 1
    places = [bucket for s in stretches(kinds) for bucket in range(s.start, s.stop) for _ in range(sum(s.counts))]
    held = [
        c
        for s in stretches(kinds)
        for _ in range(s.start, s.stop)
        for c, n in zip(s.codes, s.counts, strict=True)
        for _ in range(n)
    ]
    n = counts.n
    seen: dict[tuple[int, ...], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for order in permutations(range(n)):  # person order[i] takes place i: a table, and a deal of it
        values, buckets = [0] * n, [0] * n
        for place, person in enumerate(order):
            values[person], buckets[person] = held[place], places[place]
        seen[tuple(buckets)][tuple(values)] += 1
    worst = [Fraction(0), Fraction(0)]
    for possible in seen.values():
        total = sum(possible.values())
        for person, k in product(range(n), (0, 1)):
            belief: Counter[int] = Counter()
            for values, times in possible.items():
                belief[int(counts.codes[k, values[person]])] += times
            for value, times in belief.items():
                assert Fraction(times, total) <= thresholds.columns[k].fractions[value]
                worst[k] = max(worst[k], Fraction(times, total))
    assert min(worst) > 0


TAMPERED = {
    "a looser threshold": (lambda g: g["also"][0]["values"][0].update(threshold="1"), {VALUES}),
    "a column less": (lambda g: g["also"].pop(), {"columns", VALUES}),
    "no columns": (lambda g: g["also"].clear(), {"columns"}),
    "columns exchanged": (lambda g: g["also"].reverse(), {"columns", VALUES}),
    "a value less": (lambda g: g["also"][0]["values"].pop(), {VALUES}),
    "a record more": (lambda g: g["also"][1]["values"][0].update(count=99), {VALUES}),
    "other words": (lambda g: g["also"][1].update(words="Nothing."), {"guarantee in words for ward"}),
    "other words of both": (lambda g: g.update(words=g["also"][0]["words"]), {"guarantee in words"}),
    "another share": (lambda g: g["also"][1]["values"][1].update(achieved="0.01"), {ACHIEVED}),
    "a looser combination": (lambda g: g["values"][0].update(threshold="1"), {FOLLOWS}),
    "a combination of no values": (lambda g: g["values"][0].update(value="a|nothing"), {VALUES, FOLLOWS}),
    "a name of another column": (lambda g: g.update(sensitive="count"), {"columns", VALUES}),
    "another type": (lambda g: g.update(sensitive_type="string"), {"columns", VALUES}),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_manifest_that_says_something_else_is_refused(case):
    change, checks = TAMPERED[case]
    facts, stated = trials_on_paper.on_paper()
    assert judge(facts, paper.stating(stated)).passed
    change(stated["guarantee"])
    assert {check.name for check in judge(facts, paper.stating(stated)).failures} >= checks


def test_the_parameters_may_spell_a_column_as_the_spec_does_and_name_no_other():
    facts, stated = trials_on_paper.on_paper()
    columns = stated["method"]["parameters"]["privacy"]["columns"]
    columns["Ward"] = columns.pop("ward")
    assert judge(facts, paper.stating(stated)).passed
    for other in ("WARD", "room"):
        columns[other] = {"default": "1"}
        assert {check.name for check in judge(facts, paper.stating(stated)).failures} >= {VALUES, FOLLOWS}
        del columns[other]


def test_values_that_were_not_counted_are_no_promise_kept():
    facts, stated = trials_on_paper.on_paper()
    failed = {check.name for check in judge(replace(facts, columns_of_two=()), paper.stating(stated)).failures}
    assert PRIVACY in failed
    one_short = (facts.columns_of_two[0][1:], facts.columns_of_two[1])
    failed = {check.name for check in judge(replace(facts, columns_of_two=one_short), paper.stating(stated)).failures}
    assert {PRIVACY, ACHIEVED} <= failed
