"""Laws that answers about wheels keep, over all builds of the built-in matrix.

What a device runs is worked out here from the names of devices and archs alone, by the rules of cubins and PTX.
"""

from __future__ import annotations

import math
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from tests import matrix
from tests.amount import some
from tests.cli.conftest import Cli
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ComponentFacts
from toolmatrix.finding import InstallMethod
from toolmatrix.judging import sweep
from toolmatrix.report import answer, variants
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read
from toolmatrix.resources import matrix_root
from toolmatrix.solve import flags
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Resolution, possible, resolve

CURATED = Path(matrix_root()) / "matrix" / "curated"
# cuDNN 8.9, which the first two require, has no package for their machine; that the others were published nobody saw.
UNINSTALLABLE = {"0.4.27+cuda12@default/aarch64", "0.4.28+cuda12@default/aarch64"}
UNINSTALLABLE |= {"2.4.1+cu124@pytorch/aarch64", "2.5.0+cu124@pytorch/aarch64"}
TARGETS = {"x86_64": "x86", "aarch64": "arm"}
TEGRA = {(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)}
"""Jetson and its like: cubins go neither to them from other chips nor from them, nor from one of them to another."""
ON_ARM_ALONE = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0), (12, 1)}
"""Chips with the CPU beside the GPU, and that CPU is an ARM."""
WITH_TORCH = ("torchvision", "torchaudio")
"""What is installed with a torch of the same line, so that a device has to run both."""
FAMILIES = ("torch", "tensorflow", "jax", "onnxruntime")
OLDEST = {"jax": (5, 2)}
"""What a framework's own documentation says of devices: JAX needs SM 5.2; builds for Kepler are older."""
WITHOUT_FAMILY = {(8, 8), (10, 7)}
"""Devices of which no source says whose family they are of."""
COMPILED_BEFORE = {"tensorflow": (10, 0), "jax": (10, 0)}
"""Frameworks whose kernels are compiled where they run, by a compiler that knows no device from there on."""
KNOWS_ALL = {"jax": (0, 6)}
"""The first releases of these whose compiler knows them all."""
BEFORE_AMPERE = re.compile(r"cu(?:da)?(8|9|10)\d")
"""Lines of CUDA whose cuDNN has kernels for Turing and older devices."""


class Build(NamedTuple):
    """A published build for CUDA; `install` is its requirement, `argument` the place it comes from.

    `cudnn` are the releases of cuDNN that it takes, none where no fact of the build names one.
    """

    component: str
    name: str
    release: str
    line: str
    machine: str
    archs: tuple[str, ...]
    cudnn: tuple[tuple[int, ...], ...]
    install: str
    argument: str


def capability(name: str) -> tuple[int, int]:
    """`8.6`, `sm_86`, `compute_90` and `sm_103a` as (major, minor)."""
    digits = re.sub(r"\D", "", name)
    return int(digits[:-1]), int(digits[-1])


def runs(device: str, archs: Iterable[str]) -> bool:
    """Whether a device runs code for one of these archs."""
    return any(_runs_one(capability(device), arch) for arch in archs)


def _runs_one(device: tuple[int, int], arch: str) -> bool:
    made = capability(arch)
    if arch.endswith("a") or (arch.endswith("f") and device in WITHOUT_FAMILY):
        return made == device
    if arch.startswith("compute_"):
        return made <= device and (not arch.endswith("f") or made[0] == device[0])
    if {made, device} & TEGRA:
        return made == device
    return made[0] == device[0] and made[1] <= device[1]


@pytest.fixture(scope="module")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


@pytest.fixture(scope="module")
def builds(index: Index) -> list[Build]:
    """The builds for CUDA whose archs are known, and that can be installed."""
    found = list(_builds(index))
    assert {build.name for build in found} >= UNINSTALLABLE
    return [build for build in found if build.name not in UNINSTALLABLE]


