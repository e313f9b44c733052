"""One planted fault for every formula of `anonlib.privacy` and every record kernel, and the check that must fail when it is there.

    python -m tests.contract.planted_faults

prints the list. `test_planted_faults.py` plants each, on paper (see `tests.contract.trials`) or through the public door, and
`tests/structure/test_planted_faults_cover.py` says which row is missing. Whoever adds a formula or a kernel adds a row to `FAULTS`, or
says in `NO_PROMISE` why no promise rests on it.
"""

# ruff: noqa: E501  (a table: one row a line)

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.audit.achieved import NAME as ACHIEVED
from anonlib.audit.bucketized.columns_judge import PRIVACY as COLUMNS
from anonlib.audit.bucketized.columns_judge import VALUES as OF_COLUMNS
from anonlib.audit.bucketized.nodes_judge import PRIVACY as NODES
from anonlib.audit.generalized.nodes_judge import BELIEFS as NODES_BELIEVED
from anonlib.audit.generalized.nodes_judge import MATCHES as NODES_MATCHED
from anonlib.audit.generalized.nodes_judge import OWN
from anonlib.audit.generalized.nodes_judge import SHARES as NODES_STATED
from anonlib.audit.nodes import TREE
from anonlib.audit.promised import NAME as WORDS
from anonlib.exact import exact, text
from anonlib.kernels.matching.disjoint_matchings import random_matching
from anonlib.kernels.matching.matching_deal import DealtRecords
from tests.contract import trials
from tests.door import bucketize

Change = Callable[[Any], Any]
"""What is put in place of a function, class or property, given the right one."""


@dataclass(frozen=True)
class Fault:
    """A fault that is tried on paper.

    where : "anonlib.module:name" or "anonlib.module:Class.name", what is made wrong
    fault : how, in words; check : the check that must fail; change, trial : the fault, and the method it is planted in
    """

    where: str
    fault: str
    check: str
    change: Change
    trial: Callable[[], Any]


@dataclass(frozen=True)
class AtTheDoor:
    """A fault that is tried through the public door: a release that must end in exit 4 with nothing visible.

    covers : what is at fault, where `where` is the task that calls it on the executors
    """

    where: str
    fault: str
    check: str
    change: Change
    method: dict[str, Any]
    covers: str = ""
    other: bool = True


def resolved(where: str) -> tuple[Any, str]:
    """(the module or class, the name in it)."""
    module, path = where.split(":")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def plant(monkeypatch: Any, where: str, change: Change) -> None:
    """Put a fault in place of what stands at `where`, and wherever product code has imported it by name; never in the audit."""
    owner, name = resolved(where)
    right = owner.__dict__[name]
    wrong = change(right)
    monkeypatch.setattr(owner, name, wrong)
    home = getattr(
        right, "__module__", None
    )  # a task made wrong where a method uses it stays right at home, so that it can be pickled
    for module in list(sys.modules.values()):
        of = getattr(module, "__name__", "")
        if of == home or of.startswith("anonlib.audit"):
            continue
        if of.startswith("anonlib.") and vars(module).get(name) is right:
            monkeypatch.setattr(module, name, wrong)


# --- ways to be wrong -------------------------------------------------------------------------------------------------------------


def times(factor: Any) -> Change:
    """Whatever it gives, times a factor."""
    return lambda right: lambda *given, **named: factor * right(*given, **named)


def share_times(factor: int) -> Change:
    """A share times a factor, at most all."""
    return lambda right: lambda *given, **named: min(Fraction(1), factor * right(*given, **named))


def property_times(factor: Any) -> Change:
    """A property's value times a factor."""
    return lambda right: property(lambda self: factor * getattr(right, "fget", right).__get__(self)())


def less_first(right: Any) -> Any:
    """One less of the first number asked for."""
    return lambda number, *rest: right(number - 1, *rest)


def with_twice(at: int) -> Change:
    """The argument at a place doubled."""
    return lambda right: lambda *given: right(*(2 * g if i == at else g for i, g in enumerate(given)))


def always(right: Any) -> Any:
    """Whatever is asked, it holds: the check was dropped."""
    return lambda self, counts, *rest: np.ones(len(counts), dtype=bool)


def first_only(right: Any) -> Any:
    """Of several requirements, the first."""
    return lambda parts: parts[0]


def words_of_half(right: Any) -> Any:
    """A text with other numbers."""
    return lambda *given, **named: right(*given, **named).replace("probability", "chance").replace("earth", "air")


def capacity_up(right: Any) -> Any:
    """Rounded up."""
    return lambda *given: right(*given) + 1


