"""What a manifest may hold where its format leaves room: names, kinds and sizes of every free field. Pure.

The format itself (`anonlib.release.manifest`) refuses fields that it does not name. What is left are mappings and texts, in which a
linkage of persons to values could be carried out of the house under a promise that says nothing of it. `DETAILS` is the one table to
extend when a method has more to tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anonlib import words
from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.release.manifest import CheckPart, GuaranteePart, Manifest
from anonlib.spec.methods import METHODS, read_method
from anonlib.spec.part import Faults

WORD = re.compile(r"[A-Za-z0-9_'(),. -]{0,60}")
"""A short text of ours: a solver's name, a model, a role."""
NUMBER = re.compile(r"(none|-?\d{1,400}(\.\d{1,400})?(/\d{1,400})?)")
"""A number as exact text. Shares of classes are fractions of counts; gains of shares may have some hundred digits."""
VERSION = re.compile(r"[\w.+-]{1,40}")
SETTING = re.compile(r"\w{1,30}")
KEY_TAG = re.compile(r"([0-9a-f]{32})?")
STREAM_ID = re.compile(r"[0-9a-f]{32}")
CATALOG_NAME = re.compile(r"[\w-]{1,100}\.[\w-]{1,100}\.\w{1,120}", re.ASCII)
TEXT, CHECKS = 2_000, 100
"""Characters of a sentence, and recorded checks, at most."""


@dataclass(frozen=True)
class Kind:
    """What a field may be: one of `types` and, if text, one of `words`."""

    types: tuple[type, ...]
    words: tuple[str, ...] = ()

    def holds(self, value: Any) -> bool:
        """Whether `value` is of this kind. True and False are no numbers, though Python's bool is an int."""
        if isinstance(value, str):
            return value in self.words
        return isinstance(value, self.types) and not isinstance(value, bool)


COUNT, MEASURE = Kind((int,)), Kind((int, float))
Allowed = Mapping[str, Any]
"""{key: Kind, a mapping of the same kind, or LEVELS}."""
LEVELS = "levels"
"""{quasi-identifier: count}."""

DETAILS: dict[str, Allowed] = {
    "bucketize": {},
    "anatomy": {},
    "perturb": {
        "initial_groups": COUNT,
        "balance": COUNT,
        "merging": Kind((), ("search", "neighbours", "whole")),
        "error_bound": MEASURE,
        "error_bound_of_neighbours": MEASURE,
        "error_bound_of_uniform": MEASURE,
        "mean_retention": MEASURE,
        "uniform_retention": MEASURE,
        "count_error": MEASURE,
        "count_error_of_uniform": MEASURE,
    },
    "heterogeneous": {
        "partitions": COUNT,
        "matches": {"fewest": COUNT, "most": COUNT, "mean": MEASURE},
        "whole_table": {
            "pools": COUNT,
            "matches": COUNT,
            "mean_matches": MEASURE,
            "bucket_size": COUNT,
            "algorithm": Kind((), ("l_diversity", "packed", "greedy", "beta_pools", "l_pools", "line_pools")),
        },
        "remainder": Kind((), ("dummy", "suppress")),
    },
    "nh": {"partitions": COUNT},
    "sabre": {
        "buckets": COUNT,
        "bound": MEASURE,
        "partitions": COUNT,
        "sub_buckets": COUNT,
        "of_each": COUNT,
        "rest": COUNT,
        "worst_distance": MEASURE,
    },
    "mondrian": {"partitions": COUNT},
    "burel": {"partitions": COUNT, "buckets": COUNT},
    "t_incognito": {"levels": LEVELS, "checked": COUNT, "choices": COUNT},
}
"""Method -> what `solver.details` may hold, each key optional. A method that is not listed has no details."""

MODELS = {
    "bucketize": words.F_PRIVACY,
    "anatomy": words.F_PRIVACY,
    "perturb": words.RHO_PRIVACY,
    "nh": words.DIVERSE_MATCHES,
    "sabre": words.CLOSENESS,
    "mondrian": words.CLASSES,
    "burel": words.CLASSES,
    "t_incognito": words.CLASSES,
}
"""Method -> what it names its model. Heterogeneous generalization has two, by its parameters, and a stream one of its own; a method that is
not listed has any short text."""

UTILITY = {
    "bucketized": {"msbs"},
    "generalized": {"gcp", "ail", "classes", "discernibility"},
    "perturbed": {
        "mean_retention", "uniform_retention", "error_bound", "uniform_error_bound", "count_error", "uniform_count_error"
    },
}  # fmt: skip
MISSING = {
    "quasi_identifiers": ("error", "drop", "keep"),
    "sensitive": ("error", "drop", "keep"),
    "person": ("error", "drop"),
}
MOST_MARKS, LONGEST_MARK = 50, 100
"""Of `as_missing`: how many texts, and characters of one."""
SPLITS = {
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.leafNodeDefaultParallelism",
}
PROMISES = {
    "bucketized": set[str](),
    "generalized": {"k", "distinct_l", "frequency_l", "l", "beta", "enhanced_beta", "t"},
    "perturbed": {"rho1", "rho2"},
}
"""Layout -> the numbers that may be promised; buckets keep a threshold of each value, and none besides."""


