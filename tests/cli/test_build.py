"""`toolmatrix build`: what it asks of which engine, and how it ends; the engines are scripts that note their words."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Cli, Outcome
from tests.cli.test_documents import validated
from toolmatrix.commands.build import Engines

ROOT = str(Path(__file__).parents[2])
DEBIAN = ("gcc", "--distro", "debian12", "--target", "x86,arm", "--accelerator", "none")


@pytest.fixture
def out(real: Cli, here: Path) -> Path:
    """A directory with rendered files, without a bake file."""
    real("render", *DEBIAN, "--format", "dockerfile", "--output", "out")
    return here / "out"


def engine(here: Path, name: str, body: str = "", tools: Iterable[str] = ()) -> str:
    """A PATH on which there are one engine, which writes its words into `calls`, and the tools that it uses."""
    folder = here / "bin"
    folder.mkdir(exist_ok=True)
    for used in tools:
        (folder / used).symlink_to(str(shutil.which(used)))
    tool = folder / name
    tool.write_text(f'#!/bin/sh\necho "{name} $*" >>"{here}/calls"\n{body}\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def calls(here: Path) -> list[str]:
    """What the engine was called with, but for what asks what it has."""
    lines = (here / "calls").read_text().splitlines()
    return [line for line in lines if not line.endswith((" version", " --help"))]


NO_BUILDX = '[ "$1" = buildx ] && exit 1'


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("docker", f"{NO_BUILDX}; exit 0", "docker build"),
        ("docker", "", "docker build"),
        ("buildah", "", "buildah build"),
    ],
)
def test_each_dockerfile_is_built_for_its_platform(
    real: Cli, here: Path, out: Path, name: str, body: str, words: str
) -> None:
    outcome = real("build", "out", "--", "--no-cache", PATH=engine(here, name, body))
    assert outcome.code == 0
    assert calls(here) == [
        f"{words} --platform linux/{platform} --tag out:{target}"
        f" --file out/{target}.Dockerfile --no-cache out"
        for target, platform in (("arm", "arm64"), ("x86", "amd64"))
    ]
    assert outcome.out.endswith("2 of 2 images built\n")
    assert out.is_dir()


@pytest.mark.process
def test_bake_builds_each_image_where_buildx_is(real: Cli, here: Path, out: Path) -> None:
    (out / "docker-bake.json").write_text("{}")
    path = engine(here, "docker", f'pwd >>"{here}/folders"')
    outcome = real("build", "out", "--target", "arm", PATH=path)
    assert outcome.code == 0
    assert calls(here) == ["docker buildx bake --file docker-bake.json arm"]
    # Bake takes paths of its file from where it runs, not from where the file lies.
    assert (here / "folders").read_text().splitlines()[-1] == str(out.resolve())


@pytest.mark.process
def test_one_target_of_several_environments_is_built_by_the_names_of_its_images(
    real: Cli, here: Path
) -> None:
    (here / "toolmatrix.toml").write_text(
        '[environments.a]\nrequest = ["gcc==12"]\n[environments."b.c"]\nrequest = ["gcc==12"]\n'
        'distro = "debian12"\n'
    )
    real("lock", "--distro", "debian12", "--target", "x86,arm", "--with", "base-image")
    assert real("render", "--output", "out").code == 0
    path = engine(here, "docker")
    assert real("build", "out", "--target", "arm", PATH=path).code == 0
    assert calls(here) == [
        f"docker buildx bake --file docker-bake.json {name}" for name in ("a-arm", "b_c-arm")
    ]
    refused(
        real("build", "out", "--target", "amd", PATH=path),
        3,
        "error[TM110]: no Dockerfile for this lock\n",
    )


BUILDKIT_ALONE = f"{NO_BUILDX}\n" + '[ "$1" = build ] && exit 1'


@pytest.mark.process
def test_a_docker_that_needs_buildx_and_lacks_it_is_a_missing_tool(
    real: Cli, here: Path, out: Path
) -> None:
    outcome = real("build", str(out), PATH=engine(here, "docker", BUILDKIT_ALONE))
    refused(outcome, 5, "error[TM500]: this docker needs its plugin buildx to build\n")
    assert calls(here) == []


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("docker"), reason="docker is not installed")
def test_an_engine_that_does_not_answer_is_a_missing_tool(real: Cli, here: Path, out: Path) -> None:
    """By the real client; one that lacks buildx is refused before it is asked."""
    host = f"unix://{here}/no.sock"
    outcome = real("build", str(out), PATH=os.environ["PATH"], DOCKER_HOST=host)
    assert (outcome.code, outcome.out) == (5, "")
    assert "error[TM500]: " in outcome.err


@pytest.mark.process
def test_a_builder_elsewhere_needs_no_engine_here(real: Cli, here: Path, out: Path) -> None:
    no_engine = 'if [ "$1" = version ]; then echo "Cannot connect" >&2; exit 1; fi'
    path = engine(here, "docker", no_engine)
    assert real("build", str(out), PATH=path).code == 0
    failing = f"{no_engine}\ncase $* in *Dockerfile*) exit 1 ;; esac"
    outcome = real("build", str(out), PATH=engine(here, "docker", failing))
    assert outcome.code == 5
    assert outcome.err.endswith(
        "error[TM500]: `docker` cannot connect to its engine\n"
        "  found: Cannot connect\n"
        "help: start it, or name another: `docker context use`, DOCKER_HOST\n"
    )


@pytest.mark.process
def test_a_failed_build_is_told_and_the_others_go_on(real: Cli, here: Path, out: Path) -> None:
    body = f"{NO_BUILDX}\ncase $* in *arm*) echo no such base; exit 3 ;; esac"
    outcome = real("build", "out", PATH=engine(here, "docker", body))
    assert outcome.code == 1
    told = [line for line in outcome.err.splitlines() if not line.startswith("building ")]
    assert told[0] == "no such base"
    assert told[1].startswith("failed out:arm: exit code 3 after ")
    assert told[2].startswith("built out:x86: in ")
    assert outcome.out.endswith("1 of 2 images built\n")
    assert out.is_dir()


LOG = """\
#5 [toolchain 4/9] RUN apt-get update
#5 DONE 13.4s
#11 [toolchain 5/9] RUN pip install onnxruntime==1.18.99
#11 0.546 ERROR: No matching distribution found for onnxruntime==1.18.99
#11 \x1b[31m0.551 colour\tand a tab\x1b[0m
#11 ERROR: executor failed running [/bin/sh -c pip install onnxruntime==1.18.99]: exit code: 1
"""


@pytest.fixture
def failing(here: Path) -> str:
    """A PATH with an engine that prints a log, and fails for arm."""
    (here / "printed").write_text(LOG)
    return engine(
        here,
        "docker",
        f"{NO_BUILDX}\ncase $* in *x86*) ;; *arm*) cat {here}/printed; exit 1 ;; esac",
        tools=["cat"],
    )


@pytest.mark.process
def test_a_build_that_fails_tells_its_step_its_log_and_what_is_known_of_it(
    real: Cli, out: Path, failing: str
) -> None:
    outcome = real("build", "out", PATH=failing)
    assert outcome.code == 1
    # Each second of a build may be another.
    text = re.sub(r"[0-9.]+ s\b", "N s", outcome.out)
    assert (
        text
        == """\
