"""What is said about plans: about every log of the corpus, and about small plans that reach each code."""

from __future__ import annotations

import pytest

from tests.compilation import corpus
from tests.judging.stage_cases import codes, fatbinary, index, judged, made, of_plan, plan, plans
from toolmatrix.judging import stages
from toolmatrix.judging.stages import LocalMachine
from toolmatrix.report.findings import IndexWords
from toolmatrix.report.rules import load_rules

NOTED = {
    ("clang", "cuda-c-two-archs"): {"TM204", "TM208", "TM209", "TM211"},
    ("hipcc", "generic-and-spirv"): {"TM211"},
    ("hipcc", "c-many-gfx"): {"TM201"},
    ("hipcc", "c-no-gfx-autodetect"): {"TM203"},
    ("hipcc", "cpp-not-hip"): {"TM203"},
    ("hipcc", "genco"): {"TM201"},
    ("hipcc", "link-many-gfx"): {"TM201"},
    ("hipcc", "missing-file"): {"TM212"},
    ("hipcc", "new-driver-c"): {"TM201"},
    ("hipcc", "new-driver-link"): {"TM201"},
    ("hipcc", "nvidia-platform-dryrun"): {"TM203"},
    ("hipcc", "unsupported-gfx"): {"TM201"},
    ("nvcc", "arch-all"): {"TM202", "TM205", "TM208"},
    ("nvcc", "arch-all-major"): {"TM202"},
    ("nvcc", "arch-native-nogpu"): {"TM203"},
    ("nvcc", "c-default-arch"): {"TM203"},
    ("nvcc", "c-many-gencode-ptx"): {"TM208"},
    ("nvcc", "c-many-sass-ptx-each"): {"TM208", "TM209"},
    ("nvcc", "debug-lineinfo"): {"TM215"},
    ("nvcc", "deprecated-arch"): {"TM202", "TM203"},
    ("nvcc", "env-name-clash"): {"TM213"},
    ("nvcc", "family-and-specific-arch"): {"TM206"},
    ("nvcc", "fatbin"): {"TM208"},
    ("nvcc", "keep-cwd-many"): {"TM208"},
    ("nvcc", "make-output-sync-failure"): {"TM201"},
    ("nvcc", "missing-file"): {"TM212"},
    ("nvcc", "options-file"): {"TM204"},
    ("nvcc", "prepend-append-env"): {"TM213"},
    ("nvcc", "rdc-link-many"): {"TM208"},
    ("nvcc", "sass-only-no-ptx"): {"TM204"},
    ("nvcc", "threads4-many"): {"TM208"},
    ("nvcc", "unsupported-arch"): {"TM201"},
}
"""All that may be said about the logs of a case, whatever the version; nothing about those that are not here."""

NEWER_HOST = frozenset(("7.5.17", "9.1.85", "11.8.89", "12.0.140", "12.4.131"))
"""Releases of nvcc whose logs were made with a host compiler that is newer than their own header takes."""


def allowed(case: corpus.Case) -> set[str]:
    """The codes that the findings about a log may have."""
    found = set(NOTED.get((case.tool, case.case), ()))
    if case.version in NEWER_HOST:
        found.add("TM210")
    if case.tool == "nvcc" and case.version in ("4.2", "7.5.17"):
        found.add("TM218")
    if case.tool == "clang" and case.case.startswith("hip-"):
        found |= {"TM211"} | ({"TM201"} if case.version == "11.0.1" else set())
    return found


def test_nothing_else_is_said_about_the_logs() -> None:
    found = {case.name: set(codes(judged(case.name))) - allowed(case) for case in corpus.cases()}
    assert {name: more for name, more in found.items() if more} == {}


def test_a_finding_stands_where_its_stage_does() -> None:
    known = set(index().ids)
    for case in corpus.cases():
        for finding in judged(case.name, "8.6", "gfx90a"):
            assert set(finding.facts) <= known
            if finding.plan is None:
                assert finding.code.startswith("TM22")
                continue
            held = plans(case.name)[finding.plan]
            assert finding.stage is None or finding.stage in {stage.id for stage in held.stages}
            assert finding.where is not None
            assert finding.where.path == f"{case.name}.log"
            assert finding.where.line >= min(held.line, 1)


