"""Every option, declared once: flags, type, meaning, default, and where else it can be set.

The parser, the environment variables, the configuration files, `toolmatrix config`, the help pages
and the completion scripts are all derived from the fields of `Options`.
"""

from __future__ import annotations

from toolmatrix.cli.option import Option, option
from toolmatrix.facts.evidence import WORDS
from toolmatrix.request.fields import PREFERENCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Self


def _every_format() -> tuple[str, ...]:
    from toolmatrix.cli.commands import every_format

    return every_format()


class Options:
    """The options of one run, read as attributes; a field's annotation is the type of its value."""

    target: tuple[str, ...] = option(
        "--target",
        metavar="LIST",
        group="request",
        completer="target",
        help="where the result runs, such as x86, arm or amd, or several: x86,arm",
    )
    from_: str = option(
        "--from",
        metavar="WORD",
        group="request",
        completer="from",
        help="how the framework gets there, such as source or wheel",
    )
    accelerator: str = option(
        "--accelerator",
        metavar="WORD",
        group="request",
        completer="accelerator",
        help="what computes beside the CPU, such as none, cuda or rocm",
    )
    arch: tuple[str, ...] = option(
        "--arch",
        metavar="LIST",
        group="request",
        completer="arch",
        help="make code for these; the toolkit must know them",
    )
    device: tuple[str, ...] = option(
        "--device",
        metavar="LIST",
        group="request",
        completer="device",
        help="run on these devices",
    )
    cpu: str = option(
        "--cpu",
        metavar="NAME",
        group="request",
        help="make code for this CPU",
    )
    distro: str = option(
        "--distro",
        metavar="NAME",
        group="request",
        completer="distro",
        help="run on this distribution",
    )
    with_: tuple[str, ...] = option(
        "--with",
        metavar="SPEC",
        group="request",
        completer="release",
        split=False,
        help="what you hold, such as a release that must stay; repeatable",
    )
    prefer: str = option(
        "--prefer",
        metavar="WORD",
        group="request",
        choices=PREFERENCES,
        default="best-evidence",
        help="which of several answers to take",
    )
    keep: str = option(
        "--keep",
        metavar="LOCK",
        group="request",
        completer="file",
        shape="path",
        help="prefer what this lock holds",
    )
    align: tuple[str, ...] = option(
        "--align",
        metavar="LIST",
        group="request",
        completer="component",
        help="components that must be the same on every target",
    )
    depth: int | None = option(
        "--depth", metavar="N", group="request", help="how deep a tree or derivation is printed"
    )
    ascii: bool = option("--ascii", group="request", help="draw trees with plain characters")
    all: bool = option(
        "--all", group="request", help="show what is usually left out; take subjects from files"
    )

    rows: str = option(
        "--rows",
        metavar="NAME",
        group="own",
        completer="component",
        help="component that the rows go through",
    )
    cols: str = option(
        "--cols",
        metavar="NAME",
        group="own",
        completer="component",
        help="component that the columns go through",
    )
    where: tuple[str, ...] = option(
        "--where",
        metavar="SPEC",
        group="own",
        completer="release",
        split=False,
        help="only these releases; repeatable",
    )
    cells: bool = option(
        "--cells",
        group="own",
        help="list every consistent combination of rows and columns, for a CI matrix",
    )
    check: bool = option("--check", group="own", help="verify and write nothing")
    upgrade: tuple[str, ...] = option(
        "--upgrade",
        metavar="NAME",
        group="own",
        completer="component",
        excludes=("check",),
        help="let this component move; repeatable",
    )
    environment: str = option(
        "--environment",
        metavar="NAME",
        group="own",
        configurable=False,
        help="ask what this environment of the settings asks, with its options",
    )
    invert: bool = option("--invert", group="own", help="show what depends on it instead")
    source: str = option("--source", metavar="NAME", group="own", help="only what this source says")
    stale: int | None = option(
        "--stale", metavar="DAYS", group="own", help="report facts read more than DAYS days ago"
    )
    limit: int | None = option(
        "--limit", metavar="N", group="own", help="tell at most so many, 0 for all"
    )
    exit_code: bool = option("--exit-code", group="own", help="exit with 1 when there is a change")

    from_log: str = option(
        "--from-log",
        metavar="FILE",
        group="own",
        completer="file",
        shape="path",
        configurable=False,
        help="read what a driver printed, from a saved log or, with `-`, from stdin",
    )
    driver: str = option(
        "--driver",
        metavar="PATH",
        group="own",
        completer="file",
        configurable=False,
        help="the nvcc, hipcc or clang++ to ask, by name or path",
    )
    explain: bool = option(
        "--explain", group="own", help="say of each stage what it does and which flag changes it"
    )
    only: tuple[str, ...] = option(
        "--only",
        metavar="NAME",
        group="own",
        completer="only",
        configurable=False,
        help="only these: codegen archs of stages, checks by name or kind, files of facts; repeatable",
    )
    since: str = option(
        "--since",
        metavar="STAGE",
        group="own",
        configurable=False,
        help="this stage and those that wait for it: a number, a kind, a tool, or KIND:ARCH",
    )
    until: str = option(
        "--until",
        metavar="STAGE",
        group="own",
        configurable=False,
        help="this stage and those that it waits for",
    )
    run: bool = option("--run", group="own", only_flag=True, help="run the stages and measure each")
    verify: bool = option(
        "--verify",
        group="own",
        only_flag=True,
        help="run the stages and the driver, and compare what they make",
    )
    timeout: int | None = option(
        "--timeout",
        metavar="SECONDS",
        group="own",
        help="end a driver that takes longer, or the judging of a subject (3600)",
    )
    cpu_time: int | None = option(
        "--cpu-time",
        metavar="SECONDS",
        group="own",
        default=1800,
        help="end the judging of a subject that takes more processor time",
    )
    memory: int | None = option(
        "--memory",
        metavar="MIB",
        group="own",
        default=2048,
        help="end the judging of a subject that takes more memory",
    )
    jobs: int | None = option(
        "--jobs", metavar="N", group="own", help="do at most so many at a time"
    )
    keep_dir: str = option(
        "--keep-dir",
        metavar="DIR",
        group="own",
        completer="dir",
        shape="path",
        configurable=False,
        help="keep there what a run writes on its way",
    )
    cost: str = option(
        "--cost",
        metavar="FILE",
        group="own",
        completer="file",
        shape="path",
        configurable=False,
        help="add what stages cost, from the CSV of `nvcc -time` or the JSON of a run",
    )

    recipe: str = option(
        "--recipe",
        metavar="NAME",
        group="own",
        completer="file",
        default="toolchain",
        help="what is built: a built-in recipe, or the path of one",
    )
    base: tuple[str, ...] = option(
        "--base",
        metavar="IMAGE=STAND-IN",
        group="own",
        split=False,
        help="start from another image in the place of one; repeatable",
    )
    stdout: bool = option("--stdout", group="own", help="print the files and write none")
    force: bool = option(
        "--force",
        group="own",
        only_flag=True,
        help="replace files that were edited by hand or that somebody else wrote",
    )
    dialect: str = option(
        "--dialect",
        metavar="NAME",
        group="own",
        choices=("modern", "classic"),
        default="modern",
        help="which Dockerfiles: those of BuildKit today, or those that Docker 20.10 and buildah read",
    )
    syntax_line: str = option(
        "--syntax-line",
        metavar="WHICH",
        group="own",
        help="the first line of Dockerfiles: on, off, or the image that it names",
    )
    strict: bool = option(
        "--strict",
        group="own",
        help="take warnings for failures; of `render`: refuse downloads and base images that nothing pins",
    )
    option_: tuple[str, ...] = option(
        "--option",
        metavar="NAME",
        group="own",
        configurable=False,
        help="switch on an option of the recipe; repeatable",
    )
    list_formats: bool = option(
        "--list-formats", group="own", only_flag=True, help="show what can be written"
    )
    list_checks: bool = option(
        "--list-checks", group="own", configurable=False, help="say what can be checked"
    )
    expect: tuple[str, ...] = option(
        "--expect",
        metavar="WORD",
        group="own",
        split=False,
        configurable=False,
        help="what must hold, such as `gcc==12.*` or `arch==arm64`; repeatable",
    )
    expect_file: str = option(
        "--expect-file",
        metavar="FILE",
        group="own",
        completer="file",
        shape="path",
        configurable=False,
        help="expectations, one a line",
    )
    platform: str = option(
        "--platform",
        metavar="NAME",
        group="own",
        configurable=False,
        help="which image of an index, such as linux/arm64",
    )
    no_run: bool = option(
        "--no-run", group="own", help="start no program of an image that could be run: only read it"
    )
    resume: str = option(
        "--resume",
        metavar="FILE",
        group="own",
        completer="file",
        shape="path",
        configurable=False,
        help="keep results there as they come, and leave out those it has",
    )

    help: bool = option("-h", "--help", only_flag=True, help="show this help")
    version: bool = option(
        "-V",
        "--version",
        only_flag=True,
        help="show the version, the matrix date and the number of facts",
    )
    quiet: int = option(
        "-q", "--quiet", excludes=("verbose",), help="no talk; -qq leaves the exit code alone"
    )
    verbose: int = option("-v", "--verbose", help="more talk; -vv shows tracebacks")
    color: str = option(
        "--color",
        metavar="WHEN",
        choices=("auto", "always", "never"),
        default="auto",
        shorthand={"--no-color": "never"},
        help="when to colour",
    )
    no_progress: bool = option("--no-progress", help="no progress lines")
    format: str = option(
        "--format",
        metavar="NAME",
        choices=_every_format,
        default="text",
        many=True,
        shorthand={
            f"--{name}": name
            for name in ("json", "raw", "dot", "mermaid", "svg", "script", "ninja")
        },
        help="form of the result",
    )
    output: str = option(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        completer="file",
        shape="path",
        configurable=False,
        help="write the result there",
    )
    matrix: tuple[str, ...] = option(
        "-m",
        "--matrix",
        metavar="FILE",
        completer="file",
        shape="path",
        split=False,
        help="a matrix of your own that adds to the built-in one; repeatable",
    )
    lock: str = option(
        "-l",
        "--lock",
        metavar="FILE",
        completer="file",
        shape="path",
        default="toolmatrix.lock",
        help="the lock to read or write",
    )
    directory: str = option(
        "-C",
        "--directory",
        metavar="DIR",
        completer="dir",
        configurable=False,
        help="the directory that paths are relative to",
    )
    online: bool = option("--online", help="allow the network; nothing uses it yet")
    at: str = option("--at", metavar="DATE", shape="date", help="the matrix as known that day")
    min_evidence: str = option(
        "--min-evidence",
        metavar="WORD",
        choices=WORDS,
        default="unknown",
        help="refuse what is known less well",
    )
    exit_zero: bool = option("--exit-zero", help="exit with 0 where the answer is no")

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
    for one in OPTIONS.values():
        found |= dict.fromkeys(one.flags, (one, ""))
        found |= {flag: (one, value) for flag, value in one.shorthand.items()}
    return found
