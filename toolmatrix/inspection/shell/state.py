"""A shell in the middle of a script, and what happens to the states of one that goes several ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from toolmatrix.inspection.shell.syntax import UNKNOWN, Assignment, Node, UnreadScript

OPTION = re.compile(r"[-+][A-Za-z]+")
"""An option of a command of a shell."""
LOCAL = ("local", "declare", "typeset")
"""Commands whose variables are those of a function."""
_MOST_STATES = 64
_LONGEST = 4096


class Ending(NamedTuple):
    """How a script may end: the variables and the directory then, what it started, and what made that unknown."""

    env: dict[str, str]
    folder: str
    started: tuple[object, ...]
    unknown: str


class State:
    """A shell: its variables, those that it exports, its arguments, and what it has done so far.

    `status` is that of the last command, None where that is not known. `over` is the word that ends what is run.
    `printed` collects what is printed where that is wanted. `shadowed` are the variables that a function has of its
    own, with what they were outside. `exports_all`: all variables that are set are exported (`set -a`).
    `drops_unmatched`: patterns that no file matches are no words (nullglob of bash).
    """

    __slots__ = (
        *(
            "arguments",
            "arrays",
            "drops_unmatched",
            "exported",
            "exports_all",
            "folder",
            "functions",
        ),
        *("name", "over", "printed", "shadowed", "started", "status", "unknown", "variables"),
        "where",
    )

    def __init__(
        self, env: Mapping[str, str], folder: str, where: str, name: str, words: Sequence[str]
    ) -> None:
        self.where = where
        self.variables = dict(env)
        self.exported = {*env}
        self.exports_all = self.drops_unmatched = False
        self.arrays: dict[str, tuple[str, ...]] = {}
        self.functions: dict[str, Node | None] = {}
        self.arguments = tuple(words)
        self.name = name
        self.folder = folder
        self.status: bool | None = True
        self.over = ""
        self.shadowed: dict[str, tuple[str | None, bool]] | None = None
        self.printed: str | None = None
        self.started: tuple[object, ...] = ()
        self.unknown = ""

    def copy(self) -> State:
        """Another shell in the same state."""
        other = object.__new__(State)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, dict | set) else value)
        return other

    def key(self) -> object:
        """What distinguishes the state from others."""
        # What was started has variables, which have no hash.
        values = (getattr(self, name) for name in self.__slots__)
        return tuple(
            frozenset(value.items() if name != "functions" else value)
            if isinstance(value, dict)
            else frozenset(value)
            if isinstance(value, set)
            else repr(value)
            if name == "started"
            else value
            for name, value in zip(self.__slots__, values, strict=True)
        )

    def set(self, name: str, value: str) -> None:
        """Set a variable."""
        self.variables[name] = value if len(value) <= _LONGEST else UNKNOWN
        if self.exports_all:
            self.exported.add(name)
        self.arrays.pop(name, None)

    def shadow(self, name: str) -> None:
        """Make a variable one of the function that runs, if one does."""
        if self.shadowed is not None:
            before = self.variables.get(name), name in self.exported
            self.shadowed.setdefault(name, before)

    def restore(self, shadowed: dict[str, tuple[str | None, bool]] | None) -> None:
        """Leave a function, for one with other variables of its own or for none."""
        for name, (value, is_exported) in (self.shadowed or {}).items():
            self.variables.pop(name, None)
            self.exported.discard(name)
            if value is not None:
                self.variables[name] = value
            if is_exported:
                self.exported.add(name)
        self.shadowed = shadowed

    def env(self) -> dict[str, str]:
        """What a program gets."""
        return {name: text for name, text in self.variables.items() if name in self.exported}

    def taint(self, place: str = "") -> None:
        """Note that a file, by default the script itself, does something that cannot be read."""
        self.unknown = self.unknown or place or self.where


def declare(words: list[str], state: State) -> None:
    state.status = True
    options = [word for word in words[1:] if OPTION.fullmatch(word)]
    exports = words[0] == "export" or any("x" in option for option in options)
    for word in words[1:] if words[0] in LOCAL else ():
        state.shadow(word.partition("=")[0])
    for word in words[1:] if exports else ():
        name, equals, value = word.partition("=")
        if equals:
            state.set(name, value)
        change = state.exported.discard if "-n" in options else state.exported.add
        change(name)


def assign(state: State, assignment: Assignment, values: tuple[str, ...]) -> None:
    name = assignment.name
    if assignment.is_array:
        state.arrays[name] = (*(state.arrays.get(name, ()) if assignment.adds else ()), *values)
        state.variables.pop(name, None)
    else:
        old = state.variables.get(name, "") if assignment.adds else ""
        state.set(name, old + "".join(values))


# The states of a condition that holds, and of one that does not; one that is not known is both.
def split(states: Iterable[State], *, wanted: bool) -> tuple[list[State], list[State]]:
    runs: list[State] = []
    rests: list[State] = []
    for state in states:
        if state.over:
            rests.append(state)
        elif state.status is None:
            other = state.copy()
            state.status, other.status = wanted, not wanted
            runs.append(state)
            rests.append(other)
        else:
            (runs if state.status is wanted else rests).append(state)
    return runs, rests


# The states that go on with the next round of a loop, and those that leave it.
def after_round(states: Iterable[State]) -> tuple[list[State], list[State]]:
    again: list[State] = []
    ended: list[State] = []
    for state in states:
        (again if state.over in ("", "continue") else ended).append(state)
        state.over = "" if state.over in ("break", "continue") else state.over
    return again, ended


def distinct(states: Sequence[State]) -> list[State]:
    if len(states) < 2:
        return [*states]
    distinct = [*{state.key(): state for state in states}.values()]
    if len(distinct) > _MOST_STATES:
        raise UnreadScript
    return distinct
