"""The Python packages of a lock: all that its answers take, with their files, by uv and the user's index."""

from __future__ import annotations

from toolmatrix.report.terminal import listing
from toolmatrix.request.fields import Fields, parse_arguments
from toolmatrix.request.read import read
from toolmatrix.solve.resolve import Unsatisfiable, resolve
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import Lock, LockedClosure, LockedTarget, PackageQuestion

    EnvironmentTarget = tuple[str, str]
    """An environment and a target."""

_PYTHON, _GLIBC = "python", "glibc"


class CarriedPackages(Value):
    """A lock with the packages of an earlier one where their question is the same; `lost` names the answers without."""

    lock: Lock
    lost: tuple[str, ...]

    @property
    def note(self) -> str:
        """What to say of the answers without, "" where there are none."""
        if not self.lost:
            return ""
        return (
            f"the packages of {listing(self.lost)} belong to another answer and are left out: "
            "`toolmatrix lock --packages` resolves them again"
        )


def resolve_packages(
    index: Index,
    lock: Lock,
    env: Mapping[str, str],
    previous: Lock | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Lock:
    """A lock with every Python package of its answers, at the releases of `previous` where these still fit.

    Raises Unresolved, ToolMissing, RenderError.
    """
    from toolmatrix.harvest import families
    from toolmatrix.harvest.closures import closure
    from toolmatrix.harvest.resolver import Uv

    uv, closures = Uv(env, "--packages"), {}
    pending = dict(questions(index, lock))
    session, _ = families.open_session(env)
    try:
        for done, (key, question) in enumerate(pending.items(), 1):
            day = parse_arguments(lock.environments[key[0]].request).get("at", "")
            closures[key] = closure(uv, session, question, _closure(previous, key), day)
            progress(done, len(pending))
    finally:
        session.close()
    return _with_closures(lock, closures)


def carry_packages(index: Index, lock: Lock, previous: Lock | None) -> CarriedPackages:
    """A lock with the packages of another one, as far as both ask for the same."""
    keys = [key for key in _keys(previous) if _closure(previous, key)] if previous else []
    if not keys:
        return CarriedPackages(lock=lock, lost=())
    pending = dict(questions(index, lock))
    closures = {
        key: closure
        for key in keys
        if (closure := _closure(previous, key)) and pending.get(key) == closure.asked
    }
    lost = (name for name, *key in lock.names() if tuple(key) in {*keys} - {*closures})
    return CarriedPackages(lock=_with_closures(lock, closures), lost=tuple(lost))


def _keys(lock: Lock) -> list[EnvironmentTarget]:
    return [(environment, target) for _, environment, target in lock.names()]


def _closure(lock: Lock | None, key: EnvironmentTarget) -> LockedClosure | None:
    if lock is None or key[0] not in lock.environments:
        return None
    target = lock.environments[key[0]].targets.get(key[1])
    return target.closure if target else None


def _with_closures(lock: Lock, closures: Mapping[EnvironmentTarget, LockedClosure]) -> Lock:
    return lock.replace(
        environments={
            name: environment.replace(
                targets={
                    target: locked.replace(closure=closures.get((name, target)))
                    for target, locked in environment.targets.items()
                }
            )
            for name, environment in lock.environments.items()
        }
    )


def questions(index: Index, lock: Lock) -> Iterator[tuple[EnvironmentTarget, PackageQuestion]]:
    """What a resolver is asked for each answer that installs Python packages."""
    from toolmatrix.api import files
    from toolmatrix.harvest import families
    from toolmatrix.judging import audit
    from toolmatrix.rendering import answer, make

    # Every recipe installs what is resolved by the same provisions; what its own steps install is no part of an answer.
    rules, platforms = files.rules(index, files.RenderOptions()), audit.rules()
    known = {name for package, name in families.packages().items() if package == name}
    for key in _keys(lock):
        target = lock.environments[key[0]].targets[key[1]]
        if _PYTHON not in target.components:
            continue
        platform = platforms.platform(answer.machine(target), _glibc(index, key[1], target))
        question = make.question(key[1], target, rules, platform, known)
        if question.requirements or question.builds:
            yield key, question


def _glibc(index: Index, target: str, locked: LockedTarget) -> str:
    """The glibc of the distribution, "" where it is unknown: an answer does not show it."""
    distro = locked.components.get("distro")
    if distro is None or _GLIBC not in index.header["components"]:
        return ""
    fields = Fields(wanted=(f"distro=={distro.version}",), with_=(_GLIBC,), target=(target,))
    answer = resolve(index, read(index, fields))
    if isinstance(answer, Unsatisfiable):
        return ""
    return next((pin.release for pin in answer.hidden if pin.component == _GLIBC), "")
