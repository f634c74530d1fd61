"""Every text of a job, one after the other in the hands of somebody hostile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.rendering import parsers
from tests.rendering.jobs import index, lock
from toolmatrix.errors import ToolmatrixError
from toolmatrix.factbase import yamlfile
from toolmatrix.lockfile.model import Lock, LockedClosure, LockedPackage, PackageQuestion
from toolmatrix.recipes import read
from toolmatrix.recipes.model import Recipe
from toolmatrix.rendering import formats
from toolmatrix.rendering.model import Job
from toolmatrix.value import Value

TEXTS = (
    "1.0; rm -rf /",
    "x\nUSER root",
    "x\nEOF\nUSER root\n",
    "x\r\nRUN id\r\n",
    "$(id)",
    "`id`",
    "${HOME}",
    "a'b",
    'a"b',
    'a" b="c',
    "a\\",
    "a\\\nUSER root",
    "*/",
    "--",
    " --privileged",
    "}}",
    "{{ job }}",
    "{% raw %}",
    "${{ secrets.X }}",
    "${CACHE}",
    "%{ if x }",
    "x\u2028USER root",
    "x\u2029y",
    "x\u0085y",
    "x\x00y",
    "x\x1b[2Jy",
    "x\u202ey",
    " # x",
    "#",
    ": x",
    "- x",
    "&x",
    "!x",
    "@x",
    "../x",
    "/../x",
    "%post",
    "\n%post\nid",
    "\nbootstrap: docker",
    "|| id",
    "&& id",
    "> /x",
    "<<EOF",
    "~",
    "*",
    "%s%n",
    "x/e id;",
    "=x",
    ", x",
    "escape=`",
    "null",
    "\ud800",
    ",source=/",
    "x' y",
    "\tx",
)
"""What people try: in shells, Dockerfiles, templates, YAML, expressions of CI services, paths and terminals."""

RECIPE = """\
schema: toolmatrix.recipe/1
name: mine
about: what nobody builds
builds: numpy
sources:
  here: {title: a page, at: somewhere, read: 2026-11-20}
