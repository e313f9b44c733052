"""The only place that knows the order: load, method, stage, audit, publish."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from typing import Any

import anonlib
from anonlib import increments
from anonlib.audit import fields, folder, folder_judge
from anonlib.audit import persons as persons_judge
from anonlib.audit.registry import AUDITORS
from anonlib.audit.verdict import Check, Verdict
from anonlib.engine import reading, tables
from anonlib.engine.as_missing import likely, read_as_missing
from anonlib.engine.codes import within
from anonlib.engine.failures import explained
from anonlib.engine.microdata import Microdata, microdata
from anonlib.engine.relational import DataFrame
from anonlib.engine.repeatable import looks_small, repeats
from anonlib.engine.session import SparkSession, few_settings, keys_on_disks, run_settings, split_settings
from anonlib.engine.statistics import is_missing
from anonlib.errors import AnonlibError, AuditRefused, SpecError, Unsatisfiable
from anonlib.evaluation.evaluation import Evaluation
from anonlib.evaluation.registry import EVALUATORS
from anonlib.methods.recipe import Draft, Explanation, Run, Say, Stage
from anonlib.methods.registry import RECIPES
from anonlib.release import generalized, reuse, storage
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
from anonlib.spec.keys import key_tag, resolve_key, run_key
from anonlib.spec.release import WITHHELD, ReleaseSpec


def _silent(_: str) -> None:
    return None


def run(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None = None, say: Say = _silent) -> Release:
    """Make, audit and publish the release that `spec` asks for, from `frame` or from the spec's input.

    Nothing is visible at the output path unless everything went well: tables are staged, audited, and shown in one step with the
    manifest last, and the persons entered in the spec's ledger. Raises SpecError (2), Unsatisfiable (3), AuditRefused (4), Postponed (0)
    where the spec says to wait for more persons; whatever is raised, the staging area is removed.
    """
    _no_stream(spec, "run")
    if spec.output is None:
        raise SpecError("output: missing; say where the release goes, e.g. output: {path: releases/census}")
    output = increments.dated(spec.output)
    place = storage.place(output.path)
    ledger = increments.opened(spec, place)
    key = _run_key(spec, ledger)
    source = _source(spec, spark, frame)
    table = microdata(source, spec.columns, spec.missing)
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
            manifest = _audited(planned, draft, table, place, say)
            reuse.refuse(manifest, storage.manifests_beside(place) if tag else {})
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
    return Release(spark, place.path, manifest)


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
    """What `run` would choose, from statistics alone: no record moves, nothing is written."""
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


def audit(release: Release, original: DataFrame | None = None, evidence: DataFrame | None = None) -> Verdict:
    """Check a release from its published tables alone, or against the original table as well.

    evidence : of a stream's windows, see `anonlib.audit.generalized.windows`; without it, that classes are t-close is taken from the
    manifests of the batches, whose audits had it
    """
    rows = None if original is None else _after_policy(original, release.manifest)
    manifest = release.manifest
    lies_there = [
        *persons_judge.judge(manifest),
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
    return replace(verdict, checks=(*verdict.checks, *lies_there))


def evaluate(
    release: Release,
    original: DataFrame,
    queries: int | None = None,
    selectivity: float | None = None,
    seed: int = 0,
    attacks: bool = False,
) -> Evaluation:
    """What a release is worth beside the table it was made from: its measures, the relative error of a workload of count queries and,
    with `attacks`, what an adversary gains from it. Without `queries` or `selectivity`: those of the layout's workload in its study."""
    if queries is not None and queries < 1:
        raise SpecError(f"queries: {queries} is not a number of queries; ask for at least 1")
    if selectivity is not None and not 0 < selectivity <= 1:
        raise SpecError(f"selectivity: {selectivity} is not a share; it lies above 0 and is at most 1")
    asked: dict[str, Any] = {"queries": queries, "selectivity": selectivity}
    asked = {name: value for name, value in asked.items() if value is not None}
    rows = _after_policy(original, release.manifest)
    with run_settings(release.spark), explained(f"evaluating {release.path}"):
        return EVALUATORS[release.manifest.layout](
            release.tables, release.manifest, rows, seed=seed, attacks=attacks, **asked
        )


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
    def stage(name: str, frame: DataFrame) -> DataFrame:
        path = storage.spark_path(place.table(name))
        tables.write(frame, path, format, f"writing {name}")
        return tables.read_back(spark, path, format, frame)

    return stage


