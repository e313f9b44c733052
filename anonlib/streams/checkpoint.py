"""What a stream keeps beside its release: its settings, its key, its evidence, and Spark's own checkpoint. As sensitive as the input.

    CHECKPOINT/stream.json         what the stream was begun with: whoever goes on with it must ask for the same
    CHECKPOINT/key                 the key of a stream that was begun without one
    CHECKPOINT/evidence/000017.json    of a batch: what its windows held, and what each advance did
    CHECKPOINT/ends/               the words that the stream ends, see `anonlib.engine.streaming.tell_flush`
    CHECKPOINT/spark/              offsets and state: the records that are not shown yet
    CHECKPOINT/work/               a micro-batch while it is worked on
    CHECKPOINT/.lock               locked while a run goes on with the stream (on local disks; the file itself stays)

On local disks the folder is made for its owner alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import fs

from anonlib.errors import SpecError
from anonlib.release import storage, streamed
from anonlib.spec.keys import KEY_BYTES
from anonlib.spec.part import shown

SETTINGS, KEY, LOCK = "stream.json", "key", ".lock"
VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """A stream's own folder. id : 32 hexadecimal digits, drawn once; key : what draws follow from; begun : whether it was there before."""

    path: str
    id: str
    begun: bool
    key: bytes = field(repr=False)

    def below(self, name: str) -> str:
        """The path of a folder in it."""
        return f"{self.path}/{name}"

    def keep_evidence(self, batch: int, evidence: Mapping[str, Any]) -> None:
        """Write a batch's evidence, whole or not at all."""
        streamed.write_whole(self.below("evidence"), streamed.file_name(batch), json.dumps(evidence))


