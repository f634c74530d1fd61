"""`toolmatrix facts`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from toolmatrix.api import Matrix, Report, this_day
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import STALE
from toolmatrix.errors import NothingMatched
from toolmatrix.report import fact_pages as report
from toolmatrix.report.fact_pages import FactEntry, Pages
from toolmatrix.report.terminal import Terminal

Page = tuple[Callable[[Terminal], str], list[FactEntry]]
"""The words of a fact, a table or a component, and its entries."""


@command(
    group="Explore the matrix",
    order=6,
    usage="[ID...]",
    completer="fact",
    formats=PRINTED,
    does="reading facts",
    examples=(
        "toolmatrix facts",
        "toolmatrix facts --source tensorflow-docs",
        "toolmatrix facts --stale 180",
    ),
)
def facts(
    *ids: str,
    source: str = option("--source", help="Show only facts from this source"),
    stale: int | None = STALE,
    matrix: Matrix = None,
) -> Report:
    """Show one fact in full, or list facts.

    Shown are the facts of some ids, of a source, or those read more than `stale` days ago; else a summary of all. An id
    is a row, `ROW#column`, a table, a component or `cuda==VERSION`. Raises NothingMatched.
    """
    pages = Pages(open_matrix(matrix).index)
    if source and source not in pages.sources:
        raise NothingMatched(
            f"unknown source `{source}`",
            expected=_nearest(source, pages.sources),
            found=f"`{source}`",
            help="`toolmatrix facts` lists the sources",
        )
    if stale is not None:
        return _stale(pages, source, stale, this_day(caller().env).isoformat())
    if ids:
        # With a source, only its facts.
        several = [page for name in ids for page in _pages(pages, name, source)]
        return Report(
            words=lambda screen: "\n".join(text(screen) for text, _ in several),
            document=partial(
                pages.document, [entry for _, entries in several for entry in entries]
            ),
        )
    return _of_source(pages, source) if source else _summary(pages)


def _summary(pages: Pages) -> Report:
    document = pages.list_document(list(pages.facts()), one_by_one=False)
    return Report(
        words=lambda _: report.summary_text(document),
        document=lambda: document,
        hint="`toolmatrix facts ID` shows one; an id is a row, `ROW#column`, a table or `cuda==VERSION`",
    )


def _of_source(pages: Pages, source: str) -> Report:
    records = [record for record in pages.facts() if record.source == source]
    document = pages.list_document(records)
    document["source"] = source
    entry = pages.sources[source]
    head = f"{source}: {entry.title}\n{entry.at}, read {entry.read}\n\n"
    return Report(
        words=lambda screen: head + report.list_text(document["facts"], screen),
        document=lambda: document,
    )


def _stale(pages: Pages, source: str, limit: int, today: str) -> Report:
    wanted = {
        name for name, entry in pages.sources.items() if report.age(entry.read, today) > limit
    }
    if source:
        wanted &= {source}
    records = [record for record in pages.facts() if record.source in wanted]
    document = pages.list_document(records)
    document["stale"], document["today"] = limit, today
    ids = caller().verbose
    return Report(
        words=lambda _: report.stale_text(document, ids=ids),
        document=lambda: document,
        exit_code=int(bool(records)),
    )


def _pages(pages: Pages, name: str, source: str) -> Iterator[Page]:
    # The matrix writes names with `-`, an import with `_`.
    plain = name.replace("_", "-")
    wanted = next((candidate for candidate in (name, plain) if candidate in pages.ids), None)
    if wanted is not None:
        for entry in _from(source, [pages.entry(wanted)], name):
            yield partial(report.entry_text, entry), [entry]
    elif name in (tables := pages.tables()):
        entries = _from(source, [pages.entry(row) for row in tables[name]], name)
        yield partial(report.table_text, name, entries), entries
    elif plain in pages.index.header["components"]:
        entries = pages.about(plain, source)
        from_source = _from(source, entries, name) if source else entries
        yield partial(report.component_text, pages.index, plain, entries), from_source
    else:
        raise NothingMatched(
            f"no fact has the id `{name}`",
            expected=_near(name, pages),
            found=f"`{name}`",
            help="`toolmatrix facts COMPONENT` and `toolmatrix facts TABLE` list ids",
        )


def _from(source: str, entries: list[FactEntry], name: str) -> list[FactEntry]:
    matching = [entry for entry in entries if source in ("", entry["source"]["name"])]
    if not matching:
        raise NothingMatched(f"`{name}` does not come from `{source}`", found=f"`{name}`")
    return matching


def _near(name: str, pages: Pages) -> str:
    """The nearest ids: within the row or table that was named, else among tables and components."""
    # Search near what was named first: an id of another table may be closer by its letters.
    row = name.partition("#")[0]
    table = name.partition("/")[0]
    if row in pages.ids and "#" in name:
        return _nearest(name, pages.claims_of(row))
    component, equals, _ = name.partition("==")
    if equals and component in pages.index.header["components"]:
        versions = pages.index.component(component).versions
        return _nearest(name, [f"{component}=={version}" for version in versions])
    rows = pages.tables().get(table)
    if rows is not None:
        return _nearest(name, rows)
    others = [
        fact_id
        for fact_id in pages.ids
        if "#" not in fact_id and "/" not in fact_id and "==" not in fact_id
    ]
    components = pages.index.header["components"]
    return _nearest(table if "/" in name else name, [*pages.tables(), *components, *others])


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, list(known), 3, 0.5)
    return "perhaps " + ", ".join(f"`{match}`" for match in near) if near else "a known id"
