"""A stream's release: batches that are shown one after another, each with a manifest of its own, and their union as one release.

    RELEASE/microdata/part-000017-00000.snappy.parquet      the rows of batch 17; `microdata/` as a whole is the table
    RELEASE/batches/000017.json                             its manifest, written last: a batch is shown when it is there

Rows whose manifest is not there yet belong to nobody: the readers here take the files that manifests name. Each file holds whole classes,
audited before it came here, so whoever reads the folder itself sees nothing unfinished either.

Every micro-batch leaves a manifest, one that shows no record too. Pure but for files: no table is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pyarrow import fs
from pydantic import ValidationError

from anonlib.errors import SpecError
from anonlib.exact import exact, text
from anonlib.release import storage
from anonlib.release.manifest import AuditPart, GuaranteePart, Manifest, RowsPart, StreamPart, TablePart, ValuePart

BATCHES = "batches"
WINDOWS = "windows"
"""The evidence of a stream, see `anonlib.audit.generalized.windows`."""
READERS = 16
SHARD_BITS, WINDOW_BITS, CLASS_BITS = 10, 29, 24
"""Of an ec_id, from the highest: the shard, the window in it, the class in that."""
_NAME = re.compile(r"(\d{6,})\.json")
_DATA = re.compile(r"part-(\d+).*\.parquet")


def file_name(batch: int) -> str:
    """Of a batch's manifest."""
    return f"{batch:06d}.json"


@dataclass(frozen=True)
class Place:
    """Where a stream's batches are shown. `staging` is beside it: what lies there is not audited."""

    path: str

    @property
    def staging(self) -> str:
        parent, _, name = self.path.rstrip("/").rpartition("/")
        return f"{parent}{'/' if parent else ''}.{name}.staging-stream"


def batch_numbers(path: str) -> list[int]:
    """The batches that are shown at `path`, ascending; none where nothing lies there."""
    system, inside = storage.file_system(path)
    infos = system.get_file_info(fs.FileSelector(f"{inside}/{BATCHES}", allow_not_found=True))
    return sorted(int(match[1]) for info in infos if (match := _NAME.fullmatch(info.base_name)))


def is_shown(path: str, batch: int) -> bool:
    """Whether the batch has its manifest."""
    system, inside = storage.file_system(path)
    return bool(system.get_file_info(f"{inside}/{BATCHES}/{file_name(batch)}").type == fs.FileType.File)


def read_batches(path: str, numbers: Iterable[int]) -> list[Manifest]:
    """The manifests of these batches, in order; small reads, 16 at a time. Raises SpecError for one that cannot be read."""
    system, inside = storage.file_system(path)

    def read(number: int) -> Manifest:
        name = f"{inside}/{BATCHES}/{file_name(number)}"
        try:
            with system.open_input_stream(name) as stream:
                return Manifest.from_json(bytes(stream.read()).decode("utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            raise SpecError(
                f"{path!r}: {BATCHES}/{file_name(number)} cannot be read ({reason}); check the path"
            ) from None

    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(read, numbers))


def take_place(place: Place) -> None:
    """Make the folders of a stream's release, and a staging area of the owner alone. Raises SpecError when they cannot be made."""
    system, inside = storage.file_system(place.path)
    storage.private_folder(place.staging)
    try:
        system.create_dir(f"{inside}/{BATCHES}", recursive=True)
        system.create_dir(f"{inside}/microdata", recursive=True)
    except OSError as error:
        raise SpecError(f"output.path {place.path!r}: cannot be written ({error}); choose another path") from None


def occupied(path: str) -> bool:
    """Whether anything lies at `path` that is no stream's release."""
    system, inside = storage.file_system(path)
    names = {info.base_name for info in system.get_file_info(fs.FileSelector(inside, allow_not_found=True))}
    return bool(names) and BATCHES not in names


def staged_files(place: Place, batch: int) -> list[str]:
    """The data files that a batch staged under `microdata`, by name."""
    system, inside = storage.file_system(f"{place.staging}/{batch:06d}/microdata")
    infos = system.get_file_info(fs.FileSelector(inside, allow_not_found=True))
    return sorted(info.base_name for info in infos if _DATA.fullmatch(info.base_name))


def shown_name(batch: int, staged: str) -> str:
    """What a staged data file is called once it is shown: the same for the same batch, however often it is played."""
    match = _DATA.fullmatch(staged)
    assert match is not None
    codec = re.search(r"\.(snappy|gz|gzip|zstd|lz4|lz4raw|lz4_raw|brotli)\.parquet$", staged)
    return f"part-{batch:06d}-{int(match[1]):05d}{'.' + codec[1] if codec else ''}.parquet"


def show(place: Place, batch: int, manifest_text: str) -> None:
    """Move a batch's files into `microdata/` and write its manifest, last. Again for a batch that was interrupted: the same files."""
    inside = storage.file_system(place.path)[1]
    staging, staged = storage.file_system(f"{place.staging}/{batch:06d}/microdata")
    for name in staged_files(place, batch):
        staging.move(f"{staged}/{name}", f"{inside}/microdata/{shown_name(batch, name)}")
    write_whole(f"{place.path}/{BATCHES}", file_name(batch), manifest_text)


def write_whole(folder: str, name: str, content: str) -> None:
    """Write a file that is there whole or not at all."""
    system, inside = storage.file_system(folder)
    with system.open_output_stream(f"{inside}/.{name}.tmp") as stream:
        stream.write(content.encode("utf-8"))
    system.move(f"{inside}/.{name}.tmp", f"{inside}/{name}")


