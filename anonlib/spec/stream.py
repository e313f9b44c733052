"""What a stream's release asks beside a table's: its windows, where its state lies, and the domains, which no arriving record may move.

A table's domains are read from the table: all of it is published. A stream shows a record only when its turn comes, so a domain that was
read from what has arrived would tell the ends of records still hidden, and of those that never come out. Here domains are told in advance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from anonlib.spec.part import Fault, Faults, Flag, Part, Text, fault, read_text, shown, whole
from anonlib.spec.paths import OutputPath

FLOOR = 100
"""Records that a window advances by at least: what is shown of two windows tells the values of what came between them."""
MOST = 10_000_000
"""Records of a window: more do not fit into a task, nor the classes of one into their numbers."""
MOST_SHARDS = 1_000
MOST_VALUES = 100_000

_TRIGGER = re.compile(r"[1-9][0-9]{0,5} (second|minute|hour)s?")


def read_trigger(value: Any) -> str:
    """How often a running stream looks for what has arrived, e.g. "30 seconds". Raises Faults."""
    if not isinstance(value, str) or not _TRIGGER.fullmatch(value.strip()):
        raise fault(f"{shown(value)} is no time between two looks at the input; write e.g. 30 seconds, or 5 minutes")
    return value.strip()


class Range(Part):
    """The domain of a numeric column, both ends included, as text of the column's type: 16, 2.50, 2024-01-31."""

    low: Annotated[str, BeforeValidator(lambda value: _end(value))] = Field(description="the smallest value")
    high: Annotated[str, BeforeValidator(lambda value: _end(value))] = Field(description="the largest value")


def _end(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)) or not str(value).strip():
        raise fault(f"{shown(value)} is no end of a domain; write a number or a date, in quotes where it is a float")
    return str(value).strip()


Told = Range | tuple[str | None, ...]
"""The ends of a numeric domain, or the values of a categorical one; None is a missing value."""


def read_domains(value: Any) -> dict[str, Told]:
    """{column: its domain}. Raises Faults."""
    if not isinstance(value, Mapping):
        raise fault(f"{shown(value)} is not a mapping; write e.g. {{age: {{low: 0, high: 120}}, sex: [female, male]}}")
    domains: dict[str, Told] = {}
    faults: list[Fault] = []
    for name, domain in value.items():
        try:
            domains[str(name)] = _domain(domain)
        except Faults as problem:
            faults += [(f"{name}{'.' if at else ''}{at}", sentence) for at, sentence in problem.faults]
    if faults:
        raise Faults(*faults)
    return domains


def _domain(value: Any) -> Told:
    if isinstance(value, Range):
        return value
    if isinstance(value, Mapping):
        if set(value) != {"low", "high"}:
            raise fault(f"its keys are {', '.join(map(str, value)) or 'none'}; write {{low: ..., high: ...}}")
        return Range.model_construct(low=_end(value["low"]), high=_end(value["high"]))
    if not isinstance(value, (list, tuple)) or not value:
        raise fault(f"{shown(value)} is no domain; write {{low: ..., high: ...}}, or the list of all values")
    if len(value) > MOST_VALUES:
        raise fault(f"there are {len(value):,} values; at most {MOST_VALUES:,} can be told apart")
    texts = [None if item is None else read_text(item if isinstance(item, str) else str(item)) for item in value]
    if twice := [text for i, text in enumerate(texts) if text in texts[:i]][:1]:
        raise fault(f"{shown(twice[0])} is written twice; write each value once")
    return tuple(texts)


class Stream(Part):
    """SABRE_W: a window of the newest records that advances as they arrive.

    window, advance : omega and I: a window holds so many records and advances by so many; window is a multiple of advance
    order       : a column that says when a record arrived; None: those of a micro-batch arrive at once, in an order only the key knows
    shard       : a categorical quasi-identifier; each of its values has a window of its own
    checkpoint  : the folder of the stream's state: raw records, as sensitive as the input
    trigger     : how often a running stream looks for what has arrived
    files       : files of the input that a micro-batch takes at most
    domains     : {column: {low, high} or a list of values}; a column under a hierarchy has the hierarchy's leaves
    outside     : what becomes of a record with a value outside the domains: the stream stops, or the record is left out and counted
    """

    window: Annotated[int, whole(at_least=1)] = Field(description="records of a window, e.g. window: 20000")
    advance: Annotated[int, whole(at_least=1)] = Field(description="records a window advances by, e.g. advance: 5000")
    order: Text | None = None
    shard: Text | None = None
    checkpoint: OutputPath = Field(description="the folder of the state, e.g. checkpoint: private/census-stream")
    trigger: Annotated[str, BeforeValidator(read_trigger)] = "30 seconds"
    files: Annotated[int, whole(at_least=1)] | None = None
    domains: Annotated[dict[str, Any], BeforeValidator(read_domains)] = Field(default_factory=dict)
    outside: Literal["error", "drop"] = "error"
    allow_small_advance: Flag = False

    @model_validator(mode="after")
    def _sizes_agree(self) -> Stream:
        faults: list[Fault] = []
        if self.window > MOST:
            faults.append(("window", f"{self.window:,} records do not fit into a task; write at most {MOST:,}"))
        if self.window % self.advance:
            near = max(1, self.window // self.advance) * self.advance
            faults.append(
                ("window", f"{self.window:,} is no multiple of advance: {self.advance:,}; write e.g. window: {near}")
            )
        if self.advance < FLOOR and not self.allow_small_advance:
            faults.append(
                (
                    "advance",
                    f"{self.advance} records are few: what is shown of two windows that differ by so few tells much of their values; write "
                    f"at least {FLOOR}, or allow_small_advance: true where that is no harm",
                )
            )
        if faults:
            raise Faults(*faults)
        return self
