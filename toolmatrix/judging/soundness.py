"""Whether a refusal holds: it may rest on what the matrix leaves out, or on what a file need not keep to."""

from __future__ import annotations

from collections.abc import Sequence

from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ClaimRecord
from toolmatrix.factbase.versions import ABSENT
from toolmatrix.finding import Incompatibility
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CONDA
from toolmatrix.request.judgement import RUNTIME, RequestedPart, RequestedParts, older
from toolmatrix.request.manifests import TOOLKIT


class Soundness:
    """What is known of an environment that decides whether its refusals hold."""

    def __init__(self, index: Index, parts: RequestedParts) -> None:
        self.index = index
        self.components = index.header["components"]
        self.machine = parts.machine
        self.unread = {*parts.unread}

    def is_unsound(
        self, parts: Sequence[RequestedPart], grounds: Sequence[Incompatibility]
    ) -> bool:
        """True if a refusal rests on what the matrix leaves out, or on what a file need not keep to."""
        bare = {part.component for part in parts if part.item.bare}
        overridden = {part.component for part in parts if part.item.overrides}
        # What a wheel requires its package of conda need not: that is made by a recipe of its own.
        conda = {part.component for part in parts if part.item.kind == CONDA and not part.as_wheel}
        # What something computes on is no more than asked after, unless a toolkit says it.
        tools = any(part.component in (*TOOLKIT, *RUNTIME) for part in parts)
        for ground in grounds:
            about = {ground.subject, ground.component}
            # A release that the matrix does not know may go with what the known ones do not.
            if about & self.unread:
                return True
            # A file may bring a Python in more ways than facts know, and a package by other ways than a wheel of the
            # index.
            if about & {"interpreter", "from"} or ("accelerator" in about and not tools):
                return True
            # That builds of two packages match is read off their lines, and nothing enforces it.
            of = self.components[ground.component]["variant_of"]
            builds_of = self.components[ground.subject]["variant_of"]
            # What has no source distribution comes as one of the wheels that are listed.
            is_listed = of == ground.subject and of in called.wheels_alone()
            if of and not is_listed and (ground.evidence == "derived" or builds_of not in ("", of)):
                return True
            if (self.components[ground.subject]["variant_of"] or ground.subject) in conda:
                return True
            # Whatever others require of it, an override says what is taken.
            if ground.component in overridden:
                return True
            # Requirements that are ignored by the installation do not count.
            if ground.subject in bare and ground.component not in ("python", "glibc", "machine"):
                return True
        # A machine that the file does not name is no reason.
        alone = (
            len(parts) == 1
            and not self.machine
            and any(ground.component == "machine" for ground in grounds)
        )
        return alone or any(self.may_be_older(part, grounds) for part in parts if part.older)

    def may_be_older(self, part: RequestedPart, grounds: Sequence[Incompatibility]) -> bool:
        """True where a release before those that are known may do for all that is required of a part."""
        # That a distribution has no wheel at all is known of all files, and not of some releases.
        if any(
            ground.subject == "distro"
            and ground.component == part.component
            and ground.values == (ABSENT,)
            for ground in grounds
        ):
            return False
        selectors = [
            claim.selector
            for ground in grounds
            if ground.component == part.component and ground.kind == "requires"
            for claim in map(self.index.find, ground.facts)
            if isinstance(claim, ClaimRecord)
        ]
        own = part.asks[0].selector
        return not selectors or any(
            older(self.index, part.component, own, selector) for selector in selectors
        )
