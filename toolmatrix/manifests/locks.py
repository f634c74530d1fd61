"""Lock files of uv, Poetry, PDM, Pipenv and PEP 751: exact versions, with their positions, by environment.

A lock is for several Pythons and platforms at once. It is read for Linux on x86, as markers of requirements are, and
where it forks by Python each fork is an environment of its own. A package whose marker does not decide it is left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolmatrix import toml
from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests import requirements
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
)
from toolmatrix.manifests.toml_texts import caret, table, tables
from toolmatrix.value import NamedTuple, Value

# Forks of a lock by Python; environments, and packages of all of them, as extras multiply them.
_MOST_FORKS, _MOST_ENVIRONMENTS, _MOST_ITEMS = 8, 400, 40_000
_HEAD = re.compile(r"^\[\[packages?\]\]\s*$", re.MULTILINE)
_PYTHON = re.compile(r"python_(?:full_)?version\s*([<>=!]=?)\s*[\"'](\d+)\.(\d+)(?:\.0|\.\*)?[\"']")
_LOWER = re.compile(r"(?:>=?|==|~=|\^|~)\s*(\d+)\.(\d+)")
_UPPER = re.compile(r"<(=?)\s*(\d+)\.(\d+)")
_EXTRA = re.compile(r"\bextra\s*([=!]=)\s*[\"']([^\"']*)[\"']")
_KEY = re.compile(r'"([^"\\\n]+)": \{')
_NO_INDEX = "an index that the lock does not name"
Table = Mapping[str, Any]


class Fork(NamedTuple):
    """A range of Pythons that a lock treats alike, by its first and its last series; empty where none is known."""

    specifier: str
    low: str
    high: str

    def decides(self, marker: str) -> bool | None:
        """Whether a marker holds for all these Pythons on Linux, None where that depends on more."""
        answers = {requirements.marked(marker, python) for python in (self.low, self.high)}
        answer = answers.pop() if len(answers) == 1 else None
        return answer if isinstance(answer, bool) else None


def forks(requires: str, markers: Iterable[str]) -> list[Fork]:
    """The Pythons of a lock, divided where markers divide them."""
    lower = _LOWER.search(requires)
    if lower is None:
        return [Fork(requires, "", "")]
    first = int(lower[1]), int(lower[2])
    upper = _UPPER.search(requires)
    end = (first[0], 100)
    if upper and int(upper[2]) == first[0]:
        end = int(upper[2]), int(upper[3]) + bool(upper[1])
    elif "==" in lower[0]:
        end = first[0], first[1] + 1
    bounds = set()
    for marker in markers:
        for sign, major, minor in _PYTHON.findall(marker):
            # All but these two are about one series, or what follows it.
            least = int(minor) + (sign not in ("<", ">="))
            bounds |= {(int(major), least)} | (
                {(int(major), int(minor))} if sign in ("==", "!=") else set()
            )
    inner = sorted(bound for bound in bounds if first < bound < end)[: _MOST_FORKS - 1]
    starts, ends = [first, *inner], [*inner, end]
    if not inner:
        last = f"{end[0]}.{end[1] - 1}"
        return [Fork(requires, f"{first[0]}.{first[1]}", last)]
    return [
        Fork(
            f">={low[0]}.{low[1]}" + (f",<{high[0]}.{high[1]}" if high[1] < 100 else ""),
            f"{low[0]}.{low[1]}",
            f"{high[0]}.{high[1] - 1}",
        )
        for low, high in zip(starts, ends, strict=True)
    ]


class ForkedPackage(Value):
    """A package of a lock, and the markers by the groups that it is in; `item` is None for the project itself."""

    name: str
    version: str
    at: int
    item: Item | None
    markers: Mapping[str, str]


class LockReader:
    """A lock file that is read, and what is not read of it."""

    def __init__(self, source: FileText, requires: str, indexes: Iterable[str] = ()) -> None:
        self.source = source
        self.unread: list[NotRead] = []
        self.requires = requires
        # Most packages come from the index that takes the place of the default one.
        usual = Counter(index for index in indexes if index.rstrip("/").endswith("/simple"))
        self.usual = usual.most_common(1)[0][0] if usual else ""
        self.heads = [match.end() + 1 for match in _HEAD.finditer(source.text)]
        self.answers: dict[tuple[Fork, str], bool | None] = {}

    def place(self, number: int) -> int:
        """The place of the package with this number."""
        return min(self.heads[number], len(self.source.text)) if number < len(self.heads) else 0

    def text(self, text: str, at: int) -> Traced:
        """A text that is put together of what begins at a place."""
        return Traced(self.source, text, [min(at, len(self.source.text))] * len(text))

    def package(
        self,
        number: int,
        entry: Table,
        address: str = "",
        index: str = "",
        markers: Table | None = None,
    ) -> ForkedPackage:
        """A package that comes from an address or an index."""
        name, version = str(entry.get("name", "")), str(entry.get("version", ""))
        at = self.place(number)
        alone = bool(index) and index != self.usual
        wheel = next((str(file.get("url", "")) for file in tables(entry.get("wheels"))), "")
        if "+" in version and not index:
            address = address or wheel or _NO_INDEX
        text = self.text(f"{name}=={version}", at)
        item = Item(
            kind=PIP,
            name=name,
            specifier=f"=={version}",
            text=text,
            indexes=(index,) if alone else (address,) if address else (),
            alone=alone,
        )
        by_group = {group: str(marker) for group, marker in (markers or {}).items()}
        return ForkedPackage(
            name=name, version=version, at=at, item=item if version else None, markers=by_group
        )

    def leave(self, package: ForkedPackage, why: str) -> None:
        """Report a package as not read."""
        self.unread.append(NotRead(text=self.text(package.name, package.at), why=why))

    def holds(self, marker: str, fork: Fork) -> bool | None:
        """Whether a marker holds in a fork, None where that is unknown."""
        if marker and (fork, marker) not in self.answers:
            self.answers[fork, marker] = fork.decides(marker)
        return self.answers[fork, marker] if marker else True

    def python(self, fork: Fork) -> list[Item]:
        """The Pythons of a fork."""
        if not fork.specifier:
            return []
        text = self.text(fork.specifier, max(0, self.source.text.find(self.requires)))
        return [Item(kind=PYTHON, name="python", specifier=fork.specifier, text=text, version=text)]

    def environments(
        self, packages: Sequence[ForkedPackage], main: str
    ) -> Iterator[ManifestEnvironment]:
        """What the packages of the main group are, and those of each other group with them, for each fork."""
        counts = Counter(package.name for package in packages)
        several = [package for package in packages if counts[package.name] > 1]
        groups = dict.fromkeys(group for package in packages for group in package.markers)
        ranges = forks(
            self.requires, (mark for package in several for mark in package.markers.values())
        )
        for group in (main, *(name for name in groups if name != main)):
            for fork in ranges:
                wanted = {main, group}
                chosen = [
                    package
                    for package in packages
                    if any(
                        self.holds(marker, fork)
                        for name, marker in package.markers.items()
                        if name in wanted
                    )
                ]
                name = " ".join(
                    filter(
                        None,
                        ("" if group == main else group, fork.specifier if len(ranges) > 1 else ""),
                    )
                )
                yield self.environment(name, fork, chosen)

    def environment(
        self, name: str, fork: Fork, packages: Iterable[ForkedPackage]
    ) -> ManifestEnvironment:
        """An environment with some packages, but for those of which several versions are left."""
        unique: dict[str, ForkedPackage | None] = {}
        for package in packages:
            other = unique.setdefault(package.name, package)
            if other is not None and other.version != package.version:
                unique[package.name] = None
        items = [package.item for package in unique.values() if package and package.item]
        return ManifestEnvironment(
            name=name, items=tuple([*self.python(fork), *items] if items else items)
        )

    def manifest(
        self, kind: str, files: Files, environments: Iterable[ManifestEnvironment]
    ) -> ProjectManifest:
        """All that was read of it."""
        accepted = bounded(self.source.path, self.limited(environments))
        return files.manifest(kind, self.source, accepted, self.unread)

    def limited(self, environments: Iterable[ManifestEnvironment]) -> Iterator[ManifestEnvironment]:
        """As many environments as are read."""
        left = _MOST_ITEMS
        for count, environment in enumerate(environments):
            left -= len(environment.items)
            if left < 0 or count == _MOST_ENVIRONMENTS:
                why = "the lock has too many extras and groups for the rest to be read"
                self.unread.append(NotRead(text=self.text(environment.name, 0), why=why))
                return
            yield environment


def parse(source: FileText) -> Table:
    """A lock in TOML. Raises ManifestError."""
    return toml.parse(source.text, source.path, ManifestError, "the file")


def _texts(value: object) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def read_pylock(source: FileText, files: Files) -> ProjectManifest:
    """A `pylock.toml` (PEP 751)."""
    body = parse(source)
    entries = tables(body.get("packages"))
    lock = LockReader(
        source, str(body.get("requires-python", "")), (str(entry.get("index")) for entry in entries)
    )
    packages = [
        lock.package(
            number, entry, index=str(entry.get("index", "")), markers={"": entry.get("marker", "")}
        )
        for number, entry in enumerate(entries)
        if not {"vcs", "directory"} & entry.keys()
    ]
    return lock.manifest("pylock", files, lock.environments(packages, ""))


def read_poetry(source: FileText, files: Files) -> ProjectManifest:
    """A `poetry.lock`: packages by their groups, but for those that extras alone bring."""
    body = parse(source)
    lock = LockReader(source, caret(str(table(body.get("metadata")).get("python-versions", ""))))
    packages: list[ForkedPackage] = []
    for number, entry in enumerate(tables(body.get("package"))):
        origin = table(entry.get("source"))
        kind, address = origin.get("type", "legacy"), str(origin.get("url", ""))
        groups = _texts(entry.get("groups")) or [str(entry.get("category", "main"))]
        marker = entry.get("markers", "")
        markers = {
            group: marker.get(group, "") if isinstance(marker, dict) else marker for group in groups
        }
        package = lock.package(
            number,
            entry,
            address if kind == "url" else "",
            address if kind == "legacy" else "",
            markers,
        )
        if kind not in ("legacy", "url"):
            lock.leave(package, "its source is not an index")
        elif entry.get("optional"):
            lock.leave(package, "it is optional")
        else:
            packages.append(package)
    return lock.manifest("poetry.lock", files, lock.environments(packages, "main"))


def read_pdm(source: FileText, files: Files) -> ProjectManifest:
    """A `pdm.lock`: packages by their groups."""
    body = parse(source)
    targets = tables(table(body.get("metadata")).get("targets"))
    lock = LockReader(source, str(targets[0].get("requires_python", "")) if targets else "")
    packages = [
        lock.package(
            number,
            entry,
            str(entry.get("url", "")),
            markers=dict.fromkeys(
                _texts(entry.get("groups")) or ["default"], entry.get("marker", "")
            ),
        )
        for number, entry in enumerate(tables(body.get("package")))
        if not {"git", "path"} & entry.keys()
    ]
    return lock.manifest("pdm.lock", files, lock.environments(packages, "default"))


def read_pipenv(source: FileText, files: Files) -> ProjectManifest:
    """A `Pipfile.lock`. Raises ManifestError."""
    try:
        body = table(json.loads(source.text))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        where = Position(source.path, line) if line else Position(source.path)
        raise ManifestError("the file is not JSON", where=where, expected="JSON") from None
    meta = table(body.get("_meta"))
    sources = {
        str(entry.get("name")): str(entry.get("url", "")) for entry in tables(meta.get("sources"))
    }
    requires = table(meta.get("requires"))
    python = str(requires.get("python_version", requires.get("python_full_version", "")))
    lock = LockReader(source, f"=={python}" if python else "", sources.values())
    places: dict[str, list[int]] = {}
    for match in _KEY.finditer(source.text):
        places.setdefault(match[1], []).append(match.start(1))
    packages: list[ForkedPackage] = []
    for group in ("default", "develop"):
        for name, entry in table(body.get(group)).items():
            fields = table(entry)
            at = places.get(name, [0])
            # A package may be in both.
            lock.heads.append(at.pop(0) if len(at) > 1 else at[0])
            index = sources.get(str(fields.get("index")), "")
            marker = {group: fields.get("markers", "")}
            locked = {"name": name, "version": str(fields.get("version", "")).lstrip("=")}
            package = lock.package(len(packages), locked, index=index, markers=marker)
            packages.append(package)
    return lock.manifest("Pipfile.lock", files, lock.environments(packages, "default"))


def read_uv(source: FileText, files: Files) -> ProjectManifest:
    """A `uv.lock`: what each project of it needs, and each extra and group with that."""
    body = parse(source)
    entries = tables(body.get("package"))
    sources = [table(entry.get("source")) for entry in entries]
    lock = LockReader(
        source,
        str(body.get("requires-python", "")),
        (str(origin.get("registry")) for origin in sources),
    )
    return lock.manifest("uv.lock", files, _UvLock(lock, body, entries, sources).environments())


class _UvLock:
    def __init__(
        self, lock: LockReader, body: Table, entries: Sequence[Table], sources: Sequence[Table]
    ) -> None:
        self.lock = lock
        self.entries = entries
        self.by_key: dict[tuple[str, str, str], list[int]] = {}
        manifest = table(body.get("manifest"))
        overridden = {str(entry.get("name")) for entry in tables(manifest.get("overrides"))}
        members = set(_texts(manifest.get("members")))
        self.packages: list[ForkedPackage] = []
        self.roots: list[int] = []
        for number, (entry, origin) in enumerate(zip(entries, sources, strict=True)):
            package = lock.package(
                number, entry, str(origin.get("url", "")), str(origin.get("registry", ""))
            )
            if not {"registry", "url"} & origin.keys():
                package = package.replace(item=None)
                if "git" in origin:
                    lock.leave(package, "its source is not an index")
            elif package.item and package.name in overridden:
                package = package.replace(item=package.item.replace(overrides=True))
            self.packages.append(package)
            for key in self.keys(entry):
                self.by_key.setdefault(key, []).append(number)
            own = "." in (origin.get("virtual"), origin.get("editable"))
            if package.name in members if members else own:
                self.roots.append(number)
        divided = _texts(body.get("resolution-markers"))
        self.forks = forks(lock.requires, divided)
        self.supported = _texts(body.get("supported-markers"))

    def environments(self) -> Iterator[ManifestEnvironment]:
        lock = self.lock
        if self.supported and not any(
            fork.decides(marker) is not False for fork in self.forks for marker in self.supported
        ):
            lock.unread.append(
                NotRead(text=lock.text(self.supported[0], 0), why="it is not for Linux on x86")
            )
            return
        if not self.roots:
            yield lock.environment("", self.forks[0], self.packages)
        groups = [(root, kind, name) for root in self.roots for kind, name in self.groups(root)]
        for root, kind, name in groups:
            title = self.title(root, name)
            for fork in self.forks:
                divided = fork.specifier if len(self.forks) > 1 else ""
                chosen = self.needed(root, kind, name, fork)
                yield lock.environment(" ".join(filter(None, (title, divided))), fork, chosen)

    def groups(self, root: int) -> Iterator[tuple[str, str]]:
        yield "", ""
        for kind in ("optional-dependencies", "dev-dependencies"):
            for name in table(self.entries[root].get(kind)):
                yield kind, str(name)

    def title(self, root: int, name: str) -> str:
        own = self.packages[root].name if len(self.roots) > 1 else ""
        return " ".join(filter(None, (own, name)))

    def needed(self, root: int, kind: str, group: str, fork: Fork) -> list[ForkedPackage]:
        """The packages that a project, with an extra or a group of it, leads to."""
        package = self.packages[root]
        word = "group" if kind == "dev-dependencies" else "extra"
        active = f"{word}-{len(package.name)}-{package.name}-{group}" if group else ""
        entry = self.entries[root]
        left = [*tables(entry.get("dependencies")), *tables(table(entry.get(kind)).get(group))]
        visited: set[tuple[int, str]] = set()
        chosen: dict[int, ForkedPackage] = {}
        while left:
            edge = left.pop()
            number = self.target(edge, fork, active)
            if number is None:
                continue
            for extra in ("", *_texts(edge.get("extra"))):
                if (number, extra) in visited:
                    continue
                visited.add((number, extra))
                chosen[number] = self.packages[number]
                entry = self.entries[number]
                optional = table(entry.get("optional-dependencies")).get(extra)
                left += tables(optional if extra else entry.get("dependencies"))
        return [chosen[number] for number in sorted(chosen)]

    def target(self, edge: Table, fork: Fork, active: str) -> int | None:
        """The package that an edge leads to, None where it leads to none or that is unknown."""
        if not self.holds(str(edge.get("marker", "")), fork, active):
            return None
        numbers = self.by_key.get(self.keys(edge)[-1], ())
        return numbers[0] if len(numbers) == 1 else None

    @staticmethod
    def keys(entry: Table) -> list[tuple[str, str, str]]:
        """What an edge names a package by: its version and source where its name is not enough; the last has all."""
        name, version = str(entry.get("name")), str(entry.get("version", ""))
        origin = repr(sorted(table(entry.get("source")).items(), key=str))
        keys = [(name, "", ""), (name, version, ""), (name, version, origin)]
        return keys[: 3 if "source" in entry else 2 if version else 1]

    def holds(self, marker: str, fork: Fork, active: str) -> bool | None:
        # Extras and groups that conflict are encoded as extras, which any number of may be taken.
        def chosen(match: re.Match[str]) -> str:
            return (
                "os_name == 'posix'"
                if (match[2] == active) == (match[1] == "==")
                else "os_name == ''"
            )

        return self.lock.holds(_EXTRA.sub(chosen, marker), fork)
