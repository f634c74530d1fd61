"""The Python that an image starts: by its entry point and command, through shells, wrappers and environments.

Where these start something else, it is the Python that a bare `python3` starts. Nothing of a script is run: the
environments that it names are taken out of its text, see `scripts`.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from toolmatrix.images.layers import DIRECTORY
from toolmatrix.inspection.programs import PACKAGED, SETTINGS
from toolmatrix.inspection.record import View
from toolmatrix.inspection.scripts import Script, command_of
from toolmatrix.inspection.stated import ModuleArchive
from toolmatrix.value import Value

_PYTHON = re.compile(r"(?:pypy|python)\d*(?:\.\d+)*t?")
_SHELLS = ("sh", "ash", "bash", "dash", "zsh")
# Commands of a shell that start nothing, and scripts that only define `conda`.
_SILENT = ("set", "eval", "ulimit", "umask", "echo")
_OF_CONDA = ("conda.sh", "mamba.sh", "micromamba.sh")
# Words of a command in which a Python is looked for.
_MOST_OPTIONS = 40
# Programs that start the program behind their options.
_WRAPPERS = ("tini", "dumb-init", "catatonit", "env", "exec", "nohup", "command")
_CONDA = ("conda", "mamba", "micromamba")
# The environment that `RUNNER run` takes, beside the project.
_PROJECTS = {"uv": ".venv", "pdm": ".venv", "hatch": ".venv", "rye": ".venv"}
# Their options with a value of its own, as `uv run --help` and `pixi run --help` list them.
_OF_PROJECTS = {
    "uv": (
        *("-p", "--python", "--project", "--directory", "--package", "--env-file", "--color"),
        *("-w", "--with", "--with-editable", "--with-requirements", "--python-platform"),
        *("--extra", "--no-extra", "--group", "--no-group", "--only-group", "--cache-dir"),
        *("--index", "--default-index", "-i", "--index-url", "--extra-index-url", "-f"),
        *("--find-links", "--index-strategy", "--keyring-provider", "--resolution", "--prerelease"),
        *("-P", "--upgrade-package", "--exclude-newer", "--link-mode", "-C", "--config-setting"),
        *("--no-build-package", "--no-binary-package", "--refresh-package", "--config-file"),
        *("--reinstall-package", "--no-build-isolation-package", "--allow-insecure-host"),
    ),
    "pixi": ("-e", "--environment", "--manifest-path", "--color", "--auth-file"),
    "pdm": ("-p", "--project", "-s", "--site-packages", "--venv"),
}
# Modules of archives that look for packages by themselves: shiv puts its own there.
_LOADERS = frozenset(("_bootstrap",))
# Options of Python that take the next word as their value.
_VALUED = ("-W", "-X", "--check-hash-based-pycs")
# Wrappers in wrappers that are followed.
_MOST_STEPS = 12
# Commands of a line, words that its arguments make of one, and characters of one of them and of a variable.
_MOST_COMMANDS = 100
_MOST_WORDS = 100_000
_LONGEST = 4096
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ACTIVATE = "/bin/activate"


class Start(Value):
    """The interpreter of a process: `called` is its path, `options` are the letters of its options.

    `first` is the directory that it puts first on its import path, if it puts one there. `words` name it in a chain.
    `is_entry`: the image starts it itself. `unclear` is a script that may start another one. `is_alone`: it is all that
    runs; a program of the distribution, such as a supervisor, may start the Python of PATH. `unknown` is a script or an
    archive with code that decides what is imported.
    """

    called: str
    words: str
    env: Mapping[str, str]
    first: str
    options: str = ""
    is_entry: bool = False
    unclear: str = ""
    is_alone: bool = False
    unknown: str = ""


class _Steps:
    def __init__(self, view: View) -> None:
        self.view = view
        self.env = dict(view.env)
        self.folder = view.folder
        self.unclear = ""
        self.unknown = ""

    def which(self, name: str) -> str:
        """The path at which a program is found; empty where it is not."""
        if "/" in name:
            path = posixpath.normpath(posixpath.join(self.folder, name)).strip("/")
            return path if self.view.is_runnable(path) else ""
        return self.view.which(name, self.env)

    def enter(self, prefix: str) -> None:
        """Activate an environment: its programs come first."""
        folder = f"/{prefix.strip('/')}/bin"
        self.env["PATH"] = f"{folder}:{':'.join('/' + path for path in self.view.path(self.env))}"

    def python(self, words: Sequence[str]) -> Start | None:
        """The Python that these words start."""
        steps = 0
        while words and steps < _MOST_STEPS:
            steps += 1
            rest = self._unwrapped(words[0], words[1:])
            if rest is None:
                break
            words = rest
        # A program of another kind may start the Python that is among its words, as `timeout` does.
        begins = [
            0,
            *(place for place, word in enumerate(words[:_MOST_OPTIONS]) if _is_python(word)),
        ]
        started = (self._started(words[place:]) for place in begins if place < len(words))
        return next(filter(None, started), None)

    # The words that a wrapper starts; None for a program that is none.
    def _unwrapped(self, called: str, words: Sequence[str]) -> Sequence[str] | None:
        name = posixpath.basename(called)
        if match := _ASSIGNMENT.fullmatch(called):
            self.env[match[1]] = match[2]
            return words
        if name == "env":
            return self._env(words)
        if name in _WRAPPERS:
            return _options(words)[1] or None
        if name in _SHELLS:
            return self._shell(words)
        if name in _CONDA and words[:1] == ["run"]:
            return self._conda(words[1:])
        if words[:1] == ["run"] and (name in _PROJECTS or name == "pixi"):
            return self._project(name, words[1:])
        return self._script(words, self.which(called))

    def _env(self, words: Sequence[str]) -> Sequence[str] | None:
        rest = deque(words)
        while rest and rest[0].startswith("-"):
            option = rest.popleft()
            if option in ("-i", "-", "--ignore-environment"):
                self.env.clear()
            elif option in ("-u", "--unset") and rest:
                self.env.pop(rest.popleft(), None)
            elif option.startswith("--unset="):
                self.env.pop(option.partition("=")[2], None)
            elif option in ("-C", "--chdir") and rest:
                self._change(rest.popleft())
        return [*rest] or None

    def _change(self, folder: str) -> None:
        self.folder = posixpath.normpath(posixpath.join(self.folder, folder))

    def _shell(self, words: Sequence[str]) -> Sequence[str] | None:
        self._activate(self.env.get("BASH_ENV", "") or self.env.get("ENV", ""))
        options, rest = _options(words, "-+")
        letters = {*"".join(option for option in options if option[:2] != "--")}
        if "l" in letters or "--login" in options:
            self._log_in()
        if rest and "c" in letters:
            return self._line(rest[0], rest[1:])
        entry = self.view.tree.entry(posixpath.join(self.folder, rest[0])) if rest else None
        if entry is not None and not isinstance(entry.content, Script) and not entry.is_program:
            self.unknown = posixpath.join(self.folder, rest[0])
        return rest or None

    # What a login shell reads may set PATH anew, to what a system has by default.
    def _log_in(self) -> None:
        called = (self.view.which("python3", env) for env in (self.env, {}))
        folders = {self.view.tree.real(_above(path)) for path in called}
        if self.view.tree.entry("etc/profile") is not None and len(folders) > 1:
            self.unknown = "/etc/profile"

    # The last command of a line of a shell, with the variables and environments that the ones before it set.
    def _line(self, line: str, arguments: Sequence[str]) -> Sequence[str] | None:
        last: list[str] = []
        for part in re.split(r"&&|;|\n", line)[:_MOST_COMMANDS]:
            try:
                words = shlex.split(part[:_LONGEST], comments=True)
            except ValueError:
                return None
            if len(words) * len(arguments) > _MOST_WORDS and {"$@", "$*"} & {*words}:
                return None
            words = [
                expanded
                for word in words
                for expanded in (arguments if word in ("$@", "$*") else [self._expanded(word)])
            ]
            if not words:
                continue
            if words[0] in (".", "source"):
                self._source(words[1] if len(words) > 1 else "")
            elif words[0] == "cd" and len(words) > 1:
                self._change(words[1])
            elif words[0] == "export" or all(map(_ASSIGNMENT.fullmatch, words)):
                self._set(words)
            elif words[0] == "unset":
                for name in words[1:]:
                    self.env.pop(name, None)
            elif words[:2] in (["conda", "activate"], ["micromamba", "activate"]):
                self._enter_conda(words[2] if len(words) > 2 else "base")
            elif words[0] not in _SILENT or any(map(_is_python, words)):
                last = words
        return last or None

    def _expanded(self, word: str) -> str:
        text = _VARIABLE.sub(lambda match: self.env.get(match[1] or match[2], ""), word[:_LONGEST])
        return text[:_LONGEST]

    def _set(self, words: Sequence[str]) -> None:
        for match in filter(None, map(_ASSIGNMENT.fullmatch, words)):
            self.env[match[1]] = match[2]

    def _source(self, script: str) -> None:
        path = posixpath.join(self.folder, script)
        known = script.endswith(_ACTIVATE) or posixpath.basename(script) in _OF_CONDA
        if self.view.tree.entry(path) is not None and not known:
            self.unknown = path
        self._activate(script)

    def _activate(self, script: str) -> None:
        prefix = posixpath.join(self.folder, script.removesuffix(_ACTIVATE))
        if script.endswith(_ACTIVATE) and self.view.tree.entry(f"{prefix}/{SETTINGS}"):
            self.enter(prefix)

    def _conda(self, words: Sequence[str]) -> Sequence[str] | None:
        name, rest = "base", deque(words)
        while rest and rest[0].startswith("-"):
            option = rest.popleft()
            if option in ("-n", "--name", "-p", "--prefix", "--cwd") and rest:
                value = rest.popleft()
                name = value if option != "--cwd" else name
            elif option.startswith(("--name=", "--prefix=")):
                name = option.partition("=")[2]
        self._enter_conda(name)
        return [*rest] or None

    def _enter_conda(self, name: str) -> None:
        if "/" in name:
            self.enter(posixpath.join(self.folder, name))
            return
        conda = next(filter(None, map(self.which, _CONDA)), "")
        roots = [self.env.get("MAMBA_ROOT_PREFIX", ""), _above(_above(conda)), "opt/conda"]
        for root in filter(None, roots):
            prefix = root if name == "base" else f"{root}/envs/{name}"
            if self.view.tree.names(prefix):
                self.enter(prefix)
                return

    def _project(self, name: str, words: Sequence[str]) -> Sequence[str] | None:
        folder = _PROJECTS.get(name, ".pixi/envs/default")
        project, python, rest = self.folder, "", deque(words)
        while rest and rest[0].startswith("-"):
            option, equals, value = rest.popleft().partition("=")
            if not equals and option in _OF_PROJECTS.get(name, ()) and rest:
                value = rest.popleft()
            if option in ("-e", "--environment"):
                folder = f".pixi/envs/{value}"
            elif option in ("--project", "--directory"):
                project = posixpath.join(self.folder, value)
                self.folder = project if option == "--directory" else self.folder
            elif option in ("-p", "--python") and "/" in value:
                python = posixpath.join(self.folder, value)
        prefix = posixpath.join(project, self.env.get("UV_PROJECT_ENVIRONMENT") or folder)
        self.enter(_above(_above(python)) if python else prefix)
        return [*rest] or None

    # A script of a shell that runs its arguments may set variables before.
    def _script(self, words: Sequence[str], path: str) -> Sequence[str] | None:
        entry = self.view.tree.entry(path) if path else None
        script = entry.content if entry is not None else None
        if not isinstance(script, Script):
            return None
        line = command_of(script.line)
        if not line or posixpath.basename(line[0]) not in _SHELLS:
            return None
        self.unclear = path
        for prefix in reversed(script.environments):
            if self.view.tree.names(f"{prefix}/bin"):
                self.enter(prefix)
        if script.is_unclear:
            self.unknown = f"/{path}"
        return self._line("\n".join(script.effects), words) or words

    def _started(self, words: Sequence[str]) -> Start | None:
        called = self.which(words[0])
        if not called:
            return None
        # A link to it may have any name.
        real = self.view.tree.real(called) or called
        if any(_PYTHON.fullmatch(posixpath.basename(path)) for path in (words[0], real)):
            return self._interpreter(called, words[0], words[1:])
        entry = self.view.tree.entry(called)
        script = entry.content if entry is not None else None
        line = command_of(script.line) if isinstance(script, Script | ModuleArchive) else ()
        if not line or not _PYTHON.fullmatch(posixpath.basename(line[0])):
            return None
        interpreter = self.which(line[0])
        return (
            self._interpreter(
                interpreter,
                words[0],
                (*line[1:], f"/{called}"),
                is_packaged=PACKAGED.match(self.view.tree.real(called) or "") is not None,
            )
            if interpreter
            else None
        )

    def _interpreter(
        self, called: str, name: str, words: Sequence[str], *, is_packaged: bool = False
    ) -> Start:
        archive = ""
        options: set[str] = set()
        rest = deque(words)
        first = self.folder
        while rest and rest[0].startswith("-") and rest[0] != "-":
            option = rest.popleft()
            if option in _VALUED and rest:
                rest.popleft()
            elif not option.startswith("--"):
                options.update(option[1:])
                if {"m", "c"} & options:
                    rest.clear()
        if rest and rest[0] != "-":
            script = posixpath.normpath(posixpath.join(self.folder, rest[0]))
            real = self.view.tree.real(script)
            entry = self.view.tree.entry(script)
            content = entry.content if entry is not None else None
            first = f"/{real}" if real else script
            if isinstance(content, Script) and content.is_archive:
                archive = first
            elif isinstance(content, ModuleArchive):
                archive = first if _LOADERS & {*dict(content.names)} else ""
                if not content.names and not content.is_partial:
                    # It is no archive, and read as a source.
                    first = posixpath.dirname(first)
            elif entry is None or entry.kind != DIRECTORY:
                # Of an archive and a directory the code is in them.
                first = posixpath.dirname(first)
        return Start(
            called=called,
            words=name,
            env=self.env,
            options="".join(sorted(options)),
            first=first,
            is_entry=True,
            unclear=self.unclear,
            is_alone=not is_packaged,
            unknown=archive or self.unknown,
        )


# The options at the beginning of some words, and the rest.
def _options(words: Sequence[str], signs: str = "-") -> tuple[Sequence[str], Sequence[str]]:
    count = next(
        (place for place, word in enumerate(words) if word[:1] not in (*signs,)), len(words)
    )
    return words[:count], words[count:]


def _is_python(word: str) -> bool:
    return _PYTHON.fullmatch(posixpath.basename(word)) is not None


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _setting(view: View, key: str) -> list[str]:
    value = view.settings.get(key)
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def starts(view: View) -> Iterator[Start]:
    """The Python that the image starts itself, or else a bare name would; then those that other names start."""
    steps = _Steps(view)
    entry = steps.python([*_setting(view, "Entrypoint"), *_setting(view, "Cmd")])
    if entry is not None:
        yield entry
    # A shell or a script that the image starts may have activated an environment.
    env = view.env if entry is not None else steps.env
    which: Callable[[str], str] = lambda name: view.which(name, env)  # noqa: E731
    for name in ("python3", "python"):
        called = which(name)
        if called:
            yield Start(
                called=called,
                words=name,
                env=env,
                first=view.folder if entry is not None else steps.folder,
                unclear=steps.unclear,
                unknown=steps.unknown,
            )
