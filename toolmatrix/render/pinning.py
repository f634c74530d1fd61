"""Pinning of the contents of an image: snapshots of a distribution, and a list of everything that is not pinned.

The services of Debian and Ubuntu have a folder for each time, in UTC: https://snapshot.debian.org/archive/debian and
https://snapshot.ubuntu.com. Downloads of build systems such as Bazel and CMake are not examined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from itertools import chain

from toolmatrix.errors import UsageError
from toolmatrix.recipes.model import APT
from toolmatrix.render.model import Choices, ImagePlan
from toolmatrix.value import Value

_STAMP, _DAY = "%Y%m%dT%H%M%SZ", "%Y-%m-%d"


def stamp(text: str) -> str:
    """The name of a time, of a day its beginning; nothing of nothing. Raises UsageError for another text."""
    return parsed_time(text).strftime(_STAMP) if text else ""


def epoch(text: str) -> int:
    """A time as seconds since 1970, as SOURCE_DATE_EPOCH has it. Raises UsageError."""
    return int(parsed_time(text).timestamp())


def parsed_time(text: str) -> datetime:
    """The time in a text. Raises UsageError."""
    for form in (_DAY, _STAMP):
        try:
            time = datetime.strptime(text, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
        # strptime accepts 2026-1-2 as well, which no service knows.
        if time.strftime(form) == text:
            return time
    raise UsageError(
        f"`--snapshot {text}` is not a time",
        expected="a day such as 2026-11-20, or a time of a snapshot such as 20261120T030400Z",
        found=f"`{text}`",
    )


PINNED_BY = {
    "image": "`--base IMAGE=IMAGE@sha256:...` pins an image",
    "frontend": "`--syntax-line IMAGE@sha256:...` pins the frontend of BuildKit, `--syntax-line off` uses none",
    "package": "`--snapshot DATE` uses the packages of Debian and Ubuntu as of a day",
    "unkept": "for packages outside a snapshot, name a base image that has them, with its digest, by `--base`",
    "python": "`toolmatrix lock --packages` pins the Python packages of an answer",
    "file": "a recipe may name checksums",
    "step": "in a recipe of your own, run pip with `--require-hashes` or `--no-index`",
    "git": "in a recipe of your own, check out a commit instead of a branch or tag",
}
"""How to pin something, by kind."""

# pip fetching packages in a line of shell, and the options that make it take only files with hashes, or local ones.
_PIP, _CHECKED = (
    re.compile(r"\bpip3? (?:install|wheel|download) .*"),
    ("--require-hashes", "--no-index"),
)
# Options of a build from a folder that fetches nothing.
_ALONE = ("--no-build-isolation", "--no-deps")
_FOLDER = re.compile(r" [./]\S*$")
_GIT = re.compile(r"\bgit (?:\S+ )*?(?:clone|fetch|pull)\b.*")
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_FILE = re.compile(r"\b(?:curl|wget) .*")
_SUM = re.compile(r"\bsha(?:256|384|512)sum\b")
_MANAGER = re.compile(r"\b(?:apt|apt-get|dnf|yum) (?:-\S+ )*install\b.*")


class FloatingVersion(Value):
    """Something that is not pinned; `PINNED_BY` has for its kind how it can be."""

    kind: str
    what: str


def unpinned(image: ImagePlan, choices: Choices) -> tuple[FloatingVersion, ...]:
    """Everything that is not pinned in an image, once each."""
    return tuple(
        FloatingVersion(kind=kind, what=what)
        for kind, what in dict.fromkeys(_loose(image, choices))
    )


def _loose(image: ImagePlan, choices: Choices) -> Iterator[tuple[str, str]]:
    yield from (("image", name) for name in _tags(image.from_, image.runtime.from_))
    yield from (("frontend", name) for name in _tags(choices.syntax_line))
    yield from _packages(image)
    yield from (("file", file.url) for file in image.all_downloads if not file.checksum)
    for words in () if image.closure else (*image.builds, image.pip):
        if words:
            yield "python", " ".join(("pip install", *words))
    for step in image.steps:
        for kind, match in chain.from_iterable(_fetching(line, step.run) for line in step.run):
            # A snapshot applies to every call of apt.
            if match and not (kind == "package" and image.snapshot):
                yield kind, match[0]


def _tags(*images: str) -> list[str]:
    return [image for image in images if image and "@sha256:" not in image]


def _packages(image: ImagePlan) -> Iterator[tuple[str, str]]:
    by_apt = image.distro.manager == APT
    # dnf has no sign between name and version.
    names = dict.fromkeys(
        package
        for package in (*image.packages, *image.runtime.packages)
        if not (by_apt and "=" in package)
    )
    if names and image.snapshot is None:
        command = "apt-get install" if by_apt else "dnf install"
        yield "package" if by_apt else "unkept", " ".join((command, *names))
    for repository in (*image.repositories, *image.runtime.repositories):
        yield "unkept", f"{repository.uri} {repository.suite}"


def _fetching(line: str, lines: Sequence[str]) -> Iterator[tuple[str, re.Match[str] | None]]:
    alone = all(word in line for word in _ALONE) and _FOLDER.search(line)
    if not any(word in line for word in _CHECKED) and not alone:
        yield "step", _PIP.search(line)
    checked_out = any("checkout" in other and _COMMIT.search(other) for other in lines)
    if not _COMMIT.search(line) and not checked_out:
        yield "git", _GIT.search(line)
    if not any(_SUM.search(other) for other in lines):
        yield "file", _FILE.search(line)
    yield "package", _MANAGER.search(line)


def pinning_advice(loose: Iterable[FloatingVersion]) -> str:
    """How to pin each kind of them."""
    kinds = {item.kind for item in loose}
    return "; ".join(text for kind, text in PINNED_BY.items() if kind in kinds)
