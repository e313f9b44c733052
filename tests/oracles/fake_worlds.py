"""All ways that s of the values each bucket lists can be fake, where each value is a fake so often: counted, bucket by bucket. Slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

Fakes = tuple[int, ...]


def worlds_by_fakes(lists: Sequence[Sequence[int]], fakes: Sequence[int], s: int) -> list[dict[Fakes, int]]:
    """For each bucket: {its s fakes, ascending: in how many worlds they are}. fakes : how often each value is one over all buckets.

    Counts ways over buckets before and after by what is left of each value. Exponential in the number of values.
    """
    ways = [list(combinations(sorted(codes), s)) for codes in lists]
    before: list[Counter[Fakes]] = [Counter({tuple(fakes): 1})]
    for chosen in ways:
        left: Counter[Fakes] = Counter()
        for state, number in before[-1].items():
            for out in chosen:
                if all(state[v] for v in out):
                    left[_without(state, out)] += number
        before.append(left)
    after: Counter[Fakes] = Counter({(0,) * len(fakes): 1})
    found = []
    for state_counts, chosen in zip(before[-2::-1], ways[::-1], strict=True):
        here, earlier = dict.fromkeys(chosen, 0), Counter[Fakes]()
        for state, number in state_counts.items():
            for out in chosen:
                if all(state[v] for v in out) and (rest := after[_without(state, out)]):
                    here[out] += number * rest
                    earlier[state] += rest
        found.append(here)
        after = earlier
    return found[::-1]


def _without(state: Fakes, out: Fakes) -> Fakes:
    return tuple(left - (v in out) for v, left in enumerate(state))


def last_named(codes: Sequence[int], worlds: dict[Fakes, int], s: int) -> tuple[Fraction, Fraction]:
    """(how often, largest belief): of a bucket's records all but one are known, any one as likely to be the last, and the likeliest of
    the s + 1 values left is named."""
    total, right, largest = sum(worlds.values()), Fraction(0), Fraction(0)
    for left in combinations(sorted(codes), s + 1):
        real = [worlds[tuple(v for v in left if v != last)] for last in left]
        if sum(real):
            right += Fraction(max(real), total)
            largest = max(largest, Fraction(max(real), sum(real)))
    return right / (len(codes) - s), largest
