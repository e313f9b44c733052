"""The release key: 256 bits, named in the spec by where it lies, never written in it.

Every draw of a release follows from its key. Who holds the key can undo what the draws hide, so it is read from the
environment or from a file, or made fresh and forgotten.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from anonlib.errors import SpecError
from anonlib.spec.part import fault

KEY_BYTES = 32
HOW = 'make one with: python -c "import secrets; print(secrets.token_hex(32))"'
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")


def read_key_reference(given: Any) -> str:
    """ "env:NAME" or "file:PATH". The message never repeats what was given: it may be the key itself."""
    if not isinstance(given, str) or not _REFERENCE.fullmatch(given):
        raise fault(
            "write where the key lies, env:NAME or file:PATH, and never the key itself, which would be copied wherever the spec goes; "
            "leave random out for a fresh key"
        )
    return given


def resolve_key(reference: str | None, base_dir: str | Path | None = None) -> bytes:
    """The 32 bytes of a release key.

    reference : "env:NAME" or "file:PATH", whose content is 64 hexadecimal digits; None for a fresh key from the operating system
    base_dir  : where a relative PATH starts, default the working directory

    Raises SpecError, which says where it looked and how to make a key, and never shows what it found.
    """
    if reference is None:
        return os.urandom(KEY_BYTES)
    kind, _, name = reference.partition(":")
    if kind == "env":
        written = os.environ.get(name)
        if written is None:
            raise SpecError(f"random.key: the environment variable {name} is not set; {HOW}, and export it as {name}")
    elif kind == "file":
        path = Path(base_dir or ".") / name
        try:
            written = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise SpecError(
                f"random.key: the file {path} cannot be read ({reason}); {HOW}, and save it there"
            ) from None
    else:
        raise SpecError("random.key: write where the key lies, env:NAME or file:PATH, and never the key itself")
    digits = written.strip()
    if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
        raise SpecError(
            f"random.key: {reference} holds {len(digits)} characters that are not 64 hexadecimal digits; {HOW}"
        )
    return bytes.fromhex(digits)
