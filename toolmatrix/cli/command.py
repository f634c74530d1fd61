"""A command as the frame knows it before it imports it."""

from __future__ import annotations

from toolmatrix.cli.options import COMMON, REQUEST
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toolmatrix.cli.context import Context


class Command(Value):
    """A command: its name, what it takes and writes, and where its function lies."""

    name: str
    summary: str
    module: str = ""
    usage: str = ""
    # It takes words after `--` as they are.
    passes: bool = False
    # It writes several files, so that `--output` is a directory and `--format` a list.
    fills: bool = False
    # It writes files by itself, so that `--output` is their directory.
    saves: bool = False
    # Said, with its arguments, where it takes more than a moment.
    does: str = ""
    # Options that arguments which it does not take are meant for, one each.
    for_words: tuple[str, ...] = ()
    completer: str = ""
    choices: tuple[str, ...] = ()
    # Options that are not those of every command, or of every request.
    own: tuple[str, ...] = ()
    # It takes the options of a request.
    request: bool = False
    # Given no request it asks that of the settings.
    requests: bool = False
    formats: tuple[str, ...] = ("text", "json")
    examples: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Names of all options that it takes, its own first."""
        return self.own + (REQUEST if self.request else ()) + COMMON

    @property
    def forms(self) -> tuple[str, ...]:
        """The formats that it takes; what `fills` a directory writes those of `render` besides."""
        if not self.fills:
            return self.formats
        # Formats are found by listing a folder and importing what lies there, which one command alone has to.
        from toolmatrix.render import formats

        return (*self.formats, *formats.names())

    @property
    def at_least(self) -> int:
        """The number of arguments it needs: those of the usage that stand in no brackets."""
        return len(self.usage.partition("[")[0].split())

    @property
    def at_most(self) -> int | None:
        """The number of arguments it takes, None where the usage repeats one."""
        return None if "..." in self.usage else len(self.usage.split())

    def load(self) -> Callable[[Context], int]:
        """Import the command and return what runs it."""
        # A command costs what it imports: the others are not loaded.
        name = self.name.replace("-", "_")
        module = __import__("toolmatrix.cli." + (self.module or name), fromlist=[name])
        run: Callable[[Context], int] = getattr(module, name if self.module else "run")
        return run
