"""`toolmatrix check`: its forms, its exit codes, its processes; what it finds is the business of tests/judge."""

from __future__ import annotations

import io
import json
import os
import re
import signal
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests import matrix
from tests.amount import WHOLE
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.golden import assert_golden
from tests.judging import small
from tests.schemas import shipped
from toolmatrix.api import checks, files, locks
from toolmatrix.api.checks import Workers
from toolmatrix.api.explorer import Explorer
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli import progress
from toolmatrix.cli.main import main
from toolmatrix.commands import _renders as renders
from toolmatrix.commands._renders import REFUSED, RENDERED, RenderQuestion
from toolmatrix.errors import RecipeError, ToolmatrixError
from toolmatrix.lockfile.model import DEFAULT
from toolmatrix.request import recipes
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read
from toolmatrix.solve.resolve import Resolution, possible

BROKEN = """\
  - {id: no-tool-on-x86, when: {tool: "*"}, limits: {machine: aarch64}, evidence: stated, source: vendor, where: text}
"""
EPOCH = "1769817600"  # 2026-01-31


@pytest.fixture
def sound(here: Path) -> str:
    return small.write(here)


@pytest.fixture
def broken(here: Path) -> str:
    return small.write(here, facts=BROKEN)


def test_a_sound_matrix_says_yes_last(cli: Cli, sound: str) -> None:
    run = cli("check", "--matrix", sound, SOURCE_DATE_EPOCH=EPOCH)
    line = small.FACTS.partition('{app: "2.0", tool: "1.0"}')[0].count("\n") + 1
    assert run.code == 0, run.err
    assert run.err == ""
    assert run.out == (
        "info[TM104]: no answer for app 1.0 on arm from source\n"
        "  app requires tool <2 (artifact) [1]\n"
        "  tool 1.0 does not go with machine aarch64 (only x86_64) (stated) [1]\n"
        "info[TM104]: no answer for app on arm as wheel\n"
        "  app does not go with machine aarch64 (only x86_64) (artifact) [1]\n"
        "info[TM104]: no answer for lib 1.0 on x86 and arm from source\n"
        "  lib does not go with from source (only wheel) (stated) [1]\n"
        "info[TM301]: sources disagree about tool for app 2.0: apps (artifact) decides\n"
        "  over tested (reported)\n"
        f"  --> {sound.replace('front', 'facts')}:{line}:28\n"
        "\n"
        "[1] vendor:page@1  Vendor, read 2026-01-01\n"
        "\n"
        "solved 3 releases of frameworks in 8 ways: 12 answers, 8 refusals, 0 unknown\n"
        "answers cover 8 of 8 releases\n"
        "yes: the matrix has 4 infos\n"
    )


ODD = (
    *small.BUILDS,
    ('- {app: "2.0", machine: x86_64, tool: ">=2"}', """\
- {app: "2.0", date: 2025-01-01, machine: x86_64 aarch64, tool: ">=2"}
      - {app: 2.0.1, date: 2025-06-01, machine: x86_64, tool: ">=2"}"""),
    ('"2.0": {}, "3.0": {}}}', '"2.0": {date: 2025-03-01}, "3.0": {date: 2025-09-01}}}'),
    ("evidence: reported", "evidence: tested\n    stands-for: [same-minor]"),
    ("minor, evidence: derived", "minor, evidence: tested"),
    ('- {app: "2.0", tool: "1.0"}', '- {app: 2.0.1, tool: "2.0"}'),
    ('kit: "2.0", part: "2.0", archs', 'kit: "2.0", archs'),
    ('kit: "1.0", part: "1.0", archs', 'part: "1.0", archs'),
)  # fmt: skip
UNREAD = """\
  - {id: lib-needs, when: {lib: "*"}, needs: [kit], evidence: stated, source: vendor, where: text}
  - {id: lib-read, when: {lib: "*"}, limits: {machine: x86_64}, evidence: unknown, source: vendor, where: text}
"""


