"""Whether the matches of records keep what is promised of nodes of the sensitive values' hierarchy, and of values with a threshold of their
own. Pure: facts to checks.

What a node may be of the matches is counted match by match in the evidence; the pools that a method made are not taken up here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from anonlib.audit.achieved import Bound
from anonlib.audit.generalized.promises import NodeCase, is_number
from anonlib.audit.nodes import thresholds_of, under
from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.release.manifest import GuaranteePart, Manifest

MATCHES = "nodes among the matches"
BELIEFS = "what may be believed of nodes"
OWN = "thresholds as asked"
SHARES = "achieved shares of nodes"
NOTHING = NodeCase()


def bounds_of_values(manifest: Manifest, part: GuaranteePart | None = None) -> list[Fraction]:
    """What each value may be of the records around a person: 1/l or (1 + beta) times its share of the table, or its own threshold where
    that is lower. part : of one of several sensitive columns, by default the first.

    Raises AnonlibError, KeyError, TypeError, ValueError or ZeroDivisionError where the manifest states none.
    """
    asked, values = manifest.method.parameters, (part or manifest.guarantee).values
    total = sum(v.count for v in values)
    if asked.get("l") is not None:
        bounds = [Fraction(1, int(asked["l"]))] * len(values)
    else:
        bounds = [(1 + exact(asked["beta"])) * Fraction(v.count, total) for v in values]
    own = thresholds_of(manifest)
    return [
        bound if v.value is None else min(bound, own.get(v.value, bound))
        for v, bound in zip(values, bounds, strict=True)
    ]


def as_asked(manifest: Manifest) -> list[Check]:
    """Of matches, a check for each sensitive column: the threshold of each value in the manifest is the one that follows from the
    parameters. Methods that match always state one of every value."""
    return [_column_as_asked(manifest, part) for part in (manifest.guarantee, *manifest.guarantee.also)]


def _column_as_asked(manifest: Manifest, part: GuaranteePart) -> Check:
    name = OWN if part is manifest.guarantee else f"{OWN} for {part.sensitive}"
    values, asked = part.values, "of every value the lower of its own threshold and of l's or beta's"
    try:
        limits = [min(Fraction(1), bound) for bound in bounds_of_values(manifest, part)]
        stated = [None if v.threshold is None else exact(v.threshold) for v in values]
    except (AnonlibError, AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as problem:
        return Check(name, False, asked, f"the parameters state no bound: {problem}")
    faults = [
        f"{v.value!r}: stated {v.threshold}, the parameters give {text(limit)}"
        for v, limit, threshold in zip(values, limits, stated, strict=True)
        if threshold != limit
    ]
    return Check.unless(faults, name, asked, f"{len(faults):,} of {len(values):,} are others")


def bounds(
    part: GuaranteePart, found: Mapping[int, NodeCase] | None, staged: bool = False
) -> tuple[list[Bound], list[str]]:
    """(what was found of each node with a threshold beside it, those of which nothing is known). found : None without evidence, where it is
    what the manifest says was found while the evidence was at hand; of staged tables it must be at hand."""
    known, missing = [], []
    for k, node in enumerate(part.nodes):
        if node.threshold is None:
            continue
        name = f"the share of values under {node.node!r}"
        if found is not None:
            known.append(Bound(name, found.get(k, NOTHING).share, exact(node.threshold)))
        elif not staged and is_number(node.achieved):
            known.append(Bound(name, exact(node.achieved or "0"), exact(node.threshold)))
        else:
            missing.append(name)
    return known, missing


def own_bounds(manifest: Manifest, staged: bool) -> tuple[list[Bound], list[str]]:
    """The same of all values, of matches without evidence: what the manifest says was found of them beside their threshold. Of a value with
    one of its own something must have been found."""
    known, missing, own = [], [], _names_with_their_own(manifest)
    for part in (manifest.guarantee, *manifest.guarantee.also):
        for value in part.values:
            if not is_number(value.threshold):
                continue  # `as_asked` says so
            name = f"the share of {value.value!r}" + (f" of {part.sensitive}" if manifest.guarantee.also else "")
            if not staged and is_number(value.achieved):
                known.append(Bound(name, exact(value.achieved or "0"), exact(value.threshold or "0")))
            elif value.value in own:
                missing.append(name)
    return known, missing


def _names_with_their_own(manifest: Manifest) -> set[str | None]:
    """The values and nodes that have a threshold of their own; none where the parameters are nothing of the kind."""
    try:
        return {*thresholds_of(manifest)}
    except (AnonlibError, AttributeError, KeyError, TypeError, ValueError):
        return set()


def of_graph(part: GuaranteePart, found: Mapping[int, NodeCase], staged: bool) -> list[Check]:
    """No node above its threshold among anybody's matches, nor among the records around anybody, and what the manifest says of each is what
    the evidence shows."""
    if not part.nodes:
        return []
    return [_among_matches(part, found), *_believed(part, found), _as_stated(part, found, staged)]


def _among_matches(part: GuaranteePart, found: Mapping[int, NodeCase]) -> Check:
    asked, _ = bounds(part, found)
    broken = [
        f"{bound} in {case.where}" for bound, case in zip(asked, _limited(part, found), strict=True) if not bound.kept
    ]
    closest = max(asked, key=lambda bound: bound.achieved / bound.asked, default=None)
    told = "no node has a threshold" if closest is None else f"closest: {closest}"
    return Check.unless(broken, MATCHES, "every node within its threshold among the matches of every record", told)


def _believed(part: GuaranteePart, found: Mapping[int, NodeCase]) -> list[Check]:
    limits = [node for node in part.nodes if node.threshold is not None]
    if not limits:
        return []
    believed = [
        Bound(f"the belief in {node.node!r}", case.belief, exact(node.threshold or "0"))
        for node, case in zip(limits, _limited(part, found), strict=True)
    ]
    broken = [str(bound) for bound in believed if not bound.kept]
    closest = max(believed, key=lambda bound: bound.achieved / bound.asked)
    asked = "every node within its threshold among the records that match a person"
    return [Check.unless(broken, BELIEFS, asked, f"closest: {closest}")]


def _limited(part: GuaranteePart, found: Mapping[int, NodeCase]) -> Sequence[NodeCase]:
    return [found.get(k, NOTHING) for k, node in enumerate(part.nodes) if node.threshold is not None]


def _as_stated(part: GuaranteePart, found: Mapping[int, NodeCase], staged: bool) -> Check:
    faults = []
    for k, node in enumerate(part.nodes):
        case = found.get(k, NOTHING)
        if staged and node.achieved is None and node.telling is None:
            continue
        if (node.achieved, node.telling) != (text(case.share), case.telling):
            faults.append(
                f"{node.node!r}: stated {node.achieved}, {node.telling} records; found {text(case.share)}, {case.telling:,}"
            )
    wanted = "the largest share of each node and the records it is told of, as the manifest states them"
    return Check.unless(faults, SHARES, wanted, f"{len(faults):,} differ")


def of_stated_shares(part: GuaranteePart, counted: Mapping[str | None, int], staged: bool) -> list[Check]:
    """Of matches without evidence: whether what the manifest says was found of each node goes with the rows, and with what it says of the
    values under the node. No check for staged tables, whose evidence must be at hand.

    counted : {value: how many rows have it}. A node's share is on average that of the rows, at least that of any value under it and at most
    that of all of them; and it is 1 exactly where there are records that it is told of.
    """
    if staged or not part.nodes:
        return []
    rows = sum(counted.values())
    shares = {v.value: exact(v.achieved) for v in part.values if v.achieved is not None and is_number(v.achieved)}
    faults = []
    for node, values in zip(part.nodes, under(part), strict=True):
        of_rows = Fraction(sum(counted.get(v, 0) for v in values), max(1, rows))
        least = max([of_rows, *(shares[v] for v in values if v in shares)])
        most = min(Fraction(1), sum((shares.get(v, Fraction(counted.get(v, 0) > 0)) for v in values), Fraction(0)))
        if not is_number(node.achieved) or not least <= exact(node.achieved or "0") <= most:
            faults.append(f"{node.node!r}: stated {node.achieved}, it can be {text(least)} to {text(most)}")
        elif (
            node.telling is None
            or not 0 <= node.telling <= rows
            or (node.telling > 0) != (exact(node.achieved or "0") == 1)
        ):
            faults.append(
                f"{node.node!r}: stated to be told of {node.telling} records, with a share of {node.achieved}"
            )
    return [
        Check.unless(
            faults, SHARES, "of each node a share that the rows and its values allow", f"{len(faults):,} are not so"
        )
    ]
