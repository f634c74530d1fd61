"""`--online`: a package that the matrix lacks is harvested on the way; an index on loopback with wheels made here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolmatrix
from tests.cli.conftest import Cli, Outcome
from tests.cli.test_documents import validated
from tests.harvest import shop
from tests.images.hostile import Reply, Server
from tests.matrix import small_built_in
from toolmatrix.api import online, requests
from toolmatrix.api.locks import Locked
from toolmatrix.errors import UsageError

pytestmark = pytest.mark.process

FAMILIES = """\
schema: toolmatrix.families/1
packages: {tool: tool, absent: absent}
families: {}
"""
SAID = {"requires-python": ">=3.8"}
NEEDS = [
    "tool>=2.0",
    "absent<3",
    'other[fast] (>=1.5) ; python_version >= "3.8"',
    "never ; os_name == 'nt'",
]
NEW = shop.wheel("lib", "1.1", "py3-none-any", NEEDS, said=SAID)
OLD = shop.wheel("lib", "1.0", "py3-none-any", ["tool<2.0", "what is this"], said=SAID)
DAY = {"SOURCE_DATE_EPOCH": "1767312000"}


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that is the index of this machine's user, who has a small matrix in the place of the built-in one."""
    small_built_in(tmp_path / "root", monkeypatch, FAMILIES)
    with shop.as_index_of_user(monkeypatch) as found:
        shop.stock(found, "lib", [NEW, OLD])
        yield found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The user's cache."""
    return tmp_path / "cache"


@pytest.fixture
def run(cli: Cli, store: Path) -> Cli:
    """A run with a cache of its own, on a day that stays."""
    return lambda *words, **env: cli(*words, **{"XDG_CACHE_HOME": str(store), **DAY, **env})


def kept(store: Path) -> list[Path]:
    """The files of facts that were harvested on the way."""
    return sorted((store / "toolmatrix" / "online").glob("*"))


def test_a_package_is_harvested_and_the_answer_says_so(run: Cli, store: Path) -> None:
    outcome = run("resolve", "lib", "--online")
    (path,) = kept(store)
    assert outcome.code == 0
    assert outcome.out == (
        "lib 1.1       artifact  x86, accelerator none  [1]\n"
        "└── tool 2.0  artifact  requires tool >=2.0  [1]\n"
        "\n"
        "[1] package lib, final releases 1.0 to 1.1\n"
        "    Python package index, lib: file list and METADATA, read 2026-01-02\n"
        "Resolved 2 components from 2 facts, weakest evidence: artifact\n"
        "lib is not a component of the matrix: it was harvested from the index on\n"
        "  2026-01-02 (package lib, final releases 1.0 to 1.1), and is unreviewed\n"
        "not covered: lib 1.1 also requires absent<3; other[fast]>=1.5 (not components of\n"
        "  the matrix)\n"
    )
    assert outcome.err.startswith("harvested lib just now, unreviewed (5 requests, 0.0 MB, ")
    assert f"`--matrix {path}` gives the same answer without the index" in outcome.err
    assert f"lib-1.1-py3-none-any.whl, sha256 {NEW.sha256[:16]}" in path.read_text()


def test_the_document_says_so_and_keeps_to_its_schema(run: Cli) -> None:
    document = run("resolve", "lib==1.0", "--online", "--json").json()
    validated(document, "resolution")
    about = [{"target": "x86", "component": "lib", "evidence": "artifact"}]
    harvested, uncovered = document["caveats"]
    assert (harvested["kind"], harvested["components"]) == ("harvested", about)
    assert (uncovered["kind"], uncovered["components"]) == ("not-covered", about)
    assert uncovered["text"].startswith("not covered: lib 1.0 also requires what is this (")
    assert document["targets"]["x86"]["components"]["lib"]["facts"] == ["lib-releases/1.0"]