def nothing_else(manifest: Manifest) -> Check:
    """Every free field of the manifest holds what its format has a place for, and nothing else."""
    faults = list(_faults(manifest))
    return Check.unless(
        faults,
        name="the manifest's fields",
        asked="keys, kinds and sizes that the format names",
        achieved="so they are" if not faults else f"{len(faults)} are not",
    )


def recorded(check: Check) -> CheckPart:
    """A check as a manifest records it: values of any length may stand in its texts, of which `TEXT` characters are kept."""
    evidence = None if check.evidence is None else _kept(check.evidence)
    return CheckPart(
        name=check.name,
        passed=check.passed,
        asked=_kept(check.asked),
        achieved=_kept(check.achieved),
        evidence=evidence,
    )


def _kept(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[: TEXT - 3]}..."


def _faults(manifest: Manifest) -> Iterator[str]:
    method, solver = manifest.method, manifest.solver
    yield from _parameters(method.name, method.parameters)
    yield from _details(manifest)
    for where, text, form in (
        ("anonlib_version", manifest.anonlib_version, VERSION),
        ("spark_version", manifest.spark_version, VERSION),
        ("method.name", method.name, WORD),
        ("solver.name", solver.name, WORD),
        ("solver.status", solver.status, WORD),
        ("solver.unit", solver.unit, WORD),
        *((f"role of {c.name!r}", c.role, WORD) for part in manifest.tables.values() for c in part.columns),
    ):
        if not form.fullmatch(text):
            yield f"{where}: {_short(text)}"
    for key, handling in manifest.missing.items():
        if handling not in MISSING.get(key, ()):
            yield f"missing: {_short(key)} is {_short(handling)}"
    if len(manifest.as_missing) > MOST_MARKS or any(not 0 < len(t) <= LONGEST_MARK for t in manifest.as_missing):
        yield "as_missing: too many texts, or one that is too long"
    yield from (f"utility: {_short(key)}" for key in manifest.utility if key not in UTILITY[manifest.layout])
    for key, setting in manifest.splits.settings.items():
        if key not in SPLITS or not SETTING.fullmatch(setting):
            yield f"splits.settings: {_short(key)} is {_short(setting)}"
    if not KEY_TAG.fullmatch(manifest.splits.key_tag):
        yield f"splits.key_tag: {_short(manifest.splits.key_tag)}"
    yield from (f"files: no table {_short(name)}" for name in set(manifest.files) - set(manifest.tables))
    yield from (
        f"tables.{_short(n)}.path is {_short(part.path)}" for n, part in manifest.tables.items() if part.path != n
    )
    yield from (
        f"catalog.{_short(table)}: {_short(name)}"
        for table, name in manifest.catalog.items()
        if table not in manifest.tables or not CATALOG_NAME.fullmatch(name)
    )
    for part in (manifest.guarantee, *manifest.guarantee.also):
        yield from _of_guarantee(part, PROMISES[manifest.layout])
        yield from _of_model(part, manifest)
        yield from _of_values_tree(part, manifest)
    yield from _of_further_columns(manifest)
    yield from _of_unreadable(manifest)
    yield from _of_stream(manifest)
    yield from _of_checks(manifest)


