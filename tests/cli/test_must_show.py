"""What the program must show on the built-in matrix, as text and as JSON."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.transcript import check

WORDS = ("ran", "artifact", "tested", "stated", "derived", "reported", "unknown")
THREE = "resolve tensorflow==2.6.5 --target x86,arm,amd --align tensorflow,python,numpy"
WHY_NOT = "why-not cuda==11.0 --with tensorflow==2.6.5 --arch sm_86"


def target(cli: Cli, line: str, name: str = "x86") -> dict[str, Any]:
    """One target of an answer."""
    outcome = cli(*shlex.split(line), "--json")
    assert outcome.code == 0, outcome.out
    found: dict[str, Any] = outcome.json()["targets"][name]
    return found


def versions(part: dict[str, Any]) -> dict[str, str]:
    """What was chosen of each component."""
    return {
        name: choice.get("version", choice.get("floor"))
        for name, choice in part["components"].items()
    }


def branches(out: str) -> list[str]:
    """The lines of the trees."""
    return [line for line in out.splitlines() if re.match(r"[├└│]", line)]


class TestOneRelease:
    """1. `toolmatrix resolve tensorflow==2.6.5`."""

    line = "resolve tensorflow==2.6.5"

    def test_the_set(self, real: Cli) -> None:
        part = target(real, self.line)
        found = versions(part)
        assert found["tensorflow"] == "2.6.5"
        assert found["bazel"] == "3.7.2"
        assert found["cuda"].startswith("11.2.")
        assert found["cudnn"].startswith("8.1.")
        assert found["numpy"] == "1.19.5"
        assert found["gcc"].split(".")[0] == "7"
        assert found["python"] == "3.9"
        assert found["driver"] == "450.80.02"
        assert "version" not in part["components"]["driver"]
        assert part["platform"] == "linux/amd64"

    def test_the_distro_and_image_offer_them(self, real: Cli) -> None:
        found = versions(target(real, self.line))
        distro, image = found["distro"], found["base-image"]
        assert re.search(distro.replace("ubuntu", "ubuntu:?"), image)
        for held in (f"gcc=={found['gcc']}", f"cuda=={found['cuda']}", f"distro=={distro}"):
            line = ("resolve", f"base-image=={image}", held, "--accelerator", "cuda")
            assert real(*line).code == 0

    def test_python_is_disputed(self, real: Cli) -> None:
        disputed = target(real, self.line)["components"]["python"]["disputed"]
        assert ["3.6-3.9" in one["says"] for one in disputed] == [True]
        out = real(*self.line.split(), COLUMNS="200").out
        assert re.search(r"disputed .*3\.6-3\.9.*TM301", out)

    def test_every_line_has_evidence_and_a_source(self, real: Cli) -> None:
        components = target(real, self.line)["components"]
        for choice in components.values():
            assert choice["evidence"] in WORDS
            assert choice["facts"]
            assert choice["why"]
            for fact in choice["facts"]:
                assert real("facts", fact, "--json").json()["facts"][0]["source"]["at"]
        out = real(*self.line.split(), COLUMNS="200").out
        notes = set(re.findall(r"^(\[\d+\])", out, re.MULTILINE))
        assert len(branches(out)) >= len(components) - 1
        for row in branches(out):
            assert re.search(rf"  ({'|'.join(WORDS)})  ", row), row
            assert set(re.findall(r"\[\d+\]", row.rpartition("  ")[2])) <= notes
            assert row.endswith("]")

    def test_the_defaults_are_printed(self, real: Cli) -> None:
        first = real(*self.line.split()).out.splitlines()[0]
        assert "x86, from source, accelerator cuda" in first


class TestThreeTargets:
    """2. Three targets with equal framework, Python and numpy."""

    def test_the_aligned_versions_are_equal(self, real: Cli) -> None:
        found = real(*THREE.split(), "--json").json()["targets"]
        assert list(found) == ["amd", "arm", "x86"]
        for name in ("tensorflow", "python", "numpy"):
            assert len({versions(part)[name] for part in found.values()}) == 1
        assert versions(found["x86"])["tensorflow"] == "2.6.5"

    def test_rocm_on_amd_and_cuda_on_x86_alone(self, real: Cli) -> None:
        found = real(*THREE.split(), "--json").json()["targets"]
        toolkits = {name: {"cuda", "rocm"} & set(versions(part)) for name, part in found.items()}
        assert toolkits == {"x86": {"cuda"}, "arm": set(), "amd": {"rocm"}}
        platforms = {name: part["platform"] for name, part in found.items()}
        assert platforms == {"x86": "linux/amd64", "arm": "linux/arm64", "amd": "linux/amd64"}

    def test_arm_has_signed_char_and_crc(self, real: Cli) -> None:
        flags = target(real, THREE, "arm")["flags"]
        for kind in ("cflags", "cxxflags"):
            assert "-fsigned-char" in flags[kind]
            assert [flag for flag in flags[kind] if re.match("-m(arch|cpu)=", flag)] == [
                "-march=armv8-a+crc"
            ]
        assert flags["missing"] == []
        out = real(*THREE.split()).out
        arm = out.partition("arm, from")[2].partition("amd, from")[0]
        assert "-fsigned-char" in arm
        assert "+crc" in arm

    @pytest.mark.parametrize(
        ("release", "flag", "missing"),
        [
            ("2.6.5", "-march=armv8-a+crc", ["--cpu neoverse-n1 with gcc 7"]),
            ("2.12.0", "-mcpu=neoverse-n1", []),
        ],
    )
    def test_crc_is_said_as_the_chosen_compiler_can(
        self, real: Cli, release: str, flag: str, missing: list[str]
    ) -> None:
        """GCC 7 does not know the CPU, and that is said; GCC 9 does, and its name brings CRC32."""
        line = f"resolve tensorflow=={release} --target arm --cpu neoverse-n1"
        flags = target(real, line, "arm")["flags"]
        assert flags["cflags"] == ["-fsigned-char", flag]
        assert flags["missing"] == missing

    def test_x86_and_amd_need_no_such_flags(self, real: Cli) -> None:
        found = real(*THREE.split(), "--json").json()["targets"]
        assert found["x86"]["flags"]["cflags"] == found["amd"]["flags"]["cflags"] == []


class TestWhyNot:
    """3. CUDA 11.0 with sm_86."""

    def test_the_hard_reason_is_apart_from_the_soft_one(self, real: Cli) -> None:
        outcome = real(*WHY_NOT.split(), "--json")
        assert outcome.code == 1
        hard, soft = outcome.json()["cores"]
        assert (hard["kind"], soft["kind"]) == ("hard", "soft")
        told = [line["text"] for line in hard["lines"]]
        assert re.match(r"cuda 11\.0\S* does not go with arch sm_86", told[0])
        assert told[1:] == ["you require cuda==11.0", "you require --arch sm_86"]
        assert not any("tensorflow" in text for text in told)
        assert soft["lines"][0]["text"].startswith("tensorflow 2.6.0 was tested with cuda 11.2")
        assert not any("sm_86" in line["text"] for line in soft["lines"])

    def test_the_repairs_work(self, real: Cli) -> None:
        repairs = real(*WHY_NOT.split(), "--json").json()["repairs"]
        changed = {one["change"][0]["from"]: one for one in repairs if len(one["change"]) == 1}
        arch, cuda = changed["--arch sm_86"], changed["cuda==11.0"]
        assert arch["change"][0]["to"] == "--arch sm_80"
        assert "sm_80 code also runs on 8.6 devices" in arch["text"]
        assert re.match(r"cuda==11\.[1-9]", cuda["change"][0]["to"])
        for one in repairs:
            again = real(*shlex.split(one["command"])[1:], "--json")
            # No fact joins TensorFlow 2.6.5 and CUDA 11.0, for which the code of another device would do.
            assert again.code == (0 if one is cuda else 4)
            # What stands beside an answer is looked for where it is asked for by itself.
            beside = {"skipped", "other_way", "fully_known"}
            answer = {name: part for name, part in again.json().items() if name not in beside}
            assert answer == one["resolution"]

    def test_in_words(self, real: Cli) -> None:
        outcome = real(*WHY_NOT.split())
        lines = outcome.out.splitlines()
        assert lines[0] == "no, for 2 independent reasons"
        assert lines[2].startswith("1. hard  Because cuda 11.0")
        second = next(line for line in lines if line.startswith("2. "))
        assert second.startswith("2. soft  Because tensorflow 2.6.0 was tested with cuda 11.2")
        assert "    toolmatrix resolve cuda==11.0 --with tensorflow==2.6.5 --arch sm_80" in lines
        assert "sm_80 code also runs on 8.6 devices" in outcome.out


class TestOldAndNew:
    """4. An old release for sm_70; a new one for a device of AMD."""

    def test_an_old_release(self, real: Cli) -> None:
        part = target(real, "resolve tensorflow==1.15.5 --arch sm_70")
        found = versions(part)
        assert found["gcc"].split(".")[0] == "7"
        assert found["bazel"] == "0.26.1"
        assert found["cuda"].startswith("10.0")
        assert found["cudnn"].startswith("7.")
        assert [one["name"] for one in part["archs"]] == ["sm_70"]
        assert any("sm_70" in flag for flag in part["flags"]["nvcc"])
        out = real("resolve", "tensorflow==1.15.5", "--arch", "sm_70").out
        for wanted in ("gcc 7 ", "bazel 0.26.1 ", "cuda 10.0", "cudnn 7.", "sm_70 "):
            assert wanted in out

    def test_a_device_of_amd_never_has_cuda(self, real: Cli) -> None:
        line = shlex.split("resolve tensorflow==2.20.0 --device MI300X --target amd")
        part = target(real, shlex.join(line), "amd")
        assert "rocm" in part["components"]
        assert not {"cuda", "cudnn", "nccl", "driver"} & set(part["components"])
        assert [one["name"] for one in part["devices"]] == ["gfx942"]
        assert [one["name"] for one in part["archs"]] == ["gfx942"]
        assert part["flags"]["nvcc"] == []
        assert any("gfx942" in flag for flag in part["flags"]["hipcc"])
        assert "cuda" not in real(*line).out

    @pytest.mark.parametrize("more", [[], ["--accelerator", "cuda"], ["--target", "x86"]])
    def test_cuda_is_refused_rather_than_taken(self, real: Cli, more: list[str]) -> None:
        where = [] if "--target" in more else ["--target", "amd"]
        outcome = real(
            "resolve", "tensorflow==2.20.0", "--device", "MI300X", *where, *more, "--json"
        )
        assert outcome.code == (0 if where and not more else 1)
        for part in outcome.json().get("targets", {}).values():
            assert "cuda" not in part["components"]


class TestRefusal:
    """8. A Python that the release has no wheel for."""

    line = "resolve tensorflow==2.6.5 python==3.12"

    def test_the_core_is_short(self, real: Cli) -> None:
        outcome = real(*self.line.split(), "--json")
        assert outcome.code == 1
        first, *_ = outcome.json()["cores"]
        assert first["kind"] == "hard"
        assert len(first["lines"]) <= 4
        assert {line["text"] for line in first["lines"] if not line["facts"]} == {
            "you require tensorflow==2.6.5",
            "you require python==3.12",
        }

    def test_a_repair_resolves_when_pasted(self, real: Cli) -> None:
        outcome = real(*self.line.split())
        commands = [
            line.strip() for line in outcome.out.splitlines() if line.startswith("    toolmatrix")
        ]
        assert commands
        for command in commands:
            assert real(*shlex.split(command)[1:]).code == 0


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("real-one-release", "resolve tensorflow==2.6.5"),
        ("real-three-targets", THREE),
        ("real-hard-and-soft", WHY_NOT),
    ],
)
def test_golden_on_the_built_in_matrix(real: Cli, name: str, line: str) -> None:
    check(real, name, line)
