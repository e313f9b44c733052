"""The release key: 256 bits, named in the spec by where it lies, never written in it.

Every draw of a release follows from its key. Who holds the key can undo what the draws hide, so it is read from the
environment or from a file that its owner alone may read, or made fresh and forgotten. A key that somebody could guess is none.

Tasks never get the release key itself: what they carry (and what Spark may leave on a worker's disk while they run) is the key of one
run, see `run_key`, from which no other release can be undone.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from anonlib.errors import SpecError
from anonlib.keyed import derive
from anonlib.spec.part import fault, without_secrets

KEY_BYTES = 32
HOW = 'make one with: python -c "import secrets; print(secrets.token_hex(32))"'
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")


def read_key_reference(reference: Any) -> str:
    """A reference to a key, "env:NAME" or "file:PATH". The message never repeats what was written: it may be the key itself."""
    if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        raise fault(
            "write where the key lies, env:NAME or file:PATH, and never the key itself, which would be copied wherever the spec goes; "
            "leave random out for a fresh key"
        )
    return reference


def resolve_key(
    reference: str | None,
    base_dir: str | Path | None = None,
    *,
    allow_open_key_file: bool = False,
    name: str = "random.key",
) -> bytes:
    """The 32 bytes of a release key, or of a ledger's.

    reference : "env:NAME" or "file:PATH", whose content is 64 hexadecimal digits; None for a fresh key from the operating system
    base_dir  : where a relative PATH starts, default the working directory
    allow_open_key_file : take a file that others than its owner may read
    name      : of the key in the spec, for messages

    Raises SpecError, which says where it looked and how to make a key, and never shows what it found.
    """
    if reference is None:
        return os.urandom(KEY_BYTES)
    kind, _, where = reference.partition(":")
    if kind == "env":
        written = os.environ.get(where)
        if written is None:
            shown = without_secrets(where)
            raise SpecError(f"{name}: the environment variable {shown} is not set; {HOW}, and export it as {shown}")
    elif kind == "file":
        path = Path(base_dir or ".") / os.path.expanduser(where)
        try:
            if not allow_open_key_file:
                _refuse_open(path, name)
            written = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise SpecError(
                f"{name}: the file {without_secrets(str(path))} cannot be read ({reason}); {HOW}, and save it there"
            ) from None
    else:
        raise SpecError(f"{name}: write where the key lies, env:NAME or file:PATH, and never the key itself")
    digits = written.strip()
    if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
        raise SpecError(
            f"{name}: {without_secrets(reference)} holds {len(digits)} characters that are not 64 hexadecimal digits; {HOW}"
        )
    key = bytes.fromhex(digits)
    if reason := weakness(key, digits):
        place = without_secrets(reference)
        raise SpecError(
            f"{name}: the key at {place} can be guessed ({reason}), and whoever guesses it undoes the release; {HOW}"
        )
    return key


def _refuse_open(path: Path, name: str) -> None:
    """Raises SpecError when others than the file's owner may read or write it; OSError when it is not there."""
    mode, shown = stat.S_IMODE(path.stat().st_mode), without_secrets(str(path))
    if os.name == "posix" and mode & 0o077:
        part, _, key = name.partition(".")
        allowed = f", or write {part}: {{key: ..., allow_open_key_file: true}}" if key else ""
        raise SpecError(
            f"{name}: others than its owner may open the file {shown} (mode {mode:04o}), and whoever has read the key can undo the "
            f"release: chmod 600 {shown}, and make a new key if somebody may have. Where the file system keeps no permissions, or mounts "
            f"secrets with its own, use env:NAME{allowed}"
        )


def weakness(key: bytes, digits: str | None = None) -> str | None:
    """Why a key cannot have been drawn at random; None when it can.

    One of 2^256 drawn keys is refused with a chance below 10^-9: of its 32 bytes, 16 or fewer different ones have 2e-15, 16 or fewer
    different steps from one to the next 3e-14, a byte that comes 8 times or more 2e-10, text alone 2e-14, decimal digits alone 9e-14.
    """
    steps = {(after - before) % 256 for before, after in pairwise(key)}
    if len(set(key)) <= KEY_BYTES // 2:
        return f"it has {len(set(key))} different bytes out of {KEY_BYTES}"
    if len(steps) <= KEY_BYTES // 2:
        return "its bytes follow a pattern"
    if max(Counter(key).values()) >= 8:
        return "a quarter of its bytes are the same"
    if all(32 <= byte < 127 for byte in key):
        return "its bytes are text"
    return "it has decimal digits alone" if (digits or key.hex()).isdecimal() else None


def run_key(key: bytes, method: str, parameters: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """The key of all draws of one kind of release: this method with these parameters over columns of these roles.

    It is what tasks carry. It says nothing of the release key, nor of the run key of another method, parameter or role; a repeated run
    (the same spec) has the same.
    """
    asked = json.dumps({"parameters": parameters, "columns": columns}, sort_keys=True, ensure_ascii=True)
    return derive(key, "run", method, asked)


def key_tag(run: bytes) -> str:
    """What tells two releases of one run key: 128 bits that a manifest may show, since nothing leads from them back to the key."""
    return derive(run, "public tag of a run's key")[:16].hex()
