"""What every method's parameters share, and what the rest of a spec must know of a method."""

from __future__ import annotations

from typing import ClassVar

from anonlib.spec.part import Part


class Method(Part):
    """The parameters of one method. `name` is its key in the spec.

    sensitive_columns : how many sensitive columns it can protect at once
    reserved          : columns that its tables add; no published column of the input may have such a name
    leaves_evidence   : whether it has something to write at output.evidence
    reads_hierarchy   : whether a hierarchy of the sensitive column means something to it
    publishes_other   : whether its tables have a place where unchanged columns do no harm
    """

    name: ClassVar[str]
    sensitive_columns: ClassVar[int] = 1
    reserved: ClassVar[tuple[str, ...]] = ()
    leaves_evidence: ClassVar[bool] = False
    reads_hierarchy: ClassVar[bool] = False
    publishes_other: ClassVar[bool] = True
