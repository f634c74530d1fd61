"""Findings about plans beside the answer that they were made for: a lock, or a request."""

from __future__ import annotations

from toolmatrix.codes.plans import PlanFinding
from toolmatrix.wording import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.finding import Words


class AnswerFinding(PlanFinding):
    """A difference between a plan and the answer for a target."""

    target: str

    @property
    def names(self) -> tuple[str, ...]:
        """The target, and what the answer has."""
        return self.target, self.expected


class DriverDiffers(AnswerFinding):
    """A driver of another release than the answer has."""

    code = "TM224"
    text = "the driver is {actual}, but the answer for {target} has {expected}"
    advice = "name a driver of that release with `--driver`, or plan without one"


class PlannedByCaptures(AnswerFinding):
    """A plan without a driver, by the order of stages that a capture of `captured` shows.

    `differs` is the captured release on the other side, where it runs other stages; `fetched` brings the driver.
    """

    code = "TM225"
    driver: str
    captured: str
    differs: str = ""
    fetched: str = ""

    def sentence(self, _words: Words) -> str:
        missing = f"this machine has no {self.driver} of {self.expected}"
        if self.captured == self.expected.partition(" ")[2]:
            return f"{missing}: planned from captures of that release"
        planned = (
            f"{missing}: the plan is derived from captures of {self.captured}, the nearest release"
        )
        other = f"; captures of {self.differs} show other stages" if self.differs else ""
        return planned + other

    def help(self) -> str:
        fetch = f"fetch it with `{self.fetched}`, or " if self.fetched else ""
        return f"{fetch}install it, and name it with `--driver` if it is not found"


class HostCompilerDiffers(AnswerFinding):
    """A host compiler of another kind or series than the answer has."""

    code = "TM226"
    text = "the host compiler is {actual}, but the answer for {target} has {expected}"
    advice = "install that compiler, or name it with `-ccbin`"


class ArchsDiffer(AnswerFinding):
    """Archs that the answer has and the plan makes no code for, or the other way round."""

    code = "TM227"
    missing: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    def sentence(self, _words: Words) -> str:
        if self.missing:
            return f"no code for {quoted(self.missing)}, which the answer for {self.target} has"
        return f"code for {quoted(self.further)}, which the answer for {self.target} does not have"

    def help(self) -> str:
        return "leave archs out of the command line to use those of the answer"


class WordLeftOut(AnswerFinding):
    """A word of the answer that the driver is not given, and why."""

    code = "TM228"
    text = "{word} of the answer for {target} is left out: {why}"
    word: str
    why: str

    def help(self) -> str:
        return ""


class PlatformDiffers(AnswerFinding):
    """An answer for another platform than this machine."""

    code = "TM229"
    text = "the answer for {target} is for {expected}, but this machine is {actual}"
    advice = "run this on such a machine, or in its image, to see its host compiler"


class NoDriver(AnswerFinding):
    """An answer that has no compiler of device code."""

    code = "TM230"
    text = "the answer for {target} has no compiler of device code ({actual})"
    advice = "name another target with `--target`, or request a compiler with `--accelerator` and `--from source`"
