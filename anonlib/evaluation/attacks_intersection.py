"""Two looks at one person: who is in several releases, under fresh keys, is believed by all of them together.

Given the person's value, what one release shows is independent of what another shows (other draws, other company), so

    Pr(x | g_1, ..., g_k)  is proportional to  p(x) * product over i of Pr(x | g_i) / p(x)

with p the share of x in the table and Pr(x | g_i) what release i alone lets one believe (its list, its posterior). A bound that each factor
keeps is not kept by the product: of two lists of ten values with one value in common, that value is certain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonlib.arrays import Float64Array, IntegerArray
from anonlib.evaluation.attacks import Attack


def believed(releases: Sequence[Float64Array], prior: Float64Array) -> Float64Array:
    """(persons, m) what all releases together let one believe.

    releases : (persons, m) each, the belief in each value by one release alone; a row of zeros where the person is not in it
    prior    : (m,) the values' shares

    >>> believed([np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.0, 0.5]])], np.array([0.2, 0.4, 0.4]))
    array([[1., 0., 0.]])
    """
    weight = np.broadcast_to(prior, releases[0].shape).copy()
    for belief in releases:
        there = belief.sum(axis=1) > 0
        weight[there] *= belief[there] / prior
    total = weight.sum(axis=1, keepdims=True)
    return np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)


def intersection(
    releases: Sequence[Float64Array], prior: Float64Array, truth: IntegerArray, bound: Float64Array
) -> Attack:
    """The attack's figures over persons whose records are told apart by their quasi-identifiers.

    truth : (persons,) codes of their values; bound : (m,) what a release promises of each value
    """
    belief = believed(releases, prior)
    guess = belief.argmax(axis=1)
    above = int((belief > bound + 1e-9).any(axis=1).sum())
    return Attack(
        "intersection",
        float((guess == truth).mean()),
        float(prior.max()),
        float(bound.max()),
        {"certain": int((belief > 1 - 1e-9).any(axis=1).sum())},
        persons=len(truth),
        above=above,
        largest=float(belief.max()),
        words=f"the same persons in {len(releases)} releases",
    )
