"""Hierarchies: the arrays against a slow obvious twin, and what each fault says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy, hierarchy_of, parse_hierarchy, read_hierarchy

DISEASES = """flu,lung disease,any
gastritis,stomach disease,any
asthma,lung disease,any
ulcer,stomach disease,any
"""


def test_the_arrays_of_a_small_tree() -> None:
    tree = parse_hierarchy(DISEASES)
    assert tree.labels == ("flu", "asthma", "gastritis", "ulcer", "lung disease", "stomach disease", "any")
    assert tree.parents.tolist() == [4, 4, 5, 5, 6, 6, -1]
    assert tree.heights.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert tree.first.tolist() == [0, 1, 2, 3, 0, 2, 0]
    assert tree.last.tolist() == [0, 1, 2, 3, 1, 3, 3]
    assert tree.ancestors.tolist() == [[0, 4, 6], [1, 4, 6], [2, 5, 6], [3, 5, 6]]
    assert (tree.leaves, tree.levels, tree.labels[tree.root]) == (4, 3, "any")
    assert tree.positions(["ulcer", "flu", "flu"]).tolist() == [3, 0, 0]
    assert tree.lowest_common_ancestor(np.array([0, 0, 4, 2]), np.array([1, 2, 1, 2])).tolist() == [4, 6, 4, 2]


def test_semicolons_quotes_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text('\ufeff"a, b";"say ""x""";any\r\n\r\nc;c;any\r\n', encoding="utf-8")
    tree = read_hierarchy(path)
    assert tree.labels == ("a, b", "c", 'say "x"', "any")
    assert tree.heights.tolist() == [0, 0, 1, 2]
    assert tree.parents.tolist() == [2, 3, 3, -1]
    assert tree.ancestors.tolist() == [[0, 2, 3], [1, 1, 3]]


def test_a_separator_in_quotes_is_the_cells_own() -> None:
    assert parse_hierarchy('"x;y",any\nz,any\n').labels[:2] == ("x;y", "z")
    assert parse_hierarchy('"x,y";any\n"a""b;c";any\n').labels[:2] == ("x,y", 'a"b;c')


def test_a_single_leaf_and_a_deep_chain() -> None:
    assert parse_hierarchy("a").root == 0
    deep = parse_hierarchy(",".join(str(i) for i in range(20_000)))
    assert deep.cover(np.array([0]), np.array([0])).tolist() == [0]
    assert deep.heights[deep.root] == 19_999


def test_equal_trees_are_equal() -> None:
    assert parse_hierarchy(DISEASES) == parse_hierarchy(DISEASES.replace(",", ";"))
    assert hash(parse_hierarchy(DISEASES)) == hash(parse_hierarchy(DISEASES))
    assert parse_hierarchy(DISEASES) != parse_hierarchy(DISEASES.replace("ulcer,stomach", "ulcer,lung"))


@st.composite
def csv_trees(draw: st.DrawFn) -> list[list[str]]:
    """Rows of a random tree: blocks of leaves merge from level to level, up to one root; some nodes keep their label."""
    leaves = draw(st.integers(1, 12))
    levels = draw(st.integers(0, 3))
    current = [[str(i)] for i in range(leaves)]
    groups = [[i] for i in range(leaves)]
    for level in range(levels):
        cuts = (
            sorted(draw(st.sets(st.integers(1, max(1, len(groups) - 1)), max_size=len(groups) - 1)))
            if len(groups) > 1
            else []
        )
        merged, start = [], 0
        for end in [*cuts, len(groups)]:
            block = groups[start:end]
            merged.append([leaf for group in block for leaf in group])
            stays = len(block) == 1 and draw(st.booleans())
            for leaf in merged[-1]:
                current[leaf].append(current[leaf][-1] if stays else f"n{level}.{start}")
            start = end
        groups = merged
    for leaf in range(leaves):
        current[leaf].append("root")
    return draw(st.permutations(current))


@given(csv_trees())
def test_against_the_obvious_twin(rows: list[list[str]]) -> None:
    tree = parse_hierarchy("\n".join(",".join(row) for row in rows))
    assert_is_the_tree_of(tree, rows)


