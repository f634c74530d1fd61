"""Source trees are read at every release, and what is not as a family says is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harvest.gitrepo import FAMILY, GitRepo, context, family, harvested, refusal
from toolmatrix.errors import MatrixError, ToolMissing
from toolmatrix.harvest import source_tree, tree

pytestmark = pytest.mark.process

FILES = {"setup.py": "", ".bazelversion": "3.7.2\n"}


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    """A project with two releases."""
    made = GitRepo(tmp_path / "project")
    made.release("v1.9.0", FILES)
    made.release("v1.10.0", {".bazelversion": "5.0.0\n"})
    return made


def rows(place: Path | str, text: str = FAMILY) -> list[dict[str, object]]:
    (table,) = harvested(place, text)["tables"]
    return [
        {key: value for key, value in row.items() if key not in ("source", "where")}
        for row in table["rows"]
    ]


def test_every_release_has_a_row_whose_source_is_file_and_commit(repo: GitRepo) -> None:
    commit = repo.git("rev-parse", "v1.10.0")
    found = harvested(repo.place)
    (table,) = found["tables"]
    assert table["rows"] == [
        {
            "project": "1.10.0",
            "bazel": "5.0.0",
            "source": "project-source/v1.10.0/.bazelversion",
            "where": ".bazelversion, tag v1.10.0",
        },
        {
            "project": "1.9.0",
            "bazel": "3.7.2",
            "source": "project-source/v1.9.0/.bazelversion",
            "where": ".bazelversion, tag v1.9.0",
        },
    ]
    assert found["sources"]["project-source/v1.10.0/.bazelversion"] == {
        "title": "Project, .bazelversion at v1.10.0",
        "at": f"owner/project:.bazelversion@{commit}",
        "read": "2026-11-23",
    }


def test_a_bare_clone_and_a_worktree_give_the_same(repo: GitRepo, tmp_path: Path) -> None:
    bare, beside = tmp_path / "bare", tmp_path / "beside"
    repo.git("clone", "--quiet", "--bare", str(repo.place), str(bare))
    repo.git("worktree", "add", "--quiet", "--detach", str(beside), "v1.9.0")
    assert harvested(repo.place) == harvested(bare) == harvested(beside)


def test_a_branch_of_the_name_of_a_tag_is_not_read_instead(repo: GitRepo) -> None:
    repo.git("branch", "v1.10.0", "v1.9.0")
    assert rows(repo.place)[0] == {"project": "1.10.0", "bazel": "5.0.0"}


def test_an_annotated_tag_is_its_commit(repo: GitRepo) -> None:
    repo.git("tag", "--annotate", "--message", "third", "v1.11.0", "v1.9.0")
    assert rows(repo.place)[0] == {"project": "1.11.0", "bazel": "3.7.2"}
    assert harvested(repo.place)["tables"][0]["rows"][0]["source"].startswith(
        "project-source/v1.11"
    )


def test_branches_are_releases_where_a_family_says_so(repo: GitRepo) -> None:
    repo.git("branch", "release/2.0", "v1.9.0")
    repo.git("branch", "release/2.1", "v1.10.0")
    text = FAMILY.replace("tags: 'v(", "branches: 'release/(")
    assert rows(repo.place, text) == [
        {"project": "2.1", "bazel": "5.0.0"},
        {"project": "2.0", "bazel": "3.7.2"},
    ]


def test_of_two_tags_of_one_release_the_first_pattern_tells(repo: GitRepo) -> None:
    repo.git("tag", "lib-v1.10.0", "v1.9.0")
    text = FAMILY.replace("tags: 'v(", "tags: ['lib-v(?P<release>[0-9.]+)', 'v(").replace(
        "+)'\nmarks", "+)']\nmarks"
    )
    assert rows(repo.place, text)[0] == {"project": "1.10.0", "bazel": "3.7.2"}


TOLD = (
    FAMILY.replace("(?P<release>[0-9.]+)", "[0-9.]+")
    + """version:
  - {path: VERSION, cells: {release: {match: '[0-9.]+'}}}
  - {path: version.py, cells: {release: {assignment: _version}}}
