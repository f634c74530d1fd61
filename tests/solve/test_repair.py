"""Ways out of refusals, on a matrix whose every way out can be listed by hand: which, in which order, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import open_index
from toolmatrix.solve.repair import repairs
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Unsatisfiable, resolve

FRONT = """\
schema: toolmatrix.matrix/1
date: 2026-01-02
components:
  target: {title: target, scheme: names, given: true}
  machine: {title: machine, scheme: names, given: true}
  accelerator: {title: accelerator, scheme: names, given: true}
  from: {title: from, scheme: names, given: true}
  app: {title: App, scheme: pep440, framework: true}
  pin: {title: Pin, scheme: pep440}
  fixed: {title: Fixed, scheme: pep440}
  both: {title: Both, scheme: pep440}
  kit: {title: Kit, scheme: pep440}
  tool: {title: Tool, scheme: pep440}
  cuda: {title: CUDA, scheme: pep440}
  distro: {title: distro, scheme: names}
  image: {title: image, scheme: names}
  colour: {title: colour, scheme: names}
  device: {title: device, scheme: names}
  arch: {title: codegen arch, scheme: names, under: cuda}
targets:
  x86: {context: {target: x86, machine: x86_64}, accelerator: cuda, policies: {}}
  arm: {context: {target: arm, machine: aarch64}, accelerator: none, policies: {}}
