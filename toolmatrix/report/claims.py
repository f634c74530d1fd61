"""Facts in words: one claim as a sentence fragment, its source as a numbered note.

Wording is made here and nowhere else, from records of the index; a table may bring its own words (`says`).
"""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.facts.versions import Scale
from toolmatrix.report import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.resolve import Choice, Cite, Resolution

_VERBS = {"requires": "requires", "offers": "offers"}
_LONG = 28
"""A list of releases longer than this many letters is cut to the one that matters."""


class Notes:
    """Sources in the order they are cited, each numbered once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.numbers: dict[str, int] = {}

    def mark(self, sources: Iterable[str]) -> str:
        """`[1][3]` for the sources given."""
        found = [
            self.numbers.setdefault(source, len(self.numbers) + 1)
            for source in dict.fromkeys(sources)
        ]
        return "".join(f"[{number}]" for number in sorted(found))

    def lines(self, width: int = 0) -> list[str]:
        """Number, place, title, day it was read: one line per note, or several where it is wider than `width`."""
        sources = self.index.section("sources")
        told = []
        for name, number in self.numbers.items():
            mark, place = f"[{number}] ", sources[name]["at"]
            title = f"{sources[name]['title']}, read {sources[name]['read']}"
            if not width or len(mark + place + title) + 2 <= width:
                told.append(f"{mark}{place}  {title}")
            else:
                told += terminal.wrap(place, width, indent="    ", first=mark)
                told += terminal.wrap(title, width, indent="    ")
        return told


def series(version: str) -> str:
    """`2.6.*` for 2.6.0: the minor series a row stands for."""
    return ".".join(version.split(".")[:2]) + ".*"


def because(record: Mapping[str, Any], rules: Sequence[str], component: str, version: str) -> str:
    """Why a claim speaks for a chosen version, as a fragment for the end of a line."""
    if record["kind"] == "release":
        return _released(record)
    subject, release = record["when"][0]
    value = record["selector"]
    mine = version if subject == component else ""
    if record["component"] != component:
        version = ""
    if record["kind"] == "tested" and not record["says"]:
        named = f"row {release}" if subject != component else f"row {subject} {release}"
        if subject == component:
            return f"{named} names {record['component']} {shortened(value)}" + _rules(rules)
        exact = (
            ""
            if value == version or version.startswith(value + ".")
            else f" ({record['component']} {shortened(value)})"
        )
        if "same-minor" in rules:
            return f"{named}{exact} stands for {series(release)}" + _rules(rules)
        return f"{named}{exact}" + _rules(rules)
    if record["says"]:
        return filled(record, version, mine) + _rules(rules)
    verb = _VERBS.get(record["kind"], "allows")
    said = claimed(verb, record["component"], shortened(value, version))
    return f"{subject} {shortened(release, mine)} {said}" + _rules(rules)


def best(index: Index, choice: Choice) -> Cite:
    """The cite that carries the evidence of a choice."""
    carried = [cite for cite in choice.cites if cite.evidence == choice.evidence]
    return min(
        carried or choice.cites, key=lambda cite: (len(cite.rules), index.record(cite.record)["id"])
    )


def reason(index: Index, choice: Choice) -> str:
    """Why this version, in one fragment."""
    cite = best(index, choice)
    record = index.record(cite.record) | {"evidence": cite.evidence}
    return because(record, cite.rules, choice.component, choice.version)


def disagreement(record: Mapping[str, Any]) -> str:
    """What a rival claim says, in a few words."""
    subject, release = record["when"][0]
    named = f"row {release}" if record["kind"] == "tested" else f"{subject} {shortened(release)}"
    return f"{named} says {shortened(record['selector'])}"


def claimed(verb: str, component: str, values: str) -> str:
    """What a claim says of a component: `requires cuda 11.2`, `requires cuda`, `excludes cuda`."""
    if values == "absent":
        return f"excludes {component}"
    return f"{verb} {component}" if values == "*" else f"{verb} {component} {values}"


def filled(record: Mapping[str, Any], version: str = "", mine: str = "") -> str:
    """The words a table brings, with its places filled in; `mine` is the chosen release of its subject."""
    subject, release = record["when"][0]
    words: str = record["says"]
    for name, value in (
        ("subject", subject),
        ("release", shortened(release, mine)),
        ("component", record["component"]),
        ("value", shortened(record["selector"], version)),
    ):
        words = words.replace("{" + name + "}", value)
    return words


def ranged(index: Index, component: str, releases: Sequence[str]) -> str:
    """Releases as merged ranges: `2.6.0-2.6.5`, `3.6-3.9, 3.11`; nothing when all of several are meant."""
    if not releases:
        return ""
    versions = index.section("c:" + component)["versions"]
    places = sorted({versions.index(name) for name in releases})
    if len(places) == len(versions) > 1:
        return ""
    if index.header["components"][component]["scheme"] == "names":
        return " ".join(versions[place] for place in places)
    spans: list[tuple[int, int]] = []
    for place in places:
        if spans and spans[-1][1] == place - 1:
            spans[-1] = (spans[-1][0], place)
        else:
            spans.append((place, place))
    shown = [versions[one] + (f"-{versions[two]}" if two > one else "") for one, two in spans]
    return ", ".join(shown)


def union(index: Index, component: str, selectors: Sequence[str]) -> str:
    """What several selectors admit together: the one that admits it all, else their releases as ranges."""
    if len(selectors) == 1:
        return shortened(selectors[0])
    versions = index.section("c:" + component)["versions"]
    scale = Scale(index.header["components"][component]["scheme"], versions)
    masks = [scale.select(selector) for selector in selectors]
    whole = 0
    for mask in masks:
        whole |= mask
    if whole in masks:
        return shortened(selectors[masks.index(whole)])
    found = [name for place, name in enumerate(versions) if whole >> place + 1 & 1]
    return shortened(ranged(index, component, found)) or "*"


def shortened(selector: str, version: str = "") -> str:
    """A selector as people read it; of a long list only the release that matters, or its ends."""
    words = selector.split()
    if len(selector) <= _LONG or len(words) < 3:
        return selector
    return version or f"{words[0]} ... {words[-1]}"


def _rules(rules: Sequence[str]) -> str:
    told = [name for name in rules if name not in ("same-minor", "same-series")]
    return f", by rule {' and '.join(told)}" if told else ""


def _released(record: Mapping[str, Any]) -> str:
    if record["evidence"] == "unknown":
        return "no fact speaks of it"
    if "effect" in record["attributes"]:
        return str(record["attributes"]["effect"])
    return f"released {record['date']}" if record["date"] else "released"


def caveats(resolution: Resolution) -> list[dict[str, Any]]:
    """What an option of the request did not do, though one might take it for done."""
    request = resolution.request
    found: list[dict[str, Any]] = []
    if request.prefer == "newest":
        text = "--prefer newest: combinations that somebody tested were not preferred"
        found.append({"kind": "tested-not-preferred", "text": text, "components": []})
    for name in (*request.align, *request.lone):
        lacking = [target for target in resolution.targets if name not in resolution.chosen(target)]
        if lacking:
            text = f"--align {name}: the answer has none on {terminal.listing(lacking)}"
            found.append({"kind": "nothing-to-align", "text": text, "components": []})
    weak = [
        (target, choice)
        for target, choices in resolution.targets.items()
        for choice in choices
        if request.min_evidence and words.rank(choice.evidence) < words.rank(request.min_evidence)
    ]
    if weak:
        named = dict.fromkeys(f"{choice.component} ({choice.evidence})" for _, choice in weak)
        text = (
            f"--min-evidence {request.min_evidence} does not reach {', '.join(named)}: "
            "it refuses pairs that rows join less well, and these rest on other facts"
        )
        components = [
            {"target": target, "component": choice.component, "evidence": choice.evidence}
            for target, choice in weak
        ]
        found.append({"kind": "below-minimum", "text": text, "components": components})
    return found
