"""The questions of assistants: arguments in, the answer of the command and its document out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import toolmatrix
from tests import matrix
from tests.cli.conftest import Cli
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli import tools
from toolmatrix.cli.tools import TOOLS, SessionDefaults, ToolReply, call_tool
from toolmatrix.command import all_options

OPTIONS = all_options()
ROOT = Path(__file__).parents[2]
LOG = str(ROOT / "docs" / "logs" / "build.log")
REQUIREMENTS = str(ROOT / "docs" / "files" / "requirements.txt")

# Arguments, and the command that asks the same.
SAME: dict[str, tuple[dict[str, Any], list[str]]] = {
    "resolve": (
        {"request": ["tensorflow==2.6.5"], "target": ["x86", "arm"], "align": ["python"]},
        ["tensorflow==2.6.5", "--target", "x86,arm", "--align", "python"],
    ),
    "env": (
        {"repo": REQUIREMENTS, "device": ["RTX 5090"]},
        [REQUIREMENTS, "--device", "RTX 5090"],
    ),
    "why_not": (
        {"request": ["cuda==11.0"], "with": ["tensorflow==2.6.5"], "arch": ["sm_86"]},
        ["cuda==11.0", "--with", "tensorflow==2.6.5", "--arch", "sm_86"],
    ),
    "explain": (
        {"name": "cuda", "request": ["tensorflow==2.6.5"], "invert": True},
        ["cuda", "tensorflow==2.6.5", "--invert"],
    ),
    "show": ({"subject": "bazel", "at": "2022-01-01"}, ["bazel", "--at", "2022-01-01"]),
    "news": ({"name": ["bazel"], "since": "2026-11-20"}, ["bazel", "--since", "2026-11-20"]),
    "diagnose": ({"log": LOG, "limit": 1}, [LOG, "--limit", "1"]),
}


@pytest.fixture
def standing() -> SessionDefaults:
    """The built-in matrix, and nothing else."""
    return SessionDefaults(matrix=OpenMatrix(index=matrix.index()), directory=str(ROOT))


def refused(name: str, arguments: dict[str, Any], standing: SessionDefaults) -> list[str]:
    """The lines of an error, which is a document as well."""
    told = call_tool(name, arguments, standing)
    assert told.failed
    assert told.document["schema"] == "toolmatrix.error/1"
    return told.text.splitlines()


def test_every_question_is_tried() -> None:
    assert set(SAME) == set(TOOLS)


@pytest.mark.parametrize("name", SAME)
def test_an_assistant_is_told_what_the_command_prints(
    name: str, standing: SessionDefaults, real: Cli
) -> None:
    arguments, words = SAME[name]
    jsonschema.validate(
        arguments | {"cpu": "any"} if "cpu" in arguments else arguments, shape(name)
    )
    told = call_tool(name, arguments, standing)
    command = name.replace("_", "-")
    assert not told.failed
    assert told.text == real(command, *words).out
    assert told.document == json.loads(json.dumps(told.document))
    assert told.document == real(command, *words, "--json").json()
    jsonschema.validate(told.document, TOOLS[name].output_schema())


def shape(name: str) -> dict[str, Any]:
    """The schema of a tool's arguments, which is one itself."""
    schema = TOOLS[name].input_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def test_arguments_are_the_options_of_the_command() -> None:
    held = shape("why_not")
    assert list(held["properties"])[:4] == ["request", "target", "from", "accelerator"]
    assert held["required"] == ["request"]
    assert held["properties"]["with"] == {
        "type": "array",
        "items": {"type": "string", "maxLength": 400},
        "maxItems": 100,
        "description": OPTIONS["with_"].help,
    }
    assert held["properties"]["prefer"]["enum"] == ["newest", "oldest", "best-evidence"]


def test_one_word_may_stand_for_a_list_and_null_for_nothing(standing: SessionDefaults) -> None:
    listed = call_tool("resolve", {"request": ["cuda"], "device": ["A100", "H100"]}, standing)
    plain = {"request": "cuda", "device": "A100,H100", "cpu": None}
    assert call_tool("resolve", plain, standing) == listed
    assert not listed.failed


