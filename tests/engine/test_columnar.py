"""The second pass column by column: it publishes the rows of the way by rows, and nothing besides tells where they come from."""

from __future__ import annotations

import datetime
import secrets
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.engine.columnar import gather, listing, rewriting, source
from anonlib.engine.columnar.columns import Itself, Packed, typed
from anonlib.engine.columnar.deal import NUMBER, ORDER, WORD, Dealing, Segment, cut, files_of
from anonlib.engine.columnar.files import Files, sorted_dictionary
from anonlib.engine.columnar.gather import Gathering, in_order, published
from anonlib.engine.columnar.pieces import Pieces
from anonlib.engine.columnar.tasks import on_disk
from anonlib.engine.failures import TaskRefusal
from anonlib.engine.session import set_meanwhile
from anonlib.errors import AnonlibError
from anonlib.keyed import Draws
from tests.door import KEY
from tests.thorough import cases, some

RELEASE_KEY = bytes.fromhex(KEY)
N = 900


def persons(n=N):
    """Columns of every type that is rewritten, with nulls, signs of zero and texts that are easily mistaken."""
    i = np.arange(n)
    odd = ["", " ", "a'b", 'q"q', "中国", "\0", "é", "x" * 300]
    return pa.table(
        {
            "age": pa.array(i * 7 % 50, pa.int32()),
            "country": [("Peru", "Österreich", "中国", None)[k % 4] for k in i],
            "note": [None if k % 11 == 0 else f"{odd[k % 8]}{k}" for k in i],
            "weight": pa.array([(0.0, -0.0, float("nan"), float("inf"), None)[k % 5] for k in i], pa.float64()),
            "height": pa.array(i / 3, pa.float32()),
            "born": pa.array([datetime.date(1582, 1, 1) + datetime.timedelta(int(k) * 97) for k in i]),
            "local": pa.array([datetime.datetime(1600, 1, 1) + datetime.timedelta(seconds=int(k)) for k in i], pa.timestamp("us")),
            "paid": pa.array([Decimal(int(k)) / 100 for k in i], pa.decimal128(9, 2)),
            "large": pa.array([Decimal(int(k)) ** 9 for k in i], pa.decimal128(38, 0)),
            "tiny": pa.array(i % 100, pa.int8()),
            "small": pa.array(i, pa.int16()),
            "asked": pa.array([(True, False, None)[k % 3] for k in i]),
            "illness": [("asthma", "cold", "flu", "gout", "HIV", "mumps", "a\nb")[k * k % 7] for k in i],
            "code": pa.array([int(k * k % 7) - 3 for k in i], pa.int64()),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of several row groups, of different lengths, one of them empty, under a name that must be escaped."""
    path = tmp_path_factory.mktemp("columnar") / "a b%20c"
    path.mkdir()
    table = persons()
    for k, (start, stop, group) in enumerate([(0, 400, 150), (400, 400, 1), (400, 410, 100), (410, N, 120)]):
        pq.write_table(table.slice(start, stop - start), path / f"part-{k}.parquet", row_group_size=group)
    return path


@pytest.fixture
def always(monkeypatch):
    """Tables of any size go column by column, to several files."""
    for module in (rewriting, listing):
        monkeypatch.setattr(module, "FEW_RECORDS", 0)
    monkeypatch.setattr(rewriting, "files", lambda n: -(-n // 300))


@pytest.fixture
def ways(monkeypatch):
    """A list that tells of each table rewritten from then on, how: "columns" or "rows"."""
    taken: list[str] = []
    place = rewriting.place

    def told(asked):
        where = place(asked)
        taken.append("rows" if where is None else "columns")
        return where

    monkeypatch.setattr(rewriting, "place", told)
    return taken


METHODS = {
    "bucketize": {"bucketize": {"privacy": {"l": 3}}},
    "fakes": {"bucketize": {"privacy": {"l": 3}, "max_bucket_size": 4, "fake_values": 1}},
    "perturb": {"perturb": {"rho2": "1/3"}},
}


def spec_of(door, folder, name, method, sensitive="illness", **changes):
    columns = {
        "quasi_identifiers": ["age", "country", "asked"],
        "sensitive": sensitive,
        "other": [c for c in persons().column_names if c not in ("age", "country", "asked", "illness", "code")],
        "identifiers": ["code" if sensitive == "illness" else "illness"],
    }
    return {
        "input": {"path": str(folder)},
        "output": {"path": str(door.home / name)},
        "columns": columns,
        "missing": {"quasi_identifiers": "keep", "sensitive": "error"},
        "method": method,
        "random": {"key": "env:RELEASE_KEY"},
        **changes,
    }


@pytest.mark.spark
@pytest.mark.parametrize("method", cases("bucketize", "perturb", nightly=["fakes"]))
def test_the_rows_are_those_of_the_way_by_rows(door, folder, always, ways, monkeypatch, method):
    """The same multiset of rows of the same types under the same key, whatever the size of files, row groups and batches."""
    monkeypatch.setenv("RELEASE_KEY", KEY)
    sensitive = "code" if method == "perturb" else "illness"
    columns = door.run_spec(spec_of(door, folder, "columns", METHODS[method], sensitive), "columns").published()
    for module in (rewriting, listing):
        monkeypatch.setattr(module, "FEW_RECORDS", 10 * N)
    rows = door.run_spec(spec_of(door, folder, "rows", METHODS[method], sensitive, audit="off"), "rows").published()
    assert ways == ["columns", "rows"]
    by_pyarrow = [{_is_of_pyarrow(path) for path in of.output.glob("[mqs]*/part-*")} for of in (columns, rows)]
    assert by_pyarrow == [{True}, {False}]
    assert columns.manifest.tables.keys() == rows.manifest.tables.keys()
    for name, table in columns.manifest.tables.items():
        other = rows.manifest.tables[name]
        assert (table.rows, table.checksum, table.columns) == (other.rows, other.checksum, other.columns)
        assert _schemas(columns, name) == _schemas(rows, name)
    assert columns.manifest.splits == rows.manifest.splits
    table = "microdata" if method == "perturb" else "qit"
    _no_trace_of_the_input(columns, table)
    if method == "perturb":
        for module in (rewriting, listing):
            monkeypatch.setattr(module, "FEW_RECORDS", 0)
        again = door.run_spec(
            spec_of(door, folder, "again", METHODS[method], sensitive, audit="off"), "again"
        ).published()
        assert again.manifest.tables[table].checksum == columns.manifest.tables[table].checksum
        _no_record_stands_at_its_place_again(columns, again)


def _no_record_stands_at_its_place_again(*outcomes):
    """Where records stand would link two releases under one key, of tables that differ. By chance one of 900 stands where it stood; 20 do
    with a chance below 1e-18."""
    places = [
        [pq.read_table(p)["small"].to_pylist() for p in sorted(o.output.glob("microdata/*.parquet"))] for o in outcomes
    ]
    first, second = ({(file, i, n) for file, ns in enumerate(of) for i, n in enumerate(ns)} for of in places)
    assert len(first & second) < 20


def _schemas(outcome, name):
    """Types of a table's files and what may be missing in them, without what each writer notes besides."""
    schemas = [pq.read_schema(path).remove_metadata() for path in (outcome.output / name).glob("part-*")]
    return {str([field.remove_metadata() for field in schema]) for schema in schemas}


def _is_of_pyarrow(path):
    return "parquet-cpp" in pq.read_metadata(path).created_by


def _no_trace_of_the_input(outcome, name):
    """`small` is a record's place in the input. The order is drawn anew in each run: each test has a false alarm in some two million."""
    files = [pq.read_table(path) for path in sorted((outcome.output / name).glob("*.parquet"))]
    assert len(files) == 3
    places = [np.array(file["small"].to_pylist()) for file in files]
    halves = sum((place >= N / 2).sum() for place in places[:1]) - len(places[0]) / 2
    assert abs(halves) < 5 * np.sqrt(len(places[0]) / 4)
    if "bucket_id" in files[0].column_names:  # two neighbours of a bucket stand in either order alike often
        buckets = [np.array(file["bucket_id"].to_pylist()) for file in files]
        rises = np.concatenate([(np.diff(p) > 0)[np.diff(b) == 0] for p, b in zip(places, buckets, strict=True)])
        assert abs(rises.mean() - 0.5) < 5 * np.sqrt(0.25 / len(rises))
    else:  # rank correlation of the place in the file with that in the input
        for place in places:
            ranks = np.argsort(np.argsort(place))
            assert abs(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]) < 5 / np.sqrt(len(ranks))


@pytest.mark.spark
def test_tables_that_are_more_than_files_go_by_rows(door, folder, always, ways, monkeypatch):
    monkeypatch.setenv("RELEASE_KEY", KEY)
    of_years = door.home / "folders"
    (of_years / "year=2025").mkdir(parents=True)
    pq.write_table(persons(), of_years / "year=2025" / "part-0.parquet")
    in_columns = spec_of(door, folder, "years", METHODS["bucketize"])
    asked = {
        "years": in_columns | {"input": {"path": str(of_years)}, "columns": in_columns["columns"] | {"identifiers": "rest"}},
        "dropped": in_columns | {"missing": {"quasi_identifiers": "drop", "sensitive": "error"}},
        "marks": in_columns | {"missing": in_columns["missing"] | {"as_missing": ["-"]}},
        "options": in_columns | {"input": {"path": str(folder), "options": {"pathGlobFilter": "*.parquet"}}},
    }  # fmt: skip
    asked = {name: asked[name] for name in some(asked, "years", "dropped")}
    for name, spec in asked.items():
        door.run_spec(
            spec | {"output": {"path": str(door.home / name)}, "audit": "off", "random": {}}, name
        ).published()
    assert ways == ["rows"] * len(asked)


@pytest.mark.spark
def test_a_file_that_changes_between_the_passes_is_refused_and_nothing_is_left(door, folder, always, monkeypatch):
    monkeypatch.setenv("RELEASE_KEY", KEY)
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    place = rewriting.place

    def changed(asked):
        where = place(asked)
        last = sorted(folder.iterdir())[-1]
        table = pq.read_table(last)
        pq.write_table(pa.concat_tables([table.slice(1), table.slice(5, 1)]), last, row_group_size=120)
        return where

    monkeypatch.setattr(rewriting, "place", changed)
    try:
        outcome = door.run_spec(spec_of(door, folder, "changed", METHODS["bucketize"]), "changed")
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
    assert outcome.code != 0
    assert "the input changed between the two passes" in outcome.err
    assert not list(door.home.glob(".changed*"))
    assert not (door.home / "changed").exists()


# --- where the records lie ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_row_groups_are_found_in_the_order_in_which_spark_reads_them(spark, folder):
    frame = spark.read.parquet(str(folder))
    where = source.layout(frame)
    read = {}
    for partition, segments in where.segments.items():
        files = [pq.ParquetFile(s.path).read_row_groups(list(s.groups)) for s in segments]
        read[partition] = pa.concat_tables(files)["note"].to_pylist()
    by_spark = frame.selectExpr("spark_partition_id() AS p", "monotonically_increasing_id() AS i", "note").collect()
    assert sorted(row["p"] for row in by_spark) == sorted(p for p, notes in read.items() for _ in notes)
    for partition, notes in read.items():
        assert notes == [r["note"] for r in sorted(by_spark, key=lambda r: r["i"]) if r["p"] == partition]


UNLIKE = {
    "a list": pa.array([[1]]),
    "milliseconds": pa.array([0], pa.timestamp("ms")),
    "an instant, written as INT96 by Spark's own default": pa.array([0], pa.timestamp("us", tz="UTC")),
    "bytes": pa.array([b"x"]),
    "an unsigned number": pa.array([1], pa.uint8()),
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", UNLIKE)
def test_tables_with_other_types_go_by_rows(spark, tmp_path, kind):
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "plain.parquet")
    assert source.layout(spark.read.parquet(str(tmp_path / "plain.parquet"))) is not None
    pq.write_table(pa.table({"a": UNLIKE[kind]}), tmp_path / "unlike.parquet")
    assert source.layout(spark.read.parquet(str(tmp_path / "unlike.parquet"))) is None


@pytest.mark.spark
def test_a_file_that_only_looks_alike_goes_by_rows(spark, tmp_path):
    """Spark takes the types of one file and reads the four bytes of the other's as eight."""
    pq.write_table(pa.table({"a": pa.array([1], pa.int64())}), tmp_path / "part-0.parquet")
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "part-1.parquet")
    frame = spark.read.schema("a BIGINT").parquet(str(tmp_path))
    assert source.layout(frame) is None


