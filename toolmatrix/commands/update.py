"""`toolmatrix update`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from shutil import rmtree
from typing import Any

from toolmatrix.api import Path, Report, feeds, this_day
from toolmatrix.api.caller import caller
from toolmatrix.api.harvests import folder_lock
from toolmatrix.api.requests import forget_built_in
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.command.options import CHECK
from toolmatrix.documents import Annotated, Count, Flag, MatrixHead, TypedDict
from toolmatrix.errors import MatrixError, OutputError, Position, UsageError
from toolmatrix.factbase import bundle, installed, load
from toolmatrix.factbase.index import Index, IndexFolder
from toolmatrix.factbase.store import (
    built_in_index,
    installed_matrix,
    open_index,
    write_folder,
)
from toolmatrix.outputs import os_errors_as, replace_file
from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.update/1"
# Digits of the digest of a bundle that name its folder.
_DIGITS = 16
_UPGRADE = "`toolmatrix upgrade` moves a lock to newer releases"


class MatrixInUse(MatrixHead):
    """A matrix, with its number of facts, and the source of the update; that is empty for the built-in one."""

    facts: Count
    source: str


class UpdateDocument(TypedDict):
    """What `toolmatrix update --json` prints: the matrix from now on, and the one that was in use. With `--check`,
    nothing has changed, and `changed` says whether an update would change it.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixInUse
    before: MatrixInUse
    changed: Flag
    key: str
    """The public key that the signature was verified by; empty where none is configured."""


@command(
    group="Maintain the matrix",
    order=4,
    usage="[SOURCE]",
    completer="file",
    does="updating the matrix",
    examples=(
        "toolmatrix update https://matrix.example.org/ --key matrix.pub",
        "toolmatrix update oci://ghcr.io/example/matrix:latest",
        "toolmatrix update --back",
    ),
)
def update(
    source: Path = "",
    *,
    back: bool = option(
        "--back",
        cli_only=True,
        excludes=("check", "offline", "key"),
        help="Use the matrix before the last update again",
    ),
    check: bool = CHECK,
    offline: bool = option(
        "--offline", configurable=False, help="Read files alone, and never ask the network"
    ),
    key: str = option(
        "--key",
        configurable=False,
        metavar="KEY",
        help="Public key of minisign, or the file of one, that has to verify the bundle; later updates keep it",
    ),
) -> Report:
    """Renew the matrix without the program (`upgrade` moves a lock).

    The source is a bundle, a folder with one, its http(s) address, `oci://HOST/NAME:TAG`, or a URL of fsspec; without
    one that of the last update. A bundle is checked completely before it replaces the matrix in use, which is kept for
    `back`. Raises MatrixError, OutputError, ToolMissing, RegistryFailed, SubjectError and UsageError.
    """
    env = caller().env
    folder = _folder(env)
    before = _in_use(env)
    if back:
        with folder_lock(folder, "update"):
            _go_back(env, folder)
        return _report(before, _in_use(env), "")
    record = installed.record(env)
    # The key of an earlier update holds on, or whoever publishes could do without.
    known_key = str(record.get("key") or "")
    key = feeds.public_key(key) if key else known_key
    place = _source(os.fspath(source), record)
    with feeds.opened(place, offline=offline) as open_file:
        with closing(open_file("")) as stream:
            # Mostly there is nothing new: then the line is all that is read.
            line, rest = feeds.read_line(stream)
            head = bundle.read_head(line, place)
            now: MatrixInUse = {**_of_bundle(head), "source": place}
            same = head["digest"] == before["digest"] and key == known_key
            if same or head["date"] < before["date"]:
                return _report(before, before, key, available=now)
            data = line + feeds.read_rest(stream, rest, head["size"])
        if key:
            feeds.verify(data, feeds.signature_of(open_file), key, place)
    files = bundle.unpack(data, place)
    if not check:
        with folder_lock(folder, "update"):
            own = {"bundle": head, "source": place, "day": this_day(env).isoformat()}
            _install(env, folder, files, own, key)
    return _report(before, now, key, checked=check)


def _folder(env: Mapping[str, str]) -> str:
    folder = installed.folder(env)
    if not folder:
        raise OutputError(
            "no directory for the matrix",
            expected="`XDG_DATA_HOME` or `HOME` in the environment",
        )
    return folder


def _source(source: str, record: Mapping[str, Any]) -> str:
    """The source that was named, or that of the last update. Raises UsageError where there is neither."""
    place = source or str((record.get("current") or {}).get("source") or "")
    if not place:
        raise UsageError(
            "no source to update from",
            expected="a file, a folder, an address, `oci://HOST/NAME:TAG` or a URL of fsspec",
            help=f"the first `toolmatrix update` names it; {_UPGRADE}",
        )
    # The next update may run in another folder.
    return place if feeds.is_remote(place) else os.path.abspath(caller().path(place))


