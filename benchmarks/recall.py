"""How many lines of public issues `toolmatrix diagnose` tells, names and cures; docs/diagnose.md says whose they are.

    python benchmarks/recall.py [--each]

A failure is told where anything is said of it, named where all of its components are, and cured where what is printed,
but for the line itself, holds words of the cure that helped there and none of one that does not; wrong where it holds
words of such a one. `--each` shows the others.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.logs import captured
from toolmatrix.api.requests import OpenMatrix, request_context
from toolmatrix.commands.diagnose import diagnose_log
from toolmatrix.logs import log, signatures
from toolmatrix.report.terminal import Terminal

# A line of the log in an answer; what stands further in is the reason.
QUOTED = re.compile(r" {4}\| (?! )")
SETS = ("first", "apart", "second", "third", "kept", "fourth", "fifth", "sixth", "eighth", "ninth")


def main() -> None:
    """Ask about each line, print the table."""
    parser = argparse.ArgumentParser(description="How many lines of public issues are told.")
    parser.add_argument("--each", action="store_true", help="show each line that is missed")
    asked = parser.parse_args()
    book, place = signatures.load(), request_context(None)

    def outcomes(row: Mapping[str, Any]) -> Iterator[str]:
        text = "\n".join([*captured.lines_of(row), ""]).encode()
        seen = log.observe(io.BytesIO(text), book, row["issue"])
        report = diagnose_log(seen, "", 0, OpenMatrix(index=place.index))
        found = report.to_json()["findings"]
        if not row["between"]:
            yield from ("decoys", *(["taken"] if found else []))
            return
        named = {side["component"] for one in found for side in one["between"]}
        # What a line says itself is no cure of ours.
        rows = report.text(Terminal(width=10_000)).splitlines()
        words = " ".join(" ".join(row for row in rows if not QUOTED.match(row)).split())
        yield "failures"
        if found:
            yield "told"
        if {*row["between"]} <= named:
            yield "named"
        wrong = row.get("never") and re.search(row["never"], words, re.IGNORECASE)
        if re.search(row["says"], words, re.IGNORECASE) and not wrong:
            yield "cured"
        if wrong:
            yield "wrong"

    print(f"{'':8}failures  told  named  cured  wrong  no failures  taken for one")
    for name in SETS:
        counts: Counter[str] = Counter()
        for row in captured.issues(name):
            seen = [*outcomes(row)]
            counts.update(seen)
            if asked.each and seen not in (["decoys"], ["failures", "told", "named", "cured"]):
                print(f"{name}: {' '.join(seen)}: {row['issue']}: {row['line'][:100]}")
        widths = {
            "failures": 8,
            "told": 6,
            "named": 7,
            "cured": 7,
            "wrong": 7,
            "decoys": 13,
            "taken": 15,
        }
        print(f"{name:8}" + "".join(f"{counts[one]:{width}}" for one, width in widths.items()))


if __name__ == "__main__":
    main()
