"""What somebody believes who knows the graph of matches and sees the records: every assignment of records to persons, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np


def beliefs(
    matches: np.ndarray, shown: np.ndarray, known: Mapping[int, int] | None = None
) -> list[dict[int, Fraction]]:
    """For each person {label: belief}: the share of the assignments that give the person a record which shows that label.

    matches : (N, mu) the persons that each record may be of; shown : (N,) the bucket of the value that each record shows
    known   : {person: bucket}, what insiders know of themselves

    An assignment gives every record to one of its candidates and every person one record; a person is then of the bucket that the record
    shows. It is consistent if the candidates of every record are of different buckets, as the method makes them.
    """
    n, mu = matches.shape
    around = [[j for j in range(n) if i in matches[j]] for i in range(n)]
    bucket: list[int | None] = [None] * n
    taken = [False] * n
    found = [dict.fromkeys(range(mu), 0) for _ in range(n)]

    def fits(person: int) -> bool:
        return all(
            other == person or bucket[other] != bucket[person]
            for row in around[person]
            for other in matches[row].tolist()
        )

    def go(person: int) -> None:
        if person == n:
            if any(bucket[i] != b for i, b in (known or {}).items()):
                return
            for i in range(n):
                found[i][bucket[i]] += 1
            return
        for row in around[person]:
            if not taken[row]:
                taken[row], bucket[person] = True, int(shown[row])
                if fits(person):
                    go(person + 1)
                taken[row], bucket[person] = False, None

    go(0)
    total = [sum(each.values()) for each in found]
    return [{v: Fraction(k, t) for v, k in each.items()} for each, t in zip(found, total, strict=True)]
