"""How fast `toolmatrix diagnose` reads a long build log, beside `grep -c -F` with the same texts.

    python benchmarks/diagnose.py [--megabytes N]

Prints process seconds and megabytes a second of each, and the most memory that the reading took.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from toolmatrix.logs import log, signatures

LINES = (
    (
        "/usr/bin/gcc -U_FORTIFY_SOURCE -fstack-protector -Wall -O2 -DNDEBUG -ffunction-sections -std=c++17 -iquote . "
        "-isystem external/local_config_python/python3.11/include -I/usr/local/cuda-11.8/include "
        "-L/usr/lib/gcc/x86_64-linux-gnu/9 -c tensorflow/core/kernels/k{0}.cc"
    ),
    "INFO: From Compiling tensorflow/core/kernels/k{0}.cc:",
    "                 from tensorflow/core/kernels/k{0}.cc:21:",
    "external/absl/map.h:{0}:15: warning: comparison of integers of different signedness [-Wsign-compare]",
    "[{0} / 29,123] Compiling tensorflow/core/kernels/k{0}.cc; 12s local ... (8 actions running)",
    "make[2]: Entering directory '/build/k{0}'",
    "tests/test_k.py::test_error_handling[{0}] PASSED                 [ 12%]",
    "-- Looking for sys/types{0}.h - not found",
    "copying torch/nn/modules/m{0}.py -> build/lib.linux-x86_64-cpython-311/torch/nn/modules",
)


def main() -> None:
    """Write a log, read it both ways, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    size = parser.parse_args().megabytes * 10**6
    with tempfile.TemporaryDirectory() as folder:
        path, words = Path(folder, "build.log"), Path(folder, "words")
        written(path, size)
        book = signatures.load()
        texts = {one.has.strip() for signature in book.signatures for one in signature.lines}
        words.write_text("".join(f"{text}\n" for text in sorted(texts)))
        begun = time.process_time()
        with path.open("rb") as stream:
            seen = log.observe(stream, book, path.name)
        told("diagnose", time.process_time() - begun, size)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        command = ["grep", "-c", "-F", "-i", "-f", str(words), str(path)]
        subprocess.run(command, check=False, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        told("grep -c -F -i", used.ru_utime + used.ru_stime, size)
        print(f"{seen.lines} lines, {len(texts)} texts, at most {peak // 1024} MiB")


def written(path: Path, size: int) -> None:
    """Write a log of about so many bytes, the same each time."""
    draw = random.Random(3)
    with path.open("w") as out:
        while out.tell() < size:
            for _ in range(10_000):
                out.write(draw.choice(LINES).format(draw.randrange(30_000)) + "\n")


def told(name: str, seconds: float, size: int) -> None:
    """Print one figure."""
    print(f"{name:<14} {seconds:7.2f} s {size / 1e6 / seconds:8.1f} MB/s")


if __name__ == "__main__":
    main()
