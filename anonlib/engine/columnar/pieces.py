"""What tasks hand to each other through a folder: the records of a batch, cut by the file they go to, each piece sealed.

Rows of the input must lie on no disk in the clear (Spark's own shuffles of an embedded session are encrypted too): every piece is
AES-256-GCM under a key of the run alone, bound to its place, so that a piece that was damaged or exchanged is refused.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12
_OFFSET = 8
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Pieces:
    """A folder of sealed pieces: batch b of partition p has one for each of `files` files.

    folder : on a disk that all tasks see; key : 32 bytes, of this run alone
    """

    folder: str
    files: int
    key: bytes = field(repr=False)

    def write(self, partition: int, batch: int, pieces: Sequence[pa.RecordBatch]) -> None:
        """Seal the pieces of a batch, one for each file, in order. A task that runs twice writes the same records again, in one step."""
        sealed = [self._sealed(piece, self._place(partition, batch, k)) for k, piece in enumerate(pieces)]
        ends, end = [], (len(sealed) + 1) * _OFFSET
        for blob in [b"", *sealed]:
            end += len(blob)
            ends.append(end.to_bytes(_OFFSET, "little"))
        path = self._path(partition, batch)
        written = f"{path}.{secrets.token_hex(8)}"
        with open(written, "wb") as file:
            file.writelines([*ends, *sealed])
        os.replace(written, path)

    def read(self, partition: int, batch: int, file: int) -> pa.Table:
        """The records of a batch that go to `file`. Raises OSError, and ValueError for a piece that is not what was written."""
        with open(self._path(partition, batch), "rb") as stream:
            stream.seek(file * _OFFSET)
            start, stop = (int.from_bytes(stream.read(_OFFSET), "little") for _ in range(2))
            stream.seek(start)
            sealed = stream.read(stop - start)
        try:
            opened = AESGCM(self.key).decrypt(sealed[:_NONCE], sealed[_NONCE:], self._place(partition, batch, file))
        except InvalidTag:
            raise ValueError(f"{self.folder} holds another piece than was written there") from None
        return pa.ipc.open_stream(opened).read_all()

    def _sealed(self, piece: pa.RecordBatch, place: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, piece.schema, options=_OPTIONS) as stream:
            stream.write_batch(piece)
        nonce = secrets.token_bytes(_NONCE)
        return nonce + AESGCM(self.key).encrypt(nonce, sink.getvalue().to_pybytes(), place)

    def _place(self, partition: int, batch: int, file: int) -> bytes:
        return f"{partition}/{batch}/{file} of {self.files}".encode("ascii")

    def _path(self, partition: int, batch: int) -> str:
        return str(Path(self.folder) / f"{partition}-{batch}")
