"""Mondrian, the baseline, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.exact import Exactish
from anonlib.release.opened import Release


def mondrian(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    k: int | None = None,
    distinct_l: int | None = None,
    frequency_l: int | None = None,
    beta: Exactish | None = None,
    enhanced_beta: Exactish | None = None,
    t: Exactish | None = None,
    cuts: str = "strict",
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
    """Publish `df` in Mondrian's classes, which keep every promise given; give one or more of the six.

    Numbers of a guarantee are text or integers ("0.35"); a float is refused. Otherwise as `anonlib.bucketize`. Three to seven scans of
    `df`, one shuffle of its codes and one of what is published.
    """
    asked = {
        "k": k,
        "distinct_l": distinct_l,
        "frequency_l": frequency_l,
        "beta": beta,
        "enhanced_beta": enhanced_beta,
        "t": t,
    }
    method = {name: number for name, number in asked.items() if number is not None}
    method |= {"cuts": cuts, "partition_size": partition_size}
    columns = column_roles(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"mondrian": method}, columns, missing, output, key, audit, person, persons, ledger)