@pytest.mark.spark
def test_what_spark_finds_in_its_own_way_goes_by_rows(spark, tmp_path):
    """A path that is named twice is read twice; columns found by numbers need not be those of their names; extensions may hide rows."""
    path = tmp_path / "x" / "part-0.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), path)
    frame = spark.read.parquet(str(path))
    assert source.layout(frame).segments == {0: (Segment(str(path), (0,)),)}
    twice = spark.read.parquet(f"{tmp_path}/{{x/part-0.parquet,x/part-0*}}")
    assert (twice.count(), source.layout(twice)) == (4, None)
    for name in ("spark.sql.parquet.fieldId.read.enabled", "parquet.crypto.factory.class"):
        with set_meanwhile(spark, {name: "true"}):
            assert source.layout(frame) is None


OTHERWISE_READ = {
    "days of Spark 2, of the Julian calendar": ({"org.apache.spark.version": "2.4.8"}, {}),
    "text that Spark pads to its length": ({"org.apache.spark.sql.parquet.row.metadata": '{"__CHAR_VARCHAR_TYPE_STRING":"char(6)"}'}, {}),
    "text that PyArrow reads as no dictionary": ({}, {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}),
}  # fmt: skip


@pytest.mark.parametrize("why", OTHERWISE_READ)
def test_files_that_spark_reads_otherwise_go_by_rows(tmp_path, why):
    notes, how = OTHERWISE_READ[why]
    table = pa.table({"a": ["ab"] * 9, "born": [datetime.date(1500, 1, 1)] * 9})
    path = tmp_path / "part-0.parquet"
    kinds = {"a": pa.string(), "born": pa.date32()}
    pq.write_table(table, path)
    assert source._footer(str(path), kinds) is not None
    pq.write_table(table.replace_schema_metadata(notes), path, **how)
    assert source._footer(str(path), kinds) is None


