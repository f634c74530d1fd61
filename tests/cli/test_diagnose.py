"""`toolmatrix diagnose`: its forms, its exit codes, bad input; what it finds is the business of tests/judge."""

from __future__ import annotations

import gzip
from pathlib import Path

import jsonschema
import pytest
import zstandard

from tests.cli.conftest import Cli
from tests.logs import captured as logs
from tests.schemas import shipped

LOG = (
    "Step 1/9 : FROM nvidia/cuda:11.0-devel-ubuntu20.04\n"
    "nvcc fatal   : Unsupported gpu architecture 'compute_86'\n"
    "make: *** [all] Error 1\n"
)
REFUSED = "nvcc fatal   : Unsupported gpu architecture 'compute_86'"


def test_a_failure_is_told_with_its_facts_and_a_fix(real: Cli) -> None:
    run = real("diagnose", "-", piped=LOG, COLUMNS="100")
    assert (run.code, run.err) == (1, "")
    head, _, _ = run.out.partition("\n\n")
    assert head == (
        "error[TM201]: this toolkit does not know the GPU architecture\n"
        "  --> stdin:2\n"
        f"    | {REFUSED}\n"
        "    |   cuda 11.0.1-11.0.3 does not go with arch compute_86 (only sm_35 ... compute_80) stated\n"
        "    |   [1][2]\n"
        "    = between: cuda 11.0 (stdin:1) and arch compute_86\n"
        "    = expected: cuda 11.1.0-13.5\n"
        "    = facts: cuda-archs-spack/11.0#arch and arch-toolkits/sm_86\n"
        "help: take a toolkit that has it, or leave the arch out; PTX of an older arch runs on newer devices\n"
        "      `toolmatrix resolve cuda --arch compute_86` gives cuda 13.5, arch compute_86, gcc 16, distro\n"
        "      ubuntu26.04, base-image ubuntu:26.04 and driver 580.65.06"
    )
    assert run.out.endswith(
        "read 3 lines: 1 known failure, 1 line only says that something failed\n"
    )


def test_a_line_is_taken_from_the_command_line(real: Cli) -> None:
    piped = real("diagnose", "-", piped=REFUSED + "\n")
    run = real("diagnose", REFUSED)
    assert (run.code, run.out) == (1, piped.out.replace("stdin:1", "log:1"))
    assert real("diagnose", "no.log").code == real("diagnose", "my build.log").code == 2


def test_the_command_of_a_fix_resolves(real: Cli) -> None:
    text = "".join(entry["line"] + "\n" for entry in logs.failures())
    run = real("diagnose", "-", "--json", "--limit", "0", piped=text)
    fixes = {tuple(one["fix"]["request"]) for one in run.json()["findings"] if one["fix"]}
    assert len(fixes) > 15
    for words in sorted(fixes)[::4]:
        assert real("resolve", *words).code == 0, words


def test_nothing_known_is_said_plainly(real: Cli) -> None:
    run = real("diagnose", "-", piped="all is well\nmake: *** [all] Error 1\n")
    assert (run.code, run.err) == (0, "")
    assert run.out == "read 2 lines: no known failure in this log\n"


def test_an_empty_log_has_nothing(real: Cli) -> None:
    assert real("diagnose", "-", piped="").out.startswith("read 0 lines: no known failure")


def test_the_document_keeps_its_schema(real: Cli, here: Path) -> None:
    (here / "build.log").write_text(
        LOG + "ImportError: libcudnn.so.8: cannot open shared object file\n"
    )
    run = real("diagnose", "build.log", "--json")
    assert run.code == 1
    document = run.json()
    jsonschema.validate(document, shipped("findings"))
    first, second = document["findings"]
    assert (first["code"], first["where"]["line"]) == ("TM201", 2)
    assert [side["component"] for side in first["between"]] == ["cuda", "arch"]
    assert first["fix"]["command"] == "toolmatrix resolve cuda --arch compute_86"
    assert second["between"][1]["needed"] == "libcudnn.so.8"
    assert document["consequences"]["count"] == 1
    assert document["summary"]["lines"] == 4
    assert document["components"]["cuda"] == ["11.0"]


def test_sarif_exits_with_0(real: Cli) -> None:
    run = real("diagnose", "-", "--format", "sarif", piped=LOG)
    assert run.code == 0
    (result,) = run.json()["runs"][0]["results"]
    assert result["ruleId"] == "TM201"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_github_shows_one_command_a_failure(real: Cli) -> None:
    run = real("diagnose", "-", "--format", "github", piped=LOG)
    assert run.code == 1
    first, last = run.out.splitlines()
    assert first.startswith("::error file=stdin,line=2,title=TM201::this toolkit does not know")
    assert last.startswith("read 3 lines: 1 known failure")


def test_the_limit_says_what_it_leaves_out(real: Cli) -> None:
    text = "".join(f"{REFUSED.replace('86', arch)}\n" for arch in ("80", "86", "90"))
    run = real("diagnose", "-", "--limit", "1", piped=text)
    assert run.out.count("error[TM201]") == 1
    assert run.out.endswith("read 3 lines: 3 known failures, 2 not shown, `--limit 0` shows all\n")


