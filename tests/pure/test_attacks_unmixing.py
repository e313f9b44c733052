"""Unmixing: against naive Bayes entry by entry, associations that buckets hide, and what it makes of ties and of wide attributes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from anonlib.evaluation.attacks import Listed
from anonlib.evaluation.attacks_coding import Coding
from anonlib.evaluation.attacks_unmixing import Beliefs, likelier, readable, unmixing
from anonlib.queries.flattening import Flattening, Kinds

HELD = np.array(
    [
        [1, 1, 0, 1, 0],
        [1, 0, 1, 1, 0],
        [0, 1, 1, 0, 2],
        [2, 0, 0, 1, 1],
        [0, 1, 2, 1, 0],
        [0, 0, 1, 0, 1],
        [0, 0, 0, 1, 1],
    ]
)
KINDS = Kinds(np.array([300, 200, 250, 400, 400, 800, 800]), sp.csr_matrix(HELD))
SIZES = (5, 3)


def dealt(strength: float, seed: int = 0):
    """(bucket, known, listed, truth) of all records: attribute 0 is the value with probability `strength`, attribute 1 is noise."""
    draw = np.random.default_rng(seed)
    kind = np.repeat(np.arange(len(HELD)), KINDS.buckets)
    truth = np.concatenate([np.repeat(np.arange(5), HELD[k]) for k in kind])
    bucket = np.repeat(np.arange(len(kind)), HELD.sum(axis=1)[kind]) * 3 + 5  # numbers need not be 0, 1, ...
    told = np.where(draw.random(len(truth)) < strength, truth, draw.integers(0, 5, len(truth)))
    known = np.stack([told, draw.integers(0, 3, len(truth))], axis=1)
    at, code = np.nonzero(HELD[kind])
    mixed = draw.permutation(len(at))  # in any order
    listed = Listed((at * 3 + 5)[mixed], code[mixed], HELD[kind][at, code][mixed])
    return bucket, known, listed, truth


def flattened(bucket, known, listed):
    """Record by record, value by value."""
    lists = {}
    for b, v, c in zip(listed.bucket.tolist(), listed.code.tolist(), listed.count.tolist(), strict=True):
        lists.setdefault(b, []).append((v, c))
    tables = [np.zeros((size, 5)) for size in SIZES]
    for b, row in zip(bucket.tolist(), known.tolist(), strict=True):
        size = sum(c for _, c in lists[b])
        for table, x in zip(tables, row, strict=True):
            for v, c in lists[b]:
                table[x, v] += c / size
    return tables, lists


def test_beliefs_are_naive_bayes_within_the_bucket_entry_by_entry():
    bucket, known, listed, truth = dealt(0.6)
    tables, lists = flattened(bucket, known, listed)
    system = Flattening(KINDS)
    ratio = [{x: system.ratio(table[x][:, None])[:, 0] for x in range(len(table))} for table in tables]
    believed = Beliefs.of(bucket, known, listed, likelier(KINDS, tables))
    ends = [*believed.start[1:], len(believed.code)]
    right = believed.right(truth)
    for person in range(0, len(bucket), 61):
        weight = {
            v: c * math.prod(r[x][v] for r, x in zip(ratio, known[person], strict=True))
            for v, c in lists[bucket[person]]
        }
        own = slice(believed.start[person], ends[person])
        whole = sum(weight.values())
        got = dict(zip(believed.code[own].tolist(), believed.belief[own].tolist(), strict=True))
        assert got == pytest.approx({v: w / whole for v, w in weight.items()})
        best = max(weight, key=weight.__getitem__)
        assert right[person] == (best == truth[person])
        assert believed.most()[person] == pytest.approx(weight[best] / whole)


def test_an_association_that_buckets_hide_is_learnt_from_their_kinds():
    """The bucket alone is right in less than half; attribute 0 tells 84 % of the values to who knows the table, and he is right in 0.88."""
    bucket, known, listed, truth = dealt(0.8)
    alone = float(Beliefs.of(bucket, known, listed, ()).right(truth).mean())
    believed = Beliefs.of(bucket, known, listed, likelier(KINDS, flattened(bucket, known, listed)[0]))
    attack = unmixing(believed, truth, alone, 0.3, 1 / 2)
    assert alone < 0.5
    assert attack.accuracy > 0.8
    assert attack.guarantee is None
    assert attack.persons == len(truth)
    assert attack.detail["right when sure"] > 0.85
    assert attack.detail["allowed of one person"] == 1 / 2


def test_without_an_association_it_is_as_good_as_the_bucket_alone():
    """4,100 guesses at 0.4: five standard errors are 0.038."""
    bucket, known, listed, truth = dealt(0.0)
    alone = float(Beliefs.of(bucket, known, listed, ()).right(truth).mean())
    believed = Beliefs.of(bucket, known, listed, likelier(KINDS, flattened(bucket, known, listed)[0]))
    assert believed.right(truth).mean() == pytest.approx(alone, abs=0.04)


def test_values_believed_alike_are_guessed_at_random_and_nobody_sure_is_no_figure():
    listed = Listed(np.array([4, 4, 4, 9, 9]), np.array([0, 1, 2, 0, 3]), np.array([2, 2, 1, 1, 3]))
    believed = Beliefs.of(np.array([9, 4, 4, 4]), np.zeros((4, 0), np.int64), listed, ())
    assert believed.right(np.array([3, 0, 1, 2])).tolist() == [1, 1 / 2, 1 / 2, 0]
    assert believed.most().tolist() == pytest.approx([3 / 4, 2 / 5, 2 / 5, 2 / 5])
    attack = unmixing(believed, np.array([3, 0, 1, 2]), 0.5, 0.4, None, ("zip", "name"))
    assert (attack.accuracy, attack.detail["sure"], attack.detail["not learnt from"]) == (0.5, 0, "zip, name")
    assert "right when sure" not in attack.detail
    assert attack.words.endswith("(a sample of 4)")


def test_the_narrowest_quasi_identifiers_are_learnt_from_as_long_as_they_fit():
    assert readable([5, 900, 2, 3], 10) == [0, 2, 3]
    assert readable([5, 900, 2, 3], 9) == [2, 3]
    assert readable([5, 900, 2, 3], 910) == [0, 1, 2, 3]
    assert readable([5], 4) == readable([], 4) == []


def test_a_coding_tells_codes_of_values_and_of_stretches():
    texts = ["b", None, "a", ""]
    coding = Coding.of(texts)
    assert (coding.keys, coding(texts).tolist(), coding.number) == (("", "=", "=a", "=b"), [3, 0, 2, 1], 4)
    with pytest.raises(KeyError):
        coding(["c"])
    numbers = Coding.of([None, *(str(i / 4) for i in range(1_000))])
    assert numbers.number == 101
    assert numbers(["-7", "1e9", None, "nan"]).tolist() == [0, 99, 100, 100]
    assert np.bincount(numbers([str(i / 4) for i in range(1_000)])).tolist() == [10] * 100


def test_fakes_do_not_stop_who_takes_listings_for_what_they_stand_for_on_average():
    """Two fakes a bucket, each value as often a fake as it is common: a listing is real in three of five. Attribute 0 tells most values."""
    draw, m, size, fakes = np.random.default_rng(5), 12, 3, 2
    lists = np.stack([draw.permutation(m)[: size + fakes] for _ in range(40)])  # the values that each kind lists
    per_kind = 60
    kind = np.repeat(np.arange(len(lists)), per_kind)
    turn = np.tile(np.arange(size + fakes), len(kind) // (size + fakes))  # each value of a kind is a fake equally often
    real = np.stack([np.roll(lists[k], t)[:size] for k, t in zip(kind.tolist(), turn.tolist(), strict=True)])
    truth = real.ravel()
    bucket = np.repeat(np.arange(len(kind)), size)
    told = np.where(draw.random(len(truth)) < 0.8, truth, draw.integers(0, m, len(truth)))
    known = told[:, None]
    shown = Listed(
        np.repeat(np.arange(len(kind)), size + fakes), lists[kind].ravel(), np.ones(lists[kind].size, dtype=np.int64)
    )
    share = np.full(m, size / (size + fakes))
    held = np.zeros((len(lists), m))
    np.put_along_axis(held, lists, share[lists], axis=1)
    table = np.zeros((m, m))
    for b, x in zip(bucket.tolist(), told.tolist(), strict=True):
        table[x, lists[kind[b]]] += 1 / (size + fakes)
    kinds = Kinds(np.full(len(lists), per_kind), sp.csr_matrix(held))
    alone = float(Beliefs.of(bucket, known, shown, (), share).right(truth).mean())
    believed = Beliefs.of(bucket, known, shown, likelier(kinds, [table]), share)
    assert alone == pytest.approx(1 / (size + fakes), abs=1e-9)
    assert believed.right(truth).mean() > 0.7
    # a value that is hardly ever real is believed the less
    rarely = np.where(np.arange(m) == lists[0, 0], 0.05, share)
    first = Beliefs.of(bucket[:1], known[:1], shown, (), rarely)
    assert first.belief[first.code == lists[0, 0]] == pytest.approx(
        0.05 / (0.05 + (size + fakes - 1) * size / (size + fakes))
    )
