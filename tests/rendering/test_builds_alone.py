"""Real images without a network, and without what they were built of once: the commands of docs/dockerfiles.md.

They take minutes and need what tests/rendering/test_builds.py needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import docker
from tests.engine.commands import ran
from tests.engine.docker import Engine
from tests.images import hostile
from toolmatrix.lockfile import lock_file

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]

NONE = ("--network=none", "--no-cache")
BASE = "local/debian:bookworm-amd64"
ASKED = "--target x86 --accelerator none --distro debian12"
RECIPE = """\
schema: toolmatrix.recipe/1
name: slow
about: a step that shall not run twice, and a tool that stays where it builds
needs: [gcc]
artifacts: [/opt/made]
carries: [/work/made]
sources:
  here: {title: a page, at: somewhere, read: 2026-11-20}
steps:
  - {name: tool, stage: configure, run: [touch /usr/local/bin/of-the-build], source: here}
  - {name: build, stage: build, run: [mkdir -p /work/made, "date +%s%N > /work/made/when"], source: here}
  - {name: apart, stage: package, run: [test ! -e /usr/local/bin/of-the-build], source: here}
  - {name: install, stage: package, run: [cp -r /work/made /opt/made], source: here}
"""


FETCHES = """\
schema: toolmatrix.recipe/1
name: fetches
about: Python packages, and a file from the network
artifacts: [/opt/venv, /opt/tool]
sources:
  here: {{title: a page, at: somewhere, read: 2026-11-20}}
steps:
  - {{name: tool, stage: fetch, downloads: [{{url: "{url}/tool", to: /opt/tool}}], source: here}}
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with docker.needed(*docker.PACKAGES) as found:
        yield found


@pytest.fixture
def images(engine: Engine) -> Iterator[list[str]]:
    """Names of images, which are removed at the end."""
    found: list[str] = []
    yield found
    if found:
        engine.run("rmi", "--force", *found)


def test_a_build_without_a_network_has_all_that_was_fetched(
    engine: Engine, tmp_path: Path, images: list[str]
) -> None:
    ran(engine, tmp_path, "python -m tests.engine bookworm amd64")
    with hostile.running() as server:
        server.answers["/tool"] = hostile.Reply(body=b"a tool")
        (tmp_path / "fetches.yaml").write_text(FETCHES.format(url=server.url))
        recipe = f"--recipe ./fetches.yaml {ASKED}"
        words = f"numpy==2.0.2 scipy==1.14.1 python --from wheel {recipe}"
        ran(engine, tmp_path, f"toolmatrix lock {words} --packages --output here.lock")
        base = "--base debian:12=local/packages:x86"
        render = f"toolmatrix render --lock here.lock --dialect classic --fetched fetched {base}"
        ran(engine, tmp_path, f"{render} --recipe ./fetches.yaml --output out")
        said = ran(engine, tmp_path, "toolmatrix fetch out")
    assert "\nout/fetched: 3 files, " in said
    packages = re.search(r"^not fetched, x86: apt: (.*); `--base`", said, re.MULTILINE)
    assert packages is not None
    (tmp_path / "packages.Dockerfile").write_text(
        f"FROM {BASE}\nRUN apt-get update && apt-get install -y --no-install-recommends {packages[1]}\n"
    )
    images += ["local/packages:x86", "local/alone:x86"]
    engine.done(
        "build", "--tag", images[0], "--file", f"{tmp_path}/packages.Dockerfile", str(tmp_path)
    )
    out = str(tmp_path / "out")
    engine.done("build", *NONE, "--tag", images[1], "--file", f"{out}/x86.Dockerfile", out)
    script = "import numpy, scipy.linalg; print(scipy.linalg.det(numpy.eye(3) * 2))"
    run = ("run", "--rm", "--network=none", images[1])
    assert engine.done(*run, "python", "-c", script) == "8.0\n"
    assert engine.done(*run, "cat", "/opt/tool") == "a tool"


def test_a_later_matrix_does_not_run_the_steps_of_a_recipe_again(
    engine: Engine, tmp_path: Path, images: list[str]
) -> None:
    ran(engine, tmp_path, "python -m tests.engine bookworm amd64")
    (tmp_path / "slow.yaml").write_text(RECIPE)
    render = f"toolmatrix render --dialect classic --base debian:12={BASE} --recipe ./slow.yaml"
    ran(engine, tmp_path, f"{render} gcc==12 {ASKED} --output one")
    text = (tmp_path / "one/toolmatrix.lock").read_text().rpartition("# seal")[0]
    later = re.sub(r'(?m)^(digest = "sha256:).{4}', r"\g<1>0000", text)
    assert later != text
    (tmp_path / "later.lock").write_text(lock_file.sealed(later))
    ran(engine, tmp_path, f"{render} --lock later.lock --output two")
    made = []
    for name in ("one", "two"):
        images.append(f"local/slow:{name}")
        folder = str(tmp_path / name)
        engine.done("build", "--tag", images[-1], "--file", f"{folder}/x86.Dockerfile", folder)
        made.append(engine.done("run", "--rm", images[-1], "cat", "/opt/made/when"))
        lock = engine.done(
            "run", "--rm", images[-1], "cat", "/usr/share/toolmatrix/toolmatrix.lock"
        )
        assert lock == (tmp_path / name / "toolmatrix.lock").read_text()
    assert made[0] == made[1]
