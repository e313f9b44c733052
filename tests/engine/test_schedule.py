"""Releases of one ledger at the door: nobody out twice and nobody lost, whoever dies where, and what is said of it."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from anonlib import increments
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.release import ledger as ledgers
from anonlib.release import ledger_files, ledger_runs, storage
from anonlib.release.manifest import Manifest
from tests.contract.methods import asked, over, publishes_other
from tests.door import KEY, OTHER_KEY, VALUES, people, with_column
from tests.thorough import nightly

pytestmark = pytest.mark.spark


TWENTY = [f"illness {i:02}" for i in range(20)]


def month(first: int, last: int, values: Any = VALUES) -> pa.Table:
    """Persons number `first` to `last`, whose number stands in `note` too (7 times)."""
    table = people(last, values).slice(first)
    return with_column(table, "patient", [f"patient {i}" for i in range(first, last)])


def visits_of(table: pa.Table) -> pa.Table:
    """Three visits of each person: the first, the third and the second, so that the latest stands neither first nor last."""
    early = with_column(table, "note", [note + 1 for note in table["note"].to_pylist()])
    late = with_column(table, "note", [note + 2 for note in table["note"].to_pylist()])
    parts = ((early, 1), (late, 3), (table, 2))
    return pa.concat_tables(part.append_column("day", pa.array([day] * len(part), pa.int32())) for part, day in parts)


def columns(other: bool = True) -> dict[str, Any]:
    where = {"other": ["note"]} if other else {"identifiers": ["note"]}
    quasi = [{"name": "age", "type": "numeric"}, "country"]
    return {"quasi_identifiers": quasi, "sensitive": "illness", "person": "patient", **where}


class Schedule:
    """A door whose runs share a ledger."""

    def __init__(self, door: Any, monkeypatch: Any) -> None:
        self.door, self.home, self.monkeypatch = door, door.home, monkeypatch
        monkeypatch.setenv("LEDGER_KEY", OTHER_KEY)
        self.path = door.home / "ledger"
        started = door.call("ledger", str(self.path), "--key", "env:LEDGER_KEY", "--new")
        assert started.code == 0, started.err

    def run(self, table: Any, output: str, command: str = "run", ledger: Any = (), **changes: Any) -> Any:
        asked_for = {"path": str(self.path), "key": "env:LEDGER_KEY", **dict(ledger)}
        given = {"columns": columns(), "method": {"anatomy": {"l": 3}}, "random": {}} | changes
        return self.door.run(table, output, command=command, ledger=asked_for, **given)

    def audit_by_spec(self, output: str, **changes: Any) -> tuple[int, Any]:
        """`anonlib audit --spec` with the spec of the last run, changed: the exit code, and the checks that failed or the sentence."""
        conf = max(self.home.glob("spec-*.yaml"), key=lambda path: int(path.stem.split("-")[1]))
        spec = yaml.safe_load(conf.read_text(encoding="utf-8")) | changes
        own = self.home / "audited.yaml"
        own.write_text(
            yaml.safe_dump({k: v for k, v in spec.items() if v is not None}, allow_unicode=True), encoding="utf-8"
        )
        seen = self.door.call("audit", str(self.home / output), "--spec", str(own), "--json")
        checks = json.loads(seen.out)["checks"] if seen.out else []
        return seen.code, [c["name"] for c in checks if not c["passed"]] if checks else " ".join(seen.err.split())

    def look(self, *more: str) -> tuple[int, dict[str, Any]]:
        seen = self.door.call("ledger", str(self.path), "--key", "env:LEDGER_KEY", "--json", *more)
        return seen.code, json.loads(seen.out) if seen.out else {"sentence": seen.sentence}

    def out(self) -> Counter[int]:
        """How often each person is out, over all releases that lie there."""
        found: Counter[int] = Counter()
        for path in self.home.glob("m*/qit"):
            found.update(note // 7 for note in pq.read_table(path)["note"].to_pylist())
        return found

    def opened(self) -> ledgers.Ledger:
        """The ledger, as the next run finds it."""
        return ledgers.open_ledger(str(self.path), bytes.fromhex(OTHER_KEY))

    def dies(self, step: str, table: Any, output: str, **changes: Any) -> None:
        """A run that ends at a step of `WALK`, and nothing tidies up after it."""
        where, name, when = WALK[step]
        with self.monkeypatch.context() as patch:
            patch.setattr(storage, "discard", lambda place: None)
            patch.setattr(ledgers.Ledger, "withdraw", lambda self, entry: False)
            patch.setattr(ledger_files.Files, "remove_folder", lambda self, name: None)
            patch.setattr(where, name, dying(getattr(where, name), when))
            with pytest.raises(Died):
                self.run(table, output, **changes)

    def holds_hashes_alone(self, persons: int) -> None:
        """Neither key nor anybody's name stands in any file; so many persons do, of 16 bytes each, nobody twice."""
        held = [p.read_bytes() for p in self.path.rglob("*") if p.is_file()]
        keys = [bytes.fromhex(key) for key in (KEY, OTHER_KEY)]
        secrets = [b"patient 7", *keys, *(key.hex().encode() for key in keys)]
        assert not [1 for data in held for secret in secrets if secret in data]
        rows = pa.concat_tables(pq.read_table(p) for p in self.path.glob("persons/*/"))
        assert rows.schema == pa.schema([("person", pa.binary())])
        assert {len(person) for person in rows["person"].to_pylist()} == {16}
        assert len(set(rows["person"].to_pylist())) == len(rows) == persons


