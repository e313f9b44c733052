"""Spark's failures in one sentence: what is wrong, where, how to mend it. A user never sees a bare traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, PySparkException

from anonlib.errors import AnonlibError, SpecError

MARK = "anonlib refuses: "
"""Starts the sentence that a task on an executor raises; what follows, up to the line's end, is what the user is told."""


class TaskRefusal(RuntimeError):
    """Raised inside a task. Its sentence reaches the driver within Spark's own report of the failure."""

    def __init__(self, sentence: str) -> None:
        super().__init__(MARK + sentence)


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn what Spark raises while `doing` something ("reading data/x.parquet") into an AnonlibError that says so."""
    try:
        yield
    except AnonlibError:
        raise
    except AnalysisException as error:
        raise SpecError(f"{doing}: {_first_line(error)}") from error
    except Exception as error:
        refusal = re.search(re.escape(MARK) + r"([^\n]*)", str(error))
        if refusal:
            raise AnonlibError(f"{doing}: {refusal.group(1).strip()}") from error
        if isinstance(error, PySparkException) or "py4j" in type(error).__module__:
            raise AnonlibError(f"{doing}: Spark failed: {_cause(error)}") from error
        raise


def _first_line(error: Exception) -> str:
    return re.sub(r"\s*SQLSTATE: \w+", "", str(error).strip().split("\n")[0])


def _cause(error: Exception) -> str:
    """The innermost "Caused by", else the first line."""
    causes = re.findall(r"Caused by: ([^\n]+)", str(error))
    return str(causes[-1]) if causes else _first_line(error)
