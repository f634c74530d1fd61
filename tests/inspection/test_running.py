"""Programs of real images asked in real containers: what they answer, how they are bounded, and that none is left.

The programs are `zoo.c` under many names, in an image that holds nothing else: no shell, no libraries, no records.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import docker
from tests.images import images
from tests.images.images import hard_link
from toolmatrix.cli.main import main
from toolmatrix.errors import ToolMissing
from toolmatrix.images import engines
from toolmatrix.images.engines import LABEL, ProgramBounds
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import running
from toolmatrix.inspection.model import GONE, Inventory, Seen
from toolmatrix.inspection.running import ProgramProbe

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator, Mapping

    from tests.engine.docker import Engine
    from toolmatrix.images.engines import EngineImage

    Files = Mapping[str, bytes | tarfile.TarInfo]

pytestmark = [pytest.mark.process, pytest.mark.slow]

ZOO = "toolmatrix-test/zoo:all"
LYING = "toolmatrix-test/zoo:lying"
HANGING = "toolmatrix-test/zoo:hanging"
SHIM = "toolmatrix-test/zoo:shim"
MUTE = "toolmatrix-test/zoo:mute"
KINDS = (
    *("hangs", "noise", "verbose", "forks", "eats", "writes", "calls", "rights", "user"),
    *("fails", "mute", "colours", "gcc", "cc", "proxy"),
)
BOUNDS = ProgramBounds(seconds=4, memory=128 << 20, processes=16)
STATUS = b"""Package: gcc-12
Status: install ok installed
Version: 12.2.0-14
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The program that all others are."""
    path = tmp_path_factory.mktemp("zoo") / "zoo"
    source = os.path.join(os.path.dirname(__file__), "zoo.c")
    try:
        subprocess.run(["gcc", "-static", "-O1", "-s", "-o", path, source], check=True)
    except FileNotFoundError:
        docker.unable("programs for images are compiled: install g++")
    return path.read_bytes()


@pytest.fixture(scope="module")
def zoo(engine: Engine, program: bytes) -> Iterator[Engine]:
    """An engine with the images."""
    programs: Files = {
        "bin/zoo": program,
        **{f"bin/{kind}": hard_link("bin/zoo") for kind in KINDS},
    }
    held = images.image(
        {
            **programs,
            "bin/foreign": b"\x7fELF not for any machine" * 99,
            "etc/plain": b"1",
            "volume/old": b"1",
        },
        Env=["PATH=/bin"],
        Entrypoint=["/bin/hangs"],
        Cmd=["/bin/hangs"],
        User="1234:5678",
        Volumes={"/volume": {}},
        Healthcheck={"Test": ["CMD", "/bin/forks"], "Interval": 10**9},
        Labels={"title": "\x1b[31mred\x1b[0m"},
    )
    gcc: Files = {
        "usr/bin/gcc-12": program,
        "usr/bin/gcc": images.link("gcc-12"),
        "var/lib/dpkg/status": STATUS,
    }
    behind: Files = {
        "usr/bin/python3": images.link("python3.11"),
        "usr/bin/python3.11": program,
        "usr/include/python3.11/patchlevel.h": b'#define PY_VERSION "3.11.2"\n',
    }
    lying = images.image(gcc, Env=["PATH=/usr/bin"])
    hanging = images.image(gcc, Env=["PATH=/usr/bin", "HANGS=1"])
    shims = [images.image(gcc, behind, before(kind, program)) for kind in ("gcc", "mute")]
    named = {ZOO: held, LYING: lying, HANGING: hanging, SHIM: shims[0], MUTE: shims[1]}
    for name, made in named.items():
        engine.load(images.tar(images.saved(made, name)))
    yield engine
    engine.done("rmi", *named)


def before(kind: str, program: bytes) -> Files:
    """Scripts that stand before gcc and python3 on PATH, and the program of the zoo that runs them."""
    script = f"#!/bin/{kind}\n".encode()
    names = ("gcc", "python3", "python")
    return {f"bin/{kind}": program, **{f"usr/local/bin/{name}": script for name in names}}


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test no container is there, nor a volume of one."""
    yield
    if "zoo" in request.fixturenames:
        zoo: Engine = request.getfixturevalue("zoo")
        assert left(zoo) == []
        assert zoo.done("volume", "ls", "--quiet", "--filter", "dangling=true") == ""


