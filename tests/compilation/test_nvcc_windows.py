"""Logs of nvcc on Windows: another shell, another compiler, response files, and paths either way round."""

from __future__ import annotations

import pytest

from toolmatrix.compilation import parse, parse_log

TEMP = "C:/Users/me/AppData/Local/Temp/tmpxft_00001234_00000000"
LOG = f"""\
#$ _NVVM_BRANCH_=nvvm
#$ _SPACE_=
#$ _CUDART_=cudart
#$ _HERE_=C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.6\\bin
#$ _WIN_PLATFORM_=x64
#$ CICC_PATH=C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.6\\bin/../nvvm/bin
#$ INCLUDES="-IC:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.6\\bin/../include"\x20\x20
#$ erase {TEMP}-3_a b.fatbin
a b.cu
#$ resource file {TEMP}-5_a b.cpp4.ii.res: [-D__CUDA_ARCH_LIST__=890 -nologo -E -TP -D__CUDACC__ -D__NVCC__ \
"-IC:\\Program Files\\x\\include" -D "MSG=\\"hello, world\\"" -D__CUDACC_VER_MAJOR__=12 -D__CUDACC_VER_MINOR__=6 \
-D__CUDACC_VER_BUILD__=20 -FI "cuda_runtime.h" "a b.cu" ]
#$ cl.exe @"{TEMP}-5_a b.cpp4.ii.res" > "{TEMP}-5_a b.cpp4.ii"\x20
#$ erase {TEMP}-5_a b.cpp4.ii.res
#$ cudafe++ --microsoft_version=1940 --m64 --parse_templates --gen_c_file_name "{TEMP}-6_a b.cudafe1.cpp" \
--stub_file_name "tmpxft_00001234_00000000-6_a b.cudafe1.stub.c" --gen_module_id_file \
--module_id_file_name "{TEMP}-4_a b.module_id" "{TEMP}-5_a b.cpp4.ii"\x20
#$ cl.exe > "{TEMP}-7_a b.cpp1.ii" -D__CUDA_ARCH__=890 -nologo -E -TP -D__NVCC__ -FI "cuda_runtime.h" "a b.cu"
#$ ""%CICC_PATH%\\cicc" --microsoft_version=1940 -arch compute_89 -m64 \
--include_file_name "tmpxft_00001234_00000000-3_a b.fatbin.c" -tused --module_id_file_name "{TEMP}-4_a b.module_id" \
--gen_c_file_name "{TEMP}-6_a b.cudafe1.c" --stub_file_name "{TEMP}-6_a b.cudafe1.stub.c" \
--gen_device_file_name "{TEMP}-6_a b.cudafe1.gpu"  "{TEMP}-7_a b.cpp1.ii" -o "{TEMP}-6_a b.ptx""
#$ ptxas.exe -arch=sm_89 -m64  "{TEMP}-6_a b.ptx"  -o "{TEMP}-8_a b.cubin"\x20
#$ fatbinary -64 "--image3=kind=elf,sm=89,file={TEMP}-8_a b.cubin" --embedded-fatbin="{TEMP}-3_a b.fatbin.c"\x20
#$ resource file {TEMP}-9_a b.obj.res: [-D__CUDA_ARCH__=890 -nologo -c -TP "{TEMP}-6_a b.cudafe1.cpp" ]
#$ cl.exe @"{TEMP}-9_a b.obj.res" -Fo"a b.obj"\x20
"""


def test_the_graph_is_that_of_other_systems() -> None:
    plan = parse(LOG.replace("\n", "\r\n"))
    assert plan.version == "12.6.20"
    assert [(stage.kind, stage.tool, stage.arch) for stage in plan.stages] == [
        ("preprocess", "cl.exe", None),
        ("cudafe", "cudafe++", None),
        ("preprocess", "cl.exe", "compute_89"),
        ("cicc", "cicc", "compute_89"),
        ("ptxas", "ptxas.exe", "sm_89"),
        ("fatbinary", "fatbinary", None),
        ("host-compile", "cl.exe", None),
    ]
    assert plan.edges == ((0, 1), (1, 3), (2, 3), (3, 4), (4, 5), (1, 6), (3, 6), (5, 6))
    assert plan.stages[0].inputs == ("a b.cu",)
    assert plan.stages[-1].outputs == ("a b.obj",)
    assert plan.removed == (f"{TEMP}-3_a b.fatbin", f"{TEMP}-5_a b.cpp4.ii.res")
    assert plan.diagnostics == ()


