"""Parsers are linear: of adversarial text four times as long they take at most five times the processor time."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from toolmatrix import toml
from toolmatrix.compilation import parse_log
from toolmatrix.compilation.cost import read_times
from toolmatrix.errors import ConfigError, ToolmatrixError
from toolmatrix.factbase import yamlfile
from toolmatrix.inspection import subjects
from toolmatrix.lines import without_colours
from toolmatrix.lockfile import lock_file
from toolmatrix.manifests import pastes, read
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import FileText

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES, MOST = 4, 5
# Seconds that are too few to compare; a quarter of a megabyte in a quadratic parser takes many.
_NOISE = 0.2

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


def spent(parser: Callable[[str], Any], text: str) -> float:
    """Seconds of processor time, the least of two."""
    seconds = []
    for _ in range(2):
        began = time.process_time()
        with suppress(ToolmatrixError):
            parser(text)
        seconds.append(time.process_time() - began)
    return min(seconds)


def growth(parser: Callable[[str], Any], shape: str) -> tuple[float, float, bool]:
    """Seconds for a text of a shape and for one four times as long, and whether that is linear."""
    text = shape * (60_000 // len(shape))
    # More than once, as another process may take the caches.
    for _ in range(3):
        first, then = spent(parser, text), spent(parser, text * TIMES)
        if then <= MOST * max(first, _NOISE / MOST):
            return first, then, True
    return first, then, False


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_is_linear(name: str) -> None:
    grown = {shape: growth(PARSERS[name], shape) for shape in SHAPES}
    assert [shape for shape, (_, _, is_linear) in grown.items() if not is_linear] == []


def main() -> int:
    """Print for each parser the shape that takes longest; returns 1 where one is not linear."""
    print("parser                  shape            60 KB    240 KB   times")  # noqa: T201
    wrong = 0
    for name, parser in PARSERS.items():
        grown = {shape: growth(parser, shape) for shape in SHAPES}
        shape = max(grown, key=lambda shape: (not grown[shape][2], grown[shape][1]))
        first, then, is_linear = grown[shape]
        wrong += not is_linear
        line = (
            f"{name:23} {shape!r:15} {first:6.3f} s  {then:6.3f} s  {then / max(first, 1e-9):6.1f}"
        )
        print(line if is_linear else f"{line}  NOT LINEAR", flush=True)  # noqa: T201
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
