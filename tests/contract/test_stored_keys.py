"""A stored key at the door: for repeating a run and nothing else; never what tasks carry; never in what is published or said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anonlib import workflow
from anonlib.errors import Unsatisfiable
from anonlib.spec.methods.perturb import Perturb
from tests.door import KEY, bucketize, cut, people

pytestmark = pytest.mark.spark

ASKED = {"perturb": {"rho2": "1/3"}}


def test_a_key_used_before_on_other_splits_or_another_table_is_refused(door):
    """The same table in another order gives new draws under one key: two looks at each record, each of which kept the promise."""
    table = people(120)
    first = door.run(door.input(table, "a"), "first", method=ASKED).published()
    assert first.manifest.splits.key_tag
    turned = table.take(list(range(119, -1, -1)))
    door.run(door.input(turned, "b"), "second", method=ASKED).refused(2, "random.key", str(first.output), "fresh key")
    door.run(door.input(table, "c", files=3), "third", method=ASKED).refused(2, "random.key", str(first.output))
    again = door.run(door.input(cut(table, 2), "d"), "again", method=ASKED).published()
    assert [part.checksum for part in again.manifest.tables.values()] == [
        part.checksum for part in first.manifest.tables.values()
    ]
    fresh = door.spec(door.input(turned, "e"), "fresh", method=ASKED)
    del fresh["random"]
    assert door.run_spec(fresh, "fresh").published().manifest.splits.key_tag == ""


def test_tasks_get_the_key_of_the_run_and_not_the_release_key(door, monkeypatch):
    given = []

    def publish(table, wanted, run):
        given.append(run.key)
        raise Unsatisfiable("enough seen")

    recipe = replace(workflow.RECIPES[Perturb], publish=publish)
    monkeypatch.setitem(workflow.RECIPES, Perturb, recipe)
    source = door.input(people())
    for rho2 in ("1/3", "1/3", "1/4"):
        door.run(source, method={"perturb": {"rho2": rho2}}).refused(3, "enough seen")
    assert given[0] == given[1] != given[2]
    assert bytes.fromhex(KEY) not in given


def test_weak_keys_and_open_key_files_are_refused(door, monkeypatch):
    source = door.input(people())
    with monkeypatch.context() as patched:
        patched.setenv("RELEASE_KEY", "00" * 32)
        door.run(source).refused(2, "random.key", "can be guessed")
    (door.home / "key").write_text(KEY, encoding="ascii")
    (door.home / "key").chmod(0o666)
    asked = {"key": f"file:{door.home / 'key'}"}
    door.run(source, random=asked).refused(2, "0666", "chmod 600")
    outcome = door.run(source, random=asked | {"allow_open_key_file": True}, method=bucketize(l=3)).published()
    assert KEY not in outcome.err + (outcome.output / "manifest.json").read_text(encoding="utf-8")
