"""Replacements for the network: the mirrors that a user named, and a folder beside the files.

A mirror replaces the beginning of addresses, and the longest beginning wins. Rendered files do not contain the
addresses that tools look up by themselves, such as git submodules and downloads of Bazel: mirrors get into the settings
of these tools (provisions, `mirrors`).

In the folder a download lies below the name of its host and by its path there; wheels lie in a folder for each image.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from toolmatrix.errors import RenderError, UsageError
from toolmatrix.factbase.versions import Scale
from toolmatrix.rendering import quote
from toolmatrix.rendering.model import ImagePlan
from toolmatrix.resources import load_yaml, of_package
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.lockfile.model import LockedTarget
    from toolmatrix.recipes.model import Download, MirrorSetting, Repository
    from toolmatrix.rendering.model import Choices

    _Kind = TypeVar("_Kind", "Conda", "Spack")

    Rewrite = Callable[[str], str]


class Action(Value):
    """An action of GitHub at one commit, with the tag that people know it by."""

    uses: str
    commit: str
    tag: str
    source: str


class Devices(Value):
    """How Kubernetes knows the GPUs of an accelerator: as a resource, and by labels of a node, "" where none is known.

    `driver` and `device` are the beginnings of labels for the numbers of the driver's release and of the GPU.
    """

    resource: str
    driver: str = ""
    device: str = ""
    source: str


class Conda(Value):
    """How a component is packaged by conda-forge; `note` says what is lacking there."""

    component: str
    when: str = "*"
    scheme: str = "pep440"
    packages: Sequence[str] = ()
    note: str = ""
    source: str


class Spack(Value):
    """How a component is packaged by Spack; `at` is where, below the folder that the source names.

    `gpu` are the accelerators that it has a variant for; a `compiled` package takes the compiler of the answer.
    """

    component: str
    when: str = "*"
    scheme: str = "pep440"
    package: str = ""
    gpu: Sequence[str] = ()
    compiled: bool = False
    note: str = ""
    source: str
    at: str


def runner(service: str, platform: str) -> str:
    """The name that a service has for machines of a platform; raises RenderError for an unknown platform."""
    known = _read()["runners"]
    if platform not in known:
        raise RenderError(
            f"no known {service} runner for this platform",
            expected=" or ".join(known),
            found=f"`{ascii(platform)[1:-1]}`",
        )
    return next(
        str(machine["label"]) for machine in known[platform] if machine["service"] == service
    )


def action(name: str) -> Action:
    """An action by the name that the formats know it by."""
    return Action(**_read()["actions"][name])


def devices(accelerator: str) -> Devices | None:
    """The GPUs of an accelerator, if it has any."""
    entry = _read()["devices"].get(accelerator)
    return Devices(**entry) if entry else None


def engine() -> tuple[str, str]:
    """The images of Docker's client and of its engine as a service."""
    entry = _read()["engine"]
    return entry["cli"], entry["service"]


def conda(locked: LockedTarget) -> Iterator[tuple[str, str, Conda]]:
    """The components and releases of an answer that conda-forge has anything for, each with its packaging."""
    return _packaged(Conda, "conda", locked)


def spack(locked: LockedTarget) -> Iterator[tuple[str, str, Spack]]:
    """The components and releases of an answer that Spack has anything for, each with its packaging."""
    return _packaged(Spack, "spack", locked)


def notes(packaged: Iterable[tuple[str, str, Conda | Spack]]) -> Iterator[str]:
    """A line for each component that a channel lacks, wholly or in part."""
    return (f"{name} {version}: {entry.note}" for name, version, entry in packaged if entry.note)


def bazel(option: str, version: str) -> bool:
    """True if a Bazel of that release is known to take an option that earlier ones refuse."""
    return any(
        Scale("pep440", (version,)).select(entry["when"])
        for entry in _read()["bazel"]
        if entry["option"] == option
    )


def _packaged(
    kind: type[_Kind], channel: str, locked: LockedTarget
) -> Iterator[tuple[str, str, _Kind]]:
    entries = [kind(**entry) for entry in _read()[channel]]
    for name, component in sorted(locked.components.items()):
        for entry in (entry for entry in entries if entry.component == name):
            if Scale(entry.scheme, (component.version,)).select(entry.when):
                yield name, component.version, entry
                break


@lru_cache(maxsize=1)
def _read() -> Mapping[str, Any]:
    tables: Mapping[str, Any] = load_yaml(of_package("rendering", "outside.yaml"))
    return tables


DISTDIR = "/mnt/distdir"
"""Where a build finds archives that its tools would fetch by themselves: `--distdir` of Bazel."""
ARCHIVES = "distdir"
"""Where they lie, below the folder, each by its own name."""

_STRANGE = re.compile(r"[^A-Za-z0-9._+@/-]")


def check_folder(folder: str) -> str:
    """A folder below that of the files; raises RenderError for another place."""
    first = folder.partition("/")[0]
    if folder and (first in ("", ".", "..") or posixpath.normpath(folder) != folder):
        raise RenderError(
            "the folder of fetched files must lie beside the Dockerfiles",
            expected="a plain path below their directory, such as `fetched`",
            found=f"`{ascii(folder)[1:-1]}`",
        )
    return str(quote.plain("path", folder)) if folder else ""