def test_an_arch_is_unasked_only_where_none_was_asked_for() -> None:
    silent = ("c-default-arch", "arch-native-nogpu", "c-no-gfx-autodetect", "cpp-not-hip")
    for case in corpus.cases("nvcc", "hipcc"):
        found = judged(case.name, asked=case.sidecar["argv"])
        unasked = [one for one in found if one.code == "TM203"]
        assert not unasked or case.case in (*silent, "nvidia-platform-dryrun")
        assert all(one.severity == "warning" for one in unasked)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvcc-13.0.88__c-one-arch", []),
        ("nvcc-13.0.88__rdc-link-many", []),
        ("nvcc-13.0.88__lto-link", []),
        ("nvcc-13.4.92__prune-concat-link", []),
        ("nvcc-13.3.73__tile-enable", []),
        ("nvcc-13.1.115__cubin", []),
        ("nvcc-11.2.152__cuda-cpp-ii", []),
        ("nvcc-13.0.88__cuda-cpp-ii", []),
        ("nvcc-13.0.88__lib-archive", []),
        ("nvcc-13.0.88__clean-targets", []),
        ("hipcc-7.0.2__c-many-gfx", []),
        ("clang-15.0.6__hip-rdc-link", []),
        ("nvcc-4.2__seed", [("TM218", "info", 5, 19)]),
        (
            "nvcc-7.5.17__fatbin",
            [("TM208", "info", 45, 56), ("TM210", "info", 1, 12), ("TM218", "info", 4, 15)],
        ),
        ("nvcc-11.8.89__c-one-arch", [("TM210", "error", 1, 13)]),
        ("nvcc-13.0.88__unsupported-arch", [("TM201", "error", None, 1)]),
        ("nvcc-13.3.73__missing-file", [("TM212", "error", 1, 21)]),
        ("hipcc-5.2.3__missing-file", [("TM212", "error", None, 5)]),
        ("nvcc-13.0.88__arch-native-nogpu", [("TM203", "warning", 2, 2)]),
        ("nvcc-13.0.88__debug-lineinfo", [("TM215", "warning", 4, 24)]),
        ("nvcc-13.3.73__sass-only-no-ptx", [("TM204", "warning", 5, 25)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_all_that_is_said_about_some_logs(
    name: str, expected: list[tuple[str, str, int | None, int]]
) -> None:
    found = sorted(judged(name), key=lambda one: one.code)
    assert [
        (one.code, one.severity, one.stage, one.where.line if one.where else 0) for one in found
    ] == expected


REACHED = {
    "TM201": made("elf:80").replace(stages=plan(("ptxas", "sm_70", "ptxas -arch=sm_70")).stages),
    "TM202": plan(("ptxas", "sm_35", "ptxas -arch=sm_35"), version="11.8.89"),
    "TM203": plan(("cicc", "compute_75", "cicc -arch compute_75")),
    "TM204": made("elf:80"),
    "TM205": made("elf:80", "elf:90", "ptx:80"),
    "TM206": made("elf:90a", "ptx:90a"),
    "TM207": made("elf:80", "elf:80", "ptx:80"),
    "TM208": made("elf:80", "elf:86", "ptx:86"),
    "TM209": made("elf:80", "ptx:80", "elf:90", "ptx:90"),
    "TM210": plan(("cudafe", "", "cudafe++ --clang --clang_version=230000")),
    "TM211": plan(("bundle", "", "clang-offload-bundler -type=o"), tool="clang", version="21.1.8"),
    "TM212": plan(("cudafe", "", "cudafe++ --orig_src_path_name nosuch.cu")),
    "TM213": plan(
        ("preprocess", "", "gcc -E -I/mine"),
        env={"_HERE_": "/cuda/bin", "INCLUDES": '"-I/cuda/include" -I/mine'},
    ),
    "TM214": plan(("preprocess", "", "gcc -DPRICE=$5 k.cu")),
    "TM215": plan(("ptxas", "sm_80", "ptxas -g --generate-line-info -arch=sm_80")),
    "TM216": plan(fatbinary("elf:80", "ptx:80", more="--device-c"), ("link", "", "g++ k.o -o app")),
    "TM217": plan(
        fatbinary("nvvm:80", more="--device-c"),
        ("nvlink", "sm_80", "nvlink --arch=sm_80 k.o"),
        fatbinary(more="-link"),
    ),
    "TM218": plan(
        ("hash", "", "filehash -s x"),
        ("cicc", "compute_30", "cicc x"),
        files={0: (["a.i"], ["a.hash"])},
    ),
}


@pytest.mark.parametrize("code", REACHED)
def test_each_code_is_reached(code: str) -> None:
    assert code in codes(of_plan(REACHED[code], index()))


def test_each_code_has_its_page_and_its_severity() -> None:
    pages = load_rules()
    # Those from TM224 on are about the answer that a plan is for: tests/cli/test_stages_answer.py has them.
    told = [code for code in pages if "TM200" < code < "TM224"]
    devices = stages.findings(
        [made("elf:80", "ptx:80"), plan(("link", "", "g++ a.o"), files={0: (["a.o"], ["app"])})],
        index(),
        ["8.0", "9.0", "7.5"],
    )
    assert sorted({*REACHED, *codes(devices)}) == told
    for code, held in REACHED.items():
        severities = {one.severity for one in of_plan(held, index()) if one.code == code}
        assert severities <= {pages[code].severity, "info", "error"}


@pytest.mark.parametrize(
    ("words", "severity", "names"),
    [
        ("--gnu_version=160100", "error", ("gcc", "16.1.0", "")),
        ("--gnu_version=150200", None, ()),
        ("--gnu_version=990000", "error", ("gcc", "99.0.0", "")),
        ("--clang --clang_version=210000", "error", ("clang", "21.0.0", "")),
        ("--clang --clang_version=200100 --gnu_version=160100", None, ()),
        ("--microsoft_version=1939", None, ()),
        ("--microsoft_version=1950", "error", ("msvc", "1950", "")),
        ("", None, ()),
    ],
)
def test_the_host_compiler_is_held_against_the_limits(
    words: str, severity: str | None, names: tuple[str, ...]
) -> None:
    found = of_plan(plan(("cudafe", "", f"cudafe++ {words}")), index())
    assert [(one.severity, one.names) for one in found] == ([(severity, names)] if severity else [])


def test_a_check_that_is_switched_off_only_warns() -> None:
    held = plan(
        ("preprocess", "", "gcc -E -D__NV_NO_HOST_COMPILER_CHECK=1 k.cu"),
        ("cudafe", "", "cudafe++ --gnu_version=160100"),
    )
    (found,) = of_plan(held, index())
    assert (found.code, found.severity, found.names[2]) == ("TM210", "warning", "unchecked")


def test_a_toolkit_that_nobody_knows_refuses_nothing() -> None:
    held = plan(
        ("ptxas", "sm_20", "ptxas"),
        ("cudafe", "", "cudafe++ --gnu_version=990000"),
        version="99.1.1",
    )
    assert of_plan(held, index()) == []


@pytest.mark.parametrize(
    ("version", "arch", "names"),
    [
        ("13.0.88", "sm_70", ("sm_70", "dropped", "9.1.85", "12.9.86", "")),
        ("11.2.152", "compute_90a", ("compute_90a", "new", "12.0.76", "13.5.37", "")),
        ("12.4.131", "sm_100", ("sm_100", "new", "12.8.61", "13.5.37", "")),
    ],
)
def test_an_arch_was_dropped_or_came_later(version: str, arch: str, names: tuple[str, ...]) -> None:
    (found,) = of_plan(plan(("ptxas", arch, "ptxas"), version=version), index())
    assert (found.code, found.names) == ("TM201", names)
    assert found.grounds[0].subject == "cuda"
    assert found.facts


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("nvcc fatal   : Value 'sm_30' is not defined for option 'gpu-architecture'", "sm_30"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_35'", "compute_35"),
        ("clang: error: Unsupported CUDA gpu architecture: gfx90a", "gfx90a"),
        ("clang++: error: unsupported HIP gpu architecture: gfx9999", "gfx9999"),
        ("clang: error: invalid target ID 'gfx42'; format is a processor name", "gfx42"),
        ("clang: error: cannot find ROCm device library for gfx1100; provide its path", "gfx1100"),
    ],
)
def test_what_a_driver_refuses_is_found(text: str, arch: str) -> None:
    (found,) = of_plan(plan(said=[text, text], version=""), index())
    assert (found.code, found.names[0]) == ("TM201", arch)
    assert found.where is None


def test_a_warning_that_speaks_of_all_archs_below_one_is_read() -> None:
    said = "nvcc warning : Support for offline compilation for architectures prior to '<compute/sm/lto>_75' will be"
    held = plan(
        ("cicc", "compute_70", "cicc"),
        ("ptxas", "sm_70", "ptxas"),
        ("ptxas", "sm_80", "ptxas"),
        said=[said],
    )
    (found,) = of_plan(held.replace(version="12.6.85"), index())
    assert (found.code, found.names, found.facts) == ("TM202", ("compute_70", "sm_70"), ())


def test_targets_that_do_not_go_together_are_not_unknown() -> None:
    text = "clang: error: invalid offload arch combinations: 'gfx90a' and 'gfx90a:xnack+'"
    assert of_plan(plan(said=[text], tool="hipcc", version="21.1.8"), index()) == []


@pytest.mark.parametrize(
    ("env", "foreign"),
    [
        ({"INCLUDES": '"-I/cuda/bin/../include"  '}, None),
        ({"INCLUDES": '"-I/cuda/include"'}, None),
        ({"SYSTEM_INCLUDES": '"-isystem" "/cuda/bin/../include/cccl"  '}, None),
        ({"LIBRARIES": "  -L/usr/lib/x86_64-linux-gnu/stubs -L/usr/lib/x86_64-linux-gnu"}, None),
        ({"LIBRARIES": '  "-L/cuda/bin/../lib64" -lcudart'}, None),
        ({"LIBRARIES": '-L/mine -lmine  "-L/cuda/lib"'}, ("LIBRARIES", "-L/mine", "-lmine")),
        ({"LIBRARIES": '"-L/my lib"'}, ("LIBRARIES", "-L/my lib")),
        ({"PTXAS_FLAGS": "-v "}, ("PTXAS_FLAGS", "-v")),
        ({"PTXAS_FLAGS": ""}, None),
        ({"INCLUDES": '"-I/cudamine"'}, ("INCLUDES", "-I/cudamine")),
    ],
)
def test_the_words_of_the_profile_are_told_from_others(
    env: dict[str, str], foreign: tuple[str, ...] | None
) -> None:
    here = {"_HERE_": "/cuda/bin", "TOP": "/cuda/bin/.."}
    found = of_plan(plan(("preprocess", "", "gcc -E k.cu"), env=here | env), index())
    assert [one.names for one in found] == ([foreign] if foreign else [])


@pytest.mark.parametrize(
    ("libraries", "foreign"),
    [
        (r'"/LIBPATH:C:\PROGRA~1\NVIDIA~2\CUDA\v13.1\bin/../lib/x64"', None),
        (r'"/LIBPATH:C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v13.1\lib\x64"', None),
        (r"/LIBPATH:C:\MYPROG~1\lib", ("LIBRARIES", r"/LIBPATH:C:\MYPROG~1\lib")),
        (r"/LIBPATH:C:\PROGRA~1\other", ("LIBRARIES", r"/LIBPATH:C:\PROGRA~1\other")),
    ],
)
def test_the_toolkits_own_places_on_windows_are_not_the_callers(
    libraries: str, foreign: tuple[str, ...] | None
) -> None:
    here = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v13.1\bin"
    env = {"_HERE_": here, "TOP": here + "/..", "LIBRARIES": libraries}
    found = of_plan(plan(("preprocess", "", "cl.exe -E k.cu"), env=env), index())
    assert [one.names for one in found] == ([foreign] if foreign else [])


@pytest.mark.parametrize("word", ["-DA=$HOME", "-DA=`id`", "$(id)", "-I${HOME}", "a$1.cu"])
def test_the_shell_expands_these(word: str) -> None:
    (found,) = of_plan(plan(("preprocess", "", f"gcc {word}")), index())
    assert found.names == (word,)


@pytest.mark.parametrize("words", ["gcc a$", "$CICC_PATH/cicc a", "gcc a'b -DA=50%"])
def test_the_shell_leaves_these(words: str) -> None:
    assert of_plan(plan(("preprocess", "", words)), index()) == []


def test_a_program_is_sought_on_the_path_of_the_plan() -> None:
    asked: list[tuple[str, str]] = []

    def found(program: str, path: str) -> bool:
        asked.append((program, path))
        return program == "gcc"

    held = plan(
        ("preprocess", "", "gcc k.cu"),
        ("cicc", "", "$CICC_PATH/cicc k.ii"),
        ("ptxas", "", "ptxas k.ptx"),
        ("ptxas", "", "ptxas l.ptx"),
        env={"PATH": "/cuda/bin:/bin"},
    )
    here = LocalMachine(has_program=found, has_file=lambda _: True)
    (one,) = of_plan(held, index(), here=here)
    assert (one.code, one.severity, one.names, one.stage) == ("TM211", "error", ("ptxas",), 2)
    assert asked == [("gcc", "/cuda/bin:/bin"), ("ptxas", "/cuda/bin:/bin")]


def test_a_program_is_sought_where_its_path_says() -> None:
    here = LocalMachine(
        has_program=lambda program, _: "lld" not in program, has_file=lambda _: True
    )
    words = ("/llvm/bin/clang -cc1 k.hip", "/llvm/bin/lld k.o", "$X/cicc k.ii", "./own/lld k.o")
    held = plan(*(("other", "", one) for one in words), tool="clang", version="21.1.8")
    (found,) = of_plan(held, index(), here=here)
    assert (found.code, found.severity, found.names) == ("TM211", "error", ("/llvm/bin/lld",))


def test_a_file_of_the_command_line_is_sought() -> None:
    here = LocalMachine(has_program=lambda *_: True, has_file=lambda path: path == "here.o")
    held = plan(
        ("link", "", "g++ here.o gone.o unasked.o -o app"),
        files={0: (["here.o", "gone.o", "unasked.o"], ["app"])},
    )
    asked = ("nvcc", "here.o", "gone.o", "-arch=sm_80", "-o", "app")
    (found,) = of_plan(held, index(), asked=asked, here=here)
    assert (found.code, found.severity, found.names, found.stage) == (
        "TM212",
        "error",
        ("gone.o",),
        0,
    )
    assert found.sentence(IndexWords(index())) == "the object `gone.o` does not exist"


@pytest.mark.parametrize(
    ("cubins", "advice"),
    [
        ("elf:90a", "compute_90"),
        ("elf:100f", "compute_100"),
        ("elf:90 elf:80", "compute_90"),
    ],
)
def test_the_ptx_that_is_advised_runs_elsewhere_too(cubins: str, advice: str) -> None:
    (found,) = (one for one in of_plan(made(*cubins.split()), index()) if one.code == "TM204")
    assert found.help() == f"add `-gencode arch={advice},code={advice}`"


@pytest.mark.parametrize(
    ("images", "option", "severity"),
    [
        (("nvvm:80",), "", "error"),
        (("ptx:80", "nvvm:80"), "", "warning"),
        (("ptx:80", "nvvm:80"), "-dlto", None),
        (("elf:80", "ptx:80"), "-dlto", "warning"),
        (("elf:80", "ptx:80"), "", None),
    ],
)
def test_both_halves_have_lto_or_none(
    images: tuple[str, ...], option: str, severity: str | None
) -> None:
    held = plan(
        fatbinary(*images, more="--device-c"),
        ("nvlink", "sm_80", f"nvlink --arch=sm_80 {option} k.o"),
        fatbinary("elf:80", "ptx:80", more="-link"),
        files={1: (["k.o"], ["k.cubin"]), 0: ([], ["k.o"])},
    )
    found = [one for one in of_plan(held, index()) if one.code == "TM217"]
    assert [one.severity for one in found] == ([severity] if severity else [])


def test_what_an_earlier_invocation_made_is_linked_with_what_it_is() -> None:
    compiled = plan(
        fatbinary("elf:80", "ptx:80", more="--device-c"),
        ("host-compile", "", "gcc -c k.cpp -o k.o"),
        files={0: ([], ["k.fatbin.c"]), 1: (["k.fatbin.c"], ["k.o"])},
    )
    link = plan(("link", "", "g++ k.o -o app"), files={0: (["k.o"], ["app"])})
    found = stages.findings([compiled, link], index())
    assert [(one.code, one.plan) for one in found] == [("TM216", 1)]
