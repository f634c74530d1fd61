"""`toolmatrix build`: hands what was rendered to docker or buildah; scheduling and caching are theirs."""

from __future__ import annotations

import os.path
import shutil
import subprocess
import time
from functools import partial

from toolmatrix.cli import ask
from toolmatrix.errors import NothingMatched, Position, ToolMissing
from toolmatrix.lock import read
from toolmatrix.render.around import bake_name
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from toolmatrix.cli.context import Context

_LOCK = "toolmatrix.lock"
_BAKE = "docker-bake.json"
_ENDING = ".Dockerfile"


class _Build(Value):
    """One call of an engine: what it builds, its words, and the directory in which it runs."""

    what: str
    words: tuple[str, ...]
    folder: str | None = None


def run(context: Context) -> int:
    """Build each directory and return 0, or 1 if a build failed; raises ToolMissing where no engine is or answers."""
    folders = [context.path(text) for text in context.arguments] or ["."]
    engine = _engine(context)
    builds = [build for folder in folders for build in engine(context, folder)]
    failed = [build.what for build in builds if not _done(context, build)]
    context.say(f"{len(builds) - len(failed)} of {len(builds)} built")
    return int(bool(failed))


def _done(context: Context, build: _Build) -> bool:
    """Run one build with its output as it comes, and say how it ended."""
    context.say(f"building {build.what}: {' '.join(build.words)}")
    # The output of a build is not captured: it comes as it is made, and its end may be hours away.
    began = time.monotonic()
    code = _called(context, build.words, cwd=build.folder).returncode
    took = f"{time.monotonic() - began:.1f} s"
    if not code:
        context.say(f"built {build.what} in {took}")
        return True
    # It may have met no engine. A builder elsewhere needs none here, so that is asked only now.
    engine = build.words[0]
    asked = _called(context, (engine, "version"), capture_output=True, text=True)
    if asked.returncode:
        raise ToolMissing(
            f"`{engine}` cannot reach its engine",
            found=asked.stderr.strip().rpartition("\n")[2],
            help=f"start it, or name another: `{engine} context use`, DOCKER_HOST",
        )
    context.say(f"failed {build.what} after {took}, exit code {code}")
    return False


def _called(
    context: Context, words: tuple[str, ...], **options: Any
) -> subprocess.CompletedProcess[str]:
    # Docker 20.10 takes BuildKit, which the classic dialect needs, only where this asks for it.
    env = {**context.env, "DOCKER_BUILDKIT": "1"}
    try:
        return subprocess.run(words, check=False, env=env, **options)  # noqa: S603
    except OSError as error:
        raise ToolMissing(f"`{words[0]}` cannot be run", found=error.strerror or "") from None


def _engine(context: Context) -> Callable[[Context, str], Iterator[_Build]]:
    # Bake builds all targets in one call; it is a part of buildx, which a docker may lack.
    # The PATH of this run, which is also that of the engine that is called.
    path = context.env.get("PATH")
    if shutil.which("docker", path=path):
        if _is_there(context, "buildx", "version"):
            return _bake
        # An older docker speaks to BuildKit itself; a newer one cannot even say how it builds (docker/cli, builder.go).
        if not _is_there(context, "build", "--help"):
            raise ToolMissing(
                "this docker builds by its plugin buildx alone",
                expected="`docker buildx version` to succeed",
                help="install the plugin (docs.docker.com/go/buildx), or buildah without docker",
            )
        return partial(_each, engine="docker")
    if shutil.which("buildah", path=path):
        return partial(_each, engine="buildah")
    raise ToolMissing(
        "nothing here can build images",
        expected="docker or buildah on PATH",
        found="neither",
        help="install docker with its buildx plugin (docs.docker.com/engine/install), or buildah",
    )


def _is_there(context: Context, *words: str) -> bool:
    return not _called(context, ("docker", *words), capture_output=True).returncode


def _bake(context: Context, folder: str) -> Iterator[_Build]:
    if not os.path.isfile(os.path.join(folder, _BAKE)):
        yield from _each(context, folder, "docker")
        return
    # Paths in a bake file are relative to where bake runs.
    wanted = context.options.target
    names = tuple(bake_name(name) for name, _ in _images(context, folder)) if wanted else ()
    # `--file` is said, as bake would read a compose file beside it as well.
    words = ("docker", "buildx", "bake", "--file", _BAKE)
    yield _Build(what=folder, words=(*words, *context.passed, *names), folder=folder)


def _each(context: Context, folder: str, engine: str) -> Iterator[_Build]:
    for name, platform in _images(context, folder):
        file = os.path.join(folder, name + _ENDING)
        # A reference to an image has small letters alone.
        tag = f"{os.path.basename(os.path.abspath(folder)).lower()}:{name}"
        words = (engine, "build", "--platform", platform, "--tag", tag, "--file", file)
        yield _Build(what=tag, words=(*words, *context.passed, folder))


def _images(context: Context, folder: str) -> Iterator[tuple[str, str]]:
    lock = read.read(os.path.join(folder, _LOCK))
    wanted = ask.settled(context, context.index()).target if context.options.target else ()
    found = 0
    for name, environment, target in lock.names():
        if os.path.isfile(os.path.join(folder, name + _ENDING)) and (
            not wanted or target in wanted
        ):
            found += 1
            yield name, lock.environments[environment].targets[target].platform
    if not found:
        raise NothingMatched(
            "there is no Dockerfile of this lock",
            where=Position(folder),
            help="`toolmatrix render --output DIR` writes them",
        )
