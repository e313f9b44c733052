"""Elimination: where every row that may be a person's is known, a value shown twice among them is not the person's.

Under l-diversity by matching, the candidates of a row carry different values, so a row that may be person i's shows i's value only if it
is i's own row; i's value is therefore shown exactly once among the rows around i. Where exactly l boxes hold a person these are those
rows, and published rows and quasi-identifiers suffice to strike out values.

Under beta-likeness a value may be shown more than once, and is then so much likelier. Nobody has fewer rows around than the fewest
matches mu of any record, which the manifest tells; who is in exactly mu boxes has these rows around and no others, and is believed to
have a value with the share of them that show it. Pure; O(P m).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonlib.arrays import Float64Array, Int64Array
from anonlib.evaluation.attacks import Attack


def elimination(around: Int64Array, truth: Int64Array, weight: Float64Array, matches: int, prior: float) -> Attack:
    """Elimination under l-diversity by matching, on persons in exactly l boxes.

    around  : (P, m) how many rows with each value have a box that holds each person
    truth   : (P,) codes; weight : (P,) how many persons each stands for; matches : l, of which the bound is 1/l

    What is left of a person's values is equally likely; `certain` persons are left one. A person with nothing left (an original that is
    not the release's) is passed over.
    """
    once = around == 1
    left = once.sum(axis=1)
    attacked = (around.sum(axis=1) == matches) & (left > 0)
    left, stands = left[attacked], weight[attacked]
    n = float(stands.sum())
    right = once[attacked, truth[attacked]] / left
    above = left < matches
    return Attack(
        "elimination",
        float((stands * right).sum() / n) if n else 0.0,
        prior,
        float(Fraction(1, matches)),
        {"certain": float(stands[left == 1].sum()), "of the sample": float(attacked.sum())},
        persons=round(n),
        above=round(float(stands[above].sum())),
        largest=float(1 / left.min()) if len(left) else 0.0,
        words=f"1/l; attacked are persons in exactly l = {matches} boxes, values shown twice struck out (of a sample of {len(truth):,})",
    )


def shown_most(
    around: Int64Array,
    truth: Int64Array,
    weight: Float64Array,
    matches: int,
    prior: float,
    bounds: Sequence[Fraction | None],
    words: str,
) -> Attack:
    """around, truth, weight : as above; matches : mu, the fewest of any record; bounds : by value, the largest belief allowed, or None.

    Attacked are the persons in exactly mu boxes; the value that most of these show is guessed, one of several at random. `above` compares
    counts with floor(bound mu), exactly. detail: `certain`, persons to whom one value is shown.
    """
    attacked = around.sum(axis=1) == matches
    rows, stands, own = around[attacked], weight[attacked], truth[attacked]
    n = float(stands.sum())
    best = rows == rows.max(axis=1, keepdims=True, initial=0)
    right = best[np.arange(len(rows)), own] / np.maximum(best.sum(axis=1), 1)
    allowed = np.array([matches if b is None else b.numerator * matches // b.denominator for b in bounds])
    promised = np.array([b is not None for b in bounds])
    above = (rows > allowed).any(axis=1)
    least = rows[:, promised].max(initial=0) / matches
    return Attack(
        "elimination",
        float((stands * right).sum() / n) if n else 0.0,
        prior,
        float(max(b for b in bounds if b is not None)) if promised.any() else None,
        {"certain": float(stands[(rows > 0).sum(axis=1) == 1].sum()), "of the sample": float(attacked.sum())},
        persons=round(n),
        above=round(float(stands[above].sum())) if promised.any() else None,
        largest=float(least) if promised.any() else None,
        words=f"{words}; attacked are persons in exactly mu = {matches} boxes, the fewest there are (of a sample of {len(truth):,})",
    )