def _builds(index: Index) -> Iterator[Build]:
    for name, part in index.header["components"].items():
        if not part["variant_of"]:
            continue
        held = index.component(name)
        for place, version in enumerate(held.versions):
            told = index.release(held.releases[place]).attributes
            archs = _archs(index, held, 2 << place)
            if told["accelerator"] == "cuda" and archs:
                channel = index.channel(told["channel"])
                words = (word.replace("{line}", told["line"]) for word in channel.install)
                yield Build(
                    component=part["variant_of"],
                    name=version,
                    release=told["release"],
                    line=told["line"],
                    machine=told["machine"],
                    archs=archs,
                    cudnn=_cudnn(index, held, 2 << place),
                    install=told["install"],
                    argument=" ".join(words),
                )


def _archs(index: Index, part: ComponentFacts, bit: int) -> tuple[str, ...]:
    names = index.component("arch").versions
    for binding in part.bindings:
        limits = binding.kind == "limits" and binding.evidence != "unknown"
        if limits and binding.component == "arch" and binding.mask & bit:
            return tuple(name for place, name in enumerate(names) if binding.allowed & 2 << place)
    return ()


def _cudnn(index: Index, part: ComponentFacts, bit: int) -> tuple[tuple[int, ...], ...]:
    names, allowed = index.component("cudnn").versions, 0
    for binding in part.bindings:
        known = binding.kind in ("requires", "limits") and binding.evidence != "unknown"
        if known and binding.component == "cudnn" and binding.mask & bit:
            allowed = binding.allowed & (allowed or -1)
    return tuple(Version(name).release for place, name in enumerate(names) if allowed & 2 << place)


def has_kernels(cudnn: tuple[int, ...], toolkit_11: bool, device: tuple[int, int]) -> bool:
    """Whether a cuDNN is for a GPU: from 8.9 on Maxwell is the oldest, and 9 with CUDA 12 runs on newer ones."""
    if cudnn >= (9, 11):
        return device >= (7, 5)
    if cudnn < (9,) or toolkit_11:
        return (5, 0) * (cudnn >= (8, 9)) <= device < (10, 0)
    return device >= (5, 0)


@pytest.fixture(scope="module")
def devices(index: Index) -> list[str]:
    """The devices of NVIDIA, oldest first."""
    found = [name for name in index.component("device").versions if name[0].isdigit()]
    return sorted(found, key=capability)


def request(index: Index, build: Build, device: str) -> Request:
    """`resolve X==R --from wheel --device D`, and that build of X alone."""
    target = TARGETS[build.machine]
    context = index.header["targets"][target]["context"].items()
    return Request(
        asks=(
            *(
                Ask(component=name, selector=value, text="", option="target", target=target)
                for name, value in context
            ),
            Ask(component="accelerator", selector="cuda", text="", option="accelerator"),
            Ask(component="from", selector="wheel", text="", option="from"),
            Ask(component=build.component, selector=f"==={build.release}", text=""),
            Ask(component=f"{build.component}-variant", selector=build.name, text=""),
        ),
        targets=(target,),
        devices=(device,),
    )


def expected(build: Build, device: str, builds: Iterable[Build]) -> bool:
    """Whether the device runs the build, and a torch of its line where it is installed with one."""
    number = capability(device)
    if number in ON_ARM_ALONE and build.machine != "aarch64":
        return False
    if (5, 0) <= number < OLDEST.get(build.component, (0, 0)) or not runs(device, build.archs):
        return False
    if number >= (8, 0) and BEFORE_AMPERE.match(build.line):
        return False
    toolkit_11 = build.line.startswith("cu11")
    if build.cudnn and not any(has_kernels(one, toolkit_11, number) for one in build.cudnn):
        return False
    compiled_before = COMPILED_BEFORE.get(build.component, (number[0] + 1, 0))
    knows_all = KNOWS_ALL.get(build.component, (math.inf,))
    if number >= compiled_before and Version(build.release).release < knows_all:
        return False
    if build.component not in WITH_TORCH:
        return True
    pinned = PINS.get((build.component, build.release, build.machine))
    return any(
        (one.component, one.line, one.machine) == ("torch", build.line, build.machine)
        and (pinned is None or one.release == pinned)
        and runs(device, one.archs)
        for one in builds
    )


def load(name: str) -> dict[str, Any]:
    """A fact file, read without any of the code that answers."""
    with (CURATED / f"{name}.yaml").open(encoding="utf-8") as file:
        held: dict[str, Any] = yaml.load(file, yaml.CSafeLoader)
    return held


