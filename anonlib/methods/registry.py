"""Which recipe answers which method of the spec: one row a method."""

from __future__ import annotations

from typing import Any

from anonlib.methods import (
    bucketize_pair,
    heterogeneous_pair,
    heterogeneous_pair_explain,
    perturb,
    sabre,
    sabre_explain,
)
from anonlib.methods.baselines import anatomy, burel, mondrian, ring_generalization, t_incognito
from anonlib.methods.recipe import Recipe, TwoFunctions
from anonlib.spec.method import Method
from anonlib.spec.methods.anatomy import Anatomy
from anonlib.spec.methods.bucketize import Bucketize
from anonlib.spec.methods.burel import BuReL
from anonlib.spec.methods.heterogeneous import Heterogeneous
from anonlib.spec.methods.mondrian import Mondrian
from anonlib.spec.methods.perturb import Perturb
from anonlib.spec.methods.ring_generalization import RingGeneralization
from anonlib.spec.methods.sabre import Sabre
from anonlib.spec.methods.t_incognito import TIncognito

RECIPES: dict[type[Method], Recipe[Any]] = {
    Bucketize: TwoFunctions(bucketize_pair.bucketize, bucketize_pair.explain),
    Perturb: TwoFunctions(perturb.perturb, perturb.explain),
    Heterogeneous: TwoFunctions(heterogeneous_pair.heterogeneous, heterogeneous_pair_explain.explain),
    Sabre: TwoFunctions(sabre.sabre, sabre_explain.explain),
    Anatomy: TwoFunctions(anatomy.anatomy, anatomy.explain),
    Mondrian: TwoFunctions(mondrian.mondrian, mondrian.explain),
    RingGeneralization: TwoFunctions(ring_generalization.nh, ring_generalization.explain),
    BuReL: TwoFunctions(burel.burel, burel.explain),
    TIncognito: TwoFunctions(t_incognito.t_incognito, t_incognito.explain),
}
