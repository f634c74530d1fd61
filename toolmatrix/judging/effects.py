"""What commands undo of one another, and what today's releases break: findings about a followed installation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from toolmatrix.codes.manifests import ManifestFinding, NewestUnfit, Replaced
from toolmatrix.finding import Incompatibility, union_of_fields
from toolmatrix.judging.installs import (
    Change,
    Installation,
    Installed,
    Mismatch,
    PipCommand,
    Solved,
    newest_of,
)
from toolmatrix.manifests.model import IMAGE, Item
from toolmatrix.request.judgement import ManifestRefusal, RequestedPart, finding_fields
from toolmatrix.solve.parts import union
from toolmatrix.solve.request import Request
from toolmatrix.value import NamedTuple

FOLLOWED = frozenset(
    [
        "Dockerfile",
        "GitHub workflow",
        "GitLab pipeline",
        "Makefile",
        "README",
        "cog.yaml",
        "compose file",
        "conda environment",
        "devcontainer",
        "notebook",
        "pyproject",
        "requirements",
        "setup.cfg",
        "setup.py",
        "shell script",
    ]
)
"""The kinds of files whose packages are installed as they are written, unless a lock is there; others are locks."""


def _kept(
    run: Installation, command: PipCommand, within: Mapping[str, int], first: str
) -> dict[str, str]:
    """The pins with which a command leaves some packages within some releases; nothing where there are none.

    One pin will do where it can, that of the package `first` before the others.
    """
    solved = Solved(run, command, within)
    solution = solved.solution() if solved.blind.isdisjoint(within) else None
    if solution is None:
        return {}
    before = Solved(run, command).solution() or {}
    changed = {
        name: release
        for name, release in solution.items()
        if release and release != before.get(name) and (name in solved.roots or name == first)
    }
    for name in sorted(changed, key=lambda name: name != first):
        pinned = Solved(run, command, {name: changed[name]}).solution() or {}
        if all(pinned.get(other, 0) & mask for other, mask in within.items()):
            changed = {name: changed[name]}
            break
    return {name: run.name(name, release) for name, release in changed.items()}


def fitting(run: Installation, component: str, within: int) -> tuple[tuple[str, ...], bool]:
    """The pins by which a command takes some releases of a package, and whether it can take none of them."""
    command, releases = run.commands[component], {component: within & ~1}
    solved = Solved(run, command, releases)
    none = component not in solved.blind and solved.solution() is None
    return _pinned(_kept(run, command, releases, component)), none


def _nearest(run: Installation, change: Change) -> str:
    """The release nearest to the old one that the command leaves in its place."""
    component, old = change.component, change.old.release
    cause, selector = change.cause, change.new.part.asks[0].selector
    left = run.index.scale(component).select(" ".join(cause.values) if cause else selector)
    above, below = left & -(old << 1), left & (old - 1) & ~1
    nearest = above & -above or newest_of(below)
    within = {component: nearest}
    fits = nearest and Solved(run, change.command, within).solution()
    return run.name(component, nearest if fits else change.new.release)


class InstallEffect(NamedTuple):
    """A finding with the lines that it is about; `instead` is the conflict of two of them that it explains."""

    finding: ManifestFinding
    parts: tuple[RequestedPart, ...]
    instead: frozenset[str]


def after_installs(
    run: Installation,
    refusals: Sequence[ManifestRefusal],
    request: Callable[[Sequence[RequestedPart]], Request],
) -> tuple[ManifestRefusal, ...]:
    """Refusals with what commands do in their order: a later one may replace what it does not go with.

    `request` makes the request of some lines.
    """
    left = [refusal for refusal in refusals if not run.resolves(refusal.parts)]
    names = [frozenset(part.component for part in refusal.parts) for refusal in left]
    for finding, parts, instead in effects(run, names):
        refused = request(parts)
        if instead and instead in names:
            # Its way out is that of the conflict.
            refused = left.pop(names.index(instead)).request
            names.remove(instead)
        finding = finding.replace(environment=run.environment)
        left.append(ManifestRefusal(finding=finding, parts=parts, request=refused))
        names.append(frozenset())
    return tuple(left)


def effects(run: Installation, refused: Collection[frozenset[str]]) -> Iterator[InstallEffect]:
    """What a later command undoes, and what today's releases break; `refused` are components known to conflict."""
    mismatches = [*run.mismatches()]
    for change in run.changes:
        last = run.installed.get(change.component) == change.new
        # A later line may put it right, mean another, or take it away.
        unwanted = not change.removed and _unwanted(run, change)
        if not last and (run.is_pinned(change.component) or not unwanted):
            continue
        left = [
            mismatch
            for mismatch in mismatches
            if last
            and mismatch.binding.component == change.component
            and run.commands.get(mismatch.subject) is not change.command
            and {mismatch.subject, change.component} not in refused
        ]
        if left or unwanted:
            yield _replaced(run, change, left)
            mismatches = [mismatch for mismatch in mismatches if mismatch not in left]
    unknown = [
        mismatch
        for mismatch in mismatches
        if not any({mismatch.subject, mismatch.binding.component} <= names for names in refused)
    ]
    for component, same in _by_newest(run, unknown).items():
        yield _newest(run, component, same)


