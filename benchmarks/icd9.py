"""ICD-9-CM codes under their chapters: code, three-digit category, chapter, any. For tables of diagnoses."""

from __future__ import annotations

from collections.abc import Iterable

from anonlib.hierarchy import Hierarchy, parse_hierarchy

CHAPTERS = (
    (139, "infectious"), (239, "neoplasms"), (279, "endocrine"), (289, "blood"), (319, "mental"), (389, "nervous"),
    (459, "circulatory"), (519, "respiratory"), (579, "digestive"), (629, "genitourinary"), (679, "pregnancy"),
    (709, "skin"), (739, "musculoskeletal"), (759, "congenital"), (779, "perinatal"), (799, "ill-defined"), (999, "injury"),
)  # fmt: skip
"""The last category of each chapter of numbers; V codes are supplementary, E codes external causes, anything else is unknown."""


def chapter(code: str) -> str:
    """The chapter of a code such as 250.83, V57 or E888."""
    if code[:1] in ("V", "E"):
        return {"V": "supplementary", "E": "external causes"}[code[0]]
    try:
        category = int(float(code))
    except ValueError:
        return "unknown"
    return next((name for last, name in CHAPTERS if 1 <= category <= last), "unknown")


def icd9(codes: Iterable[str]) -> Hierarchy:
    """The hierarchy over these codes."""
    rows = []
    for code in sorted(set(codes)):
        category = "category " + code.split(".")[0]
        rows.append(f"{code},{category},{chapter(code)},any\n")
    return parse_hierarchy("".join(rows))
