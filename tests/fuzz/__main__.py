"""Fuzz one reader by atheris, which CI does not: `pip install atheris` in a Python that it has a wheel for, then

    python -m tests.fuzz archive FOLDER -max_total_time=600

The seeds go to FOLDER, and what reaches new code is added to it; options are those of libFuzzer. A finding is written
to a file `crash-*`, `timeout-*` or `oom-*`: mend the reader and keep the input, reduced, among its tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1")


def main() -> None:
    """Fuzz the reader that the first argument names."""
    with atheris.instrument_imports(include=["toolmatrix", "tarfile", "elftools"]):
        from tests.fuzz.readers import READERS
    name, folder, *options = sys.argv[1:]
    reader = READERS[name]
    corpus = Path(folder)
    corpus.mkdir(parents=True, exist_ok=True)
    for place, seed in enumerate(reader.seeds()):
        (corpus / f"seed-{place}").write_bytes(seed)
    atheris.Setup([sys.argv[0], folder, *LIMITS, *options], reader.read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
