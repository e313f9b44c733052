"""A report in a headless Chromium, as wide as a telephone and as a desk, light and dark: nothing logged, fetched or cut off."""

from __future__ import annotations

import re

import pytest

from anonlib.reports.page import page
from tests.browser import Browser, chromium
from tests.reported import facts

WIDTHS = (390, 1280)
TAB = 9


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium, or name it in ANONLIB_CHROMIUM)")
    opened = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The longest page there is: all sections, with values that a page could trip over."""
    pytest.importorskip("matplotlib")
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(facts("bucketized", original=True)), encoding="utf-8")
    return path


@pytest.mark.long
def test_charts_are_small_plain_and_in_the_page_s_colours(report):
    written = report.read_text(encoding="utf-8")
    drawings = re.findall(r"<svg.*?</svg>", written, re.DOTALL)
    assert len(drawings) == 6
    assert len(written) < 150_000
    for drawing in drawings:
        assert not re.search(r"https?:", drawing)
        assert "var(--ink)" in drawing
        assert "DejaVu" not in drawing
    identities = re.findall(r' id="([^"]+)"', written)
    assert len(identities) == len(set(identities))
    for used in re.findall(r'(?: href="|url\()#([^")]+)', written):
        assert used in identities
    assert "$x_1$" in "".join(drawings)  # a value is no mathematics


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_is_quiet_alone_and_not_cut(browser, report, width, dark):
    browser.show(width, 900, dark)
    browser.requests.clear()
    browser.complaints.clear()
    browser.open(report)
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    paper, ink = (
        browser.value(f"getComputedStyle(document.documentElement).{name}") for name in ("backgroundColor", "color")
    )
    assert (brightness(paper) < brightness(ink)) == dark
    bar = browser.value("getComputedStyle(document.querySelector('svg path[style^=\"fill: var(--first)\"]')).fill")
    assert bar == ("rgb(122, 179, 240)" if dark else "rgb(31, 95, 168)")
    assert browser.value("[...document.querySelectorAll('section')].every(s => s.getBoundingClientRect().height > 40)")
    assert browser.complaints == []
    assert browser.requests == [report.as_uri()]


def test_a_page_is_read_by_keyboard(browser, report):
    browser.show(390, 900)
    browser.open(report)
    browser.press("Tab", TAB)
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    stops = browser.value(
        "[...document.querySelectorAll('a,summary,[tabindex]')].map(e => e.tagName + '.' + e.className)"
    )
    assert {"A.skip", "SUMMARY.", "DIV.wide"} <= set(stops)
    wide = "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth)"
    assert browser.value(f"{wide}.length") > 0  # the widest tables scroll by themselves, within the page
    assert browser.value(f"{wide}.every(e => e.tabIndex === 0 && e.getAttribute('aria-label'))")


@pytest.mark.long
def test_a_page_prints_on_a4(browser, report, tmp_path):
    browser.show(1280, 900, dark=True)
    browser.open(report)
    browser.printed(tmp_path / "report.pdf")
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", (tmp_path / "report.pdf").read_bytes())
    assert boxes
    for box in boxes:
        assert [round(float(side)) for side in box] == [595, 842]
    browser.show(1280, 900, dark=True, medium="print")
    assert browser.value("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"


def brightness(colour: str) -> int:
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])
