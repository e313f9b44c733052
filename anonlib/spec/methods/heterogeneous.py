"""The parameters of heterogeneous generalization."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from anonlib.exact import text
from anonlib.hierarchy import Hierarchy
from anonlib.spec.layouts import LayoutName
from anonlib.spec.leaks import refuse_leak
from anonlib.spec.method import Method, SensitiveColumn
from anonlib.spec.own_thresholds import read_thresholds, unknown_names
from anonlib.spec.part import Fault, Flag, NotNegative, fault
from anonlib.spec.sizes import Many, PartitionSize

PARTITION_SIZE = 1_000
"""Records that are matched among each other, at least. Matching takes time with the square of them."""


class Heterogeneous(Method):
    """Heterogeneous generalization: every record gets a box of its own, that of its matches.

    l              : l matches with l different sensitive values; of two sensitive columns, with l different values of each
    beta           : among the matches no sensitive value has more than (1 + beta) times its share of the table
    thresholds     : {node of the sensitive column's hierarchy, or value: the share that it may have among the matches}, beside l or beta
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

    Two sensitive columns go with l, matching and partition_size alone.
    """

    name: ClassVar[str] = "heterogeneous"
    layout: ClassVar[LayoutName] = "generalized"
    sensitive_columns: ClassVar[int] = 2
    leaves_evidence: ClassVar[bool] = True
    reads_hierarchy: ClassVar[bool] = True
    bounds_nodes: ClassVar[bool] = True

    l: Many | None = None  # noqa: E741  (the field's name)
    beta: NotNegative | None = None
    thresholds: Annotated[dict[str, Fraction], BeforeValidator(read_thresholds)] = Field(default_factory=dict)
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
        self._check_thresholds()
        refuse_leak(next(iter(self.leaking), None), self.allow_minimality_leak, "far_apart or refine")
        return self

    def _check_thresholds(self) -> None:
        """Where more is promised than l or beta says, nobody is made up, left out, or kept apart by what he is."""
        other = next(iter(self.leaking), "remainder" if self.remainder else None)
        if self.thresholds and other:
            raise fault(
                f"{other} knows no thresholds of nodes or values; leave one of the two out",
                at="thresholds",
            )

    def columns_faults(self, sensitive: Sequence[SensitiveColumn], ledger: bool) -> list[Fault]:
        """Of two sensitive columns l is promised, and whatever bounds single values or fills the paper's buckets is left out."""
        if len(sensitive) == 1:
            return []
        unsaid = "with two sensitive columns"
        refused: list[tuple[bool, str, str]] = [
            (self.beta is not None, "beta", "the promise is l-diversity of each; write l, or keep one column"),
            (
                bool(self.thresholds),
                "thresholds",
                "every value of either has the bound of l; leave them out, or keep one column",
            ),
            (self.far_apart, "far_apart", "no bucket is filled up; leave it out, or keep one column"),
            (
                self.remainder is not None,
                "remainder",
                "nobody is made up or left out; leave it out, or keep one column",
            ),
            (self.refine, "refine", "partitions are not cut on; leave it out, or keep one column"),
            (ledger, "l", "releases of a ledger are not made; leave the ledger out, or keep one column"),
        ]
        return [(key, f"{unsaid}, {why}") for wrong, key, why in refused if wrong]

    def hierarchy_faults(self, hierarchy: Hierarchy | None) -> list[Fault]:
        """What is named must stand in the hierarchy, and a value's own threshold must be stricter than l."""
        if hierarchy is None:
            return self._looser(list(self.thresholds))
        leaves = [name for name in self.thresholds if name in hierarchy.labels[: hierarchy.leaves]]
        return unknown_names(self.thresholds, hierarchy, "thresholds") + self._looser(leaves)

    def _looser(self, values: list[str]) -> list[Fault]:
        if self.l is None:
            return []
        return [
            (
                f"thresholds.{value}",
                f"l: {self.l} keeps every value to 1/{self.l} of the matches, so {text(self.thresholds[value])} would change nothing; "
                "leave it out, or write a lower one",
            )
            for value in values
            if self.thresholds[value] >= Fraction(1, self.l)
        ]

    def to_public_dict(self) -> dict[str, Any]:
        """As of every part; where nothing has a threshold of its own, nothing is said of them."""
        return {key: value for key, value in super().to_public_dict().items() if key != "thresholds" or value}

    @property
    def leaking(self) -> tuple[str, ...]:
        """The parameters asked for under which quasi-identifiers and sensitive values meet in one decision."""
        return tuple(name for name in ("far_apart", "refine") if getattr(self, name))
