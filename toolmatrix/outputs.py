"""Files written whole or not at all, beside their places, and renamed once all of a run are there; what is in one."""

from __future__ import annotations

import os
import os.path
from contextlib import contextmanager

from toolmatrix.errors import OutputError, Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

_PIECE = 1 << 20


def replace_file(path: str, pieces: Iterable[str]) -> None:
    """Write a file beside its place and rename it; raises OutputError and leaves what was there."""
    if not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path):
        replace_files({path: pieces})
        return
    # A device or pipe, such as /dev/stderr, cannot be replaced.
    with (
        _writing(path),
        open(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file,
    ):
        file.writelines(_pieces(pieces))


def replace_files(texts: Mapping[str, Iterable[str]]) -> None:
    """Write files, of a text or its pieces, beside their places and rename them when all are there; raises OutputError.

    Where one cannot be renamed, those that were are put back as they were.
    """
    written: list[tuple[str, str]] = []
    replaced: list[tuple[str, str]] = []
    try:
        # Nothing is replaced before all is written: a disk is found to be full while there is still no harm done.
        for path, text in texts.items():
            written.append((path, _write_beside(path, text)))
        for path, beside in written:
            replaced.append((path, _keep_former(path)))
            _rename(beside, path)
    except BaseException:
        for _, beside in written:
            _remove(beside)
        for path, former in replaced:
            # Of two names for one file a rename does nothing.
            if former:
                _rename(former, path)
            else:
                _remove(os.path.realpath(path))
        raise
    finally:
        for _, former in replaced:
            _remove(former)


@contextmanager
def told(message: str, path: str, help: str = "") -> Iterator[None]:
    """What the system refuses is an OutputError that names the path."""
    try:
        yield
    except BrokenPipeError:
        # A reader that has gone is no failure of ours; `main` ends quietly.
        raise
    except OSError as error:
        found = error.strerror or ""
        raise OutputError(message, where=Position(path), found=found, help=help) from None


def _writing(path: str) -> AbstractContextManager[None]:
    help = "nothing was written; `--output -` prints the result"
    return told("cannot write the output", path, help)


def _keep_former(path: str) -> str:
    """A second name for what is at a path, or nothing where nothing is; raises OutputError."""
    target = os.path.realpath(path)
    former = f"{target}.{os.getpid()}.former"
    if not os.path.isfile(target):
        return ""
    try:
        os.link(target, former)
    except OSError:
        # Not every file system has hard links.
        import shutil

        with _writing(target):
            shutil.copy2(target, former)
    return former


def _rename(beside: str, path: str) -> None:
    # A link stays a link, and what it points to is replaced.
    with _writing(path):
        os.replace(beside, os.path.realpath(path))


def _pieces(text: Iterable[str]) -> Iterable[str]:
    # A text is its letters to whoever goes through it.
    return (text,) if isinstance(text, str) else text


def _write_beside(path: str, text: Iterable[str]) -> str:
    """Write a file beside its place, with the mode of what is there; raises OutputError."""
    target = os.path.realpath(path)
    beside = f"{target}.{os.getpid()}.part"
    with _writing(path):
        try:
            # Undecodable bytes came in as surrogates, from paths for example, and go out as the same bytes.
            with open(
                beside, "x", encoding="utf-8", errors="surrogateescape", newline="\n"
            ) as file:
                file.writelines(_pieces(text))
                file.flush()
                # Some file systems write the rename before the text: after a crash the file would be empty.
                os.fsync(file.fileno())
            if os.path.exists(target):
                os.chmod(beside, os.stat(target).st_mode & 0o7777)
        except FileExistsError:
            # It is not ours, so it is not ours to remove.
            raise
        except BaseException:
            _remove(beside)
            raise
    return beside


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        return


def file_digest(path: str) -> str:
    """The SHA-256 of a file, read piece by piece, in hexadecimal digits. Raises OSError."""
    from hashlib import sha256

    found = sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
