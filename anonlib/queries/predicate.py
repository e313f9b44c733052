"""The condition of a count query: parsed, checked word by word, split at the sensitive column, and written anew.

What may stand in it: comparisons of a column with a literal, BETWEEN, IN with literals, IN NODE with a node of the column's
hierarchy, IS [NOT] NULL, AND, OR, NOT, parentheses, TRUE and FALSE. Everything else is refused by name. The user's text is never
pasted into a query: Spark SQL is generated from the parsed tree, with quoted identifiers and with strings spelled in hexadecimal.

A release tells of the two sides of a record apart (quasi-identifiers and other columns in one table, sensitive values in the
other), so a predicate must fall into a part on each side that are joined by AND.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import sqlglot
from sqlglot import TokenType, exp

from anonlib.errors import SpecError
from anonlib.sql import literal, quoted

TRUE = "TRUE"
MAX_LENGTH = 1_000_000
Node = Any
"""A node of sqlglot's tree; the class it derives from differs between sqlglot versions."""
_COMPARISONS: dict[Any, tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
    exp.NullSafeEQ: ("<=>", "<=>"),
}
"""Operator, and the operator with its sides exchanged."""
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
Hierarchies = Mapping[str, Sequence[Sequence[str]]]
"""{column: the rows of its hierarchy, leaf to root}."""
_NODE = "anonlib_node"
"""The function that IN NODE 'x' is read as, until its leaves stand in its place."""
_ALLOWED = (
    "comparisons with literals, BETWEEN, IN (literals), IN NODE 'node', LIKE 'beginning%', IS [NOT] NULL, AND, OR, NOT"
)


@dataclass(frozen=True)
class Predicate:
    """A condition as Spark SQL in two parts joined by AND; "TRUE" where nothing is asked.

    visible   : on the columns of `qit` (quasi-identifiers and others)
    sensitive : on the sensitive column
    parts     : the visible part again, by the columns that its conditions read: AND joins them
    """

    visible: str = TRUE
    sensitive: str = TRUE
    parts: tuple[str, ...] = ()


def parse(
    text: str, columns: Mapping[str, str], sensitive: str | Sequence[str], hierarchies: Hierarchies | None = None
) -> Predicate:
    """The predicate that `text` spells, over `columns` (name -> Spark type, the sensitive one, or ones, among them).

    hierarchies : of those columns that have one in the release, whose nodes IN NODE may name

    Names are matched as Spark matches them, without regard to case. Raises SpecError, in a sentence, for text that is no
    condition, an unknown column, anything beyond the allowed forms, a literal that does not suit its column's type, or an OR
    (or NOT) that mixes the sensitive column with others.
    """
    secret = {sensitive} if isinstance(sensitive, str) else set(sensitive)
    visible: list[str] = []
    hidden: list[str] = []
    by_columns: dict[frozenset[str], list[str]] = {}
    for _, part in _read(text, columns, hierarchies or {}):
        asked = part.columns & secret
        if asked and asked != part.columns:
            others = ", ".join(sorted(part.columns - secret))
            raise SpecError(
                f"{part.sql_of_user!r} mixes the sensitive column {min(asked)!r} with {others} under one OR or NOT; a release "
                "tells them apart, so join the two sides by AND at the top level, or ask two queries"
            )
        (hidden if asked else visible).append(part.sql)
        if part.columns and not asked:
            by_columns.setdefault(frozenset(part.columns), []).append(part.sql)
    parts = tuple(" AND ".join(conditions) for conditions in by_columns.values())
    return Predicate(" AND ".join(visible) or TRUE, " AND ".join(hidden) or TRUE, parts)


@dataclass(frozen=True)
class ColumnCondition:
    """What a predicate asks of one column: the conditions that AND joins, as nodes and as Spark SQL over the column's name."""

    nodes: tuple[Node, ...]
    sql: str

    def over(self, variable: str, spark_type: str) -> str:
        """The same condition as Spark SQL over a lambda's variable instead of the column. spark_type : the column's."""
        writer = _Writer({variable: spark_type})
        return " AND ".join(writer.condition(_renamed(node, variable)) for node in self.nodes)


