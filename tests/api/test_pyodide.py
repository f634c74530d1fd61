"""The package under Pyodide, mounted as it is, gives the answers it gives here.

`./tests/run --builds` installs Pyodide; tests/page asks the same in a browser.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolmatrix
from tests.page.conftest import module, unable

# The Node of this environment is as new as Pyodide asks for.
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
SCRIPT = """\
const [folder, packages, index, code] = process.argv.slice(2);
const { loadPyodide } = await import(folder + "/pyodide.mjs");
const python = await loadPyodide();
python.FS.mkdirTree("/package/toolmatrix");
python.FS.mount(python.FS.filesystems.NODEFS, { root: packages }, "/package/toolmatrix");
python.FS.mkdirTree("/index");
python.FS.mount(python.FS.filesystems.NODEFS, { root: index }, "/index");
python.globals.set("folder", "/index");
process.stdout.write(python.runPython(code));
"""
ASKED = """\
import sys
sys.path.insert(0, "/package")
import toolmatrix
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.factbase.index import Index
def read(name, start=0, length=None):
    with open(f"{folder}/{name}", "rb") as file:
        return file.read()[start:None if length is None else start + length]
matrix = OpenMatrix(index=Index("", read))
answer = toolmatrix.resolve("tensorflow==2.6.5", target="x86,arm,amd", matrix=matrix)
reason = toolmatrix.why_not("cuda==11.0", with_="tensorflow==2.6.5", arch="sm_86", matrix=matrix)
said = f"{answer}\\n{reason}"
said
"""


@pytest.mark.process
@pytest.mark.slow
def test_answers_are_the_same_under_pyodide(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, node = str(module("pyodide")), shutil.which("node", path=PATH)
    if node is None:
        unable("needs node: pip install '.[consumers]'")
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    index = toolmatrix.open_matrix([]).index.path
    here: dict[str, object] = {"folder": index}
    exec(ASKED, here)  # noqa: S102 - what Pyodide runs
    expected = here["said"]
    script = tmp_path / "ask.mjs"
    script.write_text(SCRIPT)
    package = str(Path(toolmatrix.__file__).parent)
    done = subprocess.run(
        [node, str(script), folder, package, index, ASKED],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
