"""Packages as tools install them: what the import model says of each, and what the interpreter says when it is run.

`python -m tests.inspection.installs [WORD...]` makes every install, or those whose names have one of the words, in a
temporary folder, and prints a line for each and the counts. Packages come from the index that pip is configured for.
"""

from __future__ import annotations

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, UNKNOWN
from toolmatrix.images import local
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import Layer, LayerReader, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import programs, python
from toolmatrix.inspection.modules import Modules
from toolmatrix.inspection.observe import Look, observe
from toolmatrix.inspection.record import Record, View
from toolmatrix.judging import images
from toolmatrix.judging.expectations import parse_expectation

if TYPE_CHECKING:
    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import Verdict
    from toolmatrix.inspection.imports import ImportPath
    from toolmatrix.inspection.model import Inventory
    from toolmatrix.inspection.modules import Module

    Said = dict[str, Any]

BASE = os.path.realpath(f"{sys.base_prefix}/bin/python3")
# That of the distribution, where it is another one.
BASES = tuple(dict.fromkeys((BASE, os.path.realpath("/usr/bin/python3"))))
_SERIES = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_SITE = f"lib/{_SERIES}/site-packages"
# Distribution, module, an older release and a newer one.
PACKAGES = {
    "six": ("six", "1.16.0", "1.17.0"),
    "idna": ("idna", "3.7", "3.10"),
    "markupsafe": ("markupsafe", "2.1.5", "3.0.2"),
    "wrapt": ("wrapt", "1.16.0", "1.17.2"),
    "attrs": ("attr", "23.2.0", "25.1.0"),
    "python-dateutil": ("dateutil", "2.8.2", "2.9.0.post0"),
    "pyyaml": ("yaml", "6.0.1", "6.0.2"),
    "typing-extensions": ("typing_extensions", "4.9.0", "4.12.2"),
    "zope.interface": ("zope.interface", "6.4", "7.2"),
    "protobuf": ("google.protobuf", "4.25.3", "5.29.3"),
    "msgpack": ("msgpack", "1.0.8", "1.1.0"),
    "cffi": ("cffi", "1.16.0", "1.17.1"),
    "backports.tarfile": ("backports.tarfile", "1.1.1", "1.2.0"),
    "setuptools": ("setuptools", "69.5.1", "75.8.0"),
}
# What builds and installs, in its newest release.
TOOLS = (
    *("flit", "hatchling", "pdm-backend", "poetry-core", "setuptools", "uv-build", "wheel", "pip"),
    *("editables", "pex", "pipx", "poetry", "shiv", "virtualenv"),
)
# Packages that each way installs.
_TURNS = 4
# Lines of a failed install that are printed.
_LAST_LINES = 8
_OWN = "{place}/v/bin/python {place}/ask/ask.py"
# What is asked of an interpreter: its import path, and the file and version of a module.
ASK = """\
import os, sys
path = list(sys.path)
import importlib, importlib.metadata, json
dist, name = os.environ["ASK"].split(":")
said = dict(path=path, version=sys.version.split()[0])
try:
    module = importlib.import_module(name)
    stated = getattr(module, "__version__", None)
    said.update(file=getattr(module, "__file__", None), stated=stated)
except Exception as error:
    said.update(error=repr(error))
try:
    said.update(record=importlib.metadata.version(dist))
    place = importlib.metadata.distribution(dist).locate_file("")
    said.update(site=os.path.realpath(str(place)))
    beside = [one for one in importlib.metadata.distributions(name=dist) if one.locate_file("") == place]
    said.update(records=sorted({one.version for one in beside}))
except Exception:
    pass
print(json.dumps(said))
"""


class Outcome(NamedTuple):
    """What came of an install: whether the verdict is right, what the interpreter said, and where the model differs."""

    name: str
    word: str
    real: str
    verdict: Verdict
    differs: tuple[str, ...]

    def __str__(self) -> str:
        verdict = " ".join(
            filter(None, (self.verdict.found, self.verdict.code, self.verdict.reason))
        )
        return " | ".join((self.real, f"{self.verdict.word} {verdict}", *self.differs))


