"""A pool cut into neighbourhoods: records that are near each other, as many of every bucket, are matched among themselves.

Matching compares all records of two buckets and assigns them to each other in time with the cube of their number; a neighbour that lies
far off is seldom taken. So a pool with large buckets is cut into neighbourhoods first, classes of SABRE's kernel over its buckets
(`anonlib.kernels.classes.symmetric_classes`): a group is halved along one quasi-identifier, of every bucket the same number to each side,
where that makes boxes smallest. What comes out is what matching makes of a pool, a graph in which every record has one match in every
bucket, in several components.

Privacy: a neighbourhood follows from quasi-identifiers, from which records share a bucket, and from noise; renaming the buckets changes
nothing (`tests/pure/test_symmetric_classes.py`). So it tells no more than the graph does: to whoever knows the graph all ways to name the
buckets, one for all neighbourhoods, are alike likely, and within a neighbourhood every record is of any bucket with chance 1/mu. The
order of the buckets, which the rounds of matching follow, is drawn anew in each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.kernels.classes.symmetric_classes import symmetric_classes
from anonlib.kernels.matching.matching_deal import DealtRecords
from anonlib.keyed import Stream

MATCHES, OF_A_BUCKET = 25_000, 125
"""Of a neighbourhood, at least: matches of all its records (mu for each), and records of each bucket. With few matches a record boxes are
small, and soon wider where fewer are there to choose from (docs/heterogeneous.md)."""


def neighbourhoods(
    columns: Sequence[Codes], domains: Sequence[Domain], dealt: DealtRecords, stream: Stream, least: int | None = None
) -> list[DealtRecords]:
    """The neighbourhoods of a pool, each with the same number of records of every bucket, `least` or more; the pool itself where its
    buckets have less than twice as many.

    columns : d code columns of the N dealt records, bucket after bucket
    least   : by default `OF_A_BUCKET`, or more where these have not `MATCHES`
    Cost: log2(c / least) levels of d sorts of the N records; memory about 16 bytes a record and attribute.
    """
    least = max(OF_A_BUCKET, -(-MATCHES // dealt.mu**2)) if least is None else least
    if dealt.size < 2 * least:
        return [dealt]
    n = dealt.mu * dealt.size
    bucket = np.repeat(np.arange(dealt.mu), dealt.size)
    classes = symmetric_classes(columns, domains, bucket, stream.permutation(n), least, sweeps=0)
    by_class = np.argsort(classes, kind="stable")
    return [_neighbourhood(dealt, own, stream) for own in np.split(by_class, np.cumsum(np.bincount(classes))[:-1])]


def _neighbourhood(dealt: DealtRecords, own: Int64Array, stream: Stream) -> DealtRecords:
    """These records of the pool, (mu c,) bucket after bucket, with the buckets in an order that is drawn."""
    rows = own.reshape(dealt.mu, -1)[stream.permutation(dealt.mu)]
    at = rows.ravel()
    return DealtRecords(dealt.mu, rows.shape[1], dealt.source[at], dealt.sensitive[at], dealt.dummy[at])
