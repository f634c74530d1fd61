"""Images of which a program gets something else than records say, and images that only look so.

Each is a tree with the configuration that makes it wrong. `numpy` is wanted in the version WANTED.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tests.images.images import link
from tests.inspection.test_observe import cache, elf
from toolmatrix.value import Value

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Mapping

    Files = dict[str, bytes | tarfile.TarInfo]

WANTED, OTHER = "2.1.3", "1.26.4"
SITE = "usr/local/lib/python3.11/site-packages"
USER = "home/app/.local/lib/python3.11/site-packages"
DEBIAN = "usr/lib/python3/dist-packages"
GNU = "cpython-311-x86_64-linux-gnu"
# What states the version of the package.
INIT = b"from .version import version as __version__\n"
CORE = "numpy/_core/_multiarch_umath"


class Image(Value):
    """A tree with its configuration, what is expected of it, and the codes of what is wrong with it.

    `unknown`: nothing is wrong, and nobody can say that it is right. `modes` are those of files and directories with
    their owners.
    """

    files: Files
    config: Mapping[str, Any] = MappingProxyType({})
    expected: tuple[str, ...] = (f"numpy=={WANTED}",)
    codes: tuple[str, ...] = ()
    unknown: bool = False
    modes: Mapping[str, tuple[int, int]] = MappingProxyType({})


def digest(data: bytes) -> str:
    """A digest as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wheel(
    site: str, name: str, version: str, files: dict[str, bytes], *, record: bool = True
) -> Files:
    """A package as pip installs it."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    listed = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    listed += f"{info}/METADATA,,\n{info}/RECORD,,\n"
    made: Files = {f"{site}/{path}": data for path, data in files.items()}
    made[f"{site}/{info}/METADATA"] = metadata
    if record:
        made[f"{site}/{info}/RECORD"] = listed.encode()
    return made


def parts(version: str, tag: str = GNU, machine: str = "amd64") -> dict[str, bytes]:
    """The files of NumPy that matter, below a site."""
    return {
        "numpy/__init__.py": INIT + b"from ._core import _multiarch_umath\n",
        "numpy/version.py": f'version = "{version}"\n__version__ = version\n'.encode(),
        "numpy/_core/__init__.py": b"",
        f"{CORE}.{tag}.so": elf(machine, needed=["libc.so.6"]),
    }


def numpy(version: str = WANTED, site: str = SITE, tag: str = GNU, machine: str = "amd64") -> Files:
    """NumPy as pip installs it."""
    return wheel(site, "numpy", version, parts(version, tag, machine))


def copied(version: str = OTHER, folder: str = "vendor") -> Files:
    """NumPy without a record, as people copy it."""
    return {f"{folder}/{path}": data for path, data in parts(version).items()}


def python(
    prefix: str = "usr/local", series: str = "3.11", loader: str = "/lib64/ld-linux-x86-64.so.2"
) -> Files:
    """An interpreter with its landmark, and the C library."""
    return {
        f"{prefix}/bin/python3": link(f"python{series}"),
        f"{prefix}/bin/python": link("python3"),
        f"{prefix}/bin/python{series}": elf(
            versions=[f"{series}.2"], needed=["libc.so.6"], interpreter=loader
        ),
        f"{prefix}/lib/python{series}/os.py": b"",
        loader.strip("/"): elf(soname=loader.rpartition("/")[2]),
        "lib64/libc.so.6": elf(soname="libc.so.6", gives=[["GLIBC", "2.36"]]),
        "bin/sh": elf(needed=["libc.so.6"]),
    }


PYTHON = python()
GOOD: Files = {**PYTHON, **numpy()}


def venv(prefix: str, *, system: bool = False, home: str = "/usr/local/bin") -> Files:
    """A virtual environment."""
    shared = "true" if system else "false"
    return {
        f"{prefix}/bin/python3": link(f"{home}/python3.11"),
        f"{prefix}/bin/python": link("python3"),
        f"{prefix}/pyvenv.cfg": (
            f"home = {home}\ninclude-system-site-packages = {shared}\nversion = 3.11.2\n".encode()
        ),
        f"{prefix}/lib/python3.11/site-packages/_virtualenv.pth": b"import _virtualenv",
        f"{prefix}/lib/python3.11/site-packages/distutils-precedence.pth": (
            b"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local';"
            b" enabled and __import__('_distutils_hack').add_shim(); "
        ),
    }


def activate(prefix: str) -> bytes:
    """What a shell runs to use a virtual environment."""
    return f'PATH="/{prefix}/bin:$PATH"\nexport PATH\n'.encode()


def debian() -> Files:
    """The interpreter of Debian with its own NumPy."""
    info = f"{DEBIAN}/numpy-{OTHER}.egg-info"
    return {
        **python("usr"),
        **copied(OTHER, DEBIAN),
        f"{info}/PKG-INFO": f"Name: numpy\nVersion: {OTHER}\n".encode(),
        f"{info}/top_level.txt": b"numpy\n",
        "var/lib/dpkg/status": b"",
        "etc/python3.11/sitecustomize.py": (
            b"# install the apport exception handler if available\ntry:\n    import apport_python_hook\n"
            b"except ImportError:\n    pass\nelse:\n    apport_python_hook.install()\n"
        ),
        "usr/lib/python3.11/sitecustomize.py": link("/etc/python3.11/sitecustomize.py"),
    }


PASSWD = b"root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n"
FIRST = (
    b"import sys; sys.__plen = len(sys.path)\n./numpy-1.26.4-py3.11.egg\n"
    b"import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:];"
    b" p=getattr(sys,'__egginsert',0); sys.path[p:p]=new; sys.__egginsert = p+len(new)\n"
)


def egg(folder: str, version: str = OTHER) -> Files:
    """An egg as a directory."""
    info = f"{folder}/EGG-INFO"
    return {
        **copied(version, folder),
        f"{info}/PKG-INFO": f"Name: numpy\nVersion: {version}\n".encode(),
        f"{info}/top_level.txt": b"numpy\n",
    }


def editable(source: str, name: str = "numpy") -> Files:
    """An editable install by a path."""
    files = {f"__editable__.{name}-{WANTED}.pth": f"/{source}\n".encode()}
    return wheel(SITE, name, WANTED, files)


# What finders of editable installs do: one at the end of the list maps names of modules to places.
_FINDER = """
import importlib.util
import sys


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        place = MAPPING.get(name)
        return place and importlib.util.spec_from_file_location(name, f"{place}/__init__.py")


def install():
    sys.meta_path.append(Finder)
"""
_REDIRECTOR = b"""
import importlib.util
import sys


class RedirectingFinder:
    places = {}

    @classmethod
    def install(cls):
        sys.meta_path.append(cls)

    @classmethod
    def map_module(cls, name, place):
        cls.places[name] = place

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        place = cls.places.get(name)
        return place and importlib.util.spec_from_file_location(name, place)
"""


def finder(source: str) -> Files:
    """An editable install by a finder of setuptools."""
    module = "__editable___numpy_2_1_3_finder"
    mapping = f"MAPPING: dict[str, str] = {{'numpy': '/{source}/numpy'}}\n"
    files = {
        f"__editable__.numpy-{WANTED}.pth": f"import {module}; {module}.install()".encode(),
        f"{module}.py": (mapping + _FINDER).encode(),
    }
    return wheel(SITE, "numpy", WANTED, files)


def zipped(files: dict[str, bytes], line: bytes = b"") -> bytes:
    """A zip archive behind a first line."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return line + buffer.getvalue()


def _packed_wheel(name: str, version: str, *files: str) -> bytes:
    info = f"{name}-{version}.dist-info"
    return zipped(
        {
            **dict.fromkeys(files, b""),
            f"{info}/METADATA": f"Name: {name}\nVersion: {version}\n".encode(),
            f"{info}/RECORD": "".join(f"{file},,\n" for file in files).encode(),
        }
    )


def without(files: Files, *names: str) -> Files:
    """Files but for those whose paths end so."""
    return {path: data for path, data in files.items() if not path.endswith(names)}


ENV = "PATH=/usr/local/bin:/usr/bin:/bin"


def _env(*variables: str, **config: Any) -> dict[str, Any]:
    return {"Env": [ENV, *variables], **config}


_APP = {"User": "app"}
_OTHER_SITE = "usr/local/lib/python3.11/dist-packages"
_DEBIAN_PIP = {**debian(), **numpy(WANTED, _OTHER_SITE)}

