"""The command line: anonlib init | run | stream | explain | audit | query | evaluate | report | register | ledger | path.

Results go to standard output (with --json as one JSON object), messages and progress to standard error. Exit codes: 0 done;
2 bad spec, arguments or input; 3 the privacy requirement cannot be met; 4 the audit refused; 1 anything else.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape as _escape

from anonlib import increments, originals, shipped, workflow
from anonlib.engine import reading
from anonlib.engine.failures import Misread
from anonlib.engine.profile import table_facts
from anonlib.engine.session import SparkSession, session
from anonlib.errors import AnonlibError, AuditRefused, Postponed, SpecError
from anonlib.evaluation.evaluation import Evaluation
from anonlib.release.catalog import forgetful
from anonlib.release.ledger import new_ledger, open_ledger
from anonlib.release.ledger import void as void_release
from anonlib.release.ledger_report import looked_at
from anonlib.release.opened import Release, open_release
from anonlib.reports import file as report_file
from anonlib.screen import (
    err,
    out,
    print_json,
    show_checks,
    show_evaluation,
    show_explanation,
    show_groups,
    show_ledger,
    show_release,
    show_stream,
)
from anonlib.spec.draft import draft
from anonlib.spec.keys import resolve_key
from anonlib.spec.ledger import read_reference
from anonlib.spec.load import load_spec
from anonlib.spec.paths import plain_path
from anonlib.spec.table_names import plain_table_name
from anonlib.streams.evidence import windows_of
from anonlib.streams.explain import explain as explain_stream
from anonlib.streams.run import stream as run_stream

PLAINLY = (
    "\n  The release alone passes. The original was read with a header and no other option of its reader; where its input was not, "
    "that is why: give --spec CONF"
)
"""Beside a text file that was read without the spec."""
INTERRUPTED = 130
"""What newer versions of typer make of Ctrl-C."""

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

Conf = Annotated[Path | None, typer.Argument(help="The release spec, a YAML file.")]
ConfOption = Annotated[Path | None, typer.Option("--conf", help="The same as an option, for spark-submit.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Master = Annotated[str | None, typer.Option(help="Master of an embedded session, e.g. local[4]; default local[*].")]
Remote = Annotated[
    str | None, typer.Option(help="A Spark Connect server, e.g. sc://host:15002, or local[2] to start one.")
]
ReleasePath = Annotated[str, typer.Argument(help="Path of a release.")]
Original = Annotated[
    str | None, typer.Option(help="The table the release was made from: a path, or a table name with --format table.")
]
Format = Annotated[str, typer.Option(help="Format of the original: parquet, csv, json, orc, delta, or table.")]
SpecOfInput = Annotated[
    Path | None,
    typer.Option(
        "--spec",
        help="The release's spec: its input says how the original is read, --format too, and where it lies; its persons and ledger, "
        "which rows were published.",
    ),
]


@app.command()
def run(
    conf: Conf = None,
    conf_option: ConfOption = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report of the release to this HTML file, from the release alone.")
    ] = None,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Make, audit and publish the release that CONF asks for."""
    spec = load_spec(_conf(conf, conf_option))
    if report is not None and spec.output is not None:
        report_file.check(report, increments.dated(spec.output).path)
    try:
        with _progress() as say:
            release = workflow.run(spec, _session(master, remote, say), say=say)
    except Postponed as postponed:
        if as_json:
            print_json({"release": None, "postponed": str(postponed)})
        raise
    try:
        if as_json:
            named = {"catalog": release.catalog} if release.manifest.catalog else {}
            print_json({"release": release.path, "manifest": json.loads(release.manifest.to_json()), **named})
        else:
            show_release(release)
    except (Exception, KeyboardInterrupt) as error:  # it is published, and no exit code but 0 may follow
        err.print(f"published at {_escape(release.path)}, but it cannot be shown here: {_escape(str(error))}")
    if report is not None:
        _report_of_run(release, report)


