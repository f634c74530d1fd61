"""The run of the program: arguments in, exit code out; the only module that prints errors."""

from __future__ import annotations

from toolmatrix import __version__
from toolmatrix.api import as_json
from toolmatrix.cli import interrupts
from toolmatrix.cli.context import terminal_of, to_stream, write_message
from toolmatrix.cli.parser import Parsed, parse
from toolmatrix.command import COMMANDS
from toolmatrix.command.options import COMMON, Options
from toolmatrix.errors import BoundExceeded, CannotSay, ToolmatrixError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from toolmatrix.cli.context import Context
    from toolmatrix.factbase.index import Index
    from toolmatrix.report.terminal import Terminal

# Longest text in characters that an error shows whole.
_LONGEST = 400
READER_GONE = 141  # as a shell reports a program that SIGPIPE ended

_GREETING = """\
toolmatrix finds versions of a machine-learning tool chain that work together.
It answers offline, for x86, ARM and AMD at once, with a source for every line.
  resolve, explain, why-not   find versions, and see why these and not others
  lock, diff, matrix          save an answer, compare two, show a grid
  facts, check, rule          show the facts, check them, look up a code
`toolmatrix help` lists all commands, `toolmatrix help resolve` explains one.

  toolmatrix resolve tensorflow==2.6.5
  toolmatrix resolve tensorflow==2.6.5 --target x86,arm --align python
  toolmatrix why-not cuda==11.0 --with tensorflow==2.6.5
"""


def main(
    argv: Sequence[str],
    env: Mapping[str, str],
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
) -> int:
    """Run toolmatrix and return its exit code; no exception leaves."""
    run = _Run(argv, env, stdin, stdout, stderr)
    try:
        return run.guarded()
    except KeyboardInterrupt:
        run.print_error(interrupts.INTERRUPTED)
        return interrupts.CODE
    except BrokenPipeError:
        return READER_GONE
    finally:
        if run.context is not None:
            run.context.piped.close()