WRONG: dict[str, Image] = {
    "link of another name to a Python": Image(
        files={**GOOD, **python("opt/other"), "opt/run": link("/opt/other/bin/python3.11")},
        config=_env(Cmd=["/opt/run", "-m", "app"]),
        codes=("TM420",),
    ),
    "archive of pex": Image(
        files={
            **GOOD,
            "usr/local/bin/app.pex": zipped(
                {
                    "__main__.py": b"import sys\nsys.path[:0] = sorted(sys.path)\n",
                    "PEX-INFO": b"{}",
                },
                b"#!/usr/local/bin/python3\n",
            ),
        },
        config=_env(Cmd=["app.pex"]),
        unknown=True,
    ),
    "no archive, and nothing else": Image(
        files={**PYTHON, "usr/local/bin/app.pyz": b"PK\x03\x04" + b"x" * 99},
        config=_env(Cmd=["python3", "/usr/local/bin/app.pyz"]),
        codes=("TM402",),
    ),
    "copy in an archive that starts": Image(
        files={
            **GOOD,
            "usr/local/bin/app.pyz": zipped(
                {
                    "__main__.py": b"",
                    "numpy/__init__.py": INIT,
                    "numpy/version.py": b'version = "1.26.4"\n',
                },
                b"#!/usr/local/bin/python3\n",
            ),
        },
        config=_env(Cmd=["app.pyz"]),
        codes=("TM401",),
    ),
    "user site beside a virtual environment that starts": Image(
        files={
            **PYTHON,
            **venv("opt/venv"),
            **numpy(WANTED, "root/.local/lib/python3.11/site-packages"),
        },
        config=_env(Cmd=["/opt/venv/bin/python", "-m", "app"]),
        codes=("TM420",),
    ),
    "system beside a program of a virtual environment": Image(
        files={**GOOD, **venv("opt/venv"), "opt/venv/bin/serve": b"#!/opt/venv/bin/python3\n"},
        config=_env(Cmd=["/opt/venv/bin/serve"]),
        codes=("TM420",),
    ),
    "lib64 of an interpreter that has lib": Image(
        files={**PYTHON, **numpy(WANTED, "usr/local/lib64/python3.11/site-packages")},
        config=_env(),
        codes=("TM420",),
    ),
    "user site of root": Image(
        files={**GOOD, **numpy(OTHER, "root/.local/lib/python3.11/site-packages")},
        config=_env(),
        codes=("TM401",),
    ),
    "user site of USER": Image(
        files={**GOOD, **numpy(OTHER, USER), "etc/passwd": PASSWD},
        config=_env(**_APP),
        codes=("TM401",),
    ),
    "user site by HOME": Image(
        files={**GOOD, **numpy(OTHER, USER)},
        config=_env("HOME=/home/app", User="1000"),
        codes=("TM401",),
    ),
    "user site by PYTHONUSERBASE": Image(
        files={**GOOD, **numpy(OTHER, "opt/user/lib/python3.11/site-packages")},
        config=_env("PYTHONUSERBASE=/opt/user"),
        codes=("TM401",),
    ),
    "copy on PYTHONPATH": Image(
        files={**GOOD, **copied()}, config=_env("PYTHONPATH=/vendor"), codes=("TM401",)
    ),
    "copy that has the wanted version, and a record on the path another": Image(
        files={**PYTHON, **numpy(OTHER), **copied(WANTED)},
        config=_env("PYTHONPATH=/vendor"),
        codes=("TM421",),
    ),
    "record on the path before another package": Image(
        files={**GOOD, **without(numpy(OTHER, "vendor"), ".py", ".so")},
        config=_env("PYTHONPATH=/vendor"),
        codes=("TM421",),
    ),
    "record on PYTHONPATH": Image(
        files={**GOOD, **numpy(OTHER, "vendor")},
        config=_env("PYTHONPATH=/opt:/vendor"),
        codes=("TM401",),
    ),
    "copy in the working directory": Image(
        files={**GOOD, **copied(folder="app")}, config=_env(WorkingDir="/app"), codes=("TM401",)
    ),
    "module in the working directory": Image(
        files={**GOOD, "app/numpy.py": b"array = list\n"},
        config=_env(WorkingDir="/app"),
        codes=("TM421",),
    ),
    "copy beside the script": Image(
        files={**GOOD, **copied(folder="srv"), "srv/app.py": b"import numpy\n"},
        config=_env(Cmd=["python3", "/srv/app.py"], WorkingDir="/"),
        codes=("TM401",),
    ),
    "path file": Image(
        files={**PYTHON, **copied(), f"{SITE}/a.pth": b"/vendor\n"}, config=_env(), codes=("TM401",)
    ),
    "path file that inserts": Image(
        files={
            **GOOD,
            **copied(),
            f"{SITE}/zz.pth": b"import sys; sys.path.insert(0, '/vendor')\n",
        },
        config=_env(),
        codes=("TM401",),
    ),
    "path file with code": Image(
        files={
            **GOOD,
            **copied(),
            f"{SITE}/zz.pth": b"import sys; exec(open('/vendor/x').read())\n",
        },
        config=_env(),
        unknown=True,
    ),
    "sitecustomize that inserts": Image(
        files={
            **GOOD,
            **copied(),
            f"{SITE}/sitecustomize.py": b"import sys\nsys.path.insert(0, '/vendor')\n",
        },
        config=_env(),
        codes=("TM401",),
    ),
    "sitecustomize with code": Image(
        files={
            **GOOD,
            **copied(),
            f"{SITE}/sitecustomize.py": b"import os, sys\nsys.path[:0] = os.listdir('/vendor')\n",
        },
        config=_env(),
        unknown=True,
    ),
    "usercustomize with code": Image(
        files={
            **GOOD,
            "root/.local/lib/python3.11/site-packages/usercustomize.py": b"import evil\n",
        },
        config=_env(),
        unknown=True,
    ),
    "eggs first": Image(
        files={
            **GOOD,
            **egg(f"{SITE}/numpy-1.26.4-py3.11.egg"),
            f"{SITE}/easy-install.pth": FIRST,
        },
        config=_env(),
        codes=("TM401",),
    ),
    "zip archive on PYTHONPATH": Image(
        files={
            **GOOD,
            "vendor.zip": zipped(
                {"numpy/__init__.py": INIT, "numpy/version.py": b"version = '1.26.4'\n"}
            ),
        },
        config=_env("PYTHONPATH=/vendor.zip"),
        codes=("TM401",),
    ),
    "wheel on PYTHONPATH that states no version": Image(
        files={**GOOD, "w/numpy.whl": _packed_wheel("numpy", OTHER, "numpy/__init__.py")},
        config=_env("PYTHONPATH=/w/numpy.whl"),
        codes=("TM401",),
    ),
    "namespace in an archive without its directory": Image(
        files={**GOOD, "w/a.whl": _packed_wheel("a.b", "1.0", "a/b/__init__.py")},
        config=_env("PYTHONPATH=/w/a.whl"),
        expected=("a.b==1.0",),
        codes=("TM420",),
    ),
    "namespace in an archive without its directory, for a newer Python": Image(
        files={
            **python(series="3.14"),
            "w/a.whl": _packed_wheel("a.b", "1.0", "a/b/__init__.py"),
        },
        config=_env("PYTHONPATH=/w/a.whl"),
        expected=("a.b==1.0",),
        unknown=True,
    ),
    "archive that nothing imports from": Image(
        files={**PYTHON, "w/numpy.whl": _packed_wheel("numpy", WANTED, "numpy/__init__.py")},
        config=_env(),
        codes=("TM402",),
    ),
    "files for a Python without its lock": Image(
        files={**PYTHON, **numpy(tag="cpython-311t-x86_64-linux-gnu")},
        config=_env(),
        codes=("TM422",),
    ),
    "editable by code": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "numpy", WANTED),
                {"_numpy_editable.pth": b"import _numpy_loader\n", "_numpy_loader.py": b""},
            ),
            **copied(WANTED, "src"),
        },
        config=_env(),
        unknown=True,
    ),
    "PYTHONHOME": Image(
        files={
            **GOOD,
            **python("opt/python"),
            **numpy(OTHER, "opt/python/lib/python3.11/site-packages"),
        },
        config=_env("PYTHONHOME=/opt/python"),
        codes=("TM401",),
    ),
    "pip --target off the path": Image(
        files={**PYTHON, **numpy(WANTED, "opt/target")}, config=_env(), codes=("TM420",)
    ),
    "venv off the path": Image(
        files={
            **PYTHON,
            **venv("opt/venv"),
            **numpy(WANTED, "opt/venv/lib/python3.11/site-packages"),
        },
        config=_env(),
        codes=("TM420",),
    ),
    "link to the Python of a venv": Image(
        files={
            **python("usr"),
            **venv("opt/venv", home="/usr/bin"),
            **numpy(WANTED, "opt/venv/lib/python3.11/site-packages"),
            "usr/local/bin/python3": link("/opt/venv/bin/python3"),
        },
        config=_env(),
        codes=("TM420",),
    ),
    "site of another Python": Image(
        files={**PYTHON, **numpy(WANTED, "usr/local/lib/python3.10/site-packages")},
        config=_env(),
        codes=("TM420",),
    ),
    "files for Python 3.12": Image(
        files={**PYTHON, **numpy(tag="cpython-312-x86_64-linux-gnu")},
        config=_env(),
        codes=("TM422",),
    ),
    "files for Python 3.8": Image(
        files={**PYTHON, **numpy(tag="cpython-38-x86_64-linux-gnu")},
        config=_env(),
        codes=("TM422",),
    ),
    "files for musl": Image(
        files={**PYTHON, **numpy(tag="cpython-311-x86_64-linux-musl")},
        config=_env(),
        codes=("TM422",),
    ),
    "files for ARM": Image(
        files={**PYTHON, **numpy(tag="cpython-311-aarch64-linux-gnu", machine="arm64")},
        config=_env(),
        codes=("TM422",),
    ),
    "files of a Debian Python": Image(
        files={**PYTHON, **numpy(WANTED, DEBIAN)}, config=_env(), codes=("TM420",)
    ),
    "two records in one directory": Image(
        files={**GOOD, **without(numpy(OTHER), ".py", ".so")}, config=_env(), codes=("TM421",)
    ),
    "two records, the other files": Image(
        files={**GOOD, **numpy(OTHER)}, config=_env(), codes=("TM401",)
    ),
    "newer files than the record": Image(
        files={**GOOD, f"{SITE}/numpy/version.py": b'version = "2.2.0"\n'},
        config=_env(),
        codes=("TM421",),
    ),
    "older files than the record": Image(
        files={**GOOD, **copied(OTHER, SITE)}, config=_env(), codes=("TM421",)
    ),
    "editable source gone": Image(
        files={**PYTHON, **editable("src/numpy")}, config=_env(), codes=("TM420",)
    ),
    "editable source moved on": Image(
        files={**PYTHON, **editable("src/numpy"), **copied(OTHER, "src/numpy")},
        config=_env(),
        codes=("TM421",),
    ),
    "editable finder, source gone": Image(
        files={**PYTHON, **finder("src/numpy")}, config=_env(), codes=("TM420",)
    ),
    "develop, source gone": Image(
        files={
            **PYTHON,
            f"{SITE}/numpy.egg-link": b"/src\n.",
            f"{SITE}/easy-install.pth": b"/src\n",
        },
        config=_env(),
        codes=("TM402",),
    ),
    "__init__ deleted": Image(
        files=without(GOOD, "numpy/__init__.py"), config=_env(), codes=("TM420",)
    ),
    "extension deleted": Image(files=without(GOOD, f"{GNU}.so"), config=_env(), codes=("TM402",)),
    "one extension deleted": Image(
        files={
            **PYTHON,
            **without(
                wheel(
                    *(SITE, "numpy", WANTED),
                    {**parts(WANTED), f"numpy/random/mtrand.{GNU}.so": elf(needed=[])},
                ),
                f"_umath.{GNU}.so",
            ),
        },
        config=_env(),
        codes=("TM422",),
    ),
    "package deleted": Image(
        files={path: data for path, data in GOOD.items() if "/numpy/" not in path},
        config=_env(),
        codes=("TM402",),
    ),
    "torch without the CUDA of its record": Image(
        files={
            **PYTHON,
            **wheel(SITE, "torch", "2.1.0+cu121", {"torch/__init__.py": b""}),
            f"{SITE}/torch/version.py": b"__version__ = '2.1.0'\ncuda: Optional[str] = None\n",
        },
        config=_env(),
        expected=("torch==2.1.0",),
        codes=("TM421",),
    ),
    "torch of another line": Image(
        files={
            **PYTHON,
            **wheel(SITE, "torch", "2.1.0+cu121", {"torch/__init__.py": b""}),
            f"{SITE}/torch/version.py": b"__version__ = '2.1.0+cpu'\n",
        },
        config=_env(),
        expected=("torch==2.1.0",),
        codes=("TM421",),
    ),
    "venv that USER cannot enter": Image(
        files={
            **PYTHON,
            **numpy(OTHER),
            **venv("root/venv"),
            **numpy(WANTED, "root/venv/lib/python3.11/site-packages"),
        },
        config={"Env": ["PATH=/root/venv/bin:/usr/local/bin"], "User": "1000"},
        codes=("TM401",),
        modes={"root": (0o700, 0)},
    ),
    "files that USER cannot read": Image(
        files=GOOD,
        config=_env(User="1000"),
        codes=("TM420",),
        modes={f"{SITE}/numpy": (0o700, 0)},
    ),
    "entry point of another Python": Image(
        files={**GOOD, **venv("opt/venv"), **numpy(OTHER, "opt/venv/lib/python3.11/site-packages")},
        config=_env(Entrypoint=["/opt/venv/bin/python", "-m", "app"]),
        codes=("TM401",),
    ),
    "entry point by a script": Image(
        files={
            **GOOD,
            **venv("opt/venv"),
            **numpy(OTHER, "opt/venv/lib/python3.11/site-packages"),
            "opt/venv/bin/serve": b"#!/opt/venv/bin/python3\nimport app\n",
        },
        config=_env(Cmd=["/opt/venv/bin/serve"]),
        codes=("TM401",),
    ),
    "entry point that activates": Image(
        files={
            **GOOD,
            **venv("opt/venv"),
            **numpy(OTHER, "opt/venv/lib/python3.11/site-packages"),
            "opt/venv/bin/activate": activate("opt/venv"),
        },
        config=_env(Cmd=["/bin/sh", "-c", ". /opt/venv/bin/activate && exec python app.py"]),
        codes=("TM401",),
    ),
    "conda run of another environment": Image(
        files={
            **python("opt/conda"),
            **numpy(WANTED, "opt/conda/lib/python3.11/site-packages"),
            **{k: v for k, v in python("opt/conda/envs/app").items() if k.startswith("opt")},
            **numpy(OTHER, "opt/conda/envs/app/lib/python3.11/site-packages"),
            "opt/conda/bin/conda": b"#!/opt/conda/bin/python\n",
        },
        config={
            "Env": ["PATH=/opt/conda/bin:/usr/bin:/bin"],
            "Entrypoint": [
                "conda",
                "run",
                "--no-capture-output",
                "-n",
                "app",
                "python",
                "-m",
                "app",
            ],
        },
        codes=("TM401",),
    ),
}

