"""The release spec: which table, which columns play which role, which method, and where the release goes.

`anonlib.spec.load` builds it, from YAML and from Python alike. Everything here is frozen once built.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, model_validator

from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.spec.hierarchy_rules import HierarchyRule, read_rule
from anonlib.spec.keys import read_key_reference
from anonlib.spec.layouts import RULES, WORKING
from anonlib.spec.ledger import DATE, Ledger, ledger_faults
from anonlib.spec.method import Method
from anonlib.spec.methods import read_method
from anonlib.spec.part import Fault, Faults, Flag, Part, Text, did_you_mean, fault, listed, read_text, shown
from anonlib.spec.paths import InputPath, OutputPath, read_path
from anonlib.spec.persons import Persons, person_faults
from anonlib.spec.places import nested, overlap
from anonlib.spec.reader_options import is_on, option_faults
from anonlib.spec.stream import Stream
from anonlib.spec.stream_rules import stream_faults
from anonlib.spec.table_names import TableName

ColumnType = Literal["numeric", "categorical"]
Handling = Literal["keep", "drop", "error"]


def read_options(mapping: Any) -> dict[str, str]:
    """{option: its text}; true, false and numbers may come as Python values."""
    if not isinstance(mapping, Mapping):
        raise fault(f"{shown(mapping)} is not a mapping; write the reader's options, e.g. {{header: true}}")
    faults: list[Fault] = []
    options: dict[str, str] = {}
    for key, value in mapping.items():
        if isinstance(value, bool):
            options[str(key)] = "true" if value else "false"
        elif isinstance(value, (str, int, float)):
            options[str(key)] = str(value)
        else:
            faults.append((str(key), f"{shown(value)} is not an option's value; write text, a number, true or false"))
    if faults:
        raise Faults(*faults)
    return options


class Input(Part):
    """The table to publish: a path with its format, or the name of a table in the session's catalog.

    `schema` (here `schema_ddl`) is DDL text, e.g. "age INT, job STRING"; `options` are the Spark reader's own, e.g. {header: true}.
    `unreadable` is what becomes of text that cannot be read as the schema; see `anonlib.engine.reading`.
    """

    path: InputPath | None = None
    format: Literal["parquet", "csv", "json", "orc", "delta", "iceberg", "avro"] = "parquet"
    schema_ddl: Text | None = Field(default=None, alias="schema")
    options: Annotated[dict[str, str], BeforeValidator(read_options)] = Field(default_factory=dict)
    unreadable: Literal["error", "missing", "drop"] = "error"
    table: Text | None = None

    @model_validator(mode="after")
    def _path_or_table(self) -> Input:
        if (self.path is None) == (self.table is None):
            raise fault("give either path (with format) or table, exactly one of the two")
        if self.table is not None:
            unused = [key for name, key in _OF_A_PATH.items() if name in self.model_fields_set]
            if unused:
                raise Faults(
                    *(
                        (key, "a catalog table has its own; leave this out, or give path instead of table")
                        for key in unused
                    )
                )
        faults = [(f"options.{name}", why) for name, why in option_faults(self.format, self.options)]
        if self.unreadable != "error" and self.format not in ("csv", "json"):
            faults.append(("unreadable", f"{self.format} has no cells of text that may not be readable; leave it out"))
        elif self.unreadable != "error":
            faults += [
                (f"options.{name}", f"it refuses what `unreadable: {self.unreadable}` allows; leave one of them out")
                for name in self.options
                if name.lower() == "mode"
            ]
            if self.format == "json" and is_on(self.options, "multiLine"):
                faults.append(
                    (
                        "unreadable",
                        "a JSON of many lines is read whole, and its records are not told apart; write one to a line",
                    )
                )
        if faults:
            raise Faults(*faults)
        return self


_OF_A_PATH = {"format": "format", "schema_ddl": "schema", "options": "options", "unreadable": "unreadable"}


class Output(Part):
    """Where the release goes. `evidence`, outside the release, is for what an audit needs and nobody may publish.

    `table` names its tables in the session's catalog as well, see `anonlib.release.catalog`. `{date}` in a path, or in the name, is the
    day of the run, in UTC.
    """

    path: OutputPath = Field(description="where the release goes, e.g. path: releases/census")
    format: Literal["parquet", "orc", "delta"] = "parquet"
    evidence: OutputPath | None = None
    table: TableName | None = None

    @model_validator(mode="before")
    @classmethod
    def _path_beside_table(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "table" in value and "path" not in value:
            raise fault(
                "a release is a folder, whose manifest says what its tables are, and the catalog's tables read the files there; give path "
                "too, e.g. output: {path: releases/census, table: main.census.survey}",
                at="table",
            )
        return value

    @model_validator(mode="after")
    def _both_of_a_day(self) -> Output:
        if self.table is not None and (DATE in self.path) != (DATE in self.table):
            raise fault(
                f"{DATE} is in only one of path and table, so two days would meet in the other; write it in both, or in neither",
                at="table",
            )
        return self

    @model_validator(mode="after")
    def _evidence_outside(self) -> Output:
        if self.evidence is not None and nested(self.evidence, self.path):
            raise fault(
                f"{shown(self.evidence)} and the release at {shown(self.path)} overlap; keep evidence outside the release",
                at="evidence",
            )
        return self


class Column(Part):
    """A column with its type; `categorical` when no type is given."""

    name: Text = Field(description="the column's name")
    type: ColumnType = "categorical"


def read_hierarchy_file(value: Any, info: ValidationInfo) -> Hierarchy | HierarchyRule | None:
    """The parsed hierarchy of a CSV path, or the rule of a mapping; a relative path starts at the working directory (or the
    base_dir given)."""
    if value is None or isinstance(value, (Hierarchy, HierarchyRule)):
        return value
    if isinstance(value, Mapping):
        return read_rule(value)
    base_dir = (info.context or {}).get("base_dir")
    try:
        return read_hierarchy(os.path.join(base_dir or "", read_path(value)))
    except SpecError as error:
        raise fault(str(error)) from None


class ColumnWithHierarchy(Column):
    """A column whose values may stand under a generalization hierarchy: a CSV path in the spec, parsed here, or a rule that makes one."""

    hierarchy: Annotated[Hierarchy | HierarchyRule | None, BeforeValidator(read_hierarchy_file)] = None

    def hierarchy_over(self, values: Sequence[str]) -> Hierarchy | None:
        """The hierarchy of the texts `values`: the file's, whatever they are, or the one that the rule makes. Raises SpecError."""
        return self.hierarchy.over(values) if isinstance(self.hierarchy, HierarchyRule) else self.hierarchy

    @property
    def told_hierarchy(self) -> Hierarchy | None:
        """The hierarchy of a file, whose leaves are known before the table is; None of a rule."""
        return None if isinstance(self.hierarchy, HierarchyRule) else self.hierarchy

    @model_validator(mode="after")
    def _hierarchy_of_categories(self) -> ColumnWithHierarchy:
        if self.hierarchy is not None and self.type == "numeric":
            raise fault(
                "a numeric column is generalized to ranges and has no hierarchy; leave it out, or write type: categorical",
                at="hierarchy",
            )
        return self


