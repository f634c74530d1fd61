"""A source that is opened again has the value of its fact, lacks it, or does not tell."""

from __future__ import annotations

import pytest

from tests.harvest.gitrepo import PATH, GitRepo
from toolmatrix.harvest.source_tree import (
    CANNOT_SAY,
    FOUND,
    NOT_FOUND,
    SourceQuestion,
    check_sources,
)

pytestmark = pytest.mark.process

TEXT = "bazel 7.7.0\ncuda:12.4.1-cudnn-devel-ubuntu22.04\nPython (>= 3.10)\nRHEL 9.5\n"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> GitRepo:
    """A project of two commits, of which the later one says something else."""
    made = GitRepo(tmp_path_factory.mktemp("reopened") / "project")
    made.release("v1", {"docs/a.txt": TEXT})
    made.release("v2", {"docs/a.txt": "nothing\n"})
    return made


def asked(
    repo: GitRepo, value: str, at: str = "owner/project:docs/a.txt@v1", where: str = ""
) -> tuple[str, str]:
    (answer,) = check_sources(
        [SourceQuestion(at=at, value=value, where=where)], str(repo.place), PATH
    )
    return answer.state, answer.why


@pytest.mark.parametrize(
    ("value", "state", "why"),
    [
        ("7.7.0", FOUND, "7.7.0"),
        (">=7.7.0,<8", FOUND, "7.7.0"),
        (">=7.7.0,==7.*", FOUND, "7.7.0, 7"),
        ("<8", NOT_FOUND, "8"),
        ("7.7", FOUND, "7.7"),
        ("7.0", NOT_FOUND, "7.0"),
        ("7.7.1", NOT_FOUND, "7.7.1"),
        ("3.1", NOT_FOUND, "3.1"),
        ("2.4.1", NOT_FOUND, "2.4.1"),
        ("3.10-3.12", NOT_FOUND, "3.12"),
        ("12.4.1 12.5.0", NOT_FOUND, "12.5.0"),
        ("ubuntu22.04", FOUND, "ubuntu22.04"),
        ("ubuntu22.04 ubi9", CANNOT_SAY, "ubi9 may be spelled differently"),
        ("*", CANNOT_SAY, "the value names no version"),
        ("absent", CANNOT_SAY, "the value names no version"),
    ],
)
def test_a_value_is_looked_for_in_the_file(repo: GitRepo, value: str, state: str, why: str) -> None:
    assert asked(repo, value) == (state, why)


def test_the_commit_counts_and_a_row_may_name_its_own(repo: GitRepo) -> None:
    commit = repo.git("rev-parse", "v1")
    for revision in (commit, commit[:12], "v1"):
        assert asked(repo, "7.7.0", f"owner/project:docs/a.txt@{revision}")[0] == FOUND
    assert asked(repo, "7.7.0", "owner/project:docs/a.txt@v2") == (NOT_FOUND, "7.7.0")
    assert (
        asked(repo, "7.7.0", "owner/project:docs/a.txt@v2", "same at commit " + commit)[0] == FOUND
    )
    assert asked(repo, "7.7.0", "owner/project:docs/a.txt", "docs/a.txt, tag v1")[0] == FOUND
    assert asked(repo, "7.7.0", "owner/project@v1", "docs/a.txt")[0] == FOUND
    assert asked(repo, "7.7.0", "owner/project@v1", "somewhere")[0] == CANNOT_SAY


@pytest.mark.parametrize(
    ("at", "state", "why"),
    [
        ("owner/project:docs/b.txt@v1", NOT_FOUND, "docs/b.txt: no such file"),
        ("owner/project:docs@v1", CANNOT_SAY, "docs: a directory"),
        ("owner/project:docs/a.txt@v3", CANNOT_SAY, "v3 is not in the clone"),
        ("owner/project:docs/a.txt", CANNOT_SAY, "the source names no file and commit"),
        (
            "owner/project:docs/a.txt, docs/b.txt, at the tag of each row",
            CANNOT_SAY,
            "the source names no file and commit",
        ),
        ("package project 1.0", CANNOT_SAY, "the source names no file and commit"),
        ("https://project.example/docs", CANNOT_SAY, "the source names no file and commit"),
    ],
)
def test_a_source_that_leads_nowhere(repo: GitRepo, at: str, state: str, why: str) -> None:
    assert asked(repo, "7.7.0", at) == (state, why)


def test_a_planted_error_is_found_among_many(repo: GitRepo) -> None:
    questions = [
        SourceQuestion(at="owner/project:docs/a.txt@v1", value="7.7.0"),
        SourceQuestion(at="owner/project:docs/a.txt@v1", value="7.6.0"),
        SourceQuestion(at="owner/project:docs/a.txt@v1", value="3.10"),
    ]
    answers = check_sources(questions, str(repo.place), PATH)
    assert [answer.state for answer in answers] == [FOUND, NOT_FOUND, FOUND]


def test_an_unpacked_tree_does_not_tell(repo: GitRepo) -> None:
    questions = [SourceQuestion(at="owner/project:a.txt@v1", value="1")]
    (answer,) = check_sources(questions, str(repo.place / "docs"), PATH)
    assert (answer.state, answer.why) == (CANNOT_SAY, "an unpacked tree has no commits")


def test_the_repository_of_a_source() -> None:
    named = [
        SourceQuestion(at=at, value="").repository
        for at in ("owner/project:a.txt@v1", "owner/project:a.txt", "package x", "a/b:c d@e")
    ]
    assert named == ["owner/project", "owner/project", "", ""]
