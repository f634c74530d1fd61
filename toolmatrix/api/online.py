"""Packages that a matrix does not have, harvested from the package index for a request that is asked online."""

from __future__ import annotations

import hashlib
import json
import os
import os.path
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolmatrix.api import this_day
from toolmatrix.api.harvests import Effort, cache
from toolmatrix.errors import IndexFailed, NothingMatched, OutputError, UsageError
from toolmatrix.factbase import yamlfile
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import cache_folder
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.harvest import families, runs
from toolmatrix.harvest.families import FAMILIES, Family, HarvestContext
from toolmatrix.harvest.transport import Session
from toolmatrix.outputs import os_errors_as, replace_file
from toolmatrix.request import spelling
from toolmatrix.request.names import Names, joined
from toolmatrix.value import Value

NEWEST = 64
"""Releases of a package that are read: the newest, and as many of those that are asked for."""
PACKAGES = 8
"""Packages of one request."""
_DIGITS = 12
_LETTERS = 80
"""Digits of a sha256 and letters of packages that name a file of facts."""
_SPOKEN_OF = ("python", "machine", "device")
"""Components that facts about any package are about."""
# What a package may be called (PEP 508), in lower case.
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_ABOUT = "Harvested from the package index for a request, and unreviewed."
_INDEX = "the index comes from the settings of pip or uv; `PIP_INDEX_URL` or `UV_DEFAULT_INDEX` sets another one"


class HarvestedPackages(Value):
    """A file of facts with the packages that a request names and the matrix lacks, and what reading them took."""

    path: str
    packages: tuple[str, ...]
    effort: Effort


def harvest_missing(
    index: Index,
    words: Sequence[str],
    env: Mapping[str, str],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> HarvestedPackages | None:
    """The packages of the user's index that words of a request name and a matrix lacks; None where it lacks none.

    The file lies in the user's cache and is called after what is in it: it never changes. Raises NothingMatched for a
    name that the index does not have either, IndexFailed, HarvestRefused, OutputError, ToolMissing and UsageError.
    """
    lacking = _missing_packages(index, words)
    if not lacking:
        return None
    folder = cache_folder(env)
    if not folder:
        raise OutputError(
            "no directory for harvested facts",
            expected="`XDG_CACHE_HOME` or `HOME` in the environment",
        )
    session, began = Session(cache(env)), time.monotonic()
    try:
        text = _text(index, lacking, session, env, progress)
    except IndexFailed as error:
        error.help = error.help or _INDEX
        raise
    finally:
        session.close()
    effort = Effort(
        requests=session.requests, bytes=session.bytes, seconds=time.monotonic() - began
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    path = os.path.join(folder, "online", f"{'+'.join(lacking)[:_LETTERS]}-{digest}.yaml")
    # A file that is there keeps its time, by which the index that was compiled with it is known to be current.
    if not os.path.exists(path):
        with os_errors_as("cannot store the harvested facts", path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, text)
    return HarvestedPackages(path=path, packages=tuple(lacking), effort=effort)


def _missing_packages(index: Index, words: Sequence[str]) -> dict[str, str]:
    """By name of each package the releases that are asked for, "" for any."""
    names = Names(index)
    lacking: dict[str, str] = {}
    for word in joined(words):
        name, selector = names.split(word)
        name = name.partition("[")[0].replace("_", "-")
        try:
            Scale("pep440", ()).parse(selector or "*")
        except SelectorError:
            # It is refused where the request is read, beside what the package has.
            selector = ""
        if _NAME.fullmatch(name) and not (names.called(name) or spelling.understood(names, name)):
            lacking[name] = " ".join(filter(None, (lacking.get(name), selector)))
    if len(lacking) > PACKAGES:
        raise UsageError(
            "too many packages to harvest for one request",
            expected=f"at most {PACKAGES} that the matrix does not have",
            found=", ".join(lacking),
        )
    return lacking


def _text(
    index: Index,
    lacking: Mapping[str, str],
    session: Session,
    env: Mapping[str, str],
    progress: Callable[[int, int], None],
) -> str:
    # As indexes call them (PEP 503).
    named = {re.sub(r"[-.]+", "-", name): name for name in lacking}
    packages = {
        package: {"component": name, "newest": NEWEST, "besides": lacking[name] or "*"}
        for package, name in named.items()
    }
    context = context_of(index, session, env).replace(progress=progress)
    try:
        document = packages_document(context, packages)
    except NothingMatched as error:
        package = error.where.path if error.where else ""
        raise spelling.unknown(Names(index), named.get(package, package), requested=True) from None
    return runs.text(document, _ABOUT)


def context_of(
    index: Index, session: Session, env: Mapping[str, str], place: str = ""
) -> HarvestContext:
    """What a harvester of packages that a matrix lacks needs; `place` is an index to read instead of the user's.

    Raises UsageError for a matrix that facts about packages cannot be put on top of.
    """
    components = index.header["components"]
    for name in _SPOKEN_OF:
        if name not in components:
            raise UsageError(
                "this matrix does not accept packages from the index",
                expected="components " + ", ".join(_SPOKEN_OF),
                found=f"a front page without `{name}`",
            )
    vocabulary = families.vocabulary()
    return HarvestContext(
        session=session,
        day=this_day(env),
        packages={
            package: name for package, name in vocabulary["packages"].items() if name in components
        },
        limited=vocabulary["limited"],
        components=frozenset(components),
        pythons=tuple(index.component("python").versions),
        place=place,
        env=env,
    )


def packages_document(
    context: HarvestContext, packages: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The facts of packages, by name with the keys of a family, marked as unreviewed. Raises ToolmatrixError."""
    unreviewed = {"device-code": "unread", "unreviewed": True}
    return family_document(
        context,
        {
            "kind": "index",
            "packages": {name: {**unreviewed, **package} for name, package in packages.items()},
        },
    )


def family_document(context: HarvestContext, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a family with these keys, read like those of the matrix. Raises ToolmatrixError."""
    # JSON is YAML.
    text = json.dumps({"about": _ABOUT, **fields}).encode()
    node = yamlfile.parse(text, "the request", of=FAMILIES)
    family = Family(name="online", kind=fields["kind"], about=_ABOUT, node=node)
    return families.harvest(family, context)
