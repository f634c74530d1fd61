"""A machine held against facts and, where there is one, a lock: is it ready, and for what.

Each check is a function of the table CHECKS; what a machine lacks is wrong where a lock asks for it, and a warning or a
skip where nobody does.
"""

from __future__ import annotations

from toolmatrix.facts.versions import Scale, SelectorError
from toolmatrix.finding import FAIL, PASS, SKIP, UNKNOWN, WARN, Verdict
from toolmatrix.judge import stage_facts
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

    from toolmatrix.facts.index import Index
    from toolmatrix.inventory.model import Inventory, Seen
    from toolmatrix.lock.model import LockedTarget

_GIB = 1 << 30
# What builds of frameworks usually take, by our own experience: the base images alone have up to 10 GB.
_ENOUGH = {"disk": 20 * _GIB, "memory": 8 * _GIB}
# Days after which sources have usually moved.
_STALE = 180
_NONE: tuple[str, ...] = ()
_TOOLS = {"cuda": "nvcc", "rocm": "hipcc"}
_COMPILERS = ("gcc", "clang", "python", "bazel")


class Setting(Value):
    """A machine with what it is held against."""

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


def judge(setting: Setting, only: tuple[str, ...] = ()) -> list[Verdict]:
    """The verdicts of all checks, or of those that are named."""
    return [
        verdict
        for name, (_, check) in CHECKS.items()
        if not only or name in only
        for verdict in check(setting)
    ]


def _engine(setting: Setting) -> Iterator[Verdict]:
    seen = setting.feature("engine")
    if seen:
        yield _seen(PASS, "engine", seen[0], found=f"docker {seen[0].version}")
    else:
        help = "install and start Docker; nothing but building and running images needs it"
        yield _told(FAIL, "engine", "TM504", reason="no engine answers", help=help)


def _platforms(setting: Setting) -> Iterator[Verdict]:
    held = setting.feature("platforms")
    names = ", ".join(one.version for one in held)
    target = setting.target
    if not held:
        yield _told(SKIP, "platforms", "TM590", reason="there is no engine to build with")
    elif target and target.platform not in [one.version for one in held]:
        help = "install qemu-user-static and binfmt-support, or build on such a machine"
        yield _seen(
            FAIL, "platforms", held[0], found=names, wanted=target.platform, code="TM504", help=help
        )
    else:
        wanted = target.platform if target else ""
        yield _seen(PASS, "platforms", held[0], found=names, wanted=wanted)


def _compilers(setting: Setting) -> Iterator[Verdict]:
    for name in _COMPILERS:
        locked = setting.target.components.get(name) if setting.target else None
        seen = setting.component(name)
        reason = next((one.reason for one in setting.inventory.skipped if one.what == name), "")
        if seen is None and (locked or name != "bazel"):
            word = SKIP if reason or not locked else FAIL
            yield _told(
                word,
                name,
                "TM501" if word == FAIL else "TM590",
                wanted=locked.version if locked else "",
                reason=reason or "not on PATH",
                help=f"install {name} {locked.version}, or build in an image" if locked else "",
                facts=locked.facts if locked else (),
            )
        elif seen is not None and locked:
            word = _within(f"=={locked.version}", seen.version)
            yield _seen(
                word,
                name,
                seen,
                wanted=locked.version,
                code={FAIL: "TM503", UNKNOWN: "TM580"}.get(word, ""),
                help="build in the image that was made from the lock, or install that version",
                facts=locked.facts,
            )
        elif seen is not None:
            yield _seen(PASS, name, seen)


def _toolkit(setting: Setting) -> Iterator[Verdict]:
    """The toolkit of a lock is in its image; one of this machine is used by what is compiled here."""
    for name, tool in _TOOLS.items():
        seen = setting.component(name)
        locked = setting.target.components.get(name) if setting.target else None
        if seen is None:
            reason = f"{tool} is not on PATH" if name == "cuda" else "/opt/rocm tells no version"
            yield _told(
                WARN if locked else SKIP,
                name,
                "TM501" if locked else "TM590",
                wanted=locked.version if locked else "",
                reason=reason,
                help=f"`toolmatrix stages` needs {tool}, or `--from-log`",
            )
            continue
        releases = stage_facts.releases(setting.index, name, seen.version)
        other = locked is not None and locked.version not in releases
        yield _seen(
            WARN if other else PASS,
            name,
            seen,
            wanted=locked.version if locked else "",
            code="TM503" if other else "",
            help="what is compiled outside of the image gets this one",
            facts=locked.facts if locked else (),
        )


