"""Whether a perturbed release keeps its promise, from what its tables hold and what its manifest says. Pure: facts to verdict.

Counts, shares, gammas and beliefs are compared exactly. Whether the values were really perturbed can only be told by chance: the
published counts are held against what the operators and the true counts of the sub-tables give (see `perturbed_statistics`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.audit import arithmetic, promised
from anonlib.audit import manifest as stated
from anonlib.audit.achieved import Bound, within_asked
from anonlib.audit.fields import nothing_else
from anonlib.audit.form import Described, column_faults, columns_check, contents, no_row_numbers
from anonlib.audit.perturbed.facts import MicrodataFacts, OperatorFacts, PerturbedFacts
from anonlib.audit.perturbed.requirement import Requirement, requirement_follows
from anonlib.audit.perturbed.statistics import FALSE_ALARM, Cells, plausible
from anonlib.audit.verdict import Check, Verdict
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import (
    DOMAIN_SIZE,
    GAMMA,
    GAMMA_EXACT,
    MICRODATA,
    OPERATORS,
    RETENTION,
    SIZE,
    operator_types,
    sensitive_columns,
)
from anonlib.spec.layouts import SUBTABLE
from anonlib.spec.release import Columns


def judge(facts: PerturbedFacts, manifest: Manifest, columns: Columns | None = None, staged: bool = False) -> Verdict:
    """The verdict on all that the published tables and the manifest show. Never raises.

    Without scans (`facts.operators` is None) the verdict is on the manifest and the columns alone: it tells whether a scan makes sense.
    """
    requirement = Requirement.of(manifest)
    checks = [
        stated.rows_add_up(manifest),
        stated.values_add_up(manifest),
        _schema(facts.columns, manifest, columns),
        requirement_follows(manifest, requirement),
        nothing_else(manifest),
    ]
    if len(sensitive_columns_of(manifest)) < 2 and requirement is not None:
        checks.append(_in_words(manifest, requirement, ()))
    if facts.too_large is not None:
        return Verdict((*checks, Check("operators", False, "one row per sub-table", facts.too_large)))
    operators, records = facts.operators, facts.records
    if not checks[2].passed or not checks[3].passed or requirement is None or operators is None or records is None:
        return Verdict(tuple(checks))
    measured = {MICRODATA: records.measured, OPERATORS: operators.measured}
    subtables = subtables_of(operators, records)
    checks += [_operators(operators, subtables), _conserved(manifest, operators)]
    achieved: dict[str | None, Fraction] = {}
    if len(sensitive_columns_of(manifest)) > 1:
        checks.append(_in_words(manifest, requirement, subtables or ()))
    if subtables is not None:
        achieved = _beliefs(subtables)
        checks += [
            _privacy(subtables, requirement),
            _within_asked(achieved, requirement),
            _achieved_as_stated(manifest, achieved, requirement, staged),
            _numbers(manifest, subtables, requirement),
            _sizes(subtables),
            _perturbed(subtables),
        ]
    checks += [
        _within_domains(records),
        _published_rows(manifest, records),
        no_row_numbers(MICRODATA, facts.numbering, records.measured.rows, records.ranges),
    ]
    checks += [contents(name, manifest.tables[name], of_table, staged) for name, of_table in measured.items()]
    if subtables is None:
        return Verdict(tuple(checks), tables=measured)
    numbers = {"rho1": text(requirement.rho1), "rho2": text(_largest(achieved, requirement))}
    return Verdict(tuple(checks), {v: text(b) for v, b in achieved.items()}, measured, numbers)


def sensitive_columns_of(manifest: Manifest) -> tuple[str, ...]:
    """The sensitive columns, none where the manifest lists no records."""
    return sensitive_columns(manifest) if MICRODATA in manifest.tables else ()


def _in_words(manifest: Manifest, requirement: Requirement, subtables: Sequence[SubTable]) -> Check:
    """The guarantee's words, and of several sensitive columns what may be believed of each alone, which the sub-tables tell."""
    columns = sensitive_columns_of(manifest)

    def expected() -> str:
        part, called = manifest.guarantee, " and ".join(columns)
        if part.sensitive.rstrip("_") != called.rstrip("_"):
            raise ValueError(f"{part.sensitive!r} is not the name of {columns}")
        said = promised.perturbed(called, part, requirement.rho1, requirement.rho2, requirement.protected)
        operators = [(t.values, t.counts, t.gamma) for t in subtables]
        return said if len(columns) == 1 else promised.of_columns(said, columns, operators)

    return promised.as_promised(manifest.guarantee, expected)


