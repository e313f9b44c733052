"""The baselines on the generalized layout: Mondrian, ring generalization, BuReL and full-domain recoding.

They are here to compare with; they are held to what they promise as every method is.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from anonlib.spec.method import Method
from anonlib.spec.part import Flag, NotNegative, fault, read_exact, shown, whole

PARTITION_SIZE = 100_000
"""Records that one task works on in one piece, when nothing else is said."""
GENERALIZED = ("ec_id",)
"""Columns that the generalized layout adds by the same name everywhere."""

_whole = whole(at_least=1)


def read_partition_size(given: Any) -> int | str:
    """A number of records, or "all" for a table in one piece."""
    if given == "all":
        return "all"
    try:
        size: int = _whole.func(given)  # type: ignore[call-arg]
    except ValueError:
        raise fault(f"{shown(given)} is no number of records; write e.g. {PARTITION_SIZE}, or all") from None
    return size


def read_closeness(given: Any) -> Fraction:
    """t: an earth mover's distance above 0 and below 1."""
    t = read_exact(given)
    if not 0 < t < 1:
        raise fault(f"{shown(given)} is no distance to keep; write a number above 0 and below 1, e.g. 0.35")
    return t


PartitionSize = Annotated[int | str, BeforeValidator(read_partition_size)]
Closeness = Annotated[Fraction, BeforeValidator(read_closeness)]
Many = Annotated[int, whole(at_least=2)]
AtLeastOne = Annotated[int, whole(at_least=1)]


class _Generalizing(Method):
    reserved: ClassVar[tuple[str, ...]] = GENERALIZED
    publishes_other: ClassVar[bool] = False


class Mondrian(_Generalizing):
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


PROMISES = ("k", "distinct_l", "frequency_l", "beta", "enhanced_beta", "t")


class RingGeneralization(_Generalizing):
    """Ring generalization (NH): every record matches l records of its ring, with l different sensitive values.

    partitions     : what is dealt to rings: "mondrian" classes that are eligible for l, or the shortest eligible runs "hilbert" order has
    partition_size : records a task works on in one piece, or "all"
    """

    name: ClassVar[str] = "nh"
    leaves_evidence: ClassVar[bool] = True

    l: Many = Field(description="how many records, with different sensitive values, a record matches, e.g. l: 10")  # noqa: E741
    partitions: Literal["mondrian", "hilbert"] = "mondrian"
    partition_size: PartitionSize = PARTITION_SIZE


class BuReL(_Generalizing):
    """BuReL: enhanced beta-likeness, by classes that take their share of every bucket of sensitive values.

    refine         : leave room in the buckets, and cut classes on while they keep the bound; false for the method as published
    partition_size : records a task works on in one piece, or "all"
    """

    name: ClassVar[str] = "burel"

    beta: NotNegative = Field(description="by how much a sensitive value's share may grow, e.g. beta: 3")
    refine: Flag = True
    partition_size: PartitionSize = PARTITION_SIZE


class TIncognito(_Generalizing):
    """Full-domain recoding under t-closeness and k-anonymity: one level per quasi-identifier for the whole table.

    k : a class has at least k records
    """

    name: ClassVar[str] = "t_incognito"
    reads_hierarchy: ClassVar[bool] = True

    t: Closeness = Field(description="the earth mover's distance a class may have from the table, e.g. t: 0.35")
    k: AtLeastOne = 1
