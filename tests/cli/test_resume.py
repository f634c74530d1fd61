"""`--resume` keeps what was said of an image, not of a name: what a name stands for may have changed since."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.engine import docker
from tests.engine.docker import Engine
from tests.images import hostile, images
from toolmatrix.api import subjects

pytestmark = pytest.mark.process

GOOD, BAD = (
    images.image({"etc/os-release": f"ID=debian\nVERSION_ID={version}\n".encode()})
    for version in ("12", "11")
)
NAME = "toolmatrix-test/resume"


@pytest.fixture
def engine(_large: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    with docker.needed() as found:
        monkeypatch.setenv("DOCKER_HOST", found.host)
        for tag, made in (("good", GOOD), ("bad", BAD)):
            found.load(images.tar(images.saved(made, f"{NAME}:{tag}")))
        yield found
        found.done("rmi", "--force", *(f"{NAME}:{tag}" for tag in ("good", "bad", "moved")))


def judged(real: Cli, here: Path, subject: str, *words: str) -> tuple[str, int]:
    """What is said of a subject, and how many results are kept by now."""
    (here / "list").write_text(f"{subject}\n")
    words = ("--resume", "kept.jsonl", "--expect", "distro==debian12", "--json", *words)
    run = real("validate", "--all", "list", *words)
    (one,) = run.json()["subjects"]
    return one["outcome"], len((here / "kept.jsonl").read_text().splitlines())


def test_a_tag_that_was_moved_is_judged_again(real: Cli, here: Path, engine: Engine) -> None:
    subject = f"docker:{NAME}:moved"
    engine.done("tag", f"{NAME}:good", f"{NAME}:moved")
    assert judged(real, here, subject) == ("yes", 1)
    assert judged(real, here, subject) == ("yes", 1)
    engine.done("tag", f"{NAME}:bad", f"{NAME}:moved")
    assert judged(real, here, subject) == ("no", 2)
    assert judged(real, here, subject) == ("no", 2)
    engine.done("tag", f"{NAME}:good", f"{NAME}:moved")
    assert judged(real, here, subject) == ("yes", 3)


@pytest.mark.usefixtures("engine")
def test_an_engine_that_did_not_answer_is_asked_again(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
        assert judged(real, here, f"docker:{NAME}:good") == ("unknown", 1)
    assert judged(real, here, f"docker:{NAME}:good") == ("yes", 2)


def test_a_tag_that_was_pushed_over_is_judged_again(
    real: Cli, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with hostile.running() as server:
        subject = f"registry://{server.host}/app:1"
        server.serve("app", GOOD)
        assert judged(real, here, subject) == ("yes", 1)
        server.asked.clear()
        assert judged(real, here, subject) == ("yes", 1)
        assert [one.path for one in server.asked] == ["/v2/app/manifests/1"]
        server.serve("app", BAD)
        assert judged(real, here, subject) == ("no", 2)


def archive(path: Path, made: images.Made) -> None:
    """An archive with a time of its own making, as tools write them whose output can be repeated."""
    path.write_bytes(images.tar(images.saved(made)))
    os.utime(path, (1, 1))


def layout(path: Path, made: images.Made) -> None:
    shutil.rmtree(path, ignore_errors=True)
    images.put(path, images.layout(made))


def copied(path: Path, made: images.Made) -> None:
    shutil.rmtree(path, ignore_errors=True)
    images.put(path, images.copied(made))


@pytest.mark.parametrize(
    ("subject", "write"),
    [("archive:x", archive), ("x", archive), ("oci:x", layout), ("dir:x", copied)],
)
def test_a_file_that_was_replaced_is_judged_again(
    subject: str, write: Callable[[Path, images.Made], None], real: Cli, here: Path
) -> None:
    write(here / "x", GOOD)
    assert judged(real, here, subject) == ("yes", 1)
    assert judged(real, here, subject) == ("yes", 1)
    write(here / "x", BAD)
    assert judged(real, here, subject) == ("no", 2)


def test_a_directory_as_a_root_is_judged_every_time(real: Cli, here: Path) -> None:
    release = images.put(here / "root", {"etc/os-release": b"ID=debian\nVERSION_ID=12\n"})
    assert judged(real, here, "dir:root") == ("yes", 1)
    (release / "etc" / "os-release").write_text("ID=debian\nVERSION_ID=11\n")
    assert judged(real, here, "dir:root") == ("no", 2)
    assert judged(real, here, "dir:root") == ("no", 3)


def test_an_image_that_changes_while_it_is_judged_is_judged_again(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolmatrix.inspection import subjects

    archive(here / "x", GOOD)
    before = subjects.observe

    def meanwhile(*given: Any) -> Any:
        found = before(*given)
        archive(here / "x", BAD)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(subjects, "observe", meanwhile)
        assert judged(real, here, "archive:x") == ("yes", 1)
    assert judged(real, here, "archive:x") == ("no", 2)


def test_what_was_asked_and_by_whom_counts(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(here / "x", GOOD)
    assert judged(real, here, "x") == ("yes", 1)
    assert judged(real, here, "x", "--expect", "arch==arm64") == ("no", 2)
    monkeypatch.setattr("toolmatrix.judging.pool.__version__", "0.0.0")
    assert judged(real, here, "x") == ("yes", 3)


def test_results_on_a_full_disk_are_an_error_with_a_way_out(real: Cli, here: Path) -> None:
    if os.geteuid() != 0:
        docker.unable("a disk of 16 KiB can be mounted by root alone")
    (here / "disk").mkdir()
    archive(here / "x", GOOD)
    names = [f"x{number}" for number in range(40)]
    for name in names:
        (here / name).symlink_to("x")
    (here / "list").write_text("\n".join(names) + "\n")
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", "disk"]
    if subprocess.run(mount, check=False, cwd=here, capture_output=True).returncode:
        docker.unable("a disk of 16 KiB needs the right to mount one")
    words = ("validate", "--all", "list", "--expect", "distro==debian12", "--json", "--resume")
    try:
        run = real(*words, "disk/kept.jsonl")
        assert run.code == 2
        assert run.json()["error"] == {
            "code": "TM905",
            "what": "cannot save the results",
            "where": {"path": "disk/kept.jsonl", "line": None, "column": None},
            "expected": "",
            "found": "No space left on device",
            "help": "earlier results are kept: free disk space and run it again, or name another file",
        }
        kept = (here / "disk" / "kept.jsonl").read_bytes()
    finally:
        subprocess.run(["umount", "disk"], check=True, cwd=here)
    assert kept.endswith(b"\n")
    (here / "kept.jsonl").write_bytes(kept)
    done = [json.loads(line)["subject"] for line in kept.splitlines()]
    assert 0 < len(done) < len(names)
    again = real(*words, "kept.jsonl")
    assert again.json()["summary"] == {"subjects": 40, "yes": 40, "no": 0, "unknown": 0}
    whole = (here / "kept.jsonl").read_bytes()
    assert whole.startswith(kept)
    assert sorted(json.loads(line)["subject"] for line in whole.splitlines()) == sorted(names)


# Parts of a list judged by themselves and merged are the whole list judged at once.


IMAGE = Path(__file__).parent.parent.parent / "docs" / "logs" / "image.json"
EXPECT = ("--expect", "python==3.9.*", "--expect", "gcc>=7")
NAMES = [f"image{number}.json" for number in range(5)]


@pytest.fixture
def many(here: Path) -> Path:
    """Five subjects in a list: one has another Python, and one is damaged."""
    for name in NAMES:
        shutil.copy(IMAGE, here / name)
    odd = here / NAMES[1]
    odd.write_text(odd.read_text().replace("3.9.18", "3.8.18"))
    (here / NAMES[3]).write_text("{")
    (here / "list").write_text("\n".join(NAMES))
    return here


def shards(real: Cli, count: int) -> list[str]:
    paths = []
    for number in range(1, count + 1):
        paths.append(f"{number}of{count}.jsonl")
        words = ("--shard", f"{number}/{count}", "--format", "jsonl", "--output", paths[-1])
        assert real("validate", "--all", "list", *EXPECT, *words).code in (0, 1, 4)
    return paths


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_parts_together_are_the_whole(many: Path, real: Cli, count: int) -> None:
    parts = shards(real, count)
    lines = [(many / one).read_text().splitlines() for one in parts]
    told = [[json.loads(line)["subject"] for line in part] for part in lines]
    assert sorted(name for part in told for name in part) == NAMES
    assert max(map(len, told)) - min(map(len, told)) <= 1
    for form in ("json", "junit", "text", "sarif"):
        whole = real("validate", "--all", "list", *EXPECT, "--format", form)
        merged = real("merge", *parts, "--subjects", "list", "--format", form)
        # A file for other tools is written, whatever it says.
        assert merged.code == whole.code == (0 if form == "sarif" else 1)
        assert merged.out == whole.out


@pytest.mark.usefixtures("many")
def test_what_no_part_tells_of_is_unknown(real: Cli) -> None:
    part = shards(real, 5)[0]
    found = real("merge", part, "--subjects", "list", "--json")
    assert found.code == 4
    outcomes = {one["subject"]: one["outcome"] for one in found.json()["subjects"]}
    assert outcomes == dict.fromkeys(NAMES, "unknown") | {NAMES[0]: "yes"}
    # Nobody said what else there was.
    assert real("merge", part).code == 0


def test_a_line_that_was_cut_off_is_none(many: Path, real: Cli) -> None:
    part, other = shards(real, 2)
    (many / part).write_bytes((many / part).read_bytes()[:-9])
    found = real("merge", part, other, "--subjects", "list", "--json").json()
    assert found["summary"]["unknown"] == 2  # the damaged one, and the one that was cut off
    # Without a list nobody knows what it was about, and that there was something is told.
    lost = real("merge", part, "--json")
    told = {one["subject"]: one["outcome"] for one in lost.json()["subjects"]}
    assert (lost.code, told[part]) == (4, "unknown")


def test_no_results_are_no_answer(many: Path, real: Cli) -> None:
    (many / "empty").write_bytes(b"")
    found = real("merge", "empty")
    assert found.code == 2
    assert found.err.startswith("error[TM901]: no results found\n")


@pytest.mark.parametrize("text", ['{"my": "config"}', "{'half", "[", "words"])
def test_a_file_of_one_line_without_its_end_is_left_as_it_is(
    text: str, many: Path, real: Cli
) -> None:
    (many / "mine").write_text(text)
    for words in (("validate", NAMES[0], *EXPECT, "--resume", "mine"), ("merge", "mine")):
        found = real(*words)
        assert found.code == 2
        assert found.err.startswith("error[TM901]: not a file of results\n  --> mine:1\n")
    assert (many / "mine").read_text() == text


def test_results_come_through_a_pipe_as_well(many: Path, real: Cli) -> None:
    (part,) = shards(real, 1)
    reading, writing = os.pipe()
    os.write(writing, (many / part).read_bytes())
    os.close(writing)
    try:
        assert real("merge", f"/dev/fd/{reading}").out == real("merge", part).out
    finally:
        os.close(reading)
    piped = real("merge", "-", piped=(many / part).read_text())
    assert piped.out == real("merge", part).out


def test_results_that_do_not_belong_together_are_refused(many: Path, real: Cli) -> None:
    one, two = shards(real, 2)
    real("validate", "--all", "list", "--expect", "gcc>=7", "--resume", "other")
    # They tell different things about the same subjects.
    refused = real("merge", one, "other")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error[TM901]: these are results of different runs\n")
    again = json.loads((many / two).read_text().splitlines()[0])
    again["verdicts"] = []
    (many / "again").write_text(json.dumps(again) + "\n")
    refused = real("merge", two, "again")
    assert refused.err.startswith(
        f"error[TM901]: two files have different results for `{NAMES[1]}`"
    )
    (many / "none").write_text('{"schema": 1}\n')
    refused = real("merge", "none")
    assert refused.err.startswith("error[TM901]: not a file of results\n  --> none:1\n")
    assert real("merge", "nowhere").code == 2


# What another version may have.
LATER = [("kind", "odd"), ("code", "odd")]
NUMBERS = (
    *("subject", "platform", "lock", "verdicts", "verdict", "kind"),
    *("code", "facts", "others", "where"),
)
OTHERS: list[tuple[str, object]] = [("run", {}), ("verdict", "odd"), ("verdicts", [{}])]
OTHERS += [(name, 1) for name in NUMBERS]


@pytest.mark.parametrize(("name", "value"), [*LATER, *OTHERS])
def test_results_of_another_shape_are_refused_and_of_another_version_told(
    name: str, value: object, many: Path, real: Cli
) -> None:
    (part,) = shards(real, 1)
    body = json.loads((many / part).read_text().splitlines()[0])
    (body if name in body else body["verdicts"][0])[name] = value
    (many / "odd").write_text(json.dumps(body) + "\n")
    for form in ("text", "html", "sarif", "junit", "github", "json"):
        found = real("merge", "odd", "--format", form)
        assert found.code in ((0, 1, 4) if (name, value) in LATER else (2,)), found.err


@pytest.mark.parametrize("end", ["\n", ""])
def test_results_that_are_nested_without_end_are_refused(many: Path, real: Cli, end: str) -> None:
    (many / "deep").write_text("[" * 100_000 + end)
    assert real("merge", "deep").err.startswith("error[TM901]: not a file of results\n")


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/2/3"])
@pytest.mark.usefixtures("many")
def test_a_part_that_is_none_is_refused(real: Cli, shard: str) -> None:
    refused = real("validate", "--all", "list", *EXPECT, "--shard", shard)
    assert refused.code == 2
    assert f"error[TM901]: `--shard {shard}` cannot be read" in refused.err


def test_a_list_that_is_too_long_is_refused_and_not_cut(
    many: Path, real: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (many / "list").stat().st_size
    # The bound is in MiB where it is told.
    for bound, code in ((size, 1), (size - 1, 2)):
        monkeypatch.setattr(subjects, "LARGEST_LIST", bound)
        for name, text in (("list", ""), ("-", (many / "list").read_text())):
            run = real("validate", "--all", name, *EXPECT, piped=text)
            assert run.code == code
            assert ("cannot read subjects" in run.err) == (code == 2)


@pytest.mark.usefixtures("many")
def test_what_is_wrong_in_a_list_from_stdin_is_told_with_its_place(real: Cli) -> None:
    run = real("validate", "--all", "-", *EXPECT, piped="services:\n  web: {image: $NAME}\n")
    assert run.code == 2
    assert "\n  --> stdin:2:16\n" in run.err
