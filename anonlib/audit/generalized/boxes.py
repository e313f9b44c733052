"""What the boxes of a generalized release hold: one scan in SQL, one through Arrow.

Cost: `microdata` is read twice, and nothing of it is shuffled; the driver gets one row of sums, four numbers per quasi-identifier and one
per value of a categorical domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from anonlib.arrays import Float64Array, Int64Array, UInt64Array
from anonlib.audit import arithmetic
from anonlib.audit.generalized.facts import AttributeFacts, BoxFacts
from anonlib.audit.generalized.fingerprint import PIECES, BoxFingerprint
from anonlib.audit.generalized.fingerprint import summed as of_hashes
from anonlib.audit.published import range_columns, ranges
from anonlib.audit.verdict import Measured
from anonlib.domains import CategoricalDomain
from anonlib.engine.batches import summed
from anonlib.engine.checksum import combine, pieces, row_hash, sum_columns
from anonlib.engine.relational import DataFrame, Small, aggregate, select
from anonlib.queries.boxes import Attribute, BoxReader, Intervals, Sets, column
from anonlib.release import generalized
from anonlib.release.manifest import Manifest, QuasiIdentifierPart
from anonlib.spec.layouts import EC_ID
from anonlib.sql import quoted


def scan_boxes(microdata: DataFrame, manifest: Manifest, fingerprint: BoxFingerprint | None = None) -> Small[BoxFacts]:
    """What the audit wants of rows taken one by one: checksum, ranges, malformed boxes, how far boxes reach, what they lose; and, with a
    way to hash them, their `fingerprint`, in the same scan."""
    parts = manifest.quasi_identifiers
    ranged, projected, aggregated = range_columns(microdata, [EC_ID])
    projected |= {f"fault{i}": _malformed(part) for i, part in enumerate(parts)}
    aggregated |= {f"fault{i}": f"count_if(fault{i})" for i in range(len(parts))}
    for i, part in enumerate(parts):
        if part.kind == "numeric":
            projected |= {
                f"from{i}": generalized.column_codes(part)["low"],
                f"to{i}": generalized.column_codes(part)["high"],
            }
            aggregated |= {f"from{i}": f"min(from{i})", f"to{i}": f"max(to{i})"}
    nameless = f"{EC_ID} IS NULL" if generalized.has_classes(manifest) else "false"
    frame = select(microdata, {"row": row_hash(microdata), "nameless": nameless} | projected)
    sums = {"n": "count(1)", "nulls": "count_if(nameless)", **sum_columns("row", "c")}
    sensitive = tuple(tuple(v.value for v in part.values) for part in (manifest.guarantee, *manifest.guarantee.also))
    reader = BoxReader(generalized.quasi_identifiers(manifest).domains)
    kernel = _Measure(reader, tuple(parts), sensitive, fingerprint)
    boxes = select(microdata, generalized.boxes(microdata, manifest, labels=True))

    def facts(answers: list[Any]) -> BoxFacts:
        in_sql, of_rows = answers
        attributes = []
        for i, part in enumerate(parts):
            outside, mislabelled, penalty, loss = of_rows[4 * i : 4 * i + 4]
            ends = (in_sql.get(f"from{i}"), in_sql.get(f"to{i}"))
            short = _unreached(part, *ends) if part.kind == "numeric" else _absent(part, of_rows[kernel.held(i)])
            attributes.append(
                AttributeFacts(int(in_sql[f"fault{i}"]), round(outside), round(mislabelled), penalty, loss, short)
            )
        measured = Measured(int(in_sql["n"]), combine(pieces(in_sql, "c")))
        hashes = () if fingerprint is None else tuple(of_rows[-PIECES:].astype(np.int64).tolist())
        return BoxFacts(measured, ranges(ranged, in_sql), tuple(attributes), int(in_sql["nulls"]), hashes)

    in_sql = Small.of_row(aggregate(frame, [], sums | aggregated), dict)
    return Small.of([in_sql, summed(boxes, kernel, kernel.length)], facts)


def _malformed(part: QuasiIdentifierPart) -> str:
    """SQL: is this row's interval or set no interval or set?"""
    if part.kind == "numeric":
        low, high = quoted(generalized.low_name(part.name)), quoted(generalized.high_name(part.name))
        return f"NOT coalesce({low} <= {high}, false)"
    name = quoted(part.name)
    # `sort_array` is compiled, where `array_sort` compares by a function that is interpreted; it puts a missing value first and not last
    has_null = f"get(sort_array({name}), 0) IS NULL"
    in_order = f"IF({has_null}, array_sort(array_distinct({name})), sort_array(array_distinct({name})))"
    return f"NOT ({name} IS NOT NULL AND size({name}) > 0 AND {name} <=> {in_order})"


def _unreached(part: QuasiIdentifierPart, low: Any, high: Any) -> str | None:
    """The union of the intervals reaches from the lowest to the highest value of the domain: what the manifest calls the domain
    is neither wider (which would make boxes look small) nor narrower."""
    stated = generalized.domain_ends(part)
    return None if (low, high) == stated else f"stated {stated[0]} to {stated[1]}, the boxes span {low} to {high}"


def _absent(part: QuasiIdentifierPart, held: Float64Array) -> str | None:
    """Without a hierarchy every value of the domain stands in some set; a tree may have leaves that the table has not. held : (|A|,) in
    how many rows each value stands."""
    absent = [] if part.hierarchy else [value for value, rows in zip(part.values, held, strict=True) if not rows]
    return f"{len(absent)} stated value(s) in no set, first {absent[0]!r}" if absent else None


