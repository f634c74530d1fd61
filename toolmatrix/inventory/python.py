"""Python packages by their own records, and which of several a bare `import` of the default interpreter gets.

PyPA's "Recording installed projects" and "Core metadata"; the order of directories is that of the module `site`, and of
Debian's changes to it (python3's README.Debian).
"""

from __future__ import annotations

import re

from toolmatrix.inventory import listings
from toolmatrix.inventory.packages import GONE, upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.inventory.programs import Default
    from toolmatrix.inventory.record import Record, View

_RECORD = re.compile(
    r"(?P<site>.*?)/(?P<name>[^/]+)\.(?P<kind>dist-info/METADATA|egg-info(?:/PKG-INFO)?|egg/EGG-INFO/PKG-INFO)"
)
RECORDS = ("dist-info", "egg-info")
"""The witnesses of Python packages, of which a user gets what the interpreter imports that is called."""
_FIELD = re.compile(r"^(Name|Version):\s*(\S+)\s*$", re.MULTILINE)
# Names that differ in these alone are the same, PEP 503.
_SAME = re.compile(r"[-_.]+")

# Components that are no Python packages, though there are packages of these names.
_PROGRAMS = frozenset(
    ("python", "gcc", "clang", "nvcc", "hip", "bazel", "cuda", "rocm", "glibc", "distro")
)
# Wheels that carry a component, how many of their numbers are its own, and how the name of its file begins.
_CARRIED = (
    (r"nvidia-cuda-runtime(-cu\d+)?", "cuda", 2, "libcudart."),
    (r"nvidia-cudnn(-cu\d+)?", "cudnn", 3, "libcudnn."),
    (r"nvidia-nccl(-cu\d+)?", "nccl", 3, "libnccl."),
    (r"tensorrt(-cu\d+)?", "tensorrt", 3, "libnvinfer."),
    (r"nvidia-cuda-nvcc(-cu\d+)?", "nvcc", 3, "ptxas"),
)
# How PyTorch calls toolkits in local versions such as 2.1.0+cu121 and 2.1.0+rocm5.6.
_LOCAL = {"cu": "cuda", "rocm": "rocm"}


def observe(view: View, record: Record, sites: Sequence[str]) -> None:
    """Put in every package as a component, and toolkits that packages carry; `sites` in the order of imports."""
    first = _first(view, sites)
    for path, data in view.kept.items():
        found = _RECORD.fullmatch(path)
        if not found:
            continue
        fields = dict(_FIELD.findall(data.decode("utf-8", "replace")))
        name = normal(fields.get("Name", ""))
        version = fields.get("Version", "")
        if not name or not version:
            record.skip(path, "it names no package and version")
            continue
        seen_by = RECORDS[not found["kind"].startswith("dist-info")]
        is_default = first.get(name) == path
        record.feature(f"dist:{name}", version, seen_by, path)
        if _is_gone(view, name, path):
            record.feature(GONE, f"{name} {version}", seen_by, path)
            continue
        if name not in _PROGRAMS:
            record.component(name, version, seen_by, path, default=is_default)
        _carried(record, name, version, path)


def _is_gone(view: View, name: str, path: str) -> bool:
    """Whether nothing is left of a package, or not the file for which it is there."""
    files = listings.of_dist(view, path)
    starts = tuple(start for pattern, *_, start in _CARRIED if re.fullmatch(pattern, name))
    called = [one for one in files if one.rpartition("/")[2].startswith(starts)]
    return listings.are_gone(view, called or files)


def normal(name: str) -> str:
    """A name of a package as PyPI compares it."""
    return _SAME.sub("-", name).lower()


def _carried(record: Record, name: str, version: str, path: str) -> None:
    for pattern, component, numbers, _ in _CARRIED:
        if re.fullmatch(pattern, name):
            record.component(component, upstream(version, numbers), "wheel", path)
    local = re.fullmatch(r"(cu|rocm)([\d.]+)", version.partition("+")[2])
    if name.startswith("torch") and local:
        number = local[2] if "." in local[2] else f"{local[2][:-1]}.{local[2][-1:]}"
        record.component(_LOCAL[local[1]], number, f"{name} +{local[0]}", path)


def _first(view: View, sites: Sequence[str]) -> dict[str, str]:
    """The record of each package that is found first in the directories."""
    first: dict[str, str] = {}
    for site in sites:
        for path, data in view.kept.items():
            found = _RECORD.fullmatch(path)
            if found and found["site"] == site:
                name = dict(_FIELD.findall(data.decode("utf-8", "replace"))).get("Name", "")
                first.setdefault(normal(name), path)
    return first


def sites(view: View, default: Default | None) -> list[str]:
    """The directories that the default interpreter imports from, in its order; none where there is no interpreter."""
    if default is None:
        return []
    series = ".".join(default.version.split(".")[:2])
    prefix = _above(default.real)
    home = _above(default.called)
    settings = view.tree.text(f"{home}/pyvenv.cfg")
    own = [prefix, "usr/local"] if prefix == "usr" else [prefix]
    if settings:
        shared = re.search(r"^include-system-site-packages\s*=\s*true", settings, re.MULTILINE)
        own = [home, *(own if shared else ())]
    found = view.folders("PYTHONPATH")
    for folder in own:
        debian = [
            f"{folder}/lib/python{series}/dist-packages",
            f"{folder}/lib/python3/dist-packages",
        ]
        usual = [f"{folder}/{lib}/python{series}/site-packages" for lib in ("lib", "lib64")]
        found += [*usual, *debian]
    if "usr/local" in own:
        found.sort(key=lambda path: not path.startswith("usr/local/"))
    reals = (view.tree.real(path) for path in found)
    return list(dict.fromkeys(path for path in reals if path is not None))


def _above(path: str) -> str:
    """The directory that holds the bin of a program."""
    return path.rpartition("/")[0].rpartition("/")[0]
