"""Which releases have no answer, why, and what of that is said once."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from tests.judging import small
from toolmatrix.finding import InstallMethod
from toolmatrix.judging import sweep
from toolmatrix.solve.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.judging.conftest import Small

X86 = InstallMethod(target="x86", from_="source")
X86_WHEEL = InstallMethod(target="x86", from_="wheel")
ARM = InstallMethod(target="arm", from_="source")
ARM_WHEEL = InstallMethod(target="arm", from_="wheel")


def test_every_release_is_asked_for_frameworks_first(make: Callable[..., Small]) -> None:
    found = sweep.releases(make().index)
    assert found[:3] == [("app", "1.0"), ("app", "2.0"), ("lib", "1.0")]
    assert found[3:6] == [("tool", "1.0"), ("tool", "2.0"), ("tool", "3.0")]
    assert found[6:] == [("wish", "late"), ("wish", "loud")]


def test_the_ways_are_every_target_built_and_installed(make: Callable[..., Small]) -> None:
    index = make().index
    with_cuda, with_none = ({"accelerator": name} for name in ("cuda", "none"))
    assert sweep.install_methods(index) == [
        way.replace(**accelerator)
        for way, first, second in (
            (X86, with_cuda, with_none),
            (X86_WHEEL, with_cuda, with_none),
            (ARM, with_none, with_cuda),
            (ARM_WHEEL, with_none, with_cuda),
        )
        for accelerator in (first, second)
    ]
    assert sweep.install_methods(index, "app") == sweep.install_methods(index)
    assert sweep.install_methods(index, "lib") == [
        way.replace(accelerator="none") for way in (X86, X86_WHEEL, ARM, ARM_WHEEL)
    ]


def test_a_target_has_the_accelerators_that_facts_leave_it(make: Callable[..., Small]) -> None:
    index = make(
        facts="""\
  - {id: arm-alone, when: {target: arm}, limits: {accelerator: none}, evidence: stated, source: vendor, where: text}
  - {id: x86-cuda, when: {target: x86}, requires: {accelerator: cuda}, evidence: stated, source: vendor, where: text}
"""
    ).index
    assert sweep.accelerators(index, "arm", "app") == ["none"]
    assert sweep.accelerators(index, "x86", "app") == ["cuda"]
    assert sweep.accelerators(index, "x86", "lib") == ["cuda"]  # it cannot be had without


def test_answers_and_refusals_are_counted(make: Callable[..., Small]) -> None:
    held = make()
    assert sweep.counts(held.index, held.outcomes()) == {
        "releases": 8,
        "reached": 8,
        "frameworks": 3,
        "ways": 8,
        "answers": 12,
        "refusals": 8,
        "unknown": 0,
    }


def test_refusals_with_facts_are_explained(make: Callable[..., Small]) -> None:
    found = {(one.component, one.ways): one for one in make().answers()}
    assert {one.code for one in found.values()} == {"TM104"}
    assert {one.severity for one in found.values()} == {"info"}
    assert set(found) == {("app", (ARM,)), ("app", (ARM_WHEEL,)), ("lib", (X86, ARM))}
    built = found["app", (ARM,)]
    assert built.releases == ("1.0",)
    assert built.facts == ("apps/1.0#tool", "old-tool-needs-x86#machine")
    assert built.grounds[1].clashing == ("aarch64",)


def test_releases_and_ways_with_the_same_reason_are_one_finding(
    make: Callable[..., Small],
) -> None:
    found = make().answers()
    wheels = next(one for one in found if one.ways == (ARM_WHEEL,))
    assert wheels.releases == ("1.0", "2.0")
    assert wheels.facts == ("apps/1.0#machine", "apps/2.0#machine")
    assert wheels.grounds[0].values == ("x86_64",)


def test_an_accelerator_is_named_where_another_has_an_answer(make: Callable[..., Small]) -> None:
    held = make(
        facts="""\
  - {id: no-cuda-on-arm, when: {app: "2.0", accelerator: cuda}, limits: {machine: x86_64}, evidence: stated,
     source: vendor, where: text}
"""
    )
    (found,) = [one for one in held.answers() if one.facts == ("no-cuda-on-arm#machine",)]
    assert found.releases == ("2.0",)
    assert found.ways == (ARM.replace(accelerator="cuda"),)


def test_what_rests_on_what_nobody_knows_is_neither(make: Callable[..., Small]) -> None:
    held = make(
        facts="""\
  - {id: nobody-read, when: {lib: "*"}, limits: {machine: x86_64}, evidence: unknown, source: vendor, where: text}