def _driver(setting: Setting) -> Iterator[Verdict]:
    """The driver against the floor of the lock's toolkit, or of the one that is installed."""
    seen, toolkit = setting.component("driver"), setting.component("cuda")
    locked = setting.target.components.get("driver") if setting.target else None
    wanted, facts = "", _NONE
    if locked:
        wanted, facts = f">={locked.version}", locked.facts
    elif toolkit and not setting.target:
        wanted, facts = _floor(setting.index, toolkit.version)
    if seen is None:
        reason = "no NVIDIA driver is loaded"
        yield _told(SKIP, "driver", "TM590", wanted=wanted, reason=reason)
        return
    word = _within(wanted or "*", seen.version)
    help = "install a newer driver, or ask for a toolkit that runs with this one: `--with driver==VERSION`"
    code = {FAIL: "TM502", UNKNOWN: "TM580"}.get(word, "")
    yield _seen(word, "driver", seen, wanted=wanted, code=code, help=help, facts=facts)


def _floor(index: Index, toolkit: str) -> tuple[str, tuple[str, ...]]:
    """The drivers that a toolkit runs with, as a selector, and the fact: from 11 on one floor for a whole major."""
    releases = stage_facts.releases(index, "cuda", toolkit)
    scale = stage_facts.scale_of(index, "cuda")
    mine = stage_facts.mask_of(scale, releases)
    for row, cells in stage_facts.rows(index, "cuda-driver-floor"):
        if mine and mine & ~stage_facts.selected(scale, cells["cuda"]) == 0:
            return cells["driver"], (row,)
    return "", ()


def _devices(setting: Setting) -> Iterator[Verdict]:
    """Each GPU against the devices that a lock names, or the archs that it makes code for."""
    found = setting.feature("device")
    if not found:
        cards = setting.feature("product") or setting.feature("gpu")
        wanted = ", ".join(setting.target.devices) if setting.target else ""
        if cards:
            reason = f"{cards[0].version}, of which nothing tells the device"
            yield _told(UNKNOWN, "device", "TM580", wanted=wanted, reason=reason)
        else:
            yield _told(SKIP, "device", "TM590", wanted=wanted, reason="no GPU here")
    for seen in found:
        yield _device(setting, seen)


def _device(setting: Setting, seen: Seen) -> Verdict:
    target = setting.target
    if target is None or not (target.devices or target.archs):
        return _seen(PASS, "device", seen)
    if target.devices:
        wanted = ", ".join(target.devices)
        backed = target.devices.get(seen.version)
        word, facts = (PASS, backed.facts) if backed else (FAIL, _NONE)
    else:
        wanted = ", ".join(target.archs)
        known = seen.version in setting.index.component("device").versions
        facts = next(
            (
                runs
                for arch in target.archs
                if (runs := stage_facts.runs(setting.index, seen.version, arch))
            ),
            _NONE,
        )
        word = PASS if facts else FAIL if known else UNKNOWN
    code = {FAIL: "TM507", UNKNOWN: "TM580"}.get(word, "")
    help = f"`toolmatrix resolve` again with `--device {seen.version}`"
    return _seen(word, "device", seen, wanted=wanted, code=code, help=help, facts=facts)


