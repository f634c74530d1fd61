"""The text of a lock, and that reading gives back what was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.factbase.evidence import WORDS
from toolmatrix.lockfile import lock_file, model
from toolmatrix.lockfile.model import (
    Backed,
    Lock,
    LockedClosure,
    LockedComponent,
    LockedEnvironment,
    LockedFlags,
    LockedPackage,
    LockedTarget,
    PackageQuestion,
)

TEXT = st.text(max_size=8)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
EVIDENCE = st.sampled_from(WORDS)


def some(part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(TEXT, part, max_size=3)


BACKED = st.builds(Backed, evidence=EVIDENCE, facts=TEXTS, disputed=TEXTS)
COMPONENT = st.builds(
    LockedComponent,
    version=TEXT,
    evidence=EVIDENCE,
    facts=TEXTS,
    disputed=TEXTS,
    floor=st.booleans(),
    kept=st.booleans(),
)
FLAGS = st.builds(
    LockedFlags,
    cflags=TEXTS,
    cxxflags=TEXTS,
    nvcc=TEXTS,
    hipcc=TEXTS,
    env=some(TEXT),
    missing=TEXTS,
    facts=TEXTS,
)
DIGEST = st.text("0123456789abcdef", min_size=64, max_size=64)
CLOSURE = st.builds(
    LockedClosure,
    asked=st.builds(
        PackageQuestion, requirements=TEXTS, builds=TEXTS, options=TEXTS, python=TEXT, platform=TEXT
    ),
    packages=some(
        st.builds(LockedPackage, version=TEXT, files=some(DIGEST), url=TEXT),
    ),
)
TARGET = st.builds(
    LockedTarget,
    accelerator=TEXT,
    from_=TEXT,
    platform=TEXT,
    evidence=EVIDENCE,
    components=some(COMPONENT),
    archs=some(BACKED),
    devices=some(BACKED),
    flags=FLAGS,
    closure=st.none() | CLOSURE,
)
LOCK = st.builds(
    Lock,
    matrix_digest=TEXT,
    matrix_date=TEXT,
    environments=some(st.builds(LockedEnvironment, request=TEXTS, targets=some(TARGET))),
)


@pytest.mark.slow
@given(LOCK)
def test_reading_gives_back_what_was_written(lock: Lock) -> None:
    text = lock_file.text(lock)
    again = lock_file.parse(text.encode(), "x.lock")
    assert again == lock
    assert lock_file.text(again) == text
    assert text == lock_file.sealed(lock_file.body(lock))
    assert text.endswith(f"\n# seal {lock_file.digest(lock)}\n")


@pytest.mark.slow
@given(LOCK)
def test_order_does_not_matter(lock: Lock) -> None:
    turned = lock.replace(environments=dict(reversed(list(lock.environments.items()))))
    assert lock_file.text(turned) == lock_file.text(lock)


def test_the_whole_text(small: Lock) -> None:
    assert lock_file.body(small) == (
        "# Written by `toolmatrix lock`. An edit by hand is refused.\n"
        'schema = "toolmatrix.lock/1"\n'
        "\n"
        "[matrix]\n"
        'date = "2026-11-20"\n'
        'digest = "sha256:00"\n'
        "\n"
        "[render]\n"
        'base = ["debian:12=a", "b=c"]\n'
        'dialect = "classic"\n'
        'recipe = "toolchain"\n'
        "\n"
        '[environments."a b.c"]\n'
        'request = ["Foo_Bar ~=1"]\n'
        "\n"
        '[environments."a b.c".targets.arm]\n'
        'accelerator = "none"\n'
        'evidence = "derived"\n'
        'from = "source"\n'
        'platform = "linux/arm64"\n'
        "\n"
        '[environments."a b.c".targets.arm.components]\n'
        'python = { version = "3.9", evidence = "artifact", facts = ["a", "b"], disputed = ["row/2.6.0#python"] }\n'
        "\n"
        "[environments.default]\n"
        'request = ["tensorflow==2.6.5", "--with=cuda>=11", "--target=x86,arm"]\n'
        "\n"
        "[environments.default.targets.arm]\n"
        'accelerator = "none"\n'
        'evidence = "derived"\n'
        'from = "source"\n'
        'platform = "linux/arm64"\n'
        "\n"
        "[environments.default.targets.arm.components]\n"
        'python = { version = "3.9", evidence = "artifact", facts = ["a", "b"], disputed = ["row/2.6.0#python"] }\n'
        "\n"
        "[environments.default.targets.x86]\n"
        'accelerator = "cuda"\n'
        'evidence = "derived"\n'
        'from = "source"\n'
        'platform = "linux/amd64"\n'
        "\n"
        "[environments.default.targets.x86.archs]\n"
        'sm_86 = { evidence = "ran", facts = ["arch"] }\n'
        "\n"
        "[environments.default.targets.x86.components]\n"
        'cuda = { version = "11.2.2", evidence = "derived", facts = ["row/2.6.0"], kept = true }\n'
        'driver = { floor = "450.80", evidence = "stated", facts = ["floor"] }\n'
        'python = { version = "3.9", evidence = "artifact", facts = ["a", "b"], disputed = ["row/2.6.0#python"] }\n'
        'tensorflow = { version = "2.6.5", evidence = "artifact", facts = ["wheels/2.6.5"] }\n'
        "\n"
        "[environments.default.targets.x86.devices]\n"
        '"8.6" = { evidence = "stated", facts = ["runs"], disputed = ["other"] }\n'
        "\n"
        "[environments.default.targets.x86.flags]\n"
        'cflags = ["-O2"]\n'
        'missing = ["crc32"]\n'
        'nvcc = ["-gencode=x"]\n'
        "\n"
        "[environments.default.targets.x86.flags.env]\n"
        'CC = "gcc-7"\n'
        "\n"
    )


def test_a_lock_answers_for_keep(small: Lock) -> None:
    assert small.targets["x86"].chosen == {
        "tensorflow": "2.6.5",
        "cuda": "11.2.2",
        "python": "3.9",
    }
    assert small.environment("other") is None
    only = small.replace(environments={"a": small.environments["default"]})
    assert only.environment("other") == only.environment("a")
    assert only.targets == small.targets
    assert small.replace(environments={}).targets == {}


def test_an_environment_knows_what_was_asked(small: Lock) -> None:
    assert small.environments["default"].asked == {
        "tensorflow": "tensorflow==2.6.5",
        "cuda": "cuda>=11",
    }
    assert small.environments["a b.c"].asked == {"foo-bar": "Foo_Bar ~=1"}


def test_two_devices_may_ask_for_the_same_arch() -> None:
    arch = {"name": "sm_80", "evidence": "ran", "facts": ["a"], "disputed": []}
    flags: dict[str, Any] = {name: [] for name in ("cflags", "cxxflags", "nvcc", "hipcc")}
    document = {
        "request": {"accelerator": {}, "from": "source"},
        "targets": {
            "x86": {
                "components": {},
                "archs": [arch, arch | {"evidence": "stated", "facts": ["a", "b"]}],
                "devices": [],
                "flags": flags | {"missing": [], "env": {}, "facts": []},
                "platform": "",
            }
        },
    }
    made = model.environment(document, ["cuda"]).targets["x86"]
    assert made.archs == {"sm_80": Backed(evidence="stated", facts=("a", "b"))}
    assert made.evidence == "stated"
