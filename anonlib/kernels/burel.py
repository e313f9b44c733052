"""BuReL's record kernel: fill each class with neighbours along the Hilbert curve, so many out of each bucket of sensitive values.

Source: Cao and Karras, VLDB 2012, section 4 (reallocation), as a baseline of heterogeneous generalization.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anonlib.keyed import Stream

Int64Array = npt.NDArray[np.int64]


def neighbour_classes(curve: npt.ArrayLike, bucket: Int64Array, sizes: Int64Array, stream: Stream) -> Int64Array:
    """The class of each record, (n,) int64.

    curve  : (n,) any sortable numbers, where each record lies along the Hilbert curve; neighbours are told by rank
    bucket : (n,) int64 in [0, q), the bucket of each record's sensitive value
    sizes  : (classes, q) int64, how many records of each bucket each class takes; columns sum to the buckets' records
    stream : draws the order in which classes are filled, and for each class the seed: a random record that is left in the first
             bucket it takes from. From every bucket it takes the records nearest to the seed.

    Cost: classes x q steps, each O(records left in the bucket) to close the gap: a memory move. Kernels run on partitions.
    """
    n, (classes, q) = len(bucket), sizes.shape
    rank = np.empty(n, dtype=np.int64)
    order = np.lexsort((bucket, np.asarray(curve)))
    rank[order] = np.arange(n)
    record_at = order
    left = [np.sort(rank[bucket == b]) for b in range(q)]
    if [len(part) for part in left] != sizes.sum(axis=0).tolist():
        raise ValueError("the classes do not take exactly the records that the buckets hold")
    result = np.empty(n, dtype=np.int64)
    turns = stream.permutation(classes).tolist() if classes else []
    draws = stream.words(classes)
    for turn, c in enumerate(turns):
        takes = np.flatnonzero(sizes[c])
        pool = left[takes[0]]
        seed = int(pool[int(draws[turn]) % len(pool)])
        for b in takes.tolist():
            start = _nearest_run(left[b], seed, int(sizes[c, b]))
            stop = start + int(sizes[c, b])
            result[record_at[left[b][start:stop]]] = c
            left[b] = np.concatenate([left[b][:start], left[b][stop:]])
    return result


def _nearest_run(ranks: Int64Array, seed: int, length: int) -> int:
    """Where the `length` entries of sorted `ranks` begin that are nearest to `seed`."""
    at = int(np.searchsorted(ranks, seed))
    low, high = max(0, at - length), min(at, len(ranks) - length)
    while low < high:  # the run slides right while the record it would gain is nearer than the one it would lose
        middle = (low + high) // 2
        if seed - ranks[middle] > ranks[middle + length] - seed:
            low = middle + 1
        else:
            high = middle
    return low
