"""The first half of a report: what is promised, what was asked and achieved, and what the audit found. Pure."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

from anonlib.errors import AnonlibError
from anonlib.exact import exact
from anonlib.release.manifest import GuaranteePart, Manifest, NodePart, ValuePart
from anonlib.reports import numbers
from anonlib.reports.facts import Facts
from anonlib.reports.markup import Markup, element, escaped, in_words, items, joined, legible, paragraph, table
from anonlib.reports.numbers import percent, readable, share_text
from anonlib.spec.layouts import EC_ID

TEXT = 5_000
"""Characters of a sentence."""
MOST_VALUES = 300
"""Sensitive values in a table, the least protected first."""
ASKED = {
    "k": "k: so many records, at least, look alike",
    "l": "l: every row may be that of so many persons, who have as many different values",
    "distinct_l": "l: so many different values, at least, among records that look alike",
    "frequency_l": "l: no value belongs to more than one in so many of the records that look alike",
    "beta": "beta: by how many times its own share a value may exceed its share of the table",
    "enhanced_beta": "beta (enhanced): by how many times its own share a value may exceed its share of the table",
    "t": "t: how far the mix of values of records that look alike may be from that of the whole table (0 the same, 1 the farthest)",
    "rho1": "rho1: values with at most this share of the records are protected",
    "rho2": "rho2: what may be believed of a person, at most",
}
"""The numbers of a promise, for a reader."""
HOW = {
    "bucketized": "Records were put together into small groups, called buckets. Each published record shows its other columns as they are "
    "and the number of its bucket. For each bucket the release lists which values of {sensitive} its records have and how often, but not "
    "which record has which.",
    "classes": "In place of exact values the published rows show ranges and sets. Rows with the same ranges form a class. {sensitive} "
    "stands in each row as it is: whoever knows a person finds the class, but not which of its rows is the person's.",
    "matched": "In place of exact values each published row shows ranges and sets that are wide enough to fit several persons. {sensitive} "
    "stands in each row as it is, but any of the persons that fit may be the one the row came from.",
    "perturbed": "Each published record shows its other columns as they are. Its value of {sensitive} was kept with a known chance, and "
    "replaced at random otherwise: nobody can tell of one row whether the value in it is the person's own.",
}
"""How each kind of release protects."""
OF_SEVERAL = ("stands in each row as it is", "stand in each row as they are")
"""What the words say of one sensitive column in boxes, and of several."""
ACHIEVED = {
    "bucketized": "Achieved is the largest share of the value in any bucket.",
    "classes": "Achieved is the largest share of the value in any class.",
    "matched": "Achieved is the largest share of the value among the rows that a person may be.",
    "perturbed": "Achieved is the most that can be believed of a person whose row shows the value that speaks for it most.",
}
"""What was measured of each value."""
NOT_PROMISED = {
    "bucketized": "Being in the table is not hidden, and neither are the other published columns: they are there as they were.",
    "perturbed": "Being in the table is not hidden, and neither are the other published columns: they are there as they were.",
    "classes": "Being in the table is not hidden. Ranges and sets still tell something about the other columns of a person.",
    "matched": "Being in the table is not hidden. Ranges and sets still tell something about the other columns of a person.",
}
ALWAYS = (
    "What holds for many people can be learnt from the release, about those who are in it as about those who are not: that is what it "
    "is published for.",
    "The promise is that of this release alone. Another release of the same persons may tell more together with it.",
)


def kind_of(manifest: Manifest) -> str:
    """ "bucketized", "perturbed", and of a generalized release "classes" or "matched"."""
    if manifest.layout != "generalized":
        return manifest.layout
    return "classes" if any(c.role == EC_ID for part in manifest.tables.values() for c in part.columns) else "matched"


def sensitive_names(manifest: Manifest) -> str:
    """The sensitive columns as a reader names them."""
    return " and ".join(legible(part.sensitive) for part in of_columns(manifest))


def of_columns(manifest: Manifest) -> list[GuaranteePart]:
    """What is promised of each sensitive column; of buckets, where combinations have a part of their own, without that."""
    combinations = manifest.layout == "bucketized" and bool(manifest.guarantee.also)
    return [*([] if combinations else [manifest.guarantee]), *manifest.guarantee.also]


def promise(facts: Facts) -> Markup:
    """The guarantee's own words, how the release keeps them, and what they leave out."""
    manifest = facts.manifest
    kind = kind_of(manifest)
    words = [part.words for part in (manifest.guarantee, *manifest.guarantee.also)]
    words = [
        w for w in words if not any(w != more and w in more for more in words)
    ]  # of two columns, each is said in one
    return joined(
        [
            element(
                "blockquote", *(element("p", escaped(legible(w, TEXT)), class_="words") for w in dict.fromkeys(words))
            ),
            element("h3", escaped("What that means")),
            paragraph(who_knows_what(manifest)),
            *(
                paragraph(meaning(part, kind, whole(manifest)))
                for part in (manifest.guarantee, *manifest.guarantee.also)
            ),
            element("h3", escaped("How the release does it")),
            paragraph(how(manifest)),
            element("h3", escaped("What is not promised")),
            items([NOT_PROMISED[kind], *ALWAYS]),
        ]
    )


