"""`toolmatrix matrix`: grids, lists of releases and the cells of a CI matrix, in every format."""

from __future__ import annotations

import csv
import html.parser
import io
import shlex
from itertools import product

import pytest

from tests.cli.conftest import Cli, Tty
from tests.cli.transcript import check, check_without, read

GRID = "matrix --rows cuda --cols arch"
CELLS = "matrix --rows app --cols python,gcc --cells --where 'app>=2'"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("grid", GRID),
        ("csv", f"{GRID} --format csv"),
        ("md", f"{GRID} --format md"),
        ("html", f"{GRID} --format html"),
        ("json", f"{GRID} --format json"),
        ("where", f"{GRID} --where 'cuda>=11' --where 'arch==sm_80 sm_86'"),
        ("tested", "matrix --rows app --cols gcc"),
        ("releases", "matrix --rows cuda"),
        ("releases-csv", "matrix --rows cuda --format csv"),
        ("releases-json", "matrix --rows cuda --json"),
        ("cells", CELLS),
        ("cells-two-targets", f"{CELLS} --target x86,arm --with cuda==11.2.2"),
    ],
)
def test_golden(small: Cli, name: str, line: str) -> None:
    assert check(small, name, line).code == 0


@pytest.mark.parametrize("form", ["tty", "ascii", "narrow"])
def test_golden_of_forms(small: Cli, form: str) -> None:
    check(small, "grid", GRID, form)


@pytest.mark.parametrize("line", [GRID, "matrix --rows cuda", f"{GRID} --format csv"])
def test_colour_and_talk_are_all_that_is_left_out(small: Cli, line: str) -> None:
    check_without(small, line)


@pytest.mark.parametrize("width", [20, 26, 40, 80])
def test_a_grid_is_as_wide_as_its_terminal_and_whole(small: Cli, width: int) -> None:
    """In blocks of columns, each with the rows' names and below a word which they are; a pipe gets rows whole."""
    piped = small(*shlex.split(GRID), COLUMNS=str(width)).out
    out = small(*shlex.split(GRID), screen=Tty, COLUMNS=str(width), NO_COLOR="1").out
    whole = [line.split() for line in piped.partition("cells:")[0].splitlines()]
    lines = out.partition("cells:")[0].splitlines()
    heads = [line for line in lines if line.startswith("columns ")]
    blocks = out.partition("cells:")[0].strip("\n").split("\n\n") if heads else [out]
    assert max(map(len, lines)) <= max(width, len("cuda 11.1  sm_70"))
    if not heads:
        assert lines == piped.partition("cells:")[0].splitlines()
        return
    rows = [line.split() for line in blocks[0].splitlines()[1:]]
    for block in blocks[1:]:
        for row, line in zip(rows, block.splitlines()[1:], strict=True):
            # Behind the name of the row, which its head lacks.
            row += line.split()[2:] if line[0] != " " else line.split()
    assert rows == whole
    count = len(whole[0])
    assert heads[-1].endswith(f" to {count} of {count}")


