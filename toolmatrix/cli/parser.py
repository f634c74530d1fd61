"""Arguments into a command, its arguments and the options given; nothing is looked up elsewhere."""

from __future__ import annotations

from toolmatrix.command import COMMANDS, all_options
from toolmatrix.command.options import COMMON, REQUEST
from toolmatrix.errors import UsageError
from toolmatrix.request.fields import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from toolmatrix.command import Command
    from toolmatrix.command.option import Option


# Similarity above which an unknown flag is surely a misspelt one.
_SURELY = 0.85

_OF_RESULT = ("format", "output", "color", "quiet", "verbose", "no_progress")

# Options under the names that other programs have for them.
_SYNONYMS = {"--gpu": "--device", "--os": "--distro"}
_COMMANDS = {
    **dict.fromkeys(("install", "add", "solve", "tree"), "resolve"),
    **dict.fromkeys(("ls", "components"), "list"),
    **dict.fromkeys(("find", "grep"), "search"),
    **dict.fromkeys(("info", "which", "versions", "releases"), "show"),
    **dict.fromkeys(("why", "depends"), "explain"),
    **dict.fromkeys(("freeze", "pin"), "lock"),
    **dict.fromkeys(("outdated", "update"), "upgrade"),
    **dict.fromkeys(("lint", "verify"), "check"),
    **dict.fromkeys(("version", "--v"), "--version"),
    "man": "help --man",
}


class Parsed:
    """The parsed command line; `title_words` are its words without those about output format and file."""

    __slots__ = ("_command", "_table", "arguments", "flags", "passed", "title_words", "values")

    def __init__(self) -> None:
        self._command: Command | None = None
        self._table = _by_flag(COMMON | REQUEST)
        self.arguments: list[str] = []
        self.title_words: list[str] = []
        self.passed: list[str] = []
        self.values: dict[str, Any] = {}
        self.flags: dict[str, str] = {}

    @property
    def command(self) -> Command | None:
        """The command; None until its name is read."""
        return self._command

    @command.setter
    def command(self, command: Command | None) -> None:
        self._command = command
        if command is not None:
            self._table = _by_flag(command.options)

    def option(self, flag: str) -> tuple[Option | None, str]:
        """The option of a flag, None where no command has it, and the value that a shorthand stands for."""
        entry: tuple[Option | None, str] | None = self._table.get(flag) or self.every().get(flag)
        return entry or (None, "")

    def every(self) -> Mapping[str, tuple[Option, str]]:
        """Each flag of any command with its option."""
        # All commands are imported only for a flag that the command does not have, or that comes before it.
        return _by_flag(all_options())


def _by_flag(options: Mapping[str, Option]) -> dict[str, tuple[Option, str]]:
    by_flag: dict[str, tuple[Option, str]] = {}
    for option in options.values():
        for flag in option.flags:
            by_flag[flag] = option, ""
        for flag, value in option.shorthand.items():
            by_flag[flag] = option, value
    return by_flag


# Not `argparse`: with what it imports it doubles the time of an interpreter that does nothing, and its messages change
# from one Python to the next. All flags share one table, so options may stand anywhere, before the command too.
def parse(argv: Sequence[str]) -> Parsed:
    """Parse `argv`; raises UsageError."""
    parsed = Parsed()
    # Reversed, so that a flag can pop its value.
    words = list(reversed(argv))
    while words:
        start = len(argv) - len(words)
        word = words.pop()
        if word == "--":
            if parsed.command is not None and parsed.command.passthrough:
                parsed.passed = words[::-1]
                break
            for rest in reversed(words):
                _positional(parsed, rest)
            break
        if word.startswith("--"):
            _long(parsed, word, words)
        elif word.startswith("-") and word != "-":
            _short(parsed, word, words)
        else:
            _positional(parsed, word)
        option, _ = parsed.option(word.partition("=")[0]) if word[:1] == "-" else (None, "")
        if option is None or option.name not in _OF_RESULT:
            parsed.title_words += argv[start : len(argv) - len(words)]
        # Ignore what follows `--help` or `--version`: the command line may be incomplete.
        if "help" in parsed.values or "version" in parsed.values:
            named = next((COMMANDS[rest] for rest in reversed(words) if rest in COMMANDS), None)
            parsed.command = parsed.command or named
            return parsed
    _check_options(parsed)
    return parsed


def _positional(parsed: Parsed, word: str) -> None:
    if parsed.command is not None:
        parsed.arguments.append(word)
    elif word in COMMANDS:
        parsed.command = COMMANDS[word]
    else:
        raise UsageError(f"unknown command `{word}`", help=_command_help(word))


