"""Matches of two sensitive columns through the public door: what is promised of each is counted again on what was published."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonlib.methods import heterogeneous_pair as recipe
from tests.door import people
from tests.thorough import THOROUGH, nightly

pytestmark = pytest.mark.spark

N, L = 200, 3
ILLNESSES = ("flu", "gout", "HIV", "mumps|measles", None)
DRUGS = (1, 2, 3, 4)
SENSITIVE = ("illness", "drug")
METHOD = {"heterogeneous": {"l": L, "matching": "greedy", "partition_size": 90}}


def patients() -> pa.Table:
    """An illness goes with two drugs."""
    drug = [DRUGS[(i % 5 + i // 5 % 2) % 4] for i in range(N)]
    ill = pa.array([ILLNESSES[i % 5] for i in range(N)])
    return people(N).set_column(3, "illness", ill).append_column("drug", pa.array(drug, pa.int32()))


def columns(door: Any, *sensitive: str) -> dict[str, Any]:
    roles = dict(door.spec("-")["columns"])
    return roles | {"sensitive": list(sensitive or SENSITIVE), "identifiers": roles.pop("other")}


def run(door: Any, source: Any, **more: Any) -> Any:
    return door.run(source, method=METHOD, columns=columns(door), missing={"sensitive": "keep"}, **more)


def told(evidence: list[dict[str, Any]], name: str) -> tuple[list[Counter[int]], list[Counter[int]]]:
    """Of one column (codes among the matches of every record, codes shown by the records that match every person)."""
    own = {(e["partition"], e["record"]): e[name] for e in evidence}
    matches, around = [], defaultdict(Counter)
    for e in evidence:
        matches.append(Counter(own[e["partition"], k] for k in e["matches"]))
        for k in e["matches"]:
            around[e["partition"], k][own[e["partition"], e["assigned"]]] += 1
    return matches, list(around.values())


def test_l_holds_of_each_column_and_values_stay_together(door):
    source = door.input(patients())
    evidence = door.home / "evidence"
    spec = door.spec(source, method=METHOD, columns=columns(door), missing={"sensitive": "keep"})
    outcome = door.run_spec(spec | {"output": spec["output"] | {"evidence": str(evidence)}})
    outcome.published()
    rows, records = outcome.table("microdata"), patients().to_pylist()
    assert Counter((r["illness"], r["drug"]) for r in rows) == Counter((r["illness"], r["drug"]) for r in records)

    guarantee = outcome.manifest.guarantee
    assert (guarantee.sensitive, guarantee.also[0].sensitive, guarantee.also[0].also) == (*SENSITIVE, [])
    left = pq.read_table(evidence / "matches").to_pylist()
    assert len(left) == N
    for name, part in (("s0", guarantee), ("s1", guarantee.also[0])):
        matches, around = told(left, name)
        for some in (*matches, *around):
            assert len(some) >= L
            assert max(some.values()) * L <= some.total()
        worst = max(Fraction(max(some.values()), some.total()) for some in matches)
        assert part.achieved == {"l": str(1 / worst)}
        assert {v.threshold for v in part.values} == {"1/3"}
        assert {v.value: v.count for v in part.values} == Counter(
            None if r[part.sensitive] is None else str(r[part.sensitive]) for r in records
        )
        assert f"nothing is promised of {part.sensitive}" in part.words
    details = outcome.manifest.solver.details
    assert details["partitions"] == 2
    assert details["matches"]["fewest"] >= L

    assert {
        "l-diversity",
        "what may be believed of a person, of drug",
        "original: combinations of the sensitive columns",
    } <= {check.name for check in outcome.manifest.audit.checks}
    screen = " ".join(outcome.out.split())
    for said in ("l of drug asked 3, achieved 3", "nothing is promised of drug", "nothing is promised of illness"):
        assert said in screen
    if THOROUGH:
        code, checks = door.audit(outcome.output, source)
        assert code == 0, [check for check in checks if not check["passed"]]
        assert "original: combinations of the sensitive columns" in {check["name"] for check in checks}


def rows_swapped(right: Any) -> Any:
    """A row shows the drug of another record."""

    class Swapped(right):
        def __call__(self, *given: Any) -> Any:
            found = super().__call__(*given)
            return {**found, "s1": found["s1"][::-1]}

    return Swapped


def records_swapped(right: Any) -> Any:
    """The records of a pool are dealt with one another's drugs."""

    class Swapped(right):
        def __call__(self, *given: Any) -> Any:
            found = super().__call__(*given)
            own, shown = found["own1"].copy(), found["s1"].copy()
            for place in np.unique(found["partition"]):
                here = np.flatnonzero(found["partition"] == place)
                own[here] = own[here][::-1]
                shown[here] = own[here][found["assigned"][here]]
            return {**found, "own1": own, "s1": shown}

    return Swapped


def first_alone(right: Any) -> Any:
    """Pools are made of the first column's values alone."""

    class First(right):
        def combined(self, sensitive: Any) -> Any:
            combination, codes, kernel = super().combined(sensitive)
            alone = np.stack([codes[0], np.arange(codes.shape[1])])
            return combination, codes, replace(kernel, promised=replace(kernel.promised, codes=alone))

    return First


@nightly  # at every change faults of both columns are tried on paper, in tests/contract/planted_faults.py
@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (records_swapped, "original: combinations of the sensitive columns"),
        (records_swapped, "original: records of the graph"),
        (rows_swapped, "boxes"),
        (first_alone, "l-diversity"),
    ],
)
def test_what_is_wrong_in_the_second_column_alone_is_found(door, monkeypatch, fault, check):
    monkeypatch.setattr(recipe, "PairMatching", fault(recipe.PairMatching))
    run(door, door.input(patients())).refused(4, check)


@nightly
def test_explain_tells_what_the_second_column_costs(door):
    found = run(door, door.input(patients()), command="explain")
    assert found.code == 0, found.err
    assert "by illness alone" in found.out
    assert "nothing is promised of drug" in " ".join(found.out.split())


@nightly
def test_what_cannot_be_kept_of_both_is_refused_at_the_door(door):
    table = patients()
    often = [1 if i % 5 == 0 else d for i, d in enumerate(table.column("drug").to_pylist())]
    table = table.set_column(table.column_names.index("drug"), "drug", pa.array(often, pa.int32()))
    refused = run(door, door.input(table))
    refused.refused(3, "l: 3, but '1' in column 'drug' has 80 of 200 records", "l: 2 can be kept of both columns")
