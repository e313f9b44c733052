"""The manifest: the public record of a release, written last. A release exists when its manifest does.

It holds what a reader needs to use and to check the release, and never the key, per-record facts, or anything computed
from an unpublished column beyond the overall distribution of the sensitive attribute.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from anonlib.spec.layouts import LayoutName

FORMAT_VERSION = 1
FILE_NAME = "manifest.json"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MethodPart(_Part):
    """Which method, with every parameter as it was used. Numbers of a guarantee are exact text."""

    name: str
    parameters: dict[str, Any]


class ValuePart(_Part):
    """One sensitive value: its share of the table, what was asked, what the audit found (exact text: "3/20", "0.15").

    threshold : None when the model sets no bound per value
    """

    value: str | None
    count: int
    threshold: str | None = None
    achieved: str | None = None


class NodePart(_Part):
    """A node of the sensitive values' hierarchy below the root: the records of all values under it, what was asked, what the audit found.

    threshold : None when nothing is promised of it
    achieved  : the largest share of a bucket, or among a record's matches, that the values under it have together, exact text
    telling   : buckets that hold values under it alone, or records all of whose matches have
    """

    node: str
    count: int
    threshold: str | None = None
    achieved: str | None = None
    telling: int | None = None


class GuaranteePart(_Part):
    """What nobody can infer, in words and in numbers.

    asked, achieved : the model's own numbers, e.g. {"t": "0.35"}, as exact text; `achieved` is what the audit found
    distance        : of t-closeness, how far apart sensitive values are: "ordered", "hierarchical" or "flat"
    hierarchy       : of a hierarchical distance, or of values whose nodes are bounded too, the rows of the tree (leaf, ..., root)
    nodes           : of such values, the nodes above two or more of them and those with a threshold, each behind those below it
    also            : the same for further sensitive columns
    """

    model: str
    words: str
    sensitive: str
    sensitive_type: str
    values: list[ValuePart]
    asked: dict[str, str] = {}
    achieved: dict[str, str] = {}
    distance: Literal["", "ordered", "hierarchical", "flat"] = ""
    hierarchy: list[list[str]] = []
    nodes: list[NodePart] = []
    also: list[GuaranteePart] = []


class RowsPart(_Part):
    """input = published + suppressed + dropped; dummy and fake are additions that belong to no person."""

    input: int
    published: int
    dropped: int = 0
    suppressed: int = 0
    dummy: int = 0
    fake: int = 0


class PersonsPart(_Part):
    """Whose rows were read, where the spec names persons: rows = nameless + persons + left_out, and each person has one row at most in the
    release.

    repeated : which of a person's rows was taken
    rows     : of the input; nameless : without a person, dropped by the missing-value policy; left_out : of persons with another row
    persons  : whom the input has rows of; known : of these, left out because a ledger has them as published
    """

    repeated: Literal["error", "first", "latest", "random"]
    rows: int
    persons: int
    nameless: int = 0
    left_out: int = 0
    known: int = 0


class LedgerPart(_Part):
    """The release in its ledger: id, by which a ledger is known; number, from 1; persons, who are entered with it.

    before, records_before : where thresholds follow from the shares of all releases of the ledger, how many records of each value of
                             `guarantee.values`, in this order, and of any value, earlier ones published
    """

    id: str
    number: int
    persons: int
    before: list[int] = []
    records_before: int = 0


class UnreadablePart(_Part):
    """What of a text input could not be read, in columns that may be published. Left out where such a table is refused (the default).

    handling : its cells were read as missing values, or its records left out (and are not in `rows`)
    records  : with anything unreadable; lengths : of these, with too few or too many cells
    cells, undecodable : {column: cells that are not of its type, or have bytes that are no text}
    """

    handling: Literal["missing", "drop"]
    records: int
    lengths: int
    cells: dict[str, int] = {}
    undecodable: dict[str, int] = {}


class SizePart(_Part):
    size: int
    number: int


class SolverPart(_Part):
    """What was chosen and what is proven about it.

    unit        : what `setting` counts by size, e.g. "buckets"
    loss, bound : the objective reached and the least that any choice can reach, where one is proven; gap is their relative distance
    details     : the method's own numbers
    """

    name: str
    status: str
    setting: list[SizePart]
    unit: str = "buckets"
    loss: int | float | None = None
    bound: int | float | None = None
    gap: float | None = None
    seconds: float
    details: dict[str, Any] = {}


class CheckPart(_Part):
    name: str
    passed: bool
    asked: str
    achieved: str
    evidence: str | None = None


class AuditPart(_Part):
    mode: Literal["gate", "report", "off"]
    passed: bool | None
    checks: list[CheckPart]


class ColumnPart(_Part):
    name: str
    type: str
    role: str


class QuasiIdentifierPart(_Part):
    """A generalized quasi-identifier: its domain, over the input after the missing-value policy.

    type      : the Spark type of its values
    low, high : of a numeric one, the ends of its domain as codes (see `anonlib.engine.numeric_codes`): whole numbers, or floats that
                read back exactly
    values    : of a categorical one without hierarchy, its values in the order of their codes; None is a missing value
    hierarchy : else the rows of its hierarchy (leaf, ..., root) in leaf order, the order of the codes
    """

    name: str
    kind: Literal["numeric", "categorical"]
    type: str
    low: str | None = None
    high: str | None = None
    values: list[str | None] = []
    hierarchy: list[list[str]] = []


class TablePart(_Part):
    """A table of the release: `path` is a folder of the release itself; `checksum` is over its rows in any order."""

    path: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    format: str
    rows: int
    checksum: str
    columns: list[ColumnPart]


class FilePart(_Part):
    """A data file of a table: its name in the table's folder, and its size in bytes."""

    name: str
    size: int


