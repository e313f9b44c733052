"""The layouts of a release: which tables it has, and how counts and distributions are read from them. A new layout is one row here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from anonlib.engine.relational import DataFrame
from anonlib.queries.estimates import CountEstimate
from anonlib.queries.means import MeanEstimate
from anonlib.queries.reconstruction import ReconstructedCount
from anonlib.release import (
    bucketized,
    bucketized_count,
    bucketized_distribution,
    bucketized_mean,
    bucketized_some,
    generalized,
    generalized_count,
    generalized_distribution,
    perturbed,
    perturbed_count,
    perturbed_mean,
    visible_sizes,
)
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import LayoutName

Estimate = CountEstimate | ReconstructedCount


class Count(Protocol):
    """How many records meet a predicate, estimated from the published tables. Raises SpecError for a predicate it cannot read."""

    def __call__(self, tables: Mapping[str, DataFrame], manifest: Manifest, predicate: str) -> Estimate: ...


class Distribution(Protocol):
    """How many records of each group have each sensitive value, estimated from the published tables; not computed yet."""

    def __call__(
        self, tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str], where: str | None
    ) -> DataFrame: ...


class DistributionOfSome(Protocol):
    """The same of some of several sensitive columns, `shown`, whatever the values of the others."""

    def __call__(
        self,
        tables: Mapping[str, DataFrame],
        manifest: Manifest,
        by: Sequence[str],
        where: str | None,
        shown: Sequence[str],
    ) -> DataFrame: ...


class Mean(Protocol):
    """The mean of a numeric column among the records that meet a condition; on sensitive columns too where there are several."""

    def __call__(
        self, tables: Mapping[str, DataFrame], manifest: Manifest, column: str, where: str | None
    ) -> MeanEstimate: ...


@dataclass(frozen=True)
class Layout:
    """What a release of one layout offers its readers.

    tables       : the published tables, that of the records first
    count        : how a predicate is counted
    distribution : how sensitive values are spread by groups
    sizes        : how many records groups have, whatever their sensitive values
    mean         : the mean of a numeric column
    of_some      : how some of several sensitive columns are spread by groups; None where combinations of all are told alone
    """

    tables: tuple[str, ...]
    count: Count
    distribution: Distribution
    sizes: Distribution
    mean: Mean
    of_some: DistributionOfSome | None = None


LAYOUTS: dict[LayoutName, Layout] = {
    "bucketized": Layout(
        (bucketized.QIT, bucketized.ST),
        bucketized_count.count,
        bucketized_distribution.distribution,
        visible_sizes.of_buckets,
        bucketized_mean.mean,
        bucketized_some.distribution_of_some,
    ),
    "perturbed": Layout(
        (perturbed.MICRODATA, perturbed.OPERATORS),
        perturbed_count.count,
        perturbed_count.distribution,
        visible_sizes.of_perturbed,
        perturbed_mean.mean,
    ),
    "generalized": Layout(
        (generalized.MICRODATA,),
        generalized_count.count,
        generalized_distribution.distribution,
        generalized_distribution.sizes,
        generalized_distribution.mean,
        generalized_distribution.grouped,
    ),
}
