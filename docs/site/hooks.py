"""Hooks of MkDocs: pages of the reference, files of the repository that pages link, and the explorer.

`TOOLMATRIX_EXPLORER` names the folder that `toolmatrix page --output` wrote, `build/explorer` if nothing does.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import reference
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Where files of the repository lie in the site.
CARRIED = "repository"
_OUTSIDE = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
# Pages that are read in the repository as the first of their folder; the site has one first page.
PLACES = {"README.md": "index.md", "docs/README.md": "map.md"}
# The page that says what the explorer is.
_EXPLORER = "explorer.md"


def explorer() -> Path | None:
    """The folder of the explorer; None where it was not made."""
    folder = ROOT / os.environ.get("TOOLMATRIX_EXPLORER", "build/explorer")
    return folder if (folder / "index.html").is_file() else None


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference, the first page, and what pages link outside of docs/."""
    for made, text in reference.files():
        files.append(File.generated(config, made, content=text))
    pages = [file for file in files.documentation_pages() if file.src_dir]
    waiting = [target for page in pages for target in _outside(page.src_uri, page.content_string)]
    files.remove(next(file for file in pages if file.src_uri == "README.md"))
    for first, uri in PLACES.items():
        text = (ROOT / first).read_text()
        files.append(File.generated(config, uri, content=text))
        waiting += _outside(_home(uri), text)
    while waiting:
        target = waiting.pop()
        uri = _place(target)
        if files.get_file_from_path(uri) is None:
            path = ROOT / target
            files.append(File.generated(config, uri, content=_carried(path)))
            if path.suffix == ".md":
                waiting += _outside(f"../{target}", path.read_text())
    return files


def _outside(uri: str, text: str) -> list[str]:
    """The paths in the repository that a page of docs/, or one beside it, links outside of it."""
    found = [_target(uri, link) for link, _ in _OUTSIDE.findall(text)]
    return [
        target for target in found if not target.startswith("docs/") and (ROOT / target).exists()
    ]


def _target(uri: str, link: str) -> str:
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), link))


def _home(uri: str) -> str:
    """Where a page of the site lies in the repository, as seen from docs/."""
    by_place = {place: target for target, place in PLACES.items()}
    carried = uri.removeprefix(f"{CARRIED}/") if uri.startswith(f"{CARRIED}/") else ""
    return posixpath.relpath(by_place.get(uri) or carried or f"docs/{uri}", "docs")


def _place(target: str) -> str:
    """Where a path of the repository is in the site: a folder is a page that lists it."""
    if target in PLACES:
        return PLACES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    name = f"{CARRIED}/{target}"
    if (ROOT / target).is_dir():
        return f"{name}/index.md"
    # A server knows what `.md` is, and may refuse to show what it knows nothing of.
    known = name.endswith((".md", ".json", ".svg", ".png", ".txt"))
    return name if known else f"{name}.txt"


def _carried(path: Path) -> str | bytes:
    if path.is_dir():
        names = sorted(one.name + "/" * one.is_dir() for one in path.iterdir())
        listed = "\n".join(f"- `{name}`" for name in names if not name.startswith(("_", ".")))
        return f"# {path.relative_to(ROOT)}\n\n{listed}\n"
    return path.read_bytes() if path.suffix == ".png" else path.read_text()


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to where their targets are in the site."""
    uri = page.file.src_uri
    home = _home(uri)

    def led(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        target = _target(home, link)
        if uri.startswith("reference/") or not (ROOT / target).exists():
            return match[0]
        return f"]({posixpath.relpath(_place(target), posixpath.dirname(uri))}{anchor})"

    del config, files
    text = _OUTSIDE.sub(led, markdown)
    if uri == _EXPLORER and explorer():
        head, _, rest = text.partition("\n")
        # Not a page of the site, so that MkDocs would look for it in vain.
        text = f'{head}\n\n<a href="app/"><strong>Open the explorer</strong></a>\n{rest}'
    return text


def on_post_build(config: MkDocsConfig) -> None:
    """Put the explorer beside its page."""
    if folder := explorer():
        shutil.copytree(folder, Path(config.site_dir, "explorer", "app"), dirs_exist_ok=True)