class QuasiIdentifier(ColumnWithHierarchy):
    """A column that an adversary may know of a person."""


class Sensitive(ColumnWithHierarchy):
    """A column that nobody may infer of a person. Its hierarchy says which values are close, for the methods that ask."""


def _listed_columns(value: Any) -> list[Any]:
    """A bare name stands for a categorical column of that name."""
    if not isinstance(value, (list, tuple)):
        raise fault(f"{shown(value)} is not a list of columns; write e.g. [{{name: age, type: numeric}}, country]")
    if not value:
        raise fault("the list is empty; name at least one column")
    return [{"name": item} if isinstance(item, str) else item for item in value]


def _one_or_more(value: Any) -> list[Any]:
    """One column, or a list of them, as a list."""
    return _listed_columns([value] if isinstance(value, (str, Mapping, Column)) else value)


def _names(value: Any) -> list[Any]:
    """A list of column names."""
    if not isinstance(value, (list, tuple)):
        raise fault(f"{shown(value)} is not a list of column names; write e.g. [name, ssn]")
    return list(value)


def _name_or_names(value: Any) -> list[Any]:
    """One column name, or a list of them, as a list."""
    return _names([value] if isinstance(value, str) else value)


def _identifiers(value: Any) -> tuple[str, ...] | Literal["rest"]:
    """A list of column names, or `rest`."""
    if value == "rest":
        return "rest"
    if not isinstance(value, (list, tuple)):
        raise fault(
            f"{shown(value)} is not a list of column names; write e.g. [name, ssn], or rest for all that are not named elsewhere"
        )
    faults: list[Fault] = []
    for i, name in enumerate(value):
        try:
            read_text(name)
        except Faults as problem:
            faults.append((f"[{i}]", str(problem)))
    if faults:
        raise Faults(*faults)
    return tuple(value)


