"""What the same noise every month would tell: all arrangements of a small table, all draws, two months, by enumeration. No Spark.

    python -m benchmarks.memoize [--counts 2 2 2] [--leave 1] [--rho2 1/2]

January has a sub-table of --counts records of each value, perturbed with the largest gamma that keeps --rho2. In February --leave of them
are gone, and whoever stays is shown with January's perturbed value. The adversary knows whose each row is and the exact counts that a
release tells, and weighs all worlds in which the months look as they do. Prints one Markdown table:

    one look          a person's own perturbed value, which is what rho2 bounds
    two draws         the same, and a second draw of it
    January           all rows of January, and the counts
    counted again     and February's, with the counts of those who are still there: what `memoize` would publish
    counts repeated   and February's, with January's counts as they were: who is gone is told, and no more

`largest` is the largest belief in a value of a person; `above` the chance that somebody is believed beyond rho2, `certain` the chance that
somebody's value is certain. A table so small tells more than one look by itself; what matters is what February adds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

from anonlib.exact import exact, text
from anonlib.privacy.rho_privacy import amplification

Row = tuple[int, ...]
Seen = Callable[[Row, Row], Hashable]
"""(true values, perturbed values) of January's persons -> what is seen of both months."""


@dataclass(frozen=True)
class Told:
    """largest : belief in a value of a person; above : chance that somebody is believed beyond rho2; certain : that a value is certain."""

    largest: Fraction
    above: Fraction
    certain: Fraction


def january(true: Row, shown: Row) -> Hashable:
    """All rows of January; its counts are the same in every world."""
    return shown


def counted_again(true: Row, shown: Row, leave: int) -> Hashable:
    """And February's rows, with the exact counts of those who are still there."""
    return shown, shown[leave:], tuple(sorted(true[leave:]))


def counts_repeated(true: Row, shown: Row, leave: int) -> Hashable:
    """And February's rows, with January's counts."""
    return shown, shown[leave:]


def arrangements(counts: Row) -> Iterator[Row]:
    """Every way in which so many persons may have each value.

    >>> list(arrangements((2, 1)))
    [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    """
    if not any(counts):
        yield ()
    for value, count in enumerate(counts):
        if count:
            rest = (*counts[:value], count - 1, *counts[value + 1 :])
            yield from ((value, *others) for others in arrangements(rest))


def enumerated(counts: Sequence[int], rho2: Fraction, seen: Seen) -> Told:
    """Every arrangement of the counts and every draw. Time grows with n! / (c_1! ... c_m!) m^n."""
    n, m = sum(counts), len(counts)
    gamma = amplification(Fraction(max(counts), n), rho2)
    # a draw's weight times gamma's denominator^n, so that all are whole numbers
    weight = [gamma.numerator**k * gamma.denominator ** (n - k) for k in range(n + 1)]
    worlds = list(arrangements(tuple(counts)))
    weights: defaultdict[Hashable, list[list[int]]] = defaultdict(lambda: [[0] * m for _ in range(n)])
    for true, shown in product(worlds, product(range(m), repeat=n)):
        chance = weight[sum(map(int.__eq__, true, shown))]
        for person, value in zip(weights[seen(true, shown)], true, strict=True):
            person[value] += chance
    return _told(weights.values(), rho2)


def looks(counts: Sequence[int], rho2: Fraction, draws: int) -> Told:
    """So many draws of one person's value, whatever the others are."""
    n, m = sum(counts), len(counts)
    gamma = amplification(Fraction(max(counts), n), rho2)
    return _told(
        [
            [[count * gamma ** shown.count(value) for value, count in enumerate(counts)]]
            for shown in product(range(m), repeat=draws)
        ],
        rho2,
    )


def _told(weights: Iterable[Sequence[Sequence[Fraction | int]]], rho2: Fraction) -> Told:
    """weights : for whatever may be seen, for each person and value, how likely it is together with what is seen, up to one factor."""
    largest, above, certain, total = (Fraction(0) for _ in range(4))
    for persons in weights:
        together = Fraction(sum(persons[0]))
        belief = max(max(person) for person in persons) / together
        largest, total = max(largest, belief), total + together
        above += together if belief > rho2 else 0
        certain += together if belief == 1 else 0
    return Told(largest, above / total, certain / total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[2, 2, 2])
    parser.add_argument("--leave", type=int, default=1)
    parser.add_argument("--rho2", type=exact, default=Fraction(1, 2))
    given = parser.parse_args()
    told = {name: looks(given.counts, given.rho2, draws) for draws, name in ((1, "one look"), (2, "two draws"))}
    told |= {
        name: enumerated(given.counts, given.rho2, seen)
        for name, seen in (
            ("January", january),
            ("counted again", partial(counted_again, leave=given.leave)),
            ("counts repeated", partial(counts_repeated, leave=given.leave)),
        )
    }
    print("| published | bound | largest | above | certain |\n|---|---|---|---|---|")
    for name, of in told.items():
        figures = " | ".join(f"{float(figure):.4f}" for figure in (of.largest, of.above, of.certain))
        print(f"| {name} | {text(given.rho2)} | {figures} |")


if __name__ == "__main__":
    main()