def no_eligibility(right: Any) -> Any:
    """Thresholds without Lemma 1."""
    from anonlib.privacy.f_privacy import Thresholds

    return lambda self, counts: Thresholds(
        tuple(self.threshold(v, counts.frequency(i)) for i, v in enumerate(counts.values))
    )


def one_bucket_on(right: Any) -> Any:
    """Every record of one bucket goes to the next."""

    def wrong(self: Any, code: Any, rank: Any) -> Any:
        found = right(self, code, rank)
        found[found == 1] = 2
        return found

    return wrong


def a_value_less(right: Any) -> Any:
    """The last value of each bucket stands as the first."""

    def wrong(deal: Any) -> Any:
        for stretch in right(deal):
            codes = (stretch.codes[0], *stretch.codes[1:-1], stretch.codes[0])
            yield replace(stretch, codes=codes) if len(stretch.codes) > 1 else stretch

    return wrong


def crowded_band(right: Any) -> Any:
    """The records of the first value that belong to the second band go to the first, in exchange for others'; no sum changes."""

    def wrong(deal: Any, *bands: Any) -> Any:
        mixed = right(deal, *bands)
        partition = mixed.partition.copy()
        for value in range(1, len(partition)):
            moved = min(int(partition[0, 1]), int(partition[value, 0]))
            partition[[0, value], 0] += np.array([moved, -moved])
            partition[[0, value], 1] -= np.array([moved, -moved])
        return replace(mixed, partition=partition)

    return wrong


def out_of_its_node(right: Any) -> Any:
    """The first value that stands under a node stands under none."""

    def wrong(*given: Any) -> Any:
        tree = right(*given)
        above = tree.above.copy()
        above[np.flatnonzero(above >= 0)[0]] = -1
        return replace(tree, above=above)

    return wrong


def as_values_come(right: Any) -> Any:
    """Values go round in the order of their codes, whatever stands above them."""
    return staticmethod(lambda setting, partition, paths=None: right.__func__(setting, partition))


def limits_up(right: Any) -> Any:
    """One record of a node more than its threshold allows."""

    def wrong(thresholds: Any, sizes: Any) -> Any:
        limits = right.__func__(thresholds, sizes)
        return replace(limits, capacities=limits.capacities + 1)

    return staticmethod(wrong)


def rare_only(right: Any) -> Any:
    """The most frequent of the protected values is left out."""

    def wrong(self: Any, counts: Any) -> Any:
        found = right(self, counts).copy()
        guarded = np.flatnonzero(found)
        found[guarded[np.argmax(counts.counts[guarded])]] = False
        return found

    return wrong


def not_perturbed(right: Any) -> Any:
    """Every record is published with its own value."""
    from anonlib.kernels.ranked.perturb import CODE_BITS

    def wrong(self: Any, code: Any, rank: Any) -> Any:
        return (right(self, code, rank) >> CODE_BITS << CODE_BITS) | code

    return wrong


def other_operator(right: Any) -> Any:
    """Twice as many records keep their values as the operators say."""

    def wrong(tables: Any) -> Any:
        made = right(tables)
        return replace(made, keeps=np.minimum(made.keeps, np.uint64(2**63 - 1)) * np.uint64(2))

    return wrong


def higher(right: Any) -> Any:
    """A distance whose farthest values lie twice as far apart, so that all others look near."""
    return staticmethod(lambda *given: replace(right.__func__(*given), height=2 * right.__func__(*given).height))


def subtable_of_another(right: Any) -> Any:
    """rho1 from the rarest protected value rather than the most frequent."""

    def wrong(codes: Any, counts: Any, protected: Any, rho2: Any) -> Any:
        from anonlib.privacy import rho_privacy

        made = right.__func__(codes, counts, protected, rho2)
        rho1 = Fraction(int(made.counts.min()), int(made.counts.sum()))
        return replace(made, rho1=rho1, gamma=rho_privacy.amplification(rho1, rho2))

    return staticmethod(wrong)


def one_of_all(right: Any) -> Any:
    """Every record is published with the value of its first match."""
    return lambda matches, *more: np.asarray(matches)[:, 0] * 0 + np.asarray(matches)[0, 0]


def no_own_thresholds(right: Any) -> Any:
    """What values and nodes have of their own is forgotten."""
    return lambda values, bounds, own, hierarchy: right(values, bounds, {}, hierarchy)


def nodes_anywhere(right: Any) -> Any:
    """A node may be in every bucket."""
    return lambda self, mu: np.append(right(self, mu)[: len(self.values)], [mu] * len(self.nodes))


