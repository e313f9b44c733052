"""Small domain randomization end to end: what is published is what the kernel and the solver say, for every type and order of input."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import anonlib
from tests.contract.test_special_values import TEXTS, TYPES
from tests.door import cut, key_file, multiset, people, with_column, write_files
from tests.statistical.test_order_leak import BOUND, rank_correlation
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark

VALUES = tuple("ABCDEFGHIJ")
HELD = [12, 8, 6, 5, 4, 3, 1, 1, 1, 1]
N = 50 * sum(HELD)
ASKED = {"rho1": "1/3", "rho2": "2/3", "merging": "neighbours"}
"""The worked example of the paper, with fifty times the records: two sub-tables, of 1,800 and 300 records."""


def table() -> pa.Table:
    """2,100 persons in random order; each one's note is its place times seven."""
    illness = np.random.default_rng(3).permutation(np.repeat(VALUES, [50 * h for h in HELD]))
    return with_column(people(N), "illness", illness.tolist())


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("perturb") / "input", cut(table(), 4))


@pytest.fixture(scope="module")
def release(spark, source):
    """Published from Python with the release key, once."""
    key = key_file(source.parent)
    given = {"quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"], "sensitive": "illness"}
    more = {"other": ["note"], "output": str(source.parent / "release"), "key": f"file:{key}"}
    return anonlib.perturb(spark.read.parquet(str(source)), **given, **ASKED, **more)


def rows(release, name):
    return [row.asDict(recursive=True) for row in release.tables[name].collect()]


def test_the_operators_are_the_papers(release):
    first, second = sorted(rows(release, "operators"), key=lambda row: row["subtable"])
    assert first["domain"] == list("ABCDEF")
    assert first["counts"] == [600, 400, 300, 200, 200, 100]
    assert (first["size"], first["domain_size"], first["gamma"], first["gamma_exact"]) == (1800, 6, 4.0, "4")
    assert first["retention"] == pytest.approx(3 / 9)
    assert second["domain"] == list("DFGHIJ")
    assert second["counts"] == [50] * 6
    assert (second["gamma_exact"], second["retention"]) == ("10", pytest.approx(9 / 15))


def test_every_record_is_there_once_with_its_other_columns_untouched(release, source):
    published = rows(release, "microdata")
    assert release.tables["microdata"].columns == ["age", "country", "note", "illness", "subtable"]
    assert multiset(published, "age", "country", "note") == multiset(table().to_pylist(), "age", "country", "note")
    assert release.audit.passed


