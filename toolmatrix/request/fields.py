"""A request as it is written, one field for each option, and the words that options take.

Nothing here is looked up but the names of targets, accelerators and ways to get a framework, which the matrix declares.
"""

from __future__ import annotations

from toolmatrix.errors import CannotSay, UsageError
from toolmatrix.facts import names
from toolmatrix.facts.evidence import UNKNOWN, WORDS
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from toolmatrix.errors import Position, ToolmatrixError
    from toolmatrix.facts.index import Index

PREFERENCES = ("newest", "oldest", "best-evidence")

_X86 = ("x86_64", "x86-64", "x64", "amd64", "linux/amd64")
_ARM = ("aarch64", "arm64", "sbsa", "linux/arm64")
_OTHER_MACHINES = (
    *("riscv64", "riscv", "risc-v", "linux/riscv64", "ppc64le", "ppc64", "power", "linux/ppc64le"),
    *("s390x", "linux/s390x", "loongarch64", "windows", "macos", "darwin"),
)
_CUDA_TARGET = "a target is a machine: `--target x86` or `arm`, with `--accelerator cuda`"
_NONE: Mapping[str, str] = {}


class BadValue(UsageError):
    """A value that an option does not take; who knows where it stood says so."""

    def __init__(self, expected: str, found: str, help: str = "", name: str = "") -> None:
        what = f"bad value for `{name}`" if name else "bad value"
        super().__init__(what, expected=expected, found=found, help=help)
        self.name = name

    def about(
        self, kind: type[ToolmatrixError], what: str, where: Position | None = None
    ) -> ToolmatrixError:
        """The error for the option or key that it was meant for, and where it stood."""
        return kind(
            f"bad value for {what}",
            where=where,
            expected=self.expected,
            found=self.found,
            help=self.help,
        )


class Vocabulary(Value):
    """The words of an option besides those it takes.

    `synonyms` are other words for these, `unheard` words that mean something of which no fact speaks, and `advice` says
    of words that may mean several things what to write for each.
    """

    synonyms: Mapping[str, str] = _NONE
    unheard: tuple[str, ...] = ()
    advice: Mapping[str, str] = _NONE

    def pick(self, flag: str, text: str, known: Sequence[str]) -> str:
        """The one of the `known` words that is meant. Raises BadValue, and CannotSay for a word that is unheard of."""
        lower = text.lower()
        for word in (text, lower, self.synonyms.get(lower, "")):
            if word in known:
                return word
        expected = "one of " + ", ".join(known)
        if lower in self.unheard:
            raise CannotSay(
                f"`{flag} {text}`: no fact speaks of it",
                expected=expected,
                found=f"`{text}`",
                help="facts of your own can: `--matrix FILE`",
            )
        raise BadValue(expected, f"`{text}`", self.advice.get(lower) or meant(text, known))


def closest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """The known word that was probably meant, or nothing."""
    import difflib

    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=cutoff)), "")


def meant(word: str, known: Sequence[str], otherwise: str = "") -> str:
    """The help that names the known word that was probably meant, or says what else helps."""
    close = closest(word, known)
    return f"did you mean `{close}`?" if close else otherwise


PLAIN = Vocabulary()
VOCABULARIES = {
    "target": Vocabulary(
        synonyms={
            **dict.fromkeys(_X86, "x86"),
            **dict.fromkeys(_ARM, "arm"),
            **dict.fromkeys(("rocm", "hip"), "amd"),
        },
        unheard=_OTHER_MACHINES,
        advice={
            **dict.fromkeys(("gpu", "cuda", "nvidia"), _CUDA_TARGET),
            "cpu": "a target is a machine: `--target x86` or `arm`, with `--accelerator none`",
            "jetson": "`--target arm` with `--device`, such as `orin`",
        },
    ),
    "from_": Vocabulary(
        synonyms={
            **dict.fromkeys(("pip", "pypi", "uv", "wheels", "whl", "binary"), "wheel"),
            **dict.fromkeys(("src", "sources", "sdist", "build", "git"), "source"),
        },
        unheard=("conda", "mamba", "apt", "docker", "ngc", "nix", "spack"),
    ),
    "accelerator": Vocabulary(
        synonyms={"cpu": "none", "nvidia": "cuda", "amd": "rocm", "hip": "rocm"},
        unheard=("xpu", "sycl", "oneapi", "vulkan", "metal", "mps", "opencl", "tpu", "npu"),
        advice={"gpu": "`cuda` is for GPUs of NVIDIA, `rocm` for those of AMD"},
    ),
    "prefer": Vocabulary(
        synonyms={"latest": "newest", "highest": "newest", "lowest": "oldest"},
    ),
}
DECLARED = ("target", "from_", "accelerator")
"""The options whose words the front page of the matrix declares."""


