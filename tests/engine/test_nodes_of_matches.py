"""Thresholds on nodes under heterogeneous generalization, through the public door: counted again on the matches that a release left.

At night: at every change the kernel and the audit keep them without Spark, and what matches tell of nodes is counted in
`tests/engine/test_heterogeneous.py`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib.audit.generalized.audit import audit
from anonlib.release.manifest import Manifest
from tests.door import people
from tests.thorough import nightly

pytestmark = [pytest.mark.spark, nightly]

TREE = {"asthma": "lungs", "cold": "lungs", "flu": "lungs", "gout": "others", "HIV": "others", "mumps": "others"}
VALUES = (*TREE, "gout", "mumps")
N = 120


@pytest.fixture
def named(door):
    tree = door.home / "illnesses.csv"
    tree.write_text("".join(f"{value},{node},any\n" for value, node in TREE.items()))
    columns = door.spec("-")["columns"]
    return columns | {
        "identifiers": columns.pop("other"),
        "sensitive": {"name": "illness", "hierarchy": str(tree)},
    }


def shuffled() -> object:
    table = people(N, VALUES)
    order = np.random.default_rng(2).permutation(N)
    return table.set_column(3, "illness", table["illness"].take(order))


class Made:
    """A release with thresholds of a node and of a value, its table, its manifest and its evidence."""

    def __init__(self, door, named) -> None:
        wanted = {
            "l": 3,
            "thresholds": {"lungs": "3/5", "HIV": "1/4"},
            "matching": "greedy",
            "partition_size": 60,
        }
        self.source, kept = door.input(shuffled()), door.home / "evidence"
        output = {"path": str(door.home / "release"), "evidence": str(kept)}
        spec = door.spec(self.source, method={"heterogeneous": wanted}, columns=named) | {"output": output}
        self.outcome = door.run_spec(spec)
        self.manifest = self.outcome.published().manifest
        self.evidence = kept / "matches"


def counted_again(made: Made) -> tuple[Counter, Counter, Fraction]:
    """(largest share of each node among the matches of a record, records that match nothing else, the largest belief in lungs)."""
    values = [v.value for v in made.manifest.guarantee.values]
    of = {(row["partition"], row["record"]): row for row in pq.read_table(made.evidence).to_pylist()}
    around, largest, telling = defaultdict(Counter), Counter(), Counter()
    for (partition, _), row in of.items():
        held = Counter(TREE[values[of[partition, i]["s0"]]] for i in row["matches"])
        for node, number in held.items():
            largest[node] = max(largest[node], Fraction(number, held.total()))
            telling[node] += number == held.total()
        for i in row["matches"]:
            around[partition, i][TREE[values[of[partition, row["assigned"]]["s0"]]]] += 1
    return largest, telling, max(Fraction(held["lungs"], held.total()) for held in around.values())


def test_a_release_keeps_and_tells_thresholds_of_nodes(door, named):
    made = Made(door, named)
    guarantee = made.manifest.guarantee
    assert "one of the values under 'lungs' with a probability above 0.6 (60.00 %)" in guarantee.words
    assert "above that threshold: 0.25 (25.00 %) for 'HIV'" in guarantee.words
    assert {v.value: v.threshold for v in guarantee.values} == dict.fromkeys(TREE, "1/3") | {"HIV": "0.25"}
    largest, telling, believed = counted_again(made)
    assert max(largest["lungs"], believed) <= Fraction(3, 5)
    assert {node.node: (node.threshold, Fraction(node.achieved), node.telling) for node in guarantee.nodes} == {
        "lungs": ("0.6", largest["lungs"], telling["lungs"]),
        "others": (None, largest["others"], telling["others"]),
    }
    checks = {check.name for check in made.manifest.audit.checks}
    assert {"nodes of the hierarchy", "thresholds as asked"} <= checks
    assert {"nodes among the matches", "what may be believed of nodes"} <= checks


def test_what_a_manifest_says_beyond_its_matches_is_found(door, named):
    made = Made(door, named)
    outcome, manifest = made.outcome, made.manifest
    code, checks = door.audit(outcome.output, made.source)
    assert code == 0, [check for check in checks if not check["passed"]]
    assert {"nodes of the hierarchy", "thresholds as asked"} <= {check["name"] for check in checks}

    explained = json.loads(door.call("explain", str(door.home / "spec-1.yaml"), "--json").out)
    assert {n["node"]: n["threshold"] for n in explained["nodes"]} == {"lungs": "0.6", "others": None}
    assert Fraction(explained["nodes"][0]["largest"]) <= Fraction(3, 5)
    opened = anonlib.open_release(str(outcome.output), door.spark)
    assert opened.count("illness IN NODE 'lungs'").estimate == pytest.approx(N * 3 / 8)

    # one that promises more than its matches keep, and one that says more than its parameters
    tables = {"microdata": door.spark.read.parquet(str(outcome.output / "microdata"))}
    graph = {"matches": door.spark.read.parquet(str(made.evidence))}
    stronger = json.loads(manifest.to_json().replace("0.6 (60.00 %)", "0.45 (45.00 %)"))
    stronger["method"]["parameters"]["thresholds"]["lungs"] = "0.45"
    stronger["guarantee"]["nodes"][0]["threshold"] = "0.45"
    assert Fraction(manifest.guarantee.nodes[0].achieved) > Fraction(45, 100)
    failed = {check.name for check in audit(tables, Manifest.model_validate(stronger), evidence=graph).failures}
    assert failed == {"nodes among the matches", "what may be believed of nodes", "achieved is within asked"}
    assert {c.name for c in audit(tables, Manifest.model_validate(stronger)).failures} == {"achieved is within asked"}
    looser = json.loads(manifest.to_json())
    looser["guarantee"]["nodes"][0]["threshold"] = "0.9"
    looser["guarantee"]["values"][0]["threshold"] = "0.9"
    failed = {check.name for check in audit(tables, Manifest.model_validate(looser)).failures}
    assert failed == {"nodes of the hierarchy", "thresholds as asked", "guarantee in words"}


def test_what_cannot_be_kept_is_refused_with_a_sentence(door, named):
    source = door.input(people(66))
    run = lambda **wanted: door.run(source, method={"heterogeneous": wanted}, columns=named)  # noqa: E731
    run(l=3, thresholds={"lungs": "0.4"}).refused(3, "'lungs': 33 of 66 records", "smallest that works 0.5")
    run(l=3, thresholds={"longs": "0.4"}).refused(2, "method.heterogeneous.thresholds.longs", "did you mean lungs?")
    run(beta=3, thresholds={"lungs": "1/2"}).published()