def under_no_node(right: Any) -> Any:
    """Nodes have limits, and nobody is under them."""
    return lambda *given: replace(right(*given), above=np.full(len(given[0]), -1))


def every_place(right: Any) -> Any:
    """Whatever sets begin within a bucket."""
    return lambda self, begin, end, mu, first, last: end


def the_papers_draw(right: Any) -> Any:
    """Values dealt by one of the disjoint matchings, which somebody sees twice."""
    return lambda matches, key, *place: random_matching(matches, key, *place)


def one_colour(right: Any) -> Any:
    """Every record in the first colour."""
    return lambda colours, *more: colours * 0


def of_the_one_before(right: Any) -> Any:
    """Every record with the matches of the one before in its bucket: as regular as before, and most without the record itself."""

    def wrong(*given: Any) -> Any:
        found = right(*given)
        mu = found.shape[1]
        return np.roll(found.reshape(mu, -1, mu), 1, axis=1).reshape(found.shape)

    return wrong


def all_but_one(right: Any) -> Any:
    """Neighbourhoods that leave out a record of each bucket."""

    def wrong(*given: Any) -> Any:
        return [
            DealtRecords(
                d.mu, d.size - 1, *(a.reshape(d.mu, d.size)[:, 1:].ravel() for a in (d.source, d.sensitive, d.dummy))
            )
            for d in right(*given)
        ]

    return wrong


def one_too_many(right: Any) -> Any:
    """takeOut with a record of a class in the one before."""

    def wrong(*given: Any) -> Any:
        found = right(*given)
        found[np.flatnonzero(found == 1)[0]] = 0
        return found

    return wrong


def shrunk(right: Any) -> Any:
    """Boxes without their upper ends."""

    class Shrunk(right):
        def __call__(self, *given: Any) -> Any:
            found = super().__call__(*given)
            return {n: found[n.replace("_hi", "_lo")] if n.endswith("_hi") else column for n, column in found.items()}

    return Shrunk


def other_values(right: Any) -> Any:
    """The records of a pool dealt with one another's values."""

    class Swapped(right):
        def __call__(self, *given: Any) -> Any:
            found = super().__call__(*given)
            own = np.roll(found["own"], 1)
            return {**found, "own": own, "s0": own[found["assigned"]]}

    return Swapped


def a_third_of_shares(right: Any) -> Any:
    """A third of what was found of each value."""
    return lambda part, shares, numbers: right(part, {v: text(exact(s) / 3) for v, s in shares.items()}, numbers)


def numbers_doubled(right: Any) -> Any:
    """What was found of the model's own numbers, doubled."""
    return lambda part, shares, numbers: right(part, shares, {name: text(2 * exact(n)) for name, n in numbers.items()})


def nodes_halved(right: Any) -> Any:
    """What was found of each node, halved."""

    def wrong(*given: Any) -> Any:
        written = right(*given)
        halved = [n.model_copy(update={"achieved": text(exact(n.achieved) / 2)}) for n in written.guarantee.nodes]
        return written.model_copy(update={"guarantee": written.guarantee.model_copy(update={"nodes": halved})})

    return wrong


def thresholds_doubled(right: Any) -> Any:
    """Every threshold twice as high."""
    return lambda *given: [min(Fraction(1), 2 * f) for f in right(*given)]


def by_the_first(right: Any) -> Any:
    """Pools are made by the values of the first column alone: those of the second are taken to differ."""
    return lambda counts, codes, number: right(counts, np.stack([codes[0], np.arange(len(counts))]), number)


def looser_second(right: Any) -> Any:
    """The second column's thresholds doubled."""

    def wrong(*given: Any) -> Any:
        found = right(*given)
        twice = tuple(min(Fraction(1), 2 * f) for f in found.columns[1].fractions)
        return replace(found, columns=(found.columns[0], replace(found.columns[1], fractions=twice)))

    return wrong


def swapped_codes(right: Any) -> Any:
    """Two combinations are counted with each other's value of the second column."""

    def wrong(*given: Any) -> Any:
        found = right.__func__(*given)
        codes = found.codes.copy()
        codes[1, [0, 1]] = codes[1, [1, 0]]
        return replace(found, codes=codes)

    return staticmethod(wrong)


def room_for_more(right: Any) -> Any:
    """A record more of every value than its threshold allows."""

    def wrong(*given: Any) -> Any:
        found = right.__func__(*given)
        return replace(found, capacities=tuple(c + 1 for c in found.capacities))

    return staticmethod(wrong)