def drop(path: str) -> None:
    """Remove a working folder, if it is there."""
    system, inside = storage.file_system(path)
    with suppress(FileNotFoundError):
        system.delete_dir(inside)


def union(manifests: Sequence[Manifest]) -> Manifest:
    """All shown batches as one release: counts added up, the worst of what was achieved, means weighted by records.

    Raises SpecError for no batch, batches of different streams, and batches that do not promise the same.
    """
    if not manifests:
        raise SpecError("no batch of this stream is shown yet")
    first, last = manifests[0], manifests[-1]
    streams = [manifest.stream for manifest in manifests if manifest.stream is not None]
    if len({part.id for part in streams}) != 1 or len(streams) != len(manifests):
        raise SpecError("the batches are not those of one stream; somebody put them together")
    _same_promises(manifests)
    with_rows = [manifest for manifest in manifests if manifest.rows.published]
    rows = RowsPart(
        input=sum(m.rows.input for m in manifests),
        published=sum(m.rows.published for m in manifests),
        dropped=sum(m.rows.dropped for m in manifests),
    )
    return first.model_copy(
        update={
            "anonlib_version": last.anonlib_version,
            "spark_version": last.spark_version,
            "rows": rows,
            "guarantee": _guarantee([m.guarantee for m in with_rows] or [first.guarantee]),
            "solver": first.solver.model_copy(update={"seconds": round(sum(m.solver.seconds for m in manifests), 3)}),
            "utility": _utility(with_rows),
            "audit": AuditPart(
                mode="gate", passed=all(m.audit.passed for m in with_rows) if with_rows else None, checks=[]
            ),
            "tables": {name: _table([m.tables[name] for m in manifests]) for name in first.tables},
            "files": {name: [f for m in manifests for f in m.files.get(name, [])] for name in first.tables},
            "stream": _stream(streams),
        }
    )


def _same_promises(manifests: Sequence[Manifest]) -> None:
    """Raises SpecError where a batch promises something else than the first: what a whole release promises is read from that one."""
    first = _promises(manifests[0])
    for manifest in manifests[1:]:
        promises = _promises(manifest)
        for name, promised in first.items():
            if promises[name] != promised:
                number = None if manifest.stream is None else manifest.stream.batch
                raise SpecError(
                    f"batch {number} has another {name} than the first batch of its stream; somebody changed a manifest"
                )


def _promises(manifest: Manifest) -> dict[str, Any]:
    of = manifest.stream
    assert of is not None
    return {
        "window": (of.window, of.advance, of.shard),
        "list of sensitive values": of.values,
        "method": manifest.method,
        "promise": (manifest.guarantee.model, manifest.guarantee.sensitive, manifest.guarantee.asked),
        "handling of missing values": manifest.missing,
        "list of quasi-identifiers": manifest.quasi_identifiers,
    }


def _stream(parts: Sequence[StreamPart]) -> StreamPart:
    counts = {name: sum(getattr(part, name) for part in parts) for name in ("arrived", "missing", "outside", "late")}
    waiting = sum(counts[name] for name in ("arrived",)) - counts["missing"] - counts["outside"]
    shown = sum(part.shown for part in parts)
    return parts[0].model_copy(
        update={**counts, "batch": None, "batches": len(parts), "shown": shown, "waiting": waiting - shown}
    )


def _guarantee(parts: Sequence[GuaranteePart]) -> GuaranteePart:
    counts: dict[str | None, int] = {}
    worst: dict[str | None, Fraction] = {}
    for part in parts:
        for value in part.values:
            counts[value.value] = counts.get(value.value, 0) + value.count
            if value.achieved is not None:
                worst[value.value] = max(worst.get(value.value, Fraction(0)), exact(value.achieved))
    order = sorted(counts, key=lambda value: (value is None, value or ""))
    values = [
        ValuePart(value=value, count=counts[value], achieved=text(worst[value]) if value in worst else None)
        for value in order
    ]
    achieved = {}
    if all("k" in part.achieved for part in parts):
        achieved["k"] = str(min(int(part.achieved["k"]) for part in parts))
    if all("t" in part.achieved for part in parts):
        achieved["t"] = text(max(exact(part.achieved["t"]) for part in parts))
    return parts[0].model_copy(update={"values": values, "achieved": achieved})


def _utility(manifests: Sequence[Manifest]) -> dict[str, float]:
    n = sum(manifest.rows.published for manifest in manifests)
    if not n:
        return {}
    means = {
        name: sum(m.utility[name] * m.rows.published for m in manifests) / n
        for name in ("gcp", "ail")
        if all(name in m.utility for m in manifests)
    }
    sums = {
        name: float(sum(m.utility[name] for m in manifests))
        for name in ("classes", "discernibility")
        if all(name in m.utility for m in manifests)
    }
    return means | sums


def _table(parts: Sequence[TablePart]) -> TablePart:
    total = sum(int(part.checksum.removeprefix("xxh64sum:") or "0", 16) for part in parts) % (1 << 64)
    return parts[0].model_copy(update={"rows": sum(part.rows for part in parts), "checksum": f"xxh64sum:{total:016x}"})


def json_texts(folder: str) -> Mapping[str, Any]:
    """{name: content} of the small JSON files of a private folder, none where it is not there."""
    import json

    system, inside = storage.file_system(folder)
    infos = system.get_file_info(fs.FileSelector(inside, allow_not_found=True))
    texts = {}
    for info in infos:
        if _NAME.fullmatch(info.base_name):
            with system.open_input_stream(info.path) as stream:
                texts[info.base_name] = json.loads(bytes(stream.read()).decode("utf-8"))
    return texts
