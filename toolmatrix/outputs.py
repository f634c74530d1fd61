"""Files written whole or not at all: beside their places, and renamed once all of a run are there."""

from __future__ import annotations

import os
import os.path

from toolmatrix.errors import OutputError, Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def replace_file(path: str, text: str) -> None:
    """Write a file beside its place and rename it; raises OutputError and leaves what was there."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        _write_special(path, text)
        return
    replace_files({path: text})


def replace_files(texts: Mapping[str, str]) -> None:
    """Write files beside their places and rename them when all are written; raises OutputError.

    Where one cannot be renamed, those that were are put back as they were.
    """
    written: list[tuple[str, str]] = []
    replaced: list[tuple[str, str]] = []
    try:
        for path, text in texts.items():
            written.append((path, _write_beside(path, text)))
        for path, beside in written:
            replaced.append((path, _keep_former(path)))
            _rename(beside, path)
    except BaseException:
        for _, beside in written:
            _remove(beside)
        for path, former in replaced:
            _put_back(path, former)
        raise
    finally:
        for _, former in replaced:
            _remove(former)


def _keep_former(path: str) -> str:
    """A second name for what is at a path, or nothing where nothing is; raises OutputError."""
    target = os.path.realpath(path)
    former = f"{target}.{os.getpid()}.former"
    if not os.path.isfile(target):
        return ""
    try:
        os.link(target, former)
    except OSError:
        _copy(target, former)
    return former


def _put_back(path: str, former: str) -> None:
    """What was at a path before; of two names for one file a rename does nothing."""
    if former:
        _rename(former, path)
    else:
        _remove(os.path.realpath(path))


def _copy(target: str, former: str) -> None:
    """For file systems without hard links."""
    import shutil

    try:
        shutil.copy2(target, former)
    except OSError as error:
        raise _cannot_write(target, error) from None


def _rename(beside: str, path: str) -> None:
    try:
        os.replace(beside, os.path.realpath(path))
    except OSError as error:
        raise _cannot_write(path, error) from None


def _write_beside(path: str, text: str) -> str:
    """Write a file beside its place, with the mode of what is there; raises OutputError."""
    target = os.path.realpath(path)
    beside = f"{target}.{os.getpid()}.part"
    try:
        with open(beside, "x", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(beside, os.stat(target).st_mode & 0o7777)
        return beside
    except OSError as error:
        if not isinstance(error, FileExistsError):
            _remove(beside)
        raise _cannot_write(path, error) from None
    except BaseException:
        _remove(beside)
        raise


def _write_special(path: str, text: str) -> None:
    """A device or pipe, such as /dev/stderr, cannot be replaced."""
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: str, error: OSError) -> OutputError:
    return OutputError(
        "cannot write the output",
        where=Position(path),
        found=error.strerror or "",
        help="nothing was written; `--output -` prints the result",
    )


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        return
