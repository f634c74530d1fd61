"""Captured machines observed and judged: each check reached both ways, by facts alone and by a lock."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from tests.inspection.machines import GIB, Captured
from tests.judging.test_images import ARM
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, SKIP, UNKNOWN, WARN, Verdict
from toolmatrix.inspection import host
from toolmatrix.inspection.model import Seen
from toolmatrix.judging import machine
from toolmatrix.lockfile.model import Backed, LockedComponent, LockedFlags

if TYPE_CHECKING:
    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import LockedTarget

TODAY = date(2026, 12, 1)
X86_FLAGS = (
    "fpu mmx sse sse2 ssse3 sse4_1 sse4_2 popcnt cx16 lahf_lm avx avx2 bmi1 bmi2 f16c fma abm movbe "
    "xsave aes fsgsbase"
)
"""Flags of a Haswell and others, as the kernel lists them."""
FILES = {
    "/proc/cpuinfo": f"processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: {X86_FLAGS}\n\nprocessor\t: 1\n",
    "/proc/meminfo": "MemTotal:       65536000 kB\nMemFree: 1 kB\n",
    "/proc/sys/fs/binfmt_misc/qemu-aarch64": "enabled\ninterpreter /usr/bin/qemu\n",
    "/proc/driver/nvidia/version": (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021\n"
        "GCC version:  gcc version 9.3.0\n"
    ),
    "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n",
    "/sys/bus/pci/devices/0000:02:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:02:00.0/class": "0x040300\n",
}
OUTPUTS = {
    "uname -m": "x86_64\n",
    "docker info --format {{json .}}": json.dumps({"ServerVersion": "27.1.1", "OSType": "linux"}),
    "gcc -dumpfullversion -dumpversion": "9.4.0\n",
    "clang --version": "Ubuntu clang version 14.0.0-1ubuntu1\nTarget: x86_64-pc-linux-gnu\n",
    "nvcc --version": "Cuda compilation tools, release 11.2, V11.2.152\nBuild cuda_11.2.r11.2\n",
    "python3 --version": "Python 3.9.18\n",
    "getconf GNU_LIBC_VERSION": "glibc 2.31\n",
    "nvidia-smi --format=csv,noheader --query-gpu=compute_cap": "8.6\n",
}
X86 = ARM.replace(
    platform="linux/amd64",
    flags=LockedFlags(),
    components={name: part for name, part in ARM.components.items() if name != "bazel"},
)


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index([], {"XDG_CACHE_HOME": cache})


def judged(
    index: Index, captured: host.Machine, target: LockedTarget | None = None, today: date = TODAY
) -> dict[str, Verdict]:
    setting = machine.MachineContext(
        inventory=host.observe(captured), index=index, today=today, target=target
    )
    return {verdict.name: verdict for verdict in machine.judge(setting)}


def changed(name: str, text: str | None) -> Captured:
    """The machine with one file or output replaced or gone."""
    files, outputs = dict(FILES), dict(OUTPUTS)
    held = files if name.startswith("/") else outputs
    held.pop(name, None)
    if text is not None:
        held[name] = text
    return Captured(files, outputs)


def test_a_ready_machine_passes_every_check(index: Index) -> None:
    found = judged(index, Captured(FILES, OUTPUTS), X86)
    assert {name for name, one in found.items() if one.word != PASS} == {"rocm"}
    assert found["rocm"].word == SKIP
    assert found["platforms"].found == "linux/amd64, linux/arm64"
    assert found["driver"].wanted == ">=450.80.02"
    assert found["cpu"].found
    assert found["memory"].found == "62.5 GiB"


@pytest.mark.parametrize(
    ("name", "text", "check", "word", "code"),
    [
        ("docker info --format {{json .}}", None, "engine", FAIL, "TM504"),
        ("docker info --format {{json .}}", '{"ServerErrors": ["no"]}', "engine", FAIL, "TM504"),
        ("docker info --format {{json .}}", "garbage", "engine", FAIL, "TM504"),
        ("docker info --format {{json .}}", "[]", "platforms", SKIP, "TM590"),
        ("gcc -dumpfullversion -dumpversion", "12.2.0\n", "gcc", FAIL, "TM503"),
        ("gcc -dumpfullversion -dumpversion", None, "gcc", FAIL, "TM501"),
        ("python3 --version", "Python 3\n", "python", UNKNOWN, "TM580"),
        ("python3 --version", "Python 3.11.2\n", "python", FAIL, "TM503"),
        ("clang --version", None, "clang", SKIP, "TM590"),
        ("nvcc --version", None, "cuda", WARN, "TM501"),
        ("nvcc --version", "V12.4.131", "cuda", WARN, "TM503"),
        (
            "/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  440.33.01  Release Build\n",
            "driver",
            FAIL,
            "TM502",
        ),
        ("/proc/driver/nvidia/version", None, "driver", SKIP, "TM590"),
        (
            "nvidia-smi --format=csv,noheader --query-gpu=compute_cap",
            "7.5\n",
            "device",
            FAIL,
            "TM507",
        ),
        ("nvidia-smi --format=csv,noheader --query-gpu=compute_cap", "8.9\n", "device", PASS, ""),
        (
            "nvidia-smi --format=csv,noheader --query-gpu=compute_cap",
            "99.9\n",
            "device",
            UNKNOWN,
            "TM580",
        ),
        (
            "nvidia-smi --format=csv,noheader --query-gpu=compute_cap",
            None,
            "device",
            UNKNOWN,
            "TM580",
        ),
        ("/proc/cpuinfo", "flags\t: fpu mmx\n", "crc32", WARN, "TM505"),
        ("/proc/cpuinfo", None, "cpu", SKIP, "TM590"),
        ("getconf GNU_LIBC_VERSION", None, "glibc", SKIP, "TM590"),
        ("/proc/meminfo", "MemTotal: 1048576 kB\n", "memory", WARN, "TM506"),
        ("/proc/meminfo", "MemTotal: much\n", "memory", SKIP, "TM590"),
    ],
)
def test_each_lack_is_named(
    index: Index, name: str, text: str | None, check: str, word: str, code: str
) -> None:
    found = judged(index, changed(name, text), X86)[check]
    assert (found.word, found.code) == (word, code)


def test_one_lack_moves_one_check(index: Index) -> None:
    before = judged(index, Captured(FILES, OUTPUTS), X86)
    after = judged(index, changed("gcc -dumpfullversion -dumpversion", "12.2.0\n"), X86)
    assert {name for name in before if before[name] != after[name]} == {"gcc"}
    assert after["gcc"].facts == ("tensorflow-tested-linux-gpu/2.11.0#gcc",)


def test_without_a_lock_the_installed_toolkit_sets_the_floor(index: Index) -> None:
    """From 11.1 on one floor holds for the whole major; before that each toolkit has its own."""
    found = judged(index, Captured(FILES, OUTPUTS))["driver"]
    assert (found.word, found.wanted) == (PASS, ">=450.80.02")
    assert found.facts == ("cuda-driver-floor/>=11.1,<12",)
    newer = judged(index, changed("nvcc --version", "V12.4.131"))["driver"]
    assert (newer.word, newer.code, newer.wanted) == (FAIL, "TM502", ">=525.60.13")


@pytest.mark.parametrize(("library", "word"), [("11.2", PASS), ("11.0", WARN), ("11", PASS)])
def test_the_library_that_the_loader_takes_is_compared_with_the_compiler(
    index: Index, library: str, word: str
) -> None:
    read = host.observe(Captured(FILES, OUTPUTS))
    taken = Seen(version=library, seen_by="soname", where="opt/libcudart.so", default=True)
    inventory = read.replace(components={**read.components, "cudart": (taken,)})
    setting = machine.MachineContext(inventory=inventory, index=index, today=TODAY)
    verdicts = {verdict.name: verdict for verdict in machine.judge(setting, ("toolkit",))}
    assert verdicts["cudart"].word == word


def test_a_platform_needs_its_emulator(index: Index) -> None:
    arm = X86.replace(platform="linux/arm64")
    assert judged(index, Captured(FILES, OUTPUTS), arm)["platforms"].word == PASS
    found = judged(index, changed("/proc/sys/fs/binfmt_misc/qemu-aarch64", "disabled\n"), arm)
    assert (found["platforms"].word, found["platforms"].code) == (FAIL, "TM504")


@pytest.mark.parametrize(("flags", "word"), [("fp asimd crc32", PASS), ("fp asimd", FAIL)])
def test_crc_is_wrong_to_lack_where_the_lock_compiles_for_it(
    index: Index, flags: str, word: str
) -> None:
    files = FILES | {
        "/proc/cpuinfo": f"processor : 0\nFeatures : {flags}\nCPU implementer : 0x41\n"
    }
    captured = Captured(files, OUTPUTS | {"uname -m": "aarch64\n"})
    assert judged(index, captured, ARM)["crc32"].word == word
    assert judged(index, captured, X86)["crc32"].word in (word, WARN)


def test_devices_that_a_lock_names_are_compared_by_name(index: Index) -> None:
    named = X86.replace(devices={"8.6": Backed(evidence="ran", facts=("a",))})
    assert judged(index, Captured(FILES, OUTPUTS), named)["device"].facts == ("a",)
    other = X86.replace(devices={"9.0": Backed(evidence="ran")})
    assert judged(index, Captured(FILES, OUTPUTS), other)["device"].word == FAIL


@pytest.mark.parametrize(
    ("files", "outputs", "device"),
    [
        ({}, {"rocminfo": "  Name:                    gfx90a\n  Name: AMD EPYC\n"}, "gfx90a"),
        (
            {"/sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90010\n"},
            {},
            "gfx90a",
        ),
        (
            {"/sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 110000\n"},
            {},
            "gfx1100",
        ),
        ({"/sys/class/kfd/kfd/topology/nodes/0/properties": "gfx_target_version 0\n"}, {}, ""),
    ],
)
def test_amd_devices_are_seen_with_and_without_their_tools(
    files: dict[str, str], outputs: dict[str, str], device: str
) -> None:
    seen = host.observe(Captured(files, outputs)).features.get("device", ())
    assert [one.version for one in seen] == ([device] if device else [])


def test_an_empty_machine_is_told_and_not_guessed(index: Index) -> None:
    found = judged(index, Captured({}, {}, free=-1))
    assert {one.word for name, one in found.items() if name not in ("engine", "matrix")} <= {
        SKIP,
        WARN,
    }
    assert found["disk"].word == SKIP


def test_bazelisk_is_not_asked(index: Index) -> None:
    locked = X86.replace(
        components={"bazel": LockedComponent(version="5.3.0", evidence="tested", facts=())}
    )
    found = judged(index, Captured(FILES, OUTPUTS | {"bazel": ""}), locked)["bazel"]
    assert (found.word, found.code) == (SKIP, "TM590")
    assert judged(index, Captured(FILES, OUTPUTS), locked)["bazel"].word == FAIL


def test_little_disk_and_an_old_matrix_are_warnings(index: Index) -> None:
    assert judged(index, Captured(FILES, OUTPUTS, free=GIB))["disk"].code == "TM506"
    old = judged(index, Captured(FILES, OUTPUTS), today=date(2028, 1, 1))["matrix"]
    assert (old.word, old.code) == (WARN, "TM302")


@pytest.mark.process
def test_this_machine_is_observed() -> None:
    found = host.observe(host.Machine(), "/")
    assert found.platform.startswith("linux/")
    assert int(found.features["memory"][0].version) > 0
    assert "disk" in found.features
    assert host.Machine().run("no-such-program") is None
    assert host.Machine().text("/none/cpuinfo") == ""
    assert host.Machine().names("/none") == []
