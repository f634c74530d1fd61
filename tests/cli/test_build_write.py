"""`toolmatrix build --write`: builds as facts, what is written of them, and what an answer then says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_build import NO_BUILDX, engine
from tests.cli.test_documents import validated
from toolmatrix.factbase import yamlfile
from toolmatrix.harvest import runs

ONNX = ("onnxruntime==1.17.3", "--from", "wheel", "--accelerator", "none")
ASKED = (*ONNX, "--distro", "debian12", "--target", "x86")
DAY = {"SOURCE_DATE_EPOCH": "1795392000"}
PASSED = """\
#9 12.1 pass  python   3.11.2         wanted 3.11           python3 --version
#9 12.2 9 checked, 0 failed
"""
MISSING = """\
#7 [build 1/9] RUN curl -o /work/a.tar.gz https://vendor.example/a.tar.gz
#7 0.2 curl: (6) Could not resolve host: vendor.example
#7 ERROR: process "/bin/sh -c curl" did not complete successfully: exit code: 6
"""
VERSIONS = """
case $* in
    *--help) exit 0 ;;
    version*) echo 20.10.24 on amd64; exit 0 ;;
    *inspect*) echo 607123456; exit 0 ;;
    info*) echo "[[driver-type io.containerd.snapshotter.v1]]"; exit 0 ;;
esac
"""


@pytest.fixture
def out(real: Cli, here: Path) -> Path:
    """A directory with rendered files, without a bake file."""
    real("render", *ASKED, "--format", "dockerfile", "--output", "out")
    return here / "out"


def printing(here: Path, log: str, code: int = 0) -> str:
    """A PATH with a docker whose builds print a log."""
    (here / "printed").write_text(log)
    ends = f"cat {here}/printed; exit {code}"
    return engine(here, "docker", f"{NO_BUILDX}{VERSIONS}{ends}", tools=["cat"])


def cells(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a file of facts by their ids."""
    return runs.rows(yamlfile.read(str(path)))


@pytest.mark.long
@pytest.mark.process
def test_a_build_whose_check_passed_is_a_row(real: Cli, here: Path, out: Path) -> None:
    path = printing(here, PASSED)
    outcome = real("build", "out", "--write", "builds.yaml", PATH=path, **DAY)
    assert outcome.code == 0
    assert "builds.yaml: 1 row, 1 new" in outcome.err
    ((name, row),) = cells(here / "builds.yaml").items()
    assert name == "onnxruntime-builds/1.17.3/x86_64/wheel/none/debian12/3.11"
    assert re.fullmatch("[0-9a-f]{12}", row.pop("lock"))
    assert row.pop("beside").startswith("numpy 1.")
    assert re.fullmatch(r"\d+", row.pop("seconds"))
    assert row == {
        "onnxruntime": "===1.17.3",
        "machine": "x86_64",
        "from": "wheel",
        "accelerator": "none",
        "distro": "debian12",
        "python": "3.11",
        "build": "1.17.3+cpu@default/x86_64",
        "recipe": "wheel",
        "base": "debian:12",
        "check": "9 checked, 0 failed",
        "size": "607 MB packed",
        "engine": "docker 20.10.24 on amd64",
        "day": "2026-11-23",
    }
    # The same again is the same row, and a matrix that has the file is sound.
    real("build", "out", "--write", "builds.yaml", PATH=path, **DAY)
    assert [*cells(here / "builds.yaml")] == [name]
    checked = real("check", "--matrix", "builds.yaml", "--only", "builds.yaml")
    assert (checked.code, "TM3" in checked.out) == (0, False)
    assert out.is_dir()


@pytest.mark.process
def test_a_build_without_an_address_says_which(real: Cli, here: Path, out: Path) -> None:
    failing = printing(here, MISSING, 1)
    outcome = real("build", "out", "--write", "builds.yaml", PATH=failing, **DAY)
    assert outcome.code == 1
    (row,) = cells(here / "builds.yaml").values()
    assert row["missing"] == "https://vendor.example/a.tar.gz"
    assert {"check", "seconds", "size"}.isdisjoint(row)
    # What was built elsewhere stays, whatever this machine cannot reach.
    real("build", "out", "--write", "builds.yaml", PATH=rewritten(here, PASSED, 0))
    real("build", "out", "--write", "builds.yaml", PATH=rewritten(here, MISSING, 1))
    (row,) = cells(here / "builds.yaml").values()
    assert (row["check"], row.get("missing")) == ("9 checked, 0 failed", None)
    assert out.is_dir()


def rewritten(here: Path, log: str, code: int) -> str:
    """The same engine with another log and end."""
    for tool in ("cat", "docker"):
        (here / "bin" / tool).unlink()
    return printing(here, log, code)


