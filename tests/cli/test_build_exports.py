"""`toolmatrix build --reproducible` and `--push`: what bake is told, and what is said of what it made."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Outcome
from tests.cli.test_build import NO_BUILDX, calls, engine, refused
from tests.cli.test_documents import validated
from toolmatrix.lockfile import lock_file

ASKED = ("gcc", "--with", "rocm==5.2.3", "--arch", "gfx90a", "--distro", "debian12")
DIGEST = "sha256:" + 64 * "a"
# An engine that writes what bake writes of an image, and fails where the name of a target says so.
METADATA = """
case $* in *--metadata-file*) ;; *) exit 0 ;; esac
case $* in *FAIL) exit 1 ;; esac
printf '{"image": {"containerimage.digest": "DIGEST"}}' >"$6"
""".replace("DIGEST", DIGEST)


@pytest.fixture
def out(real: Cli, here: Path) -> Path:
    """A directory rendered for three targets."""
    asked = (*ASKED, "--target", "x86,arm,amd", "--with", "base-image")
    rendered = real("render", *asked, "--output", "out")
    assert rendered.code == 0, rendered.err
    return here / "out"


def words(here: Path) -> list[list[str]]:
    """The words of each call that builds or joins."""
    return [line.split() for line in calls(here)]


@pytest.mark.process
def test_a_reproducible_build_has_one_time_and_says_its_digest(
    real: Cli, here: Path, out: Path
) -> None:
    path = engine(here, "docker", METADATA)
    outcome = real("build", "out", "--target", "x86", "--reproducible", PATH=path)
    day = datetime.fromisoformat(lock_file.read(str(out / "toolmatrix.lock")).matrix_date)
    epoch = int(day.replace(tzinfo=timezone.utc).timestamp())
    assert words(here) == [
        [
            *("docker", "buildx", "bake", "--file", "docker-bake.json"),
            *("--metadata-file", "x86.metadata.json"),
            *("--set", f"x86.args.SOURCE_DATE_EPOCH={epoch}"),
            # Provenance has times, so there is none.
            *("--set", "x86.output=type=oci,dest=x86.oci.tar,rewrite-timestamp=true", "x86"),
        ]
    ]
    assert outcome.out.splitlines()[1:] == [f"      {DIGEST}", "1 of 1 image built"]
    assert outcome.out.startswith("pass  out/x86.oci.tar  linux/amd64  ")
    assert not (out / "x86.metadata.json").exists()
    # The time of whoever calls goes before that of the matrix.
    real("build", "out", "--target", "x86", "--reproducible", PATH=path, SOURCE_DATE_EPOCH="7")
    assert "x86.args.SOURCE_DATE_EPOCH=7" in words(here)[1]
    odd = real("build", "out", "--reproducible", PATH=path, SOURCE_DATE_EPOCH="soon")
    refused(odd, 2, "error[TM902]: `SOURCE_DATE_EPOCH` is not a time\n")


@pytest.mark.process
def test_an_image_of_packages_of_a_day_has_its_time(real: Cli, here: Path, out: Path) -> None:
    real("render", "--output", "out", "--snapshot", "2026-11-20")
    path = engine(here, "docker", METADATA)
    real("build", "out", "--target", "x86", "--reproducible", PATH=path)
    assert "x86.args.SOURCE_DATE_EPOCH=1795132800" in words(here)[0]
    assert "ARG SOURCE_DATE_EPOCH=1795132800\n" in (out / "x86.Dockerfile").read_text()


@pytest.mark.process
def test_what_is_pushed_is_joined_by_platform_and_amd_stays_apart(
    real: Cli, here: Path, out: Path
) -> None:
    name = "registry.example/team/app:1"
    path = engine(here, "docker", METADATA)
    outcome = real("build", "out", "--push", name, PATH=path)
    *built, joined = words(here)
    assert [[word for word in one if "tags" in word or "output" in word] for one in built] == [
        [f"{target}.tags={name}-{target}", f"{target}.output=type=registry"]
        for target in ("amd", "arm", "x86")
    ]
    assert joined == [
        *("docker", "buildx", "imagetools", "create", "--tag", name),
        *(f"{name}-{target}@{DIGEST}" for target in ("x86", "arm")),
    ]
    assert outcome.out.splitlines()[-2:] == [
        f"index {name} of {name}-x86, {name}-arm",
        "3 of 3 images built",
    ]
    document = real("build", "out", "--push", name, "--json", PATH=path).json()
    validated(document, "builds")
    assert document["index"] == {"name": name, "images": [f"{name}-x86", f"{name}-arm"]}
    assert {one["digest"] for one in document["builds"]} == {DIGEST}
    assert out.is_dir()


@pytest.mark.process
@pytest.mark.parametrize("name", ["a b", "x,output=type=local", "$(id)", "-x"])
def test_a_name_that_no_image_can_have_is_refused(
    real: Cli, here: Path, out: Path, name: str
) -> None:
    outcome = real("build", "out", f"--push={name}", PATH=engine(here, "docker", METADATA))
    refused(outcome, 2, "error[TM602]: ")
    assert calls(here) == []
    assert out.is_dir()


@pytest.mark.process
def test_no_index_is_made_where_an_image_is_missing(real: Cli, here: Path, out: Path) -> None:
    failing = METADATA.replace("*FAIL", "*x86")
    outcome = real("build", "out", "--push", "a.example/b", PATH=engine(here, "docker", failing))
    assert outcome.code == 1
    assert not any("imagetools" in one for one in words(here))
    assert "index" not in outcome.out
    assert out.is_dir()


@pytest.mark.process
def test_a_registry_that_refuses_an_index_is_told_with_the_command(
    real: Cli, here: Path, out: Path
) -> None:
    refuses = f'case $* in *imagetools*) echo "denied" >&2; exit 1 ;; esac\n{METADATA}'
    outcome = real("build", "out", "--push", "a.example/b", PATH=engine(here, "docker", refuses))
    parts = " ".join(f"a.example/b-{target}@{DIGEST}" for target in ("x86", "arm"))
    assert outcome.code == 5
    assert outcome.err.endswith(
        "error[TM500]: cannot make the index `a.example/b` from the pushed images\n"
        "  found: denied\n"
        f"help: `docker buildx imagetools create --tag a.example/b {parts}` makes it\n"
    )
    assert out.is_dir()


REF = "registry.example/app"
USUAL = ["--sbom=true", "--provenance=mode=max"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "environment", "wanted"),
    [
        pytest.param(("--push", REF), {}, USUAL, id="pushed"),
        pytest.param((), {}, [], id="not pushed"),
        pytest.param(("--push", REF, "--reproducible"), {}, [], id="one digest"),
        pytest.param(
            *(("--push", REF, "--reproducible", "--provenance", "min"), {}),
            *(["--provenance=mode=min"],),
            id="asked for",
        ),
        # Whoever says it for all builds by the variable of the bake file is not overruled.
        pytest.param(("--push", REF), {"ATTEST": "false"}, [], id="variable"),
        pytest.param(
            *(("--push", REF, "--sbom", "off", "--provenance", "off"), {}),
            *(["--sbom=false", "--provenance=false"],),
            id="off",
        ),
        pytest.param(
            *(("--sbom", "mirror.example/scan:1"), {}),
            *(["--sbom=generator=mirror.example/scan:1"],),
            id="scanner",
        ),
    ],
)
def test_parts_and_provenance_are_attached_to_what_is_pushed(
    real: Cli,
    here: Path,
    out: Path,
    options: tuple[str, ...],
    environment: dict[str, str],
    wanted: list[str],
) -> None:
    path = engine(here, "docker", METADATA)
    outcome = real("build", "out", "--target", "x86", *options, PATH=path, **environment)
    assert outcome.code == 0, outcome.err
    attached = [word for word in words(here)[0] if word.startswith(("--sbom", "--provenance"))]
    assert attached == wanted
    assert out.is_dir()


@pytest.mark.process
def test_a_scanner_that_no_image_can_be_is_refused(real: Cli, here: Path, out: Path) -> None:
    outcome = real("build", "out", "--sbom=a,b=c d", PATH=engine(here, "docker", METADATA))
    refused(outcome, 2, "error[TM602]: ")
    assert calls(here) == []
    assert out.is_dir()


@pytest.mark.process
def test_a_builder_elsewhere_builds_and_joins(real: Cli, here: Path, out: Path) -> None:
    path = engine(here, "docker", METADATA)
    outcome = real("build", "out", "--builder", "far", "--push", REF, PATH=path)
    assert outcome.code == 0, outcome.err
    asked, *built, joined = words(here)
    assert asked == ["docker", "buildx", "inspect", "far"]
    assert {tuple(one[-3:-1]) for one in built} == {("--builder", "far")}
    assert joined[4:7] == ["--builder", "far", "--tag"]
    assert out.is_dir()


@pytest.mark.process
def test_a_builder_that_is_not_there_is_told(real: Cli, here: Path, out: Path) -> None:
    lacks = 'case $* in *inspect*) echo "ERROR: no builder \\"far\\" found" >&2; exit 1 ;; esac'
    outcome = real("build", "out", "--builder", "far", PATH=engine(here, "docker", lacks))
    refused(
        outcome,
        5,
        "error[TM500]: buildx has no builder `far`\n"
        '  found: ERROR: no builder "far" found\n'
        "help: `docker buildx ls` lists them; `docker buildx create --name NAME ADDRESS` makes one\n",
    )
    assert out.is_dir()


@pytest.mark.process
def test_a_builder_that_does_not_answer_is_told(real: Cli, here: Path, out: Path) -> None:
    silent = 'case $* in *--bootstrap*) echo "ERROR: deadline exceeded" >&2; exit 1 ;; *bake*) exit 1 ;; esac'
    outcome = real("build", "out", "--builder", "far", PATH=engine(here, "docker", silent))
    assert (outcome.code, outcome.out) == (5, "")
    assert (
        "error[TM500]: buildx has no builder `far` that answers\n  found: ERROR: d" in outcome.err
    )
    # One that answers had a build that failed.
    failing = engine(here, "docker", "case $* in *bake*) exit 1 ;; esac")
    assert real("build", "out", "--builder", "far", PATH=failing).code == 1
    assert out.is_dir()


@pytest.mark.process
def test_what_was_pushed_or_archived_is_kept_as_long_as_it_is_there(
    real: Cli, here: Path, out: Path
) -> None:
    registry = METADATA.replace(
        "case $* in *--metadata",
        f'case $* in *inspect*--format*) cat "{here}/held" ;; esac\ncase $* in *--metadata',
        1,
    ).replace('>"$6"', '>"$6"; : >x86.oci.tar')
    path = engine(here, "docker", registry, tools=("cat",))
    (here / "held").write_text(f"{DIGEST}\n")
    for option in (("--push", REF), ("--reproducible",)):
        asked = ("build", "out", "--target", "x86", *option, "--resume", "builds.jsonl")
        assert real(*asked, PATH=path).code == 0
        kept = real(*asked, PATH=path)
        assert kept.out.splitlines()[:2][1] == f"      {DIGEST}", kept.err
        assert kept.out.startswith("kept  ")
        (here / "held").write_text("")
        (out / "x86.oci.tar").unlink()
        assert real(*asked, PATH=path).out.startswith("pass  ")
    builds = [one for one in words(here) if one[2] == "bake"]
    assert len(builds) == 4


def without_buildx(real: Cli, here: Path, option: tuple[str, ...]) -> Outcome:
    return real("build", "out", *option, PATH=engine(here, "docker", f"{NO_BUILDX}; exit 0"))


OPTIONS = [
    *(("--reproducible",), ("--push", "a.example/b"), ("--builder", "far")),
    *(("--sbom", "on"), ("--provenance", "max")),
]


@pytest.mark.process
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option[0])
def test_what_only_buildkit_can_do_is_not_done_without_it(
    real: Cli, here: Path, out: Path, option: tuple[str, ...]
) -> None:
    missing = without_buildx(real, here, option)
    refused(
        missing, 5, f"error[TM500]: `{option[0]}` needs BuildKit through docker's plugin buildx"
    )
    (out / "docker-bake.json").unlink()
    path = engine(here, "docker", METADATA)
    refused(
        real("build", "out", *option, PATH=path),
        3,
        f"error[TM110]: `{option[0]}` needs a bake file\n",
    )


def test_the_bake_file_that_is_written_names_every_target(out: Path) -> None:
    """The names that the settings of these options speak of."""
    held = json.loads((out / "docker-bake.json").read_text())
    assert sorted(held["target"]) == ["amd", "arm", "x86"]
