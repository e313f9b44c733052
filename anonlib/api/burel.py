"""BuReL, the baseline, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.exact import Exactish
from anonlib.release.opened import Release


def burel(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    beta: Exactish,
    refine: bool = True,
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
    """Publish `df` under enhanced beta-likeness, as BuReL does. Cost as `mondrian`."""
    method: dict[str, Any] = {"beta": beta, "refine": refine, "partition_size": partition_size}
    columns = column_roles(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"burel": method}, columns, missing, output, key, audit, person, persons, ledger)