Names = Annotated[tuple[Text, ...], BeforeValidator(_names)]
NameOrNames = Annotated[tuple[Text, ...], BeforeValidator(_name_or_names)]
WITHHELD = ("identifiers", "person")
"""Roles of columns that are never published."""


class Columns(Part):
    """Every column of the input in exactly one role; names are compared as Spark compares them, without regard to case.

    quasi_identifiers : what an adversary may know of a person; published
    sensitive         : what nobody may infer of a person; published by the method's rules
    identifiers       : never published; "rest" for all columns that are named nowhere else
    other             : published unchanged beside the quasi-identifiers, and so known to everybody
    person            : whose record it is, one column or several together; never published
    """

    quasi_identifiers: Annotated[tuple[QuasiIdentifier, ...], BeforeValidator(_listed_columns)] = Field(
        description="the columns an adversary may know, e.g. [{name: age, type: numeric}, country]"
    )
    sensitive: Annotated[tuple[Sensitive, ...], BeforeValidator(_one_or_more)] = Field(
        description="the column nobody may infer, e.g. {name: occupation, type: categorical}"
    )
    identifiers: Annotated[tuple[str, ...] | Literal["rest"], PlainValidator(_identifiers)] = ()
    other: Names = ()
    person: NameOrNames = ()

    @model_validator(mode="after")
    def _once_each(self) -> Columns:
        faults: list[Fault] = []
        named: dict[str, tuple[str, str]] = {}
        for role, name in self.roles():
            if name.lower() in named:
                earlier_role, earlier = named[name.lower()]
                same = "" if name == earlier else f" as {earlier!r}, which Spark does not tell apart"
                faults.append(
                    (
                        role,
                        f"{name!r} is already named under {earlier_role}{same}; name each column once, in its one role",
                    )
                )
            named[name.lower()] = (role, name)
        if faults:
            raise Faults(*faults)
        return self

    def roles(self) -> Iterator[tuple[str, str]]:
        """(role, column name) of every named column, in the spec's order."""
        yield from (("quasi_identifiers", column.name) for column in self.quasi_identifiers)
        yield from (("sensitive", column.name) for column in self.sensitive)
        if not self.withholds_rest:
            yield from (("identifiers", name) for name in self.identifiers)
        yield from (("other", name) for name in self.other)
        yield from (("person", name) for name in self.person)

    def to_public_dict(self) -> dict[str, Any]:
        """The published columns with their roles and types; what is withheld and hierarchy files are left out."""
        return {
            "quasi_identifiers": [{"name": column.name, "type": column.type} for column in self.quasi_identifiers],
            "sensitive": [{"name": column.name, "type": column.type} for column in self.sensitive],
            "other": list(self.other),
        }

    @property
    def quasi_identifier_names(self) -> tuple[str, ...]:
        """The names of the quasi-identifiers, in the spec's order."""
        return tuple(column.name for column in self.quasi_identifiers)

    @property
    def sensitive_names(self) -> tuple[str, ...]:
        """The names of the sensitive columns, in the spec's order."""
        return tuple(column.name for column in self.sensitive)

    @property
    def withholds_rest(self) -> bool:
        """Whether columns that are named nowhere are withheld; else one is an error."""
        return self.identifiers == "rest"

    @property
    def may_be_missing(self) -> tuple[str, ...]:
        """The columns that `missing` has a policy for."""
        return tuple(name for role, name in self.roles() if role in ("quasi_identifiers", "sensitive", "person"))

    @property
    def all_names(self) -> tuple[str, ...]:
        """Every named column; a column of the input that is not among them is an error."""
        return tuple(name for _, name in self.roles())


