"""The audit of a generalized release: every promise of its manifest, recomputed from the published table.

With equivalence classes everything promised can be seen there. Without, the promise lives in the graph of matches, which is not published:
it is checked while the method's evidence is at hand (before publication, or from `output.evidence`), and an audit of the published
table alone sees the rest: form, domains, conservation, utility, and with the original the distribution and the coverage of boxes.

Cost: `microdata` is read about five times; (class, sensitive value) counts are shuffled once per sensitive column; see the modules
`generalized_boxes`, `generalized_classes`, `generalized_evidence` and `generalized_original` for theirs. The driver gets O(m) rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from anonlib.audit import generalized_evidence as graph
from anonlib.audit import generalized_promises as promises
from anonlib.audit.generalized_boxes import BoxFacts, scan_boxes
from anonlib.audit.generalized_classes import ClassFacts, scan_classes
from anonlib.audit.generalized_closeness import Distance, distance_of
from anonlib.audit.generalized_original import compare
from anonlib.audit.manifest import rows_add_up
from anonlib.audit.published import column_faults, contents, fresh_salt, no_row_numbers
from anonlib.audit.verdict import Check, Verdict
from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.engine.statistics import value_text
from anonlib.errors import AnonlibError
from anonlib.hierarchy import hierarchy_of
from anonlib.release import generalized
from anonlib.release.generalized import MATCHES, MICRODATA
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.spec.release import Columns


def audit(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame | None = None,
    columns: Columns | None = None,
    *,
    staged: bool = False,
    evidence: Mapping[str, DataFrame] | None = None,
) -> Verdict:
    """Whether the release keeps what its manifest promises.

    tables   : the published tables, "microdata"
    original : the input after the missing-value policy; with it, domains, distribution and the coverage of boxes are compared too
    columns  : the roles of the original's columns, as the spec gave them; checked against what was published
    staged   : the manifest is still to be completed: what it lacks is measured, not missed
    evidence : "matches", the graph behind a release without classes

    Never raises on a bad release: it returns a verdict that failed.
    """
    parts = [manifest.guarantee, *manifest.guarantee.also]
    classes = MICRODATA in manifest.tables and generalized.has_classes(manifest)
    checks = [rows_add_up(manifest), *(_values_add_up(manifest, part) for part in parts)]
    checks += [_schema(tables, manifest, columns), *(_readable(part, classes) for part in parts)]
    if not all(check.passed for check in checks):
        return Verdict(tuple(checks))
    microdata = tables[MICRODATA]
    checks += [promises.follow_from_parameters(manifest, part) for part in parts]
    boxes = scan_boxes(microdata, manifest)
    checks += [
        _boxes(manifest, boxes),
        _domains(manifest, boxes),
        _labels(manifest, boxes),
        _published_rows(manifest, boxes),
    ]
    checks += [_distribution(microdata, manifest, part) for part in parts]
    found: list[promises.Found] = []
    sizes: dict[int, int] = {}
    if classes:
        salt = fresh_salt()
        facts = [_scan(microdata, manifest, part, salt) for part in parts]
        found, sizes = [_of_classes(of) for of in facts], facts[0].sizes
        checks += [_one_box(facts[0], boxes), _sizes(manifest, sizes)]
    elif evidence is not None:
        checks_, found = _graph(microdata, evidence[MATCHES], manifest, original)
        checks += checks_
    shares: list[dict[str | None, str]] = []
    numbers: list[dict[str, str]] = []
    for part, of in zip(parts, found, strict=False):
        kept, achieved = promises.check_promises(part, of, classes)
        stated, measured = promises.shares_as_stated(part, of, staged)
        checks += [
            *kept,
            promises.within_thresholds(part, of),
            stated,
            promises.numbers_as_stated(part, achieved, staged),
        ]
        shares.append(measured)
        numbers.append(achieved)
    utility = _utility(boxes, sizes)
    checks += [
        _utility_as_stated(manifest, utility, staged),
        no_row_numbers(MICRODATA, microdata, boxes.measured.rows, boxes.ranges),
        contents(MICRODATA, manifest.tables[MICRODATA], boxes.measured, staged),
    ]
    if original is not None:
        checks += compare(microdata, manifest, original)
    return Verdict(
        tuple(checks),
        achieved=shares[0] if shares else {},
        numbers=numbers[0] if numbers else {},
        tables={MICRODATA: boxes.measured},
        utility=utility,
        also={p.sensitive: (s, n) for p, s, n in zip(parts[1:], shares[1:], numbers[1:], strict=False)},
    )


def _values_add_up(manifest: Manifest, part: GuaranteePart) -> Check:
    """The sensitive values are listed once each, each occurs, and their counts sum to the records there are."""
    total, n = sum(v.count for v in part.values), manifest.rows.published + manifest.rows.suppressed
    twice = len(part.values) - len({v.value for v in part.values})
    absent = [v.value for v in part.values if v.count < 1]
    return Check(
        name=f"values of {part.sensitive} add up",
        passed=total == n and not twice and not absent,
        asked=f"counts of distinct values that sum to {n:,}",
        achieved=f"{len(part.values):,} values, sum {total:,}, {twice} listed twice, {len(absent)} with no record",
    )


def _schema(tables: Mapping[str, DataFrame], manifest: Manifest, columns: Columns | None) -> Check:
    """`microdata` has exactly the columns of the layout, with the manifest's types."""
    name, asked = "columns", "exactly the columns of the generalized layout, as the manifest lists them"
    if set(tables) != {MICRODATA} or set(manifest.tables) != {MICRODATA}:
        return Check(name, False, asked, f"tables {sorted(tables)}; the manifest lists {sorted(manifest.tables)}")
    faults = column_faults(tables, manifest, MICRODATA)
    parts = (manifest.guarantee, *manifest.guarantee.also)
    sensitive = {part.sensitive: part.sensitive_type for part in parts}
    wanted = generalized.layout(manifest.quasi_identifiers, sensitive, generalized.has_classes(manifest))
    found = dict(tables[MICRODATA].dtypes)
    faults += [f"{n!r} ({t}) has no place in the layout" for n, t in found.items() if wanted.get(n) != t]
    faults += [f"{n!r} ({t}) is missing" for n, t in wanted.items() if n not in found]
    try:
        generalized.quasi_identifiers(manifest)
    except (AnonlibError, ValueError) as problem:
        faults.append(f"the manifest's quasi-identifiers cannot be read: {problem}")
    if columns is not None:
        asked_for = {n.lower() for n in columns.quasi_identifier_names}
        stated = {part.name.lower() for part in manifest.quasi_identifiers}
        faults += [f"{n!r} is a quasi-identifier in one of spec and release only" for n in sorted(asked_for ^ stated)]
        if {n.lower() for n in sensitive} != {n.lower() for n in columns.sensitive_names}:
            faults.append("the sensitive columns are not those of the spec")
    return Check(name, not faults, asked, "as stated" if not faults else faults[0], "; ".join(faults[1:4]) or None)


