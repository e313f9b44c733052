"""Threshold modes: fill buckets that several values share with records that are far from what is there.

Source: heterogeneous generalization, section 5 (GR, SG, HG with subscript tau). Records of one bucket never match each other,
so that those far apart are kept apart. Which record of a sensitive value goes where then depends on its quasi-identifiers: open
to a minimality attack, as the paper says, and here for comparison alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from anonlib.arrays import Codes, Float64Array
from anonlib.domains import Domain
from anonlib.kernels.matching.matching_deal import DealtRecords


def far_apart(columns: Sequence[Codes], domains: Sequence[Domain], dealt: DealtRecords) -> DealtRecords:
    """`dealt` with the records of every value that stands in several buckets exchanged among them, each where its distance from the
    bucket's mean is large. columns : d code columns of the rows that were dealt. O(r^3) for r records of such a value."""
    points = _points(columns, domains)[dealt.source]
    bucket = np.repeat(np.arange(dealt.mu), dealt.size)
    source = dealt.source.copy()
    real = ~dealt.dummy
    pairs = np.unique(np.stack([dealt.sensitive, bucket]), axis=1)[0]
    shared = np.unique(pairs[1:][pairs[1:] == pairs[:-1]])
    fixed = ~np.isin(dealt.sensitive, shared)
    for value in shared.tolist():
        places = np.flatnonzero((dealt.sensitive == value) & real)
        middle = np.stack([_mean(points[fixed & (bucket == b)]) for b in range(dealt.mu)])
        distance = np.abs(points[places][:, None, :] - middle[bucket[places]][None, :, :]).sum(axis=2)
        record, place = linear_sum_assignment(-distance)
        source[places[place]] = dealt.source[places[record]]
        points[places[place]] = points[places[record]]
        fixed[places] = True
    return replace(dealt, source=source)


def _mean(points: Float64Array) -> Float64Array:
    return np.asarray(points.mean(axis=0) if len(points) else np.full(points.shape[1], 0.5))


def _points(columns: Sequence[Codes], domains: Sequence[Domain]) -> Float64Array:
    """(n, d) float64: each record as a point, its shares of the domains, in [0, 1]."""
    return np.stack([domain.share(column) for column, domain in zip(columns, domains, strict=True)], axis=1)