class Install(NamedTuple):
    """How a package is installed and asked for.

    In commands and settings `{place}` is the folder of the install, `{site}` the directory of its records, `{pip}`,
    `{uv}` and `{base}` programs. `files` are written first.
    """

    name: str
    dist: str
    module: str
    commands: tuple[str, ...]
    start: str = _OWN
    env: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    base: str = BASE


_VENV = "{base} -m venv --without-pip {place}/v"
_INTO = "{pip} --python {place}/v/bin/python install"
# With `--prefix` and `--root`, pip would uninstall another release from the interpreter itself: it must ignore these.
_TO = "{pip} --python {base} install --break-system-packages --ignore-installed"
_BARE = "{base} {place}/ask/ask.py"
_ON_PATH = {"PYTHONPATH": "{site}"}

# By their names: commands (`{old}` and `{new}` are requirements), the start and variables.
WAYS: dict[str, tuple[tuple[str, ...], str, Mapping[str, str]]] = {
    "pip": ((_VENV, f"{_INTO} {{new}}"), "", {}),
    "pip upgrade": ((_VENV, f"{_INTO} {{old}}", f"{_INTO} {{new}}"), "", {}),
    "pip downgrade": ((_VENV, f"{_INTO} {{new}}", f"{_INTO} {{old}}"), "", {}),
    "pip uninstall": (
        (_VENV, f"{_INTO} {{new}}", "{pip} --python {place}/v/bin/python uninstall -y {dist}"),
        *("", {}),
    ),
    "pip --no-compile -I": (
        (_VENV, f"{_INTO} {{new}}", f"{_INTO} --no-compile -I {{old}}"),
        *("", {}),
    ),
    "pip --target": ((f"{_TO} --target {{place}}/t {{new}}",), _BARE, _ON_PATH),
    "pip --target off the path": ((f"{_TO} --target {{place}}/t {{new}}",), _BARE, {}),
    "pip --target twice": (
        (f"{_TO} --target {{place}}/t {{old}}", f"{_TO} --target {{place}}/t {{new}}"),
        *(_BARE, _ON_PATH),
    ),
    "pip --target --upgrade": (
        (f"{_TO} --target {{place}}/t {{old}}", f"{_TO} --target {{place}}/t -U {{new}}"),
        *(_BARE, _ON_PATH),
    ),
    "pip --user": ((f"{_TO} --user {{new}}",), _BARE, {}),
    "pip --user, -s": ((f"{_TO} --user {{new}}",), "{base} -s {place}/ask/ask.py", {}),
    "pip --user, PYTHONNOUSERSITE": (
        (f"{_TO} --user {{new}}",),
        *(_BARE, {"PYTHONNOUSERSITE": "1"}),
    ),
    "pip --user, -I": ((f"{_TO} --user {{new}}",), "{base} -I {place}/ask/ask.py", {}),
    "pip --user beside a shared venv": (
        (f"{_VENV} --system-site-packages", f"{_INTO} {{old}}", f"{_TO} --user {{new}}"),
        *("", {}),
    ),
    "pip --user under a shared venv": (
        (f"{_VENV} --system-site-packages", f"{_TO} --user {{new}}"),
        *("", {}),
    ),
    "pip --user beside a venv": ((_VENV, f"{_TO} --user {{new}}"), "", {}),
    "pip --prefix": ((f"{_TO} --prefix {{place}}/p {{new}}",), _BARE, _ON_PATH),
    "pip --root": ((f"{_TO} --root {{place}}/r {{new}}",), _BARE, _ON_PATH),
    "PYTHONPATH over a venv": (
        (_VENV, f"{_INTO} {{old}}", f"{_TO} --target {{place}}/t {{new}}"),
        *("", {"PYTHONPATH": "{place}/t"}),
    ),
    "PYTHONPATH over a venv, -E": (
        (_VENV, f"{_INTO} {{old}}", f"{_TO} --target {{place}}/t {{new}}"),
        *("{place}/v/bin/python -E {place}/ask/ask.py", {"PYTHONPATH": "{place}/t"}),
    ),
    "beside the script": (
        (_VENV, f"{_INTO} {{old}}", f"{_TO} --target {{place}}/ask {{new}}"),
        *("", {}),
    ),
    "beside the script, -P": (
        (_VENV, f"{_INTO} {{old}}", f"{_TO} --target {{place}}/ask {{new}}"),
        *("{place}/v/bin/python -P {place}/ask/ask.py", {}),
    ),
    "working directory, -m": (
        (
            _VENV,
            f"{_INTO} {{old}}",
            f"{_TO} --target {{place}}/work {{new}}",
            "cp ask/ask.py work/asked.py",
        ),
        *("{place}/v/bin/python -m asked", {}),
    ),
    "uv": (("{uv} venv -q v", "{uv} pip install -q --no-index --python v {new}"), "", {}),
    "uv, symlinks": (
        ("{uv} venv -q v", "{uv} pip install -q --no-index --link-mode symlink --python v {new}"),
        *("", {}),
    ),
    "uv, hard links": (
        ("{uv} venv -q v", "{uv} pip install -q --no-index --link-mode hardlink --python v {old}"),
        *("", {}),
    ),
    "uv --system-site-packages": (
        (
            "{uv} venv -q --system-site-packages v",
            "{uv} pip install -q --no-index --python v {new}",
        ),
        *("", {}),
    ),
    "uv --relocatable, moved": (
        (
            *("{uv} venv -q --relocatable u", "{uv} pip install -q --no-index --python u {new}"),
            "mv u v",
        ),
        *("", {}),
    ),
    "uv --target": (
        ("{uv} pip install -q --no-index --python {base} --target t {new}",),
        *(_BARE, _ON_PATH),
    ),
    "uv --prefix": (
        ("{uv} pip install -q --no-index --python {base} --prefix p {new}",),
        *(_BARE, _ON_PATH),
    ),
    "venv moved": (
        (_VENV.replace("/v", "/u"), f"{_INTO.replace('/v/', '/u/')} {{new}}", "mv u v"),
        "",
        {},
    ),
    "venv --copies": ((f"{_VENV} --copies", f"{_INTO} {{new}}"), "", {}),
    "venv of a venv": (
        (
            f"{_VENV.replace('/v', '/u')}",
            f"{_INTO.replace('/v/', '/u/')} {{old}}",
            "u/bin/python -m venv --without-pip --system-site-packages v",
        ),
        *("", {}),
    ),
    "virtualenv": (("{bin}/virtualenv -q --no-download v", f"{_INTO} {{new}}"), "", {}),
    "path file of a venv": (
        (
            _VENV,
            f"{_INTO} {{old}}",
            f"{_TO} --target {{place}}/t {{new}}",
            f"cp t.pth v/{_SITE}/t.pth",
        ),
        *("", {}),
    ),
    "by a link to the venv": (
        (_VENV, f"{_INTO} {{new}}", "ln -s v current"),
        *("{place}/current/bin/python {place}/ask/ask.py", {}),
    ),
    "by a link to the program": (
        (_VENV, f"{_INTO} {{new}}", "ln -s {place}/v/bin/python py"),
        *("{place}/py {place}/ask/ask.py", {}),
    ),
    "by its first line": (
        (_VENV, f"{_INTO} {{new}}", "cp ask.sh v/bin/ask", "chmod 755 v/bin/ask"),
        *("ask", {"PATH": "{place}/v/bin:/usr/bin:/bin"}),
    ),
    "sourceless": (
        (
            _VENV,
            f"{_INTO} {{new}}",
            "v/bin/python -m compileall -q -b v/lib",
            f"find v/{_SITE} -name *.py -delete",
        ),
        *("", {}),
    ),
    "zipapp": (
        (
            f"{_TO} --target {{place}}/app {{new}}",
            "cp ask/ask.py app/__main__.py",
            "{base} -m zipapp app -o app.pyz",
        ),
        *("{base} {place}/app.pyz", {}),
    ),
    "zipapp as a program": (
        (
            f"{_TO} --target {{place}}/app {{new}}",
            "cp ask/ask.py app/__main__.py",
            "{base} -m zipapp -p {base} app -o app.pyz",
        ),
        *("{place}/app.pyz", {}),
    ),
}
# Packages of the distribution, which are asked for where they are installed.
_SYSTEM = "/usr/bin/python3"
_OF_SYSTEM = {
    **{name: name for name in ("numpy", "six", "pip", "setuptools", "wheel", "blinker")},
    "PyYAML": "yaml",
    "Pygments": "pygments",
    "pyOpenSSL": "OpenSSL",
}
# Installs that one package shows: commands, package, start and variables.
_FLIT = ("packages", "flit")
ONCE: dict[str, tuple[tuple[str, ...], str, str, Mapping[str, str]]] = {
    "pipx": (
        ("{bin}/pipx install -q --python {base} pkginfo",),
        *("pkginfo:pkginfo", "{place}/home/pipx/venvs/pkginfo/bin/python {place}/ask/ask.py", {}),
    ),
    "uv tool": (
        ("{uv} tool install -q --no-index --python {base} shiv",),
        *("shiv:shiv", "{place}/home/.local/share/uv/tools/shiv/bin/python {place}/ask/ask.py", {}),
    ),
    "shiv": (
        (f"{_TO} --target {{place}}/t six==1.17.0", "{bin}/shiv -o app.pyz --site-packages t"),
        *("six:six", "{base} {place}/app.pyz {place}/ask/ask.py", {}),
    ),
    "pex": (
        ("{bin}/pex --python {base} --no-pypi -f {wheels} -o app.pex six==1.17.0",),
        *("six:six", "{base} {place}/app.pex {place}/ask/ask.py", {}),
    ),
    "pex --venv": (
        (
            "{bin}/pex --include-tools --python {base} --no-pypi -f {wheels} -o app.pex six==1.17.0",
            "env PEX_TOOLS=1 {base} app.pex venv v",
        ),
        *("six:six", "", {}),
    ),
    "wheel on the path": (
        ("{pip} download -q -d w six==1.17.0",),
        *("six:six", _BARE, {"PYTHONPATH": "{place}/w/six-1.17.0-py2.py3-none-any.whl"}),
    ),
    **{
        f"apt: {dist}": ((), f"{dist}:{module}", f"{_SYSTEM} {{place}}/ask/ask.py", {})
        for dist, module in _OF_SYSTEM.items()
        if glob.glob(f"/usr/lib/python3/dist-packages/{module}*")
    },
    "uv run --with": (
        ("{uv} venv -q v", "{uv} pip install -q --no-index --python v six==1.16.0"),
        *(
            "six:six",
            "{uv} run --offline --no-project --python {place}/v/bin/python python {place}/ask/ask.py",
            {},
        ),
    ),
}

