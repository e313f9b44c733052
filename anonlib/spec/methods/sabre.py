"""SABRE: equivalence classes that are t-close, and hold at least k records."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from anonlib.spec.layouts import LayoutName
from anonlib.spec.leaks import refuse_leak
from anonlib.spec.method import Method
from anonlib.spec.part import Flag, fault, whole
from anonlib.spec.sizes import PARTITION_SIZE, Closeness, PartitionSize

Way = Literal["symmetric", "refined", "published"]


class Sabre(Method):
    """t-closeness: the sensitive values of every class are spread as in the whole table up to an earth mover's distance of t.

    t              : the distance a class may have from the table, for every sensitive column
    k              : a class has at least k records
    refine         : true: split classes on while their true distance allows it and information loss falls; false: SABRE as published
    neighbours     : SABRE as published: fill classes of computed sizes with the nearest records, "approximate" (along the Hilbert
                     curve, SABRE-AK) or "exact" (SABRE-KNN)
    partition_size : records that a task works on in one piece, or "all"

    Without refine and neighbours, what a class holds follows from counts of sensitive values alone, and which records it takes from
    quasi-identifiers alone. With them the two meet in one decision, which an adversary who knows the method can turn around: for
    comparisons, and refused unless `allow_minimality_leak`.
    """

    name: ClassVar[str] = "sabre"
    layout: ClassVar[LayoutName] = "generalized"
    sensitive_columns: ClassVar[int] = 16
    reads_hierarchy: ClassVar[bool] = True

    t: Closeness = Field(description="the earth mover's distance a class may have from the table, e.g. t: 0.35")
    k: Annotated[int, whole(at_least=1)] = 1
    refine: Flag | None = None
    neighbours: Literal["approximate", "exact"] | None = None
    partition_size: PartitionSize = PARTITION_SIZE
    allow_minimality_leak: Flag = False

    @model_validator(mode="after")
    def _one_way(self) -> Sabre:
        if self.refine and self.neighbours is not None:
            raise fault(
                "splitting classes on takes no neighbours; leave neighbours out, or write refine: false for SABRE as published",
                at="neighbours",
            )
        refuse_leak(self.leaking, self.allow_minimality_leak, "refine or neighbours")
        return self

    @property
    def leaking(self) -> str | None:
        """The parameter asked for under which quasi-identifiers and sensitive values meet in one decision."""
        return "neighbours" if self.neighbours is not None else "refine" if self.refine is not None else None

    @property
    def way(self) -> Way:
        """How classes are made: the same of every sub-bucket, split on by their true distance, or as published."""
        if self.neighbours is not None or self.refine is False:
            return "published"
        return "refined" if self.refine else "symmetric"
