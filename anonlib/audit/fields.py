"""The fields of a manifest that no other check recomputes: known names, and values with no room for anything but what they are for.

Pure. pydantic refuses an unknown field when a manifest is opened; what it cannot know is what may stand in an open mapping (a method's
parameters, a solver's details, the utility) or in a line of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from anonlib.audit.verdict import Check
from anonlib.errors import SpecError
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.spec.methods import read_method
from anonlib.spec.part import Faults

DETAILS = {
    "bucketize": frozenset[str](),
    "anatomy": frozenset[str](),
    "perturb": frozenset(
        {
            "initial_groups",
            "balance",
            "merging",
            "error_bound",
            "error_bound_of_neighbours",
            "error_bound_of_uniform",
            "mean_retention",
            "uniform_retention",
            "count_error",
            "count_error_of_uniform",
        }
    ),
    "heterogeneous": frozenset(
        {
            "partitions",
            "matches.fewest",
            "matches.most",
            "matches.mean",
            "whole_table.matches",
            "whole_table.bucket_size",
            "whole_table.algorithm",
            "remainder",
        }
    ),
    "sabre": frozenset({"buckets", "bound"}),
    "mondrian": frozenset({"partitions"}),
    "nh": frozenset({"partitions"}),
    "burel": frozenset({"partitions", "buckets"}),
    "t_incognito": frozenset({"levels.*", "checked", "choices"}),
}
"""{method: what its solver may tell}: numbers, or a word or two; `*` stands for a quasi-identifier's name."""
UTILITY = frozenset(
    {
        "msbs",
        "gcp",
        "ail",
        "classes",
        "discernibility",
        "mean_retention",
        "uniform_retention",
        "error_bound",
        "uniform_error_bound",
        "count_error",
        "uniform_count_error",
    }
)
_SETTINGS = re.compile(r"spark\.sql\.(files|leafNode)[A-Za-z.]{1,60}")
_AMOUNT = re.compile(r"-?\d{1,20}[a-zA-Z]{0,2}|None|<undefined>")
_VERSION = re.compile(r"\d[\w.+\-]{0,60}")
_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9 _,.:;()+\-*/]{0,80}")
_NUMBER = re.compile(r"-?[0-9./eE+\-]{1,400}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")


def fields(manifest: Manifest) -> Check:
    """Whether every open field of the manifest holds what this library writes there, and nothing more."""
    faults = [*_parameters(manifest), *_details(manifest), *_numbers(manifest.guarantee), *_rest(manifest)]
    return Check.unless(
        faults, "fields of the manifest", "known fields with values of their kind", f"{len(faults):,} others"
    )


def _parameters(manifest: Manifest) -> Iterator[str]:
    """The parameters are ones that a spec can ask for, spelled as this library spells them."""
    name, given = manifest.method.name, manifest.method.parameters
    try:
        known = read_method({name: given}).to_public_dict()
    except (Faults, SpecError, ValueError, TypeError) as problem:
        yield f"method.parameters are not ones of {name!r}: {problem}"
        return
    yield from (
        f"method.parameters.{key} is {value!r}, which {name} reads as {known.get(key)!r}"
        for key, value in given.items()
        if value is not None and not _among(value, known.get(key))
    )


def _among(given: Any, known: Any) -> bool:
    """Whether a parameter is as it is known; one that a later version has besides may be missing."""
    if isinstance(given, Mapping) and isinstance(known, Mapping):
        return all(key in known and _among(value, known[key]) for key, value in given.items())
    return bool(given == known)


def _details(manifest: Manifest) -> Iterator[str]:
    known = DETAILS.get(manifest.method.name, frozenset())
    columns = {part.name for part in manifest.quasi_identifiers}
    for path, value in _leaves(manifest.solver.details):
        first, _, last = path.partition(".")
        if path not in known and not (f"{first}.*" in known and last in columns):
            yield f"solver.details.{path[:60]} is no detail that {manifest.method.name} tells"
        elif not (
            value is None or isinstance(value, (int, float)) or (isinstance(value, str) and _WORDS.fullmatch(value))
        ):
            yield f"solver.details.{path} is neither a number nor a word"


def _leaves(details: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in details.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield above + str(key), value


def _numbers(part: GuaranteePart) -> Iterator[str]:
    for name, numbers in (("asked", part.asked), ("achieved", part.achieved)):
        yield from (
            f"guarantee.{name}.{key[:60]} is no number of a guarantee"
            for key, value in numbers.items()
            if not (_NAME.fullmatch(key) and (_NUMBER.fullmatch(value) or _NAME.fullmatch(value)))
        )
    for also in part.also:
        yield from _numbers(also)


def _rest(manifest: Manifest) -> Iterator[str]:
    lines = {"anonlib_version": manifest.anonlib_version, "spark_version": manifest.spark_version}
    yield from (f"{name} is no version" for name, line in lines.items() if not _VERSION.fullmatch(line))
    solver = manifest.solver
    words = {"solver.name": solver.name, "solver.status": solver.status, "solver.unit": solver.unit}
    yield from (f"{name} is not a few words" for name, line in words.items() if not _WORDS.fullmatch(line))
    yield from (f"utility.{name[:60]} is no measure" for name in manifest.utility if name not in UTILITY)
    handling = ("keep", "drop", "error")
    if set(manifest.missing) - {"quasi_identifiers", "sensitive"} or set(manifest.missing.values()) - set(handling):
        yield "missing is no policy on missing values"
    splits = manifest.splits
    for name, value in splits.settings.items():
        if not _SETTINGS.fullmatch(name) or not _AMOUNT.fullmatch(value):
            yield f"splits.settings.{name[:60]} is no setting that cuts an input"
    if not re.fullmatch(r"([0-9a-f]{32})?", splits.key_tag):
        yield "splits.key_tag is no tag of a key"
    if set(manifest.files) - set(manifest.tables):
        yield "files names a table that the release does not have"
    for name, part in manifest.tables.items():
        if part.path != name:
            yield f"tables.{name}.path is {part.path!r}"
