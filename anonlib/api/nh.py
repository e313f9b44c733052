"""Ring generalization, the baseline, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.release.opened import Release


def nh(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    l: int,  # noqa: E741  (the field's name)
    partitions: str = "mondrian",
    partition_size: int | str = 100_000,
    identifiers: Sequence[str] = (),
    person: str | Sequence[str] = (),
    persons: Mapping[str, str] | None = None,
    ledger: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    output: str | PathLike[str] | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` by ring generalization: every record matches l records with l different sensitive values. Cost as `mondrian`."""
    method: dict[str, Any] = {"l": l, "partitions": partitions, "partition_size": partition_size}
    columns = column_roles(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"nh": method}, columns, missing, output, key, audit, person, persons, ledger)
