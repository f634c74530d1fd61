"""The context of a run, made from parsed arguments, variables and configuration files.

Each option has one value, and an origin: flag > TOOLMATRIX_* variable > environment table > project file > user file >
default.
"""

from __future__ import annotations

import os.path

from toolmatrix.cli.context import STDIN, Context, Stdin
from toolmatrix.command import COMMANDS, all_options
from toolmatrix.command.option import Option, variable_of
from toolmatrix.command.options import COMMON, Options
from toolmatrix.errors import ConfigError, UsageError
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.fields import BadValue
from toolmatrix.resources import user_folder
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, TextIO

    from toolmatrix.cli.parser import Parsed
    from toolmatrix.cli.settings import SettingsFile, SettingsTable
    from toolmatrix.command import Command
    from toolmatrix.errors import Position, ToolmatrixError


class Origin(Value):
    """Where the value of an option comes from."""

    # flag, variable, environment table, project file, user file or default
    kind: str
    # The flag as it was written, or the variable.
    name: str = ""
    file: SettingsFile | None = None
    keys: tuple[str, ...] = ()

    @property
    def where(self) -> Position | None:
        """The position in a file, if it comes from one."""
        # Searched for only when it is shown: the TOML reader has no positions.
        return self.file.position(*self.keys) if self.file else None

    def __str__(self) -> str:
        position = self.where
        return str(position) if position else self.name or self.kind


DEFAULT = Origin(kind="default")


class SettingsLayer(Value):
    """The values from one source."""

    kind: str
    values: Mapping[str, Any]
    names: Mapping[str, str] = {}
    file: SettingsFile | None = None
    path: tuple[str, ...] = ()
    # The key of each value of a file.
    keys: Mapping[str, str] = {}

    def origin(self, name: str) -> Origin:
        """The origin of the option `name` in this place."""
        keys = (*self.path, self.keys[name]) if self.file else ()
        return Origin(kind=self.kind, name=self.names.get(name, ""), file=self.file, keys=keys)


# Defaults that are paths lie in the directory of -C as well.
_PATHS = {
    name: option.default
    for name, option in COMMON.items()
    if option.shape == "path" and option.default
}


def _from_variables(env: Mapping[str, str], command: Command, directory: str) -> SettingsLayer:
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    # Fast for the usual case, an environment without such variables.
    is_usual = not any(name.startswith("TOOLMATRIX_") for name in env)
    for name in () if is_usual else command.options:
        option = command.options[name]
        for variable, shorthand_value in _variables(option):
            value = _from_variable(option, variable, shorthand_value, env.get(variable))
            if value is None:
                continue
            if values.get(name, value) != value:
                raise ConfigError(f"`{names[name]}` and `{variable}` contradict each other")
            values[name], names[name] = value, variable
    placed = _placed(values, command.options, directory)
    return SettingsLayer(kind="variable", values=placed, names=names)


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """TOOLMATRIX_* variables that set nothing."""
    known = {variable for option in all_options().values() for variable, _ in _variables(option)}
    return sorted(name for name in env if name.startswith("TOOLMATRIX_") and name not in known)


def _variables(option: Option) -> list[tuple[str, str]]:
    if option.cli_only:
        return []
    short = [(variable_of(flag), value) for flag, value in option.shorthand.items()]
    return [(option.variable, ""), *short]


def _from_variable(option: Option, variable: str, shorthand_value: str, text: str | None) -> Any:
    """The value of an option from a variable; None if it is empty, or false for a shorthand."""
    if not text:
        return None
    try:
        if not shorthand_value:
            return option.read(text, from_env=True)
        return shorthand_value if COMMON["help"].read(text) else None
    except BadValue as bad:
        raise invalid_option(option, Origin(kind="variable", name=variable), bad) from None


def invalid_option(option: Option, origin: Origin, bad: BadValue) -> ToolmatrixError:
    """The error for a bad value of an option, with its origin."""
    kind = UsageError if origin.kind == "flag" else ConfigError
    what = f"`{option.flags[-1] if origin.kind == 'flag' else option.key}`"
    if origin.kind == "variable":
        what = f"the environment variable `{origin.name}`"
    return bad.about(kind, what, origin.where)


