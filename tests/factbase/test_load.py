"""What the loader refuses, word for word, and how a user's files lie on top of the built-in ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factbase.small import (
    FRONT,
    NAMES,
    bound,
    dump,
    facts,
    refused,
    said,
    statement,
    table,
    write,
)
from toolmatrix.errors import MatrixError
from toolmatrix.factbase.compile import compile_matrix
from toolmatrix.factbase.load import files, load

SELECTOR = "a selector such as `*`, `11.2`, `>=11.2,<12`, `3.6-3.9` or `absent`"
SHAPE = "`toolmatrix rule TM903` shows the layout of matrix files and the paths of their schemas"
LISTED = "components are listed in matrix.yaml, or under `components:` of the file"
GCC = {"gcc": {"as": "requires"}}


def rows(*given: dict[str, Any], columns: dict[str, Any] | None = None, **more: Any) -> str:
    """A fact file with one table."""
    return facts(tables=[table(columns=columns or GCC, rows=list(given), **more)])


# the front page


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "schema: toolmatrix.matrix/1\n",
            "",
            (
                "matrix.yaml:1:1: the matrix file has no `schema`; "
                "expected `schema: toolmatrix.matrix/1` or `schema: toolmatrix.facts/1`; "
                f"found no such key; {SHAPE}"
            ),
        ),
        (
            "matrix/1",
            "matrix/2",
            (
                "matrix.yaml:1:9: schema is not a known word; "
                "expected toolmatrix.matrix/1 | toolmatrix.facts/1; "
                f"found `toolmatrix.matrix/2`; {SHAPE}"
            ),
        ),
        (
            "date: 2026-01-02",
            "date: 2026-02-30",
            f"matrix.yaml:2:7: date is not a date; expected YYYY-MM-DD; found `2026-02-30`; {SHAPE}",
        ),
        (
            "date: 2026-01-02",
            "date: 20260102",
            f"matrix.yaml:2:7: date is not a date; expected YYYY-MM-DD; found `20260102`; {SHAPE}",
        ),
        (
            "date: 2026-01-02\n",
            "",
            f"matrix.yaml:1:1: the front page has no `date`; expected `date:`; found no such key; {SHAPE}",
        ),
        (
            "files:",
            "policies: {}\nfiles:",
            (
                "matrix.yaml:18:1: the front page has an unknown key; "
                "expected schema, date, components, aliases, targets, rules, families, files; "
                f"found `policies`; {SHAPE}"
            ),
        ),
        (
            "scheme: names, under: cuda",
            "scheme: alphabetical",
            (
                "matrix.yaml:8:31: scheme is not a known word; expected pep440 | series | names; "
                f"found `alphabetical`; {SHAPE}"
            ),
        ),
        (
            "  gcc: {title: GCC,",
            "  GCC: {title: GCC,",
            (
                "matrix.yaml:9:3: a component name must be lower case; expected a-z, 0-9, `-`, `.`, `_`; "
                "found `GCC`; rename it; `title:` is the name on display"
            ),
        ),
        (
            "cuda: {title: CUDA, scheme: pep440}",
            "cuda: {title: CUDA, scheme: pep440, under: arch}",
            (
                "matrix.yaml:7:3: a component is under itself or under an unknown component; "
                "expected the name of another component; found cuda under arch under cuda; correct `under:`"
            ),
        ),
        (
            "under: cuda",
            "under: cudo",
            (
                "matrix.yaml:8:3: a component is under itself or under an unknown component; "
                "expected the name of another component; found arch under cudo; correct `under:`"
            ),
        ),
        (
            "under: cuda",
            "grid: '>=sm_80'",
            (
                f"matrix.yaml:8:44: a selector cannot be read; expected {SELECTOR}; "
                f"found names have no order: `>=sm_80` cannot be compared; {SHAPE}"
            ),
        ),
        (
            "{machine: x86_64}",
            "{machin: x86_64}",
            f"matrix.yaml:12:19: no such component; expected `machine`?; found `machin`; {LISTED}",
        ),
        (
            "policies: {}",
            "policies: {char: signed}",
            (
                "matrix.yaml:12:67: no such component; expected a component of the front page; "
                f"found `char`; {LISTED}"
            ),
        ),
        (
            "{machine: aarch64}",
            "{machine: '>=aarch64'}",
            (
                f"matrix.yaml:16:35: a selector cannot be read; expected {SELECTOR}; "
                f"found names have no order: `>=aarch64` cannot be compared; {SHAPE}"
            ),
        ),
        (
            "widens: minor",
            "widens: major",
            (
                "matrix.yaml:14:24: widens is not a known word; expected minor | series; "
                f"found `major`; {SHAPE}"
            ),
        ),
        (
            "  - facts.yaml",
            "  - facts.yaml\n  - ./facts.yaml",
            (
                "matrix.yaml:21:5: a file is listed twice; expected each file once; found `./facts.yaml`; "
                "remove one of the two lines"
            ),
        ),
        (
            "  - facts.yaml",
            "  - matrix.yaml",
            (
                "matrix.yaml:20:5: a file is listed twice; expected each file once; found `matrix.yaml`; "
                "remove one of the two lines"
            ),
        ),
        (
            "  - facts.yaml",
            "  - fact.yaml",
            (
                "matrix.yaml:20:5: a listed file is missing; expected a file at fact.yaml; "
                "found `fact.yaml`; restore it or remove the line"
            ),
        ),
    ],
)
def test_front_pages_that_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert FRONT.count(old) == 1
    assert refused(tmp_path, front=FRONT.replace(old, new)) == message


def test_a_front_page_lists_fact_files_only(tmp_path: Path) -> None:
    assert refused(tmp_path, FRONT) == (
        "facts.yaml:1:9: schema is not a known word; expected toolmatrix.facts/1; "
        f"found `toolmatrix.matrix/1`; {SHAPE}"
    )


# sources and releases


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'at: "vendor:page@1", ',
            "",
            f"names.yaml:3:11: source `vendor` has no `at`; expected `at:`; found no such key; {SHAPE}",
        ),
        (
            'at: "vendor:page@1"',
            'at: ""',
            f"names.yaml:3:31: at must be text; expected text; found nothing; {SHAPE}",
        ),
        (
            ", read: 2026-01-01",
            "",
            f"names.yaml:3:11: source `vendor` has no `read`; expected `read:`; found no such key; {SHAPE}",
        ),
        (
            "read: 2026-01-01",
            "read: yesterday",
            f"names.yaml:3:54: read is not a date; expected YYYY-MM-DD; found `yesterday`; {SHAPE}",
        ),
        (
            "id: apps\n    component: app\n    source: vendor",
            "id: apps\n    component: app\n    source: vendr",
            f"names.yaml:20:13: no such source; expected `vendor`?; found `vendr`; {SHAPE}",
        ),
        (
            "id: apps\n    component: app\n    source: vendor\n    evidence: artifact",
            "id: apps\n    component: app\n    source: vendor\n    evidence: rumour",
            (
                "names.yaml:21:15: evidence is not a known word; "
                "expected ran | artifact | tested | stated | derived | reported | unknown; "
                f"found `rumour`; {SHAPE}"
            ),
        ),
        (
            "id: apps\n    component: app\n",
            "id: apps\n    component: ap\n",
            f"names.yaml:19:16: no such component; expected `app`?; found `ap`; {LISTED}",
        ),
        (
            "2.6.1: {}",
            "2.6.x: {}",
            (
                "names.yaml:22:43: not a version; expected a version; found `2.6.x` is not a version; "
                "releases are named one by one; a selector is for claims"
            ),
        ),
        (
            "2.6.1: {}",
            "2.6.1: 2021-09-01",
            (
                f"names.yaml:22:50: a release must be a mapping; expected `key: value` pairs; "
                f"found `2021-09-01`; {SHAPE}"
            ),
        ),
        (
            "date: 2021-08-11",
            "date: August 2021",
            f"names.yaml:22:30: date is not a date; expected YYYY-MM-DD; found `August 2021`; {SHAPE}",
        ),
        (
            "2.6.1: {}",
            "2.6.1: {yanked: maybe}",
            (
                "names.yaml:22:59: yanked is not a known word; expected true | false; "
                f"found `maybe`; {SHAPE}"
            ),
        ),
        (
            "sm_80: {rank: 80}",
            "sm_80: {}",
            (
                "names.yaml:34:16: a release of `arch` has no rank; "
                "expected `rank: N`, higher is preferred; found `sm_80`; names have no order of their own"
            ),
        ),
        (
            "rank: 80",
            "rank: high",
            (
                "names.yaml:34:30: rank must be a whole number; expected a whole number; "
                f"found `high`; {SHAPE}"
            ),
        ),
        (
            "    evidence: artifact\n    versions: {2.6.0",
            "    versions: {2.6.0",
            (
                "names.yaml:18:5: a list of releases has no `evidence`; expected `evidence:`; "
                f"found no such key; {SHAPE}"
            ),
        ),
    ],
)
def test_names_that_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert NAMES.count(old) == 1
    assert refused(tmp_path, names=NAMES.replace(old, new)) == message


def test_a_source_named_twice_with_different_contents(tmp_path: Path) -> None:
    text = facts(sources={"vendor": {"title": "Vendor", "at": "elsewhere", "read": "2026-01-01"}})
    assert refused(tmp_path, text) == (
        "names.yaml:3:3: a source is named twice with different contents; expected elsewhere; "
        "found vendor:page@1; rename one of the two"
    )


# tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            rows({"app": "2.6.0", "gc": 7}),
            ("facts.yaml:12:5: a row of `t` has an unknown key; "
            f"expected app, gcc, id, source, where, evidence, note, decides; found `gc`; {SHAPE}"),
        ),
        (
            rows({"app": "2.6.0", "date": "2021-01-01"}),
            ("facts.yaml:12:5: a row of `t` has an unknown key; "
            f"expected app, gcc, id, source, where, evidence, note, decides; found `date`; {SHAPE}"),
        ),
        (
            rows({"gcc": "7"}),
            f"facts.yaml:11:5: a row of `t` has no `app`; expected `app:`; found no such key; {SHAPE}",
        ),
        (
            rows(key="apps"),
            f"facts.yaml:6:8: no such component; expected `app`?; found `apps`; {LISTED}",
        ),
        (
            rows(columns={"gxx": {"as": "requires"}}),
            ("facts.yaml:8:5: no such component; expected a component of the front page; "
            f"found `gxx`; {LISTED}"),
        ),
        (
            rows(columns={"host": {"as": "requires", "component": "gc"}}),
            f"facts.yaml:10:18: no such component; expected `gcc`?; found `gc`; {LISTED}",
        ),
        (
            rows(columns={"gcc": {"as": "needs"}}),
            ("facts.yaml:9:11: as is not a known word; "
            "expected when | requires | limits | offers | tested | carries | names | "
            "attribute; "
            f"found `needs`; {SHAPE}"),
        ),
        (
            rows(columns={"gcc": {"as": "requires", "rule": "wheel-toolkits"}}),
            ("facts.yaml:10:13: no such rule; expected `wheel-toolkit`?; "
            f"found `wheel-toolkits`; {SHAPE}"),
        ),
        (
            rows(lists="products"),
            (
                "facts.yaml:11:10: only devices have products; expected a table with `key: device`; "
                f"found `products`; {SHAPE}"
            ),
        ),
        (
            rows({"app": "1.0"}, lists="support"),
            (
                "facts.yaml:11:5: a row of ends of support needs one date; expected one of until, ended-by; "
                f"found a mapping; {SHAPE}"
            ),
        ),
        (
            rows({"app": "1.0", "until": "2028-13"}, columns={"until": {"as": "attribute"}}, lists="support"),
            (
                "facts.yaml:12:12: not a day or a month; expected YYYY-MM-DD or YYYY-MM; "
                f"found 2028-13; {SHAPE}"
            ),
        ),
        (
            rows(columns={"note": {"as": "attribute"}}),
            ("facts.yaml:8:5: a column has a reserved name; "
            "expected another name than app, id, source, where, evidence, note, decides; "
            "found `note`; name its component with `component:`"),
        ),
        (
            facts(tables=[table(columns=GCC, rows=[], **{"stands-for": ["same-minor", "x"]})]),
            f"facts.yaml:13:5: no such rule; expected a rule of the front page; found `x`; {SHAPE}",
        ),
        (
            rows(source="vend"),
            f"facts.yaml:4:11: no such source; expected `vendor`?; found `vend`; {SHAPE}",
        ),
        (
            rows({"app": "2.6.0"}, {"app": "2.6.0"}),
            ("facts.yaml:12:5: an id is used twice; expected each id once; found `t/2.6.0`; "
            "give one of the two another `id:`"),
        ),
        (
            facts(tables=[table(columns=GCC, rows=[]), table(columns=GCC, rows=[])]),
            ("facts.yaml:12:7: an id is used twice; expected each id once; found `t`; "
            "give one of the two another `id:`"),
        ),
        (
            rows({"app": "2.6.0", "id": "a#b"}),
            ("facts.yaml:12:9: an id cannot hold `#`; expected letters, digits, `-`, `.`, `/`; "
            f"found `a#b`; {SHAPE}"),
        ),
        (
            rows({"app": "2.6.0", "gcc": ">=seven"}),
            (f"facts.yaml:12:10: a selector cannot be read; expected {SELECTOR}; "
            f"found `seven` is not a version; {SHAPE}"),
        ),
        (
            rows({"app": "2.6.0", "gcc": {"when": {"python": "3.9"}}}),
            f"facts.yaml:13:7: a cell has no `is`; expected `is:`; found no such key; {SHAPE}",
        ),
        (
            rows({"app": "2.6.0", "gcc": {"is": "7", "when": {"pyton": "3.9"}}}),
            f"facts.yaml:15:9: no such component; expected `python`?; found `pyton`; {LISTED}",
        ),
        (
            rows({"app": "2.6.0", "gcc": ["7", "8"]}),
            ("facts.yaml:14:7: two parts of a cell apply at the same time; "
            "expected `{is: SELECTOR, when: {...}}`; found `8`; "
            "alternatives are one selector, separated by spaces"),
        ),
        (
            rows({"app": "2.6.0", "gcc": "7", "decides": False}),
            ("facts.yaml:13:14: a fact with `decides: false` needs a reason; expected `note:` beside it; "
            f"found no such key; {SHAPE}"),
        ),
        (
            rows({"app": "2.6.0", "gcc": "7"}).replace("  where: table 1\n", ""),
            ("facts.yaml:11:5: a row of `t` has no `where`; expected `where:` in the row or in its table; "
            f"found no such key; {SHAPE}"),
        ),
        (
            rows({"app": "2.6.0", "gcc": "6"}),
            ("facts.yaml:12:10: `t/2.6.0#gcc` names a version of gcc that was never released; "
            "expected a known release of gcc, such as 9; found `6`; "
            "correct it, add the release with its source, or say `unreleased: true`"),
        ),
        (
            rows({"app": "2.6.0", "gcc": {"is": "7", "when": {"cuda": "9.1"}}}),
            ("facts.yaml:15:15: `t/2.6.0#gcc` names a version of cuda that was never released; "
            "expected a known release of cuda, such as 11.1; found `9.1`; "
            "correct it, add the release with its source, or say `unreleased: true`"),
        ),
        (
            rows({"app": "2.6.4", "gcc": "7"}),
            ("facts.yaml:11:10: `t/2.6.4#gcc` names a version of app that was never released; "
            "expected a known release of app, such as 2.6.5; found `2.6.4`; "
            "correct it, add the release with its source, or say `unreleased: true`"),
        ),
        (
            rows({"app": ">=2.6", "date": "2021-01-01"}, defines="releases"),
            ("facts.yaml:11:10: not a version; expected a version; found `>=2.6` is not a version; "
            "releases are named one by one; a selector is for claims"),
        ),
        (
            facts(tables=[table(key="arch", columns=GCC, rows=[{"arch": "sm_80", "gcc": "7"}])])
            .replace("  columns:", "  stands-for: same-minor\n  columns:"),
            ("facts.yaml:13:10: `t/sm_80#gcc` cannot be widened by `same-minor`; "
            "expected a subject whose releases are versions; "
            "found arch, whose releases are names; remove the rule from `stands-for:`"),
        ),
        (
            rows(**{"requirements-read": {"unread": "2.6.0"}}),
            ("facts.yaml:12:5: requirements that were read has no `others`; expected `others:`; "
            f"found no such key; {SHAPE}"),
        ),
        (
            rows(**{"requirements-read": {"others": ["six", "Jinja2"]}}),
            ("facts.yaml:14:7: not the name of a package; expected its normalized name (PEP 503): "
            f"a-z, 0-9 and `-`; found `Jinja2`; {SHAPE}"),
        ),
        (
            rows(**{"requirements-read": {"others": [], "unread": ">x"}}),
            f"facts.yaml:13:13: a selector cannot be read; expected {SELECTOR}; found `x` is not a version; {SHAPE}",
        ),
        *(
            (
                facts(tables=[{key: value for key, value in table(columns=GCC, rows=[]).items() if key != left}]),
                f"facts.yaml:3:3: a table has no `{left}`; expected `{left}:`; found no such key; {SHAPE}",
            )
            for left in ("id", "source", "evidence", "key", "columns", "rows")
        ),
    ],
)  # fmt: skip
def test_tables_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text) == message


# statements and data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            facts(statements=[statement(wants={"gcc": "7"})]),
            ("facts.yaml:8:3: a statement has an unknown key; expected id, evidence, source, where, "
            "note, when, needs, requires, limits, fails, offers, tested, symptom, read, "
            "says, topic, stands-for, decides, rule, "
            f"unreleased; found `wants`; {SHAPE}"),
        ),
        (
            facts(statements=[statement()]),
            ("facts.yaml:3:3: a statement says nothing; "
            f"expected one or more of needs, requires, limits, fails, offers, tested; found none of them; {SHAPE}"),
        ),
        (
            facts(statements=[statement(when={}, needs=["gcc"])]),
            ("facts.yaml:6:9: a statement needs a subject; expected `when: {component: selector}`; "
            f"found a mapping; {SHAPE}"),
        ),
        (
            facts(statements=[statement(needs=["gcc", ["python", "pyton"]])]),
            f"facts.yaml:11:7: no such component; expected `python`?; found `pyton`; {LISTED}",
        ),
        (
            facts(statements=[statement(needs=[[]])]),
            ("facts.yaml:9:5: a need names no component; expected a component or a list of them; "
            f"found a list; {SHAPE}"),
        ),
        (
            facts(statements=[statement(requires={"gcc": "7"}), statement(requires={"gcc": "8"})]),
            ("facts.yaml:11:3: an id is used twice; expected each id once; found `s`; "
            "give one of the two another `id:`"),
        ),
        (
            facts(statements=[statement(requires={"gcc": "7"}, limits={"gcc": "8"})]),
            ("facts.yaml:11:10: an id is used twice; expected each id once; found `s#gcc`; "
            "give one of the two another `id:`"),
        ),
        (
            facts(
                data=[
                    {"id": "d", "source": "vendor", "evidence": "ran", "columns": ["a"], "rows": [["1", "2"]],
                     "where": "w"}
                ]
            ),
            "facts.yaml:9:5: a row is longer than its columns; expected 1 cells; found 2 cells; " + SHAPE,
        ),
        *(
            (
                facts(statements=[{key: value for key, value in statement(needs=["gcc"]).items() if key != left}]),
                f"facts.yaml:3:3: a statement has no `{left}`; expected `{left}:`; found no such key; {SHAPE}",
            )
            for left in ("id", "source", "where", "evidence", "when")
        ),
        (
            "schema: toolmatrix.facts/1\nfiles: []\n",
            ("facts.yaml:2:1: the fact file has an unknown key; "
            "expected schema, sources, channels, releases, tables, statements, data, components; "
            f"found `files`; {SHAPE}"),
        ),
    ],
)  # fmt: skip
def test_statements_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text) == message


# files on top of others


def overlaid(folder: Path, text: str, overlay: str) -> list[str]:
    front = write(folder, text)
    (folder / "own.yaml").write_text(overlay)
    return bound(compile_matrix(load([front, str(folder / "own.yaml")])))


def test_a_row_of_the_same_id_is_replaced_with_all_it_said(tmp_path: Path) -> None:
    columns = {**GCC, "python": {"as": "limits"}}
    below = rows(
        {"app": "2.6.0", "gcc": "7", "python": "3.6"}, {"app": "2.7.0", "gcc": "8"}, columns=columns
    )
    above = rows({"app": "2.6.0", "gcc": "9"}, columns=columns)
    assert overlaid(tmp_path, below, above) == [
        "app 2.6.0: requires gcc 9 (tested)",
        "app 2.7.0: requires gcc 8 (tested)",
    ]
    silent = rows({"app": "2.6.0"}, columns=columns)
    assert overlaid(tmp_path, below, silent) == ["app 2.7.0: requires gcc 8 (tested)"]


def test_a_replaced_row_takes_its_release_along(tmp_path: Path) -> None:
    below = rows({"app": "2.8.1", "id": "new"}, defines="releases")
    above = rows({"app": "2.8.0", "id": "new"}, defines="releases")
    front = write(tmp_path, below)
    (tmp_path / "own.yaml").write_text(above)
    found = load([front, str(tmp_path / "own.yaml")]).releases
    assert ("app", "2.8.0") in found
    assert ("app", "2.8.1") not in found


def test_a_row_that_no_longer_defines_takes_its_release_along(tmp_path: Path) -> None:
    front = write(tmp_path, rows({"app": "2.8.1", "id": "new"}, defines="releases"))
    (tmp_path / "own.yaml").write_text(rows({"app": "2.7.0", "id": "new", "gcc": "8"}))
    assert ("app", "2.8.1") not in load([front, str(tmp_path / "own.yaml")]).releases


def test_a_file_on_top_may_add_components_below_known_ones(tmp_path: Path) -> None:
    own = facts(
        components={"plugin": {"title": "Plugin", "scheme": "pep440", "under": "cuda"}},
        releases=[
            {"id": "p", "component": "plugin", "source": "vendor", "evidence": "ran", "where": "w",
             "versions": {"1.0": {}}}
        ],
        statements=[{**statement(requires={"cuda": "12.0.0"}), "when": {"plugin": "1.0"}}],
    )  # fmt: skip
    assert overlaid(tmp_path, facts(), own) == ["plugin 1.0: requires cuda 12.0.0 (stated)"]


def test_a_file_on_top_may_not_change_a_scheme(tmp_path: Path) -> None:
    own = facts(components={"gcc": {"title": "GCC", "scheme": "names"}})
    with pytest.raises(MatrixError) as caught:
        overlaid(tmp_path, facts(), own)
    assert said(caught.value).replace(f"{tmp_path}/", "") == (
        "own.yaml:4:5: the scheme of `gcc` cannot be changed; expected `scheme: series`; "
        "found `scheme: names`; facts about its releases would become unreadable"
    )


def test_a_front_page_on_top_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one = write(tmp_path / "one", rows({"app": "2.6.0", "gcc": "7"}))
    other = write(tmp_path / "other", rows({"app": "2.7.0", "gcc": "8"}))
    assert bound(compile_matrix(load([one, other]))) == ["app 2.7.0: requires gcc 8 (tested)"]


def test_files_may_use_names_of_files_behind_them(tmp_path: Path) -> None:
    front = FRONT.replace("  - names.yaml\n  - facts.yaml", "  - facts.yaml\n  - names.yaml")
    path = write(tmp_path, rows({"app": "2.6.0", "gcc": "7"}), front=front)
    assert bound(compile_matrix(load([path]))) == ["app 2.6.0: requires gcc 7 (tested)"]


def test_the_files_of_a_front_page_and_of_a_fact_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert files(path) == [path, str(tmp_path / "names.yaml"), str(tmp_path / "facts.yaml")]
    assert files(str(tmp_path / "facts.yaml")) == [str(tmp_path / "facts.yaml")]


def test_a_front_page_may_name_the_families_whose_packages_are_known(tmp_path: Path) -> None:
    families = {
        "packages": {"cuda-toolkit": "cuda"},
        "families": {
            "one": {"kind": "index", "packages": {"app": {}, "app-cu12": {"component": "app"}}},
            "two": {"kind": "independent", "packages": ["plain"]},
            "three": {"kind": "tree"},
        },
    }
    front = FRONT.replace("files:", "families: families.yaml\nfiles:")
    (tmp_path / "families.yaml").write_text(dump(families))
    path = write(tmp_path, front=front)
    assert load([path]).packages == {
        "cuda-toolkit": "cuda",
        "app": "app",
        "app-cu12": "app",
        "plain": "plain",
    }
    assert files(path)[-1] == str(tmp_path / "families.yaml")
    (tmp_path / "families.yaml").unlink()
    with pytest.raises(MatrixError, match="a listed file is missing"):
        load([path])
