"""Rows of packages of Python alone: what their cells say, and what becomes of them once something names one."""

from __future__ import annotations

import pytest

from tests import matrix
from toolmatrix.factbase import independents
from toolmatrix.factbase.compiled import union
from toolmatrix.factbase.index import Index, in_memory
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read
from toolmatrix.solve.resolve import Resolution, resolve

CELLS = ("app", "1.0@2020-01-30 1.1!+3 2.0-1", ">=3.6: ..1.1; >=3.8: 2.0", "", "7")


def test_a_row_says_releases_days_and_runs() -> None:
    row = independents.read(
        [*CELLS[:3], "net <2 if python=3.8,machine=x86_64: 1.0 2.0..; six *: ..", "3"]
    )
    assert row.versions == ["1.0", "1.1", "2.0"]
    assert row.dates == ["2020-01-30", "2020-02-02", "2020-02-01"]
    assert row.yanked == [1]
    assert row.published == 3
    assert [(one.selector, one.runs) for one in row.pythons] == [
        (">=3.6", [(0, 1)]),
        (">=3.8", [(2, 2)]),
    ]
    net, six = row.requires
    assert (net.component, net.selector, net.runs) == ("net", "<2", [(0, 0), (2, 2)])
    assert net.conditions == {"python": "3.8", "machine": "x86_64"}
    assert (six.component, six.selector, six.runs) == ("six", "*", [(0, 2)])


@pytest.mark.parametrize(
    ("place", "cell"),
    [
        (1, ""),
        (1, "1.0@then"),
        (1, "one"),
        (2, ">=3.6"),
        (2, ">=3.6: 3.0.."),
        (3, "net <2 if python: 1.0"),
    ],
)
def test_a_cell_that_cannot_be_read_is_an_error(place: int, cell: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        independents.read([cell if at == place else text for at, text in enumerate(CELLS)])


def test_what_is_listed_does_not_depend_on_what_was_asked_before() -> None:
    index = matrix.index()
    before = [*index.header["components"]]
    head = index.header["components"]["boto3"]
    assert (head["title"], index.header["components"].get("boto3")) == ("boto3", head)
    assert index.component("blinker").versions
    assert [*index.header["components"]] == before
    assert not {"boto3", "blinker"} & {*before}
    with pytest.raises(KeyError):
        index.header["components"]["no-such-package"]


def test_what_is_independent_of_a_component_at_a_release_does_not_name_it_there() -> None:
    index = matrix.index()
    heads = index.header["components"]
    assert len(index.independents()) > 300
    for name in index.independents():
        assert name in heads
        row, _ = index.independent_row(name)
        for one in row.requires:
            if one.component in heads:
                bound = index.component(name).about(one.component, -1)
                masks = union(binding.mask for binding in bound)
                assert not independents.mask_of(one.runs) & ~masks, (name, one)


def test_an_answer_about_other_components_does_not_open_the_table() -> None:
    given = in_memory(matrix.index().files())
    opened: list[str] = []

    def read_file(name: str, start: int = 0, length: int | None = None) -> bytes:
        opened.append(name)
        return given(name, start, length)

    index = Index("", read_file)
    assert isinstance(resolve(index, read(index, Fields(wanted=("torch",)))), Resolution)
    assert not [name for name in opened if name.startswith("independents")]


@pytest.mark.parametrize("wanted", [("gitpython", "torch"), ("torch", "gitpython")])
def test_an_answer_for_a_device_may_have_one(wanted: tuple[str, ...]) -> None:
    index = matrix.index()
    fields = Fields(wanted=wanted, device=("8.0",), from_="wheel")
    answer = resolve(index, read(index, fields))
    assert isinstance(answer, Resolution)
    assert {*wanted} <= answer.chosen("x86").keys()
