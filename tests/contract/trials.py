"""Whole methods on paper: what their pure code gives for a small table, judged as the audit judges a release. No Spark.

Everything that a method decides (thresholds, buckets, gammas, classes, matches) and every record kernel is the product's own, looked up
when the trial runs, so that a planted fault takes part. What the tables would then hold is counted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from anonlib import words, workflow
from anonlib.arrays import Lists
from anonlib.audit.bucketized import columns_judge, nodes_judge
from anonlib.audit.bucketized import judge as bucketized_judge
from anonlib.audit.generalized import evidence as generalized_evidence
from anonlib.audit.generalized import judge as generalized_judge
from anonlib.audit.generalized.closeness import distance_of, distances_of_windows
from anonlib.audit.generalized.evidence import GraphFacts
from anonlib.audit.generalized.facts import GeneralizedFacts, Worst
from anonlib.audit.generalized.fingerprint import BoxFingerprint
from anonlib.audit.generalized.promises import NodeCase
from anonlib.audit.perturbed import judge as perturbed_judge
from anonlib.audit.verdict import Verdict
from anonlib.domains import NumericDomain
from anonlib.exact import exact, text
from anonlib.hierarchy import hierarchy_of
from anonlib.kernels.classes import (
    equivalence_classes,
    halving,
    mondrian,
    sabre_window,
    symmetric_classes,
    take_out,
)
from anonlib.kernels.matching import ring_generalization
from anonlib.kernels.ranked import kind_deal, perturb, round_robin
from anonlib.methods import bucketize, bucketize_pair, heterogeneous, heterogeneous_pair
from anonlib.methods import perturb as perturbing
from anonlib.methods import sabre_window as window_classes
from anonlib.privacy import class_requirements as requirements
from anonlib.privacy import column_pair, f_privacy, rho_privacy, subtables, t_closeness
from anonlib.privacy.counts import SensitiveCounts
from anonlib.release.manifest import Manifest, NodePart
from anonlib.release.streamed import CLASS_BITS
from anonlib.solvers.buckets import fake_values
from anonlib.spec.methods.bucketize import Bucketize
from anonlib.spec.methods.perturb import Perturb
from tests import paper

KEY = bytes(range(32))
VALUES = ("asthma", "cold", "flu", "gout", "HIV", "mumps")
N = 60
DOMAIN = NumericDomain("age", 0.0, float(N - 1))


def counted(*counts: int) -> SensitiveCounts:
    return SensitiveCounts(VALUES[: len(counts)], np.array(counts, dtype=np.int64))


def ranked(counts: SensitiveCounts) -> tuple[Any, Any]:
    """Value codes of all records, and their ranks within the value."""
    code = np.repeat(np.arange(counts.m), counts.counts)
    return code, np.concatenate([np.arange(c, dtype=np.int64) for c in counts.counts.tolist()])


def of_value(counts: SensitiveCounts) -> dict[str, int]:
    return dict(zip(counts.values, counts.counts.tolist(), strict=True))


# --- bucketize ------------------------------------------------------------------------------------------------------------------


def buckets(privacy: Mapping[str, str], *table: int) -> Callable[[], Verdict]:
    """Thresholds, two sizes of buckets, records dealt round robin."""

    def trial() -> Verdict:
        counts = counted(*table)
        wanted = Bucketize.model_validate({"privacy": dict(privacy), "solver": "two_size", "max_bucket_size": 12})
        thresholds, solution = bucketize.choose_buckets(counts, wanted)
        deal = round_robin.Deal.of(solution.setting, solution.partition).mixed(3)
        of = round_robin.RoundRobin(deal, KEY)(*ranked(counts))
        listed: list[dict[str, int]] = []
        for stretch in round_robin.composition(deal):
            held = {counts.values[c]: k for c, k in zip(stretch.codes, stretch.counts, strict=True)}
            listed += [held] * (stretch.stop - stretch.start)
        facts, found = paper.bucketized(
            listed,
            dict(privacy),
            dict(zip(counts.values, thresholds.fractions, strict=True)),
            in_qit=np.bincount(of, minlength=deal.buckets).tolist(),
            loss=solution.loss,
            msbs=solution.setting.msbs,
            stated=of_value(counts),
        )
        order = sorted(counts.values)
        sorted_counts = SensitiveCounts(tuple(order), np.array([of_value(counts)[v] for v in order], dtype=np.int64))
        sorted_thresholds = f_privacy.Thresholds(tuple(exact(v["threshold"]) for v in found["guarantee"]["values"]))
        found["guarantee"]["words"] = f_privacy.guarantee_words("illness", sorted_counts, sorted_thresholds)
        found["solver"]["setting"] = [
            {"size": s, "number": b} for s, b in zip(solution.setting.sizes, solution.setting.numbers, strict=True)
        ]
        return bucketized_judge.judge(facts, paper.stating(found))

    return trial


LUNGS = [[v, "lungs" if v in ("asthma", "flu", "mumps") else "others", "any"] for v in VALUES]
"""A hierarchy in which the values of a node are no neighbours by name."""


def noded(privacy: Mapping[str, Any], *table: int) -> Callable[[], Verdict]:
    """Thresholds of values and of nodes, the best buckets, companions from other branches, records dealt round robin."""

    def trial() -> Verdict:
        counts, tree = counted(*table), hierarchy_of(LUNGS)
        wanted = Bucketize.model_validate({"privacy": dict(privacy), "time_limit": 20, "max_bucket_size": 12})
        thresholds, solution = bucketize.choose_buckets(counts, wanted, None, tree)
        deal = round_robin.Deal.of(solution.setting, solution.partition, thresholds.tree.paths).mixed(3)
        of = round_robin.RoundRobin(deal, KEY)(*ranked(counts))
        listed: list[dict[str, int]] = []
        for stretch in round_robin.composition(deal):
            held = {counts.values[c]: k for c, k in zip(stretch.codes, stretch.counts, strict=True)}
            listed += [held] * (stretch.stop - stretch.start)
        facts, found = paper.bucketized(
            listed,
            dict(privacy),
            dict(zip(counts.values, thresholds.fractions, strict=True)),
            in_qit=np.bincount(of, minlength=deal.buckets).tolist(),
            stated=of_value(counts),
        )
        parts = [part.model_dump() for part in bucketize.node_parts(counts, thresholds)]
        facts = replace(facts, nodes=paper.nodes(listed, [part["node"] for part in parts], LUNGS))
        for k, (share, telling) in nodes_judge.shares(facts.nodes).items():
            parts[k] |= {"achieved": text(share), "telling": telling}
        said = f_privacy.guarantee_words("illness", counts, thresholds)
        found["guarantee"] |= {"hierarchy": tree.rows, "nodes": parts, "words": said}
        return bucketized_judge.judge(facts, paper.stating(found))

    return trial


def paired() -> Verdict:
    """Illness and ward bounded together: thresholds of both, even kinds of buckets, records dealt by kind."""
    facts, found = on_paper()
    return bucketized_judge.judge(facts, paper.stating(found))


def on_paper() -> tuple[Any, dict[str, Any]]:
    """What the tables of such a release hold, and its manifest."""
    texts = ("a|x", "a|y", "b|x", "b|y", "c|x", "c|z")
    counts = SensitiveCounts(texts, np.array([11, 9, 10, 10, 8, 12], dtype=np.int64))
    pair = column_pair.PairCounts.of(counts, lambda combination: combination.split("|"))
    asked = {"default": "1/2", "columns": {"ward": {"theta": "1", "offset": "1/5"}}}
    wanted = Bucketize.model_validate({"privacy": asked, "max_bucket_size": 12, "time_limit": 5})
    choice = bucketize_pair.choose_buckets(pair, wanted, ("illness", "ward"))
    of = kind_deal.ByKind(kind_deal.KindDeal.of(choice.pair.kinds, counts.m), KEY)(*ranked(counts))
    listed: list[dict[str, int]] = []
    for stretch in kind_deal.stretches(choice.pair.kinds):
        held = {texts[c]: n for c, n in zip(stretch.codes, stretch.counts, strict=True)}
        listed += [held] * (stretch.stop - stretch.start)
    bounds = dict(zip(texts, choice.thresholds.of_combinations(pair.codes), strict=True))
    in_qit, stated = (
        np.bincount(of, minlength=len(listed)).tolist(),
        dict(zip(texts, counts.counts.tolist(), strict=True)),
    )
    facts, found = paper.bucketized(listed, wanted.privacy.to_public_dict(), bounds, in_qit=in_qit, stated=stated)
    parts = bucketize_pair._guarantee(choice, "illness and ward", {"illness": "string", "ward": "string"}).model_dump()
    shares = {v["value"]: v["achieved"] for v in found["guarantee"]["values"]}
    for value in parts["values"]:
        value["achieved"] = shares[value["value"]]
    of_columns = paper.columns_of_two(listed, [[v["value"] for v in part["values"]] for part in parts["also"]])
    for part, largest in zip(parts["also"], columns_judge.shares(of_columns), strict=True):
        for i, value in enumerate(part["values"]):
            value["achieved"] = text(largest.get(i, Fraction(0)))
    found["guarantee"], rows = parts, found["tables"]["st"]["columns"]
    found["tables"]["st"]["columns"] = [
        rows[0],
        *({"name": n, "type": "string", "role": "sensitive"} for n in ("illness", "ward")),
        rows[-1],
    ]
    st = tuple((column["name"], column["type"]) for column in found["tables"]["st"]["columns"])
    return replace(facts, columns={**facts.columns, "st": st}, columns_of_two=of_columns), found


def faked(extra: int, *table: int) -> Callable[[], Verdict]:
    """3-diversity in buckets of three, with fakes by frequency."""

    def trial() -> Verdict:
        counts, privacy = counted(*table), {"l": "3"}
        wanted = Bucketize.model_validate({"privacy": privacy, "max_bucket_size": 4, "solver": "two_size"})
        thresholds, solution = bucketize.choose_buckets(counts, wanted)
        held = list(round_robin.composition(round_robin.Deal.of(solution.setting, solution.partition)))
        plan = fake_values.plan(counts.counts, held, extra, KEY)
        of = bucketize.by_plan(plan, counts, KEY)(*ranked(counts))
        listed = [{counts.values[c]: 1 for c in g.codes} for g in plan.listed for _ in range(g.start, g.stop)]
        facts, found = paper.bucketized(
            listed,
            privacy,
            dict(zip(counts.values, thresholds.fractions, strict=True)),
            in_qit=np.bincount(of, minlength=len(listed)).tolist(),
            stated=of_value(counts),
            fakes=extra,
        )
        order = sorted(range(counts.m), key=lambda i: counts.values[i])
        in_order = SensitiveCounts(tuple(counts.values[i] for i in order), counts.counts[order])
        asked = f_privacy.FPrivacy.l_diversity(3).thresholds(in_order)
        found["guarantee"]["words"] = f_privacy.guarantee_words("illness", in_order, asked, extra, plan.fakes[order])
        return bucketized_judge.judge(facts, paper.stating(found))

    return trial


def one_bucket(privacy: Mapping[str, str], *table: int) -> Callable[[], Verdict]:
    """The whole table in one bucket, under thresholds that were let pass."""

    def trial() -> Verdict:
        counts = counted(*table)
        asked = f_privacy.FPrivacy.uniform(privacy["default"])
        thresholds = dict(zip(counts.values, asked.thresholds(counts).fractions, strict=True))
        facts, found = paper.bucketized([of_value(counts)], dict(privacy), thresholds)
        return bucketized_judge.judge(facts, paper.stating(found))

    return trial


# --- perturb --------------------------------------------------------------------------------------------------------------------


def subtabled(rho2: str, rho1: str | None, *table: int) -> Callable[[], Verdict]:
    """Sub-tables, gammas, and records perturbed."""

    def trial() -> Verdict:
        counts = counted(*table)
        asked = {"rho2": rho2} | ({"rho1": rho1} if rho1 else {})
        choice = perturbing.choose_subtables(counts, Perturb.model_validate(asked))
        facts, found = _perturbed(counts, choice, rho2, rho1)
        order = sorted(counts.values)
        in_order = SensitiveCounts(tuple(order), np.array([of_value(counts)[v] for v in order], dtype=np.int64))
        protected = np.array([choice.protected[counts.values.index(v)] for v in order])
        wanted = rho_privacy.RhoPrivacy.of(rho2, rho1)
        found["guarantee"]["words"] = rho_privacy.guarantee_words("illness", wanted, in_order, protected)
        return perturbed_judge.judge(facts, paper.stating(found))

    return trial


def _perturbed(counts: SensitiveCounts, choice: Any, rho2: str, rho1: str | None) -> Any:
    found = choice.partitioning
    records = perturb.unpack(perturb.Perturb(found.subtables, KEY)(*ranked(counts)))
    shown = [
        Counter(counts.values[c] for c in records.code[records.subtable == i].tolist())
        for i in range(len(found.subtables))
    ]
    tables = list(found.subtables)
    parts = [{counts.values[c]: n for c, n in zip(t.codes.tolist(), t.counts.tolist(), strict=True)} for t in tables]
    guarded = frozenset(v for v, p in zip(counts.values, choice.protected.tolist(), strict=True) if p)
    utility = {
        "mean_retention": found.subtables.mean_retention,
        "uniform_retention": choice.uniform.subtables.mean_retention,
        "error_bound": found.bound,
        "uniform_error_bound": choice.uniform.bound,
        "count_error": found.count_error,
        "uniform_count_error": choice.uniform.count_error,
    }
    return paper.perturbed(
        parts,
        [t.gamma for t in tables],
        exact(rho2),
        None if rho1 is None else exact(rho1),
        published=shown,
        retention=[float(t.retention) for t in tables],
        utility=utility,
        protected=guarded,
    )


def two_columns() -> Verdict:
    """Illness and ward perturbed as one: what is said of each column alone."""
    values = ("a|x", "a|y", "b|x", "b|y")
    counts = SensitiveCounts(values, np.array([900, 700, 800, 600], dtype=np.int64))
    choice = perturbing.choose_subtables(counts, Perturb.model_validate({"rho2": "1/2"}))
    facts, found = _perturbed(counts, choice, "1/2", None)
    groups = [np.array([0, 0, 1, 1], dtype=np.int64), np.array([0, 1, 0, 1], dtype=np.int64)]
    alone = [
        (n, subtables.belief_in_groups(choice.partitioning.subtables, g))
        for n, g in zip(("illness", "ward"), groups, strict=True)
    ]
    said = rho_privacy.guarantee_words("illness and ward", rho_privacy.RhoPrivacy.of("1/2"), counts, choice.protected)
    found["guarantee"] |= {"sensitive": "illness and ward", "words": words.beliefs_in_columns(said, alone)}
    types = paper.operator_types({"illness": "string", "ward": "string"})
    microdata = {"age": "quasi_identifier", "illness": "sensitive", "ward": "sensitive", "subtable": "subtable"}
    kinds = {n: "int" if n in ("age", "subtable") else "string" for n in microdata}
    rows = found["tables"]
    rows["microdata"] = paper.table(counts.n, {n: (kinds[n], role) for n, role in microdata.items()})
    rows["operators"] = paper.table(len(choice.partitioning.subtables), {n: (t, n) for n, t in types.items()})
    facts = replace(facts, columns={"microdata": tuple(kinds.items()), "operators": tuple(types.items())})
    return perturbed_judge.judge(facts, paper.stating(found))


# --- classes --------------------------------------------------------------------------------------------------------------------


def people(m: int, seed: int = 3) -> tuple[Any, Any]:
    """(ages 0, 1, ..., sensitive codes) of N persons; codes go round, then are shuffled."""
    sensitive = np.arange(N) % m
    np.random.default_rng(seed).shuffle(sensitive)
    return np.arange(N, dtype=np.int64), sensitive.astype(np.int64)


def required(asked: Mapping[str, str], counts: SensitiveCounts, kind: str) -> Any:
    """The predicate of a promise, as the methods make it."""
    number = {name: exact(written) for name, written in asked.items()}
    made = {
        "k": lambda a: requirements.KAnonymity(int(a)),
        "distinct_l": lambda a: requirements.DistinctDiversity(int(a)),
        "frequency_l": lambda a: requirements.frequency_diversity(int(a), counts.m),
        "beta": lambda a: requirements.beta_likeness(a, counts),
        "enhanced_beta": lambda a: requirements.enhanced_beta_likeness(a, counts),
        "t": lambda a: t_closeness.TCloseness(ground(counts, kind), counts.counts, a),
    }
    return requirements.all_of([made[name](a) for name, a in number.items()])


def ground(counts: SensitiveCounts, kind: str) -> Any:
    if kind == "ordered":
        return t_closeness.GroundDistance.ordered(counts.values)
    return t_closeness.GroundDistance.flat(counts.m)


def classes(
    asked: Mapping[str, str], m: int = 3, kind: str = "flat", by: str = "mondrian", several: bool = False
) -> Callable[[], Verdict]:
    """Classes by a kernel under a promise."""

    def trial() -> Verdict:
        age, sensitive = people(m)
        counts = SensitiveCounts(tuple(map(str, range(m))), np.bincount(sensitive))
        requirement = required(asked, counts, kind)
        if several:
            requirement = t_closeness.SeveralAttributes((requirement,))
        if by == "mondrian":
            of = mondrian.mondrian([age], [DOMAIN], sensitive, m, requirement)
        elif by == "halving":
            records = halving.Records([age], [DOMAIN], [sensitive], [m], sensitive, np.arange(N))
            of = halving.halved(records, np.zeros(N, dtype=np.int64), requirement)
        else:
            pairs = np.arange(N, dtype=np.int64) // 2
            of = equivalence_classes.merged_until_kept(pairs, age, [sensitive], [m], requirement)
        groups = [Counter(str(s) for s in sensitive[of == c].tolist()) for c in range(int(of.max()) + 1)]
        return _classes(groups, asked, kind)

    return trial


def _classes(groups: Any, asked: Mapping[str, str], kind: str, sizes: Any = None) -> Verdict:
    facts, found = paper.generalized(groups, {n: exact(a) for n, a in asked.items()}, kind)
    if "t" in asked:
        values = [v["value"] for v in found["guarantee"]["values"]]
        counts = SensitiveCounts(tuple(values), np.array([v["count"] for v in found["guarantee"]["values"]]))
        closeness = t_closeness.TCloseness(ground(counts, kind), counts.counts, exact(asked["t"]))
        found["guarantee"]["words"] = t_closeness.guarantee_words("illness", closeness)
    if sizes is not None:
        found["solver"]["setting"] = paper.setting(sizes)
    return generalized_judge.judge(facts, paper.stating(found))


def taken_out() -> Verdict:
    """takeOut: classes of six, two records from each of three buckets."""
    age, sensitive = people(3)
    sizes = [[2, 2, 2]] * (N // 6)
    of = take_out.approximate(age.tolist(), sensitive, sizes, np.random.default_rng(1).permutation(N))
    groups = [Counter(str(s) for s in sensitive[of == c].tolist()) for c in range(int(of.max()) + 1)]
    return _classes(groups, {"k": "6", "frequency_l": "3"}, "flat", [6] * (N // 6))


def symmetric() -> Verdict:
    """Classes of three, one record from each of three sub-buckets."""
    age, sensitive = people(3)
    of = symmetric_classes.symmetric_classes([age], [DOMAIN], sensitive, np.random.default_rng(1).permutation(N))
    groups = [Counter(str(s) for s in sensitive[of == c].tolist()) for c in range(int(of.max()) + 1)]
    return _classes(groups, {"k": "3", "frequency_l": "3"}, "flat", [3] * (N // 3))


def streamed() -> Verdict:
    """Windows of 24 records that advance by 6 over values that change with time; every class measured from the window it came from."""
    draw = np.random.default_rng(5)
    n, m, t = 240, 3, Fraction(1, 10)
    sensitive = np.where(draw.random(n) < 0.5, np.repeat(draw.integers(0, m, n // 8), 8), draw.integers(0, m, n))
    distance = t_closeness.GroundDistance.flat(m)
    form = window_classes.WindowClasses((DOMAIN,), distance, 2, KEY)
    windows = sabre_window.Windows(24, 6, 2, distance, t, form)
    arriving = sabre_window.Records((draw.integers(0, N, n),), sensitive)
    done, _ = windows.advanced(windows.begin(arriving.columns), arriving)
    groups, ids, spreads = [], [], {}
    for shown in [advance.shown for advance in done if advance.shown is not None]:
        held = sensitive[shown.window * 6 : shown.window * 6 + 24]
        spreads[shown.window] = np.bincount(held, minlength=m).tolist()
        for own in np.unique(shown.classes).tolist():
            members = shown.number[shown.classes == own]
            groups.append(Counter(str(s) for s in sensitive[members].tolist()))
            ids.append((shown.window << CLASS_BITS) + own)
    asked = {"k": Fraction(2), "t": t}
    facts, found = paper.generalized(groups, asked, method="sabre")
    told = [str(v) for v in range(m)]
    far = distances_of_windows(distance_of("flat", told, [1] * m, "string", []), told, told, spreads, CLASS_BITS)
    value, at = far.largest(np.array([[g[v] for v in told] for g in groups]), ids)
    facts = replace(facts, classes=(replace(facts.classes[0], distance=Worst(value, ids[at])),))
    parts = {"id": "0" * 32, "batch": 0, "window": 24, "advance": 6, "values": told}
    shown_records = sum(map(len, (list(g.elements()) for g in groups)))
    found["stream"] = {**parts, "arrived": n, "shown": shown_records, "waiting": n - shown_records}
    found["method"]["parameters"] = {"t": "0.1", "k": 2}
    found["guarantee"]["model"] = "(omega, t)-closeness"
    found["guarantee"]["achieved"]["t"] = text(value)
    found["guarantee"]["words"] = words.closeness_in_windows("illness", "flat", t, 2, 24)
    return generalized_judge.judge(facts, paper.stating(found))


# --- matches --------------------------------------------------------------------------------------------------------------------


def matches(asked: Mapping[str, str], m: int) -> Callable[[], Verdict]:
    """Heterogeneous generalization of one partition: the kernel's own evidence, told to the audit."""
    return lambda: generalized_judge.judge(*_matched_under(asked, m))


