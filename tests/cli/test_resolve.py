"""`toolmatrix resolve`: whole outputs in every form, what its options change, and what stays the same."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.cli.transcript import check, check_without, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

LINES = {
    "answer": "resolve app==2.1.3 --arch sm_86",
    "refused": "resolve app==2.0.0 python==3.12 --with gcc==8",
    "unknown": "resolve app==2.9",
    "unlisted": "resolve app==2.1.2",
}


@pytest.mark.parametrize("form", ["plain", "tty", "ascii", "narrow", "json"])
@pytest.mark.parametrize("name", LINES)
def test_golden(small: Cli, name: str, form: str) -> None:
    outcome = check(small, name, LINES[name], form)
    assert outcome.code == {"answer": 0, "refused": 1, "unknown": 4, "unlisted": 3}[name]
    if form == "ascii":
        assert (outcome.out + outcome.err).isascii()


@pytest.mark.parametrize("name", LINES)
def test_colour_and_talk_are_all_that_is_left_out(small: Cli, name: str) -> None:
    check_without(small, LINES[name])


@pytest.mark.parametrize("name", LINES)
def test_colours_change_no_letter(small: Cli, name: str) -> None:
    plain, tty = read(small, LINES[name]), read(small, LINES[name], "tty")
    assert "\x1b[" in tty.out + tty.err
    assert re.sub(r"\x1b\[[\d;]*m", "", tty.out + tty.err) == plain.out + plain.err


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("two-targets", "resolve app==2.1.3 --target x86,arm --align python"),
        ("device", "resolve app --device 8.6"),
        ("toolkit", "resolve cuda"),
        ("one-sided", "resolve cuda --target x86,arm"),
        ("depth", "resolve app==2.1.3 --arch sm_86 --depth 1"),
        ("oldest", "resolve app --prefer oldest"),
        ("wheel", "resolve app --from wheel --target arm"),
        ("at-a-day", "resolve app --at 2020-12-31"),
        ("alone", "resolve gcc"),
    ],
)
def test_golden_of_options(small: Cli, name: str, line: str) -> None:
    assert check(small, name, line).code == (1 if name == "wheel" else 0)


def test_the_hint_is_talk(small: Cli) -> None:
    outcome = small("resolve", "app")
    assert outcome.err.startswith("hint: `toolmatrix lock`")
    assert "hint" not in outcome.out


def test_an_output_file_holds_what_stdout_would(small: Cli, here: Path) -> None:
    plain = small("resolve", "app==2.1.3")
    written = small("resolve", "app==2.1.3", "-o", "answer.txt")
    assert (written.code, written.out, written.err) == (0, "", plain.err)
    assert (here / "answer.txt").read_text() == plain.out


def test_a_refusal_goes_to_the_output_too(small: Cli, here: Path) -> None:
    line = shlex.split(LINES["refused"])
    assert small(*line, "-o", "answer.txt") == (1, "", "")
    assert (here / "answer.txt").read_text() == small(*line).out
    assert small(*line, "--exit-zero").code == 0


def test_a_standing_request_is_answered(small: Cli, here: Path) -> None:
    (here / "toolmatrix.toml").write_text('request = ["app==2.1.3"]\ntarget = ["arm"]\n')
    assert small("resolve") == small("resolve", "app==2.1.3", "--target", "arm")
    assert "x86, from" in small("resolve", "--target", "x86").out


def test_variables_are_options(small: Cli) -> None:
    said = small("resolve", "app", "--target", "arm", "--json")
    assert small("resolve", "app", TOOLMATRIX_TARGET="arm", TOOLMATRIX_JSON="1") == said


def test_the_order_of_words_changes_no_choice(small: Cli) -> None:
    one = small("resolve", "app", "cuda", "--json", "--with", "gcc==8").json()
    other = small("--with", "gcc==8", "--json", "resolve", "app", "cuda").json()
    assert one == other


def test_keeping_a_lock_keeps_its_choices(small: Cli, here: Path) -> None:
    assert small("lock", "app==2.1.3", "--with", "cuda==11.2.0").code == 0
    kept = small("resolve", "app==2.1.3", "--keep", "toolmatrix.lock", "--json").json()
    free = small("resolve", "app==2.1.3", "--json").json()
    assert kept["targets"]["x86"]["components"]["cuda"]["version"] == "11.2.0"
    assert free["targets"]["x86"]["components"]["cuda"]["version"] == "11.2.2"
    assert (here / "toolmatrix.lock").is_file()


def test_every_line_has_evidence_and_a_note(small: Cli) -> None:
    """Each branch of a tree names how well it is known and ends with a note that is printed below."""
    out = small("resolve", "app==2.1.3", "--target", "x86,arm", COLUMNS="200").out
    notes = set(re.findall(r"^(\[\d+\])", out, re.MULTILINE))
    words = "ran|artifact|tested|stated|derived|reported|unknown"
    rows = [row for row in out.splitlines() if re.match("[├└│]|app ", row)]
    assert len(rows) > 12
    for row in rows:
        assert re.search(rf"  ({words})  ", row), row
        assert set(re.findall(r"\[\d+\]", row)) <= notes
        assert row.endswith("]")
    numbers = [int(mark) for mark in re.findall(r"\[(\d+)\]", out.partition("\n[1]")[0])]
    first = list(dict.fromkeys(numbers))
    assert first == sorted(first)


def test_json_is_sorted_ascii_and_one_document(small: Cli) -> None:
    out = small("resolve", "app==2.1.3", "--json").out
    assert out.isascii()
    assert out == json.dumps(json.loads(out), sort_keys=True, indent=2) + "\n"


def test_ways_out_carry_what_they_need(small: Cli, here: Path) -> None:
    """A matrix of the user's own is named in every command, which works only with it."""
    (here / "our own.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        'sources: {mine: {title: M, at: "m:p@1", read: 2026-01-01}}\n'
        'releases: [{id: ours, component: app, source: mine, evidence: stated, where: tags, versions: {"3.0": {}}}]\n'
    )
    refused = small("resolve", "app==3.0", "gcc==7", "gcc==8", "--matrix", "our own.yaml")
    commands = re.findall(r"^    toolmatrix (.*)$", refused.out, re.MULTILINE)
    assert refused.code == 1
    assert commands
    for command in commands:
        assert command.endswith("--matrix 'our own.yaml'")
        # No fact joins an app of the user's own and a compiler.
        assert small(*shlex.split(command)).code == 4
        assert small(*shlex.split(command)[:-2]).code == 4


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_prose_keeps_to_the_width(small: Cli, width: int) -> None:
    """Reasons and notes are wrapped; commands are not, so that they can be pasted."""
    out = small(*shlex.split(LINES["refused"]), COLUMNS=str(width)).out
    prose = [line for line in out.splitlines() if not line.startswith("    toolmatrix ")]
    assert max(map(len, prose)) <= width
    assert out.split() == small(*shlex.split(LINES["refused"])).out.split()


