"""All attacks, one line each: what it is, which layouts it is played on, which function plays it, and what is said where it is not.

`docs/attacks.md` and `anonlib evaluate --attacks` both list this table; nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonlib.evaluation.attacks import Attack
from anonlib.evaluation.attacks_registry_words import BY_MANY

BUCKETIZED, CLASSES, MATCHED, PERTURBED = "bucketized", "classes", "matched", "perturbed"
"""Kinds of release: buckets; boxes of equivalence classes; a box for each record; perturbed values."""
LAYOUTS = (BUCKETIZED, CLASSES, MATCHED, PERTURBED)
OF_ROWS = ("re-identification",)
"""Attacks that find a person's row, whatever is sensitive in it."""


@dataclass(frozen=True)
class Entry:
    """One attack. name : as reported; several reported names may begin with it ("corruption, 2 known")

    on        : the kinds of release it is played on
    function  : what plays it, as module:name; empty where nothing does
    bound     : what it is up against
    elsewhere : {kind of release: why it is not played there}
    """

    name: str
    on: tuple[str, ...]
    function: str
    bound: str
    elsewhere: Mapping[str, str]

    def covers(self, reported: str) -> bool:
        """Whether this entry stands for an attack reported under that name."""
        return reported == self.name or reported.startswith(f"{self.name}, ")


REGISTRY: tuple[Entry, ...] = (
    Entry(
        "re-identification",
        LAYOUTS,
        "anonlib.evaluation.attacks_reidentification:reidentification",
        "1/k in classes under k-anonymity, 1/l under l matches; else none: quasi-identifiers are published as they are",
        {},
    ),
    Entry(
        "homogeneity",
        (BUCKETIZED, CLASSES, MATCHED),
        "anonlib.evaluation.attacks_homogeneity:homogeneity",
        "the promise itself: thresholds, 1/l, (1 + beta) p, p + t",
        {
            PERTURBED: "a record's sub-table is known and its value is not among equals: what is believed is the posterior"
        },
    ),
    Entry(
        "skewness",
        (BUCKETIZED, CLASSES, MATCHED),
        "anonlib.evaluation.attacks_skewness:skewness",
        "as homogeneity, by value",
        {PERTURBED: "no group lists values; the belief that moves most is told by the posterior"},
    ),
    Entry(
        "posterior",
        (PERTURBED,),
        "anonlib.evaluation.attacks_posterior:posterior",
        "rho2, for every value that is protected",
        dict.fromkeys((BUCKETIZED, CLASSES, MATCHED), "no sensitive value is perturbed"),
    ),
    Entry(
        "corruption",
        (BUCKETIZED, CLASSES, PERTURBED),
        "anonlib.evaluation.attacks:Corruption",
        "1/(|g| - q + s) on average over the values left, with s fakes; none of a single value, without fakes, or on perturbed values",
        {MATCHED: "there are no groups: who knows others' values is played as insiders"},
    ),
    Entry(
        "negative association",
        (BUCKETIZED,),
        "anonlib.evaluation.attacks:negative_association",
        "1/(1 + s) with fakes that no rule rules out (avoid_negative_associations); else none",
        {
            CLASSES: "what rules out values is learnt by the deFinetti attack, of which this is the simplest case",
            MATCHED: "what rules out values is learnt by the deFinetti attack, of which this is the simplest case",
            PERTURBED: "a record's value is not one of a short list that could be struck from",
        },
    ),
    Entry(
        "deFinetti",
        (BUCKETIZED, CLASSES, MATCHED),
        "anonlib.evaluation.attacks_definetti:DeFinetti",
        BY_MANY,
        {
            PERTURBED: "counts by quasi-identifiers are reconstructed without bias from the release: there is nothing to refine"
        },
    ),
    Entry(
        "unmixing",
        (BUCKETIZED,),
        "anonlib.evaluation.attacks_unmixing:unmixing",
        BY_MANY,
        {
            CLASSES: "boxes show intervals and sets for quasi-identifiers: what they tell together is learnt by naive Bayes",
            MATCHED: "boxes show intervals and sets for quasi-identifiers: what they tell together is learnt by naive Bayes",
            PERTURBED: "counts by quasi-identifiers are reconstructed without bias from the release: there is nothing to refine",
        },
    ),
    Entry(
        "naive Bayes",
        (CLASSES, MATCHED),
        "anonlib.evaluation.attacks_naive_bayes:NaiveBayes",
        BY_MANY,
        {
            BUCKETIZED: "the first round of the deFinetti attack, which goes on from there; with better tables it is played as unmixing",
            PERTURBED: "its tables are counts, which the release gives without bias; what they tell of many is what it is for",
        },
    ),
    Entry(
        "elimination",
        (MATCHED,),
        "anonlib.evaluation.attacks_elimination:elimination",
        "1/l; under beta (1 + beta) p",
        {
            BUCKETIZED: "a bucket's values are listed once for all its records: none is ruled out by another",
            CLASSES: "a class's values are listed once for all its records: none is ruled out by another",
            PERTURBED: "every record shows a value of its own; none rules out another",
        },
    ),
    Entry(
        "insiders",
        (),
        "",
        "none promised: the promise is kept against those who know nobody's value",
        {MATCHED: "not played on a release: the graph is not published; `python -m benchmarks.beliefs --insiders`"}
        | dict.fromkeys((BUCKETIZED, CLASSES, PERTURBED), "played as corruption"),
    ),
    Entry(
        "minimality",
        LAYOUTS,
        "anonlib.evaluation.attacks_decisions:decisions",
        "no decision looks at quasi-identifiers and sensitive values together, unless the spec allows it by name",
        {},
    ),
    Entry(
        "outermost record",
        (CLASSES,),
        "anonlib.evaluation.attacks_minimality:minimality",
        "none promised: the chance of a value in its class is what it is compared with",
        {
            BUCKETIZED: "a bucket's records are drawn by the key, wherever they lie",
            MATCHED: "there are no classes",
            PERTURBED: "there are no classes",
        },
    ),
)