class Died(BaseException):
    """The run ends here, and nothing tidies up after it."""


def dying(function: Any, when: str) -> Any:
    def dies(*given: Any, **named: Any) -> Any:
        if when == "after":
            function(*given, **named)
        raise Died

    return dies


WALK = {
    "before staging": (storage, "begin", "before"),
    "staged": (storage, "begin", "after"),
    "persons chosen": (increments, "chosen", "after"),
    "tables staged and audited": (increments, "entered_persons", "before"),
    "persons written": (increments, "entered_persons", "after"),
    "before the entry": (ledgers.Ledger, "enter", "before"),
    "between ledger and manifest": (ledgers.Ledger, "enter", "after"),
    "at the manifest": (storage, "publish", "before"),
    "between manifest and outcome": (storage, "publish", "after"),
    "after": (ledgers.Ledger, "settle", "after"),
}
"""{step of a run: (where it is taken, by what, before or after that)}."""


@pytest.fixture
def schedule(door, monkeypatch):
    return Schedule(door, monkeypatch)


def test_a_schedule_from_month_to_month(schedule, monkeypatch):
    """Several visits a person, in a run that dies when its release is out; one that dies in between; too few; and everybody left."""
    monkeypatch.setattr(ledger_runs, "still_runs", lambda entry: False)
    visits = columns() | {"identifiers": ["day"]}
    latest = {"persons": {"repeated": "latest", "order": "DAY"}, "columns": visits}
    schedule.dies("between manifest and outcome", visits_of(month(0, 60)), "m1", **latest)
    told = Manifest.from_json((schedule.home / "m1" / "manifest.json").read_text(encoding="utf-8")).persons
    assert (told.rows, told.persons, told.left_out, told.known) == (180, 60, 120, 0)
    assert [note % 7 for note in pq.read_table(schedule.home / "m1" / "qit")["note"].to_pylist()] == [2] * 60
    assert schedule.opened().persons == 60

    schedule.dies("between ledger and manifest", month(0, 72), "m2")
    assert (schedule.home / "m2").exists() is False
    assert schedule.opened().persons == 60

    waited = schedule.run(month(60, 108, ["flu"]).take([24, 30, 36, 42]), "m4", ledger={"wait": True})
    assert waited.code == 0
    assert "nothing was published, and everybody is left for next time: 4 new persons" in " ".join(waited.err.split())
    assert not waited.output.exists()
    last = schedule.run(month(0, 108), "m5").published()
    assert schedule.audit_by_spec("m5")[0] == 0
    part = last.manifest.ledger
    assert (part.number, part.persons, last.manifest.persons.known) == (3, 48, 60)
    assert schedule.out() == Counter(range(108))
    code, seen = schedule.look()
    assert (code, seen["passed"], seen["persons"]) == (0, True, 108)
    assert [release["outcome"] for release in seen["releases"]] == ["published", "void", "published"]
    schedule.holds_hashes_alone(108)


LATEST = {"persons": {"repeated": "latest", "order": "DAY"}, "columns": columns() | {"identifiers": ["day"]}}


