"""Minimality: which decisions of the method that made a release looked at quasi-identifiers and sensitive values together.

Source: Wong, Fu, Wang, Pei, VLDB 2007: who knows the algorithm turns such decisions around: a group that was not cut is one whose halves
would have broken the promise. What is told here follows from the manifest's method and parameters; how often one can be turned around
is measured by enumeration in the tests of the methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CUTS = "a class is cut only where both halves keep the promise, so an uncut class tells what its halves hold"
NEAREST = "a class takes the nearest record of each bucket of values, so how far a record lies from the others tells of its value"
MERGED = "neighbouring partitions are merged where the counts of their values cannot keep the promise by themselves"
NONE = "no decision looked at quasi-identifiers and sensitive values together"


def decisions(method: str, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Words for each decision that looked at both; empty where none did. method, parameters : as the manifest has them."""
    leak = bool(parameters.get("allow_minimality_leak"))
    if method == "mondrian":
        return (CUTS,)
    if method == "t_incognito":
        return ("the recoding is the least that keeps the promise, so the next finer one broke it",)
    if method == "nh":
        return ("neighbouring records are merged until their values keep the promise",)
    if method == "burel":
        return (NEAREST, CUTS) if parameters.get("refine") else (NEAREST,)
    if method == "sabre":
        if parameters.get("neighbours") is not None:
            return (NEAREST,)
        # releases made before the parameter existed were all cut so
        return (CUTS,) if leak or "allow_minimality_leak" not in parameters else ()
    if method == "heterogeneous":
        leaks = [MERGED]
        if leak and parameters.get("refine"):
            leaks.append(CUTS)
        if leak and parameters.get("far_apart"):
            leaks.append("buckets are filled with records that lie far apart")
        return tuple(leaks)
    return ()


def minimality_words(method: str, parameters: Mapping[str, Any]) -> str:
    """The decisions that looked at quasi-identifiers and sensitive values together, as one sentence for a reader."""
    leaks = decisions(method, parameters)
    return f"looked at both: {'; '.join(leaks)}" if leaks else NONE