class SplitsPart(_Part):
    """How the input was cut into partitions: with the same key and the same splits a run repeats row for row.

    key_tag : of a run with a stored key, what tells its key from others and leads to none; "" with a fresh one
    """

    partitions: int
    settings: dict[str, str]
    key_tag: str = ""


class StreamPart(_Part):
    """Of a stream's release: its windows, and what became of the records that arrived.

    id      : of the stream, drawn once; batch : the number of this one, None for all shown batches together (`batches` of them)
    window, advance : omega and I; shard : the quasi-identifier whose values have windows of their own
    values  : the sensitive values that the stream was told, in whose order and number distances are measured
    arrived = missing + outside + shown + waiting, over all batches: left out for a missing value or one outside the domains, published, or
              not yet; late : of those that arrived, how many after one that was due later. In one batch, `waiting` is what waits after it
    """

    id: str
    batch: int | None
    batches: int = 1
    window: int
    advance: int
    shard: str | None = None
    values: list[str | None]
    arrived: int
    missing: int = 0
    outside: int = 0
    late: int = 0
    shown: int = 0
    waiting: int = 0


class Manifest(_Part):
    """The whole of `manifest.json`. `quasi_identifiers` is filled by the generalized layout; `files` are those of each table.

    as_missing : what stood for a missing value in the input, and was read as one
    catalog    : {table: its name in the catalog of the session that published it}; the tables are there once the release is visible
    """

    format_version: int = FORMAT_VERSION
    anonlib_version: str
    spark_version: str
    layout: LayoutName
    method: MethodPart
    guarantee: GuaranteePart
    missing: dict[str, str]
    as_missing: list[str] = []
    rows: RowsPart
    solver: SolverPart
    utility: dict[str, float]
    audit: AuditPart
    tables: dict[str, TablePart]
    splits: SplitsPart
    quasi_identifiers: list[QuasiIdentifierPart] = []
    files: dict[str, list[FilePart]] = {}
    unreadable: UnreadablePart | None = None
    stream: StreamPart | None = None
    persons: PersonsPart | None = None
    ledger: LedgerPart | None = None
    catalog: dict[str, str] = {}

    def to_json(self) -> str:
        """Readable JSON text; a table's release has nothing to say of a stream, nor of values read as missing, or of a catalog, where
        there are none."""
        said = {"stream": self.stream is not None, "as_missing": self.as_missing, "catalog": self.catalog}
        unsaid = {name for name, there in said.items() if not there}
        return self.model_dump_json(indent=2, exclude=unsaid or None) + "\n"

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Parse and validate. Raises pydantic's ValidationError on anything unknown."""
        return Manifest.model_validate_json(text)
