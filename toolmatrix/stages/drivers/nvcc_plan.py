"""From the commands of one run of nvcc to its plan: what is read without being named, archs, edges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmatrix.stages import model
from toolmatrix.stages.drivers import base_name
from toolmatrix.stages.drivers.nvcc_tools import (
    FROM_TOOLKIT,
    READ_ENDINGS,
    SOURCES,
    Draft,
    is_known,
)
from toolmatrix.stages.model import Depfile, Diagnostic, Plan, Stage

if TYPE_CHECKING:
    from toolmatrix.stages.drivers.nvcc import NvccRun

TEMP = "tmpxft_"
_VERSION = re.compile(r'-D"?__CUDACC_VER_(MAJOR|MINOR|BUILD)__=(\d{1,6})')
_VERSION_WORDS = ("MAJOR", "MINOR", "BUILD")
_TOOLKIT_PATH = re.compile(r"(?i)cuda.{0,40}?[-/\\v](\d{1,2}\.\d{1,2}(?:\.\d{1,3})?)(?=[/\\]|$)")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_SLASHES = re.compile(r"[/\\]+")
_SYSTEM = ("/usr/lib/", "/usr/lib64/", "/usr/lib32/", "/lib/", "/lib64/")
# Kinds of stages that make code for a virtual arch, or what such code is made of.
_VIRTUAL = frozenset({"cicc", "cudafe", "preprocess"})


def plan(run: NvccRun) -> Plan:
    """The plan that the commands of one run make together; changes its drafts."""
    drafts, env = run.drafts, run.env
    # Each step needs what those before it have found.
    _spell_alike(drafts)
    _leave_out_foreign(drafts, env)
    _settle(drafts)
    _read_indirectly(drafts)
    _name_archs(drafts)
    stages = [
        Stage(
            id=number,
            line=draft.line,
            kind=draft.kind,
            tool=draft.tool,
            arch=draft.arch,
            inputs=tuple(dict.fromkeys(draft.reads)),
            outputs=tuple(dict.fromkeys(draft.writes)),
            argv=tuple(draft.words),
            text=draft.text,
        )
        for number, draft in enumerate(drafts)
    ]
    return Plan(
        tool="nvcc",
        version=_version(drafts, env),
        line=run.line,
        env=env,
        stages=tuple(stages),
        edges=model.stage_edges(stages),
        diagnostics=tuple(
            sorted((*run.said, *_doubts(drafts), *_end(drafts, run.said)), key=lambda one: one.line)
        ),
        removed=tuple(run.removed),
        depfiles=tuple(_depfiles(drafts, run.depfiles)),
    )


def _depfiles(drafts: Sequence[Draft], written: Iterable[tuple[str, int]]) -> Iterable[Depfile]:
    # nvcc makes such a file from what was preprocessed since the one before.
    begin = 0
    for path, end in written:
        read = tuple(n for n in range(begin, end) if drafts[n].kind == "preprocess")
        begin = end
        if read:
            yield Depfile(path=path, stages=read)


def _version(drafts: Sequence[Draft], env: Mapping[str, str]) -> str:
    """The release that the defines of a command tell, or else the path of the toolkit; empty if neither does."""
    for draft in drafts:
        # What a response file holds stands only in the words.
        text = " ".join(draft.words) if "@" in draft.text else draft.text
        if "__CUDACC_VER_MAJOR__" in text:
            found = dict(_VERSION.findall(text))
            return ".".join(found[word] for word in _VERSION_WORDS if word in found)
    # The variable of a hostile log may be megabytes long.
    named = _TOOLKIT_PATH.search(env.get("_HERE_", "")[:1000])
    return named[1] if named else ""


def alike(path: str) -> str:
    """A path as all names of a file of Windows have it in common."""
    return _SLASHES.sub("/", path).lower()


def _spell_alike(drafts: Sequence[Draft]) -> None:
    """Give each file of Windows one name, the first printed: `C:/x` is `C:\\x`, and letters have no case."""
    if not any(_DRIVE.match(path) for draft in drafts for path in (*draft.reads, *draft.writes)):
        return
    first: dict[str, str] = {}

    def named(path: str) -> str:
        return first.setdefault(alike(path), path)

    for draft in drafts:
        for field in ("reads", "writes", "loose", "named"):
            setattr(draft, field, [named(path) for path in getattr(draft, field)])
        for field in ("front", "stub", "module"):
            path = getattr(draft, field)
            setattr(draft, field, path and named(path))


def _leave_out_foreign(drafts: Sequence[Draft], env: Mapping[str, str]) -> None:
    here = env.get("_HERE_", "")
    roots = {here[: -len(base_name(here))][:-1], env.get("TOP", ""), env.get("CUDA_ROOT", "")}
    # nvcc may be installed for the whole system, of which not everything is a toolkit.
    roots -= {"", "/", "/usr", "/usr/local"}
    own = (*_SYSTEM, *(f"{root}{slash}" for root in roots for slash in "/\\"))
    foreign = {
        path
        for draft in drafts
        for path in draft.reads
        if path.endswith(".stub") or (path.startswith(own) and FROM_TOOLKIT.search(path))
    }
    if foreign:
        # What the plan writes itself is its own, wherever it lies.
        foreign.difference_update(*(draft.writes for draft in drafts))
        for draft in drafts:
            draft.reads = [path for path in draft.reads if path not in foreign]


def _settle(drafts: Sequence[Draft]) -> None:
    """Tell reads from writes by the rest of the plan, for files of which the words alone do not tell."""
    if not any(draft.loose or draft.named for draft in drafts):
        return
    kept = _kept_in(drafts)
    written, last = _first_writers(drafts), _last_users(drafts)
    for number, draft in enumerate(drafts):
        named = set(draft.named)
        for path in (*draft.loose, *draft.named):
            awaited = last.get(path, number) > number
            handed_on = awaited or (path not in named and not path.endswith(READ_ENDINGS))
            # Only a file of nvcc's own is taken for one that is written: another may have been there before.
            ours = (TEMP in path or _folder(path) in kept) and not path.endswith(SOURCES)
            if written.get(path, number) < number:
                draft.reads.append(path)
            elif ours and handed_on:
                draft.writes.append(path)
                written.setdefault(path, number)
            elif path not in named:
                draft.reads.append(path)


def _first_writers(drafts: Sequence[Draft]) -> dict[str, int]:
    numbered = list(enumerate(drafts))
    return {path: number for number, draft in reversed(numbered) for path in draft.writes}


def _last_users(drafts: Sequence[Draft]) -> dict[str, int]:
    return {
        path: number
        for number, draft in enumerate(drafts)
        for path in (*draft.reads, *draft.loose, *draft.named)
    }


def _kept_in(drafts: Iterable[Draft]) -> set[str]:
    # A folder that holds nothing but what stages hand on is one that `--keep-dir` names.
    written: set[str] = set()
    handed: set[str] = set()
    there: set[str] = set()
    for draft in drafts:
        for path in draft.reads:
            (handed if path in written else there).add(_folder(path))
        written.update(draft.writes)
    return handed - there - {""}


def _folder(path: str) -> str:
    return path[: len(path) - len(base_name(path))]


def _read_indirectly(drafts: Sequence[Draft]) -> None:
    """Add the stub that cudafe++'s output includes, and the images that the stub includes, to what is read."""
    fronts = {draft.front: draft for draft in drafts if draft.front is not None}
    stubs = {draft.stub: draft for draft in drafts}
    written = dict.fromkeys(path for draft in drafts for path in draft.writes)
    # The name of a temp file is the only one of its kind, wherever it lies.
    temps = {base_name(path): path for path in written if TEMP in path}

    def included(path: str, name: str) -> str:
        beside = _folder(path) + name
        if beside in written:
            return beside
        return name if name in written else temps.get(base_name(name), beside)

    for draft in drafts:
        for front in [path for path in draft.reads if path in fronts]:
            for name in fronts[front].includes:
                stub = included(front, name)
                draft.reads.append(stub)
                if stub in stubs:
                    draft.reads += [included(stub, one) for one in stubs[stub].includes]


