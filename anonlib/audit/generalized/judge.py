"""Whether a generalized release keeps its promise, from what its table holds and what its manifest says. Pure: facts to verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from anonlib.audit import arithmetic, nodes, promised
from anonlib.audit.achieved import Bound, within_asked
from anonlib.audit.fields import nothing_else
from anonlib.audit.form import column_faults, columns_check, contents, no_row_numbers
from anonlib.audit.generalized import nodes_judge, promises
from anonlib.audit.generalized.closeness import Distance, distance_of
from anonlib.audit.generalized.facts import BoxFacts, ClassFacts, GeneralizedFacts
from anonlib.audit.manifest import rows_add_up, stream_adds_up
from anonlib.audit.verdict import Check, Verdict
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.hierarchy import hierarchy_of
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.spec.release import Columns

MICRODATA, EC_ID = "microdata", "ec_id"
"""As `anonlib.release.generalized` has them, which this module cannot read without Spark."""
MOST = 1 << 62
"""No table has as many records."""


def judge(facts: GeneralizedFacts, manifest: Manifest, columns: Columns | None = None, staged: bool = False) -> Verdict:
    """The verdict on all that the published table and the manifest show. Never raises.

    Without scans (`facts.boxes` is None) the verdict is on the manifest and the columns alone: it tells whether a scan makes sense.
    """
    parts, classes = [manifest.guarantee, *manifest.guarantee.also], has_classes(manifest)
    checks = [rows_add_up(manifest), *stream_adds_up(manifest), *(_values_add_up(manifest, part) for part in parts)]
    checks += [_schema(facts, manifest, columns), *(_readable(part, classes) for part in parts)]
    form = all(check.passed for check in checks)
    if manifest.method.name in nodes.METHODS:
        checks += nodes.of_manifest(manifest, columns)
    if not classes:
        checks += nodes_judge.as_asked(manifest)
    checks += [_in_words(manifest, part, classes) for part in parts]
    checks.append(nothing_else(manifest))
    boxes = facts.boxes
    if not form or boxes is None:
        return Verdict(tuple(checks))
    checks += [promises.follow_from_parameters(manifest, part) for part in parts]
    checks += [
        _boxes(manifest, boxes),
        _domains(manifest, boxes),
        _labels(manifest, boxes),
        _published_rows(manifest, boxes),
    ]
    checks += [_distribution(counted, manifest, part) for part, counted in zip(parts, facts.distributions, strict=True)]
    checks += [
        _eligible(counted, part) for part, counted in zip(parts, facts.distributions, strict=True) if "l" in part.asked
    ]
    worst_cases: list[promises.WorstCases] = []
    sizes: dict[int, int] = {}
    if classes:
        worst_cases, sizes = [_of_classes(of) for of in facts.classes], facts.classes[0].sizes
        checks += [_one_box(facts.classes[0], boxes), _sizes(manifest, sizes)]
    elif facts.graph is not None:
        checks += facts.graph.checks
        worst_cases = [facts.graph.worst_cases, *facts.graph.also]
    else:
        for part, counted in zip(parts, facts.distributions, strict=True):
            checks += promises.of_stated_shares(part, counted, staged)
        if all(check.passed for check in checks if check.name == nodes.TREE):
            checks += nodes_judge.of_stated_shares(manifest.guarantee, facts.distributions[0], staged)
    shares: list[dict[str | None, str]] = []
    numbers: list[dict[str, str]] = []
    for part, cases in zip(parts, worst_cases, strict=False):
        kept, achieved = promises.check_promises(part, cases, classes)
        stated, measured = promises.shares_as_stated(part, cases, staged)
        checks += [
            *kept,
            promises.within_thresholds(part, cases),
            stated,
            promises.numbers_as_stated(part, achieved, staged),
        ]
        shares.append(measured)
        numbers.append(achieved)
    utility = _utility(boxes, sizes)
    of_nodes = worst_cases[0].nodes if facts.graph is not None else None
    if of_nodes is not None:
        checks += nodes_judge.of_graph(manifest.guarantee, of_nodes, staged)
    checks += [
        _within_asked(manifest, numbers, staged, of_nodes),
        _utility_as_stated(manifest, utility, staged),
        no_row_numbers(MICRODATA, facts.numbering, boxes.measured.rows, boxes.ranges),
        contents(MICRODATA, manifest.tables[MICRODATA], boxes.measured, staged),
    ]
    return Verdict(
        tuple(checks),
        achieved=shares[0] if shares else {},
        numbers=numbers[0] if numbers else {},
        tables={MICRODATA: boxes.measured},
        utility=utility,
        nodes={k: (text(case.share), case.telling) for k, case in _every_node(manifest, of_nodes).items()},
        also={p.sensitive: (s, n) for p, s, n in zip(parts[1:], shares[1:], numbers[1:], strict=False)},
    )


def form_passed(verdict: Verdict, manifest: Manifest) -> bool:
    """Whether a verdict without scans lets a scan make sense: all but the words and the free fields of the manifest."""
    besides = {
        nothing_else(manifest).name,
        promised.NAME,
        *(f"{promised.NAME} for {p.sensitive}" for p in manifest.guarantee.also),
    }
    return all(check.passed for check in verdict.checks if check.name not in besides)


def _in_words(manifest: Manifest, part: GuaranteePart, classes: bool) -> Check:
    name = promised.NAME if part is manifest.guarantee else f"{promised.NAME} for {part.sensitive}"
    return promised.as_promised(part, lambda: promised.generalized(manifest, part, classes), name)


def _within_asked(
    manifest: Manifest,
    numbers: Sequence[Mapping[str, str]],
    staged: bool,
    of_nodes: Mapping[int, promises.NodeCase] | None,
) -> Check:
    """What was found of each promise, for each sensitive column, within what is promised. Without classes and without the graph of matches
    the audit finds nothing of them: then it is what the manifest says was found while the graph was at hand. Staged, the graph must be.
    Of a stream the same goes for the distance from its windows."""
    parts, streamed = [manifest.guarantee, *manifest.guarantee.also], manifest.stream is not None
    bounds, missing = nodes_judge.bounds(parts[0], of_nodes, staged)
    if of_nodes is None and not has_classes(manifest):
        of_values, untold = nodes_judge.own_bounds(manifest, staged)
        bounds, missing = [*bounds, *of_values], [*missing, *untold]
    for i, part in enumerate(parts):
        achieved = numbers[i] if i < len(numbers) else {} if staged else part.achieved
        if streamed and not staged:
            achieved = {**part.achieved, **achieved}
        for name, asked in part.asked.items():
            if name in achieved and promises.is_number(achieved[name]):
                least = name in promises.AT_LEAST
                bounds.append(Bound(f"{name} of {part.sensitive}", exact(achieved[name]), exact(asked), least))
            else:
                missing.append(f"{name} of {part.sensitive}")
    return within_asked(bounds, missing)


def _every_node(manifest: Manifest, of_nodes: Mapping[int, promises.NodeCase] | None) -> dict[int, promises.NodeCase]:
    """What shows of each node that the manifest lists, where the evidence was at hand."""
    if of_nodes is None:
        return {}
    return {k: of_nodes.get(k, nodes_judge.NOTHING) for k in range(len(manifest.guarantee.nodes))}


def _values_add_up(manifest: Manifest, part: GuaranteePart) -> Check:
    """The sensitive values are listed once each, each occurs, and their counts sum to the records there are."""
    total, n = sum(v.count for v in part.values), manifest.rows.published + manifest.rows.suppressed
    twice = len(part.values) - len({v.value for v in part.values})
    absent = [v.value for v in part.values if v.count < 1]
    return Check(
        name=f"values of {part.sensitive} add up",
        passed=total == n < MOST and not twice and not absent,
        asked=f"counts of distinct values that sum to {n:,}",
        achieved=f"{len(part.values):,} values, sum {total:,}, {twice} listed twice, {len(absent)} with no record",
    )


def _schema(facts: GeneralizedFacts, manifest: Manifest, columns: Columns | None) -> Check:
    """`microdata` has exactly the columns of the layout, with the manifest's types."""
    asked, tables = "exactly the columns of the generalized layout, as the manifest lists them", facts.columns
    if set(tables) != {MICRODATA} or set(manifest.tables) != {MICRODATA}:
        return Check("columns", False, asked, f"tables {sorted(tables)}; the manifest lists {sorted(manifest.tables)}")
    faults = column_faults(tables, manifest, MICRODATA)
    wanted, present = layout(manifest), dict(tables[MICRODATA])
    faults += [f"{n!r} ({t}) has no place in the layout" for n, t in present.items() if wanted.get(n) != t]
    faults += [f"{n!r} ({t}) is missing" for n, t in wanted.items() if n not in present]
    if facts.unreadable is not None:
        faults.append(f"the manifest's quasi-identifiers cannot be read: {facts.unreadable}")
    if columns is not None:
        sensitive = {part.sensitive.lower() for part in (manifest.guarantee, *manifest.guarantee.also)}
        asked_for = {n.lower() for n in columns.quasi_identifier_names}
        stated = {part.name.lower() for part in manifest.quasi_identifiers}
        faults += [f"{n!r} is a quasi-identifier in one of spec and release only" for n in sorted(asked_for ^ stated)]
        if sensitive != {n.lower() for n in columns.sensitive_names}:
            faults.append("the sensitive columns are not those of the spec")
    return columns_check(asked, faults)


