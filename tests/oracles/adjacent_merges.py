"""Every way to cut a sequence of groups into runs, tried one after the other, in exact arithmetic but for the square root."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise


def cost(counts: list[int], protected: list[bool], rho2: Fraction) -> float:
    """|g| eps(g) / a of a group given by its count of every value; infinite where rho1 reaches rho2 or nothing is protected."""
    size = sum(counts)
    most = max((c for c, p in zip(counts, protected, strict=True) if p), default=0)
    rho1 = Fraction(most, size)
    if not 0 < rho1 < rho2:
        return math.inf
    gamma = rho2 * (1 - rho1) / (rho1 * (1 - rho2))
    m = sum(1 for c in counts if c)
    return math.sqrt(size) * float((m - 1 + gamma) / (gamma - 1))


def best_runs(groups: list[list[int]], protected: list[bool], rho2: Fraction) -> float:
    """The least total cost over all 2^(t-1) sets of boundaries."""
    t = len(groups)
    best = math.inf
    for number in range(t):
        for cuts in combinations(range(1, t), number):
            ends = [0, *cuts, t]
            runs = [[sum(c) for c in zip(*groups[a:b], strict=True)] for a, b in pairwise(ends)]
            best = min(best, math.fsum(cost(run, protected, rho2) for run in runs))
    return best
