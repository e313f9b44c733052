"""The attacks on a generalized release, on Spark. What is told of persons is told of a bounded sample of them (`PERSONS`)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.engine.batches import partial_sums
from anonlib.engine.relational import DataFrame, aggregate, rows, select, with_columns
from anonlib.evaluation.attacks import Attack, Listed
from anonlib.evaluation.attacks_around import Around, Persons
from anonlib.evaluation.attacks_bounds import Bounds, of_classes
from anonlib.evaluation.attacks_definetti import DeFinetti, definetti
from anonlib.evaluation.attacks_definetti_boxes import ROUNDS, Refined, conditional_shares, definetti_boxes
from anonlib.evaluation.attacks_definetti_boxes import beliefs as posterior_by_boxes
from anonlib.evaluation.attacks_elimination import elimination, shown_most
from anonlib.evaluation.attacks_groups import Groups, Tally
from anonlib.evaluation.attacks_homogeneity import homogeneity
from anonlib.evaluation.attacks_naive_bayes import CountedOnce, Guesses, NaiveBayes, attacks_of
from anonlib.evaluation.attacks_on_bucketized import corruption_attacks, of_groups
from anonlib.evaluation.attacks_reidentification import reidentification
from anonlib.evaluation.attacks_sample import coarse_numbers
from anonlib.evaluation.attacks_skewness import skewness
from anonlib.exact import exact, text
from anonlib.queries.cells import BoxCells, Cube, PointCells
from anonlib.release import generalized
from anonlib.release.manifest import GuaranteePart
from anonlib.spec.layouts import EC_ID

if TYPE_CHECKING:
    from anonlib.evaluation.generalized import Prepared


PERSONS = 2_000
"""Persons drawn, at most."""
ENTRIES = 4_000_000
"""Counts of sensitive values around them that tasks and driver hold, at most: fewer persons are drawn where there are many values."""
BY_BOXES = "none promised to a count of the boxes that hold a person: the promise is about the rows that may be the person's (elimination)"


def drawn(prepared: Prepared, seed: int) -> Persons:
    """A sample of persons. One job: kinds of persons are grouped on the cluster, the first by a hash reach the driver."""
    names = [*(f"q{i}" for i in range(len(prepared.quasi_identifiers.columns))), "s0"]
    wanted = max(1, min(PERSONS, ENTRIES // max(1, len(prepared.values))))
    kinds = aggregate(prepared.points, names, {"alike": "count(1)"})
    hashed = f"(shiftrightunsigned(xxhash64({int(seed)}L, {', '.join(names)}), 11) + 0.5D) / 9007199254740992D"
    ordered = with_columns(kinds, {"place": f"-ln({hashed}) / alike"}).orderBy("place", *names).limit(wanted + 1)
    sample = rows(ordered, wanted + 1)
    columns = {name: np.array([row[name] for row in sample]) for name in (*names, "alike", "place")}
    return Persons.drawn(
        [columns[name] for name in names[:-1]],
        columns["s0"].astype(np.int64),
        columns["alike"].astype(np.int64),
        columns["place"].astype(np.float64),
        wanted,
    )


def around(prepared: Prepared, persons: Persons) -> Float64Array:
    """(P, m): how many published rows with each sensitive value have a box that holds each person. One job."""
    kernel = Around(prepared.reader, persons, len(prepared.values))
    return partial_sums(prepared.boxes, kernel, kernel.length).reshape(-1, len(prepared.values))


def beliefs(prepared: Prepared, persons: Persons, counts: Float64Array, seed: int) -> list[Attack]:
    """Re-identification, homogeneity, skewness and, of classes, corruption. counts : as `around` gives them."""
    manifest, part = prepared.manifest, prepared.manifest.guarantee
    played = [_reidentification(prepared, persons, counts)]
    if generalized.has_classes(manifest):
        ordered = _in_order(part, prepared)  # bounds go by value as counts do: the manifest's order is another one
        return [
            *played,
            *of_groups(prepared.boxes, ordered, of_classes(ordered)),
            *corruption_attacks(_grouped(prepared), manifest, 0, seed),
        ]
    n = sum(v.count for v in part.values)
    held = {v.value: v.count / n for v in part.values}
    shares = tuple(held[value] for value in prepared.values)
    bounds = Bounds((None,) * len(shares), BY_BOXES)
    total, most = Tally(shares, bounds.of).tally(Groups.of_matrix(counts, persons.weight))
    return [
        *played,
        homogeneity(total, most, max(shares), bounds.of, bounds.words),
        skewness(total, most, prepared.values, shares, max(shares), bounds.of, bounds.words),
    ]


def eliminated(prepared: Prepared, persons: Persons, counts: Float64Array, prior: float) -> Attack | str:
    """Elimination on a release without classes, or why it is not played. counts : as `around` gives them."""
    manifest, rows_around = prepared.manifest, np.rint(counts).astype(np.int64)
    asked = manifest.guarantee.asked
    if "l" in asked:
        return elimination(rows_around, persons.sensitive, persons.weight, int(exact(asked["l"])), prior)
    fewest = manifest.solver.details.get("matches", {}).get("fewest")
    if not fewest:
        return "not played: the manifest does not tell the fewest matches of a record"
    if manifest.rows.suppressed:
        return "not played: who was left out has no rows, and may be in as many boxes as others by chance"
    bounds = of_classes(_in_order(manifest.guarantee, prepared))
    return shown_most(rows_around, persons.sensitive, persons.weight, int(fewest), prior, bounds.of, bounds.words)


def naive_bayes(prepared: Prepared, cube: Cube, prior: float, allowed: float | None) -> list[Attack]:
    """Naive Bayes: boxes spread evenly, and counted once for each value they hold; with and without Laplace's correction. Three jobs."""
    once = replace(cube, cells=tuple(CountedOnce.like(cells) for cells in cube.cells))
    evenly, whole = (
        cube.parts(partial_sums(prepared.boxes, BoxCells(prepared.reader, one), one.length)) for one in (cube, once)
    )
    of_value = evenly[0].sum(axis=0)
    learnt = [NaiveBayes.learn(cube.cells, t, laplace, of_value) for t in (evenly, whole) for laplace in (False, True)]
    kernel = Guesses(tuple(learnt))
    return attacks_of(partial_sums(prepared.points, kernel, kernel.length), prior, allowed)


