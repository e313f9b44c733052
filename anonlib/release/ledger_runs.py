"""Whether the run that made an entry of a ledger may still show its release."""

from __future__ import annotations

import calendar
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from anonlib.release.ledger_entry import Entry

PATIENCE = 600
"""Seconds that a run on another machine is given to show its release before another run takes it for dead."""


def still_runs(entry: Entry) -> bool:
    """Whether the run that made the entry may still show its release: on this machine, whether the process is there; elsewhere, for
    `PATIENCE`. A courtesy to it alone: what is taken for dead by mistake loses its staging folder, and publishes nothing."""
    if entry.machine == socket.gethostname():
        return entry.process == _process(int(entry.process.split()[1]))
    made = calendar.timegm(time.strptime(entry.time, "%Y-%m-%dT%H:%M:%SZ"))
    return time.time() - made < PATIENCE


def this_process() -> str:
    """This process, by number and start."""
    return _process(os.getpid())


def _process(number: int) -> str:
    """A process of this machine, by number and start; "process 0" when there is none, or what is left of one that was killed."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return "process 0"
    except OSError:
        pass
    started = ""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{number}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        if stat[0] in "ZX":  # nobody has fetched its exit code, as in a container whose first process fetches none
            return "process 0"
        started = stat[19]
    return f"process {number} {started}".strip()
