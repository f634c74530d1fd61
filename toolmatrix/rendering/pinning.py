"""Pinning of the contents of an image: snapshots of a distribution, and a list of everything that is not pinned.

The services of Debian and Ubuntu have a folder for each time, in UTC: https://snapshot.debian.org/archive/debian and
https://snapshot.ubuntu.com. Downloads of build systems such as Bazel and CMake are not examined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from itertools import chain

from packaging.version import Version

from toolmatrix import resources
from toolmatrix.errors import UsageError
from toolmatrix.lockfile.model import LockedClosure, LockedPackage, LockedTarget
from toolmatrix.recipes.model import APT, Provision, Recipe
from toolmatrix.rendering import common, mirrors, quote
from toolmatrix.rendering.model import Choices, ImagePlan, UsedPackage
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


# A requirements file adds the index of a vendor to the user's own: hashes select the files.
_EXTRA_INDEX = {"--index-url": "--extra-index-url", "-i": "--extra-index-url"}


def requirements_files(image: ImagePlan, fetched: str = "") -> dict[str, str]:
    """`NAME.requirements.txt` with its text, where the lock holds the packages; raises RenderError.

    Packages that are taken out of a folder, `fetched`, are named by their versions alone.
    """
    return {requirements_name(image): _text(image, image.closure, fetched)} if image.closure else {}


def requirements_name(image: ImagePlan) -> str:
    """The name of the file of an image."""
    return common.file_name(image, ".requirements.txt")


def _text(image: ImagePlan, closure: LockedClosure, fetched: str) -> str:
    local = f"--no-index --find-links {fetched}/{mirrors.wheel_folder(image)} " if fetched else ""
    about = (
        f"Python packages for Python {closure.asked.python} on {closure.asked.platform}.",
        "Written by toolmatrix; it does not overwrite edited files. To regenerate:",
        f"  {common.AGAIN}",
        f"file    {common.BLANK}",
        "",
        f"pip install {local}--require-hashes --no-deps --requirement {requirements_name(image)}",
    )
    lines = [*_options(() if fetched else closure.asked.options), "--only-binary :all:"]
    if closure.sources:
        lines.append(f"--no-binary {','.join(closure.sources)}")
    packages = closure.packages
    lines += [
        _line(name, packages[name].replace(url="") if fetched else packages[name])
        for name in sorted(packages)
    ]
    return common.comment(about) + "".join(f"{line}\n" for line in lines)


def installer_requirements(image: ImagePlan) -> tuple[str, ...]:
    """Requirements of the packages that install the others: each a line with its hashes."""
    return tuple(_line(name, package, " ") for name, package in sorted(image.installers.items()))


def _options(words: tuple[str, ...]) -> Iterator[str]:
    # An option and its value; more of them stand on lines of their own.
    options = ""
    for word in words:
        if word.startswith("-") and options:
            yield options
            options = ""
        options = f"{options} {quote.plain('word', _EXTRA_INDEX.get(word, word))}".strip()
    if options:
        yield options


def _line(name: str, package: LockedPackage, between: str = " \\\n    ") -> str:
    wanted = common.requirement(
        f"{name}@{package.url}" if package.url else f"{name}=={package.version}"
    )
    digests = sorted({quote.plain("sha256", digest) for digest in package.files.values()})
    return between.join((wanted, *(f"--hash=sha256:{digest}" for digest in digests)))


# Packages that the module venv installs in a new environment (Python documentation, ensurepip and venv).
_SEEDS = ("setuptools", "wheel")

# The name in `NAME[extras]==RELEASE` or `NAME@ADDRESS`.
_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9]")


def used_packages(
    locked: LockedTarget, recipe: Recipe, provisions: Iterable[Provision]
) -> Iterator[UsedPackage]:
    """The packages that the check of a recipe uses: those that it installs, and those that it builds."""
    if recipe.runs or recipe.imports:
        yield from installed(locked, provisions)
        archs = ",".join(arch for arch in locked.archs if not arch.startswith("gfx"))
        for name in recipe.built(locked.components):
            version = locked.components[name].version
            yield UsedPackage(component=name, package=name, version=version, archs=archs)


def installed(locked: LockedTarget, provisions: Iterable[Provision]) -> Iterator[UsedPackage]:
    """The packages that pip installs for provisions; of a build that is published as others these."""
    for provision in provisions:
        if provision.pip:
            build = locked.variants.get(provision.component)
            version = locked.components[provision.component].version
            for text in (build.requirements if build else ()) or provision.pip:
                named, pinned, release = text.partition("==")
                match = _NAME.match(named)
                # An address is of one release. A nightly build, asked for by name alone, has one of its own.
                known = release if pinned else version if "@" in named else ""
                yield UsedPackage(
                    component=provision.component,
                    package=match[0] if match else named,
                    version=known,
                    build=build.build if build else "",
                )


def check_arguments(packages: Iterable[UsedPackage]) -> Iterator[str]:
    """The arguments of the check of packages: for each name, release, build, two programs and archs, or nothing."""
    known = _operations()
    # A package may be requested and a component of its own: tensorflow-rocm is both.
    for package in {(package.package, package.version): package for package in packages}.values():
        operation = known.get(package.component, {})
        if package.version and Version(package.version) < Version(operation.get("since", "0")):
            operation = {}
        yield from (package.package, package.version, package.build)
        yield from (operation.get("program", ""), operation.get("device", ""), package.archs)


def seeds(packages: Iterable[UsedPackage], closure: LockedClosure | None = None) -> tuple[str, ...]:
    """Packages that a fresh environment has, and neither an answer nor its packages name."""
    named = {*(package.package for package in packages), *(closure.packages if closure else ())}
    names = dict.fromkeys((*_SEEDS, *sorted(closure.builders if closure else ())))
    return tuple(name for name in names if name not in named)


@lru_cache(maxsize=1)
def _operations() -> Mapping[str, Mapping[str, str]]:
    operations = resources.load_yaml(resources.operations_path())["operations"]
    return {
        name: operation
        for first, operation in operations.items()
        for name in (first, *operation.get("also", ()))
    }
