"""The same key and the same input splits give the same rows, whatever the session does on the way; another key gives other buckets."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.contract.methods import elsewhere, over
from tests.door import bucketize, cut, multiset, people, write_files
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark


# --- all methods, in sessions of their own --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def troubled(releases):
    return releases.elsewhere("troubled")


@over("tasks that are retried, and other settings", *elsewhere("troubled"))
def test_tasks_that_fail_and_are_retried_under_other_settings(releases, troubled, method):
    """Shuffle partitions, adaptive execution, code generation, the reader, batches, ANSI mode, time zone, and the road of offsets.

    If this fails, take settings out of `tests.contract.elsewhere` until it does not.
    """
    assert troubled[method]["passed"]
    again(troubled[method]["attempts"])
    releases.same(method, troubled[method]["release"])


@pytest.fixture(scope="module")
def speculative(releases):
    """Local sessions do not speculate: three executors with a core each, one of which is free while two dawdle."""
    return releases.elsewhere("speculative")


@pytest.mark.slow
@over("tasks that are run twice by speculation", *elsewhere("speculative"))
def test_tasks_that_are_run_twice_by_speculation(releases, speculative, method):
    assert speculative[method]["passed"]
    again(speculative[method]["attempts"])
    releases.same(method, speculative[method]["release"])


def again(attempts: list[str]) -> None:
    """Asserts that a task of partition 1 was tried again, and no other."""
    second = {name.split("-")[0] for name in attempts if not name.endswith("-0")}
    assert second == {"1"}


# --- keys, of one method: every method draws from the key that `anonlib.workflow` hands it, see `test_stored_keys.py` -----------


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("determinism") / "input", cut(people(1200), 4))


@nightly
def test_fake_values_repeat_as_well(door, source):
    fakes = bucketize(l=2, max_bucket_size=3, fake_values=2)
    first, second = (door.run(source, name, method=fakes, audit="off").published() for name in ("first", "second"))
    assert first.manifest.tables == second.manifest.tables
    assert multiset(first.table("st"), "bucket_id", "illness") == multiset(second.table("st"), "bucket_id", "illness")


def test_another_key_gives_other_buckets_and_the_same_promise(door, source):
    """No key at all, which is a fresh one each time, and (nightly) another one that is stored."""
    spec = door.spec(source)
    keys = {
        "first": spec["random"],
        **dict(cases(("second", {}), ("third", {}), nightly=[("fourth", {"key": "env:OTHER_KEY"})])),
    }
    outcomes = []
    for name, key in keys.items():
        outcomes.append(
            door.run_spec(
                spec | {"random": key, "audit": "off", "output": {"path": str(door.home / name)}}, name
            ).published()
        )
    pairs = [multiset(outcome.table("qit"), "note", "bucket_id") for outcome in outcomes]
    # two independent deals of 1,200 records into 400 buckets agree on about 3; on 40 with a chance far below 1e-20
    for one, other in combinations(pairs, 2):
        assert sum((one & other).values()) < 40
    shapes = [multiset(outcome.table("st"), "bucket_id", "illness", "count") for outcome in outcomes]
    assert all(shape == shapes[0] for shape in shapes)
    assert [bool(outcome.manifest.splits.key_tag) for outcome in outcomes] == [bool(key) for key in keys.values()]
