"""The tables of heterogeneous generalization's figures: the census, and its quasi-identifiers with uniform or Zipf sensitive values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.baselines import COIL, Table, census, read
from benchmarks.figures.figure import COIL as COIL_TABLE
from benchmarks.figures.figure import OCC, SAL, Scale

SKEW = 0.5
"""Of the Zipf table, where the paper does not say otherwise."""
KINDS = {"census": "CENSUS", "uniform": "Uniform", "zipf": "Zipf"}


def drawn(table: Table, theta: float, seed: int = 0) -> Table:
    """The same quasi-identifiers; a record's sensitive value is the i-th of m with a chance that goes as 1 / i^theta; 0 is uniform.

    The paper's section 5, "Data": values are drawn from the domain of the eighth attribute.
    """
    weights = 1.0 / np.arange(1, table.m + 1) ** theta
    values = np.random.default_rng(seed).choice(table.m, table.n, p=weights / weights.sum())
    return _numbered(replace(table, sensitive=values.astype(np.int64)))


def _numbered(table: Table) -> Table:
    """The same, its sensitive codes those of the values that occur."""
    held, codes = np.unique(table.sensitive, return_inverse=True)
    return replace(table, sensitive=codes.reshape(-1).astype(np.int64), m=len(held))


def of_kind(kind: str, table: Table) -> Table:
    """As it is, or with values drawn."""
    return table if kind == "census" else drawn(table, {"uniform": 0.0, "zipf": SKEW}[kind])


def first(scale: Scale, records: int) -> Table:
    """The first rows of the census, as the paper takes them."""
    return census(scale.data, OCC, "occupation", np.arange(records))


def some(scale: Scale, records: int) -> Table:
    """Random rows of the table with salaries, which has 500,000."""
    rows = np.random.default_rng(0).permutation(500_000)[:records]
    return census(scale.data, SAL, "salary_class", rows)


def coil(scale: Scale, records: int) -> Table:
    """The first rows of COIL 2000, in the paper's order: the part `eval`, then `train`."""
    whole = read(scale.path(COIL_TABLE), COIL, "mostype")
    columns = [column[:records] for column in whole.columns]
    return _numbered(Table(columns, whole.domains, whole.sensitive[:records], whole.m))


def with_attributes(table: Table, number: int) -> Table:
    """The first quasi-identifiers alone."""
    return Table(table.columns[:number], table.domains[:number], table.sensitive, table.m)
