"""`toolmatrix search`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from toolmatrix.api import Matrix, Report
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import COMMANDS, PRINTED, all_options, command, every_format, meanings
from toolmatrix.command.option import option
from toolmatrix.documents import Annotated, Any, MatrixHead, Ordinal, TypedDict
from toolmatrix.errors import NothingMatched, ToolmatrixError
from toolmatrix.factbase.index import Index
from toolmatrix.report import answer, terminal
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.names import Names, check_length
from toolmatrix.value import Document

MOST = 20
"""So many hits fit on a screen."""


@command(
    group="Explore the matrix",
    order=2,
    usage="TEXT...",
    formats=PRINTED,
    examples=("toolmatrix search cudnn", "toolmatrix search 4090 --limit 3"),
)
def search(
    text: str,
    *,
    limit: int = option("--limit", default=MOST, help="Maximum number of results; 0 for all"),
    matrix: Matrix = None,
) -> Report:
    """Search components, devices and commands.

    A text may mean components, releases, devices and other names, sources, and parts of this program. Raises
    NothingMatched.
    """
    index = open_matrix(matrix).index
    matches = _find_matches(index, text, _program_entries())
    if not matches:
        raise NothingMatched(
            "nothing found",
            found=f"`{text}`",
            help="`toolmatrix list` shows the components",
        )
    document = _document(index, text, matches, limit)
    return Report(words=partial(_text, document), document=lambda: document)


def _program_entries() -> Iterator[Hit]:
    """Commands, options, formats, codes and topics of this program."""
    from toolmatrix.cli import topics
    from toolmatrix.rendering import formats
    from toolmatrix.report.rules import load_rules

    commands = COMMANDS.values()
    for subcommand in commands:
        name = subcommand.name
        yield _entry("command", name, subcommand.summary, ("help", name))
    for known in all_options().values():
        for text, takers in meanings(known).items():
            for flag in (known.flags[-1], *known.shorthand):
                yield _entry("option", flag, text, ("help", takers[0]))
    for name, topic in topics.load().items():
        yield _entry("topic", name, topic.title, ("help", name))
    rendered = formats.known()
    for name in every_format():
        takers = [taker.name for taker in commands if name in taker.formats]
        says = [*([rendered[name].SUMMARY] if name in rendered else []), *takers]
        yield _entry("format", name, ", ".join(says), ("help", "formats"))
    for code, page in load_rules().items():
        yield _entry("code", code, page.name, ("rule", code))


SCHEMA = "toolmatrix.search/1"
MATCHES = ("exact", "prefix", "word", "inside", "says", "like")
"""How a name matches, best first: is the text, begins with it, a word of it does, has it inside, says it, is like."""
_LIKE = 0.75


class Hit(Document):
    """One thing that the text may mean."""

    match: Annotated[str, MATCHES] = ""
    kind: str
    """such as component, device, source, command or option"""
    name: str
    names: tuple[str, ...] = ()
    says: str
    command: str


class SearchDocument(TypedDict):
    """What `toolmatrix search --json` prints: what a text may mean, and the command to type next."""

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    text: str
    found: Ordinal
    """how many there are, of which `hits` has as many as were asked for"""
    hits: list[Annotated[dict[str, Any], Hit]]


def _entries(index: Index) -> Iterator[Hit]:
    """Everything in a matrix that has a name: components, named releases, products, sources."""
    header = index.header
    others: dict[str, list[str]] = {}
    for name, component in (*header["aliases"].items(), *header["packages"].items()):
        others.setdefault(component, []).append(name)
    named = [name for name, head in header["components"].items() if not head["variant_of"]]
    for name in named:
        count = terminal.plural(len(index.component(name).versions), "release")
        title = header["components"][name]["title"]
        called = (title, *others.get(name, ()))
        says = f"{title}, {count}"
        yield _entry("component", name, says, ("show", name), called)
    for term in index.terms():
        says = ", ".join(filter(None, (term.says, term.of and f"of {term.of}"))) or term.kind
        yield _entry(term.kind, term.name, says, ("show", term.name.lstrip("-")), term.also)
    for product in index.products():
        command = ("plan", "--device", product.name)
        yield _entry("device", product.name, f"device {product.device}", command)
    for name in named:
        if header["components"][name]["scheme"] == "names":
            yield from _named(index, name)
    for name, source in index.sources().items():
        command = ("facts", "--source", name)
        yield _entry("source", name, f"{source.title}, read {source.read}", command)


def _named(index: Index, component: str) -> Iterator[Hit]:
    facts = index.component(component)
    title = index.header["components"][component]["title"]
    for version, number in zip(facts.versions, facts.releases, strict=True):
        # Such as the codename of a distribution.
        attributes = index.release(number).attributes
        says = ", ".join(f"{name} {value}" for name, value in attributes.items()) or title
        command = ("show", f"{component}=={version}")
        yield _entry(component, version, says, command, tuple(attributes.values()))


def _entry(
    kind: str, name: str, says: str, command: Sequence[str], names: Sequence[str] = ()
) -> Hit:
    line = shlex.join(("toolmatrix", *command))
    return Hit(kind=kind, name=name, says=says, command=line, names=tuple(names))


def _find_matches(index: Index, text: str, more: Iterable[Hit] = ()) -> list[Hit]:
    """What a text may mean, with how it matches, best first; `more` are entries besides those of the matrix."""
    check_length(text)
    wanted = _plain(text)
    if not wanted:
        return []
    # `rtx 4090` matches at a word of `GeForce RTX 4090`.
    pattern = re.compile(r"(?<![^\W_])" + r"[\W_]*".join(wanted))
    known = [*_named_releases(index, text), *_entries(index), *more]
    ranked: dict[str, list[Hit]] = {match: [] for match in MATCHES}
    for entry in known:
        match = _match(wanted, pattern, text, entry)
        if match:
            ranked[match].append(entry)
    if not any(ranked.values()):
        import difflib

        by_name = {
            _plain(name): entry for entry in known[::-1] for name in (entry.name, *entry.names)
        }
        near = difflib.get_close_matches(wanted, by_name, 5, _LIKE)
        ranked["like"] = list(dict.fromkeys(by_name[name] for name in near))
    return [entry.replace(match=match) for match, entries in ranked.items() for entry in entries]


def _named_releases(index: Index, text: str) -> Iterator[Hit]:
    """The releases that a text names, where it is a request such as `torch==2.6`."""
    names = Names(index)
    try:
        asks = names.asks(text)
    except ToolmatrixError:
        return
    # The second of two is the build that the same text names.
    ask = asks[-1]
    if ask.selector != "*" and not index.header["components"][ask.component]["given"]:
        count = names.scale(ask.component).select(ask.selector).bit_count()
        kind = "build" if len(asks) > 1 else "release"
        title = index.header["components"][asks[0].component]["title"]
        yield _entry(kind, text, f"{terminal.plural(count, kind)} of {title}", ("show", text))


def _match(wanted: str, pattern: re.Pattern[str], text: str, entry: Hit) -> str:
    names = (entry.name, *entry.names)
    plain = [_plain(name) for name in names]
    if wanted in plain:
        return "exact"
    if any(name.startswith(wanted) for name in plain):
        return "prefix"
    if any(wanted in name for name in plain):
        return "word" if any(pattern.search(name.lower()) for name in names) else "inside"
    haystack = f"{' '.join(names)} {entry.says}".lower()
    return "says" if all(term in haystack for term in text.lower().split()) else ""


def _plain(text: str) -> str:
    # People write blanks and punctuation in names in many ways.
    return re.sub(r"[\W_]+", "", text.lower())


def _document(index: Index, text: str, matches: Sequence[Hit], most: int) -> SearchDocument:
    """The hits as JSON values, at most so many (0: all), and how many there are."""
    visible = matches[:most] if most else matches
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "text": text,
        "found": len(matches),
        "hits": [hit.to_json() for hit in visible],
    }


def _text(document: SearchDocument, screen: Terminal) -> str:
    """The hits for people: name and kind, what it is, and below it the command to type next."""
    hits = document["hits"]
    width = terminal.common_width((hit["name"] for hit in hits), 28)
    kinds = max(len(hit["kind"]) for hit in hits)
    left = max(20, screen.width - width - kinds - 4)
    lines = []
    for hit in hits:
        name = terminal.pad(screen.style(hit["name"], "bold"), width)
        lines.append(f"{name}  {hit['kind']:{kinds}}  {terminal.cut(hit['says'], left)}".rstrip())
        lines.append(f"  {hit['command']}")
    if rest := document["found"] - len(hits):
        lines.append(f"{rest} more (--limit 0)")
    return "\n".join(lines) + "\n"
