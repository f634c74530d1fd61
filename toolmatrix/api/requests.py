"""The questions about requests; `import toolmatrix` has them by the same names, and docs/python.md describes them."""

from __future__ import annotations

from toolmatrix.api.arguments import request, words
from toolmatrix.errors import MatrixError, UsageError
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import RequestContext
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TypedDict

    from typing_extensions import Unpack

    from toolmatrix.api import Matrix, Path, Wanted, Words
    from toolmatrix.api.answers import Allowed, Explanation, NoAnswer, Resolved
    from toolmatrix.api.grids import ReleaseTable
    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Kept, Request

    class RequestOptions(TypedDict, total=False):
        """The options of a request."""

        target: Words
        from_: str
        accelerator: str
        arch: Words
        device: Words
        cpu: str
        distro: str
        with_: Wanted
        prefer: str
        align: Words
        at: str
        min_evidence: str
        recipe: str
        keep: Path
        matrix: Matrix
        online: bool


class OpenMatrix(Value):
    """A matrix to ask; `paths` are the files that were put on top of the built-in one."""

    index: Index
    paths: tuple[str, ...] = ()

    @property
    def date(self) -> str:
        """The day of its newest fact."""
        return str(self.index.header["date"])

    @property
    def digest(self) -> str:
        """The digest that locks and documents name it by."""
        return str(self.index.header["digest"])

    def to_bytes(self) -> bytes:
        """The matrix compiled into what `open_matrix` takes: an archive of the files of its index."""
        import io
        import zipfile

        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.index.files().items():
                # A name alone has a day of 1980, so that equal facts make equal bytes.
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return made.getvalue()


# Bytes that a compiled matrix may have: many times what the built-in one has.
_MOST = 1 << 29
# The built-in matrix of this process: opening it reads its header anew.
_BUILT_IN: list[OpenMatrix] = []


def open_matrix(
    source: Matrix = None,
) -> OpenMatrix:
    """The built-in matrix, with files of facts on top, or one that is compiled already.

    That is the folder of an index, such as `toolmatrix/data/index` of a wheel, or the bytes of `OpenMatrix.to_bytes`.
    Raises MatrixError.
    """
    import os

    from toolmatrix.facts.index import HEADER, Index, IndexFolder
    from toolmatrix.facts.store import open_index

    if isinstance(source, OpenMatrix):
        return source
    if isinstance(source, bytes):
        return OpenMatrix(index=_index(source))
    if source is None:
        if not _BUILT_IN:
            _BUILT_IN.append(OpenMatrix(index=open_index((), os.environ)))
        return _BUILT_IN[0]
    files = (source,) if isinstance(source, (str, os.PathLike)) else source
    paths = tuple(os.fspath(path) for path in files)
    if len(paths) == 1 and os.path.isfile(os.path.join(paths[0], HEADER)):
        return OpenMatrix(index=Index(paths[0], IndexFolder(paths[0])))
    return OpenMatrix(index=open_index(paths, os.environ), paths=paths)


def _index(data: bytes) -> Index:
    import io
    import zipfile
    import zlib

    from toolmatrix.facts.index import Index, IndexDamaged, in_memory

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            small = sum(one.file_size for one in archive.infolist()) <= _MOST
            # All of it, as each file has its checksum there.
            files = {name: archive.read(name) for name in archive.namelist() if small}
        return Index("", in_memory(files))
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        EOFError,
        IndexDamaged,
    ):
        raise MatrixError(
            "the bytes of the matrix are damaged or from another version",
            expected="what `OpenMatrix.to_bytes()` of this version makes",
            found=f"{len(data)} bytes",
        ) from None


def request_context(matrix: Matrix = None, keep: Path = "") -> RequestContext:
    """The place where a request is asked: a matrix, and the lock to prefer. Raises MatrixError, LockError."""
    opened = open_matrix(matrix)
    # A command that a refusal offers has to name the files and the lock of this call.
    carried = [word for path in opened.paths for word in ("--matrix", path)]
    if not keep:
        return RequestContext(index=opened.index, carried=tuple(carried))
    import os

    path = os.fspath(keep)
    return RequestContext(
        index=opened.index, carried=(*carried, "--keep", path), keep=read_kept_releases(path)
    )


