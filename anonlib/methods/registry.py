"""Which recipe answers which method of the spec."""

from __future__ import annotations

from collections.abc import Callable

from anonlib.methods import bucketize, perturb
from anonlib.methods.baselines import anatomy
from anonlib.methods.recipe import Draft, Explanation
from anonlib.spec.method import Method
from anonlib.spec.methods import Anatomy, Bucketize
from anonlib.spec.perturb import Perturb

RECIPES: dict[type[Method], Callable[..., Draft]] = {
    Bucketize: bucketize.bucketize,
    Anatomy: anatomy.anatomy,
    Perturb: perturb.perturb,
}
"""(microdata, parameters, key, stage, say) -> the staged tables."""
EXPLANATIONS: dict[type[Method], Callable[..., Explanation]] = {
    Bucketize: bucketize.explain,
    Anatomy: anatomy.explain,
    Perturb: perturb.explain,
}
"""(microdata, parameters, say) -> what the recipe would choose: statistics and the driver's half alone, nothing is written."""
