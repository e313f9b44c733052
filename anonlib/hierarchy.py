"""Generalization hierarchies: a tree over the values of a categorical attribute, as arrays.

File format: CSV without a header line, separated by `,` or `;`, one row per leaf, `leaf,...,root`, all rows equally long. A label
repeated in neighbouring cells of a row is one node that stays itself for a level ("7,7,any"). A label means the same set
of leaves wherever it stands.

    flu,lung disease,any disease
    asthma,lung disease,any disease
    gastritis,stomach disease,any disease
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.errors import SpecError


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of k nodes over L leaves; nodes are numbered so that the leaves 0..L-1 stand in leaf order.

    Leaf order is a depth-first walk with children in the file's order: the leaves under any node are neighbours.

    labels    : k labels, the leaves' first
    parents   : (k,) int64, the parent of each node, -1 for the root
    heights   : (k,) int64, the level above the leaves (0 for leaves) at which the file first names the node
    first     : (k,) int64, first leaf under each node
    last      : (k,) int64, last leaf under each node, inclusive
    ancestors : (L, levels) int64, `ancestors[leaf, h]` is the node that stands for the leaf at level h
    source    : the path it was read from, for messages; not compared
    """

    labels: tuple[str, ...]
    parents: Int64Array
    heights: Int64Array
    first: Int64Array
    last: Int64Array
    ancestors: Int64Array
    source: str = field(default="", repr=False)
    _leaf_of: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.parents, self.heights, self.first, self.last, self.ancestors):
            array.setflags(write=False)
        object.__setattr__(self, "_leaf_of", {self.labels[leaf]: leaf for leaf in range(self.leaves)})

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Hierarchy)
            and self.labels == other.labels
            and np.array_equal(self.ancestors, other.ancestors)
        )

    def __hash__(self) -> int:
        return hash(self.labels)

    @property
    def leaves(self) -> int:
        """L, how many leaves the tree has: the values of the attribute."""
        return len(self.ancestors)

    @property
    def levels(self) -> int:
        """How many cells a row has: the height of the tree plus one."""
        return int(self.ancestors.shape[1])

    @property
    def root(self) -> int:
        """The number of the node above all others."""
        return int(self.ancestors[0, -1])

    @property
    def rows(self) -> list[list[str]]:
        """The file's rows again, in leaf order: leaf, ..., root."""
        return [[self.labels[node] for node in leaf] for leaf in self.ancestors]

    def positions(self, values: Iterable[str]) -> Int64Array:
        """The leaf of each value, (n,) int64. Raises SpecError naming the first values that are no leaves."""
        wanted = list(values)
        missing = [value for value in dict.fromkeys(wanted) if value not in self._leaf_of]
        if missing:
            close = get_close_matches(str(missing[0]), list(self._leaf_of), n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise SpecError(
                f"the value {missing[0]!r}{more} is not a leaf of the hierarchy{hint}; add a row for each such value"
            )
        return np.array([self._leaf_of[value] for value in wanted], dtype=np.int64)

    def cover(self, low: Int64Array, high: Int64Array) -> Int64Array:
        """The lowest node above all leaves low[i]..high[i], (n,) int64. O(n * levels)."""
        low, high = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
        node = low.copy()
        climbing = (self.last[node] < high) | (self.first[node] > low)
        while climbing.any():  # at most `levels` rounds: the root covers every leaf
            node = np.where(climbing, self.parents[node], node)
            climbing = (self.last[node] < high) | (self.first[node] > low)
        return node

    def lowest_common_ancestor(self, one: Int64Array, other: Int64Array) -> Int64Array:
        """The lowest node above (or equal to) both nodes, pair by pair, (n,) int64. one, other : (n,) int64 nodes. O(n * levels)."""
        one, other = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
        return self.cover(np.minimum(self.first[one], self.first[other]), np.maximum(self.last[one], self.last[other]))


def read_hierarchy(path: str | Path) -> Hierarchy:
    """The hierarchy in the CSV file at `path`. Raises SpecError, which begins with the path."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError(
            f"{path}: the hierarchy cannot be read ({error.strerror}); a relative path starts at {Path.cwd()}"
        ) from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: the hierarchy is not UTF-8 text; save it as UTF-8") from None
    try:
        return replace(parse_hierarchy(text), source=str(path))
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None


def parse_hierarchy(text: str) -> Hierarchy:
    """The hierarchy in CSV text.

    Raises SpecError, with the line, for an empty file, an empty cell, rows of unequal length, a leaf written twice, a label
    under two parents or above itself, a label that means different leaves at different levels, and several roots.
    Cost: O(rows * levels).
    """
    return _checked(*_rows(text))


def hierarchy_of(rows: Sequence[Sequence[str]]) -> Hierarchy:
    """The hierarchy of rows leaf, ..., root, as `Hierarchy.rows` gives them. Raises SpecError as `parse_hierarchy` does."""
    if not rows or len({len(row) for row in rows}) > 1 or len({row[0] for row in rows}) < len(rows):
        raise SpecError("a hierarchy has at least one row, all equally long, and one per leaf")
    return _checked([list(row) for row in rows], list(range(1, len(rows) + 1)))


def _checked(rows: list[list[str]], lines: list[int]) -> Hierarchy:
    """The hierarchy of rows that keep all rules; else SpecError with the line."""
    parents = _parents(rows, lines)
    _refuse_cycle(parents)
    _refuse_roots(rows)
    _refuse_shifting_labels(rows, lines)
    return _arrays(rows, parents)


_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|$)')
"""A cell in quotes, whose separators are its own."""


def _rows(text: str) -> tuple[list[list[str]], list[int]]:
    """Non-blank rows with their line numbers; equally long, no empty cell, no leaf twice."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = ";" if ";" in _QUOTED.sub("", first) else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise SpecError(f"line {reader.line_num}: this is not CSV ({error}); mend the quotes there") from None
    if not rows:
        raise SpecError("the hierarchy is empty; write one row per leaf: leaf, ..., root")
    line_of: dict[str, int] = {}
    for row, line in zip(rows, lines, strict=True):
        if "" in row:
            empty_cell = "the leaf" if row[0] == "" else f"cell {row.index('') + 1} of the row of {row[0]!r}"
            raise SpecError(f"line {line}: {empty_cell} is empty; write a label in every cell")
        if len(row) != len(rows[0]):
            raise SpecError(
                f"line {line}: the row of {row[0]!r} has {len(row)} cells and line {lines[0]} has {len(rows[0])}; "
                f"make all rows equally long (repeat a label to let it stay for a level), separated by {separator!r}"
            )
        if row[0] in line_of:
            raise SpecError(
                f"line {line}: the leaf {row[0]!r} is already in line {line_of[row[0]]}; keep one row per leaf"
            )
        line_of[row[0]] = line
    return rows, lines


def _parents(rows: list[list[str]], lines: list[int]) -> dict[str, str]:
    """{label: the label above it}, in order of first appearance; the root has none."""
    parents: dict[str, str] = {}
    line_of: dict[str, int] = {}
    for row, line in zip(rows, lines, strict=True):
        for below, above in itertools.pairwise(row):
            if below == above:
                continue
            if parents.setdefault(below, above) != above:
                raise SpecError(
                    f"line {line}: {below!r} has two parents, {parents[below]!r} (line {line_of[below]}) and {above!r}; "
                    "rename one of the two, or mend the row"
                )
            line_of.setdefault(below, line)
    return parents


def _refuse_cycle(parents: dict[str, str]) -> None:
    """Each label's walk upwards must end; labels known to end are not walked twice."""
    ends: set[str] = set()
    for start in parents:
        walk: dict[str, None] = {}
        label = start
        while label in parents and label not in ends:
            if label in walk:
                steps = list(walk)
                chain = " < ".join([*steps[steps.index(label) :], label])
                raise SpecError(
                    f"{label!r} stands above itself ({chain}); a hierarchy has no cycle, so rename one of the two"
                )
            walk[label] = None
            label = parents[label]
        ends.update(walk)


def _refuse_roots(rows: list[list[str]]) -> None:
    """Raises SpecError unless all rows end with the same label."""
    roots = list(dict.fromkeys(row[-1] for row in rows))
    if len(roots) > 1:
        raise SpecError(
            f"there are {len(roots)} roots ({', '.join(map(repr, roots[:3]))}{', ...' if len(roots) > 3 else ''}); "
            "end every row with the same label, and write no header line"
        )


def _refuse_shifting_labels(rows: list[list[str]], lines: list[int]) -> None:
    """A label must stand for the same leaves at every level where it occurs."""
    size: dict[str, int] = {}
    for row in rows:
        for label in set(row):
            size[label] = size.get(label, 0) + 1
    for level in range(len(rows[0])):
        under: dict[str, int] = {}
        for row in rows:
            under[row[level]] = under.get(row[level], 0) + 1
        for row, line in zip(rows, lines, strict=True):
            label = row[level]
            if under[label] != size[label]:
                raise SpecError(
                    f"line {line}: {label!r} in cell {level + 1} stands for {under[label]} of the {size[label]} leaves it has elsewhere; "
                    "place a label at the same level in every row, or rename one"
                )


def _arrays(rows: list[list[str]], parents: dict[str, str]) -> Hierarchy:
    """The hierarchy of rows that were checked. O(rows * levels)."""
    row_of = {row[0]: row for row in rows}
    order = _leaf_order(rows, parents)
    inner = dict.fromkeys(
        label for level in range(1, len(rows[0])) for row in rows for label in [row[level]] if label not in row_of
    )
    labels = (*order, *inner)
    number = {label: node for node, label in enumerate(labels)}
    ancestors = np.array([[number[label] for label in row_of[leaf]] for leaf in order], dtype=np.int64)
    k, levels = len(labels), len(rows[0])
    heights = np.full(k, levels, dtype=np.int64)
    first, last = np.full(k, len(order), dtype=np.int64), np.full(k, -1, dtype=np.int64)
    leaf = np.arange(len(order), dtype=np.int64)
    for level in range(levels):
        np.minimum.at(heights, ancestors[:, level], level)
        np.minimum.at(first, ancestors[:, level], leaf)
        np.maximum.at(last, ancestors[:, level], leaf)
    above = np.array([number[parents[label]] if label in parents else -1 for label in labels], dtype=np.int64)
    return Hierarchy(labels, above, heights, first, last, ancestors)


def _leaf_order(rows: list[list[str]], parents: dict[str, str]) -> list[str]:
    """Leaves by a depth-first walk, children in order of first appearance. Iterative."""
    children: dict[str, list[str]] = {}
    for below, above in parents.items():
        children.setdefault(above, []).append(below)
    order: list[str] = []
    stack = [rows[0][-1]]
    while stack:
        label = stack.pop()
        if label in children:
            stack.extend(reversed(children[label]))
        else:
            order.append(label)
    return order
