"""What lies in a release's folder: no column that may not be published, no word of the input's, no file that nobody named."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import anonlib
from anonlib import workflow
from anonlib.audit import folder, folder_judge
from anonlib.audit.folder_judge import COLUMN_LIST
from anonlib.engine import order
from anonlib.release.manifest import ColumnPart, Manifest, QuasiIdentifierPart
from anonlib.spec import load_spec
from tests.contract.methods import over, recipe_of, replace_recipe
from tests.door import KEY, VALUES, bucketize, cut, people, with_column, write_files
from tests.footers import write_with_pairs
from tests.thorough import cases

pytestmark = pytest.mark.spark

ONE_OF_EACH_LAYOUT = {
    "bucketized": ("bucketize", bucketize(l=3), "qit"),
    "perturbed": ("perturb", {"perturb": {"rho2": "1/4"}}, "microdata"),
    "generalized": ("mondrian", {"mondrian": {"frequency_l": 3}}, "microdata"),
}
"""At the door one method stands for its layout: a layout has one audit. What the audit says of each method's columns is below."""


def columns_for(door, source, layout):
    """`ssn` is an identifier; generalized layouts withhold `note` too."""
    columns = door.spec(source)["columns"] | {"identifiers": ["ssn"]}
    if layout == "generalized":
        columns["identifiers"] += columns.pop("other")
    return columns


@pytest.fixture
def source(door):
    return door.input(with_column(people(), "ssn", [f"078-05-{i:04d}" for i in range(60)]))


# --- the gate knows what may be published -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ONE_OF_EACH_LAYOUT)
def test_an_identifier_that_a_recipe_lets_through_ends_at_the_gate(door, source, monkeypatch, layout):
    """The recipe's own manifest names the column, so only the spec's roles tell that it may not be there."""
    method, asked, name = ONE_OF_EACH_LAYOUT[layout]
    recipe = recipe_of(method)
    values = ["078-05-0000", "078-05-0001"]
    made, kind = (
        (F.array(F.lit(values[0])), "array<string>") if layout == "generalized" else (F.lit(values[0]), "string")
    )

    def leaky(table, wanted, run):
        def stage(table, frame, by_columns=None):
            return (
                run.stage(table, frame.withColumn("ssn", made))
                if table == name
                else run.stage(table, frame, by_columns)
            )

        draft = recipe.publish(table, wanted, replace(run, stage=stage))
        roles = draft.roles | {name: draft.roles[name] | {"ssn": "quasi_identifier"}}
        parts = draft.quasi_identifiers
        if parts:
            more = QuasiIdentifierPart(name="ssn", kind="categorical", type="string", values=list(values))
            parts = (*parts, more)
        assert dict(draft.tables[name].dtypes)["ssn"] == kind
        return replace(draft, roles=roles, quasi_identifiers=parts)

    replace_recipe(monkeypatch, method, leaky)
    door.run(source, method=asked, columns=columns_for(door, source, layout)).refused(4, "columns", "ssn")


@over("identifiers")
def test_an_identifier_among_staged_columns_is_refused(releases, tmp_path, method):
    """With the method's own manifest, which names the column as a quasi-identifier, and the roles that the spec gives."""
    seen = releases.seen(method)
    records = next(iter(seen.manifest.tables))
    columns = load_spec(releases.written(method, tmp_path, "release")).columns
    assert "columns" not in seen.failures(columns=columns, staged=True)
    name = "note" if "note" in columns.identifiers else "ssn"
    part = seen.manifest.tables[records]
    more = [*part.columns, ColumnPart(name=name, type="string", role="quasi_identifier")]
    said = seen.manifest.model_copy(
        update={"tables": seen.manifest.tables | {records: part.model_copy(update={"columns": more})}}
    )
    leaky = seen.with_columns(records, lambda c: [*c, (name, "string")])
    assert "columns" in leaky.failures(said, columns=columns, staged=True)


