"""How the default CPython and NumPy were built, by the files in which they keep it.

CPython writes the variables of its Makefile into `_sysconfigdata*.py` (module `sysconfig`), NumPy its configuration
into `numpy/__config__.py`. Both are read as data, never run.
"""

from __future__ import annotations

import ast
import re
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.inventory.record import Record, View

# Variables that decide how fast and how compatible an interpreter is.
_VARIABLES = (
    "CONFIG_ARGS",
    "OPT",
    "PY_CFLAGS",
    "PY_LDFLAGS",
    "Py_DEBUG",
    "Py_GIL_DISABLED",
    "WITH_PYMALLOC",
)
_PYTHON = re.compile(r".*/python\d[^/]*/_sysconfigdata[^/]*\.py")
_NUMPY = re.compile(r".*/numpy/__config__\.py")
_LIBRARY = re.compile(
    r"""["'](?P<kind>blas|lapack)["']:\s*\{[^{}]*?["']name["']:\s*["'](?P<name>[^"']+)["']"""
)
# How NumPy names its libraries from 1.26 on, and before.
_OLDER = re.compile(
    r"""^(?P<kind>blas|lapack)(?:_ilp64)?_opt_info\s*=\s*\{[^}\n]*?["']libraries["']:\s*\[["'](?P<name>[^"']+)""",
    re.MULTILINE,
)


def observe(view: View, record: Record) -> None:
    """Put in features such as `python:OPT` and `numpy:blas`."""
    for path, data in view.kept.items():
        if _PYTHON.fullmatch(path):
            held = _variables(data.decode("utf-8", "replace"))
            for name in _VARIABLES:
                record.feature(f"python:{name}", str(held.get(name, "")), "sysconfig", path)
        elif _NUMPY.fullmatch(path):
            text = data.decode("utf-8", "replace")
            for found in (*_LIBRARY.finditer(text), *_OLDER.finditer(text)):
                record.feature(f"numpy:{found['kind']}", found["name"], "numpy.__config__", path)


def _variables(text: str) -> dict[str, object]:
    """The dictionary that such a file assigns; none where it holds anything but texts and numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # an escape that Python does not know is no concern of the reader
            held = ast.literal_eval(text.partition("build_time_vars = ")[2].strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}