def assert_is_the_tree_of(tree: Hierarchy, rows: list[list[str]]) -> None:
    by_leaf = {row[0]: row for row in rows}
    under: dict[str, set[str]] = {}
    for row in rows:
        for label in row:
            under.setdefault(label, set()).add(row[0])
    assert sorted(tree.labels) == sorted(under)
    for node, label in enumerate(tree.labels):
        assert set(tree.labels[tree.first[node] : tree.last[node] + 1]) == under[label]  # contiguous in leaf order
        assert tree.heights[node] == min(row.index(label) for row in rows if label in row)
    for leaf in range(tree.leaves):
        row = by_leaf[tree.labels[leaf]]
        assert [tree.labels[node] for node in tree.ancestors[leaf]] == row
        chain, node = [], leaf
        while node != -1:
            chain.append(tree.labels[node])
            node = int(tree.parents[node])
        assert chain == list(dict.fromkeys(row))
    nodes = np.arange(len(tree.labels))
    one, other = (grid.ravel() for grid in np.meshgrid(nodes, nodes))
    for a, b, found in zip(one, other, tree.lowest_common_ancestor(one, other), strict=True):
        wanted = under[tree.labels[a]] | under[tree.labels[b]]
        smallest = min(len(leaves) for leaves in under.values() if leaves >= wanted)
        assert under[tree.labels[found]] >= wanted
        assert len(under[tree.labels[found]]) == smallest


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["the hierarchy is empty"]),
        ("\n\n", ["the hierarchy is empty"]),
        (",g,any\n", ["line 1: the leaf is empty"]),
        ("a,g,any\nb,,any\n", ["line 2: cell 2 of the row of 'b' is empty"]),
        ("a,g,any\nb,any\n", ["line 2: the row of 'b' has 2 cells and line 1 has 3", "equally long"]),
        ("a,g,any\nb,g,any\na,g,any\n", ["line 3: the leaf 'a' is already in line 1"]),
        ("a,g,h,any\nb,g,k,any\n", ["line 2: 'g' has two parents, 'h' (line 1) and 'k'"]),
        ("a,b,a\n", ["'a' stands above itself (a < b < a)", "no cycle"]),
        ("a,x,y,any\nb,y,x,any\n", ["two parents"]),
        ("a,x,y\nb,y,x\n", ["'x' stands above itself (x < y < x)"]),
        ("a,g,one\nb,g2,two\n", ["there are 2 roots ('one', 'two')"]),
        ("leaf,group,root\na,g,any\n", ["there are 2 roots", "no header line"]),
        ("a,g,any,any\nb,b,g,any\n", ["'g' in cell 2 stands for 1 of the 2 leaves"]),
        ('a,"g,any\n', ["this is not CSV"]),
    ],
)
def test_a_fault_says_where_and_how_to_mend_it(text: str, parts: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_hierarchy(text)
    for part in parts:
        assert part in str(caught.value)


def test_a_value_without_a_leaf_is_named() -> None:
    tree = parse_hierarchy(DISEASES)
    with pytest.raises(
        SpecError, match=r"the value 'astma' and 1 more is not a leaf of the hierarchy \(did you mean 'asthma'\?\)"
    ):
        tree.positions(["flu", "astma", "astma", "lung disease"])


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.csv: the hierarchy cannot be read"):
        read_hierarchy(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("\xe9,any".encode("latin-1"))
    with pytest.raises(SpecError, match="is not UTF-8 text"):
        read_hierarchy(tmp_path / "latin.csv")


def test_rows_and_back():
    tree = parse_hierarchy('b;"x;y";any\nc;z,;any\na;"x;y";any\n')
    assert tree.rows == [["b", "x;y", "any"], ["a", "x;y", "any"], ["c", "z,", "any"]]
    assert hierarchy_of(tree.rows) == tree
    with pytest.raises(SpecError, match="two parents"):
        hierarchy_of([["a", "x", "any"], ["b", "x", "any"], ["x", "y", "any"]])
    with pytest.raises(SpecError, match="equally long"):
        hierarchy_of([["a", "any"], ["b"]])
