"""The words of a command after their expansion, in which what is not known stays so."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from toolmatrix.inspection.shell.conditions import cut, literal
from toolmatrix.inspection.shell.state import State
from toolmatrix.inspection.shell.syntax import (
    UNKNOWN,
    Assignment,
    Literal,
    Output,
    Parameter,
    Part,
    Sequential,
    Word,
)

if TYPE_CHECKING:
    from toolmatrix.inspection.record import View

_GLOB = re.compile(r"[*?[]")
_EITHER = re.compile(r"([?*+@!])\(([^()]*)\)")
_NAME = re.compile(r"[A-Za-z_]\w*")


class Expander:
    """The expansion of words; `output` is what commands print."""

    def __init__(self, view: View, output: Callable[[Sequential, State], str]) -> None:
        self.view = view
        self.output = output

    def values(self, assignment: Assignment, state: State) -> tuple[str, ...]:
        if assignment.is_array:
            return tuple(self.words(assignment.values, state))
        return tuple(self.text(word, state) for word in assignment.values)

    def words(self, words: Iterable[Word], state: State) -> list[str]:
        return [text for word in words for text in self.expanded(word, state)]

    def text(self, word: Word, state: State) -> str:
        return "".join(" ".join(self._part(part, state)) for part in word)

    # A pattern in which quoted characters match literally.
    def pattern(self, word: Word, state: State) -> str:
        texts = ((part.quoted, " ".join(self._part(part, state))) for part in word)
        return "".join(literal(text) if quoted else text for quoted, text in texts)

    # The fields of a word: those that are not quoted are split, and their patterns are names of files.
    def expanded(self, word: Word, state: State) -> list[str]:
        fields, is_quoted, is_pattern = [""], False, False
        for part in word:
            values = self._part(part, state)
            is_quoted |= part.quoted and values != []
            is_pattern |= not part.quoted and any(map(_GLOB.search, values))
            if part.quoted or isinstance(part, Literal):
                pieces = values
            else:
                text = " ".join(values)
                pieces = re.split(r"[ \t\n]+", text)
            for number, piece in enumerate(pieces):
                if number:
                    fields.append("")
                fields[-1] += piece
        # Of what is not quoted, nothing is no word; of `"$@"` without arguments neither.
        if not is_quoted:
            fields = [field for field in fields if field]
        elif fields == [""] and any(isinstance(p, Parameter) and p.name[-1] in "@]" for p in word):
            fields = []
        if not is_pattern:
            return fields
        return [name for field in fields for name in self._files(field, state)]

    def _files(self, pattern: str, state: State) -> list[str]:
        # Of the patterns of bash, `@(a|b)` is one or the other.
        before, sign, either, after = (*_EITHER.split(pattern, maxsplit=1), "", "", "")[:4]
        if not _GLOB.search(pattern) or UNKNOWN in pattern:
            return [pattern]
        if sign not in ("", "@") or _EITHER.search(after):
            return [UNKNOWN]
        texts = [f"{before}{text}{after}" for text in either.split("|")]
        globs = (posixpath.join(state.folder, text).strip("/") for text in texts)
        paths = sorted({f"/{path}" for glob in globs for path in self.view.tree.glob(glob)})
        return paths if paths or state.drops_unmatched else [pattern]

    def _part(self, part: Part, state: State) -> list[str]:
        if isinstance(part, Literal):
            if not part.quoted and part.text.startswith("~") and part.text[1:2] in ("", "/"):
                return [state.variables.get("HOME", UNKNOWN) + part.text[1:]]
            return [part.text]
        if isinstance(part, Output):
            return [self.output(part.body, state)]
        name, operator = part.name, part.operator
        if name in ("@", "*"):
            values = list(state.arguments)
        elif name.endswith("[@]"):
            array = state.arrays.get(name[:-3])
            values = (
                list(array) if array is not None else [*filter(None, self._value(name[:-3], state))]
            )
        else:
            values = self._value(name, state)
            return [self._modified(values, part, state)] if operator else values or [""]
        if operator:
            return [self._modified([" ".join(values)] if values else [], part, state)]
        return values if name != "*" or not part.quoted else [" ".join(values)]

    # The value of a variable, of an argument or of a parameter; none where it is not set.
    def _value(self, name: str, state: State) -> list[str]:
        if name.isdecimal():
            words = (state.name, *state.arguments)
            return [words[int(name)]] if int(name) < len(words) else []
        if name == "#":
            return [str(len(state.arguments))]
        if name == "?":
            return [UNKNOWN if state.status is None else "0" if state.status else "1"]
        if not _NAME.fullmatch(name) or name in ("RANDOM", "HOSTNAME", "SECONDS", "PPID"):
            return [UNKNOWN]
        if name == "PWD":
            return [state.folder]
        if name in state.arrays:
            return list(state.arrays[name][:1])
        return [state.variables[name]] if name in state.variables else []

    def _modified(self, values: list[str], part: Parameter, state: State) -> str:
        name, operator, operand, _ = part
        text = " ".join(values)
        if operator[0] in "#%":
            return cut(text, operator, self.pattern(operand, state))
        # A text that is not known may be empty.
        is_set: bool | None = bool(values)
        if operator[0] == ":" and is_set:
            is_set = None if not text.strip(UNKNOWN) and text else bool(text)
        other = self.text(operand, state) if operator[-1] != "?" else UNKNOWN
        if operator[-1] == "=" and not is_set:
            state.set(name, other)
        if is_set is None:
            return text if text == other else UNKNOWN
        return (
            (other if operator[-1] == "+" else text)
            if is_set
            else ("" if operator[-1] == "+" else other)
        )
