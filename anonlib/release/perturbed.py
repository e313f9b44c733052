"""The perturbed layout: which columns stand in `microdata/` and `operators/`.

microdata/  quasi-identifiers and `other` columns unchanged, the sensitive column perturbed, `subtable` int: one row per record
operators/  one row per sub-table T_i, and what is needed to count on it:
              subtable     int            0, 1, ...
              size         bigint         |T_i|
              domain       array          SA_i, its sensitive values, of the sensitive column's own type; a kept null is one of them
              counts       array<bigint>  how many records of T_i truly have each of them, in the order of `domain`; each at least 1
              domain_size  int            m_i
              gamma        double         gamma_i, rounded
              gamma_exact  string         gamma_i as exact text ("4", "2.5", "37/15"): what the guarantee is computed from
              retention    double         p_i = (gamma_i - 1) / (m_i - 1 + gamma_i)

Publishing `counts` tells nothing new: the sub-tables are a function of the overall counts of the sensitive values, which every
model takes to be public, and of the published parameters; no key and no record enters it. Whoever runs the partitioning on the
manifest's counts gets the same numbers. Which records went where is what the key decides.

Several sensitive columns are perturbed as one compound attribute: `microdata/` has each of them, and an element of `domain` is a
struct of their values, of the columns' names and types, in the manifest's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import SUBTABLE
from anonlib.sql import quoted

MICRODATA = "microdata"
OPERATORS = "operators"
SIZE = "size"
DOMAIN = "domain"
COUNTS = "counts"
DOMAIN_SIZE = "domain_size"
GAMMA = "gamma"
GAMMA_EXACT = "gamma_exact"
RETENTION = "retention"
MAX_SUBTABLES = 1_000_000
"""Rows of `operators/` at most: whoever reads it brings no more to the driver."""


def operator_types(sensitive: Mapping[str, str]) -> dict[str, str]:
    """{column of `operators/`: Spark type, as `DataFrame.dtypes` tells it}, in order, for {sensitive column: its type}."""
    fields = ",".join(f"{name}:{kind}" for name, kind in sensitive.items())
    (first, *more) = sensitive.values()
    return {
        SUBTABLE: "int",
        SIZE: "bigint",
        DOMAIN: f"array<{f'struct<{fields}>' if more else first}>",
        COUNTS: "array<bigint>",
        DOMAIN_SIZE: "int",
        GAMMA: "double",
        GAMMA_EXACT: "string",
        RETENTION: "double",
    }


def sensitive_columns(manifest: Manifest) -> tuple[str, ...]:
    """The sensitive column of `microdata/`, or the parts of a compound one, by the roles that the manifest states."""
    return tuple(c.name for c in manifest.tables[MICRODATA].columns if c.role == "sensitive")


def columns_of_value(value: str, sensitive: Sequence[str]) -> dict[str, str]:
    """{sensitive column: SQL} of the SQL `value`, an element of a domain: the value itself or, of several columns, a struct of them."""
    return {sensitive[0]: value} if len(sensitive) == 1 else {name: f"{value}.{quoted(name)}" for name in sensitive}
