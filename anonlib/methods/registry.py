"""Which recipe answers which method of the spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anonlib.methods import bucketize
from anonlib.methods.baselines import anatomy
from anonlib.methods.recipe import Draft
from anonlib.privacy.buckets import BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import Thresholds
from anonlib.spec.methods import Anatomy, Bucketize, Method

RECIPES: dict[type[Method], Callable[..., Draft]] = {Bucketize: bucketize.bucketize, Anatomy: anatomy.anatomy}
CHOICES: dict[type[Method], Callable[[SensitiveCounts, Any], tuple[Thresholds, BucketSolution]]] = {
    Bucketize: bucketize.choose_buckets,
    Anatomy: anatomy.choose_buckets,
}
"""The driver-side half alone, for `explain`."""