_LIB = "usr/lib/x86_64-linux-gnu"
_CUDA = "usr/local/cuda-12.4"


def toolkit(version: str = "12.4.1", folder: str = _CUDA) -> Files:
    """CUDA as NVIDIA installs it, but for the link to it."""
    series = ".".join(version.split(".")[:2])
    library = f"{folder}/lib64/libcudart.so.{series}.99"
    return {
        f"{folder}/version.json": f'{{"cuda": {{"version": "{version}"}}}}'.encode(),
        f"{folder}/bin/nvcc": elf(versions=[f"{series}.99"]),
        f"{folder}/lib64/libcudart.so.12": link(f"/{library}"),
        library: elf(soname="libcudart.so.12"),
    }


_TOOLKIT: Files = {
    **PYTHON,
    **toolkit(),
    "usr/local/cuda": link("cuda-12.4"),
    "etc/ld.so.cache": cache("/usr/local/cuda/lib64/libcudart.so.12"),
    "usr/bin/app": elf(needed=["libcudart.so.12"]),
}
_CUDA_ENV = "PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
_CUDA_WANTED = ("cuda==12.4.*",)
_OTHER_CUDA = toolkit("12.1.1", "usr/local/cuda-12.1")
_OLD_CUDA: Files = {
    "usr/local/cuda-11.8/lib64/libcudart.so.11.0": link("libcudart.so.11.8.89"),
    "usr/local/cuda-11.8/lib64/libcudart.so.11.8.89": elf(soname="libcudart.so.11.0"),
}
_CUDNN_APP: Files = {**PYTHON, "usr/bin/app": elf(needed=["libcudnn.so.8"])}


def _cuda(*variables: str) -> dict[str, Any]:
    return {"Env": [_CUDA_ENV, *variables]}


def gcc(*numbers: str) -> Files:
    """Compilers, of which the first is the default."""
    made: Files = {f"usr/bin/gcc-{number}": elf(versions=[f"{number}.2.0"]) for number in numbers}
    made |= {f"usr/bin/g++-{number}": elf(versions=[f"{number}.2.0"]) for number in numbers}
    return {**PYTHON, **made, "usr/bin/gcc": link(f"gcc-{numbers[0]}")}