def test_what_is_odd_about_answers_and_rows_is_told(cli: Cli, here: Path) -> None:
    front = small.write(here, *ODD, facts=UNREAD)
    run = cli("check", "--matrix", front, SOURCE_DATE_EPOCH=EPOCH)
    assert run.code == 0, run.err
    assert_golden("check/odd.txt", run.out.replace(front.removesuffix("front.yaml"), ""))
    found = cli("check", "--matrix", front, "--json", SOURCE_DATE_EPOCH=EPOCH).json()
    jsonschema.validate(found, shipped("findings"))
    assert {one["code"] for one in found["findings"]} >= {"TM120", "TM311", "TM312", "TM313"}
    sarif = cli("check", "--matrix", front, "--format", "sarif").json()["runs"][0]
    levels = {(one["ruleId"], one["level"]) for one in sarif["results"]}
    assert levels >= {("TM120", "note"), ("TM311", "warning"), ("TM313", "note")}


def test_an_error_says_no_and_exits_with_1(cli: Cli, broken: str) -> None:
    run = cli("check", "--matrix", broken)
    assert run.code == 1
    assert run.out.startswith("error[TM104]: no answer for app on x86 from source\n")
    assert run.out.splitlines()[-1].startswith("no: the matrix has 1 error")
    assert cli("check", "--matrix", broken, "--exit-zero").code == 0


def test_a_matrix_that_cannot_be_read_is_refused(cli: Cli, here: Path) -> None:
    front = small.write(here, ("read: 2025-06-01", "read: someday"))
    run = cli("check", "--matrix", front)
    assert run.code == 2
    assert run.err.startswith("error[TM903]: read is not a date\n")


def test_age_is_judged_by_the_given_day(cli: Cli, sound: str) -> None:
    run = cli("check", "--matrix", sound, "--stale", "100", SOURCE_DATE_EPOCH=EPOCH)
    assert run.code == 0
    assert "warning[TM310]: third was read on 2025-06-01, 244 days ago; 1 fact rest" in run.out
    later = cli("check", "--matrix", sound, "--stale", "100", SOURCE_DATE_EPOCH="1790000000")
    assert "warning[TM302]: the matrix was reviewed on 2026-01-02, " in later.out


def test_a_day_that_is_no_number_is_refused(cli: Cli, sound: str) -> None:
    run = cli("check", "--matrix", sound, SOURCE_DATE_EPOCH="tomorrow")
    assert run.code == 2
    assert run.err.startswith("error[TM902]: `SOURCE_DATE_EPOCH` is not a time\n")


@pytest.mark.parametrize("changes", [(), ("--stale", "10")])
def test_json_keeps_the_contract(cli: Cli, broken: str, changes: tuple[str, ...]) -> None:
    run = cli("check", "--matrix", broken, "--json", *changes, SOURCE_DATE_EPOCH=EPOCH)
    document = run.json()
    jsonschema.validate(document, shipped("findings"))
    assert run.code == 1
    assert document["summary"]["errors"] == 1
    first = document["findings"][0]
    assert (first["code"], first["severity"], first["component"]) == ("TM104", "error", "app")
    assert first["ways"] == [{"from": "source", "target": "x86", "accelerator": None}]
    assert first["facts"] == ["apps/1.0#tool", "apps/2.0#tool", "no-tool-on-x86#machine"]
    assert first["where"]["path"].endswith("facts.yaml")


