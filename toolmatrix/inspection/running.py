"""Runs programs of an image, each in a container of its own, for what reading cannot show.

A container has no network, no capability, no new privileges and nothing to write to but a little memory; its memory,
processes, time and output are bounded, its entry point is that program, and it is removed whatever
happens. The user is that of the image: for another one other directories of PATH are closed, and other programs answer.
A program is started by its arguments alone, so an image needs no shell, and its output counts for nothing else.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property

from toolmatrix.images import engines
from toolmatrix.images.engines import NOT_THERE, Containers, EngineImage, ProgramBounds
from toolmatrix.inspection import programs
from toolmatrix.inspection.layers import LayerStore
from toolmatrix.inspection.model import (
    GONE,
    INTERPRETER,
    RAN,
    RUNNING,
    WHICH,
    Inventory,
    Seen,
    Skipped,
)
from toolmatrix.inspection.python import RECORDS
from toolmatrix.lines import without_colours
from toolmatrix.processors import this_platform
from toolmatrix.value import Value

_AT_ONCE = 4
_VERSION = "[0-9][0-9A-Za-z.+~_]*"


class ProgramProbe(Value):
    """A question to a program: which component or feature it is about, and the arguments that it is started with.

    The answer is the version behind `after`, or the first number; for a feature one of `values`, by whether the text
    `holds` is printed (yes, no). The program is run where reading saw one of `about`, or could not see it, and always
    where it is `wanted`. A probe of a later `round` is used where no earlier one was answered.
    """

    name: str
    run: tuple[str, ...]
    about: tuple[str, ...]
    after: str = ""
    holds: str = ""
    values: tuple[str, str] = ("", "")
    round: int = 0
    wanted: bool = False

    @property
    def command_line(self) -> str:
        """The program with its arguments, of which a program of its own lines is left out."""
        return shlex.join("..." if "\n" in word else word for word in self.run)

    def answer(self, output: str) -> str:
        """The value in an output; empty where it has none."""
        if self.holds:
            return self.values[self.holds not in output]
        output = without_colours(output)
        before = f".*{re.escape(self.after)}" if self.after else r"[^0-9\n]*"
        match = re.search(rf"^{before}({_VERSION})", output, re.MULTILINE)
        return match[1] if match else ""

    def repeats(self, record: str, value: str) -> bool:
        """True where a record, a name and a version, is that of the package it asks for, and the value its version."""
        name, _, version = record.partition(" ")
        match = re.match(_VERSION, version)
        return name == self.run[-1] and match is not None and match[0] == value


# Imports the module of a package as the program of the image would, and prints its version. Of a module that is on the
# package's record that is the record's: a wheel may ship a file with another one.
_IMPORT = """\
import importlib, os, sys
name, first = sys.argv[1:]
if sys.path[:1] == [""]:
    sys.path[0] = first
files, tops, release, place = [], "", "", ""
plain = name.replace("-", "_")
try:
    from importlib import metadata
except ImportError:
    # Before Python 3.8 nothing in the library reads records.
    for folder in filter(os.path.isdir, sys.path):
        for entry in os.listdir(folder):
            record, _, kind = entry.rpartition(".")
            words = record.split("-")
            found = kind in ("dist-info", "egg-info") and words[0].lower().replace(".", "_") == plain
            if found and not release:
                texts = []
                for file in ("RECORD", "top_level.txt"):
                    path = os.path.join(folder, entry, file)
                    texts.append(open(path).read() if os.path.isfile(path) else "")
                files, tops = [line.split(",")[0] for line in texts[0].splitlines()], texts[1]
                release, place = "".join(words[1:2]), folder
else:
    try:
        dist = metadata.distribution(name)
        files, tops = [str(file) for file in dist.files or ()], dist.read_text("top_level.txt") or ""
        release, place = dist.version, str(dist.locate_file(""))
    except Exception:
        pass
