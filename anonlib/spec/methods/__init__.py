"""Which method publishes the table: one frozen class of parameters a method, a file each in this folder, found by its name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from pydantic import ValidationError

from anonlib.spec.method import Method
from anonlib.spec.part import Faults, did_you_mean, fault, faults_of, joined, listed, shown


def _methods() -> dict[str, type[Method]]:
    """{name: class} of the method that each file here defines."""
    methods: dict[str, type[Method]] = {}
    for file in iter_modules(__path__, f"{__name__}."):
        inside = vars(import_module(file.name)).values()
        methods |= {
            c.name: c for c in inside if isinstance(c, type) and issubclass(c, Method) and c.__module__ == file.name
        }
    return methods


METHODS: dict[str, type[Method]] = _methods()


def read_method(value: Any) -> Method:
    """The one method that {name: parameters} names, validated. Raises Faults unless it names exactly one that exists."""
    if isinstance(value, Method):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        problem = (
            f"{len(value)} are named ({listed(map(str, value))})"
            if isinstance(value, Mapping)
            else f"{shown(value)} is not a mapping"
        )
        raise fault(
            f"{problem}; write exactly one method with its parameters, e.g. anatomy: {{l: 10}}, out of {listed(METHODS)}"
        )
    ((name, parameters),) = value.items()
    if name not in METHODS:
        raise Faults(
            (str(name), f"no such method{did_you_mean(name, METHODS)}; this version of anonlib has {listed(METHODS)}")
        )
    try:
        return METHODS[name].model_validate(parameters)
    except ValidationError as error:
        raise Faults(*((joined(name, path), sentence) for path, sentence in faults_of(error))) from None
