"""Where releases lie: a place that shows a whole release or nothing.

On a file system that can rename (local disks, mounted volumes, HDFS) a release is built in a hidden sibling folder and renamed
into place. On object stores, which cannot, it is built at its own path and its manifest is written last: without a manifest there is
no release, and a failed run removes what it wrote. Either way a reader never sees half a release.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from anonlib.errors import AnonlibError, SpecError
from anonlib.release.manifest import FILE_NAME
from anonlib.release.remote import remote_system

STAGING_MARK = "_anonlib_staging"
"""Marks a folder on an object store as ours and unfinished, so that a later run may clear it."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Place:
    """A release's path on some file system. `staging` is where its tables are written before it is visible."""

    path: str
    staging: str

    def table(self, name: str) -> str:
        """Path of a table while it is staged."""
        return f"{self.staging}/{name}"


def place(path: str) -> Place:
    """Check that nothing lies at `path` and say where to build. Creates nothing. Raises SpecError when the path is taken."""
    if path.startswith("dbfs:/") and not os.path.isdir(os.path.join("/", *_normal(path).split("/")[1:2])):
        raise SpecError(
            f"output.path {path!r}: such paths are on Databricks alone, and it is not mounted here; choose another path"
        )
    path = _normal(path)
    if _is_local(path):
        local = _local(path)
        try:
            taken = local.exists() and (not local.is_dir() or any(local.iterdir()))
        except (OSError, ValueError) as error:
            raise SpecError(
                f"output.path {path!r}: cannot be looked at ({getattr(error, 'strerror', None) or error}); choose another path"
            ) from None
        if taken:
            raise SpecError(_taken(path, (local / FILE_NAME).exists()))
        hidden = local.parent / f".{local.name}.staging-{secrets.token_hex(4)}"
        return Place(path, str(hidden))
    try:
        system, inside = _remote(path)
    except SpecError as error:
        raise SpecError(f"output.path {error}") from None
    names = _names(system, inside)
    if names and STAGING_MARK not in names:
        raise SpecError(_taken(path, FILE_NAME in names))
    if _renames(system):
        parent, _, name = path.rpartition("/")
        return Place(path, f"{parent}/.{name}.staging-{secrets.token_hex(4)}")
    return Place(path, path)


def begin(where: Place) -> None:
    """Make the staging folder; on local disks readable by its owner alone, since what it holds is not audited yet."""
    if _is_local(where.path):
        try:
            _local(where.path).parent.mkdir(parents=True, exist_ok=True)
            Path(where.staging).mkdir(mode=0o700)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise SpecError(f"output.path {where.path!r}: cannot be written ({why}); choose another path") from None
        return
    system, inside = _remote(where.staging)
    if where.staging == where.path:
        system.delete_dir_contents(inside, missing_dir_ok=True)  # only ever what an interrupted run of ours left
    system.create_dir(inside)
    if where.staging == where.path:
        _write(system, f"{inside}/{STAGING_MARK}", b"")


def publish(where: Place, manifest_text: str | None, tables: Iterable[str]) -> None:
    """Write the manifest and make the release visible, in one step. Without a manifest (evidence) the folder stays its owner's alone.

    Raises SpecError when another run was faster, AnonlibError when the staging area holds anything but `tables`: a working copy
    that could not be removed may have columns that nobody may see.
    """
    data = None if manifest_text is None else manifest_text.encode("utf-8")
    strangers = _staged(where) - {*tables, STAGING_MARK}
    if strangers:
        raise AnonlibError(
            f"{where.staging} holds {', '.join(sorted(strangers))}, which cannot be removed and must not be published; "
            "check the permissions and the disk, and run again"
        )
    if _is_local(where.path):
        staging, target = Path(where.staging), _local(where.path)
        if data is not None:
            (staging / FILE_NAME).write_bytes(data)
            umask = os.umask(0)
            os.umask(umask)
            staging.chmod(0o777 & ~umask)
        try:
            staging.rename(target)  # atomic; refused when the target is a folder with anything in it
        except OSError:
            raise SpecError(_taken(where.path, (target / FILE_NAME).exists())) from None
        return
    system, inside = _remote(where.staging)
    if where.staging != where.path:
        taken = _remote(where.path)[1]
        if names := _names(system, taken):
            raise SpecError(_taken(where.path, FILE_NAME in names))
        if data is not None:
            _write(system, f"{inside}/{FILE_NAME}", data)
        if system.get_file_info(target).type == fs.FileType.Directory:
            system.delete_dir(target)  # an empty folder there would swallow the release instead of becoming it
        system.move(inside, target)
        return
    system.delete_file(f"{inside}/{STAGING_MARK}")
    if data is not None:
        _write(system, f"{inside}/{FILE_NAME}", data)


