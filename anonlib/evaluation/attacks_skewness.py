"""Skewness: how far a group lifts the belief in a value over the value's share of the table, and guessing the value that it lifts most.

Source: Li, Li, Venkatasubramanian, ICDE 2007, section 3.1: a group in which a rare value is common tells something of everybody in it,
however diverse it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.evaluation.attacks import Attack
from anonlib.evaluation.attacks_groups import ABOVE, GROWN, PERSONS, VALUES


def skewness(
    total: Float64Array,
    most: Float64Array,
    names: Sequence[str | None],
    shares: Sequence[float],
    prior: float,
    bounds: Sequence[Fraction | None],
    words: str,
) -> Attack:
    """The attack's figures from the sums and maxima of `attacks_groups.Tally`; names, shares, bounds : by value.

    detail: the largest `lift` (belief over share) with its value, and the largest `gain` (belief less share) with its.
    """
    share, belief = np.array(shares), most[VALUES:]
    lift, gain = belief / share, belief - share
    promised = np.array([bound is not None for bound in bounds])
    return Attack(
        "skewness",
        float(total[GROWN] / max(1.0, total[PERSONS])),
        prior,
        float(max(b for b in bounds if b is not None)) if promised.any() else None,
        {
            "lift": float(lift.max()),
            "lifted most": str(names[int(lift.argmax())]),
            "gain": float(gain.max()),
            "gained most": str(names[int(gain.argmax())]),
        },
        persons=round(total[PERSONS]),
        above=round(total[ABOVE]) if promised.any() else None,
        largest=float(belief[promised].max()) if promised.any() else None,
        words=words,
    )