def how(manifest: Manifest) -> str:
    """How the release protects, in words."""
    said = HOW[kind_of(manifest)].format(sensitive=sensitive_names(manifest))
    return said.replace(*OF_SEVERAL) if len(of_columns(manifest)) > 1 else said


def whole(manifest: Manifest) -> str:
    """What rows that look alike are held against: the whole table or, of a stream, a window."""
    if manifest.stream is None:
        return "the whole table"
    return f"a window of {manifest.stream.window:,} records that arrived one after another"


def who_knows_what(manifest: Manifest) -> str:
    """What quasi-identifiers are, and which."""
    names = [part.name for part in manifest.quasi_identifiers]
    names += [c.name for part in manifest.tables.values() for c in part.columns if c.role == "quasi_identifier"]
    return (
        f"Quasi-identifiers are the columns that other people may know of somebody: here {', '.join(map(legible, names))}. The promise is "
        f"made against whoever knows all of them of a person and wants to find out the person's {sensitive_names(manifest)}."
    )


def meaning(part: GuaranteePart, kind: str, whole: str) -> str:
    """The numbers of the promise in everyday words; nothing that the words above do not say. whole : see `whole`"""
    column, asked = legible(part.sensitive), _numbers_of(part)
    sentences = []
    if kind == "bucketized":
        sentences.append(
            f"Whatever value of {column} they think of, after reading the release they can be no surer that the person has it than "
            "the bound of that value in the table below. A bound of 20 % means: right in at most 20 of 100 such cases."
        )
    if "rho2" in asked:
        sentences.append(
            f"A row that looks like the person shows a value, but it may have been replaced. Of no protected value can they be surer than "
            f"{percent(float(asked['rho2']))}: they are wrong in at least {percent(1 - float(asked['rho2']))} of such cases."
        )
    if kind == "matched" and "l" in asked:
        sentences.append(
            f"Each row may have come from any of {asked['l']} persons, all equally likely, and no two of them have the same {column}: "
            f"whose it is, is a guess among {asked['l']}."
        )
    elif "l" in asked or "frequency_l" in asked:
        least = asked.get("l", asked.get("frequency_l"))
        sentences.append(f"Among the rows that may be the person's, no {column} makes up more than one in {least}.")
    if "k" in asked and asked["k"] > 1:
        sentences.append(f"At least {asked['k']} rows look alike, so nobody can tell which of them is the person's.")
    if "beta" in asked or "enhanced_beta" in asked:
        more = 1 + asked.get("beta", asked.get("enhanced_beta", Fraction(0)))
        sentences.append(
            f"Among the rows that may be the person's, no {column} is more than {float(more):g} times as frequent as in {whole}: a "
            "rare value stays rare."
        )
    if "t" in asked:
        sentences.append(_close(part, column, float(asked["t"]), whole))
    return " ".join(sentences)


def _numbers_of(part: GuaranteePart) -> dict[str, Fraction]:
    """The numbers that are asked; none that is no number, which the audit has something to say about."""
    read = {}
    for name, number in part.asked.items():
        with suppress(AnonlibError):
            read[name] = exact(number)
    return read


def _close(part: GuaranteePart, column: str, t: float, whole: str) -> str:
    if part.distance == "flat":
        return (
            f"Rows that look alike show nearly the same mix of {column} as {whole}: of 100 of them at most {100 * t:g} would "
            "have to show another value for the mix to be the same. Finding the person's rows therefore tells little more."
        )
    return (
        f"Rows that look alike show nearly the same mix of {column} as {whole}. How far the mix may be off is measured from 0, "
        f"the same, to 1, as different as can be; here it is at most {t:g}. Finding the person's rows therefore tells little more."
    )


def asked_and_achieved(facts: Facts) -> Markup:
    """The numbers of the promise, then its bounds value by value and node by node."""
    parts: list[Markup] = []
    for guarantee in (facts.manifest.guarantee, *facts.manifest.guarantee.also):
        parts += [
            _numbers(guarantee, facts.manifest),
            _values(guarantee, facts.manifest),
            _nodes(guarantee, facts.manifest),
        ]
    return joined(
        [
            paragraph(
                "Asked is what the release was made to keep. Achieved is what an audit measured in the published tables: it may be "
                "better than asked, never worse."
                if facts.passed is not False
                else "Asked is what the release was made to keep. Achieved is what was measured before publication. "
                "An audit has found promises that are not kept: see the checks below."
            ),
            *parts,
        ]
    )


def _numbers(guarantee: GuaranteePart, manifest: Manifest) -> Markup:
    if not guarantee.asked:
        return Markup("")
    rows = [
        (
            ASKED.get(name, in_words(name)).replace("the whole table", whole(manifest)),
            readable(asked),
            readable(guarantee.achieved.get(name, "-")),
        )
        for name, asked in guarantee.asked.items()
    ]
    return table(f"The promise about {legible(guarantee.sensitive)}", ("", "asked", "achieved"), rows)


