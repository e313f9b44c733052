"""Thresholds that are named one by one: of sensitive values, and of nodes of their hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from anonlib.hierarchy import Hierarchy
from anonlib.spec.part import Fault, Faults, did_you_mean, fault, joined, read_share, shown


def read_thresholds(mapping: Any) -> dict[str, Fraction]:
    """{sensitive value: its threshold}. Values are text (an integer code may be given as an int)."""
    if not isinstance(mapping, Mapping):
        raise fault(
            f"{shown(mapping)} is not a mapping; write the sensitive values with their thresholds, e.g. {{HIV: 0.05}}"
        )
    thresholds: dict[str, Fraction] = {}
    faults: list[Fault] = []
    for value, share in mapping.items():
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            faults.append(("", f"{shown(value)} is not the text of a sensitive value; put the value in quotes"))
            continue
        name = str(value)
        if name in thresholds:
            faults.append((name, "this value is named twice; keep one threshold"))
        try:
            thresholds[name] = read_share(share)
        except Faults as error:
            faults += [(joined(name, inner), sentence) for inner, sentence in error.faults]
    if faults:
        raise Faults(*faults)
    return thresholds


def unknown_names(thresholds: Mapping[str, Fraction], hierarchy: Hierarchy, key: str) -> list[Fault]:
    """A fault for each name that is neither a leaf nor a node of the hierarchy. key : where the thresholds stand."""
    return [
        (
            f"{key}.{name}",
            f"{name!r} is no value and no node of the sensitive column's hierarchy{did_you_mean(name, hierarchy.labels)}",
        )
        for name in thresholds
        if name not in hierarchy.labels
    ]
