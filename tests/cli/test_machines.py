"""`--device` with a machine in the place of a name: this one, or a file with what was printed on another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.inspection.machines import Captured
from tests.judging.test_machine import FILES, OUTPUTS
from toolmatrix.inspection import host

PASTES = Path(__file__).parents[1] / "manifests" / "pastes"
TITAN = "GPU models and configuration: GPU 0: NVIDIA TITAN V\nNvidia driver version: "
WHEEL = ("--from", "wheel", "--json")


@pytest.mark.parametrize(
    ("paste", "named"),
    [
        ("nvidia-smi-umd.txt", ("--device", "RTX 5090", "--with", "driver==610.43.02")),
        ("rocminfo.txt", ("--device", "gfx942")),
        ("jax.txt", ("--device", "RTX 4070", "--target", "x86", "--with", "driver==560.35.03")),
    ],
)
def test_what_a_machine_printed_is_that_machine(
    real: Cli, here: Path, paste: str, named: tuple[str, ...]
) -> None:
    (here / "machine.txt").write_text((PASTES / paste).read_text())
    run = real("resolve", "torch", "--device", "machine.txt", *WHEEL)
    assert (run.code, run.err) == (0, "")
    assert run.json()["targets"] == real("resolve", "torch", *named, *WHEEL).json()["targets"]


def test_a_machine_is_piped_in(real: Cli, here: Path) -> None:
    (here / "requirements.txt").write_text("torch==2.1.0\n")
    text = (PASTES / "nvidia-smi-umd.txt").read_text()
    run = real("judge", "requirements.txt", "--device", "-", "--json", piped=text)
    assert run.code == 1
    machine = [entry["text"] for entry in run.json()["machine"]]
    assert machine == ["NVIDIA GeForce RTX 5090", "driver==610.43.02"]
    twice = real("judge", "-", "--device", "-", piped=text)
    assert twice.code == 2
    assert "only one thing can be read from stdin" in twice.err


def test_an_environment_is_for_a_machine_that_was_pasted(real: Cli, here: Path) -> None:
    (here / "requirements.txt").write_text("torch==2.1.0\n")
    (here / "smi.log").write_text((PASTES / "nvidia-smi-umd.txt").read_text())
    run = real("env", ".", "--device", "./smi.log", "--json")
    assert run.code == 0
    assert run.json()["findings"][0]["code"] == "TM106"
    other = real("env", ".", "--device", "./smi.log", "--with", "driver==470.57.02", "--json")
    assert "610.43.02" not in other.out


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        ("torch==2.1.0\n", 3, "machine.txt names no device"),
        (None, 2, "the file cannot be read"),
        ("\udcff", 2, "the file is not UTF-8"),
        (f"{TITAN}535.1\n{TITAN}570.2\n", 2, "machine.txt describes several machines"),
    ],
)
def test_a_file_that_is_no_machine_is_one_error(
    real: Cli, here: Path, text: str | None, code: int, error: str
) -> None:
    if text is not None:
        (here / "machine.txt").write_bytes(text.encode(errors="surrogateescape"))
    run = real("resolve", "torch", "--device", "machine.txt")
    assert (run.code, run.out) == (code, "")
    assert error in run.err


def test_machines_and_devices_add_up(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "HERE", Captured(FILES, OUTPUTS))
    (here / "machine.txt").write_text("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n")
    run = real("resolve", "torch", "--device", "host,machine.txt,A40", *WHEEL)
    named = ("--device", "8.6,A100,A40", "--with", "driver==470.57.02", "--target", "x86")
    assert run.json()["targets"] == real("resolve", "torch", *named, *WHEEL).json()["targets"]
