"""The evidence of a stream's windows, and what the audit makes of it.

    windows    of bigint            a window, as an ec_id tells it without the number of the class
               spread array<bigint> how many of its records have each of the values that the stream was told

It comes from the stream's own state, at the gate as it is, later from where the checkpoint keeps it. It is never published: the spreads
of two windows that follow one another differ by the records that came and went in between.
"""

from __future__ import annotations

from anonlib.audit.generalized.closeness import WindowDistances, distance_of, distances_of_windows
from anonlib.engine.relational import DataFrame, rows
from anonlib.errors import AnonlibError
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.release.streamed import CLASS_BITS

CELLS = 50_000_000
"""Windows x sensitive values whose counts the driver holds: 400 MB."""


def distance_from_windows(manifest: Manifest, part: GuaranteePart, windows: DataFrame) -> WindowDistances:
    """What the classes of a stream are measured from. Raises AnonlibError for evidence of another stream, or too much of it."""
    assert manifest.stream is not None
    told = manifest.stream.values
    spreads = {int(row["of"]): row["spread"] for row in rows(windows, limit=CELLS // max(1, len(told)))}
    if any(sum(spread) > manifest.stream.window for spread in spreads.values()):
        raise AnonlibError("the evidence is not that of this stream: a window holds more records than its windows do")
    template = distance_of(part.distance, told, [1] * len(told), part.sensitive_type, part.hierarchy)
    return distances_of_windows(template, told, [value.value for value in part.values], spreads, CLASS_BITS)
