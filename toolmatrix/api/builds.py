"""What came of building images: in words, as the document `toolmatrix.builds/1`, and as JUnit."""

from __future__ import annotations

from toolmatrix.api import PLAIN, Outcome, Report
from toolmatrix.documents import Amount, Annotated, Count, NotRequired, TypedDict
from toolmatrix.report.terminal import Terminal, cut, plural, printable
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.report.diagnosis import CauseEntry

SCHEMA = "toolmatrix.builds/1"
# Columns before the details of a failed build.
_LABEL = 8


class BuildResult(TypedDict):
    """How the build of an image ended."""

    image: str
    file: str
    platform: str
    log: str
    seconds: Amount
    exit_code: int
    step: str
    digest: NotRequired[str]
    """Of an image that was pushed or written into an archive."""
    kept: NotRequired[bool]
    """Built by an earlier run with --resume, and still there."""
    findings: list[CauseEntry]


class JoinedImages(TypedDict):
    """What was pushed as one name, and the images in it."""

    name: str
    images: list[str]


class BuildCounts(TypedDict):
    """How many were built."""

    built: Count
    failed: Count


class BuildsDocument(TypedDict):
    """What `toolmatrix build --json` prints: how the build of each image ended. Of one that failed, `step` is the step
    of the Dockerfile at which it did, as the engine reports it, and `findings` what `toolmatrix diagnose` knows of
    its log.
    """

    schema: Annotated[str, SCHEMA]
    builds: list[BuildResult]
    index: NotRequired[JoinedImages]
    """What was pushed as one name, and the images in it."""
    summary: BuildCounts


class Built(Value):
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
        return sum(bool(image.exit_code) for image in self.images)

    @property
    def exit_code(self) -> int:
        """1 where one was not built."""
        return int(self.failed > 0)

    def text(self, screen: Terminal = PLAIN) -> str:
        """What failed with its step, its log and what is known of it, then each image on a line."""
        lines: list[str] = []
        for image, known in zip(self.images, self.known, strict=True):
            if known is not None:
                lines.append(f"{image.image} was not built: {image.ended}")
                lines += [f"  step: {cut(image.step, screen.width - _LABEL)}"] if image.step else []
                lines += [f"  log:  {image.log}", "", known.text(screen)]
        for image in self.images:
            status = "FAIL" if image.exit_code else "kept" if image.kept else "pass"
            lines.append(
                f"{status}  {image.image}  {image.platform}  {image.seconds:.1f} s  {image.log}"
            )
            lines += [f"      {image.digest}"] if image.digest else []
        if self.index:
            lines.append(f"index {self.index} of {', '.join(self.joined)}")
        built = len(self.images) - self.failed
        lines.append(f"{built} of {plural(len(self.images), 'image')} built")
        return "\n".join(lines) + "\n"

    def to_json(self) -> BuildsDocument:
        """The document that the command writes."""
        return {
            "schema": SCHEMA,
            "builds": [
                {
                    "image": image.image,
                    "file": image.file,
                    "platform": image.platform,
                    "log": image.log,
                    "seconds": image.seconds,
                    "exit_code": image.exit_code,
                    "step": image.step,
                    "digest": image.digest,
                    "kept": image.kept,
                    "findings": [] if known is None else known.to_json()["findings"],
                }
                for image, known in zip(self.images, self.known, strict=True)
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
        for image, known in zip(self.images, self.known, strict=True):
            names = {"classname": "toolmatrix.build", "name": printable(image.image)}
            case = ET.SubElement(suite, "testcase", names, time=f"{image.seconds:.1f}")
            if known is not None:
                what = f"{image.ended}: {printable(image.step)}" if image.step else image.ended
                failure = ET.SubElement(case, "failure", message=what)
                # XML cannot hold control letters.
                failure.text = "\n".join(map(printable, str(known).splitlines()))
        ET.indent(suite)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, "unicode") + "\n"