def test_each_sub_table_truly_holds_what_the_operators_say(release):
    truth = dict(enumerate(table()["illness"].to_pylist()))
    held = Counter((row["subtable"], truth[row["note"] // 7]) for row in rows(release, "microdata"))
    stated = {
        (row["subtable"], value): count
        for row in rows(release, "operators")
        for value, count in zip(row["domain"], row["counts"], strict=True)
    }
    assert held == stated


def test_as_many_values_are_unchanged_as_the_operators_say(release):
    truth = dict(enumerate(table()["illness"].to_pylist()))
    for row in rows(release, "operators"):
        mine = [r for r in rows(release, "microdata") if r["subtable"] == row["subtable"]]
        same = sum(r["illness"] == truth[r["note"] // 7] for r in mine)
        gamma = Fraction(row["gamma_exact"])
        chance = float(gamma / (row["domain_size"] - 1 + gamma))
        assert abs(same - len(mine) * chance) / np.sqrt(len(mine) * chance * (1 - chance)) < BOUND
        assert {r["illness"] for r in mine} <= set(row["domain"])


def test_the_manifest_says_what_was_asked_and_chosen(release):
    guarantee, solver = release.manifest.guarantee, release.manifest.solver
    assert guarantee.asked == {"rho1": "1/3", "rho2": "2/3"}
    assert "can believe no value of illness of that person with a probability above 2/3 (66.67 %)" in guarantee.words
    assert [(v.value, v.count, v.threshold) for v in guarantee.values] == [
        (v, 50 * h, "2/3") for v, h in zip(VALUES, HELD, strict=True)
    ]
    assert (solver.unit, [(p.size, p.number) for p in solver.setting]) == ("sub-tables", [(300, 1), (1800, 1)])
    assert (solver.details["initial_groups"], solver.details["balance"]) == (5, 3)
    assert release.manifest.method.parameters["merging"] == "neighbours"


def door_run(door, source, output="release", **parameters):
    return door.run(source, output, method={"perturb": ASKED | parameters})


def test_the_same_key_gives_the_same_rows_whatever_the_session(door, source, release, monkeypatch):
    changed = {"spark.sql.shuffle.partitions": "7", "spark.sql.adaptive.enabled": "false"}
    before = {name: door.spark.conf.get(name) for name in changed}
    monkeypatch.setattr(
        "anonlib.engine.session.RUN_SETTINGS", {"spark.sql.execution.arrow.maxRecordsPerBatch": "7", **changed}
    )
    monkeypatch.setattr("anonlib.engine.statistics.DRIVER_CELLS", 5)
    try:
        second = door_run(door, source).published()
    finally:
        for name, value in before.items():
            door.spark.conf.set(name, value)
    for name in ("microdata", "operators"):
        columns = release.tables[name].columns
        assert multiset(second.table(name), *columns) == multiset(rows(release, name), *columns)


def test_another_key_perturbs_other_records(door, source, release):
    second = door.run(source, method={"perturb": ASKED}, random={"key": "env:OTHER_KEY"}).published()
    one, other = (
        multiset(found, "note", "illness") for found in (rows(release, "microdata"), second.table("microdata"))
    )
    # by chance two draws agree on some 750 records (22 % of the first sub-table's, 46 % of the second's, by its value's row)
    assert sum((one & other).values()) < N / 2


@pytest.mark.parametrize("files", cases(4, nightly=[1]))
def test_a_sorted_input_leaks_nothing(door, files):
    """Sorted by illness: neither a record's sub-table nor its place in the files tells where among its value's records it stood."""
    given = table().sort_by("illness").drop_columns(["note"])
    given = with_column(given, "note", [7 * i for i in range(N)], pa.int64())
    outcome = door_run(door, door.input(given, files=files)).published()
    published = outcome.table("microdata")
    place = [row["note"] // 7 for row in published]
    assert sum(a + 1 == b for a, b in pairwise(place)) < 30  # about 1 by chance
    truth = given["illness"].to_pylist()
    for value in "DF":  # the values of both sub-tables
        mine = sorted((row["note"], row["subtable"]) for row in published if truth[row["note"] // 7] == value)
        assert abs(rank_correlation(range(len(mine)), [subtable for _, subtable in mine])) < BOUND
    # the files are filled without regard to the true value: by its place a record's true value cannot be told
    code = {value: i for i, value in enumerate(VALUES)}
    assert abs(rank_correlation(range(N), [code[truth[p]] for p in place])) < BOUND


def test_whole_is_uniform_perturbation(door, source):
    method = {"perturb": {"rho1": "1/3", "rho2": "2/3", "partitioning": "whole"}}
    outcome = door.run(source, method=method).published()
    (operator,) = outcome.table("operators")
    assert operator["domain"] == list(VALUES)
    assert operator["gamma_exact"] == "5"  # rho1 = 2/7, the largest share, not the 1/3 that was asked
    assert {row["subtable"] for row in outcome.table("microdata")} == {0}


@nightly  # of buckets at every change
def test_a_missing_value_that_is_kept_is_a_value_of_its_own(door):
    values = [None if i % 3 == 0 else VALUES[i % 5] for i in range(600)]
    source = door.input(with_column(people(600), "illness", values, pa.string()))
    method = {"perturb": {"rho2": "1/2"}}
    outcome = door.run(source, method=method, missing={"sensitive": "keep"}).published()
    assert any(None in row["domain"] for row in outcome.table("operators"))
    assert any(row["illness"] is None for row in outcome.table("microdata"))
    assert door.audit(outcome.output, source)[0] == 0
    refused = door.run(source, "second", method=method)
    refused.refused(2, "column 'illness': 200 rows have no value", "missing: {sensitive: drop}")
    another = {"key": "env:OTHER_KEY"}  # fewer records under the same key would tell who was dropped
    dropped = door.run(source, "third", method=method, missing={"sensitive": "drop"}, random=another).published()
    assert (dropped.manifest.rows.published, dropped.manifest.rows.dropped) == (400, 200)


@pytest.mark.parametrize("kind", cases("text", nightly=("timestamp", "bigint", "decimal", "double")))
def test_a_sensitive_column_of_each_type_keeps_it(door, kind):
    arrow, values = TYPES.get(kind, (pa.string(), TEXTS))
    n = 12 * len(values)
    given = with_column(people(n), "illness", [values[i % len(values)] for i in range(n)], arrow)
    source = door.input(given)
    outcome = door.run(source, method={"perturb": {"rho2": "1/2"}}).published()
    types = {c.name: c.type for c in outcome.manifest.tables["microdata"].columns}
    assert types["illness"] == {"decimal": "decimal(20,4)", "text": "string"}.get(kind, kind)
    assert {row["illness"] for row in outcome.table("microdata")} <= set(values)
    assert sorted(outcome.table("operators")[0]["counts"]) == [12] * len(values)
    assert door.audit(outcome.output, source)[0] == 0


def test_several_sensitive_columns_are_one(door):
    """Types stay; what is published is a combination that occurs; nulls and separators within texts are told apart. A column that is
    called as the combination would be stays what it is."""
    illness = ["a|b", "a", None, "\\", "\\0", "c"]
    given = with_column(people(1200), "illness", [illness[i % 6] for i in range(1200)], pa.string())
    given = with_column(given, "ward", [(2**53 + 1, 2**53, None)[i // 2 % 3] for i in range(1200)], pa.int64())
    given = given.rename_columns(["illness and ward" if name == "note" else name for name in given.column_names])
    source = door.input(given)
    columns = {
        "quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"],
        "sensitive": ["illness", {"name": "ward", "type": "numeric"}],
        "other": ["illness and ward"],
    }
    method = {"perturb": {"rho2": "1/3"}}
    outcome = door.run(source, method=method, columns=columns, missing={"sensitive": "keep"}).published()
    observed = {(row["illness"], row["ward"]) for row in given.to_pylist()}
    assert len(observed) == 6
    assert {(row["illness"], row["ward"]) for row in outcome.table("microdata")} <= observed
    domain = {(v["illness"], v["ward"]) for row in outcome.table("operators") for v in row["domain"]}
    assert domain == observed
    assert {c.name: c.type for c in outcome.manifest.tables["microdata"].columns}["ward"] == "bigint"
    assert "illness and ward" in outcome.manifest.guarantee.words
    assert "one column alone may be believed with up to" in outcome.manifest.guarantee.words
    assert door.audit(outcome.output, source)[0] == 0


def test_what_cannot_be_kept_is_refused_with_the_weakest_setting(door, source):
    door.run(source, method={"perturb": {"rho2": "1/4"}}).refused(
        3, "rho2: 0.25", "'A' (28.58 %)", "any rho2 above 2/7 (0.2858) works", "of the values"
    )
    door.run(source, method={"perturb": {"rho1": "0.001", "rho2": "1/4"}}).refused(3, "rho1: ", "'G', has 1/42")
    empty = door.input(table().slice(0, 0), "empty")
    door.run(empty, method={"perturb": {"rho2": "1/4"}}).refused(2, "the table is empty")


def test_explain_shows_the_sub_tables_without_moving_a_record(door, source):
    found = door.run(source, method={"perturb": ASKED}, command="explain")
    assert found.code == 0
    told = " ".join((found.out + found.err).split())
    for words in ("2 sub-tables retain 37.14%", "uniform perturbation 28.57%", "error bound", "33.34 %", "10.000"):
        assert words in told, words
    assert not found.output.exists()
