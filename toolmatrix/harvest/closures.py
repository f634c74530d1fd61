"""The full set of Python packages for some requirements on a machine, as uv resolves and locks it (PEP 751)."""

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
from toolmatrix.lockfile.lock_file import string
from toolmatrix.lockfile.model import LockedClosure, LockedPackage

if TYPE_CHECKING:
    from toolmatrix.harvest.transport import Session
    from toolmatrix.lockfile.model import PackageQuestion

    Packages = Mapping[str, LockedPackage]

_WRITTEN = "pylock.toml"
# pip's options that replace the default index.
_INDEX = ("--index-url", "-i")
# By default uv stops at the first index that has a package; pip looks at all of them.
_EVERY_INDEX = ("--index-strategy", "unsafe-best-match")
# The build requirements of a source archive that names none (PEP 518).
_BUILDERS = ("setuptools", "wheel")
# How uv reports packages that have only a source archive.
_LACKS = re.compile(r"([\w.-]+==\S+) has no (?:usable )?wheels|Wheels are required for `([^`]+)`")
_NOTHING = "nothing was written"
# Characters of a message of uv, which lists every release of a package.
_LONGEST = 2000


def closure(
    uv: Uv,
    session: Session,
    question: PackageQuestion,
    previous: LockedClosure | None = None,
    day: str = "",
) -> LockedClosure:
    """All packages with their matching files; releases of the `previous` closure are kept if they still fit.

    A package without a wheel comes as source archive, with its build requirements. With a `day`, later files are
    ignored. Raises Unresolved if the requirements conflict or a package is missing, ToolMissing, IndexFailed.
    """
    where = ["--python-version", question.python, "--python-platform", question.platform]
    if day:
        where += ["--exclude-newer", f"{day}T23:59:59Z"]
    any_index, elsewhere = [*where], dict[str, LockedPackage]()
    if question.options:
        # The user's index may have another build of the same release, so it is resolved on its own first.
        alone = [*_exclusive_options(question.options), "--no-deps", *where]
        elsewhere, _ = _resolve(uv, question, question.builds, alone, {}, alone=True)
        where += ["--index" if option in _INDEX else option for option in question.options]
        where += _EVERY_INDEX
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
    """The packages, and the name, address and SHA-256 of each source archive among them."""
    if not requirements:
        return {}, []
    with tempfile.TemporaryDirectory(prefix="toolmatrix-packages-") as folder:
        path = os.path.join(folder, _WRITTEN)
        if previous:
            # uv prefers the versions in an existing output file.
            with open(path, "w", encoding="utf-8") as file:
                file.write(_preferences(previous))
        sources: dict[str, str] = {}
        # uv reports packages without a wheel one at a time.
        while message := uv.lock(requirements, path, where, alone, tuple(sources)):
            lacking = _without_wheels(message)
            if not lacking.keys() - sources.keys():
                raise _refusal(question, requirements, message[:_LONGEST], {**sources, **lacking})
            sources |= lacking
        with open(path, encoding="utf-8") as file:
            body = toml.parse(file.read(), _WRITTEN, ToolMissing, "the output of uv")
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
    """Packages without a wheel by name, each with its release if uv reports one."""
    # uv's reason has name and release; the hint after it has only the name.
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
            expected="wheels, or source archives with their requirements",
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
    # uv also lists the source archive of a package that has wheels.
    candidates = (
        [archive] if archive else entry.get("wheels") or [*filter(None, [entry.get("sdist")])]
    )
    files = {
        _file(candidate): candidate.get("hashes", {}).get("sha256", "") for candidate in candidates
    }
    # A package from a URL or a repository has no other file.
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
        # A wheel from a URL has its version only in its name (PEP 427).
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