def _unwanted(run: Installation, change: Change) -> bool:
    """True if a line asked for another release or build than the one that takes its place, and none names that."""
    old, new = change.old, change.new
    if not old.named:
        return False
    # An index that a line names decides on the build, and one that it does not name changes it.
    lines = [_lines(run, change.component, installed) for installed in (old, new)]
    apart = all(lines) and lines[0].isdisjoint(lines[1])
    if apart and old.part.item.indexes and not new.part.item.indexes:
        return True
    specifier = new.part.item.specifier
    if new.named and ("==" in specifier or (specifier and not old.part.carried)):
        return False
    scale = run.index.scale(change.component)
    return old.part.carried or not scale.select(old.part.asks[0].selector) & new.release


def _lines(run: Installation, component: str, installed: Installed) -> set[str]:
    """The toolkits of the builds that a package may be of, as their names have them."""
    if not installed.builds:
        return set()
    builds = run.index.scale(run.index.builds_of(component)).named(installed.builds)
    return {build.partition("@")[0].partition("+")[2] for build in builds}


def _described(run: Installation, component: str, installed: Installed) -> str:
    release = run.name(component, installed.release)
    lines = _lines(run, component, installed)
    return f"{release} ({lines.pop()})" if len(lines) == 1 else release


def _place(item: Item, beside: Item) -> str:
    where = item.where
    return f"line {where.line}" if where.path == beside.where.path else f"{where.path}:{where.line}"


def _replaced(run: Installation, change: Change, left: Sequence[Mismatch]) -> InstallEffect:
    component, old, new = change.component, change.old, change.new
    cause = change.cause
    grounds = _distinct([*([cause] if cause else []), *(mismatch.ground for mismatch in left)])
    # A library that was compiled for the old one does not load; what is in an image may not be used.
    bound = any(
        _is_compiled(run, mismatch) and run.installed[mismatch.subject].part.item.kind != IMAGE
        for mismatch in left
    )
    newest = cause and not run.is_pinned(cause.subject)
    parts = (new.part, old.part)
    finding = Replaced(
        **finding_fields(parts, component=component),
        severity="error" if bound else "warning",
        grounds=grounds,
        facts=union_of_fields(grounds, "facts"),
        line=_place(new.part.item, new.part.item),
        takes=f"{cause.subject} {cause.releases[0]}" if cause and newest else "",
        old=_described(run, component, old),
        old_line=_place(old.part.item, new.part.item),
        new=_described(run, component, new),
        left=tuple(dict.fromkeys(f"{m.subject} {m.ground.releases[0]}" for m in left)),
        pins=_pinned(
            _kept(
                run,
                change.command,
                {component: old.release},
                cause.subject if cause else component,
            )
        ),
        instead=_nearest(run, change),
        kept="" if old.part.carried else f"{component}=={run.name(component, old.release)}",
        today=run.today,
    )
    subject = cause.subject if cause else component
    return InstallEffect(finding, parts, frozenset((subject, component)))


def _is_compiled(run: Installation, mismatch: Mismatch) -> bool:
    """True for a fact about compiled code: of two packages that share it, or of what a wheel has in it."""
    binding = mismatch.binding
    # What metadata declares is no limit, and a limit of wheels alone is one of the code in them.
    in_wheel = binding.kind == "limits" and "from" in dict(binding.conditions)
    return in_wheel or binding.component in run.heads[mismatch.subject]["against"]


def _distinct(grounds: Iterable[Incompatibility]) -> tuple[Incompatibility, ...]:
    """One ground of each two packages: several facts may say the same."""
    return tuple({(ground.subject, ground.component): ground for ground in grounds}.values())


def _pinned(releases: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}=={release}" for name, release in releases.items())


def _by_newest(run: Installation, mismatches: Sequence[Mismatch]) -> dict[str, list[Mismatch]]:
    """The mismatches that today's release of a package makes, by that package: no line says which one is taken."""
    by_newest: dict[str, list[Mismatch]] = {}
    for mismatch in mismatches:
        for component in (mismatch.binding.component, mismatch.subject):
            command = run.commands.get(component)
            if command is None or run.is_pinned(component):
                continue
            # An old release of something unknown may bound it.
            if not any("==" in item.specifier for item in command.unknown):
                by_newest.setdefault(component, []).append(mismatch)
            break
    return by_newest


def _newest(run: Installation, component: str, same: Sequence[Mismatch]) -> InstallEffect:
    own = run.installed[component]
    grounds = _distinct(mismatch.ground for mismatch in same)
    others = {m.subject if m.binding.component == component else m.binding.component for m in same}
    parts = [own.part, *(run.installed[other].part for other in others)]
    within = -1
    for mismatch in same:
        if mismatch.binding.component == component:
            within &= mismatch.binding.allowed
        else:
            about = run.index.component(component).about(mismatch.binding.component, -1)
            fits = run.installed[mismatch.binding.component].release
            within &= ~union(
                b.mask for b in about if b.kind == mismatch.binding.kind and not b.allowed & fits
            )
    unique = tuple({id(part.item): part for part in parts}.values())
    finding = NewestUnfit(
        **finding_fields(unique, component=component),
        severity="warning",
        grounds=grounds,
        facts=union_of_fields(grounds, "facts"),
        new=run.name(component, own.release),
        others=tuple(
            f"{other} {run.name(other, run.installed[other].release)}" for other in sorted(others)
        ),
        line=_place(own.part.item, own.part.item),
        pins=_pinned(_kept(run, run.commands[component], {component: within & ~1}, component)),
        today=run.today,
    )
    return InstallEffect(finding, unique, frozenset())
