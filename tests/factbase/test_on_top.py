"""Files on top of a matrix that was compiled before: what is kept of it makes the same index as all of it anew."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.factbase.small import facts, said, statement, table, write
from tests.factbase.test_minimums import BROKE, RULE
from tests.factbase.test_store import Home, damage, home, wheel
from tests.factbase.test_variants import CHANNELS, COLUMNS, MORE_NAMES, ROWS, RUNS, WITH_VARIANTS
from toolmatrix import resources
from toolmatrix.errors import MatrixError
from toolmatrix.factbase import compile as compiling
from toolmatrix.factbase import store, yamlfile
from toolmatrix.factbase.compiled import Compiled
from toolmatrix.factbase.model import Matrix
from toolmatrix.factbase.yamlfile import YamlNode

__all__ = ("home", "wheel")

OWN = {"own": {"title": "Own", "at": "own:notes@1", "read": "2026-01-01"}}

COUNTED = WITH_VARIANTS.replace(
    "gcc: {title: GCC, scheme: series}", "gcc: {title: GCC, scheme: series, major: 1}"
).replace("rules:\n", "rules:\n" + RULE)
RELEASES = {
    "app": ("apps", ("2.6.0", "2.6.1", "2.6.2", "2.7.0", "2.8.0")),
    "cuda": ("toolkits", ("11.2.0", "11.2.2", "11.3.1", "12.0.0", "13.0.0")),
    "gcc": ("gccs", ("7", "8", "9", "10")),
    "python": ("pythons", ("3.6", "3.7", "3.9", "3.10")),
}
SELECTORS = {
    "app": ("*", "2.6.0", ">=2.6.1", "2.6.0 2.7.0"),
    "cuda": ("11.2", ">=11.2", "<12", "absent", "12.0.0"),
    "gcc": (">=8", "8", "<9", "9", "absent"),
    "python": (">=3.7", "3.6-3.7", "3.9"),
    "arch": ("sm_80", "sm_80 sm_86"),
}
EVIDENCE = ("artifact", "stated", "tested", "derived")


class RandomFacts:
    """Fact files made at random: mostly what can be compiled, sometimes what cannot."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.on_top = False

    def rarely(self) -> bool:
        return self.on_top and self.random.random() < 0.1

    def origin(self) -> dict[str, str]:
        source = self.random.choice(["vendor", "later"])
        return {"source": source, "evidence": self.random.choice(EVIDENCE), "where": "here"}

    def selector(self, component: str) -> str:
        known = ("99",) if self.rarely() and self.random.random() < 0.3 else SELECTORS[component]
        return self.random.choice(known)

    def day(self) -> str:
        return f"{self.random.randint(2018, 2025)}-0{self.random.randint(1, 9)}-11"

    def statement(self) -> dict[str, Any]:
        subject, other = self.random.sample([*SELECTORS], 2)
        kind = self.random.choice(["requires", "limits", "offers", "tested"])
        # What has the id of a release takes its place, and nobody released that any more.
        name = "gccs/8" if self.rarely() else f"s{self.random.randint(1, 6)}"
        made = statement(id=name, when={subject: self.selector(subject)})
        more = {"stands-for": "same-minor"} if subject == "app" else {}
        wider = more if self.random.random() < 0.3 else {}
        return {**made, **self.origin(), kind: {other: self.selector(other)}, **wider}

    def table(self) -> dict[str, Any]:
        columns = {
            "gcc": {"as": self.random.choice(["limits", "tested", "requires"])},
            "cuda": {"as": self.random.choice(["limits", "tested", "carries", "names"])},
        }
        rows = [
            {"app": app, "gcc": self.selector("gcc"), "cuda": self.selector("cuda")}
            for app in self.random.sample(["2.6.0", "2.6.1", "2.7.0"], 2)
        ]
        name = self.random.choice(["t1", "t2"])
        return {**table(id=name, columns=columns, rows=rows), **self.origin()}

    def archs(self) -> dict[str, Any]:
        key = self.random.choice(["device", "cuda"])
        names = ("8.0", "8.6") if key == "device" else ("11.2.0", "12.0.0")
        rows = [{key: name, "arch": self.selector("arch")} for name in names]
        return {**RUNS, "id": f"archs-{key}", "key": key, "rows": rows}

    def builds(self) -> dict[str, Any]:
        rows = self.random.sample(ROWS, self.random.randint(1, len(ROWS)))
        made = table(id="builds", defines="variants", columns=COLUMNS, rows=rows)
        return {**made, **self.origin(), "extends": self.random.random() < 0.5}

    def broke(self) -> dict[str, Any]:
        rows = [{"python": "3.9", "known": self.day(), "breaks": "much"}]
        return {**table(**BROKE, rows=rows), **self.origin(), "id": "broke"}

    def releases(self) -> dict[str, Any]:
        component = self.random.choice([*RELEASES])
        name, known = RELEASES[component]
        names = [*known] if self.random.random() < 0.5 else self.random.sample(known, 3)
        versions = {version: {"date": self.day()} for version in names}
        name = name if self.rarely() else f"own-{component}"
        return {"id": name, "component": component, "versions": versions, **self.origin()}

    def text(self, pieces: int, *, on_top: bool) -> str:
        """A fact file of some statements, tables and releases."""
        self.on_top = on_top
        makers = {
            self.statement: "statements",
            self.releases: "releases",
            **dict.fromkeys((self.table, self.archs, self.builds, self.broke), "tables"),
        }
        made: dict[str, dict[str, Any]] = {"statements": {}, "releases": {}, "tables": {}}
        weights = (4, 2, 3, 1, 1, 1)
        for make in self.random.choices([*makers], weights, k=pieces):
            fact = make()
            made[makers[make]][fact["id"]] = fact
        more: dict[str, Any] = {} if on_top else {"channels": CHANNELS}
        if self.rarely():
            later = {"title": "Later", "at": "vendor:page@2", "read": self.day()}
            more["sources"] = {"later": later}
        if self.rarely():
            more["components"] = {"more": {"title": "More", "scheme": "pep440"}}
        return facts(**{name: [*part.values()] for name, part in made.items()}, **more)