"""
)


def test_a_tree_may_tell_what_its_tag_does_not(tmp_path: Path) -> None:
    made = GitRepo(tmp_path / "bundle")
    made.release("v0.1", {**FILES, "version.py": "_version = '9.0.0'\n"})
    # The same release in a later bundle.
    made.release("v0.2", {"README": "more"})
    commit = made.release("v0.3", {"VERSION": "10.0.0\n", ".bazelversion": "5.0.0\n"})
    assert rows(made.place, TOLD) == [
        {"project": "10.0.0", "bazel": "5.0.0"},
        {"project": "9.0.0", "bazel": "3.7.2"},
    ]
    found = harvested(made.place, TOLD)
    assert [row["where"] for row in found["tables"][0]["rows"]] == [
        ".bazelversion, tag v0.3",
        ".bazelversion, tag v0.1",
    ]
    assert found["sources"]["project-source/v0.3/.bazelversion"]["at"].endswith(f"@{commit}")


def test_a_tree_that_does_not_tell_is_refused(repo: GitRepo) -> None:
    assert refusal(repo.place, TOLD) == (
        "a file is not in the tree; at v1.10.0:version.py; expected version.py; found no such file"
    )
    repo.git("tag", "--delete", "v1.9.0", "v1.10.0")
    repo.release("v2", {"VERSION": "the newest\n"})
    assert refusal(repo.place, TOLD).endswith(r"expected release: [0-9.]+; found 'the newest\n'")
    repo.git("tag", "--delete", "v2")
    repo.release("v2.1", {"VERSION": "..\n"})
    assert "expected the version of a release" in refusal(repo.place, TOLD)


def test_a_branch_tells_what_no_tag_has(repo: GitRepo) -> None:
    repo.git("checkout", "--quiet", "-b", "release/2.0")
    (repo.place / ".bazelversion").write_text("6.0.0\n")
    repo.git("commit", "--quiet", "--all", "--message", "newer")
    repo.git("branch", "release/1.10.0")
    both = FAMILY + "branches: 'release/(?P<release>[0-9.]+)'\n"
    assert [
        (row["project"], row["bazel"], row["where"])
        for row in harvested(repo.place, both)["tables"][0]["rows"]
    ] == [
        ("2.0", "6.0.0", ".bazelversion, branch release/2.0"),
        ("1.10.0", "5.0.0", ".bazelversion, tag v1.10.0"),
        ("1.9.0", "3.7.2", ".bazelversion, tag v1.9.0"),
    ]


def test_a_clone_that_ends_early_says_nothing_of_later_tables(repo: GitRepo) -> None:
    later = FAMILY[FAMILY.index("  - id: project-bazel") :].replace("project-bazel", "later")
    both = FAMILY + later.replace("      cells:", "      releases: '>=1.11'\n      cells:")
    assert [table["id"] for table in harvested(repo.place, both)["tables"]] == ["project-bazel"]
    alone = FAMILY.replace("      cells:", "      releases: '>=1.11'\n      cells:")
    assert refusal(repo.place, alone) == (
        f"no table covers the releases of this tree; at {repo.place}; expected a newer clone; found 1.10.0"
    )


def test_the_date_of_a_tag_needs_no_file(repo: GitRepo) -> None:
    text = FAMILY.replace("path: .bazelversion", "where: day of the tag").replace(
        "bazel: {match: '\\A(?P<whole>[0-9.]+)\\n\\Z', is: \"{whole}\"}", "date: {date: tag}"
    )
    assert rows(repo.place, text)[0] == {"project": "1.10.0", "date": "2021-05-14"}
    source = harvested(repo.place, text)["sources"]["project-source/v1.10.0"]
    assert source["at"] == "owner/project@" + repo.git("rev-parse", "v1.10.0")


def test_cells_follow_one_another_and_hold_what_is_constant(repo: GitRepo) -> None:
    text = FAMILY.replace(
        "bazel: {match: '\\A(?P<whole>[0-9.]+)\\n\\Z', is: \"{whole}\"}",
        "id: 'project-bazel/{release}+x'\n"
        "        bazel:\n"
        "          - {match: '(?P<major>[0-9]+)[.]', is: '>={value}0,<{major+1}', several: list, releases: '1.9'}\n"
        "          - other",
    )
    with pytest.raises(MatrixError, match="unknown column `nothing`"):
        rows(repo.place, FAMILY.replace("        bazel: {m", "        nothing: {m"))
    assert rows(repo.place, text) == [
        {"project": "1.10.0", "id": "project-bazel/1.10.0+x", "bazel": "other"},
        {
            "project": "1.9.0",
            "id": "project-bazel/1.9.0+x",
            "bazel": [">=3.0,<4", ">=7.0,<8", "other"],
        },
    ]


@pytest.mark.parametrize(
    "name", ["a file of 1.9", "ß/ünï", 'quote"d', "back\\slash", "-dash", "a:b"]
)
def test_paths_with_odd_characters(repo: GitRepo, name: str) -> None:
    repo.release("v1.11.0", {name: "6.1.0\n"})
    text = FAMILY.replace(
        "path: .bazelversion", f"path: '{name}'\n      releases: '>=1.11'"
    ).replace("floor: 2", "floor: 1")
    assert rows(repo.place, text) == [{"project": "1.11.0", "bazel": "6.1.0"}]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "./x", '"a\\nb"'])
def test_a_path_stays_in_the_tree(repo: GitRepo, path: str) -> None:
    with pytest.raises(MatrixError, match="a path leads out of the tree"):
        rows(repo.place, FAMILY.replace("path: .bazelversion", f"path: {path}"))


def test_another_project_is_refused(tmp_path: Path) -> None:
    other = GitRepo(tmp_path / "other")
    other.release("v1.0", {"README": ""})
    assert refusal(other.place) == (
        f"this is not a tree of owner/project; at {other.place}; expected setup.py; found no setup.py"
    )


def test_a_clone_without_tags_is_refused(repo: GitRepo, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    repo.git("clone", "--quiet", "--no-tags", str(repo.place), str(plain))
    assert refusal(plain) == (
        f"none of its tags is a release; at {plain}; expected v(?P<release>[0-9.]+); found no tags"
    )


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    empty = GitRepo(tmp_path / "empty")
    assert refusal(empty.place).startswith("none of its tags is a release; ")
    assert refusal(empty.place, GRID) == (
        f"a source tree cannot be read: it has no commit; at {empty.place}/.git; expected a commit at HEAD"
    )


def test_a_tag_that_is_no_version_is_refused(repo: GitRepo) -> None:
    repo.git("tag", "v.9")
    assert refusal(repo.place) == (
        f"one of its tags is not a version; at {repo.place}; expected a version; found `.9` is not a version"
    )


def test_a_tag_of_a_blob_or_a_tree_is_no_release(repo: GitRepo) -> None:
    repo.git("tag", "v2.0", repo.git("hash-object", "-w", "--stdin", said=b"a key"))
    repo.git("tag", "v2.1", "HEAD^{tree}")
    repo.git("tag", "--annotate", "--message", "a blob", "v2.2", "v2.0")
    assert [row["project"] for row in rows(repo.place)] == ["1.10.0", "1.9.0"]


def test_a_file_that_a_release_lacks_is_refused(repo: GitRepo) -> None:
    repo.git("rm", "--quiet", ".bazelversion")
    repo.release("v1.11.0", {})
    assert refusal(repo.place) == (
        "a file is not in the tree; at v1.11.0:.bazelversion; expected .bazelversion; found no such file"
    )
    before = FAMILY.replace("      cells:", "      releases: '<1.11'\n      cells:")
    assert len(rows(repo.place, before)) == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "''"),
        ("newest\n", r"'newest\n'"),
        ("<<<<<<< HEAD\n5.0.0\n", r"'<<<<<<< HEAD\n5.0.0\n'"),
    ],
)
def test_a_value_that_is_not_there_is_refused(repo: GitRepo, text: str, found: str) -> None:
    repo.release("v1.11.0", {".bazelversion": text})
    assert refusal(repo.place) == (
        "a value is no longer where it was; at v1.11.0:.bazelversion; "
        rf"expected bazel: \A(?P<whole>[0-9.]+)\n\Z; found {found}"
    )


def test_two_values_are_refused_where_one_was_expected(repo: GitRepo) -> None:
    repo.release("v1.11.0", {".bazelversion": "5.0.0\n6.0.0\n"})
    text = FAMILY.replace("'\\A(?P<whole>[0-9.]+)\\n\\Z'", "'^(?P<whole>[0-9.]+)$'")
    assert refusal(repo.place, text).endswith("found 2 values: 5.0.0, 6.0.0")
    assert rows(repo.place, text.replace('"{whole}"', '"{whole}", several: blanks'))[0] == {
        "project": "1.11.0",
        "bazel": "5.0.0 6.0.0",
    }


def test_fewer_rows_than_the_floor_are_refused(repo: GitRepo) -> None:
    assert refusal(repo.place, FAMILY.replace("floor: 2", "floor: 3")) == (
        f"rows of `project-bazel` are missing; at {repo.place}; expected at least 3 rows; found 2"
    )


def test_a_release_that_is_read_twice_is_refused(repo: GitRepo) -> None:
    item = "{path: .bazelversion, cells: {bazel: {match: '[0-9.]+'}}}"
    twice = FAMILY[: FAMILY.index("    read:")] + f"    read: [{item}, {item}]\n"
    assert refusal(repo.place, twice) == (
        f"duplicate rows in `project-bazel`; at {repo.place}; expected unique rows; found 1.10.0, 1.9.0"
    )


@pytest.mark.parametrize(
    "garbage", [b"\xff\xfe\x00", b"5.0.0\0\n", bytes(range(0x80, 0xC0)) + b"\xff"]
)
def test_a_file_that_is_no_text_is_refused(repo: GitRepo, garbage: bytes) -> None:
    repo.release("v1.11.0", {".bazelversion": garbage})
    assert (
        refusal(repo.place)
        == "a file is not text; at v1.11.0:.bazelversion; expected text in UTF-8"
    )


def test_a_huge_file_is_refused_unread(repo: GitRepo) -> None:
    repo.release("v1.11.0", {".bazelversion": "1" * (source_tree.FILE_LIMIT + 1)})
    assert refusal(repo.place).endswith("expected .bazelversion; found more than 4 MiB")


def test_links_are_followed_inside_the_tree_alone(repo: GitRepo, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("6.6.6\n")
    link = repo.place / ".bazelversion"
    said = []
    for number, target in enumerate(
        ["version/bazel", "../secret", "/etc/hostname", "gone", ".bazelversion"]
    ):
        link.unlink()
        link.symlink_to(target)
        repo.release(f"v2.{number}", {"version/bazel": "7.0.0\n"})
        text = FAMILY.replace(
            "      cells:", f"      releases: '2.{number}'\n      cells:"
        ).replace("floor: 2", "floor: 1")
        try:
            said.append(rows(repo.place, text)[0]["bazel"])
        except Exception:  # noqa: BLE001 - what it was is compared
            said.append(refusal(repo.place, text).rpartition("; ")[2])
    assert said == [
        "7.0.0",
        "found a link that leaves the tree",
        "found a link that leaves the tree",
        "found a link to nothing",
        "found a link to itself",
    ]


def test_a_directory_and_a_path_through_a_file_are_no_files(repo: GitRepo) -> None:
    repo.release("v1.11.0", {"version/bazel": "7.0.0\n"})
    text = FAMILY.replace("      cells:", "      releases: '1.11'\n      cells:")
    assert refusal(repo.place, text.replace("path: .bazelversion", "path: version")).endswith(
        "found a directory"
    )
    through = text.replace("path: .bazelversion", "path: setup.py/x")
    assert refusal(repo.place, through).endswith("found a path through a file")


def test_a_shallow_clone_has_the_release_it_has(repo: GitRepo, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    repo.git(
        "clone", "--quiet", "--depth=1", "--branch=v1.10.0", f"file://{repo.place}", str(shallow)
    )
    assert refusal(shallow).endswith("expected at least 2 rows; found 1")


def test_a_clone_without_its_objects_is_refused(repo: GitRepo) -> None:
    name = repo.git("rev-parse", "v1.9.0:.bazelversion")
    (repo.place / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert refusal(repo.place).endswith("expected .bazelversion; found no such file")


@pytest.mark.parametrize("lost", ["v1.9.0", "v1.9.0^{tree}"])
def test_a_half_copied_repository_is_refused(repo: GitRepo, lost: str) -> None:
    name = repo.git("rev-parse", lost)
    (repo.place / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert "1.9.0" in refusal(repo.place)
    shutil.rmtree(repo.place / ".git" / "objects")
    (repo.place / ".git" / "objects").mkdir()
    assert refusal(repo.place).startswith(
        f"a source tree cannot be read: git cannot read it; at {repo.place}/.git; expected a whole git repository; "
        "found fatal: missing object "
    )


def test_what_git_takes_for_no_repository_is_refused(repo: GitRepo) -> None:
    (repo.place / ".git" / "HEAD").unlink()
    assert refusal(repo.place).startswith(
        f"a source tree cannot be read: git cannot read it; at {repo.place}/.git; expected a whole git repository; "
        "found fatal: not a git repository"
    )


@pytest.mark.parametrize("kept", [0, 10, 15])
def test_a_damaged_object_is_refused(repo: GitRepo, kept: int) -> None:
    name = repo.git("rev-parse", "v1.9.0:.bazelversion")
    path = repo.place / ".git" / "objects" / name[:2] / name[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:kept])
    assert "expected" in refusal(repo.place)


def test_nothing_in_a_repository_is_executed(repo: GitRepo, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    evil.chmod(0o755)
    repo.release("v1.11.0", {".gitattributes": "* filter=evil diff=evil\n"})
    for key, value in {
        "core.fsmonitor": str(evil),
        "core.pager": str(evil),
        "core.sshCommand": str(evil),
        "filter.evil.smudge": str(evil),
        "diff.evil.textconv": str(evil),
        "alias.cat-file": f"!{evil}",
        # What is missing would be fetched by a program that the repository names.
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "remote.origin.url": str(repo.place),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(evil),
        "protocol.file.allow": "always",
    }.items():
        repo.git("config", key, value)
    for hook in ("reference-transaction", "post-index-change", "fsmonitor-watchman"):
        shutil.copy(evil, repo.place / ".git" / "hooks" / hook)
    assert len(rows(repo.place)) == 3
    name = repo.git("rev-parse", "v1.9.0:.bazelversion")
    (repo.place / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert refusal(repo.place).endswith("found no such file")
    assert not ran.exists()


def test_what_replaces_an_object_is_not_read(repo: GitRepo) -> None:
    repo.git("replace", repo.git("rev-parse", "v1.10.0"), repo.git("rev-parse", "v1.9.0"))
    assert rows(repo.place)[0] == {"project": "1.10.0", "bazel": "5.0.0"}


def test_settings_of_the_user_are_not_read(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/nowhere")
    assert len(rows(repo.place)) == 2


def test_without_git_the_error_says_what_to_do(repo: GitRepo) -> None:
    with pytest.raises(ToolMissing, match="git is not installed"):
        tree.harvest(family(), context(repo.place, {"PATH": "/nowhere"}))


def test_a_place_has_to_be_named_and_there(tmp_path: Path) -> None:
    assert refusal("") == (
        "no source tree is named; at None; expected `--from PATH`, a clone of owner/project"
    )
    assert refusal(tmp_path / "x") == (
        f"there is no source tree; at {tmp_path / 'x'}; "
        "expected a git repository, or a directory with an unpacked release; found nothing"
    )
    (tmp_path / "x").write_text("")
    assert refusal(tmp_path / "x").endswith("found a file")


GRID = """
kind: tree
about: what a page of a project says
title: Project
repository: owner/project
marks: [page.md]
tables:
  - id: project-tested
    about: tested builds
    evidence: tested
    key: project
    columns:
      cuda: {as: tested}
      notes: {as: attribute}
    floor: 2
    read:
      path: page.md
      where: table "GPU"
      releases: ">=2"
      grid:
        records: rows
        after: '^# GPU'
        release: {column: Version, match: 'project-(?P<version>.+)', is: "{version}"}
      cells:
        cuda: {column: CUDA, match: '[0-9.]+', several: blanks, nothing: [none]}
        notes: {column: 'Not.*', several: list, releases: ">=2.1"}