out:arm was not built: exit code 1 after N s
  step: [toolchain 5/9] RUN pip install onnxruntime==1.18.99
  log:  out/arm.log

error[TM130]: no file of this package fits the Python or the platform
  --> out/arm.log:4
    | ERROR: No matching distribution found for onnxruntime==1.18.99
    |   known from pip download under CPython 3.11.7, uv 0.13.9 sync ran
    = between: onnxruntime 1.18.99 and python
help: take a Python and a platform that it has wheels for, or a release that has
      wheels for these

read 6 lines: 1 known failure

FAIL  out:arm  linux/arm64  N s  out/arm.log
pass  out:x86  linux/amd64  N s  out/x86.log
1 of 2 images built
"""
    )
    # The log as it was printed, and what is shown of it without what a terminal would obey.
    assert (out / "arm.log").read_text() == LOG
    assert "#11 \\x1b[31m0.551 colour    and a tab\\x1b[0m\n" in outcome.err


@pytest.mark.process
def test_the_end_of_builds_is_a_document_and_a_suite(real: Cli, out: Path, failing: str) -> None:
    outcome = real("build", str(out), "--json", PATH=failing)
    document = outcome.json()
    validated(document, "builds")
    assert (outcome.code, document["summary"]) == (1, {"built": 1, "failed": 1})
    arm, x86 = document["builds"]
    assert [one["code"] for one in arm["findings"]] == ["TM130"]
    assert (x86["step"], x86["findings"], x86["exit_code"]) == ("", [], 0)
    written = real("build", "out", "--format", "junit", PATH=failing).out
    suite = ET.fromstring(written)  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed, passed = suite
    assert (failed.get("name"), len(failed), len(passed)) == ("out:arm", 1, 0)
    assert "[toolchain 5/9] RUN pip" in str(failed[0].get("message"))
    assert "TM130" in str(failed[0].text)


@pytest.mark.process
def test_builds_go_on_side_by_side_and_each_line_names_its_image(
    real: Cli, here: Path, out: Path
) -> None:
    # Each waits for the other: one at a time, neither would end.
    meet = f'case $* in *.Dockerfile*) ;; *) exit 0 ;; esac; cd "{here}"; touch "met-$$"'
    meet += "; until [ $(ls met-* | wc -l) = 2 ]; do sleep 0.05; done; echo met"
    path = engine(here, "buildah", meet, tools=("touch", "ls", "wc", "sleep"))
    outcome = real("build", str(out), "--jobs", "2", PATH=path)
    assert outcome.code == 0, outcome.err
    assert {"out:arm | met", "out:x86 | met"} <= set(outcome.err.splitlines())
    refused(real("build", "out", "--jobs", "0", PATH=path), 2, "error[TM901]: ")


@pytest.mark.process
def test_an_engine_that_starts_after_the_interrupt_is_ended() -> None:
    engines = Engines()
    engines.end()
    with subprocess.Popen(["sleep", "60"]) as late, engines.running(late):
        assert late.wait(timeout=30) == -signal.SIGTERM


# The thread that queues builds sleeps after each, so that the interrupt comes while it still does.
SLOW_QUEUE = """
import runpy, time
from concurrent.futures import ThreadPoolExecutor
submit = ThreadPoolExecutor.submit
ThreadPoolExecutor.submit = lambda *a: (submit(*a), time.sleep(20))[0]
runpy.run_module("toolmatrix", run_name="__main__")
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "program", [("-m", "toolmatrix"), ("-c", SLOW_QUEUE)], ids=["waiting", "queueing"]
)
def test_an_interrupt_ends_the_engines(
    here: Path, out: Path, cache: str, program: tuple[str, str]
) -> None:
    path = engine(here, "buildah", f'echo $$ >"{here}/started"; exec sleep 60', tools=("sleep",))
    started = subprocess.Popen(
        [sys.executable, *program, "build", str(out)],
        env={"PATH": path, "PYTHONPATH": ROOT, "XDG_CACHE_HOME": cache},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A group of its own, as a shell gives it one.
        start_new_session=True,
    )
    while not (here / "started").exists() or not (here / "started").read_text():
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    stdout, stderr = started.communicate(timeout=30)
    assert (started.returncode, stdout) == (130, b"")
    assert stderr.endswith(b"interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((here / "started").read_text()), 0)


@pytest.mark.process
def test_a_log_that_cannot_be_kept_is_one_error(real: Cli, here: Path, out: Path) -> None:
    (out / "arm.log").mkdir()
    outcome = real("build", "out", PATH=engine(here, "buildah"))
    refused(outcome, 2, "")
    assert "error[TM905]: cannot keep the log of a build\n" in outcome.err


@pytest.mark.process
def test_one_target_is_built_alone(real: Cli, here: Path, out: Path) -> None:
    real("build", "out", "--target", "x86", PATH=engine(here, "buildah"))
    assert len(calls(here)) == 1
    assert "out/x86.Dockerfile" in calls(here)[0]
    assert out.is_dir()


def refused(outcome: Outcome, code: int, error: str) -> None:
    """One error and nothing else."""
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(error or "building ")


def test_without_an_engine_it_says_what_to_install(real: Cli, here: Path, out: Path) -> None:
    outcome = real("build", "out", PATH=os.devnull)
    refused(outcome, 5, "error[TM500]: this machine cannot build images\n")
    assert "help: install docker" in outcome.err
    assert out.is_dir()
    assert here.is_dir()


@pytest.mark.process
def test_a_directory_without_a_lock_or_dockerfile_is_told(real: Cli, here: Path, out: Path) -> None:
    path = engine(here, "buildah")
    refused(real("build", ".", PATH=path), 2, "error[TM904]: there is no lock\n")
    for file in out.glob("*.Dockerfile"):
        file.unlink()
    refused(real("build", "out", PATH=path), 3, "error[TM110]: no Dockerfile for this lock\n")


@pytest.mark.process
def test_a_directory_that_is_none_is_told_before_an_engine_is_looked_for(
    real: Cli, here: Path
) -> None:
    for path in (os.devnull, engine(here, "docker", BUILDKIT_ALONE)):
        outcome = real("build", "nowhere", PATH=path)
        refused(outcome, 2, "error[TM904]: there is no lock\n  --> nowhere/toolmatrix.lock\n")
    assert not (here / "calls").exists()


# An engine that has the images whose names it was told, by an id that is the same until `again` is there.
KEEPS = f"""{NO_BUILDX}
case $* in
*Dockerfile*) case $* in *FAIL*) exit 1 ;; esac; touch "$5" ;;
images*) [ -e "$4" ] && cat id ;;
esac
exit 0"""


@pytest.fixture
def keeping(here: Path) -> str:
    """A PATH with an engine that keeps what it builds, all of them with the id in the file `id`."""
    (here / "id").write_text("sha256:1\n")
    return engine(here, "docker", KEEPS, tools=("cat", "touch"))


def built(here: Path) -> list[str]:
    """The images that were built by calls so far."""
    found = [line.split()[5] for line in calls(here) if "Dockerfile" in line]
    (here / "calls").write_text("")
    return found


@pytest.mark.process
def test_what_was_built_is_not_built_again_with_resume(
    real: Cli, here: Path, out: Path, keeping: str
) -> None:
    words = ("build", "out", "--resume", "builds.jsonl")
    first = real(*words, "--", "--label=a=FAIL", PATH=keeping)
    assert (first.code, built(here)) == (1, ["out:arm", "out:x86"])
    assert (here / "builds.jsonl").read_text() == ""
    assert real(*words, "--target", "arm", PATH=keeping).code == 0
    assert built(here) == ["out:arm"]
    second = real(*words, PATH=keeping)
    assert (second.code, built(here)) == (0, ["out:x86"])
    assert [line.split()[0] for line in second.out.splitlines()] == ["kept", "pass", "2"]
    assert "kept out:arm: an earlier run built it\n" in second.err
    document = real(*words, "--json", PATH=keeping).json()
    validated(document, "builds")
    assert [one["kept"] for one in document["builds"]] == [True, True]
    assert built(here) == []
    for line in (here / "builds.jsonl").read_text().splitlines():
        validated(json.loads(line), "builds")
    # Without the option nothing of it counts.
    assert real("build", "out", PATH=keeping).code == 0
    assert built(here) == ["out:arm", "out:x86"]
    assert out.is_dir()


@pytest.mark.process
@pytest.mark.parametrize("moved", ["Dockerfile", "check.sh", "image", "flags", "gone"])
def test_what_is_not_the_same_is_built_again(
    real: Cli, here: Path, out: Path, keeping: str, moved: str
) -> None:
    words = ["build", "out", "--resume", "builds.jsonl", "--target", "x86"]
    assert real(*words, PATH=keeping).code == 0
    if moved in ("Dockerfile", "check.sh"):
        path = out / f"x86.{moved}"
        path.write_text(path.read_text() + "# moved\n")
    elif moved == "image":
        (here / "id").write_text("sha256:2\n")
    elif moved == "gone":
        (here / "out:x86").unlink()
    else:
        words += ["--", "--no-cache"]
    built(here)
    again = real(*words, PATH=keeping)
    assert (again.code, built(here)) == (0, ["out:x86"]), again.err
    # By now it is what it is.
    assert real(*words, PATH=keeping).code == 0
    assert built(here) == []


@pytest.mark.process
def test_a_file_of_other_results_is_refused(real: Cli, here: Path, out: Path, keeping: str) -> None:
    (here / "builds.jsonl").write_text('{"run": "1"}\n')
    outcome = real("build", "out", "--resume", "builds.jsonl", PATH=keeping)
    refused(outcome, 2, "error[TM901]: not a file of results\n  --> builds.jsonl:1\n")
    assert built(here) == []
    assert out.is_dir()
