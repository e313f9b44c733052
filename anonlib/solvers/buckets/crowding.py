"""Which numbers of buckets have room for everybody? The linear conditions on b_1 .. b_q alone, found as they are needed.

For fixed b the records form a transportation problem. By maximum flow = minimum cut it has a solution iff sum_j S_j b_j = n
and no set I of values is crowded:

    for every set I of values:   sum_j min(S_j, sum_{i in I} floor(f'_i S_j)) b_j  >=  sum_{i in I} o_i

(what I may occupy of a bucket, at most the whole of it, over all buckets, against the records of I; where nodes of a hierarchy
have thresholds, what I may occupy is what gets through the tree, floor(f'_N S_j) through node N at most). So the integer program
of section 6.1 of generalized bucketization, with its m q variables v_ij, is one in the q variables b_j: there are 2^m
conditions, and the few that matter are separated by exact flows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.solvers.buckets.node_limits import room
from anonlib.solvers.buckets.sensitive_table import MergedValues
from anonlib.solvers.buckets.transport import Transport, transport
from anonlib.solvers.buckets.tree_transport import tree_transport

_LP_SCALE = (
    1e5  # the table is shrunk to this many records in floating point, so that tolerances mean the same for any n
)
_FLOW_SCALE = (
    10**13
)  # and blown up to about this many in integers, to separate fractional numbers of buckets by exact flows


@dataclass
class CrowdingConditions:
    """The conditions found so far: `rows[k] . b >= needs[k]`, beside sizes . b = n. Coefficients are exact integers."""

    values: MergedValues
    n: int
    rows: list[Int64Array] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)
    _seen: set[bytes] = field(default_factory=set)

    @property
    def sizes(self) -> Int64Array:
        """(q,) int64: S_j, the bucket sizes, ascending."""
        return self.values.sizes

    @property
    def costs(self) -> Int64Array:
        """(q,) int64: (S_j - 1)^2, what a bucket of each size loses."""
        return (self.values.sizes - 1) ** 2

    def condition(self, crowd: BoolArray) -> tuple[Int64Array, int]:
        """The condition of a set of groups, (G,) bool: coefficients (q,) and right-hand side."""
        members, nodes = self.values.members[crowd], self.values.nodes
        if nodes is None:
            held = members @ self.values.capacities[crowd]
        else:
            most = members[:, None] * self.values.capacities[crowd]
            held = room(most, nodes.above[crowd], nodes.parents, nodes.capacities)
        return np.minimum(self.sizes, held), int(members @ self.values.counts[crowd])

    def add(self, crowd: BoolArray) -> bool:
        """Remember the condition of this set; False if it is known already."""
        row, need = self.condition(crowd)
        key = row.tobytes() + str(need).encode()
        if key in self._seen:
            return False
        self._seen.add(key)
        self.rows.append(row)
        self.needs.append(need)
        return True

    def matrix(self) -> tuple[Int64Array, Int64Array]:
        """All K conditions found so far: coefficients (K, q) and right-hand sides (K,), int64."""
        if not self.rows:
            return np.zeros((0, len(self.sizes)), dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.stack(self.rows), np.array(self.needs, dtype=np.int64)

    def separate(self, numbers: Float64Array) -> bool:
        """Add conditions that fractional numbers of buckets break (by more than rounding); False if none was found.

        The table is scaled to about 10^13 records and capacities are rounded up, so the flow refuses nothing by rounding.
        """
        scale = max(1, _FLOW_SCALE // self.n)
        used = np.flatnonzero(numbers > 0)
        scaled = numbers[used] * scale
        most = self.values.members[:, None] * np.ceil(self.values.capacities[:, used] * scaled).astype(np.int64)
        demand = np.rint(self.sizes[used] * scaled).astype(np.int64)
        demand[np.argmax(demand)] += self.n * scale - int(demand.sum())
        added = False
        for crowd in self._placed(self.values.supply * scale, most + 1, demand, used, scaled).crowded:
            row, need = self.condition(crowd)
            if need - float(row @ numbers) > 1e-9 * self.n:
                added |= self.add(crowd)
        return added

    def _placed(
        self, supply: Int64Array, most: Int64Array, demand: Int64Array, used: Int64Array, scaled: Float64Array
    ) -> Transport:
        nodes = self.values.nodes
        if nodes is None:
            return transport(supply, most, demand)
        limits = np.ceil(nodes.capacities[:, used] * scaled).astype(np.int64) + 1
        return tree_transport(supply, most, demand, nodes.above, nodes.parents, limits)


@dataclass(frozen=True)
class Relaxation:
    """The least loss with fractional numbers of buckets: `numbers` (q,) floats, `bound` a proven lower bound on any loss.

    feasible : False when even fractional numbers cannot keep the conditions, so no valid setting exists
    """

    numbers: Float64Array
    bound: int
    feasible: bool


def relax(conditions: CrowdingConditions) -> Relaxation:
    """Solve the linear relaxation under the conditions known so far (HiGHS). Cost: a program of q variables and K rows."""
    shrink = _LP_SCALE / conditions.n
    matrix, needs = conditions.matrix()
    solved = linprog(
        conditions.costs,
        A_ub=-matrix,
        b_ub=-needs * shrink,
        A_eq=conditions.sizes[None, :],
        b_eq=[_LP_SCALE],
        method="highs",
    )
    if solved.x is None:
        if solved.status != 2:
            raise RuntimeError(f"the linear relaxation of the bucket setting could not be solved: {solved.message}")
        return Relaxation(np.zeros(len(conditions.sizes)), 0, False)
    prices = np.maximum(0.0, -solved.ineqlin.marginals)
    return Relaxation(np.maximum(solved.x, 0.0) / shrink, _proven_bound(conditions, prices), True)


def _proven_bound(conditions: CrowdingConditions, prices: Float64Array) -> int:
    """ceil of the dual value of `prices`, in exact rationals: whatever the floats are worth, the bound holds.

    For prices y >= 0 and p = min_j ((S_j - 1)^2 - y . rows_j) / S_j, every admissible b has
    loss >= y . rows b + p sizes . b >= y . needs + p n.
    """
    unit = 2**32
    whole = [(int(price * unit), k) for k, price in enumerate(prices) if price * unit >= 1]
    gathered = [0] * len(conditions.sizes)
    value = 0
    for price, k in whole:
        value += price * conditions.needs[k]
        gathered = [g + price * int(c) for g, c in zip(gathered, conditions.rows[k], strict=True)]
    per_record = min(
        Fraction(int(cost) * unit - g, int(size))
        for cost, size, g in zip(conditions.costs, conditions.sizes, gathered, strict=True)
    )
    bound = (value + per_record * conditions.n) / unit
    return max(0, -((-bound.numerator) // bound.denominator))
