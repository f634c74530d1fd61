"""Names of images as users write them, against those in full that engines hold."""

from __future__ import annotations

import pytest

from toolmatrix.errors import SubjectError
from toolmatrix.images import names
from toolmatrix.images.limits import Budget

HELD = {
    "localhost/app:latest": 1,
    "quay.io/team/app:latest": 2,
    "docker.io/library/debian:12": 3,
    "registry:5000/debian:12": 4,
    "docker.io/library/alpine:latest": 5,
    "quay.io/team/tool@sha256:12": 6,
    "0123": 7,
}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("app", [1]),
        ("app:latest", [1]),
        ("team/app", [2]),
        ("quay.io/team/app", [2]),
        ("pp", []),
        ("app:1", []),
        ("debian", []),
        ("debian:12", [3, 4]),
        ("docker.io/debian:12", [3]),
        ("registry:5000/debian:12", [4]),
        ("alpine", [5]),
        ("tool@sha256:12", [6]),
        ("0123", [7]),
    ],
)
def test_a_name_is_found_in_full_or_by_its_end(name: str, found: list[int]) -> None:
    assert list(names.find(name, HELD).values()) == found


@pytest.mark.parametrize("name", ["", "//", "-rm", "--help", "a b", "a//b", "a\n", "../a", "a;b"])
def test_what_is_no_name_reaches_no_program(name: str) -> None:
    with pytest.raises(SubjectError, match="this is not a valid image name"):
        names.image_name(name, Budget("podman:"))


def test_none_and_several_are_refused() -> None:
    budget = Budget("x:a")
    assert names.only_image("a", {"`x:1/a`": 1, "`x:2/a`": 1}, "", budget) == 1
    with pytest.raises(SubjectError) as caught:
        names.only_image("a", {"`x:1/a`": 1, "`x:2/a`": 2}, "", budget)
    assert caught.value.what == "the name matches several images"
    assert caught.value.expected == "`x:1/a` or `x:2/a`"
    with pytest.raises(SubjectError) as caught:
        names.only_image("a", {}, names.nearest("x", "a", ["b", "aa"]), budget)
    assert (caught.value.what, caught.value.expected) == ("no such image", "`x:aa`")
