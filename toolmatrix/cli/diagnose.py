"""`toolmatrix diagnose`: known failures in the log of a build or a run, the facts behind them, and the way out."""

from __future__ import annotations

import os.path
from contextlib import closing
from functools import partial

from toolmatrix.cli import ask
from toolmatrix.stages import saved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.logs.log import ObservedLog
    from toolmatrix.logs.signatures import SignatureCatalog

MOST = 10
"""The causes that are reported where `--limit` names no number."""


def run(context: Context) -> int:
    """Print what is known of the failures in a log; 1 when there is one, but 0 where a SARIF reader judges."""
    from toolmatrix.judge.diagnose import diagnose
    from toolmatrix.logs import signatures
    from toolmatrix.report.diagnosis import DiagnosisReport

    path = context.arguments[0]
    catalog = signatures.load()
    locked = _locked(context)
    log = _observed(context, path, catalog)
    index = context.index()
    limit = MOST if context.options.limit is None else context.options.limit
    found = diagnose(index, catalog, log, locked, partial(_answer, context, index), limit)
    report = DiagnosisReport(index, found, context.options.lock if locked else "")
    form = context.options.format
    if form == "json":
        context.write_json(report.document())
    elif form == "sarif":
        from toolmatrix.report.annotations import sarif

        context.write_json(sarif(report.annotations()))
        return 0
    else:
        context.write(report.github() if form == "github" else report.text(context.terminal))
    return 1 if found.causes else 0


def _observed(context: Context, path: str, catalog: SignatureCatalog) -> ObservedLog:
    from toolmatrix.logs.log import observe

    help = "`-` reads stdin"
    with (
        closing(saved.unpacked(context.path(path), context.stdin, help)) as stream,
        saved.readable(path, help),
    ):
        return observe(saved.as_utf8(stream), catalog, saved.called(path))


def _locked(context: Context) -> Mapping[str, str]:
    """The releases of the lock, each of the first target that holds it; none where there is no lock."""
    options = context.options
    if context.origins["lock"].kind == "default" and not os.path.isfile(options.lock):
        return {}
    from toolmatrix.lock import read

    held: dict[str, str] = {}
    for target in read.read(options.lock).targets.values():
        for name, version in target.chosen.items():
            held.setdefault(name, version)
    return held


def _answer(context: Context, index: Index, words: Sequence[str]) -> Mapping[str, str] | None:
    """The releases that `toolmatrix resolve WORDS...` gives on its first target, None where it gives none."""
    resolution = ask.surroundings(context, index).answered(words)
    if resolution is None:
        return None
    return resolution.chosen(next(iter(resolution.targets)))
