"""What two sensitive columns may be asked for under `heterogeneous`, and what the kernel makes of them, without Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from anonlib.arrays import Lists
from anonlib.errors import AnonlibError, SpecError, Unsatisfiable
from anonlib.hierarchy import parse_hierarchy
from anonlib.methods.heterogeneous_pair import PairMatching, _Eligible, refuse_frequent
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.l_diversity import LDiversity
from anonlib.spec.load import parse_spec
from tests.pure.test_matching import DOMAINS, KEY, records


def spec(method: dict[str, Any], sensitive: list[Any]) -> Any:
    columns = {"quasi_identifiers": ["age"], "sensitive": sensitive}
    return parse_spec({"columns": columns, "method": {"heterogeneous": method}}, given_frame=True)


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ({"beta": 2}, "beta"),
        ({"l": 3, "thresholds": {"flu": "1/4"}}, "thresholds"),
        ({"l": 3, "far_apart": True, "allow_minimality_leak": True}, "far_apart"),
        ({"beta": 2, "remainder": "dummy"}, "remainder"),
        ({"l": 3, "refine": True, "allow_minimality_leak": True}, "refine"),
    ],
)
def test_what_does_not_go_with_two_columns_is_named(method: dict[str, Any], key: str) -> None:
    with pytest.raises(SpecError, match=rf"heterogeneous\.{key}.*with two sensitive columns, .*keep one column"):
        spec(method, ["illness", "drug"])


def test_no_ledger_is_kept_of_two_columns() -> None:
    columns = {"quasi_identifiers": ["age"], "sensitive": ["illness", "drug"], "person": "name"}
    given = {
        "columns": columns,
        "method": {"heterogeneous": {"l": 3}},
        "ledger": {"path": "ledger", "key": "env:ANONLIB_LEDGER_KEY"},
    }
    with pytest.raises(SpecError, match="with two sensitive columns, releases of a ledger are not made"):
        parse_spec(given | {"random": {"key": "env:ANONLIB_KEY"}}, given_frame=True)


def test_one_promise_two_columns_and_no_more() -> None:
    asked = spec({"l": 3, "matching": "greedy", "partition_size": 500}, ["illness", "drug"])
    assert asked.method.l == 3
    with pytest.raises(SpecError, match="heterogeneous protects 2 sensitive columns, and 3 are named"):
        spec({"l": 3}, ["illness", "drug", "ward"])
    tree = parse_hierarchy("flu,lungs,any\ngout,joints,any\n")
    with pytest.raises(SpecError, match="with two sensitive columns heterogeneous makes no use of a hierarchy"):
        spec({"l": 3}, [{"name": "illness", "hierarchy": tree}, "drug"])


@pytest.mark.parametrize(
    ("l", "sentence"),
    [
        (
            4,
            "l: 4, but 'flu' in column 'illness' has 30 of 90 records and 'b' in column 'drug' has 44 of 90 records, more than one in 4; "
            "l: 2 can be kept of both columns",
        ),
        (
            3,
            "l: 3, but 'b' in column 'drug' has 44 of 90 records, more than one in 3; l: 2 can be kept of both columns",
        ),
    ],
)
def test_a_value_that_is_too_frequent_is_named_with_its_column(l: int, sentence: str) -> None:  # noqa: E741
    counts = [
        SensitiveCounts(("flu", "gout", None, "HIV"), np.array([30, 20, 20, 20])),
        SensitiveCounts(("a", "b", "c"), np.array([40, 44, 6])),
    ]
    refuse_frequent(("illness", "drug"), counts, 2)
    with pytest.raises(Unsatisfiable) as refused:
        refuse_frequent(("illness", "drug"), counts, l)
    assert str(refused.value) == sentence
    with pytest.raises(Unsatisfiable, match=r"'b' in column 'drug' .*no l above 1 can be kept of both columns"):
        refuse_frequent(("drug",), [SensitiveCounts(("a", "b"), np.array([40, 44]))], 2)


def test_a_partition_is_held_to_both_columns() -> None:
    keeps = _Eligible(3, LDiversity(3))
    assert keeps(np.array([4, 4, 4, 4, 4, 2, 2]))
    assert not keeps(np.array([4, 4, 4, 5, 4, 2, 1]))
    assert not keeps(np.array([5, 4, 3, 4, 4, 2, 2]))


@pytest.mark.parametrize("l", [2, 3])
def test_rows_show_both_values_of_one_match(l: int) -> None:  # noqa: E741
    """Whatever codes occur, and in a table that has more of them than this partition."""
    random = np.random.default_rng(l)
    first, second = random.choice([0, 3, 4, 8, 9], 60), random.choice([1, 2, 5, 6, 11], 60)
    columns = PairMatching(tuple(DOMAINS), (10, 12), l, "greedy", KEY)(
        records(random, 60), [first, second], np.zeros(60, dtype=np.int64), 7
    )
    told = {name: column.listed() if isinstance(column, Lists) else column for name, column in columns.items()}
    assert Counter(zip(told["own"], told["own1"], strict=True)) == Counter(zip(first, second, strict=True))
    for place in np.unique(told["partition"]):
        pool = {name: column[told["partition"] == place] for name, column in told.items()}
        graph = np.stack(pool["matches"].tolist())
        assert graph.shape[1] >= l
        assert (pool["s0"] == pool["own"][pool["assigned"]]).all()
        assert (pool["s1"] == pool["own1"][pool["assigned"]]).all()
        for own in (pool["own"], pool["own1"]):
            assert all(len(set(row)) == len(row) for row in own[graph].tolist())


def test_a_partition_that_can_no_longer_keep_it_is_not_matched() -> None:
    kernel = PairMatching(tuple(DOMAINS), (3, 3), 2, "greedy", KEY)
    second = np.array([0, 0, 0, 1])
    with pytest.raises(AnonlibError, match="can no longer keep the promise"):
        kernel(records(np.random.default_rng(1), 4), [np.arange(4) % 3, second], np.zeros(4, dtype=np.int64), 0)
