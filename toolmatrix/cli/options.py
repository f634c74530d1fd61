"""Every option, declared once: flags, type, meaning, default, and where else it can be set.

The parser, the environment variables, the configuration files, `toolmatrix config`, the help pages
and the completion scripts are all derived from the fields of `Options`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Self

EVIDENCE = ("ran", "artifact", "tested", "stated", "derived", "reported", "unknown")
FORMATS = ("text", "json", "csv", "md", "html", "sarif", "github")
TARGETS = ("x86", "arm", "amd")

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")
_KINDS = {
    "bool": "flag",
    "int": "count",
    "int | None": "number",
    "str": "text",
    "tuple[str, ...]": "list",
}
_TOML: Mapping[str, tuple[type, str]] = {
    "flag": (bool, "true or false"),
    "count": (int, "a whole number, 0 or more"),
    "number": (int, "a whole number, 0 or more"),
    "text": (str, "a string"),
}
_EMPTY: Mapping[str, Any] = {"flag": False, "count": 0, "number": None, "text": "", "list": ()}


class BadValue(Exception):
    """A value that an option does not take; the caller knows where it stood."""

    def __init__(self, expected: str, found: str, help: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.found = found
        self.help = help


class Option:
    """One declaration; `name` and `kind` come from the field it is assigned to."""

    __slots__ = (
        "choices",
        "completer",
        "configurable",
        "default",
        "excludes",
        "flags",
        "group",
        "help",
        "kind",
        "metavar",
        "name",
        "shape",
        "shorthand",
        "split",
    )

    def __init__(self, flags: tuple[str, ...], **given: Any) -> None:
        self.flags = flags
        self.help: str = given["help"]
        self.metavar: str = given["metavar"]
        self.group: str = given["group"]
        self.choices: tuple[str, ...] = given["choices"]
        self.completer: str = given["completer"]
        self.configurable: bool = given["configurable"]
        self.default: Any = given["default"]
        self.excludes: tuple[str, ...] = given["excludes"]
        self.shape: str = given["shape"]
        self.shorthand: Mapping[str, str] = given["shorthand"]
        self.split: bool = given["split"]
        self.name = self.kind = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.kind = _KINDS[owner.__annotations__[name]]
        if self.default is None:
            self.default = _EMPTY[self.kind]

    @property
    def key(self) -> str:
        """The name in configuration files: the long flag without its dashes."""
        return self.flags[-1][2:]

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return variable_of(self.flags[-1])

    @property
    def takes_value(self) -> bool:
        """Whether a flag is followed by a value."""
        return self.kind not in ("flag", "count")

    def read(self, text: str, *, from_env: bool = False) -> Any:
        """The value that `text` stands for; raises BadValue."""
        if self.kind == "flag":
            return _truth(text)
        if self.kind in ("count", "number"):
            if not (text.isascii() and text.isdigit()):
                raise BadValue("a whole number, 0 or more", f"`{text}`")
            return int(text)
        if self.kind == "text":
            return self._word(text)
        return tuple(self._word(word) for word in self._words(text, from_env))

    def accept(self, value: object) -> Any:
        """The value that a value of a TOML file stands for; raises BadValue."""
        if self.kind == "list":
            words = [value] if isinstance(value, str) else value
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise BadValue("a string or a list of strings", toml_kind(value))
            return tuple(item for word in words for item in self.read(word))
        wanted, name = _TOML[self.kind]
        if type(value) is not wanted:
            raise BadValue(name, toml_kind(value))
        return value if self.kind == "flag" else self.read(str(value))

    def show(self, value: Any) -> str:
        """A value as `toolmatrix config` prints it."""
        if self.kind == "flag":
            return "true" if value else "false"
        if self.kind == "list":
            return (", " if self.split else " ").join(value)
        return "" if value is None else str(value)

    def _words(self, text: str, from_env: bool) -> list[str]:
        if self.split:
            return [word for word in (part.strip() for part in text.split(",")) if word]
        if from_env:
            return [word for word in text.split(":" if self.shape == "path" else None) if word]
        return [text]

    def _word(self, text: str) -> str:
        if not text:
            raise BadValue("something", "nothing")
        if self.choices and text not in self.choices:
            close = nearest(text, self.choices)
            help = f"did you mean `{close}`?" if close else ""
            raise BadValue("one of " + ", ".join(self.choices), f"`{text}`", help)
        if self.shape == "date" and not _is_date(text):
            raise BadValue("a date such as 2026-11-20", f"`{text}`")
        return text


def variable_of(flag: str) -> str:
    """The environment variable of a long flag: TOOLMATRIX_MIN_EVIDENCE for --min-evidence."""
    return "TOOLMATRIX_" + flag[2:].replace("-", "_").upper()


def nearest(word: str, known: tuple[str, ...]) -> str:
    """The known word that was probably meant, or nothing."""
    import difflib

    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.6)), "")


def toml_kind(value: object) -> str:
    """What a TOML value is, in words."""
    if isinstance(value, bool):
        return "true" if value else "false"
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


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _option(
    *flags: str,
    help: str,
    metavar: str = "",
    group: str = "common",
    default: object = None,
    choices: tuple[str, ...] = (),
    completer: str = "",
    configurable: bool = True,
    excludes: tuple[str, ...] = (),
    shape: str = "",
    shorthand: Mapping[str, str] | None = None,
    split: bool = True,
) -> Any:
    """Declare an option; `shape` is `path`, `date` or nothing, `split` means comma lists."""
    return Option(
        flags,
        help=help,
        metavar=metavar,
        group=group,
        default=default,
        choices=choices,
        completer=completer,
        configurable=configurable,
        excludes=excludes,
        shape=shape,
        shorthand=shorthand or {},
        split=split,
    )


class Options:
    """The options of one run, read as attributes; a field's annotation is the type of its value."""

    target: tuple[str, ...] = _option(
        "--target",
        metavar="LIST",
        group="request",
        choices=TARGETS,
        help="where the result runs",
    )
    from_: str = _option(
        "--from",
        metavar="WORD",
        group="request",
        choices=("source", "wheel"),
        help="build the framework from source or install a wheel",
    )
    accelerator: str = _option(
        "--accelerator",
        metavar="WORD",
        group="request",
        choices=("none", "cuda", "rocm"),
        help="what computes beside the CPU",
    )
    arch: tuple[str, ...] = _option(
        "--arch",
        metavar="LIST",
        group="request",
        completer="arch",
        help="make code for these; the toolkit must know them",
    )
    device: tuple[str, ...] = _option(
        "--device",
        metavar="LIST",
        group="request",
        completer="device",
        help="run on these devices",
    )
    cpu: str = _option(
        "--cpu",
        metavar="NAME",
        group="request",
        help="make code for this CPU",
    )
    distro: str = _option(
        "--distro",
        metavar="NAME",
        group="request",
        completer="distro",
        help="run on this distribution",
    )
    with_: tuple[str, ...] = _option(
        "--with",
        metavar="SPEC",
        group="request",
        completer="release",
        split=False,
        help="what you hold, such as a release that must stay; repeatable",
    )
    prefer: str = _option(
        "--prefer",
        metavar="WORD",
        group="request",
        choices=("newest", "oldest", "best-evidence"),
        default="best-evidence",
        help="which of several answers to take",
    )
    keep: str = _option(
        "--keep",
        metavar="LOCK",
        group="request",
        completer="file",
        shape="path",
        help="prefer what this lock holds",
    )
    align: tuple[str, ...] = _option(
        "--align",
        metavar="LIST",
        group="request",
        completer="component",
        help="components that must be the same on every target",
    )
    depth: int | None = _option(
        "--depth", metavar="N", group="request", help="how deep a tree or derivation is printed"
    )
    ascii: bool = _option("--ascii", group="request", help="draw trees with plain characters")
    all: bool = _option("--all", group="request", help="show what is usually left out")

    rows: str = _option(
        "--rows",
        metavar="NAME",
        group="own",
        completer="component",
        help="component that the rows go through",
    )
    cols: str = _option(
        "--cols",
        metavar="NAME",
        group="own",
        completer="component",
        help="component that the columns go through",
    )
    where: tuple[str, ...] = _option(
        "--where",
        metavar="SPEC",
        group="own",
        completer="release",
        split=False,
        help="only these releases; repeatable",
    )
    cells: bool = _option(
        "--cells",
        group="own",
        help="list every consistent combination of rows and columns, for a CI matrix",
    )
    check: bool = _option("--check", group="own", help="verify and write nothing")
    upgrade: tuple[str, ...] = _option(
        "--upgrade",
        metavar="NAME",
        group="own",
        completer="component",
        excludes=("check",),
        help="let this component move; repeatable",
    )
    environment: str = _option(
        "--environment",
        metavar="NAME",
        group="own",
        configurable=False,
        help="ask what this environment of the settings asks, with its options",
    )
    invert: bool = _option("--invert", group="own", help="show what depends on it instead")
    source: str = _option(
        "--source", metavar="NAME", group="own", help="only what this source says"
    )
    stale: int | None = _option(
        "--stale", metavar="DAYS", group="own", help="report facts read more than DAYS days ago"
    )
    exit_code: bool = _option("--exit-code", group="own", help="exit with 1 when there is a change")

    help: bool = _option("-h", "--help", configurable=False, help="show this help")
    version: bool = _option(
        "-V",
        "--version",
        configurable=False,
        help="show the version, the matrix date and the number of facts",
    )
    quiet: int = _option(
        "-q", "--quiet", excludes=("verbose",), help="no talk; -qq leaves the exit code alone"
    )
    verbose: int = _option("-v", "--verbose", help="more talk; -vv shows tracebacks")
    color: str = _option(
        "--color",
        metavar="WHEN",
        choices=("auto", "always", "never"),
        default="auto",
        shorthand={"--no-color": "never"},
        help="when to colour",
    )
    no_progress: bool = _option("--no-progress", help="no progress lines")
    format: str = _option(
        "--format",
        metavar="NAME",
        choices=FORMATS,
        default="text",
        shorthand={"--json": "json"},
        help="form of the result",
    )
    output: str = _option(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        completer="file",
        shape="path",
        configurable=False,
        help="write the result there",
    )
    matrix: tuple[str, ...] = _option(
        "-m",
        "--matrix",
        metavar="FILE",
        completer="file",
        shape="path",
        split=False,
        help="a matrix of your own that adds to the built-in one; repeatable",
    )
    lock: str = _option(
        "-l",
        "--lock",
        metavar="FILE",
        completer="file",
        shape="path",
        default="toolmatrix.lock",
        help="the lock to read or write",
    )
    directory: str = _option(
        "-C",
        "--directory",
        metavar="DIR",
        completer="dir",
        configurable=False,
        help="the directory that paths are relative to",
    )
    online: bool = _option("--online", help="allow the network; nothing uses it yet")
    at: str = _option("--at", metavar="DATE", shape="date", help="the matrix as known that day")
    min_evidence: str = _option(
        "--min-evidence",
        metavar="WORD",
        choices=EVIDENCE,
        default="unknown",
        help="refuse what is known less well",
    )
    exit_zero: bool = _option("--exit-zero", help="exit with 0 where the answer is no")

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        given = values or {}
        self.__dict__.update(
            {name: given.get(name, option.default) for name, option in OPTIONS.items()}
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("options are frozen")

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def replace(self, **changes: Any) -> Self:
        """A copy with some options changed."""
        return type(self)(self.__dict__ | changes)


OPTIONS: dict[str, Option] = {
    name: value for name, value in vars(Options).items() if isinstance(value, Option)
}
COMMON = tuple(name for name, option in OPTIONS.items() if option.group == "common")
REQUEST = tuple(name for name, option in OPTIONS.items() if option.group == "request")
BY_KEY = {option.key: option for option in OPTIONS.values()}


def by_flag() -> dict[str, tuple[Option, str]]:
    """Each flag with its option, and the value it stands for where it is a shorthand."""
    found: dict[str, tuple[Option, str]] = {}
    for option in OPTIONS.values():
        for flag in option.flags:
            found[flag] = (option, "")
        for flag, value in option.shorthand.items():
            found[flag] = (option, value)
    return found
