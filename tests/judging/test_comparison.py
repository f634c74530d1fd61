"""Environments compared: nothing differs from itself, sides can be exchanged, and each drift is named alone."""

from __future__ import annotations

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.inspection import machines
from tests.judging.test_images import ARM
from tests.schemas import shipped
from toolmatrix.inspection import host, system
from toolmatrix.inspection.model import (
    EXPECTED,
    SUSPICIOUS,
    Comparison,
    Difference,
    Inventory,
    Seen,
    Skipped,
    Soname,
)
from toolmatrix.judging import comparison, validation
from toolmatrix.judging.comparison import compare
from toolmatrix.lockfile.model import LockedComponent, LockedFlags
from toolmatrix.resources import porting_path

BOOK = comparison.load()
WHY = host.load_readings().why
XEON, ALTRA = (system.observe(machines.load(name)) for name in ("xeon", "altra"))


def seen(value: str, *, default: bool = True) -> tuple[Seen, ...]:
    return (Seen(version=value, seen_by="test", where="x", default=default),)


def made(arch: str, components: dict[str, str], features: dict[str, str]) -> Inventory:
    return Inventory(
        subject=arch,
        platform=f"linux/{arch}",
        components={name: seen(value) for name, value in components.items()},
        features={name: seen(value) for name, value in features.items()},
    )


COMPONENTS = {
    "gcc": "12.2.0",
    "python": "3.11.2",
    "numpy": "1.26.4",
    "glibc": "2.36",
    "distro": "debian12",
}
FEATURES = {"dist:numpy": "1.26.4", "dpkg:libc6": "2.36-9", "env:LANG": "C", "label:a": "b"}
X86 = made("amd64", COMPONENTS, FEATURES | {"dpkg:gcc-12-x86-64-linux-gnu": "12.2.0-14"})
ARM64 = made(
    "arm64",
    COMPONENTS,
    FEATURES
    | {"flag:-fsigned-char": "-fsigned-char", "dpkg:gcc-12-aarch64-linux-gnu": "12.2.0-14+b1"},
)


def wrong(found: Comparison) -> dict[str, tuple[str, str]]:
    """What is suspicious, by name, with the values of both sides."""
    return {one.name: values(one) for one in found.differences if one.verdict == SUSPICIOUS}


def values(one: Difference) -> tuple[str, str]:
    return (one.old.value if one.old else "", one.new.value if one.new else "")


def changed(inventory: Inventory, name: str, value: str | None) -> Inventory:
    """The inventory with one component (without a colon in its name) or feature replaced or gone."""
    components, features = dict(inventory.components), dict(inventory.features)
    held = features if ":" in name or name in (*features, "foreign-arch") else components
    held.pop(name, None)
    if value is not None:
        held[name] = seen(value)
    return inventory.replace(components=components, features=features)


def test_two_targets_of_one_environment_have_nothing_suspicious() -> None:
    found = compare(X86, ARM64, BOOK, WHY)
    assert wrong(found) == {}
    assert {one.name for one in found.differences} == {
        "arch",
        "flag:-fsigned-char",
        "package:gcc-12-<triplet>",
    }
    assert ("platform", "char", "signed") in found.same


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("gcc", "11.4.0", {"component:gcc": ("12.2.0", "11.4.0")}),
        ("python", None, {"component:python": ("3.11.2", "")}),
        ("numpy", "2.1.0", {"component:numpy": ("1.26.4", "2.1.0")}),
        ("glibc", "2.31", {"component:glibc": ("2.36", "2.31")}),
        ("scipy", "1.11", {"component:scipy": ("", "1.11")}),
        ("dpkg:libc6", "2.36-8", {"package:libc6": ("2.36-9", "2.36-8")}),
        (
            "flag:-fsigned-char",
            None,
            {"effect:char": ("signed", "unsigned")},
        ),
        ("flag:-O0", "-O0", {"flag:-O0": ("", "-O0")}),
        ("env:LANG", "tr_TR", {"env:LANG": ("C", "tr_TR")}),
        ("label:a", None, {"label:a": ("b", "")}),
        ("foreign-arch", "amd64", {"foreign-arch": ("", "amd64")}),
        ("gcc", "12", {}),
        ("flag:-mcpu=neoverse-n1", "-mcpu=neoverse-n1", {}),
        ("dpkg:libhwasan0", "12.2.0-14", {}),
        ("label:org.opencontainers.image.created", "2026-01-01", {}),
    ],
)
def test_one_drift_is_named_alone(
    name: str, value: str | None, told: dict[str, tuple[str, str]]
) -> None:
    found = compare(X86, changed(ARM64, name, value), BOOK, WHY)
    assert wrong(found) == told
    assert all(one.why for one in found.differences)


