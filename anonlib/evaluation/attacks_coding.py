"""Codes of a quasi-identifier's values, as learners have them: a number with very many values in stretches. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Float64Array, Int64Array

STRETCHES = 100
"""A number with more than twice as many different values is cut into so many stretches of equally many records."""


@dataclass(frozen=True)
class Coding:
    """How the texts of one quasi-identifier are coded: by their place in a list, or, for numbers with very many values, by stretch.

    keys  : sorted `key_of` the values, where each has a code of its own
    edges : ascending; code i are the numbers from edges[i - 1] up to below edges[i], and the last code, len(edges) + 1, what is no number
    """

    keys: tuple[str, ...] = ()
    edges: Float64Array | None = None

    @staticmethod
    def of(texts: Sequence[str | None]) -> Coding:
        """The coding of the values in a sample. O(n log n)."""
        keys = sorted({key_of(text) for text in texts})
        if len(keys) <= 2 * STRETCHES:
            return Coding(tuple(keys))
        try:
            numbers = np.array([np.nan if text is None else float(text) for text in texts])
        except ValueError:
            return Coding(tuple(keys))
        return Coding(edges=edges_of(numbers))

    @property
    def number(self) -> int:
        """How many codes there are."""
        return len(self.keys) if self.edges is None else len(self.edges) + 2

    def __call__(self, texts: Sequence[str | None]) -> Int64Array:
        """(n,) codes. Raises KeyError for a value without a code of its own, ValueError for what is no number where numbers are cut."""
        if self.edges is None:
            place = {key: code for code, key in enumerate(self.keys)}
            return np.array([place[key_of(text)] for text in texts], dtype=np.int64)
        return stretches(np.array([np.nan if text is None else float(text) for text in texts]), self.edges)


def key_of(text: str | None) -> str:
    """A value as a key: a missing one is "", a text begins with "="."""
    return "" if text is None else f"={text}"


def edges_of(numbers: Float64Array) -> Float64Array:
    """(at most STRETCHES - 1,) ascending: where stretches of equally many numbers begin; NaN is passed over."""
    edges: Float64Array = np.unique(np.nanquantile(numbers, np.linspace(0, 1, STRETCHES + 1)[1:-1]))
    return edges


def stretches(numbers: Float64Array, edges: Float64Array) -> Int64Array:
    """(n,) how many edges a number reaches; len(edges) + 1 for NaN."""
    places = np.searchsorted(edges, numbers, side="right")
    return np.asarray(np.where(np.isnan(numbers), len(edges) + 1, places), dtype=np.int64)
