"""What is written down of libraries: who needs each, what the loader takes, and why one is not found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.inspection.test_observe import elf, needs, seen

if TYPE_CHECKING:
    import tarfile

    from toolmatrix.inspection.model import Inventory


def sonames(inventory: Inventory) -> list[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    """Name, who needs it, what is found, other numbers of it."""
    return [(one.name, one.needed_by, one.found, one.others) for one in inventory.sonames]


def skipped(inventory: Inventory) -> dict[str, str]:
    """The reasons of what is about libraries."""
    return {
        one.what: one.reason
        for one in inventory.skipped
        if one.what.startswith(("soname", "sonames"))
    }


def features(inventory: Inventory, start: str) -> list[tuple[str, str, str, str]]:
    """Name, value, witness and place of the features that begin so."""
    return [
        (name, one.version, one.seen_by, one.where)
        for name, several in sorted(inventory.features.items())
        if name.startswith(start)
        for one in several
    ]


def test_an_image_without_elf_files_has_no_libraries_to_look_for() -> None:
    inventory = seen({"etc/motd": b"hello"})
    assert sonames(inventory) == []
    assert skipped(inventory) == {"sonames": "it has no ELF file"}


def test_each_library_names_the_first_eight_that_need_it() -> None:
    files = {f"bin/app{place}": needs("libx.so.1") for place in range(9)}
    users = tuple(f"bin/app{place}" for place in range(8))
    assert sonames(seen(files)) == [("libx.so.1", users, "", ())]


def test_what_the_kernel_brings_is_not_looked_for() -> None:
    inventory = seen({"app": needs("linux-vdso.so.1", "linux-gate.so.1", "liblinux-vdso.so.1")})
    assert sonames(inventory) == [("liblinux-vdso.so.1", ("app",), "", ())]


def test_what_lies_out_of_reach_is_a_skip_and_the_next_is_still_looked_for() -> None:
    files = {
        "bin/app": needs("liba.so.1", "libz.so.1"),
        "opt/far/liba-real.so": elf(soname="liba.so.1"),
    }
    inventory = seen(files)
    assert sonames(inventory) == [("libz.so.1", ("bin/app",), "", ())]
    assert skipped(inventory) == {
        "soname:liba.so.1": "/opt/far/liba-real.so is not on the search path of /bin/app:"
        " the process has to load it first"
    }


def test_the_first_file_of_a_name_is_the_one_that_lies_out_of_reach() -> None:
    files = {
        "bin/app": needs("liba.so.1"),
        "opt/one/liba.so.1": elf(),
        "opt/two/liba.so.1": elf(soname="liba.so.1"),
    }
    assert skipped(seen(files))["soname:liba.so.1"].startswith("/opt/one/liba.so.1 is not on")


def test_other_numbers_are_those_of_the_same_library() -> None:
    files = {
        "bin/app": needs("libx.so.1.so.1", "plugin"),
        "opt/a": elf(soname="libx.so.3"),
        "opt/b": elf(soname="libx.so.2"),
        "opt/c": elf(soname="libxy.so.2"),
        "opt/d": elf(soname="libx.so"),
    }
    assert sonames(seen(files)) == [
        ("libx.so.1.so.1", ("bin/app",), "", ("libx.so.2", "libx.so.3")),
        ("plugin", ("bin/app",), "", ()),
    ]


def test_a_library_that_is_found_or_mounted_from_the_host_has_no_other_numbers() -> None:
    files = {
        "bin/app": needs("libx.so.1", "libcuda.so.1"),
        "usr/lib/libx.so.1": elf(soname="libx.so.1"),
        "usr/lib/libx.so.2": elf(soname="libx.so.2"),
        "opt/a": elf(soname="libcuda.so.2"),
    }
    assert sonames(seen(files)) == [
        ("libcuda.so.1", ("bin/app",), "", ()),
        ("libx.so.1", ("bin/app",), "usr/lib/libx.so.1", ()),
    ]


def test_stubs_do_not_count_as_lying_anywhere() -> None:
    files = {"app": needs("libx.so.1"), "opt/stubs/libx.so.1": elf(soname="libx.so.1")}
    inventory = seen(files)
    assert sonames(inventory) == [("libx.so.1", ("app",), "", ())]
    assert skipped(inventory) == {}


def test_what_the_variable_alone_leads_to_is_a_feature() -> None:
    files: dict[str, bytes | tarfile.TarInfo] = {
        "bin/app": needs("liba.so.1", "libb.so.1", "libc.so.1"),
        "bin/own": needs("liba.so.1", runpath=["/opt"]),
        "opt/liba.so.1": elf(),
        "usr/lib/libb.so.1": elf(),
    }
    by_variable = "by-variable:LD_LIBRARY_PATH"
    inventory = seen(files, Env=["LD_LIBRARY_PATH=/opt"])
    assert features(inventory, "by-variable") == [
        (by_variable, "liba.so.1", "loader", "opt/liba.so.1")
    ]
    assert features(seen(files), "by-variable") == []
    del files["bin/app"]
    assert features(seen(files, Env=["LD_LIBRARY_PATH=/opt"]), "by-variable") == []


def test_what_is_preloaded_may_be_found_by_the_variable_alone() -> None:
    files = {"bin/app": needs("libp.so"), "opt/libp.so": elf(), "usr/lib/libq.so": elf()}
    settings = ["LD_PRELOAD=libp.so libq.so libgone.so", "LD_LIBRARY_PATH=/opt"]
    inventory = seen(files, Env=settings)
    assert features(inventory, "by-variable") == [
        ("by-variable:LD_LIBRARY_PATH", "libp.so", "loader", "opt/libp.so")
    ]
    assert sonames(inventory) == [
        ("libgone.so", ("Env LD_PRELOAD",), "", ()),
        ("libp.so", ("Env LD_PRELOAD", "bin/app"), "opt/libp.so", ()),
        ("libq.so", ("Env LD_PRELOAD",), "usr/lib/libq.so", ()),
    ]


def test_libraries_that_any_program_finds_are_features() -> None:
    files = {
        "usr/lib/libx.so.1": elf(),
        "usr/lib/readme.so.txt": b"text",
        "usr/lib/tool": elf(),
        "opt/libx.so.2": elf(),
        "opt/var/liby.so.1": elf(),
    }
    inventory = seen(files, Env=["LD_LIBRARY_PATH=/opt/var"])
    assert features(inventory, "soname:") == [
        ("soname:libx.so.1", "usr/lib/libx.so.1", "soname", "usr/lib/libx.so.1"),
        ("soname:liby.so.1", "opt/var/liby.so.1", "soname", "opt/var/liby.so.1"),
    ]


def test_preloaded_libraries_are_known_by_the_name_they_were_given_and_by_their_soname() -> None:
    files = {
        "opt/a/libp.so": elf(soname="libx.so.1"),
        "opt/b/libq.so": elf(soname="liby.so.1"),
        "app": needs("libp.so", "libx.so.1", "libq.so", "liby.so.1"),
    }
    inventory = seen(files, Env=["LD_PRELOAD=/opt/a/libp.so:/opt/b/libq.so"])
    assert sonames(inventory) == [
        ("/opt/a/libp.so", ("Env LD_PRELOAD",), "opt/a/libp.so", ()),
        ("/opt/b/libq.so", ("Env LD_PRELOAD",), "opt/b/libq.so", ()),
        ("libp.so", ("app",), "opt/a/libp.so", ()),
        ("libq.so", ("app",), "opt/b/libq.so", ()),
        ("libx.so.1", ("app",), "opt/a/libp.so", ()),
        ("liby.so.1", ("app",), "opt/b/libq.so", ()),
    ]


def test_on_musl_a_library_of_libc_is_the_loader() -> None:
    files = {
        "bin/app": needs("libpthread.so.0", "libx.so.1", rpath=["/opt/own"]),
        "lib/ld-musl-x86_64.so.1": elf(),
        "opt/own/libx.so.1": elf(),
        "usr/lib/libpthread.so.0": elf(),
    }
    assert sonames(seen(files)) == [
        ("libpthread.so.0", ("bin/app",), "lib/ld-musl-x86_64.so.1", ()),
        ("libx.so.1", ("bin/app",), "opt/own/libx.so.1", ()),
    ]


def test_on_musl_without_its_loader_a_library_of_libc_is_not_found() -> None:
    files = {
        "bin/app": needs("libm.so.6", rpath=["/opt"]),
        "etc/ld-musl-x86_64.path": b"/usr/lib\n",
    }
    assert sonames(seen(files)) == [("libm.so.6", ("bin/app",), "", ())]


def test_a_file_for_another_processor_is_not_taken() -> None:
    files = {
        "bin/app": needs("libx.so.1"),
        "bin/other": elf(),
        "lib/libx.so.1": elf("arm64", needed=["libgone.so"]),
        "usr/lib/libx.so.1": elf(),
    }
    assert sonames(seen(files)) == [("libx.so.1", ("bin/app",), "usr/lib/libx.so.1", ())]


def test_a_file_with_runpath_has_no_rpath() -> None:
    app = needs("libx.so.1", rpath=["/opt/a"], runpath=["/opt/b"])
    assert sonames(seen({"bin/app": app, "opt/b/libx.so.1": elf(), "opt/a/libx.so.1": elf()})) == [
        ("libx.so.1", ("bin/app",), "opt/b/libx.so.1", ())
    ]
    assert seen({"bin/app": app, "opt/a/libx.so.1": elf()}).sonames == ()
