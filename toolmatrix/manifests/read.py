"""Which file is read as what, by its name or its words; and the files of a folder that can be."""

from __future__ import annotations

import os
import re
from importlib import import_module

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests import files
from toolmatrix.manifests.model import EXCERPT, NotRead, bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolmatrix.manifests.files import Files
    from toolmatrix.manifests.model import FileText, ProjectManifest

    Reader = Callable[[FileText, Files], ProjectManifest]

# Readers are named `module.function`, as a command imports those of its files alone.
# By the folders of a file and its name, which say more than the name alone.
_BY_PATH: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"(?:.*/)?{pattern}", re.IGNORECASE), reader)
    for pattern, reader in (
        (r"\.github/workflows/[^/]+\.ya?ml", "pipelines.read_workflow"),
        (r"req(?:uirement)?s/[^/]+\.(?:txt|in)", "requirements.requirements_file"),
    )
)
# By the name of a file, the first that fits.
_BY_NAME: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reader)
    for pattern, reader in (
        (r"(?:.*[._-])?(?:docker|container)file(?:[._-].*)?", "dockerfile.read"),
        (r"\.?devcontainer\.json", "containers.read_devcontainer"),
        (r"pyproject\.toml", "pyproject.read"),
        (r"uv\.lock", "locks.read_uv"),
        (r"poetry\.lock", "locks.read_poetry"),
        (r"pdm\.lock", "locks.read_pdm"),
        (r"pylock\.(?:[^.]+\.)?toml", "locks.read_pylock"),
        (r"Pipfile\.lock", "locks.read_pipenv"),
        (r"Pipfile", "environments.read_pipfile"),
        (r"pixi\.toml", "environments.read_pixi"),
        (r"pixi\.lock", "conda_locks.read_pixi"),
        (r"(?:.*[._-])?conda-lock\.ya?ml", "conda_locks.read_conda_lock"),
        (r"conda-.*\.lock", "conda_locks.read_explicit"),
        (r"cog\.ya?ml", "pipelines.read_cog"),
        (r"\.gitlab-ci(?:[._-].*)?\.ya?ml", "pipelines.read_gitlab"),
        (r"(?:GNU)?makefile", "scripts.read_makefile"),
        (r"(?:.*[._-])?(?:install|setup)(?:[._-].*)?\.sh", "scripts.read_script"),
        (
            r"(?:readme|install|installation|setup|quickstart|getting[._-]started)(?:[._-].*)?\.(?:md|markdown)",
            "scripts.read_markdown",
        ),
        (r".*\.ipynb", "notebooks.read"),
        (r"setup\.py", "setup_files.read_script"),
        (r"setup\.cfg", "setup_files.read_configuration"),
        (r"(?:docker-)?compose(?:[._-].*)?\.ya?ml", "containers.read_compose"),
        (
            r"(?:.*[._-])?(?:environment|env|conda)(?:[._-].*)?\.ya?ml",
            "requirements.conda_environment",
        ),
        (
            r"(?:.*[._-])?(?:requirements?|constraints?)(?:[._-].*)?\.(?:txt|in)",
            "requirements.requirements_file",
        ),
        (
            r"(?:.*[._-])?(?:collect_?env|check_env|(?:pip|conda)[_-]list|nvidia-smi).*\.(?:txt|log)",
            "pastes.read",
        ),
    )
)
# By the content of a file whose name says nothing, unless it is a paste.
_BY_CONTENT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), reader)
    for pattern, reader in (
        (r"^\s*FROM\s+\S", "dockerfile.read"),
        (r"^services\s*:", "containers.read_compose"),
        (r"^dependencies\s*:", "requirements.conda_environment"),
        (r"^\[(?:project|tool\.poetry|build-system)\]", "pyproject.read"),
    )
)
KINDS = (
    "a Dockerfile, requirements.txt, environment.yml, pyproject.toml, setup.py, a lock file, compose.yaml,"
    " devcontainer.json, cog.yaml, a CI pipeline, a Makefile, a shell script, a README, a notebook or a pasted"
    " environment report"
)
"""What can be judged, in words."""
STDIN = "stdin"
"""The name of what is piped in, of which only the content says what it is."""
_LIST = "requirements.requirements_file"
_PASTE = "pastes.read"
# How a list of installed packages begins that was saved as a file of requirements.
_PRINTED_LIST = re.compile(
    r"\s*(?:# packages in environment at |# This file may be used to create an environment using"
    r"|Package[ \t]+Version[ \t]*\r?\n-{5,} +-{5,})"
)
_BY_ENDING: Mapping[str, str] = {".txt": _LIST, ".sh": "scripts.read_script"}
# Hidden folders with files of the project, and folders with what others wrote.
_HIDDEN = frozenset((".devcontainer", ".github"))
_FOREIGN = frozenset(("node_modules", "site-packages", "__pycache__", "venv", ".venv"))


def _named(path: str) -> str | None:
    """The name of the reader of a file by its path."""
    name = os.path.basename(path)
    whole = os.path.abspath(path).replace(os.sep, "/")
    by_path = (reader for pattern, reader in _BY_PATH if pattern.fullmatch(whole))
    by_name = (reader for pattern, reader in _BY_NAME if pattern.fullmatch(name))
    return next(by_path, None) or next(by_name, None)


def _by_content(text: str) -> str | None:
    """The name of the reader of a file by its content."""
    from toolmatrix.manifests import pastes

    if pastes.SIGNATURE.search(text):
        return _PASTE
    return next((reader for words, reader in _BY_CONTENT if words.search(text)), None)


def _imported(name: str) -> Reader:
    """A reader by its name."""
    module, _, function = name.partition(".")
    reader: Reader = getattr(import_module(f"toolmatrix.manifests.{module}"), function)
    return reader


def manifest(source: FileText, instead: Mapping[str, str] | None = None) -> ProjectManifest:
    """Read one file, and what it names beside it: `instead` of what lies there by path. Raises ManifestError."""
    name = os.path.basename(source.path)
    reader = _named(source.path)
    if reader == _LIST and _PRINTED_LIST.match(source.text):
        reader = _PASTE
    reader = reader or _by_content(source.text)
    # Lists of packages are called many names, and so are scripts.
    ending = ".txt" if name == STDIN else os.path.splitext(name)[1]
    reader = reader or _BY_ENDING.get(ending)
    if reader is None:
        raise ManifestError(
            "unknown kind of file",
            where=Position(source.path),
            expected=KINDS,
            found=f"`{name}`",
            help="use the file name that its tool expects",
        )
    beside = "" if source.path == STDIN else source.path
    manifest = _imported(reader)(source, files.Files(beside, instead, source.root))
    accepted = bounded(source.path, manifest.environments)
    longer = [
        NotRead(text=text[:EXCERPT], why=why)
        for file in manifest.sources
        for text, why in file.too_long
    ]
    # That a value is unknown is said where it is too long as well.
    places = {str(entry.where) for entry in longer}
    unread = [entry for entry in manifest.unread if str(entry.where) not in places]
    return manifest.replace(environments=accepted, unread=(*unread, *longer))


def below(folder: str) -> Iterator[str]:
    """The paths of the files in and below a folder that are known by their names, in their order."""
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _FOREIGN and (not name.startswith(".") or name in _HIDDEN)
        )
        for name in sorted(names):
            path = os.path.join(directory, name)
            if _named(path):
                yield path
