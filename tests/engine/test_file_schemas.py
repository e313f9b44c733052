"""Every file of a Parquet or ORC table has its columns, each of one type, or the table is refused before anything is read."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from anonlib.engine import file_schemas, reading
from anonlib.errors import SpecError
from anonlib.spec.release import Input

WHEN = datetime(2020, 1, 1, tzinfo=timezone.utc)
SMALL, WIDE = pa.array([300], pa.int32()), pa.array([3], pa.int64())

DIFFER = {
    "a byte and an integer": (pa.array([3], pa.int8()), SMALL),
    "an integer and a long": (SMALL, WIDE),
    "a number and a text": (SMALL, pa.array(["300"])),
    "a number and a date": (SMALL, SMALL.cast(pa.date32())),
    "a number and an instant": (WIDE, pa.array([WHEN], pa.timestamp("us", "UTC"))),
    "an instant and a local time": (
        pa.array([WHEN], pa.timestamp("us", "UTC")),
        pa.array([WHEN.replace(tzinfo=None)], pa.timestamp("us")),
    ),
    "two scales": (pa.array([1], pa.decimal128(9, 0)), pa.array([1], pa.decimal128(9, 2))),
    "two widths of floats": (pa.array([0.5], pa.float32()), pa.array([0.5], pa.float64())),
    "text and bytes": (pa.array(["x"]), pa.array([b"x"])),
    "nothing and text": (pa.nulls(1), pa.array(["x"])),
    "a value and a list": (SMALL, pa.array([[300]], pa.list_(pa.int32()))),
    "lists of two types": (pa.array([[300]], pa.list_(pa.int32())), pa.array([["x"]])),
}
AGREE = {
    "text, however it was held": (pa.array(["x"]), pa.array(["x"], pa.large_string())),
    "text, coded or not": (pa.array(["x"]), pa.array(["x"]).dictionary_encode()),
    "instants in two units": (pa.array([WHEN], pa.timestamp("us", "UTC")), pa.array([WHEN], pa.timestamp("ms", "UTC"))),
    "another time zone's instants": (
        pa.array([WHEN], pa.timestamp("us", "UTC")),
        pa.array([WHEN], pa.timestamp("us", "Asia/Tokyo")),
    ),
    "numbers": (SMALL, SMALL),
}


def two_files(folder, one, other):
    for number, column in enumerate((one, other)):
        pq.write_table(pa.table({"A": column}), folder / f"part é {number}.parquet")
    return sorted(path.as_uri() for path in folder.iterdir())


@pytest.mark.parametrize("name", DIFFER)
def test_types_that_differ(tmp_path, name):
    files = two_files(tmp_path, *DIFFER[name])
    found = file_schemas._disagreement(files, lambda file: file_schemas._footer("parquet", file), None)
    assert found.startswith(f"the file {files[1]} has 'A' of another type than {files[0]}")


@pytest.mark.parametrize("name", AGREE)
def test_types_that_are_one(tmp_path, name):
    files = two_files(tmp_path, *AGREE[name])
    assert file_schemas._disagreement(files, lambda file: file_schemas._footer("parquet", file), None) is None


def test_lists_by_two_writers(tmp_path):
    table = pa.table({"A": pa.array([[300]], pa.list_(pa.int32()))})
    pq.write_table(table, tmp_path / "0.parquet", use_compliant_nested_type=True)
    pq.write_table(table, tmp_path / "1.parquet", use_compliant_nested_type=False)
    files = sorted(path.as_uri() for path in tmp_path.iterdir())
    assert file_schemas._disagreement(files, lambda file: file_schemas._footer("parquet", file), None) is None


def test_more_files_than_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(file_schemas, "BATCH", 3)
    asked = []

    def read(file):
        asked.append(file)
        return {"a": ("a", "int")} if file != "7" else {}

    files = [str(i) for i in range(20)]
    assert "the file 7 has no column 'a', which 0 has" in file_schemas._disagreement(files, read, None)
    assert len(asked) == 9


@pytest.mark.spark
@pytest.mark.every_spark
class TestOnSpark:
    @pytest.mark.parametrize("format", ["parquet", "orc"])
    @pytest.mark.parametrize("elsewhere", [False, True], ids=["local", "elsewhere"])
    def test_a_file_that_lacks_a_column(self, spark, tmp_path, monkeypatch, format, elsewhere):
        """Through Spark too, as where the driver does not reach the files."""
        if elsewhere:
            monkeypatch.setattr(file_schemas, "_footer", lambda *_: (_ for _ in ()).throw(OSError()))
        write = pq.write_table if format == "parquet" else orc.write_table
        for whole in ("part 0", "part 2"):
            write(pa.table({"Age": SMALL, "zip": ["x"]}), tmp_path / whole)
        given = Input(path=str(tmp_path), format=format)
        assert reading.read(spark, given).count() == 2
        write(pa.table({"age": SMALL}), tmp_path / "part 1 [x]")
        with pytest.raises(SpecError, match=r"the file file:\S*part%201%20\S* has no column 'zip'") as refused:
            reading.read(spark, given)
        assert "mergeSchema" in str(refused.value)
        lacking = Input(path=str(tmp_path), format=format, options={"mergeSchema": True})
        assert reading.read(spark, lacking).where("zip IS NULL").count() == 1
        # a column that nobody asks for may be lacking
        assert reading.read(spark, Input(path=str(tmp_path), format=format, schema="age INT")).count() == 3
        write(pa.table({"age": WIDE, "zip": ["x"]}), tmp_path / "part 1 [x]")
        with pytest.raises(SpecError, match=r"'[aA]ge' of another type"):
            reading.read(spark, given)

    def test_a_schema_of_other_types_or_names(self, spark, tmp_path):
        table = pa.table({"A": SMALL, "b": pa.array([1], pa.decimal128(9, 2)), "c": pa.array([0.1], pa.float64())})
        for ward in ("x", "y"):
            (tmp_path / f"ward={ward}").mkdir()
            pq.write_table(table, tmp_path / f"ward={ward}" / "0.parquet")

        def read(schema):
            return reading.read(spark, Input(path=str(tmp_path), schema=schema))

        assert read("a INT, ward STRING").count() == 2
        wider = read("a BIGINT").select("a")
        if spark.version >= "4":  # 3.5 fails at it, loudly
            assert [row[0] for row in wider.collect()] == [300, 300]
        for schema, name in (
            ("a TINYINT", "a"),
            ("a DATE", "a"),
            ("b DECIMAL(9,1)", "b"),
            ("b DECIMAL(9,3)", "b"),
            ("c FLOAT", "c"),
        ):
            with pytest.raises(SpecError, match=rf"input.schema: '{name}' is \S+ in the files"):
                read(schema)
        with pytest.raises(SpecError, match=r"has no column 'aa', which input\.schema names"):
            read("aa INT, ward STRING")


def test_the_folder_of_a_table_of_versions_is_no_parquet(spark, tmp_path):
    """Spark would read what lies beside the log, the rows of every version."""
    for log in ("_delta_log", ".hoodie"):
        folder = tmp_path / f"a b{log}"
        (folder / log).mkdir(parents=True)
        pq.write_table(pa.table({"age": [1]}), folder / "part-0.parquet")
        (folder / log / "00000000000000000000.json").write_text("{}", encoding="utf-8")
        with pytest.raises(SpecError, match=r"this is a Delta or Hudi table .* write format: delta"):
            reading.read(spark, Input.model_validate({"path": str(folder)}))
        (folder / log).rename(tmp_path / f"moved{log}")
        assert reading.read(spark, Input.model_validate({"path": str(folder)})).columns == ["age"]
