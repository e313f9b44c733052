"""What boxes of matches lose on a sample, for one l or beta: as a run would make them, but that no sensitive value is given to any."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonlib.arrays import Codes, Float64Array, Int64Array
from anonlib.domains import Domain, generalized_certainty_penalty, penalty_of_runs
from anonlib.hierarchy import Hierarchy
from anonlib.methods.heterogeneous import Matching
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.matching.match_partitions import Bucketing, GoodPool
from anonlib.solvers.trade_offs.of_matches import bucketing_at
from anonlib.spec.methods.heterogeneous import Heterogeneous

SAMPLE = 1_000
"""Records that are matched for each bound; they reach the driver. As many as a partition has by default."""


def certainty_penalty(
    columns: list[Codes],
    domains: tuple[Domain, ...],
    sensitive: Int64Array,
    wanted: Heterogeneous,
    bound: Fraction,
    values: Sequence[str | None],
    hierarchy: Hierarchy | None = None,
) -> float | None:
    """GCP of a table that consists of these records alone, published with this l or beta; None where they cannot keep it.

    columns : d code columns of the n records; sensitive : (n,) int64 codes, places in `values`; hierarchy : of these, None for none

    0 of a table published as it is, 1 of boxes as wide as it is.
    Cost: that of one partition of n records, without its colouring: a second for 1,000 under l, some under a strict beta.
    """
    present, codes = np.unique(sensitive, return_inverse=True)
    own = SensitiveCounts(tuple(values[code] for code in present.tolist()), np.bincount(codes))
    promised = bucketing_at(own, wanted, bound, hierarchy)
    pools = _good_pool(own, promised, wanted)
    if (promised.buckets if wanted.far_apart else promised.pools)(own.counts) is None:
        return None
    kernel = Matching(domains, own.m, promised, pools, wanted.matching, wanted.far_apart, bytes(32))
    return _penalty(columns, domains, codes, kernel)


def penalty_of_matches(
    columns: list[Codes], domains: tuple[Domain, ...], sensitive: Int64Array, kernel: Matching
) -> float | None:
    """As `certainty_penalty`, of a table of these records that `kernel` matches; sensitive : (n,) int64 as the kernel takes them."""
    counts = np.bincount(sensitive, minlength=kernel.m).astype(np.int64)
    return None if kernel.promised.pools(counts) is None else _penalty(columns, domains, sensitive, kernel)


def _penalty(columns: list[Codes], domains: tuple[Domain, ...], codes: Int64Array, kernel: Matching) -> float:
    """GCP of these records under the boxes of their matches."""
    penalties: list[list[Float64Array]] = [[] for _ in domains]
    for rows in kernel.pooled(columns, codes):
        for buckets, members in kernel.bucketed(codes[rows], 0):
            pool = [column[rows[members]] for column in columns]
            for dealt in kernel.dealt(pool, codes[rows[members]], buckets, 0):
                matched = [column[dealt.source] for column in pool]
                matches = kernel.graph(matched, dealt, buckets.distinct)
                bounds = np.arange(0, matches.size + 1, matches.shape[1])
                for each, domain, column in zip(penalties, domains, matched, strict=True):
                    each.append(penalty_of_runs(domain, column[matches.ravel()], bounds))
    return generalized_certainty_penalty([np.concatenate(each) for each in penalties])


def _good_pool(own: SensitiveCounts, promised: Bucketing, wanted: Heterogeneous) -> GoodPool | None:
    whole = promised.of_whole(own.counts) if wanted.refine else None
    return None if whole is None else GoodPool(promised, promised.matches(whole))
