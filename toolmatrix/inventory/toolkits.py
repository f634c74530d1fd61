"""CUDA, cuDNN, NCCL, TensorRT, ROCm and the distribution, by the files that tell their versions.

A row names a component, the witness, the path of a file, and patterns: in its contents where there are any, else in the
path. What several patterns find is joined with dots.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.inventory.model import Soname
    from toolmatrix.inventory.record import Record, View

_FILES = (
    (
        "cuda",
        "version file",
        r".*/cuda[^/]*/version\.json",
        (rb'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"',),
    ),
    ("cuda", "version file", r".*/cuda[^/]*/version\.txt", (rb"CUDA Version ([\d.]+)",)),
    (
        "nvcc",
        "version file",
        r".*/cuda[^/]*/version\.json",
        (rb'"cuda_nvcc"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"',),
    ),
    (
        "cudnn",
        "header",
        r".*/cudnn_version[^/]*\.h",
        tuple(rb"#define CUDNN_%s\s+(\d+)" % part for part in (b"MAJOR", b"MINOR", b"PATCHLEVEL")),
    ),
    (
        "nccl",
        "header",
        r".*/nccl\.h",
        tuple(rb"#define NCCL_%s\s+(\d+)" % part for part in (b"MAJOR", b"MINOR", b"PATCH")),
    ),
    (
        "tensorrt",
        "header",
        r".*/NvInferVersion\.h",
        tuple(rb"#define NV_TENSORRT_%s\s+(\d+)" % part for part in (b"MAJOR", b"MINOR", b"PATCH")),
    ),
    ("rocm", "version file", r".*/\.info/version", (rb"(\d+\.\d+\.\d+)",)),
    ("cuda", "torch", r".*/torch/version\.py", (rb"^cuda\b[^=]*= *'([\d.]+)'",)),
    ("rocm", "torch", r".*/torch/version\.py", (rb"^hip\b[^=]*= *'(\d+\.\d+)",)),
    (
        "hip",
        "version file",
        r".*/\.hipVersion|.*/share/hip/version",
        tuple(rb"HIP_VERSION_%s=(\d+)" % part for part in (b"MAJOR", b"MINOR", b"PATCH")),
    ),
)
# Libraries whose names carry the version of a component. Of a file name of libcudart the first two numbers are the
# toolkit's; its soname has the major alone, which `libcudart.so.11.0` of 11.0 to 11.8 writes with a zero.
_LIBRARIES = (
    ("cuda", r"libcudart\.so\.(\d+\.\d+)\.\d+[\d.]*"),
    ("cuda", r"libcudart\.so\.(\d+)(?:\.\d+)?"),
    ("cudnn", r"libcudnn\.so\.(\d+(?:\.\d+){0,2})[\d.]*"),
    ("nccl", r"libnccl\.so\.(\d+(?:\.\d+){0,2})[\d.]*"),
    ("tensorrt", r"libnvinfer\.so\.(\d+(?:\.\d+){0,2})[\d.]*"),
)
# Where the installers of NVIDIA and AMD put the link to the version in use.
_HOMES = {"cuda": "usr/local/cuda", "nvcc": "usr/local/cuda", "rocm": "opt/rocm", "hip": "opt/rocm"}
_SYMBOLS = {"GLIBC": ("glibc", "libc.so.6"), "GLIBCXX": ("libstdcxx", "libstdc++.so.6")}
_DISTRO = re.compile(r"^(ID|VERSION_ID)=[\"']?([^\"'\n]*)", re.MULTILINE)
_API = re.compile(rb"#define NPY_(?:API|FEATURE)_VERSION (?:0x)?([0-9A-Fa-f]+)")


def observe(view: View, record: Record) -> None:
    """Put in the toolkits and libraries that files tell, the distribution, and numpy's C-API."""
    homes = {name: view.tree.real(path) for name, path in _HOMES.items()}
    for component, seen_by, pattern, texts in _FILES:
        for path, data in view.kept.items():
            if re.fullmatch(pattern, path):
                found = [re.search(text, data, re.MULTILINE) for text in texts]
                version = b".".join(one[1] for one in found if one) if all(found) else b""
                record.component(
                    component,
                    version.decode("ascii", "replace"),
                    seen_by,
                    path,
                    default=_is_below(path, homes.get(component)),
                )
    _links(view, record)
    _libraries(view, record)
    _distribution(view, record)


def _is_below(path: str, home: str | None) -> bool:
    return home is not None and path.startswith(f"{home}/")


def _links(view: View, record: Record) -> None:
    """Directories such as /opt/rocm-5.7.0 and /usr/local/cuda-11.2."""
    for component, path in (("cuda", "usr/local/cuda-*"), ("rocm", "opt/rocm-*")):
        home = view.tree.real(_HOMES[component])
        for folder in view.tree.glob(path):
            found = re.fullmatch(r".*-(\d+\.\d+[\d.]*)", folder)
            if found and view.tree.names(folder) and view.tree.real(folder) == folder:
                record.component(component, found[1], "directory", folder, default=folder == home)


def linked(record: Record, sonames: Iterable[Soname]) -> None:
    """Put in the libraries that a file reaches under a name that tells what they do not tell themselves."""
    known = {seen.where for several in record.components.values() for seen in several}
    for one in sonames:
        if one.found and one.found not in known:
            _named(record, one.found, (one.name,))


def _named(record: Record, path: str, names: Iterable[str]) -> None:
    """Put in the version of a library by the first of its names that tells one."""
    for name in names:
        for component, pattern in _LIBRARIES:
            found = re.fullmatch(pattern, name)
            if found:
                record.component(component, found[1], "soname", path)
                return


def _libraries(view: View, record: Record) -> None:
    own = {path: elf for path, elf in view.elves.items() if elf.machine == view.machine}
    for path, elf in own.items():
        if elf.version:
            record.component(*elf.version, "library", path)
    for path, elf in own.items():
        if not elf.version:
            _named(record, path, (path.rpartition("/")[2], elf.dynamic.soname))
        for family, version in elf.dynamic.gives:
            component, soname = _SYMBOLS.get(family, ("", ""))
            if soname and elf.dynamic.soname == soname:
                record.component(component, version, "symbol version", path)


def _distribution(view: View, record: Record) -> None:
    for path in ("etc/os-release", "usr/lib/os-release"):
        told = dict(_DISTRO.findall(view.tree.text(path)))
        if "ID" in told:
            name = told["ID"] + told.get("VERSION_ID", "")
            record.component("distro", name, "os-release", path, default=True)
            break
    for path, data in view.kept.items():
        found = _API.search(data) if path.endswith("/_numpyconfig.h") else None
        if found:
            record.feature("numpy-c-api", found[1].decode().lstrip("0"), "header", path)
