"""Every method publishes unusual values, types and names as they are, or in boxes that hold them, and explains what it would do."""

from __future__ import annotations

from collections import Counter

import pytest

from anonlib import workflow
from anonlib.spec import load_spec
from tests.contract.methods import EXAMPLES, example, missing_examples, over, publishes_other
from tests.contract.tables import NUMERIC
from tests.door import multiset

ROOT = EXAMPLES.parents[1]

pytestmark = pytest.mark.spark


def test_every_method_has_an_example():
    missing = missing_examples()
    assert not missing, (
        f"{missing[0]} has no example: add {example(missing[0]).relative_to(ROOT)}, or parameters for small tables to INSTEAD of "
        "tests/contract/methods.py"
    )


@over("special values", every_spark=True)
def test_all_kinds_of_values_types_and_names(releases, method):
    outcome = releases.of(method)
    manifest = outcome.manifest
    assert (manifest.rows.input, manifest.rows.published, manifest.splits.partitions) == (240, 240, 4)
    assert manifest.splits.settings["spark.sql.files.maxPartitionBytes"] == "64m"
    assert manifest.audit.passed
    before = dict(releases.original().dtypes)
    quasi = [q["name"] for q in releases.quasi_identifiers(method)]
    records = next(iter(manifest.tables))
    types = {c.name: c.type for c in manifest.tables[records].columns}
    published, original = outcome.table(records), releases.table.to_pylist()
    if publishes_other(method):
        unchanged = [name for name in before if name != "illness"]
        assert multiset(published, *unchanged) == multiset(original, *unchanged)
        assert {name: types[name] for name in unchanged} == {name: before[name] for name in unchanged}
    else:
        numeric = [releases.names[kind] for kind in NUMERIC if releases.names[kind] in quasi]
        for name in quasi:
            ends = (f"{name}_min", f"{name}_max") if name in numeric else ()
            if ends:
                assert [types[end] for end in ends] == [before[name]] * 2
                inside = {row[end] for row in published for end in ends}
                assert inside <= {row[name] for row in original}
            else:
                assert types[name] == f"array<{before[name]}>"
                assert {v for row in published for v in row[name]} == {row[name] for row in original}
        assert Counter(row["illness"] for row in published) == Counter(row["illness"] for row in original)


@over("special values", every_spark=True)
def test_the_audit_beside_the_original(releases, method):
    seen = releases.seen(method)
    assert seen.verdict.passed, seen.verdict.failures
    assert seen.failures() == set()


@over("special values")
def test_explain_says_what_a_run_would_choose_and_writes_nothing(releases, tmp_path, method):
    said = workflow.explain(load_spec(releases.written(method, tmp_path, "explained")), releases.spark)
    assert said.words
    assert said.summary
    assert not (tmp_path / "explained").exists()
