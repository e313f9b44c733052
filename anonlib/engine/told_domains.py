"""Domains that a spec tells, in the types of the table that they are about: what `domain_statistics` reads of a table, without one.

The texts are cast by Spark itself and read back, so that a told value is the value that records have, however it was written ("007" of a
whole number is 7). One small job; nothing of the input is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.engine.domains import QuasiIdentifier, QuasiIdentifiers
from anonlib.engine.failures import explained
from anonlib.engine.local_table import local_table
from anonlib.engine.numeric_codes import check_coded, code_of
from anonlib.engine.relational import rows, select
from anonlib.engine.statistics import FLOATING, value_text
from anonlib.errors import SpecError
from anonlib.spec.release import Columns, ColumnWithHierarchy
from anonlib.spec.stream import Range


def told_domains(
    spark: SparkSession, columns: Columns, told: Mapping[str, object], kinds: Mapping[str, str]
) -> tuple[QuasiIdentifiers, tuple[str | None, ...]]:
    """(the quasi-identifiers, the values of the sensitive column as text in the order of their codes).

    told  : {column: a Range, or its values}, of every column without a hierarchy; kinds : {column as the table spells it: Spark type}
    Raises SpecError for a text that is no value of the column's type, two texts of one value, and ends that are the wrong way round.
    """
    spelled = {name.lower(): name for name in kinds}
    domains = {name.lower(): domain for name, domain in told.items()}
    parts = []
    for column in columns.quasi_identifiers:
        name = spelled[column.name.lower()]
        domain = domains.get(column.name.lower())
        if isinstance(domain, Range):
            parts.append(_numeric(spark, name, kinds[name], domain))
        else:
            values = _values(spark, name, kinds[name], column, domain)
            parts.append(QuasiIdentifier(name, kinds[name], CategoricalDomain(name, values, column.told_hierarchy)))
    sensitive = columns.sensitive[0]
    name = spelled[sensitive.name.lower()]
    return QuasiIdentifiers(tuple(parts)), _values(
        spark, name, kinds[name], sensitive, domains.get(sensitive.name.lower())
    )


def _numeric(spark: SparkSession, name: str, kind: str, ends: Range) -> QuasiIdentifier:
    check_coded(name, kind)
    low, high = _as_read(spark, name, kind, [ends.low, ends.high], code_of("value", kind))
    if low > high or (kind in FLOATING and not abs(high - low) < float("inf")):
        raise SpecError(
            f"stream.domains.{name}: from {ends.low} to {ends.high} there is nothing; low comes first, both finite"
        )
    return QuasiIdentifier(name, kind, NumericDomain(name, float(low), float(high)), low, high)


def _values(
    spark: SparkSession, name: str, kind: str, column: ColumnWithHierarchy, told: object
) -> tuple[str | None, ...]:
    if column.told_hierarchy is not None:
        return tuple(column.told_hierarchy.labels[: column.told_hierarchy.leaves])
    assert isinstance(told, Sequence)
    texts = [text for text in told if text is not None]
    known = _as_read(spark, name, kind, texts, value_text("value", kind)) if texts else []
    if len(set(known)) < len(known):
        first = next(text for i, text in enumerate(known) if text in known[:i])
        raise SpecError(f"stream.domains.{name}: {first!r} is told twice, as {kind}; tell each value once")
    return (*sorted(known), *([None] if None in told else []))


def _as_read(spark: SparkSession, name: str, kind: str, texts: Sequence[str], sql: str) -> list:  # type: ignore[type-arg]
    """What `sql` makes of the column `value`, each text cast to the column's type."""
    table = local_table(spark, "place int, text string", list(enumerate(texts)))
    typed = select(table, {"place": "place", "text": "text", "value": f"try_cast(text AS {kind})"})
    with explained(f"stream.domains.{name}"):
        read = rows(select(typed, {"place": "place", "code": sql, "lost": "value IS NULL"}), limit=len(texts))
    for row in read:
        if row["lost"]:
            raise SpecError(
                f"stream.domains.{name}: {texts[row['place']]!r} is no value of type {kind}; mend it, or input.schema"
            )
    return [row["code"] for row in sorted(read, key=lambda row: int(row["place"]))]
