"""Files made to cost time, memory or a crash: each reader answers soon with one error, and quotes nothing foreign."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.amount import within
from tests.cli.conftest import Cli
from tests.cli.test_settings import NAMING, SETTINGS

DEEP = 100_000
SECONDS = 0.5
"""Seconds of processor time for an answer, once modules are loaded."""


def bomb(first: bytes, each: bytes) -> bytes:
    """Aliases of YAML that double, or more, on every line."""
    lines = [b"a%d: &a%d %b" % (n, n, each.replace(b"*", b"*a%d" % (n - 1))) for n in range(1, 30)]
    return b"\n".join([b"a0: &a0 " + first, *lines])


HOSTILE = {
    "nested lists": b"a: " + b"[" * DEEP + b"]" * DEEP,
    "open brackets": b"[" * DEEP,
    "nested objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "nested blocks": b"- " * DEEP + b"a",
    "nested tables": b"a = " + b"{a=" * DEEP + b"1" + b"}" * DEEP,
    "nested arrays": b"a = " + b"[" * DEEP + b"]" * DEEP,
    "a key of many parts": b"a." * DEEP + b"a = 1",
    "a long number of JSON": b'{"schema": ' + b"1" * 5000 + b"}",
    "a long number of TOML": b"schema = " + b"1" * 5000,
    "a long number of YAML": b"schema: " + b"1" * 5000,
    "aliases": bomb(b"[x, x]", b"[*, *, *]"),
    "merges": bomb(b"{x: 1}", b"{<<: [*, *, *]}"),
    "a long line": b"x" * 10_000_000,
    "zeros": b"\0" * 100_000,
    "a foreign file": b"root:SECRET:0:0:\n",
}
LOGS = ("diagnose",)
JUDGED = {
    f"judge {name}": ["judge", f"{{}}/{name}"]
    for name in (
        "Dockerfile",
        "environment.yml",
        "compose.yaml",
        "pyproject.toml",
        "devcontainer.json",
        "collect_env.txt",
    )
}
READERS = {
    **NAMING,
    **JUDGED,
    "results": ["merge", "{}/results"],
    "results to go on from": [
        "validate",
        "host",
        "--expect",
        "python==3",
        "--resume",
        "{}/results",
    ],
    "an archive": ["validate", "archive:{}/x.tar", "--expect", "python==3"],
    "a manifest of subjects": ["validate", "--all", "{}/list.yaml", "--expect", "python==3"],
}
# Their lines are what a user asked about, and an error repeats the first of them.
QUOTING = ("judge", "judge Dockerfile", "a dry run", "expectations", "subjects")


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_a_hostile_file_costs_little_and_is_one_error(
    reader: str, hostile: str, real: Cli, tmp_path: Path
) -> None:
    words = [word.replace("{}", str(tmp_path)) for word in READERS[reader]]
    path = next(word.partition(":")[2] or word for word in words if str(tmp_path) in word)
    place = tmp_path / SETTINGS[reader] if reader in SETTINGS else path
    spent = []
    for _ in range(2):
        with open(place, "wb") as file:
            file.write(HOSTILE[hostile])
        began = time.process_time()
        asked = real(*words)
        spent.append(time.process_time() - began)
        if spent[-1] < SECONDS:
            break
    assert within(min(spent), SECONDS)
    shown = asked.out + asked.err
    assert asked.code in (0, 2, 4), shown[:1000]
    assert asked.code != 2 or asked.err.count("error[") == 1 or "error[" not in asked.err
    assert len(shown) < 20_000
    assert "Traceback" not in shown
    if reader not in QUOTING:
        assert "SECRET" not in shown


@pytest.mark.parametrize(
    "reader",
    ["results", "results to go on from", "subjects", "a recipe", "settings", "a lock to read"],
)
def test_a_file_without_an_end_is_not_read(reader: str, real: Cli, tmp_path: Path) -> None:
    words = [word.replace("{}", str(tmp_path)) for word in READERS[reader]]
    path = SETTINGS.get(reader, words[-1].rpartition("/")[2])
    (tmp_path / path).touch()
    os.truncate(tmp_path / path, 1 << 42)
    words = [
        str(tmp_path / path) if word.startswith(str(tmp_path / path)) else word for word in words
    ]
    began = time.process_time()
    assert real(*words).code == 2
    assert within(time.process_time() - began, 2)
