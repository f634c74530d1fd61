"""Options: their declarations, and how their values are read from the command line, variables and TOML files."""

from __future__ import annotations

from toolmatrix.request.fields import BadValue, is_date, pick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


# Maximum digits of a number, and characters of a bad value that an error shows.
_DIGITS, _EXCERPT = 18, 40
_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")
# The kind of an option by the annotation of its parameter or field.
_KINDS = {
    **dict.fromkeys(("bool",), "flag"),
    **dict.fromkeys(("int", "int | None"), "number"),
    **dict.fromkeys(("str", "Path", "Path | None"), "text"),
    **dict.fromkeys(("tuple[str, ...]", "Words", "Wanted", "Path | Iterable[Path]"), "list"),
}
_TOML: Mapping[str, tuple[type, str]] = {
    "flag": (bool, "true or false"),
    "count": (int, "a whole number, 0 or more"),
    "number": (int, "a whole number, 0 or more"),
    "text": (str, "a string"),
}
_METAVARS = {"list": "LIST", "number": "N", "text": "NAME"}
_EMPTY: Mapping[str, Any] = {"flag": False, "count": 0, "number": None, "text": "", "list": ()}


class Option:
    """One declaration; `name` and `kind` come from the parameter or field whose default it is."""

    flags: tuple[str, ...]
    help: str
    metavar = ""
    group = "own"
    completer = ""
    # It is set by a flag alone, or by a flag or variable but no file.
    cli_only = False
    configurable = True
    default: Any = None
    excludes: tuple[str, ...] = ()
    # The formats that are available with it, if not all of the command.
    formats: tuple[str, ...] = ()
    # `path`, `date` or nothing.
    shape = ""
    shorthand: Mapping[str, str] = {}
    # A value is a list with commas; of a text that may name many, each word is one of the choices.
    split = True
    multiple = False
    # The allowed values, or a function that lists them if that needs imports.
    allowed: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    name = ""
    kind = ""

    def __init__(self, declared: dict[str, Any]) -> None:
        # Defaults are class attributes: every run creates all options.
        self.__dict__ = declared
        if self.cli_only:
            self.configurable = False

    def __set_name__(self, owner: type, name: str) -> None:
        self.belong(name, owner.__annotations__[name])

    def belong(self, name: str, annotation: str = "") -> None:
        """Take the name and the annotation of a parameter or a field."""
        self.name = name
        self.kind = self.kind or _KINDS[annotation]
        if self.default is None:
            self.default = _EMPTY[self.kind]
        if self.shape == "path":
            self.completer = self.completer or "file"
        if not self.metavar:
            self.metavar = "FILE" if self.shape == "path" else _METAVARS.get(self.kind, "")

    @property
    def key(self) -> str:
        """The name in configuration files: the long flag without its dashes."""
        return self.flags[-1][2:]

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return variable_of(self.flags[-1])

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values; empty if any is, or if the matrix decides."""
        return self.allowed() if callable(self.allowed) else self.allowed

    @property
    def takes_value(self) -> bool:
        """True if a flag is followed by a value."""
        return self.kind not in ("flag", "count")

    def short(self, choices: Iterable[str]) -> tuple[str, ...]:
        """The shorthand flags for some of the choices."""
        allowed = set(choices)
        return tuple(flag for flag, value in self.shorthand.items() if value in allowed)

    def read(self, text: str, *, from_env: bool = False) -> Any:
        """Parse a value; raises BadValue."""
        if self.kind == "flag":
            return _truth(text)
        if self.kind in ("count", "number"):
            # `isdigit` alone is true of superscripts, and `int` reads digits of other scripts.
            if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
                raise BadValue("a whole number, 0 or more", f"`{text[:_EXCERPT]}`")
            return int(text)
        if self.kind == "text":
            return self._read_text(text)
        # An empty flag is an error; an empty variable sets nothing.
        words = self._split(text, from_env) if text.strip() or from_env else [""]
        return tuple(self._read_text(word) for word in words)

    def accept(self, value: object) -> Any:
        """Check a value of a TOML file; raises BadValue."""
        if self.kind == "list":
            words = [value] if isinstance(value, str) else value
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise BadValue("a string or a list of strings", toml_kind(value))
            return tuple(item for word in words for item in self.read(word))
        # Not `isinstance`: in Python `true` is a whole number as well.
        wanted, name = _TOML[self.kind]
        if type(value) is not wanted or _is_long(value):
            raise BadValue(name, toml_kind(value))
        return value if self.kind == "flag" else self.read(str(value))

    def show(self, value: Any) -> str:
        """A value as `toolmatrix config` prints it."""
        if self.kind == "flag":
            return "true" if value else "false"
        if self.kind == "list":
            return (", " if self.split else " ").join(value)
        return "" if value is None else str(value)

    def _split(self, text: str, from_env: bool) -> list[str]:
        if self.split:
            return [word for word in (part.strip() for part in text.split(",")) if word]
        # A variable has in one text what a repeated flag has: paths separated as in PATH, requests by blanks.
        if from_env:
            return [word for word in text.split(":" if self.shape == "path" else None) if word]
        return [text]

    def _read_text(self, text: str) -> str:
        if not text:
            raise BadValue(f"a value, as in `{self.flags[-1]} {self.metavar}`", "nothing")
        if self.multiple:
            return ",".join(self._read_choice(word) for word in text.split(","))
        if self.choices:
            return pick(self.name, text, self.choices)
        if self.shape == "date" and not is_date(text):
            raise BadValue("a date such as 2026-11-20", f"`{text}`")
        return text

    def _read_choice(self, word: str) -> str:
        # A value with a shorthand is valid: listing all formats would import the renderers.
        return word if word in self.shorthand.values() else pick(self.name, word, self.choices)


def variable_of(flag: str) -> str:
    """The environment variable of a long flag: TOOLMATRIX_MIN_EVIDENCE for --min-evidence."""
    return "TOOLMATRIX_" + flag[2:].replace("-", "_").upper()


def _is_long(value: object) -> bool:
    # Python refuses to print a number with thousands of digits.
    return isinstance(value, int) and abs(value) >= 10**_DIGITS


def toml_kind(value: object) -> str:
    """A TOML value in words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if _is_long(value):
        return f"a number of more than {_DIGITS} digits"
    if isinstance(value, (str, int, float)):
        return f"`{value}`"
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, dict) else "a date or time"


def _truth(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise BadValue("1, true, yes, on, 0, false, no or off", f"`{text}`")


def option(*flags: str, **declared: Any) -> Any:
    """Declare an option: the default of a keyword argument of a command, or of a field of `Options`."""
    return Option({"flags": flags, **declared})