def drawn_evenly(right: Any) -> Any:
    """Fakes drawn whatever the values' frequency: the frequent ones are hardly ever fake."""

    def wrong(counts: Any, total: int, buckets: int) -> Any:
        found = np.minimum(buckets - counts, total // len(counts))
        for i in np.argsort(counts, kind="stable").tolist():
            found[i] += min(buckets - int(counts[i]) - int(found[i]), total - int(found.sum()))
        return found

    return wrong


def fakes_of_one_value(right: Any) -> Any:
    """Of the first buckets, one fake stands for another."""

    def wrong(*given: Any) -> Any:
        first, *rest = right(*given)
        other = next(c for c in range(len(given[1])) if c not in first)
        return [replace(first, fake=frozenset([*sorted(first.fake)[1:], other])), *rest]

    return wrong


def told_half(right: Any) -> Any:
    """Half of what counts tell."""
    return lambda *given: tuple(share / 2 for share in right(*given))


def a_fake_less(right: Any) -> Any:
    """Buckets of which the first has one fake value less."""

    class Fewer(right):
        def __call__(self, bucket: Any, excluded: Any = None) -> Any:
            ids, listed = super().__call__(bucket, excluded)
            return ids[1:], listed[1:]

    return Fewer


def whatever_the_window(right: Any) -> Any:
    """Classes of two records that follow one another, and nobody looks at their values."""

    def wrong(self: Any, state: Any, members: Any, values: Any, t: Any) -> Any:
        classes = np.full(len(members), -1, dtype=np.int64)
        classes[members] = np.arange(int(members.sum())) // 2
        return replace(state, classes=classes, formed=state.window, spread=self._counted(values))

    return wrong


def as_of_the_next(right: Any) -> Any:
    """Classes that stood by are said to be of the window that shows them."""

    def wrong(self: Any, state: Any) -> Any:
        advance, after = right(self, state)
        shown = advance.shown
        moved = None if shown is None else replace(shown, window=advance.window)
        return replace(advance, shown=moved), after

    return wrong


# --- the table --------------------------------------------------------------------------------------------------------------------

PRIVACY, KERNELS = "anonlib.privacy", "anonlib.kernels"
LINEAR = trials.buckets({"theta": "1.4", "offset": "0.02"}, 12, 11, 10, 9, 8, 10)
DIVERSE = trials.buckets({"l": "3"}, 12, 11, 10, 9, 8, 10)
UNEVEN = trials.buckets({"default": "0.45"}, 26, 12, 11, 11)
ALL = trials.subtabled("1/3", None, 500, 600, 400, 700, 300, 500)
SOME = trials.subtabled("1/3", "1/5", 1500, 600, 400, 700, 300, 500)
LUNGS = trials.noded({"default": "1", "thresholds": {"lungs": "0.5"}}, 9, 11, 9, 11, 11, 9)
FAKED = trials.faked(2, 24, 20, 18, 16, 12, 6)
TOO_STRICT = trials.one_bucket({"default": "1/5"}, 3, 1, 1)
SKEWED = trials.subtabled("1/3", "1/5", 6000, 600, 400, 700, 300, 500)
NUMBERS, PRIVATE = "the manifest's numbers", "(rho1, rho2)-privacy"
FOLLOWS = "thresholds follow from the stated requirement"
CLOSE = trials.classes({"t": "1/4"})
ORDERED = trials.classes({"t": "1/4"}, 5, "ordered")
STATED = trials.stated_of_matches({"l": "3"}, 6)
IN_POOLS = trials.matches_of_nodes(lungs="1/2", HIV="1/4")

FAULTS = (
    Fault(f"{PRIVACY}.f_privacy:FPrivacy.threshold", "a factor 2", FOLLOWS, share_times(2), LINEAR),
    Fault(f"{PRIVACY}.f_privacy:FPrivacy.thresholds", "Lemma 1 forgotten", "thresholds can be kept", no_eligibility, TOO_STRICT),
    Fault(f"{PRIVACY}.f_privacy:FPrivacy.l_diversity", "l less 1", FOLLOWS, lambda right: staticmethod(lambda number: right.__func__(number - 1)), DIVERSE),
    Fault("anonlib.solvers.buckets.sensitive_table:_capacities", "rounded up", "F'-privacy", capacity_up, UNEVEN),
    Fault(f"{PRIVACY}.f_privacy:guarantee_words", "other words", WORDS, words_of_half, LINEAR),
    Fault(f"{PRIVACY}.buckets:BucketSetting.loss", "a factor 2", "bucket sizes", property_times(2), LINEAR),
    Fault(f"{PRIVACY}.buckets:BucketSetting.msbs", "a factor 1/2", "bucket sizes", property_times(0.5), LINEAR),
    Fault(f"{PRIVACY}.counts:SensitiveCounts.frequency", "a factor 2", FOLLOWS, times(2), LINEAR),
    Fault(f"{KERNELS}.ranked.round_robin:RoundRobin.__call__", "a bucket further", "buckets of qit and st", one_bucket_on, LINEAR),
    Fault(f"{KERNELS}.ranked.round_robin:Deal.mixed", "a value crowded into one band", "F'-privacy", crowded_band, LINEAR),
    Fault(f"{KERNELS}.ranked.round_robin:composition", "a value instead of another", "overall counts of sensitive values", a_value_less, LINEAR),
    Fault(f"{PRIVACY}.value_tree:value_tree", "a value out of its node", TREE, out_of_its_node, LUNGS),
    Fault(f"{PRIVACY}.value_tree:ValueTree.records", "half of them", TREE, lambda right: lambda self, counts: right(self, counts) // 2, LUNGS),
    Fault(f"{PRIVACY}.f_privacy:node_shares", "half of it", WORDS, lambda right: lambda *given: tuple((node, f / 2) for node, f in right(*given)), LUNGS),
    Fault(f"{PRIVACY}.column_pair:pair_thresholds", "the second column's doubled", OF_COLUMNS, looser_second, trials.paired),
    Fault(f"{PRIVACY}.column_pair:PairCounts.of", "values of two combinations exchanged", COLUMNS, swapped_codes, trials.paired),
    Fault(f"{PRIVACY}.column_pair:PairThresholds.of_combinations", "half of them", FOLLOWS, lambda right: lambda self, codes: tuple(f / 2 for f in right(self, codes)), trials.paired),
    Fault(f"{KERNELS}.ranked.kind_deal:ByKind.__call__", "a bucket further", "buckets of qit and st", one_bucket_on, trials.paired),
    Fault(f"{KERNELS}.ranked.kind_deal:stretches", "a value instead of another", "overall counts of sensitive values", a_value_less, trials.paired),
    Fault("anonlib.solvers.buckets.pair_program:PairTable.of", "a record more", COLUMNS, room_for_more, trials.paired),
    Fault("anonlib.solvers.buckets.node_limits:NodeLimits.of", "a record more", NODES, limits_up, LUNGS),
    Fault(f"{KERNELS}.ranked.round_robin:Deal.of", "values in the order of their codes", NODES, as_values_come, LUNGS),
    Fault(f"{KERNELS}.ranked.round_robin:Deal._mixed_line", "values in the order of their codes in a band", NODES, lambda right: lambda self, j: np.arange(len(self.partition)), LUNGS),
    Fault(f"{PRIVACY}.f_privacy:real_shares", "half of it", WORDS, told_half, FAKED),
    Fault("anonlib.solvers.buckets.fake_values:apportion", "whatever the frequency", "fake values by frequency", drawn_evenly, FAKED),
    Fault("anonlib.solvers.buckets.fake_lists:fakes_beside", "a fake instead of another", "fake values by frequency", fakes_of_one_value, FAKED),
    Fault(f"{KERNELS}.ranked.fake_deal:FakeDeal.__call__", "a bucket further", "buckets of qit and st", one_bucket_on, FAKED),
    Fault(f"{PRIVACY}.rho_privacy:amplification", "a factor 2", PRIVATE, times(2), ALL),
    Fault(f"{PRIVACY}.rho_privacy:amplification", "a factor 2, achieved", ACHIEVED, times(2), SOME),
    Fault(f"{PRIVACY}.rho_privacy:retention", "a factor 1.1", "operators", times(Fraction(11, 10)), ALL),
    Fault(f"{PRIVACY}.rho_privacy:confidence_factor", "a factor 1/2", NUMBERS, times(0.5), ALL),
    Fault(f"{PRIVACY}.rho_privacy:spread", "a factor 1/2", NUMBERS, times(0.5), ALL),
    Fault(f"{PRIVACY}.rho_privacy:squared_error", "a factor 1/2", NUMBERS, times(0.5), ALL),
    Fault(f"{PRIVACY}.rho_privacy:RhoPrivacy.protected", "a value left out", "the requirement follows from the parameters", rare_only, SOME),
    Fault(f"{PRIVACY}.rho_privacy:guarantee_words", "other words", WORDS, words_of_half, SOME),
    Fault(f"{PRIVACY}.subtables:SubTable.of", "rho1 of the rarest value", PRIVATE, subtable_of_another, ALL),
    Fault(f"{PRIVACY}.subtables:SubTables.mean_retention", "a factor 2", NUMBERS, property_times(2), ALL),
    Fault(f"{PRIVACY}.subtables:belief_in_groups", "a factor 1/2", WORDS, times(Fraction(1, 2)), trials.two_columns),
    Fault(f"{KERNELS}.ranked.perturb:Perturb.__call__", "values not perturbed", "values are perturbed", not_perturbed, ALL),
    Fault(f"{KERNELS}.ranked.perturb:_tables", "another operator than stated", "values are perturbed", other_operator, SKEWED),
    Fault(f"{PRIVACY}.class_requirements:KAnonymity", "k less 1", "k-anonymity", less_first, trials.classes({"k": "8"})),
    Fault(f"{PRIVACY}.class_requirements:DistinctDiversity", "l less 1", "distinct l-diversity", less_first, trials.classes({"distinct_l": "3"})),
    Fault(f"{PRIVACY}.class_requirements:frequency_diversity", "l less 1", "frequency l-diversity", less_first, trials.classes({"frequency_l": "2"})),
    Fault(f"{PRIVACY}.class_requirements:ShareCaps.holds", "the l check dropped", "frequency l-diversity", always, trials.classes({"frequency_l": "2"})),
    Fault(f"{PRIVACY}.class_requirements:beta_likeness", "twice beta", "beta-likeness", with_twice(0), trials.classes({"beta": "1/2"})),
    Fault(f"{PRIVACY}.class_requirements:enhanced_beta_likeness", "twice beta", "enhanced beta-likeness", with_twice(0), trials.classes({"enhanced_beta": "1/3"})),
    Fault(f"{PRIVACY}.class_requirements:minus_log", "a factor 3", "enhanced beta-likeness", times(3), trials.classes({"enhanced_beta": "5"}, 2)),
    Fault(f"{PRIVACY}.class_requirements:all_of", "the first alone", "frequency l-diversity", first_only, trials.classes({"k": "2", "frequency_l": "2"})),
    Fault(f"{PRIVACY}.class_requirements:AllOf.holds", "none asked", "frequency l-diversity", always, trials.classes({"k": "2", "frequency_l": "2"})),
    Fault(f"{PRIVACY}.earth_mover:EarthMover.allowed", "a factor 2", "t-closeness", times(2), CLOSE),
    Fault(f"{PRIVACY}.earth_mover:EarthMover.work", "a factor 1/2", "t-closeness", lambda right: lambda *given: right(*given) // 2, ORDERED),
    Fault(f"{PRIVACY}.t_closeness:GroundDistance.flat", "twice as far at most", "t-closeness", higher, CLOSE),
    Fault(f"{PRIVACY}.t_closeness:GroundDistance.ordered", "twice as far at most", "t-closeness", higher, ORDERED),
    Fault(f"{PRIVACY}.t_closeness:TCloseness.close", "not asked", "t-closeness", always, ORDERED),
    Fault(f"{PRIVACY}.t_closeness:SeveralAttributes.holds", "not asked", "t-closeness", always, trials.classes({"t": "1/4"}, several=True)),
    Fault(f"{PRIVACY}.t_closeness:guarantee_words", "other words", WORDS, words_of_half, CLOSE),
    Fault(f"{KERNELS}.classes.mondrian:_Search._keeps", "halves not asked", "frequency l-diversity", lambda right: lambda self, halves: np.ones(halves.count, dtype=bool), trials.classes({"frequency_l": "2"})),
    Fault(f"{KERNELS}.classes.halving:_Search._kept", "halves not asked", "t-closeness", lambda right: lambda self, of, own, upper, number: np.ones(number, dtype=bool), trials.classes({"t": "1/4"}, 5, "ordered", "halving")),
    Fault(f"{KERNELS}.classes.equivalence_classes:broken_classes", "none is broken", "t-closeness", lambda right: lambda *given: np.zeros(0, dtype=np.int64), trials.classes({"t": "1/4"}, 5, "ordered", "merged")),
    Fault(f"{KERNELS}.classes.take_out:approximate", "a record in the class before", "class sizes", one_too_many, trials.taken_out),
    Fault(f"{KERNELS}.matching.matching_graph:matching_graph", "the matches of another", "graph of matches", of_the_one_before, trials.matches({"l": "3"}, 6)),
    Fault(f"{KERNELS}.matching.neighbourhoods:neighbourhoods", "a record of each bucket left out", "records of the graph", all_but_one, trials.matches({"beta": "2"}, 5)),
    Fault("anonlib.methods.heterogeneous:rainbow_matching", "one value for all", "graph of matches", one_of_all, trials.matches({"l": "3"}, 6)),
    Fault("anonlib.methods.heterogeneous:rainbow_matching", "a matching out of disjoint ones", "what may be believed of a person", the_papers_draw, trials.matches({"l": "3"}, 6)),
    Fault("anonlib.methods.heterogeneous:rainbow_matching", "a matching out of disjoint ones, under beta", "what may be believed of a person", the_papers_draw, trials.matches({"beta": "2"}, 5)),
    Fault("anonlib.methods.heterogeneous:thresholds", "twice as high", OWN, thresholds_doubled, trials.matches({"l": "3"}, 6)),
    Fault("anonlib.methods.heterogeneous:thresholds", "twice as high, under beta", OWN, thresholds_doubled, trials.matches({"beta": "2"}, 5)),
    Fault("anonlib.workflow:_achieved", "a third of the shares", "achieved shares of illness", a_third_of_shares, STATED),
    Fault("anonlib.workflow:_achieved", "twice l", "achieved numbers for illness", numbers_doubled, STATED),
    Fault("anonlib.workflow:completed", "half the shares of nodes", NODES_STATED, nodes_halved, trials.stated_of_nodes(lungs="1/2", HIV="1/4")),
    Fault("anonlib.workflow:_achieved", "twice beta", "achieved numbers for illness", numbers_doubled, trials.stated_of_matches({"beta": "2"}, 5)),
    Fault(f"{PRIVACY}.beta_likeness:BetaLikeness.copies", "twice as many", "what may be believed of a person", times(2), trials.matches({"beta": "1/4"}, 5)),
    Fault(f"{PRIVACY}.match_limits:MatchLimits.allowed", "any number of buckets for a node", NODES_MATCHED, nodes_anywhere, trials.matches_of_nodes(lungs="1/2")),
    Fault(f"{PRIVACY}.match_limits:match_limits", "no threshold of its own", OWN, no_own_thresholds, IN_POOLS),
    Fault(f"{PRIVACY}.match_limits:match_limits", "values under no node", NODES_MATCHED, under_no_node, IN_POOLS),
    Fault("anonlib.solvers.matching.line_pools:_Line._reach", "every place in one pool", "l-diversity", every_place, IN_POOLS),
    Fault("anonlib.solvers.matching.match_partitions:pair_pools", "by the first column alone", "l-diversity", by_the_first, trials.matches_of_two),
    Fault("anonlib.methods.heterogeneous:rainbow_matching", "a matching out of disjoint ones, of two columns", "what may be believed of a person, of drug", the_papers_draw, trials.matches_of_two),
    Fault("anonlib.methods.heterogeneous_pair:words", "each column's said of the other", WORDS, lambda right: lambda names, number: right(names[::-1], number), trials.matches_of_two),
    Fault("anonlib.methods.heterogeneous:rainbow_matching", "a matching out of disjoint ones, with nodes", NODES_BELIEVED, the_papers_draw, IN_POOLS),
    Fault("anonlib.methods.heterogeneous:strictest_first", "half of it", WORDS, lambda right: lambda shares: [(of, f / 2) for of, f in right(shares)], IN_POOLS),
    Fault(f"{KERNELS}.matching.rainbow_colouring:_renamed", "colours that do not go with the buckets", "graph of matches", one_colour, trials.matches({"l": "3"}, 6)),
    Fault(f"{KERNELS}.classes.symmetric_classes:symmetric_classes", "a record in the class before", "class sizes", one_too_many, trials.symmetric),
    Fault(f"{KERNELS}.classes.sabre_window:Windows._formed", "whatever the window", "t-closeness", whatever_the_window, trials.streamed),
    Fault(f"{KERNELS}.classes.sabre_window:Windows._advance", "of the wrong window", "t-closeness", as_of_the_next, trials.streamed),
    Fault(f"{KERNELS}.matching.ring_generalization:rings", "values not looked at", "l-diversity", lambda right: lambda curve, sensitive, number: right(curve, np.arange(len(sensitive)), number), trials.rings(3, 5)),
)  # fmt: skip

DOOR = (
    AtTheDoor(f"{PRIVACY}.rho_privacy:amplification", "a factor 2", PRIVATE, times(2), {"perturb": {"rho2": "1/3"}}),
    AtTheDoor(f"{PRIVACY}.f_privacy:FPrivacy.threshold", "a factor 2", FOLLOWS, share_times(2), bucketize(theta="1.4", offset="0.02")),
    AtTheDoor("anonlib.methods.boxed:ClassBoxes", "boxes too small", "domains", shrunk, {"mondrian": {"k": 5}}, f"{KERNELS}.boxes:boxes_of_classes", other=False),
    AtTheDoor("anonlib.methods.heterogeneous:Matching", "boxes too small", "boxes", shrunk, {"heterogeneous": {"l": 3, "matching": "greedy"}}, f"{KERNELS}.matching.match_boxes:match_boxes", other=False),
    AtTheDoor("anonlib.methods.heterogeneous:Matching", "one another's values", "original: records of the graph", other_values, {"heterogeneous": {"l": 3, "matching": "greedy"}}, f"{KERNELS}.matching.matching_deal:deal", other=False),
    AtTheDoor("anonlib.methods.bucketize:FakeValues", "a fake value less", "buckets of qit and st", a_fake_less, bucketize(l=2, max_bucket_size=3, fake_values=1, avoid_negative_associations="true"), f"{KERNELS}.ranked.fake_values:FakeValues.__call__"),
)  # fmt: skip

NO_PROMISE = {
    f"{PRIVACY}.buckets:BucketSolution": "holds what a solver found; its setting and loss are checked as those of BucketSetting",
    f"{PRIVACY}.class_requirements:Requirement": "a protocol, no formula",
    f"{PRIVACY}.ec_sizes:EcSizeTree": "sizes of classes, which the audit counts; a wrong tree makes other classes, and they are checked",
    f"{PRIVACY}.ec_sizes:Partitions": "which task works on which records; the classes that come out are checked",
    f"{PRIVACY}.f_privacy:Thresholds": "holds the thresholds; the capacities that buckets are chosen by are `anonlib.solvers.buckets.sensitive_table`'s",
    f"{PRIVACY}.l_diversity:LDiversity": "which pools are matched; a pool that is not eligible has no buckets, and its graph is checked",
    f"{PRIVACY}.match_buckets:MatchBuckets": "holds what a solver found; the graph that comes of it is checked",
    f"{PRIVACY}.match_buckets:match_buckets": "puts what a solver found in order",
    f"{PRIVACY}.match_buckets:mean_matches": "what an explanation shows; the audit counts the matches of every record",
    f"{PRIVACY}.match_buckets:records": "what an explanation divides by; rows are counted by the audit",
    f"{PRIVACY}.rho_privacy:below": "which merges a search may try; the sub-tables that come out are checked",
    f"{PRIVACY}.rho_privacy:posterior": "what an explanation shows; the audit has its own",
    f"{PRIVACY}.rho_privacy:unchanged": "what an explanation shows; the audit has its own",
    f"{PRIVACY}.subtables:beliefs": "what an explanation shows; the audit has its own",
    f"{PRIVACY}.sub_buckets:JointValues": "numbers the combinations of values; the classes that come out are checked",
    f"{PRIVACY}.sub_buckets:SubBuckets": "which values share a sub-bucket; the classes that come out are checked",
    f"{PRIVACY}.value_tree:refuse_root": "a name that a spec may not have",
    f"{PRIVACY}.value_tree:unknown_names": "names that a spec may not have",
    f"{KERNELS}.matching.disjoint_matchings": "the paper's draw, for comparisons and for rings; the graph is checked",
    f"{KERNELS}.matching.far_apart": "which records of a value go to which bucket; the graph is checked",
    f"{KERNELS}.hilbert": "which records are near one another; what is made of them is checked",
    f"{KERNELS}.matching.compiled": "whether loops are compiled; the graph is checked",
    f"{KERNELS}.matching.loops": "how near matches are; the graph is checked",
    f"{KERNELS}.matching.matching_assign": "how near matches are; the graph is checked",
    f"{KERNELS}.matching.matching_costs": "how near matches are; the graph is checked",
}
"""Public formulas and kernels on which no promise rests, each with the reason. A name stands for all that is in it."""


def covered() -> set[str]:
    """Everything that some row is about."""
    return {f.where for f in FAULTS} | {d.covers or d.where for d in DOOR}


def listing() -> str:
    """The whole table as text, a line a row."""
    lines = [(f.where, f.fault, f.check, "on paper") for f in FAULTS]
    lines += [(d.covers or d.where, d.fault, d.check, "exit 4, nothing visible") for d in DOOR]
    wide = [max(len(line[i]) for line in lines) for i in range(4)]
    told = ["  ".join(cell.ljust(w) for cell, w in zip(line, wide, strict=True)).rstrip() for line in sorted(lines)]
    none = [f"{where.ljust(wide[0])}  {why}" for where, why in sorted(NO_PROMISE.items())]
    return "\n".join([f"{len(lines)} planted faults", *told, "", f"{len(none)} on which no promise rests", *none])


if __name__ == "__main__":
    sys.stdout.write(listing() + "\n")
