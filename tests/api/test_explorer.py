"""The documents of the explorer: each holds what the command prints, and is laid out as that lays it out."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import toolmatrix
from tests import matrix
from tests.schemas import shipped
from toolmatrix.api.explorer import Explorer
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli.main import main
from toolmatrix.factbase.index import Index, in_memory
from toolmatrix.report.claims import address
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.fields import parse_arguments
from toolmatrix.request.names import Names

Document = Mapping[str, Any]

pytestmark = pytest.mark.usefixtures("_opened_once")

YES = ("torch", "--from=wheel", "--device=GTX 1080 Ti")
UNKNOWN = ("open3d", "--from=wheel", "--device=h100")
SEVERAL = ("tensorflow==2.6.5", "--target=x86,arm,amd")
NO = ("cuda==11.0", "--with=tensorflow==2.6.5", "--arch=sm_86")


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer(OpenMatrix(index=matrix.index()))


def checked(document: Document) -> Document:
    """A document that fits the schema it names."""
    name = document["schema"].partition("/")[0].removeprefix("toolmatrix.")
    jsonschema.validate(document, shipped(name))
    return document


def printed(cache: str, command: str, *words: str) -> tuple[int, str]:
    """What a command writes to a pipe."""
    out = io.StringIO()
    env = {"XDG_CACHE_HOME": cache}
    code = main([*shlex.split(command), *words], env, io.StringIO(), out, io.StringIO())
    return code, out.getvalue()


def nodes(node: Document) -> Iterator[Document]:
    """A node of a tree and all below it, in the order in which they are drawn."""
    yield node
    for part in (*node["disputes"], *node["below"]):
        yield from nodes(part)


@pytest.mark.parametrize(
    ("command", "words", "verdict"),
    [
        ("resolve", YES, "yes"),
        ("resolve", SEVERAL, "yes"),
        ("resolve", NO, "no"),
        ("why-not", NO, "no"),
        ("resolve", UNKNOWN, "unknown"),
        ("why-not", ("numpy==1.19.5",), "yes"),
    ],
)
def test_an_answer_is_what_the_command_prints(
    explorer: Explorer, cache: str, command: str, words: tuple[str, ...], verdict: str
) -> None:
    answer = checked(explorer.ask("answer", {"command": command, "words": words}))
    code, text = printed(cache, command, *words)
    _, document = printed(cache, command, *words, "--json")
    assert (answer["exit_code"], answer["text"] + "\n") == (code, text)
    assert answer["document"] == json.loads(document)
    assert answer["verdict"] == verdict
    # What it says to type is the same question.
    assert printed(cache, answer["command"].removeprefix("toolmatrix ")) == (code, text)


@pytest.mark.parametrize("words", [YES, SEVERAL])
def test_a_tree_has_the_lines_of_the_text(explorer: Explorer, words: tuple[str, ...]) -> None:
    answer = explorer.answer("resolve", words)
    # Lines that are continued below would hide what they say: the text of a wide screen.
    wide = Terminal(width=1000)
    options = parse_arguments(words)
    found = toolmatrix.resolve(*options.pop("wanted"), **options)
    lines = iter(found.text(wide).splitlines())
    for tree in answer["trees"]:
        for node in nodes(tree["root"]):
            line = next(line for line in lines if line.strip())
            marks = "".join(f"[{number}]" for number in node["notes"])
            assert " ".join(line.lstrip("│├└─ ").split()) == " ".join(
                " ".join((node["name"], node["evidence"], node["why"], marks)).split()
            )
    rest = [line for line in lines if line.strip()]
    assert [line.partition(" ")[0] for line in rest[: len(answer["notes"])]] == [
        f"[{note['number']}]" for note in answer["notes"]
    ]
    assert rest[len(answer["notes"]) :] == answer["remarks"]


def test_a_refusal_has_reasons_with_sources_and_ways_out_that_answer(explorer: Explorer) -> None:
    answer = explorer.answer("why-not", NO)
    assert answer["headline"] == ", for 2 independent reasons"
    assert [(part["kind"], part["code"]) for part in answer["reasons"]] == [
        ("hard", "TM101"),
        ("soft", "TM102"),
    ]
    hard, soft = answer["reasons"]
    assert [line["text"] for line in hard["lines"]][1:] == [
        "you require cuda==11.0",
        "you require --arch sm_86",
    ]
    assert (hard["lines"][0]["notes"], soft["lines"][0]["notes"]) == ([1], [2])
    assert answer["repairs"]
    verdicts = []
    for way in answer["repairs"]:
        out = explorer.answer("resolve", way["words"])
        verdicts.append(out["verdict"])
        assert out["document"].get("evidence") == way["evidence"]
    # What facts support comes first.
    assert verdicts[0] == "yes"
    assert verdicts == sorted(verdicts, reverse=True)


def test_what_cannot_be_asked_is_the_error_of_the_command(explorer: Explorer, cache: str) -> None:
    for words in (("tensorflw",), ("torch", "--from=water"), ("torch", "--frm=wheel"), ()):
        document = checked(explorer.ask("answer", {"command": "resolve", "words": words}))
        assert document["schema"] == "toolmatrix.error/1"
        assert document["error"]["what"]
    document = explorer.ask("answer", {"command": "resolve", "words": ("tensorflw",)})
    assert json.loads(printed(cache, "resolve tensorflw --json")[1]) == document


def test_dockerfiles_are_those_that_are_rendered(
    explorer: Explorer, cache: str, tmp_path: Path
) -> None:
    words = ("gcc==12", "--target=arm", "--distro=debian12")
    document = checked(explorer.ask("files", {"words": words}))
    command = document["command"].removeprefix("toolmatrix ").replace("--output out", "--output")
    assert printed(cache, command, str(tmp_path))[0] == 0
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    made.pop("toolmatrix.lock")
    assert document["files"] == made
    assert sorted(made) == ["arm.Dockerfile", "arm.check.sh"]
    refused = explorer.ask("files", {"words": NO})
    assert refused["error"]["help"].endswith("--recipe=toolchain` shows why")


def test_a_grid_and_facts_are_those_of_the_commands(explorer: Explorer, cache: str) -> None:
    said = {"rows": "tensorflow", "cols": "python", "words": ["--from=wheel"]}
    document = checked(explorer.ask("grid", said))
    line = "matrix --rows tensorflow --cols python --from wheel --json"
    assert document == json.loads(printed(cache, line)[1])
    cell = document["grid"][0]["cells"]["3.6"]
    found = explorer.ask("facts", {"ids": cell["facts"]})
    told = json.loads(printed(cache, "facts --json", *cell["facts"])[1])
    for entry in found["facts"]:
        entry["source"].pop("address")
    assert found == told


def test_a_timeline_has_what_the_grid_has(explorer: Explorer) -> None:
    said = {"component": "tensorflow", "beside": ["python", "numpy", "no-such"]}
    document = checked(explorer.ask("timeline", said))
    days = {one["release"]: one["date"] for one in document["releases"]}
    lane = document["lanes"][0]
    grid = explorer.grid("tensorflow", "python", [f"--from={lane['from']}"])
    order = list(days)
    for name, span in [(name, one) for one in lane["spans"] for name in one["releases"]]:
        yes = {
            release
            for row in grid["grid"]
            if row["cells"][name]["value"] == "yes"
            for release in row["releases"]
        }
        told: set[str] = set()
        for run in span["runs"]:
            inside = order[order.index(run["first"]) : order.index(run["last"]) + 1]
            told |= {release for release in inside if release in yes}
            assert set(inside) <= yes
            assert run["from"] == min(days[one] for one in inside)
            assert run["to"] == max(days[one] for one in inside)
        assert told == yes & set(days)
    nothing = explorer.ask("timeline", {"component": "tensorflow", "beside": ["no-such"]})
    assert nothing["error"]["what"] == "no fact joins tensorflow and no-such"


def test_a_timeline_says_until_when_and_only_where_a_fact_does(explorer: Explorer) -> None:
    document = checked(
        explorer.ask("timeline", {"component": "torch", "beside": ["python", "cuda", "driver"]})
    )
    lanes = {lane["component"]: lane for lane in document["lanes"]}
    ends = {
        name: span["end"]
        for lane in lanes.values()
        for span in lane["spans"]
        for name in span["releases"]
    }
    facts = explorer.facts([end["fact"] for end in ends.values() if end])["facts"]
    cells = {one["id"]: one["text"] for one in facts}
    for end in filter(None, ends.values()):
        assert f"{end['until'] or end['ended_by']}" in cells[end["fact"]]
    # NVIDIA names no end of a toolkit, and of this branch nobody says anything.
    assert not any(span["end"] for span in lanes["cuda"]["spans"])
    assert ends["530.30.02"] is None
    assert (ends["3.9"]["until"], ends["580.65.06"]["branch"]) == (
        "2025-10-31",
        "long term support branch",
    )
    assert (ends["515.48.07"]["until"], ends["515.48.07"]["ended_by"]) == ("", "2025-08-04")


def test_a_driver_by_way_of_a_toolkit_is_what_the_solver_says(explorer: Explorer) -> None:
    document = explorer.timeline("torch", ["driver"])
    (lane,) = document["lanes"]
    assert (lane["from"], lane["via"]) == ("wheel", "cuda")
    order = [one["release"] for one in document["releases"]]
    for release, driver, goes in (
        ("2.7.1", "470.82.01", True),
        ("2.8.0", "470.82.01", False),
        ("2.8.0", "525.60.13", True),
        ("2.15.0", "575.57.08", False),
        ("2.15.0", "580.65.06", True),
    ):
        runs = [run for span in lane["spans"] if driver in span["releases"] for run in span["runs"]]
        said = any(
            order.index(run["first"]) <= order.index(release) <= order.index(run["last"])
            for run in runs
        )
        words = (f"torch=={release}", "--from=wheel", "--accelerator=cuda")
        answer = explorer.answer("resolve", (*words, f"--with=driver=={driver}"))
        assert said == goes == (answer["verdict"] == "yes")


def test_what_is_new_came_out_after_the_day(explorer: Explorer) -> None:
    document = checked(explorer.ask("changes", {"since": "2026-09-01"}))
    assert document["releases"]
    for part in document["releases"]:
        new = {one["release"]: one["date"] for one in part["releases"]}
        table: Any = toolmatrix.matrix(part["component"])
        held = table.to_json()["releases"]
        assert new == {one["release"]: one["date"] for one in held if one["date"] > "2026-09-01"}
    newest = max(one["date"] for part in document["releases"] for one in part["releases"])
    assert explorer.changes(newest)["releases"] == []


def test_every_word_that_is_suggested_is_understood(explorer: Explorer) -> None:
    document = checked(explorer.words())
    names = Names(explorer.index)
    for part in document["components"]:
        assert names.component(part["name"]) == part["name"]
        for alias in part["aliases"]:
            assert names.component(alias) == part["name"]
    assert document["options"]["target"] == ["x86", "arm", "amd"]
    devices = {part["device"] for part in document["devices"]}
    assert {"9.0", "gfx942"} <= devices
    assert document["devices"][0]["products"]


def test_coverage_is_what_facts_prints(explorer: Explorer, cache: str) -> None:
    document = {**explorer.ask("coverage", {})}
    titles = document.pop("titles")
    assert document == json.loads(printed(cache, "facts --json")[1])
    assert set(document["summary"]["components"]) <= set(titles)


def test_files_are_read_when_a_question_needs_them(explorer: Explorer) -> None:
    files = explorer.index.files()
    asked: set[str] = set()

    def read(name: str, start: int = 0, length: int | None = None) -> bytes:
        asked.add(name)
        return in_memory(files)(name, start, length)

    parts = Explorer(OpenMatrix(index=Index("", read)))
    said = {"command": "resolve", "words": YES}
    assert parts.ask("answer", said) == explorer.ask("answer", said)
    assert sum(len(files[name]) for name in asked) < sum(map(len, files.values())) / 4


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("https://docs.example/page", "https://docs.example/page"),
        ("javascript:alert(1)", ""),
        ("https://docs.example/a page", ""),
        ("spack/spack:lib/cuda.py@1e8cf059e35d", "https://github.com/spack/spack/blob/1e8cf059e35d/lib/cuda.py"),
        ("spack/spack:lib/*.py@1e8cf059e35d", "https://github.com/spack/spack/tree/1e8cf059e35d/lib"),
        ("apache/tvm@7b50b2d0ddf4", "https://github.com/apache/tvm/tree/7b50b2d0ddf4"),
        ("package torch, final releases", ""),
    ],
)  # fmt: skip
def test_a_source_has_an_address_where_its_place_is_one(at: str, found: str) -> None:
    assert address(at) == found
