"""Of a release by matches, without its evidence: what the manifest says was found of nodes and of values, held against their thresholds."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from anonlib.audit.achieved import NAME as ACHIEVED
from anonlib.audit.generalized.facts import GeneralizedFacts
from anonlib.audit.generalized.judge import judge
from anonlib.audit.generalized.nodes_judge import OWN, own_bounds
from anonlib.audit.generalized.nodes_judge import SHARES as OF_NODES
from anonlib.audit.verdict import Verdict
from anonlib.exact import text
from anonlib.hierarchy import parse_hierarchy
from anonlib.methods.heterogeneous import words
from anonlib.release.manifest import NodePart
from anonlib.spec.methods.heterogeneous import Heterogeneous
from anonlib.words import matches_of_columns, rings
from tests import paper

TREE = parse_hierarchy("angina,heart,any\ninfarct,heart,any\nflu,lungs,any\nasthma,lungs,any\n")
VALUES = ("angina", "asthma", "flu", "infarct")
SHARES, NUMBERS = "achieved shares of illness", "achieved numbers for illness"
WANTED = Heterogeneous.model_validate({"l": 2, "thresholds": {"heart": "1/2", "flu": "1/4"}})


def verdict(of_flu: str | None = "1/4", of_heart: str | None = "0.5", telling: int | None = 0) -> Verdict:
    """On a published table alone, whose manifest says that so much was found of both."""
    facts, found = paper.matched(dict.fromkeys(VALUES, 2), [Counter(dict.fromkeys(VALUES, 1))] * 8, {"l": Fraction(2)})
    nodes = [
        NodePart(node="heart", count=4, threshold="0.5", achieved=of_heart, telling=telling),
        NodePart(node="lungs", count=4, achieved="0.5", telling=0),
    ]
    found["method"]["parameters"] = WANTED.to_public_dict()
    guarantee: dict[str, Any] = found["guarantee"]
    guarantee["words"] = words("illness", WANTED, VALUES, nodes)
    guarantee["hierarchy"], guarantee["nodes"] = TREE.rows, [node.model_dump() for node in nodes]
    for value in guarantee["values"]:
        own = value["value"] == "flu"
        value |= {"threshold": "0.25" if own else "0.5", "achieved": of_flu if own else value["achieved"]}
    if of_flu == "1/3":
        guarantee["achieved"] = {"l": "3"}  # what follows from it
    return judge(replace(facts, graph=None), paper.stating(found))


def test_what_is_within_its_threshold_passes() -> None:
    assert [str(check) for check in verdict().failures] == []


@pytest.mark.parametrize(
    ("of", "stated", "sentence"),
    [
        ("of_heart", "3/4", "the share of values under 'heart': found 0.75, asked at most 0.5"),
        ("of_heart", None, "the share of values under 'heart': asked, and nothing was found of it"),
        ("of_flu", "1/3", "the share of 'flu': found 1/3, asked at most 0.25"),
        ("of_flu", None, "the share of 'flu': asked, and nothing was found of it"),
    ],
)
def test_what_is_beyond_it_or_not_stated_fails(of: str, stated: str | None, sentence: str) -> None:
    failures = {check.name: check.evidence for check in verdict(**{of: stated}).failures}
    impossible = {
        ("of_flu", None): {SHARES: "'flu': stated None, which is no share"},
        ("of_heart", None): {OF_NODES: "'heart': stated None, it can be 0.5 to 0.5"},
        ("of_heart", "3/4"): {OF_NODES: "'heart': stated 3/4, it can be 0.5 to 0.5"},
    }
    assert failures == {ACHIEVED: sentence} | impossible.get((of, stated), {})


@pytest.mark.parametrize(("of_heart", "telling"), [("0.4", 0), ("0.6", 0), ("0.5", 1), ("0.5", None), ("0.5", -1)])
def test_a_share_of_a_node_goes_with_the_rows_and_the_values_under_it(of_heart: str, telling: int | None) -> None:
    """Half of the rows are under the node, and two values of which no match shows more than a quarter."""
    assert OF_NODES in {check.name for check in verdict(of_heart=of_heart, telling=telling).failures}


@pytest.mark.parametrize("of", ["of_heart", "of_flu"])
@pytest.mark.parametrize("stated", ["much", "1/0", "nan", ""])
def test_what_is_no_number_fails_too(of: str, stated: str) -> None:
    failures = {check.name for check in verdict(**{of: stated}).failures}
    assert ACHIEVED in failures
    assert failures <= {ACHIEVED, "the manifest's fields", SHARES if of == "of_flu" else OF_NODES}


def test_a_share_beyond_the_threshold_of_a_second_column_fails() -> None:
    """Every value of every column is held against its threshold, not those alone that have one of their own."""
    _, found = paper.matched(dict.fromkeys(VALUES, 2), [Counter(dict.fromkeys(VALUES, 1))] * 8, {"l": Fraction(2)})
    for value in found["guarantee"]["values"]:
        value["threshold"] = "0.5"
    second = {**found["guarantee"], "sensitive": "drug", "also": []}
    second["values"] = [{**v, "achieved": "0.75" if v["value"] == "flu" else v["achieved"]} for v in second["values"]]
    found["guarantee"]["also"] = [second]
    bounds, missing = own_bounds(paper.stating(found), staged=False)
    assert [str(bound) for bound in bounds if not bound.kept] == [
        "the share of 'flu' of drug: found 0.75, asked at most 0.5"
    ]
    assert len(bounds) == 2 * len(VALUES)
    assert not missing


Edit = Callable[[dict[str, Any]], None]
"""What is done to a part of a manifest, as a dictionary."""


def on_paper(asked: Mapping[str, Fraction], method: str = "heterogeneous") -> tuple[GeneralizedFacts, dict[str, Any]]:
    """Twelve records with four values, matched three by three; of two of the values there are four records each."""
    counts = {"angina": 2, "asthma": 2, "flu": 4, "infarct": 4}
    around = [{"flu": 1, "infarct": 1, "angina": 1}, {"flu": 1, "infarct": 1, "asthma": 1}]
    facts, found = paper.matched(counts, around * 6, asked, method)
    if method == "nh":
        found["guarantee"]["words"] = rings("illness", int(asked["l"]))
    return replace(facts, graph=None), found


def of_two_columns() -> tuple[GeneralizedFacts, dict[str, Any]]:
    """The same with a second column, whose values go with those of the first."""
    facts, found = on_paper({"l": Fraction(3)})
    second = {
        **copy.deepcopy(found["guarantee"]),
        "sensitive": "drug",
        "words": matches_of_columns("drug", "illness", 3),
    }
    found["guarantee"] |= {"words": matches_of_columns("illness", "drug", 3), "also": [second]}
    found["tables"]["microdata"]["columns"].append({"name": "drug", "type": "string", "role": "sensitive"})
    columns = {"microdata": (*facts.columns["microdata"], ("drug", "string"))}
    return replace(facts, columns=columns, distributions=facts.distributions * 2), found


RELEASES = {
    "l": lambda: on_paper({"l": Fraction(3)}),
    "beta": lambda: on_paper({"beta": Fraction(1)}),
    "nh": lambda: on_paper({"l": Fraction(3)}, "nh"),
    "of two columns": of_two_columns,
}


def of_value(at: int, **changed: str | None) -> Edit:
    return lambda part: part["values"][at].update(changed)


def of_numbers(**achieved: str) -> Edit:
    return lambda part: part["achieved"].update(achieved)


EDITS: dict[str, tuple[str, Edit, set[str]]] = {
    "a threshold and what was found beside it": ("l", of_value(0, threshold="1/2", achieved="1/2"), {OWN, NUMBERS}),
    "a threshold of rings": ("nh", of_value(2, threshold="1/2"), {OWN}),
    "a threshold left out": ("l", of_value(0, threshold=None), {OWN}),
    "a threshold that is no number": ("l", of_value(0, threshold="much"), {OWN, "the manifest's fields"}),
    "a threshold under beta": ("beta", of_value(3, threshold="3/4"), {OWN}),
    "a larger l": ("l", of_numbers(l="4"), {NUMBERS}),
    "a larger l of rings": ("nh", of_numbers(l="4"), {NUMBERS}),
    "a smaller beta": ("beta", of_numbers(beta="0.5"), {NUMBERS}),
    "no share": ("l", of_value(0, achieved=None), {SHARES}),
    "no share, of rings": ("nh", of_value(0, achieved=None), {SHARES}),
    "a share below that of the rows": ("l", of_value(2, achieved="1/4"), {SHARES}),
    "a share below, under beta": ("beta", of_value(0, achieved="1/7"), {SHARES}),
}


UNREAD: dict[str, tuple[str, Edit]] = {
    "a column of its own": ("of two columns", lambda part: part.update(also=[copy.deepcopy(part)])),
    "rows of a hierarchy": ("of two columns", lambda part: part.update(hierarchy=[["flu", "Ann: HIV"]])),
    "a node": ("of two columns", lambda part: part.update(nodes=[{"node": "Ann: HIV", "count": 1}])),
    "a distance": ("of two columns", lambda part: part.update(distance="ordered")),
    "a number that nobody asked for": ("of two columns", of_numbers(beta="1415")),
    "another model": ("of two columns", lambda part: part.update(model="beta-likeness by matches")),
    "the model of l": ("beta", lambda part: part.update(model="l-diversity by matches")),
    "a model of rings": ("nh", lambda part: part.update(model="t-closeness")),
}
"""What nobody reads, in the last column's part."""