def _within_asked(achieved: Mapping[str | None, Fraction], requirement: Requirement) -> Check:
    """The largest belief in each protected value, and in any of them, is at most rho2."""
    bounds = [Bound("rho2", _largest(achieved, requirement), requirement.rho2)]
    guarded = sorted(requirement.protected & achieved.keys(), key=str)
    bounds += [Bound(f"the belief in {value!r}", achieved[value], requirement.rho2) for value in guarded]
    return within_asked(bounds)


@dataclass(frozen=True)
class SubTable:
    """A sub-table as the published tables have it."""

    number: int
    values: tuple[str | None, ...]
    counts: tuple[int, ...]
    observed: tuple[int, ...]
    size: int
    domain_size: int
    gamma: Fraction
    stated_gamma: float
    stated_retention: float

    @property
    def p(self) -> float:
        return float(arithmetic.retained(len(self.values), self.gamma))

    @property
    def q(self) -> float:
        return float(arithmetic.transition(len(self.values), self.gamma, same=False))


LEAST = Fraction(1, 10**100)
"""Doubles cannot reconstruct from a gamma nearer to 1 than this, or above its inverse; no table is long enough to have one."""
MOST = 1 << 62
"""No sub-table has more records."""


def subtables_of(operators: OperatorFacts, records: MicrodataFacts) -> list[SubTable] | None:
    """None when the operators are not such that anything could be computed from them."""
    held: dict[int | None, list[int]] = {}
    for i, entry in enumerate(operators.entries):
        held.setdefault(entry.subtable, []).append(i)
    subtables = []
    for line in operators.lines:
        number: Any = line[SUBTABLE]
        here = held.get(number, [])
        values = tuple(operators.entries[i].value for i in here)
        counts = tuple(operators.entries[i].count for i in here)
        try:
            gamma = exact(str(line[GAMMA_EXACT]))
        except AnonlibError:
            return None
        numbers: list[Any] = [line[name] for name in (SIZE, DOMAIN_SIZE, GAMMA, RETENTION)]
        if number is None or None in numbers or not here or any(c is None or c < 1 for c in counts):
            return None
        if not LEAST < gamma - 1 < 1 / LEAST or not 1 <= numbers[0] < MOST or sum(map(int, counts)) >= MOST:  # type: ignore[arg-type]
            return None
        observed = tuple(records.observed[i] for i in here)
        subtables.append(SubTable(number, values, counts, observed, numbers[0], numbers[1], gamma, *numbers[2:]))  # type: ignore[arg-type]
    if not subtables or sorted(t.number for t in subtables) != list(range(len(subtables))) or operators.uneven:
        return None
    return subtables if all(len(set(t.values)) == len(t.values) for t in subtables) else None


def _schema(tables: Described, manifest: Manifest, columns: Columns | None) -> Check:
    """The tables have exactly the manifest's columns and types, and none that may not be published."""
    asked = "exactly the columns and types of the manifest, none of them an identifier"
    if set(tables) != {MICRODATA, OPERATORS} or set(manifest.tables) != {MICRODATA, OPERATORS}:
        return Check("columns", False, asked, f"tables {sorted(tables)}; the manifest lists {sorted(manifest.tables)}")
    faults = [fault for table in (MICRODATA, OPERATORS) for fault in column_faults(tables, manifest, table)]
    present, sensitive = dict(tables[MICRODATA]), sensitive_columns(manifest)
    if present.get(SUBTABLE) != "int":
        faults.append(f"{MICRODATA} must have {SUBTABLE} int")
    if not sensitive or any(name not in present for name in sensitive):
        faults.append(f"{MICRODATA} lacks the sensitive column")
    else:
        layout = operator_types({name: present[name] for name in sensitive})
        if dict(tables[OPERATORS]) != layout:
            faults.append(f"{OPERATORS} must have {', '.join(f'{n} {t}' for n, t in layout.items())}")
    if columns is not None:
        own = {c.name.lower() for c in columns.sensitive}
        allowed = {n.lower() for n in (*columns.quasi_identifier_names, *columns.other, SUBTABLE)} | own
        faults += [f"{n!r} is not to be published" for n in present if n.lower() not in allowed]
        faults += [f"{MICRODATA} lacks the column {n!r}" for n in sorted(allowed - {n.lower() for n in present})]
    return columns_check(asked, faults)


