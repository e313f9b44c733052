"""What a table of estimates looks like, whatever the layout: its columns, and the names that it may be grouped by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonlib.errors import SpecError

ESTIMATES = (
    "estimate",
    "estimator",
    "unbiased",
    "standard_error",
    "interval_low",
    "interval_high",
    "low",
    "high",
)
"""Columns of estimates, as the fields of `anonlib.queries.estimates.CountEstimate`; the interval's ends apart."""


def groups(
    by: Sequence[str], columns: Mapping[str, str], sensitive: Sequence[str], taken: Sequence[str] = ESTIMATES
) -> list[str]:
    """The columns to group by, spelled as the release spells them.

    Raises SpecError for a column that is unknown, sensitive, named twice, or called like one of the result's (`taken`).
    """
    if isinstance(by, str):
        raise SpecError(f"by: write a list of columns, e.g. [{by!r}]")
    names = {name.lower(): name for name in (*columns, *sensitive)}
    spelled_of = []
    for name in by:
        spelled = names.get(name.lower())
        if spelled is None:
            listed = [*(c for c in columns if c not in sensitive), *(f"{c} (sensitive)" for c in sensitive)]
            raise SpecError(f"by: there is no column {name!r} in this release; its columns are {', '.join(listed)}")
        if spelled in sensitive:
            raise SpecError(f"by: {name!r} is sensitive; its distribution is given in every group, so leave it out")
        if spelled in spelled_of:
            raise SpecError(f"by: {name!r} is named twice")
        if spelled.lower() in taken:
            raise SpecError(f"by: {name!r} is also the name of a column of the result; group in a view that renames it")
        spelled_of.append(spelled)
    return spelled_of


def visible_only(where: str | None, sensitive_part: str, true: str) -> None:
    """Raises SpecError for a condition on the sensitive column where all its values are told anyway."""
    if sensitive_part != true:
        raise SpecError(
            f"where: {where!r} asks for sensitive values; a distribution tells all of them, so filter its rows instead"
        )
