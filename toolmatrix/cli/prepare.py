"""The context of a run, made from parsed arguments, variables and configuration files."""

from __future__ import annotations

import os.path

from toolmatrix.cli.commands import COMMANDS
from toolmatrix.cli.context import Context
from toolmatrix.cli.merge import SettingsLayer, from_defaults, from_flags, from_variables, merge
from toolmatrix.cli.options import Options
from toolmatrix.errors import UsageError
from toolmatrix.report.terminal import Terminal
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from tempfile import TemporaryDirectory
    from typing import Any, TextIO

    from toolmatrix.cli.commands import Command
    from toolmatrix.cli.merge import Origin
    from toolmatrix.cli.parser import Parsed
    from toolmatrix.cli.settings import SettingsFile


_STDIN = "-"
# Bytes of a request.
_LARGEST = 1 << 20


class Stdin:
    """The stdin of one run."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.taken = ""
        self._folder: TemporaryDirectory[str] | None = None

    def read(self, what: str, most: int) -> bytes:
        """At most so many bytes; raises UsageError where something else has read them."""
        if self.taken:
            raise UsageError(
                "only one thing can be read from stdin",
                expected=f"`{_STDIN}` once",
                found=f"{self.taken} and {what}",
                help="put one of the two in a file",
            )
        self.taken = what
        raw = getattr(self.stream, "buffer", None)
        try:
            data: bytes = raw.read(most) if raw is not None else self.stream.read(most).encode()
        except OSError as error:
            raise UsageError(f"cannot read {what} from stdin", found=error.strerror or "") from None
        return data

    def matrix(self) -> str:
        """The path of a file with the matrix that is piped in: a matrix may be read again, by other processes too."""
        from tempfile import TemporaryDirectory

        from toolmatrix.facts.yamlfile import SIZE_LIMIT

        if self._folder is None:
            data = self.read("a matrix", SIZE_LIMIT + 1)
            self._folder = TemporaryDirectory(prefix="toolmatrix-")
            with open(self.path, "wb") as file:
                file.write(data)
        return self.path

    @property
    def path(self) -> str:
        """The path of the file with the matrix that was piped in; empty if none was."""
        return os.path.join(self._folder.name, "stdin") if self._folder is not None else ""

    def close(self) -> None:
        """Remove the file of the matrix."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def request(self) -> list[str]:
        """Requests, one a line; `#` begins a comment."""
        data = self.read("a request", _LARGEST)
        try:
            lines = data.decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise UsageError("the request on stdin is not text", expected="UTF-8") from None
        words = [line.partition("#")[0].strip() for line in lines]
        found = [word for word in words if word]
        if not found:
            raise UsageError(
                "no request on stdin", expected="requests such as `tensorflow==2.6.5`, one a line"
            )
        return found


class Settings(Value):
    """The sources of option values besides the variables: the flags of a run, and its files, the strongest first."""

    flags: SettingsLayer
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
                SettingsLayer(
                    kind="environment table",
                    values=file.environments[environment].values,
                    file=file,
                    path=("environments", environment),
                )
            )
        layers += [
            SettingsLayer(kind=one.kind, values=one.top.values, file=one) for one in self.files
        ]
        return merge([*layers, from_defaults(self.directory)], command)

    def request(self, environment: str = "") -> tuple[str, ...]:
        """The standing request, of an environment where one is named and has its own."""
        tables = [file.top for file in self.files]
        if environment:
            tables.insert(0, self._of(environment).environments[environment])
        return next((table.request for table in tables if table.request), ())

    def pasted(self, env: Mapping[str, str]) -> Options:
        """The options of a `resolve` without flags in the directory where this command was started."""
        command, flags = COMMANDS["resolve"], SettingsLayer(kind="flag", values={})
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


def _settings(flags: SettingsLayer, directory: str, env: Mapping[str, str]) -> Settings:
    found = (
        next(_settings_files(_project_files(directory), "project file"), None),
        next(_settings_files(_user_files(env), "user file"), None),
    )
    return Settings(
        flags=flags, directory=directory, files=tuple(file for file in found if file is not None)
    )


def _settings_files(
    places: Iterable[tuple[str, tuple[str, ...]]], kind: str
) -> Iterator[SettingsFile]:
    # The reader is imported where there is a file, which is rare.
    for path, prefix in places:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            # What is wrong with it is for the reader to say.
            pass
        from toolmatrix.cli.settings import read

        found = read(path, kind, prefix)
        if found is not None:
            yield found


def _project_files(directory: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The places of `toolmatrix.toml`, and `[tool.toolmatrix]` of `pyproject.toml`, in a directory and those above."""
    # Below the current directory a path is shown as its reader would write it.
    current = os.path.join(os.getcwd(), "")
    here, above = "", os.path.abspath(directory or os.curdir)
    while here != above:
        here, above = above, os.path.dirname(above)
        for name, prefix in (("toolmatrix.toml", ()), ("pyproject.toml", ("tool", "toolmatrix"))):
            yield os.path.join(here, name).removeprefix(current), prefix


def _user_files(env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    # The XDG base directory specification has paths ignored that are relative.
    base, home = env.get("XDG_CONFIG_HOME", ""), env.get("HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(home, ".config")
    if os.path.isabs(base):
        yield os.path.join(base, "toolmatrix", "config.toml"), ()


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
    asks = command.request and "REQUEST" in command.usage
    for word in arguments:
        yield from piped.request() if asks and word == _STDIN else (word,)


def _no_environment(name: str, known: Mapping[str, Any]) -> UsageError:
    from toolmatrix.request.spelling import meant

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
