"""What attacks on several sensitive columns are reported as."""

from __future__ import annotations

from anonlib.evaluation.attacks_registry import REGISTRY, figures_by_column

ROW = {"accuracy": 0.1, "words": "none promised"}
NOT_PLAYED = {"words": "not played: no class was found"}


def figures(accuracy: float) -> dict:
    return {
        "re-identification": {**ROW, "persons": accuracy},
        "homogeneity": {"accuracy": accuracy, "words": "l = 2"},
        "corruption, 1 known": {"accuracy": accuracy, "words": "none"},
        "minimality": {"words": "looked at both"},
        "unmixing": NOT_PLAYED if accuracy > 0.4 else {"accuracy": accuracy, "words": "none"},
    }


def test_of_one_column_names_stay():
    assert figures_by_column({"drug": figures(0.3)}) == figures(0.3)


def test_of_two_each_attack_on_values_has_its_column_and_one_on_rows_none():
    found = figures_by_column({"drug": figures(0.3), "illness": figures(0.5)})
    assert list(found) == [
        "re-identification",
        "homogeneity, drug",
        "homogeneity, illness",
        "corruption, 1 known, drug",
        "corruption, 1 known, illness",
        "unmixing, drug",
        "unmixing, illness",
        "minimality",
    ]
    assert found["re-identification"]["persons"] == 0.3
    assert found["unmixing, illness"] == NOT_PLAYED
    assert all(any(entry.covers(name) for entry in REGISTRY) for name in found)


def test_what_is_not_played_for_different_reasons_is_said_of_each():
    one, other = figures(0.5), figures(0.5) | {"unmixing": {"words": "not played: nobody was sampled"}}
    found = figures_by_column({"drug": one, "illness": other})
    assert found["unmixing, drug"] != found["unmixing, illness"]
    assert figures_by_column({"drug": one, "illness": one})["unmixing"] == NOT_PLAYED
