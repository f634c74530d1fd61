"""`toolmatrix audit --import`: real environments of tiny packages from an index on loopback."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Outcome
from tests.cli.test_documents import validated
from tests.harvest.shop import installable, stock
from tests.images import hostile
from tests.images.hostile import Server
from toolmatrix import resources
from toolmatrix.harvest import environments
from toolmatrix.harvest.environments import Environment, ImportOutcome

pytestmark = [pytest.mark.process, pytest.mark.slow]

SERIES = f"{sys.version_info.major}.{sys.version_info.minor}"
FRONT = """\
schema: toolmatrix.matrix/1
date: 2026-01-02
components:
  target: {title: target, scheme: names, given: true}
  machine: {title: machine, scheme: names, given: true}
  accelerator: {title: accelerator, scheme: names, given: true}
  from: {title: from, scheme: names, given: true}
  app: {title: App, scheme: pep440, framework: true}
  lib: {title: Lib, scheme: pep440}
  python: {title: Python, scheme: series}
targets:
  here: {context: {target: here, machine: MACHINE}, accelerator: none}
rules:
  same-minor: {widens: minor, evidence: derived, reason: a series is alike}
files: [FILES]
""".replace("MACHINE", platform.machine())
FACTS = """\
schema: toolmatrix.facts/1
sources:
  conventions: {title: Conventions, at: "issue 1 of vendor/app", read: 2026-01-01}
  index-app: {title: "Package index, app", at: "package app, final releases 1.0 to 2.0", read: 2026-01-01}
  index-lib: {title: "Package index, lib", at: "package lib, final releases 1.0 to 2.1", read: 2026-01-01}
releases:
  - {id: targets, component: target, source: conventions, evidence: stated, where: list, versions: {here: {rank: 1}}}
  - {id: machines, component: machine, source: conventions, evidence: stated, where: list,
     versions: {MACHINE: {rank: 1}}}
  - {id: accelerators, component: accelerator, source: conventions, evidence: stated, where: list,
     versions: {none: {rank: 1}}}
  - {id: ways, component: from, source: conventions, evidence: stated, where: list,
     versions: {source: {rank: 1}, wheel: {rank: 2}}}
  - {id: pythons, component: python, source: conventions, evidence: stated, where: list,
     versions: {"SERIES": {}}}
  - {id: libs, component: lib, source: index-lib, evidence: artifact, where: list,
     versions: {"1.0": {}, "1.1": {}, "1.2": {}, "2.0": {}, "2.1": {}}}
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
      lib: {as: requires}
    rows:
      - {app: "1.0.0", python: "SERIES", lib: ">=1"}
      - {app: "1.0.1", python: "SERIES", lib: ">=1"}
      - {app: "2.0", python: "SERIES", lib: ">=1"}
  - id: tests
    about: what App was tested with
    source: conventions
    where: line 1
    evidence: tested
    key: app
    columns: {lib: {as: tested}}
    rows:
      - {app: "1.0.1", lib: "1.1"}
""".replace("MACHINE", platform.machine()).replace("SERIES", SERIES)

OPERATIONS = """\
operations:
  app:
    program: |
      import app
      assert app.used() == 1
