"""Whether a stream may go on: its checkpoint and its output must agree, and nobody else may be at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonlib.errors import SpecError
from anonlib.release.manifest import Manifest
from anonlib.streams import checkpoint

KEY = bytes(range(32))


class Stream:
    """The files that tell how far a stream is, without what is in them."""

    def __init__(self, path: Path) -> None:
        self.path, self.private, self.output = path, path / "private", path / "out"
        self.id = self.claimed().id

    def claimed(self) -> checkpoint.Checkpoint:
        return checkpoint.claimed(str(self.private), str(self.output), {"stream.window": 300}, KEY)

    def begun(self, batch: int) -> None:
        self._log("offsets", batch)

    def shown(self, batch: int) -> None:
        (self.output / "batches").mkdir(parents=True, exist_ok=True)
        (self.output / "batches" / f"{batch:06d}.json").write_text("{}")

    def done(self, batch: int) -> None:
        self._log("commits", batch)

    def _log(self, name: str, batch: int) -> None:
        folder = self.private / "spark" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(batch)).touch()


@pytest.fixture
def stream(tmp_path, monkeypatch) -> Stream:
    stream = Stream(tmp_path)
    part = type("Part", (), {"id": stream.id})
    manifest = type("Batch", (), {"stream": part})
    monkeypatch.setattr(Manifest, "from_json", lambda _: manifest)
    return stream


def test_a_stream_goes_on_wherever_it_was_killed(stream):
    assert stream.claimed().id == stream.id
    for batch in range(3):
        for step in (stream.begun, stream.shown, stream.done):
            step(batch)
            assert stream.claimed().begun


def three(stream: Stream) -> None:
    for batch in range(3):
        stream.begun(batch)
        stream.shown(batch)
        stream.done(batch)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_batch_that_is_gone_is_told(stream, lost):
    three(stream)
    (stream.output / "batches" / f"{lost:06d}.json").unlink()
    with pytest.raises(SpecError, match=f"has lost batch {lost}, which the checkpoint"):
        stream.claimed()


@pytest.mark.parametrize("left", [0, 2])
def test_a_state_that_is_gone_or_older_than_the_output_would_show_records_twice(stream, left):
    three(stream)
    for log in ("offsets", "commits"):
        for batch in range(left, 3):
            (stream.private / "spark" / log / str(batch)).unlink()
    with pytest.raises(SpecError, match="holds batch 2, and records would be shown twice"):
        stream.claimed()


def test_one_run_at_a_time(tmp_path):
    path = str(tmp_path / "new" / "private")
    with checkpoint.held(path):
        with pytest.raises(SpecError, match="another run of this stream is at work"), checkpoint.held(path):
            raise AssertionError
        checkpoint.claimed(path, str(tmp_path / "out"), {}, KEY)
    with checkpoint.held(path):
        assert (Path(path).stat().st_mode & 0o777) == 0o700
