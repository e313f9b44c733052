"""The classes of a window of a stream: SABRE's default, what a class holds from counts alone, which records from quasi-identifiers.

Runs inside a task: the number of sub-buckets is chosen anew for each window, from counts of its sensitive values (`pack`), and the kernel
fills classes (`Symmetric`). Every draw is a function of (key of the run, shard, number of the window), so an advance that is played
again gives the same classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.kernels.classes.equivalence_classes import Symmetric
from anonlib.keyed import Stream, derive
from anonlib.privacy.sub_buckets import JointValues
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.sub_buckets import pack

WINDOW = "stream: key of a window"
ORDER = "stream: order of the records of a window"
NUMBERS = "stream: numbers of the classes of a window"


@dataclass(frozen=True, eq=False)
class WindowClasses:
    """`anonlib.kernels.classes.sabre_window.Form` for one shard. k : records of a class; key : 32 bytes, of the run."""

    domains: tuple[Domain, ...]
    distance: GroundDistance
    k: int
    key: bytes = field(repr=False)
    shard: int = 0

    def __call__(self, columns: Sequence[Codes], sensitive: Int64Array, t: Fraction, window: int) -> Int64Array:
        """(n,) int64. n >= k, else ValueError. O(M log M) for each number of sub-buckets tried, then as `symmetric_classes`."""
        key = derive(self.key, WINDOW, self.shard, window)
        order = np.lexsort((sensitive, *reversed(columns)))  # the same records, the same order, however they came
        order = order[Stream(key, ORDER).permutation(len(order))]
        codes = sensitive[order].astype(np.int64)
        closeness = TCloseness(self.distance, np.bincount(codes, minlength=self.distance.m).astype(np.int64), t)
        joint = JointValues.single(closeness.table)
        packing = pack([closeness], joint, self.k)
        kernel = Symmetric(self.domains, joint, packing.sub_buckets, packing.least, False, closeness, self.k, key)
        own = kernel([column[order] for column in columns], [codes], np.zeros(len(order), dtype=np.int64), 0)
        classes = np.empty(len(order), dtype=np.int64)
        classes[order] = Stream(key, NUMBERS).permutation(int(own.max()) + 1)[own]
        return classes
