"""Re-identification by join on the quasi-identifiers: who knows a person's looks for the published rows that they fit, and picks one.

What is guessed is the row, not a sensitive value; the accuracy is the chance to pick the person's own.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anonlib.arrays import Float64Array, Int64Array
from anonlib.evaluation.attacks import Attack


def reidentification(fits: Int64Array, weight: Float64Array, rows: int, bound: Fraction | None, words: str) -> Attack:
    """Picking one of the published rows that a person's quasi-identifiers fit.

    fits   : (P,) how many published rows each person's quasi-identifiers fit, none (0) for a person who is not published
    weight : (P,) how many persons each stands for; rows : published
    bound  : the largest allowed chance, e.g. 1/k, or None

    detail: `singled out`, the share of persons whom exactly one row fits.
    """
    held = np.asarray(fits) > 0
    fit, stands = np.asarray(fits, dtype=np.int64)[held], np.asarray(weight)[held]
    n = max(1e-300, float(stands.sum()))
    least = None if bound is None else -(-bound.denominator // bound.numerator)
    return Attack(
        "re-identification",
        float((stands / fit).sum() / n),
        1 / max(1, rows),
        None if bound is None else float(bound),
        {"singled out": float(stands[fit == 1].sum() / n)},
        persons=round(n),
        above=None if least is None else round(float(stands[fit < least].sum())),
        largest=None if bound is None or not len(fit) else float(1 / fit.min()),
        words=words,
    )