def _processor(setting: Setting) -> Iterator[Verdict]:
    cpu = setting.feature("cpu")
    if not cpu:
        yield _told(SKIP, "cpu", "TM590", reason="/proc/cpuinfo tells no features")
        return
    yield _seen(PASS, "cpu", cpu[0])
    seen = setting.feature("crc32")
    target = setting.target
    here = target and target.platform == setting.inventory.platform
    asked = here and target and any("+crc" in flag for flag in target.flags.cflags)
    if seen:
        yield _seen(PASS, "crc32", seen[0])
    else:
        word = FAIL if asked else WARN
        help = "compile without +crc, or run on another processor"
        yield _told(word, "crc32", "TM505", reason="the processor lists none", help=help)


def _glibc(setting: Setting) -> Iterator[Verdict]:
    """What is installed; binaries of images bring their own."""
    seen = setting.component("glibc")
    if seen:
        yield _seen(PASS, "glibc", seen)
    else:
        yield _told(SKIP, "glibc", "TM590", reason="no getconf tells it")


def _resource(name: str) -> Callable[[Setting], Iterator[Verdict]]:
    def check(setting: Setting) -> Iterator[Verdict]:
        seen = setting.feature(name)
        if not seen:
            yield _told(SKIP, name, "TM590", reason="it cannot be asked")
            return
        short = int(seen[0].version) < _ENOUGH[name]
        yield _seen(
            WARN if short else PASS,
            name,
            seen[0],
            found=_amount(int(seen[0].version)),
            wanted=f">={_amount(_ENOUGH[name])}" if short else "",
            code="TM506" if short else "",
            help="free some, or build with fewer jobs at a time",
        )

    return check


def _amount(count: int) -> str:
    return f"{count / _GIB:.1f} GiB"


def _matrix(setting: Setting) -> Iterator[Verdict]:
    from datetime import date

    made = setting.index.header["date"]
    days = (setting.today - date.fromisoformat(made)).days
    stale = days > _STALE
    yield Verdict(
        word=WARN if stale else PASS,
        kind="machine",
        name="matrix",
        found=made,
        reason=f"{days} days old",
        code="TM302" if stale else "",
        help="install a newer toolmatrix, or add newer facts with `--matrix FILE`" if stale else "",
    )


CHECKS: dict[str, tuple[str, Callable[[Setting], Iterator[Verdict]]]] = {
    "engine": ("a container engine answers", _engine),
    "platforms": ("platforms that images can be built for", _platforms),
    "compilers": ("compilers and Python, against those of the lock", _compilers),
    "toolkit": ("CUDA and ROCm on this machine", _toolkit),
    "driver": ("the NVIDIA driver, against what the toolkit needs", _driver),
    "device": ("GPUs, against the devices and archs of the lock", _devices),
    "cpu": ("the processor and its CRC32 instructions", _processor),
    "glibc": ("the C library", _glibc),
    "disk": ("free disk", _resource("disk")),
    "memory": ("memory", _resource("memory")),
    "matrix": ("the age of the matrix", _matrix),
}
"""What can be checked, by name, with what each looks at."""


def _within(selector: str, version: str) -> str:
    """Whether a version is within a selector; unknown where it is none, or too coarse to tell."""
    try:
        if Scale("pep440", [version]).select(selector) & 2:
            return PASS
        return UNKNOWN if Scale("series", [version]).select(selector) & 2 else FAIL
    except SelectorError:
        return UNKNOWN


def _told(
    word: str,
    name: str,
    code: str,
    *,
    reason: str,
    wanted: str = "",
    help: str = "",
    facts: tuple[str, ...] = (),
) -> Verdict:
    """A verdict about what nothing shows."""
    return Verdict(
        word=word,
        kind="machine",
        name=name,
        wanted=wanted,
        code=code,
        reason=reason,
        help=help,
        facts=facts,
    )


def _seen(
    word: str,
    name: str,
    seen: Seen,
    *,
    found: str = "",
    wanted: str = "",
    code: str = "",
    help: str = "",
    facts: tuple[str, ...] = (),
) -> Verdict:
    """A verdict by a sighting."""
    return Verdict(
        word=word,
        kind="machine",
        name=name,
        wanted=wanted,
        found=found or seen.version,
        seen_by=seen.seen_by,
        where=seen.where,
        code=code,
        help="" if word == PASS else help,
        facts=facts,
    )
