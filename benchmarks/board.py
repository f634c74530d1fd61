"""What `toolmatrix env` answers for the repositories of a board, and how many of its environments import on the CPU.

    python benchmarks/board.py FOLDER [--of N] [--prove N] [--seed N] [--limit SECONDS]

FOLDER has a clone in each of its folders; --of is how many repositories the board has. It prints the answers, the
causes of those that facts do not decide, and each line that had to change. With --prove it creates the environments of
a draw of them, one after the other: it installs and imports packages of others.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

CAUSES = {
    "packages that code alone names": r"the code imports",
    "requirements that were not read": r"not all requirements",
    "compiled code that no fact joins": r"compiled code",
    "facts about other releases": r"none joins",
    "older than a break of NumPy": r"written .* before",
    "a failure that was reported": r"reported to fail",
    "no fact": r"no fact says",
}
ANSWERS = {0: "answered", 1: "refused", 2: "unreadable", 3: "asks for nothing", 4: "cannot say"}


def asked(folder: Path, *options: str, limit: float = 300) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of `env`; 124 where it takes longer than the limit."""
    words = [sys.executable, "-m", "toolmatrix", "env", str(folder.resolve()), *options, "--json"]
    with tempfile.TemporaryDirectory() as place:
        try:
            done = subprocess.run(
                words, cwd=place, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return 124, {}
    return done.returncode, json.loads(done.stdout or "{}")


def causes(document: dict[str, Any]) -> list[str]:
    """Why facts do not decide."""
    found = [
        name
        for name, pattern in CAUSES.items()
        if any(re.search(pattern, text) for text in document["undecided"])
    ]
    return found or ["an index or a release that was not read"]


def answers(folders: list[Path], of: int) -> None:
    """Print the counts of all answers, and what had to change."""
    counts: Counter[str] = Counter()
    why: Counter[str] = Counter()
    unchanged, changes = 0, []
    for folder in folders:
        code, document = asked(folder)
        counts[ANSWERS.get(code, "failed")] += 1
        if code == 0:
            unchanged += not document["findings"]
        if code == 4:
            why.update(causes(document))
        changes += [f"{folder.name}: {finding['text']}" for finding in document.get("findings", ())]
    print(f"{of} repositories, {len(folders)} at hand")
    for name, count in counts.most_common():
        print(f"  {name:<18} {count:3}  {100 * count / of:3.0f} %")
    print(f"answered as written: {unchanged}")
    for name, count in why.most_common():
        print(f"  cannot say: {name:<42} {count:3}")
    print("\n".join(["changed:", *(f"  {line}" for line in changes)]))


def proofs(folders: list[Path], seed: int, wanted: int, limit: float) -> None:
    """Create the environments of a draw, and print how many modules of each import."""
    drawn, begun = [*folders], time.monotonic()
    random.Random(seed).shuffle(drawn)
    totals: Counter[str] = Counter()
    for folder in drawn[:wanted]:
        if time.monotonic() - begun > limit:
            print(f"{folder.name:<40} not run: out of time")
            continue
        code, proof = asked(folder, "--with", "python<3.14", "--prove", "--yes", limit=limit)
        if "steps" not in proof:
            print(f"{folder.name:<40} not run: {ANSWERS.get(code, 'out of time')}")
            continue
        cells, failed = [], []
        for kind in ("command", "import", "optional", "version"):
            steps = [step for step in proof["steps"] if step["kind"] == kind]
            passed = sum(step["passed"] for step in steps)
            totals[f"{kind} passed"] += passed
            totals[kind] += len(steps)
            cells.append(f"{kind} {passed}/{len(steps)}")
            failed += [step["name"] for step in steps if not step["passed"] and kind != "optional"]
        totals["proven"] += proof["passed"]
        print(f"{folder.name:<40} {'  '.join(cells)}  {' '.join(failed)[:200]}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in totals.items()))


def main() -> None:
    """Ask for all, then prove a draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of", type=int, default=0)
    parser.add_argument("--prove", type=int, default=0)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--limit", type=float, default=2400)
    options = parser.parse_args()
    folders = sorted(path for path in options.folder.iterdir() if path.is_dir())
    if options.prove:
        proofs(folders, options.seed, options.prove, options.limit)
    else:
        answers(folders, options.of or len(folders))


if __name__ == "__main__":
    main()
