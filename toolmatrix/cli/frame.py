"""From a run of the command line to the call of a command's function, and from its result to what is printed."""

from __future__ import annotations

import os.path

from toolmatrix.api import caller
from toolmatrix.cli.prepare import invalid_option
from toolmatrix.errors import UsageError
from toolmatrix.request import fields
from toolmatrix.request.fields import BadValue, Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from toolmatrix.api.caller import Progress
    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index

_OF_REQUEST = (*fields.OPTIONS, "keep")


class _CommandLine(caller.Caller):
    """The command line, by the context of its run."""

    requests = "a request, or `request` in toolmatrix.toml"
    processes = 0

    def __init__(self, context: Context) -> None:
        self._context = context
        self.stdin = context.stdin
        self.request = context.configured_request
        self.verbose = context.options.verbose > 0

    @property
    def env(self) -> Mapping[str, str]:
        return self._context.env

    def open_index(self, paths: tuple[str, ...]) -> Index:
        return self._context.open_index(paths)

    def path(self, text: str) -> str:
        return self._context.path(text)

    def called(self, path: str) -> str:
        return "-" if path == self._context.piped.path else path

    def is_flag(self, option: str) -> bool:
        return self._context.origins[option].kind == "flag"

    def is_default(self, option: str) -> bool:
        return self._context.origins[option].kind == "default"

    def pasted(self) -> Fields:
        options = self._context.settings.pasted(self._context.env)
        return Fields(**{name: options[name] for name in fields.OPTIONS})

    def example(self, function: str, words: str) -> str:
        return f"`toolmatrix {function.replace('_', '-')} {words}`"

    def say(self, text: str) -> None:
        self._context.say(text)

    def note(self, text: str) -> None:
        self._context.say_after(text)

    def hint(self, text: str) -> None:
        if self._context.options.format != "json":
            self._context.say_after(text)

    def progress(self, doing: str, what: str) -> Progress:
        from toolmatrix.cli.progress import ProgressLine

        return ProgressLine(self._context, doing, what)


def run(context: Context) -> int:
    """Run the command of a context and return its exit code."""
    command, options = context.command, context.options
    named = {name: options[name] for name in command.takes if name in command.options}
    # Files go to the folder that the command has for them, and none to stdout.
    if named.get("output") == "-":
        del named["output"]
    _check_format(context)
    command_line = _CommandLine(context)
    try:
        if command.takes_context:
            code: int = caller.call_for(command_line, command.function, context, **named)
            return code
        given = [*_arguments(context)]
        named |= _shared(context)
        # What the arguments say already.
        for name in command.places[: len(given)]:
            named.pop(name, None)
        found = caller.call_for(command_line, command.function, *given, **named)
    except BadValue as bad:
        if bad.name not in context.origins:
            raise
        raise invalid_option(command.options[bad.name], context.origins[bad.name], bad) from None
    if options.format == "github":
        from toolmatrix.cli.progress import summarize

        summarize(context, found.written("md", context.title))
    return context.give(found, **{name: options[name] for name in command.layout})


def _check_format(context: Context) -> None:
    """Refuse a format that an option takes from the command. Raises UsageError."""
    form = context.options.format
    for name, one in context.command.own.items():
        if one.formats and context.options[name] and form not in one.formats:
            raise UsageError(
                f"`{one.flags[-1]}` has no such format",
                expected=" or ".join(one.formats),
                found=f"`{form}`",
            )


def _shared(context: Context) -> dict[str, Any]:
    """The arguments of options that many commands share."""
    command, options = context.command, context.options
    found: dict[str, Any] = {}
    if "matrix" in command.takes or command.request:
        found["matrix"] = context.matrices
    if "lock" in command.takes and "lock" not in command.places and _is_default(context, "lock"):
        # Without a word about it, the lock that lies here counts.
        found["lock"] = options.lock if os.path.isfile(options.lock) else ""
    for name in _OF_REQUEST if command.request else ():
        if options[name] != command.options[name].default:
            found[name] = options[name]
    return found


def _is_default(context: Context, option: str) -> bool:
    return context.origins[option].kind == "default"


def _arguments(context: Context) -> Iterator[Any]:
    """The positional arguments; one alone is given all words, as a text or as a list of paths."""
    command, words = context.command, context.arguments
    kinds = command.function.__annotations__
    if len(command.places) != 1 or command.repeats:
        yield from words
    elif words and "Iterable[Path]" in kinds[command.places[0]]:
        yield tuple(map(context.path, words))
    elif words:
        text = " ".join(words)
        yield context.path(text) if kinds[command.places[0]] == "Path" else text
