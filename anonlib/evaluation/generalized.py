"""What a generalized release is worth beside the table it was made from: loss, errors of range queries, cells of a data cube, attacks.

Jobs, whatever the number of queries: one for losses, two for the workload (original, release), two for the cube, one for risks (two
without classes), and with attacks two for naive Bayes and three for the minimality check; the cube and the attacks with each sensitive
column. Each is one pass; a release with classes is grouped by class for it (one shuffle).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.engine.batches import merged, partial_sums
from anonlib.engine.codes import encode
from anonlib.engine.domains import QuasiIdentifiers
from anonlib.engine.relational import DataFrame, aggregate, one_row, rows, select, with_columns
from anonlib.engine.values import small_table
from anonlib.errors import SpecError
from anonlib.evaluation import attacks_on_generalized as on_boxes
from anonlib.evaluation import one_column
from anonlib.evaluation.attacks_around import Persons
from anonlib.evaluation.attacks_decisions import minimality_words
from anonlib.evaluation.attacks_minimality import minimality
from anonlib.evaluation.attacks_registry import CLASSES as CLASSES_OF
from anonlib.evaluation.attacks_registry import MATCHED, figures_by_attack, figures_by_column
from anonlib.evaluation.class_sizes import sizes_by, sizes_of
from anonlib.evaluation.evaluation import Evaluation, RelativeErrors
from anonlib.evaluation.range_workload import RangeWorkload, range_workload
from anonlib.evaluation.risks import RiskMeasures
from anonlib.exact import exact
from anonlib.queries.box_batch import BoxEstimates, PointCounts, codes_name
from anonlib.queries.box_members import MemberCounts, Members, sides
from anonlib.queries.boxes import BoxReader, Intervals
from anonlib.queries.cells import BoxCells, Cells, Cube, PointCells, divergence
from anonlib.release import generalized
from anonlib.release.generalized import MICRODATA
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.spec.layouts import EC_ID

ROWS_PER_TASK = 25_000
MAX_TASKS = 2_000
MAX_CELLS = 4_000_000
"""Cells of a cube that tasks and driver hold: 32 MB."""
CUBE_LEVEL = 2
CLASSES = 2_000
MEMBERS = 100_000
"""Classes looked at by the minimality check, and records in them that may reach the driver."""


def evaluate(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame,
    *,
    queries: int = 10_000,
    selectivity: float = 0.1,
    seed: int = 0,
    dimensions: int | None = None,
    attacks: bool = False,
) -> Evaluation:
    """GCP, AIL, discernibility, KL divergence of cube cells, and the error of a workload of kind `range`.

    original : the input after the missing-value policy
    dimensions : how many quasi-identifiers a query asks about (3 when not given)
    attacks  : play those of `anonlib.evaluation.attacks_registry` that apply

    Of several sensitive columns a query asks for values of each; cells are counted, and attacks played, with each in turn.

    Raises SpecError for a column that the original lacks, and AnonlibError when its values are not those of the release.
    """
    prepared = Prepared.of(tables[MICRODATA], manifest, original)
    apart = prepared.by_column(original)
    secret = (manifest.guarantee.sensitive, *prepared.further)
    workload = range_workload(
        prepared.quasi_identifiers,
        manifest.guarantee.sensitive,
        prepared.values,
        queries,
        selectivity,
        seed,
        dimensions,
        prepared.further,
    )
    actual, estimated = true_counts(prepared, workload), estimates(prepared, workload)
    lambdas = np.array([query.dimensions(*secret) for query in workload.queries])
    classes = generalized.has_classes(manifest)
    played = apart if attacks else apart[: 0 if classes else 1]
    samples = [(one, sampled(one, seed)) for one in played]
    return Evaluation(
        measures=losses(prepared) | divergences(apart),
        errors=RelativeErrors.of(actual, estimated),
        by_group=RelativeErrors.by(lambdas, actual, estimated),
        grouped_by="quasi-identifiers in the query",
        workload=workload,
        actual=actual,
        estimated=estimated,
        attacks=_attacks(samples, seed) if attacks else {},
        risks=risks_of_classes(prepared) if classes else risks_of_boxes(*samples[0][1]),
    )


def _attacks(samples: Sequence[tuple[Prepared, tuple[Persons, Float64Array]]], seed: int) -> dict[str, dict[str, Any]]:
    """The attacks on each sensitive column, as `attacks_registry.figures_by_column` has them. samples : as `sampled`, by column."""
    return figures_by_column({one.manifest.guarantee.sensitive: attack(one, drawn, seed) for one, drawn in samples})


@dataclass(frozen=True)
class Prepared:
    """A release and its original in the form the kernels read.

    boxes  : one row per class, or per record without classes: qI_lo, qI_hi, qI_set, codes, counts (of sensitive values), ec_id if any
    points : the original as codes q0, q1, ..., s0; values : sensitive values in the order of their codes, by number where they are numbers
    further : {further sensitive column: its values}; boxes have codes1, ... of them, and points s1, ...
    """

    manifest: Manifest
    quasi_identifiers: QuasiIdentifiers
    values: tuple[str | None, ...]
    boxes: DataFrame
    points: DataFrame
    microdata: DataFrame
    further: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)

    @staticmethod
    def of(microdata: DataFrame, manifest: Manifest, original: DataFrame) -> Prepared:
        """The release's boxes and the original's codes, over the manifest's domains; nothing is computed yet.

        Raises SpecError for a column of the release that the original lacks.
        """
        wanted = [*(p.name for p in manifest.quasi_identifiers), *generalized.sensitive_columns(manifest)]
        absent = [name for name in wanted if name not in original.columns]
        if absent:
            raise SpecError(
                f"the original table has no column {absent[0]!r}, which the release has; is it the table it was made from? "
                f"It has {', '.join(original.columns)}"
            )
        quasi_identifiers = generalized.quasi_identifiers(manifest)
        parts = (manifest.guarantee, *manifest.guarantee.also)
        values = {part.sensitive: ordered_values(part) for part in parts}
        tasks = _tasks(manifest.rows.published)
        points = encode(original, quasi_identifiers, values).repartition(tasks)
        first, *further = values
        return Prepared(
            manifest,
            quasi_identifiers,
            values[first],
            _boxes(microdata, manifest, list(values.values())).repartition(tasks),
            points,
            microdata,
            {name: values[name] for name in further},
        )

    def by_column(self, original: DataFrame) -> list[Prepared]:
        """The same for each sensitive column as if there were no other; of one column, itself."""
        if not self.further:
            return [self]
        return [Prepared.of(self.microdata, one, original) for one in one_column.of_boxes(self.manifest)]

    @property
    def sizes_of_further(self) -> tuple[int, ...]:
        """How many values each further sensitive column has."""
        return tuple(len(values) for values in self.further.values())

    @property
    def reader(self) -> BoxReader:
        """What reads the batches of `boxes`."""
        return BoxReader(self.quasi_identifiers.domains, self.values)


def ordered_values(part: GuaranteePart) -> tuple[str | None, ...]:
    """The sensitive values in the order in which an interval of them makes sense: numbers by size, else as the manifest lists them."""
    values = tuple(value.value for value in part.values)
    try:
        return tuple(sorted(values, key=lambda v: (v is None, Decimal(v or 0))))
    except ArithmeticError:
        return values


def _boxes(microdata: DataFrame, manifest: Manifest, values: Sequence[Sequence[str | None]]) -> DataFrame:
    """One row per class (per record without classes) with its box, its sensitive codes and their counts. values : of each column."""
    read = select(microdata, generalized.boxes(microdata, manifest))
    box = [name for name in read.columns if name.startswith("q")]
    kept = {name: name for name in box} | ({EC_ID: EC_ID} if generalized.has_classes(manifest) else {})
    coded = select(read, kept | {f"key{i}": f"coalesce(concat('=', s{i}), '')" for i in range(len(values))})
    for i, own in enumerate(values):
        pairs = [("" if v is None else f"={v}", code) for code, v in enumerate(own)]
        coded = coded.join(small_table(microdata, f"key{i} string, code{i} int", pairs), f"key{i}", "left")
    codes = [f"code{i}" for i in range(len(values))]
    coded = select(coded, kept | {f"code{i}": f"coalesce(code{i}, {len(own)})" for i, own in enumerate(values)})
    if not generalized.has_classes(manifest):
        lists = {codes_name(i): f"array({code})" for i, code in enumerate(codes)}
        return select(coded, {name: name for name in box} | lists | {"counts": "array(1L)"})
    cells = aggregate(coded, [EC_ID, *codes], {"c": "count(1)", **{name: f"first({name})" for name in box}})
    entries = f"collect_list(struct({', '.join(codes)}, c))"
    classes = aggregate(cells, [EC_ID], {"entries": entries, **{name: f"first({name})" for name in box}})
    lists = {codes_name(i): f"entries.{code}" for i, code in enumerate(codes)}
    return select(classes, kept | lists | {"counts": "entries.c"})


def true_counts(prepared: Prepared, workload: RangeWorkload) -> Float64Array:
    """(Q,) how many records of the original meet each query. One job."""
    kernel = PointCounts(workload.batch(), len(prepared.values), prepared.sizes_of_further)
    return np.rint(partial_sums(prepared.points, kernel, len(workload.queries)))


def estimates(prepared: Prepared, workload: RangeWorkload) -> Float64Array:
    """(Q,) the release's estimate of each query; dummies and suppressed records are allowed for on average. One job."""
    kernel = BoxEstimates(prepared.reader, workload.batch(), prepared.sizes_of_further)
    return partial_sums(prepared.boxes, kernel, len(workload.queries)) * generalized.records_per_row(prepared.manifest)