@pytest.mark.parametrize("edit", UNREAD)
def test_what_nobody_reads_is_not_said(edit: str) -> None:
    release, change = UNREAD[edit]
    facts, found = RELEASES[release]()
    change([found["guarantee"], *found["guarantee"].get("also", [])][-1])
    assert {check.name for check in judge(facts, paper.stating(found)).failures} == {"the manifest's fields"}


@pytest.mark.parametrize("release", RELEASES)
def test_what_goes_together_passes(release: str) -> None:
    facts, found = RELEASES[release]()
    assert [str(check) for check in judge(facts, paper.stating(found)).failures] == []


@pytest.mark.parametrize("edit", EDITS)
def test_what_a_manifest_claims_beyond_its_parameters_and_its_rows_is_found(edit: str) -> None:
    release, change, failing = EDITS[edit]
    facts, found = RELEASES[release]()
    change(found["guarantee"])
    assert {check.name for check in judge(facts, paper.stating(found)).failures} == failing


@pytest.mark.parametrize("edit", [name for name, (release, *_) in EDITS.items() if release == "l"])
def test_the_same_of_a_second_column(edit: str) -> None:
    _, change, failing = EDITS[edit]
    facts, found = of_two_columns()
    change(found["guarantee"]["also"][0])
    of_drug = {name.replace("illness", "drug") if name != OWN else f"{OWN} for drug" for name in failing}
    assert {check.name for check in judge(facts, paper.stating(found)).failures} == of_drug


def test_a_value_of_which_no_row_is_left_has_no_share() -> None:
    """All its records are suppressed: nothing was found of it."""
    facts, found = on_paper({"beta": Fraction(2)})
    found["guarantee"]["values"].append({"value": "gout", "count": 1})
    for value in found["guarantee"]["values"]:
        value["threshold"] = text(min(Fraction(1), 3 * Fraction(value["count"], 13)))
    found["guarantee"]["achieved"]["beta"] = text(Fraction(7, 6))
    found["rows"] |= {"input": 13, "suppressed": 1}
    assert [str(check) for check in judge(facts, paper.stating(found)).failures] == []
    found["guarantee"]["values"][-1]["achieved"] = "1/13"
    assert {check.name for check in judge(facts, paper.stating(found)).failures} == {SHARES}


def test_staged_tables_are_not_taken_at_their_word() -> None:
    """Before publication the matches must be at hand: what a manifest states of them is no evidence."""
    facts, found = on_paper({"l": Fraction(3)})
    checks = {check.name: check.passed for check in judge(facts, paper.stating(found), staged=True).checks}
    assert not checks[ACHIEVED]
    assert SHARES not in checks
