"""The batched kernels against obvious twins, query by query and record by record."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from anonlib.errors import SpecError
from anonlib.queries import batch as batched
from anonlib.queries.batch import BucketEstimates, Domain, TrueCounts, ValueMasks, check_tables

STRANGER = 10**15
"""A hash outside every domain: a null, or a value that the original does not have."""


@some.composite
def cases(draw):
    """(domains, asked[attribute][query], records, their buckets, st rows); the last attribute is the sensitive one."""
    attributes, queries = draw(some.integers(1, 3)) + 1, draw(some.integers(1, 20))
    sizes = [draw(some.integers(1, 4)) for _ in range(attributes)]
    rng = np.random.default_rng(draw(some.integers(0, 2**32)))
    domains = [
        Domain(f"A{k}", tuple(map(str, range(m))), rng.permutation(np.arange(-2, m - 2) * 10**17 + k))
        for k, m in enumerate(sizes)
    ]
    asked = [
        [None if rng.random() < 0.3 else np.flatnonzero(rng.random(m) < 0.5) for _ in range(queries)] for m in sizes
    ]
    n = draw(some.integers(1, 30))
    records = np.stack([rng.integers(0, m + 1, n) for m in sizes], axis=1)  # code m stands for a stranger
    bucket = rng.integers(0, draw(some.integers(1, 6)), n)
    fakes = draw(some.integers(0, 1)) * int(rng.integers(0, sizes[-1] + 1))
    return domains, asked, records, bucket, fakes


def hashed(domain, codes):
    return np.append(domain.hashes, STRANGER)[np.asarray(codes, dtype=np.int64)].astype(np.int64)


def meets(asked, attribute, query, code):
    return asked[attribute][query] is None or code in asked[attribute][query]


@settings(max_examples=300, deadline=None)
@given(cases(), some.integers(1, 100))
def test_true_counts_and_estimates_against_their_twins(case, cells):
    domains, asked, records, bucket, fakes = case
    queries = len(asked[0])
    masks = tuple(ValueMasks.of(d, a) for d, a in zip(domains, asked, strict=True))
    last = len(domains) - 1
    before, batched.CELLS = batched.CELLS, cells  # small pieces, so that cutting is tested too
    try:
        found = TrueCounts(masks, queries)({f"a{k}": hashed(d, records[:, k]) for k, d in enumerate(domains)})
        order = np.argsort(bucket, kind="stable")
        ids, size = np.unique(bucket, return_counts=True)
        held = [Counter(records[bucket == g, last].tolist()) for g in ids]
        for counts in held:
            counts.update(range(fakes))
        release = {
            "records": size,
            "values": np.array([len(c) for c in held]),
            "value": hashed(domains[last], [x for c in held for x in c]),
            "count": np.array([n for c in held for n in c.values()]),
        } | {f"a{k}": hashed(d, records[order, k]) for k, d in enumerate(domains[:-1])}
        kernel = pickle.loads(pickle.dumps(BucketEstimates(masks[:-1], masks[-1], queries)))
        estimates = kernel(release)
    finally:
        batched.CELLS = before

    for q in range(queries):
        act, est = 0, 0.0
        for i, record in enumerate(records):
            visible = all(meets(asked, k, q, record[k]) for k in range(last))
            act += visible and meets(asked, last, q, record[last])
            listed = held[int(np.searchsorted(ids, bucket[i]))]
            est += visible * sum(n for x, n in listed.items() if meets(asked, last, q, x)) / sum(listed.values())
        assert found[q] == act
        assert estimates[q] == pytest.approx(est, abs=1e-5)
    assert found[-1] == len(records)
    assert estimates[queries:].tolist() == [((size - 1) ** 2).sum(), len(records), len(ids)]


def test_batches_add_up():
    """A table cut anywhere between records gives the same sums: tasks may see any batches."""
    domain = Domain("A", ("x", "y"), np.array([7, -7]))
    kernel = TrueCounts((ValueMasks.of(domain, [[0], [1], None, []]),), 4)
    whole = {"a0": np.array([7, -7, 7, 7, 0])}
    parts = [kernel({"a0": whole["a0"][:k]}) + kernel({"a0": whole["a0"][k:]}) for k in range(6)]
    assert [p.tolist() for p in parts] == [[3, 1, 5, 0, 5]] * 6


def test_an_empty_batch_and_an_empty_domain():
    nothing = Domain("A", (), np.zeros(0, dtype=np.int64))
    masks = ValueMasks.of(nothing, [None, []])
    assert TrueCounts((masks,), 2)({"a0": np.array([1, 2])}).tolist() == [2, 0, 2]
    none = np.zeros(0, dtype=np.int64)
    empty = {"records": none, "values": none, "value": none, "count": none, "a0": none}
    assert BucketEstimates((masks,), masks, 2)(empty).tolist() == [0] * 5


def test_tables_too_large_to_send_are_refused_with_the_number_that_works():
    check_tables({"A": 100_000, "S": 50}, 5_000)
    with pytest.raises(SpecError, match=r"5,000 queries over attributes with 1,000,000 .* at most 1,072") as refusal:
        check_tables({"A": 1_000_000}, 5_000)
    check_tables({"A": 1_000_000}, 1_072)
    with pytest.raises(SpecError):
        check_tables({"A": 1_000_000}, 1_073)
    assert "\n" not in str(refusal.value)