def test_sarif_has_the_shape_that_readers_need(cli: Cli, broken: str) -> None:
    run = cli("check", "--matrix", broken, "--format", "sarif")
    assert run.code == 0  # the reader of the file judges
    document = run.json()
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (only,) = document["runs"]
    driver = only["tool"]["driver"]
    assert driver["name"] == "toolmatrix"
    ids = [rule["id"] for rule in driver["rules"]]
    assert ids == sorted(set(ids))
    assert only["results"]
    for result in only["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (place,) = result["locations"]
        physical = place["physicalLocation"]
        assert physical["artifactLocation"]["uri"].endswith(".yaml")
        assert physical["region"]["startLine"] > 0
    assert only["results"][0]["level"] == "error"


def test_github_shows_ten_of_a_kind_and_fills_the_summary(
    cli: Cli, here: Path, broken: str
) -> None:
    summary = here / "summary.md"
    run = cli("check", "--matrix", broken, "--format", "github", GITHUB_STEP_SUMMARY=str(summary))
    assert run.code == 1
    lines = run.out.splitlines()
    assert lines[0].startswith("::error file=")
    assert ",title=TM104::no answer for app on x86 from source, because " in lines[0]
    assert all(line.startswith("::") for line in lines[:-1])
    assert "| error | TM104 | no answer for app on x86 from source" in summary.read_text()


def test_github_tells_how_many_more_there_are(cli: Cli, here: Path) -> None:
    idle = "".join(
        f'  idle{number}: {{title: Idle, at: "x:y@1", read: 2026-01-01}}\n' for number in range(12)
    )
    front = small.write(here, ("sources:\n", f"sources:\n{idle}"))
    lines = cli("check", "--matrix", front, "--format", "github").out.splitlines()
    warnings = [line for line in lines if line.startswith("::warning")]
    assert len(warnings) == 10
    assert warnings[-1] == "::warning title=toolmatrix::and 3 more warnings"


def test_what_github_would_read_as_its_own_is_escaped() -> None:
    from toolmatrix.report import annotations

    assert annotations.escaped("a%b\nc,d:e") == "a%25b%0Ac,d:e"
    assert annotations.escaped("a,b:c", ":,") == "a%2Cb%3Ac"


def test_there_is_no_option_that_would_do_nothing(cli: Cli) -> None:
    assert cli("check", "--fix").code == 2


def test_one_file_is_judged_by_what_it_says(cli: Cli, here: Path) -> None:
    front = small.write(here, *ODD, facts=UNREAD)
    (here / "idle.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        'sources:\n  idle: {title: Idle, at: "x:y@1", read: 2026-01-01}\n'
        "releases:\n"
        "  - {id: more, component: lib, source: vendor, evidence: artifact, where: list,\n"
        '     versions: {"3.0": {}}}\n'
    )
    text = (here / "front.yaml").read_text()
    (here / "front.yaml").write_text(text.replace("files: [", "files: [idle.yaml, "))
    whole = cli("check", "--matrix", front, "--json").json()
    part = cli("check", "--matrix", front, "--json", "--only", str(here / "idle.yaml")).json()
    assert part["subject"] == str(here / "idle.yaml")
    assert (part["summary"]["releases"], part["summary"]["frameworks"]) == (1, 1)
    assert {one["code"] for one in part["findings"]} >= {"TM104", "TM304"}
    assert all(
        one["where"]["path"].endswith("idle.yaml") or one["releases"] == ["3.0"]
        for one in part["findings"]
    )
    rest = cli("check", "--matrix", front, "--json", "--only", "facts.yaml").json()
    codes = {one["code"] for one in whole["findings"]}
    assert {one["code"] for one in (*part["findings"], *rest["findings"])} == codes
    both = cli(
        "check", "--matrix", front, "--json", "--only", "facts.yaml,idle.yaml,front.yaml"
    ).json()
    assert both["summary"]["releases"] == whole["summary"]["releases"]
    assert both["findings"] == whole["findings"]


def test_a_file_that_is_named_is_put_on_top_and_judged_alone(
    cli: Cli, here: Path, sound: str
) -> None:
    ours = here / "ours.yaml"
    ours.write_text(
        "schema: toolmatrix.facts/1\n"
        "releases:\n"
        "  - {id: more, component: lib, source: vendor, evidence: artifact, where: list,\n"
        '     versions: {"3.0": {}}}\n'
    )
    asked = cli("check", "--matrix", sound, "ours.yaml", "--json")
    words = ("--matrix", sound, "--matrix", "ours.yaml", "--only", "ours.yaml")
    assert asked == cli("check", *words, "--json")
    assert asked.json()["summary"]["releases"] == 1
    # What is in force already is there once.
    facts = sound.replace("front", "facts")
    only = cli("check", "--matrix", sound, "--only", facts, "--json")
    assert cli("check", "--matrix", sound, facts, "--json") == only
    assert (only.code, only.json()["subject"]) == (0, facts)
    absent = cli("check", "--matrix", sound, "no.yaml")
    assert absent.code == 2
    assert absent.err.startswith("error[TM903]: the matrix file cannot be read\n  --> no.yaml\n")


def test_the_closing_line_names_the_file(cli: Cli, sound: str) -> None:
    run = cli("check", "--matrix", sound, "--only", "facts.yaml")
    assert run.code == 0
    assert f"\nyes: {sound.replace('front', 'facts')} has " in run.out


def test_files_of_facts_are_completed(cli: Cli, cache: str) -> None:
    run = cli("_complete", "only", "matrix/curated/bazel", XDG_CACHE_HOME=cache)
    assert run.out == "matrix/curated/bazel.yaml\n"
    assert cli("_complete", "only", "eng", XDG_CACHE_HOME=cache).out == "engine\n"


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("fakts.yaml", "did you mean `{}facts.yaml`?"),
        ("zzzz", "`toolmatrix facts` shows the file of each fact"),
        ("new.yaml", "list it under `files` on the front page, or add it with `--matrix FILE`"),
    ],
)
def test_a_file_that_is_not_in_force_is_refused(
    cli: Cli, here: Path, sound: str, name: str, help: str
) -> None:
    (here / "new.yaml").write_text("schema: toolmatrix.facts/1\n")
    run = cli("check", "--matrix", sound, "--only", name)
    assert run.code == 2
    assert run.out == ""
    assert run.err == (
        "error[TM901]: the matrix has no such file of facts\n"
        "  expected: a file that the front page lists\n"
        f"  found: `--only {name}`\n"
        f"help: {help.format(sound.removesuffix('front.yaml'))}\n"
    )


