"""What an evaluation found, whatever the layout: measures of the release, the error of a workload of count queries, attacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float64Array
from anonlib.evaluation.range_workload import RangeWorkload
from anonlib.evaluation.risks import RiskMeasures
from anonlib.evaluation.workloads import Workload


@dataclass(frozen=True)
class RelativeErrors:
    """|act - est| / act over the queries with act > 0, as shares (0.05 is 5 %); nan when there is none.

    `dropped` queries have act = 0, for which no relative error exists.
    """

    queries: int
    dropped: int
    average: float
    median: float

    @staticmethod
    def of(actual: Float64Array, estimated: Float64Array) -> RelativeErrors:
        """The errors of estimates. actual, estimated : (Q,) true counts and estimates of the same queries."""
        kept = actual > 0
        errors = np.abs(actual[kept] - estimated[kept]) / actual[kept]
        average, median = (float(f(errors)) if len(errors) else float("nan") for f in (np.mean, np.median))
        return RelativeErrors(len(actual), int((~kept).sum()), average, median)

    @staticmethod
    def by(groups: npt.NDArray[Any], actual: Float64Array, estimated: Float64Array) -> dict[Any, RelativeErrors]:
        """{group: its errors} for (Q,) labels of the queries, e.g. how many quasi-identifiers each asks about."""
        return {
            group.item(): RelativeErrors.of(actual[groups == group], estimated[groups == group])
            for group in np.unique(groups)
        }


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` measured.

    measures : {name: value} of the release itself, e.g. {"msbs": 9.06} (mean squared bucket size)
    errors   : of all queries; `by_group` of those in each group, and `grouped_by` says what the groups are
    actual, estimated : (Q,) in the order of `workload.queries`
    risks    : of finding a person's row; None where nothing is published
    attacks  : when asked for, {attack: {accuracy, prior, guarantee, persons, above, words, ...}}, or {words} of one that is not played
    """

    measures: Mapping[str, float]
    errors: RelativeErrors
    by_group: Mapping[Any, RelativeErrors]
    grouped_by: str
    workload: Workload | RangeWorkload
    actual: Float64Array
    estimated: Float64Array
    attacks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    risks: RiskMeasures | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON: the results, and how the workload was drawn (not the queries, see `Workload.to_json`)."""
        return {
            "measures": dict(self.measures),
            "workload": {
                "kind": self.workload.kind,
                "seed": self.workload.seed,
                "selectivity": self.workload.selectivity,
                "queries": len(self.workload.queries),
            },
            "relative_error": asdict(self.errors),
            "grouped_by": self.grouped_by,
            "relative_error_by_group": {str(group): asdict(e) for group, e in self.by_group.items()},
            "risks": None if self.risks is None else self.risks.to_dict(),
            "attacks": {name: dict(figures) for name, figures in self.attacks.items()},
        }
