"""What the published tables of a perturbed release hold, as far as its judge asks. Pure: numbers and small arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anonlib.audit.form import Described
from anonlib.audit.verdict import Measured


@dataclass(frozen=True)
class Entry:
    """One value of a sub-table's domain, as text, with its true count."""

    subtable: int | None
    value: str | None
    count: int | None


@dataclass(frozen=True)
class OperatorFacts:
    """The table of operators: one row as a dictionary per sub-table, the entries of all domains, and what does not fit a domain.

    uneven : sub-tables whose `domain` and `counts` differ in length or are null
    """

    measured: Measured
    lines: tuple[Mapping[str, object], ...]
    entries: tuple[Entry, ...]
    uneven: int


@dataclass(frozen=True)
class MicrodataFacts:
    """One scan of `microdata`.

    observed  : (E,) how many records were published with each entry of the operators, in their order
    strangers : records whose value is not in the domain of their sub-table, or that have no such sub-table; `stranger` is one of them
    """

    measured: Measured
    observed: tuple[int, ...]
    strangers: int
    stranger: str | None
    ranges: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class PerturbedFacts:
    """Both tables. `operators` and `records` are None when they could not be scanned; `too_large` says why, where it was their size.

    numbering : the columns of `microdata` that count its rows, in words
    """

    columns: Described
    operators: OperatorFacts | None = None
    records: MicrodataFacts | None = None
    too_large: str | None = None
    numbering: tuple[str, ...] = ()
