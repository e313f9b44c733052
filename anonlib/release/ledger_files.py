"""The files of a ledger: small ones that are written once and never changed, on any file system the driver reaches."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from anonlib.release import storage

CLAIM = ".claim-"
_PIECE = 1 << 20


@dataclass(frozen=True)
class Files:
    """The files below the folder `path`. Names have slashes."""

    path: str

    @property
    def _place(self) -> tuple[Any, str]:
        return storage.file_system(self.path)

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none where there is no such folder."""
        system, inside = self._place
        infos = system.get_file_info(fs.FileSelector(f"{inside}/{folder}", allow_not_found=True))
        return sorted(info.base_name for info in infos)

    def there(self, name: str = "") -> bool:
        """Whether the file, or the folder, is there."""
        system, inside = self._place
        return bool(system.get_file_info(f"{inside}/{name}".rstrip("/")).type != fs.FileType.NotFound)

    def read(self, name: str) -> bytes:
        """A small file. Raises FileNotFoundError."""
        system, inside = self._place
        with system.open_input_stream(f"{inside}/{name}") as stream:
            return bytes(stream.read())

    def digest(self, name: str) -> tuple[int, str]:
        """(bytes, SHA-256 in hexadecimal) of a file of any size, in pieces of a MiB. Raises FileNotFoundError."""
        system, inside = self._place
        digest, size = hashlib.sha256(), 0
        with system.open_input_stream(f"{inside}/{name}") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
                size += len(piece)
        return size, digest.hexdigest()

    def create(self, name: str, data: bytes) -> None:
        """Write a file that is not there yet, whole or not at all: of several who try, one succeeds and the others get FileExistsError.

        A local file is linked into its place. Elsewhere nothing is exclusive, and the writers claim the name first: a writer who sees
        another's claim, or the file, takes his own claim back. Two who see each other both give up.
        """
        system, inside = self._place
        if isinstance(system, fs.LocalFileSystem):
            _link(Path(inside) / name, data)
            return
        folder, _, last = name.rpartition("/")
        system.create_dir(f"{inside}/{folder}".rstrip("/"))
        claim = f"{last}{CLAIM}{secrets.token_hex(8)}"
        _write(system, f"{inside}/{folder}/{claim}", b"")
        try:
            rivals = {one for one in self.names(folder) if one == last or one.startswith(f"{last}{CLAIM}")} - {claim}
            if rivals:
                raise FileExistsError(f"{name}: {', '.join(sorted(rivals))} is there")
            _write(system, f"{inside}/{name}", data)
        finally:
            with suppress(OSError):
                system.delete_file(f"{inside}/{folder}/{claim}")

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all in it, if it is there. Never raises."""
        system, inside = self._place
        with suppress(Exception):
            system.delete_dir(f"{inside}/{name}")


def _write(system: Any, path: str, data: bytes) -> None:
    with system.open_output_stream(path) as stream:
        stream.write(data)


def _link(path: Path, data: bytes) -> None:
    """The file with all its bytes on the disk, or none. For its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(opened, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            raise
        except OSError:  # a mount that has no links: the name is still taken by one alone
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
    finally:
        draft.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """The folder's own list of names, onto the disk."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
