"""Readings of layers as documents, answers of programs and metadata of images: what a store keeps of images.

A reading is what the code here makes of the bytes of a layer, so it is kept under the layer's diff id and the digest of
that code, of which the interpreter and pyelftools are parts. A malformed document counts as missing:
the layer is read again, and its reading replaces it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256

from toolmatrix import __version__
from toolmatrix.document_store import DocumentStore
from toolmatrix.documents import Annotated, Any, Count, Literal, Pair, TypedDict
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import DIRECTORY, FILE, HARD_LINK, LEFT_OUT, LINK, Entry, Layer
from toolmatrix.inspection.dynamic import Dynamic
from toolmatrix.inspection.elf import Elf
from toolmatrix.inspection.model import FORMS, text, texts
from toolmatrix.inspection.rpm import Database
from toolmatrix.inspection.scripts import Script
from toolmatrix.inspection.stated import ModuleArchive, Stated
from toolmatrix.value import Value

LAYER, BLOB, IMAGE, ANSWER = (
    f"toolmatrix.{kind}/1" for kind in ("layer-reading", "layer-blob", "image-reading", "answer")
)
"""The schemas of the stored documents."""
_KINDS = {DIRECTORY: "d", LINK: "l", HARD_LINK: "h", FILE: "f"}
_LINKS = {"l": LINK, "h": HARD_LINK}
# The errors of reading a document of another shape.
_ODD = (LookupError, TypeError, ValueError, AttributeError)
_COUNTS = ("count", "size", "held")
# The kinds of content of files besides bytes, by their names in documents.
_CONTENT_KINDS: dict[str, type[Value]] = {
    "elf": Elf,
    "rpm": Database,
    "script": Script,
    "stated": Stated,
    "archive": ModuleArchive,
}


class KeptDocument(TypedDict):
    """A document as a store keeps it."""

    key: str
    """What it is of, and the digest of the code that made it."""


class AnswerDocument(KeptDocument):
    """What a program of an image answered when it was run, as a store of readings keeps it; docs/images.md."""

    schema: Annotated[str, ANSWER]
    kind: Annotated[str, "answer"]
    value: str
    reason: str


class ContentDocument(TypedDict, total=False):
    """What a file holds: an ELF file, a database of rpm, the first line of a script, the version of a module."""

    elf: Elf
    script: Script
    rpm: Database
    stated: Stated
    archive: ModuleArchive


class LayerReadingDocument(KeptDocument):
    """What reading a layer of an image gave, as a store of readings keeps it by diff id; docs/images.md."""

    schema: Annotated[str, LAYER]
    kind: Annotated[str, "layerreading"]
    count: Count
    size: Count
    held: Count
    gone: list[str]
    opaque: list[str]
    entries: list[
        tuple[str, Literal["d"], Count]
        | tuple[str, Literal["d"], Count, Pair[Count]]
        | tuple[str, Literal["l", "h"], str]
        | tuple[str, Literal["f"], Count, Count]
        | tuple[str, Literal["f"], Count, Count, str | Literal[True] | ContentDocument]
        | tuple[
            str,
            Literal["f"],
            Count,
            Count,
            str | Literal[True] | ContentDocument | None,
            Pair[Count],
        ]
    ]
    """Path and kind (directory, link, hard link, file), then mode or target, then size and what is kept of a file: its
    bytes, a letter for each, or what it holds; true where it was too large. Last user and group of what not everybody
    may use."""


class LayerBlobDocument(KeptDocument):
    """The diff id of a packed layer, as a store of readings keeps it by the digest of its blob; docs/images.md."""

    schema: Annotated[str, BLOB]
    kind: Annotated[str, "layerblob"]
    diff_id: str
    packed: Count


class ImageReadingDocument(KeptDocument):
    """What an image of an engine says of itself, as a store of readings keeps it by its id; docs/images.md."""

    schema: Annotated[str, IMAGE]
    kind: Annotated[str, "imagereading"]
    digest: str
    indexed: str
    platform: str
    layers: list[str]
    config: dict[str, Any]
    history: list[Pair[str]]


class LayerStore:
    """The known layers and images, in a store of documents."""

    def __init__(self, documents: DocumentStore) -> None:
        self.documents = documents
        self.code = code()

    def layer(self, digest: str) -> Layer | None:
        """The layer of this digest, packed or unpacked; None where it is not stored."""
        blob = self._get(BLOB, digest)
        diff_id = blob.get("diff_id") if blob is not None else digest
        body = self._get(LAYER, str(diff_id))
        try:
            layer = _layer(str(diff_id), body) if body is not None else None
            if layer is None or blob is None:
                return layer
            return layer.replace(digest=digest, packed=_count(blob["packed"]))
        except _ODD:
            return None

    def keep(self, layer: Layer) -> None:
        """Keep the reading of a layer, under both of its digests."""
        body = {
            **layer.as_dict(*_COUNTS, "gone", "opaque"),
            "entries": [_entry(path, entry) for path, entry in layer.entries],
        }
        self._put(LAYER, layer.diff_id, body)
        if layer.digest != layer.diff_id:
            self._put(BLOB, layer.digest, layer.as_dict("diff_id", "packed"))

    def image(self, name: str) -> ImageMetadata | None:
        """The metadata of an image; None where it is not stored."""
        body = self._get(IMAGE, name)
        try:
            return _metadata(body) if body is not None else None
        except _ODD:
            return None

    def keep_image(self, name: str, image: ImageMetadata) -> None:
        """Store the metadata of an image under a name that no other image will have."""
        self._put(IMAGE, name, image.as_dict(*_METADATA_TEXTS, "layers", "config", "history"))

    def answer(self, name: str) -> tuple[str, str] | None:
        """The answer of a program, and why there is none."""
        body = self._get(ANSWER, name)
        try:
            return None if body is None else (text(body["value"]), text(body["reason"]))
        except _ODD:
            return None

    def keep_answer(self, name: str, value: str, reason: str) -> None:
        """Keep the answer of a program."""
        self._put(ANSWER, name, {"value": value, "reason": reason})

    def _get(self, schema: str, key: str) -> dict[str, Any] | None:
        return (
            self.documents.get(schema, _folder(schema), f"{key} {self.code}") if self.code else None
        )

    def _put(self, schema: str, key: str, body: dict[str, Any]) -> None:
        if self.code:
            self.documents.put(schema, _folder(schema), f"{key} {self.code}", body)


def _folder(schema: str) -> str:
    return schema.partition(".")[2].partition("/")[0].replace("-", "")


@lru_cache(maxsize=1)
def code() -> str:
    """The digest of all that decides the content of a reading; empty where the code cannot be read."""
    import elftools

    digest = sha256(repr((__version__, sys.version_info[:3], elftools.__version__)).encode())
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        for folder in (here, os.path.join(os.path.dirname(here), "images")):
            for name in sorted(os.listdir(folder)):
                if name.endswith(".py"):
                    with open(os.path.join(folder, name), "rb") as file:
                        digest.update(sha256(file.read()).digest())
    except OSError:
        return ""
    return digest.hexdigest()


_METADATA_TEXTS = ("digest", "indexed", "platform")


def _metadata(body: dict[str, Any]) -> ImageMetadata:
    if not isinstance(body["config"], dict):
        raise TypeError("config")
    return ImageMetadata(
        subject="",
        config=body["config"],
        history=_pairs(body["history"]),
        layers=texts(body["layers"]),
        **{name: text(body[name]) for name in _METADATA_TEXTS},
    )


def _entry(path: str, entry: Entry) -> list[Any]:
    kind = _KINDS[entry.kind]
    if kind in _LINKS:
        return [path, kind, entry.link]
    if kind == "d":
        return [path, kind, entry.mode, *_owner(entry)]
    content = entry.content
    more: list[Any] = []
    if isinstance(content, bytes):
        # Each letter is one byte.
        more = [content.decode("latin-1")]
    elif content == LEFT_OUT:
        more = [True]
    elif content is not None:
        (name,) = (name for name, cls in _CONTENT_KINDS.items() if isinstance(content, cls))
        more = [{name: _plain(content)}]
    owner = _owner(entry)
    return [path, kind, entry.mode, entry.size, *(more or [None] * len(owner)), *owner]


def _owner(entry: Entry) -> list[list[int]]:
    return [list(entry.owner)] if any(entry.owner) else []


def _plain(reading: Any) -> Any:
    defaults = reading._defaults
    return {
        name: _plain(value) if isinstance(value, Dynamic) else value
        for name, value in reading.as_dict().items()
        if value != defaults.get(name)
    }


def _layer(diff_id: str, body: dict[str, Any]) -> Layer:
    counts = {name: _count(body[name]) for name in _COUNTS}
    return Layer(
        digest=diff_id,
        diff_id=diff_id,
        entries=tuple(_parse(*entry) for entry in body["entries"]),
        gone=texts(body["gone"]),
        opaque=texts(body["opaque"]),
        packed=counts["size"],
        **counts,
    )


def _parse(
    path: str, kind: str, what: Any, size: Any = 0, content: Any = None, owner: Any = (0, 0)
) -> tuple[str, Entry]:
    if kind in _LINKS:
        return text(path), Entry(_LINKS[kind], link=text(what))
    if kind == "d":
        return text(path), Entry(DIRECTORY, mode=_count(what), owner=_ids(size or owner))
    if kind != "f":
        raise ValueError(kind)
    entry = Entry(FILE, mode=_count(what), size=_count(size), owner=_ids(owner))
    if isinstance(content, str):
        entry.content = content.encode("latin-1")
    elif content is True:
        entry.content = LEFT_OUT
    elif content is not None:
        ((name, fields),) = content.items()
        entry.content = _value(_CONTENT_KINDS[name], fields)
    return text(path), entry


def _value(kind: type[Value], fields: dict[str, Any]) -> Value:
    forms = kind.__annotations__
    return kind(**{name: _FORMS[forms[name]](value) for name, value in fields.items()})


def _pair(value: object) -> tuple[str, str]:
    first, second = texts(value)
    return first, second


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        raise TypeError(value)
    return tuple(map(_pair, value))


def _ids(value: Any) -> tuple[int, int]:
    user, group = map(_count, value)
    return user, group


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(value)
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


# How fields are read, by their annotations.
_FORMS: dict[str, Callable[[Any], Any]] = {
    **FORMS,
    "bool": _truth,
    "tuple[str, str] | None": _pair,
    "tuple[tuple[str, str], ...]": _pairs,
    "tuple[tuple[str, ...], ...]": lambda value: tuple(map(texts, value)),
    "Dynamic": lambda fields: _value(Dynamic, fields),
}
