"""A program: makes releases in a session of another kind, and prints what became of them as one JSON object.

    python -m tests.contract.elsewhere connect      CONF ...
    python -m tests.contract.elsewhere troubled     CONF ...     first attempts of partition 1 fail
    python -m tests.contract.elsewhere speculative  CONF ...     first attempts of partition 1 dawdle, on three executors

connect    : a Spark Connect session, all settings as Spark has them but for the splits; the code of every plan is compiled. One method of
             each layout is run by the command line and audited beside its original, the others are called
troubled   : also under other settings, of those that nothing published may depend on, all at once
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from anonlib import workflow
from anonlib.cli import main as command_line
from anonlib.engine import session as sessions
from anonlib.engine import statistics, tables
from anonlib.spec import load_spec

REMOTE = "local[2]"
ONE_FILE_EACH = {"spark.sql.files.openCostInBytes": "64m", "spark.sql.files.maxPartitionBytes": "64m"}
"""Each file a partition of its own, in every session."""
OTHER_SETTINGS = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.session.timeZone": "America/St_Johns",
}
SMALL_BATCHES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.4",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.minTaskRuntime": "200ms",
    "spark.executor.memory": "1g",
}


def connected() -> Any:
    """A Spark Connect session on a server of its own."""
    spark = sessions.session(remote=REMOTE)
    for name, value in ONE_FILE_EACH.items():
        spark.conf.set(name, value)
    return spark


def troubled(speculative: bool) -> Any:
    """A session with other settings, in which a task may be tried again."""
    settings = {**ONE_FILE_EACH, **OTHER_SETTINGS, "spark.driver.memory": "1g"} | (SPECULATION if speculative else {})
    spark = sessions.session(master="local-cluster[3,1,1024]" if speculative else "local[2,4]", settings=settings)
    spark.conf.set("spark.sql.ansi.enabled", str(spark.conf.get("spark.sql.ansi.enabled") == "false").lower())
    sessions.RUN_SETTINGS = SMALL_BATCHES
    statistics.DRIVER_CELLS = 5  # offsets too many for the driver stay on the cluster
    tables.FEW_RECORDS = 0  # a handful of records takes the way of many: every partition is a task
    return spark


def in_trouble(task: Callable[..., Any], marks: str, dawdles: bool) -> Callable[..., Any]:
    """`task`, whose first attempt in partition 1 fails once it has begun, or dawdles so that it is run twice."""

    def trouble() -> None:
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        here = Path(marks) / f"{context.partitionId()}-{context.attemptNumber()}"
        here.parent.mkdir(parents=True, exist_ok=True)
        here.touch()
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            if dawdles:
                time.sleep(20)
            else:
                raise RuntimeError("a planted failure of the first attempt")

    if inspect.isgeneratorfunction(task) or len(_arguments(task)) == 1:

        def of_one(given: Any) -> Any:
            out = task(given)
            if not isinstance(out, Iterator):  # a group
                trouble()
                return out
            return after_the_first(out)

        def after_the_first(out: Iterator[Any]) -> Iterator[Any]:
            for number, batch in enumerate(out):
                yield batch
                if number == 0:
                    trouble()

        return of_one

    def of_group(key: Any, group: Any) -> Any:
        out = task(key, group)
        trouble()
        return out

    return of_group


def _arguments(task: Callable[..., Any]) -> list[str]:
    names = inspect.getfullargspec(task).args
    return names[1:] if names[:1] == ["self"] else names


def make_trouble(spark: Any, folder: Path, dawdles: bool, method: list[str]) -> None:
    """Every Python task of this session is `in_trouble`; `method` holds the name of the one that is under way."""

    def wrapped(right: Callable[..., Any]) -> Callable[..., Any]:
        def apply(self: Any, task: Callable[..., Any], *more: Any, **named: Any) -> Any:
            return right(self, in_trouble(task, str(folder / method[-1]), dawdles), *more, **named)

        return apply

    from pyspark.sql.pandas.functions import pandas_udf

    frame = spark.range(1)
    for kind, names in ((type(frame), ("mapInArrow", "mapInPandas")), (type(frame.groupBy()), ("applyInPandas",))):
        for name in names:
            setattr(kind, name, wrapped(getattr(kind, name)))

    def column_function(task: Callable[..., Any], *more: Any, **named: Any) -> Any:
        wrong = functools.wraps(task)(
            in_trouble(task, str(folder / method[-1]), dawdles)
        )  # its type hints say what it is
        return pandas_udf(wrong, *more, **named)

    for module in [module for name, module in sys.modules.items() if name.startswith("anonlib.")]:
        if vars(module).get("pandas_udf") is pandas_udf:
            module.pandas_udf = column_function


def by_command(conf: str) -> bool:
    """Runs and audits a release beside its original by the command line; whether both went well."""
    spec = load_spec(conf)
    assert spec.input is not None
    assert spec.output is not None
    run = command_line(["run", conf, "--remote", REMOTE])
    return run == command_line(["audit", spec.output.path, "--original", str(spec.input.path), "--remote", REMOTE]) == 0


def main() -> None:
    """See the module."""
    kind, *confs = sys.argv[1:]
    spark = connected() if kind == "connect" else troubled(kind == "speculative")
    marks = Path(confs[0]).parent / "marks"
    method: list[str] = []
    if kind != "connect":
        make_trouble(spark, marks, kind == "speculative", method)
    layouts = {load_spec(conf).method.layout: conf for conf in reversed(confs)}
    commands = layouts.values() if kind == "connect" else ()
    made: dict[str, Any] = {}
    for conf in confs:
        spec = load_spec(conf)
        method.append(spec.method.name)
        started = time.monotonic()
        made[spec.method.name] = {
            "session": type(spark).__module__,
            "passed": by_command(conf) if conf in commands else workflow.run(spec, spark).audit.passed,
            "attempts": sorted(p.name for p in (marks / spec.method.name).glob("*")),
            "seconds": round(time.monotonic() - started, 1),
        }
    sys.stdout.write(json.dumps(made) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
