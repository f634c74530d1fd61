"""`toolmatrix build`: hands what was rendered to docker or buildah; scheduling and caching are theirs.

Results are kept, so that a later run leaves out what was built of the same and is still there.
"""

from __future__ import annotations

import json
import os
import os.path
import re
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from functools import partial

from toolmatrix.api import files, harvests, split_words, this_day
from toolmatrix.api.builds import SCHEMA, Builds, Built
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.command.options import JOBS, WRITE, resume, targets
from toolmatrix.commands import _image_exports as image_exports
from toolmatrix.commands._image_exports import ARCHIVE, BuildOptions, output_of
from toolmatrix.errors import NothingMatched, Position, ToolMissing, UsageError
from toolmatrix.harvest import runs
from toolmatrix.harvest.runs import ImageBuild
from toolmatrix.lockfile import lock_file
from toolmatrix.logs.log import Proof, Steps
from toolmatrix.outputs import ResultsFile, os_errors_as, replace_files
from toolmatrix.recipes import read as recipes
from toolmatrix.rendering import common
from toolmatrix.rendering.common import bake_name
from toolmatrix.report.terminal import printable
from toolmatrix.request.fields import Fields, settled
from toolmatrix.request.names import Names
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import IO, Any, BinaryIO

    from typing_extensions import Self

    from toolmatrix.api import Matrix, Path, Report, Words
    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import Lock, LockedEnvironment


# Components that have columns of their own in a row.
_APART = ("distro", "python", "base-image", "driver")
_DIGITS = 12
# The label of the last stage of a Dockerfile with its components.
_HOLDS = re.compile(r'io\.github\.toolmatrix\.components="([^"]*)"')
# Letters of a line of a log that are kept in memory: one without an end must not fill it.
_LONGEST = 1 << 16
# With containerd's store a size is that of the compressed layers, otherwise of their files.
_PACKED = "io.containerd.snapshotter"
_VERSIONS = {
    "docker": ("version", "--format", "{{.Server.Version}} on {{.Server.Arch}}"),
    "buildah": ("version", "--format", "{{.Version}} on {{.OsArch}}"),
}


def record_builds(index: Index, builds: Iterable[tuple[Built, str]], path: str) -> None:
    """Put builds into a file of facts, which keeps what else it has; each with its engine.

    Those that are left out are named. Raises MatrixError, OutputError, and UsageError where somebody else writes there.
    """
    rows: list[ImageBuild] = []
    for image, engine in builds:
        # An earlier run has already recorded it, if it was asked to.
        row = "an earlier run built it" if image.kept else _row(index, image, engine)
        if isinstance(row, str):
            caller().note(f"{image.image} is not recorded: {row}")
        else:
            rows.append(row)
    if not rows:
        return
    with harvests.folder_lock(os.path.dirname(path) or "."):
        # Read under the lock, so that rows of other writers stay.
        document = runs.builds_document(path, rows)
        text = runs.text(document, runs.ABOUT_BUILDS, "toolmatrix build --write")
        file = harvests.compare_with_file("builds", path, text)
        replace_files({path: text} if file.changed and document["tables"] else {})
    caller().note(harvests.describe_changes(file).removesuffix("\n"))