def result(paths: list[str], cache: str = "") -> dict[str, bytes] | str:
    """The files of an index, or what the error says."""
    try:
        return store.build(paths, {}, cache)
    except MatrixError as error:
        return said(error)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Of how many components each compile is, None of all."""
    counts: list[int | None] = []
    compile_matrix = compiling.compile_matrix

    def counted(matrix: Matrix, only: set[str] | None = None) -> Compiled:
        counts.append(None if only is None else len(only))
        return compile_matrix(matrix, only)

    monkeypatch.setattr(compiling, "compile_matrix", counted)
    return counts


@pytest.mark.slow
def test_a_file_on_top_makes_the_same_index_as_a_full_compile(
    home: Home, tmp_path: Path, compiled: list[int | None]
) -> None:
    own = tmp_path / "own.yaml"
    paths = [home.front, str(own)]
    seen: Counter[str] = Counter()
    for seed in range(12):
        maker = RandomFacts(seed)
        write(home.data, maker.text(12, on_top=False), front=COUNTED, names=MORE_NAMES)
        if isinstance(result([home.front]), str):
            continue
        store.open_index((), home.env)
        for _ in range(12):
            own.write_text(maker.text(maker.random.randint(1, 3), on_top=True))
            wanted = result(paths)
            compiled.clear()
            assert result(paths, str(home.cache)) == wanted, seed
            how = "whole" if None in compiled else "part"
            seen["refused" if isinstance(wanted, str) else how] += 1
    assert min(seen[one] for one in ("refused", "whole", "part")) > 10


def on_top(home: Home, tmp_path: Path, text: str) -> list[str]:
    """The paths of a matrix that was compiled, and of a file on top."""
    store.open_index((), home.env)
    own = tmp_path / "own.yaml"
    own.write_text(text)
    return [home.front, str(own)]


@pytest.mark.usefixtures("wheel")
def test_a_second_file_on_top_of_a_wheel_reads_no_file_below(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[int | None]
) -> None:
    paths = on_top(home, tmp_path, facts(statements=[statement(id="own", limits={"gcc": "8"})]))
    result(paths, str(home.cache))
    read: list[str] = []
    parse = yamlfile.read

    def noted(path: str) -> YamlNode:
        read.append(path)
        return parse(path)

    monkeypatch.setattr(yamlfile, "read", noted)
    compiled.clear()
    result(paths, str(home.cache))
    assert {*read} == {*paths}
    assert compiled == [1]


def test_an_error_of_a_file_below_has_its_place(home: Home, tmp_path: Path) -> None:
    # It takes the place of the release that a statement below names.
    text = facts(statements=[statement(id="gccs/8", limits={"python": "3.9"})])
    paths = on_top(home, tmp_path, text)
    for _ in range(2):
        message = result(paths, str(home.cache))
        assert message == result(paths)
        assert str(message).startswith(f"{home.data}/facts.yaml:")


@pytest.mark.parametrize("file", ["model-*", "index-*/components/app.json"])
def test_a_damaged_entry_counts_as_not_there(home: Home, tmp_path: Path, file: str) -> None:
    paths = on_top(home, tmp_path, facts(statements=[statement(id="own", limits={"gcc": "8"})]))
    wanted = result(paths, str(home.cache))
    (name,) = home.cache.glob(file)
    damage(name)
    assert result(paths, str(home.cache)) == wanted == result(paths)


def test_models_of_a_few_states_are_kept(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MAX_INDEXES", 2)
    paths = on_top(home, tmp_path, facts())
    for number in range(4):
        write(home.data, facts(statements=[statement(id=f"s{number}", limits={"gcc": "8"})]))
        result(paths, str(home.cache))
    assert len([*home.cache.glob("model-*")]) == 2


def released(*statements: dict[str, Any], **versions: str) -> str:
    """A file with statements, and one release of each of some components."""
    origin = {"source": "own", "evidence": "artifact", "where": "here"}
    releases = [
        {
            "id": f"own-{component}",
            "component": component,
            "versions": {version: {"date": "2021-01-01", "rank": 1}},
            **origin,
        }
        for component, version in versions.items()
    ]
    return facts(sources=OWN, releases=releases, statements=[*statements])


BOUND = statement(id="own", source="own", when={"tensorflow": "2.6.5"}, limits={"gcc": ">=9"})


@pytest.mark.long
@pytest.mark.slow
def test_a_file_on_top_of_the_matrix_makes_the_same_index(
    tmp_path: Path, cache: str, compiled: list[int | None]
) -> None:
    env = {"XDG_CACHE_HOME": cache}
    store.open_index((), env)
    own = tmp_path / "own.yaml"
    own.write_text(released(BOUND, numpy="1.19.99", cuda="99.0.0", device="99.0"))
    paths = [os.path.join(resources.matrix_root(), "matrix.yaml"), str(own)]
    wanted = result(paths)
    assert isinstance(wanted, dict)
    for _ in range(2):
        compiled.clear()
        assert result(paths, store.cache_folder(env)) == wanted
        assert None not in compiled
