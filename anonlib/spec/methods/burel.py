"""The parameters of BuReL, a baseline."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method
from anonlib.spec.part import Flag, NotNegative
from anonlib.spec.sizes import PARTITION_SIZE, PartitionSize


class BuReL(Method):
    """BuReL: enhanced beta-likeness, by classes that take their share of every bucket of sensitive values.

    refine         : leave room in the buckets, and cut classes on while they keep the bound; false for the method as published
    partition_size : records a task works on in one piece, or "all"
    """

    name: ClassVar[str] = "burel"
    layout: ClassVar[LayoutName] = "generalized"

    beta: NotNegative = Field(description="by how much a sensitive value's share may grow, e.g. beta: 3")
    refine: Flag = True
    partition_size: PartitionSize = PARTITION_SIZE
