"""What a manifest says of the nodes of its sensitive values' hierarchy, by the rows of that hierarchy. Pure.

Who is under a node is read off the rows: no order of values, no flow and no pool that a method made is taken up here.
"""

from __future__ import annotations

from fractions import Fraction

from anonlib.audit import arithmetic
from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.hierarchy import hierarchy_of
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.spec.release import Columns

TREE = "nodes of the hierarchy"
METHODS = ("bucketize", "heterogeneous")
"""Those that bound nodes."""


def under(part: GuaranteePart) -> list[frozenset[str]]:
    """The values of the release under each node that the manifest lists, by the rows of its hierarchy."""
    below = _below(part)
    return [frozenset(below.get(node.node, ())) for node in part.nodes]


def _below(part: GuaranteePart) -> dict[str, set[str]]:
    """The values of the release under each label above one. One pass over the rows: O(leaves x levels)."""
    occurring = {v.value for v in part.values}
    below: dict[str, set[str]] = {}
    for row in part.hierarchy:
        if row[0] in occurring:
            for label in row[1:]:
                below.setdefault(label, set()).add(row[0])
    return below


def of_manifest(manifest: Manifest, columns: Columns | None) -> list[Check]:
    """The manifest's nodes are those of its hierarchy, which is the spec's where that is known; with the records and thresholds that
    follow. None where values have no hierarchy, in the manifest and in the spec."""
    part = manifest.guarantee
    asked = columns.sensitive[0].told_hierarchy if columns is not None else None
    if not part.hierarchy and not part.nodes and (asked is None or manifest.method.name not in METHODS):
        return []
    faults = _faults(manifest)
    if columns is not None and sorted(part.hierarchy) != sorted([] if asked is None else asked.rows):
        faults.append("the rows of the hierarchy are not those of the spec")
    told = f"{len(part.nodes):,} nodes over {len(part.hierarchy):,} values"
    return [Check.unless(faults, TREE, "those of the hierarchy, with their records and thresholds", told)]


def thresholds_of(manifest: Manifest) -> dict[str, Fraction]:
    """{value or node: its own threshold}, by the method's parameters. Raises where they are nothing of the kind."""
    parameters = manifest.method.parameters
    asked = parameters["privacy"] if manifest.method.name == "bucketize" else parameters
    return {str(name): exact(share) for name, share in (asked.get("thresholds") or {}).items()}


def _faults(manifest: Manifest) -> list[str]:
    part = manifest.guarantee
    try:
        tree = hierarchy_of(part.hierarchy)
        own = thresholds_of(manifest)
    except (AnonlibError, KeyError, AttributeError, TypeError, ValueError, IndexError) as problem:
        return [f"no hierarchy: {problem}"]
    counts = {v.value: v.count for v in part.values if v.value is not None}
    leaves = set(tree.labels[: tree.leaves])
    faults = [f"{value!r} is no leaf" for value in counts if value not in leaves]
    inner = [label for label in tree.labels[tree.leaves :] if label != tree.labels[tree.root]]
    values_below = _below(part)
    below = {label: values_below.get(label, set()) for label in inner}
    wanted = {label for label, values in below.items() if len(values) > 1 or (values and label in own)}
    listed = [node.node for node in part.nodes]
    if len(set(listed)) < len(listed) or set(listed) != wanted:
        faults.append(f"{len(listed):,} nodes listed, {len(wanted):,} stand above values")
    n = sum(counts.values()) + sum(v.count for v in part.values if v.value is None)
    for node in part.nodes:
        records = sum(counts[value] for value in below.get(node.node, ()))
        if node.count != records:
            faults.append(f"{node.node!r}: stated {node.count:,} records, its values have {records:,}")
        threshold = own.get(node.node)
        if node.threshold != (None if threshold is None else text(threshold)):
            faults.append(f"{node.node!r}: stated threshold {node.threshold}, the parameters give {threshold}")
        elif threshold is not None and not (0 < threshold <= 1 and arithmetic.can_be_kept(records, n, threshold)):
            faults.append(f"{node.node!r}: no release can keep {text(threshold)} of {records:,} in {n:,} records")
    return faults


def promised(part: GuaranteePart) -> list[tuple[str | None, Fraction]] | None:
    """The nodes that have a threshold, the strictest first, as the words name them; None where values have no hierarchy."""
    if not part.hierarchy:
        return None
    named = [(node.node, exact(node.threshold)) for node in part.nodes if node.threshold is not None]
    return [*sorted(named, key=lambda pair: (pair[1], pair[0]))]
