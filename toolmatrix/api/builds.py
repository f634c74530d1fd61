"""What came of building images: in words, as the document `toolmatrix.builds/1`, and as JUnit."""

from __future__ import annotations

from typing import Any

from toolmatrix.api import PLAIN, Outcome, Report
from toolmatrix.report.terminal import Terminal, cut, plural, printable
from toolmatrix.value import Document, Value

SCHEMA = "toolmatrix.builds/1"
# Columns before what is told of a build that failed.
_LABEL = 8


class Built(Document):
    """One image: how its build ended, in how many seconds; of one that failed, the step at which it did.

    `digest` is that of an image that was pushed or written into an archive; one that is `kept` was built by an earlier
    run, and is there as that one left it.
    """

    image: str
    file: str
    platform: str
    log: str
    seconds: float
    exit_code: int
    step: str = ""
    digest: str = ""
    kept: bool = False

    @property
    def ended(self) -> str:
        """How it ended, in words."""
        took = f"{self.seconds:.1f} s"
        return f"exit code {self.exit_code} after {took}" if self.exit_code else f"in {took}"


class Builds(Outcome, Value):
    """Some images, each with what is known of its log, None for one that was built.

    `index` is the name under which the images `joined` were pushed as one, "" where none was made.
    """

    images: tuple[Built, ...]
    known: tuple[Report | None, ...]
    index: str = ""
    joined: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """How many were not built."""
        return sum(bool(one.exit_code) for one in self.images)

    @property
    def exit_code(self) -> int:
        """1 where one was not built."""
        return int(self.failed > 0)

    def text(self, screen: Terminal = PLAIN) -> str:
        """What failed with its step, its log and what is known of it, then each image on a line."""
        lines: list[str] = []
        for one, known in zip(self.images, self.known, strict=True):
            if known is not None:
                lines.append(f"{one.image} was not built: {one.ended}")
                lines += [f"  step: {cut(one.step, screen.width - _LABEL)}"] if one.step else []
                lines += [f"  log:  {one.log}", "", known.text(screen)]
        for one in self.images:
            word = "FAIL" if one.exit_code else "kept" if one.kept else "pass"
            lines.append(f"{word}  {one.image}  {one.platform}  {one.seconds:.1f} s  {one.log}")
            lines += [f"      {one.digest}"] if one.digest else []
        if self.index:
            lines.append(f"index {self.index} of {', '.join(self.joined)}")
        built = len(self.images) - self.failed
        lines.append(f"{built} of {plural(len(self.images), 'image')} built")
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The document that the command writes."""
        return {
            "schema": SCHEMA,
            "builds": [
                one.to_json() | {"findings": [] if known is None else known.to_json()["findings"]}
                for one, known in zip(self.images, self.known, strict=True)
            ],
            "index": {"name": self.index, "images": list(self.joined)},
            "summary": {"built": len(self.images) - self.failed, "failed": self.failed},
        }

    def written(self, form: str, title: str = "") -> str:
        """As `junit` a suite with a case for each image; as `md`, `html` and `svg` what is printed. Raises KeyError."""
        return self._junit() if form == "junit" else super().written(form, title)

    def _junit(self) -> str:
        from xml.etree import ElementTree as ET

        counts = {"tests": str(len(self.images)), "failures": str(self.failed)}
        suite = ET.Element("testsuite", {"name": "toolmatrix build", **counts})
        for one, known in zip(self.images, self.known, strict=True):
            names = {"classname": "toolmatrix.build", "name": printable(one.image)}
            case = ET.SubElement(suite, "testcase", names, time=f"{one.seconds:.1f}")
            if known is not None:
                what = f"{one.ended}: {printable(one.step)}" if one.step else one.ended
                failure = ET.SubElement(case, "failure", message=what)
                # XML cannot hold control letters.
                failure.text = "\n".join(map(printable, str(known).splitlines()))
        ET.indent(suite)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, "unicode") + "\n"
