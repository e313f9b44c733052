"""How many more persons a release takes that is too small: from counts of sensitive values alone, on the driver.

Asked of a method is whether it would refuse these counts. They are the table's, and further records spread as in `shares`: twice as many
at each try until they will do, then fewer until they will not. Cost: one scan of the sensitive column, then some seventy tries, none of
which depends on the number of records; where nodes have thresholds, which an integer program decides, `SECONDS` for all tries together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from anonlib.engine import compound
from anonlib.engine.microdata import Microdata
from anonlib.engine.statistics import sensitive_statistics
from anonlib.errors import OutOfTime, Unsatisfiable
from anonlib.hierarchy import Hierarchy
from anonlib.methods import bucketize, heterogeneous, perturb
from anonlib.methods.class_promises import Asked, check_eligible, check_possible
from anonlib.privacy.counts import SensitiveCounts
from anonlib.spec.method import Method
from anonlib.spec.methods.bucketize import Bucketize
from anonlib.spec.methods.heterogeneous import Heterogeneous
from anonlib.spec.methods.perturb import Perturb

MOST = 1 << 34
"""Further persons that are tried at most."""
SECONDS = 30.0
"""What all tries take at most together, where a try may take long."""


def more_persons(table: Microdata, wanted: Method, before: Mapping[str | None, int]) -> int | None:
    """How many further persons will do, whose values are spread as `before` and in the table together; None when no number will.

    before : {sensitive value's text: records} of earlier releases, {} for none

    Raises OutOfTime where one of the tries could not be told within `SECONDS` for all: a number above it may do, or may not.
    """
    with_value, column = compound.with_compound(table)
    own = sensitive_statistics(with_value.frame, column, table.keep, table.refuse, table.sensitive_columns).counts
    counts = {value: int(n) for value, n in zip(own.values, own.counts, strict=True)}
    shares = {value: counts.get(value, 0) + before.get(value, 0) for value in [*counts, *before]}
    hierarchy = bucketize.hierarchy_of(table)
    deadline = time.perf_counter() + SECONDS
    return least(
        lambda more: _would_do(column, with_more(counts, shares, more), wanted, table.before, hierarchy, deadline)
    )


def least(would_do: Callable[[int], bool]) -> int | None:
    """The least number above 0 that will do, by doubling and halving; None when none up to `MOST` does.

    >>> least(lambda more: more >= 37), least(lambda more: False)
    (37, None)
    """
    high = 1
    while not would_do(high):
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if would_do(middle) else (middle, high)
    return high


def with_more(counts: Mapping[str | None, int], shares: Mapping[str | None, int], more: int) -> SensitiveCounts:
    """`counts` and `more` records that are spread over values as `shares`, each value's number rounded by the largest remainder."""
    values = sorted(shares, key=lambda value: (value is None, value or ""))
    total = sum(shares.values())
    number = [shares[value] * more // total for value in values]
    rest = sorted(range(len(values)), key=lambda i: (-(shares[values[i]] * more % total), i))[: more - sum(number)]
    for i in rest:
        number[i] += 1
    sums = [counts.get(value, 0) + n for value, n in zip(values, number, strict=True)]
    kept = [i for i, n in enumerate(sums) if n]
    return SensitiveCounts(tuple(values[i] for i in kept), np.array([sums[i] for i in kept], dtype=np.int64))


def _would_do(
    column: str,
    counts: SensitiveCounts,
    wanted: Method,
    before: Mapping[str | None, int],
    hierarchy: Hierarchy | None,
    deadline: float,
) -> bool:
    """Whether the method takes these counts. Raises OutOfTime where `deadline` came first, which is neither yes nor no."""
    try:
        _check(column, counts, wanted, before, hierarchy, deadline)
    except OutOfTime:
        raise
    except Unsatisfiable:
        return False
    return True


def _check(
    column: str,
    counts: SensitiveCounts,
    wanted: Method,
    before: Mapping[str | None, int],
    hierarchy: Hierarchy | None,
    deadline: float,
) -> None:
    """Raises Unsatisfiable where the method would refuse these counts, OutOfTime as `bucketize.check_buckets` does."""
    if isinstance(wanted, Bucketize):  # whether there are buckets, which the quickest solver tells
        bucketize.check_buckets(counts, wanted, before, hierarchy, deadline)
    elif isinstance(wanted, Perturb):
        perturb.choose_subtables(counts, wanted)
    elif isinstance(wanted, Heterogeneous):
        heterogeneous.whole_table(column, counts, heterogeneous.bucketing(counts, wanted, hierarchy))
    else:
        asked = {name: getattr(wanted, name, None) for name in ("k", "distinct_l", "frequency_l")}
        check_possible(column, counts, Asked(**asked))
        if (l := getattr(wanted, "l", None)) is not None:  # noqa: E741  (the field's name)
            check_eligible(column, counts, l, "l")
