"""Folders of `key=value` (year=2024/month=01/...): their keys are columns like any other, in every format and role."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from anonlib.engine import reading
from anonlib.errors import SpecError
from anonlib.spec.release import Input
from tests.door import Door, counted, cut, people

pytestmark = pytest.mark.spark
SCHEMA = "age INT, country STRING, note BIGINT, illness STRING"
MONTHS = (
    "year=2024/month=01",
    "year=2024/month=02",
    "year=2025/month=01",
    "year=2025/month=__HIVE_DEFAULT_PARTITION__",
)


def write(table: pa.Table, file: Path, format: str) -> None:
    if format == "json":
        file.write_text("\n".join(json.dumps(row) for row in table.to_pylist()), encoding="utf-8")
    else:
        {"parquet": pq.write_table, "orc": orc.write_table, "csv": csv.write_csv}[format](table, file)


def folders(root: Path, format: str = "parquet", keys: tuple[str, ...] = MONTHS) -> Path:
    """60 people, dealt to as many folders as there are `keys`."""
    for key, part in zip(keys, cut(people(), len(keys)), strict=True):
        (root / key).mkdir(parents=True)
        write(part, root / key / f"part.{format}", format)
    return root


def source(path: Path, format: str = "parquet", schema: str | None = None, **options: str) -> dict[str, Any]:
    text = {"schema": SCHEMA} if format in ("csv", "json") and schema is None else {}
    more = {"header": "true"} if format == "csv" else {}
    told = {} if schema is None else {"schema": schema}
    return {"path": str(path), "format": format, "options": {**more, **options}, **text, **told}


def read(spark: Any, asked: dict[str, Any]) -> Any:
    return reading.read(spark, Input.model_validate(asked))


def values(frame: Any, *names: str) -> set[Any]:
    return {tuple(row) if len(names) > 1 else row[0] for row in frame.select(*names).distinct().collect()}


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json"])
def test_keys_are_columns_of_the_types_that_they_look_like_or_are_told(spark: Any, tmp_path: Path, format: str) -> None:
    root = folders(tmp_path / "visits", format)
    frame = read(spark, source(root, format))
    kinds = dict(frame.dtypes)
    assert (kinds["year"], kinds["month"], frame.count()) == ("int", "int", 60)
    assert values(frame, "year", "month") == {(2024, 1), (2024, 2), (2025, 1), (2025, None)}
    told = read(spark, source(root, format, f"month STRING, {SCHEMA}, year SMALLINT"))
    kinds = dict(told.dtypes)
    assert (kinds["year"], kinds["month"], kinds["illness"]) == ("smallint", "string", "string")
    assert values(told, "year", "month") == {(2024, "01"), (2024, "02"), (2025, "01"), (2025, None)}
    if format in ("parquet", "csv"):
        assert values(told, "illness") == values(frame, "illness")


def test_a_part_of_the_folders_has_its_keys_only_where_it_is_told_where_they_begin(spark: Any, tmp_path: Path) -> None:
    root = folders(tmp_path / "visits")
    for part in ("year=2024", "year=202[4]"):
        assert "year" not in read(spark, source(root / part)).columns
        assert values(read(spark, source(root / part, basePath=str(root))), "year", "month") == {(2024, 1), (2024, 2)}


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_files_beside_the_folders_are_refused(spark: Any, tmp_path: Path, format: str) -> None:
    root = folders(tmp_path / "visits", format)
    write(people(), root / f"beside.{format}", format)
    with pytest.raises(SpecError, match=rf"beside\.{format} lies beside folders of key=value"):
        read(spark, source(root, format))
    assert read(spark, source(root, format, recursiveFileLookup="true")).count() == 120


def test_a_key_wins_over_a_column_of_the_same_name_in_the_files(spark: Any, tmp_path: Path) -> None:
    frame = read(spark, source(folders(tmp_path / "twice", keys=("year=2024/age=1", "year=2024/age=2"))))
    assert frame.columns == ["age", "country", "note", "illness", "year"]
    assert values(frame, "age") == {1, 2}


def test_keys_in_every_role_from_the_folder_to_the_audit(door: Door) -> None:
    """A CSV: what is in the header and what is not, as the run and as `--original` read it."""
    root = folders(door.home / "visits", "csv")
    columns = {
        "quasi_identifiers": [{"name": "age", "type": "numeric"}, "country", {"name": "year", "type": "numeric"}],
        "sensitive": "illness",
        "identifiers": ["note"],
        "other": ["month"],
    }
    told = source(root, "csv", f"{SCHEMA}, month STRING")
    outcome = door.run(told, columns=columns).published()
    rows = {(row["year"], row["month"]) for row in outcome.table("qit")}
    assert rows == {(2024, "01"), (2024, "02"), (2025, "01"), (2025, None)}
    audited = door.call("audit", str(outcome.output), "--original", str(root), "--format", "csv", "--json")
    assert (audited.code, json.loads(audited.out)["passed"]) == (0, True), audited.err
    unnamed = {**columns, "other": []}
    door.run(told, "other", columns=unnamed).refused(2, "month")


@pytest.mark.slow
def test_the_latest_row_of_a_person_by_the_folder_it_lies_in(door: Door) -> None:
    """Ten persons have a row in the first folder and one in the last."""
    columns = {
        "quasi_identifiers": ["country", "year"],
        "sensitive": "illness",
        "identifiers": ["note", "month"],
        "person": "age",
    }
    root = folders(door.home / "visits")
    outcome = door.run(root, columns=columns, persons={"repeated": "latest", "order": "year"}).published()
    assert counted(outcome.table("qit"), "year") == {2024: 20, 2025: 30}
