"""Opening files that are judged, and those that they name beside them; bounded in size and number."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping

from toolmatrix import opener
from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests.model import FileText, ManifestEnvironment, NotRead, ProjectManifest

LARGEST, LARGEST_LOCK = 1 << 20, 1 << 23
"""Bytes of a file, and of a lock with the hashes of all its packages, or a notebook with its pictures."""
_LOCK = re.compile(r".*\.lock|pylock\..*toml|.*lock\.ya?ml|.*\.ipynb", re.IGNORECASE)
# So often files may be named by one another: one that two stages install from is read twice.
_MOST = 50


def root_of(path: str) -> str:
    """The folder that a file may name others in: the working tree of Git that it is in, or else where it is."""
    folder = current = os.path.realpath(os.path.dirname(path) or ".")
    while not os.path.lexists(os.path.join(current, ".git")):
        current, before = os.path.dirname(current), current
        if current == before:
            return folder
    return current


LEFT_OUT = re.compile(
    r"dev(elop(ment)?)?|tests?|testing|(read(the)?)?docs?|lint(ing)?|typing|style|ci|build|release|publish|optional|constraints?"
    r"|examples?|notebooks?|benchmarks?"
)
"""Names of what a repository is not run with."""


def is_inside(path: str, root: str) -> bool:
    """True if a path is in a folder, and leads out of it by no link."""
    root = os.path.realpath(root)
    return os.path.commonpath((os.path.realpath(path), root)) == root


def read_file(path: str, root: str = "") -> FileText:
    """A file as text; with a root it is in that folder also after following links. Raises ManifestError."""
    if root and not is_inside(path, root) and not opener.is_stream(path):
        raise ManifestError(
            "the file is a link that leaves the judged directory",
            where=Position(path),
            expected=f"a file in {root}",
            help="name the file that it links to",
        )
    try:
        data = opener.read_file(path, _largest(path))
    except (OSError, ValueError) as error:
        raise ManifestError(
            "the file cannot be read",
            where=Position(path),
            expected="a readable file",
            found=getattr(error, "strerror", "") or "an error",
        ) from None
    return decode(data, path, root)


def _largest(path: str) -> int:
    return LARGEST_LOCK if _LOCK.fullmatch(os.path.basename(path)) else LARGEST


def decode(data: bytes | None, path: str, root: str = "") -> FileText:
    """The text of a file, of which None is too large. Raises ManifestError."""
    if data is None or len(data) > _largest(path):
        raise ManifestError(
            "the file is too large",
            where=Position(path),
            expected=f"at most {_largest(path) >> 20} MiB",
            found="more",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(
            "the file is not UTF-8",
            where=Position(path, data[: error.start].count(b"\n") + 1),
            expected="UTF-8 text",
            found=f"byte 0x{data[error.start]:02x}",
        ) from None
    if "\0" in text:
        raise ManifestError(
            "the file is not text",
            where=Position(path, text[: text.index("\0")].count("\n") + 1),
            expected="text",
            found="a zero byte",
        )
    return FileText(path, text, root)


class Files:
    """The files beside one that is read, which it may name; `opened` are those that it did.

    They are in a folder, by all their links. `instead` are texts by path that are read in the place of what lies there.
    """

    def __init__(
        self, path: str = "", instead: Mapping[str, str] | None = None, root: str = ""
    ) -> None:
        self.folder = os.path.dirname(path)
        self.root = root or root_of(path)
        # Text without a path has nothing beside it.
        self.at_hand = bool(path)
        self.instead = instead or {}
        self.opened: list[FileText] = []
        self.named: list[str] = []

    def within(self, folder: str) -> Files:
        """The same files, named from another folder, which is named from this one."""
        other = copy.copy(self)
        other.folder = os.path.normpath(os.path.join(self.folder, folder))
        return other

    def out_of_reach(self) -> Files:
        """None of them: what is named is beside something else."""
        other = copy.copy(self)
        other.at_hand = False
        return other

    def has(self, name: str) -> bool:
        """Whether a file is beside the one that is read."""
        return self.at_hand and os.path.isfile(os.path.join(self.folder, name))

    def beside(self, name: str, of: str = "") -> FileText | None:
        """A file that another one names by a path in the root; None where there is none."""
        folder = os.path.dirname(of) if of else self.folder
        path = os.path.normpath(os.path.join(folder, name))
        if not self.at_hand or os.path.isabs(name) or len(self.named) >= _MOST:
            return None
        self.named.append(path)
        # What is read is what lies in the project: no device, nothing outside it.
        if not (os.path.isfile(path) and is_inside(path, self.root)):
            return None
        known = next((file for file in self.opened if file.path == path), None)
        if known is not None:
            return known
        try:
            text = self.instead.get(path)
            file = read_file(path) if text is None else FileText(path, text)
        except ManifestError:
            return None
        self.opened.append(file)
        return file

    def manifest(
        self,
        kind: str,
        source: FileText,
        environments: Iterable[ManifestEnvironment],
        unread: Iterable[NotRead],
    ) -> ProjectManifest:
        """What was read in a file and those that it names: its environments with items, and what was not read."""
        return ProjectManifest(
            kind=kind,
            environments=tuple(environment for environment in environments if environment.items),
            unread=tuple(unread),
            sources=(source, *self.opened),
        )
