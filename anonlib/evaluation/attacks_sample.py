"""Sampled buckets in memory, and the attacks that are played on them: deFinetti, unmixing, negative association, the last
record. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Int64Array
from anonlib.errors import AnonlibError
from anonlib.evaluation.attacks import Attack, Listed, negative_association, negative_rules
from anonlib.evaluation.attacks_coding import STRETCHES, Coding, edges_of, stretches
from anonlib.evaluation.attacks_definetti import DeFinetti, definetti
from anonlib.evaluation.attacks_last_record import last_record
from anonlib.evaluation.attacks_unmixing import Beliefs, Learnt, unmixing
from anonlib.release.manifest import GuaranteePart


@dataclass(frozen=True)
class Sample:
    """Records of sampled buckets, in memory.

    bucket : (n,) of each record; known : (n, A) codes of its quasi-identifiers
    truth  : (n,) sensitive codes, known to the evaluator alone; listed : the values of these buckets
    codings : what `known` means, one for each quasi-identifier
    """

    bucket: Int64Array
    known: Int64Array
    truth: Int64Array
    listed: Listed
    codings: tuple[Coding, ...]

    @staticmethod
    def of(rows: Sequence[Mapping[str, Any]], m: int, seed: int) -> Sample:
        """The sample in rows, a record each; m : how many sensitive values there are.

        rows : each with `bucket`, `texts` of its quasi-identifiers, `codes` and `counts` its bucket lists, and `may` and `times`: the
               values it may have, by the original, and how many persons like it have each
        """
        rng = np.random.default_rng(seed)
        bucket = np.array([row["bucket"] for row in rows], dtype=np.int64)
        texts = [row["texts"] for row in rows]
        columns = list(zip(*texts, strict=True))
        codings = tuple(Coding.of(column) for column in columns)
        coded = [coding(column) for coding, column in zip(codings, columns, strict=True)]
        known = np.stack(coded, axis=1) if rows else np.zeros((0, 1), np.int64)
        truth = np.array([_drawn(row["may"], row["times"], rng) for row in rows], dtype=np.int64)
        first = np.unique(bucket, return_index=True)[1]
        lists = [
            (rows[i]["bucket"], code, n)
            for i in first
            for code, n in zip(rows[i]["codes"], rows[i]["counts"], strict=True)
        ]
        ids, code, count = (
            np.array(part, dtype=np.int64) for part in (zip(*lists, strict=True) if lists else ((), (), ()))
        )
        return Sample(bucket, known, truth, Listed(ids, code, count), codings)

    def attacks(
        self,
        part: GuaranteePart,
        fakes: int,
        parameters: Mapping[str, Any],
        allowed: Fraction | None,
        seed: int,
        learnt: Learnt | None = None,
    ) -> list[Attack]:
        """Negative association, deFinetti, where something was `learnt` unmixing, and, with fake values, the last record of each bucket;
        none where nothing was sampled.

        allowed : the largest belief that the promise allows of one person
        """
        if not len(self.bucket):
            return []
        counts = np.array([v.count for v in part.values], dtype=np.float64)
        m, prior = len(counts), float(counts.max() / counts.sum())
        held = DeFinetti(seed=seed)(self.bucket, self.known, self.listed, counts / counts.sum())
        rules = negative_rules(self.bucket, self.known, self.listed, m, fakes)
        struck = negative_association(self.bucket, self.known, self.truth, self.listed, rules, fakes)
        defended = bool(fakes) and bool(parameters.get("avoid_negative_associations"))
        words = (
            f"1/(1 + s), s = {fakes} fakes, as long as the rules strike out no right value: fakes that a rule rules out are avoided"
            if defended
            else "none promised without fakes that are chosen against it (avoid_negative_associations)"
        )
        struck = replace(
            struck,
            prior=prior,
            guarantee=struck.guarantee if defended else None,
            persons=len(self.truth),
            words=f"{words} (a sample of {len(self.truth):,})",
        )
        without = float(struck.detail["without rules"])
        one = None if allowed is None else float(allowed)
        played = [struck, definetti(held, self.truth, without, prior, one)]
        if learnt is not None:
            believed = Beliefs.of(self.bucket, self.known[:, learnt.of], self.listed, learnt.ratios, learnt.real)
            played.append(unmixing(believed, self.truth, without, prior, one, learnt.unread))
        if fakes:
            sampled_counts = counts * (len(self.bucket) / counts.sum())
            played.append(last_record(self.listed, sampled_counts, fakes, prior, seed))
        return played


def coarse(texts: Sequence[str | None]) -> Int64Array:
    """(n,) codes 0, 1, ... of a quasi-identifier's values as texts; a number with very many values in stretches."""
    return Coding.of(texts)(texts)


def coarse_numbers(of: npt.NDArray[Any]) -> Int64Array:
    """(n,) codes of numbers, NaN a code of its own; in `STRETCHES` of equally many records where there are very many values."""
    values, codes = np.unique(of, return_inverse=True)
    if len(values) <= 2 * STRETCHES:
        return np.asarray(codes.reshape(-1), dtype=np.int64)
    return stretches(of, edges_of(of))


def _drawn(may: Sequence[int], times: Sequence[int], rng: np.random.Generator) -> int:
    """One of the values that a record may have, in proportion to the persons like it who have it."""
    if not may:
        raise AnonlibError(
            "the original table has nobody who looks like a record of the release and has one of its bucket's values; is it the table "
            "that the release was made from?"
        )
    return int(may[0]) if len(may) == 1 else int(rng.choice(may, p=np.array(times) / sum(times)))
