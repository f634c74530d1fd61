"""One value for each option, and where it came from.

Flag > TOOLMATRIX_* variable > environment table > project file > user file > default.
"""

from __future__ import annotations

import os.path

from toolmatrix.cli.option import Option, variable_of
from toolmatrix.cli.options import OPTIONS, Options
from toolmatrix.errors import ConfigError, UsageError
from toolmatrix.request.fields import BadValue
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from toolmatrix.cli.commands import Command
    from toolmatrix.cli.parser import Parsed
    from toolmatrix.cli.settings import SettingsFile
    from toolmatrix.errors import Position, ToolmatrixError


class Origin(Value):
    """The place that the value of an option came from."""

    kind: str  # flag, variable, environment table, project file, user file, default
    name: str = ""  # the flag as written, the variable, or the name of the environment table
    file: SettingsFile | None = None
    keys: tuple[str, ...] = ()

    @property
    def where(self) -> Position | None:
        """The place in a file, for what stands in one."""
        return self.file.position(*self.keys) if self.file else None

    def __str__(self) -> str:
        place = self.where
        return str(place) if place else self.name or self.kind


DEFAULT = Origin(kind="default")


class SettingsLayer(Value):
    """The values that one place gives."""

    kind: str
    values: Mapping[str, Any]
    names: Mapping[str, str] = {}
    file: SettingsFile | None = None
    path: tuple[str, ...] = ()

    def origin(self, name: str) -> Origin:
        """The origin of the option `name` in this place."""
        keys = (*self.path, OPTIONS[name].key) if self.file else ()
        return Origin(kind=self.kind, name=self.names.get(name, ""), file=self.file, keys=keys)


def from_flags(parsed: Parsed, directory: str) -> SettingsLayer:
    """The values on the command line."""
    return SettingsLayer(kind="flag", values=_placed(parsed.given, directory), names=parsed.flags)


def from_variables(env: Mapping[str, str], command: Command, directory: str) -> SettingsLayer:
    """The values that TOOLMATRIX_* variables give to the options of a command."""
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    # An environment without such variables, which is the usual one, costs one look at each name.
    is_usual = not any(name.startswith("TOOLMATRIX_") for name in env)
    for name in () if is_usual else command.options:
        for variable, stands_for in _variables(OPTIONS[name]):
            value = _from_variable(name, variable, stands_for, env.get(variable))
            if value is None:
                continue
            if values.get(name, value) != value:
                raise ConfigError(f"`{names[name]}` and `{variable}` contradict each other")
            values[name], names[name] = value, variable
    return SettingsLayer(kind="variable", values=_placed(values, directory), names=names)


def from_defaults(directory: str) -> SettingsLayer:
    """The defaults that are paths, which lie in the directory of -C as well."""
    paths = {name: one.default for name, one in OPTIONS.items() if one.shape == "path"}
    given = {name: path for name, path in paths.items() if path}
    return SettingsLayer(kind="default", values=_placed(given, directory))


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """TOOLMATRIX_* variables that set nothing."""
    known = {variable for option in OPTIONS.values() for variable, _ in _variables(option)}
    return sorted(name for name in env if name.startswith("TOOLMATRIX_") and name not in known)


def _variables(option: Option) -> list[tuple[str, str]]:
    if option.only_flag:
        return []
    short = [(variable_of(flag), value) for flag, value in option.shorthand.items()]
    return [(option.variable, ""), *short]


def _from_variable(name: str, variable: str, stands_for: str, text: str | None) -> Any:
    """The value that the text of a variable gives an option; None where it says nothing, or no to a shorthand."""
    if not text:
        return None
    try:
        if not stands_for:
            return OPTIONS[name].read(text, from_env=True)
        return stands_for if OPTIONS["help"].read(text) else None
    except BadValue as bad:
        raise misfit(OPTIONS[name], Origin(kind="variable", name=variable), bad) from None


def misfit(option: Option, origin: Origin, bad: BadValue) -> ToolmatrixError:
    """The error for a value that an option does not take, where it was said."""
    kind = UsageError if origin.kind == "flag" else ConfigError
    what = f"`{option.flags[-1] if origin.kind == 'flag' else option.key}`"
    if origin.kind == "variable":
        what = f"the environment variable `{origin.name}`"
    return bad.about(kind, what, origin.where)


def _placed(values: Mapping[str, Any], directory: str) -> dict[str, Any]:
    """`values` with paths relative to the directory of -C."""
    placed = dict(values)
    for name, value in values.items():
        if not directory or OPTIONS[name].shape != "path":
            continue
        if isinstance(value, tuple):
            placed[name] = tuple(_join(directory, one) for one in value)
        else:
            placed[name] = _join(directory, value)
    return placed


def _join(directory: str, path: str) -> str:
    return path if path == "-" else os.path.join(directory, path)


def merge(layers: Sequence[SettingsLayer], command: Command) -> tuple[Options, dict[str, Origin]]:
    """The options of a command from layers, the strongest first."""
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    wanted = set(command.options)
    for layer in layers:
        for name, value in layer.values.items():
            if name in wanted and name not in values:
                values[name], origins[name] = value, layer.origin(name)
    _settle_exclusions(values, origins)
    _settle_format(values, origins, command)
    return Options(values), {name: origins.get(name, DEFAULT) for name in command.options}


def _settle_exclusions(values: dict[str, Any], origins: dict[str, Origin]) -> None:
    # Of options that exclude each other the one of the stronger place wins, which was put in first; within one place
    # it is an error.
    by_strength = list(values)
    for name in by_strength:
        for other in OPTIONS[name].excludes:
            if not (values.get(name) and values.get(other)):
                continue
            if origins[name].kind == origins[other].kind:
                pair = f"`{origins[name].name or name}` and `{origins[other].name or other}`"
                kind = UsageError if origins[name].kind == "flag" else ConfigError
                raise kind(f"{pair} contradict each other", where=origins[name].where)
            weaker = max(name, other, key=by_strength.index)
            del values[weaker], origins[weaker]


def _settle_format(values: dict[str, Any], origins: dict[str, Origin], command: Command) -> None:
    form = values.get("format", "text")
    if form in command.formats or (command.fills and set(form.split(",")) <= set(command.forms)):
        return
    # As a setting it means other commands.
    if origins["format"].kind == "flag":
        raise UsageError(
            f"`{command.name}` has no format `{form}`",
            expected="one of " + ", ".join(command.forms),
        )
    del values["format"], origins["format"]