def left(engine: Engine, *options: str) -> list[str]:
    """Containers of programs that were asked."""
    return engine.done(
        "ps", "--quiet", "--filter", f"label={LABEL}", *(options or ("--all",))
    ).split()


def probe(name: str, *arguments: str, **given: Any) -> ProgramProbe:
    """A question to a program of the zoo."""
    return ProgramProbe(name=name, run=(name, *arguments), about=(name,), **given)


def answers(*probes: ProgramProbe, bounds: ProgramBounds = BOUNDS, image: str = ZOO) -> Inventory:
    """What running adds to reading, which saw every component that is asked for."""
    components = {name: () for one in probes for name in one.about}
    read = Inventory(subject=f"docker:{image}", components=components)
    return running.ask_programs(described(image), read, probes, bounds)


def described(image: str) -> EngineImage:
    """What the engine says of an image."""
    return engines.find("docker", image, Budget(f"docker:{image}"))


def answer(name: str, **given: Any) -> str:
    """The value that one program gives."""
    found = answers(probe(name, **given))
    assert found.skipped == ()
    seen = found.components[name] or found.features[name]
    assert [one.seen_by for one in seen] == ["ran"]
    return seen[0].version


@pytest.mark.usefixtures("reached", "zoo")
class TestAnswers:
    """What comes of programs."""

    def test_the_entry_point_is_the_program_that_is_asked(self) -> None:
        assert answer("gcc") == "9.4.0"

    def test_the_user_is_that_of_the_image(self) -> None:
        assert answer("user") == "1234.5678"

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("hangs", "was still running after 4 seconds"),
            ("noise", "was still running after 4 seconds"),
            ("verbose", "printed more than 65536 bytes"),
            ("eats", "was killed for taking more than 128 MiB of memory"),
            ("fails", "ended with 3: \x1b[31mlast\x1b[0m"),
            ("mute", "printed no version: nothing"),
            (
                "foreign",
                "is built for another architecture than the engine's, without an emulator for it",
            ),
            ("nowhere", "is not there"),
            ("/etc/plain", "may not be run"),
            ("/volume/old", "is not there"),  # an empty directory takes the place of a volume
        ],
    )
    def test_what_does_not_answer_is_told_with_its_reason(self, name: str, reason: str) -> None:
        found = answers(probe(name), probe("gcc"))
        assert [(one.what, one.reason) for one in found.skipped] == [
            (f"running {name}", f"`{name}` {reason}")
        ]
        assert [one.version for one in found.components["gcc"]] == ["9.4.0"]

    def test_a_fork_bomb_is_stopped_by_the_first_bound_that_it_meets(self) -> None:
        # The kernel charges each failed fork before it frees it, so many processors may run out of memory.
        bounds = ("was still running after 4 seconds", "was killed for taking more than 128 MiB")
        (skip,) = answers(probe("forks")).skipped
        assert skip.what == "running forks"
        assert any(bound in skip.reason for bound in bounds)

    def test_a_later_round_stands_in(self) -> None:
        first, second, third = (
            ProgramProbe(name="gcc", run=(name,), about=("gcc",), round=number)
            for number, name in enumerate(("nowhere", "gcc", "user"))
        )
        found = answers(first, second, third)
        assert [(one.version, one.where) for one in found.components["gcc"]] == [("9.4.0", "gcc")]
        assert found.skipped == ()

    def test_what_reading_did_not_see_is_asked_where_it_is_wanted(self) -> None:
        unseen = probe("gcc").replace(about=("other",))
        read = Inventory(subject=ZOO)
        for one, versions in ((unseen, []), (unseen.replace(wanted=True), ["9.4.0"])):
            asked = running.ask_programs(described(ZOO), read, [one])
            assert [seen.version for seen in asked.components.get("gcc", ())] == versions
        absent = probe("fails", wanted=True)
        assert running.ask_programs(described(ZOO), read, [absent]) == read

    def test_what_repeats_a_record_of_which_nothing_is_left_is_no_answer(self) -> None:
        for version, versions in (("9.4.0-1", []), ("9.4.01", ["9.4.0"])):
            gone = Seen(version=f"gcc {version}", seen_by="dpkg", where="var/lib/dpkg/status")
            read = Inventory(subject=ZOO, features={GONE: (gone,)})
            asked = running.ask_programs(described(ZOO), read, [probe("gcc", wanted=True)])
            assert [one.version for one in asked.components.get("gcc", ())] == versions

    def test_an_escape_before_a_number_is_no_part_of_it(self) -> None:
        assert answer("colours") == "12.2.0"

    def test_a_version_that_agrees_stands_behind_what_was_read(self) -> None:
        for version, order in (("9.4.0.1", ["elf", "ran"]), ("9.5", ["ran", "elf"])):
            elf = Seen(version=version, seen_by="elf", where="bin/gcc", default=True)
            read = Inventory(subject=ZOO, components={"gcc": (elf,)})
            asked = running.ask_programs(described(ZOO), read, [probe("gcc")])
            assert [one.seen_by for one in asked.components["gcc"]] == order


