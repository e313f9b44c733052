"""The least loss with which a few records can be taken apart under beta-likeness: every shape, every split of values, every packing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from anonlib.privacy.beta_likeness import BetaLikeness


def can_be_filled(counts: tuple[int, ...], copies: tuple[int, ...], mu: int, c: int) -> bool:
    """Are there mu buckets of c records each, with value v in at most copies[v] of them? Bucket after bucket, all contents."""

    @cache
    def go(left: tuple[int, ...], may: tuple[int, ...], buckets: int) -> bool:
        if not buckets:
            return not any(left)
        for content in splits(tuple(n if k else 0 for n, k in zip(left, may, strict=True)), c):
            after = tuple(n - t for n, t in zip(left, content, strict=True))
            if go(after, tuple(k - (t > 0) for k, t in zip(may, content, strict=True)), buckets - 1):
                return True
        return False

    return sum(counts) == mu * c and go(counts, copies, mu)


def splits(most: tuple[int, ...], number: int) -> Iterator[tuple[int, ...]]:
    """Every way to take `number` records, at most so many of each value."""
    for taken in itertools.product(*(range(min(k, number) + 1) for k in most)):
        if sum(taken) == number:
            yield taken


def least(
    counts: np.ndarray, likeness: BetaLikeness, loss: Callable[[int, int], float], rare: bool
) -> tuple[float, list[tuple[int, int]]] | None:
    """(loss, [(mu, c) of each pool]) of a main pool, one with more matches if `rare`, and buckets of one record for the rest; None if
    nothing keeps the bound."""
    n, best = int(counts.sum()), None
    given = tuple(counts.tolist())
    filled = cache(lambda part, mu, c: can_be_filled(part, tuple(likeness.copies(mu).tolist()), mu, c))
    pools = [(mu, c) for mu in range(1, n + 1) for c in range(1, n // mu + 1)]
    others: list[tuple[int, int] | None] = [None, *(pools if rare else [])]
    for main, other in itertools.product(pools, others):
        rest = n - main[0] * main[1] - (other[0] * other[1] if other else 0)
        shape = [main, *([other] if other else []), *([(rest, 1)] if rest > 0 else [])]
        lost = sum(loss(mu, c) for mu, c in shape)
        if rest < 0 or (best is not None and lost >= best[0] - 1e-9):
            continue

        def fits(left: tuple[int, ...], of: list[tuple[int, int]]) -> bool:
            if len(of) == 1:
                return filled(left, *of[0])
            return any(
                filled(part, *of[0]) and fits(tuple(a - b for a, b in zip(left, part, strict=True)), of[1:])
                for part in splits(left, of[0][0] * of[0][1])
            )

        if fits(given, shape):
            best = (lost, shape)
    return best