@pytest.mark.parametrize("width", [50, 60, 80, 100])
@pytest.mark.parametrize("line", ["app==2.1.3 --arch sm_86", "app==2.1.3 --target x86,arm"])
def test_a_tree_keeps_to_the_screen_and_says_the_same(small: Cli, line: str, width: int) -> None:
    """Whatever the width, the letters are the same in the same order."""
    out, wide = (
        small("resolve", *line.split(), COLUMNS=str(columns)).out for columns in (width, 300)
    )
    assert max(map(len, out.splitlines())) <= width
    plain = [re.sub(r"[\s├└─│]", "", text) for text in (out, wide)]
    assert plain[0] == plain[1]


def test_an_image_is_named_once_and_a_flag_is_known_as_well_as_its_arch(real: Cli) -> None:
    out = real("resolve", "tensorflow==2.6.5", "--arch", "sm_86").out
    assert out.count("nvidia/cuda:11.2.2-cudnn8-devel-ubuntu20.04") == 1
    assert "distro ubuntu20.04  artifact  base-image is ubuntu20.04  [" in out
    assert re.search(
        r"-gencode=arch=compute_86,code=sm_86  ran +nvcc makes sm_86 code  \[\d\]", out
    )


def test_what_an_option_did_not_do_is_said(small: Cli) -> None:
    line = ("resolve", "app==2.1.3", "--accelerator", "none")
    assert small(*line, "--json").json()["caveats"] == []
    newest = "--prefer newest: tested combinations were not preferred"
    assert small(*line, "--prefer", "newest").out.endswith(f"\n{newest}\n")
    run = small(*line, "--prefer", "newest", "--json").json()
    assert run["caveats"] == [{"kind": "tested-not-preferred", "text": newest, "components": []}]


def test_a_minimum_of_evidence_is_what_an_answer_is_worth_at_least(small: Cli) -> None:
    line = ("resolve", "app==2.1.3", "--accelerator", "none")
    answer = small(*line, "--json").json()
    # A tool is a free choice: any other one would do as well.
    assert (answer["evidence"], answer["targets"]["x86"]["components"]["tool"]["evidence"]) == (
        "unknown",
        "unknown",
    )
    refused = small(*line, "--min-evidence", "derived")
    assert refused.code == 1
    assert "and no fact supports tool at --min-evidence derived\n" in refused.out


@pytest.mark.parametrize("name", ["numpy", "h5py"])
def test_a_package_is_as_new_where_its_old_releases_have_no_wheel(real: Cli, name: str) -> None:
    # What needs no Python is not preferred to what does: nobody asked for none.
    found = real("resolve", name, "--target", "arm,x86", "--json").json()["targets"]
    versions = {held["components"][name]["version"] for held in found.values()}
    assert len(versions) == 1


def test_a_package_beside_a_framework_leaves_its_toolkit_alone(real: Cli) -> None:
    alone, beside = (
        real("resolve", "torch==2.6.0", *more, "--json").json()["targets"]["x86"]["components"]
        for more in ((), ("numpy",))
    )
    told = {name: alone[name]["version"] for name in ("cuda", "cudnn", "gcc")}
    assert {name: beside[name]["version"] for name in told} == told


def test_a_withdrawn_release_is_taken_where_it_is_pinned_and_nowhere_else(real: Cli) -> None:
    """As pip does (PEP 592): transformers 4.57.0 was withdrawn, and sglang 0.5.3 requires it alone."""

    def chosen(line: str) -> str:
        outcome = real("resolve", *line.split(), "--json")
        # Which FlashInfer goes with this sglang nobody says.
        assert outcome.code in (0, 4), outcome.err
        components = outcome.json()["targets"]["x86"]["components"]
        return str(components["transformers"]["version"])

    assert chosen("sglang==0.5.3") == chosen("transformers==4.57.0") == "4.57.0"
    # A range that begins with it has other releases.
    assert chosen("transformers>=4.57.0,<4.57.2") == "4.57.1"
    assert chosen("sglang==0.5.2") != "4.57.0"
