"""Conditions on one numeric column as sets of codes: disjoint pieces of the number line, exact. Pure.

An interval of a generalized release meets `age > 30 AND NOT age IN (40, 50)` by the share of it that lies in such a set. Codes are those of
`anonlib.engine.numeric_codes`; literals become exact rationals on the same scale (12.345 on a decimal(10,2) column is 1234.5).

Only conditions that `anonlib.queries.predicate` has accepted come here. A published interval holds no missing value, so IS NULL is
never true and NOT is a complement.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from anonlib.errors import SpecError

EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
Bound = Fraction | float
"""A rational, or an infinity."""


@dataclass(frozen=True)
class Piece:
    """The numbers from `low` to `high`, the ends included where `low_in`, `high_in` say so; never empty."""

    low: Bound
    low_in: bool
    high: Bound
    high_in: bool


@dataclass(frozen=True)
class NumberSet:
    """A union of disjoint pieces in ascending order."""

    pieces: tuple[Piece, ...]

    @staticmethod
    def all() -> NumberSet:
        """The set of every number."""
        return NumberSet((Piece(-math.inf, False, math.inf, False),))

    @staticmethod
    def compared(operator: str, number: Fraction) -> NumberSet:
        """{x: x operator number}, operator one of = <> < <= > >=."""
        everything = Piece(-math.inf, False, math.inf, False)
        at = Piece(number, True, number, True)
        below, above = replace(everything, high=number), replace(everything, low=number)
        pieces = {
            "=": (at,),
            "<": (below,),
            "<=": (replace(below, high_in=True),),
            ">": (above,),
            ">=": (replace(above, low_in=True),),
            "<>": (below, above),
        }[operator]
        return NumberSet(pieces)

    def complement(self) -> NumberSet:
        """The set of every number that is not in this one. O(pieces)."""
        gaps: list[Piece] = []
        start: Bound = -math.inf
        start_in = False
        for piece in self.pieces:
            _keep(gaps, start, start_in, piece.low, not piece.low_in)
            start, start_in = piece.high, not piece.high_in
        _keep(gaps, start, start_in, math.inf, False)
        return NumberSet(tuple(gaps))

    def intersection(self, other: NumberSet) -> NumberSet:
        """The set of the numbers that are in both. O(pieces of both)."""
        common: list[Piece] = []
        i = j = 0
        while i < len(self.pieces) and j < len(other.pieces):
            a, b = self.pieces[i], other.pieces[j]
            low = max((a.low, not a.low_in), (b.low, not b.low_in))
            high = min((a.high, a.high_in), (b.high, b.high_in))
            _keep(common, low[0], not low[1], *high)
            if (a.high, a.high_in) <= (b.high, b.high_in):
                i += 1
            else:
                j += 1
        return NumberSet(tuple(common))

    def union(self, other: NumberSet) -> NumberSet:
        """The set of the numbers that are in either. O(pieces of both)."""
        return self.complement().intersection(other.complement()).complement()

    def whole(self) -> list[tuple[int | None, int | None]]:
        """Its whole numbers as disjoint runs (first, last), ascending; None where a run has no end."""
        runs: list[tuple[int | None, int | None]] = []
        for piece in self.pieces:
            first = None if isinstance(piece.low, float) else math.ceil(piece.low)
            last = None if isinstance(piece.high, float) else math.floor(piece.high)
            if first is not None and not piece.low_in and first == piece.low:
                first += 1
            if last is not None and not piece.high_in and last == piece.high:
                last -= 1
            if first is None or last is None or first <= last:
                runs.append((first, last))
        return runs


def _keep(pieces: list[Piece], low: Bound, low_in: bool, high: Bound, high_in: bool) -> None:
    """Append the piece to `pieces` unless it is empty."""
    if low < high or (low == high and low_in and high_in):
        pieces.append(Piece(low, low_in, high, high_in))


def number_set(node: Any, spark_type: str, time_zone: str) -> NumberSet:
    """The codes of a column of `spark_type` that meet the condition `node` (sqlglot's tree).

    time_zone : of the session, which decides what instant a timestamp literal is
    """
    code = code_of_literal(spark_type, time_zone)
    if isinstance(node, exp.Paren):
        return number_set(node.this, spark_type, time_zone)
    if isinstance(node, (exp.And, exp.Or)):
        return _chain(node, spark_type, time_zone)
    if isinstance(node, exp.Not):
        inner: NumberSet = number_set(node.this, spark_type, time_zone)
        return inner.complement()
    if isinstance(node, exp.Boolean):
        return NumberSet.all() if node.this else NumberSet(())
    if isinstance(node, exp.Is):
        return NumberSet(())
    if isinstance(node, exp.Between):
        low, high = code(node.args["low"]), code(node.args["high"])
        return NumberSet.compared(">=", low).intersection(NumberSet.compared("<=", high))
    if isinstance(node, exp.In):
        numbers = sorted({code(item) for item in node.expressions})
        return NumberSet(tuple(Piece(number, True, number, True) for number in numbers))
    operators = {
        exp.EQ: "=",
        exp.NullSafeEQ: "=",
        exp.NEQ: "<>",
        exp.LT: "<",
        exp.LTE: "<=",
        exp.GT: ">",
        exp.GTE: ">=",
    }
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    operator, left, right = operators[type(node)], node.this, node.expression
    if not isinstance(left, exp.Column):
        right, operator = left, turned.get(operator, operator)
    return NumberSet.compared(operator, code(right))


def _chain(node: Any, spark_type: str, time_zone: str) -> NumberSet:
    """A chain of ANDs, or of ORs, without recursion along it."""
    kind: Any = exp.And if isinstance(node, exp.And) else exp.Or
    parts: list[NumberSet] = []
    waiting = [node]
    while waiting:
        top = waiting.pop()
        if isinstance(top, kind):
            waiting += [top.expression, top.this]
        else:
            parts.append(number_set(top, spark_type, time_zone))
    join: Callable[[NumberSet, NumberSet], NumberSet] = NumberSet.intersection if kind is exp.And else NumberSet.union
    while len(parts) > 1:  # pairwise, so that many short sets do not make one long one over and over
        parts = [join(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    (joined,) = parts
    return joined


def code_of_literal(spark_type: str, time_zone: str) -> Callable[[Any], Fraction]:
    """literal node -> its exact place on the scale of the column's codes."""

    def code(node: Any) -> Fraction:
        sign = 1
        if isinstance(node, exp.Neg):
            sign, node = -1, node.this
        if isinstance(node, exp.Cast):
            node = node.this
        text = str(node.this)
        if spark_type == "date":
            return Fraction((datetime.date.fromisoformat(text) - EPOCH.date()).days)
        if spark_type.startswith("timestamp"):
            return Fraction(_microseconds(datetime.datetime.fromisoformat(text), spark_type, time_zone))
        if spark_type in ("float", "double"):
            return sign * Fraction(float(text))
        decimal = re.fullmatch(r"decimal\(\d+,(\d+)\)", spark_type)
        return sign * Fraction(text) * Fraction(10) ** (int(decimal[1]) if decimal else 0)

    return code


def _microseconds(moment: datetime.datetime, spark_type: str, time_zone: str) -> int:
    """Microseconds from 1970 to the moment; `timestamp` in UTC, `timestamp_ntz` as it is written."""
    if spark_type == "timestamp":
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=_zone(time_zone))
        moment = moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    elif moment.tzinfo is not None:
        moment = moment.replace(tzinfo=None)
    return (moment - EPOCH) // MICROSECOND


