"""The site: a page of the reference for whatever is declared, and links that lead somewhere."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import reference

import toolmatrix
from tests.compilation.real import program
from toolmatrix.command import COMMANDS, all_options, every_format
from toolmatrix.harvest.families import families
from toolmatrix.report.rules import load_rules

OPTIONS = all_options()
ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)#]+\.md)\)")


@cache
def declared(folder: str) -> set[str]:
    """The names that have to have a page."""
    if folder == "components":
        heads = toolmatrix.open_matrix().index.header["components"]
        return {name for name, head in heads.items() if not head["variant_of"]}
    return {
        "commands": {*COMMANDS},
        "options": {option.key for option in OPTIONS.values()},
        "formats": {*every_format()},
        "codes": {*load_rules()},
        "families": {*families()},
    }[folder]


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name == "components"))
        for name in reference.SECTIONS
    ],
)
def test_whatever_is_declared_has_a_page(folder: str) -> None:
    section = reference.SECTIONS[folder]()
    assert {*section.pages} == declared(folder)
    for title, line, text in section.pages.values():
        assert title
        assert line
        for link in LINK.findall(text):
            room, name = posixpath.split(posixpath.normpath(posixpath.join(folder, link)))
            assert Path(name).stem in declared(room), link


def test_a_command_s_page_has_its_options_and_an_option_s_its_commands() -> None:
    commands, options = reference.SECTIONS["commands"](), reference.SECTIONS["options"]()
    for command in COMMANDS.values():
        _, _, text = commands.pages[command.name]
        assert all(f"(../options/{one.key}.md)" in text for one in command.options.values())
        assert all(f"\n{example}\n" in text for example in command.examples)
    for option in OPTIONS.values():
        _, _, text = options.pages[option.key]
        takers = [one.name for one in COMMANDS.values() if option.name in one.options]
        if len(takers) == len(COMMANDS):
            assert "- commands: every command" in text
        else:
            assert re.findall(r"commands/([\w-]+)\.md", text) == takers
        assert (f"- variable: `{option.variable}`" in text) != option.cli_only


def test_signs_of_markdown_in_words_are_letters() -> None:
    _, line, _ = reference.SECTIONS["options"]().pages["output"]
    assert line == "Write the result to this file"
    _, _, text = reference.SECTIONS["commands"]().pages["resolve"]
    assert "\\[default: text\\]" in text


def test_no_link_of_a_page_leads_to_a_folder_beside_it() -> None:
    """The site has pages and files of `docs`, and its builder warns of what is neither."""
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "contributing").glob("*.md")]
    assert len(pages) > 30
    assert [
        (page.name, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
        if (page.parent / link).is_dir()
        and (page.parent / link).resolve().is_relative_to(ROOT / "docs")
    ] == []


@pytest.mark.long
@pytest.mark.process
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """As CONTRIBUTING.md says, with an explorer that was made before."""
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "index.html").write_text("<!doctype html><title>explorer</title>")
    site = tmp_path / "site"
    if find_spec("mkdocs") is None:
        program("mkdocs")
    words = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(site),
    ]
    more = {"TOOLMATRIX_EXPLORER": str(tmp_path / "made"), "NO_MKDOCS_2_WARNING": "1"}
    more["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
    env = os.environ | more
    ended = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    first = (site / "index.html").read_text()
    assert 'src="pictures/resolve.svg"' in first
    # Neither fonts nor scripts of another origin.
    assert not re.findall(r"""(?:src|<link[^>]*href)=["']?https?:""", first)
    assert (site / "explorer" / "app" / "index.html").is_file()
    assert '<a href="app/">' in (site / "explorer" / "index.html").read_text()
    for path in ("repository/CONTRIBUTING", "map", "reference/components/torch"):
        assert (site / path / "index.html").is_file()
    assert (site / "repository/toolmatrix/schemas/search.schema.json").is_file()
    assert not [*site.glob("site/*")]