def test_schemas_refuse_another_document(standing: SessionDefaults) -> None:
    told = call_tool("show", {"subject": "bazel"}, standing)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(told.document, TOOLS["resolve"].output_schema())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            {"request": ["tensorfow"]},
            [
                "error[TM110]: unknown component `tensorfow`",
                "  expected: perhaps `tensorflow`, `tensorflow-io`, `tensorflow-hub`",
                "  found: `tensorfow`",
                "help: `toolmatrix list` shows the components; `--matrix FILE` adds some of your own",
            ],
            id="unknown",
        ),
        pytest.param(
            {"request": ["torch"], "target": "x87"},
            [
                "error[TM901]: bad value for `target`",
                "  expected: one of x86, arm, amd",
                "  found: `x87`",
                "help: did you mean `x86`?",
            ],
            id="word",
        ),
        pytest.param(
            {"request": ["torch"], "device": [3]},
            [
                "error[TM901]: bad value for `device`",
                "  expected: a string or a list of strings",
                "  found: a list",
            ],
            id="kind",
        ),
        pytest.param(
            {"request": 10**5_000},
            [
                "error[TM901]: bad value for `request`",
                f"  expected: {TOOLS['resolve'].first['request'].help}",
                "  found: a number of more than 18 digits",
            ],
            id="digits",
        ),
        pytest.param(
            {"request": ["torch"], "distro": "d" * 401},
            [
                "error[TM901]: `distro` is too long",
                "  expected: at most 400 characters, and 100 words in a list",
                "  found: 401 characters in 1 word",
            ],
            id="long",
        ),
        pytest.param(
            {"request": ["torch"] * 101},
            [
                "error[TM901]: `request` is too long",
                "  expected: at most 400 characters, and 100 words in a list",
                "  found: 5 characters in 101 words",
            ],
            id="many",
        ),
        pytest.param(
            {},
            [
                "error[TM901]: bad value for `request`",
                f"  expected: {TOOLS['resolve'].first['request'].help}",
                "  found: nothing",
            ],
            id="nothing",
        ),
        pytest.param(
            {"request": {"a": 1}},
            [
                "error[TM901]: bad value for `request`",
                f"  expected: {TOOLS['resolve'].first['request'].help}",
                "  found: a table",
            ],
            id="object",
        ),
    ],
)
def test_a_bad_argument_is_an_error_of_the_tool(
    arguments: dict[str, Any], said: list[str], standing: SessionDefaults
) -> None:
    assert refused("resolve", arguments, standing) == said


def test_what_no_tool_takes_is_named(standing: SessionDefaults) -> None:
    assert refused("show", {"subject": "cuda", "taget": "x86"}, standing) == [
        "error[TM901]: `show` takes no `taget`",
        "  expected: subject, at",
        "  found: `taget`",
    ]
    assert refused("harvest", {}, standing) == [
        "error[TM901]: unknown tool `harvest`",
        "  expected: resolve, env, why_not, explain, show, news, diagnose",
    ]


def test_one_subject_is_one(standing: SessionDefaults) -> None:
    assert refused("show", {"subject": ["cuda", "torch"]}, standing)[::2] == [
        "error[TM901]: bad value for `subject`",
        "  found: a list",
    ]


def test_a_defect_is_told_without_a_traceback(
    standing: SessionDefaults, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_words: str, **_options: object) -> None:
        raise ZeroDivisionError("nobody expected this")

    monkeypatch.setattr(toolmatrix, "show", broken, raising=False)
    assert refused("show", {"subject": "cuda"}, standing) == [
        "error[TM900]: internal error: ZeroDivisionError: nobody expected this",
        "help: this is a bug in toolmatrix; please report it with the output of the same command with `-vv`",
    ]


