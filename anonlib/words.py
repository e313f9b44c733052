"""What a release promises, in words: one template per model, filled with plain numbers.

Methods fill them with the numbers they chose, the audit with those it derives itself from the manifest and the tables; so a text
that promises anything else is found. Nothing is computed here. Shares are Fractions, counts ints; a value is its text, None a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from anonlib.exact import text

NAMED = 3
"""How many values a sentence names."""
Share = tuple[str | None, Fraction]
"""A sensitive value, and a share that goes with it."""
RealShares = tuple[Fraction, Fraction, Fraction]
"""Beside fakes: the smallest and the largest share of a value's listings that are real, and how likely a last record's value is told."""

F_PRIVACY, RHO_PRIVACY, CLASSES = "F'-privacy", "(rho1, rho2)-privacy", "equivalence classes"
CLOSENESS, CLOSENESS_IN_WINDOWS = "t-closeness", "(omega, t)-closeness"
DIVERSE_MATCHES, ALIKE_MATCHES = "l-diversity by matches", "beta-likeness by matches"
"""The models, as a manifest names them."""

LEAKING = {"far_apart": "how shared buckets were filled", "refine": "why partitions were not cut on"}
"""Parameters of heterogeneous generalization under which an adversary who knows this too is not held to the promise."""
REMAINDERS = {"dummy": "made up", "suppress": "left out"}
"""What the paper's buckets do with records where they do not come out even."""
DISTANCES = {
    "ordered": "the rank among the table's values",
    "hierarchical": "the height of the lowest common ancestor in the hierarchy",
    "flat": "1 between any two values",
}


