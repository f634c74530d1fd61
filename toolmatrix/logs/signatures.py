"""The catalog of signatures: known failures and versions of components, as logs show them, and the search for them.

The catalog is matrix/signatures.yaml. Lines of a long log that hold one of many texts are found in the time of one pass
and the memory of a block. A text is found by its whole words; case, and which characters stand between them, do not
matter, so that a message that somebody wrapped is found too. A block is split into words once, and only the texts whose
longest word it holds are looked for: more texts cost no more time. One alternation of `re` over the same 369 texts
reads a tenth as fast, and finds no message that was wrapped; see benchmarks/README.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, Protocol

from toolmatrix.documents import Annotated, Code, Evidence
from toolmatrix.factbase.records import ReportRecord
from toolmatrix.lines import strip_prefixes, without_colours
from toolmatrix.resources import load_yaml, signatures_path
from toolmatrix.value import Value


class Stream(Protocol):
    """A stream that a log is read from."""

    def read(self, size: int, /) -> bytes:
        """At most about so many bytes, none at the end."""


# Bytes that are read at a time.
BLOCK = 1 << 16
# Bytes of a line that are looked at together; a longer one is looked at in parts.
LONGEST = 1 << 20
# Bytes of a line around a text that are shown to the patterns.
WINDOW = 1 << 12

# Every byte as it stands in words: letters small, digits, everything else a blank.
_WORDS = bytes(
    code | 0x20 if chr(code).isupper() else code if chr(code).isalnum() else 0x20
    for code in range(0x80)
).ljust(0x100)
# Bytes after a text by which frequent matches are distinguished.
_CONTEXT = 16
# After so many matches in a block only the last one counts.
_FREQUENT = 50
# Bytes above a line that can be looked back at.
_ABOVE = 1 << 15
# A shorter line was not wrapped.
_WRAPPED = 50
QUOTES = str.maketrans(dict.fromkeys("\u2018\u2019\u201c\u201d`", "'"))
"""Every kind of quote as `'`, as signatures write it."""
_LONG_WORD = 1000
# Words too long to matter; patterns would take long for them.
_LONG_WORDS = re.compile(rb"(\S{200})\S{600,}(\S{200})")
# Where writers of JSON lines keep what a program said.
_MESSAGES = ("log", "message", "msg", "MESSAGE", "text", "line")
_ESCAPED = re.compile(rb"\\u001b\[[0-9;]*m")
_NEXT_LINE = re.compile(r"\r\n|[\n\r]")


class MatchedLine:
    """A line that holds texts: its number, counted from 1, and what it says."""

    __slots__ = ("_end", "_last", "_start", "_text", "lines", "number", "texts")

    def __init__(
        self, number: int, texts: list[str], text: bytes, start: int, end: int, last: int = 0
    ) -> None:
        self.number = number
        self.texts = texts
        self.lines = _messages(text[start:end])
        self._text, self._start, self._end, self._last = text, start, end, last

    def below(self) -> Iterator[str]:
        """The lines below this one, as far as they were read with it."""
        rows = self._text[_or(self._text.find(b"\n", self._end), self._last) + 1 : self._last]
        for row in rows.splitlines():
            yield from _messages(row[:WINDOW])

    def wrapped(self) -> Iterator[tuple[str, int]]:
        """The line with the one after it and with the one before it, and where the two meet."""
        text, start, end = self._text, self._start, self._end
        behind = _or(text.find(b"\n", end), end) + 1
        after = text[behind : _or(text.find(b"\n", behind), len(text))][:WINDOW]
        before = text[text.rfind(b"\n", 0, max(start - 1, 0)) + 1 : start][-WINDOW:]
        for first, second in ((text[start:end], after), (before, text[start:end])):
            head, tail = (" ".join(_messages(half.rstrip(b"\r\n"))) for half in (first, second))
            if len(head) > _WRAPPED and tail:
                yield f"{head.rstrip()} {tail.lstrip()}", len(head.rstrip())

    def above(self, lines: int) -> str:
        """At most so many lines above this one, as they stand."""
        first = max(self._start - _ABOVE, 0)
        parts = self._text[first : self._start].rsplit(b"\n", lines + 1)
        # The first part may be no whole line, or be more lines than were asked for.
        whole = parts[1:] if first or len(parts) > lines + 1 else parts
        return b"\n".join(whole).decode("utf-8", "replace")


class Pattern:
    """A text that is looked for: words in whatever case, but as it stands where other characters are at its ends."""

    __slots__ = ("exact", "text", "words")

    def __init__(self, text: str) -> None:
        raw = text.encode()
        words = raw.translate(_WORDS)
        self.text = text
        self.words = b" " + words.strip() + b" "
        self.exact = raw.strip() if len(words.strip()) < len(raw.strip()) else b""

    def positions(
        self, text: bytes, words: bytes, start: int, end: int, often: bool
    ) -> Iterator[int]:
        """Places of it between two places of a text; `words` are those of the text from the first of them on.

        Of one that stands there `often`, the first that differ in what follows, and the last.
        """
        # Words alone cannot tell `-lcuda` from `cuda`.
        if self.exact:
            haystack, sought, first, last, moved = text, self.exact, start, end, 0
        else:
            haystack, sought, moved = words, self.words, start
            first, last = 0, end - start + len(sought) - 1
        # The blank at the end of one text is the one at the beginning of the next.
        step = len(sought) - 1
        known: set[bytes] = set()
        at, count = haystack.find(sought, first, last), 0
        while at >= 0:
            count += 1
            if often and count == _FREQUENT:
                at = haystack.rfind(sought, at, last)
            follows = haystack[at : at + step + _CONTEXT] if often else b""
            if not often or follows not in known:
                known.add(follows)
                yield at + moved
            at = haystack.find(sought, at + step, last)


class SoughtTexts:
    """Texts of at least one word that are looked for, by their longest word.

    Of those that occur `often` in a log with the same meaning, a block yields the first that differ and the last.
    """

    def __init__(self, texts: Iterable[str], often: Container[str] = ()) -> None:
        self.often = often
        self.patterns: dict[bytes, list[Pattern]] = {}
        for pattern in map(Pattern, texts):
            # The longest word is the rarest, so most blocks hold none of it.
            self.patterns.setdefault(max(pattern.words.split(), key=len), []).append(pattern)
        self.words = frozenset(self.patterns)

    def within(self, text: bytes, start: int, end: int) -> list[tuple[int, int, list[str]]]:
        """The lines between two places of a text that hold any: where they begin and end, and their texts."""
        words = b" " + text[start:].translate(_WORDS) + b" "
        lines: dict[int, tuple[int, list[str]]] = {}
        for word in self.words.intersection(words.split()):
            for pattern in self.patterns[word]:
                often = pattern.text in self.often
                for at in pattern.positions(text, words, start, end, often):
                    begin, finish = _line(text, at)
                    texts = lines.setdefault(begin, (finish, []))[1]
                    if not texts or texts[-1] != pattern.text:
                        texts.append(pattern.text)
        return [(begin, *rest) for begin, rest in sorted(lines.items())]


class MultiPatternMatcher:
    """Looks for texts in a log; `lines` were read so far.

    What goes on below the lines that were read together is `open`: then the next line is one of those that hold a text.
    """

    def __init__(self, sought: SoughtTexts) -> None:
        self.sought = sought
        self.lines = 0
        self.open = False

    def matched_lines(self, stream: Stream) -> Iterator[MatchedLine]:
        """The lines that hold a text, in their order; raises what the stream raises."""
        for text, start, end in _pieces(stream):
            counted = start
            matches = self.sought.within(text, start, end)
            if self.open:
                matches.insert(0, (start, _line(text, start)[1], []))
            for begin, finish, texts in matches:
                self.lines += text.count(b"\n", counted, begin)
                counted = max(counted, begin)
                yield MatchedLine(self.lines + 1, texts, text, begin, finish, end)
            self.lines += text.count(b"\n", counted, end)


def _pieces(stream: Stream) -> Iterator[tuple[bytes, int, int]]:
    """Blocks of text and where the lines begin and end that are meant; some context stands on both sides."""
    text, start, whole = b"", 0, True
    while block := stream.read(BLOCK):
        whole = block.endswith(b"\n")
        text += block
        # The last line is left for the next block, where the one behind it stands beside it.
        last = text.rfind(b"\n")
        end = text.rfind(b"\n", start, last) + 1 if last > start else 0
        # A line longer than a block is gathered up to a bound, then looked at in parts.
        if end <= start:
            if len(text) - start < LONGEST:
                continue
            end = len(text)
        yield _plain(text, start, end)
        offset = max(end - _ABOVE, 0)
        text, start = text[offset:], end - offset
    if not whole:
        text += b"\n"
    if start < len(text):
        yield _plain(text, start, len(text))


def _plain(text: bytes, start: int, end: int) -> tuple[bytes, int, int]:
    # A colour is an escape sequence as it stands, or, in lines of JSON, as JSON writes that.
    if b"\x1b" not in text and b"\\u001b" not in text:
        return text, start, end
    parts = (_ESCAPED.sub(b"", section) for section in (text[:start], text[start:end], text[end:]))
    head, body, tail = map(without_colours, parts)
    return head + body + tail, len(head), len(head) + len(body)


def _line(text: bytes, at: int) -> tuple[int, int]:
    """Beginning and end of the line around a place; of a long one, where a part of it does."""
    start = text.rfind(b"\n", 0, at) + 1
    end = text.find(b"\n", at)
    # A bar that shows progress goes back to the beginning of its line.
    start = max(start, text.rfind(b"\r", start, at) + 1)
    end = _or(text.find(b"\r", at, _or(end, len(text))), _or(end, len(text)))
    if end - start > WINDOW:
        half = WINDOW // 2
        middle = start + (at - start) // half * half
        start, end = max(start, middle - half), min(end, middle + 2 * half)
    return start, end


def _or(position: int, other: int) -> int:
    return other if position < 0 else position


def _messages(line: bytes) -> list[str]:
    if len(line) > _LONG_WORD:
        line = _LONG_WORDS.sub(rb"\1...\2", line)
    text = line.decode("utf-8", "replace")
    text = strip_prefixes(text.replace("`", "'") if text.isascii() else text.translate(QUOTES))
    if text.startswith("{") and text.endswith("}"):
        try:
            record = json.loads(text)
        except ValueError:
            return [text]
        for name in _MESSAGES:
            if isinstance(message := record.get(name), str):
                return [strip_prefixes(row) for row in _NEXT_LINE.split(message.translate(QUOTES))]
    return [text]


_PACKAGE = re.compile(r"(?:site|dist)-packages/(\w+)")
# Where what a file is built for begins in its name.
_BUILT_FOR = re.compile(r"\.so|\.cpython-|\.abi3|\.dll")
_DLL = re.compile(r"64_(?:(?P<both>[5-9]|1\d)\d|(?P<major>\d{1,2}))\.dll$")
_NAMELESS = ("c", "ext")
_NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_ENDS = "'\"()[]{}<>:;,.`=! "
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
        """The release that a number encodes; its last part is left out where the number has none."""
        number = int(text)
        parts = [number // self.major, number % self.major // self.minor]
        last = number % self.minor
        return ".".join(map(str, [*parts, last] if last else parts))


class LinePattern(Value):
    """A regular expression over a clean line, and a text that a line must hold before it is worth trying.

    `lower` is a group of releases, one of which has to be of the series of the group `spec` and lower; `higher` is that
    of a release which has to be at least that of the group `least`. `coded` says how numbers in it encode releases.
    """

    has: str
    line: re.Pattern[str]
    lower: str = ""
    higher: str = ""
    coded: Annotated[tuple[Number, ...], str] = ()

    def search(self, line: str) -> re.Match[str] | None:
        """The match of a line, if it has one."""
        match = self.line.search(line)
        if match is None:
            return None
        if self.lower and not _lower(match["spec"], match[self.lower]):
            return None
        if self.higher and _numbers(match[self.higher]) < _numbers(match["least"]):
            return None
        return match

    def groups(self, match: re.Match[str]) -> dict[str, str]:
        """What the groups of a match took, numbers as the releases that they encode."""
        values = {
            name.rstrip("_"): text.strip() for name, text in match.groupdict().items() if text
        }
        for number in self.coded:
            for name in ("built", "found", number.component):
                text = values.get(name, "")
                if len(text) == number.digits and text.isdecimal():
                    values[name] = number.release(text)
        return values


class Table(LinePattern):
    """A line with rows of versions below it, as `row` shows them, and lines like `between` among them."""

    row: re.Pattern[str]
    between: re.Pattern[str]


class Case(Value):
    """What is otherwise about a failure where versions are as `when` says; the rest is as the signature has it."""

    when: Mapping[str, str]
    given: Mapping[str, Any]


class RowLookup(Value):
    """A row of a table that is looked up by a column.

    The oldest whose column `is` a value, or a dotted name with the value `inside`, the newest with at `most` it, or the
    one with the lowest at `least` it. A value is a group, or a template of several.
    """

    one_of = ("is", "inside", "most", "least")

    table: str
    column: str
    is_: str = ""
    inside: str = ""
    most: str = ""
    least: str = ""
    gives: str
    cell: str = ""


class Signature(Value):
    """One kind of failure; docs/diagnose.md says what each field means."""

    name: str
    code: Code
    relation: str
    """A name of `relations`: what did not hold."""
    what: str
    between: tuple[str, ...]
    lines: tuple[LinePattern, ...]
    do: str
    source: str
    evidence: Evidence
    severity: Annotated[str, "error", "warning"] = "error"
    expected: str = ""
    fix: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    rows: Annotated[tuple[Mapping[str, str], ...], tuple[RowLookup, ...]] = ()
    when: Mapping[str, str] = {}
    intact: str = ""
    """A request that resolves where the versions of the log satisfy the relation; cases see it as `intact`."""
    cases: Annotated[tuple[Case, ...], tuple[dict[str, Any], ...]] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of `between` without their fallbacks."""
        return tuple(role.partition("|")[0] for role in self.between)

    @property
    def depends_on_user(self) -> bool:
        """Whether the lines above a failure matter, because they name the program that failed."""
        return "user" in self.roles or any("user" in case.when for case in self.cases)


