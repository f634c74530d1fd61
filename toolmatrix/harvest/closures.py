"""Every Python package that some requirements take on a machine, as uv resolves them and writes them down (PEP 751)."""

from __future__ import annotations

import os.path
import re
import tempfile
from urllib.parse import unquote, urlsplit

from toolmatrix import toml
from toolmatrix.errors import ToolMissing, Unresolved
from toolmatrix.lock.model import LockedClosure, LockedPackage
from toolmatrix.lock.write import string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from toolmatrix.harvest.resolver import Uv
    from toolmatrix.lock.model import PackageQuestion

    Packages = Mapping[str, LockedPackage]

_WRITTEN = "pylock.toml"
# pip's words for an index in the place of the user's own.
_INDEX = ("--index-url", "-i")
# An index that has a package at other releases alone would hide those of the next one, which pip looks at as well.
_EVERY_INDEX = ("--index-strategy", "unsafe-best-match")
# How uv says which packages have a source archive alone.
_LACKS = re.compile(r"([\w.-]+==\S+) has no (?:usable )?wheels|Wheels are required for `([^`]+)`")
_NOTHING = "nothing was written"
# Letters of what uv says: of packages with hundreds of releases it lists them all.
_LONGEST = 2000


def closure(uv: Uv, asked: PackageQuestion, held: Packages, day: str = "") -> LockedClosure:
    """All packages with the files that fit, of those `held` the same release where it still goes.

    With a `day` no file counts that came later. Raises Unresolved where requirements do not go together or have no
    wheel, and ToolMissing.
    """
    where = ["--python-version", asked.python, "--python-platform", asked.platform]
    if day:
        where += ["--exclude-newer", f"{day}T23:59:59Z"]
    elsewhere: Packages = {}
    if asked.options:
        # By the user's own index the same release may be another build, so theirs are asked by themselves before all.
        alone = [*_only(asked.options), "--no-deps", *where]
        elsewhere = _resolved(uv, asked, asked.builds, alone, {}, alone=True)
        where += [*_beside(asked.options), *_EVERY_INDEX]
    exactly = [_exactly(name, part) for name, part in elsewhere.items()] or [*asked.builds]
    found = _resolved(uv, asked, [*asked.requirements, *asked.builds, *exactly], where, held)
    for name, part in elsewhere.items():
        if found[name] != part:
            raise Unresolved(
                f"the same release of {name} is another build on another index",
                expected=", ".join(part.files),
                found=", ".join(found[name].files),
                help=f"leave that index out of uv's settings; {_NOTHING}",
            )
    return LockedClosure(asked=asked, packages=found)


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
) -> Packages:
    with tempfile.TemporaryDirectory(prefix="toolmatrix-packages-") as folder:
        path = os.path.join(folder, _WRITTEN)
        if held:
            # What stands in the file that uv shall write is what it prefers.
            with open(path, "w", encoding="utf-8") as file:
                file.write(_preferred(held))
        said = uv.lock(requirements, path, where, alone)
        if said:
            raise _refused(asked, requirements, said[:_LONGEST])
        with open(path, encoding="utf-8") as file:
            body = toml.parse(file.read(), _WRITTEN, ToolMissing, "what uv wrote")
    return {entry["name"]: _package(entry, asked) for entry in body.get("packages", ())}


def _preferred(held: Packages) -> str:
    return 'lock-version = "1.0"\ncreated-by = "toolmatrix"\n' + "".join(
        f"[[packages]]\nname = {string(name)}\nversion = {string(part.version)}\n"
        for name, part in sorted(held.items())
    )


def _refused(asked: PackageQuestion, requirements: Iterable[str], said: str) -> Unresolved:
    lacking = [one or other for one, other in _LACKS.findall(said)]
    # The hint has the name alone of what the reason before it has with its release.
    named = [one for one in dict.fromkeys(lacking) if "==" in one] or [*dict.fromkeys(lacking)]
    if named:
        return Unresolved(
            f"no wheel of {', '.join(named)} is on the index for {_place(asked)}",
            expected="wheels, whose files can be pinned",
            found=said,
            help=f"another release that has wheels (`--with NAME==VERSION`), or another Python; {_NOTHING}",
        )
    return Unresolved(
        "the Python packages of the answer do not go together",
        expected=f"packages for {' '.join(requirements)} on {_place(asked)}",
        found=said,
        help=f"`--with NAME==VERSION` chooses another release; {_NOTHING}",
    )


def _place(asked: PackageQuestion) -> str:
    return f"Python {asked.python} on {asked.platform}"


def _package(entry: Mapping[str, Any], asked: PackageQuestion) -> LockedPackage:
    name, archive = entry["name"], entry.get("archive")
    found = [archive] if archive else entry.get("wheels", [])
    files = {_file(one): one.get("hashes", {}).get("sha256", "") for one in found}
    # What is no wheel stands at an address of its own, or in a repository: of the index uv would have said so.
    if not files or not all(file.endswith(".whl") for file in files):
        raise Unresolved(
            f"{name} comes as source for {_place(asked)}",
            expected="a wheel",
            found=", ".join(files) or ", ".join(sorted(entry)),
            help=_NOTHING,
        )
    if not all(files.values()):
        raise Unresolved(
            f"the index tells no SHA-256 of {name}",
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


def _file(entry: Mapping[str, Any]) -> str:
    place = entry.get("name") or urlsplit(entry.get("url") or entry.get("path", "")).path
    return unquote(place).rpartition("/")[2]
