"""The families of harvested facts (matrix/families.yaml), and the package indexes that they read."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from contextlib import suppress
from datetime import date
from typing import Any

from toolmatrix.errors import MatrixError, NothingMatched, Position
from toolmatrix.factbase import pieces, yamlfile
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.harvest import missing
from toolmatrix.resources import families_path
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    from toolmatrix.harvest.transport import Session

    _Item = TypeVar("_Item")
    _Result = TypeVar("_Result")


# GCC since its fifth, Clang since its fourth.
SINGLE = {"gcc": 5, "clang": 4}


def series(component: str, major: int, minor: int) -> str:
    """The series of a release, as in the matrix."""
    single = SINGLE.get(component)
    return str(major) if single is not None and major >= single else f"{major}.{minor}"


def counted(compiler: str, oldest: int, newest: int) -> list[tuple[int, int]]:
    """The series of a compiler from one major version to another, as two numbers each, the oldest first."""
    single = SINGLE[compiler]
    return [
        *((major, minor) for major in range(oldest, single) for minor in range(10)),
        *((major, 0) for major in range(single, newest + 1)),
    ]


SCHEMA = "toolmatrix.families/1"
THREADS = 8
"""Requests to an index at a time."""

# The modules of this package that each read one kind of source.
KINDS = (
    *("compilers", "distributions", "independent", "index", "listing"),
    *("published", "toolkits", "tree", "wheels"),
)
# The kinds that are read at a path of the user.
LOCAL_KINDS = ("compilers", "distributions", "listing", "tree")

FAMILIES = yamlfile.NodeKind(
    noun="the file of families",
    error=MatrixError,
    help="docs/harvest.md describes the keys of each kind of family",
    missing="check the path",
)


class Family(Value):
    """One family: its name, the kind of its source, and the keys that this kind reads."""

    name: str
    kind: str
    about: str
    node: YamlNode

    @property
    def fields(self) -> Mapping[str, YamlNode]:
        """The keys of the family, each value with its position."""
        return self.node.fields or {}

    def only(
        self, required: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> Mapping[str, YamlNode]:
        """The keys of the family, after refusing unknown and missing ones."""
        common = ("kind", "about", *required)
        return self.node.only(f"family `{self.name}`", (*common, *optional), common)


class HarvestContext(Value):
    """What a harvester needs besides its family."""

    session: Session
    day: date
    # The component for each package of an index, by its normalized name (PEP 503).
    packages: Mapping[str, str] = {}
    # The components among them that requirements limit and do not bring.
    limited: frozenset[str] = frozenset()
    # Patterns of the libraries that belong to a component.
    sonames: Mapping[str, str] = {}
    # Components whose device code another family reads out of their wheels.
    opened: frozenset[str] = frozenset()
    # Components of the matrix, None if the file need not declare its own.
    components: frozenset[str] | None = None
    # The Python series of the matrix, the oldest first.
    pythons: Sequence[str] = ()
    # The line and accelerator of each build on the default channel by release and machine, for each component.
    lines: Mapping[str, Mapping[tuple[str, str], tuple[str, str]]] = {}
    # A path to read instead of the source itself, "" for none.
    place: str = ""
    env: Mapping[str, str] = {}
    # Called with how many are read, and the total.
    progress: Callable[[int, int], None] = lambda _done, _total: None


def families(path: str = "") -> dict[str, Family]:
    """All families by name. Raises MatrixError."""
    fields = _read(path)
    known = {}
    for name, node in fields["families"].mapping("families").items():
        keys = node.mapping(f"family `{name}`")
        for needed in ("kind", "about"):
            if needed not in keys:
                node.fail(f"family `{name}` has no `{needed}`", expected=f"`{needed}:`")
        known[name] = Family(
            name=name,
            kind=keys["kind"].choice("kind", KINDS),
            about=pieces.text(keys, "about"),
            node=node,
        )
    return known


def packages(path: str = "") -> dict[str, str]:
    """The component for each package of an index that a requirement may name. Raises MatrixError."""
    known: dict[str, str] = vocabulary(path)["packages"]
    return known


def called(own: Iterable[str], builds: Mapping[str, str]) -> dict[str, str]:
    """The component of each package: `own` are called as their packages, and `builds` are those of builds.

    What is `by-build` means nothing outside its family, and is left out. Raises MatrixError.
    """
    by_build = {
        component
        for family in _index_families(_read(""))
        if pieces.flag(family, "by-build")
        for component in _components(family).values()
    }
    return {**{name: name for name in own if name not in by_build}, **builds, **packages()}


def vocabulary(path: str = "") -> dict[str, Any]:
    """What names in requirements and binaries mean, by the fields of HarvestContext. Raises MatrixError.

    Of `limited` a program need not come from the index, and what is `by-request` is part of an answer only where a
    request names it. What is `by-build` means nothing outside its family: builds of one release require different
    releases of it, and those of the default index do not speak for the others.
    """
    fields = _read(path)
    named, programs, sonames = (
        {name: node.string("a component") for name, node in pieces.entries(fields, key).items()}
        for key in ("packages", "programs", "sonames")
    )
    own = [
        (pieces.flag(family, "by-request"), _components(family))
        for family in _index_families(fields)
        if not pieces.flag(family, "by-build")
    ]
    known = {**named, **programs}
    for _, components in own:
        known |= components
    by_request = (name for flag, components in own if flag for name in components.values())
    return {
        "packages": known,
        "limited": frozenset((*programs.values(), *by_request)),
        "sonames": sonames,
        "opened": frozenset(_read_by_archs(fields)),
    }


def _read_by_archs(fields: Mapping[str, YamlNode]) -> Iterator[str]:
    """The components of the families that read `archs` in wheels."""
    for family in fields["families"].mapping("families").values():
        own = family.fields or {}
        if (
            "kind" in own
            and own["kind"].text == "wheels"
            and "archs" in pieces.entries(own, "columns")
        ):
            yield own["component"].string("a component")


def _index_families(fields: Mapping[str, YamlNode]) -> Iterator[Mapping[str, YamlNode]]:
    """The fields of each family whose packages are components; in other kinds they are sources."""
    for family in fields["families"].mapping("families").values():
        own = family.fields or {}
        if "kind" in own and own["kind"].text == "index":
            yield own


def _components(own: Mapping[str, YamlNode]) -> dict[str, str]:
    return {
        name: pieces.text(node.fields or {}, "component", name)
        for name, node in pieces.entries(own, "packages").items()
    }


def _read(path: str) -> dict[str, YamlNode]:
    root = yamlfile.read(path or families_path(), of=FAMILIES)
    known = ("schema", "packages", "programs", "sonames", "families")
    fields = root.only("the file of families", known, ("schema", "families"))
    fields["schema"].choice("schema", (SCHEMA,))
    return fields


def select_families(known: Mapping[str, Family], names: Sequence[str]) -> list[Family]:
    """The named families; without names, all that need no path and are not `by-name`. Raises NothingMatched."""
    for name in names:
        if name not in known:
            raise NothingMatched(
                f"unknown family `{name}`", expected="one of " + ", ".join(sorted(known))
            )
    if names:
        return [known[name] for name in names]
    return [
        family
        for family in known.values()
        if family.kind not in LOCAL_KINDS and not pieces.flag(family.fields, "by-name")
    ]


def line_components(families: Sequence[Family]) -> set[str]:
    """The components whose lines the builds of packages follow."""
    return {
        line.text or ""
        for family in families
        # In other kinds, packages are sources.
        if family.kind == "index"
        for package in pieces.entries(family.fields, "packages").values()
        if (line := (package.fields or {}).get("line")) is not None
    }


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The facts of one family. Raises ToolmatrixError."""
    # Import only the module that is needed. `kind` is one of KINDS, so a file of families cannot name another.
    module = __import__(f"toolmatrix.harvest.{family.kind}", fromlist=["harvest"])
    document: dict[str, Any] = module.harvest(family, context)
    return document


