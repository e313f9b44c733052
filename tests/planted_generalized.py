"""Small generalized releases made by hand: a table, its boxes in plain Python, and a manifest; no method of the library takes part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from anonlib import words
from anonlib.audit.generalized.audit import audit
from anonlib.exact import exact
from anonlib.hierarchy import parse_hierarchy
from anonlib.release.generalized import MATCHES, MICRODATA
from anonlib.release.manifest import (
    AuditPart,
    ColumnPart,
    GuaranteePart,
    Manifest,
    MethodPart,
    QuasiIdentifierPart,
    RowsPart,
    SizePart,
    SolverPart,
    SplitsPart,
    TablePart,
    ValuePart,
)
from anonlib.spec.layouts import EC_ID
from anonlib.spec.release import Columns

PROMISES = ("k", "distinct_l", "frequency_l", "beta", "enhanced_beta", "t")
TREE = parse_hierarchy("3,low,any\n1,low,any\n20,high,any\n9,high,any\n7,seven,any\n")
CODES = TREE.labels[: TREE.leaves]
CITIES = ("Graz", "Linz", "Wien", None)
ILLNESS = ("asthma", "cold", "flu")
SCHEMA = "age int, code int, city string, illness string, income int"
PUBLISHED = {
    "age_min": "int",
    "age_max": "int",
    "code": "array<int>",
    "code_label": "string",
    "city": "array<string>",
    "illness": "string",
    "income": "int",
}
PARTS = [
    QuasiIdentifierPart(name="age", kind="numeric", type="int", low="20", high="67"),
    QuasiIdentifierPart(name="code", kind="categorical", type="int", hierarchy=TREE.rows),
    QuasiIdentifierPart(name="city", kind="categorical", type="string", values=list(CITIES)),
]


def people(n: int = 48) -> list[tuple[Any, ...]]:
    """(age, code, city, illness, income) of n persons, by age; illnesses and incomes go round."""
    return [
        (20 + (i * 47) // (n - 1), int(CODES[(i // 4) % 5]), CITIES[(i // 3) % 4], ILLNESS[i % 3], 1000 * (1 + i % 4))
        for i in range(n)
    ]


def box(members: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """age_min, age_max, code, code_label, city of the tight box."""
    ages, codes = [m[0] for m in members], sorted({m[1] for m in members})
    cities = sorted({m[2] for m in members}, key=lambda c: (c is None, c or ""))
    leaves = TREE.positions([str(c) for c in codes])
    node = int(TREE.cover(leaves.min(), leaves.max()))
    return (min(ages), max(ages), codes, TREE.labels[node], cities)


@dataclass
class Planted:
    """rows : published rows as tuples, in the order of `columns`; manifest and original beside them; evidence of a graph or None."""

    columns: dict[str, str]
    rows: list[tuple[Any, ...]]
    manifest: Manifest
    original: list[tuple[Any, ...]]
    evidence: list[tuple[Any, ...]] | None = None
    evidence_schema: str = field(
        default="partition bigint, record int, q0 bigint, q1 bigint, q2 bigint, s0 int, dummy boolean, matches array<int>, assigned int"
    )

    def frame(self, spark: Any) -> Any:
        """`microdata/`."""
        return spark.createDataFrame(self.rows, ", ".join(f"{n} {t}" for n, t in self.columns.items())).coalesce(2)

    def audited(self, spark: Any, original: bool = True, staged: bool = False) -> Any:
        """The audit's verdict on it."""
        source = spark.createDataFrame(self.original, SCHEMA).coalesce(2) if original else None
        graph = {}
        if self.evidence is not None:
            graph = {"evidence": {MATCHES: spark.createDataFrame(self.evidence, self.evidence_schema)}}
        sensitive = [part.sensitive for part in (self.manifest.guarantee, *self.manifest.guarantee.also)]
        names = [part.name for part in self.manifest.quasi_identifiers]
        columns = Columns.model_validate({"quasi_identifiers": names, "sensitive": sensitive}) if staged else None
        return audit({MICRODATA: self.frame(spark)}, self.manifest, source, columns, staged=staged, **graph)

    def completed(self, spark: Any) -> Planted:
        """With what the audit measured, as the workflow completes a manifest."""
        verdict = self.audited(spark, staged=True)
        assert verdict.passed, "\n".join(map(str, verdict.failures))
        main = _complete(self.manifest.guarantee, verdict.achieved, verdict.numbers)
        also = [_complete(part, *verdict.also[part.sensitive]) for part in main.also]
        table = self.manifest.tables[MICRODATA].model_copy(update=vars(verdict.tables[MICRODATA]))
        manifest = self.manifest.model_copy(
            update={
                "guarantee": main.model_copy(update={"also": also}),
                "tables": {MICRODATA: table},
                "utility": verdict.utility,
            }
        )
        return replace(self, manifest=manifest)