def figures_by_column(of: Mapping[str, Mapping[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """{attack: its figures} of a release with these sensitive columns, in the order of the registry, from {column: those on it alone}.

    Of several columns an attack on values is reported as "attack, column"; one on rows, whatever they hold, and one that is not played for
    the same reason on any, stand once, under their names.
    """
    first = next(iter(of.values()))
    if len(of) == 1:
        return dict(first)
    answer: dict[str, dict[str, Any]] = {}
    for entry in REGISTRY:
        for name in dict.fromkeys(name for each in of.values() for name in each if entry.covers(name)):
            own = {column: each[name] for column, each in of.items() if name in each}
            words = {each["words"] for each in own.values() if set(each) == {"words"}}
            alike = len(own) == len(of) and all(set(each) == {"words"} for each in own.values()) and len(words) == 1
            if entry.name in OF_ROWS or alike:
                answer[name] = first[name]
            else:
                answer |= {f"{name}, {column}": each for column, each in own.items()}
    return answer


def figures_by_attack(kind: str, attacks: Sequence[Attack], words: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """{attack: its figures} in the order of the registry, and for those not played {"words": why}.

    kind    : of release, one of `LAYOUTS`; attacks : those that were played
    words   : {attack: what is said of this release} of attacks that have no figures, or that could not be played on it

    Raises AssertionError for an attack that the registry does not have.
    """
    answer: dict[str, dict[str, Any]] = {}
    for entry in REGISTRY:
        played = {one.name: one.to_dict() for one in attacks if entry.covers(one.name)}
        if played:
            answer |= played
        else:
            answer[entry.name] = {"words": words.get(entry.name) or entry.elsewhere[kind]}
    lost = [one.name for one in attacks if one.name not in answer]
    if lost:
        raise AssertionError(f"attacks without an entry in the registry: {lost}")
    return answer
