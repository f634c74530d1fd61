"""Commands of pip that stop where the Python of a distribution is externally managed (PEP 668).

A stage is left alone where any of its words may mean another pip, or one that is allowed to install.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile

from toolmatrix.manifests.installers import BEFORE, SYSTEM_INSTALLERS, ShellCommand, Word, pip_words
from toolmatrix.manifests.model import SYSTEM_PIP, Item, Traced

# Another Python, an environment of its own, or leave to install into that of the distribution.
_FREES = re.compile(
    r"venv|virtualenv|externally.managed|break.system|activate|conda|mamba|pyenv|pipx|poetry|pixi|hatch|\buv\b"
    r"|get-pip|ensurepip|python-?\d\.\d|altinstall|alternatives|deadsnakes|pip\.conf|/pip/|\.sh$",
    re.IGNORECASE,
)
_VARIABLES = re.compile(
    r"PIP_(?:BREAK_SYSTEM_PACKAGES|CONFIG_FILE|PYTHON|TARGET|PREFIX|ROOT)|VIRTUAL_ENV"
)
# Options by which pip does not look for the mark (pip 24.0, `commands/install.py`).
_ELSEWHERE = frozenset(
    ("--break-system-packages", "--target", "-t", "--prefix", "--root", "--python", "--dry-run")
)
# Folders on the PATH that bring no other Python.
_TOOLS = re.compile(r"^/usr/|^/s?bin$|cuda|nvidia|\.local/bin$|cargo|/go/|node")
_SAME_PATH = frozenset(("", "$PATH", "${PATH}"))
_LOOKED_IN = ("/etc", "/usr", "/root/.")


class SystemPip:
    """The pip of the distribution in a stage; `free` where it may be another one, or may install."""

    def __init__(self, *, free: bool) -> None:
        self.free = free

    def set_variables(self, variables: Mapping[str, Word]) -> None:
        """Variables of the environment."""
        self.free |= any(map(_VARIABLES.fullmatch, variables))
        if "PATH" in variables:
            self.search_in(variables["PATH"].plain)

    def search_in(self, path: str) -> None:
        """Look for programs in the folders of a PATH."""
        folders = [folder for folder in path.split(":") if folder not in _SAME_PATH]
        self.free |= any(_FREES.search(folder) or not _TOOLS.search(folder) for folder in folders)

    def copy(self, text: str) -> None:
        """An instruction that copies files, which may bring settings or another Python."""
        *names, target = [word for word in text.split() if not word.startswith("--")] or [""]
        brings = target.startswith(_LOOKED_IN) and not target.startswith("/usr/src")
        # A folder may have all of these in it.
        folder = target == "/" and not all(posixpath.splitext(name)[1] for name in names)
        self.free |= brings or folder or "--from" in text
        self.read_words(text.split())

    def read_words(self, words: Iterable[str]) -> None:
        """Words that may name an environment or settings."""
        for word in words:
            self.free |= bool(_FREES.search(word))
            if word.startswith("PATH="):
                self.search_in(word.removeprefix("PATH="))

    def stopped(
        self, commands: Sequence[ShellCommand], variables: Mapping[str, Word], script: Traced
    ) -> Iterator[Item]:
        """The commands of an instruction that the mark stops; what follows `||` makes up for it."""
        stopped = []
        for command in commands:
            self.set_variables({**variables, **command.variables})
            words = list(dropwhile(lambda word: word.plain in BEFORE, command.words))
            item = _stopped(words)
            # What a stopped command would install is never there.
            if item:
                stopped.append(item)
            elif words and words[0].plain not in SYSTEM_INSTALLERS:
                self.free |= bool(words[0].unread)
                self.read_words(word.plain for word in words)
        if not self.free and "||" not in script.text:
            yield from stopped


def _stopped(words: Sequence[Word]) -> Item | None:
    """What a command of pip is stopped as, None for any other command."""
    program = words[0].plain if words else ""
    name = posixpath.basename(program)
    python, rest = pip_words(name, words)
    # An own path is that of another Python.
    if program not in (name, f"/usr/bin/{name}") or [word.plain for word in rest[:1]] != [
        "install"
    ]:
        return None
    # Elsewhere there is no mark.
    if _ELSEWHERE.intersection(word.plain.partition("=")[0] for word in rest):
        return None
    return Item(
        kind=SYSTEM_PIP,
        name="pip",
        specifier="",
        text=words[0].text,
        python=python,
    )
