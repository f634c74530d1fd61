"""What was parsed, the variables and the configuration files, made into the context of a run."""

from __future__ import annotations

import os.path

from toolmatrix.cli.context import Context, terminal_of
from toolmatrix.cli.merge import Layer, from_defaults, from_flags, from_variables, merge
from toolmatrix.cli.settings import project_file, user_file
from toolmatrix.cli.stdin import NAME, Stdin
from toolmatrix.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TextIO

    from toolmatrix.cli.commands import Command
    from toolmatrix.cli.options import Options
    from toolmatrix.cli.parser import Parsed
    from toolmatrix.cli.settings import SettingsFile
    from toolmatrix.report.terminal import Terminal


def make_context(
    parsed: Parsed,
    command: Command,
    env: Mapping[str, str],
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
) -> Context:
    """Everything a command is handed, from what was parsed, the variables and the files."""
    directory = _directory(parsed, env)
    project, user = project_file(directory), user_file(env)
    strong = [from_flags(parsed, directory), from_variables(env, command, directory)]
    weak = [
        Layer(kind=kind, values=file.top.values, file=file)
        for kind, file in (("project file", project), ("user file", user))
        if file is not None
    ]
    weak.append(from_defaults(directory))
    environments = {
        name: file for file in (user, project) if file is not None for name in file.environments
    }
    piped = Stdin(stdin)
    given = tuple(_said(parsed.arguments, command, piped))
    requests = [file.top.request for file in (project, user) if file is not None]
    request = next((one for one in requests if one), ())

    def build(layers: list[Layer], request: tuple[str, ...]) -> Context:
        options, origins = merge(layers, command)
        arguments = given or (request if command.requests else ())
        return Context(
            command=command,
            options=options,
            origins=origins,
            arguments=arguments,
            passed=tuple(parsed.passed),
            configured_request=request,
            environments={name: file.environments[name] for name, file in environments.items()},
            files=tuple(file for file in (project, user) if file is not None),
            env=env,
            stdin=stdin,
            piped=piped,
            stdout=stdout,
            stderr=stderr,
            terminal=_terminal(stdout, env, options),
            _remake=for_environment,
        )

    def for_environment(name: str) -> Context:
        if name not in environments:
            raise _no_environment(name, environments)
        layer = _environment_layer(name, environments[name])
        return build(
            [*strong, layer, *weak], environments[name].environments[name].request or request
        )

    context = build([*strong, *weak], request)
    if "environment" in command.options and context.options.environment:
        context = for_environment(context.options.environment)
    _count_arguments(context)
    return context


def _directory(parsed: Parsed, env: Mapping[str, str]) -> str:
    directory: str = parsed.given.get("directory") or env.get("TOOLMATRIX_DIRECTORY", "")
    if directory and not os.path.isdir(directory):
        raise UsageError(f"there is no directory `{directory}`", help="`-C` names a directory")
    return directory


def _said(arguments: Sequence[str], command: Command, piped: Stdin) -> Iterator[str]:
    """The arguments; `-` in a request stands for the requests on stdin."""
    asks = command.request and "REQUEST" in command.usage
    for word in arguments:
        yield from piped.request() if asks and word == NAME else (word,)


def _environment_layer(name: str, file: SettingsFile) -> Layer:
    return Layer(
        kind="environment table",
        values=file.environments[name].values,
        file=file,
        path=("environments", name),
    )


def _no_environment(name: str, known: Mapping[str, Any]) -> UsageError:
    from toolmatrix.cli.option import nearest

    close = nearest(name, tuple(known))
    return UsageError(
        f"there is no environment `{name}`",
        expected="one of " + ", ".join(known) if known else "an [environments.NAME] table",
        help=f"did you mean `{close}`?" if close else "",
    )


def _terminal(stdout: TextIO, env: Mapping[str, str], options: Options) -> Terminal:
    terminal = terminal_of(stdout, env, options)
    if options.output != "-" and options.color != "always":
        return terminal.replace(colour=False)
    return terminal


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