def _row(index: Index, image: Built, engine: str) -> ImageBuild | str:
    """The row of a build, or why there is none."""
    folder, name = os.path.split(image.file.removesuffix(".Dockerfile"))
    proof = _proof(image.log)
    lock = lock_file.read(os.path.join(folder, files.LOCK))
    if not image.exit_code and not proof.checked:
        return "its check was not run, because the engine had the whole build in its cache"
    if image.exit_code and not proof.missing:
        return "it failed, but not because of a missing address"
    texts = []
    for ending in (".Dockerfile", ".check.sh"):
        path = os.path.join(folder, name + ending)
        with (
            os_errors_as("cannot read a rendered file", path),
            open(path, encoding="utf-8") as file,
        ):
            texts.append(file.read())
        if not common.is_unchanged(texts[-1]):
            return f"{path} was edited by hand"
    at, named = next(keys for stem, *keys in lock.names() if stem == name)
    environment, target = lock.environments[at], lock.environments[at].targets[named]
    components = target.components
    recipe = str(lock.render.get("recipe", "")) or files.recipe_of(lock, index)
    builds = () if recipes.is_path(recipe) else recipes.recipe(recipe, index).built(components)
    inside = _HOLDS.search(texts[0])
    component = _component(index, environment, builds, inside[1].split() if inside else ())
    head = index.header["components"].get(component)
    if head is None or components[component].version not in index.component(component).versions:
        return "the image has no requested component that the matrix knows"
    machine = index.header["targets"][named]["context"]["machine"]
    where = {"machine": machine, "accelerator": target.accelerator}
    # Only a framework has `from`; what a recipe builds comes from source.
    if component in builds or head["framework"]:
        where["from"] = "source" if component in builds else target.from_
    where |= {name: components[name].version for name in ("distro", "python") if name in components}
    size, packed = _size(image, engine)
    return ImageBuild(
        component=component,
        release=components[component].version,
        where=where,
        build=target.variants[component].build if component in target.variants else "",
        beside={
            name: entry.version
            for name, entry in components.items()
            if name != component and name not in _APART
        },
        recipe=os.path.basename(recipe),
        base=_base(lock, components["base-image"].version),
        engine=f"{engine} {output_of(engine, *_VERSIONS[engine]).strip()}",
        lock=lock_file.digest(lock).partition(":")[2][:_DIGITS],
        day=this_day(caller().env).isoformat(),
        seconds=image.seconds,
        check="" if image.exit_code else proof.checked,
        missing=proof.missing if image.exit_code else "",
        size=size,
        packed=packed,
    )


def _proof(path: str) -> Proof:
    proof = Proof()
    with os_errors_as("cannot read the log of a build", path), open(path, "rb") as log:
        while line := log.readline(_LONGEST):
            proof.read(line.decode("utf-8", "replace").rstrip())
    return proof


def _size(image: Built, engine: str) -> tuple[int, bool]:
    """The size of an image in bytes, 0 if unknown, and whether it is that of the compressed layers."""
    # buildah has the size of an image only in words.
    if engine != "docker" or image.exit_code:
        return 0, False
    size = output_of("docker", "image", "inspect", "--format", "{{.Size}}", image.image).strip()
    packed = bool(size) and _PACKED in output_of("docker", "info", "--format", "{{.DriverStatus}}")
    return int(size) if size.isdecimal() else 0, packed


def _component(
    index: Index, environment: LockedEnvironment, builds: Sequence[str], inside: Sequence[str]
) -> str:
    """The main component of an image: the first requested one that its recipe builds, else that it contains."""
    read = Names(index).asks
    requested = [ask.component for text in environment.asked.values() for ask in read(text)]
    first = [name for name in requested if name in builds] or builds
    return next((name for name in first or requested if first or name in inside), "")


def _base(lock: Lock, named: str) -> str:
    """The base image of a build: it may have been replaced by another than the resolved one."""
    stand_ins = dict(text.partition("=")[::2] for text in lock.render.get("base", ()))
    return f"{stand_ins[named]} for {named}" if named in stand_ins else named


_LOCK = "toolmatrix.lock"
_ENDING = ".Dockerfile"
_REPRODUCIBLE = option(
    "--reproducible",
    kind="flag",
    cli_only=True,
    help="Set a fixed timestamp, so that rebuilds have the same digest; writes NAME.oci.tar",
)
_PUSH = option(
    "--push",
    kind="text",
    metavar="REF",
    cli_only=True,
    help="Push each image as REF-NAME, and an index REF with one image per platform",
)
_SBOM = option(
    "--sbom",
    kind="text",
    metavar="IMAGE",
    cli_only=True,
    help="Attach an SBOM: `on`, `off`, or the generator image [default: on with --push]",
)
_PROVENANCE = option(
    "--provenance",
    kind="text",
    choices=("max", "min", "off"),
    cli_only=True,
    help="Attach build provenance [default: max with --push]",
)
_BUILDER = option(
    "--builder",
    kind="text",
    metavar="NAME",
    cli_only=True,
    help="Builder of buildx to use",
)


