"""CUDA, cuDNN, NCCL, TensorRT, ROCm and the distribution, by the files that tell their versions.

A row names a component, the witness, the path of a file, and patterns: in its contents where there are any, else in the
path. What several patterns find is joined with dots.
"""

from __future__ import annotations

import re

from toolmatrix.inventory.model import FilePattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.inventory.model import Soname
    from toolmatrix.inventory.record import Record, View

_CUDA_JSON = FilePattern(r".*/cuda[^/]*/version\.json", 64 << 10)
_TORCH = FilePattern(r".*/torch/version\.py", 64 << 10)
HIP = FilePattern(r".*/\.hipVersion|.*/share/hip/version", 4 << 10)
"""Files in which ROCm keeps the version of HIP."""


def _header(name: str) -> FilePattern:
    return FilePattern(rf".*/{name}\.h", 1 << 20)


def _numbers(form: bytes, *names: bytes) -> tuple[bytes, ...]:
    """Patterns of numbers that stand apart, such as those of a header."""
    return tuple(form % name for name in names)


_FILES = (
    (
        "cuda",
        "version file",
        _CUDA_JSON,
        (rb'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"',),
    ),
    (
        "cuda",
        "version file",
        FilePattern(r".*/cuda[^/]*/version\.txt", 64 << 10),
        (rb"CUDA Version ([\d.]+)",),
    ),
    (
        "nvcc",
        "version file",
        _CUDA_JSON,
        (rb'"cuda_nvcc"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"',),
    ),
    (
        "cudnn",
        "header",
        _header("cudnn_version[^/]*"),
        _numbers(rb"#define CUDNN_%s\s+(\d+)", b"MAJOR", b"MINOR", b"PATCHLEVEL"),
    ),
    (
        "nccl",
        "header",
        _header("nccl"),
        _numbers(rb"#define NCCL_%s\s+(\d+)", b"MAJOR", b"MINOR", b"PATCH"),
    ),
    (
        "tensorrt",
        "header",
        _header("NvInferVersion"),
        _numbers(rb"#define NV_TENSORRT_%s\s+(\d+)", b"MAJOR", b"MINOR", b"PATCH"),
    ),
    (
        "rocm",
        "version file",
        FilePattern(r".*/\.info/version", 4 << 10),
        (rb"(\d+\.\d+\.\d+)",),
    ),
    ("cuda", "torch", _TORCH, (rb"^cuda\b[^=]*= *'([\d.]+)'",)),
    ("rocm", "torch", _TORCH, (rb"^hip\b[^=]*= *'(\d+\.\d+)",)),
    (
        "hip",
        "version file",
        HIP,
        _numbers(rb"HIP_VERSION_%s=(\d+)", b"MAJOR", b"MINOR", b"PATCH"),
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
# Most distributions link the first to the second, distroless images have the second alone.
_OS_RELEASE = ("etc/os-release", "usr/lib/os-release")
_NUMPY = FilePattern(r".*/numpy/_?core/include/numpy/_numpyconfig\.h", 64 << 10)
_API = re.compile(rb"#define NPY_(?:API|FEATURE)_VERSION (?:0x)?([0-9A-Fa-f]+)")
READS = (
    *(declared for _, _, declared, _ in _FILES),
    *(_NUMPY, FilePattern("|".join(_OS_RELEASE), 64 << 10)),
)


def observe(view: View, record: Record) -> None:
    """Put in the toolkits and libraries that files tell, the distribution, and numpy's C-API."""
    homes = {name: view.tree.real(path) for name, path in _HOMES.items()}
    for component, seen_by, declared, texts in _FILES:
        home = homes.get(component)
        for named, data in view.files(declared):
            found = [re.search(text, data, re.MULTILINE) for text in texts]
            version = b".".join(one[1] for one in found if one) if all(found) else b""
            text, path = version.decode("ascii", "replace"), named[0]
            is_default = home is not None and path.startswith(f"{home}/")
            record.component(component, text, seen_by, path, default=is_default)
    _links(view, record)
    _libraries(view, record)
    _distribution(view, record)


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
    for path in _OS_RELEASE:
        fields = dict(_DISTRO.findall(view.tree.text(path)))
        if "ID" in fields:
            name = fields["ID"] + fields.get("VERSION_ID", "")
            record.component("distro", name, "os-release", path, default=True)
            break
    for named, data in view.files(_NUMPY):
        found = _API.search(data)
        if found:
            record.feature("numpy-c-api", found[1].decode().lstrip("0"), "header", named[0])
