"""`pyproject.toml`: dependencies by PEP 621 and PEP 735, sources of uv, and those of Poetry."""

from __future__ import annotations

import re

from toolmatrix import toml
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import requirements
from toolmatrix.manifests.model import PIP, PYTHON, Asked, Item, NotRead, ProjectManifest, bounded
from toolmatrix.manifests.requirements import PackageIndexes
from toolmatrix.manifests.traced import Traced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from toolmatrix.manifests.files import Files
    from toolmatrix.manifests.traced import FileText


class _Texts:
    """Where the strings of a file of TOML stand: its reader knows no places, so they are looked for in their order."""

    def __init__(self, source: FileText) -> None:
        self.source = source
        self.place = 0

    def section(self, *headers: str) -> None:
        """Look from the head of a table on, the first of some that is there."""
        for header in headers:
            found = re.search(
                rf"^\s*(?:\[{re.escape(header)}\]|{re.escape(header)}\s*=)",
                self.source.text,
                re.MULTILINE,
            )
            if found:
                self.place = found.start()
                return

    def of(self, text: str) -> Traced:
        """The next place of a string; where it is not found as it is, the place of nothing."""
        for quoted in (f'"{text}"', f"'{text}'"):
            found = self.source.text.find(quoted, self.place)
            if found >= 0:
                start = found + 1
                return self.source.whole()[start : start + len(text)]
        return Traced(self.source, text, [min(self.place, len(self.source.text))] * len(text))


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
        self.indexes = {
            str(one.get("name")): str(one.get("url", ""))
            for one in _list(self.uv.get("index"))
            if isinstance(one, dict)
        }

    def environments(self) -> Iterator[Asked]:
        base = [*self.python(), *self.project(), *self.of_poetry()]
        if base:
            yield Asked(name="", items=tuple(base))
        groups = {
            **_table(_table(self.body, "project"), "optional-dependencies"),
            **_table(self.body, "dependency-groups"),
        }
        for name, held in groups.items():
            self.texts.section("project.optional-dependencies", "dependency-groups")
            found = self.listed(held)
            if found:
                yield Asked(name=str(name), items=(*base, *found))

    def python(self) -> Iterator[Item]:
        said = _table(self.body, "project").get("requires-python")
        if isinstance(said, str):
            self.texts.section("requires-python")
            yield self.item(PYTHON, "python", said, self.texts.of(said))

    def project(self) -> list[Item]:
        self.texts.section("dependencies")
        return self.listed(_table(self.body, "project").get("dependencies"))

    def listed(self, held: object) -> list[Item]:
        texts = [self.texts.of(one) for one in _list(held) if isinstance(one, str)]
        found = requirements.several(texts, self.unread, PackageIndexes())
        return [one for one in (self.sourced(item) for item in found) if one is not None]

    def sourced(self, item: Item) -> Item | None:
        """The item with the index that uv takes it from."""
        said = _table(self.uv, "sources").get(item.name)
        if said is None:
            return item
        if isinstance(said, dict) and said.get("index") in self.indexes and "marker" not in said:
            return item.replace(indexes=(self.indexes[said["index"]],), alone=True)
        if isinstance(said, list):
            # One of several indexes, by markers or extras: any of them may be the one.
            addresses = tuple(
                self.indexes.get(str(one.get("index")), "") for one in said if isinstance(one, dict)
            )
            return item.replace(indexes=addresses)
        self.unread.append(NotRead(text=item.text, why="a source that is no index"))
        return None

    def of_poetry(self) -> Iterator[Item]:
        self.texts.section("tool.poetry.dependencies")
        for name, said in _table(self.poetry, "dependencies").items():
            version = said.get("version") if isinstance(said, dict) else said
            if not isinstance(version, str) or (
                isinstance(said, dict) and {"git", "path", "url"} & said.keys()
            ):
                continue
            text = self.texts.of(version)
            if isinstance(said, dict) and said.get("optional"):
                # Extras of Poetry may exclude each other, and only their user says which are taken.
                self.unread.append(NotRead(text=text, why="it is optional"))
            elif name.lower() == "python":
                yield self.item(PYTHON, "python", caret(version), text)
            else:
                alone = isinstance(said, dict) and "source" in said
                yield self.item(PIP, name, caret(version), text).replace(
                    indexes=("a source of Poetry",) if alone else ()
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
