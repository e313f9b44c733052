"""CPU seconds of this process and all it started, Java and Python workers too: what a test run costs, whatever else the machine does.

Standard library only. Reads /proc (Linux); where there is none, nothing is told.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def of_process_tree(root: int) -> float | None:
    """CPU seconds, user and system, of process `root`, its descendants that run, and those that ended and were waited for.

    None where the machine has no /proc. One pass over the machine's processes.
    """
    if not (PROC / "self" / "stat").exists():
        return None
    children, ticks = defaultdict(list), {}
    for process, parent, spent in _processes():
        children[parent].append(process)
        ticks[process] = spent
    total, left = 0, [root]
    while left:
        process = left.pop()
        total += ticks.get(process, 0)
        left += children[process]
    return total / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[int, int, int]]:
    """(process, parent, clock ticks spent by it and by the children it waited for) of every process."""
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            line = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended meanwhile
            continue
        # after the name, which stands in brackets and may hold anything: state, parent, ..., utime, stime, cutime, cstime (proc(5))
        fields = line[line.rindex(")") + 2 :].split()
        yield int(folder.name), int(fields[1]), sum(map(int, fields[11:15]))