def _placed(
    values: Mapping[str, Any], options: Mapping[str, Option], directory: str
) -> dict[str, Any]:
    """`values` with paths relative to the directory of -C."""
    placed = dict(values)
    for name, value in values.items():
        if directory and name in options and options[name].shape == "path":
            several = isinstance(value, tuple)
            paths = value if several else (value,)
            joined = [path if path == "-" else os.path.join(directory, path) for path in paths]
            placed[name] = tuple(joined) if several else joined[0]
    return placed


def merge(layers: Sequence[SettingsLayer], command: Command) -> tuple[Options, dict[str, Origin]]:
    """The options of a command from layers, the strongest first."""
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for layer in layers:
        for name, value in layer.values.items():
            if name in command.options and name not in values:
                values[name], origins[name] = value, layer.origin(name)
    _settle_exclusions(values, origins, command)
    _settle_format(values, origins, command)
    options = Options(values, command.options)
    return options, {name: origins.get(name, DEFAULT) for name in command.options}


def _settle_exclusions(
    values: dict[str, Any], origins: dict[str, Origin], command: Command
) -> None:
    # Of options that exclude each other the one of the stronger layer wins, which comes first; within one layer
    # it is an error.
    by_strength = list(values)
    for name in by_strength:
        for other in command.options[name].excludes:
            if not (values.get(name) and values.get(other)):
                continue
            if origins[name].kind == origins[other].kind:
                pair = f"`{origins[name].name or name}` and `{origins[other].name or other}`"
                kind = UsageError if origins[name].kind == "flag" else ConfigError
                raise kind(f"{pair} contradict each other", where=origins[name].where)
            weaker = max(name, other, key=by_strength.index)
            del values[weaker], origins[weaker]


def _settle_format(values: dict[str, Any], origins: dict[str, Origin], command: Command) -> None:
    if "format" not in values:
        return
    form = values["format"]
    if form in command.formats or (
        command.writes_files and set(form.split(",")) <= set(command.all_formats)
    ):
        return
    # As a setting it is meant for other commands.
    if origins["format"].kind == "flag":
        raise UsageError(
            f"`{command.name}` has no format `{form}`",
            expected="one of " + ", ".join(command.all_formats),
        )
    del values["format"], origins["format"]


def _from_table(
    kind: str, table: SettingsTable, file: SettingsFile, path: tuple[str, ...] = ()
) -> SettingsLayer:
    return SettingsLayer(kind=kind, values=table.values, file=file, path=path, keys=table.keys)


class Settings(Value):
    """The sources of option values besides the variables: the flags of a run, and its files, the strongest first."""

    flags: SettingsLayer
    directory: str
    files: tuple[SettingsFile, ...]

    @property
    def environments(self) -> dict[str, SettingsFile]:
        """The file that has each environment: of two, the stronger one."""
        # Later entries replace earlier ones, so insert the strongest file last.
        return {name: file for file in reversed(self.files) for name in file.environments}

    def options(
        self, command: Command, env: Mapping[str, str], environment: str = ""
    ) -> tuple[Options, dict[str, Origin]]:
        """The options of a command, in an environment where one is named, with the origin of each."""
        layers = [self.flags, _from_variables(env, command, self.directory)]
        if environment:
            file = self._of(environment)
            table, path = file.environments[environment], ("environments", environment)
            layers.append(_from_table("environment table", table, file, path))
        layers += [_from_table(file.kind, file.top, file) for file in self.files]
        layers.append(SettingsLayer(kind="default", values=_placed(_PATHS, COMMON, self.directory)))
        return merge(layers, command)

    def request(self, environment: str = "") -> tuple[str, ...]:
        """The configured request: that of the environment if it has one."""
        tables = [file.top for file in self.files]
        if environment:
            tables.insert(0, self._of(environment).environments[environment])
        # Requests of several tables are not merged.
        return next((table.request for table in tables if table.request), ())

    def pasted(self, env: Mapping[str, str]) -> Options:
        """The options of `resolve` without flags in the current directory."""
        command, flags = COMMANDS["resolve"], SettingsLayer(kind="flag", values={})
        # A pasted command does not have the flags of this run.
        here = self.replace(flags=flags)
        if "directory" in self.flags.values:
            # Without `-C`, which is not pasted, other files may apply.
            here = _settings(flags, _directory({}, env), env)
        options, _ = here.options(command, env)
        # A variable may name the environment, so read the options without one first.
        name = options.environment
        return here.options(command, env, name)[0] if name else options

    def _of(self, environment: str) -> SettingsFile:
        known = self.environments
        if environment in known:
            return known[environment]
        from toolmatrix.request.spelling import suggestion

        raise UsageError(
            f"unknown environment `{environment}`",
            expected="one of " + ", ".join(known) if known else "an [environments.NAME] table",
            help=suggestion(environment, tuple(known)),
        )


