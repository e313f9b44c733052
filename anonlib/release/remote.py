"""File systems that are not local, as PyArrow reaches them; the first word with each store has a limit of time.

A store that does not answer is waited for by its client for minutes (Google's: a quarter of an hour), inside C++ code that no Ctrl-C
reaches. So the first contact runs in a thread of its own, which is left behind when it has not come back by `PATIENCE`.
"""

from __future__ import annotations

import threading
from typing import Any

from pyarrow import fs

from anonlib.errors import SpecError

PATIENCE = 15.0
"""Seconds that a store has for its first answer, credentials included."""

_answered: set[str] = set()
"""Stores (scheme and host, or bucket) that have answered in this process."""


def remote_system(path: str) -> tuple[Any, str]:
    """PyArrow's file system of a URI, and the path there. Cost: one request to a store that was not asked before.

    Raises SpecError when PyArrow does not know the scheme, or the store refuses or does not answer within `PATIENCE`.
    """
    scheme, _, rest = path.partition("://")
    uri = f"s3://{rest}" if scheme in ("s3a", "s3n") else path
    store = f"{scheme}://{rest.partition('/')[0]}"
    if store in _answered:
        return _opened(uri, path)
    contact = _Contact(uri)
    contact.start()
    contact.join(PATIENCE)
    if contact.is_alive():
        raise SpecError(
            f"{path!r}: this file system did not answer within {PATIENCE:.0f} s; check its name, the network and the credentials of the "
            "driver, or use a path that is mounted"
        )
    if contact.problem is not None:
        raise SpecError(_unreachable(path, contact.problem)) from None
    _answered.add(store)
    return contact.system, contact.inside


class _Contact(threading.Thread):
    """Opens a file system and asks it for one path; a daemon, so that the process can end without it."""

    system: Any
    inside: str

    def __init__(self, uri: str) -> None:
        super().__init__(daemon=True)
        self._uri = uri
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            self.system, self.inside = _from_uri(self._uri)
            self.system.get_file_info(self.inside)
        except Exception as problem:  # every backend has its own
            self.problem = problem


def _from_uri(uri: str) -> tuple[Any, str]:
    system, inside = fs.FileSystem.from_uri(uri)
    return system, inside


def _opened(uri: str, path: str) -> tuple[Any, str]:
    try:
        system, inside = _from_uri(uri)
    except Exception as problem:
        raise SpecError(_unreachable(path, problem)) from None
    return system, inside


def _unreachable(path: str, problem: Exception) -> str:
    said = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    return f"{path!r}: the driver cannot reach this file system ({said}); use a path the driver can write, or a mounted one"
