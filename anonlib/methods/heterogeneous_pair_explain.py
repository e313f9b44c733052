"""What heterogeneous generalization would promise of two sensitive columns, and what the second one costs: certainty penalty on a sample.

The passes of counts and domains, one scan for the sample, then the driver alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.engine.codes import sampled
from anonlib.engine.microdata import Microdata
from anonlib.methods import boxed, heterogeneous_explain
from anonlib.methods.boxed import Coded
from anonlib.methods.heterogeneous_pair import PairMatching, counted, promised_l, words
from anonlib.methods.heterogeneous_sample import SAMPLE, certainty_penalty, penalty_of_matches
from anonlib.methods.recipe import Explanation, Grid, Say
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.matching.pair_pools import pair_pools
from anonlib.spec.methods.heterogeneous import Heterogeneous

MOST = 20
SEVERAL = "Of two sensitive columns no trade-off over l is drawn"


def explain(table: Microdata, wanted: Heterogeneous, say: Say) -> Explanation:
    """The promise, the values nearest to its bound, and the penalty on a sample beside that of each column alone."""
    if len(table.sensitive_columns) == 1:
        return heterogeneous_explain.explain(table, wanted, say)
    statistics = counted(table, wanted, say)
    counts, names = [each.counts for each in statistics], table.sensitive_columns
    coded = boxed.read_coded(table, statistics, False, say)
    columns, sensitive = sampled(coded.frame, SAMPLE, coded.n)
    say(f"matching {len(columns[0]):,} records, by both columns and by each")
    sizes, l = (coded.sizes[0], coded.sizes[1]), promised_l(wanted)  # noqa: E741  (the field's name)
    kernel = PairMatching(coded.domains, sizes, l, wanted.matching, bytes(32))
    penalties = _penalties(coded, columns, sensitive, wanted, kernel)
    pools = _pools(kernel, sensitive)
    size = coded.n if wanted.partition_size == "all" else int(wanted.partition_size)
    partitions = max(1, coded.n // size)
    return Explanation(
        words=" ".join(words(names, l)),
        summary=f"Matches every record of the table's {coded.n:,} with {l} or more, in {partitions:,} partition(s) or fewer; "
        f"{_sentence(names, penalties, len(columns[0]))}. {SEVERAL}.",
        grids=(
            Grid(
                ("matched by", f"certainty penalty of {len(columns[0]):,} sampled records"),
                tuple((name, "none" if p is None else f"{p:.4f}") for name, p in penalties.items()),
            ),
            Grid(
                ("pool of the sample", "matches", "bucket size"),
                tuple((str(k), f"{mu:,}", f"{c:,}") for k, (mu, c) in enumerate(pools[:MOST], 1)),
            ),
            *(_grid(name, each, l) for name, each in zip(names, counts, strict=True)),
        ),
        facts={
            "records": coded.n,
            "sensitive_values": {name: each.m for name, each in zip(names, counts, strict=True)},
            "asked": {"l": str(l)},
            "largest_l": coded.n // max(int(each.counts.max()) for each in counts),
            "partitions": partitions,
            "sample": {"records": len(columns[0]), "gcp": penalties, "pools": [list(pool) for pool in pools]},
        },
        choice=pools,
    )


def _penalties(
    coded: Coded, columns: list[Any], sensitive: list[Int64Array], wanted: Heterogeneous, kernel: PairMatching
) -> dict[str, float | None]:
    """{who is matched by what: GCP of the sample published alone, None where it cannot keep l}."""
    names = coded.table.sensitive_columns
    alone = {
        name: certainty_penalty(columns, coded.domains, codes, wanted, Fraction(kernel.l), each.counts.values)
        for name, codes, each in zip(names, sensitive, coded.statistics, strict=True)
    }
    combination, _, over_combinations = kernel.combined(sensitive)
    both = penalty_of_matches(columns, coded.domains, combination, over_combinations)
    return {" and ".join(names): both, **alone}


def _pools(kernel: PairMatching, sensitive: list[Int64Array]) -> list[tuple[int, int]]:
    """(matches, bucket size) of each pool of the sample, the largest first; none where it cannot keep l."""
    combination, codes, _ = kernel.combined(sensitive)
    pools = pair_pools(np.bincount(combination).astype(np.int64), codes, kernel.l)
    return [(pool.mu, pool.size) for pool in pools or []]


def _sentence(names: Sequence[str], penalties: dict[str, float | None], sample: int) -> str:
    both, *alone = penalties.values()
    if both is None:
        return f"a sample of {sample:,} records by itself cannot keep it, so partitions merge"
    beside = ", ".join(f"{p:.4f} by {name} alone" for name, p in zip(names, alone, strict=True) if p is not None)
    return f"the certainty penalty (GCP) of {sample:,} records, published alone, is {both:.4f}, and {beside}"


def _grid(name: str, counts: SensitiveCounts, l: int) -> Grid:  # noqa: E741  (the field's name)
    """The values of one column that are nearest to the bound."""
    first = sorted(range(counts.m), key=lambda i: -int(counts.counts[i]))[:MOST]
    rows = tuple(
        (str(counts.values[i]), f"{int(counts.counts[i]):,}", f"{float(counts.frequency(i)):.4%}", f"{1 / l:.4%}")
        for i in first
    )
    more = f"... and {counts.m - MOST:,} values that are rarer" if counts.m > MOST else ""
    return Grid((name, "records", "share of the table", "allowed among matches"), rows, more)
