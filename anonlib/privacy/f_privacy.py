"""F'-privacy: each sensitive value x_i has its own threshold f'_i on the share it may have in any bucket.

A node of a hierarchy may have one too, on the share that all values under it have together: values that mean nearly the same are then
bounded as one value is. Source: generalized bucketization, section 3; eligibility is Lemma 1, which holds of a node as of a value, since
it speaks of records alone. All comparisons are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from anonlib import words
from anonlib.arrays import Int64Array
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.exact import ceil_over, exact, floor_times, legible, text
from anonlib.hierarchy import Hierarchy
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.value_tree import ValueTree, refuse_root, unknown_names, value_tree

Thresholdish = int | str | Fraction
OwnThresholds = Mapping[str, Thresholdish] | Mapping[str | None, Thresholdish]
"""{sensitive value: its threshold}; None is a kept null."""


@dataclass(frozen=True)
class Thresholds:
    """f'_i for each value of one `SensitiveCounts`, in its order; every f'_i in (0, 1].

    tree  : the values under the nodes of their hierarchy, where they have one
    nodes : for each node of the tree its threshold, None where nothing is promised of it
    """

    fractions: tuple[Fraction, ...]
    tree: ValueTree | None = None
    nodes: tuple[Fraction | None, ...] = ()

    @property
    def limited(self) -> dict[int, Fraction]:
        """{number of a node in the tree: its threshold}, of the nodes that have one."""
        return {k: f for k, f in enumerate(self.nodes) if f is not None}

    def capacity(self, size: int) -> Int64Array:
        """floor(f'_i * size) for each value, (m,) int64: how many records of x_i a bucket of `size` may hold."""
        return np.array([floor_times(f, size) for f in self.fractions], dtype=np.int64)

    def capacities(self, sizes: range | list[int] | tuple[int, ...]) -> Int64Array:
        """floor(f'_i * S_j), (m, q) int64: how many records of each value a bucket of each of q sizes may hold. O(m q) integers."""
        if len(sizes) == 0:
            return np.zeros((len(self.fractions), 0), dtype=np.int64)
        return np.stack([self.capacity(size) for size in sizes], axis=1)

    @property
    def smallest_size(self) -> int:
        """M = min_i ceil(1 / f'_i): no bucket can be smaller."""
        return min(ceil_over(1, f) for f in self.fractions)

    @property
    def equivalent_l(self) -> int:
        """The l of the l-diversity that would keep every threshold, ceil(1 / min_i f'_i)."""
        return ceil_over(1, min(self.fractions))


@dataclass(frozen=True)
class FPrivacy:
    """How the thresholds are stated: per value, by a formula min(1, theta f_i + offset), or by a default.

    `own` has the thresholds of values, under None that of a kept null. A value's own threshold wins over the formula, the formula over
    the default. With none of them for some value the requirement is incomplete and `thresholds` refuses it.
    """

    theta: Fraction | None = None
    offset: Fraction = Fraction(0)
    default: Fraction | None = None
    own: Mapping[str | None, Fraction] = field(default_factory=dict)

    @staticmethod
    def linear(theta: Thresholdish, offset: Thresholdish = 0, thresholds: OwnThresholds | None = None) -> FPrivacy:
        """f'_i = min(1, theta f_i + offset), with exceptions per value in `thresholds`. Numbers as text or int."""
        return FPrivacy(
            theta=_not_negative(theta, "theta"), offset=_not_negative(offset, "offset"), own=_own(thresholds)
        )

    @staticmethod
    def uniform(threshold: Thresholdish, thresholds: OwnThresholds | None = None) -> FPrivacy:
        """One threshold for every value, and {value: its own} in `thresholds`, which wins. Raises SpecError unless in (0, 1]."""
        return FPrivacy(default=_share(threshold, "default"), own=_own(thresholds))

    @staticmethod
    def l_diversity(l: int) -> FPrivacy:  # noqa: E741  (the field's name)
        """l-diversity as thresholds: f'_i = 1 / l for every value. Raises SpecError unless l is a whole number of at least 1."""
        if isinstance(l, bool) or not isinstance(l, int) or l < 1:
            raise SpecError(f"l: {l!r} is not a whole number of at least 1")
        return FPrivacy(default=Fraction(1, l))

    def threshold(self, value: str | None, frequency: Fraction) -> Fraction:
        """f' of one value with overall frequency `frequency`."""
        if value in self.own:
            return self.own[value]
        if self.theta is not None:
            return min(Fraction(1), self.theta * frequency + self.offset)
        if self.default is not None:
            return self.default
        raise SpecError(
            f"privacy: no threshold covers the sensitive value {value!r}; add it under thresholds, or give theta (with offset) or default"
        )

    def thresholds(
        self,
        counts: SensitiveCounts,
        before: Mapping[str | None, int] | None = None,
        hierarchy: Hierarchy | None = None,
    ) -> Thresholds:
        """Exact thresholds for a table with these counts. Raises Unsatisfiable unless f'_i >= f_i for all i, nodes included (Lemma 1).

        before    : {value: records} of earlier releases, which the shares that thresholds follow from are taken of too
        hierarchy : over the values; `own` may then name its nodes, of which neither the formula nor the default says anything

        Raises SpecError when a name under `own` is no value that occurs, and not in the hierarchy (a misspelt name would protect nothing).
        One that is in the hierarchy alone bounds nothing here: nothing of it is published.
        """
        if None in self.own and None not in counts.values:
            raise SpecError("privacy.missing: no sensitive value is missing in this table; leave the threshold out")
        names = [name for name in self.own if name is not None]
        if hierarchy is not None:
            refuse_root(names, hierarchy)
        missing = unknown_names(names, counts.values, hierarchy)
        if missing:
            nodes = "" if hierarchy is None else " and is not in its hierarchy"
            raise SpecError(
                f"privacy.thresholds: {missing[0]!r} does not occur in the sensitive column{nodes}; "
                f"values that do: {', '.join(repr(v) for v in counts.values[:10])}{', ...' if counts.m > 10 else ''}"
            )
        shares = [counts.frequency(i) for i in range(counts.m)]
        if before:
            n = counts.n + sum(before.values())
            shares = [Fraction(int(counts.counts[i]) + before.get(v, 0), n) for i, v in enumerate(counts.values)]
        fractions = tuple(self.threshold(v, share) for v, share in zip(counts.values, shares, strict=True))
        offending = [i for i in range(counts.m) if fractions[i] < counts.frequency(i)]
        if offending:
            named = [(repr(counts.values[i]), int(counts.counts[i]), fractions[i]) for i in offending]
            raise Unsatisfiable(_refusal(counts.n, "sensitive value(s)", named))
        return Thresholds(fractions) if hierarchy is None else self._with_nodes(counts, fractions, hierarchy)

    def _with_nodes(self, counts: SensitiveCounts, fractions: tuple[Fraction, ...], hierarchy: Hierarchy) -> Thresholds:
        """The thresholds of values and of the nodes that `own` names. Raises as `thresholds` does."""
        tree = value_tree(counts.values, hierarchy, [name for name in self.own if name is not None])
        nodes = tuple(self.own.get(label) for label in tree.labels)
        records = tree.records(counts.counts).tolist()
        pairs = zip(tree.labels, records, nodes, strict=True)
        named = [(repr(label), n, f) for label, n, f in pairs if f is not None and f < Fraction(n, counts.n)]
        if named:
            raise Unsatisfiable(_refusal(counts.n, "node(s) of the hierarchy", named))
        return Thresholds(fractions, tree, nodes)


def _refusal(n: int, kind: str, offending: list[tuple[str, int, Fraction]]) -> str:
    """Why Lemma 1 forbids thresholds. offending : (who, records of n, threshold)."""
    lines = [
        f"{who}: {records:,} of {n:,} records ({records / n:.4%}), threshold {legible(threshold)}, smallest that works "
        f"{legible(Fraction(records, n))}"
        for who, records, threshold in offending
    ]
    return (
        f"no publication can keep these thresholds, since {len(offending)} {kind} are more frequent in the "
        f"whole table than their threshold allows in any bucket (Lemma 1). Raise the thresholds, or coarsen or withhold the values:\n  "
        + "\n  ".join(lines)
    )


def guarantee_words(
    column: str,
    counts: SensitiveCounts,
    thresholds: Thresholds,
    fake_values: int = 0,
    fakes: Int64Array | None = None,
) -> str:
    """What the release promises, in words with the numbers used: strictest and loosest threshold, and whom they concern.

    column : the sensitive column's name; fake_values : s, listed beside the values of each bucket
    fakes  : (m,) int64, how often each value is a fake, where that follows its frequency; None where it does not
    """
    strictest = min(range(counts.m), key=lambda i: (thresholds.fractions[i], i))
    loosest = max(range(counts.m), key=lambda i: (thresholds.fractions[i], -i))
    strict, loose = ((counts.values[i], thresholds.fractions[i]) for i in (strictest, loosest))
    real = real_shares(counts, fakes, fake_values) if fake_values and fakes is not None else None
    return words.thresholds(column, strict, loose, fake_values, real, node_shares(thresholds))


def node_shares(thresholds: Thresholds) -> tuple[words.Share, ...] | None:
    """The nodes that have a threshold, the strictest first, for a sentence; None where values have no hierarchy."""
    tree = thresholds.tree
    if tree is None:
        return None
    return tuple(sorted(((tree.labels[k], f) for k, f in thresholds.limited.items()), key=lambda s: (s[1], s[0])))


def real_shares(counts: SensitiveCounts, fakes: Int64Array, extra: int) -> words.RealShares:
    """What counts tell of fakes: (lowest, highest share of a value's listings that are real, how likely a last record's value is told).

    fakes : (m,) int64, f_v, how often each value is a fake; extra : s, fakes in each bucket. Exact fractions.

    With odds w_v = o_v / f_v of being real, and a bucket's real values any of its listed ones with a weight of the product of their
    odds, a remaining value is the last one with w_v / (sum of w over those that remain): at most w_max / (w_max + s w_min), the third
    number. That is the law in the limit of many buckets. By enumeration of all ways in tables of b = 4 to 11 buckets, the best guess is
    right no more than 1/b^2 more often on average over the buckets, while a single belief may be higher by far where f_v is 1.
    """
    shares = [Fraction(o, o + f) for o, f in zip(counts.counts.tolist(), fakes.tolist(), strict=True)]
    low, high = min(shares), max(shares)
    if high == 1:
        return low, high, Fraction(1)
    most, least = high / (1 - high), low / (1 - low)
    return low, high, most / (most + extra * least)


def _share(number: Thresholdish, name: str) -> Fraction:
    share = exact(number, name)
    if not 0 < share <= 1:
        raise SpecError(f"{name}: {text(share)} is not a share: a threshold lies above 0 and is at most 1")
    return share


def _not_negative(number: Thresholdish, name: str) -> Fraction:
    value = exact(number, name)
    if value < 0:
        raise SpecError(f"{name}: {text(value)} is negative; it must be 0 or more")
    return value


def _own(thresholds: OwnThresholds | None) -> dict[str | None, Fraction]:
    return {None if v is None else str(v): _share(t, f"thresholds.{v}") for v, t in (thresholds or {}).items()}
