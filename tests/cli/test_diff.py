"""`toolmatrix diff`: what moved between two locks."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_documents import validated
from tests.golden import assert_golden
from toolmatrix.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Outcome


@pytest.fixture
def diff(cli: Cli, cache: str) -> Cli:
    """`diff("a.lock", "b.lock")`, where `old.lock`, `new.lock` and `three.lock` are there."""
    for name, words in (
        ("old.lock", ["tensorflow==2.4.0"]),
        ("new.lock", ["tensorflow==2.6.5"]),
        ("three.lock", ["tensorflow==2.6.5", "--target", "x86,arm,amd"]),
    ):
        assert cli("lock", *words, "-l", name, XDG_CACHE_HOME=cache).code == 0

    def run(*argv: str, **env: str) -> Outcome:
        return cli("diff", *argv, XDG_CACHE_HOME=cache, **env)

    return run


@pytest.mark.parametrize(
    ("name", "pair"),
    [("two-releases", ("old.lock", "new.lock")), ("two-targets-more", ("old.lock", "three.lock"))],
)
def test_golden_differences(diff: Cli, name: str, pair: tuple[str, str]) -> None:
    outcome = diff(*pair)
    assert (outcome.code, outcome.err) == (0, "")
    assert_golden(f"diff-{name}.txt", outcome.out)


def test_golden_port(diff: Cli) -> None:
    outcome = diff("three.lock", "--target", "x86,arm")
    assert (outcome.code, outcome.err) == (0, "")
    assert_golden("diff-port.txt", outcome.out)


def test_two_targets_are_held_side_by_side(diff: Cli, cli: Cli, cache: str) -> None:
    """Of one lock or of two; what is equal, what differs, what one alone has, and which flags."""
    arm = ("tensorflow==2.6.5", "--target", "arm", "-l", "arm.lock")
    assert cli("lock", *arm, XDG_CACHE_HOME=cache).code == 0
    found = diff("new.lock", "arm.lock", "--json").json()
    validated(found, "port")
    again = diff("three.lock", "--target", "x86,arm", "--json").json()
    assert found["components"] == again["components"]
    assert found["flags"] == again["flags"]
    assert [side["name"] for side in found["targets"]] == ["x86", "arm"]
    kinds = {part["component"]: part["kind"] for part in found["components"]}
    assert (kinds["tensorflow"], kinds["base-image"], kinds["cuda"]) == (
        "equal",
        "different",
        "only",
    )
    cuda = next(part for part in found["components"] if part["component"] == "cuda")
    assert cuda["held"][0]["evidence"] == "derived"
    assert cuda["absent"] == [{"target": "arm", "why": "accelerator none"}]
    flags = {part["flag"]: part for part in found["flags"]}
    assert flags["-fsigned-char"]["target"] == "arm"
    assert flags["-fsigned-char"]["evidence"] == "ran"
    assert "plain char is unsigned on aarch64" in flags["-fsigned-char"]["why"]
    assert flags["-fsigned-char"]["source"]
    for kind in ("equal", "different", "only"):
        assert found["summary"][kind] == list(kinds.values()).count(kind)


def test_a_port_turned_round_has_the_same_components(diff: Cli) -> None:
    there = diff("three.lock", "--target", "x86,amd", "--json").json()
    back = diff("three.lock", "--target", "amd,x86", "--json").json()
    assert there["summary"] == back["summary"]
    assert diff("three.lock", "--target", "x86,amd", "--exit-code").code == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["three.lock"], 2, "`diff` needs two locks, or two targets of one"),
        (["new.lock"], 2, "`diff` needs two locks, or two targets of one"),
        (["three.lock", "--target", "x86"], 2, "`diff` compares two targets"),
        (["new.lock", "--target", "x86,arm"], 3, "new.lock has no target `arm`"),
    ],
)
def test_targets_that_cannot_be_compared(
    diff: Cli, words: list[str], code: int, message: str
) -> None:
    outcome = diff(*words)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err.splitlines()[0]


def test_nothing_moved(diff: Cli) -> None:
    outcome = diff("new.lock", "new.lock", "--exit-code")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("0 added, 0 changed, 0 removed, ")
    assert outcome.out.endswith(" the same\n")
    assert outcome.out.count("\n") == 1


def test_the_exit_code_only_where_it_is_wanted(diff: Cli) -> None:
    assert diff("old.lock", "new.lock").code == 0
    assert diff("old.lock", "new.lock", "--exit-code").code == 1
    assert diff("old.lock", "new.lock", TOOLMATRIX_EXIT_CODE="1").code == 1


def test_the_document_holds_to_its_schema(diff: Cli) -> None:
    outcome = diff("old.lock", "three.lock", "--json")
    found = outcome.json()
    assert (outcome.code, outcome.err) == (0, "")
    validated(found, "differences")
    kinds = [part["kind"] for part in found["differences"]]
    for kind in ("added", "changed", "removed", "moved"):
        assert found["summary"][kind] == kinds.count(kind)
    first = found["differences"][0]
    assert (first["target"], first["component"], first["why"]) == ("x86", "tensorflow", "requested")
    assert (first["old"]["value"], first["new"]["value"]) == ("2.4.0", "2.6.5")
    assert [found[side]["path"] for side in ("old", "new")] == ["old.lock", "three.lock"]


def test_turned_round_it_says_the_opposite(diff: Cli) -> None:
    there = diff("old.lock", "three.lock", "--json").json()["summary"]
    back = diff("three.lock", "old.lock", "--json").json()["summary"]
    assert (there["added"], there["removed"]) == (back["removed"], back["added"])
    assert (there["changed"], there["same"]) == (back["changed"], back["same"])


def test_colour_changes_nothing_else(diff: Cli) -> None:
    plain = diff("old.lock", "new.lock").out
    coloured = diff("old.lock", "new.lock", "--color", "always").out
    assert "\x1b[33m~\x1b[0m" in coloured
    for code in ("\x1b[33m", "\x1b[32m", "\x1b[31m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_one_lock_may_come_from_stdin(diff: Cli, here: Path, cache: str) -> None:
    expected = diff("old.lock", "new.lock").out
    stdin = io.StringIO((here / "old.lock").read_text())
    stdout, stderr = io.StringIO(), io.StringIO()
    env = {"HOME": str(here.parent), "XDG_CACHE_HOME": cache}
    assert main(["diff", "-", "new.lock"], env, stdin, stdout, stderr) == 0
    assert stdout.getvalue() == expected
    assert diff("-", "-").code == 2


def test_paths_lie_in_the_directory_of_c(diff: Cli, here: Path) -> None:
    expected = diff("old.lock", "new.lock").out
    (here / "sub").mkdir()
    for name in ("old.lock", "new.lock"):
        (here / name).rename(here / "sub" / name)
    assert diff("-C", "sub", "old.lock", "new.lock").out == expected


def test_a_lock_that_is_none_is_refused(diff: Cli, here: Path) -> None:
    (here / "cargo.lock").write_text("version = 4\n")
    assert diff("old.lock", "cargo.lock") == (
        2,
        "",
        (
            "error[TM904]: this is not a lock\n"
            "  --> cargo.lock:1\n"
            '  expected: `schema = "toolmatrix.lock/1"`\n'
            "  found: another file\n"
            "help: `toolmatrix lock` writes one\n"
        ),
    )
    assert diff("missing.lock", "new.lock").code == 2


def test_facts_that_the_matrix_lacks_are_told_by_nothing(diff: Cli, here: Path, cli: Cli) -> None:
    """A lock of another matrix: values still compare, reasons are left out."""
    from toolmatrix.lockfile import lock_file

    lock = lock_file.read(str(here / "new.lock"))
    default = lock.environments["default"]
    x86 = default.targets["x86"]
    strange = {name: part.replace(facts=("no/such",)) for name, part in x86.components.items()}
    targets = {"x86": x86.replace(components=strange)}
    made = lock.replace(environments={"default": default.replace(targets=targets)})
    (here / "strange.lock").write_text(lock_file.text(made))
    outcome = diff("old.lock", "strange.lock")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["~", "tensorflow", "2.4.0", "->", "2.6.5", "requested"]
    assert any(line.split() == ["~", "bazel", "3.1.0", "->", "3.7.2"] for line in lines)
    assert cli("diff", "only-one").code == 2


def test_a_target_in_the_settings_is_no_comparison(diff: Cli, here: Path) -> None:
    expected = diff("old.lock", "new.lock")
    (here / "toolmatrix.toml").write_text('target = ["x86", "arm"]\n')
    assert diff("old.lock", "new.lock") == expected
