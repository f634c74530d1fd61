"""`toolmatrix upgrade`: what a lock could move to, by commands that were run, and the facts that stand in the way."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.amount import sampled
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.cli.transcript import check, check_without
from toolmatrix.lockfile import lock_file

LATER = """\
schema: toolmatrix.facts/1
sources:
  ours: {title: our mirror, at: "mirror, index page", read: 2026-11-20}
releases:
  - {id: later-cuda, component: cuda, source: ours, evidence: artifact, where: page,
     versions: {11.2.3: {date: 2021-09-01}}}
  - {id: later-tool, component: tool, source: ours, evidence: artifact, where: page,
     versions: {"2.1": {date: 2026-01-01}}}
"""
REFUSING = """\
schema: toolmatrix.facts/1
sources:
  ours: {title: our mirror, at: "mirror, index page", read: 2026-11-20}
statements:
  - {id: app-broken, when: {app: 2.1.0}, limits: {python: "3.12"}, evidence: ran, source: ours, where: page}
"""


def told(outcome: Any) -> dict[str, dict[str, Any]]:
    """What the document says of each component of the only environment."""
    validated(outcome.json(), "upgrades")
    (environment,) = outcome.json()["environments"].values()
    return {one["component"]: one for one in environment["components"]}


def test_golden(small: Cli) -> None:
    small("lock", "app==2.1.0")
    assert check(small, "small", "upgrade").code == 0


def test_colour_and_talk_are_all_that_is_left_out(small: Cli) -> None:
    small("lock", "app==2.1.0")
    check_without(small, "upgrade")


def test_nothing_is_written(small: Cli, here: Path) -> None:
    small("lock", "app==2.1.0")
    before = (here / "toolmatrix.lock").read_bytes()
    small("upgrade")
    assert (here / "toolmatrix.lock").read_bytes() == before
    assert [path.name for path in here.iterdir()] == ["toolmatrix.lock"]


@pytest.mark.parametrize(
    "line",
    sampled(
        [
            "torch==2.6.0 --from wheel --with python==3.11",
            "tensorflow==2.6.5",
            "tensorflow==2.6.5 --target x86,arm --align python,numpy",
            "onnxruntime --with cuda==12.4.1 --at 2025-06-01",
        ],
        every=2,
    ),
)
def test_every_command_writes_what_was_told(real: Cli, here: Path, line: str) -> None:
    """Each move is the very answer of its command: that release, and what was said to move with it."""
    assert real("lock", *shlex.split(line)).code == 0
    shutil.copy(here / "toolmatrix.lock", here / "before")
    for component, one in told(real("upgrade", "--json")).items():
        for move in one["moves"]:
            shutil.copy(here / "before", here / "toolmatrix.lock")
            program, *words = shlex.split(move["command"])
            assert program == "toolmatrix"
            outcome = real(*words)
            assert outcome.code == 0, (component, outcome.err)
            (held,) = lock_file.read(str(here / "toolmatrix.lock")).environments.values()
            for target in one["held"]:
                assert held.targets[target].chosen[component] == move["version"]
            for change in move["changes"]:
                chosen = held.targets[change["target"]].components
                now = chosen[change["component"]].version if change["new"] else ""
                assert now == change["new"], (component, change)


def test_what_is_in_the_way_is_a_fact(real: Cli) -> None:
    real("lock", "tensorflow==2.6.5")
    found = told(real("upgrade", "--json"))
    numpy = found["numpy"]
    assert (numpy["held"], numpy["moves"]) == ({"x86": "1.19.5"}, [])
    first = numpy["reasons"][0]
    assert first["facts"] == ["tensorflow-wheels/2.6.5#numpy"]
    assert "(only ~=1.19.2)" in first["text"]
    # Each that stays has a reason, and each move that nobody tested says so.
    for one in found.values():
        assert one["moves"] or one["reasons"] or not one["newest"]
    assert "tested with cuda 11.2" in found["cuda"]["moves"][0]["untested"][0]


def test_what_was_asked_for_moves_only_by_another_request(real: Cli) -> None:
    real("lock", "tensorflow==2.6.5")
    framework = told(real("upgrade", "--json"))["tensorflow"]
    assert framework["asked"] == "tensorflow==2.6.5"
    (move,) = framework["moves"]
    assert move["version"] == framework["newest"]
    assert move["request"] == [f"tensorflow=={move['version']}"]
    # What follows from it is what its own facts say, and not what was held.
    assert move["untested"] == []


def test_what_came_out_after_the_framework_is_no_tested_move(real: Cli) -> None:
    """What METADATA admits of later packages nobody can have tried when the framework was released."""
    real("lock", "tensorflow-rocm", "--target", "amd")
    h5py = told(real("upgrade", "--json"))["h5py"]
    (move,) = h5py["moves"]
    (said,) = move["untested"]
    assert said.startswith(f"h5py {move['version']} came out after tensorflow-rocm ")


def test_no_move_takes_a_lower_release_of_what_was_asked_for(real: Cli) -> None:
    """The newest NumPy would go with a TensorFlow of years before, which is no upgrade."""
    real("lock", "tensorflow-rocm", "--target", "amd")
    found = told(real("upgrade", "--json"))
    for one in found.values():
        for move in one["moves"]:
            lowered = {change["component"] for change in move["changes"]}
            assert "tensorflow-rocm" not in lowered, one["component"]
    assert found["numpy"]["moves"] == []
    assert any("tensorflow-rocm" in reason["text"] for reason in found["numpy"]["reasons"])


def test_a_lock_of_an_older_matrix_is_asked_of_this_one(small: Cli, here: Path) -> None:
    small("lock", "app==2.1.0")
    (here / "later.yaml").write_text(LATER)
    outcome = small("upgrade", "--matrix", "later.yaml", "--json")
    tool = told(outcome)["tool"]
    assert (tool["held"], tool["newest"]) == ({"x86": "2.0"}, "2.1")
    (move,) = tool["moves"]
    assert move["version"] == "2.1"
    # The command asks the same matrix.
    assert move["command"].endswith("--matrix later.yaml")


def test_what_this_matrix_does_not_know_is_named(small: Cli, here: Path) -> None:
    (here / "later.yaml").write_text(LATER)
    small("lock", "app==2.1.0", "--matrix", "later.yaml")
    (environment,) = small("upgrade", "--json").json()["environments"].values()
    moved = {one["component"]: (one["old"], one["new"]) for one in environment["moved"]}
    assert moved["tool"] == ("2.1", "2.0")
    assert "tool 2.1 -> 2.0" in small("upgrade").out


def test_a_request_without_an_answer_any_more_is_a_no(small: Cli, here: Path) -> None:
    small("lock", "app==2.1.0")
    (here / "refusing.yaml").write_text(REFUSING)
    outcome = small("upgrade", "--matrix", "refusing.yaml")
    assert outcome.code == 1
    assert "no longer has an answer with the matrix of" in outcome.out
    document = small("upgrade", "--matrix", "refusing.yaml", "--json").json()
    validated(document, "upgrades")
    (environment,) = document["environments"].values()
    assert not environment["answered"]
    facts = {fact for reason in environment["reasons"] for fact in reason["facts"]}
    assert "app-broken#python" in facts or "app-broken" in facts


def test_a_day_that_was_asked_for_stays(small: Cli) -> None:
    small("lock", "app==2.0.0", "--at", "2020-12-20")
    for one in told(small("upgrade", "--json")).values():
        assert one["newest"] not in {"2.1.0", "2.1.3", "11.2.2"}


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [("", 2, "toolmatrix.lock"), ("schema = 1\n", 2, "toolmatrix.lock")],
)
def test_what_is_no_lock_is_refused(
    small: Cli, here: Path, text: str, code: int, said: str
) -> None:
    if text:
        (here / "toolmatrix.lock").write_text(text)
    outcome = small("upgrade")
    assert outcome.code == code
    assert said in outcome.err
    assert outcome.out == ""


def test_a_lock_about_what_this_matrix_has_not_is_refused(small: Cli, here: Path) -> None:
    (here / "more.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        "sources: {us: {title: ours, at: 'us:page@1', read: 2026-01-01}}\n"
        "components: {gone: {title: Gone, scheme: pep440}}\n"
        "releases:\n"
        "  - {id: gone-releases, component: gone, source: us, evidence: stated, where: text,\n"
        "     versions: {'1.0': {date: 2020-01-01}}}\n"
    )
    assert small("lock", "app==2.1.0", "gone==1.0", "--matrix", "more.yaml").code == 0
    outcome = small("upgrade")
    assert outcome.code == 3
    assert "unknown component `gone`" in outcome.err


def test_environments_are_told_apart(small: Cli, here: Path) -> None:
    (here / "toolmatrix.toml").write_text(
        '[environments.old]\nrequest = ["app==2.0.0"]\n[environments.new]\nrequest = ["app==2.1.0"]\n'
    )
    assert small("lock").code == 0
    document = small("upgrade", "--json").json()
    validated(document, "upgrades")
    assert sorted(document["environments"]) == ["new", "old"]
    # No single command writes one of several environments.
    moves = [
        move
        for part in document["environments"].values()
        for one in part["components"]
        for move in one["moves"]
    ]
    assert moves
    assert {move["command"] for move in moves} == {""}
