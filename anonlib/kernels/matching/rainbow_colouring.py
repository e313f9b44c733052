"""Whose sensitive value each published record carries: a rainbow colouring of the graph of matches.

Source: heterogeneous generalization, section 3.2, corrected. The paper takes one of mu disjoint perfect matchings. Every edge then
carries the value with chance 1/mu, but a value that is shown *twice* among the records that may be a person's is not that person's, since
the candidates of a record all differ: whoever looks from the person's side strikes it out. Here the records around a person show each
bucket once, and the choice says nothing of who is in which bucket.

Every record has one candidate in each of mu buckets, and every person is a candidate of one record of each bucket. Colour the records
with bucket labels so that the mu records around every person have different colours (*rainbow*), and let record j show the value of its
candidate from the bucket of its colour. That is a perfect matching: a person of bucket b is shown by exactly the one of its records that
is coloured b. The owners' buckets are such a colouring; exchanging two labels in a connected component of the records that carry them (a
Kempe swap) keeps it so; and one uniformly random renaming of the labels in each connected component gives every edge the chance 1/mu,
whatever the swaps were. docs/heterogeneous.md has the proof.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from anonlib.arrays import Int64Array, IntegerArray
from anonlib.keyed import Stream

PURPOSE = "heterogeneous: rainbow colouring"
SWEEPS = 2
"""Pairs of labels to swap, for each label. No promise rests on it: the renaming alone gives every edge its 1/mu."""
MOST_PAIRS = 256


def rainbow_matching(matches: IntegerArray, key: bytes, *coordinates: int, swaps: int | None = None) -> Int64Array:
    """(N,) int64: for each record the one of its matches whose value it shows; every record is taken once, each edge with chance 1/mu.

    matches     : (N, mu) from `matching_graph`: N = mu c records, bucket after bucket; in column r those of bucket b match bucket b + r
    coordinates : the place of this graph in the release; swaps : pairs of labels that are swapped, by default some `SWEEPS` a label

    Raises ValueError when the graph is not so labelled. Cost: O(N mu) and O(N) a swap; memory about 40 bytes an edge.
    """
    around = records_around(matches)
    stream = Stream(key, PURPOSE, *coordinates)
    mu = matches.shape[1]
    pairs = min(SWEEPS * mu, MOST_PAIRS) if swaps is None else swaps
    colours = _renamed(_swapped(around, pairs, stream), around, stream)
    owner = np.repeat(np.arange(mu), len(matches) // mu)
    return np.asarray(matches[np.arange(len(matches)), (colours - owner) % mu], dtype=np.int64)


def records_around(matches: IntegerArray) -> Int64Array:
    """(N, mu) int64: the records that a person is a candidate of, column b the one that bucket b owns. Raises ValueError if there are
    none or several."""
    n, mu = matches.shape
    if n % mu:
        raise ValueError("the graph is not labelled: its records are no mu buckets of one size")
    size = n // mu
    owner = np.repeat(np.arange(mu), size)
    wanted = (owner[:, None] + np.arange(mu)) % mu
    if (np.asarray(matches) // size != wanted).any():
        raise ValueError("the graph is not labelled: some record's matches are not one of every bucket, in turn")
    around = np.full((n, mu), -1, dtype=np.int64)
    around[matches, owner[:, None]] = np.arange(n)[:, None]
    if (around < 0).any():
        raise ValueError("the graph is not regular: somebody is matched by no record, or by two, of a bucket")
    return around


def _swapped(around: Int64Array, pairs: int, stream: Stream) -> Int64Array:
    """(N,) int64 colours after `pairs` rounds of Kempe swaps: two labels are drawn, and each component of the records that carry them
    exchanges them by a coin of its own."""
    n, mu = around.shape
    coloured = around.copy()  # column a: the record around each person that is coloured a
    if mu > 1:
        first = stream.below(mu, pairs)
        second = (first + 1 + stream.below(mu - 1, pairs)) % mu
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            left, right = coloured[:, a], coloured[:, b]
            links = csr_matrix((np.ones(n, dtype=np.int8), (left, right)), shape=(n, n))
            component = connected_components(links, directed=False)[1]
            heads = (stream.words(n) & np.uint64(1) == 1)[component[left]]
            coloured[heads, a], coloured[heads, b] = right[heads], left[heads].copy()
    colours = np.empty(n, dtype=np.int64)
    colours[coloured] = np.arange(mu)
    return colours


def _renamed(colours: Int64Array, around: Int64Array, stream: Stream) -> Int64Array:
    """(N,) int64 colours with the labels of every connected component under a uniformly random permutation of their own."""
    n, mu = around.shape
    links = csr_matrix((np.ones(n * mu, dtype=np.int8), (np.repeat(around[:, 0], mu), around.ravel())), shape=(n, n))
    number, component = connected_components(links, directed=False)
    names = np.argsort(stream.words(number * mu).reshape(number, mu), axis=1, kind="stable")
    return np.asarray(names[component, colours], dtype=np.int64)
