"""Findings about plans in words: whole answers as they are printed, and a sentence for every code."""

from __future__ import annotations

import jsonschema
import pytest

from tests.judging.stage_cases import index, judged, made, of_plan
from tests.judging.test_stages import REACHED
from tests.schemas import shipped
from toolmatrix.judging import stages
from toolmatrix.report import findings as words
from toolmatrix.report.terminal import Terminal

SCREEN = Terminal(width=80)


def printed(name: str, *devices: str) -> str:
    """What is printed about a log of the corpus, without the sources below."""
    return words.plan_text(index(), judged(name, *devices), SCREEN).partition("\n\n[1]")[0]


def test_devices_are_answered_with_the_reason() -> None:
    assert printed("nvcc-13.0.88__c-one-arch", "8.6", "9.0", "7.5") == (
        """\
device 8.6  yes      by the code for `sm_80` (stated) [1]
device 9.0  yes      by PTX `compute_80`, which the driver compiles at load
                     time; requires a driver of cuda 13.0 or later (driver
                     580.65.06) (stated) [2][3]
device 7.5  no       no code for it: `sm_80` is for another major version;
                     `compute_80` is PTX for a newer device (stated) [1]

runs on 8.6 and 9.0, not on 7.5"""
    )


def test_several_invocations_are_answered_together() -> None:
    found = stages.findings([made("elf:80", "ptx:80")] * 2, index(), ["9.0"])
    assert words.plan_text(index(), found, SCREEN).partition("\n\n[1]")[0] == (
        """\
device 9.0  yes      2 of 2 invocations with device code run on it
                     invocations 1 and 2: by PTX `compute_80`, which the driver
                     compiles at load time; requires a driver of cuda 13.0 or
                     later (driver 580.65.06) (stated) [1][2]

runs on 9.0"""
    )


def test_nothing_to_load_is_said() -> None:
    assert printed("nvcc-13.0.88__preprocess-E", "9.0") == (
        """\
device 9.0  unknown  there is no code that a device could load

not known for 9.0
"""
    )


def test_what_is_worst_comes_first_with_its_place_and_a_way_out() -> None:
    assert printed("nvcc-11.8.89__deprecated-arch") == (
        """\
error[TM210]: cuda 11.8.0 does not support gcc 12.2.0 as host compiler, only gcc
  <=11 (artifact) [1]
  --> nvcc-11.8.89__deprecated-arch.log:14 (stage 2)
  help: name another with `-ccbin` (gcc <=11), or switch the check off with
        `--allow-unsupported-compiler`
warning[TM202]: cuda 11.8.0 will drop `compute_35` and `sm_35` (ran) [2]
  --> nvcc-11.8.89__deprecated-arch.log:13 (stage 1)
  help: leave it out, or keep PTX of it for old devices while the toolkit
        supports it"""
    )


def test_nothing_found_is_nothing_said() -> None:
    assert words.plan_text(index(), [], SCREEN) == ""


@pytest.mark.parametrize(
    ("version", "arch", "said"),
    [
        (
            "13.0.88",
            "sm_70",
            "cuda 13.0.1 to 13.0.3 {} any more: nvcc 12.9.86 was the last to support it",
        ),
        ("11.2.152", "sm_90", "cuda 11.2.2 {} yet: nvcc 11.8.89 is the first to support it"),
        ("10.1.243", "sm_20", "cuda 10.1.243 {} any more: nvcc 7.5.18 was the last to support it"),
    ],
)
def test_what_a_toolkit_takes_is_said_with_who_took_it(version: str, arch: str, said: str) -> None:
    held = REACHED["TM201"].replace(
        version=version, stages=(REACHED["TM201"].stages[0].replace(arch=arch),)
    )
    (found,) = [one for one in of_plan(held, index()) if one.code == "TM201"]
    assert found.sentence(words.IndexWords(index())) == said.format(
        f"does not support the arch `{arch}`"
    )


def test_every_code_has_words_and_fits_the_schema() -> None:
    shape = {"$ref": "#/$defs/FindingEntry", "$defs": shipped("findings")["$defs"]}
    jsonschema.Draft202012Validator.check_schema(shape)
    finding = jsonschema.Draft202012Validator(shape)
    held = [
        one for plan in REACHED.values() for one in of_plan(plan, index(), ["8.0", "7.5", "12.0"])
    ]
    for entry in words.plan_document(index(), held):
        finding.validate(entry)
        assert entry["text"][-1] not in ". "
        assert "  " not in entry["text"]
        assert not entry["help"].endswith(".")
    assert {one.code for one in held} >= set(REACHED)


def test_findings_of_a_log_of_unknown_place_have_none() -> None:
    (entry,) = words.plan_document(index(), of_plan(made("elf:80"), index()))
    assert (entry["where"], entry["plan"], entry["stage"]) == (None, 0, 0)
