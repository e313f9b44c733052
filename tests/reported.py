"""Facts of releases that never were, for the pages that are made of them. Values and names are such as a page must not trip over."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import numpy as np

from anonlib import words
from anonlib.audit.verdict import Check
from anonlib.evaluation.risks import RiskMeasures
from anonlib.release.manifest import (
    AuditPart,
    CheckPart,
    ColumnPart,
    GuaranteePart,
    Manifest,
    MethodPart,
    QuasiIdentifierPart,
    RowsPart,
    SizePart,
    SolverPart,
    SplitsPart,
    StreamPart,
    TablePart,
    ValuePart,
)
from anonlib.reports.facts import Answer, Batch, Beside, Facts, Sizes, Workload
from anonlib.solvers.trade_offs.trade_off import Point, TradeOff

NASTY = "<script>alert('x')</script>"
"""A value that would run if it stood in a page as it is."""
TURNED = 'flu\u202e \x07$x_1$ & "q"'
"""A value that turns text around, rings a bell, and looks like mathematics."""
LONG = "a diagnosis that somebody has typed in by hand and at some length, for want of a code, and that goes on and on and on and on"
VALUES = {"hypertension": 400, "diabetes": 250, LONG: 120, "asthma": 90, NASTY: 70, TURNED: 40, "HIV": 20, None: 10}
COLUMN = "diagnosis <b>"
AGE = "age & more"
NAME = "census <i>"
DAY = "2026-02-03"
KINDS = ("bucketized", "classes", "matched", "perturbed", "stream")

CURVE = TradeOff(
    "theta",
    Fraction(2),
    {"msbs": "mean squared bucket size", "unbounded": "records whose value has no bound"},
    "msbs",
    (
        Point(Fraction(1, 2), {}, "cannot be kept"),
        Point(Fraction(1), {"msbs": 90.0, "unbounded": 0.0}),
        Point(Fraction(3, 2), {"msbs": 9.0, "unbounded": 0.0}),
        Point(Fraction(2), {"msbs": 5.0, "unbounded": 0.0}),
        Point(Fraction(13, 3), {"msbs": 3.5, "unbounded": 0.4}, "protects nothing of 40.00% of the records"),
    ),
)
"""A curve with all that can be marked on one."""


def facts(kind: str, original: bool = False, **changes: Any) -> Facts:
    """What a report tells of a release of this kind; `changes` replace fields."""
    manifest = manifest_of(kind)
    made = Facts(
        name=NAME,
        day=DAY,
        manifest=manifest,
        checks=tuple(Check(c.name, c.passed, c.asked, c.achieved, c.evidence) for c in manifest.audit.checks),
        audited="when this report was made from the release alone",
        shown=tuple(VALUES.items()),
        sizes=None if kind == "matched" else Sizes(UNITS[kind], {5: 100, 6: 50, 20: 10}),
        widths={AGE: 0.21, "region": 0.5} if kind in ("classes", "matched", "stream") else {},
        risks=None if kind == "matched" else RiskMeasures.of({1: 4, 2: 8, 5: 96, 10: 50}),
        curve=CURVE,
        batches=(Batch(0, 400, 600, True), Batch(1, 600, 0, True)) if kind == "stream" else (),
        beside=beside() if original else None,
    )
    return replace(made, **changes)


UNITS = {"bucketized": "buckets", "perturbed": "sub-tables", "classes": "classes", "stream": "classes"}


def beside() -> Beside:
    """What was measured against a table."""
    rng = np.random.default_rng(1)
    actual = np.round(np.exp(rng.uniform(0, 6.5, 400)))
    estimated = actual * rng.normal(1, 0.3, 400)
    answers = tuple(
        Answer(f"{AGE} = {i}, {COLUMN} = {NASTY}", 10.0 * i, 10.0 * i + (-1) ** i * 6, 10.0 * i - 9, 10.0 * i + 14)
        for i in range(1, 25)
    )
    played = {
        "accuracy": 0.31,
        "prior": 0.25,
        "words": "F'-privacy: every value's share of a bucket is at most its own threshold",
    }
    return Beside(
        measures={"msbs": 5.2, "gcp of region": 0.5},
        workload=Workload(actual, estimated, 450, 50, 0.24, 0.2, 1000),
        attacks={
            "homogeneity": {**played, "guarantee": 0.45, "largest": 0.4, "persons": 1000, "above": 0},
            "deFinetti": {**played, "accuracy": 0.4, "words": "none promised to a learner"},
            "insiders": {"words": "played as corruption"},
        },
        answers=answers,
        counted=f"{AGE} and {COLUMN}",
    )


def manifest_of(kind: str) -> Manifest:
    """The manifest of a release of this kind, with words as the methods write them."""
    n = sum(VALUES.values())
    layout: Any = {"bucketized": "bucketized", "perturbed": "perturbed"}.get(kind, "generalized")
    checks = [
        CheckPart(
            name=f"check {i}",
            passed=True,
            asked="what <was> asked",
            achieved="the same",
            evidence="bucket 7" if i == 1 else None,
        )
        for i in range(3)
    ]
    stream = None
    if kind == "stream":
        stream = StreamPart(
            id="0" * 32, batch=None, batches=2, window=500, advance=100, values=list(VALUES), arrived=n + 7, missing=4, outside=3,
            shown=n, late=2,
        )  # fmt: skip
    return Manifest(
        anonlib_version="0.1.0",
        spark_version="4.0.0",
        layout=layout,
        method=MethodPart(name=METHOD[kind][0], parameters=METHOD[kind][1]),
        guarantee=guarantee_of(kind),
        missing={"quasi_identifiers": "keep", "sensitive": "drop"},
        rows=RowsPart(input=n + 5, published=n, dropped=5),
        solver=SolverPart(
            name="two_size",
            status="optimal",
            setting=[SizePart(size=5, number=200)],
            loss=9,
            bound=9,
            gap=0.0,
            seconds=1,
        ),
        utility={"msbs": 5.2},
        audit=AuditPart(mode="gate", passed=True, checks=[] if kind == "stream" else checks),
        tables=TABLES[layout](kind),
        splits=SplitsPart(partitions=2, settings={}),
        quasi_identifiers=[QuasiIdentifierPart(name=AGE, kind="numeric", type="int", low="18", high="90")]
        if layout == "generalized"
        else [],
        stream=stream,
    )


METHOD: dict[str, tuple[str, dict[str, Any]]] = {
    "bucketized": (
        "bucketize",
        {"privacy": {"theta": "2", "offset": "0.05", "thresholds": {NASTY: "0.2"}}, "solver": "two_size"},
    ),
    "classes": ("sabre", {"t": "0.2", "k": 5}),
    "stream": ("sabre", {"t": "0.2", "k": 5}),
    "matched": ("heterogeneous", {"l": 3}),
    "perturbed": ("perturb", {"rho1": "1/13", "rho2": "1/5"}),
}


def guarantee_of(kind: str) -> GuaranteePart:
    """The promise of this kind, in the words of `anonlib.words`."""
    sentence, model, asked, achieved = {
        "bucketized": (
            words.thresholds(COLUMN, (None, Fraction(7, 100)), ("hypertension", Fraction(17, 20))),
            "F'-privacy",
            {},
            {},
        ),
        "classes": (
            words.closeness(COLUMN, "flat", Fraction(1, 5), 5),
            "t-closeness",
            {"t": "0.2", "k": "5"},
            {"t": "13/70", "k": "5"},
        ),
        "stream": (
            words.closeness_in_windows(COLUMN, "flat", Fraction(1, 5), 5, 500),
            "(omega, t)-closeness",
            {"t": "0.2", "k": "5"},
            {"t": "0.19", "k": "5"},
        ),
        "matched": (words.matches(COLUMN, 3, None), "l-diversity by matches", {"l": "3"}, {"l": "3"}),
        "perturbed": (
            words.beliefs(COLUMN, Fraction(1, 13), Fraction(1, 5), 6, []),
            "(rho1, rho2)-privacy",
            {"rho1": "1/13", "rho2": "1/5"},
            {},
        ),
    }[kind]
    bounded = kind in ("bucketized", "perturbed")
    return GuaranteePart(
        model=model,
        words=sentence,
        sensitive=COLUMN,
        sensitive_type="string",
        values=[
            ValuePart(
                value=v,
                count=c,
                threshold=f"{2 * c + 50}/1000" if bounded else None,
                achieved=f"{2 * c + 40}/1000" if bounded else f"{c}/1000",
            )
            for v, c in VALUES.items()
        ],
        asked=asked,
        achieved=achieved,
        distance="flat" if kind in ("classes", "stream") else "",
    )


def _table(rows: int, *columns: tuple[str, str, str]) -> TablePart:
    parts = [ColumnPart(name=name, type=kind, role=role) for name, kind, role in columns]
    return TablePart(path="microdata", format="parquet", rows=rows, checksum="xxh64sum:00ff", columns=parts)


TABLES: dict[str, Any] = {
    "bucketized": lambda kind: {
        "qit": _table(1000, (AGE, "int", "quasi_identifier"), ("bucket_id", "bigint", "bucket_id")),
        "st": _table(
            900, ("bucket_id", "bigint", "bucket_id"), (COLUMN, "string", "sensitive"), ("count", "bigint", "count")
        ),
    },
    "perturbed": lambda kind: {
        "microdata": _table(
            1000, (AGE, "int", "quasi_identifier"), (COLUMN, "string", "sensitive"), ("subtable", "int", "subtable")
        )
    },
    "generalized": lambda kind: {
        "microdata": _table(
            1000,
            (f"{AGE}_min", "int", "quasi_identifier_min"),
            (f"{AGE}_max", "int", "quasi_identifier_max"),
            (COLUMN, "string", "sensitive"),
            *([] if kind == "matched" else [("ec_id", "bigint", "ec_id")]),
        )
    },
}


VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """The text of each element as a reader sees it, and what is asked for from elsewhere. Fails on elements that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.seen: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        own = {name: value or "" for name, value in attrs}
        self.attributes += list(own.items())
        self.ids += [own["id"]] if "id" in own else []
        self.links += [own[name] for name in ("href", "src", "xlink:href", "action", "data", "poster") if name in own]
        if tag not in VOID:
            self.open.append(tag)
        if own.get("class") == "words":
            self.words.append("")
            self.open[-1] = "words"

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() in (tag, "words"), tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.seen.append(data)
        if "words" in self.open:
            self.words[-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.seen).split())