class Recovery(LinePattern):
    """A line by which a program goes on: failures `of` these signatures a little above it were none.

    Nor are those in so many lines `below` it, where a program says that it goes on before it prints why. Of failures
    with a file only those count whose file begins with `file`.
    """

    of: tuple[str, ...]
    below: int = 0
    file: str = ""


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


PatternUse = tuple[int, str, Signature | Recovery | Table | None, "LinePattern"]
"""The place of a pattern in the order in which they are tried, what it shows, of which failures, and the pattern."""


# A value has slots alone, and no room for what is derived from it once.
class _Caching:
    pass


class SignatureCatalog(_Caching, Value):
    """How known failures look in logs: patterns in the order in which they are tried."""

    schema: Annotated[str, "toolmatrix.signatures/1"]
    numbers: tuple[Number, ...]
    relations: Mapping[str, str]
    """What holds between the two sides where nothing failed, by name."""
    signatures: tuple[Signature, ...]
    witnesses: tuple[LinePattern, ...]
    tables: tuple[Table, ...]
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
        by_text: dict[str, list[PatternUse]] = {}
        patterns: tuple[tuple[str, Signature | Recovery | Table | None, LinePattern], ...] = (
            *(("witnesses", None, pattern) for pattern in self.witnesses),
            *(("tables", table, table) for table in self.tables),
            *(("recoveries", recovery, recovery) for recovery in self.recoveries),
            *(("failures", known, pattern) for known in self.signatures for pattern in known.lines),
            *(("consequences", None, pattern) for pattern in self.consequences),
        )
        for order, (kind, about, pattern) in enumerate(patterns):
            by_text.setdefault(pattern.has, []).append((order, kind, about, pattern))
        return by_text

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

    def without_asides(self, line: str) -> str:
        """The rest of a line without what only mentions failures: a command, a test that passed, a probe."""
        for pattern in self.asides:
            match = pattern.search(line)
            if match is not None:
                # Programs write on the line of an echoed command, and tests behind the word of the one before.
                line = line[match.end("part") :] if "part" in pattern.groupindex else ""
        return line

    def warns(self, line: str) -> bool:
        """Check whether a line is a warning by what its program wrote in front of it."""
        return any(pattern.search(line) for pattern in self.warnings)

    def part(self, name: str) -> Provided | None:
        """The part that a library, header or symbol belongs to."""
        return provider_of(self.parts, name)

    def called(self, name: str) -> str:
        """The component that a file, a package or a word of a message names; an unknown one keeps its own name."""
        # A traceback of Windows names files by backslashes.
        path = name.replace("\\", "/")
        package = _PACKAGE.search(path)
        plain = package[1] if package else path.rpartition("/")[2]
        provided = None if package or ".so" not in plain else self.part(plain)
        if provided is not None:
            return provided.component
        plain = _BUILT_FOR.split(plain)[0].removeprefix("_").lower()
        # A compiled module that has no name of its own is its folder's.
        if plain in _NAMELESS:
            plain = path.split("/")[-2:][0].lower()
        bare = plain.removeprefix("lib")
        # One library of several, such as libcudnn_ops, is its component's.
        words = [plain, bare, bare.partition("_")[0]] if bare != plain else [plain]
        known = (self.aliases[alias] for alias in words if alias in self.aliases)
        return next(known, plain.replace("_", "-"))

    def names(self, line: str, component: str) -> bool:
        """Check whether a line has the name of a component as a word, or another one for it."""
        words = {component, component.replace("-", "_")}
        words |= {alias for alias, of in self.aliases.items() if of == component}
        return not words.isdisjoint(_NAME.findall(line.lower()))

    def compiler(self, name: str) -> str:
        """The component that a compiler is, by the last word of its name that says so."""
        words = _BETWEEN.split(name.lower())
        return next(
            (self.compilers[word] for word in reversed(words) if word in self.compilers), ""
        )


