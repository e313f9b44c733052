"""How an explanation shows a trade-off: a table, a sentence, and plain values."""

from __future__ import annotations

from typing import Any

from anonlib.exact import legible
from anonlib.methods.recipe import Grid
from anonlib.solvers.trade_offs.trade_off import SHARES, STOPS, Point, TradeOff


def grids(trade_off: TradeOff | None) -> tuple[Grid, ...]:
    """The trade-off as a table of one line a bound, strictest first; () for none."""
    if trade_off is None:
        return ()
    columns = (trade_off.name, *trade_off.measures.values(), "")
    more = "" if trade_off.sample is None else f"on a sample of {trade_off.sample:,} records; more records lose less"
    return (Grid(columns, tuple(_row(trade_off, point) for point in trade_off.points), more),)


def _row(trade_off: TradeOff, point: Point) -> tuple[str, ...]:
    shown = [_shown(key, point.measures[key]) if key in point.measures else "-" for key in trade_off.measures]
    marks = ("asked" if point.bound == trade_off.asked else "", STOPS if point.bound == trade_off.proposed else "")
    return (legible(point.bound), *shown, "; ".join(part for part in (*marks, point.note) if part))


def _shown(key: str, value: float) -> str:
    if key in SHARES:
        return f"{value:.2%}"
    return f"{value:,.1f}" if value >= 100 else f"{value:.4g}"


def sentence(trade_off: TradeOff | None, note: str = "") -> str:
    """What follows a summary: what must be known of the choice as asked (`note`), and where giving more stops paying."""
    said = [f"As asked it {note}"] if note else []
    if trade_off is not None and trade_off.kept:
        name, at = trade_off.name, trade_off.proposed
        if not trade_off.worth:
            said.append(
                f"Every {name} that was tried leaves nothing, or protects nothing, of some records (see the table of {name})"
            )
        elif at is not None:
            said.append(f"{name}: {legible(at)} is where giving more stops paying (see the table of {name})")
    return "".join(f". {each}" for each in said)


def facts(trade_off: TradeOff | None) -> dict[str, Any]:
    """{"trade_off": plain values}, for JSON; {} for none."""
    return {} if trade_off is None else {"trade_off": trade_off.to_dict()}
