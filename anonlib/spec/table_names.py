"""Names of a release's tables in a catalog: one prefix in the spec, to which each table of the release adds its own name.

`main.census.survey` stands for `main.census.survey_qit` and `main.census.survey_st`: readers see by the name which table it is, and what
a spec may name does not depend on how many tables a method publishes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from anonlib.errors import SpecError
from anonlib.spec.ledger import DATE
from anonlib.spec.part import Faults, fault, read_text, shown

LONGEST = 100
"""Characters of each part: metastores take 128, and a table's own name is added."""
_SPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_TABLE = re.compile(r"(?:\w|\{date\})+", re.ASCII)


def read_table_name(value: Any) -> str:
    """table, schema.table or catalog.schema.table, without quotes. Raises Faults for what no catalog takes as it was meant."""
    name = read_text(value)
    *spaces, table = name.split(".")
    if len(spaces) > 2 or not all(map(_SPACE.fullmatch, spaces)) or not _TABLE.fullmatch(table):
        raise fault(
            f"{shown(name)} is no table's name; write catalog.schema.name, schema.name or name, of letters, digits and _ "
            "(in catalog and schema also -)"
        )
    if max(map(len, (*spaces, table))) > LONGEST:
        raise fault(f"a name in it has more than {LONGEST} characters; shorten it")
    return name


def plain_table_name(value: Any, name: str) -> str:
    """The same of a name that comes as an argument, `name`, of no day. Raises SpecError."""
    try:
        table = read_table_name(value)
    except Faults as problem:
        raise SpecError(f"{name}: {problem}") from None
    if DATE in table:
        raise SpecError(
            f"{name}: {DATE} is for a spec, which runs on many days; write the name of this release's tables"
        )
    return table


TableName = Annotated[str, BeforeValidator(read_table_name)]
