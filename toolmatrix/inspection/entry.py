"""The Python that an image starts: by its entry point and command, through shells, wrappers and environments.

Where these start something else, it is the Python that a bare `python3` starts. Nothing of a script is run: the
environments that it names are taken out of its text, see `scripts`.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from toolmatrix.images.layers import DIRECTORY
from toolmatrix.inspection.programs import PACKAGED
from toolmatrix.inspection.record import PATH, View
from toolmatrix.inspection.scripts import Script, command_of
from toolmatrix.inspection.shell.run import CONDA, Shell
from toolmatrix.inspection.shell.state import Ending, State
from toolmatrix.inspection.shell.syntax import UNKNOWN, UnreadScript
from toolmatrix.inspection.stated import ModuleArchive
from toolmatrix.value import Value

_PYTHON = re.compile(r"(?:pypy|python)\d*(?:\.\d+)*t?")
_SHELLS = ("sh", "ash", "bash", "dash", "zsh")
# Words of a command in which a Python is looked for.
_MOST_OPTIONS = 40
# Programs that start nothing of what they are given.
_IDLE = (
    *("basename", "cat", "chmod", "chown", "cp", "dirname", "file", "find", "grep", "install"),
    *("ln", "ls", "mkdir", "mv", "readlink", "realpath", "rm", "sed", "stat", "touch", "which"),
    *("tar", "tee", "test", "update-alternatives"),
)
# Programs that start another as a user, with the home of that one.
_SWITCHES = ("gosu", "su-exec")
# Programs that start the program behind their options.
_WRAPPERS = ("tini", "dumb-init", "catatonit", "env", "exec", "nohup", "command")
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
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PROGRAM = re.compile(r"[\w./+-]+")
# Variables that decide what is imported and loaded.
_DECIDES = re.compile(r"PYTHON\w+|HOME|LD_(?:LIBRARY_PATH|PRELOAD)")
# Options of shells with a value of their own.
_VALUED_OF_SHELLS = ("--rcfile", "--init-file")


class Start(Value):
    """The interpreter of a process: `called` is its path, `options` are the letters of its options.

    `first` is the directory that it puts first on its import path, if it puts one there: it does whatever its options
    where that `is_whole` what it runs, an archive or a directory. `words` name it in a chain.
    `is_entry`: the image starts it itself. `unclear` is a script that may start another one. `is_alone`: it is all that
    runs; a program of the distribution, such as a supervisor, may start the Python of PATH. `unknown` is a script or an
    archive with code that decides what is imported. `others` may be started in its place: `script` decides it
    by what is not known. `user` is one that it is started as, if that is not the image's.
    """

    called: str
    words: str
    env: Mapping[str, str]
    first: str
    is_whole: bool = False
    folder: str = ""
    options: str = ""
    is_entry: bool = False
    unclear: str = ""
    is_alone: bool = False
    unknown: str = ""
    script: str = ""
    user: str = ""
    others: tuple[Start, ...] = ()


class _Steps:
    def __init__(
        self, view: View, env: Mapping[str, str], folder: str, shell: Shell | None
    ) -> None:
        self.view = view
        self.env = dict(env)
        self.folder = folder
        self.shell = shell or Shell(view, self._inside, self._conda_prefix)
        self.where = ""
        self.user = ""
        self.unknown = ""
        # The engine runs a program itself, and not as execvp(3) does.
        self.is_engine = shell is None

    # What a program starts that a shell runs.
    def _inside(
        self, words: Sequence[str], env: Mapping[str, str], folder: str, where: str
    ) -> list[Ending]:
        steps = _Steps(self.view, env, folder, self.shell)
        steps.where = where
        return steps.endings(words)

    def which(self, name: str) -> str:
        """The path at which a program is found; empty where it is not."""
        if "/" in name:
            path = posixpath.normpath(posixpath.join(self.folder, name)).strip("/")
            return path if self.view.is_runnable(path) else ""
        known, unknown, _ = self.env.get("PATH", "").partition(UNKNOWN)
        if not unknown:
            return self.view.which(name, self.env)
        # Only the directories before what is not known are looked in.
        known = known.rpartition(":")[0]
        path = self.view.which(name, {"PATH": known}) if known else ""
        self.unknown = self.unknown or (self.where if not path else "")
        return path

    def enter(self, prefix: str) -> None:
        """Activate an environment: its programs come first."""
        folder = f"/{prefix.strip('/')}/bin"
        self.env["PATH"] = f"{folder}:{':'.join('/' + path for path in self.view.path(self.env))}"

    def endings(self, words: Sequence[str]) -> list[Ending]:
        """What these words start, in each way that it may end."""
        for _ in range(_MOST_STEPS):
            if not words:
                break
            if self._is_shell(words[0]):
                return self._shell(words)
            rest = self._unwrapped(words[0], words[1:])
            if rest is None:
                break
            words = rest
            self.is_engine = False
        start = self._started(words) if words else None
        if start is None and self._may_start_others(words):
            # A program of another kind may start what is among its words, as `timeout` does.
            for place, word in enumerate(words[1:_MOST_OPTIONS], 1):
                if self._is_program(word):
                    return self.endings(words[place:])
        return [self._ending((start,) if start is not None else ())]

    def _ending(self, started: tuple[Start, ...] = ()) -> Ending:
        return Ending(self.env, self.folder, started, self.unknown)

    def _is_shell(self, name: str) -> bool:
        return posixpath.basename(name) in _SHELLS

    def _may_start_others(self, words: Sequence[str]) -> bool:
        if not words or posixpath.basename(words[0]) in _IDLE:
            return False
        entry = self.view.tree.entry(self.which(words[0]))
        return entry is None or not isinstance(entry.content, Script)

    def _is_program(self, word: str) -> bool:
        if _is_python(word) or self._is_shell(word):
            return True
        path = self.which(word) if _PROGRAM.fullmatch(word) else ""
        entry = self.view.tree.entry(path) if path else None
        return entry is not None and isinstance(entry.content, Script | ModuleArchive)

    # The words that a wrapper starts; None for a program that is none.
    def _unwrapped(self, called: str, words: Sequence[str]) -> Sequence[str] | None:
        name = posixpath.basename(called)
        if match := _ASSIGNMENT.fullmatch(called):
            self.env[match[1]] = match[2]
            return words
        if name == "env":
            return self._env(words)
        if name in _SWITCHES and words:
            self.user = words[0]
            self.env["HOME"] = self.view.account(words[0])[2]
            return words[1:]
        if name in _WRAPPERS:
            return _options(words)[1] or None
        if name in CONDA and words[:1] == ["run"]:
            return self._conda(words[1:])
        if words[:1] == ["run"] and (name in _PROJECTS or name == "pixi"):
            return self._project(name, words[1:])
        return self._script(self.which(called), words)

    # A script for a shell is one that the kernel gives to it, or that execvp(3) does as it has no first line.
    def _script(self, path: str, words: Sequence[str]) -> Sequence[str] | None:
        entry = self.view.tree.entry(path) if path else None
        script = entry.content if entry is not None else None
        if not isinstance(script, Script):
            return None
        line = command_of(script.line) if script.line else ("/bin/sh",)
        is_own = bool(line) and posixpath.basename(line[0]) in (*_SHELLS, *_WRAPPERS)
        if not is_own or (not script.line and self.is_engine):
            return None
        return [*line, f"/{path}", *words]

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

    def _shell(self, words: Sequence[str]) -> list[Ending]:
        name = posixpath.basename(words[0])
        letters, named, rest = _shell_options(words[1:])
        is_line = "c" in letters
        text, where = (rest[0], f"{name} -c") if is_line and rest else ("", name)
        unread = False
        if not is_line and rest:
            where = posixpath.normpath(posixpath.join(self.folder, rest[0]))
            entry = self.view.tree.entry(where)
            script = entry.content if entry is not None else None
            if not isinstance(script, Script):
                unread = entry is not None
            else:
                text, unread = script.text, script.is_cut
        arguments = rest[1:]
        if is_line:
            name, arguments = (rest[1], rest[2:]) if rest[1:] else (name, [])
        else:
            name = rest[0] if rest else name
        state = State(self.env, self.folder, where, name, arguments)
        if not is_line:
            state.variables["BASH_SOURCE"] = name
        self._prepare(state, posixpath.basename(words[0]))
        sourced = self._sourced(posixpath.basename(words[0]), letters, named, state)
        try:
            ended = self.shell.run(state, text, sourced) if not unread else []
        except UnreadScript:
            ended = []
        return ended or [self._unread(rest if not is_line else (), where)]

    # What starts where a script is not understood: the program among its arguments, if any does.
    def _unread(self, words: Sequence[str], where: str) -> Ending:
        self.where = where
        start = self._started(words[1:]) if words[1:] else None
        self.unknown = self.unknown or where
        return self._ending((start,) if start is not None else ())

    # Variables that the shell sets itself; only those of the image are exported.
    def _prepare(self, state: State, name: str) -> None:
        state.variables.setdefault("HOME", self.view.home)
        state.variables.setdefault("PATH", PATH)
        state.exported |= {"HOME", "PATH"}
        if name == "bash":
            user = str(self.view.user) if self.view.user >= 0 else UNKNOWN
            own = {"BASH": "/bin/bash", "BASH_VERSION": UNKNOWN, "OSTYPE": "linux-gnu"}
            state.variables |= {**own, "UID": user, "EUID": user}

    # The files that a shell reads first, in the order of bash(1) and dash(1).
    def _sourced(
        self, name: str, letters: Collection[str], named: Collection[str], state: State
    ) -> list[str]:
        home = state.variables["HOME"]
        own = f"{home}/.profile"
        files: list[str] = []
        is_login = "l" in letters or "--login" in named
        if name == "zsh":
            files += ["/etc/zsh/zshenv", f"{home}/.zshenv"]
            files += ["/etc/zsh/zprofile", f"{home}/.zprofile"] if is_login else []
        elif is_login and "--noprofile" not in named:
            mine = (
                [f"{home}/.bash_profile", f"{home}/.bash_login", own] if name == "bash" else [own]
            )
            files += ["/etc/profile", *[file for file in mine if self.view.tree.entry(file)][:1]]
        elif "i" in letters and name == "bash" and "--norc" not in named:
            state.set("PS1", "$ ")
            files += ["/etc/bash.bashrc", f"{home}/.bashrc"]
        elif "i" in letters and name != "bash":
            files += [self.env["ENV"]] if self.env.get("ENV") else []
        if name == "bash" and "i" not in letters and self.env.get("BASH_ENV"):
            files.append(self.env["BASH_ENV"])
        return [file for file in files if self.view.tree.entry(posixpath.join(self.folder, file))]

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
        prefix = self._conda_prefix(name, self.env, self.folder)
        if prefix:
            self.enter(prefix)

    def _conda_prefix(self, name: str, env: Mapping[str, str], folder: str) -> str:
        if "/" in name:
            prefix = posixpath.normpath(posixpath.join(folder, name)).strip("/")
            return prefix if self.view.tree.names(prefix) else ""
        conda = next(filter(None, (self.view.which(program, env) for program in CONDA)), "")
        roots = [env.get("MAMBA_ROOT_PREFIX", ""), _above(_above(conda)), "opt/conda"]
        prefixes = (
            root if name == "base" else f"{root}/envs/{name}" for root in filter(None, roots)
        )
        return next(filter(self.view.tree.names, prefixes), "").strip("/")

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
        unknown = ""
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
                    break
        # Behind them is what it runs, and then the arguments of that.
        if any(UNKNOWN in word for word in words[: len(words) - len(rest) + 1]):
            unknown = self.where
        is_whole = False
        if rest and rest[0] != "-" and not {"m", "c"} & options:
            script = posixpath.normpath(posixpath.join(self.folder, rest[0]))
            real = self.view.tree.real(script)
            entry = self.view.tree.entry(script)
            content = entry.content if entry is not None else None
            first = f"/{real}" if real else script
            if isinstance(content, Script) and content.is_archive:
                unknown = first
            elif isinstance(content, ModuleArchive):
                unknown = unknown or (first if _LOADERS & {*dict(content.names)} else "")
                # Without names it is no archive, and read as a source.
                is_whole = bool(content.names) or content.is_partial
            else:
                is_whole = entry is not None and entry.kind == DIRECTORY
            # Of an archive and a directory the code is in them.
            first = first if is_whole else posixpath.dirname(first)
        decisive = (text for name, text in self.env.items() if _DECIDES.fullmatch(name))
        if any(UNKNOWN in text for text in (self.folder, *decisive)):
            unknown = unknown or self.where
        return Start(
            called=called,
            words=name,
            env=self.env,
            options="".join(sorted(options)),
            first=first,
            is_whole=is_whole,
            folder=self.folder,
            is_entry=True,
            is_alone=not is_packaged,
            unknown=unknown or self.unknown,
            script=self.where,
            user=self.user,
        )


# The options at the beginning of some words, and the rest.
def _options(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    count = next((place for place, word in enumerate(words) if word[:1] != "-"), len(words))
    return words[:count], words[count:]


# The letters of a shell's options, those with a name, and the rest.
def _shell_options(words: Sequence[str]) -> tuple[set[str], list[str], list[str]]:
    rest, letters, named = deque(words), set[str](), list[str]()
    while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
        option = rest.popleft()
        if option.startswith("--"):
            named.append(option)
        else:
            letters |= {*option[1:]} if option[0] == "-" else set()
        if (option in _VALUED_OF_SHELLS or (option[1:2] != "-" and option[-1] in "oO")) and rest:
            rest.popleft()
    if rest and rest[0] in ("-", "--"):
        rest.popleft()
    return letters, named, [*rest]


def _is_python(word: str) -> bool:
    return _PYTHON.fullmatch(posixpath.basename(word)) is not None


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _setting(view: View, key: str) -> list[str]:
    value = view.settings.get(key)
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def starts(view: View) -> Iterator[Start]:
    """The Python that the image starts itself, or else a bare name would; then those that other names start."""
    steps = _Steps(view, view.env, view.folder, None)
    words = [*_setting(view, "Entrypoint"), *_setting(view, "Cmd")]
    endings = steps.endings(words) if words else []
    entries = [_entry(ending) for ending in endings if ending.started]
    if entries:
        distinct = [*{_decisive(entry): entry for entry in entries}.values()]
        yield distinct[0].replace(others=tuple(distinct[1:]))
    # A shell or a script that the image starts may have activated an environment.
    idle = [] if entries else endings
    env, folder = (idle[0].env, idle[0].folder) if idle else (view.env, view.folder)
    unknown = next((ending.unknown for ending in idle if ending.unknown), "")
    if len({view.which("python3", ending.env) for ending in idle}) > 1:
        unknown = unknown or words[0]
    which: Callable[[str], str] = lambda name: view.which(name, env)  # noqa: E731
    for name in ("python3", "python"):
        called = which(name)
        if called:
            yield Start(
                called=called,
                words=name,
                env=env,
                first=folder,
                folder=folder,
                is_alone=True,
                unknown=unknown,
            )


# The last Python of those that were started: the ones before it prepare something, such as a database, or look for a
# version. Another interpreter may go on beside it.
def _entry(ending: Ending) -> Start:
    *others, last = (start for start in ending.started if isinstance(start, Start))
    unclear = (
        last.script if ending.unknown or {start.called for start in others} - {last.called} else ""
    )
    return last.replace(unknown=last.unknown or ending.unknown, unclear=unclear)


def _decisive(start: Start) -> object:
    env = {name: text for name, text in start.env.items() if _DECIDES.fullmatch(name)}
    return start.called, start.options, start.first, start.unknown, frozenset(env.items())
