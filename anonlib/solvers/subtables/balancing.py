"""Perturbation Partitioning, phase 1: cut the table into balanced groups of few sensitive values.

Source: small domain randomization, section 5.1 (figure 1, equation 13, lemma 1) and appendix 10.7. A group is lambda-balanced when none
of its protected values exceeds a share of 1/lambda in it. Counts alone; integers alone.
"""

from __future__ import annotations

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.solvers.subtables.groups import Groups


def balance(counts: Int64Array, protected: BoolArray) -> Groups:
    """The initial groups g_1, ..., g_t.

    counts : (m,) int64, o_i; protected : (m,) bool, SA', at least one of them

    With all values protected every group is lambda-balanced, lambda = floor(|T| / f_m). Otherwise the records T' of protected values are
    balanced, as far as they can be (lambda' = floor(|T'| / f_m)), and the other records T'' are spread over the groups in proportion to
    their size, the most frequent value first. Cost: O(m) a group, O(sum of the groups' domains) memory.
    """
    guarded = np.flatnonzero(protected)
    groups = [(guarded[local], group_counts) for local, group_counts in _groups(counts[guarded])]
    return Groups.of(groups if protected.all() else _spread(groups, counts, np.flatnonzero(~protected)))


def _groups(counts: Int64Array) -> list[tuple[Int64Array, Int64Array]]:
    """(value indices, records of each) per group, when every value is protected. Ties go by value order."""
    m, n = len(counts), int(counts.sum())
    if n >= (1 << 62) // m:
        raise ValueError(f"{n} records of {m} values are too many for 64-bit keys")
    balance = n // int(counts.max())  # lambda
    # a value's key is its frequency and, for ties, its order: sorting is by one int64
    keys = -np.sort(-(counts * m + (m - 1 - np.arange(m))))
    groups: list[tuple[Int64Array, Int64Array]] = []
    while n:
        frequencies = keys // m
        h = _taken(n, balance, frequencies)
        if h == 0:
            groups.append((m - 1 - keys % m, frequencies))
            break
        head, rest = keys[:balance], keys[balance:]
        groups.append((m - 1 - head % m, np.full(balance, h, dtype=np.int64)))
        left = head - h * m  # still in order
        left = left[left >= m]
        keys = np.insert(rest, np.searchsorted(-rest, -left), left)
        n -= h * balance
    return groups


def _taken(n: int, balance: int, frequencies: Int64Array) -> int:
    """h of equation (13): the most records of each of the `balance` most frequent values that leave the rest balanced (lemma 1)."""
    first, last = int(frequencies[0]), int(frequencies[balance - 1])
    following = int(frequencies[balance]) if len(frequencies) > balance else 0
    if n // balance - max(first - last, following) >= last:
        return last
    return n // balance - following


def _spread(
    groups: list[tuple[Int64Array, Int64Array]], counts: Int64Array, others: Int64Array
) -> list[tuple[Int64Array, Int64Array]]:
    """Appendix 10.7: floor(|g_j| |T''| / |T'|) records of T'' to each group, the residue to the last. `others` are the values of T''."""
    line = others[np.argsort(-counts[others], kind="stable")]  # most frequent first
    stop = np.cumsum(counts[line])
    total, size = int(stop[-1]), [int(group_counts.sum()) for _, group_counts in groups]
    all_guarded = sum(size)
    spread, begin = [], 0
    for j, (codes, group_counts) in enumerate(groups):
        end = total if j == len(groups) - 1 else begin + size[j] * total // all_guarded
        # records begin .. end - 1 of the line, as counts per value
        first, last = np.searchsorted(stop, begin, side="right"), np.searchsorted(stop, end, side="left")
        covered = np.arange(first, min(int(last), len(line) - 1) + 1) if end > begin else np.zeros(0, dtype=np.int64)
        share = np.minimum(stop[covered], end) - np.maximum(stop[covered] - counts[line[covered]], begin)
        spread.append((np.concatenate([codes, line[covered]]), np.concatenate([group_counts, share])))
        begin = end
    return spread
