"""Options that many commands share: flags, type, meaning, default, and where else each can be set.

The options of one command are declared in its signature.
"""

from __future__ import annotations

from toolmatrix.command.option import Option, option
from toolmatrix.factbase.evidence import WORDS
from toolmatrix.request.fields import PREFERENCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def _every_format() -> tuple[str, ...]:
    # Commands have options, so they are imported when their formats are asked for.
    from toolmatrix.command import every_format

    return every_format()


def _request(*flags: str, **declared: Any) -> Any:
    return option(*flags, group="request", **declared)


def _common(*flags: str, **declared: Any) -> Any:
    return option(*flags, group="common", **declared)


class Options:
    """The options of one run, read as attributes; a field's annotation is the type of its value."""

    target: tuple[str, ...] = _request(
        "--target",
        completer="target",
        help="Where the result runs: x86, arm, amd, or several: x86,arm",
    )
    from_: str = _request(
        "--from",
        metavar="WORD",
        completer="from",
        help="Build the framework from source, or install a wheel",
    )
    accelerator: str = _request(
        "--accelerator",
        metavar="WORD",
        completer="accelerator",
        help="Accelerator beside the CPU: none, cuda or rocm",
    )
    arch: tuple[str, ...] = _request(
        "--arch",
        completer="arch",
        help="Codegen archs to compile for; the toolkit must support them",
    )
    device: tuple[str, ...] = _request(
        "--device",
        completer="device",
        help="Devices to run on; `host`: those of this machine, beside its driver; FILE: those that nvidia-smi or an"
        " environment report printed there, `-` reads stdin",
    )
    cpu: str = _request("--cpu", help="CPU to compile for")
    distro: str = _request("--distro", completer="distro", help="Distribution to run on")
    with_: tuple[str, ...] = _request(
        "--with",
        metavar="SPEC",
        completer="release",
        split=False,
        help="Release or range that you already have and want to keep; repeatable",
    )
    prefer: str = _request(
        "--prefer",
        metavar="WORD",
        allowed=PREFERENCES,
        default="best-evidence",
        help="Which answer to prefer when there are several",
    )
    keep: str = _request(
        "--keep", metavar="LOCK", shape="path", help="Prefer the releases in this lock"
    )
    align: tuple[str, ...] = _request(
        "--align",
        completer="component",
        help="Components that must have the same release on every target",
    )
    depth: int | None = _request("--depth", help="Maximum depth of printed trees and derivations")
    ascii: bool = _request("--ascii", help="Draw trees with ASCII characters")
    everything: bool = _request(
        "--all",
        help="Show entries that are hidden by default",
    )

    recipe: str = _request(
        "--recipe",
        completer="file",
        help="Recipe to build, by name or path; by default `render` chooses one for the request",
    )
    environment: str = option(
        "--environment",
        configurable=False,
        help="Use the request and options of this environment in the settings",
    )

    help: bool = _common(
        "-h",
        "--help",
        cli_only=True,
        help="Show this help; `-h` leaves out options that many commands share",
    )
    version: bool = _common(
        "-V",
        "--version",
        cli_only=True,
        help="Show the version, the matrix date and the number of facts",
    )
    quiet: int = _common(
        "-q",
        "--quiet",
        kind="count",
        excludes=("verbose",),
        help="Print less; -qq: nothing but the exit code",
    )
    verbose: int = _common("-v", "--verbose", kind="count", help="Print more; -vv: show tracebacks")
    color: str = _common(
        "--color",
        metavar="WHEN",
        allowed=("auto", "always", "never"),
        default="auto",
        shorthand={"--no-color": "never"},
        help="When to use colours",
    )
    no_progress: bool = _common("--no-progress", help="Do not show progress")
    format: str = _common(
        "--format",
        allowed=_every_format,
        default="text",
        multiple=True,
        shorthand={
            f"--{name}": name
            for name in ("json", "raw", "dot", "mermaid", "svg", "script", "ninja")
        },
        help="Output format",
    )
    output: str = _common(
        "-o",
        "--output",
        default="-",
        shape="path",
        configurable=False,
        help="Write the result to this file",
    )
    matrix: tuple[str, ...] = _common(
        "-m",
        "--matrix",
        shape="path",
        split=False,
        help="Your own matrix, on top of the built-in one; repeatable",
    )
    lock: str = _common(
        "-l", "--lock", shape="path", default="toolmatrix.lock", help="Lock to read or write"
    )
    directory: str = _common(
        "-C",
        "--directory",
        metavar="DIR",
        completer="dir",
        configurable=False,
        help="Directory that paths are relative to",
    )
    at: str = _common(
        "--at", metavar="DATE", shape="date", help="Use the matrix as known on this day"
    )
    min_evidence: str = _common(
        "--min-evidence",
        metavar="WORD",
        allowed=WORDS,
        default="unknown",
        help="Refuse answers with weaker evidence than this",
    )
    exit_zero: bool = _common("--exit-zero", help="Exit with 0 if the answer is no")
    unknown_ok: bool = _common("--unknown-ok", help="Exit with 0 if the answer is unknown")

    def __init__(self, values: Mapping[str, Any], options: Mapping[str, Option]) -> None:
        self.__dict__.update(
            {name: values.get(name, option.default) for name, option in options.items()}
        )

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("options are frozen")

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]


