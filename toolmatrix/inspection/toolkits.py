"""CUDA, cuDNN, NCCL, TensorRT, ROCm and the distribution, by the files that have their versions.

A row names a component, the witness, the files, and patterns in their contents. Matches of several patterns are joined
with dots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolmatrix.inspection import loader
from toolmatrix.inspection.loader import LibrarySearch
from toolmatrix.inspection.model import FilePattern, Soname
from toolmatrix.inspection.record import Record, View

_CUDA_JSON = FilePattern(r".*/cuda[^/]*/version\.json", 64 << 10)
_CUDA_TEXT = FilePattern(r".*/cuda[^/]*/version\.txt", 64 << 10)
_ROCM = FilePattern(r".*/\.info/version", 4 << 10)
_TORCH = FilePattern(r".*/torch/version\.py", 64 << 10)
HIP = FilePattern(r".*/\.hipVersion|.*/share/hip/version", 4 << 10)
"""Files in which ROCm keeps the version of HIP."""


class _Witness(NamedTuple):
    component: str
    seen_by: str
    files: FilePattern
    texts: tuple[str, ...]


def _json(name: str) -> tuple[str]:
    return (rf'"{name}"\s*:\s*\{{[^}}]*"version"\s*:\s*"([\d.]+)"',)


def _header(component: str, file: str, start: str, *names: str) -> _Witness:
    texts = tuple(rf"#define {start}_{name}\s+(\d+)" for name in names)
    return _Witness(component, "header", FilePattern(rf".*/{file}\.h", 1 << 20), texts)


_WITNESSES = (
    _Witness("cuda", "version file", _CUDA_JSON, _json("cuda")),
    _Witness("cuda", "version file", _CUDA_TEXT, (r"CUDA Version ([\d.]+)",)),
    _Witness("nvcc", "version file", _CUDA_JSON, _json("cuda_nvcc")),
    _header("cudnn", "cudnn_version[^/]*", "CUDNN", "MAJOR", "MINOR", "PATCHLEVEL"),
    _header("nccl", "nccl", "NCCL", "MAJOR", "MINOR", "PATCH"),
    _header("tensorrt", "NvInferVersion", "NV_TENSORRT", "MAJOR", "MINOR", "PATCH"),
    _Witness("rocm", "version file", _ROCM, (r"(\d+\.\d+\.\d+)",)),
    _Witness("cuda", "torch", _TORCH, (r"^cuda\b[^=]*= *'([\d.]+)'",)),
    _Witness("rocm", "torch", _TORCH, (r"^hip\b[^=]*= *'(\d+\.\d+)",)),
    _Witness(
        *("hip", "version file", HIP),
        tuple(rf"HIP_VERSION_{name}=(\d+)" for name in ("MAJOR", "MINOR", "PATCH")),
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
# CUDA when a program runs, beside the one that it was built with.
_RUNTIME = "cudart"
# Where the installers of NVIDIA and AMD put the link to the version in use.
_HOMES = {"cuda": "usr/local/cuda", "nvcc": "usr/local/cuda", "rocm": "opt/rocm", "hip": "opt/rocm"}
# Variables that lead elsewhere, in the order in which CMake and PyTorch look at them.
_HOME_VARIABLES = {
    **dict.fromkeys(("cuda", "nvcc"), ("CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT")),
    **dict.fromkeys(("rocm", "hip"), ("ROCM_PATH", "ROCM_HOME")),
}
_SYMBOLS = {"GLIBC": ("glibc", "libc.so.6"), "GLIBCXX": ("libstdcxx", "libstdc++.so.6")}
_DISTRO = re.compile(r"^(ID|VERSION_ID)=[\"']?([^\"'\n]*)", re.MULTILINE)
# Most distributions link the first to the second, distroless images have the second alone.
_OS_RELEASE = ("etc/os-release", "usr/lib/os-release")
_NUMPY = FilePattern(r".*/numpy/_?core/include/numpy/_numpyconfig\.h", 64 << 10)
_API = re.compile(r"#define NPY_(?:API|FEATURE)_VERSION (?:0x)?([0-9A-Fa-f]+)")
READS = (
    *(witness.files for witness in _WITNESSES),
    *(_NUMPY, FilePattern("|".join(_OS_RELEASE), 64 << 10)),
)


def observe(view: View, record: Record) -> None:
    """Record the toolkits and libraries, the distribution, and numpy's C-API."""
    homes = {name: view.tree.real(_home(view, name)) for name in _HOMES}
    for component, seen_by, files, texts in _WITNESSES:
        home = homes.get(component)
        for path_match, data in view.files(files):
            matches = [re.search(text, data, re.MULTILINE | re.ASCII) for text in texts]
            version = ".".join(match[1] for match in matches if match) if all(matches) else ""
            is_default = home is not None and path_match[0].startswith(f"{home}/")
            record.component(component, version, seen_by, path_match[0], default=is_default)
    _links(view, record)
    _libraries(view, record)
    _distribution(view, record)


