"""A front page of one's own: its targets, accelerators and ways are words of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import SMALL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

EDGE = "  edge: {context: {target: edge, machine: aarch64}, accelerator: xpu}\n"


@pytest.fixture
def front(here: Path) -> str:
    """The small matrix with a target and an accelerator more, as a file here."""
    text = (SMALL / "matrix.yaml").read_text()
    (here / "matrix.yaml").write_text(text.replace("  arm: {context", f"{EDGE}  arm: {{context"))
    facts = (SMALL / "facts.yaml").read_text()
    facts = facts.replace("arm: {rank: 1}}", "arm: {rank: 1}, edge: {rank: 0}}")
    facts = facts.replace("cuda: {rank: 1}}", "cuda: {rank: 1}, xpu: {rank: 0}}")
    (here / "facts.yaml").write_text(facts)
    return "matrix.yaml"


def test_a_further_target_is_resolved_locked_and_compared(real: Cli, front: str) -> None:
    said = ("-m", front)
    answer = real("resolve", "app==2.1.3", "--target", "x86,edge", "--json", *said)
    assert answer.code == 0
    assert list(answer.json()["targets"]) == ["edge", "x86"]
    assert answer.json()["request"]["targets"] == ["x86", "edge"]
    assert real("resolve", "app==2.1.3", "--json", *said, TOOLMATRIX_TARGET="x86,EDGE") == answer
    assert real("lock", "app==2.1.3", "--target", "x86,edge", *said).code == 0
    assert real("diff", "toolmatrix.lock", "--target", "x86,edge", *said).code == 0
    assert real("diff", "toolmatrix.lock", "--target", "amd64,edge", *said).code == 0


def test_a_further_accelerator_is_one(real: Cli, front: str) -> None:
    """Of `xpu` the built-in matrix says nothing, and this one does."""
    line = ("resolve", "app==2.1.3", "--accelerator", "xpu")
    assert real(*line).code == 4
    answer = real(*line, "--target", "edge", "-m", front, "--json")
    assert (answer.code, answer.json()["request"]["accelerator"]) == (0, {"edge": "xpu"})


@pytest.mark.parametrize(
    ("text", "env", "message"),
    [
        (
            "",
            {"TOOLMATRIX_TARGET": "amd"},
            "error[TM902]: bad value for the environment variable `TOOLMATRIX_TARGET`\n",
        ),
        (
            'target = "amd"\n',
            {},
            "error[TM902]: bad value for `target`\n  --> toolmatrix.toml:1:1\n",
        ),
    ],
)
def test_a_target_that_it_lacks_is_refused_where_it_was_said(
    real: Cli, here: Path, front: str, text: str, env: dict[str, str], message: str
) -> None:
    (here / "toolmatrix.toml").write_text(text)
    told = real("resolve", "app", "-m", front, **env)
    rest = "  expected: one of x86, edge, arm\n  found: `amd`\nhelp: did you mean `arm`?\n"
    assert (told.code, told.out, told.err) == (2, "", message + rest)