def layout(manifest: Manifest) -> dict[str, str]:
    """{column of `microdata`: Spark type} that the manifest's quasi-identifiers and sensitive columns make, by the audit's own reading."""
    columns: dict[str, str] = {}
    for part in manifest.quasi_identifiers:
        if part.kind == "numeric":
            columns |= {f"{part.name}_min": part.type, f"{part.name}_max": part.type}
        else:
            columns[part.name] = f"array<{part.type}>"
            if part.hierarchy:
                columns[f"{part.name}_label"] = "string"
    columns |= {part.sensitive: part.sensitive_type for part in (manifest.guarantee, *manifest.guarantee.also)}
    return columns | ({EC_ID: "bigint"} if has_classes(manifest) else {})


def has_classes(manifest: Manifest) -> bool:
    """Whether records stand in equivalence classes, by the roles of the columns."""
    return MICRODATA in manifest.tables and any(c.role == EC_ID for c in manifest.tables[MICRODATA].columns)


def _readable(part: GuaranteePart, classes: bool) -> Check:
    """The promises are ones that can be checked."""
    faults = promises.readable(part, promises.OF_CLASSES if classes else promises.OF_MATCHES)
    countable = all(abs(v.count) < MOST for v in part.values)
    if not faults and "t" in part.asked and countable:
        try:
            distance_for(part)
        except AnonlibError as problem:
            faults = [str(problem)]
    return Check.unless(faults, f"guarantee for {part.sensitive}", "promises that can be checked", part.model)


