"""How buckets flatten an association, and what can be got back: estimates by sensitive value from counts by kind of bucket.

A *kind* of bucket is one composition: buckets of one kind hold the same number of records of each value. With

    R      (K, m)  records of value v in buckets of kind T: number of buckets x count in one
    o      (m,)    records of each value, the column sums of R;  t : (K,) records of each kind, its row sums
    X      (m,)    what is asked: how many records of each value meet a condition P on the published columns
    k      (K,)    what is seen: how many records in buckets of kind T meet P

the deal takes a random sample of R[T, v] of the o[v] records of each value for each kind, independently by value, so E[k] = R (X / o): a
linear system. All that is known of the deal and of the table is certain; what is random is the deal alone.

Flattened: f = R' (k / t), each kind's matching records spread over its values by their number; this is the sum over buckets of k(g) c(g,
v) / |g|. In x = X / sqrt(o) and y = f / sqrt(o),

    E[y] = W x,   Cov[y] = s (W - W W),   W = D R' diag(1/t) R D,  D = diag(1 / sqrt(o)),

with s = p (1 - p) where a share p of the records of every value meets P. W is symmetric, its eigenvalues lie in [0, 1], and W sqrt(o) =
sqrt(o). An eigenvector of eigenvalue w is a contrast of values of which the buckets let a share w through: 1 what is known exactly (the
total), 0 what no bucket tells (values that always share buckets).

Unbiased: x = W^-1 y on the eigenvectors with w > 0. It is the weighted least squares estimate of the system with weights 1/t, and,
where all s are equal, the best linear unbiased one (the deal's covariance differs from s diag(t) by a matrix R C R', which does not
change it; Zyskind, Annals of Mathematical Statistics 1967). It is linear in k, so no weight depends on what is asked, and it is unbiased
for every table and every P whose contrast lies in the span; its variance for accepted values c, with weights l on the kinds, is

    sum over v of  o_v / (o_v - 1) p_v (1 - p_v) (sum over T of R[T, v] l_T^2  -  o_v c_v^2).

Shrunk: a share w of a contrast comes with a variance of s w (1 - w), so small w are mostly noise. With a prior x ~ N(mu, s rho), the
posterior mean is, on each eigenvector, mu + rho / (1 + w (rho - 1)) (y - w mu): for rho = 1 and the same share everywhere the flattened
estimate, for rho -> infinity the unbiased one. rho is fitted to the query's own counts (marginal likelihood times 1 / rho), and mu takes
the conditions on different columns as independent given the value, p_v proportional to the product of p_v(P_i), each shrunk by itself.
It is biased towards mu; no error of it is stated.

Cost: O(m^3) once a release for the eigenvectors (0.2 s for 700 values on one core), then O(m^2) a query; memory 3 m^2 doubles. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from anonlib.arrays import BoolArray, Float64Array, Int64Array

MAX_VALUES = 2_000
"""Up to so many sensitive values the m x m eigenproblem is solved: 100 MB and some seconds."""
NOTHING = 1e-9
"""Eigenvalues up to this are taken as 0: rounding reaches 1e-13, and what is let through by less is beyond any use."""
WEAK = 0.01
"""Contrasts of which buckets let less through than this are estimated with more than a hundred times the variance of a sample."""
_SPREADS = np.concatenate([[0.0], np.geomspace(0.01, 1e4, 40)])
"""rho - 1, the values that are tried."""
_LEAST_RATIO, _MOST_RATIO = 0.02, 50.0
"""How far the prior share of a value may lie from the overall one, for one condition: no value is ruled out."""
_LEAST_SHARE = 0.05
"""In variances a value's share of matching (and of other) records is taken as no less than this part of the overall one."""


@dataclass(frozen=True)
class Kinds:
    """K kinds of buckets over m sensitive values.

    buckets : (K,) int64, how many buckets are of each kind
    held    : (K, m) sparse int64, how many records of each value one bucket holds; float64 where they are known on average alone
    """

    buckets: Int64Array
    held: sp.csr_matrix

    @cached_property
    def records(self) -> sp.csr_matrix:
        """R, (K, m) sparse float64."""
        return sp.csr_matrix(sp.diags(self.buckets.astype(np.float64)) @ self.held.astype(np.float64))

    @cached_property
    def by_value(self) -> Float64Array:
        """o, (m,): records of each value."""
        return np.asarray(self.records.sum(axis=0)).ravel()

    @cached_property
    def by_kind(self) -> Float64Array:
        """t, (K,): records in the buckets of each kind."""
        return np.asarray(self.records.sum(axis=1)).ravel()

    def flattened(self, matching: Float64Array) -> Float64Array:
        """f, (m, Q), from the matching records by kind, (K, Q)."""
        return np.asarray(self.records.T @ (matching / self.by_kind[:, None]))