def major(file: str) -> str:
    """The first number of a soname, such as 12 of libcudart.so.12 or cudart64_12.dll; empty where it has none."""
    if numbered := _DLL.search(file):
        # Up to CUDA 11.0 both numbers: cudart64_80.dll, cudart64_110.dll.
        return numbered["both"] or numbered["major"]
    return file.partition(".so.")[2].partition(".")[0]


def provider_of(parts: Iterable[Provided], name: str) -> Provided | None:
    """The owner of a library, header or symbol: the part with the longest beginning that fits, None for a stranger."""
    best, owner = 0, None
    # Linkers report `-lcudart`, loaders `libcudart.so.12`.
    for spelling in dict.fromkeys((name, "lib" + name)):
        for candidate in parts:
            for start in candidate.names:
                if spelling.startswith(start) and len(start) > best:
                    best, owner = len(start), candidate
    return owner


@cache
def parts() -> tuple[Provided, ...]:
    """The parts alone, which map a library to its component without any log."""
    return _parts(load_yaml(signatures_path()))


def _lower(spec: str, releases: str) -> bool:
    # A release above one of its series that fits a Python would fit as well, if there were one.
    *series, last = _numbers(spec.removeprefix("=="))
    versions = [_numbers(release) for release in releases.split(", ") if _PLAIN.fullmatch(release)]
    return any(version[:-1] == series and version[-1] < last for version in versions)


