"""Arrays by what they hold: one name a kind, for every signature of the library. Shapes stand in the docstrings of who takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
"""Counts, codes, record numbers: exact."""
Int32Array = npt.NDArray[np.int32]
Int8Array = npt.NDArray[np.int8]
UInt64Array = npt.NDArray[np.uint64]
"""Words of a cryptographic stream."""
UInt8Array = npt.NDArray[np.uint8]
"""Bytes, or bits packed into them."""
IntegerArray = npt.NDArray[np.integer[Any]]
"""Whole numbers of any width."""
Float64Array = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
ObjectArray = npt.NDArray[np.object_]
"""A list or a text in every place."""
Codes = npt.NDArray[Any]
"""One quasi-identifier of (n,) records as codes: int64, or float64 of a floating column (`anonlib.engine.numeric_codes`)."""