def _staged(where: Place) -> set[str]:
    if _is_local(where.path):
        return set(os.listdir(where.staging))
    return set(_names(*_remote(where.staging)))


def discard(where: Place) -> None:
    """Remove what was staged. Never raises: it runs while another error is on its way to the user."""
    with suppress(Exception):
        if _is_local(where.path):
            shutil.rmtree(where.staging, ignore_errors=True)
        else:
            system, inside = _remote(where.staging)
            system.delete_dir(inside)


def remove(where: Place, name: str) -> None:
    """Remove a working folder from the staging area."""
    if _is_local(where.path):
        shutil.rmtree(f"{where.staging}/{name}", ignore_errors=True)
        return
    system, inside = _remote(where.staging)
    with suppress(FileNotFoundError):
        system.delete_dir(f"{inside}/{name}")


def clear(where: Place, keep: Iterable[str]) -> None:
    """Remove every working folder from the staging area but those named in `keep`."""
    for name in sorted(_staged(where) - {*keep, STAGING_MARK}):
        remove(where, name)


def leftovers(where: Place) -> list[str]:
    """Staging folders that interrupted runs left beside a local release path."""
    if not _is_local(where.path):
        return []
    local = _local(where.path)
    if not local.parent.is_dir():
        return []
    return sorted(str(p) for p in local.parent.glob(f".{local.name}.staging-*"))


def read_manifest(path: str) -> str:
    """The text of a release's manifest. Raises SpecError when there is no release at `path`."""
    path = _normal(path)
    try:
        if _is_local(path):
            return (_local(path) / FILE_NAME).read_text(encoding="utf-8")
        system, inside = _remote(path)
        with system.open_input_stream(f"{inside}/{FILE_NAME}") as stream:
            return bytes(stream.read()).decode("utf-8")
    except FileNotFoundError:
        raise SpecError(f"{path!r} holds no release: there is no {FILE_NAME} in it; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"{path!r}: its {FILE_NAME} cannot be read ({error}); check the path and its permissions"
        ) from None


@dataclass(frozen=True)
class Entry:
    """What a folder holds: `path` relative to it, with slashes; `size` in bytes; `kind` is "file", "folder", or "link" (no plain file)."""

    path: str
    size: int
    kind: str


def listing(path: str) -> list[Entry]:
    """Everything below `path`, hidden or not, at any depth, sorted; links are listed and not followed. No file is opened.

    Cost: one listing request per folder or per 1,000 files, by the file system. Raises SpecError when it cannot be listed.
    """
    path = _normal(path)
    try:
        if _is_local(path):
            return sorted(_below(_local(path)), key=lambda entry: entry.path)
        system, inside = _remote(path)
        infos = system.get_file_info(fs.FileSelector(inside, recursive=True))
    except OSError as error:
        raise SpecError(f"{path!r}: its files cannot be listed ({error}); check the path and its permissions") from None
    start = len(inside.rstrip("/")) + 1
    kinds = {fs.FileType.File: "file", fs.FileType.Directory: "folder"}
    entries = [Entry(i.path[start:].rstrip("/"), i.size or 0, kinds.get(i.type, "link")) for i in infos]
    return sorted(entries, key=lambda entry: entry.path)


