"""Charts as SVG that stands in a page: drawn by matplotlib, coloured by the page's own style sheet, light or dark. Pure.

matplotlib's SVG is text: a chart of twenty bars is some ten kilobytes, runs no script and asks for nothing. Colours are drawn as marks
that `_ours` turns into the style sheet's variables; text stays text, in the page's own font. A chart is the same for the same facts.
"""

from __future__ import annotations

import io
import logging
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.errors import AnonlibError
from anonlib.exact import text
from anonlib.reports.bins import size_ranges
from anonlib.reports.facts import Answer, Sizes
from anonlib.reports.markup import Markup, escaped, legible
from anonlib.solvers.trade_offs.trade_off import STOPS, Point, TradeOff

COLOURS = {"ink": "#010203", "faint": "#010204", "first": "#010205", "second": "#010206", "warn": "#010207"}
"""{variable of the style sheet: the mark that stands for it while a chart is drawn}."""
WIDTH = 4.9
"""Inches of a chart, of 72 units of the page each; the page scales it to the room there is."""
LABEL = 26
"""Characters of a value beside a bar."""
WIDE = 30
"""Costs whose largest is more than so many times the least are drawn on a logarithmic scale."""
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["faint"],
    "axes.labelcolor": COLOURS["ink"],
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["faint"],
    "ytick.color": COLOURS["faint"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "legend.frameon": False,
    "axes.unicode_minus": False,
}
_MADE_UP_ID = re.compile(r' id="[A-Za-z0-9]+_\d+"')


