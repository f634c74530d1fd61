"""`toolmatrix doctor` on a captured machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.inspection.machines import Captured
from tests.judging.test_machine import FILES, OUTPUTS, X86, changed
from toolmatrix.inspection import host
from toolmatrix.judging.machine import CHECKS
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import Lock, LockedEnvironment

EPOCH = "1796083200"  # 2026-12-01
LOCK = Lock(
    matrix_digest="sha256:" + "0" * 64,
    matrix_date="2026-01-01",
    environments={"default": LockedEnvironment(request=("tensorflow",), targets={"x86": X86})},
)


@pytest.fixture(autouse=True)
def _captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "HERE", Captured(FILES, OUTPUTS))


def test_a_ready_machine_is_told_line_by_line(real: Cli) -> None:
    run = real("doctor", SOURCE_DATE_EPOCH=EPOCH)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[0] == "this machine  linux/amd64"
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["pass", "engine", "docker"],
        ["pass", "platforms", "linux/amd64,"],
        ["pass", "gcc", "9.4.0"],
    ]


def test_a_lock_makes_a_lack_wrong(real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "toolmatrix.lock").write_text(lock_file.text(LOCK))
    assert real("doctor", SOURCE_DATE_EPOCH=EPOCH).code == 0
    monkeypatch.setattr(host, "HERE", changed("python3 --version", "Python 3.12.1"))
    run = real("doctor", "--json", SOURCE_DATE_EPOCH=EPOCH)
    assert run.code == 1
    validated(run.json(), "verdicts")
    wrong = [one for one in run.json()["verdicts"] if one["verdict"] == "FAIL"]
    assert [(one["name"], one["code"]) for one in wrong] == [("python", "TM503")]
    assert run.json()["lock"]["target"] == "x86"


def test_what_decides_may_be_unknown(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "other.lock").write_text(lock_file.text(LOCK))
    monkeypatch.setattr(host, "HERE", changed("python3 --version", "Python 3"))
    assert real("doctor", "--lock", "other.lock").code == 4
    assert real("doctor", "--lock", "none.lock").code == 2
    assert real("doctor", "--lock", "other.lock", "--target", "arm").code == 3


def test_only_some_checks(real: Cli) -> None:
    run = real("doctor", "--only", "engine,memory", "--json")
    assert [one["name"] for one in run.json()["verdicts"]] == ["engine", "memory"]
    assert real("doctor", "--only", "engin").code == 3


def test_checks_are_listed(real: Cli) -> None:
    lines = real("doctor", "--list-checks").out.splitlines()
    assert [line.split()[0] for line in lines] == list(CHECKS)
    document = real("doctor", "--list-checks", "--json").json()
    validated(document, "checks")
    assert list(document["checks"]) == sorted(CHECKS)


@pytest.mark.parametrize("form", ["junit", "github", "html"])
def test_every_form_is_made(real: Cli, form: str) -> None:
    run = real("doctor", "--format", form)
    assert run.code == 0
    assert "docker 27.1.1" in run.out or form in ("github", "junit")


def test_a_request_is_for_this_machine(real: Cli) -> None:
    run = real("resolve", "torch", "--device", "host", "--from", "wheel", "--json")
    named = real(
        *("resolve", "torch", "--device", "8.6", "--with", "driver==470.57.02", "--target", "x86"),
        *("--from", "wheel", "--json"),
    )
    assert (run.code, named.code) == (0, 0)
    assert run.json()["targets"] == named.json()["targets"]
    # What is named beside it stays.
    other = real(
        *("resolve", "torch", "--device", "host", "--with", "driver==580.65.06"),
        *("--from", "wheel", "--json"),
    )
    assert "driver==580.65.06" in json.dumps(other.json()["request"])
    assert "470.57.02" not in other.out


def test_a_file_is_judged_for_this_machine(real: Cli, here: Path) -> None:
    (here / "requirements.txt").write_text("torch==2.8.0\n")
    run = real("judge", "requirements.txt", "--device", "host", "--json")
    assert run.code == 1
    asked = [entry["text"] for entry in run.json()["files"][0]["findings"][0]["asked"]]
    assert asked == ["torch==2.8.0", "driver==470.57.02"]
    machine = [entry["text"] for entry in run.json()["machine"]]
    assert machine == ["8.6", "python==3.9.18", "glibc==2.31", "driver==470.57.02"]


def test_a_machine_without_a_device_is_no_device(
    real: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "HERE", Captured({}, {}))
    run = real("resolve", "torch", "--device", "host")
    assert (run.code, run.out) == (3, "")
    assert "this machine has no device that a driver shows" in run.err
