"""A report as a page: what stands in it, from planted facts. No Spark."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from anonlib.audit.verdict import Check
from anonlib.errors import SpecError
from anonlib.evaluation.risks import RiskMeasures
from anonlib.release.manifest import (
    AuditPart,
    GuaranteePart,
    LedgerPart,
    Manifest,
    MethodPart,
    NodePart,
    PersonsPart,
    ValuePart,
)
from anonlib.reports import bins, charts, curves, file, worth
from anonlib.reports.curves import ALONE, DEPENDS, NODES, NOT_KEPT, ONE_BY_ONE, TOGETHER, TOO_MANY, UNREAD, curve
from anonlib.reports.facts import Facts, Sizes
from anonlib.reports.markup import Markup, escaped, legible
from anonlib.reports.page import FROM_THE_ORIGINAL, page
from anonlib.reports.promise import MOST_VALUES
from anonlib.solvers.trade_offs.trade_off import STOPS, Point, TradeOff
from tests import reported
from tests.reported import COLUMN, CURVE, KINDS, LONG, NASTY, TURNED, VALUES, Page, facts, manifest_of


@pytest.fixture
def drawn_quickly(monkeypatch):
    """Charts as the names of what they show: drawing takes a second a page."""
    monkeypatch.setattr(charts, "drawn", lambda name, says, height, draw: Markup(f"<svg>{escaped(says)}</svg>"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_the_promise_in_its_own_words_and_asks_for_nothing(kind, drawn_quickly):
    made = facts(kind)
    seen = Page(page(made))
    assert seen.words == [made.manifest.guarantee.words]
    assert all(link == "data:," or link.startswith("#") for link in seen.links)
    assert {link[1:] for link in seen.links if link.startswith("#")} <= set(seen.ids)
    assert len(seen.ids) == len(set(seen.ids))
    assert not set(seen.tags) & {"script", "iframe", "object", "embed", "img", "form", "base"}
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert "Audit passed" in seen.text if kind != "stream" else "Audited batch by batch" in seen.text
    assert "Everything here was computed from the published release alone." in seen.text
    assert "original table:" not in seen.text


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_computed_from_the_original_says_so_where_it_stands(kind, drawn_quickly):
    written = page(facts(kind, original=True))
    seen = Page(written)
    assert "This report is not an anonymized release." in seen.text
    sections = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', written, re.DOTALL))
    own = {"audit", *(anchor for anchor, _, _ in FROM_THE_ORIGINAL)} | ({"risks"} if kind == "matched" else set())
    assert own <= set(sections)
    for anchor, inner in sections.items():
        assert ("computed from the original table" in inner) == (anchor in own), anchor


def test_values_and_names_are_data(drawn_quickly):
    written = page(facts("bucketized", original=True))
    seen = Page(written)
    assert NASTY in seen.text
    assert "<script" not in written
    assert not re.search(r"<[bi]>", written)
    assert COLUMN in seen.text
    assert "flu\\u202e \\u0007$x_1$" in seen.text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]", written)
    assert "…" in seen.text
    assert LONG not in seen.text.replace(facts("bucketized").manifest.guarantee.words, "")


def test_every_number_asked_stands_beside_what_was_achieved(drawn_quickly):
    assert "1/13 (0.0769)" in (seen := Page(page(facts("perturbed"))).text)
    assert "1/5 (0.2)" in seen
    text = Page(page(facts("classes"))).text
    assert "t: how far the mix of values of records that look alike may be from that of the whole table" in text
    assert "0.2 13/70 (0.186)" in text
    text = Page(page(facts("bucketized"))).text
    assert "hypertension 400 40 % 85 % 84 %" in text


def test_values_without_a_bound_and_many_values(drawn_quickly):
    made = facts("perturbed")
    many = [
        ValuePart(value=f"v{i}", count=1 + i, threshold=None if i == 7 else "1/5", achieved="1/9")
        for i in range(MOST_VALUES + 5)
    ]
    part = made.manifest.guarantee.model_copy(update={"values": many})
    text = Page(page(replace(made, manifest=made.manifest.model_copy(update={"guarantee": part})))).text
    assert "v7 8" in text
    assert "not protected" in text
    assert "5 more values" in text


def test_a_failed_audit_stands_on_top(drawn_quickly):
    checks = (Check("good", True, "a", "a"), Check("F'-privacy", False, "at most 1/5", "1/2", "bucket 3"))
    text = Page(page(facts("bucketized", checks=checks))).text
    assert "Audit FAILED: do not rely on the promise" in text
    assert "1 of 2 checks passed" in text
    assert "never worse" not in text
    assert text.index("FAILED at most 1/5 1/2 (bucket 3)") < text.index("good passed")


def test_a_manifest_of_nonsense_still_has_its_page(drawn_quickly):
    made = facts("bucketized")
    values = [
        ValuePart(value="x", count=0, threshold="none of it", achieved="1/0"),
        ValuePart(value="y", count=3, threshold="0"),
    ]
    part = made.manifest.guarantee.model_copy(update={"values": values, "asked": {"k": "many"}})
    manifest = made.manifest.model_copy(
        update={"guarantee": part, "method": MethodPart(name="nobody's", parameters={"a": [None]})}
    )
    text = Page(page(replace(made, manifest=manifest, curve=curve(manifest)))).text
    assert "none of it" in text
    assert "cannot be read" in text


def test_a_release_that_was_never_audited(drawn_quickly):
    made = facts("bucketized", checks=())
    manifest = made.manifest.model_copy(update={"audit": AuditPart(mode="off", passed=None, checks=[])})
    text = Page(page(replace(made, manifest=manifest))).text
    assert "Not audited" in text
    assert "published without an audit" in text
    assert "Audit passed" not in text


def test_rows_in_and_out(drawn_quickly):
    made = facts("bucketized")
    rows = made.manifest.rows.model_copy(update={"suppressed": 3, "fake": 200, "input": 1008})
    persons = PersonsPart(repeated="latest", rows=1500, persons=1008, nameless=2, left_out=490)
    text = Page(page(replace(made, manifest=made.manifest.model_copy(update={"rows": rows, "persons": persons})))).text
    for line in (
        "records read 1,008",
        "published 1,000",
        "(suppressed) 3",
        "(dropped) 5",
        "(fakes) 200",
        "rows of the input 1,500",
    ):
        assert line in text, line


def test_a_stream_tells_what_arrived_and_its_batches(drawn_quickly):
    text = Page(page(facts("stream"))).text
    for line in (
        "records that have arrived 1,007",
        "left out for a value outside the stated domains 3",
        "1 600 0 passed",
        "0 400 600 passed",
    ):
        assert line in text, line


def test_a_stream_is_held_against_its_windows_and_no_table(drawn_quickly):
    text = Page(page(facts("stream"))).text
    assert "the same mix of diagnosis <b> as a window of 500 records that arrived one after another" in text
    assert "whole table" not in text.replace("no whole table", "")


def test_no_secret_has_a_place(drawn_quickly):
    """A page is made of facts: they have no field for a key, and nothing of the environment enters."""
    os.environ["ANONLIB_KEY"] = "c0ffee" * 10
    try:
        assert "c0ffee" not in page(facts("bucketized", original=True))
    finally:
        del os.environ["ANONLIB_KEY"]
    assert not [name for name in Facts.__dataclass_fields__ if "key" in name]


def test_before_and_after_keeps_the_most_frequent_and_adds_up_the_rest():
    values = [ValuePart(value=f"v{i}", count=100 - i) for i in range(40)]
    part = facts("classes").manifest.guarantee.model_copy(update={"values": values})
    lines = worth.shares(part, tuple((v.value, v.count) for v in values))
    assert [line[0] for line in lines[:2]] == ["v0", "v1"]
    assert lines[-1][0] == "28 other values"
    assert sum(before for _, before, _ in lines) == pytest.approx(1)
    assert all(before == pytest.approx(after) for _, before, after in lines)


def test_sizes_are_drawn_one_by_one_or_in_ranges():
    assert bins.size_ranges(Sizes("buckets", {5: 2, 7: 1})) == [(5, 5, 10), (7, 7, 7)]
    many = Sizes("classes", dict.fromkeys(range(3, 400), 2))
    ranges = bins.size_ranges(many)
    assert len(ranges) <= bins.BARS
    assert (ranges[0][0], ranges[-1][1]) == (3, 399)
    assert sum(records for _, _, records in ranges) == sum(2 * size for size in range(3, 400))
    assert all(a[1] < b[0] for a, b in pairwise(ranges))


def test_errors_by_selectivity_leave_out_what_has_no_error():
    actual = np.array([0.0] * 5 + [10.0] * 20 + [200.0] * 20)
    estimated = np.array([3.0] * 5 + [12.0] * 20 + [210.0] * 20)
    found = bins.selectivity_bins(actual, estimated, 1000)
    assert [(name, number) for name, number, _, _ in found] == [("0.3–1 %", 20), ("10–30 %", 20)]
    assert [half for _, _, half, _ in found] == pytest.approx([0.2, 0.05])


def test_risks_against_counting_by_hand():
    of = RiskMeasures.of({1: 3, 2: 2, 5: 1, 20: 1})
    assert of is not None
    assert (of.records, of.classes, of.smallest) == (32, 7, 1)
    assert of.uniques == pytest.approx(3 / 32)
    assert of.high == pytest.approx(7 / 32)  # a risk of exactly 1 in 5 is not above it
    assert (of.prosecutor, of.journalist) == (1, 1)
    assert of.marketer == pytest.approx(7 / 32)
    assert RiskMeasures.of({}) is None
    fits = RiskMeasures.of_fits(np.array([1, 2, 4, 0]), np.array([1.0, 2.0, 1.0, 9.0]))
    assert fits is not None
    assert fits.marketer == pytest.approx((1 + 1 + 0.25) / 4)
    assert (fits.records, fits.smallest, fits.uniques, fits.high) == (4, 1, 0.25, 1.0)
    assert RiskMeasures.of_fits(np.array([0]), np.array([1.0])) is None


SEVEN = [ValuePart(value=f"v{i}", count=n) for i, n in enumerate((300, 250, 200, 150, 100, 60, 40))]


@pytest.mark.parametrize(
    ("method", "parameters", "bound", "asked"),
    [
        ("bucketize", {"privacy": {"theta": "2", "offset": "0.05"}, "solver": "two_size"}, "theta", 2),
        ("bucketize", {"privacy": {"default": "1/3", "thresholds": {"v6": "0.2"}}}, "default", 1 / 3),
        ("anatomy", {"l": 3}, "l", 3),
        ("sabre", {"t": "0.2", "k": 5}, "t", 0.2),
        ("heterogeneous", {"l": 3}, "l", 3),
        ("heterogeneous", {"beta": "3"}, "beta", 3),
        ("perturb", {"rho1": "1/13", "rho2": "1/5"}, "rho2", 0.2),
    ],
)
def test_the_curve_of_a_bound_has_this_release_on_it(method, parameters, bound, asked):
    drawn = curve(manifest_with(manifest_of("classes"), SEVEN, method, parameters))
    assert not isinstance(drawn, str), drawn
    assert drawn.name == bound
    assert float(drawn.asked) == pytest.approx(asked)
    assert drawn.at_asked in drawn.kept
    costs = [point.measures[drawn.cost] for point in drawn.kept]
    assert costs[0] > costs[-1]  # the strictest comes first, and costs most


def manifest_with(manifest, values, method, parameters, **changes):
    """The manifest with other values, and another method with these parameters; `changes` are of its guarantee."""
    part = manifest.guarantee.model_copy(update={"values": values, **changes})
    return manifest.model_copy(
        update={"guarantee": part, "method": MethodPart(name=method, parameters=parameters), "ledger": None}
    )


def test_thresholds_of_values_and_of_what_is_missing_have_a_curve_too():
    privacy = {"theta": "3", "offset": "0.05", "thresholds": {NASTY: "0.2"}, "missing": "0.1"}
    values = [ValuePart(value=v, count=n) for v, n in VALUES.items()]
    drawn = curve(manifest_with(manifest_of("bucketized"), values, "bucketize", {"privacy": privacy}))
    assert not isinstance(drawn, str), drawn
    assert drawn.at_asked.measures["unbounded"] == pytest.approx(0.4)  # three times 400 of 1,000 is above one


def test_a_bound_that_leaves_one_class_is_noted():
    drawn = curve(manifest_with(manifest_of("classes"), SEVEN, "sabre", {"t": "0.2", "k": 700}))
    assert not isinstance(drawn, str), drawn
    assert drawn.at_asked.note == "leaves nothing: one class of 1,100 records"
    assert drawn.proposed is None


def test_the_shares_of_a_ledger_are_those_of_all_it_has_published(monkeypatch):
    """Records of values that this release has none of count among them."""
    asked: list[dict[str | None, int]] = []
    monkeypatch.setattr(curves, "from_counts", lambda wanted, counts, before: asked.append(before))
    manifest = manifest_with(manifest_of("bucketized"), SEVEN, "bucketize", {"privacy": {"theta": "3"}})
    curve(manifest)
    for before, records in (([5, 4, 3, 2, 1, 1, 1], 30), ([], 30), ([5, 4, 3, 2, 1, 1, 1], 17)):
        part = LedgerPart(id="0" * 32, number=2, persons=1, before=before, records_before=records)
        curve(manifest.model_copy(update={"ledger": part}))
    assert asked[0] is None
    assert [sum(before.values()) for before in asked[1:]] == [30, 30, 17]
    assert [before["v0"] for before in asked[1:]] == [5, 0, 5]


def test_the_caption_says_where_the_release_stands_and_what_leaves_or_protects_nothing(drawn_quickly):
    text = Page(page(facts("bucketized"))).text
    assert "This release stands at theta = 2, with 5." in text
    assert f"At theta = 1.5 {STOPS}" in text
    assert "or protect nothing, of some records are hollow in the chart (theta = 13/3)" in text
    assert "13/3 (4.33) 3.5 40 % protects nothing of 40.00% of the records" in text
    assert "2 5 0 % this release" in text
    assert f"1.5 9 0 % {STOPS}" in text
    assert "cannot be kept" not in text
    flawed = replace(CURVE, asked=CURVE.points[-1].bound, points=CURVE.points[-2:])
    text = Page(page(facts("bucketized", curve=flawed))).text
    assert "with 3.5 and protects nothing of 40.00% of the records." in text
    assert "hollow" not in text
    assert STOPS not in text


def test_a_chart_of_a_bound_marks_this_release_the_knee_and_what_has_a_flaw():
    pytest.importorskip("matplotlib")
    written = charts.cost_of_the_bound(CURVE, "says")
    for label in ("this release", STOPS, "leaves or protects nothing", "protects more", "13/3"):
        assert label in written, label
    assert "log scale" not in written
    plain = TradeOff("l", CURVE.asked, {"x": "x"}, "x", tuple(Point(p.bound, {"x": p.bound**9}) for p in CURVE.kept))
    written = charts.cost_of_the_bound(plain, "says")
    assert "log scale" in written
    assert "leaves or protects nothing" not in written


def test_where_no_curve_can_be_had_the_page_says_why(drawn_quickly):
    manifest = manifest_of("classes")
    assert (
        curve(
            manifest.model_copy(
                update={"method": manifest.method.model_copy(update={"name": "mondrian", "parameters": {"k": 5}})}
            )
        )
        == DEPENDS
    )
    assert "window" in str(curve(manifest_of("stream")))
    many = [ValuePart(value=str(i), count=1) for i in range(3_000)]
    assert (
        curve(manifest.model_copy(update={"guarantee": manifest.guarantee.model_copy(update={"values": many})}))
        == TOO_MANY
    )
    assert DEPENDS in Page(page(facts("classes", curve=DEPENDS))).text
    also = manifest.guarantee.model_copy(update={"also": [manifest.guarantee]})
    assert curve(manifest.model_copy(update={"guarantee": also})) == TOGETHER
    few = [ValuePart(value="a", count=50), ValuePart(value="b", count=50)]
    grouped = {"privacy": {"theta": "1", "thresholds": {"a or b": "0.9"}}}
    nodes = [NodePart(node="a or b", count=100, threshold="0.9")]
    assert curve(manifest_with(manifest, few, "bucketize", grouped, nodes=nodes)) == NODES
    assert curve(manifest_with(manifest, few, "bucketize", grouped)) == UNREAD
    own = {"privacy": {"thresholds": {"a": "0.5", "b": "0.6"}}}
    assert curve(manifest_with(manifest, few, "bucketize", own)) == ONE_BY_ONE
    assert curve(manifest_with(manifest, few, "heterogeneous", {"l": 3})) == NOT_KEPT
    assert curve(manifest_with(manifest, few, "heterogeneous", {"l": 2})) == ALONE
    huge = [ValuePart(value="a", count=10**40)]
    assert curve(manifest_with(manifest, huge, "heterogeneous", {"l": 2})) == UNREAD


def test_a_report_does_not_lie_in_a_release(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    release = tmp_path / "release"
    release.mkdir()
    for path in (release / "r.html", release / "qit" / ".." / "r.html"):
        with pytest.raises(SpecError, match="lies in the release"):
            file.check(path, str(release))
    with pytest.raises(SpecError, match="lies in the release"):
        file.check(release / "r.html", f"file://{release}")
    with pytest.raises(SpecError, match="folder that exists"):
        file.check(tmp_path / "nowhere" / "r.html", str(release))
    with pytest.raises(SpecError, match="local file"):
        file.check(Path("s3://bucket/r.html"), str(release))
    monkeypatch.chdir(tmp_path)
    place = file.default_path(str(release))
    assert str(place) == "release.report.html"
    file.check(place, str(release))
    monkeypatch.chdir(release)
    with pytest.raises(SpecError, match="lies in the release"):
        file.check(place, str(release))


def test_a_report_with_the_original_is_for_its_owner_alone(tmp_path):
    file.write(tmp_path / "a.html", "x", private=True)
    file.write(tmp_path / "b.html", "y", private=False)
    assert (tmp_path / "a.html").stat().st_mode & 0o077 == 0
    assert (tmp_path / "b.html").stat().st_mode & 0o400
    file.write(tmp_path / "a.html", "z", private=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "b.html"]
    assert (tmp_path / "a.html").read_text() == "z"


def test_values_are_legible():
    assert legible("   ") == "(3 blanks)"
    assert legible("a\u200bb") == "a\\u200bb"
    assert len(legible(LONG, 30)) <= 30
    assert legible(TURNED).isprintable()


def test_the_words_of_every_kind_are_the_library_s():
    """Planted promises are of this library's templates; a page that is right for them is right for real ones."""
    for kind in KINDS:
        part: GuaranteePart = reported.guarantee_of(kind)
        assert COLUMN in part.words
        assert isinstance(Manifest.from_json(manifest_of(kind).to_json()), Manifest)