def test_servers_of_two_architectures() -> None:
    found = compare(XEON, ALTRA, BOOK, WHY)
    assert wrong(found) == {
        "effect:char": ("signed", "unsigned"),
        "frequency:governor": ("performance", "powersave"),
        "limit:open files": ("1048576", "1024"),
        "memory": ("270090633216", "135045316608"),
        "numa-nodes": ("2", "1"),
        "page-size": ("4096", "65536"),
        "sockets": ("2", "1"),
        "sysctl:kernel.numa_balancing": ("1", "0"),
        "thp": ("always", "madvise"),
    }
    expected = {one.name for one in found.differences if one.verdict == EXPECTED}
    assert {
        *("cpu:avx2", "cpu:asimd", "gcc:char", "gcc:-march", "gcc:machine", "kernel"),
        *("package:intel-microcode", "package:libhwasan0", "package:libbz2-1.0"),
        *("soname:libquadmath.so.0", "python:PY_CFLAGS", "numpy:lapack", "cmdline:intel_iommu"),
    } <= expected
    assert "frequency:boost" in [name for one in found.unseen for name in one.names]
    assert all(one.why for one in found.differences)


def test_on_one_architecture_the_processor_is_suspicious() -> None:
    less = changed(XEON, "cpu:avx512f", None)
    assert wrong(compare(XEON, less, BOOK, WHY)) == {"cpu:avx512f": ("yes", "")}
    bare = changed(changed(ALTRA, "cpu:crc32", None), "crc32", None)
    assert wrong(compare(XEON, bare, BOOK, WHY))["effect:crc32 instructions"] == ("yes", "no")


_ODD = (
    "flag:-fsigned-char flag:-O3 char codegen cpu:avx page-size memory sysctl:vm.swappiness user thp "
    "soname:libm.so.6 rpm:glibc dpkg:libssl3t64 cmdline:isolcpus gcc:char package:odd \x1b[0m >=1"
)
_names = st.sampled_from([*COMPONENTS, *FEATURES, *_ODD.split()])
_inventories = st.builds(
    lambda arch, components, features, skips, missing: made(arch, components, features).replace(
        platform=f"linux/{arch}" if arch else "",
        skipped=tuple(Skipped(what=what, reason="because") for what in skips),
        sonames=tuple(Soname(name=name, needed_by=("a",)) for name in missing),
    ),
    st.sampled_from(["amd64", "arm64", "riscv64", ""]),
    st.dictionaries(_names, st.sampled_from(["1", "1.2", "1.2.3", ">=1", "x"]), max_size=8),
    st.dictionaries(_names, st.sampled_from(["1", "2", "yes", "signed", "amd64"]), max_size=8),
    st.lists(
        st.sampled_from(["page-size", "labels", "cpu", "anything else", "hardware"]), max_size=2
    ),
    st.lists(st.sampled_from(["libm.so.6", "libx.so.1"]), max_size=2, unique=True),
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_inventories)
def test_nothing_differs_from_itself(one: Inventory) -> None:
    found = compare(one, one, BOOK, WHY)
    assert (found.differences, found.unseen) == ((), ())


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_inventories, _inventories)
def test_turned_round_it_is_mirrored(one: Inventory, other: Inventory) -> None:
    there, back = compare(one, other, BOOK, WHY), compare(other, one, BOOK, WHY)
    assert [mirrored(part) for part in back.differences] == list(there.differences)
    assert {(group, name) for group, name, _ in there.same} == {
        (group, name) for group, name, _ in back.same
    }
    assert sum(len(part.names) for part in there.unseen) == sum(
        len(part.names) for part in back.unseen
    )


def mirrored(one: Difference) -> Difference:
    return one.replace(old=one.new, new=one.old)


def test_a_lock_explains_what_it_says_of_two_targets() -> None:
    other = ARM.replace(
        platform="linux/amd64",
        components={
            "gcc": LockedComponent(version="11", evidence="ran"),
            "cuda": LockedComponent(version="12.2", evidence="ran"),
        },
        flags=LockedFlags(cxxflags=("-O1",)),
    )
    mine = ARM.replace(
        components={"gcc": LockedComponent(version="12", evidence="ran")}, flags=LockedFlags()
    )
    says = (validation.inventory(other, "x86"), validation.inventory(mine, "arm"))
    drifted = changed(changed(changed(X86, "gcc", "11.4.0"), "cuda", "12.2.1"), "flag:-O1", "-O1")
    assert set(wrong(compare(drifted, ARM64, BOOK, WHY))) == {
        "component:gcc",
        "component:cuda",
        "flag:-O1",
    }
    assert wrong(compare(drifted, ARM64, BOOK, WHY, says)) == {}
    more = changed(drifted, "gcc", "10.2.0")
    assert set(wrong(compare(more, ARM64, BOOK, WHY, says))) == {"component:gcc"}


