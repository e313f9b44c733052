"""Whole releases of random tables: every one keeps what it promises and passes the audit beside its original."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pyarrow as pa
import pytest

import anonlib
from anonlib.errors import Unsatisfiable
from tests.door import KEY, VALUES, bucketize, counted, multiset, people
from tests.thorough import cases, nightly, trials

pytestmark = pytest.mark.spark


def random_table(draw: random.Random) -> tuple[pa.Table, list]:
    """A small table with skewed values, nulls among the quasi-identifiers and sometimes among the sensitive values."""
    n, m = draw.randint(2, 160), draw.randint(2, 12)
    domain = [f"v{k}" for k in range(m)] + ([None] if draw.random() < 0.3 else [])
    weights = [draw.choice((1, 1, 2, 5)) for _ in domain]
    illness = draw.choices(domain, weights, k=n)
    if draw.random() < 0.3:
        illness.sort(key=str)
    table = pa.table(
        {
            "age": pa.array([draw.choice((None, *range(20, 30))) for _ in range(n)], pa.int32()),
            "country": pa.array([draw.choice(("Peru", "", None)) for _ in range(n)], pa.string()),
            "note": pa.array([draw.choice((None, 2**53 + 1, draw.randrange(2**62))) for _ in range(n)], pa.int64()),
            "illness": pa.array(illness, pa.string()),
        }
    )
    return table, illness


def random_method(draw: random.Random, illness: list) -> dict:
    most = Fraction(max(Counter(illness).values()), len(illness))
    kinds = ["l", "linear", "default"]
    kind = draw.choice(kinds)
    size = draw.choice((8, 20, 60))
    solver = draw.choice(("optimal", "multi_size", "two_size"))
    if kind == "l":
        privacy = {"l": draw.choice((2, max(2, int(1 / most))))}
    elif kind == "linear":
        privacy = {"theta": draw.choice((1, 2, "1.5", "9/4")), "offset": draw.choice(("0", "0.1", "1/3"))}
    else:
        privacy = {"default": draw.choice(("1", str(most), "0.5"))}
    return bucketize(solver=solver, max_bucket_size=size, mix_companions=draw.random() < 0.5, **privacy)


@pytest.mark.parametrize(
    "seed", [*range(trials(15, 2)), *(pytest.param(k, marks=pytest.mark.slow) for k in range(15, 60))]
)
def test_a_random_table(door, seed):
    """Published and true to its word, or refused with the reason; nothing in between."""
    draw = random.Random(seed)
    table, illness = random_table(draw)
    method = random_method(draw, illness)
    source = door.input(table, files=draw.randint(1, 3))
    outcome = door.run(source, method=method, missing={"sensitive": "keep"})
    if outcome.code == 3:
        outcome.refused(3)
        asked = [w for w in ("threshold", "max_bucket_size") if w in outcome.sentence]
        assert asked, outcome.sentence
        return
    outcome.published()
    code, checks = door.audit(outcome.output, source)
    assert code == 0, [c for c in checks if not c["passed"]]
    # and once more by hand, from the files alone
    qit, st = outcome.table("qit"), outcome.table("st")
    sizes = counted(qit, "bucket_id")
    assert counted(st, "bucket_id") == sizes
    assert counted(st, "illness") == Counter(illness)
    assert multiset(qit, "age", "country", "note") == multiset(table.to_pylist(), "age", "country", "note")
    thresholds = {v.value: Fraction(v.threshold) for v in outcome.manifest.guarantee.values}
    for row in st:
        assert Fraction(row["count"], sizes[row["bucket_id"]]) <= thresholds[row["illness"]]
    loss = sum((size - 1) ** 2 for size in sizes.values())
    assert outcome.manifest.solver.loss == loss >= outcome.manifest.solver.bound


@pytest.mark.parametrize("mixed", cases(True, nightly=[False]))
def test_every_record_finds_its_value_in_its_bucket(door, mixed):
    """The sensitive value is published beside itself as a quasi-identifier: each bucket's records and values agree exactly."""
    table = people(601)
    table = table.append_column("shadow", table["illness"])
    columns = {"quasi_identifiers": ["age", "shadow"], "sensitive": "illness", "other": ["note", "country"]}
    outcome = door.run(table, columns=columns, method=bucketize(theta=2, mix_companions=mixed)).published()
    from_records = Counter((r["bucket_id"], r["shadow"]) for r in outcome.table("qit"))
    assert from_records == {(r["bucket_id"], r["illness"]): r["count"] for r in outcome.table("st")}


