"""Small bucketized releases made by hand in plain Python, for the tests of everything that reads a release."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib import words
from anonlib.exact import text
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.release.manifest import Manifest
from tests.scans import rows_and_checksum

SCHEMA = "age int, country string, joined date, tags array<string>, big bigint, illness string"
QIS = ("age", "country", "joined")
OTHERS = ("tags", "big")


@dataclass
class Planted:
    """A release in memory: the tables, what they were made from, and the manifest as a dictionary to tamper with."""

    spark: Any
    records: list[dict[str, Any]]
    bucket_of: list[int]
    qit: Any
    st: Any
    original: Any
    facts: dict[str, Any]

    @property
    def tables(self) -> dict[str, Any]:
        return {"qit": self.qit, "st": self.st}

    @property
    def manifest(self) -> Manifest:
        return Manifest.model_validate(self.facts)

    def recorded(self) -> Planted:
        """Writes rows and checksums of the tables as they are now into the manifest (as a clever tamperer would)."""
        for name, frame in self.tables.items():
            rows, checksum = rows_and_checksum(frame)
            self.facts["tables"][name].update(rows=rows, checksum=checksum)
        return self


def people(n: int, values: dict[str, int], seed: int = 0) -> list[dict[str, Any]]:
    """n records with the given counts of illnesses (they sum to n), nulls and bigints above 2^53 among the other columns."""
    import datetime

    draw = random.Random(seed)
    illnesses = [v for v, count in values.items() for _ in range(count)]
    assert len(illnesses) == n
    draw.shuffle(illnesses)
    return [
        {
            "age": draw.randrange(18, 90),
            "country": draw.choice([None, "Österreich", "Peru", "中国", " "]),
            "joined": datetime.date(2000, 1, 1) + datetime.timedelta(days=draw.randrange(3000)),
            "tags": draw.choice([None, [], ["a"], ["a", None]]),
            "big": draw.choice([None, 2**53 + 1, 2**60 + draw.randrange(9)]),
            "illness": illness,
        }
        for illness in illnesses
    ]


def planted(
    spark: Any,
    records: list[dict[str, Any]],
    buckets: int,
    privacy: dict[str, Any],
    fake_values: int = 0,
    schema: str = SCHEMA,
    sensitive: str = "illness",
) -> Planted:
    """Round robin over `records` sorted by value: record number t goes to bucket t mod `buckets`."""
    order = sorted(range(len(records)), key=lambda i: (str(records[i][sensitive]), i))
    bucket_of = [0] * len(records)
    for t, i in enumerate(order):
        bucket_of[i] = t % buckets
    columns = [part.strip().split(" ", 1) for part in schema.split(", ")]
    kinds = dict(columns)
    visible = [name for name, _ in columns if name != sensitive]
    overall = Counter(r[sensitive] for r in records)
    values = sorted(overall, key=str)
    st_rows = _st_rows(records, bucket_of, sensitive, values, fake_values)
    qit = spark.createDataFrame(
        [(*(r[c] for c in visible), bucket_of[i]) for i, r in enumerate(records)],
        ", ".join(f"{c} {kinds[c]}" for c in visible) + ", bucket_id bigint",
    ).localCheckpoint()
    st = spark.createDataFrame(
        st_rows, f"bucket_id bigint, {sensitive} {kinds[sensitive]}, count bigint"
    ).localCheckpoint()
    original = spark.createDataFrame([tuple(r[c] for c, _ in columns) for r in records], schema).localCheckpoint()
    facts = _facts(privacy, sensitive, kinds, visible, overall, values, bucket_of, st_rows, fake_values)
    return Planted(spark, records, bucket_of, qit, st, original, facts).recorded()


def _st_rows(records, bucket_of, sensitive, values, fake_values):
    counts = Counter((bucket_of[i], r[sensitive]) for i, r in enumerate(records))
    rows = [(bucket, value, count) for (bucket, value), count in counts.items()]
    overall, fakes, ids = Counter(r[sensitive] for r in records), Counter(), sorted(set(bucket_of))
    for bucket in ids:
        absent = [v for v in values if (bucket, v) not in counts]
        later = {v: sum((b, v) not in counts for b in ids if b > bucket) for v in absent}
        chosen = sorted(absent, key=lambda v: (Fraction(fakes[v] + 1, overall[v]), later[v]))[
            :fake_values
        ]  # those that are due
        fakes.update(chosen)
        rows += [(bucket, v, 1) for v in chosen]
    return rows


def _words(sensitive, values, thresholds, fake_values, records, st_rows):
    """The sentence of a bucketized release, of the first value with the lowest and the highest threshold."""
    listed = Counter(value for _, value, count in st_rows for _ in range(count))
    shares = sorted(Fraction(records[v], listed[v]) for v in values)
    low, high = shares[0], shares[-1]
    told = None
    if fake_values:
        odds = [s / (1 - s) for s in shares if s < 1]
        told = low, high, Fraction(1) if high == 1 else odds[-1] / (odds[-1] + fake_values * odds[0])
    named = [(None if v is None else str(v), t) for v, t in zip(values, thresholds, strict=True)]
    strict, loose = (next(p for p in named if p[1] == f(t for _, t in named)) for f in (min, max))
    return words.thresholds(sensitive, strict, loose, fake_values, told)


def _facts(privacy, sensitive, kinds, visible, overall, values, bucket_of, st_rows, fake_values):
    n = len(bucket_of)
    wanted = (
        FPrivacy.linear(privacy["theta"], privacy.get("offset", 0))
        if "theta" in privacy
        else FPrivacy.l_diversity(privacy["l"])
    )
    thresholds = wanted.thresholds(SensitiveCounts(tuple(values), np.array([overall[v] for v in values]))).fractions
    sizes = Counter(bucket_of)
    setting = sorted(Counter(sizes.values()).items())
    share = {v: max(Fraction(c, sizes[b]) for b, w, c in st_rows if w == v) for v in values}
    loss = sum(number * (size - 1) ** 2 for size, number in setting)
    roles = dict.fromkeys(visible, "quasi_identifier") | {c: "other" for c in OTHERS if c in visible}
    return {
        "anonlib_version": "0",
        "spark_version": "0",
        "layout": "bucketized",
        "method": {
            "name": "bucketize",
            "parameters": {"privacy": privacy, "fake_values": fake_values, "max_bucket_size": 50},
        },
        "guarantee": {
            "model": "F'-privacy",
            "words": _words(sensitive, values, thresholds, fake_values, overall, st_rows),
            "sensitive": sensitive,
            "sensitive_type": kinds[sensitive],
            "values": [
                {
                    "value": None if v is None else str(v),
                    "count": overall[v],
                    "threshold": text(t),
                    "achieved": text(share[v]),
                }
                for v, t in zip(values, thresholds, strict=True)
            ],
        },
        "missing": {"quasi_identifiers": "keep", "sensitive": "keep"},
        "rows": {"input": n, "published": n, "fake": fake_values * len(sizes)},
        "solver": {
            "name": "by hand",
            "status": "heuristic",
            "setting": [{"size": size, "number": number} for size, number in setting],
            "loss": loss,
            "bound": 0,
            "gap": 1.0,
            "seconds": 0.0,
        },
        "utility": {"msbs": loss / (n - 1)},
        "audit": {"mode": "gate", "passed": None, "checks": []},
        "tables": {
            "qit": {
                "path": "qit",
                "format": "parquet",
                "rows": 0,
                "checksum": "",
                "columns": [{"name": c, "type": kinds[c], "role": roles[c]} for c in visible]
                + [{"name": "bucket_id", "type": "bigint", "role": "bucket_id"}],
            },
            "st": {
                "path": "st",
                "format": "parquet",
                "rows": 0,
                "checksum": "",
                "columns": [
                    {"name": "bucket_id", "type": "bigint", "role": "bucket_id"},
                    {"name": sensitive, "type": kinds[sensitive], "role": "sensitive"},
                    {"name": "count", "type": "bigint", "role": "count"},
                ],
            },
        },
        "splits": {"partitions": 1, "settings": {}},
    }
