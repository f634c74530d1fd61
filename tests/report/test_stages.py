"""Plans in words: the shapes that need care are shown as they should."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.report.stage_laws import WIDTHS
from toolmatrix.compilation import Diagnostic, Log, Plan, Stage, model
from toolmatrix.compilation.model import KINDS
from toolmatrix.report import stage_graphs
from toolmatrix.report import stages as report
from toolmatrix.report.stages import (
    BOTH,
    DEVICE,
    HOST,
    FileNames,
    StageProse,
    catalog,
    products,
    sentence,
    shortened,
    sources,
    table,
)
from toolmatrix.report.terminal import Terminal

CONDITIONS = ("driver", "tool", "word", "reads", "writes")


def stage(number: int, kind: str, reads: str, writes: str, **given: object) -> Stage:
    fields: dict[str, object] = {
        "id": number,
        "line": number + 1,
        "kind": kind,
        "tool": "gcc",
        "arch": None,
        "inputs": tuple(reads.split()),
        "outputs": tuple(writes.split()),
        "argv": (kind,),
        "text": kind,
    }
    return Stage(**fields | given)  # type: ignore[arg-type]


def plan(*stages: Stage, **given: object) -> Plan:
    fields: dict[str, object] = {"tool": "nvcc", "version": "", "line": 1, "env": {}, "edges": ()}
    return Plan(stages=stages, **fields | given)  # type: ignore[arg-type]


def many(count: int) -> Plan:
    """A plan with three stages for each of so many archs, and two that join them."""
    made: list[Stage] = []
    for place in range(count):
        arch = f"compute_{place}"
        made += [
            stage(place * 3, "preprocess", "src/long_name.cu", f"t/long_name.{arch}.ii", arch=arch),
            stage(
                place * 3 + 1,
                "cicc",
                f"t/long_name.{arch}.ii",
                f"t/long_name.{arch}.ptx",
                arch=arch,
            ),
            stage(
                place * 3 + 2,
                "ptxas",
                f"t/long_name.{arch}.ptx",
                f"t/long_name.{arch}.cubin",
                arch=f"sm_{place}",
            ),
        ]
    cubins = " ".join(path for one in made for path in one.outputs if path.endswith(".cubin"))
    made.append(stage(len(made), "fatbinary", cubins, "t/long_name.fatbin.c"))
    made.append(stage(len(made), "host-compile", "t/long_name.fatbin.c", "long_name.o"))
    return plan(*made)


def entries() -> list[StageProse]:
    return [entry for held in catalog().values() for entry in held]


def test_stages_that_repeat_for_each_arch_are_one_run() -> None:
    assert table(many(12), Terminal())[:6] == [
        "#      side    step        tool  arch      reads -> writes",
        "1..34  device  preprocess  gcc   12 archs  src/long_name.cu -> *.ii",
        "2..35  device  to PTX      gcc   12 archs  *.ii -> *.ptx",
        "3..36  device  to SASS     gcc   12 archs  *.ptx -> *.cubin",
        "37     device  bundle      gcc             *.compute_0.cubin, *.compute_1.cubin,",
        "                                           *.compute_2.cubin and 9 more ->",
    ]
    shown = table(many(12), Terminal())
    assert "`*` is short for long_name" in shown
    assert "1..36: compute_0 sm_0 (1-3), compute_1 sm_1 (4-6), compute_2 sm_2 (7-9)," in shown
    assert len(table(many(12), Terminal(width=1000), full=True)) == 1 + 38
    assert all(".." not in line for line in table(many(3), Terminal()))


def test_explaining_says_the_same_once() -> None:
    shown = "\n".join(table(many(2), Terminal(), explain=True))
    assert shown.count("compiles the device code to PTX") == 1
    assert "as stage 2, for compute_1" in shown


def test_names_lose_what_belongs_to_a_run() -> None:
    one = plan(
        stage(0, "cicc", "a.cu", "/T/tmpxft_0000a_0-6_a.ptx /T/tmpxft_0000a_0-6_a.cudafe1.c"),
        stage(1, "ptxas", "/T/tmpxft_0000a_0-6_a.ptx", "/home/me/tmp-abcdef.cubin"),
    )
    names = FileNames(one)
    assert names.of("/T/tmpxft_0000a_0-6_a.ptx") == "a.ptx"
    assert names.of("/T/tmpxft_0000a_0-6_a.cudafe1.c") == "a.cudafe1.c"
    assert names.of("/home/me/tmp-abcdef.cubin") == "/home/me/tmp-abcdef.cubin"
    assert FileNames(one, full=True).of("/T/tmpxft_0000a_0-6_a.ptx") == "/T/tmpxft_0000a_0-6_a.ptx"
    assert (sources(one), products(one)) == (["a.cu"], ["/home/me/tmp-abcdef.cubin"])


def test_what_a_terminal_would_obey_is_escaped() -> None:
    evil = "\x1b[31mred\x07\u202e\udcff\n.cu"
    one = plan(
        stage(0, "other", "", "", inputs=(evil,), tool=evil, text=evil, arch=evil),
        diagnostics=(Diagnostic(line=1, severity="warning", text=evil),),
        version=evil,
    )
    log = Log(plans=(one,), diagnostics=(Diagnostic(line=0, severity="note", text=evil),))
    for text in (
        report.text(log, evil, Terminal()),
        report.text(log, evil, Terminal(), full=True, explain=True),
        report.raw(log),
    ):
        assert all(line.isprintable() for line in text.splitlines())
        assert r"\x1b[31mred\x07\u202e\udcff\n.cu" in text.replace("\n  ", "").replace("\n", "")


def test_a_long_path_loses_its_beginning() -> None:
    assert shortened("/a/long/way/to/file.cu", 16) == ".../to/file.cu"
    assert shortened("x" * 50, 10) == "..." + "x" * 7


def test_many_files_are_counted() -> None:
    one = plan(stage(0, "link", " ".join(f"{place}.o" for place in range(100)), "app"))
    assert table(one, Terminal())[1].endswith("0.o, 1.o, 2.o and 97 more -> app")
    assert "99.o" in "".join(table(one, Terminal(), full=True))


def test_plans_of_one_shape_are_shown_once() -> None:
    log = Log(plans=(many(2), many(2).replace(line=40), plan()))
    text = report.text(log, "x.log", Terminal())
    assert text.count("reads -> writes") == 1
    assert "8 stages for compute_0, sm_0, compute_1 and sm_1, as in 1\n" in text
    assert text.endswith("\n\n3 invocations, 16 stages for compute_0, sm_0, compute_1 and sm_1\n")
    assert report.text(log, "x.log", Terminal(), full=True).count("reads -> writes") == 2


def test_many_diagnostics_are_counted() -> None:
    said = tuple(Diagnostic(line=place, severity="note", text="x") for place in range(1, 31))
    log = Log(plans=(plan(diagnostics=said),))
    assert "and 20 more; `-v` shows all\n" in report.text(log, "x", Terminal())
    assert "note: x (line 30)\n" in report.text(log, "x", Terminal(), full=True)


def test_sentences_are_in_the_voice_of_the_program() -> None:
    for entry in entries():
        told = sentence(entry, "sm_0")
        assert "{" not in told
        assert re.match(r"[a-z`]", told)
        assert not told.endswith(".")
        assert all(flag.startswith("-") for flag in entry.flags)


def test_the_file_of_sentences_has_its_shape() -> None:
    assert set(catalog()) <= {*KINDS}
    for entry in entries():
        texts = (entry.name, entry.does, *entry.flags, *(getattr(entry, one) for one in CONDITIONS))
        assert all(isinstance(text, str) and text == " ".join(text.split()) for text in texts)
        assert entry.name
        assert entry.does
        assert entry.side in (HOST, DEVICE, BOTH)
        assert entry.arch in (None, True, False)
        for condition in CONDITIONS:
            re.compile(getattr(entry, condition))


def test_the_last_entry_of_a_kind_describes_every_stage_of_it() -> None:
    for kind, held in catalog().items():
        *special, general = held
        assert not any(getattr(general, one) for one in (*CONDITIONS, "arch")), kind
        for entry in special:
            assert entry.arch or any(getattr(entry, one) for one in CONDITIONS), kind


WORDS = st.text(st.characters(), max_size=30)
PATHS = st.lists(
    st.one_of(WORDS, st.sampled_from(["a.cu", "/t/a.ii", "/t/a.ptx", "-", ""])), max_size=4
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan that the model can hold."""
    made = [
        stage(
            number,
            draw(st.sampled_from(KINDS)),
            "",
            "",
            tool=draw(WORDS),
            arch=draw(st.none() | WORDS),
            inputs=tuple(draw(PATHS)),
            outputs=tuple(draw(PATHS)),
            argv=tuple(draw(PATHS)),
            text=draw(WORDS),
        )
        for number in range(draw(st.integers(0, 12)))
    ]
    return plan(
        *made,
        tool=draw(st.sampled_from(["nvcc", "hipcc", "clang"])),
        version=draw(WORDS),
        edges=model.stage_edges(made),
        removed=tuple(draw(PATHS)),
    )


@given(st.lists(plans(), max_size=3), st.sampled_from(WIDTHS), st.booleans(), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_any_plan_can_be_shown(held: list[Plan], width: int, full: bool, explain: bool) -> None:
    log = Log(plans=tuple(held))
    screen = Terminal(width=width)
    texts = [
        report.text(log, "x", screen, full=full, explain=explain),
        report.raw(log),
        stage_graphs.dot(log),
        stage_graphs.mermaid(log),
    ]
    for text in texts:
        assert all(letter.isprintable() or letter == "\n" for letter in text)
