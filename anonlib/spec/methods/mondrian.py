"""The parameters of Mondrian, a baseline: here to compare with, and held to what it promises as every method is."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method
from anonlib.spec.part import NotNegative, fault
from anonlib.spec.sizes import PARTITION_SIZE, AtLeastOne, Closeness, Many, PartitionSize

PROMISES = ("k", "distinct_l", "frequency_l", "beta", "enhanced_beta", "t")


class Mondrian(Method):
    """Mondrian: equivalence classes by cutting the quasi-identifiers' space in two while both halves keep every promise.

    k             : a class has at least k records
    distinct_l    : at least l different sensitive values
    frequency_l   : no value in more than 1/l of a class
    beta          : q_i <= (1 + beta) p_i; enhanced_beta: q_i <= (1 + min(beta, -ln p_i)) p_i
    t             : earth mover's distance to the whole table (by the sensitive column's type or hierarchy)
    cuts          : "strict" keeps equal values together, "relaxed" cuts at the median record
    partition_size: records a task cuts in one piece, or "all"
    """

    name: ClassVar[str] = "mondrian"
    layout: ClassVar[LayoutName] = "generalized"
    reads_hierarchy: ClassVar[bool] = True

    k: AtLeastOne | None = None
    distinct_l: Many | None = None
    frequency_l: Many | None = None
    beta: NotNegative | None = None
    enhanced_beta: NotNegative | None = None
    t: Closeness | None = None
    cuts: Literal["strict", "relaxed"] = "strict"
    partition_size: PartitionSize = PARTITION_SIZE

    @model_validator(mode="after")
    def _something_promised(self) -> Mondrian:
        if not any(getattr(self, name) is not None for name in PROMISES):
            raise fault("nothing is promised; give one or more of k, distinct_l, frequency_l, beta, enhanced_beta, t")
        if self.beta is not None and self.enhanced_beta is not None:
            raise fault("beta and enhanced_beta are two bounds of one kind; keep one of them", at="enhanced_beta")
        return self
