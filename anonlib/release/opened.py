"""An opened release: its tables as DataFrames, its manifest, and count queries on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from pydantic import ValidationError

from anonlib.engine import tables
from anonlib.engine.failures import explained
from anonlib.engine.relational import DataFrame, Row, rows
from anonlib.engine.session import SparkSession, run_settings
from anonlib.errors import SpecError
from anonlib.queries.means import MeanEstimate
from anonlib.queries.predicate import NUMERIC
from anonlib.release import storage, streamed
from anonlib.release.layout import LAYOUTS, Estimate
from anonlib.release.manifest import FORMAT_VERSION, AuditPart, Manifest, TablePart
from anonlib.sql import quoted

MAX_GROUP_ROWS = 10_000
"""Rows that `group_rows` brings to the driver."""


class Release:
    """A published release. `release.tables["qit"]` is a DataFrame; `release.count("age > 30 AND occupation = 'x'")` an estimate."""

    def __init__(
        self, spark: SparkSession, path: str, manifest: Manifest, catalog: Mapping[str, str] | None = None
    ) -> None:
        self.spark = spark
        self.path = path
        self.manifest = manifest
        self.catalog = dict(catalog or {})
        """Of a release that was published or registered just now, {table: its name in the catalog}; else empty."""

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

        by    : published columns to group by; none for all records in one group. Of boxes, categorical quasi-identifiers
        where : a condition on published columns other than the sensitive one, as in `count`

        Columns: `by`, the sensitive one, `estimate`, `standard_error`, `low`, `high` and further ones by layout. Not computed yet: one
        plan, for buckets after a small job or two. Raises SpecError for an unknown column, or a condition that cannot be read.
        """
        with run_settings(self.spark), explained(f"counting on {self.path}"):
            return LAYOUTS[self.manifest.layout].distribution(self.tables, self.manifest, by, where)

    def group_by(self, *columns: str, where: str | None = None) -> DataFrame:
        """How many records each combination of values in `columns` has, the sensitive column among them or not: a DataFrame.

        With a sensitive column this is `distribution` by the others; without one, the sizes of groups, which are exact wherever
        quasi-identifiers are published as they are. Where there are several sensitive columns and some are named, buckets and boxes are
        grouped by these, and `where` may be on the others; of perturbed values there is a row for each combination of all. Raises
        SpecError as `distribution` does.
        """
        named = {name.lower() for name in columns}
        shown = [name for name in self.sensitive if name.lower() in named]
        sensitive = {name.lower() for name in self.sensitive}
        visible = [name for name in columns if name.lower() not in sensitive]
        if shown and len(set(columns)) < len(columns):
            raise SpecError(f"group_by: a column of {', '.join(columns)} is named twice")
        layout = LAYOUTS[self.manifest.layout]
        if len(shown) == len(self.sensitive) or (shown and layout.of_some is None):
            return self.distribution(visible, where)
        with run_settings(self.spark), explained(f"counting on {self.path}"):
            if shown and layout.of_some is not None:
                return layout.of_some(self.tables, self.manifest, visible, where, shown)
            return layout.sizes(self.tables, self.manifest, visible, where)

    def group_rows(self, *columns: str, where: str | None = None) -> list[Row]:
        """The rows of `group_by` on the driver, in order of the groups. Raises SpecError where there are more than MAX_GROUP_ROWS."""
        frame = self.group_by(*columns, where=where)
        with run_settings(self.spark), explained(f"counting on {self.path}"):
            found = rows(frame.limit(MAX_GROUP_ROWS + 1), MAX_GROUP_ROWS + 1)
        if len(found) > MAX_GROUP_ROWS:
            raise SpecError(
                f"there are more than {MAX_GROUP_ROWS:,} groups and values; ask group_by for a DataFrame, or fewer columns"
            )
        return sorted(found, key=lambda row: [(row[name] is not None, str(row[name])) for name in frame.columns])

    def mean(self, column: str, where: str | None = None) -> MeanEstimate:
        """The mean of a numeric column among the records that meet `where`, estimated from the published tables in one Spark plan.

        where : a condition on published columns; of two sensitive columns in buckets or boxes on these too, where one of them is averaged

        Missing values have no part in it. Raises SpecError for a column that is unknown or no number, a quasi-identifier that is
        published in intervals, or a condition that cannot be read or is on the sensitive column.
        """
        spelled = self._number(column)
        with run_settings(self.spark), explained(f"averaging on {self.path}"):
            return LAYOUTS[self.manifest.layout].mean(self.tables, self.manifest, spelled, where)

    @property
    def sensitive(self) -> list[str]:
        """The sensitive columns of the release."""
        return [
            column.name
            for part in self.manifest.tables.values()
            for column in part.columns
            if column.role == "sensitive"
        ]

    def _number(self, column: str) -> str:
        """The column's name as the release spells it. Raises SpecError unless it is published as a number."""
        kinds = {
            one.name: one.type
            for part in self.manifest.tables.values()
            for one in part.columns
            if one.role in ("quasi_identifier", "other", "sensitive")
        }
        spelled = next((name for name in kinds if name.lower() == column.lower()), None)
        if spelled is None:
            raise SpecError(
                f"mean: there is no column {column!r} published value by value in this release; there are {', '.join(kinds)}"
            )
        if not kinds[spelled].startswith(NUMERIC):
            raise SpecError(f"mean: the column {spelled!r} holds {kinds[spelled]}, which has no mean")
        return spelled

    def __repr__(self) -> str:
        published = self.manifest.rows.published
        return f"<Release {self.path}: {self.manifest.method.name}, {published:,} records, {self.manifest.guarantee.words}>"


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