def test_a_column_that_hides_the_numbers_of_rows_goes_by_rows(tmp_path):
    pq.write_table(pa.table({"a": ["x"], "_Metadata": ["y"]}), tmp_path / "part-0.parquet")
    assert source._footer(str(tmp_path / "part-0.parquet"), {"a": pa.string()}) is None


def test_long_records_and_many_row_groups_go_by_rows(tmp_path):
    kinds = {"a": pa.string()}
    path = tmp_path / "long.parquet"
    for length, fits in ((100, True), (400, False)):
        texts = [secrets.token_hex(length // 2) for _ in range(50)]
        pq.write_table(pa.table({"a": texts}), path, use_dictionary=False)
        footer = source._footer(str(path), kinds)
        assert footer.coded == frozenset()
        assert (source._row_bytes([footer], kinds, footer.coded) <= source.MOST_ROW_BYTES) == fits
    footer = source._footer(str(path), kinds)
    assert source._row_bytes([footer], kinds, frozenset("a")) == 4
    assert source._row_bytes([], kinds, frozenset()) == 0
    groups = [source.Group(str(path), 0, start, 1) for start in range(source.MOST_STARTS + 1)]
    assert source._few(groups[:-1])
    assert not source._few(groups)


def test_a_partition_with_a_hole_is_not_understood():
    one, two = source.Group("x", 0, 0, 5), source.Group("x", 1, 5, 3)
    assert source._in_order({0: [(5, two), (0, one)]}) == {0: (Segment("x", (0, 1)),)}
    assert source._in_order({0: [(6, two), (0, one)]}) is None


# --- a task for each partition --------------------------------------------------------------------------------------------------


def dealing(table, **changes):
    """A Dealing of a table's one partition: the kernel's number is 10 times the rank, and the code."""
    values = sorted(set(table["illness"].to_pylist()))
    counts = [table["illness"].to_pylist().count(value) for value in values]
    packed = np.array([(code, 0, n) for code, n in enumerate(counts)], dtype=np.int64)
    plain = Dealing(
        columns=("age", "note"),
        coded=frozenset({"illness"}),
        sensitive="illness",
        values=pa.array(values),
        offsets={0: packed},
        kernel=lambda code, rank: 10 * rank + code,
        grouped=True,
        row_bytes=50,
        key=RELEASE_KEY,
    )
    return replace(plain, **changes)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "input.parquet"
    pq.write_table(persons(), path, row_group_size=250)
    return Segment(str(path), (0, 1, 2, 3))


@pytest.fixture
def pieces(tmp_path):
    (tmp_path / "pieces").mkdir()
    return Pieces(str(tmp_path / "pieces"), 3, secrets.token_bytes(32))


@pytest.mark.parametrize("coded", [frozenset(), frozenset({"illness", "country"})])
def test_every_record_is_dealt_once_with_its_number_and_its_word(file, pieces, monkeypatch, coded):
    monkeypatch.setattr("anonlib.engine.columnar.deal.BATCH_BYTES", 100 * 50)
    columns = ("note", "country", "illness")
    batches = dealing(persons(), coded=coded, columns=columns)(0, [file], pieces)
    tables = [pieces.read(0, batch, k) for batch in range(batches) for k in range(3)]
    dealt = pa.concat_tables(tables).select([*columns, NUMBER, WORD]).to_pylist()
    ranks: dict[str, int] = {}
    values = sorted(set(persons()["illness"].to_pylist()))
    expected = []
    for row in persons().select(columns).to_pylist():
        rank = ranks[row["illness"]] = ranks.get(row["illness"], -1) + 1
        code = values.index(row["illness"])
        word = Draws(RELEASE_KEY, ORDER).words(np.array([code]), np.array([rank]))[0, 0]
        expected.append({**row, NUMBER: 10 * rank + code, WORD: int(word)})
    by_place = {row[NUMBER]: row for row in dealt}
    assert len(by_place) == len(dealt)
    assert [by_place[row[NUMBER]] for row in expected] == expected
    for k in range(3):
        numbers = [n for batch in range(batches) for n in pieces.read(0, batch, k)[NUMBER].to_pylist()]
        assert {n % 3 for n in numbers} == {k}


def test_another_file_than_was_counted_is_refused(file, pieces):
    more, fewer, other = (
        pa.concat_tables([persons(), persons().slice(0, 1)]),
        persons().slice(1),
        persons().slice(0, 700),
    )
    for table, words in ((fewer, "more rows than"), (more, "fewer rows than"), (other, "more rows than")):
        with pytest.raises(TaskRefusal, match=words):
            dealing(table)(0, [file], pieces)
    with pytest.raises(TaskRefusal, match="a sensitive value that the first pass did not see"):
        dealing(persons(), values=pa.array(["asthma", "cold", "flu", "leprosy"]))(0, [file], pieces)
    with pytest.raises(TaskRefusal, match=r"cannot be read .*the input changed between the two passes"):
        dealing(persons())(0, [Segment(file.path, (0, 1, 2, 3, 4))], pieces)
    Path(file.path).unlink()
    with pytest.raises(TaskRefusal, match=r"input\.parquet cannot be read"):
        dealing(persons())(0, [file], pieces)


@pytest.mark.parametrize("coded", [frozenset({"illness"}), frozenset({"illness", "note"})])
def test_bytes_that_are_no_text_are_refused_as_by_rows(tmp_path, pieces, coded):
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], "<i4")), pa.py_buffer(b"\xff")])
    path = tmp_path / "broken.parquet"
    pq.write_table(pa.table({"age": [1], "note": broken, "illness": ["flu"]}), path)
    with pytest.raises(TaskRefusal, match="column 'note' has text with bytes that are no UTF-8"):
        dealing(pa.table({"illness": ["flu"]}), coded=coded)(0, [Segment(str(path), (0,))], pieces)


