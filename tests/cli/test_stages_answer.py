"""`toolmatrix stages` for an answer: a lock or a request chooses the driver, its archs, host compiler and words."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import toolmatrix
from tests import matrix
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.compilation import real as tools
from tests.compilation.test_driver import fake
from toolmatrix.api.locks import Locked
from toolmatrix.compilation.drivers import installed
from toolmatrix.factbase import lookups
from toolmatrix.judging import stage_facts
from toolmatrix.request import compiles

pytestmark = pytest.mark.process

TARGET = {"x86_64": "x86", "aarch64": "arm"}[platform.machine()]
OTHER = {"x86": "arm", "arm": "x86"}[TARGET]


@pytest.fixture
def run(real: Cli, here: Path) -> Cli:
    """A run beside two sources, on a machine whose PATH has host compilers and no driver."""
    shutil.copy(tools.SOURCES / "saxpy.cu", here / "k.cu")
    (here / "v.hip").write_text("__global__ void v() {}\n")
    (here / "bin").mkdir()
    for name in ("g++", "gcc", "as", "ld", "sh"):
        (here / "bin" / name).symlink_to(tools.program(name))
    series = installed._release(tools.program("g++"), dict(os.environ)).partition(".")[0]
    (here / "bin" / f"g++-{series}").symlink_to(tools.program("g++"))
    return lambda *words, **env: real(*words, **{"PATH": str(here / "bin"), **env})


def gcc() -> str:
    return installed._release(tools.program("g++"), dict(os.environ)).partition(".")[0]


def locked(run: Cli, *words: str) -> None:
    outcome = run("lock", *words, "--output", "t.lock")
    assert outcome.code == 0, outcome.err


def codes(document: dict[str, Any]) -> list[str]:
    """The findings about the answer: the code of each, with its severity."""
    return sorted(
        f"{one['code']} {one['severity']}"
        for one in document["findings"]
        if "TM224" <= one["code"] <= "TM230"
    )


def graph(document: Mapping[str, Any]) -> tuple[object, object]:
    """The stages of the only plan: kinds and archs, and who waits for whom."""
    (plan,) = document["plans"]
    return [(one["kind"], one["arch"]) for one in plan["stages"]], plan["edges"]


def asked(run: Cli, *words: str, **env: str) -> dict[str, Any]:
    outcome = run("stages", *words, **env)
    document = outcome.json()
    validated(document, "stages")
    wrong = any(one["severity"] == "error" for one in document["findings"])
    assert outcome.code == int(wrong), outcome.err
    return document


def own_nvcc() -> tuple[Path, str, str]:
    """The nvcc of this machine, its version, and the release of the toolkit that it is part of."""
    nvcc = Path(tools.nvcc())
    version = installed.version("nvcc", str(nvcc), dict(os.environ))
    return nvcc, version, stage_facts.releases(matrix.index(), "cuda", version)[-1]


def test_an_answer_is_given_to_the_driver_of_its_release(run: Cli) -> None:
    nvcc, version, release = own_nvcc()
    locked(
        run,
        f"cuda=={release}",
        "--target",
        TARGET,
        "--device",
        "8.6,9.0",
        "--with",
        f"gcc=={gcc()}",
        "--accelerator",
        "cuda",
    )
    home = {"CUDA_HOME": str(nvcc.parent.parent)}
    live = asked(run, "k.cu", "--lock", "t.lock", "--json", "--", "-c", **home)
    assert live["plans"][0]["version"] == version
    assert {one["arch"] for one in live["plans"][0]["stages"]} >= {"sm_86", "sm_90"}
    assert codes(live) == []
    assert live["answer"]["planned_by"] is None
    # What facts alone say of that release is what its driver does.
    order = compiles.stage_order(matrix.index(), "cuda", release)
    assert order
    there = lookups.attributes(matrix.index(), "cuda", order.captured)["nvcc"]
    assert there.split(".")[0] == version.split(".")[0]
    # What the command line says wins, and is told.
    other = asked(run, "k.cu", "--lock", "t.lock", "--json", "--", "-c", "-arch=sm_90", **home)
    assert {one["arch"] for one in other["plans"][0]["stages"]} & {"sm_86", "sm_90"} == {"sm_90"}
    assert codes(other) == ["TM227 error"]


def test_a_release_that_is_not_here_is_planned_by_captures(run: Cli) -> None:
    """Fails where `--lock` is accepted and ignored: any driver of this machine would be asked."""
    request = ("tensorflow==2.6.5", "--target", "x86", "--device", "8.6", "--from", "source")
    locked(run, *request)
    outcome = run("stages", "k.cu", "--lock", "t.lock", "--", "-c")
    assert outcome.code == 0
    first, *_ = outcome.out.splitlines()
    assert first.startswith(
        "nvcc 11.2.152: k.cu -> k.o, host compiler gnu 7, planned from captures"
    )
    assert (
        "info[TM225]: this machine has no nvcc of cuda 11.2.2: planned from captures" in outcome.out
    )
    lock = asked(run, "k.cu", "--lock", "t.lock", "--json", "--", "-c")
    assert lock["answer"]["planned_by"] == {
        "captured": "11.2.2",
        "evidence": "ran",
        "facts": ["nvcc-stages/9.1"],
    }
    again = asked(run, "k.cu", "--for", request[0], *request[1:], "--json", "--", "-c")
    assert graph(again) == graph(lock)
    # A request is asked for devices, and says of each whether it runs the code.
    assert [one["names"][0] for one in again["findings"] if one["code"] == "TM222"] == ["8.6"]
    for words in (["--raw"], ["--script"], ["--ninja"], ["--run"]):
        refused = run("stages", "k.cu", "--lock", "t.lock", *words, "--", "-c")
        assert refused.code == 5, words
        assert "a driver, because only a driver prints its commands word for word" in refused.err
    assert run("stages", "k.cu", "--lock", "t.lock", "--", "-ptx").code == 5
    assert run("stages", "k.o", "--lock", "t.lock").code == 5
    missing = asked(run, "none.cu", "--lock", "t.lock", "--json", "--", "-c")
    assert "TM212" in [one["code"] for one in missing["findings"]]
    held = toolmatrix.lock("tensorflow==2.6.5", target="x86", device="8.6", from_="source")
    assert isinstance(held, Locked)
    found = toolmatrix.stages(sources="k.cu", flags="-c", lock=held.lock)
    assert graph(found.to_json()) == graph(lock)


@pytest.mark.parametrize(
    ("request_", "words", "expected"),
    [
        # Between two captures that agree, and beyond the last.
        ("cuda==12.8.1 --device 9.0", ["-c"], ["TM225 warning"]),
        # Between captures that do not.
        ("cuda==9.0.176 --device 7.0", ["-c"], ["TM225 warning"]),
        (
            "cuda==11.2.2 --device 8.6",
            ["-c", "-arch=sm_80"],
            ["TM225 info", "TM227 error", "TM227 warning"],
        ),
        (
            "cuda==11.2.2 --device 8.6",
            ["-c", "-ccbin", "g++-9"],
            ["TM225 info", "TM226 error"],
        ),
        ("numpy==1.26.4 --from wheel --accelerator none", ["-c"], ["TM230 error"]),
    ],
)
def test_each_difference_from_the_answer_is_a_finding(
    run: Cli, request_: str, words: list[str], expected: list[str]
) -> None:
    locked(run, *request_.split(), "--target", "x86")
    assert codes(asked(run, "k.cu", "--lock", "t.lock", "--json", "--", *words)) == expected


def test_what_is_for_another_platform_is_left_out_and_told(run: Cli) -> None:
    nvcc, _, release = own_nvcc()
    locked(
        run,
        f"cuda=={release}",
        "--target",
        OTHER,
        "--device",
        "9.0",
        "--accelerator",
        "cuda",
        "--with",
        f"gcc=={gcc()}",
    )
    home = {"CUDA_HOME": str(nvcc.parent.parent)}
    found = codes(asked(run, "k.cu", "--lock", "t.lock", "--json", "--", "-c", **home))
    assert found[-1] == "TM229 warning"
    # Plain `char` is the compiler's own on x86, and a flag on ARM.
    assert set(found[:-1]) == ({"TM228 warning"} if OTHER == "arm" else set())


def test_of_several_drivers_the_one_of_the_release_is_taken(here: Path) -> None:
    say = "echo 'Cuda compilation tools, release 12.4, V{}'"
    places = [here / name for name in ("a", "b", "c")]
    for place, version in zip(places, ("12.0.140", "12.4.99", "12.4.131"), strict=True):
        fake(place, "nvcc", say.format(version))
    path = os.pathsep.join(map(str, places))
    held = [
        one
        for one in installed.drivers("nvcc", {"PATH": path})
        if Path(one.program).parent in places
    ]
    assert [one.version for one in held] == ["12.0.140", "12.4.99", "12.4.131"]


def test_a_named_driver_of_another_release_is_asked_and_told(run: Cli) -> None:
    nvcc = tools.nvcc()
    locked(run, "tensorflow==2.6.5", "--target", "x86", "--device", "8.6")
    found = codes(asked(run, "k.cu", "--lock", "t.lock", "--driver", nvcc, "--json", "--", "-c"))
    assert found[0] == "TM224 error"
    refused = run("stages", "k.cu", "--lock", "t.lock", "--driver", tools.program("g++"))
    assert refused.code == 2


@pytest.mark.large
def test_a_lock_of_rocm_is_given_to_hipcc(run: Cli, real: Cli, here: Path) -> None:
    hipcc = tools.program("hipcc")
    version = installed.version("hipcc", hipcc, dict(os.environ))
    scale = matrix.index().component("rocm").versions
    held = [one for one in scale if compiles.driver_version(matrix.index(), "rocm", one) == version]
    locked(run, f"rocm=={held[0] if held else '5.2.3'}", "--target", "amd", "--arch", "gfx90a")
    live = real(
        "stages", "v.hip", "--lock", "t.lock", "--json", "--", "-c", PATH=os.environ["PATH"]
    ).json()
    planned = asked(run, "v.hip", "--lock", "t.lock", "--json", "--", "-c", PATH=str(here / "bin"))
    assert [one[:5] for one in codes(planned)] == ["TM225"]
    assert graph(planned) == graph(live)
    assert codes(live) == []


def test_a_log_is_compared_with_a_lock(run: Cli) -> None:
    locked(run, "cuda==12.4.1", "--target", "x86", "--device", "8.6", "--with", "gcc==12")
    log = str(Path(__file__).parents[2] / "docs" / "logs" / "cuda-11.8.log")
    found = codes(asked(run, "--from-log", log, "--lock", "t.lock", "--json"))
    assert found == ["TM224 error", "TM227 error", "TM227 warning"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("k.cu --lock t.lock --for cuda==12.4.1", "contradict each other"),
        ("diff a b k.cu --lock t.lock", "takes neither"),
        ("k.cu --lock none.lock", "none.lock"),
        ("k.cu --lock t.lock --target amd", "no such target"),
        ("v.hip --lock t.lock", "no target for HIP"),
    ],
)
def test_answers_that_cannot_be_meant_are_refused(run: Cli, line: str, says: str) -> None:
    locked(run, "cuda==12.4.1", "--target", "x86", "--device", "8.6")
    outcome = run("stages", *line.split())
    assert outcome.code == 2
    assert says in outcome.err


def test_a_request_without_an_answer_is_refused_as_resolve_does(run: Cli) -> None:
    outcome = run("stages", "k.cu", "--for", "cuda==11.0.3", "--target", "x86", "--arch", "sm_86")
    assert outcome.code == 1
    assert "sm_86" in outcome.out + outcome.err
