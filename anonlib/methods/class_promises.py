"""What is promised of equivalence classes: the predicate, the words and the numbers, from one and the same parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib import words as templates
from anonlib.engine.microdata import Microdata
from anonlib.engine.tables import types
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.exact import text
from anonlib.hierarchy import Hierarchy
from anonlib.privacy.class_requirements import (
    DistinctDiversity,
    KAnonymity,
    Requirement,
    ShareCaps,
    all_of,
    beta_likeness,
    enhanced_beta_likeness,
    frequency_diversity,
)
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.release.manifest import GuaranteePart, ValuePart
from anonlib.spec.release import Sensitive


@dataclass(frozen=True)
class Asked:
    """The numbers of a promise; None where nothing is asked. They read as `anonlib.release.generalized` lists them."""

    k: int | None = None
    distinct_l: int | None = None
    frequency_l: int | None = None
    beta: Fraction | None = None
    enhanced_beta: Fraction | None = None
    t: Fraction | None = None

    def numbers(self) -> dict[str, str]:
        """{name of a promise: its number, as exact text}, of the promises that are asked."""
        asked = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: text(Fraction(number)) for name, number in asked.items() if number is not None}


@dataclass(frozen=True)
class Promise:
    """requirement : the predicate over classes; caps : the share that each value may have in a class, where one is bounded;
    closeness : of t-closeness."""

    asked: Asked
    counts: SensitiveCounts
    requirement: Requirement
    caps: tuple[Fraction, ...] | None
    closeness: TCloseness | None


def class_promise(table: Microdata, counts: SensitiveCounts, asked: Asked) -> Promise:
    """The promise over the values of `counts`. Raises Unsatisfiable, with the most that can be asked, when not even the whole table keeps
    it, and SpecError when t has no distance to measure by, or a hierarchy has no use."""
    if asked.t is None and table.columns.sensitive[0].hierarchy is not None:
        raise SpecError(
            f"columns.sensitive: only t makes use of the hierarchy of {table.sensitive!r}; ask for t, or leave the hierarchy out"
        )
    check_possible(table.sensitive, counts, asked)
    caps: list[ShareCaps] = []
    if asked.frequency_l is not None:
        caps.append(frequency_diversity(asked.frequency_l, counts.m))
    if asked.beta is not None:
        caps.append(beta_likeness(asked.beta, counts))
    if asked.enhanced_beta is not None:
        caps.append(enhanced_beta_likeness(asked.enhanced_beta, counts))
    parts: list[Requirement] = []
    if asked.k is not None:
        parts.append(KAnonymity(asked.k))
    if asked.distinct_l is not None:
        parts.append(DistinctDiversity(asked.distinct_l))
    parts += caps
    closeness = None
    if asked.t is not None:
        closeness = TCloseness(ground_distance(table.columns.sensitive[0], counts), counts.counts, asked.t)
        parts.append(closeness)
    lowest = tuple(map(min, zip(*(cap.caps for cap in caps), strict=True))) if caps else None
    return Promise(asked, counts, all_of(parts), lowest, closeness)


def ground_distance(column: Sensitive, counts: SensitiveCounts) -> GroundDistance:
    """How far apart the values of a sensitive column are: by rank, by hierarchy, or all equally. Raises SpecError for values that the
    distance has no place for."""
    if column.type == "numeric":
        return GroundDistance.ordered(counts.values)
    if (tree := _tree(column, counts)) is not None:
        return GroundDistance.hierarchical(tree, counts.values)
    return GroundDistance.flat(counts.m)


def _tree(column: Sensitive, counts: SensitiveCounts) -> Hierarchy | None:
    """The hierarchy over the values that occur. Raises SpecError."""
    try:
        return column.hierarchy_over([value for value in counts.values if value is not None])
    except SpecError as error:
        raise SpecError(f"column {column.name!r}: {error}") from None


def check_possible(column: str, counts: SensitiveCounts, asked: Asked) -> None:
    """Raises Unsatisfiable, with the most that can be asked, unless the whole table keeps k, distinct_l and frequency_l."""
    if asked.k is not None and asked.k > counts.n:
        raise Unsatisfiable(
            f"k: {asked.k:,} records cannot share anything in a table of {counts.n:,}; k: {counts.n} can be kept"
        )
    if asked.distinct_l is not None and asked.distinct_l > counts.m:
        raise Unsatisfiable(
            f"distinct_l: {asked.distinct_l}, but {column!r} has only {counts.m} values; distinct_l: {counts.m} can be kept"
        )
    if asked.frequency_l is not None:
        check_eligible(column, counts, asked.frequency_l, "frequency_l")


def check_eligible(column: str, counts: SensitiveCounts, l: int, name: str) -> None:  # noqa: E741
    """Raises Unsatisfiable unless no value has more than one in l records."""
    most = int(np.argmax(counts.counts))
    often = int(counts.counts[most])
    if often * l > counts.n:
        best = counts.n // often
        mend = f"{name}: {best} can be kept" if best >= 2 else "no value above 1 can be kept"
        raise Unsatisfiable(
            f"{name}: {l}, but {counts.values[most]!r} in column {column!r} has {often:,} of {counts.n:,} records, more than one in {l}; "
            f"{mend}"
        )


def words(column: str, promise: Promise) -> str:
    """The promise in words, from the numbers used."""
    numbers = {name: Fraction(number) for name, number in promise.asked.numbers().items()}
    return templates.classes(column, numbers, promise.closeness.distance.kind if promise.closeness is not None else "")


def guarantee(table: Microdata, promise: Promise) -> GuaranteePart:
    """The promise of equivalence classes as the manifest states it."""
    kind, column = types(table.frame)[table.sensitive], table.columns.sensitive[0]
    stated, asked = words(table.sensitive, promise), promise.asked.numbers()
    return guarantee_part(
        templates.CLASSES, stated, table.sensitive, kind, column, promise.counts, asked, promise.closeness, promise.caps
    )


def guarantee_part(
    model: str,
    words: str,
    name: str,
    spark_type: str,
    column: Sensitive,
    counts: SensitiveCounts,
    asked: dict[str, str],
    closeness: TCloseness | None,
    caps: Sequence[Fraction] | None = None,
) -> GuaranteePart:
    """What is promised of one sensitive column `name`, as the manifest states it.

    asked : {number of the promise: exact text}; closeness, caps : as in `Promise`
    """
    distance = "" if closeness is None else closeness.distance.kind
    tree = _tree(column, counts) if distance == "hierarchical" else None
    return GuaranteePart(
        model=model,
        words=words,
        sensitive=name,
        sensitive_type=spark_type,
        values=[
            ValuePart(
                value=value,
                count=int(counts.counts[i]),
                threshold=text(min(Fraction(1), caps[i])) if caps is not None else None,
            )
            for i, value in enumerate(counts.values)
        ],
        asked=asked,
        distance=distance,
        hierarchy=[] if tree is None else tree.rows,
    )
