"""Calls a command's function with the options of a run, and prints its result."""

from __future__ import annotations

import os.path

from toolmatrix.api import caller
from toolmatrix.cli.prepare import invalid_option
from toolmatrix.errors import ToolmatrixError, UsageError
from toolmatrix.request import fields
from toolmatrix.request.fields import BadValue, Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from toolmatrix.api.caller import Progress
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.cli.context import Context
    from toolmatrix.factbase.index import Index

    T = TypeVar("T")

_OF_REQUEST = (*fields.OPTIONS, "keep")


class _CommandLine(caller.Caller):
    """The caller of functions that run for the command line."""

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

    def environments(
        self, read: Callable[[str, tuple[str, ...], RequestOptions], T]
    ) -> dict[str, T]:
        results = {}
        for name in sorted(self._context.environments):
            inside = self._context.for_environment(name)
            with _Origins(inside):
                results[name] = read(name, inside.arguments, _of_request(inside))
        return results

    def path(self, text: str) -> str:
        return self._context.path(text)

    def called(self, path: str) -> str:
        return "-" if path == self._context.piped.path else path

    def is_flag(self, option: str) -> bool:
        return self._context.origins[option].kind == "flag"

    def is_default(self, option: str) -> bool:
        return self._context.origins[option].kind == "default"

    def piped(self, what: str, most: int) -> bytes:
        return self._context.piped.read(what, most)

    def pasted(self) -> Fields:
        options = self._context.settings.pasted(self._context.env)
        return Fields(**{name: options[name] for name in fields.OPTIONS})

    def example(self, function: str, *words: str) -> str:
        return f"`toolmatrix {' '.join((function.replace('_', '-'), *words))}`"

    def say(self, text: str) -> None:
        self._context.say(text)

    def note(self, text: str) -> None:
        self._context.say_after(text)

    def part(self, document: Mapping[str, Any]) -> None:
        import json

        from toolmatrix.cli.context import to_stream

        options = self._context.options
        if options.format != "jsonl":
            return
        line = json.dumps(document, sort_keys=True) + "\n"
        # Who reads lines as they come waits for each; into a file they go together, whole or not at all.
        if options.output != "-":
            self._context.write(line)
        elif options.quiet < 2:
            to_stream(self._context.stdout, line)

    def progress(self, doing: str, what: str) -> Progress:
        from toolmatrix.cli.progress import ProgressLine

        return ProgressLine(self._context, doing, what)


def run(context: Context) -> int:
    """Run the command of a context and return its exit code."""
    command, options = context.command, context.options
    if command.before and (result := command.before(context)):
        return context.give(result)
    named = {name: options[name] for name in command.takes if name in command.options}
    # `--no-store` clears `store`, and `--no-run` makes `run` false.
    for name in command.takes:
        if f"no_{name}" in command.own and options[f"no_{name}"]:
            named[name] = None if name in command.options else False
    if command.passthrough and context.passed:
        named["flags"] = context.passed
    # `-` is the default: functions write files to a folder, never to stdout.
    if named.get("output") == "-":
        del named["output"]
    _check_format(context)
    command_line = _CommandLine(context)
    with _Origins(context):
        if command.line or command.takes_context:
            serve, own = (command.line, {}) if command.line else (command.function, named)
            code: int = caller.call_for(command_line, serve, context, **own)
            return code
        result = caller.call_for(command_line, _result, context, **named | _shared(context))
    if options.format == "github":
        from toolmatrix.cli.progress import summarize

        summarize(context, result.step_summary(context.title))
    if result.hint and options.format != "json":
        context.say_after(f"hint: {result.hint}")
    code = context.give(result, **{name: options[name] for name in result.layout})
    # A difference is a failure only with `--exit-code`.
    return 0 if "exit_code" in command.own and not options.exit_code else code


def _result(context: Context, **named: Any) -> Any:
    """Call the function, and put its result where it belongs."""
    command, positional = context.command, [*_arguments(context)]
    # Do not pass again what is a positional argument.
    for name in command.positionals[: len(positional)]:
        named.pop(name, None)
    try:
        result = command.function(*positional, **named)
    except ToolmatrixError as error:
        if error.answer is None:
            raise
        return error.answer
    if not hasattr(result, "deliver"):
        return result
    return result.deliver(**{name: context.options[name] for name in command.delivery_options})


class _Origins:
    """Names the origin of an option with a bad value. Raises UsageError, ConfigError."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, bad: object, _trace: object) -> None:
        if isinstance(bad, BadValue) and bad.name in self.context.origins:
            option, origin = self.context.command.options[bad.name], self.context.origins[bad.name]
            raise invalid_option(option, origin, bad) from None


def _check_format(context: Context) -> None:
    """Refuse a format that is not available with an option. Raises UsageError."""
    form = context.options.format
    for name, option in context.command.own.items():
        if option.formats and context.options[name] and form not in option.formats:
            raise UsageError(
                f"`{option.flags[-1]}` has no such format",
                expected=" or ".join(option.formats),
                found=f"`{form}`",
            )


def _shared(context: Context) -> dict[str, Any]:
    """The arguments for options that many commands share."""
    command, options = context.command, context.options
    arguments: dict[str, Any] = {}
    if "matrix" in command.takes or command.request:
        arguments["matrix"] = context.matrices
    if "wanted" in command.takes:
        arguments["wanted"] = context.arguments
    # A lock that is written, or is a positional argument, need not exist.
    is_read = "lock" in command.takes and "lock" not in (
        *command.positionals,
        *command.delivery_options,
    )
    if is_read and _is_default(context, "lock"):
        # By default the lock in the current directory counts, if it exists.
        arguments["lock"] = options.lock if os.path.isfile(options.lock) else ""
    return arguments | (_of_request(context) if command.request else {})


def _of_request(context: Context) -> Any:
    """The options of the request that are set."""
    return {name: context.options[name] for name in _OF_REQUEST if not _is_default(context, name)}


def _is_default(context: Context, option: str) -> bool:
    return context.origins[option].kind == "default"


def _arguments(context: Context) -> Iterator[Any]:
    """The positional arguments; a single one gets all words, as a text or as a list of paths."""
    command, words = context.command, context.arguments
    kinds = command.function.__annotations__
    if "wanted" in command.takes:
        return
    if len(command.positionals) != 1 or command.repeats:
        yield from words
    elif words and "Iterable[Path]" in kinds[command.positionals[0]]:
        yield tuple(map(context.path, words))
    elif words:
        text = " ".join(words)
        yield context.path(text) if kinds[command.positionals[0]] == "Path" else text
