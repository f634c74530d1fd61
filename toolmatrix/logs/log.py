"""Observing a log: the components, versions and known failures that show in it, and what the log of a build proves.

Only lines that hold one of the texts of the catalog are looked at (toolmatrix/logs/signatures.py). Patterns see them
without prefixes and colours, and one that no pattern fits once more between the lines beside it, as it may be wrapped.
A `Diagnosis` has the causes found, the components involved, and the way out; a judge makes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from toolmatrix.finding import Finding
from toolmatrix.inspection.model import Inventory, Seen
from toolmatrix.logs import signatures
from toolmatrix.logs.signatures import (
    QUOTES,
    LinePattern,
    MatchedLine,
    MultiPatternMatcher,
    PatternUse,
    Recovery,
    Signature,
    SignatureCatalog,
    Table,
)
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.finding import Words
    from toolmatrix.logs.signatures import Stream


# BuildKit numbers all that it does, several at a time: `#7 [build 3/9] RUN make`, later `#7 ERROR: ...`.
_VERTEX = re.compile(r"#(\d+) (?=\[|https?://)(.+)")
_ERROR = re.compile(r"#(\d+) ERROR:? (.+)")
# Docker's builder before BuildKit, and buildah.
_STEP = re.compile(r"(?:Step|STEP) (\d+/\d+) ?: (.+)")


class Steps:
    """Reads a log line by line, and knows the step that failed, or else the last that began."""

    def __init__(self) -> None:
        self._began: dict[str, str] = {}
        self._last = ""
        self._failed = ""

    def read(self, line: str) -> None:
        """The next line."""
        if vertex := _VERTEX.fullmatch(line):
            self._began.setdefault(vertex[1], vertex[2])
            self._last = self._began[vertex[1]]
        elif step := _STEP.fullmatch(line):
            self._last = f"[{step[1]}] {step[2]}"
        elif (error := _ERROR.fullmatch(line)) and not self._failed:
            # Parallel steps are cancelled, and reported as further errors.
            self._failed = self._began.get(error[1], "")

    @property
    def failed(self) -> str:
        """The step at which a build ended that failed, "" for a log that shows none."""
        return self._failed or self._last


# Different failures that are kept; further ones are counted.
MATCHES = 1000

# So many components, and versions of one, are kept.
_COMPONENTS, _VERSIONS = 2000, 50
# So many lines below a file of a package an error may still be that package's.
_NEAR = 200
_CALLERS = 8
# So many lines above it a failure may stand that a program recovers from.
_RECOVERED = 50
# Characters of a line that are kept: some builds print a command of kilobytes before what went wrong.
_LONGEST = 400
# Groups that distinguish failures of one kind, beside the components that they are between.
_IDENTITY = ("file", "symbol", "package", "other", "arch", "device")


class Match(Value):
    """A failure as the log shows it: its first line, the groups of the match, and the versions seen above it.

    `callers` are who needed something, the nearest first; `count` are the lines that say the same.
    """

    signature: Signature
    line: int
    text: str
    values: Mapping[str, str]
    seen: Mapping[str, Seen]
    callers: tuple[str, ...]
    count: int = 1

    def counting(self, other: Match) -> Match:
        """This failure with the lines of one that says the same; the worse severity of both counts."""
        signature = self.signature
        # What one line warns of another one may have failed by.
        if signature.severity != "error" and other.signature.severity == "error":
            signature = signature.replace(severity="error")
        return self.replace(
            signature=signature,
            count=self.count + other.count,
            values={**other.values, **self.values},
            callers=tuple(dict.fromkeys((*self.callers, *other.callers)))[:_CALLERS],
        )


class Followed(Value):
    """A line that only says that something above it went wrong."""

    line: int
    text: str


class ObservedLog(Value):
    """Observations of a log: an inventory, failures in the order of their first lines, and what followed from them.

    `lines` were read; `followed` holds the first consequence and `following` counts all; `more` are failures left out.
    """

    inventory: Inventory
    matches: tuple[Match, ...]
    lines: int
    followed: Followed | None = None
    following: int = 0
    more: int = 0


def observe(stream: Stream, catalog: SignatureCatalog, subject: str) -> ObservedLog:
    """Read a log to its end; raises what the stream does."""
    reader = _LogReader(catalog, subject)
    matcher = MultiPatternMatcher(catalog.sought)
    for matched in matcher.matched_lines(stream):
        reader.read(matched)
        matcher.open = reader.table is not None
    return reader.log(matcher.lines)


class _LogReader:
    """The state of an observation; everything it keeps is bounded."""

    def __init__(self, catalog: SignatureCatalog, subject: str) -> None:
        self.catalog = catalog
        self.subject = subject
        self.components: dict[str, dict[str, Seen]] = {}
        self.latest: dict[str, Seen] = {}
        self.matches: list[Match] = []
        self.indexes: dict[tuple[object, ...], int] = {}
        self.followed: Followed | None = None
        self.following = 0
        self.more = 0
        self.looking_back = MATCHES
        # A table that the next lines may go on with, and the groups of the line above its rows.
        self.table: tuple[Table, dict[str, str]] | None = None
        # Up to which line failures of a name are none.
        self.excused: dict[str, int] = {}

    def read(self, matched: MatchedLine) -> None:
        """Try the patterns of the texts on a line, in the order of the catalog."""
        if not matched.texts:
            self.read_rows(matched.number - 1, [*matched.lines, *matched.below()])
            return
        by_order = {use[0]: use for text in matched.texts for use in self.catalog.uses[text]}
        uses = [by_order[order] for order in sorted(by_order)]
        failed = [self.read_line(uses, matched, line) for line in matched.lines]
        failures = [use for use in uses if use[1] == "failures"]
        # A terminal or a log writer may have wrapped the message: then it goes on in the line beside it.
        if failures and not any(failed):
            any(self.read_line(failures, matched, *joined) for joined in matched.wrapped())

    def read_line(
        self, uses: list[PatternUse], matched: MatchedLine, line: str, joint: int = 0
    ) -> bool:
        """Record what a line shows, or a match across the joint of two joined lines; true if it was a failure."""
        for _, kind, about, pattern in uses:
            if kind == "witnesses":
                for witness in pattern.line.finditer(line):
                    self.add_witness(matched.number, pattern.groups(witness))
                continue
            match = pattern.search(line)
            if isinstance(about, Table):
                if match is not None and not joint:
                    self.table = about, pattern.groups(match)
                    self.read_rows(matched.number, matched.below())
                continue
            if match is None or (joint and not match.start() < joint < match.end()):
                continue
            if (match := self.rematch(pattern, line, match, joint)) is None:
                continue
            if isinstance(about, Recovery):
                self.recover(matched.number, about)
            elif about is not None:
                self.add_failure(self.match(about, matched, line, pattern.groups(match)))
            else:
                self.following += 1
                self.followed = self.followed or Followed(line=matched.number, text=line[:_LONGEST])
            return True
        return False

    def read_rows(self, number: int, rows: Iterable[str]) -> None:
        """Read the rows of the open table from the line after `number` on; it ends at a line of another form."""
        for row in rows:
            number += 1
            if self.table is None:
                return
            table, groups = self.table
            match = table.row.search(row)
            if match is not None:
                self.add_witness(number, groups | match.groupdict())
            elif not table.between.search(row):
                self.table = None

    def rematch(
        self, pattern: LinePattern, line: str, match: re.Match[str], joint: int
    ) -> re.Match[str] | None:
        """The match in what is left of a line without asides; of two that were joined neither may have any."""
        if joint:
            parts = (line[:joint], line[joint + 1 :])
            return (
                match if all(self.catalog.without_asides(half) == half for half in parts) else None
            )
        left = self.catalog.without_asides(line)
        return match if left == line else pattern.search(left)

    def match(
        self, signature: Signature, matched: MatchedLine, line: str, values: dict[str, str]
    ) -> Match:
        callers = [self.catalog.called(values[name]) for name in ("by", "onnx") if name in values]
        callers += self.callers(line)
        # A line with the path of the package that it is about does not show its caller.
        about = {"", self.catalog.called(values.get("other", ""))}
        # Looking back decodes kilobytes a failure, so a log of nothing but failures gets it for the first ones only.
        if about.issuperset(callers) and signature.depends_on_user and self.looking_back:
            self.looking_back -= 1
            callers += self.callers(matched.above(_NEAR))
        if signature.severity == "error" and self.catalog.warns(line):
            signature = signature.replace(severity="warning")
        return Match(
            signature=signature,
            line=matched.number,
            text=line[:_LONGEST],
            values=values,
            seen=dict(self.latest),
            callers=tuple(dict.fromkeys(filter(None, callers)))[:_CALLERS],
        )

    def callers(self, text: str) -> list[str]:
        matches = [
            (match.start(), match["by"])
            for pattern in self.catalog.callers
            if pattern.has in text
            for match in pattern.line.finditer(text)
        ]
        return [self.catalog.called(name) for _, name in sorted(matches, reverse=True)]

    def add_witness(self, number: int, groups: Mapping[str, str]) -> None:
        if groups.get("component"):
            groups = {groups["component"]: groups["version"]}
        for name, version in groups.items():
            if version:
                component = self.catalog.called(name.replace("_", "-"))
                observation = Seen(version=version, seen_by="log", where=f"{self.subject}:{number}")
                versions = self.components.setdefault(component, {})
                if len(versions) < _VERSIONS:
                    versions.setdefault(version, observation)
                latest = self.latest.get(component)
                # A list of packages may leave out the build, and a path the last number.
                longer = (f"{version}+", f"{version}.")
                known = latest is not None and latest.version.startswith(longer)
                if not known and (latest is not None or len(self.latest) < _COMPONENTS):
                    self.latest[component] = versions.get(version, observation)
                # The component that came last goes, so that those at the head of the log stay.
                if len(self.components) > _COMPONENTS:
                    del self.components[component]

    def add_failure(self, match: Match) -> None:
        """Keep a failure, or count it with an earlier one that it does not contradict."""
        name = match.signature.name
        if match.line <= self.excused.get(name, 0):
            return
        identity = {
            key: text
            for key, text in match.values.items()
            if key in _IDENTITY or key.replace("_", "-") in match.signature.between
        }
        user = next(iter(match.callers), "") if "user" in match.signature.roles else ""
        exact = (name, user, *sorted(identity.items()))
        # The same failure comes a thousand times; only one that is new is compared with all that are kept.
        position = self.indexes.get(exact)
        if position is None:
            position = self.find_similar(match, identity, user)
        if position is not None:
            self.matches[position] = self.matches[position].counting(match)
        elif len(self.matches) < MATCHES:
            position = len(self.matches)
            self.matches.append(match)
        else:
            self.more += 1
            return
        self.indexes[exact] = position

    def recover(self, number: int, recovery: Recovery) -> None:
        """Forget failures a little above a line that says how a program goes on, and below as far as it says."""
        self.matches = [
            match
            for match in self.matches
            if match.signature.name not in recovery.of
            or match.line < number - _RECOVERED
            or not match.values.get("file", "").startswith(recovery.file)
        ]
        self.indexes = {}
        if recovery.below:
            self.excused |= dict.fromkeys(recovery.of, number + recovery.below)

    def find_similar(self, match: Match, identity: Mapping[str, str], user: str) -> int | None:
        """The first failure of the same kind that says nothing else where both say something."""
        for position, first in enumerate(self.matches):
            if first.signature.name == match.signature.name and all(
                first.values.get(key, text) == text for key, text in identity.items()
            ):
                other = next(iter(first.callers), "") if user else ""
                if not (user and other) or user == other:
                    return position
        return None

    def log(self, lines: int) -> ObservedLog:
        # A component that showed only below a failure counts for it too.
        first = {name: next(iter(seen.values())) for name, seen in self.components.items() if seen}
        return ObservedLog(
            inventory=Inventory(
                subject=self.subject,
                components={
                    name: tuple(seen.values()) for name, seen in sorted(self.components.items())
                },
            ),
            matches=tuple(match.replace(seen={**first, **match.seen}) for match in self.matches),
            lines=lines,
            followed=self.followed,
            following=self.following,
            more=self.more,
        )


class Involved(Value):
    """One side of a failure: a component or a placeholder, its version where the log shows it, and where.

    `needed` is the library, header or symbol that is asked of it, `wanted` what the lock holds of it, and `bring` the
    packages that would bring it.
    """

    component: str
    version: str = ""
    where: str = ""
    needed: str = ""
    wanted: str = ""
    bring: str = ""


class Fix(Value):
    """A request that was solved, the releases that it gives, and the commands that install its wheels."""

    request: tuple[str, ...]
    answer: Mapping[str, str]
    install: tuple[str, ...] = ()


class Cause(Finding):
    """One diagnosed failure: the components involved, the line of the log, and how to mend it.

    Its code is that of the signature that matched. `allowed` are releases of the first side that the facts let go with
    the second, as far as they are known. `follows` is the line of what it is a consequence of, 0 for a cause.
    """

    code: str
    signature: str
    relation: str
    what: str
    between: tuple[Involved, ...]
    text: str
    count: int
    do: str
    source: str
    evidence: str
    fix: Fix | None = None
    instead: Fix | None = None
    allowed: tuple[str, tuple[str, ...]] | None = None
    follows: int = 0

    def sentence(self, _words: Words) -> str:
        return f"{self.what}: {self.actual}"

    def help(self) -> str:
        return self.do


class Diagnosis(Value):
    """Causes, the worst and earliest first, then what follows from them; `left` are causes beyond the limit."""

    subject: str
    lines: int
    causes: tuple[Cause, ...]
    followed: Followed | None = None
    following: int = 0
    left: int = 0
    components: Mapping[str, tuple[str, ...]] = {}


# The last line of a check (the template `check.sh`).
_CHECKED = re.compile(r"\b([1-9]\d* checked, 0 failed(?:, \d+ not tried)?)$")
_URL = re.compile(r"\b(?:https?|git|ftp)://[^\s\"'<>|)\]]+")
# What the signatures of hosts that have no address, or do not answer, say that it is between.
_UNREACHED = ("host", "network")
# pip tries again before it gives up, and then may name the path alone.
_AGAIN = re.compile(r"Retry\(total=[1-9]")
_LAST_RETRY = re.compile(
    r"Retry\(total=0,.*(?:NewConnection|NameResolution)Error\(.*\)': (?P<path>/\S*)"
)
# So many addresses are kept while the log is read.
_MOST = 1000


@cache
def _patterns() -> tuple[tuple[str, LinePattern], ...]:
    lines = [known.lines for known in signatures.load().signatures if known.between == _UNREACHED]
    return tuple((line.has.lower(), line) for line in chain.from_iterable(lines))


class Proof:
    """Reads the lines of a log: `checked` is what its check said, `missing` the first address that did not answer."""

    def __init__(self) -> None:
        self.checked = ""
        self.missing = ""
        self._addresses: dict[str, str] = {}

    def read(self, line: str) -> None:
        """The next line."""
        if checked := _CHECKED.search(line):
            self.checked = checked[1]
        for address in _URL.findall(line):
            if len(self._addresses) < _MOST:
                self._addresses[_host(address)] = address
        if self.missing or _AGAIN.search(line):
            return
        if host := _unreached(line):
            # What names the host alone was asked for an address that was printed before.
            self.missing = self._addresses.get(host, host)
        elif last_retry := _LAST_RETRY.search(line):
            every = self._addresses.items()
            under = (url for host, url in every if last_retry["path"].startswith(_path(url, host)))
            self.missing = next(under, "")


def _unreached(line: str) -> str:
    plain = line.translate(QUOTES)
    lower = plain.lower()
    matches = (pattern.search(plain) for has, pattern in _patterns() if has in lower)
    hosts = (match["host"] for match in matches if match and match.groupdict().get("host"))
    return next(hosts, "")


def _path(address: str, host: str) -> str:
    return address.partition(host)[2].partition("?")[0] or "/"


def _host(address: str) -> str:
    return re.split(r"[/?#]", address.partition("://")[2])[0].rpartition("@")[2].partition(":")[0]