def test_a_lock_says_what_was_wanted(real: Cli) -> None:
    assert real("lock", "tensorflow==2.6.5", "--target", "x86").code == 0
    for options in ((), ("--lock", "toolmatrix.lock")):
        run = real("diagnose", "-", *options, piped=LOG)
        assert "    = wanted: cuda 11.2" in run.out
    run = real("diagnose", "-", "--lock", "other.lock", piped=LOG)
    assert run.code == 2
    assert "there is no lock" in run.err


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_escapes_of_a_log_reach_no_output(real: Cli, form: str) -> None:
    line = "a\x1b]0;title\x07\x1b[31m\x9b31m\x00.cc:1:1: fatal error: x\x1b[2J/cudnn.h: No such file or directory"
    text = f"{line}\nImportError: lib\u202eevil\x07.so.1: cannot open shared object file\n"
    run = real("diagnose", "-", "--format", form, piped=text)
    assert run.code == (0 if form == "sarif" else 1)
    assert all(letter.isprintable() or letter == "\n" for letter in run.out)


def test_a_log_that_is_not_there_is_refused(real: Cli) -> None:
    run = real("diagnose", "no.log")
    assert run.code == 2
    assert run.err == (
        "error[TM906]: cannot read the log\n"
        "  --> no.log\n"
        "  found: No such file or directory\n"
        "help: `-` reads stdin\n"
    )


MISSING = (
    "Cuda compilation tools, release 12.1, V12.1.66\n"
    "FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: "
    "libcublasLt.so.11: cannot open shared object file: No such file or directory\n"
)


def test_a_library_of_another_major_leads_to_the_wheel_that_fits(real: Cli) -> None:
    run = real("diagnose", "-", piped=MISSING, COLUMNS="100")
    assert run.out.partition("help: ")[2].partition("\n\n")[0] == (
        "take the build of the program for the CUDA that is there, or install the major that the name\n"
        "      asks for beside it (libcublas of the CUDA repository, or nvidia-cublas-cu11 from PyPI)\n"
        "      `toolmatrix resolve onnxruntime --from wheel --with cuda==12.1` gives onnxruntime 1.26.0,\n"
        "      cudnn 9.17.0.29, distro ubuntu22.04, base-image ubuntu:22.04, python 3.11, numpy 2.4.6 and 3\n"
        "      more: `pip install 'onnxruntime-gpu[cuda,cudnn]==1.26.0'`\n"
        "      or `toolmatrix resolve 'cuda==11.*'` gives cuda 11.8.0, gcc 11, distro ubuntu22.04, base-image\n"
        "      nvidia/cuda:11.8.0-devel-ubuntu22.04 and driver 450.80.02"
    )
    (cause,) = real("diagnose", "-", "--json", piped=MISSING).json()["findings"]
    assert cause["fix"]["install"] == ["pip install 'onnxruntime-gpu[cuda,cudnn]==1.26.0'"]
    assert cause["instead"]["request"] == ["cuda==11.*"]
    assert cause["instead"]["install"] == []


def test_a_log_may_be_packed(real: Cli, here: Path) -> None:
    packed = zstandard.ZstdCompressor().compress(LOG.encode())
    gzipped, frames = gzip.compress(LOG.encode()), packed + packed
    for name, data, lines in (("g", gzipped, 3), ("z", packed, 3), ("zz", frames, 6)):
        (here / name).write_bytes(data)
        run = real("diagnose", name, "--json")
        assert (run.code, run.json()["summary"]["lines"]) == (1, lines)


def test_a_packed_log_that_is_cut_off_is_refused(real: Cli, here: Path) -> None:
    (here / "z").write_bytes(zstandard.ZstdCompressor().compress(LOG.encode())[:-3])
    run = real("diagnose", "z")
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        "error[TM906]: cannot read the log\n"
        "  --> z\n"
        "  found: the packed data ends too early\n"
        "help: `-` reads stdin\n"
    )


def test_a_window_beyond_reason_is_refused(real: Cli, here: Path) -> None:
    larger = zstandard.ZstdCompressionParameters(window_log=28)
    packer = zstandard.ZstdCompressor(compression_params=larger).compressobj()
    (here / "z").write_bytes(packer.compress(LOG.encode()) + packer.flush())
    run = real("diagnose", "z")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("error[TM906]: cannot read the log\n")


def test_bytes_of_any_kind_are_read(real: Cli, here: Path) -> None:
    (here / "b.log").write_bytes(b"\xff\xfe\x00\x80" * 1000 + b"\n")
    assert real("diagnose", "b.log").code == 0
    (here / "u.log").write_bytes(("\ufeff" + LOG).encode("utf-16-le"))
    assert real("diagnose", "u.log").code == 1
    (here / "s.log").write_bytes(b"caf\xe9 " + LOG.encode())
    assert real("diagnose", "s.log", "--json").code == 1
