"""Questions that were once answered wrongly, with the answer that their source gives: value and evidence.

W1 to W14 were found by holding the matrix against published files and real installs, A to I by holding the program
beside other tools. Each test names what is right and by which source; none was written from what the program prints.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Cli
from toolmatrix.factbase.versions import Scale

PYTORCH = "--index-url https://download.pytorch.org/whl/"
GLIBC = {
    "debian10": (2, 28),
    "debian11": (2, 31),
    "debian12": (2, 36),
    "debian13": (2, 41),
    "ubuntu18.04": (2, 27),
    "ubuntu20.04": (2, 31),
    "ubuntu22.04": (2, 35),
    "ubuntu24.04": (2, 39),
    "ubuntu25.04": (2, 41),
    "ubuntu25.10": (2, 42),
    "ubuntu26.04": (2, 43),
    "rockylinux8": (2, 28),
    "rockylinux9": (2, 34),
}
"""The glibc that distributions package."""
ORT = ("1.17.0", "1.17.1", "1.17.3", "1.18.0")
NUMPY_BEFORE_1_20 = [
    *("tensorflow==1.13.1", "tensorflow==1.13.2", "tensorflow==1.14.0", "tensorflow==1.15.0"),
    *("tensorflow==1.15.2", "tensorflow==1.15.3", "tensorflow==2.0.0", "tensorflow==2.0.1"),
    *("tensorflow==2.0.2", "tensorflow==2.1.0", "tensorflow==2.1.1"),
    *("tensorflow-cpu==1.15.0", "tensorflow-cpu==2.1.0", "tensorflow-cpu==2.1.1"),
    "tensorflow-cpu==2.2.0",
]


class Answer:
    """An answer on one target."""

    def __init__(self, document: dict[str, Any]) -> None:
        (self.target,) = document["targets"]
        self.document = document
        self.part = document["targets"][self.target]
        self.components: dict[str, Any] = self.part["components"]

    def __getitem__(self, name: str) -> str:
        """The version of a component, or nothing where the answer has none."""
        held = self.components.get(name, {})
        version: str = held.get("version", held.get("floor", ""))
        return version

    def evidence(self, *names: str) -> list[str]:
        """How well components, codegen archs or devices are known."""
        several = {one["name"]: one for one in self.part["archs"] + self.part["devices"]}
        builds = {
            f"{name}-variant": part["variant"]
            for name, part in self.components.items()
            if "variant" in part
        }
        return [(several | builds | self.components)[name]["evidence"] for name in names]

    def build(self, component: str) -> dict[str, Any]:
        """What is installed of a component."""
        variant: dict[str, Any] = self.components[component]["variant"]
        return variant

    def holds(self, component: str, selector: str) -> bool:
        """Whether a component is there in a version that the selector admits."""
        version = self[component]
        return bool(version and Scale("pep440", (version,)).select(selector))

    @property
    def archs(self) -> list[str]:
        return [one["name"] for one in self.part["archs"]]

    @property
    def word(self) -> str:
        """How well the answer as a whole is known."""
        held: str = self.document["evidence"]
        return held

    @property
    def untested(self) -> set[frozenset[str]]:
        """The pairs that the answer says nobody tested."""
        return {
            frozenset(one["component"] for one in caveat["components"])
            for caveat in self.document["caveats"]
            if caveat["kind"] == "untested"
        }


def refusing(document: dict[str, Any]) -> list[str]:
    """The facts behind a refusal."""
    lines = [line for core in document["cores"] for line in core["lines"]]
    return [fact for line in lines for fact in line.get("facts", ())]


def asked(cli: Cli, line: str, code: int) -> dict[str, Any]:
    """The document of a question that exits with this code."""
    outcome = cli(*shlex.split(line), "--json")
    assert outcome.code == code, f"{line}: exit {outcome.code}\n{outcome.out[:2000]}{outcome.err}"
    return outcome.json()


def yes(cli: Cli, line: str) -> Answer:
    """The answer to a question that has one, of which everything is known."""
    answer = Answer(asked(cli, line, 0))
    assert answer.document["unread"] == []
    assert answer.word != "unknown", line
    return answer


def no(cli: Cli, line: str, *facts: str) -> dict[str, Any]:
    """A refusal that rests on facts of these tables, all known, and whose ways out keep machine and accelerator.

    An accelerator that nobody named may be changed: it is a default.
    """
    document = asked(cli, line, 1)
    core = next(one for one in document["cores"] if one["kind"] == "hard")
    told = [part for part in core["lines"] if part["facts"]]
    cited = [fact for part in told for fact in part["facts"]]
    for wanted in facts:
        assert any(fact.startswith(wanted) for fact in cited), (wanted, cited)
    assert "unknown" not in {part["evidence"] for part in told}
    kept = ("--target", *re.findall("--accelerator", line))
    for change in changes(document):
        assert not any(option in f"{change['from']} {change['to']}" for option in kept), change
    return document


def changes(document: dict[str, Any]) -> Iterator[dict[str, str]]:
    """What the ways out of a refusal change."""
    for repair in document["repairs"]:
        yield from repair["change"]


def words(document: dict[str, Any]) -> str:
    """What a refusal says."""
    return "\n".join(line["text"] for core in document["cores"] for line in core["lines"])


class TestInsideWheels:
    """W1 to W4: which package brings the accelerator, and what was compiled for what."""

    @pytest.mark.parametrize(
        ("line", "install", "cudnn", "word"),
        [
            ("jax==0.4.30", "jax[cuda12]==0.4.30", ">=9,<10", "stated"),
            ("jax[cuda12]==0.10.0", "jax[cuda12]==0.10.0", ">=9.8,<10", "stated"),
            ("jax==0.12.0.1", "jax[cuda13]==0.12.0.1", ">=9.12,<10", "stated"),
            (
                "jax==0.4.30 --target arm --accelerator cuda",
                "jax[cuda12]==0.4.30",
                "9.*",
                "derived",
            ),
            (
                "jax==0.4.23 --target arm --accelerator cuda",
                "jax[cuda12]==0.4.23",
                "8.*",
                "derived",
            ),
        ],
    )
    def test_w1_jax_has_cuda_by_its_plugins(
        self, real: Cli, line: str, install: str, cudnn: str, word: str
    ) -> None:
        """PyPI: jax-cuda12-plugin from 0.4.22 on (aarch64 0.4.23), jax-cuda13-plugin; METADATA pins cuDNN."""
        answer = yes(real, f"resolve {line} --from wheel")
        build = answer.build("jax")
        assert (build["channel"], build["accelerator"]) == ("default", "cuda")
        assert build["install"]["pip"] == f"pip install {shlex.quote(install)}"
        assert answer["cuda"].partition(".")[0] == build["line"].removeprefix("cuda")
        assert answer.holds("cudnn", cudnn)
        assert {answer.components[name]["inside"] for name in ("cuda", "cudnn")} == {"jax"}
        assert set(answer.evidence("jax", "jax-variant", "jaxlib", "cuda", "cudnn")) == {"artifact"}
        assert answer.word == word

    def test_w1_jax_has_rocm_by_its_plugin(self, real: Cli) -> None:
        answer = yes(real, "resolve jax --target amd --from wheel")
        build = answer.build("jax")
        assert (build["line"], build["channel"]) == ("rocm7", "default")
        assert re.fullmatch(r"pip install 'jax\[rocm7-local\]==[\d.]+'", build["install"]["pip"])
        assert answer.holds("rocm", "7.*")
        assert answer.evidence("jax-variant", "rocm") == ["artifact", "artifact"]
        assert answer.word == "artifact"

    def test_w1_every_release_from_the_first_plugin_on(self, real: Cli) -> None:
        """None of the 41 releases from 0.4.22 on is refused on x86; the plugin of 0.4.32 was withdrawn with it."""
        rows = asked(real, "matrix --rows jax --where 'jax>=0.4.22'", 0)["releases"]
        for row in rows:
            if row["release"] == "0.4.32":
                continue
            answer = yes(real, f"resolve jax=={row['release']} --from wheel")
            assert answer.build("jax")["accelerator"] == "cuda"
            assert "artifact" in answer.evidence("jax-variant")

    def test_w1_there_was_no_plugin_for_arm_before(self, real: Cli) -> None:
        document = no(
            real, "resolve jax==0.4.22 --target arm --accelerator cuda --from wheel", "jax-variants"
        )
        assert {"from": "jax==0.4.22", "to": "jax==0.4.23"} in changes(document)

    def test_w1_jaxlib_alone_is_for_the_cpu(self, real: Cli) -> None:
        """CUDA comes beside jaxlib, in the plugin that an extra of jax brings; its own wheel has none."""
        no(real, "resolve jaxlib==0.4.30 --from wheel")

    @pytest.mark.parametrize(
        ("line", "cuda", "cudnn", "install", "word"),
        [
            ("onnxruntime==1.20.0", "12.*", "9.*", "onnxruntime-gpu==1.20.0", "stated"),
            ("onnxruntime-gpu==1.20.0", "12.*", "9.*", "onnxruntime-gpu==1.20.0", "stated"),
            ("onnxruntime==1.19.0", "12.*", "9.*", "onnxruntime-gpu==1.19.0", "stated"),
            ("onnxruntime==1.18.0", "11.8", "8.*", "onnxruntime-gpu==1.18.0", "stated"),
            ("onnxruntime==1.11.0", "11.*", "8.*", "onnxruntime-gpu==1.11.0", "stated"),
            (
                *("onnxruntime==1.29.0 --target arm", "13.*", "9.*"),
                *("'onnxruntime-gpu[cuda,cudnn]==1.29.0'", "derived"),
            ),
        ],
    )
    def test_w2_c2_onnxruntime_has_cuda_by_onnxruntime_gpu(
        self, real: Cli, line: str, cuda: str, cudnn: str, install: str, word: str
    ) -> None:
        """PyPI: onnxruntime-gpu from 1.11.0 on, aarch64 from 1.29.0; 1.18 is for CUDA 11.8, 1.19 for 12 and cuDNN 9."""
        answer = yes(real, f"resolve {line} --from wheel --accelerator cuda")
        build = answer.build("onnxruntime")
        assert build["channel"] == "default"
        assert build["install"]["pip"] == f"pip install {install}"
        assert answer.holds("cuda", cuda)
        assert answer.holds("cudnn", cudnn)
        assert answer.evidence("onnxruntime-variant", "cuda", "cudnn") == ["artifact"] * 3
        assert answer.word == word

    @pytest.mark.parametrize(
        ("line", "first"),
        [("onnxruntime==1.10.0", "1.11.0"), ("onnxruntime==1.28.0 --target arm", "1.29.0")],
    )
    def test_w2_there_was_no_onnxruntime_gpu_before(self, real: Cli, line: str, first: str) -> None:
        document = no(
            real, f"resolve {line} --from wheel --accelerator cuda", "onnxruntime-variants"
        )
        assert f"onnxruntime=={first}" in {change["to"] for change in changes(document)}

    @pytest.mark.parametrize("release", ["2.0.1", "2.4.1", "2.6.0"])
    def test_w3_a2_wheels_before_blackwell_hold_no_code_for_it(
        self, real: Cli, release: str
    ) -> None:
        """Up to 2.6.0 every build has SASS up to sm_90 and no PTX (build_cuda.sh; pytorch#150733, #167244)."""
        line = f"resolve torch=={release} --from wheel --device 12.0"
        document = no(real, line, "torch-variants-", "device-runs/12.0")
        assert "torch==2.7.0" in {change["to"] for change in changes(document)}

    def test_w3_an_old_wheel_is_no_way_to_a_new_arch(self, real: Cli) -> None:
        """1.12.1 is of June 2022: its builds are for CUDA 10.2, 11.3 and 11.6, none of which knows sm_120."""
        no(real, "resolve torch==1.12.1 --from wheel --arch sm_120", "torch-variants-")
        document = asked(real, "resolve torch==2.6.0 --from wheel --arch sm_120", 1)
        assert not any(re.search(r"torch==1\.", change["to"]) for change in changes(document))

    @pytest.mark.parametrize(
        ("line", "line_", "channel", "arch", "word"),
        [
            ("torch==2.7.1 --device 12.0", "cu128", "pytorch", "sm_120", "reported"),
            ("torch==2.7.1 --device 'GTX 1080 Ti'", "cu126", "default", "sm_60", "stated"),
            ("torch==2.8.0 --device 'GTX 1080 Ti'", "cu126", "pytorch", "sm_60", "reported"),
            ("torch==2.8.0 --arch sm_60", "cu126", "pytorch", "sm_60", "reported"),
            ("torch==2.9.1 --device 6.1", "cu126", "pytorch", "sm_60", "stated"),
            ("torch==2.10.0 --device 6.1", "cu126", "pytorch", "sm_60", "stated"),
            ("torch==2.11.0 --device 7.0", "cu126", "pytorch", "sm_70", "stated"),
            (
                "torch==2.11.0 --device 'Tesla V100-SXM2-16GB'",
                "cu126",
                "pytorch",
                "sm_70",
                "stated",
            ),
        ],
    )
    def test_w3_a1_a3_a4_the_build_that_holds_code_for_the_device(
        self, real: Cli, line: str, line_: str, channel: str, arch: str, word: str
    ) -> None:
        """cu126 holds sm_50 to sm_90, cu128 of 2.7 and newer sm_120; 2.7.1 is the last whose build on PyPI is cu126."""
        answer = yes(real, f"resolve {line} --from wheel")
        build = answer.build("torch")
        assert (build["line"], build["channel"]) == (line_, channel)
        release = answer["torch"]
        index = f" {PYTORCH}{line_}" if channel == "pytorch" else ""
        assert build["install"]["pip"] == f"pip install torch=={release}{index}"
        assert answer.archs == [arch]
        assert arch in build["sass"]
        assert answer.components["cuda"]["inside"] == "torch"
        assert answer.holds("cuda", f"{line_[2:4]}.{line_[4:]}")
        assert answer.word == word

    def test_w3_a3_the_newest_torch_for_a_gtx_1080_ti(self, real: Cli) -> None:
        """uv#14742: it is the line that decides, and cu126 is the last with Pascal."""
        answer = yes(real, "resolve torch --from wheel --device 'GTX 1080 Ti'")
        build = answer.build("torch")
        assert build["line"] == "cu126"
        assert "sm_60" in build["sass"]
        assert answer.evidence("torch-variant", "sm_60") == ["stated", "stated"]

    def test_w4_arm_wheels_have_cuda_from_2_11_on(self, real: Cli) -> None:
        """On PyPI they are for the CPU up to 2.10.0 (102 MB, no pins); before that PyTorch's own index has some."""
        rows = asked(real, "matrix --rows torch", 0)["releases"]
        assert len(rows) >= 32
        for release in (row["release"] for row in rows):
            minor = tuple(map(int, release.split(".")[:2]))
            outcome = real(
                *f"resolve torch=={release} --target arm --accelerator cuda --from wheel --json".split()
            )
            assert outcome.code == 0 or minor < (2, 6), release
            if outcome.code:
                # Threads name files of two of the releases that have such builds for CUDA 12.4.
                assert outcome.code in ((1, 4) if minor in {(2, 4), (2, 5)} else (1,)), release
                continue
            answer = Answer(outcome.json())
            build = answer.build("torch")
            assert build["channel"] == ("default" if minor >= (2, 11) else "pytorch"), release
            assert answer["cuda"].replace(".", "").startswith(build["line"][2:]), release
            assert answer.components["cuda"]["inside"] == "torch"
            # Ubuntu's packages of aarch64 are taken to be those of amd64.
            assert answer.word == ("derived" if minor > (2, 5) else "reported"), release

    @pytest.mark.parametrize(
        ("release", "cudnn", "cuda"),
        [("2.12.0", "9.20.0.48", "13.0"), ("2.14.0", "9.24.0.43", "13.0")],
    )
    def test_w4_what_the_arm_wheels_pin(
        self, real: Cli, release: str, cudnn: str, cuda: str
    ) -> None:
        line = f"resolve torch=={release} --target arm --accelerator cuda --from wheel"
        answer = yes(real, line)
        assert answer["cudnn"] == cudnn
        assert answer.holds("cuda", cuda)
        assert answer.evidence("torch-variant", "cuda", "cudnn") == ["artifact"] * 3

    @pytest.mark.parametrize(
        ("release", "line"), [("2.9.1", "cu130"), ("2.7.1", "cu128"), ("2.8.0", "cu129")]
    )
    def test_b1_before_that_pytorchs_own_index_has_them(
        self, real: Cli, release: str, line: str
    ) -> None:
        """MEDS_EIC_AR#167: PyPI's 2.9.1 is +cpu on ARM; OneTrainer#1088 has 2.7.1+cu128, pytorch#160162 the rest."""
        answer = yes(real, f"resolve torch=={release} --target arm --from wheel --accelerator cuda")
        build = answer.build("torch")
        assert (build["channel"], build["line"]) == ("pytorch", line)
        assert build["install"]["pip"] == f"pip install torch=={release} {PYTORCH}{line}"
        assert answer.evidence("torch-variant", "cuda") == ["stated", "stated"]

    def test_b1_without_a_word_about_cuda_it_is_the_one_for_the_cpu(self, real: Cli) -> None:
        build = yes(real, "resolve torch==2.9.1 --target arm --from wheel").build("torch")
        assert (build["channel"], build["line"]) == ("default", "cpu")

    def test_b2_wheels_for_rocm(self, real: Cli) -> None:
        answer = yes(real, "resolve torch==2.7.1 --target amd --from wheel")
        build = answer.build("torch")
        assert (build["channel"], build["line"]) == ("pytorch", "rocm6.3")
        assert build["install"]["pip"] == f"pip install torch==2.7.1 {PYTORCH}rocm6.3"
        assert answer.holds("rocm", "6.3")
        assert answer.evidence("torch-variant", "rocm") == ["stated", "tested"]

    @pytest.mark.parametrize(
        ("line", "device", "arch"),
        [
            ("--device H100", "9.0", "sm_90"),
            ("--device 'RTX 5090'", "12.0", "sm_120"),
            ("--target arm --device GH200", "9.0", "sm_90"),
            ("--target amd --device MI300X", "gfx942", "gfx942"),
            ("--target amd --device gfx1100", "gfx1100", "gfx1100"),
        ],
    )
    def test_the_newest_torch_for_a_device_is_one_that_runs_there(
        self, real: Cli, line: str, device: str, arch: str
    ) -> None:
        answer = yes(real, f"resolve torch --from wheel {line}")
        assert [one["name"] for one in answer.part["devices"]] == [device]
        assert answer.archs == [arch]
        assert arch in answer.build("torch")["sass"]

    @pytest.mark.parametrize(
        ("name", "open_question"),
        [
            ("vllm", ""),
            ("sglang", ""),
            ("bitsandbytes", ""),
            ("deepspeed", ""),
            ("flashinfer-python", ""),
            # It has kernels that nobody read: the answer is the newest as well, and says so.
            ("open3d", "open3d"),
        ],
    )
    def test_what_nobody_read_does_not_hide_the_newest(
        self, real: Cli, name: str, open_question: str
    ) -> None:
        newest = yes(real, f"resolve {name} --from wheel")[name]
        for device in ("H100", "A100", "'RTX 5090'", "B200"):
            line = f"resolve {name} --from wheel --device {device}"
            answer = Answer(asked(real, line, 4 if open_question else 0))
            assert answer[name] == newest, line
            texts = [part["text"] for part in answer.document["unread"]]
            assert bool(texts) == bool(open_question), line
            assert all(open_question in text for text in texts), line

    def test_a_series_beside_what_is_wanted_is_taken_at_a_known_release(self, real: Cli) -> None:
        # The newest CUDA 11.4 has no image.
        answer = yes(real, "resolve onnxruntime==1.12.1 cuda==11.4")
        assert answer.holds("cuda", "==11.4.3")
        assert answer.word == "stated"

    @pytest.mark.parametrize(
        ("device", "target"),
        [
            ("Jetson Orin", "arm"),
            ("GB10", "arm"),
            ("Jetson Thor", "arm"),
            ("GH200", "arm"),
            ("GB200", "arm"),
            ("H100,GB10", "arm"),
            ("H100", "x86"),
            ("MI300X", "amd"),
        ],
    )
    def test_a_device_brings_its_target(self, real: Cli, device: str, target: str) -> None:
        answer = yes(real, f"resolve torch --device '{device}'")
        kinds = [part["kind"] for part in answer.document["caveats"]]
        assert (answer.target, "implied-target" in kinds) == (target, target == "arm")
        assert real("plan", "--device", device).code == 0

    def test_a_target_that_lacks_the_device_is_named_another(self, real: Cli) -> None:
        """In the words of the request."""
        outcome = real("resolve", "torch", "--device", "Jetson Orin", "--target", "x86", "--json")
        assert [part["command"] for part in outcome.json()["repairs"]] == [
            "toolmatrix resolve torch --target arm --device 'Jetson Orin'"
        ]

    def test_what_another_part_limits_is_changed_first(self, real: Cli) -> None:
        outcome = real(*shlex.split("why-not torch==2.1.0 triton==3.2.0 --from wheel --json"))
        assert outcome.json()["repairs"][0]["command"] == (
            "toolmatrix resolve torch==2.1.0 triton==2.1.0 --from wheel"
        )

    @pytest.mark.parametrize(
        ("line", "word"),
        [
            ("jax' python==3.5", "jax before 0.2.11"),
            ("jax<0.3' python==3.5", "jax before 0.2.11"),
            # Wheels of jaxlib 0.1 were for CUDA 9.2 as well.
            ("jax' --with cuda==9.2 --from wheel", "jax before 0.2.11"),
            ("onnxruntime' python==3.4 --from wheel", "onnxruntime before 1.0.0"),
        ],
    )
    def test_releases_before_the_first_known_one_may_do(
        self, real: Cli, line: str, word: str
    ) -> None:
        """jax 0.1 ran on Python 3.5: the matrix begins later, which is no reason for a no."""
        document = asked(real, f"resolve '{line}", 4)
        assert [part["text"] for part in document["outside"]] == [
            f"releases of {word} may fit, but the matrix knows none of them"
        ]
        assert document["cores"]

    @pytest.mark.parametrize(
        ("line", "name", "release"),
        [
            ("jax python==3.8", "jax", "0.4.13"),
            ("jax --with cuda==11.1 --from wheel", "jax", "0.3.25"),
            ("flax python==3.7", "jax", "0.3.25"),
            ("transformers python==3.5", "transformers", "2.5.1"),
            ("onnxruntime python==3.5 --accelerator none --from wheel", "onnxruntime", "1.6.0"),
            ("tensorflow==1.4 --from wheel", "cudnn", "6.0"),
            ("tensorflow --with cudnn==5.1 --from wheel", "tensorflow", "1.2.1"),
        ],
    )
    def test_old_machines_have_the_releases_of_their_day(
        self, real: Cli, line: str, name: str, release: str
    ) -> None:
        document = asked(real, f"resolve {line}", 0)
        assert document["targets"]["x86"]["components"][name]["version"] == release

    @pytest.mark.parametrize(
        "line",
        [
            # The wheels of before 0.4.18 are for x86_64 alone.
            "resolve jax python==3.8 --target arm --from wheel",
            "resolve tensorflow==1.4 python==3.8",
            "resolve tensorflow==1.4 cudnn==7 --from wheel",
            "resolve tensorflow==1.4 cuda==10.1 --from wheel",
            # All releases are known, or a release of that time cannot know what came later.
            "resolve vllm python==3.6",
            "resolve 'numpy<1.20' python==3.11",
            "resolve tensorflow python==3.15 --from wheel",
            "resolve torch --from wheel --target amd --accelerator cuda",
            # Not even the first known release runs there.
            "resolve torch python==3.6 --device 'RTX 5090'",
            "resolve torch --with cuda==10.2 --device 'RTX 5090' --from wheel",
            "resolve tensorflow python==3.6 --target arm --from wheel",
        ],
    )
    def test_a_closed_world_is_a_plain_no(self, real: Cli, line: str) -> None:
        assert asked(real, line, 1)["outside"] == []

    @pytest.mark.parametrize(
        ("word", "code"),
        [
            ("torch==2.99", 4),
            ("jax==0.2.1", 4),
            ("tensorflow<1", 4),
            ("gcc==17", 4),
            ("torch==2.9.7", 3),
            ("vllm==0.0.0", 3),
            ("gcc==99", 3),
        ],
    )
    def test_a_release_beyond_the_known_ones_is_no_slip(
        self, real: Cli, word: str, code: int
    ) -> None:
        assert real("resolve", word).code == code

    @pytest.mark.parametrize(
        ("line", "way", "open_question"),
        [
            ("python==3.7 --distro ubuntu20.04", "conda, deadsnakes", "where Python comes from"),
            ("gcc==7 --distro debian12", "--recipe gcc", "where GCC comes from"),
            ("clang==12 --distro debian12", "conda", "where Clang comes from"),
        ],
    )
    def test_what_a_distribution_does_not_package_comes_from_elsewhere(
        self, real: Cli, line: str, way: str, open_question: str
    ) -> None:
        document = asked(real, f"resolve {line}", 4)
        texts = [part["text"] for part in document["caveats"] if part["kind"] == "to-bring"]
        assert len(texts) == 1
        assert way in texts[0]
        assert [part["text"] for part in document["unread"]] == [f"no fact says {open_question}"]

    def test_a_python_that_is_brought_is_named(self, real: Cli) -> None:
        """uv has a build of 3.8; no fact says that torch 2.4.1 builds with the CUDA 13 of that distribution."""
        line = "resolve torch --distro ubuntu26.04 --with python==3.8 --from source"
        answer = Answer(asked(real, line, 4))
        assert (answer["torch"], answer["python"]) == ("2.4.1", "3.8")
        assert [
            part["text"] for part in answer.document["caveats"] if part["kind"] == "to-bring"
        ] == [
            (
                "the distribution packages no Python that fits: "
                "bring one, by uv, an official image of Python or manylinux"
            )
        ]
        assert [part["text"] for part in answer.document["unread"]] == [
            "torch 2.4.1 goes with cuda >=11, written 2024-09-04, before CUDA toolkit 13"
        ]

    def test_what_a_distribution_packages_comes_before_that(self, real: Cli) -> None:
        assert yes(real, "resolve gcc --distro debian12")["gcc"] == "12"
        assert yes(real, "resolve clang --distro debian12")["clang"] == "23"
        assert yes(real, "resolve python --distro ubuntu20.04")["python"] == "3.9"

    def test_a_recipe_that_builds_a_compiler_needs_no_package_of_it(self, real: Cli) -> None:
        outcome = real(*shlex.split("render gcc==7 --recipe gcc --distro debian12 --stdout"))
        assert outcome.code == 0
        assert "gcc-7.5.0.tar.xz" in outcome.out
        # Where no distribution is named, one that packages it comes first.
        assert yes(real, "resolve gcc==7 --recipe gcc")["distro"] == "ubuntu20.04"

    @pytest.mark.parametrize(
        ("line", "image"),
        [("tensorrt==10.3", "24.08"), ("tensorrt==10.4", "24.10"), ("tensorrt==10.7", "24.12")],
    )
    def test_the_image_whose_table_names_what_is_asked_for(
        self, real: Cli, line: str, image: str
    ) -> None:
        """NVIDIA's table of images with TensorRT-LLM; of those with vLLM nobody read a TensorRT."""
        answer = yes(real, f"resolve tritonserver {line}")
        assert answer["ngc-tritonserver-trtllm"] == image

    @pytest.mark.parametrize(
        ("line", "release", "channel"),
        [
            ("vllm==0.33.0 --device MI300X", "0.33.0", "vLLM's own index of wheels for ROCm"),
            # The newest whose torch has a ROCm with kernels for it.
            (
                "xformers --device MI50",
                "0.0.33.post2",
                "PyTorch's own index of xFormers for ROCm",
            ),
        ],
    )
    def test_a_channel_that_was_not_read_is_no_reason_for_a_no(
        self, real: Cli, line: str, release: str, channel: str
    ) -> None:
        answer = Answer(asked(real, f"resolve {line}", 4))
        assert (answer[line.partition(" ")[0].partition("=")[0]], answer.target) == (release, "amd")
        texts = [part["text"] for part in answer.document["unread"]]
        assert any(channel in text and "not read" in text for text in texts)

    def test_a_reason_is_told_once(self, real: Cli) -> None:
        """What METADATA declares and what the tags of wheels say set the same two against each other."""
        assert len(no(real, "resolve python==3.7 numpy==2.0")["cores"]) == 1

    def test_a_framework_part_is_installed_where_it_is_asked_for(self, real: Cli) -> None:
        """METADATA: without an extra transformer-engine requires its core alone."""
        alone = yes(real, "resolve transformer-engine==1.13.0")
        assert "[" not in alone.build("transformer-engine")["install"]["pip"]
        # The part for PyTorch is compiled where it is installed, and no source says against which releases.
        both = asked(real, "resolve transformer-engine==1.13.0 torch --from wheel", 4)
        (target,) = both["targets"].values()
        assert any("transformer-engine[pytorch]==1.13.0" in one for one in target["install"]["pip"])
        assert any("transformer-engine[pytorch]==1.13.0" in one for one in target["install"]["uv"])

    def test_a_point_release_of_a_series_that_has_ended_is_named(self, real: Cli) -> None:
        assert yes(real, "resolve python==2.7.18")["python"] == "2.7"
        assert yes(real, "resolve 'python<3'")["python"] == "2.7"

    @pytest.mark.parametrize(
        "line",
        [
            "xformers torch==2.1.2 --target arm",
            "xformers==0.0.13 --target arm",
            "xformers==0.0.12",
            "vllm==0.1.2 --target arm",
        ],
    )
    def test_from_wheel_takes_a_wheel(self, real: Cli, line: str) -> None:
        assert real(*shlex.split(f"resolve {line} --from wheel")).code in (1, 4)

    def test_a_source_archive_in_the_place_of_a_wheel_is_named(self, real: Cli) -> None:
        answer = yes(real, "resolve deepspeed==0.18.2 torch==2.8.0 --from wheel --accelerator none")
        texts = [
            part["text"] for part in answer.document["caveats"] if part["kind"] == "source-archive"
        ]
        assert texts == [
            (
                "deepspeed 0.18.2 has no wheel: it is published as a source archive, "
                "which pip builds during installation"
            )
        ]

    @pytest.mark.parametrize(
        ("line", "fact"),
        [
            # ptxas 12.8.93 knows sm_120, and no sm_121.
            ("triton==3.5.0 --device GB10 --target arm", "triton-wheels/3.5.0"),
            ("triton==3.5.0 --device GB10 --target arm --from wheel", "triton-wheels/3.5.0"),
            ("triton==3.2.0 --device B200", "triton-wheels/3.2.0"),
            ("tensorflow==2.19.0 --device 'RTX 5090' --from wheel", "tensorflow-wheels-before"),
            ("tensorflow==2.20.0 --device 'RTX 5090' --from wheel", "tensorflow-wheels-before"),
            ("tensorflow==2.21.0 --device 'RTX 5090' --from wheel", "tensorflow-wheels-before"),
            ("tensorrt==8.4.1 --device 'RTX 4080'", "tensorrt-before-ada"),
            ("tensorrt==10.7 --device 'RTX 5090'", "tensorrt-before-blackwell"),
            ("tensorrt==10.0.1 --device 'GTX 1080 Ti'", "tensorrt-without-pascal"),
            ("torch==2.14.1 --device MI50 --from wheel", "rocblas-without-gfx906"),
        ],
    )
    def test_code_for_a_device_is_not_all_that_it_takes(
        self, real: Cli, line: str, fact: str
    ) -> None:
        no(real, f"resolve {line}", fact)

    @pytest.mark.parametrize(
        ("line", "component", "version"),
        [
            ("triton==3.6.0 --device GB10 --target arm", "triton", "3.6.0"),
            ("triton==3.5.0 --device 'RTX 5090'", "triton", "3.5.0"),
            ("torch==2.9.0 --device GB10 --from wheel", "torch", "2.9.0"),
            ("tensorflow==2.20.0 --device 'RTX 4090' --from wheel", "tensorflow", "2.20.0"),
            ("tensorrt==10.8 --device 'RTX 5090'", "tensorrt", "10.8.0.43"),
            # 6.3 is the last ROCm whose rocBLAS has kernels for it.
            ("torch --device MI50 --from wheel", "torch", "2.9.1"),
        ],
    )
    def test_what_names_the_device_runs(
        self, real: Cli, line: str, component: str, version: str
    ) -> None:
        assert yes(real, f"resolve {line}")[component] == version

    def test_no_wheel_that_was_read_is_for_a_jetson(self, real: Cli) -> None:
        """Jetson is no server: its chips run neither the cubins of desktops nor, without PTX, those wheels."""
        no(real, "resolve torch==2.9.1 --from wheel --target arm --device orin", "device-runs/8.7")
        # The Jetson AI Lab has builds for it.
        answer = yes(real, "resolve torch --from wheel --target arm --device orin")
        assert answer.build("torch")["channel"] == "jetson-ai-lab-jp6"

    def test_a_toolkit_that_is_held_chooses_the_line(self, real: Cli) -> None:
        """PyTorch's table: 2.7 is the last release with a line for CUDA 11.8."""
        answer = yes(real, "resolve torch --with cuda==11.8 --from wheel")
        assert (answer["torch"], answer.build("torch")["line"]) == ("2.7.1", "cu118")
        assert answer.build("torch")["install"]["pip"].endswith(f"{PYTORCH}cu118")

    def test_c1_a_release_is_more_than_its_build_on_pypi(self, real: Cli) -> None:
        answer = yes(real, "resolve torch==2.9.1 cuda==13.0 --from wheel")
        build = answer.build("torch")
        assert (build["channel"], build["line"]) == ("pytorch", "cu130")
        assert build["install"]["pip"] == f"pip install torch==2.9.1 {PYTORCH}cu130"
        assert answer.components["cuda"]["inside"] == "torch"
        assert answer.word == "stated"

    def test_i_the_pin_is_the_runtime_of_12_8_1(self, real: Cli) -> None:
        """cuda-runtime 12.8.90; a wheel brings it, so nothing has to be in the image."""
        for line in ("torch==2.9.1", "torch==2.9.1 cuda==12.8.1"):
            answer = yes(real, f"resolve {line} --from wheel")
            assert answer["cuda"] == "12.8.1"
            assert answer.components["cuda"]["inside"] == "torch"
            assert "devel" not in answer["base-image"]
            assert answer.build("torch")["install"]["pip"] == "pip install torch==2.9.1"
        assert answer.evidence("torch-variant") == ["artifact"]


class TestToolkits:
    """W5, W13, E: what a toolkit's headers and its vendor's list stand."""

    @pytest.mark.parametrize(
        ("line", "newest"),
        [
            ("cuda==12.4 gcc", (2, 40)),
            ("cuda==12.8 gcc", (2, 40)),
            ("cuda==12.9 gcc", (2, 40)),
            ("cuda==13.0 gcc", (2, 41)),
            ("cuda==13.1 gcc", (2, 41)),
            ("cuda --device P100", (2, 40)),
            ("cuda --device 'GTX 1080 Ti'", (2, 40)),
            ("cuda==12.9 --arch sm_103", (2, 40)),
            ("cuda==12.8 --with driver==535.54.03", (2, 40)),
        ],
    )
    def test_w5_a_glibc_that_the_headers_stand(
        self, real: Cli, line: str, newest: tuple[int, int]
    ) -> None:
        """cospi is guarded from 13.0 on, rsqrt from 13.2 (headers in the wheels; opencv#27111, llama.cpp#23205)."""
        answer = yes(real, f"resolve {line}")
        assert GLIBC[answer["distro"]] <= newest
        assert answer.evidence("cuda", "distro") == ["artifact", "artifact"]
        assert answer.word == "stated"

    @pytest.mark.parametrize(
        ("cuda", "distro", "code"),
        [
            ("12.8", "ubuntu26.04", 1),
            ("12.9", "debian13", 1),
            ("13.1", "ubuntu26.04", 1),
            ("13.0", "debian13", 0),
            ("13.2", "ubuntu26.04", 0),
        ],
    )
    def test_w5_a_distribution_that_is_too_new(
        self, real: Cli, cuda: str, distro: str, code: int
    ) -> None:
        line = f"resolve cuda=={cuda} --distro {distro}"
        if code:
            document = no(real, line)
            assert re.search(
                rf"cuda {re.escape(cuda)}\S* allows only glibc <2\.4[12]", words(document)
            )
        else:
            assert yes(real, line)["distro"] == distro

    @pytest.mark.parametrize(
        "line",
        ["resolve cuda==13.0 --distro ubuntu20.04", "resolve cuda==13.0 distro==ubuntu20.04"],
    )
    def test_w13_cuda_13_is_not_for_ubuntu_20_04(self, real: Cli, line: str) -> None:
        """NVIDIA's guide lists 22.04 and 24.04: nothing refuses another, so the answer says that nobody tested it."""
        assert yes(real, line).untested == {frozenset(("cuda", "distro"))}

    @pytest.mark.parametrize(
        ("cuda", "distro"),
        [("13.0", "ubuntu22.04"), ("13.0", "ubuntu24.04"), ("12.8", "ubuntu20.04")],
    )
    def test_w13_what_the_guide_lists_is_a_plain_yes(
        self, real: Cli, cuda: str, distro: str
    ) -> None:
        answer = yes(real, f"resolve cuda=={cuda} distro=={distro}")
        assert answer["distro"] == distro
        assert answer.untested == set()

    @pytest.mark.parametrize(
        ("cuda", "gcc", "code"),
        [
            *(("13.0", "4.8", 1), ("13.0", "5", 1), ("13.0", "6", 0), ("13.0", "15", 0)),
            *(("13.0", "16", 1), ("11.4", "5", 1), ("11.4", "6", 0)),
            *(("11.0", "4.8", 1), ("11.0", "5", 0), ("10.2", "4.8", 0)),
        ],
    )
    def test_e1_toolkits_have_an_oldest_gcc(
        self, real: Cli, cuda: str, gcc: str, code: int
    ) -> None:
        """NVIDIA's guide: GCC 6 to 15 for 13.0; Spack: 5 from 11.0, 6 from 11.4."""
        line = f"resolve cuda=={cuda} gcc=={gcc}"
        if code:
            assert f"gcc {gcc} (only" in words(no(real, line))
        else:
            assert yes(real, line)["gcc"] == gcc

    def test_e2_the_grid_of_clang_says_what_resolve_says(self, real: Cli) -> None:
        """crt/host_config.h of 12.4 takes Clang up to 17."""
        document = asked(real, "matrix --rows cuda --cols clang --where cuda==12.4.1 --all", 0)
        (row,) = document["grid"]
        grid = {clang: cell["value"] for clang, cell in row["cells"].items()}
        assert grid["17"] == "yes"
        assert grid["18"] == "no"
        for clang, told in grid.items():
            code = real("resolve", "cuda==12.4.1", f"clang=={clang}").code
            assert (told, code) in {("yes", 0), ("no", 1)}, clang

    def test_e2_the_refusal_names_no_framework(self, real: Cli) -> None:
        document = no(real, "resolve cuda==12.4 clang==18")
        assert "clang 18 (only <=17)" in words(document)
        assert "tensorflow" not in words(document)


class TestAmd:
    """W6 to W8, D: the ROCm that has code for a GPU, and the systems that ROCm has."""

    def test_w6_rocm_5_6_is_older_than_the_mi300x(self, real: Cli) -> None:
        """gfx9-4-generic came with LLVM in November 2024, ROCm 5.6 in June 2023; AMD lists MI300X from 6.0 on."""
        document = no(real, "resolve rocm==5.6 --device MI300X --target amd", "gfx-runtime-first")
        assert "gfx942 does not go with rocm 5.6" in words(document)
        for repair in document["repairs"]:
            answer = Answer(repair["resolution"])
            assert answer.holds("rocm", ">=6.0") or answer.untested, answer["rocm"]
        answer = yes(real, "resolve rocm --device MI300X --target amd")
        assert answer.holds("rocm", ">=6.0")
        assert [(one["name"], one["evidence"]) for one in answer.part["archs"]] == [
            ("gfx942", "tested")
        ]

    @pytest.mark.parametrize(
        ("device", "arch", "rocm", "word"),
        [
            ("MI50", "gfx906", "5.7", "tested"),
            ("gfx906", "gfx906", "5.7", "tested"),
            ("MI25", "gfx900", "<5", "derived"),
            ("gfx803", "gfx803", "3.10", "stated"),
        ],
    )
    def test_w7_d1_d2_the_last_rocm_that_lists_the_gpu(
        self, real: Cli, device: str, arch: str, rocm: str, word: str
    ) -> None:
        """Release notes: 5.7.0 is end of support for MI50; gfx900 left before, gfx803 is in no row after 3.10."""
        answer = yes(real, f"resolve rocm --device {device} --target amd")
        assert answer.holds("rocm", rocm)
        assert answer.archs == [arch]
        held = [one["evidence"] for one in answer.part["archs"]]
        assert held == [word]

    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ("cudnn==7.6.5 --device V100", 0),
            ("cudnn==7.6.5 --device A100", 1),
            ("cudnn==8.0.5 --device 'RTX 3090' --with cuda==11.1", 0),
            ("cudnn==8.3.0 --device 'RTX 3090' --with cuda==10.2", 1),
            ("tensorflow==2.4.0 --device 'RTX 3090' --from wheel", 0),
            ("tensorflow==2.3.0 --device 'RTX 3090' --from wheel", 1),
            ("tensorflow==1.15.5 --device A100 --from wheel", 1),
            # 9.10.2 is the last that names Maxwell, Pascal and Volta.
            ("cudnn==9.10.2.21 --device V100", 0),
            ("cudnn==9.17.0.29 --device V100", 1),
            ("cudnn==9.28.0.42 --device 'GTX 1080 Ti'", 1),
            ("cudnn==9.28.0.42 --device 'RTX 5090'", 0),
            # From 8.9 on the matrices begin with Maxwell.
            ("cudnn==9.1.0 --device K80", 1),
            ("torch==2.4.0+cu118 --device K80 --from wheel", 1),
            ("torch==2.3.1+cu118 --device K80 --from wheel", 0),
            # Builds of 9 with CUDA 12 run on GPUs that are newer than they, and those before do not.
            ("cudnn==9.5.1 --device 'RTX 5090'", 0),
            ("cudnn==9.5.1 --device 'RTX 5090' --with cuda==11.8", 1),
            ("cudnn==8.9.7 --device B200", 1),
            ("cudnn==8.7.0 --device B200", 1),
        ],
    )
    def test_w6_cudnn_has_kernels_for_the_gpu(self, real: Cli, line: str, code: int) -> None:
        """Support matrices: 7.x, and 8.x for CUDA 10.2, name Turing as the newest; PTX of a framework is no help."""
        document = asked(real, f"resolve {line}", code)
        if code:
            assert any(fact.startswith("cudnn-hardware/") for fact in refusing(document))

    @pytest.mark.parametrize("named", ["", "python==3.12", "bazel==7.4.1", "keras"])
    def test_the_compiler_that_was_tested_whatever_else_is_named(
        self, real: Cli, named: str
    ) -> None:
        """TensorFlow's table has Clang 18.1.8 for 2.20.0; that nvcc may compile CUDA as well is no reason for GCC."""
        assert yes(real, f"resolve tensorflow==2.20.0 {named} --from source")["clang"] == "18"

    @pytest.mark.parametrize(
        ("line", "code", "fact"),
        [
            ("vllm --device P100 --from wheel", 1, "vllm-devices/"),
            ("vllm==0.6.3 --device V100 --from wheel", 0, ""),
            ("vllm==0.21.0 --device V100 --from wheel", 1, "vllm-devices/0.20"),
            # No wheel of these has code for 8.7 or 12.1, and none has PTX.
            (
                "torch==2.5.1 --device GB10 --from wheel",
                1,
                "torch-variants-pytorch-cuda/2.5.1-cu124",
            ),
            (
                "torch==2.6.0 --device 'Jetson Orin' --target arm --from wheel",
                1,
                "torch-variants-pytorch-cuda/2.6.0-cu126",
            ),
            ("torch==2.5.1 --device GH200 --from wheel", 0, ""),
        ],
    )
    def test_gpus_that_the_makers_do_not_build_for(
        self, real: Cli, line: str, code: int, fact: str
    ) -> None:
        """vllm-project/vllm#774 and its guides; pytorch/pytorch#140844, torch.cuda.get_arch_list() of aarch64."""
        document = asked(real, f"resolve {line}", code)
        if code:
            assert any(cited.startswith(fact) for cited in refusing(document))

    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ("flash-attn --device V100", 1),
            ("flash-attn==2.8.3 --device T4 --from wheel", 1),
            ("flash-attn==2.8.3 --device A100 --from wheel", 0),
            ("flash-attn==1.0.9 --device V100", 1),
        ],
    )
    def test_flash_attention_refuses_old_gpus(self, real: Cli, line: str, code: int) -> None:
        """Its code raises "only supports Ampere GPUs or newer": Dao-AILab/flash-attention#762, #1230."""
        document = asked(real, f"resolve {line}", code)
        if code:
            assert any("flash-attn-devices/" in cited for cited in refusing(document))

    @pytest.mark.parametrize(
        ("line", "code", "fact"),
        [
            ("transformers==4.44.2 accelerate==0.21.0", 1, "transformers-accelerate/4.43"),
            ("transformers==4.44.2 accelerate==0.29.0", 0, "transformers-accelerate/4.43"),
            ("transformers==4.53.0 accelerate==1.1.0", 1, "transformers-accelerate/4.53.0"),
            ("transformers==4.53.1 accelerate==1.3.0", 0, "transformers-accelerate/4.53.1"),
            ("peft==0.17.1 transformers==5.0.0", 1, "peft-transformers/0.16"),
            ("peft==0.19.1 transformers==5.0.0", 0, "peft-transformers/0.18"),
            ("peft==0.14.0 transformers==4.42.4", 1, "peft-transformers/0.14"),
            ("diffusers==0.27.0 huggingface-hub==0.26.0", 1, "diffusers-huggingface-hub/0.12"),
            ("diffusers==0.29.0 huggingface-hub==0.26.0", 0, ""),
            ("flax==0.6.11 jax==0.4.36", 1, "flax-jax/0.6"),
            ("flax==0.8.0 jax==0.4.31", 1, "flax-jax/0.7.5"),
            ("flax==0.8.3 jax==0.4.31", 0, ""),
        ],
    )
    def test_names_that_one_package_imports_from_another(
        self, real: Cli, line: str, code: int, fact: str
    ) -> None:
        """METADATA asks for any release: huggingface/transformers#32461, ray-project/ray#65062."""
        document = asked(real, f"resolve {line}", code)
        if code:
            assert any(cited.startswith(fact) for cited in refusing(document))

    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ("jax==0.4.30 --device 'RTX 5090' --from wheel", 1),
            ("jax==0.4.20 --device 'RTX 5090' --from wheel", 1),
            ("jax==0.4.30 --device B200 --from wheel", 4),
            ("jax==0.5.3 --device 'RTX 5090' --from wheel", 4),
            ("jax==0.6.2 --device 'RTX 5090' --from wheel", 0),
            ("jax==0.4.30 --device H100 --from wheel", 0),
        ],
    )
    def test_w6_jax_compiles_for_the_gpu_by_name(self, real: Cli, line: str, code: int) -> None:
        """3587jjh/HuRo#3: code for sm_90a is taken by no later GPU; plugins from 0.6 on hold kernels for Blackwell."""
        asked(real, f"resolve {line}", code)

    @pytest.mark.parametrize("device", ["MI50", "MI25", "gfx803"])
    def test_w7_a_later_rocm_is_not_taken_in_silence(self, real: Cli, device: str) -> None:
        outcome = real("resolve", "rocm==7.2.3", "--device", device, "--target", "amd", "--json")
        assert outcome.code == 1 or Answer(outcome.json()).untested == {
            frozenset(("rocm", "device"))
        }

    def test_w8_torch_2_5_on_a_system_that_its_rocm_has(self, real: Cli) -> None:
        """compatibility-matrix-historical-6.0.csv: 6.2 is for Ubuntu 22.04 and 24.04, not for 20.04."""
        answer = yes(real, "resolve torch==2.5.0 --target amd")
        assert answer.holds("rocm", "6.2")
        assert answer["distro"] in {"ubuntu22.04", "ubuntu24.04"}
        assert answer.evidence("distro") == ["tested"]

    def test_d2_no_new_torch_is_promised_on_an_old_gpu(self, real: Cli) -> None:
        """torch 1.12 was built with ROCm 5.1, which had left gfx803 behind: nothing joins the two."""
        outcome = real("resolve", "torch", "--target", "amd", "--device", "gfx803", "--json")
        if outcome.code == 0:
            answer = Answer(outcome.json())
            assert answer.word == "unknown" or answer.untested, (answer["torch"], answer["rocm"])
        else:
            assert outcome.code in {1, 4}