def parse_by_column(
    text: str, columns: Mapping[str, str], hierarchies: Hierarchies | None = None, exact: Collection[str] = ()
) -> dict[str, ColumnCondition] | None:
    """{column: what is asked of it}, for releases that tell each column's possible values apart. None when the predicate is false.

    exact : columns that each row has one value of. As `parse`, but OR and NOT may mix no columns but these; a condition on several of
    them stands under the first of their names, and only its `sql` is of use.
    """
    by_column: dict[str, list[tuple[Node, _Part]]] = {}
    for node, part in _read(text, columns, hierarchies or {}):
        if not part.columns:
            truth = _constant(node)
            if not truth:
                return None
            continue
        if len(part.columns) > 1 and not part.columns <= set(exact):
            raise SpecError(
                f"{part.sql_of_user!r} mixes {' and '.join(sorted(part.columns))} under one OR or NOT; a generalized release says of "
                "each column what it may be, so join conditions on different columns by AND at the top level, or ask two queries"
            )
        by_column.setdefault(min(part.columns), []).append((node, part))
    return {
        column: ColumnCondition(tuple(node for node, _ in parts), " AND ".join(part.sql for _, part in parts))
        for column, parts in by_column.items()
    }


def _constant(node: Node) -> bool:
    """The truth of a condition without columns: TRUE, FALSE, and what NOT, AND and OR make of them."""
    if isinstance(node, exp.Paren):
        return _constant(node.this)
    if isinstance(node, exp.Not):
        return not _constant(node.this)
    if isinstance(node, exp.Or):
        return any(_constant(part) for part in _alternatives(node, exp.Or))
    if isinstance(node, exp.And):
        return all(_constant(part) for part in _alternatives(node, exp.And))
    return bool(node.this)


def _renamed(node: Node, variable: str) -> Node:
    """A copy of the tree with its columns replaced by `variable`."""
    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        column.set("this", exp.to_identifier(variable))
    return copy


def _marked(text: str) -> str:
    """The text with IN NODE 'x' as IN (anonlib_node('x')), which a parser of SQL can read."""
    tokens = sqlglot.tokenize(text, read="spark")
    pieces, copied = [], 0
    for word, node, label in zip(tokens, tokens[1:], tokens[2:], strict=False):
        written = text[node.start : node.end + 1]
        if (word.token_type, label.token_type) == (TokenType.IN, TokenType.STRING) and written.upper() == "NODE":
            pieces += [text[copied : node.start], f"({_NODE}({text[label.start : label.end + 1]}))"]
            copied = label.end + 1
    return "".join([*pieces, text[copied:]])