def test_records_that_cannot_be_handed_on_are_told_of(file, pieces):
    Path(pieces.folder).rmdir()
    with pytest.raises(TaskRefusal, match=r"records cannot be handed on in .*; run again"):
        dealing(persons())(0, [file], pieces)
    with (
        pytest.raises(AnonlibError, match=r"writing qit: the disk failed at .* \(No such file"),
        on_disk("writing qit"),
    ):
        (Path(pieces.folder) / "qit").mkdir()


def test_a_missing_sensitive_value_is_a_value(tmp_path, pieces):
    table = pa.table({"age": [1, 2, 3], "note": ["a", "b", "c"], "illness": ["flu", None, None]})
    path = tmp_path / "missing.parquet"
    pq.write_table(table, path)
    packed = {0: np.array([(0, 0, 1), (1, 0, 2)])}
    for coded in (frozenset(), frozenset({"illness"})):
        task = dealing(pa.table({"illness": ["flu"]}), coded=coded, values=pa.array(["flu", None]), offsets=packed)
        assert task(0, [Segment(str(path), (0,))], pieces) == 1
        numbers = [n for k in range(3) for n in pieces.read(0, 0, k)[NUMBER].to_pylist()]
        assert sorted(numbers) == [0, 1, 11]


# --- what tasks hand to each other ----------------------------------------------------------------------------------------------


