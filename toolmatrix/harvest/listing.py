"""Kind `listing`: builds by the names of the wheels on a release page, read from a stored listing.

Any text will do, such as a page, a table, or the answer of a release API: it is searched for names and addresses of
wheels. A listing is a file of a repository, read from a clone or on its own.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NoReturn
from urllib.parse import unquote

from toolmatrix.errors import HarvestRefused, Position, UsageError
from toolmatrix.factbase import pieces, versions
from toolmatrix.factbase.versions import Scale
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.harvest import reading, source_tree
from toolmatrix.harvest.families import Family, HarvestContext, plain_value
from toolmatrix.value import Value
from toolmatrix.wording import plural, some

LARGEST = 64 << 20
"""Bytes of one listing; the largest known has 1 MiB."""
_NEEDED = ("component", "listings", "channel", "file", "line", "columns", "cells")
_OPTIONAL = ("address", "install", "skip", "known", "sources", "extends", "accelerator", "by-name")
_MOST_NAMED = 5
# The fields of a file name, with a pattern for each.
_FIELDS = {
    "release": r"(?P<release>\d[0-9a-z.]*)",
    "python": r"(?P<python>cp3\d+)",
    # CPython up to 3.7 has an `m` here.
    "abitag": r"(?P<abitag>(?P=python)m?)",
    "machine": r"(?P<machine>x86_64|aarch64)",
    # Dots separate the tags of several platforms (PEP 425).
    "platform": r"(?:manylinux\w*\.)*(?:manylinux\w*|linux)_(?P<machine>x86_64|aarch64)",
}


class Listing(Value):
    """One listing: its source in facts, and its text."""

    source: str
    title: str
    at: str
    text: str


class _Page(Value):
    # The pattern of the file names of a family, and the cells that they fill.
    component: str
    channel: str
    title: str
    accelerator: str
    file: str
    # The address of a file, or the requirement that installs it from an index.
    address: str
    requirement: str
    line: str
    skip: Sequence[str]
    cells: Mapping[str, str]

    def install(self, tag: str) -> str:
        """The requirement that installs a build of the release with this tag, with its other fields left open."""
        address = self.address.replace("{tag}", tag).replace("{file}", self.file)
        return self.requirement or f"{self.component}@{address}"


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The builds of a component by the names of their files. Raises ToolmatrixError."""
    fields = family.only(_NEEDED, _OPTIONAL)
    page = _page(fields)
    listings = list(_listings(family, fields, context))
    builds = complete_builds(_builds(page, listings), pieces.items(fields, "known"))
    table = {
        "id": family.name,
        "about": family.about.splitlines()[0],
        "source": listings[0].source,
        "where": "names of files",
        "evidence": "artifact",
        "defines": "variants",
        "key": page.component,
        "install": page.install("v{release}"),
        **({"extends": True} if pieces.flag(fields, "extends") else {}),
        "columns": plain_value(fields["columns"]),
        "rows": table_rows(family.name, page.component, builds),
    }
    sources = {name: plain_value(node) for name, node in pieces.entries(fields, "sources").items()}
    read = {
        listing.source: {"title": listing.title, "at": listing.at, "read": f"{context.day}"}
        for listing in listings
    }
    return {
        "sources": {**sources, **read},
        # Another file declares a channel without a title.
        "channels": [_channel(page, listings[0].source, builds)] if page.title else [],
        "tables": [table],
    }


def _page(fields: Mapping[str, YamlNode]) -> _Page:
    channel = fields["channel"].only("a channel", ("id", "title"), ("id",))
    if ("address" in fields) == ("install" in fields):
        fields["file"].fail(
            "the family does not say how to install a build",
            expected="`address:` of a release page, or `install:` for an index",
            found="both" if "address" in fields else "neither",
        )
    return _Page(
        component=pieces.text(fields, "component"),
        channel=pieces.text(channel, "id"),
        title=pieces.text(channel, "title"),
        accelerator=pieces.text(fields, "accelerator", "cuda"),
        file=pieces.text(fields, "file"),
        address=pieces.text(fields, "address"),
        requirement=pieces.text(fields, "install"),
        line=reading.pattern(fields["line"]).pattern,
        skip=[reading.pattern(node).pattern for node in pieces.items(fields, "skip")],
        cells={
            name: node.string("a cell") for name, node in fields["cells"].mapping("cells").items()
        },
    )


