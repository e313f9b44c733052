"""When records are ordered by one task: only where the whole input is small, since that task reads the input from its scan on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark", reason="the frames are Spark's")

from anonlib.engine import curve_ranks
from anonlib.engine.curve_ranks import ONE_TASK
from anonlib.methods.boxed import Coded


def calls(monkeypatch: pytest.MonkeyPatch, input_rows: int) -> tuple[list[str], list[str]]:
    """What is done to a frame to seat it, and to cut it into equal partitions before it is seated."""
    monkeypatch.setattr(curve_ranks, "F", MagicMock())
    frame = MagicMock(columns=["q0", "s0", "grp", "curve"])
    curve_ranks.seated(frame, 7, input_rows)
    numbered: list[Any] = []
    seats: list[int] = []
    monkeypatch.setattr(curve_ranks, "with_columns", lambda records, _: numbered.append(records) or records)
    monkeypatch.setattr(curve_ranks, "on_curve", lambda records, _: records)
    monkeypatch.setattr(curve_ranks, "seated", lambda records, salt, rows: seats.append(rows))
    monkeypatch.setattr(curve_ranks, "by_rank", lambda *_: MagicMock())
    coded = MagicMock(columns=["q0", "s0"])
    curve_ranks.equal_partitions(coded, MagicMock(), 10, 2, 7, MagicMock(), input_rows)
    assert seats == [input_rows]
    return [name for name, _, _ in frame.method_calls], ["alone" if numbered == [coded.coalesce()] else "as it is"]


def test_few_records_of_a_small_input_are_ordered_by_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls(monkeypatch, ONE_TASK) == (["coalesce"], ["alone"])


def test_few_records_of_a_huge_input_are_ordered_by_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls(monkeypatch, ONE_TASK + 1) == (["repartitionByRange"], ["as it is"])


def test_the_rows_of_the_input_are_those_before_any_policy() -> None:
    statistics: Any = SimpleNamespace(counts=SimpleNamespace(n=10), input_rows=10**9)
    nothing: Any = None
    coded = Coded(nothing, (statistics,), nothing, nothing)
    assert (coded.n, coded.input_rows) == (10, 10**9)