def test_a_piece_is_sealed_and_bound_to_its_place(pieces):
    batch = pa.RecordBatch.from_pydict({"a": ["secret of a person"] * 50})
    empty = batch.slice(0, 0)
    for partition in (0, 1):
        pieces.write(partition, 0, [batch, empty, batch.slice(0, 1)])
    assert pieces.read(0, 0, 0).to_batches() == [batch]
    assert [len(pieces.read(1, 0, k)) for k in range(3)] == [50, 0, 1]
    written = sorted(Path(pieces.folder).iterdir())
    assert [path.name for path in written] == ["0-0", "1-0"]
    assert not any(b"secret" in path.read_bytes() or b"person" in path.read_bytes() for path in written)
    with pytest.raises(ValueError, match="another piece than was written"):
        replace(pieces, key=bytes(32)).read(0, 0, 0)
    content = written[0].read_bytes()
    written[1].write_bytes(content)
    with pytest.raises(ValueError, match="another piece"):
        pieces.read(1, 0, 0)
    written[0].write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match="another piece"):
        pieces.read(0, 0, 2)


@given(st.lists(st.integers(0, 4), max_size=40))
def test_a_batch_is_cut_without_loss_and_in_its_order(files):
    batch = pa.RecordBatch.from_pydict({"a": pa.array(range(len(files)), pa.int64())})
    parts = cut(batch, np.array(files, dtype=np.int64), 5)
    assert [part["a"].to_pylist() for part in parts] == [[i for i, f in enumerate(files) if f == k] for k in range(5)]