@over("what lies in the folder")
def test_nothing_lies_in_the_folder_but_what_the_manifest_names(releases, method):
    output = releases.of(method).output
    assert not failed(output)
    for path in output.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert KEY.encode() not in data
            assert str(releases.source).encode() not in data


# --- tables are written without the input's metadata ------------------------------------------------------------------------------

SECRET = "registered by Dr. Petrova"


def commented(frame):
    """The same rows, with comments and metadata on every column, and inside a nested one."""
    about = {"comment": SECRET, "source": {"system": SECRET}}
    inner = T.StructType([T.StructField("ward", T.LongType(), True, about)])
    nested = F.struct(F.col("note").alias("ward")).cast(inner)
    return frame.select(
        *[F.col(name).alias(name, metadata=about) for name in ("age", "country", "illness")],
        nested.alias("no.te", metadata=about),
    )


@pytest.mark.parametrize("format", cases("parquet", nightly=["orc"]))
def test_comments_and_metadata_of_the_input_stay_behind(door, source, format):
    kept = door.home / "commented"
    commented(door.spark.read.parquet(str(source))).write.parquet(str(kept))
    assert any(SECRET.encode() in path.read_bytes() for path in kept.glob("part-*"))
    columns = door.spec(kept)["columns"] | {"other": ["no.te"]}
    output = {"path": str(door.home / format), "format": format}
    outcome = door.run_spec(door.spec(kept, columns=columns) | {"output": output}, format)
    assert outcome.code == 0, outcome.err
    files = [path for path in (door.home / format).rglob("*") if path.is_file()]
    assert len(files) > 3
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
    assert (
        dict(door.spark.read.format(format).load(str(door.home / format / "qit")).dtypes)["no.te"]
        == "struct<ward:bigint>"
    )


# --- every file, footer and name ----------------------------------------------------------------------------------------------------

PEOPLE = with_column(people(240), "note", [None] * 240, pa.int64())
COUNTS = (60, 50, 40, 40, 30, 20)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    values = [value for value, count in zip(VALUES, COUNTS, strict=True) for _ in range(count)]
    dealt = [values[(7 * i) % 240] for i in range(240)]
    return write_files(tmp_path_factory.mktemp("folder") / "input", cut(with_column(PEOPLE, "illness", dealt), 2))


@pytest.fixture(scope="module")
def release(spark, original):
    """A release of 240 records in two files."""
    path = original.parent / "release"
    with pytest.MonkeyPatch.context() as small:
        small.setattr(order, "FILE_ROWS", 150)
        anonlib.bucketize(
            spark.read.parquet(str(original)),
            quasi_identifiers=["age", "country"],
            sensitive="illness",
            other=["note"],
            privacy={"l": 3},
            output=str(path),
        )
    return path


@pytest.fixture
def copy(release, tmp_path):
    return Path(shutil.copytree(release, tmp_path / "copy"))


def failed(path: Path) -> dict[str, str]:
    """{failed check of what lies in the folder: its evidence}; no session is needed to see it."""
    manifest = Manifest.from_json((path / "manifest.json").read_text(encoding="utf-8"))
    return {
        c.name: str(c.evidence) for c in folder_judge.judge(folder.look(str(path), manifest), manifest) if not c.passed
    }


def parts(path: Path, table: str = "qit") -> list[Path]:
    return sorted((path / table).glob("part-*"))


def without_sum(file: Path) -> None:
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


def rewritten(file: Path, table: pa.Table, **pairs: str) -> None:
    """The file with other contents; Spark's list of columns stays unless `pairs` say otherwise. The manifest's sizes are made to fit."""
    kept = {k.decode(): v.decode() for k, v in (pq.read_metadata(file).metadata or {}).items() if k != b"ARROW:schema"}
    write_with_pairs(file, table, kept | pairs)
    without_sum(file)
    sizes_fitted(file.parents[1])


