"""Cells: what holds on machines and Pythons in as few words as say it."""

from __future__ import annotations

import pytest

from toolmatrix.harvest import package_facts

PYTHONS = ("2.7", "3.8", "3.9", "3.10", "3.11")


@pytest.mark.parametrize(
    ("found", "later", "text"),
    [
        (["3.9"], False, "3.9"),
        (["3.9", "3.8"], False, "3.8-3.9"),
        (["2.7", "3.10", "3.9"], False, "2.7 | 3.9-3.10"),
        (["3.10", "3.11"], False, "3.10-3.11"),
        (["3.10", "3.11"], True, ">=3.10"),
        (["3.8", "3.9"], True, "3.8-3.9"),
        ([], False, ""),
    ],
)
def test_series_are_ranges_of_those_that_there_are(
    found: list[str], later: bool, text: str
) -> None:
    assert package_facts.series(found, PYTHONS, later=later) == text


def test_what_holds_everywhere_is_one_selector() -> None:
    same = {("x86_64", "3.8"): ">=1", ("aarch64", "3.9"): ">=1"}
    assert package_facts.cell(same, PYTHONS) == ">=1"
    assert package_facts.cell({("x86_64", "3.8"): ""}, PYTHONS) is None


def test_what_differs_by_python_names_pythons() -> None:
    values = {
        ("x86_64", "3.8"): ">=1",
        ("x86_64", "3.9"): ">=1",
        ("aarch64", "3.9"): ">=1",
        ("x86_64", "3.10"): "",
        ("x86_64", "3.11"): ">=2",
    }
    assert package_facts.cell(values, PYTHONS) == [
        {"is": ">=1", "when": {"python": "3.8-3.9"}},
        {"is": ">=2", "when": {"python": "3.11"}},
    ]


def test_what_differs_by_machine_names_machines() -> None:
    values = {
        ("x86_64", "3.8"): ">=1",
        ("x86_64", "3.9"): ">=2",
        ("aarch64", "3.8"): ">=3",
        ("aarch64", "3.9"): ">=3",
    }
    assert package_facts.cell(values, PYTHONS) == [
        {"is": ">=1", "when": {"machine": "x86_64", "python": "3.8"}},
        {"is": ">=2", "when": {"machine": "x86_64", "python": "3.9"}},
        {"is": ">=3", "when": {"machine": "aarch64"}},
    ]


def test_a_pin_to_a_pre_release_is_neither_met_nor_refused() -> None:
    """Final releases alone are read, so nobody can say whether it is there."""
    assert package_facts.cell({("x86_64", "3.8"): "==0.4.0rc3"}, PYTHONS) == {
        "is": "==0.4.0rc3",
        "evidence": "unknown",
    }
    assert package_facts.cell({("x86_64", "3.8"): ">=0.4.0rc3"}, PYTHONS) == ">=0.4.0rc3"
