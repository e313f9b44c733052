"""Every public formula of anonlib.privacy and every kernel module has a planted fault, or a reason why it needs none."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import anonlib.kernels
import anonlib.privacy
from tests.contract.planted_faults import DOOR, FAULTS, NO_PROMISE, covered, resolved


def formulas() -> set[str]:
    """ "module:name" of every public function and class that a module of anonlib.privacy defines."""
    found = set()
    for module in pkgutil.iter_modules(anonlib.privacy.__path__, "anonlib.privacy."):
        inside = importlib.import_module(module.name)
        found |= {
            f"{module.name}:{name}"
            for name, thing in vars(inside).items()
            if not name.startswith("_")
            and (inspect.isfunction(thing) or inspect.isclass(thing))
            and thing.__module__ == module.name
        }
    return found


def kernels() -> set[str]:
    found = pkgutil.walk_packages(anonlib.kernels.__path__, "anonlib.kernels.")
    return {module.name for module in found if not module.ispkg}


def test_every_formula_has_a_fault():
    rows = {
        where.split(".")[0]
        + "."
        + where.partition(".")[2].partition(":")[0]
        + ":"
        + where.partition(":")[2].split(".")[0]
        for where in covered()
    }
    missing = sorted(formulas() - rows - NO_PROMISE.keys())
    assert not missing, (
        f"{missing[0]} has no planted fault: add a row to FAULTS in tests/contract/planted_faults.py (what is made wrong, and which check "
        f"of the audit must fail), or say in NO_PROMISE why no promise rests on it. All that lack one: {', '.join(missing)}"
    )


def test_every_kernel_has_a_fault():
    missing = sorted(kernels() - {where.partition(":")[0] for where in covered()} - NO_PROMISE.keys())
    assert not missing, (
        f"{missing[0]} has no planted fault: add a row for one of its invariants to FAULTS or DOOR in tests/contract/planted_faults.py, or "
        f"say in NO_PROMISE why no promise rests on it. All that lack one: {', '.join(missing)}"
    )


def test_no_row_is_about_what_is_no_longer_there():
    for where in {*covered(), *(d.where for d in DOOR), *(f.where for f in FAULTS)}:
        owner, name = resolved(where)
        assert name in owner.__dict__, f"{where} of tests/contract/planted_faults.py does not exist (any more)"
    for where, why in NO_PROMISE.items():
        assert why
        assert where in formulas() | kernels(), f"{where} of NO_PROMISE does not exist (any more)"
