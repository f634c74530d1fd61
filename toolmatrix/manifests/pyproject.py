"""`pyproject.toml`: dependencies by PEP 621 and PEP 735, sources of uv, and those of Poetry."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolmatrix import toml
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import (
    PIP,
    PYTHON,
    Asked,
    FileText,
    Item,
    NotRead,
    ProjectManifest,
    Traced,
    bounded,
    check_number,
    too_long,
)
from toolmatrix.manifests.requirements import PackageIndexes

_HEAD = re.compile(r"^[^\S\n]*(?:\[(?P<table>[^\]\n]*)\]|(?P<key>[\w.-]+)[^\S\n]*=)", re.MULTILINE)


class _Texts:
    """Where the strings of a file of TOML stand: its reader knows no places, so they are looked for in their order.

    All heads and all texts between two quotes are looked up once, as any of them may be asked for any number of times.
    """

    def __init__(self, source: FileText) -> None:
        self.source = source
        self.place = 0
        self.heads: dict[str, int] = {}
        for found in _HEAD.finditer(source.text):
            self.heads.setdefault(found["table"] or found["key"], found.start())
        self.quoted = [_between(source.text, quote) for quote in "\"'"]

    def section(self, header: str) -> None:
        """Look from the head of a table on, if it is there."""
        self.place = self.heads.get(header, self.place)

    def of(self, text: str) -> Traced:
        """The next place of a string; where it is not found as it is, the place of nothing."""
        for quoted in self.quoted:
            places = quoted.get(text, [])
            at = bisect_left(places, self.place)
            if at < len(places):
                return self.source.whole()[places[at] + 1 : places[at] + 1 + len(text)]
        return Traced(self.source, text, [min(self.place, len(self.source.text))] * len(text))


def _between(text: str, quote: str) -> dict[str, list[int]]:
    """The texts between two quotes that follow each other, with the places of the first."""
    found: dict[str, list[int]] = {}
    before, *parts = text.split(quote)
    place = len(before)
    for part in parts:
        found.setdefault(part, []).append(place)
        place += len(part) + 1
    # Behind the last quote stands none.
    if parts:
        found[parts[-1]].pop()
    return found


def read(source: FileText, files: Files) -> ProjectManifest:
    """The dependencies of a project: one environment, and one for each extra or group with what all need.

    Raises ManifestError.
    """
    body = toml.parse(source.text, source.path, ManifestError, "the file")
    reader = _Project(source, body)
    return ProjectManifest(
        kind="pyproject",
        environments=bounded(source.path, reader.environments()),
        unread=tuple(reader.unread),
        sources=(source, *files.opened),
    )


class _Project:
    def __init__(self, source: FileText, body: Mapping[str, Any]) -> None:
        self.texts = _Texts(source)
        self.body = body
        self.unread: list[NotRead] = []
        tool = _table(body, "tool")
        self.uv, self.poetry = _table(tool, "uv"), _table(tool, "poetry")
        sources = *_list(self.uv.get("index")), *_list(self.poetry.get("source"))
        self.indexes = {
            str(one.get("name")): str(one.get("url", ""))
            for one in sources
            if isinstance(one, dict) and "name" in one
        }
        self.usual = self.of_all(sources)
        self.sources = {
            requirements.plain(name): said for name, said in _table(self.uv, "sources").items()
        }
        # What all groups have of each other.
        self.taken = 0

    def of_all(self, sources: Iterable[object]) -> PackageIndexes:
        """The indexes that uv, or Poetry, looks in for every package."""
        found = PackageIndexes()
        for key, option in (("index-url", "--index-url"), ("extra-index-url", "--extra-index-url")):
            said = self.uv.get(key)
            for address in (said,) if isinstance(said, str) else _list(said):
                found = found.with_option(option, str(address))
        for one in sources:
            if not isinstance(one, dict) or one.get("priority") == "explicit":
                continue
            if not one.get("explicit"):
                option = "--index-url" if one.get("default") else "--extra-index-url"
                found = found.with_option(option, str(one.get("url", "")))
        return found

    def environments(self) -> Iterator[Asked]:
        base = [*self.python(), *self.project(), *self.of_poetry(self.poetry, "tool.poetry")]
        bounds = [*self.bounds("constraint-dependencies"), *self.bounds("override-dependencies")]
        if base:
            yield Asked(name="", items=(*base, *bounds))
        groups: dict[str, list[Item]] = {}
        for table in ("project.optional-dependencies", "dependency-groups"):
            held = self.body
            for part in table.split("."):
                held = _table(held, part)
            for name in held:
                self.texts.section(table)
                groups[str(name)] = [*self.group(held, str(name))]
        self.texts.section("dev-dependencies")
        groups.setdefault("dev", self.listed(self.uv.get("dev-dependencies"), "dev"))
        for name, group in _table(self.poetry, "group").items():
            table = f"tool.poetry.group.{name}"
            found = self.of_poetry(group if isinstance(group, dict) else {}, table)
            groups.setdefault(str(name), []).extend(found)
        for name, items in groups.items():
            if items:
                yield Asked(name=name, items=(*base, *items, *bounds))

    def group(self, groups: Mapping[str, Any], name: str) -> Iterator[Item]:
        """An extra, or a group with those that it includes, each once (PEP 735)."""
        seen = {name}
        left = [(name, iter(_list(groups.get(name))))]
        while left:
            inner, rest = left[-1]
            for one in rest:
                self.taken += 1
                check_number(self.texts.source.path, 0, self.taken)
                if isinstance(one, str):
                    yield from self.listed([one], inner)
                elif isinstance(one, dict) and (more := str(one.get("include-group"))) not in seen:
                    seen.add(more)
                    left.append((more, iter(_list(groups.get(more)))))
                    break
            else:
                left.pop()

    def bounds(self, key: str) -> Iterator[Item]:
        """What uv holds wherever something asks for it; an override instead of what others require."""
        self.texts.section(key)
        for item in self.listed(self.uv.get(key), ""):
            yield item.replace(bounds=True, overrides=key.startswith("override"))

    def python(self) -> Iterator[Item]:
        said = _table(self.body, "project").get("requires-python")
        if isinstance(said, str):
            self.texts.section("requires-python")
            yield self.item(PYTHON, "python", said, self.texts.of(said))

    def project(self) -> list[Item]:
        self.texts.section("dependencies")
        return self.listed(_table(self.body, "project").get("dependencies"), "")

    def listed(self, held: object, group: str) -> list[Item]:
        check_number(self.texts.source.path, len(_list(held)))
        texts = [self.texts.of(one) for one in _list(held) if isinstance(one, str)]
        found = requirements.several(texts, self.unread, self.usual)
        return [one for one in (self.sourced(item, group) for item in found) if one is not None]

    def sourced(self, item: Item, group: str) -> Item | None:
        """The item with the index that uv takes it from, in an extra or a group."""
        said = self.sources.get(requirements.plain(item.name))
        found = [
            one for one in (said if isinstance(said, list) else [said]) if isinstance(one, dict)
        ]
        found = [one for one in found if self.applies(one, group)]
        if not found:
            return item
        if len(found) == 1 and isinstance(found[0].get("url"), str):
            self.texts.section("tool.uv.sources")
            wheel = requirements.requirement(self.texts.of(found[0]["url"]), self.usual)
            if isinstance(wheel, Item):
                return wheel
        addresses = [self.indexes.get(str(one.get("index")), "") for one in found]
        if all(addresses):
            # One of several indexes, by markers that only its user decides: any of them may be the one.
            return item.replace(indexes=tuple(dict.fromkeys(addresses)), alone=len(found) == 1)
        self.unread.append(NotRead(text=item.text, why="a source that is not an index"))
        return None

    def applies(self, source: Mapping[str, Any], group: str) -> bool:
        """Whether a source of uv is one for Linux, and for an extra or a group if it names one."""
        marker = source.get("marker")
        if isinstance(marker, str) and requirements.marked(marker) is False:
            return False
        return str(source.get("extra", source.get("group", group))) == group

    def of_poetry(self, table: Mapping[str, Any], head: str) -> Iterator[Item]:
        self.texts.section(f"{head}.dependencies")
        for name, said in _table(table, "dependencies").items():
            version = said.get("version") if isinstance(said, dict) else said
            if not isinstance(version, str) or (
                isinstance(said, dict) and {"git", "path", "url"} & said.keys()
            ):
                continue
            text = self.texts.of(version)
            if (longer := too_long(text)) is not None:
                self.unread.append(longer)
            elif isinstance(said, dict) and said.get("optional"):
                # Extras of Poetry may exclude each other, and only their user says which are taken.
                self.unread.append(NotRead(text=text, why="it is optional"))
            elif name.lower() == "python":
                yield self.item(PYTHON, "python", caret(version), text)
            else:
                source = str(said.get("source", "")) if isinstance(said, dict) else ""
                yield self.item(PIP, name, caret(version), text).replace(
                    indexes=(self.indexes.get(source, source),) if source else self.usual.addresses,
                    alone=bool(source) or self.usual.alone,
                    extras=tuple(map(str, _list(said.get("extras"))))
                    if isinstance(said, dict)
                    else (),
                )

    def item(self, kind: str, name: str, specifier: str, text: Traced) -> Item:
        return Item(kind=kind, name=name, specifier=specifier, text=text, version=text)


def caret(version: str) -> str:
    """A constraint of Poetry as PEP 440 writes it: `^1.2` is all up to what may break (Dependency specification)."""
    return ",".join(_clause(part.strip()) for part in version.split(",") if part.strip()) or "*"


def _clause(part: str) -> str:
    sign, rest = part[:1], part[1:].strip()
    numbers = rest.split(".")
    if sign == "^" and all(number.isdecimal() for number in numbers):
        first = next((at for at, number in enumerate(numbers) if int(number)), len(numbers) - 1)
        top = [*numbers[:first], str(int(numbers[first]) + 1)]
        return f">={rest},<{'.'.join(top)}"
    if sign == "~" and not rest.startswith("="):
        top = numbers[:2] if len(numbers) > 1 else numbers[:1]
        if all(number.isdecimal() for number in top):
            return f">={rest},<{'.'.join([*top[:-1], str(int(top[-1]) + 1)])}"
    return part if sign in "<>=!~*" else f"=={part}"


def _table(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
