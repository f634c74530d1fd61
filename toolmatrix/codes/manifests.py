"""Findings of `toolmatrix judge`: what a file of a project asks for, beside the facts."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.errors import Position
    from toolmatrix.finding import Words


def short(text: str) -> str:
    """What a part is, without where it comes from: `cuda 12.0.1` of `cuda 12.0.1 of nvidia/cuda:12.0.1-devel`."""
    return text.partition(" of ")[0].partition(", ")[0]


class ManifestFinding(Finding):
    """What a file asks for; `places` are the positions of `asked`, and `environment` is the stage or service."""

    asked: tuple[str, ...]
    positions: tuple[Position, ...]
    environment: str = ""

    @property
    def reason(self) -> str:
        """Why, where no fact about two of them is behind it."""
        return ""

    @property
    def named(self) -> str:
        """All that was asked for, in a few words each."""
        return listing([short(requirement) for requirement in self.asked])


class RefusedTogether(ManifestFinding):
    """What a file asks for, and a hard fact refuses."""

    code = "TM106"

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.named} {'conflict' if len(self.asked) > 1 else 'is not available'}"

    @property
    def reason(self) -> str:
        """Lines about one package need no fact."""
        return f"no release of {self.component} satisfies all of them"


class BuiltBySource(ManifestFinding):
    """What a file asks for, and of which there is no wheel for the rest of it."""

    code = "TM107"
    advice = "take a release with a wheel, or install the compiler and headers in the file"

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"no wheel for {self.named}: pip compiles a source distribution, if there is one"


class NoSuchRelease(ManifestFinding):
    """A release that a file pins, and that was not in the list of its package; `near` are its neighbours."""

    code = "TM108"
    package: str
    release: str
    near: tuple[str, ...]
    read: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.named} is not available"

    @property
    def reason(self) -> str:
        """What the list has in its place."""
        near = " and ".join(self.near)
        return (
            f"the package index has no {self.package} {self.release}, but {near} (read {self.read})"
        )


class ForProcessorAlone(ManifestFinding):
    """A package whose builds run on the processor alone, beside a device that is named."""

    code = "TM115"
    advice = "take the package, extra or index that has builds for the device"
    accelerator: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{short(self.asked[0])} does not compute on {listing(self.asked[1:])}"

    @property
    def reason(self) -> str:
        """What its builds lack."""
        return f"all builds that it may be are without {self.accelerator}"
