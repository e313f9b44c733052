"""What machine a benchmark ran on, and how much memory a process tree holds. Linux only; elsewhere the figures are left out."""

from __future__ import annotations

import os
import platform
import threading
from pathlib import Path


def facts() -> str:
    """One line: processors, memory, Python, platform."""
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        "unknown processor",
    )
    memory = next(
        (int(line.split()[1]) / 2**20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0.0
    )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"{os.cpu_count()} x {model}, {memory:.0f} GB, {platform.system()}, Python {platform.python_version()}, load {load:.1f} at start"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


class PeakMemory:
    """Samples the resident memory, MB, of this process (`python`), of its child JVM (`jvm`) and of the largest Python process that the JVM
    runs tasks in (`task`), twice a second, while the block runs."""

    def __enter__(self) -> PeakMemory:
        self.python = self.jvm = self.task = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.5):
            self.python = max(self.python, _resident(os.getpid()))
            for child in _children(os.getpid()):
                if "java" in _name(child):
                    self.jvm = max(self.jvm, _resident(child))
                    self.task = max([self.task, *map(_resident, _descendants(child))])


def _resident(pid: int) -> float:
    """MB."""
    return next(
        (int(line.split()[1]) / 1024 for line in _lines(f"/proc/{pid}/status") if line.startswith("VmRSS")), 0.0
    )


def _name(pid: int) -> str:
    return "".join(_lines(f"/proc/{pid}/comm"))


def _descendants(pid: int) -> list[int]:
    children = _children(pid)
    return children + [below for child in children for below in _descendants(child)]


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in "".join(_lines(str(task))).split()
    ]
