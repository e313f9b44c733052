"""The audit of a generalized release: every promise of its manifest, recomputed from the published table.

With equivalence classes everything promised can be seen there. Without, the promise lives in the graph of matches, which is not published:
it is checked while the method's evidence is at hand (before publication, or from `output.evidence`), and an audit of the published
table alone sees the rest: form, domains, conservation, utility, and with the original the distribution and the coverage of boxes.

The facts are found here and judged in `generalized_judge`. Cost: one job, in which `microdata` is read about four times; (class,
sensitive value) counts are shuffled once per sensitive column; see the modules `generalized_boxes`, `generalized_classes`,
`generalized_evidence` and `generalized_original` for theirs. The driver gets O(m) rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anonlib.audit import nodes
from anonlib.audit.generalized import evidence as graph
from anonlib.audit.generalized.boxes import scan_boxes
from anonlib.audit.generalized.classes import scan_classes
from anonlib.audit.generalized.closeness import Distance, WindowDistances
from anonlib.audit.generalized.facts import BoxFacts, ClassFacts, GeneralizedFacts, GraphFindings
from anonlib.audit.generalized.fingerprint import BoxFingerprint
from anonlib.audit.generalized.judge import distance_for, form_passed, has_classes, judge
from anonlib.audit.generalized.original import compare
from anonlib.audit.generalized.promises import WorstCases
from anonlib.audit.generalized.windows import distance_from_windows
from anonlib.audit.published import described, fresh_salt, numbering, require_columns
from anonlib.audit.verdict import Verdict
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, select
from anonlib.engine.statistics import value_text
from anonlib.errors import AnonlibError
from anonlib.release import generalized
from anonlib.release.generalized import MATCHES, MICRODATA
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.release.streamed import WINDOWS
from anonlib.spec.release import Columns


def audit(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame | None = None,
    columns: Columns | None = None,
    *,
    staged: bool = False,
    evidence: Mapping[str, DataFrame] | None = None,
) -> Verdict:
    """Whether the release keeps what its manifest promises.

    tables   : the published tables, "microdata"
    original : the input after the missing-value policy; with it, domains, distribution and the coverage of boxes are compared too
    columns  : the roles of the original's columns, as the spec gave them; checked against what was published. Staged tables need it
    staged   : the manifest is still to be completed: what it lacks is measured, not missed
    evidence : "matches", the graph behind a release without classes; "windows", what the windows of a stream held

    Never raises on a bad release: it returns a verdict that failed. Raises TypeError when staged tables are audited without `columns`.
    """
    require_columns(columns, staged)
    facts = GeneralizedFacts(described(tables), _unreadable(manifest))
    first = judge(facts, manifest, columns, staged)
    if not form_passed(first, manifest):
        return first
    microdata = tables[MICRODATA]
    parts = [manifest.guarantee, *manifest.guarantee.also]
    by_graph = evidence is not None and not has_classes(manifest)
    fingerprint = BoxFingerprint(fresh_salt()) if by_graph else None
    asked: list[Small[Any]] = [
        scan_boxes(microdata, manifest, fingerprint),
        *(_distribution(microdata, part) for part in parts),
    ]
    first_of_more = len(asked)
    if has_classes(manifest):
        salt = fresh_salt()
        distances = [_distance(manifest, part, evidence) for part in parts]
        asked += [_scan(microdata, manifest, *each, salt) for each in zip(parts, distances, strict=True)]
    elif evidence is not None and fingerprint is not None:
        asked.append(graph.scan_graph(evidence[MATCHES], manifest, fingerprint, _codes_under_nodes(manifest.guarantee)))
        if original is not None and not manifest.rows.suppressed:
            asked.append(graph.same_records(evidence[MATCHES], manifest, original))
    answers = collected(asked)
    boxes: BoxFacts = answers[0]
    facts = replace(
        facts,
        boxes=boxes,
        distributions=tuple(answers[1:first_of_more]),
        numbering=numbering(microdata, boxes.measured.rows, boxes.ranges),
    )
    if has_classes(manifest):
        facts = replace(facts, classes=tuple(answers[first_of_more:]))
    elif evidence is not None:
        same = len(answers) > first_of_more + 1 and bool(answers[-1])
        found = answers[first_of_more]
        facts = replace(facts, graph=_findings(found, boxes, evidence[MATCHES], manifest, original, same))
    verdict = judge(facts, manifest, columns, staged)
    return verdict if original is None else verdict.with_checks(compare(microdata, manifest, original))


def _unreadable(manifest: Manifest) -> str | None:
    """Why the manifest's quasi-identifiers cannot be read, or None."""
    try:
        generalized.quasi_identifiers(manifest)
    except (AnonlibError, ValueError) as problem:
        return str(problem)
    return None


def _distribution(microdata: DataFrame, part: GuaranteePart) -> Small[dict[str | None, int]]:
    """{sensitive value: how many rows have it}, one more value at most than the manifest lists."""
    kind, limit = dict(microdata.dtypes)[part.sensitive], len(part.values) + 1
    grouped = aggregate(select(microdata, {"text": value_text(part.sensitive, kind)}), ["text"], {"n": "count(1)"})
    return Small.of_rows(grouped.limit(limit), limit, lambda counted: {row["text"]: int(row["n"]) for row in counted})


def _distance(
    manifest: Manifest, part: GuaranteePart, evidence: Mapping[str, DataFrame] | None
) -> Distance | WindowDistances | None:
    """What classes are measured from: the table, or the windows of a stream as far as there is evidence of them."""
    if manifest.stream is None:
        return distance_for(part)
    return None if evidence is None else distance_from_windows(manifest, part, evidence[WINDOWS])


def _scan(
    microdata: DataFrame,
    manifest: Manifest,
    part: GuaranteePart,
    distance: Distance | WindowDistances | None,
    salt: int,
) -> Small[ClassFacts]:
    box = [name for attribute in manifest.quasi_identifiers for name in generalized.column_types(attribute)]
    return scan_classes(microdata, box, part.sensitive, [v.value for v in part.values], distance, salt)


def _findings(
    facts: graph.GraphFacts,
    boxes: BoxFacts,
    matches: DataFrame,
    manifest: Manifest,
    original: DataFrame | None,
    same_records: bool,
) -> GraphFindings:
    checks = [*graph.graph_checks(facts, manifest), graph.same_boxes(boxes, facts, manifest)]
    if original is not None:
        checks.append(graph.records_of_graph(matches, manifest, original, same_records))
    first, *more = [_worst(column) for column in facts.columns]
    return GraphFindings(tuple(checks), replace(first, nodes=facts.nodes), tuple(more))


def _worst(facts: graph.ColumnFacts) -> WorstCases:
    shares = {code: (share, f"partition {where}") for code, (share, where) in facts.shares.items()}
    return WorstCases(shares, (facts.fewest, "the matches of some record"))


def _codes_under_nodes(part: GuaranteePart) -> list[list[int]]:
    """The sensitive codes under each node that the manifest lists, by the rows of its hierarchy."""
    codes = {value.value: code for code, value in enumerate(part.values)}
    return [sorted(codes[value] for value in values) for values in nodes.under(part)]
