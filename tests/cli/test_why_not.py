"""`toolmatrix why-not`: hard apart from soft, what is allowed, what nobody knows; whole outputs."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.conftest import Cli
from tests.cli.transcript import check, check_without

LINES = {
    "hard-and-soft": "why-not cuda==11.0 --with app==2.1.3 --arch sm_86",
    "soft": "why-not gcc==9 --with app==2.1.3",
    "tested": "why-not gcc==8 --with app==2.1.0",
    "unknown": "why-not tool==1.0 --with app==2.0.0",
    "target": "why-not app==2.0.0 --from wheel --target arm",
}
CODES = {"hard-and-soft": 1, "soft": 4, "tested": 0, "unknown": 4, "target": 1}


@pytest.mark.parametrize("form", ["plain", "json"])
@pytest.mark.parametrize("name", LINES)
def test_golden(small: Cli, name: str, form: str) -> None:
    assert check(small, name, LINES[name], form).code == CODES[name]


@pytest.mark.parametrize("form", ["tty", "ascii", "narrow"])
@pytest.mark.parametrize("name", ["hard-and-soft", "soft"])
def test_golden_of_forms(small: Cli, name: str, form: str) -> None:
    check(small, name, LINES[name], form)


@pytest.mark.parametrize("name", LINES)
def test_colour_and_talk_are_all_that_is_left_out(small: Cli, name: str) -> None:
    check_without(small, LINES[name])


def test_hard_stands_before_soft_and_never_in_one_sentence(small: Cli) -> None:
    cores = small(*shlex.split(LINES["hard-and-soft"]), "--json").json()["cores"]
    assert [core["kind"] for core in cores] == ["hard", "soft"]
    hard, soft = ({fact for line in core["lines"] for fact in line["facts"]} for core in cores)
    assert hard
    assert soft
    assert not hard & soft


def test_it_exits_as_resolve_does(small: Cli) -> None:
    for name, line in LINES.items():
        assert small("resolve", *shlex.split(line)[1:]).code == CODES[name]


def test_unknown_ok_makes_unknown_a_yes_and_nothing_else(small: Cli) -> None:
    for name, line in LINES.items():
        assert small(*shlex.split(line), "--unknown-ok").code == CODES[name] % 4


def test_exit_zero_does_not_make_unknown_a_yes(small: Cli) -> None:
    assert small(*shlex.split(LINES["hard-and-soft"]), "--exit-zero").code == 0
    assert small(*shlex.split(LINES["unknown"]), "--exit-zero").code == 4


def test_allowed_is_said_in_json(small: Cli) -> None:
    told = {name: small(*shlex.split(LINES[name]), "--json").json() for name in LINES}
    assert told["tested"]["allowed"] is True
    assert told["tested"]["untested"] == []
    assert told["soft"]["allowed"] is None
    assert told["soft"]["untested"][0]["kind"] == "soft"
    assert told["unknown"]["allowed"] is None
