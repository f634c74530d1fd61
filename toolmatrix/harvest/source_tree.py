"""A source tree at each of its releases, and checks whether the file of a source contains the value of a fact.

A tree is a git repository, or one unpacked release. git reads all releases of a repository at once
(`git cat-file --batch`), without a work tree. Nothing in it is executed: no configuration of the machine or the user is
read, no filters and hooks run, and the missing objects of a partial clone are not fetched.

Versions are copied from a source: if one is missing, the fact or its source is wrong, or a bound was derived from
another (`>=3.5` from "not 3.4"). Names may be spelled differently (`ubi9` is RHEL 9), so a missing name proves nothing.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from toolmatrix.errors import HarvestRefused, Position, ToolMissing
from toolmatrix.value import NamedTuple, Value

FILE_LIMIT = 4 << 20
"""Bytes of one file of a tree; the largest known has 1 MiB."""

_TOTAL_LIMIT = 256 << 20
_NAMES_LIMIT = 64 << 20
# Seconds for one command; all tags of a repository of 50,000 commits take one.
_PATIENCE = 600
# What `git cat-file --follow-symlinks` prints for a link, with the length of the path that follows.
_STRAYED = re.compile(rb"(symlink|dangling|loop|notdir) (\d{1,9})")
# The line of `.git_archival.txt` that `git archive` fills in, as setuptools-scm describes it.
_ARCHIVED = re.compile(rb"^node: ([0-9a-f]{40}|[0-9a-f]{64})\r?$", re.MULTILINE)
DIRECTORY = "a directory"
# Characters of a message of git in an error.
_EXCERPT = 160


class Snapshot(Value):
    """One state of a tree: its tag or branch, its commit, and the day of the tag.

    `ref` is empty for an unpacked tree, and so is `commit` if no file in it names one.
    """

    ref: str
    commit: str
    date: str = ""

    @property
    def name(self) -> str:
        """The ref without `refs/tags/` or `refs/heads/`."""
        return self.ref.removeprefix("refs/tags/").removeprefix("refs/heads/")


class TreeFile(NamedTuple):
    """The file at a path: its bytes, or why it cannot be read."""

    data: bytes | None
    why: str


def open_tree(path: str, env: Mapping[str, str], limit: int = FILE_LIMIT) -> GitTree | UnpackedTree:
    """The tree at a path. Raises HarvestRefused if there is none, and ToolMissing without git."""
    git_folder = os.path.join(path, ".git")
    if os.path.exists(git_folder):
        return GitTree(git_folder, env, limit)
    if all(os.path.exists(os.path.join(path, name)) for name in ("HEAD", "objects", "refs")):
        return GitTree(path, env, limit)
    if os.path.isdir(path):
        return UnpackedTree(path, limit)
    raise HarvestRefused(
        "there is no source tree",
        where=Position(path),
        expected="a git repository, or a directory with an unpacked release",
        found="a file" if os.path.exists(path) else "nothing",
    )


class UnpackedTree:
    """One unpacked release: a directory of files."""

    def __init__(self, folder: str, limit: int = FILE_LIMIT) -> None:
        self.path = folder
        self.limit = limit

    def head(self) -> Snapshot:
        """The tree itself, with its commit if `git archive` recorded it."""
        archived = _ARCHIVED.search(self._file(".git_archival.txt").data or b"")
        return Snapshot(ref="", commit=archived[1].decode() if archived else "")

    def paths(self, _at: Snapshot) -> list[str]:
        """The sorted paths of all files; linked directories are not followed."""
        paths = []
        for folder, _, names in os.walk(self.path):
            relative = os.path.relpath(folder, self.path)
            paths += [os.path.normpath(os.path.join(relative, name)) for name in names]
        return sorted(paths)

    def read(self, wanted: Iterable[tuple[Snapshot, str]]) -> dict[tuple[Snapshot, str], TreeFile]:
        """The files at these paths; a link that leaves the directory is not followed."""
        return {(at, path): self._file(path) for at, path in wanted}

    def _file(self, path: str) -> TreeFile:
        root = os.path.realpath(self.path)
        real = os.path.realpath(os.path.join(root, path))
        if os.path.commonpath((root, real)) != root:
            return TreeFile(None, "a link that leaves the tree")
        try:
            # Opening a pipe would block. Links were checked above; one that appears later is not followed.
            handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            return TreeFile(None, (error.strerror or "no such file").lower())
        try:
            mode = os.fstat(handle).st_mode
            if not stat.S_ISREG(mode):
                return TreeFile(None, DIRECTORY if stat.S_ISDIR(mode) else "no regular file")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(self.limit + 1)
        finally:
            os.close(handle)
        if len(data) > self.limit:
            return _too_large(self.limit)
        return TreeFile(data, "")


class GitTree:
    """A git repository, bare or with a work tree. Raises HarvestRefused for one that git cannot read."""

    def __init__(self, folder: str, env: Mapping[str, str], limit: int = FILE_LIMIT) -> None:
        self.path = folder
        self.env = env
        self.limit = limit

    def snapshots(self, under: str = "refs/tags") -> list[Snapshot]:
        """The commits of its tags, or of its branches, in the order of git; other objects are left out."""
        # By their full names, as a branch and a tag may have the same name.
        output = self._git("for-each-ref", "--format=%(refname) %(creatordate:short)", under)
        days = dict(line.split(" ", 1) for line in output.decode("utf-8", "replace").splitlines())
        return [
            Snapshot(ref=ref, commit=commit, date=days[ref])
            for ref, commit in zip(days, self.commits(days), strict=True)
            if commit
        ]

    def head(self) -> Snapshot:
        """The commit at HEAD. Raises HarvestRefused for a repository without a commit."""
        commit = self.commits(["HEAD"])[0]
        if not commit:
            self._refuse("it has no commit", expected="a commit at HEAD")
        return Snapshot(ref="HEAD", commit=commit)

    def commits(self, revisions: Iterable[str]) -> list[str]:
        """The full commit hashes of revisions; "" for one without a commit."""
        # `^{commit}` resolves annotated tags, and leaves out tags of files or trees.
        names = [f"{revision}^{{commit}}" for revision in revisions]
        return [commit.data.decode() if commit.data else "" for commit in self._objects(names)]

    def paths(self, at: Snapshot) -> list[str]:
        """The sorted paths of all files at a commit; unprintable ones are left out."""
        output = self._git("ls-tree", "-r", "-z", "--name-only", at.commit)
        names = [name.decode("utf-8", "replace") for name in output.split(b"\0") if name]
        return sorted(name for name in names if name.isprintable())

    def read(self, wanted: Iterable[tuple[Snapshot, str]]) -> dict[tuple[Snapshot, str], TreeFile]:
        """The files at these paths and commits; each content is read once, however many releases have it."""
        keys = list(dict.fromkeys(wanted))
        objects = self._objects([f"{at.commit}:{path}" for at, path in keys])
        # A second command reads the contents, once duplicates and large files are known.
        texts = self._contents(dict.fromkeys(entry.data for entry in objects if entry.data))
        return {
            key: TreeFile(texts[entry.data], "") if entry.data else entry
            for key, entry in zip(keys, objects, strict=True)
        }

    def _objects(self, names: Sequence[str]) -> list[TreeFile]:
        # Each file has the id of its object instead of its bytes.
        output = self._git(
            "cat-file",
            "--follow-symlinks",
            "--batch-check=%(objectname) %(objecttype) %(objectsize)",
            names=names,
        )
        objects: list[TreeFile] = []
        at = 0
        while len(objects) < len(names) and at < len(output):
            end = output.find(b"\n", at)
            line, at = output[at:end], end + 1
            strayed = _STRAYED.fullmatch(line)
            if strayed:
                at += int(strayed[2]) + 1
                objects.append(TreeFile(None, _WHY[strayed[1]]))
                continue
            # For a missing object the line begins with the name, which may have blanks.
            words = line.split(b" ")
            if len(words) != 3 or words[1] not in (b"blob", b"commit"):
                missing = line.endswith(b" missing")
                objects.append(TreeFile(None, "no such file" if missing else DIRECTORY))
            elif words[1] == b"blob" and int(words[2]) > self.limit:
                objects.append(_too_large(self.limit))
            else:
                objects.append(TreeFile(words[0], ""))
        if len(objects) != len(names):
            self._refuse("git did not list all of its objects")
        return objects

    def _contents(self, ids: Iterable[bytes]) -> dict[bytes, bytes]:
        names = [name.decode() for name in ids]
        output = self._git("cat-file", "--batch", names=names, limit=_TOTAL_LIMIT) if names else b""
        texts, at = {}, 0
        while at < len(output):
            end = output.find(b"\n", at)
            words = output[at:end].split(b" ")
            if len(words) != len(("name", "type", "size")):
                self._refuse("an object is gone", output[at:end].decode())
            size = int(words[2])
            texts[words[0]] = output[end + 1 : end + 1 + size]
            at = end + 2 + size
        return texts

    def _git(
        self, command: str, *arguments: str, names: Sequence[str] = (), limit: int = _NAMES_LIMIT
    ) -> bytes:
        import shutil

        program = shutil.which("git", path=self.env.get("PATH"))
        if not program:
            raise ToolMissing("git is not installed", help="install git, or name an unpacked tree")
        # git refuses the clone of another user, as its settings could start programs; these commands start none.
        line = [program, f"--git-dir={self.path}", "-c", "safe.directory=*", command, *arguments]
        # Files, as two pipes could deadlock.
        with tempfile.TemporaryFile() as questions, tempfile.TemporaryFile() as complaints:
            questions.write("".join(f"{name}\n" for name in names).encode())
            questions.seek(0)
            with subprocess.Popen(  # noqa: S603 - git, as a list of arguments
                line, stdin=questions, stdout=subprocess.PIPE, stderr=complaints, env=self._env()
            ) as child:
                clock = threading.Timer(_PATIENCE, child.kill)
                clock.start()
                output = child.stdout.read(limit + 1) if child.stdout else b""
                clock.cancel()
                if len(output) > limit:
                    child.kill()
                    self._refuse(f"it is larger than the limit: {limit >> 20} MiB of {command}")
            if child.returncode:
                complaints.seek(0)
                message = complaints.read(1 << 10).decode("utf-8", "replace").splitlines()
                self._refuse(
                    "git cannot read it",
                    message[0] if message else f"exit status {child.returncode}",
                )
        return output

    def _env(self) -> dict[str, str]:
        return {
            "PATH": self.env.get("PATH", os.defpath),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            # A replacement object does not match the hash.
            "GIT_NO_REPLACE_OBJECTS": "1",
            # Never fetch missing objects of a partial clone: no transport is allowed, whatever its settings are.
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "",
        }

    def _refuse(
        self, what: str, found: str = "", expected: str = "a whole git repository"
    ) -> NoReturn:
        raise HarvestRefused(
            f"a source tree cannot be read: {what}",
            where=Position(self.path),
            expected=expected,
            found=found[:_EXCERPT],
            help="`git fsck` shows whether a clone is complete",
        )


_WHY = {
    b"symlink": "a link that leaves the tree",
    b"dangling": "a link to nothing",
    b"loop": "a link to itself",
    b"notdir": "a path through a file",
}


def _too_large(limit: int) -> TreeFile:
    return TreeFile(None, f"more than {limit >> 20} MiB")


FOUND, NOT_FOUND, CANNOT_SAY = "found", "not found", "cannot say"

_AT = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)(:(?P<path>[^@,;*\s]+))?(@(?P<revision>[\w./+-]+))?"
)
# The path in a row, for a source without one.
_PATH = re.compile(r"[^\s,;]*[/.][^\s,;]*")
# The revision in a row, if it is not that of its source.
_WHERE = re.compile(r"\b(?:tag|branch|commit) (?P<revision>[\w./+-]*[\w+-])")
_CLAUSE = re.compile(r"(?P<operator>[<>=!~]*)\s*(?P<value>[^\s,|]+)")
_RANGE = re.compile(r"(\d[\d.]*)-(\d[\d.]*)")
_VERSION = re.compile(r"\d+(\.\w+)*")


class SourceQuestion(Value):
    """The value of a fact (a selector) and its origin: the `at` of its source, and its own `where`."""

    at: str
    value: str
    where: str = ""

    @property
    def repository(self) -> str:
        """The repository, `owner/name`; "" for a source that is not a file in one."""
        match = _AT.fullmatch(self.at)
        return match["repository"] if match else ""


class SourceCheck(Value):
    """`found`, `not found` or `cannot say`, and the reason."""

    state: str
    why: str


def check_sources(
    questions: Sequence[SourceQuestion], clone: str, env: Mapping[str, str]
) -> list[SourceCheck]:
    """The check of each question in one clone, which git reads once for all.

    Raises HarvestRefused if the path is not a clone, and ToolMissing without git.
    """
    tree = open_tree(clone, env)
    if isinstance(tree, UnpackedTree):
        return [SourceCheck(state=CANNOT_SAY, why="an unpacked tree has no commits")] * len(
            questions
        )
    named = [_named(question) for question in questions]
    revisions = list(dict.fromkeys(revision for revision, _ in named if revision))
    commits = dict(zip(revisions, tree.commits(revisions), strict=True))
    locations = [
        (Snapshot(ref=revision, commit=commits.get(revision, "")), path) for revision, path in named
    ]
    texts = tree.read(
        dict.fromkeys(location for location in locations if location[0].commit and location[1])
    )
    answers = []
    for question, (at, path) in zip(questions, locations, strict=True):
        if not path or not at.ref:
            answers.append(SourceCheck(state=CANNOT_SAY, why="the source names no file and commit"))
        elif not at.commit:
            answers.append(SourceCheck(state=CANNOT_SAY, why=f"{at.ref} is not in the clone"))
        else:
            answers.append(_compared(question.value, path, texts[at, path]))
    return answers


def _named(question: SourceQuestion) -> tuple[str, str]:
    match = _AT.fullmatch(question.at)
    if not match:
        return "", ""
    override = _WHERE.search(question.where)
    row_path = _PATH.match(question.where)
    path = match["path"] or (row_path[0] if row_path else "")
    return (override["revision"] if override else match["revision"] or ""), path


def _compared(value: str, path: str, file: TreeFile) -> SourceCheck:
    if file.data is None:
        # A source may name a directory, without the file in it.
        state = CANNOT_SAY if file.why == DIRECTORY else NOT_FOUND
        return SourceCheck(state=state, why=f"{path}: {file.why}")
    text = file.data.decode("utf-8", "replace")
    tokens = list(_tokens(value))
    # `<8` beside `>=7.7` is derived from 7.7, and seldom in the text.
    wanted = [token for operator, token in tokens if operator != "<"] or [
        token for _, token in tokens
    ]
    if not wanted:
        return SourceCheck(state=CANNOT_SAY, why="the value names no version")
    # `11.2` occurs in `11.2.1` and in `cuda11.2`, but not in `11.20` or in `1.11.2`.
    missing = [
        token
        for token in wanted
        if not re.search(rf"(?<!\d)(?<!\d\.){re.escape(token)}(?!\d)", text, re.IGNORECASE)
    ]
    if not missing:
        return SourceCheck(state=FOUND, why=", ".join(wanted))
    versions = [token for token in missing if _VERSION.fullmatch(token)]
    if versions:
        return SourceCheck(state=NOT_FOUND, why=", ".join(versions))
    return SourceCheck(state=CANNOT_SAY, why=f"{', '.join(missing)} may be spelled differently")


def _tokens(value: str) -> Iterator[tuple[str, str]]:
    for match in _CLAUSE.finditer(value):
        between = _RANGE.fullmatch(match["value"])
        for token in between.groups() if between else [match["value"].removesuffix(".*")]:
            if token not in ("*", "absent"):
                yield match["operator"], token