def pins() -> dict[tuple[str, str, str], str]:
    """The one torch that a release of torchvision or torchaudio goes with, as the rows print it."""
    found = {}
    document = load("torch-family")
    for row in (row for table in document["tables"] for row in table["rows"] if "torch" in row):
        cell = row["torch"] if isinstance(row["torch"], dict) else {"is": row["torch"]}
        machines = cell.get("when", {}).get("machine", "x86_64 aarch64").split()
        for component in WITH_TORCH:
            for machine in machines if component in row else ():
                if re.fullmatch(r"[\d.]+", str(cell["is"])):
                    found[component, str(row[component]), machine] = str(cell["is"])
    return found


PINS = pins()


def turns(build: Build, devices: list[str]) -> list[str]:
    """The first and last device, and those between which running begins or ends."""
    told = [runs(device, build.archs) for device in devices]
    kept = {0, len(devices) - 1}
    for place in range(1, len(devices)):
        if told[place] != told[place - 1]:
            kept |= {place - 1, place}
    return [devices[place] for place in sorted(kept)]


def drawn(text: str, count: int) -> int:
    """A number below `count` that is the same in every run."""
    return zlib.crc32(text.encode()) % count


@pytest.mark.parametrize(
    ("device", "archs", "wanted"),
    [
        ("6.1", "sm_60", True),
        ("6.0", "sm_61", False),
        ("8.6", "sm_80", True),
        ("8.7", "sm_80 sm_86", False),
        ("8.7", "compute_80", True),
        ("8.9", "sm_87", False),
        ("9.0", "sm_86", False),
        ("9.0", "sm_90a", True),
        ("10.0", "sm_90a compute_90a", False),
        ("12.0", "compute_90", True),
        ("12.1", "sm_120f", True),
        ("11.0", "sm_101", False),
    ],
)
def test_the_rules_of_cubins_and_ptx(device: str, archs: str, wanted: bool) -> None:
    assert runs(device, archs.split()) is wanted


class TestEveryBuild:
    """Asked for by itself, a build is the answer on a device exactly if the device runs code that it holds."""

    def test_where_its_devices_begin_and_end(
        self, index: Index, builds: list[Build], devices: list[str]
    ) -> None:
        """The newest build of each component, machine and set of archs, on the devices at either side of each turn."""
        newest = {(one.component, one.machine, one.archs): one for one in builds}
        wrong = [
            (build.component, build.name, device)
            for build in some([*newest.values()], 3)
            for device in turns(build, devices)
            if (possible(index, request(index, build, device)) is not None)
            is not expected(build, device, builds)
        ]
        assert wrong == []

    def test_on_a_device_that_is_drawn(
        self, index: Index, builds: list[Build], devices: list[str]
    ) -> None:
        """What a build installs is the package that its row names, from where its channel says."""
        answers, tried = 0, some(builds, 2)
        for build in tried:
            device = devices[drawn(build.component + build.name, len(devices))]
            found = possible(index, request(index, build, device))
            assert (found is not None) is expected(build, device, builds), (build, device)
            if found is None:
                continue
            answers += 1
            held = {
                one.component: one
                for one in variants.of(index, found.targets[found.request.targets[0]])
            }
            mine = held[build.component]
            assert f"{mine.release}+{mine.line}" == f"{build.release}+{build.line}"
            (command,) = variants.installs([mine])
            assert shlex.split(command) == [
                "pip",
                "install",
                *build.install.split(),
                *build.argument.split(),
            ]
            for one in (mine, *(held.get(name, mine) for name in ("torch",))):
                assert one.archs is None or runs(device, one.archs), (build, device, one)
        assert answers > len(tried) / 4

    @pytest.mark.parametrize(
        ("line", "device"),
        [
            ("torchvision==0.23.0+cu129", "12.0"),
            ("torchvision==0.22.1+cu118", "9.0"),
            ("torchaudio==2.0.2+cu117", "3.7"),
        ],
    )
    def test_builds_that_go_together_may_each_run_by_code_of_their_own(
        self, real: Cli, line: str, device: str
    ) -> None:
        """torch holds sm_120 and torchvision compute_50, or sm_37 and sm_35: the device runs both."""
        outcome = real("resolve", line, "--from", "wheel", "--device", device)
        assert outcome.code == 0, outcome.out

    def test_a_requirement_names_a_package_of_its_component(self, builds: list[Build]) -> None:
        """tensorflow-gpu is a component of its own; the others install what is called after them."""
        for build in builds:
            name = re.split(r"[\[=<>~! ]", build.install)[0]
            assert name.startswith(build.component), build
            assert build.release in build.install, build