def _operators(operators: OperatorFacts, subtables: Sequence[SubTable] | None) -> Check:
    """Each row of the operators is one in itself: size, domain, gamma and retention agree."""
    name, asked = "operators", "numbered sub-tables whose size, domain, gamma and retention agree"
    if subtables is None:
        return Check(
            name,
            False,
            asked,
            "a sub-table without a number, a size, a domain, counts of 1 or more, or a gamma above 1",
        )
    faults = []
    for t in subtables:
        if t.size != sum(t.counts):
            faults.append(f"sub-table {t.number}: size {t.size:,}, its counts sum to {sum(t.counts):,}")
        if t.domain_size != len(t.values):
            faults.append(f"sub-table {t.number}: domain_size {t.domain_size:,}, its domain has {len(t.values):,}")
        if not math.isclose(t.stated_gamma, float(t.gamma), rel_tol=1e-12):
            faults.append(f"sub-table {t.number}: gamma {t.stated_gamma}, exactly {text(t.gamma)}")
        if not math.isclose(t.stated_retention, t.p, rel_tol=1e-12):
            faults.append(f"sub-table {t.number}: retention {t.stated_retention}, gamma gives {t.p}")
    return Check(
        name, not faults, asked, f"{len(subtables):,} sub-tables, {len(faults):,} faults", "; ".join(faults[:3]) or None
    )


def _conserved(manifest: Manifest, operators: OperatorFacts) -> Check:
    """Over all sub-tables each value is counted as often as the manifest says."""
    counted: Counter[str | None] = Counter()
    for entry in operators.entries:
        counted[entry.value] += entry.count or 0
    wanted = {v.value: v.count for v in manifest.guarantee.values}
    wrong = sorted((v for v in counted.keys() | wanted.keys() if counted[v] != wanted.get(v, 0)), key=str)
    return Check(
        name="overall counts of sensitive values",
        passed=not wrong,
        asked="over all sub-tables each value as often as the manifest states",
        achieved=f"{len(wrong):,} values differ",
        evidence=f"{wrong[0]!r}: stated {wanted.get(wrong[0], 0):,}, the sub-tables have {counted[wrong[0]]:,}"
        if wrong
        else None,
    )


def _privacy(subtables: Sequence[SubTable], requirement: Requirement) -> Check:
    """No protected value of any sub-table can be believed with more than rho2, whatever was published: Bayes' rule over the operator."""
    faults, tightest = [], ""
    closest = (0, 1)
    for t in subtables:
        believed = arithmetic.beliefs(t.counts, t.gamma)
        guarded = [i for i, value in enumerate(t.values) if value in requirement.protected]
        if not guarded:
            continue
        worst = max(guarded, key=lambda i: Fraction(*believed[i]))
        share = believed[worst]
        words = (
            f"sub-table {t.number}: {t.values[worst]!r} believed with {text(Fraction(*share))} at gamma {text(t.gamma)}"
        )
        if not arithmetic.at_most(*share, requirement.rho2):
            faults.append(words)
        if arithmetic.largest_share((closest, share)) == share:
            closest, tightest = share, words
    return Check(
        name="(rho1, rho2)-privacy",
        passed=not faults,
        asked=f"no protected value believed with more than {text(requirement.rho2)}, in any sub-table",
        achieved=f"closest: {tightest or 'none'}" if not faults else f"{len(faults):,} sub-tables fail",
        evidence="; ".join(faults[:3]) or None,
    )


def _beliefs(subtables: Sequence[SubTable]) -> dict[str | None, Fraction]:
    """Value -> the largest belief in it that a published value may leave, over all sub-tables. Exact."""
    largest: dict[str | None, Fraction] = {}
    for t in subtables:
        for value, belief in zip(t.values, arithmetic.beliefs(t.counts, t.gamma), strict=True):
            largest[value] = max(largest.get(value, Fraction(0)), Fraction(*belief))
    return largest


def _largest(achieved: Mapping[str | None, Fraction], requirement: Requirement) -> Fraction:
    return max((b for v, b in achieved.items() if v in requirement.protected), default=Fraction(0))


def _achieved_as_stated(
    manifest: Manifest, achieved: Mapping[str | None, Fraction], requirement: Requirement, staged: bool
) -> Check:
    """The beliefs that the manifest prints are those of the tables."""
    faults = []
    for part in manifest.guarantee.values:
        belief = text(achieved[part.value]) if part.value in achieved else "none"
        if part.achieved != belief and not (staged and part.achieved is None):
            faults.append(f"{part.value!r}: stated {part.achieved}, found {belief}")
    stated, largest = manifest.guarantee.achieved.get("rho2"), text(_largest(achieved, requirement))
    if stated != largest and not (staged and stated is None):
        faults.append(f"rho2: stated {stated}, found {largest}")
    asked = "the largest belief in each value as the manifest states it"
    return Check("achieved beliefs", not faults, asked, f"{len(faults):,} differ", faults[0] if faults else None)


