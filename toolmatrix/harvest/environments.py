"""Environments of pins, each made clean and removed again, and what came of a program that was run there.

Outcomes are kept by pins, Python and program, so that what was run once is not run again, and an interrupted audit
goes on where it was. What failed for the machine's sake (a library that is missing, time that ran out) is not kept.
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


RAN, RAISED, FAILED = "ran", "raised", "failed"
PATIENCE = 300
"""Seconds for one program: an import of gigabytes from a disk that is busy."""
# What is raised by the system, or by whoever ends a program.
_SYSTEM = frozenset(("OSError", "MemoryError", "KeyboardInterrupt", "SystemExit"))
# Otherwise other packages, settings and GPUs of whoever runs it would take part.
_PASSED = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")


class ImportOutcome(Document):
    """What came of a program in an environment.

    `state` is `ran`, `raised` (by the packages, which `said` so) or `failed` (for the machine's sake: it says nothing
    about packages). `frames` are the packages that an exception went through, the innermost first, "" for what is of
    none; `loaded` are those that were imported. `day` is when it was run.
    """

    state: str
    said: str = ""
    frames: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    day: str = ""

    def culprit(self, other: str) -> str:
        """The package whose code met what `other` does not have: the innermost that is neither that nor none."""
        return next((name for name in self.frames if name not in ("", other)), "")


class Bench:
    """Where environments are made: uv, the programs, the folder of outcomes ("" for none) and this machine."""

    def __init__(self, uv: Uv, operations: Operations, folder: str, day: str) -> None:
        self.uv = uv
        self.operations = operations
        self.folder = folder
        self.day = day
        # Set where nobody waits for outcomes any more.
        self.stopped = Event()
        self.machine = platform.machine()
        # What else decides on an outcome: it is part of the name under which that is kept.
        with open(resources.isolated_path(), encoding="utf-8") as file:
            self.runner = file.read()
        self.system = " ".join((_distribution(), *platform.libc_ver())).strip()

    def outcome_path(self, pins: Sequence[str], python: Interpreter, operation: Operation) -> str:
        """The path at which an outcome is kept, "" where none is."""
        run = (operation.program, self.runner)
        inputs = [python.version, self.machine, self.system, *run, *pins]
        name = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
        return os.path.join(self.folder, f"{name}.json") if self.folder else ""

    def read(self, path: str) -> ImportOutcome | None:
        """The outcome at a path; None where there is none, or half of one."""
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
        """Keep an outcome, if there is where to."""
        if not path or outcome.state == FAILED:
            return
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_files({path: json.dumps(outcome.to_json())})
        # It is run again the next time.
        except (OSError, OutputError):
            return


class Environment:
    """One environment for one Python and program, made when it is first needed and removed at the end."""

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
        """What comes of the program with these packages and no others."""
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
        # Of an answer before this one nothing is left.
        for name, text in (("program.py", self.operation.program), ("answer.json", "")):
            with open(self._path(name), "w", encoding="utf-8") as file:
                file.write(text)
        # Packages keep settings and caches below it.
        home = self._path("home")
        os.makedirs(home, exist_ok=True)
        env = {name: self.bench.uv.env[name] for name in _PASSED if name in self.bench.uv.env}
        output = programs.ask(
            [
                *(self._path("env", "bin", "python"), "-I", resources.isolated_path()),
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
    """What the program's own answer amounts to."""
    loaded = tuple(answer["loaded"])
    if "said" not in answer:
        return ImportOutcome(state=RAN, loaded=loaded)
    # Whatever may be the machine's is taken for it: a wrong fact is worse than none.
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


# As most number them; of others the file says it.
_SERIES = 2


class Operation(Value):
    """A program that imports a component and does one thing with it; `series` numbers of a version make a series.

    What else there is of one is for the checks of images (`render.python_packages`).
    """

    program: str
    series: int = _SERIES

    @property
    def digest(self) -> str:
        """The first letters of its sha256, by which a fact names it."""
        return hashlib.sha256(self.program.encode()).hexdigest()[:12]

    @property
    def widens(self) -> bool:
        """True if a series is what the matrix takes for a minor series as well."""
        return self.series == _SERIES

    def newest(self, versions: Iterable[str]) -> list[str]:
        """The last release of each series of versions that are in order."""
        last = {tuple(version.split(".")[: self.series]): version for version in versions}
        return list(last.values())


class Operations(Value):
    """The operation of each component, and what an exception says where it tells of the machine."""

    of: Mapping[str, Operation]
    machine: re.Pattern[str]


def operations() -> Operations:
    """Those of this package."""
    document = resources.load_yaml(resources.operations_path())
    return Operations(
        of={
            name: Operation(**{key: fields[key] for key in Operation._fields if key in fields})
            for name, fields in document["operations"].items()
        },
        machine=re.compile("|".join(document["machine"])),
    )
