"""`toolmatrix lock`: what it writes, what it keeps, and when it calls a lock stale."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Cli, Outcome
from tests.cli.test_documents import validated
from tests.golden import assert_golden
from tests.schemas import shipped
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import Lock

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TF = "tensorflow==2.6.5"
LATER = """\
schema: toolmatrix.facts/1
sources: {mine: {title: M, at: "m:p@1", read: 2026-01-01}}
releases: [{id: later, component: python, source: mine, evidence: stated, where: tags, versions: {"3.9.99": {}}}]
"""
THREE = ("--target", "x86,arm,amd")


@pytest.fixture
def lock(cli: Cli, cache: str) -> Cli:
    """`lock("tensorflow")`: a run of `toolmatrix lock`."""

    def run(*argv: str, **env: str) -> Outcome:
        return cli("lock", *argv, XDG_CACHE_HOME=cache, **env)

    return run


def held(here: Path, name: str = "toolmatrix.lock") -> Lock:
    return lock_file.read(str(here / name))


def versions(here: Path, target: str = "x86", name: str = "toolmatrix.lock") -> dict[str, str]:
    return held(here, name).targets[target].chosen


def document(outcome: Outcome, code: int = 0) -> dict[str, Any]:
    found = outcome.json()
    assert (outcome.code, outcome.err) == (code, "")
    validated(found, "locked")
    return found


def test_golden_lock_of_three_targets(lock: Cli, here: Path) -> None:
    """Digest and day of the matrix are left out: they move with every fact."""
    outcome = lock(TF, *THREE)
    found = held(here)
    count = sum(len(target.components) for target in found.targets.values())
    told = f"wrote toolmatrix.lock: 3 targets, {count} components\n"
    assert outcome == (0, told, "")
    matrix = {"matrix_digest": "sha256:0", "matrix_date": "2026-11-20"}
    assert_golden("three-targets.lock", lock_file.text(found.replace(**matrix)))
    jsonschema.validate(tomllib.loads((here / "toolmatrix.lock").read_text()), shipped("lock"))


def test_the_lock_says_what_resolve_says(lock: Cli, cli: Cli, here: Path, cache: str) -> None:
    words = (TF, "--target", "x86,arm", "--device", "8.6,7.5", "--cpu", "zen2")
    assert lock(*words).code == 0
    answer = cli("resolve", *words, "--json", XDG_CACHE_HOME=cache).json()
    found = held(here)
    assert {"digest": found.matrix_digest, "date": found.matrix_date} == answer["matrix"]
    assert found.environments["default"].request == (
        TF,
        "--target=x86,arm",
        "--device=8.6,7.5",
        "--cpu=zen2",
    )
    for name, told in answer["targets"].items():
        target = found.targets[name]
        assert target.accelerator == answer["request"]["accelerator"][name]
        assert (target.from_, target.platform) == ("source", told["platform"])
        assert target.components.keys() == told["components"].keys()
        for component, part in told["components"].items():
            one = target.components[component]
            assert one.version == part.get("version", part.get("floor"))
            assert (one.evidence, list(one.facts)) == (part["evidence"], part["facts"])
            assert set(one.disputed) == {rival["fact"] for rival in part["disputed"]}
        assert target.archs.keys() == {part["name"] for part in told["archs"]}
        assert target.devices.keys() == {part["name"] for part in told["devices"]}
        for flag in ("cflags", "cxxflags", "nvcc", "hipcc", "missing"):
            assert list(getattr(target.flags, flag)) == told["flags"][flag]


def test_the_same_request_gives_the_same_bytes(lock: Cli, here: Path) -> None:
    assert lock(TF, *THREE).code == 0
    path = here / "toolmatrix.lock"
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    outcome = lock(TF, *THREE)
    assert outcome.out.startswith("unchanged toolmatrix.lock: 3 targets, ")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)
    path.unlink()
    assert lock(TF, *THREE).code == 0
    assert path.read_bytes() == before


def test_a_lock_makes_itself_again(lock: Cli, here: Path) -> None:
    """Without a request the one in the lock is asked, with options said in this run in place of its own."""
    assert lock(TF, "--target", "x86", "--with", "python==3.8", "--with", "gcc<9").code == 0
    assert lock("--check").code == 0
    assert lock().out.startswith("unchanged")
    assert lock("--target", "arm").code == 0
    found = held(here)
    assert found.environments["default"].request == (
        TF,
        "--target=arm",
        "--with=python==3.8",
        "--with=gcc<9",
    )
    assert found.targets.keys() == {"arm"}
    assert found.targets["arm"].chosen["python"] == "3.8"


@pytest.mark.parametrize(
    "words",
    [
        ("tensorflow>=2.4,<2.9", "--prefer", "oldest"),
        (TF, "--from", "wheel", "--min-evidence", "derived"),
        (TF, "--accelerator", "none", "--distro", "ubuntu:20.04", "--align", "python,numpy"),
        (TF, "--target", "amd", "--arch", "gfx90a"),
        ("numpy", "python==3.10", "--target", "x86,arm", "--align", "numpy"),
    ],
    ids=" ".join,
)
def test_every_kind_of_request_is_kept_whole(lock: Cli, here: Path, words: tuple[str, ...]) -> None:
    outcome = lock(*words)
    assert outcome.code == 0, outcome
    before = (here / "toolmatrix.lock").read_bytes()
    fresh = lock("--check")
    assert (fresh.code, fresh.err) == (0, "")
    assert fresh.out.startswith("toolmatrix.lock is up to date: ")
    assert lock().out.startswith("unchanged")
    assert (here / "toolmatrix.lock").read_bytes() == before


def test_a_refusal_writes_nothing(lock: Cli, here: Path) -> None:
    outcome = lock(TF, "--arch", "sm_86", "--with", "cuda==11.0.3")
    assert outcome.code == 1
    assert outcome.err.startswith("no answer, nothing was written\n")
    assert outcome.out.startswith("no")
    assert "to allow it" in outcome.out
    assert not (here / "toolmatrix.lock").exists()
    assert lock(TF).code == 0
    before = (here / "toolmatrix.lock").read_bytes()
    outcome = lock(TF, "--arch", "sm_86", "--with", "cuda==11.0.3", "--json")
    assert outcome.json()["schema"] == "toolmatrix.conflict/1"
    assert outcome.code == 1
    assert (here / "toolmatrix.lock").read_bytes() == before


@pytest.mark.long
def test_a_check_tells_what_moved(lock: Cli, here: Path, ours: str) -> None:
    assert lock(TF).code == 0
    before = (here / "toolmatrix.lock").read_bytes()
    outcome = lock("--check", "--matrix", ours)
    lines = outcome.out.splitlines()
    assert outcome.code == 1
    assert lines[0] == "toolmatrix.lock is stale"
    assert lines[1].startswith("~ numpy  1.19.5 -> 1.19.99  ")
    assert lines[-1].startswith("0 added, 1 changed, 0 removed, ")
    assert outcome.err == (
        "hint: `toolmatrix lock` updates it; `--upgrade NAME` changes only NAME\n"
    )
    assert (here / "toolmatrix.lock").read_bytes() == before
    assert lock("--check", "--matrix", ours, "--exit-zero").code == 0
    found = document(lock("--check", "--matrix", ours, "--json"), 1)
    assert found["status"] == "stale"
    assert found["matrix"] != found["present_matrix"]
    assert [part["component"] for part in found["differences"]] == ["numpy"]
    assert document(lock("--check", "--json"))["status"] == "fresh"


@pytest.mark.long
def test_another_matrix_with_the_same_answer_is_fresh(lock: Cli, here: Path, ours: str) -> None:
    assert lock("tensorflow==2.16.1").code == 0
    outcome = lock("--check", "--matrix", ours)
    assert outcome.code == 0
    assert outcome.out.startswith("toolmatrix.lock is up to date: 1 target, ")
    date = held(here).matrix_date
    assert outcome.err == (
        f"the matrix changed ({date}, the lock has {date}); the answer is the same\n"
    )


def test_a_request_that_moved_is_stale(lock: Cli, here: Path) -> None:
    (here / "toolmatrix.toml").write_text(f'request = "{TF}"\n')
    assert lock().code == 0
    assert lock("--check").code == 0
    (here / "toolmatrix.toml").write_text('request = "tensorflow~=2.6.5"\n')
    outcome = lock("--check")
    assert outcome.code == 1
    assert outcome.out.splitlines()[:2] == [
        "toolmatrix.lock is stale",
        f"the request is `tensorflow~=2.6.5`, but the lock is for `{TF}`",
    ]
    assert document(lock("--check", "--json"), 1)["differences"] == []
    outcome = lock("--check", TF, "--target", "arm")
    assert outcome.code == 1
    assert f"the request is `{TF} --target=arm`, but the lock is for `{TF}`\n" in outcome.out


def test_several_environments_stand_in_one_lock(lock: Cli, here: Path) -> None:
    path = here / "toolmatrix.toml"
    path.write_text(
        f'request = "{TF}"\n'
        '[environments.port]\ntarget = ["arm"]\n'
        '[environments.old]\nrequest = ["tensorflow==2.4.0"]\n'
    )
    outcome = lock()
    assert outcome.code == 0
    assert outcome.out.startswith("wrote toolmatrix.lock: 3 environments, 3 targets, ")
    found = held(here)
    requests = {name: part.request for name, part in found.environments.items()}
    assert requests == {
        "default": (TF,),
        "port": (TF, "--target=arm"),
        "old": ("tensorflow==2.4.0",),
    }
    assert found.environments["port"].targets.keys() == {"arm"}
    assert found.environments["old"].targets["x86"].chosen["tensorflow"] == "2.4.0"
    assert lock("--check").code == 0
    assert set(document(lock("--check", "--json"))["environments"]) == set(requests)
    path.write_text(path.read_text().replace("port", "move").replace("2.4.0", "2.5.0"))
    outcome = lock("--check")
    assert outcome.code == 1
    assert outcome.out.splitlines()[:4] == [
        "toolmatrix.lock is stale",
        "environment `move`: missing from the lock",
        "environment `old`: the request is `tensorflow==2.5.0`, but the lock is for `tensorflow==2.4.0`",
        "environment `port`: no longer requested",
    ]
    path.unlink()
    assert lock("--check").code == 0
    assert lock(TF).code == 0
    assert held(here).environments.keys() == {"default"}


def test_an_environment_that_has_no_answer_is_named(lock: Cli, here: Path) -> None:
    (here / "toolmatrix.toml").write_text(
        f'request = "{TF}"\n[environments.new]\narch = "sm_86"\nwith = ["cuda==11.0.3"]\n'
    )
    outcome = lock()
    assert outcome.code == 1
    assert outcome.err.startswith("environment `new`: no answer, nothing was written\n")
    assert not (here / "toolmatrix.lock").exists()
    (here / "toolmatrix.toml").write_text('[environments.new]\narch = "sm_86"\n')
    outcome = lock()
    assert (outcome.code, outcome.err) == (
        2,
        (
            "error[TM901]: the environment `new` has no request\n"
            "  expected: `request` in its table, or above all tables\n"
        ),
    )


def test_keep_takes_what_is_still_possible(lock: Cli, here: Path) -> None:
    assert lock(TF, "--with", "python==3.8", "-l", "old.lock").code == 0
    assert lock(TF).code == 0
    assert versions(here)["python"] == "3.9"
    assert lock(TF, "--keep", "old.lock").code == 0
    assert versions(here)["python"] == "3.8"
    assert held(here).targets["x86"].components["python"].kept
    assert not held(here).targets["x86"].components["bazel"].kept
    outcome = lock("--check")
    assert outcome.code == 0
    assert outcome.err == (
        "1 component kept from an earlier lock; the request alone gives other releases\n"
    )
    assert lock("tensorflow==2.16.1", "--keep", "old.lock").code == 0
    assert versions(here)["python"] != "3.8"
    assert lock("--check").code == 0


def test_upgrade_lets_only_one_component_move(lock: Cli, here: Path) -> None:
    assert lock(TF, "--with", "numpy<1.19.5", "--with", "python==3.8").code == 0
    assert versions(here)["numpy"] == "1.19.4"
    assert lock(TF, "--upgrade", "numpy").code == 0
    assert (versions(here)["numpy"], versions(here)["python"]) == ("1.19.5", "3.8")
    assert lock("--check").code == 0
    outcome = lock("--upgrade", "Python", "--upgrade", "numpy")
    assert outcome.code == 0
    assert outcome.out.startswith("~ python  3.8 -> 3.9  wheels for Python 3.7-3.9")
    assert outcome.out.splitlines()[-1].startswith("wrote toolmatrix.lock: 1 target, ")
    assert not any(part.kept for part in held(here).targets["x86"].components.values())


def test_upgrade_wants_a_name_that_the_lock_holds(lock: Cli) -> None:
    assert lock("numpy").code == 0
    outcome = lock("--upgrade", "cuda")
    assert outcome.code == 3
    assert "toolmatrix.lock has no cuda" in outcome.err
    assert lock("--upgrade", "nothing-of-that-name").code == 3
    assert lock("--upgrade", "numpy", "--check").code == 2


def test_resolve_takes_a_lock_to_keep(lock: Cli, cli: Cli, cache: str) -> None:
    assert lock(TF, "--with", "python==3.8").code == 0
    found = cli("resolve", TF, "--keep", "toolmatrix.lock", "--json", XDG_CACHE_HOME=cache).json()
    assert found["targets"]["x86"]["components"]["python"]["version"] == "3.8"


def test_the_lock_goes_where_it_is_told(lock: Cli, here: Path) -> None:
    assert lock(TF, "--lock", "a.lock").out.startswith("wrote a.lock: 1 target, ")
    text = (here / "a.lock").read_text()
    outcome = lock(TF, "--output", "-")
    assert (outcome.code, outcome.out) == (0, text)
    assert outcome.err.startswith("1 target, ")
    outcome = lock(TF, "-o", "b.lock")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("wrote b.lock: 1 target, ")
    assert (here / "b.lock").read_text() == text
    assert lock(TF, "--lock", "-").out == text
    (here / "sub").mkdir()
    assert lock("-C", "sub", TF).code == 0
    assert (here / "sub/toolmatrix.lock").read_text() == text
    assert not (here / "toolmatrix.lock").exists()
    for more in (["--check"], ["--json"]):
        assert lock("--lock", "-", TF, *more).code == 2


def test_a_written_lock_is_told_as_a_document(lock: Cli, here: Path) -> None:
    found = document(lock(TF, "--json"))
    assert (found["path"], found["status"]) == ("toolmatrix.lock", "written")
    assert found["differences"] == []
    assert (here / "toolmatrix.lock").read_text().endswith(f"\n# seal {found['digest']}\n")
    assert document(lock(TF, "--json"))["status"] == "unchanged"
    found = document(lock("tensorflow==2.4.0", "--json"))
    moved = {part["component"]: part["why"] for part in found["differences"]}
    assert moved["tensorflow"] == "requested"
    assert lock(TF, "--json", "-o", "told.json").out == ""
    assert json.loads((here / "told.json").read_text())["status"] == "written"


def test_quiet_leaves_the_file_and_the_exit_code(small: Cli, here: Path) -> None:
    assert small("lock", "app==2.1.3", "-qq") == (0, "", "")
    assert (here / "toolmatrix.lock").exists()
    assert small("lock", "--check", "-qq") == (0, "", "")
    (here / "ours.yaml").write_text(LATER)
    assert small("lock", "--check", "-qq", "-m", "ours.yaml") == (1, "", "")


def test_a_lock_that_cannot_be_written_stays_as_it_was(
    lock: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lock(TF).code == 0
    before = (here / "toolmatrix.lock").read_bytes()

    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("toolmatrix.outputs.os.replace", full)
    outcome = lock("tensorflow==2.4.0")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error[TM905]: cannot write the output\n")
    assert (here / "toolmatrix.lock").read_bytes() == before
    assert os.listdir(here) == ["toolmatrix.lock"]
    monkeypatch.undo()
    assert lock(TF, "-l", str(here / "no/such/x.lock")).code == 2


@pytest.mark.parametrize("argv", [["--check"], ["--upgrade", "numpy"], []])
def test_a_broken_lock_is_refused(lock: Cli, here: Path, argv: list[str]) -> None:
    assert lock(TF).code == 0
    path = here / "toolmatrix.lock"
    text = path.read_text()
    path.write_text(text.replace('numpy = { version = "1.19.5"', 'numpy = { version = "1.20.0"'))
    outcome = lock(*argv)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error[TM904]: the lock was edited after it was written\n"
        "  --> toolmatrix.lock\n"
        "  expected: what `toolmatrix lock` wrote\n"
        "  found: lines whose digest does not match its seal\n"
        "help: write it again with `toolmatrix lock`, or restore it from version control\n"
    )
    assert lock(TF).code == 0
    assert path.read_text() == text


def test_nothing_to_lock_and_nothing_to_check(lock: Cli) -> None:
    assert lock() == (
        2,
        "",
        (
            "error[TM901]: no request to lock\n"
            "  expected: a request, `request` in toolmatrix.toml, or a lock to update\n"
            f"help: `toolmatrix lock {TF} --target x86,arm`\n"
        ),
    )
    assert lock("--check") == (
        2,
        "",
        "error[TM904]: there is no lock\n  --> toolmatrix.lock\nhelp: `toolmatrix lock` writes one\n",
    )
    assert lock("--check", "--json").json()["error"]["code"] == "TM904"
    assert lock("no-such-component").code == 3


def test_what_never_was_a_lock_is_not_replaced(lock: Cli, here: Path) -> None:
    path = here / "other.lock"
    path.write_text("version = 4\n")
    outcome = lock("numpy", "-l", "other.lock")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error[TM904]: this is not a lock\n  --> other.lock:1\n")
    assert path.read_text() == "version = 4\n"
    for text in ("", '# x\nschema = "toolmatrix.lock/2"\n', "<<<<\ntoolmatrix.lock/1\n"):
        path.write_text(text)
        assert lock("numpy", "-l", "other.lock").out.startswith("wrote other.lock: ")


def test_resolve_keeps_to_one_environment(lock: Cli, cli: Cli, here: Path, cache: str) -> None:
    (here / "toolmatrix.toml").write_text(
        '[environments.a]\nrequest = "numpy"\n[environments.b]\nrequest = "gast"\n'
    )
    assert lock().code == 0
    outcome = cli("resolve", "numpy", "--keep", "toolmatrix.lock", XDG_CACHE_HOME=cache)
    assert outcome.code == 2
    assert "toolmatrix.lock has several environments" in outcome.err
    assert lock("--keep", "toolmatrix.lock").code == 0