class TestPackages:
    """W9 to W12: what METADATA lets through, what imports, and where a Python comes from."""

    @pytest.mark.parametrize(
        ("release", "way"),
        [
            *((release, "--accelerator none") for release in ORT),
            *((release, "--target arm") for release in ORT),
            *((release, "") for release in ORT if release != "1.17.3"),
        ],
    )
    def test_w9_requirements_are_those_of_the_wheel(
        self, real: Cli, release: str, way: str
    ) -> None:
        """METADATA of 1.15 to 1.18: cp38 to cp310 want numpy >=1.21.6, cp311 >=1.24.2, cp312 >=1.26.0."""
        answer = yes(real, f"resolve onnxruntime=={release} --from wheel --with python==3.8 {way}")
        assert answer.holds("numpy", ">=1.21.6,<1.25")
        assert answer.evidence("numpy", "python", "onnxruntime-variant") == ["artifact"] * 3

    def test_w9_1_17_3_has_no_build_for_cuda(self, real: Cli) -> None:
        """PyPI has no onnxruntime-gpu 1.17.3: after 1.17.1 comes 1.18.0."""
        line = "resolve onnxruntime==1.17.3 --from wheel --with python==3.8"
        document = no(real, line, "onnxruntime-variants")
        found = {change["to"] for change in changes(document)}
        assert {"onnxruntime==1.17.1", "onnxruntime==1.18.0", "--accelerator none"} <= found

    @pytest.mark.parametrize(
        ("numpy", "python", "code"),
        [
            *(("1.24.4", "3.10", 0), ("1.24.4", "3.8", 0), ("1.23.5", "3.11", 1)),
            *(("1.24.2", "3.11", 0), ("1.25.2", "3.12", 1)),
        ],
    )
    def test_w9_each_python_has_its_own_bound(
        self, real: Cli, numpy: str, python: str, code: int
    ) -> None:
        line = f"resolve onnxruntime==1.18.0 numpy=={numpy} --from wheel --with python=={python}"
        if code:
            no(real, line)
        else:
            assert yes(real, line).evidence("numpy") == ["artifact"]

    @pytest.mark.parametrize("release", NUMPY_BEFORE_1_20)
    def test_w10_a_numpy_that_old_tensorflow_imports(self, real: Cli, release: str) -> None:
        """Ran: 2.2.0 does not import with 1.24.4, LSTM of 1.15.0 fails with 1.21.6; below 1.20 both work."""
        answer = yes(real, f"resolve {release} --from wheel --accelerator none")
        assert answer.holds("numpy", "<1.20")
        assert answer.evidence("numpy") == ["artifact"]
        # Up to 2.1 the h5py that Keras_Applications takes is known from reports.
        assert answer.word == (answer.evidence("h5py")[0] if answer["h5py"] else "artifact")

    @pytest.mark.parametrize("release", ["2.9.0", "2.11.1"])
    def test_w10_what_ran_well_is_not_refused(self, real: Cli, release: str) -> None:
        line = f"resolve tensorflow-cpu=={release} numpy==1.26.4 --from wheel --accelerator none"
        assert yes(real, line)["numpy"] == "1.26.4"

    @pytest.mark.parametrize("release", [f"0.4.{patch}" for patch in range(18, 25)])
    def test_w11_a_scipy_that_old_jax_imports(self, real: Cli, release: str) -> None:
        """Ran: jax.scipy.linalg of 0.4.20 and 0.4.23 fails with scipy 1.17.1; below 1.13 it works."""
        answer = yes(real, f"resolve jax=={release} --from wheel --accelerator none")
        assert answer.holds("scipy", "<1.13")
        assert answer.evidence("scipy") == ["ran"]
        assert answer.word == "artifact"

    @pytest.mark.parametrize("release", ["0.4.25", "0.4.26", "0.4.30"])
    def test_w11_what_ran_well_is_not_refused(self, real: Cli, release: str) -> None:
        line = f"resolve jax=={release} scipy==1.17.1 --from wheel --accelerator none"
        assert yes(real, line)["scipy"] == "1.17.1"

    def test_w12_a_python_that_no_distribution_packages(self, real: Cli) -> None:
        """Images of Python, manylinux, uv and others bring it: what the distributions package refuses nothing."""
        answer = yes(real, "resolve torch==2.2.0 --with python==3.12")
        assert answer["python"] == "3.12"
        assert answer.evidence("python") == ["artifact"]
        assert any("Python" in one["text"] for one in answer.document["caveats"])

    def test_w12_its_wheel_for_that_python(self, real: Cli) -> None:
        """PyPI has the cp312 wheel of 2.2.0, built with CUDA 12.1."""
        answer = yes(real, "resolve torch==2.2.0 --with python==3.12 --from wheel")
        assert answer.holds("cuda", "12.1")
        assert answer.build("torch")["line"] == "cu121"
        assert answer.evidence("python", "cuda", "torch-variant") == ["artifact"] * 3
        assert answer.word == "stated"


