"""The page: one HTML file that opens from disk, with no script, and nothing to fetch. Pure."""

from __future__ import annotations

from collections.abc import Callable

from anonlib.release.manifest import Manifest
from anonlib.reports import beside, promise, records, worth
from anonlib.reports.facts import Facts
from anonlib.reports.markup import Markup, element, escaped, joined, legible, paragraph
from anonlib.reports.style import STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser lets the page do: nothing but its own style sheet. No request leaves it, whatever a value may say."""
Section = tuple[str, str, Callable[[Facts], Markup]]
"""(anchor, title, what fills it)."""
SECTIONS: tuple[Section, ...] = (
    ("promise", "What is promised", promise.promise),
    ("achieved", "Asked and achieved", promise.asked_and_achieved),
    ("records", "What was read, published and left out", records.read_and_published),
    ("columns", "What the release shows", records.columns),
    ("audit", "The audit", promise.audit),
    ("values", "The sensitive values, before and after", worth.before_and_after),
    ("sizes", "How large groups and ranges are", worth.sizes),
    ("price", "What the protection costs", worth.price),
    ("risks", "Risks that other tools report", worth.risks),
)
FROM_THE_ORIGINAL: tuple[Section, ...] = (
    ("estimates", "Counts beside the truth", beside.estimates),
    ("errors", "How far counts are off", beside.errors),
    ("attacks", "What an adversary gains", beside.attacks),
)
LAST: tuple[Section, ...] = (("made", "How it was made", records.how_it_was_made),)


def page(facts: Facts) -> str:
    """The whole file, as text in UTF-8. Raises AnonlibError without matplotlib."""
    own = FROM_THE_ORIGINAL if facts.beside is not None else ()
    secret = from_the_original(facts)
    title = f"Report on {legible(facts.name)}"
    contents = [*SECTIONS, *own, *LAST]
    links = (element("li", element("a", escaped(name), href=f"#{anchor}")) for anchor, name, _ in contents)
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{escaped(POLICY)}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="robots" content="noindex">'),
            Markup('<link rel="icon" href="data:,">'),
            element("title", escaped(title)),
            element("style", Markup(STYLE)),
        ]
    )
    body = joined(
        [
            element("a", escaped("To the report"), href="#promise", class_="skip"),
            element("header", _header(facts, title)),
            element("nav", element("ul", *links), aria_label="Sections"),
            element("main", *(_section(facts, each, each[0] in secret) for each in contents)),
        ]
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def from_the_original(facts: Facts) -> set[str]:
    """The anchors of the sections that show anything of the original: its audit, what is measured beside it and, where every record has a
    box of its own, risks."""
    if facts.beside is None:
        return set()
    own = {"audit", *(anchor for anchor, _, _ in FROM_THE_ORIGINAL)}
    return own | ({"risks"} if promise.kind_of(facts.manifest) == "matched" else set())


def _section(facts: Facts, section: Section, secret: bool) -> Markup:
    anchor, name, fill = section
    warning = element("div", paragraph(beside.SECRET), class_="secret") if secret else Markup("")
    return element("section", element("h2", escaped(name)), warning, fill(facts), id=anchor)


def _header(facts: Facts, title: str) -> Markup:
    manifest = facts.manifest
    state, class_ = {
        True: ("Audit passed", "good"),
        False: ("Audit FAILED: do not rely on the promise", "bad"),
        None: ("Not audited", "bad") if manifest.audit.mode == "off" else ("Audited batch by batch", "good"),
    }[facts.passed]
    origin = (
        element(
            "div",
            paragraph(
                "This report is not an anonymized release. It was made with the original table: the sections "
                + ", ".join(
                    f"“{name}”"
                    for anchor, name, _ in (*SECTIONS, *FROM_THE_ORIGINAL)
                    if anchor in from_the_original(facts)
                )
                + " show what was computed from it. Keep this file where the original may be kept; a report without them is made from the "
                "release alone."
            ),
            class_="secret",
        )
        if facts.beside is not None
        else paragraph("Everything here was computed from the published release alone.", class_="lead")
    )
    return joined(
        [
            element("h1", escaped(title)),
            paragraph(f"{_kind(manifest)}. Report made on {facts.day} with anonlib.", class_="lead"),
            element("p", element("span", escaped(state), class_=f"state {class_}")),
            _key_figures(facts),
            origin,
        ]
    )


def _kind(manifest: Manifest) -> str:
    what = "Stream" if manifest.stream is not None else "Release"
    return f"{what} by the method {manifest.method.name}, {manifest.guarantee.model}"


def _key_figures(facts: Facts) -> Markup:
    manifest = facts.manifest
    figures = [
        ("records published", f"{manifest.rows.published:,}"),
        ("protected column" + ("s" if manifest.guarantee.also else ""), promise.sensitive_names(manifest)),
        *_different_values(manifest),
    ]
    if facts.checks:
        figures.append(("checks passed", f"{sum(c.passed for c in facts.checks)} of {len(facts.checks)}"))
    entries = (element("div", element("dt", escaped(name)), element("dd", escaped(text))) for name, text in figures)
    return element("dl", *entries, class_="facts")


def _different_values(manifest: Manifest) -> list[tuple[str, str]]:
    parts = promise.of_columns(manifest)
    if len(parts) == 1:
        return [("different values in it", f"{len(parts[0].values):,}")]
    return [(f"different values of {legible(part.sensitive)}", f"{len(part.values):,}") for part in parts]
