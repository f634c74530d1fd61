"""The pages: blocks show what the program prints, tables what the code declares, and links lead somewhere.

A block tagged `console` is run, one `$ toolmatrix ...` after the other, in a folder that the blocks of a page share,
and one tagged `pycon` as lines of one session of Python: `>>> `, and `... ` for what goes on. A line `...` stands for
any lines left out; `$ echo $?` shows the exit code of the command before. A block of YAML or TOML whose first line is a
comment with a file name is written to that folder first. The picture below `<!-- drawn: COMMAND -->` is what the
command gives as SVG. What stands between `<!-- made: NAME -->` and `<!-- end -->` is made by `TABLES[NAME]`.

`UPDATE_GOLDEN=1 ./tests/run tests/test_docs.py` writes blocks and tables anew, and git shows what moved.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests import chart, matrix
from tests.golden import VARIABLE
from tests.schemas import shipped
from toolmatrix import errors
from toolmatrix.api import checks
from toolmatrix.cli import topics
from toolmatrix.cli.main import main
from toolmatrix.cli.tools import TOOLS
from toolmatrix.command import COMMANDS, all_options, meanings
from toolmatrix.command.option import Option
from toolmatrix.command.options import COMMON, REQUEST
from toolmatrix.factbase.evidence import WORDS
from toolmatrix.report.terminal import wrap
from toolmatrix.resources import rules_path, schema_path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


OPTIONS = all_options()
ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SCHEMAS = sorted(Path(schema_path("error")).parent.glob("*.schema.json"))

EPOCH = "1796083200"  # 2026-12-01
WIDTH = "100"
WIDE = 118  # of a line of a page
LEFT_OUT = "..."
PROMPTS = {"console": "$ ", "pycon": ">>> "}
GOES_ON = "... "
REGISTRIES = (
    *("pypi.org", "pythonhosted.org", "anaconda.org", "docker.io", "docker.com", "quay.io"),
    *("ghcr.io", "nvcr.io", "gcr.io", "npmjs", "crates.io", "proxy.golang.org", "rubygems.org"),
)

FENCE = re.compile(r"```(\w*)$")
# Totals and the day of the matrix, which every fact that somebody adds would make stale.
TOTAL = re.compile(
    r"\d+(?= facts and | rows of further data| sources$)|(?<= and )\d+(?= more\b)|^ +\d+(?=  [a-z]+$)"
    r"|(?<=^matrix of )[\d-]{10}(?=: )|(?<= today \()[\d-]{10}(?=\))"
)
FILE = re.compile(r"# ([\w-]+\.(?:yaml|toml))$")
MADE = re.compile(r"<!-- made: ([\w-]+) -->$")
END = "<!-- end -->"
DRAWN = re.compile(r"<!-- drawn: (.+) -->\n!\[[^\]]+\]\(([^)]+\.svg)\)$", re.MULTILINE)
MEASURED = re.compile(r"^resolve / ([\w -]+), CPU +ms +([\d.]+) \[.*?\] +([\d.]+) \[", re.MULTILINE)
MEMORY = re.compile(
    r"^peak memory, resolve and uv +MiB +([\d.]+) \[.*?\] +([\d.]+) \[", re.MULTILINE
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")


class Fenced(NamedTuple):
    """A fenced block: its tag, the number of its first line, and its lines."""

    tag: str
    start: int
    lines: list[str]


class Shown(NamedTuple):
    """A command of a block, and the lines from `start` to `end` that a page shows as its output."""

    command: str
    start: int
    end: int


def shown_path(path: Path) -> str:
    """A page as the messages name it."""
    return path.relative_to(ROOT).as_posix()


def fenced(lines: Sequence[str]) -> Iterator[Fenced]:
    """The fenced blocks of a page."""
    begin, tag = -1, ""
    for number, line in enumerate(lines):
        match = FENCE.match(line)
        if begin < 0 and match:
            begin, tag = number + 1, match[1]
        elif begin >= 0 and line == "```":
            yield Fenced(tag, begin, list(lines[begin:number]))
            begin = -1
    assert begin < 0, f"the block at line {begin} has no end"


def commands(block: Fenced) -> Iterator[Shown]:
    """The commands of a console block; blank lines between an output and the next command belong to neither."""
    prompt = PROMPTS[block.tag]
    starts = [place for place, line in enumerate(block.lines) if line.startswith(prompt)]
    assert starts[:1] == [0], f"the block at line {block.start} does not begin with a command"
    for place, following in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        said, end = [block.lines[place].removeprefix(prompt)], following
        for line in block.lines[place + 1 : following] if block.tag == "pycon" else ():
            if not line.startswith(GOES_ON):
                break
            said.append(line.removeprefix(GOES_ON))
        while end > place + len(said) and not block.lines[end - 1]:
            end -= 1
        yield Shown("\n".join(said), block.start + place + len(said), block.start + end)


def segments(lines: Iterable[str]) -> list[list[str]]:
    """The lines between those that stand for something left out."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def fits(page: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether a page shows what was printed, but for what it leaves out and for totals of the matrix."""
    page, printed = ([TOTAL.sub("N", line) for line in lines] for lines in (page, printed))
    first, *rest = segments(page)
    if not rest:
        return first == list(printed)
    last = rest.pop()
    if len(first) + len(last) > len(printed) or list(printed[: len(first)]) != first:
        return False
    end = len(printed) - len(last)
    if list(printed[end:]) != last:
        return False
    place = len(first)
    for part in rest:
        places = range(place, end - len(part) + 1)
        found = next((at for at in places if list(printed[at : at + len(part)]) == part), None)
        if found is None:
            return False
        place = found + len(part)
    return True