def stated_of_matches(asked: Mapping[str, str], m: int) -> Callable[[], Verdict]:
    """The same once the evidence is gone: what the workflow wrote into the manifest of what had been found stands alone."""
    return lambda: _without_evidence(*_matched_under(asked, m))


def stated_of_nodes(**thresholds: str) -> Callable[[], Verdict]:
    """The same of `matches_of_nodes`."""
    return lambda: _without_evidence(*_matched_under_nodes(thresholds))


def _without_evidence(facts: GeneralizedFacts, manifest: Manifest) -> Verdict:
    written = workflow.completed(manifest, generalized_judge.judge(facts, manifest), {})
    return generalized_judge.judge(replace(facts, graph=None), written)


def _matched_under(asked: Mapping[str, str], m: int) -> tuple[GeneralizedFacts, Manifest]:
    age, sensitive = people(m)
    counts = SensitiveCounts(VALUES[:m], np.bincount(sensitive))
    wanted = heterogeneous.Heterogeneous.model_validate({**asked, "matching": "greedy"})
    promised = heterogeneous.bucketing(counts, wanted)
    kernel = heterogeneous.Matching((DOMAIN,), m, promised, None, "greedy", False, KEY)
    bounds = heterogeneous.thresholds(counts, promised)
    return _matched(counts, kernel([age], sensitive, 0), asked, thresholds=bounds)


