"""Does a record's place in its class betray it? (SABRE's classes are a random record and its nearest ones from each bucket.)

A bucket with few records has its nearest ones far away, so the outermost record of a class tends to come from the sparsest bucket.
The adversary knows who is in a class and which values it publishes; he measures each member's distance from the class's centre and gives
the rarest value to the outermost member, the next to the next. Without the release's order of distances he could only deal the values
out at random.
"""

from __future__ import annotations

import numpy as np

from anonlib.arrays import Float64Array, IntegerArray
from anonlib.evaluation.attacks import Attack

SAID = "none promised: the prior is the chance that the outermost member of a class has its rarest value, were values dealt at random"


def minimality(
    ec: IntegerArray, points: Float64Array, value: IntegerArray, frequency: IntegerArray, seed: int = 0
) -> Attack:
    """How often the outermost member of a class has its rarest value, beside how often it would by chance.

    ec        : (n,) class of each record, any integers; classes of one record tell nothing and are left out
    points    : (n, d) quasi-identifiers on axes of length 1
    value     : (n,) code of the sensitive value, or of its bucket
    frequency : (codes,) how many records of the table have each; equally frequent ones are ranked by code

    detail: `dealt`, the share of all members whose value is guessed when values are dealt by rank, and `dealt by chance`. O(n log n).
    """
    _, group, sizes = np.unique(ec, return_inverse=True, return_counts=True)
    keep = sizes[group] > 1
    if not keep.any():
        return Attack("outermost record", 0.0, 0.0, None, {"classes": 0.0, "records": 0.0}, persons=0, words=SAID)
    group, points, value = group[keep], points[keep], np.asarray(value)[keep]
    _, group, sizes = np.unique(group, return_inverse=True, return_counts=True)
    centre = np.stack([np.bincount(group, axis) / sizes for axis in points.T], axis=1)
    distance = np.sqrt(((points - centre[group]) ** 2).sum(axis=1))
    rarity = np.empty(len(frequency), dtype=np.int64)
    rarity[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    # equally distant members are ranked by chance: the order of the records may go with their values
    outermost_first = np.lexsort((np.random.default_rng(seed).random(len(group)), -distance, group))
    rarest_first = np.lexsort((rarity[value], group))
    dealt = value[rarest_first] == value[outermost_first]
    starts = np.cumsum(sizes) - sizes
    counts = np.bincount(group * len(frequency) + value, minlength=len(sizes) * len(frequency)).reshape(len(sizes), -1)
    of_rarest = counts[np.arange(len(sizes)), value[rarest_first][starts]] / sizes
    by_chance = float(((counts.astype(np.float64) ** 2).sum(axis=1) / sizes).sum() / len(group))
    return Attack(
        "outermost record",
        float(dealt[starts].mean()),
        float(of_rarest.mean()),
        None,
        {
            "dealt": float(dealt.mean()),
            "dealt by chance": by_chance,
            "classes": float(len(sizes)),
            "records": float(len(group)),
        },
        persons=len(sizes),
        words=SAID,
    )