"""

PAGE = """
| CPU |
| --- |
# GPU
| Version | CUDA | Notes |
| --- | --- | --- |
| project-2.1 | 12.1, 12.2 | fast |
| project-2.0 | none | |
| project-1.0 | 10 | old |
| | | |
"""


def test_a_table_of_a_page_is_read_at_head(tmp_path: Path) -> None:
    page = GitRepo(tmp_path / "page")
    commit = page.release("whatever", {"page.md": PAGE})
    assert rows(page.place, GRID) == [
        {"project": "2.1", "cuda": "12.1 12.2", "notes": ["fast"]},
        {"project": "2.0"},
    ]
    found = harvested(page.place, GRID)
    assert found["sources"] == {
        "project-source/HEAD/page.md": {
            "title": "Project, page.md",
            "at": f"owner/project:page.md@{commit}",
            "read": "2026-11-23",
        }
    }
    assert {row["where"] for row in found["tables"][0]["rows"]} == {'table "GPU"'}


@pytest.mark.parametrize(
    ("was", "now", "expected", "found"),
    [
        ("# GPU", "# GPUs are dear", None, None),
        ("# GPU", "# TPU", "a table", "nothing that matches `^# GPU`"),
        (
            "| Version |",
            "| Release |",
            "release: project-(?P<version>.+)",
            "0 columns that fit `Version`",
        ),
        ("| CUDA |", "| Toolkit |", "cuda: [0-9.]+", "0 columns that fit `CUDA`"),
        ("12.1, 12.2", "the newest", "cuda: [0-9.]+", "'the newest'"),
        ("project-2.1", "project-next", "the version of a release", "next"),
        ("project-2.1", "lib-2.1", "release: project-(?P<version>.+)", "'lib-2.1'"),
        ("project-2.0", "project-2.1", "unique rows", "2.1"),
        ("project-2.0", "project-0.2", "at least 2 rows", "1"),
    ],
)
def test_a_page_whose_table_changed_is_refused(
    tmp_path: Path, was: str, now: str, expected: str | None, found: str | None
) -> None:
    page = GitRepo(tmp_path / "page")
    page.release("whatever", {"page.md": PAGE.replace(was, now)})
    if expected is None or found is None:
        assert len(rows(page.place, GRID)) == 2
        return
    said = refusal(page.place, GRID)
    assert f"expected {expected}" in said
    assert f"found {found}" in said


PATHS = """
kind: tree
about: what recipes put into images
title: Recipes
repository: owner/recipes
marks: [README]
tables:
  - id: recipes
    about: images
    evidence: artifact
    key: image
    columns:
      toolkit: {as: carries}
      machine: {as: limits}
    floor: 1
    read:
      paths:
        match: 'dist/(?P<system>[a-z]+)/(?P<kind>devel)/Dockerfile'
        release: {dockerfile: FROM, match: 'base:(?P<version>[0-9.]+)', is: "{kind}:{version}-{system}"}
      cells:
        toolkit: {dockerfile: FROM, match: '[0-9.]+'}
        machine: {match: '(?<=# )[0-9a-z]+', words: {amd64: x86_64, arm64: aarch64}, several: blanks}