@pytest.mark.usefixtures("reached", "zoo")
class TestBounds:
    """What a program can do to the machine that asks it."""

    def test_nothing_can_be_written(self) -> None:
        assert answer("writes") == "0.0"

    def test_nothing_can_be_reached(self) -> None:
        assert answer("calls") == "0.0"

    def test_proxies_of_the_user_are_none_of_the_program(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxies = dict.fromkeys(("httpProxy", "httpsProxy", "allProxy"), "http://me:secret@h:1")
        (tmp_path / "config.json").write_text(json.dumps({"proxies": {"default": proxies}}))
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        monkeypatch.setenv("DOCKER_DEFAULT_PLATFORM", "linux/riscv64")
        assert answer("proxy") == "0.0"

    @pytest.mark.parametrize(
        "line",
        [
            "CapEff:\t0000000000000000\n",
            "CapBnd:\t0000000000000000\n",
            "NoNewPrivs:\t1\n",
            "Seccomp:\t2\n",
        ],
    )
    def test_no_right_is_left(self, line: str) -> None:
        found = answers(probe("rights", holds=line, values=("yes", "no")))
        assert [one.version for one in found.features["rights"]] == ["yes"]


SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
_LEFT_OUT = ("test", "idlelib", "tkinter", "ensurepip", "lib2to3", "__pycache__", "site-packages")


def interpreter() -> dict[str, bytes | tarfile.TarInfo]:
    """The Python of this machine with what it loads, below /py."""
    base = Path(os.path.realpath(f"{sys.base_prefix}/bin/python3"))
    library = base.parent.parent / "lib" / base.name
    if not (library / "os.py").exists():
        docker.unable(f"{base} has no library beside it")
    files: dict[str, bytes | tarfile.TarInfo] = {
        f"py/lib/{base.name}/{path.relative_to(library)}": path.read_bytes()
        for path in library.rglob("*")
        if path.is_file() and not {*path.relative_to(library).parts} & {*_LEFT_OUT}
    }
    files |= {"py/bin/python3": images.link(base.name), f"py/bin/{base.name}": base.read_bytes()}
    listed = subprocess.run(["ldd", base], check=True, capture_output=True, text=True).stdout
    for word in listed.split():
        if word.startswith("/"):
            files[word.strip("/")] = Path(word).read_bytes()
    return files


def thing(folder: str, version: str, *, record: bool = True) -> dict[str, bytes | tarfile.TarInfo]:
    """A package, with a record or without."""
    info = f"{folder}/thing-{version}.dist-info"
    files: dict[str, bytes | tarfile.TarInfo] = {
        f"{folder}/thing/__init__.py": f"__version__ = '{version}'\n".encode()
    }
    if record:
        files[f"{info}/METADATA"] = f"Name: thing\nVersion: {version}\n".encode()
        files[f"{info}/RECORD"] = b"thing/__init__.py,,\n"
    return files


# Files beside the package in its newer version, settings, the exit code and lines that are said about `thing==2.0`.
STARTED: dict[str, tuple[Files, dict[str, Any], int, list[str]]] = {
    "plain": ({}, {}, 0, ["pass"]),
    "another first": (thing("vendor", "1.0"), {"Env": ["PYTHONPATH=/vendor"]}, 1, ["FAIL TM401"]),
    "a copy in the working directory": (
        *(thing("app", "1.0", record=False), {"WorkingDir": "/app"}),
        *(1, ["FAIL TM401"]),
    ),
    # Reading says that it is unknown, and running says what it is.
    "code at the start": (
        {
            **thing("vendor", "1.0"),
            f"py/{SITE}/sitecustomize.py": b"import sys\nsys.path[:0] = [sys.path.pop() and '/vendor']\n",
        },
        *({}, 1, ["FAIL TM401"]),
    ),
    "code that hides it": (
        {f"py/{SITE}/sitecustomize.py": b"import sys\nsys.path.pop()\n"},
        *({}, 1, ["FAIL TM409", "unknown TM480"]),
    ),
    "isolated": (
        thing("vendor", "1.0"),
        {"Env": ["PYTHONPATH=/vendor"], "Cmd": ["python3", "-I", "-m", "app"]},
        # Bare `python3` would import the other.
        *(0, ["pass", "warn TM423"]),
    ),
}


@pytest.mark.usefixtures("reached")
@pytest.mark.parametrize("name", STARTED)
def test_the_python_of_an_image_imports_what_is_expected(
    name: str, engine: Engine, tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files, config, code, said = STARTED[name]
    image = f"toolmatrix-test/python:{name.replace(' ', '-')}"
    env = ["PATH=/py/bin", *config.get("Env", ())]
    made = images.image(interpreter(), thing(f"py/{SITE}", "2.0"), files, **{**config, "Env": env})
    engine.load(images.tar(images.saved(made, image)))
    try:
        words = ["validate", f"docker:{image}", "--expect", "thing==2.0"]
        environment = {"HOME": str(tmp_path), "XDG_CACHE_HOME": cache}
        ended = main(words, environment, sys.stdin, sys.stdout, sys.stderr)
        printed = capsys.readouterr().out
    finally:
        engine.done("rmi", image)
    lines = [line.split() for line in printed.splitlines() if line.split()[1:2] == ["thing"]]
    found = sorted(
        " ".join([line[0], *(word for word in line if word.startswith("TM4"))]) for line in lines
    )
    assert (ended, found) == (code, said), printed


@pytest.mark.usefixtures("reached", "zoo")
class TestCommands:
    """The commands, on images that are asked."""

    def run(
        self, here: Path, cache: str, capsys: pytest.CaptureFixture[str], *words: str
    ) -> tuple[int, str]:
        environment = {"HOME": str(here), "XDG_CACHE_HOME": cache}
        code = main([*words], environment, sys.stdin, sys.stdout, sys.stderr)
        return code, capsys.readouterr().out

    def test_running_and_reading_differ(
        self, tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ("validate", f"docker:{LYING}", "--expect", "gcc==12.*")
        code, said = self.run(tmp_path, cache, capsys, *words)
        assert code == 1
        assert [line.split()[:3] for line in said.splitlines() if "TM4" in line] == [
            ["FAIL", "gcc", "9.4.0"],
            ["FAIL", "gcc", "9.4.0"],
        ]
        assert [word for word in said.split() if word.startswith("TM4")] == ["TM401", "TM409"]
        code, said = self.run(tmp_path, cache, capsys, *words, "--no-run")
        assert (code, "9.4.0" in said) == (0, False), said

    @pytest.mark.parametrize(
        ("image", "options", "code", "said"),
        [
            (SHIM, ("--no-run",), 4, "-"),
            (SHIM, (), 1, "9.4.0"),
            (MUTE, ("--no-run",), 4, "-"),
            (MUTE, (), 4, "-"),
        ],
    )
    @pytest.mark.parametrize("expected", ["gcc==12.2.0", "python==3.11.2"])
    def test_a_script_before_a_program_never_passes_by_the_program(
        self,
        tmp_path: Path,
        cache: str,
        capsys: pytest.CaptureFixture[str],
        image: str,
        options: tuple[str, ...],
        code: int,
        said: str,
        expected: str,
    ) -> None:
        words = ("validate", f"docker:{image}", "--expect", expected, *options)
        found, text = self.run(tmp_path, cache, capsys, *words)
        name, _, wanted = expected.partition("==")
        (line,) = [one.split() for one in text.splitlines() if f"wanted {wanted}" in one]
        assert (found, line[:3]) == (code, [{1: "FAIL", 4: "unknown"}[code], name, said])

    def test_reading_alone_is_what_the_archive_gives(
        self, zoo: Engine, tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "image.tar"
        zoo.done("save", "--output", str(path), LYING)
        forms = (("archive:" + str(path), ""), (f"docker:{LYING}", "--no-run"))
        found = []
        for subject, option in forms:
            words = ("validate", subject, "--expect", "gcc==12.*", "--json", option)
            _, said = self.run(tmp_path, cache, capsys, *filter(None, words))
            found.append(said.replace(subject, "SUBJECT"))
        assert found[0] == found[1]

    def test_what_an_image_says_reaches_no_terminal_raw(
        self, tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, said = self.run(tmp_path, cache, capsys, "inventory", f"docker:{ZOO}", "--all")
        assert "\\x1b[31mred" in said
        assert "\x1b" not in said

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_a_signal_leaves_no_container(
        self, number: int, jobs: str, zoo: Engine, tmp_path: Path, cache: str
    ) -> None:
        asking = self.started(tmp_path, cache, jobs)
        self.await_container(zoo, asking)
        os.killpg(asking.pid, number)
        asking.wait(60)
        assert asking.returncode in (130, -number)
        end = time.monotonic() + 30
        while left(zoo) and time.monotonic() < end:  # its other processes may be at it still
            time.sleep(0.2)

    def test_what_a_killed_process_left_is_removed_by_the_next(
        self, zoo: Engine, tmp_path: Path, cache: str
    ) -> None:
        asking = self.started(tmp_path, cache, "1")
        self.await_container(zoo, asking)
        # What is seen running may be at the end of its time, and the process that asks outlives the first of its group
        # long enough to remove it: all of the group are stopped, and what runs then stays.
        os.killpg(asking.pid, signal.SIGSTOP)
        while not left(zoo, "--filter", "status=running"):
            os.killpg(asking.pid, signal.SIGCONT)
            self.await_container(zoo, asking)
            os.killpg(asking.pid, signal.SIGSTOP)
        os.killpg(asking.pid, signal.SIGKILL)
        asking.wait()
        assert left(zoo, "--filter", "status=running")
        end = time.monotonic() + 30
        # Others of its group may be at their end, and the engine at a container that one of them asked for.
        while left(zoo) and time.monotonic() < end:
            assert answer("gcc") == "9.4.0"

    def started(self, folder: Path, cache: str, jobs: str) -> subprocess.Popen[bytes]:
        """A command that asks images that do not answer."""
        (folder / "images").write_text(f"docker:{HANGING}\ndocker://{HANGING}\n")
        words = ["validate", "--all", "images", "--jobs", jobs, "--expect", "gcc==12.*"]
        return subprocess.Popen(
            [sys.executable, "-m", "toolmatrix", *words],
            cwd=folder,
            env=os.environ | {"XDG_CACHE_HOME": cache, "PYTHONPATH": os.getcwd()},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def await_container(self, zoo: Engine, asking: subprocess.Popen[bytes]) -> None:
        # Some of what is asked for is not there, and the container that shows it ends at once: one that is seen twice
        # is that of a program that hangs.
        seen: set[str] = set()
        while not seen.intersection(running := left(zoo, "--filter", "status=running")):
            assert asking.poll() is None
            seen = {*running}
            time.sleep(1)


@pytest.mark.large
def test_an_engine_that_ends_meanwhile_is_told(
    program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = docker.missing("docker", "dockerd", "ip")
    if lacking:
        docker.unable(f"an engine to end needs {', '.join(lacking)}")
    with docker.own() as (own, process):
        monkeypatch.setenv("DOCKER_HOST", own.host)
        own.load(
            images.tar(images.saved(images.image({"bin/hangs": program}, Env=["PATH=/bin"]), ZOO))
        )
        killer = subprocess.Popen(["sh", "-c", f"sleep 5; kill -9 {process}"])
        with pytest.raises(ToolMissing, match="no engine answers"):
            answers(probe("hangs"), bounds=ProgramBounds(seconds=60))
        killer.wait()
