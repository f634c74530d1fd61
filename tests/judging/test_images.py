"""Inventories held against locks and expectations: each verdict reached both ways, and one fault named alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from toolmatrix.errors import UsageError
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, SKIP, UNKNOWN, Verdict, outcome
from toolmatrix.inspection.model import DEFAULT_PLACE, Inventory, Seen, Skipped, Soname
from toolmatrix.judging import expectations, images
from toolmatrix.judging.expectations import BASE, COMPONENTS, DIGEST, parse_expectation
from toolmatrix.lockfile.model import Backed, LockedComponent, LockedFlags, LockedTarget

if TYPE_CHECKING:
    from toolmatrix.factbase.index import Index

LOCK_DIGEST = "sha256:" + "5" * 64
ARM = LockedTarget(
    accelerator="cuda",
    from_="source",
    platform="linux/arm64",
    evidence="derived",
    components={
        name: LockedComponent(
            version=version, evidence="tested", facts=facts, floor=name == "driver"
        )
        for name, version, facts in (
            ("tensorflow", "2.11.0", ("tensorflow-wheels/2.11.0",)),
            ("cuda", "11.2.2", ("tensorflow-tested-linux-gpu/2.11.0#cuda",)),
            ("cudnn", "8.1.1.33", ("tensorflow-tested-linux-gpu/2.11.0#cudnn",)),
            ("driver", "450.80.02", ("cuda-driver-floor/>=11.1,<12#driver",)),
            ("gcc", "9", ("tensorflow-tested-linux-gpu/2.11.0#gcc",)),
            ("bazel", "5.3.0", ("tensorflow-tested-linux-gpu/2.11.0#bazel",)),
            ("distro", "ubuntu20.04", ("distro-offers/ubuntu20.04#gcc",)),
            ("base-image", "ubuntu:20.04", ("plain-images/ubuntu:20.04",)),
            ("python", "3.9", ("tensorflow-tested-linux-gpu/2.11.0#python",)),
            ("keras", "2.11.0", ("tensorflow-wheels/2.11.0#keras",)),
            ("numpy", "1.26.4", ("tensorflow-wheels/2.11.0#numpy",)),
        )
    },
    archs={"sm_86": Backed(evidence="ran", facts=("cuda-archs/11.2.2#arch",))},
    flags=LockedFlags(
        cflags=("-fsigned-char", "-march=armv8-a+crc"),
        cxxflags=("-fsigned-char", "-march=armv8-a+crc"),
        env={"TF_NEED_CUDA": "1"},
        facts=("char-flag-effects/-fsigned-char#machine",),
    ),
)
FINER = {"cuda": "11.2.152", "gcc": "9.4.0", "python": "3.9.18"}
"""What tools call themselves where a lock names a release or a series."""


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index([], {"XDG_CACHE_HOME": cache})


def seen(version: str, **more: Any) -> tuple[Seen, ...]:
    given: dict[str, Any] = {"seen_by": "dpkg", "where": "somewhere", "default": True} | more
    return (Seen(version=version, **given),)


TAKEN = seen("amd64", seen_by=DEFAULT_PLACE, where="usr/bin/tool")


def good(target: LockedTarget = ARM) -> Inventory:
    """What an image holds that was made from the lock; frameworks and drivers are not in it."""
    components = {
        name: seen(FINER.get(name, part.version), layer=f"sha256:{name}")
        for name, part in target.components.items()
        if name not in ("tensorflow", "driver", "base-image", "keras")
    }
    flags = target.flags.cflags
    return Inventory(
        subject="archive:image.tar",
        platform=target.platform,
        components=components,
        features={
            "arch": seen("aarch64", seen_by="elf"),
            "codegen": (*seen("sm_80"), *seen("sm_86")),
            "label:" + DIGEST: seen(LOCK_DIGEST),
            "label:org.opencontainers.image.base.name": seen("ubuntu:20.04"),
            **{"flag:" + flag: seen(flag) for flag in flags},
            **{"env:" + name: seen(value) for name, value in target.flags.env.items()},
        },
        sonames=(
            Soname(name="libc.so.6", needed_by=("/bin/sh",), found="/lib/libc.so.6"),
            Soname(name="libcuda.so.1", needed_by=("/opt/lib.so",)),
        ),
        history=tuple((f"sha256:{name}", f"RUN install {name}") for name in components),
    )


def judged(index: Index, inventory: Inventory, target: LockedTarget = ARM) -> list[Verdict]:
    return images.judge(inventory, expectations.of_lock(index, target, LOCK_DIGEST), index)


def words(verdicts: list[Verdict], word: str) -> list[tuple[str, str]]:
    return [(one.code, one.name) for one in verdicts if one.word == word]


def with_component(inventory: Inventory, name: str, *held: Seen) -> Inventory:
    return inventory.replace(components={**inventory.components, name: held})


def with_feature(inventory: Inventory, name: str, *held: Seen) -> Inventory:
    return inventory.replace(features={**inventory.features, name: held})


def without(inventory: Inventory, *features: str) -> Inventory:
    held = {name: seen for name, seen in inventory.features.items() if name not in features}
    return inventory.replace(features=held)


def test_an_image_made_from_the_lock_passes(index: Index) -> None:
    verdicts = judged(index, good())
    assert words(verdicts, FAIL) == words(verdicts, UNKNOWN) == []
    assert outcome(verdicts) == "yes"
    assert sorted(words(verdicts, SKIP)) == [
        ("TM490", "driver"),
        ("TM490", "keras"),
        ("TM490", "libcuda.so.1"),
        ("TM490", "tensorflow"),
    ]
    assert {one.kind for one in verdicts if one.word == PASS} == {
        *("arch", "component", "codegen", "flag", "env", "label", "soname")
    }


PRESENT = [name for name in ARM.components if name in good().components]


@settings(max_examples=examples(60), deadline=None)
@given(
    name=st.sampled_from(PRESENT),
    version=st.from_regex(r"[1-9][0-9]?(\.[0-9]{1,2}){1,2}", fullmatch=True),
)
def test_one_other_version_fails_alone(index: Index, name: str, version: str) -> None:
    """The law: whatever replaces one component, no other check moves, and it passes only where the lock has it."""
    before = judged(index, good())
    after = judged(index, with_component(good(), name, *seen(version)))
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert [one.name for one in moved] == [name]
    wanted = ARM.components[name].version
    begins = (version + ".").startswith(wanted + ".")
    if moved[0].word == PASS:
        assert begins or name == "cuda" or (wanted + ".").startswith(version)
    else:
        assert not begins or name == "distro"
        assert moved[0].code == ("TM401" if moved[0].word == FAIL else "TM480")


@settings(max_examples=examples(30), deadline=None)
@given(gone=st.sets(st.sampled_from([name for name in PRESENT if name != "numpy"]), min_size=1))
def test_what_is_gone_is_named_and_nothing_else(index: Index, gone: set[str]) -> None:
    held = {name: seen for name, seen in good().components.items() if name not in gone}
    verdicts = judged(index, good().replace(components=held))
    assert {name for _, name in words(verdicts, FAIL)} == gone
    assert {code for code, _ in words(verdicts, FAIL)} == {"TM402"}


@pytest.mark.parametrize(
    ("changed", "code", "name"),
    [
        (lambda one: one.replace(platform="linux/amd64"), "TM403", "platform"),
        (lambda one: with_feature(one, "arch", *seen("x86_64")), "TM403", "platform"),
        (lambda one: with_feature(one, "foreign-arch", *TAKEN), "TM403", "platform"),
        (lambda one: without(one, "flag:-fsigned-char"), "TM404", "-fsigned-char"),
        (lambda one: without(one, "flag:-march=armv8-a+crc"), "TM404", "-march=armv8-a+crc"),
        (lambda one: without(one, "label:" + DIGEST), "TM407", DIGEST),
        (lambda one: with_feature(one, "label:" + DIGEST, *seen("sha256:6")), "TM407", DIGEST),
        (lambda one: with_feature(one, "codegen", *seen("sm_80")), "TM408", "sm_86"),
        (lambda one: without(one, "env:TF_NEED_CUDA"), "TM410", "TF_NEED_CUDA"),
        (lambda one: with_feature(one, "env:TF_NEED_CUDA", *seen("0")), "TM410", "TF_NEED_CUDA"),
        (
            lambda one: with_feature(
                one, "label:org.opencontainers.image.base.name", *seen("debian:12")
            ),
            "TM401",
            "base-image",
        ),
        (
            lambda one: one.replace(sonames=(Soname(name="libfoo.so.1", needed_by=("/x",)),)),
            "TM405",
            "libfoo.so.1",
        ),
        (
            lambda one: one.replace(
                sonames=(
                    Soname(
                        name="libcudart.so.11.0", needed_by=("/x",), others=("libcudart.so.12",)
                    ),
                )
            ),
            "TM406",
            "libcudart.so.11.0",
        ),
        (
            lambda one: with_component(
                one, "gcc", *seen("9.4.0"), *seen("12.2.0", seen_by="ran", default=False)
            ),
            "TM409",
            "gcc",
        ),
    ],
)
def test_each_fault_is_named_alone(index: Index, changed: Any, code: str, name: str) -> None:
    verdicts = judged(index, changed(good()))
    assert words(verdicts, FAIL) == [(code, name)]
    assert outcome(verdicts) == "no"


def test_what_was_read_and_does_not_answer_is_a_skip_beside_its_pass(index: Index) -> None:
    silent = Skipped(what="running gcc", reason="`gcc` was still running after 30 seconds")
    subject = good()
    found = judged(index, subject.replace(skipped=(*subject.skipped, silent)))
    (skipped,) = [one for one in found if one not in judged(index, subject)]
    assert (skipped.word, skipped.code, skipped.name) == (SKIP, "TM490", "gcc")
    assert skipped.reason == silent.reason


def test_a_wrong_version_tells_where_it_came_from(index: Index) -> None:
    other = seen("1.24.4", where="/usr/lib/numpy", layer="sha256:9")
    subject = with_component(good(), "numpy", *other)
    subject = subject.replace(history=(("sha256:9", "RUN pip install pandas"),))
    (found,) = [one for one in judged(index, subject) if one.word == FAIL]
    assert (found.wanted, found.found, found.where, found.layer) == (
        "1.26.4",
        "1.24.4",
        "/usr/lib/numpy",
        "sha256:9",
    )
    assert found.made_by == "RUN pip install pandas"
    assert found.help == "1.24.4 came in with `RUN pip install pandas`"
    assert found.facts == ("tensorflow-wheels/2.11.0#numpy",)


def test_the_default_counts_and_others_are_told(index: Index) -> None:
    other = seen("3.11.2", default=False, where="/usr/bin/python3.11")
    subject = with_component(good(), "python", *other, *seen("3.9.18"))
    (found,) = [one for one in judged(index, subject) if one.name == "python"]
    assert (found.word, found.found) == (PASS, "3.9.18")
    assert found.others == (("3.11.2", "/usr/bin/python3.11"),)


@pytest.mark.parametrize(
    ("name", "held", "word", "reason"),
    [
        ("cuda", ("11.2",), UNKNOWN, "11.2 may be 11.2.0 or 11.2.1 or 11.2.2"),
        ("cuda", ("11.2", "11.2.2"), PASS, ""),
        ("cuda", ("11.2", "11.2.1"), FAIL, ""),
        ("cuda", ("11.3",), FAIL, ""),
        ("cuda", ("11",), UNKNOWN, "11 may be 11.0.1 or 11.0.2 or 11.0.3"),
        ("bazel", ("5.3",), UNKNOWN, "5.3 may be 5.3.0 or 5.3.1 or 5.3.2"),
        ("numpy", ("1.26",), UNKNOWN, ""),
        ("numpy", ("1.26.4+local.1",), PASS, ""),
        ("numpy", ("trunk",), UNKNOWN, "`trunk` is not a version"),
        ("gcc", ("9",), PASS, ""),
        ("gcc", ("10.2.1",), FAIL, ""),
    ],
)
def test_a_coarse_witness_decides_nothing(
    index: Index, name: str, held: tuple[str, ...], word: str, reason: str
) -> None:
    first, *rest = (seen(version)[0] for version in held)
    subject = with_component(good(), name, first, *(one.replace(default=False) for one in rest))
    (found,) = [one for one in judged(index, subject) if one.name == name]
    assert found.word == word
    assert found.reason.startswith(reason)


def test_what_an_image_says_it_holds_must_be_there(index: Index) -> None:
    listed = with_feature(good(), "label:" + COMPONENTS, *seen("bazel cuda keras"))
    held = {name: seen for name, seen in listed.components.items() if name != "gcc"}
    verdicts = judged(index, listed.replace(components=held))
    assert words(verdicts, FAIL) == [("TM402", "keras")]
    assert ("TM490", "gcc") in words(verdicts, SKIP)
    named = images.judge(listed.replace(components=held), [parse_expectation("gcc==9.*")], index)
    assert words(named, FAIL) == [("TM402", "gcc")]


def test_an_image_that_starts_from_another_one_does_not_say_that_it_holds_the_first(
    index: Index,
) -> None:
    other = with_feature(good(), "label:" + BASE, *seen("ubuntu:22.04"))
    assert ("TM401", "base-image") in words(judged(index, other), FAIL)
    listed = with_feature(other, "label:" + COMPONENTS, *seen("cuda"))
    assert ("TM490", "base-image") in words(judged(index, listed), SKIP)


def test_a_wheel_must_be_installed_with_all_it_requires(index: Index) -> None:
    verdicts = judged(index, good(), ARM.replace(from_="wheel"))
    assert words(verdicts, FAIL) == [("TM402", "tensorflow"), ("TM402", "keras")]


def test_what_could_not_be_seen_is_a_skip_with_its_reason(index: Index) -> None:
    held = {name: seen for name, seen in good().components.items() if name != "gcc"}
    subject = good().replace(components=held, skipped=(Skipped(what="gcc", reason="no shell"),))
    (found,) = [one for one in judged(index, subject) if one.name == "gcc"]
    assert (found.word, found.reason, found.code) == (SKIP, "no shell", "TM490")


@pytest.mark.parametrize(("char", "word"), [("signed", PASS), ("unsigned", FAIL)])
def test_the_effect_of_a_flag_speaks_for_it(index: Index, char: str, word: str) -> None:
    subject = without(good(), "flag:-fsigned-char")
    subject = with_feature(subject, "char", *seen(char, seen_by="dwarf"))
    (found,) = [one for one in judged(index, subject) if one.name == "-fsigned-char"]
    assert (found.word, found.seen_by) == (word, "dwarf")


def test_nothing_recorded_is_unknown(index: Index) -> None:
    verdicts = images.judge(Inventory(subject="x"), [parse_expectation("flag==-O2")], index)
    assert words(verdicts, UNKNOWN) == [("TM480", "-O2")]
    assert outcome(verdicts) == "unknown"


def test_nothing_but_skips_says_nothing(index: Index) -> None:
    assert (
        outcome(images.judge(Inventory(subject="x"), [parse_expectation("arch==arm64")], index))
        == "unknown"
    )


EXPECTED = with_feature(
    with_feature(
        with_feature(good(), "crc32", *seen("yes")), "soname:libz.so.1", *seen("/lib/libz.so.1")
    ),
    "old",
    *seen("no"),
)


def test_a_foreign_file_that_nobody_takes_unasked_is_no_failure(index: Index) -> None:
    inventory = with_feature(good(), "foreign-arch", *seen("amd64", seen_by="elf"))
    assert words(judged(index, inventory), FAIL) == []


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("python==3.9.18", PASS),
        ("python==3.9.17", FAIL),
        ("python==3.*", PASS),
        ("gcc>=9,<13", PASS),
        ("gcc==12.*", FAIL),
        ("made_up==1", FAIL),
        ("distro==ubuntu20.04", PASS),
        ("distro==ubuntu*", PASS),
        ("arch==arm64", PASS),
        ("arch==aarch64", PASS),
        ("arch==amd64", FAIL),
        ("soname==libc.so.6", PASS),
        ("soname==libz.so.1", PASS),
        ("soname==libz.so.2", FAIL),
        ("label==" + DIGEST, PASS),
        (f"label=={DIGEST}={LOCK_DIGEST}", PASS),
        (f"label=={DIGEST}=sha256:0", FAIL),
        ("label==org.none", FAIL),
        ("flag==-fsigned-char", PASS),
        ("flag==-O9", FAIL),
        ("feature==crc32", PASS),
        ("feature==old", FAIL),
        ("feature==none", FAIL),
        ("char==signed", UNKNOWN),
        ("crc32==yes", PASS),
        ("crc32==no", FAIL),
        ("env==TF_NEED_CUDA=1", PASS),
        ("codegen==sm_80", PASS),
        ("codegen==sm_90", FAIL),
    ],
)
def test_words_expect_the_same(index: Index, word: str, verdict: str) -> None:
    assert [one.word for one in images.judge(EXPECTED, [parse_expectation(word)], index)] == [
        verdict
    ]


@pytest.mark.parametrize(
    ("request_", "failing"),
    [
        # The answer holds it, and the image is one of tools: that is said, and nothing is wrong.
        (("tensorflow==2.11.0",), []),
        (("tensorflow==2.11.0", "--recipe=toolchain"), []),
        (("tensorflow==2.11.0", "--recipe=tensorflow"), ["tensorflow"]),
        # An answer of several targets that lacks it on this one.
        (("vllm", "--target=x86,arm"), ["vllm"]),
        (("driver",), []),
    ],
)
def test_what_was_requested_is_in_the_image(
    index: Index, request_: tuple[str, ...], failing: list[str]
) -> None:
    # Its label lists what it holds, and what it does not list nobody promised, but for what was requested.
    listed = {"label:" + COMPONENTS: seen("gcc python")}
    image = good().replace(features={**good().features, **listed})
    wanted = expectations.of_lock(index, ARM, LOCK_DIGEST, request_)
    found = images.judge(image, wanted, index)
    assert words(found, FAIL) == [("TM402", name) for name in failing]


@pytest.mark.parametrize(
    "word",
    [
        "",
        "python",
        "==3",
        "python==",
        "python<>3",
        "gcc>=x",
        "arch>=arm64",
        "label===x",
        "label==x=",
    ],
)
def test_words_that_expect_nothing_are_refused(word: str) -> None:
    with pytest.raises(UsageError):
        parse_expectation(word)
