"""The explorer, made once, served from this machine, and opened in Chromium."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.factbase import small
from toolmatrix.api.explorer import Explorer
from toolmatrix.commands.page import page as make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from toolmatrix.api.requests import OpenMatrix

MODULES = Path(sys.executable).parent.parent / "node/node_modules"
# Milliseconds for whatever a test waits for: the machine may have other work.
PATIENCE = 120_000
# What a page hears from its worker is kept, so that a test can compare it.
LISTENING = """
window.heard = [];
window.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => data.document && heard.push(data.document));
  }
};
"""


def unable(why: str) -> NoReturn:
    """Skip a test whose real part is not there, or fail it with CI set."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def module(name: str) -> Path:
    """The folder of an npm package."""
    found = MODULES / name
    if not found.is_dir():
        unable(f"needs the npm package {name}, which `./tests/run --builds` installs")
    return found


class Quiet(SimpleHTTPRequestHandler):
    """A host of files that says nothing, and forbids workers what the page itself forbids."""

    def log_message(self, format: str, *args: object) -> None:
        """Leave the log alone."""

    def end_headers(self) -> None:
        """Send the policy that documents carry in their head with every file, as a careful host would."""
        self.send_header(
            "Content-Security-Policy",
            "default-src 'self' data:; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'",
        )
        super().end_headers()


@pytest.fixture(scope="session")
def browser(_large: None) -> Iterator[Browser]:
    """Debian's Chromium."""
    path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unable("needs playwright: pip install '.[consumers]'")
    if path is None:
        unable("needs chromium: apt-get install chromium")
    with sync_playwright() as started:
        # As root, as which tests may run, it has no sandbox.
        chromium = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def opened() -> OpenMatrix:
    """The built-in matrix."""
    from tests import matrix
    from toolmatrix.api.requests import OpenMatrix

    return OpenMatrix(index=matrix.opened_once((), {"XDG_CACHE_HOME": matrix.folder()}))


@pytest.fixture(scope="session")
def here(opened: OpenMatrix) -> Explorer:
    """The same questions, asked of this interpreter."""
    return Explorer(opened)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, opened: OpenMatrix) -> Path:
    """The folder of the page."""
    folder = tmp_path_factory.mktemp("site")
    # An earlier matrix of which most is another.
    path = small.write(tmp_path_factory.mktemp("earlier"), small.facts())
    made = make(folder, pyodide=module("pyodide"), earlier=path, matrix=opened)
    # Node is here, so that what the program imports has been compiled: without it the page starts seconds later.
    assert len(str(made).splitlines()) == 1, made
    return folder


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the page is served."""
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Visit:
    """One page in the browser, and what happened on it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.asked: list[str] = []
        self.said: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(str(error)))

    def go(self, view: str = "") -> Visit:
        """Open a view by its address."""
        self.page.goto(self.address + view)
        return self

    def ready(self) -> Visit:
        """Wait until the program has started."""
        self.page.wait_for_selector(".progress.done")
        return self

    def complaints(self) -> list[str]:
        """What the browser complained of, and requests that left the origin."""
        away = [url for url in self.asked if not url.startswith((self.address, "data:"))]
        return [*self.said, *away]


@pytest.fixture(scope="module")
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """A page whose program has started; what it complains of fails its tests at the end."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script(LISTENING)
    found = Visit(context.new_page(), address).go().ready()
    yield found
    assert found.complaints() == []
    context.close()
