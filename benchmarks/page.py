"""How soon the explorer answers in Debian's Chromium, and what it fetches for that.

    python benchmarks/page.py --pyodide node_modules/pyodide [--runs N]

Prints the median of first paint, of the first answer shown, and of the first answer to a question of one's own, with a
cold and with a warm cache; what further questions take; and the bytes, as a host sends them that packs what packs.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import os
import shutil
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from playwright.sync_api import sync_playwright

from toolmatrix.commands.page import page as make

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

OWN = ("q=torch&device=GTX+1080+Ti&from=wheel", "1080")
FURTHER = (
    ("q=tensorflow%3D%3D2.6.5", "2.6.5"),
    ("q=jax&from=wheel", "jax"),
    ("q=cuda&device=RTX+5090", "5090"),
    ("q=tensorflow%3D%3D2.6.5&target=x86%2Carm%2Camd", "x86,arm,amd"),
)
# What is packed already gains nothing.
PACKED = (".bin", ".zip")


class Host(SimpleHTTPRequestHandler):
    """A host of files as many are: packed on the way, and kept where the name says what is inside."""

    def log_message(self, format: str, *args: object) -> None:
        """Leave the log alone."""

    def end_headers(self) -> None:
        """Let the browser keep all but the first page."""
        first = urlparse(self.path).path in ("/", "/index.html")
        kept = "no-cache" if first else "public, max-age=31536000, immutable"
        self.send_header("Cache-Control", kept)
        super().end_headers()


def busy() -> dict[str, float]:
    """Milliseconds of processor that each process started from here has used: on a busy machine they tell more."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name of a program, in brackets, may hold anything.
            numbers = path.read_text().rpartition(") ")[2].split()
            parents[path.parent.name] = numbers[1]
            used[path.parent.name] = int(numbers[11]) + int(numbers[12])
    ours = {str(os.getpid())}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    ours.discard(str(os.getpid()))
    return {child: used[child] * 1000 / os.sysconf("SC_CLK_TCK") for child in ours}


class Load:
    """The milliseconds of one visit."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        begun, before = time.perf_counter(), busy()
        page.goto(f"{address}#resolve?{OWN[0]}")
        page.wait_for_selector(f".answer pre:has-text('{OWN[1]}')")
        self.own = (time.perf_counter() - begun) * 1000
        self.used = sum(used - before.get(child, 0) for child, used in busy().items())
        paints = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        self.paint = page.evaluate(paints)

    def further(self, address: str) -> list[float]:
        """The milliseconds of further questions."""
        found = []
        for said, text in FURTHER:
            begun = time.perf_counter()
            self.page.goto(f"{address}#resolve?{said}")
            self.page.wait_for_selector(f".answer pre:has-text('{text}')")
            found.append((time.perf_counter() - begun) * 1000)
        return found


def shown(context: BrowserContext, address: str) -> float:
    """The milliseconds until the answer to the default question stands there."""
    page = context.new_page()
    begun = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(".answer.yes")
    took = (time.perf_counter() - begun) * 1000
    page.close()
    return took


def sent(path: Path) -> int:
    """The bytes of a file on their way."""
    data = path.read_bytes()
    return len(data) if path.suffix in PACKED else len(gzip.compress(data, 9))


def main() -> None:
    """Make the page, visit it, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pyodide", default="")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        make(folder, pyodide=given.pyodide)
        print(f"made in {time.perf_counter() - begun:.1f} s")
        handler = functools.partial(Host, directory=folder)
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            visited(Path(folder), f"http://127.0.0.1:{server.server_port}/", given.runs)
            server.shutdown()


def visited(folder: Path, address: str, runs: int) -> None:
    """Visit the page so often, each time as somebody new and as somebody who comes again."""
    figures: dict[str, list[float]] = {}
    asked: set[str] = set()
    with sync_playwright() as started:
        for _ in range(runs):
            # The cache of a browser is its profile's: a new one has none.
            with tempfile.TemporaryDirectory() as profile:
                context = started.chromium.launch_persistent_context(
                    profile, executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                context.on("request", lambda request: asked.add(urlparse(request.url).path))
                for name in ("cold", "warm"):
                    load = Load(context.new_page(), address)
                    figures.setdefault(f"first paint, {name}", []).append(load.paint)
                    figures.setdefault(f"first own answer, {name}", []).append(load.own)
                    figures.setdefault(f"processor for that, {name}", []).append(load.used)
                    figures.setdefault("a further answer", []).extend(load.further(address))
                    load.page.close()
                figures.setdefault("default answer shown, warm", []).append(shown(context, address))
                context.close()
    for name, took in sorted(figures.items()):
        print(f"{name}: {median(took):.0f} ms ({min(took):.0f} to {max(took):.0f})")
    paths = [folder / (path.strip("/") or "index.html") for path in asked if path]
    held = sorted({path for path in paths if path.is_file()})
    for path in sorted(held, key=sent)[-4:]:
        print(f"{sent(path):>9} bytes {path.relative_to(folder)}")
    parts = [path for path in held if path.relative_to(folder).parts[0].startswith("matrix-")]
    print(f"{sum(map(sent, parts)):>9} bytes in {len(parts)} files of the matrix")
    print(f"{sum(map(sent, held))} bytes in {len(held)} files of all questions asked")
    every = [path for path in folder.rglob("*") if path.is_file()]
    print(f"{sum(map(sent, every))} bytes in {len(every)} files of the whole page")


if __name__ == "__main__":
    main()
