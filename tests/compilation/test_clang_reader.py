"""What is read beside the commands: who speaks, what went wrong, where one run ends and the next begins."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compilation.corpus import case, cases
from toolmatrix.compilation import Log, Plan, parse, parse_log
from toolmatrix.compilation.drivers.clang import ClangReader, split

LOGS = [one.name for one in cases("hipcc", "clang")]
BANNER = ["Debian clang version 15.0.6", "Target: x86_64-pc-linux-gnu", "Thread model: posix"]


def read(*lines: str) -> Log:
    return parse_log(lines)


def one(*lines: str) -> Plan:
    (plan,) = read(*lines).plans
    return plan


def said(plan: Plan, severity: str) -> list[str]:
    return [diagnostic.text for diagnostic in plan.diagnostics if diagnostic.severity == severity]


def device(source: str, temp: str) -> str:
    return (
        ' "/usr/lib/llvm-15/bin/clang" "-cc1" "-triple" "amdgcn-amd-amdhsa" "-fcuda-is-device"'
        f' "-target-cpu" "gfx906" "-o" "{temp}" "-x" "hip" "{source}"'
    )


def linked(temp: str, output: str) -> str:
    return f' "/usr/lib/llvm-15/bin/lld" "-flavor" "gnu" "-plugin-opt=mcpu=gfx906" "-o" "{output}" "{temp}"'


@pytest.mark.parametrize(
    ("banner", "version", "hip"),
    [
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "18.1.3", ""),
        ("clang version 17.0.6 (Fedora 17.0.6-2.fc39)", "17.0.6", ""),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", "15.0.0", ""),
        ("Debian clang version 11.0.1-2", "11.0.1", ""),
        ("clang version 22.0.0git (https://github.com/llvm/llvm-project 0123abc)", "22.0.0", ""),
        (
            "AMD clang version 17.0.0 (https://github.com/RadeonOpenCompute/llvm-project roc-6.1.2 24193 669db884)",
            "17.0.0",
            "6.1.2",
        ),
    ],
)
def test_a_banner_says_the_version(banner: str, version: str, hip: str) -> None:
    plan = one(banner, "Target: x86_64-unknown-linux-gnu", device("k.hip", "t/k-0a1b2c.o"))
    assert (plan.version, plan.hip, plan.line) == (version, hip, 1)


def test_prose_about_clang_is_no_banner() -> None:
    assert (
        read("built with clang version 15.0.6", "Target: all", "clang -cc1 version 15.0.6").plans
        == ()
    )


@pytest.mark.parametrize(
    "name", ["hipcc-5.2.3__verbose-hipcc-env", "hipcc-7.0.2__verbose-hipcc-env"]
)
def test_hipcc_says_what_it_found_and_what_it_runs(name: str) -> None:
    plan = parse(case(name).text)
    assert plan.tool == "hipcc"
    assert plan.env["HIP_PLATFORM"] == "amd"
    assert plan.env["ROCM_PATH"] == "/usr"
    assert said(plan, "note") == []


@pytest.mark.parametrize(
    ("name", "hip"),
    [
        ("hipcc-5.2.3__verbose-hipcc-env", "5.2.21153"),
        ("hipcc-5.7.1__verbose-v-real-run", "5.7.31921"),
        ("hipcc-7.0.2__verbose-v-real-run", "6.4.43484"),
        ("hipcc-7.0.2__c-one-gfx", ""),
    ],
)
def test_the_release_of_hip_is_known_where_the_log_tells(name: str, hip: str) -> None:
    assert parse(case(name).text).hip == hip


def test_who_only_looks_like_hipcc_is_said_to() -> None:
    (note,) = said(parse(case("hipcc-7.0.2__c-one-gfx").text), "note")
    assert note.startswith("treated as a run of hipcc")
    assert said(parse(case("hipcc-5.7.1__c-one-gfx").text), "note") == []
    assert said(parse(case("clang-21.1.8__hip-c-many").text), "note") == []


def test_hipcc_that_calls_nvcc_is_no_run_of_clang() -> None:
    log = read(
        "HIP_PATH=/usr",
        "HIP_PLATFORM=nvidia",
        "hipcc-args: -### -c vadd.hip",
        "hipcc-cmd: /usr/local/cuda/bin/nvcc  -Wno-deprecated-gpu-targets -c vadd.hip",
    )
    assert log.plans == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hipcc-5.2.3__missing-file", "no such file or directory: 'nosuch.hip'"),
        ("hipcc-5.2.3__device-lib-missing", "cannot find ROCm device library"),
        ("hipcc-7.0.2__c-target-id-conflict", "invalid offload arch combinations"),
        # said before the banner
        ("hipcc-5.7.1__parallel-jobs", "unknown argument: '-parallel-jobs=4'"),
        # said by the compiler of a real run
        ("hipcc-5.2.3__verbose1-env-real-error", "broken.hip:2:53: error: expected expression"),
    ],
)
def test_an_error_is_kept_whatever_the_exit_code(name: str, text: str) -> None:
    found = case(name)
    plan = parse(found.text)
    (line,) = [one.line for one in plan.diagnostics if one.severity == "error" and text in one.text]
    assert text in found.text.splitlines()[line - 1]


def test_the_missing_gpu_is_said_where_hipcc_looked_for_one() -> None:
    plan = parse(case("hipcc-5.2.3__c-no-gfx-autodetect").text)
    assert said(plan, "warning") == [
        "rocm_agent_enumerator failed, so hipcc could not detect the GPU"
    ]


def test_a_program_that_was_not_found_stands_without_its_path() -> None:
    plan = parse(case("clang-21.1.8__cuda-c-two-archs").text)
    assert [(note.stage, note.text.split("`")[1]) for note in plan.diagnostics] == [
        (1, "ptxas"),
        (3, "ptxas"),
        (4, "fatbinary"),
    ]


def test_a_linker_wrapper_hides_stages() -> None:
    plan = parse(case("hipcc-7.0.2__new-driver-c").text)
    (note,) = [note for note in plan.diagnostics if "links the device code itself" in note.text]
    assert note.stage == len(plan.stages) - 1


def test_an_unknown_program_is_kept_with_the_files_of_its_words() -> None:
    plan = one(
        *BANNER,
        device("k.hip", "t/k-0a1b2c.o"),
        ' "/opt/x/gpu-shrinker" "-O9" "--in=t/k-0a1b2c.o" "table.txt" "-o" "t/k-3d4e5f.o"',
        linked("t/k-3d4e5f.o", "k.out"),
    )
    stage = plan.stages[1]
    assert (stage.kind, stage.tool, stage.arch) == ("other", "gpu-shrinker", None)
    assert stage.inputs == ("t/k-0a1b2c.o", "table.txt")
    assert stage.outputs == ("t/k-3d4e5f.o",)
    assert plan.edges == ((0, 1), (1, 2))
    assert [note.stage for note in plan.diagnostics if "is unknown" in note.text] == [1]


def test_a_cut_line_is_said_to_be() -> None:
    plan = one(*BANNER, device("k.hip", "t/k-0a1b2c.o")[:-3])
    assert said(plan, "warning") == ["the command ends inside a quoted word: the log is cut here"]


def test_each_banner_begins_a_plan() -> None:
    names = ["hipcc-5.2.3__c-one-gfx", "hipcc-7.0.2__rdc-c", "clang-23.1.4__hip-rdc-link"]
    texts = [case(name).text for name in names]
    plans = parse_log("".join(texts).splitlines()).plans
    apart = [parse(text) for text in texts]
    assert [shape(plan) for plan in plans] == [shape(plan) for plan in apart]
    assert [plan.version for plan in plans] == [plan.version for plan in apart]


def shape(plan: Plan) -> object:
    return [
        (stage.kind, stage.arch, stage.inputs, stage.outputs) for stage in plan.stages
    ], plan.edges


def test_a_link_of_what_an_earlier_run_made_is_a_plan_of_its_own() -> None:
    link = ' "/usr/bin/ld" "-o" "app" "k.o" "-lamdhip64"'
    compile_ = device("k.hip", "k.o")
    assert [len(plan.stages) for plan in read(*BANNER, compile_, *BANNER, link).plans] == [1, 1]


def test_interleaved_runs_come_apart_by_their_temporary_files() -> None:
    log = read(
        *BANNER,
        device("a.hip", "t/a-000001.o"),
        *BANNER,
        device("b.hip", "t/b-000002.o"),
        linked("t/a-000001.o", "t/a-000003.out"),
        linked("t/b-000002.o", "t/b-000004.out"),
    )
    assert [[stage.line for stage in plan.stages] for plan in log.plans] == [[4, 9], [8, 10]]
    assert [plan.edges for plan in log.plans] == [((0, 1),), ((0, 1),)]


def test_commands_without_a_banner_are_a_plan() -> None:
    plan = one("some noise", device("a.hip", "t/a-000001.o"), linked("t/a-000001.o", "a.out"))
    assert (plan.tool, plan.version, plan.line, plan.edges) == ("clang", "", 2, ((0, 1),))


def test_a_version_that_was_asked_for_is_no_run() -> None:
    plan = one(*BANNER, *BANNER, device("k.hip", "k.o"), *BANNER)
    assert (plan.line, len(plan.stages)) == (4, 1)
    assert read(*BANNER).plans == ()


def test_a_shown_command_is_no_list_of_variables() -> None:
    assert one("HIP_PLATFORM=amd hipcc -c k.hip", *BANNER, device("k.hip", "k.o")).env == {}


@pytest.mark.parametrize("line", ['"name": "clang"', '"a" "b"', ' "make" "all"', '"clang', '"'])
def test_quoted_text_out_of_nowhere_is_no_command(line: str) -> None:
    assert read(line).plans == ()


def test_a_message_before_a_banner_belongs_to_the_run_that_follows() -> None:
    log = read(
        *BANNER,
        device("k.hip", "k.o"),
        "clang: error: linker command failed with exit code 1 (use -v to see invocation)",
        "clang: error: unknown argument: '-x9'",
        *BANNER,
    )
    assert [len(said(plan, "error")) for plan in log.plans] == [1, 1]
    assert "unknown argument" in said(log.plans[1], "error")[0]


def test_the_words_of_a_response_file_take_its_place() -> None:
    plan = one(
        *BANNER,
        ' "/usr/lib/llvm-15/bin/lld" "@t/response-0a1b2c.txt"',
        " Arguments passed via response file:",
        '"-flavor" "gnu" "-plugin-opt=mcpu=gfx906" "-o" "a b.out" "a.o" ',
        " (end of response file)",
        ' "/usr/bin/ld" "-o" "app" "a b.out"',
    )
    stage = plan.stages[0]
    assert (stage.kind, stage.arch, stage.inputs, stage.outputs) == (
        "device-link",
        "gfx906",
        ("a.o",),
        ("a b.out",),
    )
    assert len(plan.stages) == 2


def test_a_response_file_that_is_not_shown_is_read() -> None:
    plan = one(*BANNER, ' "/usr/bin/ld" "@t/response-0a1b2c.txt"')
    assert plan.stages[0].inputs == ("t/response-0a1b2c.txt",)


def test_windows_paths_and_linkers_are_understood() -> None:
    clang = r'"C:\\Program Files\\AMD\\ROCm\\6.1\\bin\\clang.exe" "-cc1" "-triple"'
    plan = one(
        "clang version 19.0.0git",
        "Target: x86_64-pc-windows-msvc",
        rf' {clang} "x86_64-pc-windows-msvc" "-o" "C:\\Temp\\k-1a2b3c.o" "-x" "hip" "k k.hip"',
        r' "C:\\VS\\link.exe" "-out:k.exe" "-libpath:C:\\ROCm\\lib" "-nologo" "C:\\Temp\\k-1a2b3c.o" "amdhip64.lib"',
    )
    compiled, link = plan.stages
    assert (compiled.tool, compiled.kind, compiled.inputs) == (
        "clang.exe",
        "host-compile",
        ("k k.hip",),
    )
    assert (link.tool, link.kind) == ("link.exe", "link")
    assert (link.inputs, link.outputs) == ((r"C:\Temp\k-1a2b3c.o",), ("k.exe",))
    assert plan.edges == ((0, 1),)


def test_the_bundlers_of_all_versions_name_the_same_files() -> None:
    old = ' "clang-offload-bundler" "-inputs=/dev/null,a.out,b.out" "-outputs=k.hipfb"'
    new = ' "clang-offload-bundler" "-input=/dev/null" "-input=a.out" "-input=b.out" "-output=k.hipfb"'
    plans = [one(*BANNER, line) for line in (old, new, new.replace('"-', '"--'))]
    for plan in plans:
        assert plan.stages[0].inputs == ("a.out", "b.out")
        assert plan.stages[0].outputs == ("k.hipfb",)


def test_what_comes_with_the_system_is_no_input() -> None:
    plan = one(
        *BANNER,
        ' "/usr/bin/ld" "-pie" "-o" "app" "/lib/x86_64-linux-gnu/Scrt1.o" "/usr/bin/../lib/gcc/x/12/crtbeginS.o"'
        ' "/opt/rocm-6.0.0/lib/libamdhip64.so.6.0.60000" "-L" "lib" "k.o" "lib/libk.a" "/usr/src/app/m.o"'
        ' "-lstdc++" "/usr/lib/llvm-15/lib/clang/15/lib/linux/libclang_rt.builtins-x86_64.a"',
    )
    assert plan.stages[0].inputs == ("k.o", "lib/libk.a", "/usr/src/app/m.o")


def test_a_link_of_device_code_that_names_no_arch_has_that_of_what_it_reads() -> None:
    plan = one(
        *BANNER,
        device("k.cl", "t/k-0a1b2c.o"),
        ' "/usr/lib/llvm-15/bin/ld.lld" "t/k-0a1b2c.o" "-shared" "-o" "k.co"',
    )
    assert [(stage.kind, stage.arch) for stage in plan.stages] == [
        ("device-compile", "gfx906"),
        ("device-link", "gfx906"),
    ]


def test_only_the_features_of_a_target_id_are_part_of_the_arch() -> None:
    words = '"-target-feature" "+wavefrontsize64" "-target-feature" "-xnack" "-target-feature" "+sramecc"'
    line = device("k.hip", "k.o").replace('"-o"', f'{words} "-o"')
    assert one(*BANNER, line).stages[0].arch == "gfx906:sramecc+:xnack-"


PREFIXES = ["2024-05-01T12:00:00.1234567Z ", "[12:00:00] ", "#12 3.456 ", "builder  | ", "\x1b[0m"]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["hipcc-7.0.2__rdc-link-sources", "clang-23.1.4__hip-link-two"])
def test_what_stands_in_front_of_the_lines_does_not_change_the_graph(
    name: str, prefix: str
) -> None:
    lines = case(name).text.splitlines()
    assert shape(one(*(prefix + line for line in lines))) == shape(one(*lines))


@given(st.sampled_from(LOGS), st.data())
def test_a_log_cut_anywhere_keeps_the_stages_before_the_cut(name: str, data: st.DataObject) -> None:
    text = case(name).text
    cut = text[: data.draw(st.integers(0, len(text)))]
    whole = [stage for plan in parse_log(text.splitlines()).plans for stage in plan.stages]
    found = [stage for plan in parse_log(cut.splitlines()).plans for stage in plan.stages]
    assert [stage.argv for stage in found[:-1]] == [stage.argv for stage in whole][
        : len(found[:-1])
    ]


PIECES = st.sampled_from(
    [*BANNER, device("k.hip", "k-000000.o"), linked("k-000000.o", "o"), " (in-process)", ""]
    + [line for name in LOGS[::9] for line in case(name).text.splitlines()]
    + [" Arguments passed via response file:", '"-o" "x" ', " (end of response file)"]
)


@settings(deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(), st.text('"\\ -@=:/x1'))))
def test_no_text_is_too_odd(lines: list[str]) -> None:
    reader = ClangReader()
    for number, line in enumerate(lines, 1):
        if not reader.read(number, line):
            reader.message(number, line)
    plans = reader.plans()
    for plan in plans:
        assert all(one < other for one, other in plan.edges)
    taken = [stage.line for plan in plans for stage in plan.stages]
    assert len(set(taken)) == len(taken)


# Words come back as clang meant them, whatever they hold.


def printed(word: str, *, quote: bool = True) -> str:
    """A word as llvm::sys::printArg prints it."""
    if not quote and not set(word) & set(' "\\$'):
        return word
    escaped = "".join(f"\\{one}" if one in '"\\$' else one for one in word)
    return f'"{escaped}"'


# A line end would end the line, and a log's lines are split at these too.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
WORD = st.text(st.characters(exclude_characters=LINE_ENDS, codec="utf-8"))
# Without quotes an empty word cannot be seen.
BARE_WORD = WORD.filter(bool)


@given(st.lists(WORD, min_size=1))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert split(" ".join(printed(word) for word in words)) == (words, True)


@given(st.text('a \\"$`', min_size=1), st.lists(BARE_WORD))
def test_words_that_are_quoted_only_where_they_must_be_come_back(
    program: str, words: list[str]
) -> None:
    text = " ".join([printed(program), *(printed(word, quote=False) for word in words)])
    assert split(text) == ([program, *words], True)


@given(st.lists(WORD, min_size=2), st.data())
def test_a_cut_line_keeps_the_words_before_the_cut(words: list[str], data: st.DataObject) -> None:
    text = " ".join(printed(word) for word in words)
    cut = data.draw(st.integers(1, len(text) - 1))
    found, whole = split(text[:cut])
    if cut >= len(printed(words[0])):
        assert found[0] == words[0]
    if whole:
        assert found == words[: len(found)]


@given(st.text('a" \\$'))
def test_any_text_has_words(text: str) -> None:
    words, _ = split(text)
    assert all(isinstance(word, str) for word in words)


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ('MSG="hello, world"', "-D"),
        ("Q='x'", "-D"),
        ("BS=a\\b", "-D"),
        ("DOL=$HOME", "-D"),
        ("inc dir", "-I"),
    ],
)
def test_the_words_of_a_real_command_line(word: str, option: str) -> None:
    words = parse(case("hipcc-7.0.2__flags-quotes").text).stages[0].argv
    assert words[words.index(word) - 1] == option


def test_the_words_of_a_real_run_with_only_the_program_quoted() -> None:
    stage = parse(case("hipcc-5.2.3__verbose-v-real-run").text).stages[1]
    assert stage.argv[0] == "/usr/lib/llvm-15/bin/lld"
    assert stage.argv[1:5] == ("-flavor", "gnu", "--no-undefined", "-shared")