@command(
    group="Lock and build",
    order=5,
    usage="[DIR...] [-- FLAGS]",
    completer="file",
    passthrough=True,
    formats=("text", "json", "junit"),
    examples=(
        "toolmatrix build out",
        "toolmatrix build out --write builds.yaml",
        "toolmatrix build out --push registry.example/team/app:1",
        "toolmatrix build out --resume builds.jsonl",
        "toolmatrix build out --target arm -- --no-cache",
        "toolmatrix build out --format junit --output builds.xml",
    ),
)
def build(
    *folders: Path,
    target: Words = targets("Build only the images of these targets"),
    jobs: int | None = JOBS,
    resume: Path = resume("Append results to FILE, and skip images that an earlier run built"),
    write: Path = WRITE,
    reproducible: bool = _REPRODUCIBLE,
    push: str = _PUSH,
    sbom: str = _SBOM,
    provenance: str = _PROVENANCE,
    builder: str = _BUILDER,
    flags: Iterable[str] = (),
    matrix: Matrix = None,
) -> Builds:
    """Build rendered images with docker or buildah.

    Each of `folders` holds what `render` wrote, by default this one; `target` names the targets whose images are built.
    `flags` are handed to the engine as they are. Raises LockError, ConfigError, NothingMatched for a folder without
    Dockerfiles, and ToolMissing where no engine is or answers.
    """
    most = 1 if jobs is None else jobs
    if most < 1:
        raise UsageError("--jobs must be at least 1", expected="1 or more", found=str(most))
    # A folder that is none is refused whether or not something here can build.
    paths = [caller().path(os.fspath(folder)) for folder in folders] or ["."]
    locks = {path: lock_file.read(os.path.join(path, _LOCK)) for path in paths}
    engine = _engine(builder)
    if target or write or push:
        # Opened once for what asks it, and not at all for a plain build.
        matrix = open_matrix(matrix)
    options = BuildOptions(
        matrix=matrix,
        targets=split_words(target),
        push=push,
        reproducible=reproducible,
        sbom=sbom,
        provenance=provenance,
        builder=builder,
        flags=tuple(flags),
    )
    builds = [build for path, lock in locks.items() for build in engine(options, path, lock)]
    with BuildResults(os.fspath(resume)) as results:
        images = _all(options, builds, most, results)
    pairs = [*zip(builds, images, strict=True)]
    if write:
        built = [(image, build.words[0]) for build, image in pairs]
        record_builds(options.index, built, os.fspath(write))
    index: tuple[str, ...] = ()
    # None is made where one of the images is missing.
    if push and not any(image.exit_code for image in images):
        index = image_exports.join_index(options, [(image, build.target) for build, image in pairs])
    known = (_diagnosed(build, matrix) if image.exit_code else None for build, image in pairs)
    name = push if index else ""
    return Builds(images=tuple(images), known=tuple(known), index=name, joined=index)


