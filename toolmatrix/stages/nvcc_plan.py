"""From the commands of one run of nvcc to its plan: what is read without being named, archs, edges."""

from __future__ import annotations

import re

from toolmatrix.stages import graph
from toolmatrix.stages.model import Diagnostic, Plan, Stage
from toolmatrix.stages.nvcc_tools import (
    FROM_TOOLKIT,
    READ_ENDINGS,
    SOURCES,
    Draft,
    is_known,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TEMP = "tmpxft_"
_VERSION = re.compile(r'-D"?__CUDACC_VER_(MAJOR|MINOR|BUILD)__=(\d{1,6})')
_VERSION_WORDS = ("MAJOR", "MINOR", "BUILD")
_TOOLKIT_PATH = re.compile(r"(?i)cuda.{0,40}?[-/\\v](\d{1,2}\.\d{1,2}(?:\.\d{1,3})?)(?=[/\\]|$)")
_SYSTEM = ("/usr/lib/", "/usr/lib64/", "/usr/lib32/", "/lib/", "/lib64/")
_VIRTUAL = frozenset({"cicc", "cudafe"})


def plan(
    line: int,
    env: Mapping[str, str],
    drafts: Sequence[Draft],
    diagnostics: Iterable[Diagnostic],
    removed: Sequence[str],
) -> Plan:
    """The plan that the commands of one invocation make together; changes the drafts."""
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
        version=version(drafts, env),
        line=line,
        env=env,
        stages=tuple(stages),
        edges=graph.edges(stages),
        diagnostics=(*diagnostics, *_doubts(drafts)),
        removed=tuple(dict.fromkeys(removed)),
    )


def version(drafts: Sequence[Draft], env: Mapping[str, str]) -> str:
    """The release that the defines of a command tell, or else the path of the toolkit; empty if neither does."""
    for draft in drafts:
        if "__CUDACC_VER_MAJOR__" in draft.text:
            found = dict(_VERSION.findall(draft.text))
            return ".".join(found[word] for word in _VERSION_WORDS if word in found)
    named = _TOOLKIT_PATH.search(env.get("_HERE_", "")[:1000])
    return named[1] if named else ""


def _leave_out_foreign(drafts: Sequence[Draft], env: Mapping[str, str]) -> None:
    """Drop what comes with the toolkit or the system from what is read."""
    here = env.get("_HERE_", "")
    roots = (here[: -len(_name(here))][:-1], env.get("TOP", ""), env.get("CUDA_ROOT", ""))
    own = (*_SYSTEM, *{f"{root}{slash}" for root in roots if len(root) > 1 for slash in "/\\"})
    for draft in drafts:
        for path in draft.reads:
            if path.endswith(".stub") or (path.startswith(own) and FROM_TOOLKIT.search(path)):
                draft.reads = [one for one in draft.reads if one != path]


def _settle(drafts: Sequence[Draft]) -> None:
    """Reads or writes for files of which the words alone do not tell: who else in the plan has to do with them."""
    if not any(draft.loose or draft.named for draft in drafts):
        return
    written: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, draft in enumerate(drafts):
        for path in draft.writes:
            written.setdefault(path, number)
        for path in (*draft.reads, *draft.loose, *draft.named):
            last[path] = number
    for number, draft in enumerate(drafts):
        for path in (*draft.loose, *draft.named):
            if written.get(path, number) < number:
                draft.reads.append(path)
            elif last.get(path, number) > number and not path.endswith(SOURCES):
                draft.writes.append(path)
                written.setdefault(path, number)
            elif path in draft.named:
                continue
            elif TEMP in path and not path.endswith(READ_ENDINGS):
                draft.writes.append(path)  # no temp file was there before the run
            else:
                draft.reads.append(path)


def _read_indirectly(drafts: Sequence[Draft]) -> None:
    """The stub that cudafe++'s output includes, and the images that the stub includes."""
    fronts = {draft.front: draft for draft in drafts if draft.front is not None}
    if not fronts:
        return
    stubs = {draft.stub: draft for draft in drafts if draft.stub is not None}
    written = _Written(path for draft in drafts for path in draft.writes)
    for draft in drafts:
        for front in [path for path in draft.reads if path in fronts]:
            for name in fronts[front].includes:
                stub = written.beside(front, name)
                draft.reads.append(stub)
                if stub in stubs:
                    draft.reads += [written.beside(stub, one) for one in stubs[stub].includes]


class _Written(dict[str, None]):
    """The paths that a plan writes."""

    def __init__(self, paths: Iterable[str]) -> None:
        super().__init__(dict.fromkeys(paths))
        self._by_name: dict[str, str] | None = None

    def beside(self, path: str, name: str) -> str:
        """The path of a file that another, at `path`, includes by `name`."""
        beside = path[: len(path) - len(_name(path))] + name
        if beside in self:
            return beside
        if name in self:
            return name
        if self._by_name is None:
            # The name of a temp file is the only one of its kind, wherever it lies.
            self._by_name = {_name(one): one for one in self if TEMP in one}
        return self._by_name.get(_name(name), beside)


def _name(path: str) -> str:
    return path[max(path.rfind("/"), path.rfind("\\")) + 1 :]


def _name_archs(drafts: Sequence[Draft]) -> None:
    """The arch of what comes before a compile for the device is that of the compile: __CUDA_ARCH__ has no letters."""
    wanted: dict[str, str | None] = {}
    fronts = {draft.front for draft in drafts if draft.front is not None}
    for draft in reversed(drafts):
        if draft.arch is None and (draft.kind == "preprocess" or draft.tool == "cudafe"):
            readers = [wanted[path] for path in draft.writes if path in wanted]
            draft.arch = next((arch for arch in readers if arch), None)
            if not readers and fronts.isdisjoint(draft.reads):
                draft.arch = draft.host_arch
        arch = draft.arch if draft.kind in _VIRTUAL or draft.kind == "preprocess" else None
        for path in draft.reads:
            if path != draft.module:
                wanted[path] = arch or wanted.get(path)


def _doubts(drafts: Sequence[Draft]) -> Iterable[Diagnostic]:
    """What in a plan is not understood, or shows that the log is not whole."""
    for number, draft in enumerate(drafts):
        if draft.kind == "other" and not is_known(draft):
            yield Diagnostic(
                line=draft.line,
                severity="note",
                text=f"what `{draft.tool}` does is not known; its files are those that its words name",
                stage=number,
            )
    written: set[str] = set()
    for number, draft in enumerate(drafts):
        missing = [path for path in draft.reads if TEMP in path and path not in written]
        if missing:
            yield Diagnostic(
                line=draft.line,
                severity="warning",
                text=f"nothing in the log writes `{missing[0]}`: a part of the log is missing",
                stage=number,
            )
            return
        written.update(draft.writes)
