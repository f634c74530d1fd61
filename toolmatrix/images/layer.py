"""One layer: its entries in the order in which they were written, and what it takes away from those below."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from toolmatrix.images import headers, streams
from toolmatrix.images.headers import Member
from toolmatrix.images.limits import LONGEST_NAME, MOST_PADDING, Budget
from toolmatrix.images.readahead import read_ahead
from toolmatrix.images.streams import Hashed
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.images.streams import Readable

    Look = Callable[[str, int, Readable], object]

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
# How names begin that mean something to AUFS alone; https://github.com/opencontainers/image-spec/blob/main/layer.md
_OWN = ".wh..wh."
DIRECTORY, FILE, LINK, HARD_LINK = "directory", "file", "link", "hard link"
LEFT_OUT = "left out"
"""What is kept of a file that would be too large together with the others of its layer."""


class Entry:
    """A file, directory or link. `held` is what was kept of a file's contents: bytes, or what a reader made of them."""

    __slots__ = ("held", "kind", "layer", "link", "mode", "size")

    def __init__(
        self, kind: str, *, size: int = 0, mode: int = 0, link: str = "", held: object = None
    ) -> None:
        self.kind = kind
        self.size = size
        self.mode = mode
        self.link = link
        self.held = held
        self.layer = ""

    @property
    def is_program(self) -> bool:
        """True for a file that somebody may run."""
        return self.kind == FILE and bool(self.mode & 0o111)


class Layer(Value):
    """Additions and removals of one layer, by paths without a leading slash.

    `digest` is that of the blob as stored, of `packed` bytes, `diff_id` that of it unpacked, of `size` bytes. `gone`
    are the paths that it removes from the layers below, `opaque` the directories of which it removes all that is below.
    `count` are the entries of its archive, `held` the bytes of files that are kept.
    """

    digest: str
    diff_id: str
    entries: tuple[tuple[str, Entry], ...] = ()
    gone: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    count: int = 0
    packed: int = 0
    size: int = 0
    held: int = 0


def read_layer(packed: Hashed, budget: Budget, look: Look) -> Layer:
    """A layer out of its blob, which is read to its end; raises SubjectError for what is no sound layer.

    `budget` is for this layer alone. `look` is given the path, size and contents of each regular file and returns what
    to keep of it, or None.
    """
    entries: list[tuple[str, Entry]] = []
    gone: list[str] = []
    opaque: list[str] = []
    try:
        unpacked = streams.Unpacked(packed, budget)
        with closing(read_ahead(unpacked)) as ahead:
            file = streams.Forward(ahead)
            for member in headers.members(file):
                budget.enter(member.name)
                path = inner_path(member.name, budget)
                folder, _, name = path.rpartition("/")
                if name == OPAQUE:
                    opaque.append(folder)
                elif name.startswith(WHITEOUT):
                    if not name.startswith(_OWN):
                        gone.append(f"{folder}/{name[4:]}".lstrip("/"))
                elif (entry := _entry(path, member, budget, look)) is not None:
                    entries.append((path, entry))
            # The diff id is that of all bytes, whatever stands behind the last file.
            _finish(file, packed, budget)
    except streams.errors() as error:
        raise damaged(budget, error) from None
    return Layer(
        digest=packed.digest,
        diff_id=unpacked.digest,
        entries=tuple(entries),
        gone=tuple(gone),
        opaque=tuple(opaque),
        count=budget.entries,
        packed=packed.count,
        size=budget.unpacked,
        held=budget.held,
    )


def inner_path(name: str, budget: Budget) -> str:
    """A name of an archive as a path from the root; raises SubjectError for one that climbs out of it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise budget.refusal(
            "a file name leaves the root",
            "names below the root, without `..`",
            f"`{name[:LONGEST_NAME]}`",
            "no tool that makes images writes such a name: do not unpack this archive",
        )
    return "/".join(parts)


def check_digest(expected: str, found: str, budget: Budget) -> None:
    """Raise SubjectError where content is not what its name promises."""
    if expected != found:
        raise budget.refusal(
            "content has another digest than its name says",
            expected,
            found,
            "it was damaged or replaced on the way: save or pull the image again",
        )


def damaged(budget: Budget, error: Exception) -> Exception:
    """The refusal of data that its reader could not make sense of."""
    message = str(error) or type(error).__name__
    return budget.refusal(
        "the archive is damaged", "a tar archive, whole", message, "save or copy the image again"
    )


def _entry(path: str, member: Member, budget: Budget, look: Look) -> Entry | None:
    if member.is_folder:
        return Entry(DIRECTORY, mode=member.mode)
    if member.is_link:
        return Entry(LINK, link=member.link)
    if member.is_hard_link:
        return Entry(HARD_LINK, link=inner_path(member.link, budget))
    # Devices and pipes hold nothing to read.
    if member.contents is None:
        return None
    held = look(path, member.size, member.contents)
    return Entry(FILE, size=member.size, mode=member.mode, held=held)


def _finish(file: streams.Forward, packed: Hashed, budget: Budget) -> None:
    # tar ends an archive with zeros up to a whole record; what hides behind it is no file of the layer.
    padding = 0
    while data := file.read(streams.BLOCK):
        padding += len(data)
        if padding > MOST_PADDING or data.strip(b"\0"):
            what = "zeros" if padding > MOST_PADDING else "other data"
            raise budget.refusal(
                "the archive is damaged",
                "its end after the last file",
                f"{what} behind it",
                "save or copy the image again",
            )
    streams.exhaust(packed)
