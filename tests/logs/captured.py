"""Logs of failures and of none, from files beside this one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
CLEAN = sorted((HERE / "clean").glob("*.log"))


@cache
def failures() -> list[dict[str, Any]]:
    """Real lines that failures left, with what they are between."""
    held: list[dict[str, Any]] = yaml.load((HERE / "failures.yaml").read_text(), yaml.CSafeLoader)[
        "failures"
    ]
    return held


@cache
def decoys() -> dict[str, str]:
    """Logs of builds and runs that went well, with words of failures in them."""
    held: dict[str, str] = yaml.load((HERE / "decoys.yaml").read_text(), yaml.CSafeLoader)["decoys"]
    return held


@cache
def variants() -> dict[str, dict[str, list[str]]]:
    """Further lines of each signature, and lines that are unlike it."""
    held: dict[str, dict[str, list[str]]] = yaml.load(
        (HERE / "variants.yaml").read_text(), yaml.CSafeLoader
    )
    return held


def noise(count: int, seed: int = 0) -> list[str]:
    """So many lines of a build that nothing is wrong with, the same for a seed; they name no version."""
    draw = random.Random(seed)
    kinds = (
        "[{0}/9000] Building CXX object core/CMakeFiles/core.dir/error_codes_{1}.cc.o",
        "  CC      drivers/gpu/fatal_{1}.o",
        "[{0} / 9,000] Compiling core/kernels/not_found_{1}_op.cc; 3s local",
        "/usr/bin/c++ -O2 -Wall -Wno-narrowing -fsigned-char -c -o obj/k{1}.o src/k{1}.cc",
        "src/k{1}.cc:{0}:7: warning: unused variable 'x{1}' [-Wunused-variable]",
        "test_{1} ... ok",
        "-- Looking for symbol_{1} - not found",
        "",
    )
    return [
        draw.choice(kinds).format(draw.randrange(1, 9000), draw.randrange(10**6))
        for _ in range(count)
    ]


@cache
def reported() -> list[tuple[tuple[str, ...], str]]:
    """Further lines of failures as programs write them, and the components that they are between."""
    rows = (HERE / "reported.tsv").read_text().splitlines()[1:]
    return [
        (tuple(between.split()), line) for between, _, line in (row.split("\t", 2) for row in rows)
    ]


@cache
def issues(name: str) -> list[dict[str, Any]]:
    """Lines of public issues with what a person would say of each; docs/diagnose.md says which were seen when."""
    path = HERE / "issues" / f"{name}.yaml"
    held: list[dict[str, Any]] = yaml.load(path.read_text(), yaml.CSafeLoader)["issues"]
    return held


def lines_of(row: Mapping[str, Any]) -> list[str]:
    """The lines of an issue, with those that stand around the one that it is about."""
    return [*row.get("above", ()), row["line"], *row.get("below", ())]
