"""The commands of a shell script as words with their places; nothing is run, and what depends on running says so.

Quotes, escapes, comments, redirections and variables are read as POSIX has them (Shell Command Language, 2.2 to 2.7).
What a substitution of a command would give, or a variable that nobody set, is marked and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from toolmatrix.manifests.source_text import LONGEST_VALUE, Traced, joined
from toolmatrix.value import Value

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:(:?[-+])([^{}]*))?\}|([A-Za-z_]\w*))", re.ASCII)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)
_FROM_NUMBER = re.compile(r"\d[<>]")
_OPENS = {"if", "for", "while", "until", "case", "select"}
_CLOSES = {"fi", "done", "esac"}
_MIDDLE = {"then", "else", "elif", "do", "{", "}", "!", "time"}
# What stands behind them in a chain runs only if they say so.
_TESTS = {"[", "[[", "test"}


class Word(Value):
    """One word of a command; `unread` is what of it only running would tell."""

    text: Traced
    unread: str = ""

    @property
    def plain(self) -> str:
        """Its letters."""
        return self.text.text


class ShellCommand(Value):
    """The words of one command, and the variables set for it; `unsure` says on what depends whether it runs."""

    words: tuple[Word, ...]
    variables: Mapping[str, Word]
    unsure: str = ""


def expanded(text: Traced, variables: Mapping[str, Word]) -> Word:
    """A text with its variables put in: what is set, or its default."""
    parts, unread, place, letters, found = [], "", 0, 0, None
    for found in _VARIABLE.finditer(text.text):
        name = found[1] or found[4]
        parts.append(text[place : found.start()])
        place = found.end()
        value = variables.get(name)
        # What is put in where a variable is set says nothing of the value that it has.
        if found[2] in (":+", "+"):
            unread = unread or found[0]
        elif value is not None and (value.plain or value.unread or found[2] != ":-"):
            letters += len(value.text)
            if letters > LONGEST_VALUE:
                break
            parts.append(value.text)
            unread = unread or value.unread
        elif found[2]:
            parts.append(text.group(found, 3))
        else:
            unread = unread or found[0]
            parts.append(text.group(found, 0))
    if found and letters and not text.source.has_room(text, letters):
        return Word(text=text, unread=found[0])
    parts.append(text[place:])
    return Word(text=joined(parts, text.source), unread=unread)


class _Reader:
    def __init__(self, text: Traced, variables: Mapping[str, Word]) -> None:
        self.text = text
        self.letters = text.text
        self.variables = dict(variables)
        self.place = 0

    def commands(self) -> Iterator[ShellCommand]:
        """The commands in their order, with what decides whether each runs."""
        depth, alternative, tested = 0, False, False
        for words, operator in self.lines():
            depth -= sum(word.plain in _CLOSES for word in words[:1])
            opening = bool(words) and words[0].plain in _OPENS
            depth += opening
            rest = _behind(words)
            if rest and not opening and words[0].plain not in _CLOSES:
                # A test, and what stands behind `||`, decide what else of the chain runs.
                # The words of a test install nothing.
                is_test = rest[0].plain in _TESTS
                why = "a condition" if depth or alternative or tested else ""
                if not is_test:
                    yield self.command(rest, why)
                tested = (tested or is_test) and operator == "&&"
            if operator == "||":
                alternative = True
            elif operator not in ("&&", "|"):
                alternative = tested = False

    def command(self, words: list[Word], why: str) -> ShellCommand:
        variables, assigned = {}, 0
        for value in words:
            found = None if value.unread else _ASSIGNED.match(value.plain)
            if found is None:
                break
            variables[found[1]] = value.replace(text=value.text[found.end() :])
            assigned += 1
        words = words[assigned:]
        # What is exported, or assigned alone, is seen by all commands of the same script.
        exported = words and words[0].plain in ("export", "declare")
        for word in words[1:] if exported else ():
            if found := _ASSIGNED.match(word.plain):
                self.variables[found[1]] = word.replace(text=word.text[found.end() :])
        if not words:
            # An assignment alone holds for what follows; where it is not sure, nobody knows the value.
            for name, value in variables.items():
                self.variables[name] = value.replace(unread=f"${name}") if why else value
        return ShellCommand(words=tuple(words), variables=variables, unsure=why)

    def lines(self) -> Iterator[tuple[list[Word], str]]:
        """The words up to each operator, and the operator."""
        words: list[Word] = []
        while self.place < len(self.letters):
            letter = self.letters[self.place]
            if letter in " \t\r":
                self.place += 1
            elif letter == "#":
                self.skip("\n")
            elif letter in "\n;&|()":
                operator = letter
                if self.letters[self.place : self.place + 2] in ("&&", "||", ";;"):
                    operator *= 2
                self.place += len(operator)
                yield words, operator
                words = []
            # `pip install torch>2` writes a file, and asks for any torch.
            elif letter in "<>" or _FROM_NUMBER.match(self.letters, self.place):
                self.redirection()
            else:
                words += self.word()
        yield words, "\n"

    def skip(self, end: str) -> None:
        found = self.letters.find(end, self.place)
        self.place = len(self.letters) if found < 0 else found

    def redirection(self) -> None:
        while self.place < len(self.letters) and self.letters[self.place] in "0123456789<>&|-":
            self.place += 1
        while self.letters[self.place : self.place + 1] in (" ", "\t"):
            self.place += 1
        if self.letters[self.place : self.place + 1] not in ("", "\n", ";", "&", "|"):
            self.word()

    def word(self) -> list[Word]:
        """The word that begins here; several where blanks come out of a variable."""
        parts: list[Word] = []
        bare = True
        while self.place < len(self.letters):
            letter = self.letters[self.place]
            if letter in " \t\r\n;&|()<>":
                break
            parts.append(self.piece())
            bare = bare and letter not in "\"'"
        unread = next((part.unread for part in parts if part.unread), "")
        text = joined([part.text for part in parts], self.text.source)
        if bare and not unread and any(letter.isspace() for letter in text.text):
            return [Word(text=word, unread=unread) for word in text.words()]
        return [Word(text=text, unread=unread)]

    def piece(self) -> Word:
        """What stands here: a quoted text, an escaped letter, a substitution, or letters up to the next of those."""
        letter = self.letters[self.place]
        start = self.place
        if letter in "'\"":
            return self.quoted(letter)
        if letter == "\\":
            self.place += 2
            return Word(text=self.text[start + 1 : self.place])
        if letter == "`" or self.letters.startswith("$(", start):
            return self.substituted()
        if letter == "$":
            # `${TAG:-a b}` is one piece.
            found = _VARIABLE.match(self.letters, start)
            self.place = found.end() if found else start + 1
            return expanded(self.text[start : self.place], self.variables)
        self.place += 1
        while (
            self.place < len(self.letters)
            and self.letters[self.place] not in " \t\r\n;&|()<>'\"\\`$"
        ):
            self.place += 1
        return Word(text=self.text[start : self.place])

    def quoted(self, quote: str) -> Word:
        self.place += 1
        parts: list[Word] = []
        while self.place < len(self.letters) and self.letters[self.place] != quote:
            start = self.place
            if quote == "'":
                self.skip(quote)
                parts.append(Word(text=self.text[start : self.place]))
            elif self.letters[start] in "\\$`":
                # Between double quotes a backslash keeps its meaning before few letters alone.
                kept = (
                    self.letters[start] == "\\"
                    and self.letters[start + 1 : start + 2] not in '$`"\\'
                )
                piece = self.piece()
                parts.append(Word(text=self.text[start : self.place]) if kept else piece)
            else:
                while self.place < len(self.letters) and self.letters[self.place] not in '"\\$`':
                    self.place += 1
                parts.append(Word(text=self.text[start : self.place]))
        self.place += 1
        unread = next((part.unread for part in parts if part.unread), "")
        return Word(text=joined([part.text for part in parts], self.text.source), unread=unread)

    def substituted(self) -> Word:
        start = self.place
        # What a command prints is known when it runs.
        if self.letters[start] == "`":
            self.place += 1
            self.skip("`")
            self.place += 1
        else:
            depth = 0
            self.place += 1
            while self.place < len(self.letters):
                depth += {"(": 1, ")": -1}.get(self.letters[self.place], 0)
                self.place += 1
                if not depth:
                    break
        return Word(text=self.text[start : self.place], unread="$(...)")


def _behind(words: list[Word]) -> list[Word]:
    place = 0
    while place < len(words) and words[place].plain in _MIDDLE:
        place += 1
    return words[place:]


def commands(text: Traced, variables: Mapping[str, Word]) -> Iterator[ShellCommand]:
    """The commands of a script, with the variables that are set where it begins."""
    yield from _Reader(text, variables).commands()