def check_installed() -> None:
    """Raises AnonlibError where matplotlib is not there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise AnonlibError("charts need matplotlib: pip install 'anonlib[report]'") from None


def drawn(name: str, says: str, height: float, draw: Callable[[Any], None]) -> Markup:
    """The chart that `draw` puts on a matplotlib axes.

    name : of the chart within its page, letters only; says : what it shows, for whoever cannot see it; height : inches
    """
    check_installed()
    import matplotlib
    from matplotlib.figure import Figure

    file = io.StringIO()
    settings: Any = {**STYLE, "svg.hashsalt": name}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character that matplotlib's own font lacks: the page's fonts have their say
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _ours(file.getvalue(), name, says)


def _ours(svg: str, name: str, says: str) -> Markup:
    """The SVG of matplotlib as an element of a page: without what makes it a file, and in the page's colours and font. What stands between
    tags is text of the table, and is left as matplotlib escaped it."""
    start = svg.index("<svg")
    box = re.search(r'viewBox="([^"]*)"', svg[start:])
    assert box is not None
    inner = svg[svg.index(">", start) + 1 :]
    for dropped in (r"<metadata>.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        inner = re.sub(dropped, "", inner, flags=re.DOTALL)
    inner = re.sub(r"<[^>]+>", lambda tag: _our_tag(tag[0], name), inner)
    inner = re.sub(r">\s+<", ">\n<", inner)
    return Markup(f'<svg viewBox="{box[1]}" role="img" aria-label="{escaped(says)}">{inner.strip()}')


def _our_tag(tag: str, name: str) -> str:
    """One tag: colours by variables, no font, and identities that no other chart of the page has."""
    tag = _MADE_UP_ID.sub("", tag)
    tag = re.sub(r"\s*\n\s*", " ", tag)
    for variable, mark in COLOURS.items():
        tag = tag.replace(mark, f"var(--{variable})")
    tag = re.sub(r"font: (?:[a-z]+ )?([\d.]+px)[^;\"]*", r"font-size: \1", tag)
    tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)
    tag = tag.replace("xlink:href", "href")
    return re.sub(r'( id="|href="#|url\(#)', rf"\1{name}-", tag)


def shares_before_and_after(values: Sequence[tuple[str | None, float, float]], after: str, says: str) -> Markup:
    """Bars of ((value, share of the table, share of the published rows), ...), the first on top."""
    names = [legible(value, LABEL) for value, _, _ in values]
    place = np.arange(len(values))

    def draw(axes: Any) -> None:
        axes.barh(place - 0.2, [100 * b for _, b, _ in values], 0.36, color=COLOURS["first"], label="in the table")
        axes.barh(place + 0.2, [100 * a for _, _, a in values], 0.36, color=COLOURS["second"], label=after)
        axes.set_yticks(place, names)
        axes.invert_yaxis()
        axes.set_xlabel("share of the records (%)")
        axes.figure.legend(loc="outside upper center", ncols=2)

    return drawn("before", says, 1.0 + 0.3 * len(values), draw)


def bars_of_sizes(sizes: Sizes, says: str) -> Markup:
    """How many records are in groups of each size; ranges of sizes where there are many."""
    ranges = size_ranges(sizes)
    names = [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high, _ in ranges]

    def draw(axes: Any) -> None:
        axes.bar(range(len(names)), [records for _, _, records in ranges], 0.8, color=COLOURS["first"])
        every = max(1, -(-len(names) // 12))
        kept = range(0, len(names), every)
        axes.set_xticks(list(kept), [names[i] for i in kept], rotation=30 if any(len(n) > 4 for n in names) else 0)
        axes.set_xlabel(f"records in one of the {sizes.unit}")
        axes.set_ylabel(f"records in {sizes.unit}\nof that size")
        axes.yaxis.set_major_formatter(_thousands)

    return drawn("sizes", says, 2.4, draw)


def shares_of_ranges(widths: Mapping[str, float], says: str) -> Markup:
    """A bar for each quasi-identifier: the share of its range that the box of a record covers on average."""
    names = [legible(name, LABEL) for name in widths]

    def draw(axes: Any) -> None:
        axes.barh(range(len(names)), [100 * width for width in widths.values()], 0.6, color=COLOURS["first"])
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of its range that a published row covers (%)")

    return drawn("widths", says, 0.8 + 0.26 * len(names), draw)


def cost_of_the_bound(trade_off: TradeOff, says: str) -> Markup:
    """Cost over the bound, the strictest first: this release, the knee, and hollow what leaves or protects nothing are marked."""
    points = trade_off.kept
    labels = [short(point.bound) for point in points]
    costs = [point.measures[trade_off.cost] for point in points]
    wide = min(costs) > 0 and max(costs) > WIDE * min(costs)

    def draw(axes: Any) -> None:
        def mark(chosen: Callable[[Point], bool], marker: str, label: str, **look: Any) -> None:
            at = [i for i, point in enumerate(points) if chosen(point)]
            if at:
                axes.plot(at, [costs[i] for i in at], marker, label=label, linestyle="none", **look)

        first, second = COLOURS["first"], COLOURS["second"]
        axes.plot(range(len(costs)), costs, "-", color=first)
        mark(lambda point: not point.note, "o", "", color=first, markersize=3.5)
        mark(lambda point: bool(point.note), "o", "leaves or protects nothing", color=first, mfc="none", markersize=6)
        mark(lambda point: point.bound == trade_off.proposed, "s", STOPS, color=second, mfc="none", markersize=11)
        mark(lambda point: point.bound == trade_off.asked, "D", "this release", color=second, markersize=6, zorder=3)
        axes.set_xticks(range(len(labels)), labels, rotation=30 if max(map(len, labels)) > 4 else 0)
        if wide:
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter("")
        else:
            axes.set_ylim(0, 1.1 * max(costs) or 1)
        axes.set_xlabel(f"{trade_off.name}    (← protects more)")
        axes.set_ylabel(textwrap.fill(trade_off.measures[trade_off.cost], 26) + ("\n(log scale)" if wide else ""))
        axes.yaxis.set_major_formatter(_thousands)
        axes.figure.legend(loc="outside upper center", ncols=2)

    return drawn("curve", says, 2.9, draw)


def short(bound: Fraction) -> str:
    """A bound beside an axis: exact where that is short."""
    exactly = text(bound)
    return exactly if len(exactly) < 7 else f"{float(bound):.3g}"


def estimates_beside_truth(answers: Sequence[Answer], says: str) -> Markup:
    """A point and its interval for each count, over the true one; on the line they agree."""

    def draw(axes: Any) -> None:
        truth = np.array([a.truth for a in answers])
        estimate = np.array([a.estimate for a in answers])
        low = np.array([min(a.low, a.estimate) for a in answers])
        high = np.array([max(a.high, a.estimate) for a in answers])
        most = max(float(truth.max()), float(high.max()), 1.0)
        axes.plot([0, most], [0, most], "--", color=COLOURS["faint"], linewidth=1, label="estimate = truth")
        axes.errorbar(
            truth,
            estimate,
            [estimate - low, high - estimate],
            fmt="o",
            color=COLOURS["first"],
            ecolor=COLOURS["second"],
            markersize=3,
            elinewidth=1,
            label="estimate, with its interval",
        )
        axes.set_xlabel("true count in the original")
        axes.set_ylabel("estimated from the release")
        axes.xaxis.set_major_formatter(_thousands)
        axes.yaxis.set_major_formatter(_thousands)
        axes.set_ylim(bottom=min(0, float(low.min())))
        axes.legend(loc="upper left")

    return drawn("estimates", says, 3.0, draw)


def errors_by_selectivity(bins: Sequence[tuple[str, int, float, float]], says: str) -> Markup:
    """((range of shares, queries, median error, error that nine of ten stay below), ...) from few records to many."""

    def draw(axes: Any) -> None:
        at = range(len(bins))
        axes.plot(at, [100 * b[3] for b in bins], "s--", color=COLOURS["second"], label="9 of 10 queries are within")
        axes.plot(at, [100 * b[2] for b in bins], "o-", color=COLOURS["first"], label="half of the queries are within")
        axes.set_xticks(at, [b[0] for b in bins], rotation=20)
        axes.set_xlabel("share of the records that a query counts")
        axes.set_ylabel("off by (% of the true count)")
        axes.set_ylim(bottom=0)
        axes.legend()

    return drawn("errors", says, 2.6, draw)


def attacks_beside_bounds(attacks: Sequence[tuple[str, float, float, float | None]], says: str) -> Markup:
    """((attack, right before the release, right with it, bound or None), ...), the first on top."""

    def draw(axes: Any) -> None:
        for line, (_, prior, accuracy, bound) in enumerate(attacks):
            axes.plot([100 * prior, 100 * accuracy], [line, line], "-", color=COLOURS["faint"], linewidth=1)
            if bound is not None:
                axes.plot([100 * bound], [line], "|", color=COLOURS["warn"], markersize=13, markeredgewidth=2.5)
        at = range(len(attacks))
        axes.plot(
            [100 * a[1] for a in attacks], at, "o", color=COLOURS["faint"], mfc="none", label="before the release"
        )
        axes.plot([100 * a[2] for a in attacks], at, "o", color=COLOURS["first"], label="with the release")
        axes.plot([], [], "|", color=COLOURS["warn"], markersize=10, markeredgewidth=2.5, label="bound promised")
        axes.set_yticks(list(at), [legible(a[0], LABEL) for a in attacks])
        axes.set_ylim(len(attacks) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel("guesses that are right (%)")
        axes.figure.legend(loc="outside upper center", ncols=3)

    return drawn("attacks", says, 1.1 + 0.26 * len(attacks), draw)


def shown_by_batch(batches: Sequence[tuple[int, int]], says: str) -> Markup:
    """Bars of ((batch, records shown), ...)."""

    def draw(axes: Any) -> None:
        axes.bar([number for number, _ in batches], [shown for _, shown in batches], 0.8, color=COLOURS["first"])
        axes.set_xlabel("batch")
        axes.set_ylabel("records shown")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.set_major_formatter(_thousands)

    return drawn("batches", says, 2.2, draw)


def _thousands(number: float, _: object = None) -> str:
    return f"{number:,.0f}" if abs(number) >= 10 or number == round(number) else f"{number:.3g}"
