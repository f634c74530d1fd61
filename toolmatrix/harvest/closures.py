"""Every Python package that some requirements take on a machine, as uv resolves them and writes them down (PEP 751)."""

from __future__ import annotations

import os.path
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from toolmatrix import toml
from toolmatrix.errors import ToolMissing, Unresolved
from toolmatrix.harvest import project
from toolmatrix.harvest.resolver import Uv
from toolmatrix.lock.lock_file import string
from toolmatrix.lock.model import LockedClosure, LockedPackage

if TYPE_CHECKING:
    from toolmatrix.harvest.transport import Session
    from toolmatrix.lock.model import PackageQuestion

    Packages = Mapping[str, LockedPackage]

_WRITTEN = "pylock.toml"
# pip's words for an index in the place of the user's own.
_INDEX = ("--index-url", "-i")
# An index that has a package at other releases alone would hide those of the next one, which pip looks at as well.
_EVERY_INDEX = ("--index-strategy", "unsafe-best-match")
# What builds a source archive that names nothing (PEP 518), and what pip asks of a setup.py without pyproject.toml.
_BUILDERS = ("setuptools", "wheel")
# How uv says which packages have a source archive alone.
_LACKS = re.compile(r"([\w.-]+==\S+) has no (?:usable )?wheels|Wheels are required for `([^`]+)`")
_NOTHING = "nothing was written"
# Letters of what uv says: of packages with hundreds of releases it lists them all.
_LONGEST = 2000


def closure(
    uv: Uv,
    session: Session,
    question: PackageQuestion,
    previous: LockedClosure | None = None,
    day: str = "",
) -> LockedClosure:
    """All packages with the files that fit, of those `held` the same release where it still goes.

    Of what has no wheel the source archive is taken, with what builds it. With a `day` no file counts that came later.
    Raises Unresolved where requirements do not go together or cannot be had, ToolMissing, IndexFailed.
    """
    where = ["--python-version", question.python, "--python-platform", question.platform]
    if day:
        where += ["--exclude-newer", f"{day}T23:59:59Z"]
    any_index, elsewhere = [*where], dict[str, LockedPackage]()
    if question.options:
        # By the user's own index the same release may be another build, so theirs are asked by themselves before all.
        alone = [*_exclusive_options(question.options), "--no-deps", *where]
        elsewhere, _ = _resolve(uv, question, question.builds, alone, {}, alone=True)
        where += [*_additional_options(question.options), *_EVERY_INDEX]
    exactly = [_pin(name, package) for name, package in elsewhere.items()] or [*question.builds]
    wanted = [*question.requirements, *question.builds, *exactly]
    packages, sources = _resolve(uv, question, wanted, where, previous.packages if previous else {})
    for name, package in elsewhere.items():
        if packages[name] != package:
            raise Unresolved(
                f"two indexes have different builds of the same release of {name}",
                expected=", ".join(package.files),
                found=", ".join(packages[name].files),
                help=f"leave that index out of uv's settings; {_NOTHING}",
            )
    wanted = sorted(
        {requirement for source in sources for requirement in _build_requirements(session, *source)}
    )
    builders, _ = _resolve(uv, question, wanted, any_index, previous.builders if previous else {})
    return LockedClosure(asked=question, packages=packages, builders=builders)


def _build_requirements(session: Session, name: str, url: str, sha256: str) -> Sequence[str]:
    text = project.of_source(session, name, url, sha256, "pyproject.toml").decode(errors="replace")
    body = toml.parse(text, name, Unresolved, "a source archive")
    return [*map(str, body.get("build-system", {}).get("requires", _BUILDERS))]


def _exclusive_options(options: Sequence[str]) -> list[str]:
    arguments, named = [], False
    for option in options:
        arguments.append("--default-index" if option in _INDEX and not named else option)
        named = named or option in _INDEX
    return arguments if named else ["--no-index", *arguments]


def _additional_options(options: Iterable[str]) -> list[str]:
    return ["--index" if option in _INDEX else option for option in options]


def _pin(name: str, package: LockedPackage) -> str:
    return f"{name} @ {package.url}" if package.url else f"{name}=={package.version}"


