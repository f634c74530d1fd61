"""The step of a Dockerfile at which the build of an image ended, as engines print it."""

from __future__ import annotations

import re

# BuildKit numbers all that it does, several at a time: `#7 [build 3/9] RUN make`, later `#7 ERROR: ...`.
_VERTEX = re.compile(r"#(\d+) (?=\[|https?://)(.+)")
_ERROR = re.compile(r"#(\d+) ERROR:? (.+)")
# Docker's builder before BuildKit, and buildah.
_STEP = re.compile(r"(?:Step|STEP) (\d+/\d+) ?: (.+)")


class Steps:
    """Reads a log line by line, and knows the step that failed, or else the last that began."""

    def __init__(self) -> None:
        self._began: dict[str, str] = {}
        self._last = ""
        self._failed = ""

    def read(self, line: str) -> None:
        """The next line."""
        if vertex := _VERTEX.fullmatch(line):
            self._began.setdefault(vertex[1], vertex[2])
            self._last = self._began[vertex[1]]
        elif step := _STEP.fullmatch(line):
            self._last = f"[{step[1]}] {step[2]}"
        elif (error := _ERROR.fullmatch(line)) and not self._failed:
            # Parallel steps are cancelled, and reported as further errors.
            self._failed = self._began.get(error[1], "")

    @property
    def failed(self) -> str:
        """The step at which a build ended that failed, "" for a log that shows none."""
        return self._failed or self._last
