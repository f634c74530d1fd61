"""In which directories the dynamic loader looks, by ld.so(8) and ldconfig(8) of glibc, and by musl's ldso/dynlink.c."""

from __future__ import annotations

import posixpath
import re

from toolmatrix.images.limits import MOST_SEARCHED, Budget
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.inventory.record import View

# Debian's names, https://wiki.debian.org/Multiarch/Tuples.
_MULTIARCH = {
    "386": "i386-linux-gnu",
    "amd64": "x86_64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
    "arm64": "aarch64-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
    "s390x": "s390x-linux-gnu",
}
# What the kernel calls a processor, AT_PLATFORM of getauxval(3).
_PLATFORMS = {"386": "i686", "amd64": "x86_64", "arm": "v7l", "arm64": "aarch64"}
_MUSL = ("lib", "usr/local/lib", "usr/lib")
_WORDS = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)|\{(ORIGIN|LIB|PLATFORM)\})")
_FOLDER, _PATTERN, _FILE = "folder", "pattern", "file"


class LibraryPath(Value):
    """The directories of an image in the order of its loader, after those that a file names itself.

    `variable` is LD_LIBRARY_PATH, whose words stand for those of the program that looks; `configured` is what ldconfig
    lists, and only files that are called like libraries; `system` is always searched. `lib` is what `$LIB` stands for.
    musl has no list of ldconfig.
    """

    machine: str
    lib: str
    variable: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    is_musl: bool = False

    @property
    def folders(self) -> tuple[str, ...]:
        """All of them, but for those that lie relative to a program."""
        fixed = self.expanded((one for one in self.variable if "ORIGIN" not in one), "")
        return (*fixed, *self.configured, *self.system)

    def expanded(self, folders: Iterable[str], path: str) -> list[str]:
        """Directories that a file names, with the words that the loader puts in; relative ones never match."""
        words = {
            "ORIGIN": "/" + posixpath.dirname(path),
            "LIB": self.lib,
            "PLATFORM": _PLATFORMS.get(self.machine, self.machine),
        }
        found = [_WORDS.sub(lambda word: words[word[1] or word[2]], one) for one in folders]
        return [posixpath.normpath(one).strip("/") for one in found if one.startswith("/")]


def of(view: View) -> LibraryPath:
    """The directories of an image."""
    multiarch = _MULTIARCH.get(view.machine, view.machine)
    has_multiarch = bool(
        view.tree.names(f"usr/lib/{multiarch}") or view.tree.names(f"lib/{multiarch}")
    )
    lib = f"lib/{multiarch}" if has_multiarch else "lib64"
    bare = LibraryPath(machine=view.machine, lib=lib)
    variable = tuple(_variable(view))
    paths = view.tree.glob("etc/ld-musl-*.path")
    if paths or view.tree.glob("lib/ld-musl-*"):
        words = re.split(r"[:\n]", view.tree.text(paths[0])) if paths else []
        system = tuple(word.strip("/ ") for word in words if word.strip()) or _MUSL
        return bare.replace(variable=variable, system=system, is_musl=True)
    return bare.replace(
        variable=variable,
        configured=tuple(_configured(view)),
        system=(lib, f"usr/{lib}", "lib", "usr/lib"),
    )


def _variable(view: View) -> Iterator[str]:
    """The elements of LD_LIBRARY_PATH; an empty one is the directory in which the image's program starts."""
    value = view.env.get("LD_LIBRARY_PATH", "")
    start = str(view.settings.get("WorkingDir") or "/")
    for word in re.split("[:;]", value) if value else ():
        yield word if word.startswith(("/", "$")) else posixpath.join(start, word)


def _configured(view: View) -> Iterator[str]:
    """The directories of ld.so.conf and of the files that it includes, in their order.

    What was met once is not met again, and all that is met is counted: a file may include itself on every line.
    """
    budget = Budget(view.image.subject)
    seen: set[tuple[str, str]] = set()
    todo = [(_FILE, "etc/ld.so.conf")]
    while todo:
        kind, word = met = todo.pop()
        if met in seen:
            continue
        seen.add(met)
        if len(seen) > MOST_SEARCHED:
            raise budget.refusal(
                "the loader is told to look in too many places",
                f"at most {MOST_SEARCHED} directories and files below ld.so.conf",
                "more than that",
            )
        if kind == _FOLDER:
            yield word
        else:
            more = _lines(view, word) if kind == _FILE else _included(view, word)
            todo += reversed(list(more))


def _lines(view: View, path: str) -> Iterator[tuple[str, str]]:
    """What a file lists: directories, and patterns of files to include."""
    for line in view.tree.text(path).splitlines():
        words = line.partition("#")[0].replace(",", " ").replace(":", " ").split()
        if words[:1] == ["include"]:
            base = posixpath.dirname(path)
            yield from ((_PATTERN, posixpath.join("/", base, one)) for one in words[1:])
        else:
            yield from ((_FOLDER, word.strip("/")) for word in words if word.startswith("/"))


def _included(view: View, pattern: str) -> Iterator[tuple[str, str]]:
    return ((_FILE, path) for path in view.tree.glob(pattern))
