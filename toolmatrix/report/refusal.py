"""A refusal as a document (the contract `toolmatrix.conflict/1`) and in words: cores, then repairs.

Each core is unsatisfiable by itself and irreducible; lines about the same pair of components are merged before printing.
The wording of a derivation is PubGrub's: "Because A and B, C."
"""

from __future__ import annotations

import shlex

from toolmatrix.report import answer, claims, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.assemble import Assembly, Reason, Vouching
    from toolmatrix.solve.repair import Repair
    from toolmatrix.solve.request import Ask, Request
    from toolmatrix.solve.resolve import Refusal, Resolution
    from toolmatrix.solve.untested import Untested

SCHEMA = "toolmatrix.conflict/1"
_FEW = 4
LIMIT = 12
"""Lines of derivation printed for one core; the rest behind --depth."""


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


def lines(assembly: Assembly, core: Sequence[int]) -> list[Line]:
    """The lines of a core: facts first, then what was asked; facts about the same pair joined, cited by what matters."""
    reasons = [assembly.reason(number) for number in core]
    domains = _domains(assembly, reasons)
    found: dict[tuple[str, str, str, str], Line] = {}
    for reason in reasons:
        if reason.ask is not None:
            found[reason.target, "ask", reason.ask.component, reason.ask.text] = Line(reason.ask, reason)
            continue
        key = (reason.target, reason.kind, reason.subject, reason.component)
        line = found.setdefault(key, Line(None, reason))
        line.allowed |= reason.allowed
        if reason.cites >= 0:
            _cite(assembly, reason, domains, line)
    return sorted(found.values(), key=lambda line: line.ask is not None)


def _domains(assembly: Assembly, reasons: Sequence[Reason]) -> dict[tuple[str, str], int]:
    """What the lines of a core leave of each component, so that only releases that matter are cited."""
    domains: dict[tuple[str, str], int] = {}
    for reason in reasons:
        if reason.ask is not None:
            key = (reason.target, reason.ask.component)
            domains[key] = domains.get(key, -1) & assembly.mask(reason.ask.component, reason.ask.selector)
    for _ in reasons:
        for reason in reasons:
            fired = reason.ask is None and reason.kind in ("requires", "limits")
            if fired and all(not domains.get((reason.target, name), -1) & ~mask for name, mask in reason.terms):
                key = (reason.target, reason.component)
                narrowed = domains.get(key, -1) & reason.allowed
                domains[key] = narrowed or domains.get(key, -1)
    return domains


def _cite(assembly: Assembly, reason: Reason, domains: dict[tuple[str, str], int], line: Line) -> None:
    from toolmatrix.facts.index import in_ranges

    subject, mask = reason.terms[0]
    wanted = domains.get((reason.target, subject), -1) & mask
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


def sentence(assembly: Assembly, line: Line, domains: dict[tuple[str, str], int]) -> str:
    """A line in words."""
    reason = line.reason
    if line.ask is not None:
        return f"you require {line.ask.text}" if not line.ask.implied else f"{line.ask.text} is the default"
    if reason.kind == "evidence":
        return f"no row vouches for {reason.subject} with {reason.component} at --min-evidence {reason.rule}"
    named = f"{reason.subject} {ranged(assembly, reason.subject, line.release)}".rstrip()
    conditions = _conditions(assembly, reason)
    if reason.kind == "need":
        return f"{named} needs {terminal.listing(list(reason.alternatives), 'or')}{conditions}"
    if reason.allowed == 1 and line.evidence == "unknown":
        return f"no fact says which {reason.component} {named} offers{conditions}"
    if reason.allowed == 1:
        return f"{named} excludes {reason.component}{conditions}"
    values = " | ".join(dict.fromkeys(claims.shortened(text) for text in line.selectors))
    against = clash(assembly, line, domains)
    if against:
        return f"{named} does not go with {against} (only {values}){conditions}"
    return f"{named} {'requires' if reason.kind == 'requires' else 'allows only'} {reason.component} {values}{conditions}"


def clash(assembly: Assembly, line: Line, domains: dict[tuple[str, str], int]) -> str:
    """The few releases that the other lines of a core leave and this line excludes, as `python 3.12`; else nothing."""
    reason = line.reason
    left = domains.get((reason.target, reason.component), -1)
    if left <= 0 or left & line.allowed or left.bit_count() > _FEW:
        return ""
    versions = assembly.component(reason.component)["versions"]
    clashing = [name for place, name in enumerate(versions) if left >> place + 1 & 1]
    return f"{reason.component} {ranged(assembly, reason.component, clashing)}"


