"""What rows and quasi-identifiers alone prove of the graph of matches: which rows may be whose, exactly.

Source: heterogeneous generalization, section 2. Everybody matches mu rows, every row mu persons, and a box holds whom its row matches. So
a row may be a person's if some graph in which all have that many matches joins them, and that graph keeps to the boxes. All such graphs
are had from any one of them by exchanging edges along alternating cycles (Tassa, Finding all maximally-matchable edges in a bipartite
graph, 2012), so one search for strongly connected components settles every edge. Where just mu rows are left to a person, the graph
is known around that person, and `elimination` strikes out what the rows themselves exclude. Pure; O(edges).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from anonlib.arrays import BoolArray, IntegerArray


def possible(person: IntegerArray, row: IntegerArray, matched: BoolArray, spare: IntegerArray) -> BoolArray:
    """(E,) bool: the edges that lie in some graph with the same numbers of matches.

    person, row : (E,) who is in whose box, each pair once; matched : (E,) the edges of one such graph, whichever
    spare       : (rows,) how many matches of each row are nobody's (made-up records), in that graph; they may be any row's
    """
    persons = int(person.max()) + 1
    rows = len(spare)
    start = np.where(matched, persons + row, person)
    stop = np.where(matched, person, persons + row)
    if spare.any():  # one more "person" for all made-up records
        nobody, every, has = persons + rows, np.arange(rows), np.flatnonzero(spare)
        start = np.concatenate([start, np.full(rows, nobody), persons + has])
        stop = np.concatenate([stop, persons + every, np.full(len(has), nobody)])
    size = persons + rows + 1
    links = csr_matrix((np.ones(len(start), dtype=np.int8), (start, stop)), shape=(size, size))
    _, of = connected_components(links, directed=True, connection="strong")
    return np.asarray(matched | (of[person] == of[persons + row]))


def left_values(values: Sequence[int], bucket: Mapping[int, int]) -> list[int]:
    """The values of a person's rows, one each, that are not struck out.

    bucket : {value: the bucket it lies in}, of the values that lie in one alone. The candidates of a row are of different buckets, so a row
    shows a person's bucket only if it is the person's own: a bucket that is shown twice is not the person's.
    """
    shown = [bucket.get(value, -1 - place) for place, value in enumerate(values)]
    return [value for value, of in zip(values, shown, strict=True) if shown.count(of) == 1]