_ALL: dict[str, Option] = {
    name: value for name, value in vars(Options).items() if isinstance(value, Option)
}
COMMON = {name: option for name, option in _ALL.items() if option.group == "common"}
REQUEST = {name: option for name, option in _ALL.items() if option.group == "request"}
ENVIRONMENT = {"environment": _ALL["environment"]}

# Options of several commands, which each declare as arguments of their own.
ONLINE = option(
    "--online",
    kind="flag",
    configurable=False,
    help="Ask the package index for packages that the matrix lacks",
)
JOBS = option("--jobs", kind="number", help="Maximum number of parallel jobs")
EXECUTOR = option(
    "--executor", kind="text", help="Run the work on a cluster, such as dask:tcp://HOST:PORT"
)
PLATFORM = option(
    "--platform",
    kind="text",
    configurable=False,
    help="Platform to select from an image index, such as linux/arm64",
)
STALE = option(
    "--stale",
    kind="number",
    metavar="DAYS",
    help="Report facts that were read more than DAYS days ago",
)
STORE_SIZE = option(
    "--store-size",
    kind="number",
    metavar="MIB",
    default=2048,
    help="Maximum size of a store in a folder, in MiB",
)
STORE = option(
    "--store",
    kind="text",
    metavar="WHERE",
    help="Cache image readings in this folder or at this fsspec URL instead of the user's cache",
)
NO_STORE = option("--no-store", kind="flag", help="Read images completely, and cache nothing")
ALL = option("--all", kind="flag", help="Show entries that are hidden by default")
CHECK = option("--check", kind="flag", help="Verify without writing anything")
EXIT_CODE = option("--exit-code", kind="flag", help="Exit with 1 if anything changed")
NO_RUN = option("--no-run", kind="flag", help="Do not run programs of the image; only read files")
WRITE = option(
    "--write",
    kind="text",
    cli_only=True,
    shape="path",
    help="Add the findings to this file of facts",
)


def only(help: str) -> Any:
    """Declare `--only`, which restricts a command to some of its work."""
    return option(
        "--only",
        kind="list",
        metavar="NAME",
        completer="only",
        configurable=False,
        help=help,
    )


def targets(help: str) -> Any:
    """Declare `--target` for a command that takes no request."""
    return option("--target", kind="list", completer="target", help=help)


def resume(help: str) -> Any:
    """Declare `--resume`, which continues an earlier run."""
    return option("--resume", kind="text", shape="path", configurable=False, help=help)