WRONG |= {
    "link of another cuDNN": Image(
        files={
            **_CUDNN_APP,
            f"{_LIB}/libcudnn.so.8": link("libcudnn.so.9.1.0"),
            f"{_LIB}/libcudnn.so.9.1.0": elf(soname="libcudnn.so.9"),
        },
        expected=("cudnn==9.1.*",),
        codes=("TM426",),
    ),
    "another cuDNN under this name": Image(
        files={**_CUDNN_APP, f"{_LIB}/libcudnn.so.8": elf(soname="libcudnn.so.9")},
        expected=("cudnn==8.*",),
        codes=("TM401", "TM426"),
    ),
    "nvcc of another toolkit": Image(
        files={**_TOOLKIT, **toolkit("11.8.0", "usr/local/cuda-11.8")},
        config={"Env": ["PATH=/usr/local/cuda-11.8/bin:/usr/local/bin:/usr/bin:/bin"]},
        expected=_CUDA_WANTED,
        codes=("TM421",),
    ),
    "nvcc of conda": Image(
        files={**_TOOLKIT, "opt/conda/bin/nvcc": elf(versions=["11.8.99"])},
        config={"Env": ["PATH=/opt/conda/bin:/usr/local/cuda/bin:/usr/local/bin:/bin"]},
        expected=_CUDA_WANTED,
        codes=("TM421",),
    ),
    "CUDA_HOME elsewhere": Image(
        files={**_TOOLKIT, **_OTHER_CUDA},
        config=_cuda("CUDA_HOME=/usr/local/cuda-12.1"),
        expected=_CUDA_WANTED,
        codes=("TM401",),
    ),
    "LD_PRELOAD of another cudart": Image(
        files={**_TOOLKIT, **_OTHER_CUDA},
        config=_cuda("LD_PRELOAD=/usr/local/cuda-12.1/lib64/libcudart.so.12"),
        expected=_CUDA_WANTED,
        codes=("TM421",),
    ),
    "ld.so.conf with another cudart first": Image(
        files={
            **_TOOLKIT,
            **_OTHER_CUDA,
            "etc/ld.so.cache": cache(
                *(f"/usr/local/{folder}/lib64/libcudart.so.12" for folder in ("cuda-12.1", "cuda"))
            ),
        },
        config=_cuda(),
        expected=_CUDA_WANTED,
        codes=("TM421",),
    ),
    "LD_LIBRARY_PATH with another cudart": Image(
        files={**_TOOLKIT, **_OTHER_CUDA},
        config=_cuda("LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64"),
        expected=_CUDA_WANTED,
        codes=("TM421",),
    ),
    "cudart of the loader asked for by itself": Image(
        files={**_TOOLKIT, **_OTHER_CUDA},
        config=_cuda("LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64"),
        expected=("cudart==12.4.*", "nvcc==12.4.*"),
        codes=("TM401",),
    ),
    "cudart of another major first, and no program needs one": Image(
        files={**without(_TOOLKIT, "usr/bin/app"), **_OLD_CUDA},
        config=_cuda("LD_LIBRARY_PATH=/usr/local/cuda-11.8/lib64"),
        expected=_CUDA_WANTED,
        codes=("TM421",),
    ),
    "stub first": Image(
        files={**_TOOLKIT, f"{_CUDA}/lib64/stubs/libcuda.so": elf(soname="libcuda.so.1")},
        config=_cuda("LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs"),
        expected=_CUDA_WANTED,
        codes=("TM424",),
    ),
    "link to a stub": Image(
        files={
            **_TOOLKIT,
            f"{_CUDA}/lib64/stubs/libcuda.so": elf(soname="libcuda.so.1"),
            "opt/driver/libcuda.so.1": link(f"/{_CUDA}/lib64/stubs/libcuda.so"),
            "etc/ld.so.cache": cache(
                "/usr/local/cuda/lib64/libcudart.so.12", "/opt/driver/libcuda.so.1"
            ),
        },
        config=_cuda(),
        expected=_CUDA_WANTED,
        codes=("TM424",),
    ),
    "driver in the image": Image(
        files={
            **_TOOLKIT,
            f"{_LIB}/libcuda.so.1": link("libcuda.so.535.1"),
            f"{_LIB}/libcuda.so.535.1": elf(soname="libcuda.so.1"),
        },
        config=_cuda(),
        expected=_CUDA_WANTED,
        codes=("TM425",),
    ),
    "CC of another compiler": Image(
        files=gcc("12", "9"), config=_env("CC=gcc-9"), expected=("gcc==12.*",), codes=("TM421",)
    ),
    "NVCC_CCBIN of another compiler": Image(
        files=gcc("12", "9"),
        config=_env("NVCC_CCBIN=/usr/bin/g++-9"),
        expected=("gcc==12.*",),
        codes=("TM421",),
    ),
}

_VENV_SITE = "opt/venv/lib/python3.11/site-packages"
_NIX = "nix/store/aaa-python3-3.11.2-env"
_STORE = "nix/store/bbb-python3.11-numpy/lib/python3.11/site-packages"