def _home(view: View, component: str) -> str:
    variables = (view.env.get(name, "") for name in _HOME_VARIABLES[component])
    return next(filter(None, variables), _HOMES[component])


def _links(view: View, record: Record) -> None:
    for component, path in (("cuda", "usr/local/cuda-*"), ("rocm", "opt/rocm-*")):
        home = view.tree.real(_home(view, component))
        for folder in view.tree.glob(path):
            match = re.fullmatch(r".*-(\d+\.\d+[\d.]*)", folder)
            # A link to another version's directory would count that twice.
            if match and view.tree.names(folder) and view.tree.real(folder) == folder:
                record.component(component, match[1], "directory", folder, default=folder == home)


def component_of(soname: str) -> str:
    """The component whose version the name of a library carries; empty for other libraries."""
    return next((name for name, pattern in _LIBRARIES if re.fullmatch(pattern, soname)), "")


def record_linked(record: Record, sonames: Iterable[Soname]) -> None:
    """Record the libraries whose versions only the name shows by which a file needs them."""
    known = {sighting.where for sightings in record.components.values() for sighting in sightings}
    for soname in sonames:
        if soname.found and soname.found not in known:
            _record_library(record, soname.found, (soname.name,))


def _record_library(record: Record, path: str, names: Sequence[str]) -> None:
    numbers = [name.partition(".so.")[2] for name in names]
    if all(numbers) and len({number.partition(".")[0] for number in numbers}) > 1:
        # A file may have any name; programs are linked to its soname.
        names = names[::-1]
    for name in names:
        for component, pattern in _LIBRARIES:
            match = re.fullmatch(pattern, name)
            if match:
                record.component(component, match[1], "soname", path)
                return


def _libraries(view: View, record: Record) -> None:
    for path, elf in view.own.items():
        if elf.version:
            record.component(*elf.version, "library", path)
    for path, elf in view.own.items():
        if not elf.version:
            _record_library(record, path, (path.rpartition("/")[2], elf.dynamic.soname))
        for family, version in elf.dynamic.gives:
            component, soname = _SYMBOLS.get(family, ("", ""))
            if soname and elf.dynamic.soname == soname:
                record.component(component, version, "symbol version", path)


def _distribution(view: View, record: Record) -> None:
    for path in _OS_RELEASE:
        fields = dict(_DISTRO.findall(view.tree.text(path)))
        if "ID" in fields:
            name = fields["ID"] + fields.get("VERSION_ID", "")
            record.component("distro", name, "os-release", path, default=True)
            break
    for path_match, data in view.files(_NUMPY):
        match = _API.search(data)
        if match:
            record.feature("numpy-c-api", match[1].lstrip("0"), "header", path_match[0])


def record_taken(
    view: View, record: Record, sonames: Sequence[Soname], sites: Sequence[str]
) -> None:
    """Make the libraries defaults that a program gets: by its packages of Python, else by any program.

    Where nothing asks for one, it is what the loader would find first. That of CUDA is a component of its own as well:
    what builds is found by other variables than what runs.
    """
    if not view.elves:
        return
    search = LibrarySearch(view, loader.library_path(view))
    names = {soname.name: component_of(soname.name) for soname in sonames}
    for component in dict.fromkeys(name for name, _ in _LIBRARIES):
        # A toolkit to build with is beside the runtime libraries that wheels bring.
        own = sites if component != "cuda" else ()
        wanted = [name for name in names if names[name] == component]
        libraries = {*loader.loaded_libraries(search, wanted, own).values()} - {""}
        if not wanted:
            libraries = search.first(lambda name: component_of(name) == component)  # noqa: B023
        decided = [*libraries] if len(libraries) == 1 else []
        # On a newer processor the loader takes a variant.
        for library in (*decided, *search.alternatives.get("".join(decided), ())):
            record.take(component, library)
            for sighting in record.components.get(component, ()) if component == "cuda" else ():
                if sighting.where == library:
                    record.component(
                        _RUNTIME, sighting.version, sighting.seen_by, library, default=True
                    )
