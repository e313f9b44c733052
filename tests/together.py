"""Several runs side by side that share the work: each test module is run by the run that comes to it first, so that all end together.

`pytest --together FOLDER ...`, with the same folder, empty at first, and the same other arguments for each run. A module is claimed by
making a file in the folder, which one run alone can do; its tests stay together, since they share what they publish. Modules that
share a fixture which is dear, as a mark `one_run` says of one of their tests or more, go to one run too, which makes it once. A run
ends when every module is claimed, and what it claimed it has run, so that no test is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby, pairwise
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--together", metavar="FOLDER", type=Path, help="share the work with other runs; see tests/together.py"
    )


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """pytest's own loop over the tests of claimed modules. None, which leaves it to pytest, without the option."""
    folder = session.config.getoption("--together")
    if folder is None or session.testsfailed or session.config.option.collectonly:
        return None
    for item, later in pairwise(chain(claimed(session.items, folder), [None])):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=later)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True


def claimed(items: Iterable[pytest.Item], folder: Path) -> Iterator[pytest.Item]:
    """The tests of modules that no other run has claimed; a module is claimed when its first test is asked for."""
    items, own = list(items), set()
    shared = {item.path: str(mark.args[0]) for item in items if (mark := item.get_closest_marker("one_run"))}
    for path, tests in groupby(items, lambda item: item.path):
        name = shared.get(path) or "-".join(path.parts[-3:])
        if name not in own:
            try:
                (folder / name).touch(exist_ok=False)
            except FileExistsError:
                continue
            own.add(name)
        yield from tests
