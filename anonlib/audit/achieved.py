"""Achieved is within asked: one check for every layout, of what the audit found against what the release promises, number by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anonlib.audit.verdict import Check
from anonlib.exact import text

NAME = "achieved is within asked"


@dataclass(frozen=True)
class Bound:
    """A number that the audit found (achieved) and the one asked for, which it may not exceed (or, with `least`, not fall below)."""

    name: str
    achieved: Fraction
    asked: Fraction
    least: bool = False

    @property
    def kept(self) -> bool:
        """Whether the number achieved is within the one asked for; exact, both fractions multiplied across."""
        left = self.achieved.numerator * self.asked.denominator
        right = self.asked.numerator * self.achieved.denominator
        return left >= right if self.least else left <= right

    def __str__(self) -> str:
        return f"{self.name}: found {text(self.achieved)}, asked {'at least' if self.least else 'at most'} {text(self.asked)}"


def within_asked(bounds: Sequence[Bound], missing: Sequence[str] = ()) -> Check:
    """Each number found within the number asked; `missing` names promises of which nothing was found, each of them a fault."""
    broken = [str(bound) for bound in bounds if not bound.kept]
    faults = [*broken, *(f"{name}: asked, and nothing was found of it" for name in missing)]
    asked = f"{len(bounds) + len(missing):,} numbers within those promised"
    return Check.unless(faults, NAME, asked, "so they are" if not faults else f"{len(faults):,} are not")
