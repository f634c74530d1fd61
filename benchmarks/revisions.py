"""How long a command of this revision takes beside the same command of an earlier one; README.md says how to read it.

    python benchmarks/revisions.py REVISION [--pairs N] [COMMAND...]

Both are installed from what git has of them, so that what is not committed is not measured. It needs a package index
for that; what it measures runs offline, in pairs.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from _measure import Pairs, Place

ROOT = Path(__file__).resolve().parent.parent
QUESTION = ["resolve", "tensorflow==2.6.5"]


def installed(revision: str, folder: Path) -> str:
    """The command of a revision, in an environment of its own."""
    archive = ["git", "-C", str(ROOT), "archive", revision]
    made = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(made)) as files:
        files.extractall(folder / "source", filter="data")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    # In two steps: the launcher of a command is written by the pip that installs it.
    for wanted in (["--upgrade", "pip"], [folder / "source"]):
        subprocess.run(
            [folder / "env" / "bin" / "python", "-m", "pip", "install", "-q", *wanted], check=True
        )
    return str(folder / "env" / "bin" / "toolmatrix")


def row(what: str, pairs: Pairs) -> str:
    """A row of the table, in milliseconds."""
    cells = [
        f"{1000 * one.median:.1f} ({1000 * one.least:.1f}-{1000 * one.most:.1f})"
        for one in (pairs.ours, pairs.theirs)
    ]
    ratio = pairs.ratio
    cells.append(f"{ratio.median:.3f} ({ratio.least:.2f}-{ratio.most:.2f})")
    return f"| {what} | {' | '.join(cells)} |"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--pairs", type=int, default=60)
    options, command = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "empty").mkdir()
        env = {"HOME": str(work / "home"), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        ours, theirs = (
            [installed(revision, work / name), *(command or QUESTION)]
            for name, revision in (("ours", "HEAD"), ("theirs", options.revision))
        )
        found = Place(str(work / "empty"), env).pairs(ours, theirs, options.pairs)
    print(f"| ms | HEAD | {options.revision} | ratio of pairs |\n|---|---|---|---|")
    for what, pairs in zip(("CPU", "wall"), found, strict=True):
        print(row(what, pairs))


if __name__ == "__main__":
    main()
