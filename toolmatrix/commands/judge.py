"""`toolmatrix judge`."""

from __future__ import annotations

import os

from toolmatrix.api import Report, as_json
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import PRINTED, command
from toolmatrix.errors import ManifestError, NothingMatched
from toolmatrix.judge import edits
from toolmatrix.judge import manifests as judging
from toolmatrix.manifests import files, read
from toolmatrix.report.annotations import sarif
from toolmatrix.report.manifests import OUTCOMES, ManifestReport
from toolmatrix.request.judgement import JudgedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.api import Matrix, Path
    from toolmatrix.facts.index import Index


@command(
    group="Inspect files, images and machines",
    order=1,
    does="judging",
    usage="FILE...",
    completer="file",
    formats=("text", "json", "patch", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix judge Dockerfile requirements.txt",
        "toolmatrix judge . --format github",
        "toolmatrix judge environment.yml --format patch --output mend.patch",
    ),
)
def judge(paths: Path | Iterable[Path], *, edit: bool = True, matrix: Matrix = None) -> Report:
    """Check a Dockerfile or another project file against the facts.

    Other files are requirements, an environment of conda, a compose file, a project and a devcontainer; a folder stands
    for all such files below it. Without `edit` no way out is looked for, which takes longest. Raises ManifestError for
    a file that cannot be read, NothingMatched for a folder without any.
    """
    several = (paths,) if isinstance(paths, (str, os.PathLike)) else paths
    found = [*_files(os.fspath(path) for path in several)]
    index, judged = open_matrix(matrix).index, []
    with caller().progress("judging", "files") as progress:
        for done, (path, folder) in enumerate(found):
            progress.at(done, len(found))
            judged.append(_judged(index, path, folder, edit=edit))
    report = ManifestReport(index, judged)
    return Report(
        words=report.text,
        document=report.document,
        exit_code=OUTCOMES[report.outcome],
        forms={
            "sarif": lambda: as_json(sarif(report.annotations())),
            "github": report.github,
            "patch": report.patch,
        },
    )


def _files(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The path of each file, and the folder that it was named by; empty where it was named by itself."""
    for path in paths:
        if not os.path.isdir(path):
            yield path, ""
            continue
        below = [*read.below(path)]
        if not below:
            raise NothingMatched(
                f"no file below {path} can be judged",
                expected=read.KINDS,
                found=f"`{path}`",
            )
        yield from ((one, path) for one in below)


def _judged(index: Index, path: str, folder: str, *, edit: bool) -> JudgedFile:
    try:
        manifest = read.manifest(files.opened(path, folder or files.root_of(path)))
    except ManifestError as error:
        # Of a whole folder the others are judged all the same: a template is no Dockerfile yet.
        if not folder:
            raise
        return JudgedFile(path=path, error=error)
    result = judging.judge(index, manifest)
    # Each edit that is tried is a file to judge.
    mended = edits.smallest(index, result) if edit else None
    return JudgedFile(path=path, judged=result, edit=mended)
