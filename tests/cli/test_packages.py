"""`lock --packages`, and what is rendered of it: real uv and pip, and an index on loopback with wheels made here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.harvest import shop
from tests.images import hostile
from tests.images.hostile import Server
from toolmatrix.api import packages
from toolmatrix.api.locks import Locked
from toolmatrix.commands.lock import lock
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import LockedClosure

pytestmark = pytest.mark.process

REQUEST = ("onnxruntime==1.18.1", "--from", "wheel", "--target", "arm")
NEEDS = ["coloredlogs", "numpy>=1.21", "protobuf", "absent; python_version < '3.8'"]
ARM, X86 = (
    f"cp312-cp312-manylinux_2_27_{one}.manylinux_2_28_{one}" for one in ("aarch64", "x86_64")
)


def made(name: str, version: str, tags: str, *requires: str) -> shop.File:
    """A wheel that pip installs."""
    return shop.installable(name, version, {}, requires, tags)


# What the request of ARM takes of them, and what nothing there could use.
ONNX = made("onnxruntime", "1.18.1", ARM, *NEEDS)
NUMPY = made("numpy", "1.26.4", "cp312-cp312-manylinux_2_17_aarch64")
PROTOBUF = made("protobuf", "5.27.5", "cp38-abi3-manylinux2014_aarch64")
SWAPPED = made("protobuf", "5.27.5", "cp38-abi3-manylinux2014_aarch64", "coloredlogs")
LOGS = [made("coloredlogs", one, "py3-none-any", "humanfriendly") for one in ("15.0", "15.1")]
FRIENDLY = [
    made("humanfriendly", "10.0", one)
    for one in ("py3-none-any", "cp312-cp312-manylinux_2_17_aarch64")
]
OTHERS = [
    made("onnxruntime", "1.18.1", X86, *NEEDS),
    made("onnxruntime", "1.18.1", ARM.replace("312", "311"), *NEEDS),
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that is the index of this machine's user."""
    with hostile.running() as found:
        shop.stock(found, "onnxruntime", [ONNX, *OTHERS])
        shop.stock(found, "numpy", [NUMPY])
        shop.stock(found, "protobuf", [PROTOBUF])
        shop.stock(found, "coloredlogs", LOGS[:1])
        shop.stock(found, "humanfriendly", FRIENDLY)
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{found.url}/simple")
        monkeypatch.setenv("UV_NO_CACHE", "1")
        yield found


@pytest.fixture
def run(real: Cli, server: Server) -> Cli:
    """A run whose uv asks that server alone, and keeps nothing of what it heard."""
    # On a machine with other work a line of progress comes after ten seconds.
    quiet = {"TOOLMATRIX_NO_PROGRESS": "1"}
    own = {"UV_DEFAULT_INDEX": f"{server.url}/simple", "UV_NO_CACHE": "1", **quiet}
    return lambda *words, **env: real(*words, **{**own, "PATH": os.environ["PATH"], **env})


def closure(path: str = "toolmatrix.lock", target: str = "arm") -> LockedClosure:
    """All packages of a target of a lock."""
    found = lock_file.read(path).targets[target].closure
    assert found
    return found


def test_every_package_stands_in_the_lock_with_the_files_that_fit(run: Cli) -> None:
    outcome = run("lock", *REQUEST, "--packages")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "wrote toolmatrix.lock: 1 target, 6 components, 5 packages\n"
    held = closure()
    assert (held.asked.python, held.asked.platform) == ("3.12", "aarch64-manylinux_2_39")
    assert held.asked.requirements == (
        *("numpy==1.26.4", "onnxruntime==1.18.1", "protobuf==5.27.5"),
    )
    assert {name: (one.version, dict(one.files)) for name, one in held.packages.items()} == {
        "coloredlogs": ("15.0", {LOGS[0].name: LOGS[0].sha256}),
        "humanfriendly": ("10.0", {one.name: one.sha256 for one in FRIENDLY}),
        "numpy": ("1.26.4", {NUMPY.name: NUMPY.sha256}),
        "onnxruntime": ("1.18.1", {ONNX.name: ONNX.sha256}),
        "protobuf": ("5.27.5", {PROTOBUF.name: PROTOBUF.sha256}),
    }