def test_a_second_call_asks_for_the_list_alone_and_changes_no_file(
    run: Cli, store: Path, server: Server
) -> None:
    run("resolve", "lib", "--online")
    (path,) = kept(store)
    state = path.stat()
    server.asked.clear()
    assert run("resolve", "lib", "--online").code == 0
    assert [one.path for one in server.asked] == ["/simple/lib/"]
    assert kept(store) == [path]
    assert path.stat().st_mtime_ns == state.st_mtime_ns


def test_what_was_harvested_answers_without_the_index(
    run: Cli, store: Path, server: Server
) -> None:
    first = run("resolve", "lib", "--online")
    (path,) = kept(store)
    server.asked.clear()
    assert run("resolve", "lib", "--matrix", str(path)).out == first.out
    assert server.asked == []


def test_without_the_option_no_index_is_asked_and_the_error_names_it(
    run: Cli, server: Server
) -> None:
    outcome = run("resolve", "lib")
    assert (outcome.code, server.asked) == (3, [])
    assert "`toolmatrix resolve lib --online` a package of the index" in outcome.err


def test_what_the_matrix_has_or_understands_is_not_asked_for(run: Cli, server: Server) -> None:
    assert run("resolve", "tool", "--online").code == 0
    assert "did you mean `cuda==" in run("resolve", "cuda12", "--online").err
    assert "is not a component" in run("resolve", "tool", ">=1", "--online").err
    assert server.asked == []


def test_a_specifier_that_nobody_can_read_is_refused_as_ever(run: Cli) -> None:
    assert "did you mean `lib==1`?" in run("resolve", "lib=1", "--online").err


def test_a_package_that_is_nowhere_is_an_unknown_component(run: Cli, store: Path) -> None:
    outcome = run("resolve", "lib", "Nobody_knows", "--online")
    assert outcome.code == 3
    assert outcome.err.startswith(
        "error[TM110]: unknown component `nobody-knows`, which is not a package of the index either\n"
    )
    assert kept(store) == []


def test_a_release_that_is_nowhere_is_an_unknown_release(run: Cli) -> None:
    outcome = run("resolve", "lib==7", "--online")
    assert outcome.code == 3
    assert "the matrix knows no release of lib that matches `lib==7`" in outcome.err


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (Reply(503), "status 503"),
        (Reply(body=b"<html>sign in</html>", headers={"Content-Type": shop.JSON}), "Expecting"),
        (Reply(body=b"half", headers={"Content-Length": "99"}), "found: "),
    ],
    ids=["down", "garbage", "truncated"],
)
def test_an_index_that_fails_is_one_error_that_says_what_to_set(
    run: Cli, server: Server, store: Path, reply: Reply, found: str
) -> None:
    server.answers["/simple/lib/"] = reply
    outcome = run("resolve", "lib", "--online")
    assert outcome.code == 5
    assert outcome.err.startswith("error[TM512]: the package index ")
    assert found in outcome.err
    assert "`PIP_INDEX_URL` or `UV_DEFAULT_INDEX` sets another one" in outcome.err
    assert kept(store) == []


def test_a_wheel_that_lies_about_itself_is_refused(run: Cli, server: Server, store: Path) -> None:
    text = b"Metadata-Version: 2.1\nName: other\nVersion: 1.1\n"
    server.answers[f"/files/{NEW.name}.metadata"] = Reply(body=text)
    outcome = run("resolve", "lib", "--online")
    assert outcome.code == 2
    assert outcome.err.startswith("error[TM308]: METADATA belongs to another package\n")
    assert kept(store) == []


def test_packages_of_one_request_may_require_each_other(run: Cli, server: Server) -> None:
    shop.stock(server, "more-parts", [shop.wheel("more-parts", "3.0", "py3-none-any", ["lib<1.1"])])
    outcome = run("resolve", "more_parts", "--with", "lib", "--online")
    assert outcome.code == 0
    assert "lib 1.0" in outcome.out
    assert "requires lib <1.1" in outcome.out
    assert "harvested more-parts and lib just now" in outcome.err


