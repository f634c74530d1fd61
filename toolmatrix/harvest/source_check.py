"""Sources opened again: whether the value of a fact stands in the file that its source names, at that commit.

Versions are copied out of a source: where one is not there, the fact or its source is wrong, or somebody read a bound
out of another (`>=3.5` out of "not 3.4"). Names may be written otherwise (`ubi9` is RHEL 9), so that nothing follows
from one which is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.harvest import source_tree
from toolmatrix.harvest.source_tree import Found, Snapshot, UnpackedTree
from toolmatrix.value import Value

FOUND, NOT_FOUND, CANNOT_SAY = "found", "not found", "cannot say"

_AT = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)(:(?P<path>[^@,;*\s]+))?(@(?P<revision>[\w./+-]+))?"
)
# Of a source without a path the row names it.
_PATH = re.compile(r"[^\s,;]*[/.][^\s,;]*")
# A row that was read at another revision than its source names it.
_WHERE = re.compile(r"\b(?:tag|branch|commit) (?P<revision>[\w./+-]*[\w+-])")
_WORD = re.compile(r"(?P<operator>[<>=!~]*)\s*(?P<value>[^\s,|]+)")
_RANGE = re.compile(r"(\d[\d.]*)-(\d[\d.]*)")
_VERSION = re.compile(r"\d+(\.\w+)*")


class SourceQuestion(Value):
    """The value of a fact (a selector) and where it was read: the `at` of its source, and its own `where`."""

    at: str
    value: str
    where: str = ""

    @property
    def repository(self) -> str:
        """The repository, `owner/name`; empty for a source that is no file of one."""
        match = _AT.fullmatch(self.at)
        return match["repository"] if match else ""


class SourceCheck(Value):
    """`found`, `not found` or `cannot say`, and why."""

    state: str
    why: str


def reopened(
    questions: Sequence[SourceQuestion], place: str, env: Mapping[str, str]
) -> list[SourceCheck]:
    """An answer to each question out of one clone, which git reads once for all.

    Raises HarvestRefused for what is no clone, and ToolMissing without git.
    """
    tree = source_tree.opened(place, env)
    if isinstance(tree, UnpackedTree):
        return [SourceCheck(state=CANNOT_SAY, why="an unpacked tree has no commits")] * len(
            questions
        )
    named = [_named(question) for question in questions]
    revisions = list(dict.fromkeys(revision for revision, _ in named if revision))
    commits = dict(zip(revisions, tree.commits(revisions), strict=True))
    places = [
        (Snapshot(ref=revision, commit=commits.get(revision, "")), path) for revision, path in named
    ]
    texts = tree.read(dict.fromkeys(one for one in places if one[0].commit and one[1]))
    answers = []
    for question, (at, path) in zip(questions, places, strict=True):
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
    said = _WHERE.search(question.where)
    inside = _PATH.match(question.where)
    path = match["path"] or (inside[0] if inside else "")
    return (said["revision"] if said else match["revision"] or ""), path


def _compared(value: str, path: str, found: Found) -> SourceCheck:
    if found.data is None:
        # A source may name a directory: in which of its files somebody read is not known.
        state = CANNOT_SAY if found.why == source_tree.DIRECTORY else NOT_FOUND
        return SourceCheck(state=state, why=f"{path}: {found.why}")
    text = found.data.decode("utf-8", "replace")
    tokens = list(_tokens(value))
    # `<8` beside `>=7.7` is how the next major release is read out of 7.7, and seldom in the text.
    told = [token for operator, token in tokens if operator != "<"] or [
        token for _, token in tokens
    ]
    if not told:
        return SourceCheck(state=CANNOT_SAY, why="the value names no version")
    missing = [token for token in told if not _stands(token, text)]
    if not missing:
        return SourceCheck(state=FOUND, why=", ".join(told))
    versions = [token for token in missing if _VERSION.fullmatch(token)]
    if versions:
        return SourceCheck(state=NOT_FOUND, why=", ".join(versions))
    return SourceCheck(state=CANNOT_SAY, why=f"{', '.join(missing)} may be written otherwise")


def _tokens(value: str) -> Iterator[tuple[str, str]]:
    for word in _WORD.finditer(value):
        between = _RANGE.fullmatch(word["value"])
        for token in between.groups() if between else [word["value"].removesuffix(".*")]:
            if token not in ("*", "absent"):
                yield word["operator"], token


def _stands(token: str, text: str) -> bool:
    # `11.2` stands in `11.2.1` and in `cuda11.2`, and neither in `11.20` nor in `1.11.2`.
    return bool(re.search(rf"(?<!\d)(?<!\d\.){re.escape(token)}(?!\d)", text, re.IGNORECASE))
