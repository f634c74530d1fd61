"""Cores in words and as JSON values: the lines of a refusal, merged and cited by what matters.

Lines about the same pair of components are one line; of a claim about hundreds of releases only those
are told that the rest of the core leaves. The same lines serve text, JSON, explanations and CI cells.
"""

from __future__ import annotations

from toolmatrix.facts.index import in_ranges
from toolmatrix.report import claims, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import Reason, Vouching
    from toolmatrix.solve.request import Ask
    from toolmatrix.solve.untested import Untested

    Held = Sequence[tuple[str, str, str]]
    """Target, component, release."""

_FEW = 4
"""So many clashing releases are named; of more only the selector is."""
_NAMES = 6
"""So many of a sentence's names are told."""


class Line:
    """One line of a core: a line of the request, or facts about one pair of components."""

    __slots__ = ("allowed", "ask", "evidence", "facts", "reason", "release", "selectors", "source")

    def __init__(self, ask: Ask | None, reason: Reason) -> None:
        self.ask = ask
        self.reason = reason
        self.facts: list[str] = []
        self.source: list[str] = []
        self.evidence = ""
        self.release: list[str] = []
        self.selectors: list[str] = []
        self.allowed = reason.allowed


def lines(assembly: Assembly, core: Sequence[int], held: Held = ()) -> list[Line]:
    """The lines of a core: facts first, then what was asked; facts about the same pair are one line."""
    reasons = [assembly.reason(number) for number in core]
    domains = Domains(assembly, reasons, held)
    found: dict[tuple[str, str, str, str], Line] = {}
    for reason in reasons:
        if reason.ask is not None and not reason.ask.text:
            continue
        if reason.ask is not None:
            found[reason.target, "ask", reason.ask.component, reason.ask.text] = Line(
                reason.ask, reason
            )
            continue
        key = (reason.target, reason.kind, reason.subject, reason.component)
        line = found.setdefault(key, Line(None, reason))
        line.allowed |= reason.allowed
        if reason.cites >= 0:
            _cite(assembly, reason, domains, line)
    return sorted(found.values(), key=lambda line: line.ask is not None)


class Domains:
    """What the lines of a core leave of each component, so that only releases that matter are told.

    `held` are releases that stand beside the request: those of one cell of a CI matrix.
    """

    def __init__(self, assembly: Assembly, reasons: Sequence[Reason], held: Held = ()) -> None:
        self.assembly = assembly
        self.left: dict[tuple[str, str], int] = {}
        for target, component, release in held:
            self.narrow(target, component, assembly.scale(component).bit(release))
        for reason in reasons:
            if reason.ask is not None:
                mask = assembly.mask(reason.ask.component, reason.ask.selector)
                self.narrow(reason.target, reason.ask.component, mask)
        for _ in reasons:
            for reason in reasons:
                fired = reason.ask is None and reason.kind in ("requires", "limits")
                if fired and all(
                    not self.of(reason.target, name) & ~mask for name, mask in reason.terms
                ):
                    left = self.of(reason.target, reason.component)
                    self.narrow(
                        reason.target,
                        reason.component,
                        reason.allowed if left & reason.allowed else left,
                    )

    def of(self, target: str, component: str) -> int:
        """The releases left of a component; an aligned one is the same on every target."""
        return self.left.get(self.place(target, component), -1)

    def narrow(self, target: str, component: str, mask: int) -> None:
        self.left[self.place(target, component)] = self.of(target, component) & mask

    def place(self, target: str, component: str) -> tuple[str, str]:
        return ("" if component in self.assembly.request.align else target), component


def _cite(assembly: Assembly, reason: Reason, domains: Domains, line: Line) -> None:
    subject, mask = reason.terms[0]
    wanted = domains.of(reason.target, subject) & mask
    for ranges, number, evidence, _ in assembly.index.cites(reason.cites):
        if not in_ranges(ranges, wanted):
            continue
        record = assembly.index.record(number)
        line.facts.append(record["id"])
        line.source.append(record["source"])
        line.selectors.append(record["selector"])
        line.evidence = line.evidence or evidence
    versions = assembly.component(subject)["versions"]
    line.release += [name for place, name in enumerate(versions) if wanted >> place + 1 & 1]


def sentence(assembly: Assembly, line: Line, domains: Domains) -> str:
    """A line in words."""
    reason = line.reason
    if line.ask is not None:
        return (
            f"you require {line.ask.text}"
            if not line.ask.implied
            else f"{line.ask.text} is the default"
        )
    if reason.kind == "evidence":
        return f"no row vouches for {reason.subject} with {reason.component} at --min-evidence {reason.rule}"
    releases = terminal.few(ranged(assembly, reason.subject, line.release), _NAMES)
    named = f"{reason.subject} {releases}".rstrip()
    conditions = _conditions(assembly, reason)
    if reason.kind == "needs":
        return f"{named} needs {terminal.listing(list(reason.alternatives), 'or')}{conditions}"
    if reason.allowed == 1 and line.evidence == "unknown":
        return f"no fact says which {reason.component} {named} offers{conditions}"
    if reason.allowed == 1:
        return f"{named} excludes {reason.component}{conditions}"
    values = " | ".join(dict.fromkeys(claims.shortened(text) for text in line.selectors))
    against = clash(assembly, line, domains)
    if against:
        return f"{named} does not go with {against} (only {values}){conditions}"
    verb = "requires" if reason.kind == "requires" else "allows only"
    return f"{named} {claims.claimed(verb, reason.component, values)}{conditions}"


