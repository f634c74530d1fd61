"""The package indexes that harvesters ask: the settings of pip and uv, read as pip reads its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from toolmatrix.harvest import families
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.transport import Session

OWN, OLD, NAMED = ".config/pip/pip.conf", ".pip/pip.conf", "named.conf"
CASES = {
    "a user's file": ({OWN: "[global]\nindex-url = https://own/"}, {}, ["https://own/"]),
    "the legacy file": ({OLD: "[global]\nindex-url = https://old/"}, {}, ["https://old/"]),
    "the newer before the legacy one": (
        {OLD: "[global]\nindex-url = https://old/", OWN: "[global]\nindex_url = https://own/"},
        {},
        ["https://own/"],
    ),
    "XDG_CONFIG_HOME": (
        {"xdg/pip/pip.conf": "[global]\nindex-url = https://xdg/"},
        {"XDG_CONFIG_HOME": "xdg"},
        ["https://xdg/"],
    ),
    "the file that is named before a user's": (
        {OWN: "[global]\nindex-url = https://own/", NAMED: "[global]\nindex-url = https://named/"},
        {"PIP_CONFIG_FILE": NAMED},
        ["https://named/"],
    ),
    "no file at all": (
        {OWN: "[global]\nindex-url = https://own/"},
        {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "https://variable/"},
        ["https://variable/"],
    ),
    "what is for `pip install` alone": (
        {OWN: "[install]\nindex-url = https://install/\n[global]\nindex-url = https://global/"},
        {},
        ["https://install/"],
    ),
    "several more": (
        {
            OWN: "[global]\nindex-url = https://one/\nextra-index-url =\n  https://two/\n  https://three/"
        },
        {},
        ["https://one/", "https://two/", "https://three/"],
    ),
    "a variable before a file": (
        {OWN: "[global]\nindex-url = https://one/\nextra-index-url = https://two/"},
        {"PIP_EXTRA_INDEX_URL": "https://three/"},
        ["https://one/", "https://three/"],
    ),
    "variables of uv": (
        {OWN: "[global]\nindex-url = https://one/"},
        {"UV_DEFAULT_INDEX": "https://uv/", "UV_INDEX": "named=https://more/"},
        ["https://uv/", "https://more/"],
    ),
}


def placed(home: Path, files: dict[str, str], variables: dict[str, str]) -> dict[str, str]:
    """The environment of a home with these files; values that name a file of it are made whole."""
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    whole = {
        name: str(home / text) if (home / text).exists() else text
        for name, text in variables.items()
    }
    return {"HOME": str(home), "XDG_CONFIG_DIRS": str(home / "none"), "PATH": "", **whole}


@pytest.fixture
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = families._pip_files
    monkeypatch.setattr(
        families, "_pip_files", lambda env: [one for one in paths(env) if env["HOME"] in one]
    )


@pytest.mark.usefixtures("_no_settings_of_this_machine")
@pytest.mark.parametrize("case", CASES)
def test_indexes_come_from_settings(tmp_path: Path, case: str) -> None:
    files, variables, urls = CASES[case]
    assert families.indexes(placed(tmp_path, files, variables)).urls == tuple(urls)


@pytest.mark.usefixtures("_no_settings_of_this_machine")
@pytest.mark.parametrize("text", ["no section", "[global]\nno value", "[global]\n\xe9\x00"])
def test_a_file_that_pip_cannot_read_says_nothing(tmp_path: Path, text: str) -> None:
    env = placed(tmp_path, {OWN: text, NAMED: "[global]\nindex-url = https://named/"}, {})
    assert families.indexes(env | {"PIP_CONFIG_FILE": str(tmp_path / NAMED)}).urls == (
        "https://named/",
    )


@pytest.mark.process
@pytest.mark.parametrize("case", [name for name in CASES if "uv" not in name])
def test_pip_says_the_same(tmp_path: Path, case: str) -> None:
    files, variables, _ = CASES[case]
    env = placed(tmp_path, files, variables)
    line = [sys.executable, "-m", "pip", "config", "list"]
    said = subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout
    lines = [one.partition("=") for one in said.splitlines()]
    of_pip = {key: shlex.split(value.replace("\\n", " ")) for key, _, value in lines}
    own = families._pip(env)
    for name in ("index-url", "extra-index-url"):
        keys = [f"{section}.{name}" for section in (":env:", "install", "global")]
        decisive = next((of_pip[key] for key in keys if key in of_pip), [])
        assert own.get(name, "").split() == " ".join(decisive).split()


def test_a_saved_index_is_a_directory_or_an_address(tmp_path: Path) -> None:
    context = HarvestContext(session=Session(), day=date(2026, 11, 23), place=str(tmp_path))
    assert families.index_urls(context) == (tmp_path.as_uri(),)
    address = "https://index.example/simple"
    assert families.index_urls(context.replace(place=address)) == (address,)
