"""anonlib publishes a sensitive table once, safely, at data-lake scale.

    spec/        what the steward asks: typed, validated          privacy/     what is promised: predicates on counts, exact
    solvers/     what is chosen: driver, pure                     kernels/     what is done to records: executors, pure
    queries/     what can be counted: estimators, pure            engine/      where it runs: the only pyspark
    release/     what leaves the house: layouts, manifest         methods/     the recipes, a page each; baselines among them
    audit/       who checks: borrows nothing from methods, solvers, kernels
    evaluation/  what a release is worth: workloads, utility, attacks        reports/  what a person reads
    workflow.py  the only place that knows the order: load, method, stage, audit, publish; streams/ the same, batch after batch

Public names resolve on first use, so that pure code imports without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers see
    from anonlib.api.anatomy import anatomy as anatomy
    from anonlib.api.bucketize import bucketize as bucketize
    from anonlib.api.burel import burel as burel
    from anonlib.api.heterogeneous import heterogeneous as heterogeneous
    from anonlib.api.mondrian import mondrian as mondrian
    from anonlib.api.nh import nh as nh
    from anonlib.api.perturb import perturb as perturb
    from anonlib.api.sabre import sabre as sabre
    from anonlib.api.stream import stream as stream
    from anonlib.api.t_incognito import t_incognito as t_incognito
    from anonlib.api.verbs import audit_release as audit_release
    from anonlib.api.verbs import evaluate as evaluate
    from anonlib.api.verbs import explain as explain
    from anonlib.api.verbs import ledger as ledger
    from anonlib.api.verbs import new_ledger as new_ledger
    from anonlib.api.verbs import open_release as open_release
    from anonlib.api.verbs import register as register
    from anonlib.api.verbs import report as report
    from anonlib.api.verbs import run as run
    from anonlib.errors import AnonlibError as AnonlibError
    from anonlib.errors import AuditRefused as AuditRefused
    from anonlib.errors import Postponed as Postponed
    from anonlib.errors import SpecError as SpecError
    from anonlib.errors import Unsatisfiable as Unsatisfiable
    from anonlib.privacy.f_privacy import FPrivacy as FPrivacy
    from anonlib.release.opened import Release as Release

__version__ = "0.1.0"

_PUBLIC = {
    "open_release": "anonlib.api.verbs",
    "run": "anonlib.api.verbs",
    "explain": "anonlib.api.verbs",
    "evaluate": "anonlib.api.verbs",
    "audit_release": "anonlib.api.verbs",
    "report": "anonlib.api.verbs",
    "register": "anonlib.api.verbs",
    "stream": "anonlib.api.stream",
    "ledger": "anonlib.api.verbs",
    "new_ledger": "anonlib.api.verbs",
    "Release": "anonlib.release.opened",
    "FPrivacy": "anonlib.privacy.f_privacy",
    "AnonlibError": "anonlib.errors",
    "SpecError": "anonlib.errors",
    "Unsatisfiable": "anonlib.errors",
    "AuditRefused": "anonlib.errors",
    "Postponed": "anonlib.errors",
}
"""Where public names are; besides, every method of the spec has its verb: `anonlib.api.NAME:NAME`."""


def _places() -> dict[str, str]:
    methods = import_module("anonlib.spec.methods").METHODS
    return {**_PUBLIC, **{name: f"anonlib.api.{name}" for name in methods}}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        place = _PUBLIC.get(name) or (None if name.startswith("_") else _places().get(name))
        if place is None:
            raise AttributeError(f"module 'anonlib' has no attribute {name!r}; it has {', '.join(sorted(_places()))}")
        return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return ["__version__", *sorted(_places())]
