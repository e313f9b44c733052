"""Re-identification risks as other tools give them: uniques, class sizes, prosecutor, journalist and marketer risk. Pure.

All of them ask how surely somebody picks *the row* of a person whose quasi-identifiers he knows; none of them asks what a row tells
about the person's sensitive value, which is what a release here promises something about.

    prosecutor   he knows that the person is in the table: 1 / (records that look like the person), at worst
    journalist   he does not; the records that look like the person are then those of the population. The table stands for the population
                 here, so the figure is the prosecutor's, and less where the table is a sample of more persons
    marketer     he links everybody: the share of persons he gets right on average, (number of classes) / (records)

Source: El Emam, Dankar: Protecting privacy using k-anonymity, JAMIA 15 (2008); the names are those of ARX and sdcMicro.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from anonlib.arrays import Float64Array, Int64Array

HIGH = 0.2
"""A risk above this is high: fewer than five records look alike."""


@dataclass(frozen=True)
class RiskMeasures:
    """records in `classes` classes of the same published quasi-identifiers, the smallest of `smallest`, `average` on average.

    uniques    : share of the records that look like no other
    high       : share of the records with a risk above `HIGH`
    prosecutor, journalist : the largest risk of a record; marketer : the average one
    """

    records: int
    classes: int
    smallest: int
    average: float
    uniques: float
    high: float
    prosecutor: float
    journalist: float
    marketer: float

    @staticmethod
    def of(sizes: Mapping[int, int]) -> RiskMeasures | None:
        """The measures of {class size: how many classes have it}; None of no class.

        >>> RiskMeasures.of({1: 2, 4: 2, 10: 1}).marketer
        0.25
        """
        held = {size: number for size, number in sizes.items() if size > 0 and number > 0}
        if not held:
            return None
        n, classes = sum(size * number for size, number in held.items()), sum(held.values())
        small = sum(size * number for size, number in held.items() if size * HIGH < 1)
        least = min(held)
        return RiskMeasures(
            n, classes, least, n / classes, held.get(1, 0) / n, small / n, 1 / least, 1 / least, classes / n
        )

    @staticmethod
    def of_fits(fits: Int64Array, weight: Float64Array) -> RiskMeasures | None:
        """The same where boxes overlap: of persons whom (P,) `fits` published rows fit and who stand for (P,) `weight` persons each.

        A person whom no row fits is not published, and at no risk of being found.
        """
        held = np.asarray(fits) > 0
        if not held.any():
            return None
        fit, stands = np.asarray(fits, dtype=np.int64)[held], np.asarray(weight, dtype=np.float64)[held]
        n, least = float(stands.sum()), int(fit.min())
        marketer = float((stands / fit).sum() / n)
        uniques, small = float(stands[fit == 1].sum() / n), float(stands[fit * HIGH < 1].sum() / n)
        return RiskMeasures(
            round(n), max(1, round(n * marketer)), least, 1 / marketer, uniques, small, 1 / least, 1 / least, marketer
        )

    def to_dict(self) -> dict[str, float]:
        """The measures by name."""
        return asdict(self)
