"""What `-` reads from stdin: requests, and a matrix of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ROOT = Path(__file__).parent.parent.parent
DEBIAN = ROOT / "tests/rendering/fixtures/debian.lock"
LOG = ROOT / "docs/logs/cuda-13.0.log"
OURS = """\
schema: toolmatrix.facts/1
sources: {mine: {title: M, at: "m:p@1", read: 2026-01-01}}
releases: [{id: ours, component: app, source: mine, evidence: stated, where: tags, versions: {"3.0": {}}}]
"""


@pytest.mark.parametrize("command", [["resolve"], ["why-not"], ["explain", "python"]])
def test_requests_stand_one_a_line(small: Cli, command: list[str]) -> None:
    said = small(*command, "app == 2.1.3", "python")
    piped = "# what we build\napp == 2.1.3\n\npython  # any\n"
    assert small(*command, "-", piped=piped) == said
    assert small(*command, "-", "python", piped="app == 2.1.3") == said


def test_a_lock_holds_the_requests_and_not_where_they_came_from(small: Cli, here: Path) -> None:
    assert small("lock", "-", piped="app==2.1.3\n").code == 0
    assert 'request = ["app==2.1.3"]' in (here / "toolmatrix.lock").read_text()


def test_a_matrix_on_top(small: Cli, here: Path) -> None:
    (here / "ours.yaml").write_text(OURS)
    line = ("matrix", "--rows", "app")
    assert small(*line, "--matrix", "-", piped=OURS) == small(*line, "--matrix", "ours.yaml")
    assert small("check", "--json", "--matrix", "-", piped=OURS).code in (0, 1)


LINES = (
    ["resolve", "gcc"],
    ["explain", "python", "app"],
    ["why-not", "app==2.0.0"],
    ["matrix", "--rows", "app"],
    ["facts", "ours"],
    ["lock", "app", "--lock", "-"],
    ["diff", "one.lock", "other.lock"],
    ["render", "--lock", str(DEBIAN), "--stdout"],
    ["stages", "--from-log", str(LOG)],
    ["stages", "diff", str(LOG), str(LOG)],
    ["validate", "dir:folder", "--expect", "gcc==1"],
    ["validate", "dir:folder", "dir:other", "--expect", "gcc==1"],
)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_every_command_reads_it(small: Cli, here: Path, line: list[str]) -> None:
    """`render` and `stages` looked for a file that is called `-`."""
    (here / "ours.yaml").write_text(OURS)
    for name in ("folder", "other"):
        (here / name).mkdir()
    for name, wanted in (("one", "app==2.1.3"), ("other", "app<2")):
        assert small("lock", wanted, "--lock", f"{name}.lock").code == 0
    told = small(*line, "--matrix", "ours.yaml")
    assert told.code < 5
    assert small(*line, "--matrix", "-", piped=OURS) == told
    (here / "ours.yaml").write_text("{")
    broken = small(*line, "--matrix", "ours.yaml")
    assert broken.code == 2
    assert small(*line, "--matrix", "-", piped="{").err == broken.err.replace("ours.yaml", "stdin")


def test_a_mistake_in_it_has_a_place(small: Cli) -> None:
    run = small("resolve", "app", "-m", "-", piped=OURS.replace("where: tags, ", ""))
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("error[TM903]: a list of releases has no `where`\n  --> stdin:3:12\n")


@pytest.mark.parametrize(
    ("words", "piped", "message"),
    [
        (
            ["resolve", "-"],
            "# nothing\n",
            (
                "error[TM901]: no request on stdin\n"
                "  expected: requests such as `tensorflow==2.6.5`, one a line\n"
            ),
        ),
        (
            ["resolve", "-", "-m", "-"],
            "app",
            (
                "error[TM901]: only one thing can be read from stdin\n"
                "  expected: `-` once\n"
                "  found: a request and a matrix\n"
                "help: put one of the two in a file\n"
            ),
        ),
        (
            ["resolve", "-", "-"],
            "app",
            (
                "error[TM901]: only one thing can be read from stdin\n"
                "  expected: `-` once\n"
                "  found: a request and a request\n"
                "help: put one of the two in a file\n"
            ),
        ),
    ],
)
def test_what_cannot_be_read(small: Cli, words: list[str], piped: str, message: str) -> None:
    assert small(*words, piped=piped) == (2, "", message)
