"""Configuration files: read and checked, with the place of every key. `prepare` finds them."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import Any

from toolmatrix.command import all_options
from toolmatrix.command.option import Option, toml_kind
from toolmatrix.command.options import COMMON, REQUEST
from toolmatrix.errors import ConfigError, Position
from toolmatrix.opener import read_file
from toolmatrix.request.fields import BadValue
from toolmatrix.value import Value

_TABLES = ("request", "environments")
# Maximum bytes of a file.
_LARGEST = 4 << 20


class SettingsTable(Value):
    """The options and the request of one table of a file."""

    values: Mapping[str, Any]
    # The key of each value.
    keys: Mapping[str, str]
    request: tuple[str, ...] = ()


class SettingsFile(Value):
    """One file as read: `[tool.toolmatrix]` of a pyproject.toml, or the whole of another."""

    path: str
    text: str
    kind: str
    prefix: tuple[str, ...] = ()
    top: SettingsTable
    environments: Mapping[str, SettingsTable]

    def position(self, *keys: str) -> Position:
        """The place of a key."""
        return locate(self.path, self.text, (*self.prefix, *keys))


def read(path: str, kind: str, prefix: tuple[str, ...] = ()) -> SettingsFile | None:
    """The settings in a file, below some keys; None if it has none. Raises ConfigError."""
    try:
        data = read_file(path, _LARGEST)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(
            "cannot read the configuration", where=Position(path), found=error.strerror or ""
        ) from None
    if data is None:
        raise ConfigError(
            "the configuration is too large",
            where=Position(path),
            expected=f"at most {_LARGEST >> 20} MiB",
        )
    # Most pyproject.toml files have no table of ours, and importing the TOML reader takes a quarter of a `resolve`.
    if prefix and b"toolmatrix" not in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(
            "the configuration is not text", where=Position(path), expected="UTF-8"
        ) from None
    from toolmatrix import toml

    body: object = toml.parse(text, path, ConfigError, "the configuration")
    for key in prefix:
        body = body.get(key) if isinstance(body, dict) else None
    if body is None:
        return None
    return _Reader(path, text, prefix).file(kind, body)


def _option(key: str) -> Option | None:
    # Commands are imported only for a key that is not a shared option.
    for options in (COMMON | REQUEST, None):
        for option in (all_options() if options is None else options).values():
            if option.key == key:
                return option
    return None


class _Reader:
    """Checks the tables of one file."""

    def __init__(self, path: str, text: str, prefix: tuple[str, ...]) -> None:
        self.path = path
        self.text = text
        self.prefix = prefix

    def file(self, kind: str, body: object) -> SettingsFile:
        top = self.table(body, ())
        tables = body.get("environments", {}) if isinstance(body, dict) else {}
        if not isinstance(tables, dict):
            keys = ("environments",)
            raise self.wrong("environments", keys, "tables such as [environments.NAME]", tables)
        environments = {
            name: self.table(inside, ("environments", name)) for name, inside in tables.items()
        }
        return SettingsFile(
            path=self.path,
            text=self.text,
            kind=kind,
            prefix=self.prefix,
            top=top,
            environments=environments,
        )

    def table(self, body: object, path: tuple[str, ...]) -> SettingsTable:
        if not isinstance(body, dict):
            raise self.wrong(".".join((*self.prefix, *path)), path, "a table", body)
        values: dict[str, Any] = {}
        keys_of: dict[str, str] = {}
        request: tuple[str, ...] = ()
        for key, value in body.items():
            option = None if key in _TABLES else _option(key)
            if option is not None and option.configurable:
                values[option.name] = self.value(option, value, path)
                keys_of[option.name] = key
            elif key == "request":
                request = self.request(value, path)
            elif path or key != "environments":
                raise self.unknown(key, path)
        return SettingsTable(values=values, keys=keys_of, request=request)

    def value(self, option: Option, value: object, path: tuple[str, ...]) -> Any:
        key = option.key
        try:
            read = option.accept(value)
        except BadValue as bad:
            raise bad.about(ConfigError, f"`{key}`", self.position(*path, key)) from None
        if option.shape != "path":
            return read
        # A file is read from wherever a command is started below it: its paths are relative to itself.
        base = os.path.dirname(self.path)
        if option.kind == "list":
            return tuple(os.path.join(base, relative) for relative in read)
        return os.path.join(base, read)

    def request(self, value: object, path: tuple[str, ...]) -> tuple[str, ...]:
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            keys = (*path, "request")
            raise self.wrong("request", keys, "a string or a list of strings", value)
        return tuple(words)

    def position(self, *keys: str) -> Position:
        return locate(self.path, self.text, (*self.prefix, *keys))

    def wrong(self, name: str, keys: tuple[str, ...], expected: str, value: object) -> ConfigError:
        return ConfigError(
            f"bad value for `{name}`",
            where=self.position(*keys),
            expected=expected,
            found=toml_kind(value),
        )

    def unknown(self, key: str, path: tuple[str, ...]) -> ConfigError:
        known = tuple(option.key for option in all_options().values() if option.configurable)
        from toolmatrix.request.spelling import suggestion

        tables = _TABLES[:1] if path else _TABLES
        return ConfigError(
            f"unknown key `{key}`",
            where=self.position(*path, key),
            help=suggestion(key, (*known, *tables), "`toolmatrix config` lists the keys"),
        )


def locate(path: str, text: str, keys: tuple[str, ...]) -> Position:
    """The position of a key in a TOML file; line 0 if its spelling is too unusual to be found."""
    # `tomllib` has no positions. For keys on several lines, or escaped, only the file is named.
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _dotted(stripped.strip("[").partition("]")[0])
            if table == keys:
                return Position(path, number, 1)
        elif "=" in stripped and (*table, *_dotted(stripped.partition("=")[0])) == keys:
            return Position(path, number, len(line) - len(line.lstrip()) + 1)
    return Position(path)


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(key.strip().strip("\"'") for key in text.split("."))