NOTHING = [
    pytest.param(
        "#9 CACHED\n",
        0,
        "its check was not run, because the engine had the whole build in its cache",
        id="cached",
    ),
    pytest.param(
        "#9 gcc: error\n", 1, "it failed, but not because of a missing address", id="failed"
    ),
    pytest.param("#9 9 checked, 1 failed\n", 0, "its check was not run", id="check"),
]


@pytest.mark.process
@pytest.mark.parametrize(("log", "code", "why"), NOTHING)
def test_what_proves_nothing_is_not_written_and_told(
    real: Cli, here: Path, out: Path, log: str, code: int, why: str
) -> None:
    outcome = real("build", "out", "--write", "builds.yaml", PATH=printing(here, log, code))
    assert f"out:x86 is not recorded: {why}" in outcome.err
    assert not (here / "builds.yaml").exists()
    assert out.is_dir()


@pytest.mark.process
def test_a_dockerfile_edited_by_hand_is_no_fact_of_its_lock(
    real: Cli, here: Path, out: Path
) -> None:
    file = out / "x86.Dockerfile"
    file.write_text(file.read_text().replace("onnxruntime==1.17.3", "onnxruntime==1.18.0"))
    outcome = real("build", "out", "--write", "builds.yaml", PATH=printing(here, PASSED))
    assert "x86.Dockerfile was edited by hand" in outcome.err
    assert not (here / "builds.yaml").exists()


@pytest.mark.process
def test_an_image_of_tools_is_none_of_a_framework_from_source(real: Cli, here: Path) -> None:
    asked = (
        "tensorflow==2.15.1",
        "--accelerator",
        "none",
        "--distro",
        "debian12",
        "--target",
        "x86",
        "--recipe",
        "toolchain",
    )
    real("render", *asked, "--format", "dockerfile", "--output", "out")
    outcome = real("build", "out", "--write", "builds.yaml", PATH=printing(here, PASSED))
    assert "the image has no requested component" in outcome.err


ANSWERS = {
    (): "on debian12 with python 3.11 by recipe wheel",
    ("--distro", "ubuntu22.04"): "on debian12 with python 3.11 by recipe wheel, not on ubuntu22.04",
}


@pytest.mark.long
@pytest.mark.process
def test_answers_say_what_was_built_and_what_was_not(real: Cli, here: Path, out: Path) -> None:
    real("build", "out", "--write", "builds.yaml", PATH=printing(here, PASSED), **DAY)
    for words, text in ANSWERS.items():
        asked = (*(words or ("--distro", "debian12")), "--target", "x86", "--matrix", "builds.yaml")
        told = " ".join(real("resolve", *ONNX, *asked).out.replace("│", " ").split())
        assert f"built 2026-11-23 ran {text} [" in told
        assert "onnxruntime as each row names them, by `toolmatrix build --write`" in told
        document = real("resolve", *ONNX, *asked, "--json").json()
        (image,) = document["targets"]["x86"]["components"]["onnxruntime"]["built"]
        assert (image["same"], image["text"]) == (not words, text)
        explained = " ".join(real("explain", "onnxruntime", *ONNX, *asked).out.split())
        assert f"built 2026-11-23 {text} (ran) [" in explained
    shown = real("show", "onnxruntime", "--matrix", "builds.yaml").out
    assert re.search(r"1\.17\.3 +x86_64 +wheel +none +debian12 +3\.11 +2026-11-23 +607 MB", shown)
    document = real("show", "onnxruntime", "--matrix", "builds.yaml", "--json").json()
    validated(document, "component")
    # Neither another machine, accelerator or release; nor is what was in the image as well what the image is of.
    ((_, row),) = cells(here / "builds.yaml").items()
    beside = row["beside"].rpartition("; ")[2].replace(" ", "==")
    assert beside.startswith("protobuf==")
    at = ("--distro", "debian12", "--matrix", "builds.yaml")
    for line in (
        (*ONNX, "--target", "arm"),
        ("onnxruntime==1.17.3", "--from", "source", "--accelerator", "none", "--target", "x86"),
        ("onnxruntime==1.18.0", *ONNX[1:], "--target", "x86"),
        (beside, "--target", "x86"),
    ):
        assert "built 2026" not in real("resolve", *line, *at).out
    assert out.is_dir()


@pytest.mark.long
@pytest.mark.process
def test_another_build_of_the_release_was_not_built(real: Cli, here: Path, out: Path) -> None:
    real("build", "out", "--write", "builds.yaml", PATH=printing(here, PASSED), **DAY)
    facts = here / "builds.yaml"
    facts.write_text(facts.read_text().replace("1.17.3+cpu@default", "1.17.3+cu12@default"))
    asked = (*ASKED, "--matrix", "builds.yaml")
    assert "built 2026" not in real("resolve", *asked).out
    assert out.is_dir()
