"""An inventory out of its document `toolmatrix.inventory/1`, as `toolmatrix inventory --json` printed it."""

from __future__ import annotations

import json

from toolmatrix.errors import Position, SubjectError
from toolmatrix.inventory.model import SCHEMA, Inventory, Seen, Skipped, Soname

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST = 256 << 20
"""Bytes that a document may have; that of an image of 10 GB has a few million."""
_HELP = "`toolmatrix inventory SUBJECT --json` writes one"


def read(path: str) -> Inventory:
    """The inventory in a file. Raises SubjectError for what is none."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise SubjectError("cannot read the inventory", where=Position(path), found=found) from None
    if len(data) > LARGEST:
        raise SubjectError(
            "the inventory is too large", where=Position(path), expected=f"at most {LARGEST} bytes"
        )
    return parse(data, path)


def parse(data: bytes, path: str) -> Inventory:
    """The inventory in the bytes of a file; `path` is what errors call it."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise SubjectError(
            "the inventory is no JSON", where=Position(path), expected=f"`{SCHEMA}`", help=_HELP
        ) from None
    found = body.get("schema") if isinstance(body, dict) else None
    if found != SCHEMA:
        raise SubjectError(
            "this is no inventory",
            where=Position(path),
            expected=f"`{SCHEMA}`",
            found=f"`{found}`" if isinstance(found, str) else "another document",
            help=_HELP,
        )
    try:
        return _inventory(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SubjectError(
            "the inventory lacks something, or holds something odd",
            where=Position(path),
            expected=f"what `{SCHEMA}` describes",
            found=f"{type(error).__name__} at {error}",
            help=_HELP,
        ) from None


def _inventory(body: dict[str, Any]) -> Inventory:
    return Inventory(
        subject=_text(body["subject"]),
        platform=_text(body.get("platform") or ""),
        digest=_text(body.get("digest") or ""),
        components=_listed(body["components"]),
        features=_listed(body["features"]),
        sonames=tuple(
            Soname(
                name=_text(one["name"]),
                needed_by=_texts(one["needed_by"]),
                found=_text(one["found"]),
                others=_texts(one["others"]),
            )
            for one in body["sonames"]
        ),
        history=tuple(
            (_text(one["layer"]), _text(one["instruction"])) for one in body.get("history", ())
        ),
        skipped=tuple(
            Skipped(what=_text(one["what"]), reason=_text(one["reason"])) for one in body["skipped"]
        ),
        lock=_text(body.get("lock") or ""),
    )


def _listed(held: dict[str, list[dict[str, Any]]]) -> dict[str, tuple[Seen, ...]]:
    return {name: tuple(map(_seen, several)) for name, several in held.items()}


def _seen(one: dict[str, Any]) -> Seen:
    return Seen(
        version=_text(one["version"]),
        seen_by=_text(one["seen_by"]),
        where=_text(one["where"]),
        layer=_text(one.get("layer", "")),
        default=one.get("default", False) is True,
    )


def _texts(held: list[Any]) -> tuple[str, ...]:
    return tuple(map(_text, held))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"`{value}`, which is no text"[:200])
    return value
