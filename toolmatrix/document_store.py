"""A store of documents by kind and key: a folder of bounded size that processes share, or whatever fsspec leads to.

What is stored can be made again, so nothing fails for want of it. A document is JSON packed with zstd behind one line
with its digest and length; it names its schema, kind and key, and one that is damaged, foreign or of another key counts
as not there. https://filesystem-spec.readthedocs.io lists the places that fsspec knows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Protocol

from toolmatrix.errors import UsageError


class StoredFiles(Protocol):
    """Where the files of a store are."""

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where it is not there or cannot be read."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all; a failure is ignored."""


SIZE = 2048
"""MiB that a folder holds at most, unless another bound is set."""
_FORM = b"toolmatrix-store/1"
_LINE = re.compile(re.escape(_FORM) + rb" ([0-9a-f]{64}) (\d{1,12})\n")
_LONGEST_LINE = 128
# Bytes of a document as JSON. What is larger is not stored: reading it again is no slower.
_LARGEST = 64 << 20
_FILE = "file://"
_SUFFIX, _PARTIAL = ".tmx", ".tmx-part"
_OWN = re.compile(r"[a-z]+/[0-9a-f]{2}/[0-9a-f]{64}\.tmx|tmp\w{1,20}\.tmx-part")
# A full folder is reduced to this share, so that it is not scanned again at once.
_LEFT = 0.8
# Bytes written between two looks at how full a folder is.
_BETWEEN = 32 << 20
# Seconds after which a partial file counts as left over from a killed process.
_STALE = 3600


class DocumentStore:
    """Documents by kind and key, of a schema that is theirs."""

    def __init__(self, files: StoredFiles) -> None:
        self.files = files

    def get(self, schema: str, kind: str, key: str) -> dict[str, Any] | None:
        """The document of a kind and key; None where there is none that is whole and of this schema."""
        data = self.files.read(_name(kind, key))
        body = _unpack(data) if data is not None else None
        named = {"schema": schema, "kind": kind, "key": key}
        if body is None or any(body.get(name) != value for name, value in named.items()):
            return None
        return body

    def put(self, schema: str, kind: str, key: str, body: Mapping[str, Any]) -> None:
        """Store a document under a kind and key, unless it is too large or the store fails."""
        import zstandard

        named = {"schema": schema, "kind": kind, "key": key}
        text = json.dumps({**named, **body}, separators=(",", ":")).encode()
        if len(text) > _LARGEST:
            return
        packed = zstandard.ZstdCompressor(level=3, write_content_size=True).compress(text)
        line = b"%b %b %d\n" % (_FORM, sha256(packed).hexdigest().encode(), len(packed))
        self.files.write(_name(kind, key), line + packed)


def _name(kind: str, key: str) -> str:
    # Keys hold digests and versions, which are no names of files everywhere.
    digest = sha256(key.encode()).hexdigest()
    return f"{kind}/{digest[:2]}/{digest}{_SUFFIX}"


