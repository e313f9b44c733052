"""Gathering what a report tells: a few small aggregates over the published tables and, where it is given, the original beside them.

From the release alone: one job for counts and class sizes, on a generalized release one more for the widths of its ranges; the rest is the
manifest's. Beside the original: an evaluation (`anonlib.evaluation`), then a job or two for the counts by one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anonlib.audit.verdict import Check
from anonlib.engine.compound import text_of
from anonlib.engine.failures import explained
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, select
from anonlib.engine.statistics import value_text
from anonlib.engine.tables import together, types
from anonlib.errors import AnonlibError
from anonlib.evaluation.class_sizes import sizes_by, sizes_by_looks
from anonlib.evaluation.evaluation import Evaluation
from anonlib.evaluation.generalized import losses_of_boxes
from anonlib.evaluation.risks import RiskMeasures
from anonlib.release import bucketized, generalized, perturbed, streamed
from anonlib.release.bucketized_values import value_of
from anonlib.release.manifest import CheckPart, GuaranteePart, Manifest
from anonlib.release.opened import Release
from anonlib.reports.answers import answers
from anonlib.reports.curves import curve
from anonlib.reports.facts import Batch, Beside, Facts, Shown, Sizes, Workload
from anonlib.spec.layouts import BUCKET_ID, COUNT, EC_ID, SUBTABLE
from anonlib.sql import quoted

Counts = Small[dict[int, int]]
NONE: Counts = Small((), lambda results: {})
SURPLUS = 1_000
"""Values that a damaged release may show beyond those of its manifest before counting them is given up."""


def facts(
    release: Release,
    name: str,
    day: str,
    checks: tuple[Check, ...],
    audited: str,
    original: DataFrame | None = None,
    evaluation: Evaluation | None = None,
) -> Facts:
    """What a report of `release` tells.

    checks, audited      : of an audit, and when it was, in words
    original, evaluation : the table it was made from after the policy on missing values, and what was measured beside it; both or none
    """
    manifest = release.manifest
    try:
        with explained(f"reading {release.path}"):
            measured = _measured(release)
    except AnonlibError:
        if all(check.passed for check in checks):
            raise
        measured = Measured()  # whoever reads of broken promises need not read of tables that cannot be read as well
    return Facts(
        name=name,
        day=day,
        manifest=manifest,
        checks=checks,
        audited=audited,
        shown=measured.shown,
        further=measured.further,
        sizes=measured.sizes,
        widths=measured.widths,
        risks=measured.risks if evaluation is None else evaluation.risks,
        curve=curve(manifest),
        batches=_batches(release),
        beside=None if evaluation is None or original is None else _beside(release, original, evaluation),
    )


@dataclass(frozen=True)
class Measured:
    """What the published tables tell, as `Facts` has it."""

    shown: Shown = ()
    further: Mapping[str, Shown] = field(default_factory=dict)
    sizes: Sizes | None = None
    widths: Mapping[str, float] = field(default_factory=dict)
    risks: RiskMeasures | None = None


def _measured(release: Release) -> Measured:
    manifest, n = release.manifest, release.manifest.rows.published + release.manifest.rows.dummy
    published = {name: together(frame, n) for name, frame in release.tables.items()}
    beside = manifest.guarantee.also if manifest.layout == "generalized" else []
    of_further = [_shown(published, manifest, part) for part in beside]
    first = _shown(published, manifest, manifest.guarantee)
    shown, sizes, alike, *more = collected([first, *_sizes(published, manifest), *of_further])
    further = {part.sensitive: own for part, own in zip(beside, more, strict=True)}
    if manifest.layout != "generalized":
        return Measured(shown, {}, _named(manifest, sizes), {}, RiskMeasures.of(alike))
    return Measured(shown, further, _named(manifest, sizes), _widths(published, manifest), RiskMeasures.of(sizes))


def recorded(manifest: Manifest) -> tuple[Check, ...]:
    """The checks that stand in the manifest: those made before publication."""
    return tuple(_check(part) for part in manifest.audit.checks)


def _check(part: CheckPart) -> Check:
    return Check(part.name, part.passed, part.asked, part.achieved, part.evidence)


def _shown(tables: Mapping[str, DataFrame], manifest: Manifest, part: GuaranteePart) -> Small[Shown]:
    """How many published rows, or entries of lists, show each value that `part` promises something about."""
    column, table, weight = part.sensitive, generalized.MICRODATA, "1L"
    if manifest.layout == "bucketized":
        table, weight = bucketized.ST, quoted(COUNT)
    frame = tables[table]
    if manifest.layout == "generalized":
        text = value_text(column, types(frame)[column])
    else:
        text = value_of(frame, manifest) if manifest.layout == "bucketized" else _perturbed(frame, manifest)
    counted = aggregate(select(frame, {"v": text, "c": weight}), ["v"], {"n": "sum(c)"})
    return Small.of_rows(
        counted,
        len(part.values) + SURPLUS,
        lambda rows: tuple((row["v"], int(row["n"])) for row in rows),
    )


def _perturbed(frame: DataFrame, manifest: Manifest) -> str:
    kinds = types(frame)
    return text_of({name: kinds[name] for name in perturbed.sensitive_columns(manifest)})


def _sizes(tables: Mapping[str, DataFrame], manifest: Manifest) -> tuple[Counts, Counts]:
    """(sizes of buckets, classes or sub-tables, sizes of what looks alike); of boxes without classes, none."""
    n = manifest.rows.published + manifest.rows.dummy
    looks = [c.name for part in manifest.tables.values() for c in part.columns if c.role == "quasi_identifier"]
    if manifest.layout == "bucketized":
        qit = tables[bucketized.QIT]
        return sizes_by(qit, BUCKET_ID, n), sizes_by_looks(qit, looks, n)
    microdata = tables[generalized.MICRODATA]
    if manifest.layout == "perturbed":
        return sizes_by(microdata, SUBTABLE, n), sizes_by_looks(microdata, looks, n)
    return (sizes_by(microdata, EC_ID, n) if generalized.has_classes(manifest) else NONE), NONE


def _named(manifest: Manifest, sizes: Mapping[int, int]) -> Sizes | None:
    units = {"bucketized": "buckets", "perturbed": "sub-tables", "generalized": "classes"}
    return Sizes(units[manifest.layout], sizes) if sizes else None


def _widths(tables: Mapping[str, DataFrame], manifest: Manifest) -> dict[str, float]:
    """{quasi-identifier: share of its range that a published row covers on average}; nothing of an empty release."""
    if not manifest.rows.published:
        return {}
    losses = losses_of_boxes(tables[generalized.MICRODATA], manifest)
    return {part.name: losses[f"gcp of {part.name}"] for part in manifest.quasi_identifiers}


def _batches(release: Release) -> tuple[Batch, ...]:
    """Of a stream, the batches it had when it was opened."""
    manifest = release.manifest
    if manifest.stream is None:
        return ()
    numbers = streamed.batch_numbers(release.path)[: manifest.stream.batches]
    parts = [(m.stream, m.audit.passed) for m in streamed.read_batches(release.path, numbers)]
    return tuple(
        Batch(stream.batch or 0, stream.shown, stream.waiting, passed) for stream, passed in parts if stream is not None
    )


def _beside(release: Release, original: DataFrame, evaluation: Evaluation) -> Beside:
    counted, found = answers(release, original)
    errors = evaluation.errors
    return Beside(
        measures=evaluation.measures,
        workload=Workload(
            evaluation.actual,
            evaluation.estimated,
            errors.queries,
            errors.dropped,
            errors.average,
            errors.median,
            release.manifest.rows.published,
        ),
        attacks=evaluation.attacks,
        answers=found,
        counted=counted,
    )
