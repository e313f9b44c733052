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


def value_beliefs(
    matches: np.ndarray, shown: np.ndarray, values: np.ndarray, nobody: np.ndarray, counts: np.ndarray
) -> list[dict[int, Fraction]]:
    """For each person {value: belief} of somebody who knows the true counts too, and who is made up.

    matches, shown : as above; values : (N,) the value that each record shows; nobody : (N,) which "persons" are made up;
    counts : (m,) records of each value among the persons, without those made up
    """
    n = len(matches)
    around = [[j for j in range(n) if i in matches[j]] for i in range(n)]
    row, taken = [-1] * n, [False] * n
    found = [dict.fromkeys(range(len(counts)), 0) for _ in range(n)]

    def fits(person: int) -> bool:
        mates = {other for record in around[person] for other in matches[record].tolist()} - {person}
        return all(row[other] < 0 or shown[row[other]] != shown[row[person]] for other in mates)

    def go(person: int) -> None:
        if person == n:
            held = np.bincount(values[row][~nobody], minlength=len(counts))
            if (held == counts).all():
                for i in range(n):
                    found[i][int(values[row[i]])] += 1
            return
        for record in around[person]:
            if not taken[record]:
                taken[record], row[person] = True, record
                if fits(person):
                    go(person + 1)
                taken[record], row[person] = False, -1

    go(0)
    total = [sum(each.values()) for each in found]
    return [{v: Fraction(k, t) for v, k in each.items()} for each, t in zip(found, total, strict=True)]
