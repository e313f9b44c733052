"""What every recipe is given and what it gives back; the workflow audits and publishes the rest of the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anonlib.engine.statistics import SensitiveStatistics
from anonlib.release.manifest import GuaranteePart, RowsPart, SolverPart

Stage = Callable[[str, Any], Any]
"""(table name, DataFrame) -> the same table, written to the staging area and read back."""
Say = Callable[[str], None]
"""One sentence of progress."""


@dataclass(frozen=True)
class Draft:
    """A publication that nobody has seen yet.

    tables : {name: DataFrame}, staged; roles : {table: {column: role}}
    """

    layout: str
    tables: dict[str, Any]
    roles: dict[str, dict[str, str]]
    guarantee: GuaranteePart
    rows: RowsPart
    solver: SolverPart
    utility: dict[str, float]
    statistics: SensitiveStatistics