@nightly
def test_an_audit_with_the_original_knows_which_rows_were_published(schedule):
    """By the spec: of all visits the latest of each person who is entered for the release."""
    january, february = visits_of(month(0, 60)), visits_of(month(30, 105))
    schedule.run(january, "m1", **LATEST).published()
    outcome = schedule.run(february, "m2", **LATEST).published()
    assert schedule.audit_by_spec("m2") == (0, [])
    source = yaml.safe_load((schedule.home / "audited.yaml").read_text(encoding="utf-8"))["input"]["path"]
    code, words = schedule.door.audit(outcome.output, Path(source))
    assert (code, words) == (2, [])
    spec = str(schedule.home / "audited.yaml")
    evaluated = schedule.door.call("evaluate", str(outcome.output), "--spec", spec, "--queries", "20", "--json")
    assert evaluated.code == 0, evaluated.err

    turned = february.take(list(range(len(february) - 1, -1, -1)))
    assert schedule.audit_by_spec("m2", input={"path": str(schedule.door.input(turned, "turned"))}) == (0, [])
    ill = [
        value if day != 3 else "flu"
        for value, day in zip(february["illness"].to_pylist(), february["day"].to_pylist(), strict=True)
    ]
    other = schedule.door.input(with_column(february, "illness", ill), "other")
    assert schedule.audit_by_spec("m2", input={"path": str(other)})[0] == 4
    fewer = schedule.door.input(february.filter(pc.not_equal(february["patient"], "patient 80")), "fewer")
    code, failed = schedule.audit_by_spec("m2", input={"path": str(fewer)})
    assert code == 4
    assert "ledger: persons of the original" in failed
    assert schedule.audit_by_spec("m1", input={"path": str(schedule.door.input(january, "january"))}) == (0, [])


@nightly
def test_an_audit_says_what_it_cannot_compare(schedule, monkeypatch):
    schedule.run(visits_of(month(0, 60)), "m1", **LATEST).published()
    for changes, words in (
        (
            {"persons": {"repeated": "first", "order": "DAY"}},
            "persons.repeated: first, and the release was made with latest",
        ),
        ({"ledger": None}, "ledger: the spec has none, and the release was entered in one"),
        ({"columns": LATEST["columns"] | {"person": "note", "other": []}}, "patient"),
    ):
        code, sentence = schedule.audit_by_spec("m1", **changes)
        assert code == 2, (changes, sentence)
        assert words in sentence
    path = schedule.home / "m1" / "manifest.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("}", " }"), encoding="utf-8")
    assert schedule.audit_by_spec("m1") == (4, ["ledger: entered as published"])
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("LEDGER_KEY", KEY)
    assert "belongs to another ledger.key" in schedule.audit_by_spec("m1")[1]


@nightly
def test_rows_that_were_drawn_are_drawn_again_by_a_stored_key_alone(schedule):
    drawn = LATEST | {"persons": {"repeated": "random"}}
    schedule.run(visits_of(month(0, 60)), "m1", **drawn).published()
    code, sentence = schedule.audit_by_spec("m1")
    assert code == 2
    assert "of 60 persons the run drew one of several rows, by a key that it did not keep" in sentence
    schedule.run(visits_of(month(30, 105)), "m2", random={"key": "env:RELEASE_KEY"}, **drawn).published()
    assert schedule.audit_by_spec("m2") == (0, [])
    code, sentence = schedule.audit_by_spec("m2", random={"key": "env:OTHER_KEY"})
    assert code == 2
    assert "or that is not the spec's random.key" in sentence


@nightly
def test_three_months_that_overlap(schedule):
    for name, table, new in (("m1", month(0, 60), 60), ("m2", month(30, 105), 45), ("m3", month(0, 120), 15)):
        outcome = schedule.run(table, name).published()
        told, part = outcome.manifest.persons, outcome.manifest.ledger
        assert outcome.manifest.rows.published == part.persons == new
        assert told.known == len(table) - new
        assert schedule.door.audit(outcome.output)[0] == 0
        if name != "m1":
            assert "published before and left out" in " ".join(outcome.out.split())
    assert schedule.out() == Counter(range(120))
    code, seen = schedule.look()
    assert (code, seen["passed"], seen["persons"]) == (0, True, 120)
    assert [(r["number"], r["persons"], r["outcome"], r["manifest"]) for r in seen["releases"]] == [
        (1, 60, "published", "the same"), (2, 45, "published", "the same"), (3, 15, "published", "the same")
    ]  # fmt: skip
    schedule.holds_hashes_alone(120)


