"""Observing a log: the components and versions that show in it, and the lines that known failures leave.

A log is read in blocks and only lines that hold one of the texts of the book are looked at, so that a long one takes
the time of a search and the memory of a block. Patterns see lines without prefixes and colours, cut at `LONGEST`.
"""

from __future__ import annotations

from toolmatrix.inventory.model import Inventory, Seen
from toolmatrix.lines import clean, without_colours
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from toolmatrix.inventory.signatures import Book, Pattern, Signature

BLOCK = 1 << 20
"""Characters that are read at a time."""
LONGEST = 1 << 14
"""Characters of a line that are looked at; what stands behind them is not."""
MATCHES = 1000
"""Different failures that are kept; further ones are counted."""

_COMPONENTS, _VERSIONS = 2000, 50
"""So many components, and versions of one, are kept."""
_NEAR = 200
"""So many lines below a file of a package an error may still be that package's."""
_CALLERS = 8
_QUOTES = "\u2018\u2019\u201c\u201d`"
_SHOWN = 400
_WHOSE = ("file", "symbol", "package", "other", "arch", "device")
"""Groups that tell one failure from another of its kind, beside the components that it is between."""


class Match(Value):
    """A failure as the log tells it: the first line of it, what its groups took, and what was seen above it.

    `callers` are who needed something, the nearest first; `count` are the lines that say the same.
    """

    signature: Signature
    line: int
    text: str
    values: Mapping[str, str]
    seen: Mapping[str, Seen]
    callers: tuple[str, ...]
    count: int = 1


class Followed(Value):
    """A line that only says that something above it went wrong."""

    line: int
    text: str


class Log(Value):
    """What was observed: an inventory, failures in the order of their first lines, and what followed from them.

    `lines` were read; `followed` holds the first consequence and `following` counts all; `more` are failures left out.
    """

    inventory: Inventory
    matches: tuple[Match, ...]
    lines: int
    followed: Followed | None = None
    following: int = 0
    more: int = 0


def observe(stream: TextIO, book: Book, subject: str) -> Log:
    """Read a log to its end; raises OSError as the stream does."""
    reader = _Reader(book, subject)
    for piece in _pieces(stream):
        reader.read(piece)
    return reader.log()


def _pieces(stream: TextIO) -> Iterator[str]:
    """Whole lines in pieces of about a block, each line cut where it is too long."""
    rest = ""
    dropping = False
    while block := stream.read(BLOCK):
        head, newline, tail = block.rpartition("\n")
        if newline:
            whole = head.partition("\n") if dropping else ("", "", head)
            yield (rest if not dropping else rest[:LONGEST]) + whole[1] + whole[2] + "\n"
            rest, dropping = tail, False
        elif not dropping:
            rest += tail
        if len(rest) > LONGEST:
            rest, dropping = rest[:LONGEST], True
    if rest:
        yield rest + "\n"