class _Run:
    """One run: its streams, and what is known of its options so far."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], *streams: TextIO) -> None:
        self.argv = list(argv)
        # The words for toolmatrix itself: those after `--` are for others.
        self.words = self.argv[: self.argv.index("--")] if "--" in self.argv else self.argv
        self.env = env
        self.streams = streams
        _, self.stdout, self.stderr = streams
        self.context: Context | None = None

    def guarded(self) -> int:
        """Run, and report errors."""
        try:
            return self.execute()
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 - the one place where a defect becomes an exit code
            if interrupts.are_behind(error):
                raise KeyboardInterrupt from None
            reported = as_toolmatrix_error(error)
            code = self.report(reported)
            # Any error that is not one of ours is a defect, except for lack of memory.
            if type(reported) is ToolmatrixError and self._very_verbose():
                import traceback

                self.print_error("".join(traceback.format_exception(error)))
            return code

    def execute(self) -> int:
        # Called by shells, not by people: it is in no list of commands.
        if self.argv[:1] == ["_complete"]:
            return self._complete()
        parsed = parse(self.argv)
        if "version" in parsed.values:
            to_stream(self.stdout, version_line(self.env) + "\n")
            return 0
        if "help" in parsed.values:
            from toolmatrix.commands.help import page

            terminal = terminal_of(self.stdout, self.env, Options(parsed.values, COMMON))
            brief = parsed.flags["help"] == "-h"
            to_stream(self.stdout, page(parsed.command, terminal, brief=brief))
            return 0
        if parsed.command is None:
            to_stream(self.stdout, _GREETING)
            return 0
        from toolmatrix.cli.prepare import make_context

        self.context = context = make_context(parsed, parsed.command, self.env, *self.streams)
        code = _run(context)
        options = context.options
        accepted = {1: options.exit_zero, CannotSay.exit_code: options.unknown_ok}
        return 0 if accepted.get(code) else code

    def _complete(self) -> int:
        from toolmatrix.commands.completion import candidates

        names = candidates(self.argv[1:], self._index)
        to_stream(self.stdout, "".join(name + "\n" for name in names))
        return 0

    def _index(self) -> Index:
        # The command line is incomplete, so only settings name the matrix.
        from toolmatrix.cli.prepare import make_context

        return make_context(Parsed(), COMMANDS["list"], self.env, *self.streams).index()

    def report(self, error: ToolmatrixError) -> int:
        """Print an error as JSON or text; returns the exit code."""
        if error.where and self.context and error.where.path == self.context.piped.path:
            error.where.path = "stdin"
        if not self._wants_json():
            self.print_error(error_text(error, self._terminal()))
            return error.exit_code
        # JSON goes to stdout; if that fails, print the error as text.
        try:
            to_stream(self.stdout, as_json(error.to_json()))
        except BrokenPipeError:
            return READER_GONE
        except ToolmatrixError as second:
            self.print_error(error_text(second, self._terminal()))
        return error.exit_code

    def print_error(self, text: str) -> None:
        """Write to stderr."""
        write_message(self.stderr, text)

    def _terminal(self) -> Terminal:
        plain = {"color": "never"} if "--no-color" in self.words else {}
        options = self.context.options if self.context else Options(plain, COMMON)
        return terminal_of(self.stderr, self.env, options)

    def _wants_json(self) -> bool:
        if self.context is not None:
            return bool(self.context.options.format == "json")
        # If the arguments cannot be parsed, look at the bare words.
        for word, following in zip(self.words, [*self.words[1:], ""], strict=True):
            if word == "--json" or word == "--format=json":
                return True
            if word.startswith("--format"):
                return word == "--format" and following == "json"
        variables = self.env.get("TOOLMATRIX_FORMAT"), self.env.get("TOOLMATRIX_JSON", "").lower()
        return variables[0] == "json" or variables[1] in ("1", "true", "yes", "on")

    def _very_verbose(self) -> bool:
        if self.context is not None:
            return self.context.options.verbose >= 2
        count = self.words.count
        return count("--verbose") + count("-v") + 2 * count("-vv") >= 2


def _run(context: Context) -> int:
    from toolmatrix.cli.frame import run

    command = context.command
    if not command.does:
        code = run(context)
        context.finish()
        return code
    from toolmatrix.cli.progress import Waiting

    waiting = Waiting(context, " ".join((command.does, *context.arguments)))
    context.waiting.append(waiting)
    with waiting:
        code = run(context)
        # A long result is generated while it is written; on stdout it shows its own progress.
        if context.options.output == "-":
            waiting.rest()
        context.finish()
    return code


def version_line(env: Mapping[str, str]) -> str:
    """`toolmatrix VERSION (matrix DATE, N facts, from SOURCE)`; without the matrix if it cannot be read."""
    # The version is also needed from a broken installation.
    try:
        from toolmatrix.factbase import about

        date, count, source = about(env)
    except (ImportError, ToolmatrixError):
        return f"toolmatrix {__version__}"
    origin = f", from {source}" if source else ""
    return f"toolmatrix {__version__} (matrix {date}, {count} facts{origin})"


def as_toolmatrix_error(error: Exception) -> ToolmatrixError:
    """Any exception as an error for users: ours as it is, lack of memory, or a defect of toolmatrix."""
    if isinstance(error, ToolmatrixError):
        return error
    if isinstance(error, MemoryError):
        return BoundExceeded(
            "out of memory",
            help="raise the limit (`ulimit -a`), or use a machine with more memory",
        )
    return ToolmatrixError(
        f"internal error: {type(error).__name__}: {error}",
        help="this is a bug in toolmatrix; please report it with the output of the same command with `-vv`",
    )


def error_text(error: ToolmatrixError, terminal: Terminal) -> str:
    """An error as people read it."""
    lines = [f"{terminal.style(f'error[{error.code}]', 'error')}: {_safe_excerpt(error.what)}"]
    if error.where is not None:
        lines.append(f"  --> {_safe_excerpt(str(error.where))}")
    if error.expected:
        lines.append(f"  expected: {_safe_excerpt(error.expected)}")
    lines += [f"  found: {_safe_excerpt(text)}" for text in error.each or (error.found,) if text]
    if error.help:
        lines.append(f"{terminal.style('help', 'help')}: {_safe_excerpt(error.help)}")
    return "\n".join(lines) + "\n"


def _safe_excerpt(text: str) -> str:
    # Quoted text is untrusted: it may be long, and contain control characters.
    # The end of a long text, such as a path, is more useful than its middle.
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 4 :]}"
    from toolmatrix.report.terminal import printable

    return printable(text)
