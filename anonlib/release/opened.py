"""An opened release: its tables as DataFrames, its manifest, and count queries on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pydantic import ValidationError

from anonlib.engine import tables
from anonlib.engine.failures import explained
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession, run_settings
from anonlib.errors import SpecError
from anonlib.release import storage, streamed
from anonlib.release.layout import LAYOUTS, Estimate
from anonlib.release.manifest import FORMAT_VERSION, AuditPart, Manifest, TablePart
from anonlib.sql import quoted


class Release:
    """A published release. `release.tables["qit"]` is a DataFrame; `release.count("age > 30 AND occupation = 'x'")` an estimate."""

    def __init__(self, spark: SparkSession, path: str, manifest: Manifest) -> None:
        self.spark = spark
        self.path = path
        self.manifest = manifest

    @cached_property
    def tables(self) -> dict[str, DataFrame]:
        """{table name: DataFrame}, read lazily."""
        if self.manifest.stream is not None:
            return {name: self._of_batches(name, part) for name, part in self.manifest.tables.items()}
        return {
            name: tables.read_back(self.spark, storage.spark_path(f"{self.path}/{part.path}"), part.format)
            for name, part in self.manifest.tables.items()
        }

    def _of_batches(self, name: str, part: TablePart) -> DataFrame:
        """The files of the batches that were shown when the release was opened, and no others."""
        folder = storage.spark_path(f"{self.path}/{part.path}")
        paths = [f"{folder}/{file.name}" for file in self.manifest.files.get(name, [])]
        schema = ", ".join(f"{quoted(column.name)} {column.type}" for column in part.columns)
        return tables.read_files(self.spark, paths, part.format, schema)

    @property
    def audit(self) -> AuditPart:
        """What the audit found before publication."""
        return self.manifest.audit

    def count(self, predicate: str) -> Estimate:
        """How many records meet `predicate`, estimated from the published tables in one Spark job.

        The predicate is SQL over the published columns and the sensitive attribute, e.g. "age > 30 AND occupation = 'x'"; AND alone
        may join the two sides. Raises SpecError for what it cannot read, or for an unknown column.
        """
        with run_settings(self.spark), explained(f"counting on {self.path}"):
            return LAYOUTS[self.manifest.layout].count(self.tables, self.manifest, predicate)

    def distribution(self, by: Sequence[str] = (), where: str | None = None) -> DataFrame:
        """How many records of each group have each sensitive value, estimated from the published tables: a DataFrame.

        by    : published columns to group by; none for all records in one group
        where : a condition on published columns other than the sensitive one, as in `count`

        Not computed yet: one scan of the records when it is. Raises SpecError for a layout that offers none (only `perturbed` does),
        an unknown column, or a condition that cannot be read.
        """
        distribution = LAYOUTS[self.manifest.layout].distribution
        if distribution is None:
            raise SpecError(
                f"{self.path}: a {self.manifest.layout} release offers no distributions; ask for counts value by value, "
                "e.g. release.count(\"age > 30 AND illness = 'x'\")"
            )
        with run_settings(self.spark), explained(f"counting on {self.path}"):
            return distribution(self.tables, self.manifest, by, where)

    def __repr__(self) -> str:
        rows = self.manifest.rows
        return f"<Release {self.path}: {self.manifest.method.name}, {rows.published:,} records, {self.manifest.guarantee.words}>"


def open_release(spark: SparkSession, path: str) -> Release:
    """The release at `path`, of a stream what is shown of it so far. Reads manifests only.

    Raises SpecError when there is none, or one this version cannot read.
    """
    if batches := streamed.batch_numbers(path):
        return Release(spark, path, streamed.union(streamed.read_batches(path, batches)))
    text = storage.read_manifest(path)
    try:
        manifest = Manifest.from_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SpecError(
            f"{path!r}: its manifest is not one that this version of anonlib (format {FORMAT_VERSION}) can read: {where}: {first['msg']}"
        ) from None
    if manifest.format_version > FORMAT_VERSION:
        raise SpecError(
            f"{path!r}: its manifest has format {manifest.format_version}, this version reads up to {FORMAT_VERSION}; upgrade"
        )
    return Release(spark, path, manifest)