def _zone(name: str) -> datetime.tzinfo:
    """A session's time zone: a region, or an offset as Spark writes it ("+02:00", "GMT+2", "Z"). Raises SpecError for another name."""
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?", name)
    if offset:
        ahead = datetime.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return datetime.timezone(ahead if offset[1] == "+" else -ahead)
    try:
        return ZoneInfo("UTC" if name == "Z" else name)
    except (ValueError, ZoneInfoNotFoundError):
        raise SpecError(
            f"the session's time zone {name!r} is none that Python knows; write the literal with its offset, e.g. "
            "'2020-01-31 10:00:00+01:00', or set spark.sql.session.timeZone to a region such as Europe/Berlin"
        ) from None


def shares_sql(numbers: NumberSet, low: str, high: str, whole: bool) -> tuple[str, str, str]:
    """SQL over the codes `low` and `high` of an interval: (the share of it in `numbers`, is all of it in it?, is some of it?).

    whole : count whole codes one by one; else by length, for which the ends of pieces do not matter but for a single point
    """
    if whole:
        return _whole_shares(numbers.whole(), low, high)
    return _length_shares(numbers.pieces, low, high)


def _whole_shares(runs: Sequence[tuple[int | None, int | None]], low: str, high: str) -> tuple[str, str, str]:
    least, most = -(2**63), 2**63 - 1
    overlaps, within, touched = [], [], []
    for first, last in runs:
        if (first is not None and first > most) or (last is not None and last < least):
            continue
        from_, to = _bigint(first, least), _bigint(last, most)
        start, end = f"greatest({low}, {from_})", f"least({high}, {to})"
        overlaps.append(f"IF({start} <= {end}, CAST({end} AS DOUBLE) - CAST({start} AS DOUBLE) + 1, 0D)")
        within.append(f"({low} >= {from_} AND {high} <= {to})")
        touched.append(f"({low} <= {to} AND {high} >= {from_})")
    length = f"(CAST({high} AS DOUBLE) - CAST({low} AS DOUBLE) + 1)"
    return _joined(overlaps, within, touched, lambda total: f"least(1D, ({total}) / {length})")


