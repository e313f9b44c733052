"""The only place that knows the order: load, method, stage, audit, publish."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from typing import Any

import anonlib
from anonlib import increments, originals
from anonlib.audit import catalog as catalog_judge
from anonlib.audit import fields, folder, folder_judge
from anonlib.audit import persons as persons_judge
from anonlib.audit.registry import AUDITORS
from anonlib.audit.verdict import Check, Verdict
from anonlib.engine import reading, tables
from anonlib.engine.as_missing import likely, read_as_missing
from anonlib.engine.columnar.source import parquet_source
from anonlib.engine.failures import explained
from anonlib.engine.microdata import Microdata, microdata
from anonlib.engine.relational import DataFrame
from anonlib.engine.repeatable import looks_small, repeats
from anonlib.engine.session import SparkSession, few_settings, keys_on_disks, run_settings, split_settings
from anonlib.errors import AnonlibError, AuditRefused, SpecError, Unsatisfiable
from anonlib.evaluation.evaluation import Evaluation
from anonlib.evaluation.registry import EVALUATORS
from anonlib.methods.recipe import ByColumns, Draft, Explanation, Run, Say, Stage
from anonlib.methods.registry import RECIPES
from anonlib.release import catalog, reuse, storage
from anonlib.release.layout import LAYOUTS
from anonlib.release.ledger import Ledger
from anonlib.release.manifest import (
    AuditPart,
    ColumnPart,
    FilePart,
    GuaranteePart,
    LedgerPart,
    Manifest,
    MethodPart,
    PersonsPart,
    SplitsPart,
    TablePart,
    UnreadablePart,
)
from anonlib.release.opened import Release
from anonlib.release.streamed import WINDOWS
from anonlib.reports.charts import check_installed
from anonlib.reports.facts import Report
from anonlib.reports.file import release_name
from anonlib.reports.gather import facts, recorded
from anonlib.reports.page import page
from anonlib.spec.keys import key_tag
from anonlib.spec.release import Output, ReleaseSpec


def _silent(_: str) -> None:
    return None


def run(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None = None, say: Say = _silent) -> Release:
    """Make, audit and publish the release that `spec` asks for, from `frame` or from the spec's input.

    Nothing is visible at the output path unless everything went well: tables are staged, audited, and shown in one step with the
    manifest last, and the persons entered in the spec's ledger. Raises SpecError (2), Unsatisfiable (3), AuditRefused (4), Postponed (0)
    where the spec says to wait for more persons; whatever is raised, the staging area is removed.

    With `output.table` the tables are then added to the catalog: `release.catalog` has their names, or is empty where that failed, which is
    said and not raised, since the release is out (`anonlib.release.catalog`).
    """
    _no_stream(spec, "run")
    if spec.output is None:
        raise SpecError("output: missing; say where the release goes, e.g. output: {path: releases/census}")
    output = increments.dated(spec.output)
    named = {} if output.table is None else catalog.names(spark, output.table, LAYOUTS[spec.method.layout].tables)
    place = _free_place(spark, output, named)
    if named:
        catalog.check_free(spark, named)
        if note := catalog.forgetful(spark, named):
            say(note)
    ledger = increments.opened(spec, place)
    key = increments.run_key_of(spec, None if ledger is None else (ledger.id, ledger.next_number))
    source = _source(spec, spark, frame)
    table = microdata(source, spec.columns, spec.missing)
    if frame is None and not spec.missing.as_missing:
        table = replace(table, source=parquet_source(spec.input, table.frame))
    kept = None if output.evidence is None else storage.place(output.evidence)
    for left in [left for where in (place, kept) if where is not None for left in storage.leftovers(where)]:
        say(f"note: an interrupted run left {left}; it holds unaudited tables, remove it")
    storage.begin(place)
    written = [place]
    try:
        with run_settings(spark), _misread_explained(spec, spark, frame):
            if warning := keys_on_disks(spark):
                say(warning)
            increment = increments.chosen(spec, source, table, key, ledger, _writer_out(spark, place), say)
            table = _repeatable(increment.table, spark, place, say)
            draft = _draft(spec, spark, table, increment, ledger, Run(key, _stager(spark, place, output.format), say))
            tag = "" if spec.random.key is None else key_tag(key)
            unreadable = _unreadable(spec, spark, frame, say)
            part = increments.ledger_part(ledger, draft.rows, draft.guarantee, table.before)
            planned = _manifest(spec, spark, draft, tag, unreadable, increment.part, part)
            planned = planned.model_copy(update={"catalog": named})
            manifest = _audited(planned, draft, table, place, say)
            reuse.refuse(manifest, storage.manifests_beside(place) if tag else {})
            if named:
                catalog.try_out(spark, named, place, draft.tables, output.format)
            if kept is not None:
                say(f"keeping the evidence at {kept.path}; it is as sensitive as the original")
                written.append(kept)
                _keep_evidence(kept, draft, output.format)
                written.append(
                    storage.Place(kept.path, kept.path)
                )  # to be removed from there, if the release fails after all
            folder = "" if ledger is None or part is None else increments.entered_persons(increment, ledger, part)
        storage.clear(place, manifest.tables)
        if ledger is None:
            storage.publish(place, manifest.to_json(), manifest.tables)
        else:
            _publish_and_enter(place, manifest, increment, ledger, folder, written, say)
    except BaseException:
        if ledger is not None and written:
            with suppress(Exception):  # another error is on its way to the user
                ledger.abandon(place)
        for where in written:
            storage.discard(where)
        raise
    say(f"published at {place.path}")
    release = Release(spark, place.path, manifest)
    return _in_catalog(release, named, say) if named else release


def _free_place(spark: SparkSession, output: Output, named: Mapping[str, str]) -> storage.Place:
    """Where the release will lie. Raises SpecError when something lies there, and says so of a release that its catalog lacks."""
    try:
        return storage.place(output.path)
    except SpecError as error:
        raise catalog.told_of_release_there(error, spark, output.path, named) if named else error from None


def _in_catalog(release: Release, named: Mapping[str, str], say: Say) -> Release:
    """The release with its tables in the catalog. It is out, so nothing is raised any more: what failed is said, and how to mend it."""
    try:
        catalog.register(release, named)
    except (Exception, KeyboardInterrupt) as error:
        say(
            f"note: its tables are not all in the catalog ({str(error) or type(error).__name__}); anonlib register {release.path} adds them"
        )
        return release
    say(f"in the catalog as {', '.join(named.values())}")
    return Release(release.spark, release.path, release.manifest, named)


def register(release: Release, table: str | None = None) -> Release:
    """Add the tables of a release that is out to the catalog of its session, those that it lacks: see `anonlib.release.catalog`.

    table : as `output.table` in a spec; None for the names that the manifest states
    Cost: the files are listed and their footers read, no data. Raises SpecError for a stream, a schema that is not there or a name that
    another table has, AuditRefused where the folder holds anything but what the manifest names.
    """
    named = catalog.names_of(release, table)
    verdict = Verdict(tuple(folder_judge.judge(folder.look(release.path, release.manifest), release.manifest)))
    if not verdict.passed:
        raise AuditRefused(refusal(verdict))
    catalog.register(release, named)
    return Release(release.spark, release.path, release.manifest, named)


def _draft(
    spec: ReleaseSpec,
    spark: SparkSession,
    table: Microdata,
    increment: increments.Increment,
    ledger: Ledger | None,
    run: Run,
) -> Draft:
    """What the method publishes. Raises as the recipe does; with a ledger, whoever is too few is told how many more it takes."""
    try:
        with few_settings(spark, looks_small(table.frame)):
            return RECIPES[type(spec.method)].publish(table, spec.method, run)
    except Unsatisfiable as error:
        if ledger is None or increment.part is None:
            raise
        new = increment.part.persons - increment.part.known
        raise increments.too_small(spec, table, ledger, new, error) from None


def _publish_and_enter(
    place: storage.Place,
    manifest: Manifest,
    increment: increments.Increment,
    ledger: Ledger,
    folder: str,
    written: list[storage.Place],
    say: Say,
) -> None:
    """Show the release and enter its persons, in one step: see `anonlib.release.ledger`. Once it is shown, nothing `written` is removed
    any more, and nothing raised."""
    entry = increments.entered(increment, ledger, place, manifest, folder)
    try:
        storage.publish(place, manifest.to_json(), manifest.tables)
    except BaseException:
        if not ledger.withdraw(entry):
            raise
    written.clear()
    try:
        ledger.settle(entry, "published")
    except (OSError, AnonlibError) as error:
        say(
            f"note: the ledger at {ledger.path} could not be told that release {entry.number} is out ({error}); its next opening does"
        )
    say(f"entered {entry.persons:,} persons in the ledger as release {entry.number}")


def explain(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None = None, say: Say = _silent) -> Explanation:
    """What `run` would choose, from statistics alone: no record moves, nothing is written.

    One scan more than the method's own looks for values that may stand for a missing one.
    """
    _no_stream(spec, "explain")
    with run_settings(spark), _misread_explained(spec, spark, frame):
        source = _source(spec, spark, frame)
        table = microdata(source, spec.columns, spec.missing)
        increment = increments.chosen(spec, source, table, None, increments.opened(spec, None), None, say)
        explanation = RECIPES[type(spec.method)].explain(increment.table, spec.method, say)
        explanation = _with_likely_missing(
            explanation, likely(table.published, [*table.quasi_identifiers, *table.sensitive_columns])
        )
    if increment.part is None:
        return explanation
    words = increments.in_words(increment.part)
    facts = {**explanation.facts, "persons": increment.part.model_dump()}
    return replace(explanation, summary=f"{words}. {explanation.summary}", facts=facts)


def _with_likely_missing(explanation: Explanation, likely: Mapping[str, tuple[str, ...]]) -> Explanation:
    """The explanation, and a word on values that look as if they stood for a missing one."""
    if not likely:
        return explanation
    named = "; ".join(f"{name!r} has {', '.join(map(repr, values))}" for name, values in likely.items())
    texts = ", ".join(dict.fromkeys(json.dumps(v, ensure_ascii=False) for values in likely.values() for v in values))
    note = (
        f"Taken for values like any other, and they look as if they stood for a missing one: {named}. If they do, write "
        f"missing: {{as_missing: [{texts}]}}."
    )
    facts = {**explanation.facts, "likely_missing": {name: list(values) for name, values in likely.items()}}
    return replace(explanation, summary=f"{explanation.summary} {note}", facts=facts)


def _no_stream(spec: ReleaseSpec, command: str) -> None:
    if spec.stream is not None:
        raise SpecError(
            f"stream: this spec is of a stream, which `anonlib {command}` knows nothing of; use anonlib stream, or leave stream out"
        )


def audit(
    release: Release,
    original: DataFrame | None = None,
    evidence: DataFrame | None = None,
    spec: ReleaseSpec | None = None,
) -> Verdict:
    """Check a release from its published tables alone, or against the original table as well.

    spec : the release's own, for a release of one row a person: it says which rows of the original were taken (`anonlib.originals`)
    evidence : of a stream's windows, see `anonlib.audit.generalized.windows`; without it, that classes are t-close is taken from the
    manifests of the batches, whose audits had it
    """
    manifest = release.manifest
    with run_settings(release.spark):
        taken = None if original is None else originals.rows_of(release, original, spec)
    rows = None if taken is None else taken.rows
    lies_there = [
        *persons_judge.judge(manifest),
        *(() if taken is None else taken.checks),
        *folder_judge.judge(folder.look(release.path, manifest), manifest),
    ]
    try:
        n = manifest.rows.published + manifest.rows.dummy
        few = few_settings(release.spark, n <= tables.FEW_RECORDS)
        with run_settings(release.spark), explained(f"auditing {release.path}"), few:
            original = None if rows is None else tables.together(rows, n)
            proof: dict[str, Any] = {} if evidence is None else {"evidence": {WINDOWS: evidence}}
            verdict = AUDITORS[manifest.layout](_together(release.tables, n), manifest, original, **proof)
    except AnonlibError as error:
        if all(check.passed for check in lies_there):
            raise
        verdict = Verdict(
            (Check("tables", False, "tables that can be read", str(error)),)
        )  # for what lies in the folder
    named: list[Check] = []
    if manifest.catalog:
        named = catalog_judge.judge(catalog_judge.look(release.spark, manifest, release.tables), manifest)
    return replace(verdict, checks=(*verdict.checks, *lies_there, *named))


def evaluate(
    release: Release,
    original: DataFrame,
    queries: int | None = None,
    selectivity: float | None = None,
    seed: int = 0,
    attacks: bool = False,
    spec: ReleaseSpec | None = None,
) -> Evaluation:
    """What a release is worth beside the table it was made from: its measures, the relative error of a workload of count queries and,
    with `attacks`, what an adversary gains from it. Without `queries` or `selectivity`: those of the layout's workload in its study.
    spec : as for `audit`"""
    if queries is not None and queries < 1:
        raise SpecError(f"queries: {queries} is not a number of queries; ask for at least 1")
    if selectivity is not None and not 0 < selectivity <= 1:
        raise SpecError(f"selectivity: {selectivity} is not a share; it lies above 0 and is at most 1")
    asked: dict[str, Any] = {"queries": queries, "selectivity": selectivity}
    asked = {name: value for name, value in asked.items() if value is not None}
    with run_settings(release.spark):
        rows = originals.rows_of(release, original, spec).rows
    with run_settings(release.spark), explained(f"evaluating {release.path}"):
        return EVALUATORS[release.manifest.layout](
            release.tables, release.manifest, rows, seed=seed, attacks=attacks, **asked
        )


def report(
    release: Release,
    original: DataFrame | None = None,
    attacks: bool = True,
    checked: bool = False,
    seed: int = 0,
    say: Say = _silent,
    spec: ReleaseSpec | None = None,
) -> Report:
    """A page that a person reads of a release, see `anonlib.reports.page`; with `original`, also what only its holder can measure.

    attacks : beside the original, play them as well
    checked : the release was audited just now, and the checks of its manifest are told; else it is audited again, which costs an audit
    spec    : as for `audit`

    Raises AnonlibError without matplotlib, SpecError as `audit` and `evaluate` do; that the audit refuses the release is told on the page,
    and in the report's `passed`.
    """
    check_installed()
    name, day = release_name(release.path), time.strftime("%Y-%m-%d", time.gmtime())
    if checked:
        checks, audited = recorded(release.manifest), "before publication"
    else:
        say("auditing")
        checks = audit(release, original, spec=spec).checks
        beside = " against the original table" if original is not None else " from the release alone"
        audited = f"when this report was made{beside}"
    evaluation, rows = None, None
    if original is not None:
        say("answering count queries on the original and on the release")
        evaluation = evaluate(release, original, seed=seed, attacks=attacks, spec=spec)
        with run_settings(release.spark):
            rows = originals.rows_of(release, original, spec).rows
    say("gathering what the report shows")
    few = few_settings(release.spark, release.manifest.rows.published <= tables.FEW_RECORDS)
    with run_settings(release.spark), explained(f"reporting on {release.path}"), few:
        gathered = facts(release, name, day, checks, audited, rows, evaluation)
    return Report(page(gathered), gathered.passed, original is not None)


def _source(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None) -> DataFrame:
    """The input as it is read, with all of its columns."""
    if frame is None:
        if spec.input is None:
            raise SpecError("input: missing; name the table, e.g. input: {path: data/census.parquet, format: parquet}")
        frame = reading.read(spark, spec.input, spec.used_columns)
    return read_as_missing(frame, spec.columns.may_be_missing, spec.missing.as_missing)


def _misread_explained(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None) -> AbstractContextManager[None]:
    return reading.misread_explained(spark, spec.input if frame is None else None, spec.used_columns)


def _unreadable(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None, say: Say) -> UnreadablePart | None:
    """What of the input could not be read, where the spec allows it: counted and said."""
    if frame is not None or spec.input is None or spec.input.unreadable == "error":
        return None
    say("counting what cannot be read")
    counted = reading.count_unreadable(spark, spec.input, spec.used_columns)
    if counted.records:
        become = {"missing": "has cells that are read as missing", "drop": "is left out"}[spec.input.unreadable]
        say(f"note: what cannot be read of {counted.records:,} record(s) {become}")
    return UnreadablePart(
        handling=spec.input.unreadable,
        records=counted.records,
        lengths=counted.lengths,
        cells=dict(counted.cells),
        undecodable=dict(counted.undecodable),
    )


def _repeatable(table: Microdata, spark: SparkSession, place: storage.Place, say: Say) -> Microdata:
    """The same table, written out once if its plan might not give the same partitions twice."""
    if repeats(table.frame):
        return table
    say("writing the input out once, since its plan may not repeat itself (it shuffles, caches or runs Python)")
    return replace(table, frame=_writer_out(spark, place)(increments.INPUT, table.frame))


def _writer_out(spark: SparkSession, place: storage.Place) -> increments.WrittenOut:
    def written_out(name: str, frame: DataFrame) -> DataFrame:
        path = storage.spark_path(place.table(name))
        tables.write(frame, path, "parquet", "staging the input")
        return tables.read_back(spark, path, "parquet", frame)

    return written_out


def _stager(spark: SparkSession, place: storage.Place, format: str) -> Stage:
    def stage(name: str, frame: DataFrame, by_columns: ByColumns | None = None, /) -> DataFrame:
        path, folder = storage.spark_path(place.table(name)), storage.local_folder(place.table(name))
        made = False
        if by_columns is not None and folder is not None and format == "parquet":
            made = by_columns.written(folder, f"writing {name}")
        if not made:
            tables.write(frame, path, format, f"writing {name}")
        return tables.read_back(spark, path, format, frame)

    return stage


def _keep_evidence(kept: storage.Place, draft: Draft, format: str) -> None:
    """Copy what the audit needed, outside the release. In place before the release is shown: nothing may fail after that."""
    storage.begin(kept)
    for name, frame in draft.evidence.items():
        tables.write(frame, storage.spark_path(kept.table(name)), format, f"keeping the evidence {name}")
    storage.publish(kept, None, draft.evidence)


def _manifest(
    spec: ReleaseSpec,
    spark: SparkSession,
    draft: Draft,
    key_tag: str,
    unreadable: UnreadablePart | None,
    persons: PersonsPart | None,
    ledger: LedgerPart | None,
) -> Manifest:
    assert spec.output is not None
    format = spec.output.format
    return Manifest(
        anonlib_version=anonlib.__version__,
        spark_version=spark.version,
        layout=draft.layout,
        method=MethodPart(name=spec.method.name, parameters=spec.method.to_public_dict()),
        guarantee=draft.guarantee,
        missing=spec.public_missing(),
        as_missing=list(spec.missing.as_missing),
        rows=draft.rows,
        unreadable=unreadable,
        persons=persons,
        ledger=ledger,
        solver=draft.solver,
        utility=draft.utility,
        audit=AuditPart(mode=spec.audit, passed=None, checks=[]),
        tables={
            name: TablePart(
                path=name,
                format=format,
                rows=-1,
                checksum="",
                columns=[
                    ColumnPart(name=column, type=kind, role=draft.roles[name][column])
                    for column, kind in tables.types(frame).items()
                ],
            )
            for name, frame in draft.tables.items()
        },
        splits=SplitsPart(partitions=draft.partitions, settings=split_settings(spark), key_tag=key_tag),
        quasi_identifiers=list(draft.quasi_identifiers),
    )


def _audited(manifest: Manifest, draft: Draft, table: Microdata, place: storage.Place, say: Say) -> Manifest:
    """The manifest completed with what the staged tables were measured to be. Raises AuditRefused under `audit: gate`."""
    mode = manifest.audit.mode
    say("auditing the staged tables" if mode != "off" else "measuring the staged tables (the audit is off)")
    n = draft.rows.published + draft.rows.dummy
    few = few_settings(table.frame.sparkSession, n <= tables.FEW_RECORDS)
    with explained("auditing the staged tables"), few:
        proof: dict[str, Any] = {}
        if draft.evidence:
            proof = {"original": tables.together(table.published, n), "evidence": _together(draft.evidence, n)}
        verdict = AUDITORS[draft.layout](
            _together(draft.tables, n), manifest, columns=table.columns, staged=True, **proof
        )
    _all_there(draft, verdict)
    storage.drop_committers_notes(place, manifest.tables)
    lies_there = folder.look(place.staging, manifest, staged=True)
    besides = (*persons_judge.judge(manifest), *folder_judge.judge(lies_there, manifest, staged=True))
    verdict = replace(verdict, checks=(*verdict.checks, *besides))
    if mode == "gate" and not verdict.passed:
        raise AuditRefused(refusal(verdict))
    return completed(manifest, verdict, folder_judge.named(lies_there, manifest))


def completed(manifest: Manifest, verdict: Verdict, files: dict[str, list[FilePart]]) -> Manifest:
    """The manifest with what the audit found, and the data files of each table."""
    mode = manifest.audit.mode
    checks = [fields.recorded(check) for check in verdict.checks] if mode != "off" else []
    guarantee = _achieved(manifest.guarantee, verdict.achieved, verdict.numbers)
    told = [
        node.model_copy(update=dict(zip(("achieved", "telling"), verdict.nodes.get(k, (None, None)), strict=True)))
        for k, node in enumerate(guarantee.nodes)
    ]
    also = [_achieved(part, *verdict.also.get(part.sensitive, ({}, {}))) for part in guarantee.also]
    return manifest.model_copy(
        update={
            "guarantee": guarantee.model_copy(update={"also": also, "nodes": told}),
            "utility": manifest.utility | verdict.utility,
            "audit": AuditPart(mode=mode, passed=verdict.passed if mode != "off" else None, checks=checks),
            "tables": {
                name: part.model_copy(update=asdict(verdict.tables[name])) if name in verdict.tables else part
                for name, part in manifest.tables.items()
            },
            "files": files,
        }
    )


def _together(frames: Mapping[str, DataFrame], records: int) -> dict[str, DataFrame]:
    return {name: tables.together(frame, records) for name, frame in frames.items()}


def _achieved(part: GuaranteePart, shares: Mapping[str | None, str], numbers: Mapping[str, str]) -> GuaranteePart:
    values = [value.model_copy(update={"achieved": shares.get(value.value)}) for value in part.values]
    return part.model_copy(update={"values": values, "achieved": dict(numbers)})


def _all_there(draft: Draft, verdict: Verdict) -> None:
    """Whatever the audit's mode: a partition that vanished between the passes is no task's to refuse, and would be missing here."""
    measured, wanted = verdict.tables.get(draft.records), draft.rows.published + draft.rows.dummy
    if measured is not None and measured.rows != wanted:
        raise AnonlibError(
            f"writing {draft.records}: {measured.rows:,} records were written where the first pass counted {wanted:,}; the input "
            "changed between the two passes: publish from a table that nobody writes to, e.g. a snapshot"
        )


def refusal(verdict: Verdict) -> str:
    """Why a release is refused: each failed check in a line."""
    lines = "\n  ".join(str(check) for check in verdict.failures)
    return f"the audit found {len(verdict.failures)} promise(s) not kept:\n  {lines}"
