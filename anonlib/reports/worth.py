"""What the release alone tells of its worth and its risks: values before and after, sizes, ranges, the price of the bound. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from anonlib.evaluation.risks import HIGH, RiskMeasures
from anonlib.exact import text
from anonlib.release.manifest import GuaranteePart
from anonlib.reports import bins, charts
from anonlib.reports.facts import Facts, Shown
from anonlib.reports.markup import Markup, figure, joined, legible, paragraph, table
from anonlib.reports.numbers import measure, percent, readable
from anonlib.reports.promise import kind_of, sensitive_names
from anonlib.solvers.trade_offs.trade_off import SHARES, STOPS, Point, TradeOff

BARS = 12
AFTER = {
    "bucketized": "listed in the release",
    "classes": "in the published rows",
    "matched": "in the published rows",
    "perturbed": "in the published rows, perturbed",
}
UNREAD = "This was not measured: the release shows no record, or its tables cannot be read."
SAME = "Here both are the same."
WHY_DIFFERENT = {
    "bucketized": "They differ because values that belong to nobody were added to the lists.",
    "classes": "They differ because records were left out.",
    "matched": "They differ because records were left out, or some were added that belong to nobody.",
    "perturbed": "The published values were perturbed, so they are spread more evenly. Counts that are estimated from the release, as "
    "anonlib query does, allow for that.",
}
HIDDEN_IN = {
    "buckets": "The more records share a bucket, the less its list of values tells about one of them, and the rougher are counts.",
    "classes": "The more records share a class, the better each is hidden, and the wider are the ranges.",
    "sub-tables": "Values were perturbed within sub-tables: the fewer different values one has, the more records keep theirs.",
}
_SAME_VALUES = "Records that look alike have the same published values in all columns that others may know."
ALIKE = {
    "bucketized": _SAME_VALUES,
    "perturbed": _SAME_VALUES,
    "classes": "Records that look alike are those of one class.",
    "matched": "Records that look alike are those whose ranges fit one person, counted for a sample of the persons of the original.",
}
"""What looks alike, for each kind of release."""
FROM_COUNTS = "The figures follow from how often each value occurs; the tables of the release were not needed."
MEANS = {
    "msbs": "The larger buckets are, the rougher are counts. The curve's were chosen quickly; the release's own may differ a little.",
    "count_error": "By about so many records an estimated count of one value is off.",
    "matches": "So many rows may be the one of a person, on average.",
    "class_size": "The larger classes are, the wider are their ranges.",
}
"""What a cost means, in words: {key of the measure: sentence}."""
ONE = {"buckets": "bucket", "classes": "class", "sub-tables": "sub-table"}


def before_and_after(facts: Facts) -> Markup:
    """The sensitive values in the table and in what is published, column by column where each stands in rows by itself."""
    guarantee = facts.manifest.guarantee
    if facts.manifest.layout != "generalized" or not guarantee.also:
        return _before_and_after(facts, sensitive_names(facts.manifest), shares(guarantee, facts.shown))
    shown = {guarantee.sensitive: facts.shown, **facts.further}
    parts = [(part, shown.get(part.sensitive, ())) for part in (guarantee, *guarantee.also)]
    return joined([_before_and_after(facts, legible(part.sensitive), shares(part, own)) for part, own in parts])


def _before_and_after(facts: Facts, name: str, values: Sequence[tuple[str | None, float, float]]) -> Markup:
    """Of one column, or of combinations. name : of it, for a reader; values : as of `shares`"""
    if not values:
        return paragraph(UNREAD)
    kind = kind_of(facts.manifest)
    rows = [(legible(value), percent(before), percent(after)) for value, before, after in values]
    says = "; ".join(f"{value}: {before} in the table, {after} published" for value, before, after in rows[:5])
    if facts.manifest.stream is not None:
        return _shown_so_far(name, rows)
    why = SAME if all(abs(before - after) < 1e-9 for _, before, after in values) else _why_different(facts)
    return figure(
        charts.shares_before_and_after(values, AFTER[kind], says),
        f"How often each value of {name} occurs in the whole table, and in the release. {why}",
        table(f"Shares of {name}", ("value", "in the table", AFTER[kind]), rows),
    )


def _shown_so_far(name: str, rows: Sequence[tuple[str, str, str]]) -> Markup:
    """Of a stream: nobody knows all of its records yet, so there is no table to compare with."""
    return joined(
        [
            paragraph(
                f"A stream has no whole table that the values of {name} could be held against: each class is held against its window."
            ),
            table(
                f"Shares of {name} among the records shown so far", ("value", "by the manifests", "in the rows"), rows
            ),
        ]
    )


def _why_different(facts: Facts) -> str:
    return WHY_DIFFERENT[kind_of(facts.manifest)]


def shares(part: GuaranteePart, shown: Shown) -> list[tuple[str | None, float, float]]:
    """(value, share of the table, share of the published rows) of the most frequent values, and of all others together."""
    before = {value.value: value.count for value in part.values}
    after = dict(shown)
    n, published = max(1, sum(before.values())), max(1, sum(after.values()))
    if not after:
        return []
    order = sorted(before, key=lambda value: -before[value])
    kept, rest = (order, []) if len(order) <= BARS + 1 else (order[:BARS], order[BARS:])
    lines: list[tuple[str | None, float, float]] = [
        (value, before[value] / n, after.get(value, 0) / published) for value in kept
    ]
    if rest:
        share = sum(before[value] for value in rest) / n, sum(after.get(value, 0) for value in rest) / published
        lines.append((f"{len(rest):,} other values", *share))
    return lines


def sizes(facts: Facts) -> Markup:
    """How many records share a bucket, class or sub-table, and how wide boxes are."""
    parts = []
    if facts.sizes is not None and facts.sizes.of:
        unit, of = facts.sizes.unit, facts.sizes.of
        number, records = sum(of.values()), sum(size * n for size, n in of.items())
        ranges = bins.size_ranges(facts.sizes)
        rows = [(f"{a:,}" if a == b else f"{a:,} to {b:,}", f"{n:,}") for a, b, n in ranges]
        says = (
            f"{records:,} records are in {number:,} {unit}: the smallest has {min(of):,} records, the largest {max(of):,}, "
            f"{records / number:,.1f} on average."
            if number > 1
            else f"All {records:,} records are in one {ONE[unit]}."
        )
        parts.append(
            figure(
                charts.bars_of_sizes(facts.sizes, says),
                f"{says} {HIDDEN_IN.get(unit, '')}",
                table(f"Records by the size of their {unit}", ("size", "records"), rows),
            )
        )
    if facts.widths:
        widths = [(legible(name), percent(width)) for name, width in facts.widths.items()]
        says = "; ".join(f"{name}: {width}" for name, width in widths[:8])
        parts.append(
            figure(
                charts.shares_of_ranges(facts.widths, says),
                "How wide the published ranges are on average: 0 % is an exact value, at 100 % a row says nothing about that column.",
                table("Average width of the published ranges", ("column", "share of its range"), widths),
            )
        )
    return joined(parts) if parts else paragraph(UNREAD)


def risks(facts: Facts) -> Markup:
    """The measures that other tools give, with what they do and do not say here."""
    kind = kind_of(facts.manifest)
    if facts.risks is None and kind != "matched":
        return paragraph(UNREAD)
    if facts.risks is None:
        return paragraph(
            "Rows of this release belong to no class: each has ranges of its own, which fit several persons. How many rows fit a person "
            "can be told only beside the original table; the promise says how many at least."
        )
    exact = kind in ("bucketized", "perturbed")
    about = (
        "In this release the columns that others may know are published as they are, so many rows can be found by whoever knows a person "
        f"well. That tells the row, and not the person's {sensitive_names(facts.manifest)}: what can be inferred about that is what the "
        "promise bounds. Other tools give these figures; here they say how well the row is hidden, which is not what is promised."
        if exact
        else "How surely somebody finds a person's row who knows the columns that were generalized. What the row tells about "
        f"{sensitive_names(facts.manifest)} is what the promise bounds."
    )
    return joined(
        [
            paragraph(about),
            table("Risks of being found", ("", "figure"), risk_lines(facts.risks)),
            paragraph(
                ALIKE[kind]
                + " The table stands for the whole population: where it is a sample, the journalist's risk is smaller.",
                class_="note",
            ),
        ]
    )


def risk_lines(measures: RiskMeasures) -> Sequence[tuple[str, str]]:
    """The measures in words."""
    return (
        ("records that look like no other (uniques)", percent(measures.uniques)),
        ("the fewest records that look alike (smallest class)", f"{measures.smallest:,}"),
        ("records that look alike, on average (average class)", f"{measures.average:,.1f}"),
        (f"records with a risk above {percent(HIGH)}, that is, fewer than 5 alike", percent(measures.high)),
        (
            "prosecutor risk: who looks knows that the person is in the table; the worst case",
            percent(measures.prosecutor),
        ),
        ("journalist risk: who looks does not know it; the worst case, at most", percent(measures.journalist)),
        ("marketer risk: who looks links everybody; right on average", percent(measures.marketer)),
    )


def price(facts: Facts) -> Markup:
    """What a stricter or a looser bound would cost."""
    trade_off = facts.curve
    if isinstance(trade_off, str):
        return paragraph(trade_off)
    here = _here(trade_off)
    cost = trade_off.measures[trade_off.cost]
    said = [
        f"The further left, the stricter is {trade_off.name} and the more is protected. The chart shows what that costs: {cost}, where "
        f"less is better for whoever uses the data. {MEANS.get(trade_off.cost, '')}",
        f"This release stands at {here}{' and ' + trade_off.at_asked.note if trade_off.at_asked.note else ''}.",
        *_of_other_bounds(trade_off),
        FROM_COUNTS,
    ]
    columns = (trade_off.name, *trade_off.measures.values(), "")
    return figure(
        charts.cost_of_the_bound(trade_off, f"{cost} over {trade_off.name}; this release: {here}"),
        " ".join(said),
        table("What the bound costs", columns, [_cost_line(trade_off, point) for point in trade_off.kept]),
    )


def _of_other_bounds(trade_off: TradeOff) -> Sequence[str]:
    """Where giving more stops paying, and which of the other bounds leave or protect nothing."""
    said = []
    if trade_off.proposed is not None:
        said.append(
            f"At {trade_off.name} = {readable(text(trade_off.proposed))} {STOPS}: there the curve bends. That is a place to start "
            "from; what may be believed of a person is not for a curve to decide."
        )
    noted = [point for point in trade_off.kept if point.note and point.bound != trade_off.asked]
    if noted:
        bounds = ", ".join(charts.short(point.bound) for point in noted)
        said.append(
            f"Other bounds that leave nothing, or protect nothing, of some records are hollow in the chart ({trade_off.name} = {bounds}); "
            "the table says of how many."
        )
    return said


def _cost_line(trade_off: TradeOff, point: Point) -> tuple[str, ...]:
    shown = [
        percent(point.measures[key]) if key in SHARES else measure(point.measures[key]) for key in trade_off.measures
    ]
    marks = (
        "this release" if point.bound == trade_off.asked else "",
        STOPS if point.bound == trade_off.proposed else "",
    )
    return (readable(text(point.bound)), *shown, "; ".join(part for part in (*marks, point.note) if part))


def _here(trade_off: TradeOff) -> str:
    return f"{trade_off.name} = {readable(text(trade_off.asked))}, with {measure(trade_off.at_asked.measures[trade_off.cost])}"
