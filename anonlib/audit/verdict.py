"""What an audit finds: a list of checks, each passed or failed with what was asked, what was found and the worst case as evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Check:
    """One promise, recomputed. `evidence` names the worst bucket or value where there is one."""

    name: str
    passed: bool
    asked: str
    achieved: str
    evidence: str | None = None

    @staticmethod
    def unless(faults: Sequence[str], name: str, asked: str, achieved: str) -> Check:
        """Passed unless there are faults, the first of which is the evidence."""
        return Check(name, not faults, asked, achieved, faults[0] if faults else None)

    def __str__(self) -> str:
        mark = "passed" if self.passed else "FAILED"
        return f"{mark}  {self.name}: asked {self.asked}, found {self.achieved}" + (
            f" ({self.evidence})" if self.evidence else ""
        )


@dataclass(frozen=True)
class Measured:
    """What a scan found of one table: how many rows, and their checksum in any order."""

    rows: int
    checksum: str


@dataclass(frozen=True)
class Verdict:
    """All checks of one audit, and what it measured on the way.

    achieved : sensitive value's text -> its largest share in any bucket, as exact text
    numbers  : what was found of the model's own numbers, e.g. {"t": "0.31"}, as exact text
    tables   : table name -> rows and checksum, for a manifest that is still to be written
    utility  : what was measured of the release's worth, e.g. {"gcp": 0.026}, for the same
    nodes    : number of a node in the manifest -> (its largest share of any bucket, as exact text; buckets that hold nothing else)
    also     : what was found for further sensitive columns: column -> (achieved, numbers)
    """

    checks: tuple[Check, ...]
    achieved: dict[str | None, str] = field(default_factory=dict)
    tables: dict[str, Measured] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    utility: dict[str, float] = field(default_factory=dict)
    nodes: dict[int, tuple[str, int]] = field(default_factory=dict)
    also: dict[str, tuple[dict[str | None, str], dict[str, str]]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """True when every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

    def with_evidence(self, searches: Mapping[str, Callable[[], str | None]]) -> Verdict:
        """The same, each failed check that has a search among {name of check: search} with what it found."""
        checks = tuple(
            check if check.passed or check.name not in searches else replace(check, evidence=searches[check.name]())
            for check in self.checks
        )
        return replace(self, checks=checks)

    def with_checks(self, checks: Sequence[Check]) -> Verdict:
        """The same, with more checks."""
        return replace(self, checks=(*self.checks, *checks))
