"""Laws of how captures are shown: as a table, in words and as a graph."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from tests.compilation.corpus import Case, log
from tests.compilation.laws import Laws
from toolmatrix.compilation import Log
from toolmatrix.report import stage_graphs
from toolmatrix.report import stages as report
from toolmatrix.report.stages import prose_of, runs, table
from toolmatrix.report.terminal import Terminal

SHOWN = Laws()
WIDTHS = (20, 40, 80, 200)
NODE = re.compile(r'    (p\d+[sf]\d+)(?:\["(.*)"\]:::(\w+)|\(\["(.*)"\]\))')
EDGE = re.compile(r'    (p\d+[sf]\d+) -->(?:\|"(.*)"\|)? (p\d+[sf]\d+)')

every = SHOWN.of(lambda _case: True)


class Drawn(NamedTuple):
    """What a graph says: labels of nodes, and ends and label of edges."""

    nodes: dict[str, str]
    edges: set[tuple[str, str, str]]


def from_mermaid(text: str) -> Drawn:
    nodes, edges = {}, set()
    for line in text.splitlines():
        if found := NODE.fullmatch(line):
            nodes[found[1]] = plain(found[2] or found[4])
        elif found := EDGE.fullmatch(line):
            edges.add((found[1], found[3], plain(found[2] or "")))
        else:
            assert re.match(r"flowchart TB|  subgraph p\d+\[|  end|  classDef ", line), line
    return Drawn(nodes, edges)


def plain(label: str) -> str:
    return html.unescape(re.sub(r"#(\d+);", r"&#\1;", label.replace("<br/>", "\n")))


def expected(log: Log) -> set[tuple[str, str]]:
    return {
        (f"p{number}s{before}", f"p{number}s{after}")
        for number, one in enumerate(log.plans)
        for before, after in one.edges
    }


@every
def it_is_shown_at_every_width(case: Case) -> None:
    for width in WIDTHS:
        for explain in (False, True):
            screen = Terminal(width=width)
            text = report.text(log(case.name), case.name, screen, explain=explain)
            assert all(line.isprintable() and line == line.rstrip() for line in text.splitlines())
            if width >= 80:
                assert max(map(len, text.splitlines())) <= width, text


@every
def every_stage_has_its_line(case: Case) -> None:
    for one in log(case.name).plans:
        covered = [held.id for run in runs(one) for line in run for held in line.stages]
        assert sorted(covered) == [held.id for held in one.stages]
        shown = table(one, Terminal(width=10_000), full=True)
        assert [line.split()[0] for line in shown[1:]] == [str(held.id + 1) for held in one.stages]
        for held, line in zip(one.stages, shown[1:], strict=True):
            assert all(path in line for path in (*held.inputs, *held.outputs))


@every
def only_what_readers_do_not_know_is_called_unknown(case: Case) -> None:
    for one in log(case.name).plans:
        for held in one.stages:
            assert (prose_of(one, held).name == "unknown") <= (held.kind == "other")


@every
def sides_agree_with_archs(case: Case) -> None:
    for one in log(case.name).plans:
        for held in one.stages:
            assert not (held.arch and prose_of(one, held).side == "host"), held


@every
def every_edge_is_drawn_with_its_files(case: Case) -> None:
    drawn = from_mermaid(stage_graphs.mermaid(log(case.name)))
    between = {edge[:2]: edge[2] for edge in drawn.edges if "f" not in edge[0] + edge[1]}
    assert set(between) == expected(log(case.name))
    assert all(between.values())
