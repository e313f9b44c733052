"""The bucketized layout: which columns stand in `qit/` and `st/`.

qit/  quasi-identifiers and `other` columns unchanged, `bucket_id` long
st/   `bucket_id` long, the sensitive column, `count` long: one row per distinct sensitive value of a bucket

Of two sensitive columns `st/` has both: one row per combination of their values that a bucket holds. The manifest knows a combination by
its text (`anonlib.engine.compound`), and `guarantee.also` tells of each column by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from anonlib.release.manifest import Manifest
from anonlib.sql import quoted

QIT = "qit"
ST = "st"


def sensitive_columns(manifest: Manifest) -> tuple[str, ...]:
    """The sensitive columns of `st/`, by what the manifest promises."""
    guarantee = manifest.guarantee
    return tuple(part.sensitive for part in guarantee.also) or (guarantee.sensitive,)


def type_of_combination(sensitive: Mapping[str, str]) -> str:
    """What the manifest says of the type of a combination of {sensitive column: Spark type}."""
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in sensitive.items())}>"


def combined(sensitive: Mapping[str, str] | tuple[str, ...]) -> str:
    """SQL: the sensitive value of a row, of its own type: the column, or a struct of several."""
    names = list(sensitive)
    return quoted(names[0]) if len(names) == 1 else f"struct({', '.join(map(quoted, names))})"
