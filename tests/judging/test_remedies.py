"""Remedies of failures as they were reported: the cure that helps is offered, and none that a version makes wrong."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.logs import captured as logs
from toolmatrix.api.requests import OpenMatrix, request_context
from toolmatrix.commands.diagnose import diagnose_log
from toolmatrix.judging.diagnose import diagnose
from toolmatrix.logs import log, signatures
from toolmatrix.report.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.request.read import RequestContext

BOOK = signatures.load()
ISSUES = [
    row
    for name in (
        "first",
        "apart",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
    )
    for row in logs.issues(name)
]
REMEDIES: dict[str, dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "remedies.yaml").read_text(), yaml.CSafeLoader
)


@pytest.fixture(scope="session")
def place(cache: str) -> RequestContext:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache)
        return request_context(None)


def found(place: RequestContext, lines: list[str]) -> tuple[list[Mapping[str, Any]], str]:
    """The findings of a log, and what is offered as one line of words."""
    report = diagnose_log(seen(lines), "", 0, OpenMatrix(index=place.index))
    words = " ".join(report.text(Terminal(width=10_000)).split())
    return report.to_json()["findings"], words


def seen(lines: list[str]) -> log.ObservedLog:
    return log.observe(io.BytesIO("\n".join([*lines, ""]).encode()), BOOK, "x.log")


@pytest.mark.parametrize("row", ISSUES, ids=lambda row: row["issue"])
def test_a_reported_line_names_its_components_or_nothing(
    place: RequestContext, row: Mapping[str, Any]
) -> None:
    causes = diagnose(place.index, BOOK, seen(logs.lines_of(row)), {}, lambda _: None).causes
    if not row["between"]:
        assert [cause.signature for cause in causes] == []
    named = {side.component for cause in causes for side in cause.between}
    assert {*row["between"]} <= named


@pytest.mark.long
@pytest.mark.parametrize(
    "row", [row for row in ISSUES if row["between"]], ids=lambda row: row["issue"]
)
def test_a_reported_line_is_told_with_the_cure_that_helps(
    place: RequestContext, row: Mapping[str, Any]
) -> None:
    _, words = found(place, logs.lines_of(row))
    assert re.search(row["says"], words), words
    assert not (row.get("never") and re.search(row["never"], words)), words


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, row in REMEDIES.items() if "lines" in row])
def test_the_cure_that_a_version_makes_wrong_is_not_offered(
    place: RequestContext, name: str
) -> None:
    row = REMEDIES[name]
    causes, words = found(place, row["lines"])
    assert [cause["signature"] for cause in causes] == [name]
    assert re.search(row["says"], words), words
    assert not (row.get("never") and re.search(row["never"], words)), words


ENVIRONMENTS = {
    "rocm": [
        "PyTorch version: 2.5.1+rocm6.2",
        "ROCM used to build PyTorch: 6.2.41133-dd7f95766",
        "Libc version: glibc-2.35",
        "Python version: 3.10.12 (main, Feb  4 2025, 14:57:36) [GCC 11.4.0] (64-bit runtime)",
        "GPU models and configuration: AMD Radeon RX 7900 XTX (gfx1100)",
    ],
    "tensorflow": [
        "TensorFlow version: 2.10.0",
        "Python 3.9.16 (main, Mar  8 2023, 14:00:05)",
        "| NVIDIA-SMI 525.85.12    Driver Version: 525.85.12    CUDA Version: 12.0     |",
    ],
    "old": [
        "PyTorch version: 2.1.2+cu118",
        "CUDA used to build PyTorch: 11.8",
        "Libc version: glibc-2.31",
        "Python version: 3.9.18 (main, Sep 11 2023, 13:41:44) [GCC 11.2.0] (64-bit runtime)",
        "GPU models and configuration: GPU 0: NVIDIA GeForce GTX 1080 Ti",
        "Nvidia driver version: 470.223.02",
    ],
}


def contradictions(components: Mapping[str, Any], cause: Mapping[str, Any]) -> list[str]:
    """What the remedies of a cause contradict in the versions of its log."""
    sides = {side["component"] for side in cause["between"]}
    found = []
    for way in filter(None, (cause["fix"], cause["instead"])):
        answer, request = way["answer"], way["request"]
        last = {name: versions[-1] for name, versions in components.items()}
        # A line may tell of another GPU than the report above it.
        alike = not any(
            "cpu" in version or "cu1" in version for version in components.get("torch", ())
        )
        if "torch-rocm" in last and alike and "device" in last and last["device"].startswith("gfx"):
            found += ["cuda"] * ("cuda" in answer)
        if "driver" in last:
            found += ["rocm"] * ("rocm" in answer)
            if "driver" not in sides and "driver" in answer:
                found += ["driver"] * (numbers(answer["driver"]) > numbers(last["driver"]))
        if "torch" not in last and "torch" not in sides:
            found += ["torch"] * any(re.match(r"torch\b", word) for word in request)
        if "python" not in sides and "python" in answer:
            found += ["python"] * (numbers(answer["python"]) != numbers(last["python"])[:2])
    return found


def numbers(version: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", version)]


@pytest.mark.long
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_remedy_contradicts_the_environment_of_its_log(place: RequestContext, name: str) -> None:
    for lines in (entry["lines"][:2] for entry in logs.variants().values()):
        for line in lines:
            log = seen([*ENVIRONMENTS[name], line])
            report = diagnose_log(log, "", 0, OpenMatrix(index=place.index)).to_json()
            for cause in report["findings"]:
                assert contradictions(report["components"], cause) == [], line


def test_every_signature_says_which_cure_is_wrong_or_why_none_is() -> None:
    assert {*REMEDIES} == {one.name for one in BOOK.signatures}
    assert all(row["naive"] for row in REMEDIES.values())
    assert sum("lines" in row for row in REMEDIES.values()) > 60