def _listings(
    family: Family, fields: Mapping[str, YamlNode], context: HarvestContext
) -> Iterator[Listing]:
    if not context.place:
        raise UsageError(
            f"the family `{family.name}` is read from a stored listing",
            expected="`--from` a clone, a directory of clones, or a file",
            help=f"matrix/families.yaml names its repositories under `{family.name}`",
        )
    for node in fields["listings"].sequence("listings"):
        keys = ("source", "repository", "path", "title")
        entry = {
            name: field.string(name) for name, field in node.only("a listing", keys, keys).items()
        }
        path, commit = context.place, ""
        text = []
        if os.path.isdir(path):
            clone = os.path.join(path, entry["repository"].rpartition("/")[2])
            clone = clone if os.path.isdir(clone) else path
            tree = source_tree.open_tree(clone, context.env, LARGEST)
            head = tree.head()
            commit = head.commit
            names = [name for name in tree.paths(head) if fnmatchcase(name, entry["path"])]
            files = tree.read((head, name) for name in names)
            text = [_decoded(files[head, name].data, name) for name in names]
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                data = file.read(LARGEST + 1)
            text = [_decoded(data if len(data) <= LARGEST else None, path)]
        if not text:
            raise HarvestRefused(
                f"the listing of `{family.name}` is missing",
                where=Position(path),
                expected=f"{entry['path']} of {entry['repository']}",
                found="no such file",
            )
        at = f"{entry['repository']}:{entry['path']}" + (f"@{commit[:12]}" if commit else "")
        yield Listing(source=entry["source"], title=entry["title"], at=at, text="\n".join(text))


def _decoded(data: bytes | None, name: str) -> str:
    if data is None:
        raise HarvestRefused(
            "a listing cannot be read",
            where=Position(name),
            expected=f"a file of at most {LARGEST} bytes",
        )
    return data.decode("utf-8", "replace")


def _builds(page: _Page, listings: Sequence[Listing]) -> Iterator[Build]:
    name = _name_pattern(page)
    beginning = page.file.partition("{release}")[0]
    wheels = re.compile(
        rf"(?P<address>https?://[^\s\"'<>|)]*/)?(?P<file>{re.escape(beginning)}[^\s\"'<>|)(,/]*\.whl)"
    )
    tags: dict[tuple[str, str, str], dict[str, str]] = {}
    odd: dict[str, None] = {}
    fields: dict[tuple[str, str, str], dict[str, str]] = {}
    for listing in listings:
        for link in wheels.finditer(listing.text):
            # An address has `%2B` for the `+` of a local version.
            file = unquote(link["file"])
            match = name.fullmatch(file)
            if match is None:
                if not any(re.search(pattern, file) for pattern in page.skip):
                    odd[file] = None
                continue
            build = match["release"], match["line"], match["machine"]
            tag = f"v{match['release']}"
            if link["address"] and page.address:
                tag = _tag(page, listing, unquote(link[0]), file)
            fields[build] = {**match.groupdict(), "tag": tag}
            # The first listing of a build is its source.
            tags.setdefault(build, {}).setdefault(match["python"], listing.source)
    if odd or not tags:
        _refuse(page, listings, list(odd))
    for (release, line, machine), pythons in tags.items():
        cells: dict[str, Any] = {
            # Names have `cxx11abiTRUE`, the matrix has `true`.
            column: template.format_map(fields[release, line, machine]).lower()
            for column, template in page.cells.items()
        }
        cells["python"] = python_selector(pythons)
        tag = fields[release, line, machine]["tag"]
        if tag != f"v{release}":
            cells["install"] = page.install(tag)
        cells["source"] = [
            listing.source for listing in listings if listing.source in pythons.values()
        ][-1]
        yield Build(release=release, line=line, channel=page.channel, machine=machine, cells=cells)


def _name_pattern(page: _Page) -> re.Pattern[str]:
    fields = {**_FIELDS, "line": f"(?P<line>{page.line})"}
    segments = re.split(r"\{(\w+)\}", page.file)
    text = ""
    used = set()
    for index, segment in enumerate(segments):
        if index % 2 == 0:
            text += re.escape(segment)
        else:
            # A field that occurs twice has the same text both times.
            text += f"(?P={segment})" if segment in used else fields[segment]
            used.add(segment)
    return re.compile(text)


def _tag(page: _Page, listing: Listing, address: str, file: str) -> str:
    """The tag of the release page of a wheel."""
    start, _, end = page.address.replace("{file}", file).partition("{tag}")
    tag = address.removeprefix(start).removesuffix(end)
    if address != f"{start}{tag}{end}" or "/" in tag:
        raise HarvestRefused(
            f"a wheel of {page.component} has an unexpected address",
            where=Position(listing.at),
            expected=f"{start}TAG{end}",
            found=address,
        )
    return tag


