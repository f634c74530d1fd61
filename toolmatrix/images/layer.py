"""One layer: its entries in the order in which they were written, and what it takes away from those below."""

from __future__ import annotations

import io
import tarfile

from toolmatrix.images import streams
from toolmatrix.images.limits import LONGEST_NAME, MOST_PADDING
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

    from toolmatrix.images.limits import Budget
    from toolmatrix.images.streams import Hashed, Readable

    Look = Callable[[str, int, Readable], object]

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
# How names begin that mean something to AUFS alone; https://github.com/opencontainers/image-spec/blob/main/layer.md
_OWN = ".wh..wh."
# Bytes of an extended header; a path has at most 4096.
_LARGEST_HEADER = 1 << 20
_EXTENDED = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)

DIRECTORY, FILE, LINK, HARD_LINK = "directory", "file", "link", "hard link"


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


class Layer(Value):
    """Additions and removals of one layer, by paths without a leading slash.

    `digest` is that of the blob as stored, `diff_id` that of it unpacked. `gone` are the paths that it removes from
    the layers below, `opaque` the directories of which it removes all that is below.
    """

    digest: str
    diff_id: str
    entries: tuple[tuple[str, Entry], ...] = ()
    gone: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()


class _Header(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> Self:
        made = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        # tarfile takes an extended header to memory whole, of whatever size it says that it is.
        if made.type in _EXTENDED and made.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {made.size} bytes")
        return made


def is_tar(head: bytes) -> bool:
    """Check whether a file that begins so is a tar archive as POSIX and GNU mark it."""
    return head[257:262] == b"ustar"


def members(file: streams.Forward) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The entries of a tar archive, one at a time and none kept; raises what tarfile raises."""
    with tarfile.open(
        fileobj=file,  # type: ignore[call-overload]
        # `r:*` would unpack by itself, and neither count nor hash.
        mode="r:",
        tarinfo=_Header,
        errors="surrogateescape",
    ) as tar:
        while (member := tar.next()) is not None:
            yield tar, member
            # tarfile keeps every header that it has read, by default for extracting.
            tar.members.clear()


def contents(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Readable:
    """The contents of a regular file; without the buffer that tarfile puts around it, which would copy once more."""
    file = tar.extractfile(member)
    assert isinstance(file, io.BufferedReader)  # noqa: S101 - a regular file
    raw: Readable = file.raw
    return raw


def read_layer(packed: Hashed, budget: Budget, look: Look) -> Layer:
    """A layer out of its blob, which is read to its end; raises SubjectError for what is no sound layer.

    `look` is given the path, size and contents of each regular file and returns what to keep of it, or None.
    """
    try:
        unpacked = streams.Unpacked(packed, budget)
        entries: list[tuple[str, Entry]] = []
        gone: list[str] = []
        opaque: list[str] = []
        file = streams.Forward(unpacked)
        for tar, member in members(file):
            budget.enter(member.name)
            path = inner_path(member.name, budget)
            folder, _, name = path.rpartition("/")
            if name == OPAQUE:
                opaque.append(folder)
            elif name.startswith(WHITEOUT):
                if not name.startswith(_OWN):
                    gone.append(f"{folder}/{name[4:]}".lstrip("/"))
            elif (entry := _entry(path, tar, member, budget, look)) is not None:
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


def damaged(budget: Budget, error: Exception) -> Exception:
    """The refusal of data that its reader could not make sense of."""
    message = str(error) or type(error).__name__
    return budget.refusal(
        "the archive is damaged", "a tar archive, whole", message, "save or copy the image again"
    )


def _entry(
    path: str, tar: tarfile.TarFile, member: tarfile.TarInfo, budget: Budget, look: Look
) -> Entry | None:
    if member.isdir():
        return Entry(DIRECTORY, mode=member.mode)
    if member.issym():
        return Entry(LINK, link=member.linkname)
    if member.islnk():
        return Entry(HARD_LINK, link=inner_path(member.linkname, budget))
    # Devices and pipes hold nothing to read.
    if not member.isreg():
        return None
    held = look(path, member.size, contents(tar, member))
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
