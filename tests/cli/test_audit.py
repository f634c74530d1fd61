"""`toolmatrix audit`: errors of every kind are planted, and each is found; a sound matrix has none."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import matrix
from tests.amount import part
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.golden import VARIABLE, assert_golden
from tests.harvest.shop import stock, wheel
from tests.images import hostile
from tests.images.hostile import Server
from toolmatrix import resources
from toolmatrix.factbase.index import Index
from toolmatrix.judging import sweep

FRONT = """\
schema: toolmatrix.matrix/1
date: 2026-01-02
components:
  target: {title: target, scheme: names, given: true}
  machine: {title: machine, scheme: names, given: true}
  accelerator: {title: accelerator, scheme: names, given: true}
  from: {title: from, scheme: names, given: true}
  app: {title: App, scheme: pep440, framework: true}
  tool: {title: Tool, scheme: pep440}
  python: {title: Python, scheme: series}
targets:
  x86: {context: {target: x86, machine: x86_64}, accelerator: none}
files: [facts.yaml]
"""

FACTS = """\
schema: toolmatrix.facts/1
sources:
  conventions: {title: Conventions, at: "issue 1 of vendor/app", read: 2026-01-01}
  index-app: {title: "Package index, app", at: "package app, final releases 1.0 to 2.0", read: 2026-01-01}
  index-tool: {title: "Package index, tool", at: "package tool, final releases 1.0 to 2.0", read: 2026-01-01}
  tree: {title: App, at: "vendor/app:versions.txt@COMMIT", read: 2026-01-01}
releases:
  - {id: targets, component: target, source: conventions, evidence: stated, where: list, versions: {x86: {rank: 1}}}
  - {id: machines, component: machine, source: conventions, evidence: stated, where: list,
     versions: {x86_64: {rank: 1}}}
  - {id: accelerators, component: accelerator, source: conventions, evidence: stated, where: list,
     versions: {none: {rank: 1}}}
  - {id: ways, component: from, source: conventions, evidence: stated, where: list,
     versions: {source: {rank: 1}, wheel: {rank: 2}}}
  - {id: pythons, component: python, source: conventions, evidence: stated, where: list,
     versions: {"3.11": {}, "3.12": {}}}
  - {id: tools, component: tool, source: index-tool, evidence: artifact, where: list,
     versions: {"1.0": {}, "2.0": {}}}
tables:
  - id: apps
    about: releases of App
    source: index-app
    evidence: artifact
    where: list of files
    key: app
    defines: releases
    columns:
      python: {as: requires, context: {from: wheel}, says: "wheels for Python {value}"}
      tool: {as: requires}
    rows:
      - {app: "1.0", python: 3.11-3.12, tool: "<2"}
      - {app: "2.0", python: 3.11-3.12, tool: ">=2"}
  - id: trees
    about: what the tree of App says
    source: tree
    evidence: artifact
    where: line 1
    key: app
    columns: {tool: {as: tested}}
    rows:
      - {app: "2.0", tool: "2.0"}
