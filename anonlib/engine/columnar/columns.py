"""What the number that a kernel gives a record stands for: columns of the published table, as Arrow has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from anonlib.arrays import Int64Array

_WHOLE = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
_TRUTH = {"true": True, "false": False}


class Columns(Protocol):
    """Published columns that follow from a record's number."""

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""

    def __call__(self, number: Int64Array, /) -> Mapping[str, pa.Array]:
        """The columns of N records, given their numbers (N,) int64."""


@dataclass(frozen=True)
class Itself:
    """One column of type long: the number."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def __call__(self, number: Int64Array, /) -> Mapping[str, pa.Array]:
        return {self.name: pa.array(number)}


@dataclass(frozen=True)
class Packed:
    """A value's code in the low `bits` bits, another number above.

    value : the column of values, and `values` what they are, by code; above : the column of type int of the other number
    """

    value: str
    values: pa.Array
    bits: int
    above: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.value, self.above)

    def __call__(self, number: Int64Array, /) -> Mapping[str, pa.Array]:
        values = self.values.take(pa.array(number & ((1 << self.bits) - 1)))
        return {self.value: values, self.above: pa.array((number >> self.bits).astype("int32"))}


def typed(texts: Sequence[str | None], spark_type: str) -> pa.Array | None:
    """Sensitive values given as texts (`anonlib.engine.statistics.value_text`), in a type of Arrow's; None for types that have no such
    plain text."""
    if spark_type == "string":
        return pa.array(texts, pa.string())
    if spark_type == "boolean":
        return pa.array([None if text is None else _TRUTH[text] for text in texts], pa.bool_())
    kind = _WHOLE.get(spark_type)
    return None if kind is None else pa.array([None if text is None else int(text) for text in texts], kind)
