"""Opens files that users name: whatever may block or never end, such as a FIFO or a device, is refused.

A stream that the program was started with is no name in a file system: `/dev/stdin`, and `/dev/fd/63` as shells write
`<(command)`, are read to their ends.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader

_STREAMS = ("/dev/fd/", "/proc/self/fd/")
# It is empty.
_PLAIN = ("/dev/stdin", os.devnull)


def open_file(path: str) -> BufferedReader:
    """A file to read. Raises OSError for one that cannot be read or may never end, ValueError for no path."""
    _check(path, os.stat(path).st_mode)
    # A FIFO may have taken the place of what was looked at.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _check(path, os.fstat(descriptor).st_mode)
        os.set_blocking(descriptor, True)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: str, most: int) -> bytes | None:
    """The bytes of a file, None for more than so many. Raises as `open_file`."""
    with open_file(path) as file:
        # A stream has no size, and a file may grow.
        data = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    return data if data is None or len(data) <= most else None


def is_stream(path: str) -> bool:
    """True for a stream that the program was started with."""
    return path in _PLAIN or (path.startswith(_STREAMS) and os.path.basename(path).isdecimal())


def _check(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode) and not is_stream(path):
        raise OSError(errno.EINVAL, "it is not a regular file", path)
