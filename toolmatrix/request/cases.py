"""The files of a repository as one case: those that count, the lines of a request they make, and the rest of them.

One kind of file wins: one that the README says to install, else a project with dependencies, else requirements, else an
environment of conda, else a Dockerfile, else a script or the commands of a README.
Files nearer to the top come first. Requirements for development, tests and documentation are left out, and those for
another accelerator. The kinds behind the winner add a Python and packages that it does not name: requirements.txt all
of its own, with pins of what the winner leaves open, other files those that the code imports. Such lines give way to
those of the winner, and so does what the code imports and no file asks for, in the releases that sentences of a README
name. A lock file adds nothing: its releases are preferred.
"""

from __future__ import annotations

import os
import re

from toolmatrix import toml
from toolmatrix.errors import ManifestError, NothingMatched, Position
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import PURE
from toolmatrix.factbase.versions import SelectorError
from toolmatrix.manifests import files, read
from toolmatrix.manifests import names as called
from toolmatrix.manifests.imports import SourceImports, source_imports
from toolmatrix.manifests.installed import written
from toolmatrix.manifests.model import (
    CONDA,
    IMAGE,
    PIP,
    PYTHON,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
)
from toolmatrix.manifests.requirements import PackageIndexes, requirement
from toolmatrix.request.documented import documented_releases
from toolmatrix.request.judgement import RequestedPart, RequestedParts
from toolmatrix.request.manifests import TOOLKIT, requested_parts
from toolmatrix.request.names import Names
from toolmatrix.request.removed import removed_names, tightest
from toolmatrix.solve import worlds
from toolmatrix.solve.request import Ask
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

# The kinds of files, the one that wins first, by the name in the folder; of one kind all count where it says so.
_KINDS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"pyproject\.toml",
        r"setup\.cfg",
        r"setup\.py",
        r"Pipfile",
        r"pixi\.toml",
        r"requirements?\.(?:txt|in)",
        r"(?:.*[._-])?requirements?(?:[._-].*)?\.(?:txt|in)|requirements?/.*\.(?:txt|in)",
        r"(?:environment|env|conda)\.ya?ml",
        r"(?:.*[._-])?(?:environment|env|conda)(?:[._-].*)?\.ya?ml",
        r"cog\.yaml",
        r"(?:docker|container)file",
        r"(?:.*[._-])?(?:docker|container)file(?:[._-].*)?",
        r"(?:.*[._-])?(?:install|setup)(?:[._-].*)?\.sh",
        r"(?:readme|install)\.(?:md|markdown)",
        r".*\.ipynb",
    )
)
_NAMED = (
    "a pyproject.toml, setup.py, setup.cfg, Pipfile, pixi.toml, requirements.txt, environment.yml, cog.yaml,"
    " Dockerfile, install.sh, README.md or notebook with packages"
)
# What a README says to install comes before all others.
_DOCUMENTED, _REQUIREMENTS, _ALL_COUNT = -1, 5, 6
_INSTALLED = re.compile(r"(?:^|\s)(?:-f|-r|--file|--requirement)[ =]*([\w./-]+\.(?:ya?ml|txt))\b")
# Folders whose files are as near as those beside them.
_SIDE = re.compile(r"(?:requirements?|docker|conda|envs?|environments?|\.devcontainer)/")
_ACCELERATORS: Mapping[str, str] = {
    **dict.fromkeys(("cuda", "gpu", "nvidia"), "cuda"),
    **dict.fromkeys(("rocm", "amd", "hip"), "rocm"),
    "cpu": "none",
    **dict.fromkeys(("tpu", "xpu", "hpu", "npu", "neuron", "mps", "mac", "macos", "osx"), "other"),
    **dict.fromkeys(("windows", "win", "directml", "openvino", "ascend", "intel"), "other"),
}
_LOCKS = ("uv.lock", "poetry.lock", "pylock.toml")
_SERIES = re.compile(r"\s*(\d+\.\d+)(?:\.\d+)?\s*")
_LOCAL = re.compile(r"\+[\w.]+")
# Classes of torch.utils.cpp_extension, which a setup.py imports to describe extension modules.
_EXTENSION = re.compile(r"\b(?:CUDA|Cpp|SYCL)Extension\b")
_EDITABLE = re.compile(r"^(?:-e|--editable)[\s=]+")
_APART = "no file asks for it, and only code imports it that nothing else of the project imports"
_BUNDLED = "what is installed beside it requires a release of its own"
OF_PYTHON = "its marker depends on Python"
"""Why a line is not read that a Python decides."""


