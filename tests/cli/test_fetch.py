"""`toolmatrix fetch`: what rendered files would fetch lies in a folder beside them, each file held to its SHA-256."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import matrix
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.cli.test_packages import FRIENDLY, LOGS, NUMPY, ONNX, PROTOBUF, REQUEST
from tests.harvest import shop
from tests.images import hostile
from tests.images.hostile import Reply, Server
from toolmatrix.api import driver_wheels
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.commands.fetch import fetch
from toolmatrix.compilation.drivers import installed
from toolmatrix.errors import IndexFailed
from toolmatrix.lockfile import lock_file

pytestmark = pytest.mark.process

TOOL = b"a tool that is fetched\n" * 4000
SUM = hashlib.sha256(TOOL).hexdigest()
RECIPE = """\
schema: toolmatrix.recipe/1
name: tool
about: a tool from the network
sources:
  here: {{title: a page, at: somewhere, read: 2026-11-20}}
steps:
  - name: tool
    stage: fetch
    downloads:
      - {{url: "{url}/pub/tool-1.0", to: /usr/local/bin/tool, mode: "0755", of: gcc, sha256: {{"12": {sum}}}}}
      - {{url: "{url}/pub/notes?raw=1", to: /usr/share/notes}}
    source: here
"""
REQUIRED = "arm.requirements.txt"
TOOLS = ("gcc==12", "--distro", "debian12", "--target", "x86", "--accelerator", "none")


@pytest.fixture
def server() -> Iterator[Server]:
    """The index of this machine's user, and where downloads lie."""
    with hostile.running() as found:
        for one in (ONNX, NUMPY, PROTOBUF, LOGS[0]):
            shop.stock(found, one.name.partition("-")[0], [one])
        shop.stock(found, "humanfriendly", FRIENDLY)
        yield found


