"""YAML whose scalars stay exactly as they are written.

A usual YAML reader turns `0.29` into a nearby binary float, `off` and `NO` into False and `1_000` into a number. Here every
scalar but null stays text, and the typed field it ends in says what it means. A key written twice is an error: a usual
reader keeps the last one in silence.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from anonlib.errors import SpecError


class _TextLoader(yaml.SafeLoader):
    """SafeLoader with null (and the merge key) as the only scalars that are not text, and duplicate keys refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are single words, none written twice."""
        keys: set[Any] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be one word", key_node.start_mark)
            if key_node.value in keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key_node.value!r} is written twice", key_node.start_mark
                )
            keys.add(key_node.value)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """The scalar as it is written."""
        value = super().construct_scalar(node)
        for written, instead in _BRACES.items():
            value = value.replace(instead, written) if isinstance(value, str) else value
        return value


_KEPT = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
_TextLoader.yaml_implicit_resolvers = {
    first: kept
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    if (kept := [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT])
}


_BRACES = {"{date}": "\ue000date\ue001"}
"""What stands for something in braces: YAML itself would not have braces inside `{path: releases/{date}}`."""


def parse_yaml(text: str) -> Any:
    """The mappings, lists and text of one YAML document; None when it is empty.

    Raises SpecError with line and column when it is not YAML, or when a key is written twice.
    """
    for written, instead in _BRACES.items():
        text = text.replace(written, instead)
    try:
        return yaml.load(text, Loader=_TextLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise SpecError(f"{position}{error.problem or error.context}; mend the YAML there") from None
    except yaml.YAMLError as error:
        raise SpecError(f"this is not YAML ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise SpecError("this YAML is nested too deep to be a release spec") from None
