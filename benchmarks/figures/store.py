"""Measured rows as JSON beside the drawings, a row a line, so that the page can be written without measuring again."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.figures.figure import Figure, Measured, Row

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "figures"


def path(figure: Figure, folder: Path = FOLDER) -> Path:
    """Of a figure's rows."""
    return folder / f"{figure.name}.json"


def write(figure: Figure, measured: Measured, folder: Path = FOLDER) -> None:
    """Six digits of every number; whole ones as such."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(
        "  " + json.dumps([row.panel, row.curve, _short(row.x), _short(row.y)], ensure_ascii=False)
        for row in measured.rows
    )
    settings = json.dumps(measured.settings, ensure_ascii=False)
    text = f'{{"figure": "{figure.paper} {figure.item}",\n "settings": {settings},\n "rows": [\n{lines}\n ]}}\n'
    path(figure, folder).write_text(text, encoding="utf-8")


def read(figure: Figure, folder: Path = FOLDER) -> Measured | None:
    """None where it was never measured."""
    if not path(figure, folder).exists():
        return None
    told = json.loads(path(figure, folder).read_text(encoding="utf-8"))
    return Measured(told["settings"], tuple(Row(*row) for row in told["rows"]))


def _short(number: float) -> float:
    return int(number) if float(number).is_integer() else float(f"{number:.6g}")
