"""A machine as a whole: captured ones, and this one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
import yaml

from tests.golden import VARIABLE
from tests.inspection import machines
from tests.schemas import shipped
from toolmatrix.inspection import host, subjects, system
from toolmatrix.resources import of_matrix

if TYPE_CHECKING:
    from toolmatrix.inspection.model import Inventory

XEON, ALTRA = machines.load("xeon"), machines.load("altra")
EMPTY = machines.Captured({}, {}, free=-1)


def told(inventory: Inventory, name: str) -> str:
    """The values of a feature, or the default version of a component."""
    seen = inventory.features.get(name) or inventory.components.get(name, ())
    return ", ".join(dict.fromkeys(one.version for one in seen))


@pytest.mark.parametrize(
    ("name", "xeon", "altra"),
    [
        ("cpu-model", "Intel(R) Xeon(R) Silver 4316 CPU @ 2.30GHz", "Neoverse-N1"),
        ("cpu", "icelake", "neoverse_n1"),
        ("crc32", "yes", "yes"),
        ("cpu:avx2", "yes", ""),
        ("cpus", "80", "80"),
        ("threads-per-core", "2", "1"),
        ("sockets", "2", "1"),
        ("numa-nodes", "2", "1"),
        ("cache:L1d", "49152", "65536"),
        ("smt", "on", "notsupported"),
        ("frequency:governor", "performance", "powersave"),
        ("frequency:highest", "3400000000", "3000000000"),
        ("frequency:boost", "on", ""),
        ("hypervisor", "none", "none"),
        ("page-size", "4096", "65536"),
        ("huge-page-size", "2097152", "536870912"),
        ("kernel", "6.1.0-18-amd64", "6.1.0-18-arm64-64k"),
        ("cmdline:intel_iommu", "on", ""),
        ("cmdline:mitigations", "auto", "auto"),
        ("thp", "always", "madvise"),
        ("sysctl:kernel.numa_balancing", "1", "0"),
        ("limit:open files", "1048576", "1024"),
        ("cgroup:cpu", "max 100000", "max 100000"),
        ("gcc:char", "signed", "unsigned"),
        ("gcc:pie", "2", "2"),
        ("gcc:-march", "x86-64", "armv8-a"),
        ("gcc:-mcpu", "", "generic"),
        ("gcc:machine", "x86_64-linux-gnu", "aarch64-linux-gnu"),
        ("binutils", "2.40", "2.40"),
        ("gcc", "12.2.0", "12.2.0"),
        ("python", "3.11.2", "3.11.2"),
        ("numpy", "1.26.4", "1.26.4"),
        ("numpy:blas", "openblas64", "openblas64"),
        ("python:OPT", "-DNDEBUG -g -fwrapv -O2 -Wall", "-DNDEBUG -g -fwrapv -O2 -Wall"),
        (
            "python:CONFIG_ARGS",
            "'--enable-shared' '--with-lto' --enable-optimizations",
            "'--enable-shared' '--with-lto' --enable-optimizations",
        ),
        ("distro", "debian12", "debian12"),
        ("dpkg:libc6", "2.36-9+deb12u4", "2.36-9+deb12u4"),
        ("soname:libquadmath.so.0", "/lib/x86_64-linux-gnu/libquadmath.so.0", ""),
        ("env:OMP_NUM_THREADS", "40", "40"),
    ],
)
def test_machines_tell_what_matters(name: str, xeon: str, altra: str) -> None:
    assert (told(system.observe(XEON), name), told(system.observe(ALTRA), name)) == (xeon, altra)


def test_of_the_environment_only_listed_names_are_read() -> None:
    asked: list[str] = []

    class Asking(machines.Captured):
        def variable(self, name: str) -> str:
            asked.append(name)
            return super().variable(name)

    machine = Asking(XEON.files, XEON.outputs, variables=XEON.variables)
    document = json.dumps(system.observe(machine).to_json())
    assert "AWS_SECRET_ACCESS_KEY" in XEON.variables
    assert "wJalrXUtnFEMI" not in document
    assert set(asked) == set(host.load_readings().environment)


def test_what_cannot_be_seen_is_a_skip_with_its_reason() -> None:
    found = system.observe(EMPTY)
    reasons = {one.what: one.reason for one in found.skipped}
    assert (found.platform, found.components) == ("", {})
    assert reasons["page-size"] == "no getconf"
    assert reasons["thp"] == "no /sys/kernel/mm/transparent_hugepage/enabled"
    assert reasons["cpu-model"] == "no lscpu, no /proc/cpuinfo"
    assert reasons["python packages"] == "no python3 prints its import path"
    every = {one.name.removesuffix(":{name}") for one in host.load_readings().readings}
    assert every <= set(reasons)


def test_a_place_that_does_not_tell_is_named() -> None:
    machine = machines.Captured({"/proc/cpuinfo": "odd\n"}, {"lscpu": "odd\n"})
    reasons = {one.what: one.reason for one in system.observe(machine).skipped}
    assert reasons["cpu-model"] == "`lscpu` does not show it, /proc/cpuinfo does not show it"


def test_the_first_place_that_tells_decides() -> None:
    files = {
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    }
    found = system.observe(machines.Captured(files, {}))
    assert (told(found, "cgroup:memory"), told(found, "cgroup:cpu")) == ("max", "max")
    newer = system.observe(machines.Captured(files | {"/sys/fs/cgroup/memory.max": "1024\n"}, {}))
    assert told(newer, "cgroup:memory") == "1024"


def test_cores_that_differ_are_all_told() -> None:
    path = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    files = {path.format(0): "performance\n", path.format(1): "powersave\n"}
    found = system.observe(machines.Captured(files, {}))
    assert told(found, "frequency:governor") == "performance, powersave"


def test_rpm_is_asked() -> None:
    words = "rpm -qa --qf %{NAME}\\t%{VERSION}-%{RELEASE}\\n"
    found = system.observe(machines.Captured({}, {words: "glibc\t2.34-100.el9\nbash\t5.1-9\n"}))
    assert told(found, "rpm:glibc") == "2.34-100.el9"
    assert told(found, "glibc") == "2.34"


@pytest.mark.parametrize(
    "text",
    [
        "build_time_vars = {'OPT': __import__('os').system('true')}\n",
        "build_time_vars = " + "[" * 5000,
        "build_time_vars = ['a']\n",
        "nothing\n",
        "build_time_vars = {'OPT': '-O2'\n",
    ],
)
def test_what_python_keeps_of_its_build_is_read_and_never_run(text: str) -> None:
    path = "/usr/lib/python3.11/_sysconfigdata__linux.py"
    outputs = {"python3 -c import sys; print('\\n'.join(sys.path))": "/usr/lib/python3.11\n"}
    found = system.observe(machines.Captured({path: text}, outputs))
    assert not any(name.startswith("python:") for name in found.features)


def test_older_numpy_names_its_libraries_in_another_way() -> None:
    path = "/site/numpy/__config__.py"
    text = "blas_opt_info={'libraries': ['openblas64_', 'openblas64_'], 'library_dirs': ['/l']}\n"
    outputs = {"python3 -c import sys; print('\\n'.join(sys.path))": "/site\n"}
    assert told(system.observe(machines.Captured({path: text}, outputs)), "numpy:blas") == (
        "openblas64_"
    )


def test_a_package_is_that_of_the_module_which_is_first_on_the_path() -> None:
    site = "/usr/lib/python3/dist-packages"
    files = {
        "/vendor/numpy/__init__.py": "\n",
        "/vendor/numpy/version.py": 'version = "1.26.4"\n',
        f"{site}/numpy/__init__.py": "\n",
        f"{site}/numpy-2.1.3.dist-info/METADATA": "Name: numpy\nVersion: 2.1.3\n",
        f"{site}/numpy-2.1.3.dist-info/RECORD": "numpy/__init__.py,,\n",
        f"{site}/six-1.17.0.dist-info/METADATA": "Name: six\nVersion: 1.17.0\n",
        f"{site}/six-1.17.0.dist-info/RECORD": "six.py,,\n__pycache__/six.pyc,,\nleft.py,,\n",
        f"{site}/left.py": "\n",
    }
    outputs = {
        "python3 -c import sys; print('\\n'.join(sys.path))": f"/vendor\n/usr/lib/python3.11\n{site}\n",
        "python3 --version": "Python 3.11.2\n",
    }
    found = system.observe(machines.Captured(files, outputs))
    assert [one.version for one in found.components["numpy"] if one.default] == ["1.26.4"]
    assert told(found, "imported:numpy") == (
        f"python3 -> /usr -> /vendor/numpy 1.26.4; the record in {site} says 2.1.3"
    )
    assert told(found, "unimported:six") == f"python3 -> /usr finds no `six`: {site}/six is missing"


def test_the_data_keeps_its_schema() -> None:
    with open(of_matrix("matrix", "machine.yaml"), encoding="utf-8") as file:
        held = yaml.safe_load(file)
    jsonschema.validate(held, shipped("machine"))
    used = {one["source"] for part in ("readings", "environment") for one in held[part]}
    assert used <= set(held["sources"])
    for place in (place for one in held["readings"] for place in one["origins"]):
        assert "find" not in place or "(" in place["find"]


def test_each_reading_says_why_it_matters() -> None:
    book = host.load_readings()
    assert book.why("sysctl:vm.swappiness")[0].startswith("how soon memory")
    assert book.why("limit:open files")[0].startswith("a program that needs more")
    assert book.why("env:PATH")[0].startswith("it decides which compiler")
    assert book.why("nothing") == ("", "")


@pytest.mark.process
def test_this_machine_is_a_subject() -> None:
    found = subjects.observe("host")
    assert found.subject == "host"
    assert found.platform.startswith("linux/")
    assert int(told(found, "page-size")) >= 4096
    assert told(found, "kernel")
    assert "limit:open files" in found.features
    assert {one.reason for one in found.skipped} - {""}
    assert host.HERE.where("no-such-program") == ""


@pytest.mark.parametrize("name", ["xeon", "altra"])
def test_the_machines_of_the_pages_are_those_captured(name: str) -> None:
    path = Path(__file__).parents[2] / "docs" / "logs" / f"{name}.json"
    found = system.observe(machines.load(name), "/home").to_json()
    text = json.dumps(found, sort_keys=True, indent=1) + "\n"
    if os.environ.get(VARIABLE):
        path.write_text(text)
    assert path.read_text() == text
