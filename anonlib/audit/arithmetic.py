"""The audit's own arithmetic: every formula that a promise or a measure rests on, written from its definition.

Nothing here comes from `anonlib.privacy`, which the methods use: an error made there must not be repeated here. Where a paper gives a
closed form, this module computes what the form stands for (a posterior belief by Bayes' rule over the operator's matrix, a retention
from the matrix's entries, an error bound from the tail it inverts), and two shares are compared by multiplying across. Pure; Fractions and
integers wherever something is promised, doubles in measures of worth alone. The earth mover's distance stands in `generalized_closeness`.

A share is a Fraction, a count an int. Sources are named by paper and section as in `docs/references.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from anonlib.arrays import Float64Array, Int64Array

# --- comparisons ----------------------------------------------------------------------------------------------------------------


def at_most(count: int, size: int, bound: Fraction) -> bool:
    """Is count / size <= bound? By multiplying across; an empty group keeps a bound only with no record in it."""
    return count * bound.denominator <= bound.numerator * size


def largest_share(cells: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Of (count, size) pairs, sizes positive, the one with the largest share. (0, 1) when there is none."""
    best = (0, 1)
    for count, size in cells:
        if count * best[1] > best[0] * size:
            best = (count, size)
    return best


# --- F'-privacy (generalized bucketization, section 3) -----------------------------------------------------------------------------


def threshold(
    count: int,
    n: int,
    theta: Fraction | None = None,
    offset: Fraction = Fraction(0),
    default: Fraction | None = None,
    own: Fraction | None = None,
) -> Fraction | None:
    """f' of a value with `count` of n records: its own, else min(1, theta f + offset), else the default; None when none is stated.

    The formula over one denominator: (theta count + offset n) / n, cut off where that exceeds n / n.
    """
    if own is not None:
        return own
    if theta is not None:
        top = theta.numerator * count * offset.denominator + offset.numerator * n * theta.denominator
        bottom = n * theta.denominator * offset.denominator
        return Fraction(1) if top > bottom else Fraction(top, bottom)
    return default


def can_be_kept(count: int, n: int, bound: Fraction) -> bool:
    """Lemma 1: some bucket holds the value in a share of at least count / n, so a lower threshold cannot be kept by any release."""
    return at_most(count, n, bound)


# --- l-diversity ----------------------------------------------------------------------------------------------------------------


def l_kept(count: int, size: int, l: int | Fraction) -> bool:  # noqa: E741  (the field's name)
    """Is a value with `count` of `size` records believed with at most 1 / l? count l <= size."""
    l = Fraction(l)  # noqa: E741
    return count * l.numerator <= size * l.denominator


def l_eligible(counts: Sequence[int], l: int | Fraction) -> bool:  # noqa: E741
    """Can records with these counts of the sensitive values be published so that nobody believes a value with more than 1 / l?

    At least l values occur, and the most frequent has at most 1 / l of the records, exactly: whoever knows how common each value is
    believes it with its share before anything is published. Made-up records do not lower that share, so none count here.
    """
    held = [count for count in counts if count > 0]
    return len(held) >= l and all(l_kept(count, sum(held), l) for count in held)


# --- beta-likeness (Cao and Karras; heterogeneous generalization, definition 4) -------------------------------------------------------


def gain(share: Fraction, of_table: Fraction) -> Fraction:
    """(q - p) / p: how far a value's share among somebody's records exceeds its share of the table."""
    return (share - of_table) / of_table


def beta_bound(of_table: Fraction, beta: Fraction, enhanced: bool = False) -> Fraction:
    """The share q at which (q - p) / p reaches beta, or min(beta, -ln p) for the enhanced kind."""
    allowed = min(beta, minus_ln(of_table)) if enhanced else beta
    return of_table + allowed * of_table


def minus_ln(share: Fraction) -> Fraction:
    """-ln(share) for a share in (0, 1], rounded up by less than 1e-40: what is refused is beyond doubt."""
    with localcontext() as context:
        context.prec = 60
        return Fraction(-(Decimal(share.numerator) / Decimal(share.denominator)).ln()) + Fraction(1, 10**41)


# --- perturbation (small domain randomization, sections 3 and 4) ------------------------------------------------------------------------


def transition(m: int, gamma: Fraction, same: bool) -> Fraction:
    """An entry of the operator's matrix over m values: whatever is published is gamma times as likely from the value itself as from any
    other (amplification, equation 2), and each row of the matrix sums to 1."""
    weights = gamma + (m - 1)
    return (gamma if same else Fraction(1)) / weights


def retained(m: int, gamma: Fraction) -> Fraction:
    """p, the chance that a value is kept rather than drawn anew from all m: what the draw does not explain of the matrix (equation 1)."""
    return 1 - m * transition(m, gamma, same=False)


def beliefs(counts: Sequence[int], gamma: Fraction) -> list[tuple[int, int]]:
    """For each value of a sub-table, the largest belief in it after one published value was seen, as (numerator, denominator).

    Bayes' rule over the operator's matrix M with the sub-table's own counts as the prior, which is the most anybody knows:
    P(x | y) = c_x M[x, y] / sum_z c_z M[z, y], for y = x and for the y != x that makes it largest. With M times its row weight and gamma's
    denominator, everything is an integer. m values: O(m).
    """
    diagonal, other = gamma.numerator, gamma.denominator
    n = sum(counts)

    def evidence(y: int) -> int:
        return counts[y] * diagonal + (n - counts[y]) * other

    by_evidence = sorted(range(len(counts)), key=evidence)
    largest = []
    for x, count in enumerate(counts):
        seen_itself = (count * diagonal, evidence(x))
        elsewhere = next((y for y in by_evidence[:2] if y != x), None)
        seen_other = (0, 1) if elsewhere is None else (count * other, evidence(elsewhere))
        largest.append(largest_share((seen_itself, seen_other)))
    return largest


