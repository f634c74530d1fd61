"""Hostile archives of every kind: within bounds of time and memory each gives an inventory or one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import FOLDER
from tests.images import hostile_archives

pytestmark = [pytest.mark.process, pytest.mark.slow]

EXPECTED = dict(
    line.split(": ", 1) for line in (FOLDER / "hostile-archives.txt").read_text().splitlines()
)


def test_every_kind_is_expected_to_come_to_something() -> None:
    assert list(EXPECTED) == list(hostile_archives.KINDS)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.long] if name in hostile_archives.LONG or place % 2 else []
        )
        for place, name in enumerate(hostile_archives.KINDS)
    ],
)
def test_a_hostile_archive_is_read_or_refused_in_bounded_time_and_memory(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(hostile_archives.KINDS[name]())
    assert hostile_archives.outcome(path).said == EXPECTED[name]
    assert list(tmp_path.iterdir()) == [path]
