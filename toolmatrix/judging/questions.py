"""What is asked about an environment of a manifest.

An environment is not one question: a wheel may bring a CUDA of its own beside that of an image, and two may bring two.
So the toolkit is asked about with the code that it makes, and each package that computes on an accelerator by itself,
with those that facts tie to it and all that is on no accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from toolmatrix.factbase.index import Index
from toolmatrix.judging.joins import as_wheel, is_series
from toolmatrix.judging.toolkits import LOADABLE, loads_toolkit, needs_toolkit, widened
from toolmatrix.manifests.model import CONDA, IMAGE
from toolmatrix.request import manifests as reading
from toolmatrix.request.fields import Fields
from toolmatrix.request.judgement import (
    ARCH,
    DEVICE,
    RUNTIME,
    Question,
    RequestedPart,
    RequestedParts,
    by_command,
    has_answer,
    wheel_accelerators,
)
from toolmatrix.request.machine import TargetMachine, device_accelerator
from toolmatrix.request.read import context, option
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import Resolution, attempt

WHEEL, SOURCE = "wheel", "source"
# These decide whether the system has the libraries that a wheel needs.
_SYSTEM = frozenset(("distro", "glibc", "libstdcxx"))


class EnvironmentQuestions:
    """What is asked about one environment: its parts by what has to go together, and the requests that these make."""

    def __init__(self, index: Index, parts: RequestedParts, machine: TargetMachine) -> None:
        self.index = index
        self.components = index.header["components"]
        self.packages = {*index.packages().values()}
        self.parts = parts.parts
        self.items = parts.items
        self.written = parts.written or parts.parts
        self.targets = reading.targets(index, parts, machine.targets)
        # What it runs on, and the accelerator of that; empty where the file alone is asked about.
        self.runtime = tuple(part for part in parts.parts if part.component in RUNTIME)
        needed = device_accelerator(index, [part.asks[0] for part in self.runtime])
        own = index.header["targets"][self.targets[0]]["accelerator"]
        # The accelerator of a target is only a default; a file chooses it by what it installs.
        self.accelerator = needed or (own if own == "rocm" else "cuda")

    @cached_property
    def installed(self) -> dict[str, RequestedPart]:
        """The packages whose release the file leaves open, by their text, at the one that pip takes: the newest."""
        packages = [part for part in self.parts if self.is_package(part)]
        python = [part for part in self.parts if part.component == "python"]
        request = self.request((*packages, *python), self.targets[0], WHEEL, self.accelerator)
        answer = attempt(self.index, request.replace(prefer="newest"))
        chosen = answer.chosen(self.targets[0]) if isinstance(answer, Resolution) else {}
        installed = {}
        for part in packages:
            selector = f"=={chosen.get(part.component, '')}"
            if part.component in chosen and part.asks[0].selector != selector and not part.open:
                first = part.asks[0].replace(selector=selector)
                installed[part.text] = part.replace(
                    asks=(first, *part.asks[1:]),
                    text=f"{part.text}, {selector[2:]} as of {self.index.header['date']}",
                    older=False,
                )
        return installed

    def questions(self) -> Iterator[Question]:
        """The questions of this environment, each once: two packages that compute ask the same."""
        known = set()
        for question in self.all_questions():
            asks = frozenset((part.component, *part.asks) for part in question.parts)
            if (key := (asks, *question[1:])) not in known:
                known.add(key)
                yield question

    def all_questions(self) -> Iterator[Question]:
        """The questions by what they are about; those with fewer parts first, so that a reason has the fewest."""
        computing = [part for part in self.parts if self.computes(part)]
        tools = tuple(
            part
            for part in self.parts
            if not self.is_package(part) and part.component not in ("python", DEVICE)
        )
        packages = [part for part in self.parts if self.is_package(part)]
        plain = [part for part in packages if part not in computing]
        python = [part for part in self.parts if part.component == "python"]
        system = [part for part in tools if part.component in _SYSTEM]
        # What is compiled in an image needs no GPU, and a container does not start beside a driver of before its CUDA.
        if len(tools) > 1:
            yield Question(tools, (SOURCE,), (self.accelerator,))
        compiled_for = tuple(part for part in tools if part.component == ARCH)
        if compiled_for and self.runtime:
            yield Question((*compiled_for, *self.runtime), (SOURCE,), (self.accelerator,))
        # On the CPU alone, where the toolkits of two packages cannot clash.
        yield Question((*packages, *python, *system), self.froms(packages), ("none",))
        for command in self.replaced_commands():
            yield Question((*command, *python, *system), self.froms(command), ("none",))
        for part in computing:
            # What one loads another may bring where no image has it: then they have to agree on it.
            loading = not self.toolkit() and needs_toolkit(self.index, part)
            beside = [
                other
                for other in computing
                if other is not part
                and (
                    self.share_facts(part, other)
                    or (loading and needs_toolkit(self.index, other) is False)
                )
            ]
            # Where one that goes with it brings a toolkit, that is loaded, and not the one of the image.
            brings_toolkit = any(needs_toolkit(self.index, other) is False for other in beside)
            loads = loads_toolkit(self.index, part) and not brings_toolkit
            toolkit = self.toolkit() if loads else []
            parts = (part, *beside, *plain, *python, *system, *toolkit)
            # Who names a device, or has a toolkit beside a wheel that needs one, wants to compute on it.
            computing_on = (self.accelerator,) if toolkit else (self.accelerator, "none")
            if self.runtime and self.is_for_accelerator(part):
                alone = (self.installed.get(part.text, part), *self.runtime)
                yield Question(alone, self.froms(alone[:1]), (self.accelerator,))
                if wheel := as_wheel(part, self.parts, self.items):
                    yield Question((*wheel, *self.runtime), (WHEEL,), (self.accelerator,))
                parts = tuple(self.installed.get(part.text, part) for part in parts)
                parts, computing_on = (*parts, *self.runtime), (self.accelerator,)
            yield Question(parts, self.froms(parts), computing_on)

    def replaced_commands(self) -> Iterator[tuple[RequestedPart, ...]]:
        """What a command installs together, of each command of which a later one replaces something."""
        left = {*map(part_key, self.parts)}
        for parts in by_command(filter(self.is_package, self.written)):
            if len(parts) > 1 and not {*map(part_key, parts)} <= left:
                yield parts

    def install_methods(self, question: Question, target: str) -> Iterator[tuple[str, str]]:
        """Whether wheels or not, and on what: pip takes a build for CUDA wherever the index has that alone."""
        machine = self.index.header["targets"][target]["context"]["machine"]
        left = question.accelerators
        on_device = any(part.component in RUNTIME for part in question.parts)
        for part in () if on_device else question.parts:
            built_for = wheel_accelerators(self.index, part, machine)
            left = tuple(name for name in left if name in built_for or not built_for)
        # What was built for one, beside what was built for another, runs on the processor at most.
        for from_ in question.froms:
            for accelerator in left or ("none",):
                yield from_, accelerator

    def is_package(self, part: RequestedPart) -> bool:
        """True for a package of Python, however it gets there."""
        return part.component in self.packages and part.component not in reading.TOOLKIT

    def is_for_accelerator(self, part: RequestedPart) -> bool:
        """True unless every build that is left of a package is for the processor alone, as its name or index says."""
        machine = self.index.header["targets"][self.targets[0]]["context"]["machine"]
        return wheel_accelerators(self.index, part, machine) != ("none",)

    def computes(self, part: RequestedPart) -> bool:
        """True for what computes on an accelerator by itself."""
        alone = self.is_package(part) or is_series(part)
        return alone and bool(self.components[part.component]["accelerators"])

    def froms(self, parts: Sequence[RequestedPart]) -> tuple[str, ...]:
        """Whether packages come as wheels; for what conda or an image brings that is unknown, and either will do."""
        either = any(
            (part.item.built or part.item.kind in (CONDA, IMAGE)) and self.is_package(part)
            for part in parts
        )
        return (WHEEL, SOURCE) if either else (WHEEL,)

    def toolkit(self) -> list[RequestedPart]:
        """The parts of a toolkit that an image has."""
        return [
            widened(self.index, other)
            for other in self.parts
            if other.component in LOADABLE and not self.is_package(other)
        ]

    def share_facts(self, first: RequestedPart, second: RequestedPart) -> bool:
        """True if any fact is about both, or about builds of one and the other."""
        names = [self.index.with_builds(part.component) for part in (first, second)]
        return any(
            group.component in theirs
            for own, theirs in (names, names[::-1])
            for name in own
            for group in self.index.component(name).binding_groups
        )

    def request(
        self, parts: Sequence[RequestedPart], target: str, from_: str, accelerator: str
    ) -> Request:
        """The request that parts make on a target."""
        options = context(target, Fields(), self.index)
        for name, value in (("accelerator", accelerator), ("from", from_)):
            options.append(option(name, value, target, implied=True))
        asks = [
            ask for part in parts if part.component not in SEVERAL for ask in reading.as_asks(part)
        ]
        archs, devices = (
            dict.fromkeys(part.asks[0].selector for part in parts if part.component == name)
            for name in SEVERAL
        )
        return Request(
            asks=(*dict.fromkeys(asks), *options),
            targets=(target,),
            archs=tuple(archs),
            devices=tuple(devices),
        )

    def requests(self, question: Question, target: str) -> Iterator[Request]:
        """The requests of a question, one for each way to install its parts, the likeliest first."""
        for from_, accelerator in self.install_methods(question, target):
            yield self.request(question.parts, target, from_, accelerator)

    def has_answer(self, question: Question, target: str) -> bool:
        """True if the parts of a question go together in some way."""
        return any(has_answer(self.index, each) for each in self.requests(question, target))


def part_key(part: RequestedPart) -> tuple[str, int]:
    """What a part is known by, also where it is asked about at other releases than the file leaves."""
    return part.component, id(part.item)
