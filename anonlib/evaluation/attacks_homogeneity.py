"""Homogeneity: who knows which group a person is in guesses its most frequent value. This is the belief that promises bound."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.evaluation.attacks import Attack
from anonlib.evaluation.attacks_groups import ABOVE, CERTAIN, LIKELIEST, PERSONS, VALUES


def homogeneity(
    total: Float64Array, most: Float64Array, prior: float, bounds: Sequence[Fraction | None], words: str
) -> Attack:
    """The attack's figures from the sums and maxima of `attacks_groups.Tally`.

    bounds : by value, the largest belief allowed, or None; words : what they are

    detail: `certain`, persons with whom only one value is listed.
    """
    persons = max(1.0, total[PERSONS])
    promised = np.array([bound is not None for bound in bounds])
    return Attack(
        "homogeneity",
        float(total[LIKELIEST] / persons),
        prior,
        float(max(b for b in bounds if b is not None)) if promised.any() else None,
        {"certain": float(total[CERTAIN])},
        persons=round(total[PERSONS]),
        above=round(total[ABOVE]) if promised.any() else None,
        largest=float(most[VALUES:][promised].max()) if promised.any() else None,
        words=words,
    )
