"""What SABRE would choose, and what t buys: the trade-off between closeness and information loss on a sample."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine.codes import sampled
from anonlib.engine.microdata import Microdata
from anonlib.exact import text
from anonlib.kernels.classes.equivalence_classes import TakeOut
from anonlib.kernels.classes.halving import Records, information_loss
from anonlib.methods import sabre_sub_buckets as sub_buckets
from anonlib.methods import trade_offs
from anonlib.methods.boxed import Classes, read_coded
from anonlib.methods.recipe import Explanation, Grid, Say
from anonlib.methods.sabre import Asked, asked, halving, packing_details, symmetric, together
from anonlib.privacy.ec_sizes import EcSizeTree
from anonlib.privacy.sub_buckets import JointValues
from anonlib.privacy.t_closeness import TCloseness, guarantee_words
from anonlib.solvers.classes.ec_size_tree import choose
from anonlib.solvers.classes.sabre_buckets import BucketPartition
from anonlib.solvers.classes.sub_buckets import Packing, pack
from anonlib.solvers.trade_offs.trade_off import Point, TradeOff, knee
from anonlib.spec.methods.sabre import Sabre
from anonlib.words import HOW_CLASSES_CAME

SAMPLE = 20_000
"""Records that the trade-off is computed on; they reach the driver."""
AIL = "ail"
ONE_CLASS = "leaves nothing: one class of the whole sample"
GRID = tuple(Fraction(i, 100) for i in (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55))


@dataclass(frozen=True)
class Choice:
    """packing : the sub-buckets of the default, or else buckets and tree : SABRE's own, for the t asked; curve : ((t, AIL on the sample),
    ...); proposed : the t at its knee."""

    packing: Packing | None
    published: tuple[BucketPartition, EcSizeTree] | None
    curve: tuple[tuple[Fraction, float], ...]
    proposed: Fraction


def explain(table: Microdata, wanted: Sabre, say: Say) -> Explanation:
    """What would be chosen from counts for the t asked, and AIL(t) on a sample with the t at which giving more stops paying.

    The passes of the statistics, one scan for the sample, then the driver alone: some seconds for `SAMPLE` records and each t.
    """
    promised = asked(table, wanted, say)
    coded = read_coded(table, promised.statistics, True, say)
    packing, published = None, None
    if wanted.way == "symmetric":
        _, packing = sub_buckets.packed(coded.frame, promised.closeness, wanted.k, wanted.partition_size)
    else:
        published = choose(promised.closeness[0], wanted.k)
    columns, sensitive = sampled(coded.frame, SAMPLE, promised.n)
    say(f"trading closeness against information loss on {len(columns[0]):,} records")
    grid = sorted({*GRID, wanted.t})
    points = tuple(point(columns, coded.domains, sensitive, promised, wanted, t) for t in grid)
    trade_off = TradeOff("t", wanted.t, {AIL: "average information loss"}, AIL, points, len(columns[0]))
    curve = tuple((each.bound, each.measures[AIL]) for each in points)
    choice = Choice(packing, published, curve, knee(curve))
    return _explanation(table, wanted, promised, trade_off, choice)


def point(
    columns: list[Codes],
    domains: tuple[Domain, ...],
    sensitive: list[Int64Array],
    promised: Asked,
    wanted: Sabre,
    t: Fraction,
) -> Point:
    """AIL of a table that consists of these records alone, published at t."""
    own = [
        TCloseness(each.distance, np.bincount(codes, minlength=each.distance.m), t)
        for each, codes in zip(promised.closeness, sensitive, strict=True)
    ]
    k = min(wanted.k, len(columns[0]))
    kernel: Classes
    if wanted.way == "symmetric":
        joint = JointValues.of(sensitive, promised.sizes)
        kernel = symmetric(domains, own, joint, pack(own, joint, k), k, bytes(32))
    elif wanted.way == "refined":
        kernel = halving(domains, own, k)
    else:
        buckets, tree = choose(own[0], k)
        neighbours = wanted.neighbours or "approximate"
        kernel = TakeOut(domains, promised.sizes, buckets.bucket_of, tree, neighbours, together(own), bytes(32))
    n = len(columns[0])
    classes = kernel(columns, sensitive, np.zeros(n, dtype=np.int64), 0)
    each = np.arange(n, dtype=np.int64)
    records = Records(columns, domains, sensitive, promised.sizes, each, each)
    loss = information_loss(records, each, classes, int(classes.max()) + 1)
    ail = float((loss * np.bincount(classes)).sum() / n / len(columns))
    return Point(t, {AIL: ail}, "" if classes.any() else ONE_CLASS)


def _explanation(table: Microdata, wanted: Sabre, promised: Asked, trade_off: TradeOff, choice: Choice) -> Explanation:
    how = {
        "symmetric": "classes of the same of every sub-bucket",
        "refined": "splitting classes on",
        "published": f"{wanted.neighbours or 'approximate'} neighbours",
    }[wanted.way]
    at = trade_off.at_asked
    words = " ".join(
        guarantee_words(name, closeness, promised.k if i == 0 else 1, HOW_CLASSES_CAME.get(wanted.way))
        for i, (name, closeness) in enumerate(zip(table.sensitive_columns, promised.closeness, strict=True))
    )
    grids = [*trade_offs.grids(trade_off)]
    chosen: dict[str, Any] = {}
    if choice.packing is not None:
        chosen = packing_details(choice.packing) | {"worst_distance": [text(each) for each in choice.packing.worst]}
        grids.append(Grid(("chosen from counts alone", ""), _lines(choice.packing)))
    elif choice.published is not None:
        buckets, tree = choice.published
        chosen = {"buckets": buckets.b, "bound": text(buckets.bound), "classes": tree.classes[0]}
        if wanted.way == "published":
            sizes = tuple((str(size), f"{number:,}") for size, number in list(tree.size_histogram().items())[:20])
            grids.append(Grid(("class size", "classes"), sizes))
    return Explanation(
        words=words,
        summary=f"By {how}, t: {text(wanted.t)} costs an average information loss of {at.measures[AIL]:.4f} on the sample; "
        f"t: {text(choice.proposed)} is where giving more closeness away stops paying{trade_offs.sentence(None, at.note)}",
        grids=tuple(grids),
        facts={
            "records": promised.n,
            "sensitive_values": list(promised.sizes),
            **chosen,
            "sample": trade_off.sample,
            "curve": [{"t": text(t), "ail": loss} for t, loss in choice.curve],
            "proposed_t": text(choice.proposed),
            **trade_offs.facts(trade_off),
        },
        choice=choice,
        trade_off=trade_off,
    )


def _lines(packing: Packing) -> tuple[tuple[str, str], ...]:
    parts, least = packing.sub_buckets, packing.least
    return (
        ("sub-buckets", f"{parts.number:,} of {parts.records:,} records"),
        ("a class takes of each", f"{least:,}" if least == 1 else f"{least:,} to {2 * least - 1:,}"),
        ("records of a class", f"{parts.number * least:,} or more"),
        ("records in one class of the rest", f"{int(parts.rest.sum()):,}"),
        ("distance, whatever records it takes, at most", ", ".join(f"{float(each):.4f}" for each in packing.worst)),
    )
