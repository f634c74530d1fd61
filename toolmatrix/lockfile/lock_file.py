"""The text of a lock, written and read back: TOML with sorted tables, one component on a line, a seal at its end.

Reading raises LockError, with the line, for whatever `text` did not write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolmatrix import toml
from toolmatrix.errors import LockError, Position
from toolmatrix.factbase import versions
from toolmatrix.factbase.evidence import WORDS
from toolmatrix.factbase.index import Index
from toolmatrix.lockfile.model import (
    FLAGS,
    SCHEMA,
    Backed,
    Lock,
    LockedClosure,
    LockedComponent,
    LockedEnvironment,
    LockedFlags,
    LockedPackage,
    LockedTarget,
    LockedVariant,
    PackageQuestion,
)
from toolmatrix.opener import open_file, read_file

Fields = Mapping[str, "str | Fields"]


SEAL = "# seal "
"""How the line begins that has the SHA-256 of all lines above it."""

# By hand, as `tomli_w` has no inline tables: one component to a line is what makes two locks easy to compare.
_HEADER = "# Written by `toolmatrix lock`. An edit by hand is refused.\n"
FLAG_LISTS = tuple(sorted((*FLAGS, "facts", "missing")))
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def text(lock: Lock) -> str:
    """The whole file."""
    return sealed(body(lock))


def sealed(body: str) -> str:
    """The body, which ends with a newline, and the seal below it."""
    return f"{body}{SEAL}{digest_of(body)}\n"


def digest_of(body: str) -> str:
    """`sha256:...` of a body."""
    # Here, as `hashlib` brings OpenSSL, and most commands write no lock.
    from hashlib import sha256

    return "sha256:" + sha256(body.encode()).hexdigest()


def digest(lock: Lock) -> str:
    """`sha256:...` of what the lock answers: how its directory is rendered changes no answer."""
    return digest_of(body(lock.replace(render={})))


def body(lock: Lock) -> str:
    """The file without its seal."""
    parts = [f"{_HEADER}schema = {string(SCHEMA)}\n"]
    parts.append(_table(("matrix",), {"date": lock.matrix_date, "digest": lock.matrix_digest}))
    if lock.render:
        parts.append(_table(("render",), dict(sorted(lock.render.items()))))
    for name in sorted(lock.environments):
        environment = lock.environments[name]
        keys = ("environments", name)
        parts.append(_table(keys, {"request": environment.request}))
        for target in sorted(environment.targets):
            parts += _target_text((*keys, "targets", target), environment.targets[target])
    return "\n".join([*parts, ""])


def _target_text(keys: tuple[str, ...], target: LockedTarget) -> Iterator[str]:
    yield _table(
        keys,
        {
            "accelerator": target.accelerator,
            "evidence": target.evidence,
            "from": target.from_,
            "platform": target.platform,
        },
    )
    for name in ("archs", "components", "devices", "variants"):
        parts: Mapping[str, Backed] = getattr(target, name)
        # A reader may count on the table of components; the others are left out where they are empty.
        if parts or name == "components":
            lines = [f"{key(entry)} = {_inline(parts[entry])}\n" for entry in sorted(parts)]
            yield header((*keys, name)) + "".join(lines)
    flags: dict[str, str | Sequence[str]] = {
        name: values for name in FLAG_LISTS if (values := getattr(target.flags, name))
    }
    if flags:
        yield _table((*keys, "flags"), flags)
    if target.flags.env:
        yield _table((*keys, "flags", "env"), dict(sorted(target.flags.env.items())))
    if target.closure:
        question = target.closure.asked
        yield _table(
            (*keys, "closure"), {name: getattr(question, name) for name in sorted(question._fields)}
        )
        for field in ("packages", "builders"):
            packages: Mapping[str, LockedPackage] = getattr(target.closure, field)
            # As above: a reader may count on the packages.
            if packages or field == "packages":
                lines = [f"{key(name)} = {_package(packages[name])}\n" for name in sorted(packages)]
                yield header((*keys, "closure", field)) + "".join(lines)


def _table(keys: Sequence[str], values: Mapping[str, str | Sequence[str]]) -> str:
    lines = [f"{key(name)} = {_value(value)}\n" for name, value in values.items()]
    return header(keys) + "".join(lines)


def _inline(entry: Backed) -> str:
    fields = [("evidence", _value(entry.evidence)), ("facts", _value(entry.facts))]
    if entry.disputed:
        fields.append(("disputed", _value(entry.disputed)))
    if isinstance(entry, LockedVariant):
        fields[:0] = [("build", _value(entry.build)), ("install", _value(entry.install))]
    if isinstance(entry, LockedComponent):
        fields.insert(0, ("floor" if entry.floor else "version", _value(entry.version)))
        if entry.inside:
            fields.append(("inside", _value(entry.inside)))
        if entry.kept:
            fields.append(("kept", "true"))
    return f"{{ {', '.join(f'{name} = {value}' for name, value in fields)} }}"


def _package(package: LockedPackage) -> str:
    files = ", ".join(f"{key(name)} = {string(of)}" for name, of in sorted(package.files.items()))
    url = f", url = {string(package.url)}" if package.url else ""
    return f"{{ version = {string(package.version)}, files = {{ {files} }}{url} }}"


def _value(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return string(value)
    return f"[{', '.join(string(item) for item in value)}]"


def header(keys: Sequence[str]) -> str:
    """The line that opens a table."""
    return f"[{'.'.join(key(name) for name in keys)}]\n"


def key(name: str) -> str:
    """A key, quoted where TOML wants it."""
    # Bare keys are letters and digits of ASCII, dashes and underscores.
    plain = name.replace("-", "").replace("_", "")
    return name if plain.isascii() and plain.isalnum() else string(name)


def string(value: str) -> str:
    """A string on one line; what cannot be seen is escaped."""
    return f'"{"".join(_escaped(letter) for letter in value)}"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


LARGEST = 8 << 20
"""Bytes that a lock may have; one with hundreds of environments has fewer."""
# Bytes in which a lock names its schema.
_HEAD = 4096
_HEX, _DIGITS = "0123456789abcdef", 64

_REWRITE = "write it again with `toolmatrix lock`, or restore it from version control"
# The content of each table: kinds of `_KINDS`, tables below it, `*` for any name, `?` behind what may be left out.
_BACKED: Fields = {"evidence": "word", "facts": "list", "disputed?": "list"}
_PACKAGES: Fields = {"*": {"version": "text", "files": {"*": "sha256"}, "url?": "text"}}
_TARGET: Fields = {
    **dict.fromkeys(("accelerator", "from", "platform"), "text"),
    "evidence": "word",
    "components": {
        "*": {**_BACKED, "version?": "text", "floor?": "text", "inside?": "text", "kept?": "true"}
    },
    "archs?": {"*": _BACKED},
    "devices?": {"*": _BACKED},
    "variants?": {"*": {**_BACKED, "build": "text", "install": "list"}},
    "flags?": {"env?": {"*": "text"}, **{f"{name}?": "list" for name in FLAG_LISTS}},
    "closure?": {
        **dict.fromkeys(("builds", "options", "requirements"), "list"),
        **dict.fromkeys(("platform", "python"), "text"),
        "packages": _PACKAGES,
        "builders?": _PACKAGES,
    },
}
FIELDS: Fields = {
    "schema": "text",
    "matrix": {"date": "text", "digest": "text"},
    "render?": {
        **dict.fromkeys(
            ("dialect?", "fetched?", "format?", "recipe?", "snapshot?", "syntax-line?"), "text"
        ),
        **dict.fromkeys(("base?", "mirror?", "option?", "target?"), "list"),
    },
    "environments?": {"*": {"request": "list", "targets?": {"*": _TARGET}}},
}


def read(path: str) -> Lock:
    """The lock at `path`."""
    try:
        data = read_file(path, LARGEST)
    # `ValueError` is what `open` says of a path with a zero byte.
    except FileNotFoundError:
        raise LockError(
            "there is no lock", where=Position(path), help="`toolmatrix lock` writes one"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LockError("cannot read the lock", where=Position(path), found=reason) from None
    return parse(data, path)


def may_be_replaced(path: str) -> bool:
    """True if nothing is there, or what was a lock once: broken, of another schema, empty."""
    # `--lock setup.cfg` is a slip: a foreign file is never overwritten.
    try:
        with open_file(path) as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not head or SCHEMA.partition("/")[0].encode() in head


def parse(data: bytes | None, path: str) -> Lock:
    """The lock in the bytes of a file, of which None is too large; `path` is what errors call it."""
    text = _text(data, path)
    _check_schema(text, path)
    _check_seal(text, path)
    return _Checker(path, text).lock(toml.parse(text, path, LockError, "the lock", _REWRITE))


def invalid_key(path: str, keys: tuple[str, ...], expected: str, actual: str = "") -> LockError:
    """The error for an unknown value of a readable lock, with its line if the lock has a path."""
    text = ""
    if path:
        text = (read_file(path, LARGEST) or b"").decode("utf-8", "replace")
    return _Checker(path, text).wrong(keys, expected, actual)


def unknown_names(lock: Lock, path: str, index: Index) -> list[str]:
    """What a lock of another matrix names and a matrix does not know, such as `cuda 11.2.2`; of its own there is none.

    Raises LockError, with the line, for what no matrix could know, and for the first target, component or release that
    the matrix of the lock itself does not have.
    """
    own = index.header["digest"] == lock.matrix_digest
    unknown = []
    for _, environment, target in lock.names():
        keys = ("environments", environment, "targets", target)
        if target not in index.header["targets"]:
            if own:
                raise invalid_key(path, keys, "a target of the matrix", f"`{target}`")
            unknown.append(f"target {target}")
        locked = lock.environments[environment].targets[target]
        for below, component, release in _named_releases(locked):
            head = index.header["components"].get(component)
            if head is None and own:
                raise invalid_key(
                    path, (*keys, *below), "a component of the matrix", f"`{component}`"
                )
            if head is None or release not in index.component(component).versions:
                if own or (head and not _is_release(head["scheme"], release)):
                    expected = f"a release of {component} that the matrix knows"
                    raise invalid_key(path, (*keys, *below), expected, f"`{release}`")
                unknown.append(f"{component} {release}")
        for floor, locked_component in locked.components.items():
            if locked_component.floor and not _is_release("pep440", locked_component.version):
                below = (*keys, "components", floor)
                raise invalid_key(path, below, "a version", f"`{locked_component.version}`")
    return list(dict.fromkeys(unknown))


def _named_releases(target: LockedTarget) -> Iterator[tuple[tuple[str, ...], str, str]]:
    # Keys below the table of a target, and the component and release that they name.
    yield ("accelerator",), "accelerator", target.accelerator
    yield ("from",), "from", target.from_
    for name, component in target.components.items():
        if not component.floor:
            yield ("components", name), name, component.version
    for name, build in target.variants.items():
        yield ("variants", name), f"{name}-variant", build.build
    yield from ((("archs", name), "arch", name) for name in target.archs)
    yield from ((("devices", name), "device", name) for name in target.devices)


def _is_release(scheme: str, text: str) -> bool:
    try:
        versions.Scale(scheme, (text,))
    except versions.SelectorError:
        return False
    return True


def _text(data: bytes | None, path: str) -> str:
    if data is None or len(data) > LARGEST:
        raise LockError(
            "the lock is too large",
            where=Position(path),
            expected=f"at most {LARGEST} bytes",
            help=_REWRITE,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LockError(
            "the lock is not text", where=Position(path, line), expected="UTF-8", help=_REWRITE
        ) from None


def _check_schema(text: str, path: str) -> None:
    # Before anything else is looked at: the seal of another schema may have another form.
    for number, line in enumerate(text.split("\n"), 1):
        name, equals, value = line.rstrip("\r").partition(" = ")
        if line.startswith("["):
            return
        if name == "schema" and equals:
            schema = value.strip('"')
            if schema != SCHEMA and schema.startswith(SCHEMA.rpartition("/")[0] + "/"):
                raise LockError(
                    "the lock has a different schema",
                    where=Position(path, number),
                    expected=f"`{SCHEMA}`",
                    found=f"`{schema}`",
                    help="use the toolmatrix version that wrote it, or write it again with `toolmatrix lock`",
                )
            return


def is_intact(text: str) -> bool:
    """True if the digest in the seal of a lock is that of what stands above it."""
    body, separator, below = text.partition("\n" + SEAL)
    seal, _, marks = below.partition("\n")
    # Locks used to have a checksum of each line below the digest. It says the same, so the comments decide nothing.
    return (
        bool(separator)
        and text.endswith("\n")
        and seal == digest_of(body + "\n")
        and all(line.startswith(SEAL) for line in marks.split("\n")[:-1])
    )


def _check_seal(text: str, path: str) -> None:
    if is_intact(text):
        return
    # Git converts line ends where `core.autocrlf` says so: that is no edit, and has a remedy of its own.
    if "\r\n" in text and is_intact(text.replace("\r\n", "\n")):
        raise LockError(
            "the line endings of the lock were converted",
            where=Position(path, text.count("\n", 0, text.index("\r\n")) + 1),
            expected="lines that end with LF",
            found="CR LF",
            help="a line `*.lock -text` in .gitattributes keeps git from converting it; then check it out again",
        )
    _, separator, below = text.partition("\n" + SEAL)
    if not separator and not _is_lock(text):
        raise _no_lock(text, path)
    if not separator or "\n" not in below:
        raise LockError(
            "the lock is truncated",
            where=Position(path, len(text.removesuffix("\n").split("\n"))),
            expected="the rest of the file",
            found="its end",
            help=_REWRITE,
        )
    raise LockError(
        "the lock was edited after it was written",
        where=Position(path),
        expected="what `toolmatrix lock` wrote",
        found="lines whose digest does not match its seal",
        help=_REWRITE,
    )


def _is_lock(text: str) -> bool:
    # However early it ends: the first line that is no comment need only begin as that of a lock.
    start = f'schema = "{SCHEMA}"'
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    return bool(text) and start.startswith(lines[0] if lines else "")


def _no_lock(text: str, path: str) -> LockError:
    # A file that is not even TOML is reported as such, with line and column.
    if text:
        toml.parse(text, path, LockError, "the lock", _REWRITE)
    return LockError(
        "this is not a lock",
        where=Position(path, 1),
        expected=f'`schema = "{SCHEMA}"`',
        found="another file" if text else "an empty file",
        help="`toolmatrix lock` writes one",
    )


class _Checker:
    # A sealed lock that fails here was written by another toolmatrix.
    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = text.split("\n")

    def lock(self, body: Mapping[str, Any]) -> Lock:
        """The lock in parsed TOML; raises LockError."""
        self.check(body, (), FIELDS)
        if body["schema"] != SCHEMA:
            raise self.wrong(("schema",), f"`{SCHEMA}`")
        return _lock(body)

    def check(self, body: Any, keys: tuple[str, ...], fields: Fields) -> None:
        """Check that a table has the keys it must have, none that is unknown, and values of their kinds."""
        if not isinstance(body, dict):
            raise self.wrong(keys, "a table")
        below: list[tuple[str, Fields]] = []
        for name, value in body.items():
            kind = _kind(fields, name)
            if kind is None:
                raise self.wrong((*keys, name), "a key known to this toolmatrix")
            if not isinstance(kind, str):
                below.append((name, kind))
            elif not _KINDS[kind][0](value):
                raise self.wrong((*keys, name), _KINDS[kind][1])
        for name in fields:
            if name[-1] not in "?*" and name not in body:
                raise self.wrong(keys, f"the key `{name}`")
        # A driver has a floor, which any newer fits; everything else has one version.
        if "floor?" in fields and ("version" in body) == ("floor" in body):
            raise self.wrong(keys, "either `version` or `floor`")
        for name, inner in below:
            self.check(body[name], (*keys, name), inner)

    def wrong(self, keys: tuple[str, ...], expected: str, actual: str = "") -> LockError:
        return LockError(
            f"the lock has an invalid `{'.'.join(keys)}`",
            where=Position(self.path, self.line(keys)),
            expected=expected,
            found=actual,
            help="use the toolmatrix version that wrote it, or write it again with `toolmatrix lock`",
        )

    def line(self, keys: tuple[str, ...]) -> int:
        """The line of a key: below the header of the longest table that leads to it."""
        # `tomllib` keeps no positions; but a sealed lock is laid out as `write` does, so its lines can be searched.
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


def _kind(fields: Fields, name: str) -> str | Fields | None:
    # A table has keys of its own or, by `*`, names of any kind.
    for field, kind in fields.items():
        if field == "*" or field.removesuffix("?") == name:
            return kind
    return None


def _lock(body: Mapping[str, Any]) -> Lock:
    return Lock(
        matrix_date=body["matrix"]["date"],
        matrix_digest=body["matrix"]["digest"],
        environments={
            name: LockedEnvironment(
                request=tuple(table["request"]),
                targets={name: _target(below) for name, below in table.get("targets", {}).items()},
            )
            for name, table in body.get("environments", {}).items()
        },
        render=_fields(body.get("render", {})),
    )


def _target(body: Mapping[str, Any]) -> LockedTarget:
    return LockedTarget(
        accelerator=body["accelerator"],
        from_=body["from"],
        platform=body["platform"],
        evidence=body["evidence"],
        components={name: _component(row) for name, row in body["components"].items()},
        archs={name: Backed(**_fields(row)) for name, row in body.get("archs", {}).items()},
        devices={name: Backed(**_fields(row)) for name, row in body.get("devices", {}).items()},
        variants={
            name: LockedVariant(**_fields(row)) for name, row in body.get("variants", {}).items()
        },
        flags=LockedFlags(**_fields(body.get("flags", {}))),
        closure=_closure(body["closure"]) if "closure" in body else None,
    )


def _closure(body: Mapping[str, Any]) -> LockedClosure:
    fields = _fields(body)
    packages, builders = (
        {name: LockedPackage(**package) for name, package in fields.pop(key, {}).items()}
        for key in ("packages", "builders")
    )
    return LockedClosure(asked=PackageQuestion(**fields), packages=packages, builders=builders)


def _component(body: Mapping[str, Any]) -> LockedComponent:
    fields = _fields(body)
    # The file says that any newer will do by the name of the key: `floor` is then the version.
    if "floor" in body:
        fields |= {"version": body["floor"], "floor": True}
    return LockedComponent(**fields)


def _fields(body: Mapping[str, Any]) -> dict[str, Any]:
    # Values are frozen: what TOML has as a list is a tuple in them. What a table leaves out has its default.
    return {key: tuple(value) if isinstance(value, list) else value for key, value in body.items()}


def _is_sha256(value: object) -> bool:
    # Without `re`, as above: a lock of many packages has as many checksums.
    return isinstance(value, str) and len(value) == _DIGITS and not value.strip(_HEX)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "text": (lambda value: isinstance(value, str), "a string"),
    "list": (_is_list, "a list of strings"),
    "true": (lambda value: value is True, "true"),
    "sha256": (_is_sha256, "a SHA-256 in hexadecimal digits"),
    "word": (lambda value: isinstance(value, str) and value in WORDS, "an evidence word"),
}
