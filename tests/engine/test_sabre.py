"""SABRE from the public door: what it promises is counted again on what it published, by SciPy's distance and by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import wasserstein_distance

import anonlib
import anonlib.exact
from anonlib.engine import curve_ranks
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.hierarchy import parse_hierarchy
from anonlib.spec.load import parse_spec
from anonlib.workflow import explain, run
from tests.thorough import some

pytestmark = pytest.mark.spark

TREE = parse_hierarchy("a,x,any\nb,x,any\nc,y,any\nd,y,any\ne,y,any\nf,f,any")
QI = ({"name": "age", "type": "numeric"}, {"name": "job", "hierarchy": TREE}, "town")
ILLNESSES = parse_hierarchy("asthma,lung,any\ncold,lung,any\nflu,lung,any\ngout,joint,any\nmumps,gland,any\n")
ILL = ("asthma", "cold", "flu", "gout", "mumps")
N, T = 720, 0.3
PAY = {"name": "pay", "type": "numeric"}
SICK = {"name": "illness", "hierarchy": ILLNESSES}


def table() -> pa.Table:
    """Persons whose pay and illness go with their age; one town is missing."""
    rng = np.random.default_rng(8)
    age = rng.integers(18, 90, N)
    pay = np.clip(age // 9 + rng.integers(-3, 4, N), 0, 9) * 100
    return pa.table(
        {
            "age": pa.array(age, pa.int16()),
            "job": [("a", "b", "c", "d", "e", "f")[i] for i in rng.integers(0, 6, N)],
            "town": [("Ica", "Ürgüp", None)[i] for i in rng.integers(0, 3, N)],
            "pay": pa.array(pay, pa.int64()),
            "illness": [ILL[min(4, int(rng.integers(0, 5)) * int(a) // 60)] for a in age],
        }
    )


LEAK = {"allow_minimality_leak": True}
WAYS = {
    "default": {"k": 4},
    "in partitions": {"k": 4, "partition_size": 120},
    "in partitions of less than k": {"k": 9, "partition_size": 2},
    "refined": {"k": 4, "refine": True, **LEAK},
    "refined in partitions": {"k": 4, "partition_size": 120, "refine": True, **LEAK},
    "approximate in partitions": {"k": 3, "neighbours": "approximate", "partition_size": 150, **LEAK},
    "exact": {"k": 3, "neighbours": "exact", **LEAK},
}
NOW = some(WAYS, "in partitions", "refined", "exact")


SEVERAL = {
    "several": {"partition_size": 300},
    "several, approximate": {"neighbours": "approximate", "partition_size": 200, **LEAK},
}
SEVERAL_NOW = some(SEVERAL, "several, approximate")


@pytest.fixture(scope="module")
def releases(spark, tmp_path_factory):
    """{name: the release}"""
    folder = tmp_path_factory.mktemp("sabre")
    monkey = pytest.MonkeyPatch()
    monkey.setenv("ANONLIB_KEY", "dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b")
    pq.write_table(table(), folder / "table.parquet")
    df = spark.read.parquet(str(folder / "table.parquet"))
    common = {"quasi_identifiers": QI, "t": str(T), "key": "env:ANONLIB_KEY"}
    found = {
        name: anonlib.sabre(df, sensitive=PAY, identifiers=["illness"], output=str(folder / name), **common, **way)
        for name, way in WAYS.items()
        if name in NOW
    }
    with monkey.context() as as_large_tables:
        as_large_tables.setattr(curve_ranks, "ONE_TASK", 0)  # ranked along the curve by several tasks
        found["again"] = anonlib.sabre(
            df.orderBy("pay", "town").repartition(3),
            sensitive=PAY,
            identifiers=["illness"],
            output=str(folder / "again"),
            audit="off",
            **common,
            **WAYS["in partitions"],
        )
    for name in SEVERAL_NOW:
        found[name] = anonlib.sabre(df, sensitive=[PAY, SICK], output=str(folder / name), **common, **SEVERAL[name])
    yield found
    monkey.undo()


def rows(release) -> list[dict]:
    return pq.read_table(f"{release.path}/microdata").to_pylist()


def classes(release) -> dict[int, list[dict]]:
    found: dict[int, list[dict]] = {}
    for row in rows(release):
        found.setdefault(row["ec_id"], []).append(row)
    return found


def covered(row: dict, person: dict) -> bool:
    return (
        row["age_min"] <= person["age"] <= row["age_max"]
        and person["job"] in row["job"]
        and person["town"] in row["town"]
    )


@pytest.mark.parametrize("name", NOW)
def test_every_class_is_close_by_scipy_s_distance_and_large_enough(releases, name):
    pay = table()["pay"].to_pylist()
    rank = {value: i for i, value in enumerate(sorted(set(pay)))}
    everybody = [rank[value] for value in pay]
    found = classes(releases[name])
    farthest = 0.0
    for members in found.values():
        assert len(members) >= WAYS[name]["k"]
        assert len({repr({c: v for c, v in row.items() if c != "pay"}) for row in members}) == 1  # one box
        farthest = max(
            farthest, wasserstein_distance([rank[row["pay"]] for row in members], everybody) / (len(rank) - 1)
        )
    assert len(found) > 20
    assert 0 < farthest <= T + 1e-12
    manifest = releases[name].manifest
    assert manifest.audit.passed
    assert float(anonlib.exact.exact(manifest.guarantee.achieved["t"])) == pytest.approx(farthest)


@pytest.mark.parametrize("name", [*NOW, *SEVERAL_NOW])
def test_every_record_is_published_once_in_a_box_that_holds_it(releases, name):
    assert Counter(row["pay"] for row in rows(releases[name])) == Counter(table()["pay"].to_pylist())
    left = table().to_pylist()
    for members in classes(releases[name]).values():
        held = [person for person in left if covered(members[0], person)]
        assert len(held) >= len(members)
    assert releases[name].manifest.rows.published == N


def test_the_sizes_that_the_tree_foretold_are_published(releases):
    for name in {"approximate in partitions", "exact"} & set(NOW):
        stated = {part.size: part.number for part in releases[name].manifest.solver.setting}
        assert stated == Counter(len(members) for members in classes(releases[name]).values())


def test_refining_loses_less(releases):
    loss = {name: releases[name].manifest.utility["ail"] for name in NOW}
    assert max(loss[name] for name in NOW if "refined" in name) < min(
        loss[name] for name in NOW if "neighbours" in WAYS[name]
    )


def test_the_order_and_the_partitions_of_the_input_say_nothing(releases):
    """The very same rows, class numbers and all, from an input that was sorted by the sensitive value."""
    one, other = (Counter(map(repr, rows(releases[name]))) for name in ("in partitions", "again"))
    assert one == other


@pytest.mark.parametrize("name", SEVERAL_NOW)
def test_each_of_several_sensitive_columns_is_close(releases, name):
    release = releases[name]
    pay, ill = table()["pay"].to_pylist(), table()["illness"].to_pylist()
    rank = {value: i for i, value in enumerate(sorted(set(pay)))}
    group = {leaf: TREE_OF[leaf] for leaf in ILL}
    found = classes(release)
    assert len(found) > 10
    worst = [0.0, 0.0]
    for members in found.values():
        here = wasserstein_distance([rank[r["pay"]] for r in members], [rank[v] for v in pay]) / (len(rank) - 1)
        leaves = (
            differences([r["illness"] for r in members], ill) / 4
        )  # an edge below a node of height 1 counts 1/2 of half
        above = differences([group[r["illness"]] for r in members], [group[v] for v in ill]) / 4
        worst = [max(worst[0], here), max(worst[1], leaves + above)]
    assert all(0 < distance <= T + 1e-12 for distance in worst)
    (also,) = release.manifest.guarantee.also
    assert (also.sensitive, also.distance) == ("illness", "hierarchical")
    assert float(anonlib.exact.exact(also.achieved["t"])) == pytest.approx(worst[1])


def test_nodes_of_both_hierarchies_may_be_asked_for(releases):
    release = releases[SEVERAL_NOW[-1]]
    one = release.count("job IN NODE 'y' AND illness IN NODE 'lung'")
    other = release.count("job IN ('c', 'd', 'e') AND illness IN ('asthma', 'cold', 'flu')")
    assert (one.low, one.high, one.estimate) == (other.low, other.high, pytest.approx(other.estimate))
    assert release.count("illness IN NODE 'any'").low == len(table())


TREE_OF = {row[0]: row[1] for row in ILLNESSES.rows}


def differences(members: list[str], everybody: list[str]) -> float:
    return sum(
        abs(members.count(value) / len(members) - everybody.count(value) / len(everybody)) for value in set(everybody)
    )


def test_what_cannot_be_asked_is_refused(spark, tmp_path):
    df = spark.createDataFrame(table().to_pandas())
    given = {"quasi_identifiers": ["town", "job"], "identifiers": ["age", "illness"]}
    with pytest.raises(Unsatisfiable, match="at most k: 720"):
        anonlib.sabre(df, sensitive=PAY, t="0.3", k=721, **given)
    with pytest.raises(SpecError, match="'c' and 3 more is not a leaf of the hierarchy"):
        anonlib.sabre(
            df,
            quasi_identifiers=["town"],
            sensitive={"name": "job", "hierarchy": parse_hierarchy("a,any\nb,any\n")},
            identifiers=["age", "illness", "pay"],
            t="0.3",
        )
    holes = df.selectExpr("town", "job", "if(pay = 300, NULL, pay) AS pay")
    with pytest.raises(SpecError, match=r"missing: \{sensitive: drop\}"):
        anonlib.sabre(holes, quasi_identifiers=["town", "job"], sensitive=PAY, t="0.3", missing={"sensitive": "keep"})


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({"t": "1"}, "no distance to keep"),
        ({"t": 0.3}, "binary float"),
        ({}, "t"),
        ({"t": "0.3", "k": 0}, "too small"),
        ({"t": "0.3", "neighbours": "near"}, "approximate, exact"),
        ({"t": "0.3", "neighbours": "exact", "refine": True}, "leave neighbours out"),
        (
            {"t": "0.3", "neighbours": "exact"},
            "neighbours lets quasi-identifiers decide .* allow_minimality_leak: true",
        ),
        ({"t": "0.3", "refine": True}, "refine lets quasi-identifiers decide .* allow_minimality_leak: true"),
        ({"t": "0.3", "refine": False}, "refine lets quasi-identifiers decide .* allow_minimality_leak: true"),
        ({"t": "0.3", "allow_minimality_leak": True}, "nothing here leaks"),
        ({"t": "0.3", "partition_size": "most"}, "no number of records"),
    ],
)
def test_a_bad_parameter_is_named(method, sentence):
    columns = {"quasi_identifiers": ["a"], "sensitive": "b"}
    with pytest.raises(SpecError, match=sentence):
        parse_spec({"columns": columns, "method": {"sabre": method}}, given_frame=True)


def test_explain_proposes_a_t_from_a_sample(spark):
    df = spark.createDataFrame(table().to_pandas())
    columns = {"quasi_identifiers": [QI[0], "town"], "sensitive": PAY, "identifiers": ["job", "illness"]}
    spec = parse_spec({"columns": columns, "method": {"sabre": {"t": "0.3", "k": 3}}}, given_frame=True)
    found = explain(spec, spark, df)
    losses = [point["ail"] for point in found.facts["curve"]]
    assert losses[0] > losses[-1]
    assert found.facts["sample"] == N
    assert found.facts["proposed_t"] in {point["t"] for point in found.facts["curve"]}
    assert "0.3" in found.words
    assert found.facts["proposed_t"] in found.summary
    told = found.trade_off.to_dict()
    assert [(p["bound"], p["ail"]) for p in told["points"]] == [(p["t"], p["ail"]) for p in found.facts["curve"]]
    assert (told["name"], told["asked"], told["sample"]) == ("t", "0.3", N)


def test_a_table_that_its_quasi_identifiers_cannot_cut_is_cut_by_rank(spark, tmp_path):
    """Three towns, partitions of 50: the k-d tree has three leaves at most, each too large for a task."""
    df = spark.createDataFrame(table().to_pandas())
    said: list[str] = []
    columns = {"quasi_identifiers": ["town"], "sensitive": PAY, "identifiers": ["age", "job", "illness"]}
    method = {"sabre": {"t": "0.3", "k": 3, "partition_size": 50, "refine": True, **LEAK}}
    spec = parse_spec({"columns": columns, "method": method, "output": {"path": str(tmp_path / "r")}}, given_frame=True)
    release = run(spec, spark, df, said.append)
    assert any("do not cut the table finely enough" in sentence for sentence in said)
    assert any("along the Hilbert curve" in sentence for sentence in said)
    assert release.manifest.audit.passed
    assert len(rows(release)) == N
