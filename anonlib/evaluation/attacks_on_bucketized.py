"""The attacks on a bucketized release, on Spark: a job each for groups, corruption and re-identification, one for the sample of buckets
that the attacks which learn are played on, and one for what all buckets together tell of each quasi-identifier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonlib.engine.batches import merged, partial_sums
from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.engine.statistics import value_text
from anonlib.engine.tables import types
from anonlib.engine.values import small_table
from anonlib.evaluation import one_column
from anonlib.evaluation.attacks import Attack, Corruption
from anonlib.evaluation.attacks_bounds import Bounds, thresholds
from anonlib.evaluation.attacks_decisions import minimality_words
from anonlib.evaluation.attacks_groups import Tally, added
from anonlib.evaluation.attacks_homogeneity import homogeneity
from anonlib.evaluation.attacks_join import by_looks, joined
from anonlib.evaluation.attacks_registry import BUCKETIZED, figures_by_attack, figures_by_column
from anonlib.evaluation.attacks_sample import Sample
from anonlib.evaluation.attacks_skewness import skewness
from anonlib.evaluation.attacks_unmixing import Learnt
from anonlib.evaluation.attacks_unmixing_tables import unmixed
from anonlib.queries.boxes import column
from anonlib.release.bucketized import QIT, ST
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted

KNOWN = (1, 2, 4)
"""How many records of each bucket the corrupting attackers know."""
RECORDS = 30_000
"""Records sampled for the attacks that learn."""
ENTRIES = 6_000_000
"""Records times sensitive values on the driver, at most: fewer records are sampled where there are many values."""
ROWS_PER_TASK = 25_000
MAX_TASKS = 2_000


def attacks(
    tables: Mapping[str, DataFrame], manifest: Manifest, original: DataFrame, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """{attack: its figures, or words}, as `attacks_registry.figures_by_column` has them: each sensitive column in turn."""
    names = [c.name for c in manifest.tables[QIT].columns if c.role == "quasi_identifier"]
    looks = joined(original, names, tables[QIT], manifest)
    return figures_by_column(
        {
            of_one.guarantee.sensitive: _on_one_column(own, of_one, original, names, looks, seed)
            for own, of_one in one_column.of_buckets(tables, manifest)
        }
    )


def _on_one_column(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame,
    names: Sequence[str],
    looks: Attack,
    seed: int,
) -> dict[str, dict[str, Any]]:
    """The attacks on the one sensitive column of a release, as `attacks_registry.figures_by_attack` has them.

    names : of the quasi-identifiers; looks : re-identification by them
    """
    part = manifest.guarantee
    fakes = int(manifest.method.parameters.get("fake_values", 0))
    tasks = max(2, min(MAX_TASKS, manifest.rows.published // ROWS_PER_TASK))
    lists = listed(tables[ST], part).repartition(tasks)
    played = [
        looks,
        *of_groups(lists, part, thresholds(part), fakes),
        *corruption_attacks(lists, manifest, fakes, seed),
    ]
    sample = sampled(tables, lists, manifest, original, names, seed)
    learnt = unmixed(tables[QIT], lists, manifest, names, sample.codings)
    of_kinds = learnt if isinstance(learnt, Learnt) else None
    played += sample.attacks(part, fakes, manifest.method.parameters, thresholds(part).largest, seed, of_kinds)
    words = {"minimality": minimality_words(manifest.method.name, manifest.method.parameters)}
    words |= {"unmixing": learnt} if isinstance(learnt, str) else {}
    return figures_by_attack(BUCKETIZED, played, words)


def listed(st: DataFrame, part: GuaranteePart) -> DataFrame:
    """(bucket, codes, counts): the values of each bucket as codes in the manifest's order, null last, with their counts. One shuffle."""
    pairs = [("" if v.value is None else f"={v.value}", i) for i, v in enumerate(part.values)]
    known = small_table(st, "key string, code int", pairs)
    value = value_text(part.sensitive, types(st)[part.sensitive])
    keyed = select(st, {"bucket": BUCKET_ID, "key": f"coalesce(concat('=', {value}), '')", "c": quoted(COUNT)})
    coded = select(keyed.join(known, "key"), {"bucket": "bucket", "code": "code", "c": "c"})
    lists = aggregate(coded, ["bucket"], {"pairs": "array_sort(collect_list(struct(code, c)))"})
    return select(lists, {"bucket": "bucket", "codes": "pairs.code", "counts": "pairs.c"})


