"""`toolmatrix diff`: what moved between two locks."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Outcome
from tests.cli.test_documents import validated
from tests.golden import assert_golden
from tests.images import images
from tests.inspection import machines
from tests.judging.test_images import ARM
from toolmatrix.cli.main import main
from toolmatrix.inspection import host
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import (
    Lock,
    LockedComponent,
    LockedEnvironment,
    LockedFlags,
    LockedTarget,
)


@pytest.fixture
def diff(cli: Cli, cache: str) -> Cli:
    """`diff("a.lock", "b.lock")`, where `old.lock`, `new.lock` and `three.lock` are there."""
    for name, words in (
        ("old.lock", ["tensorflow==2.4.0"]),
        ("new.lock", ["tensorflow==2.6.5"]),
        ("three.lock", ["tensorflow==2.6.5", "--target", "x86,arm,amd"]),
    ):
        assert cli("lock", *words, "-l", name, XDG_CACHE_HOME=cache).code == 0

    def run(*argv: str, **env: str) -> Outcome:
        return cli("diff", *argv, XDG_CACHE_HOME=cache, **env)

    return run


@pytest.mark.parametrize(
    ("name", "pair"),
    [("two-releases", ("old.lock", "new.lock")), ("two-targets-more", ("old.lock", "three.lock"))],
)
def test_golden_differences(diff: Cli, name: str, pair: tuple[str, str]) -> None:
    outcome = diff(*pair)
    assert (outcome.code, outcome.err) == (0, "")
    assert_golden(f"diff-{name}.txt", outcome.out)


def test_golden_port(diff: Cli) -> None:
    outcome = diff("three.lock", "--target", "x86,arm")
    assert (outcome.code, outcome.err) == (0, "")
    assert_golden("diff-port.txt", outcome.out)


def test_two_targets_are_held_side_by_side(diff: Cli, cli: Cli, cache: str) -> None:
    """Of one lock or of two; what is equal, what differs, what one alone has, and which flags."""
    arm = ("tensorflow==2.6.5", "--target", "arm", "-l", "arm.lock")
    assert cli("lock", *arm, XDG_CACHE_HOME=cache).code == 0
    found = diff("new.lock", "arm.lock", "--json").json()
    validated(found, "port")
    again = diff("three.lock", "--target", "x86,arm", "--json").json()
    assert found["components"] == again["components"]
    assert found["flags"] == again["flags"]
    assert [side["name"] for side in found["targets"]] == ["x86", "arm"]
    kinds = {part["component"]: part["kind"] for part in found["components"]}
    assert (kinds["tensorflow"], kinds["base-image"], kinds["cuda"]) == (
        "equal",
        "different",
        "only",
    )
    cuda = next(part for part in found["components"] if part["component"] == "cuda")
    assert cuda["held"][0]["evidence"] == "derived"
    assert cuda["absent"] == [{"target": "arm", "why": "accelerator none"}]
    flags = {part["flag"]: part for part in found["flags"]}
    assert flags["-fsigned-char"]["target"] == "arm"
    assert flags["-fsigned-char"]["evidence"] == "ran"
    assert "plain char is unsigned on aarch64" in flags["-fsigned-char"]["why"]
    assert flags["-fsigned-char"]["source"]
    for kind in ("equal", "different", "only"):
        assert found["summary"][kind] == list(kinds.values()).count(kind)


def test_a_port_turned_round_has_the_same_components(diff: Cli) -> None:
    there = diff("three.lock", "--target", "x86,amd", "--json").json()
    back = diff("three.lock", "--target", "amd,x86", "--json").json()
    assert there["summary"] == back["summary"]
    assert diff("three.lock", "--target", "x86,amd", "--exit-code").code == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["three.lock"], 2, "`diff` needs two locks, or two targets of one"),
        (["new.lock"], 2, "`diff` needs two locks, or two targets of one"),
        (["three.lock", "--target", "x86"], 2, "`diff` compares two targets"),
        (["new.lock", "--target", "x86,arm"], 3, "new.lock has no target `arm`"),
    ],
)
def test_targets_that_cannot_be_compared(
    diff: Cli, words: list[str], code: int, message: str
) -> None:
    outcome = diff(*words)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err.splitlines()[0]


def test_nothing_moved(diff: Cli) -> None:
    outcome = diff("new.lock", "new.lock", "--exit-code")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("0 added, 0 changed, 0 removed, ")
    assert outcome.out.endswith(" the same\n")
    assert outcome.out.count("\n") == 1


def test_the_exit_code_only_where_it_is_wanted(diff: Cli) -> None:
    assert diff("old.lock", "new.lock").code == 0
    assert diff("old.lock", "new.lock", "--exit-code").code == 1
    assert diff("old.lock", "new.lock", TOOLMATRIX_EXIT_CODE="1").code == 1


def test_the_document_holds_to_its_schema(diff: Cli) -> None:
    outcome = diff("old.lock", "three.lock", "--json")
    found = outcome.json()
    assert (outcome.code, outcome.err) == (0, "")
    validated(found, "differences")
    kinds = [part["kind"] for part in found["differences"]]
    for kind in ("added", "changed", "removed", "moved"):
        assert found["summary"][kind] == kinds.count(kind)
    first = found["differences"][0]
    assert (first["target"], first["component"], first["why"]) == ("x86", "tensorflow", "requested")
    assert (first["old"]["value"], first["new"]["value"]) == ("2.4.0", "2.6.5")
    assert [found[side]["path"] for side in ("old", "new")] == ["old.lock", "three.lock"]


def test_turned_round_it_says_the_opposite(diff: Cli) -> None:
    there = diff("old.lock", "three.lock", "--json").json()["summary"]
    back = diff("three.lock", "old.lock", "--json").json()["summary"]
    assert (there["added"], there["removed"]) == (back["removed"], back["added"])
    assert (there["changed"], there["same"]) == (back["changed"], back["same"])


def test_colour_changes_nothing_else(diff: Cli) -> None:
    plain = diff("old.lock", "new.lock").out
    coloured = diff("old.lock", "new.lock", "--color", "always").out
    assert "\x1b[33m~\x1b[0m" in coloured
    for code in ("\x1b[33m", "\x1b[32m", "\x1b[31m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_one_lock_may_come_from_stdin(diff: Cli, here: Path, cache: str) -> None:
    expected = diff("old.lock", "new.lock").out
    stdin = io.StringIO((here / "old.lock").read_text())
    stdout, stderr = io.StringIO(), io.StringIO()
    env = {"HOME": str(here.parent), "XDG_CACHE_HOME": cache}
    assert main(["diff", "-", "new.lock"], env, stdin, stdout, stderr) == 0
    assert stdout.getvalue() == expected
    assert diff("-", "-").code == 2


def test_paths_lie_in_the_directory_of_c(diff: Cli, here: Path) -> None:
    expected = diff("old.lock", "new.lock").out
    (here / "sub").mkdir()
    for name in ("old.lock", "new.lock"):
        (here / name).rename(here / "sub" / name)
    assert diff("-C", "sub", "old.lock", "new.lock").out == expected


def test_a_lock_that_is_none_is_refused(diff: Cli, here: Path) -> None:
    (here / "cargo.lock").write_text("version = 4\n")
    assert diff("old.lock", "cargo.lock") == (
        2,
        "",
        (
            "error[TM904]: this is not a lock\n"
            "  --> cargo.lock:1\n"
            '  expected: `schema = "toolmatrix.lock/1"`\n'
            "  found: another file\n"
            "help: `toolmatrix lock` writes one\n"
        ),
    )
    assert diff("missing.lock", "new.lock").code == 2


def test_facts_that_the_matrix_lacks_are_told_by_nothing(diff: Cli, here: Path, cli: Cli) -> None:
    """A lock of another matrix: values still compare, reasons are left out."""
    from toolmatrix.lockfile import lock_file

    lock = lock_file.read(str(here / "new.lock"))
    default = lock.environments["default"]
    x86 = default.targets["x86"]
    strange = {name: part.replace(facts=("no/such",)) for name, part in x86.components.items()}
    targets = {"x86": x86.replace(components=strange)}
    made = lock.replace(environments={"default": default.replace(targets=targets)})
    (here / "strange.lock").write_text(lock_file.text(made))
    outcome = diff("old.lock", "strange.lock")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["~", "tensorflow", "2.4.0", "->", "2.6.5", "requested"]
    assert any(line.split() == ["~", "bazel", "3.1.0", "->", "3.7.2"] for line in lines)
    assert cli("diff", "only-one").code == 2


def test_a_target_in_the_settings_is_no_comparison(diff: Cli, here: Path) -> None:
    expected = diff("old.lock", "new.lock")
    (here / "toolmatrix.toml").write_text('target = ["x86", "arm"]\n')
    assert diff("old.lock", "new.lock") == expected


# `toolmatrix diff` of subjects: images of one lock and drifted ones, machines, locks, and what is refused.


ARM_FLAGS = ("-fsigned-char", "-march=armv8-a+crc")


def target(platform: str, *flags: str, gcc: str = "12") -> LockedTarget:
    """A target of the lock that the images of this page are made from."""
    held = {"gcc": gcc, "python": "3.11", "numpy": "1.26.4", "distro": "debian12"}
    return ARM.replace(
        accelerator="none",
        platform=platform,
        archs={},
        components={
            name: LockedComponent(version=version, evidence="ran", facts=("a",))
            for name, version in held.items()
        },
        flags=LockedFlags(cflags=flags, cxxflags=flags),
    )


LOCK = Lock(
    matrix_digest="sha256:" + "0" * 64,
    matrix_date="2026-01-01",
    environments={
        "default": LockedEnvironment(
            request=("numpy",),
            targets={"x86": target("linux/amd64"), "arm": target("linux/arm64", *ARM_FLAGS)},
        )
    },
)
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


def image(arch: str, flags: str = "", **versions: str) -> dict[str, Any]:
    """The archive of an image, whose versions are those of the lock unless given."""
    held = {"gcc": "12.2.0-14", "numpy": "1.26.4", "libc6": "2.36-9+deb12u4"} | versions
    triplet = TRIPLETS[arch]
    alone = {"amd64": "libquadmath0", "arm64": "libhwasan0"}[arch]
    names = {"gcc-12": held["gcc"], "libc6": held["libc6"], alone: "12.2.0-14"}
    names[f"binutils-{triplet.replace('_', '-')}"] = "2.40-2"
    status = "".join(
        f"Package: {name}\nStatus: install ok installed\nVersion: {version}\n\n"
        for name, version in names.items()
    )
    site = "usr/local/lib/python3.11/site-packages"
    number = held["gcc"].partition("-")[0]
    made = images.image(
        {
            "etc/os-release": b"ID=debian\nVERSION_ID=12\n",
            "var/lib/dpkg/status": status.encode(),
            "usr/bin/gcc": images.link("gcc-12"),
            "usr/bin/gcc-12": images.program(arch),
            f"usr/lib/gcc/{triplet}/{number}/cc1": b"cc1\n",
            f"{site}/numpy-1.dist-info/METADATA": f"Name: numpy\nVersion: {held['numpy']}\n".encode(),
        },
        platform=f"linux/{arch}",
        Env=["PATH=/usr/bin", *([f"CFLAGS={flags}"] if flags else [])],
        Labels={
            "io.github.toolmatrix.lock.digest": lock_file.digest(LOCK),
            "io.github.toolmatrix.target": {"amd64": "x86", "arm64": "arm"}[arch],
            "org.opencontainers.image.base.name": f"local/debian:bookworm-{arch}",
        },
    )
    return images.saved(made)


@pytest.fixture
def shelf(here: Path) -> Path:
    """An x86 and an arm64 image of one lock, and the lock."""
    (here / "x86.tar").write_bytes(images.tar(image("amd64")))
    (here / "arm.tar").write_bytes(images.tar(image("arm64", " ".join(ARM_FLAGS))))
    (here / "a.lock").write_text(lock_file.text(LOCK))
    return here


def suspicious(document: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    """What a document calls suspicious, by name, with both values."""
    return {
        one["name"]: (one["old"] and one["old"]["value"], one["new"] and one["new"]["value"])
        for one in document["differences"]
        if one["verdict"] == "suspicious"
    }


@pytest.mark.parametrize(
    "words", [[], ["--lock", "a.lock"], ["--lock", "a.lock", "--target", "x86,arm"]]
)
def test_images_of_one_lock_have_nothing_suspicious(
    cli: Cli, shelf: Path, words: list[str]
) -> None:
    run = cli("diff", "archive:x86.tar", "archive:arm.tar", "--json", "--exit-code", *words)
    assert (run.code, run.err) == (0, ""), shelf
    document = run.json()
    validated(document, "comparison")
    assert suspicious(document) == {}
    assert document["summary"]["expected"] == len(document["differences"]) > 0
    assert document["summary"]["same"] == len(document["same"]) > 0
    assert (document["lock"] is not None) is bool(words)


@pytest.mark.parametrize(
    ("arch", "flags", "versions", "told"),
    [
        ("arm64", ARM_FLAGS, {"numpy": "2.1.0"}, {"component:numpy": ("1.26.4", "2.1.0")}),
        (
            "arm64",
            ARM_FLAGS,
            {"gcc": "12.3.0-1"},
            {
                "component:gcc": ("12.2.0", "12.3.0"),
                "package:gcc-12": ("12.2.0-14", "12.3.0-1"),
            },
        ),
        (
            "arm64",
            ARM_FLAGS,
            {"libc6": "2.31-13"},
            {
                "component:glibc": ("2.36", "2.31"),
                "package:libc6": ("2.36-9+deb12u4", "2.31-13"),
            },
        ),
        ("arm64", ARM_FLAGS[1:], {}, {"effect:char": ("signed", "unsigned")}),
        ("amd64", ("-O0",), {}, {"flag:-O0": (None, "-O0"), "env:CFLAGS": (None, "-O0")}),
    ],
)
def test_drift_is_named_and_nothing_else(
    cli: Cli,
    shelf: Path,
    arch: str,
    flags: tuple[str, ...],
    versions: dict[str, str],
    told: dict[str, tuple[str | None, str | None]],
) -> None:
    (shelf / "drifted.tar").write_bytes(images.tar(image(arch, " ".join(flags), **versions)))
    words = ("diff", "archive:x86.tar", "archive:drifted.tar")
    run = cli(*words, "--json", "--exit-code")
    assert run.code == 1
    assert suspicious(run.json()) == told
    assert cli(*words).code == 0
    back = cli("diff", *words[:0:-1], "--json").json()
    assert suspicious(back) == {name: pair[::-1] for name, pair in told.items()}


def test_text_groups_what_differs(cli: Cli, shelf: Path) -> None:
    (shelf / "arm.tar").write_bytes(images.tar(image("arm64", ARM_FLAGS[1], numpy="2.1.0")))
    run = cli("diff", "archive:x86.tar", "archive:arm.tar", COLUMNS="200")
    char = (
        "comparisons, shifts and table look-ups of plain char give other results, "
        "and a loop until -1 does not end"
    )
    assert run.out.splitlines() == [
        "-  archive:x86.tar  linux/amd64",
        "+  archive:arm.tar  linux/arm64",
        "",
        "platform",
        f"  suspicious: {char}",
        "    ~  char  signed -> unsigned",
        "  expected: each names its own architecture: ~arch, ~base-image",
        "",
        "python packages",
        "  suspicious: another version of the same component",
        "    ~  numpy  1.26.4 -> 2.1.0",
        "",
        "system packages",
        "  expected: it is made for ARM alone: + libhwasan0 12.2.0-14",
        "  expected: it is made for x86 alone: - libquadmath0 12.2.0-14",
        "",
        "environment",
        "  expected: each architecture has its own: + CFLAGS -march=armv8-a+crc",
        "",
        "labels",
        "  expected: they are targets of one lock: ~ io.github.toolmatrix.target x86 -> arm",
        "",
        "flags",
        "  expected: each architecture has its own: + -march=armv8-a+crc",
        "",
        "2 suspicious, 7 expected, 8 the same, 0 not compared",
    ]


def test_two_images_of_one_index_are_compared(cli: Cli, here: Path) -> None:
    both = [
        images.image(
            {"etc/os-release": b"ID=debian\nVERSION_ID=12\n"}, platform=platform, Env=[env]
        )
        for platform, env in (("linux/amd64", "LANG=C"), ("linux/arm64", "LANG=C.UTF-8"))
    ]
    images.put(here / "layout", images.layout(*both))
    run = cli("diff", "oci:layout", "--platform", "linux/amd64,linux/arm64", "--json")
    assert suspicious(run.json()) == {"env:LANG": ("C", "C.UTF-8")}
    assert [one["platform"] for one in run.json()["subjects"]] == ["linux/amd64", "linux/arm64"]
    assert cli("diff", "oci:layout", "--platform", "linux/amd64").code == 2
    assert cli("diff", "oci:layout", "oci:layout", "--platform", "a,b,c").code == 2


def test_a_saved_inventory_may_name_what_nobody_saw(cli: Cli, here: Path) -> None:
    document: dict[str, Any] = {
        "schema": "toolmatrix.inventory/1",
        "subject": "a",
        "platform": "linux/amd64",
        "digest": None,
        "components": {"gcc": []},
        "features": {"env:A": [], "char": []},
        "sonames": [{"name": "liba.so.1", "needed_by": [], "found": "", "others": []}],
        "history": [],
        "skipped": [],
    }
    (here / "a.json").write_text(json.dumps(document))
    run = cli("diff", "inventory:a.json", "a.json")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[-1].startswith("0 suspicious, 0 expected, ")


def test_everything_is_shown_where_it_is_asked_for(cli: Cli, shelf: Path) -> None:
    few = cli("diff", "archive:x86.tar", "archive:arm.tar").out.splitlines()
    all_ = cli("diff", "archive:x86.tar", "archive:arm.tar", "--all").out.splitlines()
    assert shelf.is_dir()
    assert not [line for line in few if line.startswith("  = ")]
    assert "  = gcc  12.2.0" in [line.rstrip() for line in all_]
    assert few[-1] == all_[-1]


def test_a_machine_is_compared_with_what_another_wrote(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("xeon", "altra"):
        monkeypatch.setattr(host, "HERE", machines.load(name))
        (here / f"{name}.json").write_text(cli("inventory", "host", "--json").out)
    run = cli("diff", "inventory:xeon.json", "host", "--json")
    document = run.json()
    validated(document, "comparison")
    assert {"page-size", "frequency:governor", "numa-nodes", "memory"} <= set(suspicious(document))
    assert [one["subject"] for one in document["subjects"]] == ["inventory:xeon.json", "host"]
    same = cli("diff", "host", "inventory:altra.json", "--exit-code")
    assert same.code == 0
    assert same.out.splitlines()[-1].startswith("0 suspicious, 0 expected, ")


def test_a_lock_is_a_subject(cli: Cli, shelf: Path) -> None:
    found = cli("inventory", "lock:a.lock#arm", "--json").json()
    validated(found, "inventory")
    assert (found["platform"], found["components"]["gcc"][0]["version"]) == ("linux/arm64", "12")
    assert "flag:-fsigned-char" in found["features"]
    right = cli("diff", "lock:a.lock#arm", "archive:arm.tar", "--json", "--exit-code")
    assert (right.code, set(suspicious(right.json()))) == (1, {"component:python"}), shelf
    (shelf / "arm.tar").write_bytes(images.tar(image("arm64")))
    wrong = cli("diff", "lock:a.lock#arm", "archive:arm.tar", "--json")
    assert {"flag:-fsigned-char", "effect:char"} <= set(suspicious(wrong.json()))
    assert cli("diff", "lock:a.lock", "archive:arm.tar", "--platform", "linux/arm64").code == 0
    assert cli("diff", "a.lock", "arm.tar", "--platform", "linux/arm64").code == 0
    assert cli("diff", "x86.tar", "arm.tar").code == 0
    assert cli("inventory", "lock:a.lock", "--platform", "linux/arm64").code == 0


def test_validate_takes_machines_and_locks(
    cli: Cli, shelf: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    monkeypatch.setattr(host, "HERE", machines.load("altra"))
    words = ("--expect", "gcc==12.2.0", "--expect", "feature==crc32", "--expect", "arch==arm64")
    assert cli("validate", "host", *words, XDG_CACHE_HOME=cache).code == 0
    assert cli("validate", "host", "--expect", "gcc==11.*", XDG_CACHE_HOME=cache).code == 1
    locked = cli("validate", "lock:a.lock#x86", "--expect", "gcc==12", XDG_CACHE_HOME=cache)
    assert (locked.code, shelf.is_dir()) == (0, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["archive:x86.tar"], 2, "`diff` needs two subjects"),
        (["archive:x86.tar", "a.lock"], 2, "a lock is compared for one target"),
        (["archive:x86.tar", "dcker:a"], 2, "this is not a subject"),
        (["host:1", "archive:x86.tar"], 2, "this is not a subject"),
        (["host", "archive:none.tar"], 2, "cannot read the image"),
        (["archive:x86.tar", "lock:a.lock"], 2, "a lock is compared for one target"),
        (["archive:x86.tar", "lock:a.lock#amd"], 3, "a.lock has no target `amd`"),
        (["archive:x86.tar", "lock:none.lock"], 2, "there is no lock"),
        (["archive:x86.tar", "archive:arm.tar", "--lock", "none.lock"], 2, "there is no lock"),
        (
            ["archive:x86.tar", "archive:arm.tar", "--lock", "a.lock", "--target", "x86"],
            2,
            "`diff` compares two targets",
        ),
        (
            ["archive:x86.tar", "archive:arm.tar", "--lock", "a.lock", "--target", "x86,amd"],
            3,
            "a.lock has no target `amd`",
        ),
    ],
)
def test_wrong_subjects_give_one_error(
    cli: Cli, shelf: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    monkeypatch.setattr(host, "HERE", machines.load("altra"))
    run = cli("diff", *words)
    assert (run.code, run.out) == (code, ""), shelf
    assert said in run.err.splitlines()[0]
    assert "Traceback" not in run.err


def test_nothing_that_a_subject_says_reaches_a_terminal_raw(cli: Cli, shelf: Path) -> None:
    evil = images.image(Labels={"\x1b]0;x\x07": "\x1b[31mred"}, Env=["\x1b[1mA=b"])
    (shelf / "evil.tar").write_bytes(images.tar(images.saved(evil)))
    run = cli("diff", "archive:x86.tar", "archive:evil.tar", "--all")
    assert "\\x1b]0;x\\x07" in run.out
    assert "\x1b" not in run.out


def test_one_subject_may_come_from_a_pipe(shelf: Path) -> None:
    data = (shelf / "arm.tar").read_bytes()
    stdin, screen = io.TextIOWrapper(io.BytesIO(data)), io.StringIO()
    words = ["diff", f"archive:{shelf / 'x86.tar'}", "archive:-"]
    assert main(words, {"HOME": str(shelf)}, stdin, screen, screen) == 0
    assert "0 suspicious" in screen.getvalue()
