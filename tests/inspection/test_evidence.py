"""What speaks against an image beside its checks: foreign programs, promises of CFLAGS, variables, and secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.images import images as made
from tests.images.images import link, program
from tests.inspection.test_observe import TestLook, cache, elf, needs, seen, valued
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import WARN, outcome
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import secrets
from toolmatrix.inspection.model import Inventory, Seen, Skipped
from toolmatrix.inspection.observe import observe
from toolmatrix.judging import images
from toolmatrix.judging.expectations import parse_expectation

if TYPE_CHECKING:
    import tarfile

    from toolmatrix.finding import Verdict

    Files = dict[str, bytes | tarfile.TarInfo]

RELEASE: Files = {"etc/os-release": b"ID=debian\nVERSION_ID=12\n", "bin/sh": program()}


@pytest.fixture(scope="module")
def judge(cache: str) -> Any:
    """The warnings about an inventory."""
    index = open_index((), {"XDG_CACHE_HOME": cache})

    def warned(inventory: Inventory, *words: str) -> list[Verdict]:
        found = images.judge(inventory, map(parse_expectation, words), index)
        return [one for one in found if one.word == WARN]

    return warned


@pytest.mark.parametrize(
    ("path", "data", "warned"),
    [
        ("opt/app/bin/server", program("arm64"), True),
        ("opt/app/server", elf("arm64", interpreter="/lib/ld-linux-aarch64.so.1"), True),
        ("opt/app/libserver.so", program("arm64"), False),
        ("opt/app/bin/libserver.so.1", program("arm64"), False),
        ("opt/app/bin/old", elf("386", interpreter="/lib/ld-linux.so.2"), False),
        ("opt/app/bin/server", program("amd64"), False),
        ("usr/aarch64-linux-gnu/sbin/ldconfig", program("arm64"), False),
    ],
)
def test_a_program_for_another_processor_outside_of_path(
    judge: Any, path: str, data: bytes, warned: bool
) -> None:
    found = judge(seen({**RELEASE, "bin/a": program(), path: data}))
    assert [(one.code, one.where) for one in found] == ([("TM412", path)] if warned else [])


DWARF = [["-O2", "DW_AT_producer"]]
CRC = [["-march=armv8-a+crc", "DW_AT_producer"], ["-fsigned-char", "DW_AT_producer"]]
PLAIN = [["-march=armv8-a", ".GCC.command.line"], ["-fsigned-char", ".GCC.command.line"]]
NEWER = [["-march=armv8.2-a", "DW_AT_producer"], ["-fsigned-char", "DW_AT_producer"]]


@pytest.mark.parametrize(
    ("machine", "fields", "unkept"),
    [
        ("arm64", {"options": DWARF}, ["-fsigned-char", "-march=armv8-a+crc"]),
        ("arm64", {"options": CRC, "char": "signed"}, []),
        ("arm64", {"options": CRC, "char": "unsigned"}, ["-fsigned-char"]),
        ("arm64", {"options": PLAIN}, ["-march=armv8-a+crc"]),
        ("arm64", {"options": NEWER}, []),
        ("arm64", {"char": "unsigned"}, ["-fsigned-char"]),
        ("arm64", {}, []),
        ("amd64", {"options": DWARF, "char": "signed"}, ["-march=armv8-a+crc"]),
    ],
)
def test_files_compiled_without_what_cflags_promise(
    judge: Any, machine: str, fields: dict[str, Any], unkept: list[str]
) -> None:
    flags = ["CFLAGS=-O2 -fsigned-char -march=armv8-a+crc"]
    for path, told in (("opt/app/x.o", unkept), ("usr/lib/gcc/x.o", [])):
        found = judge(seen({path: elf(machine, **fields)}, Env=flags))
        assert [(one.code, one.name) for one in found] == [("TM413", name) for name in told]
    assert not judge(seen({"opt/app/x.o": elf(machine, **fields)}, Env=["CFLAGS=-O2"]))


@pytest.mark.parametrize(
    ("arch", "unkept"), [("x86-64", True), ("haswell", False), ("skylake", False)]
)
def test_the_arch_that_gcc_takes_unasked_is_no_choice(
    judge: Any, arch: str, *, unkept: bool
) -> None:
    options = [[f"-march={arch}", "DW_AT_producer"]]
    found = judge(seen({"opt/x.o": elf(options=options)}, Env=["CFLAGS=-march=haswell"]))
    assert [one.name for one in found] == ["-march=haswell"] * unkept


def test_a_record_whose_files_are_gone(judge: Any) -> None:
    folder = "usr/lib/python3/dist-packages/a-1.0.dist-info"
    inventory = seen(
        {f"{folder}/METADATA": b"Name: a\nVersion: 1.0\n", f"{folder}/RECORD": b"a/b.so,,\n"}
    )
    (found,) = judge(inventory)
    assert (found.code, found.found, found.where) == ("TM414", "a 1.0", f"{folder}/METADATA")


@pytest.mark.parametrize(
    ("files", "env", "warned"),
    [
        ({"opt/own/libx.so.1": elf()}, ["LD_LIBRARY_PATH=/opt/own"], True),
        ({"opt/own/libx.so.1": link("x"), "opt/own/x": elf()}, ["LD_LIBRARY_PATH=/opt/own"], True),
        (
            {"opt/own/libx.so.1": elf(), "usr/lib/libx.so.1": elf()},
            ["LD_LIBRARY_PATH=/opt/own"],
            False,
        ),
        (
            {"opt/own/libx.so.1": elf(), "etc/ld.so.cache": cache("/opt/own/libx.so.1")},
            ["LD_LIBRARY_PATH=/opt/own"],
            False,
        ),
        ({"usr/lib/libx.so.1": elf()}, [], False),
    ],
)
def test_a_library_found_through_a_variable_alone(
    judge: Any, files: Files, env: list[str], warned: bool
) -> None:
    found = judge(seen({"usr/bin/app": needs("libx.so.1"), **files}, Env=env))
    told = [(one.code, one.name, one.found) for one in found]
    assert told == ([("TM415", "LD_LIBRARY_PATH", "libx.so.1")] if warned else [])


def test_a_warning_lets_nothing_pass(cache: str) -> None:
    """Where every check is skipped nobody can say that the image is right, whatever is told beside."""
    index = open_index((), {"XDG_CACHE_HOME": cache})
    inventory = Inventory(
        subject="x", features={"secret": (Seen(version="A", seen_by="b", where="c"),)}
    )
    found = images.judge(inventory, [parse_expectation("arch==arm64")], index)
    assert ([one.word for one in found], outcome(found)) == (["skip", "warn"], "unknown")


# Secrets

BAKED = "s3cr3t-Correct.Horse"
HOLDERS: dict[str, dict[str, Any]] = {
    "variable": {"Env": [f"DB_PASSWORD={BAKED}"]},
    "lower case": {"Env": [f"my_api_key={BAKED}"]},
    "address": {"Env": [f"PIP_INDEX_URL=https://me:{BAKED}@host/simple"]},
    "label": {"Labels": {"note": f"--token {BAKED}"}},
    "entry point": {"Entrypoint": ["server", f"--admin-password={BAKED}"]},
    "command": {"Cmd": ["curl", "-H", f"Authorization: Bearer {BAKED}"]},
}
STEPS = (
    f"ARG NPM_TOKEN={BAKED}",
    f"|1 NPM_TOKEN={BAKED} /bin/sh -c npm ci",
    f"/bin/sh -c #(nop)  ENV AWS_SECRET_ACCESS_KEY={BAKED}",
    f"RUN git clone https://user:{BAKED}@host/x # buildkit",
    f"RUN DB_PASSWORD='{BAKED}' ./build",
)


def with_history(step: str, *, empty: bool, **config: Any) -> Inventory:
    """What is read of an image with this instruction in its history."""
    whole = made.image(RELEASE, **config)
    held = json.loads(whole.config)
    held["history"] = (
        [{"created_by": step}]
        if not empty
        else [
            {"created_by": step, "empty_layer": True},
            {"created_by": "COPY . /"},
        ]
    )
    saved = made.saved(whole._replace(config=made.as_json(held)))
    look = TestLook(Budget("image.tar"))
    return observe(*made.from_archive(saved, look=look))


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_secret_in_the_configuration_is_told_and_never_shown(judge: Any, holder: str) -> None:
    inventory = seen(RELEASE, **HOLDERS[holder])
    (found,) = judge(inventory)
    assert found.code == "TM416"
    assert BAKED not in json.dumps(inventory.to_json())
    assert BAKED not in repr(found)
    assert secrets.MASK in json.dumps(inventory.to_json())


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("empty", [True, False])
def test_a_secret_in_the_history_is_told_and_never_shown(
    judge: Any, step: str, empty: bool
) -> None:
    inventory = with_history(step, empty=empty, Env=["PATH=/bin"])
    assert [one.code for one in judge(inventory)] == ["TM416"]
    assert BAKED not in json.dumps(inventory.to_json())


def test_a_secret_that_a_program_prints_is_never_shown() -> None:
    look = TestLook(Budget("image.tar"))
    saved = made.saved(made.image(RELEASE, Env=[f"DB_PASSWORD={BAKED}"]))

    def ask(read: Inventory) -> Inventory:
        said = Skipped(what="running gcc", reason=f"`gcc --version` printed no version: {BAKED}")
        return read.replace(skipped=(said,))

    inventory = observe(*made.from_archive(saved, look=look), ask)
    assert [one.reason for one in inventory.skipped] == ["`gcc --version` printed no version: ***"]
    assert BAKED not in json.dumps(inventory.to_json())


@pytest.mark.parametrize(
    "word",
    [
        *("TOKENIZERS_PARALLELISM=false", "DB_PASSWORD_FILE=/run/secrets/db", "API_KEY="),
        *(
            "PASSWORD=$PASSWORD",
            "GPG_KEY=A035C8C19219BA821ECEA86B64E628F8D684696D",
            "MAX_TOKEN=4096",
        ),
        *("CUDA_VERSION=12.4.1", "PIP_INDEX_URL=https://host:8080/simple", "TOKEN=true"),
    ],
)
def test_what_is_no_secret_is_shown(judge: Any, word: str) -> None:
    inventory = seen(RELEASE, Env=[word])
    name, _, value = word.partition("=")
    assert judge(inventory) == []
    assert valued(inventory, f"env:{name}") == ([value] if value else [])


def test_a_secret_is_compared_with_nothing(cache: str) -> None:
    index = open_index((), {"XDG_CACHE_HOME": cache})
    inventory = seen(RELEASE, Env=[f"DB_PASSWORD={BAKED}"])
    found, *_ = images.judge(inventory, [parse_expectation(f"env==DB_PASSWORD={BAKED}")], index)
    assert (found.word, found.reason) == (
        "unknown",
        "it contains a secret, which is never compared",
    )


@settings(max_examples=examples(100), deadline=None)
@given(
    secret=st.text("abcdefghijkABCDEFGHIJK0123456789-_.", min_size=8, max_size=40).filter(
        lambda text: not text.isdigit() and text[0] != "."
    ),
    around=st.tuples(st.text(max_size=20), st.text(max_size=20)),
)
def test_what_a_variable_holds_is_shown_nowhere_else(secret: str, around: tuple[str, str]) -> None:
    text = secret.join(around)
    inventory = Inventory(
        subject="x",
        features={
            "env:A_SECRET": (Seen(version=secret, seen_by="configuration", where="Env"),),
            "label:x": (Seen(version=text, seen_by="configuration", where="Labels"),),
        },
        history=(("sha256:1", text),),
    )
    hidden = secrets.hide_secrets(inventory)
    said = [
        hidden.history[0][1],
        *(one.version for held in hidden.features.values() for one in held),
    ]
    assert not [one for one in said if secret in one]
    assert secrets.hide_secrets(hidden) == hidden


@pytest.mark.parametrize(
    ("user", "folder", "warned"),
    [
        ({"interpreter": "/lib64/ld-linux-x86-64.so.2"}, "opt/own", True),
        ({"interpreter": "/lib64/ld-linux-x86-64.so.2"}, "usr/lib", False),
        # A library may be loaded by whoever loaded what it needs.
        ({}, "opt/own", False),
    ],
)
def test_a_library_that_a_program_does_not_reach(
    judge: Any, user: dict[str, str], folder: str, warned: bool
) -> None:
    files = {"lib64/ld-linux-x86-64.so.2": elf(), f"{folder}/libx.so.1": elf()}
    image = seen({"usr/bin/app": needs("libx.so.1", **user), **files})
    told = [(one.code, one.name, one.found, one.where) for one in judge(image)]
    # Who asks for it gets a failure in place of the warning.
    assert not judge(image, "soname==libx.so.1")
    assert told == ([("TM417", "libx.so.1", "usr/bin/app", "opt/own/libx.so.1")] if warned else [])


@pytest.mark.parametrize(
    ("gives", "warned"),
    [
        ([["GLIBC", "2.34"]], True),
        ([["GLIBC", "2.38"]], False),
        ([["GLIBC", "2.100"]], False),
        # Of a family that the library does not have nothing is known.
        ([["GLIBD", "2.1"]], False),
        ([], False),
    ],
)
def test_a_library_that_is_older_than_what_is_asked_of_it(
    judge: Any, gives: list[list[str]], warned: bool
) -> None:
    program = needs("libc.so.6", asks=[["libc.so.6", "GLIBC_2.38"], ["libgone.so", "A_1"]])
    files = {"usr/lib/libc.so.6": elf(soname="libc.so.6", gives=gives), "usr/bin/app": program}
    told = [(one.code, one.name, one.found, one.where) for one in judge(seen(files))]
    assert told == ([("TM418", "libc.so.6", "GLIBC_2.38", "usr/bin/app")] if warned else [])


PIP = "opt/venv/bin/pip"
ON_PATH = ["PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin"]


@pytest.mark.parametrize(
    ("line", "files", "missing"),
    [
        # As the kernel takes the line.
        (b"#!/build/venv/bin/python\nimport pip\n", {}, "/build/venv/bin/python"),
        (b"#! \t/build/python  -I \t\n", {}, "/build/python"),
        (b"#!/build/python", {}, "/build/python"),
        (b"#!/bin/sh\r\n", {}, "/bin/sh\r"),
        (b"#!/bin/sh\n", {}, ""),
        (b"#!/bin/sh -e", {}, ""),
        (b"#!\n", {}, ""),
        (b"", {}, ""),
        (b"/build/python\n", {}, ""),
        # Relative to where it is started, longer than what is looked at, and mounted when it is.
        (b"#!python\n", {}, ""),
        (b"#!/" + b"a" * 252 + b"\n", {}, "/" + "a" * 252),
        (b"#!/" + b"a" * 253 + b"\n", {}, ""),
        (b"#!/proc/self/exe\n", {}, ""),
        (b"#!/data/bin/python\n", {}, ""),
        (b"#!/more/bin/python\n", {}, ""),
        # Through links.
        (b"#!/opt/venv/bin/python\n", {"opt/venv/bin/python": link("/bin/sh")}, ""),
        (b"#!/lib64/../py\n", {"lib64": link("opt/venv"), "opt/py": program()}, ""),
        (
            b"#!/opt/venv/bin/python\n",
            {"opt/venv/bin/python": link("python3"), "opt/venv/bin/python3": link("/no/python3")},
            "/opt/venv/bin/python",
        ),
        (b"#!/a\n", {"a": link("b"), "b": link("a")}, "/a"),
        # By way of env.
        (b"#!/usr/bin/env node\n", {}, "env node"),
        (b"#!/usr/bin/env sh\n", {}, ""),
        (b"#!/usr/bin/env sh -e\n", {}, "env sh -e"),
        (b"#!/usr/bin/env sh\r\n", {}, "env sh\r"),
        (b"#!/usr/bin/env -S sh -e\n", {}, ""),
        (b"#!/usr/bin/env -Snode -e\n", {}, "env node"),
        (b"#!/usr/bin/env --split-string=node\n", {}, "env node"),
        (b"#!/usr/bin/env node\n", {"opt/venv/bin/node": link("/usr/lib/node")}, "env node"),
        (b"#!/usr/bin/env node\n", {"opt/other/bin/node": program()}, "env node"),
        (b"#!/usr/bin/env node\n", {"opt/venv/bin/node": program()}, ""),
        *(
            (b"#!/usr/bin/env" + words + b"\n", {}, "")
            for words in (b"", b" -i node", b" -S -i node", b" A=b", b" -S A=b node", b" -S ${A}")
        ),
        (b"#!/usr/bin/env -S 'node'\n", {}, ""),
        (b"#!/usr/bin/env ./node\n", {}, ""),
        (b"#!/build/bin/env node\n", {}, "/build/bin/env"),
    ],
)
def test_a_script_whose_interpreter_is_gone(
    judge: Any, line: bytes, files: Files, missing: str
) -> None:
    below: Files = {**RELEASE, "usr/bin/env": link("../../bin/busybox"), "bin/busybox": program()}
    volumes: dict[str, dict[str, str]] = {"/data": {}, "/more/": {}}
    found = judge(seen(below, {**files, PIP: line}, Env=ON_PATH, Volumes=volumes))
    told = [(one.code, one.name, one.found, one.where) for one in found]
    assert told == ([("TM419", missing, PIP, PIP)] if missing else [])


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("usr/local/bin/app", "usr/local/bin/app"),
        # Where none looks, may run it, or the distribution answers for it.
        ("opt/other/bin/app", ""),
        ("opt/venv/bin/lib/app", ""),
        ("usr/share/doc/app", ""),
        ("opt/venv/bin/python3.11-gdb.py", ""),
        ("usr/bin/app", ""),
        ("bin/app", ""),
        # A program whose version is known.
        ("usr/bin/bazel", "usr/bin/bazel"),
        ("usr/local/bin/bazel", "usr/local/bin/bazel"),
    ],
)
def test_scripts_on_path_count(judge: Any, path: str, where: str) -> None:
    prefix = path.rpartition("bin/")[0]
    files: Files = {f"{prefix}bin/bazel-real": elf(versions=["7.1.0"]), path: b"#!/bin/bash\n"}
    found = judge(seen({**RELEASE, **files}, Env=ON_PATH))
    assert [one.where for one in found] == ([where] if where else [])


def test_an_interpreter_is_one_warning_that_names_scripts_and_their_layer(judge: Any) -> None:
    line = b"#!/build/python\n"
    names = ("venv/bin/pip", "venv/bin/pip3", "venv/bin/wheel", "app/bin/x.py", "app/x.py")
    files: Files = {f"opt/{name}": line for name in names}
    # What may not be run is none.
    links = {"x": link("../../app/bin/x.py"), "y": link("../../app/x.py")}
    files |= {f"opt/venv/bin/{name}": to for name, to in links.items()}
    inventory = seen(RELEASE, files, {"opt/venv/bin/.wh.wheel": b""}, Env=ON_PATH)
    (found,) = judge(inventory)
    several = inventory.features["missing-interpreter:/build/python"]
    places = [f"opt/{name}" for name in ("venv/bin/pip", "venv/bin/pip3", "app/bin/x.py")]
    assert [one.where for one in several] == places
    assert {one.layer for one in several} == {inventory.history[1][0]}
    assert (found.where, len(found.others)) == (places[0], 2)
