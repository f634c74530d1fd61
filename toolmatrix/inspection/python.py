"""Python packages by their own records, which of several a bare `import` of the default interpreter gets, and builds.

PyPA's "Recording installed projects" and "Core metadata". CPython writes the variables of its Makefile into
`_sysconfigdata*.py` (module `sysconfig`), NumPy its configuration into `numpy/__config__.py`; both are read as data.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator, Sequence

from toolmatrix.inspection import entry, imported, imports, packages, programs, stated
from toolmatrix.inspection.entry import Start
from toolmatrix.inspection.imported import Dist, Imported
from toolmatrix.inspection.imports import ImportPath
from toolmatrix.inspection.model import (
    GONE,
    INTERPRETER,
    MODULE,
    UNIMPORTED,
    WHICH,
    WHICH_PACKAGES,
    FilePattern,
)
from toolmatrix.inspection.packages import upstream
from toolmatrix.inspection.programs import Default
from toolmatrix.inspection.record import ACCOUNTS, Record, View

_METADATA = FilePattern(
    r"(?P<site>.*)/[^/]+\.(?P<kind>dist-info/METADATA|egg-info(?:/PKG-INFO)?|egg/EGG-INFO/PKG-INFO)",
    4 << 10,
)
_SYSCONFIG = FilePattern(r".*/python\d[^/]*/_sysconfigdata[^/]*\.py", 256 << 10)
_NUMPY = FilePattern(r".*/numpy/__config__\.py", 64 << 10)
READS = (
    *(_METADATA, packages.RECORD, _SYSCONFIG, _NUMPY, ACCOUNTS),
    *(*imports.READS, *stated.READS, *imported.READS),
)
RECORDS = ("dist-info", "egg-info", MODULE)
"""The witnesses of Python packages, of which a user gets those that the default interpreter imports."""

# Components that are not Python packages, though packages of these names exist.
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
# Names of toolkits in local versions of PyTorch such as 2.1.0+cu121 and 2.1.0+rocm5.6.
_LOCAL = {"cu": "cuda", "rocm": "rocm"}

# Variables that decide how fast and how compatible an interpreter is.
_VARIABLES = (
    *("CONFIG_ARGS", "OPT", "PY_CFLAGS", "PY_LDFLAGS", "Py_DEBUG", "Py_GIL_DISABLED"),
    "WITH_PYMALLOC",
)
_LIBRARY = re.compile(
    r"""["'](?P<kind>blas|lapack)["']:\s*\{[^{}]*?["']name["']:\s*["'](?P<name>[^"']+)["']"""
)
# The form of NumPy before 1.26, which had distutils write it.
_OLDER = re.compile(
    r"""^(?P<kind>blas|lapack)(?:_ilp64)?_opt_info\s*=\s*\{[^}\n]*?["']libraries["']:\s*\[["'](?P<name>[^"']+)""",
    re.MULTILINE,
)


def observe_imports(view: View, record: Record, paths: Sequence[ImportPath]) -> None:
    """Record every package as a component, and toolkits that packages carry.

    Those are defaults that the first of some interpreters imports.
    """
    dists = [*_dists(view), *_packed(view, paths)]
    defaults: set[str] = set()
    if paths:
        packages_imported = Imported(view, record, paths, dists)
        packages_imported.run()
        defaults = packages_imported.defaults
        imported.compare_others(view, record, paths, packages_imported.versions)
    elif not {f"{WHICH}python", WHICH_PACKAGES} & {skip.what for skip in record.skipped}:
        for dist in dists:
            record.feature(
                f"{UNIMPORTED}:{dist.name}", "the image starts no Python", dist.seen_by, dist.path
            )
    _record_dists(view, record, dists, defaults)


def _dists(view: View) -> list[Dist]:
    from packaging.utils import canonicalize_name

    dists: list[Dist] = []
    for match, text in view.files(_METADATA):
        seen_by = RECORDS[not match["kind"].startswith("dist-info")]
        written, version = stated.name_and_version(text)
        name = canonicalize_name(written)
        dists.append(Dist(match[0], match["site"], seen_by, name, version, written))
    return dists


# The records in archives that Python imports from; one that only lies there is no more than a file.
def _packed(view: View, paths: Sequence[ImportPath]) -> Iterator[Dist]:
    from packaging.utils import canonicalize_name

    folders = dict.fromkeys(folder.path for path in paths for folder in path.folders)
    for real in dict.fromkeys(filter(None, map(view.tree.real, folders))):
        for path, written, version, *roots in view.archive(real).records:
            name = canonicalize_name(written)
            yield Dist(
                f"{real}/{path}",
                real,
                RECORDS[path.startswith("EGG-INFO")],
                name,
                version,
                written,
                tuple(roots),
            )