rules: {}
files: [facts.yaml]
"""


def listed(component: str, *names: str) -> str:
    """The releases of a component, of names the last with the highest rank."""
    versions = ", ".join(f'"{name}": {{rank: {rank}}}' for rank, name in enumerate(names, 1))
    if component in ("app", "pin", "fixed", "both", "kit", "tool", "cuda"):
        versions = ", ".join(f'"{name}": {{}}' for name in names)
    return (
        f"  - {{id: {component}s, component: {component}, source: vendor, evidence: artifact,"
        f" where: list, versions: {{{versions}}}}}\n"
    )


FACTS = "".join(
    (
        "schema: toolmatrix.facts/1\nsources:\n",
        '  vendor: {title: Vendor, at: "vendor:page@1", read: 2026-01-01}\nreleases:\n',
        listed("target", "arm", "x86"),
        listed("machine", "aarch64", "x86_64"),
        listed("accelerator", "rocm", "cuda", "none"),
        listed("from", "wheel", "source"),
        listed("app", "1.0", "1.1", "2.0", "2.1", "3.0"),
        *(listed(name, "1.0") for name in ("pin", "fixed", "both")),
        listed("kit", "1.0", "2.0"),
        listed("tool", "1.0", "1.0.1", "1.0.2", "1.1", "2.0", "3.0"),
        listed("cuda", "11.0", "11.1", "12.0"),
        listed("distro", *(f"d{number}" for number in range(1, 12))),
        listed("image", *(f"i{number}" for number in range(1, 11))),
        listed("colour", *(f"c{number}" for number in range(1, 10))),
        listed("device", "8.0", "8.6"),
        listed("arch", "sm_80", "sm_86", "sm_90"),
        "statements:\n",
    )
)
STATEMENTS = (
    ("{app: '2.0'}", "requires: {tool: '>=1.0.1,<2'}", "stated"),
    ("{app: '3.0'}", "requires: {tool: '>=2'}", "reported"),
    ("{app: '1.1'}", "limits: {from: source}", "stated"),
    ("{app: '1.0'}", "limits: {distro: d3 d7, colour: c2 c9, image: i2}", "stated"),
    ("{app: '2.1'}", "limits: {machine: x86_64, accelerator: cuda}", "stated"),
    ("{app: '2.1'}", "tested: {image: i5}", "reported"),
    ("{app: '2.1'}", "tested: {image: i6}", "stated"),
    ("{pin: '1.0'}", "limits: {distro: d3 d7, colour: c2 c9}", "stated"),
    ("{fixed: '1.0'}", "limits: {machine: x86_64, accelerator: cuda}", "stated"),
    ("{both: '1.0', machine: x86_64}", "requires: {tool: <2}", "stated"),
    ("{both: '1.0', machine: aarch64}", "requires: {tool: '>=2'}", "stated"),
    ("{kit: '1.0'}", "requires: {tool: 1.0.1 2.0}", "stated"),
    ("{kit: '2.0'}", "requires: {tool: ===1.0 3.0}", "stated"),
    ("{arch: sm_86}", "requires: {cuda: '>=11.1'}", "stated"),
    ("{arch: sm_80}", "requires: {cuda: '>=11.0'}", "stated"),
    ("{device: '8.0'}", "limits: {arch: sm_80}", "stated"),
    ("{device: '8.6'}", "limits: {arch: sm_86 sm_80}", "stated"),
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("repair")
    lines = (
        f"  - {{id: s{place}, when: {when}, {says}, evidence: {evidence}, source: vendor, where: text}}\n"
        for place, (when, says, evidence) in enumerate(STATEMENTS)
    )
    (folder / "facts.yaml").write_text(FACTS + "".join(lines))
    (folder / "front.yaml").write_text(FRONT)
    return open_index((str(folder / "front.yaml"),), {"XDG_CACHE_HOME": str(folder)})


def ask(text: str, option: str = "", **more: Any) -> Ask:
    """A line: `tool==1.0`, or `--distro d1` of an option."""
    if text.startswith("--"):
        option, _, selector = text[2:].partition(" ")
        component = "from" if option == "from" else option
        return Ask(component=component, selector=selector, text=text, option=option, **more)
    name, _, selector = text.partition("==")
    return Ask(component=name, selector=f"=={selector}", text=text, option=option, **more)


def context(target: str, said: Mapping[str, str]) -> tuple[Ask, ...]:
    """What a target brings by itself."""
    machine = {"x86": "x86_64", "arm": "aarch64"}[target]
    accelerator = said.get("accelerator") or {"x86": "cuda", "arm": "none"}[target]
    implied = "accelerator" not in said
    return (
        ask(f"--target {target}", target=target, implied="target" not in said),
        Ask(
            component="machine",
            selector=machine,
            text=f"--target {target}",
            option="target",
            target=target,
            implied=True,
        ),
        ask(f"--accelerator {accelerator}", target=target, implied=implied),
    )


def ways(
    index: Index, *asks: Ask, target: str = "x86", limit: int = 4, **request: Any
) -> list[tuple[str, int]]:
    """What is offered: each change as `old -> new`, and its cost."""
    said = request.pop("said", {})
    targets = tuple(target.split(","))
    contexts = (line for one in targets for line in context(one, said))
    made = Request(asks=(*asks, *contexts), targets=targets, **request)
    refusal = resolve(index, made)
    assert isinstance(refusal, Unsatisfiable)
    found = repairs(index, refusal, limit)
    for one in found:
        again = resolve(index, one.request)
        assert not isinstance(again, Unsatisfiable)
        assert again.targets == one.resolution.targets
        assert {line.target for line in one.request.asks} <= {"", *one.request.targets}
    return [
        (
            " + ".join(f"{old.text} -> {new.text if new else ''}" for old, new in one.changes),
            one.cost,
        )
        for one in found
    ]


def test_the_nearest_newer_and_the_nearest_older_release(index: Index) -> None:
    """A step costs 20, 5 or 1 by the number in which it is, one more a release on the way, and one for the line."""
    assert ways(index, ask("app==2.0"), ask("tool==3.0")) == [
        # App says which tools it takes: that of the tool follows, and comes first whatever it costs.
        ("tool==3.0 -> tool==1.1", 23),
        # Of 2.1 no fact says which tool it takes, and of 1.1 none does.
        ("app==2.0 -> app==3.0", 23),
        ("app==2.0 -> app==1.1", 22),
    ]
    assert ways(index, ask("app==3.0"), ask("tool==1.0.2")) == [
        ("tool==1.0.2 -> tool==2.0", 23),
        ("app==3.0 -> app==2.0", 23),
    ]


def test_the_nearest_release_is_not_that_of_the_newest_that_was_asked_for_without_one(
    index: Index,
) -> None:
    """The newest kit takes 1.0 and 3.0, and the one before it what is nearer to 1.1."""
    any_kit = Ask(component="kit", selector="*", text="kit")
    assert ways(index, any_kit, ask("tool==1.1", "with")) == [
        ("tool==1.1 -> tool==1.0.1", 7),
        ("tool==1.1 -> tool==2.0", 21),
    ]


def test_what_is_held_moves_for_less_than_what_is_wanted(index: Index) -> None:
    found = dict(ways(index, ask("app==2.0"), ask("tool==3.0", "with")))
    assert found["tool==3.0 -> tool==1.1"] == 22


def test_a_range_moves_from_its_nearest_end(index: Index) -> None:
    wide = Ask(component="tool", selector=">=2", text="tool>=2")
    assert ways(index, ask("app==2.0"), wide)[0] == ("tool>=2 -> tool==1.1", 22)
    low = Ask(component="tool", selector="<=1.0.2", text="tool<=1.0.2")
    assert ways(index, ask("app==3.0"), low)[0] == ("tool<=1.0.2 -> tool==2.0", 23)


def test_a_patch_costs_less_than_a_minor_release(index: Index) -> None:
    found = ways(index, ask("both==1.0"), ask("tool==2.0"), limit=9)
    assert found == [("tool==2.0 -> tool==1.1", 22)]
    exactly = Ask(component="tool", selector="===1.0", text="tool===1.0")
    assert ways(index, ask("app==2.0"), exactly) == [
        ("tool===1.0 -> tool==1.0.1", 3),
        ("app==2.0 -> app==2.1", 7),
        ("app==2.0 -> app==1.1", 22),
    ]


def test_at_most_so_many_are_given_the_cheapest_first(index: Index) -> None:
    for limit in (0, 1, 2):
        found = ways(index, ask("app==2.0"), ask("tool==3.0"), limit=limit)
        assert [cost for _, cost in found] == [23, 23][:limit]


@pytest.mark.parametrize(
    ("line", "option", "found"),
    [
        ("--distro d1", "", [("--distro d1 -> --distro d3", 5), ("--distro d1 -> --distro d7", 5)]),
        ("colour==c1", "", [("colour==c1 -> colour==c2", 2), ("colour==c1 -> colour==c9", 2)]),
        ("colour==c1", "with", [("colour==c1 -> colour==c2", 1), ("colour==c1 -> colour==c9", 1)]),
        ("image==i1", "", []),
    ],
)
def test_each_of_a_few_names_and_every_distribution_is_tried(
    index: Index, line: str, option: str, found: list[tuple[str, int]]
) -> None:
    """Of nine colours each is tried, of ten images none, of eleven distributions each."""
    app = [("app==1.0 -> app==1.1", 7)]
    assert ways(index, ask("app==1.0"), ask(line, option)) == [*found, *app]


def test_a_wheel_becomes_a_source_build_at_a_price(index: Index) -> None:
    assert ways(index, ask("app==1.1"), ask("--from wheel")) == [
        ("app==1.1 -> app==1.0", 7),
        ("--from wheel -> --from source", 13),
        ("app==1.1 -> app==2.0", 22),
    ]


def test_an_arch_becomes_one_whose_code_runs_on_the_same_device(index: Index) -> None:
    assert ways(index, ask("cuda==11.0"), archs=("sm_86",)) == [
        ("--arch sm_86 -> --arch sm_80", 3),
        ("cuda==11.0 -> cuda==11.1", 7),
    ]


def test_an_arch_of_no_device_has_no_stand_in(index: Index) -> None:
    assert ways(index, archs=("sm_86",), devices=("8.0",)) == [("--device 8.0 -> --device 8.6", 7)]


def test_another_target_is_offered_where_nothing_else_helps(index: Index) -> None:
    assert ways(index, ask("fixed==1.0"), target="arm") == [("--target arm -> --target x86", 17)]
    assert ways(index, ask("fixed==1.0"), ask("pin==1.0"), target="arm") == [
        ("--target arm -> --target x86", 17)
    ]
    assert ways(index, ask("app==2.1"), target="arm") == [
        ("app==2.1 -> app==2.0", 7),
        ("app==2.1 -> app==3.0", 22),
    ]


@pytest.mark.parametrize("said", [{"accelerator": "none"}, {"target": "arm"}])
def test_a_machine_or_accelerator_that_was_named_stays(index: Index, said: dict[str, str]) -> None:
    assert ways(index, ask("fixed==1.0"), target="arm", said=said) == []


def test_no_target_moves_where_several_are_asked_for(index: Index) -> None:
    assert ways(index, ask("fixed==1.0"), target="x86,arm") == []


def test_one_component_need_not_be_the_same_everywhere(index: Index) -> None:
    assert ways(index, ask("both==1.0"), target="x86,arm", align=("tool",)) == [
        ("--align tool -> ", 9)
    ]


def test_a_line_is_dropped_where_it_cannot_be_said_otherwise(index: Index) -> None:
    found = ways(index, ask("both==1.0"), ask("tool==3.0"), ask("app==3.0"), limit=9)
    # Nobody named the machine that is in the way: on another one nothing has to go.
    assert found == [("--target x86 -> --target arm", 17)]
    given = {"accelerator": "rocm"}
    assert ways(index, ask("fixed==1.0"), ask("app==1.0"), said=given, limit=9) == [
        ("fixed==1.0 -> ", 10)
    ]
    assert ways(index, ask("fixed==1.0"), said=given) == []


def test_two_lines_change_where_one_is_not_enough(index: Index) -> None:
    held = ask("colour==c1", "with")
    pairs = [
        (f"colour==c1 -> colour=={colour} + --distro d1 -> --distro {distro}", 6)
        for colour in ("c2", "c9")
        for distro in ("d3", "d7")
    ]
    drops = [(f"colour==c1 -> colour=={colour} + --distro d1 -> ", 15) for colour in ("c2", "c9")]
    assert ways(index, ask("pin==1.0"), ask("--distro d1"), held) == pairs
    assert ways(index, ask("pin==1.0"), ask("--distro d1"), held, limit=40) == [*pairs, *drops]


def test_an_arch_or_a_device_is_dropped_where_no_other_goes_with_it(index: Index) -> None:
    assert ways(index, archs=("sm_90",), devices=("8.0",)) == [
        ("--arch sm_90 -> ", 12),
        ("--device 8.0 -> ", 16),
    ]


def test_lines_of_a_target_move_with_it(index: Index) -> None:
    narrow = Ask(
        component="colour", selector="==c2", text="colour==c2", option="with", target="arm"
    )
    found = ways(index, ask("fixed==1.0"), narrow, target="arm")
    assert found == [("--target arm -> --target x86", 17)]


@pytest.mark.parametrize(
    ("least", "image", "enough"),
    [
        ("ran", "i5", "reported"),
        ("stated", "i5", "reported"),
        ("derived", "i5", "reported"),
        ("tested", "i6", "stated"),
    ],
)
def test_the_evidence_asked_for_falls_to_the_nearest_that_is_enough(
    index: Index, least: str, image: str, enough: str
) -> None:
    found = ways(index, ask("app==2.1"), ask(f"image=={image}"), min_evidence=least, limit=40)
    assert [one for one in found if one[0].startswith("--min")] == [
        (f"--min-evidence {least} -> --min-evidence {enough}", 8)
    ]
