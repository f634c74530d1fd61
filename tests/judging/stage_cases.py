"""Plans to judge: those of the corpus, and small ones made by hand from the words that matter."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests import matrix
from tests.compilation import corpus
from toolmatrix.compilation import model, parse_log
from toolmatrix.compilation.model import Diagnostic, Plan, Stage
from toolmatrix.judging import stages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import Finding


def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


@cache
def plans(name: str) -> tuple[Plan, ...]:
    """The plans in a log of the corpus."""
    return parse_log(corpus.case(name).text.splitlines()).plans


def judged(name: str, *devices: str, asked: Sequence[str] | None = None) -> list[Finding]:
    """What is found in a log of the corpus."""
    return stages.findings(plans(name), index(), devices, path=f"{name}.log", command=asked)


def of_plan(
    plan: Plan,
    index: Index,
    devices: Sequence[str] = (),
    *,
    asked: Sequence[str] | None = None,
    here: stages.LocalMachine | None = None,
) -> list[Finding]:
    """What is found in one plan."""
    return stages.findings([plan], index, devices, command=asked, here=here)


def plan(
    *commands: tuple[str, str, str],
    env: Mapping[str, str] | None = None,
    tool: str = "nvcc",
    version: str = "13.0.88",
    said: Iterable[str] = (),
    files: Mapping[int, tuple[Iterable[str], Iterable[str]]] | None = None,
) -> Plan:
    """A plan of (kind, arch, words) with the files that some stages read and write; the log has a line for each."""
    made = []
    for number, (kind, arch, words) in enumerate(commands):
        reads, writes = (files or {}).get(number, ((), ()))
        argv = tuple(words.split())
        made.append(
            Stage(
                id=number,
                line=number + 1,
                kind=kind,
                tool=argv[0].rpartition("/")[2],
                arch=arch or None,
                inputs=tuple(reads),
                outputs=tuple(writes),
                argv=argv,
                text=words,
            )
        )
    return Plan(
        tool=tool,
        version=version,
        line=1,
        env=env or {},
        stages=tuple(made),
        edges=model.stage_edges(made),
        diagnostics=tuple(Diagnostic(line=9, severity="error", text=text) for text in said),
    )


def fatbinary(*images: str, more: str = "") -> tuple[str, str, str]:
    """A fatbinary of images such as `elf:80`, `ptx:90` or `nvvm:80`."""
    words = [
        f"--image3=kind={kind},sm={sm},file=x" for kind, _, sm in (i.partition(":") for i in images)
    ]
    return (
        "fatbinary",
        "",
        " ".join(["fatbinary -64", *words, "--embedded-fatbin=x.fatbin.c", more]),
    )


def made(*images: str, version: str = "13.0.88", more: str = "") -> Plan:
    """A plan that puts some images together."""
    return plan(fatbinary(*images, more=more), version=version)


def codes(found: Iterable[Finding]) -> list[str]:
    """The codes of findings, sorted."""
    return sorted(finding.code for finding in found)