def test_the_notebook_gives_what_the_yaml_gives(door, monkeypatch):
    monkeypatch.setenv("RELEASE_KEY", KEY)
    source = door.input(people(300))
    by_yaml = door.run(source, method=bucketize(theta="1.5", offset="0.1", thresholds={"HIV": "0.2"})).published()
    release = anonlib.bucketize(
        door.spark.read.parquet(str(source)),
        quasi_identifiers=[{"name": "age", "type": "numeric"}, "country"],
        sensitive="illness",
        other=["note"],
        privacy=anonlib.FPrivacy.linear("1.5", "0.1", {"HIV": "0.2"}),
        solver="two_size",
        max_bucket_size=20,
        key="env:RELEASE_KEY",
        output=str(door.home / "notebook"),
    )
    assert release.manifest.tables == by_yaml.manifest.tables
    assert release.manifest.method == by_yaml.manifest.method
    assert release.audit.passed
    assert set(release.tables) == {"qit", "st"}
    assert anonlib.open_release(release.path, door.spark).manifest == release.manifest


@nightly
def test_without_an_output_the_release_goes_to_a_new_folder(door):
    frame = door.spark.createDataFrame(people().to_pylist(), "age int, country string, note long, illness string")
    given = {
        "quasi_identifiers": ["age", "country"],
        "sensitive": "illness",
        "other": ["note"],
        "privacy": {"l": 3},
        "audit": "off",
    }
    paths = {anonlib.bucketize(frame, **given).path for _ in range(2)}
    assert len(paths) == 2


def test_a_refusal_in_the_notebook_leaves_nothing(door):
    frame = door.spark.createDataFrame(
        people(60, VALUES[:2]).to_pylist(), "age int, country string, note long, illness string"
    )
    with pytest.raises(Unsatisfiable, match="30 of 60"):
        anonlib.bucketize(
            frame, quasi_identifiers=["age", "country"], sensitive="illness", other=["note"], privacy={"l": 3},
            output=str(door.home / "release"),
        )  # fmt: skip
    assert not list(door.home.glob("*release*"))
    assert not list(door.home.glob(".*release*"))


def test_anatomy_publishes_l_distinct_values_in_every_bucket(door):
    source = door.input(people(601))
    outcome = door.run(source, method={"anatomy": {"l": 4}}).published()
    rows = outcome.table("st")
    sizes = counted(rows, "bucket_id")
    assert set(sizes.values()) <= {4, 5}
    assert {r["count"] for r in rows} == {1}
    assert door.audit(outcome.output, source)[0] == 0


def test_identifiers_are_nowhere_in_the_release_nor_the_key_nor_the_inputs_path_in_the_manifest(door):
    table = people().append_column("ssn", pa.array([f"ssn-{i}" for i in range(60)]))
    columns = {
        "quasi_identifiers": ["age", "country"],
        "sensitive": "illness",
        "other": ["note"],
        "identifiers": ["ssn"],
    }
    source = door.input(table)
    outcome = door.run(source, columns=columns).published()
    for path in outcome.output.rglob("*"):
        if path.is_file():
            assert b"ssn" not in path.read_bytes(), path
    text = (outcome.output / "manifest.json").read_text(encoding="utf-8")
    for secret in (str(source), str(door.home), KEY, "RELEASE_KEY"):
        assert secret not in text
