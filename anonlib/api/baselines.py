"""The baselines on the generalized layout, from a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonlib.api.publish import Column, columns_given, publish
from anonlib.engine.relational import DataFrame
from anonlib.exact import Exactish
from anonlib.release.opened import Release


def mondrian(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    k: int | None = None,
    distinct_l: int | None = None,
    frequency_l: int | None = None,
    beta: Exactish | None = None,
    enhanced_beta: Exactish | None = None,
    t: Exactish | None = None,
    cuts: str = "strict",
    partition_size: int | str = 100_000,
    identifiers: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    output: str | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` in Mondrian's classes, which keep every promise given; give one or more of the six.

    Numbers of a guarantee are text or integers ("0.35"); a float is refused. Otherwise as `anonlib.bucketize`. Three to seven scans of
    `df`, one shuffle of its codes and one of what is published.
    """
    asked = {
        "k": k,
        "distinct_l": distinct_l,
        "frequency_l": frequency_l,
        "beta": beta,
        "enhanced_beta": enhanced_beta,
        "t": t,
    }
    method = {name: number for name, number in asked.items() if number is not None}
    method |= {"cuts": cuts, "partition_size": partition_size}
    columns = columns_given(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"mondrian": method}, columns, missing, output, key, audit)


def nh(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    l: int,  # noqa: E741  (the field's name)
    partitions: str = "mondrian",
    partition_size: int | str = 100_000,
    identifiers: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    output: str | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` by ring generalization: every record matches l records with l different sensitive values. Cost as `mondrian`."""
    method: dict[str, Any] = {"l": l, "partitions": partitions, "partition_size": partition_size}
    columns = columns_given(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"nh": method}, columns, missing, output, key, audit)


def burel(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    beta: Exactish,
    refine: bool = True,
    partition_size: int | str = 100_000,
    identifiers: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    output: str | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` under enhanced beta-likeness, as BuReL does. Cost as `mondrian`."""
    method: dict[str, Any] = {"beta": beta, "refine": refine, "partition_size": partition_size}
    columns = columns_given(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"burel": method}, columns, missing, output, key, audit)


def t_incognito(
    df: DataFrame,
    *,
    quasi_identifiers: Sequence[Column],
    sensitive: Column,
    t: Exactish,
    k: int = 1,
    identifiers: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    output: str | None = None,
    key: str | None = None,
    audit: str = "gate",
) -> Release:
    """Publish `df` at one level per quasi-identifier under t-closeness and k-anonymity.

    Four scans of `df`; its distinct combinations of quasi-identifiers and sensitive value (at most two million) reach the driver.
    """
    columns = columns_given(quasi_identifiers, sensitive, identifiers, ())
    return publish(df, {"t_incognito": {"t": t, "k": k}}, columns, missing, output, key, audit)
