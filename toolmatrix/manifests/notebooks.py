"""The commands of a Jupyter notebook: lines of IPython that begin with `!`, `%pip` or `%conda`, and cells of a shell.

https://ipython.readthedocs.io/en/stable/interactive/magics.html
"""

from __future__ import annotations

import json
import re

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests import installers
from toolmatrix.manifests.model import ManifestEnvironment, NotRead, Traced, joined
from toolmatrix.manifests.scripts import ShellSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.manifests.files import Files
    from toolmatrix.manifests.model import FileText, ProjectManifest

_SHELL_CELL = re.compile(r"%%(?:bash|sh|shell|script\s+(?:ba)?sh)\b")
# Its own magic is a line of the shell without the sign.
_COMMAND = re.compile(r"\s*(?:!{1,2}|%(?=(?:pip|conda|mamba|uv)\s))\s*")
_LETTER = re.compile(r"\\u[0-9a-f]{4}|\\.|.", re.DOTALL)


def read(source: FileText, files: Files) -> ProjectManifest:
    """A notebook as one environment, its cells in order. Raises ManifestError."""
    unread: list[NotRead] = []
    script = joined([*_commands(source)], source)
    session = ShellSession(files, unread)
    items = tuple(
        item for command in installers.commands(script, {}) for item in session.command(command, {})
    )
    environment = ManifestEnvironment(name="", items=items)
    return files.manifest("notebook", source, [environment], unread)


def _commands(source: FileText) -> Iterator[Traced]:
    """The lines of the shell in the cells of code, each with its end."""
    for cell in _cells(source):
        is_shell = bool(cell and _SHELL_CELL.match(cell[0].text))
        goes_on = False
        for line in cell[is_shell:]:
            match = None if is_shell or goes_on else _COMMAND.match(line.text)
            if match or is_shell or goes_on:
                yield line[match.end() if match else 0 :]
                yield Traced(source, "\n", line.at[-1:] or [0])
                goes_on = line.text.endswith("\\")


def _cells(source: FileText) -> Iterator[list[Traced]]:
    """The lines of each cell of code."""
    position = 0
    try:
        for cell in json.loads(source.text)["cells"]:
            # Quotes in a string are escaped, so that this is a key.
            position = max(position, source.text.find('"source"', position))
            text = cell["source"]
            lines: list[Traced] = []
            # A list of strings, or one (nbformat, multiline_string).
            for part in [text] if isinstance(text, str) else text:
                traced = _string(source, part, position)
                position = traced.at[-1] if traced else position
                lines += _lines(traced)
            if cell["cell_type"] == "code":
                yield lines
            position += 1
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ManifestError(
            "the file is no notebook", where=Position(source.path), expected="JSON of nbformat 4"
        ) from None


def _string(source: FileText, text: str, start: int) -> Traced:
    """The next place of a string of JSON; the place of nothing where it is not written as usual."""
    for plain in (False, True):
        written = json.dumps(text, ensure_ascii=plain)
        at = source.text.find(written, start)
        letters = [at + letter.start() + 1 for letter in _LETTER.finditer(written[1:-1])]
        if at >= 0 and len(letters) == len(text):
            return Traced(source, text, letters)
    return Traced(source, text, [start] * len(text))


def _lines(text: Traced) -> Iterator[Traced]:
    start = 0
    for line in text.text.splitlines(keepends=True):
        yield text[start : start + len(line.rstrip("\r\n"))]
        start += len(line)