def test_words_are_those_of_the_response_file() -> None:
    first, *_, last = parse(LOG).stages
    assert first.argv[0] == "cl.exe"
    assert 'MSG="hello, world"' in first.argv
    assert "-IC:\\Program Files\\x\\include" in first.argv
    assert last.argv[1:4] == ("-D__CUDA_ARCH__=890", "-nologo", "-c")
    assert last.text.startswith('cl.exe @"')


def test_variables_are_put_in_and_outer_quotes_are_off() -> None:
    cicc = parse(LOG).stages[3]
    assert cicc.argv[0].endswith("bin/../nvvm/bin\\cicc")
    assert cicc.argv[-1] == f"{TEMP}-6_a b.ptx"


CL = "C:\\Program Files (x86)\\Microsoft Visual Studio\\2019\\VC\\bin"
ENVIRONMENT = [
    "#$ ALLUSERSPROFILE=C:\\ProgramData",
    "#$ CommonProgramFiles=C:\\Program Files\\Common Files",
    "#$ CommonProgramFiles(x86)=C:\\Program Files (x86)\\Common Files",
    "#$ CommonProgramW6432=C:\\Program Files\\Common Files",
    "#$ INCLUDE=C:\\Program Files (x86)\\include",
    "#$ Path=C:\\Windows",
    "#$ PATH=C:\\Windows",
    f"#$ {CL}/../../Auxiliary/Build/vcvars64.bat",
    "#$ VSCMD_VER=16.11",
    "#$ PATH=C:\\Windows;C:\\cl",
]


@pytest.mark.parametrize("before", ["#$ erase", "#$ resource file", "#$ ptxas"])
def test_the_environment_of_the_host_compiler_opens_no_run(before: str) -> None:
    lines = LOG.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(before))
    log = parse_log([*lines[:at], *ENVIRONMENT, *lines[at:]])
    (plan,) = log.plans
    assert [stage.text for stage in plan.stages] == [stage.text for stage in parse(LOG).stages]
    assert plan.edges == parse(LOG).edges
    assert plan.diagnostics == ()


def test_the_environment_comes_before_the_run_and_stays_out_of_it() -> None:
    """So nvcc begins where CMake calls it, in lines that CMake wraps."""
    wrapped = [
        "  #$ C:/Program Files/Microsoft Visual",
        "  Studio/18/Community/VC/Tools/MSVC/14.51.36231/bin/HostX64/x64/../../Auxiliary/Build/vcvars64.bat",
        "",
    ]
    dump = [text for line in ENVIRONMENT for text in (f"  {line}", "")]
    (plan,) = parse_log(["", *wrapped, "", *dump, *LOG.split("\n")]).plans
    assert plan.env == parse(LOG).env
    assert plan.edges == parse(LOG).edges
    assert plan.diagnostics == ()


def test_a_second_run_after_the_environment_is_another() -> None:
    lines = LOG.split("\n")
    both = [*lines[:9], *ENVIRONMENT, *lines[9:]]
    first, second = parse_log(
        [*both, *(line.replace("00001234", "00005678") for line in both)]
    ).plans
    assert first.edges == second.edges == parse(LOG).edges


def test_the_kits_of_windows_are_no_file_of_a_stage() -> None:
    kits = '--sdk_dir "C:/Program Files (x86)/Windows Kits/10/" --gen_c_file_name'
    plan = parse(LOG.replace("--gen_c_file_name", kits))
    assert plan.edges == parse(LOG).edges
    assert not [path for stage in plan.stages for path in stage.outputs if path.endswith("/10/")]


def test_slashes_and_letters_of_a_path_make_no_other_file() -> None:
    """nvcc itself mixes them: what cudafe++ is told with `/` stands with `\\` in the response file of cl."""
    lines = LOG.split("\n")
    other = TEMP.replace("/", "\\").replace("Users", "users")
    for step in (2, 3):
        log = "\n".join(
            line.replace(TEMP, other) if number % step else line
            for number, line in enumerate(lines)
        )
        plan = parse(log)
        assert plan.edges == parse(LOG).edges
        assert plan.diagnostics == ()
        assert {path for stage in plan.stages for path in stage.inputs}.isdisjoint(
            path for path in plan.removed if path.endswith(".res")
        )


def test_paths_may_go_the_other_way_round() -> None:
    log = LOG.replace(TEMP, TEMP.replace("/", "\\"))
    assert parse(log).edges == parse(LOG).edges
