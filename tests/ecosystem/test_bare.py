"""The two commands of the README on a bare Debian 12, which has Python and neither pip nor a compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engine import bases, docker
from tests.engine.__main__ import folder

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
ASK, TEST = re.findall(r"^```sh\n(.+)\n```$", README, re.MULTILINE)[:2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LEFT = (".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long]


class Bare(NamedTuple):
    """A root file system, in which this checkout lies at /toolmatrix."""

    root: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """A command line in the checkout, by a user who has set nothing but where pip finds packages."""
        kept = (name for name in os.environ if name.startswith("PIP_") or name.endswith("_proxy"))
        # A folder of wheels is one of this machine.
        known = {name: os.environ[name] for name in kept if name != "PIP_FIND_LINKS"}
        return subprocess.run(
            ["chroot", self.root, "sh", "-c", f"cd /toolmatrix && {line}"],
            env={**known, "PATH": PATH, "HOME": "/root"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Bare]:
    """A fresh Debian 12 with `python3` and what it depends on."""
    if lacking := docker.missing("mmdebstrap"):
        docker.unable(f"a root file system needs {', '.join(lacking)}")
    made = Bare(tmp_path / "root")
    try:
        bases.unpacked(bases.Base("bookworm", "amd64"), folder(), made.root)
    except bases.BaseFailed as error:
        docker.unable(str(error))
    if os.path.exists("/etc/pip.conf"):
        shutil.copy("/etc/pip.conf", made.root / "etc")
    shutil.copytree(ROOT, made.root / "toolmatrix", ignore=shutil.ignore_patterns(*LEFT))
    ready = made.run("apt-get update -qq && apt-get install -y -qq --no-install-recommends python3")
    assert ready.returncode == 0, ready.stderr
    for absent in ("python3 -c 'import ensurepip'", "python3 -m pip", "command -v cc gcc make"):
        assert made.run(absent).returncode != 0, absent
    yield made
    # Nothing is mounted inside; a folder in which something is must not be removed.
    held = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    assert not [place for place in held if place.startswith(str(made.root))]
    shutil.rmtree(made.root)


def installed(ended: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """A run that found the packages it takes; without an index there is none."""
    if ended.returncode and "No matching distribution found" in ended.stderr:
        docker.unable(f"no package index is reached here:\n{ended.stderr[-1000:]}")
    return ended


def test_the_first_command_ends_with_an_answer(bare: Bare) -> None:
    first = installed(bare.run(ASK))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("tensorflow 2.6.5 ")
    assert first.stderr.startswith("installing into /toolmatrix/.venv, this once\n")
    again = bare.run(ASK)
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert again.stderr.startswith("hint: ")


@pytest.mark.skipif(
    bool(os.environ.get("CI")),
    reason="takes minutes that CI has spent on the same; `./tests/run --builds` does it",
)
def test_the_second_command_sets_up_and_tests(bare: Bare) -> None:
    ended = installed(bare.run(f"{TEST} tests/test_value.py"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.endswith("== all passed\n")
