"""Which fakes stand beside the values that buckets really hold: a first choice, from counts alone, that fixes what each bucket lists.

Buckets that hold the same are dealt with together, so the cost goes with how many kinds there are, not with how many buckets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.errors import Unsatisfiable


class HeldStretch(Protocol):
    """Buckets `start` .. `stop` - 1 hold one record of each of `codes`: a stretch of `anonlib.kernels.ranked.round_robin.composition`."""

    @property
    def start(self) -> int: ...
    @property
    def stop(self) -> int: ...
    @property
    def codes(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class StretchWithFakes:
    """A stretch with its fakes: buckets `start` .. `stop` - 1 hold `real` and list `fake` too; all codes distinct."""

    start: int
    stop: int
    real: frozenset[int]
    fake: frozenset[int] = frozenset()

    def __contains__(self, code: int) -> bool:
        return code in self.real or code in self.fake

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes that the buckets list, real and fake alike, ascending."""
        return tuple(sorted(self.real | self.fake))


Levels = list[deque[StretchWithFakes]]
"""Buckets by how many fakes they still need."""


def fakes_beside(held: Sequence[HeldStretch], fakes: Int64Array, extra: int) -> list[StretchWithFakes]:
    """`extra` fakes for every bucket, value v fakes[v] times in all, none where it is real; in order of bucket id.

    fakes : (m,) int64 of sum extra * buckets. Raises Unsatisfiable when there is no such choice.

    Values go, those with the least choice first, to the buckets that need the most fakes; what then finds no place changes it with another
    value, which may be a real one: what buckets hold is then not quite what they held. At most m kinds of buckets more than `held` has,
    and two for each change; cost O(T) a kind, O(kinds) a change.
    """
    levels: Levels = [deque() for _ in range(extra + 1)]
    levels[extra].extend(StretchWithFakes(h.start, h.stop, frozenset(h.codes)) for h in held)
    room = np.full(len(fakes), held[-1].stop, dtype=np.int64)
    for h in held:
        room[list(h.codes)] -= h.stop - h.start
    for code in np.argsort(room - fakes, kind="stable").tolist():
        left = _join(levels, code, int(fakes[code]))
        while left:
            left -= _exchange(levels, code, left)
    return sorted((b for level in levels for b in level), key=lambda b: b.start)


def _join(levels: Levels, code: int, wanted: int) -> int:
    """Make `code` a fake of `wanted` buckets, those that need most first; how many were not found."""
    joined: list[tuple[int, StretchWithFakes]] = []  # put in only at the end: a bucket lists a value once
    for need in range(len(levels) - 1, 0, -1):
        level, passed = levels[need], []
        while level and wanted:
            first = level.popleft()
            if code in first:
                passed.append(first)
                continue
            joining = _cut(first, wanted, level)
            joined.append((need - 1, replace(joining, fake=joining.fake | {code})))
            wanted -= joining.stop - joining.start
        level.extendleft(reversed(passed))
    for need, buckets in joined:
        levels[need].append(buckets)
    return wanted


def _exchange(levels: Levels, code: int, wanted: int) -> int:
    """Make room for `code` in buckets that list it already and need a fake, by a change of places with others; in how many buckets.

    Others that lack it give a fake for it, or a real value if it is real here: it can then be a fake instead; or a real value for one that
    they list as a fake, which is a fake here from then on. Raises Unsatisfiable.
    """
    short = next(level[0] for level in reversed(levels) if level)
    for other in [b for level in levels for b in level if code not in b]:
        number = min(wanted, short.stop - short.start, other.stop - other.start)
        spare = next((u for u in sorted(other.fake) if u not in short), None)
        if spare is not None:
            _put(levels, short, number, short.real, short.fake | {spare})
            _put(levels, other, number, other.real, other.fake - {spare} | {code})
            return number
        spare = next((u for u in sorted(other.real) if u not in short), None)
        if spare is not None and code in short.real:
            _put(levels, short, number, short.real - {code} | {spare}, short.fake | {code})
            _put(levels, other, number, other.real - {spare} | {code}, other.fake)
            return number
    for other in [b for level in levels for b in level if code not in b]:
        number = min(wanted, short.stop - short.start, other.stop - other.start)
        spare = next((u for u in sorted(other.real) if u not in short), None)
        twice = next((w for w in sorted(other.fake) if w in short.real), None)
        if spare is not None and twice is not None:  # a real value for a real one, of which a fake goes the other way
            _put(levels, short, number, short.real - {twice} | {spare}, short.fake | {twice})
            _put(levels, other, number, other.real - {spare} | {twice}, other.fake - {twice} | {code})
            return number
    raise Unsatisfiable(
        "fake_values: buckets of these sizes cannot list that many distinct values, each a fake as often as it is common; lower "
        "fake_values or max_bucket_size"
    )


def _put(levels: Levels, buckets: StretchWithFakes, number: int, real: frozenset[int], fake: frozenset[int]) -> None:
    """The first `number` of the buckets hold `real` and list `fake` from now on."""
    level = levels[len(levels) - 1 - len(buckets.fake)]
    level.remove(buckets)
    changed = _cut(buckets, number, level)
    levels[len(levels) - 1 - len(fake)].append(replace(changed, real=real, fake=fake))


def _cut(buckets: StretchWithFakes, most: int, rest: deque[StretchWithFakes]) -> StretchWithFakes:
    """The first `most` of the buckets; the others, if any, are put back in front of `rest`."""
    middle = min(buckets.stop, buckets.start + most)
    if middle < buckets.stop:
        rest.appendleft(replace(buckets, start=middle))
    return replace(buckets, stop=middle)