@contextmanager
def held(path: str) -> Iterator[None]:
    """Hold the checkpoint at `path` alone: two runs of one stream would each take the other's half-written batch for rubbish.

    Raises SpecError where another run holds it, or the folder cannot be made. Whoever is killed holds it no more. Only on local disks that
    have locks: elsewhere nobody is kept out.
    """
    storage.private_folder(path)
    system, inside = storage.file_system(path)
    if not isinstance(system, fs.LocalFileSystem):
        yield
        return
    with open(f"{inside}/{LOCK}", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SpecError(
                f"stream.checkpoint {path!r}: another run of this stream is at work; wait until it ends, or stop it"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield


def claimed(path: str, output: str, settings: Mapping[str, Any], key: bytes | None) -> Checkpoint:
    """The checkpoint at `path`, begun now or gone on with.

    settings : all that shapes what is published; key : the key that the spec names, None for one that is drawn here and kept
    Raises SpecError for a checkpoint of other settings or another output, and for an output that holds anything but this stream's batches,
    all of them and none that the checkpoint does not know. To be called while it is `held`.
    """
    known = _read(path)
    if streamed.occupied(output):
        raise SpecError(f"output.path {output!r} is not empty, and what lies there is no stream; choose another path")
    numbers = streamed.batch_numbers(output)
    if known is None:
        if numbers:
            raise SpecError(
                f"output.path {output!r} holds the batches of a stream whose checkpoint is not at {path!r}; they would be published a "
                "second time: name its own checkpoint, or another path"
            )
        return _begun(path, output, settings, key)
    _same(path, known, output, settings)
    if numbers:
        of = streamed.read_batches(output, numbers[-1:])[0].stream
        if of is None or of.id != known["id"]:
            raise SpecError(
                f"output.path {output!r} holds batches of another stream than the checkpoint at {path!r}; name its own output"
            )
    _agree(path, output, numbers)
    return Checkpoint(path, known["id"], True, key if key is not None else _own_key(path))


def _begun(path: str, output: str, settings: Mapping[str, Any], key: bytes | None) -> Checkpoint:
    system, inside = storage.file_system(path)
    infos = system.get_file_info(fs.FileSelector(inside, allow_not_found=True))
    there = {info.base_name for info in infos if not info.base_name.startswith(".")}
    if there - {"evidence", "ends", KEY}:  # which a start that was killed may have left
        raise SpecError(
            f"stream.checkpoint {path!r} is not empty, and no stream's; choose another path, or clear this one"
        )
    storage.private_folder(path)
    for folder in ("evidence", "ends"):
        storage.private_folder(f"{path}/{folder}")
    if key is None:
        key = secrets.token_bytes(KEY_BYTES)
        streamed.write_whole(path, KEY, key.hex())
        _owners_alone(f"{path}/{KEY}")
    id = secrets.token_hex(16)
    known = {"version": VERSION, "id": id, "output": _absolute(output), "settings": settings}
    streamed.write_whole(path, SETTINGS, json.dumps(known, indent=2, ensure_ascii=False))
    return Checkpoint(path, id, False, key)


def _owners_alone(path: str) -> None:
    system, inside = storage.file_system(path)
    if isinstance(system, fs.LocalFileSystem):
        Path(inside).chmod(0o600)


def _own_key(path: str) -> bytes:
    system, inside = storage.file_system(path)
    try:
        with system.open_input_stream(f"{inside}/{KEY}") as stream:
            return bytes.fromhex(bytes(stream.read()).decode("ascii"))
    except (OSError, ValueError):
        raise SpecError(
            f"stream.checkpoint {path!r}: its key cannot be read, and without it batches would not come out the same again; put it back"
        ) from None


def _read(path: str) -> dict[str, Any] | None:
    system, inside = storage.file_system(path)
    if system.get_file_info(f"{inside}/{SETTINGS}").type != fs.FileType.File:
        return None
    try:
        with system.open_input_stream(f"{inside}/{SETTINGS}") as stream:
            known: dict[str, Any] = json.loads(bytes(stream.read()).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"stream.checkpoint {path!r}: its {SETTINGS} cannot be read ({error}); put it back") from None
    if known.get("version") != VERSION:
        raise SpecError(
            f"stream.checkpoint {path!r} is of format {known.get('version')}, this version reads {VERSION}; upgrade"
        )
    return known


def _same(path: str, known: Mapping[str, Any], output: str, settings: Mapping[str, Any]) -> None:
    if known["output"] != _absolute(output):
        raise SpecError(
            f"stream.checkpoint {path!r} is that of the stream at {known['output']!r}, and this one goes to {output!r}; each has its own"
        )
    was, asked = known["settings"], json.loads(json.dumps(settings))
    for name in [*was, *(name for name in asked if name not in was)]:
        if was.get(name) != asked.get(name):
            raise SpecError(
                f"stream.checkpoint {path!r} is that of a stream with other settings: {name} was {shown(was.get(name))} and is now "
                f"{shown(asked.get(name))}; ask for the same, or begin another stream with another checkpoint and output"
            )


def _agree(path: str, output: str, numbers: Sequence[int]) -> None:
    """Raises SpecError unless the batches of the output, ascending, are those that Spark has begun, and all that it has done with.

    Without its offsets, or with older ones, Spark would cut what arrived into other batches under the same numbers: some records would
    be shown twice, and some never.
    """
    committed, begun = _last(path, "commits"), _last(path, "offsets")
    last = max(committed, *numbers[-1:], -1)
    lost = min(set(range(last + 1)) - set(numbers), default=None)
    if lost is not None:
        raise SpecError(
            f"output.path {output!r} has lost batch {lost}, which the checkpoint at {path!r} has shown; put the release back, or "
            "begin another stream with another checkpoint and output"
        )
    if last > begun:
        raise SpecError(
            f"stream.checkpoint {path!r}: its state is lost or of an older time than output.path {output!r}, which holds batch {last}, and "
            "records would be shown twice; put the newest state back, or begin another stream with another checkpoint and output"
        )


def _last(path: str, log: str) -> int:
    """The newest batch of one of Spark's logs, -1 where there is none."""
    system, inside = storage.file_system(f"{path}/spark/{log}")
    infos = system.get_file_info(fs.FileSelector(inside, allow_not_found=True))
    return max((int(info.base_name) for info in infos if info.base_name.isdigit()), default=-1)


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)
