"""What a manifest says of a release, in lines that a person reads: rows, what was chosen, what was asked. Pure."""

from __future__ import annotations

from anonlib.errors import SpecError
from anonlib.exact import exact, legible
from anonlib.release.manifest import GuaranteePart, Manifest, RowsPart, SolverPart
from anonlib.spec.methods import METHODS

OF_TWO_SIZES = "two_size"
"""The solver whose best is the best of settings of at most two sizes."""


def rows_line(rows: RowsPart) -> str:
    """Where every row that was read has gone, and what is published besides that belongs to nobody.

    >>> rows_line(RowsPart(input=9, published=8, dropped=1, dummy=2))
    '9 read = 8 published + 0 suppressed + 1 dropped; beside them 2 dummies, rows that belong to nobody'
    """
    line = f"{rows.input:,} read = {rows.published:,} published + {rows.suppressed:,} suppressed + {rows.dropped:,} dropped"
    if rows.dummy:
        line += f"; beside them {rows.dummy:,} dummies, rows that belong to nobody"
    if rows.fake:
        line += f"; beside their values {rows.fake:,} fake ones, listed in buckets and nobody's"
    return line


def chosen_line(solver: SolverPart) -> str:
    """The solver, and what is proven of its choice."""
    if solver.loss is None or solver.gap is None:
        return f"{solver.name}: {solver.status}"
    return proven(solver.name, solver.status, solver.gap)


def proven(solver: str, status: str, gap: float) -> str:
    """What is proven of a choice of buckets. gap : (loss - bound) / loss, 0 of the best there is.

    >>> proven("optimal", "optimal", 0.0), proven("optimal", "time_limit", 0.0000123)
    ('optimal: proven to be the best', 'optimal: stopped at its time limit, proven within 0.01% of the best')
    """
    among = " of at most two sizes" if solver == OF_TWO_SIZES else ""
    if gap == 0:
        return f"{solver}: proven to be the best{among}"
    stopped = "stopped at its time limit, " if status == "time_limit" else ""
    return f"{solver}: {stopped}proven within {max(gap, 0.0001):.2%} of the best{among}"


def bounds_lines(manifest: Manifest) -> list[tuple[str, str]]:
    """(name, what was asked of it and achieved) of each number of the promise; one that the spec did not ask for is not told as asked.

    A parameter that the spec leaves out, or gives as it is when left out, is not asked for: k = 1 of every class, the rho1 under which
    every value is protected, the enhanced bound that comes with `burel`.
    """
    lines = []
    for part in promises(manifest):
        of = "" if part is manifest.guarantee else f" of {part.sensitive}"
        lines += [
            (f"{name}{of}", _bound(_asked_for(manifest, name), number, part.achieved.get(name)))
            for name, number in part.asked.items()
        ]
    return lines


def promises(manifest: Manifest) -> list[GuaranteePart]:
    """What is promised, column by column, each in words of its own. Of two bucketized columns the words on combinations say it of both."""
    return [manifest.guarantee, *([] if manifest.layout == "bucketized" else manifest.guarantee.also)]


def _bound(is_asked: bool, number: str, achieved: str | None) -> str:
    stated = f"asked {_legible(number)}" if is_asked else f"not asked for, and kept at {_legible(number)}"
    return stated + (f", achieved {_legible(achieved)}" if achieved else "")


def _asked_for(manifest: Manifest, name: str) -> bool:
    parameters, method = manifest.method.parameters, METHODS.get(manifest.method.name)
    if method is None or name not in method.model_fields:
        return False
    given, default = parameters.get(name), method.model_fields[name].default
    return given is not None and str(given) != str(default)


def _legible(number: str) -> str:
    try:
        return legible(exact(number))
    except SpecError:  # a manifest may say what it likes
        return number