def losses(prepared: Prepared) -> dict[str, float]:
    """GCP and AIL, over all and by attribute; with classes their number and discernibility."""
    measures = losses_of_boxes(prepared.microdata, prepared.manifest)
    if generalized.has_classes(prepared.manifest):
        sizes = aggregate(prepared.microdata, [EC_ID], {"size": "CAST(count(1) AS DECIMAL(38, 0))"})
        row = one_row(aggregate(sizes, [], {"n": "count(1)", "squares": "sum(size * size)"}))
        measures |= {"classes": float(row["n"]), "discernibility": float(row["squares"] or 0)}
    return measures


def losses_of_boxes(microdata: DataFrame, manifest: Manifest) -> dict[str, float]:
    """GCP and AIL, over all and by attribute, from the release alone. One job."""
    quasi_identifiers, values = generalized.quasi_identifiers(manifest), ordered_values(manifest.guarantee)
    names = [column.name for column in quasi_identifiers.columns]
    kernel = _Losses(BoxReader(quasi_identifiers.domains, values))
    boxes = select(microdata, generalized.boxes(microdata, manifest))
    sums = partial_sums(boxes, kernel, kernel.length)
    n, d = max(1.0, sums[-1]), len(names)
    measures = {"gcp": float(sums[:d].sum() / n / d), "ail": float(sums[d : 2 * d].sum() / n / d)}
    measures |= {f"gcp of {name}": float(sums[i] / n) for i, name in enumerate(names)}
    measures |= {f"ail of {name}": float(sums[d + i] / n) for i, name in enumerate(names)}
    return measures