def _readable(part: GuaranteePart, classes: bool) -> Check:
    """The promises are ones that can be checked."""
    faults = promises.readable(part, promises.OF_CLASSES if classes else promises.OF_MATCHES)
    if not faults and "t" in part.asked:
        try:
            _distance(part)
        except AnonlibError as problem:
            faults = [str(problem)]
    return Check(
        f"guarantee for {part.sensitive}", not faults, "promises that can be checked", part.model, (faults or [None])[0]
    )


def _distance(part: GuaranteePart) -> Distance | None:
    if "t" not in part.asked:
        return None
    if part.hierarchy:
        hierarchy_of(part.hierarchy)  # raises where these rows are no tree
    values, counts = [v.value for v in part.values], [v.count for v in part.values]
    return distance_of(part.distance, values, counts, part.sensitive_type, part.hierarchy)


def _boxes(manifest: Manifest, facts: BoxFacts) -> Check:
    bad = {
        p.name: a.malformed for p, a in zip(manifest.quasi_identifiers, facts.attributes, strict=True) if a.malformed
    }
    return Check(
        name="intervals and sets",
        passed=not bad and not facts.null_classes,
        asked="intervals from low to high; sets that are sorted, distinct and not empty",
        achieved=f"{sum(bad.values()):,} malformed, {facts.null_classes:,} rows without a class",
        evidence=f"{next(iter(bad))!r} in {next(iter(bad.values())):,} rows" if bad else None,
    )


def _domains(manifest: Manifest, facts: BoxFacts) -> Check:
    """Boxes lie in the domains, and reach their ends: a wider domain would make every box look small."""
    pairs = list(zip(manifest.quasi_identifiers, facts.attributes, strict=True))
    faults = [f"{p.name!r}: {a.outside:,} rows outside" for p, a in pairs if a.outside]
    if not manifest.rows.suppressed:  # a suppressed record may have been the only one at an end
        faults += [f"{p.name!r}: {a.unreached}" for p, a in pairs if a.unreached]
    return Check.unless(
        faults,
        name="domains",
        asked="boxes within the manifest's domains, together as wide as they",
        achieved="so they are" if not faults else f"{len(faults)} faults",
    )


def _labels(manifest: Manifest, facts: BoxFacts) -> Check:
    pairs = zip(manifest.quasi_identifiers, facts.attributes, strict=True)
    bad = {part.name: of.mislabelled for part, of in pairs if of.mislabelled}
    return Check(
        name="labels",
        passed=not bad,
        asked="the lowest node of the hierarchy above each set",
        achieved=f"{sum(bad.values()):,} wrong",
        evidence=f"{next(iter(bad))!r} in {next(iter(bad.values())):,} rows" if bad else None,
    )


def _published_rows(manifest: Manifest, facts: BoxFacts) -> Check:
    stated = manifest.rows
    return Check(
        name="published rows",
        passed=facts.measured.rows == stated.published + stated.dummy,
        asked=f"{stated.published:,} records and {stated.dummy:,} dummies",
        achieved=f"{facts.measured.rows:,} rows",
    )