class Fields(Value):
    """What is wanted, by name and selector, and each option of a request by its name, as somebody wrote them."""

    wanted: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    from_: str = ""
    accelerator: str = ""
    arch: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    cpu: str = ""
    distro: str = ""
    with_: tuple[str, ...] = ()
    prefer: str = "best-evidence"
    align: tuple[str, ...] = ()
    at: str = ""
    min_evidence: str = UNKNOWN

    def words(self) -> tuple[str, ...]:
        """What is wanted, then one `--option=value` for each option that is not at its default."""
        found = list(self.wanted)
        for name in OPTIONS:
            value = getattr(self, name)
            if value != _DEFAULTS[name]:
                several = (value,) if isinstance(value, str) else value
                several = several if name == "with_" else (",".join(several),)
                found += [f"{flag(name)}={one}" for one in several]
        return tuple(found)


_DEFAULTS: Mapping[str, Any] = Fields._defaults
OPTIONS = tuple(name for name in Fields._fields if name != "wanted")
_LISTS = tuple(name for name in OPTIONS if isinstance(_DEFAULTS[name], tuple))


def flag(name: str) -> str:
    """The long flag of a field."""
    return "--" + name.rstrip("_").replace("_", "-")


def given(words: Iterable[str]) -> dict[str, Any]:
    """The fields that words set: `name==1.2`, `--option value` or `--option=value`. Raises UsageError."""
    flags = {flag(name): name for name in OPTIONS}
    found: dict[str, Any] = {"wanted": ()}
    rest = iter(words)
    for word in rest:
        said, equals, value = word.partition("=")
        if not word.startswith("--"):
            found["wanted"] += (word,)
            continue
        if said not in flags:
            raise UsageError(f"`{said}` is no option of a request", expected=", ".join(flags))
        name, value = flags[said], value if equals else next(rest, "")
        if not value:
            raise BadValue("a value", "nothing", name=said)
        if name in _LISTS:
            several = (value,) if name == "with_" else value.split(",")
            found[name] = (*found.get(name, ()), *filter(None, map(str.strip, several)))
        elif found.setdefault(name, value) != value:
            raise UsageError(f"`{said} {found[name]}` and `{said} {value}` contradict each other")
    return found


def settled(fields: Fields, index: Index) -> Fields:
    """The fields with the words that the matrix and the options know for those that were written.

    Raises BadValue with the name of the field, and CannotSay for a word of which no fact speaks.
    """
    changes: dict[str, Any] = {}
    for name in (*DECLARED, "prefer", "min_evidence"):
        value = getattr(fields, name)
        if value == _DEFAULTS[name]:
            continue
        words = known(index, name)
        pick = VOCABULARIES.get(name, PLAIN).pick
        try:
            changes[name] = (
                tuple(pick(flag(name), word, words) for word in value)
                if name in _LISTS
                else pick(flag(name), value, words)
            )
        except BadValue as bad:
            raise BadValue(bad.expected, bad.found, bad.help, name) from None
    if fields.at and not is_date(fields.at):
        raise BadValue("a date such as 2026-11-20", f"`{fields.at}`", name="at")
    return fields.replace(**changes) if changes else fields


def known(index: Index, name: str) -> Sequence[str]:
    """The words that an option takes, of which the matrix may declare some."""
    if name in DECLARED:
        return names(index, name.rstrip("_"), "")
    return {"prefer": PREFERENCES, "min_evidence": WORDS}[name]


def is_date(text: str) -> bool:
    """Whether a text is a day such as 2026-11-20."""
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