def test_files_follow_from_what_is_published_or_from_the_key():
    number, word = np.array([0, 1, 5, 7]), np.array([9, 10, 2**64 - 1, 4], dtype=np.uint64)
    assert files_of(number, word, 3, True).tolist() == [0, 1, 2, 1]
    assert files_of(number, word, 3, False).tolist() == [0, 1, 0, 1]


# --- a task for each file -------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=40, unique=True))
def test_rows_stand_by_number_and_word_alone(records):
    number = np.array([n for n, _ in records], dtype=np.int64)
    word = np.array([w for _, w in records], dtype=np.uint64)
    by_both = [(n, w >> 40) for n, w in records]
    assert [by_both[i] for i in in_order(number, word, True)] == sorted(by_both)
    assert [records[i][1] for i in in_order(number, word, False)] == sorted(w for _, w in records)


def test_numbers_that_do_not_fit_into_the_order_are_refused():
    word = np.zeros(1, dtype=np.uint64)
    largest = gather.LARGEST_GROUPED
    assert in_order(np.array([largest - 1]), word, True).tolist() == [0]
    for number in (-1, largest):
        with pytest.raises(ValueError, match="lie in"):
            in_order(np.array([number]), word, True)


@given(
    st.lists(st.sampled_from(["b", "a", "c", "b"]), min_size=4, max_size=4),
    st.lists(st.none() | st.integers(0, 3), max_size=20),
)
def test_a_dictionary_holds_what_the_column_holds_once_and_sorted(dictionary, indices):
    """Also where a writer has put a value twice into it: which of the two a record has would tell its file."""
    column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(dictionary, pa.string()))
    settled = sorted_dictionary(column)
    assert settled.to_pylist() == column.to_pylist()
    assert settled.dictionary.to_pylist() == sorted({v for v in column.to_pylist() if v is not None})


