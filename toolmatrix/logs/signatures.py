"""The catalog of signatures: known failures and versions of components, as logs show them (matrix/signatures.yaml)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import Any

from toolmatrix.logs.matcher import SoughtTexts
from toolmatrix.resources import load_yaml, signatures_path
from toolmatrix.value import Value

_PACKAGE = re.compile(r"(?:site|dist)-packages/(\w+)")
# Where what a file is built for begins in its name.
_BUILT_FOR = re.compile(r"\.so|\.cpython-|\.abi3|\.dll")
_NAMELESS = ("c", "ext")
_PLAIN = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}")
_BETWEEN = re.compile(r"[^\w+]+|_")


class Number(Value):
    """How headers write a release of a component as one number: that of so many digits, and its factors."""

    component: str
    digits: int
    major: int
    minor: int

    def release(self, text: str) -> str:
        """The release that a number stands for; its last part is left out where the number has none."""
        number = int(text)
        parts = [number // self.major, number % self.major // self.minor]
        last = number % self.minor
        return ".".join(map(str, [*parts, last] if last else parts))


class LinePattern(Value):
    """A regular expression over a clean line, and a text that a line must hold before it is worth trying.

    `lower` is a group of releases, one of which has to be of the series of the group `spec` and lower; `higher` is that
    of a release which has to be at least that of the group `least`. `coded` says how numbers in it stand for releases.
    """

    has: str
    line: re.Pattern[str]
    lower: str = ""
    higher: str = ""
    coded: tuple[Number, ...] = ()

    def search(self, line: str) -> re.Match[str] | None:
        """The match of a line, if it has one."""
        found = self.line.search(line)
        if found is None:
            return None
        if self.lower and not _lower(found["spec"], found[self.lower]):
            return None
        if self.higher and _numbers(found[self.higher]) < _numbers(found["least"]):
            return None
        return found

    def groups(self, found: re.Match[str]) -> dict[str, str]:
        """What the groups of a match took, numbers as the releases that they stand for."""
        values = {
            name.rstrip("_"): text.strip() for name, text in found.groupdict().items() if text
        }
        for number in self.coded:
            for name in ("built", "found", number.component):
                text = values.get(name, "")
                if len(text) == number.digits and text.isdecimal():
                    values[name] = number.release(text)
        return values


class Case(Value):
    """What is otherwise about a failure where versions are as `when` says; the rest is as the signature has it."""

    when: Mapping[str, str]
    given: Mapping[str, Any]


class Signature(Value):
    """One kind of failure; the fields are those of the file, and docs/diagnose.md says what each means."""

    name: str
    code: str
    what: str
    between: tuple[str, ...]
    lines: tuple[LinePattern, ...]
    do: str
    source: str
    evidence: str
    severity: str = "error"
    expected: str = ""
    fix: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    rows: tuple[Mapping[str, str], ...] = ()
    when: Mapping[str, str] = {}
    cases: tuple[Case, ...] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of `between` without what stands for nobody."""
        return tuple(role.partition("|")[0] for role in self.between)


class Recovery(Value):
    """A line by which a program goes on: failures `of` these signatures a little above it were none.

    Nor are those in so many lines `below` it, where a program says that it goes on before it prints why.
    """

    pattern: LinePattern
    of: tuple[str, ...]
    below: int = 0


class Provided(Value):
    """Beginnings of names of libraries, headers and symbols, their component, and the packages that provide them.

    `counts` is the component whose majors a soname of it has, itself where that is empty.
    """

    component: str
    bring: str
    names: tuple[str, ...]
    counts: str = ""

    def providers(self, file: str) -> str:
        """The packages that provide a file of this part, a library by its soname."""
        return self.bring.replace("{major}", major(file) or "*")


PatternUse = tuple[int, str, Signature | Recovery | None, "LinePattern"]
"""The place of a pattern in the order in which they are tried, what it shows, of which failures, and the pattern."""


# A value has slots alone, and no room for what is derived from it once.
class _Caching:
    pass