def test_the_same_index_gives_the_same_bytes(run: Cli, here: Path) -> None:
    run("lock", *REQUEST, "--packages")
    before = (here / "toolmatrix.lock").read_bytes()
    assert run("lock", "--packages").out.startswith("unchanged toolmatrix.lock")
    made = lock("onnxruntime==1.18.1", from_="wheel", target="arm", packages=True)
    assert isinstance(made, Locked)
    assert made.text().encode() == before
    document = run("lock", "--packages", "--json").json()
    validated(document, "locked")
    assert document["environments"]["default"]["targets"]["arm"]["packages"] == 5


def test_a_check_asks_nobody_unless_it_is_told_to(run: Cli, server: Server) -> None:
    run("lock", *REQUEST, "--packages")
    server.asked.clear()
    outcome = run("lock", "--check")
    said = "toolmatrix.lock is up to date: 1 target, 6 components, 5 packages\n"
    assert (outcome.code, outcome.out, server.asked) == (0, said, [])
    # What came out since is no reason to call it stale.
    shop.stock(server, "coloredlogs", LOGS)
    assert (outcome := run("lock", "--check", "--packages")).out == said
    assert (outcome.code, len(server.asked) > 0) == (0, True)


def test_a_file_that_was_swapped_at_the_index_is_told_by_name(run: Cli, server: Server) -> None:
    run("lock", *REQUEST, "--packages")
    shop.stock(server, "protobuf", [SWAPPED])
    outcome = run("lock", "--check", "--packages")
    assert outcome.code == 1
    before, after = (f"5.27.5 {one.name} sha256:{one.sha256}" for one in (PROTOBUF, SWAPPED))
    assert f"~ protobuf package  {before} -> {after}\n" in outcome.out


def test_what_is_not_upgraded_stays(run: Cli, server: Server) -> None:
    run("lock", *REQUEST, "--packages")
    shop.stock(server, "coloredlogs", LOGS)
    assert run("lock", "--upgrade", "numpy", "--packages").code == 0
    assert closure().packages["coloredlogs"].version == "15.0"
    assert run("lock", "--packages").code == 0
    assert closure().packages["coloredlogs"].version == "15.1"


def test_a_lock_written_anew_keeps_the_packages_of_the_same_answer(
    run: Cli, server: Server
) -> None:
    run("lock", *REQUEST, "--packages")
    held = closure()
    server.asked.clear()
    assert run("lock", *REQUEST).out == (
        "unchanged toolmatrix.lock: 1 target, 6 components, 5 packages\n"
    )
    assert (closure(), server.asked) == (held, [])
    outcome = run("lock", *REQUEST, "--with", "numpy==1.26.3")
    assert outcome.out == "wrote toolmatrix.lock: 1 target, 6 components\n"
    assert outcome.err == (
        "the packages of arm belong to another answer and are left out: "
        "`toolmatrix lock --packages` resolves them again\n"
    )
    assert lock_file.read("toolmatrix.lock").targets["arm"].closure is None


def test_locks_are_compared_package_by_package(run: Cli, server: Server) -> None:
    run("lock", *REQUEST, "--packages", "--lock", "old.lock")
    shop.stock(server, "coloredlogs", LOGS)
    run("lock", *REQUEST, "--packages", "--lock", "new.lock")
    run("lock", *REQUEST, "--lock", "bare.lock")
    assert run("diff", "old.lock", "new.lock").out == (
        "~ coloredlogs package  15.0 -> 15.1\n\n0 added, 1 changed, 0 removed, 7 the same\n"
    )
    assert run("diff", "bare.lock", "new.lock").out == (
        "+ packages  5 with their files\n\n1 added, 0 changed, 0 removed, 7 the same\n"
    )


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (
            [shop.File("humanfriendly-10.0.tar.gz", b"")],
            "error[TM605]: no wheel of humanfriendly==10.0 is on the index for Python 3.12 on aarch64-manylinux_2_39\n",
        ),
        (
            [made("humanfriendly", "10.0", "py3-none-any", "numpy>=2")],
            "error[TM605]: the Python packages of the answer conflict\n",
        ),
        (
            [
                shop.installable("humanfriendly", "10.0", {})._replace(
                    said={"hashes": {"sha512": "ab" * 64}}
                )
            ],
            "error[TM605]: the index has no SHA-256 of humanfriendly\n",
        ),
    ],
)
def test_packages_that_cannot_be_locked_are_named(
    run: Cli, server: Server, here: Path, files: list[shop.File], error: str
) -> None:
    shop.stock(server, "humanfriendly", files)
    outcome = run("lock", *REQUEST, "--packages")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(error)
    assert "humanfriendly" in outcome.err
    assert "nothing was written\n" in outcome.err
    assert os.listdir(here) == []