def definetti_on_boxes(
    prepared: Prepared, cube: Cube, persons: Persons, counts: Float64Array, prior: float, allowed: float | None
) -> Attack:
    """The deFinetti attack on boxes: `ROUNDS` jobs over the boxes, and one over the quasi-identifiers of the original.

    cube : of level 1; persons, counts : the sample, and what `around` gives for it
    """
    looks = cube.parts(partial_sums(prepared.points, PointCells(cube), cube.length))
    known = tuple(np.repeat(t.sum(axis=1, keepdims=True), cube.m, axis=1) for t in looks)  # of everybody, no values
    tables: list[Float64Array] = []
    for _ in range(ROUNDS):
        kernel = Refined(prepared.reader, cube, known)
        tables = cube.parts(partial_sums(prepared.boxes, kernel, cube.length))
        known = conditional_shares(tables)
    believed = posterior_by_boxes(counts, cube.cells, tables, persons)
    return definetti_boxes(believed, counts, persons, prior, allowed)


def definetti_in_classes(
    members: tuple[Any, Any, Any], frequency: Float64Array, prior: float, allowed: float | None, seed: int
) -> Attack:
    """The deFinetti attack on sampled classes whose members are plain, as if on buckets.

    members : (class, points, sensitive code) of each member, as `generalized.class_members` gives them; frequency : (m,) records by value
    """
    ec, points, value = members
    known = np.stack([coarse_numbers(axis) for axis in points.T], axis=1)
    ids, code, count = _counted(ec, value)
    shares = frequency / frequency.sum()
    held = DeFinetti(seed=seed)(ec, known, Listed(ids, code, count), shares)
    order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.diff(ids[order], prepend=-1))
    best = np.maximum.reduceat(count[order], starts).sum() / len(ec)
    return definetti(held, value, float(best), prior, allowed)


def _counted(ec: Any, value: Any) -> tuple[Any, Any, Any]:
    """(class, sensitive code, records) of each pair that occurs."""
    pairs, count = np.unique(np.stack([ec, value], axis=1), axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], count


def _reidentification(prepared: Prepared, persons: Persons, counts: Float64Array) -> Attack:
    """How often a row that fits a person's quasi-identifiers is the person's own; counts : as `around` gives them."""
    manifest = prepared.manifest
    asked = manifest.guarantee.asked
    bound, words = None, "none promised: the release bounds values, not rows"
    name = "k" if generalized.has_classes(manifest) else "l"
    if name in asked and exact(asked[name]) > 1:
        bound = Fraction(1) / exact(asked[name])
        words = f"{name} = {text(exact(asked[name]))}: at least so many rows fit every published person"
    published = manifest.rows.published + manifest.rows.dummy
    size = np.rint(counts.sum(axis=1)).astype(np.int64)
    return reidentification(size, persons.weight, published, bound, f"{words} (a sample of {len(size):,})")


def _in_order(part: GuaranteePart, prepared: Prepared) -> GuaranteePart:
    """The guarantee with its values in the order of their codes."""
    of = {v.value: v for v in part.values}
    return part.model_copy(update={"values": [of[value] for value in prepared.values]})


def _grouped(prepared: Prepared) -> DataFrame:
    """(bucket, codes, counts) of the classes, as the attacks on buckets read them."""
    return select(prepared.boxes, {"bucket": EC_ID, "codes": "codes", "counts": "counts"})
