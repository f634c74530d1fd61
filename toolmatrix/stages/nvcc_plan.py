"""From the commands of one run of nvcc to its plan: what is read without being named, archs, edges."""

from __future__ import annotations

import re

from toolmatrix.stages import graph
from toolmatrix.stages.model import Diagnostic, Plan, Stage
from toolmatrix.stages.nvcc_tools import FROM_TOOLKIT, Draft, is_known

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
    foreign = _foreign(env)
    for draft in drafts:
        draft.reads = [path for path in draft.reads if not foreign(path)]
    _settle_loose(drafts)
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


class _foreign:  # noqa: N801
    """Whether a path is one of the toolkit's or the system's own files."""

    def __init__(self, env: Mapping[str, str]) -> None:
        here = env.get("_HERE_", "")
        cut = max(here.rfind("/"), here.rfind("\\"))
        roots = [here[:cut], env.get("TOP", ""), env.get("CUDA_ROOT", "")]
        self.roots = tuple({f"{root}{slash}" for root in roots if len(root) > 1 for slash in "/\\"})

    def __call__(self, path: str) -> bool:
        return FROM_TOOLKIT.search(path) is not None and (
            path.endswith(".stub") or path.startswith(self.roots) or path.startswith(_SYSTEM)
        )


def _settle_loose(drafts: Sequence[Draft]) -> None:
    """Reads or writes for files of which the words alone do not tell: who else in the plan has to do with them."""
    if not any(draft.loose for draft in drafts):
        return
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    for number, draft in enumerate(drafts):
        for path in draft.writes:
            written.setdefault(path, number)
        for path in draft.reads:
            read[path] = number
    for number, draft in enumerate(drafts):
        for path in draft.loose:
            if written.get(path, number) < number:
                draft.reads.append(path)
            elif read.get(path, number) > number:
                draft.writes.append(path)
                written.setdefault(path, number)
            elif draft.kind == "other" and path is not draft.words[0].removeprefix("./"):
                # Neither: a temp file cannot have been there before the run.
                (draft.writes if TEMP in path else draft.reads).append(path)


def _read_indirectly(drafts: Sequence[Draft]) -> None:
    """The stub that cudafe++'s output includes, and the images that the stub includes."""
    stubs = {draft.stub: draft for draft in drafts if draft.stub is not None}
    fronts = {draft.front: draft for draft in drafts if draft.front is not None}
    if not fronts:
        return
    written = {path: path for draft in drafts for path in draft.writes}
    by_name = {_name(path): path for path in written if TEMP in path}
    for draft in drafts:
        for front in [path for path in draft.reads if path in fronts]:
            for stub in fronts[front].includes:
                path = _beside(front, stub, written, by_name)
                draft.reads.append(path)
                writer = stubs.get(path)
                if writer is not None:
                    draft.reads += [
                        _beside(path, image, written, by_name) for image in writer.includes
                    ]


def _name(path: str) -> str:
    return path[max(path.rfind("/"), path.rfind("\\")) + 1 :]


def _beside(path: str, name: str, written: Mapping[str, str], by_name: Mapping[str, str]) -> str:
    """The path of a file that another, at `path`, includes by `name`."""
    if name in written:
        return name
    beside = path[: len(path) - len(_name(path))] + name
    return beside if beside in written else by_name.get(_name(name), beside)


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
        if not is_known(draft):
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
