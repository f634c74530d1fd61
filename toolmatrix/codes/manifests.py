"""Findings of `toolmatrix judge`: what a file of a project asks for, beside the facts."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.errors import Position
    from toolmatrix.finding import Words


class ManifestFinding(Finding):
    """What a file asks for; `places` is where each of `asked` stands, and `environment` the stage or service."""

    asked: tuple[str, ...]
    places: tuple[Position, ...]
    environment: str = ""


class RefusedTogether(ManifestFinding):
    """What a file asks for, and a hard fact refuses."""

    code = "TM106"

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        named = listing(self.asked)
        return f"{named} do not go together" if len(self.asked) > 1 else f"{named} cannot be had"


class BuiltBySource(ManifestFinding):
    """What a file asks for, and of which there is no wheel for the rest of it."""

    code = "TM107"
    advice = "take a release that has one, or let the file install what compiling it needs"

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"no wheel fits {listing(self.asked)}: pip compiles a source distribution, if there is one"
