"""Thresholds on nodes of the sensitive values' hierarchy: solved exactly, dealt exactly, with companions from other branches."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from anonlib.audit import manifest as audited
from anonlib.audit import nodes as hierarchy_nodes
from anonlib.errors import AnonlibError, OutOfTime, SpecError, Unsatisfiable
from anonlib.hierarchy import parse_hierarchy
from anonlib.kernels.ranked.round_robin import Deal, RoundRobin, composition
from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, Thresholds, guarantee_words
from anonlib.privacy.value_tree import value_tree
from anonlib.release.manifest import GuaranteePart, NodePart, ValuePart
from anonlib.solvers.buckets import bucket_milp, choose, companions
from anonlib.solvers.buckets.transport import transport
from anonlib.solvers.buckets.tree_transport import tree_transport
from tests.oracles import node_buckets as oracle
from tests.thorough import trials

SHARES = [Fraction(s) for s in ("1/4", "0.29", "1/3", "0.34", "2/5", "1/2", "1/2", "3/5", "2/3", "1", "1")]
ILLNESSES = parse_hierarchy(
    "angina,ischaemic,circulatory,any\n"
    "infarct,ischaemic,circulatory,any\n"
    "failure,failure,circulatory,any\n"
    "flu,infection,respiratory,any\n"
    "asthma,chronic,respiratory,any\n"
    "gout,gout,gout,any\n"
)


def counted(**counts: int) -> SensitiveCounts:
    return SensitiveCounts(tuple(counts), np.array(list(counts.values()), dtype=np.int64))


@st.composite
def trees(draw, most: int, values: int):
    """(counts, thresholds with nodes, largest bucket): values under nodes of two levels; thresholds loose, or only just above a share."""
    m = draw(st.integers(2, values))
    counts = [draw(st.integers(1, max(1, most // 3))) for _ in range(m)]
    while sum(counts) > most and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    rows = []
    for i in range(m):
        low = draw(st.integers(0, 2))
        rows.append(f"v{i},low{low},high{low // 2},any")
    order = draw(st.permutations(range(m)))
    table = SensitiveCounts(tuple(f"v{i}" for i in order), np.array([counts[i] for i in order], dtype=np.int64))
    n = table.n
    tree = value_tree(table.values, parse_hierarchy("\n".join(rows)))
    held = tree.records(table.counts).tolist()
    own = tuple(max(Fraction(int(o), n), draw(st.sampled_from(SHARES))) for o in table.counts)
    nodes = tuple(draw(st.none() | st.sampled_from([max(Fraction(k, n), s) for s in SHARES])) for k in held)
    return table, Thresholds(own, tree, nodes), draw(st.integers(1, n))


def members(thresholds: Thresholds) -> oracle.Members:
    assert thresholds.tree is not None
    held = thresholds.tree.members()
    return [(frozenset(np.flatnonzero(held[k]).tolist()), f) for k, f in enumerate(thresholds.nodes)]


def buckets_of(deal: Deal, m: int) -> list[tuple[int, ...]]:
    """What each bucket holds."""
    listed = []
    for stretch in composition(deal):
        held = [0] * m
        for code, n in zip(stretch.codes, stretch.counts, strict=True):
            held[code] = n
        listed += [tuple(held)] * (stretch.stop - stretch.start)
    return listed


def solved(table: SensitiveCounts, thresholds: Thresholds, largest: int):
    try:
        return choose.solve(table, thresholds, "optimal", largest, 20)
    except Unsatisfiable:
        return None


@pytest.mark.long
@settings(max_examples=trials(1500, 120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees(most=9, values=5))
def test_the_solver_is_exact(drawn):
    table, thresholds, largest = drawn
    least = oracle.least_loss(table.counts.tolist(), thresholds.fractions, members(thresholds), largest)
    solution = solved(table, thresholds, largest)
    assert (None if solution is None else solution.loss) == least
    if solution is not None:
        assert (solution.status, solution.gap) == ("optimal", 0.0)
        better = companions.apart(table, thresholds, solution)
        assert better.setting == solution.setting
        sizes = [s for s, b in zip(better.setting.sizes, better.setting.numbers, strict=True) for _ in range(b)]
        fewest = oracle.fewest_told(table.counts.tolist(), thresholds.fractions, members(thresholds), sizes)
        assert companions.telling(thresholds.tree, better.setting, better.partition).sum() == fewest


@pytest.mark.long
@settings(max_examples=trials(600, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees(most=60, values=9), st.booleans())
def test_what_is_dealt_keeps_every_threshold(drawn, mix):
    table, thresholds, largest = drawn
    solution = solved(table, thresholds, largest)
    if solution is None:
        assert solved(table, thresholds, table.n) is not None, "one bucket of the whole table keeps what Lemma 1 allows"
        return
    solution = companions.apart(table, thresholds, solution)
    deal = Deal.of(solution.setting, solution.partition, thresholds.tree.paths)
    telling = companions.telling(thresholds.tree, solution.setting, solution.partition).sum()
    assert telling == sum(oracle.told(bucket, members(thresholds)) for bucket in buckets_of(deal, table.m))
    if mix:
        deal = deal.mixed(3)
    listed = buckets_of(deal, table.m)
    assert all(oracle.keeps(bucket, thresholds.fractions, members(thresholds)) for bucket in listed)
    assert np.array(listed).sum(axis=0).tolist() == table.counts.tolist()
    code = np.repeat(np.arange(table.m), table.counts)
    rank = np.concatenate([np.arange(n, dtype=np.int64) for n in table.counts.tolist()])
    of = RoundRobin(deal, bytes(32))(code, rank)
    dealt = np.zeros((len(listed), table.m), dtype=np.int64)
    np.add.at(dealt, (of, code), 1)
    assert dealt.tolist() == [list(bucket) for bucket in listed]


@settings(max_examples=trials(1000, 100), deadline=None)
@given(st.data())
def test_the_flow_through_a_tree_without_nodes_is_the_other_one(data):
    G, q = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    supply = np.array(data.draw(st.lists(st.integers(0, 9), min_size=G, max_size=G)))
    capacity = np.array(data.draw(st.lists(st.integers(0, 6), min_size=G * q, max_size=G * q))).reshape(G, q)
    cuts = sorted(data.draw(st.lists(st.integers(0, int(supply.sum())), min_size=q - 1, max_size=q - 1)))
    demand = np.diff([0, *cuts, int(supply.sum())])
    none = np.full(G, -1), np.zeros(0, dtype=np.int64), np.zeros((0, q), dtype=np.int64)
    one, other = transport(supply, capacity, demand), tree_transport(supply, capacity, demand, *none)
    assert (one.flow is None) == (other.flow is None)
    if other.flow is not None:
        assert (other.flow >= 0).all()
        assert (other.flow <= capacity).all()
        assert (other.flow.sum(axis=1) == supply).all()
        assert (other.flow.sum(axis=0) == demand).all()
    for crowd in other.crowded:
        assert np.minimum(demand, capacity[crowd].sum(axis=0)).sum() < supply[crowd].sum()


def test_a_node_is_refused_as_a_value_is():
    table = counted(angina=3, infarct=3, flu=4)
    with pytest.raises(Unsatisfiable, match=r"'circulatory': 6 of 10 records .* smallest that works 0.6"):
        FPrivacy.uniform("2/3", {"circulatory": "1/2"}).thresholds(table, None, ILLNESSES)
    with pytest.raises(SpecError, match="'any' stands above all values"):
        FPrivacy.uniform("2/3", {"any": "1/2"}).thresholds(table, None, ILLNESSES)
    with pytest.raises(SpecError, match="'gut' does not occur in the sensitive column and is not in its hierarchy"):
        FPrivacy.uniform("2/3", {"gut": "1/2"}).thresholds(table, None, ILLNESSES)
    with pytest.raises(SpecError, match="'cold' is not a leaf"):
        FPrivacy.uniform("2/3").thresholds(counted(cold=3, flu=4), None, ILLNESSES)
    halves = FPrivacy.uniform("1/2", {"circulatory": "1/2"}).thresholds(counted(angina=2, flu=2), None, ILLNESSES)
    with pytest.raises(SpecError, match="two_size fills buckets by sums over values"):
        choose.solve(counted(angina=2, flu=2), halves, "two_size", 4)
    with pytest.raises(
        Unsatisfiable, match=r"the threshold 0\.5 of 'circulatory' needs a bucket of at least 2 records"
    ):
        choose.solve(
            counted(angina=2, flu=2),
            FPrivacy.uniform("1", {"circulatory": "1/2"}).thresholds(counted(angina=2, flu=2), None, ILLNESSES),
            "optimal",
            1,
            5,
        )


def test_a_solver_that_was_slow_is_told_from_a_table_that_is_too_small(monkeypatch):
    table = counted(angina=2, flu=2)
    halves = FPrivacy.uniform("1/2", {"circulatory": "1/2"}).thresholds(table, None, ILLNESSES)
    assert choose.possible(table, halves, 4, deadline=inf) is True
    assert choose.possible(table, halves, 1, deadline=inf) is False
    assert choose.possible(table, halves, 4, deadline=0.0) is None

    def slow(table, time_limit):
        raise TimeoutError("nothing was found")

    monkeypatch.setattr(bucket_milp, "solve", slow)
    with pytest.raises(OutOfTime, match="nothing was found; raise time_limit"):
        choose.solve(table, halves, "optimal", 4, 5)


def test_only_nodes_above_two_values_or_named_are_listed():
    table = counted(angina=2, infarct=2, flu=2, gout=1)
    tree = value_tree(table.values, ILLNESSES)
    assert tree.labels == ("ischaemic", "circulatory")
    assert (tree.parents.tolist(), tree.above.tolist()) == ([1, -1], [0, 0, -1, -1])
    assert tree.records(table.counts).tolist() == [4, 4]
    named = value_tree(table.values, ILLNESSES, {"respiratory"})
    assert (named.labels, named.above.tolist()) == (("ischaemic", "circulatory", "respiratory"), [0, 0, 2, -1])
    assert named.only([1, 2])[1].tolist() == [0, 0, 1, -1]
    missing = value_tree((None, "flu", "asthma"), ILLNESSES)
    assert (missing.labels, missing.above.tolist()) == (("respiratory",), [-1, 0, 0])


def test_companions_come_from_other_branches_where_they_can():
    """Two frequent values of one branch and two of others, all of which may share buckets of two: no bucket need hold one branch alone."""
    table = counted(angina=30, infarct=30, flu=30, gout=30)
    thresholds = FPrivacy.uniform("1/2").thresholds(table, None, ILLNESSES)
    solution = choose.solve(table, thresholds, "optimal", 10, 5)
    assert str(solution.setting) == "60 x 2"
    deal = Deal.of(solution.setting, solution.partition, thresholds.tree.paths)
    nodes = members(thresholds)
    assert sum(oracle.told(bucket, nodes) for bucket in buckets_of(deal, 4)) == 0


def apart_from_a_poor_partition():
    """(solution, what `companions.apart` makes of it): all of one branch in the six buckets of two, which tell both its nodes."""
    table = counted(angina=6, infarct=6, flu=6, gout=6)
    thresholds = FPrivacy.uniform("1").thresholds(table, None, ILLNESSES)
    setting = BucketSetting((2, 3), (6, 4))
    partition = np.array([[6, 0], [6, 0], [0, 6], [0, 6]], dtype=np.int64)
    solution = BucketSolution(setting, partition, "optimal", setting.loss, "optimal", 0.0)
    tree = thresholds.tree
    better = companions.apart(table, thresholds, solution)
    told = [int(companions.telling(tree, setting, each.partition).sum()) for each in (solution, better)]
    return solution, better, told


def test_companions_are_moved_on_a_proof_alone_and_by_no_clock(monkeypatch):
    given = []

    def limited(*arguments, options, **named):
        given.append(options)
        answer = linprog(*arguments, options=options, **named)
        answer.status = stated or answer.status
        return answer

    monkeypatch.setattr(companions, "linprog", limited)
    stated = 0
    assert apart_from_a_poor_partition()[2] == [12, 0]
    stated = 1  # out of iterations, with a flow that would do
    solution, same, _ = apart_from_a_poor_partition()
    assert same is solution
    assert given == [{"maxiter": companions._MOST_ITERATIONS}] * 2


def test_a_name_of_the_hierarchy_may_be_absent_from_a_table():
    """A leaf, and a node none of whose values occur: nothing of them is published, so nothing of them is bounded or told."""
    table = counted(angina=3, infarct=3, flu=4)
    absent = FPrivacy.uniform("2/3", {"gout": "1/9", "chronic": "1/9"}).thresholds(table, None, ILLNESSES)
    without = FPrivacy.uniform("2/3").thresholds(table, None, ILLNESSES)
    assert (absent.fractions, absent.tree.labels, absent.limited) == (without.fractions, without.tree.labels, {})
    with pytest.raises(SpecError, match="'gout' does not occur in the sensitive column; values"):
        FPrivacy.uniform("2/3", {"gout": "1/9"}).thresholds(table)


def manifest_with(own: dict[str, str], rows: list[list[str]]):
    """As much of a manifest as thresholds are recomputed from."""
    values = [ValuePart(value=v, count=n, threshold="2/3") for v, n in (("angina", 3), ("infarct", 3), ("flu", 4))]
    guarantee = GuaranteePart(
        model="f-privacy",
        words="",
        sensitive="illness",
        sensitive_type="string",
        values=values,
        hierarchy=rows,
        nodes=[NodePart(node="ischaemic", count=6)],
    )
    privacy = {"default": "2/3", "thresholds": own}
    return SimpleNamespace(method=SimpleNamespace(parameters={"privacy": privacy}), guarantee=guarantee)


def test_the_audit_takes_names_of_the_hierarchy_and_no_others():
    rows = [list(row) for row in ILLNESSES.rows]
    assert audited.thresholds_of(manifest_with({"gout": "1/9", "chronic": "1/9"}, rows)) == [Fraction(2, 3)] * 3
    for own, kept in (("gut", rows), ("any", rows), ("gout", [])):
        with pytest.raises(AnonlibError, match=f"{own!r}, which does not occur"):
            audited.thresholds_of(manifest_with({own: "1/9"}, kept))


def test_who_is_under_a_node_is_read_off_the_rows():
    part = manifest_with({}, [list(row) for row in ILLNESSES.rows]).guarantee
    names = ("circulatory", "respiratory", "chronic", "nowhere")
    part = part.model_copy(update={"nodes": [NodePart(node=name, count=0) for name in names]})
    assert hierarchy_nodes.under(part) == [{"angina", "infarct"}, {"flu"}, set(), set()]


def test_the_words_name_nodes_and_their_thresholds():
    table = counted(angina=2, infarct=2, flu=2, asthma=2, gout=2)

    def says(own):
        return guarantee_words("illness", table, FPrivacy.uniform("1/2", own).thresholds(table, None, ILLNESSES))

    assert says({}).endswith("may be certain: no node has a threshold.")
    assert says({"circulatory": "1/2"}).endswith(
        "Nor can it be believed that illness of that person is one of the values under 'circulatory' with a probability above 0.5 "
        "(50.00 %). Of other nodes nothing is promised."
    )
    both = says({"circulatory": "1/2", "respiratory": "0.45"})
    assert "the node's threshold: 0.45 (45.00 %) for 'respiratory', 0.5 (50.00 %) for 'circulatory'." in both
