"""The trade-off of each method that has one over counts alone."""

from __future__ import annotations

from collections.abc import Mapping

from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.buckets.wanted import f_privacy
from anonlib.solvers.trade_offs.of_beliefs import of_rho2
from anonlib.solvers.trade_offs.of_class_sizes import of_beta
from anonlib.solvers.trade_offs.of_matches import of_matches
from anonlib.solvers.trade_offs.of_thresholds import of_default, of_l, of_theta
from anonlib.solvers.trade_offs.trade_off import TradeOff
from anonlib.spec.method import Method
from anonlib.spec.methods.anatomy import Anatomy
from anonlib.spec.methods.bucketize import Bucketize
from anonlib.spec.methods.burel import BuReL
from anonlib.spec.methods.heterogeneous import Heterogeneous
from anonlib.spec.methods.perturb import Perturb


def from_counts(
    wanted: Method, counts: SensitiveCounts, before: Mapping[str | None, int] | None = None
) -> TradeOff | None:
    """The method's bound against what it costs, from the counts of the sensitive values alone, as a manifest has them too.

    before : {value: records} of earlier releases, where thresholds follow from theirs
    None where nothing follows from counts: for `sabre`, whose loss `explain` measures on a sample, for thresholds that are stated value by
    value alone, and for `mondrian`, `t_incognito` and `nh`, whose classes and boxes depend on the records.
    Cost: see the trade-off of each method; seconds to half a minute.
    """
    if isinstance(wanted, Bucketize):
        return _of_buckets(wanted, counts, before)
    if isinstance(wanted, Anatomy):
        return of_l(counts, wanted.l, 2 * wanted.l)
    if isinstance(wanted, Perturb):
        return of_rho2(counts, wanted)
    if isinstance(wanted, BuReL):
        return of_beta(counts, wanted)
    return of_matches(counts, wanted) if isinstance(wanted, Heterogeneous) else None


def _of_buckets(wanted: Bucketize, counts: SensitiveCounts, before: Mapping[str | None, int] | None) -> TradeOff | None:
    if wanted.privacy.l is not None:
        return of_l(counts, wanted.privacy.l, wanted.max_bucket_size)
    asked = f_privacy(wanted.privacy)
    if asked.theta is not None:
        return of_theta(counts, asked, wanted.max_bucket_size, before)
    return None if asked.default is None else of_default(counts, asked, wanted.max_bucket_size)