def _bigint(number: int | None, otherwise: int) -> str:
    """A whole number as SQL, cut off at the ends of the type."""
    value = otherwise if number is None else max(-(2**63), min(2**63 - 1, number))
    return "(-9223372036854775807L - 1L)" if value == -(2**63) else f"({value}L)"


def _length_shares(pieces: Sequence[Piece], low: str, high: str) -> tuple[str, str, str]:
    overlaps, within, touched = [], [], []
    for piece in pieces:
        from_, to = _double(piece.low), _double(piece.high)
        start, end = f"greatest({low}, {from_})", f"least({high}, {to})"
        overlaps.append(f"greatest(0D, {end} - {start})")
        after = f"{low} {'>=' if piece.low_in else '>'} {from_}"
        before = f"{high} {'<=' if piece.high_in else '<'} {to}"
        within.append(f"({after} AND {before})")
        touched.append(
            f"({low} {'<=' if piece.high_in else '<'} {to} AND {high} {'>=' if piece.low_in else '>'} {from_})"
        )
    share, all_, any_ = _joined(overlaps, within, touched, lambda total: f"least(1D, ({total}) / ({high} - {low}))")
    return f"IF({low} = {high}, IF({all_}, 1D, 0D), {share})", all_, any_


def _double(bound: Bound) -> str:
    """A bound as SQL; what it stands for came from a double, or is an infinity."""
    return f"DOUBLE('{float(bound)!r}')" if math.isfinite(bound) else f"DOUBLE('{'-' if bound < 0 else ''}Infinity')"


def _joined(
    overlaps: list[str], within: list[str], touched: list[str], share: Callable[[str], str]
) -> tuple[str, str, str]:
    """The three expressions of `shares_sql` from those of each piece; share : from the sum of the overlaps."""
    if not overlaps:
        return "0D", "FALSE", "FALSE"
    return share(" + ".join(overlaps)), f"({' OR '.join(within)})", f"({' OR '.join(touched)})"