def _numbers(release: str) -> list[int]:
    # A line may be damaged: points side by side, and digits without end, which Python cannot convert.
    return [int(digits) for digits in _NUMBER.findall(release)]


def _parts(document: Mapping[str, Any]) -> tuple[Provided, ...]:
    return tuple(Provided(**_with_tuples(fields)) for fields in document["parts"])


BY_REPORT = ("user", "report")
"""The sides of a failure that is known by a field report alone."""


class Symptom(Value):
    """A line by which a reported failure shows, and the reports that have it."""

    pattern: LinePattern
    reports: tuple[ReportRecord, ...]


def symptoms(reports: Iterable[ReportRecord]) -> tuple[Symptom, ...]:
    """The lines of reports, each once; `...` in one matches what differs."""
    by_line: dict[str, list[ReportRecord]] = {}
    for report in reports:
        for line in report.symptoms:
            by_line.setdefault(line.translate(QUOTES), []).append(report)
    return tuple(
        Symptom(pattern=_symptom(line), reports=tuple(several)) for line, several in by_line.items()
    )


def _symptom(line: str) -> LinePattern:
    parts = line.split("...")
    text = ".{0,300}?".join(r"\s+".join(map(re.escape, part.split(" "))) for part in parts)
    # A word at `...` may be half of one.
    whole = [
        re.sub(r"^\w+" if index else r"^\b", "", re.sub(r"\w+$", "", part) if last else part)
        for index, part in enumerate(parts)
        for last in [index < len(parts) - 1]
    ]
    return LinePattern(has=max(whole, key=len).strip(_ENDS), line=re.compile(text))