def _numbers(manifest: Manifest, subtables: Sequence[SubTable], requirement: Requirement) -> Check:
    """Sizes, retention and error bounds that the manifest states are those of the sub-tables."""
    n = sum(t.size for t in subtables)
    counts = [v.count for v in manifest.guarantee.values]
    shares = [Fraction(v.count, n) for v in manifest.guarantee.values if v.value in requirement.protected]
    recomputed: dict[str, float] = {"mean_retention": sum(t.size * t.p for t in subtables) / n}
    try:
        factor = arithmetic.confidence(exact(manifest.method.parameters.get("delta", "")))
    except (AnonlibError, ArithmeticError, ValueError):
        factor = math.nan
    recomputed["error_bound"] = sum(t.size * arithmetic.share_error(t.size, t.p, factor) for t in subtables) / n
    squares = sum(arithmetic.count_variance(t.counts, t.p) for t in subtables)
    recomputed["count_error"] = math.sqrt(squares / len(counts))
    if shares and max(shares) < requirement.rho2:
        p = float(arithmetic.retained(len(counts), arithmetic.bayes_factor(max(shares), requirement.rho2)))
        recomputed["uniform_retention"], recomputed["uniform_error_bound"] = p, arithmetic.share_error(n, p, factor)
        recomputed["uniform_count_error"] = math.sqrt(arithmetic.count_variance(counts, p) / len(counts))
    faults = [
        f"{name}: stated {manifest.utility[name]}, found {value}"
        for name, value in recomputed.items()
        if name in manifest.utility and not math.isclose(manifest.utility[name], value, rel_tol=1e-9)
    ]
    setting: Counter[int] = Counter()
    for part in manifest.solver.setting:
        setting[part.size] += part.number
    if setting != Counter(t.size for t in subtables):
        faults.append("the sizes of the sub-tables are not those that the manifest lists")
    if manifest.method.parameters.get("partitioning") == "whole" and len(subtables) != 1:
        faults.append(f"partitioning: whole, and {len(subtables):,} sub-tables")
    return Check(
        name="the manifest's numbers",
        passed=not faults,
        asked="sizes, retention and error bounds of the sub-tables as stated",
        achieved=f"{len(subtables):,} sub-tables retain {recomputed['mean_retention']:.2%}; {len(faults):,} differ",
        evidence="; ".join(faults[:3]) or None,
    )


def _sizes(subtables: Sequence[SubTable]) -> Check:
    """Each sub-table of `microdata` has as many records as the operators say."""
    faults = [
        f"sub-table {t.number}: size {t.size:,}, has {sum(t.observed):,}"
        for t in subtables
        if t.size != sum(t.observed)
    ]
    asked = "each sub-table as large in microdata as in operators"
    return Check("sizes of sub-tables", not faults, asked, f"{len(faults):,} differ", "; ".join(faults[:3]) or None)


def _perturbed(subtables: Sequence[SubTable]) -> Check:
    """The published counts are such as the stated perturbation gives."""
    cells = [
        Cells(t.p, t.q, np.array(t.counts, dtype=np.int64), np.array(t.observed, dtype=np.int64)) for t in subtables
    ]
    finding = plausible(cells)
    shown = None
    if not finding.passed and finding.worst is not None:
        t, at = subtables[finding.worst[0]], finding.worst[1]
        expected = cells[finding.worst[0]].expected[at]
        shown = f"sub-table {t.number}: {t.values[at]!r} published {t.observed[at]:,} times, {expected:,.1f} expected"
    asked = f"published counts as the operators give them (false alarm once in {1 / FALSE_ALARM:,.0f})"
    return Check("values are perturbed", finding.passed, asked, finding.words, shown)


def _within_domains(records: MicrodataFacts) -> Check:
    """Every published value is in the domain of its record's sub-table."""
    asked = "every record in a sub-table, its value in the sub-table's domain"
    return Check(
        "values within domains",
        not records.strangers,
        asked,
        f"{records.strangers:,} records are not",
        records.stranger,
    )


def _published_rows(manifest: Manifest, records: MicrodataFacts) -> Check:
    """`microdata` has as many rows as the manifest says were published."""
    published, number = manifest.rows.published, records.measured.rows
    return Check("published rows", number == published, f"{published:,}", f"{number:,} in {MICRODATA}")
