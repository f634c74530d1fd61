"""`toolmatrix update`: a compiled matrix from a file, a folder, an address or a registry, and what is no use."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b, sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.images import hostile, registries
from tests.images.hostile import Reply
from tests.matrix import small_built_in
from toolmatrix import __version__
from toolmatrix.api import feeds
from toolmatrix.errors import MatrixError
from toolmatrix.factbase import installed
from toolmatrix.factbase.bundle import NAME

NEWER = "2026-01-09"
# The program with the matrix of a test: it kills itself as it begins a given step of those that change a folder.
UPDATING = """
import os, signal, sys
from toolmatrix import resources
from toolmatrix.cli.main import main

root, folder, step, source = sys.argv[1:]
resources.matrix_root = lambda: root
resources.builtin_index = lambda: None
changes = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree"}
begun = set()


def hook(event, args):
    if event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR):
        # Of the many files of a folder the first stands for all.
        key = os.path.dirname(str(args[0]))
    elif event in changes:
        key = (event, *map(str, args))
    else:
        return
    if str(args[0]).startswith(folder):
        begun.add(key)
        if len(begun) == int(step):
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(hook)
sys.exit(main(["update", source], os.environ, sys.stdin, sys.stdout, sys.stderr))
"""
ASK = ("resolve", "app==2.1.*", "--from", "wheel", "--target", "x86", "--accelerator", "none")


@pytest.fixture
def own(cli: Cli, tmp_path: Path) -> Cli:
    """A run with a cache and data of its own."""
    places = {"XDG_CACHE_HOME": str(tmp_path / "c"), "XDG_DATA_HOME": str(tmp_path / "data")}
    return partial(cli, **places)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small matrix in the place of the built-in one."""
    return small_built_in(tmp_path / "root", monkeypatch)


@pytest.fixture
def feed(own: Cli, root: Path, here: Path) -> Path:
    """A folder with the bundle of a newer matrix, which has another release."""
    return published(own, root, here / "feed")


def published(own: Cli, root: Path, feed: Path, day: str = NEWER, release: str = "2.1.9") -> Path:
    before = {path: path.read_text() for path in root.iterdir()}
    front, facts = root / "matrix.yaml", root / "facts.yaml"
    front.write_text(before[front].replace("2026-01-02", day))
    row = '      - {app: RELEASE, date: 2026-01-05, python: "3.12", machine: x86_64}\n'
    anchor = "  - id: app-tested"
    facts.write_text(before[facts].replace(anchor, row.replace("RELEASE", release) + anchor))
    assert own("export", "--bundle", str(feed)).code == 0
    for path, text in before.items():
        path.write_text(text)
    return feed / NAME if not feed.is_dir() else feed


def newest(own: Cli) -> str:
    chosen: str = own(*ASK, "--json").json()["targets"]["x86"]["components"]["app"]["version"]
    return chosen


def test_every_command_answers_from_the_newer_matrix_and_back(own: Cli, feed: Path) -> None:
    assert newest(own) == "2.1.3"
    run = own("update", "feed", "--json")
    document = run.json()
    validated(document, "update")
    assert (run.code, document["changed"]) == (0, True)
    assert (document["matrix"]["date"], document["before"]["date"]) == (NEWER, "2026-01-02")
    assert newest(own) == "2.1.9"
    line = own("--version").out
    assert line.startswith(f"toolmatrix {__version__} (matrix {NEWER}, ")
    assert line.endswith(f" facts, from {feed})\n")
    # With files on top, which are compiled with the fact files of the bundle.
    Path("mine.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        "sources: {mine: {title: mine, at: here, read: 2026-01-01}}\n"
        "statements: [{id: mine, when: {app: 2.1.9}, limits: {python: 3.6}, source: mine,"
        " where: here, evidence: ran}]\n"
    )
    assert "2.1.3" in own(*ASK, "--matrix", "mine.yaml").out
    news = own("news", "--json").json()
    validated(news, "news")
    (part,) = news["components"]
    (release,) = part["releases"]
    assert (part["component"], release["release"], release["how"]) == ("app", "2.1.9", "new")
    assert release["words"] == ["needs python 3.12"]
    assert own("update", "feed").out.startswith(f"unchanged: the matrix of {NEWER} ")
    assert own("update", "--back").code == 0
    assert newest(own) == "2.1.3"
    assert own("update", "--back").code == 0
    assert newest(own) == "2.1.9"


