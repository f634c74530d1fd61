"""The files that a package manager says it has put there: `RECORD` of a dist-info, and the lists of dpkg.

PyPA's "Recording installed projects", and dpkg(1): /var/lib/dpkg/info/PACKAGE.list.
"""

from __future__ import annotations

import posixpath
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.inventory.record import View

_LISTS = "var/lib/dpkg/info"
_LIBRARY = re.compile(r".*\.so(\.[\d.]+)?")
# The record itself, what images are made without (documentation, licences), and what is made anew.
_TELLING_NOTHING = re.compile(r".*\.(dist|egg)-info/.*|usr/share/.*|.*\.pyc")
# Files of a record that are looked for; it is no witness where none of the first ones is there.
_MOST = 2000


def owners(view: View, path: str, package: str) -> tuple[str, ...]:
    """The managers that list a file under a package, which nobody has put another file in the place of since."""
    entry = view.tree.entry(path)
    lists = [one for one in _dpkg(view, package) if path in _listed(view, one)]
    fresh = (entry is not None and view.layers.get(one, "") == entry.layer for one in lists)
    return ("dpkg",) if any(fresh) else ()


def of_package(view: View, package: str) -> list[str]:
    """The files that dpkg lists under a package, none where it has no list."""
    return [path for one in _dpkg(view, package) for path in _listed(view, one)]


def of_dist(view: View, metadata: str) -> list[str]:
    """The files that the record beside the metadata of a Python package lists, none where there is no record."""
    folder = posixpath.dirname(metadata)
    site = posixpath.dirname(folder)
    lines = view.kept.get(f"{folder}/RECORD", b"").splitlines()[:_MOST]
    names = (line.decode("utf-8", "replace").rsplit(",", 2)[0].strip('"') for line in lines)
    return [
        posixpath.normpath(posixpath.join("/", site, name)).strip("/") for name in names if name
    ]


def are_gone(view: View, files: Iterable[str]) -> bool:
    """Whether nothing is left of what a record lists: no library where it lists some, else no file at all."""
    listed = [path for path in files if not _TELLING_NOTHING.fullmatch(path)]
    telling = [path for path in listed if _LIBRARY.fullmatch(path)] or listed
    return bool(telling) and all(view.tree.entry(path) is None for path in telling)


def _dpkg(view: View, package: str) -> list[str]:
    """The lists of a package, one for each of its architectures."""
    plain = f"{_LISTS}/{package}.list"
    return [plain] if plain in view.kept else view.tree.glob(f"{_LISTS}/{package}:*.list")


def _listed(view: View, path: str) -> list[str]:
    """The files of a list of dpkg, without the directories above them."""
    lines = view.tree.text(path).splitlines()[:_MOST]
    names = [line.strip("/") for line in lines]
    above = {posixpath.dirname(name) for name in names}
    return [name for name in names if name not in above and name != "."]