def _command_help(word: str) -> str:
    if any(sign in word for sign in "=<>~"):
        return f"did you mean `toolmatrix resolve '{word}'`?"
    from toolmatrix.request.spelling import suggestion

    if word.lower() in _COMMANDS:
        return f"did you mean `{_COMMANDS[word.lower()]}`?"
    otherwise = "`toolmatrix help` lists the commands; `toolmatrix search TEXT` finds names"
    return suggestion(word, tuple(COMMANDS), otherwise)


def _long(parsed: Parsed, word: str, words: list[str]) -> None:
    flag, equals, value = word.partition("=")
    option, shorthand_value = parsed.option(flag)
    if option is None:
        raise _unknown(parsed, flag, value if equals else words[-1] if words else "")
    if shorthand_value or not option.takes_value:
        if equals:
            raise UsageError(f"option `{flag}` takes no value", found=f"`{value}`")
        _set(parsed, option, flag, shorthand_value)
    else:
        _set(parsed, option, flag, value if equals else _next_value(option, flag, words))


def _short(parsed: Parsed, word: str, words: list[str]) -> None:
    # `-qqo FILE` is `-q -q -o FILE`, as getopt(3) reads it.
    letters = word[1:]
    while letters:
        flag, letters = "-" + letters[0], letters[1:]
        option, _ = parsed.option(flag)
        if option is None:
            raise _unknown(parsed, word if flag == word[:2] else flag)
        if option.takes_value:
            value = letters.removeprefix("=") if letters else _next_value(option, flag, words)
            _set(parsed, option, flag, value)
            return
        _set(parsed, option, flag, "")


def _next_value(option: Option, flag: str, words: list[str]) -> str:
    # `--arch --json` lacks a value; one that begins with a dash is written `--arch=-x`.
    if not words or (words[-1].startswith("-") and words[-1] != "-"):
        following = f"`{words[-1]}`" if words else "the end of the line"
        raise UsageError(f"option `{flag}` needs a value", expected=option.metavar, found=following)
    return words.pop()


def _unknown(parsed: Parsed, flag: str, value: str = "") -> UsageError:
    from toolmatrix.request.spelling import as_option, closest

    known = tuple(_by_flag(parsed.command.options) if parsed.command else parsed.every())
    close = closest(flag, known)
    if flag in _SYNONYMS:
        # Imports `re`, which only this error needs.
        import shlex

        close = _SYNONYMS[flag]
        if value[:1] not in ("", "-"):
            close += f" {shlex.quote(value)}"
    # A flag that is very similar is misspelt.
    elif "--with" in known and not closest(flag, known, _SURELY):
        # With a version, as in `--cuda 11.2`, it is something to keep; without one, `--cuda` may be a value.
        has_version = value[:1].isdigit()
        close = _holding(flag, value) if has_version else as_option(flag[2:]) or close
    command = f" {parsed.command.name}" if parsed.command else ""
    help = f"did you mean `{close}`?" if close else f"`toolmatrix help{command}` lists the options"
    return UsageError(f"unknown option `{flag}`", help=help)


def _holding(flag: str, value: str) -> str:
    return f"--with {flag[2:]}=={value}"


def _set(parsed: Parsed, option: Option, flag: str, text: str) -> None:
    before = parsed.values.get(option.name)
    if option.kind == "flag":
        value: Any = True
    elif option.kind == "count":
        value = (before or 0) + 1
    else:
        try:
            value = option.read(text)
        except BadValue as bad:
            raise bad.about(UsageError, f"`{flag}`") from None
        if option.kind == "list":
            value = (before or ()) + value
        # The same value twice is no contradiction: scripts append options to those of others.
        elif before not in (None, value):
            first = parsed.flags[option.name]
            second = flag if flag in option.shorthand else f"{flag} {text}"
            raise UsageError(f"`{first}` and `{second}` contradict each other")
    parsed.values[option.name] = value
    parsed.flags[option.name] = f"{flag} {text}" if text and flag in option.flags else flag


def _check_options(parsed: Parsed) -> None:
    command = parsed.command
    if command is None:
        return
    for name, flag in parsed.flags.items():
        if name not in command.options:
            flag, _, value = flag.partition(" ")
            others = [f"`{other.name}`" for other in COMMANDS.values() if name in other.own]
            if name in REQUEST:
                others.insert(0, "`resolve`")
            help = f"it belongs to {' and '.join(others)}"
            if value[:1].isdigit() and "with_" in command.options:
                help = f"did you mean `{_holding(flag, value)}`?"
            raise UsageError(f"`{command.name}` has no option `{flag}`", help=help)