_TABLE = """\
[project]
name = "packed-thing"
version = "1.2.3"
description = "nothing"
requires-python = ">=3.9"
authors = [{{name = "nobody", email = "nobody@example.org"}}]
[build-system]
requires = {requires}
build-backend = "{backend}"
{more}
"""
BACKENDS = {
    "setuptools": ('["setuptools"]', "setuptools.build_meta"),
    "hatchling": ('["hatchling"]', "hatchling.build"),
    "flit": ('["flit_core >=3.4"]', "flit_core.buildapi"),
    "poetry-core": ('["poetry-core"]', "poetry.core.masonry.api"),
    "pdm-backend": ('["pdm-backend"]', "pdm.backend"),
    "uv-build": ('["uv_build"]', "uv_build"),
}
_E_PIP = f"{_INTO} -e project"
_E_UV = "{uv} pip install -q --no-index --python v -e project"
# By their names: backend, layout, further lines of pyproject.toml, commands behind the one that makes the environment.
PROJECTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    **{
        f"{tool} -e, {backend}, {layout}": (backend, layout, "", (command,))
        for backend in BACKENDS
        for layout in ("src", "flat")
        for tool, command in (("pip", _E_PIP), ("uv", _E_UV))
    },
    **{
        f"pip ./project, {backend}": (backend, "src", "", (f"{_INTO} ./project",))
        for backend in BACKENDS
    },
    **{
        f"pip -e, setuptools {mode}, {layout}": (
            *("setuptools", layout, ""),
            (f"{_INTO} -e project --config-settings editable_mode={mode}",),
        )
        for mode in ("strict", "compat")
        for layout in ("src", "flat")
    },
    "pip -e, setuptools with directories": (
        *("setuptools", "lib/inner", '[tool.setuptools]\npackages = ["packed_thing"]\n'),
        (_E_PIP,),
    ),
    "pip -e, setuptools, a module": (
        *("setuptools", "module", '[tool.setuptools]\npy-modules = ["packed_thing"]\n'),
        (_E_PIP,),
    ),
    **{
        f"setup.py install{layout}": (
            *("setuptools", "flat", f"[tool.setuptools]\nzip-safe = {safe}\n"),
            (
                f"{_INTO} setuptools==75.8.0",
                "sh -c 'cd project && ../v/bin/python setup.py -q install'",
            ),
        )
        for layout, safe in (("", "false"), (", zipped", "true"))
    },
    "setup.py develop": (
        *("setuptools", "flat", ""),
        (
            f"{_INTO} setuptools==75.8.0",
            "sh -c 'cd project && ../v/bin/python setup.py -q develop'",
        ),
    ),
    "pip -e, hatchling exact": (
        *("hatchling", "src", "[tool.hatch.build]\ndev-mode-exact = true\n"),
        (_E_PIP,),
    ),
    "pip -e, pdm-backend by editables": (
        *("pdm-backend", "src", '[tool.pdm.build]\neditable-backend = "editables"\n'),
        (f"{_INTO} editables", _E_PIP),
    ),
    "flit install --symlink": (
        *("flit", "flat", ""),
        ("sh -c 'cd project && {bin}/flit install --deps none -s --python ../v/bin/python'",),
    ),
    "flit install --pth-file": (
        *("flit", "flat", ""),
        (
            "sh -c 'cd project && {bin}/flit install --deps none --pth-file --python ../v/bin/python'",
        ),
    ),
    **{
        f"uv sync{options}": (
            *("uv-build", "src", ""),
            (
                "sh -c 'cd project && UV_PROJECT_ENVIRONMENT={place}/v {uv} sync -q --no-index"
                + options
                + "'",
            ),
        )
        for options in ("", " --no-editable")
    },
    "poetry install": (
        *("poetry-core", "src", ""),
        ("sh -c 'cd project && VIRTUAL_ENV={place}/v {bin}/poetry install -q -n'",),
    ),
    **{
        f"{what}, {backend}": (backend, "src", "", (_E_PIP, command))
        for backend in ("setuptools", "hatchling", "pdm-backend")
        for what, command in (
            ("source deleted", "rm -r project"),
            ("source moved", "mv project elsewhere"),
            ("source newer", "sed -i s/1.2.3/1.3.0/ project/src/packed_thing/__init__.py"),
        )
    },
    **{
        f"setuptools {mode}, source {what}": (
            *("setuptools", layout, ""),
            (f"{_INTO} -e project --config-settings editable_mode={mode}", command),
        )
        for mode, layout in (("strict", "src"), ("lenient", "flat"))
        for what, command in (
            ("deleted", "rm -r project"),
            ("newer", "find project -name __init__.py -exec sed -i s/1.2.3/1.3.0/ {} +"),
        )
    },
}


