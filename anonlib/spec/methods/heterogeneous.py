"""The parameters of heterogeneous generalization."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from anonlib.spec.layouts import LayoutName
from anonlib.spec.leaks import refuse_leak
from anonlib.spec.method import Method
from anonlib.spec.part import Flag, NotNegative, fault
from anonlib.spec.sizes import Many, PartitionSize

PARTITION_SIZE = 1_000
"""Records that are matched among each other, at least. Matching takes time with the square of them."""


class Heterogeneous(Method):
    """Heterogeneous generalization: every record gets a box of its own, that of its matches.

    l              : l matches with l different sensitive values
    beta           : among the matches no sensitive value has more than (1 + beta) times its share of the table
    matching       : how matches are found: "hungarian" (best), "sort_greedy" or "greedy" (fastest)
    partition_size : records that a task works on in one piece, at least, or "all"
    remainder      : by default nothing is left over: records are matched in pools whose buckets come out even. Under beta "dummy" or
                     "suppress" ask for the paper's buckets instead, filled up with records that belong to nobody, or leaving some out
    far_apart      : fill shared buckets with records that are far apart
    refine         : cut partitions on, as Mondrian does, while both halves can keep the promise: smaller boxes, in less time

    With a remainder the bound does not hold against somebody who knows the matches and how often each value occurs, and the guarantee says
    so. far_apart needs the paper's buckets, and makes records up unless told to suppress.

    far_apart and refine let sensitive values and quasi-identifiers meet in one decision, which an adversary who knows the method can turn
    around (a pool that was not cut had a half that breaks the promise): for comparisons, and refused unless `allow_minimality_leak`.
    """

    name: ClassVar[str] = "heterogeneous"
    layout: ClassVar[LayoutName] = "generalized"
    leaves_evidence: ClassVar[bool] = True

    l: Many | None = None  # noqa: E741  (the field's name)
    beta: NotNegative | None = None
    matching: Literal["hungarian", "sort_greedy", "greedy"] = "hungarian"
    partition_size: PartitionSize = PARTITION_SIZE
    remainder: Literal["dummy", "suppress"] | None = None
    far_apart: Flag = False
    refine: Flag = False
    allow_minimality_leak: Flag = False

    @model_validator(mode="after")
    def _one_promise(self) -> Heterogeneous:
        if (self.l is None) == (self.beta is None):
            raise fault("give one promise, either l (e.g. l: 10) or beta (e.g. beta: 3)")
        if self.far_apart and self.l is None:
            raise fault("only l-diversity has a far_apart mode; leave it out", at="far_apart")
        if self.remainder and self.l is not None and not self.far_apart:
            raise fault(
                "under l buckets always come out even, so nobody is made up and nobody left out; leave it out",
                at="remainder",
            )
        refuse_leak(next(iter(self.leaking), None), self.allow_minimality_leak, "far_apart or refine")
        return self

    @property
    def leaking(self) -> tuple[str, ...]:
        """The parameters asked for under which quasi-identifiers and sensitive values meet in one decision."""
        return tuple(name for name in ("far_apart", "refine") if getattr(self, name))
