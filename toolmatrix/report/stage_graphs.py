"""Plans as graphs: the DOT language of Graphviz, and Mermaid. Nodes are stages, and files from outside or for it.

The stage with the id 3 of plan 0 is the node `p0s3`, whatever it is called; labels are escaped for their language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolmatrix.compilation.model import Log, Plan, Stage
from toolmatrix.report.stages import BOTH, DEVICE, HOST, FileNames, products, prose_of, title, tool
from toolmatrix.report.terminal import printable
from toolmatrix.value import Value

_FILLS = {HOST: "#e8eef7", DEVICE: "#e6f2e4", BOTH: "#f5efdd"}
FILE = "file"
_NOTE = "shape=note, fillcolor=white"
# So many files are named on one edge.
_MOST_FILES = 3


class Node(Value):
    """A stage, or a file: `sort` is a side, or `file`."""

    id: str
    lines: tuple[str, ...]
    sort: str


class Edge(Value):
    """One node hands something to another; `label` are the files, empty where one of the nodes is the file."""

    start: str
    end: str
    label: str = ""


class Graph(Value):
    """One plan as nodes and edges."""

    id: str
    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def _graph(id: str, plan: Plan) -> Graph:
    names = FileNames(plan)
    written = {path for stage in plan.stages for path in stage.outputs}
    read = dict.fromkeys(path for stage in plan.stages for path in stage.inputs)
    outside = [path for path in read if path not in written]
    files = {path: f"{id}f{index}" for index, path in enumerate([*outside, *products(plan)])}
    nodes = [_node(f"{id}s{stage.id}", plan, stage) for stage in plan.stages]
    nodes += [Node(id=name, lines=(names.of(path),), sort=FILE) for path, name in files.items()]
    # Files that stages hand on are labels of edges: as nodes they would double the graph.
    edges = [
        Edge(
            start=f"{id}s{before}",
            end=f"{id}s{after}",
            label=_label(plan.stages[before], plan.stages[after], names),
        )
        for before, after in plan.edges
    ]
    for stage in plan.stages:
        edges += _file_edges(f"{id}s{stage.id}", stage, files)
    return Graph(id=id, title=printable(title(plan)), nodes=tuple(nodes), edges=tuple(edges))


def _node(id: str, plan: Plan, stage: Stage) -> Node:
    prose = prose_of(plan, stage)
    lines = (f"{stage.id + 1} {prose.name}", tool(stage), stage.arch or "")
    return Node(id=id, lines=tuple(printable(line) for line in lines if line), sort=prose.side)


def _file_edges(node: str, stage: Stage, files: Mapping[str, str]) -> Iterator[Edge]:
    # A command may name a file twice.
    for path in dict.fromkeys(stage.inputs):
        if path in files:
            yield Edge(start=files[path], end=node)
    for path in dict.fromkeys(stage.outputs):
        if path in files:
            yield Edge(start=node, end=files[path])


def _label(before: Stage, after: Stage, names: FileNames) -> str:
    handed = [names.of(path) for path in before.outputs if path in after.inputs]
    files = list(dict.fromkeys(handed))
    more = len(files) - _MOST_FILES
    return "\n".join([*files[:_MOST_FILES], *([f"and {more} more"] if more > 0 else [])])


def dot(log: Log) -> str:
    """The plans in the DOT language."""
    return "\n".join(_dot(log)) + "\n"


def _dot(log: Log) -> Iterator[str]:
    yield "digraph stages {"
    yield "  rankdir=TB;"
    yield '  node [shape=box, style=filled, fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif", fontsize=10];'
    for index, plan in enumerate(log.plans):
        graph = _graph(f"p{index}", plan)
        yield f"  subgraph cluster_{graph.id} {{"
        yield f"    label={_quoted(graph.title)};"
        for node in graph.nodes:
            shape = f'fillcolor="{_FILLS[node.sort]}"' if node.sort in _FILLS else _NOTE
            yield f"    {node.id} [label={_quoted(chr(10).join(node.lines))}, {shape}];"
        for edge in graph.edges:
            label = f" [label={_quoted(edge.label)}]" if edge.label else ""
            yield f"    {edge.start} -> {edge.end}{label};"
        yield "  }"
    yield "}"


def _quoted(text: str) -> str:
    # In a string of DOT a backslash begins an escape, such as `\N` for the name of the node.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def mermaid(log: Log) -> str:
    """The plans as a Mermaid flowchart."""
    return "\n".join(_mermaid(log)) + "\n"


def _mermaid(log: Log) -> Iterator[str]:
    yield "flowchart TB"
    for index, plan in enumerate(log.plans):
        graph = _graph(f"p{index}", plan)
        yield f'  subgraph {graph.id}["{_entities(graph.title)}"]'
        for node in graph.nodes:
            # A label of Mermaid is one line, in which this tag is the only one not escaped.
            label = "<br/>".join(map(_entities, node.lines))
            body = f'(["{label}"])' if node.sort == FILE else f'["{label}"]:::{node.sort}'
            yield f"    {node.id}{body}"
        for edge in graph.edges:
            label = "<br/>".join(map(_entities, edge.label.split("\n")))
            yield f"    {edge.start} -->" + (f'|"{label}"| ' if label else " ") + edge.end
        yield "  end"
    for sort, fill in _FILLS.items():
        yield f"  classDef {sort} fill:{fill},stroke:#555"


# Mermaid writes entities as `#35;`, and takes some of these signs for markup even within quotes.
_ENTITIES = {ord(sign): f"#{ord(sign)};" for sign in '#"&<>`\\|[](){};*_~'}


def _entities(text: str) -> str:
    return text.translate(_ENTITIES)
