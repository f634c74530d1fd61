"""Ways out, line by line: what a changed request asks for, options at odds, and two versions at once."""

from __future__ import annotations

import re

import pytest

from tests.solve.test_repair import FACTS, FRONT, STATEMENTS, ask, context, listed, ways
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import open_index
from toolmatrix.solve.repair import Repair, repairs
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Unsatisfiable, resolve

MORE = (
    ("{accelerator: rocm}", "limits: {machine: x86_64}", "stated"),
    ("{duo: '1.0'}", "requires: {tool: '>=2', cuda: '>=12'}", "stated"),
    ("{tool: '3.0', colour: c3}", "tested: {cuda: '*'}", "stated"),
    ("{quad: '1.0.0.1'}", "limits: {colour: c2}", "stated"),
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The matrix of test_repair with a component of one release that needs two others."""
    folder = tmp_path_factory.mktemp("lines")
    lines = (
        f"  - {{id: s{place}, when: {when}, {says}, evidence: {evidence}, source: vendor, where: text}}\n"
        for place, (when, says, evidence) in enumerate((*STATEMENTS, *MORE))
    )
    names = listed("duo", "1.0") + listed("quad", "1.0.0.1", "1.0.0.2")
    names = re.sub(r"{rank: \d}", "{}", names)
    facts = FACTS.replace("statements:\n", f"{names}statements:\n")
    (folder / "facts.yaml").write_text(facts + "".join(lines))
    more = "".join(f"  {name}: {{title: {name}, scheme: pep440}}\n" for name in ("duo", "quad"))
    front = FRONT.replace("  tool: {", f"{more}  tool: {{")
    (folder / "front.yaml").write_text(front)
    return open_index((str(folder / "front.yaml"),), {"XDG_CACHE_HOME": str(folder)})


def first(index: Index, *asks: Ask, target: str, **request: tuple[str, ...] | str) -> Repair:
    """The cheapest way out."""
    made = Request(asks=(*asks, *context(target, {})), targets=(target,)).replace(**request)
    refusal = resolve(index, made)
    assert isinstance(refusal, Unsatisfiable)
    return repairs(index, refusal)[0]


def test_options_at_odds_with_each_other_are_changed_though_they_were_named(index: Index) -> None:
    """An accelerator that a machine does not have is no matter of what is asked for."""
    said = {"accelerator": "rocm"}
    others = [
        ("--accelerator rocm -> --accelerator cuda", 15),
        ("--accelerator rocm -> --accelerator none", 15),
    ]
    assert ways(index, ask("colour==c2"), target="arm", said=said) == others


def test_options_that_a_component_refuses_stay_as_they_were_named(index: Index) -> None:
    said = {"accelerator": "rocm"}
    assert ways(index, ask("fixed==1.0"), said=said) == []


def test_two_versions_change_where_neither_is_enough(index: Index) -> None:
    tool, cuda = ask("tool==1.0", "with"), ask("cuda==11.0", "with")
    assert ways(index, ask("duo==1.0"), tool, cuda) == [
        ("cuda==11.0 -> cuda==12.0 + tool==1.0 -> ", 32),
        ("cuda==11.0 -> cuda==12.0 + tool==1.0 -> tool==2.0", 44),
    ]


def test_another_target_brings_its_own_context_and_takes_lines_along(index: Index) -> None:
    own = Ask(component="colour", selector="==c2", text="colour==c2", option="with", target="arm")
    default = ask("--distro d3", target="arm", implied=True)
    found = first(index, ask("fixed==1.0"), own, default, target="arm")
    assert [(one.text, one.component, one.selector, one.target, one.implied) for one in found.request.asks] == [
        ("fixed==1.0", "fixed", "==1.0", "", False),
        ("colour==c2", "colour", "==c2", "x86", False),
        ("--distro d3", "distro", "d3", "x86", True),
        ("--target x86", "target", "x86", "x86", False),
        ("--target x86", "machine", "x86_64", "x86", True),
        ("--accelerator cuda", "accelerator", "cuda", "x86", True),
    ]  # fmt: skip
    assert found.request.targets == ("x86",)


def test_a_weaker_evidence_is_a_line_about_no_component(index: Index) -> None:
    found = first(index, ask("app==2.1"), ask("image==i6"), target="x86", min_evidence="tested")
    changes = [(old, new) for old, new in found.changes if old.option == "min-evidence"]
    assert changes == [
        tuple(
            Ask(component="", selector=word, text=f"--min-evidence {word}", option="min-evidence")
            for word in ("tested", "stated")
        )
    ]
    assert found.request.min_evidence == "stated"


def test_the_nearest_release_is_offered_whatever_the_request_prefers(index: Index) -> None:
    # As app says which tools it takes, a tool is changed first.
    nearest = [("tool==1.0.2 -> tool==2.0", 23), ("app==3.0 -> app==2.0", 23)]
    asks = ask("colour==c3"), ask("app==3.0"), ask("tool==1.0.2")
    for prefer in ("", "newest", "oldest"):
        assert ways(index, *asks, prefer=prefer) == nearest


def test_numbers_behind_the_third_cost_as_the_third(index: Index) -> None:
    assert ways(index, ask("quad==1.0.0.1"), ask("colour==c1")) == [
        ("colour==c1 -> colour==c2", 2),
        ("quad==1.0.0.1 -> quad==1.0.0.2", 3),
    ]


def test_four_ways_are_offered_and_what_was_a_default_is_said(index: Index) -> None:
    default, held = ask("--distro d1", implied=True), ask("colour==c1", "with")
    made = Request(asks=(ask("pin==1.0"), default, held, *context("x86", {})), targets=("x86",))
    refusal = resolve(index, made)
    assert isinstance(refusal, Unsatisfiable)
    found = repairs(index, refusal)
    assert len(found) == 4
    assert [[new.implied for _, new in one.changes if new] for one in found] == [[False, False]] * 4