RIGHT: dict[str, Image] = {
    "pip": Image(files=GOOD, config=_env()),
    "pip without a record": Image(
        files={**PYTHON, **wheel(SITE, "numpy", WANTED, parts(WANTED), record=False)}, config=_env()
    ),
    "venv": Image(
        files={**PYTHON, **numpy(OTHER), **venv("opt/venv"), **numpy(WANTED, _VENV_SITE)},
        config={"Env": ["PATH=/opt/venv/bin:/usr/local/bin:/bin", "VIRTUAL_ENV=/opt/venv"]},
    ),
    "venv with the packages of the system": Image(
        files={**GOOD, **venv("opt/venv", system=True)},
        config={"Env": ["PATH=/opt/venv/bin:/usr/local/bin:/bin"]},
    ),
    "venv with copies": Image(
        files={
            **PYTHON,
            **venv("opt/venv"),
            "opt/venv/bin/python": elf(versions=["3.11.2"], needed=["libc.so.6"]),
            **numpy(WANTED, _VENV_SITE),
        },
        config=_env(Entrypoint=["/opt/venv/bin/python", "-m", "app"]),
    ),
    "venv with copies, whose library is that of the base": Image(
        files={
            **PYTHON,
            "usr/local/bin/python3.11": elf(needed=["libpython3.11.so.1.0"]),
            "usr/local/lib/libpython3.11.so.1.0": elf(versions=["3.11.2"]),
            **venv("opt/venv"),
            "opt/venv/bin/python": elf(needed=["libpython3.11.so.1.0"]),
            **numpy(WANTED, _VENV_SITE),
        },
        config=_env(Entrypoint=["/opt/venv/bin/python", "-m", "app"]),
    ),
    "record in the archive that starts, another interpreter has another": Image(
        files={
            **PYTHON,
            **numpy(OTHER, "opt/other/lib/python3.11/site-packages"),
            "app.pyz": _packed_wheel("numpy", WANTED, "numpy/__init__.py", "__main__.py"),
        },
        config=_env(Cmd=["python3", "/app.pyz"]),
    ),
    "package of a namespace in the archive that starts": Image(
        files={
            **PYTHON,
            "app.pyz": _packed_wheel("a.b", "1.0", "a/", "a/b/__init__.py", "__main__.py"),
        },
        config=_env(Cmd=["python3", "/app.pyz"]),
        expected=("a.b==1.0",),
    ),
    "egg in an archive": Image(
        files={
            **PYTHON,
            f"{SITE}/numpy-2.1.3-py3.11.egg": zipped(
                {
                    "numpy/__init__.py": b"",
                    "EGG-INFO/PKG-INFO": f"Name: numpy\nVersion: {WANTED}\n".encode(),
                    "EGG-INFO/top_level.txt": b"numpy\n",
                }
            ),
            f"{SITE}/easy-install.pth": b"./numpy-2.1.3-py3.11.egg\n",
        },
        config=_env(),
    ),
    "name with a dot": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "zope.interface", "6.4"),
                {"zope/interface/__init__.py": b"", f"zope/interface/_c.{GNU}.so": elf(needed=[])},
            ),
        },
        config=_env(),
        expected=("zope.interface==6.4",),
    ),
    "venv by its entry point": Image(
        files={**PYTHON, **venv("opt/venv"), **numpy(WANTED, _VENV_SITE)},
        config=_env(Entrypoint=["/opt/venv/bin/python", "-m", "app"]),
    ),
    "venv by a program of it": Image(
        files={
            **PYTHON,
            **venv("opt/venv"),
            **numpy(WANTED, _VENV_SITE),
            "opt/venv/bin/serve": b"#!/opt/venv/bin/python3\nimport app\n",
        },
        config=_env(Entrypoint=["tini", "--", "/opt/venv/bin/serve"]),
    ),
    "venv by its activation": Image(
        files={
            **PYTHON,
            **venv("opt/venv"),
            **numpy(WANTED, _VENV_SITE),
            "opt/venv/bin/activate": activate("opt/venv"),
        },
        config=_env(Cmd=["/bin/sh", "-c", ". /opt/venv/bin/activate && exec python app.py"]),
    ),
    "uv": Image(
        files={
            **PYTHON,
            **venv("app/.venv"),
            **numpy(WANTED, "app/.venv/lib/python3.11/site-packages"),
        },
        config=_env(Cmd=["uv", "run", "python", "main.py"], WorkingDir="/app"),
    ),
    "uv with options": Image(
        files={
            **PYTHON,
            **venv("app/.venv"),
            **numpy(WANTED, "app/.venv/lib/python3.11/site-packages"),
            **copied(folder="srv"),
        },
        config=_env(
            Cmd=["uv", "run", "--directory", "/app", "--extra", "gpu", "python", "-m", "main"],
            WorkingDir="/srv",
        ),
    ),
    "uv with its own Python": Image(
        files={
            **python("root/.local/share/uv/python/cpython-3.11.2-linux-x86_64-gnu"),
            **venv(
                "app/.venv",
                home="/root/.local/share/uv/python/cpython-3.11.2-linux-x86_64-gnu/bin",
            ),
            **numpy(WANTED, "app/.venv/lib/python3.11/site-packages"),
        },
        config={"Env": ["PATH=/app/.venv/bin:/usr/bin:/bin"]},
    ),
    "uv with links to its cache": Image(
        files={
            **PYTHON,
            **venv("app/.venv"),
            **numpy(WANTED, "cache/archive-v0/abc"),
            **{
                f"app/.venv/lib/python3.11/site-packages/{path.removeprefix('cache/archive-v0/abc/')}": link(
                    f"/{path}"
                )
                for path in numpy(WANTED, "cache/archive-v0/abc")
            },
        },
        config={"Env": ["PATH=/app/.venv/bin:/usr/local/bin:/bin"]},
    ),
    "pixi": Image(
        files={
            **python("app/.pixi/envs/default"),
            **numpy(WANTED, "app/.pixi/envs/default/lib/python3.11/site-packages"),
        },
        config={
            "Env": ["PATH=/usr/bin:/bin"],
            "WorkingDir": "/app",
            "Cmd": ["pixi", "run", "python"],
        },
    ),
    "pixi by its hook": Image(
        files={
            **python("app/.pixi/envs/prod"),
            **numpy(WANTED, "app/.pixi/envs/prod/lib/python3.11/site-packages"),
            "app/bin/entrypoint.sh": (
                b'#!/bin/sh\nexport PATH="/app/.pixi/envs/prod/bin:/usr/bin:/bin"\n'
                b'export CONDA_PREFIX="/app/.pixi/envs/prod"\nexec "$@"\n'
            ),
        },
        config={
            "Env": ["PATH=/usr/bin:/bin"],
            "Entrypoint": ["/app/bin/entrypoint.sh"],
            "Cmd": ["python", "-m", "app"],
        },
    ),
    "conda": Image(
        files={**python("opt/conda"), **numpy(WANTED, "opt/conda/lib/python3.11/site-packages")},
        config={"Env": ["PATH=/opt/conda/bin:/usr/bin:/bin"]},
    ),
    "conda run": Image(
        files={
            **python("opt/conda"),
            **{k: v for k, v in python("opt/conda/envs/app").items() if k.startswith("opt")},
            **numpy(WANTED, "opt/conda/envs/app/lib/python3.11/site-packages"),
            "opt/conda/bin/conda": b"#!/opt/conda/bin/python\n",
        },
        config={
            "Env": ["PATH=/opt/conda/bin:/usr/bin:/bin"],
            "Entrypoint": [
                "conda",
                "run",
                "--no-capture-output",
                "-n",
                "app",
                "python",
                "-m",
                "app",
            ],
        },
    ),
    "poetry": Image(
        files={
            **PYTHON,
            **venv("app/.venv"),
            **numpy(WANTED, "app/.venv/lib/python3.11/site-packages"),
        },
        config={"Env": ["PATH=/app/.venv/bin:/usr/local/bin:/bin"], "WorkingDir": "/app"},
    ),
    "user site on purpose": Image(
        files={**PYTHON, **numpy(OTHER), **numpy(WANTED, USER), "etc/passwd": PASSWD},
        config=_env(**_APP),
        modes={"home/app": (0o700, 1000)},
    ),
    "user site that is off": Image(
        files={**GOOD, **numpy(OTHER, "root/.local/lib/python3.11/site-packages")},
        config=_env("PYTHONNOUSERSITE=1"),
    ),
    "user site of somebody else": Image(
        files={**GOOD, **numpy(OTHER, "root/.local/lib/python3.11/site-packages")},
        config=_env(User="1000"),
    ),
    "PYTHONPATH on purpose": Image(
        files={**PYTHON, **numpy(WANTED, "opt/target")}, config=_env("PYTHONPATH=/opt/target")
    ),
    "copy on PYTHONPATH on purpose": Image(
        files={**PYTHON, **copied(WANTED), **numpy(OTHER, "opt/other")},
        config=_env("PYTHONPATH=/vendor"),
    ),
    "no archive on PYTHONPATH": Image(
        files={**GOOD, "vendor.zip": b"PK\3\4" + bytes(80)},
        config=_env("PYTHONPATH=/vendor.zip"),
    ),
    "PYTHONPATH that the entry point ignores": Image(
        files={**GOOD, **copied()},
        config=_env("PYTHONPATH=/vendor", Cmd=["python3", "-I", "-m", "app"]),
    ),
    "directory without a module": Image(
        files={**GOOD, "app/numpy/notes.txt": b"", "app/numpy/data/x.csv": b""},
        config=_env(WorkingDir="/app"),
    ),
    "safe path": Image(
        files={**GOOD, **copied(folder="app")}, config=_env("PYTHONSAFEPATH=1", WorkingDir="/app")
    ),
    "Debian": Image(files=_DEBIAN_PIP, config={"Env": ["PATH=/usr/bin:/bin"]}),
    "Debian's own": Image(
        files=debian(), config={"Env": ["PATH=/usr/bin:/bin"]}, expected=(f"numpy=={OTHER}",)
    ),
    "Fedora": Image(
        files={
            **python("usr"),
            **numpy(WANTED, "usr/local/lib64/python3.11/site-packages"),
            **numpy(OTHER, "usr/lib64/python3.11/site-packages"),
            "var/lib/rpm/empty": b"",
        },
        config={"Env": ["PATH=/usr/bin:/bin"]},
    ),
    "Alpine": Image(
        files={
            **python("usr", loader="/lib/ld-musl-x86_64.so.1"),
            **numpy(
                WANTED, "usr/lib/python3.11/site-packages", tag="cpython-311-x86_64-linux-musl"
            ),
        },
        config={"Env": ["PATH=/usr/bin:/bin"]},
    ),
    "distroless": Image(
        files={
            **without(python("usr"), "bin/sh"),
            **numpy(WANTED, "app/site"),
            "var/lib/dpkg/status.d/base": b"Package: base-files\nVersion: 12.4\n",
        },
        config={
            "Env": ["PATH=/usr/bin", "PYTHONPATH=/app/site"],
            "Entrypoint": ["/usr/bin/python3.11"],
            "Cmd": ["/app/main.py"],
            "User": "65532",
        },
    ),
    "s2i": Image(
        files={
            **python("usr"),
            **venv("opt/app-root", home="/usr/bin"),
            **numpy(WANTED, "opt/app-root/lib/python3.11/site-packages"),
            "opt/app-root/bin/activate": activate("opt/app-root"),
            "usr/libexec/s2i/bin/run": b"#!/bin/bash\nexec python app.py\n",
            "usr/bin/container-entrypoint": b'#!/bin/bash\nexec "$@"\n',
            "bin/bash": elf(needed=["libc.so.6"]),
        },
        config={
            "Env": [
                "PATH=/opt/app-root/src/bin:/opt/app-root/bin:/usr/bin:/bin",
                "BASH_ENV=/opt/app-root/bin/activate",
            ],
            "Entrypoint": ["container-entrypoint"],
            "Cmd": ["/usr/libexec/s2i/bin/run"],
            "User": "1001",
        },
    ),
    "Nix": Image(
        files={
            f"{_NIX}/bin/python3.11": elf(versions=["3.11.2"], needed=[]),
            f"{_NIX}/bin/python3": link("python3.11"),
            f"{_NIX}/lib/python3.11/os.py": link("/nix/store/ccc-python3/lib/python3.11/os.py"),
            "nix/store/ccc-python3/lib/python3.11/os.py": b"",
            f"{_NIX}/lib/python3.11/site-packages/numpy": link(f"/{_STORE}/numpy"),
            f"{_NIX}/lib/python3.11/site-packages/numpy-{WANTED}.dist-info": link(
                f"/{_STORE}/numpy-{WANTED}.dist-info"
            ),
            f"{_NIX}/lib/python3.11/site-packages/sitecustomize.py": (
                b"import functools, os, site, sys\npaths = os.environ.pop('NIX_PYTHONPATH', None)\n"
            ),
            **without(numpy(WANTED, _STORE), "RECORD"),
            f"{_STORE}/{CORE}.{GNU}.so": elf(needed=[]),
        },
        config={"Entrypoint": [f"/{_NIX}/bin/python3"], "Env": []},
    ),
    "editable": Image(
        files={**PYTHON, **editable("src/numpy"), **copied(WANTED, "src/numpy")}, config=_env()
    ),
    "editable by a finder": Image(
        files={**PYTHON, **finder("src"), **copied(WANTED, "src")}, config=_env()
    ),
    "editable by editables": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "numpy", WANTED),
                {
                    "_editable_impl_numpy.pth": b"import _editable_impl_numpy",
                    "_editable_impl_numpy.py": (
                        b"from editables.redirector import RedirectingFinder as F\nF.install()\n"
                        b"F.map_module('numpy', '/src/numpy/__init__.py')\n"
                    ),
                },
            ),
            f"{SITE}/editables/__init__.py": b"",
            f"{SITE}/editables/redirector.py": _REDIRECTOR,
            **copied(WANTED, "src"),
        },
        config=_env(),
    ),
    "develop": Image(
        files={
            **PYTHON,
            f"{SITE}/easy-install.pth": b"/src\n",
            **copied(WANTED, "src"),
            "src/numpy.egg-info/PKG-INFO": f"Name: numpy\nVersion: {WANTED}\n".encode(),
        },
        config=_env(),
    ),
    "egg": Image(
        files={
            **PYTHON,
            **egg(f"{SITE}/numpy-2.1.3-py3.11.egg", WANTED),
            f"{SITE}/easy-install.pth": b"./numpy-2.1.3-py3.11.egg\n",
        },
        config=_env(),
    ),
    "a file with another version, as it was published": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "astunparse", "1.6.3"),
                {"astunparse/__init__.py": b"__version__ = '1.6.2'\n"},
            ),
        },
        config=_env(),
        expected=("astunparse==1.6.3",),
    ),
    "torch from PyPI": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "torch", "2.1.0"),
                {"torch/__init__.py": b"", "torch/version.py": b"__version__ = '2.1.0+cu121'\n"},
            ),
        },
        config=_env(),
        expected=("torch==2.1.0",),
    ),
    "namespace package": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "protobuf", "4.25.3"),
                {"google/protobuf/__init__.py": b"__version__ = '4.25.3'\n"},
            ),
            **wheel(SITE, "google-auth", "2.0", {"google/auth/__init__.py": b""}),
        },
        config=_env(),
        expected=("protobuf==4.25.3",),
    ),
    "modules for several Pythons": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "numpy", WANTED),
                {**parts(WANTED), f"{CORE}.cpython-310-x86_64-linux-gnu.so": elf(needed=[])},
            ),
        },
        config=_env(),
    ),
    "wheel with a path file of its own": Image(
        files={
            **GOOD,
            **wheel(
                *(SITE, "cuda-bindings", "12.6"),
                {
                    "cuda/bindings/__init__.py": b"",
                    "_cuda_bindings_redirector.pth": b"import _cuda_bindings_redirector",
                    "_cuda_bindings_redirector.py": b"import sys\n",
                },
            ),
        },
        config=_env(),
    ),
    "supervisor of the distribution": Image(
        files={
            **{path: data for path, data in debian().items() if "numpy" not in path},
            **venv("opt/venv", home="/usr/bin"),
            **numpy(WANTED, _VENV_SITE),
            "usr/bin/supervisord": b"#!/usr/bin/python3\n",
        },
        config={"Env": ["PATH=/opt/venv/bin:/usr/bin:/bin"], "Cmd": ["/usr/bin/supervisord", "-n"]},
    ),
    "another environment beside it": Image(
        files={
            **GOOD,
            **venv("opt/other"),
            **numpy(OTHER, "opt/other/lib/python3.11/site-packages"),
        },
        config=_env(),
    ),
    "Python 2 under the short name": Image(
        files={
            **GOOD,
            **without(python("opt/py2", "2.7"), "python3"),
            "opt/py2/bin/python": link("python2.7"),
        },
        config={"Env": ["PATH=/opt/py2/bin:/usr/local/bin:/bin"]},
    ),
}
RIGHT |= {
    "CUDA": Image(files=_TOOLKIT, config=_cuda(), expected=_CUDA_WANTED),
    "cudart of another major first, and programs need their own": Image(
        files={**_TOOLKIT, **_OLD_CUDA},
        config=_cuda("LD_LIBRARY_PATH=/usr/local/cuda-11.8/lib64"),
        expected=(*_CUDA_WANTED, "cudart==12.4.*"),
    ),
    "CUDA_HOME": Image(
        files={**_TOOLKIT, **_OTHER_CUDA},
        config=_cuda("CUDA_HOME=/usr/local/cuda", "LD_LIBRARY_PATH=/usr/local/cuda/lib64"),
        expected=_CUDA_WANTED,
    ),
    "CUDA of a wheel beside the toolkit": Image(
        files={
            **_TOOLKIT,
            **numpy(),
            f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12": elf(soname="libcudart.so.12"),
            f"{SITE}/torch/lib/libtorch.so": elf(
                needed=["libcudart.so.12"], runpath=["$ORIGIN/../../nvidia/cuda_runtime/lib"]
            ),
        },
        config=_cuda(),
        expected=(*_CUDA_WANTED, f"numpy=={WANTED}"),
    ),
    "cuDNN of a wheel, another one of the system": Image(
        files={
            **PYTHON,
            **wheel(
                *(SITE, "nvidia-cudnn-cu12", "8.9.2.26"),
                {
                    "nvidia/__init__.py": b"",
                    "nvidia/cudnn/lib/libcudnn.so.8": elf(
                        soname="libcudnn.so.8", version=["cudnn", "8.9.2"]
                    ),
                },
            ),
            f"{SITE}/torch/lib/libtorch.so": elf(
                needed=["libcudnn.so.8"], runpath=["$ORIGIN/../../nvidia/cudnn/lib"]
            ),
            f"{_LIB}/libcudnn.so.8": elf(soname="libcudnn.so.8", version=["cudnn", "8.9.7"]),
        },
        config=_env(),
        expected=("cudnn==8.9.2.26",),
    ),
    "stubs to link with": Image(
        files={**_TOOLKIT, f"{_CUDA}/lib64/stubs/libcuda.so": elf(soname="libcuda.so.1")},
        config=_cuda("LIBRARY_PATH=/usr/local/cuda/lib64/stubs"),
        expected=_CUDA_WANTED,
    ),
    "driver for compatibility": Image(
        files={
            **_TOOLKIT,
            f"{_CUDA}/compat/libcuda.so.1": elf(soname="libcuda.so.1"),
            "etc/ld.so.cache": cache(
                "/usr/local/cuda/lib64/libcudart.so.12", "/usr/local/cuda/compat/libcuda.so.1"
            ),
        },
        config=_cuda(),
        expected=_CUDA_WANTED,
    ),
    "CC of the default": Image(
        files=gcc("12", "9"), config=_env("CC=/usr/bin/gcc-12"), expected=("gcc==12.*",)
    ),
    "an older library by another name": Image(
        files={
            **GOOD,
            "usr/bin/app": elf(needed=["libtinfo.so.5"]),
            f"{_LIB}/libtinfo.so.5": link("libtinfo.so.6"),
            f"{_LIB}/libtinfo.so.6": elf(soname="libtinfo.so.6"),
        },
        config=_env(),
    ),
}