class Screen(io.StringIO):
    """A stream that says somebody watches it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("patience", "words", "shown"),
    [(0.0, (), True), (0.0, ("--no-progress",), False), (1e9, (), False)],
)
def test_progress_is_for_those_who_wait(
    sound: str,
    monkeypatch: pytest.MonkeyPatch,
    patience: float,
    words: tuple[str, ...],
    shown: bool,
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", patience)
    out, err = io.StringIO(), Screen()
    assert main(["check", "--matrix", sound, *words], {}, io.StringIO(), out, err) == 0
    assert ("solving 8/8 releases" in err.getvalue()) == shown
    assert err.getvalue().endswith("\r\x1b[K") == shown
    assert out.getvalue() == out.getvalue().replace("\r", "")


@pytest.mark.process
def test_processes_find_what_one_finds(
    cli: Cli, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolmatrix.judging import sweep

    alone = cli("check", "--matrix", broken, "--json")
    monkeypatch.setattr(checks, "_WORTHWHILE", 1)
    monkeypatch.setattr(checks, "processors", lambda: 2)
    monkeypatch.setattr(sweep, "BATCH", 1)
    assert cli("check", "--matrix", broken, "--json") == alone


@pytest.mark.process
@pytest.mark.parametrize("lost", [signal.SIGKILL, signal.SIGTERM])
def test_a_lost_process_is_made_up_for(
    cli: Cli, broken: str, monkeypatch: pytest.MonkeyPatch, lost: signal.Signals
) -> None:
    from toolmatrix.judging import sweep

    alone = cli("check", "--matrix", broken, "--json")
    here, judge = os.getpid(), sweep.judge_release

    def dying(*asked: Any) -> sweep.ReleaseOutcome:
        if os.getpid() != here:
            os.kill(os.getpid(), lost)
        return judge(*asked)

    monkeypatch.setattr(checks, "_WORTHWHILE", 1)
    monkeypatch.setattr(checks, "processors", lambda: 2)
    monkeypatch.setattr(sweep, "BATCH", 4)
    monkeypatch.setattr(sweep, "judge_release", dying)
    assert cli("check", "--matrix", broken, "--json") == alone


# Answers of every recipe can be rendered: each release for one target, the newest for all.
#
# And laws of what is requested: it is in the image, or refused, and a yes for several targets is a yes for each.


ARCHS = ("sm_80", "gfx90a")


TARGETS = ("x86", "arm", "amd")
WAYS = ((), ("--from=source",), ("--from=wheel",))


# What the head of a component says of itself alone: for all else those that agree are treated alike.
OF_ITSELF = ("name", "title", "package", "against", "needs")


def requestable(most: int) -> list[str]:
    """The components that a request may want of an image, up to so many of each kind, from all over the matrix."""
    kinds: dict[str, list[str]] = {}
    for name, head in matrix.index().header["components"].items():
        if recipes.requested([name], matrix.index()):
            kind = {key: value for key, value in head.items() if key not in OF_ITSELF}
            kinds.setdefault(repr(kind), []).append(name)
    return [name for names in kinds.values() for name in names[:: -(-len(names) // most)]]


def checked(made: dict[str, str], target: str, component: str) -> bool:
    """Whether the check that ends the build of an image asks for a component there; read from its text alone."""
    text = made[f"{target}.check.sh"]
    if component == "base-image":
        return "\nFROM " in made[f"{target}.Dockerfile"]
    if component == "driver":
        return "driver.floor=" in made[f"{target}.Dockerfile"]
    # What is published for one toolkit has its name behind that of the component.
    used = rf"packages (?:none|cuda|rocm) .*? {component}(?:-[\w-]+)? (?:''|\d)"
    return bool(re.search(rf"^ *(?:compare {component} |{used})", text, re.MULTILINE | re.DOTALL))


def silent(components: list[str]) -> list[tuple[str, ...]]:
    """The requests that are neither refused nor answered by files that bring what was requested."""
    explorer, found = Explorer(OpenMatrix(index=matrix.index())), []
    for component in components:
        for target in TARGETS:
            for way in WAYS:
                words = (component, f"--target={target}", *way)
                try:
                    made = explorer.files(words)
                except ToolmatrixError as error:
                    refused = error.exit_code in (1, 3, 4)
                else:
                    refused = False
                    kept = not made["excluded"] and checked(made["files"], target, component)
                if not (refused or kept):
                    found.append(words)
    return found


def test_an_image_holds_what_was_requested_or_is_refused() -> None:
    assert silent(["vllm", "tensorflow", "jax", "triton", *requestable(1)[5::10]]) == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.sweep
def test_every_image_holds_what_was_requested_or_is_refused() -> None:
    assert silent(requestable(4 if WHOLE else 1)) == []


def test_a_yes_for_several_targets_is_one_for_each() -> None:
    index = matrix.index()

    def answer(component: str, *targets: str) -> Resolution | None:
        return possible(index, read(index, Fields(wanted=(component,), target=targets)))

    for component in ["cudnn==9.25.0.15", *requestable(2)]:
        alone = [answer(component, target) for target in TARGETS]
        together = answer(component, *TARGETS)
        assert bool(together) is all(alone), component
        name = component.partition("=")[0]
        if together is not None:
            assert all(name in together.chosen(target) for target in TARGETS), component


def asked(question: RenderQuestion) -> dict[str, int]:
    """What comes of a question, by its word."""
    return dict(renders.outcome(matrix.index(), question).counts)


def refused(questions: list[RenderQuestion]) -> list[tuple[str, ...]]:
    """The questions that were answered and then refused, with the reason."""
    found = [renders.outcome(matrix.index(), question) for question in questions]
    return [(*one.question.words, *one.refused) for one in found if one.refused]


def in_turn(every: list[RenderQuestion]) -> list[RenderQuestion]:
    """Each twelfth release (of wheels each 24th), by turns for its targets and archs; the newest for all of them.

    Of a part of the sweep a quarter of the older ones.
    """
    releases: dict[tuple[str, ...], dict[str, list[RenderQuestion]]] = {}
    for one in every:
        of = releases.setdefault((one.recipe, one.component, one.from_), {})
        of.setdefault(one.release, []).append(one)
    found = []
    for (recipe, *_), of in releases.items():
        *older, newest = of.values()
        apart = (24 if recipe == "wheel" else 12) * (1 if WHOLE else 4)
        found += [places[turn % len(places)] for turn, places in enumerate(older[::apart])]
        found += newest
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.sweep
def test_answers_of_every_recipe_component_and_target_can_be_rendered() -> None:
    apart = set(requestable(4 if WHOLE else 1))
    every = [
        question
        for question in renders.questions(matrix.index(), ARCHS)
        if question.recipe != "wheel" or question.component in apart
    ]
    asked = in_turn(every)
    kinds = [{one.replace(release="") for one in some} for some in (asked, every)]
    assert kinds[0] == kinds[1]
    assert refused(asked) == []


def test_the_table_tells_an_answer_that_makes_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    question = RenderQuestion(
        recipe="toolchain", component="cuda", release="12.4.1", from_="source", target="x86"
    )
    assert asked(question) == {RENDERED: 2}
    # Without what a recipe asks the solver takes the newest distribution, into which nothing brings CUDA.
    monkeypatch.setattr(recipes, "stipulations", lambda *_: ())
    found = renders.outcome(matrix.index(), question)
    assert dict(found.counts) == {REFUSED: 2}
    assert "there is no known way to install cuda 12.4.1 in" in found.refused[0]
    alone = partial(Workers, paths=(), processes=1, executor="")
    report = renders.table(matrix.index(), [question], alone)
    assert report.exit_code == 1
    validated(report.to_json(), "renders")
    assert report.to_json()["summary"][REFUSED] == 2
    assert "toolmatrix render cuda==12.4.1" in report.text()
    assert report.text().endswith("no: of 2 renders 2 were answered and then refused\n")


def test_an_extra_may_have_a_name_of_several_words() -> None:
    # As `jax[cuda11_pip]` of 0.4.23, which an older driver asks for.
    request = read(
        matrix.index(),
        Fields(wanted=("jax==0.4.23+cuda11",), from_="wheel", target=("x86",), recipe="toolchain"),
    )
    found = locks.solve(matrix.index(), {DEFAULT: locks.LockRequest(request=request, words=())})
    options = files.RenderOptions(format="dockerfile")
    made = files.render_lock(found, options, files.rules(matrix.index(), options))
    assert "jax[cuda11_pip]==0.4.23" in made["x86.Dockerfile"]


def test_archs_are_asked_for_where_the_target_has_them() -> None:
    found = renders.questions(matrix.index(), ARCHS, ["hip"])
    by_target = {(one.target, one.archs) for one in found}
    assert by_target == {
        ("x86", ()),
        ("x86", ("sm_80",)),
        ("arm", ()),
        ("amd", ()),
        ("amd", ("gfx90a",)),
    }
    assert {one.component for one in found} == {"rocm"}


def test_a_recipe_that_nobody_knows_is_refused() -> None:
    with pytest.raises(RecipeError, match="unknown recipe `hop`"):
        renders.questions(matrix.index(), (), ["hop"])


def test_a_pair_that_nobody_tested_is_told(real: Cli) -> None:
    line = ("render", "tensorflow==2.15.1", "--recipe", "tensorflow", "--arch", "sm_80", "--stdout")
    assert "cannot say" not in real(*line).err
    # Debian has a toolkit of its own, older than the one that this release was tested with.
    assert "none joins tensorflow 2.15.1 and cuda" in real(*line, "--distro", "debian12").err


@pytest.mark.long
def test_the_command_counts_what_came_of_each_recipe(real: Cli) -> None:
    found = real("check", "--render", "--only", "numpy", "--json")
    document = json.loads(found.out)
    validated(document, "renders")
    assert found.code == 0
    (row,) = document["recipes"]
    assert (row["recipe"], row["component"], row["from"]) == ("numpy", "numpy", "source")
    assert row["counts"] == document["summary"]
    assert document["refused"] == []
    assert real("check", "--render", "--format", "sarif").code == 2
