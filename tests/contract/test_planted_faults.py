"""Every planted fault is refused: a formula of the methods that is wrong does not pass the audit, whose arithmetic is its own."""

from __future__ import annotations

import pytest

from anonlib.errors import Unsatisfiable
from tests.contract import planted_faults
from tests.contract.planted_faults import DOOR, FAULTS, plant
from tests.door import people
from tests.thorough import cases


def named(fault) -> str:
    return f"{fault.where.rpartition('.')[2]}: {fault.fault}"


TRIALS = list(dict.fromkeys(fault.trial for fault in FAULTS))


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.__qualname__.split(".")[0])
def test_without_a_fault_every_trial_passes(trial):
    if trial is planted_faults.TOO_STRICT:  # right code does not get so far
        with pytest.raises(Unsatisfiable, match="Lemma 1"):
            trial()
        return
    verdict = trial()
    assert verdict.passed, "\n".join(map(str, verdict.failures))


@pytest.mark.parametrize("fault", FAULTS, ids=named)
def test_a_fault_on_paper_is_found_by_its_check(monkeypatch, fault):
    plant(monkeypatch, fault.where, fault.change)
    verdict = fault.trial()
    assert fault.check in {check.name for check in verdict.failures}, "\n".join(map(str, verdict.failures)) or "passed"


NOW = [fault for fault in DOOR if fault.fault in ("a factor 2", "one another's values")]
"""A promise of each layout that the recipe breaks: the rest of what the door does is one for all, and every fault on paper is tried."""


@pytest.mark.spark
@pytest.mark.parametrize("fault", cases(*NOW, nightly=[fault for fault in DOOR if fault not in NOW]), ids=named)
def test_a_fault_ends_in_exit_4_with_nothing_visible(door, monkeypatch, fault):
    plant(monkeypatch, fault.where, fault.change)
    columns = door.spec("-")["columns"]
    if not fault.other:
        columns["identifiers"] = columns.pop("other")
    door.run(people(), method=fault.method, columns=columns).refused(4, fault.check)


def test_the_list_is_printed_by_one_command():
    told = planted_faults.listing()
    assert all(fault.where in told for fault in FAULTS)
    assert f"{len(FAULTS) + len(DOOR)} planted faults" in told
