"""Findings about plans of nvcc, hipcc and clang (`toolmatrix stages`): the devices they serve, the lock they follow."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import listing, plural, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.finding import Words


class PlanFinding(Finding):
    """A finding about a plan; its component and releases are the toolkit of the plan."""

    @property
    def toolkit(self) -> str:
        """`cuda 13.0.1 to 13.0.3`."""
        # A driver prints its version, which several releases may ship.
        ends = self.releases[:1] + self.releases[1:][-1:]
        return f"{self.component} {' to '.join(ends)}" if ends else "this toolkit"


class ArchRefused(PlanFinding):
    """An arch that the toolkit does not take.

    `standing` is dropped, new, unknown or empty; `first` and `last` are the nvcc that take it, `rocm` the ROCm.
    """

    code = "TM201"
    arch: str
    standing: str
    first: str
    last: str
    rocm: str

    def sentence(self, _words: Words) -> str:
        refused = f"{self.toolkit} does not support the arch `{self.arch}`"
        if self.standing == "unknown":
            return f"{refused}, which is in no table"
        if self.rocm:
            return f"{refused}; code for it needs rocm {self.rocm}"
        if self.standing == "dropped":
            return f"{refused} any more: nvcc {self.last} was the last to support it"
        if self.standing == "new":
            return f"{refused} yet: nvcc {self.first} is the first to support it"
        return refused + (f"; nvcc {self.first} to {self.last} support it" if self.first else "")

    def help(self) -> str:
        if self.standing == "dropped" and self.last:
            return f"leave the arch out, or use a toolkit with nvcc {self.last}"
        if self.standing == "new" and self.first:
            return f"use a toolkit with nvcc {self.first}, or PTX of an arch that this one supports"
        return "use an arch that the toolkit supports"


class ArchDeprecated(PlanFinding):
    """Archs that the toolkit is about to drop."""

    code = "TM202"
    text = "{toolkit} will drop {archs}"
    advice = "leave it out, or keep PTX of it for old devices while the toolkit supports it"
    archs: tuple[str, ...]


class ArchByDefault(PlanFinding):
    """A default arch: `how` is native, silent or perhaps, where the requested archs are unknown."""

    code = "TM203"
    advice = "name the arch: `-arch=sm_NN` with nvcc, `--offload-arch=gfxNNN` with hipcc"
    arch: str
    how: str

    def sentence(self, _words: Words) -> str:
        if self.how == "perhaps":
            return f"the only arch is the default of this toolkit, `{self.arch}`: was it intended?"
        why = "`-arch=native` found no GPU" if self.how == "native" else "no arch was named"
        return f"{why}, so the code is compiled for the default, `{self.arch}`"


def _add_ptx(arch: str) -> str:
    # PTX of an `a` or `f` target is for one device or family alone (NVIDIA, feature sets of compilation targets).
    number = arch.rpartition("_")[2].rstrip("af")
    return f"add `-gencode arch=compute_{number},code=compute_{number}`"


class NoPtx(PlanFinding):
    """Cubins without PTX."""

    code = "TM204"
    text = "no PTX beside {archs}: no device of a later major version runs this code"
    archs: tuple[str, ...]

    def help(self) -> str:
        return _add_ptx(self.archs[-1])


class OldPtx(PlanFinding):
    """PTX that is older than the newest cubin."""

    code = "TM205"
    text = "the newest PTX is `{ptx}`, older than the cubin for `{cubin}`"
    ptx: str
    cubin: str

    def help(self) -> str:
        return _add_ptx(self.cubin)


class TiedPtx(NoPtx):
    """PTX that is made for one device or family alone."""

    code = "TM206"
    text = "the only PTX is {archs}, which no later device runs"


class ArchTwice(PlanFinding):
    """Archs that one fat binary holds more than once."""

    code = "TM207"
    text = "the same arch more than once: {archs}"
    advice = "name each arch once"
    archs: tuple[str, ...]


class ArchCovered(PlanFinding):
    """Archs, each with the oldest other one whose code its devices run."""

    code = "TM208"
    advice = (
        "leave the later ones out to save time and size, or keep them for code tuned to each device"
    )
    pairs: tuple[tuple[str, str], ...]

    def sentence(self, _words: Words) -> str:
        covered = ", ".join(f"`{arch}` (`{other}`)" for arch, other in self.pairs)
        return f"redundant code, as its devices also run other code in the object: {covered}"


class EveryPtx(PlanFinding):
    """PTX for every arch, where that of the `expected` one would do."""

    code = "TM209"
    text = "PTX for every arch ({archs}), although `{expected}` alone is enough"
    advice = "keep the PTX of `{expected}` alone"
    archs: tuple[str, ...]


class HostCompilerRefused(PlanFinding):
    """A host compiler beyond the limits of the toolkit.

    `how` is unchecked where the plan switches the check off, disputed where the sources disagree, else empty.
    """

    code = "TM210"
    compiler: str
    version: str
    how: str

    def sentence(self, _words: Words) -> str:
        named = f"{self.compiler} {self.version} as host compiler"
        if self.how == "disputed":
            return f"sources disagree whether {self.toolkit} supports {named}"
        tail = "; the check is switched off" if self.how else ""
        return f"{self.toolkit} does not support {named}, only {self.expected}{tail}"

    def help(self) -> str:
        # Where the check is off or the sources disagree, switching it off is no way out.
        other = ", or switch the check off with `--allow-unsupported-compiler`"
        return f"name another with `-ccbin` ({self.expected}){'' if self.how else other}"


class ProgramMissing(PlanFinding):
    """A program that is not found."""

    code = "TM211"
    text = "the program `{program}` was not found"
    advice = "install it, or put its directory on PATH"
    program: str


# By the end of its name; whatever else a driver is given it takes for a source.
_INPUTS = {
    "object": (".o", ".obj"),
    "library": (".a", ".lib", ".so"),
    "device code": (".ptx", ".cubin", ".fatbin", ".bc"),
}


class InputMissing(PlanFinding):
    """A file of the command line that is not there."""

    code = "TM212"
    advice = "check the name and the working directory"
    path: str

    def sentence(self, _words: Words) -> str:
        kinds = (kind for kind, ends in _INPUTS.items() if self.path.endswith(ends))
        return f"the {next(kinds, 'source')} `{self.path}` does not exist"


class VariableLeaks(PlanFinding):
    """A variable of the caller that nvcc takes for its own, and the words that it brings in.

    Without words it is one that nvcc documents.
    """

    code = "TM213"
    variable: str
    foreign: tuple[str, ...] = ()

    def sentence(self, _words: Words) -> str:
        if not self.foreign:
            return f"`{self.variable}` is set: nvcc adds {self.actual} to its command line"
        return f"the environment variable `{self.variable}` adds {quoted(self.foreign)} to the commands"

    def help(self) -> str:
        # One that nvcc documents is set on purpose.
        return f"unset `{self.variable}` before calling nvcc" if self.foreign else ""


class ShellExpands(PlanFinding):
    """A word that the shell changes before a program sees it."""

    code = "TM214"
    text = "the shell expands `{word}` before the program sees it"
    advice = "choose a name or value without `$` and backquotes; nvcc cannot quote it"
    word: str


class LineInfoLost(PlanFinding):
    """`-G` beside `-lineinfo`."""

    code = "TM215"
    text = "`-G` switches off `-lineinfo`"
    advice = "use one of the two"
    options: tuple[str, ...] = ("-G", "-lineinfo")


class NoDeviceLink(PlanFinding):
    """Relocatable device code that goes into a link without a device link."""

    code = "TM216"
    text = "relocatable device code is linked without a device link"
    advice = "link with nvcc and without `-nodlink`, or with `-fgpu-rdc --hip-link`"


class HalfLto(PlanFinding):
    """Link-time optimization in one half alone: `half` is compile or link."""

    code = "TM217"
    advice = "give `-dlto` to both halves"
    half: str

    def sentence(self, _words: Words) -> str:
        if self.half == "compile":
            return "device code is compiled for link-time optimization, but the device link does not use it"
        return "the device link asks for link-time optimization, but no code is compiled for it"


class IdleStages(PlanFinding):
    """Stages whose output is unused, by their tools; `actual` lists their ids."""

    code = "TM218"
    tools: tuple[str, ...]

    def sentence(self, _words: Words) -> str:
        count = len(self.actual.split())
        verb = "writes" if count == 1 else "write"
        return f"{plural(count, 'stage')} ({listing(self.tools)}) {verb} unused output"


class DeviceFinding(PlanFinding):
    """A device on which the code of a plan runs or does not.

    `image` is the code that it takes, `why` pairs each of the others with the word for why not. A finding without a
    plan is about all plans of a log: `holding` of them hold device code, and the device runs `running`.
    """

    answer = ""
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


class RunsNot(DeviceFinding):
    """A device that runs none of the code."""

    code = "TM220"
    text = "no code for it: {reasons}"
    advice = "compile code for it, or keep PTX of an arch that is not newer"
    answer = "no"


class RunsByPtx(DeviceFinding):
    """A device that runs PTX, by a driver that came with the toolkit or later."""

    code = "TM221"
    text = (
        "by PTX `{image}`, which the driver compiles at load time; "
        "requires a driver of {series} or later{came}{later}"
    )
    answer = "yes"

    @property
    def names(self) -> tuple[str, ...]:
        """The device, the PTX and the driver."""
        return super().names if self.plan is None else (self.device, self.image, self.driver)

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


class RunsByCode(DeviceFinding):
    """A device that runs code made for it."""

    code = "TM222"
    text = "by the code for `{image}`{features}{later}"
    answer = "yes"

    @property
    def features(self) -> str:
        """The condition of code that asks for features, on a device of which none were named."""
        # A target ID names features behind colons, as in `gfx90a:xnack+` (Clang, target IDs).
        asks = ":" in self.image and ":" not in self.device
        return ", where it has these features" if asks else ""


class CannotTell(DeviceFinding):
    """A device for which it is unknown whether it runs the code."""

    code = "TM223"
    text = "unknown: {reasons}"
    advice = "inspect the objects with `cuobjdump --list-elf --list-ptx` or `roc-obj-ls`"
    answer = "unknown"


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
        other = f"; captures of {self.differs} show other stages" if self.differs else ""
        nearest = f"captures of {self.captured}, the nearest release{other}"
        return f"{missing}: the plan is derived from {nearest}"

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
    advice = "leave archs out of the command line to use those of the answer"
    missing: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    def sentence(self, _words: Words) -> str:
        if self.missing:
            return f"no code for {quoted(self.missing)}, which the answer for {self.target} has"
        return f"code for {quoted(self.further)}, which the answer for {self.target} does not have"


class WordLeftOut(AnswerFinding):
    """A word of the answer that the driver is not given, and why."""

    code = "TM228"
    text = "{word} of the answer for {target} is left out: {why}"
    word: str
    why: str


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
