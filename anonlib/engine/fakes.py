"""The `st` table with fake values, and which values the release's own negative associations rule out as fakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.engine.failures import TaskRefusal
from anonlib.engine.local_table import local_table
from anonlib.engine.statistics import typed_value
from anonlib.errors import Unsatisfiable
from anonlib.sql import quoted

BucketKernel = Callable[..., tuple[object, object]]
"""(bucket ids (B,) int64, excluded codes per bucket or None) -> (bucket ids, value codes), both (rows,) int64."""

SIGNIFICANCE = 3
"""Standard errors by which a pair must fall short of independence to count as learnt."""
HALF = 0.5
"""A learnt negative association leaves at most this share of what independence would give."""


def listed_values(
    spark: SparkSession,
    buckets: int,
    kernel: BucketKernel,
    values: Sequence[str | None],
    excluded: DataFrame | None,
    names: tuple[str, str, str],
    spark_type: str,
) -> DataFrame:
    """One row per value that `kernel` lists for each of `buckets` buckets, count 1 each.

    excluded : (bucket_id, codes array<int>) of codes that may not be fakes, or None. Cost: no pass over records; with `excluded`
    one shuffle of bucket ids.
    """
    id_name, value_name, count_name = names
    frame = spark.range(buckets).withColumnRenamed("id", "bucket_id")
    if excluded is not None:
        frame = frame.join(excluded, "bucket_id", "left")
    listed = frame.mapInArrow(_lister(kernel, excluded is not None), "bucket_id long, code int")
    domain = local_table(spark, "code int, text string", list(enumerate(values))).select(
        "code", F.expr(typed_value("text", spark_type)).alias("value")
    )
    return listed.join(domain.hint("broadcast"), "code").select(
        F.col("bucket_id").alias(id_name), F.col("value").alias(value_name), F.lit(1).cast("long").alias(count_name)
    )


def _lister(
    kernel: BucketKernel, with_excluded: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def list_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            excluded = [codes or [] for codes in batch.column(1).to_pylist()] if with_excluded else None
            try:
                ids, codes = kernel(batch.column(0).to_numpy(), excluded)
            except Exception as error:
                if type(error).__name__ != "TooFewFakes":
                    raise
                bucket, left, needed = error.args
                raise TaskRefusal(
                    f"bucket {bucket} needs {needed} fake value(s) and only {left} are neither in it nor ruled out by a negative "
                    "association; lower fake_values or max_bucket_size, or leave out avoid_negative_associations",
                    Unsatisfiable,
                ) from None
            yield pa.RecordBatch.from_arrays(
                [pa.array(ids, pa.int64()), pa.array(codes).cast(pa.int32())], names=["bucket_id", "code"]
            )

    return list_batches


def excluded_codes(
    qit: DataFrame,
    st: DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: str,
    shares: dict[str | None, tuple[int, float]],
    size: float,
) -> DataFrame:
    """(bucket_id, codes): for each bucket the values that a negative association "who has z does not have x", learnt from the release
    itself, would rule out for one of its records.

    qit, st : the two tables without fakes, st with the sensitive value as text in `sensitive`
    shares  : {value: (code, f_x)}; size : mean bucket size

    In buckets of |g| distinct values, c(g, x)/|g| summed over the records with z estimates independence plus 1/|g| of the true
    deviation, with a standard error of about sqrt(c(z) f_x / |g|). A pair is learnt when the estimate falls short by more than
    `SIGNIFICANCE` standard errors and the deviation, times |g|, eats more than half of c(z) f_x.

    Cost: |g| rows per record and quasi-identifier are shuffled; the rules stay on the cluster.
    """
    spark = qit.sparkSession
    domain = local_table(spark, "value string, code int, share double", [(v, c, f) for v, (c, f) in shares.items()])
    tagged = [
        F.struct(F.lit(k).alias("attribute"), F.expr(f"CAST({quoted(q)} AS STRING)").alias("z"))
        for k, q in enumerate(quasi_identifiers)
    ]
    # known: bucket_id, attribute, z, c   one row per quasi-identifier value present in a bucket
    known = (
        qit.select("bucket_id", F.explode(F.array(*tagged)).alias("known"))
        .select("bucket_id", "known.*")
        .groupBy("bucket_id", "attribute", "z")
        .agg(F.expr("count(1)").alias("c"))
    )
    support = known.groupBy("attribute", "z").agg(F.expr("sum(c)").alias("support"))
    listed = st.select("bucket_id", F.expr(quoted(sensitive)).alias("value"), F.col("count").alias("n"))
    sizes = listed.groupBy("bucket_id").agg(F.expr("sum(n)").alias("size"))
    held = listed.join(sizes, "bucket_id").select("bucket_id", "value", F.expr("n / size").alias("p"))
    estimate = (
        known.join(held, "bucket_id").groupBy("attribute", "z", "value").agg(F.expr("sum(c * p)").alias("estimate"))
    )
    pairs = (
        support.crossJoin(domain.hint("broadcast"))
        .alias("p")
        .join(estimate.alias("e"), F.expr("p.attribute = e.attribute AND p.z <=> e.z AND p.value <=> e.value"), "left")
        .selectExpr(
            "p.attribute", "p.z", "p.code", "p.support * p.share AS expected", "coalesce(e.estimate, 0D) AS estimate"
        )
    )
    rules = pairs.where(
        f"expected - estimate > {SIGNIFICANCE} * sqrt(expected / {size}) AND {size} * (expected - estimate) > {HALF} * expected"
    )
    return (
        known.alias("k")
        .join(rules.alias("r"), F.expr("k.attribute = r.attribute AND k.z <=> r.z"))
        .groupBy("k.bucket_id")
        .agg(F.expr("array_sort(collect_set(r.code))").alias("codes"))
    )