def _below(folder: Path, inside: str = "") -> Iterator[Entry]:
    for entry in os.scandir(folder):
        path = f"{inside}{entry.name}"
        if entry.is_symlink() or not (entry.is_dir() or entry.is_file()):
            yield Entry(path, 0, "link")
        elif entry.is_dir():
            yield Entry(path, 0, "folder")
            yield from _below(folder / entry.name, f"{path}/")
        else:
            yield Entry(path, entry.stat().st_size, "file")


def private_folder(path: str) -> None:
    """Make a folder, and those above it; on local disks a new one is its owner's alone. Raises SpecError where it cannot be made."""
    path = _normal(path)
    try:
        if _is_local(path):
            _local(path).parent.mkdir(parents=True, exist_ok=True)
            _local(path).mkdir(mode=0o700, exist_ok=True)
        else:
            system, inside = _remote(path)
            system.create_dir(inside, recursive=True)
    except OSError as error:
        raise SpecError(f"{path!r}: cannot be written ({error.strerror or error}); choose another path") from None


def opened(path: str, entry: str) -> Any:
    """The file `entry` of the folder `path`, for reading at any place, as PyArrow opens it."""
    system, inside = file_system(path)
    return system.open_input_file(f"{inside}/{entry}")


def file_system(path: str) -> tuple[Any, str]:
    """PyArrow's file system that `path` lies on, and the path there. Raises SpecError when the driver cannot reach it."""
    path = _normal(path)
    return (fs.LocalFileSystem(), str(_local(path))) if _is_local(path) else _remote(path)


def absolute(path: str) -> str:
    """The path wherever one stands: a local one from the root, any other as it is."""
    path = _normal(path)
    return str(_local(path)) if _is_local(path) else path


def seize(where: Place) -> bool:
    """Take a staging folder away from the run that made it, so that it can never be shown: True when it was taken, now or earlier.

    One rename, into a hidden folder beside it, which proves it to whoever comes next, until `drop_seized`. False on object stores, where
    nothing is staged apart.
    """
    if where.staging == where.path:
        return False
    system, inside = file_system(where.staging)
    with suppress(OSError):
        system.move(inside, _seized(inside))
    return bool(system.get_file_info(_seized(inside)).type == fs.FileType.Directory)


def drop_seized(where: Place) -> None:
    """Remove what `seize` took away, if there is any. Never raises."""
    if where.staging == where.path:
        return
    with suppress(Exception):
        system, inside = file_system(where.staging)
        system.delete_dir(_seized(inside))


def _seized(staging: str) -> str:
    parent, _, name = staging.rpartition("/")
    return f"{parent}/.{name.strip('.')}.seized"


def manifest_at(path: str) -> str | None:
    """The text of the manifest at `path`; None where there is none. Raises OSError when that cannot be told."""
    system, inside = file_system(path)
    try:
        with system.open_input_stream(f"{inside}/{FILE_NAME}") as stream:
            return bytes(stream.read()).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None


def drop_committers_notes(where: Place, tables: Iterable[str]) -> None:
    """Empty the table folders of the staging area of a `_SUCCESS` that is not empty: some committers write hosts, jobs and file names
    into it, which nobody has asked to publish, and a release exists by its manifest."""
    for table in tables:
        held = {entry.path: entry.size for entry in listing(where.table(table))}
        if not held.get("_SUCCESS"):
            continue
        for name in ("_SUCCESS", "._SUCCESS.crc"):
            if name in held:
                _delete(where.table(table), name)


def _delete(path: str, name: str) -> None:
    system, inside = file_system(path)
    system.delete_file(f"{inside}/{name}")


