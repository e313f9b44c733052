"""SABRE: equivalence classes that are t-close, and hold at least k records."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from anonlib.spec.baselines import GENERALIZED, PARTITION_SIZE, Closeness, PartitionSize
from anonlib.spec.method import Method
from anonlib.spec.part import Flag, fault, whole


class Sabre(Method):
    """t-closeness: the sensitive values of every class are spread as in the whole table up to an earth mover's distance of t.

    t              : the distance a class may have from the table, for every sensitive column
    k              : a class has at least k records
    refine         : true (unless `neighbours` is given): split classes on while their true distance allows it and information loss falls
    neighbours     : SABRE as published: fill classes of computed sizes with the nearest records, "approximate" (along the Hilbert
                     curve, SABRE-AK) or "exact" (SABRE-KNN)
    partition_size : records that a task works on in one piece, or "all"
    """

    name: ClassVar[str] = "sabre"
    sensitive_columns: ClassVar[int] = 16
    reserved: ClassVar[tuple[str, ...]] = GENERALIZED
    reads_hierarchy: ClassVar[bool] = True
    publishes_other: ClassVar[bool] = False

    t: Closeness = Field(description="the earth mover's distance a class may have from the table, e.g. t: 0.35")
    k: Annotated[int, whole(at_least=1)] = 1
    refine: Flag | None = None
    neighbours: Literal["approximate", "exact"] | None = None
    partition_size: PartitionSize = PARTITION_SIZE

    @model_validator(mode="after")
    def _one_way(self) -> Sabre:
        if self.refine and self.neighbours is not None:
            raise fault(
                "splitting classes on takes no neighbours; leave neighbours out, or write refine: false for SABRE as published",
                at="neighbours",
            )
        return self

    @property
    def refined(self) -> bool:
        """Whether classes are split on by their true distance."""
        return self.neighbours is None if self.refine is None else self.refine
