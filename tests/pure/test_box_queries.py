"""Shares of boxes within queries, cells of a cube, members of boxes: each against an obvious twin that enumerates values."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from anonlib.domains import CategoricalDomain, NumericDomain, generalized_certainty_penalty
from anonlib.hierarchy import parse_hierarchy
from anonlib.queries.box_batch import BoxEstimates, PointCounts, RangeQueries, shares_within
from anonlib.queries.box_members import MemberCounts, Members, inside, sides
from anonlib.queries.boxes import BoxReader, Intervals, Sets
from anonlib.queries.cells import BoxCells, Cells, Cube, PointCells, divergence

TREE = parse_hierarchy("a,x,any\nb,x,any\nc,y,any\nd,y,any\ne,z,any\n")
AGE = NumericDomain("age", 0.0, 9.0)
PLACE = CategoricalDomain("place", ("p", "q", None))
KIND = CategoricalDomain("kind", TREE.labels[:5], TREE)
DOMAINS = (AGE, PLACE, KIND)
SIZES = (10, 3, 5)
SENSITIVE = ("flu", "gout", None)


def boxes(rng, n: int):
    """n random boxes as lists of codes per attribute, and sensitive codes with counts."""
    held = []
    for _ in range(n):
        low = int(rng.integers(0, 10))
        one = [list(range(low, int(rng.integers(low, 10)) + 1))]
        for size in SIZES[1:]:
            one.append(sorted(rng.choice(size, size=int(rng.integers(1, size + 1)), replace=False).tolist()))
        codes = sorted(rng.choice(3, size=int(rng.integers(1, 4)), replace=False).tolist())
        held.append((one, codes, rng.integers(1, 5, len(codes)).tolist()))
    return held


def batch(held) -> pa.RecordBatch:
    columns = {
        "q0_lo": pa.array([one[0][0] for one, _, _ in held], pa.int64()),
        "q0_hi": pa.array([one[0][-1] for one, _, _ in held], pa.int64()),
        "q1_set": pa.array([[PLACE.values[c] for c in one[1]] for one, _, _ in held], pa.list_(pa.string())),
        "q2_set": pa.array([[KIND.values[c] for c in one[2]] for one, _, _ in held], pa.list_(pa.string())),
        "codes": pa.array([codes for _, codes, _ in held], pa.list_(pa.int32())),
        "counts": pa.array([counts for _, _, counts in held], pa.list_(pa.int64())),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def points(rng, n: int):
    columns = {f"q{i}": pa.array(rng.integers(0, size, n), pa.int64()) for i, size in enumerate(SIZES)}
    columns["s0"] = pa.array(rng.integers(0, 3, n), pa.int32())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def ranges(rng, Q: int) -> tuple[RangeQueries, list]:
    """Q random queries, and the same as {attribute: (low, high)}."""
    plain = []
    for _ in range(Q):
        asked = {}
        for i, size in [*enumerate(SIZES), ("s", 3)]:
            if i == "s" or rng.random() < 0.6:
                low = int(rng.integers(0, size))
                asked[i] = (low, int(rng.integers(low, size)))
        plain.append(asked)
    numbers = [np.array([q for q, a in enumerate(plain) if i in a], dtype=np.int64) for i in range(3)]
    ends = [np.array([plain[q][i] for q in numbers[i]], dtype=np.int64).reshape(-1, 2) for i in range(3)]
    secret = np.array([a["s"] for a in plain])
    made = RangeQueries(
        tuple(numbers), tuple(e[:, 0] for e in ends), tuple(e[:, 1] for e in ends), secret[:, 0], secret[:, 1]
    )
    return made, plain


def test_estimates_are_those_of_enumerated_values():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        held = boxes(rng, int(rng.integers(1, 30)))
        queries, plain = ranges(rng, 25)
        expected = []
        for asked in plain:
            total = 0.0
            for one, codes, counts in held:
                share = math.prod(
                    sum(lo <= c <= hi for c in one[i]) / len(one[i]) for i, (lo, hi) in asked.items() if i != "s"
                )
                lo, hi = asked["s"]
                total += share * sum(n for c, n in zip(codes, counts, strict=True) if lo <= c <= hi)
            expected.append(total)
        found = BoxEstimates(BoxReader(DOMAINS, SENSITIVE), queries)([batch(held[:7]), batch(held[7:])])
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_points_are_counted_exactly():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table = points(rng, int(rng.integers(1, 2000)))
        queries, plain = ranges(rng, 20)
        column = {i: table.column(f"q{i}").to_numpy() for i in range(3)} | {"s": table.column("s0").to_numpy()}
        expected = [
            np.all([(column[i] >= lo) & (column[i] <= hi) for i, (lo, hi) in a.items()], axis=0).sum() for a in plain
        ]
        assert PointCounts(queries, 3)([table]).tolist() == expected


def of_two_columns(rng, table: pa.RecordBatch, queries: RangeQueries) -> tuple[pa.RecordBatch, RangeQueries]:
    """The same points and queries with a second sensitive column of four values."""
    codes = pa.array(rng.integers(0, 4, len(table)), pa.int32())
    ends = np.sort(rng.integers(0, 4, (2, queries.number)), axis=0)
    return table.append_column("s1", codes), replace(queries, further=((ends[0], ends[1]),))


def test_conditions_on_two_sensitive_columns_are_of_one_record():
    """Boxes of one point each, whose values are listed as combinations, and the points themselves."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table, queries = of_two_columns(rng, points(rng, int(rng.integers(1, 200))), ranges(rng, 20)[0])
        rows, (low, high) = table.to_pylist(), queries.further[0]
        met = [(low[q] <= r["s1"]) & (r["s1"] <= high[q]) for q in range(20) for r in rows]
        alone = [
            PointCounts(replace(queries, further=()), 3)([table.slice(i, 1)]) for i in range(len(rows))
        ]  # each record by the first column
        expected = [sum(alone[i][q] * met[q * len(rows) + i] for i in range(len(rows))) for q in range(20)]
        assert PointCounts(queries, 3, (4,))([table]).tolist() == expected
        held = batch([([[r[f"q{i}"]] for i in range(3)], [r["s0"]], [1]) for r in rows])
        held = held.append_column("codes1", pa.array([[r["s1"]] for r in rows], pa.list_(pa.int32())))
        assert BoxEstimates(BoxReader(DOMAINS, SENSITIVE), queries, (4,))([held]) == pytest.approx(expected)


