"""A year of monthly releases of 10,000 persons, killed at random points: nobody out twice, nobody lost, every release audited."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anonlib import workflow
from anonlib.release.ledger import new_ledger, open_ledger
from anonlib.release.opened import open_release
from anonlib.spec import load_spec
from tests.contract.methods import asked, over
from tests.door import KEY, OTHER_KEY, of_its_own, write_files

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PERSONS, MONTHS, KILLED = 10_000, 12, (2, 5, 9)
LEDGER_KEY = bytes.fromhex(OTHER_KEY)
TWENTY = tuple(f"illness {i:02}" for i in range(20))
"""As many as the methods' examples need."""


class Year:
    """The visits of random persons, month by month: most of a month's have been there before, some twice in the month."""

    def __init__(self, home: Path, method: str) -> None:
        self.home, self.method, self.chance = home, method, random.Random(method)
        self.out: set[int] = set()

    def visits(self, month: int) -> list[dict[str, Any]]:
        arrived = PERSONS * (month + 1) // MONTHS
        persons = self.chance.sample(range(arrived), min(arrived, 3_000))
        rows = [self._visit(person, day) for person in persons for day in range(self.chance.choice((1, 1, 2)))]
        self.chance.shuffle(rows)
        return rows

    def _visit(self, person: int, day: int) -> dict[str, Any]:
        return {
            "patient": f"patient {person}",
            "day": day,
            "age": 18 + (7 * person + day) % 70,
            "country": ("Peru", "Österreich", "中国")[person % 3],
            "illness": self.chance.choice(TWENTY),
        }

    def expected(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The last visit of each person who is not out, by our own account."""
        last: dict[str, dict[str, Any]] = {}
        for row in sorted(rows, key=lambda row: row["day"]):
            last[row["patient"]] = row
        return [row for patient, row in last.items() if int(patient.split()[1]) not in self.out]

    def conf(self, month: int, rows: list[dict[str, Any]]) -> Path:
        source = write_files(self.home / f"input-{month}", [pa.Table.from_pylist(rows)])
        spec = {
            "input": {"path": str(source)},
            "output": {"path": str(self.home / f"m{month}")},
            "columns": {
                "quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"],
                "sensitive": "illness",
                "identifiers": ["day"],
                "person": "patient",
            },
            "persons": {"repeated": "latest", "order": "day"},
            "ledger": {"path": str(self.home / "ledger"), "key": "env:OTHER_KEY"},
            "method": asked(self.method, 500),
            "random": {"key": "env:RELEASE_KEY"},
        }
        path = self.home / f"m{month}.yaml"
        path.write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")
        return path

    def killed(self, conf: Path) -> None:
        """`anonlib run` in a process of its own, which is killed within a random step, or has ended by then."""
        run = subprocess.Popen(
            [sys.executable, "-m", "anonlib.cli", "run", str(conf), "--master", "local[1]"],
            env=of_its_own(OTHER_KEY=OTHER_KEY), cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert run.stderr is not None
        for _ in range(self.chance.randrange(1, 16)):
            if not run.stderr.readline():
                break
        time.sleep(self.chance.random())
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


@over("twelve months")
def test_a_year(spark, tmp_path, monkeypatch, method):
    monkeypatch.setenv("RELEASE_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", OTHER_KEY)
    new_ledger(str(tmp_path / "ledger"), LEDGER_KEY)
    year = Year(tmp_path, method)
    for month in range(MONTHS):
        rows = year.visits(month)
        expected = year.expected(rows)
        conf, output = year.conf(month, rows), tmp_path / f"m{month}"
        if month in KILLED:
            year.killed(conf)
            ledger = open_ledger(str(tmp_path / "ledger"), LEDGER_KEY)
            assert ledger.persons == len(year.out) + (len(expected) if output.exists() else 0)
        if not output.exists():
            workflow.run(load_spec(conf), spark)
        # the release holds these persons' records and no others: held against a table of them alone
        apart = tmp_path / f"expected-{month}.parquet"
        pq.write_table(pa.Table.from_pylist(expected), apart)
        verdict = workflow.audit(open_release(spark, str(output)), spark.read.parquet(str(apart)))
        assert verdict.passed, verdict.failures
        year.out |= {int(row["patient"].split()[1]) for row in expected}
        ledger = open_ledger(str(tmp_path / "ledger"), LEDGER_KEY)
        assert ledger.persons == len(year.out)
    assert len(ledger.published) == MONTHS
    ledger.check_files()
    entered = pa.concat_tables(pq.read_table(f"{ledger.path}/{e.folder}") for e in ledger.published)[
        "person"
    ].to_pylist()
    assert len(set(entered)) == len(entered) == len(year.out)
