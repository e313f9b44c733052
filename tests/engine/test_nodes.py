"""Thresholds on nodes of a hierarchy through the public door: published, explained, audited alone and with the original, refused."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import anonlib
from anonlib.audit.bucketized.audit import audit
from anonlib.hierarchy import parse_hierarchy
from anonlib.methods.bucketize import BucketChoice, choose_buckets, explained_buckets
from anonlib.privacy.counts import SensitiveCounts
from anonlib.release.manifest import Manifest
from anonlib.spec.load import load_spec
from anonlib.spec.methods.bucketize import Bucketize
from tests.door import people

pytestmark = pytest.mark.spark

TREE = {"asthma": "lungs", "cold": "lungs", "flu": "lungs", "gout": "others", "HIV": "others", "mumps": "others"}
ST = "bucket_id bigint, illness string, count bigint"
METHOD = {
    "bucketize": {
        "privacy": {"default": "2/3", "thresholds": {"lungs": "1/2", "HIV": "1/3"}},
        "max_bucket_size": 12,
        "time_limit": 10,
    }
}


def columns(door, hierarchy: str | None) -> dict:
    known = door.spec("-")["columns"]
    return known | {"sensitive": {"name": "illness", "hierarchy": hierarchy} if hierarchy else "illness"}


def test_a_release_keeps_and_tells_thresholds_of_nodes(door):
    tree = door.home / "illnesses.csv"
    tree.write_text("".join(f"{value},{node},any\n" for value, node in TREE.items()))
    table = people(66)
    source = door.input(table)
    outcome = door.run(source, method=METHOD, columns=columns(door, str(tree)))
    outcome.published()
    guarantee = outcome.manifest.guarantee
    assert "one of the values under 'lungs' with a probability above 0.5 (50.00 %)" in guarantee.words
    held: dict[int, Counter[str]] = {}
    for row in outcome.table("st"):
        held.setdefault(row["bucket_id"], Counter())[TREE[row["illness"]]] += row["count"]
    for node in guarantee.nodes:
        shares = [Fraction(bucket[node.node], bucket.total()) for bucket in held.values()]
        assert (Fraction(node.achieved), node.telling) == (max(shares), shares.count(Fraction(1)))
    by_name = {node.node: node for node in guarantee.nodes}
    assert Fraction(by_name["lungs"].achieved) <= Fraction(1, 2)
    assert (by_name["lungs"].threshold, by_name["others"].threshold) == ("0.5", None)
    code, checks = door.audit(outcome.output, source)
    assert code == 0, [check for check in checks if not check["passed"]]
    assert {"F'-privacy of nodes", "nodes of the hierarchy", "achieved shares of nodes"} <= {c["name"] for c in checks}

    opened = anonlib.open_release(str(outcome.output), door.spark)
    assert opened.count("illness IN NODE 'lungs'").low == by_name["lungs"].count == 33
    young = opened.count("age < 40 AND illness IN NODE 'lungs'")
    assert (
        young.low
        <= sum(
            age < 40 and TREE[v] == "lungs"
            for age, v in zip(table["age"].to_pylist(), table["illness"].to_pylist(), strict=True)
        )
        <= young.high
    )

    explained = json.loads(door.call("explain", str(door.home / "spec-1.yaml"), "--json").out)
    assert {n["node"]: n["largest"] for n in explained["nodes"]} == {n.node: n.achieved for n in guarantee.nodes}
    assert {n["node"]: n["telling"] for n in explained["nodes"]} == {n.node: n.telling for n in guarantee.nodes}

    # two buckets exchange values, so that each value stays within its threshold and the node does not
    st, manifest = outcome.table("st"), outcome.manifest
    qit = door.spark.read.parquet(str(outcome.output / "qit"))
    told = exchanged(st)
    changed = door.spark.createDataFrame([(r["bucket_id"], r["illness"], r["count"]) for r in told], ST)
    failed = {check.name for check in audit({"qit": qit, "st": changed}, manifest).failures}
    assert {"F'-privacy of nodes", "achieved is within asked", "achieved shares of nodes"} <= failed
    assert "F'-privacy" not in failed
    # a manifest that says more than the spec asked for, and one with a tree of its own
    looser = loosened(json.loads(manifest.to_json()))
    right = {"qit": qit, "st": door.spark.read.parquet(str(outcome.output / "st"))}
    assert {check.name for check in audit(right, looser).failures} == {"nodes of the hierarchy", "guarantee in words"}
    spec = load_spec(str(door.home / "spec-1.yaml"))
    other = json.loads(manifest.to_json())
    other["guarantee"]["hierarchy"].append(["measles", "others", "any"])
    failed = {check.name for check in audit(right, Manifest.model_validate(other), None, spec.columns).failures}
    assert failed == {"nodes of the hierarchy"}


def exchanged(st: list[dict]) -> list[dict]:
    """Two buckets of two records, each with one of lungs and one of others, as one of lungs alone and one of others alone."""
    by_bucket: dict[int, list[dict]] = {}
    for row in st:
        by_bucket.setdefault(row["bucket_id"], []).append(row)
    pairs = [
        rows
        for rows in by_bucket.values()
        if len(rows) == 2 and {TREE[r["illness"]] for r in rows} == set(TREE.values())
    ]
    one = next(rows for rows in pairs)
    other = next(rows for rows in pairs if not {r["illness"] for r in rows} & {r["illness"] for r in one})
    lungs = next(r for r in other if TREE[r["illness"]] == "lungs")
    others = next(r for r in one if TREE[r["illness"]] == "others")
    lungs["bucket_id"], others["bucket_id"] = others["bucket_id"], lungs["bucket_id"]
    return st


def loosened(facts: dict) -> Manifest:
    for node in facts["guarantee"]["nodes"]:
        if node["node"] == "lungs":
            node["threshold"] = "0.9"
    return Manifest.model_validate(facts)


def test_explain_shows_first_the_nodes_that_most_buckets_tell():
    counts = SensitiveCounts(tuple(TREE), np.array([40, 40, 5, 5, 5, 5], dtype=np.int64))
    tree = parse_hierarchy("".join(f"{value},{node},any\n" for value, node in TREE.items()))
    wanted = Bucketize.model_validate({"privacy": {"theta": 1, "offset": "0.1"}, "max_bucket_size": 20})
    choice = BucketChoice(counts, *choose_buckets(counts, wanted, None, tree))
    grid = explained_buckets("illness", choice).grids[-1]
    assert grid.columns[-1] == "buckets of nothing else"
    assert [row[0] for row in grid.rows] == ["lungs", "others"]
    assert int(grid.rows[0][-1]) > int(grid.rows[1][-1])


def test_what_cannot_be_kept_is_refused_with_a_sentence(door):
    tree = door.home / "illnesses.csv"
    tree.write_text("".join(f"{value},{node},any\n" for value, node in TREE.items()))
    source, named = door.input(people(66)), columns(door, str(tree))

    def asked(**changes):
        privacy = {"default": "2/3"} | changes.pop("privacy", {})
        return {"bucketize": {"privacy": privacy, "max_bucket_size": 12, **changes}}

    run = lambda method, roles=named: door.run(source, method=method, columns=roles)  # noqa: E731
    lungs = {"thresholds": {"lungs": "0.4"}}
    run(asked(privacy=lungs, time_limit=5)).refused(3, "'lungs': 33 of 66 records", "smallest that works 0.5")
    half = {"thresholds": {"lungs": "1/2"}}
    run(asked(privacy=half, solver="two_size")).refused(
        2, "method.bucketize.solver", "'lungs' is one; write solver: optimal"
    )
    run(asked(privacy=half, solver="two_size"), columns(door, None)).refused(
        2, "'lungs' does not occur in the sensitive column"
    )
    misspelt = {"thresholds": {"lugns": "1/2"}}
    run(asked(privacy=misspelt)).refused(2, "privacy.thresholds.lugns", "did you mean lungs?")
    run(asked(fake_values=1)).refused(2, "method.bucketize.fake_values", "beside fakes nobody can say")
