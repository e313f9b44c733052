"""Every example in conf/ is a spec that loads, and names the columns of the table it is about."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from anonlib.hierarchy import read_hierarchy
from anonlib.spec import METHODS, Bucketize, ReleaseSpec, load_spec
from tests.data import table_path

ROOT = Path(__file__).resolve().parents[2]
RELEASES = sorted((ROOT / "conf" / "releases").glob("*.yaml"))
HIERARCHIES = sorted((ROOT / "conf" / "hierarchies").glob("*.csv"))
SCHEDULES = ROOT / "conf" / "schedules"
SPARK_SETTINGS = sorted((ROOT / "conf" / "spark").glob("*.conf"))


def load(path: Path) -> ReleaseSpec:
    return load_spec(path, base_dir=ROOT)


def settings(path: Path) -> dict[str, str]:
    lines = [
        line.split(None, 1)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    assert len({name for name, _ in lines}) == len(lines), f"{path.name} sets something twice"
    return {name: value.strip() for name, value in lines}


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_an_example_loads(path: Path) -> None:
    spec = load(path)
    assert spec.audit == "gate"
    assert spec.random.key is None  # an example that is copied must not share a key


def test_the_examples_show_every_method_and_every_way_to_state_privacy() -> None:
    methods = [load(path).method for path in RELEASES]
    assert {method.name for method in methods} == set(METHODS)
    stated = [method.privacy for method in methods if isinstance(method, Bucketize)]
    assert any(privacy.theta is not None for privacy in stated)
    assert any(privacy.l is not None for privacy in stated)
    assert any(privacy.thresholds for privacy in stated)
    assert any(method.fake_values for method in methods if isinstance(method, Bucketize))


@pytest.mark.parametrize(
    "path", [path for path in RELEASES if path.stem not in ("demo", "stream")], ids=lambda path: path.stem
)
def test_an_example_names_the_columns_of_its_table(path: Path) -> None:
    spec = load(path)
    assert spec.input is not None
    assert spec.input.path is not None
    schema = pq.read_schema(table_path(Path(spec.input.path).stem))
    assert sorted(spec.columns.all_names) == sorted(schema.names)


@pytest.mark.parametrize("path", HIERARCHIES, ids=lambda path: path.stem)
def test_a_hierarchy_covers_its_column(path: Path) -> None:
    hierarchy = read_hierarchy(path)
    column = path.stem.removeprefix("census_")
    values = pq.read_table(table_path("census_occ_100k"), columns=[column])[column].unique().to_pylist()
    assert len(hierarchy.positions([str(value) for value in values])) == len(values)


@pytest.mark.spark
@pytest.mark.parametrize("path", SPARK_SETTINGS, ids=lambda path: path.stem)
def test_spark_knows_every_setting(path: Path, spark) -> None:  # type: ignore[no-untyped-def]
    known = {row["key"] for row in spark.sql("SET -v").select("key").collect()}
    found = settings(path)
    assert [name for name in found if name.startswith("spark.sql.") and name not in known] == []
    assert all(name.startswith("spark.") for name in found)


def test_the_schedules_run_the_release_that_lies_beside_them() -> None:
    spec = load(SCHEDULES / "release.yaml")
    assert spec.ledger is not None
    assert spec.input is not None
    assert spec.input.path is not None
    schema = pq.read_schema(table_path(Path(spec.input.path).stem))
    assert sorted(spec.columns.all_names) == sorted(schema.names)
    for name, command in (("anonlib.cron", "anonlib run "), ("airflow_dag.py", "jobs/anonymize.py --conf ")):
        assert f"{command}conf/schedules/release.yaml" in (SCHEDULES / name).read_text(encoding="utf-8")
    compile((SCHEDULES / "airflow_dag.py").read_text(encoding="utf-8"), "airflow_dag.py", "exec")
    (task,) = json.loads((SCHEDULES / "databricks_job.json").read_text(encoding="utf-8"))["tasks"]
    assert task["spark_python_task"]["parameters"][1].endswith("conf/schedules/release.yaml")
    for path in SCHEDULES.iterdir():
        assert "ANONLIB_LEDGER_KEY" in path.read_text(encoding="utf-8")


def test_there_are_examples_at_all() -> None:
    assert len(RELEASES) >= 5
    assert len(HIERARCHIES) >= 2
    assert len(SPARK_SETTINGS) == 2
