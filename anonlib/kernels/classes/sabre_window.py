"""SABRE_W: one advance of a window over a stream, state in, shown classes and state out.

Source: SABRE, section 5. A window is omega records that arrived one after another; it advances by I of them, omega = j I. A record is
*expiring* when the window's next advance leaves it behind. With R all records of a window, N those of them not shown yet, E the expiring
ones among N and D = EMD(N, R), an advance is one of three:

    nothing    E is empty
    direct     D < t: N is cut into classes that are (t - D)-close to N, so t-close to R by the triangle inequality. Those that hold a
               record of E are shown, the others stand by (S_G in the paper) and replace those of before
    indirect   D >= t: all classes that stand by are shown. Each record of E is in one of them (Theorem 5)

A class belongs to the window it was formed in, and that is the one it is t-close to, whenever it is shown.

The end of a stream (`flushed`) has a window too: the newest omega records. What cannot be shown then waits, and is what the next stretch
of the stream begins with.

What is decided here looks at counts of sensitive values and at arrival alone; what forms classes is given (`Form`). Thresholds are exact.
Cost: O(omega m) integers a window, and what `Form` costs. Memory: the records not shown, and omega sensitive codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from anonlib.arrays import BoolArray, Codes, Int64Array
from anonlib.errors import AnonlibError
from anonlib.kernels.classes.equivalence_classes import BROKEN, broken_classes
from anonlib.privacy.t_closeness import GroundDistance, TCloseness

Form = Callable[[Sequence[Codes], Int64Array, Fraction, int], Int64Array]
"""(code columns, sensitive codes, t, number of the window) -> the class of each record, numbered without a hole, of k records or more, each
class t-close to all that are given. May look at nothing else, least of all at the order of the records."""
Case = Literal["nothing", "direct", "indirect"]

LOOSE = -1
"""The class of a record that stands in none yet."""


@dataclass(frozen=True, eq=False)
class Records:
    """n records in the order of their arrival. columns : d code columns, each (n,); sensitive : (n,) int64 codes."""

    columns: tuple[Codes, ...]
    sensitive: Int64Array

    def __len__(self) -> int:
        return len(self.sensitive)

    def taken(self, chosen: Int64Array | BoolArray) -> Records:
        """Some of them."""
        return Records(tuple(column[chosen] for column in self.columns), self.sensitive[chosen])

    def followed_by(self, others: Records) -> Records:
        """These, then the others."""
        columns = tuple(np.concatenate(pair) for pair in zip(self.columns, others.columns, strict=True))
        return Records(columns, np.concatenate([self.sensitive, others.sensitive]))


@dataclass(frozen=True, eq=False)
class State:
    """A stream between two advances. Records are numbered as they arrive, from 0.

    window  : number of the next window; start : the first record that it holds; arrived : how many records have arrived
    values  : sensitive codes of the newest records, (n,) int64, the last of them record `arrived - 1`: omega of them once there are as many
    waiting : records not shown yet, ascending; number : (n,) int64, theirs
    classes : (n,) int64, the class of each waiting record that stands by, else `LOOSE`
    formed  : number of the window in which those were formed; spread : (m,) int64, how many records of it had each sensitive value
    """

    window: int
    start: int
    arrived: int
    values: Int64Array
    waiting: Records
    number: Int64Array
    classes: Int64Array
    formed: int
    spread: Int64Array


@dataclass(frozen=True, eq=False)
class Shown:
    """Classes of one window that are shown at once.

    records : theirs; number : (n,) int64, when each arrived; classes : (n,) int64, the class of each within its window
    window  : the window they were formed in; spread : (m,) int64, its sensitive values: evidence, never published
    """

    records: Records
    number: Int64Array
    classes: Int64Array
    window: int
    spread: Int64Array


@dataclass(frozen=True, eq=False)
class Advance:
    """What one advance did.

    window   : its number; arrived : how many records had arrived; distance : D, or None where nothing was to be done
    unshown, expiring : |N| and |E| before it; held_back : records that the end of a stream could not show
    """

    window: int
    case: Case
    arrived: int
    unshown: int
    expiring: int
    distance: Fraction | None = None
    shown: Shown | None = None
    held_back: int = 0


@dataclass(frozen=True, eq=False)
class Windows:
    """SABRE_W with its parameters.

    size, advance : omega and I, omega a multiple of I; k : records of a class, at most I, so that a window always has enough unshown
    distance, t   : between the m sensitive values, and the threshold; form : makes the classes
    Raises ValueError for sizes that do not fit one another.
    """

    size: int
    advance: int
    k: int
    distance: GroundDistance
    t: Fraction
    form: Form

    def __post_init__(self) -> None:
        if self.advance < 1 or self.size < 1 or self.size % self.advance:
            raise ValueError(f"a window of {self.size} records cannot advance by {self.advance}")
        if not 1 <= self.k <= self.advance:
            raise ValueError(f"{self.k} records of a class are not to be had from each {self.advance}")

    def begin(self, columns: Sequence[Codes]) -> State:
        """The state before the first record. columns : empty code columns, of the types that records will have."""
        none = np.zeros(0, dtype=np.int64)
        waiting = Records(tuple(np.asarray(column)[:0] for column in columns), none)
        return State(0, 0, 0, none, waiting, none, none, -1, np.zeros(self.distance.m, dtype=np.int64))

    def advanced(self, state: State, arriving: Records) -> tuple[list[Advance], State]:
        """All advances that are due once `arriving` has arrived, in order. Raises AnonlibError for a class that breaks its promise."""
        state = _appended(state, arriving)
        done: list[Advance] = []
        while state.arrived >= state.start + self.size:
            advance, state = self._advance(state)
            done.append(advance)
        return done, self._trimmed(state)

    def flushed(self, state: State) -> tuple[Advance, State]:
        """The end of a stream: the rest is shown, directly if D < t, else the classes that stand by.

        The window is the newest omega records. One of fewer than I records would show who they are: nothing is shown then.
        What is held back is where the stream goes on from, as if it arrived anew.
        """
        values, unshown = state.values[-self.size :], len(state.waiting)
        distance = self._distance(state.waiting.sensitive, values) if unshown and len(values) >= self.advance else None
        shown: list[Shown] = []
        if distance is not None and distance < self.t and unshown >= self.k:
            case: Case = "direct"
            formed = self._formed(state, np.ones(unshown, dtype=bool), values, self.t - distance)
            shown, left = _split(formed, np.ones(unshown, dtype=bool))
        else:
            case = "indirect" if (state.classes != LOOSE).any() else "nothing"
            shown, left = _split(state, state.classes != LOOSE)
        rest = len(left.waiting)
        begun = replace(
            left,
            window=state.window + 1,
            start=state.arrived - rest,
            values=left.waiting.sensitive,
            number=np.arange(state.arrived - rest, state.arrived, dtype=np.int64),
            classes=np.full(rest, LOOSE, dtype=np.int64),
        )
        advance = Advance(
            state.window, case, state.arrived, unshown, unshown, distance, shown[0] if shown else None, rest
        )
        return advance, begun

    def _advance(self, state: State) -> tuple[Advance, State]:
        first = len(state.values) - (state.arrived - state.start)
        values = state.values[first : first + self.size]
        unshown = state.number < state.start + self.size
        expiring = state.number < state.start + self.advance
        arrived, counts = state.start + self.size, (int(unshown.sum()), int(expiring.sum()))
        if not expiring.any():
            return Advance(state.window, "nothing", arrived, *counts), self._moved(state)
        distance = self._distance(state.waiting.sensitive[unshown], values)
        if distance < self.t:
            case: Case = "direct"
            formed = self._formed(state, unshown, values, self.t - distance)
            to_show = np.isin(formed.classes, formed.classes[expiring]) & unshown
            shown, left = _split(formed, to_show)
        else:
            case = "indirect"
            if (state.classes[expiring] == LOOSE).any():
                raise AnonlibError("an expiring record stands in no class; nothing more is published of this stream")
            shown, left = _split(state, state.classes != LOOSE)
        return Advance(state.window, case, arrived, *counts, distance, shown[0]), self._moved(left)

    def _moved(self, state: State) -> State:
        return replace(state, window=state.window + 1, start=state.start + self.advance)

    def _distance(self, unshown: Int64Array, values: Int64Array) -> Fraction:
        return TCloseness(self.distance, self._counted(values), self.t).emd(self._counted(unshown))[0]

    def _formed(self, state: State, members: BoolArray, values: Int64Array, t: Fraction) -> State:
        """The state with classes of this window instead of those that stood by; every class checked against the window itself."""
        records = state.waiting.taken(members)
        own = self.form(records.columns, records.sensitive, t, state.window)
        closeness = TCloseness(self.distance, self._counted(values), self.t)
        if (
            broken_classes(own, [records.sensitive], [self.distance.m], closeness).size
            or np.bincount(own).min() < self.k
        ):
            raise AnonlibError(BROKEN)
        classes = np.full(len(members), LOOSE, dtype=np.int64)
        classes[members] = own
        return replace(state, classes=classes, formed=state.window, spread=closeness.table)

    def _counted(self, sensitive: Int64Array) -> Int64Array:
        return np.bincount(sensitive, minlength=self.distance.m).astype(np.int64)

    def _trimmed(self, state: State) -> State:
        """Without the sensitive codes that no window looks at any more: the next one begins among the newest omega."""
        return replace(state, values=state.values[-self.size :].copy())


def _appended(state: State, arriving: Records) -> State:
    more = len(arriving)
    return replace(
        state,
        arrived=state.arrived + more,
        values=np.concatenate([state.values, arriving.sensitive]),
        waiting=state.waiting.followed_by(arriving),
        number=np.concatenate([state.number, np.arange(state.arrived, state.arrived + more, dtype=np.int64)]),
        classes=np.concatenate([state.classes, np.full(more, LOOSE, dtype=np.int64)]),
    )


def _split(state: State, to_show: BoolArray) -> tuple[list[Shown], State]:
    """The records to show, all of the window that `state.formed` names, and the state without them."""
    shown = []
    if to_show.any():
        records = state.waiting.taken(to_show)
        shown = [Shown(records, state.number[to_show], state.classes[to_show], state.formed, state.spread)]
    kept = ~to_show
    left = replace(state, waiting=state.waiting.taken(kept), number=state.number[kept], classes=state.classes[kept])
    return shown, left
