"""The attacks on a small release with fake values, published and opened as anybody would."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib.evaluation.attacks_coding import Coding
from anonlib.evaluation.attacks_on_bucketized import listed
from anonlib.evaluation.attacks_unmixing_tables import unmixed
from anonlib.privacy.f_privacy import FPrivacy
from tests.door import KEY, people
from tests.thorough import nightly

pytestmark = pytest.mark.spark


@nightly  # a release and an evaluation; `tests/pure/test_attacks_unmixing.py` has fakes at every change
def test_attacks_are_played_against_real_and_fake_values_alike(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("RELEASE_KEY", KEY)
    n, size, s = 240, 3, 2
    table = people(n).select(["age", "country", "illness"])
    pq.write_table(table, tmp_path / "people.parquet")
    original = spark.read.parquet(str(tmp_path / "people.parquet"))
    release = anonlib.bucketize(
        original,
        quasi_identifiers=[{"name": "age", "type": "numeric"}, "country"],
        sensitive="illness",
        privacy=FPrivacy.l_diversity(size),
        max_bucket_size=2 * size - 1,
        fake_values=s,
        output=str(tmp_path / "release"),
        key="env:RELEASE_KEY",
    )
    found = anonlib.evaluate(release, original, queries=5, attacks=True).attacks
    sizes = {part.size: part.number for part in release.manifest.solver.setting}
    buckets = sum(sizes.values())
    assert found["homogeneity"]["persons"] == n
    assert found["homogeneity"]["above"] == 0
    assert found["homogeneity"]["accuracy"] == pytest.approx(buckets_weighted(sizes, s) / n)
    assert found["corruption, 1 known"]["accuracy"] <= found["corruption, 1 known"]["guarantee"]
    last = found["corruption, last record"]
    assert "guarantee" not in last
    assert last["persons"] <= buckets
    assert last["if nothing told"] == pytest.approx(1 / 3)
    # three values are left of which one is real: who takes the likeliest is right in a third at least, but for 1/sqrt(80) x 5 x 0.47
    assert last["accuracy"] > 1 / 3 - 5 * 0.47 / last["persons"] ** 0.5
    assert "guarantee" not in found["negative association"]  # nobody avoided what rules strike out
    assert found["deFinetti"]["persons"] == n
    assert found["unmixing"]["persons"] == n
    assert "guarantee" not in found["unmixing"]
    lists = listed(release.tables["st"], release.manifest.guarantee)
    learnt = unmixed(
        release.tables["qit"], lists, release.manifest, ["country"], [Coding.of(table["country"].to_pylist())]
    )
    times = Counter(row["illness"] for row in release.tables["st"].collect())
    shares = [v.count / times[v.value] for v in release.manifest.guarantee.values]
    assert learnt.real == pytest.approx(np.array(shares))


def buckets_weighted(sizes, s: int) -> float:
    """Persons whose value is guessed, when each of a bucket's listed values is as likely: size / (size + s) of a bucket."""
    return sum(count * size / (size + s) for size, count in sizes.items())
