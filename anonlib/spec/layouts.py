"""What the layout of a release means for the table it is made from; the layouts themselves are in `anonlib.release`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LayoutName = Literal["bucketized", "perturbed", "generalized"]

BUCKET_ID = "bucket_id"
COUNT = "count"
SUBTABLE = "subtable"
EC_ID = "ec_id"
WORKING = "anonlib "
"""How the names of columns begin that a run adds to records while it works on them, and drops again."""


@dataclass(frozen=True)
class LayoutRules:
    """What a layout asks of the input.

    reserved        : columns that its tables add; no published column of the input may have such a name
    publishes_other : whether its tables have a place where unchanged columns do no harm
    """

    reserved: tuple[str, ...]
    publishes_other: bool


RULES: dict[LayoutName, LayoutRules] = {
    "bucketized": LayoutRules((BUCKET_ID, COUNT), publishes_other=True),
    "perturbed": LayoutRules((SUBTABLE,), publishes_other=True),
    "generalized": LayoutRules((EC_ID,), publishes_other=False),
}