machine: [cannot open shared object file]
"""
OLD = b"import lib\n\ndef used():\n    return lib.old\n"
NEW = b"import lib\n\ndef used():\n    return 1\n"
LIBS = tuple(
    installable(
        "lib", version, {"lib/__init__.py": b"old = 1\n" if version < "2" else b"new = 1\n"}
    )
    for version in ("1.0", "1.1", "1.2", "2.0", "2.1")
)
APPS = (
    installable("app", "1.0.1", {"app/__init__.py": OLD}, ["lib>=1"]),
    installable("app", "2.0", {"app/__init__.py": NEW}, ["lib>=1"]),
)
TAKEN = "AttributeError: module 'lib' has no attribute 'old'"


class Workshop:
    """A matrix, the index that its releases are from, and programs to run with them."""

    def __init__(self, folder: Path, index: Server) -> None:
        self.folder = folder
        self.index = index
        self.facts = FACTS
        self.files = ["facts.yaml"]
        self.written = folder / "ran.yaml"
        self.operations(OPERATIONS)
        stock(index, "app", APPS)
        stock(index, "lib", LIBS)

    def operations(self, text: str) -> None:
        """What is run."""
        (self.folder / "operations.yaml").write_text(text)

    def app(self, source: bytes) -> None:
        """Another App 2.0."""
        stock(self.index, "app", (APPS[0], installable("app", "2.0", {"app/__init__.py": source})))

    @property
    def matrix(self) -> str:
        """The front page."""
        (self.folder / "facts.yaml").write_text(self.facts)
        front = self.folder / "front.yaml"
        front.write_text(FRONT.replace("FILES", ", ".join(self.files)))
        return str(front)

    def ask(self, cli: Cli, *words: str) -> Outcome:
        """The outcome of an audit."""
        run = cli(
            *("audit", "--import", "--matrix", self.matrix, "--python", sys.executable, *words),
            XDG_CACHE_HOME=str(self.folder / "cache"),
            UV_DEFAULT_INDEX=f"{self.index.url}/simple",
            PIP_CONFIG_FILE="/dev/null",
            SOURCE_DATE_EPOCH="1769817600",
        )
        assert "Traceback" not in run.err
        return run


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    with hostile.running() as index:
        monkeypatch.setattr(resources, "operations_path", lambda: str(tmp_path / "operations.yaml"))
        yield Workshop(tmp_path, index)


def codes(run: Outcome) -> list[tuple[str, str, str]]:
    """Each finding of a document that fits its schema: severity, code and what was raised."""
    document = json.loads(run.out)
    validated(document, "findings")
    return [(one["severity"], one["code"], one["actual"]) for one in document["findings"]]


def test_what_a_newer_package_took_away_is_found_and_becomes_a_fact(
    cli: Cli, shop: Workshop
) -> None:
    run = shop.ask(cli, "--json", "--write", str(shop.written))
    assert run.code == 0, run.err
    # 1.0.0 is not the newest of its series, and not on the index either.
    told = [(one["release"], one["state"], one["pins"]) for one in json.loads(run.out)["imports"]]
    assert told == [
        ("1.0.1", "ran", ["app==1.0.1", "lib==1.1"]),
        ("2.0", "ran", ["app==2.0", "lib==2.1"]),
    ]
    assert codes(run) == [("warning", "TM329", TAKEN)]
    text = shop.written.read_text()
    assert "runs with lib 1.2, fails with 2.0 and 2.1: AttributeError: module ''lib'' has" in text
    assert text.count("id: app-imports-") == 3
    assert "  + app-breaks-lib/1.0.1  app ===1.0.1; lib <2.0; where runs with" in run.err
    # The fact takes effect, for the release that was run and, derived, for the rest of its series.
    shop.files.append("ran.yaml")
    for release, evidence in (("1.0.1", "ran"), ("1.0.0", "derived")):
        asked = ("--matrix", shop.matrix, f"app=={release}", "lib==2.0", "--from", "wheel")
        refused = cli("resolve", *asked)
        assert refused.code == 1
        assert (
            f"Because app {release} does not go with lib 2.0 (only <2.0) ({evidence})"
            in refused.out
        )
    # A second run changes nothing, with the facts in force or without.
    again = shop.ask(cli, "--json", "--write", str(shop.written))
    assert again.code == 0
    assert codes(again) == [("info", "TM329", TAKEN)]
    assert shop.written.read_text() == text


def test_an_answer_that_cannot_be_used_is_an_error(cli: Cli, shop: Workshop) -> None:
    shop.facts = shop.facts.replace('- {app: "1.0.1", lib: "1.1"}', '- {app: "2.0", lib: "1.1"}')
    run = shop.ask(cli, "app==1.0.1", "--json", "--write", str(shop.written))
    assert run.code == 1
    assert codes(run) == [("error", "TM328", TAKEN), ("warning", "TM329", TAKEN)]
    # What it runs with is found from the oldest on, and with that fact the answer is another.
    assert "runs with lib 1.2, fails with 2.0 and 2.1: " in shop.written.read_text()
    shop.files.append("ran.yaml")
    again = shop.ask(cli, "app==1.0.1", "--json", "--write", str(shop.written))
    assert again.code == 0
    assert json.loads(again.out)["imports"][0]["pins"] == ["app==1.0.1", "lib==1.2"]
    assert "id: app-imports-" in shop.written.read_text()


def test_what_never_runs_has_no_bound(cli: Cli, shop: Workshop) -> None:
    shop.app(b"import lib\nlib.never\n")
    run = shop.ask(cli, "app==2.0", "--json", "--write", str(shop.written))
    assert run.code == 1
    assert codes(run) == [
        ("error", "TM328", "AttributeError: module 'lib' has no attribute 'never'")
    ]
    assert not shop.written.exists()


def test_rows_that_were_there_stay(cli: Cli, shop: Workshop) -> None:
    shop.ask(cli, "app==1.0.1", "--write", str(shop.written))
    before = shop.written.read_text()
    kept = [line for line in before.splitlines() if "{id: app" in line]
    shop.ask(cli, "app==2.0", "--write", str(shop.written))
    after = shop.written.read_text().splitlines()
    assert len(kept) == 2
    assert [line for line in after if line in kept] == kept
    assert sum("/2.0/" in line for line in after) == 1


def test_an_interrupted_audit_goes_on_where_it_was(
    cli: Cli, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Environment._run
    ran: list[Sequence[str]] = []

    def interrupted(self: Environment, pins: Sequence[str]) -> ImportOutcome:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(tuple(pins))
        return run(self, pins)

    monkeypatch.setattr(Environment, "_run", interrupted)
    assert shop.ask(cli, "--write", str(shop.written)).code == 130
    assert not shop.written.exists()
    first, ran[:] = list(ran), []

    def counted(self: Environment, pins: Sequence[str]) -> ImportOutcome:
        ran.append(tuple(pins))
        return run(self, pins)

    monkeypatch.setattr(Environment, "_run", counted)
    assert shop.ask(cli, "--write", str(shop.written)).code == 0
    assert ran
    assert not {*first} & {*ran}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            b"import time\ntime.sleep(60)\n",
            "`python` did not finish: an answer within 0.5 seconds",
        ),
        (b"import os\nos.kill(os.getpid(), 4)\n", "ended with status -4"),
        (
            b"open('/nothing/there')\n",
            "FileNotFoundError: [Errno 2] No such file or directory: '/nothing/there'",
        ),
        (
            b"raise ImportError('libx.so.1: cannot open shared object file')\n",
            "ImportError: libx.so.1: cannot open shared object file",
        ),
    ],
)
def test_what_may_be_the_fault_of_the_machine_is_no_fact(
    cli: Cli, shop: Workshop, monkeypatch: pytest.MonkeyPatch, source: bytes, said: str
) -> None:
    monkeypatch.setattr(environments, "PATIENCE", 0.5 if b"sleep" in source else 60)
    shop.app(source)
    run = shop.ask(cli, "app==2.0", "--json", "--write", str(shop.written))
    assert run.code == 0
    assert codes(run) == [("info", "TM330", said)]
    assert not shop.written.exists()
    if said.startswith("ended"):  # It is tried again the next time.
        shop.app(NEW)
        assert codes(shop.ask(cli, "app==2.0", "--json")) == []


def test_a_newer_package_that_ends_the_program_is_told_and_is_no_bound(
    cli: Cli, shop: Workshop
) -> None:
    shop.operations(
        OPERATIONS.replace("app.used() == 1", "hasattr(app.lib, 'old') or app.os.abort()")
    )
    shop.app(b"import os, lib\n\ndef used():\n    return 1\n")
    shop.facts = shop.facts.replace('- {app: "1.0.1", lib: "1.1"}', '- {app: "2.0", lib: "1.1"}')
    run = shop.ask(cli, "app==2.0", "--json", "--write", str(shop.written))
    assert run.code == 0
    assert codes(run) == [("info", "TM330", "ended with status -6")]
    assert f"with Python {SERIES} and lib 2.1 could not be tried" in run.out
    assert "breaks" not in shop.written.read_text()
    assert "also" not in shop.written.read_text().partition("rows:")[2]


def test_what_fails_in_the_program_itself_says_nothing_about_packages(
    cli: Cli, shop: Workshop
) -> None:
    shop.operations(OPERATIONS.replace("app.used() == 1", "__import__('lib').old"))
    run = shop.ask(cli, "app==1.0.1", "--json", "--write", str(shop.written))
    assert codes(run) == [("warning", "TM329", TAKEN)]
    assert "in code of no package" in run.out
    assert "app-breaks" not in shop.written.read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("lib",),
            3,
            "error[TM110]: no operation is known for lib\n  expected: one of app\n",
        ),
        (("wish",), 3, "error[TM110]: "),
        (
            ("app", "--python", "/bin/true"),
            2,
            "error[TM901]: the path is not a Python interpreter\n",
        ),
        (("app", "--online"), 2, "error[TM901]: `--import` and `--online` contradict each other\n"),
    ],
)
def test_bad_words_are_one_error(
    cli: Cli, shop: Workshop, words: tuple[str, ...], code: int, said: str
) -> None:
    run = shop.ask(cli, *words)
    assert run.code == code
    assert run.err.startswith(said)


def test_a_file_of_something_else_is_not_written_to(cli: Cli, shop: Workshop) -> None:
    shop.written.write_text("schema: toolmatrix.facts/1\nstatements: []\n")
    run = shop.ask(cli, "app==2.0", "--write", str(shop.written))
    assert run.code == 2
    assert run.err.startswith("error[TM903]: a file of runs has an unknown key\n")
    assert shop.written.read_text() == "schema: toolmatrix.facts/1\nstatements: []\n"


def test_options_of_it_are_refused_without_it(cli: Cli) -> None:
    run = cli("audit", "--write", "ran.yaml")
    assert run.code == 2
    assert run.err.startswith("error[TM901]: only `--import` takes `--python` and `--write`")
