"""Files written whole or not at all, beside their places, and renamed once all of a run are there; what is in one.

Results that come one after the other are lines, each on the disk before the next.
"""

from __future__ import annotations

import errno
import os
import os.path
import stat
from contextlib import contextmanager, suppress

from toolmatrix.errors import OutputError, Position, UsageError
from toolmatrix.opener import open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from io import FileIO
    from typing import IO, Any, NoReturn

    from typing_extensions import Self

_PIECE = 1 << 20
_PART = ".part"
LARGEST_RESULTS = 1 << 30
"""Bytes of a file of results that are read."""


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


def replace_files(texts: Mapping[str, Iterable[str] | bytes]) -> None:
    """Write files beside their places and rename them when all are there; raises OutputError.

    What is in one is a text, the pieces of one, or bytes. Where one cannot be renamed, those that were are put back as
    they were.
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
def os_errors_as(message: str, path: str, help: str = "") -> Iterator[None]:
    """Turn an OSError into an OutputError that names the path."""
    try:
        yield
    except BrokenPipeError:
        # A reader that has gone is no failure of ours; `main` ends quietly.
        raise
    except OSError as error:
        reason = error.strerror or ""
        raise OutputError(message, where=Position(path), found=reason, help=help) from None


class ResultsFile:
    """Documents of one schema that a run keeps as they come, and that the next goes on from; none without a path.

    On entry `take` is called with each that is there: it raises KeyError, TypeError, ValueError or AttributeError for
    one that is none. A line that a killed run left half is cut off; one that another run is writing looks the same, so
    a file belongs to one run at a time. Raises UsageError and OutputError.
    """

    def __init__(self, path: str, schema: str, take: Callable[[Any], None]) -> None:
        self.path = path
        self.schema = schema
        self.take = take
        self.whole = 0
        self.file: FileIO | None = None

    def __enter__(self) -> Self:
        if self.path:
            with self._keeping():
                # Unbuffered, so that after a failed write the file can be cut back to its whole lines.
                self.file = open(self.path, "ab+", buffering=0)
                try:
                    self._claim(self.file)
                    self.file.seek(0)
                    self.whole = self._take_up(self.file.readall())
                    self.file.truncate(self.whole)
                except BaseException:
                    self.file.close()
                    raise
        return self

    def _claim(self, file: FileIO) -> None:
        import fcntl

        # What a device such as /dev/full gives has no end, and a pipe keeps nothing.
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        if os.fstat(file.fileno()).st_size > LARGEST_RESULTS:
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST_RESULTS >> 20} MiB")
        try:
            # Of this process alone, as workers that outlive it for a moment would else keep it from the next run.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise OutputError(
                "cannot save the results",
                where=Position(self.path),
                found="another run is writing to it",
                help="wait for it, or give each run its own file: `toolmatrix merge` joins them",
            ) from None
        except OSError:
            # Not every file system has locks.
            return

    def read(self, data: bytes) -> bool:
        """Take what a file holds; returned is whether its last line is whole. Raises UsageError."""
        return self._take_up(data) == len(data)

    def _take_up(self, data: bytes) -> int:
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines()
        for line_number, line in enumerate(lines, 1):
            self._take_line(line, line_number)
        half = data[len(whole) :]
        if half and not self._is_ours(half):
            self._refuse(len(lines) + 1)
        return len(whole)

    # Only the beginning of a document may be cut off: another file may have one unfinished line.
    def _is_ours(self, half: bytes) -> bool:
        import json

        try:
            body = json.loads(half)
        except (ValueError, RecursionError):
            return half.startswith(b'{"')
        return isinstance(body, dict) and body.get("schema") == self.schema

    def _take_line(self, line: bytes, line_number: int) -> None:
        import json

        try:
            self.take(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._refuse(line_number)

    def _refuse(self, line_number: int) -> NoReturn:
        raise UsageError(
            "not a file of results",
            where=Position(self.path, line_number),
            expected=f"lines of `{self.schema}`",
            help="name a file that `--resume` wrote, or a new one",
        ) from None

    def add(self, body: Mapping[str, Any]) -> None:
        """Put a document on the disk. Raises OutputError, and leaves the lines before it."""
        import json

        if self.file is None:
            return
        line = json.dumps(body, sort_keys=True).encode() + b"\n"
        with self._keeping():
            try:
                # An unbuffered file may take less than it is given.
                left = memoryview(line)
                while left:
                    left = left[self.file.write(left) or 0 :]
                # A machine that loses power must not lose what was reported as kept.
                os.fsync(self.file.fileno())
            except OSError:
                # Whole or not at all: the next run would take half a line for a damaged file.
                with suppress(OSError):
                    self.file.truncate(self.whole)
                raise
        self.whole += len(line)

    def _keeping(self) -> AbstractContextManager[None]:
        help = "earlier results are kept: free disk space and run it again, or name another file"
        return os_errors_as("cannot save the results", self.path, help)

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()


def _writing(path: str) -> AbstractContextManager[None]:
    help = "nothing was written; `--output -` prints the result"
    return os_errors_as("cannot write the output", path, help)


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
    # Iterating over a string would give its characters.
    return (text,) if isinstance(text, str) else text


def _encode(text: Iterable[str] | bytes) -> Iterable[bytes]:
    if isinstance(text, bytes):
        return (text,)
    return (piece.encode("utf-8", "surrogateescape") for piece in _pieces(text))


def _write_beside(path: str, text: Iterable[str] | bytes) -> str:
    """Write a file beside its place, with the mode of what is there; raises OutputError."""
    target = os.path.realpath(path)
    beside = f"{target}.{os.getpid()}{_PART}"
    with _writing(path):
        _remove_left_over(target)
        try:
            # Undecodable bytes came in as surrogates, from paths for example, and go out as the same bytes.
            with open(beside, "xb") as file:
                _lock(file)
                file.writelines(_encode(text))
                file.flush()
                # Some file systems write the rename before the text: after a crash the file would be empty.
                os.fsync(file.fileno())
            if os.path.exists(target):
                os.chmod(beside, os.stat(target).st_mode & 0o7777)
        except FileExistsError:
            # Another process made it: leave it alone.
            raise
        except BaseException:
            _remove(beside)
            raise
    return beside


def _remove_left_over(target: str) -> None:
    """Remove what killed processes left beside a place."""
    folder, name = os.path.split(target)
    with suppress(OSError):
        for entry in os.listdir(folder):
            process = entry[len(name) + 1 : -len(_PART)]
            if entry != f"{name}.{process}{_PART}" or not process.isdecimal():
                continue
            path = os.path.join(folder, entry)
            # Locked while it is written: the number may be that of a process in another container.
            with suppress(OSError, OverflowError), open_file(path) as file:
                _lock(file)
                if int(process) == os.getpid() or not _is_running(int(process)):
                    _remove(path)


def _lock(file: IO[bytes]) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Not every file system has locks.
        if error.errno == errno.EWOULDBLOCK:
            raise


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove(path: str) -> None:
    with suppress(OSError):
        os.remove(path)


def file_digest(path: str) -> str:
    """The SHA-256 of a file, read piece by piece, in hexadecimal digits. Raises OSError."""
    from hashlib import sha256

    digest = sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
