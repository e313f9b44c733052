"""The generalized layout: which columns stand in `microdata/`.

microdata/  one row per published record, dummies among them:
              per numeric quasi-identifier A      A_min, A_max   of A's own type, both inclusive
              per categorical quasi-identifier A  A              array of A's own type: the values it may be, sorted, each once
                                                  A_label        string, the lowest node above them, when A has a hierarchy
              the sensitive columns, unchanged
              ec_id                               bigint, methods with equivalence classes only: records of a class share one box

What is not published: columns named under `other`. Beside the exact sensitive value of the same record, or beside a box that is meant to
hide who it is, an unchanged value singles a person out as surely as a row number, whoever happens to know it. What may be published is
a quasi-identifier, and is then generalized like the others; so methods of this layout refuse `other` (`anonlib.spec.layouts`).

A method fills its `Draft` so (codes and boxes: `anonlib.engine.codes`, `anonlib.engine.boxes`):

    generalized.check_names(qi, {table.sensitive: spark_type}, classes=True)           # before any work
    published = stage(MICRODATA, mixed(decode(...), partitions, by=EC_ID))
    Draft(layout="generalized", tables={MICRODATA: published}, records=MICRODATA,
          roles={MICRODATA: generalized.roles(qi, [table.sensitive], classes=True)},
          quasi_identifiers=generalized.parts(qi), utility={}, ...)      # the audit measures gcp, ail, discernibility

What the audit holds a release to is `guarantee.asked`, numbers as exact text (and `guarantee.also` for further sensitive columns):

    with classes:   k               a class has at least k records
                    distinct_l      at least l sensitive values
                    frequency_l     no value in more than 1/l of it
                    beta            q_i <= (1 + beta) p_i
                    enhanced_beta   q_i <= (1 + min(beta, -ln p_i)) p_i
                    t               EMD <= t, with guarantee.distance and, when hierarchical, guarantee.hierarchy
    without:        l               l matches with l different values
                    beta            psi_i <= (1 + beta) phi_i

p_i, phi_i are shares of the whole table: `ValuePart.count` counts all records after the missing-value policy, the suppressed ones
too; dummies are counted nowhere but in `rows.dummy`. Where the method's parameters hold one of these numbers, or l,
`asked` must say the same. `solver.unit` "classes" with a non-empty `setting` states how many classes there are of each size.

A heterogeneous method stages `evidence={MATCHES: frame}` besides, one row per published record, dummies and all:

    partition  bigint
    record     int         0, 1, ... within the partition
    q0, q1, ...            the record's own codes, as `encode` gives them (of a dummy: those of the record it copies)
    s0         int         its own sensitive code (of a dummy: the one it adds); of a second sensitive column s1 as well
    dummy      boolean
    matches    array<int>  the records of its partition that it matches, itself among them, each once
    assigned   int         the one of them whose sensitive values were published with its box
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.engine.domains import QuasiIdentifier, QuasiIdentifiers
from anonlib.engine.numeric_codes import WHOLE, check_coded, code_of, code_type
from anonlib.engine.relational import DataFrame
from anonlib.engine.statistics import value_text
from anonlib.errors import SpecError
from anonlib.hierarchy import hierarchy_of
from anonlib.release.manifest import Manifest, QuasiIdentifierPart
from anonlib.spec.layouts import EC_ID
from anonlib.sql import quoted

MICRODATA = "microdata"
MATCHES = "matches"


def low_name(attribute: str) -> str:
    """The column of an interval's lower end."""
    return f"{attribute}_min"


def high_name(attribute: str) -> str:
    """The column of an interval's upper end."""
    return f"{attribute}_max"


def label_name(attribute: str) -> str:
    """The column of a set's label."""
    return f"{attribute}_label"


def column_types(attribute: QuasiIdentifierPart) -> dict[str, str]:
    """{published column: Spark type} of one quasi-identifier."""
    if attribute.kind == "numeric":
        return dict.fromkeys((low_name(attribute.name), high_name(attribute.name)), attribute.type)
    label = {label_name(attribute.name): "string"} if attribute.hierarchy else {}
    return {attribute.name: f"array<{attribute.type}>", **label}


def layout(attributes: Sequence[QuasiIdentifierPart], sensitive: Mapping[str, str], classes: bool) -> dict[str, str]:
    """{column of `microdata/`: Spark type}, in order."""
    columns: dict[str, str] = {}
    for attribute in attributes:
        columns |= column_types(attribute)
    return columns | dict(sensitive) | ({EC_ID: "bigint"} if classes else {})


def check_names(quasi_identifiers: QuasiIdentifiers, sensitive: Mapping[str, str], classes: bool) -> None:
    """Raises SpecError when two published columns would have one name, as Spark compares names."""
    of: dict[str, str] = {}
    columns = [(name, part.name) for part in parts(quasi_identifiers) for name in column_types(part)]
    columns += [(name, name) for name in (*sensitive, *([EC_ID] if classes else []))]
    for published, source in columns:
        other = of.setdefault(published.lower(), source)
        if other != source:
            raise SpecError(
                f"columns: {source!r} and {other!r} would both be published as {published!r}; rename one of them in the input "
                "(a view will do)"
            )