def sizes_fitted(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    for table in manifest["tables"]:
        manifest["files"][table] = [{"name": f.name, "size": f.stat().st_size} for f in parts(path, table)]
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def read(file: Path) -> pa.Table:
    return pq.ParquetFile(file).read()


def copied(path: Path, original: Path, name: str) -> None:
    (path / name).parent.mkdir(exist_ok=True, parents=True)
    shutil.copy(original / "part-000.parquet", path / name)


def longer_sums(path: Path) -> None:
    sums = path / "qit" / f".{parts(path)[0].name}.crc"
    sums.write_bytes(sums.read_bytes() + b"HIV")


STRANGERS = {
    "the original beside the manifest": lambda p, o: copied(p, o, "original.parquet"),
    "the original where Spark does not look": lambda p, o: copied(p, o, "qit/_original.parquet"),
    "the original behind a dot": lambda p, o: copied(p, o, ".original"),
    "the original in a folder of a table": lambda p, o: copied(p, o, "qit/illness=HIV/part-00000-c000.parquet"),
    "the original in a folder of its own": lambda p, o: copied(p, o, "original/part-00000-c000.parquet"),
    "a word in a file's name": lambda p, o: parts(p)[0].rename(p / "qit" / "part-00000-HIV.parquet"),
    "another format": lambda p, o: (p / "qit" / "part-00000-c000.csv").write_text("age,illness\n7,HIV\n"),
    "_SUCCESS with a list in it": lambda p, o: (p / "qit" / "_SUCCESS").write_text("0: HIV"),
    "a checksum file with more than checksums": lambda p, o: longer_sums(p),
    "a checksum file of no file": lambda p, o: (p / "qit" / ".HIV.crc").write_text("0"),
    "a link": lambda p, o: (p / "qit" / "part-00009-c000.parquet").symlink_to(o / "part-000.parquet"),
    "an empty folder with a name": lambda p, o: (p / "patient 7 has HIV").mkdir(),
    "a committer's note with a word": lambda p, o: (p / "qit" / "_committed_7").write_text('{"added": ["HIV"]}'),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_file_that_the_manifest_does_not_name(copy, original, kind):
    STRANGERS[kind](copy, original)
    assert "files" in failed(copy)


def with_truth(file: Path, **pairs: str) -> None:
    table = read(file)
    rewritten(file, table.append_column("truth", pa.array(["HIV"] * len(table))), **pairs)


def type_changed(file: Path) -> None:
    table = read(file)
    rewritten(file, with_column(table, "bucket_id", table["bucket_id"].to_pylist(), pa.int32()))


def a_comment(file: Path) -> str:
    columns = json.loads(pq.read_metadata(file).metadata[COLUMN_LIST.encode()])
    columns["fields"][0]["metadata"] = {"comment": "0: HIV"}
    return json.dumps(columns)


def key_twice(file: Path) -> None:
    """Two entries of one key: PyArrow and Spark show one of them."""
    rewritten(file, read(file), **{"org.apache.spark.versioo": "4"})
    data = file.read_bytes()
    file.write_bytes(data.replace(b"spark.versioo", b"spark.version"))


FOOTERS = {
    "one more column in the last file, hidden by Spark's list": lambda p: with_truth(parts(p)[-1]),
    "one more column without the list": lambda p: with_truth(parts(p)[-1], **{COLUMN_LIST: "{}"}),
    "a column left out": lambda p: rewritten(parts(p)[0], read(parts(p)[0]).drop_columns(["note"])),
    "another type in one file": lambda p: type_changed(parts(p)[0]),
    "a linkage among the pairs": lambda p: rewritten(parts(p)[0], read(parts(p)[0]), linkage="0: HIV"),
    "a linkage as Spark's version": lambda p: rewritten(
        parts(p)[0], read(parts(p)[0]), **{"org.apache.spark.version": "0: HIV"}
    ),
    "a linkage as a column's comment": lambda p: rewritten(
        parts(p)[0], read(parts(p)[0]), **{COLUMN_LIST: a_comment(parts(p)[0])}
    ),
    "a key twice": lambda p: key_twice(parts(p)[0]),
    "no Parquet at all": lambda p: (parts(p)[0].write_text("0: HIV"), without_sum(parts(p)[0]), sizes_fitted(p)),
}  # fmt: skip


@pytest.mark.parametrize("kind", FOOTERS)
def test_a_data_file_that_tells_more_than_its_columns(copy, kind):
    FOOTERS[kind](copy)
    assert list(failed(copy)) == ["footers"]


def test_files_dealt_anew_by_the_true_value(copy, original):
    """Rows, columns and checksums are as published, and the numbers of the files tell each record's value."""
    truth = pa.concat_tables([pq.read_table(file) for file in sorted(original.glob("*.parquet"))])
    file, rows = parts(copy)[0], pa.concat_tables([read(f) for f in parts(copy)])
    pairs = {k.decode(): v.decode() for k, v in pq.read_metadata(file).metadata.items()}
    shutil.rmtree(copy / "qit")
    (copy / "qit").mkdir()
    # which row is whose does not matter here: as many rows in each file as the value has records
    start = 0
    for number, count in enumerate(sorted(Counter(truth["illness"].to_pylist()).values())):
        name = f"part-{number:05d}-00000000-0000-0000-0000-000000000000-c000.snappy.parquet"
        write_with_pairs(copy / "qit" / name, rows.slice(start, count), pairs)
        start += count
    assert list(failed(copy)) == ["files and sensitive values", "data files as listed"]
    sizes_fitted(copy)
    assert list(failed(copy)) == ["files and sensitive values"]


def test_a_file_more_or_less_than_the_manifest_lists(copy):
    shutil.copy(parts(copy)[0], copy / "qit" / "part-00007-c000.parquet")
    assert list(failed(copy)) == ["data files as listed"]


def test_what_was_published_passes_and_a_stranger_is_refused_at_the_door(door, copy, original):
    assert not failed(copy)
    assert len(parts(copy)) == 2
    names = {c["name"] for c in door.audit(copy)[1]}
    assert {"files", "footers", "files and sensitive values", "data files as listed"} <= names
    copied(copy, original, "qit/illness=HIV/part-00000-c000.parquet")  # Spark itself stumbles over it
    code, checks = door.audit(copy)
    assert code == 4
    assert "illness=HIV" in next(c["evidence"] for c in checks if c["name"] == "files")


def test_a_table_outside_the_release_is_not_opened(door, copy):
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["tables"]["qit"]["path"] = "../input"
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    outcome = door.call("audit", str(copy))
    assert outcome.code == 2
    assert "tables.qit.path" in outcome.sentence


def test_a_recipe_that_leaves_a_file_in_a_table_ends_at_the_gate(door, source, monkeypatch):
    write = workflow.tables.write

    def and_a_file(frame, path, format, doing):
        write(frame, path, format, doing)
        if path.endswith("/qit"):
            (Path(path.removeprefix("file://")) / "_notes").write_text("0: HIV")

    monkeypatch.setattr(workflow.tables, "write", and_a_file)
    door.run(source, columns=columns_for(door, source, "bucketized")).refused(4, "files", "qit/_notes")


def test_what_a_committer_writes_into_success_is_not_published(door, source, monkeypatch):
    write = workflow.tables.write

    def as_committers_do(frame, path, format, doing):
        write(frame, path, format, doing)
        (Path(path.removeprefix("file://")) / "_SUCCESS").write_text('{"hostname": "ward-7"}')

    monkeypatch.setattr(workflow.tables, "write", as_committers_do)
    outcome = door.run(source, columns=columns_for(door, source, "bucketized")).published()
    assert not list(outcome.output.rglob("_SUCCESS"))
