"""Which method publishes the table: one frozen class of parameters a method, found by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from anonlib.spec.anatomy import Anatomy
from anonlib.spec.bucketize import Bucketize
from anonlib.spec.burel import BuReL
from anonlib.spec.heterogeneous import Heterogeneous
from anonlib.spec.method import Method
from anonlib.spec.mondrian import Mondrian
from anonlib.spec.part import Faults, did_you_mean, fault, faults_of, joined, listed, shown
from anonlib.spec.perturb import Perturb
from anonlib.spec.ring_generalization import RingGeneralization
from anonlib.spec.sabre import Sabre
from anonlib.spec.t_incognito import TIncognito

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Bucketize, Anatomy, Perturb, Heterogeneous, Mondrian, RingGeneralization, BuReL, TIncognito, Sabre)
}


def read_method(given: Any) -> Method:
    """The one method that `given` ({name: parameters}) names, validated."""
    if isinstance(given, Method):
        return given
    if not isinstance(given, Mapping) or len(given) != 1:
        what = (
            f"{len(given)} are named ({listed(map(str, given))})"
            if isinstance(given, Mapping)
            else f"{shown(given)} is not a mapping"
        )
        raise fault(
            f"{what}; write exactly one method with its parameters, e.g. anatomy: {{l: 10}}, out of {listed(METHODS)}"
        )
    ((name, parameters),) = given.items()
    if name not in METHODS:
        raise Faults(
            (str(name), f"no such method{did_you_mean(name, METHODS)}; this version of anonlib has {listed(METHODS)}")
        )
    try:
        return METHODS[name].model_validate(parameters)
    except ValidationError as error:
        raise Faults(*((joined(name, path), sentence) for path, sentence in faults_of(error))) from None
