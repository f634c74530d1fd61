"""Scripts whose interpreter is gone: the first line of each as the layers are read, and its target in the image.

The kernel takes the line by execve(2), env(1) the name behind it by PATH. A virtual environment that was copied without
its Python, or to another directory, holds such scripts, while the records of its packages still have their versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import Readable, first
from toolmatrix.inspection import programs
from toolmatrix.inspection.model import NO_INTERPRETER
from toolmatrix.inspection.programs import Default
from toolmatrix.inspection.record import Record, View
from toolmatrix.value import Value

MAGIC = b"#!"
_ZIP = b"PK\x03\x04"
# Bytes of a script that Linux looks at, execve(2): of a longer line the interpreter is not known.
_LONGEST = 256
# The interpreter and the rest of the line, which is one argument. One that is no absolute path depends on where
# the script is started.
_LINE = re.compile(r"(/[^ \t\0]*)(?:[ \t]+([^ \t\0][^\0]*))?")
# The name that env looks for on PATH: that of a line to be split, or all of another. Options, variables and quotes are
# not evaluated.
_ENV = re.compile(
    r"""(?:-S|--split-string=)\s*([^-=/\s\\$'"#][^=/\s\\$'"]*)(?:\s.*)?|([^-=/][^=/]*)""", re.DOTALL
)
# Files that GDB reads beside a program, "The objfile-gdb.ext file" of its manual; pyenv puts such a file into bin.
_OF_GDB = ("-gdb.py", "-gdb.gdb", "-gdb.scm")
_SHELL = re.compile(r"\b(?:ba|da|a|z)?sh\b")
# Files that shells read when they start, that activate environments or set variables for a script.
_SOURCED = re.compile(
    r"(?:.*/)?(?:activate|environment|z?profile|bashrc|bash\.bashrc|zshenv|[^/]*\.(?:sh|bash|env)"
    r"|\.(?:profile|bash_profile|bash_login|bashrc|env|zprofile|zshenv))|etc/(?:default|sysconfig)/[^/]+"
)
# Bytes of a script that are read.
_MOST_TEXT = 16 << 10
# Directories that exist only once a container runs.
_MOUNTED = ("/dev", "/proc", "/run", "/sys")
_MOST_USERS = 8


class Script(Value):
    """A file that another program reads; `line` is the text behind `#!`, empty where it has none.

    `text` is what a shell would run. `is_archive`: behind the line is a zip archive, such as of pex, with code that
    finds the packages in it. `is_cut`: there is more text than was read.
    """

    line: str
    text: str = ""
    is_archive: bool = False
    is_cut: bool = False


def command_of(line: str) -> tuple[str, ...]:
    """The words that the kernel and `env` make of the first line of a script; none where these are not known."""
    match = _LINE.fullmatch(line.strip(" \t"))
    if match is None:
        return ()
    interpreter, argument = match.groups("")
    if interpreter.endswith("/env"):
        split = re.fullmatch(r"(?:-S|--split-string=)\s*(.*)", argument)
        words = tuple(split[1].split() if split else [argument])
        return words if words[0] and not re.search(r"[-=$'\"\\]", words[0][:1]) else ()
    return (interpreter, *filter(None, (argument,)))


def is_script(path: str, size: int, head: bytes) -> bool:
    """Check whether a file is a script by the beginning of it, or one that shells read by its name."""
    return head.startswith(MAGIC) or (size <= _MOST_TEXT and _SOURCED.fullmatch(path) is not None)


def read(head: bytes, stream: Readable, budget: Budget) -> Script | None:
    """A script that begins with `head` and goes on in `stream`; None where its line is too long to be taken whole."""
    head += first(_LONGEST - len(head), stream)
    line = head.partition(b"\n")[0] if head.startswith(MAGIC) else b""
    if len(line) >= _LONGEST or not budget.reserve(len(line)):
        return None
    text = line.removeprefix(MAGIC).decode("utf-8", "surrogateescape")
    if line and not _SHELL.search(text):
        return Script(line=text, is_archive=head[len(line) + 1 :].startswith(_ZIP))
    body = head + first(_MOST_TEXT + 1 - len(head), stream)
    is_kept = len(body) <= _MOST_TEXT and budget.reserve(len(body))
    source = body[len(line) :].decode("utf-8", "replace") if is_kept else ""
    return Script(line=text, text=source, is_cut=not is_kept)


def observe(view: View, record: Record, defaults: Mapping[str, Default]) -> None:
    """Record the interpreters that are gone, each with the scripts on PATH that ask for it.

    Packages of a distribution bring or need what their scripts are run by: an image without it, such as one without a
    shell, lacks it on purpose. So of those directories only the programs whose versions are known, `defaults`, count.
    """
    called = {default.called for default in defaults.values()}
    for folder in dict.fromkeys(map(view.tree.real, view.path())):
        if folder and not programs.PACKAGED.match(f"{folder}/"):
            names = (name for name in view.tree.names(folder) if not name.endswith(_OF_GDB))
            called |= {f"{folder}/{name}" for name in names}
    by_interpreter: dict[str, list[str]] = {}
    for path in sorted(called):
        entry = view.tree.entry(path)
        if entry is not None and isinstance(entry.content, Script) and entry.is_program:
            real = view.tree.real(path) or path
            by_interpreter.setdefault(_missing(view, entry.content), []).append(real)
    by_interpreter.pop("", None)
    for interpreter, paths in by_interpreter.items():
        for where in paths[:_MOST_USERS]:
            record.feature(f"{NO_INTERPRETER}:{interpreter}", where, "script", where)


def _missing(view: View, script: Script) -> str:
    """The interpreter of a script, or what env looks for, where the image has none."""
    match = _LINE.fullmatch(script.line.strip(" \t"))
    volumes = view.settings.get("Volumes")
    folders = (*_MOUNTED, *(volumes if isinstance(volumes, dict) else ()))
    mounted = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    if match is None or f"{match[1]}/".startswith(mounted):
        return ""
    interpreter, argument = match.groups("")
    if view.tree.entry(interpreter) is None:
        return interpreter
    env_match = _ENV.fullmatch(argument) if interpreter.endswith("/env") else None
    name = (env_match[1] or env_match[2]) if env_match is not None else ""
    return f"env {name}" if name and name not in view.runnable else ""
