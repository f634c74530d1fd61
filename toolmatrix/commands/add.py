"""`toolmatrix add`."""

from __future__ import annotations

import os
import re
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from hashlib import sha256
from html import escape
from typing import Any
from urllib.parse import quote

from toolmatrix.api import Matrix, Path
from toolmatrix.api.caller import caller
from toolmatrix.api.harvests import Effort, cache, compare_with_file
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.commands.harvest import Harvested
from toolmatrix.errors import HarvestRefused, OutputError, Position, UsageError
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.outputs import file_digest, os_errors_as

_SOURCES = ("index", "wheel", "requirements")
# The name of a package (PEP 508), in lower case, and its version.
_NAMED = re.compile(r"([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?:==([\w.+!-]+))?")
_ABOUT = "A package of one's own, {}, unreviewed."
_NO_VERSION = "0"
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_LARGEST_METADATA = 1 << 20
# What a wheel contains that binds it to a machine, as a family of matrix/families.yaml reads it.
_CONTENTS: Mapping[str, Any] = {
    "kind": "wheels",
    "of": "releases",
    "extends": True,
    "columns": {
        "machine": {"as": "when"},
        "cuda": {
            "as": "requires",
            "context": {"from": "wheel", "accelerator": "cuda"},
            "unreleased": True,
            "says": "needs the libraries of CUDA {value}",
        },
        "archs": {
            "component": "arch",
            "as": "limits",
            "context": {"from": "wheel"},
            "unreleased": True,
            "says": "holds {value}",
        },
    },
    "inside": {
        "rules": [
            {"cell": "cuda", "member": "*.so*", "needed": r"libcudart\.so\.([0-9]+)"},
            {"cell": "archs", "member": "*.so*", "archs": "device"},
        ]
    },
}


@command(
    group="Maintain the matrix",
    order=5,
    usage="NAME [FILE]",
    completer="file",
    writes_folder=True,
    does="adding",
    examples=(
        "toolmatrix add our-kernels --from index",
        "toolmatrix add our-kernels dist/our_kernels-1.0-cp312-cp312-manylinux_2_28_x86_64.whl --from wheel",
        "toolmatrix add our-service==2.1 requirements.txt --from requirements",
    ),
)
def add(
    name: str,
    file: Path = "",
    *,
    from_: str = option(
        "--from",
        cli_only=True,
        metavar="WORD",
        allowed=_SOURCES,
        default="index",
        help="Read your package index, a wheel file, or a file of requirements",
    ),
    output: Path = "",
    matrix: Matrix = None,
) -> Harvested:
    """Write a file of facts about a package of your own.

    It is `NAME.yaml` in the directory `output`, for `--matrix`. Its facts are METADATA and contents of wheels, or the
    requirements in a file; answers mark them as unreviewed. Raises HarvestRefused, IndexFailed, ManifestError,
    NothingMatched, OutputError, ToolMissing and UsageError.
    """
    from tempfile import TemporaryDirectory

    from toolmatrix.api import online
    from toolmatrix.harvest import runs
    from toolmatrix.harvest.transport import Session

    package, version = _package(name)
    if bool(os.fspath(file)) == (from_ == "index"):
        needed = "no file" if from_ == "index" else f"the path of a file of `--from {from_}`"
        raise UsageError(f"`--from {from_}` takes {needed}", found=f"`{os.fspath(file)}`")
    index, env = open_matrix(matrix).index, caller().env
    if package in index.header["components"]:
        raise UsageError(
            f"the matrix has `{package}` already",
            expected="a package of your own",
            help=f"`toolmatrix show {package}` shows it; docs/facts.md describes files that correct it",
        )
    began = time.monotonic()
    with ExitStack() as stack:
        session = stack.enter_context(closing(Session(cache(env))))
        folder, source = "", {}
        if from_ != "index":
            # A harvester reads indexes, so the file becomes an index of one release.
            folder = stack.enter_context(TemporaryDirectory(prefix="toolmatrix-"))
            stock = _stock if from_ == "wheel" else _stock_requirements
            source = stock(folder, package, version or _NO_VERSION, caller().path(os.fspath(file)))
        context = online.context_of(index, session, env, folder)
        document = _document(context, package, version, contents=from_ != "requirements")
        _describe(document, source)
        if from_ == "requirements":
            _describe_requirements(document)
        effort = Effort(
            requests=session.requests, bytes=session.bytes, seconds=time.monotonic() - began
        )
    text = runs.text(document, _ABOUT.format(package), "toolmatrix add")
    return _write(package, os.path.join(os.fspath(output), f"{package}.yaml"), text, effort)


def _write(package: str, path: str, text: str, effort: Effort) -> Harvested:
    _check_own(path, text)
    with os_errors_as("cannot write the facts", path):
        os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    harvested = Harvested([compare_with_file(package, path, text)], effort, checked=False)
    # Releases that are gone from a source of one's own are gone on purpose.
    harvested.write(accept=True)
    caller().note(f"`--matrix {path}` puts it on top of the matrix; it is unreviewed")
    return harvested