def _project(backend: str, layout: str, more: str) -> dict[str, str]:
    requires, build = BACKENDS[backend]
    if layout == "flat" and backend == "uv-build":
        more = '[tool.uv.build-backend]\nmodule-root = ""\n'
    if "/" in layout:
        more += f'[tool.setuptools.package-dir]\npacked_thing = "{layout}"\n'
    place = {"src": "src/packed_thing/__init__", "flat": "packed_thing/__init__"}
    file = place.get(layout, f"{layout}/__init__" if "/" in layout else "packed_thing")
    return {
        "project/pyproject.toml": _TABLE.format(requires=requires, backend=build, more=more),
        "project/setup.py": "from setuptools import setup\nsetup()\n"
        if backend == "setuptools"
        else "",
        f"project/{file}.py": '"""Nothing."""\n\n__version__ = "1.2.3"\n',
    }


def installs() -> Iterator[Install]:
    """Every install: each way once, then the others."""
    for way, (commands, ask, start, env) in ONCE.items():
        dist, _, module = ask.partition(":")
        yield Install(way, dist, module, commands, start or _OWN, env)
    for way, (backend, layout, more, commands) in PROJECTS.items():
        files = _project(backend, layout, more)
        yield Install(
            *(way, "packed-thing", "packed_thing", (_VENV, *commands), _OWN),
            files={path: text for path, text in files.items() if text},
        )
    names = list(PACKAGES)
    for turn in range(_TURNS):
        for number, (way, (commands, start, env)) in enumerate(WAYS.items()):
            dist = names[(3 * number + turn) % len(names)]
            module, old, new = PACKAGES[dist]
            words = {"{old}": f"{dist}=={old}", "{new}": f"{dist}=={new}", "{dist}": dist}
            filled = tuple(_filled(command, words) for command in commands)
            base = BASES[(number + turn) % len(BASES)]
            name = f"{way}: {dist}{' of the distribution' if base != BASE else ''}"
            yield Install(name, dist, module, filled, start or _OWN, env, base=base)


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


