"""Small domain randomization (and uniform perturbation, its baseline), from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.release.opened import Release


def perturb(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column | Sequence[Column],
    rho2: int | str | Fraction,
    rho1: int | str | Fraction | None = None,
    delta: int | str | Fraction = "0.05",
    partitioning: str = "small_domain",
    merging: str | None = None,
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
    """Publish `df` with its sensitive values perturbed under (rho1, rho2)-privacy and return the opened release.

    rho1, rho2   : a sensitive value with a share of at most rho1 (every value when None) is believed of a person with at most rho2;
                   as text, e.g. rho1="1/13", rho2="1/6"
    delta        : the error bound that the manifest states fails with this chance at most
    partitioning : "small_domain", or "whole" for uniform perturbation; merging : "search" (when None) or "neighbours"
    output, key  : as for `bucketize`

    Raises SpecError, Unsatisfiable or AuditRefused; then nothing is published. Two scans of `df` (one more pass writes it out first
    when its plan may not repeat itself); one shuffle of the published rows.
    """
    method: dict[str, Any] = {"rho2": rho2, "delta": delta, "partitioning": partitioning}
    method |= {name: value for name, value in (("rho1", rho1), ("merging", merging)) if value is not None}
    columns = column_roles(quasi_identifiers, sensitive, identifiers, other)
    return publish(df, {"perturb": method}, columns, missing, output, key, audit, person, persons, ledger)
