"""Fake values end to end: what `st` lists, which values a learnt negative association rules out, and when nothing is left."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anonlib.engine import fakes
from tests.door import VALUES, bucketize, counted, people, with_column
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark


def method(s: int = 2, l: int = 3, **more):  # noqa: E741
    return bucketize(l=l, max_bucket_size=2 * l - 1, fake_values=s, **more)


@pytest.mark.parametrize("s", cases(2, nightly=[1]))
def test_each_bucket_lists_its_size_and_s_values_more(door, s):
    source = door.input(people(601))
    outcome = door.run(source, method=method(s)).published()
    manifest = outcome.manifest
    sizes = counted(outcome.table("qit"), "bucket_id")
    listed = counted(outcome.table("st"), "bucket_id")
    assert {b: n + s for b, n in sizes.items()} == listed
    rows = outcome.table("st")
    assert len({(r["bucket_id"], r["illness"]) for r in rows}) == len(rows)
    assert {r["count"] for r in rows} == {1}
    assert manifest.rows.fake == s * len(sizes)
    assert (manifest.rows.input, manifest.rows.published) == (601, 601)
    assert manifest.tables["st"].rows == 601 + s * len(sizes)
    assert f"also lists {s} value(s) that belong to nobody" in manifest.guarantee.words
    assert door.audit(outcome.output, source)[0] == 0


def test_fakes_follow_the_values_frequency(door):
    """Values of 140 to 90 among 900, buckets of five and one fake: 5/6 of each value's listings are real; the words say so."""
    values = [v for v, n in zip("abcdefgh", [140, 130, 120, 110, 110, 100, 100, 90], strict=True) for _ in range(n)]
    table = with_column(people(900), "illness", values)
    outcome = door.run(table, method=method(s=1, l=5)).published()
    listed = counted(outcome.table("st"), "illness")
    shares = [n / listed[v] for v, n in zip("abcdefgh", [140, 130, 120, 110, 110, 100, 100, 90], strict=True)]
    sizes = counted(outcome.table("qit"), "bucket_id")
    even = 900 / (900 + len(sizes))
    assert max(abs(share - even) for share in shares) < 0.01
    assert "each value about as often as it is common" in outcome.manifest.guarantee.words
    assert door.audit(outcome.output)[0] == 0


def test_every_record_still_finds_its_value(door):
    table = people(300)
    table = with_column(table, "country", table["illness"].to_pylist())
    outcome = door.run(table, method=method()).published()
    held = {(r["bucket_id"], r["illness"]) for r in outcome.table("st")}
    assert all((r["bucket_id"], r["country"]) in held for r in outcome.table("qit"))


def test_more_fakes_than_values_are_left(door):
    outcome = door.run(people(), method=method(s=4))
    outcome.refused(3, "fake_values: 4 fake values do not fit", "6 sensitive values", "at most 3 do")


def test_buckets_that_repeat_a_value(door):
    """The threshold of HIV needs buckets of six, and in six the others may stand twice."""
    stated = bucketize(default="1/3", thresholds={"HIV": "1/6"}, fake_values=1)
    door.run(people(), method=stated).refused(3, "every sensitive value occurs once", "max_bucket_size")


# --- negative associations -------------------------------------------------------------------------------------------------------


N = 3000


def independent() -> pa.Table:
    """Each illness equally often, and ages and countries that say nothing of it."""
    draw = np.random.default_rng(3)
    table = with_column(people(N), "illness", draw.permutation([VALUES[i % 6] for i in range(N)]).tolist())
    table = with_column(table, "age", draw.choice([20, 30, 40, 50], N).tolist(), pa.int32())
    return with_column(table, "country", draw.choice(["Peru", "Chile"], N).tolist())


def associated() -> pa.Table:
    """Of those who do not have mumps half are men; nobody who has mumps is."""
    table = independent()
    draw = np.random.default_rng(4)
    sex = ["f" if x == "mumps" else draw.choice(["m", "f"]) for x in table["illness"].to_pylist()]
    return with_column(table, "country", sex)