def test_a_file_has_its_rows_in_order_and_no_trace_of_the_input(pieces, tmp_path):
    """Whatever batches and dictionaries records came in: with other splits of the input the file is the same to the byte."""
    rows = [(k, f"{k % 4}", 100 - k % 3, k * 2**50 % 2**64) for k in range(60)]
    contents = []
    for number, (sizes, order) in enumerate([((60,), "0123"), ((7, 20, 33), "3120"), ((59, 1), "2301")]):
        start = 0
        for batch, size in enumerate(sizes):
            mine, start = rows[start : start + size], start + size
            code = pa.array([order.index(r[1]) for r in mine], pa.int32())
            text = pa.DictionaryArray.from_arrays(code, pa.array([*order, "of another file"]))
            columns = [
                pa.array([r[0] for r in mine]),
                text,
                pa.array([r[2] for r in mine]),
                pa.array([r[3] for r in mine], pa.uint64()),
            ]
            piece = pa.RecordBatch.from_arrays(columns, names=["a", "text", NUMBER, WORD])
            pieces.write(number, batch, [piece] * 3)
        files = Files("snappy", frozenset({"bucket"}), f"{number:032x}")
        gathering = Gathering(("text", "bucket", "a"), Itself("bucket"), True, files)
        out = tmp_path / f"out{number}"
        out.mkdir()
        batches = [(number, batch) for batch in range(len(sizes))]
        assert gathering(pieces, batches, 1, str(out)) == gathering(pieces, batches, 1, str(out)) == 60
        (path,) = out.iterdir()
        assert path.name == f"part-00001-{number:032x}.snappy.parquet"
        contents.append(path.read_bytes())
        assert b"of another file" not in contents[-1]
    assert contents[0] == contents[1] == contents[2]
    wanted = sorted(rows, key=lambda r: (r[2], r[3] >> 40))
    assert pq.read_table(path).to_pylist() == [{"text": r[1], "bucket": r[2], "a": r[0]} for r in wanted]
    assert pq.read_metadata(path).metadata is None


def test_packed_numbers_are_a_value_and_another_number():
    columns = Packed("illness", typed(["flu", None], "string"), 20, "subtable")
    made = columns(np.array([0, 1, 1 | 5 << 20]))
    assert {k: v.to_pylist() for k, v in made.items()} == {"illness": ["flu", None, None], "subtable": [0, 0, 5]}
    assert made["subtable"].type == pa.int32()
    dealt = pa.table({"illness": ["mumps"], NUMBER: pa.array([1 << 20]), WORD: pa.array([1], pa.uint64())})
    assert published(dealt, ["subtable", "illness"], columns, False).to_pylist() == [{"subtable": 1, "illness": "flu"}]


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        ("boolean", ["true", None], [True, None]),
        ("tinyint", ["-128"], [-128]),
        ("bigint", [str(2**63 - 1)], [2**63 - 1]),
    ],
)
def test_values_by_their_texts(kind, texts, values):
    assert typed(texts, kind).to_pylist() == values
    assert typed(texts, "double") is None


def test_what_a_stopped_task_left_is_cleared_away(tmp_path):
    files = Files.of_run("none", frozenset())
    for name in (files.name(0), "_half", Files.of_run("none", frozenset()).name(0)):
        (tmp_path / name).write_bytes(b"")
    files.settle(str(tmp_path), [0])
    assert {path.name for path in tmp_path.iterdir()} == {files.name(0), "_SUCCESS"}


# --- what each bucket holds -----------------------------------------------------------------------------------------------------

STRETCHES = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=4)),
    max_size=6,
)


@given(STRETCHES, st.integers(1, 12))
def test_a_listing_has_every_row_of_its_stretches_once(drawn, rows):
    """Against the loops that the words say; the rows of one id stand together, also where a share of rows ends."""
    stretches, start = [], 2**40
    for length, held in drawn:
        stretches.append((start, start + length, [code for code, _ in held], [count for _, count in held]))
        start += length
    shares = list(listing.shared(stretches, rows))
    values, names = typed(["b", None, "a", "b\0"], "string"), ("id", "value", "count")
    tables = [listing.listed(share, values, names) for share in shares]
    expected = [
        {"id": i, "value": values[code].as_py(), "count": count}
        for start, stop, codes, counts in stretches
        for i in range(start, stop)
        for code, count in zip(codes, counts, strict=True)
    ]
    assert [row for table in tables for row in table.to_pylist()] == expected
    assert all(len(table) for table in tables)
    ids = [set(table["id"].to_pylist()) for table in tables]
    assert sum(map(len, ids)) == len(set().union(*ids))
    assert all(len(table) < rows + 4 for table in tables)
