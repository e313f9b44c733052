"""Does a second pass over this DataFrame see the same rows in the same partitions and order as the first?

The two-pass rank needs it. File scans with narrow steps on top repeat; a plan with an exchange, a cache or a Python step may not
(column pruning changes what adaptive execution and round robin do), so such an input is written out once and read back.
"""

from __future__ import annotations

import contextlib
import io
import re

from pyspark.sql import DataFrame

NARROW = {
    "Project", "Filter", "ColumnarToRow", "FileScan", "Scan", "BatchScan", "LocalTableScan", "Range", "Union", "InputAdapter",
    "WholeStageCodegen", "Generate",
}  # fmt: skip


def repeats(frame: DataFrame) -> bool:
    """True when the physical plan consists of file or local scans and narrow steps only. Reads no data."""
    nodes = plan_nodes(frame)
    return bool(nodes) and all(node in NARROW for node in nodes)


def plan_nodes(frame: DataFrame) -> list[str]:
    """The operator names of the physical plan, from the top. Works in classic sessions and under Connect."""
    text = plan_text(frame)
    physical = text.split("== Physical Plan ==")[-1]
    lines = [re.sub(r"^[\s:+|*-]*(\(\d+\))?\s*", "", line) for line in physical.splitlines()]
    return [match.group(0) for line in lines if (match := re.match(r"[A-Z][A-Za-z]+", line))]


def plan_text(frame: DataFrame) -> str:
    """What `explain()` prints; the DataFrame API has no call that returns it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain()
    return printed.getvalue()
