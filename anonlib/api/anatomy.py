"""Anatomy, the baseline, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.release.opened import Release


def anatomy(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    l: int,  # noqa: E741  (the field's name)
    identifiers: Sequence[str] = (),
    other: Sequence[str] = (),
    person: str | Sequence[str] = (),
    persons: Mapping[str, str] | None = None,
    ledger: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    output: str | PathLike[str] | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` by Anatomy, the baseline: buckets of l or l + 1 records with distinct sensitive values. Otherwise as `bucketize`."""
    columns = column_roles(quasi_identifiers, sensitive, identifiers, other)
    return publish(df, {"anatomy": {"l": l}}, columns, missing, output, key, audit, person, persons, ledger)
