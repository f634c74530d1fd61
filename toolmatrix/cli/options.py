"""Every option, declared once: flags, type, meaning, default, and where else it can be set.

The parser, the environment variables, the configuration files, `toolmatrix config`, the help pages
and the completion scripts are all derived from the fields of `Options`.
"""

from __future__ import annotations

from toolmatrix.cli.option import Option, of_command, of_request, option
from toolmatrix.facts.evidence import WORDS
from toolmatrix.request.fields import PREFERENCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Self


def _every_format() -> tuple[str, ...]:
    # Commands have options, so they are imported when their formats are asked for.
    from toolmatrix.cli.commands import every_format

    return every_format()


class Options:
    """The options of one run, read as attributes; a field's annotation is the type of its value."""

    target: tuple[str, ...] = of_request(
        "--target",
        completer="target",
        help="where the result runs, such as x86, arm or amd, or several: x86,arm",
    )
    from_: str = of_request(
        "--from",
        metavar="WORD",
        completer="from",
        help="how the framework gets there, such as source or wheel; of `harvest`, `audit`: a path to read",
    )
    accelerator: str = of_request(
        "--accelerator",
        metavar="WORD",
        completer="accelerator",
        help="what computes beside the CPU, such as none, cuda or rocm",
    )
    arch: tuple[str, ...] = of_request(
        "--arch", completer="arch", help="make code for these; the toolkit must know them"
    )
    device: tuple[str, ...] = of_request(
        "--device", completer="device", help="run on these devices"
    )
    cpu: str = of_request("--cpu", help="make code for this CPU")
    distro: str = of_request("--distro", completer="distro", help="run on this distribution")
    with_: tuple[str, ...] = of_request(
        "--with",
        metavar="SPEC",
        completer="release",
        split=False,
        help="what you hold, such as a release that must stay; repeatable",
    )
    prefer: str = of_request(
        "--prefer",
        metavar="WORD",
        words=PREFERENCES,
        default="best-evidence",
        help="which of several answers to take",
    )
    keep: str = of_request(
        "--keep", metavar="LOCK", shape="path", help="prefer what this lock holds"
    )
    align: tuple[str, ...] = of_request(
        "--align", completer="component", help="components that must be the same on every target"
    )
    depth: int | None = of_request("--depth", help="how deep a tree or derivation is printed")
    ascii: bool = of_request("--ascii", help="draw trees with plain characters")
    all: bool = of_request("--all", help="show what is usually left out; take subjects from files")

    rows: str = of_command(
        "--rows", completer="component", help="component that the rows go through"
    )
    cols: str = of_command(
        "--cols", completer="component", help="component that the columns go through"
    )
    where: tuple[str, ...] = of_command(
        "--where",
        metavar="SPEC",
        completer="release",
        split=False,
        help="only these releases; repeatable",
    )
    cells: bool = of_command(
        "--cells", help="list every consistent combination of rows and columns, for a CI matrix"
    )
    check: bool = of_command("--check", help="verify and write nothing")
    render: bool = of_command(
        "--render",
        only_flag=True,
        excludes=("stale",),
        help="render every answer of every recipe instead, of `--only` those of some, with `--arch` for these as well",
    )
    accept: bool = of_command(
        "--accept",
        only_flag=True,
        excludes=("check",),
        help="write files although rows of them are not at their source any more",
    )
    upgrade: tuple[str, ...] = of_command(
        "--upgrade",
        metavar="NAME",
        completer="component",
        excludes=("check",),
        help="let this component move; repeatable",
    )
    environment: str = of_command(
        "--environment",
        configurable=False,
        help="ask what this environment of the settings asks, with its options",
    )
    invert: bool = of_command("--invert", help="show what depends on it instead")
    source: str = of_command("--source", help="only what this source says")
    stale: int | None = of_command(
        "--stale", metavar="DAYS", help="report facts read more than DAYS days ago"
    )
    limit: int | None = of_command("--limit", help="tell at most so many, 0 for all")
    exit_code: bool = of_command("--exit-code", help="exit with 1 when there is a change")

    from_log: str = of_command(
        "--from-log",
        shape="path",
        configurable=False,
        help="read what a driver printed, from a saved log or, with `-`, from stdin",
    )
    driver: str = of_command(
        "--driver",
        metavar="PATH",
        completer="file",
        configurable=False,
        help="the nvcc, hipcc or clang++ to ask, by name or path",
    )
    explain: bool = of_command(
        "--explain", help="say of each stage what it does and which flag changes it"
    )
    online: bool = of_command(
        "--online",
        configurable=False,
        help="ask the package index for what the matrix lacks; of `audit`: also uv about answers",
    )
    packages: bool = of_command(
        "--packages",
        configurable=False,
        help="ask uv and the package index for every Python package, its files and their hashes",
    )
    # What runs programs and writes files is an option of one run, as with `--run` below.
    import_: bool = of_command(
        "--import",
        only_flag=True,
        excludes=("online",),
        help="install answers from wheels, import and use them, and find what they fail with",
    )
    python: tuple[str, ...] = of_command(
        "--python",
        metavar="PATH",
        completer="file",
        shape="path",
        split=False,
        only_flag=True,
        help="import with this Python instead of all that are installed; repeatable",
    )
    write: str = of_command(
        "--write",
        only_flag=True,
        shape="path",
        help="write what was found as a file of facts, beside what it holds already",
    )
    only: tuple[str, ...] = of_command(
        "--only",
        metavar="NAME",
        completer="only",
        configurable=False,
        help="only these: codegen archs of stages, checks by name or kind, files of facts; repeatable",
    )
    since: str = of_command(
        "--since",
        metavar="STAGE",
        configurable=False,
        help="this stage and those that wait for it: a number, a kind, a tool, or KIND:ARCH",
    )
    until: str = of_command(
        "--until",
        metavar="STAGE",
        configurable=False,
        help="this stage and those that it waits for",
    )
    # What runs commands, or replaces what others wrote, is an option of one run: no setting or variable says it.
    run: bool = of_command("--run", only_flag=True, help="run the stages and measure each")
    verify: bool = of_command(
        "--verify", only_flag=True, help="run the stages and the driver, and compare what they make"
    )
    timeout: int | None = of_command(
        "--timeout",
        metavar="SECONDS",
        help="end a driver that takes longer, the judging of a subject (3600) or an answer to an assistant (60)",
    )
    cpu_time: int | None = of_command(
        "--cpu-time",
        metavar="SECONDS",
        default=1800,
        help="end the judging of a subject that takes more processor time",
    )
    memory: int | None = of_command(
        "--memory",
        metavar="MIB",
        default=2048,
        help="end the judging of a subject that takes more memory",
    )
    store: str = of_command(
        "--store",
        metavar="WHERE",
        help="keep what was read of images in this folder or at a URL of fsspec, and not in the user's cache",
    )
    store_size: int | None = of_command(
        "--store-size", metavar="MIB", default=2048, help="bound what a store in a folder holds"
    )
    no_store: bool = of_command(
        "--no-store", help="read everything of an image, and keep nothing of it for other runs"
    )
    reproducible: bool = of_command(
        "--reproducible",
        only_flag=True,
        help="give files and image one time, so that the same is built twice with one digest; into NAME.oci.tar",
    )
    push: str = of_command(
        "--push",
        metavar="REF",
        only_flag=True,
        help="push each image as REF-NAME, and an index REF of one for each platform",
    )
    builder: str = of_command(
        "--builder",
        metavar="NAME",
        only_flag=True,
        help="build by this builder of buildx, here or elsewhere",
    )
    sbom: str = of_command(
        "--sbom",
        metavar="IMAGE",
        only_flag=True,
        help="attach a list of parts: `on`, `off`, or the image that makes it; on with --push",
    )
    provenance: str = of_command(
        "--provenance",
        choices=("max", "min", "off"),
        only_flag=True,
        help="attach how it was built; max with --push",
    )
    jobs: int | None = of_command("--jobs", help="do at most so many at a time")
    keep_dir: str = of_command(
        "--keep-dir",
        metavar="DIR",
        completer="dir",
        shape="path",
        configurable=False,
        help="keep there what a run writes on its way",
    )
    cost: str = of_command(
        "--cost",
        shape="path",
        configurable=False,
        help="add what stages cost, from the CSV of `nvcc -time` or the JSON of a run",
    )
    for_: tuple[str, ...] = of_command(
        "--for", metavar="SPEC", completer="release", only_flag=True, help="plan for this request"
    )
    recipe: str = of_command(
        "--recipe",
        completer="file",
        help="what is built: a built-in recipe, or its path; without it `render` chooses by the request",
    )
    base: tuple[str, ...] = of_command(
        "--base",
        metavar="IMAGE=STAND-IN",
        split=False,
        help="start from another image in the place of one; repeatable",
    )
    mirror: tuple[str, ...] = of_command(
        "--mirror",
        metavar="OLD=NEW",
        split=False,
        help="fetch what lies below one address from another; repeatable",
    )
    fetched: str = of_command(
        "--fetched",
        metavar="DIR",
        help="take downloads and Python packages out of a folder beside the files, which `toolmatrix fetch` fills",
    )
    snapshot: str = of_command(
        "--snapshot",
        metavar="DATE",
        help="take packages of Debian and Ubuntu as they were on a day, or at a time such as 20261120T030400Z",
    )
    stdout: bool = of_command("--stdout", help="print the files and write none")
    force: bool = of_command(
        "--force",
        only_flag=True,
        help="replace files that were edited by hand or that somebody else wrote",
    )
    dialect: str = of_command(
        "--dialect",
        words=("modern", "classic"),
        default="modern",
        help="which Dockerfiles: those of BuildKit today, or those that Docker 20.10 and buildah read",
    )
    syntax_line: str = of_command(
        "--syntax-line",
        metavar="WHICH",
        help="the first line of Dockerfiles: on, off, or the image that it names",
    )
    strict: bool = of_command(
        "--strict",
        help="take warnings for failures; of `render`: refuse images, packages and files that nothing pins",
    )
    option_: tuple[str, ...] = of_command(
        "--option",
        metavar="NAME",
        configurable=False,
        help="switch on an option of the recipe; repeatable",
    )
    list_formats: bool = of_command(
        "--list-formats", only_flag=True, help="show what can be written"
    )
    pyodide: str = of_command(
        "--pyodide",
        metavar="DIR",
        completer="dir",
        shape="path",
        configurable=False,
        help="the npm package `pyodide`, unpacked; without it npm fetches it once",
    )
    earlier: str = of_command(
        "--earlier",
        metavar="FILE",
        completer="file",
        shape="path",
        configurable=False,
        help="an earlier matrix, an index or a front page: tell what changed since",
    )
    list_checks: bool = of_command(
        "--list-checks", configurable=False, help="say what can be checked"
    )
    expect: tuple[str, ...] = of_command(
        "--expect",
        metavar="WORD",
        split=False,
        configurable=False,
        help="what must hold, such as `gcc==12.*` or `arch==arm64`; repeatable",
    )
    expect_file: str = of_command(
        "--expect-file", shape="path", configurable=False, help="expectations, one a line"
    )
    platform: str = of_command(
        "--platform", configurable=False, help="which image of an index, such as linux/arm64"
    )
    no_run: bool = of_command(
        "--no-run", help="start no program of an image that could be run: only read it"
    )
    resume: str = of_command(
        "--resume",
        shape="path",
        configurable=False,
        help="keep results there as they come, and leave out those it has",
    )

    shard: str = of_command(
        "--shard",
        metavar="I/N",
        configurable=False,
        help="only the part I of N of the subjects; `toolmatrix merge` joins the results",
    )
    attach: bool = of_command(
        "--attach", help="keep verdicts beside images in their registry, and take those that are"
    )
    executor: str = of_command(
        "--executor",
        help="what has work done elsewhere, such as dask:tcp://HOST:PORT",
    )
    subjects: tuple[str, ...] = of_command(
        "--subjects",
        metavar="LIST",
        completer="file",
        configurable=False,
        help="what results must be about, as of `validate --all`; repeatable",
    )

    man: bool = of_command(
        "--man", only_flag=True, help="write it as a manual page, which `man -l` reads"
    )

    help: bool = option(
        "-h", "--help", only_flag=True, help="show this help; `-h` without what many commands share"
    )
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
        words=("auto", "always", "never"),
        default="auto",
        shorthand={"--no-color": "never"},
        help="when to colour",
    )
    no_progress: bool = option("--no-progress", help="no progress lines")
    format: str = option(
        "--format",
        words=_every_format,
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
        default="-",
        shape="path",
        configurable=False,
        help="write the result there",
    )
    matrix: tuple[str, ...] = option(
        "-m",
        "--matrix",
        shape="path",
        split=False,
        help="a matrix of your own that adds to the built-in one; repeatable",
    )
    lock: str = option(
        "-l", "--lock", shape="path", default="toolmatrix.lock", help="the lock to read or write"
    )
    directory: str = option(
        "-C",
        "--directory",
        metavar="DIR",
        completer="dir",
        configurable=False,
        help="the directory that paths are relative to",
    )
    at: str = option("--at", metavar="DATE", shape="date", help="the matrix as known that day")
    min_evidence: str = option(
        "--min-evidence",
        metavar="WORD",
        words=WORDS,
        default="unknown",
        help="refuse what is known less well",
    )
    exit_zero: bool = option("--exit-zero", help="exit with 0 where the answer is no")
    unknown_ok: bool = option("--unknown-ok", help="exit with 0 where no fact decides")

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
