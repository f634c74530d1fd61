"""Names of images and of platforms: what a user may write, and the full names in engines and indexes."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

from toolmatrix.images.limits import Budget

Image = TypeVar("Image")

# The form of a reference or the beginning of an id; nothing else may reach an engine or a program.
_NAME = re.compile(r"\w[\w.:@+-]*(/\w[\w.:@+-]*)*", re.ASCII)
_VERSION = re.compile(r"[:@][^/]*$")
# Docker's own images omit their user, `library`.
_SHORT = re.compile(r"docker\.io/([^/]+)")
_NEAREST = 3


def image_name(name: str, budget: Budget) -> str:
    """The name out of `NAME` or `//NAME`; raises SubjectError for an invalid one."""
    name = name.removeprefix("//")
    if not _NAME.fullmatch(name):
        raise budget.refusal("this is not a valid image name", "", f"`{name}`")
    return name


def nearest(scheme: str, name: str, names: Iterable[str]) -> str:
    """The subjects of a scheme with the nearest names, as text."""
    matches = get_close_matches(name, list(names), _NEAREST)
    return " or ".join(f"`{scheme}:{match}`" for match in matches)


def find(name: str, images: Mapping[str, Image]) -> dict[str, Image]:
    """The images that match a name: as it is, as one of this machine, else all whose names end with it.

    Without a tag or digest it is `latest`. Podman takes `localhost/` first as well (containers-registries.conf, "Short
    name"), and asks its configuration where this leaves several.
    """
    tagged = name if _VERSION.search(name) else f"{name}:latest"
    library = _SHORT.sub(r"docker.io/library/\1", tagged)
    for candidate in (name, tagged, f"localhost/{tagged}", library):
        if candidate in images:
            return {candidate: images[candidate]}
    return {key: image for key, image in images.items() if key.endswith(f"/{tagged}")}


def only_image(name: str, matches: Mapping[str, Image], nearest: str, budget: Budget) -> Image:
    """The one image among the matches of a name, by what else it may be called.

    Raises SubjectError for none, with the nearest, and for several.
    """
    images = list(matches.values())
    if not images:
        raise budget.refusal("no such image", nearest, f"`{name}`", "pull or build it")
    if any(image != images[0] for image in images):
        raise budget.refusal("the name matches several images", " or ".join(matches), f"`{name}`")
    return images[0]


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


def this_platform() -> str:
    """The platform of images for this machine."""
    return f"linux/{MACHINES.get(platform.machine(), platform.machine())}"
