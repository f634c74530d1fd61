"""What joins two parts: facts about their releases, facts about their builds, or that a wheel loads no toolkit."""

from __future__ import annotations

from functools import lru_cache

from toolmatrix.factbase import evidence as words
from toolmatrix.judging.toolkits import LOADABLE, loads_toolkit, without_loaded_toolkit
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CHANNEL, CONDA, IMAGE
from toolmatrix.request.judgement import FINE, REFUSED, UNKNOWN, JudgedPair, answer_of, builds
from toolmatrix.request.manifests import plain
from toolmatrix.solve.pairs import RequestFacts
from toolmatrix.solve.resolve import Resolution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.manifests.model import Item
    from toolmatrix.request.judgement import RequestedPart
    from toolmatrix.solve.request import Ask, Request


def joined_by_releases(
    index: Index, part: RequestedPart, other: RequestedPart, request: Request
) -> JudgedPair | None:
    """A pair that facts about releases join under a request, with the best of them; None where none does."""
    proof = _best_of_releases(index, request, part.asks[0], other.asks[0])
    return JudgedPair(part, other, FINE, *proof, bound=False) if proof else None


# The files of a folder, and what edits make of them, have most pairs in common.
@lru_cache(maxsize=1024)
def _best_of_releases(
    index: Index, request: Request, own: Ask, other: Ask
) -> tuple[str, tuple[str, ...]] | None:
    at = index.scale(own.component).select(own.selector)
    partner = _request_facts(index, request, own.component).at(at).partner(other.component)
    wanted = index.scale(other.component).select(other.selector)
    speaking = [
        fact
        for fact in partner.facts
        if fact.says != REFUSED and fact.mask & wanted and fact.of & at
    ]
    if not (partner.tested | partner.allowed) & wanted or not speaking:
        return None
    best = max((fact.evidence for fact in speaking), key=words.rank)
    cites = [
        index.claim(cite.record).id
        for fact in speaking
        if fact.evidence == best
        for cite in index.cites(fact.cites)
        if cite.touches(fact.touching)
    ]
    return best, tuple(dict.fromkeys(cites))[:4]


_request_facts = lru_cache(maxsize=256)(RequestFacts)


def joined_by_builds(
    index: Index, part: RequestedPart, other: RequestedPart, request: Request
) -> JudgedPair:
    """A pair of packages of which one is compiled against the other: fine if the request of both has a known answer."""
    answer = answer_of(index, request)
    if isinstance(answer, Resolution) and answer.known:
        proof = support(index, answer, part.component, other.component)
        return JudgedPair(part, other, FINE, *proof, bound=True)
    return JudgedPair(part, other, UNKNOWN, "", (), bound=True)


def beside_toolkit(
    index: Index, package: RequestedPart, part: RequestedPart, other: RequestedPart
) -> JudgedPair | None:
    """A wheel beside the toolkit of an image that it does not load: one that brings its own, or uses none."""
    if not LOADABLE & {part.component, other.component} or not builds(index, package)[1]:
        return None
    # Facts of the two decide where it loads that one.
    if loads_toolkit(index, package):
        return None
    proof = without_loaded_toolkit(index, package)
    return JudgedPair(part, other, FINE if proof else UNKNOWN, *(proof or ("", ())), bound=False)


def unlisted_of_conda(index: Index, part: RequestedPart, other: RequestedPart) -> bool:
    """True for a package and a toolkit of conda that its makers list no build for: nothing works without one."""
    for package, toolkit in ((part, other), (other, part)):
        known = called.builds_of_conda(package.item.name, toolkit.item.name)
        masks = [
            index.scale(each.component).select(each.asks[0].selector) for each in (package, toolkit)
        ]
        has_build = any(
            index.scale(package.component).select(releases) & masks[0]
            and index.scale(toolkit.component).select(versions) & masks[1]
            for releases, versions in known.items()
        )
        # Of what was not read nothing is missing.
        if known and not has_build:
            return True
    return False


def is_series(part: RequestedPart) -> bool:
    """True for an image that is a component of its own, with facts about it as a whole."""
    name = plain(part.item.name)
    match = called.image(name) if part.carried else None
    return match is not None and part.component in called.contents(match) and called.is_series(name)


# Conda's word for builds that compute on no accelerator, as a package and in the name of a build.
_FOR_PROCESSOR = "cpu"


def as_wheel(
    part: RequestedPart, parts: Sequence[RequestedPart], items: Sequence[Item]
) -> tuple[RequestedPart, ...]:
    """A build of conda or an image that has the archs of a wheel, and its toolkit; nothing for any other."""
    if part.item.kind not in (CONDA, IMAGE):
        return ()
    image = plain(part.item.name) if part.item.kind == IMAGE else ""
    channel, mark, _ = part.item.text.text.partition("::")
    channels = [channel] if mark else [item.name for item in items if item.kind == CHANNEL]
    releases = called.made_as_wheels(part.component, image, channels)
    of_conda = (item for item in items if item.kind == CONDA and not image)
    if not releases or any(_FOR_PROCESSOR in item.text.text for item in of_conda):
        return ()
    ask = part.asks[0]
    toolkit = [
        other.replace(asks=(other.asks[0].replace(selector=_series(other.asks[0].selector)),))
        for other in parts
        if other.component == "cuda" and other.item.kind == part.item.kind
    ]
    asks = (*part.asks, ask.replace(selector=releases))
    # conda takes the newest release, and none before those that are known.
    return (part.replace(asks=asks, as_wheel=True, older=False), *toolkit)


def _series(selector: str) -> str:
    """The releases of a series that a tag names by two numbers."""
    short = selector.startswith("==") and selector.count(".") == 1
    return f"{selector}.*" if short else selector


def support(
    index: Index, answer: Resolution, component: str, *others: str
) -> tuple[str, tuple[str, ...]]:
    """The weakest evidence of what an answer says of a package and others, and the facts."""
    cites = [
        cite
        for choice in answer.targets[answer.request.targets[0]]
        if choice.component in (*index.with_builds(component), *others)
        for cite in choice.cites[:1]
    ]
    ids = dict.fromkeys(index.claim(cite.record).id for cite in cites)
    return min((cite.evidence for cite in cites), key=words.rank, default=""), tuple(ids)[:4]
