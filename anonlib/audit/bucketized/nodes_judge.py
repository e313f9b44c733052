"""Whether a bucketized release keeps what it promises of the nodes of its sensitive values' hierarchy. Pure: facts to checks.

Who is under a node is read off the rows of the manifest's tree (`anonlib.audit.nodes`), and what a bucket holds of a node is counted in the
bucket: no order of values, no flow and no round of the deal that was made is taken up here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from anonlib.audit.achieved import Bound
from anonlib.audit.bucketized.facts import NodeEntry
from anonlib.audit.verdict import Check
from anonlib.exact import exact, text
from anonlib.release.manifest import GuaranteePart

PRIVACY = "F'-privacy of nodes"


def shares(entries: Sequence[NodeEntry]) -> dict[int, tuple[Fraction, int]]:
    """Node -> (its largest share of any bucket, exactly; how many buckets hold nothing else)."""
    found: dict[int, tuple[Fraction, int]] = {}
    for entry in entries:
        share, telling = found.get(entry.node, (Fraction(0), 0))
        own = Fraction(entry.count, entry.smallest) if entry.smallest > 0 else Fraction(entry.count + 1)
        found[entry.node] = (max(share, own), telling + entry.telling)
    return found


def bounds(part: GuaranteePart, found: Mapping[int, tuple[Fraction, int]]) -> list[Bound]:
    """The largest share of each node with a threshold against it."""
    return [
        Bound(f"the share of values under {node.node!r}", found.get(k, (Fraction(0), 0))[0], exact(node.threshold))
        for k, node in enumerate(part.nodes)
        if node.threshold is not None
    ]


def of_tables(part: GuaranteePart, entries: Sequence[NodeEntry], staged: bool) -> list[Check]:
    """No node above its threshold in any bucket, and what the manifest says of each is what its buckets hold."""
    if not part.nodes:
        return []
    found = shares(entries)
    asked = bounds(part, found)
    broken = [str(bound) for bound in asked if not bound.kept]
    closest = max(asked, key=lambda bound: bound.achieved / bound.asked, default=None)
    told = "no node has a threshold" if closest is None else f"closest: {closest}"
    kept = Check.unless(broken, PRIVACY, "every node within its threshold in every bucket", told)
    faults = []
    for k, node in enumerate(part.nodes):
        share, telling = found.get(k, (Fraction(0), 0))
        if staged and node.achieved is None and node.telling is None:
            continue
        if (node.achieved, node.telling) != (text(share), telling):
            faults.append(
                f"{node.node!r}: stated {node.achieved}, {node.telling} buckets; found {text(share)}, {telling:,}"
            )
    wanted = "the largest share and the telling buckets of each node as the manifest states them"
    return [kept, Check.unless(faults, "achieved shares of nodes", wanted, f"{len(faults):,} differ")]
