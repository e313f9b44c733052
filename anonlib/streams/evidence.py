"""The evidence that a stream's checkpoint kept of its windows, for an audit long after."""

from __future__ import annotations

from anonlib.engine.local_table import local_table
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession
from anonlib.errors import SpecError
from anonlib.release import streamed
from anonlib.release.opened import Release

SCHEMA = "of bigint, spread array<bigint>"


def windows_of(spark: SparkSession, checkpoint: str, release: Release) -> DataFrame:
    """What the windows of a stream held, see `anonlib.audit.generalized.windows`, from the evidence in `checkpoint`.

    Raises SpecError where there is none, or the release is no stream's. Reads a small file a batch; m counts a window on the driver.
    """
    if release.manifest.stream is None:
        raise SpecError("--evidence: only a stream keeps evidence of its windows, and this release is that of a table")
    spreads: dict[int, list[int]] = {}
    for kept in streamed.json_texts(f"{checkpoint.rstrip('/')}/evidence").values():
        spreads |= {int(window): spread for window, spread in kept["windows"].items()}
    if not spreads and release.manifest.rows.published:
        raise SpecError(f"--evidence {checkpoint}: there is no evidence of a stream; name the checkpoint of its spec")
    return local_table(spark, SCHEMA, list(spreads.items()))