def clash(assembly: Assembly, line: Line, domains: Domains) -> str:
    """The few releases that the other lines of a core leave and this line excludes, as `python 3.12`; else nothing."""
    reason = line.reason
    left = domains.of(reason.target, reason.component)
    if left <= 0 or left & line.allowed or left.bit_count() > _FEW:
        return ""
    versions = assembly.component(reason.component)["versions"]
    clashing = [name for place, name in enumerate(versions) if left >> place + 1 & 1]
    return f"{reason.component} {ranged(assembly, reason.component, clashing)}" if clashing else ""


def sentences(assembly: Assembly, core: Sequence[int], about: str) -> list[str]:
    """The facts of a core in words, `about` being "they"; the request's lines where no fact is left to tell."""
    domains = Domains(assembly, [assembly.reason(number) for number in core])
    found = lines(assembly, core)
    told = []
    for line in found:
        if line.ask is None:
            against = clash(assembly, line, domains) if line.reason.subject == about else ""
            told.append(
                f"they do not go with {against}" if against else sentence(assembly, line, domains)
            )
    return told or [
        sentence(assembly, line, domains)
        for line in found
        if line.ask is not None and not line.ask.implied
    ]


def _conditions(assembly: Assembly, reason: Reason) -> str:
    """The further conditions of a statement, where they are no context that the request fixed by itself."""
    told = []
    for name, mask in reason.terms[1:]:
        held = [
            version
            for place, version in enumerate(assembly.component(name)["versions"])
            if mask >> place + 1 & 1
        ]
        if not assembly.header["components"][name]["given"]:
            told.append(f"{name} {ranged(assembly, name, held)}")
    return f" with {terminal.listing(told)}" if told else ""


def ranged(assembly: Assembly, component: str, releases: Sequence[str]) -> str:
    """Releases as merged ranges: `2.6.0-2.6.5`, `3.6-3.9, 3.11`; nothing when all are meant."""
    versions = list(assembly.component(component)["versions"])
    places = sorted({versions.index(name) for name in releases})
    if len(places) == len(versions) and len(places) > 1:
        return ""
    if assembly.header["components"][component]["scheme"] == "names":
        return " ".join(versions[place] for place in places)
    parts: list[tuple[int, int]] = []
    for place in places:
        if parts and parts[-1][1] == place - 1:
            parts[-1] = (parts[-1][0], place)
        else:
            parts.append((place, place))
    shown = [
        versions[one] if one == two else f"{versions[one]}-{versions[two]}" for one, two in parts
    ]
    return ", ".join(shown)


def core_document(
    assembly: Assembly, core: Sequence[int], kind: str = "hard", held: Held = ()
) -> dict[str, Any]:
    """One core as JSON values; each line with its text, fact, evidence, source and the values it demands."""
    index = assembly.index
    sources = index.section("sources")
    domains = Domains(assembly, [assembly.reason(number) for number in core], held)
    found = []
    for line in lines(assembly, core, held):
        reason = line.reason
        if line.ask is not None:
            values = {line.ask.component: line.ask.selector}
        else:
            values = {
                reason.subject: ranged(assembly, reason.subject, line.release),
                reason.component: " | ".join(dict.fromkeys(line.selectors)),
            }
        found.append(
            {
                "text": sentence(assembly, line, domains),
                "fact": line.facts[0] if line.facts else None,
                "facts": line.facts,
                "evidence": line.evidence or None,
                "source": sources[line.source[0]]["at"] if line.source else None,
                "values": values,
                "target": reason.target,
                "default": bool(line.ask is not None and line.ask.implied),
            }
        )
    return {
        "kind": "soft"
        if any(assembly.reason(number).kind == "evidence" for number in core)
        else kind,
        "lines": found,
    }


def soft_documents(assembly: Assembly, found: Sequence[Untested]) -> list[dict[str, Any]]:
    """Soft reasons as cores: what rows vouch for instead of what was asked."""
    index = assembly.index
    sources = index.section("sources")
    documents = []
    for pair in found:
        lines: list[dict[str, Any]] = []
        seen = set()
        for row in pair.rows:
            for record, evidence, rules in _row_cites(assembly, row, pair):
                release = record["when"][0][1]
                tested = claims.shortened(record["selector"])
                text = f"{pair.subject} {release} was tested with {pair.component} {tested}"
                if "same-minor" in rules:
                    text += (
                        f" and row {release} stands for {claims.series(release)} (rule same-minor)"
                    )
                if record["id"] not in seen:
                    seen.add(record["id"])
                    lines.append(
                        {
                            "text": text,
                            "fact": record["id"],
                            "facts": [record["id"]],
                            "evidence": evidence,
                            "source": sources[record["source"]]["at"],
                            "values": {pair.subject: release, pair.component: record["selector"]},
                            "target": pair.target,
                            "default": False,
                        }
                    )
        wanted = {ask.component: ask.text for ask in assembly.asks(pair.target)}
        wanted.setdefault("arch", f"--arch {','.join(assembly.request.archs)}")
        conclusion = f"{wanted[pair.component]} is untested with {wanted[pair.subject]}."
        documents.append({"kind": "soft", "lines": lines, "conclusion": conclusion})
    return documents


def _row_cites(
    assembly: Assembly, row: Vouching, pair: Untested
) -> Iterator[tuple[dict[str, Any], str, list[str]]]:
    asked = assembly.asked.get((pair.target, pair.subject), -1)
    for ranges, number, evidence, rules in assembly.index.cites(row.cites):
        record = assembly.index.record(number)
        if in_ranges(ranges, asked) and record["component"] == pair.component:
            yield record, evidence, rules
