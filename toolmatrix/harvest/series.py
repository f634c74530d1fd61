"""The series of releases: two numbers, or one for GCC and Clang since their early years."""

from __future__ import annotations

# GCC since its fifth, Clang since its fourth.
SINGLE = {"gcc": 5, "clang": 4}


def series(component: str, major: int, minor: int) -> str:
    """The series of a release, as in the matrix."""
    single = SINGLE.get(component)
    return str(major) if single is not None and major >= single else f"{major}.{minor}"


def counted(compiler: str, oldest: int, newest: int) -> list[tuple[int, int]]:
    """The series of a compiler from one major version to another, as two numbers each, the oldest first."""
    single = SINGLE[compiler]
    return [
        *((major, minor) for major in range(oldest, single) for minor in range(10)),
        *((major, 0) for major in range(single, newest + 1)),
    ]
