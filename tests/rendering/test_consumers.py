"""The formats around the Dockerfiles in the hands of those that they are for: uv, Bazel, GitLab's runner and others.

uv comes with the extra `test`, libraries with the extra `consumers`, and programs of Node with `./tests/run --builds`.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from tests.engine import bases, docker
from tests.engine.__main__ import folder
from tests.harvest import shop
from tests.images import hostile as servers
from tests.images.hostile import Reply, Server
from tests.rendering import hostile
from tests.rendering.jobs import LOCKS, job, lock
from toolmatrix import toml
from toolmatrix.errors import LockError
from toolmatrix.lockfile.model import Backed, LockedComponent, LockedVariant
from toolmatrix.rendering import formats
from toolmatrix.rendering.model import ImagePlan, Job

BESIDE = Path(sys.executable).parent
NODE = BESIDE.parent / "node/node_modules/.bin"
BASE = ("base-image", "distro")
SERIES = ".".join(platform.python_version_tuple()[:2])
HERE = {"x86_64": "x86", "aarch64": "arm"}.get(platform.machine(), "")


def missing(why: str) -> NoReturn:
    """Skip a test whose tool is not installed; it fails in CI."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def library(name: str) -> Any:
    """A library of the extra `consumers`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"needs {name}: pip install '.[consumers]'")


def node(name: str, package: str) -> str:
    """A program that npm installed, or that is on PATH."""
    path = shutil.which(name, path=NODE) or shutil.which(name)
    return path or missing(f"needs {name}: npm install {package}, as `./tests/run --builds` does")


def ran(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A program that ends well; Node is that of this environment."""
    told = subprocess.run(
        words,
        cwd=cwd,
        env={"HOME": str(cwd), "PATH": f"{BESIDE}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return told


def written(form: str, held: Job, folder: Path) -> list[Path]:
    """The files of a format below a folder."""
    found = []
    for path, text in formats.files(held, [form]).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        found.append(place)
    return found


def changed(held: Job, **fields: Any) -> Job:
    """A job of one image with other fields of its answer, and of itself where they are not its answer's."""
    (image,) = held.images
    own = {name: fields.pop(name) for name in tuple(fields) if name in image._fields}
    return held.replace(images=(image.replace(locked=image.locked.replace(**fields), **own),))


def component(version: str, **fields: Any) -> LockedComponent:
    return LockedComponent(evidence="stated", version=version, **fields)


# uv


@pytest.fixture
def server() -> Iterator[Server]:
    """An index with NumPy and a build of torch, and a channel with another build of the same release."""
    with servers.running() as found:
        tags = f"cp{SERIES.replace('.', '')}-none-any"
        shop.stock(found, "numpy", [shop.installable("numpy", "1.26.4", {})])
        shop.stock(found, "filelock", [shop.installable("filelock", "3.1", {})])
        plain = shop.installable("torch", "2.7.1", {}, ["filelock"])
        built = shop.installable("torch", "2.7.1+cu126", {}, ["filelock"], tags.replace("cp", "py"))
        shop.stock(found, "torch", [plain])
        found.answers["/cu126/torch/"] = Reply(
            headers={"Content-Type": shop.JSON}, body=shop.page("torch", [built])
        )
        found.answers[f"/files/{built.name}"] = lambda asked: shop.honest(asked, built.data)
        yield found


def installing(url: str, target: str, *, accelerator: str = "cuda") -> Job:
    """A job that installs NumPy of the index, and torch of a channel."""
    held = job(lock("debian"), targets=(target,))
    build = LockedVariant(
        build="2.7.1+cu126@pytorch/x86_64",
        install=("torch==2.7.1", "--index-url", f"{url}/cu126"),
        evidence="stated",
    )
    python = {**held.images[0].locked.components, "python": component(SERIES)}
    return changed(
        held,
        accelerator=accelerator,
        components=python,
        variants={"torch": build},
        pip=("numpy==1.26.4",),
    )


@pytest.mark.process
def test_uv_locks_a_project_and_would_install_it(server: Server, tmp_path: Path) -> None:
    if not HERE:
        pytest.skip("no target is for this machine")
    (path,) = written("uv", installing(server.url, HERE), tmp_path)
    env = {
        "UV_DEFAULT_INDEX": f"{server.url}/simple",
        "UV_NO_CACHE": "1",
        "UV_PYTHON": sys.executable,
    }
    ran(BESIDE / "uv", "lock", cwd=path.parent, **env)
    held = toml.parse((path.parent / "uv.lock").read_text(), "uv.lock", LockError, "it")
    found = {
        one["name"]: (one["version"], one["source"].get("registry")) for one in held["package"]
    }
    assert found == {
        "toolchain-" + HERE: ("0", None),
        "filelock": ("3.1", f"{server.url}/simple"),
        "numpy": ("1.26.4", f"{server.url}/simple"),
        "torch": ("2.7.1+cu126", f"{server.url}/cu126"),
    }
    told = ran(BESIDE / "uv", "sync", "--dry-run", "--locked", cwd=path.parent, **env).stderr
    assert "Would install 3 packages" in told
    assert "+ torch==2.7.1+cu126" in told


def project(held: Job) -> dict[str, Any]:
    """The settings of uv in a project."""
    (text,) = formats.known()["uv"].files(held).values()
    found: dict[str, Any] = toml.parse(text, "", LockError, "it")["tool"]["uv"]
    return found


def test_an_index_is_asked_for_its_builds_alone_but_of_rocm() -> None:
    held = installing("https://example.org", "x86")
    assert project(held)["index"] == [
        {"name": "channel-1", "url": "https://example.org/cu126", "explicit": True}
    ]
    assert project(held)["sources"] == {"torch": {"index": "channel-1"}}
    assert "index-strategy" not in project(held)
    rocm = project(changed(held, accelerator="rocm"))
    assert rocm["index"] == [{"name": "channel-1", "url": "https://example.org/cu126"}]
    assert rocm["index-strategy"] == "unsafe-best-match"


def test_a_page_of_links_is_a_flat_index() -> None:
    build = LockedVariant(
        build="2.1.2@pyg/x86_64",
        install=("torch-scatter==2.1.2", "-f", "https://example.org/torch.html"),
        evidence="stated",
    )
    held = changed(installing("https://example.org", "x86"), variants={"torch-scatter": build})
    assert project(held)["index"] == [
        {
            "name": "channel-1",
            "url": "https://example.org/torch.html",
            "format": "flat",
            "explicit": True,
        }
    ]
    assert pixi(held)["pypi-options"] == {"find-links": [{"url": "https://example.org/torch.html"}]}


def test_locked_packages_bind_a_project() -> None:
    packed = hostile.packaged(hostile.flagged("debian", "arm"), "arm", "wheel==1")
    found = project(job(packed, recipe=hostile.recipe(hostile.RECIPE), targets=("arm",)))
    assert found["constraint-dependencies"] == ["lib==1.0", "other==2.1+cu126"]
    assert found["no-build"] is True


# conda and pixi


def pixi(held: Job) -> dict[str, Any]:
    """A workspace of pixi."""
    (text,) = formats.known()["pixi"].files(held).values()
    return toml.parse(text, "", LockError, "it")


def test_pixi_takes_packages_of_conda_and_of_the_index() -> None:
    held = installing("https://example.org", "arm")
    found = pixi(held)
    assert found["workspace"] == {
        "name": "toolchain-arm",
        "channels": ["conda-forge"],
        "platforms": ["linux-aarch64"],
    }
    assert found["dependencies"]["python"] == f"{SERIES}.*"
    assert found["pypi-dependencies"] == {
        "torch": {"version": "==2.7.1", "index": "https://example.org/cu126"},
        "numpy": "==1.26.4",
    }
    assert pixi(changed(held, accelerator="rocm"))["pypi-options"] == {
        "extra-index-urls": ["https://example.org/cu126"],
        "index-strategy": "unsafe-best-match",
    }


def repodata(releases: dict[str, str], subdir: str) -> dict[str, dict[str, Any]]:
    """The packages of a channel of conda, by the name of their file."""
    return {
        f"{name}-{version}-0.tar.bz2": {
            "name": name,
            "version": version,
            "build": "0",
            "build_number": 0,
            "depends": [],
            "subdir": subdir,
            "md5": "0" * 32,
            "sha256": "0" * 64,
            "size": 1,
            "timestamp": 0,
        }
        for name, version in releases.items()
    }


def channel(folder: Path, wanted: dict[str, str], subdir: str) -> str:
    """A channel of conda with one release of each package, and one that nobody wants."""
    packages = repodata(
        {name: f"{one}.5" if one else "24.0" for name, one in wanted.items()}, subdir
    )
    packages |= repodata(dict.fromkeys(wanted, "99.9"), subdir)
    for name, held in ((subdir, packages), ("noarch", {})):
        (folder / name).mkdir()
        body = {"info": {"subdir": name}, "packages": held, "packages.conda": {}}
        (folder / name / "repodata.json").write_text(json.dumps(body | {"repodata_version": 1}))
    return folder.as_uri()


@pytest.mark.parametrize("name", LOCKS)
def test_rattler_solves_what_conda_and_pixi_are_asked_for(name: str, tmp_path: Path) -> None:
    rattler = library("rattler")
    for number, image in enumerate(job(lock(name)).images):
        if "python" not in image.locked.components:
            continue
        one = job(lock(name), targets=(image.target,))
        (text,) = formats.known()["conda"].files(one).values()
        specs = [word for word in yaml.safe_load(text)["dependencies"] if isinstance(word, str)]
        found = pixi(one)
        (subdir,) = found["workspace"]["platforms"]
        wanted = {
            package: "" if spec == "*" else spec.removesuffix(".*")
            for package, spec in found["dependencies"].items()
        }
        (tmp_path / str(number)).mkdir()
        place = channel(tmp_path / str(number), wanted, subdir)
        expected = {package: f"{one}.5" if one else "99.9" for package, one in wanted.items()}
        for asked in (
            specs,
            [f"{package} {spec}" for package, spec in found["dependencies"].items()],
        ):
            solved = asyncio.run(rattler.solve([place], asked, platforms=[subdir, "noarch"]))
            assert {part.name.normalized: str(part.version) for part in solved} == expected


@pytest.mark.process
@pytest.mark.parametrize("name", LOCKS)
def test_mambajs_solves_an_environment(name: str, server: Server, tmp_path: Path) -> None:
    module = NODE.parent / "@emscripten-forge/mambajs/lib/index.js"
    if not module.exists():
        missing(
            "needs mambajs: npm install @emscripten-forge/mambajs, as `./tests/run --builds` does"
        )
    for image in job(lock(name)).images:
        if "python" not in image.locked.components:
            continue
        one = job(lock(name), targets=(image.target,))
        (path,) = written("conda", one, tmp_path)
        found = pixi(one)
        (subdir,) = found["workspace"]["platforms"]
        plain = {
            package: "24.0" if spec == "*" else f"{spec.removesuffix('.*')}.5"
            for package, spec in found["dependencies"].items()
        }
        for place, held in ((subdir, repodata(plain, subdir)), ("noarch", {})):
            body = {"info": {"subdir": place}, "packages": held, "packages.conda": {}}
            server.answers[f"/{place}/repodata.json"] = Reply(body=json.dumps(body).encode())
        pip = dict(word.split("==") for word in image.pip)
        words = (module, path, subdir, server.url, json.dumps(pip))
        told = ran(
            BESIDE / "node", Path(__file__).with_name("environment.mjs"), *words, cwd=tmp_path
        )
        solved = json.loads(told.stdout)
        for kind, expected in (("packages", plain), ("pipPackages", pip)):
            assert {one["name"]: one["version"] for one in solved[kind].values()} == expected


# Shell


@pytest.mark.process
@pytest.mark.parametrize("name", LOCKS)
def test_shellcheck_warns_of_nothing(name: str, tmp_path: Path) -> None:
    """Scripts are for any shell of POSIX, but for those of features."""
    if not (shellcheck := shutil.which("shellcheck")):
        missing("needs shellcheck: apt-get install shellcheck")
    for held in (job(lock(name)), job(lock("tensorflow"), recipe="tensorflow")):
        made = [
            path
            for form in ("env", "dockerfile", "devcontainer-feature")
            for path in written(form, held, tmp_path)
            if path.suffix == ".sh"
        ]
        plain = [path for path in made if path.name.endswith(".env.sh")]
        others = [path for path in made if path not in plain]
        for files, words in ((plain, ("--shell=sh",)), (others, ())):
            if files:
                ran(shellcheck, "--severity=warning", *words, *files, cwd=tmp_path)


# Kubernetes


def task(image: ImagePlan, held: Job) -> dict[str, Any]:
    """The job of Kubernetes of an image."""
    found: dict[str, Any] = yaml.safe_load(
        formats.known()["kubernetes"].files(held)[f"{image.name}.kubernetes.yaml"]
    )
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_a_job_has_the_shape_that_kubernetes_asks_for(name: str) -> None:
    shapes = library("kubernetes_validate")
    held = job(lock(name))
    for image in held.images:
        shapes.validate(task(image, held), shapes.latest_version(), strict=True)


def nodes(terms: Any, *labels: dict[str, str]) -> list[bool]:
    """Which nodes fit one of some terms, as Kubernetes compares labels (API reference, NodeSelectorRequirement)."""
    ways = {"Gt": int.__gt__, "Lt": int.__lt__}
    return [
        any(
            all(
                re.fullmatch(r"\d+", node.get(one["key"], ""))
                and ways[one["operator"]](int(node[one["key"]]), int(one["values"][0]))
                for one in term["matchExpressions"]
            )
            for term in terms
        )
        for node in labels
    ]


def labelled(driver: str, device: str) -> dict[str, str]:
    """The labels that GPU feature discovery gives to a node."""
    names = ("major", "minor", "revision")
    found = zip(names, driver.split("."), strict=False)
    said = {f"nvidia.com/cuda.driver-version.{name}": part for name, part in found}
    parts = zip(names, device.split("."), strict=False)
    return said | {f"nvidia.com/gpu.compute.{name}": part for name, part in parts}


def test_a_job_runs_on_nodes_with_the_gpu_and_the_driver() -> None:
    held = job(lock("tensorflow"), targets=("x86",))
    (image,) = held.images
    floor = {**image.locked.components, "driver": component("525.60.13", floor=True)}
    wanted = changed(
        held,
        components=floor,
        devices={one: Backed(evidence="stated") for one in ("8.0", "9.0")},
    )
    pod = task(image, wanted)["spec"]["template"]["spec"]
    node = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    drivers = ("525.60.13", "525.60.12", "525.59.99", "525.105.01", "526.01", "455.06", "535.54.03")
    fits = nodes(node["nodeSelectorTerms"], *(labelled(one, "8.0") for one in drivers))
    assert fits == [True, False, False, True, True, False, True]
    others = [labelled("550.54.15", one) for one in ("9.0", "8.6", "7.5")]
    assert nodes(node["nodeSelectorTerms"], *others, {}) == [True, False, False, False]
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 1}}