def percent(share: Fraction) -> str:
    """Rounded up to a hundredth of a percent: a promise may not look stronger than it is."""
    hundredths = -((-share.numerator * 10_000) // share.denominator)
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def thresholds(
    column: str,
    strictest: Share,
    loosest: Share,
    fake_values: int = 0,
    real: RealShares | None = None,
    nodes: Sequence[Share] | None = None,
) -> str:
    """F'-privacy: the lowest and the highest threshold, and whom they concern. column : the sensitive column.

    fake_values : s, values listed in each bucket that belong to nobody; real : what counts tell of them, None where that is not bounded
    nodes       : of a hierarchy, those that have a threshold, the strictest first; None where values have no hierarchy
    """
    adversary = (
        "Someone who knows a person's quasi-identifiers, that the person is in the table, and how the release was made"
    )
    (first, low), (last, high) = strictest, loosest
    if low == high:
        sentence = f"{adversary} can believe no value of {column} of that person with a probability above {text(low)} ({percent(low)})."
    else:
        sentence = (
            f"{adversary} can believe a value of {column} of that person with a probability of at most its threshold: from {text(low)} "
            f"({percent(low)}) for {first!r} to {text(high)} ({percent(high)}) for {last!r}."
        )
    if fake_values and real is None:
        sentence += (
            f" Each bucket also lists {fake_values} value(s) that belong to nobody, among those that no association learnt from the "
            "release rules out. Someone who knows how the release was made can tell which they are, and nothing is promised to someone "
            "who knows other records of the bucket."
        )
    elif fake_values and real is not None:
        least, most, guess = real
        sentence += (
            f" Each bucket also lists {fake_values} value(s) that belong to nobody, each value about as often as it is common: of the "
            f"buckets that list a value, between about {percent(least)} and {percent(most)} hold it, whichever value it is. To someone who "
            f"knows q of the |g| records of a bucket and none of other buckets, (|g|-q)/(|g|-q+{fake_values}) of the remaining values are "
            f"real. Of the last record, the likeliest value is the right one in about {percent(guess)} of the buckets at most; in a single "
            "bucket it may be surer than that where values are rare or buckets few. Nothing more is promised to someone who knows records "
            "of other buckets too."
        )
    return sentence if nodes is None else sentence + _nodes(column, nodes)


def _nodes(column: str, nodes: Sequence[Share], whom: str = "that person") -> str:
    """What is promised of values that stand under one node of a hierarchy."""
    if not nodes:
        return f" That {column} is one of the values under a node of the hierarchy may be certain: no node has a threshold."
    one = f" Nor can it be believed that {column} of {whom} is one of the values under"
    node, bound = nodes[0]
    if len(nodes) == 1:
        sentence = f"{one} {node!r} with a probability above {text(bound)} ({percent(bound)})."
    else:
        listing = ", ".join(f"{text(share)} ({percent(share)}) for {label!r}" for label, share in nodes[:NAMED])
        more = f" and what the manifest says for {len(nodes) - NAMED:,} more" if len(nodes) > NAMED else ""
        sentence = f"{one} a node of the hierarchy with a probability above the node's threshold: {listing}{more}."
    return f"{sentence} Of other nodes nothing is promised."


def thresholds_of_columns(columns: Sequence[str], each: Sequence[str]) -> str:
    """F'-privacy of two sensitive columns: what is promised of each, by `thresholds`, and what follows for both together."""
    first, second = columns
    return (
        f"{each[0]} {each[1]} Nor can a value of {first} together with one of {second} be believed with a probability above the smaller "
        f"threshold of the two. To someone who knows that person's value of {first}, or of {second}, nothing is promised of the other."
    )


def beliefs(column: str, rho1: Fraction | None, rho2: Fraction, protected: int, unprotected: Sequence[Share]) -> str:
    """(rho1, rho2)-privacy: the bound, how many values it covers, and those it does not cover with their shares, the largest first."""
    adversary = (
        "Someone who knows a person's quasi-identifiers, that the person is in the table, how common each value is, and how the release "
        "was made"
    )
    believed = f"none of the {protected} protected values" if unprotected else "no value"
    sentence = f"{adversary} can believe {believed} of {column} of that person with a probability above {text(rho2)} ({percent(rho2)})."
    if unprotected:
        assert rho1 is not None
        sentence += (
            f" Not protected {'is' if len(unprotected) == 1 else 'are'} {named(unprotected)}, as each makes up more than {text(rho1)} "
            "of the records."
        )
    return sentence


def beliefs_in_columns(combined: str, columns: Sequence[tuple[str, Fraction]]) -> str:
    """`combined`, what is promised of combinations, and what may be believed of a value of each column alone."""
    alone = ", ".join(f"{percent(belief)} of {column}" for column, belief in columns)
    return (
        f"{combined} That is a bound on combinations: a value of one column alone may be believed with up to {alone}."
    )


def named(values: Sequence[Share]) -> str:
    """The first of the values with their shares, and how many more there are."""
    listing = ", ".join(f"{value!r} ({percent(share)})" for value, share in values[:NAMED])
    return listing + (f" and {len(values) - NAMED:,} more" if len(values) > NAMED else "")


def matches(
    column: str,
    l: int | None,  # noqa: E741
    beta: Fraction | None,
    leaking: Sequence[str] = (),
    remainder: str | None = None,
    own: Sequence[Share] = (),
    nodes: Sequence[Share] | None = None,
) -> str:
    """Heterogeneous generalization: l-diversity or, without an l, beta-likeness by matches.

    leaking, remainder : parameters that were asked for by name, of `LEAKING` and `REMAINDERS`, and the adversary they give up on
    own, nodes         : values, and nodes of their hierarchy, that have a threshold, the strictest first; nodes is None without hierarchy
    """
    if l is not None and (own or nodes is not None):
        sentence = (
            f"Every published record may be that of any of the persons it matches, {l} or more, all with the same probability; among them "
            f"no value of {column} has a share above {text(Fraction(1, l))} ({percent(Fraction(1, l))})."
        )
    elif l is not None:
        sentence = (
            f"Every published record may be that of any of {l} persons, each with probability {text(Fraction(1, l))}, and "
            f"these have {l} different values of {column}."
        )
    else:
        sentence = (
            "Every published record may be that of any of the persons it matches, all with the same probability; among them no value of "
            f"{column} has more than {text(1 + (beta or Fraction(0)))} times its share of the whole table."
        )
    if own:
        listing = ", ".join(f"{text(share)} ({percent(share)}) for {value!r}" for value, share in own[:NAMED])
        more = f" and what the manifest says for {len(own) - NAMED:,} more" if len(own) > NAMED else ""
        sentence += (
            f" Nor can it be believed that {column} of a person is a value with a threshold of its own with a probability above that "
            f"threshold: {listing}{more}."
        )
    if nodes is not None:
        sentence += _nodes(column, nodes, "a person")
    for name in leaking:
        sentence += f" This does not hold against an adversary who knows {LEAKING[name]} ({name})."
    if remainder is not None:
        sentence += (
            " This does not hold against an adversary who knows who matches whom and how often each value occurs, which tells the values "
            f"that were {REMAINDERS[remainder]} (remainder)."
        )
    return f"{sentence} Nothing is promised against someone who knows other persons' values of {column}."


def matches_of_columns(column: str, other: str, l: int) -> str:  # noqa: E741  (the field's name)
    """l-diversity by matches of `column`, beside which the values of `other` are published and bounded too."""
    bound = Fraction(1, l)
    return (
        f"Every published record may be that of any of the persons it matches, {l} or more, all with the same probability; among them "
        f"no value of {column} has a share above {text(bound)} ({percent(bound)}). To someone who knows that person's value of {other}, "
        f"nothing is promised of {column}: it can tell which of them is that person. Nothing is promised against someone who knows other "
        f"persons' values of {column} or of {other}."
    )


def rings(column: str, l: int) -> str:  # noqa: E741  (the field's name)
    """Ring generalization: l-diversity by matches, told from the person's side."""
    return (
        f"Every person's record may be any of {l} published records, each with probability {text(Fraction(1, l))}, and these have {l} "
        f"different values of {column}."
    )


HOW_CLASSES_CAME = {
    "refined": "why classes were not split on (refine)",
    "published": "how classes were filled (neighbours)",
}
"""What an adversary must not know where the classes of `sabre` leak by minimality, for each way of making them."""


def closeness(column: str, distance: str, t: Fraction, k: int = 1, known: str | None = None) -> str:
    """t-closeness, with k-anonymity where k > 1. known : what an adversary must not know, where classes leak by minimality."""
    sentence = (
        f"Among the records that share their published quasi-identifiers, the values of {column} are spread as in the whole table up to "
        f"an earth mover's distance of {text(t)} (distance between values: {DISTANCES[distance]}; 1 is the farthest)."
    )
    if k > 1:
        sentence += f" At least {k} records share them."
    if known is not None:
        sentence += f" Against an adversary who knows {known} nothing is promised of what he infers about a person."
    return sentence


def closeness_in_windows(column: str, distance: str, t: Fraction, k: int, window: int, shard: str | None = None) -> str:
    """(omega, t)-closeness of a stream, with k-anonymity where k > 1. window : omega; shard : whose values have windows of their own."""
    of = f" of one {shard}" if shard is not None else ""
    sentence = (
        f"Among the records that share a class, the values of {column} are spread as in one window of {window:,} records{of} that arrived "
        f"one after another, up to an earth mover's distance of {text(t)} (distance between values: {DISTANCES[distance]}; 1 is the "
        "farthest)."
    )
    if k > 1:
        sentence += f" At least {k} records share a class."
    return (
        f"{sentence} When a class was shown tells when its records arrived; against an adversary who knows when a person's record arrived "
        "and how values changed within the window, nothing is promised beyond the window as a whole."
    )


def classes(column: str, asked: Mapping[str, Fraction], distance: str = "") -> str:
    """What is promised of equivalence classes: `asked` by the names that `anonlib.release.generalized` lists."""
    sentences = []
    if asked.get("k", Fraction(1)) > 1:
        sentences.append(
            f"Every record shares its published quasi-identifiers with at least {text(asked['k'] - 1)} others."
        )
    if "distinct_l" in asked:
        sentences.append(
            f"Among the records that share them, {column} has at least {text(asked['distinct_l'])} different values; how often each occurs "
            "is not bounded."
        )
    if "frequency_l" in asked:
        sentences.append(
            f"No value of {column} belongs to more than 1/{text(asked['frequency_l'])} of the records that share them."
        )
    if "beta" in asked:
        sentences.append(
            f"No value's share among them is more than {text(1 + asked['beta'])} times its share of the whole table."
        )
    if "enhanced_beta" in asked:
        sentences.append(
            f"No value's share among them is more than 1 + min({text(asked['enhanced_beta'])}, -ln p) times its share p of the whole table."
        )
    if "t" in asked:
        sentences.append(closeness(column, distance, asked["t"]))
    return " ".join(sentences) or "Nothing is promised."
