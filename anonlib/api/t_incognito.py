"""Full-domain recoding under t-closeness, the baseline, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from anonlib.api.publish import Column, column_roles, publish
from anonlib.engine.relational import DataFrame
from anonlib.exact import Exactish
from anonlib.release.opened import Release


def t_incognito(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    t: Exactish,
    k: int = 1,
    identifiers: Sequence[str] = (),
    person: str | Sequence[str] = (),
    persons: Mapping[str, str] | None = None,
    ledger: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    output: str | PathLike[str] | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` at one level per quasi-identifier under t-closeness and k-anonymity.

    Four scans of `df`; its distinct combinations of quasi-identifiers and sensitive value (at most two million) reach the driver.
    """
    columns = column_roles(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"t_incognito": {"t": t, "k": k}}, columns, missing, output, key, audit, person, persons, ledger)
