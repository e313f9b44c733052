"""Small perturbed releases made by hand in plain Python, for the tests of everything that reads a release."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from anonlib import words
from anonlib.exact import exact, text
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import operator_types
from tests.planted import OTHERS, SCHEMA
from tests.scans import rows_and_checksum


@dataclass
class Perturbed:
    """A release in memory: the tables, what they were made from, and the manifest as a dictionary to tamper with.

    subtable_of : sub-table of each record; truth : the records as they were, in the order of `microdata`
    """

    spark: Any
    records: list[dict[str, Any]]
    subtable_of: list[int]
    published: list[dict[str, Any]]
    microdata: Any
    operators: Any
    original: Any
    facts: dict[str, Any]

    @property
    def tables(self) -> dict[str, Any]:
        return {"microdata": self.microdata, "operators": self.operators}

    @property
    def manifest(self) -> Manifest:
        return Manifest.model_validate(self.facts)

    def recorded(self) -> Perturbed:
        """Writes rows and checksums of the tables as they are now into the manifest (as a clever tamperer would)."""
        for name, frame in self.tables.items():
            rows, checksum = rows_and_checksum(frame)
            self.facts["tables"][name].update(rows=rows, checksum=checksum)
        return self


def protected(overall: Counter[Any], rho1: Fraction) -> set[Any]:
    """SA' of equation (9)."""
    n = sum(overall.values())
    return {v for v, count in overall.items() if Fraction(count, n) <= rho1}


def largest_gamma(part: dict[Any, int], guarded: set[Any], rho2: Fraction) -> Fraction:
    """Equation (10)."""
    rho1 = max(Fraction(count, sum(part.values())) for v, count in part.items() if v in guarded)
    return rho2 * (1 - rho1) / (rho1 * (1 - rho2))


def perturbed(
    spark: Any,
    records: list[dict[str, Any]],
    parts: Sequence[dict[Any, int]],
    rho1: str,
    rho2: str,
    schema: str = SCHEMA,
    sensitive: Sequence[str] = ("illness",),
    seed: int = 0,
) -> Perturbed:
    """Records of each value go to the sub-tables in turn, as many as `parts` say; values are tuples when there are several columns."""
    columns = [part.strip().split(" ", 1) for part in schema.split(", ")]
    kinds = dict(columns)
    visible = [name for name, _ in columns if name not in sensitive]
    draw = random.Random(seed)

    def value(record: dict[str, Any]) -> Any:
        return record[sensitive[0]] if len(sensitive) == 1 else tuple(record[name] for name in sensitive)

    overall = Counter(map(value, records))
    assert overall == sum((Counter(part) for part in parts), Counter())
    places = {v: [i for i, part in enumerate(parts) for _ in range(part.get(v, 0))] for v in overall}
    for waiting in places.values():
        draw.shuffle(waiting)
    subtable_of = [places[value(record)].pop() for record in records]
    guarded = protected(overall, exact(rho1))
    gammas = [largest_gamma(part, guarded, exact(rho2)) for part in parts]
    published = []
    for i, record in zip(subtable_of, records, strict=True):
        domain = list(parts[i])
        keep = draw.randrange((g := gammas[i] + len(domain) - 1).numerator) < (gammas[i] - 1) * g.denominator
        now = value(record) if keep else draw.choice(domain)
        published.append(record | dict(zip(sensitive, now if len(sensitive) > 1 else (now,), strict=True)))
    own = {name: kinds[name] for name in sensitive}
    types = operator_types(own)
    rows = [
        (i, sum(p.values()), list(p), list(p.values()), len(p), float(g), text(g), float((g - 1) / (len(p) - 1 + g)))
        for i, (p, g) in enumerate(zip(parts, gammas, strict=True))
    ]
    records_of = [(*(r[c] for c, _ in columns), i) for r, i in zip(published, subtable_of, strict=True)]
    microdata = spark.createDataFrame(records_of, f"{schema}, subtable int").localCheckpoint()
    operators = spark.createDataFrame(rows, ", ".join(f"{c} {t}" for c, t in types.items())).localCheckpoint()
    original = spark.createDataFrame([tuple(r[c] for c, _ in columns) for r in records], schema).localCheckpoint()
    facts = _facts(rho1, rho2, kinds, visible, sensitive, overall, guarded, parts, gammas)
    found = Perturbed(spark, records, subtable_of, published, microdata, operators, original, facts)
    return found.recorded()