@nightly
def test_a_stored_key_draws_anew_for_each_release_of_a_ledger(schedule):
    """The same release key every month: other draws, and no refusal for a key used before."""
    key = {"random": {"key": "env:RELEASE_KEY"}}
    first = schedule.run(month(0, 60), "m1", **key).published()
    second = schedule.run(month(0, 120), "m2", **key).published()
    assert first.manifest.splits.key_tag != second.manifest.splits.key_tag


@nightly
def test_persons_who_are_out_are_refused_where_the_spec_says_so(schedule):
    schedule.run(month(0, 60), "m1").published()
    asked_for = {"known": "error"}
    schedule.run(month(50, 120), "m2", ledger=asked_for).refused(
        2, "10 of 70 persons have been published", "known: skip"
    )
    schedule.run(month(60, 120), "m2", ledger=asked_for).published()


@nightly
def test_an_increment_that_is_too_small(schedule):
    """4 persons of one value, of which a third of a bucket may be, need 24 others among whom it is as common as so far; nobody is lost."""
    schedule.run(month(0, 60), "m1").published()
    few = month(60, 84, ["flu"]).take([0, 6, 12, 18])
    refused = schedule.run(few, "m2").refused(3, "4 new persons are too few", "the increment can be published")
    more = int(refused.sentence.split(" With ")[1].split(" more")[0].replace(",", ""))
    assert 22 <= more <= 25  # (4 + k * 14/64) * 3 <= 4 + k from k = 23.3 on
    waited = schedule.run(few, "m2", ledger={"wait": True})
    assert waited.code == 0
    assert "nothing was published, and everybody is left for next time: 4 new persons" in " ".join(waited.err.split())
    assert not waited.output.exists()
    assert not list(schedule.home.glob(".m2*"))
    schedule.run(month(0, 84), "m3").published()
    assert schedule.out() == Counter(range(84))


@nightly
def test_how_many_more_persons_it_takes_is_enough(schedule):
    method = {"method": {"anatomy": {"l": 5}}}
    schedule.run(month(0, 60), "m1", **method).published()
    sentence = schedule.run(month(60, 68), "m2", **method).refused(3, "8 new persons are too few").sentence
    more = int(sentence.split(" With ")[1].split(" more")[0])
    assert schedule.run(month(60, 68 + more), "m2", **method).published().manifest.rows.published == 8 + more


@nightly
def test_nobody_new(schedule):
    schedule.run(month(0, 60), "m1").published()
    schedule.run(month(0, 30), "m2").refused(3, "all 30 persons of the input have been published")
    waited = schedule.run(month(0, 30), "m2", ledger={"wait": True})
    assert waited.code == 0
    assert not waited.output.exists()


@nightly
def test_explain_counts_who_is_out_and_writes_nothing(schedule):
    schedule.run(month(0, 60), "m1").published()
    before = sorted(p for p in schedule.home.rglob("*") if "spec-" not in p.name and "input" not in str(p))
    outcome = schedule.run(month(0, 120), "m2", command="explain")
    assert outcome.code == 0, outcome.err
    assert "120 rows of 120 persons; 60 persons published before and left out" in " ".join(outcome.out.split())
    assert sorted(p for p in schedule.home.rglob("*") if "spec-" not in p.name and "input" not in str(p)) == before


@nightly
def test_the_day_in_the_path(schedule):
    outcome = schedule.run(month(0, 60), "m-{date}")
    assert outcome.code == 0, outcome.err
    day = time.strftime("%Y-%m-%d", time.gmtime())
    assert (schedule.home / f"m-{day}" / "manifest.json").exists()
    assert schedule.run(month(0, 120), "m-{date}").code == 2  # twice on a day is an output that is taken


@nightly
def test_persons_that_would_not_be_known_again(schedule):
    schedule.run(month(0, 60), "m1").published()
    numbers = month(0, 120)
    as_numbers = with_column(numbers, "patient", list(range(120)), pa.int64())
    schedule.run(as_numbers, "m2").refused(2, "'patient' is of type whole number, and was string", "cast it")
    renamed = numbers.rename_columns([("ssn" if name == "patient" else name) for name in numbers.column_names])
    other = columns() | {"person": "ssn"}
    schedule.run(renamed, "m2", columns=other).refused(2, "told apart by patient", "nobody would be known again")