def test_what_requires_nothing_names_its_file_as_well(
    run: Cli, server: Server, store: Path
) -> None:
    bare = shop.wheel("empty", "3.0", "py3-none-any")
    shop.stock(server, "empty", [bare])
    assert run("resolve", "empty", "--online").code == 0
    (path,) = kept(store)
    assert f"{bare.name}, sha256 {bare.sha256[:16]}" in path.read_text()


def test_the_newest_releases_are_read_and_those_that_are_asked_for(
    run: Cli, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online, "NEWEST", 2)
    files = [shop.wheel("lib", f"1.{number}", "py3-none-any") for number in range(9)]
    shop.stock(server, "lib", files)
    outcome = run("resolve", "lib<1.4", "--online")
    assert outcome.out.startswith("lib 1.3 ")
    assert "[1] package lib, 4 of 9 final releases 1.2 to 1.8\n" in outcome.out
    read = {one.path for one in server.asked if one.path.endswith(".whl")}
    assert read == {f"/files/{files[number].name}" for number in (2, 3, 7, 8)}


def test_the_page_names_the_bounds() -> None:
    text = (Path(__file__).parents[2] / "docs" / "asking.md").read_text()
    assert f"the {online.NEWEST} newest final releases" in text
    assert f"at most {online.PACKAGES} packages" in text


def test_a_release_without_a_file_for_a_machine_does_not_run_there(
    run: Cli, server: Server
) -> None:
    files = [
        shop.wheel("lib", "1.0", "cp39-cp39-linux_x86_64"),
        shop.wheel("gone", "1.0", "cp39-cp39-win_amd64"),
        shop.wheel("built", "1.0", "cp39-cp39-linux_x86_64"),
    ]
    for package, file in zip(("lib", "gone", "built"), files, strict=True):
        source = [shop.File("built-1.0.tar.gz", b"")] if package == "built" else []
        shop.stock(server, package, [file, *source])
    assert run("resolve", "lib", "--online").code == 0
    # No file and no source is a no; a source, of which nobody knows what it takes, is neither yes nor no.
    assert run("resolve", "lib", "--online", "--target", "arm").code == 1
    assert run("resolve", "gone", "--online").code == 1
    assert run("resolve", "built", "--online").code == 0
    assert run("resolve", "built", "--online", "--target", "arm").code == 4


def test_what_code_for_a_machine_does_on_a_device_nobody_knows(run: Cli, server: Server) -> None:
    shop.stock(server, "native", [shop.wheel("native", "1.0", "py3-none-linux_x86_64")])
    assert run("resolve", "lib", "--online", "--device", "8.6").code == 0
    assert run("resolve", "native", "--online", "--device", "8.6").code == 4


def test_a_lock_is_asked_again_with_the_facts_beside_it(
    run: Cli, here: Path, store: Path, server: Server
) -> None:
    outcome = run("lock", "lib", "--online")
    (path,) = kept(store)
    assert outcome.out == (
        "wrote toolmatrix.lock: 1 target, 2 components\n"
        f"wrote {path.name}: the harvested facts, for `--matrix`\n"
    )
    assert (here / path.name).read_bytes() == path.read_bytes()
    server.asked.clear()
    fresh = run("lock", "--check", "--matrix", path.name)
    assert (fresh.code, fresh.err, server.asked) == (0, "", [])
    # Without the facts nobody can say whether the answer is the same.
    assert run("lock", "--check").code == 3
    later = shop.wheel("lib", "1.2", "py3-none-any", ["tool>=2.0"], said=SAID)
    shop.stock(server, "lib", [later, NEW, OLD])
    assert run("lock", "--check", "--matrix", path.name).code == 0
    stale = run("lock", "--check", "--online")
    assert stale.code == 1
    assert "lib" in stale.out
    assert "1.2" in stale.out


