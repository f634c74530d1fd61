"""The law: the import path that is read out of files is the one that the interpreter prints, and so is the module."""

from __future__ import annotations

import itertools
import json
import os
import random
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import DIRECTORY, FILE, LINK, Entry, Layer, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.entry import starts
from toolmatrix.inspection.imports import ImportPath, import_path
from toolmatrix.inspection.modules import Module, Modules
from toolmatrix.inspection.record import View

pytestmark = [pytest.mark.process, pytest.mark.slow]

_BASES = [Path(sys.base_prefix) / "bin/python3", Path("/usr/bin/python3")]
PRINT = (
    "import importlib.util, json, sys; found = importlib.util.find_spec('pack');"
    "print(json.dumps([sys.path, found.origin if found else None, sys.version.split()[0]]))"
)
COUNT = 120


class Case(NamedTuple):
    """How an interpreter is started."""

    python: str
    pythonpath: str | None
    options: tuple[str, ...]
    variables: tuple[str, ...]
    user: tuple[str, ...]
    site: tuple[str, ...]


PYTHONPATHS = (None, "", "{}/a", "{}/b:{}/a", ":{}/b", "a:{}/gone", "{}/a/:{}/a", "{}/venv/lib")
OPTIONS = ((), ("-E",), ("-s",), ("-I",), ("-P",), ("-S",), ("-Es",), ("-u", "-X", "utf8"))
VARIABLES = (
    *((), ("PYTHONNOUSERSITE=1",), ("PYTHONNOUSERSITE=",), ("PYTHONUSERBASE={}/base",)),
    ("PYTHONSAFEPATH=1",),
)
LINES = {
    "path": "{}/c\n",
    "relative": "../../../../c\n",
    "missing": "{}/gone\n# {}/c\n\n",
    "insert": "import sys; sys.path.insert(0, '{}/c')\n",
    "append": "import sys; sys.path.append('{}/c')\n",
    "add": "import site; site.addsitedir('{}/c')\n",
    "shim": "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local';"
    " enabled and __import__('_distutils_hack').add_shim(); \n",
    "first": "import sys; sys.__plen = len(sys.path)\n{}/d\nimport sys; new=sys.path[sys.__plen:];"
    " del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); sys.path[p:p]=new;"
    " sys.__egginsert = p+len(new)\n",
    "finder": "import __editable___pack_finder; __editable___pack_finder.install()\n",
}
FINDER = "MAPPING: dict[str, str] = {{'other': '{}/d/pack'}}\n\n\ndef install():\n    pass\n"
SITES = (
    (),
    ("path",),
    ("missing", "relative"),
    ("insert",),
    ("append", "shim"),
    ("first",),
    ("add",),
)
USERS = ((), ("path",), ("insert", "missing"), ("first", "finder"))


def put(path: Path, text: str = "") -> None:
    """A file with the directories above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def site_of(prefix: Path) -> Path:
    """The directory of packages of an environment."""
    (site,) = prefix.glob("lib/python*/site-packages")
    return site


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Environments by the interpreter that they are of, each in a folder with packages to find."""
    made = {}
    for number, base in enumerate(_BASES):
        if base.exists():
            root = tmp_path_factory.mktemp(f"world{number}")
            for name, options in (("venv", ()), ("shared", ("--system-site-packages",))):
                command = (base, "-m", "venv", "--without-pip", *options, root / name)
                subprocess.run(command, check=True, env={})
            (root / "linked").mkdir()
            (root / "linked/python3").symlink_to(root / "venv/bin/python3")
            for folder in ("a", "b/pack", "c", "d/pack", "work/a"):
                put(root / folder / ("__init__.py" if folder.endswith("pack") else "pack.py"))
            put(root / "work/pack/notes.txt")
            made[str(base)] = root
    return made


def cases() -> list[tuple[str, Case]]:
    """Some of all combinations, the same ones each time."""
    every = itertools.product(
        *(("venv/bin", "shared/bin", "linked", ""), PYTHONPATHS, OPTIONS, VARIABLES, USERS, SITES)
    )
    picked = random.Random(7).sample(list(every), COUNT)
    bases = [str(base) for base in _BASES if base.exists()]
    return [(bases[number % len(bases)], Case(*case)) for number, case in enumerate(picked)]