@nightly
def test_a_ledger_that_was_not_started_or_is_anothers(schedule, monkeypatch):
    schedule.run(month(0, 60), "m1", ledger={"path": str(schedule.home / "none")}).refused(2, "there is none", "--new")
    monkeypatch.setenv("LEDGER_KEY", KEY)
    refused = schedule.run(month(0, 60), "m1").refused(2, "belongs to another ledger.key")
    assert KEY not in refused.err


@nightly
@pytest.mark.parametrize("damage", ["gone", "cut", "back in time"])
def test_a_damaged_ledger_publishes_nobody(schedule, damage):
    schedule.run(month(0, 60), "m1").published()
    if damage == "back in time":
        shutil.copytree(schedule.path, schedule.home / "old")
        schedule.run(month(0, 120), "m2").published()
        shutil.rmtree(schedule.path)
        (schedule.home / "old").rename(schedule.path)
        words = "number 2, which this ledger does not have"
    else:
        file = next(schedule.path.glob("persons/*/*.parquet"))
        file.unlink() if damage == "gone" else file.write_bytes(file.read_bytes()[:-1])
        words = "is gone" if damage == "gone" else "was edited or cut"
    schedule.run(month(0, 180), "m3").refused(2, words, "bring the ledger back")
    code, seen = schedule.look()
    assert code == 4
    assert words in seen["fault"]


@nightly
def test_a_run_that_dies_anywhere_publishes_nobody_twice_and_loses_nobody(schedule, monkeypatch):
    """Month after month each run dies one step later, and the next month's finds the ledger as it was left."""
    monkeypatch.setattr(ledger_runs, "still_runs", lambda entry: False)
    last = 0
    for number, step in enumerate(WALK, 1):
        last += 12
        schedule.dies(step, month(0, last), f"m{number}")
        seen = schedule.out()
        assert not [person for person, times in seen.items() if times > 1], step
        shown = (schedule.home / f"m{number}" / "manifest.json").exists()
        assert shown == (step in ("between manifest and outcome", "after")), step
        assert schedule.opened().persons == sum(seen.values()), step
    schedule.run(month(0, last + 12), "m99").published()
    assert schedule.out() == Counter(range(last + 12))
    assert schedule.look()[0] == 0


@nightly
def test_of_two_runs_at_once_one_wins(schedule, monkeypatch):
    """The second begins and ends while the first is between its persons and its entry."""
    enter = ledgers.Ledger.enter

    def meanwhile(self: Any, *given: Any) -> Any:
        monkeypatch.setattr(ledgers.Ledger, "enter", enter)
        inner = schedule.run(month(0, 60), "m2")
        assert inner.code == 0, inner.err
        return enter(self, *given)

    monkeypatch.setattr(ledgers.Ledger, "enter", meanwhile)
    outcome = schedule.run(month(0, 60), "m1")
    assert outcome.code == 2
    assert "another run entered release 1 while this one was made" in " ".join(outcome.err.split())
    assert not outcome.output.exists()
    assert schedule.out() == Counter(range(60))
    assert schedule.look()[1]["persons"] == 60


@nightly
def test_a_release_that_cannot_be_shown_enters_nobody(schedule, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "publish", full)
        assert schedule.run(month(0, 60), "m1").code == 1
    assert not list(schedule.home.glob("*m1*"))
    assert schedule.look()[1]["persons"] == 0
    schedule.run(month(0, 60), "m1").published()
    assert schedule.out() == Counter(range(60))


