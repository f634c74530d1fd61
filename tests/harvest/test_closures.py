"""Packages that lie elsewhere than on the user's index, as uv resolves them: a maker's index, a page, an address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from tests.harvest import shop
from tests.harvest.shop import File
from tests.images import hostile
from tests.images.hostile import Reply, Server
from toolmatrix.errors import Unresolved
from toolmatrix.harvest.closures import closure
from toolmatrix.harvest.resolver import Uv
from toolmatrix.harvest.transport import Session
from toolmatrix.lockfile.model import LockedClosure, LockedPackage, PackageQuestion

pytestmark = pytest.mark.process

TAGS = "cp312-cp312-manylinux_2_28_x86_64"
PLAIN = shop.wheel("torch", "2.9.1", TAGS, ["sympy"])
CPU = shop.wheel("torch", "2.9.1+cpu", TAGS, ["sympy"])
SYMPY = shop.wheel("sympy", "1.14.0", "py3-none-any")
OLD = shop.wheel("sympy", "1.13.0", "py3-none-any")


@pytest.fixture
def server() -> Iterator[Server]:
    """The user's index, and a maker's at another address."""
    with hostile.running() as found:
        shop.stock(found, "torch", [PLAIN])
        shop.stock(found, "sympy", [SYMPY])
        elsewhere(found, "torch", [CPU])
        elsewhere(found, "sympy", [OLD])
        yield found


def elsewhere(server: Server, package: str, files: Sequence[File]) -> None:
    """Put files on the maker's index."""
    kind = {"Content-Type": shop.JSON}
    server.answers[f"/whl/cpu/{package}/"] = Reply(headers=kind, body=shop.page(package, files))
    for one in files:
        server.answers[f"/files/{one.name}"] = Reply(body=one.data)


def asked(server: Server, option: str = "--index-url", *builds: str) -> PackageQuestion:
    """The question for a build at the maker's."""
    return PackageQuestion(
        builds=builds or ("torch==2.9.1",),
        options=(option, f"{server.url}/whl/cpu"),
        python="3.12",
        platform="x86_64-manylinux_2_28",
    )


def packages(server: Server, question: PackageQuestion, **env: str) -> dict[str, LockedPackage]:
    """What uv makes of a question, by that index and with nothing kept."""
    return dict(closed(server, question, **env).packages)


def closed(server: Server, question: PackageQuestion, **env: str) -> LockedClosure:
    """All that uv makes of it."""
    own = {"UV_DEFAULT_INDEX": f"{server.url}/simple", "UV_NO_CACHE": "1"}
    uv = Uv({"PATH": os.environ["PATH"], "HOME": os.devnull, **own, **env})
    session = Session()
    try:
        return closure(uv, session, question)
    finally:
        session.close()


def locked(version: str, *files: File, url: str = "") -> LockedPackage:
    """A package with these files."""
    return LockedPackage(version=version, files={one.name: one.sha256 for one in files}, url=url)


def test_a_build_comes_from_its_index_and_the_rest_from_any(server: Server) -> None:
    found = packages(server, asked(server))
    assert found == {"torch": locked("2.9.1+cpu", CPU), "sympy": locked("1.14.0", SYMPY)}


def test_a_page_of_files_is_looked_at_as_well(server: Server) -> None:
    server.answers["/whl/cpu"] = Reply(headers={"Content-Type": "text/html"}, body=shop.html([CPU]))
    assert packages(server, asked(server, "-f"))["torch"] == locked("2.9.1+cpu", CPU)


def test_a_build_that_its_index_lacks_is_not_taken_from_another_one(server: Server) -> None:
    elsewhere(server, "torch", [shop.wheel("torch", "2.8.0", TAGS)])
    with pytest.raises(Unresolved) as refused:
        packages(server, asked(server))
    assert refused.value.what == "the Python packages of the answer conflict"
    assert "torch==2.9.1" in refused.value.found


def test_nor_is_another_one_of_the_same_release(server: Server) -> None:
    other = shop.wheel("torch", "2.9.1+cpu", TAGS.replace("2_28", "2_27"))
    shop.stock(server, "torch", [other])
    # What the command line names comes first.
    assert packages(server, asked(server))["torch"] == locked("2.9.1+cpu", CPU)
    # A page and an index are one to uv, and pip would take either.
    server.answers["/whl/cpu"] = Reply(headers={"Content-Type": "text/html"}, body=shop.html([CPU]))
    with pytest.raises(Unresolved) as refused:
        packages(server, asked(server, "-f"))
    assert refused.value.what == "two indexes have different builds of the same release of torch"
    assert CPU.name in refused.value.expected


def test_a_file_at_an_address_of_its_own_is_held_by_it(server: Server) -> None:
    flash = shop.installable("flash", "1.0", {"flash.py": b""}, ["sympy"])
    url = f"{server.url}/x/{flash.name}"
    server.answers[f"/x/{flash.name}"] = Reply(body=flash.data)
    question = asked(server).replace(requirements=(f"flash@{url}",), builds=(), options=())
    assert packages(server, question) == {
        "flash": locked("1.0", flash, url=url),
        "sympy": locked("1.14.0", SYMPY),
    }


@pytest.mark.parametrize("builds", [None, ["flit", "wheel"]])
def test_what_has_no_wheel_comes_as_source_with_what_builds_it(
    server: Server, builds: list[str] | None
) -> None:
    tools = {one: shop.wheel(one, "9.9", "py3-none-any") for one in ("setuptools", "wheel", "flit")}
    sources = [
        shop.source("wrapt", "1.12.1", ["clang"], builds),
        shop.source("clang", "5.0", ["sympy"], builds),
    ]
    for one in (*tools.values(), *sources):
        shop.stock(server, one.name.split("-")[0], [one])
    question = asked(server).replace(requirements=("wrapt==1.12.1",), builds=(), options=())
    found = closed(server, question)
    assert found.sources == ("clang", "wrapt")
    assert found.packages == {
        "wrapt": locked("1.12.1", sources[0]),
        "clang": locked("5.0", sources[1]),
        "sympy": locked("1.14.0", SYMPY),
    }
    wanted = builds or ["setuptools", "wheel"]
    assert found.builders == {one: locked("9.9", tools[one]) for one in wanted}
