"""What a release promises about one person's value, as numbers by value and as words: what beliefs are held against. Pure.

Taken from the definitions, over `guarantee.asked` of the manifest. Where logarithms enter, the bound is rounded up at 10^-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from anonlib.exact import exact, text
from anonlib.release.manifest import GuaranteePart

FINE = 10**12


@dataclass(frozen=True)
class Bounds:
    """What a promise allows to be believed. of : by value, the largest belief allowed, exact, or None; words : the same for a reader."""

    of: tuple[Fraction | None, ...]
    words: str

    @property
    def largest(self) -> Fraction | None:
        """The largest belief allowed in any value that something is promised about; None when there is none."""
        return max((bound for bound in self.of if bound is not None), default=None)


def thresholds(part: GuaranteePart) -> Bounds:
    """The bounds of a bucketized release: every value's own threshold. A threshold of 1 promises nothing."""
    bounds = [None if v.threshold is None else exact(v.threshold) for v in part.values]
    kept = tuple(bound if bound is not None and bound < 1 else None for bound in bounds)
    if not any(kept):
        return Bounds(kept, "none promised: every threshold is 1")
    several = len(set(kept)) > 1
    free = sum(bound is None for bound in kept)
    words = (
        "F'-privacy: every value's share of a bucket is at most its own threshold"
        if several
        else (f"l-diversity: no value has more than {text(next(b for b in kept if b is not None))} of a bucket")
    )
    return Bounds(kept, words + (f"; {free} value(s) have the threshold 1, which promises nothing" if free else ""))


def of_classes(part: GuaranteePart) -> Bounds:
    """The bounds of a generalized release: for each value the least of what l, beta and t allow; None where they allow certainty."""
    n = sum(v.count for v in part.values)
    asked = {name: exact(number) for name, number in part.asked.items()}
    shares = [Fraction(v.count, n) for v in part.values]
    allowed: list[list[Fraction]] = [[] for _ in shares]
    sentences = []
    for name in ("l", "frequency_l"):
        if name in asked:
            sentences.append(f"l = {text(asked[name])}: no value above 1/{text(asked[name])}")
            for one in allowed:
                one.append(1 / asked[name])
    if "beta" in asked:
        sentences.append(f"beta = {text(asked['beta'])}: no value above (1 + beta) times its share of the table")
        for one, p in zip(allowed, shares, strict=True):
            one.append((1 + asked["beta"]) * p)
    if "enhanced_beta" in asked:
        sentences.append(
            f"beta = {text(asked['enhanced_beta'])}: no value above (1 + min(beta, -ln p)) p, p its share of the table"
        )
        for one, p in zip(allowed, shares, strict=True):
            log = Fraction(math.ceil(-math.log(p) * FINE) + 1, FINE)
            one.append((1 + min(asked["enhanced_beta"], log)) * p)
    if "t" in asked and part.distance == "flat":
        sentences.append(f"t = {text(asked['t'])}: no value more than t above its share of the table")
        for one, p in zip(allowed, shares, strict=True):
            one.append(p + asked["t"])
    elif "t" in asked:
        m = len(shares)
        steps = Fraction(m - 1) * asked["t"] if part.distance == "ordered" else None
        if steps is not None and steps < 1 and m > 1:
            for one, p in zip(allowed, shares, strict=True):
                one.append(p + steps)
            sentences.append(f"t = {text(asked['t'])}: no value more than (m - 1) t above its share of the table")
    kept = tuple(min(one) if one and min(one) < 1 else None for one in allowed)
    if not any(b is not None for b in kept):
        why = (
            "t bounds how far the values of a class are moved, not the share of a single one"
            if "t" in asked
            else (
                "k-anonymity hides which row, not which value"
                if "k" in asked
                else "the release states no bound on beliefs"
            )
        )
        return Bounds(kept, f"none promised: {why}")
    return Bounds(kept, "; ".join(sentences))