def sentences(assembly: Assembly, core: Sequence[int], about: str) -> list[str]:
    """The lines of a core in words, for `about` as "they"; the request's own lines only where no fact is left to tell."""
    domains = _domains(assembly, [assembly.reason(number) for number in core])
    found = lines(assembly, core)
    told = []
    for line in found:
        if line.ask is None:
            against = clash(assembly, line, domains) if line.reason.subject == about else ""
            told.append(f"they do not go with {against}" if against else sentence(assembly, line, domains))
    return told or [sentence(assembly, line, domains) for line in found if line.ask is not None and not line.ask.implied]


def _conditions(assembly: Assembly, reason: Reason) -> str:
    """The further conditions of a statement, where they are no context that the request fixed by itself."""
    told = []
    for name, mask in reason.terms[1:]:
        held = [version for place, version in enumerate(assembly.component(name)["versions"]) if mask >> place + 1 & 1]
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
    shown = [versions[one] if one == two else f"{versions[one]}-{versions[two]}" for one, two in parts]
    return ", ".join(shown)


def core_document(assembly: Assembly, core: Sequence[int], kind: str = "hard") -> dict[str, Any]:
    """One core as JSON values; each line with its text, fact, evidence, source and the values it demands."""
    index = assembly.index
    sources = index.section("sources")
    domains = _domains(assembly, [assembly.reason(number) for number in core])
    found = []
    for line in lines(assembly, core):
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
    return {"kind": "soft" if any(assembly.reason(number).kind == "evidence" for number in core) else kind, "lines": found}


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
                text = f"{pair.subject} {release} was tested with {pair.component} {claims.shortened(record['selector'])}"
                if "same-minor" in rules:
                    text += f" and row {release} stands for {claims.series(release)} (rule same-minor)"
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


def _row_cites(assembly: Assembly, row: Vouching, pair: Untested) -> Iterator[tuple[dict[str, Any], str, list[str]]]:
    from toolmatrix.facts.index import in_ranges

    asked = assembly.asked.get((pair.target, pair.subject), -1)
    for ranges, number, evidence, rules in assembly.index.cites(row.cites):
        record = assembly.index.record(number)
        if in_ranges(ranges, asked) and record["component"] == pair.component:
            yield record, evidence, rules


def allowed_text(
    index: Index, found: Resolution, soft: Sequence[dict[str, Any]], screen: terminal.Terminal, *, known: bool
) -> str:
    """What `why-not` says when nothing forbids the request."""
    notes = claims.Notes(index)
    asked = " ".join(ask.text for ask in found.request.asks if ask.option in ("", "with"))
    if not known:
        return f"{screen.style('unknown', 'unknown')}: no fact forbids `{asked}`, and none vouches for it  TM120\n"
    parts = [f"{screen.style('yes', 'yes')}: nothing forbids `{asked}`"]
    for number, core in enumerate(soft, 1):
        parts.append("\n".join(_core(index, number, core, notes, screen, several=False, depth=None)))
    if notes.numbers:
        parts.append("\n".join(notes.lines()))
    return "\n\n".join(parts) + "\n"


def command(index: Index, request: Request, name: str = "resolve") -> str:
    """The command line that makes a request; pasting it into a shell repeats it."""
    words = ["toolmatrix", name, *(ask.text for ask in request.asks if not ask.option)]
    for ask in request.asks:
        if ask.option == "with":
            words += ["--with", ask.text]
    first = next(iter(index.header["targets"]))
    if request.targets != (first,) or any(ask.option == "target" and not ask.implied for ask in request.asks):
        words += ["--target", ",".join(request.targets)]
    for option in ("from", "accelerator", "distro"):
        said = next((ask for ask in request.asks if ask.option == option and not ask.implied), None)
        if said is not None:
            words += [f"--{option}", said.selector]
    for option, names in (("arch", request.archs), ("device", request.devices), ("align", request.align)):
        if names:
            words += [f"--{option}", ",".join(names)]
    if request.cpu:
        words += ["--cpu", request.cpu]
    if request.prefer != "best-evidence":
        words += ["--prefer", request.prefer]
    if request.min_evidence:
        words += ["--min-evidence", request.min_evidence]
    if request.at:
        words += ["--at", request.at]
    return " ".join(shlex.quote(word) for word in words)


