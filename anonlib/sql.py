"""Spark SQL text for names and literals, quoted so that no column name or value can change the meaning of a query."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column name as an identifier: backticks doubled inside backticks.

    >>> quoted("a`b c")
    '`a``b c`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(value: str | None) -> str:
    """A string literal that means exactly `value` under every Spark setting (parsed from hexadecimal UTF-8).

    >>> literal("O'Hara")
    "decode(X'4F2748617261','UTF-8')"
    """
    return "CAST(NULL AS STRING)" if value is None else f"decode(X'{value.encode('utf-8').hex().upper()}','UTF-8')"