def test_a_lock_that_is_asked_again_online_has_its_new_facts_beside_it(
    run: Cli, here: Path, server: Server
) -> None:
    run("lock", "lib", "--online")
    before = {path.name for path in here.iterdir()}
    later = shop.wheel("lib", "1.2", "py3-none-any", ["tool>=2.0"], said=SAID)
    shop.stock(server, "lib", [later, NEW, OLD])
    document = run("lock", "--online", "--json").json()
    validated(document, "locked")
    (new,) = {path.name for path in here.iterdir()} - before
    assert document["harvested"] == [new]
    assert run("lock", "--check", "--matrix", new).code == 0


@pytest.mark.parametrize(
    "line",
    [
        ("explain", "tool", "lib"),
        ("why-not", "lib"),
        ("show", "lib"),
        ("what", "lib"),
        ("plan", "lib", "--device", "8.6"),
        ("matrix", "--rows", "lib"),
    ],
    ids=lambda line: line[0],
)
def test_other_questions_harvest_as_well(run: Cli, line: tuple[str, ...]) -> None:
    outcome = run(*line, "--online")
    assert outcome.code in (0, 4)
    assert "lib" in outcome.out or line[0] == "plan"
    assert outcome.err.startswith("harvested lib just now, unreviewed (")


def test_a_refusal_offers_a_command_that_needs_no_index(run: Cli, store: Path) -> None:
    outcome = run("resolve", "lib==1.1", "tool==1.0", "--online")
    (path,) = kept(store)
    assert outcome.code == 1
    assert f"--matrix {path}" in outcome.out


def test_a_request_harvests_no_more_than_a_few(run: Cli, server: Server) -> None:
    outcome = run("resolve", *(f"pack{letter}" for letter in "abcdefghi"), "--online")
    assert outcome.code == 2
    assert "at most 8 that the matrix does not have" in outcome.err
    assert server.asked == []


def test_where_nothing_can_be_kept_it_is_said(run: Cli, store: Path) -> None:
    assert "`XDG_CACHE_HOME` or `HOME`" in nowhere(run).err
    (store / "toolmatrix").mkdir(parents=True)
    (store / "toolmatrix" / "online").write_text("a file in the way")
    outcome = run("resolve", "lib", "--online")
    assert (outcome.code, outcome.err.partition("\n")[0]) == (
        *(2, "error[TM905]: cannot store the harvested facts"),
    )


def nowhere(run: Cli) -> Outcome:
    """A run of somebody without a home."""
    return run("resolve", "lib", "--online", XDG_CACHE_HOME="", HOME="")


def test_python_asks_the_same(
    run: Cli, store: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"XDG_CACHE_HOME": str(store), **DAY}.items():
        monkeypatch.setitem(os.environ, name, value)
    monkeypatch.setattr(requests, "_BUILT_IN", [])
    found = toolmatrix.resolve("lib", online=True)
    assert f"{found}\n" == run("resolve", "lib", "--online").out
    assert toolmatrix.show("lib", online=True).ok
    locked = toolmatrix.lock("lib", online=True)
    assert isinstance(locked, Locked)
    locked.write()
    (path,) = kept(store)
    assert sorted(one.name for one in here.iterdir()) == [path.name, "toolmatrix.lock"]
    assert locked.to_json()["harvested"] == [path.name]
    assert toolmatrix.resolve("lib", matrix=here / path.name).ok
    with pytest.raises(UsageError, match="needs a matrix of files"):
        toolmatrix.resolve("lib", online=True, matrix=other(here))


def other(here: Path) -> bytes:
    """The bytes of a matrix that is not the built-in one."""
    path = here / "more.yaml"
    path.write_text(
        "schema: toolmatrix.facts/1\ncomponents:\n  spare: {title: Spare, scheme: pep440}\n"
    )
    return toolmatrix.open_matrix(path).to_bytes()
