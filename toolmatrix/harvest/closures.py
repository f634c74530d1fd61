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
    asked: PackageQuestion,
    held: LockedClosure | None = None,
    day: str = "",
) -> LockedClosure:
    """All packages with the files that fit, of those `held` the same release where it still goes.

    Of what has no wheel the source archive is taken, with what builds it. With a `day` no file counts that came later.
    Raises Unresolved where requirements do not go together or cannot be had, ToolMissing, IndexFailed.
    """
    where = ["--python-version", asked.python, "--python-platform", asked.platform]
    if day:
        where += ["--exclude-newer", f"{day}T23:59:59Z"]
    any_index, elsewhere = [*where], dict[str, LockedPackage]()
    if asked.options:
        # By the user's own index the same release may be another build, so theirs are asked by themselves before all.
        alone = [*_only(asked.options), "--no-deps", *where]
        elsewhere, _ = _resolved(uv, asked, asked.builds, alone, {}, alone=True)
        where += [*_beside(asked.options), *_EVERY_INDEX]
    exactly = [_exactly(name, part) for name, part in elsewhere.items()] or [*asked.builds]
    wanted = [*asked.requirements, *asked.builds, *exactly]
    found, sources = _resolved(uv, asked, wanted, where, held.packages if held else {})
    for name, part in elsewhere.items():
        if found[name] != part:
            raise Unresolved(
                f"the same release of {name} is another build on another index",
                expected=", ".join(part.files),
                found=", ".join(found[name].files),
                help=f"leave that index out of uv's settings; {_NOTHING}",
            )
    wanted = sorted({one for source in sources for one in _building(session, *source)})
    builders, _ = _resolved(uv, asked, wanted, any_index, held.builders if held else {})
    return LockedClosure(asked=asked, packages=found, builders=builders)


def _building(session: Session, name: str, url: str, sha256: str) -> Sequence[str]:
    text = project.of_source(session, name, url, sha256, "pyproject.toml").decode(errors="replace")
    body = toml.parse(text, name, Unresolved, "a source archive")
    return [*map(str, body.get("build-system", {}).get("requires", _BUILDERS))]


def _only(options: Sequence[str]) -> list[str]:
    words, named = [], False
    for word in options:
        words.append("--default-index" if word in _INDEX and not named else word)
        named = named or word in _INDEX
    return words if named else ["--no-index", *words]


def _beside(options: Iterable[str]) -> list[str]:
    return ["--index" if word in _INDEX else word for word in options]


def _exactly(name: str, package: LockedPackage) -> str:
    return f"{name} @ {package.url}" if package.url else f"{name}=={package.version}"


def _resolved(
    uv: Uv,
    asked: PackageQuestion,
    requirements: Sequence[str],
    where: Sequence[str],
    held: Packages,
    *,
    alone: bool = False,
) -> tuple[dict[str, LockedPackage], list[tuple[str, str, str]]]:
    """The packages, and of each source archive among them name, address and SHA-256."""
    if not requirements:
        return {}, []
    with tempfile.TemporaryDirectory(prefix="toolmatrix-packages-") as folder:
        path = os.path.join(folder, _WRITTEN)
        if held:
            # What stands in the file that uv shall write is what it prefers.
            with open(path, "w", encoding="utf-8") as file:
                file.write(_preferred(held))
        sources: dict[str, str] = {}
        # It names what lacks a wheel one after the other.
        while said := uv.lock(requirements, path, where, alone, tuple(sources)):
            lacking = _lacking(said)
            if not lacking.keys() - sources.keys():
                raise _refused(asked, requirements, said[:_LONGEST], {**sources, **lacking})
            sources |= lacking
        with open(path, encoding="utf-8") as file:
            body = toml.parse(file.read(), _WRITTEN, ToolMissing, "what uv wrote")
    entries = body.get("packages", ())
    found = {entry["name"]: _package(entry, asked) for entry in entries}
    return found, [_source(entry["sdist"]) for entry in entries if found[entry["name"]].is_source]


def _preferred(held: Packages) -> str:
    return 'lock-version = "1.0"\ncreated-by = "toolmatrix"\n' + "".join(
        f"[[packages]]\nname = {string(name)}\nversion = {string(part.version)}\n"
        for name, part in sorted(held.items())
    )


def _lacking(said: str) -> dict[str, str]:
    """By its name what has no wheel, with its release where it is said."""
    # The hint has the name alone of what the reason before it has with its release.
    found = sorted(
        (one or other for one, other in _LACKS.findall(said)), key=lambda one: "==" in one
    )
    return {one.partition("==")[0]: one for one in found}


def _refused(
    asked: PackageQuestion, requirements: Iterable[str], said: str, lacking: Mapping[str, str]
) -> Unresolved:
    named = [one for one in lacking.values() if "==" in one] or [*lacking]
    if named:
        return Unresolved(
            f"no wheel of {', '.join(named)} is on the index for {_place(asked)}",
            expected="wheels, or source archives that say what they require",
            found=said,
            help=f"another release that has wheels (`--with NAME==VERSION`), or another Python; {_NOTHING}",
        )
    return Unresolved(
        "the Python packages of the answer conflict",
        expected=f"packages for {' '.join(requirements)} on {_place(asked)}",
        found=said,
        help=f"`--with NAME==VERSION` chooses another release; {_NOTHING}",
    )


def _place(asked: PackageQuestion) -> str:
    return f"Python {asked.python} on {asked.platform}"


def _package(entry: Mapping[str, Any], asked: PackageQuestion) -> LockedPackage:
    name, archive = entry["name"], entry.get("archive")
    # Of what has wheels uv names the source archive as well.
    found = [archive] if archive else entry.get("wheels") or [*filter(None, [entry.get("sdist")])]
    files = {_file(one): one.get("hashes", {}).get("sha256", "") for one in found}
    # What stands at an address of its own, or in a repository, is asked for by name.
    if not files or (archive and not all(file.endswith(".whl") for file in files)):
        raise Unresolved(
            f"{name} comes as source for {_place(asked)}",
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
    place = entry.get("name") or urlsplit(entry.get("url") or entry.get("path", "")).path
    return unquote(place).rpartition("/")[2]
