"""Cores in words and as JSON values: the lines of a refusal, merged and cited by what matters.

The same lines serve text, JSON, explanations, CI cells and findings.
"""

from __future__ import annotations

from toolmatrix.documents import Annotated, Evidence, NonEmpty, NotRequired, TypedDict
from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.records import FAILS
from toolmatrix.report import claims, terminal
from toolmatrix.wording import some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import Incompatibility
    from toolmatrix.solve.grounds import Core, CoreLine
    from toolmatrix.solve.request import Ask, Request
    from toolmatrix.solve.untested import Untested

# So many clashing releases are named; of more only the selector is.
_FEW = 4
# Names shown in one sentence.
_NAMES = 6


class CoreLineEntry(TypedDict):
    """A line of the request, or what a fact says."""

    text: str
    fact: str | None
    facts: list[str]
    evidence: Evidence | None
    source: str | None
    values: dict[str, str]
    target: str
    default: bool


class CoreEntry(TypedDict):
    """Lines that cannot all hold."""

    kind: Annotated[str, "hard", "soft"]
    lines: NonEmpty[CoreLineEntry]
    conclusion: NotRequired[str]


def sentence(index: Index, line: CoreLine) -> str:
    """A line in words."""
    if line.ask is not None:
        return _ask_text(line.ask)
    if line.stipulation is not None:
        return f"{line.stipulation.text} ({some(line.stipulation.at, _FEW)})"
    return ground_text(index, line.ground) if line.ground is not None else ""


def _ask_text(ask: Ask) -> str:
    return f"{ask.text} is the default" if ask.implied else f"you require {ask.text}"


def ground_text(
    index: Index, ground: Incompatibility, mine: tuple[str, tuple[str, ...]] = ("", ())
) -> str:
    """A ground in words; the releases in `mine` are known and not said again."""
    named = claims.named_as(index, ground.subject)
    if (ground.subject, ground.releases) != mine:
        releases = claims.ranged(index, ground.subject, ground.releases)
        named = f"{named} {terminal.few(releases, _NAMES)}".rstrip()
    if ground.kind == "withdrawn":
        return f"{named} was withdrawn, and is chosen only if named exactly"
    if ground.kind == "unneeded":
        return f"{claims.named_as(index, ground.subject)} is chosen only if something requires it"
    if ground.kind == "later":
        return f"{named} was not yet released on {ground.values[0]}"
    required = [
        f"{name} {claims.ranged(index, name, allowed)}".rstrip() if allowed else f"no {name}"
        for name, allowed in ground.conditions
    ]
    conditions = f" with {terminal.listing(required)}" if required else ""
    if ground.kind == "evidence":
        beside = f" with {ground.component}" if ground.component != ground.subject else ""
        return f"no fact supports {named}{beside} at --min-evidence {ground.values[0]}"
    if ground.kind == "touching":
        return f"no fact joins {named} and {clash(index, ground) or ground.component}"
    if ground.kind == "needs":
        return f"{named} needs {terminal.listing(list(ground.alternatives), 'or')}{conditions}"
    # That a build is of its release is its definition, and no fact that somebody stated.
    if index.header["components"][ground.subject]["variant_of"] == ground.component:
        return f"each build of {ground.component} belongs to one release"
    if ground.values == ("absent",):
        # Unread values are recorded as absent, so that nothing is promised for them.
        if ground.evidence == "unknown":
            return claims.open_question(index, ground, offered=True) + conditions
        return f"{named} excludes {ground.component}{conditions}"
    values = claims.union(index, ground.component, ground.values)
    against = clash(index, ground)
    if ground.kind == FAILS:
        return f"{named} fails with {against or f'{ground.component} {values}'}{conditions}"
    if all(value.startswith("!=") for value in ground.values):
        excluded = f"{ground.component} {values.replace('!=', '').replace(',', ' ')}"
        return f"{named} does not go with {against or excluded}{conditions}"
    if against:
        return f"{named} does not go with {against} (only {values}){conditions}"
    verb = "requires" if ground.kind == "requires" else "allows only"
    return f"{named} {claims.claimed(verb, ground.component, values)}{conditions}"


