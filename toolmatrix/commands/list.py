"""`toolmatrix list`; in Python it is `toolmatrix.components`."""

from __future__ import annotations

from toolmatrix.api import Report
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL
from toolmatrix.documents import Annotated, Count, MatrixHead, TypedDict
from toolmatrix.report import answer, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix.api import Matrix
    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import ComponentHead
    from toolmatrix.report.terminal import Terminal


@command(
    group="Explore the matrix",
    order=1,
    formats=PRINTED,
    examples=("toolmatrix list", "toolmatrix list --all --json"),
)
def components(*, everything: bool = ALL, at: str = "", matrix: Matrix = None) -> Report:
    """List the components.

    They are listed by group; with `everything` those that answers hide as well.
    """
    document = _document(open_matrix(matrix).index, everything=everything, at=at)
    return Report(
        words=lambda screen: terminal.blocks(_lines(document, screen)),
        document=lambda: document,
        hint="`toolmatrix show NAME` shows one; `toolmatrix search TEXT` finds more",
    )


SCHEMA = "toolmatrix.components/1"
_FRAMEWORKS, _GPU = "frameworks", "for GPUs: toolkits, libraries, and packages on top of frameworks"
_ANY, _WHERE = "packages, compilers and tools", "platforms and devices"
# Minimum columns for a title.
_TITLE = 16


class ComponentEntry(TypedDict):
    """A component as lists have it."""

    component: str
    title: str
    aliases: list[str]
    """other names that are understood"""
    newest: str | None
    """null where releases are names"""
    date: str | None
    releases: Count
    builds: Count


class ComponentsGroup(TypedDict):
    """Components that are alike, under their title."""

    group: str
    components: list[ComponentEntry]


class ComponentsDocument(TypedDict):
    """What `toolmatrix list --json` prints: the components by group, each with its newest release and how many are
    known.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    groups: list[ComponentsGroup]


def _document(index: Index, *, everything: bool = False, at: str = "") -> ComponentsDocument:
    """Every component by group; hidden ones only with `everything`, builds never."""
    heads = index.header["components"]
    names: dict[str, list[str]] = {}
    for name, component in index.header["aliases"].items():
        names.setdefault(component, []).append(name)
    groups: dict[str, list[ComponentEntry]] = {_FRAMEWORKS: [], _GPU: []}
    for name, head in heads.items():
        if not head["variant_of"] and (everything or not head["hidden"]):
            entry = _entry(index, name, names.get(name, []), at)
            groups.setdefault(_group(head, heads), []).append(entry)
    order = sorted(groups, key=lambda group: (group == _WHERE, group == _ANY))
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "groups": [
            {"group": group, "components": groups[group]} for group in order if groups[group]
        ],
    }


def _group(head: ComponentHead, heads: Mapping[str, ComponentHead]) -> str:
    # A minimum version is one of the host.
    if head["scheme"] == "names" or head["floor"]:
        return _WHERE
    if head["framework"]:
        return _FRAMEWORKS
    if head["under"]:
        return f"parts of {heads[head['under']]['title']}"
    return _GPU if head["accelerators"] else _ANY


def _entry(index: Index, name: str, aliases: list[str], at: str) -> ComponentEntry:
    head, facts = index.header["components"][name], index.component(name)
    positions = [position for position, day in enumerate(facts.dates) if not (at and day > at)]
    usable = [
        position for position in positions if not facts.yanked >> position + 1 & 1
    ] or positions
    # Names have no newest release.
    newest = usable[-1] if usable and head["scheme"] != "names" else None
    builds = index.builds_of(name)
    return {
        "component": name,
        "title": head["title"],
        "aliases": aliases,
        "newest": None if newest is None else facts.versions[newest],
        "date": (newest is not None and facts.dates[newest]) or None,
        "releases": len(positions),
        "builds": len(index.component(builds).versions) if builds else 0,
    }


def _lines(document: ComponentsDocument, screen: Terminal) -> Iterator[list[str]]:
    """The components as lines under the title of their group."""
    entries = [entry for group in document["groups"] for entry in group["components"]]
    width = max((len(entry["component"]) for entry in entries), default=0)
    wide = max((len(entry["newest"] or "") for entry in entries), default=0)
    left = max(_TITLE, screen.width - width - wide - 13)
    for group in document["groups"]:
        lines = [screen.style(group["group"], "bold")]
        for entry in group["components"]:
            builds = f"+{entry['builds']}" if entry["builds"] else ""
            head = f"{entry['component']:{width}}  {entry['newest'] or '':{wide}}"
            title = entry["title"] if entry["title"] != entry["component"] else ""
            line = f"{head}  {entry['releases']:>3} {builds:5}  {terminal.cut(title, left)}"
            lines.append(line.rstrip())
        yield lines
    count = terminal.plural(len(entries), "component")
    yield [f"{count}; each with its newest release, number of releases, and + number of builds"]