def renewed(page: Sequence[str], printed: Sequence[str]) -> list[str]:
    """What a page should show, with the same lines left out as far as they can be told."""
    first, *rest = segments(page)
    if not rest or len(first) + len(rest[-1]) >= len(printed):
        return list(printed)
    last = rest.pop()
    end = len(printed) - len(last)
    place = len(first)
    made = [*printed[:place], LEFT_OUT]
    for part in rest:
        place = nearest(part, printed, place, end)
        made += [*printed[place : place + len(part)], LEFT_OUT]
        place += len(part)
    return [*made, *printed[end:]]


def nearest(part: Sequence[str], printed: Sequence[str], start: int, end: int) -> int:
    """Where the lines between `start` and `end` are most like those of `part`."""

    def likeness(place: int) -> float:
        pairs = zip(part, printed[place : place + len(part)], strict=False)
        return sum(difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)

    return max(range(start, max(start, end - len(part)) + 1), key=likeness)


class Folder:
    """Where the blocks of a page are run."""

    def __init__(self, work: Path, cache: str) -> None:
        self.work = work
        self.env = {
            # On a machine with other work a line comes after ten seconds.
            "TOOLMATRIX_NO_PROGRESS": "1",
            "HOME": str(work.parent),
            "XDG_CACHE_HOME": cache,
            "COLUMNS": WIDTH,
            "SOURCE_DATE_EPOCH": EPOCH,
        }
        self.code = 0
        self.session: dict[str, object] = {}

    def write(self, block: Fenced) -> None:
        """Put a block that names a file where the commands after it find it."""
        name = FILE.match(block.lines[0]) if block.lines else None
        if name and block.tag in ("yaml", "toml"):
            (self.work / name[1]).write_text("\n".join(block.lines) + "\n")

    def run(self, command: str) -> list[str]:
        """What a terminal would show of a command: both streams, in the order in which they were written."""
        if command == "echo $?":
            return [str(self.code)]
        program, *words = shlex.split(command)
        assert program == "toolmatrix", f"`{program}` is not run here"
        screen = io.StringIO()
        self.code = main(words, self.env, io.StringIO(), screen, screen)
        return self.lines(screen)

    def say(self, code: str) -> list[str]:
        """What a session of Python shows of some lines: what they print and what they are, or the error by its name."""
        screen = io.StringIO()
        with contextlib.redirect_stdout(screen):
            try:
                exec(compile(f"{code}\n", "<page>", "single"), self.session)  # noqa: S102 - the pages are ours
            except errors.ToolmatrixError as error:
                print(f"{type(error).__module__}.{type(error).__name__}: {error}")  # noqa: T201 - as Python does
        return self.lines(screen)

    @staticmethod
    def lines(screen: io.StringIO) -> list[str]:
        """The lines of a screen, without blanks at their end or lines at its."""
        lines = [line.rstrip() for line in screen.getvalue().splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        return lines


@pytest.fixture
def folder(
    tmp_path: Path, cache: str, _opened_once: None, monkeypatch: pytest.MonkeyPatch
) -> Folder:
    """A folder with docs/logs and docs/files to run a page in; `check` starts no processes there."""
    work = tmp_path / "work"
    for name in ("logs", "files"):
        shutil.copytree(ROOT / "docs" / name, work / "docs" / name)
    monkeypatch.chdir(work)
    monkeypatch.setattr(checks, "processors", lambda: 1)
    monkeypatch.setattr("toolmatrix.factbase.load.load", matrix.loaded_once)
    return Folder(work, cache)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    # What exports the whole matrix, or asks one of its own, takes many seconds.
    [
        pytest.param(
            path,
            marks=[
                *[pytest.mark.long] * (path.name in ("commands.md", "data.md")),
                # Drivers are asked which release they are.
                *[pytest.mark.process] * (path.name == "stages.md"),
            ],
        )
        for path in PAGES
    ],
    ids=shown_path,
)
def test_blocks_show_what_the_program_prints(path: Path, folder: Folder) -> None:
    lines = path.read_text().splitlines()
    stale: list[tuple[Shown, list[str]]] = []
    for block in fenced(lines):
        folder.write(block)
        for shown in commands(block) if block.tag in PROMPTS else ():
            run = folder.run if block.tag == "console" else folder.say
            printed = run(shown.command)
            if not fits(lines[shown.start : shown.end], printed):
                stale.append((shown, renewed(lines[shown.start : shown.end], printed)))
    if os.environ.get(VARIABLE):
        for shown, made in reversed(stale):
            lines[shown.start : shown.end] = made
        path.write_text("\n".join(lines) + "\n")
        return
    for shown, made in stale:
        where = f"{shown_path(path)}:{shown.start}: `{shown.command}` prints something else"
        assert lines[shown.start : shown.end] == made, where


