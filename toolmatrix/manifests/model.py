"""What a manifest asks for, by environment and with the places of its text in files; and what could not be read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, pairwise

from toolmatrix.errors import ManifestError, Position
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence


LONGEST_LINE = 32_768
"""Letters of a line; the longest of use are packages of an index with all their hashes."""
LONGEST_VALUE = 10_000
"""Letters that variables make of a value."""
EXCERPT = 60
"""Letters that are shown of what is too long to be read."""
# Letters that variables put into all values of a file, and values of YAML that are visited: aliases repeat them.
_MOST_EXPANDED, _MOST_VISITED = 1 << 20, 1_000_000


class FileText:
    """A file as text, with the places of its lines; `too_long` are lines and values that were left out for that.

    What it names is read in a folder, `root`, alone; where none is said its place tells which.
    """

    __slots__ = ("_expanded", "_is_full", "_starts", "_visited", "path", "root", "text", "too_long")

    def __init__(self, path: str, text: str, root: str = "") -> None:
        self.path = path
        self.text = text
        self.root = root
        self.too_long: list[tuple[Traced, str]] = []
        self._expanded = self._visited = 0
        self._is_full = False
        # Each line ends with one letter, but for the last; folders have megabytes of text.
        ends = accumulate((len(line) + 1 for line in text.split("\n")), initial=0)
        self._starts = [*ends][:-1]

    def line_column(self, offset: int) -> tuple[int, int]:
        """The line and the column of a letter, counted from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The place of a letter in the text, by line and column counted from 1; its end for what lies behind it."""
        start = self._starts[line - 1] if line <= len(self._starts) else len(self.text)
        return min(start + column - 1, len(self.text))

    def whole(self) -> Traced:
        """All of it."""
        return Traced(self, self.text, range(len(self.text)))

    def lines(self) -> Iterator[Traced]:
        """Its lines, without what ends them."""
        whole = self.whole()
        for index, start in enumerate(self._starts):
            last = index + 1 == len(self._starts)
            end = len(self.text) if last else self._starts[index + 1] - 1
            line = whole[start:end]
            if len(line) > LONGEST_LINE:
                why = f"a line of more than {LONGEST_LINE:,} characters"
                self.too_long.append((line[:EXCERPT], why))
                # The lines behind it keep their numbers.
                line = line[:0]
            # Editors of Windows end a line with two letters.
            yield line[:-1] if line.text.endswith("\r") else line

    def has_room(self, value: Traced, letters: int) -> bool:
        """True if variables may make a value of so many letters: values of values double with each line."""
        if letters <= LONGEST_VALUE and self._expanded + letters <= _MOST_EXPANDED:
            self._expanded += letters
            return True
        # The first says it for those that it is put into.
        if not self._is_full:
            self._is_full = True
            why = f"variables expand it to more than {LONGEST_VALUE:,} characters, or all values"
            self.too_long.append((value, f"{why} to more than {_MOST_EXPANDED:,}"))
        return False

    def visit(self, values: int) -> bool:
        """Count visited values, as aliases may expand to any number; False where they are too many."""
        self._visited += values
        return self._visited <= _MOST_VISITED


class Phrase(FileText):
    """A text that is no file, such as what an option says: its place is its path alone."""

    def line_column(self, offset: int) -> tuple[int, int]:  # noqa: ARG002 - as of a file
        """No line, and no column."""
        return 0, 0


class Traced:
    """A text, and the place in its source of each letter."""

    __slots__ = ("at", "source", "text")

    def __init__(self, source: FileText, text: str, at: Sequence[int]) -> None:
        self.source = source
        self.text = text
        self.at = at

    def __len__(self) -> int:
        return len(self.text)

    def __bool__(self) -> bool:
        return bool(self.text)

    def __getitem__(self, part: slice) -> Traced:
        return Traced(self.source, self.text[part], self.at[part])

    def __repr__(self) -> str:
        return f"<{self.text!r} at {self.where}>"

    @property
    def where(self) -> tuple[int, int]:
        """Line and column of its first letter, (0, 0) of an empty text."""
        return self.source.line_column(self.at[0]) if self.at else (0, 0)

    @property
    def span(self) -> tuple[int, int] | None:
        """Beginning and end in the source, where it is there unchanged; None where it was put together."""
        at = self.at
        if not at or at[-1] - at[0] != len(at) - 1:
            return None
        # An edit replaces letters of the file: a value of a variable, or a line that goes on, is not there as it reads.
        contiguous = all(first + 1 == second for first, second in pairwise(at))
        whole = self.source.text[at[0] : at[-1] + 1] == self.text and "\n" not in self.text
        return (at[0], at[-1] + 1) if contiguous and whole else None

    def strip(self, letters: str | None = None) -> Traced:
        """Without blanks, or some letters, at both ends."""
        start = len(self.text) - len(self.text.lstrip(letters))
        end = len(self.text.rstrip(letters))
        return self[start : max(start, end)]

    def words(self) -> list[Traced]:
        """Its words, by blanks."""
        words, start = [], 0
        for word in self.text.split():
            # Of two equal words the second comes after the first.
            start = self.text.index(word, start)
            words.append(self[start : start + len(word)])
            start += len(word)
        return words

    def partition(self, mark: str) -> tuple[Traced, str, Traced]:
        """The text before the first mark, the mark or nothing, and the text after it."""
        before, separator, _ = self.text.partition(mark)
        return self[: len(before)], separator, self[len(before) + len(separator) :]

    def group(self, match: re.Match[str], name: str | int) -> Traced:
        """What a group of a match in its text matched."""
        return self[slice(*match.span(name))]


def joined(parts: Sequence[Traced], source: FileText) -> Traced:
    """Several texts as one."""
    return Traced(
        source,
        "".join(part.text for part in parts),
        [position for part in parts for position in part.at],
    )


IMAGE, PIP, CONDA, SYSTEM, VARIABLE, PYTHON, PLATFORM, MACHINE, REMOVED, CHANNEL, SYSTEM_PIP = (
    *("image", "pip", "conda", "system", "variable", "python"),
    *("platform", "machine", "removed", "channel", "system pip"),
)
"""How an item is asked for: as a base image, by an installer, by a variable, as an interpreter, as a platform, or as
what the machine has: a component of the matrix by its name there. What is removed was there until then. A channel is
one of conda, from which its packages come. A system pip is a command that an externally managed Python stops."""
PASTE, INVENTORY = "paste", "inventory"
INSTALLED = (PASTE, INVENTORY)
"""The kinds of what is installed, which commands change and no edit."""


LONGEST = 1_000
"""Letters of what one item asks for, so that no pattern takes long with it."""
MOST = 5_000
"""Items of one environment."""
# Environments of a file; the solver is asked about each.
_MOST_ENVIRONMENTS = 500
# Items of all environments of a file: each stage of a Dockerfile has those of the stage that it starts from.
_MOST_OF_ALL = 50_000


def position(text: Traced) -> Position:
    """The position of a text: its file, and the line and column of its first letter."""
    return Position(text.source.path, *text.where)


NAMED, ALL = "named", "all"
"""The packages that a command upgrades."""


class Item(Value):
    """One thing that a manifest asks for: a name as its installer has it, and a specifier as it is written there.

    `text` is the whole of it, `version` the part that a change of version replaces. `indexes` are the addresses of
    package indexes that it may come from, the default one being left out; `alone` says that it comes from no other.
    `python` is the series that the installer was called for; `bare`: it is installed whatever it requires; `built`: it
    is compiled where it is installed. What one `command` installs holds together, and a later one takes its place.
    `upgrade` are the packages of a command that no installed release satisfies: those that it names, or all.
    `bounds`: it installs nothing, and holds where something else asks for it; `overrides`: in the place of what others
    require of it. `installed`: it is there already, from an index that is not known. `imported`: code
    alone asks for it, by an import or a name that it uses; `prose`: a sentence names its release.
    """

    kind: str
    name: str
    specifier: str
    text: Traced
    version: Traced | None = None
    extras: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    alone: bool = False
    python: str = ""
    bare: bool = False
    built: bool = False
    command: str = ""
    upgrade: str = ""
    bounds: bool = False
    overrides: bool = False
    installed: bool = False
    imported: bool = False
    prose: bool = False

    @property
    def where(self) -> Position:
        """Its place."""
        return position(self.text)

    @property
    def requirement(self) -> str:
        """A requirement of pip as it is written, with the name that a table has before it."""
        if not self.imported and self.text.text.lower().startswith(self.name.lower()):
            return self.text.text
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{self.specifier.removeprefix('*')}"


class NotRead(Value):
    """Something that could not be read, and why; it `decides` where nothing can be said without it."""

    text: Traced
    why: str
    decides: bool = False

    @property
    def where(self) -> Position:
        """Its place."""
        return position(self.text)


def too_long(text: Traced) -> NotRead | None:
    """What is not read for its length alone."""
    why = f"more than {LONGEST:,} characters"
    return NotRead(text=text[:EXCERPT], why=why) if len(text) > LONGEST else None


def check_count(path: str, items: int, of_all: int = 0) -> None:
    """Refuse so many items of an environment and of all those of a file. Raises ManifestError."""
    if items > MOST or of_all > _MOST_OF_ALL:
        raise ManifestError(
            "the file asks for too many packages",
            where=Position(path),
            expected=f"at most {MOST:,} packages in an environment, and {_MOST_OF_ALL:,} in all",
        )


class ManifestEnvironment(Value):
    """One environment: a stage, a service, a list of packages; `name` is empty where the file is one.

    `locked`: it is the one before with the oldest Python of a project, for which uv locks as well.
    """

    name: str
    items: tuple[Item, ...]
    locked: bool = False


class ProjectManifest(Value):
    """A file read: its environments, what was not read, and all files that it was read from, itself first.

    `locked`: a lock is beside it, which says what is installed of a project.
    """

    kind: str
    environments: tuple[ManifestEnvironment, ...]
    unread: tuple[NotRead, ...]
    sources: tuple[FileText, ...]
    locked: bool = False


def bounded(
    path: str, environments: Iterable[ManifestEnvironment]
) -> tuple[ManifestEnvironment, ...]:
    """Environments with a bounded number of items. Raises ManifestError."""
    accepted: list[ManifestEnvironment] = []
    of_all = 0
    for environment in environments:
        of_all += len(environment.items)
        check_count(path, len(environment.items), of_all)
        accepted.append(environment)
        if len(accepted) > _MOST_ENVIRONMENTS:
            raise ManifestError(
                "the file asks for too many environments",
                where=Position(path),
                expected=f"at most {_MOST_ENVIRONMENTS}",
            )
    return tuple(accepted)
