"""Runs a program with the Python of an environment and writes its outcome: `PYTHON -I isolated.py PROGRAM ANSWER`.

It is started by path, in an environment without this package, by any Python from 3.8 on.
"""

from __future__ import annotations

import json
import os.path
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from traceback import walk_tb
from typing import Any

_LONGEST = 300
"""Characters of the message of an exception."""


def answer(path: str) -> dict[str, Any]:
    """Run the program in a file: the exception that it raised, if any, and the distributions that it loaded."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    raised: BaseException | None = None
    try:
        # The program is part of this package, and never of a matrix.
        exec(compile(text, "<program>", "exec"), {"__name__": "__main__"})  # noqa: S102
    except BaseException as error:  # noqa: BLE001 - any exception of a package is an outcome
        raised = error
    owners = dict(_owners())
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    loaded = {owners[file] for file in files if isinstance(file, str) and file in owners}
    report: dict[str, Any] = {"loaded": sorted(loaded)}
    if raised is not None:
        several = list(_chain(raised))
        report["said"] = _last_line(raised)
        report["kinds"] = sorted(
            {kind.__name__ for exception in several for kind in type(exception).__mro__}
        )
        report["text"] = "\n".join(map(str, several))
        frames = [frame.f_code.co_filename for frame, _ in walk_tb(raised.__traceback__)]
        report["frames"] = [owners.get(file, "") for file in reversed(frames)]
        report["lacks"] = next(filter(None, map(_lacking, several)), "")
    return report


def _owners() -> Iterator[tuple[str, str]]:
    for distribution in metadata.distributions():
        root = str(distribution.locate_file(""))
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        for line in (distribution.read_text("RECORD") or "").splitlines():
            # Ten times as fast as `distribution.files`.
            yield os.path.join(root, line.rsplit(",", 2)[0].strip('"')), name


def _chain(error: BaseException) -> Iterator[BaseException]:
    ids: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in ids:
        ids.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    # The message of some packages contains a whole traceback.
    line = lines[-1] if lines[0].startswith("Traceback ") else lines[0]
    # The path of the environment differs each time.
    line = line.replace(sys.prefix + os.sep, "")
    return f"{type(error).__name__}: {line}"[:_LONGEST].strip(": ")


def _lacking(error: BaseException) -> str:
    """The module of the standard library that this Python lacks."""
    name = getattr(error, "name", None) if isinstance(error, ImportError) else None
    known = getattr(sys, "stdlib_module_names", ())
    # Python before 3.10 has no such list, but optional extension modules start with `_`.
    own = name in known if known else str(name).startswith("_")
    return str(name) if name and own else ""


if __name__ == "__main__":
    outcome = answer(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(outcome, out)
