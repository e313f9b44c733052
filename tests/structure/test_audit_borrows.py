"""The audit takes data and readers from the rest of the library, and no formula: every import of `anonlib.audit` is on this list."""

from __future__ import annotations

import ast
from pathlib import Path

AUDIT = Path(__file__).resolve().parents[2] / "anonlib" / "audit"

MAY = {
    "anonlib.domains": {"CategoricalDomain", "Domain", "NumericDomain"},
    "anonlib.hierarchy": {"hierarchy_of"},
    "anonlib.queries.boxes": {"Attribute", "BoxReader", "Intervals", "Sets", "column"},
    "anonlib.queries.box_members": {"MemberCounts", "sides"},
    "anonlib.spec.methods": {"METHODS", "read_method"},
    "anonlib.spec.part": {"Faults"},
    "anonlib.spec.release": {"Columns"},
}
"""What it may import from packages that hold formulas too; `anonlib.engine`, `release`, `exact`, `sql`, `words` and `errors` hold none."""
FREE = (
    "anonlib.arrays",
    "anonlib.audit",
    "anonlib.spec.layouts",
    "anonlib.engine",
    "anonlib.release",
    "anonlib.exact",
    "anonlib.sql",
    "anonlib.words",
    "anonlib.errors",
)
FORMULAS = {"penalty", "information_loss", "penalty_of_runs", "generalized_certainty_penalty"}
"""Methods of domains that compute what the audit must compute itself."""


def trees() -> list[tuple[str, ast.Module]]:
    return [
        (str(path.relative_to(AUDIT)), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(AUDIT.rglob("*.py"))
    ]


def test_what_the_audit_imports() -> None:
    for file, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("anonlib"):
                continue
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                fine = whole.startswith(FREE) or name.name in MAY.get(node.module or "", set())
                assert fine, f"{file} imports {whole}: the audit borrows no formula; if it is data, add it to MAY here"


def test_the_audit_calls_no_formula_of_domains() -> None:
    for file, tree in trees():
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        borrowed = {func.attr for func in calls if isinstance(func, ast.Attribute)} & FORMULAS
        assert not borrowed, f"{file} calls {borrowed}: compute it in anonlib.audit.arithmetic"