def _with_leaves(tree: Node, columns: Mapping[str, str], hierarchies: Hierarchies) -> Node:
    """A condition with the leaves of each node that IN NODE names in its place. Raises SpecError for a node that the release has not."""
    names = {name.lower(): name for name in columns}
    for asked in list(tree.find_all(exp.In)):
        (marked,) = asked.expressions if len(asked.expressions) == 1 else (None,)
        if not isinstance(marked, exp.Anonymous) or marked.name != _NODE or not isinstance(asked.this, exp.Column):
            continue
        column, label = names.get(asked.this.name.lower(), asked.this.name), str(marked.expressions[0].this)
        if column not in hierarchies:
            known = f"; it has one of {', '.join(sorted(hierarchies))}" if hierarchies else ""
            raise SpecError(
                f"this release has no hierarchy of {column!r}, so IN NODE cannot be read{known}; write IN (...)"
            )
        rows = hierarchies[column]
        leaves = [row[0] for row in rows if label in row]
        if not leaves:
            close = get_close_matches(label, sorted({node for row in rows for node in row}), n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise SpecError(f"the hierarchy of {column!r} has no node {label!r}{hint}")
        asked.set("expressions", [exp.Literal.string(leaf) for leaf in leaves])
    return tree


def _read(text: str, columns: Mapping[str, str], hierarchies: Hierarchies) -> list[tuple[Node, _Part]]:
    """The conditions that AND joins at the top level, parsed and checked; their trees beside them."""
    if len(text) > MAX_LENGTH:
        raise SpecError(f"the predicate has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    try:
        tree = sqlglot.parse_one(_marked(text), dialect="spark", into=exp.Condition)
        written = [(node, node.sql(dialect="spark")) for node in _conjuncts(tree)]
        _with_leaves(tree, columns, hierarchies)
        return [(node, _Part.of(node, columns, _as_written(said))) for node, said in written]
    except sqlglot.errors.SqlglotError as problem:
        shown = text if len(text) <= 200 else text[:200] + "..."
        faults = getattr(problem, "errors", None)
        detail = faults[0].get("description") if faults else None
        raise SpecError(
            f"{shown!r} is not a condition{f' ({detail})' if detail else ''}; write e.g. "
            "age BETWEEN 30 AND 40 AND country = 'Peru'"
        ) from None
    except RecursionError:
        raise SpecError("the predicate is nested too deeply; write long alternatives as A IN (...)") from None


@dataclass
class _Part:
    """One conjunct: its SQL, the columns it reads, and how the user wrote it."""

    sql: str
    columns: set[str] = field(default_factory=set)
    sql_of_user: str = ""

    @staticmethod
    def of(node: Node, columns: Mapping[str, str], said: str) -> _Part:
        """The conjunct at `node`, which the user wrote as `said`. Raises SpecError for what may not stand in a predicate."""
        writer = _Writer(columns)
        return _Part(writer.condition(node), writer.used, said)


def _as_written(said: str) -> str:
    """IN NODE as its user wrote it."""
    return re.sub(rf"\({_NODE}\(('.*?')\)\)", r"NODE \1", said, flags=re.IGNORECASE)


def _conjuncts(node: Node) -> Iterator[Node]:
    """The conditions that AND joins at the top level, without recursion."""
    waiting = [node]
    while waiting:
        top = waiting.pop()
        if isinstance(top, exp.Paren):
            waiting.append(top.this)
        elif isinstance(top, exp.And):
            waiting += [top.expression, top.this]
        else:
            yield top


def _alternatives(node: Node, kind: Any) -> list[Node]:
    """The operands of a chain of ORs (or ANDs), in order, without recursion."""
    operands: list[Node] = []
    waiting = [node]
    while waiting:
        top = waiting.pop()
        if isinstance(top, kind):
            waiting += [top.expression, top.this]
        else:
            operands.append(top)
    return operands


class _Writer:
    """Writes checked nodes as Spark SQL and notes the columns they read."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = columns
        self.names = {name.lower(): name for name in columns}
        self.used: set[str] = set()

    def condition(self, node: Node) -> str:
        """The condition at `node` as Spark SQL. Raises SpecError for what may not stand in a predicate."""
        if isinstance(node, exp.Paren):
            return self.condition(node.this)
        for kind, word in ((exp.And, " AND "), (exp.Or, " OR ")):
            if isinstance(node, kind):
                return "(" + word.join(self.condition(part) for part in _alternatives(node, kind)) + ")"
        if isinstance(node, exp.Not):
            return f"(NOT {self.condition(node.this)})"
        if isinstance(node, exp.Boolean):
            return "TRUE" if node.this else "FALSE"
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return f"({quoted(self.column(node.this))} IS NULL)"
        if isinstance(node, exp.Between):
            self._only(node, ("this", "low", "high"))
            name = self.column(node.this)
            low, high = self.value(node.args["low"], name), self.value(node.args["high"], name)
            return f"({quoted(name)} BETWEEN {low} AND {high})"
        if isinstance(node, exp.In):
            self._only(node, ("this", "expressions"))
            name = self.column(node.this)
            values = [self.value(item, name) for item in node.expressions]
            if not values:
                raise self._refusal(node)
            return f"({quoted(name)} IN ({', '.join(values)}))"
        if type(node) in _COMPARISONS:
            return self._comparison(node)
        if type(node) is exp.Like:
            return self._prefix(node)
        raise self._refusal(node)

    def _prefix(self, node: Node) -> str:
        """A text column LIKE 'beginning%'."""
        name, pattern = self.column(node.this), node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise self._refusal(node)
        beginning = str(pattern.this)[:-1]
        if not str(pattern.this).endswith("%") or any(sign in beginning for sign in "%_\\"):
            raise SpecError(
                f"{node.sql(dialect='spark')!r}: of patterns only beginnings are read, {name} LIKE 'abc%' without further %, _ or \\"
            )
        if not self.columns[name].startswith(("string", "char", "varchar")):
            raise SpecError(f"the column {name!r} holds {self.columns[name]}; only text begins with something")
        return f"startswith({quoted(name)}, {literal(beginning)})"

    def _comparison(self, node: Node) -> str:
        operator, turned = _COMPARISONS[type(node)]
        left, right = node.this, node.expression
        if not isinstance(left, exp.Column) and isinstance(right, exp.Column):
            left, right, operator = right, left, turned
        name = self.column(left)
        return f"({quoted(name)} {operator} {self.value(right, name)})"

    def column(self, node: Node) -> str:
        """The name of the existing column that a node names. Raises SpecError when there is none, or it is no column."""
        if not isinstance(node, exp.Column):
            raise self._refusal(node)
        if len(node.parts) > 1:
            raise SpecError(
                f"{node.sql(dialect='spark')!r}: write the column's name alone, in backticks if it has a dot"
            )
        name = self.names.get(node.name.lower())
        if name is None:
            raise SpecError(
                f"there is no column {node.name!r} in this release; its columns are {', '.join(self.columns)}"
            )
        self.used.add(name)
        return name

    def value(self, node: Node, column: str) -> str:
        """A literal as SQL of a type that suits the column, so that no row fails or is silently cast."""
        kind = self.columns[column]
        sign = ""
        if isinstance(node, exp.Neg):
            sign, node = "-", node.this
        if isinstance(node, exp.Null):
            raise SpecError(f"a comparison of {column!r} with NULL is never true; write {column} IS NULL")
        if isinstance(node, exp.Concat):
            raise SpecError(
                f'{node.sql(dialect="spark")}: Spark joins adjacent strings; for a quote inside a string write "O\'Hara"'
            )
        if isinstance(node, exp.Boolean) and kind == "boolean" and not sign:
            return "TRUE" if node.this else "FALSE"
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not sign:
            written = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else ""
            return self._moment(node.this.this, column, kind, date_only=written == "DATE", node=node)
        if not isinstance(node, exp.Literal) or (sign and node.is_string):
            raise self._refusal(node)
        return self._plain(sign + str(node.this), node.is_string, column, kind)

    def _plain(self, text: str, is_string: bool, column: str, kind: str) -> str:
        if kind.startswith(NUMERIC):
            if not _NUMBER.fullmatch(text):
                raise SpecError(f"{text!r} is not a number, but the column {column!r} holds {kind}")
            if not math.isfinite(float(text)):
                raise SpecError(f"{text} is beyond every number that a column can hold; leave the condition out")
            return text
        if kind.startswith(("date", "timestamp")) and is_string:
            return self._moment(text, column, kind, date_only=False, node=None)
        if kind.startswith(("string", "char", "varchar")):
            if is_string:
                return literal(text)
            raise SpecError(f"the column {column!r} holds text; write '{text}' in quotes")
        raise SpecError(f"{text!r} cannot be compared with the column {column!r}, which holds {kind}")

    def _moment(self, text: Any, column: str, kind: str, date_only: bool, node: Node | None) -> str:
        if not kind.startswith(("date", "timestamp")):
            if node is not None:
                raise self._refusal(node)
            raise SpecError(f"{text!r} cannot be compared with the column {column!r}, which holds {kind}")
        try:
            if date_only or kind == "date":
                return f"DATE'{datetime.date.fromisoformat(text).isoformat()}'"
            return f"CAST('{datetime.datetime.fromisoformat(text).isoformat(sep=' ')}' AS {kind})"
        except (TypeError, ValueError):
            raise SpecError(f"{text!r} is not a moment for the column {column!r}; write e.g. '2020-01-31'") from None

    def _only(self, node: Node, allowed: tuple[str, ...]) -> None:
        """Refuses forms that sqlglot keeps in further arguments of the same node (a subquery under IN)."""
        if any(argument for name, argument in node.args.items() if name not in allowed and argument):
            raise self._refusal(node)

    def _refusal(self, node: Node) -> SpecError:
        return SpecError(f"{node.sql(dialect='spark')!r} cannot stand in a predicate; what can: {_ALLOWED}")