def manifests_beside(where: Place) -> dict[str, str]:
    """{path: text of its manifest} of the other releases in the folder that the release will lie in. What cannot be read is left out.

    Cost: one listing, and a small read per folder there, 16 at a time.
    """
    with suppress(OSError):
        system, inside = file_system(where.path)
        parent = inside.rpartition("/")[0] or "/"
        infos = system.get_file_info(fs.FileSelector(parent, allow_not_found=True))
        folders = [i.path for i in infos if i.type == fs.FileType.Directory and not i.base_name.startswith(".")]
        with ThreadPoolExecutor(16) as pool:
            texts = list(pool.map(lambda folder: _manifest_in(system, folder), folders))
        return {folder: text for folder, text in zip(folders, texts, strict=True) if text}
    return {}


def manifests_of_days(path: str, date: str) -> dict[str, str]:
    """{path: text of its manifest} of the releases that lie at `path` with a day in the place of `date`, in whatever folder of it that is.

    Cost: one listing, and a small read per day, 16 at a time. None where `path` has no `date`; what cannot be read is left out.
    """
    above, dated, _ = _normal(path).partition(date)
    if not dated:
        return {}
    folder, slash, _ = above.rpartition("/")
    with suppress(OSError):
        system, inside = file_system(folder or ("/" if slash else "."))
        infos = system.get_file_info(fs.FileSelector(inside, allow_not_found=True))
        days = sorted({day[0] for info in infos if (day := _DAY.search(info.base_name))})
        places = [file_system(path.replace(date, day)) for day in days]
        with ThreadPoolExecutor(16) as pool:
            texts = list(pool.map(lambda place: _manifest_in(*place), places))
        return {place[1]: text for place, text in zip(places, texts, strict=True) if text}
    return {}


def _manifest_in(system: Any, folder: str) -> str:
    try:
        with system.open_input_stream(f"{folder}/{FILE_NAME}") as stream:
            return bytes(stream.read()).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _normal(path: str) -> str:
    """One spelling: no trailing slash; Databricks' paths as the mounted ones that Python sees."""
    path = path.rstrip("/") or "/"
    if path.startswith("dbfs:/Volumes/"):
        return path.removeprefix("dbfs:")
    if path.startswith("dbfs:/"):
        return "/dbfs/" + path.removeprefix("dbfs:/").lstrip("/")
    return path


def spark_path(path: str) -> str:
    """The path as Spark should be given it: local paths absolute, with their scheme; others as they are."""
    path = _normal(path)
    if path.startswith("/dbfs/"):
        return "dbfs:/" + path.removeprefix("/dbfs/")
    if path.startswith("/Volumes/") or not _is_local(path):
        return path
    return "file://" + os.path.abspath(_local(path))


def local_folder(path: str) -> str | None:
    """The path as this machine's programs take it; None where it is no path of its own file system."""
    return str(_local(path)) if _is_local(path) and not path.startswith(("/dbfs/", "/Volumes/")) else None


def _is_local(path: str) -> bool:
    return path.startswith("file:") or "://" not in path


def _local(path: str) -> Path:
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return Path(os.path.abspath(path))


def _remote(path: str) -> tuple[Any, str]:
    return remote_system(path)


def _renames(system: Any) -> bool:
    return bool(system.type_name == "hdfs")


def _names(system: Any, inside: str) -> list[str]:
    infos = system.get_file_info(fs.FileSelector(inside, allow_not_found=True))
    return [info.base_name for info in infos]


def _write(system: Any, inside: str, data: bytes) -> None:
    with system.open_output_stream(inside) as stream:
        stream.write(data)


def _taken(path: str, release: bool) -> str:
    what = "already holds a release" if release else "is not empty"
    why = (
        "; a second release of the same table would weaken both (buckets can be intersected), so none is ever overwritten: choose another "
        "path, or remove the old release if it never left the house"
        if release
        else "; choose another path, or clear this one"
    )
    return f"output.path {path!r} {what}{why}"