def men_beside_mumps(outcome) -> int:
    """Buckets with a man that list `mumps`, which he cannot have."""
    sexes: dict[int, set[str]] = {}
    for row in outcome.table("qit"):
        sexes.setdefault(row["bucket_id"], set()).add(row["country"])
    return sum(1 for r in outcome.table("st") if r["illness"] == "mumps" and "m" in sexes[r["bucket_id"]])


@nightly  # what is avoided is looked at above, release by release
def test_a_planted_negative_association_is_learnt_and_avoided(door):
    """Every bucket with a man lacks mumps as a fake when it is avoided; without, a good share of them lists it."""
    source = door.input(associated())
    plain = door.run(source, "plain", method=method(s=1, l=2)).published()
    avoiding = door.run(source, "avoiding", method=method(s=1, l=2, avoid_negative_associations="true")).published()
    illness_of = dict(zip(associated()["note"].to_pylist(), associated()["illness"].to_pylist(), strict=True))
    assert men_beside_mumps(plain) - truly_beside(plain, illness_of) > 100
    assert men_beside_mumps(avoiding) == truly_beside(avoiding, illness_of)
    assert door.audit(avoiding.output, source)[0] == 0


def truly_beside(outcome, illness_of) -> int:
    """The same count without any fakes: buckets where a man stands beside a woman who has it."""
    held: dict[int, set[str]] = {}
    men = set()
    for row in outcome.table("qit"):
        held.setdefault(row["bucket_id"], set()).add(illness_of[row["note"]])
        if row["country"] == "m":
            men.add(row["bucket_id"])
    return sum(1 for bucket in men if "mumps" in held[bucket])


@nightly  # two releases of 3,000 records; which rules are learnt is tried at every change, straight from the tables
def test_independent_columns_give_no_rules(door, monkeypatch):
    """No pair of an age or a country with an illness is taken for an association, so the fakes are those drawn without rules."""
    source = door.input(independent())
    avoid = method(s=1, l=2, avoid_negative_associations="true")
    avoiding = door.run(source, "avoiding", method=avoid).published()
    no_rules = door.spark.createDataFrame([], "bucket_id long, codes array<int>")
    monkeypatch.setattr(fakes, "excluded_codes", lambda *_: no_rules)
    plain = door.run(source, "plain", method=avoid).published()
    assert plain.manifest.tables["st"].checksum == avoiding.manifest.tables["st"].checksum


def test_nothing_left_to_choose_from(door):
    """Whoever shares a bucket shares a group: the values of the other groups are ruled out, and there are no others."""
    table = independent()
    groups = {v: k % 3 for k, v in enumerate(sorted(VALUES))}  # as round robin deals them into buckets of two
    table = with_column(table, "country", [f"group {groups[x]}" for x in table["illness"].to_pylist()])
    outcome = door.run(table, method=method(s=1, l=2, avoid_negative_associations="true"))
    outcome.refused(3, "writing st", "1 fake value(s)", "negative association", "lower fake_values")


def test_rules_are_codes_per_bucket(spark):
    """Straight from the tables: 400 buckets of two, each "m" beside "f"; x stands in every bucket, y only in buckets of women."""
    qit = [(b, "m" if b < 200 else "f", "any") for b in range(400) for _ in range(2)]
    st = [(b, v, 1) for b in range(400) for v in (("x", "z") if b < 200 else ("x", "y"))]
    found = fakes.excluded_codes(
        spark.createDataFrame(qit, "bucket_id long, sex string, place string"),
        spark.createDataFrame(st, "bucket_id long, `a b` string, count long"),
        ["sex", "place"],
        "a b",
        {"x": (0, 0.5), "y": (1, 0.25), "z": (2, 0.25)},
        2.0,
    )
    rules = {row.bucket_id: row.codes for row in found.collect()}
    assert all(rules[b] == [1] for b in range(200))  # no man has y
    assert all(rules[b] == [2] for b in range(200, 400))  # no woman has z
