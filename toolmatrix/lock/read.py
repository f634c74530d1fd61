"""A lock from its file. Raises LockError, with the line, for whatever `write` did not write."""

from __future__ import annotations

from toolmatrix import toml
from toolmatrix.errors import LockError, Position
from toolmatrix.facts.evidence import WORDS
from toolmatrix.lock.model import (
    SCHEMA,
    Backed,
    Lock,
    LockedComponent,
    LockedEnvironment,
    LockedFlags,
    LockedTarget,
    LockedVariant,
)
from toolmatrix.lock.write import FLAG_LISTS, SEAL, digest_of, header, key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LARGEST = 8 << 20
"""Bytes that a lock may have; one with hundreds of environments has fewer."""
# Bytes in which a lock names its schema.
_HEAD = 4096

_ANEW = "write it anew with `toolmatrix lock`, or restore it from version control"
_BACKED = {"evidence": "word", "facts": "list", "disputed": "list?"}
_RENDER = {
    **dict.fromkeys(("dialect", "format", "recipe", "syntax-line"), "text?"),
    **dict.fromkeys(("base", "option", "target"), "list?"),
}
_COMPONENT = _BACKED | dict.fromkeys(("version", "floor", "inside"), "text?") | {"kept": "true?"}


def read(path: str) -> Lock:
    """The lock at `path`."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise LockError(
            "there is no lock", where=Position(path), help="`toolmatrix lock` writes one"
        ) from None
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise LockError("cannot read the lock", where=Position(path), found=found) from None
    return parse(data, path)


def may_be_replaced(path: str) -> bool:
    """Whether nothing is there, or what was a lock once: broken, of another schema, empty."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not head or SCHEMA.partition("/")[0].encode() in head


def parse(data: bytes, path: str) -> Lock:
    """The lock in the bytes of a file; `path` is what errors call it."""
    text = _text(data, path)
    _same_schema(text, path)
    _check_seal(text, path)
    return _Reader(path, text).lock(toml.parse(text, path, LockError, "the lock", _ANEW))


def odd(path: str, keys: tuple[str, ...], expected: str, found: str = "") -> LockError:
    """What a lock that could be read says and nobody understands, with its line."""
    with open(path, "rb") as file:
        text = file.read(LARGEST).decode("utf-8", "replace")
    return _Reader(path, text).wrong(keys, expected, found)


