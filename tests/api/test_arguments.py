"""Arguments of the public functions: mappings and lists are words, and a wrong value is refused by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolmatrix
from toolmatrix.api import arguments
from toolmatrix.api.answers import Resolved
from toolmatrix.errors import ToolmatrixError, UsageError
from toolmatrix.request.fields import BadValue

pytestmark = pytest.mark.usefixtures("_opened_once")

SAME: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a version": ({"driver": "535"}, ("driver==535",)),
    "a number": ({"driver": 535}, ("driver==535",)),
    "bounds": ({"driver": ">=535", "cuda": "~=12.4"}, ("driver>=535", "cuda~=12.4")),
    "two bounds": ({"cuda": ">=12,<13"}, ("cuda>=12,<13",)),
    "any": ({"driver": "*", "cuda": ""}, ("driver==*", "cuda==*")),
    "a list": (["torch==2.6", "numpy"], ("torch==2.6", "numpy")),
    "a generator": ((word for word in ["numpy", "cuda"]), ("numpy", "cuda")),
    "one": ("torch==2.6", ("torch==2.6",)),
}


@pytest.mark.parametrize("name", SAME)
def test_words_are_given_in_several_forms(name: str) -> None:
    wanted, words = SAME[name]
    assert arguments.words(wanted) == words


@given(st.dictionaries(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.integers(0, 999)))
def test_no_version_of_a_mapping_is_lost(versions: dict[str, int]) -> None:
    written = [f"{name}=={version}" for name, version in versions.items()]
    assert list(arguments.words(versions)) == written
    assert list(arguments.words({name: f"=={one}" for name, one in versions.items()})) == written


def test_what_is_held_and_wanted_may_be_mappings() -> None:
    listed = toolmatrix.resolve("torch==2.6.0", "numpy", with_="driver==535")
    assert isinstance(listed, Resolved)
    for found in (
        toolmatrix.resolve({"torch": "2.6.0"}, "numpy", with_={"driver": "535"}),
        toolmatrix.resolve(["torch==2.6.0", "numpy"], with_={"driver": 535}),
    ):
        assert found.to_json() == listed.to_json()
    assert "driver==535" in " ".join(listed.request)
    held = toolmatrix.why_not("torch==2.6.0", with_={"python": "==3.12"})
    assert held.to_json() == toolmatrix.why_not("torch==2.6.0", with_="python==3.12").to_json()
    grid = toolmatrix.matrix("cuda", "arch", where={"cuda": ">=10.2,<=11.2"})
    assert grid.to_json() == toolmatrix.matrix("cuda", "arch", where="cuda>=10.2,<=11.2").to_json()


@pytest.mark.parametrize("function", ["resolve", "why_not", "lock"])
@pytest.mark.parametrize("wanted", [(), ([],), ({},), ("",), ("  ",)])
def test_no_request_is_refused(function: str, wanted: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError, match="no request to answer") as caught:
        getattr(toolmatrix, function)(*wanted)
    assert (caught.value.code, caught.value.exit_code) == ("TM901", 2)
    assert caught.value.help == f'`toolmatrix.{function}("torch==2.6.0")`'


def test_a_component_alone_is_explained_in_no_answer() -> None:
    with pytest.raises(UsageError, match="no request to answer"):
        toolmatrix.explain("cuda")
    assert toolmatrix.explain("cuda==12.4.1")


class Odd:
    """No value of any option."""


WRONG: tuple[Any, ...] = (
    1,
    2.5,
    -1,
    10**5_000,
    None,
    True,
    b"torch",
    {"a": "b"},
    {"a": {}},
    [["torch"]],
    [1],
    [None],
    [b"a"],
    Odd(),
)
# What stands before those of which there may be several.
NEEDED: dict[str, tuple[str, ...]] = {"explain": ("cuda",)}


def parts(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """The arguments of a function, each with its annotation."""
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_KEYWORD:
            yield from arguments._OF_REQUEST.items()
        else:
            yield one.name, one.annotation


def takes(kind: str, value: Any) -> bool:
    """Whether a value is of the type of an annotation."""
    if value is None:
        return "None" in kind or kind == "Matrix"
    return (
        (kind == "bool" and value is True)
        or ("int" in kind and value == 1 and value is not True)
        or (kind == "Matrix" and value == b"torch")
        or (kind == "Wanted" and value == {"a": "b"})
    )


@pytest.mark.parametrize("name", sorted(toolmatrix._FUNCTIONS))
def test_a_wrong_value_is_refused_by_the_name_of_its_argument(name: str) -> None:
    # A module of the same name may stand in its place, which calls it.
    function: Callable[..., Any] = toolmatrix.__getattr__(name)
    found = inspect.signature(function).parameters.values()
    several = [one.name for one in found if one.kind is one.VAR_POSITIONAL]
    for argument, kind in parts(function):
        for value in WRONG:
            if takes(kind, value):
                continue
            placed = (*NEEDED.get(name, ()), value) if argument in several else ()
            named = {} if placed else {argument: value}
            with pytest.raises(BadValue) as caught:
                function(*placed, **named)
            assert caught.value.name == argument
            assert (caught.value.code, caught.value.exit_code) == ("TM901", 2)
            assert caught.value.expected


def test_every_error_of_an_argument_is_one_of_the_package() -> None:
    with pytest.raises(ToolmatrixError):
        toolmatrix.resolve("torch" * 1000)
