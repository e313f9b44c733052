"""Does a second pass over this DataFrame see the same rows in the same partitions and order as the first?

The two-pass rank needs it. File scans with narrow steps on top repeat; a plan with an exchange, a cache or a Python step may not
(column pruning changes what adaptive execution and round robin do), so such an input is written out once and read back. So is a table of
the driver's, such as `spark.createDataFrame(pandas_frame)`: Spark counts it in one partition and gives Python functions several.
"""

from __future__ import annotations

import contextlib
import io
import re

from pyspark.sql import DataFrame

NARROW = {
    "Project", "Filter", "ColumnarToRow", "FileScan", "Scan", "BatchScan", "Range", "Union", "InputAdapter",
    "WholeStageCodegen", "Generate",
}  # fmt: skip
HIDDEN = re.compile(
    r"Scan ExistingRDD"  # an RDD may have anything below it
    r"|Bucketed: (true|false \(disabled)"  # a bucketed table is cut by buckets in a pass that groups, by size in one that does not
    r"|\b(rand|randn|uuid|shuffle|randstr|uniform)\("  # under Connect each pass would draw another seed
)
"""Narrow in the plan, and yet the second pass may see other partitions or rows."""


def repeats(frame: DataFrame) -> bool:
    """True when the physical plan consists of scans and narrow steps only. Reads no data."""
    text = plan_text(frame)
    nodes = plan_nodes(text)
    return bool(nodes) and all(node in NARROW for node in nodes) and not HIDDEN.search(text)


def plan_nodes(text: str) -> list[str]:
    """The operator names of the physical plan, from the top, as `explain()` prints them."""
    physical = text.split("== Physical Plan ==")[-1]
    lines = [re.sub(r"^[\s:+|*-]*(\(\d+\))?\s*", "", line) for line in physical.splitlines()]
    return [match.group(0) for line in lines if (match := re.match(r"[A-Z][A-Za-z]+", line))]


def plan_text(frame: DataFrame, mode: str = "simple") -> str:
    """What `explain(mode)` prints; the DataFrame API has no call that returns it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain(mode=mode)
    return printed.getvalue()


SMALL = 256 * 2**10
"""Bytes of files in which one expects few records, see `tables.FEW_RECORDS`; well packed they may hold ten times as many."""


def looks_small(frame: DataFrame) -> bool:
    """Whether the table takes at most `SMALL` bytes, as Spark estimates it from the sizes of its files. Reads no data.

    A guess, good enough for how to compute: what is not known to be small is not.
    """
    estimate = _ESTIMATE.search(plan_text(frame, "cost"))  # the first is that of the whole plan
    unit = None if estimate is None else _UNITS.get(estimate[2])
    return estimate is not None and unit is not None and float(estimate[1]) * unit <= SMALL


_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20}
_ESTIMATE = re.compile(r"sizeInBytes=(\d+(?:\.\d+)?(?:E\+?\d+)?) ([A-Za-z]+)\b")
