"""How long reading an image takes beside unpacking it, and what is caught beside goss; benchmarks/README.md says more.

    python benchmarks/validate.py [--quick] [--reading]

It needs root, Docker's engine, mmdebstrap, a Debian mirror and a package index; what it measures runs offline. What it
builds is the image of tests/engine/mutations.py, with two libraries of NVIDIA's on top to make it large.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _measure import Place, spread
from resolve import Line, compared, machine, scaled, table, tell

from tests.engine import bases, docker, mutations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.engine.docker import Engine

LARGE = f"{mutations.NAME}:large"
WHEELS = (
    *("nvidia-cublas-cu12==12.4.5.8", "nvidia-cusolver-cu12==11.6.1.9", "nvidia-nccl-cu12"),
    *("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.4.127"),
)
"""Real libraries, with device code in them, of which a gigabyte is added."""
PACKED, PLAIN, MEMORY = 1.0, 1.5, 300
SECOND = 1.1
"""Of the second image on a base, beside its own layers alone."""
AGAIN, ASKED_AGAIN = 1000, 2000
"""Milliseconds for an image of the engine that is known, without and with its programs."""
OWN = "nvidia-nvjitlink-cu12==12.4.127"
"""What the second image has on top."""
TOOLMATRIX = (sys.executable, "-m", "toolmatrix")
CHECK = "sh /usr/share/toolmatrix/x86.check.sh"
LAYER = "application/vnd.oci.image.layer.v1.tar"

GOSS = {
    "command": {
        "uname -m": {"exit-status": 0, "stdout": ["x86_64"]},
        "python --version": {"exit-status": 0, "stdout": ["/^Python 3.11/"]},
        "gcc -dumpfullversion": {"exit-status": 0, "stdout": ["/^12\\./"]},
        "python -c 'import numpy; print(numpy.__version__)'": {
            "exit-status": 0,
            "stdout": ["2.4.6"],
        },
        "echo $CFLAGS": {"exit-status": 0, "stdout": ["/-march=haswell/", "/-mtune=haswell/"]},
        "ldd $(gcc -print-prog-name=cc1)": {"exit-status": 0, "stdout": ["!/not found/"]},
    },
    "package": {"bazel-bootstrap": {"installed": True, "versions": ["4.2.3+ds-9"]}},
}
"""The same questions as somebody who knows this image would write them for goss; it has no word for labels."""


class Subjects:
    """The engine, the images, and the archives of the large one: as saved, and with layers packed by gzip."""

    def __init__(self, engine: Engine, work: Path) -> None:
        self.engine = engine
        self.work = work
        self.place = Place(
            str(work),
            {**engine.environment, "PYTHONPATH": str(Path(mutations.__file__).parents[2])},
        )
        self.lock = str(work / "toolmatrix.lock")
        self.plain = work / "plain.tar"
        self.packed = work / "packed.tar"
        self.second = work / "second.tar"
        self.own = work / "own.tar"

    def build(self, *, small: bool) -> None:
        """Build, save and pack."""
        tell("building the image")
        mutations.build(self.engine, self.work)
        image = mutations.GOOD
        if not small:
            tell("making it large")
            image = mutations.layered(
                self.engine,
                self.work,
                "large",
                f"FROM {image}\nUSER root\nRUN python -m pip install --no-deps -q {' '.join(WHEELS)}\n",
            )
        self.engine.done("save", "--output", str(self.plain), image)
        tell("packing its layers")
        _pack(self.plain, self.packed)
        tell("making a second image on it")
        second = mutations.layered(
            self.engine,
            self.work,
            "second",
            f"FROM {image}\nUSER root\nRUN python -m pip install --target /opt/own --no-deps -q {OWN}\n",
        )
        self.engine.done("save", "--output", str(self.second), second)
        _last(self.second, self.own)

    def ours(self, subject: str, *more: str) -> list[str]:
        """Our command, which must find the image right; everything is read unless a store is named."""
        words = more or ("--no-store",)
        return [*TOOLMATRIX, "validate", subject, "--lock", self.lock, *words]

    def goss(self) -> list[str]:
        """The files of goss, out of Debian's package in sid, as options of `docker run`."""
        tell("taking goss from Debian")
        state = self.work / "apt"
        for part in ("lists/partial", "cache/archives/partial"):
            (state / part).mkdir(parents=True)
        (state / "sources.list").write_text(f"deb {bases.mirrors()['Debian']} sid main\n")
        words = ["apt-get", "-qq", f"-oDir::Etc::sourcelist={state}/sources.list"]
        words += ["-oDir::Etc::sourceparts=/dev/null", f"-oDir::State::lists={state}/lists"]
        words += [f"-oDir::Cache={state}/cache", "-oAPT::Sandbox::User=root"]
        subprocess.run([*words, "update"], check=True)
        subprocess.run([*words, "download", "goss"], check=True, cwd=state)
        (package,) = state.glob("goss_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, state / "goss"], check=True)
        (state / "goss.yaml").write_text(json.dumps(GOSS))
        return [
            f"--volume={state}/goss/usr/bin/goss:/goss:ro",
            f"--volume={state}/goss.yaml:/goss.yaml:ro",
        ]


def _pack(plain: Path, packed: Path) -> None:
    """The same image in the OCI shape, each layer packed as registries keep them."""
    with tarfile.open(plain) as old, tarfile.open(packed, "w") as new:
        manifest = json.load(_file(old, "manifest.json"))[0]
        config = _file(old, manifest["Config"]).read()
        layers = []
        for name in manifest["Layers"]:
            stream = io.BytesIO()
            with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0) as file:
                shutil.copyfileobj(_file(old, name), file, 1 << 20)
            layers.append(_blob(new, stream.getvalue(), LAYER + "+gzip"))
        body = {
            "schemaVersion": 2,
            "config": _blob(new, config, "application/vnd.oci.image.config.v1+json"),
            "layers": layers,
        }
        media = "application/vnd.oci.image.manifest.v1+json"
        index = {"schemaVersion": 2, "manifests": [_blob(new, json.dumps(body).encode(), media)]}
        _put(new, "index.json", json.dumps(index).encode())