def test_floating_intervals_count_by_length_and_wide_codes_do_not_overflow():
    low, high = np.array([0.0, 2.0, 5.0]), np.array([4.0, 2.0, 6.0])
    shares = shares_within(Intervals(low, high), np.array([1.0, 2.0]), np.array([2.0, 5.5]))
    assert shares == pytest.approx(np.array([[0.25, 1.0, 0.0], [0.5, 1.0, 0.5]]))
    edge = np.array([-(2**63), 0]), np.array([2**63 - 1, 0])
    wide = shares_within(Intervals(*edge), np.array([0, -(2**63)]), np.array([2**63 - 1, -1]))
    assert wide == pytest.approx(np.array([[0.5, 1.0], [0.5, 0.0]]))


def cube_by_enumeration(held, cube: Cube) -> list[np.ndarray]:
    found = []
    for group in cube.groups:
        table = np.zeros([*(cube.cells[i].number for i in group), cube.m])
        for one, codes, counts in held:
            for cell in itertools.product(*(one[i] for i in group)):
                for code, n in zip(codes, counts, strict=True):
                    table[(*cell, code)] += n / math.prod(len(one[i]) for i in group)
        found.append(table.reshape(-1, cube.m))
    return found


@pytest.mark.parametrize("level", [1, 2, 3])
def test_cells_are_those_of_enumerated_values(level):
    cube = Cube(tuple(Cells.of(d, (0, 9)) for d in DOMAINS), level, 3)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        held = boxes(rng, 20)
        found = cube.parts(BoxCells(BoxReader(DOMAINS, SENSITIVE), cube)([batch(held)]))
        for mine, plain in zip(found, cube_by_enumeration(held, cube), strict=True):
            assert mine == pytest.approx(plain, rel=1e-5, abs=1e-6)
        table = points(rng, 500)
        single = [([[r[f"q{i}"]] for i in range(3)], [r["s0"]], [1]) for r in table.to_pylist()]
        exact = cube.parts(PointCells(cube)([table]))
        for mine, plain in zip(exact, cube_by_enumeration(single, cube), strict=True):
            assert np.array_equal(mine, plain)
            assert divergence(mine, plain) == 0