def read_kept_releases(path: str) -> Kept:
    """The releases of a lock of one environment. Raises LockError, and UsageError for one of several."""
    from toolmatrix.lock.read import read

    held = read(path)
    if held.environments and not held.targets:
        raise UsageError(
            f"{path} has several environments, and none is the default",
            expected="a lock of one environment, or with one named `default`",
            found=", ".join(sorted(held.environments)),
        )
    return tuple(
        (target, component, release)
        for target, parts in held.targets.items()
        for component, release in parts.chosen.items()
    )


def fields(wanted: Iterable[str], options: dict[str, Any]) -> Fields:
    """The fields of a request by the options of a call, of which `arguments` checked the types."""
    empty = Fields()
    found: dict[str, Any] = {"wanted": tuple(wanted)}
    for name, value in options.items():
        listed = isinstance(getattr(empty, name, ""), tuple)
        if name == "with_":
            value = words(value)
        # A string is iterable too, letter by letter: it is looked for first.
        if isinstance(value, str) and not listed:
            found[name] = value
        else:
            several = value.split(",") if isinstance(value, str) else value
            found[name] = tuple(word.strip() for word in several if word.strip())
    return Fields(**found)


def with_online_packages(named: Iterable[str], options: RequestOptions) -> OpenMatrix:
    """The matrix of a call, put in the place of what its options say: if `online`, with packages that words name.

    Raises ToolmatrixError.
    """
    import os

    options["matrix"] = opened = open_matrix(options.get("matrix"))
    if not options.pop("online", False):
        return opened
    from toolmatrix.api import online

    held = words(options.get("with_", ()))
    found = online.harvested(opened.index, [*filter(None, (*named, *held))], os.environ)
    if found is None:
        return opened
    # A matrix of bytes has no files that another could be put upon.
    if open_matrix(opened.paths).digest != opened.digest:
        raise UsageError(
            "`online` needs a matrix of files",
            expected="the built-in matrix, or paths of files",
            found="`online` with the bytes of a matrix",
        )
    options["matrix"] = opened = open_matrix((*opened.paths, found.path))
    return opened


def read_request(
    wanted: Sequence[str], options: RequestOptions, varied: Sequence[str] = ()
) -> tuple[RequestContext, Request]:
    """The place and the request that the options of a call name. Raises ToolmatrixError."""
    from toolmatrix.request.read import read

    # Options are the caller's: what is taken out is taken from a copy.
    options = options.copy()
    with_online_packages(wanted, options)
    rest: dict[str, Any] = {**options}
    place = request_context(rest.pop("matrix", None), rest.pop("keep", ""))
    said = fields(wanted, rest)
    return place, read(place.index, said, keep=place.keep, varied=varied)


def resolve(*wanted: Wanted, **options: Unpack[RequestOptions]) -> Resolved | NoAnswer:
    """The best answer to a request, or why there is none."""
    from toolmatrix.api import answers

    return answers.resolved(*read_request(request(wanted, "resolve"), options))


def why_not(*wanted: Wanted, **options: Unpack[RequestOptions]) -> Allowed | NoAnswer:
    """The reasons that forbid a request, or the answer that nothing does."""
    from toolmatrix.api import answers

    return answers.allowed(*read_request(request(wanted, "why_not"), options))


def explain(
    name: str, *wanted: Wanted, invert: bool = False, **options: Unpack[RequestOptions]
) -> Explanation | NoAnswer:
    """Why a component is at its version in the answer to a request; `invert` says what depends on it.

    A name with a version, or of a build, is asked for too. Raises NothingMatched where the answer does not hold it.
    """
    from toolmatrix.api import answers
    from toolmatrix.request.names import Names

    named = words(*wanted)
    opened = with_online_packages((name, *named), options)
    component, told = Names(opened.index).subject(name)
    place, read = read_request(request((name, *named) if told else named, "explain"), options)
    return answers.explained(place, read, component, invert=invert)


def matrix(
    rows: str,
    cols: str = "",
    *,
    where: Wanted = (),
    everything: bool = False,
    **options: Unpack[RequestOptions],
) -> ReleaseTable:
    """A grid of two components, or the releases of one: of those that `where` names, on the first target."""
    from toolmatrix.api import grids

    listed = words(where)
    opened = with_online_packages((rows, cols, *listed), options)
    varied = grids.sides(opened.index, rows, cols)
    found = read_request(grids.wanted(varied, listed), options, varied)
    return grids.ReleaseTable(*found, varied, where=listed, everything=everything)