tops = tops.split() or [file.partition("/")[0] for file in files if file.endswith("/__init__.py")]
tops = tops or [file.partition(".")[0] for file in files if file.endswith((".py", ".so")) and "/" not in file]
tops = [top for top in tops if top and not top.startswith("_")]
root = plain if plain in tops or not tops else tops[0]
module = importlib.import_module(root)
file = os.path.realpath(getattr(module, "__file__", None) or "")
own = not module.__dict__.get("__file__") or any(
    os.path.realpath(os.path.join(place, one)) == file for one in files if one.startswith(root)
)
version = release if release and own else getattr(module, "__version__", "") or release
print("imported", version, "from", file)
"""
_BOUNDS = ProgramBounds()


def import_probes(inventory: Inventory, wanted: Collection[str]) -> list[ProgramProbe]:
    """A probe for each wanted package of Python: an import by the interpreter that the image starts."""
    started = next(iter(inventory.features.get(INTERPRETER, ())), None)
    if started is None:
        return []
    start = (*started.version.split(), "-c", _IMPORT)
    packages = (
        name
        for name in sorted(wanted)
        if any(sighting.seen_by in RECORDS for sighting in inventory.components.get(name, ()))
    )
    return [
        ProgramProbe(name=name, run=(*start, name, started.where), about=(name,), after="imported ")
        for name in packages
    ]


def ask_programs(
    image: EngineImage,
    inventory: Inventory,
    probes: Iterable[ProgramProbe],
    bounds: ProgramBounds = _BOUNDS,
    store: LayerStore | None = None,
) -> Inventory:
    """An inventory with the answers of the image's programs; raises ToolMissing where the engine fails.

    A program whose answer is in the store is not run.
    """
    skipped = (skip.what.removeprefix(WHICH) for skip in inventory.skipped)
    present = {*inventory.components, *skipped}
    remaining = [probe for probe in probes if probe.wanted or present.intersection(probe.about)]
    if not remaining:
        return inventory
    answers: dict[str, list[Seen]] = {}
    silent: dict[str, Skipped] = {}
    # A signal ends the runs without an error here; it is sent again when no container is left.
    with ExitStack() as stack:
        runner = ProgramRunner(image, bounds, store, stack)
        gone = tuple(sighting.version for sighting in inventory.features.get(GONE, ()))
        answers, silent = _ask_in_rounds(runner, remaining, present, gone)
    features = {probe.name for probe in remaining if probe.holds}
    components = dict(inventory.components)
    properties = dict(inventory.features)
    for name, ran in answers.items():
        if name in features:
            properties[name] = (*properties.get(name, ()), *ran)
        else:
            components[name] = _ordered(name, components.get(name, ()), ran)
    return inventory.replace(
        components=dict(sorted(components.items())),
        features=dict(sorted(properties.items())),
        skipped=(
            *inventory.skipped,
            *(skip for name, skip in silent.items() if name not in answers),
        ),
    )


class ProgramRunner:
    """Runs programs of one image, in containers that are opened when the first one has to be run.

    An answer, or that the program is missing, is valid for the image on this kind of machine and is stored; other
    failures, such as a timeout, may differ the next time.
    """

    def __init__(
        self,
        image: EngineImage,
        bounds: ProgramBounds,
        store: LayerStore | None,
        stack: ExitStack,
    ) -> None:
        self.image = image
        self.bounds = bounds
        self.store = store
        self.stack = stack

    @cached_property
    def containers(self) -> Containers:
        """The containers of the image."""
        return self.stack.enter_context(engines.opened_containers(self.image, self.bounds))

    def answers(self, probes: Sequence[ProgramProbe]) -> Iterator[tuple[ProgramProbe, str, str]]:
        """Each probe with its answer and the reason why there is none."""
        store = self.store
        known = {probe: store.answer(self._name(probe)) if store else None for probe in probes}
        remaining = [probe for probe, answer in known.items() if answer is None]
        for start in range(0, len(remaining), _AT_ONCE):
            for probe, value, reason in self._run(remaining[start : start + _AT_ONCE]):
                known[probe] = value, reason
                if store and (value or reason == NOT_THERE):
                    store.keep_answer(self._name(probe), value, reason)
        for probe, answer in known.items():
            if answer is not None:
                yield probe, *answer

    def _name(self, probe: ProgramProbe) -> str:
        return f"{self.image.id} {this_platform()} {self.bounds!r} {probe!r}"

    def _run(self, probes: Sequence[ProgramProbe]) -> Iterator[tuple[ProgramProbe, str, str]]:
        outcomes = self.containers.run([probe.run for probe in probes])
        for probe, (output, reason) in zip(probes, outcomes, strict=True):
            value = "" if reason else probe.answer(output)
            last_line = engines.last_line(output) or "nothing"
            yield probe, value, reason or ("" if value else f"printed no version: {last_line}")


def _ask_in_rounds(
    runner: ProgramRunner, probes: Sequence[ProgramProbe], present: set[str], gone: tuple[str, ...]
) -> tuple[dict[str, list[Seen]], dict[str, Skipped]]:
    answers: dict[str, list[Seen]] = {}
    silent: dict[str, Skipped] = {}
    absent: set[str] = set()
    for round_number in sorted({probe.round for probe in probes}):
        answered = answers.keys() | absent
        current = [probe for probe in probes if probe.round == round_number]
        open_probes = [probe for probe in current if probe.name not in answered]
        for probe, value, reason in runner.answers(open_probes):
            is_there = reason != NOT_THERE
            # pip and dpkg repeat their record, whose files are gone.
            if value and not any(probe.repeats(record, value) for record in gone):
                sighting = Seen(version=value, seen_by=RAN, where=probe.command_line)
                answers.setdefault(probe.name, []).append(sighting)
            elif probe.name in present or (is_there and present.intersection(probe.about)):
                # Of several programs one that fails says more than a missing one.
                if probe.name not in silent or is_there:
                    failure = f"`{probe.command_line}` {reason}"
                    silent[probe.name] = Skipped(what=f"{RUNNING}{probe.name}", reason=failure)
            elif is_there:
                # It is as absent as reading found it.
                absent.add(probe.name)
    return answers, silent


def _ordered(name: str, read: Sequence[Seen], ran: Sequence[Seen]) -> tuple[Seen, ...]:
    called = {program: rank for rank, program in enumerate(programs.names(name))}
    first, *others = sorted(
        ran, key=lambda sighting: called.get(sighting.where.partition(" ")[0], len(called))
    )
    mine = first.replace(default=True)
    defaults = [sighting for sighting in read if sighting.default]
    # A reading names a file, and may have a longer version: an answer comes behind it where both agree, else before it.
    agreed = any(_agree(mine.version, sighting.version) for sighting in defaults)
    best = (*defaults, mine) if agreed else (mine, *defaults)
    return (*best, *(sighting for sighting in read if not sighting.default), *others)


def _agree(version: str, other: str) -> bool:
    return f"{version}.".startswith(f"{other}.") or f"{other}.".startswith(f"{version}.")
