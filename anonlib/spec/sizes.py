"""Numbers that several methods take: sizes of partitions and classes, distances."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator

from anonlib.spec.part import fault, read_exact, shown, whole

PARTITION_SIZE = 100_000
"""Records that one task works on in one piece, when nothing else is said."""

_whole = whole(at_least=1)


def read_partition_size(value: Any) -> int | str:
    """A number of records, at least 1, or "all" for a table in one piece. Raises Faults."""
    if value == "all":
        return "all"
    try:
        size: int = _whole.func(value)  # type: ignore[call-arg]
    except ValueError:
        raise fault(f"{shown(value)} is no number of records; write e.g. {PARTITION_SIZE}, or all") from None
    return size


def read_closeness(value: Any) -> Fraction:
    """t, an earth mover's distance above 0 and below 1, exactly. Raises Faults."""
    t = read_exact(value)
    if not 0 < t < 1:
        raise fault(f"{shown(value)} is no distance to keep; write a number above 0 and below 1, e.g. 0.35")
    return t


PartitionSize = Annotated[int | str, BeforeValidator(read_partition_size)]
Closeness = Annotated[Fraction, BeforeValidator(read_closeness)]
Many = Annotated[int, whole(at_least=2)]
AtLeastOne = Annotated[int, whole(at_least=1)]
