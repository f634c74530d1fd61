"""A machine checked against facts and, where there is one, a lock: is it ready, and for what.

Each check is a function of the table CHECKS; what a machine lacks is wrong where a lock asks for it, and a warning or a
skip where nobody does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial

from toolmatrix.factbase import lookups
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.finding import FAIL, PASS, SKIP, UNKNOWN, WARN, Verdict
from toolmatrix.inspection.model import Inventory, Seen
from toolmatrix.judging import stage_facts
from toolmatrix.judging.expectations import MACHINE, Expectation
from toolmatrix.lockfile.model import LockedComponent, LockedTarget
from toolmatrix.value import Value

_GIB = 1 << 30
# What builds of frameworks usually take, by our own experience: the base images alone have up to 10 GB.
_ENOUGH = {"disk": 20 * _GIB, "memory": 8 * _GIB}
# Days after which sources have usually moved.
_STALE = 180
_TOOLS = {"cuda": "nvcc", "rocm": "hipcc"}
_COMPILERS = ("gcc", "clang", "python", "bazel")


class MachineContext(Value):
    """A machine with what it is checked against."""

    inventory: Inventory
    index: Index
    today: date
    target: LockedTarget | None = None

    def component(self, name: str) -> Seen | None:
        """The first sighting of a component."""
        return next(iter(self.inventory.components.get(name, ())), None)

    def feature(self, name: str) -> tuple[Seen, ...]:
        """The sightings of a feature."""
        return tuple(self.inventory.features.get(name, ()))

    def locked(self, name: str) -> LockedComponent | None:
        """The release of a component in the lock, None without it or a lock."""
        return self.target.components.get(name) if self.target else None


def judge(context: MachineContext, only: tuple[str, ...] = ()) -> list[Verdict]:
    """The verdicts of all checks, or of those that are named."""
    return [
        verdict
        for name, (_, check) in CHECKS.items()
        if not only or name in only
        for verdict in check(context)
    ]


def _check(name: str, wanted: str = "", facts: tuple[str, ...] = ()) -> Expectation:
    return Expectation(kind=MACHINE, name=name, wanted=wanted, facts=facts)


def _engine(context: MachineContext) -> Iterator[Verdict]:
    sightings = context.feature("engine")
    if sightings:
        yield _check("engine").verdict(PASS, sightings[0], found=f"docker {sightings[0].version}")
    else:
        help = "install and start Docker; only building and running images needs it"
        yield _check("engine").verdict(FAIL, code="TM504", reason="no engine answers", help=help)


def _platforms(context: MachineContext) -> Iterator[Verdict]:
    platforms = context.feature("platforms")
    names = ", ".join(platform.version for platform in platforms)
    target = context.target
    check = _check("platforms", target.platform if target else "")
    if not platforms:
        yield _check("platforms").verdict(SKIP, reason="there is no engine to build with")
    elif target and target.platform not in [platform.version for platform in platforms]:
        help = "install qemu-user-static and binfmt-support, or build on a machine of that platform"
        yield check.verdict(FAIL, platforms[0], "TM504", found=names, help=help)
    else:
        yield check.verdict(PASS, platforms[0], found=names)


def _compilers(context: MachineContext) -> Iterator[Verdict]:
    for name in _COMPILERS:
        locked, installed = context.locked(name), context.component(name)
        reason = next((gap.reason for gap in context.inventory.skipped if gap.what == name), "")
        check = _check(name, f"=={locked.version}", locked.facts) if locked else _check(name)
        # Only a lock asks for Bazel; that one of the others is missing is worth a line anyway.
        if installed is None and (locked or name != "bazel"):
            outcome = SKIP if reason or not locked else FAIL
            help = f"install {name} {locked.version}, or build in an image" if locked else ""
            yield check.verdict(outcome, code="TM501", reason=reason or "not on PATH", help=help)
        elif installed is not None:
            outcome = _within(check.wanted, installed.version) if locked else PASS
            help = "build in the image that was made from the lock, or install that version"
            yield check.verdict(outcome, installed, "TM503", help=help)


def _toolkit(context: MachineContext) -> Iterator[Verdict]:
    # The toolkit of a lock is in its image; one of this machine is used by what is compiled here, so it only warns.
    for name, tool in _TOOLS.items():
        locked, installed = context.locked(name), context.component(name)
        if installed is None:
            reason = f"{tool} is not on PATH" if name == "cuda" else "no version found in /opt/rocm"
            check = _check(name, locked.version if locked else "")
            help = f"`toolmatrix stages` needs {tool}, or `--from-log`"
            yield check.verdict(WARN if locked else SKIP, code="TM501", reason=reason, help=help)
            continue
        check = _check(name, locked.version, locked.facts) if locked else _check(name)
        releases = stage_facts.releases(context.index, name, installed.version)
        other = locked is not None and locked.version not in releases
        help = "code compiled outside the image uses this one"
        yield check.verdict(WARN if other else PASS, installed, "TM503", help=help)
    yield from _runtime(context)


# What is compiled here runs with the library that the loader takes, which other variables lead to.
def _runtime(context: MachineContext) -> Iterator[Verdict]:
    toolkit, library = context.component("cuda"), context.component("cudart")
    if toolkit is None or library is None or toolkit.seen_by != "ran":
        return
    built = stage_facts.releases(context.index, "cuda", toolkit.version)
    same = any(f"{release}.".startswith(f"{library.version}.") for release in built)
    reason = (
        "" if same else f"the loader takes this library, and {toolkit.where} is {toolkit.version}"
    )
    help = "let PATH and LD_LIBRARY_PATH lead to one toolkit"
    yield _check("cudart").verdict(
        PASS if same else WARN, library, "TM503", reason=reason, help=help
    )


def _driver(context: MachineContext) -> Iterator[Verdict]:
    installed, toolkit = context.component("driver"), context.component("cuda")
    locked = context.locked("driver")
    check = _check("driver")
    if locked:
        check = _check("driver", f">={locked.version}", locked.facts)
    elif toolkit and not context.target:
        check = _check("driver", *_floor(context.index, toolkit.version))
    if installed is None:
        yield check.replace(facts=()).verdict(SKIP, reason="no NVIDIA driver is loaded")
        return
    outcome = _within(check.wanted or "*", installed.version)
    help = "install a newer driver, or ask for a toolkit that runs with this one: `--with driver==VERSION`"
    yield check.verdict(outcome, installed, "TM502", help=help)


def _floor(index: Index, toolkit: str) -> tuple[str, tuple[str, ...]]:
    # From CUDA 11 on one floor holds for a whole major.
    releases = stage_facts.releases(index, "cuda", toolkit)
    scale = index.scale("cuda")
    mine = stage_facts.mask_of(scale, releases)
    for row, cells in lookups.rows(index, "cuda-driver-floor"):
        # The row must hold for every release that the compiler may have come with.
        if mine and mine & ~lookups.mask_or_none(scale, cells["cuda"]) == 0:
            return cells["driver"], (row,)
    return "", ()


def _devices(context: MachineContext) -> Iterator[Verdict]:
    devices = context.feature("device")
    if not devices:
        cards = context.feature("product") or context.feature("gpu")
        check = _check("device", ", ".join(context.target.devices) if context.target else "")
        if cards:
            reason = f"{cards[0].version}, for an unknown device"
            yield check.verdict(UNKNOWN, reason=reason)
        else:
            yield check.verdict(SKIP, reason="no GPU here")
    for device in devices:
        yield _device(context, device)


def _device(context: MachineContext, device: Seen) -> Verdict:
    target = context.target
    if target is None or not (target.devices or target.archs):
        return _check("device").verdict(PASS, device)
    if target.devices:
        backed = target.devices.get(device.version)
        check = _check("device", ", ".join(target.devices), backed.facts if backed else ())
        outcome = PASS if backed else FAIL
    else:
        known = device.version in context.index.component("device").versions
        run = (stage_facts.runs(context.index, device.version, arch) for arch in target.archs)
        check = _check("device", ", ".join(target.archs), next(filter(None, run), ()))
        outcome = PASS if check.facts else FAIL if known else UNKNOWN
    help = f"run `toolmatrix resolve` again with `--device {device.version}`"
    return check.verdict(outcome, device, "TM507", help=help)


def _processor(context: MachineContext) -> Iterator[Verdict]:
    cpu = context.feature("cpu")
    if not cpu:
        yield _check("cpu").verdict(SKIP, reason="/proc/cpuinfo lists no features")
        return
    yield _check("cpu").verdict(PASS, cpu[0])
    crc32 = context.feature("crc32")
    target = context.target
    # A lock for another machine asks nothing of this processor.
    here = target and target.platform == context.inventory.platform
    required = here and target and any("+crc" in flag for flag in target.flags.cflags)
    if crc32:
        yield _check("crc32").verdict(PASS, crc32[0])
    else:
        outcome = FAIL if required else WARN
        help = "compile without +crc, or run on another processor"
        yield _check("crc32").verdict(
            outcome, code="TM505", reason="the processor does not list it", help=help
        )


def _glibc(context: MachineContext) -> Iterator[Verdict]:
    # What runs in an image has the glibc of the image: this one is reported, and cannot fail.
    glibc = context.component("glibc")
    if glibc:
        yield _check("glibc").verdict(PASS, glibc)
    else:
        yield _check("glibc").verdict(SKIP, reason="getconf does not report it")


def _resource(name: str, context: MachineContext) -> Iterator[Verdict]:
    sightings = context.feature(name)
    if not sightings:
        yield _check(name).verdict(SKIP, reason="the system does not report it")
        return
    amount = int(sightings[0].version)
    short = amount < _ENOUGH[name]
    check = _check(name, f">={_amount(_ENOUGH[name])}" if short else "")
    outcome, help = WARN if short else PASS, "free some, or build with fewer jobs at a time"
    yield check.verdict(outcome, sightings[0], "TM506", found=_amount(amount), help=help)


def _amount(count: int) -> str:
    return f"{count / _GIB:.1f} GiB"


def _matrix(context: MachineContext) -> Iterator[Verdict]:
    matrix_date = context.index.header["date"]
    # The code of a finding about the matrix: the remedy is the same.
    days = (context.today - date.fromisoformat(matrix_date)).days
    yield _check("matrix").verdict(
        WARN if days > _STALE else PASS,
        code="TM302",
        found=matrix_date,
        reason=f"{days} days old",
        help="install a newer toolmatrix, or add newer facts with `--matrix FILE`",
    )


CHECKS: dict[str, tuple[str, Callable[[MachineContext], Iterator[Verdict]]]] = {
    "engine": ("a container engine answers", _engine),
    "platforms": ("platforms that images can be built for", _platforms),
    "compilers": ("compilers and Python, against those of the lock", _compilers),
    "toolkit": ("CUDA and ROCm on this machine", _toolkit),
    "driver": ("the NVIDIA driver, against what the toolkit needs", _driver),
    "device": ("GPUs, against the devices and archs of the lock", _devices),
    "cpu": ("the processor and its CRC32 instructions", _processor),
    "glibc": ("the C library", _glibc),
    "disk": ("free disk", partial(_resource, "disk")),
    "memory": ("memory", partial(_resource, "memory")),
    "matrix": ("the age of the matrix", _matrix),
}
"""All checks by name, with what each looks at."""


def _within(selector: str, version: str) -> str:
    # A program may print fewer numbers than are wanted, or none: then the answer is unknown.
    try:
        # Bit 1 is that of the first version of a scale; bit 0 means "absent".
        if Scale("pep440", [version]).select(selector) & 2:
            return PASS
        return UNKNOWN if Scale("series", [version]).select(selector) & 2 else FAIL
    except SelectorError:
        return UNKNOWN