@dataclass(frozen=True)
class _Losses:
    """Kernel over records' boxes: per attribute the sum of NCP, then of SABRE's information loss, then how many records."""

    reader: BoxReader

    @property
    def length(self) -> int:
        """How long the kernel's vector is."""
        return 2 * len(self.reader.domains) + 1

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.length)
        d = len(self.reader.domains)
        for batch in batches:
            total[-1] += batch.num_rows
            for i, domain in enumerate(self.reader.domains):
                attribute = self.reader.attribute(batch, i)
                if isinstance(attribute, Intervals):
                    assert isinstance(domain, NumericDomain)
                    penalty = loss = domain.penalty(attribute.low, attribute.high)
                else:
                    assert isinstance(domain, CategoricalDomain)
                    penalty = domain.penalty(attribute.counts)
                    loss = domain.information_loss(attribute.counts, *attribute.ends())
                total[i] += penalty.sum()
                total[d + i] += loss.sum()
        return total


def cube_of(prepared: Prepared, level: int) -> Cube:
    """The data cube of the release: the group-bys over `level` quasi-identifiers and the sensitive attribute."""
    cells = [Cells.of(c.domain, None if c.low is None else (c.low, c.high)) for c in prepared.quasi_identifiers.columns]
    return Cube(tuple(cells), level, len(prepared.values))


