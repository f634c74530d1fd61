"""A directory as the root of a system: looked at in place, without following any of its links outside."""

from __future__ import annotations

import os
import stat

from toolmatrix.images.image import Image
from toolmatrix.images.layer import DIRECTORY, FILE, LINK, Entry, Layer
from toolmatrix.images.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.images.layer import Look
    from toolmatrix.images.limits import Budget

# Where a running system mounts what are no files.
_ELSEWHERE = ("proc", "sys", "dev")


def read(path: str, look: Look, budget: Budget) -> tuple[Image, Tree]:
    """The files below a directory; raises SubjectError where it is none. What cannot be read is left out."""
    try:
        names = os.listdir(path)
    except OSError as error:
        raise budget.refusal(
            "cannot read the directory", "the root of a system", error.strerror or str(error)
        ) from None
    tree = Tree()
    entries = tuple(_below(path, sorted(names), look, budget))
    tree.apply(Layer(digest="", diff_id="", entries=entries), budget)
    return Image(subject=budget.subject), tree


def _below(root: str, names: list[str], look: Look, budget: Budget) -> Iterator[tuple[str, Entry]]:
    todo = [name for name in reversed(names) if name not in _ELSEWHERE]
    while todo:
        path = todo.pop()
        budget.enter(path)
        full = os.path.join(root, path)
        try:
            status = os.lstat(full)
            entry = _entry(path, full, status, look)
            if stat.S_ISDIR(status.st_mode):
                todo += [f"{path}/{name}" for name in sorted(os.listdir(full), reverse=True)]
        except OSError:
            continue
        if entry is not None:
            yield path, entry


def _entry(path: str, full: str, status: os.stat_result, look: Look) -> Entry | None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return Entry(DIRECTORY, mode=mode)
    if stat.S_ISLNK(mode):
        return Entry(LINK, link=os.readlink(full))
    if not stat.S_ISREG(mode):
        return None
    with open(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        held = look(path, status.st_size, stream)
    return Entry(FILE, size=status.st_size, mode=mode & 0o7777, held=held)