def _parameters(name: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """A known method's parameters are ones that its spec takes, spelled as this library spells them; another's are few, short and flat."""
    if name not in METHODS:
        yield from _flat(parameters)
        return
    try:
        known = read_method({name: dict(parameters)}).to_public_dict()
    except (Faults, AnonlibError, ValueError, TypeError, AttributeError, ArithmeticError) as problem:
        yield f"method.parameters: {_short(str(problem))}"
        return
    yield from (
        f"method.parameters.{_short(key)} is {_short(str(value))}, which {name} reads as {_short(str(known.get(key)))}"
        for key, value in parameters.items()
        if value is not None and not _among(value, known.get(key))
    )


def _flat(parameters: Mapping[str, Any]) -> Iterator[str]:
    if len(parameters) > 30:
        yield f"method.parameters: {len(parameters)} of them"
    for key, value in parameters.items():
        inner = value.values() if isinstance(value, Mapping) and len(value) <= 30 else [value]
        if not all(v is None or isinstance(v, (int, float)) or (isinstance(v, str) and len(v) <= 60) for v in inner):
            yield f"method.parameters: {_short(key)} is {_short(str(value))}"


def _among(stated: Any, known: Any) -> bool:
    """Whether the `stated` value of a parameter is the `known` one; a mapping may lack keys that a later version added."""
    if isinstance(stated, Mapping) and isinstance(known, Mapping):
        return all(key in known and _among(value, known[key]) for key, value in stated.items())
    return str(stated) == str(known)


def _details(manifest: Manifest) -> Iterator[str]:
    names = {part.name for part in manifest.quasi_identifiers}
    yield from _unknown("solver.details", manifest.solver.details, DETAILS.get(manifest.method.name, {}), names)


def _unknown(where: str, held: Mapping[str, Any], allowed: Allowed, names: set[str]) -> Iterator[str]:
    for key, value in held.items():
        kind = allowed.get(key)
        if kind == LEVELS:
            kind = dict.fromkeys(names, COUNT)
        if kind is None:
            yield f"{where}: no place for {_short(key)}"
        elif isinstance(kind, Kind):
            if not kind.holds(value):
                yield f"{where}.{key}: {_short(str(value))}"
        elif isinstance(value, Mapping):
            yield from _unknown(f"{where}.{key}", value, kind, names)
        else:
            yield f"{where}.{key}: {_short(str(value))}"


def _of_model(part: GuaranteePart, manifest: Manifest) -> Iterator[str]:
    method = manifest.method.name
    model = MODELS.get(method)
    if method == "heterogeneous":
        model = words.ALIKE_MATCHES if manifest.method.parameters.get("l") is None else words.DIVERSE_MATCHES
    elif method == "sabre" and manifest.stream is not None:
        model = words.CLOSENESS_IN_WINDOWS
    if part.model != model if model else not WORD.fullmatch(part.model):
        yield f"guarantee.model: {_short(part.model)}" + (f", of {method} it is {model!r}" if model else "")


def _of_values_tree(part: GuaranteePart, manifest: Manifest) -> Iterator[str]:
    """A hierarchy of values, its nodes and the distance along it, where nothing is promised that rests on them: nobody reads them there."""
    bounds_nodes = manifest.method.name in ("bucketize", "heterogeneous") and part is manifest.guarantee
    if part.nodes and not bounds_nodes:
        yield f"guarantee.nodes: {len(part.nodes):,} of them, which {manifest.method.name} has none of"
    if part.hierarchy and not bounds_nodes and part.distance != "hierarchical":
        yield f"guarantee.hierarchy: {len(part.hierarchy):,} rows, on which nothing rests that is promised of {part.sensitive}"
    if part.distance and "t" not in part.asked:
        yield f"guarantee.distance: {part.distance}, and no distance is promised of {part.sensitive}"


def _of_further_columns(manifest: Manifest) -> Iterator[str]:
    """Further sensitive columns have none of their own; sub-tables tell of all columns together, in one part."""
    also = manifest.guarantee.also
    if also and manifest.layout == "perturbed":
        yield f"guarantee.also: {len(also):,} more, and what is promised of all columns stands in one"
    for part in also:
        if part.also:
            yield f"guarantee.also: {_short(part.sensitive)} has {len(part.also):,} more of its own"


def _of_guarantee(part: GuaranteePart, promises: Collection[str]) -> Iterator[str]:
    for name, numbers, known in (("asked", part.asked, promises), ("achieved", part.achieved, part.asked)):
        for key, number in numbers.items():
            if key not in known or not NUMBER.fullmatch(number):
                yield f"guarantee.{name}: {_short(key)} is {_short(number)}"
    for value in part.values:
        for share in (value.threshold, value.achieved):
            if share is not None and not NUMBER.fullmatch(share):
                yield f"guarantee.values: {_short(share)}"
    for node in part.nodes:
        for share in (node.threshold, node.achieved):
            if share is not None and not NUMBER.fullmatch(share):
                yield f"guarantee.nodes: {_short(share)}"


def _of_unreadable(manifest: Manifest) -> Iterator[str]:
    unreadable = manifest.unreadable
    if unreadable is None:
        return
    published = {c.name.lower() for part in manifest.tables.values() for c in part.columns}
    published |= {part.name.lower() for part in manifest.quasi_identifiers}
    published |= {part.sensitive.lower() for part in (manifest.guarantee, *manifest.guarantee.also)}
    for kind, by_column in (("cells", unreadable.cells), ("undecodable", unreadable.undecodable)):
        yield from (
            f"unreadable.{kind}: no column {_short(name)}" for name in by_column if name.lower() not in published
        )
    numbers = (unreadable.lengths, *unreadable.cells.values(), *unreadable.undecodable.values())
    if not all(0 <= number <= unreadable.records for number in numbers):
        yield "unreadable: a count is below 0 or above that of the records"


def _of_stream(manifest: Manifest) -> Iterator[str]:
    stream = manifest.stream
    if stream is None:
        return
    if not STREAM_ID.fullmatch(stream.id):
        yield f"stream.id: {_short(stream.id)}"
    if stream.shard is not None and stream.shard not in {part.name for part in manifest.quasi_identifiers}:
        yield f"stream.shard: no quasi-identifier {_short(stream.shard)}"
    if len(set(stream.values)) < len(stream.values):
        yield "stream.values: a value is told twice"
    told = set(stream.values)
    yield from (
        f"stream.values: {_short(str(v.value))} is not told" for v in manifest.guarantee.values if v.value not in told
    )


def _of_checks(manifest: Manifest) -> Iterator[str]:
    checks = manifest.audit.checks
    if len(checks) > CHECKS:
        yield f"audit.checks: {len(checks):,} of them"
    for check in checks:
        if max(len(t or "") for t in (check.name, check.asked, check.achieved, check.evidence)) > TEXT:
            yield f"audit.checks: {_short(check.name)} is longer than {TEXT:,} characters"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
