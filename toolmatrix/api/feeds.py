"""Where a bundle of a matrix comes from: a file, a folder, an address, an artifact in a registry, or a URL of fsspec.

Each is read as a stream, whose first line says whether the rest is wanted. A folder has a bundle under the name of its
format, and so has an artifact, whose layers have names as ORAS gives them
(https://oras.land/docs/concepts/artifact, `org.opencontainers.image.title`). A signature is that of minisign, in a file
of the same name and `.minisig`: https://jedisct1.github.io/minisign/ describes it.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Protocol
from urllib.parse import unquote, urlsplit

from toolmatrix.errors import MatrixError, Position, ToolmatrixError, ToolMissing, UsageError
from toolmatrix.factbase.bundle import LARGEST, LONGEST_HEAD, NAME
from toolmatrix.opener import open_file, read_file


class ByteStream(Protocol):
    """Bytes that are read piece by piece."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end."""

    def close(self) -> None:
        """Give up what is left."""


OpenFile = Callable[[str], ByteStream]
"""Opens a bundle, or the file of the same name with this ending. Raises ToolmatrixError."""

_SUFFIX, _SIGNATURE = ".tmx", ".minisig"
_ARTIFACT = ("oci:", "registry:")
_TITLE = "org.opencontainers.image.title"
_STEP = 1 << 20
# Bytes of a signature or a key, and of the parts of both.
_LARGEST_SIGNATURE, _KEY_ID = 4 << 10, 10


def is_remote(source: str) -> bool:
    """Whether a source is an address, and no path."""
    return "://" in source or source.startswith(_ARTIFACT)


@contextmanager
def opened(source: str, *, offline: bool = False) -> Iterator[OpenFile]:
    """Open a source. Raises UsageError for one that would ask the network although that is not wanted."""
    scheme = source.partition(":")[0]
    if not is_remote(source) or scheme == "file":
        path = unquote(urlsplit(source).path) if scheme == "file" else source
        yield lambda end: _file(path, end)
    elif offline:
        raise UsageError(
            "this source is on the network",
            expected="a file or a folder with `--offline`",
            found=f"`{source}`",
        )
    elif f"{scheme}:" in _ARTIFACT:
        with _artifact(source) as open_layer:
            yield open_layer
    elif scheme in ("http", "https"):
        with _web(source) as open_page:
            yield open_page
    else:
        yield lambda end: _remote(source, end)


def read_line(stream: ByteStream) -> tuple[bytes, bytes]:
    """The first line of a stream, and what was read behind it."""
    data = b""
    while b"\n" not in data and len(data) <= LONGEST_HEAD and (piece := stream.read(LONGEST_HEAD)):
        data += piece
    line, end, rest = data.partition(b"\n")
    return line[:LONGEST_HEAD] + end, rest


def read_rest(stream: ByteStream, begin: bytes, most: int) -> bytes:
    """What a stream has, at most so many bytes and one, behind what was read already."""
    pieces, count = [begin], len(begin)
    while count <= min(most, LARGEST) and (piece := stream.read(_STEP)):
        pieces.append(piece)
        count += len(piece)
    return b"".join(pieces)[: most + 1]


def _within(place: str, end: str) -> str:
    """A place, or the bundle in it if it is a folder."""
    # An address that was signed for a time has its signature there.
    folder, _, query = place.partition("?")
    folder = folder if folder.endswith(_SUFFIX) else f"{folder.rstrip('/')}/{NAME}"
    return f"{folder}{end}?{query}" if query else folder + end


def _file(path: str, end: str) -> ByteStream:
    # A file may have any name, a folder is asked for its own.
    place = os.path.join(path, NAME) if os.path.isdir(path) else path
    try:
        return open_file(place + end)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _missing(place + end, reason) from None


def _missing(place: str, found: str) -> MatrixError:
    what = "the bundle has no signature" if place.partition("?")[0].endswith(_SIGNATURE) else ""
    return MatrixError(
        what or "there is no bundle of a matrix",
        where=Position(place),
        expected="a signature by the configured key"
        if what
        else f"a file, or a folder with `{NAME}`",
        found=found,
        help="" if what else "`toolmatrix export --bundle FOLDER` makes one",
    )


@contextmanager
def _web(source: str) -> Iterator[OpenFile]:
    import ssl

    from toolmatrix.http import BROKEN, Client, OutOfBounds, reason

    @contextmanager
    def failures(url: str) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            expected = error.expected if isinstance(error, OutOfBounds) else "an answer"
            raise _unreachable(url.partition("?")[0], expected, reason(error)) from None

    def open_page(end: str) -> ByteStream:
        url = _within(source, end)
        answer = client.get(url, {"Accept": "*/*"})
        if answer.status != 200:
            answer.close()
            place, status = url.partition("?")[0], f"status {answer.status}"
            if answer.status in (404, 410):
                raise _missing(place, status)
            raise _unreachable(place, "status 200", status)
        return answer

    client = Client(lambda _: ssl.create_default_context(), failures=failures)
    with closing(client):
        yield open_page


