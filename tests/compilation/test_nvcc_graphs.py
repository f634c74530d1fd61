"""The graphs of a few real logs, checked by hand against the files that the commands name."""

from __future__ import annotations

import pytest

from tests.compilation import corpus
from toolmatrix.compilation import Plan, parse

# One stage a line: what it does, its arch, the numbers of the stages that it waits for.
GRAPHS = {
    "nvcc-4.2__seed": """
 0 preprocess   compute_30
 1 cudafe       compute_30   0
 2 preprocess   compute_30   1
 3 cudafe       compute_30   2
 4 preprocess   compute_30   3
 5 hash         -            4
 6 preprocess   -
 7 cudafe       -            6
 8 cicc         compute_30   4
 9 ptxas        sm_30        8
10 fatbinary    -            8 9
11 preprocess   -            1 7 10
12 host-compile -            11
13 link         -            12
""",
    "nvcc-7.5.17__c-one-arch": """
 0 preprocess   compute_52
 1 cudafe       compute_52   0
 2 preprocess   compute_52   1
 3 cudafe       compute_52   1 2
 4 preprocess   compute_52   3
 5 hash         -            4
 6 preprocess   -
 7 cudafe       -            1 6
 8 cicc         compute_52   4
 9 ptxas        sm_52        8
10 fatbinary    -            8 9
11 preprocess   -            1 7 10
12 host-compile -            11
""",
    "nvcc-9.1.85__c-many-gencode-ptx": """
 0 preprocess   compute_70
 1 cicc         compute_70   0
 2 preprocess   compute_30
 3 cicc         compute_30   1 2
 4 ptxas        sm_30        3
 5 preprocess   compute_35
 6 cicc         compute_35   1 5
 7 ptxas        sm_35        6
 8 preprocess   compute_50
 9 cicc         compute_50   1 8
10 ptxas        sm_50        9
11 preprocess   compute_60
12 cicc         compute_60   1 11
13 ptxas        sm_60        12
14 ptxas        sm_70        1
15 fatbinary    -            1 4 7 10 13 14
16 preprocess   -
17 cudafe       -            1 16
18 host-compile -            1 15 17
""",
    "nvcc-11.2.152__lto-link": """
 0 preprocess   compute_80
 1 cicc         compute_80   0
 2 fatbinary    -            1
 3 preprocess   -
 4 cudafe       -            1 3
 5 host-compile -            1 2 4
 6 preprocess   compute_80
 7 cicc         compute_80   6
 8 fatbinary    -            7
 9 preprocess   -
10 cudafe       -            7 9
11 host-compile -            7 8 10
12 nvlink       sm_80        5 11
13 fatbinary    -            12
14 host-compile -            12 13
15 link         -            5 11 14
""",
    "nvcc-11.8.89__cuda-cpp-ii": """
 0 preprocess   compute_89
 1 cicc         compute_89   0
 2 ptxas        sm_89        1
 3 fatbinary    -            1 2
 4 preprocess   -
 5 cudafe       -            1 4
 6 preprocess   -            1 3 5
""",
    "nvcc-12.4.131__run-args": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_90
 3 cicc         compute_90   1 2
 4 ptxas        sm_90        3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
 7 preprocess   -
 8 cudafe       -            7
 9 preprocess   compute_90
10 cicc         compute_90   8 9
11 ptxas        sm_90        10
12 fatbinary    -            10 11
13 host-compile -            8 10 12
14 nvlink       sm_90        6 13
15 fatbinary    -            14
16 host-compile -            14 15
17 link         -            6 13 16
18 other        -            17
""",
    "nvcc-13.0.88__threads4-many": """
 0 preprocess   -
 1 preprocess   compute_75
 2 preprocess   compute_80
 3 preprocess   compute_86
 4 preprocess   compute_90
 5 preprocess   compute_100
 6 preprocess   compute_120
 7 cudafe       -            0
 8 cicc         compute_75   1 7
 9 cicc         compute_90   4 7
10 cicc         compute_86   3 7
11 cicc         compute_80   2 7
12 cicc         compute_100  5 7
13 cicc         compute_120  6 7
14 ptxas        sm_75        8
15 ptxas        sm_80        11
16 ptxas        sm_86        10
17 ptxas        sm_120       13
18 ptxas        sm_90        9
19 ptxas        sm_100       12
20 fatbinary    -            13 14 15 16 17 18 19
21 host-compile -            7 13 20
""",
    "nvcc-13.0.88__dlink": """
 0 nvlink       sm_80
 1 fatbinary    -            0
 2 host-compile -            0 1
""",
    "nvcc-13.0.88__mixed-host-objects": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_80
 3 cicc         compute_80   1 2
 4 ptxas        sm_80        3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
 7 preprocess   -
 8 cudafe       -            7
 9 preprocess   compute_80
10 cicc         compute_80   8 9
11 ptxas        sm_80        10
12 fatbinary    -            10 11
13 host-compile -            8 10 12
14 host-compile -
15 host-compile -
16 nvlink       sm_80        6 13 14 15
17 fatbinary    -            16
18 host-compile -            16 17
19 link         -            6 13 14 15 18
""",
    "nvcc-13.0.88__family-and-specific-arch": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_100f
 3 cicc         compute_100f 1 2
 4 ptxas        sm_100f      3
 5 preprocess   compute_103a
 6 cicc         compute_103a 1 5
 7 ptxas        sm_103a      6
 8 preprocess   compute_120f
 9 cicc         compute_120f 1 8
10 ptxas        sm_120f      9
11 fatbinary    -            4 7 9 10
12 host-compile -            1 9 11
""",
    "nvcc-13.1.115__ptx": """
 0 preprocess   compute_90
 1 cicc         compute_90   0
 2 ptxas        compute_90   1
""",
    "nvcc-13.3.73__tile-enable": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_100
 3 cicc         compute_100  1 2
 4 tileiras     sm_100       3
 5 fatbinary    -            3 4
 6 ptxas        sm_100       3
 7 fatbinary    -            3 6
 8 host-compile -            1 3 5 7
""",
    "nvcc-13.3.73__tile-only": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_100
 3 cicc         compute_100  1 2
 4 tileiras     sm_100       3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
""",
    "nvcc-13.4.92__prune-concat-link": """
 0 preprocess   -
 1 cudafe       -            0
 2 preprocess   compute_90
 3 cicc         compute_90   1 2
 4 ptxas        sm_90        3
 5 fatbinary    -            3 4
 6 host-compile -            1 3 5
 7 preprocess   -
 8 cudafe       -            7
 9 preprocess   compute_90
10 cicc         compute_90   8 9
11 ptxas        sm_90        10
12 fatbinary    -            10 11
13 host-compile -            8 10 12
14 nvlink       sm_90        6 13
15 fatbinary    -            14
16 host-compile -            14 15
17 other        -            6
18 other        -            13
19 link         -            16 17 18
""",
}


def graph(plan: Plan) -> list[list[str]]:
    """A plan as the words of the lines above."""
    return [
        [
            str(stage.id),
            stage.kind,
            stage.arch or "-",
            *(str(first) for first, then in plan.edges if then == stage.id),
        ]
        for stage in plan.stages
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_is_the_one_checked_by_hand(name: str) -> None:
    assert graph(parse(corpus.case(name).text)) == [
        line.split() for line in GRAPHS[name].split("\n") if line
    ]


# What one command does with files, for uses that no real log of the corpus shows.


def stage(command: str) -> tuple[str, str, str | None, list[str], list[str]]:
    """Kind, tool, arch, inputs and outputs of a command."""
    (found,) = parse(f"#$ _SPACE_=\n#$ {command}").stages
    return found.kind, found.tool, found.arch, list(found.inputs), list(found.outputs)


@pytest.mark.parametrize(
    ("command", "kind", "tool", "arch", "inputs", "outputs"),
    [
        # Host compilers of any name, in every role.
        ('gcc -E -x c++ -D__CUDACC__ "a.cu" -o "a.ii"', "preprocess", "gcc", None, ["a.cu"], ["a.ii"]),
        ('g++-12 -c -x c++ "a.cpp" -o "a.o"', "host-compile", "g++-12", None, ["a.cpp"], ["a.o"]),
        ('"/opt/x/bin"/xlc++ -c "a.cpp" -o "a.o"', "host-compile", "xlc++", None, ["a.cpp"], ["a.o"]),
        ('"/lib64/ccache"/c++ -c "a.cpp" -o "a.o"', "host-compile", "c++", None, ["a.cpp"], ["a.o"]),
        ('ccache clang++ -c "a.cpp" -o "a.o"', "host-compile", "clang++", None, ["a.cpp"], ["a.o"]),
        ('nvc++ -E "a.cpp" > "a.ii"', "preprocess", "nvc++", None, ["a.cpp"], ["a.ii"]),
        ('aarch64-linux-gnu-g++-9 "a.o" -o "a"', "link", "aarch64-linux-gnu-g++-9", None, ["a.o"], ["a"]),
        ('./my-cc.sh -D__NVCC__ -c "a.cpp" -o "a.o"', "host-compile", "my-cc.sh", None, ["a.cpp"], ["a.o"]),
        ('clang++ -shared -L"l d" "a.o" "b.a" -lm -Xlinker -rpath -Xlinker "/o/l" -o "a.so"',
         "link", "clang++", None, ["a.o", "b.a"], ["a.so"]),
        ('gcc -M -x c++ "a.cu" -MF "a.d" -MT "a.o"', "preprocess", "gcc", None, ["a.cu"], ["a.d"]),
        # Windows.
        ('cl.exe -nologo -E -TP -FI "cuda_runtime.h" "a.cu" > "a.ii"',
         "preprocess", "cl.exe", None, ["a.cu"], ["a.ii"]),
        ('cl.exe /nologo /c -TP -Fo"a.obj" "a.cpp"', "host-compile", "cl.exe", None, ["a.cpp"], ["a.obj"]),
        ('cl.exe -nologo "a.obj" "k.lib" -Fe"a.exe" "/LIBPATH:C:\\x y"',
         "link", "cl.exe", None, ["a.obj", "k.lib"], ["a.exe"]),
        ('lib.exe -nologo -OUT:"k.lib" "a.obj" "b.obj"', "link", "lib.exe", None, ["a.obj", "b.obj"], ["k.lib"]),
        ('cl.exe @"a.cpp1.ii.res" > "a.cpp1.ii"', "preprocess", "cl.exe", None, ["a.cpp1.ii.res"], ["a.cpp1.ii"]),
        ('cl.exe @a.obj.res -Fo"a.obj"', "host-compile", "cl.exe", None, ["a.obj.res"], ["a.obj"]),
        # Archives.
        ('"`g++-9 -print-prog-name=ar`" cr "k.a" "a.o"', "link", "ar", None, ["a.o"], ["k.a"]),
        ('llvm-ar cr "k.a" "a.o"', "link", "llvm-ar", None, ["a.o"], ["k.a"]),
        ('ar -rcs "k" "a.o" "b"', "link", "ar", None, ["a.o", "b"], ["k"]),
        ('ar x "k.a" "a.o"', "link", "ar", None, ["k.a", "a.o"], []),
        ('libtool -static -o "k.a" "a.o"', "link", "libtool", None, ["a.o"], ["k.a"]),
        ('lib.exe -nologo "a.obj" "b.obj"', "link", "lib.exe", None, ["a.obj", "b.obj"], []),
        # Device tools: options anywhere, inputs by what they look like.
        ('cicc -arch=compute_70 "a" "a.i" -o "a.ptx"', "cicc", "cicc", "compute_70", ["a.i"], ["a.ptx"]),
        ('cicc "a.ii" --new-flag -arch compute_90a -o "a.ptx"', "cicc", "cicc", "compute_90a", ["a.ii"], ["a.ptx"]),
        ('cicc --new-flag "a.ii" -arch compute_90 -o "a.ptx"', "cicc", "cicc", "compute_90", ["a.ii"], ["a.ptx"]),
        ('ptxas --gpu-name sm_70 "a.ptx" --output-file "a.cubin"', "ptxas", "ptxas", "sm_70", ["a.ptx"], ["a.cubin"]),
        ('ptxas -arch=compute_90 -m64  "a.ptx"', "ptxas", "ptxas", "compute_90", ["a.ptx"], []),
        ('fatbinary --create="a.fatbin" "--image=profile=sm_20@compute_20,file=a,b.cubin"',
         "fatbinary", "fatbinary", None, ["a,b.cubin"], ["a.fatbin"]),
        ('fatbinary --create="a.fatbin" --image=file=a.ptx,profile=compute_30 --key="file=x"',
         "fatbinary", "fatbinary", None, ["a.ptx"], ["a.fatbin"]),
        ('nvlink --arch=sm_70 --register-link-binaries="r.c" "a.o" "k.a" -L"d" -lm -o "a.cubin"',
         "nvlink", "nvlink", "sm_70", ["a.o", "k.a"], ["r.c", "a.cubin"]),
        ('nvlink --brand-new -L"/d" -report-arch "a.o" --other --arch=sm_70 "b.o" -lm -o "k.cubin"',
         "nvlink", "nvlink", "sm_70", ["a.o", "b.o"], ["k.cubin"]),
        ('cudafe++ --sdk_dir "C:/Kits/10/" --new_dir "C:/Kits/11/" --gen_c_file_name "a.cpp" "a.ii"',
         "cudafe", "cudafe++", None, ["a.ii"], ["a.cpp"]),
        ('ptxas -arch=sm_70 "a.ptx" -o', "ptxas", "ptxas", "sm_70", ["a.ptx"], []),
        # What nobody knows.
        ('newtool --in="a.foo" "b.bar" -o "c.baz"', "other", "newtool", None, ["a.foo", "b.bar"], ["c.baz"]),
        ('newtool "tmpxft_00000001_00000000-1_a.new" --level 3', "other", "newtool", None, [],
         ["tmpxft_00000001_00000000-1_a.new"]),
        ("true", "other", "true", None, [], []),
    ],
)  # fmt: skip
def test_a_command_by_itself(
    command: str,
    kind: str,
    tool: str,
    arch: str | None,
    inputs: list[str],
    outputs: list[str],
) -> None:
    assert stage(command) == (kind, tool, arch, inputs, outputs)


def test_what_comes_with_the_toolkit_or_the_system_is_left_out() -> None:
    plan = parse(
        "#$ _HERE_=/opt/cuda/bin\n"
        '#$ gcc -c -x c++ -DFATBINFILE="\\"d.fatbin.c\\"" "/opt/cuda/bin/crt/link.stub" -o "d.o"\n'
        '#$ g++ "d.o" "/opt/cuda/lib64/libcudadevrt.a" "/usr/lib/x86_64-linux-gnu/libm.so.6" "./k.so" -o "a"'
    )
    assert [stage.inputs for stage in plan.stages] == [("d.fatbin.c",), ("d.o", "./k.so")]


def test_unknown_tools_are_joined_to_the_plan_by_who_else_knows_their_temp_files() -> None:
    ptx, better = (f"t/tmpxft_00000001_00000000-1_a.{end}" for end in ("ptx", "better"))
    plan = parse(
        f'#$ cicc -arch compute_90 "a.ii" -o "{ptx}"\n'
        f'#$ optimizer --from="{ptx}" --rules="r.txt" --to="{better}"\n'
        f'#$ ptxas -arch=sm_90 --rules="r.txt" --new-input="{better}" -o "a.cubin"\n'
        '#$ "./checker" "a.cubin"'
    )
    assert plan.edges == ((0, 1), (1, 2), (2, 3))
    assert [stage.kind for stage in plan.stages] == ["cicc", "other", "ptxas", "other"]
    assert [one.stage for one in plan.diagnostics if "is unknown" in one.text] == [1, 3]
    assert [stage.outputs for stage in plan.stages] == [(ptx,), (better,), ("a.cubin",), ()]


def test_what_is_read_does_not_depend_on_what_was_read_before() -> None:
    """Words are remembered; a word met as a flag must still count where it is a value."""
    first = stage('cicc --a=1 -arch compute_90 "a.ii" -o "a.ptx"')
    assert stage('cicc -o --a=1 -arch compute_90 "a.ii"')[4] == ["--a=1"]
    assert stage('cicc --a=1 -arch compute_90 "a.ii" -o "a.ptx"') == first


@pytest.mark.parametrize(
    ("defines", "arch"),
    [
        ("-D__CUDA_ARCH__=900", "compute_90"),
        ("-D__CUDA_ARCH__=900 -D__CUDA_ARCH_FAMILY_SPECIFIC__=900 -D__CUDA_ARCH_FEAT_SM90_ALL", "compute_90a"),
        ("-D__CUDA_ARCH__=1000 -D__CUDA_ARCH_FAMILY_SPECIFIC__=1000", "compute_100f"),
        ("-D__CUDA_ARCH_LIST__=900", None),
    ],
)  # fmt: skip
def test_without_a_compile_the_defines_tell_the_arch(defines: str, arch: str | None) -> None:
    assert stage(f'gcc {defines} -E -x c++ "a.cu"')[2] == arch


def test_a_file_of_the_plan_is_never_left_out() -> None:
    plan = parse(
        "#$ _HERE_=/opt/cuda/bin\n"
        '#$ gcc -c "a.cpp" -o "/opt/cuda/samples/a.o"\n'
        '#$ g++ "/opt/cuda/samples/a.o" "/opt/cuda/lib/b.o" -o "a"'
    )
    assert plan.stages[1].inputs == ("/opt/cuda/samples/a.o",)
