"""What the options of the programs that nvcc calls do with the files they name: tables, from what nvcc prints."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What an option's value is. `-` is neither a file nor of interest.
WRITE, ARCH, SKIP = "write", "arch", "-"
STUB, INCLUDE, FRONT, MODULE, IMAGE = "stub", "include", "front", "module", "image"
DEFINE = "define"

_CICC = {
    "-o": WRITE,
    "-olto": WRITE,
    "--gen_c_file_name": WRITE,
    "--gen_device_file_name": WRITE,
    "--tile_bc_file_name": WRITE,
    "--stub_file_name": STUB,
    "--include_file_name": INCLUDE,
    "--include_alt_file_name": INCLUDE,
    "--module_id_file_name": MODULE,
    "--nv_arch": ARCH,
    "-arch": ARCH,
    "-arch=": ARCH,
    "--orig_src_file_name": SKIP,
    "--orig_src_path_name": SKIP,
    "--compiler_bindir": SKIP,
    "--sdk_dir": SKIP,
    "-nvvmir-library": SKIP,
    "--diag_suppress": SKIP,
    "-maxreg": SKIP,
    "-split-compile": SKIP,
}
OPTIONS: dict[str, Mapping[str, str]] = {
    "cicc": _CICC,
    "cudafe": _CICC,
    # It only names the stub that its output includes; who compiles for the device writes it.
    "cudafe++": _CICC | {"--gen_c_file_name": FRONT, "--stub_file_name": INCLUDE},
    "filehash": {"-s": SKIP},
    "ptxas": {
        "-o": WRITE,
        "--output-file": WRITE,
        "--output-file=": WRITE,
        "-arch": ARCH,
        "-arch=": ARCH,
        "--gpu-name": ARCH,
        "--gpu-name=": ARCH,
    },
    "fatbinary": {
        "--create": WRITE,
        "--create=": WRITE,
        "-create=": WRITE,
        "--embedded-fatbin": WRITE,
        "--embedded-fatbin=": WRITE,
        "-embedded-fatbin=": WRITE,
        "--key": SKIP,
        "--ident": SKIP,
        "--cmdline": SKIP,
        "--cicc-cmdline": SKIP,
    }
    | {
        f"{dashes}image{number}{end}": IMAGE
        for dashes in ("-", "--")
        for number in ("", "2", "3")
        for end in ("", "=")
    },
    "nvlink": {
        "-o": WRITE,
        "--output-file": WRITE,
        "--output-file=": WRITE,
        "--register-link-binaries": WRITE,
        "--register-link-binaries=": WRITE,
        "-arch": ARCH,
        "-arch=": ARCH,
        "--arch": ARCH,
        "--arch=": ARCH,
        "--host-ccbin": SKIP,
        "-L": SKIP,
        "-l": SKIP,
        "-nvvmpath": SKIP,
        "-nvvmpath=": SKIP,
    },
    "nvprune": {"-o": WRITE, "-gencode": SKIP, "--generate-code": SKIP, "-arch": SKIP},
}
OPTIONS["tileiras"] = OPTIONS["ptxas"]
KINDS = {
    "cicc": "cicc",
    "cudafe": "cudafe",
    "cudafe++": "cudafe",
    "filehash": "hash",
    "ptxas": "ptxas",
    "tileiras": "tileiras",
    "fatbinary": "fatbinary",
    "nvlink": "nvlink",
    "nvprune": "other",
}
CC, AR = "cc", "ar"
"""Under these names any host compiler and any archiver is known."""
HOST_OPTIONS = {
    "-o": WRITE,
    "-MF": WRITE,
    "-D": DEFINE,
    "-U": SKIP,
    "-I": SKIP,
    "-L": SKIP,
    "-l": SKIP,
    "-x": SKIP,
    "-include": SKIP,
    "-imacros": SKIP,
    "-FI": SKIP,
    "-isystem": SKIP,
    "-iquote": SKIP,
    "-idirafter": SKIP,
    "-isysroot": SKIP,
    "--sysroot": SKIP,
    "-B": SKIP,
    "-MT": SKIP,
    "-MQ": SKIP,
    "-T": SKIP,
    "-u": SKIP,
    "-z": SKIP,
    "-arch": SKIP,
    "-target": SKIP,
    "-framework": SKIP,
    "-rpath": SKIP,
    "-Xlinker": SKIP,
    "-Xassembler": SKIP,
    "-Xpreprocessor": SKIP,
    "-Xclang": SKIP,
    "--param": SKIP,
}
# Words that say nothing of files and are followed by none; those that are met are remembered, tool by tool.
FLAGS = frozenset(
    {
        "--gen_module_id_file",
        "-64",
        "-O0",
        "-cuda",
        "-dlto",
        "-fast-math",
        "-g",
        "-generate-line-info",
        "-link",
        "-lto",
        "-m32",
        "-m64",
        "-report-arch",
        "-show-src",
        "-tused",
        "-v",
        "-w",
        "--allow-no-device-code",
        "--allow_managed",
        "--c",
        "--c++11",
        "--c++14",
        "--c++17",
        "--c++20",
        "--c++23",
        "--clang",
        "--compile-only",
        "--concat",
        "--cuda",
        "--debug_mode",
        "--device-c",
        "--device-hidden-visibility",
        "--display_error_number",
        "--dont-merge-basicblocks",
        "--emit-optix-ir",
        "--enable-tile",
        "--gen_div_approx_ftz",
        "--generate-line-info",
        "--m32",
        "--m64",
        "--no-version-ident",
        "--no_remove_unneeded_entities",
        "--parse_templates",
        "--promote_warnings",
        "--relaxed_constexpr",
        "--return-at-end",
        "--shared",
        "--simt-only",
        "--static-host-stub",
        "--tile-only",
        "--unsigned_chars",
        "--warning-as-error",
    }
)
