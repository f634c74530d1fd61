"""Findings about the archs of a plan: what its toolkit takes, and what nobody asked for."""

from __future__ import annotations

import re

from toolmatrix.judge import stage_facts as facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.finding import Finding, Ground
    from toolmatrix.judge.stage_setting import Setting

REFUSED, DEPRECATED, UNASKED = "TM201", "TM202", "TM203"

# How nvcc and clang say that they do not take an arch, as their logs have it.
_REFUSALS = tuple(
    map(
        re.compile,
        (
            r"Value '((?:sm|compute|lto)_\w+)' is not defined for option",
            r"[Uu]nsupported (?:CUDA |HIP )?gpu architecture:? '?([\w:+-]+)'?",
            r"invalid target ID '([^']+)'; format",
            r"cannot find ROCm device library for ([^;\s]+);",
        ),
    )
)
_GOING = re.compile(r"architectures are deprecated")
_GOING_BELOW = re.compile(r"architectures prior to '<[^>]*>_(\d+)'")
_NATIVE = re.compile(r"Cannot find valid GPU for '-arch=native'")
_DEFAULTS = {"cuda": "cuda-default-archs", "clang": "hip-default-archs"}
# Options of nvcc, hipcc and clang that name an arch, or a file in which such an option may stand.
_ASKS = (
    *("-arch", "-gencode", "-code", "--gpu-architecture", "--generate-code", "--gpu-code"),
    *("--offload-arch", "--cuda-gpu-arch", "--amdgpu-target", "-optf", "--options-file", "@"),
)


def findings(setting: Setting) -> Iterator[Finding]:
    """Everything about what the toolkit takes and what was asked of it."""
    yield from refused(setting)
    yield from deprecated(setting)
    yield from unasked(setting)


def refused(setting: Setting) -> Iterator[Finding]:
    """Archs that the driver says it does not take, and those of the plan that its toolkit refuses by the facts."""
    told: set[str] = set()
    for said in setting.plan.diagnostics:
        for match in filter(None, (pattern.search(said.text) for pattern in _REFUSALS)):
            if match[1] not in told:
                told.add(match[1])
                yield _refusal(setting, match[1], said.stage, said.line, _ground(setting, match[1]))
    for arch, stage in setting.archs.items():
        ground = _ground(setting, arch)
        if ground is not None and arch not in told:
            told.add(arch)
            yield _refusal(setting, arch, stage.id, 0, ground)


def _ground(setting: Setting, arch: str) -> Ground | None:
    """The fact by which the CUDA toolkit does not take an arch; what LLVM takes is in no table."""
    name = facts.twin(setting.index, arch)
    if setting.toolkit.component != "cuda" or name not in setting.index.component("arch").versions:
        return None
    return setting.toolkit.refusal("arch", name, {})


def _refusal(
    setting: Setting, arch: str, stage: int | None, line: int, ground: Ground | None
) -> Finding:
    """`names`: the arch; dropped, new, unknown or nothing; the first and last nvcc and the ROCm that take it."""
    name = facts.twin(setting.index, arch)
    table = "arch-toolkits" if facts.number(name) else "rocm-gfx-first"
    row, cells = facts.row(setting.index, f"{table}/{facts.sass(name)}")
    known = name in setting.index.component("arch").versions
    standing = facts.standing(setting.plan.version, cells) if known else "unknown"
    return setting.finding(
        REFUSED,
        "error",
        stage,
        line,
        names=(arch, standing, *(cells.get(one, "") for one in ("first-ran", "last-ran", "rocm"))),
        grounds=() if ground is None else (ground.replace(clashing=(name,)),),
        actual=arch,
        facts=(*(ground.facts if ground else ()), *row),
    )


def deprecated(setting: Setting) -> Iterator[Finding]:
    """Archs of the plan that the toolkit is about to drop: by its own warning in the log, or in a capture of it."""
    going: dict[str, tuple[tuple[str, ...], int]] = {}
    for said in setting.plan.diagnostics:
        for arch in _going(said.text, setting.archs):
            going.setdefault(arch, ((), said.line))
    for row, cells in setting.toolkit.rows("cuda-deprecated-archs"):
        for arch in cells["deprecated"].split():
            if arch in setting.archs:
                going[arch] = ((row,), going.get(arch, ((), 0))[1])
    if going:
        arch = next(iter(going))
        yield setting.finding(
            DEPRECATED,
            "warning",
            setting.archs[arch].id,
            names=tuple(name for name in setting.archs if name in going),
            expected="an arch that stays",
            actual=arch,
            facts=tuple(dict.fromkeys(row for held, _ in going.values() for row in held)),
        )


def _going(text: str, names: Iterable[str]) -> list[str]:
    """The archs of a plan that a warning of nvcc speaks of."""
    below = _GOING_BELOW.search(text)
    if below:
        return [name for name in names if 0 < facts.number(name) < int(below[1])]
    return [name for name in names if _GOING.search(text) and f"'{name}'" in text]


def unasked(setting: Setting) -> Iterator[Finding]:
    """The default of the toolkit as the only arch: said by the driver, or known and not asked for, or perhaps so.

    `names`: the arch, then native, silent or perhaps.
    """
    said = [one for one in setting.plan.diagnostics if _NATIVE.search(one.text)]
    if not setting.archs:
        return
    held = defaults(setting)
    asked = setting.asked is not None and any(map(asks, setting.asked))
    if not said and (asked or not held):
        return
    how = "native" if said else "perhaps" if setting.asked is None else "silent"
    arch, stage = next(iter(setting.archs.items()))
    yield setting.finding(
        UNASKED,
        "info" if how == "perhaps" else "warning",
        stage.id,
        said[0].line if said else 0,
        names=(facts.sass(facts.twin(setting.index, arch)), how),
        expected="an arch that was asked for",
        actual=arch,
        facts=tuple(held),
    )


def defaults(setting: Setting) -> list[str]:
    """The facts by which the only arch of a plan is what its toolkit takes when none is named."""
    only = {facts.sass(facts.twin(setting.index, arch)) for arch in setting.archs}
    table = _DEFAULTS[setting.toolkit.component]
    rows = [(row, cells["default"]) for row, cells in setting.toolkit.rows(table)]
    return [row for row, default in rows if {default} == only]


def asks(word: str) -> bool:
    """Whether a word of a command line asks for an arch, or may."""
    return word.startswith(_ASKS) and not word.startswith(
        ("-arch=native", "--gpu-architecture=native")
    )