def test_the_rows_name_the_package_that_is_installed(builds: list[Build]) -> None:
    """`install` of a table or a row, as the files have it."""
    told: dict[tuple[str, str], set[str]] = {}
    for name in (
        "torch-family",
        "tensorrt",
        *(f"../harvested/{name}" for name in ("cupy", "dali", "rapids")),
        *(f"{name}-variants" for name in FAMILIES),
    ):
        for table in load(name)["tables"]:
            if table.get("defines") == "variants":
                for row in table["rows"]:
                    usual = table.get("install", f"{table['key']}=={{release}}")
                    key = (table["key"], row["line"])
                    told.setdefault(key, set()).add(row.get("install", usual))
    assert {one.component for one in builds} <= {component for component, _ in told}
    for build in builds:
        wanted = {
            one.replace("{release}", build.release) for one in told[build.component, build.line]
        }
        assert build.install in wanted


def test_an_answer_from_a_wheel_compiles_nothing_and_guesses_nothing(index: Index) -> None:
    """No code for a device; and what is unknown is what no fact ties to the request, which it says."""
    components = index.header["components"]
    answers = 0
    asked = [
        (name, version, target)
        for name, part in components.items()
        if part["framework"]
        for target in index.header["targets"]
        for version in index.component(name).versions
        if version == index.component(name).versions[-1]
        or not drawn(f"{name} {version} {target}", 4)
    ]
    for name, version, target in some(asked, 2):
        way = InstallMethod(target=target, from_="wheel")
        found = possible(index, sweep.request(index, (name, version), way))
        if found is None:
            continue
        answers += 1
        made = flags.of(found, target)
        assert (made.nvcc, made.hipcc) == ((), ()), (name, version, target)
        for choice in found.targets[target]:
            kinds = {index.record(cite.record).kind for cite in choice.cites}
            free = kinds == {"release"}
            assert choice.evidence != "unknown" or free, (name, version, target, choice)
    assert answers > 50


@pytest.mark.parametrize(
    "line", ["torch==2.8.0", "tensorflow==2.12.0", "jax==0.4.30", "onnxruntime==1.20.0"]
)
def test_an_answer_from_a_wheel_has_no_flags_of_a_compiler(real: Cli, line: str) -> None:
    """Nothing is compiled: what plain char is was settled by who built the wheel."""
    document = real("resolve", line, "--from", "wheel", "--target", "arm", "--json").json()
    made = document["targets"]["arm"]["flags"]
    assert [made[kind] for kind in ("cflags", "cxxflags", "nvcc", "hipcc")] == [[]] * 4


REFUSED = [
    "torch==1.12.1 --from wheel --device 9.0 --target x86 --accelerator cuda",
    "torch==2.4.1 --from wheel --device 12.0 --target x86 --accelerator cuda",
    "torch==2.3.0 --from wheel --target arm --accelerator cuda",
    "torch==2.3.0 --from wheel --target arm --device 9.0 --accelerator cuda",
    "torch==2.9.1 --from wheel --target arm --device orin --accelerator cuda",
    "torch==2.0.0 --from wheel --target amd --device gfx942",
    "torch==2.7.1+cu126 --from wheel --target x86 --device 12.0",
    "tensorflow==2.9.0 --from wheel --target arm --accelerator none",
    "tensorflow==2.12.0 --from wheel --target arm --accelerator cuda",
    "tensorflow-cpu==2.12.0 --from wheel --target x86 --accelerator cuda",
    "jax==0.4.22 --from wheel --target arm --accelerator cuda",
    "jax==0.4.30 --from wheel --target x86 --accelerator cuda --with python==3.8",
    "jaxlib==0.4.30 --from wheel --target x86 --accelerator cuda",
    "onnxruntime==1.10.0 --from wheel --target x86 --accelerator cuda",
    "onnxruntime==1.28.0 --from wheel --target arm --accelerator cuda",
    "onnxruntime==1.20.0 --from wheel --target amd --accelerator rocm",
    "cuda==12.8 --distro ubuntu26.04 --target arm --accelerator cuda",
    "cuda==13.0 gcc==4.8 --target x86 --accelerator cuda",
    "cuda==11.0 --arch sm_86 --target x86 --accelerator cuda",
    "rocm==5.6 --device MI300X --target amd",
]


