"""Families of kind `distributions`: packages of Debian and Ubuntu, by their package lists.

The lists are on disk, in the layout of apt or of an archive (`dists`); docs/harvest-tools.md describes the keys.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolmatrix.errors import HarvestRefused, Position, UsageError
from toolmatrix.factbase import pieces
from toolmatrix.harvest import missing
from toolmatrix.harvest.families import SINGLE, Family, HarvestContext, release_attributes, series
from toolmatrix.processors import processor
from toolmatrix.value import Value

# apt writes `/` as `_` in the names of its lists.
_LIST_PATH = re.compile(
    r"dists[_/](?P<codename>[a-z]+)(?P<pocket>-updates|-security)?[_/](?P<component>[\w-]+)[_/]"
    r"binary-(?P<arch>amd64|arm64)[_/]Packages(?P<packed>\.xz|\.gz|\.lz4)?"
)
_PARAGRAPH = re.compile(rb"Package: (\S+)\n(?:.+\n)*")
_CHECKSUM = re.compile(r"^ ([0-9a-f]{64}) +(\d+) (\S+)$", re.MULTILINE)
_RELEASES = ("InRelease", "Release")
_MOST_FILES = 100_000
# The longest lists have 80 MiB.
_LARGEST = 1 << 30
_NEEDED = ("Package", "Version", "Architecture", "Filename")


class PackageList(Value):
    """One list, with the versions of the wanted packages."""

    path: str
    codename: str
    machine: str
    # Its path in the archive, and its sha256 unpacked.
    name: str
    sha256: str
    versions: Mapping[str, str]


def lists(root: str, codenames: Sequence[str], wanted: re.Pattern[str]) -> list[PackageList]:
    """The lists of these codenames below a path, with the packages whose names match.

    Raises HarvestRefused if there is none, or one is damaged or truncated.
    """
    package_lists = [
        _read(path, match, wanted)
        for path in _files(root)
        if (match := _LIST_PATH.search(path)) is not None
        and match["codename"] in codenames
        and not path[match.end() :]
    ]
    if not package_lists:
        raise HarvestRefused(
            "no package list found",
            where=Position(root),
            expected="dists/CODENAME/COMPONENT/binary-ARCH/Packages of a known distribution, or lists of apt",
        )
    return sorted(package_lists, key=lambda package_list: (package_list.name, package_list.path))


def _files(root: str) -> Iterator[str]:
    if os.path.isfile(root):
        yield os.path.abspath(root)
        return
    count = 0
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            yield os.path.abspath(os.path.join(folder, name))
        count += len(names)
        if count > _MOST_FILES:
            raise HarvestRefused(
                "the directory has too many files to search for package lists",
                where=Position(root),
                expected=f"at most {_MOST_FILES} files",
            )


def _read(path: str, match: re.Match[str], wanted: re.Pattern[str]) -> PackageList:
    data = _unpack(path, match["packed"] or "")
    sha256 = hashlib.sha256(data).hexdigest()
    suite = match["codename"] + (match["pocket"] or "")
    name = f"{match['component']}/binary-{match['arch']}/Packages"
    _verify_checksum(path, match, name, sha256)
    return PackageList(
        path=path,
        codename=match["codename"],
        machine=processor(match["arch"]).kernel,
        name=f"dists/{suite}/{name}",
        sha256=sha256,
        versions=_versions(data, path, wanted),
    )


def _unpack(path: str, packed: str) -> bytes:
    try:
        with open(path, "rb") as file:
            if packed == ".lz4":
                data = _lz4(file.read(_LARGEST))
            elif packed == ".xz":
                with lzma.open(file) as unpacked:
                    data = unpacked.read(_LARGEST + 1)
            elif packed == ".gz":
                with gzip.open(file) as unpacked:
                    data = unpacked.read(_LARGEST + 1)
            else:
                data = file.read(_LARGEST + 1)
    except (OSError, EOFError, lzma.LZMAError, RuntimeError) as error:
        raise _damaged(path, str(error)) from None
    if len(data) > _LARGEST:
        raise _damaged(path, f"more than {_LARGEST} bytes")
    return data


def _lz4(data: bytes) -> bytes:
    try:
        import lz4.frame
    except ImportError:
        raise missing("lz4") from None
    frame = lz4.frame.LZ4FrameDecompressor()
    unpacked: bytes = frame.decompress(data, _LARGEST + 1)
    # lz4 unpacks a truncated frame without an error.
    if not frame.eof and len(unpacked) <= _LARGEST:
        raise EOFError("it ends early")
    return unpacked


def _verify_checksum(path: str, match: re.Match[str], list_name: str, sha256: str) -> None:
    """Compare a list with the checksums of its archive, if they are beside it."""
    # The separator after the suite: `/` in an archive, `_` in the lists of apt.
    slash = path[match.end("codename") + len(match["pocket"] or "")]
    start = path[: match.end("codename") + len(match["pocket"] or "")]
    for release in _RELEASES:
        try:
            with open(f"{start}{slash}{release}", encoding="utf-8", errors="replace") as file:
                checksums = {
                    name: digest for digest, _, name in _CHECKSUM.findall(file.read(_LARGEST))
                }
        except OSError:
            continue
        if checksums.get(list_name, sha256) != sha256:
            raise _damaged(path, f"sha256 {sha256}, but {release} lists {checksums[list_name]}")
        return


def _versions(data: bytes, path: str, wanted: re.Pattern[str]) -> dict[str, str]:
    try:
        from debian.deb822 import Packages
        from debian.debian_support import Version
    except ImportError:
        raise missing("python-debian") from None
    newest: dict[str, str] = {}
    end = 0
    whole = len(data.rstrip(b"\n"))
    # Most paragraphs are of other packages, and parsing one is slow.
    for match in _PARAGRAPH.finditer(data):
        end = match.end()
        name = match[1].decode("utf-8", "replace")
        # The last one shows whether the list is truncated.
        if end < whole and not wanted.fullmatch(name):
            continue
        fields = Packages(match[0].decode("utf-8", "replace"))
        absent = [field for field in _NEEDED if field not in fields]
        if absent:
            raise _damaged(path, f"{name} without {absent[0]}")
        version = str(fields["Version"])
        # A list may have one package in several versions; `0~` sorts before any of them.
        if wanted.fullmatch(name) and Version(newest.get(name, "0~")) < Version(version):
            newest[name] = version
    if data[end:].strip():
        raise _damaged(path, "data that is not a paragraph of a package")
    return newest


def _damaged(path: str, found: str) -> HarvestRefused:
    return HarvestRefused(
        "the package list is damaged",
        where=Position(path),
        expected="complete paragraphs of packages",
        found=found,
        help="fetch it again: `apt-get update`",
    )


_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_TWO = re.compile(r"\d+\.\d+")
# An upstream version may end with the day of a snapshot (`16-20260322-1ubuntu1`) or with `~rc`; the rest after a dash
# is the distribution's.
_UPSTREAM = re.compile(r"(?:\d+:)?(\d[\w.]*(?:-\d{8}|~rc\d+|~beta\d+)?)")
_OFFERS: Mapping[str, Any] = {
    "id": "distro-packages",
    "about": "compilers, Pythons and the C library that each distribution packages",
    "evidence": "artifact",
    "key": "distro",
    "stands-for": ["same-distro-packages"],
    "columns": {
        "machine": {"as": "when"},
        "codename": {"as": "attribute"},
        "gcc": {
            "as": "limits",
            "unreleased": True,
            "context": {"gcc-origin": "distribution"},
            "says": "{subject} {release} packages g++ {value}",
        },
        "clang": {
            "as": "offers",
            "unreleased": True,
            "context": {"clang-origin": "distribution"},
            "says": "{subject} {release} packages clang {value}",
        },
        "python": {
            "as": "limits",
            "unreleased": True,
            "context": {"interpreter": "distribution"},
            "says": "{subject} {release} packages python {value}",
        },
        "glibc": {
            "as": "requires",
            "unreleased": True,
            "says": "{subject} {release} has glibc {value}",
        },
        "gcc_points": {"as": "attribute"},
        "gcc_packages": {"as": "attribute"},
        "lists": {"as": "attribute"},
    },
}


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The facts about the distributions whose package lists are at a path. Raises ToolmatrixError."""
    fields = family.only(("releases", "rolling", "series", "versions"))
    if not context.place:
        raise UsageError(
            f"family `{family.name}` is read from package lists on disk",
            expected="`--from DIR` with Packages files, such as /var/lib/apt/lists",
        )
    names = {
        **{
            name: node.string("a distribution")
            for name, node in pieces.entries(fields, "rolling").items()
        },
        **{name: distro for distro, name in release_attributes(family, "codename").items()},
    }
    wanted = {
        column: _pattern(column, node.string(column))
        for column, node in pieces.entries(fields, "series").items()
    }
    columns = {
        column: node.string(column) for column, node in pieces.entries(fields, "versions").items()
    }
    every = "|".join(
        [*(regex.pattern for regex in wanted.values()), *map(re.escape, columns.values()), "libc6"]
    )
    package_lists = lists(context.place, tuple(names), re.compile(every))
    grouped: dict[tuple[str, str], list[PackageList]] = {}
    for package_list in package_lists:
        grouped.setdefault((names[package_list.codename], package_list.machine), []).append(
            package_list
        )
    rows = [
        _row(distro, machine, several, wanted, columns)
        for (distro, machine), several in sorted(grouped.items())
    ]
    attributes = {column: {"as": "attribute"} for column in columns}
    return {
        "sources": {
            f"packages-{distro}": {
                "title": f"package lists of {distro}",
                "at": f"Packages of {_suites(package_lists, codename)}, each with its sha256 in the row",
                "read": context.day,
            }
            for codename, distro in sorted(names.items())
            if any(package_list.codename == codename for package_list in package_lists)
        },
        "tables": [
            {
                **_OFFERS,
                "source": rows[0]["source"],
                "columns": {**_OFFERS["columns"], **attributes},
                "rows": rows,
            }
        ],
    }