def divergences(apart: Sequence[Prepared]) -> dict[str, float]:
    """`cube_divergence` with each sensitive column, of those whose cubes are small enough. Two jobs each."""
    measured = {}
    for one in apart:
        level = min(CUBE_LEVEL, len(one.quasi_identifiers.columns))
        if cube_of(one, level).length <= MAX_CELLS:
            name = f"kl_{level}" if len(apart) == 1 else f"kl_{level} of {one.manifest.guarantee.sensitive}"
            measured[name] = cube_divergence(one, level)
    return measured


def cube_divergence(prepared: Prepared, level: int = CUBE_LEVEL) -> float:
    """KL divergence of the release's group-by cells from the original's, in nats, averaged over the group-bys of a level. Two jobs.

    The cells of a group-by are those of its attributes with each sensitive value. Raises SpecError when there are too many.
    """
    cube = cube_of(prepared, level)
    if cube.length > MAX_CELLS:
        raise SpecError(
            f"the group-bys over {level} attributes have {cube.length:,} cells, at most {MAX_CELLS:,} can be compared; take a lower level"
        )
    actual = cube.parts(partial_sums(prepared.points, PointCells(cube), cube.length))
    estimated = cube.parts(partial_sums(prepared.boxes, BoxCells(prepared.reader, cube), cube.length))
    return float(np.mean([divergence(a, b) for a, b in zip(actual, estimated, strict=True)]))


def sampled(prepared: Prepared, seed: int) -> tuple[Persons, Float64Array]:
    """A sample of persons, and how many rows with each sensitive value fit each of them. Two jobs."""
    persons = on_boxes.drawn(prepared, seed)
    return persons, on_boxes.around(prepared, persons)


def risks_of_classes(prepared: Prepared) -> RiskMeasures | None:
    """Of classes as they are published, by their numbers: boxes that overlap make a person harder to find, not easier. One job."""
    manifest = prepared.manifest
    return RiskMeasures.of(sizes_of(sizes_by(prepared.microdata, EC_ID, manifest.rows.published + manifest.rows.dummy)))


def risks_of_boxes(persons: Persons, counts: Float64Array) -> RiskMeasures | None:
    """Where every record has a box of its own: by the rows whose boxes hold each sampled person."""
    return RiskMeasures.of_fits(np.rint(counts.sum(axis=1)).astype(np.int64), persons.weight)


def attack(prepared: Prepared, sample: tuple[Persons, Float64Array], seed: int = 0) -> dict[str, dict[str, Any]]:
    """{attack: its figures, or words} on a published table, as `attacks_registry.figures_by_attack` has them. sample : as `sampled`."""
    manifest = prepared.manifest
    of = {v.value: v.count for v in manifest.guarantee.values}
    frequency = np.array([of[value] for value in prepared.values], dtype=np.int64)
    prior, allowed = float(frequency.max() / frequency.sum()), confidence(manifest.guarantee)
    words = {"minimality": minimality_words(manifest.method.name, manifest.method.parameters)}
    persons, counts = sample
    played = on_boxes.beliefs(prepared, persons, counts, seed)
    classes = generalized.has_classes(manifest)
    if not classes:
        eliminated = on_boxes.eliminated(prepared, persons, counts, prior)
        if isinstance(eliminated, str):
            words["elimination"] = eliminated
        else:
            played.append(eliminated)
    members = class_members(prepared, seed) if classes else None
    if members is not None:
        played.append(minimality(*members, frequency, seed))
        played.append(on_boxes.definetti_in_classes(members, frequency.astype(np.float64), prior, allowed, seed))
    elif classes:
        words["outermost record"] = "not played: no class was found whose box holds its own records only"
    cube = cube_of(prepared, 1)
    if cube.length <= MAX_CELLS:
        played += on_boxes.naive_bayes(prepared, cube, prior, allowed)
        if members is None:
            played.append(on_boxes.definetti_on_boxes(prepared, cube, persons, counts, prior, allowed))
    else:
        words |= dict.fromkeys(
            ("naive Bayes", "deFinetti"), f"not played: its tables have more than {MAX_CELLS:,} cells"
        )
    return figures_by_attack(CLASSES_OF if classes else MATCHED, played, words)