def _name_archs(drafts: Sequence[Draft]) -> None:
    # What comes before a compile for the device has the arch of the compile: __CUDA_ARCH__ has no letters.
    wanted: dict[str, str | None] = {}
    fronts = {draft.front for draft in drafts}
    for draft in reversed(drafts):
        if draft.arch is None and (draft.kind == "preprocess" or draft.tool == "cudafe"):
            readers = [wanted[path] for path in draft.writes if path in wanted]
            draft.arch = next(filter(None, readers), None)
            if not readers and fronts.isdisjoint(draft.reads):
                draft.arch = draft.named_arch()
        arch = draft.arch if draft.kind in _VIRTUAL else None
        for path in draft.reads:
            if path != draft.module:
                wanted[path] = arch or wanted.get(path)


def _doubts(drafts: Sequence[Draft]) -> Iterable[Diagnostic]:
    """Places in a plan that are not understood, or show that the log is not whole."""
    written: set[str] = set()
    whole = True
    for number, draft in enumerate(drafts):
        doubts = {}
        if not is_known(draft):
            text = f"`{draft.tool}` is unknown: its files are those named in its arguments"
            doubts[text] = "note"
        elif not draft.reads and not draft.writes:
            doubts[f"the command of `{draft.tool}` names no file: it may be cut off"] = "warning"
        missing = [path for path in draft.reads if TEMP in path and path not in written]
        # A log that has lost a part lacks many files; the first says so.
        if whole and missing:
            text = f"nothing in the log writes `{missing[0]}`: a part of the log is missing"
            doubts[text] = "warning"
            whole = False
        for text, severity in doubts.items():
            yield Diagnostic(line=draft.line, severity=severity, text=text, stage=number)
        written.update(draft.writes)


def _end(drafts: Sequence[Draft], said: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    # A plan that makes temp files only has lost its end, if nothing else says why.
    writes = [path for draft in drafts for path in draft.writes]
    if (
        writes
        and all(TEMP in path for path in writes)
        and not any(one.stage is None for one in said)
    ):
        text = "nothing that is written here stays: the end of the log may be missing"
        yield Diagnostic(line=drafts[-1].line, severity="warning", text=text)
