"""What heterogeneous generalization may be asked for, and the sentence that says what not."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anonlib import words as sentences
from anonlib.audit.promised import generalized
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.hierarchy import Hierarchy, parse_hierarchy
from anonlib.methods import heterogeneous as recipe
from anonlib.methods.heterogeneous import bucketing, node_parts, whole_table, words
from anonlib.privacy.counts import SensitiveCounts
from anonlib.release.manifest import ValuePart
from anonlib.spec.hierarchy_rules import HierarchyRule
from anonlib.spec.load import parse_spec
from anonlib.spec.methods.heterogeneous import Heterogeneous


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({"l": 3, "far_apart": True}, "allow_minimality_leak: true"),
        ({"l": 3, "refine": True}, "refine lets quasi-identifiers decide .* allow_minimality_leak: true"),
        ({"l": 3, "allow_minimality_leak": True}, "nothing here leaks"),
        ({"beta": 2, "far_apart": True, "allow_minimality_leak": True}, "only l-diversity has a far_apart mode"),
        ({}, "one promise"),
        ({"l": 3, "beta": 2}, "one promise"),
        ({"l": 3, "matching": "best"}, "hungarian"),
        ({"l": 3, "remainder": "dummy"}, "under l buckets always come out even, .* leave it out"),
        ({"l": 3, "remainder": "suppress"}, "under l buckets always come out even"),
        ({"beta": 3, "remainder": "pool"}, "dummy"),
        (
            {"l": 3, "thresholds": {"flu": "1/3"}},
            r"thresholds\.flu: l: 3 keeps every value to 1/3 .* would change nothing",
        ),
        ({"l": 3, "thresholds": {"flu": "5/4"}}, r"thresholds\.flu: .*share"),
        ({"l": 3, "thresholds": ["flu"]}, "not a mapping"),
        (
            {"beta": 3, "thresholds": {"flu": "1/4"}, "remainder": "dummy"},
            "thresholds: remainder knows no thresholds of nodes or values",
        ),
        (
            {"l": 3, "thresholds": {"flu": "1/4"}, "refine": True, "allow_minimality_leak": True},
            "refine knows no thresholds of nodes or values",
        ),
    ],
)
def test_a_bad_parameter_is_named(method: dict[str, Any], sentence: str) -> None:
    columns = {"quasi_identifiers": ["a"], "sensitive": "b"}
    with pytest.raises(SpecError, match=sentence):
        parse_spec({"columns": columns, "method": {"heterogeneous": method}}, given_frame=True)


@pytest.mark.parametrize("promise", [{"l": 4, "beta": None}, {"l": None, "beta": Fraction(3)}])
def test_the_promise_says_that_insiders_are_left_out(promise: dict[str, Any]) -> None:
    for leaking in ((), ("refine",)):
        said = sentences.matches("occupation", leaking=leaking, **promise)
        assert said.endswith(" Nothing is promised against someone who knows other persons' values of occupation.")


def test_what_a_remainder_gives_up_is_said_where_one_is_asked_for() -> None:
    """By default nothing is left over; the paper's buckets are asked for by name, and the guarantee says against whom they do not hold."""
    assert Heterogeneous(beta=2).remainder is None
    assert "does not hold" not in words("illness", Heterogeneous(beta=2))
    for remainder, what in (("dummy", "made up"), ("suppress", "left out")):
        said = words("illness", Heterogeneous(beta=2, remainder=remainder))
        assert (
            f"who knows who matches whom and how often each value occurs, which tells the values that were {what} (remainder)"
            in said
        )
    far = Heterogeneous(l=3, far_apart=True, remainder="suppress", allow_minimality_leak=True)
    assert "remainder" not in words("illness", far)


def test_the_audit_says_the_same_of_a_remainder() -> None:
    for remainder in (None, "dummy", "suppress"):
        wanted = Heterogeneous(beta="1.5", remainder=remainder)
        part = SimpleNamespace(sensitive="illness", asked={"beta": "3/2"}, hierarchy=[], also=[])
        method = SimpleNamespace(name="heterogeneous", parameters=wanted.to_public_dict())
        assert generalized(SimpleNamespace(method=method, guarantee=part), part, classes=False) == words(
            "illness", wanted
        )


TREE = parse_hierarchy("angina,heart,any\ninfarct,heart,any\nflu,lungs,any\nasthma,lungs,any\n")


def asked(
    thresholds: dict[str, str], hierarchy: Hierarchy | HierarchyRule | None = TREE, **promise: Any
) -> Heterogeneous:
    sensitive = {"name": "b", "hierarchy": hierarchy} if hierarchy is not None else "b"
    columns = {"quasi_identifiers": ["a"], "sensitive": sensitive}
    method = {"heterogeneous": {**(promise or {"l": 3}), "thresholds": thresholds}}
    read = parse_spec({"columns": columns, "method": method}, given_frame=True).method
    assert isinstance(read, Heterogeneous)
    return read


