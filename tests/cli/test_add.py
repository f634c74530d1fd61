"""`toolmatrix add`: a file of facts about a package of one's own, from an index, a wheel or a file of requirements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.harvest import shop
from tests.matrix import small_built_in

FAMILIES = """\
schema: toolmatrix.families/1
packages: {tool: tool}
families: {}
"""
SAID = {"requires-python": ">=3.8"}
WHEEL = shop.wheel("our-lib", "1.1", "py3-none-any", ["tool>=2.0", "other"], said=SAID)
OLD = shop.wheel("our-lib", "1.0", "py3-none-any", ["tool<2.0"], said=SAID)
DAY = {"SOURCE_DATE_EPOCH": "1767312000"}
ASK = ("resolve", "our-lib", "--from", "wheel", "--target", "x86", "--json")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small matrix in the place of the built-in one, and files of a user's own."""
    small_built_in(tmp_path / "root", monkeypatch, FAMILIES)
    folder = here / "index" / "our-lib"
    folder.mkdir(parents=True)
    for file in (WHEEL, OLD):
        (folder / file.name).write_bytes(file.data)
    listed = [
        {"filename": file.name, "url": file.name, "hashes": {}, **SAID} for file in (WHEEL, OLD)
    ]
    page = {"meta": {"api-version": "1.0"}, "name": "our-lib", "files": listed}
    (folder / "index.json").write_text(json.dumps(page))
    (here / WHEEL.name).write_bytes(WHEEL.data)
    (here / "no.whl").write_bytes(b"no")
    (here / "requirements.txt").write_text("tool>=2.0  # the newest\n-r more.txt\nother; x\n")
    return here


@pytest.mark.parametrize(
    ("words", "release", "source"),
    [
        (["our-lib"], "1.1", "Python package index, our-lib: file list and METADATA"),
        (
            ["our-lib", WHEEL.name, "--from", "wheel"],
            "1.1",
            "our-lib: METADATA and contents of a wheel",
        ),
        (
            ["our_lib==2.5", "requirements.txt", "--from", "requirements"],
            "2.5",
            "our-lib: a file of requirements",
        ),
    ],
)
def test_a_file_is_usable_at_once(
    cli: Cli, place: Path, words: list[str], release: str, source: str
) -> None:
    env = {**DAY, "PIP_INDEX_URL": (place / "index").as_uri()}
    run = cli("add", *words, "--json", **env)
    validated(run.json(), "harvest")
    assert (run.code, run.json()["files"][0]["path"]) == (0, "our-lib.yaml")
    assert "it is unreviewed" in run.err
    text = Path("our-lib.yaml").read_text()
    assert "toolmatrix add" in text
    assert source in text
    parts = cli(*ASK, "--matrix", "our-lib.yaml", **env).json()["targets"]["x86"]["components"]
    assert parts["our-lib"]["version"] == release
    assert parts["tool"]["version"] == "2.0"
    assert "harvested" in cli(*ASK[:-1], "--matrix", "our-lib.yaml", **env).out
    # Once more is the same file.
    assert "as before" in cli("add", *words, **env).out
    assert Path("our-lib.yaml").read_text() == text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["our-lib", "--from", "wheel"], 2, "`--from wheel` takes the path of a file of"),
        (["our-lib", WHEEL.name], 2, "`--from index` takes no file"),
        (["our-lib", "no.whl", "--from", "wheel"], 2, "this is not a wheel"),
        (["other-lib", WHEEL.name, "--from", "wheel"], 2, "the wheel is of another package"),
        (["app"], 2, "the matrix has `app` already"),
        (["our lib"], 2, "this is no name of a package"),
        (["our-lib==x", "requirements.txt", "--from", "requirements"], 2, "this is no name of a"),
        (["our-lib", "nothing.txt", "--from", "requirements"], 2, ""),
        (["nothing"], 3, "the package index has no `nothing`"),
    ],
)
def test_what_cannot_be_added_is_one_error(
    cli: Cli, place: Path, words: list[str], code: int, said: str
) -> None:
    run = cli("add", *words, PIP_INDEX_URL=(place / "index").as_uri())
    assert (run.code, run.out, run.err.count("error[")) == (code, "", 1)
    assert said in run.err
    assert not [*place.glob("*.yaml")]


def test_another_file_is_left_alone(cli: Cli, place: Path) -> None:
    (place / "our-lib.yaml").write_text("mine: true\n")
    run = cli("add", "our-lib", WHEEL.name, "--from", "wheel")
    assert (run.code, "another file is in the way" in run.err) == (2, True)
    assert (place / "our-lib.yaml").read_text() == "mine: true\n"