def _keep_evidence(kept: storage.Place, draft: Draft, format: str) -> None:
    """Copy what the audit needed, outside the release. In place before the release is shown: nothing may fail after that."""
    storage.begin(kept)
    for name, frame in draft.evidence.items():
        tables.write(frame, storage.spark_path(kept.table(name)), format, f"keeping the evidence {name}")
    storage.publish(kept, None, draft.evidence)


def _run_key(spec: ReleaseSpec, ledger: Ledger | None) -> bytes:
    """What the recipes draw from: never the release key itself, see `anonlib.spec.keys`. Each release of a ledger has its own."""
    key = resolve_key(spec.random.key, allow_open_key_file=spec.random.allow_open_key_file)
    published = {role: [n for r, n in spec.columns.roles() if r == role] for role, _ in spec.columns.roles()}
    for role in WITHHELD:
        published.pop(role, None)
    if ledger is not None:
        published["release of a ledger"] = [ledger.id, str(ledger.next_number)]
    return run_key(key, spec.method.name, spec.method.to_public_dict(), published)


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
    also = [_achieved(part, *verdict.also.get(part.sensitive, ({}, {}))) for part in guarantee.also]
    return manifest.model_copy(
        update={
            "guarantee": guarantee.model_copy(update={"also": also}),
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


def _after_policy(original: DataFrame, manifest: Manifest) -> DataFrame:
    """The rows of the original that the release's missing-value policy published; of a stream's, those it may have shown by now.

    Raises SpecError where others were left out too, since nothing published says which."""
    persons = manifest.persons
    if persons is not None and persons.rows > manifest.rows.input and tables.number(original) != manifest.rows.input:
        raise SpecError(
            f"original: the release was made of {manifest.rows.input:,} of {persons.rows:,} rows, one a person, and nothing published says "
            "which; give a table that has one row for each person of the release"
        )
    policy, types = manifest.missing, tables.types(original)
    roles = {column.name: column.role for part in manifest.tables.values() for column in part.columns}
    roles |= {part.name: "quasi_identifier" for part in manifest.quasi_identifiers}
    asked = {"quasi_identifier": policy["quasi_identifiers"], "sensitive": policy["sensitive"]}
    _as_it_was_read(types, manifest)
    original = read_as_missing(original, [n for n, role in roles.items() if role in asked], manifest.as_missing)
    dropped = [
        is_missing(name, types[name]) for name, role in roles.items() if asked.get(role) == "drop" and name in types
    ]
    kept = original.where(" AND ".join(f"NOT {condition}" for condition in dropped)) if dropped else original
    if manifest.stream is None:
        return kept
    part = manifest.guarantee
    return within(kept, generalized.quasi_identifiers(manifest), {part.sensitive: [v.value for v in part.values]})


def _as_it_was_read(types: Mapping[str, str], manifest: Manifest) -> None:
    """Refuse an original that was read without the header, or has a column of another type than the release was made from: nothing would
    match, and the release would be accused."""
    how = "read it as the release's input was: with --spec CONF, whose input has its schema and options"
    if all(re.fullmatch(r"_c[0-9]+", name) for name in types):
        raise SpecError(f"original: its columns have no names; {how}")
    for name, kind in types_of_input(manifest).items():
        if (there := types.get(name, kind)) != kind:
            raise SpecError(
                f"original: column {name!r} is read as {there}, and the release was made from {kind}; {how}"
            )


def types_of_input(manifest: Manifest) -> dict[str, str]:
    """{column: its Spark type} of the input, of those columns that a release publishes, unchanged or in boxes."""
    unchanged = ("quasi_identifier", "sensitive", "other")
    published = {c.name: c.type for part in manifest.tables.values() for c in part.columns if c.role in unchanged}
    return published | {part.name: part.type for part in manifest.quasi_identifiers}
