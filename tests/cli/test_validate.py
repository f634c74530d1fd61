"""`toolmatrix validate`: subjects against locks and expectations, in every form, many at once and resumed."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.images import images as image_files
from tests.judging.test_images import ARM, good, seen, with_component, with_feature
from toolmatrix.inspection import subjects
from toolmatrix.inspection.model import LOCK as LOCK_INSIDE
from toolmatrix.inspection.model import Inventory
from toolmatrix.judging.expectations import DIGEST
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import Lock, LockedComponent, LockedEnvironment, LockedFlags
from toolmatrix.rendering.dockerfile import FOLDER

LOCK = Lock(
    matrix_digest="sha256:" + "0" * 64,
    matrix_date="2026-01-01",
    environments={
        "default": LockedEnvironment(
            request=("tensorflow==2.11.0",),
            targets={"arm": ARM, "x86": ARM.replace(platform="linux/amd64")},
        )
    },
)
GOOD = with_feature(good(), "label:" + DIGEST, *seen(lock_file.digest(LOCK)))
BAD = with_component(GOOD, "numpy", *seen("1.24.4", layer="sha256:numpy"))
DOUBTFUL = with_component(GOOD, "cuda", *seen("11.2"))
SIZES = {"good": GOOD, "bad": BAD, "doubtful": DOUBTFUL}


def test_the_lock_is_looked_for_where_it_is_put() -> None:
    assert f"/{LOCK_INSIDE}" == f"{FOLDER}/toolmatrix.lock"


@pytest.fixture
def images(here: Path) -> Path:
    """A folder with a lock and saved inventories."""
    (here / "toolmatrix.lock").write_text(lock_file.text(LOCK))
    for name, inventory in SIZES.items():
        save(here, name, inventory)
    (here / "broken.json").write_text('{"schema": "toolmatrix.inventory/1"')
    return here


def save(here: Path, name: str, inventory: Inventory) -> None:
    (here / f"{name}.json").write_text(json.dumps(inventory.to_json()))


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize(("name", "code"), [("good", 0), ("bad", 1), ("doubtful", 4)])
def test_the_exit_code_tells_right_from_wrong_from_cannot_say(
    real: Cli, name: str, code: int
) -> None:
    run = real("validate", f"inventory:{name}.json")
    assert (run.code, run.err) == (code, "")


@pytest.mark.usefixtures("images")
def test_text_names_what_is_wrong_and_where_it_came_from(real: Cli) -> None:
    lines = real("validate", "inventory:bad.json").out.splitlines()
    assert lines[0] == "inventory:bad.json  linux/arm64"
    (wrong,) = [line for line in lines if line.startswith("FAIL")]
    assert wrong.split()[:5] == ["FAIL", "numpy", "1.24.4", "wanted", "1.26.4"]
    assert wrong.endswith("TM401")
    assert "1 failed" in next(line for line in lines if "checked" in line)
    assert "help: numpy: 1.24.4 came in with `RUN install numpy`" in lines[-2]


def test_the_target_is_that_of_the_platform_or_the_label(real: Cli, images: Path) -> None:
    assert real("validate", "inventory:good.json", "--json").json()["lock"]["target"] == "arm"
    other = real("validate", "inventory:good.json", "--target", "x86", "--json")
    found = {one["code"] for one in other.json()["verdicts"] if one["verdict"] == "FAIL"}
    assert (other.code, found) == (1, {"TM403"})
    labelled = with_feature(GOOD, "label:io.github.toolmatrix.target", *seen("x86"))
    save(images, "labelled", labelled)
    run = real("validate", "inventory:labelled.json", "--json")
    assert run.json()["lock"]["target"] == "x86"


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--target", "amd"), 3),
        (("--target", "x86,arm"), 2),
        (("--lock", "none.lock"), 2),
        (("--only", "numpi"), 3),
        (("--platform", "linux/amd64"), 3),
        (("--expect", "numpy"), 2),
        (("--expect-file", "none"), 2),
    ],
)
def test_bad_words_are_one_clear_error(real: Cli, words: tuple[str, ...], expected: int) -> None:
    run = real("validate", "inventory:good.json", *words)
    assert run.code == expected
    assert run.err.startswith("error[TM")
    assert run.out == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"schema": "toolmatrix.lock/1"}',
        '{"schema": "toolmatrix.inventory/1"}',
        '{"schema": "toolmatrix.inventory/1", "subject": 3}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_what_is_no_inventory_is_refused(real: Cli, images: Path, text: str) -> None:
    (images / "odd.json").write_text(text)
    run = real("validate", "inventory:odd.json")
    assert run.code == 2
    assert "TM907" in run.err
    assert "Traceback" not in run.err


def test_without_a_lock_expectations_are_enough(real: Cli, images: Path) -> None:
    (images / "toolmatrix.lock").unlink()
    assert real("validate", "inventory:good.json").code == 2
    run = real("validate", "inventory:good.json", "--expect", "python==3.9.*", "--json")
    assert run.code == 0
    assert run.json()["lock"] is None
    (images / "wanted").write_text("# what we want\npython==3.11.*\n\narch==arm64\n")
    run = real("validate", "inventory:good.json", "--expect-file", "wanted", "--json")
    assert [one["verdict"] for one in run.json()["verdicts"]] == ["FAIL", "pass"]
    (images / "wanted").write_text("arch==arm64\npython\n")
    assert "wanted:2" in real("validate", "inventory:good.json", "--expect-file", "wanted").err


@pytest.mark.usefixtures("images")
def test_expectations_add_to_a_lock_that_is_named(real: Cli) -> None:
    words = ("--lock", "toolmatrix.lock", "--expect", "python==3.8")
    found = real("validate", "inventory:good.json", *words, "--json").json()["verdicts"]
    assert [one["name"] for one in found if one["verdict"] == "FAIL"] == ["python"]
    assert len(found) > 10


@pytest.mark.usefixtures("images")
def test_only_some_checks(real: Cli) -> None:
    run = real("validate", "inventory:bad.json", "--only", "python,flag", "--json")
    assert run.code == 0
    assert {one["kind"] for one in run.json()["verdicts"]} == {"component", "flag"}


def test_every_form_says_the_same(real: Cli, images: Path) -> None:
    ask = partial(real, "validate", "inventory:bad.json")
    document = ask("--json").json()
    validated(document, "verdicts")
    assert document["outcome"] == "no"
    (line,) = ask("--format", "jsonl").out.splitlines()
    told = json.loads(line)
    # By its run `merge` knows what a line may stand beside.
    assert len(told.pop("run")) == 64
    assert told == document
    suite = ET.fromstring(ask("--format", "junit").out)[0]  # noqa: S314 - made just before
    assert suite.get("failures") == "1"
    sarif = ask("--format", "sarif")
    assert sarif.code == 0
    errors = [one for one in sarif.json()["runs"][0]["results"] if one["level"] == "error"]
    assert [one["ruleId"] for one in errors] == ["TM401"]
    summary = images / "summary.md"
    github = ask("--format", "github", GITHUB_STEP_SUMMARY=str(summary))
    assert github.code == 1
    assert github.out.startswith("::error file=toolmatrix.lock,line=1,title=TM401::")
    assert "TM401" in summary.read_text()
    full = ask("--format", "github", GITHUB_STEP_SUMMARY="/dev/full")
    assert (full.code, full.out) == (1, github.out)
    assert full.err == ("note: cannot write the step summary: /dev/full: No space left on device\n")
    page = ask("--format", "html", "--output", "page.html")
    assert (page.code, page.out) == (1, "")
    assert "1.24.4" in (images / "page.html").read_text()


def rendered(lock: Lock, label: str) -> dict[str, bytes]:
    """An archive of an image as Dockerfiles are rendered: the lock lies inside, and a label has its digest."""
    made = image_files.image(
        {
            "etc/os-release": b"ID=debian\nVERSION_ID=12\n",
            LOCK_INSIDE: lock_file.text(lock).encode(),
        },
        platform="linux/arm64",
        Labels={DIGEST: label},
    )
    return image_files.layout(made)


SMALL = LOCK.replace(
    environments={
        "default": LockedEnvironment(
            request=("distro",),
            targets={
                "arm": ARM.replace(
                    components={
                        "distro": LockedComponent(version="debian12", evidence="stated", facts=())
                    },
                    archs={},
                    flags=LockedFlags(),
                )
            },
        )
    }
)
OTHER = SMALL.replace(matrix_date="2026-01-02")
RENDERED = SMALL.replace(render={"recipe": "toolchain"})
"""The same answers, with the options by which a directory is rendered."""


@pytest.mark.parametrize(
    ("inside", "label", "against", "wrong"),
    [
        (SMALL, SMALL, None, []),
        (SMALL, SMALL, SMALL, []),
        (RENDERED, SMALL, None, []),
        (RENDERED, SMALL, SMALL, []),
        (OTHER, SMALL, None, [("TM407", DIGEST)]),
        (OTHER, SMALL, SMALL, [("TM411", "lock")]),
        (SMALL, SMALL, OTHER, [("TM407", DIGEST)]),
    ],
)
def test_the_lock_inside_is_what_an_image_says_of_itself(
    real: Cli, here: Path, inside: Lock, label: Lock, against: Lock | None, wrong: list[Any]
) -> None:
    image_files.put(here / "layout", rendered(inside, lock_file.digest(label)))
    if against:
        (here / "toolmatrix.lock").write_text(lock_file.text(against))
    run = real("validate", "layout", "--json")
    found = run.json()
    failed = [(one["code"], one["name"]) for one in found["verdicts"] if one["verdict"] == "FAIL"]
    assert (failed, run.code) == (wrong, int(bool(wrong)))
    assert found["lock"]["path"] == ("toolmatrix.lock" if against else f"/{LOCK_INSIDE}")


def test_what_only_another_lock_wants_is_told_apart(real: Cli, here: Path) -> None:
    image_files.put(here / "layout", rendered(SMALL, lock_file.digest(SMALL)))
    target = SMALL.all_targets["arm"]
    newer = target.replace(
        components={"distro": LockedComponent(version="debian13", evidence="stated", facts=())}
    )
    lock = OTHER.replace(
        environments={"default": LockedEnvironment(request=("gcc",), targets={"arm": newer})}
    )
    (here / "toolmatrix.lock").write_text(lock_file.text(lock))
    found = real("validate", "layout", "--json").json()["verdicts"]
    distro = next(one for one in found if one["name"] == "distro")
    assert (distro["verdict"], distro["help"]) == ("FAIL", None)
    assert distro["reason"] == "the lock in the image requires it"


def test_a_lock_inside_that_was_edited_is_refused(real: Cli, here: Path) -> None:
    files = {LOCK_INSIDE: lock_file.text(SMALL).replace("debian12", "debian13").encode()}
    image_files.put(here / "root", files)
    run = real("validate", "root")
    assert (run.code, run.err.splitlines()[0]) == (
        2,
        "error[TM904]: the lock was edited after it was written",
    )


def listed(images: Path, *names: str) -> str:
    """A file of subjects; some stand in it twice."""
    lines = [
        "# images",
        *(f"inventory:{name}.json" for name in names),
        f"inventory:{names[0]}.json",
    ]
    (images / "images.txt").write_text("\n".join(lines) + "\n")
    return "images.txt"


def test_one_bad_subject_never_stops_the_rest(real: Cli, images: Path) -> None:
    file = listed(images, "broken", "good", "none", "bad")
    run = real("validate", "--all", file, "--json")
    validated(run.json(), "validation")
    assert [one["outcome"] for one in run.json()["subjects"]] == ["unknown", "yes", "unknown", "no"]
    assert run.json()["summary"] == {"subjects": 4, "yes": 1, "no": 1, "unknown": 2}
    assert run.code == 1
    assert real("validate", "--all", listed(images, "broken", "good")).code == 4
    text = real("validate", "inventory:good.json", "inventory:good.json", "inventory:bad.json").out
    assert text.endswith("2 subjects, 1 passed, 1 failed\n")


def test_a_defect_that_one_subject_shows_does_not_either(
    real: Cli, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = subjects.observe

    def odd(subject: str, *given: Any) -> Inventory:
        if "bad" in subject:
            raise MemoryError("too much")
        return before(subject, *given)

    monkeypatch.setattr(subjects, "observe", odd)
    run = real("validate", "--all", listed(images, "bad", "good"), "--json")
    assert [one["outcome"] for one in run.json()["subjects"]] == ["unknown", "yes"]


def test_nothing_to_validate_is_said(real: Cli, images: Path) -> None:
    (images / "images.txt").write_text("# none\n")
    assert real("validate", "--all", "images.txt").code == 2


def test_a_run_goes_on_where_it_was_killed(
    real: Cli, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = listed(images, "good", "bad", "doubtful", "broken")
    words = ("validate", "--all", file, "--resume", "results.jsonl", "--format", "jsonl")
    whole = real(*words)
    results = (images / "results.jsonl").read_text()
    lines = results.splitlines(keepends=True)
    assert len(lines) == len(whole.out.splitlines()) == 4
    (images / "results.jsonl").write_text("".join(lines[:2]) + lines[2][:40])
    before = subjects.observe
    asked = images / "asked"

    def noted(subject: str, *given: Any) -> Inventory:
        with asked.open("a") as file:
            file.write(f"{subject}\n")
        return before(subject, *given)

    monkeypatch.setattr(subjects, "observe", noted)
    again = real(*words)
    assert asked.read_text().split() == ["inventory:doubtful.json", "inventory:broken.json"]
    assert (again.code, again.out) == (whole.code, whole.out)
    assert (images / "results.jsonl").read_text() == results
    other = real(*words, "--only", "python")
    assert len(asked.read_text().split()) == 2 + 4
    assert other.code == 4
    assert len((images / "results.jsonl").read_text().splitlines()) == 8


@pytest.mark.parametrize("text", ["nonsense\n", "{}\n", "[]\n", '{"run": 1}\n\n'])
def test_what_holds_no_results_is_not_touched(real: Cli, images: Path, text: str) -> None:
    (images / "results.jsonl").write_text(text)
    file = listed(images, "good")
    run = real("validate", "--all", file, "--resume", "results.jsonl")
    assert run.code == 2
    assert "results.jsonl:1" in run.err or text.startswith('{"run"')
    assert (images / "results.jsonl").read_text() == text


@pytest.mark.parametrize("place", ["/dev/full", "/dev/null", "pipe"])
def test_results_are_kept_in_a_plain_file_alone(real: Cli, images: Path, place: str) -> None:
    os.mkfifo(images / "pipe")
    run = real("validate", "--all", listed(images, "good"), "--resume", place)
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        "error[TM905]: cannot save the results\n"
        f"  --> {place}\n"
        "  found: it is not a plain file\n"
        "help: earlier results are kept: free disk space and run it again, or name another file\n"
    )


def test_the_results_of_a_single_subject_are_kept_as_well(real: Cli, images: Path) -> None:
    words = ("validate", "inventory:good.json", "--resume", "results.jsonl", "--json")
    first = real(*words)
    kept = (images / "results.jsonl").read_text()
    assert [one["subject"] for one in first.json()["subjects"]] == ["inventory:good.json"]
    assert (first.code, len(kept.splitlines())) == (0, 1)
    assert (real(*words).out, (images / "results.jsonl").read_text()) == (first.out, kept)


@pytest.mark.process
def test_processes_judge_as_one_does(real: Cli, images: Path) -> None:
    file = listed(images, *SIZES, "broken")
    alone = real("validate", "--all", file, "--json")
    assert real("validate", "--all", file, "--json", "--jobs", "2") == alone


@pytest.mark.process
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_process_that_dies_takes_one_subject_with_it(
    real: Cli, images: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    before = subjects.observe

    def deadly(subject: str, *given: Any) -> Inventory:
        if "bad" in subject:
            os.kill(os.getpid(), signal.SIGKILL)
        if "broken" in subject:
            os._exit(9)
        return before(subject, *given)

    monkeypatch.setattr(subjects, "observe", deadly)
    file = listed(images, *SIZES, "broken")
    words = ("validate", "--all", file, "--expect", "arch==arm64", "--jobs", jobs, "--json")
    found = real(*words).json()["subjects"]
    assert [(one["subject"], one["outcome"]) for one in found] == [
        ("inventory:good.json", "yes"),
        ("inventory:bad.json", "unknown"),
        ("inventory:doubtful.json", "yes"),
        ("inventory:broken.json", "unknown"),
    ]
    assert [(one["verdicts"][0]["code"], one["verdicts"][0]["reason"]) for one in found[1::2]] == [
        ("TM908", "the system killed the process that read it, probably because memory ran out"),
        ("TM900", "the process that read it ended, found exit code 9"),
    ]


def test_what_strangers_wrote_is_not_obeyed(real: Cli, images: Path) -> None:
    evil = "\x1b[31m<script>\u202e\n::error::x"
    save(images, "evil", with_component(GOOD, "numpy", *seen("1.24.4" + evil, where=evil)))
    for form in ("text", "github", "html", "junit", "sarif", "json", "jsonl"):
        out = real("validate", "inventory:evil.json", "--format", form).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\n::error::x" not in out
        assert "<script>" not in out or form in ("text", "github", "sarif", "json", "jsonl")
