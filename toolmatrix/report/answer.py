"""An answer as a document: the contract `toolmatrix.resolution/1`. `tree` shows the same to people."""

from __future__ import annotations

from toolmatrix.documents import MatrixHead
from toolmatrix.report import claims, remarks, variants
from toolmatrix.solve import flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Resolution, Rival

SCHEMA = "toolmatrix.resolution/1"
# Images are named as Go names machines, all else as the kernel does.
_PLATFORMS = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}


def head(index: Index) -> MatrixHead:
    """The matrix an answer rests on: its digest and date."""
    return {"digest": index.header["digest"], "date": index.header["date"]}


def request_document(request: Request) -> dict[str, Any]:
    """The request as JSON values, with the defaults that were filled in."""
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
        **({"recipe": request.recipe} if request.recipe else {}),
    }


def document(index: Index, resolution: Resolution) -> dict[str, Any]:
    """The answer as JSON values."""
    return {
        "schema": SCHEMA,
        "matrix": head(index),
        "request": request_document(resolution.request),
        "targets": {target: _target(index, resolution, target) for target in resolution.targets},
        "evidence": resolution.evidence,
        "caveats": remarks.caveats(resolution),
        "unread": remarks.unread(resolution),
    }


def _target(index: Index, resolution: Resolution, target: str) -> dict[str, Any]:
    components = index.header["components"]
    context = {
        ask.component: ask.selector for ask in resolution.request.asks if ask.target == target
    }
    found: dict[str, Any] = {"components": {}, "archs": [], "devices": []}
    flag_facts: list[str] = []
    builds: dict[str, dict[str, Any]] = {}
    for choice in resolution.targets[target]:
        shown = {
            "evidence": choice.evidence,
            # A fact that speaks by several rules is cited for each.
            "facts": list(dict.fromkeys(index.record(cite.record).id for cite in choice.cites)),
            "why": claims.reason(index, choice),
            "disputed": [dispute_document(index, part) for part in choice.disputed],
        }
        of = components[choice.component]["variant_of"]
        if of:
            builds[of] = shown
        elif choice.component in ("arch", "device"):
            found[choice.component + "s"].append(shown | {"name": choice.version})
        # Any release from this one on will do.
        elif components[choice.component]["floor"]:
            found["components"][choice.component] = {"floor": choice.version} | shown
        elif components[choice.component]["flag"]:
            # Each flag is solved for by itself, but documents list flags as one command line has them.
            flag_facts += [index.record(cite.record).id for cite in choice.cites]
        else:
            found["components"][choice.component] = {"version": choice.version} | shown
    # A build is shown inside the component that it is a build of.
    for variant in variants.of(index, resolution.targets[target]):
        build = variants.document(variant) | builds[variant.component]
        found["components"][variant.component]["variant"] = build
    for name, owner in variants.carried(index, resolution, target).items():
        if name in found["components"]:
            found["components"][name]["inside"] = owner
    images = remarks.images_of(index, resolution, target)
    for name in dict.fromkeys(one.component for one in images):
        own = remarks.image_documents([one for one in images if one.component == name])
        found["components"][name]["built"] = own
    made = flags.of(resolution, target)
    found["flags"] = {
        "cflags": list(made.cflags),
        "cxxflags": list(made.cxxflags),
        "nvcc": list(made.nvcc),
        "hipcc": list(made.hipcc),
        "env": dict(made.env),
        "missing": list(made.missing),
        "facts": flag_facts,
    }
    if commands := variants.commands(index, resolution, target):
        found["install"] = {
            "pip": commands,
            "uv": variants.commands(index, resolution, target, "uv"),
        }
    found["platform"] = _PLATFORMS.get(context.get("machine", ""), "")
    return found


def dispute_document(index: Index, part: Rival) -> dict[str, str]:
    """A claim that says otherwise, and the one that decided."""
    record = index.claim(part.rival)
    return {
        "fact": record.id,
        "evidence": part.evidence,
        "says": claims.disagreement(record),
        "decided_by": index.claim(part.deciding).id,
    }
