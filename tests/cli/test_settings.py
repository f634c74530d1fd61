"""Settings: which place wins, where each value came from, and what a bad file is told."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Cli
from tests.schemas import shipped
from toolmatrix.cli.context import Context
from toolmatrix.cli.parser import parse
from toolmatrix.cli.prepare import make_context
from toolmatrix.command import COMMANDS
from toolmatrix.errors import UsageError
from toolmatrix.opener import open_file


def context(here: Path, *argv: str, **env: str) -> Context:
    import io

    parsed = parse(argv)
    assert parsed.command is not None
    streams = io.StringIO(), io.StringIO(), io.StringIO()
    return make_context(parsed, parsed.command, {"HOME": str(here.parent), **env}, *streams)


def settings(cli: Cli, *argv: str, **env: str) -> dict[str, Any]:
    outcome = cli("config", "--json", *argv, **env)
    assert (outcome.code, outcome.err) == (0, "")
    document = outcome.json()
    jsonschema.validate(document, shipped("config"))
    return document


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_place_wins_over_the_next(cli: Cli, here: Path) -> None:
    """Flag > variable > project file > user file > default."""

    def cpu(*argv: str, **env: str) -> tuple[object, object]:
        found = settings(cli, *argv, **env)["options"]["cpu"]
        return found["value"], found["origin"]["kind"]

    assert cpu() == ("", "default")
    put(here.parent / ".config/toolmatrix/config.toml", 'cpu = "user"')
    assert cpu() == ("user", "user file")
    put(here / "toolmatrix.toml", 'cpu = "project"')
    assert cpu() == ("project", "project file")
    assert cpu(TOOLMATRIX_CPU="variable") == ("variable", "variable")
    assert cpu("--cpu", "flag", TOOLMATRIX_CPU="variable") == ("flag", "flag")


def test_an_environment_table_wins_over_the_rest_of_its_file(here: Path) -> None:
    put(
        here / "toolmatrix.toml",
        'target = "x86"\ndistro = "a"\nrequest = "tensorflow"\n'
        '[environments.port]\ntarget = ["arm"]\nrequest = ["tensorflow==2.6.5"]\n',
    )
    whole = context(here, "resolve")
    port = whole.for_environment("port")
    assert (whole.options.target, whole.arguments) == (("x86",), ("tensorflow",))
    assert (port.options.target, port.options.distro) == (("arm",), "a")
    assert port.arguments == ("tensorflow==2.6.5",)
    assert port.origins["target"].kind == "environment table"
    assert str(port.origins["target"]) == "toolmatrix.toml:5:1"
    flag = context(here, "resolve", "--target", "amd").for_environment("port")
    assert flag.options.target == ("amd",)
    assert context(here, "resolve", "numpy").for_environment("port").arguments == ("numpy",)
    with pytest.raises(UsageError, match="unknown environment `prot`") as caught:
        whole.for_environment("prot")
    assert (caught.value.expected, caught.value.help) == ("one of port", "did you mean `port`?")


def test_only_commands_that_take_a_request_take_the_configured_one(here: Path) -> None:
    put(here / "toolmatrix.toml", 'request = "tensorflow"')
    assert context(here, "facts").arguments == ()
    assert context(here, "facts").configured_request == ("tensorflow",)


def test_pyproject_counts_when_it_has_the_table(cli: Cli, here: Path) -> None:
    put(here.parent / "toolmatrix.toml", 'cpu = "above"')
    put(here / "pyproject.toml", '[project]\nname = "toolmatrix-user"\n')
    assert settings(cli)["options"]["cpu"]["value"] == "above"
    put(here / "pyproject.toml", '[project]\nname = "x"\n\n[tool.toolmatrix]\n  cpu = "here"\n')
    found = settings(cli)["options"]["cpu"]
    assert found["value"] == "here"
    assert found["origin"]["where"] == {"path": "pyproject.toml", "line": 5}
    put(here / "toolmatrix.toml", 'cpu = "beside"')
    assert settings(cli)["options"]["cpu"]["value"] == "beside"


def test_the_search_begins_in_the_directory_of_c(cli: Cli, here: Path) -> None:
    put(here / "sub/toolmatrix.toml", 'cpu = "below"')
    assert settings(cli)["options"]["cpu"]["value"] == ""
    assert settings(cli, "-C", "sub")["options"]["cpu"]["value"] == "below"
    assert settings(cli, TOOLMATRIX_DIRECTORY="sub")["options"]["cpu"]["value"] == "below"


def test_xdg_config_home_moves_the_user_file(cli: Cli, here: Path) -> None:
    put(here.parent / "xdg/toolmatrix/config.toml", 'cpu = "xdg"')
    found = settings(cli, XDG_CONFIG_HOME=str(here.parent / "xdg"))
    assert found["options"]["cpu"]["value"] == "xdg"
    assert settings(cli, XDG_CONFIG_HOME="relative")["options"]["cpu"]["value"] == ""


def test_paths_are_relative_to_what_names_them(here: Path) -> None:
    assert context(here, "config").options.lock == "toolmatrix.lock"
    put(here / "sub/toolmatrix.toml", 'matrix = ["ours.yaml"]')
    below = context(here, "-C", "sub", "config", "--keep", "old.lock")
    assert below.options.lock == "sub/toolmatrix.lock"
    assert below.options.keep == "sub/old.lock"
    assert below.options.matrix == ("sub/ours.yaml",)
    assert below.path("x") == "sub/x"
    assert below.path("-") == below.options.output == "-"
    put(here / "toolmatrix.toml", 'matrix = "ours.yaml"')
    deep = context(here, "-C", "sub", "config", TOOLMATRIX_MATRIX="a.yaml:/b.yaml")
    assert deep.options.matrix == ("sub/a.yaml", "/b.yaml")


def test_every_option_has_a_variable(cli: Cli) -> None:
    env = {
        "TOOLMATRIX_TARGET": "x86, arm",
        "TOOLMATRIX_WITH": "numpy>=1,<2 gcc==9",
        "TOOLMATRIX_ALL": "yes",
        "TOOLMATRIX_DEPTH": "3",
        "TOOLMATRIX_VERBOSE": "2",
        "TOOLMATRIX_NO_COLOR": "1",
        "TOOLMATRIX_EXIT_ZERO": "off",
        "TOOLMATRIX_CPU": "",
        "TOOLMATRIX_MIN_EVIDENCE": "tested",
    }
    options = settings(cli, **env)["options"]
    shown = {name: options[name]["value"] for name in ("target", "with", "all", "depth")}
    assert shown == {
        "target": ["x86", "arm"],
        "with": ["numpy>=1,<2", "gcc==9"],
        "all": True,
        "depth": 3,
    }
    assert options["verbose"]["value"] == 2
    assert options["color"]["value"] == "never"
    assert options["color"]["origin"]["name"] == "TOOLMATRIX_NO_COLOR"
    assert options["cpu"]["origin"]["kind"] == "default"


def test_the_stronger_of_two_that_exclude_each_other_wins(cli: Cli, here: Path) -> None:
    put(here / "toolmatrix.toml", "quiet = 1")
    options = settings(cli, "-v")["options"]
    assert (options["quiet"]["value"], options["verbose"]["value"]) == (0, 1)


def test_a_format_set_for_all_does_not_stop_a_command_without_it(cli: Cli) -> None:
    assert cli("completion", "fish", TOOLMATRIX_FORMAT="json").out.startswith("# fish")


def test_config_prints_value_and_origin(cli: Cli, here: Path) -> None:
    put(
        here / "toolmatrix.toml",
        'request = ["tensorflow"]\ncpu = "zen4"\n[environments.port]\ntarget = "arm"\n',
    )
    outcome = cli("config", "--target", "x86,arm", TOOLMATRIX_AT="2026-01-31", TOOLMATRIX_TAGRET="")
    lines = outcome.out.splitlines()
    assert outcome.err == "warning: `TOOLMATRIX_TAGRET` is not a variable that toolmatrix reads\n"
    for line in (
        "target        x86, arm         --target x86,arm",
        "at            2026-01-31       TOOLMATRIX_AT",
        "cpu           zen4             toolmatrix.toml:2:1",
        "depth         -                default",
        "request       tensorflow       toolmatrix.toml:1:1",
        "environment port",
        "read toolmatrix.toml",
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'tagret = "x86"',
            "unknown key `tagret`\n  --> toolmatrix.toml:1:1\nhelp: did you mean `target`?\n",
        ),
        (
            "[environment.a]\n",
            "unknown key `environment`\n  --> toolmatrix.toml\nhelp: did you mean `environments`?\n",
        ),
        (
            "[environments.a]\n\n  zzz = 1\n",
            (
                "unknown key `zzz`\n  --> toolmatrix.toml:3:3\n"
                "help: `toolmatrix config` lists the keys\n"
            ),
        ),
        (
            'output = "x"',
            (
                "unknown key `output`\n  --> toolmatrix.toml:1:1\n"
                "help: `toolmatrix config` lists the keys\n"
            ),
        ),
        (
            '# here\nmin-evidence = "testd"',
            (
                "bad value for `min-evidence`\n  --> toolmatrix.toml:2:1\n"
                "  expected: one of ran, artifact, tested, stated, derived, reported, unknown\n"
                "  found: `testd`\nhelp: did you mean `tested`?\n"
            ),
        ),
        (
            "target = 86",
            (
                "bad value for `target`\n  --> toolmatrix.toml:1:1\n"
                "  expected: a string or a list of strings\n  found: `86`\n"
            ),
        ),
        (
            'all = "yes"',
            (
                "bad value for `all`\n  --> toolmatrix.toml:1:1\n"
                "  expected: true or false\n  found: `yes`\n"
            ),
        ),
        (
            "depth = true",
            (
                "bad value for `depth`\n  --> toolmatrix.toml:1:1\n"
                "  expected: a whole number, 0 or more\n  found: true\n"
            ),
        ),
        (
            "depth = -1",
            (
                "bad value for `depth`\n  --> toolmatrix.toml:1:1\n"
                "  expected: a whole number, 0 or more\n  found: `-1`\n"
            ),
        ),
        (
            "cpu = []",
            (
                "bad value for `cpu`\n  --> toolmatrix.toml:1:1\n"
                "  expected: a string\n  found: a list\n"
            ),
        ),
        (
            "at = 2026-01-01",
            (
                "bad value for `at`\n  --> toolmatrix.toml:1:1\n"
                "  expected: a string\n  found: a date or time\n"
            ),
        ),
        (
            "environments = 1",
            (
                "bad value for `environments`\n  --> toolmatrix.toml:1:1\n"
                "  expected: tables such as [environments.NAME]\n  found: `1`\n"
            ),
        ),
        (
            "[environments]\nport = 1",
            (
                "bad value for `environments.port`\n  --> toolmatrix.toml:2:1\n"
                "  expected: a table\n  found: `1`\n"
            ),
        ),
        (
            "request = [1]",
            (
                "bad value for `request`\n  --> toolmatrix.toml:1:1\n"
                "  expected: a string or a list of strings\n  found: a list\n"
            ),
        ),
    ],
)
def test_a_bad_file_is_answered_in_full(cli: Cli, here: Path, text: str, message: str) -> None:
    put(here / "toolmatrix.toml", text)
    outcome = cli("config")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error[TM902]: " + message


def test_what_is_not_toml_or_not_text_is_said_with_its_place(cli: Cli, here: Path) -> None:
    put(here / "toolmatrix.toml", 'cpu = "a"\ncpu\n')
    outcome = cli("config")
    assert outcome.code == 2
    assert outcome.err.startswith(
        "error[TM902]: the configuration is not TOML\n  --> toolmatrix.toml:2:4\n  found: "
    )
    (here / "toolmatrix.toml").write_bytes(b"\xff\xfe")
    assert cli("config").err == (
        "error[TM902]: the configuration is not text\n  --> toolmatrix.toml\n  expected: UTF-8\n"
    )


def test_a_bad_pyproject_table_is_named_whole(cli: Cli, here: Path) -> None:
    put(here / "pyproject.toml", "[tool]\ntoolmatrix = 1\n")
    assert cli("config").err == (
        "error[TM902]: bad value for `tool.toolmatrix`\n  --> pyproject.toml:2:1\n"
        "  expected: a table\n  found: `1`\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "TOOLMATRIX_MIN_EVIDENCE",
            "testd",
            (
                "bad value for the environment variable `TOOLMATRIX_MIN_EVIDENCE`\n"
                "  expected: one of ran, artifact, tested, stated, derived, reported, unknown\n"
                "  found: `testd`\nhelp: did you mean `tested`?\n"
            ),
        ),
        (
            "TOOLMATRIX_JSON",
            "maybe",
            (
                "bad value for the environment variable `TOOLMATRIX_JSON`\n"
                "  expected: 1, true, yes, on, 0, false, no or off\n  found: `maybe`\n"
            ),
        ),
    ],
)
def test_a_bad_variable_is_answered_in_full(cli: Cli, name: str, value: str, message: str) -> None:
    outcome = cli("config", **{name: value})
    assert (outcome.code, outcome.err) == (2, "error[TM902]: " + message)


def test_two_variables_may_contradict_each_other(cli: Cli) -> None:
    outcome = cli("config", TOOLMATRIX_COLOR="always", TOOLMATRIX_NO_COLOR="1")
    assert outcome.err == (
        "error[TM902]: `TOOLMATRIX_COLOR` and `TOOLMATRIX_NO_COLOR` contradict each other\n"
    )


def test_the_keys_of_a_file_are_those_of_config(cli: Cli) -> None:
    assert len(settings(cli)["options"]) == len(COMMANDS["config"].options) - 2


ENVIRONMENTS = """\
request = "app==2.1.3"
with = ["gcc==8"]
[environments.port]
target = "arm"
[environments.old]
request = "app==2.0.0"
"""


def test_one_environment_is_asked_by_name(small: Cli, here: Path) -> None:
    """Its request and its options, below what is said on the line; for every command that asks."""
    put(here / "toolmatrix.toml", ENVIRONMENTS)
    assert small("resolve", "--environment", "port") == small("resolve", "--target", "arm")
    assert small("resolve", "--environment", "old") == small("resolve", "app==2.0.0")
    assert small("resolve", TOOLMATRIX_ENVIRONMENT="old") == small("resolve", "app==2.0.0")
    assert small("resolve", "app==2.0.0", "--environment", "port") == small(
        "resolve", "app==2.0.0", "--target", "arm"
    )
    assert small("resolve", "--environment", "port", "--target", "x86") == small(
        "resolve", "--target", "x86"
    )
    assert small("explain", "gcc", "--environment", "old") == small("explain", "gcc", "app==2.0.0")
    assert small("why-not", "cuda", "--environment", "port") == small(
        "why-not", "cuda", "--target", "arm"
    )
    line = ("matrix", "--rows", "app", "--cols", "python", "--cells")
    assert small(*line, "--environment", "port") == small(*line, "--target", "arm")
    shown = small("config", "--environment", "port", "--json").json()["options"]["target"]
    assert shown["origin"]["kind"] == "environment table"


def test_an_environment_that_nobody_configured_is_refused(small: Cli, here: Path) -> None:
    put(here / "toolmatrix.toml", ENVIRONMENTS)
    assert small("resolve", "--environment", "prot") == (
        2,
        "",
        (
            "error[TM901]: unknown environment `prot`\n"
            "  expected: one of port, old\n"
            "help: did you mean `port`?\n"
        ),
    )


# What is filled in where a request is silent, and what of a request goes to which target, on the built-in matrix.


def answer(cli: Cli, line: str) -> dict[str, Any]:
    outcome = cli("resolve", *shlex.split(line), "--json")
    assert outcome.code == 0, outcome.out + outcome.err
    return outcome.json()


@pytest.mark.parametrize(
    ("line", "from_", "accelerator"),
    [
        ("tensorflow==2.6.5", "source", {"x86": "cuda"}),
        ("tensorflow==1.14.0 --from wheel", "wheel", {"x86": "cuda"}),
        ("tensorflow==2.6.5 --from wheel", "wheel", {"x86": "cuda"}),
        ("tensorflow-cpu==2.10.0", "wheel", {"x86": "none"}),
        ("tensorflow-rocm==2.14.0.600", "wheel", {"amd": "rocm"}),
        ("tensorflow==2.6.5 --target arm", "source", {"arm": "none"}),
    ],
)
def test_defaults_follow_what_there_is(
    real: Cli, line: str, from_: str, accelerator: dict[str, str]
) -> None:
    request = answer(real, line)["request"]
    assert (request["from"], request["accelerator"]) == (from_, accelerator)


def test_a_codegen_arch_goes_to_the_target_that_can_make_it(real: Cli) -> None:
    targets = answer(real, "tensorflow==2.6.5 --target x86,amd,arm --arch sm_80,gfx90a")["targets"]
    made = {name: [arch["name"] for arch in part["archs"]] for name, part in targets.items()}
    assert made == {"x86": ["sm_80"], "amd": ["gfx90a"], "arm": []}


def test_an_arch_of_another_vendor_is_refused(real: Cli) -> None:
    outcome = real("resolve", "tensorflow==2.6.5", "--target", "amd", "--arch", "sm_80")
    assert outcome.code == 1
    assert "arch sm_80 requires cuda" in " ".join(outcome.out.split())


def test_a_python_past_its_end_is_taken_when_asked_for(real: Cli) -> None:
    line = "tensorflow==2.0.0 --accelerator none"
    python = answer(real, line)["targets"]["x86"]["components"]["python"]["version"]
    asked = answer(real, f"{line} python==2.7")["targets"]["x86"]["components"]["python"]["version"]
    assert (python, asked) == ("3.7", "2.7")


def test_a_driver_that_nobody_listed_is_as_good_as_the_one_below(real: Cli) -> None:
    driver = answer(real, "tensorflow==2.6.5 --with driver==471.11")["targets"]["x86"]["components"]
    assert driver["cuda"]["version"] == "11.2.2"
    outcome = real("resolve", "tensorflow==2.6.5", "cuda==11.2.2", "--with", "driver==418.40")
    assert outcome.code == 1


def test_a_release_after_the_day_of_at_is_told_as_such(real: Cli) -> None:
    outcome = real("resolve", "tensorflow==2.6.5", "--at", "2020-01-01")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith(
        "error[TM303]: `tensorflow==2.6.5` was not yet released on 2020-01-01\n"
    )


def test_what_was_out_before_the_first_known_release_nobody_says(real: Cli) -> None:
    """jax 0.2.9 was out on that day; the matrix begins with 0.2.11."""
    outcome = real("resolve", "jax", "--at", "2021-02-01")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("error[TM121]: the matrix knows jax from 0.2.11 on")
    # All its releases are known.
    assert real("resolve", "vllm", "--at", "2022-01-01").code == 3


def test_a_cpu_of_another_machine_is_refused(real: Cli) -> None:
    outcome = real("resolve", "tensorflow==2.6.5", "--target", "arm", "--cpu", "zen3")
    assert (outcome.code, outcome.out) == (2, "")
    assert "`--cpu zen3` is not a CPU of aarch64" in outcome.err


def test_clang_may_come_from_another_repository_than_the_distribution(real: Cli) -> None:
    parts = answer(real, "tensorflow==2.15.0")["targets"]["x86"]["components"]
    assert parts["base-image"]["version"].startswith("nvidia/cuda:12.2.2-")
    assert any(fact.startswith("apt-llvm-org/") for fact in parts["clang"]["facts"])


def test_what_only_an_image_carries_is_not_brought_in(real: Cli) -> None:
    parts = answer(real, "cuda==11.2")["targets"]["x86"]["components"]
    assert "cudnn" not in parts
    assert parts["base-image"]["version"] == "nvidia/cuda:11.2.2-devel-ubuntu20.04"
    asked = answer(real, "cuda==11.2 cudnn")["targets"]["x86"]["components"]
    assert "cudnn8" in asked["base-image"]["version"]


@pytest.mark.parametrize("name", ["cuda", "cudnn", "nccl"])
def test_what_one_target_alone_has_is_aligned_with_nothing(real: Cli, name: str) -> None:
    line = "tensorflow==2.6.5 --target x86,arm"
    found = answer(real, f"{line} --align {name}")
    assert found["targets"] == answer(real, line)["targets"]
    assert found["request"]["align"] == [name]
    lacking = "x86 and arm" if name == "nccl" else "arm"
    assert [one["text"] for one in found["caveats"]] == [
        f"--align {name}: the answer has none on {lacking}"
    ]


def test_what_every_target_has_is_aligned_without_a_word(real: Cli) -> None:
    line = "tensorflow==2.6.5 --target x86,arm --accelerator cuda --align cuda"
    found = answer(real, line)
    assert found["caveats"] == []
    versions = [part["components"]["cuda"]["version"] for part in found["targets"].values()]
    assert versions[0] == versions[1]
    alone = answer(real, "tensorflow==2.6.5 --align cuda")
    assert alone["caveats"] == []


# Files that a command names: no FIFO and no device is waited for, and a stream that was handed over is read.


ROOT = Path(__file__).parents[2]
LOG = str(ROOT / "docs/logs/build.log")
DRY_RUN = str(ROOT / "docs/logs/cuda-13.0.log")

# What names a file; the file stands for `{}`.
NAMING = {
    "judge": ["judge", "{}/requirements.txt"],
    "diagnose": ["diagnose", "{}/log"],
    "the lock beside a log": ["diagnose", LOG, "--lock", "{}/lock"],
    "a matrix": ["resolve", "torch", "--matrix", "{}/ours.yaml"],
    "a recipe": ["resolve", "torch", "--recipe", "{}/ours.yaml"],
    "what is kept": ["resolve", "torch", "--keep", "{}/lock"],
    "settings": ["-C", "{}", "config"],
    "settings of a project": ["-C", "{}", "show", "torch"],
    "a lock to render": ["render", "--lock", "{}/lock", "--stdout"],
    "a lock to read": ["upgrade", "--lock", "{}/lock"],
    "locks": ["diff", "{}/lock", "{}/lock"],
    "a dry run": ["stages", "--from-log", "{}/log"],
    "times": ["stages", "--from-log", DRY_RUN, "--cost", "{}/times"],
    "expectations": ["validate", "host", "--expect-file", "{}/list"],
    "subjects": ["validate", "--all", "{}/list", "--expect", "python==3"],
    "an inventory": ["validate", "inventory:{}/x.json", "--expect", "python==3"],
    "facts": ["check", "{}/ours.yaml"],
}
SETTINGS = {"settings": "toolmatrix.toml", "settings of a project": "pyproject.toml"}


def of(name: str, folder: Path, place: Path) -> list[str]:
    """The words of a case, whose file is put at a place."""
    words = [word.replace("{}", str(folder)) for word in NAMING[name]]
    path = next((word.partition(":")[2] or word for word in words if str(folder) in word), "")
    named = folder / SETTINGS[name] if name in SETTINGS else Path(path)
    if place.exists():
        named.symlink_to(place)
    else:
        os.mkfifo(named)
    return words


@pytest.mark.parametrize("place", ["a pipe", "/dev/zero", "/dev/tty"])
@pytest.mark.parametrize("name", NAMING)
def test_nothing_waits_for_a_pipe_or_a_device(
    name: str, place: str, real: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "named"
    folder.mkdir()
    asked = real(*of(name, folder, Path(place)))
    assert asked.code == 2, asked
    # A verdict of one of many subjects is part of the result.
    shown = asked.err + asked.out
    is_link = name == "judge" and place.startswith("/")
    assert ("a link that leaves" if is_link else "it is not a regular file") in shown


@contextmanager
def handed_over(data: bytes) -> Iterator[str]:
    """The path of a stream, as a shell writes it for `<(command)`."""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@pytest.mark.parametrize("command", ["diagnose", "judge"])
def test_a_stream_that_is_handed_over_is_read(command: str, real: Cli) -> None:
    data = Path(LOG).read_bytes() if command == "diagnose" else b"FROM nvidia/cuda:99.1.1-base\n"
    with handed_over(data) as path:
        asked = real(command, path)
    assert asked.code in (1, 4), asked
    assert "TM201" in asked.out or "99.1.1" in asked.out


def test_what_is_empty_is_read_as_such() -> None:
    with open_file(os.devnull) as file:
        assert file.read() == b""
