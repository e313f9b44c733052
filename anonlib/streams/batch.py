"""One micro-batch: its rows are staged, audited and shown, once, however often it is played.

    work       the task's output, as it comes: boxes in codes, and notes beside them
    microdata  the boxes in the columns' own types, in an order that says nothing, where nobody sees them
    audit      every promise, from the staged rows and the evidence of the windows
    show       the files moved into `microdata/`, then the manifest: the batch is there when its manifest is

A batch whose manifest is there is computed again for its state alone. About five jobs a batch; the driver gets the notes: m counts for
each window, a line for each advance and shard.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import anonlib
from anonlib.arrays import Int64Array
from anonlib.audit import folder, folder_judge
from anonlib.audit import persons as persons_judge
from anonlib.audit.registry import AUDITORS
from anonlib.engine import streaming, tables
from anonlib.engine.boxes import decode
from anonlib.engine.failures import explained
from anonlib.engine.order import arranged, files
from anonlib.engine.relational import DataFrame, rows, select
from anonlib.engine.session import SparkSession
from anonlib.engine.streaming import Coding
from anonlib.engine.values import small_table
from anonlib.errors import AnonlibError, AuditRefused
from anonlib.methods.recipe import Say
from anonlib.methods.sabre_stream import ADVANCE, BATCH, RECORD, SPREAD
from anonlib.release import generalized, storage, streamed
from anonlib.release.generalized import MICRODATA
from anonlib.release.manifest import (
    AuditPart,
    ColumnPart,
    FilePart,
    GuaranteePart,
    Manifest,
    MethodPart,
    RowsPart,
    SolverPart,
    SplitsPart,
    StreamPart,
    TablePart,
    ValuePart,
)
from anonlib.spec.layouts import EC_ID
from anonlib.spec.release import ReleaseSpec
from anonlib.streams.checkpoint import Checkpoint
from anonlib.workflow import completed, refusal

MOST_NOTES = 200_000


@dataclass(frozen=True)
class Notes:
    """What stood beside the records of a micro-batch.

    windows : {window as an ec_id tells it: how many of its records have each value}; shown : (m,) int64, how many shown records have each
    advances : what each did; counts : {arrived, missing, outside, late, waiting} over the shards that anything arrived of
    """

    windows: dict[int, list[int]]
    shown: Int64Array
    advances: list[dict[str, Any]]
    counts: dict[str, int]


@dataclass(frozen=True)
class Batches:
    """Handles the micro-batches of one stream: `anonlib.engine.streaming.Handle`.

    guarantee : without counts; kind : Spark type of the sensitive column
    done : numbers of the batches that this run showed, no more: it may run for years
    """

    spark: SparkSession
    spec: ReleaseSpec
    coding: Coding
    sensitive: tuple[str, str]
    guarantee: GuaranteePart
    checkpoint: Checkpoint
    place: streamed.Place
    key_tag: str
    say: Say
    done: list[int] = field(default_factory=list)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Show the batch. Raises AuditRefused, and then nothing of it is visible and the stream stops."""
        if streamed.is_shown(self.place.path, number):
            self.say(f"batch {number} was shown before")
            streaming.evaluated(batch)
            return
        work, staging = self.checkpoint.below(f"work/{number:06d}"), f"{self.place.staging}/{number:06d}"
        streamed.drop(work)
        streamed.drop(staging)
        try:
            self._show(batch, number, work, staging)
        finally:
            streamed.drop(work)
            streamed.drop(staging)

    def _show(self, batch: DataFrame, number: int, work: str, staging: str) -> None:
        started = time.monotonic()
        played = self._staged(batch, work, "playing the records that arrived")
        notes = self._notes(played)
        n = int(notes.shown.sum())
        microdata = self._microdata(played, n, staging) if n else None
        manifest = self._manifest(number, notes, time.monotonic() - started)
        if microdata is not None:
            manifest = self._audited(manifest, microdata, notes, staging)
        windows = {str(of): spread for of, spread in notes.windows.items()}
        self.checkpoint.keep_evidence(number, {"windows": windows, "advances": notes.advances, "counts": notes.counts})
        streamed.show(self.place, number, manifest.to_json())
        self.done.append(number)
        self.say(_told(number, n, notes))

    def _staged(self, frame: DataFrame, path: str, doing: str) -> DataFrame:
        at = storage.spark_path(path)
        tables.write(frame, at, "parquet", doing)
        return tables.read_back(self.spark, at, "parquet", frame)

    def _notes(self, played: DataFrame) -> Notes:
        asked = {"kind": "kind", "of": "of", "spread": "spread", "note": "note"}
        with explained("reading what the windows did"):
            listed = rows(select(played.where(f"kind <> '{RECORD}'"), asked), MOST_NOTES)
        shown = np.zeros(len(self.coding.values), dtype=np.int64)
        for row in listed:
            if row["kind"] == ADVANCE and row["spread"]:
                shown += np.array(row["spread"], dtype=np.int64)
        of_shards = [json.loads(row["note"]) for row in listed if row["kind"] == BATCH]
        names = ("arrived", "missing", "outside", "late", "waiting", "bytes")
        return Notes(
            windows={int(row["of"]): list(row["spread"]) for row in listed if row["kind"] == SPREAD},
            shown=shown,
            advances=[json.loads(row["note"]) for row in listed if row["kind"] == ADVANCE],
            counts={name: sum(part[name] for part in of_shards) for name in names},
        )

    def _microdata(self, played: DataFrame, n: int, staging: str) -> DataFrame:
        name, kind = self.sensitive
        boxed = tables.together(played.where(f"kind = '{RECORD}'"), n)
        frame = decode(boxed, self.coding.quasi_identifiers, {name: (self.coding.values, kind)}, keep=(EC_ID,))
        return self._staged(arranged(frame, files(n), by=EC_ID), f"{staging}/{MICRODATA}", "writing the batch")

    def _audited(self, manifest: Manifest, microdata: DataFrame, notes: Notes, staging: str) -> Manifest:
        windows = small_table(microdata, "of bigint, spread array<bigint>", list(notes.windows.items()))
        n = manifest.rows.published
        with explained("auditing the batch"):
            verdict = AUDITORS["generalized"](
                {MICRODATA: tables.together(microdata, n)},
                manifest,
                columns=self.spec.columns,
                staged=True,
                evidence={streamed.WINDOWS: windows},
            )
        measured = verdict.tables.get(MICRODATA)
        if measured is not None and measured.rows != n:
            raise AnonlibError(
                f"the windows showed {n:,} records, and {measured.rows:,} were written; nothing of the batch is shown"
            )
        storage.drop_committers_notes(storage.Place(self.place.path, staging), [MICRODATA])
        lies_there = folder.look(staging, manifest, staged=True)
        besides = (*persons_judge.judge(manifest), *folder_judge.judge(lies_there, manifest, staged=True))
        verdict = verdict.with_checks(besides)
        if not verdict.passed:
            raise AuditRefused(f"{refusal(verdict)}\nthe stream stops before this batch; what was shown before stays")
        batch = manifest.stream.batch if manifest.stream is not None else None
        named = {
            table: [FilePart(name=streamed.shown_name(batch or 0, file.name), size=file.size) for file in held]
            for table, held in folder_judge.named(lies_there, manifest).items()
        }
        return completed(manifest, verdict, named)

    def _manifest(self, number: int, notes: Notes, seconds: float) -> Manifest:
        counts, stream = notes.counts, self.spec.stream
        assert stream is not None
        shown, left_out = int(notes.shown.sum()), counts["missing"] + counts["outside"]
        quasi_identifiers = generalized.parts(self.coding.quasi_identifiers)
        kinds = generalized.layout(quasi_identifiers, {self.sensitive[0]: self.sensitive[1]}, classes=True)
        roles = generalized.roles(self.coding.quasi_identifiers, [self.sensitive[0]], classes=True)
        values = [
            ValuePart(value=value, count=int(count))
            for value, count in zip(self.coding.values, notes.shown, strict=True)
            if count
        ]
        return Manifest(
            anonlib_version=anonlib.__version__,
            spark_version=self.spark.version,
            layout="generalized",
            method=MethodPart(name=self.spec.method.name, parameters=self.spec.method.to_public_dict()),
            guarantee=self.guarantee.model_copy(update={"values": values}),
            missing=self.spec.public_missing(),
            as_missing=list(self.spec.missing.as_missing),
            rows=RowsPart(input=shown + left_out, published=shown, dropped=left_out),
            solver=SolverPart(
                name="symmetric sub-buckets", status="heuristic", setting=[], unit="classes", seconds=round(seconds, 3)
            ),
            utility={},
            audit=AuditPart(mode="gate", passed=None, checks=[]),
            tables={
                MICRODATA: TablePart(
                    path=MICRODATA,
                    format="parquet",
                    rows=0 if not shown else -1,
                    checksum=f"xxh64sum:{0:016x}" if not shown else "",
                    columns=[ColumnPart(name=name, type=kind, role=roles[name]) for name, kind in kinds.items()],
                )
            },
            splits=SplitsPart(partitions=0, settings={}, key_tag=self.key_tag),
            quasi_identifiers=list(quasi_identifiers),
            stream=StreamPart(
                id=self.checkpoint.id,
                batch=number,
                window=stream.window,
                advance=stream.advance,
                shard=self.coding.shard,
                values=list(self.coding.values),
                shown=shown,
                **{name: counts[name] for name in ("arrived", "missing", "outside", "late", "waiting")},
            ),
        )


def _told(number: int, n: int, notes: Notes) -> str:
    cases = [advance["case"] for advance in notes.advances]
    done = ", ".join(f"{cases.count(case)} {case}" for case in ("direct", "indirect", "nothing") if case in cases)
    classes = sum(advance["classes"] for advance in notes.advances)
    counts = notes.counts
    more = "".join(
        f", {counts[name]:,} {words}"
        for name, words in (("missing", "with a missing value"), ("outside", "outside the domains"), ("late", "late"))
        if counts[name]
    )
    held = sum(advance["held_back"] for advance in notes.advances)
    return (
        f"batch {number}: {counts['arrived']:,} records arrived{more}; {n:,} shown in {classes:,} classes "
        f"({done or 'no window is full'}); {counts['waiting']:,} wait" + (f", {held:,} held back" if held else "")
    )