def _unpack(data: bytes) -> dict[str, Any] | None:
    import zstandard

    match = _LINE.match(data[:_LONGEST_LINE])
    packed = data[match.end() :] if match else b""
    if (
        match is None
        or len(packed) != int(match[2])
        or sha256(packed).hexdigest().encode() != match[1]
    ):
        return None
    try:
        if zstandard.frame_content_size(packed) > _LARGEST:
            return None
        body = json.loads(zstandard.ZstdDecompressor().decompress(packed, _LARGEST))
    except (zstandard.ZstdError, ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def open_store(location: str, size: int = SIZE) -> DocumentStore:
    """The store in a folder, which is created when needed, or at a URL, which needs fsspec.

    Raises UsageError for a location that fsspec does not know or cannot open.
    """
    if folder := _folder(location):
        return DocumentStore(FolderFiles(folder, size << 20))
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(
            "a store that is not a folder needs fsspec",
            found=f"`{location}`",
            help="run `pip install 'toolmatrix[fsspec]'` and install the fsspec driver for this URL",
        ) from None
    try:
        system, root = fsspec.core.url_to_fs(location)
    except Exception as error:  # noqa: BLE001 - drivers of places raise what they like
        raise UsageError(
            "the store is not a folder or a supported URL",
            expected="a folder, or a URL that fsspec can open",
            found=f"`{location}`: {error}"[:400],
        ) from None
    return DocumentStore(RemoteFiles(system, root))


def _folder(location: str) -> str:
    folder = location.removeprefix(_FILE)
    if folder != location and not os.path.isabs(folder):
        raise UsageError(
            "the store is not a folder or a supported URL",
            expected=f"a folder on this machine, `{_FILE}/...`",
            found=f"`{location}`",
        )
    return "" if "://" in folder else folder


def problem_with_folder(location: str) -> str:
    """Why a folder cannot be used as a store; empty where it can, and for a URL, which only its driver can check."""
    folder = _folder(location)
    if not folder:
        return ""
    try:
        _make(folder)
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(folder, os.W_OK | os.X_OK) else "it is not writable"


def _make(folder: str) -> None:
    if not os.path.isdir(folder):
        # What is kept comes out of images, and may be for this user alone as they are.
        os.makedirs(folder, mode=0o700)


# A pipe in the place of a file that others share would be waited for.
def _unblocked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


class FolderFiles:
    """Files below a folder for this user alone; the least recently used are removed when it is full."""

    def __init__(self, folder: str, most: int) -> None:
        self.folder = folder
        self.most = most
        # Unknown at first, so that the first file that is written looks.
        self.written = _BETWEEN

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where it is not there or cannot be read."""
        path = os.path.join(self.folder, name)
        try:
            with open(path, "rb", opener=_unblocked) as file:
                data = file.read(_LARGEST)
        except OSError:
            return None
        # Its time records the last use. A store that is not writable is read all the same.
        with suppress(OSError):
            os.utime(path)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file beside its place and rename it, so that others see it whole or not at all."""
        from tempfile import NamedTemporaryFile

        if len(data) > self.most:
            return
        path = os.path.join(self.folder, name)
        with suppress(OSError):
            _make(self.folder)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with NamedTemporaryFile(dir=self.folder, suffix=_PARTIAL, delete=False) as file:
                try:
                    file.write(data)
                    file.close()
                    os.replace(file.name, path)
                except BaseException:
                    os.remove(file.name)
                    raise
            self._bound(len(data))

    def _bound(self, size: int) -> None:
        self.written += size
        if self.written < min(_BETWEEN, self.most // 8):
            return
        self.written = 0
        import time

        now = time.time()
        entries: list[tuple[float, int, str]] = []
        for path in self._own():
            with suppress(OSError):
                status = os.stat(path)
                # Where a clock was set back a file may seem to be of a day to come.
                entries.append((min(status.st_mtime, now), status.st_size, path))
        total = sum(file_size for _, file_size, _ in entries)
        bound = self.most if total <= self.most else int(self.most * _LEFT)
        for last_used, file_size, path in sorted(entries):
            if total > bound or (path.endswith(_PARTIAL) and now - last_used > _STALE):
                total -= file_size
                with suppress(OSError):
                    os.remove(path)

    # The files that a store writes: a folder may hold others, which are not ours to remove.
    def _own(self) -> Iterator[str]:
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                if _OWN.fullmatch(os.path.relpath(path, self.folder)):
                    yield path


class RemoteFiles:
    """Files at an fsspec URL, whose owner bounds and clears it."""

    def __init__(self, system: Any, root: str) -> None:
        self.system = system
        self.root = root

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where it is not there or cannot be read."""
        try:
            return bytes(self.system.cat_file(f"{self.root}/{name}"))
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - drivers of places raise what they like
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file. Object stores show whole files only; elsewhere the digest reveals a partial one."""
        path = f"{self.root}/{name}"
        try:
            try:
                self.system.pipe_file(path, data)
            except FileNotFoundError:
                self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
                self.system.pipe_file(path, data)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - as above
            return
