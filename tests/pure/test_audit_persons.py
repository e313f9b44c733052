"""What an audit says of a release against its entry in the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anonlib.audit.persons import Entered, of_entry
from anonlib.release.manifest import LedgerPart, Manifest

TOLD = LedgerPart(id="0" * 32, number=2, persons=45, before=[], records_before=0)
AS_TOLD = Entered(persons=45, again=0, absent=0, same_manifest=True)


def failed(entered: Entered) -> list[str]:
    return [c.name for c in of_entry(Manifest.model_construct(ledger=TOLD), entered) if not c.passed]


def test_all_agrees() -> None:
    assert failed(AS_TOLD) == []


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ({"persons": 44}, "ledger: entered as published"),
        ({"same_manifest": False}, "ledger: entered as published"),
        ({"again": 1}, "ledger: nobody twice"),
        ({"absent": 1}, "ledger: persons of the original"),
    ],
)
def test_each_fault_has_its_check(fault: dict[str, int], name: str) -> None:
    assert failed(replace(AS_TOLD, **fault)) == [name]  # type: ignore[arg-type]
