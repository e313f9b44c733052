"""Opening, running from a spec, explaining, evaluating and auditing, from a notebook."""

from __future__ import annotations

from pathlib import Path

from anonlib import workflow
from anonlib.api.arguments import as_release, as_table
from anonlib.audit.verdict import Verdict
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession, session
from anonlib.evaluation.evaluation import Evaluation
from anonlib.methods.recipe import Explanation
from anonlib.release import ledger as ledgers
from anonlib.release import opened
from anonlib.release.ledger_report import LedgerReport, looked_at
from anonlib.release.opened import Release
from anonlib.reports import file as report_file
from anonlib.spec.keys import resolve_key
from anonlib.spec.ledger import read_reference
from anonlib.spec.load import load_spec
from anonlib.spec.part import shown
from anonlib.spec.paths import plain_path
from anonlib.spec.release import ReleaseSpec
from anonlib.spec.table_names import plain_table_name
from anonlib.streams.explain import explain as explain_stream


def open_release(path: str | Path, spark: SparkSession | None = None) -> Release:
    """The release at `path`, in `spark` or in the active (else an embedded) session."""
    return opened.open_release(spark or session(), plain_path(path, "path"))


def run(spec: ReleaseSpec | str | Path, spark: SparkSession | None = None, df: DataFrame | None = None) -> Release:
    """Make, audit and publish the release that a spec (or its YAML file) asks for."""
    return workflow.run(_spec(spec), *_session_and_table(spark, df))


def explain(
    spec: ReleaseSpec | str | Path, spark: SparkSession | None = None, df: DataFrame | None = None
) -> Explanation:
    """What `run` would choose, from the statistics alone, or what `stream` would lose and delay, on a sample; nothing is written.

    df : a table instead of the spec's input; of a stream a sample of what arrives, no streaming DataFrame
    """
    asked = _spec(spec)
    explains = workflow.explain if asked.stream is None else explain_stream
    return explains(asked, *_session_and_table(spark, df))


def evaluate(
    release: Release,
    original: DataFrame,
    queries: int | None = None,
    selectivity: float | None = None,
    seed: int = 0,
    attacks: bool = False,
    spec: ReleaseSpec | str | Path | None = None,
) -> Evaluation:
    """What `release` is worth beside `original`: its measures (mean squared bucket size, retention, or certainty penalty), and the relative
    error of a workload of count queries, drawn from `seed`.

    queries, selectivity : how many, and the share of the records each asks for if attributes were uniform; None for those of the
                           layout's own study
    attacks              : what an adversary gains, as well
    spec                 : the release's own, where it was made of one row a person
    A constant number of Spark jobs, whatever the number of queries.
    """
    own = None if spec is None else _spec(spec)
    of = as_release(release)
    table = as_table(original, "original", of.spark)
    return workflow.evaluate(of, table, queries, selectivity, seed, attacks, own)


def report(
    release: Release,
    original: DataFrame | None = None,
    path: str | Path | None = None,
    attacks: bool = True,
    spec: ReleaseSpec | str | Path | None = None,
) -> Path:
    """Write a report of `release` for people: one HTML file that opens from disk. Where it lies is returned.

    original : the table it was made from; what is measured beside it is no part of the release, and the report says so
    path     : of the file; `NAME.report.html` in the current folder when not given. Not in the release: what lies there is published
    attacks  : beside the original, play them as well
    spec     : the release's own, where it was made of one row a person

    Needs matplotlib (`pip install 'anonlib[report]'`). Cost: an audit, three small jobs and, with `original`, an evaluation. Raises
    SpecError for a path that cannot be written; a release that the audit refuses is reported as such.
    """
    of = as_release(release)
    table = None if original is None else as_table(original, "original", of.spark)
    place = report_file.default_path(of.path) if path is None else Path(path)
    report_file.check(place, of.path)
    made = workflow.report(of, table, attacks, spec=None if spec is None else _spec(spec))
    report_file.write(place, made.html, private=made.with_original)
    return place


def register(release: Release, table: str | None = None) -> Release:
    """Add the tables of `release` to the catalog of its session, as external tables over its files, those that are not there yet.

    table : "catalog.schema.name" (or less), to which each table adds its own; None for the names that its manifest states
    The names are in `catalog` of what is returned. Raises SpecError where one of them is another table's, AuditRefused where the folder
    holds anything but what the manifest names.
    """
    return workflow.register(as_release(release), None if table is None else plain_table_name(table, "table"))


def audit_release(
    release: Release, original: DataFrame | None = None, spec: ReleaseSpec | str | Path | None = None
) -> Verdict:
    """Check `release` from its published tables alone or, with `original`, against the table it was made from.

    spec : the release's own, where it was made of one row a person: it says which rows were taken, and has the ledger that knows whose
    """
    of = as_release(release)
    table = None if original is None else as_table(original, "original", of.spark)
    return workflow.audit(of, table, spec=None if spec is None else _spec(spec))


def new_ledger(path: str | Path, key: str) -> None:
    """Start a ledger at `path`, once. key : "env:NAME" or "file:PATH" of a key of its own. Raises SpecError when something lies there."""
    ledgers.new_ledger(plain_path(path, "path"), _ledger_key(key))


def ledger(path: str | Path, key: str) -> LedgerReport:
    """What the ledger at `path` holds, and whether it agrees with its files and with the manifests of its releases. No Spark."""
    return looked_at(ledgers.open_ledger(plain_path(path, "path"), _ledger_key(key)))


def _ledger_key(key: str) -> bytes:
    return resolve_key(read_reference(key, "key"), name="key")


def _spec(spec: ReleaseSpec | str | Path) -> ReleaseSpec:
    if isinstance(spec, ReleaseSpec):
        return spec
    if not isinstance(spec, (str, Path)):
        raise TypeError(
            f"spec: {shown(spec)} is no spec; give the path of its YAML file, or what anonlib.spec.load.parse_spec makes of a mapping"
        )
    return load_spec(spec)


def _session_and_table(spark: SparkSession | None, df: DataFrame | None) -> tuple[SparkSession, DataFrame | None]:
    if df is None:
        return spark or session(), None
    table = as_table(df, "df", spark)
    return spark or table.sparkSession, table