def _resolve(
    uv: Uv,
    question: PackageQuestion,
    requirements: Sequence[str],
    where: Sequence[str],
    previous: Packages,
    *,
    alone: bool = False,
) -> tuple[dict[str, LockedPackage], list[tuple[str, str, str]]]:
    """The packages, and of each source archive among them name, address and SHA-256."""
    if not requirements:
        return {}, []
    with tempfile.TemporaryDirectory(prefix="toolmatrix-packages-") as folder:
        path = os.path.join(folder, _WRITTEN)
        if previous:
            # What stands in the file that uv shall write is what it prefers.
            with open(path, "w", encoding="utf-8") as file:
                file.write(_preferences(previous))
        sources: dict[str, str] = {}
        # It names what lacks a wheel one after the other.
        while message := uv.lock(requirements, path, where, alone, tuple(sources)):
            lacking = _without_wheels(message)
            if not lacking.keys() - sources.keys():
                raise _refusal(question, requirements, message[:_LONGEST], {**sources, **lacking})
            sources |= lacking
        with open(path, encoding="utf-8") as file:
            body = toml.parse(file.read(), _WRITTEN, ToolMissing, "what uv wrote")
    entries = body.get("packages", ())
    packages = {entry["name"]: _package(entry, question) for entry in entries}
    return packages, [
        _source(entry["sdist"]) for entry in entries if packages[entry["name"]].is_source
    ]


def _preferences(packages: Packages) -> str:
    return 'lock-version = "1.0"\ncreated-by = "toolmatrix"\n' + "".join(
        f"[[packages]]\nname = {string(name)}\nversion = {string(package.version)}\n"
        for name, package in sorted(packages.items())
    )


def _without_wheels(message: str) -> dict[str, str]:
    """By its name what has no wheel, with its release where it is said."""
    # The hint has the name alone of what the reason before it has with its release.
    pins = sorted(
        (pin or name for pin, name in _LACKS.findall(message)), key=lambda pin: "==" in pin
    )
    return {pin.partition("==")[0]: pin for pin in pins}


def _refusal(
    question: PackageQuestion, requirements: Iterable[str], message: str, lacking: Mapping[str, str]
) -> Unresolved:
    named = [pin for pin in lacking.values() if "==" in pin] or [*lacking]
    if named:
        return Unresolved(
            f"no wheel of {', '.join(named)} is on the index for {_target(question)}",
            expected="wheels, or source archives that say what they require",
            found=message,
            help=f"another release that has wheels (`--with NAME==VERSION`), or another Python; {_NOTHING}",
        )
    return Unresolved(
        "the Python packages of the answer conflict",
        expected=f"packages for {' '.join(requirements)} on {_target(question)}",
        found=message,
        help=f"`--with NAME==VERSION` chooses another release; {_NOTHING}",
    )


def _target(question: PackageQuestion) -> str:
    return f"Python {question.python} on {question.platform}"


def _package(entry: Mapping[str, Any], question: PackageQuestion) -> LockedPackage:
    name, archive = entry["name"], entry.get("archive")
    # Of what has wheels uv names the source archive as well.
    candidates = (
        [archive] if archive else entry.get("wheels") or [*filter(None, [entry.get("sdist")])]
    )
    files = {
        _file(candidate): candidate.get("hashes", {}).get("sha256", "") for candidate in candidates
    }
    # What stands at an address of its own, or in a repository, is asked for by name.
    if not files or (archive and not all(file.endswith(".whl") for file in files)):
        raise Unresolved(
            f"{name} is available only as source for {_target(question)}",
            expected="a wheel",
            found=", ".join(files) or ", ".join(sorted(entry)),
            help=_NOTHING,
        )
    if not all(files.values()):
        raise Unresolved(
            f"the index has no SHA-256 of {name}",
            expected="a SHA-256 of every file",
            found=", ".join(file for file, digest in files.items() if not digest),
            help=_NOTHING,
        )
    return LockedPackage(
        # A file at an address of its own says its release by its name alone (PEP 427).
        version=entry.get("version") or next(iter(files)).split("-")[1],
        files=files,
        url=archive["url"] if archive else "",
    )


def _source(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    address = entry.get("url") or "file://" + entry.get("path", "")
    return _file(entry), address, entry["hashes"]["sha256"]


def _file(entry: Mapping[str, Any]) -> str:
    path = entry.get("name") or urlsplit(entry.get("url") or entry.get("path", "")).path
    return unquote(path).rpartition("/")[2]