def test_long_domains_are_cut_into_stretches():
    cells = Cells.of(NumericDomain("wages", 0.0, 1e9), (0, 10**9))
    assert (cells.number, cells.low[0], cells.high[-1]) == (100, 0, 10**9)
    assert (cells.low[1:] == cells.high[:-1] + 1).all()
    codes = np.array([0, 9_999_999, 10_000_000, 10**9])
    assert (cells.low[cells.index(codes)] <= codes).all()
    assert (cells.high[cells.index(codes)] >= codes).all()
    shares = cells.shares(Intervals(np.array([0, 5]), np.array([10**9, 5])))
    assert shares.sum(axis=1) == pytest.approx([1, 1], abs=1e-5)
    floats = Cells.of(NumericDomain("rate", 0.0, 1.0), (0.0, 1.0))
    on_edges = floats.shares(Intervals(floats.low[:5], floats.low[:5]))
    assert on_edges.sum(axis=1) == pytest.approx(np.ones(5))
    assert Cells.of(NumericDomain("one", 2.0, 2.0), (2.0, 2.0)).shares(Intervals(np.array([2.0]), np.array([2.0]))) == 1


def test_divergence():
    assert divergence(np.array([1.0, 3.0]), np.array([2.0, 2.0])) == pytest.approx(
        0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    )
    assert divergence(np.array([1.0, 3.0]), np.array([0.0, 2.0])) == math.inf


def test_members_of_boxes():
    rng = np.random.default_rng(3)
    table, held = points(rng, 800), boxes(rng, 12)
    rows = batch(held).to_pylist()
    made = tuple(sides(row, DOMAINS) for row in rows)
    columns = [table.column(f"q{i}").to_numpy() for i in range(3)]
    expected = [[r for r in range(800) if all(columns[i][r] in one[i] for i in range(3))] for one, _, _ in held]
    assert [inside(box, columns).tolist() for box in made] == expected
    codes = table.column("s0").to_numpy()
    cells = tuple(((2 * b, None), (2 * b + 1, 1)) for b in range(12))
    counts = MemberCounts(made, cells, 24)([table.slice(0, 300), table.slice(300)])
    assert counts.tolist() == [n for e in expected for n in (len(e), int((codes[e] == 1).sum()))]
    told = Members(made)([table])
    assert np.bincount(told["box"], minlength=12).tolist() == [len(e) for e in expected]
    assert np.array_equal(told["q0"][told["box"] == 4], columns[0][expected[4]])


def test_unknown_values_and_empty_sets_are_seen():
    reader = BoxReader((PLACE,), ("flu", None))
    made = pa.RecordBatch.from_arrays(
        [pa.array([["q", "zz", None], [], None], pa.list_(pa.string())), pa.array(["flu", None, "x"])],
        names=["q0_set", "s0"],
    )
    found = reader.attribute(made, 0)
    assert isinstance(found, Sets)
    assert (found.codes.tolist(), found.counts.tolist()) == ([1, 3, 2], [3, 0, 0])
    assert reader.sensitive_codes(made).tolist() == [0, 1, 2]
    assert BoxReader((PLACE,)).attribute(made.slice(1), 0).counts.tolist() == [0, 0]
    assert BoxReader((PLACE,)).attribute(made.slice(0, 1), 0).codes.tolist() == [1, 3, 2]


def test_penalties_and_losses():
    assert AGE.penalty([0, 3], [9, 3]).tolist() == [1.0, 0.0]
    assert PLACE.penalty([1, 3]).tolist() == [0.0, 1.0]
    first, last = np.array([0, 2, 1, 4]), np.array([0, 3, 2, 4])
    assert KIND.information_loss([1, 2, 2, 1], first, last).tolist() == [0.0, 2 / 5, 1.0, 0.0]
    assert PLACE.information_loss([1, 2], np.array([0, 0]), np.array([0, 2])).tolist() == [0.0, 2 / 3]
    assert generalized_certainty_penalty([np.array([0.0, 1.0]), np.array([0.5, 0.5])]) == 0.5