def _record_dists(
    view: View, record: Record, dists: Sequence[Dist], defaults: Collection[str]
) -> None:
    for dist in dists:
        _record_dist(view, record, dist, is_default=dist.path in defaults)
    _builds(view, record)


def _record_dist(view: View, record: Record, dist: Dist, *, is_default: bool) -> None:
    path, seen_by, name, version = dist.path, dist.seen_by, dist.name, dist.version
    if not name or not version:
        record.skip(path, "it lacks a name or a version")
        return
    record.feature(f"dist:{name}", version, seen_by, path)
    if dist.packed is None and _is_gone(view, name, path):
        record.feature(GONE, f"{name} {version}", seen_by, path)
        return
    if name not in _PROGRAMS:
        record.component(name, version, seen_by, path, default=is_default)
    for pattern, component, numbers, _ in _CARRIED:
        if re.fullmatch(pattern, name):
            record.component(component, upstream(version, numbers), "wheel", path)
    local = re.fullmatch(r"(cu|rocm)([\d.]+)", version.partition("+")[2])
    if name.startswith("torch") and local:
        # cu121 is 12.1 and cu92 is 9.2: the last digit is the minor.
        toolkit = local[2] if "." in local[2] else f"{local[2][:-1]}.{local[2][-1:]}"
        record.component(_LOCAL[local[1]], toolkit, f"{name} +{local[0]}", path)


def _is_gone(view: View, name: str, path: str) -> bool:
    # A wheel that carries a component is useless without its main file.
    files = packages.dist_files(view, path)
    starts = tuple(start for pattern, *_, start in _CARRIED if re.fullmatch(pattern, name))
    called = [file for file in files if file.rpartition("/")[2].startswith(starts)]
    return packages.are_gone(view, called or files)


def _builds(view: View, record: Record) -> None:
    for match, text in view.files(_SYSCONFIG):
        variables = _variables(text)
        for name in _VARIABLES:
            record.feature(f"python:{name}", str(variables.get(name, "")), "sysconfig", match[0])
    for match, text in view.files(_NUMPY):
        for use in (*_LIBRARY.finditer(text), *_OLDER.finditer(text)):
            record.feature(f"numpy:{use['kind']}", use["name"], "numpy.__config__", match[0])


def _variables(text: str) -> dict[str, object]:
    try:
        with warnings.catch_warnings():
            # Flags of compilers have escapes that are invalid in Python and harmless here.
            warnings.simplefilter("ignore")
            variables = ast.literal_eval(text.partition("build_time_vars = ")[2].strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return variables if isinstance(variables, dict) else {}


def import_paths(view: View, record: Record, default: Default | None) -> list[ImportPath]:
    """The import paths of the interpreters that the image may start, that of its own first."""
    paths: list[ImportPath] = []
    for start in entry.starts(view):
        if start.is_entry and not start.others:
            view.become(start.env, start.user)
        path = _import_path(view, record, default, start)
        if path is None:
            return paths
        if not paths:
            # Letters that decide what is imported.
            options = "".join(sorted({*start.options} & {*"EIPSs"}))
            command = f"/{start.called.strip('/')} -{options}".removesuffix(" -")
            record.feature(INTERPRETER, command, start.words, start.first)
        for other in start.others:
            another = _import_path(view, record, default, other)
            if another is None or _places(view, another) != _places(view, path):
                path = path.replace(unknown=path.unknown or start.script)
        paths.append(path)
    return paths


def _import_path(
    view: View, record: Record, default: Default | None, start: Start
) -> ImportPath | None:
    real = view.tree.real(start.called) or start.called
    if real not in view.elves or (default is None and not start.is_entry):
        # A script, such as a shim, shows only when it runs what it starts.
        return None
    known = default.version if default is not None and default.real == real else ""
    version = known or programs.python_version(view, record, real)
    if not version:
        record.skip(WHICH_PACKAGES, f"the version of /{real} is not known")
        return None
    return imports.import_path(view, start, version)


# What decides which modules are found: the directories that exist.
def _places(view: View, path: ImportPath) -> object:
    folders = (view.tree.real(folder.path) for folder in path.folders)
    return path.series, path.mapping, path.unknown, [*filter(None, folders)]