"""

EPOCH = "1769817600"  # 2026-01-31
APPS = (
    wheel("app", "1.0", "cp311-abi3-manylinux_2_17_x86_64", ["tool<2"]),
    wheel("app", "2.0", "cp311-abi3-manylinux_2_17_x86_64", ["tool>=2"]),
)
TOOLS = (wheel("tool", "1.0", "py3-none-any"), wheel("tool", "2.0", "py3-none-any"))


class Planted:
    """A matrix, the index that its releases are from, and a clone of what its tree is."""

    def __init__(self, folder: Path, index: Server) -> None:
        self.folder = folder
        self.index = index
        self.clone = folder / "clones" / "vendor" / "app"
        self.clone.mkdir(parents=True)
        (self.clone / "versions.txt").write_text("tool 2.0\n")
        self._git("init", "-q")
        self._git("add", ".")
        self._git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "versions")
        commit = self._git("rev-parse", "HEAD").strip()
        self.facts = FACTS.replace("COMMIT", commit[:12])
        stock(index, "app", APPS)
        stock(index, "tool", TOOLS)

    def _git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.clone), *words], check=True, capture_output=True, text=True
        ).stdout

    @property
    def url(self) -> str:
        """The address that settings name."""
        return f"{self.index.url}/simple"

    def plant(self, old: str, new: str) -> None:
        """Replace a text of the facts."""
        assert old in self.facts
        self.facts = self.facts.replace(old, new)

    def write(self) -> str:
        """The path of the front page."""
        (self.folder / "facts.yaml").write_text(self.facts)
        front = self.folder / "front.yaml"
        front.write_text(FRONT)
        return str(front)


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Planted]:
    with hostile.running() as index:
        yield Planted(tmp_path, index)


def ask(cli: Cli, planted: Planted, *words: str, epoch: str = EPOCH) -> tuple[int, dict[str, str]]:
    """The exit code, and the text of each finding by its code."""
    run = cli(
        *("audit", "--matrix", planted.write(), "--online"),
        *("--from", str(planted.folder / "clones"), "--json", *words),
        SOURCE_DATE_EPOCH=epoch,
        UV_DEFAULT_INDEX=planted.url,
        PIP_CONFIG_FILE="/dev/null",
    )
    assert run.err == "", run.err
    document = json.loads(run.out)
    validated(document, "findings")
    return run.code, {one["code"]: one["text"] for one in document["findings"]}


@pytest.mark.process
def test_a_sound_matrix_has_no_finding(cli: Cli, planted: Planted) -> None:
    assert ask(cli, planted) == (0, {})


def _wrong_pin(planted: Planted) -> None:
    planted.plant(
        '{app: "2.0", python: 3.11-3.12, tool: ">=2"}',
        '{app: "2.0", python: 3.11-3.12, tool: "1.0"}',
    )
    planted.plant('- {app: "2.0", tool: "2.0"}', '- {app: "1.0", tool: "2.0"}')


def _missing_release(planted: Planted) -> None:
    stock(planted.index, "app", (*APPS, wheel("app", "3.0", "py3-none-any")))


def _vanished_row(planted: Planted) -> None:
    stock(planted.index, "app", APPS[1:])


def _not_at_its_source(planted: Planted) -> None:
    planted.plant('- {app: "2.0", tool: "2.0"}', '- {app: "1.0", tool: "1.0"}')


def _refused_wheel(planted: Planted) -> None:
    planted.plant('{app: "1.0", python: 3.11-3.12,', '{app: "1.0", python: "3.11",')


PLANTED: tuple[tuple[Callable[[Planted], None], str, str, int], ...] = (
    (_wrong_pin, "TM325", "uv does not resolve the answer for app 2.0 on x86 as wheel", 1),
    (_missing_release, "TM322", "the index lists app `3.0`, which the matrix does not know", 0),
    (_vanished_row, "TM323", "the index no longer lists app 1.0, which was read there", 1),
    (_not_at_its_source, "TM326", "vendor/app:versions.txt@", 0),
    (_refused_wheel, "TM324", "the index has wheels of app 1.0 for Python 3.12 on x86_64", 1),
)


@pytest.mark.process
@pytest.mark.parametrize(("plant", "code", "text", "exit_code"), PLANTED)
def test_each_planted_error_is_found(
    cli: Cli,
    planted: Planted,
    plant: Callable[[Planted], None],
    code: str,
    text: str,
    exit_code: int,
) -> None:
    plant(planted)
    ended, found = ask(cli, planted)
    assert code in found, found
    assert found[code].startswith(text)
    assert ended == exit_code


@pytest.mark.process
def test_a_stale_source_is_found(cli: Cli, planted: Planted) -> None:
    _, found = ask(cli, planted, epoch="1775001600")  # 2026-04-01
    assert list(found) == ["TM321"]


@pytest.mark.process
def test_a_family_below_its_floor_is_found(cli: Cli, planted: Planted) -> None:
    newer = tuple(wheel("tool", f"{major}.0", "py3-none-any") for major in range(3, 12))
    stock(planted.index, "tool", (*TOOLS, *newer))
    _, found = ask(cli, planted)
    assert found["TM320"] == "tool: 2 of 11 published releases are known, 18 %"


@pytest.mark.process
def test_a_package_that_is_gone_is_withdrawn_as_a_whole(cli: Cli, planted: Planted) -> None:
    del planted.index.answers["/simple/tool/"]
    ended, found = ask(cli, planted)
    assert ended == 1
    assert found["TM323"] == "the index no longer lists tool, which was read there"


@pytest.mark.process
def test_an_index_that_fails_is_told_once(cli: Cli, planted: Planted) -> None:
    planted.index.answers["/simple/app/"] = hostile.Reply(500)
    run = cli(
        *("audit", "--matrix", planted.write(), "--online"),
        UV_DEFAULT_INDEX=planted.url,
        PIP_CONFIG_FILE="/dev/null",
        SOURCE_DATE_EPOCH=EPOCH,
    )
    assert run.code == 5
    assert run.err.startswith("error[TM512]: ")


def test_a_component_nobody_knows_is_refused(cli: Cli) -> None:
    run = cli("audit", "nothing-like-it")
    assert run.code == 3
    assert run.err.startswith("error[TM110]: unknown component `nothing-like-it`")


HEAD = """\
# What the matrix covers

