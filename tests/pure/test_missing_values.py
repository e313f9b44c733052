"""What stands for a missing value, a threshold for a null that is kept, and what few rows cannot tell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from anonlib.api.bucketize import _privacy
from anonlib.audit.form import no_row_numbers
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.methods.bucketize import f_privacy
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.spec.load import parse_spec


def asked(missing=None, privacy=None):
    return parse_spec(
        {
            "input": {"path": "data/t.parquet"},
            "output": {"path": "releases/t"},
            "columns": {"quasi_identifiers": ["age"], "sensitive": "illness", "person": "id", "other": ["ward"]},
            "missing": missing or {},
            "method": {"bucketize": {"privacy": privacy or {"default": "1/2"}}},
        }
    )


def test_texts_that_stand_for_a_missing_value():
    spec = asked({"as_missing": ["?", "NA", -9]})
    assert spec.missing.as_missing == ("?", "NA", "-9")
    assert spec.columns.may_be_missing == ("age", "illness", "id")
    assert spec.public_missing() == {"quasi_identifiers": "keep", "sensitive": "error", "person": "error"}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("?", "is not a list"),
        ([""], r"as_missing\[0\].*nullValue"),
        (["?", "?"], "named twice"),
        ([True], "is no text"),
        ([str(i) for i in range(51)], "more than 50 texts"),
        (["x" * 101], "longer than 100 characters"),
    ],
)
def test_texts_that_cannot(texts, words):
    with pytest.raises(SpecError, match=words):
        asked({"as_missing": texts})


def test_a_kept_null_has_a_threshold_of_its_own():
    spec = asked({"sensitive": "keep"}, {"default": "1/2", "missing": "1/5"})
    assert spec.method.to_public_dict()["privacy"]["missing"] == "0.2"
    counts = SensitiveCounts(("flu", None, "cold"), np.array([5, 2, 3]))
    half, fifth = Fraction(1, 2), Fraction(1, 5)
    assert f_privacy(spec.method.privacy).thresholds(counts).fractions == (half, fifth, half)
    with pytest.raises(Unsatisfiable, match="None: 3 of 10"):
        f_privacy(spec.method.privacy).thresholds(SensitiveCounts(("flu", None), np.array([7, 3])))
    in_python = FPrivacy.uniform("1/2", {None: "1/5"})
    assert in_python == f_privacy(spec.method.privacy)
    assert _privacy(in_python) == {"default": "0.5", "missing": "0.2"}


def test_a_threshold_for_a_null_that_nobody_publishes():
    with pytest.raises(SpecError, match=r"method.bucketize.privacy.missing: no missing value is published"):
        asked({"sensitive": "drop"}, {"default": "1/2", "missing": "1/5"})
    with pytest.raises(SpecError, match="write default: 1/2 instead of l: 2"):
        asked({"sensitive": "keep"}, {"l": 2, "missing": "1/5"})
    with pytest.raises(SpecError, match="no sensitive value is missing in this table"):
        FPrivacy.uniform("1/2", {None: "1/5"}).thresholds(SensitiveCounts(("flu", "cold"), np.array([5, 5])))


def test_few_rows_are_said_to_tell_nothing_of_row_numbers():
    ranges = {"note": (0, 23), "age": (16, 93)}
    check = no_row_numbers("qit", (), 24, ranges)
    assert check.passed
    assert check.achieved == "24 rows are too few to tell, 1 columns could"
    assert check.evidence == "look yourself at 'note' (0 to 23)"
    assert no_row_numbers("qit", (), 1000, ranges).achieved == "0 do"
    assert not no_row_numbers("qit", ("'note': all",), 1000, ranges).passed
