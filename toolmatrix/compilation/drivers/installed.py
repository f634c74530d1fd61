"""Drivers and host compilers on this machine: their folders and the releases that they report."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from glob import escape, glob, iglob

from toolmatrix.compilation.drivers import dry_run
from toolmatrix.compilation.expected import same_series
from toolmatrix.errors import ToolMissing
from toolmatrix.value import Value

# Where toolkits are installed beside PATH: variables that name one (NVIDIA, CUDA installation guide; ROCm, HIP
# environment variables), default folders of their installers, wheels beside this Python, and fetched drivers.
_VARIABLES = {
    "nvcc": ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"),
    "hipcc": ("ROCM_PATH", "HIP_PATH", "ROCM_HOME"),
}
_DEFAULT_FOLDERS = {"nvcc": ("/usr/local/cuda*", "/opt/cuda*"), "hipcc": ("/opt/rocm*",)}
_WHEEL = os.path.join("nvidia", "cu*")
_FETCHED = os.path.join("drivers", "*", _WHEEL)
_VERSIONS = {
    "nvcc": re.compile(r"\bV(\d+\.\d+\.\d+)\b"),
    "hipcc": re.compile(r"HIP version: (\d+(?:\.\d+)*)"),
}
_COMPILER = {"gcc": "g++", "clang": "clang++"}
# Seconds that a program may take to print its version.
_PATIENCE = 20


class Driver(Value):
    """A driver and the release that it reports; empty if it reports none."""

    program: str
    version: str


def drivers(family: str, env: Mapping[str, str], cache: str = "") -> Iterator[Driver]:
    """Each driver of a family on this machine, those on PATH first; `cache` is the folder of what was fetched."""
    resolved = set()
    for folder in _folders(family, env, cache):
        program = os.path.join(folder, family)
        same = os.path.realpath(program)
        if same not in resolved and os.path.isfile(program) and os.access(program, os.X_OK):
            resolved.add(same)
            yield Driver(program=program, version=version(family, program, env))


def _folders(family: str, env: Mapping[str, str], cache: str) -> Iterator[str]:
    yield from filter(None, env.get("PATH", os.defpath).split(os.pathsep))
    homes = [env[name] for name in _VARIABLES[family] if env.get(name)]
    for folder in _DEFAULT_FOLDERS[family]:
        homes += sorted(iglob(folder), reverse=True)
    if family == "nvcc":
        for folder in sys.path:
            homes += glob(os.path.join(escape(folder), _WHEEL)) if folder else []
        homes += sorted(iglob(os.path.join(escape(cache), _FETCHED))) if cache else []
    yield from (os.path.join(home, "bin") for home in homes)


def version(family: str, program: str, env: Mapping[str, str]) -> str:
    """The release that a driver reports: nvcc its own, hipcc that of HIP; empty if it reports none."""
    pattern = _VERSIONS.get(family)
    if pattern is None:
        return ""
    try:
        printed = dry_run.output_of(
            [program, "--version"], {**env, "HIP_PLATFORM": "amd"}, _PATIENCE
        )
    except ToolMissing:
        return ""
    match = pattern.search(printed)
    return match[1] if match else ""


def host_compiler(compiler: str, release: str, env: Mapping[str, str]) -> str:
    """The program of a host compiler of a release's series on PATH; empty where there is none."""
    name = _COMPILER.get(compiler)
    if not name:
        return ""
    numbers = release.split(".")
    names = [f"{name}-{'.'.join(numbers[:count])}" for count in range(len(numbers), 0, -1)]
    for candidate in (*names, name):
        program = shutil.which(candidate, path=env.get("PATH"))
        if program and same_series(compiler, release, _release(program, env)):
            return candidate
    return ""


def _release(program: str, env: Mapping[str, str]) -> str:
    # GCC from 7 on answers `-dumpversion` with its major version alone, which is the series; clang with all of it.
    try:
        return dry_run.output_of([program, "-dumpversion"], env, _PATIENCE).strip()
    except ToolMissing:
        return ""