@pytest.mark.usefixtures("feed")
def test_the_newer_of_two_is_in_use(own: Cli, root: Path, here: Path) -> None:
    older = published(own, root, here / "older", "2026-01-01", "2.1.8")
    assert own("update", str(older)).out.startswith("unchanged: the matrix of 2026-01-02 ")
    assert own("update", "feed", "--check").code == 1
    assert newest(own) == "2.1.3"
    assert own("update", "feed").code == 0
    # Whoever writes fact files wants the answers from them.
    (root / "matrix.yaml").write_text((root / "matrix.yaml").read_text() + "# edited\n")
    assert newest(own) == "2.1.3"


def test_a_program_of_another_version_ignores_it(
    own: Cli, feed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own("update", str(feed / NAME)).code == 0
    monkeypatch.setattr(installed, "__version__", "99.0.0")
    assert newest(own) == "2.1.3"
    run = own("update", "feed")
    assert (run.code, run.err.splitlines()[0]) == (
        2,
        "error[TM903]: this bundle is for other versions of toolmatrix",
    )


def _head(data: bytes, **changes: Any) -> bytes:
    line, _, packed = data.partition(b"\n")
    head = {**json.loads(line), **changes}
    return json.dumps(head).encode() + b"\n" + packed


DAMAGED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda data: data[:-9], "this bundle is damaged"),
    "larger": (lambda data: data + b"more", "this bundle is damaged"),
    "another byte": (lambda data: data[:-60] + b"?" + data[-59:], "this bundle is damaged"),
    "another schema": (
        lambda data: _head(data, schema="toolmatrix.bundle/2"),
        "this is not a bundle of a matrix",
    ),
    "another format": (
        lambda data: _head(data, format="toolmatrix-index/99"),
        "this bundle is for other versions of toolmatrix",
    ),
    "a newer program": (
        lambda data: _head(data, programs=">=99.0,<99.1"),
        "this bundle is for other versions of toolmatrix",
    ),
    "another digest": (
        lambda data: _head(data, digest="sha256:" + "0" * 64),
        "this bundle is damaged",
    ),
    "a path that leads out": (
        lambda data: _head(data, paths=["../matrix.yaml"]),
        "the head of a bundle is damaged",
    ),
    "no archive": (
        lambda data: _head(
            data.partition(b"\n")[0] + b"\nPK", size=2, sha256=sha256(b"PK").hexdigest()
        ),
        "this bundle is damaged",
    ),
    "a page": (lambda _: b"<html>Sign in</html>\n", "this is not a bundle of a matrix"),
    "a lock": (lambda _: b'schema = "toolmatrix.lock/2"\n', "this is not a bundle of a matrix"),
    "nothing": (lambda _: b"", "this is not a bundle of a matrix"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_no_use_is_one_error_and_the_old_one_stays(own: Cli, feed: Path, name: str) -> None:
    change, said = DAMAGED[name]
    bad = feed.parent / "bad.tmx"
    bad.write_bytes(change((feed / NAME).read_bytes()))
    run = own("update", "bad.tmx")
    assert (run.code, run.out) == (2, "")
    assert run.err.splitlines()[0] == f"error[TM903]: {said}"
    assert newest(own) == "2.1.3"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no source to update from"),
        (("nothing",), "there is no bundle of a matrix"),
        (("https://matrix.example.org/", "--offline"), "this source is on the network"),
        (("feed", "--key", "no key"), "this is not a public key of minisign"),
        (("--back",), "there is no matrix to go back to"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    own: Cli, feed: Path, words: tuple[str, ...], said: str
) -> None:
    assert feed.is_dir()
    run = own("update", *words)
    assert (run.code, run.err.splitlines()[0].partition(": ")[2]) == (2, said)


@pytest.mark.usefixtures("feed")
def test_killed_half_way_the_old_one_answers(
    own: Cli, root: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = published(own, root, here / "later", "2026-02-01", "2.2.0")
    assert own("update", "feed").code == 0

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for module in ("write_folder", "replace_file"):
        with monkeypatch.context() as patch:
            patch.setattr(f"toolmatrix.commands.update.{module}", killed)
            assert own("update", str(later)).code == 130
        assert newest(own) == "2.1.9"
    assert own("update", str(later)).code == 0


def updating(root: Path, data: Path, source: str, step: int = 0) -> subprocess.Popen[bytes]:
    """A process of its own that updates, and that SIGKILL ends at a step; 0 is none."""
    places = {"XDG_CACHE_HOME": str(data.parent / "c"), "XDG_DATA_HOME": str(data)}
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), **places}
    words = (str(root), str(data), str(step), source)
    return subprocess.Popen([sys.executable, "-c", UPDATING, *words], env=env)


