"""`toolmatrix list` and `search`: what there is, what a word may mean, and which command to type next."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import toolmatrix
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.cli.transcript import check, check_without
from toolmatrix.cli.parser import parse
from toolmatrix.command import COMMANDS, all_options
from toolmatrix.errors import NothingMatched

OPTIONS = all_options()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("all", "list --all"),
        ("at", "list --at 2020-09-30"),
        ("word", "search app"),
        ("few", "search cuda --limit 2"),
        ("misspelt", "search pythn"),
    ],
)
def test_golden(small: Cli, name: str, line: str) -> None:
    assert check(small, name, line).code == 0


@pytest.mark.parametrize("line", ["list", "search app"])
def test_colour_and_talk_are_all_that_is_left_out(small: Cli, line: str) -> None:
    check_without(small, line)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("components", "list"),
        ("components", "list --all --at 2019-01-01"),
        ("search", "search app"),
        ("search", "search app==2.1 --limit 1"),
    ],
)
def test_the_document_keeps_to_its_schema(small: Cli, name: str, line: str) -> None:
    validated(small(*line.split(), "--json").json(), name)


def test_every_component_is_listed_once_but_builds_and_what_is_hidden() -> None:
    heads = toolmatrix.open_matrix().index.header["components"]
    wanted = {name for name, head in heads.items() if not head["variant_of"]}
    hidden = {name for name in wanted if heads[name]["hidden"]}
    for everything, left_out in ((True, set()), (False, hidden)):
        groups = toolmatrix.components(everything=everything).to_json()["groups"]
        listed = [one["component"] for group in groups for one in group["components"]]
        assert sorted(listed) == sorted(wanted - left_out)


def test_a_listed_component_has_what_show_says() -> None:
    groups = toolmatrix.components().to_json()["groups"]
    held = {one["component"]: one for group in groups for one in group["components"]}
    shown = toolmatrix.show("torch").to_json()
    assert held["torch"]["newest"] == shown["releases"][0]["release"]
    assert held["torch"]["date"] == shown["releases"][0]["date"]
    assert held["torch"]["releases"] == shown["known"]
    assert held["torch"]["builds"] == sum(one["builds"] for one in shown["releases"])
    assert "pytorch" in held["torch"]["aliases"]
    assert held["distro"]["newest"] is None
    first = next(group for group in groups if group["components"][0]["component"] == "tensorflow")
    assert first["group"] == "frameworks"


FOUND = {
    # By its own name, by another, by its title, and as a package.
    "cudnn": ("exact", "component", "cudnn", "toolmatrix show cudnn"),
    "PyTorch": ("exact", "component", "torch", "toolmatrix show torch"),
    "pytorch": ("exact", "component", "torch", "toolmatrix show torch"),
    "cuda toolkit": ("exact", "component", "cuda", "toolmatrix show cuda"),
    "onnxruntime_gpu": ("exact", "build", "onnxruntime_gpu", "toolmatrix show onnxruntime_gpu"),
    "tensorf": ("prefix", "component", "tensorflow", "toolmatrix show tensorflow"),
    "tensroflow": ("like", "component", "tensorflow", "toolmatrix show tensorflow"),
    "4090": ("word", "device", "GeForce RTX 4090", "toolmatrix plan --device 'GeForce RTX 4090'"),
    "Ubuntu 22.04": ("exact", "distro", "ubuntu22.04", "toolmatrix show distro==ubuntu22.04"),
    "jammy": ("exact", "distro", "ubuntu22.04", "toolmatrix show distro==ubuntu22.04"),
    "sm_86": ("exact", "arch", "sm_86", "toolmatrix show arch==sm_86"),
    "torch==2.7.1": ("exact", "release", "torch==2.7.1", "toolmatrix show torch==2.7.1"),
    "torch==2.7.1+cu128": (
        "exact",
        "build",
        "torch==2.7.1+cu128",
        "toolmatrix show torch==2.7.1+cu128",
    ),
    "pypi-numpy": ("exact", "source", "pypi-numpy", "toolmatrix facts --source pypi-numpy"),
    "why-not": ("exact", "command", "why-not", "toolmatrix help why-not"),
    "min-evidence": ("exact", "option", "--min-evidence", "toolmatrix help resolve"),
    "sarif": ("exact", "format", "sarif", "toolmatrix help formats"),
    "dockerfile": ("exact", "format", "dockerfile", "toolmatrix help formats"),
    "TM301": ("exact", "code", "TM301", "toolmatrix rule TM301"),
    "__hipRegisterFatBinary": (
        "exact",
        "symbol of the HIP runtime",
        "__hipRegisterFatBinary",
        "toolmatrix show __hipRegisterFatBinary",
    ),
    "xla dump to": ("exact", "flag of XLA_FLAGS", "--xla_dump_to", "toolmatrix show xla_dump_to"),
    "exit codes": ("exact", "topic", "exit-codes", "toolmatrix help exit-codes"),
}


@pytest.mark.parametrize("text", FOUND)
def test_the_first_hit_is_what_was_meant(real: Cli, text: str) -> None:
    first = real("search", *text.split(), "--json", "--limit", "1").json()["hits"][0]
    assert (first["match"], first["kind"], first["name"], first["command"]) == FOUND[text]


def hits(real: Cli, text: str, *options: str) -> list[dict[str, Any]]:
    """The hits of a text."""
    found: list[dict[str, Any]] = real("search", text, "--json", *options).json()["hits"]
    return found


def test_the_better_match_comes_first_and_a_misspelt_word_is_looked_for_last(real: Cli) -> None:
    order = ("exact", "prefix", "word", "inside", "says")
    places = [order.index(hit["match"]) for hit in hits(real, "arch", "--limit", "0")]
    assert places == sorted(places)
    assert {*places} == {*range(len(order))}
    assert {hit["match"] for hit in hits(real, "tensroflow")} == {"like"}


def test_there_are_as_many_as_are_asked_for(real: Cli) -> None:
    every = hits(real, "rtx", "--limit", "0")
    assert len(hits(real, "rtx")) == 20 < len(every)
    assert hits(real, "rtx", "--limit", "3") == every[:3]
    last = real("search", "rtx", "--limit", "3").out.splitlines()[-1]
    assert last == f"{len(every) - 3} more (--limit 0)"
    with pytest.raises(NothingMatched):
        toolmatrix.search("zzqqxx")


def test_every_command_that_is_told_can_be_typed(real: Cli) -> None:
    """One of each kind is run, and some of all are read."""
    told = hits(real, "e", "--limit", "0")
    by_kind = {hit["kind"]: hit["command"] for hit in told}
    assert {"component", "device", "source", "command", "option", "code"} <= {*by_kind}
    for hit in told[::20]:
        parse(shlex.split(hit["command"])[1:])
    assert by_kind.pop("source").rpartition(" ")[2] in toolmatrix.open_matrix().index.sources()
    for command in by_kind.values():
        # That no toolkit makes code for a device is an answer.
        assert real(*shlex.split(command)[1:]).code in (0, 4), command


def test_commands_and_options_can_be_found(real: Cli) -> None:
    flags = [(one.flags[-1], "option") for one in OPTIONS.values()]
    for name, kind in [*((name, "command") for name in COMMANDS), *flags][::20]:
        assert (kind, name) in {(hit["kind"], hit["name"]) for hit in hits(real, name.strip("-"))}


def test_nothing_is_an_answer_of_its_own(real: Cli) -> None:
    outcome = real("search", "zzqqxx")
    assert outcome.code == 3
    assert outcome.err == (
        "error[TM110]: nothing found\n"
        "  found: `zzqqxx`\n"
        "help: `toolmatrix list` shows the components\n"
    )
    assert real("search", "--", "--").code == 3
