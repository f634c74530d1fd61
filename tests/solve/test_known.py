"""Relations between two parts of an answer, on a small matrix: joined and independent are a yes, touching is not."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import toolmatrix
from tests import matrix as built_in
from toolmatrix.api.answers import Resolved
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.request.read import RequestContext
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.known import INDEPENDENT, Relations
from toolmatrix.solve.preferences import _A_YEAR_LATER, _BY_THEN, _of_its_time
from toolmatrix.solve.resolve import Resolution, attempt
from toolmatrix.solve.support import targets_of

FRONT = """
schema: toolmatrix.matrix/1
date: 2026-01-02
components:
  target: {title: target, scheme: names, given: true}
  machine: {title: machine, scheme: names, given: true}
  accelerator: {title: accelerator, scheme: names, given: true}
  from: {title: from, scheme: names, given: true}
  net: {title: Net, scheme: pep440, framework: true, binds: true}
  ext: {title: Extension, scheme: pep440}
  made: {title: Compiled where it runs, scheme: pep440}
  pure: {title: Pure, scheme: pep440}
  far: {title: Far, scheme: pep440}
  shut: {title: Never read, scheme: pep440}
  mark: {title: Requires by a marker, scheme: pep440}
  asks: {title: Requires what was no component, scheme: pep440}
  kit: {title: Toolkit, scheme: pep440}
  tool: {title: Tool, scheme: pep440}
  device: {title: device, scheme: names}
  arch: {title: arch, scheme: names}
  distro: {title: distro, scheme: names}
  base-image: {title: base-image, scheme: names}
  link: {title: Driver, scheme: pep440, floor: true, prefer: oldest}
targets:
  x86: {context: {target: x86, machine: x86_64}, accelerator: none}
files: [facts.yaml]
"""

FACTS = """
schema: toolmatrix.facts/1
sources: {s: {title: Source, at: "a:b@1", read: 2026-01-01}}
releases:
  - {id: places, component: target, source: s, evidence: stated, where: w, versions: {x86: {}}}
  - {id: machines, component: machine, source: s, evidence: stated, where: w, versions: {x86_64: {}}}
  - {id: none, component: accelerator, source: s, evidence: stated, where: w, versions: {none: {}}}
  - {id: ways, component: from, source: s, evidence: stated, where: w, versions: {source: {}, wheel: {}}}
  - {id: kits, component: kit, source: s, evidence: stated, where: w, versions: {1.0: {}, 2.0: {}}}
  - {id: tools, component: tool, source: s, evidence: stated, where: w, versions: {1.0: {}}}
  - {id: links, component: link, source: s, evidence: stated, where: w, versions: {1.0: {}, 2.0: {}}}
  - {id: unread, component: shut, source: s, evidence: stated, where: w, versions: {1.0: {}}}
tables:
  - id: net
    source: s
    where: w
    evidence: artifact
    defines: releases
    requirements-read: {others: []}
    key: net
    columns: {kit: {as: tested}, link: {as: tested}}
    rows: [{net: 1.0, kit: 1.0, link: 1.0}, {net: 2.0}]
  - id: asks
    source: s
    where: w
    evidence: artifact
    defines: releases
    requirements-read: {others: [far]}
    key: asks
    columns: {date: {as: attribute}}
    rows: [{asks: 1.0, date: 2026-01-01}]
  - id: ext
    source: s
    where: w
    evidence: artifact
    defines: releases
    requirements-read: {others: []}
    key: ext
    columns: {net: {as: requires}}
    rows: [{ext: 1.0, net: 1.0}, {ext: 2.0, net: "*"}, {ext: 3.0}]
  - id: made
    source: s
    where: w
    evidence: artifact
    defines: releases
    requirements-read: {others: []}
    key: made
    columns: {net: {as: requires}, kit: {as: requires}}
    rows: [{made: 1.0, net: "*"}, {made: 2.0, kit: "*"}, {made: 3.0}]
  - id: pure
    source: s
    where: w
    evidence: artifact
    defines: releases
    requirements-read: {others: [six, lone], unread: "3.0"}
    key: pure
    columns: {net: {as: requires}}
    rows: [{pure: 1.0, net: "*"}, {pure: 2.0}, {pure: 3.0}]
  - id: far
    source: s
    where: w
    evidence: artifact
    defines: releases
    requirements-read: {others: []}
    key: far
    columns: {}
    rows: [{far: 1.0}]
  - id: mark
    source: s
    where: w
    evidence: artifact
    defines: releases
    requirements-read: {others: []}
    key: mark
    columns: {net: {as: requires}}
    rows: [{mark: 1.0, net: [{is: "1.0", when: {pure: "1.0"}}]}]
