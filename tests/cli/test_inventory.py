"""`toolmatrix inventory`: every kind of subject, what it prints, and what it refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.images import images
from toolmatrix.cli.main import main

MADE = images.image(
    {
        "etc/os-release": b"ID=debian\nVERSION_ID=12\n",
        "var/lib/dpkg/status.d/a": b"Package: a\nVersion: 1\n",
    },
    Labels={"evil": "\x1b]0;x\x07<script>"},
    Env=["CFLAGS=-fsigned-char"],
)


@pytest.fixture
def subjects(here: Path) -> Path:
    """One image in every form."""
    (here / "image.tar").write_bytes(images.tar(images.saved(MADE)))
    images.put(here / "layout", images.layout(MADE))
    images.put(here / "root", {"etc/os-release": b"ID=debian\nVERSION_ID=12\n"})
    return here


@pytest.mark.parametrize("subject", ["archive:image.tar", "oci:layout", "dir:root"])
def test_every_form_is_read(cli: Cli, subjects: Path, subject: str) -> None:
    run = cli("inventory", subject, "--json")
    document = run.json()
    validated(document, "inventory")
    assert (run.code, document["subject"], subjects.name) == (0, subject, "work")
    assert document["components"]["distro"][0]["version"] == "debian12"
    (subjects / "i.json").write_text(run.out)
    assert cli("inventory", "inventory:i.json", "--json").out == run.out


@pytest.mark.parametrize(
    ("path", "like"),
    [("image.tar", "archive"), ("layout", "oci"), ("root", "dir"), ("i.json", "inventory")],
)
def test_a_path_needs_no_scheme(cli: Cli, subjects: Path, path: str, like: str) -> None:
    (subjects / "i.json").write_text(cli("inventory", "archive:image.tar", "--json").out)
    plain = cli("inventory", path, "--json").json()
    named = cli("inventory", f"{like}:{path}", "--json").json()
    assert {**plain, "subject": ""} == {**named, "subject": ""}


@pytest.mark.parametrize("subject", ["archive:-", "-"])
def test_a_pipe_is_read(here: Path, subject: str) -> None:
    data = images.gzipped(images.tar(images.saved(MADE)))
    stdin, screen = io.TextIOWrapper(io.BytesIO(data)), io.StringIO()
    line = ["inventory", subject, "--json", "--no-store"]
    code = main(line, {"HOME": str(here)}, stdin, screen, screen)
    said = json.loads(screen.getvalue())
    assert (code, said["platform"], list(here.iterdir())) == (0, "linux/amd64", [])


def test_text_shows_how_each_value_was_seen(cli: Cli, subjects: Path) -> None:
    run = cli("inventory", "archive:image.tar")
    assert subjects.is_dir()
    assert run.out.splitlines() == [
        "archive:image.tar  linux/amd64",
        "",
        "components",
        "  distro  debian12  default  os-release  etc/os-release",
        "",
        "features",
        "  arch                amd64          configuration  linux/amd64",
        "  flag:-fsigned-char  -fsigned-char  configuration  Env CFLAGS",
        "",
        "not inspected",
        "  recorded options  no file was compiled with -frecord-gcc-switches or -g",
        "  sonames           it has no ELF file",
        "",
        "1 component, 5 features, 0 libraries needed, 0 missing",
    ]


def test_nothing_that_an_image_says_reaches_a_terminal_raw(cli: Cli, subjects: Path) -> None:
    run = cli("inventory", "archive:image.tar", "--all")
    assert "label:evil" in run.out
    assert "\x1b" not in run.out + str(subjects)
    assert "\\x1b]0;x\\x07<script>" in run.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.tar"], 2, "error[TM901]: this is not a subject"),
        (["debian:12"], 2, "error[TM901]: this is not a subject"),
        ([""], 2, "error[TM901]: this is not a subject"),
        (["archive:"], 2, "error[TM901]: this is not a subject"),
        (["archive:none.tar"], 2, "error[TM907]: cannot read the image"),
        (["archive:root"], 2, "error[TM907]: cannot read the image"),
        (["oci:root"], 2, "error[TM907]: cannot read the image"),
        (["dir:image.tar"], 2, "error[TM907]: cannot read the directory"),
        (["archive:image.tar", "--platform", "linux/arm64"], 2, "error[TM907]: there is no image"),
    ],
)
def test_bad_subjects_give_one_error(
    cli: Cli, subjects: Path, words: list[str], code: int, said: str
) -> None:
    run = cli("inventory", *words)
    assert (run.code, run.out) == (code, ""), subjects
    assert run.err.startswith(said)


@pytest.mark.parametrize("subject", ["archive:image.tar", "oci:layout"])
def test_a_store_changes_nothing_but_what_it_takes(cli: Cli, subjects: Path, subject: str) -> None:
    plain = cli("inventory", subject, "--json", "--no-store")
    assert not (subjects / "readings").exists()
    (subjects / "file").write_text("")
    (subjects / "damaged").symlink_to("/dev/full")
    for place in ("readings", "readings", "memory://readings"):
        run = cli("inventory", subject, "--json", "--store", place)
        assert (run.code, run.out, run.err) == (plain.code, plain.out, plain.err)
    for place, why in (("file/below", "Not a directory"), ("damaged", "File exists")):
        run = cli("inventory", subject, "--json", "--store", place)
        assert (run.code, run.out) == (plain.code, plain.out)
        assert run.err == f"{plain.err}note: nothing is cached in `{place}`: {why}\n"
    kept = sorted(path for path in (subjects / "readings").rglob("*.tmx"))
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:-9])
    assert cli("inventory", subject, "--json", "--store", "readings").out == plain.out
    whole = [path.stat().st_size for path in kept]
    assert cli("inventory", subject, "--json", "--store", "readings").out == plain.out
    assert [path.stat().st_size for path in kept] == whole


def test_a_store_that_nobody_can_open_is_refused(cli: Cli, subjects: Path) -> None:
    assert subjects.exists()
    run = cli("inventory", "archive:image.tar", "--store", "nowhere://bucket")
    assert run.code == 2
    assert "the store is not a folder or a supported URL" in run.err
