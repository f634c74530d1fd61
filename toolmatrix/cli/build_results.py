"""`toolmatrix build --resume`: what earlier runs built, as long as it is there and what it was built of is the same.

What a build fetches, and an image that a name stands for in `FROM`, are not looked at again.
"""

from __future__ import annotations

import json
import os
import os.path
from threading import Lock

from toolmatrix.api.builds import SCHEMA, Builds, Built
from toolmatrix.cli.image_exports import ARCHIVE
from toolmatrix.outputs import KeptLines, os_errors_as
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from typing_extensions import Self

    Asked = Callable[[tuple[str, ...]], str]
    """What a program printed, nothing where it failed."""

BAKE = "docker-bake.json"
# What an engine, and what a registry, says of an image.
_HELD: tuple[str, ...] = ("images", "--quiet", "--no-trunc")
# Without `json` imagetools takes a template that begins so for its own, and prints the whole index.
_DIGEST = "{{json .Manifest.Digest}}"
_PUSHED: tuple[str, ...] = ("buildx", "imagetools", "inspect", "--format", _DIGEST)
# When an image was made is not what it is of.
_TIME = "CREATED"


class BuildCall(Value):
    """One call of an engine for one image: its words, the directory in which it runs, and where its log is kept.

    `target` is that of its lock, and `metadata` where its engine writes a digest.
    """

    image: str
    file: str
    platform: str
    words: tuple[str, ...]
    lock: str
    log: str
    target: str
    metadata: str = ""
    folder: str | None = None


class BuildResults:
    """The file of results, or nothing where no path is given. Raises UsageError and OutputError."""

    def __init__(self, path: str, env: Mapping[str, str], asked: Asked) -> None:
        self.lines = KeptLines(path, SCHEMA, self._take)
        self.env = env
        self.asked = asked
        self.done: dict[str, tuple[str, Built]] = {}
        # Several builds may end at once.
        self.adding = Lock()

    def __enter__(self) -> Self:
        self.lines.__enter__()
        return self

    def _take(self, body: Any) -> None:
        (held,) = body["builds"]
        self.done[body["run"]] = (
            body["identity"],
            Built(**{name: held[name] for name in Built._fields}),
        )

    def kept(self, call: BuildCall) -> Built | None:
        """What an earlier run built by this call; None where it did not, or where that is not there any more."""
        identity, built = self.done.get(self._run(call), ("", None)) if self.done else ("", None)
        return built if identity and identity == self._identity(call) else None

    def put(self, call: BuildCall, built: Built) -> None:
        """Keep what was built by a call."""
        if not self.lines.path or built.exit_code or not (identity := self._identity(call)):
            return
        body = Builds(images=(built.replace(kept=True),), known=(None,)).to_json()
        with self.adding:
            self.lines.add(body | {"run": self._run(call), "identity": identity})

    def _run(self, call: BuildCall) -> str:
        """The digest of all that a call builds of."""
        from hashlib import sha256

        stem = call.file.removesuffix(".Dockerfile")
        folder = os.path.dirname(call.file)
        files = (*(f"{stem}.{end}" for end in ("Dockerfile", "check.sh", "requirements.txt")),)
        texts = [_text(path) for path in (*files, call.lock, os.path.join(folder, BAKE))]
        held = [os.path.abspath(folder), *call.words, *texts, *self._variables(texts[-1])]
        return sha256("\0".join(held).encode()).hexdigest()

    def _variables(self, bake: str) -> Iterator[str]:
        try:
            names = [*json.loads(bake)["variable"]]
        # One that is not ours bakes as it likes.
        except (ValueError, LookupError, TypeError, RecursionError):
            return
        for name in names:
            if name in self.env and name != _TIME:
                yield f"{name}={self.env[name]}"

    def _identity(self, call: BuildCall) -> str:
        """What an image is now, by who has it; "" where it is not there."""
        if call.image.endswith(ARCHIVE):
            try:
                there = os.stat(call.image)
            except OSError:
                return ""
            return f"{there.st_size} {there.st_mtime_ns}"
        query = _PUSHED if call.metadata else _HELD
        return self.asked((call.words[0], *query, call.image)).strip()

    def __exit__(self, *_: object) -> None:
        self.lines.__exit__()


def _text(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with (
        os_errors_as("cannot read a rendered file", path),
        open(path, encoding="utf-8", errors="replace") as file,
    ):
        return file.read()
