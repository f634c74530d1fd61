"""Registries from the command line: what is printed, and with which code it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.images import hostile, images
from tests.images.hostile import Reply, Server

pytestmark = [pytest.mark.process]

MADE = images.image({"etc/os-release": b"ID=debian\nVERSION_ID=12\n"})
PATH = "/v2/app/manifests/1"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that holds an image, for a user without credentials."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with hostile.running() as found:
        found.serve("app", MADE)
        yield found


def test_an_image_is_shown_and_judged_where_it_lies(cli: Cli, server: Server, here: Path) -> None:
    subject = f"registry://{server.host}/app:1"
    images.put(here / "layout", images.layout(MADE))
    run = cli("inventory", subject)
    assert (run.code, run.out.splitlines()[0]) == (
        0,
        f"{subject}  linux/amd64  {MADE.entry['digest'][:19]}",
    )
    judged = cli("validate", subject, "--expect", "distro==debian12", "--expect", "arch==arm64")
    local = cli("validate", "oci:layout", "--expect", "distro==debian12", "--expect", "arch==arm64")
    assert judged.code == local.code == 1
    assert [line[:22] for line in judged.out.splitlines()[1:]] == [
        line[:22] for line in local.out.splitlines()[1:]
    ]


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (
            Reply(404),
            2,
            [
                "error[TM907]: the registry does not have this",
                "  --> {subject}",
                "  expected: `app`, manifests/1",
                "  found: 404",
            ],
        ),
        (
            Reply(400, body=b'{"errors": [{"code": "\\u001b[31m", "message": "no"}]}'),
            5,
            [
                "error[TM510]: the registry fails",
                "  --> {subject}",
                "  expected: status 200",
                "  found: 400 \\x1b[31m: no",
            ],
        ),
        (
            Reply(401, {"WWW-Authenticate": "Basic"}),
            5,
            [
                "error[TM511]: the registry refuses access",
                "  --> {subject}",
                "  expected: any credentials in {config}/config.json",
                "  found: it wants credentials",
                "help: `docker login {host}`, if the image exists",
            ],
        ),
    ],
)
def test_what_goes_wrong_is_one_error(
    cli: Cli, server: Server, reply: Reply, code: int, said: list[str], tmp_path: Path
) -> None:
    server.answers[PATH] = reply
    subject = f"registry://{server.host}/app:1"
    run = cli("inventory", subject)
    wanted = [line.format(subject=subject, config=tmp_path, host=server.host) for line in said]
    assert (run.code, run.out, run.err.splitlines()) == (code, "", wanted)


def test_a_registry_that_fails_stops_none_of_the_others(
    cli: Cli, server: Server, here: Path
) -> None:
    good, bad = (f"registry://{server.host}/app:{tag}" for tag in "12")
    (here / "images.txt").write_text(f"{bad}\n{good}\n")
    run = cli("validate", "--all", "images.txt", "--expect", "distro==debian12", "--json")
    verdicts = [one["verdicts"][0]["verdict"] for one in run.json()["subjects"]]
    assert (run.code, verdicts) == (4, ["unknown", "pass"])


def test_tags_of_artifacts_about_images_are_no_subjects(cli: Cli, server: Server) -> None:
    about = f"sha256-{'a1' * 32}"
    artifacts = [about, *(f"{about}.{kind}" for kind in ("att", "sbom", "sig"))]
    others = ["sha256-short", f"{about}.other"]
    tags = json.dumps({"tags": ["1", *artifacts, *others]}).encode()
    server.answers["/v2/app/tags/list"] = Reply(body=tags)
    place = f"registry://{server.host}/app"

    def found(pattern: str) -> list[str]:
        run = cli("validate", "--all", place + pattern, "--expect", "distro==debian12", "--json")
        return sorted(one["subject"].removeprefix(f"{place}:") for one in run.json()["subjects"])

    assert found("") == found(":*") == sorted(["1", *others])
    assert found(":sha256-*.sig") == [artifacts[-1]]
    assert found(f":{about}") == [about]
