"""Can these records fill these buckets, where values under one node of a hierarchy have a limit together? A maximum flow, exact.

As `anonlib.solvers.buckets.transport`, with a tree for each bucket size between the values and the size: records flow from a group of
values into the lowest node above it, through node after node, each of which lets floor(f'_N S_j) b_j through, to the size. All numbers are
Python integers; capacities are integers, so the flow is. Dinic's algorithm, without recursion.

Cost: a network of G + (K + 1) q nodes and (G + K + 1) q arcs for G groups, K nodes and q sizes in use; some ten rounds of a walk over it.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.solvers.buckets.transport import Transport


def tree_transport(
    supply: Int64Array,
    capacity: Int64Array,
    demand: Int64Array,
    above: Int64Array,
    parents: Int64Array,
    limits: Int64Array,
) -> Transport:
    """Place supply[i] records of each row into columns that take exactly demand[j]: at most capacity[i, j], and limits[k, j] under node k.

    supply (G,), capacity (G, q), demand (q,), sum of supply = sum of demand; above (G,), the node above each row, -1 for none;
    parents (K,), each node behind those below it, -1 for none above; limits (K, q). All int64.

    Crowded sets are those of the two extreme minimum cuts: of a set I, less than its supply gets through the trees.
    """
    if int(supply.sum()) != int(demand.sum()):
        raise ValueError(f"{int(supply.sum())} records cannot fill {int(demand.sum())} places exactly")
    G, q, K = len(supply), len(demand), len(parents)
    sink = 1 + G + (K + 1) * q
    network = _Network(sink + 1)
    for i in range(G):
        network.join(0, 1 + i, int(supply[i]))
    arcs = np.full((G, q), -1, dtype=np.int64)
    for j in range(q):
        first = 1 + G + j * (K + 1)  # node k of column j is first + k; first + K is the column itself
        for i in np.flatnonzero(capacity[:, j] > 0).tolist():
            lowest = int(above[i])
            arcs[i, j] = network.join(1 + i, first + (K if lowest < 0 else lowest), int(capacity[i, j]))
        for k, parent in enumerate(parents.tolist()):
            network.join(first + k, first + (K if parent < 0 else parent), int(limits[k, j]))
        network.join(first + K, sink, int(demand[j]))
    if network.fill(0, sink) < int(supply.sum()):
        return Transport(None, _crowded(network, G, sink))
    flow = np.zeros((G, q), dtype=np.int64)
    for i, j in zip(*np.nonzero(arcs >= 0), strict=True):
        flow[i, j] = network.free[arcs[i, j] ^ 1]  # what may be taken back
    return Transport(flow, [])


def _crowded(network: _Network, groups: int, sink: int) -> list[BoolArray]:
    """Rows that the source still reaches, and rows from which the sink is out of reach: both prove that there is no room."""
    near = np.array(network.reached(0)[1 : groups + 1], dtype=np.bool_)
    far = ~np.array(network.reaching(sink)[1 : groups + 1], dtype=np.bool_)
    return [near] if (near == far).all() else [near, far]


class _Network:
    """Nodes by number; arcs in pairs, arc ^ 1 the way back. free[a] : how much more may flow along arc a."""

    def __init__(self, nodes: int) -> None:
        self.out: list[list[int]] = [[] for _ in range(nodes)]
        self.to: list[int] = []
        self.free: list[int] = []

    def join(self, one: int, other: int, capacity: int) -> int:
        """An arc; returns its number."""
        arc = len(self.to)
        self.to += [other, one]
        self.free += [capacity, 0]
        self.out[one].append(arc)
        self.out[other].append(arc + 1)
        return arc

    def fill(self, source: int, sink: int) -> int:
        """The maximum flow, sent."""
        sent = 0
        while (level := self._levels(source))[sink] >= 0:
            sent += self._blocking(source, sink, level)
        return sent

    def reached(self, source: int) -> list[bool]:
        """Which nodes more could still flow to from `source`."""
        return [level >= 0 for level in self._levels(source)]

    def reaching(self, sink: int) -> list[bool]:
        """From which nodes more could still flow to `sink`."""
        seen = [False] * len(self.out)
        seen[sink], waiting = True, [sink]
        while waiting:
            for arc in self.out[waiting.pop()]:
                before = self.to[arc]
                if self.free[arc ^ 1] and not seen[before]:
                    seen[before] = True
                    waiting.append(before)
        return seen

    def _levels(self, source: int) -> list[int]:
        level = [-1] * len(self.out)
        level[source] = 0
        waiting = deque([source])
        while waiting:
            node = waiting.popleft()
            for arc in self.out[node]:
                if self.free[arc] and level[self.to[arc]] < 0:
                    level[self.to[arc]] = level[node] + 1
                    waiting.append(self.to[arc])
        return level

    def _blocking(self, source: int, sink: int, level: list[int]) -> int:
        """Send along shortest paths until each is blocked."""
        following = [0] * len(self.out)
        path: list[int] = []
        sent, node = 0, source
        while True:
            if node == sink:
                amount = min(self.free[arc] for arc in path)
                sent += amount
                for arc in path:
                    self.free[arc] -= amount
                    self.free[arc ^ 1] += amount
                full = next(i for i, arc in enumerate(path) if not self.free[arc])
                node, path = self.to[path[full] ^ 1], path[:full]
                continue
            while following[node] < len(self.out[node]):
                arc = self.out[node][following[node]]
                if self.free[arc] and level[self.to[arc]] == level[node] + 1:
                    break
                following[node] += 1
            else:
                if not path:
                    return sent
                node = self.to[path.pop() ^ 1]
                following[node] += 1
                continue
            path.append(arc)
            node = self.to[arc]
