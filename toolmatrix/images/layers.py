"""Layers of an image, each read once and ahead, and the file system that they make together.

Whiteouts are applied, links are followed inside the root, and nothing is written to disk. A layer is not read at all
where a store has its reading.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Protocol

from toolmatrix.images import streams
from toolmatrix.images.limits import LONGEST_NAME, MOST_PADDING, Budget
from toolmatrix.images.streams import BLOCK, Hashed, Member, Readable, Section, Unpacked, exhaust
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.images.image import ImageMetadata

    Look = Callable[[str, int, Readable], object]
    Names = dict[str, "TreeNode"]

    class Layers(Protocol):
        """A store for the readings of layers."""

        def layer(self, digest: str) -> Layer | None:
            """The layer of this digest, packed or unpacked; None where it is not stored."""

        def keep(self, layer: Layer) -> None:
            """Keep the reading of a layer, under both of its digests."""

        def image(self, name: str) -> ImageMetadata | None:
            """The metadata of an image; None where it is not stored."""

        def keep_image(self, name: str, image: ImageMetadata) -> None:
            """Store the metadata of an image under a name that no other image will have."""


WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
# The prefix of names with a meaning for AUFS alone; https://github.com/opencontainers/image-spec/blob/main/layer.md
_OWN = ".wh..wh."
DIRECTORY, FILE, LINK, HARD_LINK = "directory", "file", "link", "hard link"
LEFT_OUT = "left out"
"""The content of a file that would be too large together with the others of its layer."""


class Entry:
    """A file, directory or link. `content` is what is kept of a file: its bytes, or what a reader made of them.

    `owner` are its user and group, where its mode keeps others out.
    """

    __slots__ = ("content", "kind", "layer", "link", "mode", "owner", "size")

    def __init__(
        self,
        kind: str,
        *,
        size: int = 0,
        mode: int = 0,
        link: str = "",
        content: object = None,
        owner: tuple[int, int] = (0, 0),
    ) -> None:
        self.kind = kind
        self.size = size
        self.mode = mode
        self.link = link
        self.content = content
        self.layer = ""
        self.owner = (0, 0) if self._is_open else owner

    @property
    def _is_open(self) -> bool:
        return bool(self.mode & (0o001 if self.kind == DIRECTORY else 0o004))

    def admits(self, user: int, groups: Collection[int]) -> bool:
        """Check whether a user may enter the directory, or read the file."""
        # A directory that a layer only implies has no mode.
        if user == 0 or not self.mode or self._is_open:
            return True
        bit = 0o1 if self.kind == DIRECTORY else 0o4
        mine = 6 if user == self.owner[0] else 3 if self.owner[1] in groups else 0
        return bool(self.mode & bit << mine)

    @property
    def is_program(self) -> bool:
        """True for an executable file."""
        return self.kind == FILE and bool(self.mode & 0o111)


class Layer(Value):
    """Additions and removals of one layer, by paths without a leading slash.

    `digest` is that of the blob as stored, of `packed` bytes, `diff_id` that of it unpacked, of `size` bytes. `gone`
    are the paths that it removes from the layers below, `opaque` the directories that it empties there.
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
    """A layer out of its blob, which is read to its end; raises SubjectError for a damaged one.

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
            for member in streams.members(file):
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
            # The diff id covers all bytes, also those behind the last file.
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
        held=budget.in_memory,
    )


def inner_path(name: str, budget: Budget) -> str:
    """A name of an archive as a path from the root; raises SubjectError for one that leads out of it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise budget.refusal(
            "a file name leaves the root",
            "names below the root, without `..`",
            f"`{name[:LONGEST_NAME]}`",
            "no tool that makes images writes such a name: do not unpack this archive",
        )
    return "/".join(parts)


def check_digest(expected: str, actual: str, budget: Budget) -> None:
    """Raise SubjectError where content does not have its digest."""
    if expected != actual:
        raise budget.refusal(
            "content does not match its digest",
            expected,
            actual,
            "it was damaged or replaced in transit: save or pull the image again",
        )


def damaged(budget: Budget, error: Exception) -> Exception:
    """The refusal of damaged data."""
    message = str(error) or type(error).__name__
    return budget.refusal(
        "the archive is damaged", "a complete tar archive", message, "save or copy the image again"
    )