class Engines:
    """The engines that run now: all are ended together, and so is one that starts after that."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []
        self._ended = False
        # An engine may have been started, and not be among these yet, when an interrupt comes.
        self._lock = threading.Lock()

    @contextmanager
    def running(self, engine: subprocess.Popen[bytes]) -> Iterator[None]:
        """Count an engine among those that run."""
        with self._lock:
            self._running.append(engine)
            if self._ended:
                engine.terminate()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(engine)

    def end(self) -> None:
        """End those that run."""
        with self._lock:
            self._ended = True
            for engine in self._running:
                engine.terminate()


def _all(
    options: BuildOptions, builds: list[BuildCall], jobs: int, results: BuildResults
) -> list[Built]:
    """Run all builds, so many at a time."""
    from concurrent.futures import ThreadPoolExecutor

    engines = Engines()
    # A thread waits for its engine and does nothing else.
    with ThreadPoolExecutor(jobs) as pool:
        # The first engine runs while the next build is queued: an interrupt may come from here on.
        try:
            waiting = [
                pool.submit(
                    _once, options, build, results, f"{build.image} | " if jobs > 1 else "", engines
                )
                for build in builds
            ]
            return [future.result() for future in waiting]
        except BaseException:
            # An interrupt of a terminal reaches the engines as well; one that was sent to this process does not.
            pool.shutdown(wait=False, cancel_futures=True)
            engines.end()
            raise


def _once(
    options: BuildOptions,
    build: BuildCall,
    results: BuildResults,
    before: str,
    engines: Engines,
) -> Built:
    """What an earlier run built, or else what comes of the build."""
    if kept := results.kept(build):
        caller().say(f"kept {build.image}: an earlier run built it")
        return kept
    built = _built(options, build, before, engines)
    results.put(build, built)
    return built


def _built(options: BuildOptions, build: BuildCall, before: str, engines: Engines) -> Built:
    """Run one build: its output goes to its log, and is shown as it comes with something before each line."""
    caller().say(f"building {build.image}: {' '.join(build.words)}")
    began, steps = time.monotonic(), Steps()
    with (
        os_errors_as("cannot keep the log of a build", build.log),
        open(build.log, "wb") as log,
        _started(build) as engine,
        engines.running(engine),
    ):
        for line in _lines(engine.stdout, log):
            steps.read(line)
            # Lines of a log were written by strangers.
            caller().say(before + printable(line.replace("\t", "    ")))
        engine.wait()
    code = engine.returncode
    took = time.monotonic() - began
    # One that was ended by a signal is not asked why.
    if code > 0:
        _ask_engine(options, build.words[0])
    built = Built(
        **build.as_dict("image", "file", "platform", "log"),
        seconds=round(took, 1),
        exit_code=code,
        step=steps.failed if code else "",
        digest=image_exports.digest(build.metadata),
    )
    caller().say(f"{'failed' if code else 'built'} {build.image}: {built.ended}")
    return built


def _lines(printed: IO[bytes] | None, log: BinaryIO) -> Iterator[str]:
    """The lines that an engine prints, each kept in its log first."""
    while printed and (piece := printed.readline(_LONGEST)):
        log.write(piece)
        yield piece.decode("utf-8", "replace").rstrip("\r\n")


def _ask_engine(options: BuildOptions, engine: str) -> None:
    # A build that failed may have met no engine. A builder elsewhere needs none here, so that is asked only now.
    if options.builder:
        image_exports.find_builder(options.builder, "--bootstrap")
        return
    version = image_exports.call(engine, "version")
    if version.returncode:
        raise ToolMissing(
            f"`{engine}` cannot connect to its engine",
            found=version.stderr.strip().rpartition("\n")[2],
            help=f"start it, or name another: `{engine} context use`, DOCKER_HOST",
        )


def _diagnosed(build: BuildCall, matrix: Matrix) -> Report:
    """What is known of the log of a build that failed, beside its lock."""
    from toolmatrix.commands import diagnose

    observation = diagnose.observe_log(build.log, None, build.log, matrix)
    return diagnose.diagnose_log(observation, build.lock, diagnose.MOST, matrix)


def _started(build: BuildCall) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603
            build.words,
            cwd=build.folder,
            env=image_exports.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise ToolMissing(f"`{build.words[0]}` cannot be run", found=error.strerror or "") from None


def _engine(builder: str) -> Callable[[BuildOptions, str, Lock], Iterator[BuildCall]]:
    # Bake builds all targets in one call; it is a part of buildx, which a docker may lack.
    # The PATH of this run, which is also that of the engine that is called.
    path = caller().env.get("PATH")
    if shutil.which("docker", path=path):
        if not image_exports.call("docker", "buildx", "version").returncode:
            image_exports.find_builder(builder)
            return _bake
        # An older docker speaks to BuildKit itself; a newer one cannot even say how it builds (docker/cli, builder.go).
        if image_exports.call("docker", "build", "--help").returncode:
            raise ToolMissing(
                "this docker needs its plugin buildx to build",
                expected="`docker buildx version` to succeed",
                help="install the plugin (docs.docker.com/go/buildx), or buildah without docker",
            )
        return partial(_each, engine="docker")
    if shutil.which("buildah", path=path):
        return partial(_each, engine="buildah")
    raise ToolMissing(
        "this machine cannot build images",
        expected="docker or buildah on PATH",
        found="neither",
        help="install docker with its buildx plugin (docs.docker.com/engine/install), or buildah",
    )


def _bake(options: BuildOptions, folder: str, lock: Lock) -> Iterator[BuildCall]:
    option = options.needs_bake
    if not os.path.isfile(os.path.join(folder, BAKE)):
        if option:
            image_exports.refuse(option, folder)
        yield from _each(options, folder, lock, "docker")
        return
    for name, target, platform in _images(options, folder, lock):
        out = image_exports.export(options, folder, name, bake_name(name), lock)
        # `--file` is said, as bake would read a compose file beside it as well.
        start = ("docker", "buildx", "bake", "--file", BAKE)
        words = (*start, *out.words, *options.builder_words, *options.flags, bake_name(name))
        build = _build(folder, name, target, platform, words)
        image = out.image or _baked(folder, name) or build.image
        # Paths in a bake file are relative to where bake runs.
        yield build.replace(folder=folder, image=image, metadata=out.metadata)


def _each(options: BuildOptions, folder: str, lock: Lock, engine: str) -> Iterator[BuildCall]:
    if option := options.needs_bake:
        image_exports.refuse(option)
    for name, target, platform in _images(options, folder, lock):
        file = os.path.join(folder, name + _ENDING)
        where = ("--platform", platform, "--tag", _tag(folder, name), "--file", file)
        words = (engine, "build", *where, *options.flags, folder)
        yield _build(folder, name, target, platform, words)


def _build(folder: str, name: str, target: str, platform: str, words: tuple[str, ...]) -> BuildCall:
    return BuildCall(
        image=_tag(folder, name),
        file=os.path.join(folder, name + _ENDING),
        target=target,
        platform=platform,
        words=words,
        lock=os.path.join(folder, _LOCK),
        log=os.path.join(folder, f"{name}.log"),
    )


def _tag(folder: str, name: str) -> str:
    # A reference to an image has small letters alone.
    return f"{os.path.basename(os.path.abspath(folder)).lower()}:{name}"


def _baked(folder: str, name: str) -> str:
    """The first tag that bake gives an image."""
    path = os.path.join(folder, BAKE)
    try:
        with os_errors_as("cannot read a rendered file", path), open(path, "rb") as file:
            tag = json.load(file)["target"][bake_name(name)]["tags"][0]
    # One that is not ours bakes as it likes.
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return str(tag).replace("${PREFIX}", caller().env.get("PREFIX", ""))


def _images(options: BuildOptions, folder: str, lock: Lock) -> Iterator[tuple[str, str, str]]:
    named = options.targets
    wanted = settled(Fields(target=named), options.index).target if named else ()
    count = 0
    for name, environment, target in lock.names():
        if os.path.isfile(os.path.join(folder, name + _ENDING)) and (
            not wanted or target in wanted
        ):
            count += 1
            yield name, target, lock.environments[environment].targets[target].platform
    if not count:
        raise NothingMatched(
            "no Dockerfile for this lock",
            where=Position(folder),
            help="`toolmatrix render --output DIR` writes them",
        )


BAKE = "docker-bake.json"
# What an engine, and what a registry, says of an image.
_LOCAL: tuple[str, ...] = ("images", "--quiet", "--no-trunc")
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

    def __init__(self, path: str) -> None:
        self.lines = ResultsFile(path, SCHEMA, self._take)
        self.done: dict[str, tuple[str, Built]] = {}
        # Several builds may end at once.
        self.adding = threading.Lock()

    def __enter__(self) -> Self:
        self.lines.__enter__()
        return self

    def _take(self, body: Any) -> None:
        (result,) = body["builds"]
        self.done[body["run"]] = (
            body["identity"],
            Built(**{name: result[name] for name in Built._fields}),
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
        inputs = [os.path.abspath(folder), *call.words, *texts, *self._variables(texts[-1])]
        return sha256("\0".join(inputs).encode()).hexdigest()

    def _variables(self, bake: str) -> Iterator[str]:
        try:
            names = [*json.loads(bake)["variable"]]
        # One that is not ours bakes as it likes.
        except (ValueError, LookupError, TypeError, RecursionError):
            return
        for name in names:
            if name in caller().env and name != _TIME:
                yield f"{name}={caller().env[name]}"

    def _identity(self, call: BuildCall) -> str:
        """What an image is now, by who has it; "" where it is not there."""
        if call.image.endswith(ARCHIVE):
            try:
                there = os.stat(call.image)
            except OSError:
                return ""
            return f"{there.st_size} {there.st_mtime_ns}"
        query = _PUSHED if call.metadata else _LOCAL
        return image_exports.output_of(call.words[0], *query, call.image).strip()

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
