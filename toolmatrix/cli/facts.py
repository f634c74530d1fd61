"""`toolmatrix facts`: what the matrix rests on, as a whole or one fact in full."""

from __future__ import annotations

from toolmatrix.cli import clock
from toolmatrix.errors import NothingMatched
from toolmatrix.report import fact_pages as report
from toolmatrix.report.fact_pages import Pages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Print facts; exit 1 only when `--stale` was asked and something is."""
    pages = Pages(context.index())
    source, stale = context.options.source, context.options.stale
    if source and source not in pages.sources:
        raise NothingMatched(
            f"no source is called `{source}`",
            expected=_nearest(source, pages.sources),
            found=f"`{source}`",
            help="`toolmatrix facts` lists the sources",
        )
    if stale is not None:
        return _stale(context, pages, stale)
    if context.arguments:
        _named(context, pages)
    elif source:
        _listed(context, pages, source)
    else:
        _summary(context, pages)
    return 0


def _summary(context: Context, pages: Pages) -> None:
    document = pages.list_document(list(pages.facts()), listed=False)
    if context.options.format == "json":
        context.write_json(document)
        return
    context.write(report.summary_text(document))
    context.say_after(
        "hint: `toolmatrix facts ID` shows one; an id is a row, `ROW#column`, a table or `cuda==VERSION`"
    )


def _listed(context: Context, pages: Pages, source: str) -> None:
    records = [record for record in pages.facts() if record.source == source]
    document = pages.list_document(records, source=source)
    if context.options.format == "json":
        context.write_json(document)
        return
    part = pages.sources[source]
    context.write(f"{source}: {part.title}\n{part.at}, read {part.read}\n\n")
    context.write(report.list_text(document["facts"], context.terminal))


def _named(context: Context, pages: Pages) -> None:
    """Each id in full; with --source only what that source says."""
    texts: list[str] = []
    entries: list[dict[str, Any]] = []
    for name in context.arguments:
        for text, found in _pages(context, pages, name):
            texts.append(text)
            entries += found
    if context.options.format == "json":
        context.write_json(pages.document(entries))
    else:
        context.write("\n".join(texts))


def _pages(context: Context, pages: Pages, name: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The fact, table or component that an id names, as text and as entries."""
    screen = context.terminal
    source = context.options.source
    plain = name.replace("_", "-")
    wanted = next((one for one in (name, plain) if one in pages.ids), None)
    if wanted is not None:
        entries = _from(source, [pages.entry(wanted)], name)
        return [(report.entry_text(entry, screen), [entry]) for entry in entries]
    tables = pages.tables()
    if name in tables:
        entries = _from(source, [pages.entry(row) for row in tables[name]], name)
        return [(report.table_text(name, entries, screen), entries)]
    if plain in pages.index.header["components"]:
        entries = pages.about(plain, source)
        text = report.component_text(pages.index, plain, entries, screen)
        return [(text, _from(source, entries, name) if source else entries)]
    raise NothingMatched(
        f"no fact has the id `{name}`",
        expected=_near(name, pages),
        found=f"`{name}`",
        help="`toolmatrix facts COMPONENT` and `toolmatrix facts TABLE` list ids",
    )


def _from(source: str, entries: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    held = [entry for entry in entries if source in ("", entry["source"]["name"])]
    if not held:
        raise NothingMatched(f"`{name}` is not what `{source}` says", found=f"`{name}`")
    return held


def _stale(context: Context, pages: Pages, limit: int) -> int:
    """Facts whose source was read more than `limit` days ago."""
    today = clock.today(context.env).isoformat()
    wanted = {name for name, part in pages.sources.items() if report.age(part.read, today) > limit}
    if context.options.source:
        wanted &= {context.options.source}
    records = [record for record in pages.facts() if record.source in wanted]
    document = pages.list_document(records, stale=limit, today=today)
    if context.options.format == "json":
        context.write_json(document)
    else:
        context.write(report.stale_text(document, ids=bool(context.options.verbose)))
    return 1 if records else 0


def _near(name: str, pages: Pages) -> str:
    """The nearest ids: within the row or table that was named, else among tables and components."""
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
    others = [one for one in pages.ids if "#" not in one and "/" not in one and "==" not in one]
    components = pages.index.header["components"]
    return _nearest(table if "/" in name else name, [*pages.tables(), *components, *others])


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, list(known), 3, 0.5)
    return "perhaps " + ", ".join(f"`{word}`" for word in near) if near else "a known id"
