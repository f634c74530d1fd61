"""A small matrix of two frameworks, a toolkit and three kinds of versions, and what an error says in one string."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolmatrix.errors import MatrixError
from toolmatrix.factbase import compile as compiling
from toolmatrix.factbase.compiled import Compiled, CompiledBinding, SoftConstraint
from toolmatrix.factbase.load import load
from toolmatrix.factbase.versions import Scale

FRONT = """\
schema: toolmatrix.matrix/1
date: 2026-01-02
components:
  machine: {title: machine, scheme: names, given: true}
  accelerator: {title: accelerator, scheme: names, given: true}
  app: {title: App, scheme: pep440, framework: true, accelerators: [cuda]}
  cuda: {title: CUDA, scheme: pep440}
  arch: {title: arch, scheme: names, under: cuda}
  gcc: {title: GCC, scheme: series}
  python: {title: Python, scheme: series}
targets:
  x86: {context: {machine: x86_64}, accelerator: cuda, policies: {}}
rules:
  same-minor: {widens: minor, evidence: derived, reason: patches change no toolchain}
  same-series: {widens: series, evidence: derived, reason: what binds is the series}
  x86-for-arm: {widens: {machine: aarch64}, evidence: derived, reason: the same sources}
  wheel-toolkit: {evidence: derived, reason: a wheel is bound to its toolkit}
files:
  - names.yaml
  - facts.yaml
"""

NAMES = """\
schema: toolmatrix.facts/1
sources:
  vendor: {title: Vendor, at: "vendor:page@1", read: 2026-01-01}
  later: {title: Later, at: "vendor:page@2", read: 2026-01-02}
releases:
  - id: machines
    component: machine
    source: vendor
    evidence: stated
    versions: {x86_64: {rank: 2}, aarch64: {rank: 1}}
    where: list
  - id: accelerators
    component: accelerator
    source: vendor
    evidence: stated
    versions: {none: {rank: 2}, cuda: {rank: 1}}
    where: list
  - id: apps
    component: app
    source: vendor
    evidence: artifact
    versions: {2.6.0: {date: 2021-08-11}, 2.6.1: {}, 2.6.5: {}, 2.7.0: {}}
    where: list
  - id: toolkits
    component: cuda
    source: vendor
    evidence: artifact
    versions: {"11.1": {}, 11.2.0: {}, 11.2.2: {}, 12.0.0: {}}
    where: list
  - id: archs
    component: arch
    source: vendor
    evidence: stated
    versions: {sm_80: {rank: 80}, sm_86: {rank: 86}}
    where: list
  - id: gccs
    component: gcc
    source: vendor
    evidence: stated
    versions: {"7": {}, "8": {}, "9": {}}
    where: list
  - id: pythons
    component: python
    source: vendor
    evidence: stated
    versions: {"3.6": {}, "3.7": {}, "3.9": {}}
    where: list
"""

FACTS = """\
schema: toolmatrix.facts/1
"""


def write(folder: Path, facts: str = FACTS, *, front: str = FRONT, names: str = NAMES) -> str:
    """The path of the front page of a small matrix written to a folder."""
    (folder / "matrix.yaml").write_text(front)
    (folder / "names.yaml").write_text(names)
    (folder / "facts.yaml").write_text(facts)
    return str(folder / "matrix.yaml")


class _Plain(yaml.SafeDumper):
    """Writes a value out wherever it stands: aliases are refused."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def dump(document: Any) -> str:
    """A document as YAML."""
    text: str = yaml.dump(document, Dumper=_Plain, sort_keys=False)
    return text


def facts(**sections: Any) -> str:
    """The text of a fact file."""
    return dump({"schema": "toolmatrix.facts/1", **sections})


def table(**given: Any) -> dict[str, Any]:
    """A table keyed by `app`."""
    common = {"id": "t", "source": "vendor", "evidence": "tested", "key": "app"}
    return {**common, **given, "where": given.get("where", "table 1")}


def statement(**given: Any) -> dict[str, Any]:
    """A statement about `app`."""
    common = {"id": "s", "source": "vendor", "evidence": "stated", "when": {"app": "*"}}
    return {**common, **given, "where": given.get("where", "text")}


def compiled(folder: Path, text: str) -> Compiled:
    """The small matrix with more facts, compiled."""
    return compiling.compile_matrix(load([write(folder, text)]))


def refused(folder: Path, text: str = FACTS, *, front: str = FRONT, names: str = NAMES) -> str:
    """What the error says that a small matrix ends with; the folder is not shown."""
    path = write(folder, text, front=front, names=names)
    with pytest.raises(MatrixError) as caught:
        compiling.compile_matrix(load([path]))
    return said(caught.value).replace(f"{folder}/", "")


def said(error: MatrixError) -> str:
    """Everything an error says."""
    return (
        f"{error.where}: {error.what}; expected {error.expected}; found {error.found}; {error.help}"
    )


def releases(scales: Mapping[str, Scale], component: str, mask: int) -> str:
    """The releases of a mask, separated by spaces."""
    known = ("absent", *scales[component].versions)
    return " ".join(name for place, name in enumerate(known) if mask >> place & 1)


def bound(result: Compiled) -> list[str]:
    """The bindings in words."""
    return [_binding(result.scales, binding) for binding in result.bindings]


def _binding(scales: Mapping[str, Scale], binding: CompiledBinding) -> str:
    when = ", ".join(f"{name} {releases(scales, name, mask)}" for name, mask in binding.when)
    what = (
        f"{binding.kind} {binding.component} {releases(scales, binding.component, binding.allowed)}"
    )
    return f"{when}: {what} ({binding.evidence})"


def vouched(result: Compiled) -> list[str]:
    """The soft constraints in words."""
    return [_soft(result.scales, soft) for soft in result.soft_constraints]


def _soft(scales: Mapping[str, Scale], soft: SoftConstraint) -> str:
    context = [f"{name} {releases(scales, name, mask)}" for name, mask in soft.context]
    terms = [f"{name} {releases(scales, name, mask)} ({word})" for name, mask, word in soft.terms]
    return ", ".join([*context, *terms])


def disputed(result: Compiled) -> list[str]:
    """The disputes in words: for which releases which claim is against which."""
    found = []
    for dispute in result.disputes:
        subject, _ = dispute.rival.when[0]
        known = releases(result.scales, subject, dispute.mask)
        rival, deciding = dispute.rival.claim.id, dispute.deciding.claim.id
        found.append(f"{subject} {known}: {rival} against {deciding}")
    return found
