"""Of a release by matches, without its evidence: what the manifest says was found of nodes and of values, held against their thresholds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from anonlib.audit.achieved import NAME as ACHIEVED
from anonlib.audit.generalized.judge import judge
from anonlib.audit.generalized.nodes_judge import own_bounds
from anonlib.audit.verdict import Verdict
from anonlib.hierarchy import parse_hierarchy
from anonlib.methods.heterogeneous import words
from anonlib.release.manifest import NodePart
from anonlib.spec.methods.heterogeneous import Heterogeneous
from tests import paper

TREE = parse_hierarchy("angina,heart,any\ninfarct,heart,any\nflu,lungs,any\nasthma,lungs,any\n")
VALUES = ("angina", "asthma", "flu", "infarct")
WANTED = Heterogeneous.model_validate({"l": 2, "thresholds": {"heart": "1/2", "flu": "1/4"}})


def verdict(of_flu: str | None = "1/4", of_heart: str | None = "0.5") -> Verdict:
    """On a published table alone, whose manifest says that so much was found of both."""
    facts, found = paper.matched(dict.fromkeys(VALUES, 2), [Counter(dict.fromkeys(VALUES, 1))] * 8, {"l": Fraction(2)})
    nodes = [
        NodePart(node="heart", count=4, threshold="0.5", achieved=of_heart, telling=0),
        NodePart(node="lungs", count=4, achieved="0.5", telling=0),
    ]
    found["method"]["parameters"] = WANTED.to_public_dict()
    guarantee: dict[str, Any] = found["guarantee"]
    guarantee["words"] = words("illness", WANTED, VALUES, nodes)
    guarantee["hierarchy"], guarantee["nodes"] = TREE.rows, [node.model_dump() for node in nodes]
    for value in guarantee["values"]:
        own = value["value"] == "flu"
        value |= {"threshold": "0.25" if own else "0.5", "achieved": of_flu if own else value["achieved"]}
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
    assert failures == {ACHIEVED: sentence}


@pytest.mark.parametrize("of", ["of_heart", "of_flu"])
@pytest.mark.parametrize("stated", ["much", "1/0", "nan", ""])
def test_what_is_no_number_fails_too(of: str, stated: str) -> None:
    failures = {check.name for check in verdict(**{of: stated}).failures}
    assert ACHIEVED in failures
    assert failures <= {ACHIEVED, "the manifest's fields"}


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
