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
"""

from __future__ import annotations

MICRODATA = "microdata"
OPERATORS = "operators"
SUBTABLE = "subtable"
SIZE = "size"
DOMAIN = "domain"
COUNTS = "counts"
DOMAIN_SIZE = "domain_size"
GAMMA = "gamma"
GAMMA_EXACT = "gamma_exact"
RETENTION = "retention"
RESERVED = (SUBTABLE,)
"""Names that a published column of the input cannot have."""


def operator_types(sensitive_type: str) -> dict[str, str]:
    """{column of `operators/`: Spark type}, in order, for a sensitive column of the given type."""
    return {
        SUBTABLE: "int",
        SIZE: "bigint",
        DOMAIN: f"array<{sensitive_type}>",
        COUNTS: "array<bigint>",
        DOMAIN_SIZE: "int",
        GAMMA: "double",
        GAMMA_EXACT: "string",
        RETENTION: "double",
    }