@app.command()
def explain(
    conf: Conf = None,
    conf_option: ConfOption = None,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Say what the solver would choose, from statistics alone, or what a stream's windows lose: no record moves, nothing is written."""
    spec = load_spec(_conf(conf, conf_option))
    with _progress() as say:
        explains = workflow.explain if spec.stream is None else explain_stream
        explanation = explains(spec, _session(master, remote, say), say=say)
    if as_json:
        print_json({"guarantee": explanation.words, **explanation.facts})
    else:
        show_explanation(explanation)


@app.command()
def stream(
    conf: Conf = None,
    conf_option: ConfOption = None,
    once: Annotated[bool, typer.Option("--once", help="Take what has arrived, show it and stop.")] = False,
    flush: Annotated[
        bool, typer.Option("--flush", help="With --once: end the stream, and show what waits too.")
    ] = False,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Publish a stream as CONF asks: batch after batch, each audited before it is shown, until it is stopped."""
    spec = load_spec(_conf(conf, conf_option))
    try:
        with _progress() as say:
            streamed = run_stream(spec, _session(master, remote, say), once=once, flush=flush, say=say)
    except KeyboardInterrupt:
        err.print("anonlib: stopped; what was shown stays, and the next start goes on from there")
        if once:  # it has not taken all that had arrived
            raise typer.Exit(1) from None
        return
    manifest = streamed.release.manifest
    if as_json:
        parts = {"shown": list(streamed.shown), "manifest": json.loads(manifest.to_json())}
        print_json({"release": streamed.release.path, **parts})
    else:
        show_stream(streamed)


@app.command()
def audit(
    path: ReleasePath,
    original: Original = None,
    format: Format = "parquet",
    spec: SpecOfInput = None,
    evidence: Annotated[
        str | None, typer.Option(help="The checkpoint of a stream: classes are held against the windows it kept.")
    ] = None,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Check a release from its published tables alone or, with --original, against the table it was made from."""
    with _progress() as say:
        spark = _session(master, remote, say)
        release = open_release(spark, plain_path(path, "RELEASE"))
        say("auditing")
        with _original(release, original, format, spec) as table:
            windows = None if evidence is None else windows_of(spark, evidence, release)
            verdict = workflow.audit(release, table, windows, None if spec is None else load_spec(spec))
    if as_json:
        print_json({"release": path, "passed": verdict.passed, "checks": [asdict(check) for check in verdict.checks]})
    else:
        show_checks([asdict(check) for check in verdict.checks])
    if not verdict.passed:
        plainly = (
            spec is None and format in ("csv", "json") and all(c.name.startswith("original") for c in verdict.failures)
        )
        raise AuditRefused(workflow.refusal(verdict) + (PLAINLY if plainly else ""))


@app.command()
def query(
    path: ReleasePath,
    predicate: Annotated[
        str | None, typer.Argument(help="SQL over the published columns, e.g. \"age > 30 AND occupation = 'x'\".")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Count each value of this column; again for each combination with another.")
    ] = None,
    mean: Annotated[str | None, typer.Option(help="The mean of this numeric column, instead of a count.")] = None,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Estimate how many records meet PREDICATE, from the published tables alone."""
    if mean is not None and by:
        raise SpecError("query: --by and --mean are two questions; ask one of them")
    if predicate is None and mean is None and not by:
        raise SpecError("query: give a predicate, a column to count --by, or a --mean")
    with _progress() as say:
        release = open_release(_session(master, remote, say), plain_path(path, "RELEASE"))
        say("counting")
        if by:
            groups = release.group_rows(*by, where=predicate)
        else:
            estimate = release.count(predicate or "TRUE") if mean is None else release.mean(mean, predicate)
    if by:
        show_groups({"release": path, "predicate": predicate, "by": by}, groups, as_json)
    elif as_json:
        asked = {"release": path, "predicate": predicate} | ({} if mean is None else {"mean": mean})
        answer = asdict(estimate)
        nobody = mean is not None and math.isnan(answer["estimate"])  # JSON has no nan
        print_json({**asked, **answer, **({"estimate": None} if nobody else {})})
    else:
        out.print(_escape(str(estimate)), soft_wrap=True)


@app.command()
def evaluate(
    path: ReleasePath,
    original: Original = None,
    format: Format = "parquet",
    spec: SpecOfInput = None,
    queries: Annotated[int | None, typer.Option(help="How many count queries; 5,000, or 10,000 on boxes.")] = None,
    selectivity: Annotated[
        float | None, typer.Option(help="Expected share of the records that a query counts; 0.01, or 0.1 on boxes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the workload.")] = 0,
    attacks: Annotated[bool, typer.Option("--attacks", help="Measure what an adversary gains as well.")] = False,
    save: Annotated[Path | None, typer.Option(help="Write the queries with their answers to this JSON file.")] = None,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Measure what a release is worth: bucket sizes, and the relative error of count queries against the original table."""
    if original is None and spec is None:
        raise SpecError(
            "--original: missing; name the table the release was made from, or the spec that does, with --spec CONF"
        )
    with _progress() as say:
        spark = _session(master, remote, say)
        release = open_release(spark, plain_path(path, "RELEASE"))
        say("answering count queries on the original and on the release")
        with _original(release, original, format, spec) as table:
            own = None if spec is None else load_spec(spec)
            evaluation = workflow.evaluate(release, table, queries, selectivity, seed, attacks, own)
    if save is not None:
        _save(save, evaluation)
    if as_json:
        print_json({"release": path, **evaluation.to_dict()})
    else:
        show_evaluation(evaluation)


@app.command()
def report(
    path: ReleasePath,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The HTML file to write; NAME.report.html in the current folder when not given."
        ),
    ] = None,
    original: Original = None,
    format: Format = "parquet",
    spec: SpecOfInput = None,
    attacks: Annotated[
        bool, typer.Option("--attacks/--no-attacks", help="Beside the original, play what an adversary gains.")
    ] = True,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Write a report for people, one HTML file: from the release alone or, with --original, beside the table it was made from."""
    path = plain_path(path, "RELEASE")
    place = report_file.default_path(path) if output is None else output
    report_file.check(place, path)
    with _progress() as say:
        spark = _session(master, remote, say)
        release = open_release(spark, path)
        with _original(release, original, format, spec) as table:
            made = workflow.report(release, table, attacks, say=say, spec=None if spec is None else load_spec(spec))
        report_file.write(place, made.html, private=made.with_original)
    if as_json:
        print_json({"release": path, "report": str(place), "passed": made.passed, "original": made.with_original})
    else:
        out.print(f"Report: {_escape(str(place))}", soft_wrap=True)
        if made.with_original:
            out.print(
                "It was made with the original table: it is not anonymized; keep it where the original may be kept.",
                soft_wrap=True,
            )
    if made.passed is False:
        raise AuditRefused(f"the audit refuses this release: the report at {place} tells which promises are not kept")


@app.command()
def ledger(
    path: Annotated[str, typer.Argument(help="Path of a ledger.")],
    key: Annotated[str | None, typer.Option(help="Where its key lies: env:NAME or file:PATH.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a ledger there.")] = False,
    void: Annotated[
        int | None,
        typer.Option(help="Say of a release whose run died, and that lies nowhere, that nobody has seen it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show which releases a ledger has entered and how many persons, and check it against its files and their manifests."""
    if key is None:
        raise SpecError("--key: missing; say where the ledger's key lies, e.g. --key env:ANONLIB_LEDGER_KEY")
    if new and void is not None:
        raise SpecError("--new and --void: a ledger that is started has nothing to void; give one of them")
    secret = resolve_key(read_reference(key, "--key"), name="--key")
    path = plain_path(path, "PATH")
    if new:
        new_ledger(path, secret)
    elif void is not None:
        void_release(open_ledger(path, secret, settle=False), void)
    report = looked_at(open_ledger(path, secret))
    if as_json:
        print_json({"ledger": path, **report.to_dict()})
    else:
        show_ledger(path, report)
    if report.fault is not None:
        raise AuditRefused(report.fault)


@app.command()
def register(
    path: ReleasePath,
    table: Annotated[
        str | None,
        typer.Argument(
            help="catalog.schema.name, to which each table adds its own; as the manifest has it when left out."
        ),
    ] = None,
    as_json: Json = False,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Add the tables of a RELEASE to the catalog of the session, as tables over its files: those that are not there yet."""
    with _progress() as say:
        release = open_release(_session(master, remote, say), plain_path(path, "RELEASE"))
        say("adding its tables to the catalog")
        release = workflow.register(release, None if table is None else plain_table_name(table, "TABLE"))
        if note := forgetful(release.spark, release.catalog):
            say(note)
    if as_json:
        print_json({"release": path, "catalog": release.catalog})
        return
    for name, full in release.catalog.items():
        out.print(f"[bold]Table[/]     {name}/ is {_escape(full)}", soft_wrap=True)


@app.command()
def path(
    name: Annotated[
        str | None,
        typer.Argument(help="A job, an example or a page, e.g. anonymize.py; without it: the folder of all."),
    ] = None,
) -> None:
    """Say where a job, an example spec, a file of Spark settings or a page of the docs lies in this installation."""
    sys.stdout.write(f"{shipped.root() if name is None else shipped.path_of(name)}\n")


@app.command()
def init(
    table: Annotated[str, typer.Argument(help="The table: a path, or a table name with --format table.")],
    format: Annotated[
        str | None,
        typer.Option(help="parquet, csv, json, orc, delta, avro or table; by the path's ending when left out."),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the draft to this new file.")] = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Draft a commented release spec for TABLE from names, types and counts of its columns; no value is copied."""
    if output is not None and output.exists():
        raise SpecError(f"--output {output}: there is a file already, and a draft never replaces one; name another")
    name = table if format == "table" else plain_path(table, "TABLE")
    with _progress() as say:
        spark = _session(master, remote, say)
        say("counting the columns")
        text = draft(table_facts(spark, name, format))
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpecError(f"--output {output}: cannot be written ({error.strerror}); name another file") from None
    err.print(
        f"look next: go through {_escape(str(output))}, then anonlib explain {_escape(str(output))}", soft_wrap=True
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        with _orderly_end():
            code = app(args=list(sys.argv[1:] if arguments is None else arguments), standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except Postponed as postponed:
        err.print(f"anonlib: {_escape(str(postponed))}", soft_wrap=True)
        return postponed.exit_code
    except AnonlibError as error:
        err.print(f"[bold red]anonlib:[/] {_escape(str(error))}", soft_wrap=True)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        err.print("anonlib: stopped; nothing was published")
        return 1
    except Exception as error:
        show = getattr(error, "show", None)
        if callable(
            show
        ):  # a wrong argument; told by its method, since typer brings click as a copy of its own or as a package
            show()
            return 2
        if os.environ.get("ANONLIB_DEBUG"):
            raise
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        err.print(
            f"[bold red]anonlib:[/] unexpected {type(error).__name__}: {_escape(first)}; nothing was published. "
            "ANONLIB_DEBUG=1 shows where; please report it",
            soft_wrap=True,
        )
        return 1


@contextmanager
def _orderly_end() -> Iterator[None]:
    """A request to end (SIGTERM, as schedulers send it) is taken as Ctrl-C is: what was staged is removed."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _conf(conf: Path | None, option: Path | None) -> Path:
    if (conf is None) == (option is None):
        raise SpecError("arguments: name the release spec once, as CONF or with --conf, e.g. anonlib run release.yaml")
    named = conf or option
    assert named is not None
    return named


def _session(master: str | None, remote: str | None, say: Callable[[str], None]) -> SparkSession:
    say("starting Spark")
    return session(remote=remote, master=master)


@contextmanager
def _original(release: Release, name: str | None, format: str, conf: Path | None) -> Iterator[Any]:
    """The table a release was made from, read as the spec at `conf` reads it or, without one, with the columns and types of the release;
    None where no table is named."""
    spark = release.spark
    if conf is None:
        if name is None:
            yield None
            return
        published = originals.types_of_input(release.manifest)
        source = reading.original_source(spark, name, format, published)
        try:
            with reading.misread_explained(spark, source, published):
                yield reading.read(spark, source, published)
        except Misread as error:
            raise SpecError(
                f"{error}. Where the release's input was read with other options, give --spec CONF"
            ) from None
        return
    spec = load_spec(conf)
    if spec.input is None:
        raise SpecError(f"--spec {conf}: it has no input; name the table there, or with --original and --format")
    source = spec.input if name is None else spec.input.model_copy(update={"path": name, "table": None})
    with reading.misread_explained(spark, source, spec.used_columns):
        yield reading.read(spark, source, spec.used_columns)


class _progress:  # noqa: N801  (reads as a verb)
    """Says each step on standard error as it begins, with a spinner on a terminal, and how long the step before took."""

    def __enter__(self) -> Callable[[str], None]:
        self._started = self._step = time.perf_counter()
        self._doing: str | None = None
        self._status = err.status("")
        self._status.start()
        return self._say

    def _say(self, doing: str) -> None:
        self._finish_step()
        self._doing, self._step = doing, time.perf_counter()
        self._status.update(f"{_escape(doing)} ...")

    def _finish_step(self) -> None:
        if self._doing is not None:
            err.print(f"[dim]{time.perf_counter() - self._step:7.1f} s[/]  {_escape(self._doing)}", soft_wrap=True)

    def __exit__(self, kind: object, *_: object) -> None:
        self._status.stop()
        if kind is None:
            self._finish_step()


def _report_of_run(release: Release, place: Path) -> None:
    """The report of what was just published and audited; it is published, and no exit code but 0 may follow."""
    try:
        with _progress() as say:
            made = workflow.report(release, checked=True, say=say)
            report_file.write(place, made.html, private=False)
        err.print(f"report: {_escape(str(place))}", soft_wrap=True)
    except (Exception, KeyboardInterrupt) as error:
        err.print(
            f"published at {_escape(release.path)}, but no report was written: {_escape(str(error))}", soft_wrap=True
        )


def _save(path: Path, evaluation: Evaluation) -> None:
    answers = {"actual": evaluation.actual.tolist(), "estimated": evaluation.estimated.tolist()}
    try:
        path.write_text(
            json.dumps({**json.loads(evaluation.workload.to_json()), **answers}, ensure_ascii=False), encoding="utf-8"
        )
    except OSError as error:
        raise SpecError(f"--save {path}: cannot be written ({error.strerror}); choose another path") from None


if __name__ == "__main__":
    sys.exit(main())