def belief_in_groups(counts: Sequence[int], group: Sequence[int], gamma: Fraction) -> Fraction:
    """The largest belief that a record's value lies in one group of values, after one published value was seen. By Bayes, as `beliefs`:
    P(group of y | y) is the matrix's mass of y's group over that of all values. O(m)."""
    diagonal, other = gamma.numerator, gamma.denominator
    n, held = sum(counts), [0] * (max(group, default=-1) + 1)
    for count, of in zip(counts, group, strict=True):
        held[of] += count
    pairs = (
        ((held[of] - count) * other + count * diagonal, (n - count) * other + count * diagonal)
        for count, of in zip(counts, group, strict=True)
    )
    return Fraction(*largest_share(pairs))


def bayes_factor(prior: Fraction, posterior: Fraction) -> Fraction:
    """By how much evidence may multiply the odds of a belief that it takes from `prior` to `posterior`: the largest gamma (equation 6)."""
    return (posterior / (1 - posterior)) / (prior / (1 - prior))


def confidence(delta: Fraction) -> float:
    """a, such that an error beyond a / (p sqrt(n)) has a chance of at most delta: the tail 2 exp(-a^2 / 4) of section 3 is delta there."""
    return math.sqrt(-4.0 * math.log(float(delta) / 2.0))


def share_error(n: int, p: float, a: float) -> float:
    """The bound on the error of a share that is reconstructed from n records of which p were retained (equation 11): counts of n records
    stray by a sqrt(n), a share by a / sqrt(n), and reconstruction divides by p."""
    return a / math.sqrt(n) / p


def count_variance(counts: Sequence[int], p: float) -> float:
    """The sum over a sub-table's values of the variances of their reconstructed counts (equation 7): each observed count is a sum of
    independent draws, with chance p + q for the value's own records and q for the rest, and is divided by p. 0 when all are retained."""
    m, n = len(counts), sum(counts)
    q = (1.0 - p) / m
    own, strange = (p + q) * (1.0 - p - q), q * (1.0 - q)
    return sum(count * own + (n - count) * strange for count in counts) / (p * p)


# --- measures of worth ------------------------------------------------------------------------------------------------------------


def bucket_loss(sizes: Mapping[int, int]) -> int:
    """Sum over buckets of (|g| - 1)^2, from {size: number of buckets} (generalized bucketization, equation 2)."""
    return sum(number * (size - 1) * (size - 1) for size, number in sizes.items())


def mean_squared_bucket_size(sizes: Mapping[int, int]) -> float:
    """MSBS: the loss over |T| - 1, the same for one bucket per table and one per record."""
    records = sum(size * number for size, number in sizes.items())
    return bucket_loss(sizes) / max(1, records - 1)


def discernibility(sizes: Mapping[int, int]) -> int:
    """Sum over records of the size of their class."""
    return sum(number * size * size for size, number in sizes.items())


def interval_penalty(low: Float64Array, high: Float64Array, domain_low: float, domain_high: float) -> Float64Array:
    """NCP of intervals (heterogeneous generalization, section 2), and SABRE's loss (section 3.2): the share of the domain's span, (n,)."""
    span = float(domain_high) - float(domain_low)
    if not span > 0:
        return np.zeros(len(low))
    return np.asarray((high.astype(np.float64) - low.astype(np.float64)) / span)


def set_penalty(distinct: Int64Array, domain: int) -> Float64Array:
    """NCP of sets of so many values, (n,): those beyond the first, as a share of all beyond the first. 0 for one value, 1 for all."""
    return np.zeros(len(distinct)) if domain <= 1 else np.asarray((distinct - 1) / (domain - 1))


def set_loss(distinct: Int64Array, covered: Int64Array, domain: int) -> Float64Array:
    """SABRE's loss of sets of values, (n,): 0 for one value, else the share of the domain that it covers (all leaves below the lowest
    common ancestor, where there is a hierarchy)."""
    return np.where(distinct > 1, covered / max(1, domain), 0.0)


def real_shares_of_listings(values: Sequence[tuple[int, int]], fakes: int) -> tuple[Fraction, Fraction, Fraction]:
    """What counts tell of values listed beside `fakes` fakes a bucket: (least, largest share of a value's listings that are real, and how
    likely at most one of `fakes` + 1 values is the real one).

    values : (records, listings) of each, 0 < records <= listings

    Of a value that is real r times and fake f times the odds are r : f; the likeliest of the rest has the highest odds beside the lowest.
    """
    real = sorted(Fraction(records, listings) for records, listings in values)
    if real[-1] == 1:
        return real[0], real[-1], Fraction(1)
    odds = [Fraction(records, listings - records) for records, listings in values]
    return real[0], real[-1], max(odds) / (max(odds) + fakes * min(odds))


def could_be_fake_more_evenly(values: Sequence[tuple[int, int]], buckets: int) -> bool:
    """Whether a value that has room for one more fake, taken from another, would be less likely real than before and the other less likely
    than that; no value more than once in a bucket. values : (records, listings) of each, 0 < records <= listings <= buckets.

    Of a value that is real r times and fake f times the odds are r : f; without a fake they are above all others, here twice r buckets.
    """
    fakes = [(records, listings - records) for records, listings in values]

    def odds(real: int, fake: int) -> Fraction:
        return Fraction(real, fake) if fake else Fraction(2 * real * buckets)

    most = max((odds(r, f) for r, f in fakes if r + f < buckets), default=Fraction(0))
    least = min((odds(r, f - 1) for r, f in fakes if f), default=most)
    return least < most