def script(text: str) -> bytes:
    """A script of a shell."""
    return f"#!/bin/sh\n{text}\n".encode()


_VENV_OTHER: Files = {**GOOD, **venv("opt/venv"), **numpy(OTHER, _VENV_SITE)}
_VENV_WANTED: Files = {**PYTHON, **numpy(OTHER), **venv("opt/venv"), **numpy(WANTED, _VENV_SITE)}
_COPIED: Files = {**GOOD, **copied()}
_ROOT_SITE = "root/.local/lib/python3.11/site-packages"
_BY_VARIABLE: Files = {**PYTHON, **numpy(OTHER), **copied(WANTED)}
_APP_COMMAND = ["python3", "-m", "app"]
_PROFILE = b'PATH="/usr/local/bin:/usr/bin:/bin"\nexport PATH\n'
_OF_VENV = "PATH=/opt/venv/bin:/usr/local/bin:/bin"


def _by_shell(line: str, files: Files, *variables: str) -> Image:
    return Image(files=files, config=_env(*variables, Cmd=["sh", "-c", line]), codes=("TM401",))


def _by_script(text: str, files: Files, *, folder: str = "") -> Image:
    config = _env(Entrypoint=["/usr/bin/entry.sh"], Cmd=_APP_COMMAND, WorkingDir=folder)
    return Image(files={**files, "usr/bin/entry.sh": script(text)}, config=config, codes=("TM401",))


WRONG |= {
    "script that starts the Python of a venv": _by_script(
        "exec /opt/venv/bin/python3 app.py", _VENV_OTHER
    ),
    "script that exports": _by_script('export PYTHONPATH=/vendor\nexec "$@"', _COPIED),
    "script that goes elsewhere": _by_script(
        'cd /srv\nexec "$@"', {**GOOD, **copied(folder="srv")}, folder="/opt"
    ),
    "script with a variable for its program": _by_script(
        "PYTHONPATH=/vendor python3 app.py", _COPIED
    ),
    "script that may export": _by_script(
        'if [ -d /vendor ]; then\n  export PYTHONPATH=/vendor\nfi\nexec "$@"', _COPIED
    ),
    "script without a first line": Image(
        files={**_COPIED, "run.sh": b"export PYTHONPATH=/vendor\npython3 app.py\n"},
        config=_env(Cmd=["sh", "/run.sh"]),
        codes=("TM401",),
    ),
    "variables out of a file": _by_shell(
        ". /etc/env.sh && python3 app.py",
        {**_COPIED, "etc/env.sh": b"export PYTHONPATH=/vendor\n"},
    ),
    "login shell that sets PATH anew": Image(
        files={**_VENV_WANTED, "etc/profile": _PROFILE},
        config={"Env": [_OF_VENV], "Cmd": ["sh", "-lc", "python3 app.py"]},
        codes=("TM401",),
    ),
    "variable that env takes away": Image(
        files=_BY_VARIABLE,
        config=_env("PYTHONPATH=/vendor", Cmd=["env", "-u", "PYTHONPATH", *_APP_COMMAND]),
        codes=("TM401",),
    ),
    "variable that a shell takes away": _by_shell(
        "unset PYTHONPATH; python3 -m app", _BY_VARIABLE, "PYTHONPATH=/vendor"
    ),
    "variable before a command": _by_shell("PYTHONPATH=/vendor python3 -m app", _COPIED),
    "pipe into another Python": _by_shell("echo 1 | /opt/venv/bin/python3", _VENV_OTHER),
    "another Python beside it": _by_shell("true & /opt/venv/bin/python3 -m app", _VENV_OTHER),
    "program that starts another Python": Image(
        files=_VENV_OTHER,
        config=_env(Cmd=["timeout", "60", "/opt/venv/bin/python3", "-m", "app"]),
        codes=("TM401",),
    ),
    "relative PYTHONPATH": Image(
        files={**GOOD, **copied(folder="app/lib")},
        config=_env("PYTHONPATH=lib", WorkingDir="/app"),
        codes=("TM401",),
    ),
    "link of a script": Image(
        files={
            **GOOD,
            **copied(folder="opt/app"),
            "opt/app/app.py": b"",
            "srv/app.py": link("/opt/app/app.py"),
        },
        config=_env(Cmd=["python3", "/srv/app.py"]),
        codes=("TM401",),
    ),
    "empty PYTHONNOUSERSITE": Image(
        files={**GOOD, **numpy(OTHER, _ROOT_SITE)},
        config=_env("PYTHONNOUSERSITE="),
        codes=("TM401",),
    ),
}
RIGHT |= {
    "script that starts the Python of a venv": _by_script(
        "exec /opt/venv/bin/python3 app.py", _VENV_WANTED
    ).replace(codes=()),
    "script that runs its arguments": _by_script(
        'set -e\necho hi\nif [ -n "$DEBUG" ]; then\n  set -x\nfi\nexec "$@"', GOOD
    ).replace(codes=()),
    "script that looks with the Python of the system": _by_script(
        'python3 -c "import sys" || exit 1\nif true; then\n  /usr/local/bin/python3 -V\nfi\nexec "$@"',
        _VENV_WANTED,
    ).replace(
        codes=(),
        config={"Env": [_OF_VENV], "Entrypoint": ["/usr/bin/entry.sh"], "Cmd": _APP_COMMAND},
    ),
    "login shell with the PATH of the system": Image(
        files={**GOOD, "etc/profile": _PROFILE}, config=_env(Cmd=["sh", "-lc", "python3 app.py"])
    ),
    "relative path file": Image(
        files={**_COPIED, f"{SITE}/x.pth": b"../../../../../vendor\n"}, config=_env()
    ),
    "user site beside a virtual environment": Image(
        files={**_VENV_WANTED, **numpy(OTHER, _ROOT_SITE)}, config={"Env": [_OF_VENV]}
    ),
}

