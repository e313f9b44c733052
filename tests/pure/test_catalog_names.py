"""Names of a release's tables in a catalog: what the session adds to those of the spec, and what a manifest may say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.errors import SpecError
from anonlib.release import catalog


def session(own_catalog: str, own_schema: str) -> Any:
    own = {"currentCatalog": lambda: own_catalog, "currentDatabase": lambda: own_schema}
    return SimpleNamespace(catalog=SimpleNamespace(**own))


def test_the_session_adds_its_catalog_and_schema() -> None:
    assert catalog.names(session("main", "my-clinic"), "survey", ("st",)) == {"st": "main.my-clinic.survey_st"}
    assert catalog.names(session("main", "a.b"), "c.survey", ("st",)) == {"st": "main.c.survey_st"}


@pytest.mark.parametrize("schema", ["a.b", "my clinic", "Klinik für alle", ""])
def test_a_schema_of_the_session_that_no_manifest_can_state_is_refused_before_any_work(schema: str) -> None:
    with pytest.raises(SpecError, match=r"output.table: 'survey' would be 'main\..*write a catalog and a schema"):
        catalog.names(session("main", schema), "survey", ("qit", "st"))


def test_a_manifest_that_names_a_table_the_release_has_not_is_refused() -> None:
    manifest = SimpleNamespace(stream=None, catalog={"raw": "main.clinic.raw"}, tables={"qit": None, "st": None})
    release: Any = SimpleNamespace(path="releases/r", spark=None, manifest=manifest)
    with pytest.raises(SpecError, match="names 'raw' in a catalog, which is no table of the release"):
        catalog.names_of(release, None)
