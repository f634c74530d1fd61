"""Which unread statements decide: those about something that the request names, or about its devices."""

from __future__ import annotations

from toolmatrix.api.requests import open_matrix
from toolmatrix.finding import Incompatibility
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read
from toolmatrix.solve.resolve import Resolution, resolve
from toolmatrix.solve.unread import deciding


def _pairs(fields: Fields, *pairs: tuple[str, str]) -> list[tuple[str, str]]:
    index = open_matrix().index
    found = resolve(index, read(index, fields))
    assert isinstance(found, Resolution)
    grounds = tuple(
        Incompatibility(kind="limits", subject=one, releases=(), component=other, values=())
        for one, other in pairs
    )
    return [(one.subject, one.component) for one in deciding(found.replace(unread=grounds))]


def test_a_pair_decides_where_the_request_names_one_of_it() -> None:
    fields = Fields(wanted=("torch==2.8.0",), with_=("cudnn==9.10",), from_="wheel")
    named = [("torch", "numba"), ("numba", "cudnn"), ("torch-variant", "arch")]
    assert _pairs(fields, *named, ("numba", "arch"), ("numba", "machine")) == named


def test_what_is_unread_about_a_device_decides_where_one_is_named() -> None:
    pair = ("numba", "arch")
    assert _pairs(Fields(wanted=("torch==2.8.0",)), pair) == []
    assert _pairs(Fields(wanted=("torch==2.8.0",), device=("H100",)), pair) == [pair]
