"""Plans without a driver: every capture is planned again from facts alone, and words that only a driver knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import matrix
from tests.compilation.corpus import cases, log
from toolmatrix.compilation import known
from toolmatrix.errors import ToolMissing
from toolmatrix.judging import stage_facts
from toolmatrix.request import compiles

if TYPE_CHECKING:
    from toolmatrix.compilation.model import Plan

# What is taken apart before each device link in one capture of Debian's package, and says nothing of the order.
_LEFT_OUT = "unbundle"
_DRIES = ("--dryrun", "-###")
_SOURCES = (".cu", ".hip", ".cpp")
# Captures whose source is not there, so that the driver plans something else.
_OTHER = ("missing-file",)


def graph(plan: Plan) -> tuple[list[tuple[object, ...]], list[tuple[int, int]]]:
    """The stages by what they are, and which of them waits for which."""
    kept = [stage for stage in plan.stages if stage.kind != _LEFT_OUT]
    number = {stage.id: place for place, stage in enumerate(kept)}
    edges = [(number[a], number[b]) for a, b in plan.edges if a in number and b in number]
    return [(stage.kind, stage.tool, stage.arch) for stage in kept], sorted(edges)


def test_every_capture_is_planned_as_its_driver_planned_it() -> None:
    index = matrix.index()
    releases = {"nvcc": "cuda", "hipcc": "rocm"}
    planned: dict[str, set[str]] = {}
    for case in cases():
        argv = [word for word in case.sidecar["argv"][1:] if word not in _DRIES]
        dry = len(argv) + 1 < len(case.sidecar["argv"])
        if case.tool not in releases or not dry or case.sidecar["exit_code"] or case.case in _OTHER:
            continue
        component = releases[case.tool]
        found = stage_facts.releases(index, component, case.version)
        order = compiles.stage_order(index, component, found[-1]) if found else None
        sources = [word for word in argv if word.endswith(_SOURCES)]
        try:
            words = known.parse_command_words([word for word in argv if word not in sources])
        except ToolMissing:
            continue
        if order is None or not words.codes or not sources:
            continue
        (real,) = log(case.name).plans
        own = known.plan(case.tool, case.version, order.order, words, sources)
        assert graph(own) == graph(real), case.name
        assert order.captured in found, case.name
        planned.setdefault(f"{case.tool} {case.version}", set()).add(case.case)
    # Each driver whose captures are here, with all that a compile and a link of its own can be.
    assert len(planned) == 15
    assert sum(map(len, planned.values())) > 150


@pytest.mark.parametrize(
    "words", [["-ptx"], ["-rdc=true", "-c"], ["-dlto"], ["-arch=native"], ["-fgpu-rdc"], ["-E"]]
)
def test_words_that_change_the_stages_are_left_to_a_driver(words: list[str]) -> None:
    with pytest.raises(ToolMissing, match="only a driver knows"):
        known.parse_command_words(words)
