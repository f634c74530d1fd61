"""Archives made to exhaust, to mislead or to break what reads them: each kind by name, built when it is asked for.

`python -m tests.images.hostile_archives` reads each in a process with bounds, and prints what came of it.
"""

from __future__ import annotations

import bz2
import json
import lzma
import os
import resource
import sqlite3
import struct
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from tests.images import images
from tests.images.images import as_json, hard_link, link
from tests.inspection.test_observe import cache

Build = Callable[[], bytes]

PROCESSOR, MEMORY = 120, 1 << 30
"""Seconds of processor time and bytes of address space beyond what is there that reading one of them may take."""
SITE = "usr/lib/python3/dist-packages"
RPM = "var/lib/rpm"
MIB = 1 << 20
KINDS: dict[str, Build] = {}
LONG = frozenset(
    (
        *("files-a-million", "record-dpkg-31-mib"),
        *("bomb-gzip", "bomb-gzip-archive", "bomb-bzip2-archive", "bomb-xz-archive"),
        *("bomb-below-suspicion", "setting-many-variables", "record-conda-many"),
        "loader-includes-many",
    )
)
"""Those that take seconds, the first one half a minute."""


def kind(build: Build) -> Build:
    """Enter what builds an archive."""
    KINDS[build.__name__.replace("_", "-")] = build
    return build


def of(
    *layers: Mapping[str, bytes | tarfile.TarInfo] | bytes,
    pack: Callable[[bytes], bytes] | None = None,
    **config: Any,
) -> bytes:
    """An archive of an image of these layers."""
    return images.tar(images.saved(images.image(*layers, pack=pack, **config)))


def each(name: str, builds: Mapping[str, Build]) -> None:
    """Enter several of one kind."""
    KINDS.update({f"{name}-{part}": build for part, build in builds.items()})


def file(name: str, data: bytes) -> Build:
    """An image with one file."""
    return lambda: of({name: data})


def layer(pieces: Callable[[], bytes]) -> Build:
    """An image with a layer as it is."""
    return lambda: of(pieces())


def info(
    name: str, size: int = 0, type: bytes = tarfile.REGTYPE, pax: Mapping[str, str] | None = None
) -> bytes:
    """The header of a file."""
    made = tarfile.TarInfo(name)
    made.size, made.type, made.pax_headers = size, type, dict(pax or {})
    return made.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)


def edited(change: Callable[[dict[str, Any]], object], part: str = "manifest") -> Build:
    """A layout as an archive, whose manifest or configuration was changed and digests made to fit."""

    def build() -> bytes:
        made = images.image({"etc/os-release": b"ID=debian\n"})
        manifest = json.loads(made.blobs[made.entry["digest"]])
        blobs = dict(made.blobs)
        if part == "config":
            config = json.loads(made.config)
            config = change(config) or config
            data = as_json(config)
            manifest["config"] |= {"digest": images.digest(data), "size": len(data)}
            blobs[images.digest(data)] = data
        else:
            manifest = change(manifest) or manifest
        data = as_json(manifest)
        entry = made.entry | images.described(data, images.MANIFEST)
        return images.tar(
            images.layout(made._replace(entry=entry, blobs={**blobs, entry["digest"]: data}))
        )

    return build


def index(data: Callable[[], bytes]) -> Build:
    """An archive whose index is this."""
    return lambda: images.tar({"index.json": data()})


