"""The packages that an import gets, compared with their records.

The version of a package is that of the module which is first on the import path. Its record, the version in its files
and its compiled modules are witnesses of the same thing; where they disagree, or the module cannot be imported, a
feature says so with the chain from the interpreter to the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from toolmatrix.inspection import modules
from toolmatrix.inspection.imports import STANDARD, ImportPath
from toolmatrix.inspection.model import (
    BROKEN,
    CONTRADICTED,
    IMPORTED,
    MODULE,
    OTHER_PYTHON,
    UNIMPORTED,
    WHICH,
    WHICH_PACKAGES,
    FilePattern,
)
from toolmatrix.inspection.modules import Module, Modules
from toolmatrix.inspection.record import Record, View
from toolmatrix.inspection.stated import roots

_TOP_LEVEL = FilePattern(r".*\.(?:dist-info|egg-info|egg/EGG-INFO)/top_level\.txt", 4 << 10)
READS = (_TOP_LEVEL,)
# Names that many packages install beside their own, by mistake.
_GENERIC = (
    *("test", "tests", "testing", "docs", "doc", "examples", "example", "samples", "benchmarks"),
    *("scripts", "tools", "utils", "src", "build", "data", "config"),
)
_EDITABLE = re.compile(rb"^\"?[^/\n]*\.pth\"?,", re.MULTILINE)
_WITHOUT_CUDA = re.compile(r"^cuda\b[^=\n]*=[ \t]*None", re.MULTILINE)
_HASH = rb"^\"?%s\"?,sha256=([\w-]+)"
_ENVIRONMENT = re.compile(r"(.*)/lib(?:64)?/python[^/]+/(?:site|dist)-packages")
# Modules of a package that are looked up.
_MOST_ROOTS = 8
# Names in a directory that are looked at; one with data may have more.
_MOST_NAMES = 10_000


class Dist(NamedTuple):
    """The record of a package; `name` is as PyPI compares it, and `written` as its author writes it.

    `packed` are its modules where the record is in an archive.
    """

    path: str
    site: str
    seen_by: str
    name: str
    version: str
    written: str
    packed: tuple[str, ...] | None = None


class _Roots(NamedTuple):
    names: tuple[str, ...]
    # Whether the record lists them.
    is_known: bool = False
    is_editable: bool = False


class Imported:
    """What the first of some interpreters imports; `defaults` are the paths of the records of that."""

    def __init__(
        self, view: View, record: Record, paths: Sequence[ImportPath], dists: Sequence[Dist]
    ) -> None:
        self.view = view
        self.record = record
        self.paths = paths
        self.path = paths[0]
        self.modules = Modules(view, self.path)
        self.dists = dists
        self.defaults: set[str] = set()
        reals = ((view.tree.real(folder.path), folder) for folder in self.path.folders)
        self.sites = {real: folder for real, folder in reals if real and view.is_open(real)}
        # The module and the version of each package that is imported.
        self.versions: dict[str, tuple[str, str]] = {}
        self.by_name: dict[str, list[Dist]] = {}
        for dist in dists:
            if dist.name and dist.version:
                self.by_name.setdefault(dist.name, []).append(dist)

    def run(self) -> None:
        """Judge every package."""
        if self.path.unknown:
            reason = (
                f"{self.path.unknown} decides what {self.path.name} imports, and cannot be read"
            )
            self.record.skip(WHICH_PACKAGES, reason)
            return
        owned: set[str] = set()
        for name, group in self.by_name.items():
            owned |= self._package(name, group)
        self._unrecorded(owned)

    @cached_property
    def rest(self) -> Imported | None:
        """What the next interpreter imports: a program that the image starts may start that one, as supervisors do."""
        others = () if self.path.is_alone else self.paths[1:]
        known = bool(others) and not others[0].unknown
        return Imported(self.view, self.record, others, self.dists) if known else None

    def _roots(self, dist: Dist) -> _Roots:
        folder = dist.path.rpartition("/")[0]
        record = self.view.contents.get(f"{folder}/RECORD", b"")
        every = roots(record) if dist.packed is None else dist.packed
        names = [name for name in every if not name.startswith("_")]
        is_known = bool(names)
        if not names:
            text = self.view.contents.get(f"{folder}/top_level.txt", b"").decode("utf-8", "replace")
            names = [name for name in text.split() if not name.startswith("_")]
        is_editable = not is_known and _EDITABLE.search(record) is not None
        if not names and (is_editable or not record):
            names = [dist.written.replace("-", "_")]
        own = [name for name in names if _canonical(name.rpartition(".")[2]) == dist.name]
        main = own or [name for name in names if name not in _GENERIC]
        return _Roots(tuple(main[:_MOST_ROOTS]), is_known, is_editable)

    # The modules of a package that are taken; the first record of it on the path decides.
    def _package(self, name: str, group: list[Dist]) -> set[str]:
        ranks = {site: rank for rank, site in enumerate(self.sites)}
        ordered = sorted(group, key=lambda dist: ranks.get(dist.site, len(ranks)))
        roots = self._roots(ordered[0])
        located = [(root, self.modules.find(root)) for root in roots.names]
        root, module = next(((r, m) for r, m in located if m is not None), ("", None))
        if module is None or (not module.file and roots.is_known):
            rest = self.rest
            if rest is not None and any(map(rest.modules.find, roots.names)):
                rest._package(name, group)
                self.defaults |= rest.defaults
                self.versions |= rest.versions
            else:
                self._without(ordered, roots)
            return set(roots.names)
        if module.file and not self.view.is_open(module.file):
            text = f"{self._chain(module)}: USER {self.view.settings.get('User')} cannot read it"
            self._say(BROKEN, ordered[0], text, module.file)
        mine = [dist for dist in ordered if self._owns(dist, module, roots)]
        stated = self.modules.stated(module)
        if not mine:
            self._foreign(name, ordered, module)
            return {root}
        version = stated[1].version if stated else ""
        best = next((dist for dist in mine if _same(dist.version, version)), mine[0])
        self.defaults.add(best.path)
        self.versions[name] = root, version or best.version
        other = next((dist for dist in ordered if not _same(dist.version, best.version)), None)
        text = f"{self._chain(module)} {version or best.version}"
        if other is not None:
            self._say(IMPORTED, best, f"{text}; the record in /{other.site} says {other.version}")
        # `importlib.metadata` takes the first record on the path, with its module or without.
        if ordered[0] not in mine and not _same(ordered[0].version, best.version):
            self._contradict(ordered[0], text)
        self._compare(name, best, mine, module)
        return set(roots.names)

    def _owns(self, dist: Dist, module: Module, roots: _Roots) -> bool:
        if roots.is_editable or not module.file:
            return dist.site in self.sites
        # Links of stores and caches lead elsewhere: from the directory, or from each file.
        path = module.path.strip("/")
        real = self.view.tree.real(path) or path
        steps = module.name.count(".") + 1
        places = {module.site}
        for place in (path, real):
            for _ in range(steps):
                place = place.rpartition("/")[0]
            places.add(place)
            places.add(self.view.tree.real(place) or "")
        return dist.site in places

    # A record whose module an import does not find.
    def _without(self, group: list[Dist], roots: _Roots) -> None:
        on_path = [dist for dist in group if dist.site in self.sites]
        if on_path and not roots.is_known and not roots.is_editable:
            # Nothing shows how its module is called.
            self.defaults.add(on_path[0].path)
            return
        for dist in group:
            if roots.is_editable and (code := self._finder(dist)):
                reason = f"/{code} is code that finds it when {self.path.name} starts"
                self.record.skip(f"{WHICH}{dist.name}", reason)
            elif dist.site in self.sites:
                what = (
                    f"{dist.site}/{roots.names[0].replace('.', '/')}" if roots.names else dist.site
                )
                text = f"{self._start()} finds no `{roots.names[0] if roots.names else dist.name}`"
                self._say(UNIMPORTED, dist, f"{text}: /{what} is missing")
            elif not self._excused(dist):
                text = f"{self._start()} does not import from /{dist.site}"
                self._say(UNIMPORTED, dist, text)

    # The path file of an editable install whose finder is code; that of setuptools was read.
    def _finder(self, dist: Dist) -> str:
        record = self.view.contents.get(f"{dist.path.rpartition('/')[0]}/RECORD", b"")
        for line in _EDITABLE.findall(record):
            path = f"{dist.site}/{line.decode('utf-8', 'replace').strip(',').strip(chr(34))}"
            text = self.view.tree.text(path)
            if text.startswith("import ") and "__editable___" not in text:
                return path
        return ""

    # A script that starts the image may choose the environment of a record.
    def _excused(self, dist: Dist) -> bool:
        match = _ENVIRONMENT.fullmatch(dist.site)
        script = self.path.unclear
        if not script or match is None or not self.view.is_runnable(f"{match[1]}/bin/python3"):
            return False
        reason = f"/{script} starts the image, and may choose the Python of /{match[1]}"
        self.record.skip(f"{WHICH}{dist.name}", reason)
        return True

    # A module of no record is first on the path.
    def _foreign(self, name: str, group: list[Dist], module: Module) -> None:
        stated = self.modules.stated(module)
        recorded = next((dist for dist in group if dist.site in self.sites), group[0])
        says = f"the record in /{recorded.site} says {recorded.version}"
        if stated is None:
            text = f"{self._chain(module)}, which states no version; {says}"
            self._say(CONTRADICTED, recorded, text, module.path.strip("/"))
            return
        where, statement = stated
        self.record.component(name, statement.version, MODULE, where, default=True)
        text = f"{self._chain(module)} {statement.version}"
        self._say(IMPORTED, recorded, f"{text}; {says}", where)
        if not _same(statement.version, recorded.version):
            self._contradict(recorded, text)
        self._check(recorded, module)

    # Where a record is on the path, it is a witness of what a program gets.
    def _contradict(self, recorded: Dist, text: str) -> None:
        if recorded.site in self.sites:
            says = f"the record in /{recorded.site}, which is on its path, says {recorded.version}"
            self._say(CONTRADICTED, recorded, f"{text}; {says}")

    def _compare(self, name: str, best: Dist, mine: list[Dist], module: Module) -> None:
        chain = self._chain(module)
        stated = self.modules.stated(module)
        record = self.view.contents.get(f"{best.path.rpartition('/')[0]}/RECORD", b"")
        others = [dist for dist in mine if not _same(dist.version, best.version)]
        line = best.version.partition("+")[2]
        if name == "torch" and line.startswith("cu") and module.file:
            where = f"{module.path.strip('/')}/version.py"
            if _WITHOUT_CUDA.search(self.view.tree.text(where)):
                text = f"{chain} is built without CUDA; its record says {best.version}"
                self._say(CONTRADICTED, best, text, where)
        if stated is not None and not _same(stated[1].version, best.version):
            where, statement = stated
            if not self._is_shipped(best, record, where, statement.digest):
                text = f"{chain} {statement.version}; its record says {best.version}"
                self._say(CONTRADICTED, best, text, where)
        elif others:
            versions = ", ".join(sorted({dist.version for dist in mine}))
            self._say(CONTRADICTED, best, f"{chain}: its records in /{best.site} say {versions}")
        gone = modules.missing(self.view, best.site, record) if module.file else ""
        if gone:
            self._say(BROKEN, best, f"{chain}: /{gone} is on its record, and missing", gone)
        else:
            self._check(best, module)

    def _check(self, dist: Dist, module: Module) -> None:
        path, reason = self.modules.broken(module)
        if path:
            self._say(BROKEN, dist, f"{self._chain(module)}: {reason}", path)

    # A wheel may ship a file with another version: that is as it was published.
    def _is_shipped(self, dist: Dist, record: bytes, where: str, digest: str) -> bool:
        relative = where.removeprefix(f"{dist.site}/").encode()
        match = re.search(_HASH % re.escape(relative), record, re.MULTILINE)
        return match is not None and bool(digest) and match[1].decode() == digest

    # Modules of the path that no record names.
    def _unrecorded(self, owned: Iterable[str]) -> None:
        known = {*owned}
        for folder in self.path.folders:
            if folder.origin == STANDARD:
                continue
            packed = [name for name, _ in self.view.archive(folder.path).names if "." not in name]
            for name in (packed or self.view.tree.names(folder.path))[:_MOST_NAMES]:
                if name in known or name.startswith("_") or not name.isidentifier():
                    continue
                module = self.modules.find(name)
                stated = self.modules.stated(module) if module is not None else None
                if module is not None and stated is not None:
                    known.add(name)
                    where, statement = stated
                    package = _canonical(name)
                    self.record.component(package, statement.version, MODULE, where, default=True)
                    path, reason = self.modules.broken(module)
                    if path:
                        text = f"{self._chain(module)}: {reason}"
                        self.record.feature(f"{BROKEN}:{package}", text, MODULE, path)

    def _start(self) -> str:
        return f"{self.path.name} -> {self.path.prefix}"

    def _chain(self, module: Module) -> str:
        # A directory that is there by itself is named by the path of the module.
        origin = module.folder.origin
        steps = [self._start(), *(() if module.path.startswith(origin) else (origin,)), module.path]
        return " -> ".join(steps)

    def _say(self, kind: str, dist: Dist, text: str, where: str = "") -> None:
        self.record.feature(f"{kind}:{dist.name}", text, dist.seen_by, where or dist.path)


def compare_others(
    view: View, record: Record, paths: Sequence[ImportPath], versions: dict[str, tuple[str, str]]
) -> None:
    """Record the packages of which other names of Python import another version."""
    for path in paths[1:]:
        if path.folders[1:] == paths[0].folders[1:] or path.unknown:
            continue
        other = Modules(view, path)
        for name, (root, version) in versions.items():
            module = other.find(root)
            stated = other.stated(module) if module is not None else None
            if stated is not None and not _same(stated[1].version, version):
                text = f"{path.name} -> {path.prefix} -> {stated[1].version}"
                record.feature(f"{OTHER_PYTHON}:{name}", text, MODULE, stated[0])


def _same(first: str, second: str) -> bool:
    """Check whether two versions name one release; local parts count where both have one."""
    if first == second:
        return True
    (public, _, local), (other, _, other_local) = first.partition("+"), second.partition("+")
    if _release(public) != _release(other):
        return False
    return not local or not other_local or local == other_local


def _canonical(name: str) -> str:
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(name))


def _release(version: str) -> object:
    from packaging.version import Version

    try:
        return Version(version)
    except ValueError:
        return version
