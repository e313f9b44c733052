"""Heterogeneous generalization, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.release.opened import Release


def heterogeneous(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column | Sequence[Column],
    l: int | None = None,  # noqa: E741  (the field's name)
    beta: int | str | Fraction | None = None,
    thresholds: Mapping[str, int | str | Fraction] | None = None,
    matching: str = "hungarian",
    partition_size: int | str = 1_000,
    remainder: str | None = None,
    far_apart: bool = False,
    refine: bool = False,
    allow_minimality_leak: bool = False,
    identifiers: Sequence[str] = (),
    person: str | Sequence[str] = (),
    persons: Mapping[str, str] | None = None,
    ledger: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    output: str | PathLike[str] | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` with a box of its own for every record, under l-diversity or beta-likeness, and return the opened release.

    sensitive      : one column, or under l two of them, each with l different values among the matches of every record
    l, beta        : the promise, one of them; beta as text or a whole number, e.g. beta="2.5"
    thresholds     : {node of the sensitive column's hierarchy, or value: its share among the matches at most}, beside l or beta
    matching       : "hungarian" (best), "sort_greedy" or "greedy" (fastest)
    partition_size : records that a task works on in one piece, at least, or "all"
    remainder      : under beta "dummy" or "suppress" ask for the paper's buckets, filled up with records that belong to nobody or leaving
                     some out; by default nothing is left over
    far_apart, refine : for comparisons; they leak by minimality, and are refused without `allow_minimality_leak`
    output, key    : as for `bucketize`

    Raises SpecError, Unsatisfiable or AuditRefused; then nothing is published. Up to five passes over `df`'s codes and four shuffles of
    them; time grows with n * partition_size.
    """
    method: dict[str, Any] = {
        "matching": matching,
        "partition_size": partition_size,
        "far_apart": far_apart,
        "refine": refine,
        "allow_minimality_leak": allow_minimality_leak,
    }
    given = {"l": l, "beta": beta, "thresholds": thresholds, "remainder": remainder}
    method |= {name: value for name, value in given.items() if value is not None}
    columns = column_roles(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"heterogeneous": method}, columns, missing, output, key, audit, person, persons, ledger)
