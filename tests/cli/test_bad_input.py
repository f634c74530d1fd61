"""Bad input: one clear error with the right exit code, nothing on stdout, no half of a file, and never a traceback."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Cli, Outcome
from tests.cli.transcript import FORMS
from tests.schemas import shipped
from toolmatrix.cli.main import main

USAGE, NOTHING, BEYOND, MATRIX, LOCK = "TM901", "TM110", "TM121", "TM903", "TM904"
EXITS = {USAGE: 2, NOTHING: 3, BEYOND: 4, MATRIX: 2, LOCK: 2}
LABELS = ("  --> ", "  expected: ", "  found: ", "help: ")
SPECIFIER = "  expected: a specifier such as `==2.6.5`, `>=11.2,<12`, `~=1.19.2`\n"


def one_error(outcome: Outcome, code: str) -> None:
    """That a run ended with exactly one error block and no result."""
    assert outcome.code == EXITS[code], outcome
    assert outcome.out == ""
    first, *rest = outcome.err.splitlines()
    assert first.startswith(f"error[{code}]: ")
    assert not re.search(r"[^.]\.$", first)
    assert all(len(line) < 500 and line.isprintable() for line in outcome.err.splitlines())
    order = [
        next(place for place, word in enumerate(LABELS) if line.startswith(word)) for line in rest
    ]
    assert order == sorted(set(order))
    assert rest
    assert "Traceback" not in outcome.err
    assert "defect" not in outcome.err
    assert outcome.err.endswith("\n")


def nearest(title: str, name: str, near: str) -> str:
    return f"error[TM110]: {title}\n  expected: perhaps {near}\n  found: `{name}`\n"


MESSAGES = {
    "resolve tensorflo==2.6.5": nearest(
        "unknown component `tensorflo`",
        "tensorflo",
        "`tensorflow`, `tensorflow-io`, `tensorflow-hub`",
    )
    + "help: `toolmatrix list` shows the components; `--matrix FILE` adds some of your own\n",
    "resolve tensorflow==2.6.55": (
        "error[TM110]: the matrix knows no release of tensorflow that matches `tensorflow==2.6.55`\n"
        "  expected: the nearest: 2.6.5 and 2.7.0\n"
        "  found: `tensorflow==2.6.55`\n"
        "help: `toolmatrix matrix --rows tensorflow` lists its releases\n"
    ),
    "resolve tensorflow --with gcc==99": (
        "error[TM110]: the matrix knows no release of gcc that matches `gcc==99`\n"
        "  expected: the nearest: 16\n"
        "  found: `gcc==99`\n"
        "help: `toolmatrix matrix --rows gcc` lists its releases\n"
    ),
    "resolve 'tensorflow>=3,<2'": (
        "error[TM901]: `tensorflow>=3,<2` matches nothing\n"
        "  expected: bounds that a version can satisfy\n"
        "  found: `tensorflow>=3,<2`\n"
    ),
    "resolve tensorflow==": (
        "error[TM901]: `tensorflow==` cannot be read\n"
        f"{SPECIFIER}"
        "  found: `==` without a version\n"
        "help: `tensorflow` alone means any release\n"
    ),
    "resolve 'tensorflow>='": (
        "error[TM901]: `tensorflow>=` cannot be read\n"
        f"{SPECIFIER}"
        "  found: `>=` without a version\n"
        "help: `tensorflow` alone means any release\n"
    ),
    "resolve tensorflow=2.6": (
        "error[TM901]: `tensorflow=2.6` cannot be read\n"
        f"{SPECIFIER}"
        "  found: `=2.6` is not a version\n"
        "help: did you mean `tensorflow==2.6`?\n"
    ),
    "resolve ==2.6.5": (
        "error[TM901]: a request needs a component\n"
        "  expected: `name==version`\n"
        "  found: `==2.6.5`\n"
    ),
    "resolve ''": (
        "error[TM901]: no request to answer\n"
        "  expected: a request, or `request` in toolmatrix.toml\n"
        "  found: none\n"
        "help: `toolmatrix resolve torch==2.6.0`\n"
    ),
    "resolve from==wheel tensorflow": (
        "error[TM901]: `from==wheel` is not part of an answer\n"
        "  expected: the option `--from`\n"
        "  found: `from==wheel`\n"
        "help: `toolmatrix help resolve` shows what `--from` takes\n"
    ),
    "resolve glibc": (
        "error[TM901]: `glibc` alone is not enough for an answer\n"
        "  expected: a component that an answer shows, such as `tensorflow` or `gcc`\n"
        "  found: `glibc`\n"
        "help: name it in `--with glibc`\n"
    ),
    "resolve tensorflow --arch sm_87x": nearest(
        "`--arch sm_87x`: unknown codegen arch", "sm_87x", "`sm_87`, `sm_89`, `sm_88`"
    ),
    "resolve tensorflow --distro ubuntu20.05": nearest(
        "`--distro ubuntu20.05`: unknown distro",
        "ubuntu20.05",
        "`ubuntu20.04`, `ubuntu26.04`, `ubuntu25.04`",
    )
    + "help: `toolmatrix matrix --rows distro` lists them\n",
    "resolve tensorflow --cpu neoverse-n9": nearest(
        "`--cpu neoverse-n9`: unknown CPU",
        "neoverse-n9",
        "`neoverse-n3`, `neoverse-n2`, `neoverse-n1`",
    )
    + "help: use a name of archspec or of -mcpu\n",
    "resolve tensorflow --device MI300Z": nearest(
        "`--device MI300Z`: unknown device",
        "MI300Z",
        "`MI300A`, `MI300X`, `Instinct MI300A`",
    )
    + "help: a compute capability (8.6), a gfx (gfx90a) or a product (RTX 3090, MI300X)\n",
    "resolve tensorflow --device 'RTX 3091'": nearest(
        "`--device RTX 3091`: unknown device",
        "RTX 3091",
        "`GeForce RTX 3090`, `GeForce RTX 3090 Ti`, `Quadro RTX 3000`",
    )
    + "help: a compute capability (8.6), a gfx (gfx90a) or a product (RTX 3090, MI300X)\n",
    "resolve tensorflow --align pithon": nearest(
        "unknown component `pithon`", "pithon", "`python`, `triton`, `cython`"
    )
    + "help: `toolmatrix list` shows the components; `--matrix FILE` adds some of your own\n",
    "resolve tensorflow --target amr": (
        "error[TM901]: bad value for `--target`\n"
        "  expected: one of x86, arm, amd\n"
        "  found: `amr`\n"
        "help: did you mean `arm`?\n"
    ),
    "resolve tensorflow --min-evidence nonsense": (
        "error[TM901]: bad value for `--min-evidence`\n"
        "  expected: one of ran, artifact, tested, stated, derived, reported, unknown\n"
        "  found: `nonsense`\n"
    ),
    "resolve tensorflow --at 2020-13-01": (
        "error[TM901]: bad value for `--at`\n"
        "  expected: a date such as 2026-11-20\n"
        "  found: `2020-13-01`\n"
    ),
    "resolve tensorflow --keep none.lock": (
        "error[TM904]: there is no lock\n  --> none.lock\nhelp: `toolmatrix lock` writes one\n"
    ),
    "explain cuda": (
        "error[TM901]: no request to answer\n"
        "  expected: a request, or `request` in toolmatrix.toml\n"
        "  found: none\n"
        "help: `toolmatrix explain cuda torch==2.6.0`\n"
    ),
    "matrix": (
        "error[TM901]: no rows to show\n"
        "  expected: `--rows NAME`, and `--cols NAME` for a grid\n"
        "  found: neither\n"
        "help: `toolmatrix matrix --rows cuda --cols arch --where 'cuda>=10.2,<=13'`\n"
    ),
    "matrix --rows cuda --cols cuda": (
        "error[TM901]: rows and columns are the same component\n"
        "  expected: another name in `--cols` than in `--rows`\n"
        "  found: `cuda` on both\n"
    ),
    "matrix --rows cuda --cols arch,python": (
        "error[TM901]: too many components for a grid\n"
        "  expected: one name in `--cols`\n"
        "  found: arch,python\n"
        "help: `--cells` takes several\n"
    ),
    "matrix --rows tensorflow --cols accelerator": (
        "error[TM110]: no fact joins tensorflow and accelerator\n"
        "  found: `--rows tensorflow --cols accelerator`\n"
        "help: `--all` shows every column\n"
    ),
}


@pytest.mark.parametrize("line", MESSAGES)
def test_whole_messages(real: Cli, line: str) -> None:
    outcome = real(*shlex.split(line))
    assert outcome.err == MESSAGES[line]
    one_error(outcome, outcome.err[len("error[") :][:5])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (NOTHING, ["zzzzzz"]),
        (NOTHING, ["tensorflow[npu]==2.6.5"]),
        (NOTHING, ["tensorflow@2.6.5"]),
        (NOTHING, ["ténsorflow==2.6.5"]),
        (NOTHING, ["tensorflow==99"]),
        (NOTHING, ["tensorflow>=99"]),
        (BEYOND, ["tensorflow<0.1"]),
        (BEYOND, ["tensorflow==2.99"]),
        (NOTHING, ["tensorflow", "--arch", "gfx90"]),
        (NOTHING, ["tensorflow", "--device", "8.65"]),
        (NOTHING, ["tensorflow", "--device", "RTX 9999"]),
        (NOTHING, ["tensorflow", "--with", "pithon==3.8"]),
        (NOTHING, ["\x1b[2Jtensorflow"]),
        (USAGE, ["tensorflow==2.6\n.5"]),
        (USAGE, [" "]),
        (NOTHING, ["\u2063==1"]),
        (USAGE, ["tensorflow==\uff12.\uff16"]),
        (USAGE, ["tensorflow==two"]),
        (USAGE, ["tensorflow~=2"]),
        (USAGE, ["tensorflow>2,,<3"]),
        (USAGE, ["tensorflow==2.6.5;rm -rf"]),
        (USAGE, ["tensorflow==" + "9" * 10_000]),
        (USAGE, ["tensorflow" + ">=1," * 2_500]),
        (NOTHING, ["x" * 400]),
        (USAGE, ["x" * 10_000]),
        (USAGE, ["tensorflow==2.6.5\x00"]),
        (USAGE, ["target==arm"]),
        (USAGE, ["machine"]),
        (USAGE, ["device==8.6"]),
        (USAGE, ["char-flag"]),
        (USAGE, ["tensorflow", "--with", "accelerator==none"]),
        (USAGE, ["tensorflow", "--with", ""]),
        (USAGE, ["tensorflow", "--from", "egg"]),
        (USAGE, ["tensorflow", "--prefer", "nicest"]),
        (USAGE, ["tensorflow", "--depth", "-1"]),
        (USAGE, []),
    ],
    ids=lambda given: str(given)[:40],
)
@pytest.mark.parametrize("command", ["resolve", "why-not"])
def test_one_error_and_nothing_else(real: Cli, command: str, code: str, words: list[str]) -> None:
    one_error(real(command, *words), code)


@pytest.mark.parametrize("line", list(MESSAGES)[:12])
def test_the_same_error_as_json(real: Cli, line: str) -> None:

    outcome = real(*shlex.split(line), "--json")
    error = outcome.json()["error"]
    assert outcome.err == ""
    assert f"error[{error['code']}]: {error['what']}\n" in MESSAGES[line]
    jsonschema.validate(outcome.json(), shipped("error"))


@pytest.mark.parametrize(
    "line",
    [
        "tensorflow==2.6.5 --from wheel --accelerator rocm",
        "tensorflow==2.6.5 --target arm --accelerator rocm",
        "tensorflow==2.6.5 --arch gfx90a --target x86",
        "tensorflow==2.6.5 --arch sm_86 --accelerator none",
        "tensorflow==2.6.5 --device gfx90a --target arm",
        "tensorflow==2.6.5 --with tensorflow==2.7.0",
        "tensorflow==2.6.5 tensorflow==2.7.0",
        "cudnn==8.1 --accelerator none",
        "rocm cuda",
    ],
)
def test_contradicting_options_are_a_refusal_with_a_way_out(real: Cli, line: str) -> None:
    outcome = real("resolve", *line.split())
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out.startswith("no")
    assert "you require " in outcome.out
    assert "you require ," not in outcome.out
    commands = [one for one in outcome.out.splitlines() if one.startswith("    toolmatrix ")]
    assert commands
    for command in commands:
        assert real(*shlex.split(command)[1:]).code == 0


def test_a_target_named_twice_is_one_target(real: Cli) -> None:
    twice = real("resolve", "tensorflow==2.6.5", "--target", "x86,x86")
    assert twice == real("resolve", "tensorflow==2.6.5", "--target", "x86")


def test_a_target_that_the_matrix_lacks(small: Cli) -> None:
    outcome = small("resolve", "app", "--target", "amd")
    one_error(outcome, USAGE)
    assert "expected: one of x86, arm" in outcome.err


HEAD = 'schema: toolmatrix.facts/1\nsources:\n  mine: {title: M, at: "m:p@1", read: 2026-01-01}\n'
FACT = 'when: {app: "2.1.3"}, requires: {python: "3.8"}, evidence: stated, source: mine, where: t'
BAD_FILES: dict[str, tuple[str | bytes, str, str]] = {
    "malformed": ("schema: [toolmatrix\n", "2:1", "is not YAML"),
    "tabs": ("schema: toolmatrix.facts/1\n\tx: 1\n", "2:1", "is not YAML"),
    "empty": ("", "1:1", "is empty"),
    "text": ("just text\n", "1:1", "must be a mapping"),
    "bytes": (b"\xff\xfe\x00", "1:1", "is not UTF-8"),
    "schema": ("schema: toolmatrix.facts/2\n", "1:9", "not a known word"),
    "twice": (
        f"{HEAD}statements:\n  - {{id: a, {FACT}}}\n  - {{id: a, {FACT}}}\n",
        "6:5",
        "an id is used twice",
    ),
    "key": ("schema: toolmatrix.facts/1\nschema: x\n", "2:1", "a key is used twice"),
    "aliases": (
        "schema: toolmatrix.facts/1\na: &a [x, x]\nb: &b [*a, *a]\n",
        "2:4",
        "anchors and tags are not allowed",
    ),
    "tag": (
        'schema: toolmatrix.facts/1\nsources: !!python/object/apply:os.system ["touch ran"]\n',
        "2:10",
        "anchors and tags are not allowed",
    ),
    "deep": (
        f"schema: toolmatrix.facts/1\nsources: {'[' * 5000}{']' * 5000}\n",
        "2:41",
        "nested too deeply",
    ),
    "unreleased": (
        f"{HEAD}statements:\n  - {{id: a, {FACT.replace('2.1.3', '2.1.7')}}}\n",
        "5:",
        "names a version of app that was never released",
    ),
    "component": (
        f"{HEAD}statements:\n  - {{id: a, {FACT.replace('python', 'pithon')}}}\n",
        "5:46",
        "no such component",
    ),
    "source": (
        f"{HEAD}statements:\n  - {{id: a, {FACT.replace('source: mine', 'source: other')}}}\n",
        "5:88",
        "no such source",
    ),
    "evidence": (
        f"{HEAD}statements:\n  - {{id: a, {FACT.replace('stated', 'sated')}}}\n",
        "5:72",
        "evidence is not a known word",
    ),
    "unsourced": (
        f"{HEAD}statements:\n  - {{id: a, {FACT.replace('source: mine, ', '')}}}\n",
        "5:5",
        "has no `source`",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_matrix_file_is_named_with_its_place(small: Cli, here: Path, name: str) -> None:
    text, place, what = BAD_FILES[name]
    path = here / "ours.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    outcome = small("resolve", "app", "--matrix", "ours.yaml")
    one_error(outcome, MATRIX)
    assert what in outcome.err.splitlines()[0]
    assert re.fullmatch(rf"  --> ours\.yaml:{place}\d*", outcome.err.splitlines()[1])
    assert [one.name for one in here.iterdir()] == ["ours.yaml"]


def test_a_missing_matrix_file_in_full(small: Cli) -> None:
    assert small("resolve", "app", "--matrix", "none.yaml").err == (
        "error[TM903]: the matrix file cannot be read\n"
        "  --> none.yaml\n"
        "  expected: a readable file\n"
        "  found: No such file or directory\n"
        "help: check the path given by --matrix, `matrix:` or `files:`\n"
    )


def test_a_folder_is_no_matrix_file(small: Cli, here: Path) -> None:
    (here / "folder").mkdir()
    outcome = small("resolve", "app", "--matrix", "folder")
    one_error(outcome, MATRIX)
    assert "Is a directory" in outcome.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_matrix_file(small: Cli, here: Path) -> None:
    (here / "ours.yaml").write_text(HEAD)
    (here / "ours.yaml").chmod(0)
    outcome = small("resolve", "app", "--matrix", "ours.yaml")
    one_error(outcome, MATRIX)
    assert "Permission denied" in outcome.err


def test_a_huge_matrix_file_is_not_read(small: Cli, here: Path) -> None:
    with open(here / "ours.yaml", "wb") as file:
        file.write(HEAD.encode())
        file.truncate(100 << 20)
    outcome = small("resolve", "app", "--matrix", "ours.yaml")
    one_error(outcome, MATRIX)
    assert outcome.err == (
        "error[TM903]: the matrix file is too large\n"
        "  --> ours.yaml\n"
        "  expected: at most 32 MiB\n"
        "  found: more\n"
        "help: split it, and list the parts under `files:`\n"
    )


def test_a_cycle_of_statements_is_solved(small: Cli, here: Path) -> None:
    """Two components that require each other are no mistake: both are in the answer, or neither."""
    common = "evidence: stated, source: mine, where: t"
    (here / "ours.yaml").write_text(
        f"{HEAD}statements:\n"
        f'  - {{id: a, when: {{tool: "*"}}, needs: [cuda], {common}}}\n'
        f'  - {{id: b, when: {{cuda: "*"}}, needs: [tool], {common}}}\n'
    )
    outcome = small("resolve", "tool", "--matrix", "ours.yaml", "--accelerator", "cuda", "--json")
    assert set(outcome.json()["targets"]["x86"]["components"]) == {"cuda", "driver", "tool"}
    refused = small("resolve", "tool", "--matrix", "ours.yaml", "--accelerator", "none")
    assert refused.code == 1
    for command in re.findall(r"^    toolmatrix (.*)$", refused.out, re.MULTILINE):
        assert small(*shlex.split(command)).code == 0


def test_a_front_page_that_lists_itself(small: Cli, here: Path) -> None:
    from tests.cli.conftest import SMALL

    text = (SMALL / "matrix.yaml").read_text().replace("[facts.yaml]", "[matrix.yaml]")
    (here / "matrix.yaml").write_text(text)
    one_error(small("resolve", "app", "--matrix", "matrix.yaml"), MATRIX)


def indexes(cache: str) -> list[Path]:
    return sorted(Path(cache, "toolmatrix").glob("index-*"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda _data: b"",
        lambda data: data[:100],
        lambda data: data[: len(data) // 2],
        lambda data: b"not an index" + data[12:],
        lambda data: data[:200] + bytes(len(data) - 200),
        lambda data: bytes(byte ^ 255 for byte in data),
        lambda data: data + data,
    ],
    ids=["empty", "short", "half", "foreign", "zeroes", "flipped", "doubled"],
)
def test_a_corrupt_index_is_made_anew_or_named(small: Cli, tmp_path: Path, damage: Any) -> None:
    own = str(tmp_path / "own")
    line = ("resolve", "app==2.1.3", "--arch", "sm_86")
    healthy = small(*line, XDG_CACHE_HOME=own)
    (folder,) = indexes(own)
    for name in (
        "header.json",
        "components/app.json",
        "components/app.facts.jsonl.gz",
        "sources.jsonl",
    ):
        path = folder / name
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        outcome = small(*line, XDG_CACHE_HOME=own)
        if outcome.code != healthy.code:
            one_error(outcome, MATRIX)
            assert f"--> {path}" in outcome.err
            path.write_bytes(whole)
        assert small(*line, XDG_CACHE_HOME=own) == healthy
    assert indexes(own) == [folder]


def test_a_cache_that_cannot_be_written_is_no_matter(small: Cli, here: Path) -> None:
    (here / "file").write_text("")
    healthy = small("resolve", "app==2.1.3")
    assert small("resolve", "app==2.1.3", XDG_CACHE_HOME=str(here / "file")) == healthy
    assert small("resolve", "app==2.1.3", XDG_CACHE_HOME="relative", HOME="") == healthy


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("2.1.3", "2.1.0"),
        lambda text: text.replace("toolmatrix.lock/1", "toolmatrix.lock/9"),
        lambda _text: '[[package]]\nname = "app"\nversion = "2.1.3"\n',
        lambda _text: "not toml [",
        lambda _text: "",
        lambda text: text + text,
    ],
    ids=["truncated", "edited", "other-schema", "foreign", "text", "empty", "doubled"],
)
def test_a_foreign_or_damaged_lock_is_not_kept(small: Cli, here: Path, damage: Any) -> None:
    assert small("lock", "app==2.1.3").code == 0
    path = here / "toolmatrix.lock"
    path.write_text(damage(path.read_text()))
    outcome = small("resolve", "app", "--keep", "toolmatrix.lock")
    one_error(outcome, LOCK)
    assert outcome.err.splitlines()[1].startswith("  --> toolmatrix.lock")


def test_a_folder_is_no_lock(small: Cli, here: Path) -> None:
    (here / "folder").mkdir()
    one_error(small("resolve", "app", "--keep", "folder"), LOCK)


class Broken(io.StringIO):
    """A stream whose reader is gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


