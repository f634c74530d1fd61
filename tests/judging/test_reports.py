"""Field reports: each refuses its pair, lets the first good release pass, and is known by its line in a log."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from toolmatrix.commands.diagnose import catalog
from toolmatrix.factbase.records import FAILS
from toolmatrix.factbase.store import open_index
from toolmatrix.judging.diagnose import diagnose
from toolmatrix.logs import log, signatures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Binding, ReportRecord


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def bindings(index: Index, report: ReportRecord) -> Iterator[Binding]:
    for binding in index.component(report.subject).about(report.component, -1):
        cites = [index.claim(cite.record).id for cite in index.cites(binding.cites)]
        if binding.kind == FAILS and report.fact in cites:
            yield binding


def test_each_report_refuses_its_pair_and_nothing_else(index: Index) -> None:
    for report in index.reports():
        own, other = index.scale(report.subject), index.scale(report.component)
        failing, excluded = own.select(report.releases), other.select(report.selector)
        found = [*bindings(index, report)]
        assert [binding.mask & ~failing for binding in found] == [0] * len(found)
        assert found, report.fact
        for binding in found:
            assert not binding.allowed & excluded, report.fact
            assert binding.allowed == other.everything & ~excluded | 1, report.fact
        # What fails has an end on one side at least: a release that does not.
        assert own.everything & ~failing or other.everything & ~excluded, report.fact


def test_each_report_is_known_by_its_line(index: Index) -> None:
    known = catalog(index)
    for report in index.reports():
        own, other = index.scale(report.subject), index.scale(report.component)
        pair = [
            f"{name} {scale.named(scale.select(selector))[-1]}"
            for name, scale, selector in (
                (report.subject, own, report.releases),
                (report.component, other, report.selector),
            )
        ]
        for symptom in report.symptoms:
            module = report.subject.replace("-", "_")
            lines = [
                "Package Version",
                "------- -------",
                *pair,
                "",
                f'  File "/venv/lib/python3/site-packages/{module}/__init__.py", line 1, in <module>',
                symptom.replace("...", "x"),
                "",
            ]
            stream = io.BytesIO("\n".join(lines).encode())
            causes = diagnose(index, known, log.observe(stream, known, "x"), {}, lambda _: None)
            named = [{side.component for side in cause.between} for cause in causes.causes]
            assert any({report.subject, report.component} <= names for names in named), (
                report.fact,
                named,
            )


def test_a_line_that_several_packages_share_names_the_one_that_called(index: Index) -> None:
    known = signatures.with_symptoms(signatures.load(), signatures.symptoms(index.reports()))
    text = b"AttributeError: module 'numpy' has no attribute 'float'.\n"
    causes = diagnose(index, known, log.observe(io.BytesIO(text), known, "x"), {}, lambda _: None)
    assert [cause.between[0].component for cause in causes.causes] == ["the code"]