@dataclass(frozen=True)
class _Measure:
    """Kernel over boxes: per quasi-identifier rows outside the domain, rows with a wrong label, sums of penalty and loss; then per value of
    each categorical one, in how many rows it stands; last the sums of the rows' hashes, where there is a way to hash them. sensitive : the
    values of each sensitive column, in the order of their codes."""

    reader: BoxReader
    parts: tuple[QuasiIdentifierPart, ...]
    sensitive: tuple[tuple[str | None, ...], ...]
    fingerprint: BoxFingerprint | None = None

    @property
    def length(self) -> int:
        return int(self.held(len(self.parts)).start) + (0 if self.fingerprint is None else PIECES)

    def held(self, i: int) -> slice:
        """Where the rows of each value of quasi-identifier number i stand in the vector; nothing for a numeric one."""
        sizes = [d.size if isinstance(d, CategoricalDomain) else 0 for d in self.reader.domains]
        first = 4 * len(self.parts) + sum(sizes[:i])
        return slice(first, first + sum(sizes[i : i + 1]))

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.length, dtype=np.float64)
        trees = [_Tree.of(part.hierarchy) if part.hierarchy else None for part in self.parts]
        for batch in batches:
            attributes = self.reader.attributes(batch)
            if self.fingerprint is not None:
                boxes = [_words(self.fingerprint, attribute) for attribute in attributes]
                codes = [
                    replace(self.reader, sensitive=values).sensitive_codes(batch, f"s{k}")
                    for k, values in enumerate(self.sensitive)
                ]
                total[-PIECES:] += of_hashes(self.fingerprint.rows(boxes, codes))
            for i, (part, tree, attribute) in enumerate(zip(self.parts, trees, attributes, strict=True)):
                if isinstance(attribute, Intervals):
                    here = self._interval(i, attribute)
                else:
                    label = column(batch, f"q{i}_label") if part.hierarchy else None
                    here = self._set(i, attribute, tree, label)
                    total[self.held(i)] += np.bincount(attribute.codes, minlength=attribute.size + 1)[:-1]
                total[4 * i : 4 * i + 4] += here
        return total

    def _interval(self, i: int, intervals: Intervals) -> tuple[float, ...]:
        low, high = generalized.domain_ends(self.parts[i])
        inside = (intervals.low >= low) & (intervals.high <= high)
        share = float(np.nansum(arithmetic.interval_penalty(intervals.low, intervals.high, low, high)))
        return float((~inside).sum()), 0.0, share, share

    def _set(self, i: int, sets: Sets, tree: _Tree | None, label: Any) -> tuple[float, ...]:
        domain = self.reader.domains[i]
        assert isinstance(domain, CategoricalDomain)
        unknown = np.zeros(len(sets.starts) - 1, dtype=bool)
        unknown[sets.rows[sets.codes == sets.size]] = True
        fine = ~unknown & (sets.counts > 0)
        distinct = sets.counts[fine]
        penalty = float(arithmetic.set_penalty(distinct, domain.size).sum())
        kept = np.repeat(fine, sets.counts)
        starts = np.concatenate([[0], np.cumsum(distinct)]).astype(np.int64)
        if tree is None:
            loss = float(arithmetic.set_loss(distinct, distinct, domain.size).sum())
            return float(unknown.sum()), 0.0, penalty, loss
        names, leaves = tree.above(sets.codes[kept], starts)
        wrong = int((~fine).sum()) + sum(
            mine != theirs for mine, theirs in zip(names, label.filter(pa.array(fine)).to_pylist(), strict=True)
        )
        loss = float(arithmetic.set_loss(distinct, leaves, domain.size).sum())
        return float(unknown.sum()), float(wrong), penalty, loss


def _words(fingerprint: BoxFingerprint, attribute: Attribute) -> UInt64Array:
    """(n,) what tells the interval or set of each row; nothing where there is no set."""
    if isinstance(attribute, Intervals):
        return fingerprint.interval(attribute.low, attribute.high)
    sums = np.cumsum(fingerprint.members(attribute.size)[attribute.codes])
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), sums])
    return np.asarray(ends[attribute.starts[1:]] - ends[attribute.starts[:-1]])


@dataclass(frozen=True)
class _Tree:
    """A hierarchy as the manifest writes it: nodes[leaf, level] is the number of the label that stands there. The audit's own reading."""

    labels: tuple[str, ...]
    nodes: Int64Array
    under: Int64Array

    @staticmethod
    def of(hierarchy: list[list[str]]) -> _Tree:
        number: dict[str, int] = {}
        nodes = np.array(
            [[number.setdefault(label, len(number)) for label in row] for row in hierarchy], dtype=np.int64
        )
        under = np.zeros(len(number), dtype=np.int64)
        for row in nodes:
            under[np.unique(row)] += 1
        return _Tree(tuple(number), nodes, under)

    def above(self, codes: Int64Array, starts: Int64Array) -> tuple[list[str], Int64Array]:
        """(label of the lowest node above each run of leaves, how many leaves it has)."""
        if len(starts) == 1:
            return [], np.zeros(0, dtype=np.int64)
        node = np.full(len(starts) - 1, -1, dtype=np.int64)
        for level in range(self.nodes.shape[1]):
            here = self.nodes[codes, level]
            low, high = np.minimum.reduceat(here, starts[:-1]), np.maximum.reduceat(here, starts[:-1])
            node = np.where((node < 0) & (low == high), low, node)
        return [self.labels[k] for k in node], self.under[node]