def matches_of_nodes(**thresholds: str) -> Callable[[], Verdict]:
    """The same under l-diversity with thresholds of nodes of `LUNGS` and of values."""
    return lambda: generalized_judge.judge(*_matched_under_nodes(thresholds))


def _matched_under_nodes(thresholds: Mapping[str, str]) -> tuple[GeneralizedFacts, Manifest]:
    age, sensitive = people(6)
    counts, tree = SensitiveCounts(VALUES, np.bincount(sensitive)), hierarchy_of(LUNGS)
    wanted = heterogeneous.Heterogeneous.model_validate({"l": 3, "thresholds": thresholds, "matching": "greedy"})
    promised = heterogeneous.bucketing(counts, wanted, tree)
    out = heterogeneous.Matching((DOMAIN,), 6, promised, None, "greedy", False, KEY)([age], sensitive, 0)
    parts = heterogeneous.node_parts(counts, wanted, tree)
    return _matched(
        counts,
        out,
        {"l": "3"},
        parameters=wanted.to_public_dict(),
        thresholds=heterogeneous.thresholds(counts, promised),
        nodes=parts,
        said=heterogeneous.words("illness", wanted, counts.values, parts),
    )


def matches_of_two() -> Verdict:
    """l-diversity by matches of illness and drug: each judged by itself, on evidence that has both."""
    age, illness = people(6)
    drug = (illness + np.arange(N) // 7) % 5
    kernel = heterogeneous_pair.PairMatching((DOMAIN,), (6, 5), 3, "greedy", KEY)
    out = kernel([age], [illness, drug], np.zeros(N, dtype=np.int64), 0)
    told: list[dict[str, Any]] = []
    around: tuple[list[Counter[str | None]], ...] = ([], [])
    published = (Counter[str | None](), Counter[str | None]())
    for place in np.unique(out["partition"]).tolist():
        here = np.flatnonzero(out["partition"] == place)
        graph, own = out["matches"].take(here).listed().tolist(), (out["own"][here], out["own1"][here])
        group = pa.table(
            {name: out[name][here] for name in ("record", "q0", "dummy", "assigned")}
            | {"matches": graph, "s0": own[0], "s1": own[1]}
        )
        read = generalized_evidence.Graph.read(place, group, 1, 2)
        columns = generalized_evidence.facts_of(read, (DOMAIN,), BoxFingerprint(1))
        told += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for k, codes in enumerate(own):
            around[k].extend(Counter(VALUES[codes[j]] for j in row) for row in graph)
            published[k].update(VALUES[code] for code in out[f"s{k}"][here].tolist())
    facts = _graph(told, 2)
    counts = [of_value(SensitiveCounts(VALUES[:m], np.bincount(c))) for m, c in ((6, illness), (5, drug))]
    of_columns = [paper.matched(c, some, {"l": Fraction(3)}) for c, some in zip(counts, around, strict=True)]
    (of, found), (of_drug, found_drug) = of_columns
    said = heterogeneous_pair.words(("illness", "drug"), 3)
    found["guarantee"] |= {
        "words": said[0],
        "also": [found_drug["guarantee"] | {"words": said[1], "sensitive": "drug"}],
    }
    found["tables"]["microdata"]["columns"].append({"name": "drug", "type": "string", "role": "sensitive"})
    table = (*of.columns["microdata"], ("drug", "string"))
    manifest = paper.stating(found)
    checks = tuple(generalized_evidence.graph_checks(facts, manifest))
    kept = replace(of.graph, checks=checks, also=(of_drug.graph.worst_cases,))
    of = replace(of, graph=kept, distributions=published, columns={"microdata": table})
    return generalized_judge.judge(of, manifest)


def rings(l: int, m: int) -> Callable[[], Verdict]:  # noqa: E741
    """Ring generalization of one partition."""

    def trial() -> Verdict:
        age, sensitive = people(m)
        counts = SensitiveCounts(VALUES[:m], np.bincount(sensitive))
        made = ring_generalization.rings(age, sensitive, l)
        found = made.matches(l)
        out = {
            "partition": np.zeros(N, dtype=np.int64),
            "record": np.arange(N),
            "q0": age,
            "own": sensitive,
            "dummy": np.zeros(N, dtype=bool),
            "matches": Lists.of_rows(found.astype(np.int32)),
            "assigned": made.shifted(np.ones(len(made.sizes), dtype=np.int64)),
        }
        return generalized_judge.judge(*_matched(counts, out, {"l": str(l)}, "nh"))

    return trial


def _matched(
    counts: SensitiveCounts,
    out: Mapping[str, Any],
    asked: Mapping[str, str],
    method: str = "heterogeneous",
    parameters: Mapping[str, Any] | None = None,
    thresholds: Sequence[Fraction] = (),
    nodes: Sequence[NodePart] = (),
    said: str | None = None,
) -> tuple[GeneralizedFacts, Manifest]:
    """What the table and the evidence of matches hold, and what the manifest states. thresholds : of each value, by default those that
    follow from `asked`"""
    names = ("record", "q0", "dummy", "assigned")
    under = [[counts.values.index(row[0]) for row in LUNGS if node.node in row] for node in nodes]
    own, places = np.asarray(out["own"]), np.asarray(out["partition"])
    told: list[dict[str, Any]] = []
    around: list[Counter[str | None]] = []
    published = Counter[str | None]()
    for place in np.unique(places).tolist():
        here = np.flatnonzero(places == place)
        graph = out["matches"].take(here).listed().tolist()
        group = pa.table({name: np.asarray(out[name])[here] for name in names} | {"matches": graph, "s0": own[here]})
        read = generalized_evidence.Graph.read(place, group, 1)
        columns = generalized_evidence.facts_of(read, (DOMAIN,), BoxFingerprint(1), under)
        told += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        around += [Counter(counts.values[own[here][j]] for j in row) for row in graph]
        published.update(counts.values[own[here][j]] for j in np.asarray(out["assigned"])[here])
    facts = _graph(told)
    of, found = paper.matched(of_value(counts), around, {n: exact(a) for n, a in asked.items()}, method)
    if said is not None:
        found["method"]["parameters"] = dict(parameters or {})
        found["guarantee"] |= {
            "words": said,
            "hierarchy": LUNGS,
            "nodes": [_node(n, k, facts) for k, n in enumerate(nodes)],
        }
    elif method == "nh":
        found["guarantee"]["words"] = words.rings("illness", int(asked["l"]))
    else:
        found["guarantee"]["words"] = heterogeneous.words(
            "illness", heterogeneous.Heterogeneous.model_validate(dict(asked))
        )
    if thresholds:
        bounds = dict(zip(counts.values, thresholds, strict=True))
        for value in found["guarantee"]["values"]:
            value["threshold"] = text(bounds[value["value"]])
    dummies = int(np.asarray(out["dummy"]).sum())
    found["rows"]["dummy"] = dummies
    manifest = paper.stating(found)
    checks = tuple(generalized_evidence.graph_checks(facts, manifest))
    rows = paper.Measured(len(own), paper.CHECKSUM)
    manifest.tables["microdata"].rows = len(own)
    manifest = manifest.model_copy(update={"utility": {"gcp": 1.5 / len(own), "ail": 2.5 / len(own)}})
    kept = replace(of.graph, checks=checks, worst_cases=replace(of.graph.worst_cases, nodes=facts.nodes))
    return replace(of, graph=kept, distributions=(dict(published),), boxes=replace(of.boxes, measured=rows)), manifest


def _node(node: NodePart, k: int, facts: GraphFacts) -> dict[str, Any]:
    case = facts.nodes.get(k, NodeCase())
    return node.model_dump() | {"achieved": text(case.share), "telling": case.telling}


def _graph(told: list[dict[str, Any]], columns: int = 1) -> GraphFacts:
    """What all partitions tell together, as the audit adds it up."""
    rows = []
    for kind, key in sorted({(r["kind"], int(r["key"])) for r in told}):
        of = [r for r in told if (r["kind"], int(r["key"])) == (kind, key)]
        best = max(of, key=lambda r: (r["worst"], r["top"], r["bottom"], r["partition"]))
        rows.append({"kind": kind, "key": key, "n": sum(int(r["n"]) for r in of), "best": best})
    return generalized_evidence._graph_facts(rows, columns)
