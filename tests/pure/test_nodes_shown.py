"""What was asked and achieved of nodes of the sensitive values' hierarchy, in the report and on the screen of a run."""

from __future__ import annotations

import pytest

from anonlib.release.manifest import Manifest, NodePart
from anonlib.reports.promise import asked_and_achieved
from tests.reported import NASTY, Page, facts

NODES = [
    NodePart(node="free", count=200, threshold=None, achieved="1", telling=41),
    NodePart(node="loose", count=100, threshold="1/2", achieved="1/4", telling=0),
    NodePart(node=NASTY, count=300, threshold="1/3", achieved="1/3", telling=7),
]


def with_nodes(nodes: list[NodePart]) -> Manifest:
    manifest = facts("bucketized").manifest
    return manifest.model_copy(update={"guarantee": manifest.guarantee.model_copy(update={"nodes": nodes})})


def test_a_report_has_every_node_with_its_bound_the_least_protected_first() -> None:
    text = Page(asked_and_achieved(facts("bucketized", manifest=with_nodes(NODES)))).text
    own = text[text.index("node by node of its hierarchy") :]
    assert f"{NASTY} 300 30 % 33.3 % 33.3 % 7" in own
    assert "loose 100 10 % 50 % 25 % 0" in own
    assert "free 200 20 % no bound 100 % 41" in own
    assert own.index(NASTY) < own.index("loose") < own.index("free")
    assert "node by node" not in Page(asked_and_achieved(facts("bucketized"))).text


def test_of_matches_it_is_records_that_are_told() -> None:
    manifest = facts("matched").manifest
    with_some = manifest.model_copy(update={"guarantee": manifest.guarantee.model_copy(update={"nodes": NODES})})
    text = Page(asked_and_achieved(facts("matched", manifest=with_some))).text
    own = text[text.index("node by node of its hierarchy") :]
    assert "records that match nothing else" in own
    assert "largest share among the matches of any record" in own
    assert f"{NASTY} 300" in own


def test_the_screen_of_a_run_shows_nodes() -> None:
    pytest.importorskip("pyspark", reason="the command line starts sessions")
    from anonlib import screen

    def shown(nodes: list[NodePart]) -> list[list[str]]:
        with screen.out.capture() as captured:
            screen._show_nodes(with_nodes(nodes))
        return [line.split() for line in captured.get().splitlines()]

    plain = [NODES[0], NODES[1], NODES[2].model_copy(update={"node": "tight"})]
    assert shown(plain)[1:] == [
        ["tight", "300", "33.3333%", "33.3333%", "7"],
        ["loose", "100", "50.0000%", "25.0000%", "0"],
        ["free", "200", "none", "100.0000%", "41"],
    ]
    assert shown([]) == []
    many = [NODES[1].model_copy(update={"node": f"node{i}"}) for i in range(7)]
    assert shown(many)[-1] == ["...", "and", "2", "nodes"]