class World:
    """A temporary folder with the wheels, the tools, and what all installs share of the machine."""

    def __init__(self, root: Path, index: Index) -> None:
        self.root = root
        self.index = index
        self.wheels = root / "wheels"
        self.tools = root / "tools"
        self.log = root / "log.txt"
        lib = [Path(base).parent.parent / "lib" for base in BASES]
        self.sites = [f"{folder}/python3*/*-packages" for folder in (*lib, "/usr/local/lib")]

    def prepare(self) -> None:
        """Download the packages and install the tools."""
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
        old = [f"{dist}=={one}" for dist, (_, *two) in PACKAGES.items() for one in two]
        download = [*pip, "download", "--only-binary=:all:", "--dest", str(self.wheels)]
        for wanted in (["--no-deps", *old[::2]], ["--no-deps", *old[1::2]], TOOLS):
            subprocess.run([*download, *wanted], check=True)
        subprocess.run([BASE, "-m", "venv", "--without-pip", str(self.tools)], check=True)
        into = ["--python", str(self.tools / "bin/python"), "install", "--no-index"]
        subprocess.run([*pip, *into, "--find-links", str(self.wheels), *TOOLS], check=True)

        shared = [
            "/bin",
            "/lib",
            "/lib64",
            "/usr/bin/env",
            "/usr/bin/python3",
            "/var/lib/dpkg/status",
        ]
        shared += [f"/usr/local/lib/{_SERIES}", f"/etc/{_SERIES}"]
        for base in BASES:
            lib = Path(base).parent.parent / "lib"
            series = Path(base).name
            # Of the library the landmark is enough.
            inside = ("os.py", "sitecustomize.py", "site-packages", "dist-packages")
            shared += [
                *(base, f"{os.path.dirname(base)}/python3"),
                f"{lib}/lib{series}.so.1.0",
                f"{lib}/python3",
                *(f"{lib}/{series}/{name}" for name in inside),
            ]
        self.tree = Tree()
        layer = self._read(*shared)
        # What this machine runs at each start is its own affair.
        entries = [
            (path, entry)
            for path, entry in layer.entries
            if not (
                path.endswith(".pth")
                and isinstance(entry.content, bytes)
                and b"import " in entry.content
            )
        ]
        self.tree.apply(layer.replace(entries=tuple(entries)), Budget("installs"))

    def _read(self, *paths: str) -> Layer:
        reader = LayerReader(Look, Budget("installs"))
        return local.read_below("/", [path.strip("/") for path in paths], reader)

    def outcome(self, install: Install) -> Outcome:
        """Make an install, ask the interpreter and the model."""
        place = self.root / "one"
        shutil.rmtree(place, ignore_errors=True)
        files = {
            "ask/ask.py": ASK,
            "ask.sh": f"#!{place}/v/bin/python\n{ASK}",
            "t.pth": f"{place}/t\n",
            "work/.keep": "",
            "home/.keep": "",
            **install.files,
        }
        for path, text in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        words = {
            "{place}": str(place),
            "{wheels}": str(self.wheels),
            "{base}": install.base,
            "{bin}": str(self.tools / "bin"),
            "{uv}": str(shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.defpath}")),
            "{pip}": f"{sys.executable} -m pip -q --disable-pip-version-check",
        }
        held = self._held()
        for command in install.commands:
            self._run(place, shlex.split(_filled(command, words)))
        if self._held() != held:
            raise SystemExit(f"{install.name} changed {sorted({*held} ^ {*self._held()})}")
        records = (path for path in place.rglob("*.dist-info") if "home/.cache" not in str(path))
        words["{site}"] = str(next(records, place / "none").parent)
        env = {"PATH": f"{os.path.dirname(install.base)}:/bin", "HOME": f"{place}/home"}
        env |= {name: _filled(text, words) for name, text in install.env.items()}
        argv = shlex.split(_filled(install.start, words))
        ask = {"ASK": f"{install.dist}:{install.module}", "UV_CACHE_DIR": str(self.root / "uv")}
        done = subprocess.run(
            argv,
            cwd=place / "work",
            env={**env, **ask},
            capture_output=True,
            text=True,
            check=False,
        )
        said = json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr[-500:]}
        return self._compared(place, install, argv, env, said)

    def _held(self) -> list[str]:
        # An install must not change the machine, whose packages the other ones would be compared with.
        return sorted(path for folder in self.sites for path in glob.glob(f"{folder}/*"))

    def _run(self, place: Path, argv: list[str]) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": f"{place}/home",
            "LC_ALL": "C.UTF-8",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_CONFIG_FILE": os.devnull,
            "UV_NO_CONFIG": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_OFFLINE": "1",
            "UV_FIND_LINKS": str(self.wheels),
            "UV_PYTHON": BASE,
            "UV_CACHE_DIR": str(self.root / "uv"),
            "PIP_ROOT_USER_ACTION": "ignore",
            "PEX_ROOT": f"{place}/home/pex",
            "PIPX_HOME": f"{place}/home/pipx",
            "FLIT_ROOT_INSTALL": "1",
        }
        with self.log.open("a") as log:
            print("+", *argv, file=log, flush=True)
            subprocess.run(argv, cwd=place, env=env, stdout=log, stderr=log, check=True)

    def _compared(
        self, place: Path, install: Install, argv: list[str], env: Mapping[str, str], said: Said
    ) -> Outcome:
        gone = (str(place).strip("/"),)
        layer = self._read(str(place), str(self.root / "uv"))
        self.tree.apply(layer.replace(gone=gone), Budget("installs"))
        config = {
            "Env": [f"{name}={value}" for name, value in env.items()],
            "Cmd": argv,
            "WorkingDir": str(place / "work"),
            "User": str(os.getuid()),
        }
        metadata = ImageMetadata(subject="installs", config={"config": config})
        view = View(metadata, self.tree)
        record = Record(view)
        default = programs.observe(view, record).get("python")
        (path, *_) = python.import_paths(view, record, default) or (None,)
        module = Modules(view, path).find(install.module) if path else None
        inventory = observe(metadata, self.tree)
        return compare(install, said, path, module, inventory, self.index, place / "work")


