"""What every method's parameters share, and what the rest of a spec must know of a method."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Protocol

from anonlib.hierarchy import Hierarchy
from anonlib.spec.layouts import LayoutName
from anonlib.spec.part import Fault, Part


class SensitiveColumn(Protocol):
    """A sensitive column as a spec names it."""

    @property
    def name(self) -> str: ...


class Method(Part):
    """The parameters of one method.

    name              : its key in the spec
    layout            : of the tables it publishes, with the rules that come with it (`anonlib.spec.layouts`)
    sensitive_columns : how many sensitive columns it can protect at once
    leaves_evidence   : whether it has something to write at output.evidence
    reads_hierarchy   : whether a hierarchy of the sensitive column means something to it
    bounds_nodes      : whether it bounds nodes of that hierarchy, which then have to be known before the table is
    """

    name: ClassVar[str]
    layout: ClassVar[LayoutName]
    sensitive_columns: ClassVar[int] = 1
    leaves_evidence: ClassVar[bool] = False
    reads_hierarchy: ClassVar[bool] = False
    bounds_nodes: ClassVar[bool] = False

    @property
    def threshold_of_missing(self) -> Fraction | None:
        """The threshold that a kept null of the sensitive column has of its own, where thresholds are stated value by value."""
        return None

    @property
    def shares_of_ledger(self) -> bool:
        """Whether what is promised follows from the sensitive values of all releases of the ledger."""
        return False

    def hierarchy_faults(self, hierarchy: Hierarchy | None) -> list[Fault]:
        """What of the parameters does not go with the hierarchy of the sensitive column, or with none: (key, sentence)."""
        return []

    def columns_faults(self, sensitive: Sequence[SensitiveColumn], ledger: bool) -> list[Fault]:
        """What of the parameters does not go with these sensitive columns, or with a ledger of releases of them: (key, sentence)."""
        return []
