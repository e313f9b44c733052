"""The hierarchies that a release has in its manifest, whichever layout it is of: nodes that its predicates may name."""

from __future__ import annotations

from collections.abc import Sequence

from anonlib.release.manifest import Manifest


def hierarchies(manifest: Manifest) -> dict[str, Sequence[Sequence[str]]]:
    """{column: the rows of its hierarchy, leaf to root}, of sensitive columns and of generalized quasi-identifiers."""
    parts = (manifest.guarantee, *manifest.guarantee.also)
    rows = {part.sensitive: part.hierarchy for part in parts} | {
        part.name: part.hierarchy for part in manifest.quasi_identifiers
    }
    return {column: tree for column, tree in rows.items() if tree}
