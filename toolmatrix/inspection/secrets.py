"""Secrets that were baked into an image: found by the names and the forms of values, and never shown.

Forms are those that the issuers print: GitHub ("About authentication to GitHub", token formats), GitLab (token
prefixes), AWS (IAM identifiers), Slack, Google, Hugging Face, PyPI, PEM (RFC 7468), JWT (RFC 7519), and user
information in a URL (RFC 3986).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from toolmatrix.inspection.model import Inventory, Seen

MASK = "***"
"""The text in the place of a secret."""
FEATURE = "secret"
"""The feature that names what contains one."""
_NAME = (
    r"(?:\w{0,60}_)?(?:PASS(?:WORD|WD|PHRASE)?|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)"
    r"(?:_(?:ID|KEY|VALUE))?"
)
_VALUE = re.compile(
    r"gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|(?:AKIA|ASIA)[0-9A-Z]{16}|xox[abeoprs]-[\w-]{10,}"
    r"|AIza[\w-]{35}|hf_\w{30,}|pypi-Ag[\w-]{40,}|eyJ[\w-]{8,200}\.eyJ[\w-]{8,9999}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)
_IN_URL = re.compile(r"(?<=://)[^\s/@:'\"]*:[^\s/@'\"]+(?=@)")
_ASSIGNED = re.compile(
    rf"(?i:(?<![\w-])(?P<name>{_NAME})="
    r"|(?<![\w-])(?P<option>--?[\w-]{0,40}(?:password|passwd|token|secret|api-key))[= ]"
    r"|(?P<scheme>authorization:\s*\w+)\s)"
    r"(?P<value>'[^']*'|\"[^\"]*\"|[^\s\"';|&]+)"
)
# Values of such settings that are not secret: nothing, a path or a reference, a number, a word.
_NO_SECRET = re.compile(
    r"['\"]?(?:|[/$.<].*|\*+|\d{1,9}|true|false|yes|no|none|null|https?://.*)['\"]?", re.IGNORECASE
)
# Letters of a secret that is looked for in other texts; a shorter one would be found in words.
_SHORTEST = 8
# Secrets that are looked for in other texts than their own; no honest image has so many.
_MOST = 100
_SETTING_PREFIXES = ("env:", "label:")
_SETTINGS = ("entrypoint", "cmd")


def hide_secrets(inventory: Inventory, history: Iterable[str] = ()) -> Inventory:
    """An inventory without the secrets in it, naming what contains one; `history` are instructions that it lacks."""
    holders: dict[Seen, None] = dict.fromkeys(inventory.features.get(FEATURE, ()))
    known: set[str] = set()
    for name, value, sighting in _texts(inventory, history):
        for holder, secret in _secrets(name, value):
            holders.setdefault(sighting.replace(version=holder, default=False))
            known.add(secret)
    if not holders:
        return inventory
    # The longest first: a secret that holds another is taken out whole.
    searched = sorted(known, key=lambda secret: (-len(secret), secret))[:_MOST]
    mask = partial(_mask, known, searched)
    features = dict(inventory.features)
    for name in filter(_is_setting, inventory.features):
        features[name] = tuple(
            sighting.replace(version=mask(sighting.version)) for sighting in features[name]
        )
    return inventory.replace(
        features=dict(sorted({**features, FEATURE: tuple(holders)}.items())),
        history=tuple((layer, mask(text)) for layer, text in inventory.history),
        skipped=tuple(skip.replace(reason=mask(skip.reason)) for skip in inventory.skipped),
    )


def _texts(inventory: Inventory, history: Iterable[str]) -> Iterator[tuple[str, str, Seen]]:
    for name, sightings in inventory.features.items():
        if _is_setting(name):
            for sighting in sightings:
                yield name.partition(":")[2], sighting.version, sighting
    for layer, text in inventory.history:
        yield "", text, Seen(version="", seen_by="history", where="history", layer=layer)
    for text in history:
        yield "", text, Seen(version="", seen_by="history", where="history")


def _secrets(name: str, text: str) -> Iterator[tuple[str, str]]:
    if re.fullmatch(_NAME, name, re.IGNORECASE) and not _NO_SECRET.fullmatch(text):
        yield name, text
        return
    for match in _ASSIGNED.finditer(text):
        value = match["value"].strip("'\"")
        if not _NO_SECRET.fullmatch(value):
            yield match["name"] or match["option"] or "Authorization", value
    for pattern, what in ((_IN_URL, "a password in a URL"), (_VALUE, "a token")):
        values = (match[0] for match in pattern.finditer(text))
        yield from ((name or what, value) for value in values if MASK not in value)


def _is_setting(name: str) -> bool:
    # Names of files and packages are shown as they are: a secret in them is none.
    return name.startswith(_SETTING_PREFIXES) or name in _SETTINGS


def _mask(known: set[str], searched: Sequence[str], text: str) -> str:
    if text in known:
        return MASK
    for secret in searched:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
        # A short one is taken out only behind a sign; anywhere else it may be a part of a word.
        elif secret in text:
            text = re.sub(rf"(?<=[=: '\"/]){re.escape(secret)}(?=$|[\s'\"@])", MASK, text)
    return text
