"""The file system that layers make together: whiteouts applied, links followed inside its root, nothing on disk."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from toolmatrix.images.layer import DIRECTORY, FILE, HARD_LINK, LINK, Entry, Layer
from toolmatrix.images.limits import Budget

if TYPE_CHECKING:
    Names = dict[str, "TreeNode"]

# Links that Linux follows in one path, see path_resolution(7).
_MOST_LINKS = 40


class TreeNode:
    """A place in the tree: its entry, and what is below it where that is a directory."""

    __slots__ = ("below", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.below: Names | None = {} if entry.kind == DIRECTORY else None


class LinkError(Exception):
    """A link that goes in circles."""


class Tree:
    """A merged file system. Paths have no leading slash; the root is the empty path."""

    def __init__(self) -> None:
        self.root = TreeNode(Entry(DIRECTORY))
        # The directory of the entry that was put in last, which mostly is that of the next.
        self._latest: tuple[str, Names] | None = None

    def apply(self, layer: Layer, budget: Budget) -> None:
        """Put a layer on top; raises SubjectError where it writes through links that go in circles."""
        try:
            # Whiteouts remove from lower layers alone, wherever among the entries they stand, image-spec layer.md.
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
                self._put(path, entry)
        except LinkError as error:
            raise budget.refusal(
                "a file lies below a link that goes in circles",
                "directories above every file",
                f"`{error}`",
            ) from None

    def _put(self, path: str, entry: Entry) -> None:
        # tar writes the first name of a file with its contents, all later ones as links; a target may lie in a lower
        # layer.
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
        held = below.get(name)
        # A directory over a directory replaces its mode and owner, and not what lies below it.
        if held is not None and entry.kind == held.entry.kind == DIRECTORY:
            held.entry = entry
        else:
            below[name] = TreeNode(entry)
            if held is not None:
                # What leads there may lead elsewhere now.
                self._latest = None

    # The names in a directory, which is made where it is missing or something else stands there: tar may write a file
    # before the directory that it lies in, and a layer may put a directory in the place of a file.
    def _folder(self, path: str) -> Names:
        node = self.root
        done = ""
        for name in path.split("/") if path else ():
            assert node.below is not None  # noqa: S101 - a directory by construction
            held = node.below.get(name)
            if held is not None and held.entry.kind == LINK:
                held = self._node(f"{done}/{name}")
            if held is None or held.below is None:
                held = node.below[name] = TreeNode(Entry(DIRECTORY))
            node = held
            done = f"{done}/{name}"
        assert node.below is not None  # noqa: S101
        return node.below

    def _node(self, path: str, *, follow: bool = True) -> TreeNode | None:
        return self._walk(path, follow=follow)[1]

    # The real path and the node that a path leads to, as the kernel would go from `/`.
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
        """The path without links that a path leads to; none where nothing is there, or links go in circles."""
        found, node = self._found(path)
        return found if node is not None else None

    def entry(self, path: str, *, follow: bool = True) -> Entry | None:
        """The entry at a path; links are followed."""
        node = self._found(path, follow=follow)[1]
        return node.entry if node is not None else None

    # To who looks, links in circles lead nowhere; only a layer that writes through them is refused.
    def _found(self, path: str, *, follow: bool = True) -> tuple[str, TreeNode | None]:
        try:
            return self._walk(path, follow=follow)
        except LinkError:
            return "", None

    def held(self, path: str) -> bytes | None:
        """The contents of a file, where they were kept."""
        entry = self.entry(path)
        return entry.held if entry is not None and isinstance(entry.held, bytes) else None

    def text(self, path: str) -> str:
        """The contents of a text file that were kept; empty where there are none."""
        return (self.held(path) or b"").decode("utf-8", "replace")

    def names(self, folder: str) -> list[str]:
        """The names in a directory, sorted; none where there is no directory."""
        node = self._found(folder)[1]
        return sorted(node.below) if node is not None and node.below else []

    def glob(self, pattern: str) -> list[str]:
        """The paths that a shell pattern matches, links of directories followed; sorted."""
        found = [""]
        for part in pattern.strip("/").split("/"):
            found = [
                f"{folder}/{name}".lstrip("/")
                for folder in found
                for name in self._matching(folder, part)
            ]
        return found

    def _matching(self, folder: str, part: str) -> Iterable[str]:
        # Where a name is known, the directory is not sorted for it.
        if not re.search(r"[*?\[]", part):
            return (part,) if self.entry(f"{folder}/{part}", follow=False) is not None else ()
        return fnmatch.filter(self.names(folder), part)

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
