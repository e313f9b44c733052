"""Workloads: the same seed gives the same queries, and b follows from the selectivity."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from anonlib.errors import SpecError
from anonlib.evaluation.workloads import Workload, in_width, in_workload

DOMAINS = {
    "age": [str(i) for i in range(77)],
    "sex": ["f", "m"],
    "country": [str(i) for i in range(83)],
    "job": [str(i) for i in range(50)],
}


def test_widths_are_exact():
    assert in_width(1000, Fraction("0.001"), 2) == 100  # 1000 * 0.001 ** (1 / 3) is above 100 in doubles
    assert [in_width(size, Fraction(1, 100), 1) for size in (1, 2, 10, 11, 100)] == [1, 1, 1, 2, 10]
    for size in (1, 7, 83, 4096):
        for d in (1, 2, 7):
            b = in_width(size, Fraction("0.01"), d)
            assert Fraction(b, size) ** (d + 1) >= Fraction(1, 100)
            assert b == 1 or Fraction(b - 1, size) ** (d + 1) < Fraction(1, 100)


def test_sizes_follow_from_the_selectivity_and_attributes_from_chance():
    workload = in_workload(DOMAINS, "job", queries=3000, selectivity=0.01, seed=1)
    seen = {1: 0, 2: 0, 3: 0}
    for query in workload.queries:
        d = query.dimensions("job")
        seen[d] += 1
        for attribute, codes in query.accepted.items():
            size = len(DOMAINS[attribute])
            assert len(codes) == math.ceil(size * 0.01 ** (1 / (d + 1)))
            assert len(set(codes)) == len(codes)
            assert 0 <= min(codes) <= max(codes) < size
            assert codes == tuple(sorted(codes))
        assert list(query.accepted)[-1] == "job"
    # Each d has probability 1/3: 3,000 draws miss 1,000 by 8 standard deviations (207) with probability below 1e-14.
    assert all(abs(n - 1000) < 207 for n in seen.values())


def test_every_value_of_a_domain_is_asked_for_equally_often():
    workload = in_workload(DOMAINS, "job", queries=3000, seed=2)
    asked = [0] * 50
    for query in workload.queries:
        for code in query.accepted["job"]:
            asked[code] += 1
    expected = sum(asked) / 50
    # A value's count is a sum of independent indicators with mean `expected`; 7 standard deviations for 50 values: below 1e-9.
    assert max(abs(n - expected) for n in asked) < 7 * math.sqrt(expected)


def test_the_same_seed_gives_the_same_queries_and_another_others():
    one, two, three = (in_workload(DOMAINS, "job", queries=50, seed=s) for s in (3, 3, 4))
    assert one == two
    assert one.queries != three.queries


def test_the_order_of_the_attributes_does_not_count():
    turned = dict(reversed(DOMAINS.items()))
    assert (
        in_workload(turned, "job", queries=50, seed=3).queries
        == in_workload(DOMAINS, "job", queries=50, seed=3).queries
    )


def test_saved_and_read_back():
    workload = in_workload(DOMAINS, "job", queries=20, seed=5)
    assert Workload.from_json(workload.to_json()) == workload


def test_a_recorded_workload_stays_as_it_was():
    workload = in_workload(
        {"a": ["x", "y", "z"], "b": ["1", "2"], "s": ["p", "q"]}, "s", queries=2, selectivity=0.1, seed=7
    )
    assert [q.accepted for q in workload.queries] == [{"a": (1, 2), "b": (1,), "s": (0,)}, {"a": (0,), "s": (1,)}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"selectivity": 0.0}, "not a share"),
        ({"selectivity": 1.5}, "not a share"),
        ({"queries": 0}, "at least 1"),
        ({"dimensions": 4}, "1 to 3"),
        ({"sensitive": "nothing"}, "needs at least one"),
    ],
)
def test_parameters_out_of_range_are_refused(change, words):
    with pytest.raises(SpecError, match=words):
        in_workload(DOMAINS, **({"sensitive": "job"} | change))
