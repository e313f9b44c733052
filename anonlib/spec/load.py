"""From a YAML file, or from a Python mapping, to one and the same `ReleaseSpec`; every fault as a sentence with its mend."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from anonlib.errors import SpecError
from anonlib.spec.part import Fault, faults_of, without_secrets
from anonlib.spec.release import ReleaseSpec
from anonlib.spec.yaml_text import parse_yaml


def load_spec(path: str | Path, base_dir: str | Path | None = None) -> ReleaseSpec:
    """The release spec in the YAML file at `path`, with `input` and `output` required.

    Relative paths inside it start at the working directory, not at the file; `base_dir` replaces the working directory for
    hierarchy files. Raises SpecError, which begins with the file's path.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError(
            f"{without_secrets(str(path))}: the release spec cannot be read ({error.strerror}); check the path"
        ) from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: the release spec is not UTF-8 text; save it as UTF-8") from None
    try:
        return parse_spec(parse_yaml(text), base_dir)
    except SpecError as error:
        raise SpecError(f"{path}: {without_secrets(str(error))}") from None


def parse_spec(
    mapping: Mapping[str, Any], base_dir: str | Path | None = None, *, given_frame: bool = False
) -> ReleaseSpec:
    """The release spec in a mapping shaped like the YAML file.

    mapping     : scalars may be text or Python values; numbers of a guarantee must not be floats
    base_dir    : where relative hierarchy files start, default the working directory
    given_frame : the caller holds the table as a DataFrame, so `input` must be absent and `output` may be

    Raises SpecError: one sentence, or a list of them, each with key path, value and mend.
    """
    faults = _ends(mapping, given_frame) if isinstance(mapping, Mapping) else []
    try:
        spec = ReleaseSpec.model_validate(mapping, context={"base_dir": None if base_dir is None else str(base_dir)})
    except ValidationError as error:
        raise SpecError(_message(faults + faults_of(error))) from None
    if faults:
        raise SpecError(_message(faults))
    return spec


def _ends(mapping: Mapping[str, Any], given_frame: bool) -> list[Fault]:
    """Faults of `input` and `output`: missing where the caller holds no table, given where he does."""
    if given_frame:
        return (
            [("input", "the table was handed over as a DataFrame; leave this out")]
            if mapping.get("input") is not None
            else []
        )
    needed = {
        "input": "the table to publish, e.g. input: {path: data/census.parquet, format: parquet}",
        "output": "where the release goes, e.g. output: {path: releases/census}",
    }
    return [(key, f"missing; add {mend}") for key, mend in needed.items() if mapping.get(key) is None]


def _message(faults: list[Fault]) -> str:
    """The faults as one sentence, or as a list of them; without secrets."""
    lines = [without_secrets(f"{path}: {sentence}" if path else sentence) for path, sentence in faults]
    return lines[0] if len(lines) == 1 else f"{len(lines)} things to mend:\n  " + "\n  ".join(lines)
