"""Takes the pictures of docs/explorer.md: `python -m tests.page.pictures ADDRESS`, where a page is served."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"


PHONE: Any = {"width": 390, "height": 900}


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
        height=1000,
    ),
    Picture("explorer-heat-map", "#grid?rows=torch-variant&cols=device&from=wheel"),
    Picture("explorer-heat-map-phone", "#grid?rows=cuda&cols=arch", dark=True, **PHONE),
    Picture("explorer-timeline", "#timeline?of=torch&beside=python,driver", height=1000),
    Picture("explorer-timeline-dark", "#timeline?of=cuda&beside=driver", dark=True),
    Picture("explorer-coverage", "#coverage", dark=True, height=700),
    Picture("explorer-changes", "#changes?since=2026-11-10", height=900),
    Picture("explorer-phone", "#resolve?q=torch&from=wheel&target=arm&device=orin", **PHONE),
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
    path = FOLDER / f"{picture.name}.png"
    page.screenshot(path=path)
    page.close()
    # Few colours are enough for text and lines: a quarter of the size.
    if pngquant := shutil.which("pngquant"):
        subprocess.run([pngquant, "--force", "--ext=.png", "--speed=1", "12", path], check=True)


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
