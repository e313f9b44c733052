"""A stream, from a notebook."""

from __future__ import annotations

from pathlib import Path

from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession, session
from anonlib.release.opened import Release
from anonlib.spec.load import load_spec
from anonlib.spec.release import ReleaseSpec
from anonlib.streams import run


def stream(
    spec: ReleaseSpec | str | Path,
    df: DataFrame | None = None,
    *,
    spark: SparkSession | None = None,
    once: bool = True,
    flush: bool = False,
) -> Release:
    """Publish the stream that a spec (or its YAML file) asks for, and return what is shown of it.

    df    : a streaming DataFrame (of Kafka, Delta, whatever Spark reads) instead of the spec's input
    once  : take what has arrived and return; else run until the query is stopped
    flush : then end the stream: show what waits as well, as far as it may be

    Raises SpecError, or AuditRefused: the stream stops, nothing of the batch is visible, and what was shown before stays.
    """
    asked = spec if isinstance(spec, ReleaseSpec) else load_spec(spec)
    at = df.sparkSession if df is not None else spark or session()
    return run.stream(asked, at, df, once=once, flush=flush).release