def run_parallel(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    threads: int = THREADS,
) -> list[_Result]:
    """The results of a function for each item, in order, from several threads."""
    from concurrent.futures import ThreadPoolExecutor

    items = list(items)
    results = []
    with ThreadPoolExecutor(threads) as workers:
        try:
            for result in workers.map(function, items):
                results.append(result)
                progress(len(results), len(items))
        except BaseException:
            # Finished downloads stay in the cache; the others are not started.
            workers.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def plain_value(node: YamlNode) -> Any:
    """A value of a family as in a fact file: text, lists and mappings."""
    if node.fields is not None:
        return {name: plain_value(child) for name, child in node.fields.items()}
    return node.text if node.items is None else [plain_value(child) for child in node.items]


def release_attributes(family: Family, attribute: str) -> dict[str, str]:
    """An attribute of the releases in the fact file that a family names under `releases`. Raises MatrixError."""
    name = family.fields["releases"].string("releases")
    path = os.path.join(os.path.dirname(family.node.file), name)
    attributes = {
        version: text
        for group in pieces.items(yamlfile.read(path).mapping("the fact file"), "releases")
        for version, node in pieces.entries(group.mapping("a list"), "versions").items()
        if (text := pieces.text(node.mapping("a release"), attribute))
    }
    if not attributes:
        raise MatrixError(
            f"no release has the attribute `{attribute}`",
            where=Position(path),
            expected=f"releases with `{attribute}:`",
        )
    return attributes