def _complete(part: GuaranteePart, shares: dict[str | None, str], numbers: dict[str, str]) -> GuaranteePart:
    values = [v.model_copy(update={"achieved": shares.get(v.value)}) for v in part.values]
    return part.model_copy(update={"values": values, "achieved": numbers})


def guarantee(sensitive: str, kind: str, held: list[Any], asked: dict[str, str], **more: Any) -> GuaranteePart:
    """What is promised about the values `held`."""
    counts = Counter(held)
    values = [ValuePart(value=str(v), count=counts[v]) for v in sorted(counts)]
    numbers = {name: exact(number) for name, number in asked.items() if name in PROMISES}
    said = words.matches(sensitive, int(asked["l"]), None) if set(asked) == {"l"} else None
    said = said or words.classes(sensitive, numbers, str(more.get("distance", "")))
    return GuaranteePart(
        model="planted", words=said, sensitive=sensitive, sensitive_type=kind, values=values, asked=asked, **more
    )


def manifest(
    promise: GuaranteePart, rows: RowsPart, parameters: dict[str, Any], columns: dict[str, str], **more: Any
) -> Manifest:
    """A manifest of a release that is still to be measured."""
    roles = {EC_ID: EC_ID}
    listed = [ColumnPart(name=n, type=t, role=roles.get(n, "-")) for n, t in columns.items()]
    solver = SolverPart(name="-", status="-", setting=more.pop("setting", []), unit="classes", seconds=0.0)
    return Manifest(
        anonlib_version="0",
        spark_version="0",
        layout="generalized",
        method=MethodPart(name="planted", parameters=parameters),
        guarantee=promise,
        missing={"quasi_identifiers": "keep", "sensitive": "error"},
        rows=rows,
        solver=solver,
        utility={},
        audit=AuditPart(mode="gate", passed=None, checks=[]),
        tables={MICRODATA: TablePart(path=MICRODATA, format="parquet", rows=-1, checksum="", columns=listed)},
        splits=SplitsPart(partitions=2, settings={}),
        quasi_identifiers=PARTS,
    )


def classes(size: int = 6) -> Planted:
    """48 persons in classes of neighbours, k = 6, with every promise a class can keep."""
    original = people()
    rows = []
    for start in range(0, len(original), size):
        members = original[start : start + size]
        rows += [(*box(members), m[3], m[4], start) for m in members]
    columns = PUBLISHED | {EC_ID: "bigint"}
    asked = {"k": "6", "distinct_l": "3", "frequency_l": "3", "beta": "0.5", "enhanced_beta": "0.5", "t": "0.35"}
    income = guarantee("income", "int", [p[4] for p in original], {"t": "0.35"}, distance="ordered")
    promise = guarantee("illness", "string", [p[3] for p in original], asked, distance="flat", also=[income])
    counted = RowsPart(input=len(original), published=len(original))
    setting = [SizePart(size=size, number=len(original) // size)]
    parameters = {"k": 6, "l": 3, "beta": "1/2", "t": {"illness": "0.35", "income": "7/20"}}
    return Planted(columns, rows, manifest(promise, counted, parameters, columns, setting=setting), original)


def graph(p: int = 12) -> Planted:
    """48 persons and a dummy per partition of p, three matches each, with different illnesses: 3-diversity."""
    original = people()
    columns = {n: t for n, t in PUBLISHED.items() if n != "income"}
    code = {str(v): i for i, v in enumerate(CODES)}
    rows, evidence = [], []
    for partition, start in enumerate(range(0, len(original), p - 1)):
        members = [(*m, False) for m in original[start : start + p - 1]]
        held = Counter(m[3] for m in members)
        for illness in ILLNESS:  # dummies: the quasi-identifiers of the first record, the illnesses that are short
            short = max(held.values()) - held[illness]
            members += [(*members[0][:3], illness, 0, True)] * short
        of = {v: [i for i, m in enumerate(members) if m[3] == v] for v in ILLNESS}
        place = {i: (v, k) for v, some in of.items() for k, i in enumerate(some)}
        for i, (age, number, city, illness, _, dummy) in enumerate(members):
            k = place[i][1]
            matches = [of[v][k] for v in ILLNESS]
            assigned = matches[(ILLNESS.index(illness) + partition) % 3]
            rows.append((*box([members[j] for j in matches]), members[assigned][3]))
            codes = (age, code[str(number)], CITIES.index(city), ILLNESS.index(illness))
            evidence.append((partition, i, *codes, dummy, matches, assigned))
    dummies = sum(e[6] for e in evidence)
    promise = guarantee("illness", "string", [m[3] for m in original], {"l": "3"})
    bounded = [value.model_copy(update={"threshold": "1/3"}) for value in promise.values]
    promise = promise.model_copy(update={"values": bounded})
    counted = RowsPart(input=len(original), published=len(original), dummy=dummies)
    return Planted(columns, rows, manifest(promise, counted, {"l": 3}, columns), original, evidence)
