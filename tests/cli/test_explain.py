"""`toolmatrix explain`: whole outputs, and that what it says is in the answer."""

from __future__ import annotations

import shlex

import pytest

from tests.amount import some
from tests.cli.conftest import Cli
from tests.cli.transcript import check, check_without

LINES = {
    "chosen": "explain cuda app==2.1.3 --arch sm_86",
    "inverted": "explain app app==2.1.3 --invert",
    "two-targets": "explain gcc app==2.1.3 --target x86,arm",
    "disputed": "explain python app==2.1.3",
    "absent": "explain cuda app==2.1.3 --target arm",
    "refused": "explain cuda app==2.0.0 python==3.12",
}


@pytest.mark.parametrize("name", LINES)
def test_golden(small: Cli, name: str) -> None:
    assert check(small, name, LINES[name]).code == {"absent": 3, "refused": 1}.get(name, 0)


@pytest.mark.parametrize("form", ["tty", "ascii", "narrow", "json"])
@pytest.mark.parametrize("name", ["chosen", "inverted"])
def test_golden_of_forms(small: Cli, name: str, form: str) -> None:
    check(small, name, LINES[name], form)


@pytest.mark.parametrize("name", LINES)
def test_colour_and_talk_are_all_that_is_left_out(small: Cli, name: str) -> None:
    check_without(small, LINES[name])


def test_a_narrow_screen_is_kept_to(small: Cli) -> None:
    for name in ("chosen", "inverted", "disputed"):
        out = small(*shlex.split(LINES[name]), COLUMNS="60").out
        assert max(map(len, out.splitlines())) <= 60


def test_every_release_is_accounted_for(small: Cli) -> None:
    """What was taken and what was not are together all the releases there are."""
    listed = small("matrix", "--rows", "cuda", "--json").json()["releases"]
    entry = small(*shlex.split(LINES["chosen"]), "--json").json()["explained"][0]
    named = [name for part in entry["not_taken"] for name in part["releases"]]
    assert sorted([entry["version"], *named]) == sorted(part["release"] for part in listed)
    assert len(named) == len(set(named))


def test_it_explains_what_resolve_answers(real: Cli) -> None:
    """For every component of a real answer: the same version, evidence and facts."""
    answer = real("resolve", "tensorflow==2.6.5", "--json").json()["targets"]["x86"]["components"]
    for name, part in some([*answer.items()], 3):
        entry = real("explain", name, "tensorflow==2.6.5", "--json").json()["explained"][0]
        assert entry["version"] == part.get("version", part.get("floor"))
        assert entry["evidence"] == part["evidence"]
        assert sorted({line["fact"] for line in entry["because"]}) == sorted(part["facts"])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("char-flag tensorflow==2.6.5 --target arm", "arm prefers -fsigned-char"),
        ("protobuf tensorflow==2.6.5", "was withdrawn, and is chosen only if named exactly"),
        ("numpy numpy --at 2022-01-01", "was not yet released on 2022-01-01"),
    ],
)
def test_what_is_left_out_has_its_own_reason(real: Cli, line: str, reason: str) -> None:
    (entry,) = real("explain", *line.split(), "--json").json()["explained"]
    assert any(part["why"].endswith(reason) for part in entry["not_taken"])


def test_a_standing_request_is_explained(small: Cli) -> None:
    assert small("explain", "cuda").code == 2
    assert small("explain", "cuda", "app==2.1.3").code == 0
