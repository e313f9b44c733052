"""Count queries on the perturbed layout, as SQL text; the arithmetic is `queries.reconstruction`'s.

A count needs three numbers of the records of each sub-table and two of its domain. A distribution needs, for each group,
sub-table and value, the same sums for s_i = 1; both the estimate and its variance are linear in the observed count o and in the
number n of the group's records in the sub-table:

    f* = o / p - n q / p,        Var = o (1 - p - 2 q) / p^2 + n q (p + q) / p^2,

so that the terms in o and the terms in n are added up apart, and values that nobody was observed with need no row of their own.

Null semantics are SQL's: a row counts when its condition is true, neither when false nor when unknown.
"""

from __future__ import annotations

from anonlib.queries.predicate import Predicate


def record_columns(predicate: Predicate) -> dict[str, str]:
    """SQL aggregates of the records by sub-table: n_i, o_i, and the observed count in the whole sub-table."""
    return {
        "matching": f"count_if({predicate.visible})",
        "observed": f"count_if({predicate.visible} AND {predicate.sensitive})",
        "observed_in_all": f"count_if({predicate.sensitive})",
    }


def domain_columns(predicate: Predicate, count: str) -> dict[str, str]:
    """SQL aggregates of the domains by sub-table, over one row per value: s_i and C_i. count : the SQL of a value's true count."""
    return {
        "accepted": f"count_if({predicate.sensitive})",
        "true_in_all": f"sum(IF({predicate.sensitive}, {count}, 0L))",
    }


def chances(gamma: str, domain_size: str) -> dict[str, str]:
    """SQL of p and q of equation (4), from the SQL of a gamma and of a domain's size."""
    total = f"({domain_size} - 1 + {gamma})"
    return {"p": f"({gamma} - 1) / {total}", "q": f"1 / {total}"}


def observed_terms(observed: str) -> dict[str, str]:
    """What o records observed with a value add to its estimate and variance; p and q stand beside them."""
    return {"raw": f"{observed} / p", "variance": f"{observed} * (1 - p - 2 * q) / (p * p)"}


def matching_terms(matching: str, count: str, size: str) -> dict[str, str]:
    """What n matching records of a sub-table of `size`, `count` of which truly have a value, add to it, and its certain bounds."""
    return {
        "raw": f"- {matching} * q / p",
        "variance": f"{matching} * q * (p + q) / (p * p)",
        "low": f"greatest(0L, {matching} + {count} - {size})",
        "high": f"least({matching}, {count})",
    }


def distribution_columns() -> dict[str, str]:
    """What to show of the sums of both kinds of terms: raw, its standard error, and the estimate within the certain bounds."""
    return {
        "estimate": "least(greatest(raw, low), high)",
        "standard_error": "sqrt(greatest(variance, 0D))",
        "low": "low",
        "high": "high",
        "raw": "raw",
    }
