"""Tables for benchmarks: a person-level table of any length, generated, so that a benchmark runs on any machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUMERIC = ("age", "gender", "education", "race")
TEXT = {"marital_status": 6, "work_class": 7, "country": 68, "occupation": 50}
SENSITIVE = "occupation"
BLOCK = 500_000


def person_table(folder: Path, rows: int, files: int = 8, values: int = 50, seed: int = 0) -> Path:
    """`rows` persons in `files` Parquet files: four integer and four text columns, occupation sensitive with `values` skewed values.

    Written once per (rows, files, values, seed) and kept under `folder`. Returns the table's path.
    """
    path = folder / f"persons-{rows}-{files}-{values}-{seed}"
    if (path / "_done").exists():
        return path
    path.mkdir(parents=True, exist_ok=True)
    ends = np.linspace(0, rows, files + 1).astype(int)
    for k in range(files):
        rng = np.random.default_rng([seed, k])
        with pq.ParquetWriter(path / f"part-{k:03d}.parquet", _schema()) as writer:
            for start in range(ends[k], ends[k + 1], BLOCK):
                writer.write_table(_block(rng, min(BLOCK, int(ends[k + 1]) - start), values))
    (path / "_done").touch()
    return path


def _schema() -> pa.Schema:
    return pa.schema([*((name, pa.int32()) for name in NUMERIC), *((name, pa.string()) for name in TEXT)])


def _block(rng: np.random.Generator, n: int, values: int) -> pa.Table:
    columns = {
        "age": pa.array(np.clip(rng.normal(45, 17, n), 16, 93).astype(np.int32)),
        "gender": pa.array(rng.integers(1, 3, n, dtype=np.int32)),
        "education": pa.array(rng.binomial(17, 0.6, n).astype(np.int32)),
        "race": pa.array(rng.choice(9, n, p=_skew(9, 2.0)).astype(np.int32)),
    }
    for name, m in TEXT.items():
        m = values if name == SENSITIVE else m
        codes = rng.choice(m, n, p=_skew(m, 0.8))
        words = pa.array([f"{name}-{code:05d}" for code in range(m)])
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), words).cast(pa.string())
    return pa.table(columns)


def _skew(m: int, power: float) -> np.ndarray:
    """Zipf-like frequencies, smallest 1/(m + 1)^power before scaling."""
    weights = 1.0 / np.arange(2, m + 2) ** power
    return weights / weights.sum()
