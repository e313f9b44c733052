"""Parquet files with footers of one's choice, for tests of what a file may say besides its columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_with_pairs(file: Path, table: pa.Table, pairs: Mapping[str, str]) -> None:
    """A Parquet file whose footer has these key-value pairs and no others, as Spark writes it."""
    bare = table.replace_schema_metadata(None)
    with pq.ParquetWriter(file, bare.schema, store_schema=False, use_deprecated_int96_timestamps=True) as writer:
        writer.write_table(bare)
        writer.add_key_value_metadata(dict(pairs))
