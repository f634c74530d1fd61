"""A small matrix with two frameworks and one tool, whose answers and refusals can be counted by hand.

`app` 1.0 and 2.0 run on x86 and, 2.0 only, on arm; its wheels are for x86_64. `lib` is a wheel only. Each test adds a
fault by replacing or adding text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FRONT = """\
schema: toolmatrix.matrix/1
date: 2026-01-02
components:
  target: {title: target, scheme: names, given: true}
  machine: {title: machine, scheme: names, given: true}
  accelerator: {title: accelerator, scheme: names, given: true}
  from: {title: from, scheme: names, given: true}
  app: {title: App, scheme: pep440, framework: true, accelerators: [cuda]}
  lib: {title: Lib, scheme: pep440, framework: true}
  tool: {title: Tool, scheme: pep440}
  wish: {title: wish, scheme: names, flag: true}
targets:
  x86: {context: {target: x86, machine: x86_64}, accelerator: cuda, policies: {}}
  arm: {context: {target: arm, machine: aarch64}, accelerator: none, policies: {wish: loud}}
rules:
  same-minor: {widens: minor, evidence: derived, reason: patches change nothing}
files: [facts.yaml]
"""

FACTS = """\
schema: toolmatrix.facts/1
sources:
  vendor: {title: Vendor, at: "vendor:page@1", read: 2026-01-01}
  third: {title: Third, at: "third:page@1", read: 2025-06-01}
releases:
  - {id: targets, component: target, source: vendor, evidence: stated, where: list,
     versions: {x86: {rank: 2}, arm: {rank: 1}}}
  - {id: machines, component: machine, source: vendor, evidence: stated, where: list,
     versions: {x86_64: {rank: 2}, aarch64: {rank: 1}}}
  - {id: accelerators, component: accelerator, source: vendor, evidence: stated, where: list,
     versions: {none: {rank: 2}, cuda: {rank: 1}}}
  - {id: ways, component: from, source: vendor, evidence: stated, where: list,
     versions: {source: {rank: 2}, wheel: {rank: 1}}}
  - {id: tools, component: tool, source: vendor, evidence: artifact, where: list,
     versions: {"1.0": {}, "2.0": {}, "3.0": {}}}
  - {id: wishes, component: wish, source: vendor, evidence: artifact, where: list,
     versions: {loud: {rank: 1}, late: {rank: 0, yanked: true}}}
  - {id: libs, component: lib, source: vendor, evidence: artifact, where: list,
     versions: {"1.0": {date: 2025-01-01}}}
tables:
  - id: apps
    about: releases of App
    source: vendor
    evidence: artifact
    where: list of releases
    key: app
    defines: releases
    stands-for: [same-minor]
    columns:
      machine: {as: limits, context: {from: wheel}, says: "wheels for {value}"}
      tool: {as: requires, context: {from: source}}
    rows:
      - {app: "1.0", machine: x86_64, tool: "<2"}
      - {app: "2.0", machine: x86_64, tool: ">=2"}
  - id: tested
    source: third
    evidence: reported
    where: table
    key: app
    columns: {tool: {as: tested}}
    rows:
      - {app: "2.0", tool: "1.0"}
statements:
  - {id: lib-is-a-wheel, when: {lib: "*"}, limits: {from: wheel}, evidence: stated, source: vendor, where: text}
  - {id: old-tool-needs-x86, when: {tool: "<2"}, limits: {machine: x86_64}, evidence: stated,
     source: vendor, where: text}
"""


BUILDS = (
    ("accelerators: [cuda]}", "accelerators: [cuda], variants: true}"),
    (
        "  wish: {title",
        """\
  kit: {title: Kit, scheme: pep440, accelerators: [cuda]}
  part: {title: Part, scheme: pep440, accelerators: [cuda], under: kit}
  arch: {title: codegen arch, scheme: names}
  wish: {title""",
    ),
    (
        "  - {id: wishes,",
        """\
  - {id: kits, component: kit, source: vendor, evidence: artifact, where: list,
     versions: {"1.0": {}, "2.0": {}}}
  - {id: kit-parts, component: part, source: vendor, evidence: artifact, where: list,
     versions: {"1.0": {}, "2.0": {}}}
  - {id: archs, component: arch, source: vendor, evidence: artifact, where: list,
     versions: {a1: {rank: 1}}}
  - {id: wishes,""",
    ),
    (
        "tables:\n",
        """\
channels:
  - {id: main, title: the main index, kind: index, source: vendor, evidence: stated, where: list, default: true,
     lines: {none: [cpu], cuda: [cu1, cu2]}}
tables:
  - id: builds
    about: builds of App
    source: vendor
    evidence: artifact
    where: list of files
    defines: variants
    key: app
    columns:
      kit: {as: requires, context: {accelerator: cuda}}
      part: {as: requires, context: {accelerator: cuda}}
      archs: {component: arch, as: limits}
    rows:
      - {app: 1.0 2.0, line: cpu, channel: main, machine: x86_64}
      - {app: "1.0", line: cu1, channel: main, machine: x86_64, kit: "1.0", part: "1.0", archs: a1}
      - {app: "2.0", line: cu2, channel: main, machine: x86_64, kit: "2.0", part: "2.0", archs: a1}
""",
    ),
)
"""Changes that give `app` builds on a channel, for the CPU and two lines of the toolkit `kit`; `part` is under it."""


def write(folder: Path, *changes: tuple[str, str], facts: str = "") -> str:
    """Write the matrix with some text replaced and some facts added; returns the path of its front page."""
    front, body = FRONT, FACTS + facts
    for old, new in changes:
        assert old in front or old in body
        front, body = front.replace(old, new), body.replace(old, new)
    (folder / "facts.yaml").write_text(body)
    (folder / "front.yaml").write_text(front)
    return str(folder / "front.yaml")
