"""What a stream's spec would do with what has arrived: what is read, what is promised, and what windows lose and delay, on a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonlib.engine import reading, streaming
from anonlib.engine.as_missing import read_as_missing
from anonlib.engine.microdata import microdata
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession, run_settings
from anonlib.engine.streaming import Coding
from anonlib.engine.tables import types
from anonlib.errors import SpecError
from anonlib.kernels.classes.sabre_window import Records
from anonlib.methods import window_trials
from anonlib.methods.recipe import Explanation, Grid, Say
from anonlib.methods.window_trials import Trial
from anonlib.release import streamed
from anonlib.spec.methods.sabre import Sabre
from anonlib.spec.release import ReleaseSpec
from anonlib.spec.stream import FLOOR, Stream
from anonlib.streams import terms

MOST_SAMPLE = 150_000
"""Records that a sample takes; they reach the driver, as codes."""
MOST_LINES = 20


@dataclass(frozen=True)
class Arrived:
    """What lies in the input: {value of the shard: records to publish}, the same under "" without a shard; and what is left out."""

    of_shards: Mapping[str | None, int]
    missing: int
    outside: int

    @property
    def to_publish(self) -> int:
        """Records that may come out."""
        return sum(self.of_shards.values())

    @property
    def largest(self) -> int:
        """The number of the shard with most of them, 0 where there are none."""
        counts = list(self.of_shards.values())
        return counts.index(max(counts))

    @classmethod
    def of(cls, fates: Mapping[tuple[int, int], int], coding: Coding) -> Arrived:
        """From what `anonlib.engine.streaming.fates` counts."""
        names = coding.shard_values
        left_out = Counter(dict.fromkeys((streaming.MISSING, streaming.OUTSIDE), 0))
        for (_, fate), records in fates.items():
            left_out[fate] += records
        of_shards = {name: fates.get((shard, streaming.TO_PUBLISH), 0) for shard, name in enumerate(names)}
        return cls(of_shards, left_out[streaming.MISSING], left_out[streaming.OUTSIDE])


def _silent(_: str) -> None:
    return None


def explain(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None = None, say: Say = _silent) -> Explanation:
    """What the stream of `spec` would show of what has arrived in its input, or of `frame`, a table like it. Nothing is written.

    A scan for counts and one for the newest records of the largest shard, at most `MOST_SAMPLE` on the driver; then the driver alone, some
    seconds for each setting that is tried. Raises SpecError as the stream would, for a record that would stop it too.
    """
    asked, method = spec.stream, spec.method
    assert asked is not None
    assert isinstance(method, Sabre)
    if frame is not None and frame.isStreaming:
        raise SpecError(
            "the DataFrame is a stream, and nothing of it is there yet to be counted; give a table, a sample of what will arrive"
        )
    read_from = spec.input if frame is None else None
    with run_settings(spark), reading.misread_explained(spark, read_from, spec.used_columns):
        source = reading.read(spark, *terms.source(spec, asked)) if frame is None else frame
        source = read_as_missing(source, spec.columns.may_be_missing, spec.missing.as_missing)
        table = microdata(source, spec.columns, spec.missing)
        coding = terms.coding(spec, asked, spark, source, table)
        promise = terms.guarantee(spec, table.sensitive, types(source)[table.sensitive], coding)
        records = streaming.coded(source, table, coding)
        say("counting what has arrived")
        arrived = Arrived.of(streaming.fates(records), coding)
        settings = window_trials.near(
            asked.window, asked.advance, max(method.k, 1 if asked.allow_small_advance else FLOOR)
        )
        at_most = min(MOST_SAMPLE, max(window_trials.wanted(*setting) for setting in settings))
        sample = streaming.newest(records, arrived.largest, at_most)
    domains, distance = coding.quasi_identifiers.domains, terms.distance(spec, coding)
    newest = _records(sample, len(domains))
    trials = []
    for setting in settings:
        say(f"trying a window of {setting[0]:,} that advances by {setting[1]:,}")
        trials.append(window_trials.tried(newest, domains, distance, setting, method.k, method.t))
    played = [trial for trial in trials if trial is not None]
    return _explanation(spec, coding, arrived, len(newest), promise.words, played)


def _records(sample: pd.DataFrame, d: int) -> Records:
    columns = tuple(sample[f"q{i}"].to_numpy() for i in range(d))
    return Records(columns, sample["s0"].to_numpy().astype(np.int64))


def _explanation(
    spec: ReleaseSpec, coding: Coding, arrived: Arrived, sampled: int, words: str, trials: Sequence[Trial]
) -> Explanation:
    asked = spec.stream
    assert asked is not None
    grids = []
    if coding.shard is not None:
        grids.append(_shards(coding.shard, arrived, asked))
    if trials:
        grids.append(_grid(trials, asked, sampled))
    facts: dict[str, Any] = {
        "records": {"to_publish": arrived.to_publish, "missing": arrived.missing, "outside": arrived.outside},
        "shards": None if coding.shard is None else {str(name): count for name, count in arrived.of_shards.items()},
        "batches": len(streamed.batch_numbers(spec.output.path)) if spec.output is not None else 0,
        "window": asked.window,
        "advance": asked.advance,
        "longest_delay": asked.window - 1,
        "sample": sampled,
        "trials": [asdict(trial) for trial in trials],
    }
    summary = " ".join([_read(spec, arrived), _delays(asked, coding), _lost(asked, coding, arrived, sampled, trials)])
    return Explanation(words=words, summary=summary, grids=tuple(grids), facts=facts, choice=tuple(trials))


def _read(spec: ReleaseSpec, arrived: Arrived) -> str:
    where = "" if spec.input is None or spec.input.path is None else f" in {spec.input.path}"
    n = arrived.to_publish + arrived.missing + arrived.outside
    left_out = [
        f"{count:,} {what}"
        for count, what in ((arrived.missing, "with a missing value"), (arrived.outside, "outside the domains"))
        if count
    ]
    return f"Of {n:,} records{where} {arrived.to_publish:,} are to be published{_listed(left_out)}."


def _listed(left_out: Sequence[str]) -> str:
    return f"; {' and '.join(left_out)} are left out" if left_out else ""


def _delays(asked: Stream, coding: Coding) -> str:
    of = "" if coding.shard is None else f" of its {coding.shard}"
    return (
        f"The first come out once {asked.window:,}{of} have arrived, then some with every {asked.advance:,} more; each at the latest when "
        f"{asked.window - 1:,} others{of} have arrived after it."
    )


def _lost(asked: Stream, coding: Coding, arrived: Arrived, sampled: int, trials: Sequence[Trial]) -> str:
    """What the setting asked loses and delays on the sample, or why that cannot be told."""
    of = _of_largest(coding, arrived)
    own = next((trial for trial in trials if (trial.size, trial.advance) == (asked.window, asked.advance)), None)
    if own is not None:
        order = f"the order of {coding.order}" if coding.order else "a random order, which hides what changes with time"
        return (
            f"On the newest {own.records:,} records{of}, in {order}: {own.loss:.4f} of information is lost on average, and a record waits "
            f"for {own.mean_delay:,.0f} others."
        )
    needed = asked.window + asked.advance
    then = "try again when there are as many"
    if needed > MOST_SAMPLE:
        then = f"no more than {MOST_SAMPLE:,} are tried"
    return (
        f"What that loses cannot be told from {sampled:,} records{of}: a window and an advance are {needed:,}; {then}."
    )


def _of_largest(coding: Coding, arrived: Arrived) -> str:
    """Of which shard a sample is."""
    if coding.shard is None:
        return ""
    return f" of {coding.shard} {list(arrived.of_shards)[arrived.largest]!r}"


def _shards(shard: str, arrived: Arrived, asked: Stream) -> Grid:
    counts = sorted(arrived.of_shards.items(), key=lambda pair: (-pair[1], str(pair[0])))
    rows = tuple(
        (str(name), f"{count:,}", f"{max(0, (count - asked.window) // asked.advance + 1):,}")
        for name, count in counts[:MOST_LINES]
    )
    more = f"and {len(counts) - MOST_LINES:,} more, of fewer records" if len(counts) > MOST_LINES else ""
    return Grid((shard, "records", "windows"), rows, more)


def _grid(trials: Sequence[Trial], asked: Stream, sampled: int) -> Grid:
    rows = tuple(
        (
            f"{trial.size:,}",
            f"{trial.advance:,}",
            " / ".join(f"{trial.cases[case]:,}" for case in window_trials.CASES),
            f"{trial.shown / trial.classes:,.1f}",
            f"{trial.loss:.4f}",
            f"{trial.mean_delay:,.0f}",
            f"{trial.longest_delay:,}",
            f"{trial.state / 1e6:,.2f} MB",
            "asked" if (trial.size, trial.advance) == (asked.window, asked.advance) else "",
        )
        for trial in trials
    )
    return Grid(
        ("window", "advance", "cases", "class", "loss", "delay", "longest", "state", ""),
        rows,
        f"Cases: how many advances were {', '.join(window_trials.CASES)}. Class: records of one, on average. Loss: average information "
        f"loss. Delay: records that arrive between a record and its coming out. On at most {sampled:,} records each.",
    )