Made by `toolmatrix audit --format md`, which [audit.md](audit.md) describes: releases that are known and that the
package index listed when it was last harvested, builds, ways with an answer, without one and undecided on each target,
and how well the answers are known (of what is no framework: its facts).

"""


@pytest.fixture(scope="module")
def outcomes() -> dict[sweep.Release, sweep.ReleaseOutcome]:
    """What came of each release of the built-in matrix."""
    return {}


@pytest.fixture
def judged_once(
    real: Cli,
    _loaded_once: None,
    outcomes: dict[sweep.Release, sweep.ReleaseOutcome],
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:
    """A run in one process on the built-in matrix, of which each release is judged for the first command alone."""
    judge = sweep.judge_release

    def once(index: Index, release: sweep.Release, luck: dict[str, int]) -> sweep.ReleaseOutcome:
        if release not in outcomes:
            outcomes[release] = judge(index, release, luck)
        return outcomes[release]

    monkeypatch.setattr(sweep, "judge_release", once)
    return lambda *argv, **env: real(*argv, "--jobs=1", **env)


def drawn(index: Index) -> set[str]:
    """The frameworks of which each release is judged."""
    components = index.header["components"]
    return {*part([name for name, entry in components.items() if entry["framework"]], 6)}


def sampled(index: Index, every: list[sweep.Release]) -> list[sweep.Release]:
    """All releases of the frameworks that are drawn, and of each other component the newest and one in eight."""
    whole = drawn(index)
    newest = {component: place for place, (component, _) in enumerate(every)}
    return [
        release
        for place, release in enumerate(every)
        if release[0] in whole or place == newest[release[0]] or place % 8 == 0
    ]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.sweep
def test_the_built_in_matrix_is_sound(judged_once: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    # The workflow `audit` judges the others too, once a week.
    every = sweep.releases
    monkeypatch.setattr(sweep, "releases", lambda index: sampled(index, every(index)))
    run = judged_once("check", "--json")
    document = run.json()
    validated(document, "findings")
    assert run.code == 0
    assert document["summary"]["frameworks"] >= 300
    unexplained = [one["text"] for one in document["findings"] if one["code"] == "TM105"]
    assert unexplained == []
    severe = [one["text"] for one in document["findings"] if one["severity"] == "error"]
    assert severe == []
    paths = {one["where"]["path"].partition("/")[0] for one in document["findings"]}
    assert paths <= {"matrix", "matrix.yaml"}


@pytest.mark.long
@pytest.mark.sweep
def test_the_page_of_coverage_is_what_the_command_finds(judged_once: Cli) -> None:
    # A path from the root stands for itself.
    page = resources.matrix_root() / Path("docs/coverage.md")
    components = matrix.index().header["components"]
    left_out = {name for name, entry in components.items() if entry["framework"]}
    left_out -= left_out if VARIABLE in os.environ else drawn(matrix.index())
    names = [name for name in components if name not in left_out] if left_out else []
    run = judged_once("audit", *names, "--format", "md")
    # Two tables, and the packages whose code was not read.
    made = HEAD + "\n\n".join(run.out.split("\n\n")[:3]) + "\n"
    if not left_out:
        assert_golden(str(page), made)
    rows = page.read_text().splitlines(keepends=True)
    assert made == "".join(row for row in rows if left_out.isdisjoint(row.split(" ")[1:2]))
