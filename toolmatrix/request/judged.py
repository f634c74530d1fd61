"""What came of judging the files of a project, and an edit of them; a judge makes it, `report` lays it out."""

from __future__ import annotations

from toolmatrix.codes.manifests import ManifestFinding
from toolmatrix.errors import ToolmatrixError
from toolmatrix.manifests.model import NotRead, ProjectManifest
from toolmatrix.request.asked import AskedPart
from toolmatrix.solve.request import Request
from toolmatrix.value import NamedTuple, Value

FINE, REFUSED, UNKNOWN = "fine", "refused", "unknown"


class JudgedPair(NamedTuple):
    """What facts say of two parts: `says` is fine, refused or unknown, `evidence` the best that speaks for it."""

    one: AskedPart
    other: AskedPart
    says: str
    evidence: str
    facts: tuple[str, ...]


class ManifestRefusal(Value):
    """A finding with the parts that it is about, and the request that these alone make."""

    finding: ManifestFinding
    parts: tuple[AskedPart, ...]
    request: Request

    @property
    def hard(self) -> bool:
        """True where a fact forbids it, and no wheel is only lacking."""
        return self.finding.severity == "error"


class JudgedEnvironment(Value):
    """One environment: its parts, what it asks for that nobody knows, its refusals and every pair of parts."""

    name: str
    parts: tuple[AskedPart, ...]
    unknown: tuple[NotRead, ...]
    refusals: tuple[ManifestRefusal, ...]
    pairs: tuple[JudgedPair, ...]


class JudgedManifest(Value):
    """A file with its environments; `refusals` are those of all of them, each once."""

    manifest: ProjectManifest
    environments: tuple[JudgedEnvironment, ...]

    @property
    def refusals(self) -> tuple[ManifestRefusal, ...]:
        """Each refusal once: a stage has those of the stage that it starts from."""
        found: dict[tuple[object, ...], ManifestRefusal] = {}
        for environment in self.environments:
            for one in environment.refusals:
                key = (one.finding.code, one.finding.asked, tuple(map(str, one.finding.places)))
                found.setdefault(key, one)
        return tuple(found.values())

    def pairs(self) -> tuple[JudgedPair, ...]:
        """Each pair of places once."""
        found: dict[tuple[object, ...], JudgedPair] = {}
        for environment in self.environments:
            for pair in environment.pairs:
                sides = (pair.one, pair.other)
                found.setdefault(tuple((one.text, str(one.item.where)) for one in sides), pair)
        return tuple(found.values())


class Edit(Value):
    """Files by path with their text before and after."""

    files: tuple[tuple[str, str, str], ...]

    @property
    def patch(self) -> str:
        """A unified patch, for `patch -p0` and `git apply -p0`."""
        from difflib import unified_diff

        found: list[str] = []
        for path, old, new in self.files:
            before, after = (text.splitlines(keepends=True) for text in (old, new))
            found += map(_ended, unified_diff(before, after, path, path))
        return "".join(found)


def _ended(line: str) -> str:
    # The last line of a file may have no end, which a patch has to say.
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


class JudgedFile(Value):
    """One file: what came of it, or the error that it cannot be read by."""

    path: str
    judged: JudgedManifest | None = None
    edit: Edit | None = None
    error: ToolmatrixError | None = None

    @property
    def refusals(self) -> tuple[ManifestRefusal, ...]:
        """All that is refused in it, and all of which there is no wheel."""
        return self.judged.refusals if self.judged else ()

    @property
    def hard(self) -> tuple[ManifestRefusal, ...]:
        """What a fact refuses."""
        return tuple(one for one in self.refusals if one.hard)

    @property
    def outcome(self) -> str:
        """no where a fact refuses something, yes where facts join any of it, unknown else; unread for an error."""
        if self.judged is None:
            return "unread"
        if self.hard:
            return "no"
        return "yes" if self.count(FINE) else "unknown"

    def count(self, says: str) -> int:
        """The number of pairs of which facts say so."""
        return sum(pair.says == says for pair in self.judged.pairs()) if self.judged else 0

    @property
    def unread(self) -> tuple[NotRead, ...]:
        """What was not read of it, in the order of the file."""
        return self.judged.manifest.unread if self.judged else ()

    @property
    def unknown(self) -> tuple[NotRead, ...]:
        """What the matrix does not know, each place once."""
        found: dict[tuple[str, str], NotRead] = {}
        for environment in self.judged.environments if self.judged else ():
            for one in environment.unknown:
                found.setdefault((str(one.where), one.text.text), one)
        return tuple(found.values())
