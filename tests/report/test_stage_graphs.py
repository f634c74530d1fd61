"""Plans as graphs: both languages say the same nodes and edges, whatever the files are called."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from tests.compilation import corpus
from tests.report.stage_laws import Drawn, expected, from_mermaid
from tests.report.test_stages import plan, stage
from toolmatrix.compilation import Log
from toolmatrix.report import stage_graphs

STRING = r'"((?:[^"\\]|\\.)*)"'
DOT_NODE = re.compile(rf"    (p\d+[sf]\d+) \[label={STRING}, [a-z=#\", 0-9]+\];", re.IGNORECASE)
DOT_EDGE = re.compile(rf"    (p\d+[sf]\d+) -> (p\d+[sf]\d+)(?: \[label={STRING}\])?;")
DOT_FRAME = re.compile(
    r"digraph stages \{|  (rankdir|node|edge)\b[^{}]*;|  subgraph cluster_p\d+ \{|    label=.*;|  \}|\}"
)
EVIL = (
    'a"b.cu',
    "c\\d.cu",
    "e\\N.cu",
    "f|g];--> x.cu",
    "<b>&amp;#35;.cu",
    "new\nline.cu",
    "`x` {y}",
)


def from_dot(text: str) -> Drawn:
    nodes, edges = {}, set()
    for line in text.splitlines():
        if found := DOT_NODE.fullmatch(line):
            nodes[found[1]] = unquoted(found[2])
        elif found := DOT_EDGE.fullmatch(line):
            edges.add((found[1], found[2], unquoted(found[3] or "")))
        else:
            assert DOT_FRAME.fullmatch(line), line
    return Drawn(nodes, edges)


def unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def from_graphviz(text: str) -> Drawn:
    """What the program `dot` understands of a graph."""
    made = subprocess.run(
        ["dot", "-Tjson0"], input=text, capture_output=True, text=True, check=True
    )
    assert made.stderr == ""
    graph = json.loads(made.stdout)
    held = {one["_gvid"]: one for one in graph["objects"] if "cluster" not in one["name"]}
    nodes = {one["name"]: unquoted(one["label"]) for one in held.values()}
    edges = {
        (held[one["tail"]]["name"], held[one["head"]]["name"], unquoted(one.get("label", "")))
        for one in graph["edges"]
    }
    return Drawn(nodes, edges)


@pytest.mark.parametrize(
    "name", ["nvcc-4.2__seed", "hipcc-7.0.2__rdc-link-sources", "nvcc-13.0.88__make-log"]
)
def test_both_languages_say_the_same(name: str) -> None:
    log = corpus.log(name)
    drawn = from_mermaid(stage_graphs.mermaid(log))
    assert from_dot(stage_graphs.dot(log)) == drawn
    ends = {edge[:2] for edge in drawn.edges}
    assert {pair for pair in ends if "f" not in pair[0] + pair[1]} == expected(log)
    assert {name for pair in ends for name in pair} <= set(drawn.nodes)


@pytest.mark.parametrize("evil", EVIL)
def test_no_name_ends_a_label(evil: str) -> None:
    one = plan(
        stage(0, "cicc", "", "", inputs=(evil,), outputs=("t/" + evil,), arch=evil),
        stage(1, "ptxas", "", "out", inputs=("t/" + evil,)),
        edges=((0, 1),),
        version=evil,
    )
    log = Log(plans=(one,))
    drawn = from_mermaid(stage_graphs.mermaid(log))
    assert from_dot(stage_graphs.dot(log)) == drawn
    shown = evil.replace("\n", "\\n")
    assert drawn.nodes["p0f0"] == shown
    assert drawn.nodes["p0s0"] == f"1 to PTX\ngcc\n{shown}"
    name = shown if "\n" in evil else shown.rpartition("\\")[2]
    assert ("p0s0", "p0s1", name) in drawn.edges


@pytest.mark.process
@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graphviz_understands_what_is_meant() -> None:
    strange = plan(
        *(stage(place, "other", "", "", inputs=(name,)) for place, name in enumerate(EVIL))
    )
    for log in (
        Log(plans=(strange,)),
        corpus.log("nvcc-13.0.88__rdc-link-many"),
        corpus.log("nvcc-4.2__seed"),
    ):
        text = stage_graphs.dot(log)
        assert from_graphviz(text) == from_dot(text)