def sampled(
    tables: Mapping[str, DataFrame],
    lists: DataFrame,
    manifest: Manifest,
    original: DataFrame,
    names: Sequence[str],
    seed: int,
) -> Sample:
    """The records of random buckets, `RECORDS` at most on average. One job.

    The value of a record is not published with it: of the persons of the original who look like it and have one of its bucket's values
    one is drawn. Where looks are a person's alone, that is the person.
    """
    part = manifest.guarantee
    wanted = max(1, min(RECORDS, ENTRIES // len(part.values)))
    share = min(1.0, wanted / max(1, manifest.rows.published))
    in_sample = f"pmod(xxhash64({int(seed)}L, {{}}), 1000000) < {round(share * 1_000_000)}"
    shown = {**by_looks(names), "bucket": quoted(BUCKET_ID), "texts": f"array({', '.join(_text(n) for n in names)})"}
    records = select(tables[QIT].where(in_sample.format(quoted(BUCKET_ID))), shown)
    pairs = [("" if v.value is None else f"={v.value}", i) for i, v in enumerate(part.values)]
    known = small_table(original, "key string, code int", pairs)
    value = value_text(part.sensitive, types(original)[part.sensitive])
    persons = select(original, {**by_looks(names), "key": f"coalesce(concat('=', {value}), '')"}).join(known, "key")
    held = aggregate(persons, ["looks", "code"], {"n": "count(1)"})
    alike = aggregate(held, ["looks"], {"alike": "array_sort(collect_list(struct(code, n)))"})
    joined_ = records.join(alike, "looks").join(lists.where(in_sample.format("bucket")), "bucket")
    possible = "filter(alike, h -> array_contains(codes, h.code))"
    columns = {n: n for n in ("bucket", "texts", "codes", "counts")} | {
        "may": f"transform({possible}, h -> h.code)",
        "times": f"transform({possible}, h -> h.n)",
    }
    drawn = rows(select(joined_, columns), 2 * wanted + 1_000)
    return Sample.of(sorted(drawn, key=lambda r: (r["bucket"], r["texts"].__repr__())), len(part.values), seed)


def _text(name: str) -> str:
    """A column as text, in SQL."""
    return f"CAST({quoted(name)} AS STRING)"


def of_groups(groups: DataFrame, part: GuaranteePart, bounds: Bounds, fakes: int = 0) -> list[Attack]:
    """Homogeneity and skewness on rows of `codes` and `counts`, a group each. One job."""
    n = sum(v.count for v in part.values)
    shares = tuple(v.count / n for v in part.values)
    tally = Tally(shares, bounds.of, fakes)
    aggregates = {"total": "sum(total)", "most": "max(most)"}
    tallies = merged(groups, tally, "at int, total double, most double", ["at"], aggregates, tally.length)
    total, most = added(tallies, tally.length)
    names = [v.value for v in part.values]
    return [
        homogeneity(total, most, max(shares), bounds.of, bounds.words),
        skewness(total, most, names, shares, max(shares), bounds.of, bounds.words),
    ]


def corruption_attacks(groups: DataFrame, manifest: Manifest, fakes: int, seed: int) -> list[Attack]:
    """The corruption attack with each number of known records (`KNOWN`), on groups with `bucket`, `codes`, `counts`. One job, one pass."""
    kernel = Corruption(KNOWN, fakes, seed)
    sums = partial_sums(groups, GroupLists(kernel), kernel.length)
    counts = [v.count for v in manifest.guarantee.values]
    return kernel.attacks(sums, max(counts) / sum(counts), 1.0, [part.size for part in manifest.solver.setting])


@dataclass(frozen=True)
class GroupLists:
    """Feeds a kernel on groups from Arrow batches with `bucket` (B,) and `counts` (B,) lists."""

    kernel: Corruption

    def __call__(self, batches: Iterable[Any]) -> Any:
        """The kernel's vector, summed over all batches."""
        total = np.zeros(self.kernel.length)
        for batch in batches:
            counts = column(batch, "counts")
            total += self.kernel(
                {
                    "bucket": column(batch, "bucket").to_numpy(zero_copy_only=False),
                    "values": counts.value_lengths().to_numpy(),
                    "count": counts.flatten().to_numpy(zero_copy_only=False),
                }
            )
        return total