class CaseLine(Value):
    """A line of a file as lines of a request, the first of which names a component and the others builds of it.

    `free` are the same without the indexes of the file. `refusal` says why no release can be what is asked for: it does
    not exist, or the matrix does not know it (`open`). It is `weak` where it is of no file that decides.
    """

    part: RequestedPart
    asks: tuple[Ask, ...]
    free: tuple[Ask, ...]
    refusal: str = ""
    open: bool = False
    weak: bool = False

    @property
    def component(self) -> str:
        """The component that it is about."""
        return self.part.component

    @property
    def package(self) -> str:
        """The name of the package as the index compares it, that of the component where the line has another."""
        return (
            called.package_name(self.part.item.name)
            if self.part.item.kind == PIP
            else self.component
        )

    @property
    def where(self) -> Position:
        """Its place."""
        return self.part.item.where

    @property
    def text(self) -> str:
        """The line as it is written, and with a name that code uses the bound that comes of it."""
        item = self.part.item
        return f"{item.text.text} ({item.name}{item.specifier})" if self.is_use else self.part.text

    @property
    def is_use(self) -> bool:
        """True for a bound that comes of a name which code uses."""
        return self.part.item.imported and bool(self.part.item.specifier)

    @property
    def is_reported(self) -> bool:
        """True where code or a sentence names it, and no file asks for it."""
        return self.part.item.imported or self.part.item.prose

    @property
    def requirement(self) -> str:
        """The line as a requirement of pip: of what code imports, the package, in a release that a sentence names."""
        return f"{self.package}{self.part.item.specifier}" if self.is_reported else self.text


class RepositoryCase(Value):
    """What a repository asks for: `lines` are about components, `unchecked` are further requirements of pip.

    `conda` are packages of conda alone; `keep` are releases by component that a lock file has, `locks` these files.
    `packages` are those that it asks for, `optional` those that extras alone ask for, `modules` what the code
    imports, and `compiled` the folders whose setup.py compiles code with torch. Without `files` it is what the code
    imports.
    """

    files: tuple[str, ...]
    lines: tuple[CaseLine, ...]
    unread: tuple[NotRead, ...]
    unchecked: tuple[str, ...]
    conda: tuple[str, ...]
    keep: tuple[tuple[str, str], ...]
    locks: tuple[str, ...]
    packages: frozenset[str]
    optional: frozenset[str]
    modules: SourceImports
    compiled: tuple[str, ...]
    errors: tuple[ManifestError, ...]

    @property
    def depends_on_python(self) -> bool:
        """True if markers that need a Python leave lines open."""
        return any(entry.why == OF_PYTHON for entry in self.unread)

    def needs(self, module: str, modules: SourceImports) -> bool:
        """True for a module without which its code cannot be loaded, by what it asks for."""
        names = {*called.providers(module), called.package_name(module)}
        is_named = module in modules.apart and not self.packages.isdisjoint(names)
        return (is_named or module in modules.needed) and self.optional.isdisjoint(names)


def word(ask: Ask) -> str:
    """A line of a request as one word of it."""
    if ask.selector == "*":
        return ask.component
    equals = "" if ask.selector[:1] in "<>=!~" else "=="
    return f"{ask.component}{equals}{ask.selector}"


def read_case(
    index: Index,
    path: str,
    accelerator: str,
    python: str = "",
    modules: SourceImports | None = None,
) -> RepositoryCase:
    """The case of a folder, or of one file, on an accelerator; a Python decides the markers about it.

    `modules` are those that the code imports, where that was read before. Raises ManifestError where no file can be
    read, NothingMatched for a folder without any.
    """
    reader = _CaseReader(index, path, accelerator, python)
    if os.path.isdir(path):
        reader.modules = modules or source_imports(path, index.packages(), removed_names(index))
        reader.folder()
    else:
        reader.take([read.manifest(files.read_file(path, files.root_of(path)))])
    return reader.case()


