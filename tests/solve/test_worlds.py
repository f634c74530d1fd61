"""Worlds: which versions beyond the known releases a selector admits, and where the matrix begins too late."""

from __future__ import annotations

import pytest

from tests.matrix import index
from toolmatrix.solve import worlds


@pytest.mark.parametrize(
    ("selectors", "admits"),
    [
        (["*"], True),
        (["<0.5"], True),
        (["==0.2.10"], True),
        (["<0.5", ">=0.2.10"], True),
        ([">=0.1,<0.2"], True),
        (["<0.5", "!=0.2.10"], True),
        ([">=0.2.11"], False),
        (["==0.2.11"], False),
        (["<0.2", ">=0.4"], False),
        (["absent"], False),
    ],
)
def test_versions_before_the_first_release(selectors: list[str], admits: bool) -> None:
    assert index().scale("jax").versions[0] == "0.2.11"
    assert worlds.earlier(index(), "jax", selectors) is admits


@pytest.mark.parametrize(
    ("selector", "admits"),
    [
        ("==2.99", True),
        (">=3", True),
        ("==4.0", False),
        (">=99", False),
        ("==2.15.9", True),
        ("==2.9.7", False),
        ("<2", False),
    ],
)
def test_versions_after_the_newest_release(selector: str, admits: bool) -> None:
    assert index().scale("torch").versions[-1] == "2.15.0"
    assert worlds.later(index(), "torch", selector) is admits


def test_names_have_nothing_before_and_after_them() -> None:
    assert not worlds.earlier(index(), "distro", ["*"])
    assert not worlds.later(index(), "distro", "*")


def test_a_list_that_was_read_whole_closes_a_world() -> None:
    assert worlds.begins_later(index(), "jax")
    assert not worlds.begins_later(index(), "torch")
    # Of some packages of Python alone the newest releases were read.
    for name, begins_later in (("boto3", True), ("aiofiles", False)):
        assert name in index().header["components"]
        assert worlds.begins_later(index(), name) is begins_later
    # No index of packages lists GCC: nothing says that there is more of it.
    assert not worlds.begins_later(index(), "gcc")
