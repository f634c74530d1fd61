"""Requirements of METADATA as selectors, held against packaging's own reading of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from toolmatrix.factbase.versions import Scale, sort
from toolmatrix.harvest import project
from toolmatrix.harvest.project import Metadata, Wheel

if TYPE_CHECKING:
    from collections.abc import Sequence

WHEEL = Wheel(
    name="app-1.0-py3-none-any.whl", package="app", url="", sha256="", requires_python="", serves=()
)


def required(
    *lines: str, machine: str = "x86_64", python: str = "3.11", extras: Sequence[str] = ()
) -> dict[str, str]:
    """What lines of Requires-Dist require, each of the component that it names."""
    named = [(line.split()[0].split("[")[0].strip("<>=!~"), line) for line in lines]
    told = Metadata(
        wheel=WHEEL,
        requires=tuple((name if name != "app" else "", line) for name, line in named),
    )
    return project.required(told, machine, python, extras)


@pytest.mark.parametrize(
    ("line", "selector"),
    [
        ("numpy", "*"),
        ("numpy <2,>=1.21", ">=1.21,<2"),
        ("numpy (>=1.7)", ">=1.7"),
        ("numpy ==1.2", "==1.2.0"),
        ("numpy ==1.*", "==1.*"),
        ("numpy !=1.2,~=1.1", "~=1.1,!=1.2.0"),
        ("numpy ==2.1.0+cu121", "==2.1.0"),
        ("numpy >=1.0,>=2.0,>1.5", ">=2.0,>1.5"),
    ],
)
def test_a_requirement_is_a_selector_with_lower_bounds_first(line: str, selector: str) -> None:
    assert required(line) == {"numpy": selector}


def test_lines_about_one_package_hold_together() -> None:
    lines = ('numpy >=1.21 ; python_version >= "3.9"', 'numpy >=1.26 ; python_version >= "3.12"')
    assert required(*lines, python="3.8") == {}
    assert required(*lines, python="3.10") == {"numpy": ">=1.21"}
    assert required(*lines, python="3.12") == {"numpy": ">=1.26"}


def test_markers_are_those_of_linux_and_the_machine() -> None:
    assert required('numpy ; sys_platform == "win32"') == {}
    arm = 'numpy >=2 ; platform_machine == "aarch64"'
    assert required(arm) == {}
    assert required(arm, machine="aarch64") == {"numpy": ">=2"}


def test_extras_are_left_out_but_for_those_named() -> None:
    lines = ('numpy >=2 ; extra == "all"', 'scipy ; extra == "more"', 'app[more] ; extra == "all"')
    assert required(*lines) == {}
    assert required(*lines, extras=["more"]) == {"scipy": "*"}
    assert required(*lines, extras=["all"]) == {"numpy": ">=2", "scipy": "*"}


RELEASES = ["1.0.0", "1.2.0", "1.2.1", "1.3.0", "1.10.0", "2.0.0", "2.0.1", "2.4.0"]
SCALE = Scale("pep440", sort("pep440", dict.fromkeys(RELEASES, 0)))
CLAUSES = st.builds(
    "{}{}".format,
    st.sampled_from([">=", ">", "<=", "<", "==", "!="]),
    st.sampled_from(["1", "1.2", "1.2.0", "1.3", "2", "2.0", "2.0.1", "2.4"]),
)


@given(st.lists(CLAUSES, min_size=1, max_size=4))
def test_a_selector_admits_what_the_requirement_does(clauses: list[str]) -> None:
    written = ",".join(clauses)
    selector = required(f"numpy {written}")["numpy"]
    admitted = SCALE.named(SCALE.mask(SCALE.parse(selector)))
    wanted = SpecifierSet(written)
    assert admitted == [release for release in RELEASES if release in wanted]