def prepare(root: Path, place: Path, base: str, case: Case) -> dict[str, str]:
    """Write the files of a case into a folder of its own; its variables."""
    user = place / "home/.local"
    for variable in case.variables:
        if variable.startswith("PYTHONUSERBASE"):
            user = place / "base"
    series = site_of(root / "venv").parent.name
    lines = {(user / "lib" / series / "site-packages"): case.user}
    if case.python.endswith("bin"):
        (place / case.python).mkdir(parents=True)
        (place / case.python / "python3").symlink_to(os.path.realpath(base))
        (place / case.python).parent.joinpath("pyvenv.cfg").write_text(
            (root / case.python).parent.joinpath("pyvenv.cfg").read_text()
        )
        lines[place / Path(case.python).parent / "lib" / series / "site-packages"] = case.site
    for folder, names in lines.items():
        folder.mkdir(parents=True)
        for name in names:
            put(folder / f"{name}.pth", LINES[name].replace("{}", str(root)))
        if "finder" in names:
            put(folder / "__editable___pack_finder.py", FINDER.format(root))
    path = {"": os.path.dirname(base), "linked": str(root / "linked")}.get(
        case.python, str(place / case.python)
    )
    variables = [f"HOME={place}/home", f"PATH={path}"]
    variables += [variable.replace("{}", str(place)) for variable in case.variables]
    if case.pythonpath is not None:
        variables.append(f"PYTHONPATH={case.pythonpath.replace('{}', str(root))}")
    return dict(variable.split("=", 1) for variable in variables)


def tree(deep: list[Path], shallow: list[Path]) -> Tree:
    """The files below some folders, and those in others."""
    entries: dict[str, Entry] = {}
    walks = [step for root in deep for step in os.walk(root)]
    walks += [next(os.walk(root)) for root in shallow]
    own = {str(root) for root in shallow}
    for folder, names, files in walks:
        if folder:
            entries[folder] = Entry(DIRECTORY, mode=0o755)
            for name in (*names, *files):
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    entries[path] = Entry(LINK, link=os.readlink(path))
                elif os.path.isfile(path):
                    # What the machine runs at each start is its own affair.
                    if (
                        folder in own
                        and name.endswith(".pth")
                        and "import " in Path(path).read_text()
                    ):
                        continue
                    keep = name.endswith((".pth", ".cfg", "_finder.py", "customize.py"))
                    content = Path(path).read_bytes() if keep else None
                    mode = stat.S_IMODE(os.stat(path).st_mode)
                    entries[path] = Entry(FILE, mode=mode, size=1, content=content)
    layer = tuple((path.strip("/"), entry) for path, entry in entries.items())
    result = Tree()
    result.apply(Layer(digest="", diff_id="", entries=layer), Budget("files"))
    return result


def computed(
    files: Tree, case: Case, env: dict[str, str], work: Path, version: str
) -> tuple[ImportPath, Module | None]:
    """What the model says."""
    config = {
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Cmd": ["python3", *case.options, "-c", PRINT],
        "WorkingDir": str(work),
    }
    view = View(ImageMetadata(subject="files", config={"config": config}), files)
    path = import_path(view, next(starts(view)), version)
    module = Modules(view, path).find("pack")
    assert not path.unknown
    return path, module


def test_the_path_is_the_one_that_the_interpreter_prints(
    worlds: dict[str, Path], tmp_path: Path
) -> None:
    everything = cases()
    assert len(everything) >= 60

    def ran(number: int) -> tuple[dict[str, str], str]:
        base, case = everything[number]
        env = prepare(worlds[base], tmp_path / str(number), base, case)
        command = ("python3", *case.options, "-c", PRINT)
        program = os.path.join(env["PATH"], "python3")
        work = worlds[base] / "work"
        ended = subprocess.run(
            command,
            executable=program,
            env=env,
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return env, ended.stdout

    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(ran, range(len(everything))))
    for number, ((base, case), (env, output)) in enumerate(zip(everything, outputs, strict=True)):
        printed, origin, version = json.loads(output)
        root = worlds[base]
        files = tree([root, tmp_path / str(number)], _library(base))
        path, module = computed(files, case, env, root / "work", version)
        work = str(root / "work")
        # A venv runs the lines of its directory twice, and `site` makes paths absolute.
        wanted = list(dict.fromkeys(os.path.normpath(os.path.join(work, one)) for one in printed))
        assert list(dict.fromkeys(folder.path for folder in path.folders)) == wanted, case
        file = f"/{module.file}" if module is not None and module.file else None
        assert file == (origin and os.path.realpath(os.path.join(work, origin))), case


def _library(base: str) -> list[Path]:
    real = Path(os.path.realpath(base))
    series = real.name
    above = real.parent.parent
    library = above / "lib" / series
    folders = [real.parent, library, library / "site-packages", above / "lib/python3/dist-packages"]
    folders += [Path("/etc", series), above / "local/lib" / series / "dist-packages"]
    return [folder for folder in folders if folder.is_dir()]
