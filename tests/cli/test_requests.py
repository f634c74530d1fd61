"""No line that is made of names, releases and options that the matrix and the program have is a defect of ours."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.amount import examples, part
from tests.cli.conftest import SMALL, Cli, Outcome
from toolmatrix.cli.main import main
from toolmatrix.command import all_options
from toolmatrix.command.options import REQUEST
from toolmatrix.factbase.store import open_index

OPTIONS = all_options()
pytestmark = pytest.mark.usefixtures("_opened_once")

OPERATORS = ("==", "===", ">=", "<=", "<", ">", "~=", "!=")
COMMANDS = ("resolve", "explain", "why-not", "matrix", "lock", "facts", "show", "what", "plan")
NUMBERS = st.sampled_from(("0", "1", "2", "5"))
DAYS = st.sampled_from(("1990-01-01", "2021-06-01", "2024-02-29", "2026-11-20"))
CPUS = st.sampled_from(("zen3", "haswell", "neoverse-n1", "nobody"))
LAW = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
FRONTS = {"small": str(SMALL / "matrix.yaml"), "built-in": ""}


def run(line: Sequence[str], front: str, cache: str) -> Outcome:
    env = {"XDG_CACHE_HOME": cache, "TOOLMATRIX_MATRIX": front}
    stdout, stderr = io.StringIO(), io.StringIO()
    code = main(line, env, io.StringIO(), stdout, stderr)
    return Outcome(code, stdout.getvalue(), stderr.getvalue())


def sound(outcome: Outcome, line: Sequence[str]) -> None:
    assert outcome.code in range(5), (line, outcome.err)
    assert "Traceback" not in outcome.err
    if "--json" in line:
        json.loads(outcome.out)


@lru_cache(maxsize=2)
def releases(front: str, cache: str) -> dict[str, list[str]]:
    known = open_index([front] if front else [], {"XDG_CACHE_HOME": cache})
    names = known.header["components"]
    return {name: list(known.component(name).versions) for name in names}


def words(known: Mapping[str, list[str]]) -> st.SearchStrategy[str]:
    """A component, alone or with releases of its own; once in a while with one of another."""
    names = st.sampled_from([*known])
    having = st.sampled_from([name for name in known if known[name]])
    own = having.flatmap(
        lambda name: st.builds(
            "{}{}{}".format,
            st.just(name),
            st.sampled_from(OPERATORS),
            st.sampled_from(known[name]),
        )
    )
    ends = having.flatmap(
        lambda name: st.builds(
            "{}>={},{}{}".format,
            st.just(name),
            st.sampled_from(known[name]),
            st.sampled_from(OPERATORS),
            st.sampled_from(known[name]),
        )
    )
    foreign = st.builds(
        "{}{}{}".format,
        names,
        st.sampled_from(OPERATORS),
        having.flatmap(lambda name: st.sampled_from(known[name])),
    )
    return st.one_of(own, own, names, ends, foreign)


def values(name: str, known: Mapping[str, list[str]]) -> st.SearchStrategy[str]:
    """What may stand behind an option."""
    option = OPTIONS[name]
    if option.choices:
        return st.sampled_from(option.choices)
    if name in ("with_", "where"):
        return words(known)
    if name == "align":
        return st.lists(st.sampled_from([*known]), min_size=1, max_size=3).map(",".join)
    if name == "target":
        listed = st.lists(st.sampled_from(known["target"]), min_size=1, max_size=3)
        return listed.map(",".join)
    own = {
        "depth": NUMBERS,
        "at": DAYS,
        "cpu": CPUS,
        "keep": st.just("none.lock"),
        "recipe": st.just("toolchain"),
    }
    return own[name] if name in own else st.sampled_from(known[name.rstrip("_")])


@st.composite
def lines(draw: Any, front: str, cache: str) -> list[str]:
    """A line of a command that asks the matrix."""
    known = releases(front, cache)
    command = draw(st.sampled_from(COMMANDS))
    found = [command]
    if command == "matrix":
        for flag in ("--rows", "--cols"):
            found += [flag, draw(st.sampled_from([*known]))]
        for where in draw(st.lists(words(known), max_size=2)):
            found += ["--where", where]
    else:
        found += draw(st.lists(words(known), min_size=1, max_size=3))
    if command in ("facts", "show"):
        return found
    if command == "lock":
        found += ["--lock", "-"]
    if command == "explain" and draw(st.booleans()):
        found.append("--invert")
    for name in draw(st.lists(st.sampled_from((*REQUEST, "at", "min_evidence")), max_size=3)):
        option = OPTIONS[name]
        found.append(option.flags[-1])
        if option.takes_value:
            found.append(draw(values(name, known)))
    return [*found, "--json"] if command != "lock" and draw(st.booleans()) else found


@pytest.mark.parametrize(("matrix", "count"), [("small", 300), ("built-in", 60)])
@pytest.mark.usefixtures("here")
def test_no_line_is_a_defect(cache: str, matrix: str, count: int) -> None:
    front = FRONTS[matrix]

    @settings(LAW, max_examples=examples(count))
    @given(lines(front, cache))
    def law(line: list[str]) -> None:
        sound(run(line, front, cache), line)

    law()


@pytest.mark.long
@pytest.mark.sweep
def test_a_component_is_explained_beside_itself(real: Cli, cache: str) -> None:
    """`explain X X` ended with exit code 70 for most of them."""
    every = releases("", cache)
    once = ("cuda", "python", "distro", "driver", "apache-tvm")
    for name in dict.fromkeys((*once, *part([*every], 8))):
        known = every[name]
        lines = [["explain", name, name], ["explain", name, name, "--invert", "--json"]]
        if known:
            lines += [["explain", f"{name}=={known[-1]}"], ["explain", name, f"{name}=={known[0]}"]]
            lines += [["why-not", f"{name}=={known[0]}", "--with", f"{name}=={known[-1]}"]]
        for line in (*lines, ["matrix", "--rows", name, "--cols", name]):
            sound(real(*line), line)


@pytest.mark.parametrize(
    "word", ["apache-tvm>=0.25.0.post1,<0.20", "torch>=2.0rc1,~=1.9.0", "torch>=2.0.dev3,<1.*"]
)
def test_bounds_with_a_suffix_that_can_never_hold_are_refused(real: Cli, word: str) -> None:
    outcome = real("resolve", word)
    assert (outcome.code, outcome.out) == (2, "")
    refused = f"error[TM901]: `{word}` "
    assert outcome.err.startswith((refused + "cannot be read", refused + "matches nothing"))
