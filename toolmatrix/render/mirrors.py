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
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolmatrix.errors import RenderError, UsageError
from toolmatrix.render import quote
from toolmatrix.render.model import ImagePlan

if TYPE_CHECKING:
    from toolmatrix.recipes.model import Download, MirrorSetting, Repository
    from toolmatrix.render.model import Choices

    Rewrite = Callable[[str], str]


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
