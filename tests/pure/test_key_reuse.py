"""Which releases beside a new one forbid its key, by their manifests alone; and a warning where a key may lie on other disks."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from anonlib.errors import SpecError
from anonlib.release import reuse
from anonlib.release.storage import manifests_beside, place

TAG = "0f" * 16


def manifest(tag: str, checksum: str = "a", rows: int = 7) -> SimpleNamespace:
    part = SimpleNamespace(rows=rows, checksum=checksum)
    return SimpleNamespace(splits=SimpleNamespace(key_tag=tag), tables={"qit": part})


def text(tag: str, checksum: str = "a", rows: int = 7) -> str:
    return json.dumps({"splits": {"key_tag": tag}, "tables": {"qit": {"rows": rows, "checksum": checksum}}})


REFUSED = {
    "other rows": text(TAG, "b"),
    "fewer rows": text(TAG, rows=6),
    "other tables": text(TAG).replace("qit", "microdata"),
}
TAKEN = {
    "a repeated run": text(TAG),
    "another key": text("1f" * 16, "b"),
    "a fresh key": text("", "b"),
    "before there were tags": json.dumps({"splits": {}, "tables": {}}),
    "no manifest": "[1, 2]",
    "no JSON": "{",
    "a manifest without tables": json.dumps({"splits": {"key_tag": TAG}}),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_key_that_was_used_for_other_rows(kind: str) -> None:
    with pytest.raises(SpecError, match="the release at /r/one was made with the same key"):
        reuse.refuse(manifest(TAG), {"/r/zero": text(TAG), "/r/one": REFUSED[kind]})


def test_a_key_that_was_not() -> None:
    reuse.refuse(manifest(TAG), {f"/r/{kind}": found for kind, found in TAKEN.items()})
    reuse.refuse(manifest(""), {"/r/one": text("", "b")})


def test_the_releases_beside_a_path(tmp_path) -> None:
    for name, found in {"one": text(TAG), "two": "{", ".hidden": text(TAG)}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(found, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    found = manifests_beside(place(str(tmp_path / "new")))
    assert found == {str(tmp_path / "one"): text(TAG), str(tmp_path / "two"): "{"}
    assert manifests_beside(place(str(tmp_path / "nowhere" / "new"))) == {}


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"spark.master": "local[*]"}, False),
        ({"spark.master": "local"}, False),
        ({"spark.master": "local[2,4]"}, False),
        ({}, False),
        ({"spark.master": "yarn"}, True),
        ({"spark.master": "local-cluster[2,1,1024]"}, True),
        ({"spark.master": "spark://h:7077", "spark.io.encryption.enabled": "false"}, True),
        ({"spark.master": "spark://h:7077", "spark.io.encryption.enabled": "true"}, False),
    ],
)
def test_a_warning_where_the_key_may_lie_on_other_disks(settings: dict[str, str], warned: bool) -> None:
    pytest.importorskip("pyspark")
    from anonlib.engine.session import keys_on_disks

    said = keys_on_disks(SimpleNamespace(conf=SimpleNamespace(get=settings.get)))
    assert (said is not None) == warned
    assert said is None or "spark.io.encryption.enabled" in said
