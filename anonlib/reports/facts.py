"""What a report tells, as plain facts: everything that was gathered before a page is written. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anonlib.arrays import Float64Array
from anonlib.audit.verdict import Check
from anonlib.evaluation.risks import RiskMeasures
from anonlib.release.manifest import Manifest
from anonlib.solvers.trade_offs.trade_off import TradeOff

Shown = tuple[tuple[str | None, int], ...]
"""Values of a sensitive column as text, and how many rows, or entries of lists, show each."""


@dataclass(frozen=True)
class Sizes:
    """unit : what is counted, e.g. "buckets"; of : {size in records: how many there are}."""

    unit: str
    of: Mapping[int, int]


@dataclass(frozen=True)
class Answer:
    """One count query for people: what was asked, the true count, the estimate and its interval."""

    asked: str
    truth: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Workload:
    """Count queries that were answered twice: actual, estimated (Q,); grouped : {dimensions: (queries, average, median)} of the error."""

    actual: Float64Array
    estimated: Float64Array
    queries: int
    dropped: int
    average: float
    median: float
    records: int


@dataclass(frozen=True)
class Beside:
    """What only somebody who has the original table can know: none of it is part of the release.

    measures : of the release by name; attacks : {attack: its figures}, as `Evaluation.attacks`
    answers  : counts for people; counted : by which column
    """

    measures: Mapping[str, float]
    workload: Workload
    attacks: Mapping[str, Mapping[str, Any]]
    answers: tuple[Answer, ...] = ()
    counted: str = ""


@dataclass(frozen=True)
class Batch:
    """Of a stream: one that was shown."""

    number: int
    shown: int
    waiting: int
    passed: bool | None


@dataclass(frozen=True)
class Facts:
    """name    : of the release; day : on which the report is made, as text
    checks  : of the audit; audited : when it was made, for a reader
    shown   : ((sensitive value's text, rows), ...) as it stands in the published tables; further : the same of each further sensitive
              column that stands in rows by itself, {column: values and rows}
    sizes   : of what records are hidden in; widths : {quasi-identifier: share of its range that a box covers on average}
    risks   : of the published quasi-identifiers; None where rows have no class and the original was not given
    curve   : what the bound costs, or why that cannot be told; batches : of a stream, the newest last
    beside  : what was measured against the original, where it was given
    """

    name: str
    day: str
    manifest: Manifest
    checks: tuple[Check, ...]
    audited: str
    shown: Shown = ()
    further: Mapping[str, Shown] = field(default_factory=dict)
    sizes: Sizes | None = None
    widths: Mapping[str, float] = field(default_factory=dict)
    risks: RiskMeasures | None = None
    curve: TradeOff | str = ""
    batches: tuple[Batch, ...] = ()
    beside: Beside | None = None

    @property
    def passed(self) -> bool | None:
        """Whether all checks passed; None where none was made."""
        return all(check.passed for check in self.checks) if self.checks else None


@dataclass(frozen=True)
class Report:
    """html : the whole file; passed : whether the audit it tells of passed, None where there was none; with_original : whether it shows
    anything that is not of the release."""

    html: str = field(repr=False)
    passed: bool | None
    with_original: bool
