"""`pyproject.toml`: dependencies by PEP 621 and PEP 735, sources of uv, and those of Poetry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolmatrix import toml
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import names, requirements, setup_files
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import (
    PIP,
    PYTHON,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
    bounded,
    check_count,
    too_long,
)
from toolmatrix.manifests.requirements import PackageIndexes
from toolmatrix.manifests.toml_texts import TomlTexts, caret, table

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
"""The names of the locks of a project."""
# The oldest series of a specifier of Pythons.
_OLDEST = re.compile(r"(?:>=|==|~=)\s*(\d+\.\d+)")


def read(source: FileText, files: Files) -> ProjectManifest:
    """The dependencies of a project: one environment, and one for each extra or group with what all need.

    Raises ManifestError.
    """
    body = toml.parse(source.text, source.path, ManifestError, "the file")
    reader = _Project(source, files, body)
    environments = bounded(source.path, reader.environments())
    manifest = files.manifest("pyproject", source, environments, reader.unread)
    return manifest.replace(locked=any(map(files.has, LOCKS)))


class _Project:
    def __init__(self, source: FileText, files: Files, body: Mapping[str, Any]) -> None:
        self.texts = TomlTexts(source)
        self.files = files
        self.body = body
        self.unread: list[NotRead] = []
        tool = _table(body, "tool")
        self.uv, self.poetry = _table(tool, "uv"), _table(tool, "poetry")
        sources = *_list(self.uv.get("index")), *_list(self.poetry.get("source"))
        self.indexes = {
            str(source.get("name")): str(source.get("url", ""))
            for source in sources
            if isinstance(source, dict) and "name" in source
        }
        self.usual = self.of_all(sources)
        self.sources = {
            names.package_name(name): source for name, source in _table(self.uv, "sources").items()
        }
        # The packages of Poetry that are for some Pythons or platforms alone.
        self.conditional: set[str] = set()
        # What all groups have of each other.
        self.visited = 0

    def of_all(self, sources: Iterable[object]) -> PackageIndexes:
        """The indexes that uv, or Poetry, looks in for every package."""
        indexes = PackageIndexes()
        for key, option in (("index-url", "--index-url"), ("extra-index-url", "--extra-index-url")):
            addresses = self.uv.get(key)
            for address in (addresses,) if isinstance(addresses, str) else _list(addresses):
                indexes = indexes.with_option(option, str(address))
        for source in sources:
            if not isinstance(source, dict) or source.get("priority") == "explicit":
                continue
            if not source.get("explicit"):
                option = "--index-url" if source.get("default") else "--extra-index-url"
                indexes = indexes.with_option(option, str(source.get("url", "")))
        return indexes

    def environments(self) -> Iterator[ManifestEnvironment]:
        dynamic = self.dynamic()
        base = [*self.python(), *self.project(), *self.of_poetry(self.poetry, "tool.poetry")]
        base += dynamic.base
        bounds = [*self.bounds("constraint-dependencies"), *self.bounds("override-dependencies")]
        if base:
            yield ManifestEnvironment(name="", items=(*base, *bounds))
        if oldest := self.oldest(base):
            series = oldest.specifier.strip("=.*")
            locked = (
                oldest if item.kind == PYTHON else item
                for item in (*base, *bounds)
                if item.name not in self.conditional
            )
            yield ManifestEnvironment(name=f"python {series}", items=tuple(locked), locked=True)
        groups: dict[str, list[Item]] = {}
        for head in ("project.optional-dependencies", "dependency-groups"):
            section = self.body
            for key in head.split("."):
                section = _table(section, key)
            for name in section:
                self.texts.section(head)
                groups[str(name)] = [*self.group(section, str(name))]
        groups |= {name: items for name, items in dynamic.extras.items() if name not in groups}
        self.texts.section("dev-dependencies")
        groups.setdefault("dev", self.read_list(self.uv.get("dev-dependencies"), "dev"))
        for name, group in _table(self.poetry, "group").items():
            head = f"tool.poetry.group.{name}"
            grouped = self.of_poetry(group if isinstance(group, dict) else {}, head)
            groups.setdefault(str(name), []).extend(grouped)
        for name, items in groups.items():
            if items:
                yield ManifestEnvironment(name=name, items=(*base, *items, *bounds))

    def dynamic(self) -> setup_files.Requires:
        """What the project leaves to what builds it: files of requirements, or the older files of setuptools."""
        requires = setup_files.Requires(self.texts.source.path, self.files, self.unread)
        self.texts.section("dynamic")
        fields = map(str, _list(_table(self.body, "project").get("dynamic")))
        places = [self.texts.of(field) for field in fields if field.endswith("dependencies")]
        tool = _table(self.body, "tool")
        setuptools, hatch = _table(_table(tool, "setuptools"), "dynamic"), tool
        for key in ("hatch", "metadata", "hooks", "requirements_txt"):
            hatch = _table(hatch, key)
        lists = {"": setuptools.get("dependencies"), **_table(setuptools, "optional-dependencies")}
        lists |= {} if lists[""] else {"": {"file": hatch.get("files")}}
        for extra, entry in lists.items() if places else ():
            names = entry.get("file") if isinstance(entry, dict) else None
            for name in [names] if isinstance(names, str) else map(str, _list(names)):
                requires.read_file(name, self.texts.of(name), extra)
        if places and not requires.count and not setup_files.read_beside(requires):
            why = "what builds the project lists them"
            self.unread.append(NotRead(text=places[0], why=why))
        return requires

    def group(self, groups: Mapping[str, Any], name: str) -> Iterator[Item]:
        """An extra, or a group with those that it includes, each once (PEP 735)."""
        included = {name}
        left = [(name, iter(_list(groups.get(name))))]
        while left:
            inner, rest = left[-1]
            for entry in rest:
                self.visited += 1
                check_count(self.texts.source.path, 0, self.visited)
                if isinstance(entry, str):
                    yield from self.read_list([entry], inner)
                elif isinstance(entry, dict) and (
                    (more := str(entry.get("include-group"))) not in included
                ):
                    included.add(more)
                    left.append((more, iter(_list(groups.get(more)))))
                    break
            else:
                left.pop()

    def bounds(self, key: str) -> Iterator[Item]:
        """What uv holds wherever something asks for it; an override instead of what others require."""
        self.texts.section(key)
        for item in self.read_list(self.uv.get(key), ""):
            yield item.replace(bounds=True, overrides=key.startswith("override"))

    def python(self) -> Iterator[Item]:
        specifier = _table(self.body, "project").get("requires-python")
        if isinstance(specifier, str):
            self.texts.section("requires-python")
            yield self.item(PYTHON, "python", specifier, self.texts.of(specifier))

    def oldest(self, items: Iterable[Item]) -> Item | None:
        """The oldest Python of a project of uv or Poetry, which look for releases that go with all of its Pythons."""
        tool = _table(self.body, "tool")
        # Of some environments alone the Pythons are others.
        lockers = [
            name for name in ("uv", "poetry") if name in tool and "environments" not in self.uv
        ]
        for item in items if lockers else ():
            if item.kind == PYTHON and (match := _OLDEST.search(item.specifier)):
                words = f"python {match[1]} that {lockers[0]} locks for"
                text = Traced(item.text.source, words, [*item.text.at[:1]] * len(words))
                return item.replace(specifier=f"=={match[1]}.*", text=text)
        return None

    def project(self) -> list[Item]:
        self.texts.section("dependencies")
        return self.read_list(_table(self.body, "project").get("dependencies"), "")

    def read_list(self, entries: object, group: str) -> list[Item]:
        check_count(self.texts.source.path, len(_list(entries)))
        texts = [self.texts.of(entry) for entry in _list(entries) if isinstance(entry, str)]
        items = requirements.several(texts, self.unread, self.usual)
        sourced = (self.sourced(item, group) for item in items)
        return [item for item in sourced if item is not None]

    def sourced(self, item: Item, group: str) -> Item | None:
        """The item with the index that uv takes it from, in an extra or a group."""
        sources = self.sources.get(names.package_name(item.name))
        candidates = [
            source
            for source in (sources if isinstance(sources, list) else [sources])
            if isinstance(source, dict)
        ]
        candidates = [source for source in candidates if self.applies(source, group)]
        if not candidates:
            return item
        if len(candidates) == 1 and isinstance(candidates[0].get("url"), str):
            self.texts.section("tool.uv.sources")
            wheel = requirements.requirement(self.texts.of(candidates[0]["url"]), self.usual)
            if isinstance(wheel, Item):
                return wheel
        addresses = [self.indexes.get(str(source.get("index")), "") for source in candidates]
        if all(addresses):
            # One of several indexes, by markers that only its user decides: any of them may be the one.
            return item.replace(indexes=tuple(dict.fromkeys(addresses)), alone=len(candidates) == 1)
        self.unread.append(NotRead(text=item.text, why="its source is not an index"))
        return None

    def applies(self, source: Mapping[str, Any], group: str) -> bool:
        """Whether a source of uv is one for Linux, and for an extra or a group if it names one."""
        marker = source.get("marker")
        if isinstance(marker, str) and requirements.marked(marker) is False:
            return False
        return str(source.get("extra", source.get("group", group))) == group

    def of_poetry(self, section: Mapping[str, Any], head: str) -> Iterator[Item]:
        self.texts.section(f"{head}.dependencies")
        for name, entry in _table(section, "dependencies").items():
            fields = entry if isinstance(entry, dict) else {"version": entry}
            version = fields.get("version")
            marker = fields.get("markers")
            if not isinstance(version, str) or {"git", "path", "url"} & fields.keys():
                continue
            if isinstance(marker, str) and requirements.marked(marker) is False:
                continue
            if {"markers", "python"} & fields.keys():
                self.conditional.add(name)
            text = self.texts.of(version)
            if (longer := too_long(text)) is not None:
                self.unread.append(longer)
            elif fields.get("optional"):
                # Extras of Poetry may exclude each other, and only their user says which are taken.
                self.unread.append(NotRead(text=text, why="it is optional"))
            elif name.lower() == "python":
                yield self.item(PYTHON, "python", caret(version), text)
            else:
                source = str(fields.get("source", ""))
                yield self.item(PIP, name, caret(version), text).replace(
                    indexes=(self.indexes.get(source, source),) if source else self.usual.addresses,
                    alone=bool(source) or self.usual.alone,
                    extras=tuple(map(str, _list(fields.get("extras")))),
                )

    def item(self, kind: str, name: str, specifier: str, text: Traced) -> Item:
        return Item(kind=kind, name=name, specifier=specifier, text=text, version=text)


def _table(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return table(body.get(name))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
