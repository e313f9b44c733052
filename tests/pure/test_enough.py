"""How many more persons it takes: the least number of records, spread as they have been, that the method does not refuse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the recipes that are asked are Spark's")

from anonlib import increments
from anonlib.errors import OutOfTime, Postponed, Unsatisfiable
from anonlib.hierarchy import parse_hierarchy
from anonlib.methods import bucketize, enough
from anonlib.methods.enough import least, with_more
from anonlib.privacy.counts import SensitiveCounts
from anonlib.spec.methods.bucketize import Bucketize


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


ILLNESSES = parse_hierarchy("angina,heart,any\ninfarct,heart,any\nflu,lungs,any\n")
COUNTS = SensitiveCounts(("angina", "infarct", "flu"), np.array([2, 2, 4]))


def halves() -> Bucketize:
    return Bucketize.model_validate(
        {"privacy": {"default": "1/2", "thresholds": {"heart": "1/2"}}, "max_bucket_size": 8, "time_limit": 5}
    )


def test_a_try_that_ran_out_of_time_is_neither_yes_nor_no() -> None:
    bucketize.check_buckets(COUNTS, halves(), {}, ILLNESSES)
    assert enough._would_do("illness", COUNTS, halves(), {}, ILLNESSES, float("inf"))
    with pytest.raises(OutOfTime, match="8 records have buckets that keep these thresholds was not told in time"):
        enough._would_do("illness", COUNTS, halves(), {}, ILLNESSES, 0.0)
    few = SensitiveCounts(("angina", "flu"), np.array([5, 1]))
    assert not enough._would_do("illness", few, halves(), {}, ILLNESSES, 0.0), "Lemma 1 needs no time"


def test_a_search_ends_with_the_first_number_that_cannot_be_told() -> None:
    tried = []

    def would_do(more: int) -> bool:
        tried.append(more)
        if more == 8:
            raise OutOfTime("not told")
        return False

    with pytest.raises(OutOfTime):
        least(would_do)
    assert tried == [1, 2, 4, 8]


def too_small(monkeypatch: pytest.MonkeyPatch, error: Unsatisfiable, wait: bool, more: int | OutOfTime | None) -> Any:
    """What is raised of 12 new persons, where so many `more` will do, none, or nobody can tell."""

    def asked(*_: Any) -> int | None:
        if isinstance(more, OutOfTime):
            raise more
        return more

    monkeypatch.setattr(increments, "more_persons", asked)
    spec: Any = SimpleNamespace(method=None, ledger=SimpleNamespace(wait=wait))
    nothing: Any = SimpleNamespace(values={})
    return increments.too_small(spec, nothing, nothing, 12, error)


@pytest.mark.parametrize("wait", [False, True])
def test_an_increment_is_postponed_by_what_is_known_and_not_by_the_clock(
    monkeypatch: pytest.MonkeyPatch, wait: bool
) -> None:
    kind = Postponed if wait else Unsatisfiable
    told = too_small(monkeypatch, Unsatisfiable("no buckets"), wait, 5)
    assert type(told) is kind
    assert "12 new persons are too few: no buckets. With 5 more, whose values" in str(told)
    unknown = too_small(monkeypatch, Unsatisfiable("no buckets"), wait, OutOfTime("late"))
    assert type(unknown) is kind
    assert str(unknown).endswith("are too few: no buckets. How many more it takes could not be told in time")
    for error, more in ((Unsatisfiable("no buckets"), None), (OutOfTime("slow"), 5)):
        assert too_small(monkeypatch, error, wait, more) is error


def test_no_looser_setting_is_looked_for_where_time_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = OutOfTime("slow")

    def chosen(*_: Any) -> None:
        raise slow

    monkeypatch.setattr(bucketize, "choose_buckets", chosen)
    with pytest.raises(OutOfTime) as raised:
        bucketize.chosen_or_offered(COUNTS, halves(), None)
    assert raised.value is slow