@pytest.mark.long
def test_without_uv_or_an_index_nothing_is_written(
    run: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run("lock", *REQUEST, "--packages", UV_DEFAULT_INDEX="http://localhost:1/simple")
    assert (outcome.code, outcome.out) == (5, "")
    assert outcome.err.startswith("error[TM500]: uv failed\n")
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    outcome = run("lock", *REQUEST, "--packages")
    assert outcome.code == 5
    assert outcome.err == (
        "error[TM500]: uv is needed to check answers with a resolver\n"
        "  expected: `uv` on PATH\n"
        "help: `pip install uv`, or leave `--packages` out\n"
    )
    assert os.listdir(here) == []


def test_what_nothing_brings_into_an_image_yet_is_pinned_as_well() -> None:
    made = lock("vllm", from_="wheel", target="x86")
    assert isinstance(made, Locked)
    held = made.lock.targets["x86"]
    (asked,) = dict(packages.questions(made.index, made.lock)).values()
    assert held.variants["vllm"].requirements[0] in asked.requirements
    flashinfer = held.components["flashinfer-python"].version
    assert f"flashinfer-python=={flashinfer}" in asked.requirements
    # Neither the base nor what comes with a build is a package of the index.
    assert not {one.partition("==")[0] for one in asked.requirements} & {"python", "cuda", "driver"}


# What is rendered of it


def pip(server: Server, path: str) -> subprocess.CompletedProcess[str]:
    """What pip says to a file of requirements, as it would be installed on ARM."""
    machine = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
    return subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--require-hashes", "--no-deps"),
            *("--python-version", "3.12", "--implementation", "cp", "--only-binary", ":all:"),
            *(word for one in machine for word in ("--platform", f"{one}_aarch64")),
            *(
                "--target",
                "unused",
                "--ignore-installed",
                "--no-cache-dir",
                "--index-url",
                f"{server.url}/simple",
            ),
            *("--requirement", path),
        ],
        # Nothing of this machine's own settings.
        env={"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )


def test_pip_takes_the_requirements_and_no_other_file(run: Cli, server: Server) -> None:
    run("lock", *REQUEST, "--packages")
    outcome = run("render", "--format", "requirements", "--output", "out")
    assert outcome.code == 0, outcome.err
    assert sorted(os.listdir("out")) == ["arm.requirements.txt", "toolmatrix.lock"]
    done = pip(server, "out/arm.requirements.txt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        "Would install coloredlogs-15.0 humanfriendly-10.0 numpy-1.26.4 onnxruntime-1.18.1 protobuf-5.27.5"
    )
    shop.stock(server, "protobuf", [SWAPPED])
    done = pip(server, "out/arm.requirements.txt")
    assert done.returncode == 1
    assert f"Expected sha256 {PROTOBUF.sha256}" in done.stderr
    assert blamed(run, done.stderr) == ["protobuf==5.27.5"]


def test_a_pin_that_was_changed_ends_the_build_by_name(
    run: Cli, server: Server, here: Path
) -> None:
    run("lock", *REQUEST, "--packages")
    run("render", "--output", "out", "--format", "requirements")
    path = here / "out/arm.requirements.txt"
    path.write_text(path.read_text().replace(PROTOBUF.sha256, "0" * 64))
    done = pip(server, str(path))
    assert done.returncode == 1
    assert f"Got        {PROTOBUF.sha256}" in done.stderr
    assert blamed(run, done.stderr) == ["protobuf==5.27.5"]
    # Neither is the file taken for what was rendered, nor a lock that says so for a lock.
    assert run("render", "--check", "--output", "out").code == 1
    held = here / "out/toolmatrix.lock"
    held.write_text(held.read_text().replace(PROTOBUF.sha256, "0" * 64))
    assert run("render", "--output", "out").err.startswith("error[TM904]: ")


def blamed(run: Cli, log: str) -> list[str]:
    """The packages that `diagnose` names of a log of pip, as files that are not what was named."""
    found = run("diagnose", "-", "--json", piped=log).json()["findings"]
    assert {one["code"] for one in found} == {"TM540"}
    return [one["between"][0]["component"] for one in found]


@pytest.mark.parametrize("dialect", ["modern", "classic"])
def test_an_image_installs_these_files_alone(run: Cli, here: Path, dialect: str) -> None:
    run("lock", *REQUEST, "--packages")
    assert run("render", "--output", "out", "--dialect", dialect).code == 0
    text = (here / "out/arm.Dockerfile").read_text()
    assert "--mount=type=bind,source=arm.requirements.txt,target=/tmp/arm.requirements.txt" in text
    installing = [line for line in text.splitlines() if "pip install" in line]
    assert [line.strip().removesuffix("; \\") for line in installing] == [
        "python -m pip install --require-hashes --no-deps --requirement /tmp/arm.requirements.txt"
    ]
    assert "!arm.requirements.txt\n" in (here / "out/.dockerignore").read_text()
    assert "\narm.requirements.txt /usr/share/" in (here / "out/arm.def").read_text()


def test_sources_are_built_with_what_the_lock_names_and_leave_no_compiler(
    run: Cli, server: Server, here: Path
) -> None:
    source = shop.source("humanfriendly", "10.0")
    tools = [made(one, "9.9", "py3-none-any") for one in ("setuptools", "wheel")]
    for one in (source, *tools):
        shop.stock(server, one.name.split("-")[0], [one])
    outcome = run("lock", *REQUEST, "--packages")
    assert outcome.out.endswith(", 5 packages, 1 of them from source archives (humanfriendly)\n")
    assert run("render", "--output", "out", "--dialect", "classic").code == 0
    text = (here / "out/arm.Dockerfile").read_text()
    lines = [line.strip().removesuffix("; \\") for line in text.splitlines()]
    named = " ".join(f"'{one.name.split('-')[0]}==9.9 --hash=sha256:{one.sha256}'" for one in tools)
    assert [line for line in lines if "pip install" in line] == [
        f"printf '%s\\n' {named} | python -m pip install --require-hashes --no-deps --requirement /dev/stdin",
        "python -m pip install --require-hashes --no-deps --no-build-isolation --requirement /tmp/arm.requirements.txt",
    ]
    assert ["g++" in line for line in lines if "apt-get install" in line] == [True, False]
    wanted = (here / "out/arm.requirements.txt").read_text()
    assert "--only-binary :all:\n--no-binary humanfriendly\n" in wanted
    assert f"humanfriendly==10.0 \\\n    --hash=sha256:{source.sha256}\n" in wanted


def test_strict_wants_the_packages_of_a_wheel_image_in_the_lock(run: Cli, here: Path) -> None:
    pinned = ("--snapshot", "2026-11-20", "--syntax-line", "off")
    base = (*pinned, "--base", f"ubuntu:24.04=ubuntu:24.04@sha256:{'0' * 64}")
    run("lock", *REQUEST)
    outcome = run("render", "--output", "out", *base, "--strict")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        "error[TM603]: some inputs are not pinned\n"
        "  expected: images by digest, packages of a snapshot, files and Python packages by checksum, git by commit\n"
        "  found: arm: pip install onnxruntime==1.18.1 numpy==1.26.4 protobuf==5.27.5\n"
        "help: `toolmatrix lock --packages` pins the Python packages of an answer\n"
    )
    assert not (here / "out").exists()
    run("lock", "--packages")
    assert run("render", "--output", "out", *base, "--strict").code == 0


def test_a_directory_rendered_anew_from_its_request_keeps_them(run: Cli, server: Server) -> None:
    run("lock", *REQUEST, "--packages")
    run("render", "--output", "out")
    held = closure("out/toolmatrix.lock")
    server.asked.clear()
    assert run("render", *REQUEST, "--output", "out").code == 0
    assert (closure("out/toolmatrix.lock"), server.asked) == (held, [])


def test_packages_that_are_the_same_are_the_same_file(run: Cli, here: Path) -> None:
    """What a build caches by does not move with the lock."""
    run("lock", *REQUEST, "--packages")
    run("render", "--output", "out")
    before = (here / "out/arm.requirements.txt").read_bytes()
    text = (here / "toolmatrix.lock").read_text().rpartition("# seal")[0]
    moved = text.replace("2026-", "2027-")
    (here / "toolmatrix.lock").write_text(lock_file.sealed(moved))
    outcome = run("render", "--lock", "toolmatrix.lock", "--output", "new")
    assert outcome.code == 0
    assert (here / "new/arm.requirements.txt").read_bytes() == before
    assert (here / "new/arm.Dockerfile").read_bytes() != (here / "out/arm.Dockerfile").read_bytes()
