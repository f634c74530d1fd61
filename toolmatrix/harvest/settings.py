"""The package indexes of this machine's user, as pip and uv are set up.

pip is asked for its own settings. The first index is that of facts; others are asked for what it does not have.
"""

from __future__ import annotations

import os.path
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache

from toolmatrix.harvest.transport import missing
from toolmatrix.value import Value

_SECONDS = 30


class Indexes(Value):
    """Addresses of package indexes, the one that is asked first in front."""

    urls: tuple[str, ...]
    # A file of certificates, "" for those of the environment.
    certificates: str = ""
    proxy: str = ""


def indexes(env: Mapping[str, str]) -> Indexes:
    """The indexes of `PIP_*` and `UV_*` variables, else of pip's own files, else the public one."""
    try:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT
    except ImportError:
        raise missing("pypi-simple") from None
    pip = _pip(tuple(sorted(env.items())))
    first = (
        env.get("PIP_INDEX_URL", "")
        or env.get("UV_DEFAULT_INDEX", "")
        or env.get("UV_INDEX_URL", "")
        or pip.get("index-url", "")
        or PYPI_SIMPLE_ENDPOINT
    )
    more = " ".join(
        (env.get("UV_INDEX", ""), env.get("UV_EXTRA_INDEX_URL", ""), pip.get("extra-index-url", ""))
    )
    # uv may give an index a name.
    named = [word.partition("=")[2] if _is_named(word) else word for word in (first, *more.split())]
    certificates = pip.get("cert", "") or env.get("SSL_CERT_FILE", "")
    return Indexes(
        urls=tuple(dict.fromkeys(named)),
        certificates=certificates if os.path.exists(certificates) else "",
        proxy=pip.get("proxy", ""),
    )


def _is_named(word: str) -> bool:
    # Behind it an address may have `=` in its query without being named.
    return "=" in word.partition("://")[0]


@lru_cache(maxsize=1)
def _pip(env: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The settings of pip, its variables before its files; nothing where there is no pip."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[str, str] = {}
    # Variables decide, then what is for `pip install` alone.
    for wanted in (":env:", "install", "global"):
        for line in ran.stdout.splitlines():
            key, _, value = line.partition("=")
            section, _, name = key.rpartition(".")
            if section == wanted:
                # Written by Python's repr, which a shell reads the same where it holds no quote.
                # Several addresses stand on lines of their own, of which repr makes `\n`.
                found.setdefault(name, " ".join(shlex.split(value.replace("\\n", " "))))
    return found
