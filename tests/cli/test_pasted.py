"""Commands that a refusal prints resolve where it was printed, whatever is set there by files and variables."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


class Place(NamedTuple):
    """A line that is refused, the variables and the files around it, and the targets of the ways out."""

    line: str
    files: dict[str, str]
    env: dict[str, str]
    targets: list[str]


PLACES = {
    "another target is set": Place(
        "resolve numpy==1.19.5 python==3.12 --target x86",
        {"toolmatrix.toml": 'target = "arm"\n'},
        {},
        ["x86"],
    ),
    "the target is set": Place(
        "resolve numpy==1.19.5 python==3.12", {}, {"TOOLMATRIX_TARGET": "aarch64"}, ["arm"]
    ),
    "evidence is set": Place(
        "resolve numpy==1.19.5 python==3.12",
        {"toolmatrix.toml": 'min-evidence = "artifact"\n'},
        {},
        ["x86"],
    ),
    "something is held": Place(
        "resolve tensorflow==2.6.5 --with python==3.12",
        {"toolmatrix.toml": 'with = ["numpy==1.19.5"]\n'},
        {},
        ["x86"],
    ),
    "an environment is named": Place(
        "resolve numpy==1.19.5 python==3.12 --environment port",
        {"toolmatrix.toml": '[environments.port]\ntarget = ["arm"]\n'},
        {},
        ["arm"],
    ),
    "a folder is named": Place(
        "resolve numpy==1.19.5 python==3.12 -C there",
        {"toolmatrix.toml": 'target = ["x86"]\n', "there/toolmatrix.toml": 'target = ["arm"]\n'},
        {},
        ["arm"],
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_ways_out_resolve_where_they_are_printed(real: Cli, here: Path, name: str) -> None:
    place = PLACES[name]
    for file, text in place.files.items():
        (here / file).parent.mkdir(exist_ok=True)
        (here / file).write_text(text)
    refused = real(*shlex.split(place.line), "--json", **place.env)
    assert refused.code == 1, refused
    repairs = refused.json()["repairs"]
    assert repairs
    for repair in repairs:
        again = real(*shlex.split(repair["command"])[1:], "--json", **place.env)
        assert again.code == 0, repair["command"]
        assert list(again.json()["targets"]) == place.targets
        # What is told beside an answer is looked for where it is asked for by itself.
        beside = {"skipped", "other_way", "fully_known"}
        answer = {key: part for key, part in again.json().items() if key not in beside}
        assert answer == repair["resolution"]
