"""Findings about plans of nvcc, hipcc and clang (`toolmatrix stages`): the devices they serve, the lock they follow."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import plural, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.finding import Words

RUNS_NOT, RUNS_BY_PTX, RUNS_BY_CODE, CANNOT_TELL = "TM220", "TM221", "TM222", "TM223"
ANSWERS = {RUNS_NOT: "no", CANNOT_TELL: "unknown", RUNS_BY_PTX: "yes", RUNS_BY_CODE: "yes"}
"""Whether a device runs code, by the codes of findings that say so, the worst first."""


class DeviceFinding(Finding):
    """A device on which the code of a plan runs or does not.

    `image` is the code that it takes, `why` pairs each of the others with the word for why not. A finding without a
    plan is about all plans of a log: `holding` of them hold device code, and the device runs `running`.
    """

    device: str
    image: str = ""
    why: tuple[tuple[str, str], ...] = ()
    driver: str = ""
    holding: int = 0
    running: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The device, and what decides: the counts, the image, or each image with the word for why not."""
        # Of several plans each has its own finding that names the images.
        if self.plan is None:
            return self.device, str(self.holding), str(self.running)
        if self.code == RUNS_BY_PTX:
            return self.device, self.image, self.driver
        return self.device, *(
            [self.image] if self.image else (word for pair in self.why for word in pair)
        )

    def sentence(self, words: Words) -> str:
        if self.plan is not None:
            return super().sentence(words)
        if not self.holding:
            return "there is no code that a device could load"
        # An invocation that only links host code holds none and counts for nothing.
        total = plural(self.holding, "invocation")
        return f"{self.running} of {total} with device code run on it"

    @property
    def answer(self) -> str:
        """yes, no or unknown."""
        return ANSWERS[self.code]

    @property
    def later(self) -> str:
        """The condition of code before a device link."""
        # `expected` is set for relocatable code alone: no driver loads that before a device link.
        return " after a device link" if self.expected else ""

    @property
    def reasons(self) -> str:
        """The reasons why not, images with one reason together."""
        # A fat binary may hold a dozen images that all fail for one reason.
        by_reason: dict[str, list[str]] = {}
        for image, why in self.why:
            by_reason.setdefault(why, []).append(image)
        return "; ".join(
            f"{quoted(images)} {_agree(_WHY[why], images)}" for why, images in by_reason.items()
        )

    @property
    def series(self) -> str:
        """The minor series of the toolkit."""
        # The driver that came with any release of a series reads the PTX of all of it.
        series = ".".join(self.releases[0].split(".")[:2]) if self.releases else ""
        return f"{self.component} {series}" if series else "this toolkit"

    @property
    def came(self) -> str:
        """The driver that came with the series, where a fact names it."""
        return f" (driver {self.driver})" if self.driver else ""

    @property
    def features(self) -> str:
        """The condition of code that asks for features, on a device of which none were named."""
        # A target ID names features behind colons, as in `gfx90a:xnack+` (Clang, target IDs).
        asks = ":" in self.image and ":" not in self.device
        return ", where it has these features" if asks else ""


# What `judge.stage_devices` calls a reason, as the predicate of the images that have it.
_WHY = {
    "major": "is for another major version",
    "minor": "is for a higher minor version",
    "newer": "is PTX for a newer device",
    "own": "is tied to one device",
    "family": "is tied to one family of devices",
    "tegra": "is not portable between Tegra and other devices",
    "other": "is for another device",
    "features": "needs other features of the device",
    "link": "is intermediate code for a link",
    "tile": "is tile intermediate code, which is not covered",
    "optix": "is for OptiX alone",
    "unknown": "is in no table",
    "device": "is an unknown device",
    "outside": "is not made here",
}
_PLURAL = {"is": "are", "needs": "need"}


def _agree(words: str, several: Sequence[str]) -> str:
    verb, _, rest = words.partition(" ")
    return words if len(several) == 1 else f"{_PLURAL[verb]} {rest}"


class AnswerFinding(Finding):
    """A difference between a plan and the answer for a target."""

    target: str

    @property
    def names(self) -> tuple[str, ...]:
        """The target, and what the answer has."""
        return self.target, self.expected