def roles(quasi_identifiers: QuasiIdentifiers, sensitive: Sequence[str], classes: bool) -> dict[str, str]:
    """{column of `microdata/`: its role in the manifest}."""
    columns: dict[str, str] = {}
    for part in parts(quasi_identifiers):
        if part.kind == "numeric":
            columns |= {low_name(part.name): "quasi_identifier_min", high_name(part.name): "quasi_identifier_max"}
        else:
            columns[part.name] = "quasi_identifier_set"
            if part.hierarchy:
                columns[label_name(part.name)] = "quasi_identifier_label"
    return columns | dict.fromkeys(sensitive, "sensitive") | ({EC_ID: EC_ID} if classes else {})


def parts(quasi_identifiers: QuasiIdentifiers) -> tuple[QuasiIdentifierPart, ...]:
    """The quasi-identifiers as the manifest states them."""
    return tuple(_part(column) for column in quasi_identifiers.columns)


def quasi_identifiers(manifest: Manifest) -> QuasiIdentifiers:
    """The inverse of `parts`: the quasi-identifiers of a release, from its manifest. Raises SpecError for a hierarchy that is
    none, or a numeric one of a type without codes."""
    return QuasiIdentifiers(tuple(_column(part) for part in manifest.quasi_identifiers))


def boxes(frame: DataFrame, manifest: Manifest, labels: bool = False) -> dict[str, str]:
    """{column: SQL over `microdata/`} that gives published records as `anonlib.queries.boxes` reads them.

    Per quasi-identifier qI_lo and qI_hi (codes), or qI_set (array of text) and with `labels` qI_label; s0, s1, ... the sensitive values
    as text; ec_id where the release has classes.
    """
    columns: dict[str, str] = {}
    for i, part in enumerate(manifest.quasi_identifiers):
        if part.kind == "numeric":
            columns |= {f"q{i}_lo": column_codes(part)["low"], f"q{i}_hi": column_codes(part)["high"]}
        else:
            columns[f"q{i}_set"] = _texts_of(quoted(part.name), part.type)
            if labels and part.hierarchy:
                columns[f"q{i}_label"] = quoted(label_name(part.name))
    kinds = dict(frame.dtypes)
    for i, name in enumerate(sensitive_columns(manifest)):
        columns[f"s{i}"] = value_text(name, kinds[name])
    return columns | ({EC_ID: quoted(EC_ID)} if has_classes(manifest) else {})


def _texts_of(array: str, spark_type: str) -> str:
    """SQL: the elements of an array as `value_text` tells them. Plain casts are compiled; a function of each element is interpreted."""
    if spark_type == "string":
        return array
    if spark_type in WHOLE:
        return f"CAST({array} AS ARRAY<STRING>)"
    return f"transform({array}, e -> {value_text('e', spark_type)})"


def column_codes(part: QuasiIdentifierPart) -> dict[str, str]:
    """SQL: the ends of a numeric quasi-identifier's interval as codes, `low` and `high`."""
    return {"low": code_of(low_name(part.name), part.type), "high": code_of(high_name(part.name), part.type)}


def domain_ends(part: QuasiIdentifierPart) -> tuple[Any, Any]:
    """The ends of a numeric domain as codes: ints, floats for floating columns."""
    read: Any = float if code_type(part.type) == "double" else int
    return read(part.low or 0), read(part.high or 0)


def records_per_row(manifest: Manifest) -> float:
    """How many records of the table a published row stands for on average: dummies count for none, suppressed records for one more."""
    rows = manifest.rows
    return (rows.published + rows.suppressed) / max(1, rows.published + rows.dummy)


def has_classes(manifest: Manifest) -> bool:
    """Whether records stand in equivalence classes; else each has a box of its own."""
    return any(column.role == EC_ID for column in manifest.tables[MICRODATA].columns)


def sensitive_columns(manifest: Manifest) -> list[str]:
    """The sensitive columns, in the order of their guarantees."""
    return [manifest.guarantee.sensitive, *(part.sensitive for part in manifest.guarantee.also)]


def _column(part: QuasiIdentifierPart) -> QuasiIdentifier:
    if part.kind == "numeric":
        check_coded(part.name, part.type)
        low, high = domain_ends(part)
        return QuasiIdentifier(part.name, part.type, NumericDomain(part.name, float(low), float(high)), low, high)
    if part.hierarchy:
        tree = hierarchy_of(part.hierarchy)
        domain = CategoricalDomain(part.name, tree.labels[: tree.leaves], tree)
    else:
        domain = CategoricalDomain(part.name, tuple(part.values))
    return QuasiIdentifier(part.name, part.type, domain)


def _part(column: QuasiIdentifier) -> QuasiIdentifierPart:
    domain = column.domain
    if not isinstance(domain, CategoricalDomain):
        return QuasiIdentifierPart(
            name=column.name, kind="numeric", type=column.spark_type, low=_text(column.low), high=_text(column.high)
        )
    if domain.hierarchy is not None:
        return QuasiIdentifierPart(
            name=column.name, kind="categorical", type=column.spark_type, hierarchy=domain.hierarchy.rows
        )
    return QuasiIdentifierPart(name=column.name, kind="categorical", type=column.spark_type, values=list(domain.values))


def _text(code: int | float | None) -> str:
    return repr(code)
