"""The release key: not to be guessed, not to be read by others, not to be shown, not to be carried to workers."""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

import pytest

from anonlib.errors import SpecError
from anonlib.spec import load_spec, parse_spec, resolve_key
from anonlib.spec.keys import key_tag, run_key, weakness

KEY = "dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b"
GUESSED = {
    "zeros": "00" * 32,
    "one byte": "a5" * 32,
    "two bytes": "a55a" * 16,
    "a word's digits": "0123456789abcdef" * 4,
    "half a key twice": KEY[:32] * 2,
    "ascending": bytes(range(32)).hex(),
    "descending by three": bytes(255 - 3 * i for i in range(32)).hex(),
    "padded with zeros": KEY[:44] + "00" * 10,
    "text": b"correct horse battery staple 123".hex(),
    "decimal digits": "8273645190273645182736451928374650192837465019283746501928374650",
}


@pytest.mark.parametrize("kind", GUESSED)
def test_a_key_that_can_be_guessed_is_refused_and_not_shown(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUESSED_KEY", GUESSED[kind])
    with pytest.raises(SpecError, match="can be guessed") as caught:
        resolve_key("env:GUESSED_KEY")
    assert GUESSED[kind] not in str(caught.value)
    assert "secrets.token_hex(32)" in str(caught.value)


def test_drawn_keys_are_taken() -> None:
    """20,000 keys; one is refused with a chance of 4e-10, so the test fails a right rule once in 100,000 runs."""
    assert not [key for key in (secrets.token_bytes(32) for _ in range(20_000)) if weakness(key)]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o666, 0o620, 0o602])
def test_a_key_file_that_others_may_open(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    path.write_text(KEY, encoding="ascii")
    path.chmod(mode)
    with pytest.raises(SpecError, match=f"mode 0{mode:o}.*chmod 600") as caught:
        resolve_key(f"file:{path}")
    assert KEY not in str(caught.value)
    assert resolve_key(f"file:{path}", allow_open_key_file=True) == bytes.fromhex(KEY)
    path.chmod(0o600)
    assert resolve_key(f"file:{path}") == bytes.fromhex(KEY)


def minimal(**more: object) -> dict[str, object]:
    return {
        "input": {"path": "in"},
        "output": {"path": "out"},
        "columns": {"quasi_identifiers": ["age"], "sensitive": "illness"},
        "method": {"anatomy": {"l": 2}},
        **more,
    }


SPELLINGS = {
    "as it is": KEY,
    "in capitals": KEY.upper(),
    "with a prefix": "0x" + KEY,
    "by bytes": ":".join(KEY[i : i + 2] for i in range(0, 64, 2)),
    "base 64": base64.b64encode(bytes.fromhex(KEY)).decode(),
    "base 64 for addresses": base64.urlsafe_b64encode(bytes.fromhex(KEY)).decode(),
}
PLACES = {
    "one level too high": lambda k: minimal(random=k),
    "in a list": lambda k: minimal(random=[k]),
    "as a name": lambda k: minimal(random={k: None}),
    "as a name with a value": lambda k: minimal(random={k: "env:X"}),
    "under a misspelt name": lambda k: minimal(random={"kye": k}),
    "as the key": lambda k: minimal(random={"key": k}),
    "as the key's name": lambda k: minimal(random={"key": {k: k}}),
    "as a flag": lambda k: minimal(random={"allow_open_key_file": k}),
    "as a name at the top": lambda k: minimal(**{k: "env"}),
    "as the method": lambda k: minimal(method=k),
    "as the method's name": lambda k: minimal(method={k: {}}),
    "as a parameter": lambda k: minimal(method={"anatomy": {"l": k}}),
    "as a column's type": lambda k: minimal(columns={"quasi_identifiers": [{"name": "a", "type": k}], "sensitive": "b"}),
    "as the audit": lambda k: minimal(audit=k),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("place", PLACES)
def test_no_message_repeats_a_key(place: str, spelling: str) -> None:
    secret = SPELLINGS[spelling]
    with pytest.raises(SpecError) as caught:
        parse_spec(PLACES[place](secret))
    for start in range(len(secret) - 12):
        assert secret[start : start + 12] not in str(caught.value)


@pytest.mark.parametrize("reference", [f"env:A{KEY}", f"file:{KEY}", f"file:keys/{KEY}.key"])
def test_a_key_taken_for_a_name_is_not_repeated(reference: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve_key(reference)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [f"random: {KEY}\n", f"{KEY}: 1\n{KEY}: 2\n", f"random: *{KEY}\n", f"random: !{KEY} x\n", f"random: {{{KEY}\n"],
)
def test_no_message_about_the_file_repeats_a_key(tmp_path: Path, text: str) -> None:
    (tmp_path / "release.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec(tmp_path / "release.yaml")
    assert KEY not in str(caught.value)


def test_other_words_are_repeated_as_before() -> None:
    """Long paths and column names stand in messages."""
    path = "/data/Hospital_7/exports/2026-11-28/patients_with_a_very_long_name_indeed.parquet"
    with pytest.raises(SpecError, match="patients_with_a_very_long_name_indeed"):
        parse_spec(minimal(input={"path": path}, output={"path": path}))


def test_what_tasks_carry_is_not_the_release_key() -> None:
    """Another method, parameter or role has another key, so that one found on a worker's disk undoes no other release."""
    release, columns = bytes.fromhex(KEY), {"sensitive": ["illness"]}
    found = [
        run_key(release, *asked)
        for asked in (
            ("perturb", {"rho2": "1/3"}, columns),
            ("perturb", {"rho2": "1/4"}, columns),
            ("sabre", {"rho2": "1/3"}, columns),
            ("perturb", {"rho2": "1/3"}, {"sensitive": ["job"]}),
            ("perturb", {}, columns),
        )
    ]
    assert len({*found, release}) == 6
    assert found[0] == run_key(release, "perturb", {"rho2": "1/3"}, columns)
    tags = {key_tag(key) for key in found}
    assert len(tags) == 5
    assert not [tag for tag in tags for key in (release, *found) if tag in key.hex()]
