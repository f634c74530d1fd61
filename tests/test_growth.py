"""Parsers are linear: of adversarial text four times as long they take at most five times the processor time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.amount import TIMES, growth
from tests.manifests.test_bounds import GROWING, ending
from toolmatrix import toml
from toolmatrix.compilation import parse_log
from toolmatrix.compilation.cost import read_times
from toolmatrix.errors import ConfigError
from toolmatrix.factbase import yamlfile
from toolmatrix.inspection import subjects
from toolmatrix.lines import without_colours
from toolmatrix.lockfile import lock_file
from toolmatrix.manifests import pastes, read
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import FileText

PARSERS: dict[str, Callable[[str], Any]] = {
    "settings": lambda text: toml.parse(text, "a", ConfigError, "a"),
    "a lock": lambda text: lock_file.parse(text.encode(), "a"),
    "facts": lambda text: yamlfile.parse(text.encode(), "a"),
    "subjects": lambda text: subjects.read_subjects("a", text.encode),
    "a manifest of subjects": lambda text: subjects.read_subjects("a.yaml", text.encode),
    "a dry run": lambda text: parse_log(text.split("\n")),
    "times": lambda text: read_times(text.splitlines(), "a"),
    "colours": without_colours,
    "a paste": lambda text: pastes.read(FileText("a", text), Files()),
    "the kind of a file": lambda text: read.manifest(FileText("a", text)),
}
SHAPES = (
    *("[", "[a]\n", "a = [\n", "{a: ", "- ", "a: 1\n", '"', "'", "\\", "#", "# a\n", "a.", "1", "x"),
    *("\x1b[", "\x1b]0;", "$(", "#$ a ", "#$ a\n", ", ", '"""\n', "a\\\n", "&a ", "*a ", "<<: ", "image: a\n"),
    *("GPU 0: ", "| ", "a  1\n", "pip list\n", "[pip3] a==1\n", "Name: a\n", "<b ", "> ", "--- ", "a, ", "a - "),
)  # fmt: skip


def grown(parser: Callable[[str], Any], shape: str) -> tuple[float, float, bool]:
    """Seconds for a text of a shape and for one four times as long, and whether that is linear."""
    text = shape * (60_000 // len(shape))
    return growth(parser, text, text * TIMES)


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_is_linear(name: str) -> None:
    results = {shape: grown(PARSERS[name], shape) for shape in SHAPES}
    assert [shape for shape, (_, _, is_linear) in results.items() if not is_linear] == []


def repeated(name: str, count: int) -> FileText:
    """A file of a project that repeats something."""
    path, first, line = GROWING[name]
    return FileText(path, first + "".join(map(line, range(count))) + ending(path, first))


def show(name: str, shape: str, first: float, then: float, is_linear: bool) -> bool:
    """Print a line; returns whether the parser is not linear."""
    line = f"{name:23} {shape:22} {first:6.3f} s  {then:6.3f} s  {then / max(first, 1e-9):6.1f}"
    print(line if is_linear else f"{line}  NOT LINEAR", flush=True)  # noqa: T201
    return not is_linear


def main() -> int:
    """Print the slowest shape of each parser, and each file of a project; returns 1 where one is not linear."""
    print(f"{'parser':23} {'shape':22} {'once':>8}  {'4 times':>8}   times")  # noqa: T201
    wrong = 0
    for name, parser in PARSERS.items():
        results = {shape: grown(parser, shape) for shape in SHAPES}
        shape = max(results, key=lambda shape: (not results[shape][2], results[shape][1]))
        wrong += show(name, repr(shape), *results[shape])
    for name in GROWING:
        small, large = (repeated(name, 400 * times) for times in (1, TIMES))
        wrong += show(GROWING[name][0][-23:], name, *growth(read.manifest, small, large))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
