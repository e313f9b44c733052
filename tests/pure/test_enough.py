"""How many more persons it takes: the least number of records, spread as they have been, that the method does not refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the recipes that are asked are Spark's")

from anonlib.methods.enough import least, with_more


@given(st.integers(1, 10**6))
def test_the_least_number_is_the_least(number: int) -> None:
    tried = []

    def would_do(more: int) -> bool:
        tried.append(more)
        return more >= number

    assert least(would_do) == number
    assert len(tried) <= 45


def test_where_no_number_will_do() -> None:
    assert least(lambda more: False) is None


@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 50), min_size=1),
    st.dictionaries(st.sampled_from("cdefg"), st.integers(1, 50)),
    st.integers(0, 500),
)
def test_more_records_are_spread_as_all_so_far(
    counts: dict[str | None, int], before: dict[str | None, int], more: int
) -> None:
    shares = {value: counts.get(value, 0) + before.get(value, 0) for value in [*counts, *before]}
    found = with_more(counts, shares, more)
    number = dict(zip(found.values, found.counts.tolist(), strict=True))
    assert found.n == sum(counts.values()) + more
    total = sum(shares.values())
    for value, share in shares.items():
        added = number.get(value, 0) - counts.get(value, 0)
        assert abs(added - more * share / total) < 1


def test_a_missing_value_is_one_of_them() -> None:
    found = with_more({None: 1, "a": 1}, {None: 3, "a": 1}, 4)
    assert (found.values, found.counts.tolist()) == (("a", None), [2, 4])
