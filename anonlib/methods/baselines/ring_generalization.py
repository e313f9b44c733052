"""Ring generalization (NH), the baseline: every record matches l records of its ring, with l different sensitive values.

Source: Wong, Mamoulis and Cheung, SIGMOD 2010, as compared with in heterogeneous generalization (section 5). The walk, for n records:

    counts        pass 1 over the sensitive column; Unsatisfiable if a value has more than one record in l
    domains       at most two passes
    partitions    only above `partition_size`: two passes over the codes                                 (`anonlib.methods.boxed`)
    rings         one shuffle of the codes; eligible classes (or runs along the curve) dealt to rings, and for each ring one of its l
                  disjoint perfect matchings drawn uniformly from the cryptographic stream: every edge then carries the sensitive value with
                  probability 1/l                                                     (`anonlib.kernels.matching.ring_generalization`)
    microdata     one shuffle of what is published

What the audit needs and nobody may publish, the matches, is staged beside the release.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib import words
from anonlib.arrays import Codes, Int64Array, Lists
from anonlib.domains import Domain
from anonlib.engine.microdata import Microdata
from anonlib.engine.ranks import CHANGED
from anonlib.engine.tables import types
from anonlib.errors import AnonlibError
from anonlib.exact import text
from anonlib.kernels.boxes import boxes_of_classes
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.kernels.matching.ring_generalization import Rings, rings, rings_within
from anonlib.keyed import Stream
from anonlib.methods import boxed
from anonlib.methods.baselines import classes
from anonlib.methods.class_promises import check_eligible
from anonlib.methods.recipe import Draft, Explanation, Grid, Run, Say
from anonlib.privacy.class_requirements import ShareCaps, frequency_diversity
from anonlib.privacy.counts import SensitiveCounts
from anonlib.release.manifest import GuaranteePart, ValuePart
from anonlib.spec.methods.ring_generalization import RingGeneralization

PURPOSE = "nh: order of the records of a partition"
DRAW = "nh: which matching of each ring"
WORKING = "rings"
"""The table that holds boxes and evidence together, staged and never published."""


def nh(table: Microdata, wanted: RingGeneralization, run: Run) -> Draft:
    """Publish `table` by rings."""
    started = time.monotonic()
    statistics = boxed.count(table, run.say)
    counts = statistics.counts
    check_eligible(table.sensitive, counts, wanted.l, "l")
    coded = boxed.read_coded(table, [statistics], False, run.say)
    requirement = frequency_diversity(wanted.l, counts.m)
    cut = boxed.cut_by_tree(coded, wanted.partition_size, requirement, run.say)
    run.say(f"dealing {coded.n:,} records to rings")
    kernel = Dealing(coded.domains, counts.m, wanted.l, requirement, wanted.partitions == "mondrian", run.key)
    working = run.stage(WORKING, boxed.over_matches(coded, cut.records, boxed.OneSensitive(kernel), PURPOSE, run.key))
    solver = classes.solver_part("ring_generalization", started, partitions=cut.number)
    guarantee = _guarantee(table, counts, wanted.l)
    return boxed.publish_matches(coded, working, guarantee, boxed.rows(statistics), solver, started, run)


def explain(table: Microdata, wanted: RingGeneralization, say: Say) -> Explanation:
    """What would be promised: one scan for the counts."""
    counts = boxed.count(table, say).counts
    check_eligible(table.sensitive, counts, wanted.l, "l")
    most = int(counts.counts.max())
    return Explanation(
        words=words.rings(table.sensitive, wanted.l),
        summary=f"Deals {counts.n:,} records to rings of {wanted.l} to {2 * wanted.l - 1}",
        grids=(
            Grid(
                ("records", "most frequent value", "largest l there can be"),
                ((f"{counts.n:,}", f"{most:,}", str(counts.n // most)),),
            ),
        ),
        facts={
            "records": counts.n,
            "sensitive_values": counts.m,
            "asked": {"l": str(wanted.l)},
            "largest_l": counts.n // most,
        },
    )


@dataclass(frozen=True)
class Dealing:
    """The kernel of one partition: puts its records on rings; the box of each record's l matches, and evidence for the audit."""

    domains: tuple[Domain, ...]
    m: int
    l: int  # noqa: E741  (the field's name)
    requirement: ShareCaps
    within_classes: bool
    key: bytes

    def __call__(self, columns: list[Codes], sensitive: Int64Array, partition: int) -> dict[str, Any]:
        n, dealt = len(sensitive), self.rings(columns, sensitive)
        matches = dealt.matches(self.l)
        shift = Stream(self.key, DRAW, partition).below(self.l, len(dealt.sizes))
        assigned = dealt.shifted(shift)
        matched = [column[matches.ravel()] for column in columns]
        boxes = boxes_of_classes(matched, self.domains, np.repeat(np.arange(n, dtype=np.int64), self.l))
        return boxed.box_columns(boxes, np.arange(n)) | {
            "s0": sensitive[assigned].astype(np.int32),
            "partition": np.full(n, partition, dtype=np.int64),
            "record": np.arange(n, dtype=np.int32),
            "own": sensitive.astype(np.int32),
            "dummy": np.zeros(n, dtype=bool),
            "matches": Lists.of_rows(matches.astype(np.int32)),
            "assigned": assigned.astype(np.int32),
            **{f"q{i}": column for i, column in enumerate(columns)},
        }

    def rings(self, columns: list[Codes], sensitive: Int64Array) -> Rings:
        """The rings of a partition's records, within Mondrian's classes where `within_classes` asks for it.

        Raises AnonlibError when the partition no longer keeps `requirement`: the input changed.
        """
        if not self.requirement.holds(np.bincount(sensitive, minlength=self.m)[None, :])[0]:
            raise AnonlibError(f"a partition can no longer keep the promise; {CHANGED}")
        curve = hilbert_positions(columns, self.domains)
        if not self.within_classes:
            return rings(curve, sensitive, self.l)
        cut_first = mondrian(columns, self.domains, sensitive, self.m, self.requirement)
        return rings_within(curve, sensitive, self.l, cut_first)


def _guarantee(table: Microdata, counts: SensitiveCounts, l: int) -> GuaranteePart:  # noqa: E741
    bound = text(Fraction(1, l))
    return GuaranteePart(
        model=words.DIVERSE_MATCHES,
        words=words.rings(table.sensitive, l),
        sensitive=table.sensitive,
        sensitive_type=types(table.frame)[table.sensitive],
        values=[
            ValuePart(value=value, count=int(count), threshold=bound)
            for value, count in zip(counts.values, counts.counts, strict=True)
        ],
        asked={"l": str(l)},
    )