data:
  - id: code
    source: s
    where: w
    evidence: artifact
    lists: code
    columns: [component, kind, against]
    rows:
      - [net, opened, [kit]]
      - [ext, unopened, [net]]
      - [made, run-time, [net, kit]]
      - [pure, pure]
      - [far, pure]
      - [shut, pure]
      - [asks, pure]
      - [mark, pure]
  - id: alone
    source: s
    where: w
    evidence: artifact
    lists: independent
    columns: [package, releases, requires-python, requires, published]
    rows:
      - [lone, "1.0@2020-01-01 2.0+40", "", "net 1.0: 1.0; six *: 1.0..", 2]
"""


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> OpenMatrix:
    folder: Path = tmp_path_factory.mktemp("known")
    (folder / "matrix.yaml").write_text(FRONT)
    (folder / "facts.yaml").write_text(FACTS)
    return toolmatrix.open_matrix(folder / "matrix.yaml")


@pytest.mark.parametrize(
    ("wanted", "touching"),
    [
        # Joined: by a requirement that names a release, by a tested row, by one that admits any of Python code.
        (("ext==1.0", "net==1.0"), []),
        (("net==1.0", "kit==1.0"), []),
        (("pure==1.0", "net==2.0"), []),
        # Independent: both were read, neither names the other, and nothing is compiled against the other.
        (("pure==2.0", "far"), []),
        (("pure==2.0", "net"), []),
        # So is a package that is no component until it is asked for, at releases that name nothing.
        (("lone==2.0", "net"), []),
        (("lone==1.0", "net==1.0"), []),
        (("lone==2.0", "pure==2.0"), [("pure", "lone", "incomplete")]),
        # That any release will do is no statement about compiled code, and silence is none.
        (("ext==2.0", "net==2.0"), [("ext", "net", "bound")]),
        (("net==1.0", "ext==3.0"), [("ext", "net", "bound")]),
        (("net==1.0", "kit==2.0"), [("net", "kit", "bound")]),
        # But of code that is compiled with what is there, and of what keeps its binary interface.
        (("made==1.0", "net==2.0"), []),
        (("made==2.0", "kit==2.0"), []),
        (("made==3.0", "kit==2.0"), [("made", "kit", "bound")]),
        # Facts name both, in other releases, and not all that one requires was read.
        (("pure==3.0", "net"), [("pure", "net", "unjoined")]),
        # No fact ties a tool to anything.
        (("shut", "tool"), [("tool", "shut", "untied")]),
        # What was read whole and is not built here would name a tool that it needs.
        (("far", "tool"), []),
        # What was tested with a floor goes with all that is newer.
        (("net==1.0", "link==2.0"), []),
        # What was not read may name anything.
        (("far", "shut"), [("shut", "far", "incomplete")]),
        # A list of requirements names what was no component when it was read, and not at which releases.
        (("asks", "far"), [("asks", "far", "incomplete")]),
        # What it requires by a marker that is decided, and does not hold, it does not require.
        (("mark", "net==2.0", "pure==2.0"), []),
        (("mark", "net==2.0"), [("mark", "net", "incomplete")]),
        # Nobody asked for the toolkit; a wheel is bound to it all the same, and to that of what it is bound to.
        (("ext==1.0",), []),
        (("far", "pure==2.0"), []),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_pairs_that_touch_are_no_yes(
    matrix: OpenMatrix, wanted: tuple[str, ...], touching: list[tuple[str, str, str]], turned: bool
) -> None:
    words = wanted[::-1] if turned else wanted
    found = toolmatrix.resolve(*words, from_="wheel", matrix=matrix)
    assert isinstance(found, Resolved)
    assert [pair[1:4] for pair in found.resolution.touching] == touching
    assert found.exit_code == (4 if touching else 0)
    document = found.to_json()
    assert [tuple(part["pair"].values())[1:] for part in document["unread"]] == touching
    allowed = toolmatrix.why_not(*words, from_="wheel", matrix=matrix)
    assert isinstance(allowed, Resolved)
    assert (allowed.exit_code, allowed.to_json()["allowed"]) == (
        found.exit_code,
        not touching or None,
    )


def test_a_request_that_only_says_what_is_there_has_an_answer(matrix: OpenMatrix) -> None:
    """Commands that drop what was wanted one by one leave such requests."""
    read = RequestContext(index=matrix.index).read(["shut==1.0", "kit==1.0"])
    given = read.replace(asks=tuple(ask.replace(option=ask.option or "with") for ask in read.asks))
    assert given.leading == ()
    assert isinstance(attempt(matrix.index, given), Resolution)


@pytest.mark.parametrize(
    "line",
    [
        "torch torchvision triton numpy gcc cmake --from wheel",
        "vllm torch transformers numpy cuda python --device H100 --from wheel",
        "tensorflow keras h5py numpy protobuf bazel gcc cuda --from source",
        "jax jaxlib flax numpy scipy ml-dtypes cuda",
        "onnxruntime onnx cuda cudnn python protobuf",
        "xgboost lightgbm numpy scipy driver",
    ],
)
def test_pairs_that_are_not_looked_at_are_independent(line: str) -> None:
    index = built_in.index()
    answer = attempt(index, RequestContext(index=index).read(line.split()))
    assert isinstance(answer, Resolution)
    assembly = Assembly(index, answer.request)
    ((target, judged),) = targets_of(assembly, answer.values).items()
    relations = Relations(assembly, target, answer.values, judged.claims, judged.rows)
    asked = relations._requested()
    looked_at = {*relations._suspects(asked)}
    others = [pair for pair in combinations(asked, 2) if pair not in looked_at]
    assert looked_at
    assert [pair for pair in others if relations.between(*pair) != (INDEPENDENT, "")] == []


@pytest.mark.parametrize("component", ["numpy", "transformers", "protobuf"])
def test_series_of_a_time_were_the_newest_in_the_year_before_it(component: str) -> None:
    facts = built_in.index().component(component)
    dates = sorted(
        {day for name in ("torch", "vllm") for day in built_in.index().component(name).dates if day}
    )
    days = {day: 1 << place for place, day in enumerate(dates)}
    weighing = [*_of_its_time(facts, days, nearest=True)]
    for day, bit in days.items():
        before, after = (f"{int(day[:4]) + years}{day[4:]}" for years in (-1, 1))
        found: dict[int, int] = {weight: out for weight, out, gate in weighing if gate & bit}
        by_then, current = 0, 0
        for place, began in enumerate(facts.since_days):
            series = facts.since_masks[place] & ~(facts.since_masks[place - 1] if place else 0)
            followed = facts.since_days[place + 1 : place + 2]
            by_then |= series if began <= after else 0
            current |= series if began <= day and not (followed and followed[0] <= before) else 0
        assert (found.get(_BY_THEN, 0), found.get(_A_YEAR_LATER, 0)) == (current, by_then), day
    # Days with the same series come as one.
    assert len({(weight, out) for weight, out, _ in weighing}) == len(weighing)
