"""Pictures, pages and blocks show what was printed, whatever it is, and hold nothing that does something."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.report.pictures import FORMS, SCREEN
from toolmatrix.report.terminal import printable, visible

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>",
    "]]>",
    "&amp;",
    '" onload="x',
    "https://a.b/<i>",
    "```",
    "\0",
)


def words() -> st.SearchStrategy[str]:
    """Words as a terminal gets them: those of strangers are printable."""
    told = (st.text(max_size=12) | st.sampled_from(HOSTILE)).map(printable)
    styled = st.builds(SCREEN.style, told, st.sampled_from(["yes", "no", "dim", "error", "bold"]))
    return told | styled


def texts() -> st.SearchStrategy[str]:
    """What a command prints: some lines."""
    line = st.lists(words(), max_size=4).map("".join)
    return st.lists(line, min_size=1, max_size=5).map(lambda lines: "\n".join(lines) + "\n")


def shown(text: str) -> str:
    """The text without its colours, as far as it can be seen."""
    return "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))


class Page(HTMLParser):
    """The elements of a page, what is in its `pre`, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name == "href"]
        self.inside = self.inside or tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.text += data


@given(title=st.text(max_size=20).map(printable), text=texts())
def test_a_picture_shows_the_text(title: str, text: str) -> None:
    root = ET.fromstring(FORMS["svg"](title, text))  # noqa: S314 - our own
    assert {part.tag.removeprefix(SVG) for part in root.iter()} <= {
        *("svg", "title", "style", "rect", "text", "tspan")
    }
    drawn = ["".join(part.itertext()) for part in root.iter(f"{SVG}text")]
    told = ([f"$ {title}"] if title else []) + shown(text).split("\n")
    assert drawn == [line for line in told if line]
    places = [float(part.attrib["y"]) for part in root.iter(f"{SVG}text")]
    assert places == sorted(set(places))


@given(title=st.text(max_size=20).map(printable), text=texts())
def test_a_page_shows_the_text(title: str, text: str) -> None:
    page = Page(FORMS["html"](title, text))
    assert page.text.strip("\n") == shown(text).strip("\n")
    assert page.tags <= {
        *("html", "head", "meta", "title", "style"),
        *("body", "main", "h1", "pre", "span", "a"),
    }
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "href"}
    assert all(link.startswith("https://") for link in page.links)


@given(title=st.text(max_size=20).map(printable), text=texts())
def test_a_block_ends_where_the_text_does(title: str, text: str) -> None:
    opening, *told, closing = FORMS["md"](title, text).rstrip("\n").split("\n")
    assert opening == closing + "console"
    assert told == ([f"$ {title}"] if title else []) + shown(text).split("\n")
    assert not any(re.match(rf" *{closing}", line) for line in told)


def test_addresses_are_links() -> None:
    text = (
        "[1] https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/\n(see https://a.b/c?d=e&f.)\n"
    )
    links = Page(FORMS["html"]("", text)).links
    assert links == [
        "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/",
        "https://a.b/c?d=e&f",
    ]


@pytest.mark.parametrize("form", FORMS)
def test_colours_are_never_all_that_is_said(form: str) -> None:
    text = SCREEN.style("no", "no") + ", for 2 reasons\n"
    assert "no" in FORMS[form]("", text)
