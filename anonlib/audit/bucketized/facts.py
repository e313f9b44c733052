"""What the published tables of a bucketized release hold, as far as its judge asks. Pure: numbers and small arrays."""

from __future__ import annotations

from dataclasses import dataclass

from anonlib.audit.form import Described
from anonlib.audit.verdict import Measured

Pieces = tuple[int, int, int]
"""A checksum in three parts that add up; see `anonlib.engine.checksum`."""


@dataclass(frozen=True)
class QitFacts:
    """One scan of `qit`: `fingerprint` is of the multiset of bucket ids, `ranges` min and max of whole-number columns."""

    measured: Measured
    null_buckets: int
    fingerprint: Pieces
    ranges: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Entry:
    """`rows` rows of `st` say: value number `code`, `count` times; the smallest of their buckets sums to `smallest`."""

    code: int
    count: int
    rows: int
    smallest: int


@dataclass(frozen=True)
class NodeEntry:
    """`buckets` buckets hold `count` records of values under node number `node`; the smallest of them sums to `smallest`, and `telling` of
    them hold nothing else. A count above the largest allowed is reported as one more than it."""

    node: int
    count: int
    buckets: int
    smallest: int
    telling: int


@dataclass(frozen=True)
class StFacts:
    """What was found in `st`.

    entries       : one per (value, count) that occurs; a count above `largest` is reported as `largest` + 1, below 1 as 0
    unknown       : rows whose value the manifest does not list
    sizes         : sum of a bucket's counts -> number of buckets (sums above `largest` as `largest` + 1)
    doubled       : buckets in which a value has more than one row
    null_buckets  : 1 when rows have no bucket id
    fingerprint   : of the multiset of bucket ids, each as often as its counts sum to, less the fake values
    """

    measured: Measured
    entries: tuple[Entry, ...]
    unknown: int
    sizes: dict[int, int]
    doubled: int
    null_buckets: int
    fingerprint: Pieces
    largest: int


@dataclass(frozen=True)
class BucketizedFacts:
    """Both tables. `qit` and `st` are None when they could not be scanned, since their columns are not the layout's.

    numbering : the columns of `qit` that count its rows, in words
    nodes     : what buckets hold of the nodes of the values' hierarchy, where they have one
    columns_of_two : of two sensitive columns, what buckets hold of the values of each; `st` is then of their combinations
    """

    columns: Described
    qit: QitFacts | None = None
    st: StFacts | None = None
    numbering: tuple[str, ...] = ()
    nodes: tuple[NodeEntry, ...] = ()
    columns_of_two: tuple[tuple[Entry, ...], ...] = ()
