"""Real tools for tests: where they are, or why a test that needs one is skipped. With CI set nothing may be missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

SOURCES = Path(__file__).parent / "sources"

PACKAGES = {
    "nvcc": "the extra `nvcc` of this package (`pip install -e '.[test,nvcc]'`)",
    "hipcc": "the Debian package hipcc",
    "ninja": "the Debian package ninja-build",
    "g++": "the Debian package g++",
    "make": "the Debian package make",
    "rpmbuild": "the Debian package rpm",
    "db5.3_load": "the Debian package db5.3-util",
    "skopeo": "the Debian package skopeo",
    "zsh": "the Debian package zsh",
    "fish": "the Debian package fish",
    "dot": "the Debian package graphviz",
    "groff": "the Debian package groff-base",
    "mandoc": "the Debian package mandoc",
    "mkdocs": "the extra `docs` of this package (`pip install -e '.[test,docs]'`)",
}


def program(name: str) -> str:
    """The path of a tool on PATH; the test is skipped, or fails with CI set, where there is none."""
    return shutil.which(name) or _missing(name)


def nvcc() -> str:
    """The path of the nvcc that the extra installs beside this interpreter, with a host compiler at hand."""
    program("g++")
    try:
        spec = importlib.util.find_spec("nvidia")
    except ValueError:
        spec = None
    places = spec.submodule_search_locations if spec else None
    found = [path for place in places or () for path in Path(place).glob("*/bin/nvcc")]
    return str(found[0]) if found else _missing("nvcc")


def _missing(name: str) -> NoReturn:
    why = f"{name} is missing: install {PACKAGES[name]}"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