def distance_for(part: GuaranteePart) -> Distance | None:
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
    if (
        manifest.stream is None and not manifest.rows.suppressed
    ):  # a stream's are told; a suppressed record may have been the only one at an end
        faults += [f"{p.name!r}: {a.unreached}" for p, a in pairs if a.unreached]
    return Check.unless(
        faults,
        name="domains",
        asked="boxes within the manifest's domains" + (", together as wide as they" if manifest.stream is None else ""),
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


def _distribution(counted: Mapping[str | None, int], manifest: Manifest, part: GuaranteePart) -> Check:
    """Each sensitive value as often as in the manifest, but for the declared dummies and suppressed records."""
    stated = {v.value: v.count for v in part.values}
    unknown = [value for value in counted if value not in stated]
    gains = {value: counted.get(value, 0) - count for value, count in stated.items()}
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


def _eligible(counted: Mapping[str | None, int], part: GuaranteePart) -> Check:
    """No value is more common among the records than l allows to be believed, before anything is published. Dummies lower no share."""
    l = exact(part.asked["l"])  # noqa: E741  (the field's name)
    held = [min(value.count, counted.get(value.value, 0)) for value in part.values]
    most = max(range(len(held)), key=lambda i: held[i])
    return Check(
        name=f"{part.sensitive} can be l-diverse",
        passed=arithmetic.l_eligible(held, l),
        asked=f"{text(l)} values or more, none with more than one in {text(l)} of the records",
        achieved=f"{sum(c > 0 for c in held):,} values, {part.values[most].value!r} with {held[most]:,} of {sum(held):,}",
    )


def _of_classes(facts: ClassFacts) -> promises.WorstCases:
    return promises.WorstCases(
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


def _utility(boxes: BoxFacts, sizes: Mapping[int, int]) -> dict[str, float]:
    """GCP and AIL, means over rows and quasi-identifiers; discernibility and number of classes where there are any."""
    cells = max(1, boxes.measured.rows * len(boxes.attributes))
    measures: dict[str, float] = {
        "gcp": sum(a.penalty for a in boxes.attributes) / cells,
        "ail": sum(a.loss for a in boxes.attributes) / cells,
    }
    if sizes:
        measures |= {
            "classes": float(sum(sizes.values())),
            "discernibility": float(arithmetic.discernibility(sizes)),
        }
    return measures


def _utility_as_stated(manifest: Manifest, measures: Mapping[str, float], staged: bool) -> Check:
    faults = []
    for name, number in measures.items():
        stated = manifest.utility.get(name, number if staged else None)
        if stated is None or abs(stated - number) > 1e-9 * max(1.0, abs(number)):
            faults.append(f"{name}: stated {stated}, found {number:.9g}")
    return Check.unless(
        faults,
        name="utility",
        asked="GCP, AIL and what else the manifest says the release is worth",
        achieved=", ".join(f"{name} {number:.4g}" for name, number in measures.items()),
    )
