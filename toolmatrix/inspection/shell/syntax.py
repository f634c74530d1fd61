"""The syntax of a shell script: its text as a tree of commands. Nothing is expanded or run.

"Shell Command Language" of POSIX.1-2017, chapter 2, and what bash adds to it: `[[`, `((`, arrays and `function`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

UNKNOWN = "\0"
"""A part of a text that is not known; no text of a shell has this character."""
# Commands in commands; scripts that people write have ten at most.
_DEEPEST = 40
_BLANK = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")
_KEYWORD = re.compile(r"(?:!|\{|\}|[a-z]+|\[\[)(?=[\s;&|()<>]|$)")
_FUNCTION = re.compile(
    r"(?:function[ \t]+([^\s(){}]+)[ \t]*(?:\([ \t]*\))?|([\w.:-]+)[ \t]*\([ \t]*\))\s*"
)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\[[^\]\n]*\])?(\+?)=")
_REDIRECTION = re.compile(r"(?:\d*|\{\w+\})(<<-?(?!<)|<<<|[<>]&|>>|>\||<>|[<>](?!\())|(&>>?)")
_NAME = re.compile(r"\w+|[@*#?$!-]")
_OPERATOR = re.compile(r":?[-=+?]|##?|%%?")
_PLAIN = re.compile(r"[^\s;&|()<>\\'\"$`]+")
_QUOTED = re.compile(r'[^"\\$`]+')
_OPERAND = re.compile(r"[^}\\'\"$`]+")
# What `?(`, `*(`, `+(`, `@(` and `!(` of bash end with.
_EXTENDED = re.compile(r"\([^()\s'\"$`]*\)")
_CHANGED = re.compile(r"([A-Za-z_]\w*)\s*(?:=(?!=)|\+=|-=|\+\+|--)")
_DECLARES = ("export", "declare", "local", "readonly", "typeset")


class UnreadScript(Exception):
    """A script is not understood."""


class Literal(NamedTuple):
    """A piece of text."""

    text: str
    quoted: bool


class Parameter(NamedTuple):
    """`${name}` with an operator such as `:-` and its operand."""

    name: str
    operator: str
    operand: Word
    quoted: bool


class Output(NamedTuple):
    """What commands print, `$(...)`."""

    body: Sequential
    quoted: bool


Part: TypeAlias = "Literal | Parameter | Output"
Word: TypeAlias = "tuple[Part, ...]"


class Assignment(NamedTuple):
    """`name=value`; with `adds`, to what the variable has. An array has several values."""

    name: str
    adds: bool
    values: tuple[Word, ...]
    is_array: bool


class Simple(NamedTuple):
    """A command with its assignments."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]


class Test(NamedTuple):
    """`[[ ... ]]`."""

    words: tuple[Word, ...]


class Arithmetic(NamedTuple):
    """`((...))`, by the variables that it changes."""

    changed: tuple[str, ...]


class AndOr(NamedTuple):
    """A command, and one that is run if the first fails, or if it does not."""

    first: Node
    operator: str
    then: Node


class Pipeline(NamedTuple):
    """Commands of which each reads what the one before prints, or that go on by themselves."""

    commands: tuple[Node, ...]
    negated: bool = False


class Sequential(NamedTuple):
    """Commands one after the other."""

    commands: tuple[Node, ...]


class Subshell(NamedTuple):
    """Commands in a shell of their own."""

    body: Sequential


class If(NamedTuple):
    """Commands by conditions, the last of which may have none."""

    branches: tuple[tuple[Sequential | None, Sequential], ...]


class Loop(NamedTuple):
    """Commands that are repeated while a condition holds; `word` is the keyword of the loop."""

    word: str
    condition: Node
    body: Sequential


class For(NamedTuple):
    """Commands that are repeated for words, by default the arguments."""

    name: str
    words: tuple[Word, ...] | None
    body: Sequential


class Switch(NamedTuple):
    """Commands by the patterns that a word matches."""

    word: Word
    branches: tuple[tuple[tuple[Word, ...], Sequential], ...]


class Function(NamedTuple):
    """The definition of a function."""

    name: str
    body: Node


Node: TypeAlias = (
    "Simple | Test | Arithmetic | AndOr | Pipeline"
    " | Sequential | Subshell | If | Loop | For | Switch | Function"
)


