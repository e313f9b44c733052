"""anonlib publishes a sensitive table once, safely, at data-lake scale.

    spec/        what the steward asks: typed, validated          privacy/     what is promised: predicates on counts, exact
    solvers/     what is chosen: driver, pure                     kernels/     what is done to records: executors, pure
    queries/     what can be counted: estimators, pure            engine/      where it runs: the only pyspark
    release/     what leaves the house: layouts, manifest         methods/     the recipes, a page each; baselines among them
    audit/       who checks: borrows nothing from methods, solvers, kernels
    evaluation/  what a release is worth: workloads, utility, attacks
    workflow.py  the only place that knows the order: load, method, stage, audit, publish

Public names resolve on first use, so that pure code imports without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "bucketize": "anonlib.api.bucketize",
    "anatomy": "anonlib.api.bucketize",
    "perturb": "anonlib.api.perturb",
    "heterogeneous": "anonlib.api.heterogeneous",
    "sabre": "anonlib.api.sabre",
    "mondrian": "anonlib.api.baselines",
    "nh": "anonlib.api.baselines",
    "burel": "anonlib.api.baselines",
    "t_incognito": "anonlib.api.baselines",
    "open_release": "anonlib.api.verbs",
    "run": "anonlib.api.verbs",
    "explain": "anonlib.api.verbs",
    "evaluate": "anonlib.api.verbs",
    "audit_release": "anonlib.api.verbs",
    "Release": "anonlib.release.opened",
    "FPrivacy": "anonlib.privacy.f_privacy",
    "AnonlibError": "anonlib.errors",
    "SpecError": "anonlib.errors",
    "Unsatisfiable": "anonlib.errors",
    "AuditRefused": "anonlib.errors",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'anonlib' has no attribute {name!r}; it has {', '.join(sorted(_PUBLIC))}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
