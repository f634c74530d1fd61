"""What a shell script starts and with which variables, as far as its text and the files of the image decide it.

Nothing is run. A condition that is not decided is followed both ways, so a script may end in several states; those that
fail are left out, as an image that does not start imports nothing. POSIX.1-2017, chapter 2, bash(1) and dash(1).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmatrix.images.layers import DIRECTORY
from toolmatrix.inspection.scripts import Script
from toolmatrix.inspection.shell import syntax
from toolmatrix.inspection.shell.conditions import Condition, literal, matches
from toolmatrix.inspection.shell.state import (
    LOCAL,
    OPTION,
    Ending,
    State,
    after_round,
    assign,
    declare,
    distinct,
    split,
)
from toolmatrix.inspection.shell.syntax import UNKNOWN, UnreadScript
from toolmatrix.inspection.shell.words import Expander

if TYPE_CHECKING:
    from toolmatrix.inspection.record import View

_MOST_STEPS = 5000
# Scripts, functions and commands in others.
_DEEPEST = 60
_MOST_ROUNDS = 50
_MOST_WORDS = 5000
_NAME = re.compile(r"[A-Za-z_]\w*")
# What defines `conda activate` in a shell.
_OF_CONDA = re.compile(r".*/(?:conda|mamba|micromamba)\.sh")
CONDA = ("conda", "mamba", "micromamba")
"""The programs of conda, and the functions that activate its environments."""
# Commands that change nothing here, and programs that print nothing either.
_WITHOUT_EFFECT = (
    *(":", "true", "umask", "ulimit", "trap", "alias", "unalias", "wait", "times", "jobs"),
    *("bind", "complete", "enable", "disown"),
)
# Commands of the shell that run others, which get the variables before them.
_RUNNING = ("exec", "eval", ".", "source")
_SILENT = ("sleep", "mkdir", "chmod", "chown", "touch")
_DECLARES = ("export", "readonly", *LOCAL)


class Shell:
    """Shells of an image; `start` says what a program starts, and `activate` enters an environment of conda."""

    def __init__(
        self,
        view: View,
        start: Callable[[Sequence[str], Mapping[str, str], str, str], Sequence[Ending]],
        activate: Callable[[str, Mapping[str, str], str], str],
    ) -> None:
        self.view = view
        self.start = start
        self.activate = activate
        self.expander = Expander(view, self._output)
        self.steps = self.depth = 0

    def run(self, state: State, text: str, sourced: Iterable[str] = ()) -> list[Ending]:
        """How a script may end, with what its shell reads before it; raises UnreadScript if that is not understood."""
        states = [state]
        for path in sourced:
            states = [result for each in states for result in self._source(each, path)]
        ended = self._each(syntax.parse(text), states)
        right = [
            result for result in ended if result.over == "exec" or result.status is not False
        ] or ended
        return [
            Ending(result.env(), result.folder, result.started, result.unknown) for result in right
        ]

    def _each(self, node: syntax.Node, states: Sequence[State]) -> list[State]:
        self.steps += max(1, len(states))
        if self.steps > _MOST_STEPS or self.depth >= _DEEPEST:
            raise UnreadScript
        self.depth += 1
        try:
            groups = [[state] if state.over else self._step(node, state) for state in states]
        finally:
            self.depth -= 1
        return distinct([state for group in groups for state in group])

    def _step(self, node: syntax.Node, state: State) -> list[State]:
        if isinstance(node, syntax.Simple):
            return self._simple(node, state)
        if isinstance(node, syntax.Sequential):
            states = [state]
            state.status = True if not node.commands else state.status
            for command in node.commands:
                states = self._each(command, states)
            return states
        if isinstance(node, syntax.AndOr):
            wanted = node.operator == "&&"
            runs, rests = split(self._each(node.first, [state]), wanted=wanted)
            return distinct([*rests, *self._each(node.then, runs)])
        if isinstance(node, syntax.Pipeline):
            return self._pipeline(node, state)
        if isinstance(node, syntax.Subshell):
            return self._apart(node.body, state)
        if isinstance(node, syntax.Function):
            state.functions[node.name] = node.body
            state.status = True
            return [state]
        if isinstance(node, syntax.Test):
            pairs = [
                (self.expander.text(word, state), self.expander.pattern(word, state))
                for word in node.words
            ]
            state.status = Condition(self.view, state).decide(pairs)
            return [state]
        if isinstance(node, syntax.Arithmetic):
            for name in node.changed:
                state.set(name, UNKNOWN)
            state.status = None
            return [state]
        return self._branched(node, state)

    def _branched(
        self, node: syntax.If | syntax.Loop | syntax.For | syntax.Switch, state: State
    ) -> list[State]:
        if isinstance(node, syntax.If):
            ended: list[State] = []
            states = [state]
            for condition, body in node.branches:
                runs, rests = (
                    (states, [])
                    if condition is None
                    else split(self._each(condition, states), wanted=True)
                )
                ended += self._each(body, runs)
                states = rests
            for rest in states:
                rest.status = True if not rest.over else rest.status
            return distinct([*ended, *states])
        if isinstance(node, syntax.Loop):
            return self._loop(node, state)
        if isinstance(node, syntax.For):
            return self._for(node, state)
        return self._case(node, state)

    # Each command runs in a shell of its own, of which no more is left than what it started and printed.
    def _apart(self, node: syntax.Node, state: State) -> list[State]:
        states = []
        for result in self._each(node, [state.copy()]):
            after = state.copy()
            after.started, after.unknown, after.status = (
                result.started,
                result.unknown,
                result.status,
            )
            after.printed = result.printed
            states.append(after)
        return states

    def _pipeline(self, node: syntax.Pipeline, state: State) -> list[State]:
        states = [state]
        for command in node.commands:
            states = [result for each in states for result in self._apart(command, each)]
        for result in states:
            if node.negated and result.status is not None:
                result.status = not result.status
            if len(node.commands) > 1 and result.printed is not None:
                result.printed = UNKNOWN
        return distinct(states)

    def _loop(self, node: syntax.Loop, state: State) -> list[State]:
        ended: list[State] = []
        known: dict[object, State] = {}
        states = [state]
        for _ in range(_MOST_ROUNDS):
            runs, rests = split(self._each(node.condition, states), wanted=node.word != "until")
            again, broken = after_round(self._each(node.body, runs))
            ended += [*rests, *broken]
            states = [result for result in again if result.key() not in known]
            known |= {result.key(): result.copy() for result in states}
            if not states:
                break
        for result in states:
            result.taint()
        if not ended and not states:
            # It never ends: what it started is what runs.
            states = [*known.values()]
            for result in states:
                result.over = "exec"
        return distinct([*ended, *states])

    def _for(self, node: syntax.For, state: State) -> list[State]:
        words = state.arguments if node.words is None else self.expander.words(node.words, state)
        ended: list[State] = []
        states = [state]
        for word in words:
            # A word that is not known may be none.
            skipped = [result.copy() for result in states] if UNKNOWN in word else []
            for result in states:
                result.set(node.name, word)
            again, broken = after_round(self._each(node.body, states))
            ended += broken
            states = distinct([*again, *skipped])
        return distinct([*ended, *states])

    def _case(self, node: syntax.Switch, state: State) -> list[State]:
        text = self.expander.text(node.word, state)
        ended: list[State] = []
        for patterns, body in node.branches:
            matched: bool | None = False
            for pattern in patterns:
                result = matches(text, self.expander.pattern(pattern, state))
                matched = result if matched is False or result else matched
            if matched is not False:
                ended += self._each(body, [state.copy()])
            if matched:
                return distinct(ended)
        state.status = True
        return distinct([*ended, state])

    # A command, after its words are expanded.
    def _simple(self, node: syntax.Simple, state: State) -> list[State]:
        assigned = [(result, self.expander.values(result, state)) for result in node.assignments]
        declared = [
            (word, self.expander.values(word, state))
            if isinstance(word, syntax.Assignment)
            else word
            for word in node.words
        ]
        if not declared:
            for assignment, values in assigned:
                assign(state, assignment, values)
            has_output = any(
                isinstance(part, syntax.Output)
                for result in node.assignments
                for word in result.values
                for part in word
            )
            state.status = state.status if has_output else True
            return [state]
        words: list[str] = []
        for word in declared:
            if isinstance(word[0], syntax.Assignment):
                assignment, values = word
                if words and words[0] in LOCAL:
                    state.shadow(assignment.name)
                assign(state, assignment, values)
                words.append(assignment.name)
            else:
                words += self.expander.expanded(word, state)
        if len(words) > _MOST_WORDS:
            raise UnreadScript
        if not words:
            return [state]
        before = {result.name: " ".join(values) for result, values in assigned}
        return self._command(words, state, before)

    def _command(self, words: list[str], state: State, before: Mapping[str, str]) -> list[State]:
        name = words[0]
        if name in ("command", "builtin") and words[1:2] and not words[1].startswith("-"):
            return self._command(words[1:], state, before)
        if (
            name in CONDA
            and name in state.functions
            and words[1:2] in (["activate"], ["deactivate"])
        ):
            return self._conda(words, state)
        if name in state.functions:
            return self._call(state.functions[name], words, state, before)
        if name in _BUILTINS:
            for variable, value in before.items() if name in _RUNNING else ():
                state.set(variable, value)
                state.exported.add(variable)
            done = _BUILTINS[name](self, words, state)
            return [state] if done is None else done
        if name in ("break", "continue", "return", "exit"):
            number = words[1] if len(words) > 1 else ""
            if name in ("return", "exit") and number:
                state.status = number == "0" if number.isdecimal() else None
            state.over = name
            return [state]
        if name in _DECLARES:
            declare(words, state)
            return [state]
        if name in _WITHOUT_EFFECT or name in _SILENT:
            state.status = True if name in _WITHOUT_EFFECT else None
            return [state]
        return self._program(words, state, before)

    def _program(self, words: list[str], state: State, before: Mapping[str, str]) -> list[State]:
        if state.printed is not None:
            state.printed += self._printed(words, state)
        state.status = None
        # Nobody knows what it is that starts.
        if UNKNOWN in words[0]:
            state.taint()
            return [state]
        states = []
        for ending in self.start(words, {**state.env(), **before}, state.folder, state.where):
            after = state.copy()
            if ending.started != after.started[-len(ending.started) :] or not ending.started:
                after.started += ending.started
            after.unknown = after.unknown or ending.unknown
            states.append(after)
        return distinct(states) or [state]

    # What some programs print; of others it is not known.
    def _printed(self, words: list[str], state: State) -> str:
        name, rest = posixpath.basename(words[0]), [word for word in words[1:] if word[:1] != "-"]
        if any(UNKNOWN in word for word in words):
            return UNKNOWN
        if name == "dirname" and rest:
            return posixpath.dirname(rest[0].rstrip("/")) or ("/" if rest[0][:1] == "/" else ".")
        if name == "basename" and len(rest) == 1:
            return posixpath.basename(rest[0].rstrip("/"))
        if name in ("readlink", "realpath") and rest and (name == "realpath" or "-f" in words):
            real = self.view.tree.real(posixpath.join(state.folder, rest[-1]))
            return UNKNOWN if real is None else f"/{real}"
        if name == "which" and rest:
            return self._which(rest[0], state)
        if name == "id" and words[1:] == ["-u"] and self.view.user >= 0:
            return str(self.view.user)
        if name == "uname" and len(words) == 1:
            return "Linux"
        if name in CONDA and any(word.startswith("shell") for word in words) and "hook" in words:
            # Functions, of which only the names matter here, and in conda what enters the base.
            defined = "".join(f"{name}() {{ :; }}\n" for name in CONDA)
            return defined + ("conda activate base" if name == "conda" else "")
        return UNKNOWN

    def _which(self, name: str, state: State) -> str:
        if UNKNOWN in name or UNKNOWN in state.variables.get("PATH", ""):
            return UNKNOWN
        if "/" in name:
            path = posixpath.join(state.folder, name)
            return path if self.view.is_runnable(path) else ""
        path = self.view.which(name, state.variables)
        return f"/{path}" if path else ""

    def _call(
        self, body: syntax.Node | None, words: list[str], state: State, before: Mapping[str, str]
    ) -> list[State]:
        arguments, state.arguments = state.arguments, tuple(words[1:])
        shadowed, state.shadowed = state.shadowed, {}
        for variable, value in before.items():
            state.shadow(variable)
            state.set(variable, value)
            state.exported.add(variable)
        states = self._each(body, [state]) if body is not None else [state]
        for result in states:
            result.arguments = arguments
            result.restore(shadowed)
            result.over = "" if result.over == "return" else result.over
        return states

    def _conda(self, words: list[str], state: State) -> list[State]:
        names = [word for word in words[2:] if not word.startswith("-")]
        prefix = self.activate(names[0] if names else "base", state.env(), state.folder)
        state.status = bool(prefix)
        if words[1] == "deactivate" or UNKNOWN in "".join(words):
            state.taint()
        if not prefix:
            return [state]
        state.set("PATH", f"/{prefix}/bin:{state.variables.get('PATH', '')}")
        states = [state]
        for path in self.view.tree.glob(f"{prefix}/etc/conda/activate.d/*.sh"):
            states = [result for each in states for result in self._source(each, f"/{path}")]
        return states

    def _source(self, state: State, path: str, arguments: Sequence[str] = ()) -> list[State]:
        place = posixpath.normpath(posixpath.join(state.folder, path))
        entry = self.view.tree.entry(place)
        script = entry.content if entry is not None else None
        if _OF_CONDA.fullmatch(place):
            # It adds functions.
            state.functions |= dict.fromkeys(CONDA)
            return [state]
        folder = posixpath.dirname(posixpath.dirname(place))
        if posixpath.basename(place) == "activate" and self.view.tree.names(f"{folder}/conda-meta"):
            state.functions |= dict.fromkeys(CONDA)
            return self._conda(["conda", "activate", *(arguments or [folder])], state)
        if not isinstance(script, Script) or script.is_cut:
            state.taint(place.replace(UNKNOWN, "..."))
            return [state]
        old, state.arguments = state.arguments, tuple(arguments) or state.arguments
        variable, state.variables["BASH_SOURCE"] = state.variables.get("BASH_SOURCE", ""), place
        states = self._each(syntax.parse(script.text), [state])
        for result in states:
            result.over = "" if result.over == "return" else result.over
            result.arguments = old if arguments else result.arguments
            result.variables["BASH_SOURCE"] = variable
        return states

    def _output(self, body: syntax.Sequential, state: State) -> str:
        inner = state.copy()
        inner.printed = ""
        ended = self._each(body, [inner])
        statuses = {result.status for result in ended}
        state.status = statuses.pop() if len(statuses) == 1 else None
        texts = {
            result.printed or "" if result.unknown == state.unknown else UNKNOWN for result in ended
        }
        return texts.pop().rstrip("\n") if len(texts) == 1 else UNKNOWN

    # Commands of the shell itself.

    def _cd(self, words: list[str], state: State) -> None:
        names = [word for word in words[1:] if not OPTION.fullmatch(word)]
        folder = names[0] if names else state.variables.get("HOME", UNKNOWN)
        place = posixpath.normpath(posixpath.join(state.folder, folder))
        if words[0] == "popd" or folder == "-" or UNKNOWN in place:
            state.folder, state.status = UNKNOWN, None
            return
        entry = self.view.tree.entry(place)
        state.status = (entry is not None and entry.kind == DIRECTORY) or place == "/"
        state.folder = place if state.status else state.folder

    def _set(self, words: list[str], state: State) -> None:
        rest = list(words[1:])
        while rest and OPTION.fullmatch(rest[0]):
            option = rest.pop(0)
            named = rest.pop(0) if option[1:].endswith("o") and rest else ""
            if "a" in option or named == "allexport":
                state.exports_all = option[0] == "-"
        if rest:
            state.arguments = tuple(rest[1:] if rest[0] in ("--", "-") else rest)
        state.status = True

    def _shopt(self, words: list[str], state: State) -> None:
        if "nullglob" in words:
            state.drops_unmatched = "-s" in words
        state.status = True

    def _unset(self, words: list[str], state: State) -> None:
        for name in words[1:]:
            state.variables.pop(name, None)
            state.arrays.pop(name, None)
        state.status = True

    def _shift(self, words: list[str], state: State) -> None:
        text = words[1] if len(words) > 1 else "1"
        if not text.isdecimal():
            state.taint()
            return
        state.status = int(text) <= len(state.arguments)
        state.arguments = state.arguments[int(text) if state.status else 0 :]

    def _read(self, words: list[str], state: State) -> None:
        for name in filter(_NAME.fullmatch, words[1:]):
            state.set(name, UNKNOWN)
        state.status = None

    def _echo(self, words: list[str], state: State) -> None:
        state.status = True
        if words[0] == "printf" and words[1:2] == ["-v"]:
            self._read(words[1:3], state)
        elif state.printed is not None:
            texts = words[2:] if words[1:2] in (["-n"], ["%s"], ["%s\\n"]) else words[1:]
            text = " ".join(texts)
            is_plain = len(texts) == 1 or words[0] == "echo"
            state.printed += text if is_plain and not re.search(r"[\\%]|^-[eE]", text) else UNKNOWN

    def _pwd(self, _: list[str], state: State) -> None:
        state.printed = None if state.printed is None else state.printed + state.folder
        state.status = True

    def _tested(self, words: list[str], state: State) -> None:
        texts = words[1:-1] if words[0] == "[" else words[1:]
        state.status = Condition(self.view, state).decide([(text, literal(text)) for text in texts])

    def _look_up(self, words: list[str], state: State) -> list[State] | None:
        names = [word for word in words[1:] if not word.startswith("-")]
        if words[0] == "command" and words[1:2] not in (["-v"], ["-V"]):
            return self._command(names, state, {}) if names else None
        state.status = True
        for name in names:
            own = name in state.functions or name in _BUILTINS or name in _WITHOUT_EFFECT
            path = name if own else self._which(name, state)
            state.status = None if UNKNOWN in path else state.status and bool(path)
            if state.printed is not None:
                state.printed += UNKNOWN if words[1:2] != ["-v"] and words[0] != "which" else path
        return None

    def _dot(self, words: list[str], state: State) -> list[State] | None:
        if len(words) < 2:
            state.status = False
            return None
        name = words[1]
        path = name if "/" in name else self._which(name, state) or name
        return self._source(state, path, words[2:])

    def _eval(self, words: list[str], state: State) -> list[State] | None:
        text = " ".join(words[1:])
        if UNKNOWN in text:
            state.taint()
            return None
        return self._each(syntax.parse(text), [state])

    def _exec(self, words: list[str], state: State) -> list[State] | None:
        rest = list(words[1:])
        while rest and OPTION.fullmatch(rest[0]):
            option = rest.pop(0)
            if "c" in option:
                state.exported.clear()
            if option.endswith("a") and rest:
                rest.pop(0)
        if not rest:
            return None
        states = self._program(rest, state, {})
        for result in states:
            result.over = "exec"
        return states

    def _false(self, _: list[str], state: State) -> None:
        state.status = False


_BUILTINS: dict[str, Callable[[Shell, list[str], State], list[State] | None]] = {
    **dict.fromkeys(("cd", "pushd", "popd"), Shell._cd),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "let"), Shell._read),
    **dict.fromkeys(("echo", "printf"), Shell._echo),
    **dict.fromkeys(("[", "test"), Shell._tested),
    **dict.fromkeys(("command", "type", "hash", "which"), Shell._look_up),
    **dict.fromkeys((".", "source"), Shell._dot),
    "set": Shell._set,
    "shopt": Shell._shopt,
    "unset": Shell._unset,
    "shift": Shell._shift,
    "pwd": Shell._pwd,
    "eval": Shell._eval,
    "exec": Shell._exec,
    "false": Shell._false,
}
