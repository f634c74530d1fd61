"""Package lists of Debian and Ubuntu on the disk: as apt keeps them, or as an archive has them below `dists`."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.harvest.transport import missing
from toolmatrix.value import Value

# apt writes `/` as `_` in the names of its lists.
_PLACE = re.compile(
    r"dists[_/](?P<codename>[a-z]+)(?P<pocket>-updates|-security)?[_/](?P<component>[\w-]+)[_/]"
    r"binary-(?P<arch>amd64|arm64)[_/]Packages(?P<packed>\.xz|\.gz|\.lz4)?"
)
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_PARAGRAPH = re.compile(rb"Package: (\S+)\n(?:.+\n)*")
_CHECKSUM = re.compile(r"^ ([0-9a-f]{64}) +(\d+) (\S+)$", re.MULTILINE)
_RELEASES = ("InRelease", "Release")
_MOST_FILES = 100_000
# The longest lists have 80 MiB.
_LARGEST = 1 << 30
_NEEDED = ("Package", "Version", "Architecture", "Filename")


class PackageList(Value):
    """One list, with the versions of the packages that were asked for."""

    path: str
    codename: str
    machine: str
    # How the archive calls it, and the sha256 of it unpacked.
    name: str
    sha256: str
    versions: Mapping[str, str]


def lists(place: str, codenames: Sequence[str], wanted: re.Pattern[str]) -> list[PackageList]:
    """The lists below a place of distributions with these codenames, with the packages whose names match.

    Raises HarvestRefused where there is none, or one is damaged or cut off.
    """
    found = [
        _read(path, named, wanted)
        for path in _files(place)
        if (named := _PLACE.search(path)) is not None
        and named["codename"] in codenames
        and not path[named.end() :]
    ]
    if not found:
        raise HarvestRefused(
            "there is no package list",
            where=Position(place),
            expected="dists/CODENAME/COMPONENT/binary-ARCH/Packages of a known distribution, or lists of apt",
        )
    return sorted(found, key=lambda one: (one.name, one.path))


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):
        yield os.path.abspath(place)
        return
    count = 0
    for folder, _, names in os.walk(place):
        for name in sorted(names):
            yield os.path.abspath(os.path.join(folder, name))
        count += len(names)
        if count > _MOST_FILES:
            raise HarvestRefused(
                "the directory is too large for package lists",
                where=Position(place),
                expected=f"at most {_MOST_FILES} files",
            )


def _read(path: str, named: re.Match[str], wanted: re.Pattern[str]) -> PackageList:
    data = _unpacked(path, named["packed"] or "")
    sha256 = hashlib.sha256(data).hexdigest()
    suite = named["codename"] + (named["pocket"] or "")
    inside = f"{named['component']}/binary-{named['arch']}/Packages"
    _compare(path, named, inside, sha256)
    return PackageList(
        path=path,
        codename=named["codename"],
        machine=_MACHINES[named["arch"]],
        name=f"dists/{suite}/{inside}",
        sha256=sha256,
        versions=_versions(data, path, wanted),
    )


def _unpacked(path: str, packed: str) -> bytes:
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
    # Of a frame that was cut off lz4 unpacks what there is and says nothing.
    if not frame.eof and len(unpacked) <= _LARGEST:
        raise EOFError("it ends early")
    return unpacked


def _compare(path: str, named: re.Match[str], inside: str, sha256: str) -> None:
    """Hold a list against the checksums of its archive, where they lie beside it."""
    # What stands behind the suite separates all parts of this path: `/` in an archive, `_` where apt keeps lists.
    slash = path[named.end("codename") + len(named["pocket"] or "")]
    start = path[: named.end("codename") + len(named["pocket"] or "")]
    for release in _RELEASES:
        try:
            with open(f"{start}{slash}{release}", encoding="utf-8", errors="replace") as file:
                said = {name: digest for digest, _, name in _CHECKSUM.findall(file.read(_LARGEST))}
        except OSError:
            continue
        if said.get(inside, sha256) != sha256:
            raise _damaged(path, f"sha256 {sha256}, where {release} says {said[inside]}")
        return


def _versions(data: bytes, path: str, wanted: re.Pattern[str]) -> dict[str, str]:
    try:
        from debian.deb822 import Packages
        from debian.debian_support import Version
    except ImportError:
        raise missing("python-debian") from None
    found: dict[str, str] = {}
    end = 0
    whole = len(data.rstrip(b"\n"))
    # Most paragraphs are of other packages, and reading one takes long.
    for match in _PARAGRAPH.finditer(data):
        end = match.end()
        name = match[1].decode("utf-8", "replace")
        # The last one tells whether the list was cut off.
        if end < whole and not wanted.fullmatch(name):
            continue
        fields = Packages(match[0].decode("utf-8", "replace"))
        absent = [field for field in _NEEDED if field not in fields]
        if absent:
            raise _damaged(path, f"{name} without {absent[0]}")
        version = str(fields["Version"])
        # A list may have one package in several versions; `0~` sorts before any of them.
        if wanted.fullmatch(name) and Version(found.get(name, "0~")) < Version(version):
            found[name] = version
    if data[end:].strip():
        raise _damaged(path, "what is no paragraph of a package")
    return found


def _damaged(path: str, found: str) -> HarvestRefused:
    return HarvestRefused(
        "the package list is damaged",
        where=Position(path),
        expected="paragraphs of packages, whole",
        found=found,
        help="fetch it again: `apt-get update`",
    )
