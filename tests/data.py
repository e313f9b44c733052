"""Where the real tables are: the folder named by ANONLIB_DATA, or `../shared/data` beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def table_path(name: str) -> Path:
    """Path of the Parquet table `name`; skips the test when the tables are not on this machine."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("ANONLIB_DATA", str(beside)))
    path = folder / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"needs the table {name}.parquet in {folder} (set ANONLIB_DATA to the folder that holds it)")
    return path