class Indexes(Value):
    """Addresses of package indexes, in the order in which they are read."""

    urls: tuple[str, ...]
    # A file of certificates, "" for those of the environment.
    certificates: str = ""
    proxy: str = ""


def indexes(env: Mapping[str, str]) -> Indexes:
    """The indexes of `PIP_*` and `UV_*` variables, else of pip's own files, else the public one."""
    try:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT
    except ImportError:
        raise missing("pypi-simple") from None
    pip = _pip(env)
    first = (
        env.get("PIP_INDEX_URL", "")
        or env.get("UV_DEFAULT_INDEX", "")
        or env.get("UV_INDEX_URL", "")
        or pip.get("index-url", "")
        or PYPI_SIMPLE_ENDPOINT
    )
    more = " ".join(
        (env.get("UV_INDEX", ""), env.get("UV_EXTRA_INDEX_URL", ""), pip.get("extra-index-url", ""))
    )
    # An index of uv may have a name; an address may also have `=` in its query.
    urls = [
        url.partition("=")[2] if "=" in url.partition("://")[0] else url
        for url in (first, *more.split())
    ]
    certificates = pip.get("cert", "") or env.get("SSL_CERT_FILE", "")
    return Indexes(
        urls=tuple(dict.fromkeys(urls)),
        certificates=certificates if os.path.exists(certificates) else "",
        proxy=pip.get("proxy", ""),
    )


def open_session(env: Mapping[str, str]) -> tuple[Session, tuple[str, ...]]:
    """A session for the package indexes that pip is configured for, and their addresses. Raises ToolMissing."""
    from toolmatrix.harvest.transport import Session

    where, session = indexes(env), Session()
    session.trust(where.certificates, where.proxy)
    return session, where.urls


def index_urls(context: HarvestContext) -> tuple[str, ...]:
    """The addresses of the package indexes of a harvest, for which its session is set up."""
    from pathlib import Path

    where = indexes(context.env)
    context.session.trust(where.certificates, where.proxy)
    if not context.place:
        return where.urls
    return (context.place if "://" in context.place else Path(context.place).absolute().as_uri(),)


def _pip(env: Mapping[str, str]) -> dict[str, str]:
    """The settings of pip by their long names, its variables before its files.

    Read as pip documents it (Configuration: location, precedence, naming), but without pip: it takes a third of a
    second to start, and environments of uv lack it.
    """
    files = RawConfigParser()
    for path in _pip_files(env):
        with suppress(OSError, ConfigParserError, UnicodeDecodeError):
            files.read(path, encoding="utf-8")
    settings: dict[str, str] = {}
    # The section of `pip install` has precedence.
    for section in ("global", "install"):
        if files.has_section(section):
            settings |= {name.replace("_", "-"): text for name, text in files.items(section)}
    variables = {name[4:]: text for name, text in env.items() if name.startswith("PIP_") and text}
    return settings | {name.lower().replace("_", "-"): text for name, text in variables.items()}


def _pip_files(env: Mapping[str, str]) -> list[str]:
    """The files of settings that pip reads on Linux; later ones have precedence."""
    named = env.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    folders = env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep)
    paths = [os.path.join(folder, "pip", "pip.conf") for folder in folders if folder]
    paths.append("/etc/pip.conf")
    if home := env.get("HOME", ""):
        own = env.get("XDG_CONFIG_HOME", "") or os.path.join(home, ".config")
        paths += [os.path.join(home, ".pip", "pip.conf"), os.path.join(own, "pip", "pip.conf")]
    return [*paths, os.path.join(sys.prefix, "pip.conf"), *([named] if named else [])]