def change_text(index: Index, repair: Repair) -> str:
    """What a repair changes, in words."""
    told = []
    for old, new in repair.changes:
        if new is None:
            told.append(f"drop {old.text}")
        elif old.option == "arch":
            device = _device_of(index, old.selector)
            why = f": {new.selector} code also runs on {device} devices" if device else ""
            told.append(f"make code for {new.selector} instead of {old.selector}{why}")
        else:
            told.append(f"{new.text} instead of {old.text}")
    return " and ".join(told)


def _device_of(index: Index, arch: str) -> str:
    part = index.section("c:device")
    place = index.section("c:arch")["versions"].index(arch)
    for number, name in enumerate(part["versions"]):
        for kind, when, component, allowed, _, _, _ in part["bindings"]:
            if kind == "limits" and component == "arch" and when[0][1] >> number + 1 & 1 and allowed >> place + 1 & 1:
                return str(name)
    return ""


def document(index: Index, refusal: Refusal, repairs: Sequence[Repair], soft: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """A refusal as JSON values."""
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "request": answer.request_document(refusal.assembly.request),
        "cores": [*(core_document(refusal.assembly, core) for core in refusal.cores), *soft],
        "repairs": [
            {
                "change": [{"from": old.text, "to": new.text if new else None} for old, new in repair.changes],
                "text": change_text(index, repair),
                "command": command(index, repair.request),
                "cost": repair.cost,
                "evidence": repair.resolution.evidence,
                "resolution": answer.document(index, repair.resolution),
            }
            for repair in repairs
        ],
    }


def text(
    index: Index,
    refusal: Refusal,
    repairs: Sequence[Repair],
    screen: terminal.Terminal,
    soft: Sequence[dict[str, Any]] = (),
    *,
    depth: int | None = None,
) -> str:
    """A refusal in words: reasons, then what would allow it."""
    notes = claims.Notes(index)
    cores = [*(core_document(refusal.assembly, core) for core in refusal.cores), *soft]
    count = len(cores)
    parts = [screen.style("no", "no") + f", for {terminal.plural(count, 'independent reason')}" if count > 1 else screen.style("no", "no")]
    several = len(refusal.assembly.request.targets) > 1
    for number, core in enumerate(cores, 1):
        parts.append("\n".join(_core(index, number, core, notes, screen, several, depth)))
    parts.append("\n".join(_ways_out(index, repairs)))
    if notes.numbers:
        parts.append("\n".join(notes.lines()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _core(
    index: Index,
    number: int,
    core: dict[str, Any],
    notes: claims.Notes,
    screen: terminal.Terminal,
    several: bool,
    depth: int | None,
) -> list[str]:
    told = []
    for line in core["lines"]:
        if line["default"] and len(core["lines"]) > 2 and not several:
            continue
        mark = notes.mark(index.record(index.section("ids")[fact])["source"] for fact in line["facts"]) if line["facts"] else ""
        evidence = f" ({line['evidence']})" if line["evidence"] else ""
        target = f" on {line['target']}" if several and line["facts"] else ""
        told.append(f"{line['text']}{target}{evidence}{' ' + mark if mark else ''}")
    shown = told if depth is not None else told[:LIMIT]
    rest = len(told) - len(shown)
    prefix = f"{number}. {core['kind']}  "
    code = "TM101" if core["kind"] == "hard" else "TM102"
    body = [f"{'Because ' if place == 0 else 'and '}{part}{',' if place == len(shown) - 1 else ''}" for place, part in enumerate(shown)]
    body.append(core.get("conclusion", "there is no answer.") + f"  {code}")
    if rest:
        body.insert(-1, f"... and {terminal.plural(rest, 'more line')} (--depth)")
    return [(prefix if place == 0 else " " * len(prefix)) + part for place, part in enumerate(body)]


def _ways_out(index: Index, repairs: Sequence[Repair]) -> list[str]:
    if not repairs:
        return ["no single change, nor two, makes it possible"]
    found = ["to allow it (each of these was solved)"]
    for repair in repairs:
        found.append(f"  {change_text(index, repair)}  (weakest evidence: {repair.resolution.evidence})")
        found.append(f"    {command(index, repair.request)}")
    return found