def test_lines_left_out_stand_for_any() -> None:
    assert fits(["a", "..."], ["a", "b", "c"])
    assert fits(["...", "b", "  ...", "d"], ["a", "b", "c", "d"])
    assert fits(["a", "..."], ["a"])
    assert not fits(["...", "b", "..."], ["a", "c"])
    assert not fits(["a", "...", "a"], ["a"])
    assert not fits(["a"], ["a", "b"])
    assert fits(
        ["matrix of 2026-11-20: 60142 facts and 7 rows of further data"],
        ["matrix of 2026-11-28: 60143 facts and 8 rows of further data"],
    )
    assert fits(["cuda 11.2 and 2 more", "..."], ["cuda 11.2 and 3 more"])
    assert not fits(["2 facts, oldest first"], ["3 facts, oldest first"])
    assert renewed(["a", "...", "size 1", "...", "e"], ["A", "b", "size 2", "d", "E"]) == [
        *("A", "...", "size 2", "...", "E")
    ]
    assert renewed(["a", "..."], []) == []


# Tables


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as a table of Markdown."""
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]


def option_row(option: Option) -> list[str]:
    """One option: as flag, variable and key, with its default and meaning."""
    flags = [*option.flags[:-1], f"{option.flags[-1]} {option.metavar}".rstrip()]
    variable = "" if option.cli_only else option.variable
    choices = ", ".join(f"`{word}`" for word in option.choices)
    default = option.show(option.default) if option.default not in ((), 0, False) else ""
    return [
        ", ".join(f"`{flag}`" for flag in (*flags, *option.shorthand)),
        f"`{variable}`" if variable else "",
        f"`{option.key}`" if option.configurable else "",
        f"`{default}`" if default else "",
        "; ".join(
            (
                option.help + (f": {choices}" if choices else ""),
                *(
                    f"`{taker}`: {text}"
                    for text, takers in meanings(option).items()
                    for taker in takers
                    if text != option.help
                ),
            )
        ),
    ]


OPTION_HEAD = ("option", "variable", "key", "default", "what it does")


def own_options() -> list[str]:
    """The options of single commands, each with the commands that take it."""
    rows = []
    for name, option in OPTIONS.items():
        if option.group == "own":
            takers = [one.name for one in COMMANDS.values() if name in one.own]
            rows.append([", ".join(takers), *option_row(option)])
    return table(("command", *OPTION_HEAD), rows)


def topic(name: str) -> list[str]:
    """A topic of `toolmatrix help`, as a passage of its page."""
    told = topics.load()[name]
    parts = [wrap(text, WIDE) for text in told.says]
    parts += [table(told.head, told.rows), *(wrap(text, WIDE) for text in told.then)]
    return "\n\n".join("\n".join(part) for part in parts).split("\n")


def schemas() -> list[str]:
    """The documents that have a schema."""
    rows = []
    for path in SCHEMAS:
        held = json.loads(path.read_text())
        link = f"[`{held['title']}`](../{shown_path(path)})"
        rows.append([link, held["description"].partition("; docs/")[0].rstrip(".")])
    return table(("schema", "what it is"), rows)


def measured() -> list[str]:
    """What benchmarks/README.md measured of whole processes, in CPU time and memory."""
    text = (ROOT / "benchmarks" / "README.md").read_text()
    rows = [
        [f"`resolve`, beside {name}, CPU", f"{ours} ms", f"{theirs} ms"]
        for name, ours, theirs in MEASURED.findall(text)
    ]
    for ours, theirs in MEMORY.findall(text):
        rows.append(["`resolve`, beside uv, peak memory", f"{ours} MiB", f"{theirs} MiB"])
    return table(("median", "toolmatrix", "the other"), rows)


def tools() -> list[str]:
    """The questions of assistants, each with its arguments."""
    rows = []
    for tool in TOOLS.values():
        arguments = (f"`{name}`" for name in tool.input_schema()["properties"])
        rows.append([f"`{tool.name}`", tool.about, ", ".join(arguments)])
    return table(("tool", "what it answers", "arguments"), rows)


TABLES: dict[str, Callable[[], list[str]]] = {
    "request-options": lambda: table(OPTION_HEAD, (option_row(one) for one in REQUEST.values())),
    "own-options": own_options,
    "common-options": lambda: table(OPTION_HEAD, (option_row(one) for one in COMMON.values())),
    **{f"topic-{name}": partial(topic, name) for name in topics.load()},
    "schemas": schemas,
    "measured": measured,
    "tools": tools,
}


def test_pictures_show_what_the_program_prints(folder: Folder) -> None:
    shown = [(path, *found) for path in PAGES for found in DRAWN.findall(path.read_text())]
    assert shown
    for page, command, name in shown:
        drawn = folder.run(f"{command} --format svg --quiet")
        path = page.parent / name
        if os.environ.get(VARIABLE):
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(drawn) + "\n")
        assert path.read_text().splitlines() == drawn, f"{shown_path(page)}: {name}"


def test_the_chart_shows_what_was_measured() -> None:
    found = MEASURED.findall((ROOT / "benchmarks" / "README.md").read_text())
    ours = "toolmatrix resolve"
    # That of an interpreter that does nothing is the least that any of them takes in Python.
    rows = [(name, float(theirs), f"{theirs} ms") for name, _, theirs in found]
    rows.append((ours, float(found[0][1]), f"{found[0][1]} ms"))
    title = "What an answer takes, offline: milliseconds of processor, median"
    drawn = chart.bars(title, sorted(rows, key=lambda row: row[1]), ours)
    path = ROOT / "docs" / "pictures" / "measured.svg"
    if os.environ.get(VARIABLE):
        path.write_text(drawn)
    assert path.read_text() == drawn


def test_the_readme_is_read_in_a_minute() -> None:
    assert len(README.read_bytes()) <= 9_000


@pytest.mark.parametrize("path", PAGES, ids=shown_path)
def test_tables_say_what_the_code_declares(path: Path) -> None:
    lines = path.read_text().splitlines()
    for place, match in reversed(
        [(at, found) for at, line in enumerate(lines) if (found := MADE.match(line))]
    ):
        made = ["", *TABLES[match[1]](), ""]
        end = lines.index(END, place)
        if os.environ.get(VARIABLE):
            lines[place + 1 : end] = made
        else:
            assert lines[place + 1 : end] == made, f"{shown_path(path)}: the table {match[1]}"
    if os.environ.get(VARIABLE):
        path.write_text("\n".join(lines) + "\n")


def test_every_table_stands_somewhere() -> None:
    made = [
        found[1]
        for path in PAGES
        for line in path.read_text().splitlines()
        if (found := MADE.match(line))
    ]
    assert sorted(made) == sorted(TABLES)


def test_every_exit_code_of_an_error_is_listed() -> None:
    failures = [getattr(errors, name) for name in errors.__all__]
    codes = {part.exit_code for part in failures if issubclass(part, errors.ToolmatrixError)}
    assert codes <= topics.EXIT_CODES.keys()


def test_every_topic_names_the_page_that_has_it() -> None:
    for name, told in topics.load().items():
        assert f"<!-- made: topic-{name} -->" in (ROOT / "docs" / told.page).read_text()


# What pages have to say


def test_the_tour_shows_every_command() -> None:
    tour = (ROOT / "docs" / "tour.md").read_text()
    shown = set(re.findall(r"^(?:\$ )?toolmatrix ([\w-]+)", tour, re.MULTILINE))
    assert set(COMMANDS) - {"help"} <= shown


def test_evidence_words_stand_in_their_order() -> None:
    for path in (README, ROOT / "CONTRIBUTING.md", ROOT / "docs" / "facts.md"):
        text = path.read_text()
        words = ", ".join(f"`{word}`" for word in WORDS)
        rows = [text.find(f"| `{word}` |") for word in WORDS]
        assert words in " ".join(text.split()) or rows == sorted(set(rows) - {-1}), path


def test_every_key_of_a_matrix_file_is_described() -> None:
    text = (ROOT / "docs" / "facts.md").read_text()
    found: set[str] = set()
    for name in ("matrix", "facts"):
        found |= set(properties(shipped(name)))
    shape = r"(^|[`{{ ]){}[`:]"
    unsaid = [key for key in found if not re.search(shape.format(key), text, re.MULTILINE)]
    assert sorted(unsaid) == []


def properties(schema: Any) -> Iterator[str]:
    """Every key that a schema names, at any depth."""
    if isinstance(schema, dict):
        held = schema.get("properties")
        yield from held if isinstance(held, dict) else ()
        for part in schema.values():
            yield from properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part)


def names(lines: Iterable[str]) -> set[str]:
    """The packages that the lines of a list of dependencies name."""
    return {re.split(r"[^\w.-]", line)[0] for line in lines}


def test_every_dependency_has_a_row_with_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    run = names(project["project"]["dependencies"])
    other = names(line for part in (project["build-system"]["requires"], *extras) for line in part)
    section = (
        (ROOT / "CONTRIBUTING.md").read_text().partition("## Dependencies")[2].partition("\n## ")[0]
    )
    tables = [
        sorted(set(re.findall(r"^\| ([\w.-]+) \| .+ \| .+ \|$", table, re.MULTILINE)) - {"package"})
        for table in re.split(r"^To build", section, flags=re.MULTILINE)
    ]
    assert tables == [sorted(run), sorted(other - run)]


def test_codes_that_pages_name_exist() -> None:
    with open(rules_path(), encoding="utf-8") as file:
        known = set(yaml.safe_load(file))
    named = {path: re.findall(r"\bTM\d{3}\b", path.read_text()) for path in PAGES}
    assert {path: {*codes} - known for path, codes in named.items() if {*codes} - known} == {}


@pytest.mark.parametrize("path", PAGES, ids=shown_path)
def test_links_lead_somewhere(path: Path) -> None:
    lost = []
    for target in LINK.findall("\n".join(prose(path))):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue
        file = path.parent / name if name else path
        if not file.exists() or (anchor and anchor not in headings(file)):
            lost.append(target)
    assert lost == []


def prose(path: Path) -> list[str]:
    """The lines of a page outside its fenced blocks."""
    lines = path.read_text().splitlines()
    for block in fenced(list(lines)):
        lines[block.start : block.start + len(block.lines)] = [""] * len(block.lines)
    return lines


def headings(path: Path) -> set[str]:
    """The anchors of a page, as the usual renderers make them."""
    titles = [line.lstrip("#").strip().lower() for line in prose(path) if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=shown_path)
def test_no_page_names_the_host_of_a_registry(path: Path) -> None:
    text = path.read_text().lower()
    assert [host for host in REGISTRIES if host in text] == []