def test_a_log_is_a_path_or_its_lines(standing: SessionDefaults, tmp_path: Path) -> None:
    text = Path(LOG).read_text()
    (tmp_path / "build.log").write_text(text)
    there = call_tool("diagnose", {"log": "build.log"}, standing.replace(directory=str(tmp_path)))
    here = call_tool("diagnose", {"log": text}, standing)
    assert codes(there) == codes(here) == ["TM201"]
    assert refused("diagnose", {"log": "line\n" * tools.LONGEST_LOG}, standing)[1:] == [
        "  expected: at most 1048576 characters, and 100 words in a list",
        "  found: 5242880 characters in 1 word",
    ]
    assert refused("diagnose", {"log": "no.log"}, standing)[:2] == [
        "error[TM906]: cannot read the log",
        f"  --> {ROOT}/no.log",
    ]


HIDDEN = "root:$6$a1b2c3"
NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "recipe": ("resolve", {"request": ["torch"], "recipe": "{}/secret.yaml"}),
    "kept": ("resolve", {"request": ["torch"], "keep": "{}/secret.yaml"}),
    "device": ("resolve", {"request": ["torch"], "device": "{}/secret.yaml"}),
    "log": ("diagnose", {"log": "{}/secret.yaml"}),
    "lock": ("diagnose", {"log": "nvcc\n", "lock": "{}/secret.yaml"}),
}
TEXTS = {
    "a word": "{}",
    "a key": "{}: 1",
    "a value": "schema: {}",
    "an alias": "a: *{}",
    "a tag": "a: !{} b",
    "a string": "a = '{}",
    "a recipe": "schema: toolmatrix.recipe/1\n{}: 1",
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", NAMED)
def test_no_error_shows_what_is_in_a_file(
    name: str, text: str, standing: SessionDefaults, real: Cli, tmp_path: Path
) -> None:
    (tmp_path / "secret.yaml").write_text(TEXTS[text].format(HIDDEN))
    tool, arguments = NAMED[name]
    given = {
        key: str(tmp_path / "secret.yaml") if "{" in value else value
        for key, value in arguments.items()
    }
    answer = call_tool(tool, given, standing.replace(directory=str(tmp_path)))
    assert HIDDEN not in answer.text
    assert HIDDEN not in json.dumps(answer.document)
    assert answer.failed == (name != "log")
    # Files that are none of ours are not shown to anybody.
    if name == "recipe" and "recipe" not in text:
        for option in ("--recipe", "--matrix"):
            asked = real("resolve", "torch", option, given["recipe"])
            assert asked.code == 2
            assert HIDDEN not in asked.err + asked.out


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("way", ["above", "by a link", "absolute", "a device", "a zero byte"])
def test_no_question_leaves_the_folder_of_the_server(
    name: str, way: str, standing: SessionDefaults, tmp_path: Path
) -> None:
    (tmp_path / "out.yaml").write_text("a")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link.yaml").symlink_to(tmp_path / "out.yaml")
    path = {
        "above": "../out.yaml",
        "by a link": "link.yaml",
        "absolute": "/etc/passwd.yaml",
        "a device": "/dev/zero.yaml/../zero",
        "a zero byte": "a\0.yaml",
    }[way]
    tool, arguments = NAMED[name]
    given = {key: path if "{" in value else value for key, value in arguments.items()}
    for directory in (str(tmp_path / "in"), os.sep):
        if directory == os.sep and way == "a device":
            continue
        told = refused(tool, given, standing.replace(directory=directory))
        assert told[0] == "error[TM901]: the tools may not read this file"


def codes(told: ToolReply) -> list[str]:
    """The codes of what was found."""
    return [one["code"] for one in told.document["findings"]]


def test_options_of_the_server_hold_until_a_question_says_otherwise(
    standing: SessionDefaults,
) -> None:
    arm = standing.replace(options={"target": ("arm",), "invert": True})
    wanted = {"request": ["tensorflow==2.6.5"]}
    assert list(call_tool("resolve", wanted, arm).document["targets"]) == ["arm"]
    assert list(call_tool("resolve", wanted | {"target": "x86"}, arm).document["targets"]) == [
        "x86"
    ]
    assert not call_tool("show", {"subject": "bazel"}, arm).failed


def test_an_answer_has_a_bound(standing: SessionDefaults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "LONGEST_ANSWER", 100)
    told = call_tool("show", {"subject": "bazel"}, standing)
    assert told.failed
    assert told.text.startswith("error[TM901]: the answer is too long\n  expected: at most 100 ")