"""
    )
    counted = sweep.counts(held.index, held.outcomes())
    assert {name: counted[name] for name in ("answers", "refusals", "unknown", "reached")} == {
        "answers": 11,
        "refusals": 8,
        "unknown": 1,
        "reached": 8,
    }
    (found,) = [one for one in held.answers() if one.code == "TM120"]
    assert (found.severity, found.component, found.releases) == ("info", "lib", ("1.0",))
    assert found.ways == (ARM_WHEEL,)
    assert found.facts == ("nobody-read#machine",)


def test_a_refusal_never_rests_on_what_nobody_knows(make: Callable[..., Small]) -> None:
    held = make(
        facts="""\
  - {id: nobody-read, when: {lib: "*"}, limits: {machine: x86_64}, evidence: unknown, source: vendor, where: text}
"""
    )
    facts = {fact for one in held.answers() if one.code != "TM120" for fact in one.facts}
    assert "nobody-read#machine" not in facts


def test_that_a_release_is_one_of_its_builds_is_no_reason(make: Callable[..., Small]) -> None:
    (found,) = [
        one
        for one in make(*small.BUILDS, ("machine: x86_64, tool", "machine: '*', tool")).answers()
        if one.ways == (ARM_WHEEL,)
    ]
    assert (found.code, found.releases) == ("TM104", ("1.0", "2.0"))
    assert [(ground.subject, ground.component) for ground in found.grounds] == [("app", "machine")]


def test_a_broken_promise_is_an_error(make: Callable[..., Small]) -> None:
    held = make(
        ("machine: {title: machine", "machine: {title: Machine"),
        facts="""\
  - {id: no-tool-on-x86, when: {tool: "*"}, limits: {machine: aarch64}, evidence: stated, source: vendor, where: text}
""",
    )
    broken = [one for one in held.answers() if one.severity == "error"]
    assert [(one.component, one.releases, one.ways) for one in broken] == [
        ("app", ("1.0", "2.0"), (X86,))
    ]


def test_mere_needs_explain_nothing(make: Callable[..., Small]) -> None:
    held = make(
        ("loud: {rank: 1}", "loud: {rank: 1, yanked: true}"),
        ("policies: {wish: loud}", "policies: {}"),
        facts='  - {id: lib-wishes, when: {lib: "*"}, needs: [wish], evidence: stated, source: vendor, where: text}\n',
    )
    odd = [one for one in held.answers() if one.code == "TM105"]
    assert [(one.component, one.severity) for one in odd] == [("lib", "warning")]
    # Built, it is refused by a fact as well, which is the shorter reason.
    assert odd[0].ways == (X86_WHEEL, ARM_WHEEL)
    assert [ground.kind for ground in odd[0].grounds] == ["needs", "withdrawn"]


def test_a_release_that_no_request_holds_is_found(make: Callable[..., Small]) -> None:
    held = make(
        facts="""\
  - {id: tool-2-a, when: {tool: "2.0"}, limits: {machine: x86_64}, evidence: stated, source: vendor, where: text}
  - {id: tool-2-b, when: {tool: "2.0"}, limits: {target: arm}, evidence: stated, source: vendor, where: text}
"""
    )
    lost = [one for one in held.answers() if one.code == "TM306"]
    assert [(one.component, one.releases, one.severity) for one in lost] == [
        ("tool", ("2.0",), "warning")
    ]


def test_a_policy_never_hides_a_release(make: Callable[..., Small]) -> None:
    held = make(
        facts="""\
  - {id: late-on-arm, when: {wish: late}, limits: {target: arm}, evidence: stated, source: vendor, where: text}
"""
    )
    assert [one for one in held.answers() if one.code == "TM306"] == []


def test_the_request_is_the_one_the_command_line_makes(make: Callable[..., Small]) -> None:
    index = make().index
    asked = sweep.request(index, ("app", "2.0"), ARM)
    assert isinstance(asked, Request)
    assert {ask.component: ask.selector for ask in asked.asks} == {
        "target": "arm",
        "machine": "aarch64",
        "accelerator": "none",
        "from": "source",
        "app": "===2.0",
    }
    assert asked.policies == (("arm", "wish", ("loud",)),)
    assert sweep.accelerators(index, "x86", "app")[0] == "cuda"
    assert sweep.accelerators(index, "x86", "lib")[0] == "none"


def test_verdicts_travel_between_processes(make: Callable[..., Small]) -> None:
    held = make().outcomes()
    assert pickle.loads(pickle.dumps(held)) == held  # noqa: S301 - its own bytes


def test_a_worker_does_what_is_done_here(make: Callable[..., Small]) -> None:
    held = make()
    work = sweep.releases(held.index)
    assert sweep.Sweeper(index=held.index).attempt(work) == held.outcomes()
    assert [one for part in sweep.batches(work) for one in part] == work