def read_texts(value: Any) -> tuple[str, ...]:
    """A list of texts that are not empty, each once; a whole number may come as an int."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise fault(f'{shown(value)} is not a list; write the texts that stand for a missing value, e.g. ["?", NA, -9]')
    texts = [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in value]
    faults = [
        (f"[{i}]", f"{shown(item)} is no text; write what stands in the cells, in quotes (of an empty cell: {_EMPTY})")
        for i, item in enumerate(texts)
        if not isinstance(item, str) or not item
    ]
    if faults:
        raise Faults(*faults)
    if len(texts) > MOST_TEXTS or max(map(len, texts), default=0) > LONGEST_TEXT:
        raise fault(
            f"these are more than {MOST_TEXTS} texts, or one is longer than {LONGEST_TEXT} characters; mend them in a view"
        )
    if doubled := [text for text in texts if texts.count(text) > 1]:
        raise fault(f"{doubled[0]!r} is named twice; keep one")
    return tuple(texts)


MOST_TEXTS, LONGEST_TEXT = 50, 100
"""What `as_missing` takes: a manifest repeats it."""
_EMPTY = "input.options: {nullValue: ''} for a CSV, else a view"


class Missing(Part):
    """What happens to a record with a null or NaN: kept (as a value of its own), dropped (and counted), or refused.

    person     : a record of nobody cannot be kept
    as_missing : values of quasi-identifiers, sensitive and person columns that are read as null, e.g. ("?", "NA", "-9")
    """

    quasi_identifiers: Handling = "keep"
    sensitive: Handling = "error"
    person: Literal["drop", "error"] = "error"
    as_missing: Annotated[tuple[str, ...], BeforeValidator(read_texts)] = ()


class Random(Part):
    """Where the release key lies ("env:NAME" or "file:PATH"); None for a fresh key. See `anonlib.spec.keys.resolve_key`.

    Whatever is written here by mistake may be the key, so no message about this part repeats it.
    """

    key: Annotated[str | None, BeforeValidator(lambda value: None if value is None else read_key_reference(value))] = (
        None
    )
    allow_open_key_file: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise fault(
                "this is not a mapping; write where the key lies, e.g. random: {key: env:ANONLIB_KEY}, or leave random out for a fresh key"
            )
        unknown = [key for key in value if key not in cls.model_fields]
        if unknown:
            near = did_you_mean(unknown[0], cls.model_fields)
            raise fault(
                f"{len(unknown)} of the keys here do not exist{near}, and are not repeated, since they may be secret; the keys here are "
                f"{listed(cls.keys())}"
            )
        return dict(value)


class ReleaseSpec(Part):
    """One release as asked for. `input` or `output` is None only when Python handed over a DataFrame, or keeps no release."""

    input: Input | None = None
    output: Output | None = None
    columns: Columns = Field(description="the role of every column: quasi_identifiers, sensitive, identifiers, other")
    persons: Persons = Field(default_factory=Persons)
    ledger: Ledger | None = None
    missing: Missing = Field(default_factory=Missing)
    method: Annotated[Method, BeforeValidator(read_method)] = Field(
        description="exactly one method with its parameters, e.g. bucketize: {privacy: {theta: 8, offset: 0.02}}"
    )
    random: Random = Field(default_factory=Random)
    audit: Literal["gate", "report", "off"] = "gate"
    stream: Stream | None = None

    @model_validator(mode="after")
    def _parts_agree(self) -> ReleaseSpec:
        faults: list[Fault] = []
        method, names = self.method, self.columns.sensitive_names
        layout = RULES[method.layout]
        if len(names) > method.sensitive_columns:
            most = method.sensitive_columns
            columns = f"{most} sensitive column{'s' if most > 1 else ''}"
            few = f"{method.name} protects {columns}, and {len(names)} are named ({', '.join(names)})"
            kept = "one" if most == 1 else str(most)
            faults.append(("columns.sensitive", f"{few}; keep {kept}, and withhold the others as identifiers"))
        faults += [
            (f"method.{method.name}.{key}", why)
            for key, why in method.columns_faults(self.columns.sensitive, self.ledger is not None)
        ]
        faults += [
            (
                f"columns.{role}",
                f"{name!r} is a column that the release adds itself; rename it in the input (a view will do)",
            )
            for role, name in self.columns.roles()
            if role not in WITHHELD and name.lower() in layout.reserved
        ]
        faults += [
            (
                f"columns.{role}",
                f"{name!r}: names that begin with {WORKING!r} are kept for columns that a run works with; rename it in the input (a view "
                "will do)",
            )
            for role, name in self.columns.roles()
            if role not in WITHHELD and name.lower().startswith(WORKING)
        ]
        if not layout.publishes_other:
            faults += [
                (
                    "columns.other",
                    f"{name!r} would stand unchanged beside generalized columns, where it singles its person out; name it under "
                    "quasi_identifiers, and it is generalized too, or under identifiers, and it is withheld",
                )
                for name in self.columns.other
            ]
        if not method.reads_hierarchy:
            faults += [
                ("columns.sensitive", f"{method.name} makes no use of the hierarchy of {column.name!r}; leave it out")
                for column in self.columns.sensitive
                if column.hierarchy is not None
            ]
        elif method.bounds_nodes and len(names) > 1:
            faults += [
                (
                    "columns.sensitive",
                    f"with two sensitive columns {method.name} makes no use of a hierarchy; leave that of {c.name!r} out",
                )
                for c in self.columns.sensitive
                if c.hierarchy is not None
            ]
        else:
            first = self.columns.sensitive[0]
            if method.bounds_nodes and isinstance(first.hierarchy, HierarchyRule):
                why = f"{method.name} bounds nodes that are known before the table is; name a CSV file, or leave the hierarchy out"
                faults.append(("columns.sensitive", why))
            told = first.told_hierarchy
            faults += [(f"method.{method.name}.{key}", why) for key, why in method.hierarchy_faults(told)]
        faults += person_faults(self.columns, self.persons, "persons" in self.model_fields_set)
        faults += ledger_faults(self)
        if "person" in self.missing.model_fields_set and not self.columns.person:
            faults.append(("missing.person", "columns.person names nobody; leave this out, or name the column there"))
        if method.threshold_of_missing is not None and self.missing.sensitive != "keep":
            faults.append(
                (
                    f"method.{method.name}.privacy.missing",
                    "no missing value is published; leave it out, or write missing: {sensitive: keep}",
                )
            )
        if self.output is not None:
            if self.output.evidence is not None and not method.leaves_evidence:
                faults.append(
                    ("output.evidence", f"{method.name} leaves no evidence beside the release; leave this out")
                )
            source = self.input.path if self.input is not None else None
            for key, written in (("path", self.output.path), ("evidence", self.output.evidence)):
                if source is not None and written is not None and overlap(source, written):
                    faults.append(
                        (
                            f"output.{key}",
                            f"{shown(written)} overlaps with the input at {shown(source)}; publish elsewhere",
                        )
                    )
        if self.stream is not None:
            faults += stream_faults(self.stream, self)
        if faults:
            raise Faults(*faults)
        return self

    @property
    def used_columns(self) -> list[str]:
        """The columns that a run looks at, which must be readable: those that may be published, and what tells and orders persons."""
        order = (self.persons.order or "").lower()
        names = [name for role, name in self.columns.roles() if role != "identifiers" or name.lower() == order]
        unnamed = [] if self.persons.order is None or order in map(str.lower, names) else [self.persons.order]
        return [*names, *unnamed]

    def public_missing(self) -> dict[str, str]:
        """The missing-value policy as a manifest states it: of persons only where the spec names them."""
        policy = self.missing.to_public_dict()
        return {
            part: how
            for part, how in policy.items()
            if part != "as_missing" and (part != "person" or self.columns.person)
        }

    def to_public_dict(self) -> dict[str, Any]:
        """What a manifest may say of the spec: roles, policies and the method's parameters as exact text; no path, no key."""
        return {
            "columns": self.columns.to_public_dict(),
            "missing": self.public_missing(),
            "method": {"name": self.method.name, "parameters": self.method.to_public_dict()},
            "audit": self.audit,
        }
