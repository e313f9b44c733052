"""What every recipe is given and what it gives back; the workflow audits and publishes the rest of the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from anonlib.engine.microdata import Microdata
from anonlib.engine.relational import DataFrame
from anonlib.release.manifest import GuaranteePart, QuasiIdentifierPart, RowsPart, SolverPart
from anonlib.solvers.trade_offs.trade_off import TradeOff
from anonlib.spec.layouts import LayoutName
from anonlib.spec.method import Method


class ByColumns(Protocol):
    """A table to be made column by column (`anonlib.engine.columnar`)."""

    def written(self, folder: str, doing: str, /) -> bool:
        """Write it into the new `folder`, a local path; False, with nothing done, where it cannot be made so."""


class Stage(Protocol):
    """Writes a table where nobody sees it."""

    def __call__(self, name: str, frame: DataFrame, by_columns: ByColumns | None = None, /) -> DataFrame:
        """`frame`, written to the staging area as the table `name`, and read back; as `by_columns`, the same table, where it can be."""


Say = Callable[[str], None]
"""One sentence of progress."""


@dataclass(frozen=True)
class Run:
    """One run of a recipe.

    key   : 32 bytes that every draw of the run is a function of
    stage : writes a table where nobody sees it; say : tells the user how far the run is
    """

    key: bytes = field(repr=False)
    stage: Stage
    say: Say


@dataclass(frozen=True)
class Draft:
    """A publication that nobody has seen yet.

    tables     : {name: DataFrame}, staged; roles : {table: {column: role}}
    records    : the table that has one row per published record (and per dummy)
    partitions : how many partitions the input had, for the manifest's splits
    evidence   : {name: DataFrame} for the audit alone, staged outside the release; as sensitive as the original
    quasi_identifiers : of a generalized layout, see `anonlib.release.generalized.parts`
    """

    layout: LayoutName
    tables: dict[str, DataFrame]
    roles: dict[str, dict[str, str]]
    guarantee: GuaranteePart
    rows: RowsPart
    solver: SolverPart
    utility: dict[str, float]
    partitions: int
    records: str
    evidence: dict[str, DataFrame] = field(default_factory=dict)
    quasi_identifiers: tuple[QuasiIdentifierPart, ...] = ()


@dataclass(frozen=True)
class Grid:
    """A small table to read: `rows` hold as many texts as there are `columns`; `more` says what was left out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: str = ""


@dataclass(frozen=True)
class Explanation:
    """What a run would choose, and why it may.

    words  : the promise; summary : the choice in a sentence; grids : the choice in tables
    facts  : the same as plain values, for JSON
    choice : the solver's own answer, for notebooks
    trade_off : the method's bound against what it costs, around the bound that is asked; None where there is none
    """

    words: str
    summary: str
    grids: tuple[Grid, ...]
    facts: Mapping[str, Any]
    choice: Any = None
    trade_off: TradeOff | None = None


Parameters = TypeVar("Parameters", bound=Method, contravariant=True)


class Recipe(Protocol[Parameters]):
    """A published method. `parameters` : its part of the spec, checked."""

    def publish(self, table: Microdata, parameters: Parameters, run: Run, /) -> Draft:
        """Stage what the method publishes of `table`; nothing is visible yet. Raises SpecError and Unsatisfiable."""

    def explain(self, table: Microdata, parameters: Parameters, say: Say, /) -> Explanation:
        """What `publish` would choose: statistics and the driver's half alone, nothing is written. Raises as it does."""


@dataclass(frozen=True)
class TwoFunctions(Generic[Parameters]):
    """A recipe given as two functions, one that publishes and one that explains."""

    publish: Callable[[Microdata, Parameters, Run], Draft]
    explain: Callable[[Microdata, Parameters, Say], Explanation]
