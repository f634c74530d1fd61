"""The Python packages of answers from wheels, as a resolver is asked for them."""

from __future__ import annotations

from toolmatrix.codes.audit import UnresolvedPins
from toolmatrix.judge import sweep
from toolmatrix.judge.pool import IndexedWork
from toolmatrix.judge.published import machine as machine_of
from toolmatrix.report import variants
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.resolve import attempt
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.finding import InstallMethod
    from toolmatrix.judge.sweep import Release
    from toolmatrix.solve.resolve import Resolution


class Pins(Value):
    """The packages of an answer from wheels, as a resolver of Python packages is asked for them."""

    release: Release
    way: InstallMethod
    requirements: tuple[str, ...]
    python: str
    machine: str
    # That of the distribution, "" where none is in the answer.
    glibc: str = ""


class Pinner(IndexedWork):
    """Asks for the packages of the answers for parts of the work; `own` are the versions that were read, by name."""

    own: Mapping[str, Collection[str]]

    def attempt(self, part: Sequence[Release]) -> list[Pins]:
        """The packages of the answers for some releases."""
        return [one for release in part for one in answers(self.index, release, self.own)]


def answers(index: Index, release: Release, own: Mapping[str, Collection[str]]) -> Iterator[Pins]:
    """The packages of each answer for a release from wheels of the default channel, the same ones once."""
    seen = set()
    for way in sweep.install_methods(index, release[0]):
        made = answer(index, release, way, own) if way.from_ == "wheel" else None
        if made and (key := (made.requirements, made.python, made.machine)) not in seen:
            seen.add(key)
            yield made


def answer(
    index: Index,
    release: Release,
    way: InstallMethod,
    own: Mapping[str, Collection[str]],
    python: str = "",
) -> Pins | None:
    """The packages of the answer in one way, with a Python series if one is named; None where it promises nothing."""
    beside = (("python", python),) if python else ()
    found = attempt(index, sweep.request(index, release, way, *beside))
    # An answer that rests on what nobody knows promises nothing that a resolver could prove wrong.
    if isinstance(found, Assembly) or not found.known:
        return None
    return _pins(index, release, way, found, own)


def _pins(
    index: Index,
    release: Release,
    way: InstallMethod,
    found: Resolution,
    own: Mapping[str, Collection[str]],
) -> Pins | None:
    builds = list(variants.of(index, found.targets[way.target]))
    # Other channels than the default one are not the index that is asked: they have an index or files of their own.
    if any(build.arguments or "@" in build.requirement for build in builds):
        return None
    chosen = found.chosen(way.target)
    built = {build.component for build in builds}
    held = [word for build in builds for word in build.requirement.split()]
    held += [
        f"{name}=={version}"
        for name, version in chosen.items()
        # What was not read at the index, such as a driver or a compiler, is no package that could be pinned there.
        if name not in built and version in own.get(name, ())
    ]
    python = chosen.get("python", "")
    machine = machine_of(index, way)
    # uv resolves for one Python, which it has to be told; of Python 2 it knows builds that no distribution has (cp27m).
    if not held or not python or python.startswith("2."):
        return None
    return Pins(
        release=release,
        way=way,
        requirements=tuple(dict.fromkeys(held)),
        python=python,
        machine=machine,
        # Answers do not show it, and it decides which wheels uv may take.
        glibc=next((pin.release for pin in found.hidden if pin.component == "glibc"), ""),
    )


# What uv says where a release has a source archive alone, which only running its program would tell more of.
_NO_WHEELS = ("has no usable wheels", "have no usable wheels")


def unresolved(pins: Pins, resolver: str, said: str) -> UnresolvedPins:
    """The finding that a resolver refuses an answer; one that needs a source archive is told and is no error."""
    return UnresolvedPins(
        severity="info" if any(words in said for words in _NO_WHEELS) else "error",
        component=pins.release[0],
        releases=(pins.release[1],),
        ways=(pins.way,),
        resolver=resolver,
        actual=said,
    )
