"""The code in the newest file of a package: pure Python, or binaries and what these are compiled against."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmatrix.factbase.model import CODE_LIST
from toolmatrix.factbase.records import OPENED_CODE, PURE, UNOPENED_CODE
from toolmatrix.harvest import families, project
from toolmatrix.harvest.wheel import RemoteWheel
from toolmatrix.inspection import elf
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.harvest.families import HarvestContext
    from toolmatrix.harvest.package_facts import PackageRead

_LARGEST = 256 << 20
"""Bytes of a library that is read."""
_MOST = 24
"""Libraries of a wheel that are read, the largest first: the others are of the same build."""
_NAMED = 4
"""Libraries that a row names."""
_LIBRARY = re.compile(r"\.so(\.[0-9]+)*$")
# Python imports a library of such a name (PEP 3149, PEP 384); others are opened by ctypes or by the loader.
_MODULE = re.compile(r"\.(cpython-\d+[^/]*|abi3)\.so$")
# import_array() of NumPy's C API imports this by name.
_NUMPY = re.compile(rb"\bnumpy\._?core\._?multiarray\b")
_SOURCE_CODE = re.compile(r"\.(c|cc|cpp|cxx|cu|pyx|rs|f90?)$")
_MACHINE = project.MACHINES[0]


class _Contents(Value):
    """What the libraries of a wheel are and name; `read` of `count` were read, `large` others not."""

    modules: tuple[str, ...]
    numpy: bool
    needed: tuple[str, ...]
    device: bool
    read: int
    count: int
    large: bool


def table(
    family: str, read: Sequence[PackageRead], context: HarvestContext
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The source and the table of the code of packages, without those whose source archive compiles something.

    Raises IndexFailed and HarvestRefused.
    """
    rows = families.run_parallel(lambda entry: _row(entry, context), read)
    source = f"{family}-code"
    sources = {
        source: {
            "title": "Python package index: contents of packages",
            "at": "newest final release of each package, in the file that its row names",
            "read": context.day.isoformat(),
        }
    }
    return sources, {
        "id": source,
        "about": "kinds of code, and what binaries are compiled against",
        "source": source,
        "where": "members of `file`; DT_NEEDED, names of modules and device code of its shared objects",
        "evidence": "artifact",
        "lists": CODE_LIST,
        "columns": ["component", "kind", "against", "file"],
        "rows": [row for row in rows if row],
    }


def _row(package: PackageRead, context: HarvestContext) -> list[Any]:
    release = next((record for record in package.releases if record.release.files), None)
    if release is None:
        return []
    # The one for the newest Python, as its code is the newest.
    served = [wheel for (machine, _), wheel in release.served.items() if machine == _MACHINE]
    wheel = served[-1] if served else release.release.files[0]
    component, file = package.package.component, f"{wheel.name}, sha256 {wheel.sha256[:16]}"
    session, sonames = context.session, context.sonames
    if not release.release.wheels:
        names = project.source_names(session, wheel)
        if any(map(_SOURCE_CODE.search, names)):
            return []
        return [component, PURE, [], f"{file}: nothing that is compiled"]
    contents = _contents(RemoteWheel(session, wheel.url, wheel.sha256))
    if not contents.count:
        return [component, PURE, [], f"{file}: no shared object"]
    unread = (contents.device or contents.large) and component not in context.opened
    kind = UNOPENED_CODE if unread else OPENED_CODE
    return [component, kind, [*_against(contents, sonames)], f"{file}: {_words(contents, sonames)}"]


def _contents(wheel: RemoteWheel) -> _Contents:
    libraries = [name for name in wheel.names() if _LIBRARY.search(name)]
    small = [name for name in libraries if wheel.size(name) <= _LARGEST]
    chosen = sorted(small, key=lambda name: (-wheel.size(name), name))[:_MOST]
    read = [_library(wheel, name) for name in chosen]
    return _Contents(
        modules=tuple(name for name in libraries if _MODULE.search(name)),
        numpy=any(library.versions for library in read),
        needed=tuple(dict.fromkeys(name for library in read for name in library.dynamic.needed)),
        device=any(library.device or library.unread for library in read),
        read=len(read),
        count=len(libraries),
        large=len(small) < len(libraries),
    )


def _library(wheel: RemoteWheel, name: str) -> elf.Elf:
    data = wheel.read(name, _LARGEST)
    return elf.read(data, io.BytesIO(), len(data), _NUMPY, debug=False)


def _against(contents: _Contents, sonames: Mapping[str, str]) -> list[str]:
    bound = dict.fromkeys(component for _, component in _bound(contents, sonames))
    against = [*bound, *["numpy"] * contents.numpy, *["python"] * bool(contents.modules)]
    # Every library needs that of C.
    return against or ["glibc"]


def _bound(contents: _Contents, sonames: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in contents.needed:
        for pattern, component in sonames.items():
            if re.match(pattern, name):
                yield name, component


def _words(contents: _Contents, sonames: Mapping[str, str]) -> str:
    bound = [name for name, _ in _bound(contents, sonames)]
    texts = [
        " ".join(contents.modules[:1]),
        "NumPy C API" if contents.numpy else "",
        f"DT_NEEDED {' '.join(bound[:_NAMED])}" if bound else "",
        "device code" if contents.device else "" if contents.large else "no device code",
        f"{contents.read} of {contents.count} shared objects were read"
        if contents.read < contents.count
        else "",
    ]
    return "; ".join(filter(None, texts))
