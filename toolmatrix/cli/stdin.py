"""What is piped in: named by `-`, and read once, for a matrix, a lock or the lines of a request."""

from __future__ import annotations

import os.path

from toolmatrix.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tempfile import TemporaryDirectory
    from typing import TextIO

NAME = "-"
# Bytes of a request.
_LARGEST = 1 << 20


class Stdin:
    """The stdin of one run."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.taken = ""
        self._folder: TemporaryDirectory[str] | None = None

    def read(self, what: str, most: int) -> bytes:
        """At most so many bytes; raises UsageError where something else has read them."""
        if self.taken:
            raise UsageError(
                "only one thing can be read from stdin",
                expected=f"`{NAME}` once",
                found=f"{self.taken} and {what}",
                help="put one of the two in a file",
            )
        self.taken = what
        raw = getattr(self.stream, "buffer", None)
        try:
            data: bytes = raw.read(most) if raw is not None else self.stream.read(most).encode()
        except OSError as error:
            raise UsageError(f"cannot read {what} from stdin", found=error.strerror or "") from None
        return data

    def matrix(self) -> str:
        """The path of a file with the matrix that is piped in: a matrix may be read again, by other processes too."""
        from tempfile import TemporaryDirectory

        from toolmatrix.facts.yamlfile import SIZE_LIMIT

        if self._folder is None:
            data = self.read("a matrix", SIZE_LIMIT + 1)
            self._folder = TemporaryDirectory(prefix="toolmatrix-")
            with open(self.path, "wb") as file:
                file.write(data)
        return self.path

    @property
    def path(self) -> str:
        """Where the matrix that was piped in lies; nothing where there was none."""
        return os.path.join(self._folder.name, "stdin") if self._folder is not None else ""

    def close(self) -> None:
        """Remove the file of the matrix."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def request(self) -> list[str]:
        """Requests, one a line; `#` begins a comment."""
        data = self.read("a request", _LARGEST)
        try:
            lines = data.decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise UsageError("the request on stdin is not text", expected="UTF-8") from None
        words = [line.partition("#")[0].strip() for line in lines]
        found = [word for word in words if word]
        if not found:
            raise UsageError(
                "no request on stdin", expected="requests such as `tensorflow==2.6.5`, one a line"
            )
        return found
