"""Words of a plan without what changes from run to run: temp names, pids, where tools lie, their versions, archs.

Two plans of one source can then be held side by side: what is left differs because the drivers differ.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from toolmatrix.stages.model import Plan, Stage

# The word for the directory in which the toolkit lies.
TOOLKIT = "<toolkit>"

_TEMP = re.compile(r"(?:_tmp_)?tmpxft_[0-9a-f]+_[0-9a-f]+[-_]\d+_")
_TEMP_NAME = re.compile(r"""[^\s=,:"'<>]*tmpxft_[^\s=,"'<>]*""")
_RANDOM = re.compile(r"(?:-[0-9a-f]{6,})+(?=[./]|$)")
_ARCH_PART = re.compile(r"[.-](?:compute|sm|lto|gfx)_?\d\w*(?:[:@][\w:+-]+)?")
_ARCH = re.compile(r"\b(compute|sm|lto)_\d+[a-z]?\b|\b(sm=)\d+[a-z]?|\bgfx\d\w*(?:[:@][\w:+-]+)?")
_ARCH_DEFINE = re.compile(r"(-D_*CUDA_ARCH\w*=)[\d,]+(?=$)|(-D_*CUDA_ARCH_FEAT_)\w+")
_VERSION_DEFINE = re.compile(r"(-D_*CUD(?:ACC|A_API)_VER\w*=)\d+")
_COMPILER_VERSION = re.compile(r"(--?(?:gnu|clang|microsoft)_version=)(\d+)")
_VERSION = re.compile(r"(?<![A-Za-z_\d])\d+(?:\.\d+)*(?![A-Za-z_\d])")
_UNIT_ID = re.compile(r"(-cuid=)[0-9a-f]+")
_PATH = re.compile(r"""[^\s=,:"'<>]*[/\\][^\s=,"'<>]*""")
_ROOTS = ("TOP", "CUDA_ROOT", "_HERE_", "_THERE_")


class Folder:
    """Folds the words of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.roots = tuple(_roots(plan.env))
        written = {path for stage in plan.stages for path in stage.outputs}
        read = {path for stage in plan.stages for path in stage.inputs}
        passed_on = written & read
        self.names = {path: role(path) for path in passed_on}
        self.names |= {posixpath.basename(path): role(path) for path in passed_on}
        # `k.c` begins `k.cpp`, and the first alternative that fits is taken.
        longest_first = sorted(self.names, key=len, reverse=True)
        self.known = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def words(self, stage: Stage) -> tuple[str, ...]:
        """The words of a stage after its program, folded."""
        return tuple(self.word(word) for word in stage.argv[1:])

    def word(self, word: str) -> str:
        """One word, folded."""
        word = _VERSION_DEFINE.sub(r"\1*", _COMPILER_VERSION.sub(r"\1*", word))
        word = _UNIT_ID.sub(r"\1*", word)
        word = _ARCH_DEFINE.sub(lambda found: (found[1] or found[2]) + "*", word)
        word = self.known.sub(lambda found: self.names[found[0]], word)
        word = _TEMP_NAME.sub(lambda found: role(found[0]), word)
        word = _PATH.sub(lambda found: self.path(found[0]), word)
        return _ARCH.sub(
            lambda found: (found[1] + "_*") if found[1] else (found[2] or "gfx") + "*", word
        )

    def path(self, path: str) -> str:
        """A path that the plan does not pass on, folded."""
        # Names of temp files change from run to run.
        if path.startswith("/tmp/"):  # noqa: S108 - a name in a log
            return role(path)
        plain = path.replace("\\", "/")
        prefix = plain[:2] if plain[:1] == "-" else ""
        plain = posixpath.normpath(plain[len(prefix) :])
        for root in self.roots:
            if plain == root or plain.startswith(root + "/"):
                return prefix + TOOLKIT + plain[len(root) :]
        return prefix + _VERSION.sub("*", plain)


def role(path: str) -> str:
    """The name of a file without its directory, the run it belongs to, and the arch.

    `tmpxft_00003a36_00000000-6_saxpy.compute_90.cudafe1.stub.c` is `saxpy.cudafe1.stub.c`.
    """
    return _ARCH_PART.sub("", own_name(path))


def own_name(path: str) -> str:
    """The name of a file without its directory and without what changes from run to run."""
    return _RANDOM.sub("", _TEMP.sub("", path.replace("\\", "/").rpartition("/")[2]))


def _roots(env: Mapping[str, str]) -> Iterator[str]:
    # Of directories inside each other the innermost stands for the toolkit.
    found = set()
    for name in _ROOTS:
        path = env.get(name, "").strip().replace("\\", "/")
        if path:
            plain = posixpath.normpath(path)
            # nvcc prints the directory that it lies in itself, which is not the root of the toolkit.
            found.add(posixpath.dirname(plain) if posixpath.basename(plain) == "bin" else plain)
    yield from sorted(found - {"", "/", "."}, key=len, reverse=True)


def host_compiler(plan: Plan) -> str:
    """The host compiler that the front end was told, such as `gnu 120200`; empty where the plan does not say."""
    for stage in plan.stages:
        for word in stage.argv:
            found = _COMPILER_VERSION.fullmatch(word)
            if found:
                return found[1].strip("-").partition("_")[0] + " " + found[2]
    return ""
