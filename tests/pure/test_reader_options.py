"""Options that Spark would ignore, or by which two scans differ, are refused by name."""

from __future__ import annotations

import pytest

from anonlib.errors import SpecError
from anonlib.spec.load import parse_spec
from anonlib.spec.reader_options import CORRUPT_RECORD, READER_OPTIONS, option_faults, record_options, strict_options


def spec(source, output="releases/x", **more):
    return parse_spec(
        {
            "input": source,
            "output": {"path": str(output)} | more,
            "columns": {"quasi_identifiers": ["age"], "sensitive": "illness"},
            "method": {"anatomy": {"l": 2}},
        }
    )


@pytest.mark.parametrize(
    ("format", "options", "words"),
    [
        ("csv", {"headr": "true"}, ("input.options.headr", "did you mean header?")),
        ("csv", {"inferSchem": "true"}, ("did you mean inferSchema?",)),
        ("json", {"header": "true"}, ("input.options.header", "json reader has no such option")),
        ("parquet", {"mergeShema": "true"}, ("did you mean mergeSchema?",)),
        (
            "csv",
            {"mode": "DROPMALFORMED"},
            ("input.options.mode", "DROPMALFORMED", "in silence", "input.unreadable: drop"),
        ),
        ("csv", {"MODE": "permissive"}, ("input.options.MODE", "in silence", "input.unreadable")),
        ("csv", {"samplingRatio": "0.5"}, ("samplingRatio", "input.schema")),
        ("parquet", {"ignoreCorruptFiles": "true"}, ("ignoreCorruptFiles", "leaves records out")),
        ("csv", {"enforceSchema": "true"}, ("enforceSchema", "by their position")),
        ("csv", {"columnNameOfCorruptRecord": "bad"}, ("columnNameOfCorruptRecord", "whole records")),
        ("csv", {"sep": ";", "SEP": ","}, ("more than once",)),
        ("csv", {"header": "yes"}, ("input.options.header", "'yes' is neither true nor false")),
        ("json", {"multiLine": "1"}, ("input.options.multiLine", "neither true nor false")),
        ("csv", {"quote": "''"}, ("input.options.quote", "more than one character")),
        ("csv", {"maxColumns": "many"}, ("input.options.maxColumns", "whole number")),
        ("csv", {"sep": ""}, ("input.options.sep", "empty")),
        ("csv", {"unescapedQuoteHandling": "SKIP"}, ("unescapedQuoteHandling", "SKIP_VALUE")),
    ],
)
def test_an_option_that_is_refused(format, options, words):
    with pytest.raises(SpecError) as refused:
        spec({"path": "data/x", "format": format, "options": options})
    assert [word for word in words if word not in str(refused.value)] == []


@pytest.mark.parametrize("format", READER_OPTIONS)
def test_every_known_option_is_either_taken_or_refused_with_a_reason_of_its_own(format):
    for name in READER_OPTIONS[format]:
        assert [why for _, why in option_faults(format, {name: "false"}) if "no such option" in why] == []
        assert option_faults(format, {name.upper(): "x"}) == [
            (name.upper(), why) for _, why in option_faults(format, {name: "x"})
        ]


def test_options_of_a_source_that_is_not_known_are_left_to_it():
    assert spec({"path": "data/x", "format": "delta", "options": {"versionAsOf": 3}}).input.options == {
        "versionAsOf": "3"
    }


def test_text_is_read_strictly_whatever_is_given():
    assert strict_options("csv", {"HEADER": "true", "Mode": "FAILFAST"}) == {
        "HEADER": "true",
        "mode": "PERMISSIVE",  # what cannot be read is told apart, and refused by `anonlib.engine.reading`
        "columnNameOfCorruptRecord": CORRUPT_RECORD,
        "dateFormat": "yyyy-MM-dd",
        "enforceSchema": "false",
        "columnPruning": "false",
    }
    assert strict_options("json", {"DateFormat": "dd/MM/yyyy"}).keys() == {
        "DateFormat",
        "mode",
        "columnNameOfCorruptRecord",
    }
    assert strict_options("parquet", {"mergeSchema": "true"}) == {"mergeSchema": "true"}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"path": "data/x", "format": "csv", "unreadable": "mising"}, ("input.unreadable", "did you mean missing")),
        (
            {"path": "data/x", "format": "parquet", "unreadable": "drop"},
            ("input.unreadable", "parquet has no cells of text"),
        ),
        (
            {"path": "x", "format": "json", "unreadable": "drop", "options": {"multiline": "True"}},
            ("input.unreadable", "one to a line"),
        ),
        ({"table": "a.b", "unreadable": "drop"}, ("input.unreadable", "catalog table")),
        (
            {"path": "x", "format": "csv", "unreadable": "drop", "options": {"Mode": "FAILFAST"}},
            ("input.options.Mode", "refuses"),
        ),
    ],
)
def test_what_is_unreadable_is_allowed_only_where_that_means_something(source, words):
    with pytest.raises(SpecError) as refused:
        spec(source)
    assert [word for word in words if word not in str(refused.value)] == []


def test_a_record_is_parsed_again_as_it_was_parsed_within_its_file():
    given = {"Header": "true", "encoding": "x", "sep": ";", "multiline": "true", "QUOTE": "'"}
    assert record_options(given) == {"sep": ";", "QUOTE": "'"}


# --- where input and output meet ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("g/m*", "g/m3"),
        ("g/m*", "g/m3/deep/er"),
        ("g/*/part", "g"),
        ("g/m[0-9]", "g/m3"),
        ("g/{k,m}?", "g/m3"),
        ("{g,h}/{k,m{2,3}}", "h/m3"),
        ("g/m*/*.csv", "g/m3"),
        ("g/x/../m3", "g/m3"),
        ("file:{home}/g", "g/r"),
        ("file://{home}/g/m*", "g/m3"),
        ("s3://b/m*", "s3a://b/m3"),
        ("s3://b/x", "s3://b/x/y"),
        ("dbfs:/data/m*", "/dbfs/data/m3"),
    ],
)
def test_an_output_that_the_input_reads(tmp_path, monkeypatch, source, output):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"output.path: .* overlaps with the input"):
        spec({"path": source.replace("{home}", str(tmp_path))}, output)


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("g/m*", "g/n3"),
        ("g/m[0-9]", "g/mx"),
        ("g/m[^3]", "g/m3"),
        ("g/{k,l}", "g/m"),
        ("g/m\\*", "g/m3"),
        ("g/m3", "g/m*"),
        ("s3://b/m", "s3://c/m"),
        ("s3://b/m", "s3://b/m3"),
        ("s3://b/m", "b/m"),
    ],
)
def test_an_output_beside_the_input(tmp_path, monkeypatch, source, output):
    monkeypatch.chdir(tmp_path)
    assert spec({"path": source}, output).output.path == output


def test_an_output_through_a_link_into_the_input(tmp_path):
    (tmp_path / "input").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "input")
    for source, output in (("input", "link/out"), ("link", "input/out"), ("in*", "link"), ("l*k", "input/out")):
        with pytest.raises(SpecError, match="overlaps with the input"):
            spec({"path": str(tmp_path / source)}, tmp_path / output)


def test_evidence_within_the_input(tmp_path):
    with pytest.raises(SpecError, match=r"output.evidence: .* overlaps with the input"):
        parse_spec(
            {
                "input": {"path": str(tmp_path / "m*")},
                "output": {"path": str(tmp_path / "release"), "evidence": str(tmp_path / "m3")},
                "columns": {"quasi_identifiers": ["age"], "sensitive": "illness"},
                "method": {"heterogeneous": {"l": 2}},
            }
        )
