"""An answer as a document: the contract `toolmatrix.resolution/1`. `tree` shows the same to people."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.report import claims, terminal
from toolmatrix.solve import flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Choice, Cite, Resolution

SCHEMA = "toolmatrix.resolution/1"


def head(index: Index) -> dict[str, str]:
    """The matrix an answer rests on: its digest and date."""
    return {"digest": index.header["digest"], "date": index.header["date"]}


def request_document(request: Request) -> dict[str, Any]:
    """What was asked, with the defaults that were filled in."""
    chosen = {
        option: {
            ask.target or "*": ask.selector
            for ask in request.asks
            if ask.option == option and ask.component == option
        }
        for option in ("accelerator", "from")
    }
    return {
        "wanted": [ask.text for ask in request.asks if not ask.option],
        "with": [ask.text for ask in request.asks if ask.option == "with"],
        "targets": list(request.targets),
        "from": chosen["from"].get("*", ""),
        "accelerator": chosen["accelerator"],
        "align": [*request.align, *request.lone],
        "archs": list(request.archs),
        "devices": list(request.devices),
        "cpu": request.cpu,
        "distro": next((ask.selector for ask in request.asks if ask.option == "distro"), ""),
        "prefer": request.prefer,
        "min_evidence": request.min_evidence,
        "at": request.at,
    }


def document(index: Index, resolution: Resolution) -> dict[str, Any]:
    """The answer as JSON values."""
    return {
        "schema": SCHEMA,
        "matrix": head(index),
        "request": request_document(resolution.request),
        "targets": {target: _target(index, resolution, target) for target in resolution.targets},
        "evidence": resolution.evidence,
        "caveats": caveats(resolution),
    }


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


def flag_components(index: Index) -> list[str]:
    return [name for name, part in index.header["components"].items() if part["flag"]]


def _target(index: Index, resolution: Resolution, target: str) -> dict[str, Any]:
    components = index.header["components"]
    context = {
        ask.component: ask.selector for ask in resolution.request.asks if ask.target == target
    }
    found: dict[str, Any] = {"components": {}, "archs": [], "devices": []}
    for choice in resolution.targets[target]:
        shown = _choice(index, choice)
        if choice.component in ("arch", "device"):
            found[choice.component + "s"].append(shown | {"name": choice.version})
        elif components[choice.component]["floor"]:
            found["components"][choice.component] = {"floor": choice.version} | shown
        elif not components[choice.component]["flag"]:
            found["components"][choice.component] = {"version": choice.version} | shown
    made = flags.of(resolution, target, flag_components(index))
    found["flags"] = {
        "cflags": list(made.cflags),
        "cxxflags": list(made.cxxflags),
        "nvcc": list(made.nvcc),
        "hipcc": list(made.hipcc),
        "env": dict(made.env),
        "missing": list(made.missing),
        "facts": _flag_facts(index, resolution, target),
    }
    found["platform"] = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}.get(
        context.get("machine", ""), ""
    )
    return found


def _flag_facts(index: Index, resolution: Resolution, target: str) -> list[str]:
    names = flag_components(index)
    return [
        index.record(cite.record)["id"]
        for choice in resolution.targets[target]
        if choice.component in names
        for cite in choice.cites
    ]


def _choice(index: Index, choice: Choice) -> dict[str, Any]:
    return {
        "evidence": choice.evidence,
        "facts": list(dict.fromkeys(index.record(cite.record)["id"] for cite in choice.cites)),
        "why": reason(index, choice),
        "disputed": [dispute_document(index, part) for part in choice.disputed],
    }


def dispute_document(index: Index, part: tuple[int, str, int]) -> dict[str, str]:
    """A claim that says otherwise, and the one that decided."""
    rival, evidence, deciding = part
    record = index.record(rival)
    return {
        "fact": record["id"],
        "evidence": evidence,
        "says": disagreement(record),
        "decided_by": index.record(deciding)["id"],
    }


def disagreement(record: Mapping[str, Any]) -> str:
    """What a rival claim says, in a few words."""
    subject, release = record["when"][0]
    named = (
        f"row {release}" if record["kind"] == "tested" else f"{subject} {claims.shortened(release)}"
    )
    return f"{named} says {claims.shortened(record['selector'])}"


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
    return claims.because(record, cite.rules, choice.component, choice.version)