@nightly
def test_a_release_that_is_out_stays_out_when_the_ledger_cannot_be_told(schedule, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(ledgers.Ledger, "settle", full)
        outcome = schedule.run(month(0, 60), "m1").published()
        assert "its next opening does" in " ".join(outcome.err.split())
    assert schedule.look()[1]["persons"] == 60


@nightly
def test_the_missing_value_policy_leaves_persons_for_later(schedule):
    """Whoever has no diagnosis yet is dropped, not entered, and published when there is one."""
    holes = with_column(month(0, 60), "illness", [None if i % 10 == 0 else VALUES[i % 6] for i in range(60)])
    drop = {"missing": {"sensitive": "drop"}}
    first = schedule.run(holes, "m1", **drop).published()
    assert first.manifest.ledger.persons == 54
    schedule.run(month(0, 120), "m2", **drop).published()
    assert schedule.out() == Counter(range(120))


@nightly
@over("schedule")
def test_every_method_publishes_increments(schedule, method):
    other = publishes_other(method)
    notes = []
    for name, table in (("m1", month(0, 240, TWENTY)), ("m2", month(120, 480, TWENTY))):
        outcome = schedule.run(table, name, method=asked(method), columns=columns(other)).published()
        assert outcome.manifest.rows.input == 240
        assert schedule.door.audit(outcome.output)[0] == 0
        notes += (
            [row["note"] for row in outcome.table("qit" if (outcome.output / "qit").exists() else "microdata")]
            if other
            else []
        )
    assert len(set(notes)) == len(notes) == (480 if other else 0)


@nightly
def test_the_manifest_is_held_against_itself(schedule):
    outcome = schedule.run(month(0, 60), "m1").published()
    path = Path(outcome.output) / "manifest.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    for part, name, number in (
        ("persons", "persons", 61),
        ("persons", "known", 1),
        ("ledger", "persons", 59),
        ("ledger", "number", 0),
    ):
        path.write_text(json.dumps(told | {part: told[part] | {name: number}}), encoding="utf-8")
        code, checks = schedule.door.audit(outcome.output)
        assert code == 4
        assert [c["name"] for c in checks if not c["passed"]] == ["one record a person"]


@nightly
def test_runs_from_a_notebook(schedule, spark):
    from anonlib import Postponed, anatomy
    from anonlib import ledger as look

    def published(table: Any, **more: Any) -> Any:
        frame = spark.createDataFrame(table.to_pandas())
        ledger = {"path": str(schedule.path), "key": "env:LEDGER_KEY", **more}
        return anatomy(
            frame,
            quasi_identifiers=["age", "country"],
            sensitive="illness",
            other=["note"],
            l=3,
            person="patient",
            ledger=ledger,
        )

    assert published(month(0, 60)).manifest.ledger.number == 1
    with pytest.raises(Postponed, match="everybody is left for next time"):
        published(month(0, 60), wait=True)
    assert look(str(schedule.path), "env:LEDGER_KEY").persons == 60


@nightly
def test_thresholds_of_a_small_month_follow_from_all_months(schedule, monkeypatch):
    """60 persons have HIV in a sixth; of 24 new ones half have it. By its own shares the month would not protect it."""
    by_formula = {"theta": "1.5", "offset": "0.1"}
    asked_for = {
        "bucketize": {"privacy": by_formula | {"shares": "ledger"}, "solver": "two_size", "max_bucket_size": 20}
    }
    first = schedule.run(month(0, 60), "m1", method=asked_for).published()
    assert first.manifest.ledger.records_before == 0
    assert {v.value: v.threshold for v in first.manifest.guarantee.values}["HIV"] == "0.35"
    few = month(60, 84, ["HIV", "cold", "HIV", "flu", "gout", "mumps"])
    own = {"bucketize": {"privacy": by_formula, "solver": "two_size", "max_bucket_size": 20}}
    explained = schedule.run(few, "m2", command="explain", method=own)
    assert explained.code == 0, explained.err
    second = schedule.run(few, "m2", method=asked_for).published()
    told = second.manifest.ledger
    assert (told.records_before, sum(told.before)) == (60, 50)  # asthma does not occur this month
    shares = {v.value: v.threshold for v in second.manifest.guarantee.values}
    assert shares["HIV"] == "59/140"  # 1.5 * 18/84 + 0.1; by its own share 1.5 * 1/3 + 0.1 = 0.6
    assert schedule.door.audit(second.output)[0] == 0
    # the audit takes nothing on trust: neither the method's thresholds nor the counts they rest on
    path = second.output / "manifest.json"
    text = path.read_text(encoding="utf-8")
    whole = json.loads(text)
    for change in ({"before": [0] * 5}, {"records_before": 10}, {"before": [10, 10]}):
        path.write_text(json.dumps(whole | {"ledger": whole["ledger"] | change}), encoding="utf-8")
        code, checks = schedule.door.audit(second.output)
        assert code == 4
        assert "thresholds follow from the stated requirement" in [c["name"] for c in checks if not c["passed"]]
    path.write_text(text, encoding="utf-8")  # word for word: the ledger knows its digest
    right = FPrivacy.thresholds
    monkeypatch.setattr(FPrivacy, "thresholds", lambda self, counts, before=None: right(self, counts))
    schedule.run(month(84, 108), "m3", method=asked_for).refused(4, "thresholds follow from the stated requirement")