class SignatureCatalog(_Caching, Value):
    """Everything the file says, in the order in which patterns are tried."""

    signatures: tuple[Signature, ...]
    witnesses: tuple[LinePattern, ...]
    callers: tuple[LinePattern, ...]
    consequences: tuple[LinePattern, ...]
    recoveries: tuple[Recovery, ...]
    parts: tuple[Provided, ...]
    aliases: Mapping[str, str]
    programs: tuple[str, ...]
    compilers: Mapping[str, str]
    asides: tuple[re.Pattern[str], ...]
    warnings: tuple[re.Pattern[str], ...]

    @cached_property
    def uses(self) -> dict[str, list[PatternUse]]:
        """The uses of patterns, by the text that a line holds which one may fit."""
        found: dict[str, list[PatternUse]] = {}
        patterns = (
            *(("witnesses", None, pattern) for pattern in self.witnesses),
            *(("recoveries", one, one.pattern) for one in self.recoveries),
            *(("failures", one, pattern) for one in self.signatures for pattern in one.lines),
            *(("consequences", None, pattern) for pattern in self.consequences),
        )
        for order, (kind, about, pattern) in enumerate(patterns):
            found.setdefault(pattern.has, []).append((order, kind, about, pattern))
        return found

    @cached_property
    def sought(self) -> SoughtTexts:
        """The texts of all patterns, to be looked for."""
        # Versions that a log repeats with every line need no look at each of them.
        often = {
            text
            for text, uses in self.uses.items()
            if all(
                use[1] == "witnesses" and "component" not in use[3].line.groupindex for use in uses
            )
        }
        return SoughtTexts(self.uses, often)

    def believed(self, line: str) -> str:
        """What is left of a line without what only speaks of failures: a command, a test that passed, a probe."""
        for pattern in self.asides:
            found = pattern.search(line)
            if found is not None:
                # Programs write on the line of an echoed command, and tests behind the word of the one before.
                line = line[found.end("part") :] if "part" in pattern.groupindex else ""
        return line

    def warns(self, line: str) -> bool:
        """Check whether a line is a warning by what its program wrote in front of it."""
        return any(pattern.search(line) for pattern in self.warnings)

    def part(self, name: str) -> Provided | None:
        """The part that a library, header or symbol belongs to."""
        return part(self.parts, name)

    def called(self, name: str) -> str:
        """The component that a file, a package or a word in a message stands for; nothing for one that tells nobody."""
        # A traceback of Windows names files by backslashes.
        path = name.replace("\\", "/")
        package = _PACKAGE.search(path)
        plain = package[1] if package else path.rpartition("/")[2]
        part = None if package or ".so" not in plain else self.part(plain)
        if part is not None:
            return part.component
        plain = _BUILT_FOR.split(plain)[0].removeprefix("_").lower()
        # A compiled module that has no name of its own is its folder's.
        if plain in _NAMELESS:
            plain = path.split("/")[-2:][0].lower()
        bare = plain.removeprefix("lib")
        # One library of several, such as libcudnn_ops, is its component's.
        words = [plain, bare, bare.partition("_")[0]] if bare != plain else [plain]
        known = (self.aliases[word] for word in words if word in self.aliases)
        return next(known, plain.replace("_", "-"))

    def compiler(self, name: str) -> str:
        """The component that a compiler is, by the last word of its name that says so."""
        words = _BETWEEN.split(name.lower())
        return next(
            (self.compilers[word] for word in reversed(words) if word in self.compilers), ""
        )


def major(file: str) -> str:
    """The first number of a soname, such as 12 of libcudart.so.12; empty where it has none."""
    return file.partition(".so.")[2].partition(".")[0]


def part(parts: Iterable[Provided], name: str) -> Provided | None:
    """The owner of a library, header or symbol: the part with the longest beginning that fits, None for a stranger."""
    best, found = 0, None
    # Linkers report `-lcudart`, loaders `libcudart.so.12`.
    for given in dict.fromkeys((name, "lib" + name)):
        for one in parts:
            for start in one.names:
                if given.startswith(start) and len(start) > best:
                    best, found = len(start), one
    return found


@cache
def parts() -> tuple[Provided, ...]:
    """The parts alone, which tell of a library whose it is without any log."""
    return _parts(load_yaml(signatures_path()))


def _lower(spec: str, listed: str) -> bool:
    # A release above one of its series that fits a Python would fit as well, if there were one.
    *series, last = _numbers(spec.removeprefix("=="))
    found = [_numbers(one) for one in listed.split(", ") if _PLAIN.fullmatch(one)]
    return any(one[:-1] == series and one[-1] < last for one in found)


def _numbers(release: str) -> list[int]:
    # A line may be damaged: points side by side, and digits without end, of which Python makes no number.
    return [int(part) for part in _NUMBER.findall(release)]


def _parts(held: Mapping[str, Any]) -> tuple[Provided, ...]:
    return tuple(Provided(**_with_tuples(fields)) for fields in held["parts"])


@cache
def load() -> SignatureCatalog:
    """The catalog that comes with the program."""
    held = load_yaml(signatures_path())
    numbers = [Number(**fields) for fields in held["numbers"]]
    return SignatureCatalog(
        signatures=tuple(
            Signature(
                **_with_tuples(fields)
                | {"lines": _patterns(fields["lines"], numbers), "cases": _cases(fields)}
            )
            for fields in held["signatures"]
        ),
        witnesses=_patterns(held["witnesses"]),
        callers=_patterns(held["callers"]),
        consequences=_patterns(held["consequences"]),
        recoveries=tuple(
            Recovery(
                pattern=LinePattern(has=one["has"], line=re.compile(one["line"])),
                of=tuple(one["of"]),
                below=one.get("below", 0),
            )
            for one in held["recoveries"]
        ),
        parts=_parts(held),
        aliases=held["aliases"],
        programs=tuple(held["programs"]),
        compilers=held["compilers"],
        asides=tuple(re.compile(pattern) for pattern in held["asides"]),
        warnings=tuple(re.compile(pattern) for pattern in held["warnings"]),
    )


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }


def _cases(fields: Mapping[str, Any]) -> tuple[Case, ...]:
    return tuple(
        Case(when=one["when"], given=_with_tuples({**one, "when": fields.get("when", {})}))
        for one in fields.get("cases", ())
    )


def _patterns(
    held: Iterable[dict[str, Any]], numbers: Iterable[Number] = ()
) -> tuple[LinePattern, ...]:
    return tuple(
        LinePattern(
            **one
            | {
                "line": re.compile(one["line"]),
                "coded": tuple(each for each in numbers if each.component == one.get("coded")),
            }
        )
        for one in held
    )