@pytest.mark.parametrize("line", REFUSED)
def test_no_way_out_changes_the_machine_or_accelerator_that_was_asked_for(
    real: Cli, line: str
) -> None:
    """Who names them has them: an answer for another is none."""
    outcome = real("resolve", *shlex.split(line), "--json")
    assert outcome.code in {1, 4}, outcome.out
    for repair in outcome.json().get("repairs", ()):
        for change in repair["change"]:
            assert not re.search(r"--(target|accelerator)", f"{change['from']} {change['to']}"), (
                change
            )
        again = shlex.split(repair["command"])
        for option in ("--target", "--accelerator"):
            if option in line:
                given = shlex.split(line)
                wanted = given[given.index(option) + 1]
                held = repair["resolution"]["request"]
                chosen = (
                    held["targets"] if option == "--target" else list(held["accelerator"].values())
                )
                assert chosen == [wanted], again


def test_options_that_contradict_each_other_cannot_both_stay(real: Cli) -> None:
    """ROCm is what computes on amd and not on x86: whatever is asked for, one of the two has to go."""
    line = "resolve tensorflow-rocm==2.14.0.600 --from wheel --target x86 --accelerator rocm"
    outcome = real(*shlex.split(line), "--json")
    assert outcome.code == 1
    changed = [[one["to"] for one in repair["change"]] for repair in outcome.json()["repairs"]]
    assert ["--target amd"] in changed


ASKED = [
    *("torch", "tensorflow", "jax", "onnxruntime", "apache-tvm", "cuda", "rocm", "cudnn", "nccl"),
    *("gcc", "clang", "python", "numpy", "bazel", "distro", "protobuf", "triton"),
]


def questions(index: Index, count: int) -> Iterator[tuple[str, ...]]:
    """Pairs of releases, drawn alike in every run, with a way and a target."""
    held = {name: index.component(name).versions for name in ASKED}
    for number in range(count):
        one, other = (ASKED[drawn(f"{number}{salt}", len(ASKED))] for salt in "ab")
        first, second = (
            held[name][drawn(f"{number}{salt}", len(held[name]))]
            for name, salt in ((one, "c"), (other, "d"))
        )
        words = [f"{one}=={first}", *((f"--with={other}=={second}",) if other != one else ())]
        way = (("source", "wheel")[drawn(f"{number}e", 2)],)
        yield (*words, "--from", *way, "--target", ("x86", "arm", "amd")[drawn(f"{number}f", 3)])


@pytest.mark.parametrize("count", [30, pytest.param(240, marks=pytest.mark.long)])
def test_why_not_says_yes_only_of_what_somebody_knows(real: Cli, index: Index, count: int) -> None:
    """None of what was asked for is unknown; a pair that facts admit may be untested, which `resolve` says as well."""
    allowed = 0
    for words in questions(index, count):
        outcome = real("why-not", *words, "--json")
        assert outcome.code in {0, 1, 4}, (words, outcome.err)
        if outcome.code == 0:
            allowed += 1
            document = outcome.json()
            assert document["allowed"] is True
            caveats = real("resolve", *words, "--json").json()["caveats"]
            for pair in document["untested"]:
                conclusion = pair["conclusion"].rstrip(".")
                assert any(one["text"].startswith(conclusion) for one in caveats), words
            assert document["unread"] == [], words
            (part,) = document["targets"].values()
            for name in re.findall(r"([\w-]+)==", " ".join(words)):
                held = part["components"].get(name.removeprefix("--with="), {})
                assert held.get("evidence") != "unknown", (words, name)
            assert real("resolve", *words).code == 0, words
    assert allowed > count / 50


