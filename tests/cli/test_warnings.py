"""Warnings of `toolmatrix validate` in every form, `--strict`, and secrets that no command shows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.cli.test_validate import GOOD, LOCK, save
from tests.judging.test_images import seen, with_feature
from toolmatrix.lockfile import lock_file

BAKED = "s3cr3t-Correct.Horse"
STEP = f"RUN --network=none DB_PASSWORD={BAKED} ./build"
WARNED = with_feature(
    with_feature(GOOD, "foreign-program", *seen("amd64", seen_by="elf", where="opt/app/server")),
    "env:DB_PASSWORD",
    *seen(BAKED, seen_by="configuration", where="Env DB_PASSWORD"),
).replace(history=(*GOOD.history, ("sha256:last", STEP)))


@pytest.fixture
def images(here: Path) -> Path:
    (here / "toolmatrix.lock").write_text(lock_file.text(LOCK))
    save(here, "good", GOOD)
    save(here, "warned", WARNED)
    return here


@pytest.mark.usefixtures("images")
def test_a_warning_stands_beside_the_checks_and_changes_no_exit_code(real: Cli) -> None:
    run = real("validate", "inventory:warned.json")
    assert run.code == 0
    lines = [" ".join(line.split()) for line in run.out.splitlines() if line.startswith("warn")]
    assert lines == [
        "warn foreign-program amd64 a program for another processor TM412",
        "warn secret DB_PASSWORD a secret that everybody with the image can read TM416",
    ]
    assert "2 warned" in run.out
    assert "help: foreign-program: use the program for the platform of the image" in run.out


@pytest.mark.usefixtures("images")
def test_strict_takes_warnings_for_failures(real: Cli) -> None:
    assert real("validate", "inventory:good.json", "--strict").code == 0
    run = real("validate", "inventory:warned.json", "--strict", "--json")
    failed = [one["code"] for one in run.json()["verdicts"] if one["verdict"] == "FAIL"]
    assert (run.code, failed) == (1, ["TM412", "TM416"])
    only = real("validate", "inventory:warned.json", "--strict", "--only", "component")
    assert only.code == 0


def test_every_form_knows_warnings(real: Cli, images: Path) -> None:
    ask = partial(real, "validate", "inventory:warned.json")
    document = ask("--json").json()
    validated(document, "verdicts")
    assert (document["outcome"], document["summary"]["warn"]) == ("yes", 2)
    assert {one["severity"] for one in document["verdicts"] if one["verdict"] == "warn"} == {
        "warning"
    }
    suite = ET.fromstring(ask("--format", "junit").out)[0]  # noqa: S314 - made just before
    assert (suite.get("failures"), len(suite.findall("testcase/system-out"))) == ("0", 2)
    results = ask("--format", "sarif").json()["runs"][0]["results"]
    assert [one["ruleId"] for one in results if one["level"] == "warning"] == ["TM412", "TM416"]
    summary = images / "summary.md"
    said = ask("--format", "github", GITHUB_STEP_SUMMARY=str(summary)).out
    assert [
        line.partition("title=")[2][:5] for line in said.splitlines() if "::warning" in line
    ] == [
        "TM412",
        "TM416",
    ]
    assert "TM412" in summary.read_text()
    assert ask("--format", "html").out.count('<tr class="warn">') == 2


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize(
    "words",
    [
        *(("validate", "inventory:warned.json", "--format", form) for form in
          ("text", "json", "jsonl", "junit", "sarif", "github", "html")),
        ("validate", "inventory:warned.json", "--strict"),
        ("validate", "inventory:warned.json", "--expect", "env==DB_PASSWORD=x"),
        ("inventory", "inventory:warned.json", "--all"),
        ("inventory", "inventory:warned.json", "--json"),
        ("diff", "inventory:good.json", "inventory:warned.json", "--all"),
        ("diff", "inventory:good.json", "inventory:warned.json", "--json"),
    ],
)  # fmt: skip
def test_no_command_shows_a_secret(real: Cli, words: tuple[str, ...]) -> None:
    run = real(*words)
    assert run.out
    assert BAKED not in run.out + run.err


@pytest.mark.usefixtures("images")
def test_the_step_that_brought_another_version_is_told_without_its_secret(
    real: Cli, here: Path
) -> None:
    layer = "sha256:last"
    other = WARNED.replace(components={**WARNED.components, "numpy": seen("1.24.4", layer=layer)})
    save(here, "other", other)
    run = real("validate", "inventory:other.json")
    assert "1.24.4 came in with `RUN --network=none DB_PASSWORD=*** ./build`" in " ".join(
        run.out.split()
    )


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("code", [f"TM{number}" for number in range(412, 420)])
def test_each_warning_has_its_page(real: Cli, code: str) -> None:
    page = real("rule", code)
    assert page.code == 0
    assert code in page.out
    assert "warning" in page.out
