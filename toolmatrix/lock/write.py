"""The text of a lock: TOML with sorted tables, one component on a line, and a seal as its last line."""

from __future__ import annotations

from toolmatrix.lock.model import FLAGS, SCHEMA, Backed, LockedComponent, LockedVariant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.lock.model import Lock, LockedPackage, LockedTarget

SEAL = "# seal "
"""How the line begins that has the SHA-256 of all lines above it."""

# By hand, as `tomli_w` has no inline tables: one component to a line is what makes two locks easy to compare.
_HEAD = "# Written by `toolmatrix lock`. An edit by hand is refused.\n"
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
    parts = [f"{_HEAD}schema = {string(SCHEMA)}\n"]
    parts.append(_table(("matrix",), {"date": lock.matrix_date, "digest": lock.matrix_digest}))
    if lock.render:
        parts.append(_table(("render",), dict(sorted(lock.render.items()))))
    for name in sorted(lock.environments):
        environment = lock.environments[name]
        keys = ("environments", name)
        parts.append(_table(keys, {"request": environment.request}))
        for target in sorted(environment.targets):
            parts += _target((*keys, "targets", target), environment.targets[target])
    return "\n".join([*parts, ""])


def _target(keys: tuple[str, ...], target: LockedTarget) -> Iterator[str]:
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
            lines = [f"{key(part)} = {_inline(parts[part])}\n" for part in sorted(parts)]
            yield header((*keys, name)) + "".join(lines)
    flags: dict[str, str | Sequence[str]] = {
        name: found for name in FLAG_LISTS if (found := getattr(target.flags, name))
    }
    if flags:
        yield _table((*keys, "flags"), flags)
    if target.flags.env:
        yield _table((*keys, "flags", "env"), dict(sorted(target.flags.env.items())))
    if target.closure:
        asked = target.closure.asked
        yield _table(
            (*keys, "closure"), {name: getattr(asked, name) for name in sorted(asked._fields)}
        )
        for field in ("packages", "builders"):
            held: Mapping[str, LockedPackage] = getattr(target.closure, field)
            # As above: a reader may count on the packages.
            if held or field == "packages":
                lines = [f"{key(name)} = {_package(held[name])}\n" for name in sorted(held)]
                yield header((*keys, "closure", field)) + "".join(lines)


def _table(keys: Sequence[str], values: Mapping[str, str | Sequence[str]]) -> str:
    lines = [f"{key(name)} = {_value(value)}\n" for name, value in values.items()]
    return header(keys) + "".join(lines)


def _inline(part: Backed) -> str:
    fields = [("evidence", _value(part.evidence)), ("facts", _value(part.facts))]
    if part.disputed:
        fields.append(("disputed", _value(part.disputed)))
    if isinstance(part, LockedVariant):
        fields[:0] = [("build", _value(part.build)), ("install", _value(part.install))]
    if isinstance(part, LockedComponent):
        fields.insert(0, ("floor" if part.floor else "version", _value(part.version)))
        if part.inside:
            fields.append(("inside", _value(part.inside)))
        if part.kept:
            fields.append(("kept", "true"))
    return f"{{ {', '.join(f'{name} = {value}' for name, value in fields)} }}"


def _package(package: LockedPackage) -> str:
    files = ", ".join(f"{key(name)} = {string(of)}" for name, of in sorted(package.files.items()))
    url = f", url = {string(package.url)}" if package.url else ""
    return f"{{ version = {string(package.version)}, files = {{ {files} }}{url} }}"


def _value(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return string(value)
    return f"[{', '.join(string(word) for word in value)}]"


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
