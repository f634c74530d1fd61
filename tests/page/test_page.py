"""The explorer in Chromium: it answers as the command and the API do, for everybody, and asks nobody else."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import yaml

import toolmatrix
from tests.page.conftest import Visit, module
from tests.report.test_verdicts import ALL, FAILED, PASSED, judged
from toolmatrix.cli.main import main
from toolmatrix.errors import ToolmatrixError, UsageError
from toolmatrix.report import verdicts
from toolmatrix.request.fields import BadValue, flag, parse_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from toolmatrix.api.explorer import Explorer
    from toolmatrix.api.requests import OpenMatrix

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.usefixtures("_opened_once"),
]

QUESTIONS = yaml.safe_load((Path(__file__).parent / "questions.yaml").read_text())
VIEWS = {
    "answer": "#resolve?q=torch&device=GTX+1080+Ti&from=wheel",
    "refusal": "#why-not?q=cuda%3D%3D11.0&with=tensorflow%3D%3D2.6.5&arch=sm_86",
    "several": "#resolve?q=tensorflow%3D%3D2.6.5&target=x86%2Carm",
    "unknown": "#resolve?q=torch&from=wheel&target=arm&device=orin",
    "error": "#resolve?q=tensorflw",
    "grid": "#grid",
    "timeline": "#timeline",
    "coverage": "#coverage",
    "changes": "#changes",
}


def hash_of(words: list[str]) -> str:
    """The address of a question."""
    said = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            said.append((word[2:], following))
        elif not words[words.index(word) - 1].startswith("--"):
            said.append(("q", word))
    return f"#resolve?{urlencode(said)}"


def by_command(words: list[str], cache: str, *more: str) -> tuple[int, str]:
    """What the command writes to a pipe."""
    out = io.StringIO()
    code = main(
        ["resolve", *words, *more], {"XDG_CACHE_HOME": cache}, io.StringIO(), out, io.StringIO()
    )
    return code, out.getvalue()


def by_api(words: list[str], opened: OpenMatrix) -> Any:
    """The document of the API."""
    try:
        said = parse_arguments(words)
        return toolmatrix.resolve(*said.pop("wanted"), **said, matrix=opened).to_json()
    except BadValue as bad:
        # In Python an option goes by the name of its argument.
        return bad.about(UsageError, f"`{flag(bad.name)}`").to_json()
    except ToolmatrixError as error:
        return error.to_json()


@pytest.mark.parametrize("line", QUESTIONS)
def test_page_command_and_api_say_the_same(
    visit: Visit, cache: str, opened: OpenMatrix, line: str
) -> None:
    page, words = visit.page, shlex.split(line)
    page.evaluate("heard.length = 0")
    visit.go(hash_of(words))
    page.wait_for_selector(".answer, .refused", state="attached")
    while not page.evaluate("heard.length"):
        page.wait_for_timeout(20)
    answer = json.loads(page.evaluate("heard[0]"))
    code, text = by_command(words, cache)
    document = json.loads(by_command(words, cache, "--json")[1])
    assert answer.get("document", answer) == document == by_api(words, opened)
    if code in (0, 1, 4) and "error" not in document:
        verdict = {0: "yes", 1: "no", 4: "unknown"}[code]
        page.locator(f".answer.{verdict} .text summary").click()
        shown = page.locator(".answer .text pre")
        assert shown.text_content() == text.removesuffix("\n")
        assert page.locator(".answer .verdict .mark").inner_text().endswith(verdict)
    else:
        assert page.locator(".refused strong").inner_text() == document["error"]["what"]


def test_there_are_enough_questions_and_answers_of_each_kind(cache: str) -> None:
    codes = [by_command(shlex.split(line), cache)[0] for line in QUESTIONS]
    assert len(QUESTIONS) >= 50
    assert {0, 1, 2, 3, 4} <= {*codes}
    assert codes.count(0) >= 25


def test_the_first_answer_stands_there_before_the_program_runs(
    browser: Browser, address: str, here: Explorer
) -> None:
    with browser.new_context() as context:
        # Without the interpreter nothing but what was answered before can be shown.
        context.route("**/pyodide-*/**", lambda route: route.abort())
        page = Visit(context.new_page(), address).go().page
        page.wait_for_selector(".answer.yes")
        assert "torch" in page.locator(".tree").inner_text()
        for view in ("grid", "timeline", "coverage"):
            page.goto(f"{address}#{view}")
            page.wait_for_selector("main table, main svg", state="attached")
        page.goto(f"{address}#resolve?q=cuda")
        assert "could not ask" in page.locator(".refused").inner_text()
        assert here.matrix.date in page.locator("footer").inner_text()


def test_a_question_that_somebody_sent_is_answered_when_the_page_opens(
    browser: Browser, address: str
) -> None:
    with browser.new_context() as context:
        opened = Visit(context.new_page(), address).go(VIEWS["refusal"])
        opened.page.wait_for_selector(".answer.no")
        assert (
            opened.page.title() == "cuda==11.0 --with=tensorflow==2.6.5 --arch=sm_86 - toolmatrix"
        )
        assert opened.page.get_by_label("only say what forbids it").is_checked()
        assert opened.complaints() == []


def violations(page: Page) -> list[str]:
    """What axe finds wrong for people who do not see, do not use a mouse, or see little."""
    page.evaluate((module("axe-core") / "axe.min.js").read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary')}"
        for one in found["violations"]
    ]


@pytest.fixture(params=["light", "dark", "phone"])
def screen(request: pytest.FixtureRequest, visit: Visit) -> Iterator[Page]:
    page = visit.page
    page.emulate_media(color_scheme="dark" if request.param == "dark" else "light")
    if request.param == "phone":
        page.set_viewport_size({"width": 320, "height": 640})
    yield page
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1200, "height": 900})


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_for_everybody(visit: Visit, screen: Page, view: str) -> None:
    visit.go(VIEWS[view])
    screen.wait_for_selector(".answer, .refused, main table, main svg", state="attached")
    # Of what is alike the first are enough.
    for summary in screen.locator("main details:not(.facts) > summary").all()[:6]:
        summary.click()
    screen.wait_for_selector(".wait", state="detached")
    assert violations(screen) == []
    # At 320 pixels, which is a phone, or a desktop at 400 %, nothing is off the page but what scrolls by itself.
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert screen.evaluate(wide) == 0


BROKEN = """
const words = [];
for (const cell of document.querySelectorAll("td, th, p, h1, h2")) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); )
    for (const word of node.data.matchAll(/[a-zA-Z0-9.]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1 && word[0].length < 40) words.push(word[0]);
    }
}
return words;
"""


def pages_of_commands() -> dict[str, str]:
    """Pages that commands write, by a name."""
    long = "/opt/venv/lib/python3.11/site-packages/tensorflow_io_gcs_filesystem-0.37.1.dist-info/METADATA"
    seen = FAILED.replace(where=long, found="1.24.4 " * 12)
    cost = toolmatrix.matrix("cuda", "arch", where=["cuda>=13"])
    return {
        "validate": verdicts.html([judged(PASSED, seen), judged(*ALL, subject="registry:" + long)]),
        "matrix": cost.written("html", "toolmatrix matrix --rows cuda --cols arch"),
    }


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1200])
@pytest.mark.parametrize("name", ["validate", "matrix"])
def test_a_page_that_a_command_writes_is_for_everybody(
    browser: Browser, tmp_path: Path, opened: OpenMatrix, name: str, width: int, colours: str
) -> None:
    del opened
    path = tmp_path / "page.html"
    path.write_text(pages_of_commands()[name])
    scheme: Any = colours
    with browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme
    ) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        assert violations(page) == []
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0
        # A word is broken where it lies on two lines; a digest is longer than a phone is wide.
        assert page.evaluate(f"() => {{ {BROKEN} }}") == []


def test_a_question_is_asked_by_keyboard_alone(visit: Visit) -> None:
    page = visit.go("#resolve?q=torch").page
    page.wait_for_selector(".answer")
    what = page.get_by_role("combobox", name="What", exact=True)
    what.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("tensorfl")
    suggested = page.get_by_role("option")
    assert suggested.first.inner_text().startswith("tensorflow")
    page.keyboard.press("ArrowDown")
    assert suggested.first.get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert what.input_value() == "tensorflow"
    page.keyboard.type("==2.6.")
    assert "tensorflow==2.6.5" in suggested.first.inner_text()
    page.keyboard.press("Escape")
    assert suggested.count() == 0
    page.keyboard.type("5")
    page.keyboard.press("Tab")
    page.keyboard.type("rtx 30")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer pre:has-text('tensorflow==2.6.5')")
    assert "q=tensorflow%3D%3D2.6.5" in page.url
    assert "device=" in page.url
    # The way back leads to the question before.
    page.go_back()
    page.wait_for_selector(".answer pre:has-text('resolve torch')")
    assert page.get_by_role("combobox", name="What", exact=True).input_value() == "torch"


def test_the_address_holds_every_field(visit: Visit) -> None:
    said = "q=torch&with=python%3D%3D3.12&with=gcc%3D%3D12&target=x86&from=wheel&device=A100"
    page = visit.go(f"#resolve?{said}").page
    page.wait_for_selector(".answer, .refused")
    assert page.get_by_role("combobox", name="Python", exact=True).input_value() == "3.12"
    assert page.get_by_role("combobox", name="Device").input_value() == "A100"
    assert page.get_by_role("checkbox", name="x86").is_checked()
    assert page.get_by_role("radio", name="wheel").is_checked()
    page.get_by_role("button", name="Answer").click()
    assert sorted(page.url.partition("?")[2].split("&")) == sorted(said.split("&"))


def test_a_way_out_is_clicked_and_answers(visit: Visit) -> None:
    page = visit.go(VIEWS["refusal"]).page
    page.locator(".repairs a").first.click()
    page.wait_for_selector(".answer.yes")
    assert "cuda==11.2.0" in page.locator(".answer pre").first.inner_text()


def test_facts_dockerfile_and_copies(visit: Visit) -> None:
    page = visit.go(VIEWS["several"]).page
    page.wait_for_selector(".answer.yes")
    page.locator(".node .facts summary").first.click()
    assert "tensorflow-wheels/2.6.5" in page.locator(".factlist").first.inner_text()
    page.get_by_text("Dockerfile", exact=True).click()
    page.wait_for_selector(".files pre:has-text('FROM')")
    names = page.locator(".files h3").all_inner_texts()
    assert names == ["arm.Dockerfile", "arm.check.sh", "x86.Dockerfile", "x86.check.sh"]
    page.get_by_role("button", name="copy x86.Dockerfile").click()
    page.wait_for_selector(".copy [role=status]:has-text('copied')")
    assert "FROM" in page.evaluate("navigator.clipboard.readText()")
    assert page.locator(".node.disputed .mark").first.inner_text().endswith("disputed")
    links = page.locator(".sources a").all()
    assert links
    assert all((link.get_attribute("href") or "").startswith("https://") for link in links)


def test_a_heat_map_tells_the_facts_of_a_cell_by_keyboard_and_mouse(
    visit: Visit, here: Explorer
) -> None:
    page = visit.go("#grid?rows=cuda&cols=arch&where=cuda%3E%3D11").page
    page.wait_for_selector("td")
    grid = here.grid("cuda", "arch", (), ["cuda>=11"])["grid"]
    assert page.locator("tbody tr").count() == len(grid)
    names = list(grid[0]["cells"])
    page.locator("td[data-row='0'][data-column='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    told = page.get_by_role("region", name="cell")
    cell = grid[1]["cells"][names[1]]
    assert f"cuda {grid[1]['row']} × arch {names[1]}" in told.inner_text()
    assert cell["value"] in told.inner_text()
    assert cell["evidence"] in told.inner_text()
    if cell["facts"]:
        told.locator("li").first.wait_for()
        assert cell["facts"][0] in told.inner_text()
    last = page.locator(f"td[data-row='2'][data-column='{len(names) - 1}']")
    last.hover()
    assert f"cuda {grid[2]['row']} × arch {names[-1]}" in told.inner_text()
    cell = grid[2]["cells"][names[-1]]
    assert last.locator(".unseen").text_content() == f"{cell['value']}, {cell['evidence']}"


def test_what_is_printed_is_the_answer(visit: Visit) -> None:
    page = visit.go(VIEWS["answer"]).page
    page.wait_for_selector(".answer")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("form").is_visible()
    assert page.locator(".tree").is_visible()
    page.emulate_media(media="screen")


def test_what_is_vendored_is_what_npm_has() -> None:
    root = Path(__file__).parent.parent.parent / "explorer"
    for ours, theirs in {
        "preact.mjs": "preact/dist/preact.mjs",
        "preact-hooks.mjs": "preact/hooks/dist/hooks.mjs",
        "htm.mjs": "htm/dist/htm.mjs",
        "preact.LICENSE": "preact/LICENSE",
        "htm.LICENSE": "htm/LICENSE",
    }.items():
        package, _, rest = theirs.partition("/")
        assert (root / "vendor" / ours).read_bytes() == (module(package) / rest).read_bytes()
