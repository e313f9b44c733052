"""Which recipe answers which method of the spec."""

from __future__ import annotations

from collections.abc import Callable

from anonlib.methods import bucketize, heterogeneous, heterogeneous_explain, perturb, sabre, sabre_explain
from anonlib.methods.baselines import anatomy, burel, mondrian, ring_generalization, t_incognito
from anonlib.methods.recipe import Draft, Explanation
from anonlib.spec.anatomy import Anatomy
from anonlib.spec.bucketize import Bucketize
from anonlib.spec.burel import BuReL
from anonlib.spec.heterogeneous import Heterogeneous
from anonlib.spec.method import Method
from anonlib.spec.mondrian import Mondrian
from anonlib.spec.perturb import Perturb
from anonlib.spec.ring_generalization import RingGeneralization
from anonlib.spec.sabre import Sabre
from anonlib.spec.t_incognito import TIncognito

RECIPES: dict[type[Method], Callable[..., Draft]] = {
    Bucketize: bucketize.bucketize,
    Anatomy: anatomy.anatomy,
    Perturb: perturb.perturb,
    Heterogeneous: heterogeneous.heterogeneous,
    Mondrian: mondrian.mondrian,
    RingGeneralization: ring_generalization.nh,
    BuReL: burel.burel,
    TIncognito: t_incognito.t_incognito,
    Sabre: sabre.sabre,
}
"""(microdata, parameters, key, stage, say) -> the staged tables."""
EXPLANATIONS: dict[type[Method], Callable[..., Explanation]] = {
    Bucketize: bucketize.explain,
    Anatomy: anatomy.explain,
    Perturb: perturb.explain,
    Heterogeneous: heterogeneous_explain.explain,
    Mondrian: mondrian.explain,
    RingGeneralization: ring_generalization.explain,
    BuReL: burel.explain,
    TIncognito: t_incognito.explain,
    Sabre: sabre_explain.explain,
}
"""(microdata, parameters, say) -> what the recipe would choose: statistics and the driver's half alone, nothing is written."""
