"""What a count query answers, for the layouts whose releases do not say how sure it is by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Estimator = Literal["exact", "unbiased", "shrunk", "flattened", "uniform"]


@dataclass(frozen=True)
class Together:
    """A count that a release tells though it does not tell its terms: the asked values with others that share their buckets.

    values         : the companions, as text, None of a missing value
    estimate       : unbiased, of the asked values and the companions together; standard_error, interval : as in `CountEstimate`
    """

    values: tuple[str | None, ...]
    estimate: float
    standard_error: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class CountEstimate:
    """How many records meet a predicate, as far as a release tells.

    estimate       : the best single number, within `low` and `high`
    estimator      : where it comes from. "exact": the release tells. "unbiased": from the kinds of buckets. "shrunk": the same, pulled
    towards what
                     is likely where kinds tell little, for a smaller error on the whole. "flattened": each bucket's values spread evenly
                     over its records. "uniform": boxes filled evenly
    interval       : holds the true number with a chance of about 95 % over the keys a release could have had, whatever the table and the
                     question are; where no such statement is known, `low` to `high`
    low, high      : no assignment whatever gives fewer or more; they rest on no assumption
    unbiased       : right on average over the keys; None where the release does not tell it
    standard_error : of `unbiased` over the keys; None with it. Of the other estimates no error is stated
    flattened      : what buckets give if every assignment of their values were equally likely, None in other layouts
    together       : where buckets tell little or nothing of the asked values by themselves, but more with others
    """

    estimate: float
    estimator: Estimator
    interval: tuple[float, float]
    low: int
    high: int
    unbiased: float | None = None
    standard_error: float | None = None
    flattened: float | None = None
    together: Together | None = None

    @staticmethod
    def exact(number: int) -> CountEstimate:
        """A number that the release tells."""
        n = float(number)
        return CountEstimate(n, "exact", (n, n), number, number, n, 0.0)

    @staticmethod
    def flattening(number: float, low: int, high: int) -> CountEstimate:
        """Where nothing but the flattened estimate is to be had."""
        number = min(max(number, float(low)), float(high))
        if low == high:
            return CountEstimate.exact(low)
        return CountEstimate(number, "flattened", (float(low), float(high)), low, high, flattened=number)

    def __str__(self) -> str:
        if self.estimator == "exact":
            return f"{self.estimate:,.0f} (exact)"
        parts = []
        if self.standard_error is not None and self.unbiased is not None:
            own = "" if self.estimator == "unbiased" else f"unbiased {self.unbiased:,.1f}, "
            least, most = self.interval
            parts.append(
                f"{own}standard error {self.standard_error:,.1f}; with 95 % confidence {least:,.1f} to {most:,.1f}"
            )
        elif self.interval != (self.low, self.high):
            parts.append("with 95 % confidence {:,.1f} to {:,.1f}".format(*self.interval))
        else:
            parts.append("no error is known")
        parts.append(f"certainly {self.low:,} to {self.high:,}")
        text = f"{self.estimate:,.1f} ({self.estimator}; {'; '.join(parts)})"
        if self.together is None:
            return text
        names = ", ".join("a missing value" if v is None else repr(v) for v in self.together.values[:5])
        more = f" and {len(self.together.values) - 5:,} more" if len(self.together.values) > 5 else ""
        return (
            f"{text}; buckets tell it better together with {names}{more}: {self.together.estimate:,.1f} "
            f"(standard error {self.together.standard_error:,.1f})"
        )
