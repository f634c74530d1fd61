"""Takes the pictures of docs/explorer.md: `python -m tests.page.pictures ADDRESS`, where a page is served."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"


class Picture(NamedTuple):
    """A view, and how it is looked at."""

    name: str
    view: str
    width: int = 1000
    height: int = 860
    dark: bool = False


PICTURES = (
    Picture("explorer-answer", "#resolve?q=tensorflow%3D%3D2.6.5&target=x86", height=1150),
    Picture(
        "explorer-refusal",
        "#why-not?q=cuda%3D%3D11.0&with=tensorflow%3D%3D2.6.5&arch=sm_86",
        dark=True,
        height=1150,
    ),
    Picture("explorer-heat-map", "#grid?rows=torch-variant&cols=device&from=wheel"),
    Picture("explorer-timeline", "#timeline", dark=True),
    Picture(
        "explorer-phone",
        "#resolve?q=torch&from=wheel&target=arm&device=orin",
        width=390,
        height=1100,
    ),
)


def take(browser: Browser, address: str, picture: Picture) -> None:
    """Open a view as somebody has it who sent nobody anywhere before, and keep what is seen."""
    page = browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.dark else "light",
    )
    page.goto(address + picture.view)
    page.wait_for_selector(".progress.done")
    page.wait_for_selector(".answer, .refused, main table, main svg", state="attached")
    # The facts of a cell come after a moment.
    page.wait_for_timeout(1000)
    page.screenshot(path=FOLDER / f"{picture.name}.png")
    page.close()


def main() -> None:
    """Take them all."""
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for picture in PICTURES:
            take(browser, sys.argv[1], picture)


if __name__ == "__main__":
    main()