def clash(index: Index, ground: Incompatibility) -> str:
    """The few releases that the other lines of a core leave and this one excludes, as `python 3.12`; else nothing."""
    if not 0 < len(ground.clashing) <= _FEW:
        return ""
    return f"{ground.component} {claims.ranged(index, ground.component, ground.clashing)}"


def sentences(index: Index, lines: Sequence[CoreLine], about: str) -> list[str]:
    """The facts of a core in words, `about` being "they"; the request's lines where no fact remains."""
    texts = []
    for line in lines:
        if ground := line.ground:
            unread = ground.evidence == UNKNOWN
            if ground.subject == about and (against := clash(index, ground)):
                silent = unread or ground.kind == "touching"
                go = "no fact says that they go" if silent else "they do not go"
                texts.append(f"{go} with {against}")
            else:
                texts.append(claims.silence(index, ground) if unread else sentence(index, line))
        elif line.stipulation is not None:
            texts.append(sentence(index, line))
    # Where requests alone contradict each other, the defaults add nothing.
    return texts or [_ask_text(line.ask) for line in lines if line.ask and not line.ask.implied]


def core_document(index: Index, core: Core) -> CoreEntry:
    """One core as JSON values; each line with its text, fact, evidence, source and the values it demands."""
    return {
        "kind": "soft" if core.soft else "hard",
        "lines": [_line_document(index, line) for line in core.lines],
    }


def _line_document(index: Index, line: CoreLine) -> CoreLineEntry:
    ask, ground = line.ask, line.ground
    values = {ask.component: ask.selector} if ask is not None else {}
    if ground is not None:
        demanded = " | ".join(ground.values) if ground.facts else ""
        releases = claims.ranged(index, ground.subject, ground.releases)
        # What is said of one component alone says no more than its releases.
        values = {ground.component: demanded, ground.subject: releases}
    facts = ground.facts if ground is not None else ()
    source = index.source(ground.source).at if ground and facts else None
    if line.stipulation is not None:
        values, source = {line.stipulation.subject: ""}, line.stipulation.source or None
    return {
        "text": sentence(index, line),
        "fact": facts[0] if facts else None,
        "facts": list(facts),
        "evidence": ground.evidence or None if ground is not None else None,
        "source": source,
        "values": values,
        "target": line.target,
        "default": bool(ask is not None and ask.implied),
    }


def soft_documents(index: Index, request: Request, pairs: Sequence[Untested]) -> list[CoreEntry]:
    """Soft reasons as cores: what was tested instead of what was asked."""
    documents: list[CoreEntry] = []
    for pair in pairs:
        lines: dict[str, CoreLineEntry] = {}
        for cite in pair.cites:
            record = index.claim(cite.record)
            release = record.releases.removeprefix("===")
            tested = claims.shortened(record.selector)
            text = f"{pair.subject} {release} was tested with {pair.component} {tested}"
            if "same-minor" in cite.rules:
                text += f", which is assumed for {claims.series(release)} (rule same-minor)"
            line: CoreLineEntry = {
                "text": text,
                "fact": record.id,
                "facts": [record.id],
                "evidence": cite.evidence,
                "source": index.source(record.source).at,
                "values": {pair.subject: release, pair.component: record.selector},
                "target": pair.target,
                "default": False,
            }
            # A row is cited for every pair of releases that it joins, and several say the same: it is shown once.
            entry = lines.setdefault(f"{text} {cite.evidence}", line)
            if record.id not in entry["facts"]:
                entry["facts"].append(record.id)
        asks = [ask for ask in request.asks if ask.target in ("", pair.target)]
        wanted = {ask.component: ask.text for ask in asks}
        # Archs and devices are asked for by options, and no word of the request names their component.
        wanted.setdefault("arch", f"--arch {','.join(request.archs)}")
        wanted.setdefault("device", f"--device {','.join(map(request.named, request.devices))}")
        conclusion = f"{wanted[pair.component]} is untested with {wanted[pair.subject]}."
        documents.append({"kind": "soft", "lines": [*lines.values()], "conclusion": conclusion})
    return documents