# What Debian has as /etc/profile, but for its prompt.
_DEBIAN_PROFILE = b"""\
if [ "$(id -u)" -eq 0 ]; then
  PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
else
  PATH="/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
fi
export PATH

if [ "${PS1-}" ]; then
  if [ "${BASH-}" ] && [ "$BASH" != "/bin/sh" ]; then
    if [ -f /etc/bash.bashrc ]; then
      . /etc/bash.bashrc
    fi
  fi
fi

if [ -d /etc/profile.d ]; then
  for i in /etc/profile.d/*.sh; do
    if [ -r $i ]; then
      . $i
    fi
  done
  unset i
fi
"""
# What `python3 -m venv` writes, but for the prompt.
_ACTIVATE = """\
deactivate () {
    if [ -n "${_OLD_VIRTUAL_PATH:-}" ] ; then
        PATH="${_OLD_VIRTUAL_PATH:-}"
        export PATH
        unset _OLD_VIRTUAL_PATH
    fi
    unset VIRTUAL_ENV
    if [ ! "${1:-}" = "nondestructive" ] ; then
        unset -f deactivate
    fi
}
deactivate nondestructive
VIRTUAL_ENV="PREFIX"
export VIRTUAL_ENV
_OLD_VIRTUAL_PATH="$PATH"
PATH="$VIRTUAL_ENV/bin:$PATH"
export PATH
if [ -n "${PYTHONHOME:-}" ] ; then
    _OLD_VIRTUAL_PYTHONHOME="${PYTHONHOME:-}"
    unset PYTHONHOME
fi
if [ -n "${BASH:-}" -o -n "${ZSH_VERSION:-}" ] ; then
    hash -r 2> /dev/null
fi
"""
# The entry point of NVIDIA's images, but for its comments.
_NVIDIA = b"""\
#!/bin/bash
shopt -s nullglob extglob
_SCRIPT_DIR="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
declare -a _PARTS=( "${_SCRIPT_DIR}/entrypoint.d"/*@(.txt|.sh) )
shopt -u nullglob extglob
print_repeats() {
  local -r char="$1" count="$2"
  local i
  for ((i=1; i<=$count; i++)); do echo -n "$char"; done
  echo
}
for _file in "${_PARTS[@]}"; do
  case "${_file}" in
    *.txt) cat "${_file}";;
    *.sh)  source "${_file}";;
  esac
done
echo
if [[ $# -eq 0 ]]; then
  exec "/bin/bash"
else
  exec "$@"
fi
"""
_BASH: Files = {"bin/bash": elf(needed=["libc.so.6"])}
_OF_NVIDIA: Files = {
    **_BASH,
    "opt/nvidia/bin/entrypoint.sh": _NVIDIA,
    "opt/nvidia/bin/entrypoint.d/10-banner.txt": b"=====\n",
}


def _activate(prefix: str, path: str = "") -> Files:
    return {f"{path or prefix}/bin/activate": _ACTIVATE.replace("PREFIX", f"/{prefix}").encode()}


def _started(files: Files, *words: str, env: tuple[str, ...] = (), **config: Any) -> Image:
    config = _env(*env, Cmd=[*words], **config)
    return Image(files=files, config=config, codes=("TM401",))


def _right(image: Image) -> Image:
    return image.replace(codes=())


_OF_USER: Files = {**numpy(OTHER, USER), "etc/passwd": PASSWD}
_SERVE: Files = {"opt/venv/bin/serve": b"#!/opt/venv/bin/python3\nimport app\n"}
_LOGIN = ("bash", "-lc", "python3 -m app")
_MINE = _packed_wheel("numpy", OTHER, "numpy/__init__.py", "__main__.py")
WRONG |= {
    "gosu to a user with a site": _started({**GOOD, **_OF_USER}, "gosu", "app", *_APP_COMMAND),
    "program of another venv behind a limit of time": _started(
        {**_VENV_OTHER, **_SERVE}, "timeout", "60", "/opt/venv/bin/serve"
    ),
    "script behind dumb-init": _started(
        {**_COPIED, "usr/bin/entry.sh": script('export PYTHONPATH=/vendor\nexec "$@"')},
        *("dumb-init", "--", "/usr/bin/entry.sh", *_APP_COMMAND),
    ),
    "variable by a file of the profile": _started(
        {
            **_COPIED,
            **_BASH,
            "etc/profile": _DEBIAN_PROFILE,
            "etc/profile.d/app.sh": b"export PYTHONPATH=/vendor\n",
        },
        *_LOGIN,
    ),
    "profile of Debian without the venv": Image(
        files={**_VENV_WANTED, **_BASH, "etc/profile": _DEBIAN_PROFILE},
        config={"Env": [_OF_VENV], "Cmd": [*_LOGIN]},
        codes=("TM401",),
    ),
    "file of the profile of a user": _started(
        {**_COPIED, **_BASH, "root/.bash_profile": b"export PYTHONPATH=/vendor\n"}, *_LOGIN
    ),
    "activation of a venv that was moved": _by_shell(
        ". /opt/venv/bin/activate && python3 -m app",
        {**_VENV_WANTED, **_activate("build/venv", "opt/venv")},
    ),
    "variable that is not exported": _by_shell("PYTHONPATH=/vendor; python3 -m app", _BY_VARIABLE),
    "Python without its packages": _started(GOOD, "python3", "-S", "-m", "app").replace(
        codes=("TM420",)
    ),
    "variable that -E ignores": _started(
        _BY_VARIABLE, "python3", "-E", "-m", "app", env=("PYTHONPATH=/vendor",)
    ),
    "working directory that is no place for modules": _started(
        {**PYTHON, **numpy(OTHER), **copied(WANTED, "app")},
        *_APP_COMMAND,
        env=("PYTHONSAFEPATH=1",),
        WorkingDir="/app",
    ),
    "archive that starts alone": _started(
        {**GOOD, "srv/app.pyz": _MINE}, "python3", "-I", "/srv/app.pyz"
    ),
    "directory that starts alone": _started(
        {**GOOD, **copied(folder="srv"), "srv/__main__.py": b""}, "python3", "-I", "/srv"
    ),
    "script by its first argument": _by_script(
        'case "$1" in\n  python*) export PYTHONPATH=/vendor ;;\nesac\nexec "$@"', _COPIED
    ),
    "script that sets its arguments": _by_script(
        'if [ "${1#-}" = "$1" ]; then\n  set -- /opt/venv/bin/"$@"\nfi\nexec "$@"', _VENV_OTHER
    ),
    "script with a home of Python": _by_script(
        'export PYTHONHOME=/opt/python\nexec "$@"',
        {
            **GOOD,
            **python("opt/python"),
            **numpy(OTHER, "opt/python/lib/python3.11/site-packages"),
        },
    ),
    "settings that are all exported": _by_shell(
        "set -a; . /etc/default/app; set +a; exec python3 -m app",
        {**_COPIED, "etc/default/app": b"# of the service\nPYTHONPATH=/vendor\n"},
    ),
    "function that exports": _by_script(
        'use() {\n  local folder="$1"\n  export PYTHONPATH="$folder"\n}\nuse /vendor\nexec "$@"',
        _COPIED,
    ),
    "script of NVIDIA that sources one": Image(
        files={
            **_COPIED,
            **_OF_NVIDIA,
            "opt/nvidia/bin/entrypoint.d/50-app.sh": b"export PYTHONPATH=/vendor\n",
        },
        config=_env(Entrypoint=["/opt/nvidia/bin/entrypoint.sh"], Cmd=_APP_COMMAND),
        codes=("TM401",),
    ),
    "arguments in a variable of bash": Image(
        files={
            **_VENV_OTHER,
            **_BASH,
            "usr/bin/entry.sh": (
                b'#!/bin/bash\nset -e\ncmd=( "$@" )\n'
                b'if [[ ${#cmd[@]} -eq 0 ]]; then cmd=(bash); fi\nexec "/opt/venv/bin/${cmd[@]}"\n'
            ),
        },
        config=_env(Entrypoint=["/usr/bin/entry.sh"], Cmd=_APP_COMMAND),
        codes=("TM401",),
    ),
    "directory by a shell": _by_shell(
        "cd /srv && exec python3 -m app", {**GOOD, **copied(folder="srv")}
    ),
    "variable of a script for the loader": Image(
        files={
            **_TOOLKIT,
            **_OTHER_CUDA,
            "usr/bin/entry.sh": script(
                'export LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64:$LD_LIBRARY_PATH\nexec "$@"'
            ),
        },
        config={**_cuda(), "Entrypoint": ["/usr/bin/entry.sh"], "Cmd": _APP_COMMAND},
        expected=_CUDA_WANTED,
        codes=("TM421",),
    ),
}
RIGHT |= {
    "gosu to a user, root has a site": _right(
        _started(
            {**GOOD, **numpy(OTHER, _ROOT_SITE), "etc/passwd": PASSWD}, "gosu", "app", *_APP_COMMAND
        )
    ),
    "program of a venv behind a limit of time": _right(
        _started({**_VENV_WANTED, **_SERVE}, "timeout", "60", "/opt/venv/bin/serve")
    ),
    "venv by its real activation": _right(
        _by_shell(
            ". /opt/venv/bin/activate && exec python3 -m app",
            {**_VENV_WANTED, **_activate("opt/venv")},
        )
    ),
    "venv by a file of the profile": _right(
        _started(
            {
                **_VENV_WANTED,
                **_BASH,
                "etc/profile": _DEBIAN_PROFILE,
                "etc/profile.d/venv.sh": b'PATH="/opt/venv/bin:$PATH"\n',
            },
            *_LOGIN,
        )
    ),
    "script with another task": _right(
        _by_script(
            'if [ "$1" = migrate ]; then\n  PYTHONPATH=/vendor python3 -m app\n  exit 0\nfi\nexec "$@"',
            _COPIED,
        )
    ),
    "script that counts": _right(
        _by_script('i=0\nwhile [ $i -lt 3 ]; do\n  i=$((i+1))\ndone\nexec "$@"', GOOD)
    ),
    "script of NVIDIA": _right(
        Image(
            files={**GOOD, **_OF_NVIDIA},
            config=_env(Entrypoint=["/opt/nvidia/bin/entrypoint.sh"], Cmd=_APP_COMMAND),
        )
    ),
    "condition that nothing decides, and that changes nothing": _right(
        _by_script(
            'if ls /proc/1/root 2> /dev/null; then\n  export DEBUG=1\nfi\nexec "$@"', _COPIED
        )
    ),
    "copy that is not exported": _right(
        _by_shell("PYTHONPATH=/vendor; python3 -m app", {**GOOD, **copied()})
    ),
    "copy in the working directory that -P leaves out": _right(
        _started({**GOOD, **copied(folder="app")}, "python3", "-P", "-m", "app", WorkingDir="/app")
    ),
    "variable of a directory that is not there": _right(
        _by_script(
            'if [ -d /opt/vendor ]; then\n  export PYTHONPATH=/vendor\nfi\nexec "$@"', _COPIED
        )
    ),
}