def _values(guarantee: GuaranteePart, manifest: Manifest) -> Markup:
    n = max(1, sum(value.count for value in guarantee.values))
    ordered = sorted(guarantee.values, key=_protection)
    bounded = any(value.threshold is not None for value in ordered)
    measured = any(value.achieved is not None for value in ordered)
    head = ["value", "records", "share of the table" if manifest.stream is None else "share of the records shown"]
    head += (["asked: at most"] if bounded else []) + (["achieved"] if measured else [])
    rows = []
    for value in ordered[:MOST_VALUES]:
        row = [legible(value.value), f"{value.count:,}", percent(value.count / n)]
        row += [_bound(value)] if bounded else []
        row += [share_text(value.achieved)] if measured else []
        rows.append(row)
    more = len(ordered) - MOST_VALUES
    first = "the least protected first" if bounded else "the most frequent first"
    left_out = f" {more:,} more values, which are better protected or rarer, are left out here." if more > 0 else ""
    return joined(
        [
            table(f"{legible(guarantee.sensitive)}, value by value, {first}", head, rows),
            paragraph(_what_shares_are(guarantee, manifest, bounded, measured) + left_out, class_="note"),
        ]
    )


OF_NODES = {
    True: (
        "buckets of nothing else",
        "Achieved is their largest share in any bucket. A bucket of nothing else tells of everybody in it that the value is one of the "
        "node's, though not which.",
    ),
    False: (
        "records that match nothing else",
        "Achieved is their largest share among the matches of any record. A record that matches nothing else is told to be of the node, "
        "though not of which of its values.",
    ),
}
"""Whether of buckets: (what the last column of the table of nodes has, what its numbers are)."""


def _nodes(guarantee: GuaranteePart, manifest: Manifest) -> Markup:
    """What was asked and achieved of values that mean nearly the same, taken together."""
    if not guarantee.nodes:
        return Markup("")
    n = max(1, sum(value.count for value in guarantee.values))
    ordered = sorted(guarantee.nodes, key=lambda node: (node.threshold is None, _protection(node)))
    rows = [
        [
            legible(node.node),
            f"{node.count:,}",
            percent(node.count / n),
            "no bound" if node.threshold is None else _bound(node),
            share_text(node.achieved),
            "-" if node.telling is None else f"{node.telling:,}",
        ]
        for node in ordered[:MOST_VALUES]
    ]
    more = len(ordered) - MOST_VALUES
    left_out = (
        f" {more:,} more nodes, which are better protected or bounded by nothing, are left out here."
        if more > 0
        else ""
    )
    alone, note = OF_NODES[manifest.layout == "bucketized"]
    head = ["node", "records", "share of the table", "asked: at most", "achieved", alone]
    return joined(
        [
            table(
                f"{legible(guarantee.sensitive)}, node by node of its hierarchy, the least protected first", head, rows
            ),
            paragraph(
                f"A node is all values under it, taken together. {note}{left_out}",
                class_="note",
            ),
        ]
    )


def _what_shares_are(guarantee: GuaranteePart, manifest: Manifest, bounded: bool, measured: bool) -> str:
    free = bounded and any(value.threshold is None for value in guarantee.values)
    sentences = [
        ACHIEVED[kind_of(manifest)] if measured else "",
        "A value that is not protected has no bound." if free else "",
        "How often each value occurs in the whole table is part of the release: every method takes it as known."
        if manifest.stream is None
        else "Shares are of the records shown so far; a class is held against its own window.",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _bound(value: ValuePart | NodePart) -> str:
    if value.threshold is None:
        return "not protected"
    return "no bound (100 %)" if (numbers.value(value.threshold) or 0) >= 1 else share_text(value.threshold)


def _protection(value: ValuePart | NodePart) -> tuple[float, float, int]:
    """The least protected first: unprotected, then nearest to its bound; without bounds the most frequent."""
    if value.threshold is None:
        return (0.0, 0.0, -value.count)
    threshold, reached = numbers.value(value.threshold) or 1.0, numbers.value(value.achieved) or 0.0
    return (1.0 if threshold < 1 else 0.5, -reached / threshold, -value.count)


def audit(facts: Facts) -> Markup:
    """Every check with what was asked and what was found."""
    if not facts.checks:
        return paragraph(
            "No check of this release is on record: it was published without an audit."
            if facts.manifest.audit.mode == "off"
            else "Each batch was audited before it was shown; the checks stand in the batches' own manifests.",
        )
    passed = sum(check.passed for check in facts.checks)
    failed = [check for check in facts.checks if not check.passed]
    rows = [
        (
            check.name,
            "passed" if check.passed else "FAILED",
            legible(check.asked, 300),
            legible(check.achieved, 300) + (f" ({legible(check.evidence, 300)})" if check.evidence else ""),
        )
        for check in [*failed, *(check for check in facts.checks if check.passed)]
    ]
    return joined(
        [
            paragraph(
                f"The audit recomputes every promise from the published tables, with code of its own. {passed} of {len(facts.checks)} "
                f"checks passed, {facts.audited}."
            ),
            table(
                "Checks of the audit",
                ("check", "result", "asked", "found"),
                rows,
                left=4,
                marks={"passed": "good", "FAILED": "bad"},
            ),
        ]
    )
