"""What an audit sees of a release, apart from what it makes of it: facts gathered once may be judged beside many manifests."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from anonlib import workflow
from anonlib.audit.verdict import Verdict
from anonlib.release.manifest import Manifest
from anonlib.release.opened import open_release


@dataclass(frozen=True)
class Gathered:
    """facts : of the layout's own kind; judge : the layout's judge; verdict : of the whole audit, with the folder and the original."""

    facts: Any
    judge: Callable[..., Verdict]
    manifest: Manifest
    verdict: Verdict

    def failures(self, manifest: Manifest | None = None, **more: Any) -> set[str]:
        """The checks that fail when these tables lie beside `manifest`: its own, if none is given. `more` goes to the judge. No Spark."""
        return {check.name for check in self.judge(self.facts, manifest or self.manifest, **more).failures}

    def with_columns(self, table: str, change: Callable[[list[Any]], list[Any]]) -> Gathered:
        """The same tables, one of which has other columns: what every audit looks at first."""
        other = {**self.facts.columns, table: tuple(change(list(self.facts.columns[table])))}
        return replace(self, facts=replace(self.facts, columns=other))

    def fitted(self) -> Manifest:
        """The manifest with the tables' rows and checksums as they are, as whoever may edit it would write."""
        measured = self.verdict.tables
        tables = {
            name: part.model_copy(update={"rows": measured[name].rows, "checksum": measured[name].checksum})
            for name, part in self.manifest.tables.items()
            if name in measured
        }
        return self.manifest.model_copy(update={"tables": self.manifest.tables | tables})


def gathered(spark: Any, path: Path, original: Any = None) -> Gathered:
    """The audit of the release at `path`, and what it saw."""
    release = open_release(spark, str(path))
    module = importlib.import_module(f"anonlib.audit.{release.manifest.layout}.audit")
    judge, seen = module.judge, []

    def recorded(facts: Any, *more: Any) -> Verdict:
        seen.append(facts)
        return judge(facts, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "judge", recorded)
        verdict = workflow.audit(release, original)
    return Gathered(seen[-1], judge, release.manifest, verdict)