def test_a_job_without_a_gpu_asks_for_none() -> None:
    held = job(lock("tensorflow"), targets=("arm",))
    pod = task(held.images[0], held)["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
    assert "affinity" not in pod
    assert "resources" not in pod["containers"][0]


# Apptainer


@pytest.mark.parametrize("name", LOCKS)
def test_the_reader_of_singularity_finds_every_part(name: str, tmp_path: Path) -> None:
    parsers = library("spython.main.parse.parsers")
    held = job(lock(name))
    for image, path in zip(held.images, written("apptainer", held, tmp_path), strict=True):
        (stage,) = parsers.get_parser("singularity")(str(path)).recipe.values()
        assert stage.fromHeader == image.from_
        assert f"sh /usr/share/toolmatrix/{image.name}.check.sh" in "\n".join(stage.install)
        assert {line.partition(" ")[0] for line in stage.labels} == {
            label for label, text in image.labels.items() if text
        }
        assert len(stage.files) == 2


# Bazel


@pytest.mark.process
def test_bazel_takes_the_options_of_a_configuration(tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("npm has Bazel for x86_64 alone")
    bazel = node("bazel", "@bazel/bazel-linux_x64")
    held = job(hostile.flagged("debian", "arm"), targets=("arm",))
    parts = {**held.images[0].locked.components, "bazel": component("2.1.0")}
    (path,) = written("bazelrc", changed(held, components=parts), tmp_path)
    (tmp_path / "WORKSPACE").touch()
    words = (bazel, "--batch", f"--output_user_root={tmp_path}/root")
    told = ran(*words, "info", "--config=arm", "--announce_rc", "release", cwd=tmp_path).stderr
    (found,) = re.findall(r"config definition build:arm in file \S+: (.*)", told)
    lines = path.read_text().splitlines()
    assert found.split(" --") == " ".join(
        line.removeprefix("build:arm ").strip('"') for line in lines if line.startswith("build:arm")
    ).split(" --")


def workspace(folder: Path, url: str, data: bytes) -> None:
    """A workspace that builds nothing and fetches one archive."""
    digest = hashlib.sha256(data).hexdigest()
    (folder / "WORKSPACE").write_text(
        'load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_file")\n'
        f'http_file(name = "it", sha256 = "{digest}", urls = ["{url}/far/it.bin"])\n'
    )
    (folder / "BUILD").touch()


def fetching(cwd: Path, *startup: str) -> subprocess.CompletedProcess[str]:
    """What Bazel makes of a workspace."""
    bazel = node("bazel", "@bazel/bazel-linux_x64")
    return subprocess.run(
        [bazel, *startup, "--batch", f"--output_user_root={cwd}/root", "build", "@it//file"],
        cwd=cwd,
        env={"HOME": str(cwd), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.process
def test_bazel_takes_archives_out_of_the_folder(tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("npm has Bazel for x86_64 alone")
    held = job(lock("tensorflow"), recipe="tensorflow", targets=("x86",), fetched="near")
    ((_, line),) = held.images[0].mirrored
    (tmp_path / ".bazelrc").write_text(line.replace("/mnt/distdir", f"{tmp_path}/distdir") + "\n")
    # Nobody answers there.
    workspace(tmp_path, "http://127.0.0.1:9", b"archive")
    # Without the folder it fetches, as in a definition of Apptainer.
    assert "Connection refused" in fetching(tmp_path).stderr
    (tmp_path / "distdir").mkdir()
    (tmp_path / "distdir/it.bin").write_bytes(b"another")
    assert fetching(tmp_path).returncode != 0
    (tmp_path / "distdir/it.bin").write_bytes(b"archive")
    told = fetching(tmp_path)
    assert told.returncode == 0, told.stderr


@pytest.mark.process
def test_bazel_trusts_what_the_image_trusts(tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("npm has Bazel for x86_64 alone")
    for name in ("trust", "openssl", "unshare"):
        if not shutil.which(name):
            missing(f"needs {name}: apt-get install p11-kit openssl util-linux")
    if os.geteuid():
        missing("needs root, to mount a file")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    own = (
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:TRUE",
    )
    words = ("-newkey", "rsa:2048", "-nodes", "-subj", "/CN=company", "-days", "1", *own)
    files = ("-keyout", str(key), "-out", str(certificate))
    ran("openssl", "req", "-x509", *words, *files, cwd=tmp_path)
    with servers.running((str(certificate), str(key))) as safe:
        safe.answers["/far/it.bin"] = Reply(body=b"archive")
        workspace(tmp_path, safe.url, b"archive")
        assert "unable to find valid certification path" in fetching(tmp_path).stderr
        image = job(lock("tensorflow"), recipe="tensorflow", targets=("x86",)).images[0]
        lines = next(
            step.run for step in image.steps if any("bazel build" in one for one in step.run)
        )
        store = next(line for line in lines if line.startswith("trust extract "))
        startup = next(line for line in lines if line.endswith("> ~/.bazelrc"))
        (tmp_path / "cache").mkdir()
        store, startup = (
            line.replace("/var/cache/toolmatrix", f"{tmp_path}/cache") for line in (store, startup)
        )
        # As the secret is mounted: p11-kit reads that file and no other.
        bundle = f"mount --bind {certificate} /etc/ssl/certs/ca-certificates.crt"
        ran("unshare", "--mount", "sh", "-c", f"{bundle} && {store}", cwd=tmp_path)
        ran("sh", "-c", startup, cwd=tmp_path)
        told = fetching(tmp_path)
        assert told.returncode == 0, told.stderr


# GitLab and development containers


@pytest.mark.process
@pytest.mark.parametrize("name", LOCKS)
def test_a_runner_of_gitlab_has_a_job_for_each_image(name: str, tmp_path: Path) -> None:
    runner = node("gitlab-ci-local", "gitlab-ci-local")
    held = job(lock(name))
    (path,) = written("gitlab", held, tmp_path)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    ran("git", "init", "-q", cwd=tmp_path)
    ran("git", "remote", "add", "origin", "https://example.org/a/b.git", cwd=tmp_path)
    ran("git", *author, "commit", "-qm", "x", "--allow-empty", cwd=tmp_path)
    told = ran(runner, "--file", path.name, "--list-json", cwd=tmp_path)
    names = [one["name"] for one in json.loads(told.stdout)]
    assert [one.partition("[")[2].partition(",")[0] for one in names] == [
        image.name for image in held.images
    ]


@pytest.mark.process
@pytest.mark.parametrize("name", LOCKS)
def test_development_containers_and_features_are_read(name: str, tmp_path: Path) -> None:
    cli = node("devcontainer", "@devcontainers/cli")
    held = job(lock(name))
    # It asks the engine whether there is a container already, and there is none.
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\nexit 0\n")
    engine.chmod(0o755)
    for path in written("devcontainer", held, tmp_path):
        words = ("--workspace-folder", tmp_path, "--config", path, "--docker-path", engine)
        told = ran(cli, "read-configuration", *words, cwd=tmp_path)
        assert json.loads(told.stdout)["configuration"]["remoteUser"] == "builder"
    made = written("devcontainer-feature", held, tmp_path)
    if not made:
        return
    ran(cli, "features", "package", "--output-folder", "packed", "features/src", cwd=tmp_path)
    listed = json.loads((tmp_path / "packed/devcontainer-collection.json").read_text())
    assert {one["id"] for one in listed["features"]} == {path.parent.name for path in made}
    for one in listed["features"]:
        with tarfile.open(tmp_path / f"packed/devcontainer-feature-{one['id']}.tgz") as packed:
            names = {name.removeprefix("./") for name in packed.getnames()} - {"", "."}
        assert {"devcontainer-feature.json", "install.sh"} <= names
        assert len(names) == 3


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_a_feature_installs_what_was_resolved(tmp_path: Path) -> None:
    if lacking := docker.missing("mmdebstrap"):
        docker.unable(f"a root file system needs {', '.join(lacking)}")
    answer = lock("debian")
    part = answer.environments["default"].targets["x86"]
    # Java, which Bazel brings, is not set up without /proc.
    kept_parts = {
        name: one for name, one in part.components.items() if name in ("gcc", "python", *BASE)
    }
    environment = answer.environments["default"].replace(
        request=("gcc", "python"), targets={"x86": part.replace(components=kept_parts)}
    )
    held = job(answer.replace(environments={"default": environment}))
    script = next(
        path
        for path in written("devcontainer-feature", held, tmp_path)
        if path.suffix == ".sh" and path.stem == "install"
    )
    root = tmp_path / "root"
    try:
        bases.unpacked(bases.Base("bookworm", "amd64"), folder(), root)
    except bases.BaseFailed as error:
        docker.unable(str(error))
    shutil.copytree(script.parent, root / "feature")
    known = {name: text for name, text in os.environ.items() if name.lower().endswith("_proxy")}
    told = ran(
        *("chroot", root, "bash", "/feature/install.sh"),
        cwd=tmp_path,
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        **known,
    )
    assert re.search(r"^\d+ checked, 0 failed$", told.stdout, re.MULTILINE)
    # In another distribution it installs nothing.
    (root / "etc/os-release").unlink()
    (root / "etc/os-release").write_text("ID=ubuntu\nVERSION_ID=24.04\n")
    other = subprocess.run(
        ["chroot", root, "bash", "/feature/install.sh"], check=False, capture_output=True, text=True
    )
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr == "this feature is for debian 12, and not for ubuntu 24.04\n"