# Names and links.
each(
    "name",
    {
        "climbs": file("../../etc/passwd", b"x"),
        "climbs-inside": file("a/../../b", b"x"),
        "absolute": file("/etc/os-release", b"ID=debian\n"),
        "dots": file("././/.", b"x"),
        "of-the-archive-climbs": lambda: images.tar({"../x": b"1"}),
        "deep": file("a/" * 300 + "b", b"x"),
        "long": file("a" * 5000, b"x"),
        "escapes": file(
            f"{SITE}/numpy\x1b[31m-1.0.dist-info/METADATA", b"Name: numpy\nVersion: 1\n"
        ),
        "bidi": file(f"{SITE}/numpy\u202e-1.0.dist-info/METADATA", b"Name: numpy\nVersion: 1\n"),
        "newline": file(f"{SITE}/a\n::error::b-1.0.dist-info/METADATA", b"Name: a\nVersion: 1\n"),
        "not-utf8": layer(
            lambda: info("opt/\udcff/lib.so", 4) + b"\x7fELF".ljust(512, b"\0") + bytes(1024)
        ),
    },
)
each(
    "link",
    {
        "outwards": lambda: of({"a": link("../../../../etc"), "a/passwd": b"x"}),
        "in-circles": lambda: of({"usr/bin": link("../bin"), "bin": link("usr/bin")}),
        "below-a-circle": lambda: of({"a": link("b"), "b": link("a"), "a/c": b"x"}),
        "to-itself": lambda: of({"usr/bin/python3": link("python3")}),
        "chain": lambda: of({f"bin/{n}": link(f"{n + 1}") for n in range(5000)}),
        "doubling": lambda: of({f"a{n}": link(f"a{n + 1}/../a{n + 1}") for n in range(60)}),
        "hard-climbs": lambda: of({"a": hard_link("../../etc/passwd")}),
        "hard-to-itself": lambda: of({"a": hard_link("a")}),
        "hard-to-a-directory": lambda: of({"d/a": b"x", "b": hard_link("d")}),
        "hard-across-layers": lambda: of({"a": b"x"}, {".wh.a": b"", "b": hard_link("a")}),
    },
)
each(
    "whiteout",
    {
        "of-the-root": lambda: of({"a": b"x"}, {".wh.": b""}),
        "opaque-root": lambda: of({"a": b"x"}, {".wh..wh..opq": b""}),
        "of-the-parent": lambda: of({"a/b": b"x"}, {"a/.wh...": b"", "a/.wh..": b""}),
        "through-a-link": lambda: of({"a": link("/"), "etc/b": b"x"}, {"a/etc/.wh.b": b""}),
        "many": lambda: of({"a": b"x"}, {f"d{n}/.wh..wh..opq": b"" for n in range(20_000)}),
    },
)


