"""What is fuzzed reads what the fuzzing begins with, so that readers and seeds stay what they are."""

from __future__ import annotations

import pytest

from tests.fuzz.readers import READERS

pytestmark = [pytest.mark.process, pytest.mark.long]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_reads_its_seeds(name: str) -> None:
    seeds = list(READERS[name].seeds())
    assert seeds
    for seed in seeds:
        READERS[name].read(seed)
        READERS[name].read(seed[: len(seed) // 2])