class TestCpuFlags:
    """W14: a flag is known to a point release, and a distribution packages one."""

    @pytest.mark.parametrize("cpu", ["neoverse-v2", "ampere1a"])
    def test_w14_gcc_12_2_of_debian_12_does_not_know_it(self, real: Cli, cpu: str) -> None:
        """Ran: `unknown value 'neoverse-v2' for '-mcpu'`."""
        line = f"resolve gcc==12 --target arm --cpu {cpu} --distro debian12"
        answer = yes(real, line)
        assert f"-mcpu={cpu}" not in answer.part["flags"]["cflags"]

    @pytest.mark.parametrize(
        "cpu",
        [
            *("cortex-a725", "cortex-x925", "fujitsu-monaka"),
            *("neoverse-n3", "neoverse-v3", "neoverse-v3ae"),
        ],
    )
    def test_w14_gcc_14_2_of_debian_13_knows_it(self, real: Cli, cpu: str) -> None:
        """Ran: all six are taken."""
        answer = yes(real, f"resolve gcc==14 --target arm --cpu {cpu} --distro debian13")
        flags = answer.part["flags"]
        assert f"-mcpu={cpu}" in flags["cflags"]
        assert flags["missing"] == []
        facts = [
            real("facts", fact, "--json").json()["facts"][0]
            for fact in flags["facts"]
            if cpu in fact
        ]
        assert {fact["evidence"] for fact in facts} == {"ran"}


class TestOtherCommands:
    """F: explanations."""

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("explain cuda cuda==12.4", "released 2024"),
            ("explain python python", "released"),
            ("explain rocm torch --target amd --from source", "free choice"),
        ],
    )
    def test_f_a_release_is_reason_enough(self, real: Cli, line: str, why: str) -> None:
        outcome = real(*line.split())
        assert outcome.code == 0
        assert why in outcome.out
