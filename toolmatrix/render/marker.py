"""Marks rendered files: each contains its own SHA-256, computed with zeros in the place of the digest.

So any file can be recognized as rendered, and as unchanged since, in formats without comments as well.
"""

from __future__ import annotations

import re

BLANK = "sha256:" + 64 * "0"
"""The placeholder of the digest, which templates write after the word `file`."""

_NAMED = re.compile(r"\bfile\W+(sha256:[0-9a-f]{64})\b")


def signed(text: str) -> str:
    """A rendered text with its digest."""
    from hashlib import sha256

    return _with(text, "sha256:" + sha256(text.encode("utf-8", "surrogateescape")).hexdigest())


def is_ours(text: str) -> bool:
    """True if a text names a digest of itself, as only rendered files do."""
    return _NAMED.search(text) is not None


def is_unchanged(text: str) -> bool:
    """True if a text is as it was written, whatever its line ends."""
    # git may have converted the line ends of a clone.
    plain = text.replace("\r\n", "\n")
    return is_ours(plain) and signed(_with(plain, BLANK)) == plain


def _with(text: str, digest: str) -> str:
    # Only the first, in the head of the file: others may come from a recipe.
    return _NAMED.sub(lambda match: match[0].replace(match[1], digest), text, count=1)
