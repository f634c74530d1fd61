"""The Python packages of a lock: all that its answers take, with their files, by uv and the user's index."""

from __future__ import annotations

from toolmatrix.report.terminal import listing
from toolmatrix.request.fields import Fields, given
from toolmatrix.request.read import read
from toolmatrix.solve.resolve import Unsatisfiable, resolve
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolmatrix.facts.index import Index
    from toolmatrix.lock.model import Lock, LockedClosure, LockedTarget, PackageQuestion

    Place = tuple[str, str]
    """An environment and a target."""

_PYTHON, _GLIBC = "python", "glibc"


class PackagesKept(Value):
    """A lock with the packages of an earlier one where their question is the same; `lost` names the answers without."""

    lock: Lock
    lost: tuple[str, ...]

    @property
    def note(self) -> str:
        """What to say of the answers without, "" where there are none."""
        if not self.lost:
            return ""
        return (
            f"the packages of {listing(self.lost)} were those of another answer and are left out: "
            "`toolmatrix lock --packages` asks for them"
        )


def filled(
    index: Index,
    lock: Lock,
    env: Mapping[str, str],
    held: Lock | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Lock:
    """A lock with every Python package of its answers, at the releases of `held` where these still go.

    Raises Unresolved, ToolMissing, RenderError.
    """
    from toolmatrix.harvest import families
    from toolmatrix.harvest.closures import closure
    from toolmatrix.harvest.resolver import Uv
    from toolmatrix.harvest.transport import Session

    uv, session, found = Uv(env, "--packages"), Session(), {}
    asked = dict(questions(index, lock))
    try:
        where = families.indexes(env)
        session.trust(where.certificates, where.proxy)
        for done, (place, question) in enumerate(asked.items(), 1):
            day = given(lock.environments[place[0]].request).get("at", "")
            found[place] = closure(uv, session, question, _closure(held, place), day)
            progress(done, len(asked))
    finally:
        session.close()
    return _with(lock, found)


def keep_packages(index: Index, lock: Lock, held: Lock | None) -> PackagesKept:
    """A lock with the packages of another one, as far as both ask for the same."""
    places = [place for place in _places(held) if _closure(held, place)] if held else []
    if not places:
        return PackagesKept(lock=lock, lost=())
    asked = dict(questions(index, lock))
    found = {
        place: closure
        for place in places
        if (closure := _closure(held, place)) and asked.get(place) == closure.asked
    }
    lost = (name for name, *place in lock.names() if tuple(place) in {*places} - {*found})
    return PackagesKept(lock=_with(lock, found), lost=tuple(lost))


def _places(lock: Lock) -> list[Place]:
    return [(environment, target) for _, environment, target in lock.names()]


def _closure(lock: Lock | None, place: Place) -> LockedClosure | None:
    if lock is None or place[0] not in lock.environments:
        return None
    held = lock.environments[place[0]].targets.get(place[1])
    return held.closure if held else None


def _with(lock: Lock, found: Mapping[Place, LockedClosure]) -> Lock:
    return lock.replace(
        environments={
            name: environment.replace(
                targets={
                    target: held.replace(closure=found.get((name, target)))
                    for target, held in environment.targets.items()
                }
            )
            for name, environment in lock.environments.items()
        }
    )


def questions(index: Index, lock: Lock) -> Iterator[tuple[Place, PackageQuestion]]:
    """What a resolver is asked for each answer that installs Python packages."""
    from toolmatrix.api import files
    from toolmatrix.harvest import families
    from toolmatrix.judge import audit
    from toolmatrix.render import answer, make

    # Every recipe installs what is resolved by the same provisions; what its own steps install is no part of an answer.
    rules, platforms = files.rules(index, files.RenderOptions()), audit.rules()
    known = {name for package, name in families.packages().items() if package == name}
    for place in _places(lock):
        held = lock.environments[place[0]].targets[place[1]]
        if _PYTHON not in held.components:
            continue
        platform = platforms.platform(answer.machine(held), _glibc(index, place[1], held))
        question = make.question(place[1], held, rules, platform, known)
        if question.requirements or question.builds:
            yield place, question


def _glibc(index: Index, target: str, held: LockedTarget) -> str:
    """The glibc of the distribution, "" where nobody knows it: an answer does not show it."""
    distro = held.components.get("distro")
    if distro is None or _GLIBC not in index.header["components"]:
        return ""
    fields = Fields(wanted=(f"distro=={distro.version}",), with_=(_GLIBC,), target=(target,))
    found = resolve(index, read(index, fields))
    if isinstance(found, Unsatisfiable):
        return ""
    return next((pin.release for pin in found.hidden if pin.component == _GLIBC), "")
