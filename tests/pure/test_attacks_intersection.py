"""The intersection attack against enumeration: two tables drawn from one, and what both together let one believe."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from anonlib.evaluation.attacks_intersection import believed, intersection


def test_two_lists_with_one_value_in_common_make_it_certain() -> None:
    beliefs = [np.array([[0.5, 0.5, 0, 0]]), np.array([[0.5, 0, 0.25, 0.25]])]
    assert believed(beliefs, np.full(4, 0.25)).tolist() == [[1.0, 0.0, 0.0, 0.0]]


def test_who_is_in_one_release_is_believed_by_it_alone() -> None:
    one = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    other = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert np.allclose(believed([one, other], np.array([0.2, 0.3, 0.5])), one)
    assert np.allclose(believed([other, other], np.array([0.2, 0.3, 0.5])), [[0.2, 0.3, 0.5]] * 2)


@pytest.mark.parametrize(
    "seen", [((0, 1, 2), (0, 0, 1)), ((0, 1, 1), (0, 1, 2)), ((0, 0, 1), (0, 1, 1)), ((0, 1, 2), (2, 2, 2))]
)
def test_against_enumeration(seen: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Person 0 in a bucket of three with two others, and in another bucket with two more: of all worlds in which the buckets list what is
    seen, weighed by how likely they are, the share in which he has each value."""
    share = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    together = [Fraction(0)] * 3
    for world in product(range(3), repeat=5):
        if (tuple(sorted(world[:3])), tuple(sorted((world[0], *world[3:])))) == seen:
            together[world[0]] += prod((share[v] for v in world), start=Fraction(1))
    beliefs = [np.array([[listed.count(v) / 3 for v in range(3)]]) for listed in seen]
    found = believed(beliefs, np.array([float(s) for s in share]))[0]
    assert found == pytest.approx([float(t / sum(together)) for t in together])


def test_the_figures() -> None:
    beliefs = [np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]), np.array([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]])]
    attack = intersection(beliefs, np.array([0.25, 0.25, 0.5]), np.array([0, 2]), np.full(3, 0.5))
    told = attack.to_dict()
    assert (told["accuracy"], told["prior"], told["persons"], told["above"], told["certain"]) == (0.5, 0.5, 2, 2, 1)
    assert told["largest"] == 1.0
