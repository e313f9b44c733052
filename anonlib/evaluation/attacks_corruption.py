"""Corruption of a sub-table of perturbed values: the adversary knows the true values of some of its records and subtracts them.

Source: the corruption attack of Tao, Xiao, Li, Zhang, ICDE 2008, on the published counts of a sub-table. Buckets: `attacks.Corruption`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anonlib.evaluation.attacks import Attack
from anonlib.evaluation.attacks_posterior import SubTable

SAID = "none promised: rho2 bounds the belief of somebody who knows no other record of the sub-table"


def corrupted(subtables: Sequence[SubTable], known: Fraction | None, prior: float, seed: int = 0) -> Attack:
    """The accuracy to expect on the records left, when a random share `known` of each sub-table is known; None: all but one of it.

    With what is left as counts, the posterior is that of `attacks_posterior`. With all but one known the last is the one value left,
    whatever was published for it. The known ones are drawn without replacement. Cost O(values of all sub-tables).
    """
    rng = np.random.default_rng(seed)
    right, persons = 0.0, 0
    for table in subtables:
        n = int(table.count.sum())
        out = n - 1 if known is None else int(known * n)
        known_counts = rng.multivariate_hypergeometric(table.count, out, method="marginals")
        left = SubTable(table.gamma, table.code, table.count - known_counts)
        right += 1.0 if known is None else left.expected()
        persons += n - out
    name = "corruption, all but one known" if known is None else f"corruption, {float(known):.0%} known"
    return Attack(name, right / max(1, persons), prior, None, persons=persons, words=SAID)