class _CaseReader:
    def __init__(self, index: Index, path: str, accelerator: str, python: str) -> None:
        self.index = index
        self.path = path
        self.accelerator = accelerator
        self.python = python
        self.manifests: list[ProjectManifest] = []
        self.requested: list[RequestedParts] = []
        self.parts: list[RequestedPart] = []
        self.items: list[Item] = []
        self.unread: list[NotRead] = []
        self.errors: list[ManifestError] = []
        self.locks: list[str] = []
        self.paths: list[str] = []
        # The items that are of no file that decides, by their ids.
        self.weak: set[int] = set()
        # Components of which a release is asked for that is not known, and that no fact joins with others.
        self.outside: set[str] = set()
        self.modules = SourceImports(needed={}, apart={}, optional={}, unparsed=(), uses={})
        self.imported: frozenset[str] = frozenset()

    def folder(self) -> None:
        """Read the kind of file that wins, and of the kinds behind it what it does not name."""
        self.imported = frozenset(
            package
            for module in (*self.modules.needed, *self.modules.apart)
            for package in called.providers(module, self.index.packages())
        )
        ranked: dict[tuple[int, int], list[str]] = {}
        documented = self.documented()
        self.paths = [*read.below(self.path)]
        for path in dict.fromkeys((*self.paths, *self.requirements())):
            name = os.path.relpath(path, self.path).replace(os.sep, "/")
            deep = _SIDE.sub("", name).count("/")
            inside = name if _SIDE.match(name) else name.rpartition("/")[2]
            plain = inside.rpartition("/")[2]
            kinds = (
                at
                for at, kind in enumerate(_KINDS)
                if kind.fullmatch(plain) or kind.fullmatch(inside)
            )
            kind = next(kinds, None)
            if kind is not None and self.counts(inside):
                ranked.setdefault((deep, _DOCUMENTED if name in documented else kind), []).append(
                    path
                )
        nearest = -1
        for (deep, kind), paths in sorted(ranked.items()):
            if nearest not in (-1, deep):
                break
            read_ones = [
                *filter(None, map(self.manifest, paths if kind == _ALL_COUNT else paths[:1]))
            ]
            if nearest < 0:
                nearest = deep if self.take(read_ones) else -1
            else:
                self.supplement(read_ones, kind)
        self.python_file()
        self.imports()
        if not self.requested:
            if self.errors:
                raise self.errors[0]
            raise NothingMatched(
                f"no file in {self.path} asks for packages",
                expected=_NAMED,
                found=f"`{self.path}`",
                help="name the file: `toolmatrix env FILE`",
            )

    def documented(self) -> set[str]:
        """The files that the README says to install, unless it does so of several."""
        path = os.path.join(self.path, "README.md")
        if not os.path.isfile(path):
            return set()
        try:
            text = files.read_file(path, self.path).text
        except ManifestError:
            return set()
        named = {os.path.normpath(match[1]) for match in _INSTALLED.finditer(text)}
        present = {name for name in named if os.path.isfile(os.path.join(self.path, name))}
        # Of several each may be for something else: a demo, an accelerator, an alternative to another.
        return present if len(present) == 1 else set()

    def requirements(self) -> Iterator[str]:
        """The files of a folder of requirements, whatever their names are."""
        folder = os.path.join(self.path, "requirements")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.endswith((".txt", ".in")):
                yield os.path.join(folder, name)

    def counts(self, name: str) -> bool:
        """True for a file that is not for development, nor for another accelerator."""
        words = {*re.split(r"[^a-z0-9]+", name.lower())}
        computes = {_ACCELERATORS[word] for word in words if word in _ACCELERATORS}
        left_out = any(map(files.LEFT_OUT.fullmatch, words))
        return not left_out and (not computes or self.accelerator in computes)

    def manifest(self, path: str) -> ProjectManifest | None:
        """A file, None where it cannot be read."""
        try:
            return read.manifest(files.read_file(os.path.normpath(path), self.path))
        except ManifestError as error:
            self.errors.append(error)
            return None

    def take(self, manifests: Sequence[ProjectManifest]) -> bool:
        """Take files as one environment; False where they ask for no package."""
        items: list[Item] = []
        unread: list[NotRead] = []
        for manifest in manifests:
            items += self.environment(manifest)
            for entry in manifest.unread:
                item = self.decided(entry)
                items += [item] if isinstance(item, Item) else []
                unread += [item] if isinstance(item, NotRead) else []
        if not any(item.kind in (PIP, CONDA, IMAGE) for item in items):
            return False
        self.manifests += manifests
        self.unread += unread
        self.extend(items)
        return True

    def extend(self, items: Iterable[Item]) -> None:
        """Ask for further items."""
        items = [*map(self.present, items)]
        self.items += items
        self.requested.append(self.request(items))
        self.parts += self.requested[-1].parts

    def present(self, item: Item) -> Item:
        """An item, by the present name of a package that only stops the installer, or is not on the index."""
        stub = called.stub(called.package_name(item.name)) if item.kind == PIP else None
        # Another index may have a package of that name.
        if (
            stub is None
            or item.indexes
            or self.component(item)
            or not stub.admitted(item.specifier)
        ):
            return item
        self.unread.append(NotRead(text=item.text, why=stub.reason))
        name, address, _ = stub.instead.partition(" @ ")
        text = written(item.text, stub.instead) if address else item.text
        return item.replace(name=name, specifier="", text=text)

    def decided(self, entry: NotRead) -> Item | NotRead | None:
        """The item of a line whose marker the Python decides, None where it leaves the line out."""
        if entry.why != OF_PYTHON or not self.python:
            return entry
        return requirement(entry.text, PackageIndexes(), self.python)

    def environment(self, manifest: ProjectManifest) -> Sequence[Item]:
        """The items of the environment that a file is for: that without extras, or the last stage.

        Of a project without a framework it is the first extra with one, as accelerators are extras of many.
        """
        unnamed = [environment for environment in manifest.environments if not environment.name]
        if manifest.kind != "pyproject" and not unnamed:
            return self.steps(manifest)
        items = unnamed[0].items if unnamed else ()
        if self.has_framework(items):
            return items
        extras = (e.items for e in manifest.environments if e.name and self.counts(e.name))
        return next(filter(self.has_framework, extras), items)

    def steps(self, manifest: ProjectManifest) -> Sequence[Item]:
        """The items of the last environment of a file, and in a README those of the steps before it.

        An earlier block is one if it names a Python alone, or what the code imports and no block behind it names.
        """
        items = [*manifest.environments[-1].items] if manifest.environments else []
        for environment in manifest.environments[-2::-1] if manifest.kind == "README" else ():
            own, behind = (self.named(part) for part in (environment.items, items))
            counts = own <= {PYTHON} or own & self.imported
            if counts and not own & behind and not self.has_frameworks(environment.items, items):
                items = [*environment.items, *items]
        return items

    def named(self, items: Iterable[Item]) -> set[str]:
        """The names of all items."""
        return {name for item in items for name in self.names_of(item)}

    def has_frameworks(self, *lists: Iterable[Item]) -> bool:
        """True if each of several lists has a framework: these are alternatives."""
        return all(map(self.has_framework, lists))

    def has_framework(self, items: Iterable[Item]) -> bool:
        """True if one of the items is a framework."""
        heads = self.index.header["components"]
        return any(heads[part.component]["framework"] for part in self.request(items).parts)

    def request(self, items: Iterable[Item]) -> RequestedParts:
        return requested_parts(self.index, ManifestEnvironment(name="", items=tuple(items)))

    def supplement(self, manifests: Sequence[ProjectManifest], kind: int) -> None:
        """Take the pins, the packages and the Python that no file before names.

        Of packages those that the code imports, or all of requirements; of images their frameworks.
        """
        heads = self.index.header["components"]
        for manifest in manifests:
            whole = self.environment(manifest)
            named = {part.component for part in self.parts}
            items = [*self.additions(whole, named, kind)]
            parts = [
                part
                for part in self.request(whole).parts
                if part.component not in named
                and (
                    part.component == PYTHON
                    or (part.item.kind == IMAGE and heads[part.component]["framework"])
                )
            ]
            if items or parts:
                self.manifests.append(manifest)
                self.weak |= {id(item) for item in items}
                self.extend(items)
                self.parts += parts

    def additions(self, items: Iterable[Item], named: Container[str], kind: int) -> Iterator[Item]:
        """The packages of a kind of file that no file before names or pins."""
        # Pins of other files are of an example, another machine or another day.
        all_count, heads = kind == _REQUIREMENTS, self.index.header["components"]
        optional = self.optional()
        # By name and by component: the packages before, and whether a release of them is pinned.
        pinned: dict[str, bool] = {}
        for other in self.items:
            for name in self.names_of(other):
                pinned[name] = pinned.get(name, False) or "==" in other.specifier
        for item in items:
            names = self.names_of(item)
            # Of the packages of extras, requirements take those that are checked with the rest.
            is_checked = all_count and bool(self.component(item))
            is_optional = not is_checked and called.package_name(item.name) in optional
            if item.kind not in (PIP, CONDA) or item.bounds or is_optional:
                continue
            before = [pinned[name] for name in names if name in pinned]
            if before or any(name in named for name in names):
                if all_count and "==" in item.specifier and not any(before):
                    yield item
                continue
            # Without code at hand its frameworks alone count.
            counts = names & self.imported
            if not (self.modules.needed or self.modules.apart):
                counts = {name for name in names if name in heads and heads[name]["framework"]}
            if all_count or counts:
                yield item

    def names_of(self, item: Item) -> set[str]:
        """The name of a package, and of its component."""
        return {called.package_name(item.name), self.component(item)} - {""}

    def python_file(self) -> None:
        """The Python that version managers read."""
        path = os.path.normpath(os.path.join(self.path, ".python-version"))
        if not os.path.isfile(path) or any(part.component == PYTHON for part in self.parts):
            return
        try:
            text = files.read_file(path, self.path).whole()
        except ManifestError as error:
            self.errors.append(error)
            return
        if match := _SERIES.fullmatch(text.text):
            text = text.group(match, 1)
            item = Item(kind=PYTHON, name="python", specifier=f"=={text.text}", text=text)
            self.parts += self.request([item]).parts

    def imports(self) -> None:
        """Take the packages of modules that the code imports and no file asks for."""
        named = {called.package_name(item.name) for item in self.items} | self.optional()
        # `git+https://host/owner/NAME.git@COMMIT`: most repositories are called as their package.
        named |= {
            called.package_name(word)
            for manifest in self.manifests
            for entry in manifest.unread
            for word in re.split(r"[/@#=]|\.git\b", entry.text.text)
        }
        heads = self.index.header["components"]
        components = {part.component for part in self.parts}
        has_framework = any(heads[component]["framework"] for component in components)
        names = Names(self.index)
        imported: list[tuple[str, Item]] = []
        is_declared = any(item.kind in (PIP, CONDA) for item in self.items)
        for module, place in (*self.modules.needed.items(), *self.modules.apart.items()):
            packages = called.providers(module, self.index.packages())
            if named & {*packages, called.package_name(module)}:
                continue
            if is_declared and module in self.modules.apart:
                self.unread.append(NotRead(text=place, why=_APART))
                continue
            if not packages:
                why = "the code imports it, and no known package has a module of this name"
                self.unread.append(NotRead(text=place, why=why))
                continue
            own = names.called(packages[0])
            if has_framework and own in heads and heads[own]["framework"]:
                # A converter, a demo or a server of a project that is written for another one.
                self.unread.append(
                    NotRead(text=place, why="the code imports it, and no file asks for it")
                )
            elif not components & {*map(names.called, packages)}:
                item = Item(kind=PIP, name=packages[0], specifier="", text=place, imported=True)
                imported.append((own, item))
        # Few repositories need what their READMEs say.
        documented = documented_releases(self.index, self.path) if imported else {}
        items = [documented.get(component, item) for component, item in imported]
        # A Python goes with the framework that a sentence names.
        goes_on = any(item.prose and heads[item.name]["framework"] for item in items)
        if PYTHON in documented and goes_on and PYTHON not in components:
            items.append(documented[PYTHON])
        wanted = {PYTHON, *components, *(component for component, _ in imported)}
        items += [use.item for use in tightest(self.index, self.modules.uses, wanted)]
        if items:
            self.weak |= {id(item) for item in items}
            self.extend(items)

    def optional(self) -> frozenset[str]:
        """The packages that extras alone ask for."""
        environments = (e for manifest in self.manifests for e in manifest.environments)
        named = {called.package_name(item.name) for e in environments for item in e.items}
        return frozenset(named - {called.package_name(item.name) for item in self.items})

    def compiled(self) -> Iterator[str]:
        """The folders with a setup.py that compiles code of the repository with torch."""
        for path in self.paths:
            folder, name = os.path.split(os.path.relpath(path, self.path))
            if name != "setup.py" or not all(map(self.counts, folder.split(os.sep))):
                continue
            try:
                text = files.read_file(os.path.normpath(path), self.path).text
            except ManifestError:
                continue
            if _EXTENSION.search(text):
                yield folder.replace(os.sep, "/") or "."

    def keep(self) -> Iterator[tuple[str, str]]:
        """The releases of lock files at the top that the matrix knows."""
        packages = self.index.packages()
        for name in _LOCKS if os.path.isdir(self.path) else ():
            path = os.path.normpath(os.path.join(self.path, name))
            if not os.path.isfile(path):
                continue
            try:
                body = toml.parse(
                    files.read_file(path, self.path).text, path, ManifestError, "the file"
                )
            except ManifestError as error:
                self.errors.append(error)
                continue
            self.locks.append(path)
            entries = body.get("package", body.get("packages", []))
            for entry in entries if isinstance(entries, list) else ():
                fields = entry if isinstance(entry, dict) else {}
                component = packages.get(str(fields.get("name")), "")
                release = str(fields.get("version", "")).partition("+")[0]
                if component in self.index.header["components"] and (
                    release in self.index.scale(component).versions
                ):
                    yield component, release

    def case(self) -> RepositoryCase:
        """All that was read."""
        lines = [*filter(None, map(self.line, self.parts)), *self.missing(), *self.beyond()]
        lines = [line for line in lines if line.component not in self.outside]
        # What a constraint bounds, or a later line replaces, is no further requirement.
        names = {line.package for line in lines} | {line.component for line in lines}
        used = {id(line.part.item) for line in lines}
        rest = [item for item in self.items if not item.bounds and id(item) not in used]
        by_package = [(called.package_name(item.name), item) for item in rest]
        bundled = [item for package, item in by_package if called.is_bundled(package, names)]
        rest = [i for package, i in by_package if package not in names and i not in bundled]
        addresses = [entry for entry in self.unread if "://" in entry.text.text]
        prose = (item.text.source.path for item in self.items if item.prose)
        return RepositoryCase(
            files=tuple(
                dict.fromkeys((*(file.path for m in self.manifests for file in m.sources), *prose))
            ),
            lines=tuple(sorted(lines, key=self.order)),
            unread=(
                *(entry for entry in self.unread if entry not in addresses),
                *(NotRead(text=item.text, why=_BUNDLED) for item in bundled),
            ),
            unchecked=(
                *(item.requirement for item in rest if item.kind == PIP),
                *(_EDITABLE.sub("", entry.text.text) for entry in addresses),
            ),
            conda=tuple(item.text.text for item in rest if item.kind == CONDA),
            keep=tuple(self.keep()),
            locks=tuple(self.locks),
            packages=frozenset(called.package_name(item.name) for item in self.items),
            optional=self.optional(),
            modules=self.modules,
            compiled=tuple(self.compiled()),
            errors=tuple(self.errors),
        )

    def line(self, part: RequestedPart) -> CaseLine | None:
        """The line of a part; None for what an image or the distribution brings beside the packages."""
        name = part.component
        of_conda = part.item.kind == CONDA and name in TOOLKIT
        # In an environment of conda it installs the rest, at whatever release goes with the Python.
        if part.item.kind == CONDA and name == "pip":
            return None
        if not self.is_package(name) and name != PYTHON and not of_conda:
            return None
        free, item = self.free(part), part.item
        named = item.kind != PIP or item.indexes or "+" in item.specifier
        asks = self.labelled(part.asks) if named else free
        return CaseLine(part=part, asks=asks, free=free, weak=id(item) in self.weak)

    def is_package(self, name: str) -> bool:
        """True for a component that pip installs; tools of a build are known by what they build."""
        packages = self.index.packages().values()
        is_tool = name in TOOLKIT or self.index.header["components"][name]["way"] == "source"
        return name in packages and name != PYTHON and not is_tool

    def labelled(self, asks: Sequence[Ask]) -> tuple[Ask, ...]:
        """Lines of a request with their words, which are wanted or, as a Python, present."""
        option = "" if self.is_package(asks[0].component) else "with"
        return tuple(ask.replace(text=word(asks[0]), option=option) for ask in asks)

    def free(self, part: RequestedPart) -> tuple[Ask, ...]:
        """The lines of a request of a part on any index: its package may be one of several of a component."""
        item, own = part.item, part.asks[0]
        extras = f"[{','.join(item.extras)}]" if item.extras else ""
        names, name = Names(self.index), called.package_name(item.name)
        words = (f"{name}{extras}", name) if item.kind == PIP else ()
        builds = next(filter(None, map(names.known_asks, words)), [])
        return self.labelled([own, *builds[1:]])

    def missing(self) -> Iterator[CaseLine]:
        """Lines about releases that the index does not have."""
        for release in (release for requested in self.requested for release in requested.missing):
            part = release.part
            if not release.near:
                # The answer names the index of each build.
                yield CaseLine(part=part, asks=self.labelled(part.asks), free=self.free(part))
                continue
            free = self.free(part)
            yield CaseLine(part=part, asks=free, free=free, refusal=release.reason)

    def beyond(self) -> Iterator[CaseLine]:
        """Lines about releases that the matrix does not know."""
        by_text = {id(item.text): item for item in self.items if item.kind in (PIP, CONDA, PYTHON)}
        for entry in (entry for requested in self.requested for entry in requested.unknown):
            item = by_text.get(id(entry.text))
            name = self.component(item) if item else ""
            if item is None or not name or not (self.is_package(name) or name == PYTHON):
                continue
            # A local version names a build, of a release that is not known either.
            selector = _LOCAL.sub("", item.specifier.replace(" ", ""))
            try:
                self.index.scale(name).parse(selector)
            except SelectorError:
                self.unread.append(entry)
                continue
            if self.is_outside(name, selector):
                self.outside.add(name)
                continue
            ask = Ask(component=name, selector=selector, text="")
            part = RequestedPart(
                component=name, asks=(ask,), text=item.text.text, item=item, version=item.version
            )
            free = self.free(part)
            yield CaseLine(part=part, asks=free, free=free, refusal=entry.why, open=True)

    def is_outside(self, name: str, selector: str) -> bool:
        """True for releases of Python alone before or behind all known ones: no fact asks for another release."""
        if self.index.header["components"][name]["code"] != PURE:
            return False
        return worlds.later(self.index, name, selector) or worlds.earlier(
            self.index, name, [selector]
        )

    def component(self, item: Item) -> str:
        """The component of a package of the index or of conda."""
        name = called.package_name(item.name)
        known = called.of_conda(name) if item.kind == CONDA else ""
        return known or Names(self.index).called(name)

    def order(self, line: CaseLine) -> int:
        """Frameworks are chosen first, whatever the order of a file."""
        return 0 if self.index.header["components"][line.component]["framework"] else 1
