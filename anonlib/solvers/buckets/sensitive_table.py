"""What the bucket solvers see of a table: counts, exact capacities, and values merged where no solver can tell them apart.

Cost: m x q integers for q = M' - M + 1 sizes. Nothing here depends on the number of records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.exact import legible
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import Thresholds
from anonlib.solvers.buckets.node_limits import NodeLimits, room


@dataclass(frozen=True)
class SensitiveTable:
    """Counts of the sensitive values, with floor(f'_i S) for every bucket size S a solver may use.

    counts     : (m,) int64, o_i >= 0 (a part of a table may lack some values)
    first_size : the smallest size, M = min_i ceil(1 / f'_i)
    classes    : (K, q) int64, the distinct rows of floor(f'_i S_j) over S_j = first_size .. first_size + q - 1
    class_of   : (m,) int64, the row of value i
    nodes      : limits on values taken together, None where no node of a hierarchy has a threshold
    """

    counts: Int64Array
    first_size: int
    classes: Int64Array
    class_of: Int64Array
    nodes: NodeLimits | None = None

    @staticmethod
    def of(counts: SensitiveCounts, thresholds: Thresholds, max_bucket_size: int) -> SensitiveTable:
        """The table with sizes M .. min(max_bucket_size, |T|); no size at all when M is larger (`sizes` is empty).

        Raises SpecError for an empty table or a size below 1, Unsatisfiable when a value breaks Lemma 1.
        """
        if counts.m == 0:
            raise SpecError("the table has no records, so there is nothing to put into buckets; check the input path")
        if isinstance(max_bucket_size, bool) or max_bucket_size < 1:
            raise SpecError(f"max_bucket_size: {max_bucket_size!r} is not a whole number of at least 1")
        refuse_ineligible(counts, thresholds)
        first = thresholds.smallest_size
        sizes = range(first, min(max_bucket_size, counts.n) + 1)
        if len(sizes) == 0:
            return SensitiveTable(
                counts.counts, first, np.zeros((1, 0), dtype=np.int64), np.zeros(counts.m, dtype=np.int64)
            )
        ids = {f: i for i, f in enumerate(dict.fromkeys(thresholds.fractions))}
        fraction_of = np.array([ids[f] for f in thresholds.fractions], dtype=np.int64)
        distinct = _capacities(list(ids), sizes)
        classes, class_of_fraction = np.unique(distinct, axis=0, return_inverse=True)
        class_of = class_of_fraction.reshape(-1)[fraction_of].astype(np.int64)
        return SensitiveTable(counts.counts, first, classes, class_of, NodeLimits.of(thresholds, sizes))

    @property
    def n(self) -> int:
        """n, how many records the counts add up to."""
        return int(self.counts.sum())

    @property
    def sizes(self) -> range:
        """The bucket sizes S_j of the columns, ascending."""
        return range(self.first_size, self.first_size + self.classes.shape[1])

    def capacity(self, size: int) -> Int64Array:
        """floor(f'_i * size), (m,) int64: how many records of each value a bucket of that size may hold. size : one of `sizes`."""
        return np.asarray(self.classes[self.class_of, size - self.first_size])

    def part(self, counts: Int64Array) -> SensitiveTable:
        """The same values and sizes with other counts, (m,) int64: the records that go to the buckets of one size."""
        return replace(self, counts=counts)

    def merged(self, above: Int64Array | None = None) -> MergedValues:
        """Values with equal counts, equal capacities and the same limits above them as one group each; values without records are left out.

        above : (m,) int64, further numbers that the values of a group must share. O(m log m + G q).
        """
        present = np.flatnonzero(self.counts)
        limits = np.full(len(self.counts), -1, dtype=np.int64) if self.nodes is None else self.nodes.above
        further = limits if above is None else above
        keys = np.stack([self.counts[present], self.class_of[present], limits[present], further[present]], axis=1)
        distinct, group_of, members = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        return MergedValues(
            counts=distinct[:, 0],
            members=members.astype(np.int64),
            capacities=self.classes[distinct[:, 1]],
            value_ids=present[np.argsort(group_of.reshape(-1), kind="stable")],
            sizes=np.array(self.sizes, dtype=np.int64),
            nodes=None if self.nodes is None else replace(self.nodes, above=distinct[:, 2]),
        )


@dataclass(frozen=True)
class MergedValues:
    """G groups of values that share o_i and the vector floor(f'_i S_j), and stand under the same limits.

    counts, members : (G,) int64, o_i of one member and the number of members
    capacities      : (G, q) int64, floor(f'_i S_j) of one member
    value_ids       : (present values,) int64, positions in the table, group after group
    sizes           : (q,) int64, S_j
    nodes           : limits on groups taken together, its `above` (G,) of the groups; None where there are none
    """

    counts: Int64Array
    members: Int64Array
    capacities: Int64Array
    value_ids: Int64Array
    sizes: Int64Array
    nodes: NodeLimits | None = None

    @property
    def supply(self) -> Int64Array:
        """(G,) int64: how many records each group has over all its members."""
        return self.members * self.counts

    def column(self, size: int) -> Int64Array:
        """floor(f'_i * size), (G,) int64, of one member of each group. size : one of `sizes`."""
        return np.asarray(self.capacities[:, int(np.searchsorted(self.sizes, size))])

    def only(self, columns: Int64Array) -> MergedValues:
        """The same groups with fewer sizes. columns : (k,) int64, positions in `sizes`."""
        nodes = None if self.nodes is None else self.nodes.only(columns)
        return replace(self, capacities=self.capacities[:, columns], sizes=self.sizes[columns], nodes=nodes)

    def fill_limits(self) -> Int64Array:
        """For each size S the most buckets that the values can fill: max b with sum_i min(floor(f'_i S) b, o_i) >= S b, (q,); of nodes with
        a limit the sum under each counts up to floor(f'_N S) b.

        The condition holds for b = 0 and up to the answer, by concavity; so bisect, all sizes at once: O((G + K) q log |T|).
        """
        low = np.zeros(len(self.sizes), dtype=np.int64)
        high = int(self.supply.sum()) // self.sizes
        while (low < high).any():
            middle = (low + high + 1) // 2
            taken = np.minimum(self.capacities * middle, self.counts[:, None])
            if self.nodes is None:
                filled = self.members @ taken
            else:
                limits = self.nodes.capacities * middle
                filled = room(self.members[:, None] * taken, self.nodes.above, self.nodes.parents, limits)
            enough = filled >= self.sizes * middle
            low, high = np.where(enough, middle, low), np.where(enough, high, np.maximum(low, middle - 1))
        return low

    def deal(self, flow: Int64Array, m: int) -> Int64Array:
        """Split the (G, q) records of each group and size evenly over the members: (m, q), exact.

        Laid end to end, size after size, the t-th record of a group goes to member t mod members. So each member gets
        o_i in all and floor or ceil of flow / members per size, which stays within a capacity that every member shares.
        """
        ends = np.cumsum(flow, axis=1)  # (G, q)
        group = np.repeat(np.arange(len(self.counts)), self.members)
        rank = (np.arange(len(group)) - np.repeat(np.cumsum(self.members) - self.members, self.members))[:, None]
        members = self.members[group][:, None]
        upto_end = -((rank - ends[group]) // members)  # ceil((end - rank) / members) records have gone to this member
        upto_start = -((rank - (ends - flow)[group]) // members)
        partition = np.zeros((m, flow.shape[1]), dtype=np.int64)
        partition[self.value_ids] = upto_end - upto_start
        return partition


def _capacities(fractions: list[Fraction], sizes: range) -> Int64Array:
    """floor(f' S), exactly: in 64-bit integers where the products fit, else in Python's."""
    if max(f.numerator for f in fractions) * sizes.stop < 2**62 and max(f.denominator for f in fractions) < 2**62:
        numerators = np.array([f.numerator for f in fractions], dtype=np.int64)
        denominators = np.array([f.denominator for f in fractions], dtype=np.int64)
        return numerators[:, None] * np.arange(sizes.start, sizes.stop, dtype=np.int64) // denominators[:, None]
    return Thresholds(tuple(fractions)).capacities(sizes)


def refuse_ineligible(counts: SensitiveCounts, thresholds: Thresholds) -> None:
    """Raise Unsatisfiable unless f'_i >= f_i for all i (Lemma 1), so that one bucket of all records would be valid."""
    if len(thresholds.fractions) != counts.m:
        raise SpecError(
            f"{len(thresholds.fractions)} thresholds were given for {counts.m} sensitive values; give one for each"
        )
    offending = [i for i, f in enumerate(thresholds.fractions) if f < counts.frequency(i)]
    if offending:
        named = ", ".join(
            f"{counts.values[i]!r} (threshold {legible(thresholds.fractions[i])}, needs {legible(counts.frequency(i))})"
            for i in offending
        )
        raise Unsatisfiable(
            f"no buckets can keep these thresholds, because {len(offending)} sensitive value(s) are more frequent in the whole "
            f"table than their threshold (Lemma 1); raise the thresholds of: {named}"
        )
