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
        help="Where the result runs: x86, arm, amd, or several: x86,arm",
        help_of={
            "diff": "Targets of the lock to compare, such as x86,arm",
            "build": "Build only the images of these targets",
            "validate": "Target of the lock to check against",
            "doctor": "Target of the lock to check this machine for",
        },
    )
    from_: str = of_request(
        "--from",
        metavar="WORD",
        completer="from",
        help="Build the framework from source, or install a wheel",
        help_of={
            "harvest": "Read the sources from this path instead",
            "audit": "Directory of git clones to check values against",
        },
    )
    accelerator: str = of_request(
        "--accelerator",
        metavar="WORD",
        completer="accelerator",
        help="Accelerator beside the CPU: none, cuda or rocm",
    )
    arch: tuple[str, ...] = of_request(
        "--arch",
        completer="arch",
        help="Codegen archs to compile for; the toolkit must support them",
        help_of={"check": "With `--render`: codegen archs to add"},
    )
    device: tuple[str, ...] = of_request("--device", completer="device", help="Devices to run on")
    cpu: str = of_request("--cpu", help="CPU to compile for")
    distro: str = of_request("--distro", completer="distro", help="Distribution to run on")
    with_: tuple[str, ...] = of_request(
        "--with",
        metavar="SPEC",
        completer="release",
        split=False,
        help="Release or range that you already have and want to keep; repeatable",
    )
    prefer: str = of_request(
        "--prefer",
        metavar="WORD",
        words=PREFERENCES,
        default="best-evidence",
        help="Which answer to prefer when there are several",
    )
    keep: str = of_request(
        "--keep", metavar="LOCK", shape="path", help="Prefer the releases in this lock"
    )
    align: tuple[str, ...] = of_request(
        "--align",
        completer="component",
        help="Components that must have the same release on every target",
    )
    depth: int | None = of_request("--depth", help="Maximum depth of printed trees and derivations")
    ascii: bool = of_request("--ascii", help="Draw trees with ASCII characters")
    all: bool = of_request(
        "--all",
        help="Show entries that are hidden by default",
        help_of={
            "validate": "Read the subjects from each argument, such as a file with one per line"
        },
    )

    rows: str = of_command("--rows", completer="component", help="Component in the rows")
    cols: str = of_command("--cols", completer="component", help="Component in the columns")
    where: tuple[str, ...] = of_command(
        "--where",
        metavar="SPEC",
        completer="release",
        split=False,
        help="Restrict a component to these releases; repeatable",
    )
    cells: bool = of_command(
        "--cells", help="List every consistent combination of rows and columns, for a CI matrix"
    )
    check: bool = of_command("--check", help="Verify without writing anything")
    render: bool = of_command(
        "--render",
        only_flag=True,
        excludes=("stale",),
        help="Render every answer of every recipe instead; `--only` limits the recipes, `--arch` adds archs",
    )
    accept: bool = of_command(
        "--accept",
        only_flag=True,
        excludes=("check",),
        help="Write files even if some of their rows have disappeared from the source",
    )
    upgrade: tuple[str, ...] = of_command(
        "--upgrade",
        metavar="NAME",
        completer="component",
        excludes=("check",),
        help="Allow this component to change; repeatable",
    )
    environment: str = of_command(
        "--environment",
        configurable=False,
        help="Use the request and options of this environment in the settings",
    )
    invert: bool = of_command("--invert", help="Show what depends on the component instead")
    source: str = of_command("--source", help="Show only facts from this source")
    stale: int | None = of_command(
        "--stale", metavar="DAYS", help="Report facts that were read more than DAYS days ago"
    )
    limit: int | None = of_command("--limit", help="Maximum number of results; 0 for all")
    exit_code: bool = of_command("--exit-code", help="Exit with 1 if anything changed")

    from_log: str = of_command(
        "--from-log",
        shape="path",
        configurable=False,
        help="Read a driver's output from a saved log, or from stdin with `-`",
    )
    driver: str = of_command(
        "--driver",
        metavar="PATH",
        completer="file",
        configurable=False,
        help="The nvcc, hipcc or clang++ to run, by name or path",
    )
    explain: bool = of_command(
        "--explain", help="Explain what each stage does and which flag changes it"
    )
    online: bool = of_command(
        "--online",
        configurable=False,
        help="Ask the package index for packages that the matrix lacks",
        help_of={"audit": "Compare the matrix with the package index, and its answers with uv"},
    )
    packages: bool = of_command(
        "--packages",
        configurable=False,
        help="Lock every Python package with its files and hashes, using uv and the package index",
    )
    # What runs programs and writes files is an option of one run, as with `--run` below.
    import_: bool = of_command(
        "--import",
        only_flag=True,
        excludes=("online",),
        help="Install answers from wheels, import them and use them, and report what fails",
    )
    python: tuple[str, ...] = of_command(
        "--python",
        metavar="PATH",
        completer="file",
        shape="path",
        split=False,
        only_flag=True,
        help="Import with this Python instead of every installed one; repeatable",
    )
    write: str = of_command(
        "--write",
        only_flag=True,
        shape="path",
        help="Add the findings to this file of facts",
    )
    only: tuple[str, ...] = of_command(
        "--only",
        metavar="NAME",
        completer="only",
        configurable=False,
        help="Restrict the command to these items; repeatable",
        help_of={
            "check": "Check only these files of facts; repeatable",
            "stages": "Include only stages that serve these codegen archs; repeatable",
            "validate": "Run only these checks, by name or kind; repeatable",
            "doctor": "Run only these checks; repeatable",
        },
    )
    since: str = of_command(
        "--since",
        metavar="STAGE",
        configurable=False,
        help="Start at this stage: a number, a kind, a tool, or KIND:ARCH",
    )
    until: str = of_command(
        "--until",
        metavar="STAGE",
        configurable=False,
        help="Stop after this stage",
    )
    # What runs commands, or replaces what others wrote, is an option of one run: no setting or variable says it.
    run: bool = of_command("--run", only_flag=True, help="Run the stages and time each one")
    verify: bool = of_command(
        "--verify", only_flag=True, help="Run the stages and the driver, and compare their outputs"
    )
    timeout: int | None = of_command(
        "--timeout",
        metavar="SECONDS",
        help="Time limit in seconds",
        help_of={
            "stages": "Time limit for a driver, in seconds",
            "validate": "Time limit for a subject, in seconds [default: 3600]",
            "mcp": "Time limit for an answer, in seconds [default: 60]",
        },
    )
    cpu_time: int | None = of_command(
        "--cpu-time",
        metavar="SECONDS",
        default=1800,
        help="Processor time limit for a subject, in seconds",
    )
    memory: int | None = of_command(
        "--memory",
        metavar="MIB",
        default=2048,
        help="Memory limit for a subject, in MiB",
    )
    store: str = of_command(
        "--store",
        metavar="WHERE",
        help="Cache image readings in this folder or at this fsspec URL instead of the user's cache",
    )
    store_size: int | None = of_command(
        "--store-size",
        metavar="MIB",
        default=2048,
        help="Maximum size of a store in a folder, in MiB",
    )
    no_store: bool = of_command("--no-store", help="Read images completely, and cache nothing")
    reproducible: bool = of_command(
        "--reproducible",
        only_flag=True,
        help="Set a fixed timestamp, so that rebuilds have the same digest; writes NAME.oci.tar",
    )
    push: str = of_command(
        "--push",
        metavar="REF",
        only_flag=True,
        help="Push each image as REF-NAME, and an index REF with one image per platform",
    )
    builder: str = of_command(
        "--builder",
        metavar="NAME",
        only_flag=True,
        help="Builder of buildx to use",
    )
    sbom: str = of_command(
        "--sbom",
        metavar="IMAGE",
        only_flag=True,
        help="Attach an SBOM: `on`, `off`, or the generator image [default: on with --push]",
    )
    provenance: str = of_command(
        "--provenance",
        choices=("max", "min", "off"),
        only_flag=True,
        help="Attach build provenance [default: max with --push]",
    )
    jobs: int | None = of_command("--jobs", help="Maximum number of parallel jobs")
    keep_dir: str = of_command(
        "--keep-dir",
        metavar="DIR",
        completer="dir",
        shape="path",
        configurable=False,
        help="Keep intermediate files in this directory",
    )
    cost: str = of_command(
        "--cost",
        shape="path",
        configurable=False,
        help="Add the cost of stages from the CSV of `nvcc -time` or the JSON of a run",
    )
    for_: tuple[str, ...] = of_command(
        "--for", metavar="SPEC", completer="release", only_flag=True, help="Plan for this request"
    )
    recipe: str = of_command(
        "--recipe",
        completer="file",
        help="Recipe to build, by name or path; by default `render` chooses one for the request",
    )
    base: tuple[str, ...] = of_command(
        "--base",
        metavar="IMAGE=STAND-IN",
        split=False,
        help="Replace a base image with another one; repeatable",
    )
    mirror: tuple[str, ...] = of_command(
        "--mirror",
        metavar="OLD=NEW",
        split=False,
        help="Fetch files below one URL from another one; repeatable",
    )
    fetched: str = of_command(
        "--fetched",
        metavar="DIR",
        help="Take downloads and Python packages from a folder that `toolmatrix fetch` filled",
    )
    snapshot: str = of_command(
        "--snapshot",
        metavar="DATE",
        help="Use the Debian and Ubuntu archives as of a day, or of a time such as 20261120T030400Z",
    )
    stdout: bool = of_command("--stdout", help="Print the files instead of writing them")
    force: bool = of_command(
        "--force",
        only_flag=True,
        help="Overwrite files that were edited by hand or that toolmatrix did not write",
    )
    dialect: str = of_command(
        "--dialect",
        words=("modern", "classic"),
        default="modern",
        help="Dockerfile dialect: modern (BuildKit) or classic (Docker 20.10, buildah)",
    )
    syntax_line: str = of_command(
        "--syntax-line",
        metavar="WHICH",
        help="Syntax line of Dockerfiles: on, off, or the frontend image",
    )
    strict: bool = of_command(
        "--strict",
        help="Treat warnings as errors",
        help_of={"render": "Refuse unpinned images, packages and files"},
    )
    option_: tuple[str, ...] = of_command(
        "--option",
        metavar="NAME",
        configurable=False,
        help="Enable an option of the recipe; repeatable",
    )
    list_formats: bool = of_command(
        "--list-formats", only_flag=True, help="List the output formats"
    )
    pyodide: str = of_command(
        "--pyodide",
        metavar="DIR",
        completer="dir",
        shape="path",
        configurable=False,
        help="Unpacked npm package `pyodide` [default: fetched once with npm]",
    )
    earlier: str = of_command(
        "--earlier",
        metavar="FILE",
        completer="file",
        shape="path",
        configurable=False,
        help="Earlier matrix (an index or a front page) to show changes since",
    )
    list_checks: bool = of_command("--list-checks", configurable=False, help="List the checks")
    expect: tuple[str, ...] = of_command(
        "--expect",
        metavar="WORD",
        split=False,
        configurable=False,
        help="Requirement to check, such as `gcc==12.*` or `arch==arm64`; repeatable",
    )
    expect_file: str = of_command(
        "--expect-file",
        shape="path",
        configurable=False,
        help="File of requirements to check, one per line",
    )
    platform: str = of_command(
        "--platform",
        configurable=False,
        help="Platform to select from an image index, such as linux/arm64",
    )
    no_run: bool = of_command("--no-run", help="Do not run programs of the image; only read files")
    resume: str = of_command(
        "--resume",
        shape="path",
        configurable=False,
        help="Append results to FILE, and skip subjects that are already in it",
        help_of={"build": "Append results to FILE, and skip images that an earlier run built"},
    )

    shard: str = of_command(
        "--shard",
        metavar="I/N",
        configurable=False,
        help="Validate part I of N of the subjects; `toolmatrix merge` joins the results",
    )
    attach: bool = of_command(
        "--attach",
        help="Store verdicts in the registry beside the images (OCI referrers), and reuse them",
    )
    executor: str = of_command(
        "--executor",
        help="Run the work on a cluster, such as dask:tcp://HOST:PORT",
    )
    subjects: tuple[str, ...] = of_command(
        "--subjects",
        metavar="LIST",
        completer="file",
        configurable=False,
        help="List of subjects that the results must cover, as for `validate --all`; repeatable",
    )

    man: bool = of_command("--man", only_flag=True, help="Write a manual page for `man -l`")

    help: bool = option(
        "-h",
        "--help",
        only_flag=True,
        help="Show this help; `-h` leaves out options that many commands share",
    )
    version: bool = option(
        "-V",
        "--version",
        only_flag=True,
        help="Show the version, the matrix date and the number of facts",
    )
    quiet: int = option(
        "-q", "--quiet", excludes=("verbose",), help="Print less; -qq: nothing but the exit code"
    )
    verbose: int = option("-v", "--verbose", help="Print more; -vv: show tracebacks")
    color: str = option(
        "--color",
        metavar="WHEN",
        words=("auto", "always", "never"),
        default="auto",
        shorthand={"--no-color": "never"},
        help="When to use colours",
    )
    no_progress: bool = option("--no-progress", help="Do not show progress")
    format: str = option(
        "--format",
        words=_every_format,
        default="text",
        many=True,
        shorthand={
            f"--{name}": name
            for name in ("json", "raw", "dot", "mermaid", "svg", "script", "ninja")
        },
        help="Output format",
    )
    output: str = option(
        "-o",
        "--output",
        default="-",
        shape="path",
        configurable=False,
        help="Write the result to this file",
    )
    matrix: tuple[str, ...] = option(
        "-m",
        "--matrix",
        shape="path",
        split=False,
        help="Your own matrix, on top of the built-in one; repeatable",
    )
    lock: str = option(
        "-l", "--lock", shape="path", default="toolmatrix.lock", help="Lock to read or write"
    )
    directory: str = option(
        "-C",
        "--directory",
        metavar="DIR",
        completer="dir",
        configurable=False,
        help="Directory that paths are relative to",
    )
    at: str = option(
        "--at", metavar="DATE", shape="date", help="Use the matrix as known on this day"
    )
    min_evidence: str = option(
        "--min-evidence",
        metavar="WORD",
        words=WORDS,
        default="unknown",
        help="Refuse answers with weaker evidence than this",
    )
    exit_zero: bool = option("--exit-zero", help="Exit with 0 if the answer is no")
    unknown_ok: bool = option("--unknown-ok", help="Exit with 0 if the answer is unknown")

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
        for flag in one.flags:
            found[flag] = one, ""
        for flag, value in one.shorthand.items():
            found[flag] = one, value
    return found