def local_path(url: str) -> str:
    """Where the file of an address lies, below the folder; raises RenderError for one that would lie elsewhere."""
    parts = urlsplit(url)
    path = _STRANGE.sub("_", parts.netloc + parts.path + (f"?{parts.query}" if parts.query else ""))
    return check_folder(path)


def has_archives(image: ImagePlan) -> bool:
    """True if a tool of an image is set up to look for archives in the folder."""
    return any(DISTDIR in line for _, line in image.mirrored)


def wheel_folder(image: ImagePlan) -> str:
    """Where the wheels of an image lie, below the folder."""
    return f"wheels/{quote.plain('release', image.name)}"


_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~+%@=&?,-]*)*")
# Characters of an address that are special in a Java pattern; brackets make them literal.
_SIGN = re.compile(r"([.+?])")


def parsed(texts: Iterable[str]) -> dict[str, str]:
    """NEW by OLD of each `OLD=NEW`, both ending with a slash.

    Raises UsageError for a text of another form, and RenderError for what is no address.
    """
    mirrors = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UsageError(
                f"`--mirror {text}` cannot be read",
                expected="`--mirror OLD=NEW`, both addresses",
                found=f"`{text}`",
            )
        mirrors[_folder(old)] = _folder(new)
    return mirrors


def _folder(text: str) -> str:
    return str(quote.plain("url", text)).rstrip("/") + "/"


def mirrored(url: str, mirrors: Mapping[str, str]) -> str:
    """The address at the mirror of its longest known beginning, or as it is."""
    known = max((old for old in mirrors if (url + "/").startswith(old)), key=len, default="")
    return mirrors[known] + url[len(known) :] if known else url


def with_mirrors(
    image: ImagePlan, choices: Choices, settings: Sequence[MirrorSetting]
) -> ImagePlan:
    """An image whose addresses are at their mirrors; `settings` are those of tools that it holds."""
    mine = [setting for setting in settings if setting.package in ("", *image.packages)]
    # An image without steps runs no tool that fetches.
    local = [setting for setting in mine if choices.fetched and image.steps and setting.folder]
    folders = tuple((each.to, each.folder.replace("<folder>", DISTDIR)) for each in local)
    image = image.replace(mirrored=folders)
    if not choices.mirrors:
        return image
    moved = _with_addresses(image, lambda url: mirrored(url, choices.mirrors))
    return moved.replace(mirrored=(*_lines(choices.mirrors, mine), *folders))


def addresses(image: ImagePlan) -> list[str]:
    """Every address that the files of an image name."""
    urls: list[str] = []

    def collect(url: str) -> str:
        urls.append(url)
        return url

    _with_addresses(image, collect)
    return urls


def _with_addresses(image: ImagePlan, replace: Rewrite) -> ImagePlan:
    def text(line: str) -> str:
        return _ADDRESS.sub(lambda match: replace(match[0]), line)

    def each(lines: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(text, lines))

    def downloads(files: Iterable[Download]) -> tuple[Download, ...]:
        return tuple(file.replace(url=text(file.url)) for file in files)

    def repository(known: Repository) -> Repository:
        uri = text(known.uri)
        # apt identifies a preferred repository by its host.
        moved = known.origin == urlsplit(known.uri).hostname
        origin = (urlsplit(uri).hostname or "") if moved else known.origin
        return known.replace(uri=uri, key_url=text(known.key_url), origin=origin)

    runtime, closure = image.runtime, image.closure
    if closure:
        question = closure.asked.replace(options=each(closure.asked.options))
        packages = {
            name: package.replace(url=text(package.url))
            for name, package in closure.packages.items()
        }
        closure = closure.replace(asked=question, packages=packages)
    return image.replace(
        downloads=downloads(image.downloads),
        steps=tuple(
            step.replace(run=each(step.run), downloads=downloads(step.downloads))
            for step in image.steps
        ),
        repositories=tuple(map(repository, image.repositories)),
        runtime=runtime.replace(repositories=tuple(map(repository, runtime.repositories))),
        run=each(image.run),
        pip=each(image.pip),
        builds=tuple(map(each, image.builds)),
        closure=closure,
        snapshot=image.snapshot and image.snapshot.replace(lines=each(image.snapshot.lines)),
    )


def _lines(
    mirrors: Mapping[str, str], settings: Iterable[MirrorSetting]
) -> Iterator[tuple[str, str]]:
    # Some tools take the first match, so the longest comes first.
    ordered = sorted(mirrors, key=lambda old: (-len(old), old))
    for setting in settings:
        if setting.head:
            yield setting.to, setting.head
        for old in ordered if setting.each else ():
            yield setting.to, _fill(setting.each, old, mirrors[old])


def _fill(text: str, old: str, new: str) -> str:
    # Bazel keeps the scheme of an address where the mirror names none.
    scheme, _, bare = new.partition("://")
    values = {
        "old": old,
        "new": new,
        "old_pattern": _SIGN.sub(r"[\1]", old.partition("://")[2]),
        "new_place": bare if old.startswith(scheme + ":") else new,
    }
    for name, value in values.items():
        text = text.replace(f"<{name}>", value)
    return text
