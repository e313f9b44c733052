"""What the published table of a generalized release holds, as far as its judge asks. Pure: numbers and small arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from anonlib.audit.form import Described
from anonlib.audit.generalized.promises import WorstCases
from anonlib.audit.verdict import Check, Measured


@dataclass(frozen=True)
class AttributeFacts:
    """One quasi-identifier.

    malformed : rows without an interval (or with its ends exchanged), without a set, with a set that is unsorted or repeats a value
    outside   : rows with an end or a value outside the manifest's domain
    mislabelled : rows whose label is not that of the lowest node above their set
    penalty, loss : sums over rows of NCP and of SABRE's information loss
    unreached : how the union of all boxes falls short of the manifest's domain, or None
    """

    malformed: int
    outside: int
    mislabelled: int
    penalty: float
    loss: float
    unreached: str | None


@dataclass(frozen=True)
class BoxFacts:
    """What a scan of `microdata` shows of rows taken one by one.

    ranges : {whole-number column: (min, max)}; attributes : of each quasi-identifier, in the manifest's order
    null_classes : rows without a class
    fingerprint : of the rows as boxes of codes with sensitive values (`anonlib.audit.generalized.fingerprint`), where it was asked for
    """

    measured: Measured
    ranges: dict[str, tuple[int, int]]
    attributes: tuple[AttributeFacts, ...]
    null_classes: int
    fingerprint: tuple[int, ...] = ()


@dataclass(frozen=True)
class Worst:
    """The largest value found, exact, and the class that has it."""

    value: Fraction
    ec_id: int | None


@dataclass(frozen=True)
class ClassFacts:
    """All classes, seen through one sensitive column.

    sizes    : class size -> number of classes
    shares   : sensitive code -> its largest share of a class
    fewest   : the smallest number of different sensitive values in a class
    distance : the largest earth mover's distance, when asked for
    several  : classes whose records do not share one box; `one_of_them` is such a class
    unknown  : records whose sensitive value the manifest does not list
    """

    sizes: dict[int, int]
    shares: dict[int, Worst]
    fewest: Worst
    distance: Worst | None
    several: int
    one_of_them: int | None
    unknown: int


@dataclass(frozen=True)
class GraphFindings:
    """What the evidence of a release without classes showed while it was at hand: checks of the graph, and what it keeps of the sensitive
    column; of further ones in `also`."""

    checks: tuple[Check, ...]
    worst_cases: WorstCases
    also: tuple[WorstCases, ...] = ()


@dataclass(frozen=True)
class GeneralizedFacts:
    """All of `microdata`; what could not be scanned is None or empty.

    unreadable    : why the manifest's quasi-identifiers cannot be read, or None
    distributions : per sensitive column, {value: how many rows have it}
    classes       : per sensitive column, when the release has classes
    graph         : when it has none, and the evidence is at hand
    numbering     : the columns that count the rows, in words
    """

    columns: Described
    unreadable: str | None = None
    boxes: BoxFacts | None = None
    distributions: tuple[Mapping[str | None, int], ...] = ()
    classes: tuple[ClassFacts, ...] = ()
    graph: GraphFindings | None = None
    numbering: tuple[str, ...] = ()