def test_a_lock_is_held_against_what_it_speaks_of() -> None:
    says = validation.inventory(ARM, "arm", "lock:a")
    image = made(
        "arm64", COMPONENTS | {"gcc": "9.4.0", "python": "3.9.2", "driver": "470.1"}, FEATURES
    )
    found = compare(says, image, BOOK, WHY)
    told = wrong(found)
    assert not {"component:gcc", "component:python", "component:glibc"} & set(told)
    assert told["component:distro"] == ("ubuntu20.04", "debian12")
    assert told["component:bazel"] == ("5.3.0", "")
    assert told["flag:-fsigned-char"] == ("-fsigned-char", "")
    unseen = {name for one in found.unseen for name in one.names}
    assert {"glibc", "LANG", "a", "libc6"} <= unseen


def test_several_values_are_the_same_in_whatever_order() -> None:
    """Names of architectures sort differently."""
    one, other = (
        made(arch, {}, {}).replace(features={"entrypoint": (*seen(f"{name}-x"), *seen("k-x"))})
        for arch, name in (("amd64", "x86_64"), ("arm64", "aarch64"))
    )
    found = compare(one, other, BOOK, WHY)
    assert [(one.name, one.verdict) for one in found.differences][-1] == ("entrypoint", EXPECTED)


def test_packages_of_two_distributions_are_matched_by_what_they_are() -> None:
    debian = made("amd64", {"distro": "debian12"}, {"dpkg:libc6": "2.34-9", "dpkg:apt": "2.6"})
    other = made("amd64", {"distro": "rocky9"}, {"rpm:glibc": "2.34-100.el9", "rpm:dnf": "4.14"})
    found = compare(debian, other, BOOK, WHY)
    assert ("system packages", "libc6", "2.34-9") in found.same
    assert set(wrong(found)) == {"component:distro"}


def test_the_data_keeps_its_schema() -> None:
    with open(porting_path(), encoding="utf-8") as file:
        held = yaml.safe_load(file)
    jsonschema.validate(held, shipped("porting"))
    entries = [one for part in held.values() if isinstance(part, list) for one in part]
    used = {one["source"] for one in entries if isinstance(one, dict) and "source" in one}
    assert used <= set(held["sources"])
    kinds = [one["kind"] for one in held["kinds"]]
    assert len(set(kinds)) == len(kinds)
    assert {one["none"] for one in held["kinds"] if "none" in one} <= {*kinds, comparison.ALWAYS}


def test_every_reading_is_of_some_kind() -> None:
    for reading in host.load_readings().readings:
        name = reading.name.replace("{name}", "a.so.1")
        assert BOOK.kind(f"component:{name}" if reading.component else name), name


# An image and a machine

HOST = made(
    "amd64",
    COMPONENTS | {"scipy": "1.11.4", "cudnn": "8.9.7", "bazel": "6.4.0"},
    FEATURES
    | {"kernel": "6.1.0", "dpkg:vim": "9.0", "soname:libvim.so.1": "/usr/lib/libvim.so.1"}
    | {"env:OMP_NUM_THREADS": "4", "dpkg:libc6": "2.36-9"},
)
IMAGE = made(
    "amd64",
    COMPONENTS | {"numpy": "2.1.0", "torch": "2.6.0"},
    FEATURES
    | {"env:GPG_KEY": "A035", "env:CFLAGS": "-O2", "flag:-O2": "-O2", "dpkg:libc6": "2.31-13"},
)


def test_of_an_image_and_a_machine_only_what_both_can_have_is_suspicious() -> None:
    """A machine holds what else runs on it, and its environment is not read but for what decides."""
    found = compare(IMAGE, HOST, BOOK, WHY)
    assert wrong(found) == {
        "component:numpy": ("2.1.0", "1.26.4"),
        "component:cudnn": ("", "8.9.7"),
        "component:bazel": ("", "6.4.0"),
        "package:libc6": ("2.31-13", "2.36-9"),
        "env:CFLAGS": ("-O2", ""),
        "env:OMP_NUM_THREADS": ("", "4"),
    }
    everything = {one.name for one in found.differences}
    assert everything >= {"component:scipy", "component:torch", "package:vim"}
    assert ("GPG_KEY",) in {one.names for one in found.unseen}
    two_machines = compare(
        HOST, made("amd64", COMPONENTS, FEATURES | {"kernel": "6.1.0"}), BOOK, WHY
    )
    assert "component:scipy" in wrong(two_machines)


def test_debug_information_is_no_other_program() -> None:
    one = made("amd64", COMPONENTS, FEATURES | {"flag:-O2": "-O2", "flag:-g": "-g"})
    other = made("amd64", COMPONENTS, FEATURES | {"flag:-O2": "-O2"})
    assert wrong(compare(one, other, BOOK, WHY)) == {}
