"""Laws that hold for every request, tried on random requests of real releases.

An answer satisfies the request and is the same twice; pinned whole it is itself again; every way out of a refusal works
when it is pasted.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from functools import lru_cache
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from tests.amount import sampled
from tests.cli.conftest import Outcome
from toolmatrix.cli.main import main
from toolmatrix.factbase.store import open_index

VERSIONED = (
    *("tensorflow", "tensorflow-cpu", "tensorflow-rocm", "cuda", "rocm", "cudnn", "nccl"),
    *("gcc", "clang", "bazel", "python", "numpy", "protobuf", "keras", "h5py"),
)
EXAMPLES = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    # A refusal with its ways out is several requests; shrinking one would take minutes.
    phases=[Phase.explicit, Phase.generate],
)


class Wish(NamedTuple):
    """A component with an operator and one of its releases."""

    component: str
    operator: str
    release: str

    def __str__(self) -> str:
        return f"{self.component}{self.operator}{self.release}"

    def admits(self, version: str) -> bool:
        """Whether a version satisfies it; `==11.2` also admits 11.2.1."""
        if self.operator == "==" and version.startswith(f"{self.release}."):
            return True
        return version in SpecifierSet(f"{self.operator}{self.release}")


class Line(NamedTuple):
    """A request and its options."""

    wishes: tuple[Wish, ...]
    options: tuple[str, ...]


@lru_cache(maxsize=1)
def releases(cache: str) -> dict[str, list[str]]:
    """The releases of each component in the built-in matrix."""
    index = open_index([], {"XDG_CACHE_HOME": cache})
    names = (*VERSIONED, "arch")
    return {name: list(index.component(name).versions) for name in names}


def run(cache: str, *argv: str) -> Outcome:
    stdout, stderr = io.StringIO(), io.StringIO()
    code = main(argv, {"XDG_CACHE_HOME": cache}, io.StringIO(), stdout, stderr)
    return Outcome(code, stdout.getvalue(), stderr.getvalue())


def drawn(draw: Any, cache: str, *, targets: int) -> Line:
    """A random line: mostly exact releases, so that many requests have no answer."""
    known = releases(cache)
    names = draw(st.lists(st.sampled_from(VERSIONED), min_size=1, max_size=3, unique=True))
    wishes = []
    for name in names:
        release = draw(st.sampled_from(known[name]))
        wishes.append(Wish(name, draw(st.sampled_from(["==", "==", ">=", "<="])), release))
    where = draw(st.lists(st.sampled_from(["x86", "arm", "amd"]), max_size=targets, unique=True))
    options = ["--target", ",".join(where)] if where else []
    if len(where) > 1 and draw(st.booleans()):
        options += ["--align", draw(st.sampled_from([*names, "python", "gcc"]))]
    way = draw(st.sampled_from(["", "", "source", "wheel"]))
    options += ["--from", way] if way else []
    if draw(st.integers(0, 3)) == 0:
        options += ["--arch", draw(st.sampled_from(known["arch"]))]
    return Line(tuple(wishes), tuple(options))


def chosen(target: dict[str, Any]) -> dict[str, str]:
    """The versions of an answer; a floor is no version."""
    parts = target["components"].items()
    return {name: part["version"] for name, part in parts if "version" in part}


def answered(line: Line, document: dict[str, Any]) -> None:
    """That an answer satisfies its request."""
    targets = document["targets"]
    for wish in line.wishes:
        versions = [
            chosen(target)[wish.component]
            for target in targets.values()
            if wish.component in chosen(target)
        ]
        assert versions, f"nothing was chosen for {wish}"
        assert all(wish.admits(version) for version in versions), (str(wish), versions)
    aligned = dict(zip(line.options, line.options[1:], strict=False)).get("--align")
    if aligned:
        assert (
            len({chosen(part)[aligned] for part in targets.values() if aligned in chosen(part)}) < 2
        )
    arch = dict(zip(line.options, line.options[1:], strict=False)).get("--arch")
    if arch:
        made = [one["name"] for target in targets.values() for one in target["archs"]]
        assert arch in made


def refused(cache: str, document: dict[str, Any]) -> None:
    """That every way out works, changes something, and is what it says."""
    asked = document["request"]
    for repair in document["repairs"]:
        words = shlex.split(repair["command"])
        assert words[0] == "toolmatrix"
        again = run(cache, *words[1:], "--json")
        # What no fact supports says so by its evidence.
        codes = (0, 4) if repair["evidence"] == "unknown" else (0,)
        assert again.code in codes, (repair["command"], again.out[:400], again.err)
        assert again.json()["targets"] == repair["resolution"]["targets"], repair["command"]
        assert again.json()["request"] != asked
    for core in document["cores"]:
        assert core["lines"]
        assert all(line["text"].strip() for line in core["lines"])
        assert len(core["lines"]) <= 12


@EXAMPLES
@given(data=st.data())
def test_one_target(cache: str, data: st.DataObject) -> None:
    check(cache, drawn(data.draw, cache, targets=1))


@pytest.mark.long
@EXAMPLES
@given(data=st.data())
def test_several_targets(cache: str, data: st.DataObject) -> None:
    check(cache, drawn(data.draw, cache, targets=3))


def check(cache: str, line: Line) -> None:
    words = ("resolve", *map(str, line.wishes), *line.options, "--json")
    outcome = run(cache, *words)
    assert outcome.code in (0, 1, 4), (words, outcome)
    assert outcome.err == ""
    assert run(cache, *words) == outcome
    if outcome.code != 1:
        answered(line, outcome.json())
        same_when_pinned(cache, line, outcome.json())
    else:
        refused(cache, outcome.json())


def same_when_pinned(cache: str, line: Line, document: dict[str, Any]) -> None:
    """An answer for one target, asked for whole, is itself."""
    if len(document["targets"]) > 1:
        return
    (name, target) = next(iter(document["targets"].items()))
    pins = [f"{part}=={version}" for part, version in chosen(target).items()]
    options = ["--target", name, "--from", document["request"]["from"]]
    options += ["--accelerator", document["request"]["accelerator"].get(name, "none")]
    arch = dict(zip(line.options, line.options[1:], strict=False)).get("--arch")
    options += ["--arch", arch] if arch else []
    again = run(cache, "resolve", *pins, *options, "--json")
    # With every part requested more pairs count than before.
    assert again.code in (0, 4), (pins, options, again.out[:600], again.err)
    assert chosen(again.json()["targets"][name]) == chosen(target)


# Refusals, questions that nobody can answer and mistakes, each of which suggests what to type instead.
SUGGESTING = (
    "resolve torch==2.6.0 --arch sm_20",
    "resolve torch --device 'Jetson Orin' --target x86",
    "resolve torch==2.0.0 --device 'RTX 5090' --from wheel",
    "resolve tensorflow==99",
    "resolve --device 'RTX 5090'",
    "resolve torch --distro centos6",
    "resolve torch --min-evidence tested",
    "resolve tensorflow==2.6.5 python==3.12 --distro ubuntu20.04",
    "resolve driver==450 cuda==12.4",
    "resolve torch==2.6.0+cu118 --device 'RTX 5090'",
    "why-not torch==2.1.0 triton==3.2.0 --from wheel",
    "why-not peft==0.3.0 --with apache-tvm==0.14.0 --from wheel",
    "explain cuda tensorflow==2.6.5 python==3.12",
    "explain cuda",
    "plan",
    "plan --arch sm_90",
    "matrix",
    "show torch==99",
    "lock tensorflow==2.6.5 python==3.12",
    "search 'cuda 11.2'",
    "validate",
    "stages",
    "diff",
    "rule",
)
FILLED_IN = {"NAME", "DIR", "FILE", "TARGET", "COMMAND"}
PASTED = re.compile(
    r"^(?:help|hint|to build it|fully known): .*(?:\n +.*)*|^ +toolmatrix .*", re.MULTILINE
)


def suggested(text: str) -> list[list[str]]:
    """The commands that a text offers to be typed: whole ones, without a place for what the reader would fill in."""
    parts = (" ".join(part.split()) for part in PASTED.findall(text))
    commands = [
        command
        for part in parts
        for command in ([part] if part.startswith("toolmatrix") else re.findall("`([^`]+)`", part))
    ]
    lines = [shlex.split(command) for command in commands if command.startswith("toolmatrix ")]
    # The name of a command alone says which one it is.
    return [line[1:] for line in lines if len(line) > 2 and FILLED_IN.isdisjoint(line)]


@pytest.mark.parametrize("line", sampled(SUGGESTING, every=3))
def test_what_is_suggested_runs(cache: str, line: str) -> None:
    outcome = run(cache, *shlex.split(line))
    commands = suggested(f"{outcome.out}\n{outcome.err}")
    assert commands
    for words in commands[:4]:
        again = run(cache, *words)
        assert again.code not in (2, 70), (words, again.err)


def test_a_release_that_was_withdrawn_is_no_way_out(cache: str) -> None:
    """The nearest h5py for Python 3.13 is 3.12.0, which was withdrawn."""
    index = open_index([], {"XDG_CACHE_HOME": cache})
    assert index.component("h5py").yanked & index.scale("h5py").bit("3.12.0")
    document = run(cache, "resolve", "h5py==3.7.0", "python==3.13", "--json").json()
    offered = [change["to"] for way in document["repairs"] for change in way["change"]]
    assert offered == ["python==3.10", "h5py==3.12.1"]


def test_the_laws_can_fail(cache: str) -> None:
    """The checks themselves find a wrong answer and a wrong way out."""
    document = run(cache, "resolve", "numpy==1.19.5", "--json").json()
    wrong = Line((Wish("numpy", "==", "1.18.5"),), ())
    right = Line((Wish("numpy", "==", "1.19.5"),), ())
    answered(right, document)
    for line in (wrong, right._replace(wishes=(Wish("cuda", ">=", "1"),))):
        try:
            answered(line, document)
        except AssertionError:
            continue
        raise RuntimeError("a wrong answer passed")
    refusal = json.loads(run(cache, "resolve", "numpy==1.19.5", "python==3.12", "--json").out)
    refused(cache, refusal)
    refusal["repairs"][0]["command"] = "toolmatrix resolve numpy==1.19.5 python==3.12"
    try:
        refused(cache, refusal)
    except AssertionError:
        return
    raise RuntimeError("a wrong way out passed")
