"""SABRE_W on small streams: the paper's example, and what every stream must keep, by a distance that is computed apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.errors import AnonlibError
from anonlib.hierarchy import parse_hierarchy
from anonlib.kernels.classes.sabre_window import Advance, Records, State, Windows
from anonlib.methods.sabre_window import WindowClasses
from anonlib.privacy.t_closeness import GroundDistance
from tests.thorough import trials

TREE = parse_hierarchy("a,1,any\nb,1,any\nc,2,any\nd,2,any\ne,2,any\n")
DOMAINS = (NumericDomain("age", 0.0, 60.0), CategoricalDomain("place", ("x", "y", "z")))
KEY = bytes(range(7, 39))
LEAVES = "abcde"


def emd(kind: str, one: list[int], other: list[int], m: int) -> Fraction:
    """The earth mover's distance between the values of two lists, from its definition on a line, a tree or a flat domain."""
    of_one, of_other = Counter(one), Counter(other)
    gap = [Fraction(of_one[v], len(one)) - Fraction(of_other[v], len(other)) for v in range(m)]
    if kind == "ordered":
        return sum((abs(sum(gap[: i + 1], Fraction(0))) for i in range(m - 1)), Fraction(0)) / max(1, m - 1)
    if kind == "flat":
        return sum((g for g in gap if g > 0), Fraction(0))
    # the paper's own sum over inner nodes: what can be evened out below a node costs its height
    cost, left = Fraction(0), []
    for below in ([0, 1], [2, 3, 4]):
        more, less = sum(max(gap[v], 0) for v in below if v < m), -sum(min(gap[v], 0) for v in below if v < m)
        cost += Fraction(1, 2) * min(more, less)
        left.append(more - less)
    return cost + sum((g for g in left if g > 0), Fraction(0))


def distance(kind: str, m: int) -> GroundDistance:
    if kind == "hierarchical":
        return GroundDistance.hierarchical(TREE, list(LEAVES))
    return GroundDistance.ordered([str(v) for v in range(m)]) if kind == "ordered" else GroundDistance.flat(m)


