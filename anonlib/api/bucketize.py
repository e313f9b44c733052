"""Generalized bucketization, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.exact import text
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.release.opened import Release


def bucketize(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column | Sequence[Column],
    privacy: FPrivacy | Mapping[str, Any],
    identifiers: Sequence[str] = (),
    other: Sequence[str] = (),
    person: str | Sequence[str] = (),
    persons: Mapping[str, str] | None = None,
    ledger: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    solver: str = "optimal",
    max_bucket_size: int = 50,
    time_limit: float | None = None,
    fake_values: int = 0,
    avoid_negative_associations: bool = False,
    mix_companions: bool = False,
    output: str | PathLike[str] | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` by generalized bucketization under F'-privacy and return the opened release.

    sensitive : a column's name, or {"name": ..., "hierarchy": a CSV path}: thresholds may then name nodes, and values of other branches
                share buckets where they can. Or two of them: every value of either is bounded
    privacy : FPrivacy.linear(theta=8, offset="0.02"), FPrivacy.l_diversity(10), ..., or the mapping that YAML would have
    person  : the column, or columns, that say whose record a row is; persons : {"repeated": "latest", "order": "admitted"} or the like,
              what happens to a person with several (refused when None)
    ledger  : {"path": "private/ledger", "key": "env:LEDGER_KEY"} or the like, where it is kept who has been published: they are left out
    output  : where the release goes; a new temporary folder of the driver when None (give a shared path on a cluster)
    key     : "env:NAME" or "file:PATH" of the release key; a fresh one, never stored, when None

    Raises SpecError, Unsatisfiable or AuditRefused; then nothing is published. Two scans of `df` (one more pass writes it out first
    when its plan may not repeat itself); one shuffle of the published rows.
    """
    method: dict[str, Any] = {
        "privacy": _privacy(privacy),
        "solver": solver,
        "max_bucket_size": max_bucket_size,
        "fake_values": fake_values,
        "avoid_negative_associations": avoid_negative_associations,
        "mix_companions": mix_companions,
    }
    if time_limit is not None:
        method["time_limit"] = time_limit
    columns = column_roles(quasi_identifiers, sensitive, identifiers, other)
    return publish(df, {"bucketize": method}, columns, missing, output, key, audit, person, persons, ledger)


def _privacy(privacy: FPrivacy | Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(privacy, FPrivacy):
        return privacy
    stated: dict[str, Any] = {}
    if privacy.theta is not None:
        stated |= {"theta": text(privacy.theta), "offset": text(privacy.offset)}
    if privacy.default is not None:
        stated["default"] = text(privacy.default)
    if named := {value: text(share) for value, share in privacy.own.items() if value is not None}:
        stated["thresholds"] = named
    if None in privacy.own:
        stated["missing"] = text(privacy.own[None])
    return stated
