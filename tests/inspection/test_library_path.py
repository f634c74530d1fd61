"""The directories in which a loader looks: which, in which order, and what stands for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.images import images
from tests.inspection.test_observe import TestLook, cache, elf
from toolmatrix.errors import SubjectError
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.loader import LibraryPath, library_path
from toolmatrix.inspection.record import View

if TYPE_CHECKING:
    import tarfile
    from typing import Any


def path(files: dict[str, bytes | tarfile.TarInfo], **config: Any) -> LibraryPath:
    """The directories of an image of these files."""
    look = TestLook(Budget("image.tar"))
    saved = images.saved(images.image({"bin/app": elf(), **files}, **config))
    return library_path(View(*images.from_archive(saved, look=look)))


def test_without_multiarch_the_libraries_of_64_bits_come_first() -> None:
    made = path({})
    assert (made.lib, made.system) == ("lib64", ("lib64", "usr/lib64", "lib", "usr/lib"))
    assert (made.machine, made.variable, made.cache, made.is_musl) == ("amd64", (), {}, False)


@pytest.mark.parametrize("folder", ["lib", "usr/lib"])
def test_with_multiarch_the_directory_of_the_architecture_comes_first(folder: str) -> None:
    made = path({f"{folder}/x86_64-linux-gnu/liba.so": elf()})
    lib = "lib/x86_64-linux-gnu"
    assert (made.lib, made.system) == (lib, (lib, f"usr/{lib}", "lib", "usr/lib"))
    assert path({f"{folder}/aarch64-linux-gnu/liba.so": elf()}).lib == "lib64"


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({}, ()),
        ({"Env": ["LD_LIBRARY_PATH="]}, ()),
        ({"Env": ["LD_LIBRARY_PATH=/a:/b;$ORIGIN/c"]}, ("/a", "/b", "$ORIGIN/c")),
        ({"Env": ["LD_LIBRARY_PATH=/a:"]}, ("/a", "/")),
        ({"Env": ["LD_LIBRARY_PATH=x:"], "WorkingDir": "/w"}, ("/w/x", "/w/")),
    ],
)
def test_elements_of_the_variable_are_taken_from_where_the_program_starts(
    config: dict[str, Any], found: tuple[str, ...]
) -> None:
    assert path({}, **config).variable == found


def test_the_cache_lists_files_by_their_names() -> None:
    paths = ("/a/libx.so.1", "/b/liby.so.2", "/c/libx.so.1")
    listed = {"libx.so.1": ["a/libx.so.1", "c/libx.so.1"], "liby.so.2": ["b/liby.so.2"]}
    data = cache(*paths)
    # Older glibc puts a table of another form before it, and counts from behind that.
    for spelling in (data, b"ld.so-1.7.0\0" + bytes(20) + data):
        assert path({"etc/ld.so.cache": spelling}).cache == listed
    for damaged in (b"", data[:40], data[1:], b"/a\n", data[:20] + b"\xff" * 4 + data[24:48]):
        assert path({"etc/ld.so.cache": damaged}).cache == {}


def test_the_configuration_is_for_ldconfig_alone() -> None:
    files: dict[str, bytes | tarfile.TarInfo] = {"etc/ld.so.conf": b"/a\n", "a/libx.so.1": elf()}
    assert path(files).cache == {}


def test_directories_relative_to_a_program_are_none_of_all_programs() -> None:
    made = path(
        {"etc/ld.so.cache": cache("/conf/libx.so")},
        Env=["LD_LIBRARY_PATH=/a/../b:$ORIGIN/c:${LIB}/d:/$LIB"],
    )
    assert made.folders == ("b", "lib64", "conf", "lib64", "usr/lib64", "lib", "usr/lib")


def test_words_of_the_loader_stand_for_the_file_the_machine_and_its_directory() -> None:
    made = path({})
    folders = ("$ORIGIN/../x", "${ORIGIN}", "/$LIB/${PLATFORM}", "relative", "/$OTHER")
    assert made.expanded(folders, "opt/bin/app") == ["opt/x", "opt/bin", "lib64/x86_64", "$OTHER"]


@pytest.mark.parametrize(
    ("files", "system"),
    [
        ({"lib/ld-musl-x86_64.so.1": elf()}, ("lib", "usr/local/lib", "usr/lib")),
        ({"etc/ld-musl-x86_64.path": b"/a:/b/\n\n /c \n"}, ("a", "b", "c")),
        ({"etc/ld-musl-x86_64.path": b"\n"}, ("lib", "usr/local/lib", "usr/lib")),
    ],
)
def test_musl_searches_what_its_own_file_lists(
    files: dict[str, bytes | tarfile.TarInfo], system: tuple[str, ...]
) -> None:
    listed = {"etc/ld.so.cache": cache("/conf/libx.so")}
    made = path({**listed, **files}, Env=["LD_LIBRARY_PATH=/v"])
    assert (made.system, made.cache, made.is_musl) == (system, {}, True)
    assert made.folders == ("v", *system)


def test_too_many_directories_are_refused_with_how_many_there_may_be() -> None:
    paths = [f"/{number}/libx.so" for number in range(1001)]
    assert len(path({"etc/ld.so.cache": cache(*paths[:1000])}).cache["libx.so"]) == 1000
    with pytest.raises(SubjectError) as caught:
        path({"etc/ld.so.cache": cache(*paths)})
    error = caught.value
    assert (error.what, error.expected, error.found) == (
        "the loader has too many search paths",
        "at most 1000 directories in ld.so.cache",
        "more than that",
    )
