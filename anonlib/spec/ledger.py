"""The ledger of a schedule: who has been published, where it lies, and what becomes of who is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from anonlib.errors import SpecError
from anonlib.spec.keys import read_key_reference
from anonlib.spec.part import Fault, Faults, Flag, Part, did_you_mean, fault, listed, shown
from anonlib.spec.paths import OutputPath
from anonlib.spec.places import nested, overlap

if TYPE_CHECKING:
    from anonlib.spec.release import ReleaseSpec

DATE = "{date}"
"""In `output.path`: the day of the run, in UTC, as 2026-11-29. In `output.table` 2026_11_29: a hyphen is no part of a table's name."""


def _reference(value: Any) -> str:
    try:
        return read_key_reference(value)
    except Faults:
        raise fault("write where the ledger's key lies, env:NAME or file:PATH, and never the key itself") from None


def read_reference(value: str, name: str) -> str:
    """Where a ledger's key lies, as it was written at `name`. Raises SpecError, which never repeats what was written."""
    try:
        return _reference(value)
    except Faults as problem:
        raise SpecError(f"{name}: {problem}") from None


class Ledger(Part):
    """Where it is kept who has been published.

    path  : a folder outside the release, started once by `anonlib ledger PATH --new`
    key   : "env:NAME" or "file:PATH", of this ledger alone: persons stand in it as keyed hashes. Whatever is written here by mistake may be
            the key, so no message about this part repeats it
    known : what happens to persons who are in it: left out and counted ("skip"), or the table is refused ("error")
    wait  : leave new persons for next time, and end well, where they are too few to publish
    """

    path: OutputPath = Field(description="the folder of the ledger, e.g. path: private/ledger")
    key: Annotated[str, BeforeValidator(_reference)] = Field(
        description="where the ledger's own key lies, e.g. key: env:ANONLIB_LEDGER_KEY"
    )
    known: Literal["skip", "error"] = "skip"
    wait: Flag = False
    allow_open_key_file: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise fault("this is not a mapping; write e.g. ledger: {path: private/ledger, key: env:ANONLIB_LEDGER_KEY}")
        unknown = [key for key in value if key not in cls.model_fields]
        if unknown:
            near = did_you_mean(unknown[0], cls.model_fields)
            raise fault(
                f"{len(unknown)} of the keys here do not exist{near}, and are not repeated, since they may be secret; the keys here are "
                f"{listed(cls.keys())}"
            )
        lacking = [name for name in ("path", "key") if name not in value]
        if lacking:
            raise fault(
                f"{lacking[0]} is missing; write e.g. ledger: {{path: private/ledger, key: env:ANONLIB_LEDGER_KEY}}"
            )
        return dict(value)


def ledger_faults(spec: ReleaseSpec) -> Iterator[Fault]:
    """What is wrong with the ledger beside the rest of the spec."""
    ledger = spec.ledger
    if ledger is None:
        if spec.method.shares_of_ledger:
            yield (
                f"method.{spec.method.name}.privacy.shares",
                "there is no ledger to take shares of; add one, or leave this out",
            )
        return
    if not spec.columns.person:
        yield "ledger", "nothing says whose a row is; name the column under columns.person"
    if spec.random.key is not None and spec.random.key == ledger.key:
        yield "ledger.key", "this is the release key too; make a key of its own"
    places = (
        [] if spec.output is None else [("output.path", spec.output.path), ("output.evidence", spec.output.evidence)]
    )
    for name, place in places:
        if place is not None and nested(ledger.path, place):
            yield "ledger.path", f"{shown(ledger.path)} and {name} {shown(place)} overlap; keep the ledger outside"
    source = None if spec.input is None else spec.input.path
    if source is not None and overlap(source, ledger.path):
        yield (
            "ledger.path",
            f"{shown(ledger.path)} overlaps with the input at {shown(source)}; keep the ledger elsewhere",
        )
