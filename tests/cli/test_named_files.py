"""Files that a command names: no FIFO and no device is waited for, and a stream that was handed over is read."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolmatrix.opener import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
LOG = str(ROOT / "docs/logs/build.log")
DRY_RUN = str(ROOT / "docs/logs/cuda-13.0.log")

# What names a file; the file stands for `{}`.
NAMING = {
    "judge": ["judge", "{}/requirements.txt"],
    "diagnose": ["diagnose", "{}/log"],
    "the lock beside a log": ["diagnose", LOG, "--lock", "{}/lock"],
    "a matrix": ["resolve", "torch", "--matrix", "{}/ours.yaml"],
    "a recipe": ["resolve", "torch", "--recipe", "{}/ours.yaml"],
    "what is kept": ["resolve", "torch", "--keep", "{}/lock"],
    "settings": ["-C", "{}", "config"],
    "settings of a project": ["-C", "{}", "list"],
    "a lock to render": ["render", "--lock", "{}/lock", "--stdout"],
    "a lock to read": ["upgrade", "--lock", "{}/lock"],
    "locks": ["diff", "{}/lock", "{}/lock"],
    "a dry run": ["stages", "--from-log", "{}/log"],
    "times": ["stages", "--from-log", DRY_RUN, "--cost", "{}/times"],
    "expectations": ["validate", "host", "--expect-file", "{}/list"],
    "subjects": ["validate", "--all", "{}/list", "--expect", "python==3"],
    "an inventory": ["validate", "inventory:{}/x.json", "--expect", "python==3"],
    "facts": ["check", "{}/ours.yaml"],
}
SETTINGS = {"settings": "toolmatrix.toml", "settings of a project": "pyproject.toml"}


def of(name: str, folder: Path, place: Path) -> list[str]:
    """The words of a case, whose file is put at a place."""
    words = [word.replace("{}", str(folder)) for word in NAMING[name]]
    path = next((word.partition(":")[2] or word for word in words if str(folder) in word), "")
    named = folder / SETTINGS[name] if name in SETTINGS else Path(path)
    if place.exists():
        named.symlink_to(place)
    else:
        os.mkfifo(named)
    return words


@pytest.mark.parametrize("place", ["a pipe", "/dev/zero", "/dev/tty"])
@pytest.mark.parametrize("name", NAMING)
def test_nothing_waits_for_a_pipe_or_a_device(
    name: str, place: str, real: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "named"
    folder.mkdir()
    asked = real(*of(name, folder, Path(place)))
    assert asked.code == 2, asked
    # A verdict of one of many subjects is part of the result.
    shown = asked.err + asked.out
    is_link = name == "judge" and place.startswith("/")
    assert ("a link that leaves" if is_link else "it is not a regular file") in shown


@contextmanager
def handed_over(data: bytes) -> Iterator[str]:
    """The path of a stream, as a shell writes it for `<(command)`."""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@pytest.mark.parametrize("command", ["diagnose", "judge"])
def test_a_stream_that_is_handed_over_is_read(command: str, real: Cli) -> None:
    data = Path(LOG).read_bytes() if command == "diagnose" else b"FROM nvidia/cuda:99.1.1-base\n"
    with handed_over(data) as path:
        asked = real(command, path)
    assert asked.code in (1, 4), asked
    assert "TM201" in asked.out or "99.1.1" in asked.out


def test_what_is_empty_is_read_as_such() -> None:
    with open_file(os.devnull) as file:
        assert file.read() == b""
