"""Headers of the shapes that toolkits have had, put to the real g++."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compilation import real
from toolmatrix.errors import HarvestRefused
from toolmatrix.harvest import headers
from toolmatrix.harvest.headers import GlibcCeiling, HostCompilers

pytestmark = pytest.mark.process

GLIBC = {"2.41": ["cospi", "sinpi"], "2.42": ["rsqrt"]}


@pytest.fixture(autouse=True)
def _compiler() -> None:
    real.program("g++")


def header(*guards: str, before: str = "", after: str = "") -> bytes:
    """A host_config.h of our own: what is refused stands in conditions."""
    blocks = "\n".join(f"#if {one}\n#error -- unsupported version!\n#endif" for one in guards)
    return (
        "#if !defined(__HOST_CONFIG_H__)\n#define __HOST_CONFIG_H__\n#if defined(__CUDACC__)\n"
        f"{before}\n#if defined(__GNUC__)\n{blocks}\n#include <features.h>\n#endif\n{after}\n#endif\n#endif\n"
    ).encode()


def asked(text: bytes, machine: str = "x86_64") -> HostCompilers:
    return headers.host_compilers(text, machine, "host_config.h")


@pytest.mark.parametrize(
    ("guard", "gcc"),
    [
        ("__GNUC__ > 4 || (__GNUC__ == 4 && __GNUC_MINOR__ > 9)", "<=4.9"),
        ("(__GNUC__ == 4 && __GNUC_MINOR__ > 8) || __GNUC__ > 4", "<=4.8"),
        ("__GNUC__ > 5", "<=5"),
        ("__GNUC__ >= 9", "<=8"),
        ("__GNUC__ > 16", "<=16"),
        ("((__GNUC__ * 100) + __GNUC_MINOR__) >= 1400", "<=13"),
        ("__GNUC__ \\\n  > 10", "<=10"),
        ("!(__GNUC__ <= 12)", "<=12"),
    ],
)
def test_the_newest_gcc_is_found_whatever_the_guard_looks_like(guard: str, gcc: str) -> None:
    found = asked(header(guard))
    assert found.gcc == gcc
    assert found.clang == ""
    assert found.guard == f"#if {guard.splitlines()[0]}"


@pytest.mark.parametrize(
    ("guard", "clang", "oldest"),
    [
        (
            "(__clang_major__ >= 23) || (__clang_major__ < 3) || \\\n (__clang_major__ == 3 && __clang_minor__ < 3)",
            "<=22",
            "3.3",
        ),
        ("(__clang_major__ == 3 && __clang_minor__ > 8) || __clang_major__ > 3", "<=3.8", ""),
        ("__clang_major__ > 8", "<=8", ""),
        ("(__clang_major__ < 6) || (__clang_major__ > 11)", "<=11", "6"),
    ],
)
def test_clang_is_told_from_the_gcc_that_it_says_it_is(guard: str, clang: str, oldest: str) -> None:
    found = asked(header("__GNUC__ > 13", f"defined(__clang__) && ({guard})"))
    assert (found.gcc, found.clang, found.clang_oldest) == ("<=13", clang, oldest)


def test_the_option_against_the_guard_is_named_where_it_works() -> None:
    switched = header("!__NV_NO_HOST_COMPILER_CHECK && __GNUC__ > 11")
    assert asked(switched).override == "-allow-unsupported-compiler"
    assert asked(header("__GNUC__ > 11")).override == ""


def test_the_guard_of_another_machine_is_asked_as_that_machine() -> None:
    text = header("(defined(__aarch64__) && __GNUC__ > 9) || __GNUC__ > 11")
    assert asked(text).gcc == "<=11"
    assert asked(text, "aarch64").gcc == "<=9"


def test_microsofts_compiler_is_asked_on_windows() -> None:
    windows = "#if defined(_WIN32)\n#if _MSC_VER < 1910 || _MSC_VER >= 1950\n#error no\n#endif\n"
    found = asked(header("__GNUC__ > 13", after=windows + "#include <crtdefs.h>\n#endif"))
    assert found.msvc == ">=1910,<1950"


GUARD = "the header does not check host compilers"
READ = "the header cannot be read"


@pytest.mark.parametrize(
    ("text", "what", "found"),
    [
        (b"", GUARD, "every GCC is accepted, or none"),
        (b"\x00\xff\xfe garbage", GUARD, "every GCC is accepted, or none"),
        (header("1"), GUARD, "every GCC is accepted, or none"),
        (header("__GNUC__ == 9"), GUARD, "`-D__GNUC__=99 -D__GNUC_MINOR__=0` is accepted"),
        (header("__GNUC__ > 9", before='#include "crt/nothing.h"'), READ, "crt/nothing.h: No such"),
        (header("__GNUC__ > 9")[:-7], READ, "unterminated #if"),
        (header("__GNUC__ > "), READ, "operator '>' has no right operand"),
    ],
)  # fmt: skip
def test_what_is_no_host_config_is_refused(text: bytes, what: str, found: str) -> None:
    with pytest.raises(HarvestRefused) as refused:
        asked(text)
    assert refused.value.what == what
    assert found in refused.value.found


def math(*lines: str, cospi: str = "", rsqrt: str = "") -> bytes:
    """A math_functions.h of our own, with what comes after each declaration."""
    return "\n".join(
        (
            "#if defined(__CUDACC__)",
            "#include <features.h>",
            '#include "host_defines.h"',
            *lines,
            '#if defined(__cplusplus)\nextern "C" {\n#endif',
            f"extern __host__ __device__ double cospi(double x) {cospi};",
            f"extern __host__ __device__ float cospif(float x) {cospi};",
            f"extern __host__ __device__ double sinpi(double x) {cospi};",
            f"extern __host__ __device__ float sinpif(float x) {cospi};",
            f"extern __host__ __device__ double rsqrt(double x) {rsqrt};",
            f"extern __host__ __device__ float rsqrtf(float x) {rsqrt};",
            "#if defined(__cplusplus)\n}\n#endif",
            "#include <cmath>",
            "an error = of what was left out;",
            "#endif\n",
        )
    ).encode()


PI = "#if {0}(2,41) && __GLIBC_USE_ISOC23\n#define PI __THROW\n#else\n#define PI\n#endif"
ROOT = "#if __GLIBC_PREREQ(2,42)\n#define ROOT __THROW\n#else\n#define ROOT\n#endif"


@pytest.mark.parametrize(
    ("text", "glibc", "guards"),
    [
        (math(), "<2.41", ()),
        (math(PI.format("__GLIBC_PREREQ"), cospi="PI"), "<2.42", ("cospi", "sinpi")),
        # That of a released toolkit, which asks for the version of the wrong program and is right nevertheless.
        (math(PI.format("__GNUC_PREREQ"), cospi="PI"), "<2.42", ("cospi", "sinpi")),
        (math(PI.format("__GLIBC_PREREQ"), ROOT, cospi="PI", rsqrt="ROOT"), "*", ("cospi", "sinpi", "rsqrt")),
        (math(ROOT, rsqrt="ROOT"), "<2.41", ("rsqrt",)),
        # A guard that is right for one of two functions.
        (math(cospi="__THROW").replace(b"sinpif(float x) __THROW", b"sinpif(float x)"), "<2.41", ("cospi",)),
    ],
)  # fmt: skip
def test_the_first_glibc_that_clashes_is_found_by_compiling(
    text: bytes, glibc: str, guards: tuple[str, ...]
) -> None:
    found = headers.glibc_ceiling(text, GLIBC, "math_functions.h")
    assert found == GlibcCeiling(glibc=glibc, guards=guards)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"", "the header does not declare `cospi`"),
        (math().replace(b"rsqrt(", b"root("), "the header does not declare `rsqrt`"),
        (math("#if UNHEARD_OF(2)\n#endif"), "the header cannot be read"),
    ],
)
def test_what_are_no_math_functions_is_refused(text: bytes, what: str) -> None:
    with pytest.raises(HarvestRefused) as refused:
        headers.glibc_ceiling(text, GLIBC, "math_functions.h")
    assert refused.value.what == what
    assert str(refused.value.where) == "math_functions.h"


def test_an_include_cannot_lead_out_of_the_directory(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    with pytest.raises(HarvestRefused):
        headers.glibc_ceiling(math(f'#include "../../../../..{outside}/made.h"'), GLIBC, "")
    assert not outside.exists()
