"""The names of processors and of platforms, which kernels, images and distributions each spell in their own way."""

from __future__ import annotations

import os
from typing import NamedTuple


class Processor(NamedTuple):
    """The names of an architecture of OCI (Go's GOARCH) elsewhere.

    `kernel` is the name of uname(2); `multiarch` Debian's directory of libraries,
    https://wiki.debian.org/Multiarch/Tuples; `at_platform` the value of `$PLATFORM` in ld.so(8), AT_PLATFORM of
    getauxval(3). `also_runs` is the architecture of programs that run on it beside its own: compatibility mode of the
    AMD64 manual, volume 2, AArch32 at EL0 of the Arm ARM. `char` is the sign of plain `char`: System V ABI for AMD64,
    Arm's procedure call standard. `crc` is the flag of its CRC32 instructions in /proc/cpuinfo.
    """

    kernel: str
    multiarch: str
    at_platform: str
    also_runs: str = ""
    char: str = ""
    crc: str = ""


PROCESSORS = {
    "386": Processor("i386", "i386-linux-gnu", "i686"),
    "amd64": Processor("x86_64", "x86_64-linux-gnu", "x86_64", "386", "signed", "sse4_2"),
    "arm": Processor("armv7l", "arm-linux-gnueabihf", "v7l"),
    "arm64": Processor("aarch64", "aarch64-linux-gnu", "aarch64", "arm", "unsigned", "crc32"),
    "ppc64le": Processor("ppc64le", "powerpc64le-linux-gnu", "ppc64le"),
    "riscv64": Processor("riscv64", "riscv64-linux-gnu", "riscv64"),
    "s390x": Processor("s390x", "s390x-linux-gnu", "s390x"),
}
"""Architectures by their names in image indexes."""
MACHINES = {PROCESSORS[name].kernel: name for name in ("amd64", "arm64")}
"""The architectures that toolkits are made for, by the names of the kernel."""


def processor(architecture: str) -> Processor:
    """The names of an architecture; the given one for all where it is not among PROCESSORS."""
    return PROCESSORS.get(architecture) or Processor(*[architecture] * 3)


def architecture(name: str) -> str:
    """The architecture named by `linux/arm64/v8`, `aarch64`, `x86-64` or `arm64`."""
    arch = name.lower().removeprefix("linux/").partition("/")[0]
    spelled = {"x86-64": "x86_64", "x64": "x86_64"}.get(arch, arch)
    return MACHINES.get(spelled, arch)


def platform_of(machine: str) -> str:
    """The platform of images for a machine, by the name that its kernel gives."""
    return f"linux/{MACHINES.get(machine, machine)}"


def this_platform() -> str:
    """The platform of images for this machine."""
    # The module `platform` says the same, and takes longer to load than all of this.
    return platform_of(os.uname().machine)
