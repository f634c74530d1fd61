"""Opening files that are judged, and those that they name beside them; bounded in size and number."""

from __future__ import annotations

import os

from toolmatrix import opener
from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests.traced import FileText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 1 << 20
"""Bytes of a file: lists of packages with all their hashes stay below."""
# So many files may be named by one another.
_MOST = 50


def opened(path: str, shown: str = "") -> FileText:
    """A file as text. Raises ManifestError."""
    shown = shown or path
    try:
        with opener.opened(path) as stream:
            data = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise ManifestError(
            "the file cannot be read",
            where=Position(shown),
            expected="a readable file",
            found=getattr(error, "strerror", "") or "an error",
        ) from None
    return decoded(data, shown)


def decoded(data: bytes, shown: str) -> FileText:
    """The text of a file. Raises ManifestError."""
    if len(data) > LARGEST:
        raise ManifestError(
            "the file is too large",
            where=Position(shown),
            expected=f"at most {LARGEST >> 20} MiB",
            found="more",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(
            "the file is not UTF-8",
            where=Position(shown, data[: error.start].count(b"\n") + 1),
            expected="UTF-8 text",
            found=f"byte 0x{data[error.start]:02x}",
        ) from None
    if "\0" in text:
        raise ManifestError(
            "the file is no text",
            where=Position(shown, text[: text.index("\0")].count("\n") + 1),
            expected="text",
            found="a zero byte",
        )
    return FileText(shown, text)


class Files:
    """The files beside one that is read, which it may name; `opened` are those that it did.

    `instead` are texts by path that are read in the place of what lies there.
    """

    def __init__(self, path: str = "", instead: Mapping[str, str] | None = None) -> None:
        self.folder = os.path.dirname(path)
        # Text without a path has nothing beside it.
        self.at_hand = bool(path)
        self.instead = instead or {}
        self.opened: list[FileText] = []

    def beside(self, name: str, of: str = "") -> FileText | None:
        """A file that another one names, by a path below the folder of the first; None where there is none."""
        folder = os.path.dirname(of) if of else self.folder
        path = os.path.normpath(os.path.join(folder, name))
        # What is read is what lies in the project: no device, nothing above it.
        inside = os.path.relpath(path, self.folder or ".").split(os.sep)[0] != os.pardir
        if not self.at_hand or os.path.isabs(name) or not inside or len(self.opened) >= _MOST:
            return None
        if not os.path.isfile(path) or any(one.path == path for one in self.opened):
            return None
        try:
            text = self.instead.get(path)
            found = opened(path) if text is None else FileText(path, text)
        except ManifestError:
            return None
        self.opened.append(found)
        return found