def _refuse(page: _Page, listings: Sequence[Listing], odd: list[str]) -> NoReturn:
    raise HarvestRefused(
        f"{plural(len(odd), 'unexpected wheel file name')} for {page.component}"
        if odd
        else f"no wheel of {page.component} is listed",
        where=Position(listings[0].at),
        expected=f"names like `{page.file}`",
        found=some(odd, _MOST_NAMED) or "none",
        help="list files that are not builds of a release under `skip:` of the family",
    )


def _channel(page: _Page, source: str, builds: Sequence[Build]) -> dict[str, Any]:
    lines = sorted({build.line for build in builds}, key=line_order)
    return {
        "id": page.channel,
        "title": page.title,
        "kind": "releases",
        "source": source,
        "where": "names of files",
        "evidence": "artifact",
        "install": [],
        "lines": {page.accelerator: lines},
    }


class Build(Value):
    """One published build: what distinguishes it from others, and its cells by column."""

    release: str
    line: str
    channel: str
    machine: str
    cells: Mapping[str, Any]


def complete_builds(builds: Iterable[Build], nodes: Iterable[YamlNode]) -> list[Build]:
    """The builds with the cells under `known:` of a family, which override those of names; the first entry wins."""
    completed = list(builds)
    scale = Scale("pep440", order_releases(build.release for build in completed))
    known = [
        {name: plain_value(child) for name, child in node.mapping("cells of builds").items()}
        for node in nodes
    ]
    entries = [
        (scale.select(cells.pop("releases", "*")), cells.pop("lines", "*"), cells)
        for cells in reversed(known)
    ]
    for index, build in enumerate(completed):
        bit = scale.bit(build.release)
        cells = dict(build.cells)
        for mask, line, more in entries:
            if mask & bit and fnmatchcase(build.line, line):
                cells |= more
        # Users look first for what a build runs on, so rows show explicitly that it is unknown.
        cells.setdefault("archs", "unknown")
        completed[index] = build.replace(cells=cells)
    return completed


def order_releases(releases: Iterable[str]) -> list[str]:
    """Distinct releases, the oldest first."""
    return versions.sort("pep440", dict.fromkeys(releases, 0))


def table_rows(table: str, key: str, builds: Iterable[Build]) -> list[dict[str, Any]]:
    """The rows of a table of variants; releases whose builds for a line are equal share one."""
    alike: dict[tuple[str, ...], list[Build]] = {}
    for build in builds:
        # By `repr`, as a cell may be a mapping.
        name = build.line, build.channel, build.machine, repr(sorted(build.cells.items()))
        alike.setdefault(name, []).append(build)
    rows = []
    for group in alike.values():
        releases = order_releases(build.release for build in group)
        first = group[0]
        # Named after the oldest release, so that a row keeps its id when a later release joins it.
        identity = f"{table}/{releases[0]}+{first.line}@{first.channel}/{first.machine}"
        rows.append(
            {
                "id": identity,
                key: " ".join(releases),
                "line": first.line,
                "channel": first.channel,
                "machine": first.machine,
                **first.cells,
            }
        )
    return sorted(rows, key=lambda row: _row_order(row, key))


def _row_order(row: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    # The newest release first, as in tables written by hand.
    first = versions.key(row[key].split()[0])
    numbers = tuple(-number for number in first[0])
    return numbers, row[key], row["line"], row["machine"]


def python_selector(tags: Iterable[str]) -> str:
    """Python tags of wheels (`cp39`, `cp310`) as a selector: `3.9-3.10`, or a list if there are gaps."""
    minors = sorted({int(tag.removeprefix("cp3")) for tag in tags})
    if len(minors) > 1 and minors == [*range(minors[0], minors[-1] + 1)]:
        return f"3.{minors[0]}-3.{minors[-1]}"
    return " ".join(f"3.{minor}" for minor in minors)


def line_order(line: str) -> tuple[tuple[int, str], ...]:
    """A sort key of lines: CUDA 11.8 before 12 (`cu118`, `cu12`), torch 2.9 before 2.10."""
    # As a number 118 would follow 12, so the digits of `cu` are compared as text.
    parts = re.findall(r"(cu\d+|\D+)|(\d+)", line)
    return tuple((int(digits or -1), text) for text, digits in parts)
