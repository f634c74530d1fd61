"""Reads a log as `toolmatrix stages --from-log` does: `_parse.py FILE TIMES` prints CPU seconds as JSON.

With TIMES 0 it only imports what reading needs, as the ground that memory is measured above.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from toolmatrix.compilation import Log, parse_log


def once(path: Path) -> Log:
    """The log of a file, line by line."""
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        return parse_log(line.rstrip("\n") for line in lines)


def main() -> None:
    """Read as often as asked; only the last log is kept."""
    path, times = Path(sys.argv[1]), int(sys.argv[2])
    seconds, stages = [], 0
    for _ in range(times):
        start = time.process_time()
        log = once(path)
        seconds.append(time.process_time() - start)
        stages = sum(len(plan.stages) for plan in log.plans)
        del log
    print(json.dumps({"seconds": seconds, "stages": stages}))


main()
