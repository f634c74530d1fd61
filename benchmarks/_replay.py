"""Plans and replays one source: `_replay.py NVCC JOBS SOURCE FLAGS...` prints what it cost as JSON."""

from __future__ import annotations

import json
import shutil
import sys

from toolmatrix.compilation import parse
from toolmatrix.compilation.cost import from_run
from toolmatrix.compilation.drivers.dry_run import dry_run
from toolmatrix.compilation.execute import run
from toolmatrix.compilation.replay import replay


def main() -> None:
    """Everything that a user waits for: the dry run, its plan and the run of its stages."""
    nvcc, jobs, source, *flags = sys.argv[1:]
    dry = dry_run([source], flags, nvcc)
    made = replay(parse(dry.text), work=dry.work)
    done = run(made, jobs=int(jobs))
    shutil.rmtree(dry.work)
    print(json.dumps(from_run(made, done).to_json()))


main()