@pytest.mark.process
@pytest.mark.usefixtures("feed")
def test_a_process_that_is_killed_at_any_step_leaves_a_matrix_that_answers(
    own: Cli, root: Path, here: Path, tmp_path: Path
) -> None:
    later = str(published(own, root, here / "later", "2026-02-01", "2.1.10"))
    data, before = tmp_path / "data", tmp_path / "before"
    assert own("update", "feed").code == 0
    shutil.copytree(data, before)
    answers: list[str] = []
    for step in count(1):
        shutil.rmtree(data)
        shutil.copytree(before, data)
        code = updating(root, data, later, step).wait(60)
        answers.append(newest(own))
        if code == 0:
            break
        assert code == -signal.SIGKILL
        # What a killed run left behind keeps no later one from its work, and is removed by it.
        assert own("update", later).code == 0
        assert newest(own) == "2.1.10"
        assert (
            len([path for path in (data / "toolmatrix" / "matrix").iterdir() if path.is_dir()]) == 2
        )
    # Until the record is renamed the old one answers, and from then on the new one.
    assert answers == sorted(answers, key=["2.1.9", "2.1.10"].index)
    assert min(map(answers.count, ("2.1.9", "2.1.10"))) > 1


@pytest.mark.process
def test_a_process_that_is_killed_while_it_reads_leaves_the_old_one(
    own: Cli, root: Path, feed: Path, tmp_path: Path
) -> None:
    data = (feed / NAME).read_bytes()
    children: list[subprocess.Popen[bytes]] = []

    def half() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data)
        yield data[: len(data) // 2]
        children[0].kill()

    with hostile.running() as server:
        server.answers[f"/{NAME}"] = Reply(raw=half())
        children.append(updating(root, tmp_path / "data", f"{server.url}/"))
        assert children[0].wait(60) == -signal.SIGKILL
        assert newest(own) == "2.1.3"
        server.answers[f"/{NAME}"] = Reply(body=data)
        assert updating(root, tmp_path / "data", f"{server.url}/").wait(60) == 0
    assert newest(own) == "2.1.9"


class Maker:
    """Who publishes bundles, with a key as minisign has it."""

    def __init__(self, number: int) -> None:
        self.key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
        self.id = bytes([number]) * 8
        self.public = base64.b64encode(
            b"Ed" + self.id + self.key.public_key().public_bytes_raw()
        ).decode()

    def sign(self, path: Path) -> None:
        """Write the signature of a file beside it."""
        signature = self.key.sign(blake2b(path.read_bytes()).digest())
        comment = "timestamp:1\tfile:matrix"
        whole = self.key.sign(signature + comment.encode())
        packed = base64.b64encode(b"ED" + self.id + signature).decode()
        lines = "untrusted comment: x", packed, f"trusted comment: {comment}"
        text = "\n".join((*lines, base64.b64encode(whole).decode(), ""))
        path.with_name(path.name + ".minisig").write_text(text)


def test_a_configured_key_has_to_verify_it(own: Cli, feed: Path, here: Path) -> None:
    mine, other = Maker(1), Maker(2)
    (here / "key.pub").write_text(f"untrusted comment: minisign public key\n{mine.public}\n")
    refused = own("update", "feed", "--key", "key.pub")
    assert (refused.code, refused.err.splitlines()[0]) == (
        2,
        "error[TM903]: the bundle has no signature",
    )
    other.sign(feed / NAME)
    refused = own("update", "feed", "--key", "key.pub")
    assert refused.err.splitlines()[0] == "error[TM903]: the signature of the bundle does not fit"
    assert newest(own) == "2.1.3"
    mine.sign(feed / NAME)
    assert own("update", "feed", TOOLMATRIX_KEY=mine.public).code == 0
    assert newest(own) == "2.1.9"


def test_later_updates_keep_the_key(own: Cli, feed: Path, root: Path, here: Path) -> None:
    mine, other = Maker(1), Maker(2)
    mine.sign(feed / NAME)
    assert own("update", "feed", "--key", mine.public).code == 0
    later = published(own, root, here / "later", "2026-02-01", "2.2.0")
    other.sign(later / NAME)
    assert own("update", str(later)).code == 2
    mine.sign(later / NAME)
    assert own("update", str(later), "--json").json()["key"] == mine.public


def test_a_signature_of_minisign_itself_is_read() -> None:
    """That of the documentation of rust-minisign-verify, made by minisign."""
    key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
    signature = (
        b"untrusted comment: signature from minisign secret key\n"
        b"RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n"
        b"trusted comment: timestamp:1633700835\tfile:test\tprehashed\n"
        b"wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==\n"
    )
    feeds.verify(b"test", signature, feeds.public_key(key), "test")
    for data, changed in (
        (b"Test", signature),
        (b"test", signature.replace(b"file:test", b"file:best")),
        (b"test", signature[:120]),
    ):
        with pytest.raises(MatrixError, match="does not fit"):
            feeds.verify(data, changed, key, "test")


@pytest.mark.process
def test_a_folder_is_served_over_http(own: Cli, feed: Path) -> None:
    with hostile.running() as server:
        data = (feed / NAME).read_bytes()
        for reply, code in (
            (Reply(404), 2),
            (Reply(403), 5),
            (Reply(body=b"<html>"), 2),
            (Reply(body=data[:-1]), 2),
            (Reply(raw=[b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", data[:2000]]), 5),
        ):
            server.answers[f"/matrix/{NAME}"] = reply
            run = own("update", f"{server.url}/matrix/")
            assert (run.code, run.err.count("error[")) == (code, 1)
            assert newest(own) == "2.1.3"
        server.answers[f"/matrix/{NAME}"] = Reply(body=data)
        assert own("update", f"{server.url}/matrix/").code == 0
        assert newest(own) == "2.1.9"
        # The source of the last update is the next one's.
        assert own("update").out.startswith("unchanged")


def test_a_url_of_fsspec_is_read(own: Cli, feed: Path) -> None:
    import fsspec  # type: ignore[import-untyped]

    with fsspec.open(f"memory://team/{NAME}", "wb") as file:
        file.write((feed / NAME).read_bytes())
    assert own("update", "memory://team").code == 0
    assert own("update", "memory://nowhere").code == 2
    assert own("update", "nothing-like://x").code == 5
    assert newest(own) == "2.1.9"


@pytest.mark.large
@pytest.mark.process
def test_an_artifact_of_a_registry_is_read(
    own: Cli, feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registries.need("docker-registry")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    maker = Maker(1)
    maker.sign(feed / NAME)
    with registries.running(tmp_path) as registry:
        registry.artifact("team/matrix:latest", sorted(feed.iterdir()))
        place = f"oci://{registry.host}/team/matrix:latest"
        assert own("update", place, "--key", Maker(2).public).code == 2
        assert own("update", f"{place}-none").code == 2
        run = own("update", place, "--key", maker.public)
        assert (run.code, run.err.count("error[")) == (0, 0)
        assert newest(own) == "2.1.9"