def _distribution(microdata: DataFrame, manifest: Manifest, part: GuaranteePart) -> Check:
    """Each sensitive value as often as in the manifest, but for the declared dummies and suppressed records."""
    kind = dict(microdata.dtypes)[part.sensitive]
    limit = len(part.values) + 1
    grouped = aggregate(select(microdata, {"text": value_text(part.sensitive, kind)}), ["text"], {"n": "count(1)"})
    found = {row["text"]: int(row["n"]) for row in rows(grouped.limit(limit), limit)}
    stated = {v.value: v.count for v in part.values}
    unknown = [value for value in found if value not in stated]
    gains = {value: found.get(value, 0) - count for value, count in stated.items()}
    more, less = (sum(max(0, sign * gain) for gain in gains.values()) for sign in (1, -1))
    dummy, suppressed = manifest.rows.dummy, manifest.rows.suppressed
    odd = next((value for value, gain in gains.items() if gain), None)
    passed = not unknown and more <= dummy and less <= suppressed and more - less == dummy - suppressed
    return Check(
        name=f"distribution of {part.sensitive}",
        passed=passed,
        asked=f"the manifest's counts, {dummy:,} dummies beside and {suppressed:,} suppressed records less",
        achieved=f"{more:,} more, {less:,} less, {len(unknown)} unknown values",
        evidence=None if passed else f"{(unknown or [odd])[0]!r}",
    )


def _scan(microdata: DataFrame, manifest: Manifest, part: GuaranteePart, salt: int) -> ClassFacts:
    box = [name for attribute in manifest.quasi_identifiers for name in generalized.column_types(attribute)]
    return scan_classes(microdata, box, part.sensitive, [v.value for v in part.values], _distance(part), salt)


def _of_classes(facts: ClassFacts) -> promises.Found:
    return promises.Found(
        shares={code: (worst.value, f"class {worst.ec_id}") for code, worst in facts.shares.items()},
        fewest=(int(facts.fewest.value), f"class {facts.fewest.ec_id}"),
        smallest=min(facts.sizes, default=0),
        distance=None if facts.distance is None else (facts.distance.value, f"class {facts.distance.ec_id}"),
    )


def _one_box(facts: ClassFacts, boxes: BoxFacts) -> Check:
    """Records of a class cannot be told apart by their quasi-identifiers."""
    return Check(
        name="one box per class",
        passed=not facts.several and not boxes.null_classes,
        asked="all records of a class share one box",
        achieved=f"{facts.several:,} classes have several",
        evidence=f"class {facts.one_of_them}" if facts.several else None,
    )


def _sizes(manifest: Manifest, sizes: Mapping[int, int]) -> Check:
    """As many classes of each size as the solver states, where it does."""
    solver = manifest.solver
    wanted: Counter[int] = Counter()
    if solver.unit == "classes":
        for part in solver.setting:
            wanted[part.size] += part.number
    faults = [
        f"size {size}: stated {wanted.get(size, 0):,}, found {sizes.get(size, 0):,}"
        for size in sorted(wanted.keys() | sizes.keys())
        if wanted and wanted.get(size, 0) != sizes.get(size, 0)
    ]
    return Check.unless(
        faults,
        name="class sizes",
        asked=f"{sum(wanted.values()):,} classes of the sizes stated" if wanted else "no sizes are stated",
        achieved=f"{sum(sizes.values()):,} classes of {min(sizes, default=0):,} to {max(sizes, default=0):,} records",
    )


def _graph(
    microdata: DataFrame, matches: DataFrame, manifest: Manifest, original: DataFrame | None
) -> tuple[list[Check], list[promises.Found]]:
    facts = graph.scan_graph(matches, len(manifest.quasi_identifiers))
    checks = [*graph.graph_checks(facts, manifest), graph.boxes_of_matches(microdata, matches, manifest)]
    if original is not None:
        checks.append(graph.records_of_graph(matches, manifest, original))
    shares = {code: (share, f"partition {where}") for code, (share, where) in facts.shares.items()}
    return checks, [promises.Found(shares, (facts.fewest, "the matches of some record"))]


def _utility(boxes: BoxFacts, sizes: Mapping[int, int]) -> dict[str, float]:
    """GCP and AIL, means over rows and quasi-identifiers; discernibility and number of classes where there are any."""
    cells = max(1, boxes.measured.rows * len(boxes.attributes))
    found: dict[str, float] = {
        "gcp": sum(a.penalty for a in boxes.attributes) / cells,
        "ail": sum(a.loss for a in boxes.attributes) / cells,
    }
    if sizes:
        found |= {
            "classes": float(sum(sizes.values())),
            "discernibility": float(sum(size * size * number for size, number in sizes.items())),
        }
    return found


def _utility_as_stated(manifest: Manifest, found: Mapping[str, float], staged: bool) -> Check:
    faults = []
    for name, number in found.items():
        stated = manifest.utility.get(name, number if staged else None)
        if stated is None or abs(stated - number) > 1e-9 * max(1.0, abs(number)):
            faults.append(f"{name}: stated {stated}, found {number:.9g}")
    return Check.unless(
        faults,
        name="utility",
        asked="GCP, AIL and what else the manifest says the release is worth",
        achieved=", ".join(f"{name} {number:.4g}" for name, number in found.items()),
    )