def packages() -> list[str]:
    """The components that the recipe of wheels installs under their own names."""
    recipe = yaml.safe_load((Path(matrix_root()) / "recipes" / "wheel.yaml").read_text())
    return [
        name
        for one in recipe["provisions"]
        if one.get("pip") == ["{component}=={version}"] and isinstance(one["component"], list)
        for name in one["component"]
    ]


def installed(index: Index, words: Iterable[str]) -> tuple[list[str], set[str]] | None:
    """The commands of an answer from wheels, and the packages that they name; None where there is no answer."""
    found = resolve(index, read(index, Fields(wanted=tuple(words), from_="wheel")))
    if not isinstance(found, Resolution):
        return None
    commands = variants.commands(index, found, found.request.targets[0])
    named: set[str] = set()
    for command in commands:
        start, tail, *given = shlex.split(command)
        assert (start, tail) == ("pip", "install")
        ends = next((at for at, word in enumerate(given) if word.startswith("-")), None)
        wanted = [Requirement(word) for word in given[:ends]]
        assert wanted, command
        named |= {canonicalize_name(one.name) for one in wanted}
    assert len({*commands}) == len(commands)
    return commands, named


def missing(words: Iterable[str], named: Iterable[str]) -> list[str]:
    """The components of a request of which no package is named; some packages say in their names what they are for."""
    asked = (re.split("[=<>]", word)[0] for word in words)
    return [name for name in asked if not any(one.startswith(name) for one in named)]


class TestWhatIsInstalled:
    def test_the_commands_of_an_answer_name_each_package_that_was_asked_for(
        self, index: Index
    ) -> None:
        asked = packages()
        assert len(asked) > 60
        answers = {name: found for name in asked if (found := installed(index, [name]))}
        assert len(answers) > len(asked) * 0.9
        assert {
            name: commands for name, (commands, named) in answers.items() if missing([name], named)
        } == {}

    @pytest.mark.parametrize(
        ("words", "ends"),
        [
            ("deepspeed torch==2.8.0 transformers", "pip install torch==2.8.0 deepspeed=="),
            ("torchao torch==2.8.0", "pip install torch==2.8.0 torchao=="),
            ("bitsandbytes torch==2.8.0", "pip install torch==2.8.0 bitsandbytes=="),
            ("sgl-kernel torch==2.8.0", "pip install torch==2.8.0 sgl-kernel=="),
            # What is compiled comes last, and sees what is installed.
            (
                "transformer-engine==1.13.0 torch==2.5.1",
                "pip install 'transformer-engine[pytorch]==1.13.0' --no-build-isolation",
            ),
            (
                "transformer-engine==2.13.0 jax",
                "pip install 'transformer-engine[core-cu13,jax]==2.13.0' --no-build-isolation",
            ),
        ],
    )
    def test_packages_beside_a_build_are_installed_with_it(
        self, index: Index, words: str, ends: str
    ) -> None:
        commands, named = installed(index, words.split()) or ([], set())
        assert commands[-1].startswith(ends)
        assert missing(words.split(), named) == []

    def test_a_build_of_another_index_is_installed_before_what_needs_it(self, index: Index) -> None:
        (first, second), _ = installed(index, ["torch==2.7.1+cu118", "transformers"]) or ([], ())
        assert first.startswith("pip install torch==2.7.1")
        assert "--index-url" in first
        assert second.startswith("pip install transformers==")

    def test_nothing_is_installed_where_a_package_would_be_missing(self, index: Index) -> None:
        fields = Fields(wanted=("vllm==0.2.5", "torch"), from_="source")
        found = resolve(index, read(index, fields))
        assert isinstance(found, Resolution)
        (target,) = found.request.targets
        assert variants.commands(index, found, target) == []
        assert "install" not in answer.document(index, found)["targets"][target]

    def test_every_address_of_a_build_ends_in_the_name_of_a_wheel(self, index: Index) -> None:
        addresses = [
            word.partition("@")[2]
            for name, part in index.header["components"].items()
            if part["variant_of"]
            for version in index.component(name).versions
            for word in variants.build(index, name, version).requirement.split()
            if "@" in word
        ]
        assert len(addresses) > 500
        for address in addresses:
            name, *_, tags = parse_wheel_filename(unquote(address.rpartition("/")[2]))
            assert all(tag.interpreter[2:] for tag in tags), (name, address)
