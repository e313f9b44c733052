"""What every publishing verb shares: its arguments become the spec that YAML would have been."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from anonlib import workflow
from anonlib.api.arguments import as_columns, as_mapping, as_output, as_table
from anonlib.engine.relational import DataFrame
from anonlib.release.opened import Release
from anonlib.spec.load import parse_spec

Column = str | Mapping[str, Any]


def column_roles(
    quasi_identifiers: Sequence[Column],
    sensitive: Column | Sequence[Column],
    identifiers: Sequence[str],
    other: Sequence[str],
) -> dict[str, Any]:
    """The `columns` of a spec: in which role each column is."""
    return {
        "quasi_identifiers": as_columns(
            quasi_identifiers, "quasi_identifiers", '[{"name": "age", "type": "numeric"}, "country"]'
        ),
        "sensitive": sensitive,
        "identifiers": "rest"
        if identifiers == "rest"
        else as_columns(identifiers, "identifiers", '["name"], or "rest"'),
        "other": as_columns(other, "other", '["ward"]'),
    }


def publish(
    df: DataFrame,
    method: dict[str, Any],
    columns: Mapping[str, Any],
    missing: Mapping[str, Any] | None,
    output: str | os.PathLike[str] | None,
    key: str | None,
    audit: str,
    person: str | Sequence[str] = (),
    persons: Mapping[str, str] | None = None,
    ledger: Mapping[str, Any] | None = None,
) -> Release:
    """Publish `df`, a Spark DataFrame or a pandas one of a small table, by the spec that these arguments spell.

    person, persons : `columns.person`, whose record a row is, and what happens to a person with several (`anonlib.spec.persons`)
    ledger          : who has been published (`anonlib.spec.ledger`), e.g. {"path": "private/ledger", "key": "env:LEDGER_KEY"}

    Raises SpecError, Unsatisfiable, AuditRefused or Postponed; TypeError for an argument of another type.
    """
    table = as_table(df)
    raw_spec: dict[str, Any] = {
        "columns": {**columns, "person": person} if person else columns,
        "method": method,
        "output": {"path": as_output(output or os.path.join(tempfile.mkdtemp(prefix="anonlib-"), "release"))},
        "audit": audit,
    }
    if missing is not None:
        raw_spec["missing"] = as_mapping(missing, "missing", '{"sensitive": "drop"}')
    if persons is not None:
        raw_spec["persons"] = as_mapping(persons, "persons", '{"repeated": "random"}')
    if ledger is not None:
        raw_spec["ledger"] = as_mapping(ledger, "ledger", '{"path": "private/ledger", "key": "env:LEDGER_KEY"}')
    if key is not None:
        raw_spec["random"] = {"key": key}
    spec = parse_spec(raw_spec, given_frame=True)
    return workflow.run(spec, table.sparkSession, table)
