"""The sensitive value of a row of `st/` as the manifest knows it, of one column or of two together."""

from __future__ import annotations

from collections.abc import Sequence

from anonlib.engine.compound import parts_of, text_of
from anonlib.engine.relational import DataFrame
from anonlib.engine.tables import types
from anonlib.release.bucketized import sensitive_columns
from anonlib.release.manifest import Manifest


def sensitive_types(st: DataFrame, manifest: Manifest) -> dict[str, str]:
    """{sensitive column of `st`: its Spark type}, in the manifest's order."""
    kinds = types(st)
    return {name: kinds[name] for name in sensitive_columns(manifest)}


def value_of(st: DataFrame, manifest: Manifest) -> str:
    """SQL over `st`: the text of a row's sensitive value, or of its combination, as the manifest writes it."""
    return text_of(sensitive_types(st, manifest))


def parts_of_values(values: Sequence[str | None], columns: int, place: int) -> list[str | None]:
    """The texts of one of `columns` sensitive columns, that at `place`, from the texts of values as the manifest writes them."""
    return [value if columns == 1 or value is None else parts_of(value, columns)[place] for value in values]
