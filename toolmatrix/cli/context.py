"""The context of a command's run, through which it reads its input and writes everything."""

from __future__ import annotations

import os
import os.path
from itertools import chain

from toolmatrix.api import as_json
from toolmatrix.errors import OutputError, UsageError
from toolmatrix.report.terminal import Terminal, detect
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from tempfile import TemporaryDirectory
    from typing import Any, BinaryIO, TextIO

    from toolmatrix.api import Printed
    from toolmatrix.cli.prepare import Origin, Settings
    from toolmatrix.cli.progress import ProgressLine, Waiting
    from toolmatrix.cli.settings import SettingsFile
    from toolmatrix.command import Command
    from toolmatrix.command.options import Options
    from toolmatrix.factbase.index import Index

STDIN = "-"
# Maximum bytes of a request.
_LARGEST = 1 << 20


class Stdin:
    """The stdin of one run."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.read_as = ""
        self._folder: TemporaryDirectory[str] | None = None

    def read(self, what: str, most: int) -> bytes:
        """Read at most `most` bytes; raises UsageError if stdin was read before."""
        if self.read_as:
            raise UsageError(
                "only one thing can be read from stdin",
                expected=f"`{STDIN}` once",
                found=f"{self.read_as} and {what}",
                help="put one of the two in a file",
            )
        self.read_as = what
        # Read bytes where possible, because the callers check the encoding; a text stream has no buffer.
        raw: BinaryIO | None = getattr(self.stream, "buffer", None)
        try:
            return raw.read(most) if raw is not None else self.stream.read(most).encode()
        except OSError as error:
            raise UsageError(f"cannot read {what} from stdin", found=error.strerror or "") from None

    def matrix(self) -> str:
        """The path of a file with the matrix from stdin."""
        # A matrix is read several times (for positions of findings, by workers), a stream only once.
        from tempfile import TemporaryDirectory

        from toolmatrix.factbase.yamlfile import SIZE_LIMIT

        if self._folder is None:
            data = self.read("a matrix", SIZE_LIMIT + 1)
            self._folder = TemporaryDirectory(prefix="toolmatrix-")
            with open(self.path, "wb") as file:
                file.write(data)
        return self.path

    @property
    def path(self) -> str:
        """The path of the file with the matrix from stdin; empty if there is none."""
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
        requests = [text for line in lines if (text := line.partition("#")[0].strip())]
        if not requests:
            raise UsageError(
                "no request on stdin", expected="requests such as `tensorflow==2.6.5`, one a line"
            )
        return requests


class Context(Value):
    """One run of one command."""

    command: Command
    # Paths among the options already include the directory of `-C`.
    options: Options
    origins: Mapping[str, Origin]
    settings: Settings
    typed_arguments: tuple[str, ...]
    # The words of the command line without those about output format and file.
    title_words: tuple[str, ...] = ()
    # The typed arguments, or the configured request for a command that takes one and was given none.
    arguments: tuple[str, ...] = ()
    # The words after `--`, which some commands pass on.
    passed: tuple[str, ...]
    configured_request: tuple[str, ...] = ()
    env: Mapping[str, str]
    piped: Stdin
    stdout: TextIO
    stderr: TextIO
    terminal: Terminal
    # The result, and the notes below it: both are printed when the command has returned.
    pieces: list[Iterable[str]]
    later: list[str]
    # The progress messages that are currently shown, innermost last.
    waiting: list[Waiting | ProgressLine]

    @property
    def environments(self) -> Mapping[str, SettingsFile]:
        """The file that has each environment."""
        return self.settings.environments

    def for_environment(self, name: str) -> Context:
        """This run with the settings of `[environments.NAME]`, or of none; flags and variables still win."""
        options, origins = self.settings.options(self.command, self.env, name)
        request = self.settings.request(name)
        terminal = terminal_of(self.stdout, self.env, options)
        # A file has no colours unless requested.
        if options.output != "-" and options.color != "always":
            terminal = terminal.replace(colour=False)
        return self.replace(
            options=options,
            origins=origins,
            configured_request=request,
            arguments=self.typed_arguments or (request if self.command.requests else ()),
            terminal=terminal,
        )

    @property
    def title(self) -> str:
        """The command line, as a title above its result."""
        import shlex

        return shlex.join(("toolmatrix", *self.title_words))

    @property
    def stdin(self) -> TextIO:
        """The stream of stdin."""
        return self.piped.stream

    @property
    def matrices(self) -> tuple[str, ...]:
        """The paths of the user's matrices; one from stdin is stored in a file."""
        return tuple(self.piped.matrix() if path == "-" else path for path in self.options.matrix)

    def index(self) -> Index:
        """The index of the built-in matrix with the user's files on top."""
        return self.open_index(self.matrices)

    def open_index(self, paths: tuple[str, ...]) -> Index:
        """The index of the built-in matrix with files on top; shows that it is compiling."""
        from toolmatrix.factbase.store import open_index

        return open_index(paths, self.env, self._compiling)

    def _compiling(self) -> Waiting:
        from toolmatrix.cli.progress import Waiting

        return Waiting(self, "" if self.waiting else "compiling the matrix")

    def write(self, text: str) -> None:
        """Append text to the result, for stdout or the file of `--output`."""
        # Buffered until the command has returned, so that a failure leaves no partial result.
        self.pieces.append((text,))

    def pour(self, pieces: Iterable[str]) -> None:
        """Append a long result whose chunks are generated while it is written."""
        self.pieces.append(pieces)

    def write_json(self, document: Mapping[str, Any]) -> None:
        """Append a JSON document to the result."""
        self.write(as_json(document))

    def give(self, result: Printed, **layout: Any) -> int:
        """Write a result in the requested format, its text with some layout options; returns the exit code."""
        # A command that fills a directory uses its format for each file.
        form = "text" if self.command.writes_files else self.options.format
        if (chunks := getattr(result, "chunks", None)) is not None:
            self.pour(chunks(form))
        elif form == "json":
            self.write_json(result.to_json())
        elif form == "text":
            self.write(result.text(self.terminal, **layout))
        else:
            self.write(result.written(form, self.title))
        # A CI step that failed would not upload its SARIF; the findings in it decide there.
        return 0 if form == "sarif" else result.exit_code

    def say(self, text: str, *, verbosity: int = 0) -> None:
        """Print a message at once to stderr."""
        if not self.options.quiet and self.options.verbose >= verbosity:
            for waiting in self.waiting:
                waiting.clear()
            write_message(self.stderr, text.rstrip("\n") + "\n")

    def say_after(self, text: str) -> None:
        """Print a message below the result, such as a count or a hint."""
        self.later.append(text)

    def path(self, text: str) -> str:
        """A path from the arguments, ready to be opened; `-` stays `-`."""
        return text if text == "-" else os.path.join(self.options.directory, text)

    def finish(self) -> None:
        """Write the result to its destination; raises OutputError."""
        pieces = chain.from_iterable(self.pieces)
        if self.options.output != "-" and not (
            self.command.writes_files or self.command.writes_folder
        ):
            from toolmatrix.outputs import replace_file

            replace_file(self.options.output, pieces)
        elif self.options.quiet < 2:
            for piece in filter(None, pieces):
                to_stream(self.stdout, piece)
        self.pieces.clear()
        for line in self.later:
            self.say(line)


def terminal_of(stream: TextIO, env: Mapping[str, str], options: Options) -> Terminal:
    """The terminal that the reader of `stream` has."""
    try:
        tty = stream.isatty()
    except (AttributeError, ValueError):
        tty = False
    # Only a terminal is measured: a file or a pipe gets the same text on every machine.
    width = 0
    if tty:
        try:
            width = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            width = 0
    return detect(
        env,
        tty=tty,
        encoding=getattr(stream, "encoding", None) or "utf-8",
        color=options.color,
        ascii_only=bool(options.__dict__.get("ascii")),
        measured_width=width,
    )


def to_stream(stream: TextIO, text: str) -> None:
    """Write and flush; raises BrokenPipeError when the reader is gone, else OutputError."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    # Python raises ValueError for a closed stream.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError("cannot write to stdout", found=reason) from None


def write_message(stream: TextIO, text: str) -> None:
    """Write a message to stderr; errors are ignored."""
    # Without a reader the exit code has to be enough.
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):
        return