def parse(text: str) -> Sequential:
    """The commands of a script; raises UnreadScript for one that is not understood."""
    parser = _Parser(text.replace(UNKNOWN, ""))
    commands = parser.sequence()
    if parser.at < len(parser.text):
        raise UnreadScript
    return commands


class _Parser:
    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.documents: list[str] = []

    def sequence(self, *ends: str) -> Sequential:
        """Commands up to a keyword, a bracket, the end of a case or the end of the text."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnreadScript
        commands: list[Node] = []
        while not self._is_at_end(ends):
            command = self._and_or()
            self._skip()
            if self._next("&"):
                # It runs in a shell of its own, and the next one does not wait for it.
                command = Pipeline((command, Sequential(())))
            elif not self.text.startswith(";;", self.at):
                self._next(";")
            commands.append(command)
        self.depth -= 1
        return Sequential(tuple(commands))

    def _is_at_end(self, ends: Sequence[str]) -> bool:
        self._lines()
        return (
            self.at >= len(self.text)
            or self.text.startswith((")", ";;"), self.at)
            or self._keyword() in ends
        )

    def _skip(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    # Blanks and ends of lines, with the documents that begin behind these.
    def _lines(self) -> None:
        self._skip()
        while self._next("\n"):
            for end in self.documents:
                match = re.compile(rf"\t*{re.escape(end)}$", re.MULTILINE).search(
                    self.text, self.at
                )
                self.at = match.end() if match else len(self.text)
                self._next("\n")
            self.documents.clear()
            self._skip()

    def _next(self, sign: str) -> bool:
        has = self.text.startswith(sign, self.at)
        self.at += len(sign) if has else 0
        return has

    def _keyword(self) -> str:
        match = _KEYWORD.match(self.text, self.at)
        return match[0] if match else ""

    def _expect(self, word: str) -> None:
        self._lines()
        if self._keyword() != word and not (word == ")" and self.text.startswith(word, self.at)):
            raise UnreadScript
        self.at += len(word)

    def _and_or(self) -> Node:
        node = self._pipeline()
        while True:
            self._skip()
            operator = next((sign for sign in ("&&", "||") if self._next(sign)), "")
            if not operator:
                return node
            self._lines()
            node = AndOr(node, operator, self._pipeline())

    def _pipeline(self) -> Node:
        negated = False
        while self._keyword() == "!":
            self.at += 1
            negated = not negated
            self._skip()
        commands = [self._command()]
        self._skip()
        while self.text.startswith("|", self.at) and not self.text.startswith("||", self.at):
            self.at += 1
            self._next("&")
            self._lines()
            commands.append(self._command())
            self._skip()
        return Pipeline(tuple(commands), negated) if len(commands) > 1 or negated else commands[0]

    def _command(self) -> Node:
        match = _FUNCTION.match(self.text, self.at)
        if match:
            self.at = match.end()
            return Function(match[1] or match[2], self._command())
        keyword = self._keyword()
        compounds: dict[str, Callable[[str], Node]] = {
            "if": self._if,
            "while": self._loop,
            "until": self._loop,
            "for": self._for,
            "case": self._case,
            "{": self._group,
            "[[": self._test,
        }
        compound = compounds.get(keyword)
        node: Node
        if compound is not None:
            self.at += len(keyword)
            node = compound(keyword)
        elif self._next("(("):
            node = self._arithmetic()
        elif self._next("("):
            node = Subshell(self.sequence())
            self._expect(")")
        elif keyword in ("select", "coproc", "then", "else", "elif", "fi", "do", "done", "esac"):
            raise UnreadScript
        else:
            return self._simple()
        while self._redirection():
            pass
        return node

    def _if(self, _: str) -> If:
        branches: list[tuple[Sequential | None, Sequential]] = []
        word = "elif"
        while word == "elif":
            condition = self.sequence("then")
            self._expect("then")
            branches.append((condition, self.sequence("elif", "else", "fi")))
            word = self._keyword()
            self.at += len(word)
        if word == "else":
            branches.append((None, self.sequence("fi")))
            self._expect("fi")
        return If(tuple(branches))

    def _loop(self, word: str) -> Loop:
        condition = self.sequence("do")
        return Loop(word, condition, self._body())

    def _body(self) -> Sequential:
        self._skip()
        self._next(";")
        self._expect("do")
        body = self.sequence("done")
        self._expect("done")
        return body

    def _for(self, _: str) -> Node:
        self._skip()
        if self._next("(("):
            return Loop("while", self._arithmetic(), self._body())
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise UnreadScript
        self.at = match.end()
        self._lines()
        words = None
        if self._keyword() == "in":
            self.at += 2
            words = self._words("\n;")
        return For(match[0], words, self._body())

    def _words(self, ends: str) -> tuple[Word, ...]:
        words: list[Word] = []
        while True:
            self._skip()
            if self.at >= len(self.text) or self.text[self.at] in ends:
                return tuple(words)
            words.append(self._word())

    def _case(self, _: str) -> Switch:
        self._skip()
        word = self._word()
        self._expect("in")
        branches: list[tuple[tuple[Word, ...], Sequential]] = []
        while True:
            self._lines()
            if self._keyword() == "esac":
                self.at += len("esac")
                return Switch(word, tuple(branches))
            self._next("(")
            self._skip()
            patterns = [self._word()]
            self._skip()
            while self._next("|"):
                self._skip()
                patterns.append(self._word())
                self._skip()
            self._expect(")")
            branches.append((tuple(patterns), self.sequence("esac")))
            if self._next(";;") and self.text.startswith("&", self.at):
                raise UnreadScript

    def _group(self, _: str) -> Sequential:
        body = self.sequence("}")
        self._expect("}")
        return body

    def _test(self, _: str) -> Test:
        words: list[Word] = []
        while True:
            self._lines()
            if self._keyword_is_closing():
                return Test(tuple(words))
            sign = next((s for s in ("&&", "||", "(", ")", "<", ">") if self._next(s)), "")
            words.append((Literal(sign, quoted=False),) if sign else self._word())
            # Signs of a pattern are no signs of the shell.
            if words[-1] == (Literal("=~", quoted=False),):
                end = re.compile(r"\s(?:&&|\|\||\]\])").search(self.text, self.at)
                self.at = end.start() if end else len(self.text)
                words.append((Literal(UNKNOWN, quoted=True),))

    def _keyword_is_closing(self) -> bool:
        if self.at >= len(self.text):
            raise UnreadScript
        return self._next("]]")

    def _arithmetic(self) -> Arithmetic:
        return Arithmetic(tuple(_CHANGED.findall(self._enclosed())))

    # The text up to the brackets that close two.
    def _enclosed(self) -> str:
        begin, depth = self.at, 2
        for match in re.compile(r"[()]").finditer(self.text, self.at):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                self.at = match.end()
                return self.text[begin : match.start() - 1]
        raise UnreadScript

    def _redirection(self) -> bool:
        self._skip()
        match = _REDIRECTION.match(self.text, self.at)
        if match is None:
            return False
        self.at = match.end()
        self._skip()
        begin = self.at
        self._word()
        if match[1] in ("<<", "<<-"):
            self.documents.append(re.sub(r"[\\'\"]", "", self.text[begin : self.at]))
        return True

    def _simple(self) -> Simple:
        assignments: list[Assignment] = []
        words: list[Word | Assignment] = []
        begin = self.at
        while True:
            if self._redirection():
                continue
            if self.at >= len(self.text) or self.text[self.at] in "\n;&|)":
                break
            declares = not words or words[0] in [(Literal(w, quoted=False),) for w in _DECLARES]
            match = _ASSIGNED.match(self.text, self.at) if declares else None
            if match is not None:
                assignment = self._assignment(match)
                if words:
                    words.append(assignment)
                else:
                    assignments.append(assignment)
            else:
                words.append(self._word())
        if self.at == begin:
            raise UnreadScript
        return Simple(tuple(assignments), tuple(words))

    def _assignment(self, match: re.Match[str]) -> Assignment:
        self.at = match.end()
        name, index, adds = match.groups()
        if not self._next("("):
            ends = self.at >= len(self.text) or self.text[self.at] in " \t\n;&|)<>"
            value: Word = () if ends else self._word()
            return Assignment(
                name,
                bool(adds),
                ((Literal(UNKNOWN, quoted=True),) if index else value,),
                bool(index),
            )
        values: list[Word] = []
        while True:
            self._lines()
            if self._next(")"):
                return Assignment(name, bool(adds), tuple(values), is_array=True)
            values.append(self._word())

    def _word(self) -> Word:
        parts: list[Part] = []
        while self.at < len(self.text):
            match = _PLAIN.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                parts.append(Literal(match[0], quoted=False))
                continue
            sign = self.text[self.at]
            extended = _EXTENDED.match(self.text, self.at)
            if parts and extended and parts[-1][0][-1:] in (*"?*+@!",):
                self.at = extended.end()
                parts.append(Literal(extended[0], quoted=False))
            elif self.text.startswith(("<(", ">("), self.at):
                self.at += 2
                self.sequence()
                self._expect(")")
                parts.append(Literal(UNKNOWN, quoted=True))
            elif sign in "\\'\"$`":
                parts += self._quoted(sign)
            else:
                break
        if not parts:
            raise UnreadScript
        return tuple(parts)

    def _quoted(self, sign: str) -> list[Part]:
        if sign in "$`":
            return [self._expansion(quoted=False)]
        self.at += 1
        if sign == "\\":
            text = self.text[self.at : self.at + 1]
            self.at += 1
            return [Literal(text, quoted=True)] if text != "\n" else [Literal("", quoted=False)]
        if sign == '"':
            return self._double()
        end = self.text.find("'", self.at)
        if end < 0:
            raise UnreadScript
        text = self.text[self.at : end]
        self.at = end + 1
        return [Literal(text, quoted=True)]

    def _double(self) -> list[Part]:
        parts: list[Part] = [Literal("", quoted=True)]
        while not self._next('"'):
            match = _QUOTED.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                parts.append(Literal(match[0], quoted=True))
            elif self._next("\\"):
                sign = self.text[self.at : self.at + 1]
                self.at += 1
                text = {"\n": ""}.get(sign, sign if sign in '$`"\\' else f"\\{sign}")
                parts.append(Literal(text, quoted=True))
            elif self.at >= len(self.text):
                raise UnreadScript
            else:
                parts.append(self._expansion(quoted=True))
        return parts

    def _expansion(self, *, quoted: bool) -> Part:
        if self._next("`"):
            match = re.compile(r"((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
            if match is None:
                raise UnreadScript
            self.at = match.end()
            inner = _Parser(re.sub(r"\\([`$\\])", r"\1", match[1]), self.depth)
            return Output(inner.sequence(), quoted)
        self.at += 1
        if self._next("(("):
            self._enclosed()
            return Literal(UNKNOWN, quoted=True)
        if self._next("("):
            body = self.sequence()
            self._expect(")")
            return Output(body, quoted)
        if self._next("{"):
            return self._braced(quoted=quoted)
        if not quoted and self.text.startswith("'", self.at):
            (literal,) = self._quoted("'")
            return literal if "\\" not in literal[0] else Literal(UNKNOWN, quoted=True)
        match = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]").match(self.text, self.at)
        if match is None:
            return Literal(
                "" if not quoted and self.text.startswith('"', self.at) else "$", quoted=True
            )
        self.at = match.end()
        return Parameter(match[0], "", (), quoted)

    def _braced(self, *, quoted: bool) -> Part:
        match = _NAME.match(self.text, self.at)
        name = match[0] if match else ""
        self.at += len(name)
        if name and self._next("[@]"):
            name += "[@]"
        elif name:
            self._next("[0]")
        if name and self._next("}"):
            return Parameter(name, "", (), quoted)
        match = _OPERATOR.match(self.text, self.at) if name not in ("", "!", "#") else None
        self.at = match.end() if match else self.at
        operand = self._operand(quoted=quoted)
        return (
            Parameter(name, match[0], operand, quoted) if match else Literal(UNKNOWN, quoted=True)
        )

    def _operand(self, *, quoted: bool) -> Word:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnreadScript
        parts: list[Part] = []
        while not self._next("}"):
            match = _OPERAND.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                parts.append(Literal(match[0], quoted=quoted))
            elif self.at >= len(self.text):
                raise UnreadScript
            elif quoted and self._next("'"):
                parts.append(Literal("'", quoted=True))
            else:
                parts += self._quoted(self.text[self.at])
        self.depth -= 1
        return tuple(parts)
