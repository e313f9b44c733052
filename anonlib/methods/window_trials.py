"""What a stream's windows come to with records that are there already: cases, classes, loss, delay and state, by window and advance.

Nothing of it is published: a trial tells a steward what a setting loses, before a stream begins that cannot change it. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.domains import Domain
from anonlib.kernels.classes import halving
from anonlib.kernels.classes.sabre_window import Advance, Case, Records, Windows
from anonlib.methods.sabre_window import WindowClasses
from anonlib.methods.window_state import Kept, packed
from anonlib.privacy.t_closeness import GroundDistance

WORK = 200_000
"""Records of all windows of a trial together, about: what bounds its time."""
FEWEST_ADVANCES, MOST_ADVANCES = 2, 40
CASES: tuple[Case, ...] = ("direct", "indirect", "nothing")


@dataclass(frozen=True)
class Trial:
    """What one setting came to.

    size, advance : omega and I; records : how many were played; cases : how many advances were which
    shown, classes : records that came out, and in how many classes; loss : SABRE's average information loss of those, in [0, 1]
    mean_delay, longest_delay : how many others arrived between a record that came out and its coming out; state : bytes, at most
    """

    size: int
    advance: int
    records: int
    cases: Mapping[Case, int]
    shown: int
    classes: int
    loss: float
    mean_delay: float
    longest_delay: int
    state: int


def near(size: int, advance: int, least: int) -> list[tuple[int, int]]:
    """The setting asked, (omega, I), and those beside it that a spec may ask for, ascending. least : records to advance by, at least."""
    beside = {(size, advance), (size, size), (2 * size, advance), (size, 2 * advance)}
    if advance % 2 == 0:
        beside.add((size, advance // 2))
    if size % 2 == 0:
        beside.add((size // 2, advance))
    return sorted((omega, i) for omega, i in beside if omega % i == 0 and (i >= least or (omega, i) == (size, advance)))


def wanted(size: int, advance: int) -> int:
    """Records that a trial of the setting plays, where there are so many."""
    steps = min(MOST_ADVANCES, max(FEWEST_ADVANCES, WORK // size))
    return size + (steps - 1) * advance


def tried(
    records: Records,
    domains: tuple[Domain, ...],
    distance: GroundDistance,
    setting: tuple[int, int],
    k: int,
    t: Fraction,
) -> Trial | None:
    """The newest `wanted` of `records` through windows of the setting; None where they are too few for one window to advance.

    O(omega m) and what classes cost, for each advance; see `anonlib.kernels.classes.sabre_window`.
    """
    size, advance = setting
    if len(records) < size + advance:
        return None
    played = records.taken(np.arange(max(0, len(records) - wanted(size, advance)), len(records)))
    windows = Windows(size, advance, k, distance, t, WindowClasses(domains, distance, k, bytes(32)))
    state, done, most = windows.begin(played.columns), [], 0
    for start in range(0, len(played), advance):
        advances, state = windows.advanced(state, played.taken(np.arange(start, min(start + advance, len(played)))))
        done += advances
        most = max(most, len(packed(Kept(state, 0))))
    return _measured(done, domains, distance.m, setting, len(played), most)


def _measured(
    done: list[Advance], domains: tuple[Domain, ...], m: int, setting: tuple[int, int], records: int, state: int
) -> Trial:
    parts = [(advance, advance.shown) for advance in done if advance.shown is not None]
    delays = np.concatenate([advance.arrived - 1 - shown.number for advance, shown in parts])
    loss, classes = 0.0, 0
    for _, shown in parts:
        each = np.arange(len(shown.records), dtype=np.int64)
        _, own = np.unique(shown.classes, return_inverse=True)
        held = halving.Records(list(shown.records.columns), domains, [shown.records.sensitive], (m,), each, each)
        sizes = np.bincount(own)
        of_classes = halving.information_loss(held, each, own.astype(np.int64), len(sizes))
        loss += float((of_classes * sizes).sum()) / len(domains)
        classes += len(sizes)
    counts = Counter(advance.case for advance in done)
    return Trial(
        *setting,
        records=records,
        cases={case: counts[case] for case in CASES},
        shown=len(delays),
        classes=classes,
        loss=loss / len(delays),
        mean_delay=float(delays.mean()),
        longest_delay=int(delays.max()),
        state=state,
    )
