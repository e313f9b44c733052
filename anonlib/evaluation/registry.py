"""Which evaluation answers for which layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from anonlib.engine.relational import DataFrame
from anonlib.evaluation import bucketized, generalized, perturbed
from anonlib.evaluation.evaluation import Evaluation
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import LayoutName


class Evaluator(Protocol):
    """What a release is worth beside the table it was made from; without `queries` or `selectivity`: those of the layout's own study."""

    def __call__(
        self,
        tables: Mapping[str, DataFrame],
        manifest: Manifest,
        original: DataFrame,
        *,
        queries: int = ...,
        selectivity: float = ...,
        seed: int = 0,
        attacks: bool = False,
    ) -> Evaluation: ...


EVALUATORS: dict[LayoutName, Evaluator] = {
    "bucketized": bucketized.evaluate,
    "perturbed": perturbed.evaluate,
    "generalized": generalized.evaluate,
}