def _entry(path: str, member: Member, budget: Budget, look: Look) -> Entry | None:
    if member.is_folder:
        return Entry(DIRECTORY, mode=member.mode, owner=member.owner)
    if member.is_link:
        return Entry(LINK, link=member.link)
    if member.is_hard_link:
        return Entry(HARD_LINK, link=inner_path(member.link, budget))
    # Devices and pipes have no contents.
    if member.contents is None:
        return None
    content = look(path, member.size, member.contents)
    return Entry(FILE, size=member.size, mode=member.mode, content=content, owner=member.owner)


def _finish(file: streams.Forward, packed: Hashed, budget: Budget) -> None:
    # tar ends an archive with zeros up to a whole record; data behind it is not part of the layer.
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


# Blocks that a thread reads ahead.
_PIECES = 8
# Bytes that it reads at once where no reader waits for them: after each it waits for the interpreter.
_BESIDE = 4 << 20


class Ahead:
    """A stream that a thread reads ahead, so that hashing and unpacking run in parallel to its reader.

    Both release the interpreter. It is closed when it is read to its end or the rest is not needed.
    """

    __slots__ = ("_closed", "_pieces", "_rest", "_room", "_stream", "_thread")

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._pieces: SimpleQueue[bytes | BaseException] = SimpleQueue()
        # SimpleQueue is written in C, and every piece waits here.
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(_PIECES):
            self._room.put(None)
        self._thread: Thread | None = None
        self._rest = b""
        self._closed = False

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end; raises what reading the stream raises."""
        if self._rest:
            data, self._rest = self._rest[:size], self._rest[size:]
            return data
        if self._thread is None:
            # Small layers are read before a thread has started.
            data = self._stream.read(BLOCK)
            if len(data) == BLOCK:
                self._thread = Thread(target=self._run, daemon=True)
                self._thread.start()
        else:
            piece = self._pieces.get()
            self._room.put(None)
            if isinstance(piece, BaseException):
                raise piece
            data = piece
            if not data:
                # Reads behind the end get the same.
                self._pieces.put(data)
        if len(data) > size:
            data, self._rest = data[:size], data[size:]
        return data

    def _run(self) -> None:
        try:
            while not self._closed:
                self._room.get()
                data = self._stream.read(BLOCK)
                self._pieces.put(data)
                if not data:
                    return
        except BaseException as error:  # noqa: BLE001 - raised again where it is read
            self._pieces.put(error)

    def close(self) -> None:
        """Stop reading after the current piece."""
        self._closed = True
        if self._thread is not None:
            self._room.put(None)
            self._thread.join()


class Beside(Section):
    """A part of a file that a thread reads whole as `stream`, for count and digest; its end waits for that.

    The reader may skip most of it, and never waits for the thread before the end. Both must read the same, so a file
    that changes meanwhile is an error.
    """

    __slots__ = ("_closed", "_error", "_state", "_stream", "_thread")

    def __init__(self, section: Section, stream: Readable) -> None:
        super().__init__(section.fd, section.position, section.left)
        self._state = self._now()
        self._stream = stream
        self._error: BaseException | None = None
        self._closed = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end; raises there what reading the stream raised, and OSError."""
        data = super().read(size)
        if not data:
            self._thread.join()
            if self._error is not None:
                raise self._error
            if self._now() != self._state:
                raise OSError("the file was changed while it was read")
        return data

    def _now(self) -> tuple[int, ...]:
        status = os.fstat(self.fd)
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _run(self) -> None:
        try:
            while not self._closed and self._stream.read(_BESIDE):
                pass
        except BaseException as error:  # noqa: BLE001 - raised again where it is read
            self._error = error

    def close(self) -> None:
        """Stop reading after the current piece."""
        self._closed = True
        self._thread.join()


def read_ahead(stream: Unpacked) -> Ahead | Beside:
    """A stream that a thread hashes and unpacks in parallel to its reader."""
    section = stream.section
    return Ahead(stream) if section is None or section.left <= BLOCK else Beside(section, stream)


# Links that Linux follows in one path, see path_resolution(7).
_MOST_LINKS = 40


