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
    from toolmatrix.lock.model import LockedClosure
    from toolmatrix.recipes.model import BuildStep, Download, MirrorSetting, Repository
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


def at(url: str, mirrors: Mapping[str, str]) -> str:
    """The address at the mirror of its longest known beginning, or as it is."""
    known = max((old for old in mirrors if (url + "/").startswith(old)), key=len, default="")
    return mirrors[known] + url[len(known) :] if known else url


def applied(image: ImagePlan, choices: Choices, settings: Sequence[MirrorSetting]) -> ImagePlan:
    """An image whose addresses are at their mirrors; `settings` are those of tools that it holds."""
    mirrors = choices.mirrors
    mine = [setting for setting in settings if setting.package in ("", *image.packages)]
    # An image without steps runs no tool that fetches.
    from_folder = tuple(_from_folder(mine)) if choices.fetched and image.steps else ()
    if not mirrors:
        return image.replace(mirrored=from_folder)

    def text(line: str) -> str:
        return _ADDRESS.sub(lambda match: at(match[0], mirrors), line)

    def each(lines: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(text, lines))

    runtime = image.runtime
    return image.replace(
        downloads=_downloads(image.downloads, text),
        steps=tuple(_step(step, text) for step in image.steps),
        repositories=_repositories(image.repositories, text),
        runtime=runtime.replace(repositories=_repositories(runtime.repositories, text)),
        run=each(image.run),
        pip=each(image.pip),
        builds=tuple(map(each, image.builds)),
        closure=image.closure and _closure(image.closure, text),
        snapshot=image.snapshot and image.snapshot.replace(lines=each(image.snapshot.lines)),
        mirrored=(*_lines(mirrors, mine), *from_folder),
    )


def addresses(image: ImagePlan) -> Iterator[str]:
    """Every address that the files of an image name."""
    for file in image.all_downloads:
        yield file.url
    for repository in (*image.repositories, *image.runtime.repositories):
        yield from (repository.key_url, repository.uri)
    closure = image.closure
    texts = [*(image.snapshot.lines if image.snapshot else ())]
    texts += [
        *image.run,
        *image.pip,
        *(line for step in image.steps for line in step.run),
    ]
    texts += [word for words in image.builds for word in words]
    texts += (
        [*closure.asked.options, *(package.url for package in closure.packages.values())]
        if closure
        else []
    )
    for text in texts:
        yield from _ADDRESS.findall(text)


def _downloads(files: Iterable[Download], text: Rewrite) -> tuple[Download, ...]:
    return tuple(file.replace(url=text(file.url)) for file in files)


def _step(step: BuildStep, text: Rewrite) -> BuildStep:
    return step.replace(run=tuple(map(text, step.run)), downloads=_downloads(step.downloads, text))


def _repositories(repositories: Iterable[Repository], text: Rewrite) -> tuple[Repository, ...]:
    return tuple(_repository(repository, text) for repository in repositories)


def _repository(repository: Repository, text: Rewrite) -> Repository:
    uri = text(repository.uri)
    # apt identifies a preferred repository by its host.
    moved = repository.origin == urlsplit(repository.uri).hostname
    origin = (urlsplit(uri).hostname or "") if moved else repository.origin
    return repository.replace(uri=uri, key_url=text(repository.key_url), origin=origin)


def _closure(closure: LockedClosure, text: Rewrite) -> LockedClosure:
    question = closure.asked
    packages = {
        name: package.replace(url=text(package.url)) for name, package in closure.packages.items()
    }
    return closure.replace(
        asked=question.replace(options=tuple(map(text, question.options))), packages=packages
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


def _from_folder(settings: Iterable[MirrorSetting]) -> Iterator[tuple[str, str]]:
    for setting in settings:
        if setting.folder:
            yield setting.to, setting.folder.replace("<folder>", DISTDIR)


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