def _settings(flags: SettingsLayer, directory: str, env: Mapping[str, str]) -> Settings:
    project = _first_file(_project_files(directory), "project file")
    files = (*project, *_first_file(_user_files(env), "user file"))
    return Settings(flags=flags, directory=directory, files=files)


def _first_file(
    candidates: Iterable[tuple[str, tuple[str, ...]]], kind: str
) -> tuple[SettingsFile, ...]:
    # The reader is imported where there is a file, which is rare.
    for path, prefix in candidates:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            # The reader reports what is wrong with it.
            pass
        from toolmatrix.cli.settings import read

        settings = read(path, kind, prefix)
        if settings is not None:
            return (settings,)
    return ()


def _project_files(directory: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The places of `toolmatrix.toml`, and `[tool.toolmatrix]` of `pyproject.toml`, in a directory and those above."""
    # Show a path relative to the current directory.
    current = os.path.join(os.getcwd(), "")
    here, above = "", os.path.abspath(directory or os.curdir)
    while here != above:
        here, above = above, os.path.dirname(above)
        for name, prefix in (("toolmatrix.toml", ()), ("pyproject.toml", ("tool", "toolmatrix"))):
            yield os.path.join(here, name).removeprefix(current), prefix


def _user_files(env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    folder = user_folder(env, "XDG_CONFIG_HOME", ".config")
    if os.path.isabs(folder):
        yield os.path.join(folder, "config.toml"), ()


def make_context(
    parsed: Parsed,
    command: Command,
    env: Mapping[str, str],
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
) -> Context:
    """The context of a command, from the command line, the variables and the files."""
    directory = _directory(parsed.values, env)
    values = _placed(parsed.values, command.options, directory)
    flags = SettingsLayer(kind="flag", values=values, names=parsed.flags)
    settings = _settings(flags, directory, env)
    piped = Stdin(stdin)
    context = Context(
        command=command,
        options=Options({}, {}),
        origins={},
        settings=settings,
        typed_arguments=tuple(_expand_stdin(parsed.arguments, command, piped)),
        title_words=tuple(parsed.title_words),
        passed=tuple(parsed.passed),
        env=env,
        piped=piped,
        stdout=stdout,
        stderr=stderr,
        terminal=Terminal(),
        pieces=[],
        later=[],
        waiting=[],
    ).for_environment("")
    # The option may come from a variable, so the settings are merged once without an environment to read it.
    if "environment" in command.options and context.options.environment:
        context = context.for_environment(context.options.environment)
    _count_arguments(context)
    return context


def _directory(flags: Mapping[str, Any], env: Mapping[str, str]) -> str:
    directory: str = flags.get("directory") or env.get("TOOLMATRIX_DIRECTORY", "")
    if directory and not os.path.isdir(directory):
        raise UsageError(f"no directory `{directory}`", help="`-C` names a directory")
    return directory


def _expand_stdin(arguments: Sequence[str], command: Command, piped: Stdin) -> Iterator[str]:
    asks = command.request and "REQUEST" in command.usage
    for argument in arguments:
        yield from piped.request() if asks and argument == STDIN else (argument,)


def _count_arguments(context: Context) -> None:
    command, count = context.command, len(context.arguments)
    help = f"`toolmatrix help {command.name}` shows examples"
    if count < command.at_least:
        present = "1 argument" if count else "no argument"
        raise UsageError(f"`{command.name}` needs {command.usage}", found=present, help=help)
    if command.at_most is not None and count > command.at_most:
        extra = context.arguments[command.at_most]
        # `matrix cuda arch` means `matrix --rows cuda --cols arch`.
        if len(command.for_words) >= count:
            import shlex

            pairs = zip(command.for_words, context.arguments, strict=False)
            suggestion = shlex.join(word for pair in pairs for word in pair)
            help = f"did you mean `toolmatrix {command.name} {suggestion}`?"
        raise UsageError(
            f"`{command.name}` does not take `{extra}`",
            expected=command.usage or "no argument",
            help=help,
        )
