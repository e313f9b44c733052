"""What a generalized release promises, number by number: asked against found, exactly.

The numbers are those of `guarantee.asked`; `anonlib.release.generalized` lists their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from anonlib.audit import arithmetic
from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.release.manifest import GuaranteePart, Manifest, ValuePart

OF_CLASSES = ("k", "distinct_l", "frequency_l", "beta", "enhanced_beta", "t")
OF_MATCHES = ("l", "beta")
AT_LEAST = ("k", "distinct_l", "frequency_l", "l")
"""Promises of which more may be found than was asked; of the others, less."""
_NAMES = {name: (name,) for name in OF_CLASSES} | {
    "l": ("l", "distinct_l", "frequency_l"),
    "beta": ("beta", "enhanced_beta"),
}
"""Parameter of a method -> the promises that may stand for it."""
SHARES = "achieved shares"


@dataclass(frozen=True)
class NodeCase:
    """What the matches of a record show of all values under one node of their hierarchy, and the records around a person.

    share, belief : the largest share among a record's matches, and among the records that match a person, each with the value it shows
    telling       : records all of whose matches have values under the node; where : of the share
    """

    share: Fraction = Fraction(0)
    belief: Fraction = Fraction(0)
    telling: int = 0
    where: str = "no partition"


@dataclass(frozen=True)
class WorstCases:
    """The worst that a class, or the matches of a record, shows of one sensitive column: what the release keeps. `where`: "class 7".

    shares   : {sensitive code: (its largest share in a class or among a record's matches, where)}
    fewest   : (the fewest different values in a class or among a record's matches, where)
    smallest : records of the smallest class; None without classes
    distance : (the largest earth mover's distance of a class from the table, where); None where none was asked for
    nodes    : {number of a node in the manifest: what shows of it}, of matches alone; those of which nothing shows are left out
    """

    shares: Mapping[int, tuple[Fraction, str]]
    fewest: tuple[int, str]
    smallest: int | None = None
    distance: tuple[Fraction, str] | None = None
    nodes: Mapping[int, NodeCase] = field(default_factory=dict)


def is_number(written: Any) -> bool:
    """Does the text spell a number?"""
    try:
        exact(written)
    except AnonlibError:
        return False
    return True


def readable(part: GuaranteePart, known: tuple[str, ...]) -> list[str]:
    """What is wrong with the promises as written, in sentences."""
    faults = [f"nobody can check the promise {name!r}" for name in part.asked if name not in known]
    for number in part.asked.values():
        try:
            exact(number)
        except AnonlibError as problem:
            faults.append(str(problem))
    return faults if part.asked else ["the manifest promises nothing"]


def follow_from_parameters(manifest: Manifest, part: GuaranteePart) -> Check:
    """The promises are the numbers that the method was asked for; the first sensitive column is promised all of them."""
    parameters = _flat(manifest.method.parameters, part.sensitive)
    faults = []
    for parameter, names in _NAMES.items():
        if parameters.get(parameter) is None:
            continue
        if not is_number(parameters[parameter]):
            faults.append(f"{parameter}: no number")
            continue
        wanted = exact(parameters[parameter])
        stated = [exact(part.asked[name]) for name in names if name in part.asked]
        if not stated and part is manifest.guarantee:
            faults.append(f"the method was asked for {parameter} = {text(wanted)}, the guarantee says nothing of it")
        faults += [
            f"{parameter}: asked {text(wanted)}, promised {text(number)}" for number in stated if number != wanted
        ]
    return Check.unless(
        faults,
        name=f"promises for {part.sensitive}",
        asked="the numbers of the method's parameters",
        achieved=", ".join(f"{name} = {number}" for name, number in part.asked.items()),
    )


def _flat(parameters: Mapping[str, Any], sensitive: str) -> dict[str, Any]:
    """The parameters, with those under `privacy` lifted, and of a number per sensitive column this column's."""
    nested = parameters.get("privacy")
    lifted = {**parameters, **(nested if isinstance(nested, Mapping) else {})}
    return {name: v.get(sensitive) if isinstance(v, Mapping) else v for name, v in lifted.items()}


def check_promises(part: GuaranteePart, cases: WorstCases, classes: bool) -> tuple[list[Check], dict[str, str]]:
    """(a check for each promise, {promise: what was found, as exact text})."""
    n = sum(value.count for value in part.values)
    shares = [Fraction(value.count, n) for value in part.values]
    group = "class" if classes else "record's matches"
    checks, numbers = [], {}
    for name, number in part.asked.items():
        asked = exact(number)
        if name == "t" and cases.distance is None:
            continue  # of a stream, without evidence of its windows
        if name == "k":
            assert cases.smallest is not None
            check = Check("k-anonymity", cases.smallest >= asked, f"k = {number}", f"smallest class {cases.smallest}")
            numbers[name] = str(cases.smallest)
        elif name == "distinct_l":
            few, where = cases.fewest
            check = Check("distinct l-diversity", few >= asked, f"l = {number}", f"{few} values in {where}")
            numbers[name] = str(few)
        elif name in ("frequency_l", "l"):
            check, numbers[name] = _diversity(part, cases, asked, name, group)
        elif name in ("beta", "enhanced_beta"):
            check, numbers[name] = _likeness(part, cases, asked, shares, name == "enhanced_beta", group)
        else:
            assert cases.distance is not None
            distance, where = cases.distance
            check = Check(
                "t-closeness",
                distance <= asked,
                f"t = {number}",
                f"{_rounded(distance)}, exactly {text(distance)}, in {where}",
            )
            numbers[name] = text(distance)
        checks.append(check)
    return checks, numbers


def _diversity(part: GuaranteePart, cases: WorstCases, asked: Fraction, name: str, group: str) -> tuple[Check, str]:
    """No value above a share of 1/l, and, for matches, l different ones."""
    code = max(cases.shares, key=lambda c: cases.shares[c][0], default=None)
    if code is None:
        return Check("l-diversity", False, f"l = {text(asked)}", "no listed sensitive value"), "0"
    share, where = cases.shares[code]
    few, place = cases.fewest
    words = f"{part.values[code].value!r} has a share of {text(share)} in {where}; {few} values at least"
    rare = arithmetic.l_kept(share.numerator, share.denominator, asked)
    passed = rare and (name != "l" or few >= asked)
    check = Check(
        "l-diversity" if name == "l" else "frequency l-diversity",
        passed,
        f"every value at most a share of {text(1 / asked)} of a {group}",
        words,
        None if passed else f"{place}: {few} different values" if rare else where,
    )
    return check, text(1 / share)


def _likeness(
    part: GuaranteePart, cases: WorstCases, beta: Fraction, shares: list[Fraction], enhanced: bool, group: str
) -> tuple[Check, str]:
    """psi_i <= (1 + beta) phi_i, or the enhanced bound."""
    gains = {code: arithmetic.gain(share, shares[code]) for code, (share, _) in cases.shares.items()}
    name = "enhanced beta-likeness" if enhanced else "beta-likeness"
    if not gains:
        return Check(name, False, f"beta = {text(beta)}", "no listed sensitive value"), "0"
    bound = {code: arithmetic.beta_bound(shares[code], beta, enhanced) for code in gains}
    broken = [code for code in gains if cases.shares[code][0] > bound[code]]
    worst = max(broken or gains, key=lambda code: gains[code])
    share, where = cases.shares[worst]
    check = Check(
        name,
        not broken,
        f"beta = {text(beta)}: every value at most {'(1 + min(beta, -ln p)) p' if enhanced else '(1 + beta) p'} of a {group}",
        f"largest gain {_rounded(max(gains.values()))}; {len(broken):,} values above their bound",
        f"{part.values[worst].value!r}: {text(share)} in {where}, {text(shares[worst])} in the table"
        if broken
        else None,
    )
    return check, text(max(gains.values()))


def within_thresholds(part: GuaranteePart, cases: WorstCases) -> Check:
    """No value above the threshold that the manifest states for it, where it states one."""
    broken = [
        f"{part.values[code].value!r}: {text(share)} in {where}, threshold {part.values[code].threshold}"
        for code, (share, where) in cases.shares.items()
        if part.values[code].threshold is not None and share > exact(str(part.values[code].threshold))
    ]
    stated = sum(value.threshold is not None for value in part.values)
    return Check(
        name=f"thresholds of {part.sensitive}",
        passed=not broken,
        asked=f"the {stated:,} thresholds that the manifest states" if stated else "no thresholds are stated",
        achieved=f"{len(broken):,} values above theirs",
        evidence=broken[0] if broken else None,
    )


def shares_as_stated(part: GuaranteePart, cases: WorstCases, staged: bool) -> tuple[Check, dict[str | None, str]]:
    """The largest share of each value, beside the manifest's `achieved`."""
    measured = {part.values[code].value: text(share) for code, (share, _) in cases.shares.items()}
    faults = [
        f"{value.value!r}: stated {value.achieved}, found {measured.get(value.value)}"
        for value in part.values
        if value.achieved != measured.get(value.value) and not (staged and value.achieved is None)
    ]
    asked = "the largest share of each value as the manifest states it"
    return Check.unless(faults, f"{SHARES} of {part.sensitive}", asked, f"{len(faults):,} differ"), measured


def of_stated_shares(part: GuaranteePart, counted: Mapping[str | None, int], staged: bool) -> list[Check]:
    """Of matches without evidence: whether what the manifest says was found of one sensitive column goes together. The shares that it
    states are possible, and its numbers are those that follow from them. No check for staged tables, whose evidence must be at hand.

    counted : {value: how many rows have it}. Every record is among the matches of as many records as match it, so a value's share among
    the matches is its share of the rows on average: the largest is no smaller.
    """
    if staged:
        return []
    rows = sum(counted.values())
    faults = [fault for value in part.values for fault in _impossible(value, counted.get(value.value, 0), rows)]
    asked = "of each value a largest share, no smaller than its share of the rows"
    possible = Check.unless(faults, f"{SHARES} of {part.sensitive}", asked, f"{len(faults):,} are not so")
    if faults:
        return [possible]
    shares = {i: (exact(v.achieved), "the manifest") for i, v in enumerate(part.values) if v.achieved is not None}
    _, numbers = check_promises(part, WorstCases(shares, (0, "nothing")), classes=False)
    return [possible, numbers_as_stated(part, numbers, staged)]


def _impossible(value: ValuePart, count: int, rows: int) -> list[str]:
    """What is wrong with the largest share that is stated of a value which `count` of the rows have."""
    if count == 0:
        return [] if value.achieved is None else [f"{value.value!r}: stated {value.achieved}, and no row has it"]
    if not is_number(value.achieved):
        return [f"{value.value!r}: stated {value.achieved}, which is no share"]
    least = Fraction(count, rows)
    if exact(value.achieved or "0") >= least:
        return []
    return [f"{value.value!r}: stated {value.achieved}, and {text(least)} of the rows have it"]


def numbers_as_stated(part: GuaranteePart, numbers: Mapping[str, str], staged: bool) -> Check:
    """What the manifest says was achieved is what was found."""
    faults = [
        f"{name}: stated {part.achieved.get(name)}, found {number}"
        for name, number in numbers.items()
        if part.achieved.get(name) != number and not (staged and name not in part.achieved)
    ]
    return Check.unless(
        faults,
        name=f"achieved numbers for {part.sensitive}",
        asked="what the manifest says was achieved",
        achieved=", ".join(f"{name} = {number}" for name, number in numbers.items()),
    )


def _rounded(number: Fraction) -> str:
    return f"{float(number):.6g}"
