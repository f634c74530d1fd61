"""A long log of nvcc, made up of what nvcc prints for one file after another of a big build."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = "/usr/local/cuda"
_ENV = (
    "_NVVM_BRANCH_=nvvm",
    "_SPACE_= ",
    "_CUDART_=cudart",
    f"_HERE_={_ROOT}/bin",
    f"_THERE_={_ROOT}/bin",
    "_TARGET_SIZE_=",
    "_TARGET_DIR_=",
    "_TARGET_DIR_=targets/x86_64-linux",
    f"TOP={_ROOT}/bin/..",
    f"CICC_PATH={_ROOT}/bin/../nvvm/bin",
    f"PATH={_ROOT}/bin/../nvvm/bin:{_ROOT}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
    f'INCLUDES="-I{_ROOT}/bin/../targets/x86_64-linux/include"  ',
    "CUDAFE_FLAGS=",
    "PTXAS_FLAGS=",
)
_INCLUDES = (
    f'"-I{_ROOT}/bin/../targets/x86_64-linux/include"   '
    f'"-isystem" "{_ROOT}/bin/../targets/x86_64-linux/include/cccl"   '
)
_DEFINES = (
    "-D__CUDACC_VER_MAJOR__=99 -D__CUDACC_VER_MINOR__=1 -D__CUDACC_VER_BUILD__=7 "
    "-D__CUDA_API_VER_MAJOR__=99 -D__CUDA_API_VER_MINOR__=1 -D__NVCC_DIAG_PRAGMA_SUPPORT__=1 "
    "-D__CUDACC_DEVICE_ATOMIC_BUILTINS__=1"
)
_PREPROCESS = (
    f"-D__CUDACC__ -D__NVCC__  {_INCLUDES} "
    '-I"/home/builder/src/project/include" -D "PROJECT_EXPORTS" -D "MSG=\\"hello, world\\"" '
    f'{_DEFINES} -include "cuda_runtime.h" -m64'
)
_FRONT = (
    "--c++17 --static-host-stub --device-hidden-visibility --gnu_version=120200 --display_error_number "
    '--orig_src_file_name "{source}" --orig_src_path_name "/home/builder/src/project/{source}" '
    "--allow_managed "
)
ARCHS = ("80", "90", "100")
"""The archs that every file of the log is compiled for."""


def log(lines: int) -> str:
    """The log of a build that is at least so many lines long."""
    made: list[str] = []
    number = 0
    while len(made) < lines:
        made += one(number)
        number += 1
    return "\n".join(made) + "\n"


def one(number: int) -> Iterator[str]:
    """What nvcc prints for one file; the number makes its process id and its name."""
    yield from (f"#$ {line}" for line in _ENV)
    yield from (f"#$ {line}" for line in _commands(number))


def _commands(number: int) -> Iterator[str]:
    name = f"kernel_{number}"
    source = f"src/{name}.cu"

    def temp(index: int, suffix: str) -> str:
        return f"/tmp/tmpxft_{number + 4096:08x}_00000000-{index}_{name}.{suffix}"  # noqa: S108

    def beside(index: int, suffix: str) -> str:
        return temp(index, suffix).removeprefix("/tmp/")  # noqa: S108

    listed = ",".join(f"{arch}0" for arch in ARCHS)
    front = _FRONT.format(source=source)
    yield (
        f'gcc -D__CUDA_ARCH_LIST__={listed} -E -x c++ {_PREPROCESS} "{source}" -o "{temp(5, "cpp4.ii")}" '
    )
    yield (
        f'cudafe++ {front} --m64 --parse_templates --gen_c_file_name "{temp(6, "cudafe1.cpp")}" '
        f'--stub_file_name "{beside(6, f"compute_{ARCHS[-1]}.cudafe1.stub.c")}" --gen_module_id_file '
        f'--module_id_file_name "{temp(4, "module_id")}" "{temp(5, "cpp4.ii")}" '
    )
    images = []
    for index, arch in enumerate(ARCHS, 7):
        kept = f"compute_{arch}"
        yield (
            f"gcc -D__CUDA_ARCH__={arch}0 -D__CUDA_ARCH_LIST__={listed} -E -x c++  "
            f"-DCUDA_DOUBLE_MATH_FUNCTIONS {_PREPROCESS} "
            f'"{source}" -o "{temp(index + 10, f"{kept}.cpp1.ii")}" '
        )
        yield (
            f'"$CICC_PATH/cicc" {front}  -arch {kept} -m64 --no-version-ident -ftz=0 -prec_div=1 '
            f'-prec_sqrt=1 -fmad=1 --include_file_name "{beside(3, "fatbin.c")}" -tused '
            f'--module_id_file_name "{temp(4, "module_id")}" '
            f'--gen_c_file_name "{temp(6, f"{kept}.cudafe1.c")}" '
            f'--stub_file_name "{temp(6, f"{kept}.cudafe1.stub.c")}" '
            f'--gen_device_file_name "{temp(6, f"{kept}.cudafe1.gpu")}"  '
            f'"{temp(index + 10, f"{kept}.cpp1.ii")}" -o "{temp(6, f"{kept}.ptx")}"'
        )
        yield (
            f'ptxas -arch=sm_{arch} -m64  "{temp(6, f"{kept}.ptx")}"  '
            f'-o "{temp(index + 20, f"{kept}.cubin")}" '
        )
        images.append(f'"--image3=kind=elf,sm={arch},file={temp(index + 20, f"{kept}.cubin")}" ')
    yield (
        f'fatbinary -64 --cicc-cmdline="-ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=1 " {"".join(images)}'
        f'--embedded-fatbin="{temp(3, "fatbin.c")}" '
    )
    yield f"rm {temp(3, 'fatbin')}"
    yield (
        f"gcc -D__CUDA_ARCH__={ARCHS[-1]}0 -D__CUDA_ARCH_LIST__={listed} -c -x c++  "
        f'-DCUDA_DOUBLE_MATH_FUNCTIONS -Wno-psabi {_INCLUDES} -m64 "{temp(6, "cudafe1.cpp")}" '
        f'-o "build/{name}.o" '
    )
