"""Heterogeneous generalization of one or two sensitive columns; of two, no value of either is shown too often by anybody's matches.

One column is `anonlib.methods.heterogeneous`. Of two, the walk, for n records, M_1 and M_2 values and partitions of p records:

    counts        a pass over each sensitive column; its values reach the driver, their combinations do not
    domains       at most two passes
    partitions    as of one column: equal parts along the Hilbert curve, merged with neighbours until no value of either column has more
                  than one record in l; number of partitions x (M_1 + M_2) counts reach the driver
    matches       one shuffle of codes; each partition dealt to pools by counts of its combinations (`anonlib.solvers.matching.pair_pools`),
                  then matched, boxed and coloured as of one column. A row shows both values of one and the same match
    microdata     one shuffle of what is published, into an order that says nothing

A combination is matched as one value, and l holds for the values of each column. What a task needs for its solver is O(p).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine.microdata import Microdata
from anonlib.engine.relational import aggregate, one_row
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import together, types
from anonlib.errors import Unsatisfiable
from anonlib.exact import text
from anonlib.methods import boxed
from anonlib.methods import heterogeneous as one_column
from anonlib.methods.heterogeneous import ORDER, SUMMARY, WORKING, Matching, cut, rows_part, solver_part
from anonlib.methods.recipe import Draft, Run, Say
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.l_diversity import LDiversity
from anonlib.release.manifest import GuaranteePart, ValuePart
from anonlib.solvers.matching.match_partitions import Bucketing
from anonlib.spec.methods.heterogeneous import Heterogeneous
from anonlib.words import DIVERSE_MATCHES, matches_of_columns


def heterogeneous(table: Microdata, wanted: Heterogeneous, run: Run) -> Draft:
    """Publish `table` by matches."""
    if len(table.sensitive_columns) == 1:
        return one_column.heterogeneous(table, wanted, run)
    started = time.monotonic()
    statistics = counted(table, wanted, run.say)
    coded = boxed.read_coded(table, statistics, False, run.say)
    sizes, l = (coded.sizes[0], coded.sizes[1]), promised_l(wanted)  # noqa: E741  (the field's name)
    partitions, held = cut(coded, wanted, l, _Eligible(sizes[0], LDiversity(l)), run)
    number = len(held)
    run.say(f"matching {coded.n:,} records in {number:,} partitions ({wanted.matching})")
    kernel = PairMatching(coded.domains, sizes, l, wanted.matching, run.key, coded.n**2 // number)
    working = run.stage(WORKING, boxed.over_matches(coded, partitions, kernel, ORDER, run.key, held))
    summary = one_row(aggregate(together(working, coded.n), [], SUMMARY))
    guarantee, rows = _guarantee(table, statistics, l), rows_part(statistics[0], summary)
    return boxed.publish_matches(coded, working, guarantee, rows, solver_part(wanted, summary, number), started, run)


def promised_l(wanted: Heterogeneous) -> int:
    """The l of both columns, which a spec with two of them has."""
    assert wanted.l is not None
    return wanted.l


def counted(table: Microdata, wanted: Heterogeneous, say: Say) -> list[SensitiveStatistics]:
    """Both columns, counted. Raises Unsatisfiable, with the largest l that works, where a value is too frequent for this one."""
    say("counting the sensitive values")
    names = table.sensitive_columns
    statistics = [sensitive_statistics(table.frame, name, table.keep, table.refuse) for name in names]
    refuse_frequent(names, [each.counts for each in statistics], promised_l(wanted))
    return statistics


def refuse_frequent(names: Sequence[str], counts: Sequence[SensitiveCounts], l: int) -> None:  # noqa: E741
    """Raises Unsatisfiable unless no value of either column has more than one record in l. All such tables can be published."""
    held = [int(each.counts.max()) for each in counts]
    n = counts[0].n
    faults = [
        f"{each.values[int(np.argmax(each.counts))]!r} in column {name!r} has {most:,} of {n:,} records"
        for name, each, most in zip(names, counts, held, strict=True)
        if most * l > n
    ]
    if faults:
        best = n // max(held)
        mend = f"l: {best} can be kept of both columns" if best > 1 else "no l above 1 can be kept of both columns"
        raise Unsatisfiable(f"l: {l}, but {' and '.join(faults)}, more than one in {l}; {mend}")


@dataclass(frozen=True)
class _Eligible:
    """Whether records with such counts of the m values of the first column, and of those of the second behind them, can be a partition."""

    m: int
    diversity: LDiversity

    def __call__(self, counts: Int64Array) -> bool:
        columns = (counts[: self.m], counts[self.m :])
        return all(bool(self.diversity.eligible(each[None, :])[0]) for each in columns)


@dataclass(frozen=True)
class PairMatching:
    """The record kernel, for one partition: that of one column over combinations, which come apart again in what it returns.

    sizes : how many values each column has; pairs : of records that are compared in all partitions, about
    """

    domains: tuple[Domain, ...]
    sizes: tuple[int, int]
    l: int  # noqa: E741  (the field's name)
    matching: str
    key: bytes
    pairs: int = 0

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> dict[str, Any]:
        present, codes, kernel = self.combined(sensitive)
        matched = kernel(columns, present, partition)
        shown, own = matched["s0"], matched["own"]
        apart = {f"s{i}": values[shown].astype(np.int32) for i, values in enumerate(codes)}
        return matched | apart | {name: codes[i][own].astype(np.int32) for i, name in enumerate(boxed.OWN)}

    def combined(self, sensitive: Sequence[Int64Array]) -> tuple[Int64Array, Int64Array, Matching]:
        """(the combination of each record, numbered as they sort; (2, m) the values of each combination; the kernel over combinations)."""
        first, second = sensitive
        present, combination = np.unique(first * self.sizes[1] + second, return_inverse=True)
        codes = np.stack([present // self.sizes[1], present % self.sizes[1]])
        promised = Bucketing(self.l, None, codes=codes)
        kernel = Matching(self.domains, len(present), promised, None, self.matching, False, self.key, self.pairs)
        return combination.astype(np.int64), codes, kernel


def words(names: Sequence[str], l: int) -> list[str]:  # noqa: E741  (the field's name)
    """The promise in words, of each column."""
    first, second = names
    return [matches_of_columns(first, second, l), matches_of_columns(second, first, l)]


def _guarantee(table: Microdata, statistics: Sequence[SensitiveStatistics], l: int) -> GuaranteePart:  # noqa: E741
    """Of the first column, with that of the second under `also`."""
    kinds, names, bound = types(table.frame), table.sensitive_columns, text(Fraction(1, l))
    parts = [
        GuaranteePart(
            model=DIVERSE_MATCHES,
            words=said,
            sensitive=name,
            sensitive_type=kinds[name],
            values=[
                ValuePart(value=value, count=int(n), threshold=bound)
                for value, n in zip(each.counts.values, each.counts.counts, strict=True)
            ],
            asked={"l": str(l)},
        )
        for name, each, said in zip(names, statistics, words(names, l), strict=True)
    ]
    return parts[0].model_copy(update={"also": parts[1:]})