class TreeNode:
    """A node of the tree: its entry, and the nodes below a directory."""

    __slots__ = ("below", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.below: Names | None = {} if entry.kind == DIRECTORY else None


class LinkError(Exception):
    """A circular link."""


class Tree:
    """A merged file system. Paths have no leading slash; the root is the empty path."""

    def __init__(self) -> None:
        self.root = TreeNode(Entry(DIRECTORY))
        # The directory of the latest entry, which mostly is that of the next.
        self._latest: tuple[str, Names] | None = None

    def apply(self, layer: Layer, budget: Budget) -> None:
        """Put a layer on top; raises SubjectError where it writes through circular links."""
        try:
            # Whiteouts remove from lower layers alone, wherever they are among the entries, image-spec layer.md.
            for path in layer.opaque:
                node = self._node(path)
                if node is not None and node.below:
                    node.below.clear()
            for path in layer.gone:
                folder, _, name = path.rpartition("/")
                above = self._node(folder)
                if above is not None and above.below:
                    above.below.pop(name, None)
            self._latest = None
            for path, entry in layer.entries:
                entry.layer = layer.diff_id
                self._insert(path, entry)
        except LinkError as error:
            raise budget.refusal(
                "a file lies below a circular link",
                "directories above every file",
                f"`{error}`",
            ) from None

    def _insert(self, path: str, entry: Entry) -> None:
        # tar writes the first name of a file with its contents, later ones as links; a target may be in a lower layer.
        if entry.kind == HARD_LINK:
            target = self._node(entry.link, follow=False)
            if target is None or target.entry.kind == DIRECTORY:
                return
            entry = target.entry
        folder, _, name = path.rpartition("/")
        if self._latest is None or self._latest[0] != folder:
            self._latest = folder, self._folder(folder)
        below = self._latest[1]
        if not name:
            return
        existing = below.get(name)
        # A directory over a directory replaces its mode and owner, and not what lies below it.
        if existing is not None and entry.kind == existing.entry.kind == DIRECTORY:
            existing.entry = entry
        else:
            below[name] = TreeNode(entry)
            if existing is not None:
                # Paths through it may lead elsewhere now.
                self._latest = None

    # The names in a directory, created where needed: tar may write a file before its directory, and a layer may replace
    # a file by a directory.
    def _folder(self, path: str) -> Names:
        node = self.root
        prefix = ""
        for name in path.split("/") if path else ():
            assert node.below is not None  # noqa: S101 - a directory by construction
            child = node.below.get(name)
            if child is not None and child.entry.kind == LINK:
                child = self._node(f"{prefix}/{name}")
            if child is None or child.below is None:
                child = node.below[name] = TreeNode(Entry(DIRECTORY))
            node = child
            prefix = f"{prefix}/{name}"
        assert node.below is not None  # noqa: S101
        return node.below

    def _node(self, path: str, *, follow: bool = True) -> TreeNode | None:
        return self._walk(path, follow=follow)[1]

    # The real path and the node of a path, resolved from `/` as by the kernel.
    def _walk(self, path: str, *, follow: bool) -> tuple[str, TreeNode | None]:
        todo = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        trail: list[tuple[str, TreeNode]] = [("", self.root)]
        links = 0
        while todo:
            name = todo.pop()
            if name == "..":
                # `..` of the root is the root, so no link leads out of the image.
                if len(trail) > 1:
                    trail.pop()
                continue
            node = trail[-1][1].below.get(name) if trail[-1][1].below is not None else None
            if node is None:
                return "", None
            if node.entry.kind == LINK and (todo or follow):
                links += 1
                if links > _MOST_LINKS:
                    raise LinkError(path)
                if node.entry.link.startswith("/"):
                    del trail[1:]
                target = node.entry.link.split("/")
                todo += [part for part in reversed(target) if part not in ("", ".")]
                continue
            trail.append((name, node))
        return "/".join(name for name, _ in trail[1:]), trail[-1][1]

    def real(self, path: str) -> str | None:
        """The path without links that a path leads to; none where it does not exist, or links are circular."""
        real_path, node = self._lookup(path)
        return real_path if node is not None else None

    def entry(self, path: str, *, follow: bool = True) -> Entry | None:
        """The entry at a path; links are followed."""
        node = self._lookup(path, follow=follow)[1]
        return node.entry if node is not None else None

    # A lookup through circular links finds nothing; only a layer that writes through them is refused.
    def _lookup(self, path: str, *, follow: bool = True) -> tuple[str, TreeNode | None]:
        try:
            return self._walk(path, follow=follow)
        except LinkError:
            return "", None

    def content(self, path: str) -> bytes | None:
        """The contents of a file, where they were kept."""
        entry = self.entry(path)
        return entry.content if entry is not None and isinstance(entry.content, bytes) else None

    def text(self, path: str) -> str:
        """The contents of a text file that were kept; empty where there are none."""
        return (self.content(path) or b"").decode("utf-8", "replace")

    def names(self, folder: str) -> list[str]:
        """The names in a directory, sorted; none where there is no directory."""
        node = self._lookup(folder)[1]
        return sorted(node.below) if node is not None and node.below else []

    def glob(self, pattern: str) -> list[str]:
        """The paths that a shell pattern matches, links of directories followed; sorted."""
        paths = [""]
        for segment in pattern.strip("/").split("/"):
            paths = [
                f"{folder}/{name}".lstrip("/")
                for folder in paths
                for name in self._matching(folder, segment)
            ]
        return paths

    def _matching(self, folder: str, segment: str) -> Iterable[str]:
        # Where a name is known, the directory is not sorted for it.
        if not re.search(r"[*?\[]", segment):
            return (segment,) if self.entry(f"{folder}/{segment}", follow=False) is not None else ()
        return fnmatch.filter(self.names(folder), segment)

    def files(self) -> Iterator[tuple[str, Entry]]:
        """All regular files with their paths, each by the names it was written under, in a fixed order."""
        todo = [("", self.root)]
        while todo:
            path, node = todo.pop()
            if node.below is None:
                if node.entry.kind == FILE:
                    yield path, node.entry
                continue
            todo += [
                (f"{path}/{name}" if path else name, node.below[name])
                for name in sorted(node.below, reverse=True)
            ]


class LayerReader:
    """Reads layers within the budget of one subject; `look` makes the reader of the files of one of them."""

    def __init__(
        self, look: Callable[[Budget], Look], budget: Budget, store: Layers | None = None
    ) -> None:
        self.look = look
        self.budget = budget
        self.store = store
        self.lock = Lock()

    def trying(self) -> LayerReader:
        """A reader for an attempt that may fail, with a budget of its own."""
        return LayerReader(self.look, Budget(self.budget.subject), self.store)

    def known(
        self, digest: str, size: int = -1, blob: Callable[[], Readable] | None = None
    ) -> Layer | None:
        """The stored layer of a digest, with this size unless that is unknown (-1).

        Engines verify the digests of layers when they load or pull an image, so a known one need not be opened; a small
        `blob` is verified all the same, as that costs nothing.
        """
        layer = self._stored(digest)
        if layer is None or size not in (-1, layer.packed):
            return None
        if blob is not None and layer.packed <= BLOCK and self._digest(blob()) != digest:
            return None
        self._take(layer)
        return layer

    def _digest(self, blob: Readable) -> str:
        stream = Hashed(blob)
        try:
            exhaust(stream)
        except OSError as error:
            raise damaged(self.budget, error) from None
        return stream.digest

    def passing(self, digest: str, blob: Hashed) -> Layer:
        """The layer in a blob that can be read only once, verified if it has a digest; raises SubjectError."""
        layer = self._stored(digest) if digest else None
        if layer is None:
            return self.read(blob)
        exhaust(blob)
        check_digest(digest, blob.digest, self.budget)
        self._take(layer)
        return layer

    def image(self, name: str) -> tuple[ImageMetadata, Tree] | None:
        """The image of a name with its files, if it and all of its layers are known; raises SubjectError."""
        metadata = self.store.image(name) if self.store is not None else None
        if metadata is None:
            return None
        layers = [layer for layer in map(self._stored, metadata.layers) if layer is not None]
        if len(layers) != len(metadata.layers):
            return None
        tree = Tree()
        for layer in layers:
            self._take(layer)
            tree.apply(layer, self.budget)
        return metadata.replace(subject=self.budget.subject), tree

    def keep_image(self, name: str, image: ImageMetadata) -> None:
        """Store the metadata of an image under a name that no other image will have."""
        if self.store is not None:
            self.store.keep_image(name, image)

    def _take(self, layer: Layer) -> None:
        # Layers of a registry are read side by side.
        with self.lock:
            self.budget.take(layer)

    def _stored(self, digest: str) -> Layer | None:
        return self.store.layer(digest) if self.store is not None else None

    def read(self, packed: Hashed) -> Layer:
        """The layer in a blob; raises SubjectError for a damaged one."""
        budget = Budget(self.budget.subject)
        layer = read_layer(packed, budget, self.look(budget))
        if self.store is not None:
            self.store.keep(layer)
        self._take(layer)
        return layer