def posterior(part: dict[Any, int], gamma: Fraction, v: Any) -> Fraction:
    """Pr[X = v | Y = v] in a sub-table, by Bayes."""
    f, n = part.get(v, 0), sum(part.values())
    return gamma * f / (gamma * f + n - f)


def said(column, rho1, rho2, overall, guarded):
    """The sentence of a perturbed release of one sensitive column; unprotected values by their counts, then as listed."""
    n, rest = sum(overall.values()), [v for v in sorted(overall, key=str) if v not in guarded]
    shares = [(None if v is None else str(v), Fraction(overall[v], n)) for v in sorted(rest, key=lambda v: -overall[v])]
    return words.beliefs(column, exact(rho1), exact(rho2), len(guarded), shares)


def _facts(rho1, rho2, kinds, visible, sensitive, overall, guarded, parts, gammas):
    n = sum(overall.values())
    roles = dict.fromkeys(visible, "quasi_identifier") | {c: "other" for c in OTHERS if c in visible}
    roles |= dict.fromkeys(sensitive, "sensitive")
    achieved = {v: max(posterior(p, g, v) for p, g in zip(parts, gammas, strict=True)) for v in overall}
    retentions = [(g - 1) / (len(p) - 1 + g) for p, g in zip(parts, gammas, strict=True)]
    types = operator_types({name: kinds[name] for name in sensitive})
    rho1, rho2 = text(exact(rho1)), text(exact(rho2))  # as a job writes them
    return {
        "anonlib_version": "0",
        "spark_version": "0",
        "layout": "perturbed",
        "method": {
            "name": "perturb",
            "parameters": {"rho1": rho1, "rho2": rho2, "delta": "0.05", "partitioning": "small_domain"},
        },
        "guarantee": {
            "model": "(rho1, rho2)-privacy",
            "words": said(" and ".join(sensitive), rho1, rho2, overall, guarded),
            "sensitive": sensitive[0],
            "sensitive_type": kinds[sensitive[0]],
            "values": [
                {
                    "value": None if v is None else str(v),
                    "count": overall[v],
                    "threshold": text(exact(rho2)) if v in guarded else None,
                    "achieved": text(achieved[v]),
                }
                for v in sorted(overall, key=str)
            ],
            "asked": {"rho1": rho1, "rho2": rho2},
            "achieved": {"rho2": text(max(achieved[v] for v in guarded))},
        },
        "missing": {"quasi_identifiers": "keep", "sensitive": "keep"},
        "rows": {"input": n, "published": n},
        "solver": {
            "name": "by hand",
            "status": "heuristic",
            "setting": [{"size": s, "number": c} for s, c in sorted(Counter(sum(p.values()) for p in parts).items())],
            "unit": "sub-tables",
            "seconds": 0.0,
        },
        "utility": {
            "mean_retention": float(sum(r * sum(p.values()) for r, p in zip(retentions, parts, strict=True)) / n)
        },
        "audit": {"mode": "gate", "passed": None, "checks": []},
        "tables": {
            "microdata": {
                "path": "microdata",
                "format": "parquet",
                "rows": 0,
                "checksum": "",
                "columns": [{"name": c, "type": kinds[c], "role": roles[c]} for c in kinds]
                + [{"name": "subtable", "type": "int", "role": "subtable"}],
            },
            "operators": {
                "path": "operators",
                "format": "parquet",
                "rows": 0,
                "checksum": "",
                "columns": [{"name": c, "type": t, "role": c} for c, t in types.items()],
            },
        },
        "splits": {"partitions": 1, "settings": {}},
    }