# Sizes.
def zeros(pack: Callable[[bytes], bytes], size: int) -> bytes:
    """A packed layer with a file of zeros, one packed piece of them after another."""
    piece = pack(bytes(64 * MIB))
    return pack(info("zeros", size)) + piece * (size // (64 * MIB)) + pack(bytes(1024))


def zstd(data: bytes) -> bytes:
    """Packed with zstd."""
    return zstandard.ZstdCompressor().compress(data)


def packed_layer(data: bytes, plain: bytes = b"") -> bytes:
    """An archive with a packed layer whose digest nobody computed."""
    files = images.saved(images.image(plain))
    return images.tar({**files, "0/layer.tar": data})


each(
    "bomb",
    {
        "gzip": lambda: packed_layer(zeros(images.gzipped, 4 << 30)),
        "zstd": lambda: packed_layer(zeros(zstd, 4 << 30)),
        "gzip-archive": lambda: zeros(images.gzipped, 4 << 30),
        "zstd-archive": lambda: zeros(zstd, 4 << 30),
        "xz-archive": lambda: zeros(lambda data: lzma.compress(data, preset=0), 4 << 30),
        "bzip2-archive": lambda: zeros(bz2.compress, 2 << 30),
        "nested": lambda: packed_layer(images.gzipped(images.gzipped(images.tar({"a": b"x"})))),
        "of-empty-streams": lambda: packed_layer(images.gzipped(b"") * 200_000),
        "below-suspicion": lambda: packed_layer(zeros(images.gzipped, 960 * MIB)),
    },
)


@kind
def window_of_2_gib() -> bytes:
    """A frame of zstd that wants a window of 2 GiB (RFC 8878, 3.1.1.1.2)."""
    return packed_layer(b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00" * 100)


@kind
def dictionary_of_4_gib() -> bytes:
    """An archive of xz whose block wants a dictionary of 4 GiB (the .xz file format, 3.1 and 5.3.1)."""
    data = bytearray(lzma.compress(images.tar({"a": b"x"})))
    size = (data[12] + 1) * 4
    data[12 + 4] = 40
    data[12 + size - 4 : 12 + size] = struct.pack("<I", zlib.crc32(data[12 : 12 + size - 4]))
    return bytes(data)


each(
    "size",
    {
        "of-a-sparse-file": layer(
            lambda: (
                info(
                    "GNUSparseFile.0/x",
                    512,
                    pax={
                        "GNU.sparse.major": "1",
                        "GNU.sparse.minor": "0",
                        "GNU.sparse.name": "usr/bin/gcc",
                        "GNU.sparse.realsize": str(1 << 44),
                    },
                )
                + b"0\n".ljust(512, b"\0")
                + bytes(1024)
            )
        ),
        "of-a-header": layer(lambda: info("x", 4 << 30, tarfile.XHDTYPE) + bytes(4096)),
        "of-a-long-name": layer(
            lambda: info("x", MIB - 512, tarfile.GNUTYPE_LONGNAME) + b"a" * MIB + bytes(1024)
        ),
        "in-a-pax-header": layer(lambda: info("a", pax={"size": str(1 << 60)}) + bytes(4096)),
        "below-zero": layer(lambda: negative() + bytes(4096)),
        "beyond-the-end": layer(lambda: info("a", 1 << 30) + bytes(4096)),
        "of-zeros-behind": layer(lambda: images.tar({"a": b"x"}) + bytes(64 * MIB)),
        "of-garbage-behind": layer(lambda: images.tar({"a": b"x"}) + b"garbage" * 100),
        "false-in-a-manifest": edited(lambda it: it["layers"][0].update(size=1)),
        "below-zero-in-a-manifest": edited(lambda it: it["layers"][0].update(size=-1)),
        "huge-in-a-manifest": edited(lambda it: it["layers"][0].update(size=1 << 70)),
    },
)


def negative() -> bytes:
    """A header whose size is -1 in base 256."""
    made = bytearray(info("a", 0))
    made[124:136] = b"\xff" * 12
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


@kind
def devices() -> bytes:
    return of({f"dev/{n}": images.special(b"3467"[n % 4 : n % 4 + 1]) for n in range(400)})


@kind
def files_a_million() -> bytes:
    block = b"".join(info(f"f{number}") for number in range(1000))
    return packed_layer(images.gzipped(block) * 1001)


@kind
def files_many_names() -> bytes:
    return of({f"{n % 100}/{n}": b"" for n in range(30_000)})


# What is cut off, or is not what it says.
WHOLE = images.layout(images.image({"etc/os-release": b"ID=debian\n" * 100}))
each(
    "cut",
    {
        "in-a-header": lambda: images.tar(WHOLE)[:700],
        "in-a-blob": lambda: images.tar(WHOLE)[:3000],
        "in-gzip": lambda: images.gzipped(images.tar(WHOLE))[:-200],
        "in-a-packed-layer": lambda: packed_layer(
            images.gzipped(images.tar({"a": b"x" * 9999}))[:-30]
        ),
        "to-nothing": lambda: b"",
        "to-zeros": lambda: bytes(10240),
    },
)
each(
    "digest",
    {
        "of-a-layer": lambda: of({"a": b"x"}).replace(
            b"a".ljust(100, b"\0"), b"b".ljust(100, b"\0")
        ),
        "of-the-configuration": edited(lambda it: it["config"].update(digest="sha256:" + "0" * 64)),
        "that-climbs": edited(lambda it: it["config"].update(digest="sha256:../../etc/passwd")),
        "of-another-kind": edited(lambda it: it["config"].update(digest="md5:" + "0" * 32)),
        "of-unpacked-layers": edited(
            lambda it: it["rootfs"].update(diff_ids=["sha256:" + "0" * 64]), "config"
        ),
    },
)
each(
    "layers",
    {
        "5000": edited(lambda it: it["rootfs"].update(diff_ids=["x"] * 5000), "config"),
        "fewer": edited(lambda it: it["rootfs"].update(diff_ids=[]), "config"),
        "none": edited(lambda it: it.pop("rootfs"), "config"),
        "twice": edited(lambda it: it["layers"].append(it["layers"][0])),
        "foreign": edited(
            lambda it: it["layers"][0].update(
                urls=["http://169.254.169.254/"],
                mediaType="application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            )
        ),
        "encrypted": edited(
            lambda it: it["layers"][0].update(mediaType=f"{images.OCI}.layer.v1.tar+encrypted")
        ),
    },
)
DIGEST = "sha256:" + "0" * 64
ENTRY = {"mediaType": images.MANIFEST, "digest": DIGEST, "size": 2}
each(
    "index",
    {
        "of-itself": index(lambda: as_json({"manifests": [ENTRY | {"mediaType": images.INDEX}]})),
        "of-100000": index(lambda: as_json({"manifests": [ENTRY] * 100_000})),
        "and-manifest": index(lambda: b'{"manifests": [], "config": {}}'),
        "of-numbers": index(lambda: b'{"manifests": [1, 2, 3]}'),
        "of-schema-1": index(lambda: b'{"schemaVersion": 1, "fsLayers": []}'),
    },
)


@kind
def index_nested() -> bytes:
    blobs: dict[str, bytes] = {}
    entry: dict[str, Any] = dict(ENTRY)
    for _ in range(10):
        data = as_json({"mediaType": images.INDEX, "manifests": [entry]})
        entry = images.described(data, images.INDEX)
        blobs[images.blob_path(entry["digest"])] = data
    return images.tar({**blobs, "index.json": as_json({"manifests": [entry]})})


each(
    "json",
    {
        "deep": index(lambda: b"[" * 500_000),
        "large": index(lambda: b'{"a": "' + b"x" * (17 * MIB) + b'"}'),
        "of-digits": index(lambda: b'{"manifests": ' + b"9" * 100_000 + b"}"),
        "of-no-number": index(lambda: b'{"manifests": [NaN, Infinity]}'),
        "not-utf8": index(lambda: b'{"manifests": "\xff\xfe"}'),
        "of-surrogates": index(lambda: b'{"mediaType": "\\ud800"}'),
        "null": index(lambda: b"null"),
    },
)
each(
    "setting",
    {
        "path-long": lambda: of(
            {"a": b"x"}, Env=["PATH=" + ":".join(f"/{n}" for n in range(20_000))]
        ),
        "library-path-long": lambda: of(
            {"usr/bin/a": Path("/usr/bin/true").read_bytes()},
            Env=["LD_LIBRARY_PATH=" + ":".join(f"/{n}" for n in range(20_000))],
        ),
        "preload-long": lambda: of(
            {"a": b"x"}, Env=["LD_PRELOAD=" + " ".join(map(str, range(20_000)))]
        ),
        "many-variables": lambda: of({"a": b"x"}, Env=[f"V{n}={n}" for n in range(30_000)]),
        "odd-kinds": lambda: of({"a": b"x"}, Env=[1, None, {}], Labels=[1], User=3, Cmd={"a": 1}),
        "labels-escape": lambda: of({"a": b"x"}, Labels={"a\x1b[31m": "\u202e\n::error::x"}),
        "history-long": edited(
            lambda it: it.update(history=[{"created_by": "RUN \x1b[31m"}] * 100_000), "config"
        ),
        "history-odd": edited(lambda it: it.update(history=[1, {"created_by": {}}]), "config"),
    },
)


# What files say.
def elf(change: Callable[[bytearray], object]) -> bytes:
    """A program of this machine, changed."""
    data = bytearray(Path("/usr/bin/true").resolve().read_bytes())
    change(data)
    return bytes(data)


def put(place: int, form: str, *values: int) -> Callable[[bytearray], object]:
    """Write numbers at a place."""
    return lambda data: struct.pack_into(form, data, place, *values)


def program(change: Callable[[bytearray], object]) -> Build:
    """An image with a program of this machine, changed."""
    return lambda: of({"usr/bin/gcc": elf(change)})


each(
    "elf",
    {
        "sections-far-away": program(put(40, "<Q", 1 << 62)),
        "sections-65535": program(put(60, "<H", 0xFFFF)),
        "segments-far-away": program(put(32, "<Q", (1 << 64) - 64)),
        "segments-65535": program(put(56, "<H", 0xFFFF)),
        "segments-of-no-size": program(put(54, "<H", 0)),
        "of-noise": program(lambda data: data.__setitem__(slice(64, None), os.urandom(1) * 9000)),
        "cut": program(lambda data: data.__delitem__(slice(100, None))),
        "strings-without-end": file(
            "usr/bin/gcc", b"\x7fELF\2\1\1".ljust(64, b"\0") + b"\0" + b"1." * 8 * MIB
        ),
        "files-many": lambda: of(
            {f"usr/lib/lib{n}.so": elf(put(0, "<B", 0x7F)) for n in range(3000)}
        ),
        "fatbin-lying": file("opt/k.bin", b"\x50\xed\x55\xba\x01\x00\x10\x00" + b"\xff" * 4096),
        "bundle-lying": file("opt/k.bin", b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 4096),
        "bundle-bomb": file(
            "opt/k.bin",
            b"CCOB" + struct.pack("<HH", 1, 0) + bytes(16) + zlib.compress(bytes(64 * MIB)),
        ),
        "archive-lying": file(
            "usr/lib/a.a", b"!<arch>\n" + b"x/".ljust(48) + b"9999999999`\n" + bytes(99)
        ),
    },
)


def database(*statements: str) -> bytes:
    """A database of SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        held = sqlite3.connect(path)
        for one in statements:
            held.execute(one)
        held.commit()
        held.close()
        return path.read_bytes()


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS blob FROM n"
each(
    "rpm",
    {
        "of-a-view": lambda: of(
            {f"{RPM}/rpmdb.sqlite": database(f"CREATE VIEW Packages AS {ENDLESS}")}
        ),
        "of-noise": lambda: of({f"{RPM}/rpmdb.sqlite": b"SQLite format 3\0" + b"\xff" * 8192}),
        "of-odd-blobs": lambda: of(
            {
                f"{RPM}/rpmdb.sqlite": database(
                    "CREATE TABLE Packages (hnum INTEGER, blob BLOB)",
                    "INSERT INTO Packages VALUES (1, x'ffffffffffffffff'), (2, 'text'), (3, NULL)",
                )
            }
        ),
        "of-ndb": lambda: of({f"{RPM}/Packages.db": b"RpmP" + b"\xff" * 8192}),
        "of-bdb": lambda: of({f"{RPM}/Packages": bytes(12) + b"\x61\x15\x06\0" + b"\xff" * 8192}),
        "large": lambda: of({f"{RPM}/Packages": bytes(130 * MIB)}),
    },
)
STATUS = (
    b"Package: p%d\nStatus: install ok installed\nVersion: 1\nDescription: " + b"x" * 400 + b"\n\n"
)
each(
    "record",
    {
        "dpkg-31-mib": file(
            "var/lib/dpkg/status", b"".join(STATUS % n for n in range(75_000))[: 31 * MIB]
        ),
        "dpkg-one-line": file("var/lib/dpkg/status", b"Package: " + b"a" * 30 * MIB),
        "dpkg-folded": file("var/lib/dpkg/status", b"Package: a\n" + b" b\n" * 5_000_000),
        "dist-info-many": lambda: of(
            {f"{SITE}/p{n}-1.dist-info/METADATA": b"Name: p\nVersion: 1\n" for n in range(10_000)}
        ),
        "dist-info-odd": file(
            f"{SITE}/numpy-1.dist-info/METADATA", b"Name: numpy\nVersion: " + b"1." * 1500
        ),
        "conda-many": lambda: of({f"conda-meta/p-{n}-0.json": b"{" for n in range(10_000)}),
        "os-release-large": file("etc/os-release", b"ID=" + b"a" * 8 * MIB),
        "apk-one-package": file("lib/apk/db/installed", b"P:a\n" * 3_000_000),
        "venv-in-circles": lambda: of(
            {f"v{n}/pyvenv.cfg": b"home = /v%d/bin\n" % (1 - n) for n in (0, 1)}
        ),
        "lock-odd": file("usr/share/toolmatrix/toolmatrix.lock", b"[" * 100_000),
        "version-odd": file(
            "usr/local/cuda/version.json", b'{"cuda": {"version": "\\u001b[31m12"}}'
        ),
        "bazelrc-imports-itself": file(".bazelrc", b"import %workspace%/.bazelrc\n" * 2000),
    },
)
CACHE = "etc/ld.so.cache"
each(
    "loader",
    {
        "cache-of-one-name": lambda: of(
            {CACHE: cache(*(f"/{n % 900}/libx.so.1" for n in range(20_000)))}
        ),
        "cache-without-end": lambda: of(
            {CACHE: cache("/a/libx.so.1")[:20] + b"\xff" * 4 + b"\1" * MIB}
        ),
        "folders-many": lambda: of({CACHE: cache(*(f"/{n}/libx.so.1" for n in range(8000)))}),
        "musl-path-long": lambda: of(
            {"etc/ld-musl-x86_64.path": b":".join(b"/%d" % n for n in range(9000))}
        ),
    },
)


class Outcome(NamedTuple):
    """What came of reading one: what was said, seconds of processor time, and MiB at the most beyond those before."""

    said: str
    seconds: float
    memory: int


def outcome(path: Path) -> Outcome:
    """Read an archive in a process with bounds: an inventory without control characters, or one error."""
    before = _pages(1)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            _bound()
            said = _read(str(path))
        except BaseException as error:  # noqa: BLE001 - the parent tells it
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode("utf-8", "backslashreplace")[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        said = stream.read()
    _, status, used = os.wait4(child, 0)
    if status:
        said = f"ended with {os.waitstatus_to_exitcode(status)}"
    return Outcome(
        said, used.ru_utime + used.ru_stime, max(0, (used.ru_maxrss << 10) - before) >> 20
    )


def _bound() -> None:
    there = _pages(0)
    resource.setrlimit(resource.RLIMIT_AS, (there + MEMORY, there + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR))


def _pages(which: int) -> int:
    """Bytes of address space (0) or of memory (1) that this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[which]) * resource.getpagesize()


def _read(path: str) -> str:
    from toolmatrix.commands import inventory as report
    from toolmatrix.errors import SubjectError
    from toolmatrix.inspection import subjects
    from toolmatrix.report.terminal import Terminal, printable

    try:
        found = subjects.observe(f"archive:{path}")
    except SubjectError as error:
        return f"refused: {printable(error.what)}"
    shown = report.text(found, Terminal(), everything=True) + json.dumps(found.to_json())
    # Of millions of letters few are not the same.
    odd = sorted(one for one in {*shown} if one != "\n" and printable(one) != one)
    return f"shows {odd}" if odd else "read"


def main() -> None:
    """Print what came of each kind, and the figures of all."""
    import toolmatrix.images.local
    import toolmatrix.inspection.observe  # noqa: F401 - as `local`, so that each pays for itself alone

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.tar"
        for name, build in KINDS.items():
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            path.write_bytes(build())
            found[name] = one = outcome(path)
            print(f"{one.seconds:6.1f} s {one.memory:5} MiB  {name}: {one.said}", flush=True)  # noqa: T201
    bounded = [
        one for one in found.values() if one.said == "read" or one.said.startswith("refused")
    ]
    slowest = max(found, key=lambda name: found[name].seconds)
    largest = max(found, key=lambda name: found[name].memory)
    print(  # noqa: T201
        f"{len(found)} tried, {len(bounded)} bounded, slowest {slowest} {found[slowest].seconds:.1f} s, "
        f"largest {largest} {found[largest].memory} MiB"
    )


if __name__ == "__main__":
    main()
