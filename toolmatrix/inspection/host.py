"""The machine that this runs on: engine, compilers, driver and GPUs, disk and memory, and the readings of it.

Everything is read through a `Machine`, so that a captured one can replace the real. Programs are run for their version
alone, without a shell, for a bounded time, and none that would download something to answer. Readings are those of
matrix/machine.yaml, each value with where it was read; what no origin has is a skip with the reason of each.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolmatrix.documents import Annotated, Text
from toolmatrix.images.layers import Layer, LayerReader
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.model import Inventory, Seen, Skipped
from toolmatrix.processors import MACHINES, processor
from toolmatrix.resources import load_yaml, of_matrix
from toolmatrix.value import Value

# Bytes to read of a file, and the time limit of a program in seconds.
_LARGEST = 1 << 20
_PATIENCE = 20

# Directories of programs that any user may run and that are on the PATH of root alone, such as ldconfig.
_ROOTS_OWN = "/usr/local/sbin:/usr/sbin:/sbin"

# Components, the program to run for each, and the pattern of the version in its output.
_PROGRAMS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "gcc": (("gcc", "-dumpfullversion", "-dumpversion"), r"(\d[\d.]*)"),
    "clang": (("clang", "--version"), r"version (\d[\d.]*)"),
    "cuda": (("nvcc", "--version"), r"V(\d[\d.]*)"),
    "python": (("python3", "--version"), r"Python (\d[\w.]*)"),
    "glibc": (("getconf", "GNU_LIBC_VERSION"), r"glibc (\d[\d.]*)"),
}
_FILES: Mapping[str, tuple[str, str]] = {
    "rocm": ("/opt/rocm/.info/version", r"(\d[\d.]*)"),
    "driver": ("/proc/driver/nvidia/version", r"NVRM version:.*?\s(\d+\.[\d.]+)\s"),
}
_BINFMT = "/proc/sys/fs/binfmt_misc"
_SMI = ("nvidia-smi", "--format=csv,noheader")
_PCI = "/sys/bus/pci/devices"
_KFD = "/sys/class/kfd/kfd/topology/nodes"
# The class of display controllers (PCI code and ID assignment specification).
_DISPLAY = "0x03"
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD"}


class Machine:
    """Reads of one machine: its files, programs, directories and variables."""

    def text(self, path: str, largest: int = _LARGEST) -> str:
        """The first bytes of a file as text, nothing where it cannot be read."""
        try:
            with open(path, "rb") as file:
                return file.read(largest).decode("utf-8", "replace")
        except OSError:
            return ""

    def variable(self, name: str) -> str:
        """A variable of the environment, or nothing."""
        return os.environ.get(name, "")

    def layer(self, paths: Sequence[str]) -> Layer:
        """The files at and below some absolute paths, and where their links lead, as observers of images keep them."""
        from toolmatrix.images import local
        from toolmatrix.inspection.observe import Glance

        reals = (real for path in paths for real in (path, os.path.realpath(path)))
        names = [real.strip("/") for real in dict.fromkeys(reals)]
        return local.read_below("/", names, LayerReader(Glance, Budget("host")))

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; nothing where it cannot be read."""
        try:
            return sorted(os.listdir(path))
        except OSError:
            return []

    def paths(self, pattern: str) -> Iterator[tuple[str, str]]:
        """The paths that a pattern with at most one `*` may name, each behind the text that it matches."""
        before, star, after = pattern.partition("*")
        if not star:
            yield "", pattern
            return
        folder, _, start = before.rpartition("/")
        end, slash, rest = after.partition("/")
        for name in self.names(folder):
            if name.startswith(start) and name[len(start) :].endswith(end):
                stem = name[len(start) : len(name) - len(end)]
                yield stem, f"{folder}/{name}{slash}{rest}"

    def where(self, program: str) -> str:
        """The path of a program, or nothing."""
        import shutil

        folders = os.environ.get("PATH", os.defpath)
        return shutil.which(program, path=f"{folders}:{_ROOTS_OWN}") or ""

    def run(self, *argv: str) -> str | None:
        """The output of a program on stdout; None where it is missing, fails or takes too long."""
        import subprocess

        program = self.where(argv[0])
        if not program:
            return None
        # Programs translate what they print, and numbers as well.
        env = {**os.environ, "LC_ALL": "C"}
        try:
            completed = subprocess.run(  # noqa: S603 - the programs are those of this module
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                env=env,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return completed.stdout.decode("utf-8", "replace") if completed.returncode == 0 else None

    def free(self, path: str) -> int:
        """Bytes free for users where a path lies, -1 where that is not known."""
        try:
            status = os.statvfs(path)
        except (OSError, AttributeError):
            return -1
        return status.f_bavail * status.f_frsize


HERE = Machine()
"""The machine that this runs on; tests replace it by a captured one."""


def observe(machine: Machine, directory: str = "/") -> Inventory:
    """The inventory of a machine; the disk is that of `directory`."""
    kernel = (machine.run("uname", "-m") or "").strip()
    arch = MACHINES.get(kernel, kernel)
    features: dict[str, tuple[Seen, ...]] = {}
    for name, sighting in (
        *_engine(machine, arch),
        *_processor(machine, kernel),
        *_nvidia(machine),
        *_amd(machine),
        *_cards(machine),
        *_resources(machine, directory),
    ):
        features[name] = (*features.get(name, ()), sighting)
    components = {name: (sighting,) for name, sighting in _components(machine)}
    bazel = Skipped(what="bazel", reason="bazelisk would download the Bazel it is asked for")
    return Inventory(
        subject="host",
        platform=f"linux/{arch}" if arch else "",
        components=components,
        features=features,
        skipped=(bazel,) if machine.where("bazel") else (),
    )


def _components(machine: Machine) -> Iterator[tuple[str, Seen]]:
    for name, (argv, form) in _PROGRAMS.items():
        match = re.search(form, machine.run(*argv) or "")
        if match:
            where = machine.where(argv[0])
            yield name, Seen(version=match[1], seen_by="ran", where=where, default=True)
    for name, (path, form) in _FILES.items():
        match = re.search(form, machine.text(path))
        if match:
            yield name, Seen(version=match[1], seen_by="file", where=path, default=True)


def _engine(machine: Machine, arch: str) -> Iterator[tuple[str, Seen]]:
    try:
        info = json.loads(machine.run("docker", "info", "--format", "{{json .}}") or "{}")
    except ValueError:
        return
    version = info.get("ServerVersion") if isinstance(info, dict) else None
    if not isinstance(version, str) or not version:
        return
    yield "engine", Seen(version=version, seen_by="docker info", where=machine.where("docker"))
    yield "platforms", Seen(version=f"linux/{arch}", seen_by="uname", where="native")
    for kernel, name in MACHINES.items():
        # The kernel hands programs for other processors to an emulator, in containers as well.
        path = f"{_BINFMT}/qemu-{kernel}"
        if name != arch and machine.text(path).startswith("enabled"):
            yield "platforms", Seen(version=f"linux/{name}", seen_by="binfmt_misc", where=path)


def _processor(machine: Machine, kernel: str) -> Iterator[tuple[str, Seen]]:
    path = "/proc/cpuinfo"
    # Cores of one machine may differ, as in big.LITTLE; the first counts for all.
    first, *_ = machine.text(path).partition("\n\n")
    pairs = (line.partition(":")[::2] for line in first.splitlines())
    fields = {name.strip(): value.strip() for name, value in pairs}
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    for flag in flags:
        yield f"cpu:{flag}", Seen(version="yes", seen_by="cpuinfo", where=path)
    if processor(MACHINES.get(kernel, kernel)).crc in flags:
        yield "crc32", Seen(version="yes", seen_by="cpuinfo", where=path)
    name = _microarchitecture(kernel, fields, frozenset(flags)) if flags else ""
    if name:
        yield "cpu", Seen(version=name, seen_by="archspec", where=path)


def _microarchitecture(kernel: str, fields: Mapping[str, str], flags: frozenset[str]) -> str:
    from archspec.cpu import TARGETS
    from archspec.cpu.schema import TARGETS_JSON

    aliases = TARGETS_JSON["feature_aliases"].items()
    # Kernels do not list implied features, such as sse3 with ssse3.
    flags |= {name for name, rule in aliases if flags & {*rule.get("any_of", ())}}
    vendors = TARGETS_JSON["conversions"]["arm_vendors"]
    implementer = fields.get("CPU implementer", "")
    vendor = fields.get("vendor_id") or vendors.get(implementer.lower(), implementer)
    fitting = [
        target
        for target in TARGETS.values()
        if target.family.name == kernel
        and target.vendor in ("generic", vendor)
        and target.features <= flags
        and _is_proved(target)
    ]
    # The most specific of the fitting ones.
    best = max(
        fitting, key=lambda cpu: (len(cpu.ancestors), len(cpu.features), cpu.name), default=None
    )
    return str(best.name) if best else ""


def _is_proved(target: Any) -> bool:
    # Of armv8a and armv9.2a archspec lists no features that their parents do not have: any processor would be one.
    inherited = {feature for parent in target.parents for feature in parent.features}
    return not target.parents or bool(target.features - inherited)


def _cards(machine: Machine) -> Iterator[tuple[str, Seen]]:
    # Cards are on the bus without a driver as well.
    for slot in machine.names(_PCI):
        folder = f"{_PCI}/{slot}"
        vendor = _VENDORS.get(machine.text(f"{folder}/vendor").strip(), "")
        if vendor and machine.text(f"{folder}/class").startswith(_DISPLAY):
            yield "gpu", Seen(version=vendor, seen_by="sysfs", where=folder)


def _nvidia(machine: Machine) -> Iterator[tuple[str, Seen]]:
    capabilities = machine.run(*_SMI, "--query-gpu=compute_cap")
    for index, line in enumerate((capabilities or "").splitlines()):
        if re.fullmatch(r"\d+\.\d+", line.strip()):
            yield "device", Seen(version=line.strip(), seen_by="nvidia-smi", where=f"GPU {index}")
    # nvidia-smi of an older driver fails for a field that it does not know.
    if capabilities is None:
        names = machine.run(*_SMI, "--query-gpu=name") or ""
        for index, line in enumerate(names.splitlines()):
            yield "product", Seen(version=line.strip(), seen_by="nvidia-smi", where=f"GPU {index}")


def _amd(machine: Machine) -> Iterator[tuple[str, Seen]]:
    printed = machine.run("rocminfo")
    if printed is not None:
        for index, name in enumerate(re.findall(r"^ *Name: +(gfx\w+) *$", printed, re.MULTILINE)):
            yield "device", Seen(version=name, seen_by="rocminfo", where=f"agent {index}")
        return
    for node in machine.names(_KFD):
        path = f"{_KFD}/{node}/properties"
        match = re.search(r"^gfx_target_version (\d+)$", machine.text(path), re.MULTILINE)
        # Processors are nodes as well, of version 0. The number is MMmmss, of which gfx writes minor and step in hex.
        if match and int(match[1]):
            major, rest = divmod(int(match[1]), 10_000)
            minor, step = divmod(rest, 100)
            yield "device", Seen(version=f"gfx{major}{minor:x}{step:x}", seen_by="kfd", where=path)


def _resources(machine: Machine, directory: str) -> Iterator[tuple[str, Seen]]:
    match = re.search(r"^MemTotal: +(\d+) kB", machine.text("/proc/meminfo"), re.MULTILINE)
    if match:
        amount = str(int(match[1]) << 10)
        yield "memory", Seen(version=amount, seen_by="kernel", where="/proc/meminfo")
    free = machine.free(directory)
    if free >= 0:
        yield "disk", Seen(version=str(free), seen_by="statvfs", where=directory)


# The whole text of an origin that has no form of its own, over all its lines.
_WHOLE = re.compile(r"(?s)\A\s*(\S.*?)\s*\Z")
# Values of one reading, such as processors and libraries.
_MOST = 4096


class ValueOrigin(Value):
    """The origin of a value: a program with its arguments or a file, and its form there; see the data file."""

    one_of = ("run", "file")

    find: re.Pattern[str] = _WHOLE
    run: tuple[str, ...] = ()
    file: str = ""
    times: int = 1
    words: Mapping[str, str] = {}
    absent: str = ""

    def __str__(self) -> str:
        return " ".join(self.run) or self.file

    def value(self, text: str) -> str:
        """A value in the words and units of the data file."""
        text = self.words.get(text, text)
        return str(int(text) * self.times) if self.times > 1 and text.isdecimal() else text


class Reading(Value):
    """A feature or a component, why it matters, and its origins, of which the first with a value counts."""

    one_of = ("feature", "component")

    feature: str = ""
    component: str = ""
    why: str
    source: str
    origins: tuple[ValueOrigin, ...]

    @property
    def name(self) -> str:
        return self.feature or self.component


class VariableGroup(Value):
    """Variables of the environment, and why a difference in them matters."""

    names: tuple[str, ...]
    why: str
    source: str


class ReadingCatalog(Value):
    """Everything that is read of a running machine: readings, and variables of the environment."""

    schema: Annotated[str, "toolmatrix.machine/1"]
    readings: tuple[Reading, ...]
    environment: Annotated[Mapping[str, str], tuple[VariableGroup, ...]]
    sources: Annotated[Mapping[str, str], Mapping[str, Annotated[dict[str, Text], "title", "at"]]]

    def why(self, name: str) -> tuple[str, str]:
        """The reason why a feature matters and the source that says so, as far as it comes from a reading."""
        for reading in self.readings:
            form = re.escape(reading.name).replace(r"\{name\}", ".+")
            if reading.feature and re.fullmatch(form, name):
                return reading.why, self.sources[reading.source]
        return self.environment.get(name.removeprefix("env:"), ""), ""


@lru_cache(maxsize=1)
def load_readings() -> ReadingCatalog:
    """The readings that come with the program."""
    document = load_yaml(of_matrix("matrix", "machine.yaml"))
    return ReadingCatalog(
        schema=document["schema"],
        readings=tuple(map(_reading, document["readings"])),
        environment={
            name: group["why"] for group in document["environment"] for name in group["names"]
        },
        sources={
            key: f"{page['title']}, {page['at']}" for key, page in document["sources"].items()
        },
    )


def _reading(fields: Mapping[str, Any]) -> Reading:
    return Reading(**{**fields, "origins": tuple(map(_origin, fields["origins"]))})


def _origin(fields: Mapping[str, Any]) -> ValueOrigin:
    form = {"find": re.compile(fields["find"], re.MULTILINE)} if "find" in fields else {}
    return ValueOrigin(**{**fields, "run": tuple(fields.get("run", ())), **form})


def observe_readings(machine: Machine) -> Iterator[tuple[Reading, str, Seen]]:
    """The results of the readings: the reading, the name of the feature or component, and the sighting."""
    for reading in load_readings().readings:
        for name, sighting in _read_origins(machine, reading):
            yield reading, name, sighting


def unseen_readings(machine: Machine, observed: frozenset[str]) -> Iterator[Skipped]:
    """The readings that are not among those with a result, each with the reason."""
    for reading in load_readings().readings:
        if reading.name not in observed:
            reasons = dict.fromkeys(_lack(machine, origin) for origin in reading.origins)
            what = reading.name.removesuffix(":{name}")
            yield Skipped(what=what, reason=", ".join(reasons))


def _lack(machine: Machine, origin: ValueOrigin) -> str:
    if origin.run:
        path = machine.where(origin.run[0])
        return f"`{origin}` does not show it" if path else f"no {origin.run[0]}"
    return f"{origin} does not show it" if any(_texts(machine, origin)) else f"no {origin}"


def _read_origins(machine: Machine, reading: Reading) -> list[tuple[str, Seen]]:
    for origin in reading.origins:
        sightings: dict[tuple[str, str], Seen] = {}
        for star, where, text in _texts(machine, origin):
            for name, value in _values(origin, star, text):
                sighting = Seen(
                    version=origin.value(value),
                    seen_by="ran" if origin.run else "file",
                    where=where,
                    default=bool(reading.component),
                )
                key = (reading.name.replace("{name}", name), sighting.version)
                sightings.setdefault(key, sighting)
        if sightings:
            return [(name, sighting) for (name, _), sighting in sightings.items()][:_MOST]
    return []


def _values(origin: ValueOrigin, star: str, text: str) -> Iterator[tuple[str, str]]:
    matches = list(origin.find.finditer(text))
    for match in matches:
        groups = match.groupdict()
        value = groups["value"] if "value" in groups else match[1]
        # A flag has no value: its presence is all.
        yield groups.get("name") or star, "yes" if value is None else value.strip()
    if not matches and origin.absent:
        yield star, origin.absent


def _texts(machine: Machine, origin: ValueOrigin) -> Iterator[tuple[str, str, str]]:
    if origin.run:
        text = machine.run(*origin.run)
        if text is not None:
            yield "", str(origin), text
        return
    for star, path in machine.paths(origin.file):
        text = machine.text(path)
        if text:
            yield star, path, text
