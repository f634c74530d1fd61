"""Temporary environments of pinned packages, and the outcome of a program that runs in one.

Outcomes are saved by pins, Python and program, so that nothing runs twice and an interrupted audit resumes. A failure
of the machine (a missing system library, a timeout) is not saved.
"""

from __future__ import annotations

import hashlib
import json
import os.path
import platform
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any

from toolmatrix import resources
from toolmatrix.errors import OutputError, ToolMissing
from toolmatrix.harvest import programs
from toolmatrix.harvest.resolver import Interpreter, Uv
from toolmatrix.outputs import replace_files
from toolmatrix.value import Document, Value

if TYPE_CHECKING:
    from typing_extensions import Self


# It runs a program as the Python of an environment, where this package is not installed.
_ISOLATED = resources.of_package("harvest", "isolated.py")
RAN, RAISED, FAILED = "ran", "raised", "failed"
PATIENCE = 300
"""Seconds for one program: enough to import gigabytes from a busy disk."""
# Exceptions of the system, or of a program that is ended.
_SYSTEM = frozenset(("OSError", "MemoryError", "KeyboardInterrupt", "SystemExit"))
# Everything else could bring in packages, settings and GPUs of the user.
_PASSED = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")


class ImportOutcome(Document):
    """The outcome of a program in an environment.

    `state` is `ran`, `raised` (the packages raised an exception, with the message `said`) or `failed` (because of the
    machine: no statement about packages). `frames` are the packages in the traceback, the innermost first, "" for code
    outside of packages; `loaded` are the imported packages. `day` is the day of the run.
    """

    state: str
    said: str = ""
    frames: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    day: str = ""

    def culprit(self, other: str) -> str:
        """The package that used something which `other` lacks: the innermost package in the traceback but `other`."""
        return next((name for name in self.frames if name not in ("", other)), "")


class Bench:
    """What environments share: uv, the programs, the folder of outcomes ("" for none) and this machine."""

    def __init__(self, uv: Uv, operations: Operations, folder: str, day: str) -> None:
        self.uv = uv
        self.operations = operations
        self.folder = folder
        self.day = day
        # Set when outcomes are no longer needed.
        self.stopped = Event()
        self.machine = platform.machine()
        # The outcome depends on it as well, so it is part of the file name.
        with open(_ISOLATED, encoding="utf-8") as file:
            self.runner = file.read()
        self.system = " ".join((_distribution(), *platform.libc_ver())).strip()

    def outcome_path(self, pins: Sequence[str], python: Interpreter, operation: Operation) -> str:
        """The path of the file of an outcome, "" if outcomes are not saved."""
        run = (operation.program, self.runner)
        inputs = [python.version, self.machine, self.system, *run, *pins]
        name = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
        return os.path.join(self.folder, f"{name}.json") if self.folder else ""

    def read(self, path: str) -> ImportOutcome | None:
        """The outcome at a path; None if it is missing or incomplete."""
        try:
            with open(path, encoding="utf-8") as file:
                fields = json.load(file)
            return ImportOutcome(
                state=str(fields["state"]),
                said=str(fields["said"]),
                frames=tuple(map(str, fields["frames"])),
                loaded=tuple(map(str, fields["loaded"])),
                day=str(fields["day"]),
            )
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, path: str, outcome: ImportOutcome) -> None:
        """Save an outcome, unless it is a failure of the machine."""
        if not path or outcome.state == FAILED:
            return
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_files({path: json.dumps(outcome.to_json())})
        # It is run again the next time.
        except (OSError, OutputError):
            return


