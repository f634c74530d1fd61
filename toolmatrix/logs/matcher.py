"""Finding the lines of a long log that hold one of many texts, in the time of one pass and the memory of a block.

A text is found by its whole words; case, and which characters stand between them, do not matter, so that a message that
somebody wrapped is found too. A block is split into words once, and only the texts whose longest word it holds are
looked for: more texts cost no more time. One alternation of `re` over the same 369 texts reads a tenth as fast, and
finds no message that was wrapped; see benchmarks/README.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from toolmatrix.lines import clean, without_colours

if TYPE_CHECKING:

    class Stream(Protocol):
        """A stream that a log is read from."""

        def read(self, size: int, /) -> bytes:
            """At most about so many bytes, none at the end."""


# Bytes that are read at a time.
BLOCK = 1 << 16
# Bytes of a line that are looked at together; a longer one is looked at in parts.
LONGEST = 1 << 20
# Bytes of a line around a text that are shown to the patterns.
WINDOW = 1 << 12

# Every byte as it stands in words: letters small, digits, everything else a blank.
_WORDS = bytes(
    code | 0x20 if chr(code).isupper() else code if chr(code).isalnum() else 0x20
    for code in range(0x80)
).ljust(0x100)
# Bytes behind a text by which what stands often in a log is told apart.
_TELLING = 16
# From so many places in a block on, the last one stands for those between.
_OFTEN = 50
# Bytes above a line that can be looked back at.
_ABOVE = 1 << 15
# A shorter line was not wrapped.
_WRAPPED = 50
QUOTES = str.maketrans(dict.fromkeys("\u2018\u2019\u201c\u201d`", "'"))
"""Every kind of quote as `'`, as signatures write it."""
_LONG_WORD = 1000
# Words that nobody can mean; patterns would take long for them.
_LONG_WORDS = re.compile(rb"(\S{200})\S{600,}(\S{200})")
# Where writers of JSON lines keep what a program said.
_MESSAGES = ("log", "message", "msg", "MESSAGE", "text", "line")
_ESCAPED = re.compile(rb"\\u001b\[[0-9;]*m")
_NEXT_LINE = re.compile(r"\r\n|[\n\r]")


class MatchedLine:
    """A line that holds texts: its number, counted from 1, and what it says."""

    __slots__ = ("_end", "_start", "_text", "lines", "number", "texts")

    def __init__(self, number: int, texts: list[str], text: bytes, start: int, end: int) -> None:
        self.number = number
        self.texts = texts
        self.lines = _messages(text[start:end])
        self._text, self._start, self._end = text, start, end

    def wrapped(self) -> Iterator[tuple[str, int]]:
        """The line with the one after it and with the one before it, and where the two meet."""
        text, start, end = self._text, self._start, self._end
        behind = _or(text.find(b"\n", end), end) + 1
        after = text[behind : _or(text.find(b"\n", behind), len(text))][:WINDOW]
        before = text[text.rfind(b"\n", 0, max(start - 1, 0)) + 1 : start][-WINDOW:]
        for first, second in ((text[start:end], after), (before, text[start:end])):
            head, tail = (" ".join(_messages(part.rstrip(b"\r\n"))) for part in (first, second))
            if len(head) > _WRAPPED and tail:
                yield f"{head.rstrip()} {tail.lstrip()}", len(head.rstrip())

    def above(self, lines: int) -> str:
        """At most so many lines above this one, as they stand."""
        first = max(self._start - _ABOVE, 0)
        parts = self._text[first : self._start].rsplit(b"\n", lines + 1)
        # The first part may be no whole line, or be more lines than were asked for.
        whole = parts[1:] if first or len(parts) > lines + 1 else parts
        return b"\n".join(whole).decode("utf-8", "replace")


class Pattern:
    """A text that is looked for: words in whatever case, but as it stands where other characters are at its ends."""

    __slots__ = ("exact", "text", "words")

    def __init__(self, text: str) -> None:
        raw = text.encode()
        words = raw.translate(_WORDS)
        self.text = text
        self.words = b" " + words.strip() + b" "
        self.exact = raw.strip() if len(words.strip()) < len(raw.strip()) else b""

    def places(self, text: bytes, words: bytes, start: int, end: int, often: bool) -> Iterator[int]:
        """Places of it between two places of a text; `words` are those of the text from the first of them on.

        Of one that stands there `often`, the first that differ in what follows, and the last.
        """
        # Words alone cannot tell `-lcuda` from `cuda`.
        if self.exact:
            held, sought, first, last, moved = text, self.exact, start, end, 0
        else:
            held, sought, moved = words, self.words, start
            first, last = 0, end - start + len(sought) - 1
        # The blank at the end of one text is the one at the beginning of the next.
        step = len(sought) - 1
        seen: set[bytes] = set()
        at, count = held.find(sought, first, last), 0
        while at >= 0:
            count += 1
            if often and count == _OFTEN:
                at = held.rfind(sought, at, last)
            follows = held[at : at + step + _TELLING] if often else b""
            if not often or follows not in seen:
                seen.add(follows)
                yield at + moved
            at = held.find(sought, at + step, last)


class SoughtTexts:
    """Texts of at least one word that are looked for, by their longest word.

    Of those that stand `often` in a log and tell the same each time, a block yields the first that differ and the last.
    """

    def __init__(self, texts: Iterable[str], often: Container[str] = ()) -> None:
        self.often = often
        self.patterns: dict[bytes, list[Pattern]] = {}
        for pattern in map(Pattern, texts):
            # The longest word is the rarest, so most blocks hold none of it.
            self.patterns.setdefault(max(pattern.words.split(), key=len), []).append(pattern)
        self.words = frozenset(self.patterns)

    def within(self, text: bytes, start: int, end: int) -> list[tuple[int, int, list[str]]]:
        """The lines between two places of a text that hold any: where they begin and end, and what they hold."""
        words = b" " + text[start:].translate(_WORDS) + b" "
        found: dict[int, tuple[int, list[str]]] = {}
        for word in self.words.intersection(words.split()):
            for pattern in self.patterns[word]:
                often = pattern.text in self.often
                for at in pattern.places(text, words, start, end, often):
                    begin, finish = _line(text, at)
                    texts = found.setdefault(begin, (finish, []))[1]
                    if not texts or texts[-1] != pattern.text:
                        texts.append(pattern.text)
        return [(begin, *rest) for begin, rest in sorted(found.items())]


class MultiPatternMatcher:
    """Looks for texts in a log; `lines` were read so far."""

    def __init__(self, sought: SoughtTexts) -> None:
        self.sought = sought
        self.lines = 0

    def hits(self, stream: Stream) -> Iterator[MatchedLine]:
        """The lines that hold a text, in their order; raises what the stream raises."""
        for text, start, end in _pieces(stream):
            counted = start
            for begin, finish, texts in self.sought.within(text, start, end):
                self.lines += text.count(b"\n", counted, begin)
                counted = max(counted, begin)
                yield MatchedLine(self.lines + 1, texts, text, begin, finish)
            self.lines += text.count(b"\n", counted, end)


def _pieces(stream: Stream) -> Iterator[tuple[bytes, int, int]]:
    """Blocks of text and where the lines begin and end that are meant; some context stands on both sides."""
    text, start, whole = b"", 0, True
    while block := stream.read(BLOCK):
        whole = block.endswith(b"\n")
        text += block
        # The last line is left for the next block, where the one behind it stands beside it.
        last = text.rfind(b"\n")
        end = text.rfind(b"\n", start, last) + 1 if last > start else 0
        # A line longer than a block is gathered up to a bound, then looked at in parts.
        if end <= start:
            if len(text) - start < LONGEST:
                continue
            end = len(text)
        yield _plain(text, start, end)
        kept = max(end - _ABOVE, 0)
        text, start = text[kept:], end - kept
    if not whole:
        text += b"\n"
    if start < len(text):
        yield _plain(text, start, len(text))


def _plain(text: bytes, start: int, end: int) -> tuple[bytes, int, int]:
    # A colour is an escape sequence as it stands, or, in lines of JSON, as JSON writes that.
    if b"\x1b" not in text and b"\\u001b" not in text:
        return text, start, end
    parts = (_ESCAPED.sub(b"", part) for part in (text[:start], text[start:end], text[end:]))
    head, body, tail = map(without_colours, parts)
    return head + body + tail, len(head), len(head) + len(body)


def _line(text: bytes, at: int) -> tuple[int, int]:
    """Beginning and end of the line around a place; of a long one, where a part of it does."""
    start = text.rfind(b"\n", 0, at) + 1
    end = text.find(b"\n", at)
    # A bar that shows progress goes back to the beginning of its line.
    start = max(start, text.rfind(b"\r", start, at) + 1)
    end = _or(text.find(b"\r", at, _or(end, len(text))), _or(end, len(text)))
    if end - start > WINDOW:
        half = WINDOW // 2
        middle = start + (at - start) // half * half
        start, end = max(start, middle - half), min(end, middle + 2 * half)
    return start, end


def _or(place: int, other: int) -> int:
    return other if place < 0 else place


def _messages(line: bytes) -> list[str]:
    if len(line) > _LONG_WORD:
        line = _LONG_WORDS.sub(rb"\1...\2", line)
    text = line.decode("utf-8", "replace")
    text = clean(text.replace("`", "'") if text.isascii() else text.translate(QUOTES))
    if text.startswith("{") and text.endswith("}"):
        try:
            held = json.loads(text)
        except ValueError:
            return [text]
        for name in _MESSAGES:
            if isinstance(said := held.get(name), str):
                return [clean(one) for one in _NEXT_LINE.split(said.translate(QUOTES))]
    return [text]
