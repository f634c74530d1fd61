"""Records of package managers: dpkg (whole and split), apk, conda; that of rpm is a database and is told as unread."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.inventory.record import Record, View

_STANZAS = (
    ("dpkg", r"var/lib/dpkg/(status|status\.d/[^/]+)", "Package", "Version"),
    ("apk", r"(usr/)?lib/apk/db/installed", "P", "V"),
)
"""Managers, where their records are, and what fields are called in them: deb-control(5), and APKINDEX of apk-tools."""
_CONDA = re.compile(r"(?:.*/)?conda-meta/(.+)-([^-]+)-[^-]+\.json")
_RPM = ("var/lib/rpm", "usr/lib/sysimage/rpm", "usr/share/rpm")

_UPSTREAM = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)")
_COMPONENTS = (
    (r"cuda-toolkit-\d+-\d+|cuda-toolkit|cuda", "cuda", 3),
    (r"cuda-(cudart|nvcc|compiler|libraries|runtime)-\d+-\d+|cuda-version", "cuda", 2),
    (r"libcudnn\d+(-cuda-\d+)?|cudnn", "cudnn", 3),
    (r"libnccl2|nccl", "nccl", 3),
    (r"libnvinfer\d+", "tensorrt", 3),
    (r"rocm-core|rocm-libs|rocm-dev", "rocm", 3),
    (r"libc6|glibc", "glibc", 2),
    (r"bazel", "bazel", 3),
)
"""Packages of which the version is that of a component, and how many of its numbers are."""


def observe(view: View, record: Record) -> None:
    """Put in every package as a feature such as `dpkg:libc6`, and components that packages name."""
    for manager, path, name, version in _packages(view):
        record.feature(f"{manager}:{name}", version, manager, path)
        for pattern, component, numbers in _COMPONENTS:
            if re.fullmatch(pattern, name):
                record.component(component, upstream(version, numbers), manager, path)
    for folder in _RPM:
        if view.tree.names(folder):
            record.skip(
                "rpm",
                f"{folder} is a database that only rpm reads; there is no well-kept reader in Python",
            )


def upstream(version: str, numbers: int = 9) -> str:
    """The first numbers of a version, without epoch and revision."""
    found = _UPSTREAM.match(version)
    return ".".join(found[1].split(".")[:numbers]) if found else ""


def _packages(view: View) -> Iterator[tuple[str, str, str, str]]:
    """Manager, place, name and version of each installed package."""
    for manager, pattern, name, version in _STANZAS:
        for path, data in view.kept.items():
            if re.fullmatch(pattern, path):
                for fields in stanzas(data.decode("utf-8", "replace").splitlines()):
                    if name in fields and version in fields and _is_installed(fields):
                        yield manager, path, fields[name], fields[version]
    for folder in _conda_folders(view):
        for file in view.tree.names(folder):
            found = _CONDA.fullmatch(f"{folder}/{file}")
            if found:
                yield "conda", f"{folder}/{file}", found[1], found[2]


def _conda_folders(view: View) -> list[str]:
    patterns = ("conda-meta", "*/conda-meta", "*/*/conda-meta", "*/*/*/*/conda-meta")
    return sorted(
        {real for one in patterns for path in view.tree.glob(one) if (real := view.tree.real(path))}
    )


def stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Blocks of `name: value` lines, parted by blank lines; lines that go on are left out."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            if fields:
                yield fields
            fields = {}
        elif not line[0].isspace():
            name, colon, value = line.partition(":")
            if colon:
                fields[name] = value.strip()
    if fields:
        yield fields


def _is_installed(fields: dict[str, str]) -> bool:
    """Whether a record is of a package that is there; one without a status is, as in status.d of distroless images."""
    return fields.get("Status", "installed").split()[-1:] == ["installed"]
