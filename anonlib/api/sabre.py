"""SABRE, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.release.opened import Release


def sabre(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column | Sequence[Column],
    t: int | str | Fraction,
    k: int = 1,
    refine: bool | None = None,
    neighbours: str | None = None,
    partition_size: int | str | None = None,
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
    """Publish `df` in equivalence classes that are t-close in every sensitive column, and return the opened release.

    t              : the earth mover's distance a class may have from the table, as text, e.g. "0.35"; between values it is measured by rank
                     (type: numeric), by height in a hierarchy, or is 1
    k              : records of a class at least
    refine         : True: split classes on while their true distance allows it; False: SABRE as published
    neighbours     : "approximate" or "exact": SABRE as published, SABRE-AK or SABRE-KNN
    partition_size : records a task works on in one piece (100,000 when None), or "all"
    allow_minimality_leak : refine and neighbours are for comparisons; they leak by minimality, and are refused without it
    output, key    : as for `bucketize`

    Raises SpecError, Unsatisfiable or AuditRefused; then nothing is published. Two shuffles of all records, three scans or more: see
    `anonlib.methods.sabre`.
    """
    optional = (("refine", refine), ("neighbours", neighbours), ("partition_size", partition_size))
    method: dict[str, Any] = {"t": t, "k": k} | {name: value for name, value in optional if value is not None}
    if allow_minimality_leak:
        method["allow_minimality_leak"] = True
    columns = column_roles(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"sabre": method}, columns, missing, output, key, audit, person, persons, ledger)
