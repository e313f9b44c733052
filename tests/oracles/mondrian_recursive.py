"""Strict Mondrian as its paper tells it: one region at a time, by recursion, in plain Python with exact fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction


def mondrian(columns, domains, sensitive, keeps, children):
    """A set of frozensets of record numbers. keeps : Counter of sensitive values -> bool.

    children : per column None, or a function (set of codes) -> {code: its child under the lowest node over them all}
    """

    def span(records, a):
        values = {columns[a][r] for r in records}
        if hasattr(domains[a], "values"):
            return Fraction(len(values) - 1, max(1, len(domains[a].values) - 1))
        return Fraction(float(max(values) - min(values))) / Fraction(domains[a].width)

    def cut(records):
        spans = [span(records, a) for a in range(len(columns))]
        for a in sorted(range(len(columns)), key=lambda a: -spans[a]):
            if spans[a] == 0:
                continue
            values = [columns[a][r] for r in records]
            key = {v: v for v in values} if children[a] is None else children[a](set(values))
            ordered = sorted(records, key=lambda r: key[columns[a][r]])
            gaps = [i for i in range(1, len(ordered)) if key[columns[a][ordered[i]]] != key[columns[a][ordered[i - 1]]]]
            middle = len(ordered) // 2
            at = min(gaps, key=lambda gap: (abs(gap - middle), gap))
            halves = ordered[:at], ordered[at:]
            if all(keeps(Counter(sensitive[r] for r in half)) for half in halves):
                return cut(halves[0]) | cut(halves[1])
        return {frozenset(records)}

    return cut(list(range(len(sensitive))))