def _text(data: bytes, path: str) -> str:
    if len(data) > LARGEST:
        raise LockError(
            "the lock is too large",
            where=Position(path),
            expected=f"at most {LARGEST} bytes",
            help=_ANEW,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LockError(
            "the lock is not text", where=Position(path, line), expected="UTF-8", help=_ANEW
        ) from None


def _same_schema(text: str, path: str) -> None:
    """Another schema is told before anything else: its seal may have another form."""
    for number, line in enumerate(text.split("\n"), 1):
        name, equals, value = line.rstrip("\r").partition(" = ")
        if line.startswith("["):
            return
        if name == "schema" and equals:
            found = value.strip('"')
            if found != SCHEMA and found.startswith(SCHEMA.rpartition("/")[0] + "/"):
                raise LockError(
                    "the lock is of another schema",
                    where=Position(path, number),
                    expected=f"`{SCHEMA}`",
                    found=f"`{found}`",
                    help="use the toolmatrix that wrote it, or write it anew with `toolmatrix lock`",
                )
            return


def is_intact(text: str) -> bool:
    """Whether the digest in the seal of a lock is that of what stands above it."""
    body, found, below = text.partition("\n" + SEAL)
    seal, _, marks = below.partition("\n")
    # Locks used to have a checksum of each line below the digest. It says the same, so the comments decide nothing.
    return (
        bool(found)
        and text.endswith("\n")
        and seal == digest_of(body + "\n")
        and all(line.startswith(SEAL) for line in marks.split("\n")[:-1])
    )


def _check_seal(text: str, path: str) -> None:
    """Raises LockError for a text that is not as it was sealed."""
    if is_intact(text):
        return
    if "\r\n" in text and is_intact(text.replace("\r\n", "\n")):
        raise LockError(
            "the line ends of the lock were converted",
            where=Position(path, text.count("\n", 0, text.index("\r\n")) + 1),
            expected="lines that end with LF",
            found="CR LF",
            help="a line `*.lock -text` in .gitattributes keeps git from converting it; then check it out again",
        )
    _, found, below = text.partition("\n" + SEAL)
    if not found and not _is_lock(text):
        raise _no_lock(text, path)
    if not found or "\n" not in below:
        raise LockError(
            "the lock is cut short",
            where=Position(path, len(text.removesuffix("\n").split("\n"))),
            expected="the rest of the file",
            found="its end",
            help=_ANEW,
        )
    raise LockError(
        "the lock was edited since it was written",
        where=Position(path),
        expected="what `toolmatrix lock` wrote",
        found="lines whose digest is not that of its seal",
        help=_ANEW,
    )


def _is_lock(text: str) -> bool:
    """Whether a text begins as a lock does, however early it ends."""
    start = f'schema = "{SCHEMA}"'
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    return bool(text) and start.startswith(lines[0] if lines else "")


def _no_lock(text: str, path: str) -> LockError:
    if text:
        toml.parse(text, path, LockError, "the lock", _ANEW)
    return LockError(
        "this is no lock",
        where=Position(path, 1),
        expected=f'`schema = "{SCHEMA}"`',
        found="another file" if text else "an empty file",
        help="`toolmatrix lock` writes one",
    )


class _Reader:
    """Checks the tables of one lock; a sealed one that fails here was written by another toolmatrix."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = text.split("\n")

    def lock(self, body: Mapping[str, Any]) -> Lock:
        tables = dict.fromkeys(("environments", "render"), "table?")
        self.check(body, (), {"schema": "text", "matrix": "table", **tables})
        self.check(body["matrix"], ("matrix",), {"date": "text", "digest": "text"})
        self.check(body.get("render", {}), ("render",), _RENDER)
        if body["schema"] != SCHEMA:
            raise self.wrong(("schema",), f"`{SCHEMA}`")
        return Lock(
            matrix_date=body["matrix"]["date"],
            matrix_digest=body["matrix"]["digest"],
            environments={
                name: self.environment(part, ("environments", name))
                for name, part in body.get("environments", {}).items()
            },
            render={
                name: tuple(part) if isinstance(part, list) else part
                for name, part in body.get("render", {}).items()
            },
        )

    def environment(self, body: Any, keys: tuple[str, ...]) -> LockedEnvironment:
        self.check(body, keys, {"request": "list", "targets": "table?"})
        return LockedEnvironment(
            request=tuple(body["request"]),
            targets={
                name: self.target(part, (*keys, "targets", name))
                for name, part in body.get("targets", {}).items()
            },
        )

    def target(self, body: Any, keys: tuple[str, ...]) -> LockedTarget:
        words = dict.fromkeys(("accelerator", "from", "platform"), "text")
        tables = dict.fromkeys(("archs", "devices", "variants", "flags"), "table?")
        self.check(body, keys, words | tables | {"evidence": "word", "components": "table"})
        return LockedTarget(
            accelerator=body["accelerator"],
            from_=body["from"],
            platform=body["platform"],
            evidence=body["evidence"],
            components={
                name: self.component(part, (*keys, "components", name))
                for name, part in body["components"].items()
            },
            archs=self.named(body, (*keys, "archs")),
            devices=self.named(body, (*keys, "devices")),
            variants={
                name: self.variant(part, (*keys, "variants", name))
                for name, part in body.get("variants", {}).items()
            },
            flags=self.flags(body.get("flags", {}), (*keys, "flags")),
        )

    def component(self, body: Any, keys: tuple[str, ...]) -> LockedComponent:
        self.check(body, keys, _COMPONENT)
        if ("version" in body) == ("floor" in body):
            raise self.wrong(keys, "one of `version` and `floor`")
        return LockedComponent(
            version=body["floor"] if "floor" in body else body["version"],
            floor="floor" in body,
            kept=body.get("kept", False),
            inside=body.get("inside", ""),
            evidence=body["evidence"],
            facts=tuple(body["facts"]),
            disputed=tuple(body.get("disputed", ())),
        )

    def variant(self, body: Any, keys: tuple[str, ...]) -> LockedVariant:
        self.check(body, keys, _BACKED | {"build": "text", "install": "list"})
        return LockedVariant(
            build=body["build"],
            install=tuple(body["install"]),
            evidence=body["evidence"],
            facts=tuple(body["facts"]),
            disputed=tuple(body.get("disputed", ())),
        )

    def named(self, body: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Backed]:
        found = {}
        for name, part in body.get(keys[-1], {}).items():
            self.check(part, (*keys, name), _BACKED)
            found[name] = Backed(
                evidence=part["evidence"],
                facts=tuple(part["facts"]),
                disputed=tuple(part.get("disputed", ())),
            )
        return found

    def flags(self, body: Any, keys: tuple[str, ...]) -> LockedFlags:
        self.check(body, keys, dict.fromkeys(FLAG_LISTS, "list?") | {"env": "table?"})
        env = body.get("env", {})
        self.check(env, (*keys, "env"), dict.fromkeys(env, "text"))
        return LockedFlags(
            env=env, **{name: tuple(body[name]) for name in FLAG_LISTS if name in body}
        )

    def check(self, body: Any, keys: tuple[str, ...], known: Mapping[str, str]) -> None:
        """That a table has the keys it must have, none that is unknown, and values of their kinds."""
        if not isinstance(body, dict):
            raise self.wrong(keys, "a table")
        for name, value in body.items():
            if name not in known:
                raise self.wrong((*keys, name), "a key that this toolmatrix knows")
            kind = known[name].rstrip("?")
            if not _KINDS[kind][0](value):
                raise self.wrong((*keys, name), _KINDS[kind][1])
        for name, kind in known.items():
            if not kind.endswith("?") and name not in body:
                raise self.wrong(keys, f"the key `{name}`")

    def wrong(self, keys: tuple[str, ...], expected: str, found: str = "") -> LockError:
        return LockError(
            f"the lock says something odd about `{'.'.join(keys)}`",
            where=Position(self.path, self.line(keys)),
            expected=expected,
            found=found,
            help="use the toolmatrix that wrote it, or write it anew with `toolmatrix lock`",
        )

    def line(self, keys: tuple[str, ...]) -> int:
        """Where a key stands: below the header of the longest table that leads to it."""
        for count in range(len(keys), -1, -1):
            head = header(keys[:count]).rstrip("\n")
            if count and head not in self.lines:
                continue
            start = self.lines.index(head) if count else 0
            for number, line in enumerate(self.lines[start + 1 :], start + 2):
                if count < len(keys) and line.startswith(key(keys[count]) + " = "):
                    return number
                if line.startswith("["):
                    break
            return start + 1
        return 1


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "text": (lambda value: isinstance(value, str), "a string"),
    "list": (_is_list, "a list of strings"),
    "table": (lambda value: isinstance(value, dict), "a table"),
    "true": (lambda value: value is True, "true"),
    "word": (lambda value: isinstance(value, str) and value in WORDS, "an evidence word"),
}