@pytest.fixture
def run(real: Cli, server: Server, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A run that knows that index alone."""
    own = {"UV_DEFAULT_INDEX": f"{server.url}/simple", "UV_NO_CACHE": "1"}
    for name, text in own.items():
        monkeypatch.setenv(name, text)
    return lambda *words, **env: real(*words, **{**own, "PATH": os.environ["PATH"], **env})


@pytest.fixture
def rendered(run: Cli, server: Server, here: Path) -> Path:
    """A directory whose image downloads two files, one of them with a checksum."""
    server.answers["/pub/tool-1.0"] = Reply(body=TOOL)
    server.answers["/pub/notes"] = Reply(body=b"notes")
    (here / "tool.yaml").write_text(RECIPE.format(url=server.url, sum=SUM))
    words = ("--recipe", "./tool.yaml", "--output", "out", "--fetched", "fetched")
    assert run("render", *TOOLS, *words).code == 0
    return here / "out"


def test_downloads_lie_by_host_and_path_and_the_files_take_them(
    run: Cli,
    server: Server,
    rendered: Path,
) -> None:
    outcome = run("fetch", "out")
    assert (outcome.code, outcome.err) == (0, "")
    place = f"fetched/{server.host.replace(':', '_')}/pub"
    assert outcome.out == (
        f"fetched out/{place}/tool-1.0\nfetched out/{place}/notes_raw_1\n"
        f"no checksum: out/{place}/notes_raw_1\n"
        f"out/fetched: 2 files, {len(TOOL) + 5} bytes, 2 of them new\n"
        "not fetched, x86: apt: gcc-12 g++-12 make; `--base` names an image that has them\n"
    )
    assert (rendered / place / "tool-1.0").read_bytes() == TOOL
    text = (rendered / "x86.Dockerfile").read_text()
    assert f"\nCOPY --link --chmod=0755 {place}/tool-1.0 /usr/local/bin/tool\n" in text
    assert f"\nprintf '%s  %s\\n' {SUM} /usr/local/bin/tool | sha256sum -c -\n" in text
    assert not re.search("https?://", text)
    assert "!fetched\n" in (rendered / ".dockerignore").read_text()


def test_what_is_there_is_not_asked_for_again(run: Cli, server: Server, rendered: Path) -> None:
    run("fetch", "out")
    server.asked.clear()
    document = run("fetch", "out", "--json").json()
    validated(document, "fetched")
    assert [(one["there"], one["pinned"]) for one in document["files"]] == [
        (True, True),
        (True, False),
    ]
    assert server.asked == []
    # A file that was changed is fetched anew.
    held = next(rendered.rglob("tool-1.0"))
    held.write_bytes(b"another")
    assert run("fetch", "out").code == 0
    assert held.read_bytes() == TOOL


def test_what_was_interrupted_goes_on(run: Cli, server: Server, rendered: Path) -> None:
    have = len(TOOL) // 2
    folder = rendered / "fetched" / server.host.replace(":", "_") / "pub"
    folder.mkdir(parents=True)
    (folder / "tool-1.0.part").write_bytes(TOOL[:have])
    said = {"Content-Range": f"bytes {have}-{len(TOOL) - 1}/{len(TOOL)}"}
    server.answers["/pub/tool-1.0"] = Reply(status=206, headers=said, body=TOOL[have:])
    assert run("fetch", "out").code == 0
    assert (folder / "tool-1.0").read_bytes() == TOOL
    assert [path.name for path in folder.iterdir() if path.suffix == ".part"] == []


def test_another_file_than_the_one_wanted_is_refused(
    run: Cli, server: Server, rendered: Path
) -> None:
    server.answers["/pub/tool-1.0"] = Reply(body=b"swapped")
    outcome = run("fetch", "out")
    assert outcome.code == 5
    found = hashlib.sha256(b"swapped").hexdigest()
    assert outcome.err.startswith("error[TM512]: a fetched file differs from the expected one\n")
    assert f"  expected: sha256 {SUM}\n  found: {found}\n" in outcome.err
    assert not [*rendered.rglob("tool-1.0*")]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (Reply(status=404), "status 404"),
        (Reply(raw=(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",)), ""),
    ],
)
def test_what_cannot_be_had_is_told(
    run: Cli, server: Server, rendered: Path, answer: Reply, found: str
) -> None:
    server.answers["/pub/notes"] = answer
    outcome = run("fetch", "out")
    assert outcome.code == 5
    assert outcome.err.startswith("error[TM512]: a file cannot be fetched\n  --> notes\n")
    assert found in outcome.err
    assert not (next(rendered.rglob("pub")) / "notes_raw_1").exists()


def test_wheels_of_a_lock_are_all_that_pip_needs(
    run: Cli, server: Server, here: Path, tmp_path: Path
) -> None:
    run("lock", *REQUEST, "--packages")
    assert run("render", "--output", "out", "--fetched", "away").code == 0
    assert run("fetch", "out").code == 0
    closure = lock_file.read("out/toolmatrix.lock").targets["arm"].closure
    assert closure is not None
    wheels = here / "out/away/wheels/arm"
    held = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in wheels.iterdir()}
    assert held == {
        name: one for part in closure.packages.values() for name, one in part.files.items()
    }
    assert {NUMPY.name, ONNX.name} <= {*held}
    server.asked.clear()
    text = (here / "out/arm.Dockerfile").read_text()
    line = re.search(r"^python -m (pip install .*)$", text, re.MULTILINE)
    assert line is not None
    inside = dict.fromkeys(line[1].split())
    inside |= {
        f"/tmp/{name}": str(path)  # noqa: S108 - inside the image
        for name, path in {"wheels": wheels, REQUIRED: here / "out" / REQUIRED}.items()
    }
    words = [inside[word] or word for word in line[1].split()]
    platform = (
        "--platform=manylinux_2_28_aarch64",
        "--platform=manylinux_2_17_aarch64",
        "--platform=manylinux2014_aarch64",
        "--python-version=3.12",
    )
    ended = subprocess.run(
        [sys.executable, "-m", *words, f"--target={tmp_path / 'into'}", *platform],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "into" / "onnxruntime-1.18.1.dist-info").is_dir()
    assert server.asked == []


def test_a_lock_that_names_no_folder_gets_one_and_a_hint(run: Cli) -> None:
    run("lock", *REQUEST, "--packages")
    run("render", "--output", "out")
    outcome = run("fetch", "out")
    assert outcome.out.endswith(
        "hint: `toolmatrix render --output out --fetched fetched` uses them\n"
    )
    assert run("render", "--output", "out", "--fetched", "fetched").code == 0
    assert "hint" not in run("fetch", "out").out


@pytest.mark.parametrize("folder", ["/srv", "../away", ".", "a/../b", "a//b", "a b", "$HOME"])
def test_a_folder_elsewhere_is_refused(run: Cli, folder: str) -> None:
    outcome = run("render", *TOOLS, "--output", "out", "--fetched", folder)
    assert outcome.code == 2
    assert outcome.err.startswith("error[TM602]: ")


def test_the_driver_of_a_release_is_fetched_by_hash_and_found(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = matrix.index()
    facts = dict(driver_wheels.files(index, "cuda", "13.0.1", "x86_64"))
    assert [name.split("-")[0] for name in facts] == [
        *("nvidia_cuda_nvcc", "nvidia_cuda_crt", "nvidia_nvvm", "nvidia_cuda_runtime")
    ]
    # The release that these wheels make takes minutes to fetch: the smallest one that can be asked stands for it.
    program = zipfile.ZipInfo("nvidia/cu13/bin/nvcc")
    program.external_attr = 0o100755 << 16
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(
            program, "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n"
        )
    wheel = shop.File(next(iter(facts)), held.getvalue())
    shop.stock(server, "nvidia-cuda-nvcc", [wheel])
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{server.url}/simple")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    opened = OpenMatrix(index=index)
    with pytest.raises(IndexFailed, match="a fetched file differs"):
        fetch("cuda==13.0.1", matrix=opened)
    assert not list(tmp_path.rglob("nvcc"))
    monkeypatch.setattr(driver_wheels, "files", lambda *_: iter([(wheel.name, wheel.sha256)]))
    found = fetch("cuda==13.0.1", matrix=opened)
    assert found.folder == f"{tmp_path}/toolmatrix/drivers/cuda-13.0.1"
    path = f"{found.folder}/nvidia/cu13/bin/nvcc"
    held_here = installed.drivers("nvcc", {"PATH": os.environ["PATH"]}, f"{tmp_path}/toolmatrix")
    assert {one.program: one.version for one in held_here}[path] == "13.0.88"


def test_a_driver_without_wheels_is_refused(run: Cli) -> None:
    outcome = run("fetch", "cuda==12.4.1")
    assert outcome.code == 3
    assert "no wheels contain the driver of cuda 12.4.1" in outcome.err
