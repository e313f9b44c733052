"""A generalized release against the table it was made from: domains, distribution, and whether its boxes cover its records.

Which record went into which row is nowhere written, so two things are counted that no honest release can fail. For classes drawn at audit
time: the original has at least as many records in the box, for each sensitive value, as the class publishes. For records drawn at audit
time: some published box holds the record and tells its sensitive value. All classes are looked at while (classes x records) stays
below `PAIRS`; then a sample, drawn after the release was written, which the checks say. A box shrunk around any one record is
found when its class is drawn; the checksum and, at the gate, the methods' evidence stand beside this.

Cost: the original is read once for each kind of domain, once for its distribution, once for the classes; `microdata` once or twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float64Array, Int64Array
from anonlib.audit.original import same_distribution
from anonlib.audit.published import fresh_salt
from anonlib.audit.verdict import Check
from anonlib.engine.batches import partial_sums
from anonlib.engine.checksum import row_hash, salted
from anonlib.engine.codes import encode
from anonlib.engine.compound import compound_text
from anonlib.engine.domains import categories, numeric_bounds
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, rows, select, with_columns
from anonlib.queries.box_members import MemberCounts, sides
from anonlib.queries.boxes import Attribute, BoxReader, Intervals
from anonlib.release import generalized
from anonlib.release.manifest import Manifest, QuasiIdentifierPart
from anonlib.spec.layouts import EC_ID
from anonlib.sql import quoted

PAIRS = 4_000_000_000
"""Comparisons of a class with a record in one audit: some ten seconds of two cores, the first attribute deciding most."""
MOST_CLASSES = 5_000
RECORDS = 400
_DRAWN = "anonlib drawn"


def compare(microdata: DataFrame, manifest: Manifest, original: DataFrame) -> list[Check]:
    """The checks that need the original, or the check of its columns alone where that failed."""
    columns = _columns(manifest, original)
    if not columns.passed:
        return [columns]
    if manifest.stream is not None:  # some of its records are not shown yet
        return [columns, _enough_in_each_box(microdata, manifest, original)] if manifest.rows.published else [columns]
    of_columns = [
        same_distribution(manifest.model_copy(update={"guarantee": part}), original)
        for part in (manifest.guarantee, *manifest.guarantee.also)
    ]
    if manifest.guarantee.also and not generalized.has_classes(manifest):
        of_columns.append(_same_combinations(microdata, manifest, original))
    checks = [columns, *collected([_domains(manifest, original), *of_columns])]
    if not all(check.passed for check in checks):
        return checks
    if generalized.has_classes(manifest):
        checks.append(_enough_in_each_box(microdata, manifest, original))
    return [*checks, _each_in_some_box(microdata, manifest, original)]


def _columns(manifest: Manifest, original: DataFrame) -> Check:
    have = dict(original.dtypes)
    wanted = {part.name: part.type for part in manifest.quasi_identifiers}
    wanted |= {part.sensitive: part.sensitive_type for part in (manifest.guarantee, *manifest.guarantee.also)}
    faults = [
        f"{name!r} is {have.get(name, 'absent')}, stated {kind}"
        for name, kind in wanted.items()
        if have.get(name) != kind
    ]
    return Check.unless(
        faults,
        name="original: columns",
        asked="quasi-identifiers and sensitive columns of the original, with their types",
        achieved="equal" if not faults else f"{len(faults)} differ",
    )


def _domains(manifest: Manifest, original: DataFrame) -> Small[Check]:
    """The manifest's domains are the original's; a tree may have more leaves."""
    kinds = dict(original.dtypes)
    numeric = [part for part in manifest.quasi_identifiers if part.kind == "numeric"]
    sets = [part for part in manifest.quasi_identifiers if part.kind == "categorical"]
    asked: list[Small[Any]] = [
        numeric_bounds(original, [part.name for part in numeric], kinds),
        categories(original, [part.name for part in sets], kinds),
    ]
    return Small.of(asked, lambda answers: _same_domains(numeric, sets, answers[0], answers[1]))


def _same_domains(
    numeric: list[QuasiIdentifierPart],
    sets: list[QuasiIdentifierPart],
    bounds: Mapping[str, tuple[Any, Any]],
    values: Mapping[str, list[str | None]],
) -> Check:
    faults = []
    for part in numeric:
        stated, (low, high) = generalized.domain_ends(part), bounds[part.name]
        if (low, high) != stated:
            faults.append(f"{part.name!r}: stated {stated[0]} to {stated[1]}, was {low} to {high}")
    for part in sets:
        held = set(values[part.name])
        stated_values = {row[0] for row in part.hierarchy} if part.hierarchy else set(part.values)
        if not held <= stated_values or (not part.hierarchy and held != stated_values):
            odd = next(iter(held ^ stated_values))
            faults.append(f"{part.name!r}: the value {odd!r} is not in both the original and the manifest")
    return Check.unless(
        faults,
        name="original: domains of the quasi-identifiers",
        asked="the manifest's domains",
        achieved="equal" if not faults else f"{len(faults)} differ",
    )


def _same_combinations(microdata: DataFrame, manifest: Manifest, original: DataFrame) -> Small[Check]:
    """Several sensitive columns are published together as one record has them: each combination as often as in the original. One shuffle
    of the combinations of both."""
    kinds = {part.sensitive: part.sensitive_type for part in (manifest.guarantee, *manifest.guarantee.also)}
    combination = compound_text(kinds)
    both = select(microdata, {"combination": combination, "more": "1L"}).unionAll(
        select(original, {"combination": combination, "more": "-1L"})
    )
    differing = aggregate(both, ["combination"], {"more": "sum(more)"}).where("more <> 0")
    sums = {"n": "count(1)", "one": "max(struct(abs(more), combination, more))"}
    return Small.of_row(aggregate(differing, [], sums), _combinations)


def _combinations(row: Mapping[str, Any]) -> Check:
    one = row["one"]
    return Check(
        name="original: combinations of the sensitive columns",
        passed=not row["n"],
        asked="each combination of their values as often as in the original",
        achieved=f"{int(row['n']):,} combinations differ",
        evidence=None
        if one is None
        else f"{one['combination']!r}: published {int(one['more']):+,} times beside the original",
    )


def _coded(manifest: Manifest, original: DataFrame) -> DataFrame:
    return encode(original, generalized.quasi_identifiers(manifest), _sensitive(manifest))


def _sensitive(manifest: Manifest) -> dict[str, list[str | None]]:
    parts = (manifest.guarantee, *manifest.guarantee.also)
    return {part.sensitive: [value.value for value in part.values] for part in parts}


def _enough_in_each_box(microdata: DataFrame, manifest: Manifest, original: DataFrame) -> Check:
    """No class publishes a sensitive value more often than the original has it within the class's box."""
    salt, n = fresh_salt(), max(1, manifest.rows.published)
    sampled = int(min(MOST_CLASSES, max(200, PAIRS // n)))
    coded = select(microdata, generalized.boxes(microdata, manifest))
    box = [name for name in coded.columns if name.startswith("q")]
    ids = aggregate(coded, [EC_ID], {"h": f"min(xxhash64({salted(salt)}, {EC_ID}))"}).orderBy("h", EC_ID).limit(sampled)
    one_box = {name: f"first({name})" for name in box}
    cells = aggregate(coded.join(ids.select(EC_ID), EC_ID), [EC_ID, "s0"], {"c": "count(1)", **one_box})
    classes = rows(aggregate(cells, [EC_ID], {"cells": "collect_list(struct(s0, c))", **one_box}), sampled)
    asked = [(row[EC_ID], cell["s0"], cell["c"]) for row in classes for cell in row["cells"]]
    counts = (
        partial_sums(_coded(manifest, original), _members(classes, manifest), len(asked)) if classes else np.zeros(0)
    )
    short = [i for i, (_, _, c) in enumerate(asked) if counts[i] < c]
    what = "all" if len(classes) < sampled else f"{len(classes):,} sampled"
    worst = asked[short[0]] if short else None
    return Check(
        name="original: records in each class's box",
        passed=not short,
        asked="at least as many originals in a box, by sensitive value, as its class publishes",
        achieved=f"{len(short):,} too few ({what} classes)",
        evidence=f"class {worst[0]}: {worst[2]} of {worst[1]!r}, the original has {int(counts[short[0]])} in its box"
        if worst is not None
        else None,
    )


def _members(classes: Sequence[dict[str, Any]], manifest: Manifest) -> MemberCounts:
    """A count for each of the `cells` of `classes`, in order: records in the class's box that have the cell's value."""
    code = {value.value: i for i, value in enumerate(manifest.guarantee.values)}
    domains = generalized.quasi_identifiers(manifest).domains
    place = itertools.count()
    cells = tuple(tuple((next(place), code.get(cell["s0"], -1)) for cell in row["cells"]) for row in classes)
    return MemberCounts(tuple(sides(row, domains) for row in classes), cells, next(place))


def _each_in_some_box(microdata: DataFrame, manifest: Manifest, original: DataFrame) -> Check:
    """Sampled records each lie in a published box beside their own sensitive values."""
    salt = fresh_salt()
    columns, sensitive = [part.name for part in manifest.quasi_identifiers], _sensitive(manifest)
    drawn_by = row_hash(original, [*columns, *sensitive], salt)
    drawn = with_columns(original, {_DRAWN: drawn_by}).orderBy(quoted(_DRAWN)).limit(RECORDS).drop(_DRAWN)
    points = rows(_coded(manifest, drawn), RECORDS)
    kernel = _Points(
        BoxReader(generalized.quasi_identifiers(manifest).domains),
        tuple(np.array([p[f"q{i}"] for p in points]) for i in range(len(columns))),
        tuple(tuple(values) for values in sensitive.values()),
        np.array([[p[f"s{k}"] for k in range(len(sensitive))] for p in points]),
    )
    held = partial_sums(select(microdata, generalized.boxes(microdata, manifest)), kernel, len(points))
    lost = np.flatnonzero(held == 0)
    allowed = manifest.rows.suppressed
    return Check(
        name="original: records covered by boxes",
        passed=len(lost) <= allowed,
        asked="each record in a box that is published with its sensitive value"
        + (f", but for {allowed:,} suppressed" if allowed else ""),
        achieved=f"{len(lost):,} of {len(points):,} sampled records in none",
        evidence=f"the record with codes {[points[int(lost[0])][f'q{i}'] for i in range(len(columns))]}"
        if len(lost)
        else None,
    )


@dataclass(frozen=True)
class _Points:
    """Kernel over boxes: how many of them hold each point and have its sensitive values.

    values : of each sensitive column, in the order of their codes; sensitive : (points, columns) codes
    """

    reader: BoxReader
    points: tuple[npt.NDArray[Any], ...]
    values: tuple[tuple[str | None, ...], ...]
    sensitive: Int64Array

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(len(self.sensitive), dtype=np.int64)
        for batch in batches:
            for block in self.reader.blocks(batch):
                sides = [_side(attribute) for attribute in self.reader.attributes(block)]
                codes = np.stack(
                    [
                        replace(self.reader, sensitive=values).sensitive_codes(block, f"s{k}")
                        for k, values in enumerate(self.values)
                    ],
                    axis=1,
                )
                for p, own in enumerate(self.sensitive):
                    inside = np.flatnonzero((codes == own).all(axis=1))
                    for side, point in zip(sides, self.points, strict=True):
                        inside = inside[side(inside, point[p])]
                    total[p] += len(inside)
        return total.astype(np.float64)


def _side(attribute: Attribute) -> Any:
    """(rows, code) -> which of the rows may have the code."""
    if isinstance(attribute, Intervals):
        return lambda rows, code: (attribute.low[rows] <= code) & (attribute.high[rows] >= code)
    members = attribute.members()
    return lambda rows, code: members[rows, code]