class Environment:
    """One environment for one Python and program, created when it is first needed and removed at the end."""

    def __init__(self, bench: Bench, python: Interpreter, operation: Operation) -> None:
        self.bench = bench
        self.python = python
        self.operation = operation
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder:
            self.folder.cleanup()

    def attempt(self, pins: Sequence[str]) -> ImportOutcome:
        """The outcome of the program with exactly these packages."""
        bench = self.bench
        if bench.stopped.is_set():
            raise KeyboardInterrupt
        path = bench.outcome_path(pins, self.python, self.operation)
        saved = bench.read(path)
        if saved:
            return saved
        try:
            outcome = self._run(pins)
        # uv could not fetch or unpack, the disk is full, or time ran out.
        except (ToolMissing, OSError) as error:
            reason = (
                f"{error}: {error.expected or error.found}"
                if isinstance(error, ToolMissing)
                else str(error)
            )
            outcome = ImportOutcome(state=FAILED, said=reason)
        outcome = outcome.replace(day=bench.day)
        bench.keep(path, outcome)
        return outcome

    def _run(self, pins: Sequence[str]) -> ImportOutcome:
        if not self.folder:
            self.folder = tempfile.TemporaryDirectory(
                prefix="toolmatrix-import-", ignore_cleanup_errors=True
            )
            self.bench.uv.environment(self._path("env"), self.python)
        self.bench.uv.fill(self._path("env"), pins)
        # Overwrite the answer of an earlier run.
        for name, text in (("program.py", self.operation.program), ("answer.json", "")):
            with open(self._path(name), "w", encoding="utf-8") as file:
                file.write(text)
        # Packages keep settings and caches below it.
        home = self._path("home")
        os.makedirs(home, exist_ok=True)
        env = {name: self.bench.uv.env[name] for name in _PASSED if name in self.bench.uv.env}
        output = programs.ask(
            [
                *(self._path("env", "bin", "python"), "-I", _ISOLATED),
                *(self._path("program.py"), self._path("answer.json")),
            ],
            home,
            {**env, "HOME": home, "CUDA_VISIBLE_DEVICES": ""},
            PATIENCE,
        )
        with open(self._path("answer.json"), encoding="utf-8") as file:
            text = file.read()
        # A signal ended it: an instruction that this processor does not have, or memory that ran out.
        if output.status or not text:
            return ImportOutcome(state=FAILED, said=f"ended with status {output.status}")
        return judge_environment(json.loads(text), self.bench.operations)

    def _path(self, *names: str) -> str:
        return os.path.join(self.folder.name if self.folder else "", *names)


def judge_environment(answer: Mapping[str, Any], operations: Operations) -> ImportOutcome:
    """The outcome that an answer of `isolated.py` stands for."""
    loaded = tuple(answer["loaded"])
    if "said" not in answer:
        return ImportOutcome(state=RAN, loaded=loaded)
    # If in doubt, blame the machine: a wrong fact is worse than none.
    own = _SYSTEM.intersection(answer["kinds"]) or operations.machine.search(answer["text"])
    return ImportOutcome(
        state=FAILED if own or answer["lacks"] else RAISED,
        said=answer["said"],
        frames=tuple(answer["frames"]),
        loaded=loaded,
    )


def _distribution() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.system()
    return f"{release.get('ID', '')} {release.get('VERSION_ID', '')}".strip()


# Most components have series of two numbers; operations.yaml names the others.
_SERIES = 2


class Operation(Value):
    """A program that imports a component and uses it once; the first `series` numbers of a version are its series.

    The other keys in operations.yaml are for the checks of images (`render.python_packages`).
    """

    program: str
    series: int = _SERIES

    @property
    def digest(self) -> str:
        """The first digits of its sha256, which facts name."""
        return hashlib.sha256(self.program.encode()).hexdigest()[:12]

    @property
    def widens(self) -> bool:
        """True if a series is also a minor series of the matrix."""
        return self.series == _SERIES

    def newest(self, versions: Iterable[str]) -> list[str]:
        """The last release of each series of sorted versions."""
        last = {tuple(version.split(".")[: self.series]): version for version in versions}
        return list(last.values())


class Operations(Value):
    """The operation of each component, and a pattern for messages that point to the machine."""

    of: Mapping[str, Operation]
    machine: re.Pattern[str]


def operations() -> Operations:
    """The operations of this package."""
    document = resources.load_yaml(resources.operations_path())
    return Operations(
        of={
            name: Operation(**{key: fields[key] for key in Operation._fields if key in fields})
            for name, fields in document["operations"].items()
        },
        machine=re.compile("|".join(document["machine"])),
    )
