"""One planted fault for every formula of `anonlib.privacy` and every kernel, and the check that must fail when it is there.

`python -m tests.contract.planted_faults` prints the list. `test_planted_faults.py` plants each, and
`tests/structure/test_planted_faults_cover.py` asks for a row where one is missing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.door import bucketize

Change = Callable[[Any], Any]
"""What is put in place of a function or class, given the right one."""


@dataclass(frozen=True)
class Door:
    """A fault that is tried through the public door: a release that must end in exit 4 with nothing visible."""

    where: str
    fault: str
    check: str
    change: Change
    method: dict[str, Any]


def resolved(where: str) -> tuple[Any, str]:
    """(the module or class, the name in it) of "anonlib.module:name" or "anonlib.module:Class.name"."""
    module, path = where.split(":")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def plant(monkeypatch: Any, where: str, change: Change) -> None:
    """Put a fault in place of what stands at `where`, and wherever product code has imported it by name; never in the audit."""
    owner, name = resolved(where)
    right = owner.__dict__[name]
    wrong = change(right)
    monkeypatch.setattr(owner, name, wrong)
    for module in list(sys.modules.values()):
        of = getattr(module, "__name__", "")
        if of.startswith("anonlib.") and not of.startswith("anonlib.audit") and vars(module).get(name) is right:
            monkeypatch.setattr(module, name, wrong)


def doubled(right: Any) -> Any:
    """Whatever it gives, twice."""
    return lambda *given, **named: 2 * right(*given, **named)


def doubled_share(right: Any) -> Any:
    """Twice the share, at most all."""
    return lambda *given, **named: min(Fraction(1), 2 * right(*given, **named))


DOOR = (
    Door(
        "anonlib.privacy.rho_privacy:amplification",
        "a factor 2",
        "(rho1, rho2)-privacy",
        doubled,
        {"perturb": {"rho2": "1/3"}},
    ),
    Door(
        "anonlib.privacy.f_privacy:FPrivacy.threshold",
        "a factor 2",
        "thresholds follow from the stated requirement",
        doubled_share,
        bucketize(theta="1.4", offset="0.02"),
    ),
)