def test_nodes_and_values_may_have_thresholds_beside_l_or_beta() -> None:
    wanted = asked({"heart": "1/2", "flu": "1/5"})
    assert wanted.thresholds == {"heart": Fraction(1, 2), "flu": Fraction(1, 5)}
    assert wanted.to_public_dict()["thresholds"] == {"heart": "0.5", "flu": "0.2"}
    assert "thresholds" not in asked({}).to_public_dict()
    assert asked({"flu": "1/2"}, beta=2).thresholds == {"flu": Fraction(1, 2)}  # the lower of the two is kept
    with pytest.raises(SpecError, match=r"thresholds\.hart: 'hart' is no value and no node .* mean heart"):
        asked({"hart": "1/2"})
    with pytest.raises(SpecError, match="l: 3 keeps every value to 1/3"):
        asked({"flu": "1/2"})
    with pytest.raises(SpecError, match="bounds nodes that are known before the table is"):
        asked({}, HierarchyRule("prefix", (1,)))


def test_what_is_named_must_be_there() -> None:
    counts = SensitiveCounts(("angina", "flu", "infarct"), np.array([4, 5, 3]))
    with pytest.raises(SpecError, match="'any' stands above all values"):
        bucketing(counts, asked({"any": "1/2"}), TREE)
    with pytest.raises(
        SpecError, match="'heart' does not occur in the sensitive column, and its column has no hierarchy"
    ):
        bucketing(counts, asked({"heart": "1/3"}, None, beta=1), None)
    limits = bucketing(counts, asked({"heart": "2/3", "asthma": "1/4"}), TREE).limits
    assert limits is not None
    assert (limits.labels, limits.nodes) == (("heart",), (Fraction(2, 3),))
    assert bucketing(counts, asked({}), TREE).limits is None
    assert bucketing(counts, asked({}, beta=2), TREE).limits is None
    assert bucketing(counts, Heterogeneous(l=3), None).limits is None


def test_what_is_too_frequent_is_named_with_what_could_be_asked() -> None:
    counts = SensitiveCounts(("angina", "asthma", "flu", "infarct"), np.array([4, 5, 3, 3]))

    def refusal(thresholds: dict[str, str], **promise: Any) -> str:
        promised = bucketing(counts, asked(thresholds, **promise), TREE)
        with pytest.raises(Unsatisfiable) as refused:
            whole_table("illness", counts, promised)
        return str(refused.value)

    said = refusal({"heart": "2/5", "flu": "1/6"}, l=3)
    assert "2 value(s) or node(s)" in said
    assert (
        "'heart': 7 of 15 records (46.6667%), threshold 0.4, smallest that works 7/15 (0.4667); 0.5 asks for 2 matches or more"
        in said
    )
    assert (
        "'flu': 3 of 15 records (20.0000%), threshold 1/6 (0.1667), smallest that works 0.2; 0.25 asks for 4 matches or more"
        in said
    )
    assert "'asthma' in column 'illness' has 5 of 15 records, more than one in 4" in refusal({"heart": "2/5"}, l=4)
    assert "'heart'" in refusal({"heart": "2/5"}, beta=20)
    assert whole_table("illness", counts, bucketing(counts, asked({"heart": "7/15"}), TREE))


def test_no_threshold_above_1_is_offered() -> None:
    """Of a node that everybody is under: 29 is a prime, and 28 records in four buckets of seven leave one over."""
    counts = SensitiveCounts(("angina", "infarct"), np.array([14, 15]))
    promised = bucketing(counts, asked({"heart": "1/2"}, beta=1), TREE)
    with pytest.raises(Unsatisfiable, match="smallest that works 1; 1 asks for 2 matches or more"):
        whole_table("illness", counts, promised)


def test_so_many_matches_that_nobody_could_find_them_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "MAX_BUCKET", 10)
    counts = SensitiveCounts(("angina", "asthma", "flu", "infarct"), np.array([7, 7, 7, 8]))
    promised = bucketing(counts, asked({"heart": "15/29"}), TREE)
    with pytest.raises(Unsatisfiable, match="some records would have to match 29, and") as refused:
        whole_table("illness", counts, promised)
    assert str(refused.value).endswith("'heart': 15 of 29 records (51.7241%), threshold 15/29 (0.5173)")
    strict = bucketing(counts, asked({"flu": "1/12"}, beta=9), TREE)
    with pytest.raises(Unsatisfiable, match="'flu': 7 of 29 records"):
        whole_table("illness", counts, strict)


def test_the_guarantee_says_what_thresholds_there_are_and_the_audit_the_same() -> None:
    counts = SensitiveCounts(("angina", "asthma", "flu", "infarct"), np.array([4, 5, 4, 3]))
    for promise, head in (({"l": 3}, "3 or more, all with the same probability"), ({"beta": "3/2"}, "2.5 times")):
        for thresholds, sentence in (
            ({"heart": "1/2"}, "one of the values under 'heart' with a probability above 0.5 (50.00 %)"),
            ({"heart": "1/2", "flu": "1/4"}, "above that threshold: 0.25 (25.00 %) for 'flu'."),
            ({}, "may be certain: no node has a threshold"),
        ):
            wanted = asked(thresholds, **promise)
            nodes = node_parts(counts, wanted, TREE)
            said = words("illness", wanted, counts.values, nodes)
            assert head in said
            assert sentence in said
            values = [ValuePart(value=v, count=1) for v in counts.values]
            numbers = {name: str(number) for name, number in promise.items()}
            part = SimpleNamespace(
                sensitive="illness", asked=numbers, hierarchy=TREE.rows, nodes=nodes, values=values, also=[]
            )
            method = SimpleNamespace(name="heterogeneous", parameters=wanted.to_public_dict())
            assert generalized(SimpleNamespace(method=method, guarantee=part), part, classes=False) == said
