"""The deFinetti attack where records stand in boxes: naive Bayes refined by reading each box in the light of all the others.

A box says that its record's value of a quasi-identifier is one of those it holds, with an equal chance if nothing else is known. The
adversary knows everybody's quasi-identifiers, so he starts from how frequent each value is, and then iterates (expectation maximization
of the naive Bayes of Kifer, SIGMOD 2009, on boxes):

    each record is spread over the values of its box in proportion to p(x | v), v its sensitive value;  p(x | v) is learnt from that; again

At the end he takes the rows whose boxes hold a person, and believes v of the person in proportion to

    (rows with v) prod_i p(x_i | v) / p(x_i)

One pass over the boxes for each round. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.evaluation.attacks import Attack
from anonlib.evaluation.attacks_around import Persons
from anonlib.evaluation.attacks_registry_words import BY_MANY
from anonlib.queries.boxes import BoxReader, column
from anonlib.queries.cells import Cells, Cube

ROUNDS = 5
ROWS = 4096


@dataclass(frozen=True)
class Refined:
    """Kernel over batches of boxes with `codes` and `counts`: the cells of a cube of level 1, each record spread over its box by `given`.

    given : per quasi-identifier (cells, m) of p(x | v), up to a factor by v. Cost per box: its cells times its distinct sensitive values.
    """

    reader: BoxReader
    cube: Cube
    given: tuple[Float64Array, ...]

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.cube.length, dtype=np.float64)
        parts = self.cube.parts(total)
        for batch in batches:
            for block in self.reader.blocks(batch):
                for start in range(0, block.num_rows, ROWS):
                    self._add(block.slice(start, ROWS), parts)
        return total

    def _add(self, block: Any, parts: Sequence[Float64Array]) -> None:
        sizes = column(block, "codes").value_lengths().to_numpy()
        row = np.repeat(np.arange(block.num_rows), sizes)
        codes = column(block, "codes").flatten().to_numpy()
        counts = column(block, "counts").flatten().to_numpy().astype(np.float64)
        attributes = self.reader.attributes(block)
        for cells, attribute, conditional, part in zip(self.cube.cells, attributes, self.given, parts, strict=True):
            shares = cells.shares(attribute).astype(np.float64)
            for code in np.unique(codes[codes < self.cube.m]):
                at = codes == code
                entry_shares = shares[row[at]]
                spread = entry_shares * conditional[:, code]
                held = spread.sum(axis=1, keepdims=True)
                spread = np.where(held > 0, spread / np.where(held > 0, held, 1.0), entry_shares)
                part[:, code] += counts[at] @ spread


def conditional_shares(tables: Sequence[Float64Array]) -> tuple[Float64Array, ...]:
    """p(x | v) with Laplace's correction, per quasi-identifier (cells, m), from tables of (cells, m) counts."""
    return tuple((t + 1) / (t.sum(axis=0) + len(t)) for t in tables)


def beliefs(
    around: Float64Array, cells: Sequence[Cells], tables: Sequence[Float64Array], persons: Persons
) -> Float64Array:
    """(P, m) float64: what is believed of each person, a row summing to 1 (0 for a person in no box).

    around : (P, m) rows with each value whose boxes hold the person; cells, tables : per quasi-identifier its cells and (cells, m) counts
    """
    score = np.zeros_like(around)
    for cell, table, codes in zip(cells, tables, persons.codes, strict=True):
        cell_of = cell.index(codes)
        overall = (table.sum(axis=1) + 1) / (table.sum() + len(table))
        score += np.log((table[cell_of] + 1) / (table.sum(axis=0) + len(table))) - np.log(overall[cell_of])[:, None]
    score = np.where(around > 0, score, -np.inf)
    top = np.where(np.isfinite(score), score, -np.inf).max(axis=1, keepdims=True, initial=-700)
    weight = around * np.exp(np.clip(score - top, -700, 0))
    return np.asarray(weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300))


def definetti_boxes(
    believed: Float64Array, around: Float64Array, persons: Persons, prior: float, allowed: float | None
) -> Attack:
    """The attack's figures. Averages are over persons, by their weights; persons in no box are left out.

    believed : (P, m), as `beliefs` gives it; around : as there; allowed : what the promise allows of one person, for comparison
    """
    held = around.sum(axis=1) > 0
    truth, weight = persons.sensitive[held], persons.weight[held]
    n = max(1e-300, float(weight.sum()))
    right = believed[held].argmax(axis=1) == truth
    before = around[held].argmax(axis=1) == truth
    sure = believed[held].max(axis=1) >= 0.9
    detail: dict[str, Any] = {"without learning": float(weight[before].sum() / n), "sure": float(weight[sure].sum())}
    detail |= {"right when sure": float(weight[sure & right].sum() / weight[sure].sum())} if sure.any() else {}
    detail |= {} if allowed is None else {"allowed of one person": allowed}
    words = f"{BY_MANY} (a sample of {len(truth):,})"
    accuracy = float(weight[right].sum() / n)
    return Attack("deFinetti", accuracy, prior, None, detail, persons=round(n), words=words)
