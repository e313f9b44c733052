"""Every planted fault is refused: a formula of the methods that is wrong does not pass the audit, whose arithmetic is its own."""

from __future__ import annotations

import pytest

from tests.contract.planted_faults import DOOR, plant
from tests.door import people


@pytest.mark.spark
@pytest.mark.parametrize("fault", DOOR, ids=lambda fault: f"{fault.where.rpartition(':')[2]}: {fault.fault}")
def test_a_fault_ends_in_exit_4_with_nothing_visible(door, monkeypatch, fault):
    plant(monkeypatch, fault.where, fault.change)
    door.run(people(), method=fault.method).refused(4, fault.check)
