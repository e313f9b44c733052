"""Whose records they are: what becomes of a person with several rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from anonlib.spec.part import Fault, Part, Text, fault

if TYPE_CHECKING:
    from anonlib.spec.release import Columns

Repeated = Literal["error", "first", "latest", "random"]
ORDERED = ("first", "latest")


class Persons(Part):
    """What happens to a person with several rows; `columns.person` says whose a row is.

    repeated : "error" refuses the table and says how many there are; "first" and "latest" keep the row that comes first or last by the
               column `order` (a row without a value there only where the person has no other); "random" keeps one drawn by the key.
               Rows that `order` does not tell apart are drawn among by the key: nothing depends on the order of rows
    """

    repeated: Repeated = "error"
    order: Text | None = None

    @model_validator(mode="after")
    def _order_where_it_is_used(self) -> Persons:
        if self.repeated in ORDERED and self.order is None:
            raise fault(
                f"{self.repeated} by which column? rows have no order of their own; add e.g. order: admitted",
                at="order",
            )
        if self.repeated not in ORDERED and self.order is not None:
            raise fault(
                f"{self.repeated} makes no use of an order; leave this out, or write repeated: latest", at="order"
            )
        return self


def person_faults(columns: Columns, persons: Persons, given: bool) -> Iterator[Fault]:
    """What is wrong with `persons` beside the columns. given : somebody wrote `persons` in the spec."""
    if given and not columns.person:
        yield "persons", "nothing says whose a row is; name the column under columns.person, or leave this out"
    if persons.order is None:
        return
    roles = {name.lower(): role for role, name in columns.roles()}
    role = roles.get(persons.order.lower())
    if role is None and not columns.withholds_rest:
        yield (
            "persons.order",
            f"{persons.order!r} is named nowhere under columns; name it there, under identifiers if it must not be published",
        )
    elif role == "sensitive":
        yield (
            "persons.order",
            f"{persons.order!r} is sensitive: which of a person's rows is published would tell of its value; order by another column",
        )
    elif role == "person":
        yield "persons.order", f"{persons.order!r} is the same in all rows of a person; order by another column"
