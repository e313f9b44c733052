"""A stored key at the door: for repeating a run and nothing else; never what tasks carry; never in what is published or said."""

from __future__ import annotations

import pytest

from anonlib import workflow
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.release import reuse
from anonlib.spec import load_spec
from tests.contract.methods import over, replace_recipe
from tests.door import KEY, bucketize, people

pytestmark = pytest.mark.spark


@over("a key used before")
def test_a_key_used_before_on_other_rows_is_refused(releases, method):
    """The same table in another order gives new draws under one key: two looks at each record, each of which kept the promise."""
    manifest = releases.of(method).manifest
    assert manifest.splits.key_tag
    reuse.refuse(manifest, {"beside": manifest.to_json()})
    name, part = next(iter(manifest.tables.items()))
    other = part.model_copy(update={"checksum": "xxh64sum:0000000000000000"})
    again = manifest.model_copy(update={"tables": manifest.tables | {name: other}})
    with pytest.raises(SpecError, match=r"random.key: the release at beside .* fresh key"):
        reuse.refuse(again, {"beside": manifest.to_json()})
    fresh = again.model_copy(update={"splits": again.splits.model_copy(update={"key_tag": ""})})
    reuse.refuse(fresh, {"beside": manifest.to_json()})


def test_at_the_door_a_key_used_before_on_other_splits_or_another_order_is_refused(door):
    asked = {"perturb": {"rho2": "1/3"}}
    table = people(120)
    first = door.run(door.input(table, "a"), "first", method=asked).published()
    turned = table.take(list(range(119, -1, -1)))
    door.run(door.input(turned, "b"), "second", method=asked).refused(2, "random.key", str(first.output), "fresh key")
    door.run(door.input(table, "c", files=3), "third", method=asked).refused(2, "random.key", str(first.output))


@over("the release key")
def test_tasks_get_the_key_of_the_run_and_not_the_release_key(releases, tmp_path, monkeypatch, method):
    given = []

    def publish(table, wanted, run):
        given.append(run.key)
        raise Unsatisfiable("enough seen")

    replace_recipe(monkeypatch, method, publish)
    spec = load_spec(releases.written(method, tmp_path, "release"))
    *kept, last = spec.columns.quasi_identifiers
    withheld = {"quasi_identifiers": tuple(kept), "identifiers": (*spec.columns.identifiers, last.name)}
    columns = spec.columns.model_copy(update=withheld)
    for asked in (spec, spec, spec.model_copy(update={"columns": columns})):
        with pytest.raises(Unsatisfiable, match="enough seen"):
            workflow.run(asked, releases.spark)
    assert given[0] == given[1] != given[2]
    assert bytes.fromhex(KEY) not in given


def test_other_parameters_get_another_key(door, monkeypatch):
    given = []

    def publish(table, wanted, run):
        given.append(run.key)
        raise Unsatisfiable("enough seen")

    replace_recipe(monkeypatch, "perturb", publish)
    source = door.input(people())
    for rho2 in ("1/3", "1/3", "1/4"):
        door.run(source, method={"perturb": {"rho2": rho2}}).refused(3, "enough seen")
    assert given[0] == given[1] != given[2]


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
