"""The release spec through its public door: what is read, and what each fault says."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anonlib.errors import SpecError
from anonlib.exact import text
from anonlib.spec import METHODS, Anatomy, Bucketize, Method, load_spec, parse_spec, resolve_key
from anonlib.spec.layouts import RULES

WHOLE = """
input:    {path: data/census.parquet, format: parquet}
output:   {path: releases/census-occ}
columns:
  quasi_identifiers:
    - {name: age, type: numeric}
    - country
  sensitive: {name: occupation, type: categorical}
  identifiers: [name, ssn]
  other: [region]
method:
  bucketize:
    privacy: {theta: 8, offset: 0.29, thresholds: {NO: 1/13, 7: 0.05}}
audit: off
random: {key: env:ANONLIB_KEY}
"""


def minimal(**changed: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "input": {"path": "in.parquet"},
        "output": {"path": "out"},
        "columns": {"quasi_identifiers": ["age"], "sensitive": "job"},
        "method": {"anatomy": {"l": 3}},
    }
    return {**spec, **changed}


def with_privacy(**privacy: Any) -> dict[str, Any]:
    return minimal(method={"bucketize": {"privacy": privacy}})


def refusal(spec: Any) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(spec)
    return str(caught.value)


def written(tmp_path: Path, text_: str) -> Path:
    path = tmp_path / "release.yaml"
    path.write_text(text_, encoding="utf-8")
    return path


def test_numbers_of_a_guarantee_stay_exactly_what_was_written(tmp_path: Path) -> None:
    spec = load_spec(written(tmp_path, WHOLE))
    assert isinstance(spec.method, Bucketize)
    assert spec.method.privacy.theta == 8
    assert spec.method.privacy.offset == Fraction(29, 100)  # not the binary float nearest to 0.29
    assert spec.method.privacy.thresholds == {"NO": Fraction(1, 13), "7": Fraction(1, 20)}
    assert (spec.method.solver, spec.method.max_bucket_size, spec.method.time_limit) == ("optimal", 50, 60.0)
    assert spec.audit == "off"  # a usual YAML reader makes False of it


def test_roles_types_and_defaults(tmp_path: Path) -> None:
    spec = load_spec(written(tmp_path, WHOLE))
    assert [(c.name, c.type) for c in spec.columns.quasi_identifiers] == [
        ("age", "numeric"),
        ("country", "categorical"),
    ]
    assert spec.columns.sensitive_names == ("occupation",)
    assert spec.columns.all_names == ("age", "country", "occupation", "name", "ssn", "region")
    assert (spec.missing.quasi_identifiers, spec.missing.sensitive) == ("keep", "error")
    assert spec.random.key == "env:ANONLIB_KEY"
    assert spec.output is not None
    assert spec.output.format == "parquet"


def test_yaml_and_python_build_the_same_object(tmp_path: Path) -> None:
    python = {
        "input": {"path": "data/census.parquet"},
        "output": {"path": "releases/census-occ"},
        "columns": {
            "quasi_identifiers": [{"name": "age", "type": "numeric"}, {"name": "country"}],
            "sensitive": "occupation",
            "identifiers": ("name", "ssn"),
            "other": ["region"],
        },
        "method": {
            "bucketize": {
                "privacy": {"theta": 8, "offset": Decimal("0.29"), "thresholds": {"NO": Fraction(1, 13), 7: "0.05"}}
            }
        },
        "audit": "off",
        "random": {"key": "env:ANONLIB_KEY"},
    }
    assert load_spec(written(tmp_path, WHOLE)) == parse_spec(python)


def test_a_frozen_spec_cannot_be_changed() -> None:
    spec = parse_spec(minimal())
    with pytest.raises(ValidationError):
        spec.audit = "off"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        spec.method.l = 2  # type: ignore[attr-defined]


shares = st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000)
numbers = st.fractions(min_value=0, max_value=100, max_denominator=1000)
privacies = st.one_of(
    st.fixed_dictionaries(
        {"theta": numbers}, optional={"offset": numbers, "thresholds": st.dictionaries(st.text(), shares)}
    ),
    st.fixed_dictionaries({"default": shares}, optional={"thresholds": st.dictionaries(st.text(), shares)}),
    st.fixed_dictionaries({"l": st.integers(2, 100)}),
)


@given(privacies, st.sampled_from(["optimal", "multi_size", "two_size"]), st.integers(1, 10**9), st.integers(0, 5))
def test_the_public_parameters_build_the_same_method_again(privacy: Any, solver: str, size: int, fake: int) -> None:
    parameters = {"privacy": privacy, "solver": solver, "max_bucket_size": size, "fake_values": fake}
    method = parse_spec(minimal(method={"bucketize": parameters})).method
    public = method.to_public_dict()
    assert parse_spec(minimal(method={"bucketize": json.loads(json.dumps(public))})).method == method
    if "theta" in privacy:
        assert public["privacy"]["theta"] == text(privacy["theta"])


def test_what_is_public_has_neither_paths_nor_key_nor_identifiers(tmp_path: Path) -> None:
    public = repr(load_spec(written(tmp_path, WHOLE)).to_public_dict())
    for secret in ("ANONLIB_KEY", "census", "releases", "ssn"):
        assert secret not in public
    assert "'offset': '0.29'" in public
    assert "'NO': '1/13'" in public


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_has_a_layout_and_its_rules(method: type[Method]) -> None:
    added = {"bucketized": {"bucket_id", "count"}, "perturbed": {"subtable"}, "generalized": {"ec_id"}}
    assert set(RULES[method.layout].reserved) == added[method.layout]


FAULTS = {
    "misspelt key": (minimal(metod={}), ["metod: no such key (did you mean method?)", "columns"]),
    "missing part": (
        {"columns": minimal()["columns"], "input": {"path": "a"}, "output": {"path": "b"}},
        ["method: missing; add exactly one"],
    ),
    "missing input": (
        {k: v for k, v in minimal().items() if k != "input"},
        ["input: missing; add the table to publish"],
    ),
    "missing output": (
        {k: v for k, v in minimal().items() if k != "output"},
        ["output: missing; add where the release goes"],
    ),
    "not a mapping": (
        minimal(columns="age"),
        ["columns: 'age' is not a mapping", "quasi_identifiers, sensitive, identifiers, other"],
    ),
    "path and table": (minimal(input={"path": "a", "table": "b"}), ["input: give either path (with format) or table"]),
    "neither path nor table": (minimal(input={"format": "csv"}), ["input: give either path (with format) or table"]),
    "schema of a table": (
        minimal(input={"table": "a.b", "schema": "x INT"}),
        ["input.schema: a catalog table has its own"],
    ),
    "option value": (
        minimal(input={"path": "a", "options": {"header": None}}),
        ["input.options.header: an empty value"],
    ),
    "format": (
        minimal(input={"path": "a", "format": "parqet"}),
        ["input.format: 'parqet'", "did you mean parquet?", "csv"],
    ),
    "output that loses types": (
        minimal(output={"path": "o", "format": "csv"}),
        ["output.format: 'csv'", "parquet, orc, delta"],
    ),
    "output in the input": (
        minimal(output={"path": "in.parquet/out"}),
        ["output.path: 'in.parquet/out' overlaps with the input"],
    ),
    "output over a URI": (
        minimal(input={"path": "s3://b/t"}, output={"path": "s3://b/t/"}),
        ["output.path: 's3://b/t/' overlaps with the input at 's3://b/t'"],
    ),
    "evidence in the release": (
        minimal(output={"path": "o", "evidence": "o/private"}),
        ["output.evidence: 'o/private'", "outside"],
    ),
    "evidence nobody writes": (
        minimal(output={"path": "o", "evidence": "p"}),
        ["output.evidence: anatomy leaves no evidence"],
    ),
    "no quasi-identifier": (
        minimal(columns={"quasi_identifiers": [], "sensitive": "job"}),
        ["columns.quasi_identifiers: the list is empty; name at least one"],
    ),
    "number as a name": (
        minimal(columns={"quasi_identifiers": [3], "sensitive": "job"}),
        ["quasi_identifiers[0]: 3 is not a mapping"],
    ),
    "column type": (
        minimal(columns={"quasi_identifiers": [{"name": "age", "type": "number"}], "sensitive": "job"}),
        ["columns.quasi_identifiers[0].type: 'number'", "write one of numeric, categorical", "did you mean numeric?"],
    ),
    "column without a name": (
        minimal(columns={"quasi_identifiers": [{"type": "numeric"}], "sensitive": "job"}),
        ["columns.quasi_identifiers[0].name: missing"],
    ),
    "named twice in two roles": (
        minimal(columns={"quasi_identifiers": ["age"], "sensitive": "job", "identifiers": ["age"]}),
        ["columns.identifiers: 'age' is already named under quasi_identifiers"],
    ),
    "named twice in one role": (
        minimal(columns={"quasi_identifiers": ["age", "age"], "sensitive": "job"}),
        ["columns.quasi_identifiers: 'age' is already named under quasi_identifiers"],
    ),
    "named twice but for case": (
        minimal(columns={"quasi_identifiers": ["age"], "sensitive": "job", "other": ["AGE"]}),
        ["columns.other: 'AGE' is already named under quasi_identifiers as 'age', which Spark does not tell apart"],
    ),
    "name of a working column": (
        minimal(
            columns={
                "quasi_identifiers": ["Anonlib order"],
                "sensitive": "anonlib coded",
                "other": ["x", "anonlib packed"],
            }
        ),
        [
            "columns.quasi_identifiers: 'Anonlib order': names that begin with 'anonlib '",
            "columns.sensitive: 'anonlib coded'",
            "columns.other: 'anonlib packed'",
            "rename it",
        ],
    ),
    "reserved name": (
        minimal(columns={"quasi_identifiers": ["Bucket_ID"], "sensitive": "count"}),
        [
            "columns.quasi_identifiers: 'Bucket_ID' is a column that the release adds",
            "columns.sensitive: 'count'",
            "rename it",
        ],
    ),
    "list that is none": (
        minimal(columns={"quasi_identifiers": ["a"], "sensitive": "b", "other": "zip"}),
        ["other: 'zip' is not a list"],
    ),
    "two sensitive columns": (
        minimal(columns={"quasi_identifiers": ["age"], "sensitive": ["job", "pay"]}),
        ["columns.sensitive: anatomy protects 1 sensitive column, and 2 are named (job, pay)"],
    ),
    "hierarchy of a number": (
        minimal(
            columns={"quasi_identifiers": [{"name": "a", "type": "numeric", "hierarchy": "h.csv"}], "sensitive": "b"}
        ),
        ["columns.quasi_identifiers[0].hierarchy: h.csv: the hierarchy cannot be read"],
    ),
    "policy": (minimal(missing={"sensitive": "ignore"}), ["missing.sensitive: 'ignore'", "keep, drop, error"]),
    "two methods": (
        minimal(method={"anatomy": {"l": 2}, "bucketize": {}}),
        ["method: 2 are named (anatomy, bucketize)", "exactly one"],
    ),
    "no method": (minimal(method={}), ["method: 0 are named", "anatomy, bucketize"]),
    "bare method": (minimal(method="anatomy"), ["method: 'anatomy' is not a mapping"]),
    "misspelt method": (
        minimal(method={"bucketise": {}}),
        ["method.bucketise: no such method (did you mean bucketize?)"],
    ),
    "unknown parameter": (
        minimal(method={"anatomy": {"l": 3, "k": 1}}),
        ["method.anatomy.k: no such key", "the keys here are l"],
    ),
    "l is text": (minimal(method={"anatomy": {"l": "ten"}}), ["method.anatomy.l: 'ten' is not a whole number"]),
    "l is no promise": (minimal(method={"anatomy": {"l": 1}}), ["method.anatomy.l: 1 is too small", "at least 2"]),
    "l is a flag": (minimal(method={"anatomy": {"l": True}}), ["method.anatomy.l: True is not a whole number"]),
    "nothing promised": (with_privacy(), ["method.bucketize.privacy: nothing is promised"]),
    "l and theta": (with_privacy(l=3, theta=2), ["method.bucketize.privacy: theta and l contradict each other"]),
    "theta and default": (with_privacy(default="0.1", theta=2), ["privacy: theta and default contradict each other"]),
    "offset alone": (with_privacy(offset="0.1"), ["privacy.offset: an offset means nothing without theta"]),
    "offset with l": (with_privacy(offset="0.1", l=3), ["privacy.offset: an offset means nothing without theta"]),
    "l and thresholds": (
        with_privacy(l=3, thresholds={"a": "0.1"}),
        ["privacy.l: with thresholds per value", "default: 1/3"],
    ),
    "a float": (with_privacy(theta=0.29), ["privacy.theta: 0.29 is a binary float", 'write it as text, e.g. "0.29"']),
    "not a number": (with_privacy(theta="2%"), ["privacy.theta: '2%' is not a number", "0.02 or 1/13"]),
    "division by zero": (with_privacy(theta="1/0"), ["privacy.theta: '1/0' is not a number"]),
    "a number too long to read": (with_privacy(theta="1e999999999"), ["privacy.theta: '1e999999999' is not a number"]),
    "negative": (with_privacy(theta="-1/2"), ["privacy.theta: -0.5 is negative"]),
    "threshold above 1": (with_privacy(thresholds={"HIV": "1.5"}), ["privacy.thresholds.HIV: 1.5 is not a share"]),
    "threshold of 0": (with_privacy(thresholds={"HIV": 0}), ["privacy.thresholds.HIV: 0 is not a share"]),
    "threshold twice": (
        with_privacy(thresholds={7: "0.1", "7": "0.2"}),
        ["privacy.thresholds.7: this value is named twice"],
    ),
    "threshold of null": (
        with_privacy(thresholds={None: "0.1"}),
        ["privacy.thresholds: an empty value is not the text of a"],
    ),
    "thresholds as a list": (with_privacy(thresholds=["HIV"]), ["privacy.thresholds: ['HIV'] is not a mapping"]),
    "solver": (
        minimal(method={"bucketize": {"privacy": {"l": 2}, "solver": "optimum"}}),
        ["bucketize.solver: 'optimum'", "two_size"],
    ),
    "bucket size": (
        minimal(method={"bucketize": {"privacy": {"l": 2}, "max_bucket_size": "0"}}),
        ["max_bucket_size: 0 is too small"],
    ),
    "time limit": (
        minimal(method={"bucketize": {"privacy": {"l": 2}, "time_limit": 0}}),
        ["time_limit: 0 is not a positive number"],
    ),
    "time limit nobody uses": (
        minimal(method={"bucketize": {"privacy": {"l": 2}, "solver": "two_size", "time_limit": 5}}),
        ["method.bucketize.time_limit: the solver two_size always runs to its end"],
    ),
    "no fake values to choose": (
        minimal(method={"bucketize": {"privacy": {"l": 2}, "avoid_negative_associations": "true"}}),
        ["avoid_negative_associations: there are no fake values to choose"],
    ),
    "mixed companions beside fake values": (
        minimal(method={"bucketize": {"privacy": {"l": 2}, "fake_values": 1, "mix_companions": "true"}}),
        ["method.bucketize.mix_companions: fake values are drawn for long runs of buckets"],
    ),
    "flag": (
        minimal(method={"bucketize": {"privacy": {"l": 2}, "avoid_negative_associations": "yes"}}),
        ["'yes' is neither true"],
    ),
    "key in the open": (
        minimal(random={"key": "00" * 32}),
        ["random.key: write where the key lies, env:NAME or file:PATH"],
    ),
    "audit": (minimal(audit="none"), ["audit: 'none'", "gate, report, off"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_the_key_the_value_and_the_mend(name: str) -> None:
    spec, parts = FAULTS[name]
    message = refusal(copy.deepcopy(spec))
    for part in parts:
        assert part in message
    assert "pydantic" not in message.lower()
    assert "validation error" not in message.lower()


@pytest.mark.parametrize(
    ("solver", "asked", "limit"),
    [
        ("optimal", None, 60.0),
        ("optimal", "7.5", 7.5),
        ("multi_size", None, None),
        ("multi_size", 2, 2.0),
        ("two_size", None, None),
    ],
)
def test_the_time_limit_of_each_solver(solver: str, asked: Any, limit: float | None) -> None:
    method = parse_spec(
        minimal(method={"bucketize": {"privacy": {"l": 2}, "solver": solver, "time_limit": asked}})
    ).method
    assert isinstance(method, Bucketize)
    assert method.time_limit == limit


def test_all_faults_are_told_at_once() -> None:
    message = refusal({**minimal(audit="no", missing={"sensitive": 1}), "output": {"path": ""}})
    assert message.startswith("3 things to mend:\n")
    for path in ("output.path: ''", "missing.sensitive: 1", "audit: 'no'"):
        assert path in message


def test_a_key_written_in_the_spec_is_not_repeated_in_the_message() -> None:
    assert "ab12" not in refusal(minimal(random={"key": "ab12" * 16}))


def test_not_even_a_mapping() -> None:
    assert "is not a mapping" in refusal(["age"])
    assert "an empty value is not a mapping" in refusal(None)


def test_a_frame_needs_no_input_and_no_output() -> None:
    given_ = {key: value for key, value in minimal().items() if key not in ("input", "output")}
    spec = parse_spec(given_, given_frame=True)
    assert (spec.input, spec.output) == (None, None)
    assert isinstance(spec.method, Anatomy)
    with pytest.raises(SpecError, match="input: the table was handed over as a DataFrame"):
        parse_spec(minimal(), given_frame=True)


@pytest.mark.parametrize(
    ("yaml_text", "parts"),
    [
        ("input: {path: a}\ninput: {path: b}\n", ["line 2, column 1", "the key 'input' is written twice"]),
        ("columns:\n  other: [a\n", ["line 3, column 1"]),
        ("a: *missing\n", ["line 1, column 4", "undefined alias"]),
        ("a: 1\n---\nb: 2\n", ["line 2, column 1"]),
        ("? [a, b]\n: 1\n", ["line 1, column 3", "a key must be one word"]),
        ("a: !!python/object:os.system x\n", ["line 1, column 4", "could not determine a constructor"]),
        ("a: \x00\n", ["this is not YAML"]),
        ("", ["an empty value is not a mapping"]),
        ("[" * 5000, ["nested too deep"]),
    ],
)
def test_broken_yaml_says_where(tmp_path: Path, yaml_text: str, parts: list[str]) -> None:
    path = written(tmp_path, yaml_text)
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_a_float_tag_does_not_smuggle_in_a_float(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE.replace("0.29", "!!float 0.29"))
    with pytest.raises(SpecError, match=r"offset: 0\.29 is a binary float"):
        load_spec(path)


def test_a_spec_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"missing\.yaml: the release spec cannot be read"):
        load_spec(tmp_path / "missing.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes("audit: \xe9".encode("latin-1"))
    with pytest.raises(SpecError, match="is not UTF-8 text"):
        load_spec(path)


def test_a_named_hierarchy_is_parsed_with_the_spec(tmp_path: Path) -> None:
    (tmp_path / "country.csv").write_text("FR,Europe,any\nDE,Europe,any\nUS,America,any\n", encoding="utf-8")
    columns = {"quasi_identifiers": [{"name": "country", "hierarchy": "country.csv"}], "sensitive": "job"}
    spec = parse_spec(minimal(columns=columns), base_dir=tmp_path)
    hierarchy = spec.columns.quasi_identifiers[0].hierarchy
    assert hierarchy is not None
    assert hierarchy.leaves == 3
    (tmp_path / "country.csv").write_text("FR,Europe,any\nFR,America,any\n", encoding="utf-8")
    with pytest.raises(
        SpecError, match=r"columns\.quasi_identifiers\[0\]\.hierarchy: .*country\.csv: line 2: the leaf 'FR' is already"
    ):
        parse_spec(minimal(columns=columns), base_dir=tmp_path)
    numeric = {
        "quasi_identifiers": [{"name": "country", "type": "numeric", "hierarchy": hierarchy}],
        "sensitive": "job",
    }
    assert "hierarchy: a numeric column is generalized to ranges and has no hierarchy" in refusal(
        minimal(columns=numeric)
    )


KEY = "dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b"


def test_a_key_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_TEST_KEY", KEY)
    assert resolve_key("env:ANONLIB_TEST_KEY") == bytes.fromhex(KEY)
    (tmp_path / "release.key").write_text(KEY.upper() + "\n", encoding="ascii")
    (tmp_path / "release.key").chmod(0o600)
    assert resolve_key("file:release.key", tmp_path) == bytes.fromhex(KEY)
    assert resolve_key(f"file:{tmp_path / 'release.key'}") == bytes.fromhex(KEY)


def test_a_fresh_key_is_32_bytes_and_new_each_time() -> None:
    keys = {resolve_key(None) for _ in range(50)}
    assert len(keys) == 50
    assert {len(key) for key in keys} == {32}


@pytest.mark.parametrize("content", ["", "abc", "g" * 64, KEY[:-1], KEY + "00", KEY[:32] + " " + KEY[32:]])
def test_a_bad_key_is_refused_without_being_shown(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_TEST_KEY", content)
    with pytest.raises(SpecError) as caught:
        resolve_key("env:ANONLIB_TEST_KEY")
    assert "secrets.token_hex(32)" in str(caught.value)
    assert not content or content not in str(caught.value).replace("secrets.token_hex(32)", "")


def test_a_key_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANONLIB_TEST_KEY", raising=False)
    with pytest.raises(SpecError, match="the environment variable ANONLIB_TEST_KEY is not set; make one with"):
        resolve_key("env:ANONLIB_TEST_KEY")
    with pytest.raises(SpecError, match="cannot be read"):
        resolve_key("file:nothing.key", tmp_path)
    (tmp_path / "binary.key").write_bytes(bytes(range(128, 160)))
    (tmp_path / "binary.key").chmod(0o600)
    with pytest.raises(SpecError, match="it is not text"):
        resolve_key("file:binary.key", tmp_path)
    with pytest.raises(SpecError, match="never the key itself"):
        resolve_key(KEY)
