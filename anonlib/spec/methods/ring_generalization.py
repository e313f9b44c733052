"""The parameters of ring generalization (NH), a baseline."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method
from anonlib.spec.sizes import PARTITION_SIZE, Many, PartitionSize


class RingGeneralization(Method):
    """Ring generalization (NH): every record matches l records of its ring, with l different sensitive values.

    partitions     : what is dealt to rings: "mondrian" classes that are eligible for l, or the shortest eligible runs "hilbert" order has
    partition_size : records a task works on in one piece, or "all"
    """

    name: ClassVar[str] = "nh"
    layout: ClassVar[LayoutName] = "generalized"
    leaves_evidence: ClassVar[bool] = True

    l: Many = Field(description="how many records, with different sensitive values, a record matches, e.g. l: 10")  # noqa: E741
    partitions: Literal["mondrian", "hilbert"] = "mondrian"
    partition_size: PartitionSize = PARTITION_SIZE
