"""From the arguments of a call to a matrix, a request, and the place where it is asked."""

from __future__ import annotations

from toolmatrix.api import path_list
from toolmatrix.api.arguments import words
from toolmatrix.api.caller import caller
from toolmatrix.errors import MatrixError, UsageError
from toolmatrix.request.fields import Fields, is_machine
from toolmatrix.request.read import RequestContext
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TypedDict

    from toolmatrix.api import Matrix, Path, Wanted, Words
    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.request import PreferredReleases, Request

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


class OpenMatrix(Value):
    """A matrix to ask; `paths` are the files that were put on top of the built-in one.

    `harvested` are those of them that were made of the package index for this call.
    """

    index: Index
    paths: tuple[str, ...] = ()
    harvested: tuple[str, ...] = ()

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

        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.index.files().items():
                # A name alone has a day of 1980, so that equal facts make equal bytes.
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return buffer.getvalue()


# Bytes that a compiled matrix may have: many times what the built-in one has.
_MOST = 1 << 29
# The built-in matrix of this process, as each opening reads its header.
_BUILT_IN: list[OpenMatrix] = []


def open_matrix(source: Matrix = None) -> OpenMatrix:
    """The built-in matrix, with files of facts on top, or one that is compiled already.

    That is the folder of an index, such as `toolmatrix/data/index` of a wheel, or the bytes of `OpenMatrix.to_bytes`.
    Raises MatrixError.
    """
    import os

    from toolmatrix.factbase.index import HEADER, Index, IndexFolder

    if isinstance(source, OpenMatrix):
        return source
    if isinstance(source, bytes):
        return OpenMatrix(index=_index(source))
    if source is None:
        if not _BUILT_IN:
            _BUILT_IN.append(OpenMatrix(index=caller().open_index(())))
        return _BUILT_IN[0]
    paths = paths_of(source)
    if len(paths) == 1 and os.path.isfile(os.path.join(paths[0], HEADER)):
        return OpenMatrix(index=Index(paths[0], IndexFolder(paths[0])))
    return OpenMatrix(index=caller().open_index(paths), paths=paths)


def forget_built_in() -> None:
    """Open the built-in matrix again when it is next needed: another one was installed."""
    _BUILT_IN.clear()


def paths_of(matrix: OpenMatrix | Path | Sequence[Path] | None) -> tuple[str, ...]:
    """The paths of the files of a matrix that is not opened for it."""
    if matrix is None or isinstance(matrix, OpenMatrix):
        return matrix.paths if matrix else ()
    return tuple(path_list(matrix))


def _index(data: bytes) -> Index:
    import io
    import zipfile
    import zlib

    from toolmatrix.factbase.index import Index, IndexDamaged, in_memory

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            small = sum(entry.file_size for entry in archive.infolist()) <= _MOST
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
            expected="bytes from `OpenMatrix.to_bytes()` of this version",
            found=f"{len(data)} bytes",
        ) from None


def request_context(matrix: Matrix = None, keep: Path = "") -> RequestContext:
    """The place where a request is asked: a matrix, and the lock to prefer. Raises MatrixError, LockError."""
    import os

    opened, lock_path = open_matrix(matrix), os.fspath(keep)
    # A command that a refusal offers has to name the files and the lock of this call.
    carried = [word for path in opened.paths for word in ("--matrix", caller().called(path))]
    return RequestContext(
        index=opened.index,
        fields=caller().pasted(),
        carried=(*carried, "--keep", lock_path) if lock_path else tuple(carried),
        keep=read_kept_releases(lock_path) if lock_path else (),
    )


def read_kept_releases(path: str) -> PreferredReleases:
    """The releases of a lock of one environment. Raises LockError, and UsageError for one of several."""
    from toolmatrix.lockfile.lock_file import read

    lock = read(path)
    if lock.environments and not lock.targets:
        raise UsageError(
            f"{path} has several environments, and none is the default",
            expected="a lock of one environment, or with one named `default`",
            found=", ".join(sorted(lock.environments)),
        )
    return tuple(
        (target, component, release)
        for target, locked in lock.targets.items()
        for component, release in locked.chosen.items()
    )


def fields(wanted: Iterable[str], options: dict[str, Any]) -> Fields:
    """The fields of a request by the options of a call, of which `arguments` checked the types.

    The matrix and the lock to prefer are no part of it.
    """
    empty = Fields()
    values: dict[str, Any] = {"wanted": tuple(wanted)}
    for name, value in options.items():
        if name in ("matrix", "keep"):
            continue
        is_list = isinstance(getattr(empty, name, ""), tuple)
        if name == "with_":
            value = words(value)
        # A string is iterable too, letter by letter: it is looked for first.
        if isinstance(value, str) and not is_list:
            values[name] = value
        else:
            several = value.split(",") if isinstance(value, str) else value
            values[name] = tuple(word.strip() for word in several if word.strip())
    return Fields(**values)


def with_online_packages(
    named: Iterable[str], options: RequestOptions, *, online: bool = False
) -> OpenMatrix:
    """The matrix of a call, put in the place of what its options say: if `online`, with packages that words name.

    Raises ToolmatrixError.
    """
    options["matrix"] = opened = open_matrix(options.get("matrix"))
    if not online:
        return opened
    from toolmatrix.api.online import harvest_missing
    from toolmatrix.report.terminal import listing

    wanted = [*filter(None, (*named, *words(options.get("with_", ()))))]
    with caller().progress("reading", "wheels") as progress:
        packages = harvest_missing(opened.index, wanted, caller().env, progress.at)
    if packages is None:
        return opened
    caller().note(
        f"harvested {listing(packages.packages)} just now, unreviewed ({packages.effort}): "
        f"`--matrix {packages.path}` gives the same answer without the index"
    )
    # A matrix of bytes has no files that another could be put upon.
    if open_matrix(opened.paths).digest != opened.digest:
        raise UsageError(
            "`online` needs a matrix of files",
            expected="the built-in matrix, or paths of files",
            found="`online` with the bytes of a matrix",
        )
    extended = open_matrix((*opened.paths, packages.path)).replace(harvested=(packages.path,))
    options["matrix"] = extended
    return extended


def read_request(
    wanted: Sequence[str],
    options: RequestOptions,
    varied: Sequence[str] = (),
    *,
    online: bool = False,
) -> tuple[RequestContext, Request]:
    """The place and the request that the options of a call name. Raises ToolmatrixError."""
    from toolmatrix.request.read import read

    # Options are the caller's: what is taken out is taken from a copy.
    options = options.copy()
    with_online_packages(wanted, options, online=online)
    context = request_context(options.get("matrix"), options.get("keep", ""))
    request = fields(wanted, {**options})
    if any(map(is_machine, request.device)):
        # Looking at a machine takes longer than most answers.
        from toolmatrix.api.machines import on_machine

        request = on_machine(context.index, request)
    return context, read(context.index, request, keep=context.keep, varied=varied)
