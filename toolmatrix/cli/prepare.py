"""What was parsed, the variables and the configuration files, made into the context of a run."""

from __future__ import annotations

import os.path

from toolmatrix.cli.commands import COMMANDS
from toolmatrix.cli.context import Context
from toolmatrix.cli.merge import Layer, from_defaults, from_flags, from_variables, merge
from toolmatrix.cli.options import Options
from toolmatrix.cli.settings import project_file, user_file
from toolmatrix.cli.stdin import NAME, Stdin
from toolmatrix.errors import UsageError
from toolmatrix.report.terminal import Terminal
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TextIO

    from toolmatrix.cli.commands import Command
    from toolmatrix.cli.merge import Origin
    from toolmatrix.cli.parser import Parsed
    from toolmatrix.cli.settings import SettingsFile


class Settings(Value):
    """What gives options their values, the variables aside: the flags of a run, and the files, the strongest first."""

    flags: Layer
    directory: str
    files: tuple[SettingsFile, ...]

    @property
    def environments(self) -> dict[str, SettingsFile]:
        """The file that has each environment: of two, the stronger one."""
        return {name: file for file in reversed(self.files) for name in file.environments}

    def options(
        self, command: Command, env: Mapping[str, str], environment: str = ""
    ) -> tuple[Options, dict[str, Origin]]:
        """The options of a command, in an environment where one is named, with the origin of each."""
        layers = [self.flags, from_variables(env, command, self.directory)]
        if environment:
            file = self._of(environment)
            layers.append(
                Layer(
                    kind="environment table",
                    values=file.environments[environment].values,
                    file=file,
                    path=("environments", environment),
                )
            )
        layers += [Layer(kind=one.kind, values=one.top.values, file=one) for one in self.files]
        return merge([*layers, from_defaults(self.directory)], command)

    def request(self, environment: str = "") -> tuple[str, ...]:
        """The standing request, of an environment where one is named and has its own."""
        tables = [file.top for file in self.files]
        if environment:
            tables.insert(0, self._of(environment).environments[environment])
        return next((table.request for table in tables if table.request), ())

    def pasted(self, env: Mapping[str, str]) -> Options:
        """The options of a `resolve` without flags in the directory where this command was started."""
        command, flags = COMMANDS["resolve"], Layer(kind="flag", values={})
        here = self.replace(flags=flags)
        if "directory" in self.flags.values:
            # `-C` is no part of what is pasted, and other files may be in force without it.
            here = _settings(flags, _directory({}, env), env)
        options, _ = here.options(command, env)
        return (
            here.options(command, env, options.environment)[0] if options.environment else options
        )

    def _of(self, environment: str) -> SettingsFile:
        if environment not in self.environments:
            raise _no_environment(environment, self.environments)
        return self.environments[environment]


def _settings(flags: Layer, directory: str, env: Mapping[str, str]) -> Settings:
    files = (project_file(directory), user_file(env))
    return Settings(
        flags=flags, directory=directory, files=tuple(file for file in files if file is not None)
    )


def make_context(
    parsed: Parsed,
    command: Command,
    env: Mapping[str, str],
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
) -> Context:
    """Everything a command is handed, from what was parsed, the variables and the files."""
    directory = _directory(parsed.given, env)
    settings = _settings(from_flags(parsed, directory), directory, env)
    piped = Stdin(stdin)
    context = Context(
        command=command,
        options=Options(),
        origins={},
        settings=settings,
        given=tuple(_said(parsed.arguments, command, piped)),
        passed=tuple(parsed.passed),
        env=env,
        piped=piped,
        stdout=stdout,
        stderr=stderr,
        terminal=Terminal(),
        pieces=[],
        later=[],
    ).for_environment("")
    if "environment" in command.options and context.options.environment:
        context = context.for_environment(context.options.environment)
    _count_arguments(context)
    return context


def _directory(given: Mapping[str, Any], env: Mapping[str, str]) -> str:
    directory: str = given.get("directory") or env.get("TOOLMATRIX_DIRECTORY", "")
    if directory and not os.path.isdir(directory):
        raise UsageError(f"there is no directory `{directory}`", help="`-C` names a directory")
    return directory


def _said(arguments: Sequence[str], command: Command, piped: Stdin) -> Iterator[str]:
    """The arguments; `-` in a request stands for the requests on stdin."""
    asks = command.request and "REQUEST" in command.usage
    for word in arguments:
        yield from piped.request() if asks and word == NAME else (word,)


def _no_environment(name: str, known: Mapping[str, Any]) -> UsageError:
    from toolmatrix.request.fields import meant

    return UsageError(
        f"there is no environment `{name}`",
        expected="one of " + ", ".join(known) if known else "an [environments.NAME] table",
        help=meant(name, tuple(known)),
    )


def _count_arguments(context: Context) -> None:
    command, count = context.command, len(context.arguments)
    help = f"`toolmatrix help {command.name}` shows examples"
    if count < command.at_least:
        given = f"`{command.name}` needs {command.usage}"
        raise UsageError(given, found=_counted(count), help=help)
    if command.at_most is not None and count > command.at_most:
        extra = context.arguments[command.at_most]
        if len(command.for_words) >= count:
            import shlex

            said = zip(command.for_words, context.arguments, strict=False)
            meant = shlex.join(word for pair in said for word in pair)
            help = f"did you mean `toolmatrix {command.name} {meant}`?"
        raise UsageError(
            f"`{command.name}` does not take `{extra}`",
            expected=command.usage or "no argument",
            help=help,
        )


def _counted(count: int) -> str:
    return {0: "no argument", 1: "1 argument"}.get(count, f"{count} arguments")
