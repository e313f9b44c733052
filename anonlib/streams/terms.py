"""What a stream's spec says once the types of its input are known: how records become codes, how far values are apart, what is promised."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anonlib.engine import streaming
from anonlib.engine.microdata import Microdata
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession
from anonlib.engine.streaming import Coding
from anonlib.engine.tables import types
from anonlib.engine.told_domains import told_domains
from anonlib.errors import SpecError
from anonlib.exact import text
from anonlib.methods.class_promises import ground_distance, guarantee_part
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.release import generalized
from anonlib.release.manifest import GuaranteePart
from anonlib.spec.methods.sabre import Sabre
from anonlib.spec.release import Input, ReleaseSpec
from anonlib.spec.stream import Stream
from anonlib.words import CLOSENESS_IN_WINDOWS, closeness_in_windows


def source(spec: ReleaseSpec, asked: Stream) -> tuple[Input, set[str]]:
    """(where files arrive, the columns that are read of them). Raises SpecError where the spec names no place."""
    if spec.input is None:
        raise SpecError(
            "input: missing; name the folder that files arrive in, e.g. input: {path: data/arriving, format: parquet}"
        )
    used = {name for role, name in spec.columns.roles() if role != "identifiers"} | {asked.order or ""}
    return spec.input, used - {""}


def coding(spec: ReleaseSpec, asked: Stream, spark: SparkSession, frame: DataFrame, table: Microdata) -> Coding:
    """The codes of the spec's columns, in the types of `frame`. One small job a told column; nothing of the input is read.

    Raises SpecError for a domain that is none of the column's type, and for an `order` that is no number, date or timestamp.
    """
    kinds = types(frame)
    spelled = {name.lower(): name for name in kinds}
    order = None if asked.order is None else spelled[asked.order.lower()]
    if order is not None:
        streaming.check_order(order, kinds[order])
    domains, values = told_domains(spark, spec.columns, asked.domains, kinds)
    generalized.check_names(domains, {table.sensitive: kinds[table.sensitive]}, True)
    shard = None if asked.shard is None else spelled[asked.shard.lower()]
    return Coding(domains, values, order, shard, asked.outside)


def distance(spec: ReleaseSpec, coding: Coding) -> GroundDistance:
    """Between the told sensitive values, by their codes."""
    return ground_distance(spec.columns.sensitive[0], _once_each(coding))


def guarantee(spec: ReleaseSpec, name: str, kind: str, coding: Coding) -> GuaranteePart:
    """The promise of every batch, without counts of values. name, kind : of the sensitive column, as the table spells it, and its type."""
    method, asked = spec.method, spec.stream
    assert isinstance(method, Sabre)
    assert asked is not None
    counts, column = _once_each(coding), spec.columns.sensitive[0]
    closeness = TCloseness(distance(spec, coding), counts.counts, method.t)
    words = closeness_in_windows(name, closeness.distance.kind, method.t, method.k, asked.window, coding.shard)
    numbers: Mapping[str, str] = {"t": text(method.t), "k": str(method.k)}
    part = guarantee_part(CLOSENESS_IN_WINDOWS, words, name, kind, column, counts, dict(numbers), closeness)
    return part.model_copy(update={"values": []})


def _once_each(coding: Coding) -> SensitiveCounts:
    return SensitiveCounts(coding.values, np.ones(len(coding.values), dtype=np.int64))