def confidence(part: GuaranteePart) -> float | None:
    """How sure of one person's sensitive value the promise lets anybody become at most; None when it says nothing of the kind."""
    n = sum(value.count for value in part.values)
    shares = [Fraction(value.count, n) for value in part.values]
    asked = {name: exact(number) for name, number in part.asked.items()}
    bounds = [1 / asked[name] for name in ("l", "frequency_l") if name in asked]
    if "beta" in asked:
        bounds.append(max((1 + asked["beta"]) * share for share in shares))
    if "enhanced_beta" in asked:
        logs = [Fraction(-float(np.log(float(share)))) for share in shares]
        bounds.append(max((1 + min(asked["enhanced_beta"], log)) * p for p, log in zip(shares, logs, strict=True)))
    if "t" in asked and part.distance == "flat":
        bounds.append(max(shares) + asked["t"])
    return min(1.0, float(min(bounds))) if bounds else None


def class_members(prepared: Prepared, seed: int) -> tuple[Any, Any, Any] | None:
    """(class, points on axes of length 1, sensitive code) of the records in sampled classes whose boxes hold no other records.

    Where boxes overlap, nobody can tell from the release who is in a class; such classes are passed over. None when none is left.
    """
    domains = prepared.quasi_identifiers.domains
    sampled = with_columns(prepared.boxes, {"drawn": f"xxhash64({int(seed)}L, {EC_ID})"})
    drawn = rows(sampled.orderBy("drawn", EC_ID).limit(CLASSES), CLASSES)
    boxes = tuple(sides(row, domains) for row in drawn)
    asked: tuple[tuple[tuple[int, int | None], ...], ...] = tuple(((at, None),) for at in range(len(drawn)))
    if not drawn:
        return None
    inside = partial_sums(prepared.points, MemberCounts(boxes, asked, len(drawn)), len(drawn))
    plain, members = [], 0
    for at, row in enumerate(drawn):
        size = sum(row["counts"])
        if inside[at] == size and 1 < size <= MEMBERS - members:
            plain.append(at)
            members += size
    if not plain:
        return None
    names = [f"q{i}" for i in range(len(domains))]
    schema = ", ".join(["box bigint", "s0 bigint", *(f"{name} double" for name in names)])
    kernel = Members(tuple(boxes[at] for at in plain))
    member_rows = merged(prepared.points, kernel, schema, ["box", "s0", *names], {"n": "count(1)"}, MEMBERS)
    times = np.array([row["n"] for row in member_rows])
    axes = []
    for name, column in zip(names, prepared.quasi_identifiers.columns, strict=True):
        codes = np.array([row[name] for row in member_rows], dtype=np.float64)
        domain = column.domain
        span = domain.width if isinstance(domain, NumericDomain) else max(1, domain.size - 1)
        axes.append((codes - codes.min()) / span)
    ec, value = (np.array([row[name] for row in member_rows]) for name in ("box", "s0"))
    return np.repeat(ec, times), np.repeat(np.stack(axes, axis=1), times, axis=0), np.repeat(value, times)


def _tasks(records: int) -> int:
    """An explicit number of tasks: left to itself, Spark would put so few bytes into one."""
    return max(2, min(MAX_TASKS, records // ROWS_PER_TASK))