"""


def test_many_files_of_one_commit_are_read(tmp_path: Path) -> None:
    made = GitRepo(tmp_path / "recipes")
    files = {
        "README": "",
        "dist/ubuntu/devel/Dockerfile": "FROM base:12.4.1\n# amd64\n# arm64\n",
        "dist/debian/devel/Dockerfile": "FROM base:11.8\n# amd64\n",
        "dist/debian/runtime/Dockerfile": "FROM base:9\n",
    }
    commit = made.release("any", files)
    found = harvested(made.place, PATHS)
    source = "project-source/HEAD"
    assert found["tables"][0]["rows"] == [
        {
            "image": f"devel:{version}-{system}",
            "toolkit": version,
            "machine": machine,
            "source": source,
            "where": path,
        }
        for version, system, machine, path in [
            ("12.4.1", "ubuntu", "x86_64 aarch64", "dist/ubuntu/devel/Dockerfile"),
            ("11.8", "debian", "x86_64", "dist/debian/devel/Dockerfile"),
        ]
    ]
    assert found["sources"][source]["at"] == f"owner/recipes@{commit}"
    made.release("later", {"dist/ubuntu/devel/Dockerfile": "FROM base:12.4.1\n# riscv64\n"})
    assert refusal(made.place, PATHS) == (
        "a value is no longer where it was; at HEAD:dist/ubuntu/devel/Dockerfile; "
        "expected machine: (?<=# )[0-9a-z]+; found `riscv64`, not one of amd64, arm64"
    )
    made.git("rm", "-r", "--quiet", "dist")
    made.release("last", {})
    assert refusal(made.place, PATHS).endswith("expected at least 1 rows; found 0")