_SHARED: Files = {**debian(), **venv("opt/venv", system=True, home="/usr/bin")}
_SYSTEM_VENV = {"Env": ["PATH=/opt/venv/bin:/usr/bin:/bin"]}
_CONDA: Files = {
    **python("opt/conda"),
    **numpy(OTHER, "opt/conda/lib/python3.11/site-packages"),
    **{path: data for path, data in python("opt/conda/envs/app").items() if path[:3] == "opt"},
    **numpy(WANTED, "opt/conda/envs/app/lib/python3.11/site-packages"),
}
_ALTERNATIVE: Files = {
    **python("usr"),
    **python("opt/other"),
    **numpy(WANTED, "usr/lib/python3.11/site-packages"),
    "usr/local/bin/python3": link("/etc/alternatives/python"),
}
_BROKEN: Files = {**PYTHON, "opt/b/python3": link("/gone/python3")}
_BROKEN_ENV = {"Env": ["PATH=/opt/b:/usr/local/bin:/bin"]}
_MOVED: Files = {
    **PYTHON,
    **venv("srv/venv"),
    **numpy(WANTED, "srv/venv/lib/python3.11/site-packages"),
}
_LINKED: Files = {**PYTHON, **numpy(WANTED, "opt/site")}
_A_B = wheel(SITE, "a.b", "1.0", {"a/b/__init__.py": b"__version__ = '1.0'\n"})
WRONG |= {
    "packages of another stage with an older Python": Image(
        files={**python(series="3.12"), **numpy()}, config=_env(), codes=("TM420",)
    ),
    "packages of an older Python, copied to a newer one": Image(
        files={**python(series="3.12"), **numpy(site="usr/local/lib/python3.12/site-packages")},
        config=_env(),
        codes=("TM422",),
    ),
    "installed as another user": Image(
        files={**PYTHON, **numpy(WANTED, USER), "etc/passwd": PASSWD},
        config=_env(),
        codes=("TM420",),
    ),
    "venv whose Python is gone": Image(
        files={**PYTHON, **venv("opt/venv", home="/opt/py/bin"), **numpy(WANTED, _VENV_SITE)},
        config={"Env": [_OF_VENV]},
        codes=("TM420",),
    ),
    "broken link to a Python, and another one": Image(
        files={**_BROKEN, **numpy(OTHER)}, config=_BROKEN_ENV, codes=("TM401",)
    ),
    "environment of uv that is not on PATH": Image(
        files={
            **PYTHON,
            **venv("app/.venv"),
            **numpy(WANTED, "app/.venv/lib/python3.11/site-packages"),
        },
        config=_env(WorkingDir="/app"),
        codes=("TM420",),
    ),
    "package of the system beside a venv": Image(
        files={**debian(), **venv("opt/venv", home="/usr/bin")},
        config=_SYSTEM_VENV,
        expected=(f"numpy=={OTHER}",),
        codes=("TM420",),
    ),
    "package of the system in a venv that shares it": Image(
        files=_SHARED, config=_SYSTEM_VENV, codes=("TM401",)
    ),
    "environment of conda that nothing activates": Image(
        files=_CONDA, config={"Env": ["PATH=/opt/conda/bin:/usr/bin:/bin"]}, codes=("TM401",)
    ),
    "develop, source moved on": Image(
        files={
            **PYTHON,
            f"{SITE}/numpy.egg-link": b"/src\n.",
            f"{SITE}/easy-install.pth": b"/src\n",
            **copied(OTHER, "src"),
            "src/numpy.egg-info/PKG-INFO": f"Name: numpy\nVersion: {WANTED}\n".encode(),
        },
        config=_env(),
        codes=("TM421",),
    ),
    "alternative of another prefix": Image(
        files={**_ALTERNATIVE, "etc/alternatives/python": link("/opt/other/bin/python3.11")},
        config=_env(),
        codes=("TM420",),
    ),
    "package before a namespace": Image(
        files={**PYTHON, **_A_B, "vendor/a/__init__.py": b""},
        config=_env("PYTHONPATH=/vendor"),
        expected=("a.b==1.0",),
        codes=("TM420",),
    ),
    "empty package in the working directory": Image(
        files={**GOOD, "app/numpy/__init__.py": b""},
        config=_env(WorkingDir="/app"),
        codes=("TM421",),
    ),
    "loop over directories that may be there": _by_script(
        'for d in /none /vendor; do\n  [ -d "$d" ] || continue\n'
        '  export PYTHONPATH="$d${PYTHONPATH:+:$PYTHONPATH}"\ndone\nexec "$@"',
        _COPIED,
    ),
    "variable before exec": _by_script(
        ': "${EXTRA:=/vendor}"\nPYTHONPATH=$EXTRA exec "$@"', _COPIED
    ),
    "variable before a function": _by_script(
        'run() {\n  exec "$@"\n}\nPYTHONPATH=/vendor run "$@"', _COPIED
    ),
    "settings of a file that may be there": _by_script(
        'set -a\n[ -f /etc/app.env ] && . /etc/app.env\nset +a\nexec "$@"',
        {**_COPIED, "etc/app.env": b"PYTHONPATH=/vendor\n"},
    ),
}
RIGHT |= {
    "venv that was moved, by its Python": Image(
        files=_MOVED, config={"Env": ["PATH=/srv/venv/bin:/usr/local/bin:/bin"]}
    ),
    "first line longer than older kernels read": Image(
        files={
            **PYTHON,
            **venv(f"opt/{'v' * 130}"),
            **numpy(WANTED, f"opt/{'v' * 130}/lib/python3.11/site-packages"),
            "usr/local/bin/serve": f"#!/opt/{'v' * 130}/bin/python3\nimport app\n".encode(),
        },
        config=_env(Cmd=["serve"]),
    ),
    "broken link to a Python before the right one": Image(
        files={**_BROKEN, **numpy()}, config=_BROKEN_ENV
    ),
    "environment of uv elsewhere": Image(
        files={
            **PYTHON,
            **venv("opt/venv"),
            **numpy(WANTED, _VENV_SITE),
            "app/pyproject.toml": b'[project]\nname = "a"\nversion = "1"\n',
        },
        config=_env(
            *("UV_PROJECT_ENVIRONMENT=/opt/venv", "UV_NO_SYNC=1", "UV_OFFLINE=1"),
            Cmd=["uv", "run", "python", "-m", "main"],
            WorkingDir="/app",
        ),
    ),
    "package of a venv before that of the system": Image(
        files={**_SHARED, **numpy(WANTED, _VENV_SITE)}, config=_SYSTEM_VENV
    ),
    "environment of conda by PATH": Image(
        files=_CONDA, config={"Env": ["PATH=/opt/conda/envs/app/bin:/opt/conda/bin:/usr/bin:/bin"]}
    ),
    "alternative": Image(
        files={**_ALTERNATIVE, "etc/alternatives/python": link("/usr/bin/python3.11")},
        config=_env(),
    ),
    "namespace of two directories": Image(
        files={**PYTHON, **_A_B, "vendor/a/c/__init__.py": b""},
        config=_env("PYTHONPATH=/vendor"),
        expected=("a.b==1.0",),
    ),
    "directory of packages that is a link": Image(
        files={**_LINKED, SITE: link("/opt/site")}, config=_env()
    ),
}