class Interrupted(io.StringIO):
    """A stream at which somebody presses Ctrl-C."""

    def write(self, _text: str) -> int:
        raise KeyboardInterrupt


def streams(line: str, env: dict[str, str], stdout: io.StringIO) -> tuple[int, str]:
    stderr = io.StringIO()
    return main(shlex.split(line), env, io.StringIO(), stdout, stderr), stderr.getvalue()


@pytest.mark.parametrize(
    "line", ["resolve app", "resolve app python==3.12 --json", "resolve app==9 --json"]
)
def test_streams_that_end_early(small: Cli, cache: str, line: str) -> None:
    del small  # what it patches is what is wanted
    env = {"XDG_CACHE_HOME": cache}
    assert streams(line, env, Broken()) == (141, "")
    assert streams(line, env, Interrupted()) == (130, "interrupted\n")
    closed = io.StringIO()
    closed.close()
    code, err = streams(line, env, closed)
    assert code == (3 if "9" in line else 2)
    assert err.startswith("error[TM905]: cannot write to stdout\n  found: ")
    assert "Traceback" not in err


def test_control_c_while_solving(small: Cli, monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    def interrupt(*_given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolmatrix.api.answers.resolve", interrupt)
    assert small("resolve", "app", "-o", "out.txt") == (130, "", "interrupted\n")
    assert list(here.iterdir()) == []


@pytest.mark.process
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_pipe_that_is_closed_early(cache: str, options: list[str]) -> None:
    import subprocess

    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "toolmatrix", "resolve", "tensorflow==2.6.5", *options, "-q"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=os.environ | {"XDG_CACHE_HOME": cache},
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_stdout_will_do(cache: str, encoding: str) -> None:
    import subprocess

    ended = subprocess.run(
        [sys.executable, "-m", "toolmatrix", "resolve", "tensorflow==2.6.5"],
        capture_output=True,
        env=os.environ | {"XDG_CACHE_HOME": cache, "PYTHONIOENCODING": encoding},
        check=False,
    )
    assert ended.returncode == 0
    assert ended.stdout.decode(encoding).startswith("tensorflow 2.6.5")
    assert ("├──" in ended.stdout.decode(encoding)) is (encoding == "utf-8")
    assert b"hint: " in ended.stderr


def test_forms_are_complete() -> None:
    assert {"plain", "tty", "no-color", "ascii", "narrow", "json", "quiet"} <= set(FORMS)