def _last(saved: Path, to: Path) -> None:
    """The uppermost layer of an image by itself."""
    with tarfile.open(saved) as old, tarfile.open(to, "w") as new:
        manifest = json.load(_file(old, "manifest.json"))[0]
        config = json.load(_file(old, manifest["Config"]))
        config["rootfs"]["diff_ids"] = config["rootfs"]["diff_ids"][-1:]
        document = {"Config": "config.json", "Layers": ["layer.tar"]}
        _put(new, "manifest.json", json.dumps([document]).encode())
        _put(new, "config.json", json.dumps(config).encode())
        _put(new, "layer.tar", _file(old, manifest["Layers"][-1]).read())


def _file(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise SystemExit(f"{name} is no file of the archive")
    return file


def _blob(archive: tarfile.TarFile, data: bytes, media: str) -> dict[str, object]:
    digest = sha256(data).hexdigest()
    _put(archive, f"blobs/sha256/{digest}", data)
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def listing(archive: Path, unpack: str) -> list[str]:
    """Listing every layer of an archive by GNU tar, each unpacked on the way."""
    with tarfile.open(archive) as held:
        names = [
            one.name
            for one in held
            if one.isreg() and one.size > 1 << 14 and "json" not in one.name
        ]
    file = shlex.quote(str(archive))
    each = f"tar --extract --to-stdout --file={file} {{}} | {unpack} | tar --list --verbose"
    script = "; ".join(each.format(shlex.quote(name)) for name in names)
    return ["bash", "-c", f"tar --list --file={file}; {script}"]


def reading(made: Subjects, rounds: int) -> list[Line]:
    """Reading beside unpacking, and again, and the second image on a base."""
    lines = []
    store = made.work / "store"
    for what, archive, unpack, bar in (
        ("layers packed by gzip", made.packed, "gzip -dc", PACKED),
        ("layers as `docker save` has them", made.plain, "cat", PLAIN),
    ):
        tell(what)
        ours = made.ours(f"archive:{archive}")
        pairs = made.place.pairs(ours, listing(archive, unpack), rounds)
        size = f"{what}, {archive.stat().st_size >> 20} MiB"
        lines += compared(f"{size} / unpack and list", pairs, bar)
        peak = made.place.peak([shutil.which(ours[0]) or ours[0], *ours[1:]], 1)
        lines.append(Line("    peak memory", "MiB", peak, bar=MEMORY))
        again = made.ours(f"archive:{archive}", f"--store={store}")
        lines += compared("    again / first", made.place.pairs(again, ours, rounds), None)
    tell("the second image on a base")
    known = made.work / "known"
    store.rename(known)
    second = [*TOOLMATRIX, "inventory", f"archive:{made.second}", f"--store={store}"]
    with_base = f"rm -rf {store} && cp -r {known} {store} && exec {shlex.join(second)}"
    own = [*TOOLMATRIX, "inventory", f"archive:{made.own}", "--no-store"]
    pairs = made.place.pairs(["sh", "-c", with_base], own, rounds)
    size = f"{made.second.stat().st_size >> 20} MiB / its own {made.own.stat().st_size >> 20} MiB"
    return lines + compared(f"second image on that base, {size}", pairs, SECOND)


def running(made: Subjects, goss: Sequence[str], rounds: int) -> list[Line]:
    """Validating an image of the engine beside running it."""
    lines = []
    run = ["docker", "run", "--rm", "--network=none"]
    asked = [*run, *goss, mutations.GOOD, "/goss", "-g", "/goss.yaml", "validate"]
    for what, theirs in (
        ("the check by docker run", [*run, mutations.GOOD, *CHECK.split()]),
        ("goss by docker run", asked),
    ):
        tell(what)
        ours = made.ours(f"docker:{mutations.GOOD}")
        pairs = made.place.pairs(ours, theirs, rounds)
        lines.append(compared(f"docker:NAME / {what}", pairs, None)[1])
    store = made.work / "engine"
    for what, words, bar in (
        ("docker:NAME --no-run again, wall", ("--no-run",), AGAIN),
        ("docker:NAME again, wall", (), ASKED_AGAIN),
    ):
        tell(what)
        known = made.ours(f"docker:{mutations.GOOD}", f"--store={store}", *words)
        made.place.cost(known)
        walls = spread([made.place.cost(known).wall for _ in range(rounds)])
        lines.append(Line(what, "ms", scaled(walls, 1000), bar=bar))
    return lines


def caught(made: Subjects, goss: Sequence[str]) -> dict[str, list[str]]:
    """What each of validate, the check inside and goss says of broken images.

    All of them end with 1 where something is wrong. Another code is no answer: they, or the engine, failed.
    """
    run = ["docker", "run", "--rm", "--network=none"]
    found: dict[str, list[str]] = {}
    for name in ["nothing", *mutations.MUTATIONS]:
        tell(f"mutation: {name}")
        image = mutations.GOOD
        if name != "nothing":
            image = mutations.mutate(made.engine, made.work, name)
        ways: Mapping[str, list[str]] = {
            "validate": made.ours(f"docker:{image}"),
            "check": [*run, image, *CHECK.split()],
            "goss": [*run, *goss, image, "/goss", "-g", "/goss.yaml", "validate"],
        }
        found[name] = []
        for words in ways.values():
            ended = subprocess.run(
                words, cwd=made.work, env=dict(made.place.env), capture_output=True, check=False
            ).returncode
            found[name].append({0: "-", 1: "found"}.get(ended, f"ended with {ended}"))
    return found


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description="How long reading an image takes.")
    parser.add_argument(
        "--quick", action="store_true", help="a smaller image, one round: to see that it works"
    )
    parser.add_argument("--reading", action="store_true", help="only the first table, of reading")
    options = parser.parse_args()
    rounds = 1 if options.quick else 3
    with tempfile.TemporaryDirectory(prefix="toolmatrix-bench-") as work, docker.engine() as engine:
        made = Subjects(engine, Path(work))
        os.environ.update(engine.environment)
        try:
            made.build(small=options.quick)
            lines = reading(made, rounds)
            tables: Mapping[str, Sequence[str]] = {}
            if not options.reading:
                goss = made.goss()
                lines += running(made, goss, rounds)
                tables = {} if options.quick else caught(made, goss)
        finally:
            mutations.remove(engine)
    print("; ".join(f"{name} {value}" for name, value in machine().items()))
    print(table(lines))
    if tables:
        print(f"\n{'broken image':<16}{'validate':<15}{'check':<15}goss")
    for name, words in tables.items():
        print(f"{name:<16}" + "".join(f"{one:<15}" for one in words).rstrip())


if __name__ == "__main__":
    main()