def compare(
    install: Install,
    said: Said,
    path: ImportPath | None,
    module: Module | None,
    inventory: Inventory,
    index: Index,
    work: Path,
) -> Outcome:
    """What the model says beside what the interpreter said."""

    def judged(wanted: str) -> Verdict:
        word = f"{install.dist}{wanted}"
        found = images.judge(inventory, [parse_expectation(word)], index)
        return next(one for one in found if one.kind == "component" and one.wanted)

    stated, recorded = said.get("stated"), said.get("record")
    version = str(stated or recorded or "")
    differs = []
    if path is not None and not path.unknown and "path" in said:
        real = [os.path.normpath(os.path.join(work, one)) for one in said["path"]]
        mine = [folder.path for folder in path.folders]
        if list(dict.fromkeys(mine)) != list(dict.fromkeys(real)):
            differs.append(f"path {mine} for {real}")
    file = said.get("file") and os.path.realpath(os.path.join(work, said["file"]))
    own = f"/{module.file}" if module is not None and module.file else None
    # Of an archive the model names the archive.
    is_inside = own is not None and Path(own).is_file() and str(file).startswith(f"{own}/")
    if own != file and not is_inside and not (path and path.unknown):
        differs.append(f"file {own} for {file}")
    # Two records in one directory are one too many, whichever is found.
    torn = len(said.get("records", ())) > 1
    if "error" in said or torn or (stated and recorded and not _same(stated, recorded)):
        verdict = judged(">=0")
        word = {PASS: "FALSE PASS", UNKNOWN: "unknown"}.get(verdict.word, "right")
    else:
        verdict, other = judged(f"=={version}"), judged(f"!={version}")
        word = {PASS: "right", FAIL: "FALSE ALARM", UNKNOWN: "unknown"}.get(verdict.word, "SKIPPED")
        word = "FALSE PASS" if other.word == PASS else word
    real_text = said.get("error") or f"{version}" + (
        f", record {recorded}" if recorded != version else ""
    )
    return Outcome(install.name, word, real_text, verdict, tuple(differs))


def _same(first: str, second: str) -> bool:
    from packaging.version import Version

    return Version(first) == Version(second)


def main(words: list[str]) -> int:
    """Print the table; returns 1 where the model and the run differ."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), open_index((), os.environ))
        world.prepare()
        for install in installs():
            if words and not any(word in install.name for word in words):
                continue
            try:
                outcome = world.outcome(install)
            except (subprocess.CalledProcessError, OSError) as error:
                counts["not installed"] += 1
                lines = world.log.read_text().splitlines()[-_LAST_LINES:]
                print("not installed", install.name, error, *lines, sep="\n", flush=True)  # noqa: T201
                continue
            counts[outcome.word] += 1
            counts["differs"] += bool(outcome.differs)
            print(f"{outcome.word:11} {install.name:44} {outcome}", flush=True)  # noqa: T201
    print(", ".join(f"{count} {word}" for word, count in counts.items()))  # noqa: T201
    return int(bool({*counts} & {"FALSE PASS", "FALSE ALARM"} or counts["differs"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
