"""How frameworks come where a request does not say it, and what is known of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("line", "code", "first"),
    [
        # The last wheels for these Pythons on the index; no source says what builds for them take.
        ("torch --with python==3.6", 0, "torch 1.10.2+cu102"),
        ("torch --with python==2.7", 0, "torch 1.4.0+cu101"),
        ("onnxruntime --with python==3.8", 0, "onnxruntime 1.19.2+cu12"),
        # A compiler, a codegen arch and an option are for building.
        ("torch gcc==8 --with python==3.6", 4, "torch 1.10.2 "),
        ("torch --arch sm_70 --with python==3.6", 4, "torch 1.10.2 "),
        ("torch --with python==3.6 --from source", 4, "torch 1.10.2 "),
        # The index has a source archive alone.
        ("gptqmodel --with torch==2.4.0", 4, "gptqmodel "),
    ],
)
def test_a_wheel_that_is_known_comes_before_a_build_that_is_not(
    real: Cli, line: str, code: int, first: str
) -> None:
    run = real("resolve", *line.split())
    assert (run.code, run.out.startswith(first)) == (code, True), run.out
    assert real("why-not", *line.split()).code == code
    # No wheel is offered that does not go with the request.
    assert code == 0 or "as a wheel" not in run.out


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        # No file of this release that was read names a Bazel.
        ("jax==0.12.0.1", ("bazel", "jax", "untied")),
        # The tested build configurations name Clang 16, which no distribution packages beside Python 3.8.
        ("tensorflow==2.13.1 --target arm --with python==3.8", ("gcc", "tensorflow", "untied")),
        # The newest ROCm of RELEASE.md is that of 2.14.
        ("torch==2.15.0 --target amd", ("torch", "rocm", "unjoined")),
        # cuDNN 8 is in the row of CUDA 11.8, and cuDNN 9 in that of CUDA 12.
        (
            "onnxruntime==1.19.0 cuda==12.4 cudnn==8.9 --accelerator cuda",
            ("onnxruntime", "cudnn", "bound"),
        ),
    ],
)
def test_a_build_is_known_as_well_as_what_it_is_made_with(
    real: Cli, line: str, pair: tuple[str, str, str]
) -> None:
    run = real("resolve", *line.split(), "--from", "source", "--json")
    assert run.code == 4, run.out
    pairs = [part["pair"] for part in run.json()["unread"] if "pair" in part]
    assert [(one["one"], one["other"], one["reason"]) for one in pairs[:1]] == [pair]


@pytest.mark.parametrize("name", ["rhel8", "RHEL 8.10", "Red Hat Enterprise Linux 8.10 (Ootpa)"])
def test_rhel_is_what_images_of_ubi_are_of(real: Cli, name: str) -> None:
    assert "distro ubi8 " in real("resolve", "numpy", "--distro", name).out


def test_a_post_release_is_the_nearest(real: Cli) -> None:
    assert "the nearest: 2.7.3 and 2.7.4.post1" in real("resolve", "flash-attn==2.7.4").err