def _unreachable(place: str, expected: str, found: str) -> ToolMissing:
    return ToolMissing(
        "the bundle cannot be read", where=Position(place), expected=expected, found=found
    )


@contextmanager
def _artifact(source: str) -> Iterator[OpenFile]:
    from hashlib import sha256
    from io import BytesIO

    from toolmatrix.images import image, registry
    from toolmatrix.images.layers import check_digest
    from toolmatrix.images.limits import Budget

    address, budget = source.partition(":")[2], Budget(source)

    def open_layer(end: str) -> ByteStream:
        layers = image.objects(manifest.get("layers") if isinstance(manifest, dict) else None)
        for layer in layers:
            notes = layer.get("annotations")
            if isinstance(notes, dict) and notes.get(_TITLE) == NAME + end:
                entry = image.descriptor(layer, budget)
                with closing(repository.blob(entry)) as stream:
                    data = read_rest(stream, b"", min(entry.size, LARGEST))
                # The manifest may be pinned by its digest, and with it each layer.
                check_digest(entry.digest, f"sha256:{sha256(data).hexdigest()}", budget)
                return BytesIO(data)
        raise _missing(f"{source}/{NAME}{end}", f"an artifact of {len(layers)} layers")

    with registry.opened(address, budget) as repository:
        (entry,) = repository.index()["manifests"]
        with closing(repository.blob(image.descriptor(entry, budget))) as stream:
            manifest = image.read_document(stream, budget)
        yield open_layer


def _remote(source: str, end: str) -> ByteStream:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(
            "a source that is no file, web address or registry needs fsspec",
            found=f"`{source}`",
            help="run `pip install 'toolmatrix[fsspec]'` and install the fsspec driver for this URL",
        ) from None
    place = _within(source, end)
    try:
        stream: ByteStream = fsspec.open(place, "rb").open()
    except FileNotFoundError:
        raise _missing(place, "no such file") from None
    except Exception as error:  # noqa: BLE001 - drivers of places raise what they like
        raise _unreachable(place, "a URL that fsspec can open", f"{error}"[:200]) from None
    return stream


def public_key(text: str) -> str:
    """The public key of minisign in a text or in the file that it names, in base 64. Raises UsageError."""
    key = text
    if os.path.exists(text):
        data = read_file(text, _LARGEST_SIGNATURE) or b""
        # A comment, and the key.
        key = data.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
    if len(_decoded(key)) != _KEY_ID + 32 or _decoded(key)[:2] != b"Ed":
        raise UsageError(
            "this is not a public key of minisign",
            expected="a key such as `RW...`, or the file of one",
            found=f"`{text[:80]}`",
        )
    return key


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def verify(data: bytes, signature: bytes, key: str, place: str) -> None:
    """Check the signature of a bundle. Raises MatrixError, and ToolMissing without the library for it."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise ToolMissing(
            "a signature is checked with the package `cryptography`",
            help="run `pip install 'toolmatrix[signed]'`",
        ) from None
    from hashlib import blake2b

    lines = signature.decode("utf-8", "replace").splitlines()
    parts = [_decoded(line) for line in lines[1:4:2]]
    comment = lines[2].removeprefix("trusted comment: ").encode() if len(lines) > 2 else b""
    if [len(part) for part in parts] != [_KEY_ID + 64, 64] or parts[0][:2] not in (b"ED", b"Ed"):
        raise _unverified(place, "a signature of minisign", f"{signature[:40]!r}")
    public, (signed, whole) = _decoded(key), parts
    if signed[2:_KEY_ID] != public[2:_KEY_ID]:
        made_by = signed[2:_KEY_ID][::-1].hex().upper()
        raise _unverified(place, f"a signature by the key {key}", f"one by the key {made_by}")
    # `ED` signs the hash of a file, and `Ed`, as minisign did first, the file.
    message = blake2b(data).digest() if signed[:2] == b"ED" else data
    # The second signature covers the comment, which would be free to forge.
    verifier = Ed25519PublicKey.from_public_bytes(public[_KEY_ID:])
    try:
        verifier.verify(signed[_KEY_ID:], message)
        verifier.verify(whole, signed[_KEY_ID:] + comment)
    except InvalidSignature:
        raise _unverified(
            place, f"a signature of this bundle by the key {key}", "another one"
        ) from None


def _unverified(place: str, expected: str, found: str) -> ToolmatrixError:
    return MatrixError(
        "the signature of the bundle does not fit",
        where=Position(place),
        expected=expected,
        found=found,
        help="the matrix in use is unchanged; ask who publishes the bundle for its key",
    )


def signature_of(open_file_of: OpenFile) -> bytes:
    """The signature beside a bundle. Raises MatrixError where there is none."""
    with closing(open_file_of(_SIGNATURE)) as stream:
        return read_rest(stream, b"", _LARGEST_SIGNATURE)
