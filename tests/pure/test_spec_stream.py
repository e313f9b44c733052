"""The stream part of a spec: what a good one is read as, and every bad setting as a sentence that says how to mend it."""

from __future__ import annotations

from typing import Any

import pytest

from anonlib.errors import SpecError
from anonlib.spec.load import parse_spec
from anonlib.spec.part import Part
from anonlib.spec.stream import Range

TREE = "a,1,any\nb,1,any\n"


def asked(**changes: Any) -> dict[str, Any]:
    """A spec that can be run; `changes` replace keys by path, "stream.window" or "method"; None takes one out."""
    spec: dict[str, Any] = {
        "input": {"path": "in"},
        "output": {"path": "out"},
        "columns": {
            "quasi_identifiers": [{"name": "age", "type": "numeric"}, "ward"],
            "sensitive": "illness",
            "identifiers": ["at"],
        },
        "method": {"sabre": {"t": "0.3", "k": 5}},
        "stream": {
            "window": 400,
            "advance": 200,
            "order": "at",
            "checkpoint": "private",
            "domains": {"age": {"low": 0, "high": "99"}, "ward": ["n", "s"], "illness": ["a", "b", None]},
        },
    }
    for path, value in changes.items():
        *above, last = path.split(".")
        part = spec
        for key in above:
            part = part[key]
        if value is None:
            part.pop(last)
        else:
            part[last] = value
    return spec


def test_a_stream_is_read():
    stream = parse_spec(asked()).stream
    assert stream is not None
    assert (stream.window, stream.advance, stream.order, stream.shard) == (400, 200, "at", None)
    assert (stream.trigger, stream.files, stream.outside) == ("30 seconds", None, "error")
    assert isinstance(stream.domains["age"], Range | Part)
    assert stream.domains["ward"] == ("n", "s")
    assert stream.domains["illness"] == ("a", "b", None)


def test_a_spec_without_one_has_none():
    assert parse_spec(asked(stream=None)).stream is None


BAD = [
    ({"stream.window": 500}, "stream.window: 500 is no multiple of advance: 200; write e.g. window: 400"),
    ({"stream.window": 0}, "stream.window: 0 is too small"),
    ({"stream.window": 20_000_000}, "stream.window: 20,000,000 records do not fit into a task"),
    ({"stream.advance": 50}, "stream.advance: 50 records are few"),
    ({"stream.advance": "many"}, "stream.advance: 'many' is not a whole number"),
    ({"stream.windows": 5}, "stream.windows: no such key (did you mean window?)"),
    ({"stream.checkpoint": None}, "stream.checkpoint: missing"),
    ({"stream.checkpoint": "out/private"}, "stream.checkpoint: 'out/private' and the release at 'out' overlap"),
    ({"stream.checkpoint": "in"}, "stream.checkpoint: 'in' overlaps with the input"),
    ({"stream.trigger": "often"}, "stream.trigger: 'often' is no time between two looks"),
    ({"stream.files": 0}, "stream.files: 0 is too small"),
    ({"stream.outside": "keep"}, "stream.outside: 'keep' is no choice here"),
    ({"stream.order": "when"}, "stream.order: 'when' is no column of this spec"),
    ({"stream.order": "illness"}, "stream.order: 'illness' is sensitive"),
    ({"stream.shard": "age"}, "stream.shard: 'age' is no categorical quasi-identifier"),
    ({"stream.shard": "at"}, "stream.shard: 'at' is no categorical quasi-identifier"),
    ({"stream.domains.age": None}, "stream.domains.age: missing"),
    ({"stream.domains.age": ["1", "2"]}, "stream.domains.age: a numeric quasi-identifier has two ends"),
    ({"stream.domains.age": {"low": 1}}, "stream.domains.age: its keys are low"),
    ({"stream.domains.age": {"low": 1.5, "high": 2}}, "stream.domains.age: 1.5 is no end of a domain"),
    ({"stream.domains.ward": {"low": 1, "high": 2}}, "stream.domains.ward: it is published value by value"),
    ({"stream.domains.ward": []}, "stream.domains.ward: [] is no domain"),
    ({"stream.domains.ward": ["n", "n"]}, "stream.domains.ward: 'n' is written twice"),
    ({"stream.domains.at": ["n"]}, "stream.domains.at: it is no quasi-identifier"),
    ({"stream.domains": "age"}, "stream.domains: 'age' is not a mapping"),
    ({"method": {"mondrian": {"k": 5}}}, "method: mondrian publishes tables"),
    ({"method.sabre.k": 201}, "method.sabre.k: 201 records of a class are more than arrive"),
    ({"method.sabre.partition_size": 10}, "method.sabre.partition_size: it is for tables"),
    (
        {"method.sabre.refine": True, "method.sabre.allow_minimality_leak": True},
        "method.sabre.refine: it is for tables",
    ),
    ({"audit": "off"}, "audit: 'off': a batch of a stream is shown only once it has been audited"),
    ({"input": {"table": "t"}}, "input.table: a stream reads a folder"),
    ({"input": {"path": "in", "format": "avro"}}, "input.format: avro cannot be read as it arrives"),
    ({"input": {"path": "in", "format": "csv"}}, "input.schema: missing; what has arrived of a csv"),
    (
        {"input": {"path": "in", "format": "csv", "schema": "age INT", "unreadable": "drop"}},
        "input.unreadable: 'drop' is for tables",
    ),
    ({"output": {"path": "out", "format": "orc"}}, "output.format: orc is for tables"),
    ({"output": {"path": "out", "table": "lake.people"}}, "output.table: a table over a stream's folder would read"),
    ({"columns.sensitive": ["illness", "ward2"]}, "columns.sensitive: a stream protects 1 sensitive column"),
    ({"columns.person": "name"}, "columns.person: a stream does not tell whose record is whose"),
    (
        {"columns.person": "name", "ledger": {"path": "ledger", "key": "env:KEY"}},
        "ledger: a stream does not tell whose record is whose",
    ),
    ({"output": {"path": "out/{date}"}}, "output.path: {date} is for releases on a schedule"),
]


@pytest.mark.parametrize(
    ("changes", "sentence"), BAD, ids=[sentence.split(":")[0] + f"-{i}" for i, (_, sentence) in enumerate(BAD)]
)
def test_a_bad_setting_is_a_sentence(changes: dict[str, Any], sentence: str):
    with pytest.raises(SpecError) as refused:
        parse_spec(asked(**changes))
    assert sentence in str(refused.value)


def test_a_small_advance_is_allowed_by_name():
    stream = parse_spec(asked(**{"stream.advance": 50, "stream.allow_small_advance": True})).stream
    assert stream is not None
    assert stream.advance == 50


def test_a_hierarchy_tells_its_own_domain(tmp_path):
    (tmp_path / "ward.csv").write_text(TREE)
    columns = [{"name": "age", "type": "numeric"}, {"name": "ward", "hierarchy": str(tmp_path / "ward.csv")}]
    changes = {"columns.quasi_identifiers": columns}
    with pytest.raises(SpecError, match="its values are the leaves of its hierarchy"):
        parse_spec(asked(**changes))
    stream = parse_spec(asked(**changes, **{"stream.domains.ward": None, "stream.shard": "ward"})).stream
    assert stream is not None
    assert stream.shard == "ward"
