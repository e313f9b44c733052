"""Streams and permutations: bijective, keyed by purpose and place, and statistically uniform.

False-alarm rates are stated per test; keys are fixed, so a test that passes once passes always.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anonlib.keyed import EXPLICIT, KeyedPermutation, Stream, derive

KEY = bytes(range(32))


def test_derived_keys_tell_kinds_and_lengths_apart():
    keys = {
        derive(KEY, "ab", "c"), derive(KEY, "a", "bc"), derive(KEY, "abc"), derive(KEY, "abc", 1), derive(KEY, "abc", "1"),
        derive(KEY, "abc", 1, 1), derive(KEY, "abc", 11), derive(bytes(32), "abc"),
    }  # fmt: skip
    assert len(keys) == 8


def test_a_short_key_is_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        derive(b"short", "purpose")


def test_the_stream_is_aes_256_ctr_of_the_derived_key():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    expected = Cipher(algorithms.AES(derive(KEY, "p", 7)), modes.CTR(bytes(16))).encryptor().update(bytes(64))
    assert Stream(KEY, "p", 7).words(8).tobytes() == expected


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1 << 40, (1 << 62) + 12345])
def test_below_stays_below_and_is_uniform(bound):
    """Chi-square over 10 equal classes; false-alarm rate 1e-4 each."""
    drawn = Stream(KEY, "below", bound).below(bound, 20_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    classes = min(bound, 10)
    observed = np.bincount((drawn.astype(object) * classes // bound).astype(int), minlength=classes)
    if classes > 1 and (bound <= 10 or bound > 1000):
        assert stats.chisquare(observed).pvalue > 1e-4


def test_below_rejects_rather_than_folds():
    """A bound of 2^62 + 2^61 folds 2^64 words onto itself unevenly: folding gives the lower part probability 3/4, not 2/3.

    False-alarm rate 1e-6; the planted fault (folding) is shown to be caught.
    """
    bound = (1 << 62) + (1 << 61)
    split = (1 << 64) % bound
    expected = split / bound

    def pvalue(drawn):
        return stats.binomtest(int((drawn < split).sum()), len(drawn), expected).pvalue

    assert pvalue(Stream(KEY, "reject").below(bound, 50_000)) > 1e-6
    folded = (Stream(KEY, "reject").words(50_000) % np.uint64(bound)).astype(np.int64)
    assert pvalue(folded) < 1e-6


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6), st.binary(min_size=32, max_size=32))
def test_every_permutation_is_a_bijection(sizes, key):
    sizes = np.array(sizes, dtype=np.int64)
    permute = KeyedPermutation(key, "test", sizes)
    domain = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.concatenate([np.arange(s) for s in sizes])
    image = permute(domain, rank)
    for i, size in enumerate(sizes):
        assert (np.sort(image[domain == i]) == np.arange(size)).all()


def test_a_permutation_survives_pickling_without_carrying_its_tables():
    permute = KeyedPermutation(KEY, "test", np.array([10, 2_000_000]))
    rank = np.arange(1000)
    domain = np.ones(1000, dtype=np.int16)
    image = permute(domain, rank)
    packed = pickle.dumps(permute)
    assert len(packed) < 2000
    assert (pickle.loads(packed)(domain, rank) == image).all()


def test_a_huge_domain_is_permuted_without_collision():
    size = 10_000_000_000
    permute = KeyedPermutation(KEY, "test", np.array([size]))
    rank = np.concatenate([np.arange(100_000), np.arange(size - 100_000, size)])
    image = permute(np.zeros(len(rank), dtype=np.int64), rank)
    assert len(np.unique(image)) == len(rank)
    assert image.min() >= 0
    assert image.max() < size


@pytest.mark.parametrize("size", [EXPLICIT - 24, EXPLICIT + 1, 4096, 1_000_003])
def test_neighbouring_ranks_land_independently(size):
    """Over 3,000 keys: where ranks 0 and 1 land, and their distance, are uniform over 16 classes. False-alarm rate 3e-5 a size."""
    images = np.array(
        [
            KeyedPermutation(derive(KEY, "key", k), "test", np.array([size]))(np.zeros(2, dtype=np.int64), np.arange(2))
            for k in range(3000 if size < 100_000 else 500)
        ]
    )
    for sample in (images[:, 0], images[:, 1], (images[:, 1] - images[:, 0]) % size):
        observed = np.bincount(sample * 16 // size, minlength=16)
        assert stats.chisquare(observed).pvalue > 1e-5


def test_the_neighbour_test_catches_a_rotation():
    """Planted fault: a keyed rotation instead of a permutation is uniform per rank, but neighbours stay neighbours."""
    size = 4096
    shifts = Stream(KEY, "fault").below(size, 3000)
    images = (shifts[:, None] + np.arange(2)) % size
    assert stats.chisquare(np.bincount(images[:, 0] * 16 // size, minlength=16)).pvalue > 1e-5
    distance = (images[:, 1] - images[:, 0]) % size
    assert stats.chisquare(np.bincount(distance * 16 // size, minlength=16)).pvalue < 1e-5
