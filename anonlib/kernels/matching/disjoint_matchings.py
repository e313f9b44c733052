"""Random disjoint perfect matchings of a regular bipartite graph: which record's sensitive value each published record carries.

Source: heterogeneous generalization, section 2 (Lemmas 1 and 2, Theorem 1) and section 3.2. One of mu disjoint matchings that cover the
graph is taken with chance 1/mu, so every edge carries the value with chance exactly 1/mu, however the matchings were found; that they
are found anew, at random, hides the rounds in which the graph was built, the identity among them. A matching that is merely
random, without the others, would not give 1/mu.

An even graph is split into halves along random Euler walks: edges are paired at random at every vertex, which makes cycles, and every
other edge of a cycle goes to one half, by a coin. From an odd graph one perfect matching is taken first, by random walks (Goel, Kapralov,
Khanna: Perfect matchings in O(n log n) time in regular bipartite graphs, 2010). Only what leads to the wanted matching is worked out; the
coins of a part depend on the part alone.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from anonlib.arrays import BoolArray, Int64Array, IntegerArray
from anonlib.keyed import Stream

PURPOSE = "heterogeneous: random disjoint matchings"


def random_matching(matches: IntegerArray, key: bytes, *coordinates: int) -> Int64Array:
    """(N,) int64: for each record one of its matches, so that every record is taken once; each edge with chance exactly 1/mu.

    matches : (N, mu) record numbers, mu different ones a row and mu times each; coordinates : the place of this graph in the release
    Cost: O(N mu) and a sort of as many words; memory about 60 bytes an edge.
    """
    wanted = int(Stream(key, PURPOSE + ", choice", *coordinates).below(matches.shape[1], 1)[0])
    return disjoint_matchings(matches, key, *coordinates, only=wanted)[0]


def disjoint_matchings(
    matches: IntegerArray, key: bytes, *coordinates: int, only: int | None = None
) -> list[Int64Array]:
    """mu disjoint perfect matchings of the graph, each (N,) int64 (for each record one of its matches), or just number `only` of the same.

    Arguments and cost as in `random_matching`; only what leads to `only` is worked out. Raises ValueError for a graph that is not regular.
    """
    if (np.bincount(matches.ravel(), minlength=len(matches)) != matches.shape[1]).any():
        raise ValueError("the graph is not regular: it has no disjoint perfect matchings")
    matchings: dict[int, Int64Array] = {}
    parts = [(np.asarray(matches, dtype=np.int64), 0)]
    while parts:
        rest, first = parts.pop()
        degree = rest.shape[1]
        if only is not None and not first <= only < first + degree:
            continue
        stream = Stream(key, PURPOSE, *coordinates, first, degree)
        if degree == 1:
            matchings[first] = rest[:, 0]
        elif degree % 2:
            matching = _perfect_matching(rest, stream)
            matchings[first] = matching
            if only != first:
                parts.append((rest[rest != matching[:, None]].reshape(len(rest), degree - 1), first + 1))
        else:
            half = _euler_split(rest, stream)
            parts.append((rest[half].reshape(len(rest), -1), first))
            parts.append((rest[~half].reshape(len(rest), -1), first + degree // 2))
    return [matchings[k] for k in ([only] if only is not None else range(len(matchings)))]


def _perfect_matching(matches: Int64Array, stream: Stream) -> Int64Array:
    """(N,) int64: one of its matches for each record, each record taken once. matches : (N, degree), regular, degree at least 2.

    A random walk from every record: along any edge but its own to somebody, from there to who is matched with them, until they are free;
    then the walk's last steps are matched instead. Expected O(N log N) steps on any regular graph, where SciPy's Hopcroft and Karp now
    and then took exponentially many on a few hundred records.
    """
    n, degree = matches.shape
    edges, turns = matches.ravel().tolist(), _Turns(stream, degree, 4 * n)
    taken_by, takes, step = [-1] * n, [-1] * n, [-1] * n
    for start in stream.permutation(n).tolist():
        record = start
        while record >= 0:
            match = edges[record * degree + turns.next()]
            if match == takes[record]:
                continue
            step[record] = match
            record = taken_by[match]
        record = start
        while record >= 0:  # following each one's last step leaves the loops of the walk out
            match = takes[record] = step[record]
            record, taken_by[match] = taken_by[match], record
    return np.array(takes, dtype=np.int64)


class _Turns:
    """Numbers below `degree`, from `words` words of the stream at a time."""

    def __init__(self, stream: Stream, degree: int, words: int) -> None:
        self._stream, self._degree, self._words = stream, np.uint64(degree), words
        self._left: list[int] = []

    def next(self) -> int:
        """The next number."""
        if not self._left:
            self._left = (self._stream.words(self._words) % self._degree).tolist()
        return self._left.pop()


def _euler_split(matches: Int64Array, stream: Stream) -> BoolArray:
    """(N, degree) bool: half of the edges of every record, on both sides."""
    n, degree = matches.shape
    edges = n * degree
    pair_by_record = _paired(np.arange(edges).reshape(n, degree), stream)
    pair_by_match = _paired(np.argsort(matches.ravel(), kind="stable").reshape(n, degree), stream)
    # An edge, its pair here, that one's pair there, ... is a cycle; edges two steps apart go the same way.
    links = csr_matrix(
        (np.ones(edges, dtype=np.int8), pair_by_match[pair_by_record], np.arange(edges + 1)), shape=(edges, edges)
    )
    _, walk = connected_components(links, directed=True, connection="weak")
    other = walk[pair_by_record]  # the other way round the same cycle
    coins = stream.words(edges)  # one for each cycle is used
    heads = coins[np.minimum(walk, other)] & np.uint64(1) == 1
    return np.asarray((heads == (walk < other)).reshape(n, degree))


def _paired(edges: Int64Array, stream: Stream) -> Int64Array:
    """(edges,) int64, the edge each is paired with: edges : (N, degree), those of one vertex in a row."""
    order = np.argsort(stream.words(edges.size).reshape(edges.shape), axis=1)
    mixed = np.take_along_axis(edges, order, axis=1)
    pair = np.empty(edges.size, dtype=np.int64)
    pair[mixed[:, 0::2]] = mixed[:, 1::2]
    pair[mixed[:, 1::2]] = mixed[:, 0::2]
    return pair