def _suites(package_lists: Iterable[PackageList], codename: str) -> str:
    """The paths of the suites of a distribution in its archive."""
    suites = {
        "/".join(package_list.name.split("/")[:2])
        for package_list in package_lists
        if package_list.codename == codename
    }
    return " and ".join(sorted(suites))


def _pattern(component: str, name: str) -> re.Pattern[str]:
    """A pattern for the packages of each series; `{}` in the name is the series."""
    before, _, after = name.partition("{}")
    # `g++-12` is the package of one series, `python3` of none.
    digits = _NUMBERS if component in SINGLE else _TWO
    return re.compile(f"{re.escape(before)}{digits.pattern}{re.escape(after)}")


def _row(
    distro: str,
    machine: str,
    package_lists: Sequence[PackageList],
    wanted: Mapping[str, re.Pattern[str]],
    columns: Mapping[str, str],
) -> dict[str, Any]:
    versions = _newest(package_lists)
    offered = {column: _offered(column, pattern, versions) for column, pattern in wanted.items()}
    points = offered.get("gcc", {}).values()
    glibc = _NUMBERS.search(versions.get("libc6", ""))
    cells = {
        "codename": package_lists[-1].codename,
        **{column: " ".join(offers) for column, offers in offered.items()},
        "glibc": glibc[0] if glibc else "",
        "gcc_points": [_upstream(version) for version in points],
        "gcc_packages": list(points),
        **{column: versions.get(package, "") for column, package in columns.items()},
        "lists": [f"{package_list.name} {package_list.sha256}" for package_list in package_lists],
    }
    return {
        "id": f"distro-offers/{distro}" + ("" if machine == "x86_64" else f"/{machine}"),
        "distro": distro,
        "machine": machine,
        **{name: cell for name, cell in cells.items() if cell},
        "source": f"packages-{distro}",
        "where": "the packages of these names, the newest of release, updates and security",
    }


def _newest(package_lists: Iterable[PackageList]) -> dict[str, str]:
    from debian.debian_support import Version

    # In the order of dpkg, with `~rc1` before the release: it installs the newest.
    versions: dict[str, str] = {}
    for package_list in package_lists:
        for name, version in package_list.versions.items():
            if name not in versions or Version(versions[name]) < Version(version):
                versions[name] = version
    return versions


def _offered(column: str, pattern: re.Pattern[str], versions: Mapping[str, str]) -> dict[str, str]:
    """The series of a component that are packaged, the oldest first, each with the version of its package."""
    offers = {}
    for name, version in versions.items():
        if pattern.fullmatch(name):
            numbers = [*map(int, _NUMBERS.findall(name)[-1].split(".")), 0]
            release_series = series(column, *numbers[:2])
            offers[release_series] = version
    return dict(
        sorted(offers.items(), key=lambda pair: [int(digits) for digits in pair[0].split(".")])
    )


def _upstream(version: str) -> str:
    """The upstream version of a package."""
    match = _UPSTREAM.match(version)
    return match[1] if match else version