needs: [python]
provisions:
  - component: gcc
    packages: ["gcc-{gcc}"]
    runtime: [libstdc++6]
    areas: [contrib]
    repositories:
      - {name: more, key_url: https://example.org/key, fingerprint: CA8BB4727A47B4D09B4EE8969386B48A1A693C5C,
         uri: https://example.org/deb, suite: stable, components: [main], origin: example.org}
    downloads:
      - {url: https://example.org/tool, to: /usr/local/bin/tool, mode: "0755"}
      - {url: https://example.org/lib.tar, to: /opt/lib, unpack: true, of: gcc,
         sha256: {"{gcc}": 70dc0bee198a4c3d332925a32d464d9036a831977501f66d4996854ad4e4fc0d}}
    pip: ["wheel==1"]
    run: [echo hello]
    links: {/usr/local/bin/cc: "/usr/bin/gcc-{gcc}"}
    path: [/opt/lib/bin]
    env: {MODE: fast and loud}
    probes:
      - {run: [gcc, -dumpversion], after: "version ", wanted: "{gcc}", match: exact, runtime: true}
    source: here
steps:
  - {name: fetch-it, stage: fetch, downloads: [{url: https://example.org/source, to: /work/source}], source: here}
  - {name: build-it, stage: build, run: [make all], env: {JOBS: "2"}, workdir: /work/source, packages: [make],
     source: here}
  - {name: pack-it, stage: package, run: [cp out /opt/out], source: here}
options:
  - {name: debug, about: more output, env: {DEBUG_FLAGS: "--dump=all --verbose"}, source: here}
"""
ARTIFACTS = "artifacts: [/opt/out]\ncarries: [/work/out]\n"


def recipe(text: str) -> Recipe:
    """A recipe from its text."""
    return read.parse(yamlfile.parse(text.encode(), "mine.yaml", read.RECIPE_FILE), index())


def flagged(name: str, target: str) -> Lock:
    """A lock whose target has a flag and a variable of every kind."""
    held = lock(name)
    environment = held.environments["default"]
    part = environment.targets[target]
    flags = part.flags.replace(
        cflags=("-fsigned-char", "-O2"),
        cxxflags=("-fsigned-char", "-std=gnu++17"),
        nvcc=("-lineinfo",),
        hipcc=("-fgpu-rdc",),
        env={"CUDAHOSTCXX": "g++-7"},
    )
    targets = {**environment.targets, target: part.replace(flags=flags)}
    return held.replace(environments={"default": environment.replace(targets=targets)})


def packaged(held: Lock, target: str, *requirements: str) -> Lock:
    """A lock with Python packages of every kind for a target: with a file, with two, and at an address."""
    environment = held.environments["default"]
    packages = {
        "lib": LockedPackage(version="1.0", files={"lib-1.0-py3-none-any.whl": "1" * 64}),
        "other": LockedPackage(
            version="2.1+cu126",
            files={f"other-2.1+cu126-cp311-cp311-{one}.whl": one * 64 for one in "ab"},
        ),
        "third": LockedPackage(
            version="3.0", files={"third.whl": "3" * 64}, url="https://example.org/third.whl"
        ),
    }
    asked = PackageQuestion(
        requirements=requirements, python="3.11", platform="aarch64-manylinux_2_36"
    )
    part = environment.targets[target].replace(
        closure=LockedClosure(asked=asked, packages=packages)
    )
    targets = {**environment.targets, target: part}
    return held.replace(environments={"default": environment.replace(targets=targets)})


class Leaf(NamedTuple):
    """A text inside a value: where it is, what it says, and how to have another in its place."""

    kind: str
    text: str
    put: Callable[[str], Any]


def leaves(value: Any, kind: str = "") -> Iterator[Leaf]:
    """Every text of a value, with the keys of its mappings."""
    if isinstance(value, str):
        yield Leaf(kind, value, lambda text: text)
    elif isinstance(value, Value):
        for field in value._fields:
            yield from _inside(
                getattr(value, field),
                f"{kind}.{field}",
                lambda new, field=field: value.replace(**{field: new}),  # type: ignore[misc]
            )
    elif isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from _inside(
                part,
                f"{kind}[]",
                lambda new, place=place: (*value[:place], new, *value[place + 1 :]),  # type: ignore[misc]
            )
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _inside(
                part,
                f"{kind}{{{name}}}" if kind.endswith("variables") else f"{kind}{{}}",
                lambda new, name=name: {**value, name: new},  # type: ignore[misc]
            )
            yield Leaf(
                f"{kind} key",
                name,
                lambda text, name=name: {  # type: ignore[misc]
                    text if one == name else one: part for one, part in value.items()
                },
            )


def _inside(part: Any, kind: str, put: Callable[[Any], Any]) -> Iterator[Leaf]:
    for leaf in leaves(part, kind):
        yield Leaf(leaf.kind, leaf.text, lambda text, inner=leaf.put: put(inner(text)))  # type: ignore[misc]


END = "zq7"
"""Stands behind a hostile text, so that it is found nowhere else."""

# Lines of shell: they may do anything, but in their place.
_CODE = re.compile(r"\.images\[\](\.steps\[\])?\.run\[\]")

_PLAIN = re.compile(r"[A-Za-z0-9._+-]*")


def kinds(job: Job) -> dict[str, Leaf]:
    """One text of each kind."""
    found: dict[str, Leaf] = {}
    for leaf in leaves(job):
        found.setdefault(leaf.kind, leaf)
    return found


def harmless(text: str) -> str:
    """A text of the same length that does nothing anywhere."""
    return "q" * len(text) + END


class Outcome(NamedTuple):
    """What one format made of a job: its files as trees, or the error by which it refused."""

    files: dict[str, Any] | None
    error: ToolmatrixError | None


def outcome(job: Job, name: str, *, code: bool = False) -> Outcome:
    """Render one format and parse every file of it; with `code` lines of shell count as they are."""
    script: Callable[[str], Any] = str if code else parsers.shell
    try:
        made = formats.known()[name].files(job)
    except ToolmatrixError as error:
        return Outcome(None, error)
    return Outcome({path: parsers.parse(path, text, script) for path, text in made.items()}, None)


def fault(
    put: Callable[[str], Job], name: str, kind: str, text: str, *, first: str = "", last: str = ""
) -> str:
    """What is wrong with a format that was given a hostile text between `first` and `last`, or nothing."""
    hostile, plain = first + text + END + last, first + harmless(text) + last
    code = _CODE.fullmatch(kind) is not None
    try:
        found = outcome(put(hostile), name, code=code)
    except parsers.Broken as broken:
        return f"cannot be parsed: {broken}"
    if found.files is None:
        return unclear(found.error)
    if _PLAIN.fullmatch(text):
        return ""
    wanted = outcome(put(plain), name, code=code)
    if wanted.files is None:
        return "was taken where a plain word is refused"
    for path in found.files:
        if not path.isprintable() or ".." in path.split("/") or path.startswith("/"):
            return f"a file outside of its directory: {path!r}"
    expected = parsers.put(wanted.files, harmless(text), text + END)
    return "" if expected == found.files else difference(expected, found.files)


def unclear(error: ToolmatrixError | None) -> str:
    """What is wrong with an error, if anything; what cannot be printed is escaped where errors are shown."""
    assert error is not None
    return "" if error.what and error.found else f"it says little: {vars(error)}"


def difference(wanted: Any, found: Any) -> str:
    """The first texts that differ."""
    left, right = list(parsers.texts(wanted)), list(parsers.texts(found))
    for one, other in zip(left, right, strict=False):
        if one != other:
            return f"{one!r} became {other!r}"
    return f"{len(left)} texts became {len(right)}"