class Table(html.parser.HTMLParser):
    """The cells of a table, row by row; every tag must be closed in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "wbr"):
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            assert dict(attrs).get("scope") if tag == "th" else dict(attrs).get("class")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] in (["td"], ["th"]):
            self.rows[-1][-1] += data


def test_every_format_says_the_same(small: Cli) -> None:
    rows = list(csv.reader(io.StringIO(read(small, f"{GRID} --format csv").out)))
    page = Table()
    page.feed(read(small, f"{GRID} --format html").out)
    assert page.open == []
    assert page.rows == rows
    marked = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in read(small, f"{GRID} --format md").out.partition("\n\n")[0].splitlines()
    ]
    assert marked[1] == ["---"] * len(rows[0])
    assert [marked[0], *marked[2:]] == rows
    grid = small(*shlex.split(GRID), "--json").json()["grid"]
    said = [[part["row"], *(cell["value"] for cell in part["cells"].values())] for part in grid]
    assert said == rows[1:]


def test_every_combination_is_a_cell_once(small: Cli) -> None:
    """Included and excluded cells are together the product of the sides, and resolve agrees with each."""
    told = small(*shlex.split(CELLS), "--json").json()
    sides = (["2.0.0", "2.1.0", "2.1.3"], ["3.6", "3.8", "3.9", "3.12"], ["7", "8", "9"])
    included = [(one["app"], one["python"], one["gcc"]) for one in told["include"]]
    excluded = [tuple(one["cell"][name] for name in told["varied"]) for one in told["excluded"]]
    assert sorted([*included, *excluded]) == sorted(product(*sides))
    assert told["summary"] == {"included": len(included), "excluded": len(excluded)}
    for app, python, gcc in [*included, *excluded]:
        code = small("resolve", f"app=={app}", f"python=={python}", f"gcc=={gcc}").code
        # A cell that no fact decides is tried.
        assert (code == 1) == ((app, python, gcc) not in included)


def test_the_reason_of_an_excluded_cell_is_about_that_cell(small: Cli) -> None:
    for one in small(*shlex.split(CELLS), "--json").json()["excluded"]:
        assert one["facts"]
        assert f"app {one['cell']['app']} does not go with python" in one["reason"]
        assert all(one["cell"]["app"] in fact for fact in one["facts"])


def test_the_sides_may_stand_in_any_order(small: Cli) -> None:
    one = small("matrix", "--rows", "cuda", "--cols", "arch", "--json").json()["grid"]
    other = small("matrix", "--rows", "arch", "--cols", "cuda", "--all", "--json").json()["grid"]
    turned = {part["row"]: part["cells"] for part in other}
    for part in one:
        for arch, cell in part["cells"].items():
            for release in part["releases"]:
                assert turned[arch][release]["value"] == cell["value"]


def test_a_list_that_nobody_read_refuses_nothing(real: Cli) -> None:
    """The packages of CentOS 7 are known for no Clang, which is no `no`."""
    line = "matrix --rows distro --cols clang --where 'distro==centos7' --all --json"
    row = real(*shlex.split(line)).json()["grid"][0]
    assert {cell["value"] for cell in row["cells"].values()} == {"unknown"}


BUILDS = "matrix --rows torch-variant --cols device --where torch==2.7.1"


def test_a_grid_of_builds_and_devices_says_what_resolve_says(real: Cli) -> None:
    """What a build runs on follows from the archs that it holds and those that a device runs."""
    where = "--where 'device==6.1 8.0 9.0 12.0' --all --json"
    rows = real(*shlex.split(f"{BUILDS} {where}")).json()["grid"]
    # Those of the machine and the accelerator that were asked for, by line.
    assert [row["releases"] for row in rows] == [
        ["2.7.1+cu118@pytorch/x86_64"],
        ["2.7.1+cu126@default/x86_64"],
        ["2.7.1+cu126@pytorch/x86_64"],
        ["2.7.1+cu128@pytorch/x86_64"],
    ]
    for row in rows:
        (build,) = row["releases"]
        for device, cell in row["cells"].items():
            line = f"resolve torch=={build.partition('@')[0]} --device {device}"
            assert real(*line.split()).code == (0 if cell["value"] == "yes" else 1), line
            about = {fact.partition("/")[0] for fact in cell["facts"]}
            assert "device-runs" in about
            assert about & {"torch-variants-default", "torch-variants-pytorch-cuda"}


@pytest.mark.parametrize(
    ("component", "other", "where", "values"),
    [
        ("torch", "cuda", "torch>=2.1,<2.3 cuda>=12.1,<12.4", {"yes", "no"}),
        ("torch", "device", "torch==2.6.0 device==9.0|12.0", {"yes", "no"}),
        ("torch", "rocm", "torch==2.7.1 rocm>=6.2,<6.5", {"yes", "unknown"}),
        ("jax", "cudnn", "jax==0.4.30 cudnn>=8.9.6,<9.0.0.312.post1", {"yes", "no"}),
        ("onnxruntime", "cuda", "onnxruntime==1.18.1 cuda>=11.8,<12.1", {"yes"}),
    ],
)
def test_releases_go_with_what_their_builds_go_with(
    real: Cli, component: str, other: str, where: str, values: set[str]
) -> None:
    parts = (part.replace("|", " ") for part in where.split())
    narrowed = [word for part in parts for word in ("--where", part)]
    sides = ("--rows", component, "--cols", other, "--from", "wheel")
    rows = real("matrix", *sides, *narrowed, "--all", "--json").json()["grid"]
    seen = set()
    for row in rows:
        release = row["releases"][-1]
        for column, cell in row["cells"].items():
            seen.add(cell["value"])
            wish = [f"--device={column}"] if other == "device" else [f"{other}=={column}"]
            code = real("resolve", f"{component}=={release}", *wish, "--from", "wheel").code
            if cell["value"] != "unknown":
                assert code == (0 if cell["value"] == "yes" else 1), (release, column, cell)
                assert cell["facts"], (release, column)
    assert seen == values


def test_builds_of_one_line_share_a_row_where_they_say_the_same(real: Cli) -> None:
    outcome = real(*shlex.split("matrix --rows torch-variant --cols arch --where torch==2.7"))
    assert [line.partition("  ")[0] for line in outcome.out.splitlines()[1:5]] == [
        "torch cu118 (pytorch) of 2.7.0-2.7.1",
        "torch cu126 of 2.7.0-2.7.1",
        "torch cu126 (pytorch) of 2.7.0-2.7.1",
        "torch cu128 (pytorch) of 2.7.0-2.7.1",
    ]


def test_a_grid_of_builds_is_that_of_the_target(real: Cli) -> None:
    for options, machine, lines in (
        ("--target arm --accelerator cuda", "aarch64", {"cu128"}),
        ("--target amd", "x86_64", {"rocm6.3", "rocm6.2.4"}),
        ("--accelerator none", "x86_64", {"cpu", "cu118", "cu126", "cu128"}),
    ):
        line = f"matrix --rows torch-variant --cols python --where torch==2.7.1 {options} --json"
        rows = real(*line.split()).json()["grid"]
        builds = [name for row in rows for name in row["releases"]]
        assert {name.rpartition("/")[2] for name in builds} == {machine}
        assert {name.partition("+")[2].partition("@")[0] for name in builds} == lines


def test_that_a_toolkit_has_to_be_there_is_no_yes_for_each_of_its_releases(real: Cli) -> None:
    """Code for gfx803 is made by ROCm, and nobody says that it is by ROCm 4.0 still."""
    where = "--where 'rocm>=3.10,<4.1' --where arch==gfx803 --target amd --all --json"
    rows = real(*shlex.split(f"matrix --rows rocm --cols arch {where}")).json()["grid"]
    cells = {row["row"]: row["cells"]["gfx803"]["value"] for row in rows}
    assert cells == {"3.10": "yes", "4.0": "unknown"}
