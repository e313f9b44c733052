"""Thresholds: exact, complete, eligible or refused with every offender named; and words that carry the numbers used."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.errors import SpecError, Unsatisfiable
from anonlib.exact import ceil_over, exact, floor_times, text
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, Thresholds, guarantee_words
from tests.thorough import trials


def sensitive(**counts: int) -> SensitiveCounts:
    return SensitiveCounts(tuple(counts), np.array(list(counts.values()), dtype=np.int64))


ILLNESSES = sensitive(flu=70, gout=25, HIV=5)


def test_the_formula_is_exact_and_capped_at_one():
    found = FPrivacy.linear(2, "0.05").thresholds(ILLNESSES).fractions
    assert found == (Fraction(1), Fraction("0.55"), Fraction("0.15"))


def test_a_value_of_its_own_wins_over_formula_and_default():
    assert FPrivacy.linear(8, "0.02", {"HIV": "1/20"}).thresholds(ILLNESSES).fractions[2] == Fraction(1, 20)
    assert FPrivacy.uniform("0.7", {"HIV": "0.05"}).thresholds(ILLNESSES).fractions == (
        Fraction("0.7"),
        Fraction("0.7"),
        Fraction("0.05"),
    )


def test_lemma_1_lists_every_offender_with_its_smallest_threshold():
    with pytest.raises(Unsatisfiable) as refused:
        FPrivacy.uniform("0.2").thresholds(ILLNESSES)
    message = str(refused.value)
    assert "2 sensitive value(s)" in message
    assert "'flu': 70 of 100 records (70.0000%), threshold 0.2, smallest that works 0.7" in message
    assert "'gout': 25 of 100 records (25.0000%), threshold 0.2, smallest that works 0.25" in message
    assert "HIV" not in message
    assert refused.value.exit_code == 3


def test_a_threshold_equal_to_the_frequency_is_eligible_and_a_hair_below_is_not():
    FPrivacy.uniform("0.7").thresholds(ILLNESSES)
    with pytest.raises(Unsatisfiable):
        FPrivacy.uniform("0.6999999999999999999999").thresholds(ILLNESSES)


def test_a_misspelt_value_protects_nothing_and_is_refused():
    with pytest.raises(SpecError, match="'HVI' does not occur"):
        FPrivacy.linear(8, "0.02", {"HVI": "0.1"}).thresholds(ILLNESSES)


def test_a_value_without_any_threshold_is_refused():
    with pytest.raises(SpecError, match="no threshold covers the sensitive value 'flu'"):
        FPrivacy(own={"HIV": Fraction(1, 10)}).thresholds(ILLNESSES)


@pytest.mark.parametrize("share", [0, "0", "1.01", "-1/2"])
def test_a_threshold_outside_0_1_is_refused(share):
    with pytest.raises(SpecError, match="is not a share"):
        FPrivacy.uniform(share)


@pytest.mark.parametrize("number", [0.29, True, None, "a lot", "1/0", ""])
def test_numbers_of_a_guarantee_are_text_or_whole(number):
    with pytest.raises(SpecError):
        exact(number)


def test_029_of_100_is_29():
    assert Thresholds((exact("0.29"),)).capacity(100).tolist() == [29]


@settings(max_examples=trials(500, 100), deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=1), st.integers(1, 10**12))
def test_floors_and_ceilings_are_exact_inverses(share, count):
    assert floor_times(share, count) <= share * count < floor_times(share, count) + 1
    size = ceil_over(count, share)
    assert Fraction(count, size) <= share
    assert size == 1 or Fraction(count, size - 1) > share


@settings(max_examples=trials(300, 100), deadline=None)
@given(st.fractions(max_denominator=10**6))
def test_exact_text_reads_back(number):
    assert exact(text(number)) == number


def test_smallest_size_and_equivalent_l():
    thresholds = Thresholds((Fraction("0.15"), Fraction("0.4")))
    assert thresholds.smallest_size == 3
    assert thresholds.equivalent_l == 7


def test_words_name_the_strictest_and_the_loosest_threshold_rounded_up():
    thresholds = FPrivacy.linear(2, "0.05").thresholds(ILLNESSES)
    said = guarantee_words("illness", ILLNESSES, thresholds)
    assert "from 0.15 (15.00 %) for 'HIV' to 1 (100.00 %) for 'flu'" in said
    third = FPrivacy.l_diversity(3).thresholds(sensitive(a=1, b=1, c=1))
    assert "above 1/3 (33.34 %)" in guarantee_words("x", sensitive(a=1, b=1, c=1), third)


def test_words_about_fake_values_state_what_counts_tell():
    """Odds of 2, 2 and 1 to be real: two fakes beside the likeliest leave it 2 / (2 + 1 + 1)."""
    three = sensitive(a=4, b=4, c=2)
    thresholds = FPrivacy.uniform("1/2").thresholds(three)
    said = guarantee_words("x", three, thresholds, 2, np.array([2, 2, 2]))
    assert "2 value(s) that belong to nobody, each value about as often as it is common" in said
    assert "between about 50.00 % and 66.67 % hold it" in said
    assert "(|g|-q)/(|g|-q+2) of the remaining values are real" in said
    assert "the right one in about 50.00 % of the buckets at most" in said
    never_fake = guarantee_words("x", three, thresholds, 2, np.array([2, 2, 0]))
    assert "between about 66.67 % and 100.00 %" in never_fake
    assert "the right one in about 100.00 % of the buckets at most" in never_fake


def test_words_about_fakes_chosen_against_associations_promise_nothing_more():
    three = sensitive(a=1, b=1, c=1)
    said = guarantee_words("x", three, FPrivacy.l_diversity(3).thresholds(three), fake_values=2)
    assert "2 value(s) that belong to nobody, among those that no association" in said
    assert "Someone who knows how the release was made can tell which they are" in said
    assert "nothing is promised to someone who knows other records" in said
