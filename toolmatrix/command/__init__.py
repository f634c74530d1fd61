"""What a command is: a function of `toolmatrix.commands`, whose signature and docstring are the command line's.

An argument with `option(...)` as its default is an option; `**options: Unpack[RequestOptions]` are those of a request.
A function whose first argument is `context` serves the command line alone. A module is imported when its command is
asked for, as a command costs what it imports.
"""

from __future__ import annotations

import os

from toolmatrix.command.option import Option
from toolmatrix.command.options import COMMON, ENVIRONMENT, REQUEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FunctionType
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

GROUPS = (
    "Resolve and explain",
    "Explore the matrix",
    "Lock and build",
    "Inspect files, images and machines",
    "Maintain the matrix",
    "About this program",
)
"""The titles under which help lists the commands."""
PRINTED = ("text", "json", "md", "html", "svg")
"""The formats of what is printed: `report.pictures` makes the last three."""
# CO_VARARGS and CO_VARKEYWORDS of the module `inspect`, which takes long to import.
_VARIABLE, _NAMED = 0x04, 0x08


class Command:
    """A command: its function, its options and formats, and its help."""

    # Arguments as help shows them: brackets mean optional, `...` repeats.
    usage = ""
    group = ""
    # Its position in the group.
    order = 50
    # It takes words after `--` unparsed.
    passthrough = False
    # It writes several files, so that `--output` is a directory and `--format` a list.
    writes_files = False
    # It writes files by itself, so that `--output` is their directory.
    writes_folder = False
    # A progress message, shown with its arguments if it takes a while.
    does = ""
    # Options that surplus arguments are probably meant for, one each.
    for_words: tuple[str, ...] = ()
    completer = ""
    choices: tuple[str, ...] = ()
    # Without a request it uses that of the settings.
    requests = False
    # It takes the name of an environment of the settings.
    environments = False
    # It takes the options of a request.
    request = False
    # It takes every option that can be set.
    settings = False
    # Options for the `deliver` method of the result, which returns what is printed.
    delivery_options: tuple[str, ...] = ()
    # Runs first: returns an answer, or refuses contradictory options.
    before: Callable[[Any], Any] | None = None
    formats: tuple[str, ...] = ("text", "json")
    examples: tuple[str, ...] = ()
    # What the command line calls with its context, instead of the function.
    line: Callable[[Any], int] | None = None

    def __init__(self, function: FunctionType, declared: Mapping[str, Any]) -> None:
        self.__dict__.update(declared)
        self.__dict__.pop("own", None)
        self.function = function
        self.name = function.__module__.rpartition(".")[2].replace("_", "-")
        self.summary = (function.__doc__ or "").partition("\n")[0].rstrip(".")
        code = function.__code__
        # Defaults of positional arguments, then of keyword-only ones.
        positionals = code.co_varnames[: code.co_argcount]
        values = function.__defaults__ or ()
        defaults = dict(zip(positionals[len(positionals) - len(values) :], values, strict=True))
        defaults |= function.__kwdefaults__ or {}
        self.takes_context = code.co_varnames[:1] == ("context",)
        self.request = self.request or bool(code.co_flags & _NAMED)
        own: dict[str, Option] = {}
        for name, default in defaults.items():
            if isinstance(default, Option):
                default.belong(name, function.__annotations__[name])
                own[name] = default
                defaults[name] = default.default
        for name, option in declared.get("own", {}).items():
            option.belong(name)
            own[name] = option
        function.__defaults__ = tuple(defaults[name] for name in positionals if name in defaults)
        function.__kwdefaults__ = {
            name: default for name, default in defaults.items() if name not in positionals
        }
        # The names of the positional arguments, and whether the last one repeats.
        self.positionals, self.repeats = positionals, bool(code.co_flags & _VARIABLE)
        # The names of the arguments that have a default.
        self.takes = tuple(defaults)
        if self.environments:
            own |= ENVIRONMENT
        self.declared: Mapping[str, Option] = own
        self._options: dict[str, Option] = {}

    @property
    def own(self) -> Mapping[str, Option]:
        """The options that are not those of every command, or of every request."""
        if not self.settings:
            return self.declared
        shared = COMMON | REQUEST
        return {
            name: option
            for name, option in all_options().items()
            if name not in shared and (option.configurable or name in self.declared)
        }

    @property
    def request_options(self) -> dict[str, Option]:
        """The options of a request that it takes: all of them, or those that its function names."""
        if self.request:
            return REQUEST
        return {name: option for name, option in REQUEST.items() if name in self.takes}

    @property
    def options(self) -> dict[str, Option]:
        """The options that it takes by name."""
        if not self._options:
            # Its own options come first, and replace shared ones of the same name.
            own = {**self.own}
            self._options = own | self.request_options | COMMON | own
        return self._options

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*args, **named)

    @property
    def all_formats(self) -> tuple[str, ...]:
        """The formats that it takes; a command that `fills` a directory also has those of `render`."""
        if not self.writes_files:
            return self.formats
        # Listing the formats imports a whole folder, so only `render` does it.
        from toolmatrix.rendering import formats

        return (*self.formats, *formats.names())

    @property
    def at_least(self) -> int:
        """The number of arguments it needs."""
        return len(self.usage.partition("[")[0].split())

    @property
    def at_most(self) -> int | None:
        """The number of arguments it takes, None where the usage repeats one."""
        return None if "..." in self.usage else len(self.usage.split())


def command(**declared: Any) -> Callable[[F], F]:
    """Declare a function of `toolmatrix.commands` as a command; see `Command` for what may be declared."""

    def declare(function: Any) -> Any:
        return Command(function, declared)

    return declare


class _Commands:
    """All commands by name, in the order of help; each is imported when it is asked for."""

    def __init__(self) -> None:
        self._module_names: dict[str, str] = {}

    @property
    def _modules(self) -> dict[str, str]:
        # Lazily: a package in an archive, as in a browser, cannot list its folder.
        if not self._module_names:
            folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "commands")
            # Modules that begin with `_` are helpers.
            names = {name.partition(".")[0] for name in os.listdir(folder) if name[0] != "_"}
            self._module_names = {name.replace("_", "-"): name for name in sorted(names)}
        return self._module_names

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __getitem__(self, name: str) -> Command:
        name = self._modules[name]
        module = __import__(f"toolmatrix.commands.{name}", fromlist=[name])
        command: Command = next(
            member
            for member in vars(module).values()
            if isinstance(member, Command) and member.function.__module__ == module.__name__
        )
        return command

    def get(self, name: str) -> Command | None:
        """The command with a name, None if there is none."""
        return self[name] if name in self._modules else None

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return (command.name for command in self.values())

    def values(self) -> list[Command]:
        """All commands."""
        commands = [self[name] for name in self._modules]
        return sorted(
            commands, key=lambda command: (GROUPS.index(command.group), command.order, command.name)
        )


COMMANDS = _Commands()


def all_options() -> dict[str, Option]:
    """The options of all commands by name: shared ones first."""
    options = COMMON | REQUEST | ENVIRONMENT
    for command in COMMANDS.values():
        for name, option in command.declared.items():
            options.setdefault(name, option)
    return options


def meanings(option: Option) -> dict[str, list[str]]:
    """The help texts of an option, each with the names of its commands."""
    by_help: dict[str, list[str]] = {}
    for command in COMMANDS.values():
        if option.name in command.options:
            by_help.setdefault(command.options[option.name].help, []).append(command.name)
    return by_help


def every_format() -> tuple[str, ...]:
    """The formats of all commands."""
    return tuple(
        dict.fromkeys(name for command in COMMANDS.values() for name in command.all_formats)
    )
