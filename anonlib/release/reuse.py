"""A stored key is for repeating a run, and for nothing else.

Two releases of one table under one key have the same draws for other records, when the table came in another order or was cut otherwise:
each keeps its promise, and both together do not. Under `perturb` with rho1 = 1/13 and rho2 = 1/3 gamma is 6: who shows the same value in
both is believed to have it with odds of 6 * 1/2, that is 3/4. A release cannot see others that lie elsewhere, but those beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from anonlib.errors import SpecError
from anonlib.release.manifest import Manifest


def refuse(manifest: Manifest, beside: Mapping[str, str]) -> None:
    """Raises SpecError when a release of other rows was made with the same run key; a repeated run, row for row the same, is fine.

    manifest : with the checksums of its tables; beside : {path: text of a manifest} of releases that lie in the same folder
    """
    mine = {name: (part.rows, part.checksum) for name, part in manifest.tables.items()}
    for path, text in sorted(beside.items()):
        theirs = _tables_of(text, manifest.splits.key_tag)
        if theirs is not None and theirs != mine:
            raise SpecError(
                f"random.key: the release at {path} was made with the same key and the same parameters from another table, or from this "
                "one in another order or cut into other partitions; who sees both learns more of a person than either allows. Leave "
                "random out for a fresh key, or make a new one; to repeat that run, give the same input under the same settings (its "
                "manifest's splits)"
            )


def _tables_of(text: str, key_tag: str) -> dict[str, tuple[int, str]] | None:
    """Rows and checksums of a release's tables, when its manifest has this tag; None for another's, or for what is no manifest."""
    try:
        manifest = json.loads(text)
        if not key_tag or manifest["splits"].get("key_tag") != key_tag:
            return None
        return {name: (part["rows"], part["checksum"]) for name, part in manifest["tables"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