def drifting(draw: np.random.Generator, n: int, m: int) -> Records:
    """n records whose sensitive values change with time, by leaps, and go with their age."""
    centre = np.repeat(draw.integers(0, m, n // 7 + 1), 7)[:n]
    stray = draw.integers(0, m, n)
    sensitive = np.where(draw.random(n) < draw.choice([0.1, 0.5, 0.9]), centre, stray)
    age = np.clip(sensitive * 60 // m + draw.integers(0, 20, n), 0, 60)
    return Records((age, draw.integers(0, 3, n)), sensitive)


def played(windows: Windows, records: Records, cuts: list[int]) -> tuple[list[Advance], State]:
    """All advances of a stream that arrives in pieces."""
    state, done = windows.begin(records.columns), []
    for start, stop in zip([0, *cuts], [*cuts, len(records)], strict=True):
        advances, state = windows.advanced(state, records.taken(np.arange(start, stop)))
        done += advances
    return done, state


def shown_once(done: list[Advance]) -> dict[int, tuple[int, int, Advance]]:
    """{record: (its window, its class, the advance that showed it)}; asserts that none is shown twice."""
    of: dict[int, tuple[int, int, Advance]] = {}
    for advance in done:
        if advance.shown is not None:
            for number, own in zip(advance.shown.number.tolist(), advance.shown.classes.tolist(), strict=True):
                assert number not in of
                of[number] = (advance.shown.window, own, advance)
    return of


def kept(windows: Windows, kind: str, records: Records, done: list[Advance], state: State) -> None:
    """What (omega, t)-closeness and the expiring constraint ask, recomputed from the records themselves."""
    of, codes = shown_once(done), records.sensitive.tolist()
    classes: dict[tuple[int, int], list[int]] = {}
    for number, (window, own, _) in of.items():
        classes.setdefault((window, own), []).append(number)
    for (window, _), members in classes.items():
        held = range(window * windows.advance, window * windows.advance + windows.size)
        assert set(members) <= set(held)
        near = emd(kind, [codes[i] for i in members], [codes[i] for i in held], windows.distance.m)
        assert near <= windows.t
        assert len(members) >= windows.k
        assert len({of[i][2].window for i in members}) == 1  # a class is shown whole, at once
    assert set(of) | set(state.number.tolist()) == set(range(len(records)))
    assert not set(of) & set(state.number.tolist())
    for number, (_, _, advance) in of.items():
        assert advance.arrived - 1 - number < windows.size
    assert all(number >= state.start for number in state.number.tolist())
    for advance in done:
        if advance.shown is not None:
            records_shown = records.taken(advance.shown.number)
            assert np.array_equal(records_shown.sensitive, advance.shown.records.sensitive)
            assert all(
                np.array_equal(a, b) for a, b in zip(records_shown.columns, advance.shown.records.columns, strict=True)
            )
            held = slice(advance.shown.window * windows.advance, advance.shown.window * windows.advance + windows.size)
            assert np.array_equal(np.bincount(codes[held], minlength=windows.distance.m), advance.shown.spread)


KINDS = st.sampled_from(["ordered", "flat", "hierarchical"])


@pytest.mark.long
@given(st.integers(0, 2**32), KINDS)
@settings(max_examples=trials(3000, 12), deadline=None)
def test_streams_keep_closeness_and_delay(seed: int, kind: str):
    draw = np.random.default_rng(seed)
    m = 5 if kind == "hierarchical" else int(draw.integers(1, 6))
    advance, times = int(draw.integers(2, 9)), int(draw.integers(1, 5))
    records = drifting(draw, int(draw.integers(0, 120)), m)
    t, k = Fraction(int(draw.integers(1, 20)), 40), int(draw.integers(1, advance + 1))
    ground = distance(kind, m)
    windows = Windows(advance * times, advance, k, ground, t, WindowClasses(DOMAINS, ground, k, KEY))
    cuts = sorted(draw.integers(0, len(records) + 1, int(draw.integers(0, 5))).tolist())
    done, state = played(windows, records, cuts)
    kept(windows, kind, records, done, state)
    assert len(done) == max(0, (len(records) - windows.size) // advance + 1)
    assert times > 1 or all(step.case == "direct" for step in done)

    whole, end = played(windows, records, [])  # how the stream was cut into pieces shows nowhere
    assert [(a.case, a.window, a.distance) for a in whole] == [(a.case, a.window, a.distance) for a in done]
    assert {n: v[:2] for n, v in shown_once(whole).items()} == {n: v[:2] for n, v in shown_once(done).items()}

    last, rest = windows.flushed(end)
    everything = shown_once([*whole, last])
    assert len(everything) + last.held_back == len(records) == len(everything) + len(rest.waiting)
    if last.shown is not None and last.case == "direct":
        newest = records.sensitive[-windows.size :].tolist()
        assert len(newest) >= advance
        for own in set(last.shown.classes.tolist()):
            members = last.shown.records.sensitive[last.shown.classes == own].tolist()
            assert emd(kind, members, newest, m) <= t
            assert len(members) >= k
        assert not last.held_back
    again, _ = windows.advanced(rest, drifting(draw, 4 * windows.size, m))  # what is held back comes out later
    later = [i for a in again if a.shown is not None for i in a.shown.number.tolist()]
    assert set(rest.number.tolist()) <= set(later)
    assert len(later) == len(set(later))


def test_every_case_occurs():
    """The streams above meet all three: else nothing was shown about the third."""
    met: Counter[str] = Counter()
    for seed in range(15):
        draw = np.random.default_rng(seed)
        ground = distance("flat", 4)
        windows = Windows(24, 6, 2, ground, Fraction(1, 10), WindowClasses(DOMAINS, ground, 2, KEY))
        met.update(a.case for a in played(windows, drifting(draw, 160, 4), [])[0])
    assert min(met["direct"], met["indirect"], met["nothing"]) >= 5


def by_label(columns, sensitive, t, window):
    """Classes that the records' first quasi-identifier names."""
    return np.unique(columns[0], return_inverse=True)[1].astype(np.int64)


A, B, C, D, E = range(5)
EXAMPLE_8 = [
    ((0, A), (1, A), (0, A), (1, A)),
    ((0, B), (1, B), (0, B), (1, B)),
    ((0, A), (1, A), (0, B), (1, B)),
    ((0, B), (1, B), (0, C), (1, C)),
    ((0, B), (1, B), (0, C), (1, C)),
    *[((2, D),) * 4] * 4,
    *[((2, E),) * 4] * 3,
]
"""Blocks of four records, (sensitive value, the class it will be in): of the window 4..7 only C and the 2s are left when it advances."""


def test_example_8():
    flat = [record for block in EXAMPLE_8 for record in block]
    records = Records((np.array([label for _, label in flat]),), np.array([value for value, _ in flat]))
    windows = Windows(16, 4, 1, GroundDistance.flat(3), Fraction(1, 6), by_label)
    done, _ = played(windows, records, [])
    assert [a.case for a in done[:6]] == ["direct", "direct", "nothing", "indirect", "nothing", "direct"]
    shown = [(a.shown.window, sorted(set(a.shown.records.columns[0].tolist()))) for a in done[:6] if a.shown]
    assert shown == [(0, [A]), (1, [B]), (1, [C]), (5, [D])]
    assert done[3].distance == Fraction(1, 6) == windows.t  # D < t is strict
    kept(windows, "flat", records, done, played(windows, records, [])[1])


def test_a_class_that_breaks_its_promise_stops_the_stream():
    records = Records((np.array([0, 0, 1, 1] * 4),), np.array([0, 0, 1, 1] * 4))
    windows = Windows(8, 4, 1, GroundDistance.flat(2), Fraction(1, 4), by_label)
    with pytest.raises(AnonlibError, match="does not keep what was asked"):
        played(windows, records, [])
    few = replace(windows, k=4, form=lambda columns, sensitive, t, window: np.arange(len(sensitive)) // 2)
    with pytest.raises(AnonlibError, match="does not keep what was asked"):
        played(few, Records((np.zeros(16),), np.arange(16) % 2), [])


def test_an_expiring_record_without_a_class_stops_the_stream():
    windows = Windows(16, 4, 1, GroundDistance.flat(3), Fraction(1, 6), by_label)
    flat = [record for block in EXAMPLE_8 for record in block]
    records = Records((np.array([label for _, label in flat]),), np.array([value for value, _ in flat]))
    _, state = played(windows, records.taken(np.arange(24)), [])
    lost = replace(state, classes=np.full_like(state.classes, -1))
    with pytest.raises(AnonlibError, match="stands in no class"):
        windows.advanced(lost, records.taken(np.arange(24, 40)))


def test_the_end_of_a_stream_of_few_records_shows_nothing():
    windows = Windows(16, 4, 1, GroundDistance.flat(3), Fraction(1, 6), by_label)
    _, state = played(windows, Records((np.zeros(3, dtype=int),), np.array([0, 1, 2])), [])
    last, rest = windows.flushed(state)
    assert (last.case, last.shown, last.held_back) == ("nothing", None, 3)
    assert rest.number.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("size", "advance", "k"), [(10, 3, 1), (10, 0, 1), (0, 1, 1), (8, 4, 5), (8, 4, 0)])
def test_sizes_that_do_not_fit_are_refused(size: int, advance: int, k: int):
    with pytest.raises(ValueError, match="record"):
        Windows(size, advance, k, GroundDistance.flat(2), Fraction(1, 2), by_label)
