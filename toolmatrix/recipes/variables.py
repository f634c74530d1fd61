"""The values that texts of recipes may name in braces, and the forms in which a version can be written.

`{cuda}` is the release of a component of the answer; a form behind a dot changes how it is written: `{cuda.minor}`,
`{cuda.minor.dashed}`. Beside components there are the fixed names of `FIXED` and, in provisions, `{component}` and
`{version}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

NAMED = re.compile(r"(?<!\$)\{([a-z][a-z0-9_.-]*)\}")
"""A value in braces; `${name}` is the shell's."""

FIXED: Mapping[str, str] = {
    "component": "the component of the provision",
    "version": "its release",
    "built": "what the recipe builds, as requirements of pip, blank between",
    "target": "x86, arm or amd",
    "accelerator": "none, cuda or rocm",
    "from": "source or wheel",
    "machine": "the machine as the kernel calls it",
    "debian_arch": "the machine as Debian and Docker call it",
    "bazel_arch": "the machine as Bazel's files call it",
    "cuda_arch": "the machine as NVIDIA's repositories call it",
    "family": "the family of the distribution",
    "codename": "the code name of the distribution's release",
    "os": "ID in /etc/os-release",
    "os_version": "VERSION_ID in /etc/os-release",
    "snapshot": "the time of a snapshot, as 20261120T000000Z",
    "archs_sm": "codegen archs of CUDA by name, comma between",
    "archs_cuda": "codegen archs of CUDA as capabilities, comma between",
    "archs_torch": "the same as PyTorch reads them, semicolon between",
    "archs_cmake": "the same as CMake reads them, semicolon between",
    "archs_numbers": "the numbers alone, semicolon between",
    "archs_gfx": "codegen archs of ROCm, comma between",
    "archs_hip": "the same as CMake reads them, semicolon between",
    "cflags": "flags for C, blank between",
    "cxxflags": "flags for C++, blank between",
    "nvcc_flags": "flags for nvcc, blank between",
    "hipcc_flags": "flags for hipcc, blank between",
}
"""Every fixed name with what it is."""

LISTS = frozenset(
    (
        *("built", "archs_torch", "archs_cmake", "archs_numbers", "archs_hip"),
        *("cflags", "cxxflags", "nvcc_flags", "hipcc_flags"),
    )
)
"""Values with blanks or semicolons in them: in a line of shell they stand in quotes."""

MACHINES: Mapping[str, Mapping[str, str]] = {
    "x86_64": {"debian_arch": "amd64", "bazel_arch": "x86_64", "cuda_arch": "x86_64"},
    # NVIDIA's repositories have servers of ARM under `sbsa`; what they have under `arm64` and `aarch64` is for Jetson.
    "aarch64": {"debian_arch": "arm64", "bazel_arch": "arm64", "cuda_arch": "sbsa"},
}


def _first(count: int) -> Callable[[str], str]:
    return lambda version: ".".join(version.split(".")[:count])


def _short(version: str) -> str:
    # AMD publishes the first release of a series without its zero: 5.1.0 as 5.1.
    numbers = version.split(".")
    return ".".join(numbers[:-1]) if len(numbers) > 2 and numbers[-1] == "0" else version


FORMS: Mapping[str, Callable[[str], str]] = {
    "major": _first(1),
    "minor": _first(2),
    "patch": _first(3),
    "short": _short,
    "dashed": lambda version: version.replace(".", "-"),
    "joined": lambda version: version.replace(".", ""),
    # By this word alone NVIDIA tells an image that builds from one that runs.
    "runtime": lambda image: image.replace("-devel", "-runtime"),
}


def names(text: str) -> Iterator[tuple[str, str]]:
    """Each value that a text names: its name, and the forms behind it."""
    for found in NAMED.finditer(text):
        name, _, forms = found[1].partition(".")
        yield name, forms


def unknown(text: str, components: Mapping[str, object]) -> str:
    """The first name or form of a text that nobody knows, or nothing."""
    for name, forms in names(text):
        if name not in FIXED and name not in components:
            return name
        for form in forms.split(".") if forms else ():
            if form not in FORMS:
                return f"{name}.{form}"
    return ""


def put(text: str, values: Mapping[str, str]) -> str:
    """A text with its values put in; raises KeyError with the name of one that is not there."""

    def value(found: re.Match[str]) -> str:
        name, *forms = found[1].split(".")
        written = values[name]
        for form in forms:
            written = FORMS[form](written)
        return written

    return NAMED.sub(value, text)