class Flattening:
    """W of the module's text, taken apart, for a release whose kinds are given. O(m^3)."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.root = np.sqrt(kinds.by_value)
        scaled = sp.diags(1 / np.sqrt(kinds.by_kind)) @ kinds.records @ sp.diags(1 / self.root)
        w, vectors = np.linalg.eigh((scaled.T @ scaled).toarray())
        self.w: Float64Array = np.where(w > NOTHING, np.minimum(w, 1.0), 0.0)
        self.vectors: Float64Array = vectors
        self._companions: dict[float, Int64Array] = {}

    @cached_property
    def _told(self) -> BoolArray:
        return self.w > 0

    def companions(self, at_most: float = 0.0) -> Int64Array:
        """(m,) labels: values with one label are linked by contrasts that buckets let through by at most the share `at_most`.

        The sum of all values of a label has no part in these contrasts: it is told though its terms are not.
        """
        if at_most not in self._companions:
            hidden = self.vectors[:, self.w <= at_most]
            linked = sp.csr_matrix(np.abs(hidden @ hidden.T) > 1e-6)
            self._companions[at_most] = np.asarray(connected_components(linked, directed=False)[1], dtype=np.int64)
        return self._companions[at_most]

    def untold(self) -> BoolArray:
        """(m,) bool: the values that always come with companions, so that buckets do not tell them from each other."""
        hidden = self.vectors[:, ~self._told]
        return np.asarray((hidden**2).sum(axis=1) > 1e-9)

    def tells(self, accepted: Float64Array) -> bool:
        """Whether c' X has no part that buckets do not tell. accepted : c, (m, 1)."""
        return bool(self.tells_each(accepted).all())

    def tells_each(self, sums: Float64Array) -> BoolArray:
        """(L,) bool: the same of each of L sums, (m, L)."""
        asked = sums * self.root[:, None]
        hidden = self.vectors[:, ~self._told].T @ asked
        return np.asarray((hidden**2).sum(axis=0) <= 1e-12 * (asked**2).sum(axis=0))

    def unbiased(self, flattened: Float64Array, accepted: Float64Array) -> Float64Array:
        """(Q,): c' X for accepted values c, (m, Q) of 0 and 1; right on average where c has no part that buckets do not tell."""
        told = self._told
        seen = self.vectors[:, told].T @ (flattened / self.root[:, None])
        asked = self.vectors[:, told].T @ (accepted * self.root[:, None])
        estimate: Float64Array = (seen * asked / self.w[told, None]).sum(axis=0)
        return estimate

    def variance(self, accepted: Float64Array, shares: Float64Array) -> Float64Array:
        """(Q,): the variance of `unbiased` over the deals, if a share of the records of each value meets P. shares : (m, Q)."""
        told, o = self._told, self.kinds.by_value[:, None]
        asked = self.vectors[:, told].T @ (accepted * self.root[:, None])
        by_value = (self.vectors[:, told] @ (asked / self.w[told, None])) / self.root[:, None]
        weights = np.asarray(self.kinds.records @ by_value) / self.kinds.by_kind[:, None]
        spread = np.asarray(self.kinds.records.T @ weights**2) - o * accepted**2
        deviation = shares * (1 - shares) * o / np.maximum(o - 1, 1)
        return np.asarray(np.maximum(0.0, (deviation * spread).sum(axis=0)))

    def unbiased_each(self, flattened: Float64Array) -> Float64Array:
        """(m, Q): `unbiased` of every value by itself."""
        told = self._told
        seen = self.vectors[:, told].T @ (flattened / self.root[:, None])
        return np.asarray(self.root[:, None] * (self.vectors[:, told] @ (seen / self.w[told, None])))

    def variance_each(self, shares: Float64Array) -> Float64Array:
        """(m, Q): `variance` of every value by itself. O(m K m) once."""
        return self.variance_by(self._spread_each, shares)

    def variance_by(self, spread: Float64Array, shares: Float64Array) -> Float64Array:
        """(L, Q): `variance` of each of L sums, whose `spread` is given, (m, L), by shares, (m, Q)."""
        o = self.kinds.by_value[:, None]
        return np.asarray(np.maximum(0.0, spread.T @ (shares * (1 - shares) * o / np.maximum(o - 1, 1))))

    @cached_property
    def _spread_each(self) -> Float64Array:
        return self.spread(np.eye(len(self.root)))

    def spread(self, sums: Float64Array) -> Float64Array:
        """(m, L): how much the deviation of a value adds to the variance of each of L sums c' X. sums : (m, L), 0 and 1."""
        told, o = self._told, self.kinds.by_value[:, None]
        asked = self.vectors[:, told].T @ (sums * self.root[:, None])
        by_value = (self.vectors[:, told] / self.w[told]) @ asked / self.root[:, None]
        weights = np.asarray(self.kinds.records @ by_value) / self.kinds.by_kind[:, None]
        spread: Float64Array = np.asarray(self.kinds.records.T @ weights**2) - o * sums**2
        return spread

    def shrunk(self, flattened: Float64Array, shares: Float64Array) -> Float64Array:
        """(m, Q): the posterior means of X around a prior share of each value that meets P. flattened, shares : (m, Q)."""
        total = flattened.sum(axis=0)
        p = total / self.kinds.by_value.sum()
        s = p * (1 - p)
        w = self.w[:, None]
        prior = self.vectors.T @ (shares * self.root[:, None])
        surprise = self.vectors.T @ (flattened / self.root[:, None]) - w * prior
        rho = self._spread(surprise, s)
        x = prior + rho / (1 + w * (rho - 1)) * surprise
        return np.asarray(np.where(s > 0, self.root[:, None] * (self.vectors @ x), flattened))

    def _spread(self, surprise: Float64Array, s: Float64Array) -> Float64Array:
        """(Q,) rho: the likeliest of `_SPREADS`, where each surprise is N(0, s w (1 + w (rho - 1)))."""
        told = self._told
        w = self.w[told]
        squares = surprise[told] ** 2 / w[:, None]
        best, rho = np.full(len(s), np.inf), np.ones(len(s))
        for spread in _SPREADS:
            grown = 1 + w * spread
            # the prior density of rho is 1 / rho: without it a few small counts look like wide spreads
            loss = np.log(grown).sum() + (1 / grown) @ squares / np.where(s > 0, s, 1.0) + 2 * np.log1p(spread)
            better = loss < best
            best[better], rho[better] = loss[better], 1 + spread
        return rho

    def prior(self, parts: Sequence[Float64Array], total: Float64Array) -> Float64Array:
        """(m, Q) prior shares for conditions that AND joins. parts : (m, Q) flattened estimates of each; total : (Q,) records that meet
        all.

        Of one part, or none, the same share for every value.
        """
        product = np.ones((len(self.root), len(total)))
        for part in parts if len(parts) > 1 else ():
            product *= self.ratio(part)
        return self.prior_of(product, total)

    def prior_of(self, product: Float64Array, total: Float64Array) -> Float64Array:
        """(m, Q) prior shares in proportion to products of `ratio`, (m, Q), so that they add up to `total` records, (Q,)."""
        return np.asarray(np.minimum(1.0, product * total / (self.kinds.by_value[:, None] * product).sum(axis=0)))

    def ratio(self, flattened: Float64Array) -> Float64Array:
        """(m, Q): how much likelier than overall a record of each value meets one condition, shrunk and within bounds; 1 if none does."""
        total = flattened.sum(axis=0)
        p = total / self.kinds.by_value.sum()
        even = np.broadcast_to(p, flattened.shape)
        expected = np.where(total > 0, self.kinds.by_value[:, None] * p, 1.0)
        ratio = np.clip(self.shrunk(flattened, even) / expected, _LEAST_RATIO, _MOST_RATIO)
        return np.asarray(np.where(total > 0, ratio, 1.0))

    def shares(self, shrunk: Float64Array) -> Float64Array:
        """(m, Q): the shares that variances are computed with, from shrunk counts; none is 0 or 1 unless all are."""
        p = shrunk.sum(axis=0) / self.kinds.by_value.sum()
        share = shrunk / self.kinds.by_value[:, None]
        return np.asarray(np.clip(share, _LEAST_SHARE * p, 1 - _LEAST_SHARE * (1 - p)))