def _in_use(env: Mapping[str, str]) -> MatrixInUse:
    matrix = installed_matrix(env)
    head = _of_bundle(open_index((), env).header)
    return {**head, "source": matrix.source if matrix else ""}


def _of_bundle(head: Mapping[str, Any]) -> MatrixInUse:
    return {key: head[key] for key in ("digest", "date", "facts")}  # type: ignore[return-value]


def _install(
    env: Mapping[str, str],
    folder: str,
    files: Mapping[str, bytes],
    own: Mapping[str, Any],
    key: str,
) -> None:
    """Write a matrix beside the one in use, and rename the record. Raises MatrixError, OutputError."""
    # Two bundles of one matrix may be for different programs.
    name = own["bundle"]["sha256"][:_DIGITS]
    path, beside = os.path.join(folder, name), os.path.join(folder, f"{name}.new{os.getpid()}")
    record = installed.record(env)
    # The one before is the one that answered, be it the built-in one.
    in_use = record.get("current") if installed_matrix(env) else None
    try:
        with os_errors_as("cannot write the matrix", beside):
            rmtree(beside, ignore_errors=True)
            # Names were checked when the bundle was read.
            write_folder(beside, files)
        for front in own["bundle"]["paths"]:
            _check_files(os.path.join(beside, front))
        with os_errors_as("cannot write the matrix", path):
            # One of the same name was damaged, or is not in use.
            if os.path.isdir(path):
                os.rename(path, f"{beside}.old")
            os.rename(beside, path)
        _write(env, folder, {"current": {"folder": name, **own}, "before": in_use, "key": key})
    finally:
        rmtree(beside, ignore_errors=True)
        rmtree(f"{beside}.old", ignore_errors=True)


def _check_files(front: str) -> None:
    for name in load.files(front):
        if not os.path.isfile(name):
            raise MatrixError(
                "the bundle lacks a file that its front page lists",
                where=Position(os.path.basename(front)),
                expected=os.path.relpath(name, os.path.dirname(front)),
            )


def _write(env: Mapping[str, str], folder: str, record: Mapping[str, Any]) -> None:
    # A program that is upgraded brings a matrix that may be newer than the update.
    body = {**record, "over": installed.over(built_in_index(env))}
    replace_file(os.path.join(folder, installed.RECORD), json.dumps(body, sort_keys=True) + "\n")
    forget_built_in()
    kept = {record[name]["folder"] for name in ("current", "before") if record[name]}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name not in kept:
                rmtree(entry.path, ignore_errors=True)


def _go_back(env: Mapping[str, str], folder: str) -> None:
    record = installed.record(env)
    if not record:
        raise UsageError(
            "there is no matrix to go back to",
            expected="an earlier `toolmatrix update`",
            help=f"the built-in matrix is in use; {_UPGRADE}",
        )
    if record.get("before"):
        matrix = installed.entry(env, record, "before")
        if matrix is None:
            raise MatrixError(
                "the matrix before the last update is for other versions of toolmatrix",
                where=Position(os.path.join(folder, installed.RECORD)),
                help="`toolmatrix update SOURCE` takes a newer one",
            )
        with os_errors_as("the matrix before the last update cannot be read", matrix.folder):
            Index(matrix.index, IndexFolder(matrix.index))
    _write(
        env,
        folder,
        {
            "current": record.get("before"),
            "before": record.get("current"),
            "key": record.get("key", ""),
        },
    )


def _report(
    before: MatrixInUse,
    now: MatrixInUse,
    key: str,
    *,
    available: MatrixInUse | None = None,
    checked: bool = False,
) -> Report:
    document: UpdateDocument = {
        "schema": SCHEMA,
        "matrix": before if checked else now,
        "before": before,
        "changed": available is None,
        "key": key,
    }
    lines = []
    if available is None:
        would = "would be" if checked else "is"
        lines.append(f"the matrix of {_named(now)} {would} in use")
        lines.append(f"before, {_named(before)}")
        lines.append(
            f"verified by the key {key}" if key else "not verified, as no key is configured"
        )
    elif available["digest"] == before["digest"]:
        lines.append(f"unchanged: the matrix of {_named(before)} is in use already")
    else:
        lines.append(f"unchanged: the matrix of {_named(before)} is newer than {_named(available)}")
    hint = "`toolmatrix news` shows what changed, `toolmatrix update --back` takes the one before"
    return Report(
        words=partial(_text, lines),
        document=lambda: document,
        exit_code=int(checked),
        hint=hint if document["changed"] and not checked else "",
    )


def _text(lines: list[str], screen: Terminal) -> str:
    return "\n".join(line for text in lines for line in screen.wrap(text, "", "  ")) + "\n"


def _named(matrix: MatrixInUse) -> str:
    origin = f"from {matrix['source']}" if matrix["source"] else "that the program came with"
    return f"{matrix['date']} ({matrix['digest'][:19]}, {matrix['facts']} facts) {origin}"