def _package(name: str) -> tuple[str, str]:
    match = _NAMED.fullmatch(name.lower().replace("_", "-"))
    if match and match[2]:
        try:
            Scale("pep440", (match[2],))
        except SelectorError:
            match = None
    if match is None:
        raise UsageError(
            "this is no name of a package",
            expected="NAME or NAME==VERSION",
            found=f"`{name[:80]}`",
        )
    return re.sub(r"[-.]+", "-", match[1]), match[2] or ""


def _document(
    context: HarvestContext, package: str, version: str, *, contents: bool
) -> dict[str, Any]:
    """The facts of METADATA, and of the contents of the newest release."""
    from toolmatrix.api import online

    wanted = {"newest": online.NEWEST, "besides": f"=={version}" if version else "*"}
    document = online.packages_document(context, {package: wanted})
    rows = document["tables"][0]["rows"]
    # What serves any machine has no code for one.
    if not contents or not any("machine" in row for row in rows):
        return document
    fields = {"package": package, "component": package, "since": rows[0][package]}
    inside = online.family_document(context, {**_CONTENTS, **fields})
    table = inside["tables"][0]
    if table["rows"]:
        document["sources"] |= inside["sources"]
        document["tables"].append({**table, "id": f"{package}-contents"})
    return document


def _describe(document: dict[str, Any], source: Mapping[str, str]) -> None:
    """Name the file that was read instead of an index."""
    for name in document["sources"] if source else ():
        document["sources"][name] |= source
    for table in document["tables"] if source else ():
        if "where" in table:
            table["where"] = source["at"]


def _describe_requirements(document: dict[str, Any]) -> None:
    """Say that nothing was published: a file of requirements is what somebody wants."""
    (table,) = document["tables"]
    table |= {"about": f"{table['key']}: a file of requirements", "evidence": "stated"}
    table["rows"] = [{**row, "where": table["where"]} for row in table["rows"]]


def _stock(folder: str, package: str, _version: str, path: str) -> dict[str, str]:
    """Make an index of one wheel, which has its version; returned is how its source is described."""
    from packaging.metadata import parse_email
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

    name = os.path.basename(path)
    try:
        called = parse_wheel_filename(name)[0]
        with zipfile.ZipFile(path) as archive:
            (member,) = filter(_METADATA.fullmatch, archive.namelist())
            with archive.open(member) as stream:
                raw, _ = parse_email(stream.read(_LARGEST_METADATA))
    except (InvalidWheelFilename, ValueError, zipfile.BadZipFile, OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise HarvestRefused(
            "this is not a wheel",
            where=Position(path),
            expected="a file such as `NAME-VERSION-py3-none-any.whl` with METADATA",
            found=reason[:200],
        ) from None
    if called != canonicalize_name(package):
        raise HarvestRefused(
            "the wheel is of another package",
            where=Position(path),
            expected=f"`{package}`",
            found=f"`{called}`",
        )
    _write_index(folder, package, name, raw.get("requires_python", ""))
    os.symlink(os.path.abspath(path), os.path.join(folder, package, name))
    return {
        "title": f"{package}: METADATA and contents of a wheel",
        "at": f"{name}, sha256 {file_digest(path)}",
    }


def _stock_requirements(folder: str, package: str, version: str, path: str) -> dict[str, str]:
    """Make an index of one release with the requirements in a file; returned is how its source is described."""
    from toolmatrix.manifests import files
    from toolmatrix.manifests.read import manifest

    file = files.read_file(path, files.root_of(path))
    environments = manifest(file).environments
    lines = [item.text.text for item in environments[0].items] if environments else []
    stem = f"{package.replace('-', '_')}-{version}"
    name = f"{stem}-py3-none-any.whl"
    _write_index(folder, package, name, "")
    metadata = ["Metadata-Version: 2.1", f"Name: {package}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {' '.join(line.split())}" for line in lines]
    with zipfile.ZipFile(os.path.join(folder, package, name), "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", "\n".join([*metadata, "", ""]))
    digest = sha256(file.text.encode()).hexdigest()
    return {
        "title": f"{package}: a file of requirements",
        "at": f"{os.path.basename(path)}, sha256 {digest}",
    }


def _write_index(folder: str, package: str, name: str, requires_python: str | None) -> None:
    os.mkdir(os.path.join(folder, package))
    # As PEP 503 describes it.
    requires = f' data-requires-python="{escape(requires_python)}"' if requires_python else ""
    with open(os.path.join(folder, package, "index.html"), "w", encoding="utf-8") as stream:
        stream.write(f'<a href="{quote(name)}"{requires}>{escape(name)}</a>')


def _check_own(path: str, text: str) -> None:
    """Raise OutputError where a file of another origin is in the way."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines: Sequence[str] = file.read(4096).splitlines()[:2]
    except FileNotFoundError:
        return
    if lines != text.splitlines()[:2]:
        raise OutputError(
            "another file is in the way",
            where=Position(path),
            expected="a file that `toolmatrix add` wrote for this package, or none",
            help="name another directory with `--output`",
        )
