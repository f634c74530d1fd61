"""What is asked for on a distribution: yes where its vendor or an image says so, and never no where nobody speaks."""

from __future__ import annotations

from io import StringIO

import pytest

from tests import matrix
from toolmatrix.cli.main import main
from toolmatrix.factbase import lookups

YES, UNKNOWN = 0, 4
ASKED = {
    # The lists of AMD name RHEL 8 and 9, SLES 15 and Oracle Linux 8; Rocky Linux 9 from 7.0 on, RHEL 10 from 7.0.2 on.
    "rocm==6.2 --distro ubi8": YES,
    "rocm==6.2 --distro ubi9": YES,
    "rocm==6.2 --distro ubi10": UNKNOWN,
    "rocm==7.1 --distro ubi10": YES,
    "rocm==6.2 --distro sles15": YES,
    "rocm==6.2 --distro oraclelinux8": YES,
    "rocm==6.2 --distro rockylinux9": UNKNOWN,
    "rocm==7.1 --distro rockylinux9": YES,
    "rocm==6.1.2 --distro centos7": YES,
    # The newest of a series is asked about, and the list of CentOS 7 was read for 6.1.2.
    "rocm==6.1 --distro centos7": UNKNOWN,
    "rocm==6.2 --distro centos7": UNKNOWN,
    "rocm==6.2 --distro manylinux1": UNKNOWN,
    # NVIDIA has images of these; of SLES and Azure Linux nobody read which compilers they package.
    "cuda==12.4 --distro ubi8": YES,
    "cuda==12.4 --distro ubi9": YES,
    "cuda==13.1.0 --distro ubi10": YES,
    "cuda==13.1.0 --distro amazonlinux2023": YES,
    "cuda==12.8.1 --distro oraclelinux8": YES,
    "cuda==13.1.0 --distro azurelinux3": UNKNOWN,
    "cuda==12.4 --distro sles15": UNKNOWN,
    # Recipes are made for some distributions, and that is no limit of what they build.
    "torch==2.7.1 --target amd --distro ubi9": YES,
    "torch==2.7.1 --distro ubi9": YES,
    "torch==2.7.1 --distro ubi9 --accelerator none": YES,
    "torch==2.7.1 --distro almalinux9": UNKNOWN,
    "tensorflow==2.18.0 --target amd --distro ubi9": YES,
    # manylinux_2_28, and a glibc that nobody read.
    "torch==2.7.1 --from wheel --distro almalinux9": YES,
    "torch==2.7.1 --from wheel --distro sles15": UNKNOWN,
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_a_distribution_is_good_for(cache: str, asked: str) -> None:
    out, err = StringIO(), StringIO()
    line = ["resolve", *asked.split()]
    assert main(line, {"XDG_CACHE_HOME": cache}, StringIO(), out, err) == ASKED[asked], (
        out.getvalue() + err.getvalue()
    )


def test_what_was_let_go_does_not_speak_for_what_was_chosen(cache: str) -> None:
    out = StringIO()
    line = ["resolve", "torch==2.7.1", "--distro", "almalinux9", "--accelerator", "none"]
    assert main(line, {"XDG_CACHE_HOME": cache}, StringIO(), out, StringIO()) == UNKNOWN
    assert "allows distro almalinux9" not in out.getvalue()


def test_every_distribution_has_an_image_that_holds_nothing_else() -> None:
    """Where there is none, every answer that needs an image is a no, for want of its name."""
    index = matrix.index()
    plain = {
        cells["distro"]
        for table in ("plain-images", "manylinux-images")
        for _, cells in lookups.rows(index, table)
    }
    assert plain
    assert {*index.component("distro").versions} - plain == set()


def test_what_a_part_that_is_known_admits_is_tied_to_the_request(cache: str) -> None:
    """The distribution of a build is one that its images are known for: a fact names it."""
    out = StringIO()
    line = ["resolve", "apache-tvm==0.9.0", "--target", "arm", "--accelerator", "cuda"]
    assert main(line, {"XDG_CACHE_HOME": cache}, StringIO(), out, StringIO()) == YES
    assert "weakest evidence: derived" in out.getvalue()