class _Reader:
    """The state of an observation; everything it keeps is bounded."""

    def __init__(self, book: Book, subject: str) -> None:
        self.book = book
        self.subject = subject
        self.lines = 0
        self.components: dict[str, dict[str, Seen]] = {}
        self.latest: dict[str, Seen] = {}
        self.callers: list[tuple[int, str]] = []
        self.matches: list[Match] = []
        self.places: dict[tuple[object, ...], int] = {}
        self.followed: Followed | None = None
        self.following = 0
        self.more = 0
        self.uses: dict[str, list[tuple[str, Signature | None, Pattern]]] = {}
        for kind in ("witnesses", "callers"):
            for pattern in getattr(book, kind):
                self.uses.setdefault(pattern.has, []).append((kind, None, pattern))
        for signature in book.signatures:
            for pattern in signature.lines:
                self.uses.setdefault(pattern.has, []).append(("failures", signature, pattern))
        for pattern in book.consequences:
            self.uses.setdefault(pattern.has, []).append(("consequences", None, pattern))
        self.order = {id(pattern): place for place, pattern in enumerate(self.every())}

    def every(self) -> Iterator[Pattern]:
        """All patterns in the order in which they are tried."""
        yield from self.book.witnesses
        yield from self.book.callers
        for signature in self.book.signatures:
            yield from signature.lines
        yield from self.book.consequences

    def read(self, piece: str) -> None:
        """Look at the lines of a piece that hold one of the texts."""
        if "\x1b" in piece:
            piece = without_colours(piece)
        for quote in _QUOTES:
            if quote in piece:
                piece = piece.replace(quote, "'")
        counted, number = 0, self.lines + 1
        for start, (end, held) in sorted(self.worth(piece).items()):
            number += piece.count("\n", counted, start)
            counted = start
            self.look(number, clean(piece[start : min(end, start + LONGEST)]), held)
        self.lines += piece.count("\n")

    def worth(self, piece: str) -> dict[int, tuple[int, list[str]]]:
        """Where lines begin that hold a text, where they end, and the texts."""
        found: dict[int, tuple[int, list[str]]] = {}
        for has in self.uses:
            at = piece.find(has)
            while at >= 0:
                start = piece.rfind("\n", 0, at) + 1
                end = piece.find("\n", at)
                found.setdefault(start, (end, []))[1].append(has)
                at = piece.find(has, end)
        return found

    def look(self, number: int, line: str, held: list[str]) -> None:
        """Try the patterns of the texts on a line, in the order of the book."""
        uses = [use for has in held for use in self.uses[has]]
        uses.sort(key=lambda use: self.order[id(use[2])])
        for kind, signature, pattern in uses:
            if kind == "witnesses":
                for found in pattern.line.finditer(line):
                    self.witness(number, found.groupdict())
                continue
            match = pattern.line.search(line)
            if match is None:
                continue
            if kind == "callers":
                self.caller(number, match["by"])
            elif signature is not None:
                values = {
                    name.rstrip("_"): text.strip()
                    for name, text in match.groupdict().items()
                    if text
                }
                self.failure(
                    Match(
                        signature=signature,
                        line=number,
                        text=line[:_SHOWN],
                        values=values,
                        seen=dict(self.latest),
                        callers=self.near(number, values),
                    )
                )
                return
            else:
                self.following += 1
                self.followed = self.followed or Followed(line=number, text=line[:_SHOWN])
                return

    def witness(self, number: int, groups: dict[str, str | None]) -> None:
        """Keep the versions that a line shows."""
        if groups.get("component"):
            groups = {str(groups["component"]): groups["version"]}
        for name, version in groups.items():
            if version:
                component = self.book.called(name.replace("_", "-"))
                seen = Seen(version=version, seen_by="log", where=f"{self.subject}:{number}")
                kept = self.components.setdefault(component, {})
                if len(kept) < _VERSIONS:
                    kept.setdefault(version, seen)
                if component in self.latest or len(self.latest) < _COMPONENTS:
                    self.latest[component] = kept.get(version, seen)
                if len(self.components) > _COMPONENTS:
                    del self.components[component]

    def caller(self, number: int, name: str) -> None:
        """Remember who was at work."""
        called = self.book.called(name)
        if called and (not self.callers or self.callers[-1][1] != called):
            self.callers = [*self.callers[1 - _CALLERS :], (number, called)]
        elif called:
            self.callers[-1] = (number, called)

    def near(self, number: int, values: Mapping[str, str]) -> tuple[str, ...]:
        """Who needs what is missing: as the line says, then by the files named above it, the nearest first."""
        said = [self.book.called(values[name]) for name in ("by", "onnx") if name in values]
        above = [name for line, name in reversed(self.callers) if number - line <= _NEAR]
        return tuple(dict.fromkeys(name for name in (*said, *above) if name))

    def failure(self, match: Match) -> None:
        """Keep a failure, or count it with an earlier one that it does not contradict."""
        name = match.signature.name
        whose = {
            key: text
            for key, text in match.values.items()
            if key in _WHOSE or key.replace("_", "-") in match.signature.between
        }
        user = ""
        if any(role == "user" for role in match.signature.roles):
            user = next(iter(match.callers), "")
        exact = (name, user, *sorted(whose.items()))
        place = self.places.get(exact)
        if place is None:
            place = self.alike(match, whose, user)
        if place is None and len(self.matches) >= MATCHES:
            self.more += 1
            return
        if place is None:
            place = len(self.matches)
            self.matches.append(match)
        else:
            first = self.matches[place]
            self.matches[place] = first.replace(
                count=first.count + 1,
                values={**match.values, **first.values},
                callers=tuple(dict.fromkeys((*first.callers, *match.callers)))[:_CALLERS],
            )
        self.places[exact] = place

    def alike(self, match: Match, whose: Mapping[str, str], user: str) -> int | None:
        """The first failure of the same kind that says nothing else where both say something."""
        for place, first in enumerate(self.matches):
            if first.signature.name == match.signature.name and all(
                first.values.get(key, text) == text for key, text in whose.items()
            ):
                other = next(iter(first.callers), "") if user else ""
                if not (user and other) or user == other:
                    return place
        return None

    def log(self) -> Log:
        """What was observed; a component that showed only below a failure counts for it too."""
        first = {name: next(iter(kept.values())) for name, kept in self.components.items() if kept}
        return Log(
            inventory=Inventory(
                subject=self.subject,
                components={
                    name: tuple(kept.values()) for name, kept in sorted(self.components.items())
                },
            ),
            matches=tuple(match.replace(seen={**first, **match.seen}) for match in self.matches),
            lines=self.lines,
            followed=self.followed,
            following=self.following,
            more=self.more,
        )
