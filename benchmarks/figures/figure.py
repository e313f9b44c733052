"""A figure of a paper: how its rows are measured, what the paper claims of them, how it looks. Pure but for what `measure` does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

OCC = "census_occ_100k"
SAL = "census_sal_500k"
COIL = "coil2000"


class Row(NamedTuple):
    """One measured point: `y` of a curve at `x`, in a panel."""

    panel: str
    curve: str
    x: float
    y: float


Rows = Sequence[Row]


@dataclass(frozen=True)
class Scale:
    """Where tables lie, and whether figures are measured at full size."""

    data: Path
    full: bool = False

    def pick(self, small: Any, full: Any) -> Any:
        """The first, or at full size the second."""
        return full if self.full else small

    def path(self, table: str) -> Path:
        """Of a table, be it there or not."""
        return self.data / f"{table}.parquet"


@dataclass(frozen=True)
class Measured:
    """Rows, and in words of what they were measured."""

    settings: str
    rows: tuple[Row, ...]

    @staticmethod
    def of(settings: str, rows: Iterable[Row]) -> Measured:
        """Takes the rows as they come."""
        return Measured(settings, tuple(rows))


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds of measured rows, and the numbers that say so."""

    holds: bool
    measured: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, in a sentence, and a pure check of it."""

    words: str
    check: Callable[[Rows], Finding]


@dataclass(frozen=True)
class Panel:
    """How a panel is drawn. kind : line, bar or points"""

    title: str
    x: str
    y: str
    kind: str = "line"
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    name    : of its files, and for `--only`: "GB-3", "SDR-T1"
    needs   : tables without which it has no data
    budget  : seconds on one core that measuring it should take at the smaller size
    measure : the rows; may raise SystemExit of `benchmarks.missing` where a package lacks
    """

    name: str
    paper: str
    item: str
    panels: Mapping[str, Panel]
    claims: tuple[Claim, ...]
    measure: Callable[[Scale], Measured]
    budget: float
    needs: tuple[str, ...] = ()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the CPU seconds of it: others on the machine count less than in seconds of a clock."""
    started = time.process_time()
    return work(), time.process_time() - started


REPRODUCED, CONTRADICTED, IN_PART, NO_DATA = "reproduced", "contradicted", "in part", "no data"


def findings(figure: Figure, rows: Rows) -> list[Finding]:
    """Of each claim, in order."""
    return [claim.check(rows) for claim in figure.claims]


def verdict(held: Sequence[bool]) -> str:
    """All claims hold: reproduced; none does: contradicted; some do: in part; there are none: no data."""
    if not held:
        return NO_DATA
    return REPRODUCED if all(held) else IN_PART if any(held) else CONTRADICTED
