"""`toolmatrix validate`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from toolmatrix.api import Matrix, Path, Wanted, Words, split_words
from toolmatrix.api.arguments import words
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.api.subjects import (
    LARGEST_LIST,
    Validation,
    layer_store,
    note_not_attached,
    read_file,
    subjects_in_lists,
    targets_of,
)
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import (
    EXECUTOR,
    JOBS,
    NO_RUN,
    NO_STORE,
    PLATFORM,
    STORE,
    STORE_SIZE,
    only,
    resume,
    targets,
)
from toolmatrix.errors import Position, UsageError
from toolmatrix.finding import Judged
from toolmatrix.inspection import subjects as subject_lists
from toolmatrix.judging import validation
from toolmatrix.judging.pool import Pool, WorkBounds
from toolmatrix.judging.validation import REGISTRY, Baseline, Validator, expectations_of

# Bounds of a subject where an option names none, or 0: seconds, seconds of processor time, and MiB.
_PATIENCE = 3600
_CPU_TIME = 1800
_MEMORY = 2048
_EXPECTATION = "an expectation"
_EXPECT = option(
    "--expect",
    kind="list",
    metavar="WORD",
    split=False,
    configurable=False,
    help="Requirement to check, such as `gcc==12.*` or `arch==arm64`; repeatable",
)
_EXPECT_FILE = option(
    "--expect-file",
    kind="text",
    shape="path",
    configurable=False,
    help="File of requirements to check, one per line",
)
_STRICT = option("--strict", kind="flag", help="Treat warnings as errors")
_ALL = option(
    "--all",
    kind="flag",
    help="Read the subjects from each argument, such as a file with one per line",
)
_ATTACH = option(
    "--attach",
    kind="flag",
    help="Store verdicts in the registry beside the images (OCI referrers), and reuse them",
)
_SHARD = option(
    "--shard",
    kind="text",
    metavar="I/N",
    configurable=False,
    help="Validate part I of N of the subjects; `toolmatrix merge` joins the results",
)
_TIMEOUT = option(
    "--timeout",
    kind="number",
    metavar="SECONDS",
    help="Time limit for a subject, in seconds [default: 3600]",
)
_PROCESSOR = option(
    "--cpu-time",
    kind="number",
    metavar="SECONDS",
    default=_CPU_TIME,
    help="Processor time limit for a subject, in seconds",
)
_ROOM = option(
    "--memory",
    kind="number",
    metavar="MIB",
    default=_MEMORY,
    help="Memory limit for a subject, in MiB",
)


@command(
    group="Inspect files, images and machines",
    order=3,
    usage="SUBJECT...",
    completer="file",
    does="validating",
    formats=("text", "json", "jsonl", "junit", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix validate docker:app:latest --lock toolmatrix.lock",
        "toolmatrix validate oci:layout --expect 'gcc==12.*' --expect arch==arm64",
        "toolmatrix validate --all images.txt --jobs 2 --resume results.jsonl",
        "toolmatrix validate --all 'registry://registry.example/team/app:1.*' --shard 1/8",
        "toolmatrix validate --all images.txt --store /mnt/share/readings",
    ),
    own={"no_run": NO_RUN, "no_store": NO_STORE},
)
def validate(
    *subjects: str,
    lock: Path = "",
    expect: Wanted = _EXPECT,
    expect_file: Path = _EXPECT_FILE,
    target: Words = targets("Target of the lock to check against"),
    platform: str = PLATFORM,
    directory: Path = "",
    only: Words = only("Run only these checks, by name or kind; repeatable"),
    run: bool = True,
    strict: bool = _STRICT,
    everything: bool = _ALL,
    jobs: int | None = JOBS,
    resume: Path = resume("Append results to FILE, and skip subjects that are already in it"),
    attach: bool = _ATTACH,
    shard: str = _SHARD,
    executor: str = EXECUTOR,
    timeout: int = _TIMEOUT,
    cpu_time: int = _PROCESSOR,
    memory: int = _ROOM,
    store: Path | None = STORE,
    store_size: int = STORE_SIZE,
    matrix: Matrix = None,
) -> Validation:
    """Check images against a lock.

    Each subject is checked against a lock, against expectations such as `python==3.11.*`, or else against the lock in
    it. It is read in a process of its own, within bounds of time, processor time and memory. `target` names the target
    of the lock, where neither a label nor the platform of the image does; `everything` takes each argument for a list
    of subjects; `resume` is a file of results that an earlier run may have begun, `store` is that of `inventory`.
    Raises LockError for a lock that cannot be used, and for a single subject what `inventory` raises.
    """
    names = subjects_in_lists(subjects) if everything else list(dict.fromkeys(subjects))
    names = _shard(names, shard) if shard else names
    opened = open_matrix(matrix)
    baseline = _baseline(expect, os.fspath(expect_file), os.fspath(lock))
    validator = Validator(
        index=opened.index,
        baseline=baseline.replace(targets=targets_of(target, opened)),
        directory=os.fspath(directory),
        platform=platform,
        only=split_words(only),
        run=run,
        strict=strict,
        attach=attach,
        store=layer_store(store, store_size),
    )
    if attach:
        _check_attachable(names)
    bounds = WorkBounds(
        seconds=timeout or _PATIENCE, processor=cpu_time or _CPU_TIME, memory=memory or _MEMORY
    )
    if len(names) == 1 and not (everything or shard or executor or resume):
        subject = validation.validate(validator, names[0], bounds)
        caller().part(subject.to_json() | {"run": validator.key})
        return note_not_attached(Validation(subjects=(subject,)))
    workers = _workers(validator, bounds, names, opened.paths, executor, jobs)
    return note_not_attached(_validate_all(validator.key, names, workers, os.fspath(resume)))


def _validate_all(key: str, names: Sequence[str], workers: Pool, results: str) -> Validation:
    """The verdicts about several subjects, each given as soon as it is known."""
    done = 0
    with caller().progress("validating", "subjects") as progress:

        def each(subject: Judged) -> None:
            nonlocal done
            done += 1
            # By the run `merge` knows what may be beside it.
            caller().part(subject.to_json() | {"run": key})
            progress.at(done, len(names))

        many = validation.validate_all(key, names, workers, results, each)
    return Validation(subjects=tuple(many), alone=False)


def _check_attachable(names: Sequence[str]) -> None:
    elsewhere = [name for name in names if not name.startswith(REGISTRY)]
    if elsewhere:
        raise UsageError(
            "`--attach` stores verdicts beside images in registries",
            expected="`registry://HOST/NAME:TAG`",
            found=f"`{elsewhere[0]}`",
        )


def _workers(
    validator: Validator,
    bounds: WorkBounds,
    names: Sequence[str],
    files: tuple[str, ...],
    executor: str,
    jobs: int | None,
) -> Pool:
    if not executor:
        return Pool(validator.attempt, bounds, jobs or 1)
    from toolmatrix.judging.executors import ExecutorPool

    validation.reachable(names)
    # Paths are relative to a folder of this machine.
    there = validator.replace(directory=os.path.abspath(validator.directory or "."))
    return ExecutorPool(executor, there, files, bounds, jobs or 0)


def _baseline(expect: Wanted, expect_file: str, lock: str) -> Baseline:
    """What is expected by name, in a file and by a lock."""
    # A string is one expectation, with whatever commas it has.
    expected: list[tuple[str, Position | None]] = [(word, None) for word in words(expect)]
    if expect_file:
        data = read_file(expect_file, _EXPECTATION, LARGEST_LIST)
        lines = subject_lists.lines(expect_file, data, _EXPECTATION)
        expected += [(word, Position(expect_file, line)) for word, line in lines]
    # Where nothing was named the lock that lies here counts, and without one that of each image.
    is_wanted = caller().is_flag("lock") or (not expected and os.path.exists(lock))
    return Baseline(expected=expectations_of(expected)).with_lock(lock if is_wanted else "")


def _shard(names: list[str], shard: str) -> list[str]:
    texts = shard.partition("/")[::2]
    part, count = [int(text) if text.isdecimal() else 0 for text in texts]
    if not 1 <= part <= count:
        raise UsageError(
            f"`--shard {shard}` cannot be read",
            expected="`I/N`, the part I of N, counted from 1",
            found=f"`{shard}`",
        )
    # Neighbours in a list are often alike, such as tags of one image: each part gets some of all.
    return names[part - 1 :: count]
