"""What is kept of a file as its layer passes: all of the few that are read later, and what an ELF file says."""

from __future__ import annotations

import re

from toolmatrix.inventory import dynamic, elf, offload, packages, rpm
from toolmatrix.inventory.model import LOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.images.limits import Budget
    from toolmatrix.images.streams import Readable

_KIB, _MIB = 1 << 10, 1 << 20

# Paths of files that are kept, and how many of their first bytes; of some the name tells enough.
_KEPT = (
    (r"etc/os-release|usr/lib/os-release", 64 * _KIB),
    (r"etc/ld\.so\.(conf|preload)|etc/ld\.so\.conf\.d/[^/]+|etc/ld-musl-[^/]+\.path", 64 * _KIB),
    (r"var/lib/dpkg/status", 32 * _MIB),
    (r"var/lib/dpkg/status\.d/[^/]+", 64 * _KIB),
    (r"(lib|usr/lib)/apk/db/installed", 32 * _MIB),
    (r".*\.dist-info/METADATA|.*\.egg-info/PKG-INFO|.*/EGG-INFO/PKG-INFO", 4 * _KIB),
    (r".*\.egg-info", 4 * _KIB),
    (r".*\.dist-info/RECORD", 4 * _MIB),
    (rf"var/lib/dpkg/info/({'|'.join(packages.LISTED)})(:[^/]+)?\.list", 256 * _KIB),
    (r".*/pyvenv\.cfg", 64 * _KIB),
    (r".*/include/python[^/]+/patchlevel\.h", 64 * _KIB),
    (r".*/torch/version\.py", 64 * _KIB),
    (r".*/python\d[^/]*/_sysconfigdata[^/]*\.py", 256 * _KIB),
    (r".*/numpy/__config__\.py", 64 * _KIB),
    (r".*/numpy/_?core/include/numpy/_numpyconfig\.h", 64 * _KIB),
    (r".*/cuda[^/]*/version\.(json|txt)", 64 * _KIB),
    (r".*/(cudnn_version|nccl|NvInferVersion)[^/]*\.h", _MIB),
    (r".*/\.info/version[^/]*|.*/\.hipVersion|.*/share/hip/version", 4 * _KIB),
    (r".*/?(\.bazelrc|bazel\.bazelrc)", 64 * _KIB),
    (r"(.*/)?\.bazelversion", 64),
    (r"(.*/)?conda-meta/[^/]+\.json", 0),
    (re.escape(LOCK), 8 * _MIB),
)

_DATABASE = re.compile(
    r"(var/lib|usr/lib/sysimage|usr/share)/rpm/(rpmdb\.sqlite|Packages\.db|Packages)"
)
_LARGEST_DATABASE = 128 * _MIB

# Names of programs and libraries, and how the version stands in them. That of Bazel is a file, which is not packed, in
# the zip archive behind it (src/package-bazel.sh of Bazel).
_TOLD = (
    (r"(.*-)?(gcc|g\+\+|cc1|cc1plus)(-\d+)?", rb"\0(\d+\.\d+\.\d+)\0"),
    (r"python\d(\.\d+)?[a-z]*|libpython.*\.so.*", rb"\0(\d\.\d+\.\d+(?:(?:a|b|rc)\d+)?\+?)\0"),
    (r"clang(-\d+)?|libclang-cpp\.so.*", rb"(?:\0|version )(\d+\.\d+\.\d+)\0"),
    (r"bazel[\w.-]*", rb"PK\x03\x04[\x00-\xff]{26}build-label\.txt(\d+\.\d+\.\d+)"),
    (r"nvcc", rb"release \d+\.\d+, V(\d+\.\d+\.\d+)"),
    (r"bazel(-.*)?", rb"build-label\.txt(\d+\.\d+\.\d+(?:rc\d+)?)"),
    (r"ld-linux.*|ld-.*\.so|libc\.so\..*|libc-.*\.so", rb"stable release version (\d+\.\d+)"),
)

# How files begin that may hold device code without being ELF files: archives of objects, and what tools keep.
_CODE = (b"!<arch>\n", offload.FATBIN, offload.BUNDLE, offload.COMPRESSED)

# Files whose debug information is read; the first ones tell what the rest repeats.
_MOST_DEBUG = 200


def _either(rules: tuple[tuple[str, object], ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"({rule.replace('(', '(?:')})" for rule, _ in rules))


_KEEP = _either(_KEPT)
_TELL = _either(_TOLD)
_TELLING = tuple(re.compile(text) for _, text in _TOLD)


class Look:
    """Looks at the files of one subject; see `layer.read_layer`."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.debug = 0
        self.left_out: list[str] = []

    def __call__(
        self, path: str, size: int, stream: Readable
    ) -> bytes | elf.Elf | rpm.Database | None:
        """What to keep of a file."""
        if _DATABASE.fullmatch(path):
            return _database(size, stream)
        kept = _KEEP.fullmatch(path)
        if kept is not None and kept.lastindex is not None:
            return self._whole(path, min(size, _KEPT[kept.lastindex - 1][1]), stream)
        if size < 64:
            return None
        head = stream.read(64)
        if not head.startswith(dynamic.MAGIC):
            return elf.read_code(head, stream) if head.startswith(_CODE) else None
        told = _TELL.fullmatch(path.rpartition("/")[2])
        pattern = _TELLING[told.lastindex - 1] if told is not None and told.lastindex else None
        found = elf.read(head, stream, size, pattern, debug=self.debug < _MOST_DEBUG)
        self.debug += bool(found.options)
        return found

    def _whole(self, path: str, size: int, stream: Readable) -> bytes | None:
        if not self.budget.can_hold(size):
            self.left_out.append(path)
            return None
        return _first(size, stream)


def _first(size: int, stream: Readable) -> bytes:
    """So many bytes of a stream, fewer at its end."""
    pieces: list[bytes] = []
    while size > 0 and (data := stream.read(size)):
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


def _database(size: int, stream: Readable) -> rpm.Database:
    """The packages of a database of rpm, which is in memory as long as it is read."""
    if size > _LARGEST_DATABASE:
        reason = f"{size >> 20} MiB, of which no more than {_LARGEST_DATABASE >> 20} are read"
        return rpm.Database(damaged=f"the database is too large: {reason}")
    return rpm.read(_first(size, stream))
