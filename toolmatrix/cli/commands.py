"""The commands, as a table that imports none of them.

A command `some-name` is the module `toolmatrix.cli.some_name` with `run(context) -> int`, or the function `some_name`
of the module that it names.
"""

from __future__ import annotations

from toolmatrix.cli.options import COMMON, REQUEST
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toolmatrix.cli.context import Context
    from toolmatrix.cli.option import Option


class Command(Value):
    """A command: its name, what it takes and writes, and where its function lies."""

    name: str
    summary: str
    module: str = ""
    usage: str = ""
    # It takes words after `--` as they are.
    passes: bool = False
    # It writes several files, so that `--output` is a directory and `--format` a list.
    fills: bool = False
    # It writes files by itself, so that `--output` is their directory.
    saves: bool = False
    # Said, with its arguments, where it takes more than a moment.
    does: str = ""
    # Options that arguments which it does not take are meant for, one each.
    for_words: tuple[str, ...] = ()
    completer: str = ""
    choices: tuple[str, ...] = ()
    # Options that are not those of every command, or of every request.
    own: tuple[str, ...] = ()
    # It takes the options of a request.
    request: bool = False
    # Given no request it asks that of the settings.
    requests: bool = False
    formats: tuple[str, ...] = ("text", "json")
    examples: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Names of all options that it takes, its own first."""
        return self.own + (REQUEST if self.request else ()) + COMMON

    @property
    def forms(self) -> tuple[str, ...]:
        """The formats that it takes; what `fills` a directory writes those of `render` besides."""
        if not self.fills:
            return self.formats
        # Formats are found by listing a folder and importing what lies there, which one command alone has to.
        from toolmatrix.render import formats

        return (*self.formats, *formats.names())

    @property
    def at_least(self) -> int:
        """The number of arguments it needs: those of the usage that stand in no brackets."""
        return len(self.usage.partition("[")[0].split())

    @property
    def at_most(self) -> int | None:
        """The number of arguments it takes, None where the usage repeats one."""
        return None if "..." in self.usage else len(self.usage.split())

    def load(self) -> Callable[[Context], int]:
        """Import the command and return what runs it."""
        # A command costs what it imports: the others are not loaded.
        name = self.name.replace("-", "_")
        module = __import__("toolmatrix.cli." + (self.module or name), fromlist=[name])
        run: Callable[[Context], int] = getattr(module, name if self.module else "run")
        return run


_MATRIX_OWN = ("rows", "cols", "where", "cells", "environment")
_RENDER_OWN = (
    *("recipe", "base", "mirror", "fetched", "snapshot"),
    *("stdout", "dialect", "syntax_line", "strict", "option_"),
)
_STAGES_OWN = (
    *("from_log", "driver", "explain", "only", "since", "until"),
    *("timeout", "jobs", "keep_dir", "cost"),
)
_BOUNDS, _STORE = ("cpu_time", "memory"), ("store", "store_size", "no_store")
# What is printed, drawn: `report.pictures` makes them.
_PICTURES = ("md", "html", "svg")

_ALL = (
    Command(
        name="resolve",
        module="ask",
        summary="Find versions that work together",
        usage="REQUEST...",
        completer="release",
        own=("environment", "recipe", "online"),
        request=True,
        requests=True,
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix resolve tensorflow==2.6.5",
            "toolmatrix resolve tensorflow==2.6.5 --target x86,arm,amd --align tensorflow,python",
            "toolmatrix resolve 'tensorflow>=2.6,<2.9' --arch sm_86 --with gcc==9 --json",
            "toolmatrix resolve lightgbm --online",
        ),
    ),
    Command(
        name="explain",
        module="ask",
        summary="Explain why a version was chosen and others were not",
        usage="NAME [REQUEST...]",
        completer="component",
        own=("invert", "environment", "recipe", "online"),
        request=True,
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix explain cuda tensorflow==2.6.5",
            "toolmatrix explain gcc --lock toolmatrix.lock",
            "toolmatrix explain cuda tensorflow==2.6.5 --invert",
        ),
    ),
    Command(
        name="why-not",
        module="ask",
        does="looking for ways to have",
        summary="Show what forbids a request, and what would have to change",
        usage="REQUEST...",
        completer="release",
        own=("environment", "recipe", "online"),
        request=True,
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix why-not cuda==11.0 --with tensorflow==2.6.5",
            "toolmatrix why-not cuda==11.0 --arch sm_86",
        ),
    ),
    Command(
        name="matrix",
        module="ask",
        does="filling in the grid",
        for_words=("--rows", "--cols"),
        summary="Show a grid of compatible releases",
        own=(*_MATRIX_OWN, "online"),
        request=True,
        formats=("text", "json", "csv", *_PICTURES),
        examples=(
            "toolmatrix matrix --rows cuda --cols arch --where 'cuda>=10.2,<=11.2'",
            "toolmatrix matrix --rows tensorflow --cols python --format md",
        ),
    ),
    Command(
        name="list",
        module="find",
        summary="List the components",
        own=("all",),
        formats=("text", "json", *_PICTURES),
        examples=("toolmatrix list", "toolmatrix list --all --json"),
    ),
    Command(
        name="search",
        module="find",
        summary="Search components, devices and commands",
        usage="TEXT...",
        own=("limit",),
        formats=("text", "json", *_PICTURES),
        examples=("toolmatrix search cudnn", "toolmatrix search 4090 --limit 3"),
    ),
    Command(
        name="show",
        module="survey",
        summary="Show the releases, builds and facts of a component",
        usage="NAME",
        completer="release",
        own=("all", "online"),
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix show torch",
            "toolmatrix show torch==2.7.1",
            "toolmatrix show cuda==12.4 --all",
        ),
    ),
    Command(
        name="what",
        module="survey",
        summary="Show what a release is compatible with, by component",
        usage="REQUEST",
        completer="release",
        own=("online",),
        request=True,
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix what cuda==12.4",
            "toolmatrix what python==3.13 --from wheel --target arm",
        ),
    ),
    Command(
        name="plan",
        module="survey",
        summary="Find the fewest codegen archs for some devices",
        usage="[REQUEST...]",
        completer="release",
        own=("online",),
        request=True,
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix plan --device A100,H100,'RTX 5090'",
            "toolmatrix plan torch==2.7.1 --device 'GTX 1080 Ti',H100",
            "toolmatrix plan cuda==12.4 --device A100,'RTX 5090'",
        ),
    ),
    Command(
        name="facts",
        module="reports",
        summary="Show one fact in full, or list facts",
        usage="[ID...]",
        completer="fact",
        own=("source", "stale"),
        formats=("text", "json", *_PICTURES),
        does="reading facts",
        examples=(
            "toolmatrix facts",
            "toolmatrix facts --source tensorflow-docs",
            "toolmatrix facts --stale 180",
        ),
    ),
    Command(
        name="export",
        module="reports",
        summary="Export facts for other tools",
        usage="[NAME...]",
        completer="component",
        formats=("json", "csv"),
        does="exporting",
        examples=(
            "toolmatrix export --output matrix.json",
            "toolmatrix export torch cudnn --format csv",
        ),
    ),
    Command(
        name="lock",
        summary="Write a lock, or verify one",
        usage="[REQUEST...]",
        completer="release",
        own=("check", "upgrade", "recipe", "online", "packages"),
        request=True,
        requests=True,
        does="locking",
        examples=(
            "toolmatrix lock tensorflow==2.6.5 --target x86,arm",
            "toolmatrix lock onnxruntime==1.18.1 --from wheel --packages",
            "toolmatrix lock --check",
            "toolmatrix lock --upgrade numpy",
        ),
    ),
    Command(
        name="upgrade",
        module="survey",
        summary="Show possible upgrades of a lock, and what prevents others",
        usage="[LOCK]",
        completer="file",
        formats=("text", "json", *_PICTURES),
        does="solving",
        examples=("toolmatrix upgrade", "toolmatrix upgrade old.lock --json"),
    ),
    Command(
        name="diff",
        module="subjects",
        does="comparing",
        summary="Compare locks, targets, images or machines",
        usage="OLD [NEW]",
        completer="file",
        own=("exit_code", "target", "platform", "all", *_STORE),
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix diff old.lock toolmatrix.lock --exit-code",
            "toolmatrix diff toolmatrix.lock --target x86,arm",
            "toolmatrix diff archive:x86.tar archive:arm.tar --lock toolmatrix.lock",
            "toolmatrix diff host inventory:arm.json --json",
        ),
    ),
    Command(
        name="check",
        module="reports",
        summary="Check the matrix, or files of your own",
        usage="[FILE...]",
        completer="file",
        own=("only", "stale", "render", "arch", "jobs", "executor"),
        formats=("text", "json", "sarif", "github", *_PICTURES),
        does="checking the matrix",
        examples=(
            "toolmatrix check",
            "toolmatrix check --only matrix/curated/bazel.yaml",
            "toolmatrix check ours.yaml --stale 180",
            "toolmatrix check --format sarif --output findings.sarif",
            "toolmatrix check --render --arch sm_80,gfx90a",
        ),
    ),
    Command(
        name="harvest",
        summary="Refresh facts from their sources",
        usage="[NAME...]",
        saves=True,
        own=("from_", "check", "accept", "executor"),
        does="harvesting",
        examples=(
            "toolmatrix harvest numpy",
            "toolmatrix harvest --check",
            "toolmatrix harvest vllm --output facts",
            "toolmatrix harvest numpy --from saved-index",
        ),
    ),
    Command(
        name="audit",
        module="reports",
        summary="Report coverage of the matrix, and wrong, missing or stale facts",
        usage="[NAME...]",
        completer="component",
        own=("online", "from_", "import_", "python", "write", "jobs", "executor"),
        formats=("text", "json", "sarif", "github", *_PICTURES),
        does="auditing",
        examples=(
            "toolmatrix audit",
            "toolmatrix audit torch jax",
            "toolmatrix audit numpy --online --format sarif --output findings.sarif",
            "toolmatrix audit --import 'jax==0.4.*' --write imports.yaml",
        ),
    ),
    Command(
        name="render",
        summary="Render Dockerfiles and build files from a lock",
        usage="[REQUEST...]",
        fills=True,
        completer="release",
        own=("check", "force", "list_formats", "online", *_RENDER_OWN),
        request=True,
        formats=("text",),
        does="rendering",
        examples=(
            "toolmatrix render gcc python --target x86,arm --distro debian12 --output out",
            "toolmatrix render --lock toolmatrix.lock --recipe toolchain --output out",
            "toolmatrix render",
            "toolmatrix render --check --output out",
        ),
    ),
    Command(
        name="fetch",
        summary="Download what rendered files need, or the nvcc of a toolkit",
        usage="[DIR | cuda==RELEASE]",
        completer="file",
        examples=(
            "toolmatrix fetch out",
            "toolmatrix fetch cuda==13.0.1 --json",
        ),
    ),
    Command(
        name="build",
        summary="Build rendered images with docker or buildah",
        usage="[DIR...] [-- FLAGS]",
        passes=True,
        completer="file",
        own=(
            *("target", "jobs", "resume", "write"),
            *("reproducible", "push", "sbom", "provenance", "builder"),
        ),
        formats=("text", "json", "junit"),
        examples=(
            "toolmatrix build out",
            "toolmatrix build out --write builds.yaml",
            "toolmatrix build out --push registry.example/team/app:1",
            "toolmatrix build out --resume builds.jsonl",
            "toolmatrix build out --target arm -- --no-cache",
            "toolmatrix build out --format junit --output builds.xml",
        ),
    ),
    Command(
        name="page",
        summary="Write the explorer, a static web page",
        saves=True,
        own=("pyodide", "earlier"),
        does="writing the page",
        examples=(
            "toolmatrix page --output site",
            "toolmatrix page --output site --pyodide node_modules/pyodide",
            "toolmatrix page --output site --earlier released/matrix.yaml",
        ),
    ),
    Command(
        name="stages",
        summary="Show what nvcc, hipcc or clang would run, stage by stage",
        usage="[FILE... | diff OLD NEW] [-- FLAGS]",
        passes=True,
        completer="file",
        request=True,
        own=("for_", "run", "verify", "exit_code", *_STAGES_OWN),
        formats=("text", "json", "raw", "dot", "mermaid", *_PICTURES, "script", "ninja"),
        examples=(
            "toolmatrix stages saxpy.cu --explain -- -arch=sm_86 -c",
            "toolmatrix stages saxpy.cu --for tensorflow==2.6.5 --device 8.6 -- -c",
            "toolmatrix stages --from-log build.log --device 8.6,9.0",
            "toolmatrix stages diff before.log after.log",
        ),
    ),
    Command(
        name="diagnose",
        module="reports",
        does="reading",
        summary="Find known failures in a log, with facts and remedies",
        usage="LOG",
        completer="file",
        own=("limit",),
        formats=("text", "json", "sarif", "github", *_PICTURES),
        examples=(
            "toolmatrix diagnose build.log",
            "toolmatrix diagnose build.log --lock toolmatrix.lock --json",
            "toolmatrix diagnose build.log --format github --limit 3",
        ),
    ),
    Command(
        name="judge",
        does="judging",
        summary="Check a Dockerfile or another project file against the facts",
        usage="FILE...",
        completer="file",
        formats=("text", "json", "patch", "sarif", "github", *_PICTURES),
        examples=(
            "toolmatrix judge Dockerfile requirements.txt",
            "toolmatrix judge . --format github",
            "toolmatrix judge environment.yml --format patch --output mend.patch",
        ),
    ),
    Command(
        name="inventory",
        module="subjects",
        does="reading",
        summary="List what an image or a directory contains",
        usage="SUBJECT",
        completer="file",
        own=("platform", "no_run", "all", *_STORE),
        formats=("text", "json", *_PICTURES),
        examples=(
            "toolmatrix inventory archive:image.tar",
            "toolmatrix inventory docker:app:latest --no-run",
            "toolmatrix inventory archive:app.tar --json",
            "toolmatrix inventory oci:layout --platform linux/arm64",
        ),
    ),
    Command(
        name="validate",
        module="subjects",
        summary="Check images against a lock",
        usage="SUBJECT...",
        completer="file",
        own=(
            "target",
            "expect",
            "expect_file",
            "only",
            "platform",
            "no_run",
            "strict",
            "all",
            "jobs",
            "resume",
            *("attach", "shard", "executor"),
            "timeout",
            *_BOUNDS,
            *_STORE,
        ),
        formats=("text", "json", "jsonl", "junit", "sarif", "github", *_PICTURES),
        does="validating",
        examples=(
            "toolmatrix validate docker:app:latest --lock toolmatrix.lock",
            "toolmatrix validate oci:layout --expect 'gcc==12.*' --expect arch==arm64",
            "toolmatrix validate --all images.txt --jobs 2 --resume results.jsonl",
            "toolmatrix validate --all 'registry://registry.example/team/app:1.*' --shard 1/8",
            "toolmatrix validate --all images.txt --store /mnt/share/readings",
        ),
    ),
    Command(
        name="merge",
        module="subjects",
        summary="Merge the results of several validate runs",
        usage="FILE...",
        completer="file",
        own=("subjects",),
        formats=("text", "json", "junit", "sarif", "github", *_PICTURES),
        examples=("toolmatrix merge shard-*.jsonl --subjects images.txt",),
    ),
    Command(
        name="doctor",
        module="subjects",
        summary="Check whether this machine is ready",
        own=("target", "only", "list_checks"),
        formats=("text", "json", "junit", "github", *_PICTURES),
        does="checking this machine",
        examples=(
            "toolmatrix doctor",
            "toolmatrix doctor --lock toolmatrix.lock --target x86",
            "toolmatrix doctor --only engine,driver",
        ),
    ),
    Command(
        name="mcp",
        summary="Serve coding assistants over the Model Context Protocol (stdin and stdout)",
        request=True,
        own=("timeout",),
        formats=("text",),
        examples=("toolmatrix mcp", "toolmatrix mcp --matrix ours.yaml --distro debian12"),
    ),
    Command(
        name="rule",
        summary="Explain a code such as TM101",
        usage="[CODE...]",
        completer="code",
        examples=("toolmatrix rule TM101", "toolmatrix rule"),
    ),
    Command(
        name="config",
        summary="Show every setting with its value and origin",
        request=True,
        own=(
            *_MATRIX_OWN,
            *("check", "upgrade", "invert", "source", "stale", "exit_code", "limit"),
            *_RENDER_OWN,
            *_STAGES_OWN,
            *_BOUNDS,
            *_STORE,
        ),
        examples=("toolmatrix config", "toolmatrix config --json"),
    ),
    Command(
        name="completion",
        summary="Print a shell completion script",
        usage="SHELL",
        completer="choices",
        choices=("bash", "zsh", "fish"),
        formats=("text",),
        examples=(
            "toolmatrix completion bash > ~/.local/share/bash-completion/completions/toolmatrix",
            "toolmatrix completion fish > ~/.config/fish/completions/toolmatrix.fish",
            "toolmatrix completion zsh > ~/.zfunc/_toolmatrix",
        ),
    ),
    Command(
        name="help",
        summary="Show help for the program, a command or a topic",
        usage="[COMMAND|TOPIC]",
        completer="command",
        own=("man",),
        formats=("text",),
        examples=(
            "toolmatrix help",
            "toolmatrix help resolve",
            "toolmatrix help topics",
            "toolmatrix help --man resolve > toolmatrix-resolve.1",
        ),
    ),
)

COMMANDS: dict[str, Command] = {command.name: command for command in _ALL}


def meanings(option: Option) -> dict[str, list[str]]:
    """The meanings of an option, each with the names of the commands that it has it for."""
    found: dict[str, list[str]] = {}
    for command in _ALL:
        if option.name in command.options:
            found.setdefault(option.meaning(command.name), []).append(command.name)
    return found


def every_format() -> tuple[str, ...]:
    """The formats of all commands."""
    return tuple(dict.fromkeys(name for command in _ALL for name in command.forms))
