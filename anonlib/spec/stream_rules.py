"""What the rest of a spec must be for its stream: the faults of a stream beside its input, columns, method and output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anonlib.spec.hierarchy_rules import HierarchyRule
from anonlib.spec.ledger import DATE
from anonlib.spec.methods.sabre import Sabre
from anonlib.spec.part import Fault, listed, shown
from anonlib.spec.places import nested, overlap
from anonlib.spec.stream import MOST_SHARDS, Range, Stream

if TYPE_CHECKING:
    from anonlib.spec.release import ColumnWithHierarchy, ReleaseSpec

FORMATS = ("parquet", "csv", "json", "orc", "delta")
"""Of files that a stream can be read from as they arrive."""


def stream_faults(stream: Stream, spec: ReleaseSpec) -> list[Fault]:
    """Every fault, as (key path, sentence); none for a spec that can be run."""
    return [
        *_of_method(stream, spec),
        *_of_input(stream, spec),
        *_of_output(stream, spec),
        *_of_columns(stream, spec),
        *_of_persons(spec),
        *_of_domains(stream, spec),
    ]


def _of_method(stream: Stream, spec: ReleaseSpec) -> Iterator[Fault]:
    method = spec.method
    if not isinstance(method, Sabre):
        yield (
            "method",
            f"{method.name} publishes tables; a stream is published by sabre, e.g. method: {{sabre: {{t: 0.35, k: 6}}}}",
        )
        return
    yield from (
        (
            f"method.sabre.{key}",
            "it is for tables, and a stream's classes are made the one way that tells nothing; leave it out",
        )
        for key in ("refine", "neighbours", "partition_size", "allow_minimality_leak")
        if key in method.model_fields_set
    )
    if method.k > stream.advance:
        yield (
            "method.sabre.k",
            f"{method.k:,} records of a class are more than arrive between two windows ({stream.advance:,}), some could never come out; "
            f"write at most {stream.advance}, or a larger advance",
        )
    if spec.audit != "gate":
        yield "audit", f"{spec.audit!r}: a batch of a stream is shown only once it has been audited; leave this out"


def _of_input(stream: Stream, spec: ReleaseSpec) -> Iterator[Fault]:
    source = spec.input
    if source is None:
        return
    if source.path is None:
        yield (
            "input.table",
            "a stream reads a folder that files arrive in; give path, or hand a streaming DataFrame to anonlib.stream",
        )
        return
    if source.format not in FORMATS:
        yield "input.format", f"{source.format} cannot be read as it arrives; write one of {listed(FORMATS)}"
    if source.format in ("csv", "json") and source.schema_ddl is None:
        yield (
            "input.schema",
            f'missing; what has arrived of a {source.format} does not say what types are to come: write e.g. "age INT, job STRING"',
        )
    if source.unreadable != "error":
        yield (
            "input.unreadable",
            f"{source.unreadable!r} is for tables; a stream stops at what cannot be read. Leave this out",
        )
    if source.format == "delta" and stream.files is not None:
        yield (
            "stream.files",
            "a Delta table says itself what a micro-batch takes (maxFilesPerTrigger in input.options); leave this out",
        )
    if overlap(source.path, stream.checkpoint):
        yield (
            "stream.checkpoint",
            f"{shown(stream.checkpoint)} overlaps with the input at {shown(source.path)}; keep it elsewhere",
        )


def _of_output(stream: Stream, spec: ReleaseSpec) -> Iterator[Fault]:
    if spec.output is None:
        return
    if nested(stream.checkpoint, spec.output.path):
        yield (
            "stream.checkpoint",
            f"{shown(stream.checkpoint)} and the release at {shown(spec.output.path)} overlap; the state is raw records: keep it elsewhere",
        )
    if spec.output.table is not None:
        yield (
            "output.table",
            "a table over a stream's folder would read files that no batch has shown yet; leave this out, and read the release as "
            "docs/stream.md says",
        )
    if spec.output.format != "parquet":
        yield "output.format", f"{spec.output.format} is for tables; a stream is published as parquet"


def _of_columns(stream: Stream, spec: ReleaseSpec) -> Iterator[Fault]:
    columns = spec.columns
    if len(columns.sensitive) > 1:
        yield (
            "columns.sensitive",
            "a stream protects 1 sensitive column; keep one, and withhold the others as identifiers",
        )
    named = {name.lower(): role for role, name in columns.roles()}
    if stream.order is not None and stream.order.lower() not in named:
        yield (
            "stream.order",
            f"{stream.order!r} is no column of this spec; name it under columns, e.g. in a list of identifiers",
        )
    if stream.order is not None and named.get(stream.order.lower()) == "sensitive":
        yield (
            "stream.order",
            f"{stream.order!r} is sensitive, and who is shown with whom would follow from it; order by another column",
        )
    if stream.shard is None:
        return
    shard = _quasi_identifier(spec, stream.shard)
    if shard is None or shard.type != "categorical":
        yield (
            "stream.shard",
            f"{stream.shard!r} is no categorical quasi-identifier; a class never spans two shards, so its records' shard is seen by all: "
            "name it under quasi_identifiers",
        )
    elif (size := _size(stream, shard)) > MOST_SHARDS:
        yield (
            "stream.shard",
            f"{stream.shard!r} has {size:,} values, and at most {MOST_SHARDS:,} windows can be kept; shard by a coarser column",
        )


def _of_persons(spec: ReleaseSpec) -> Iterator[Fault]:
    """A stream publishes every record as it comes, and remembers nobody."""
    why = "a stream does not tell whose record is whose, so a person is published as often as records of theirs arrive; leave this out"
    if spec.columns.person:
        yield "columns.person", why
    if spec.ledger is not None:
        yield "ledger", why
    if spec.output is not None and DATE in spec.output.path:
        yield "output.path", f"{DATE} is for releases on a schedule; all batches of a stream go to one path"


def _of_domains(stream: Stream, spec: ReleaseSpec) -> Iterator[Fault]:
    columns = [*spec.columns.quasi_identifiers, *spec.columns.sensitive]
    told = {name.lower(): domain for name, domain in stream.domains.items()}
    known = {column.name.lower() for column in columns}
    for name in stream.domains:
        if name.lower() not in known:
            yield (
                f"stream.domains.{name}",
                "it is no quasi-identifier and not sensitive, so nothing asks for its domain; leave it out",
            )
    for column in columns:
        domain, at = told.get(column.name.lower()), f"stream.domains.{column.name}"
        if isinstance(column.hierarchy, HierarchyRule):
            yield (
                at,
                f"{column.hierarchy} makes a hierarchy of values that occur, and a stream's are told in advance; write it to a CSV file",
            )
        elif column.hierarchy is not None:
            if domain is not None:
                yield at, "its values are the leaves of its hierarchy; leave this out"
        elif domain is None:
            how = "{low: ..., high: ...}" if _is_range(column, spec) else "the list of all its values"
            yield (
                at,
                f"missing; a stream's domains are told in advance, since what arrives may stay hidden: write {how}",
            )
        elif _is_range(column, spec) and not isinstance(domain, Range):
            yield at, "a numeric quasi-identifier has two ends; write {low: ..., high: ...}"
        elif isinstance(domain, Range) and not _is_range(column, spec):
            yield at, "it is published value by value; write the list of all its values"


def _is_range(column: ColumnWithHierarchy, spec: ReleaseSpec) -> bool:
    return column.type == "numeric" and column in spec.columns.quasi_identifiers


def _quasi_identifier(spec: ReleaseSpec, name: str) -> ColumnWithHierarchy | None:
    return next((c for c in spec.columns.quasi_identifiers if c.name.lower() == name.lower()), None)


def _size(stream: Stream, column: ColumnWithHierarchy) -> int:
    if column.told_hierarchy is not None:
        return column.told_hierarchy.leaves
    domain = next((d for name, d in stream.domains.items() if name.lower() == column.name.lower()), ())
    return 0 if isinstance(domain, Range) else len(domain)