def with_symptoms(catalog: SignatureCatalog, lines: Iterable[Symptom]) -> SignatureCatalog:
    """The catalog with the lines of field reports, which are tried after all others."""
    reported = tuple(
        Signature(
            name=first.fact.partition("#")[0],
            code="TM131",
            relation="package-pair",
            what="two releases do not go together, as was reported",
            between=BY_REPORT,
            lines=(symptom.pattern,),
            do="take a release of either that goes with the other",
            source=first.source,
            evidence=first.evidence,
        )
        for symptom in lines
        for first in symptom.reports[:1]
    )
    return catalog.replace(signatures=(*catalog.signatures, *reported))


@cache
def load() -> SignatureCatalog:
    """The catalog that comes with the program."""
    document = load_yaml(signatures_path())
    numbers = tuple(Number(**fields) for fields in document["numbers"])
    return SignatureCatalog(
        schema=document["schema"],
        numbers=numbers,
        relations=document["relations"],
        signatures=tuple(
            Signature(
                **_with_tuples(fields)
                | {"lines": _patterns(fields["lines"], numbers), "cases": _cases(fields)}
            )
            for fields in document["signatures"]
        ),
        witnesses=_patterns(document["witnesses"], numbers),
        tables=tuple(
            Table(
                has=table["has"],
                line=re.compile(table["line"]),
                row=re.compile(table["row"]),
                between=re.compile(table["between"]),
            )
            for table in document["tables"]
        ),
        callers=_patterns(document["callers"]),
        consequences=_patterns(document["consequences"]),
        recoveries=tuple(
            Recovery(**_with_tuples(fields) | {"line": re.compile(fields["line"])})
            for fields in document["recoveries"]
        ),
        parts=_parts(document),
        aliases=document["aliases"],
        programs=tuple(document["programs"]),
        compilers=document["compilers"],
        asides=tuple(re.compile(pattern) for pattern in document["asides"]),
        warnings=tuple(re.compile(pattern) for pattern in document["warnings"]),
    )


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }


def _cases(fields: Mapping[str, Any]) -> tuple[Case, ...]:
    return tuple(
        Case(when=case["when"], given=_with_tuples({**case, "when": fields.get("when", {})}))
        for case in fields.get("cases", ())
    )


def _patterns(
    entries: Iterable[dict[str, Any]], numbers: Iterable[Number] = ()
) -> tuple[LinePattern, ...]:
    return tuple(
        LinePattern(
            **entry
            | {
                "line": re.compile(entry["line"]),
                "coded": tuple(each for each in numbers if each.component == entry.get("coded")),
            }
        )
        for entry in entries
    )
