"""Plans as graphs: the DOT language of Graphviz, and Mermaid. Nodes are stages, and files from outside or for it.

The stage with the id 3 of plan 0 is the node `p0s3`, whatever it is called; labels are escaped for their language.
"""

from __future__ import annotations

from toolmatrix.report.stage_table import FileNames, products, tool
from toolmatrix.report.stage_words import BOTH, DEVICE, HOST, prose_of
from toolmatrix.report.stages import title
from toolmatrix.report.terminal import printable
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.stages.model import Log, Plan

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
    writes = {stage.id: stage.outputs for stage in plan.stages}
    written = {path for stage in plan.stages for path in stage.outputs}
    outside = dict.fromkeys(
        path for stage in plan.stages for path in stage.inputs if path not in written
    )
    reads = {stage.id: frozenset(stage.inputs) for stage in plan.stages}
    files = {path: f"{id}f{place}" for place, path in enumerate([*outside, *products(plan)])}
    nodes = [
        Node(
            id=f"{id}s{stage.id}",
            lines=tuple(
                printable(line)
                for line in (f"{stage.id + 1} {prose.name}", tool(stage), stage.arch)
                if line
            ),
            sort=prose.side,
        )
        for stage in plan.stages
        for prose in (prose_of(plan, stage),)
    ]
    nodes += [Node(id=name, lines=(names.of(path),), sort=FILE) for path, name in files.items()]
    edges = [
        Edge(
            start=f"{id}s{before}",
            end=f"{id}s{after}",
            label=_label([names.of(path) for path in writes[before] if path in reads[after]]),
        )
        for before, after in plan.edges
    ]
    for stage in plan.stages:
        edges += [
            Edge(start=files[path], end=f"{id}s{stage.id}")
            for path in dict.fromkeys(stage.inputs)
            if path in outside
        ]
        edges += [
            Edge(start=f"{id}s{stage.id}", end=files[path])
            for path in dict.fromkeys(stage.outputs)
            if path in files and path not in outside
        ]
    return Graph(id=id, title=printable(title(plan)), nodes=tuple(nodes), edges=tuple(edges))


def _label(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    more = len(names) - _MOST_FILES
    return "\n".join([*names[:_MOST_FILES], *([f"and {more} more"] if more > 0 else [])])


def dot(log: Log) -> str:
    """The plans in the DOT language."""
    return "\n".join(_dot(log)) + "\n"


def _dot(log: Log) -> Iterator[str]:
    yield "digraph stages {"
    yield "  rankdir=TB;"
    yield '  node [shape=box, style=filled, fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif", fontsize=10];'
    for place, plan in enumerate(log.plans):
        graph = _graph(f"p{place}", plan)
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
    r"""A string of the DOT language, in which a backslash begins an escape such as `\N`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def mermaid(log: Log) -> str:
    """The plans as a Mermaid flowchart."""
    return "\n".join(_mermaid(log)) + "\n"


def _mermaid(log: Log) -> Iterator[str]:
    yield "flowchart TB"
    for place, plan in enumerate(log.plans):
        graph = _graph(f"p{place}", plan)
        yield f'  subgraph {graph.id}["{_entities(graph.title)}"]'
        for node in graph.nodes:
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
