"""Which rows may be whose: against every graph with as many matches, one by one."""

from __future__ import annotations

import itertools

import numpy as np

from anonlib.evaluation.attacks_rows_alone import left_values, possible
from tests.thorough import trials


def graphs_within(holds: np.ndarray, mu: int, spare: int):
    """Every (persons, rows) 0/1 array within `holds` with mu a person and at most mu a row, `spare` less in all."""
    persons, rows = holds.shape
    choices = [list(itertools.combinations(np.flatnonzero(holds[i]).tolist(), mu)) for i in range(persons)]
    for picked in itertools.product(*choices):
        degree = np.bincount(np.array(picked).ravel(), minlength=rows)
        if degree.max() <= mu and mu * rows - degree.sum() == spare:
            graph = np.zeros(holds.shape, dtype=bool)
            for i, one in enumerate(picked):
                graph[i, list(one)] = True
            yield graph


def test_edges_of_no_regular_graph_are_found() -> None:
    random = np.random.default_rng(4)
    struck = tried = 0
    while tried < trials(300, 100):
        persons, mu, dummies = int(random.integers(3, 6)), int(random.integers(1, 4)), int(random.integers(0, 2))
        rows = persons + dummies
        if mu > persons:
            continue
        holds = random.random((persons, rows)) < 0.6
        graphs = list(graphs_within(holds, mu, mu * dummies)) if (holds.sum(axis=1) >= mu).all() else []
        if not graphs:
            continue
        tried += 1
        true = graphs[int(random.integers(len(graphs)))]
        person, row = np.nonzero(holds)
        found = possible(person, row, true[person, row], mu - true.sum(axis=0))
        assert (found == np.any(graphs, axis=0)[person, row]).all()
        struck += not found.all()
    assert struck > 20


def test_buckets_shown_twice_are_struck_out() -> None:
    assert left_values([3, 5, 3, 7], {3: 0, 5: 1, 7: 2}) == [5, 7]
    assert left_values([3, 5, 4, 7], {3: 0, 4: 0, 5: 1, 7: 2}) == [5, 7]
    assert left_values([3, 5, 3, 7], {5: 1, 7: 2}) == [3, 5, 3, 7]  # 3 lies in two buckets
