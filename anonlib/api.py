"""The notebook's verbs. Each builds the same ReleaseSpec that YAML builds: two doors, one corridor."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonlib import workflow
from anonlib.audit.verdict import Verdict
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession, session
from anonlib.evaluation.utility import Evaluation
from anonlib.exact import text
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.release import opened
from anonlib.release.opened import Release
from anonlib.spec.load import load_spec, parse_spec
from anonlib.spec.release import ReleaseSpec

Column = str | Mapping[str, Any]


def bucketize(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    privacy: FPrivacy | Mapping[str, Any],
    identifiers: Sequence[str] = (),
    other: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    solver: str = "optimal",
    max_bucket_size: int = 50,
    time_limit: float | None = None,
    fake_values: int = 0,
    avoid_negative_associations: bool = False,
    output: str | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` by generalized bucketization under F'-privacy and return the opened release.

    privacy : FPrivacy.linear(theta=8, offset="0.02"), FPrivacy.l_diversity(10), ..., or the mapping that YAML would have
    output  : where the release goes; a new temporary folder of the driver when None (give a shared path on a cluster)
    key     : "env:NAME" or "file:PATH" of the release key; a fresh one, never stored, when None

    Raises SpecError, Unsatisfiable or AuditRefused; then nothing is published. Two scans of `df` (one more pass writes it out first
    when its plan may not repeat itself); no shuffle of its rows, unless they are sorted or grouped by something that goes with `sensitive`.
    """
    method: dict[str, Any] = {
        "privacy": _privacy(privacy),
        "solver": solver,
        "max_bucket_size": max_bucket_size,
        "fake_values": fake_values,
        "avoid_negative_associations": avoid_negative_associations,
    }
    if time_limit is not None:
        method["time_limit"] = time_limit
    columns = _columns(quasi_identifiers, sensitive, identifiers, other)
    return _publish(df, {"bucketize": method}, columns, missing, output, key, audit)


def anatomy(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    l: int,  # noqa: E741  (the field's name)
    identifiers: Sequence[str] = (),
    other: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    output: str | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` by Anatomy, the baseline: buckets of l or l + 1 records with distinct sensitive values. Otherwise as `bucketize`."""
    columns = _columns(quasi_identifiers, sensitive, identifiers, other)
    return _publish(df, {"anatomy": {"l": l}}, columns, missing, output, key, audit)


def open_release(path: str, spark: SparkSession | None = None) -> Release:
    """The release at `path`, in `spark` or in the active (else an embedded) session."""
    return opened.open_release(spark or session(), path)


def run(spec: ReleaseSpec | str | Path, spark: SparkSession | None = None, df: DataFrame | None = None) -> Release:
    """Make, audit and publish the release that a spec (or its YAML file) asks for."""
    return workflow.run(_spec(spec), spark or session(), df)


def explain(
    spec: ReleaseSpec | str | Path, spark: SparkSession | None = None, df: DataFrame | None = None
) -> workflow.Explanation:
    """What `run` would choose, from the statistics alone; nothing is written."""
    return workflow.explain(_spec(spec), spark or session(), df)


def evaluate(
    release: Release, original: DataFrame, queries: int = 5_000, selectivity: float = 0.01, seed: int = 0
) -> Evaluation:
    """The mean squared bucket size of `release`, and the relative error of `queries` count queries
    of about `selectivity` against `original`.

    Queries are conjunctions of A IN (values) over random quasi-identifiers and the sensitive attribute, drawn from `seed`. A constant
    number of Spark jobs, whatever the number of queries.
    """
    return workflow.evaluate(release, original, queries, selectivity, seed)


def audit(release: Release, original: DataFrame | None = None) -> Verdict:
    """Check `release` from its published tables alone or, with `original`, against the table it was made from."""
    return workflow.audit(release, original)


def _spec(spec: ReleaseSpec | str | Path) -> ReleaseSpec:
    return spec if isinstance(spec, ReleaseSpec) else load_spec(spec)


def _privacy(privacy: FPrivacy | Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(privacy, FPrivacy):
        return privacy
    stated: dict[str, Any] = {}
    if privacy.theta is not None:
        stated |= {"theta": text(privacy.theta), "offset": text(privacy.offset)}
    if privacy.default is not None:
        stated["default"] = text(privacy.default)
    if privacy.own:
        stated["thresholds"] = {value: text(share) for value, share in privacy.own.items()}
    return stated


def _columns(
    quasi_identifiers: Sequence[Column], sensitive: Column, identifiers: Sequence[str], other: Sequence[str]
) -> dict[str, Any]:
    return {
        "quasi_identifiers": list(quasi_identifiers),
        "sensitive": sensitive,
        "identifiers": list(identifiers),
        "other": list(other),
    }


def _publish(
    df: DataFrame,
    method: dict[str, Any],
    columns: dict[str, Any],
    missing: Mapping[str, str] | None,
    output: str | None,
    key: str | None,
    audit: str,
) -> Release:
    given: dict[str, Any] = {
        "columns": columns,
        "method": method,
        "output": {"path": output or tempfile.mkdtemp(prefix="anonlib-")},
        "audit": audit,
    }
    if missing is not None:
        given["missing"] = dict(missing)
    if key is not None:
        given["random"] = {"key": key}
    spec = parse_spec(given, given_frame=True)
    return workflow.run(spec, df.sparkSession, df)
